"""Terms that rest on a few rows far out, and many gross errors: what residuals do not show, and what hides in them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ardea import SparseARD
from ardea.estimators.advice import FewRowsWarning, UnequalErrorsWarning
from ardea.estimators.resting import unsupported
from ardea.estimators.sizes import unequal_sizes


def far(seed, number, times, m=150, error=15.0):
    """Return rows of which some lie far out and have large errors, and which these are."""
    rng = np.random.default_rng(seed)
    X, rows = rng.normal(size=(m, 15)), rng.choice(m, number, replace=False)
    X[rows] *= times
    y = 0.5 * X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=m)
    y[rows] += error * rng.normal(size=number)
    return X, y, set(rows.tolist())


def fitted(X, y, kind, **settings):
    """Return a fit, and what it says in warnings of some kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseARD(**settings).fit(X, y)
    return model, [str(one.message) for one in caught if one.category is kind]


@pytest.mark.parametrize(("number", "times", "least"), [(1, 30, 0.6), (2, 100, 0.7), (3, 30, 0.8)])
def test_false_terms_of_few_rows_are_mostly_told_and_right_ones_are_not(number, times, least):
    false = told = 0
    for seed in range(30):
        X, y, _ = far(seed, number, times)
        model, said = fitted(X, y, FewRowsWarning)
        if model.support_[2:].any():
            false, told = false + 1, told + bool(said)
        else:
            assert not said
        assert not fitted(X, y, FewRowsWarning, rows="unequal")[1]
    assert told >= least * false


def test_the_rows_on_which_a_term_rests_are_those_far_out():
    ones, none = np.ones((150, 1)), np.zeros(15, dtype=bool)
    for seed in range(30):
        X, y, rows = far(seed, 1, 60)
        for one in unsupported(X, ones, y, np.arange(2, 15), none):
            assert set(one.rows.tolist()) <= rows
            assert abs(one.without) < 2 < abs(one.t)


def test_t_statistics_are_those_of_least_squares():
    X, y, rows = far(1, 1, 100)
    y[list(rows)] += 200.0
    for unit in (1.0, 1e180, 1e-150):
        (one, *_) = unsupported(X[:, :4] * unit, np.ones((150, 1)), y, np.array([3]), np.zeros(4, dtype=bool))
        for t, some in ((one.t, np.arange(150)), (one.without, np.delete(np.arange(150), list(rows)))):
            design = np.column_stack([np.ones(some.size), X[some, :4]])
            coef, (rss,), *_ = np.linalg.lstsq(design, y[some])
            variance = rss / (some.size - 5) * np.linalg.inv(design.T @ design)
            np.testing.assert_allclose(t, coef[4] / np.sqrt(variance[4, 4]), rtol=1e-8)


@pytest.mark.parametrize("columns", ["lognormal", "heavy", "indicators"])
def test_long_tails_and_indicators_hardly_ever_rest_on_few_rows(columns):
    often = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = (rng.random((120, 10)) < 0.06).astype(float)
        if columns != "indicators":
            X = rng.lognormal(size=X.shape) if columns == "lognormal" else rng.standard_t(3, size=X.shape)
        often += bool(fitted(X, X[:, 0] + rng.normal(size=120), FewRowsWarning)[1])
    assert often <= 2


def slipped(seed, share, m=200, size=15.0):
    """Return rows of which some share has errors of one size and sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 15))
    y = 0.4 * X[:, 0] + 0.4 * X[:, 1] + rng.normal(size=m)
    rows = rng.choice(m, int(share * m), replace=False)
    y[rows] += size
    return X, y, rows


@pytest.mark.parametrize(("share", "m", "size"), [(0.06, 200, 15), (0.12, 200, 40), (0.18, 1000, 15)])
def test_many_gross_errors_are_told_and_drawn_in(share, m, size):
    for seed in range(8):
        X, y, rows = slipped(seed, share, m, size)
        _, (text,) = fitted(X, y, UnequalErrorsWarning)
        assert text.startswith(f"The {rows.size} largest errors make the standard deviation of the noise")
        assert fitted(X, y, UnequalErrorsWarning, rows="unequal")[0].support_[:2].all()


HEAVY = {
    "student": lambda rng: rng.standard_t(3, 200),
    "laplace": lambda rng: rng.laplace(size=200),
    "exponential": lambda rng: rng.exponential(size=200),
    "lognormal": lambda rng: rng.lognormal(size=200),
    "mixture": lambda rng: rng.normal(size=200) * np.where(rng.random(200) < 0.1, 3.0, 1.0),
    "counts": lambda rng: rng.poisson(1.0, 200) + 0.01 * rng.normal(size=200),
}


@pytest.mark.parametrize("kind", HEAVY)
def test_smooth_tails_are_not_taken_for_many_gross_errors(kind):
    """At most five rows (as few as before) have half of the squares where any are called gross."""
    for seed in range(150):
        errors = HEAVY[kind](np.random.default_rng(seed))
        errors -= errors.mean()
        sizes = unequal_sizes(np.random.default_rng(seed).normal(size=(200, 4)), errors, np.empty((200, 0)), 0.05)
        if sizes.gross.size:
            largest = np.sort(errors**2)
            assert 2 * largest[-5:].sum() > largest.sum()
