"""What an experiment leaves behind, made from its records alone; may be repeated at any time."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ardea.core.loop import loop_in_use
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, from_csv, to_csv, write_whole
from ardea.versions import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
DPI = 110


def write_outputs(
    experiment: Experiment, settings: Settings, folder: Path, records: Records, *, seconds: float, command: str
) -> None:
    """Write environment.json, table.md, the figure (with Matplotlib) and records.csv.

    The records come last: where they are, all the rest is.
    """
    text = to_csv(records)
    environment = _environment(experiment, settings, seconds, command)
    write_whole(folder / "environment.json", json.dumps(environment, indent=2) + "\n")
    _draw(experiment, settings, folder, from_csv(text))
    write_whole(folder / "records.csv", text)


def draw_again(experiment: Experiment, settings: Settings, folder: Path) -> None:
    """Make the table and the figure from records.csv."""
    _draw(experiment, settings, folder, from_csv((folder / "records.csv").read_text(encoding="utf-8")))


def _draw(experiment: Experiment, settings: Settings, folder: Path, records: Records) -> None:
    heading = f"# {experiment.name} ({settings.variant}, {settings.scale} scale)\n\n{experiment.label}: "
    write_whole(folder / "table.md", f"{heading}{experiment.what}\n\n{experiment.table(records)}\n")
    try:
        images = figure_files(experiment, records, f"{experiment.label} ({settings.variant})")
    except ImportError:
        print("No figure: it needs matplotlib (pip install 'ardea[plots]').", file=sys.stderr)
        return
    for name, content in images.items():
        write_whole(folder / name, content)


def figure_files(experiment: Experiment, records: Records, title: str) -> dict[str, bytes]:
    """Return the figure as PNG and SVG, the same bytes for the same records."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from PIL import Image  # comes with matplotlib

    with rc_context({"svg.hashsalt": experiment.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=experiment.figure_size, layout="constrained")
        figure.suptitle(title, fontsize="small", color="0.4")
        experiment.draw(records, figure)
        vector, pixels, grey = io.BytesIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None})
        figure.savefig(pixels, format="png", dpi=DPI)
    Image.open(pixels).convert("L").save(grey, format="png", optimize=True)  # nothing is drawn in colour
    return {"figure.svg": vector.getvalue(), "figure.png": grey.getvalue()}


def _environment(experiment: Experiment, settings: Settings, seconds: float, command: str) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "label": experiment.label,
        "variant": settings.variant,
        "scale": settings.scale,
        "seed": settings.seed,
        "sizes": dict(settings.sizes),
        "fingerprint": settings.fingerprint(experiment.name),
        "command": command,
        "core_seconds": round(seconds, 1),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "ardea": __version__,
        "loop": loop_in_use(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
