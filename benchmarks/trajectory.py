"""The picture of docs/trajectory.md: one noisy trajectory, its smoothed states with bands, and its equations.

``python -m benchmarks.trajectory`` draws ``docs/trajectory.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ardea.dynamics import Discovery, systems
from ardea.show import figure_bytes, plot_states

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "trajectory.png"
# As on the page: noise of 20 % of the deviation of all states together, and samples 5 times as far apart as usual.
NOISE, SEED, EVERY = 0.2, 0, 5


def drawn() -> Any:
    """Fit one noisy trajectory, and draw it with its equations above."""
    t, x = systems.van_der_pol().noisy(NOISE, seed=SEED)
    t, x = t[::EVERY], x[::EVERY]
    model = Discovery().fit(x, t, feature_names=["x", "y"])
    axes = plot_states(model, x)
    lines = (f"{one.left.text} = {one.with_intervals()}" for one in model.equations_)
    axes[0].figure.suptitle("\n".join(lines), fontsize="small", ha="left", x=0.1, family="monospace")
    return axes


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE, help="where to draw it")
    options = parser.parse_args()
    options.out.write_bytes(figure_bytes(drawn, "png"))


if __name__ == "__main__":
    main()
