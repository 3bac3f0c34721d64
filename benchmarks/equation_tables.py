"""Markdown tables of the records of `benchmarks.equations`. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.equation_cases import CASES
from benchmarks.process import Record, machine
from benchmarks.tables import machine_line, markdown, seconds

COLUMNS = (
    *("exact", "failed", "false", "missed", "truth named", "coverage", "exact: coverage", "t ≥ 5: exact"),
    *("median time", "longest"),
)
# A term with this t at the Cramér–Rao bound should be found (a convention).
CLEAR = 5.0
# Seeds from here on are not tuned on.
FIRST_FRESH = 1000


def tables(records: Sequence[Record], *, wrong: bool = False) -> str:
    """Return the tables of all cases and forms."""
    parts = [
        machine_line(machine()) + f" Code: {', '.join(sorted({record['code'] for record in records}))}.",
        EXPLANATION,
    ]
    for case in CASES:
        of_case = [record for record in records if record["case"] == case]
        for form, tuning in dict.fromkeys((record["form"], record["seed"] < FIRST_FRESH) for record in of_case):
            chosen = [r for r in of_case if (r["form"], r["seed"] < FIRST_FRESH) == (form, tuning)]
            parts += [
                f"## {case}, form {form}, {'tuning' if tuning else 'fresh'} seeds",
                *_section(case, chosen, wrong),
            ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(case: str, records: Sequence[Record], wrong: bool) -> list[str]:
    parts = [case_table(case, records)]
    if case == "efficiency":
        parts.append(efficiency_table(records))
    if case == "constants":
        parts.append(constants_table(records))
    if case == "hare_lynx":
        parts.append("\n".join(f"- {_found(record)}" for record in records))
    if wrong:
        parts.append("\n".join(_what_went_wrong(record) for record in records if not record["exact"]))
    return parts


EXPLANATION = (
    "Exact: all equations have exactly the true terms. False, missed: terms in all trials together. Truth named: "
    "of the models that are wrong, how many name the truth among the rivals. Coverage: of the right terms, the "
    "share whose 95 % interval holds the truth, in all models and in exact ones. t ≥ 5: trials in which the "
    "Cramér–Rao bound lets every term be seen clearly, and how many of them are exact. Times are CPU times of one "
    "thread."
)


def case_table(case: str, records: Sequence[Record]) -> str:
    """Return the table of one case."""
    groups = CASES[case].groups
    rows = {}
    for record in sorted(records, key=lambda record: [record[group] for group in groups]):
        rows.setdefault(tuple(record[group] for group in groups), []).append(record)
    return markdown([*groups, *COLUMNS], [[*map(_shown, key), *_summary(group)] for key, group in rows.items()])


def _shown(value: Any) -> str:
    return f"{100 * value:g} %" if isinstance(value, float) else value or "nothing told"


def _summary(records: Sequence[Record]) -> list[str]:
    exact = [record for record in records if record["exact"]]
    wrong = [record for record in records if not record["exact"]]
    clear = [record for record in records if record.get("t_bound", 0.0) >= CLEAR]
    times = [record["seconds"] for record in records]
    return [
        f"{len(exact)} of {len(records)}",
        str(sum("failed" in record for record in records)),
        str(sum(record.get("false", 0) for record in records)),
        str(sum(record.get("missed", 0) for record in records)),
        f"{sum(record.get('truth_named', False) for record in wrong)} of {len(wrong)}",
        _coverage(records),
        _coverage(exact),
        f"{sum(record['exact'] for record in clear)} of {len(clear)}" if clear else "–",
        seconds(float(np.median(times))),
        seconds(max(times)),
    ]


def _coverage(records: Sequence[Record]) -> str:
    right = sum(record.get("right", 0) for record in records)
    return f"{100 * sum(record.get('held', 0) for record in records) / right:.1f} % of {right}" if right else "–"


def constants_table(records: Sequence[Record]) -> str:
    """Return of exact models how many constants inside terms are in their intervals, and in how many models all are."""
    rows: dict[tuple[str, float], list[list[bool]]] = {}
    for record in records:
        own = rows.setdefault((record["name"], record["noise"]), [])
        own += [record["constants"]] if record["exact"] else []
    lines = [
        [name, _shown(noise), f"{sum(map(sum, own))} of {sum(map(len, own))}", f"{sum(map(all, own))} of {len(own)}"]
        for (name, noise), own in rows.items()
    ]
    return markdown(["name", "noise", "constants inside their 95 % intervals", "exact models with all inside"], lines)


def efficiency_table(records: Sequence[Record]) -> str:
    """Return bound over variance reported and bound over squared error, of models that are exact, by system and noise.

    The first is the median over terms and draws; the second has the mean squared error of all terms and draws.
    """
    noises = sorted({record["noise"] for record in records})
    rows = []
    for name in dict.fromkeys(record["name"] for record in records):
        ratios = [_ratios(records, name, noise) for noise in noises]
        rows.append([name, *(f"{np.median(r):.2f}, {1 / np.mean(e):.2f}" if r else "–" for r, e in ratios)])
    rows.append(["all systems: median, worst system, worst term", *(_extremes(records, noise) for noise in noises)])
    return markdown(["system: reported, actual", *map(_shown, noises)], rows)


def _ratios(records: Sequence[Record], name: str, noise: float) -> tuple[list[float], list[float]]:
    """Return bound/variance and squared error/bound of all terms and draws."""
    chosen = [r for r in records if (r["name"], r["noise"]) == (name, noise) and "variance_over_bound" in r]
    variances = chain.from_iterable(record["variance_over_bound"] for record in chosen)
    return [1 / v for v in variances if v > 0], list(chain.from_iterable(r["error_over_bound"] for r in chosen))


def _extremes(records: Sequence[Record], noise: float) -> str:
    """Return the efficiency as reported: median of the systems' medians, the least of them, the least of any term.

    Of a term it is the median over the draws in which the model is exact.
    """
    systems, terms = [], []
    for name in dict.fromkeys(record["name"] for record in records):
        chosen = [r for r in records if (r["name"], r["noise"]) == (name, noise) and "variance_over_bound" in r]
        if chosen:
            of_terms = np.median([1 / np.array(record["variance_over_bound"]) for record in chosen], axis=0)
            terms.append(float(np.min(of_terms)))
            systems.append(float(np.median(of_terms)))
    return f"{np.median(systems):.2f}, {min(systems):.2f}, {min(terms):.2f}" if systems else "–"


def _found(record: Record) -> str:
    """Return a record's equations with their standard errors."""
    if "failed" in record:
        return f"{record['name']}, {record['variant']}: {record['failed']}"
    sides = [
        f"{left} = " + (" + ".join(f"({mean:.4g} ± {std:.2g}) {term}" for term, (mean, std) in terms.items()) or "0")
        for left, terms in record["found"].items()
    ]
    return f"{record['name']}, {_shown(record['variant'])}: {'; '.join(sides)}"


def _what_went_wrong(record: Record) -> str:
    """Return one line on a trial that is not exact."""
    what = record.get("failed") or f"{record['false']} false, {record['missed']} missed in {', '.join(record['wrong'])}"
    named = ", truth named" if record.get("truth_named") else ""
    least = f", t at the bound {record['t_bound']:.2g}" if "t_bound" in record else ""
    where = " ".join(filter(None, [record["name"], record["variant"], f"{100 * record['noise']:g} %"]))
    return f"- {where}, seed {record['seed']}: {what}{named}{least}, {seconds(record['seconds'])}"


def compared(before: Sequence[Record], after: Sequence[Record]) -> str:
    """Return which trials in both files were gained and lost; the form does not count."""

    def by_trial(records: Sequence[Record]) -> dict[tuple[Any, ...], Record]:
        return {tuple(r[part] for part in ("case", "name", "variant", "noise", "seed")): r for r in records}

    first, second = by_trial(before), by_trial(after)
    lines = []
    for trial in first.keys() & second.keys():
        if first[trial]["exact"] != second[trial]["exact"]:
            sign, one = ("gained", first[trial]) if second[trial]["exact"] else ("lost", second[trial])
            lines.append(f"{sign}: {trial[0]}, {_what_went_wrong(one).removeprefix('- ')}")
    both = [(first[trial], second[trial]) for trial in first.keys() & second.keys()]
    exact = [sum(pair[i]["exact"] for pair in both) for i in range(2)]
    spent = [sum(pair[i]["seconds"] for pair in both) for i in range(2)]
    total = f"{len(both)} trials in both: {exact[0]} and {exact[1]} exact, {spent[0]:.4g} and {spent[1]:.4g} s"
    return "\n".join([*sorted(lines), total])
