"""The report page: verdicts follow from records, numbers are not typed in, missing results are said to be missing."""

from __future__ import annotations

import re
from itertools import product
from math import comb
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.paper import experiment, inference, regressions, tables
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.experiment import METHODS, duration, run
from ardea.paper.figures import leader
from ardea.paper.inference import (
    CORRECTED_ONLY,
    FAILS,
    HOLDS,
    NOT_JUDGED,
    NOT_RUN,
    PUBLISHED_ONLY,
    WEAKLY,
    Finding,
    Paired,
    at_most,
    by_trial,
    mean_cells,
    mode,
    only_one_succeeds,
    signed_rank,
    steadiness,
    verdict,
    with_error,
)
from ardea.paper.page import (
    CHECKS,
    KINDS,
    agreement,
    judgement,
    page_text,
    printed_distance,
    read_outputs,
    stored,
    write_page,
)
from ardea.paper.regressions import DIFFERENCED, INDEPENDENT, METRICS, OF_DIFFERENCES
from ardea.paper.tables import ablation_table, binding, comparison, evidence_table, markdown, number, tally

claims = SimpleNamespace(**CHECKS)
CLAIMS = list(stored("claims.csv").itertuples())
# Statements that theory, or the steps of our code, refute.
WRONG_STATEMENTS = {
    ("both_vanish", "orthogonal-m"),
    ("regularising_exponent", "rho"),
    ("trends_follow_from_exponents", "rho"),
    ("regularised_slightly_dearer", "merits + linear"),
}
THEORY = [claim for claim in CLAIMS if not claim.section.startswith(("6", "7"))]


COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction"


def authors(name, source="authors"):
    numbers = stored("authors.csv")
    return experiment_named(name).shown(numbers[(numbers["experiment"] == name) & (numbers["source"] == source)])


@pytest.fixture(scope="module")
def quick_results(tmp_path_factory):
    """Results of the quickest experiments, the rest missing."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "figure_file", lambda *_: b"a picture")
        patch.setattr(regressions, "WIDE_GRIDS", regressions.LINEAR.grids)
        patch.setattr(regressions, "PRIOR_GRIDS", {n: p[:1] for n, p in regressions.PRIOR_GRIDS.items()})
        for name in ("orthogonal-vi", "orthogonal-m", "fpfn-curve", "rho", "kappa", "linear"):
            one = experiment_named(name)
            run(one, one.settings("quick", "corrected"), out, beyond=True, command="the command")
        for name in ("kappa", "linear"):
            one = experiment_named(name)
            run(one, one.settings("quick", "published"), out)
    return out


@pytest.fixture(scope="module")
def quick_page(quick_results, tmp_path_factory):
    """The page that is made of them, in a folder of its own."""
    return write_page(quick_results, tmp_path_factory.mktemp("page"), "quick")


# Verdicts.


@pytest.mark.parametrize(
    ("published", "corrected", "word"),
    [
        (True, True, HOLDS),
        (True, False, PUBLISHED_ONLY),
        (False, True, CORRECTED_ONLY),
        (False, False, FAILS),
        (None, True, HOLDS),
        (None, False, FAILS),
        (None, None, NOT_RUN),
    ],
)
def test_a_verdict_is_what_both_variants_say(published, corrected, word):
    findings = [("source", Finding(true, "evidence")) for true in (published, corrected) if true is not None]
    assert verdict(findings)[0] == word


def test_sources_that_cannot_tell_do_not_count():
    unknown, yes, no = (("source", Finding(true, "evidence")) for true in (None, True, False))
    assert verdict([unknown, unknown])[0] == NOT_JUDGED
    assert verdict([unknown, yes])[0] == HOLDS
    assert verdict([no, unknown])[0] == FAILS


def paired_counts(more, n=10):
    """Return records of which every method misses one more than ARD in the first `more` trials."""
    rows = [{"trial": t, "method": m, "missed": float(m != "ARD" and t < more)} for t in range(n) for m in METHODS]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("more", "true"), [(10, True), (5, None), (0, False)])
def test_significance_that_no_test_could_find_is_not_judged(more, true):
    """Of five differences that are not zero the least two-sided p-value is 1/16."""
    assert claims.significantly_more_missed(paired_counts(more)).true is true


def test_groups_are_compared_by_their_means_and_tests_name_what_is_not_clear():
    far = {"ARD": 9.0, "ARDr": 9.0, "ARDvi": 1.0, "M-STSBL": 1.0, "L-STSBL": 1.0, "MAP-STSBL": 8.0}
    rows = [
        {"trial": t, "method": m, "l2": 1, "l1": 1, "missed": 0, "added": v} for m, v in far.items() for t in range(9)
    ]
    found = claims.sparser_than_ard_and_r(pd.DataFrame(rows))
    assert found.true
    assert found.firm
    assert "added 0.89 times" in found.margin
    few = pd.DataFrame(rows).query("trial < 5")
    assert not claims.sparser_than_ard_and_r(few).firm  # no test below six trials
    assert not claims.sparser_than_ard_and_r(pd.DataFrame(rows).assign(added=5)).true


def test_a_stronger_word_is_not_firmer_than_a_weaker_one():
    """Of the same rows "far lower" names the same differences that are not significant as "lower" does."""
    rows = [
        {"trial": trial, "method": m, "l2": value, "l1": value, "added": value, "missed": 0}
        for trial in range(20)
        for m in METHODS
        # Of MAP-STSBL the median is low, and the mean rank is not.
        for value in [10.0 if m == "ARD" else 50.0 if m == "MAP-STSBL" and trial < 9 else 1.0]
    ]
    records = pd.DataFrame(rows)
    found = [check(records) for check in (claims.median_lower_error, claims.all_far_better)]
    assert all(one.true and not one.firm and "MAP-STSBL ℓ²" in one.margin for one in found)


def test_an_improvement_is_significant_if_it_is_large_and_not_by_chance():
    generator = np.random.default_rng(3)
    rows = [{"trial": t, "method": m, "l1": 1, "added": 0, "missed": 0} for t in range(30) for m in METHODS]
    records = pd.DataFrame(rows)
    records["l2"] = 1 + 0.01 * generator.normal(size=len(records))
    assert claims.error_not_improved(records).true
    for share, improved in ((0.9, False), (0.3, True)):
        lower = records.assign(l2=records["l2"].where(records["method"] != "ARDvi", share * records["l2"]))
        assert claims.error_not_improved(lower).true is not improved


def test_terms_missed_are_told_as_counts_and_as_shares():
    """Two of 50 are more than one of 25, and the same share."""
    missed = {"linear": 1, "fourier": 2}
    rows = [
        {"experiment": name, "trial": 0, "method": m, "l2": 0, "l1": 0, "added": 0, "missed": n * (m != "ARD")}
        for name, n in missed.items()
        for m in METHODS
    ]
    found = claims.notable_unlike_linear(pd.DataFrame(rows))
    assert found.true
    assert found.margin.endswith("a larger share for none")
    assert not claims.notable_unlike_linear(pd.DataFrame(rows).assign(missed=1)).true


def test_losses_of_the_forcing_have_denominators():
    assert "in 6 of 40" in claims.map_outliers(authors("lorenz96")).evidence
    several = pd.concat([authors("lorenz96").assign(start=start, l2=level) for start, level in ((0, 1.0), (1, 16.0))])
    assert claims.map_outliers(several).evidence.endswith("in 40 of 80 equations, on the authors' start in 0 of 40")
    assert not claims.map_outliers(several).true  # ARD is as far off


def test_claims_name_experiments_and_are_told_apart():
    names = {experiment.name for experiment in EXPERIMENTS}
    assert {name for claim in CLAIMS for name in claim.experiment.split(" + ")} <= names
    assert {claim.rows for claim in CLAIMS} == {"shown", "all", "theirs"}
    assert {claim.kind for claim in CLAIMS} == set(KINDS)
    assert all(callable(CHECKS[claim.check]) for claim in CLAIMS)
    assert len({claim.sentence for claim in CLAIMS}) == len(CLAIMS) > 45


def test_table_1_as_printed_bears_out_what_the_paper_says_of_it():
    """The sentences on the linear example are true of the printed numbers, so the checks read them as meant."""
    printed = authors("linear", "printed (Table 1)")
    assert claims.thresholding_has_lower_l2(printed).true
    assert claims.thresholding_has_lower_l1(printed).true
    assert claims.thresholding_adds_fewer(printed).true
    assert claims.l1_above_l2(printed).true


def test_the_authors_own_records_decide_what_holds_as_published():
    """Verdicts that a replay with one other row, or a check of something else, had turned round."""
    assert claims.all_far_better(authors("fourier")).true
    assert claims.thresholding_misses_more(authors("fourier")).true
    assert claims.parsimonious(authors("ks")).true
    assert claims.sparser_than_ard_and_r(authors("lorenz63")).true
    assert not claims.magnitude_is_nearest(authors("lorenz63")).true
    assert not claims.error_not_improved(authors("lorenz96")).true
    assert claims.ard_terms_are_small(authors("lorenz96")) is None  # they do not hold coefficients


def test_checks_notice_when_the_opposite_is_true():
    reversed_table = authors("linear")
    reversed_table[list(METRICS)] = 1 / (reversed_table[list(METRICS)] + 1)
    for check in (
        claims.lower_error,
        claims.parsimonious,
        claims.thresholding_has_lower_l2,
        claims.thresholding_adds_fewer,
    ):
        assert check(authors("linear")).true
        assert not check(reversed_table).true


def test_small_extraneous_terms_are_told_from_large_ones():
    records = pd.DataFrame({"method": "ARD", "trial": range(4), "added": 10, "added_l1": 0.5})
    assert claims.ard_terms_are_small(records).true
    assert not claims.ard_terms_are_small(records.assign(added_l1=5.0)).true


@pytest.mark.parametrize(("wide", "better"), [(1, True), (5, None), (9, None)])
def test_that_a_search_over_more_may_help_is_borne_out_or_not_but_never_refuted(wide, better):
    generator = np.random.default_rng(0)
    rows = [
        {"trial": trial, "method": method, "added": level + generator.integers(2), "missed": 0, "l2": level}
        for method, level in (("ARDr", 5), (f"ARDr, {regressions.WIDE}", wide))
        for trial in range(30)
    ]
    records = pd.DataFrame(rows).assign(experiment="linear")
    assert claims.both_searched_may_help(records).true is better
    assert claims.both_searched_may_help(authors("linear").assign(experiment="linear")) is None


@pytest.mark.parametrize(("more", "holds"), [(0.0, True), (1.0, False)])
def test_an_increase_is_told_from_chance(more, holds):
    generator = np.random.default_rng(1)
    missed = {"ARD": generator.integers(3, size=100), "ARDvi": generator.integers(3, size=100) + more}
    rows = [{"trial": t, "method": m, "missed": v} for m, values in missed.items() for t, v in enumerate(values)]
    assert claims.inflation_misses_no_more(pd.DataFrame(rows)).true == holds


def test_distances_from_theory_are_in_standard_errors():
    """Nine trials that expect four events each: a mean of 4 is at 0, one of 6 at (6 − 4)/√(4/9) = 3."""
    level = {"strength": 1.0, "expected_added": 4.0}
    rows = [level | {"trial": t, "sigma": s, "added": n} for s, n in ((0.1, 4), (1.0, 6)) for t in range(9)]
    assert tables.distances(pd.DataFrame(rows), "added").tolist() == pytest.approx([0, 3])


def on_63(**added):
    """Return records of Lorenz 63 with these mean numbers of added terms by criterion and kind of errors."""
    names = {"real": "", "alone": OF_DIFFERENCES, "dependent": DIFFERENCED, "free": INDEPENDENT}
    generator = np.random.default_rng(0)
    rows = [
        {"criterion": f"{criterion}, {names[kind]}" if names[kind] else criterion, "trial": trial, "method": method}
        | {"added": mean + generator.integers(2), "missed": 0}
        for (criterion, kind), mean in ((key.split("_"), value) for key, value in added.items())
        for trial in range(30)
        for method in METHODS
    ]
    return pd.DataFrame(rows)


def test_errors_that_may_harm_are_told_from_errors_that_do_not():
    records = on_63(oracle_real=4, oracle_alone=0, oracle_dependent=0, oracle_free=0)
    assert claims.noise_inside_does_no_harm(records).true is False
    # An effect may be of truncation errors, which Gaussian ones lack, too: nothing is decided.
    assert claims.errors_do_no_harm(records).true is None
    harmless = on_63(oracle_real=4, oracle_alone=4, oracle_dependent=4, oracle_free=0)
    assert claims.noise_inside_does_no_harm(harmless).true is True
    assert claims.errors_do_no_harm(harmless).true is True  # independent ones are only shown
    assert claims.errors_do_no_harm(on_63(oracle_real=4)) is None


def test_what_misleads_aicc_is_what_errors_without_it_do_not():
    oracle = {"oracle_real": 0, "oracle_alone": 0, "oracle_dependent": 0, "oracle_free": 0}
    truncated = on_63(aicc_real=9, aicc_alone=9, aicc_dependent=1, aicc_free=1, **oracle)
    assert claims.errors_mislead_aicc(truncated).true is True
    assert claims.noise_inside_misleads_aicc(truncated).true is False
    neither = on_63(aicc_real=9, aicc_alone=4, aicc_dependent=7, aicc_free=7, **oracle)
    assert claims.errors_mislead_aicc(neither).true is False
    assert claims.noise_inside_misleads_aicc(neither).true is True
    assert claims.errors_mislead_aicc(on_63(oracle_real=1, aicc_real=2)) is None


def test_medians_are_tested_by_signs():
    """Of twenty differences eighteen are below zero, and two far above: the mean is positive, the median is not."""
    one, other = pd.Series([-1.0] * 18 + [90.0] * 2), pd.Series([0.0] * 20)
    test = inference.Paired(one, other)
    assert test.mean > 0
    assert test.chance_of_sign == pytest.approx(2 * sum(comb(20, k) for k in range(3)) / 2**20)
    assert np.isnan(inference.Paired(one[:5], other[:5]).chance_of_sign)


def test_medians_against_which_most_trials_speak_bear_nothing_out():
    """M-STSBL has the smaller median of three, and in most trials the larger error than L-STSBL."""
    own, other = [1.0] * 11 + [5.0] * 10, [2.0] * 2 + [0.5] * 8 + [3.0] + [4.0] * 10
    errors = {"M-STSBL": own, "L-STSBL": other, "MAP-STSBL": [6.0] * 21}
    rows = [{"trial": t, "method": m, "l2": v} for m, values in errors.items() for t, v in enumerate(values)]
    found = claims.magnitude_is_nearest_in_the_median(pd.DataFrame(rows))
    assert np.median(own) < np.median(other)
    assert not found.true
    assert "18 trials below, 3 above" in found.margin
    assert "against the sentence" in found.margin
    assert inference.Paired(pd.Series(other), pd.Series(own)).direction == -1


def test_a_fixed_positive_number_is_neither_zero_nor_still_falling():
    def records(limit, before):
        rows = [(0.01, 0.0, limit), (0.02, 0.0, before), (1.0, 50.0, 12.0)]
        return pd.DataFrame(
            {"trial": trial, "strength": 0.25, "sigma": sigma, "added": added, "missed": missed}
            | {"expected_missed": missed}
            for trial in range(50)
            for sigma, added, missed in rows
        )

    assert claims.hard_threshold(records(4.8, 4.81)).true
    assert not claims.hard_threshold(records(0.1, 0.2)).true
    assert not claims.hard_threshold(records(4.8, 4.81).assign(missed=1.0)).true


def test_steps_decide_over_costs():
    steps = {"ARD": 26, "ARDvi": 10, "ARDr": 30, "M-STSBL": 50, "L-STSBL": 50, "MAP-STSBL": 60}
    rows = [
        {"experiment": name, "trial": 0, "method": method, "steps": n, "milliseconds": n, "seconds": n}
        for name in ("merits", "linear")
        for method, n in steps.items()
    ]
    records = pd.DataFrame(rows)
    assert claims.recursion_costs(records).true
    assert not claims.regularised_slightly_dearer(records).true
    records.loc[records["method"] == "ARDvi", "steps"] = 25
    assert claims.regularised_slightly_dearer(records).true
    records.loc[records["method"] == "ARDvi", "steps"] = 55
    assert not claims.recursion_costs(records).true


def test_closed_forms_guide_where_trends_have_their_sign():
    generator = np.random.default_rng(0)
    rows = [
        {"trial": trial, "method": method, "expected_added": expected, "expected_missed": 9 - expected}
        | {"added": 3 * expected + generator.integers(4), "missed": 20 - expected + generator.integers(3)}
        for trial in range(10)
        for method in METHODS[1:]
        for expected in (1, 2, 4, 8)
    ]
    records = pd.DataFrame(rows)
    found = claims.orthogonal_rates_are_guides(records)
    assert found.true
    assert "ARDvi 4" in found.evidence
    assert not claims.orthogonal_rates_are_guides(records.assign(missed=-records["missed"])).true
    assert not claims.orthogonal_rates_are_guides(records.assign(added=generator.permutation(records["added"]))).true
    assert claims.orthogonal_rates_are_guides(records.drop(columns="expected_added")) is None


def test_a_depth_of_two_is_not_one():
    assert claims.depth_one(pd.DataFrame({"rounds": [0, 1, 1]})).true
    assert not claims.depth_one(pd.DataFrame({"rounds": [0, 1, 2]})).true


def test_a_word_says_where_its_verdict_would_turn():
    found = at_most("far", 0.67, {"ARDvi": 0.2, "ARDr": 0.7}, "evidence")
    assert not found.true
    assert "turns at 0.7 (ARDr)" in found.margin


def test_steadiness_is_the_share_of_resamples_with_the_same_truth():
    rows = pd.DataFrame([{"trial": t, "method": m, "x": t} for t in range(40) for m in METHODS])
    assert steadiness(lambda part: Finding(part["x"].mean() > 0, ""), rows) == 1
    assert 0.2 < steadiness(lambda part: Finding(part["x"].mean() > 19.5, ""), rows) < 0.8


def test_paired_differences_have_the_error_of_the_difference():
    """What two methods share from trial to trial does not count."""
    shared, own = np.random.default_rng(0).normal(size=(2, 50))
    one, other = pd.Series(10 * shared + 1 + 0.1 * own), pd.Series(10 * shared)
    test = Paired(one, other)
    assert test.mean == pytest.approx(1, abs=0.1)
    assert test.error < 0.05
    assert test.chance < 1e-8
    assert Paired(one, one).chance == 1
    assert str(Paired(one, one)) == "0"
    assert with_error(0.5351, 0.0123) == "0.535 ± 0.012"
    assert with_error(12.3, float("nan")) == "12.3"


@pytest.mark.parametrize("ties", [False, True])
def test_up_to_25_pairs_the_signed_rank_test_counts_all_signs(ties):
    """The share of the 2^9 patterns of signs whose sum of ranks is at least as extreme, zeros left out."""
    generator = np.random.default_rng(5)
    difference = generator.normal(0.4, 1, 9)
    difference = np.rint(2 * difference) if ties else difference
    moved = difference[difference != 0]
    ranks = pd.Series(np.abs(moved)).rank().to_numpy()
    sums = np.array([ranks @ signs for signs in product((0, 1), repeat=moved.size)])
    observed = ranks[moved > 0].sum()
    expected = min(1.0, 2 * min(np.mean(sums <= observed), np.mean(sums >= observed)))
    assert signed_rank(difference) == pytest.approx(expected)


def test_nothing_is_tested_below_six_pairs():
    assert signed_rank(np.arange(1.0, 7.0)) == 2 / 2**6
    for few in (np.ones(1), np.arange(1.0, 6.0)):
        assert np.isnan(signed_rank(few))
        one = pd.Series(few)
        assert "p" not in str(Paired(one, 0 * one))


def test_exact_and_normal_test_meet():
    generator = np.random.default_rng(6)
    difference = generator.normal(0.5, 1, 25)
    both = signed_rank(difference), signed_rank(np.append(difference, 0.0))  # a pair more, which does not count
    assert both[0] == pytest.approx(both[1], abs=0.01)


def starts(n_starts, between, n_equations=40):
    """Return records of equations that differ more between starts than within."""
    generator = np.random.default_rng(7)
    level = np.repeat(between * generator.normal(size=n_starts), n_equations)
    rows = {"start": np.repeat(np.arange(n_starts), n_equations), "trial": np.arange(level.size)}
    values = {"ARD": 10 + level, "ARDvi": 10 + generator.normal(0, 0.01, level.size)}
    parts = [pd.DataFrame(rows | {"method": m, "l2": v, "l1": v, "added": v, "missed": 0}) for m, v in values.items()]
    return pd.concat(parts, ignore_index=True)


def test_equations_of_one_trajectory_count_once():
    """The error of the mean is that of as many numbers as there are starts, and so many pairs are tested."""
    records = starts(8, between=1.0)
    table = by_trial(records, "l2")
    test = Paired(table["ARD"], table["ARDvi"])
    means = (table["ARD"] - table["ARDvi"]).groupby(level="start").mean()
    assert test.difference.size == 8
    assert test.error == pytest.approx(means.std() / np.sqrt(8))
    error = table["ARD"].groupby(level="start").mean().std() / np.sqrt(8)
    assert mean_cells(records).loc["ARD", "l2"] == with_error(table["ARD"].mean(), error)
    one = by_trial(records[records["start"] == 0], "l2")
    assert Paired(one["ARD"], one["ARDvi"]).difference.size == 40  # within a start there is nothing else


def test_resamples_are_of_starts_where_equations_share_them():
    """Three starts are above 10 and three below: of 40 equations each, whole starts come and go."""
    records = starts(6, between=0.0)
    records["l2"] = 10.1 + np.where(records["start"] < 3, 1.0, -1.0)

    def above(part):
        return Finding(part.loc[part["method"] == "ARD", "l2"].mean() > 10, "")

    assert 0.4 < steadiness(above, records) < 0.9
    assert steadiness(above, records.drop(columns="start")) > 0.9  # as if equations were independent


def test_success_of_one_alone_is_tested_on_the_trials_where_they_differ():
    one, other = pd.Series([True] * 6 + [False] + [True] * 9), pd.Series([False] * 6 + [True] + [True] * 9)
    assert only_one_succeeds(one, other) == (6, 1, pytest.approx(0.125))
    assert only_one_succeeds(one, one)[2] == 1


def test_a_leader_is_named_with_those_it_does_not_leave_behind():
    generator = np.random.default_rng(8)
    shared = generator.normal(size=40)
    levels = {"ARD": 5.0, "ARDvi": 1.0, "ARDr": 1.0}
    frames = [
        pd.DataFrame({"trial": range(40), "method": m, "l2": v + shared + 0.1 * generator.normal(size=40)})
        for m, v in levels.items()
    ]
    best, like = leader(pd.concat(frames), "l2")
    assert {best, *like} == {"ARDvi", "ARDr"}


def test_sentences_are_counted_by_kind():
    rows = tally([("results", HOLDS), ("results", HOLDS), ("results", FAILS), ("expected", FAILS)]).splitlines()
    assert rows[0] == "| statements | holds | does not hold |"
    assert rows[2:] == ["| results | 2 | 1 |", "| expected | 0 | 1 |"]


def test_grids_bind_where_more_than_a_twentieth_of_the_fits_end_there():
    records = pd.DataFrame({"method": ["ARDr"] * 20 + ["ARDvi"] * 20, "bound": [1] * 4 + [0] * 16 + [1] + [0] * 19})
    assert binding({"an example": records}) == "ARDr (an example 20 %)"


def test_evidence_is_on_the_trials_that_all_methods_have():
    row = {"l2": 1.0, "l1": 1.0, "missed": 0}
    rows = [row | {"trial": t, "method": "SparseARD", "added": 0} for t in range(8)]
    rows += [row | {"trial": t, "method": "ARDvi", "added": 1 if t < 8 else 50} for t in range(20)]
    table = evidence_table({"linear": pd.DataFrame(rows)}, {"linear": ["SparseARD", "ARDvi"]}).splitlines()
    assert table[-1] == "| linear | ARDvi | 1 | 1 | +1 (p = 0.008) | 0 of 8 |"


def test_a_difference_in_the_mean_that_chance_explains_is_told():
    generator = np.random.default_rng(9)
    rows = [
        {"trial": t, "method": m, "l2": 1, "l1": 1, "added": 2 * (m == "ARD") + generator.normal(0, 2), "missed": 0}
        for t in range(10)
        for m in METHODS
    ]
    found = claims.parsimonious(pd.DataFrame(rows))
    assert found.true
    assert not found.firm
    assert "not borne out by the test: " in found.margin
    assert verdict([("corrected", found)])[0] == WEAKLY


def test_readings_of_a_single_term_are_told_apart():
    """Of the authors' own records both are true, so neither is proven a misprint."""
    assert claims.all_but_inflation_add_one(authors("lorenz96")).true
    assert claims.all_but_inflation_miss_one(authors("lorenz96")).true
    none = authors("lorenz96").assign(added=0, missed=0)
    assert not claims.all_but_inflation_add_one(none).true
    assert not claims.all_but_inflation_miss_one(none).true


def test_mode_is_the_most_frequent_count():
    records = pd.DataFrame({"method": "ARD", "missed": (0, 2, 2, 3)})
    assert mode(records, "ARD", "missed") == 2


@pytest.mark.parametrize("claim", THEORY, ids=lambda claim: claim.sentence[:40])
def test_theory_holds_at_quick_scale_but_for_what_is_wrong_in_it(quick_results, claim):
    output = read_outputs(quick_results, "quick").get((claim.experiment, "corrected"))
    if output is None:
        return
    found, evidence, _ = verdict([("corrected", CHECKS[claim.check](output.records))])
    assert re.search(r"\d|monotone", evidence)
    wrong = claim.kind == "misprint" or (claim.check, claim.experiment) in WRONG_STATEMENTS
    too_small = claim.check in ("different_when_correlated", "missed_vanish_added_stay")
    if not too_small:
        assert found == (FAILS if wrong else HOLDS)


def test_a_wrong_prediction_is_not_called_agreement(quick_results):
    records = read_outputs(quick_results, "quick")["orthogonal-vi", "corrected"].records
    assert claims.agrees_with_theory(records).true
    assert not claims.agrees_with_theory(records.assign(expected_added=2 * records["expected_added"])).true


def test_checks_of_theory_notice_when_the_opposite_is_true(quick_results):
    outputs = read_outputs(quick_results, "quick")
    rho, vi, m = (outputs[name, "corrected"].records for name in ("rho", "orthogonal-vi", "orthogonal-m"))
    assert not claims.one_pair_stays(rho.assign(fp=rho["fp"] + 0.1 * (rho["method"] == "ARDvi"))).true
    assert not claims.pairs_part(rho.assign(fp=0.5, fn=0.5)).true
    constant = rho["fp"].where(rho["method"] != "ARDr", 0.3)  # what the order of its ψ says
    assert claims.trends_follow_from_exponents(rho.assign(fp=constant)).true
    assert not claims.inflation_ends_added(vi.assign(added=vi["strength"])).true
    assert not claims.added_do_not_depend_on_noise(vi.assign(added=100 * vi["sigma"])).true
    assert not claims.small_terms_are_lost(m.assign(missed=0)).true
    both = pd.concat([m.assign(experiment=name, missed=n) for name, n in (("orthogonal-l", 1), ("orthogonal-m", 9))])
    assert claims.misses_far_fewer_than_magnitude(both).true
    other = both["experiment"].map({"orthogonal-l": "orthogonal-m", "orthogonal-m": "orthogonal-l"})
    assert not claims.misses_far_fewer_than_magnitude(both.assign(experiment=other)).true


def test_a_larger_strength_that_reaches_no_smaller_noise_is_noticed():
    levels = [
        {"strength": s, "sigma": sigma, "added": 1 / (s * sigma**2)} for s in (1, 100) for sigma in (0.01, 0.1, 1)
    ]
    records = pd.DataFrame(levels)
    assert claims.less_noise_needs_more(records).true
    assert not claims.less_noise_needs_more(records.assign(added=records["sigma"])).true


def test_a_sentence_about_two_experiments_is_asked_of_both(quick_results):
    outputs, claim = read_outputs(quick_results, "quick"), next(c for c in CLAIMS if "+" in c.experiment)
    assert judgement(outputs, {}, claim)[0] == NOT_RUN  # orthogonal-l was not run
    outputs["orthogonal-l", "corrected"] = outputs["orthogonal-m", "corrected"]
    assert judgement(outputs, {}, claim)[0] == FAILS


def test_sentences_of_the_authors_trials_are_not_judged_on_more(quick_results):
    run = read_outputs(quick_results, "quick")["kappa", "corrected"]
    n = run.settings.sizes["published_trials"]
    assert n < run.shown["trial"].nunique()
    assert set(run.theirs["trial"]) == set(range(n))


# Comparison with the authors.


def test_table_1_is_within_two_standard_errors_of_the_records():
    linear = stored("authors.csv").query("experiment == 'linear'")
    worst, n = printed_distance(linear)
    assert n == 24
    assert worst < 2
    other = linear.assign(added=linear["added"] + 30 * (linear["source"] != "authors"))
    assert printed_distance(other)[0] > 5


def test_agreement_counts_equal_rows():
    theirs = [
        {"trial": 0, "method": "ARD", "l2": 1.0, "l1": 1.0, "added": 3, "missed": 0},
        {"trial": 1, "method": "ARD", "l2": 1.0, "l1": 1.0, "added": 3, "missed": 0},
    ]
    ours = pd.DataFrame(
        [
            {"trial": 0, "method": "ARD", "l2": 1.0005, "added": 3, "missed": 0},
            {"trial": 1, "method": "ARD", "l2": 1.0, "added": 4, "missed": 0},
            {"trial": 2, "method": "ARD", "l2": 1.0, "added": 4, "missed": 0},
        ]
    )
    assert agreement(ours, pd.DataFrame(theirs)) == (1, 2, ["trial 1, ARD"])


def test_at_quick_scale_nothing_is_compared_with_the_paper(quick_page):
    """Its data are others: no numbers of the authors, no verdicts."""
    text = quick_page.read_text()
    assert "| authors |" not in text
    assert "printed (Table 1)" not in text
    assert "How far the replay" not in text
    assert "Judged at paper scale only" in text


def test_the_authors_records_come_first_and_the_replay_where_they_lack_something(quick_results):
    outputs, theirs = read_outputs(quick_results, "quick"), dict(iter(stored("authors.csv").groupby("experiment")))
    by_check = {claim.check: claim for claim in CLAIMS}
    assert judgement(outputs, theirs, by_check["l1_above_l2"])[1].startswith("authors: ")
    assert judgement(outputs, theirs, by_check["dominated_by_added"])[1].startswith("replay: ")
    assert judgement(outputs, theirs, by_check["errors_do_no_harm"])[0] == NOT_RUN


def test_an_ablation_sets_every_correction_beside_the_published_code():
    names = {"trial": 0, "l2": 1.0, "l1": 2.0, "added": 3, "missed": 0}
    published = [
        names | {"method": method, "correction": one, "l2": 1.0 + (one == "all")}
        for one in ("none", "choice", "all")
        for method in METHODS
    ]
    corrected = [names | {"method": f"{method}{extra}"} for extra in ("", ", second start") for method in METHODS]
    table = ablation_table(pd.DataFrame(published), pd.DataFrame(corrected)).splitlines()
    assert table[2:8] == [f"| as published | {method} | 1 | 1 | 2 | 3 | 0 |" for method in METHODS]
    assert table[8:14] == [f"| all | {method} | 1 | +1 | 0 | 0 | 0 |" for method in METHODS]
    assert table[-1] == "Without effect here: choice, the estimators, the estimators, second start."


# The page.


def test_the_page_has_every_part_and_says_what_is_missing(quick_page):
    text = quick_page.read_text()
    headings = (
        "What was claimed",
        "What we found",
        "What to use when",
        "How we judged",
        "Numbers",
        "Grids",
        "Every sentence",
        "Misprints",
    )
    for heading in headings:
        assert f"## {heading}" in text
    assert "the command" in text
    assert "SparseARD" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (quick_page.parent / target).exists()


def test_numbers_on_the_page_come_from_the_records(quick_results, quick_page):
    outputs = read_outputs(quick_results, "quick")
    records = outputs["linear", "corrected"].records
    values = records[records["method"] == "ARD"]["l2"]
    assert f"| {with_error(values.mean(), values.sem())} |" in quick_page.read_text()
    records["l2"] = 77.7
    assert "77.7" in page_text(outputs, quick_results, "quick")
    assert "least mean" in comparison(records)


def test_tables_have_the_digits_that_matter_and_escape_bars():
    numbers = [0.35, 65.38, 0.0, 1234.5, 3e-5]
    assert list(map(number, numbers)) == ["0.350", "65.4", "0", "1234", "3.0e-05"]
    table = markdown(["method", "added"], [["ARD", 3.25], ["|x|", 0]])
    assert table == "| method | added |\n|---|---|\n| ARD | 3.250 |\n| \\|x\\| | 0 |"


def test_durations_in_words():
    assert list(map(duration, [0.2, 42, 125, 8000])) == ["< 1 s", "42 s", "2 min 5 s", "2 h 13 min"]


def test_the_page_can_be_made_again_from_its_own_folder(quick_page, tmp_path):
    """The copies hold all that the page tells, in the same bytes every time."""
    first, again = quick_page, write_page(quick_page.parent, tmp_path, "quick")
    files = {path.relative_to(first.parent) for path in first.parent.rglob("*") if path.is_file()}
    assert {path.name for path in files} == {
        "README.md",
        "table.md",
        "figure.svg",
        "environment.json",
        "records.csv.gz",
    }
    for file in files:
        assert (again.parent / file).read_bytes() == (first.parent / file).read_bytes()


def test_without_results_the_command_says_what_to_run(tmp_path, capsys):
    assert main(["reproduce", "report", "--out", str(tmp_path)]) == 1
    assert "ardea reproduce all" in capsys.readouterr().err


def test_results_of_the_authors_are_complete():
    for _, source in stored("authors.csv").groupby(["experiment", "source", "trial"]):
        assert set(source["method"]) == set(METHODS)
        assert np.isfinite(source[list(METRICS)]).all(axis=None)


def test_misprints_say_why():
    misprints = stored("misprints.csv")
    assert list(misprints) == ["where", "printed", "should read", "why"]
    assert not misprints.isna().any(axis=None)
    assert len(misprints) > 40


@pytest.mark.slow  # resamples every verdict
def test_the_committed_folder_gives_the_committed_page():
    outputs = read_outputs(COMMITTED, "paper")
    assert set(outputs) == {
        (one.name, variant)
        for one in EXPERIMENTS
        for variant in ("corrected", "published")
        if variant in one.core_seconds
    }
    assert page_text(outputs, COMMITTED, "paper") == (COMMITTED / "README.md").read_text(encoding="utf-8")
