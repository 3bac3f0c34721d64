"""Checks of the sentences of Secs. 6 and 7 that state a result; claims.csv names them.

A check is asked of the authors' own records (of the replay of their code where theirs lack something) and of the
corrected ones: what only the former bear out holds "only as published". It returns None where records lack what the
sentence is about. One rule for words that compare: "fewer", "lower", "more", "higher" are judged by means over the
trials (in Sec. 6.2 by medians); the margin names what a paired test does not bear out, and the verdict then is "not
significantly". "Far", "much" and "substantially" ask for at most two thirds. "Significantly", and every denial ("no
increase"), is judged by the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ardea.paper.experiment import METHODS
from ardea.paper.inference import (
    SIGNIFICANT,
    Check,
    Finding,
    Paired,
    at_most,
    by_trial,
    chance_text,
    exact,
    method_means,
    mode,
)
from ardea.paper.regressions import DIFFERENCED, INDEPENDENT, METRICS, OF_DIFFERENCES, WIDE
from ardea.paper.tables import listed
from ardea.paper.theory_claims import FAR, PROPOSED, REGULARISED, THRESHOLDED

if TYPE_CHECKING:
    from pandas import DataFrame

Centre = Literal["mean", "median"]
# Rows of the field of Sec. 6.5: 512 points at 1072 times.
KS_ROWS = 512 * 1072
# True terms of the examples of Secs. 6.1 and 6.2.
TERMS = {"linear": 25, "fourier": 50}


def _centres(records: DataFrame, centre: Centre) -> DataFrame:
    """Return means or medians of the four metrics, one row per method."""
    return records.groupby("method")[list(METRICS)].agg(centre)


def _means_text(means: DataFrame, metrics: Sequence[str], methods: Sequence[str] = METHODS) -> str:
    return "; ".join(f"{metric}: {listed(means[metric], '.3g', methods)}" for metric in metrics)


def _empty(records: DataFrame) -> str:
    """Return how often methods of the Fourier example return the empty model, where they do."""
    empty = records[(records["added"] == 0) & (records["missed"] == TERMS["fourier"]) & records["method"].isin(METHODS)]
    n = records["trial"].nunique()
    return "".join(f"; {method} is empty in {count} of {n}" for method, count in empty.groupby("method").size().items())


def _compared(true: bool, text: str, tests: dict[str, Paired]) -> Finding:
    """Find what means say, and name the differences that a paired test does not bear out."""
    weak = [f"{name} ({chance_text(test.chance)})" for name, test in tests.items() if not test.chance < SIGNIFICANT]
    if not true or not weak:
        return Finding(true, text)
    return Finding(true, text, f"not significant by itself: {', '.join(weak)}", firm=False)


def _against(records: DataFrame, methods: Sequence[str], metric: str, other: str = "ARD") -> dict[str, Paired]:
    """Return the paired differences of some methods from another one."""
    table = by_trial(records, metric)
    return {method: Paired(table[method], table[other]) for method in methods}


def far_below_ard(methods: Sequence[str], *metrics: str, centre: Centre = "mean", word: str = "far") -> Check:
    """Return a check that every method has far less of every metric than plain ARD."""

    def check(records: DataFrame) -> Finding:
        found = _centres(records, centre)
        shares = found.loc[list(methods), list(metrics)] / found.loc["ARD", list(metrics)]
        values = {f"{method}, {metric}": shares.loc[method, metric] for method in methods for metric in metrics}
        text = _means_text(found, metrics, ("ARD", *methods))
        return at_most(word, FAR, values, f"medians: {text}{_empty(records)}" if centre == "median" else text)

    return check


def against_ard(sign: int, methods: Sequence[str], *metrics: str, centre: Centre = "mean") -> Check:
    """Return a check that every method has more (sign 1) or less (−1) of every metric than plain ARD."""

    def check(records: DataFrame) -> Finding:
        found = _centres(records, centre)
        gaps = sign * (found.loc[list(methods), list(metrics)] - found.loc["ARD", list(metrics)])
        tests = {f"{m} {metric}": test for metric in metrics for m, test in _against(records, methods, metric).items()}
        text = "mean differences from ARD: " + ", ".join(f"{name} {test}" for name, test in tests.items())
        if centre == "median":
            text = f"medians: {_means_text(found, metrics, ('ARD', *methods))}; {text}"
        true = bool((gaps > 0).all(axis=None))
        return _compared(true, text, tests)

    return check


all_far_better = far_below_ard(PROPOSED, "l2", "l1", "added", centre="median")
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


def _significant(sign: int, metric: str, *, all_of_them: bool) -> Check:
    """Return a check that every method, or none, differs from ARD in one direction by a paired test."""

    def check(records: DataFrame) -> Finding:
        bound = SIGNIFICANT / len(PROPOSED)
        tests = _against(records, PROPOSED, metric)
        found = [sign * test.mean > 0 and test.chance < bound for test in tests.values()]
        text = "against ARD: " + ", ".join(f"{method} {test}" for method, test in tests.items())
        true = all(found) if all_of_them else not any(found)
        return Finding(true, text, f"“significant” is p < {SIGNIFICANT:g}/{len(PROPOSED)}")

    return check


error_not_improved = _significant(-1, "l2", all_of_them=False)
significantly_more_missed = _significant(1, "missed", all_of_them=True)


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
    return Finding(bool(shares.min() > 0.5), text, f"“dominated” is more than .5; turns at {shares.min():.2g}")


def thresholding_wins(records: DataFrame) -> Finding:
    """Over their family, thresholding methods have far lower errors, far fewer added terms, and miss few more."""
    means = method_means(records)
    own, others = means.loc[list(THRESHOLDED)].mean(), means.loc[["ARD", *REGULARISED]].mean()
    shares = dict((own / others)[["l2", "l1", "added"]])
    found = at_most("far", FAR, shares, _means_text(means, ("l2", "l1", "added", "missed")))
    more = own["missed"] - others["missed"]
    few = f"“small increase” is less than 2; turns at {more:.2g}"
    return Finding(found.true and bool(more < 2), found.evidence, f"{found.margin}; {few}")


def sparser_than_ard_and_r(records: DataFrame) -> Finding:
    """ARDvi and thresholding add far fewer than ARD and ARDr."""
    means = method_means(records)["added"]
    rest = means[["ARD", "ARDr"]].min()
    shares = {method: means[method] / rest for method in ("ARDvi", *THRESHOLDED)}
    return at_most("much", FAR, shares, f"added: {listed(means, '.3g', METHODS)}")


def both_searched_beats(metric: str) -> Check:
    """Return a check that ARDr with λ and η searched for has less of a metric than at η = 0.1, on the same trials."""

    def check(records: DataFrame) -> Finding | None:
        wide = f"ARDr, {WIDE}"
        if wide not in set(records["method"]):
            return None
        test = _against(records, [wide], metric, "ARDr")[wide]
        text = f"{metric} {test} against λ alone, {len(test.difference)} trials"
        return _compared(test.mean < 0, text, {"the difference": test})

    return check


both_searched_is_sparser, both_searched_is_nearer = both_searched_beats("wrong"), both_searched_beats("l2")


def inflation_misses_no_more(records: DataFrame) -> Finding:
    """ARDvi does not miss significantly more than ARD."""
    test = _against(records, ["ARDvi"], "missed")["ARDvi"]
    more = test.mean > 0 and test.chance < SIGNIFICANT
    return Finding(not more, f"missed by ARDvi against ARD: {test}", f"an increase is p < {SIGNIFICANT:g}")


def magnitude_beats(metric: str) -> Check:
    """Return a check that M-STSBL has less of a metric than L and MAP."""

    def check(records: DataFrame) -> Finding:
        means = by_trial(records, metric).mean()
        tests = _against(records, THRESHOLDED[1:], metric, "M-STSBL")
        text = f"{listed(means, '.3g', THRESHOLDED)}; against M: "
        text += ", ".join(f"{m} {test}" for m, test in tests.items())
        true = bool(means["M-STSBL"] < means[list(THRESHOLDED[1:])].min())
        return _compared(true, text, tests)

    return check


magnitude_is_sparsest, magnitude_is_nearest = magnitude_beats("wrong"), magnitude_beats("l2")


def _wrong_by_errors(records: DataFrame, kind: str) -> DataFrame | None:
    """Return wrong terms by trial, summed over the three equations, with errors of a kind (none: those of y)."""
    rows = records[records["criterion"] == (f"oracle, {kind}" if kind else "oracle")]
    return by_trial(rows, "wrong") * 3 if len(rows) else None  # by_trial is the mean of three equations


def errors_do_no_harm(records: DataFrame) -> Finding | None:
    """Wrong terms are no more than without the error that noise inside the features makes."""
    real, *others = (_wrong_by_errors(records, kind) for kind in ("", OF_DIFFERENCES, DIFFERENCED, INDEPENDENT))
    if real is None or any(one is None for one in others):
        return None
    tables = [real, *(one for one in others if one is not None)]
    pairs = {m: Paired(real[m], tables[1][m]) for m in METHODS}
    worse = [test.mean > 0 and test.chance < SIGNIFICANT / len(METHODS) for test in pairs.values()]
    text = ", ".join(f"{m} {' / '.join(f'{one[m].mean():.3g}' for one in tables)} ({pairs[m]})" for m in METHODS)
    told = "wrong terms / with the errors of differences alone / with Gaussian ones as dependent as these / "
    less = [1 - tables[1][m].mean() / max(real[m].mean(), 1e-9) for m in METHODS]
    margin = f"“significantly” is p < {SIGNIFICANT:g}/{len(METHODS)} for any method; the effect is "
    margin += f"{100 * min(less):.0f} to {100 * max(less):.0f} % of the wrong terms"
    return Finding(not any(worse), f"{told}with independent ones (first less second): {text}", margin)


def errors_mislead_aicc(records: DataFrame) -> Finding | None:
    """With Gaussian, independent errors AICc adds fewer terms beyond the oracle than with those of differences."""
    real, free = _aicc_adds(records, ""), _aicc_adds(records, INDEPENDENT)
    if real is None or free is None:
        return None
    tests = {m: Paired(free[m], real[m]) for m in PROPOSED}
    text = ", ".join(f"{m} {real[m].mean():.1f} ({free[m].mean():.1f}; {tests[m]})" for m in PROPOSED)
    text = f"terms that AICc adds beyond the oracle (with Gaussian, independent errors; difference): {text}"
    true = all(test.mean < 0 for test in tests.values())
    return _compared(true, text, tests)


def _aicc_adds(records: DataFrame, kind: str) -> DataFrame | None:
    """Return by trial how many more terms AICc adds than the oracle, on y with errors of a kind."""
    names = [f"{criterion}, {kind}" if kind else criterion for criterion in ("aicc", "oracle")]
    if not set(names) <= set(records["criterion"]):
        return None
    aicc, oracle = (by_trial(records[records["criterion"] == name], "added") * 3 for name in names)
    return aicc - oracle


def notable_unlike_linear(records: DataFrame) -> Finding:
    """Thresholding misses more than ARD, by more terms than in the linear example."""
    more = {}
    for name in TERMS:
        missed = _centres(records[records["experiment"] == name], "median" if name == "fourier" else "mean")["missed"]
        more[name] = missed[list(THRESHOLDED)] - missed["ARD"]
    text = "; ".join(f"{name}, of {terms}: {listed(more[name], '+.2g')}" for name, terms in TERMS.items())
    good = bool((more["fourier"] > more["linear"]).all())
    margin = "“notable” is by more terms than in the linear example; the shares of the true terms are alike"
    return Finding(good, f"terms missed beyond ARD, {text}", margin)


def best_share_exact(records: DataFrame) -> Finding:
    """No method finds exactly the right terms in more than half of the trials."""
    found = exact(records).loc[list(METHODS)]
    n = found.loc["ARD", "size"]
    share = found["sum"].max() / n
    text = f"exact supports: {listed(found['sum'], 'd')} of {n}"
    return Finding(bool(share <= 0.5), text, f"“well” is more than half; turns at {share:.2g}")


def aicc_adds_terms(records: DataFrame) -> Finding | None:
    """AICc adds terms that the oracle, from the same grid, does not."""
    if not (records["criterion"] == "aicc").any():
        return None
    tables = {kind: by_trial(records[records["criterion"] == kind], "added") * 3 for kind in ("aicc", "oracle")}
    tests = {m: Paired(tables["aicc"][m], tables["oracle"][m]) for m in PROPOSED}
    text = ", ".join(
        f"{m} {tables['aicc'][m].mean():.1f} (by {test} more than the oracle)" for m, test in tests.items()
    )
    return Finding(all(test.mean > 0 for test in tests.values()), f"added per trial: {text}")


def sparser_mode_zero(records: DataFrame) -> Finding:
    """Every method adds fewer than ARD, most often none."""
    means = method_means(records)["added"]
    modes = {method: mode(records, method, "added") for method in PROPOSED}
    good = means[list(PROPOSED)].max() < means["ARD"] and not any(modes.values())
    return Finding(bool(good), f"added: {listed(means, '.3g', METHODS)}; modes {listed(modes, 'd')}")


def map_outliers(records: DataFrame) -> Finding:
    """MAP-STSBL has errors as large as the forcing F = 16, which it dropped."""
    worst = records.groupby("method")["l2"].max()
    lost = int((records.loc[records["method"] == "MAP-STSBL", "l2"] > 15).sum())
    text = f"largest ℓ²: {listed(worst, '.3g', ['ARD', 'MAP-STSBL'])}, which loses F {lost} times"
    return Finding(bool(lost > 0 and worst["MAP-STSBL"] > 2 * worst["ARD"]), text)


def ard_terms_are_small(records: DataFrame) -> Finding | None:
    """Terms that ARD adds are a tenth of the smallest true coefficient, 1, on average."""
    if "added_l1" not in records:
        return None
    own = records[records["method"] == "ARD"]
    size = own["added_l1"].sum() / own["added"].sum()
    text = f"{own['added'].mean():.1f} terms of {size:.2g} on average; the smallest true coefficient is 1"
    return Finding(bool(size <= 0.1), text, f"“small” is at most .1; turns at {size:.2g}")


def missed_mode_zero(records: DataFrame) -> Finding:
    """Every method most often misses nothing."""
    modes = {method: mode(records, method, "missed") for method in METHODS}
    none = (records["missed"] == 0).groupby(records["method"]).mean()
    return Finding(not any(modes.values()), f"share of equations with nothing missed: {listed(none, '.0%', METHODS)}")


def single_in_some(metric: str, methods: Sequence[str]) -> Check:
    """Return a check that all of these methods but ARDvi have a count of one in some equation, and ARDvi none."""

    def check(records: DataFrame) -> Finding:
        ones = (records[metric] == 1).groupby(records["method"]).sum()
        some = (records[metric] > 0).groupby(records["method"]).sum()
        others = [method for method in methods if method != "ARDvi"]
        text = f"equations with exactly one {metric}: {listed(ones, 'd', methods)} of {records['trial'].nunique()}"
        return Finding(bool(some["ARDvi"] == 0 and ones[others].min() > 0), text)

    return check


all_but_inflation_miss_one = single_in_some("missed", METHODS)
all_but_inflation_add_one = single_in_some("added", PROPOSED)


def map_misses_two(records: DataFrame) -> Finding:
    """MAP-STSBL misses two terms in some equation."""
    counts = records.loc[records["method"] == "MAP-STSBL", "missed"].value_counts().sort_index()
    text = ", ".join(f"{missed:.0f} missed in {n}" for missed, n in counts.items())
    return Finding(bool((counts.index == 2).any()), text)


def r_misses_all(records: DataFrame) -> Finding:
    """ARDr most often misses all three terms."""
    counts = records.loc[records["method"] == "ARDr", "missed"].value_counts().sort_index()
    text = ", ".join(f"{missed:.0f} missed in {n}" for missed, n in counts.items())
    return Finding(mode(records, "ARDr", "missed") == 3, text)


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
