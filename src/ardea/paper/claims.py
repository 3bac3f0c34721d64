"""Checks of the sentences of the paper that state a result; claims.csv lists these and names their checks.

A check looks at the records of one experiment and returns whether the sentence is true of them, the numbers that say so
and, where a word of the sentence had to be made a number, that number and where the verdict would turn. It returns None
where records lack what the sentence is about. It is asked of the authors' own records (of the replay of their code
where theirs lack something) and of the corrected ones: what only the former bear out holds "only as published".
Statements about other work, definitions, expectations and opinions are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea import rates
from ardea.paper.regressions import METHODS, WIDE
from ardea.paper.tables import (
    AGREEMENT_ERRORS,
    SIGNIFICANT,
    Check,
    Finding,
    Paired,
    at_most,
    by_trial,
    distances,
    exact,
    growth,
    method_means,
    mode,
    relative_costs,
)

if TYPE_CHECKING:
    from pandas import DataFrame


REGULARISED, THRESHOLDED, PROPOSED = METHODS[1:3], METHODS[3:], METHODS[1:]
# Conventions that make words of the paper numbers. "Far" or "much" fewer or lower: at most this share.
FAR = 0.67
# "Agrees very well": this share of the means lies within so many standard errors of the prediction.
AGREEMENT_SHARE = 0.97


def _listed(values: Any, form: str, names: Sequence[str] | None = None) -> str:
    """Return "M-STSBL 3.4, L-STSBL 5.7, …"."""
    return ", ".join(f"{name} {values[name]:{form}}" for name in names or values.keys())


def _means_text(means: DataFrame, metrics: Sequence[str], methods: Sequence[str] = METHODS) -> str:
    return "; ".join(f"{metric}: {_listed(means[metric], '.3g', methods)}" for metric in metrics)


# Orthogonal columns (Secs. 1–5).


def at_both_ends(good: Callable[[Any], Any], form: str, *, first: int = 1, note: str = "") -> Check:
    """Return a check of what the noise does at every strength from the `first` on (0: that of plain ARD).

    `good` is given a frame of mean terms at the smallest noise (added0, missed0) and at the largest (added1, missed1),
    and the number of trials (n).
    """

    def check(records: DataFrame) -> Finding:
        means = records.groupby(["strength", "sigma"], sort=False)[["added", "missed"]].mean()
        groups = means.groupby(level="strength", sort=False)
        ends = groups.first().add_suffix("0").join(groups.last().add_suffix("1")).reset_index()[first:]
        true = bool(np.all(good(ends.assign(n=records["trial"].nunique()))))
        return Finding(true, "; ".join(form.format(**row) for row in ends.to_dict("records")) + note)

    return check


# Means of n sums of independent events differ by more than 3 standard errors in one case of 370.
missed_vanish_added_stay = at_both_ends(
    lambda ends: (
        (ends.missed0 < 0.05 * ends.missed1)
        & ((ends.added0 - ends.added1).abs() <= 3 * np.sqrt((ends.added0 + ends.added1).clip(lower=1) / ends.n))
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
    lambda ends: (ends.added0 < 0.05) & ends.missed0.is_monotonic_increasing,
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
    worst = float((added / expected - 1).abs().max())
    ends = ", ".join(f"{added.iloc[i]:.1f} at σ = {added.index[i]:g}" for i in (0, -1))
    return Finding(worst < 0.2, f"added {ends}; .3173(d − k) = {expected:.1f}; largest deviation {100 * worst:.0f} %")


def converges_in_norm(records: DataFrame) -> Finding:
    """ℓ² is proportional to σ."""
    errors = _plain(records)["l2"]
    low = errors[errors.index < 0.2]  # below the size of most coefficients
    slope = float(np.polyfit(np.log(low.index), np.log(low), 1)[0])
    text = f"ℓ² from {errors.iloc[-1]:.3g} to {errors.iloc[0]:.3g}, in proportion to σ^{slope:.2f}"
    return Finding(abs(slope - 1) < 0.1, text)


def agrees_with_theory(records: DataFrame) -> Finding:
    """Means lie within their standard errors of the closed forms."""
    gaps = np.concatenate([distances(records, kind) for kind in ("added", "missed")])
    share, worst = float(np.mean(gaps <= AGREEMENT_ERRORS)), float(gaps.max())
    within = f"{100 * share:.0f} % of {gaps.size} means within {AGREEMENT_ERRORS:g} standard errors"
    margin = f"“very well” is at least {100 * AGREEMENT_SHARE:g} % of them"
    return Finding(share >= AGREEMENT_SHARE, f"{within}, worst {worst:.1f}", margin)


def depth_one(records: DataFrame) -> Finding:
    """No column is dropped after the first round."""
    most, n = int(records["rounds"].max()), len(records)
    return Finding(most <= 1, f"last round with a removal, largest of {n} fits: {most}")


# Rates, condition numbers, relative merits (Sec. 5).


def large_coefficients_are_found(records: DataFrame) -> Finding:
    """FN falls with |ξ| at every cut."""
    theory = records[records["kind"] == "theory"].groupby("xi")
    at_two = theory.apply(lambda part: part["fn"].iloc[(part["z"] - 2).abs().argmin()])
    text = ", ".join(f"{rate:.3g}" for rate in at_two)
    return Finding(at_two.is_monotonic_decreasing, f"FN at z = 2: {text} for ξ = 1 … {len(at_two)} σ")


def one_curve_for_all(records: DataFrame) -> Finding:
    """At strengths of equal worth all methods keep the same shares of the same columns, and these lie on the curves."""
    points = records[records["kind"] == "simulated"]
    spread = float(points.groupby(["xi", "z"])[["fp", "fn"]].agg(np.ptp).max(axis=None))
    theory = {
        "fp": rates.false_positive_rate("vi", points["z"] ** 2),
        "fn": rates.false_negative_rate("vi", points["z"] ** 2, points["xi"]),
    }
    errors = [np.abs(points[rate] - p) / np.sqrt(p * (1 - p) / points["draws"]) for rate, p in theory.items()]
    worst, n = float(np.max(errors)), points["method"].nunique()
    text = f"{n} methods on {len(points) // n} simulated points: rates differ between methods by at most {spread:.2g}, "
    return Finding(
        spread == 0 and worst < 4, text + f"from the curves by at most {worst:.1f} standard errors", "4 allowed"
    )


def _over_rho(records: DataFrame, metric: str) -> DataFrame:
    """Return a column of the ρ experiment with one column per method."""
    return records.pivot(index="rho", columns="method", values=metric)[records["method"].unique()]


def _from_to(curves: DataFrame) -> str:
    return ", ".join(f"{method} {curve.iloc[0]:.2g} → {curve.iloc[-1]:.2g}" for method, curve in curves.items())


def fn_falls_with_rho(records: DataFrame) -> Finding:
    """FN decreases in ρ for every method."""
    curves = _over_rho(records, "fn")
    steps = np.diff(curves, axis=0)
    return Finding(bool((steps <= 0).all()), f"{_from_to(curves)}; largest step upwards {max(steps.max(), 0):.0e}")


def fn_trend_as_printed(records: DataFrame) -> Finding:
    """FN is constant for ARDvi and MAP-STSBL, as printed."""
    fn = _over_rho(records, "fn")["ARDvi"]
    text = f"FN of ARDvi falls from {fn.iloc[0]:.2g} to {fn.iloc[-1]:.2g}; a misprint for the FP rate, next line"
    return Finding(bool(np.ptp(fn) < 1e-9), text)


def fp_trend(records: DataFrame) -> Finding:
    """FP: constant for ARDvi and MAP, decreasing for L and M, increasing for ARDr."""
    curves = _over_rho(records, "fp")
    change = curves.iloc[-1] - curves.iloc[0]
    constant = (change[["ARDvi", "MAP-STSBL"]].abs() < 1e-9).all()
    good = constant and (change[["M-STSBL", "L-STSBL"]] < 0).all() and change["ARDr"] > 0
    return Finding(bool(good), _from_to(curves))


def exponent(method: str, low: float, high: float) -> Check:
    """Return a check that d ln ψ/d ln ρ lies in an interval at the large end of the records."""

    def check(records: DataFrame) -> Finding:
        value = growth(records, method)
        text = f"d ln ψ/d ln ρ = {value:.3f} at ρ = {records['rho'].max():g}"
        return Finding(low <= value <= high, text, f"{low:g} to {high:g} allowed")

    return check


inflation_exponent = exponent("ARDvi", -0.51, -0.49)
regularising_exponent = exponent("ARDr", -1.05, -0.95)
magnitude_exponent = exponent("M-STSBL", -0.05, 0.05)
likelihood_exponent = exponent("L-STSBL", -0.5, 0.0)


def sample_size(records: DataFrame) -> Finding:
    """FP of M and L falls as ρ grows."""
    curves = _over_rho(records, "fp")[["M-STSBL", "L-STSBL"]]
    return Finding(bool((curves.iloc[-1] < curves.iloc[0]).all()), _from_to(curves))


def uncertainty_in_l_and_map(records: DataFrame) -> Finding:
    """Small ρ (uncertain): L prunes less than MAP; large ρ: more."""
    psi = _over_rho(records, "psi")[["L-STSBL", "MAP-STSBL"]]
    cuts = psi.mul(np.sqrt(psi.index), axis=0)
    (l_small, map_small), (l_large, map_large) = cuts.iloc[0], cuts.iloc[-1]
    small = f"cut z of L {l_small:.2f} and of MAP {map_small:.2f} at small ρ"
    text = f"{small}, {l_large:.2f} and {map_large:.2f} at large ρ"
    return Finding(bool(l_small < map_small and l_large > map_large), text)


def units_matter_for_m(records: DataFrame) -> Finding:
    """FP of M-STSBL changes with the scale of a column."""
    first, last = _over_rho(records, "fp")["M-STSBL"].iloc[[0, -1]]
    return Finding(bool(first / max(last, 1e-300) > 2), f"FP from {first:.2g} to {last:.2g} as ρ grows")


def _patterns(records: DataFrame) -> DataFrame:
    """Return in how many columns MAP-STSBL differs from ARDvi, by κ, σ and trial."""
    return records[records["method"] == "MAP-STSBL"].pivot(index=["kappa", "sigma"], columns="trial", values="differ")


def equal_when_orthogonal(records: DataFrame) -> Finding:
    """At κ = 1 ARDvi and MAP-STSBL keep the same columns in every trial."""
    here = _patterns(records).loc[[1.0]]
    return Finding(not here.any(axis=None), f"{int(here.sum(axis=None))} columns differ in {here.size} pairs of fits")


def different_when_correlated(records: DataFrame) -> Finding:
    """From κ = 10 on they keep other columns in most trials."""
    share = (_patterns(records) > 0).groupby(level="kappa").mean().mean(axis=1)
    shown = {f"κ = {kappa:.0e}": value for kappa, value in share.items()}
    text = "share of fits with another pattern: " + _listed(shown, ".2f", list(shown)[:: max(1, len(shown) // 4)])
    least = float(share[share.index >= 10].min())
    return Finding(least > 0.05, text, f"more than .05 from κ = 10 on; turns at {least:.2g}")


def thresholding_costs_more(records: DataFrame) -> Finding:
    """Thresholding takes longer than ARDvi and ARDr, and needs more than one round."""
    costs = relative_costs(records)
    ratio = costs[list(THRESHOLDED)].min() / costs[list(REGULARISED)].max()
    rounds = records[records["method"].isin(THRESHOLDED)].groupby("method")["rounds"].mean()
    text = f"time relative to ARD: {_listed(costs, '.2f', PROPOSED)}; rounds: {_listed(rounds, '.1f')}"
    good = ratio > 1 and rounds.min() > 1
    return Finding(bool(good), text, f"cheapest thresholding is {ratio:.2f} times the dearest other")


def regularising_is_cheap(records: DataFrame) -> Finding:
    """ARDr is dearer than ARDvi, by less than half."""
    vi, r = relative_costs(records)[list(REGULARISED)]
    text = f"ARDr {r:.2f}, ARDvi {vi:.2f} times ARD"
    return Finding(bool(vi < r < 1.5 * vi), text, f"“slightly” is less than 1.5 times; turns at {r / vi:.2g}")


def few_rounds(records: DataFrame) -> Finding:
    """Recursion ends far before the number of columns that it starts with."""
    fits = records[records["method"].isin(THRESHOLDED)]
    columns = records.loc[records["method"] == "ARD", "kept"].min()  # after the first ARD
    most = {method: float(part["rounds"].max() / columns) for method, part in fits.groupby("method")}
    return at_most("far", FAR, most, f"rounds: at most {fits['rounds'].max():.0f}; ARD leaves {columns:.0f} or more")


# Examples (Secs. 6 and 7).


def far_below_ard(methods: Sequence[str], *metrics: str) -> Check:
    """Return a check that every method has far less of every metric than plain ARD."""

    def check(records: DataFrame) -> Finding:
        means = method_means(records)
        shares = means.loc[list(methods), list(metrics)] / means.loc["ARD", list(metrics)]
        values = {f"{method}, {metric}": shares.loc[method, metric] for method in methods for metric in metrics}
        return at_most("far", FAR, values, _means_text(means, metrics, ("ARD", *methods)))

    return check


def _against(records: DataFrame, methods: Sequence[str], metric: str, other: str = "ARD") -> dict[str, Paired]:
    """Return the paired differences of some methods from another one."""
    table = by_trial(records, metric)
    return {method: Paired(table[method], table[other]) for method in methods}


def against_ard(sign: int, methods: Sequence[str], *metrics: str) -> Check:
    """Return a check that every method has more (sign 1) or less (−1) of every metric than plain ARD, in the mean."""

    def check(records: DataFrame) -> Finding:
        means = method_means(records)
        gaps = sign * (means.loc[list(methods), list(metrics)] - means.loc["ARD", list(metrics)])
        tests = [f"{m} {metric} {test}" for metric in metrics for m, test in _against(records, methods, metric).items()]
        return Finding(bool((gaps > 0).all(axis=None)), "against ARD: " + ", ".join(tests))

    return check


all_far_better = far_below_ard(PROPOSED, "l2", "l1", "added")
far_fewer_added = far_below_ard(PROPOSED, "added")
lower_error = against_ard(-1, PROPOSED, "l2", "l1")
thresholding_misses_more = against_ard(1, THRESHOLDED, "missed")
regularising_misses_fewer = against_ard(-1, REGULARISED, "missed")
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
        return Finding(true, text, f"“significant” is p < {SIGNIFICANT:g}/{len(PROPOSED)} (Wilcoxon)")

    return check


error_not_improved = _significant(-1, "l2", all_of_them=False)
significantly_more_missed = _significant(1, "missed", all_of_them=True)


def l1_above_l2(records: DataFrame) -> Finding:
    """ℓ² is far below ℓ¹ for every method."""
    means = method_means(records)
    shares = {method: means.loc[method, "l2"] / means.loc[method, "l1"] for method in METHODS}
    return at_most("far", FAR, shares, f"ℓ²/ℓ¹: {_listed(shares, '.2f')}")


def dominated_by_added(records: DataFrame) -> Finding | None:
    """More than half of the ℓ¹ error of every method is the coefficients that it added."""
    if "added_l1" not in records:
        return None
    known = records.dropna(subset="added_l1")
    sums = known.groupby("method")[["added_l1", "l1"]].sum().loc[list(METHODS)]
    shares = sums["added_l1"] / sums["l1"]
    text = f"share of the ℓ¹ error in added terms: {_listed(shares, '.2f')}"
    return Finding(bool(shares.min() > 0.5), text, f"“dominated” is more than .5; turns at {shares.min():.2g}")


def thresholding_wins(records: DataFrame) -> Finding:
    """Over their family, the thresholding methods have a far lower ℓ² and far fewer added terms, and miss few more."""
    means = method_means(records)
    own, others = means.loc[list(THRESHOLDED)].mean(), means.loc[["ARD", *REGULARISED]].mean()
    found = at_most("far", FAR, dict((own / others)[["l2", "added"]]), _means_text(means, ("l2", "added", "missed")))
    more = own["missed"] - others["missed"]
    few = f"“small increase” is less than 2; turns at {more:.2g}"
    return Finding(found.true and bool(more < 2), found.evidence, f"{found.margin}; {few}")


def sparser_than_ard_and_r(records: DataFrame) -> Finding:
    """ARDvi and thresholding add far fewer than ARD and ARDr."""
    means = method_means(records)["added"]
    rest = means[["ARD", "ARDr"]].min()
    shares = {method: means[method] / rest for method in ("ARDvi", *THRESHOLDED)}
    return at_most("much", FAR, shares, f"added: {_listed(means, '.3g', METHODS)}")


def both_searched_beats(metric: str) -> Check:
    """Return a check that ARDr with λ and η searched for has less of a metric than at η = 0.1, on the same trials."""

    def check(records: DataFrame) -> Finding | None:
        wide = f"ARDr, {WIDE}"
        if wide not in set(records["method"]):
            return None
        test = _against(records, [wide], metric, "ARDr")[wide]
        better, text = test.mean < 0 and test.chance < SIGNIFICANT, f"{metric} {test} against λ alone"
        return Finding(better, f"{text}, {len(test.difference)} trials", f"p < {SIGNIFICANT:g} (Wilcoxon)")

    return check


both_searched_is_sparser, both_searched_is_nearer = both_searched_beats("wrong"), both_searched_beats("l2")


def inflation_misses_no_more(records: DataFrame) -> Finding:
    """ARDvi does not miss significantly more than ARD."""
    test = _against(records, ["ARDvi"], "missed")["ARDvi"]
    more = test.mean > 0 and test.chance < SIGNIFICANT
    return Finding(not more, f"missed by ARDvi against ARD: {test}", f"an increase is p < {SIGNIFICANT:g} (Wilcoxon)")


def magnitude_beats(metric: str) -> Check:
    """Return a check that M-STSBL has less of a metric than L and MAP."""

    def check(records: DataFrame) -> Finding:
        means = by_trial(records, metric).mean()
        tests = _against(records, THRESHOLDED[1:], metric, "M-STSBL").items()
        text = f"{_listed(means, '.3g', THRESHOLDED)}; against M: " + ", ".join(f"{m} {test}" for m, test in tests)
        return Finding(bool(means["M-STSBL"] < means[list(THRESHOLDED[1:])].min()), text)

    return check


magnitude_is_sparsest, magnitude_is_nearest = magnitude_beats("wrong"), magnitude_beats("l2")


def errors_do_no_harm(records: DataFrame) -> Finding | None:
    """Wrong terms are no more than with Gaussian, independent errors of the same variance."""
    kinds = ("oracle", "oracle, Gaussian errors")
    if not (records["criterion"] == kinds[1]).any():
        return None
    tables = [by_trial(records[records["criterion"] == kind], "wrong") * 3 for kind in kinds]  # mean of 3 equations
    pairs = {m: Paired(tables[0][m], tables[1][m]) for m in METHODS}
    worse = [test.mean > 0 and test.chance < SIGNIFICANT / len(METHODS) for test in pairs.values()]
    text = ", ".join(f"{m} {tables[0][m].mean():.3g} ({tables[1][m].mean():.3g}, {t})" for m, t in pairs.items())
    margin = f"“significantly” is p < {SIGNIFICANT:g}/{len(METHODS)} (Wilcoxon) for any method"
    return Finding(not any(worse), f"wrong terms (with Gaussian errors, difference): {text}", margin)


def best_share_exact(records: DataFrame) -> Finding:
    """No method finds exactly the right terms in more than half of the trials."""
    found = exact(records).loc[list(METHODS)]
    n = found.loc["ARD", "size"]
    share = found["sum"].max() / n
    text = f"exact supports: {_listed(found['sum'], 'd')} of {n}"
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
    return Finding(bool(good), f"added: {_listed(means, '.3g', METHODS)}; modes {_listed(modes, 'd')}")


def map_outliers(records: DataFrame) -> Finding:
    """MAP-STSBL has errors as large as the forcing F = 16, which it dropped."""
    worst = records.groupby("method")["l2"].max()
    lost = int((records.loc[records["method"] == "MAP-STSBL", "l2"] > 15).sum())
    text = f"largest ℓ²: {_listed(worst, '.3g', ['ARD', 'MAP-STSBL'])}, which loses F in {lost} equations"
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
    """Most often nothing is missed; all but ARDvi miss a term somewhere, MAP-STSBL twice in some equation."""
    most = records.groupby("method")["missed"].max().astype(int)[list(METHODS)]
    good = not any(mode(records, method, "missed") for method in METHODS)
    good &= most["ARDvi"] == 0 and most["MAP-STSBL"] == 2 and most.drop("ARDvi").min() >= 1
    return Finding(bool(good), f"most missed: {_listed(most, 'd')}")


def r_misses_all(records: DataFrame) -> Finding:
    """ARDr most often misses all three terms."""
    counts = records.loc[records["method"] == "ARDr", "missed"].value_counts().sort_index()
    text = ", ".join(f"{missed} missed in {n}" for missed, n in counts.items())
    return Finding(mode(records, "ARDr", "missed") == 3, text)


def size_is_a_barrier(records: DataFrame) -> Finding | None:
    """Fitting all rows takes far longer than fitting a sample of 2,500."""
    own = records[records["method"] == "ARD"]
    if not (own["rows"] == "all").any():
        return None
    seconds = own.groupby("rows")["seconds"].mean()
    text = f"ARD on all rows {seconds['all']:.2g} s, on a sample {seconds['sample']:.2g} s of processor time"
    return Finding(bool(seconds["all"] > 60), text, f"a barrier is a minute; turns at {seconds['all']:.2g} s")
