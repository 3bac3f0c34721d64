"""What `false_terms` and the intervals of SparseARD promise, kept or not, on tables of every shape.

``python -m benchmarks.promises false_terms [--trials 400] [--seed 1000]`` counts false terms for m rows, d = m·ratio
columns, `false_terms` of .1 to 3 and columns of correlation ρ, without terms and with strong ones; and, where ρ = 0,
with errors of Student's t with three degrees of freedom and errors of unequal size. ``… coverage`` counts how often
95 % intervals of kept terms hold the truth, by its t-statistic. ``… stand_ins`` counts, for columns that come in pairs,
how often the other of a pair is kept in place of a true term, and named. ``… missed`` counts false terms of few rows
with strong terms apart by whether a true one was missed. ``… few_rows`` counts on tables of few rows how often new
observations lie within 1.96 deviations of their prediction, and how often intervals hold. Tables of more than 100,000
numbers have fewer trials, and other errors than normal ones a quarter of them. What is done is kept: a run that was
interrupted goes on.
``python -m benchmarks.promises page`` writes docs/promises_table.md from what is done.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea import SparseARD
from benchmarks.process import ROOT, Record
from benchmarks.tables import markdown

RESULTS = ROOT / "benchmarks" / "results"
ROWS, RATIOS = (15, 20, 50, 100, 400, 1000), (0.2, 0.5, 0.9, 1.5, 3.0, 20.0)
CORRELATIONS, ASKED = (0.0, 0.5, 0.9), (0.1, 0.3, 1.0, 3.0)
SIGNALS, ERRORS = ("none", "strong"), ("normal", "t3", "unequal")
# Numbers in a table up to which all trials are made; of larger ones fewer, in inverse proportion, and at least so many.
FULL, FEWEST = 100_000, 20
# What errors that are not normal are allowed, in times of what was asked for: no method that learns σ² from squares is
# exact there (a convention).
MOST_OTHERWISE = 1.6
# Strong terms: so many, of ±U[5, 10] in units of the noise, as far as columns and rows allow.
STRONG = 5
# t-statistics of the true coefficients of the coverage table, and its rows and columns.
T_VALUES, COVERAGE_ROWS, COVERAGE_COLUMNS = (1, 2, 3, 4, 6, 10), (50, 200, 1000), (10, 40, 200)
KINDS = ("posterior", "refit", "selective")
# Rows and pairs of columns, true terms, the correlation within a pair and the t-statistic of a true term alone.
PAIRED, TRUE_PAIRED = (100, 10), 3
PAIR_CORRELATIONS, PAIR_T = (0.8, 0.9, 0.95, 0.98, 0.99, 0.999), (0, 4, 10)
# Shapes, correlations and numbers asked for of few rows, where strong terms can be missed.
MISSED = (
    (15, 300, 0.9, 0.1),
    (15, 300, 0.5, 0.1),
    (20, 400, 0.9, 0.3),
    (15, 45, 0.9, 0.1),
    (15, 45, 0.0, 0.3),
    (20, 30, 0.0, 0.1),
)
# Rows and columns where few rows are left for the noise, three true terms and their t, and new rows to predict.
FEW_ROWS, FEW_TERMS, FEW_T, NEW_ROWS = ((15, 5), (15, 30), (30, 10), (100, 20), (50, 500)), 3, (4, 10), 50
Array = NDArray[np.float64]
TRIALS = 400
PAGE = """\
# False terms and intervals: all cells

Made by `python -m benchmarks.promises` (`false_terms`, `missed`, `coverage`, `few_rows`, `stand_ins`, `page`), seeds
from 1000, which nothing was tuned on. `SparseARD` with σ² learned.

## False terms

Mean ± standard error of the number of false terms kept, for m rows and d columns, every two of correlation ρ, without
true terms and with up to five strong ones. Promised are `false_terms` times the share of columns that explain
nothing, at most 0.317 of these: no method keeps a column below |t| = 1. Bold: more than two standard errors above that
(errors that are not normal: above 1.6 times that).{left}

Most cells that are bold have 15 or 20 rows, strong terms and many columns. What is kept there stands in for a strong
term that so few rows do not show: in fits that keep all true terms, false ones are about as many as promised. The
same draws, apart (`python -m benchmarks.promises missed`):

{missed}

{false_terms}

## Intervals

How often 95 % intervals hold the truth, of terms of true size t (in standard errors) that were kept.

{coverage}

## Few rows

Three true terms of size t. *Predictions* says how often new observations lie within 1.96 standard deviations of
`predict(X, return_std=True)`; the other columns how often 95 % intervals hold the truth, of terms that were kept
(`python -m benchmarks.promises few_rows`).

{few_rows}

## Stand-ins

Columns that come in pairs of correlation ρ: {rows} rows, {pairs} pairs, {trials} draws; three true terms in three
pairs, each of size t if the other of its pair were not there, or none. Mean numbers of terms kept that are not true, by
kind. A *stand-in* is the other of the pair of a true term that was not kept: it explains what the true one would, so
that most users would not call it false, but it is the wrong name for it. *Beside* are those kept together with the true
one. *False* are all others: of these `false_terms=0.3` promises {promised} with three terms, and 0.30 without. The last
column says which share of the stand-ins the fit named beside the true column
([AlternativesWarning](warnings/alternatives.md), from a correlation of 0.95 on).

{stand_ins}
"""


# False terms ----------------------------------------------------------------------------------------------------------


def columns_of(rng: np.random.Generator, m: int, d: int, correlation: float) -> Array:
    """Return columns of unit variance, every two with the same correlation."""
    X = rng.normal(size=(m, d))
    return np.sqrt(correlation) * rng.normal(size=(m, 1)) + np.sqrt(1 - correlation) * X if correlation else X


def errors_of(rng: np.random.Generator, m: int, kind: str) -> Array:
    """Return independent errors: normal, of heavy tails, or normal with deviations of exp N(0, .7²)."""
    if kind == "t3":
        return rng.standard_t(3, size=m)
    return rng.normal(size=m) * (np.exp(0.7 * rng.normal(size=m)) if kind == "unequal" else 1.0)


def false_terms_of(cell: Record, trial: int, seed: int) -> list[int]:
    """Return the number of false terms for every number asked for, of one draw."""
    X, y = drawn(cell, trial, seed)
    return [int(SparseARD(false_terms=asked).fit(X, y).support_[cell["n_true"] :].sum()) for asked in ASKED]


def drawn(cell: Record, trial: int, seed: int) -> tuple[Array, Array]:
    """Return the table of one draw."""
    m, d, k = cell["m"], cell["d"], cell["n_true"]
    rng = np.random.default_rng([seed, m, d, int(100 * cell["correlation"]), ERRORS.index(cell["errors"]), trial])
    X = columns_of(rng, m, d, cell["correlation"])
    coefficients = np.zeros(d)
    coefficients[:k] = rng.choice([-1, 1], k) * rng.uniform(5, 10, k)
    return X, X @ coefficients + errors_of(rng, m, cell["errors"])


def expected(cell: Record, asked: float) -> float:
    """Return how many false terms are promised: no method keeps a column below t = 1, which chance passes in .317."""
    wrong = cell["d"] - cell["n_true"]
    return min(asked * wrong / cell["d"], 2 * float(ndtr(-1)) * wrong)


def false_terms_cells(trials: int) -> Iterator[Record]:
    """Yield all cells, small tables first."""
    shapes = sorted((m, round(m * ratio), ratio) for m in ROWS for ratio in RATIOS)
    for m, d, ratio in sorted(shapes, key=lambda one: one[0] * one[1]):
        for correlation in CORRELATIONS:
            for signal in SIGNALS:
                for errors in ERRORS if correlation == 0 else ERRORS[:1]:
                    wished = trials if errors == "normal" else trials // 4
                    yield {
                        "m": m,
                        "d": d,
                        "ratio": ratio,
                        "correlation": correlation,
                        "signal": signal,
                        "errors": errors,
                        "n_true": n_strong(m, d) if signal == "strong" else 0,
                        "trials": max(FEWEST, min(wished, wished * FULL // (m * d))),
                    }


def n_strong(m: int, d: int) -> int:
    """Return the number of strong terms."""
    return min(STRONG, d // 2, m // 5)


def counted(cell: Record, seed: int) -> Record:
    """Return a cell with the mean number of false terms and its standard error, for every number asked for."""
    counts = np.array([false_terms_of(cell, trial, seed) for trial in range(cell["trials"])])
    error = counts.std(axis=0, ddof=1) / np.sqrt(len(counts))
    return {**cell, "found": counts.mean(axis=0).round(4).tolist(), "error": error.round(4).tolist()}


def false_terms_page(records: list[Record]) -> str:
    """Return what holds in one line for each kind of data, and all cells."""
    parts = []
    for errors, title in zip(
        ERRORS, ("Normal errors", "Errors of Student's t, 3 degrees", "Unequal errors"), strict=True
    ):
        own = [one for one in records if one["errors"] == errors]
        if own:
            parts.append(f"### {title}\n\n{_held(own)}\n\n{_cells(own)}")
    return "\n\n".join(parts)


def _ratios(records: list[Record]) -> Iterator[tuple[float, float, float]]:
    """Yield found, promised and the standard error of every cell; of no false term that of one."""
    for one in records:
        for asked, found, error in zip(ASKED, one["found"], one["error"], strict=True):
            yield found, expected(one, asked), max(error, 1 / one["trials"])


def _held(records: list[Record]) -> str:
    cells, most = list(_ratios(records)), 1.0 if records[0]["errors"] == "normal" else MOST_OTHERWISE
    above = sum(found > most * promised + 2 * error for found, promised, error in cells)
    total = sum(found for found, _, _ in cells) / sum(promised for _, promised, _ in cells)
    return (
        f"Of {len(cells)} cells {above} lie more than two standard errors above {f'{most:g} times ' * (most > 1)}what "
        f"was asked for; all together {total:.2f} times as many false terms as asked for were found."
    )


def _cells(records: list[Record]) -> str:
    rows = []
    for one in records:
        cells = [
            f"{'**' * bad}{found:.2f} ± {error:.2f}{'**' * bad}"
            for (found, promised, error) in _ratios([one])
            for bad in [found > (1 if one["errors"] == "normal" else MOST_OTHERWISE) * promised + 2 * error]
        ]
        shape = f"{one['m']} × {one['d']}"
        rows.append([shape, f"{one['correlation']:g}", one["signal"], str(one["trials"]), *cells])
    return markdown(["rows × columns", "ρ", "terms", "fits", *(f"{asked:g} asked" for asked in ASKED)], rows)


# False terms and missed ones ------------------------------------------------------------------------------------------


def missed_cells(trials: int) -> Iterator[Record]:
    """Yield tables of few rows with strong terms."""
    for m, d, correlation, asked in MISSED:
        cell = {"m": m, "d": d, "correlation": correlation, "errors": "normal", "n_true": n_strong(m, d)}
        yield {**cell, "asked": asked, "trials": trials}


def apart(cell: Record, seed: int) -> Record:
    """Return how many fits kept all true terms, the mean number of false terms of these and of others, and warnings."""
    k, whole, false, told = cell["n_true"], [], [], []
    for trial in range(cell["trials"]):
        model = SparseARD(false_terms=cell["asked"]).fit(*drawn(cell, trial, seed))
        whole.append(bool(model.support_[:k].all()))
        false.append(int(model.support_[k:].sum()))
        told.append(bool(model.warnings_))
    found, all_kept = np.array(false), np.array(whole)
    means = {
        "kept": found[all_kept].mean(),
        "missed": found[~all_kept].mean(),
        "told": np.array(told)[found > 0].mean(),
    }
    return {**cell, "all_kept": int(all_kept.sum()), **{name: round(float(mean), 4) for name, mean in means.items()}}


def missed_page(records: list[Record]) -> str:
    """Return the table of false terms beside all true terms and in the place of missed ones."""
    rows = [
        [
            f"{one['m']} × {one['d']}",
            f"{one['correlation']:g}",
            f"{one['asked'] * (1 - one['n_true'] / one['d']):.2f}",
            f"{one['kept']:.2f} in {one['all_kept']} fits",
            f"{one['missed']:.2f} in {one['trials'] - one['all_kept']} fits",
            f"{one['told']:.0%}",
        ]
        for one in records
    ]
    heads = [
        "rows × columns",
        "ρ",
        "promised",
        "all true terms kept",
        "some missed",
        "warned, of fits with false terms",
    ]
    return markdown(heads, rows)


# Intervals ------------------------------------------------------------------------------------------------------------


def coverage_cells(trials: int) -> Iterator[Record]:
    """Yield all shapes of the coverage table."""
    for m in COVERAGE_ROWS:
        for d in COVERAGE_COLUMNS:
            yield {"m": m, "d": d, "trials": max(FEWEST, min(trials, trials * FULL // (m * d)))}


def covered(cell: Record, seed: int) -> Record:
    """Return for every t how many of the true terms were kept, and how many intervals of those hold the truth."""
    kept, held = np.zeros(len(T_VALUES)), {kind: np.zeros(len(T_VALUES)) for kind in KINDS}
    for trial in range(cell["trials"]):
        rng = np.random.default_rng([seed, cell["m"], cell["d"], trial])
        X = rng.normal(size=(cell["m"], cell["d"]))
        truth = np.zeros(cell["d"])
        truth[: len(T_VALUES)] = rng.choice([-1, 1], len(T_VALUES)) * T_VALUES / np.sqrt(cell["m"])
        model = SparseARD().fit(X, X @ truth + rng.normal(size=cell["m"]))
        inside = model.support_[: len(T_VALUES)]
        kept += inside
        for kind, count in held.items():
            low, high = model.credible_interval(kind=kind)[: len(T_VALUES)].T
            count += inside & (low <= truth[: len(T_VALUES)]) & (truth[: len(T_VALUES)] <= high)
    return {**cell, "kept": kept.tolist(), **{kind: count.tolist() for kind, count in held.items()}}


def coverage_page(records: list[Record]) -> str:
    """Return the share kept and the coverage of 95 % intervals of what is kept, by the true t."""
    rows = []
    for one in records:
        for kind in KINDS:
            cells = [
                f"{100 * held / kept:.0f} % of {kept:.0f}" if kept else "–"
                for held, kept in zip(one[kind], one["kept"], strict=True)
            ]
            shape = f"{one['m']} × {one['d']} ({one['trials']} fits)" if kind == "posterior" else ""
            rows.append([shape, kind, *cells])
    return markdown(["rows × columns", "interval", *(f"t = {t}" for t in T_VALUES)], rows)


# Few rows -------------------------------------------------------------------------------------------------------------


def few_rows_cells(trials: int) -> Iterator[Record]:
    """Yield tables of few rows, and sizes of their true terms."""
    for m, d in FEW_ROWS:
        for t in FEW_T:
            yield {"m": m, "d": d, "t": t, "trials": trials}


def held_with_few_rows(cell: Record, seed: int) -> Record:
    """Return the shares of new observations and of true coefficients within what was said of them."""
    predicted, kept, held = 0, 0, dict.fromkeys(KINDS, 0)
    for trial in range(cell["trials"]):
        rng = np.random.default_rng([seed, cell["m"], cell["d"], cell["t"], trial])
        X, new = (rng.normal(size=(rows, cell["d"])) for rows in (cell["m"], NEW_ROWS))
        truth = rng.choice([-1.0, 1.0], FEW_TERMS) * cell["t"] / np.sqrt(cell["m"])
        model = SparseARD().fit(X, X[:, :FEW_TERMS] @ truth + rng.normal(size=cell["m"]))
        mean, std = model.predict(new, return_std=True)
        predicted += int((np.abs(new[:, :FEW_TERMS] @ truth + rng.normal(size=NEW_ROWS) - mean) < 1.96 * std).sum())
        inside = model.support_[:FEW_TERMS]
        kept += int(inside.sum())
        for kind in KINDS:
            low, high = model.credible_interval(kind=kind)[:FEW_TERMS].T
            held[kind] += int((inside & (low <= truth) & (truth <= high)).sum())
    return {**cell, "predicted": predicted / (NEW_ROWS * cell["trials"]), "kept": kept, **held}


def few_rows_page(records: list[Record]) -> str:
    """Return the table of few rows."""
    rows = [
        [
            f"{one['m']} × {one['d']}",
            str(one["t"]),
            f"{100 * one['predicted']:.1f} %",
            f"{100 * one['kept'] / (FEW_TERMS * one['trials']):.0f} %",
            *(f"{100 * one[kind] / one['kept']:.0f} %" for kind in KINDS),
        ]
        for one in records
    ]
    return markdown(["rows × columns", "true t", "predictions", "terms kept", *KINDS], rows)


# Stand-ins ------------------------------------------------------------------------------------------------------------


def stand_in_cells(trials: int) -> Iterator[Record]:
    """Yield all correlations within pairs and sizes of true terms."""
    for correlation in PAIR_CORRELATIONS:
        for t in PAIR_T:
            yield {"correlation": correlation, "t": t, "trials": trials}


def stood_in(cell: Record, seed: int) -> Record:
    """Return mean numbers of terms that are stand-ins, beside a true one, and false, and of stand-ins named."""
    (m, pairs), rho, k = PAIRED, cell["correlation"], TRUE_PAIRED if cell["t"] else 0
    counts = np.zeros(4)
    for trial in range(cell["trials"]):
        rng = np.random.default_rng([seed, int(1000 * rho), trial])
        first, other = rng.normal(size=(2, m, pairs))
        X = np.hstack([first, rho * first + np.sqrt(1 - rho**2) * other])
        y = X[:, :k] @ rng.choice([-1.0, 1.0], k) * cell["t"] / np.sqrt(m) + rng.normal(size=m)
        model = SparseARD().fit(X, y)
        true, twin = model.support_[:k], model.support_[pairs : pairs + k]
        said = " ".join(model.warnings_)
        named = [f"x{pairs + j} and x{j} " in said for j in range(k) if twin[j] and not true[j]]
        false = model.support_[k:].sum() - twin.sum()
        counts += [(twin & ~true).sum(), (twin & true).sum(), false, sum(named)]
    names = ("stand_ins", "beside", "false", "named")
    return {**cell, **dict(zip(names, (counts / cell["trials"]).round(4).tolist(), strict=True))}


def stand_in_page(records: list[Record]) -> str:
    """Return the table of stand-ins."""
    rows = []
    for one in records:
        cells = [
            f"{one[name]:.2f}" if one["t"] or name == "false" else "–" for name in ("stand_ins", "beside", "false")
        ]
        named = f"{one['named'] / one['stand_ins']:.0%}" if one["stand_ins"] else "–"
        rows.append([f"{one['correlation']:g}", f"{one['t'] or 'none'}", *cells, named])
    return markdown(["ρ", "true t", "stand-ins", "beside", "false", "stand-ins named"], rows)


# All -----------------------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[Any, Any, Any]] = {
    "false_terms": (false_terms_cells, counted, false_terms_page),
    "coverage": (coverage_cells, covered, coverage_page),
    "few_rows": (few_rows_cells, held_with_few_rows, few_rows_page),
    "stand_ins": (stand_in_cells, stood_in, stand_in_page),
    "missed": (missed_cells, apart, missed_page),
}


def saved(case: str) -> list[Record]:
    """Return the cells that were done."""
    path = RESULTS / f"promises_{case}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def run(case: str, trials: int, seed: int, path: Path) -> None:
    """Do the cells that are not done, and keep each."""
    cells, done, _ = CASES[case]
    known = [{name: one[name] for name in one if name in cell} for one in saved(case) for cell in [next(cells(trials))]]
    left = [cell for cell in cells(trials) if cell not in known]
    with threadpool_limits(1), warnings.catch_warnings(), path.open("a", encoding="utf-8") as file:
        warnings.simplefilter("ignore")
        for cell in tqdm(left, unit="cells"):
            file.write(json.dumps(done(cell, seed)) + "\n")
            file.flush()


def page() -> str:
    """Return docs/promises_table.md."""
    records, cells = saved("false_terms"), list(false_terms_cells(TRIALS))
    done = [(one["m"], one["d"], one["correlation"], one["signal"], one["errors"]) for one in records]
    undone = [
        one for one in cells if (one["m"], one["d"], one["correlation"], one["signal"], one["errors"]) not in done
    ]
    shapes = dict.fromkeys(f"{one['m']} × {one['d']}" for one in undone)
    left = f" {len(undone)} of {len(cells)} cells were not run, of {', '.join(shapes)}." if undone else ""
    tables = {case: of(saved(case)) for case, (_, _, of) in CASES.items()}
    rows, pairs = PAIRED
    promised = f"{0.3 * (2 * pairs - TRUE_PAIRED) / (2 * pairs):.2f}"
    draws = min(one["trials"] for one in saved("stand_ins"))
    return PAGE.format(left=left, rows=rows, pairs=pairs, trials=draws, promised=promised, **tables)


def main() -> None:
    """Run a case, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=[*CASES, "page"])
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    if options.case == "page":
        (ROOT / "docs" / "promises_table.md").write_text(page(), encoding="utf-8")
    else:
        run(options.case, options.trials, options.seed, RESULTS / f"promises_{options.case}.jsonl")


if __name__ == "__main__":
    main()
