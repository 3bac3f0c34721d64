"""Weights that are no counts: those of precision and of surveys, and when a fit says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ardea import SparseARD
from ardea.estimators.advice import SuspectDataWarning, UnequalErrorsWarning


def said(X, y, weight):
    """Return what a fit says of weights."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseARD().fit(X, y, sample_weight=weight)
    return [str(one.message) for one in caught if one.category is SuspectDataWarning]


def test_weights_that_are_no_counts_are_told():
    """Of means of several readings errors are smaller where there are more; σ says how many rows 1/σ² would be."""
    as_means, as_counts = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, number = rng.normal(size=(150, 8)), rng.integers(1, 20, size=150).astype(float)
        means = X[:, 0] + rng.normal(size=150) / np.sqrt(number)
        as_means += bool(said(X, means, number))
        assert said(X, means, 100.25 * number)
        assert not said(X, means, number / number.mean())
        y = X[:, 0] + rng.normal(size=150)
        as_counts += bool(said(X, y, number))
    assert as_means >= 32
    assert as_counts <= 1


@pytest.mark.parametrize("kind", ["constant", "precision"])
def test_weights_that_count_fewer_rows_than_there_are_are_told(kind):
    """Divided by their mean they find what is lost; whole ones, those of a survey and split rows are what they say."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 8))
        weight = np.full(200, 0.1) if kind == "constant" else rng.uniform(2, 4, size=200) ** -2.0
        y = 2 * X[:, 0] + rng.normal(size=200) / np.sqrt(weight / weight.mean())
        (text,) = said(X, y, weight)
        assert "counts no more rows than that" in text
        assert not said(X, y, weight / weight.mean())
        assert not said(X, y, (rng.random(200) < 0.4).astype(float))
        assert not any(
            "no more rows" in one for one in said(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.full(400, 0.5))
        )


@pytest.mark.parametrize("weight", [7.5, 7.0, "round"])
def test_weights_that_count_every_row_several_times_are_told(weight):
    """Readings of something measured are not equal so often; constant weights above one are no better than others."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 20)), rng.normal(size=100)
        counts = np.round(50 * rng.lognormal(sigma=0.3, size=100)) if weight == "round" else np.full(100, weight)
        assert said(X, y, counts)
        assert not said(X, y, np.ones(100))


def survey(seed, kind, m=300):
    """Return rows whose errors do not depend on their weights, and the weights divided by their mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 8))
    weight = np.where(rng.random(m) < 0.2, 6.0, 1.0) if kind == "strata" else rng.lognormal(size=m)
    return X, X[:, 0] + rng.normal(size=m), weight / weight.mean()


@pytest.mark.parametrize("kind", ["strata", "lognormal"])
def test_weights_of_a_survey_are_told_with_the_scale_that_holds(kind):
    for seed in range(8):
        X, y, weight = survey(seed, kind)
        kish = weight.sum() ** 2 / np.sum(weight**2)
        (text,) = said(X, y, weight)
        assert f"about as much as {kish:.0f} of equal ones" in text
        assert "Take w * w.sum() / (w**2).sum()" in text
        assert not said(X, y, weight * weight.sum() / np.sum(weight**2))
        assert said(X, y, 1024.5 * weight)[0].partition("add up")[0] == text.partition("add up")[0]


@pytest.mark.parametrize("kind", ["strata", "lognormal"])
def test_weights_of_precision_are_not_taken_for_those_of_a_survey(kind):
    for seed in range(100):
        X, y, weight = survey(seed, kind)
        assert not said(X, X[:, 0] + (y - X[:, 0]) / np.sqrt(weight), weight)


def test_weights_of_rows_without_errors_or_of_huge_ones_are_no_trouble():
    X, y, weight = survey(0, "strata")
    assert len(said(X, 1e140 * y, weight)) == 1
    assert not said(X, np.full(300, 2.0), weight)
    assert not said(X, X[:, 0], weight)


def test_weights_that_say_how_precise_rows_are_explain_unequal_errors():
    """Standard deviations that vary by e: told without weights, and not with those of precision."""
    told = {"none": 0, "precise": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, size = rng.normal(size=(200, 12)), np.exp(rng.normal(size=200))
        y, weight = X[:, 0] + X[:, 1] + size * rng.normal(size=200), size**-2.0
        for name, own in (("none", None), ("precise", weight / weight.mean())):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                SparseARD().fit(X, y, sample_weight=own)
            told[name] += any(one.category is UnequalErrorsWarning for one in caught)
    assert told["none"] >= 6
    assert told["precise"] == 0


def test_counts_of_a_table_of_frequencies_are_counts():
    """Common values of y have small errors and large counts; the fit is that of the rows as they were counted."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        answers = rng.integers(0, 3, size=(800, 4))
        y = np.clip(np.round(answers[:, 0] + 0.8 * rng.normal(size=800)), 0, 4)
        rows, number = np.unique(np.column_stack([answers, y]), axis=0, return_counts=True)
        assert not said(rows[:, :-1], rows[:, -1], number.astype(float))
