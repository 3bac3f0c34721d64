"""All cases by all methods, one after another, each in a process of its own on one thread.

``python -m benchmarks.run [--cases a,b] [--methods x,y] [--repeat 3] [--timeout 30] [--resume]`` prints a table per
case and saves the figures after every measurement (``--out``, by default what docs/speed.md shows); ``--resume`` goes
on there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, sized
from benchmarks.methods import FLOORS, METHODS, OPERATOR
from benchmarks.process import Record, machine, measured, save_json, summary
from benchmarks.tables import report

# Cases with far more rows than columns: nothing that compresses them beats one Gram product.
FLOOR_CASES = ("tall", "gauss_20000x1000", "gauss_524288x25")


def plan(case_names: Sequence[str], method_names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs (case, method) to measure, with the floors of the tall cases."""
    pairs = []
    for case in case_names:
        size = sized(case)
        has_operator = size is not None and size[0] == "dct"
        pairs += [(case, method) for method in method_names if method != OPERATOR or has_operator]
        pairs += [(case, floor) for floor in FLOORS if case in FLOOR_CASES]
    return pairs


def earlier(path: Path, settings: dict[str, Any]) -> list[Record]:
    """Return the records of an interrupted run; its settings must be the same, or ratios would not mean anything."""
    if not path.exists():
        return []
    saved = json.loads(path.read_text())
    if saved["settings"] != settings:
        raise SystemExit(f"{path} was made with other settings or versions: run without --resume to start again.")
    return [record for record in saved["records"] if "cpu" in record or "timeout" in record]


def run(pairs: Sequence[tuple[str, str]], records: list[Record], settings: dict[str, Any], path: Path) -> None:
    """Measure what is not yet in `records`, saving after every measurement."""
    done = {(record["case"], record["method"]) for record in records}
    waiting = [pair for pair in pairs if pair not in done]
    start = time.perf_counter()
    for count, (case, method) in enumerate(waiting, start=1):
        record = measured(case, method, repeat=settings["repeat"], seed=settings["seed"], limit=settings["timeout"])
        records.append(record)
        save_json(path, {"settings": settings, "records": records})
        left = (time.perf_counter() - start) / count * (len(waiting) - count)
        print(f"[{count}/{len(waiting)}] {summary(record)}  (about {left / 60:.0f} min left)", flush=True)


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Return the names in a comma-separated list; all that are known where there is none."""
    names = list(known) if text is None else [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in known and (what == "method" or sized(name) is None)]
    if unknown:
        raise SystemExit(f"No {what} is called {', '.join(unknown)}: choose from {', '.join(known)}.")
    return names


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", help=f"default: {','.join(CASES)}; also gauss_MxD and dct_MxD")
    parser.add_argument("--methods", help=f"default: {','.join(METHODS)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=30.0, help="CPU seconds one fit may take")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.json"))
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run stopped")
    options = parser.parse_args()
    case_names = chosen(options.cases, list(CASES), "case")
    method_names = chosen(options.methods, list(METHODS), "method")
    settings = {key: getattr(options, key) for key in ("repeat", "seed", "timeout")} | {"machine": machine()}
    records = earlier(options.out, settings) if options.resume else []
    run(plan(case_names, method_names), records, settings, options.out)
    print("\n" + report(settings["machine"], records))


if __name__ == "__main__":
    main()
