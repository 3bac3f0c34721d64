"""Rows that belong together, in any order: series side by side, levels of groups, readings of one thing."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import special

from ardea import SparseARD
from ardea.estimators.advice import DependentRowsWarning, FewRowsWarning
from ardea.estimators.residuals import harm_within, shared_values


def slow(rng, shape, phi):
    """Return series of variance one along the first axis."""
    x = rng.normal(size=shape)
    for t in range(1, len(x)):
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * x[t]
    return x


def panel(seed, phi=0.9, level=0.0, by="date", dates=40, n=12):
    """Return rows of a panel of which three in ten are missing, with their labels."""
    rng = np.random.default_rng(seed)
    X, errors = slow(rng, (dates, n, 10), phi), slow(rng, (dates, n), phi)
    y = 0.4 * X[..., 0] + 0.4 * X[..., 1] + errors + level * rng.normal(size=n)
    there, label = rng.random((dates, n)) > 0.3, np.tile(np.arange(n), (dates, 1))
    if by == "label":
        X, y, there, label = X.transpose(1, 0, 2), y.T, there.T, label.T
    return X[there], y[there], label[there]


def said(rows, X, y, groups):
    """Return what a fit says of dependence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseARD(rows=rows).fit(X, y, groups=groups)
    return [str(one.message) for one in caught if one.category is DependentRowsWarning]


@pytest.mark.parametrize("sizes", [(2, 3), (4, 3), (6, 1, 2)])
def test_the_chance_is_that_of_all_orders_within_groups(sizes):
    """Mean and variance of sums of products of neighbours, over every order of every group."""
    rng, codes = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    errors, mean, variance, found = rng.normal(size=codes.size), 0.0, 0.0, 0.0
    errors -= errors.mean()
    for code in range(len(sizes)):
        own = errors[codes == code] - errors[codes == code].mean()
        sums = [np.dot(order[1:], order[:-1]) for order in map(np.array, itertools.permutations(own))]
        mean, variance, found = mean + np.mean(sums), variance + np.var(sums), found + own[1:] @ own[:-1]
    harm = harm_within(np.arange(codes.size)[:, None] ** 2.0, errors, np.empty((codes.size, 0)), codes)
    np.testing.assert_allclose(harm.chance, 2 * special.ndtr(-abs(mean - found) / np.sqrt(variance)))


@pytest.mark.parametrize("by", ["date", "label"])
@pytest.mark.parametrize("rows", ["independent", "groups"])
def test_series_side_by_side_are_told_in_any_order_of_the_table(rows, by):
    for seed in range(4):
        (text,) = said(rows, *panel(seed, by=by))
        assert "Errors of neighbouring rows of one group are correlated" in text
        assert "use rows='series' with the same groups=." in text
        assert not said("series", *panel(seed, by=by))


@pytest.mark.parametrize("by", ["date", "label"])
def test_groups_that_differ_in_level_are_no_series(by):
    """Rows of a group are alike, and neighbours no more than others."""
    for seed in range(20):
        X, y, label = panel(seed, phi=0.0, level=1.0, by=by)
        X[:, ::2] += np.random.default_rng(seed).normal(size=(12, 5))[label]
        (text,) = said("independent", X, y, label)
        assert "Errors of rows of one group are correlated" in text
        assert "Use rows='groups'" in text
        assert not said("groups", X, y, label)


def test_rows_that_share_a_date_are_not_called_a_series():
    """What neighbours share belongs to the date if they are of different groups."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        date, label = np.repeat(np.arange(40), 12), np.tile(np.arange(12), 40)
        X, shared = rng.normal(size=(480, 8)), rng.normal(size=40)[date]
        X[:, ::2] += rng.normal(size=(40, 4))[date]
        y = X[:, 0] + shared + rng.normal(size=480)
        (text,) = said("independent", X, y, label)
        assert "share something, such as a date" in text
        assert not said("groups", X, y, date)


def test_rows_sorted_by_y_within_groups_are_no_series():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(10), 30)
    X = rng.normal(size=(300, 5)).cumsum(axis=0)
    y = rng.normal(size=300)
    order = np.lexsort([y, label])
    assert not any("neighbouring rows of one group" in text for text in said("independent", X, y[order], label))


@pytest.mark.parametrize(("rows", "labels"), [("groups", "different"), ("series", "different"), ("groups", "the same")])
def test_labels_that_say_nothing_are_told(rows, labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60)
    label = np.arange(60) if labels == "different" else np.zeros(60)
    with pytest.warns(FewRowsWarning, match=f"All 60 rows have {labels} label.* changes nothing"):
        model = SparseARD(rows=rows).fit(X, y, groups=label)
    np.testing.assert_allclose(model.coef_, SparseARD().fit(X, y).coef_)


def test_readings_of_one_thing_in_any_order_are_told():
    """Three rows with the same columns share an error; those of a designed experiment do not."""
    shared, own = 0, 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, order = np.repeat(rng.normal(size=(40, 12)), 3, axis=0), rng.permutation(120)
        error = np.repeat(rng.normal(size=40), 3) + 0.3 * rng.normal(size=120)
        shared += bool(said("independent", X[order], (X[:, 0] + error)[order], None))
        own += bool(said("independent", X[order], (X[:, 0] + rng.normal(size=120))[order], None))
    assert shared >= 48
    assert own <= 1


def test_groups_that_lie_in_larger_ones_are_told():
    told = []
    for seed, between in enumerate([1.0] * 6 + [0.0] * 6):
        rng = np.random.default_rng([44, seed])
        school, label = np.repeat(np.arange(45), 20), np.repeat(np.arange(180), 5)
        X = rng.normal(size=(900, 8))
        X[:, :4] = rng.normal(size=(45, 4))[school]
        y = X[:, 7] + (between * rng.normal(size=45))[school] + 0.5 * rng.normal(size=180)[label] + rng.normal(size=900)
        told.append(any("Groups seem to lie in larger ones" in one for one in said("groups", X, y, label)))
    assert told == [True] * 6 + [False] * 6


def test_levels_that_hold_for_some_rows_are_no_series():
    told = []
    for seed in range(12):
        rng = np.random.default_rng([45, seed])
        X, e = rng.normal(size=(12, 8)), rng.normal(size=12)
        if seed < 6:
            X, e = np.repeat(X, 20, axis=0), np.repeat(e, 20)
        else:
            X, e = (np.cumsum(rng.standard_t(3, size=(240, *one.shape[1:])), axis=0) for one in (X, e))
        X, e = X + 0.2 * rng.normal(size=X.shape), e + 0.2 * rng.normal(size=e.shape)
        told.append(any("blocks whose rows share an error" in one for one in said("series", X, X[:, 0] + e, None)))
    assert told == [True] * 6 + [False] * 6


def sites(seed, own, digits=None, n_sites=40, size=5):
    """Return shuffled rows of sites, four columns of rows and three of sites, and y with an error of the site."""
    rng = np.random.default_rng(seed)
    site = rng.permutation(np.repeat(np.arange(n_sites), size))
    of_sites = rng.normal(size=(n_sites, 3))
    of_sites = of_sites if digits is None else of_sites.round(digits)
    X = np.column_stack([rng.normal(size=(site.size, 4)), of_sites[site]])
    return X, X[:, 0] + own * rng.normal(size=n_sites)[site] + 0.7 * rng.normal(size=site.size)


@pytest.mark.parametrize("digits", [None, 2])
def test_rows_of_a_site_are_known_by_the_columns_that_they_share(digits):
    for seed in range(6):
        X, y = sites(seed, 1.0, digits)
        with pytest.warns(DependentRowsWarning, match=r"same values in several columns.*rows='groups'"):
            SparseARD().fit(X, y)
        X, y = sites(seed, 0.0, digits)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DependentRowsWarning)
            SparseARD().fit(X, y)


def test_few_years_are_groups_too():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        year = rng.integers(0, 10, 300)
        X = np.column_stack([rng.normal(size=(10, 3))[year], rng.normal(size=(300, 6))])
        y = X[:, 3] + 1.5 * rng.normal(size=10)[year] + rng.normal(size=300)
        with pytest.warns(DependentRowsWarning, match="same values in several columns"):
            SparseARD().fit(X, y)


def test_columns_that_share_values_by_chance_make_no_groups():
    rng = np.random.default_rng(0)
    ages, years = rng.integers(18, 80, size=200), rng.integers(1990, 2020, size=200)
    assert shared_values(np.column_stack([ages, years, rng.normal(size=200)])) is None
    assert shared_values(rng.integers(0, 3, size=(200, 6)).astype(float)) is None
    site = rng.integers(0, 30, size=200)
    found = shared_values(np.column_stack([ages, rng.normal(size=30)[site], rng.normal(size=30)[site]]))
    assert np.unique(found).size == np.unique(site).size
    assert all(np.unique(found[site == one]).size == 1 for one in np.unique(site))
