"""Statistics of records, and their tables in Markdown: means with standard errors, paired differences, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from ardea import rates
from ardea.paper.regressions import METHODS, METRICS, OURS, SECOND, WIDE

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class Finding(NamedTuple):
    """Whether a sentence is true of some records, the numbers, and how far that hangs on what its words mean."""

    true: bool
    evidence: str
    margin: str = ""


Check = Callable[["DataFrame"], Finding | None]
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
PUBLISHED_ONLY, CORRECTED_ONLY = "only as published", "holds once corrected"
WORDS = {(True, True): HOLDS, (True, False): PUBLISHED_ONLY, (False, True): CORRECTED_ONLY, (False, False): FAILS}
# Convention: "significant" is a p-value of a paired test below this, divided by the number of comparisons.
SIGNIFICANT = 0.05
# Convention: a mean within so many standard errors of the prediction agrees with it.
AGREEMENT_ERRORS = 3.0
# Resamples of the trials that tell how far a verdict hangs on the draw.
RESAMPLES = 50


def verdict(found: Sequence[tuple[str, Finding]]) -> tuple[str, str, str]:
    """Return the verdict on a sentence, its evidence and its margin, from findings by source, corrected ones last."""
    if not found:
        return NOT_RUN, "", ""
    word = WORDS[found[0][1].true, found[-1][1].true]
    evidence = "; ".join(f"{source}: {one.evidence}" if len(found) > 1 else one.evidence for source, one in found)
    margins = [f"{source}: {one.margin}" if len(found) > 1 else one.margin for source, one in found if one.margin]
    return word, evidence, "; ".join(margins)


def steadiness(check: Check, records: DataFrame) -> float:
    """Return the share of resamples of the trials (with replacement) in which a check comes to the same truth."""
    rows = records[records["method"].isin(METHODS)].sort_values("trial", kind="stable")
    rows = rows.reset_index(drop=True)
    sizes = rows.groupby("trial").size()
    first = check(rows)
    if first is None or sizes.nunique() != 1 or len(sizes) < 2:
        return np.nan
    places, generator = np.arange(len(rows)).reshape(len(sizes), -1), np.random.default_rng(0)
    same = 0
    for _ in range(RESAMPLES):
        drawn = places[generator.integers(len(sizes), size=len(sizes))].ravel()
        again = check(rows.take(drawn).assign(trial=np.repeat(np.arange(len(sizes)), places.shape[1])))
        same += again is not None and again.true == first.true
    return same / RESAMPLES


def at_most(word: str, bound: float, values: Mapping[str, float], evidence: str) -> Finding:
    """Find that all values are within a bound, which is what a word means; they are shares of what is compared with."""
    worst = max(values, key=lambda name: values[name])
    margin = f"“{word}” is at most {bound:g} times; turns at {values[worst]:.2g} ({worst})"
    return Finding(bool(values[worst] <= bound), evidence, margin)


METRIC_NAMES = {"l2": "ℓ² error", "l1": "ℓ¹ error", "added": "added", "missed": "missed"}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Return a table; numbers to the digits that matter, bars inside cells escaped."""
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in (header, *rows)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def number(value: float) -> str:
    """Return a number with three or four digits that matter."""
    size = abs(value)
    if value == 0:
        return "0"
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:.0f}"


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


def mean_cells(records: DataFrame) -> DataFrame:
    """Return the four metrics of every method as texts, means with standard errors."""
    groups = records.groupby("method")[list(METRICS)]
    means, errors = groups.mean(), groups.sem()
    cells = means.astype(object)
    for metric in METRICS:
        cells[metric] = [with_error(*pair) for pair in zip(means[metric], errors[metric], strict=True)]
    return cells.loc[methods_in(records)]


def exact(records: DataFrame) -> DataFrame:
    """Return for every method in how many rows the support is exactly that of the truth, and the number of rows."""
    right = (records["added"] == 0) & (records["missed"] == 0)
    return right.groupby(records["method"]).agg(["sum", "size"]).loc[methods_in(records)]


def group(records: DataFrame, column: str, value: str) -> DataFrame:
    """Return the rows of one group, metrics summed over the equations of the system."""
    rows = records[records[column] == value] if column in records else records
    kept = [name for name in (*METRICS, "added_l1") if name in rows]
    names = ["trial", "correction", "method"] if "correction" in rows else ["trial", "method"]
    return rows.groupby(names, sort=False, as_index=False)[kept].sum()


class Paired:
    """Differences of two methods trial by trial, where both were run."""

    def __init__(self, one: Series, other: Series) -> None:
        self.difference = (one - other).dropna().to_numpy()

    @property
    def mean(self) -> float:
        """The mean difference."""
        return float(self.difference.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        n = self.difference.size
        return float(self.difference.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan

    @property
    def chance(self) -> float:
        """The two-sided p-value of Wilcoxon's signed-rank test; 1 where nothing differs."""
        if not np.any(self.difference) or self.difference.size < 2:
            return 1.0
        return float(stats.wilcoxon(self.difference, method="approx").pvalue)

    def __str__(self) -> str:
        sign = "+" if self.mean >= 0 else "−"
        text = with_error(abs(self.mean), self.error)
        chance = f"{self.chance:.2f}" if self.chance >= 0.01 else f"{self.chance:.0e}"
        return f"{sign}{text} (p = {chance})" if np.any(self.difference) else "0"


def by_trial(records: DataFrame, metric: str) -> DataFrame:
    """Return a metric with a row for every trial and a column for every method; `wrong` is added + missed."""
    values = records["added"] + records["missed"] if metric == "wrong" else records[metric]
    return values.groupby([records["trial"], records["method"]]).mean().unstack()


# Tables.


def comparison(records: DataFrame) -> str:
    """Return mean errors of every method, as Table 1 of the paper, exact supports, and what divides it from the best.

    That is the one of the paper's methods with the least mean.
    """
    records = records[records["correction"] == "none"] if "correction" in records else records
    if records.empty:
        return "not run"
    found, cells = exact(records), mean_cells(records)
    tables = {metric: by_trial(records, metric) for metric in ("l2", "wrong")}
    best = {metric: table[[m for m in METHODS if m in table]].mean().idxmin() for metric, table in tables.items()}
    rows = []
    for method, row in cells.iterrows():
        behind = [
            "best" if method == best[metric] else str(Paired(table[method], table[best[metric]]))
            for metric, table in tables.items()
        ]
        rows.append([str(method), *row, f"{found.loc[method, 'sum']} of {found.loc[method, 'size']}", *behind])
    header = ["method", *METRIC_NAMES.values(), "exact support"]
    return markdown([*header, f"ℓ² behind {best['l2']}", f"wrong terms behind {best['wrong']}"], rows)


def comparisons(records: DataFrame, column: str, value: str) -> str:
    """Return the errors of one group of rows and, under their names, those of the others."""
    others = [other for other in records[column].unique() if other != value]
    parts = [comparison(group(records, column, value))]
    return "\n\n".join([*parts, *(f"{other}:\n\n{comparison(group(records, column, other))}" for other in others)])


def level_table(records: DataFrame) -> str:
    """Return mean added and missed terms with their expectation, at some noise levels of every strength."""
    rows: list[list[str | float]] = []
    for strength, part in records.groupby("strength", sort=False):
        groups = part.groupby("sigma")[["added", "expected_added", "missed", "expected_missed", "l2"]]
        means, errors = groups.mean(), groups.sem()
        for i in np.unique(np.linspace(0, len(means) - 1, min(7, len(means))).astype(int)):
            added, theory_added, missed, theory_missed, l2 = zip(means.iloc[i], errors.iloc[i], strict=True)
            counts = [with_error(*added), theory_added[0], with_error(*missed), theory_missed[0], with_error(*l2)]
            rows.append([f"{strength:g}", means.index[i], *counts])
    return markdown(["strength", "sigma", "added", "theory", "missed", "theory", "ℓ² error"], rows)


def distances(records: DataFrame, kind: str) -> Series:
    """Return how many standard errors the mean number of added or missed terms is from theory, by strength and σ."""
    groups = records.groupby(["strength", "sigma"], sort=False)
    means, n, expected = groups[kind].mean(), groups.size(), groups[f"expected_{kind}"].mean()
    # Variance of a sum of independent Bernoulli variables is at most its mean.
    return (means - expected).abs() / np.sqrt(np.maximum(expected, 1 / n) / n)


def agreement_table(records: Mapping[tuple[str, str], DataFrame]) -> str:
    """Return how far the orthogonal studies are from theory, with noise of its own at every level and as published."""
    rows: list[list[str | float]] = []
    for (name, variant), frame in records.items():
        noise = "one vector (published)" if variant == "published" else "its own at every σ"
        cells = []
        for kind in ("added", "missed"):
            gaps = distances(frame, kind)
            cells.append(f"{(gaps <= AGREEMENT_ERRORS).sum()} of {gaps.size}; {gaps.mean():.2f}, {gaps.max():.1f}")
        rows.append([name, noise, str(frame["trial"].nunique()), *cells])
    return markdown(["study", "noise", "trials", "added", "missed"], rows)


def curve_table(records: DataFrame) -> str:
    """Return theory and simulation of the FP–FN curves side by side; all methods keep the same columns."""
    rows: list[list[str | float]] = []
    simulated = records[(records["kind"] == "simulated") & (records["method"] == "ARDvi")]
    for point in simulated.itertuples():
        theory = (rates.false_positive_rate("vi", point.z**2), rates.false_negative_rate("vi", point.z**2, point.xi))
        cells: list[str | float] = [f"{point.xi:g}", f"{point.z:.2f}"]
        for rate, closed in zip((point.fp, point.fn), map(float, theory), strict=True):
            cells += [with_error(rate, float(np.sqrt(closed * (1 - closed) / point.draws))), closed]
        rows.append(cells)
    return markdown(["ξ/σ", "cut z", "FP simulated", "FP theory", "FN simulated", "FN theory"], rows)


def growth(records: DataFrame, method: str) -> float:
    """Return d ln ψ/d ln ρ of a method at the large end."""
    end = np.log(records.loc[records["method"] == method, ["rho", "psi"]].to_numpy()[-2:])
    rho, psi = end[1] - end[0]
    return float(psi / rho)


def rho_table(records: DataFrame) -> str:
    """Return the rates at the ends and the exponent of ψ for large ρ."""
    rows: list[list[str | float]] = []
    for method, part in records.groupby("method", sort=False):
        ends = part.iloc[[0, -1]]
        rows.append([str(method), part["strength"].iloc[0], *ends["fp"], *ends["fn"], growth(records, str(method))])
    ends = f"{records['rho'].min():g}", f"{records['rho'].max():g}"
    header = ["method", "strength", *(f"{rate} at ρ = {end}" for rate in ("FP", "FN") for end in ends)]
    return markdown([*header, "d ln ψ/d ln ρ at the end"], rows)


def kappa_table(records: DataFrame) -> str:
    """Return mean numbers of false and missed terms at some condition numbers, with what theory expects."""
    names = ["added", "expected_added", "missed", "expected_missed"]
    groups = records.groupby(["method", "sigma", "kappa"], sort=False)[names]
    means, errors = groups.mean(), groups.sem()
    kappas = np.sort(records["kappa"].unique())
    shown = kappas[np.unique(np.linspace(0, kappas.size - 1, 5).astype(int))]
    rows: list[list[str | float]] = []
    for key in means.index:
        if key[2] in shown:
            added, theory_added, missed, theory_missed = zip(means.loc[key], errors.loc[key], strict=True)
            counts = [with_error(*added), theory_added[0], with_error(*missed), theory_missed[0]]
            rows.append([key[0], f"{key[1]:g}", f"{key[2]:.0e}", *counts])
    return markdown(["method", "σ", "κ", "added", "theory", "missed", "theory"], rows)


def theory_table(records: DataFrame) -> str:
    """Return by which factors measured numbers of false and missed terms differ from theory over all κ > 1."""
    rows: list[list[str | float]] = []
    beyond = records[records["kappa"] > 1]
    for method, part in beyond.groupby("method", sort=False):
        cells = []
        for name, (_, level) in product(("added", "missed"), part.groupby("sigma")):
            means = level.groupby("kappa")[[name, f"expected_{name}"]].mean()
            ratio = means[name] / means[f"expected_{name}"]
            cells.append(f"{ratio.min():.2g} to {ratio.max():.2g}")
        rows.append([str(method), *cells])
    names = [f"{name}, σ = {sigma:g}" for name in ("added", "missed") for sigma in np.sort(records["sigma"].unique())]
    return markdown(["measured / theory", *names], rows)


def relative_costs(records: DataFrame) -> DataFrame:
    """Return the median over trials of every method's time relative to plain ARD's."""
    times = records.pivot(index="trial", columns="method", values="milliseconds")
    return times.div(times["ARD"], axis=0).median()[methods_in(records)]


def merits_table(records: DataFrame) -> str:
    """Return cost and sparsity of every method."""
    names = ["steps", "rounds", "kept", "added", "missed", "l2", "named"]
    groups = records.groupby("method")
    costs, milliseconds = relative_costs(records), groups["milliseconds"].median()
    means, errors = groups[names].mean(), groups[names].sem()
    rows: list[Any] = [
        [method, milliseconds[method], costs[method], *map(with_error, means.loc[method], errors.loc[method])]
        for method in methods_in(records)
    ]
    header = ["steps", "rounds", "kept", "added", "missed", "ℓ² error", "removals with a reason"]
    return markdown(["method", "ms", "time / ARD", *header], rows)


def bound_table(records: dict[str, DataFrame]) -> str:
    """Return in how many fits an end of the grid was chosen and nothing off it does as well, by experiment."""
    names = [m for m in METHODS if m != "ARD"]
    rows: list[list[str | float]] = []
    for name, frame in records.items():
        for title, suffix in (("the authors'", ""), ("wide", f", {WIDE}")):
            parts = [frame.loc[frame["method"] == f"{method}{suffix}", "bound"].dropna() for method in names]
            if any(len(part) for part in parts):
                rows.append([name, title, *(f"{part.sum():.0f} of {len(part)}" for part in parts)])
    return markdown(["experiment", "grid", *names], rows)


def ablation_table(published: DataFrame, corrected: DataFrame) -> tuple[str, int]:
    """Return the four means of every method after each correction alone, on the trials that all have, and their number.

    Cells that are as published say "=". `corrected` are the estimators on the same trials, with their extra rows.
    """
    extra = corrected.loc[~corrected["method"].isin(METHODS), "trial"]
    trials = set(published.loc[published["correction"] == "all", "trial"]) & set(
        extra if len(extra) else corrected["trial"]
    )
    here = published[published["trial"].isin(trials)]
    own = corrected[corrected["trial"].isin(trials)]
    cases = {name: here[here["correction"] == name] for name in here["correction"].unique()}
    cases["the estimators"] = own[own["method"].isin(METHODS)]
    for suffix in (WIDE, SECOND):
        more = own[own["method"].str.endswith(f", {suffix}")]
        cases[f"the estimators, {suffix}"] = more.assign(method=more["method"].str.removesuffix(f", {suffix}"))
    rows: list[list[str | float]] = []
    first: dict[str, str] = {}
    for name, part in cases.items():
        if part.empty:
            continue
        cells = method_means(part)[list(METRICS)].map("{:.3g}".format).agg(" / ".join, axis=1)
        first = first or dict(cells)
        shown = ["=" if name != "none" and cells.get(m) == first[m] else cells.get(m, "–") for m in METHODS]
        rows.append(["as published" if name == "none" else name, *shown])
    return markdown(["correction", *METHODS], rows), len(trials)
