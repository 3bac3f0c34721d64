"""False terms of equations of motion: how many were asked for (`Discovery(false_terms=…)`), how many are found.

``python -m benchmarks.false_terms`` runs systems × noise × library size, with decoys, and keeps the records;
``python -m benchmarks.false_terms page`` writes docs/false_terms_table.md from them. Decoys are inputs that are known
and have nothing to do with the system: products of them with the states are candidates, too.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from ardea.dynamics import Discovery, Polynomials, systems

RECORDS = Path(__file__).parent / "results" / "false_terms.json"
PAGE = Path(__file__).parents[1] / "docs" / "false_terms_table.md"
SYSTEMS = ("linear_oscillator", "lotka_volterra", "van_der_pol", "lorenz63")
NOISES = (0.02, 0.1)
# Library, and number of decoys.
LIBRARIES = {"degree 3": (3, 0), "degree 5": (5, 0), "degree 2, 3 decoys": (2, 3)}
LARGEST_TRUTH = {"linear_oscillator": 1, "lotka_volterra": 2, "van_der_pol": 3, "lorenz63": 2}
ROWS = 200


def decoys(t: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return sums of five waves of random frequency each."""
    frequency, phase = rng.uniform(1, 12, (5, 1, number)), rng.uniform(0, 2 * np.pi, (5, 1, number))
    return np.sin(2 * np.pi * frequency * t[:, None] / np.ptp(t) + phase).sum(axis=0)


def one_draw(name: str, noise: float, library: str, asked: float, seed: int) -> dict[str, object]:
    """Return the false and the missed terms of one fit."""
    system, (degree, number) = getattr(systems, name)(), LIBRARIES[library]
    t, x = system.noisy(noise, seed=seed)
    t, x = t[:ROWS], x[:ROWS]
    states = list(system.feature_names)
    inputs = [f"u{i}" for i in range(number)]
    u = decoys(t, number, np.random.default_rng(seed)) if number else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery(Polynomials(max(degree, LARGEST_TRUTH[name])), false_terms=asked).fit(
            x, t, u=u, feature_names=states + inputs
        )
    found = {(i, term) for i, one in enumerate(model.equations_) for term in one.terms}
    truth = {(i, term) for i, terms in enumerate(system.true_terms) for term in terms}
    candidates = len(model.get_feature_names()) * len(states)
    return {"false": len(found - truth), "missed": len(truth - found), "candidates": candidates}


def run(draws: int, first: int, asked: list[float]) -> None:
    """Fit all cells, and keep the records."""
    records = json.loads(RECORDS.read_text()) if RECORDS.exists() else []
    known = {tuple(one[key] for key in ("system", "noise", "library", "asked", "seed")) for one in records}
    for number in asked:
        for name in SYSTEMS:
            for noise in NOISES:
                for library in LIBRARIES:
                    for seed in range(first, first + draws):
                        if (name, noise, library, number, seed) in known:
                            continue
                        found = one_draw(name, noise, library, number, seed)
                        cell = {"system": name, "noise": noise, "library": library, "asked": number, "seed": seed}
                        records.append(cell | found)
                    RECORDS.write_text(json.dumps(records, indent=0))


def page() -> None:
    """Write the table."""
    records = json.loads(RECORDS.read_text())
    cells: dict[tuple[object, ...], list[dict[str, float]]] = {}
    for one in records:
        cells.setdefault((one["asked"], one["system"], one["noise"], one["library"]), []).append(one)
    lines = [
        "# False terms of equations, asked for and found",
        "",
        "`Discovery(false_terms=…)` promises at most so many false terms in all equations together, on average.",
        "Made by `python -m benchmarks.false_terms`; ± is one standard error. Draws in which a true term is missed",
        "are left out, because another term then takes its place.",
        "",
        "| asked | system | noise | library | candidates | draws | missed in | found | found / asked |",
        "| ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (asked, system, noise, library), rows in cells.items():
        whole = np.array([one["false"] for one in rows if not one["missed"]], dtype=float)
        missed = len(rows) - len(whole)
        start = f"| {asked:g} | {system} | {noise:g} | {library} | {rows[0]['candidates']} | {len(rows)} | {missed} |"
        if len(whole) < 2:
            lines.append(f"{start} – | – |")
            continue
        mean, error = whole.mean(), whole.std(ddof=1) / np.sqrt(len(whole))
        lines.append(f"{start} {mean:.2f} ± {error:.2f} | {mean / float(asked):.2f} |")  # type: ignore[arg-type]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("run", "page"), default="run")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--asked", type=float, nargs="*", default=[1.0])
    asked = parser.parse_args()
    if asked.what == "run":
        run(asked.draws, asked.first, asked.asked)
    page()


if __name__ == "__main__":
    main()
