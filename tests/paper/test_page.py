"""The report page: verdicts follow from records, numbers are not typed in, missing results are said to be missing."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.paper import claims, runner
from ardea.paper.catalogue import EXPERIMENTS, experiment_named, markdown, number
from ardea.paper.claims import CORRECTED_ONLY, FAILS, HOLDS, NOT_RUN, PUBLISHED_ONLY, mode, verdict
from ardea.paper.experiment import duration
from ardea.paper.page import agreement, page_text, read_outputs, stored, write_page
from ardea.paper.regressions import METHODS, METRICS
from ardea.paper.runner import run

CLAIMS = list(stored("claims.csv").itertuples())
THEORY = [claim for claim in CLAIMS if not claim.section.startswith(("6", "7"))]


def authors(experiment, source="authors"):
    numbers = stored("authors.csv")
    return numbers[(numbers["experiment"] == experiment) & (numbers["source"] == source)].assign(trial=0)


@pytest.fixture(scope="module")
def quick_results(tmp_path_factory):
    """Results of the quickest experiments, the rest missing."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "figure_files", lambda *_: {"figure.png": b"a picture", "figure.svg": b"another"})
        for name in ("orthogonal-vi", "orthogonal-m", "fpfn-curve", "rho", "kappa", "linear"):
            experiment = experiment_named(name)
            run(experiment, experiment.settings("quick", "corrected"), out, beyond=True, command="the command")
        for name in ("kappa", "linear"):
            experiment = experiment_named(name)
            run(experiment, experiment.settings("quick", "published"), out)
    return out


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
    findings = [(true, "evidence") for true in (published, corrected) if true is not None]
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
    assert claims.thresholding_wins(printed)[0]
    assert claims.all_below_ard(printed)[0]
    assert not claims.many_small_terms(printed)[0]  # M-STSBL: 1.50/.35 = 4.3 < 5


def test_the_authors_means_bear_out_their_sentences_on_lorenz96_and_ks():
    assert claims.parsimonious(authors("ks"))[0]
    assert claims.ard_terms_are_small(authors("lorenz96"))[0]


def test_checks_notice_when_the_opposite_is_true():
    reversed_table = authors("linear", "printed (Table 1)")
    reversed_table[list(METRICS)] = 1 / reversed_table[list(METRICS)]
    assert not claims.all_below_ard(reversed_table)[0]
    assert not claims.all_far_better(reversed_table)[0]


def test_mode_is_the_most_frequent_count():
    records = pd.DataFrame({"method": "ARD", "missed": (0, 2, 2, 3)})
    assert mode(records, "ARD", "missed") == 2


@pytest.mark.parametrize("claim", THEORY, ids=lambda claim: claim.sentence[:40])
def test_theory_holds_at_quick_scale_but_for_the_misprints(quick_results, claim):
    output = read_outputs(quick_results, "quick").get((claim.experiment, "corrected"))
    if output is None:
        return
    found, evidence = verdict([getattr(claims, claim.check)(output.records)])
    assert re.search(r"\d|monotone", evidence)
    misprint = claim.sentence.startswith("As printed") or claim.sentence == "ψ_ARDr = O(ρ⁻¹)."
    too_small = claim.check in ("different_when_correlated", "missed_vanish_added_stay")
    if not too_small:
        assert found == (FAILS if misprint else HOLDS)


def test_a_wrong_prediction_is_not_called_agreement(quick_results):
    records = read_outputs(quick_results, "quick")["orthogonal-vi", "corrected"].records
    assert claims.agrees_with_theory(records)[0]
    assert not claims.agrees_with_theory(records.assign(expected_added=2 * records["expected_added"]))[0]


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


def test_the_page_says_how_far_the_replay_equals_the_authors(quick_results, tmp_path):
    outputs = read_outputs(quick_results, "quick")
    mine = outputs["linear", "published"].records.assign(experiment="linear", dimension="")
    strange = mine.assign(experiment="ks", added=99)  # of another experiment, so that it does not count
    pd.concat([mine, strange]).to_csv(tmp_path / "same.csv")
    mine.assign(added=mine["added"] + 1).to_csv(tmp_path / "other.csv")
    same, other = (page_text(outputs, quick_results, "quick", tmp_path / name) for name in ("same.csv", "other.csv"))
    assert f"| linear | {len(mine)} of {len(mine)} | – |" in same
    assert "In the linear rows that differ" not in same
    assert f"| linear | 0 of {len(mine)} | trial 0, ARD; " in other
    assert "In the linear rows that differ" in other


# The page.


def test_the_page_has_every_part_and_says_what_is_missing(quick_results, tmp_path):
    page = write_page(quick_results, tmp_path, "quick")
    text = page.read_text()
    headings = ("What changes, and why", "Numbers side by side", "Figures", "Every sentence", "Misprints", "Time")
    for heading in headings:
        assert f"## {heading}" in text
    assert "the command" in text
    assert NOT_RUN in text
    assert "SparseARD (ours)" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (tmp_path / target).exists()


def test_numbers_on_the_page_come_from_the_records(quick_results):
    outputs = read_outputs(quick_results, "quick")
    records = outputs["linear", "corrected"].records
    value = f"{records[records['method'] == 'ARD']['l2'].mean():.3g}"
    assert value in page_text(outputs, quick_results, "quick")
    records["l2"] = 77.7
    assert "77.7" in page_text(outputs, quick_results, "quick")


def test_tables_have_the_digits_that_matter_and_escape_bars():
    numbers = [0.35, 65.38, 0.0, 1234.5, 3e-5]
    assert list(map(number, numbers)) == ["0.350", "65.4", "0", "1234", "3.0e-05"]
    table = markdown(["method", "added"], [["ARD", 3.25], ["|x|", 0]])
    assert table == "| method | added |\n|---|---|\n| ARD | 3.250 |\n| \\|x\\| | 0 |"


def test_durations_in_words():
    assert list(map(duration, [0.2, 42, 125, 8000])) == ["< 1 s", "42 s", "2 min 5 s", "2 h 13 min"]


def test_the_page_can_be_made_again_from_its_own_folder(quick_results, tmp_path):
    """The copies hold all that the page tells, in the same bytes every time."""
    first = write_page(quick_results, tmp_path / "first", "quick")
    again = write_page(tmp_path / "first", tmp_path / "again", "quick")
    files = {path.relative_to(tmp_path / "first") for path in first.parent.rglob("*") if path.is_file()}
    assert {path.name for path in files} == {
        "README.md",
        "table.md",
        "figure.png",
        "environment.json",
        "records.csv.gz",
    }
    for file in files:
        assert (again.parent / file).read_bytes() == (first.parent / file).read_bytes()


def test_without_results_the_command_says_what_to_run(tmp_path, capsys):
    assert main(["reproduce", "report", "--out", str(tmp_path)]) == 1
    assert "ardea reproduce all" in capsys.readouterr().err


def test_means_of_the_authors_are_complete():
    for _, source in stored("authors.csv").groupby(["experiment", "source"]):
        assert set(source["method"]) == set(METHODS)
        assert np.isfinite(source[list(METRICS)]).all(axis=None)
