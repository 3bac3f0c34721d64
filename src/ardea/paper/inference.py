"""Statistics of records: means and their errors over what was drawn independently, paired tests, verdicts on sentences.

What is drawn independently is a trial, except where several equations share a trajectory (Lorenz 96): there it is the
start, as soon as there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from ardea.core.problem import Array
from ardea.paper.experiment import METHODS
from ardea.paper.regressions import METRICS, OURS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Convention: "significant" is a p-value of a paired test below this, divided by the number of comparisons.
SIGNIFICANT = 0.05
# With five pairs the least two-sided p-value is 1/16: nothing is tested below six. The exact distribution of the
# signed-rank statistic up to so many pairs, the normal one beyond.
FEWEST_PAIRS, EXACT_PAIRS = 6, 25
# Convention: the normal distribution is not trusted further out than this.
LEAST_CHANCE = 1e-6
# Convention: a mean within so many standard errors of the prediction agrees with it.
AGREEMENT_ERRORS = 3.0
# Resamples of the trials that tell how far a verdict hangs on the draw.
RESAMPLES = 50


class Finding(NamedTuple):
    """Whether a sentence is true of some records, the numbers, and how far that hangs on what its words mean.

    It is neither true nor false (None) where the records cannot tell, and not `firm` where means say so and a test does
    not bear all of them out.
    """

    true: bool | None
    evidence: str
    margin: str = ""
    firm: bool = True


Check = Callable[["DataFrame"], Finding | None]


def check_of(find: Callable[..., Finding | None]) -> Callable[..., Check]:
    """Turn a function of records and of what a sentence names into one of the latter, which returns a check."""
    return lambda *words, **more: lambda records: find(records, *words, **more)


HOLDS, WEAKLY, FAILS, NOT_RUN = "holds", "holds, not significantly", "does not hold", "not run"
NOT_JUDGED = "not judged"
PUBLISHED_ONLY, CORRECTED_ONLY = "only as published", "holds once corrected"
WORDS = {(True, True): HOLDS, (True, False): PUBLISHED_ONLY, (False, True): CORRECTED_ONLY, (False, False): FAILS}


def verdict(found: Sequence[tuple[str, Finding]]) -> tuple[str, str, str]:
    """Return the verdict on a sentence, its evidence and its margin, from findings by source, corrected ones last.

    Sources that cannot tell do not count. What all sources share is told once.
    """
    if not found:
        return NOT_RUN, "", ""
    telling = [one for _, one in found if one.true is not None]
    word = WORDS[bool(telling[0].true), bool(telling[-1].true)] if telling else NOT_JUDGED
    word = WEAKLY if word == HOLDS and not telling[-1].firm else word
    texts = ([(source, one.evidence) for source, one in found], [(source, one.margin) for source, one in found])
    evidence, margin = map(_by_source, texts)
    return word, evidence, margin


def _by_source(texts: Sequence[tuple[str, str]]) -> str:
    """Return what is said of every source, once where it is the same of all."""
    if len({text for _, text in texts}) == 1:
        return texts[0][1]
    return "; ".join(f"{source}: {text}" for source, text in texts if text)


def unit_of(records: DataFrame) -> str:
    """Return the column that says what was drawn independently."""
    return "start" if "start" in records and records["start"].nunique() > 1 else "trial"


def steadiness(check: Check, records: DataFrame) -> float:
    """Return the share of resamples (with replacement) of what was drawn in which a check comes to the same truth."""
    unit = unit_of(records)
    rows = records[records["method"].isin(METHODS)].sort_values([unit, "trial"], kind="stable")
    rows = rows.reset_index(drop=True)
    sizes = rows.groupby(unit).size()
    first = check(rows)
    if first is None or sizes.nunique() != 1 or len(sizes) < 2:
        return np.nan
    places, generator = np.arange(len(rows)).reshape(len(sizes), -1), np.random.default_rng(0)
    same, copies = 0, np.repeat(np.arange(len(sizes)), places.shape[1])
    for _ in range(RESAMPLES):
        drawn = rows.take(places[generator.integers(len(sizes), size=len(sizes))].ravel())
        # A unit that was drawn twice counts as two: its trials get names of their own.
        names = {"trial": copies} if unit == "trial" else {unit: copies, "trial": drawn["trial"] + 10_000 * copies}
        again = check(drawn.assign(**names))
        same += again is not None and again.true == first.true
    return same / RESAMPLES


def at_most(word: str, bound: float, values: Mapping[str, float], evidence: str) -> Finding:
    """Find that all values are within a bound, which is what a word means; they are shares of what is compared with."""
    worst = max(values, key=lambda name: values[name])
    margin = f"“{word}” is at most {bound:g} times; turns at {values[worst]:.2g} ({worst})"
    return Finding(bool(values[worst] <= bound), evidence, margin)


# Means.


def with_error(mean: float, error: float) -> str:
    """Return "0.535 ± 0.012": the error to two digits, the mean to as many places; without one where it is unknown."""
    if not np.isfinite(error) or error == 0:
        return f"{mean:.3g}"
    places = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{mean:.{places}f} ± {error:.{places}f}" if places < 7 else f"{mean:.2g} ± {error:.1g}"


def methods_in(records: DataFrame) -> list[str]:
    """Return the methods that occur, in the paper's order, ours last."""
    present = set(records["method"])
    return [method for method in (*METHODS, *OURS) if method in present]


def method_means(records: DataFrame) -> DataFrame:
    """Return the four metrics averaged, one row per method."""
    return records.groupby("method")[list(METRICS)].mean().loc[methods_in(records)]


def mode(records: DataFrame, method: str, metric: str) -> int:
    """Return the most frequent value of a count, the least of ties."""
    return int(records.loc[records["method"] == method, metric].mode().iloc[0])


def by_trial(records: DataFrame, metric: str) -> DataFrame:
    """Return a metric with a row for every trial and a column for every method; `wrong` is added + missed.

    Rows are also named by the start that trials share, where there are several.
    """
    values = records["added"] + records["missed"] if metric == "wrong" else records[metric]
    names = [records[name] for name in dict.fromkeys((unit_of(records), "trial"))]
    return values.groupby([*names, records["method"]]).mean().unstack()


def independent(values: Series) -> Array:
    """Return what was drawn independently: the values, or their means over the trials of every start."""
    values = values.dropna()
    if values.index.nlevels > 1 and values.index.get_level_values("start").nunique() > 1:
        values = values.groupby(level="start").mean()
    return values.to_numpy(dtype=float)


def error_of(values: Array) -> float:
    """Return the standard error of the mean of independent values."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan


def mean_cells(records: DataFrame) -> DataFrame:
    """Return the four metrics of every method as texts, means with standard errors."""
    cells = method_means(records).astype(object)
    for metric in METRICS:
        table = by_trial(records, metric)
        cells[metric] = [with_error(table[m].mean(), error_of(independent(table[m]))) for m in cells.index]
    return cells


def exact(records: DataFrame) -> DataFrame:
    """Return for every method in how many rows the support is exactly that of the truth, and the number of rows."""
    right = (records["added"] == 0) & (records["missed"] == 0)
    return right.groupby(records["method"]).agg(["sum", "size"]).loc[methods_in(records)]


def uncorrected(records: DataFrame) -> DataFrame:
    """Return the rows of the published code as it is, of an ablation too; all where nothing is corrected."""
    return records[records["correction"] == "none"] if "correction" in records else records


def group(records: DataFrame, column: str, value: str) -> DataFrame:
    """Return the rows of one group, metrics summed over the equations of the system."""
    rows = records[records[column] == value] if column in records else records
    kept = [name for name in (*METRICS, "added_l1") if name in rows]
    names = ["trial", "correction", "method"] if "correction" in rows else ["trial", "method"]
    return rows.groupby(names, sort=False, as_index=False)[kept].sum()


# Paired differences.


def signed_rank(difference: Array) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; NaN for too few pairs, 1 where nothing differs.

    Zeros are left out. Up to `EXACT_PAIRS` pairs it is exact, ties included: the distribution of the sum of the
    (doubled, hence whole) ranks of positive differences when every sign is as likely as the other.
    """
    if difference.size < FEWEST_PAIRS:
        return np.nan
    moved = difference[difference != 0]
    if not moved.size:
        return 1.0
    if difference.size > EXACT_PAIRS:
        return float(stats.wilcoxon(moved, method="approx").pvalue)
    ranks = np.rint(2 * stats.rankdata(np.abs(moved))).astype(int)
    chances = np.ones(1)
    for rank in ranks:
        chances = np.convolve(chances, np.bincount([0, rank], minlength=rank + 1) / 2)
    observed = int(ranks[moved > 0].sum())
    return float(min(1.0, 2 * min(chances[: observed + 1].sum(), chances[observed:].sum())))


def chance_text(chance: float) -> str:
    """Return "p = 0.03", "p = 0.002" or "p < 1e-6"."""
    if chance < LEAST_CHANCE:
        return f"p < {LEAST_CHANCE:.0e}".replace("e-06", "e-6")
    return f"p = {chance:.2f}" if chance >= 0.01 else f"p = {chance:.3f}" if chance >= 0.001 else f"p = {chance:.0e}"


class Paired:
    """Differences of two methods trial by trial, where both were run; over starts where trials share them.

    `mean` is theirs, with a standard `error`; `chance` the p-value of :func:`signed_rank`, whose ranks point in a
    `direction`; `signs` are how many lie below and above zero, and `chance_of_sign` is the p-value of the sign test,
    which is one of the median difference. `told` is the mean with its sign and error, without a test.
    """

    def __init__(self, one: Series, other: Series) -> None:
        difference = self.difference = independent(one - other)
        self.mean = float(difference.mean()) if difference.size else np.nan
        self.error, self.chance = error_of(difference), signed_rank(difference)
        changed = difference[difference != 0]
        self.direction = int(np.sign(np.sum(np.sign(changed) * stats.rankdata(np.abs(changed)))))
        self.signs = below, above = int((difference < 0).sum()), int((difference > 0).sum())
        enough = below + above >= FEWEST_PAIRS
        self.chance_of_sign = float(stats.binomtest(below, below + above).pvalue) if enough else np.nan
        sign = "+" if self.mean >= 0 else "−"
        self.told = f"{sign}{with_error(abs(self.mean), self.error)}" if changed.size else "0"

    def __str__(self) -> str:
        tested = np.any(self.difference) and np.isfinite(self.chance)
        return f"{self.told} ({chance_text(self.chance)})" if tested else self.told


def only_one_succeeds(one: Series, other: Series) -> tuple[int, int, float]:
    """Return in how many trials only the one and only the other succeeds, and McNemar's exact two-sided p-value."""
    first, second = int((one & ~other).sum()), int((other & ~one).sum())
    return first, second, float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
