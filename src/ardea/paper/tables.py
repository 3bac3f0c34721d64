"""Tables in Markdown: means with standard errors, paired differences, what theory says and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea import rates
from ardea.paper.experiment import METHODS
from ardea.paper.inference import (
    AGREEMENT_ERRORS,
    HOLDS,
    NOT_JUDGED,
    WEAKLY,
    WORDS,
    Paired,
    by_trial,
    error_of,
    exact,
    group,
    independent,
    mean_cells,
    methods_in,
    uncorrected,
    with_error,
)
from ardea.paper.regressions import METRICS, SECOND, WIDE

if TYPE_CHECKING:
    from pandas import DataFrame, Series


# Convention: differences below this are rounding; records have six digits.
NO_CHANGE = 1e-3
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


def listed(values: Any, form: str, names: Sequence[str] | None = None) -> str:
    """Return "M-STSBL 3.4, L-STSBL 5.7, …"."""
    return ", ".join(f"{name} {values[name]:{form}}" for name in names or values.keys())


def tally(judged: Sequence[tuple[str, str]]) -> str:
    """Return how many statements of every kind have which verdict."""
    given, order = {word for _, word in judged}, dict.fromkeys((HOLDS, WEAKLY, *WORDS.values(), NOT_JUDGED))
    words = [word for word in order if word in given]
    kinds = dict.fromkeys(kind for kind, _ in judged)
    rows = [[kind, *(str(judged.count((kind, word))) for word in words)] for kind in kinds]
    return markdown(["statements", *words], rows)


def comparison(records: DataFrame) -> str:
    """Return mean errors of every method, as Table 1 of the paper, exact supports, and what divides it from the least.

    That is the one of the paper's methods with the least mean.
    """
    records = uncorrected(records)
    if records.empty:
        return "not run"
    found, cells = exact(records), mean_cells(records)
    tables = {metric: by_trial(records, metric) for metric in ("l2", "wrong")}
    least = {metric: table[[m for m in METHODS if m in table]].mean().idxmin() for metric, table in tables.items()}
    rows = []
    for method, row in cells.iterrows():
        behind = [
            "least mean" if method == least[metric] else str(Paired(table[method], table[least[metric]]))
            for metric, table in tables.items()
        ]
        rows.append([str(method), *row, f"{found.loc[method, 'sum']} of {found.loc[method, 'size']}", *behind])
    header = ["method", *METRIC_NAMES.values(), "exact support"]
    return markdown([*header, f"ℓ² against {least['l2']}", f"wrong terms against {least['wrong']}"], rows)


def comparisons(records: DataFrame, column: str, titles: Mapping[str, str]) -> str:
    """Return the errors of every group of rows, each under its title."""
    present = {value: title for value, title in titles.items() if (records[column] == value).any()}
    tables = (f"**{title}**\n\n{comparison(group(records, column, value))}" for value, title in present.items())
    return "\n\n".join(tables)


def evidence_table(records: Mapping[str, DataFrame], chosen: Mapping[str, Sequence[str]]) -> str:
    """Return for every example some methods on the trials that all of them have, against the first in wrong terms."""
    rows: list[list[str | float]] = []
    for name, frame in records.items():
        methods = [method for method in chosen.get(name, ()) if method in set(frame["method"])]
        if not methods:
            continue
        common = by_trial(frame, "wrong")[methods].dropna().index.get_level_values("trial")
        here = frame[frame["trial"].isin(common) & frame["method"].isin(methods)]
        cells, found, wrong = mean_cells(here), exact(here), by_trial(here, "wrong")
        for method in methods:
            test = "–" if method == methods[0] else str(Paired(wrong[method], wrong[methods[0]]))
            counts = f"{found.loc[method, 'sum']} of {found.loc[method, 'size']}"
            mean = with_error(wrong[method].mean(), error_of(independent(wrong[method])))
            rows.append([name, method, cells.loc[method, "l2"], mean, test, counts])
    return markdown(["example", "method", "ℓ² error", "wrong terms", "against the first", "exact"], rows)


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
    means, errors, trials = groups.mean(), groups.sem(), groups.size()
    kappas = np.sort(records["kappa"].unique())
    shown = kappas[np.unique(np.linspace(0, kappas.size - 1, 5).astype(int))]
    rows: list[list[str | float]] = []
    for key in means.index:
        if key[2] in shown:
            added, theory_added, missed, theory_missed = zip(means.loc[key], errors.loc[key], strict=True)
            counts = [with_error(*added), theory_added[0], with_error(*missed), theory_missed[0]]
            rows.append([key[0], f"{key[1]:g}", f"{key[2]:.0e}", str(trials[key]), *counts])
    return markdown(["method", "σ", "κ", "trials", "added", "theory", "missed", "theory"], rows)


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


def relative_times(records: DataFrame) -> DataFrame:
    """Return every method's time relative to plain ARD's, by trial."""
    times = records.pivot(index="trial", columns="method", values="milliseconds")
    return times.div(times["ARD"], axis=0)[methods_in(records)]


def at_one_strength(records: DataFrame) -> DataFrame:
    """Return the timed rows of the relative merits: every method at the strength of one expected false term."""
    return records[records["milliseconds"].notna()]


def merits_table(records: DataFrame) -> str:
    """Return cost and sparsity of every method; then added and missed terms along strengths, where these were run."""
    names, timed = ["steps", "rounds", "kept", "added", "missed", "l2", "named"], at_one_strength(records)
    groups = timed.groupby("method")
    costs, milliseconds = relative_times(timed).median(), groups["milliseconds"].median()
    means, errors = groups[names].mean(), groups[names].sem()
    rows: list[Any] = [
        [method, milliseconds[method], costs[method], *map(with_error, means.loc[method], errors.loc[method])]
        for method in methods_in(timed)
    ]
    header = ["steps", "rounds", "kept", "added", "missed", "ℓ² error", "removals with a reason"]
    text = markdown(["method", "median ms", "median of (time / ARD) by trial", *header], rows)
    return text if len(timed) == len(records) else f"{text}\n\n{strengths_table(records)}"


def strengths_table(records: DataFrame) -> str:
    """Return added and missed terms along strengths, and what the closed forms for orthogonal columns expect."""
    part, rows = records[records["milliseconds"].isna()], []
    for metric in ("added", "missed"):
        cells = part.groupby(["expected_added", "method"])[[metric, f"expected_{metric}"]].agg(["mean", "sem"])
        for _, here in cells.groupby(level=0):
            own = here.droplevel(0).loc[list(METHODS[1:])]
            expected = own[f"expected_{metric}"]["mean"].iloc[0]  # strengths are worth the same
            rows.append([metric, f"{expected:.3g}", *starmap(with_error, own[metric].to_numpy())])
    return markdown(["along strengths", "closed form", *METHODS[1:]], rows)


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


def binding(records: Mapping[str, DataFrame], share: float = 0.05) -> str:
    """Return where an end of the authors' grids is chosen in more than a share of the fits, method by method."""
    found = []
    for method in METHODS[1:]:
        shares = {name: frame.loc[frame["method"] == method, "bound"].mean() for name, frame in records.items()}
        places = [f"{name} {100 * value:.0f} %" for name, value in shares.items() if value > share]
        found += [f"{method} ({', '.join(places)})"] if places else []
    return "; ".join(found)


def ablation_table(published: DataFrame, corrected: DataFrame) -> str:
    """Return what each correction changes, method by method, on the trials that both have, and what changes nothing.

    `corrected` are the estimators, with their extra rows. Differences are paired, with standard errors.
    """
    plain = uncorrected(published)
    trials = set(published.loc[published["correction"] == "all", "trial"])
    own = corrected[corrected["trial"].isin(trials)]
    cases = {name: published[published["correction"] == name] for name in published["correction"].unique()}
    cases["the estimators"] = own[own["method"].isin(METHODS)]
    for suffix in (WIDE, SECOND):
        more = own[own["method"].str.endswith(f", {suffix}")]
        cases[f"the estimators, {suffix}"] = more.assign(method=more["method"].str.removesuffix(f", {suffix}"))
    del cases["none"]
    before = mean_cells(plain[plain["trial"].isin(trials)])
    rows = [["as published", str(method), str(len(trials)), *row] for method, row in before.iterrows()]
    idle = []
    for name, part in cases.items():
        changed = _changes(part, plain)
        rows += [[name, *row] for row in changed]
        idle += [name] if len(part) and not changed else []
    text = markdown(["correction", "method", "trials", *METRIC_NAMES.values()], rows)
    return text + (f"\n\nWithout effect here: {', '.join(idle)}." if idle else "")


def _changes(part: DataFrame, plain: DataFrame) -> list[list[str]]:
    """Return the paired differences from the published code, of the methods for which there are any."""
    tables = {metric: (by_trial(part, metric), by_trial(plain, metric)) for metric in METRICS if len(part)}
    rows = []
    for method in METHODS if len(part) else ():
        if method not in tables["l2"][0]:
            continue
        tests = [Paired(after[method], before[method]) for after, before in tables.values()]
        if max(np.abs(test.difference).max() for test in tests) > NO_CHANGE:
            rows.append([method, str(tests[0].difference.size), *(test.told for test in tests)])
    return rows
