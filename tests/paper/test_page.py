"""The report page: verdicts follow from records, numbers are not typed in, missing results are said to be missing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.paper import claims, regressions, runner, tables
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.experiment import duration
from ardea.paper.page import agreement, judgement, page_text, read_outputs, stored, write_page
from ardea.paper.regressions import METHODS, METRICS
from ardea.paper.runner import run
from ardea.paper.tables import (
    CORRECTED_ONLY,
    FAILS,
    HOLDS,
    NOT_RUN,
    PUBLISHED_ONLY,
    Finding,
    Paired,
    ablation_table,
    at_most,
    comparison,
    markdown,
    mode,
    number,
    steadiness,
    verdict,
    with_error,
)

CLAIMS = list(stored("claims.csv").itertuples())
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
        patch.setattr(runner, "figure_file", lambda *_: b"a picture")
        patch.setattr(regressions, "WIDE_GRIDS", regressions.LINEAR.grids)
        patch.setattr(regressions, "PRIOR_GRIDS", {n: p[:1] for n, p in regressions.PRIOR_GRIDS.items()})
        for name in ("orthogonal-vi", "orthogonal-m", "fpfn-curve", "rho", "kappa", "linear"):
            experiment = experiment_named(name)
            run(experiment, experiment.settings("quick", "corrected"), out, beyond=True, command="the command")
        for name in ("kappa", "linear"):
            experiment = experiment_named(name)
            run(experiment, experiment.settings("quick", "published"), out)
    return out


@pytest.fixture
def few_resamples(monkeypatch):
    """How far verdicts hang on the draw is tested apart; on a page it takes most of the time."""
    monkeypatch.setattr(tables, "RESAMPLES", 3)


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


def test_claims_name_experiments_and_are_told_apart():
    names = {experiment.name for experiment in EXPERIMENTS}
    assert {claim.experiment for claim in CLAIMS} <= names
    assert {claim.rows for claim in CLAIMS} == {"shown", "all"}
    assert all(callable(getattr(claims, claim.check)) for claim in CLAIMS)
    assert len({claim.sentence for claim in CLAIMS}) == len(CLAIMS) > 45


def test_table_1_as_printed_bears_out_what_the_paper_says_of_it():
    """The sentences on the linear example are true of the printed numbers, so the checks read them as meant."""
    printed = authors("linear", "printed (Table 1)")
    assert claims.thresholding_wins(printed).true
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
    for check in (claims.lower_error, claims.parsimonious, claims.thresholding_wins):
        assert check(authors("linear")).true
        assert not check(reversed_table).true


def test_small_extraneous_terms_are_told_from_large_ones():
    records = pd.DataFrame({"method": "ARD", "trial": range(4), "added": 10, "added_l1": 0.5})
    assert claims.ard_terms_are_small(records).true
    assert not claims.ard_terms_are_small(records.assign(added_l1=5.0)).true


@pytest.mark.parametrize(("wide", "better"), [(1, True), (5, False), (9, False)])
def test_a_search_over_more_that_does_not_help_is_noticed(wide, better):
    generator = np.random.default_rng(0)
    rows = [
        {"trial": trial, "method": method, "added": level + generator.integers(2), "missed": 0, "l2": level}
        for method, level in (("ARDr", 5), (f"ARDr, {regressions.WIDE}", wide))
        for trial in range(30)
    ]
    for check in (claims.both_searched_is_sparser, claims.both_searched_is_nearer):
        assert check(pd.DataFrame(rows)).true == better
        assert check(authors("linear")) is None


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


def test_errors_that_harm_are_noticed():
    generator = np.random.default_rng(0)
    rows = [
        {"criterion": kind, "trial": trial, "method": method, "added": added + generator.integers(2), "missed": 0}
        for kind, added in (("oracle", 4), ("oracle, Gaussian errors", 0))
        for trial in range(30)
        for method in METHODS
    ]
    records = pd.DataFrame(rows)
    assert not claims.errors_do_no_harm(records).true
    assert claims.errors_do_no_harm(records.assign(added=1)).true
    assert claims.errors_do_no_harm(records[records["criterion"] == "oracle"]) is None


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
    assert with_error(0.5351, 0.0123) == "0.535 ± 0.012"
    assert with_error(12.3, float("nan")) == "12.3"


def test_mode_is_the_most_frequent_count():
    records = pd.DataFrame({"method": "ARD", "missed": (0, 2, 2, 3)})
    assert mode(records, "ARD", "missed") == 2


@pytest.mark.parametrize("claim", THEORY, ids=lambda claim: claim.sentence[:40])
def test_theory_holds_at_quick_scale_but_for_the_misprints(quick_results, claim):
    output = read_outputs(quick_results, "quick").get((claim.experiment, "corrected"))
    if output is None:
        return
    found, evidence, _ = verdict([("corrected", getattr(claims, claim.check)(output.records))])
    assert re.search(r"\d|monotone", evidence)
    misprint = claim.sentence.startswith("As printed") or claim.sentence == "ψ_ARDr = O(ρ⁻¹)."
    too_small = claim.check in ("different_when_correlated", "missed_vanish_added_stay")
    if not too_small:
        assert found == (FAILS if misprint else HOLDS)


def test_a_wrong_prediction_is_not_called_agreement(quick_results):
    records = read_outputs(quick_results, "quick")["orthogonal-vi", "corrected"].records
    assert claims.agrees_with_theory(records).true
    assert not claims.agrees_with_theory(records.assign(expected_added=2 * records["expected_added"])).true


# Comparison with the authors.


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


@pytest.mark.usefixtures("few_resamples")
def test_at_quick_scale_nothing_is_compared_with_the_paper(quick_results):
    """Its data are others: no numbers of the authors, no verdicts."""
    text = page_text(read_outputs(quick_results, "quick"), quick_results, "quick")
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
    text, trials = ablation_table(pd.DataFrame(published), pd.DataFrame(corrected))
    table = text.splitlines()
    assert trials == 1
    assert table[2] == "| as published " + 6 * "| 1 / 2 / 3 / 0 " + "|"
    assert table[3] == "| choice " + 6 * "| = " + "|"
    assert table[4].startswith("| all | 2 / 2 / 3 / 0 ")
    assert [line.split(" |")[0] for line in table[5:]] == ["| the estimators", "| the estimators, second start"]


# The page.


@pytest.mark.usefixtures("few_resamples")
def test_the_page_has_every_part_and_says_what_is_missing(quick_results, tmp_path):
    page = write_page(quick_results, tmp_path, "quick")
    text = page.read_text()
    headings = (
        "What was claimed",
        "What we found",
        "What to use when",
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
        assert (tmp_path / target).exists()


@pytest.mark.usefixtures("few_resamples")
def test_numbers_on_the_page_come_from_the_records(quick_results):
    outputs = read_outputs(quick_results, "quick")
    records = outputs["linear", "corrected"].records
    values = records[records["method"] == "ARD"]["l2"]
    assert f"| {with_error(values.mean(), values.sem())} |" in page_text(outputs, quick_results, "quick")
    records["l2"] = 77.7
    assert "77.7" in page_text(outputs, quick_results, "quick")
    assert "best" in comparison(records)


def test_tables_have_the_digits_that_matter_and_escape_bars():
    numbers = [0.35, 65.38, 0.0, 1234.5, 3e-5]
    assert list(map(number, numbers)) == ["0.350", "65.4", "0", "1234", "3.0e-05"]
    table = markdown(["method", "added"], [["ARD", 3.25], ["|x|", 0]])
    assert table == "| method | added |\n|---|---|\n| ARD | 3.250 |\n| \\|x\\| | 0 |"


def test_durations_in_words():
    assert list(map(duration, [0.2, 42, 125, 8000])) == ["< 1 s", "42 s", "2 min 5 s", "2 h 13 min"]


@pytest.mark.usefixtures("few_resamples")
def test_the_page_can_be_made_again_from_its_own_folder(quick_results, tmp_path):
    """The copies hold all that the page tells, in the same bytes every time."""
    first = write_page(quick_results, tmp_path / "first", "quick")
    again = write_page(tmp_path / "first", tmp_path / "again", "quick")
    files = {path.relative_to(tmp_path / "first") for path in first.parent.rglob("*") if path.is_file()}
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
    assert not misprints.isna().any(axis=None)
    assert len(misprints) > 25


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
