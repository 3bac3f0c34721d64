"""Parameters: which strengths, numbers, priors and columns to keep are taken, and what keeping columns means."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, CollapseWarning
from ardea.estimators.advice import DuplicateColumnsWarning
from ardea.priors import CappedLinear
from conftest import (
    FAMILY,
    assert_same_fit,
    assert_same_moments,
    complement_basis,
    lenient,
    sparse_data,
    wide,
)

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y


STRENGTHS = ((ARDvi, "alpha"), (ARDr, "lam"), (MSTSBL, "tau"), (LSTSBL, "tau"), (MAPSTSBL, "tau"))


def refuses(model, X, y, match, **arguments):
    """Both ways in refuse, and leave no half-fitted model behind."""
    for method in ("fit", "partial_fit"):
        fresh = clone(model)
        with pytest.raises(ValueError, match=match):
            getattr(fresh, method)(X, y, **arguments)
        with pytest.raises((NotFittedError, AttributeError)):
            fresh.coef_  # noqa: B018


KEPT = [2, 7]


BAD_STRENGTHS = {
    "negative": (-1.0, "not negative"),
    "NaN": (np.nan, "finite"),
    "text": ("strong", "not known.*'calibrated'"),
    "None": (None, "not a number.*'calibrated'"),
    "True": (True, "not a number.*'calibrated'"),
    "complex": (1j, "not a number.*'calibrated'"),
    "too few": (np.ones(3), r"shape \(3,\).*4 columns.*one per column"),
    "too many": ([1.0] * 5, r"shape \(5,\).*4 columns"),
    "a column of them": (np.ones((4, 1)), r"shape \(4, 1\).*4 columns"),
    "one negative": ([1.0, 1.0, -1.0, 1.0], "not negative"),
    "one NaN": ([1.0, 1.0, np.nan, 1.0], "finite"),
    "ragged": ([1.0, [2.0]], "not a number.*'calibrated'"),
    "list of text": (["1", "2", "3", "4"], "not a number.*'calibrated'"),
}


@pytest.mark.parametrize(("kind", "name"), STRENGTHS)
@pytest.mark.parametrize("case", BAD_STRENGTHS)
def test_bad_strength(kind, name, case):
    value, match = BAD_STRENGTHS[case]
    with pytest.raises(ValueError, match=rf"{name}.*{match}"):
        kind(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(("kind", "name"), [pair for pair in STRENGTHS if pair[0] is not LSTSBL])
def test_infinite_strength(kind, name):
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        kind(**{name: np.inf}).fit(X, Y)


def test_no_inflation_at_all():
    with pytest.raises(ValueError, match="alpha must be above zero"):
        ARDvi(alpha=0.0).fit(X, Y)


@pytest.mark.parametrize("eta", [-1.0, 0.0, np.nan, "wide", "calibrated", np.ones(3)])
def test_bad_width_of_the_prior(eta):
    with pytest.raises(ValueError, match="eta"):
        ARDr(lam=1.0, eta=eta).fit(X, Y)


@pytest.mark.parametrize("prior", ["flat", 3.0, CappedLinear, lambda gamma: gamma])
def test_unknown_prior(prior):
    with pytest.raises(ValueError, match=r"prior=.*is not a prior.*ardea\.priors"):
        ARDr(prior=prior).fit(X, Y)


@pytest.mark.parametrize("search", ["exhaustive", "", None, 3, "Diagonal"])
def test_unknown_search(search):
    with pytest.raises(ValueError, match=r"search=.*is not known.*'forward-backward'"):
        MAPSTSBL(search=search).fit(X, Y)


NOT_POSITIVE = (0, -1.0, np.nan, np.inf, "1", None, True, [1.0], 1j)


@pytest.mark.parametrize("name", ["false_terms", "tol", "max_iter", "noise_variance"])
@pytest.mark.parametrize("value", NOT_POSITIVE, ids=repr)
def test_bad_number(estimator, name, value):
    unused = name not in estimator.get_params()
    if unused or (name == "noise_variance" and value is None):  # None: learn it
        estimator = ARDvi()
        name = "tol"
    refuses(estimator.set_params(**{name: value}), X, Y, f"{name} must be a .* number above zero")


@pytest.mark.parametrize("value", [2.5, 1e3])
def test_steps_are_counted_in_whole_numbers(estimator, value):
    refuses(estimator.set_params(max_iter=value), X, Y, "max_iter must be a whole number above zero")


@pytest.mark.parametrize("value", [None, "yes", 1, 0.0])
def test_intercept_is_yes_or_no(estimator, value):
    refuses(estimator.set_params(fit_intercept=value), X, Y, "fit_intercept must be True or False")


BAD_KEEP = {
    "unknown name": (["z"], "'z'.*no column names"),
    "beyond the last": ([4], "4 columns, numbered from 0"),
    "before the first": ([-5], "4 columns, numbered from 0"),
    "short mask": ([True, False], "mask.*4 columns"),
    "fraction": ([1.5], "always_keep"),
    "a number with a point": (1.0, "always_keep.*column numbers, names or a boolean mask"),
    "None inside": ([None], "always_keep"),
    "a number with a fraction": (1.5, "always_keep.*column numbers, names or a boolean mask"),
    "a mask of numbers": ([0, 1, 0, 0], "twice.*True and False"),
}


@pytest.mark.parametrize("case", BAD_KEEP)
def test_bad_columns_to_keep(estimator, case):
    value, match = BAD_KEEP[case]
    with pytest.raises(ValueError, match=match):
        estimator.set_params(always_keep=value).fit(X, Y)


def test_unknown_name_to_keep_lists_the_known_ones(estimator):
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"'z'.*a, b, c, d"):
        estimator.set_params(always_keep=["z"]).fit(frame, Y)


@pytest.mark.parametrize("kept", [9, 12])
def test_as_many_kept_columns_as_rows(estimator, kept):
    """They interpolate, so σ² cannot be learned: error bars of 1e-153 without a word are not honest."""
    data = sparse_data(m=10)
    with pytest.raises((ValueError, CollapseWarning), match="rows"):
        estimator.set_params(always_keep=list(range(kept))).fit(data.X, data.y)


def useless_kept_data():
    """Data in which the columns KEPT explain nothing."""
    data = sparse_data(seed=1)
    coef = data.coef.copy()
    y = data.y - data.X[:, KEPT] @ coef[KEPT]
    return data.X, y


@pytest.mark.parametrize("form", [KEPT, [-10, 7], np.array(KEPT), (7, 2), np.isin(np.arange(12), KEPT)], ids=str)
def test_kept_columns_are_never_pruned(estimator, form):
    X, y = useless_kept_data()
    strict = {"false_terms": 1e-6} if "false_terms" in estimator.get_params() else {}
    model = estimator.set_params(always_keep=form, **strict).fit(X, y)
    assert model.support_[KEPT].all()
    assert np.isposinf(model.prior_variance_[KEPT]).all()
    assert np.isfinite(np.delete(model.prior_variance_, KEPT)).all()
    assert (model.coef_[KEPT] != 0).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_kept_columns_by_name(estimator, frame):
    X, y = useless_kept_data()
    names = [f"t{j}" for j in range(X.shape[1])]
    by_name = clone(estimator).set_params(always_keep=["t7", "t2"])
    by_name.fit(frame(dict(zip(names, X.T, strict=True))), y)
    assert_same_fit(by_name, clone(estimator).set_params(always_keep=KEPT).fit(X, y))


def test_one_kept_column_needs_no_list(estimator):
    X, y = useless_kept_data()
    assert_same_fit(
        clone(estimator).set_params(always_keep=7).fit(X, y),
        clone(estimator).set_params(always_keep=[7]).fit(X, y),
        rtol=0,
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_keeping_a_column_is_fitting_the_projected_problem(estimator, intercept):
    """Frisch–Waugh: integrating out flat columns leaves the data in the complement of their span."""
    X, y = useless_kept_data()
    rest = np.delete(np.arange(X.shape[1]), KEPT)
    flat = np.column_stack([np.ones((len(y), int(intercept))), X[:, KEPT]])
    basis = complement_basis(flat)
    projected = clone(estimator).set_params(fit_intercept=False).fit(basis.T @ X[:, rest], basis.T @ y)
    kept = clone(estimator).set_params(always_keep=KEPT, fit_intercept=intercept).fit(X, y)
    np.testing.assert_array_equal(kept.support_[rest], projected.support_)
    np.testing.assert_allclose(kept.coef_[rest], projected.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(kept.coef_std_[rest], projected.coef_std_, rtol=1e-8)
    assert kept.noise_variance_ == pytest.approx(projected.noise_variance_, rel=1e-8)
    assert kept.log_evidence_ == pytest.approx(projected.log_evidence_, rel=1e-8)
    beta = np.linalg.lstsq(flat, y - X[:, rest] @ projected.coef_, rcond=None)[0]
    np.testing.assert_allclose(kept.coef_[KEPT], beta[int(intercept) :], rtol=1e-7, atol=1e-10)


def flat_prior_posterior(model, X, y, intercept):
    """Return mean and covariance of generalised least squares with precision 0 for flat columns, 1/γ for the others."""
    A = np.column_stack([np.ones((len(y), int(intercept))), X[:, model.support_]])
    prior = np.concatenate([np.zeros(int(intercept)), 1 / model.prior_variance_[model.support_]])
    covariance = np.linalg.inv(A.T @ A / model.noise_variance_ + np.diag(prior))
    return covariance @ A.T @ y / model.noise_variance_, covariance


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("intercept", [True, False])
def test_covariance_of_kept_columns_is_that_of_least_squares_with_a_flat_prior(kind, intercept):
    X, y = useless_kept_data()
    model = lenient(kind, always_keep=KEPT, fit_intercept=intercept).fit(X, y)
    mean, covariance = flat_prior_posterior(model, X, y, intercept)
    block = covariance[int(intercept) :, int(intercept) :]
    np.testing.assert_allclose(model.covariance_, block, rtol=1e-8, atol=1e-9 * np.abs(block).max())
    np.testing.assert_allclose(model.coef_[model.support_], mean[int(intercept) :], rtol=1e-7)
    np.testing.assert_allclose(model.coef_std_[model.support_], np.sqrt(block.diagonal()), rtol=1e-8)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
@pytest.mark.parametrize("intercept", [True, False])
def test_predictive_deviation_with_kept_columns(estimator, intercept):
    X, y = useless_kept_data()
    model = estimator.set_params(always_keep=KEPT, fit_intercept=intercept).fit(X, y)
    _, covariance = flat_prior_posterior(model, X, y, intercept)
    new = 7 * X - 20
    A = np.column_stack([np.ones((len(y), int(intercept))), new[:, model.support_]])
    variance = model.noise_variance_ + np.einsum("ij,jk,ik->i", A, covariance, A)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], np.sqrt(variance), rtol=1e-7)


def test_keeping_every_column_is_least_squares(estimator):
    data = sparse_data()
    model = estimator.set_params(always_keep=list(range(12))).fit(data.X, data.y)
    A = np.column_stack([np.ones(len(data.y)), data.X])
    solution, rss = np.linalg.lstsq(A, data.y, rcond=None)[:2]
    np.testing.assert_allclose(model.coef_, solution[1:], rtol=1e-8)
    assert model.intercept_ == pytest.approx(solution[0], rel=1e-8)
    assert model.noise_variance_ == pytest.approx(rss[0] / (len(data.y) - 13), rel=1e-8)


def test_kept_columns_that_add_nothing(estimator):
    """A constant column beside the intercept, zeros, and a copy: kept in name with coefficient zero, and told of."""
    data = sparse_data()
    X = np.column_stack([data.X, np.full(len(data.y), 0.1), np.zeros(len(data.y)), data.X[:, 0] - 7])
    with pytest.warns(DuplicateColumnsWarning, match="x12, x13, x14 in always_keep: beside the intercept"):
        model = clone(estimator).set_params(always_keep=[0, 12, 13, 14]).fit(X, data.y)
    plain = estimator.set_params(always_keep=[0]).fit(data.X, data.y)
    assert model.support_[[0, 12, 13, 14]].all()
    assert not model.coef_[12:].any()
    assert not model.coef_std_[12:].any()
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-8)
    np.testing.assert_allclose(model.coef_[:12], plain.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.coef_std_[:12], plain.coef_std_, rtol=1e-8, atol=1e-10)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-8)
    assert_same_moments(model.predict(X, return_std=True), plain.predict(data.X, return_std=True))


@pytest.mark.parametrize("keep", [{1, 2}, np.array([1, 2]), (1, 2), range(1, 3)], ids=str)
def test_columns_to_keep_in_any_container(keep):
    X, y = wide(0.5, m=60, d=5)
    assert ARD(always_keep=keep).fit(X, y).support_[[1, 2]].all()


def test_an_astronomical_max_iter_is_no_error():
    X, y = wide(0.5, m=60, d=5)
    assert ARD(max_iter=2**40).fit(X, y).n_iter_ < 100


def test_calibrated_ardr_without_pruning_is_ard():
    X, y = wide(0.5, m=150, d=20)
    np.testing.assert_allclose(ARDr(false_terms=1e9).fit(X, y).noise_variance_, ARD().fit(X, y).noise_variance_)
