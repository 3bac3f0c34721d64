"""Checks of the sentences of Secs. 6 and 7 that state a result; claims.csv names them.

A check is asked of the authors' own records (of the replay of their code where theirs lack something) and of the
corrected ones: what only the former bear out holds "only as published". It returns None where records lack what the
sentence is about. One rule for words that compare: "fewer", "lower", "more", "higher" are judged by means over the
trials (in Sec. 6.2 by medians, tested by signs), "far", "much" and "substantially" ask for at most two thirds of them;
the margin names what a paired test does not bear out, and the verdict then is "not significantly". Of two groups of
methods the means over each group are compared. "Significantly" of a comparison, and every denial of one ("no
increase"), is judged by the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ardea.paper.catalogue import experiment_named
from ardea.paper.experiment import METHODS
from ardea.paper.inference import (
    SIGNIFICANT,
    Finding,
    Paired,
    at_most,
    by_trial,
    chance_text,
    check_of,
    exact,
    method_means,
    mode,
)
from ardea.paper.regressions import DIFFERENCED, INDEPENDENT, METRICS, OF_DIFFERENCES, WIDE
from ardea.paper.tables import listed
from ardea.paper.theory_claims import FAR, PROPOSED, REGULARISED, THRESHOLDED

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Centre = Literal["mean", "median"]
SHORT = dict(zip(METRICS, ("ℓ²", "ℓ¹", "added", "missed"), strict=True))
# What Gaussian errors of the same variance lack besides the shape of those of differences.
LACKING = "truncation errors of the differences, and that errors depend on the noise in the features"
# Sizes of the examples at paper scale: true terms of Secs. 6.1 and 6.2, rows of the field of Sec. 6.5.
_SIZES = {name: experiment_named(name).settings("paper", "corrected").sizes for name in ("linear", "fourier", "ks")}
TERMS = {name: int(_SIZES[name]["terms"]) for name in ("linear", "fourier")}
KS_ROWS = int(_SIZES["ks"]["n_x"] * _SIZES["ks"]["n_t"])


def _centres(records: DataFrame, centre: Centre) -> DataFrame:
    """Return means or medians of the four metrics, one row per method."""
    return records.groupby("method")[list(METRICS)].agg(centre)


def _means_text(means: DataFrame, metrics: Sequence[str], methods: Sequence[str] = METHODS) -> str:
    return "; ".join(f"{SHORT[metric]}: {listed(means[metric], '.3g', methods)}" for metric in metrics)


def _empty(records: DataFrame) -> str:
    """Return how often methods of the Fourier example return the empty model, where they do."""
    empty = records[(records["added"] == 0) & (records["missed"] == TERMS["fourier"]) & records["method"].isin(METHODS)]
    n = records["trial"].nunique()
    return "".join(f"; {method} is empty in {count} of {n}" for method, count in empty.groupby("method").size().items())


def _compared(
    true: bool, text: str, tests: dict[str, Paired], sign: int, margin: str = "", centre: Centre = "mean"
) -> Finding:
    """Find what means or medians say of differences of a sign, and name those that a paired test does not bear out.

    Of means that is the signed-rank test, of medians the sign test. Where differences trial by trial point the other
    way beyond chance, medians do not bear a sentence out.
    """
    weak, against = [], []
    for name, test in tests.items():
        chance = test.chance if centre == "mean" else test.chance_of_sign
        points = test.direction if centre == "mean" else int(np.sign(test.signs[1] - test.signs[0]))
        if not (chance < SIGNIFICANT and points == sign):
            turned = f"{chance_text(chance)}, against the sentence" if chance < SIGNIFICANT else chance_text(chance)
            counts = f"{test.signs[0]} trials below, {test.signs[1]} above, " * (centre == "median")
            weak.append(f"{name} ({counts}{turned})")
            against += [name] if chance < SIGNIFICANT and centre == "median" else []
    if not true or not weak:
        return Finding(true, text, margin)
    told = f"not borne out by the test: {', '.join(weak)}"
    return Finding(not against, text, f"{margin}; {told}" if margin else told, firm=False)


def _against(records: DataFrame, methods: Sequence[str], metric: str, other: str = "ARD") -> dict[str, Paired]:
    """Return the paired differences of some methods from another one."""
    table = by_trial(records, metric)
    return {method: Paired(table[method], table[other]) for method in methods}


def _each(records: DataFrame, methods: Sequence[str], metrics: Sequence[str]) -> dict[str, Paired]:
    """Return the paired differences from ARD in every metric."""
    tests = {metric: _against(records, methods, metric) for metric in metrics}
    return {f"{method} {SHORT[metric]}": test for metric, own in tests.items() for method, test in own.items()}


@check_of
def far_below_ard(
    records: DataFrame, methods: Sequence[str], *metrics: str, centre: Centre = "mean", word: str = "far"
) -> Finding:
    """Find that every method has far less of every metric than plain ARD."""
    found = _centres(records, centre)
    shares = found.loc[list(methods), list(metrics)] / found.loc["ARD", list(metrics)]
    values = {f"{method}, {SHORT[name]}": shares.loc[method, name] for method in methods for name in metrics}
    text = _means_text(found, metrics, ("ARD", *methods))
    text = f"medians: {text}{_empty(records)}" if centre == "median" else text
    far = at_most(word, FAR, values, text)
    return _compared(bool(far.true), text, _each(records, methods, metrics), -1, far.margin, centre)


@check_of
def against_ard(
    records: DataFrame, sign: int, methods: Sequence[str], *metrics: str, centre: Centre = "mean"
) -> Finding:
    """Find that every method has more (sign 1) or less (−1) of every metric than plain ARD."""
    found = _centres(records, centre)
    gaps = sign * (found.loc[list(methods), list(metrics)] - found.loc["ARD", list(metrics)])
    tests = _each(records, methods, metrics)
    text = "mean differences from ARD: " + ", ".join(f"{name} {test}" for name, test in tests.items())
    if centre == "median":
        text = f"medians: {_means_text(found, metrics, ('ARD', *methods))}; {text}"
    true = bool((gaps > 0).all(axis=None))
    return _compared(true, text, tests, sign, centre=centre)


all_far_better = far_below_ard(PROPOSED, "l2", "l1", "added", centre="median")
all_far_better_in_the_mean = far_below_ard(PROPOSED, "l2", "l1", "added")
median_far_fewer_added = far_below_ard(PROPOSED, "added", centre="median", word="substantially")
regularising_far_fewer_added = far_below_ard(REGULARISED, "added", centre="median", word="substantially")
linear_far_fewer_added = far_below_ard(PROPOSED, "added", word="substantially")
median_lower_error = against_ard(-1, PROPOSED, "l2", "l1", centre="median")
regularising_lower_error = against_ard(-1, REGULARISED, "l2", "l1", centre="median")
lower_error = against_ard(-1, PROPOSED, "l2", "l1")
thresholding_misses_more = against_ard(1, THRESHOLDED, "missed", centre="median")
regularising_misses_fewer = against_ard(-1, REGULARISED, "missed", centre="median")
parsimonious = against_ard(-1, PROPOSED, "added")
higher_error = against_ard(1, PROPOSED, "l2")


SIGNIFICANT_OF_ALL = SIGNIFICANT / len(PROPOSED)
_SIGNIFICANT_TEXT = f"“significant” is p < {SIGNIFICANT:g}/{len(PROPOSED)}"


def _tests_text(tests: dict[str, Paired]) -> str:
    return "against ARD: " + ", ".join(f"{method} {test}" for method, test in tests.items())


def error_not_improved(records: DataFrame) -> Finding:
    """No method has a lower ℓ² error than ARD, by a third or more and not by chance."""
    tests, means = _against(records, PROPOSED, "l2"), method_means(records)["l2"]
    shares = {method: means[method] / means["ARD"] for method in PROPOSED}
    better = [m for m in PROPOSED if shares[m] <= FAR and tests[m].chance < SIGNIFICANT_OF_ALL]
    margin = f"{_SIGNIFICANT_TEXT} and at most {FAR:g} times: {listed(shares, '.2f')}"
    return Finding(not better, _tests_text(tests), margin)


def significantly_more_missed(records: DataFrame) -> Finding:
    """Every method misses significantly more than ARD; not judged where so few trials differ that none could."""
    tests = _against(records, PROPOSED, "missed")
    open_ = {method: test for method, test in tests.items() if not test.chance < SIGNIFICANT_OF_ALL}
    if min(test.mean for test in tests.values()) > 0 and open_:
        changed = {method: int(np.count_nonzero(test.difference)) for method, test in open_.items()}
        # The least two-sided p-value of n differences that are not zero is 2/2^n.
        if all(2.0 ** (1 - n) >= SIGNIFICANT_OF_ALL for n in changed.values()):
            told = f"true of all means, not testable where so few trials differ: {listed(changed, 'd')}"
            return Finding(None, _tests_text(tests), f"{_SIGNIFICANT_TEXT}; {told}")
    true = not open_ and all(test.mean > 0 for test in tests.values())
    return Finding(true, _tests_text(tests), _SIGNIFICANT_TEXT)


def l1_above_l2(records: DataFrame) -> Finding:
    """ℓ² is far below ℓ¹ for every method."""
    means = method_means(records)
    shares = {method: means.loc[method, "l2"] / means.loc[method, "l1"] for method in METHODS}
    return at_most("far", FAR, shares, f"ℓ²/ℓ¹: {listed(shares, '.2f')}")


def dominated_by_added(records: DataFrame) -> Finding | None:
    """More than half of the ℓ¹ error of every method is the coefficients that it added."""
    if "added_l1" not in records:
        return None
    known = records.dropna(subset="added_l1")
    sums = known.groupby("method")[["added_l1", "l1"]].sum().loc[list(METHODS)]
    shares = sums["added_l1"] / sums["l1"]
    text = f"share of the ℓ¹ error in added terms: {listed(shares, '.2f')}"
    return Finding(bool(shares.min() > 0.5), text, f"“dominated” is more than 0.5; turns at {shares.min():.2g}")


@check_of
def group_far_below(
    records: DataFrame, own: Sequence[str], others: Sequence[str], metric: str, word: str = "far"
) -> Finding:
    """Find that the mean over a group of methods is far below that over another one."""
    name = SHORT[metric]
    means, table = method_means(records), by_trial(records, metric)
    one, other = means.loc[list(own), metric], means.loc[list(others), metric]
    far = at_most(word, FAR, {name: one.mean() / other.mean()}, "")
    worst = {name: one.max() / max(other.min(), 1e-9)}
    tests = {name: Paired(table[list(own)].mean(axis=1), table[list(others)].mean(axis=1))}
    margin = f"{far.margin}; worst of the one group against the best of the other: {listed(worst, '.2g')} times"
    return _compared(bool(far.true), _means_text(means, [metric]), tests, -1, margin)


UNTHRESHOLDED = ("ARD", *REGULARISED)
thresholding_has_lower_l2 = group_far_below(THRESHOLDED, UNTHRESHOLDED, "l2")
thresholding_has_lower_l1 = group_far_below(THRESHOLDED, UNTHRESHOLDED, "l1")
sparser_than_ard_and_r = group_far_below(("ARDvi", *THRESHOLDED), ("ARD", "ARDr"), "added", "much")


def thresholding_adds_fewer(records: DataFrame) -> Finding | None:
    """Thresholding methods add far fewer terms than the other three, and miss few more."""
    found = group_far_below(THRESHOLDED, UNTHRESHOLDED, "added")(records)
    if found is None:
        return None
    missed = method_means(records)["missed"]
    more = missed[list(THRESHOLDED)].mean() - missed[list(UNTHRESHOLDED)].mean()
    text = f"{found.evidence}; missed: {listed(missed, '.3g', METHODS)}"
    few = f"“small increase” is less than 2; turns at {more:.2g}"
    return found._replace(true=found.true and bool(more < 2), evidence=text, margin=f"{found.margin}; {few}")


def both_searched_may_help(records: DataFrame) -> Finding | None:
    """ARDr with λ and η searched for is better somewhere than at η = 0.1, on the same trials; "may" cannot be false."""
    wide = f"ARDr, {WIDE}"
    if wide not in set(records["method"]):
        return None
    tests = {
        f"{name}, {told}": _against(part, [wide], metric, "ARDr")[wide]
        for name, part in records.groupby("experiment", sort=False)
        for metric, told in (("wrong", "wrong terms"), ("l2", "ℓ²"))
    }
    better = any(test.mean < 0 and test.chance < SIGNIFICANT / len(tests) for test in tests.values())
    text = ", ".join(f"{name} {test} in {test.difference.size} trials" for name, test in tests.items())
    margin = f"“may” is one of them better at p < {SIGNIFICANT:g}/{len(tests)}; "
    margin += "the wide grid goes on in λ, too, so that the share of η is not known"
    return Finding(True if better else None, f"against λ alone: {text}", margin)


def inflation_misses_no_more(records: DataFrame) -> Finding:
    """ARDvi does not miss significantly more than ARD."""
    test = _against(records, ["ARDvi"], "missed")["ARDvi"]
    more = test.mean > 0 and test.chance < SIGNIFICANT
    return Finding(not more, f"missed by ARDvi against ARD: {test}", f"an increase is p < {SIGNIFICANT:g}")


@check_of
def magnitude_beats(records: DataFrame, metric: str, centre: Centre = "mean") -> Finding:
    """Find that M-STSBL has less of a metric than L and MAP."""
    means = by_trial(records, metric).agg(centre)
    tests = _against(records, THRESHOLDED[1:], metric, "M-STSBL")
    text = f"{centre}s: {listed(means, '.3g', THRESHOLDED)}; mean differences from M: "
    text += ", ".join(f"{m} {test}" for m, test in tests.items())
    true = bool(means["M-STSBL"] < means[list(THRESHOLDED[1:])].min())
    return _compared(true, text, tests, 1, centre=centre)


magnitude_is_sparsest, magnitude_is_nearest = magnitude_beats("wrong"), magnitude_beats("l2")
magnitude_is_nearest_in_the_median = magnitude_beats("l2", "median")


# Errors of y on Lorenz 63: as they are, and what else the corrected variant sets in their place, in words.
ERRORS = {
    "": "errors as they are",
    OF_DIFFERENCES: "without those that noise makes inside the features",
    DIFFERENCED: "Gaussian ones of the same variance that depend on each other as differences of noise do",
    INDEPENDENT: "Gaussian, independent ones",
}


def _on_63(records: DataFrame, criterion: str, kind: str, metric: str) -> DataFrame:
    """Return a count by trial, summed over the three equations, with errors of a kind and strengths by a criterion."""
    rows = records[records["criterion"] == (f"{criterion}, {kind}" if kind else criterion)]
    return by_trial(rows, metric) * 3  # by_trial is the mean of three equations


def _has(records: DataFrame, criteria: Sequence[str], kinds: Sequence[str]) -> bool:
    return {f"{one}, {kind}" if kind else one for one in criteria for kind in kinds} <= set(records["criterion"])


@check_of
def other_errors_do_no_better(records: DataFrame, *kinds: str, decides: bool) -> Finding | None:
    """Find that errors of the first kind leave no substantially smaller number of wrong terms.

    Where they lack more than the sentence is about, a substantial effect `decides` nothing.
    """
    if not _has(records, ["oracle"], ["", *kinds]):
        return None
    tables = {kind: _on_63(records, "oracle", kind, "wrong") for kind in ("", *kinds)}
    left = {m: tables[kinds[0]][m].mean() / max(tables[""][m].mean(), 1e-9) for m in METHODS}
    low, high = min(left.values()), max(left.values())
    test = Paired(tables[kinds[0]][list(METHODS)].mean(axis=1), tables[""][list(METHODS)].mean(axis=1))
    text = ", ".join(f"{m} {' / '.join(f'{one[m].mean():.3g}' for one in tables.values())}" for m in METHODS)
    text = f"wrong terms with {' / '.join(ERRORS[kind] for kind in tables)}: {text}; mean over methods {test}"
    margin = f"an effect is less than {FAR:g} times; {low:.2g} to {high:.2g} are left"
    if low > FAR:
        return Finding(True, text, margin)
    return Finding(False if decides else None, text, f"{margin}, but more is missing: {LACKING}")


noise_inside_does_no_harm = other_errors_do_no_better(OF_DIFFERENCES, decides=True)
errors_do_no_harm = other_errors_do_no_better(DIFFERENCED, INDEPENDENT, decides=False)


def _aicc_adds(records: DataFrame, kind: str) -> DataFrame:
    """Return by trial how many more terms AICc adds than the oracle, on y with errors of a kind."""
    return _on_63(records, "aicc", kind, "added") - _on_63(records, "oracle", kind, "added")


@check_of
def misleads_aicc(records: DataFrame, given: str, lacking: str) -> Finding | None:
    """Find that AICc adds terms because of what errors of one kind have and those of another lack.

    "Due to" is more than half of the terms that AICc adds beyond the oracle, in the mean over the methods.
    """
    kinds = dict.fromkeys(("", given, lacking))
    if not _has(records, ["oracle", "aicc"], list(kinds)):
        return None
    tables = {kind: _aicc_adds(records, kind)[list(PROPOSED)] for kind in kinds}
    test = Paired(tables[given].mean(axis=1), tables[lacking].mean(axis=1))
    share = test.mean / float(tables[""].mean(axis=None))
    text = ", ".join(f"{m} {' / '.join(f'{one[m].mean():.1f}' for one in tables.values())}" for m in PROPOSED)
    text = f"terms that AICc adds beyond the oracle with {' / '.join(ERRORS[kind] for kind in kinds)}: {text}"
    text = f"Lorenz 63 only, corrected: {text}; mean over methods {test}"
    margin = f"“due to” is more than half of them; turns at {share:.2g}"
    return Finding(bool(share > 0.5 and test.chance < SIGNIFICANT), text, margin)


errors_mislead_aicc = misleads_aicc("", INDEPENDENT)
noise_inside_misleads_aicc = misleads_aicc("", OF_DIFFERENCES)


def notable_unlike_linear(records: DataFrame) -> Finding:
    """Thresholding misses more than ARD, by more terms than in the linear example (medians)."""
    more = {}
    for name in TERMS:
        missed = _centres(records[records["experiment"] == name], "median")["missed"]
        more[name] = missed[list(THRESHOLDED)] - missed["ARD"]
    text = "; ".join(f"{name}, of {terms}: {listed(more[name], '+.2g')}" for name, terms in TERMS.items())
    shares = {name: more[name] / terms for name, terms in TERMS.items()}
    larger = shares["fourier"].index[shares["fourier"] > shares["linear"]]
    margin = "“notable” is by more terms than in the linear example; of the true terms these are "
    margin += "; ".join(f"{name}: {listed(share, '.0%')}" for name, share in shares.items())
    margin += f": a larger share for {', '.join(larger) or 'none'}"
    good = bool((more["fourier"] > more["linear"]).all())
    return Finding(good, f"terms missed beyond ARD (medians), {text}", margin)


def best_share_exact(records: DataFrame) -> Finding:
    """No method finds exactly the right terms in more than half of the trials."""
    found = exact(records).loc[list(METHODS)]
    n = found.loc["ARD", "size"]
    share = found["sum"].max() / n
    text = f"exact supports: {listed(found['sum'], 'd')} of {n}"
    return Finding(bool(share <= 0.5), text, f"“well” is more than half; turns at {share:.2g}")


def aicc_adds_terms(records: DataFrame) -> Finding | None:
    """AICc adds terms that the oracle, from the same grid, does not."""
    if not _has(records, ["oracle", "aicc"], [""]):
        return None
    added, oracle = (_on_63(records, criterion, "", "added") for criterion in ("aicc", "oracle"))
    tests = {m: Paired(added[m], oracle[m]) for m in PROPOSED}
    text = ", ".join(f"{m} {added[m].mean():.1f} (by {test} more than the oracle)" for m, test in tests.items())
    return Finding(all(test.mean > 0 for test in tests.values()), f"Lorenz 63 only, corrected: added per trial: {text}")


def sparser_mode_zero(records: DataFrame) -> Finding:
    """Every method adds fewer than ARD, most often none."""
    means = method_means(records)["added"]
    modes = {method: mode(records, method, "added") for method in PROPOSED}
    good = means[list(PROPOSED)].max() < means["ARD"] and not any(modes.values())
    return Finding(bool(good), f"added: {listed(means, '.3g', METHODS)}; modes {listed(modes, 'd')}")


def map_outliers(records: DataFrame) -> Finding:
    """MAP-STSBL has errors as large as the forcing F = 16, which it dropped."""
    worst = records.groupby("method")["l2"].max()
    own = records[records["method"] == "MAP-STSBL"]
    lost = own["l2"] > 15
    text = f"largest ℓ²: {listed(worst, '.3g', ['ARD', 'MAP-STSBL'])}, which loses F in {lost.sum()} of {len(own)}"
    if "start" in own and own["start"].nunique() > 1:
        first = lost[own["start"] == 0]
        text += f" equations, on the authors' start in {first.sum()} of {len(first)}"
    return Finding(bool(lost.any() and worst["MAP-STSBL"] > 2 * worst["ARD"]), text)


def ard_terms_are_small(records: DataFrame) -> Finding | None:
    """Terms that ARD adds are a tenth of the smallest true coefficient, 1, on average."""
    if "added_l1" not in records:
        return None
    own = records[records["method"] == "ARD"]
    size = own["added_l1"].sum() / own["added"].sum()
    text = f"{own['added'].mean():.1f} terms of {size:.2g} on average; the smallest true coefficient is 1"
    return Finding(bool(size <= 0.1), text, f"“small” is at most 0.1; turns at {size:.2g}")


def missed_mode_zero(records: DataFrame) -> Finding:
    """Every method most often misses nothing."""
    modes = {method: mode(records, method, "missed") for method in METHODS}
    none = (records["missed"] == 0).groupby(records["method"]).mean()
    return Finding(not any(modes.values()), f"share of equations with nothing missed: {listed(none, '.0%', METHODS)}")


@check_of
def single_in_some(records: DataFrame, metric: str, methods: Sequence[str]) -> Finding:
    """Find that all of these methods but ARDvi have a count of one in some equation, and ARDvi none."""
    ones = (records[metric] == 1).groupby(records["method"]).sum()
    some = (records[metric] > 0).groupby(records["method"]).sum()
    others = [method for method in methods if method != "ARDvi"]
    text = f"equations with exactly one {metric}: {listed(ones, 'd', methods)} of {records['trial'].nunique()}"
    return Finding(bool(some["ARDvi"] == 0 and ones[others].min() > 0), text)


all_but_inflation_miss_one = single_in_some("missed", METHODS)
all_but_inflation_add_one = single_in_some("added", PROPOSED)


@check_of
def misses(records: DataFrame, method: str, good: Callable[[Series], bool]) -> Finding:
    """Find how often a method misses how many terms."""
    counts = records.loc[records["method"] == method, "missed"].value_counts().sort_index()
    return Finding(good(counts), ", ".join(f"{missed:.0f} missed in {n}" for missed, n in counts.items()))


map_misses_two = misses("MAP-STSBL", lambda counts: 2 in counts.index)
r_misses_all = misses("ARDr", lambda counts: bool(counts.idxmax() == 3))


def size_is_a_barrier(records: DataFrame) -> Finding | None:
    """Σ_y of all rows does not fit into the memory of a usual computer."""
    own = records[records["method"] == "ARD"]
    if not (own["rows"] == "all").any():
        return None
    seconds = own.groupby("rows")["seconds"].mean()
    size = 8 * KS_ROWS**2 / 1e12
    text = f"Σ_y of {KS_ROWS:,} rows takes {size:.1f} TB. That is Alg. 1 as written; the same fixed point from rows "
    text += f"compressed to 25 × 25 takes {seconds['all']:.2g} s, from a sample {seconds['sample']:.2g} s"
    return Finding(size > 0.1, text, "a barrier is 0.1 TB of memory")
