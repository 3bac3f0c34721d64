"""Rows far out are told where all others contradict them; heavy tails, which follow the law, are not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from ardea import SparseARD
from ardea.estimators.advice import ConstantTargetWarning, SuspectDataWarning, UnequalErrorsWarning


def told(X, y, rows="independent"):
    """Return the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseARD(rows=rows).fit(X, y)
    return caught


def suspicions(caught):
    return [str(one.message) for one in caught if issubclass(one.category, SuspectDataWarning)]


def readings(seed, m, d=6):
    """Return readings around 20, and y with two clear terms."""
    rng = np.random.default_rng([31, seed])
    X = 20 + 3 * rng.normal(size=(m, d))
    return X, X[:, 0] - X[:, 1] + 3 * rng.normal(size=m)


@pytest.mark.parametrize("m", [60, 200, 1000])
@pytest.mark.parametrize("factor", [10, 100, 1000])
def test_a_value_in_another_unit_is_told_with_what_it_should_be(m, factor):
    X, y = readings(factor, m)
    right = X[17, 0]
    X[17, 0] *= factor
    (said,) = suspicions(told(X, y))
    assert said.startswith(f"Row 17 looks like a slip: x0 is {X[17, 0]:.5g}, in the other rows ")
    assert abs(float(re.search(r"at about (\S+)\.", said)[1]) - right) < 15
    assert "Leave it out of X and y" in said


def test_a_row_in_another_unit_is_told_and_a_right_one_far_out_is_not():
    rng = np.random.default_rng(5)
    X, coef = rng.normal(size=(200, 20)), np.repeat([1.0, 0.0], [4, 16])
    noise = rng.normal(size=200)
    y = X @ coef + noise
    X[40] *= 20
    assert all(re.search(r"\b40\b", str(one.message)) for one in told(X, y))
    assert told(X, y)
    assert told(X, X @ coef + noise) == []
    rng = np.random.default_rng(14)  # residuals tell nothing here
    X = rng.normal(size=(500, 20))
    y = X @ coef + rng.normal(size=500)
    X[40] *= 20
    assert "Row 40 decides the fit, and contradicts all others: it lies far" in suspicions(told(X, y))[0]


HEAVY = {
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 2, shape),
    "rare": lambda rng, shape: (rng.random(shape) < 0.03).astype(float),
    "amounts": lambda rng, shape: (rng.random(shape) < 0.1) * rng.exponential(size=shape),
    "t2": lambda rng, shape: rng.standard_t(2, shape),
}


@pytest.mark.parametrize("columns", HEAVY)
def test_heavy_tails_follow_the_law(columns):
    for seed in range(30):
        rng = np.random.default_rng([9, seed])
        X = HEAVY[columns](rng, ([40, 200][seed % 2], 10))
        y = X[:, 0] * rng.uniform(0.1, 3) + X[:, 1] + rng.standard_t(3, len(X))
        assert suspicions(told(X, y)) == []


def test_a_wild_value_of_a_column_without_effect_does_no_harm_and_is_not_told():
    X, y = readings(0, 200)
    X[17, 5] *= 10
    assert suspicions(told(X, y)) == []


def test_a_fit_further_off_than_the_mean_says_which_rows_make_it_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 3 * X[:, 0] + 0.3 * rng.normal(size=80)
    X[[3, 9, 20], :2] *= 60
    said = [str(one.message) for one in told(X, y, "unequal") if issubclass(one.category, UnequalErrorsWarning)]
    assert any(re.match(r"R² = -\d.* further off than the mean of y.* row 3", one) for one in said)


def test_a_missing_square_or_product_is_named_before_errors_of_unequal_size():
    for other, said in ((0, "The square of x0 explains"), (2, "The product of x0 and x2 explains")):
        rng = np.random.default_rng(12)
        X = rng.normal(size=(200, 4))
        y = X[:, 0] * X[:, other] + 0.3 * X[:, 0] + 2 * X[:, 1] + 0.2 * rng.normal(size=200)
        (found,) = [str(one.message) for one in told(X, y) if issubclass(one.category, UnequalErrorsWarning)]
        assert found.startswith(said)
        assert "rows='unequal' would not mend that" in found


@pytest.mark.parametrize("slips", [1, 2, 3])
def test_slips_in_one_column_beside_heavy_tails_in_others_are_told(slips):
    found = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 40])
        X = 100 + 10 * rng.standard_t(3, size=(200, 20))
        y = X[:, :3] @ np.full(3, 0.15) + rng.normal(size=200)
        X[rng.choice(200, slips, replace=False), 0] *= 10
        found += any("looks like a slip: x0 is" in text for text in suspicions(told(X, y)))
    assert found >= 9


def test_nothing_to_explain_beside_a_row_far_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[3] *= 1e6
    with pytest.warns(ConstantTargetWarning, match="nothing to explain"):
        SparseARD().fit(X, np.zeros(60))
