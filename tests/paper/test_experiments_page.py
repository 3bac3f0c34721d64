"""The report page: verdicts follow from records, numbers are not typed in, missing results are said to be missing."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from ardea.paper import claims_examples, claims_theory
from ardea.paper.__main__ import main
from ardea.paper.authors import SAVED_RUNS, TABLE_1, agreement
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.claims import (
    CORRECTED_ONLY,
    FAILS,
    HOLDS,
    NOT_RUN,
    PUBLISHED_ONLY,
    Claim,
    mode,
)
from ardea.paper.page import CLAIMS, page_text, write_page
from ardea.paper.records import Records, to_csv
from ardea.paper.results import Results
from ardea.paper.runner import run
from ardea.paper.study import METHODS


def constant(method_values, metrics=("l2", "l1", "added", "missed")):
    return Records(
        {"trial": 0, "method": m} | dict(zip(metrics, values, strict=True)) for m, values in method_values.items()
    )


@pytest.fixture(scope="module")
def quick_results(tmp_path_factory):
    """Results of the quickest experiments, the rest missing."""
    out = tmp_path_factory.mktemp("results")
    for name in ("orthogonal-vi", "orthogonal-m", "fpfn-curve", "rho", "kappa", "linear"):
        experiment = experiment_named(name)
        run(experiment, experiment.settings("quick", "corrected"), out, beyond=True, command="the command")
    kappa = experiment_named("kappa")
    run(kappa, kappa.settings("quick", "published"), out)
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
    claim = Claim("1", "x > 0", "linear", lambda records: (records[0]["x"] > 0, f"x = {records[0]['x']}"))
    records = [None if true is None else Records([{"x": 1 if true else -1}]) for true in (published, corrected)]
    assert claim.verdict(*records)[0] == word


def test_claims_name_experiments_and_are_told_apart():
    names = {experiment.name for experiment in EXPERIMENTS}
    assert {claim.experiment for claim in CLAIMS} <= names
    assert len({claim.sentence for claim in CLAIMS}) == len(CLAIMS) > 45


def test_table_1_as_printed_bears_out_what_the_paper_says_of_it():
    """The sentences on the linear example are true of the printed numbers, so the checks read them as meant."""
    printed = constant(TABLE_1)
    assert claims_examples.thresholding_wins(printed)[0]
    assert claims_examples.all_below_ard(printed)[0]
    assert not claims_examples.many_small_terms(printed)[0]  # M-STSBL: 1.50/.35 = 4.3 < 5


def test_the_authors_means_bear_out_their_sentences_on_lorenz96_and_ks():
    ks = Records(row | {"rows": "sample"} for row in constant(SAVED_RUNS["ks"]))
    assert claims_examples.parsimonious(ks)[0]
    lorenz96 = constant(SAVED_RUNS["lorenz96"])
    assert claims_examples.ard_terms_are_small(lorenz96)[0]


def test_checks_notice_when_the_opposite_is_true():
    reversed_table = constant({m: tuple(1 / v for v in TABLE_1[m]) for m in METHODS})
    assert not claims_examples.all_below_ard(reversed_table)[0]
    assert not claims_examples.all_far_better(reversed_table)[0]


def test_mode_is_the_most_frequent_count():
    records = Records({"method": "ARD", "missed": k} for k in (0, 2, 2, 3))
    assert mode(records, "ARD", "missed") == 2


@pytest.mark.parametrize("claim", claims_theory.CLAIMS, ids=lambda claim: claim.sentence[:40])
def test_theory_holds_at_quick_scale_but_for_the_misprints(quick_results, claim):
    records = Results(quick_results, "quick").records(claim.experiment, "corrected")
    if records is None:
        assert claim.verdict(None, None) == (NOT_RUN, "")
        return
    verdict, evidence = claim.verdict(None, records)
    assert re.search(r"\d|monotone", evidence)
    misprint = claim.sentence.startswith("As printed") or claim.sentence == "ψ_ARDr = O(ρ⁻¹)."
    too_small = claim.check in (claims_theory.different_when_correlated, claims_theory.missed_vanish_added_stay)
    if not too_small:
        assert verdict == (FAILS if misprint else HOLDS)


def test_a_wrong_prediction_is_not_called_agreement(quick_results):
    records = Results(quick_results, "quick").records("orthogonal-vi", "corrected")
    wrong = Records(row | {"expected_added": 2 * row["expected_added"]} for row in records)
    assert claims_theory.agrees_with_theory(records)[0]
    assert not claims_theory.agrees_with_theory(wrong)[0]


# Comparison with the authors.


def test_agreement_counts_equal_rows(tmp_path):
    theirs = [
        {"experiment": "linear", "trial": 0, "method": "ARD", "l2": 1.0, "l1": 1.0, "added": 3, "missed": 0},
        {"experiment": "linear", "trial": 1, "method": "ARD", "l2": 1.0, "l1": 1.0, "added": 3, "missed": 0},
        {"experiment": "ks", "trial": 0, "method": "ARD", "l2": 9.0, "l1": 1.0, "added": 3, "missed": 0},
    ]
    path = tmp_path / "authors.csv"
    path.write_text(to_csv(theirs))
    ours = Records(
        [
            {"trial": 0, "method": "ARD", "l2": 1.0005, "added": 3, "missed": 0},
            {"trial": 1, "method": "ARD", "l2": 1.0, "added": 4, "missed": 0},
            {"trial": 2, "method": "ARD", "l2": 1.0, "added": 4, "missed": 0},
        ]
    )
    assert agreement("linear", ours, path) == (1, 2, ["trial 1, ARD"])


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
    results = Results(quick_results, "quick")
    records = results.records("linear", "corrected")
    before = page_text(results)
    value = f"{records.where(method='ARD').column('l2').mean():.3g}"
    assert value in before
    for row in records:
        row["l2"] = 77.7
    assert "77.7" in page_text(results)


def test_large_records_are_copied_as_means(quick_results, tmp_path, monkeypatch):
    monkeypatch.setattr("ardea.paper.page.LARGEST_COPY", 1000)
    write_page(quick_results, tmp_path, "quick")
    folder = tmp_path / "linear" / "corrected-quick"
    assert (folder / "summary.csv").exists()
    assert not (folder / "records.csv").exists()


def test_without_results_the_command_says_what_to_run(tmp_path, capsys):
    assert main(["reproduce", "report", "--out", str(tmp_path)]) == 1
    assert "ardea reproduce all" in capsys.readouterr().err


def test_the_module_runs_as_a_program():
    process = subprocess.run(
        [sys.executable, "-m", "ardea.paper", "reproduce", "--help"], capture_output=True, text=True, check=True
    )
    assert "list" in process.stdout


def test_means_of_the_authors_are_complete():
    for source in (TABLE_1, *SAVED_RUNS.values()):
        assert set(source) == set(METHODS)
        assert np.isfinite(list(source.values())).all()
