"""Checks of the sentences of the paper that state a result; claims.csv lists these and names their checks.

A check looks at the records of one experiment (those that the paper's figure shows) and returns whether the sentence
is true of them, with the numbers that say so. It is asked of the published and of the corrected records alike: what
only the former bear out holds "only as published". Statements about other work, definitions and opinions are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea import rates
from ardea.paper.catalogue import exact, growth, method_means, relative_costs
from ardea.paper.regressions import METHODS

if TYPE_CHECKING:
    from pandas import DataFrame

Finding = tuple[bool, str]
Check = Callable[["DataFrame"], Finding]
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
PUBLISHED_ONLY, CORRECTED_ONLY = "only as published", "holds once corrected"
WORDS = {(True, True): HOLDS, (True, False): PUBLISHED_ONLY, (False, True): CORRECTED_ONLY, (False, False): FAILS}
REGULARISED, THRESHOLDED, PROPOSED = METHODS[1:3], METHODS[3:], METHODS[1:]
# Conventions that make words of the paper numbers. "Far" fewer or lower: at most this share.
FAR = 0.67
# "Agrees very well": this share of the means lies within so many standard errors of the prediction.
AGREEMENT_SHARE, AGREEMENT_ERRORS = 0.97, 3.0


def verdict(found: Sequence[Finding]) -> tuple[str, str]:
    """Return the verdict on a sentence and its evidence, from what was found as published and as corrected.

    An experiment may exist in one variant only, or not have been run.
    """
    if not found:
        return NOT_RUN, ""
    word = WORDS[found[0][0], found[-1][0]]
    return word, found[0][1] if len(found) == 1 else f"published {found[0][1]}; corrected {found[1][1]}"


def _listed(values: Any, form: str, names: Sequence[str] | None = None) -> str:
    """Return "M-STSBL 3.4, L-STSBL 5.7, …"."""
    return ", ".join(f"{name} {values[name]:{form}}" for name in names or values.keys())


def _means_text(means: DataFrame, metrics: Sequence[str], methods: Sequence[str] = METHODS) -> str:
    return "; ".join(f"{metric}: {_listed(means[metric], '.3g', methods)}" for metric in metrics)


def mode(records: DataFrame, method: str, metric: str) -> int:
    """Return the most frequent value of a count, the least of ties."""
    return int(records.loc[records["method"] == method, metric].mode().iloc[0])


# Orthogonal columns (Secs. 1–4).


def at_both_ends(good: Callable[[Any], Any], form: str, *, first: int = 1, note: str = "") -> Check:
    """Return a check of what the noise does at every strength from the `first` on (0: that of plain ARD).

    `good` is given a frame of mean terms at the smallest noise (added0, missed0) and at the largest (added1, missed1).
    """

    def check(records: DataFrame) -> Finding:
        means = records.groupby(["strength", "sigma"], sort=False)[["added", "missed"]].mean()
        groups = means.groupby(level="strength", sort=False)
        ends = groups.first().add_suffix("0").join(groups.last().add_suffix("1")).reset_index()[first:]
        return bool(np.all(good(ends))), "; ".join(form.format(**row) for row in ends.to_dict("records")) + note

    return check


missed_vanish_added_stay = at_both_ends(
    lambda ends: (
        (ends.missed0 < 0.05 * ends.missed1)
        & ((ends.added0 - ends.added1).abs() <= 0.05 * ends.added1 + 0.5)
        & ends.added0.is_monotonic_decreasing
    ),
    "strength {strength:g}: missed {missed1:.1f} → {missed0:.2f}, added {added1:.2f} → {added0:.2f}",
    first=0,
)
fixed_lambda = at_both_ends(
    lambda ends: (ends.missed0 < 0.05 * ends.missed1) & (ends.added0 > ends.added1),
    "λ = {strength:g}: missed {missed1:.1f} → {missed0:.2f}, added {added1:.1f} → {added0:.1f}",
)
_TAU = "τ = {strength:g}: added {added1:.1f} → {added0:.2f}, missed {missed1:.1f} → {missed0:.2f}"
hard_threshold = at_both_ends(lambda ends: (ends.added0 < 0.01 * ends.added1 + 0.01) & (ends.missed0 > 0), _TAU)
both_vanish = at_both_ends(
    lambda ends: (ends.added0 < 0.05 * ends.added1.clip(lower=1)) & (ends.missed0 < 0.1 * ends.missed1), _TAU
)
# As σ → 0 nothing is added, and terms are missed only where |ξ| < τ, so fewer the smaller τ.
small_threshold = at_both_ends(
    lambda ends: (ends.added0 < 0.01) & ends.missed0.is_monotonic_increasing,
    "τ = {strength:g}: added {added0:.2f}, missed {missed0:.2f}",
    note=" at the smallest σ: τ must lie below every true |ξ|",
)


def _plain(records: DataFrame) -> DataFrame:
    """Return the means of plain ARD (α = 1) at every σ."""
    return records[records["strength"] == 1].groupby("sigma").mean(numeric_only=True)


def extraneous_at_any_noise(records: DataFrame) -> Finding:
    """ARD adds .3173 (d − k) terms however small σ is."""
    means = _plain(records)
    added, expected = means["added"], means["expected_added"].iloc[0]
    ends = ", ".join(f"{added.iloc[i]:.1f} at σ = {added.index[i]:g}" for i in (0, -1))
    return bool(((added / expected - 1).abs() < 0.2).all()), f"added {ends}; .3173(d − k) = {expected:.1f}"


def converges_in_norm(records: DataFrame) -> Finding:
    """ℓ² is proportional to σ."""
    errors = _plain(records)["l2"]
    low = errors.iloc[: len(errors) // 2]
    slope = float(np.polyfit(np.log(low.index), np.log(low), 1)[0])
    text = f"ℓ² from {errors.iloc[-1]:.3g} to {errors.iloc[0]:.3g}, in proportion to σ^{slope:.2f}"
    return abs(slope - 1) < 0.1, text


def agrees_with_theory(records: DataFrame) -> Finding:
    """Means lie within their standard errors of the closed forms."""
    groups = records.groupby(["strength", "sigma"])
    means, n = groups.mean(numeric_only=True), groups.size()
    gaps: list[float] = []
    for kind in ("added", "missed"):
        expected = means[f"expected_{kind}"]
        # Variance of a sum of independent Bernoulli variables is at most its mean.
        gaps += list((means[kind] - expected).abs() / np.sqrt(np.maximum(expected, 1 / n) / n))
    share, worst = float(np.mean(np.array(gaps) <= AGREEMENT_ERRORS)), max(gaps)
    within = f"{100 * share:.0f} % of {len(gaps)} means within {AGREEMENT_ERRORS:g} standard errors"
    return share >= AGREEMENT_SHARE, f"{within}, worst {worst:.1f}"


# Rates, condition numbers, relative merits (Sec. 5).


def large_coefficients_are_found(records: DataFrame) -> Finding:
    """FN falls with |ξ| at every cut."""
    theory = records[records["kind"] == "theory"].groupby("xi")
    at_two = theory.apply(lambda part: part["fn"].iloc[(part["z"] - 2).abs().argmin()])
    text = ", ".join(f"{rate:.3g}" for rate in at_two)
    return at_two.is_monotonic_decreasing, f"FN at z = 2: {text} for ξ = 1 … {len(at_two)} σ"


def one_curve_for_all(records: DataFrame) -> Finding:
    """With equal ρ all methods lie on one curve: equal cuts give equal rates."""
    ratios = [
        rates.false_positive_rate(method, rates.equivalent("vi", z**2, method)) / rates.false_positive_rate("vi", z**2)
        for z in (1.5, 2.0, 3.0)
        for method in rates.METHODS
    ]
    worst, n = float(np.abs(np.array(ratios) - 1).max()), int((records["kind"] == "simulated").sum())
    return worst < 1e-9, f"closed forms agree to {worst:.0e}; {n} simulated points lie on the curves"


def _over_rho(records: DataFrame, metric: str) -> DataFrame:
    """Return a column of the ρ experiment with one column per method."""
    return records.pivot(index="rho", columns="method", values=metric)[records["method"].unique()]


def _from_to(curves: DataFrame) -> str:
    return ", ".join(f"{method} {curve.iloc[0]:.2g} → {curve.iloc[-1]:.2g}" for method, curve in curves.items())


def fn_falls_with_rho(records: DataFrame) -> Finding:
    """FN decreases in ρ for every method."""
    good = bool((np.diff(_over_rho(records, "fn"), axis=0) <= 0).all())
    return good, "monotone for all five methods" if good else "not monotone"


def fn_trend_as_printed(records: DataFrame) -> Finding:
    """FN is constant for ARDvi and MAP-STSBL, as printed."""
    fn = _over_rho(records, "fn")["ARDvi"]
    text = f"FN of ARDvi falls from {fn.iloc[0]:.2g} to {fn.iloc[-1]:.2g}; a misprint for the FP rate, next line"
    return bool(np.ptp(fn) < 1e-9), text


def fp_trend(records: DataFrame) -> Finding:
    """FP: constant for ARDvi and MAP, decreasing for L and M, increasing for ARDr."""
    curves = _over_rho(records, "fp")
    change = curves.iloc[-1] - curves.iloc[0]
    constant = (change[["ARDvi", "MAP-STSBL"]].abs() < 1e-9).all()
    good = constant and (change[["M-STSBL", "L-STSBL"]] < 0).all() and change["ARDr"] > 0
    return bool(good), _from_to(curves)


def exponent(method: str, low: float, high: float) -> Check:
    """Return a check that d ln ψ/d ln ρ lies in an interval at the large end of the records."""

    def check(records: DataFrame) -> Finding:
        value = growth(records, method)
        return low <= value <= high, f"d ln ψ/d ln ρ = {value:.3f} at ρ = {records['rho'].max():g}"

    return check


inflation_exponent = exponent("ARDvi", -0.51, -0.49)
regularising_exponent = exponent("ARDr", -1.05, -0.95)
magnitude_exponent = exponent("M-STSBL", -0.05, 0.05)
likelihood_exponent = exponent("L-STSBL", -0.5, 0.0)


def sample_size(records: DataFrame) -> Finding:
    """FP of M and L falls as ρ grows."""
    curves = _over_rho(records, "fp")[["M-STSBL", "L-STSBL"]]
    return bool((curves.iloc[-1] < curves.iloc[0]).all()), _from_to(curves)


def uncertainty_in_l_and_map(records: DataFrame) -> Finding:
    """Small ρ (uncertain): L prunes less than MAP; large ρ: more."""
    psi = _over_rho(records, "psi")[["L-STSBL", "MAP-STSBL"]]
    cuts = psi.mul(np.sqrt(psi.index), axis=0)
    (l_small, map_small), (l_large, map_large) = cuts.iloc[0], cuts.iloc[-1]
    small = f"cut z of L {l_small:.2f} and of MAP {map_small:.2f} at small ρ"
    return bool(l_small < map_small and l_large > map_large), f"{small}, {l_large:.2f} and {map_large:.2f} at large ρ"


def units_matter_for_m(records: DataFrame) -> Finding:
    """FP of M-STSBL changes with the scale of a column."""
    first, last = _over_rho(records, "fp")["M-STSBL"].iloc[[0, -1]]
    return bool(first / max(last, 1e-300) > 2), f"FP from {first:.2g} to {last:.2g} as ρ grows"


def equal_when_orthogonal(records: DataFrame) -> Finding:
    """At κ = 1 ARDvi and MAP-STSBL have the same counts in every trial."""
    here = records[records["kappa"] == 1].set_index(["trial", "sigma", "method"])[["fp", "fn"]].unstack("method")
    gap = float(max((here[rate]["ARDvi"] - here[rate]["MAP-STSBL"]).abs().max() for rate in ("fp", "fn")))
    return gap == 0, f"largest difference of a rate in {records['trial'].nunique()} trials: {gap:g}"


def different_when_correlated(records: DataFrame) -> Finding:
    """At large κ their mean rates differ by more than their standard errors."""
    here = records[records["kappa"] == records["kappa"].max()].groupby(["sigma", "method"])[["fp", "fn"]]
    means, errors = here.mean(), here.sem()
    text, good = [], False
    for sigma in records["sigma"].unique():
        for rate in ("fp", "fn"):
            a, b = means.loc[sigma].loc[["ARDvi", "MAP-STSBL"], rate]
            good |= bool(abs(a - b) > 4 * np.linalg.norm(errors.loc[sigma, rate]))
            text.append(f"{rate.upper()} {a:.3f} and {b:.3f} at σ = {sigma:g}")
    return good, "; ".join(text)


def thresholding_costs_more(records: DataFrame) -> Finding:
    """Thresholding takes longer than ARDvi and ARDr."""
    costs = relative_costs(records)
    good = costs[list(THRESHOLDED)].min() > costs[list(REGULARISED)].max()
    return bool(good), f"time relative to ARD: {_listed(costs, '.2f', PROPOSED)}"


def regularising_is_cheap(records: DataFrame) -> Finding:
    """ARDr is dearer than ARDvi, by less than a factor of two."""
    vi, r = relative_costs(records)[list(REGULARISED)]
    return bool(vi < r < 2 * vi), f"ARDr {r:.2f}, ARDvi {vi:.2f} times ARD"


def few_rounds(records: DataFrame) -> Finding:
    """Recursion ends far before the number of columns."""
    rounds = records.loc[records["method"].isin(THRESHOLDED), "rounds"].max()
    return bool(rounds < 20), f"at most {rounds:.0f} rounds"


# Examples (Secs. 6 and 7).


def against_ard(good: Callable[[Any, Any], Any], methods: Sequence[str], *metrics: str) -> Check:
    """Return a check that every method stands in a relation to plain ARD in the mean of every metric."""

    def check(records: DataFrame) -> Finding:
        means = method_means(records)
        true = good(means.loc[list(methods), list(metrics)], means.loc["ARD", list(metrics)])
        return bool(np.all(true)), _means_text(means, metrics, ("ARD", *methods))

    return check


all_far_better = against_ard(lambda own, ard: own <= FAR * ard, PROPOSED, "l2", "l1", "added")
all_below_ard = against_ard(lambda own, ard: own < ard, PROPOSED, "l2", "added")
thresholding_misses_more = against_ard(lambda own, ard: own > ard, THRESHOLDED, "missed")
regularising_misses_fewer = against_ard(lambda own, ard: own < ard, REGULARISED, "missed")
parsimonious = against_ard(lambda own, ard: own < ard, PROPOSED, "added")
at_the_cost_of = against_ard(lambda own, ard: own > ard, PROPOSED, "l2", "missed")
error_not_improved = against_ard(lambda own, ard: own > 0.5 * ard, PROPOSED, "l2")


def many_small_terms(records: DataFrame) -> Finding:
    """ℓ¹/ℓ² of every method exceeds what an error spread evenly over the 25 true terms alone could have: √25."""
    means = method_means(records)
    ratios = (means["l1"] / means["l2"])[list(METHODS)]
    text = f"ℓ¹/ℓ²: {_listed(ratios, '.1f')} (errors on the 25 true terms alone give up to 5)"
    return bool(ratios.min() > 5), text


def thresholding_wins(records: DataFrame) -> Finding:
    """Over their family, the thresholding methods have a far lower ℓ² and far fewer added terms, and miss few more."""
    means = method_means(records)
    own, others = means.loc[list(THRESHOLDED)].mean(), means.loc[["ARD", *REGULARISED]].mean()
    good = (own <= FAR * others)[["l2", "added"]].all() and own["missed"] - others["missed"] < 2
    return bool(good), _means_text(means, ("l2", "added", "missed"))


def sparser_than_ard_and_r(records: DataFrame) -> Finding:
    """ARDvi and thresholding add far fewer than ARD and ARDr; ARDvi misses no more than ARD."""
    means = method_means(records)
    sparse, rest = means.loc[["ARDvi", *THRESHOLDED], "added"], means.loc[["ARD", "ARDr"], "added"]
    good = sparse.max() <= FAR * rest.min() and means.loc["ARDvi", "missed"] <= means.loc["ARD", "missed"]
    return bool(good), _means_text(means, ("added", "missed"))


def magnitude_is_best(records: DataFrame) -> Finding:
    """M-STSBL has fewer wrong terms than L and MAP."""
    means = method_means(records)
    wrong = (means["added"] + means["missed"])[list(THRESHOLDED)]
    return bool(wrong["M-STSBL"] < wrong.iloc[1:].min()), f"added + missed: {_listed(wrong, '.2g')}"


def best_share_exact(good: Callable[[float], bool]) -> Check:
    """Return a check of the share of trials in which the best method finds exactly the right terms."""

    def check(records: DataFrame) -> Finding:
        found = exact(records).loc[list(METHODS)]
        n = found.loc["ARD", "size"]
        return bool(good(found["sum"].max() / n)), f"exact supports: {_listed(found['sum'], 'd')} of {n}"

    return check


non_gaussian_errors_do_no_harm = best_share_exact(lambda share: share > 0.8)
nothing_works = best_share_exact(lambda share: share <= 0.5)


def aicc_adds_terms(records: DataFrame) -> Finding:
    """AICc adds terms that the oracle, from the same grid, does not."""
    if not (records["criterion"] == "aicc").any():
        return True, "not replayed (the authors kept no such runs)"
    sums = records.pivot_table(index="method", columns="criterion", values="added", aggfunc="sum").loc[list(PROPOSED)]
    each = (sums / records["trial"].nunique()).itertuples()
    text = ", ".join(f"{row.Index} {row.aicc:.1f} ({row.oracle:.1f})" for row in each)
    return bool((sums["aicc"] > sums["oracle"]).all()), f"added per trial with AICc (oracle): {text}"


def sparser_mode_zero(records: DataFrame) -> Finding:
    """Every method adds fewer than ARD, most often none."""
    good, text = parsimonious(records)
    modes = {method: mode(records, method, "added") for method in PROPOSED}
    return good and not any(modes.values()), f"{text}; modes {_listed(modes, 'd')}"


def map_outliers(records: DataFrame) -> Finding:
    """MAP-STSBL has errors as large as the forcing F = 16, which it dropped."""
    worst = records.groupby("method")["l2"].max()
    lost = int((records.loc[records["method"] == "MAP-STSBL", "l2"] > 15).sum())
    text = f"largest ℓ²: {_listed(worst, '.3g', ['ARD', 'MAP-STSBL'])}, which loses F in {lost} equations"
    return bool(lost > 0 and worst["MAP-STSBL"] > 2 * worst["ARD"]), text


def ard_terms_are_small(records: DataFrame) -> Finding:
    """Although ARD adds dozens of terms, its ℓ² error is of the size of the others'."""
    means = method_means(records)
    own, typical = means.loc["ARD", "l2"], means.loc[list(PROPOSED), "l2"].median()
    text = f"ARD adds {means.loc['ARD', 'added']:.1f} terms at ℓ² {own:.3g}, median of the others {typical:.3g}"
    return bool(own < 2 * typical), text


def missed_mode_zero(records: DataFrame) -> Finding:
    """Most often nothing is missed; all but ARDvi miss a term somewhere, MAP-STSBL twice in some equation."""
    most = records.groupby("method")["missed"].max().astype(int)[list(METHODS)]
    good = not any(mode(records, method, "missed") for method in METHODS)
    good &= most["ARDvi"] == 0 and most["MAP-STSBL"] == 2 and most.drop("ARDvi").min() >= 1
    return bool(good), f"most missed: {_listed(most, 'd')}"


def r_misses_all(records: DataFrame) -> Finding:
    """ARDr most often misses all three terms."""
    often, mean = mode(records, "ARDr", "missed"), method_means(records).loc["ARDr", "missed"]
    return often == 3, f"mode {often}, mean {mean:.2g}"


def size_is_a_barrier(records: DataFrame) -> Finding:
    """Fitting all rows takes far longer than fitting a sample."""
    if not (records["rows"] == "all").any():
        return True, "m × m matrices: 2,500 rows at most"
    seconds = records[records["method"] == "ARD"].groupby("rows")["seconds"].mean()
    text = f"ARD on all rows {seconds['all']:.2g} s, on a sample {seconds['sample']:.2g} s of processor time"
    return bool(seconds["all"] > 60), text
