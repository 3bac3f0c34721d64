"""What a fitted model answers: predictions with deviations, intervals, draws, table, selection."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from ardea import ARD, MAPSTSBL, ARDvi, CollapseWarning, SparseARD
from ardea.core import loop
from ardea.rates import NO_PRUNING_RATE
from ardea.show.report import chosen_how
from conftest import (
    FAMILY,
    lenient,
    sparse_data,
    two_targets,
)

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
@pytest.mark.parametrize("kind", FAMILY)
def test_predictive_deviation_away_from_the_centre(kind):
    """σ² + σ²/m + (x − x̄)ᵀΣ(x − x̄), where sklearn's return_std forgets the centring."""
    data = sparse_data(shift=5.0)
    model = lenient(kind).fit(data.X, data.y)
    S, noise = model.support_, model.noise_variance_
    new = 10 * np.random.default_rng(1).normal(size=(20, data.X.shape[1])) - 30
    offset = (new - data.X.mean(axis=0))[:, S]
    variance = noise + noise / len(data.y) + np.einsum("ij,jk,ik->i", offset, model.covariance_, offset)
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-9)
    np.testing.assert_allclose(mean, new @ model.coef_ + model.intercept_, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
@pytest.mark.parametrize("kind", FAMILY)
def test_predictive_deviation_without_intercept(kind):
    data = sparse_data()
    model = lenient(kind, fit_intercept=False).fit(data.X, data.y)
    rows = data.X[:, model.support_] * 3
    variance = model.noise_variance_ + np.einsum("ij,jk,ik->i", rows, model.covariance_, rows)
    np.testing.assert_allclose(model.predict(3 * data.X, return_std=True)[1], np.sqrt(variance), rtol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("noise", [None, 0.25])
def test_posterior_interval_is_students_or_gaussian_where_the_noise_is_known(estimator, level, noise):
    """ν = m − 1 − Σ (1 − Σ_jj/γ_j): what σ² was learned from, beside the intercept."""
    data = sparse_data()
    model = estimator.set_params(noise_variance=noise).fit(data.X, data.y)
    decided = 1 - model.covariance_.diagonal() / model.prior_variance_[model.support_]
    degrees = len(data.y) - 1 - decided.sum() if noise is None else np.inf
    half = stats.t.ppf(0.5 + level / 2, degrees) * model.coef_std_
    expected = np.column_stack([model.coef_ - half, model.coef_ + half])
    np.testing.assert_allclose(model.credible_interval(level), expected, rtol=1e-12)


def least_squares_interval(A, y, level):
    """Return the t-intervals of ordinary least squares on the columns of A."""
    estimate = np.linalg.lstsq(A, y, rcond=None)[0]
    degrees = len(y) - A.shape[1]
    noise = ((y - A @ estimate) ** 2).sum() / degrees
    half = stats.t.ppf(0.5 + level / 2, degrees) * np.sqrt(noise * np.linalg.inv(A.T @ A).diagonal())
    return np.column_stack([estimate - half, estimate + half])


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("keep", [None, [2, 5]])
def test_refit_interval_is_least_squares_on_the_support(kind, intercept, keep):
    data = sparse_data()
    model = lenient(kind, fit_intercept=intercept, always_keep=keep).fit(data.X, data.y)
    S = model.support_
    A = np.column_stack([np.ones((len(data.y), int(intercept))), data.X[:, S]])
    expected = least_squares_interval(A, data.y, 0.9)[int(intercept) :]
    interval = model.credible_interval(0.9, kind="refit")
    np.testing.assert_allclose(interval[S], expected, rtol=1e-9, atol=1e-9)
    assert not interval[~S].any()


def test_refit_interval_with_known_noise_is_gaussian(estimator):
    data = sparse_data()
    model = estimator.set_params(noise_variance=0.25).fit(data.X, data.y)
    S = model.support_
    A = np.column_stack([np.ones(len(data.y)), data.X[:, S]])
    deviation = np.sqrt(0.25 * np.linalg.inv(A.T @ A).diagonal())[1:]
    interval = model.credible_interval(0.95, kind="refit")[S]
    np.testing.assert_allclose(np.diff(interval)[:, 0], 2 * stats.norm.ppf(0.975) * deviation, rtol=1e-9)


@pytest.mark.parametrize("keep", [None, [2]])
def test_draws_have_the_posterior_moments(estimator, keep):
    data = sparse_data()
    model = estimator.set_params(always_keep=keep).fit(data.X, data.y)
    n, S, covariance = 40_000, model.support_, model.covariance_
    draws = model.sample(n, random_state=0)
    variance = covariance.diagonal()
    assert np.all(np.abs(draws.mean(axis=0)[S] - model.coef_[S]) < 5 * np.sqrt(variance / n))
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / n)
    assert np.all(np.abs(np.cov(draws[:, S].T) - covariance) < 5 * spread)
    assert not draws[:, ~S].any()


def test_draws_are_seeded(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))
    assert not np.array_equal(model.sample(3, random_state=1), model.sample(3, random_state=2))
    generators = [np.random.default_rng(4), np.random.default_rng(4)]
    np.testing.assert_array_equal(*(model.sample(2, random_state=g) for g in generators))


@pytest.mark.parametrize("kind", ["posterior", "refit"])
def test_summary_lists_the_kept_terms(estimator, kind):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    S = model.support_
    table = model.summary(level=0.9, kind=kind)
    frame = table.to_frame()
    assert list(frame.columns) == ["term", "coef", "std", "90% low", "90% high"]
    assert list(frame["term"]) == [f"x{j}" for j in np.flatnonzero(S)]
    np.testing.assert_array_equal(frame[["90% low", "90% high"]], model.credible_interval(0.9, kind)[S])
    np.testing.assert_allclose(frame["coef"], frame[["90% low", "90% high"]].mean(axis=1), rtol=1e-9)
    text = str(table)
    assert text.startswith(f"{type(model).__name__}: {S.sum()} of {S.size} terms kept")
    weak = np.sum(np.abs(model.coef_[S]) < 3 * model.coef_std_[S])
    assert (f"|t| < 3 in {weak} of them" in text) == (weak > 0)
    assert len(text.splitlines()) == S.sum() + 3 + (weak > 0)


def test_summary_of_several_targets_names_them(estimator):
    X, Y = two_targets()
    model = estimator.fit(X, Y)
    frame = model.summary().to_frame()
    assert list(frame["target"]) == ["y0"] * model.support_[0].sum() + ["y1"] * model.support_[1].sum()
    np.testing.assert_array_equal(frame["coef"], model.coef_[model.support_])


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ConstantTargetWarning")
def test_summary_of_the_empty_model(estimator):
    model = estimator.fit(sparse_data().X, np.ones(80))
    frame = model.summary().to_frame()
    assert list(frame.columns) == ["term", "coef", "std", "95% low", "95% high"]
    assert len(frame) == 0
    assert "0 of 12 terms kept" in str(model.summary())


def test_selection_keeps_names_in_frames(estimator):
    data = sparse_data()
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(12)])
    model = estimator.set_output(transform="pandas").fit(frame, data.y)
    assert list(model.transform(frame).columns) == [f"c{j}" for j in np.flatnonzero(model.support_)]


def test_selection_is_the_support(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    np.testing.assert_array_equal(model.get_support(), model.support_)
    np.testing.assert_array_equal(model.get_support(indices=True), np.flatnonzero(model.support_))
    np.testing.assert_array_equal(model.transform(data.X), data.X[:, model.support_])


def test_selection_of_several_targets_is_the_union(estimator):
    X, Y = two_targets()
    model = estimator.fit(X, Y)
    np.testing.assert_array_equal(model.get_support(), model.support_.any(axis=0))


def test_verbose_prints_one_line_a_target(estimator, capsys):
    X, Y = two_targets()
    estimator.set_params(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("kkt_gap" in line for line in lines)


def test_a_long_fit_tells_where_it_stands_if_asked(monkeypatch, capsys):
    X, Y = two_targets()
    monkeypatch.setattr(loop, "TELLING", 0.0)
    model = ARD().fit(X, Y[:, 0])
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1).fit(X, Y[:, 0])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_iter_ + 1  # also where it begins
    assert all(line.startswith("ARD, after 0 s, is at step ") for line in lines)
    monkeypatch.setattr(loop, "TELLING", 1e9)
    model.fit(X, Y[:, 0])
    assert capsys.readouterr().err == ""


def test_what_was_read_of_a_fit_is_not_kept_for_the_next():
    X, Y = two_targets()
    model = ARD().fit(X, Y[:, 0])
    assert model.coef_ is model.coef_
    first = model.coef_
    np.testing.assert_array_equal(model.fit(X, Y[:, 1]).coef_, ARD().fit(X, Y[:, 1]).coef_)
    assert not np.array_equal(first, model.coef_)
    with pytest.raises(NotFittedError):
        _ = ARD().coef_


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
def test_level_outside_zero_to_one(estimator, level):
    model = estimator.fit(X, Y)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.credible_interval(level)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.summary(level)


@pytest.mark.parametrize("level", ["95%", None])
def test_level_that_is_no_number(estimator, level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        estimator.fit(X, Y).credible_interval(level)


@pytest.mark.parametrize("kind", ["bayes", "", None])
def test_unknown_kind_of_interval(estimator, kind):
    with pytest.raises(ValueError, match=r"kind=.*is not known.*'refit' or 'selective'"):
        estimator.fit(X, Y).credible_interval(kind=kind)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
def test_bad_number_of_draws(estimator, n):
    with pytest.raises(ValueError, match="n must be a whole number above zero"):
        estimator.fit(X, Y).sample(n)


def test_refit_interval_with_learned_noise_needs_more_rows_than_terms():
    data = sparse_data()
    with pytest.warns(CollapseWarning, match="interpolating"):
        model = ARD(fit_intercept=False).fit(data.X[:2], data.y[:2])
    assert model.support_.sum() == 2
    with pytest.raises(ValueError, match=r"more rows than terms.*posterior"):
        model.credible_interval(kind="refit")


@pytest.mark.parametrize("kind", [SparseARD, ARDvi, MAPSTSBL])
def test_more_false_terms_than_any_method_lets_through_are_told_of(kind):
    """No method keeps |t| < 1: beyond P(|N(0, 1)| > 1) of the columns `false_terms` changes nothing, and it is said."""
    data = sparse_data(m=200, d=10, k=2)
    most = NO_PRUNING_RATE * 9  # one is always kept
    models = [kind(always_keep=[0], false_terms=asked).fit(data.X, data.y) for asked in (0.99 * most, 1.01 * most, 9.0)]
    for model, beyond in zip(models, (False, True, True), strict=True):
        for text in (str(model.summary()), chosen_how(model)):
            assert ("out of reach" in text) == beyond
        assert ("% chance" in chosen_how(model)) != beyond
    np.testing.assert_array_equal(models[1].coef_, models[2].coef_)
    assert "if none of the 9 columns mattered, 2.9 of them would be kept" in chosen_how(models[2])


def test_the_chance_of_a_column_times_the_columns_is_what_was_asked_for():
    """A constant column is no candidate, and those that are kept anyway are none either."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + rng.normal(size=50)
    X[:, 2] = 4
    assert "none of the 2 columns mattered, 0.3 of them would be kept on average: each has a 15 %" in chosen_how(
        SparseARD().fit(X, y)
    )
    assert "with a chance of 30 %" in chosen_how(SparseARD().fit(X[:, 1:], y))
    assert "told to be kept" in chosen_how(SparseARD(always_keep=[0, 1]).fit(X[:, :2], y))
