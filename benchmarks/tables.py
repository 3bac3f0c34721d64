"""Markdown tables of measurements. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.methods import FLOORS, REFERENCE
from benchmarks.process import Record

HEADER = ("method", "CPU time", f"times faster than {REFERENCE}", "extra MB", "cost", "kept", "added", "missed", "l2")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column to the left and the others to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def seconds(value: float) -> str:
    """Return a time with a unit that suits it."""
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def machine_line(machine: dict[str, str]) -> str:
    """Return processor, BLAS and versions in one line."""
    versions = ", ".join(f"{name} {value}" for name, value in machine.items() if name not in ("cpu", "blas"))
    return f"{machine['cpu']}; {machine['blas']}; {versions}."


def case_table(case: str, records: Sequence[Record]) -> str:
    """Return heading and table of one case; floors below the methods."""
    reference = next((r for r in records if r["method"] == REFERENCE), {})
    shape = next((f" ({r['rows']} × {r['columns']})" for r in records if "rows" in r), "")
    rows = [_row(record, reference) for record in sorted(records, key=lambda r: r["method"] in FLOORS)]
    return f"### {case}{shape}\n\n{markdown(HEADER, rows)}"


def overview(records: Sequence[Record]) -> str:
    """Return one table of all cases: the CPU time of every method."""
    cases = list(dict.fromkeys(record["case"] for record in records))
    methods = [name for name in dict.fromkeys(record["method"] for record in records) if name not in FLOORS]
    rows = []
    for case in cases:
        found = {record["method"]: record for record in records if record["case"] == case}
        shape = next((f"{r['rows']} × {r['columns']}" for r in found.values() if "rows" in r), "")
        rows.append([f"{case.split('_')[0]} {shape}", *(_time(found.get(method, {})) for method in methods)])
    return markdown(["case", *methods], rows)


def case_tables(records: Sequence[Record]) -> str:
    """Return the tables of all cases."""
    names = dict.fromkeys(record["case"] for record in records)
    return "\n\n".join(case_table(name, [r for r in records if r["case"] == name]) for name in names)


def report(machine: dict[str, str], records: Sequence[Record]) -> str:
    """Return the whole report."""
    return "\n\n".join([machine_line(machine), overview(records), case_tables(records)]) + "\n"


def _time(record: Record) -> str:
    if "timeout" in record:
        return f"> {record['timeout']:g} s"
    return seconds(record["cpu"]) if "cpu" in record else "–"


def _row(record: Record, reference: Record) -> list[str]:
    name = f"floor: one {record['method']}" if record["method"] in FLOORS else record["method"]
    if "timeout" in record:
        return [name, f"> {record['timeout']:g} s", *["–"] * 7]
    if "cpu" not in record:
        return [name, "not installed" if "skipped" in record else "failed", *["–"] * 7]
    formats: dict[str, Callable[[float], str]] = {
        "extra_mb": "{:.1f}".format,
        "cost": "{:.2f}".format,
        "kept": str,
        "added": str,
        "missed": str,
        "l2": "{:.3g}".format,
    }
    values = [shown(record[key]) if record.get(key) is not None else "–" for key, shown in formats.items()]
    return [name, seconds(record["cpu"]), _ratio(record, reference), *values]


def _ratio(record: Record, reference: Record) -> str:
    """Return how many times faster than the reference; at least so many where the reference ran out of time."""
    if "timeout" in reference:
        return f"> {reference['timeout'] / record['cpu']:.3g}"
    return f"{reference['cpu'] / record['cpu']:.3g}" if "cpu" in reference else "–"
