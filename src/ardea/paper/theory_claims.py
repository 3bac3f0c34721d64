"""Checks of the sentences of Secs. 1–5 and of the appendices that state a result; claims.csv names them.

A check looks at the records of one experiment (of two, told apart by the column `experiment`) and returns whether the
sentence is true of them, the numbers that say so and, where a word of the sentence had to be made a number, that number
and where the verdict would turn. What follows from a formula alone is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ardea import rates
from ardea.paper.experiment import METHODS
from ardea.paper.inference import (
    AGREEMENT_ERRORS,
    SIGNIFICANT,
    Finding,
    at_most,
    chance_text,
    check_of,
)
from ardea.paper.tables import distances, growth, listed, relative_times

if TYPE_CHECKING:
    from pandas import DataFrame


REGULARISED, THRESHOLDED, PROPOSED = METHODS[1:3], METHODS[3:], METHODS[1:]
# Conventions that make words of the paper numbers. "Far" or "much" fewer or lower: at most this share.
FAR = 0.67
# "Agrees very well": this share of the means lies within so many standard errors of the prediction.
AGREEMENT_SHARE = 0.97
# A limit is reached where a number changes by less than this share from one noise to the next. "Slightly" more: at most
# so many times.
LIMIT_CHANGE, SLIGHTLY = 0.1, 1.5


# Orthogonal columns (Secs. 1–5).


@check_of
def at_both_ends(
    records: DataFrame, good: Callable[[Any], Any], form: str, *, first: int = 1, note: str = "", by: str = ""
) -> Finding:
    """Find what the noise does at every strength from the `first` on (0: that of plain ARD).

    `by` says what truth at single strengths hangs on. `good` is given a frame of mean terms at the smallest noise
    (added0, missed0) and at the largest (added1, missed1), and the number of trials (n).
    """
    means = records.groupby(["strength", "sigma"], sort=False)[["added", "missed"]].mean()
    groups = means.groupby(level="strength", sort=False)
    ends = groups.first().add_suffix("0").join(groups.last().add_suffix("1")).reset_index()[first:]
    fine = np.broadcast_to(good(ends.assign(n=records["trial"].nunique())), len(ends))
    names = [", ".join(f"{one:g}" for one in ends["strength"][part]) for part in (fine, ~fine)]
    turns = f"true at strength {names[0]}, false at {names[1]}{by}" if fine.any() and not fine.all() else ""
    text = "; ".join(form.format(**row) for row in ends.to_dict("records")) + note
    return Finding(bool(fine.all()), text, turns)


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
both_vanish = at_both_ends(
    lambda ends: (ends.added0 < 0.05 * ends.added1.clip(lower=1)) & (ends.missed0 < 0.1 * ends.missed1),
    _TAU,
    by=" by the rule that less than a tenth of the missed terms is left; Sec. 4.1: a positive limit for every τ",
)
# As σ → 0 nothing is added, and terms are missed only where |ξ| < τ, so fewer the smaller τ.
small_threshold = at_both_ends(
    lambda ends: (ends.added0 < 0.05) & ends.missed0.is_monotonic_increasing,
    "τ = {strength:g}: added {added0:.2f}, missed {missed0:.2f}",
    note=" at the smallest σ: τ must lie below every true |ξ|",
)


def hard_threshold(records: DataFrame) -> Finding:
    """As σ → 0 false positives vanish; false negatives come to what theory says, and that to a positive limit."""
    part, n = records[records["strength"] > 0], records["trial"].nunique()
    means = part.groupby(["strength", "sigma"])[["added", "missed", "expected_missed"]].mean()
    texts, true, changes = [], True, []
    for tau, own in means.groupby(level="strength"):
        least, next_, most = own.iloc[0], own.iloc[1], own.iloc[-1]
        limit = least["expected_missed"]
        changes.append(abs(next_["expected_missed"] / limit - 1))
        true &= bool(least["added"] < 0.01 * most["added"] + 0.01 and changes[-1] < LIMIT_CHANGE)
        true &= bool(abs(least["missed"] - limit) <= AGREEMENT_ERRORS * np.sqrt(limit / n))
        texts.append(
            f"τ = {tau:g}: added {most['added']:.1f} → {least['added']:.2f}, missed {most['missed']:.1f} → "
            f"{least['missed']:.2f} (theory {next_['expected_missed']:.2f} → {limit:.2f} at the two smallest σ)"
        )
    margin = f"“fixed” is a change of theory by less than {LIMIT_CHANGE:g} there; turns at {max(changes):.2g}"
    return Finding(true, "; ".join(texts), margin)


def small_terms_are_lost(records: DataFrame) -> Finding:
    """At the smallest noise, where nothing else is in doubt, M-STSBL misses terms, the more the larger τ is."""
    part = records[(records["sigma"] == records["sigma"].min()) & (records["strength"] > 0)]
    means = part.groupby("strength")[["missed", "expected_missed"]].mean()
    plain = records[(records["sigma"] == part["sigma"].iloc[0]) & (records["strength"] == 0)]["missed"].mean()
    text = "; ".join(f"τ = {tau:g}: {missed:.2f} (theory {theory:.2f})" for tau, missed, theory in means.itertuples())
    good = means["missed"].is_monotonic_increasing and means["missed"].iloc[-1] > plain + 1
    return Finding(bool(good), f"missed at σ = {part['sigma'].iloc[0]:g}: {text}; without a threshold {plain:.2f}")


def misses_far_fewer_than_magnitude(records: DataFrame) -> Finding:
    """At the smallest noise L-STSBL at its worst τ misses far fewer than M-STSBL at its best."""
    part = records[(records["sigma"] == records["sigma"].min()) & np.isfinite(records["strength"])]
    means = part[part["strength"] > 0].groupby(["experiment", "strength"])["missed"].mean()
    own, other = means["orthogonal-l"].max(), means["orthogonal-m"].min()
    text = f"missed at the smallest σ: at most {own:.2f} by L-STSBL, at least {other:.2f} by M-STSBL"
    return at_most("highly favourable", FAR, {"L/M": own / other}, text)


def _marginal_variance(size: float, sigma: float) -> float:
    """Return Σ_jj of a term of that size at ρ = 1 (Eq. (36))."""
    return float(2 * sigma**2 / (np.sqrt(1 + 4 * sigma**2 / size**2) + 1))


def variance_is_of_order_noise(records: DataFrame) -> Finding:
    """Σ_jj/σ² → 1 as σ → 0 (Eq. (36), |ξ| = 1)."""
    ratios = {f"σ = {sigma:g}": _marginal_variance(1.0, sigma) / sigma**2 for sigma in (1.0, 0.1, 0.01, 0.001)}
    return Finding(abs(ratios["σ = 0.001"] - 1) < 1e-5, f"Σ_jj/σ² at |ξ*| = 1, ρ = 1: {listed(ratios, '.6g')}")


def conservative_at_small_noise(records: DataFrame) -> Finding:
    """Find that the cut of L-STSBL goes to zero with σ, and that of M-STSBL to τ."""
    cuts = {
        method: [float(rates.psi(method, 0.1, sigma=sigma)) for sigma in (1.0, 0.1, 0.01, 0.001)]
        for method in ("l", "m")
    }
    text = "; ".join(
        f"{name} " + ", ".join(f"{cut:.2g}" for cut in cuts[method]) for method, name in (("l", "L"), ("m", "M"))
    )
    good = all(np.diff(cuts["l"]) < 0) and cuts["l"][-1] < 0.1 * cuts["m"][-1]
    return Finding(good, f"cut on |ξ| at τ = 0.1 and σ = 1, 0.1, 0.01, 0.001: {text}")


def likelihood_is_monotone(records: DataFrame) -> Finding:
    """h̃_L falls strictly in |ξ*|."""
    sizes = np.logspace(-6, 2, 2001)
    steps = []
    for sigma in (0.01, 0.1, 1.0, 10.0):
        variance = np.array([_marginal_variance(size, sigma) for size in sizes])
        steps.append(np.diff(-(sizes**2) / (2 * variance) - np.log(variance) / 2).max())
    text = f"largest step of ln h̃_L over {sizes.size} values of |ξ*| from 1e-6 to 100, four σ: {max(steps):.1e}"
    return Finding(max(steps) < 0, text)


def _plain(records: DataFrame) -> DataFrame:
    """Return the means of plain ARD (α = 1) at every σ."""
    return records[records["strength"] == 1].groupby("sigma").mean(numeric_only=True)


def extraneous_at_any_noise(records: DataFrame) -> Finding:
    """ARD adds 0.3173 (d − k) terms however small σ is."""
    means = _plain(records)
    added, expected = means["added"], means["expected_added"].iloc[0]
    worst = float((added / expected - 1).abs().max())
    ends = ", ".join(f"{added.iloc[i]:.1f} at σ = {added.index[i]:g}" for i in (0, -1))
    return Finding(worst < 0.2, f"added {ends}; 0.3173(d − k) = {expected:.1f}; largest deviation {100 * worst:.0f} %")


def added_do_not_depend_on_noise(records: DataFrame) -> Finding:
    """At every α the mean number of added terms is the same at all σ, within its standard errors."""
    gaps = distances(records, "added")
    added = records.groupby(["strength", "sigma"])["added"].mean().groupby(level="strength").agg(["min", "max"])
    text = "; ".join(f"α = {alpha:g}: {low:.2f} to {high:.2f}" for alpha, (low, high) in added.iterrows())
    share = float(np.mean(gaps <= AGREEMENT_ERRORS))
    within = f"{100 * share:.0f} % of the means within {AGREEMENT_ERRORS:g} standard errors of a constant"
    return Finding(share >= AGREEMENT_SHARE, f"added over all σ: {text}", within)


@check_of
def ends_added(records: DataFrame, method: rates.Method, symbol: str) -> Finding:
    """Find that the number of added terms falls with the strength, to any level."""
    means = records.groupby("strength", sort=False)[["added", "missed"]].mean()["added"]
    n = round(records["expected_added"].max() / float(rates.false_positive_rate(method, means.index[0])))
    enough = float(rates.strength_for(method, 0.01 / n))
    text = ", ".join(f"{added:.3g} at {symbol} = {strength:g}" for strength, added in means.items())
    text += f"; the closed form (ρ = 1) is below 0.01 of {n} from {symbol} = {enough:.0f} on"
    return Finding(bool(means.is_monotonic_decreasing and np.isfinite(enough)), f"added, mean over σ: {text}")


inflation_ends_added = ends_added("vi", "α")
regularising_ends_added = ends_added("r", "λσ²")


def less_noise_needs_more(records: DataFrame) -> Finding:
    """Find that a larger λ adds fewer than five terms down to a smaller noise."""
    means = records[records["strength"] > 0].groupby(["strength", "sigma"], sort=False)["added"].mean()
    least = means[means < 5].reset_index().groupby("strength")["sigma"].min()
    text = ", ".join(f"λ = {strength:g} down to σ = {sigma:.2g}" for strength, sigma in least.items())
    good = len(least) > 1 and bool((least.diff().dropna() < 0).all())
    return Finding(good, f"fewer than 5 terms are added by {text}")


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


def bounded_away_is_found(records: DataFrame) -> Finding:
    """Find that what a stronger cut (z = 2 against 1) misses more falls with |ξ| (orthogonal columns)."""
    theory = records[records["kind"] == "theory"].pivot(index="xi", columns="z", values="fn")
    at = {z: theory.columns[np.abs(theory.columns - z).argmin()] for z in (1, 2)}
    more = theory[at[2]] - theory[at[1]]
    text = ", ".join(f"{value:.3g}" for value in more)
    return Finding(more.is_monotonic_decreasing, f"FN at z = 2 less FN at z = 1: {text} for ξ = 1 … {len(more)} σ")


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
    return Finding(bool((steps <= 0).all()), f"{_from_to(curves)}; largest step upwards {max(steps.max(), 0):.0g}")


def fn_trend_as_printed(records: DataFrame) -> Finding:
    """FN is constant for ARDvi and MAP-STSBL, as printed."""
    fn = _over_rho(records, "fn")["ARDvi"]
    text = f"FN of ARDvi falls from {fn.iloc[0]:.2g} to {fn.iloc[-1]:.2g}; a misprint for the FP rate"
    return Finding(bool(np.ptp(fn) < 1e-9), text)


def _pairs(records: DataFrame) -> tuple[float, dict[tuple[str, str], float]]:
    """Return by how much rates differ over ρ at most: of ARDvi and MAP-STSBL, and of all other pairs of methods."""
    fp, fn = (_over_rho(records, rate) for rate in ("fp", "fn"))
    gap = {
        (one, other): float(max((curves[one] - curves[other]).abs().max() for curves in (fp, fn)))
        for one, other in combinations(fp.columns, 2)
    }
    return gap.pop(("ARDvi", "MAP-STSBL")), gap


def pairs_part(records: DataFrame) -> Finding:
    """Strengths that are worth the same at ρ = 1 are not at another ρ, but for ARDvi and MAP-STSBL."""
    (one, other), least = min(_pairs(records)[1].items(), key=lambda pair: pair[1])
    text = f"largest difference of a rate over ρ, all other pairs: at least {least:.2f} ({one}, {other})"
    return Finding(least > 0.01, text)


def one_pair_stays(records: DataFrame) -> Finding:
    """ARDvi and MAP-STSBL have the same rates at every ρ."""
    own = _pairs(records)[0]
    return Finding(own < 1e-12, f"rates differ by at most {own:.0g} over all ρ")


def fp_trend(records: DataFrame) -> Finding:
    """FP: constant for ARDvi and MAP, decreasing for L and M, increasing for ARDr."""
    curves = _over_rho(records, "fp")
    change = curves.iloc[-1] - curves.iloc[0]
    constant = (change[["ARDvi", "MAP-STSBL"]].abs() < 1e-9).all()
    good = constant and (change[["M-STSBL", "L-STSBL"]] < 0).all() and change["ARDr"] > 0
    return Finding(bool(good), _from_to(curves))


@check_of
def exponent(records: DataFrame, method: str, low: float, high: float) -> Finding:
    """Find that d ln ψ/d ln ρ lies in an interval at the large end of the records."""
    value = growth(records, method)
    text = f"d ln ψ/d ln ρ = {value:.3f} at ρ = {records['rho'].max():g}"
    return Finding(low <= value <= high, text, f"{low:g} to {high:g} allowed")


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


def pruned_when_uncertain(records: DataFrame) -> Finding:
    """Along the fixed points of ARD both h_L and exp(−h_MAP) grow with the relative uncertainty Σ/μ²."""
    sizes = np.logspace(1, -3, 401)
    variance = np.array([_marginal_variance(size, 1.0) for size in sizes])
    relative, h_map = variance / sizes**2, np.exp(-(sizes**2) / (2 * variance))
    h_l = h_map / np.sqrt(2 * np.pi * variance)
    shown = [int(np.argmin(np.abs(np.log(sizes / size)))) for size in (10, 3, 1, 0.1, 0.01)]
    text = "; ".join(f"at {relative[i]:.2g} {h_l[i]:.2g} and {h_map[i]:.2g}" for i in shown)
    text = f"h_L and exp(−h_MAP) by Σ/μ² along the fixed points of ARD (σ = ρ = 1; pruned above a threshold): {text}"
    good = all(np.all(np.diff(values) > 0) for values in (relative, h_l, h_map))
    return Finding(good, text, "where Σ grows at a fixed μ, h_L grows only up to Σ = μ²")


def trends_follow_from_exponents(records: DataFrame) -> Finding:
    """FP changes with ρ as the leading order of ψ√ρ says, up to 0.01 in the exponent, for every method."""
    fp = _over_rho(records, "fp")
    change = {method: fp[method].iloc[-1] - fp[method].iloc[0] for method in fp}
    powers = {method: growth(records, method) + 0.5 for method in fp}
    wrong = [
        m for m in fp if np.sign(change[m]) * (abs(change[m]) > 1e-9) != -np.sign(powers[m]) * (abs(powers[m]) > 0.01)
    ]
    text = f"exponent of ψ√ρ at the end: {listed(powers, '.3f')}; change of FP: {listed(change, '+.2g')}"
    return Finding(not wrong, text, f"a positive exponent is a falling FP; not so for {', '.join(wrong) or 'none'}")


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
    text = "share of fits with another pattern: " + listed(shown, ".2f", list(shown)[:: max(1, len(shown) // 4)])
    least = float(share[share.index >= 10].min())
    return Finding(least > 0.05, text, f"more than 0.05 from κ = 10 on; turns at {least:.2g}")


def _costs(records: DataFrame) -> tuple[Any, Any, str]:
    """Return steps at one strength and seconds of a search of every method, and both in words."""
    one, whole = (records[records["experiment"] == name] for name in ("merits", "linear"))
    steps, seconds = one.groupby("method")["steps"].mean(), whole.groupby("method")["seconds"].mean()
    times = relative_times(one).median()
    text = f"steps at one strength, {one['trial'].nunique()} trials of the linear example: "
    text += f"{listed(steps, '.1f', METHODS)}; times ARD there: {listed(times, '.2f', PROPOSED)}; seconds of a search "
    text += f"over the authors' strengths, {whole['trial'].nunique()} trials: {listed(seconds, '.3f', PROPOSED)}"
    return steps, seconds, text


def recursion_costs(records: DataFrame) -> Finding:
    """At one strength both regularised methods take fewer steps than any of those that threshold."""
    steps, seconds, text = _costs(records)
    (most, least), (slowest, fastest) = (
        (cost[list(REGULARISED)].max(), cost[list(THRESHOLDED)].min()) for cost in (steps, seconds)
    )
    margin = f"by steps of our code at one strength of one example: at most {most:.0f} against at least {least:.0f}; "
    margin += f"by seconds of a whole search {slowest:.3f} against {fastest:.3f}"
    return Finding(bool(most < least), text, margin)


def regularised_slightly_dearer(records: DataFrame) -> Finding:
    """ARDr takes more steps than ARDvi, slightly."""
    steps, seconds, text = _costs(records)
    times = float(steps["ARDr"] / steps["ARDvi"])
    margin = f"by steps of our code at one strength of one example; “slightly” is at most {SLIGHTLY:g} times; turns at "
    margin += f"{times:.2g}; by seconds of a whole search {seconds['ARDr'] / seconds['ARDvi']:.2g} times"
    return Finding(bool(1 < times <= SLIGHTLY), text, margin)


def deeper_when_correlated(records: DataFrame) -> Finding:
    """On correlated columns thresholds drop columns in more than one round."""
    fits = records[records["method"].isin(THRESHOLDED)].groupby("method")["rounds"]
    text = f"last round with a removal, mean and largest: {listed(fits.mean(), '.1f')}; {listed(fits.max(), '.0f')}"
    return Finding(bool(fits.max().min() > 1), text)


def orthogonal_rates_are_guides(records: DataFrame) -> Finding | None:
    """Along strengths, added and missed terms of every method rise and fall as the closed forms say."""
    if "expected_added" not in records:
        return None
    rows, chances, factors = records[records["expected_added"].notna()], {}, {}
    for method, part in rows.groupby("method", sort=False):
        for metric in ("added", "missed"):
            table = part.pivot(index="trial", columns="expected_added", values=metric)
            expected = part.groupby("expected_added")[f"expected_{metric}"].mean()
            rising = table[expected.sort_values().index].to_numpy()  # from column to column, rows being trials
            chances[f"{method} {metric}"] = float(stats.page_trend_test(rising, method="asymptotic").pvalue)
            if metric == "added":
                ratio = table.mean() / expected
                factors[method] = f"{method} {ratio.iloc[0]:.2g} to {ratio.iloc[-1]:.2g}"
    bound, worst = SIGNIFICANT / len(chances), max(chances, key=lambda name: chances[name])
    low, high = rows["expected_added"].min(), rows["expected_added"].max()
    text = f"linear example, {rows['trial'].nunique()} trials, {rows['expected_added'].nunique()} strengths: the "
    text += f"weakest of the trends that the closed forms foretell is {worst} ({chance_text(chances[worst])}); added "
    text += f"terms per term expected, from {low:.2g} to {high:.2g} expected: {', '.join(factors.values())}"
    margin = f"a guide is right about the direction (Page's trend test, p < {SIGNIFICANT:g}/{len(chances)})"
    return Finding(max(chances.values()) < bound, text, margin)


def few_rounds(records: DataFrame) -> Finding:
    """Recursion ends far before the number of columns that it starts with."""
    fits = records[records["method"].isin(THRESHOLDED)]
    columns = records.loc[records["method"] == "ARD", "kept"].min()  # after the first ARD
    most = {method: float(part["rounds"].max() / columns) for method, part in fits.groupby("method")}
    return at_most("far", FAR, most, f"rounds: at most {fits['rounds'].max():.0f}; ARD leaves {columns:.0f} or more")
