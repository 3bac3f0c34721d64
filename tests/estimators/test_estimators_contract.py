"""What every estimator promises: scikit-learn's rules, and every attribute against a dense recomputation."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ardea
from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, CollapseWarning, SparseARD, priors
from ardea.core.result import Trace
from conftest import FAMILY, complement_basis, evidence_slopes, sparse_data

FITTED = (
    "coef_",
    "intercept_",
    "support_",
    "prior_variance_",
    "noise_variance_",
    "coef_std_",
    "covariance_",
    "log_evidence_",
    "kkt_gap_",
    "n_iter_",
    "trace_",
)
STRENGTH_NAMES = {ARDvi: "alpha", ARDr: "lam", MSTSBL: "tau", LSTSBL: "tau", MAPSTSBL: "tau"}
COMMON_DEFAULTS = {
    "noise_variance": None,
    "fit_intercept": True,
    "always_keep": None,
    "max_iter": 500,
    "tol": 1e-6,
    "verbose": 0,
}
# Keeps some of the columns that explain nothing, so that supports are not trivial.
LENIENT = {ARDvi: {"alpha": 1.5}, ARDr: {"lam": 5.0}, SparseARD: {"false_terms": 3.0}}


def lenient(kind, **parameters):
    return kind(**(LENIENT.get(kind, {"false_terms": 4.0} if kind is not ARD else {}) | parameters))


def two_targets(seed=3):
    data = sparse_data(seed)
    other = data.X @ np.roll(data.coef, 1) + np.random.default_rng(seed).normal(size=len(data.y))
    return data.X, np.column_stack([data.y, other])


def assert_same_fit(one, other, rtol=1e-8):
    """All numbers agree to rtol, relative to the largest of each attribute."""
    np.testing.assert_array_equal(one.support_, other.support_)
    for name in ("coef_", "intercept_", "coef_std_", "noise_variance_", "prior_variance_", "log_evidence_"):
        value, expected = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol * size, err_msg=name)


# scikit-learn's rules -------------------------------------------------------------------------------------------------


# Some checks fit pure noise, or ten columns to ten free rows without noise, where a warning is what we promise.
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:No features were selected:UserWarning"
)
@parametrize_with_checks([kind() for kind in FAMILY])
def test_scikit_learn_rules(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", FAMILY)
def test_constructor_names_and_defaults(kind):
    expected = dict(COMMON_DEFAULTS)
    if kind is not ARD:
        expected["false_terms"] = 0.3 if kind is SparseARD else 1.0
    if kind in STRENGTH_NAMES:
        expected[STRENGTH_NAMES[kind]] = "calibrated"
    if kind is ARDr:
        expected |= {"eta": None, "prior": None}
    if kind is MAPSTSBL:
        expected["search"] = "diagonal"
    assert kind().get_params() == expected


@pytest.mark.parametrize("kind", FAMILY)
def test_common_arguments_are_keyword_only(kind):
    with pytest.raises(TypeError):
        kind(1.0, 1.0, 1.0)


def test_public_names():
    for name in ("ARD", "ARDvi", "ARDr", "MSTSBL", "LSTSBL", "MAPSTSBL", "SparseARD", "rates", "show_versions"):
        assert hasattr(ardea, name)


def test_set_params_reaches_the_fit(estimator):
    data = sparse_data()
    model = estimator.set_params(noise_variance=0.7, fit_intercept=False).fit(data.X, data.y)
    assert model.noise_variance_ == pytest.approx(0.7, rel=1e-14)
    assert model.intercept_ == 0.0


def test_parameters_changed_after_the_fit_change_no_answer(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    before = model.predict(data.X, return_std=True)
    model.set_params(fit_intercept=False, always_keep=[0], noise_variance=9.0)
    np.testing.assert_array_equal(model.predict(data.X, return_std=True), before)


def test_clone_fits_alike_and_is_unfitted(estimator):
    data = sparse_data()
    fitted = estimator.fit(data.X, data.y)
    copy = clone(fitted)
    assert not hasattr(copy, "coef_")
    np.testing.assert_array_equal(copy.fit(data.X, data.y).coef_, fitted.coef_)


def test_constructor_parameters_survive_fit(estimator):
    before = estimator.get_params()
    data = sparse_data()
    assert estimator.fit(data.X, data.y).get_params() == before


@pytest.mark.parametrize("streamed", [False, True])
def test_pickle_round_trip(estimator, streamed):
    data = sparse_data()
    model = estimator.partial_fit(data.X, data.y) if streamed else estimator.fit(data.X, data.y)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(copy, model, rtol=0)
    for one, other in zip(copy.predict(data.X, return_std=True), model.predict(data.X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_pipeline_equals_fit_on_scaled_columns(estimator):
    data = sparse_data()
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(data.X, data.y)
    scaled = StandardScaler().fit_transform(data.X)
    np.testing.assert_array_equal(pipeline.predict(data.X), estimator.fit(scaled, data.y).predict(scaled))


def test_as_selector_in_a_pipeline(estimator):
    data = sparse_data(sigma=0.01)
    pipeline = make_pipeline(estimator, SparseARD()).fit(data.X, data.y)
    assert pipeline[-1].n_features_in_ == pipeline[0].support_.sum()
    assert pipeline.score(data.X, data.y) > 0.999


@pytest.mark.parametrize("kind", [kind for kind in FAMILY if kind is not ARD])
def test_grid_search_prefers_the_strength_that_keeps_the_signal(kind):
    data = sparse_data()
    grid = {"false_terms": [1e-300, 1.0]} if kind is not SparseARD else {"false_terms": [1e-250, 0.3]}
    best = GridSearchCV(kind(), grid, cv=3).fit(data.X, data.y).best_estimator_
    assert best.support_[data.coef != 0].all()


def test_cross_validation_scores(estimator):
    data = sparse_data(sigma=0.1)
    scores = cross_val_score(estimator, data.X, data.y, cv=4)
    # Known truth: 1 − σ²/var(y) is the score of the true model.
    assert scores.mean() == pytest.approx(1 - data.sigma**2 / data.y.var(), abs=5 * data.sigma**2 / data.y.var())


# Attributes -----------------------------------------------------------------------------------------------------------


def test_shapes_for_one_target(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    d, k = data.X.shape[1], int(model.support_.sum())
    for name in ("coef_", "support_", "prior_variance_", "coef_std_"):
        assert getattr(model, name).shape == (d,), name
    for name in ("intercept_", "noise_variance_", "log_evidence_", "kkt_gap_"):
        assert isinstance(getattr(model, name), float), name
    assert model.support_.dtype == bool
    assert isinstance(model.n_iter_, int)
    assert isinstance(model.trace_, Trace)
    assert model.covariance_.shape == (k, k)
    assert model.credible_interval().shape == (d, 2)
    assert model.sample(5, random_state=0).shape == (5, d)
    assert model.predict(data.X).shape == data.y.shape


@pytest.mark.parametrize("n_targets", [1, 2])
def test_shapes_for_several_targets(estimator, n_targets):
    X, Y = two_targets()
    Y = Y[:, :n_targets]
    model = estimator.fit(X, Y)
    d = X.shape[1]
    for name in ("coef_", "support_", "prior_variance_", "coef_std_"):
        assert getattr(model, name).shape == (n_targets, d), name
    for name in ("intercept_", "noise_variance_", "log_evidence_", "kkt_gap_", "n_iter_"):
        assert getattr(model, name).shape == (n_targets,), name
    assert [c.shape for c in model.covariance_] == [(k, k) for k in model.support_.sum(axis=1)]
    assert len(model.trace_) == n_targets
    assert model.credible_interval().shape == (n_targets, d, 2)
    assert model.sample(5, random_state=0).shape == (n_targets, 5, d)
    assert model.predict(X).shape == Y.shape
    assert model.predict(X, return_std=True)[1].shape == Y.shape


def test_several_targets_equal_one_fit_each(estimator):
    X, Y = two_targets()
    together = clone(estimator).fit(X, Y)
    for t in range(2):
        alone = clone(estimator).fit(X, Y[:, t])
        np.testing.assert_allclose(together.coef_[t], alone.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(together.covariance_[t], alone.covariance_, rtol=1e-6)
        assert together.log_evidence_[t] == pytest.approx(alone.log_evidence_, rel=1e-10)
        np.testing.assert_array_equal(together.support_[t], alone.support_)


@pytest.mark.parametrize("kind", FAMILY)
def test_zeros_are_exact_and_only_off_the_support(kind):
    data = sparse_data()
    model = lenient(kind).fit(data.X, data.y)
    off = ~model.support_
    assert off.any()
    for name in ("coef_", "prior_variance_", "coef_std_"):
        assert not getattr(model, name)[off].any(), name
        assert getattr(model, name)[~off].all(), name
    assert not model.credible_interval()[off].any()
    assert not model.sample(10, random_state=0)[:, off].any()


@pytest.mark.parametrize("kind", FAMILY)
def test_coefficients_are_the_posterior_mean_at_gamma_and_noise(kind):
    data = sparse_data()
    model = lenient(kind).fit(data.X, data.y)
    S = model.support_
    centred = data.X[:, S] - data.X[:, S].mean(axis=0)
    covariance = np.linalg.inv(centred.T @ centred / model.noise_variance_ + np.diag(1 / model.prior_variance_[S]))
    mean = covariance @ centred.T @ (data.y - data.y.mean()) / model.noise_variance_
    np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-8, atol=1e-10 * covariance.max())
    np.testing.assert_allclose(model.coef_[S], mean, rtol=1e-8)
    np.testing.assert_allclose(model.coef_std_[S], np.sqrt(covariance.diagonal()), rtol=1e-8)
    assert model.intercept_ == pytest.approx(data.y.mean() - data.X[:, S].mean(axis=0) @ mean, rel=1e-8)


@pytest.mark.parametrize("kind", FAMILY)
def test_learned_noise_is_a_fixed_point_of_the_noise_rule(kind):
    """σ² = rss/(m − 1 − k + Σ Σ_jj/γ_j), to what the bound on the certificate leaves."""
    data = sparse_data()
    model = lenient(kind).fit(data.X, data.y)
    S = model.support_
    rss = ((data.y - model.predict(data.X)) ** 2).sum()
    undetermined = (model.covariance_.diagonal() / model.prior_variance_[S]).sum()
    assert model.noise_variance_ == pytest.approx(rss / (len(data.y) - 1 - S.sum() + undetermined), rel=1e-5)


def test_all_attributes_are_there_after_fit_and_none_before(estimator):
    data = sparse_data()
    assert not [name for name in FITTED if hasattr(estimator, name)]
    for model in (clone(estimator).fit(data.X, data.y), clone(estimator).partial_fit(data.X, data.y)):
        assert [name for name in FITTED if hasattr(model, name)] == list(FITTED)


def test_trace_records_every_step(estimator):
    data = sparse_data()
    trace = estimator.fit(data.X, data.y).trace_
    assert trace.cost.shape == trace.noise_variance.shape == trace.n_terms.shape
    assert trace.cost.size >= estimator.n_iter_ > 0
    assert trace.n_terms[-1] == estimator.support_.sum()
    assert trace.noise_variance[-1] == pytest.approx(estimator.noise_variance_, rel=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [ARD, MSTSBL, LSTSBL, MAPSTSBL, SparseARD])
def test_last_cost_is_the_evidence(kind, intercept):
    """Without inflation and prior terms, log_evidence_ = −½(m ln 2π + last cost), also in the user's units."""
    data = sparse_data()
    model = lenient(kind, fit_intercept=intercept).fit(1e3 * data.X, 1e-4 * data.y)
    m = len(data.y) - intercept
    assert -2 * model.log_evidence_ - m * np.log(2 * np.pi) == pytest.approx(model.trace_.cost[-1], rel=1e-10)


@pytest.mark.parametrize("kind", [MSTSBL, LSTSBL, MAPSTSBL, SparseARD])
def test_dropped_columns_are_traced_with_the_statistic_that_failed(kind):
    data = sparse_data(seed=5, d=30)
    model = kind(false_terms=0.1).fit(data.X, data.y)
    dropped = model.trace_.dropped
    assert dropped
    assert not model.support_[[d.column for d in dropped]].any()
    assert len({d.column for d in dropped}) == len(dropped)
    assert [d.round for d in dropped] == sorted(d.round for d in dropped)
    for d in dropped:
        assert d.statistic > d.threshold if kind is LSTSBL else d.statistic < d.threshold


@pytest.mark.parametrize(("kind", "tau"), [(MSTSBL, 0.3), (LSTSBL, 0.5)])
def test_traced_thresholds_are_in_the_users_units(kind, tau):
    data = sparse_data(seed=5, d=30)
    dropped = kind(tau=tau).fit(data.X, 1e3 * data.y).trace_.dropped
    assert all(d.threshold == pytest.approx(tau, rel=1e-14) for d in dropped)


# Names, frames, sparse ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_names(estimator, frame):
    data = sparse_data()
    names = [f"term {j}" for j in range(data.X.shape[1])]
    model = estimator.fit(frame(dict(zip(names, data.X.T, strict=True))), data.y)
    plain = clone(estimator).fit(data.X, data.y)
    assert_same_fit(model, plain)
    assert list(model.feature_names_in_) == names
    kept = [name for name, keep in zip(names, model.support_, strict=True) if keep]
    assert list(model.get_feature_names_out()) == kept
    assert model.summary().columns["term"] == kept
    assert all(name in str(model.summary()) for name in kept)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_can_be_predicted_and_transformed(estimator, frame):
    data = sparse_data()
    names = [f"t{j}" for j in range(data.X.shape[1])]
    X = frame(dict(zip(names, data.X.T, strict=True)))
    model = estimator.fit(X, data.y)
    plain = clone(estimator).fit(data.X, data.y)
    assert_same_moments(model.predict(X, return_std=True), plain.predict(data.X, return_std=True))
    np.testing.assert_array_equal(np.asarray(model.transform(X)), data.X[:, model.support_])


def test_series_target_is_one_target(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, pd.Series(data.y))
    np.testing.assert_array_equal(model.coef_, clone(estimator).fit(data.X, data.y).coef_)


def sparse_columns(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.2)
    y = 2 * X[:, 1] - 3 * X[:, 4] + 0.2 * rng.normal(size=m)
    return X, y


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize("shape", [(100, 30), (60, 150)])
@pytest.mark.parametrize("keep", [None, [0, 4]])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_matrix_equals_dense(container, shape, keep, intercept):
    X, y = sparse_columns(*shape)
    model = SparseARD(always_keep=keep, fit_intercept=intercept)
    dense, thin = clone(model).fit(X, y), clone(model).fit(container(X), y)
    assert_same_fit(thin, dense)
    assert_same_moments(thin.predict(container(X), return_std=True), dense.predict(X, return_std=True))


def assert_same_moments(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_beyond_the_column_limit_all_ways_in_agree():
    """Above 5,000 columns rows are kept as they are: array, sparse matrix, stream."""
    X, y = sparse_columns(60, 5100)
    model = SparseARD().fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), [1, 4])
    assert_same_fit(SparseARD().fit(sparse.csr_array(X), y), model)
    assert_same_fit(SparseARD().partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]), model)


@pytest.mark.parametrize("shape", [(100, 30), (60, 150)])
def test_sparse_matrix_with_weights_and_targets_equals_dense(estimator, shape):
    X, y = sparse_columns(*shape)
    Y = np.column_stack([y, y - X[:, 7]])
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    estimator.set_params(noise_variance=0.04)  # for d > m plain ARD cannot learn it
    dense = clone(estimator).fit(X, Y, sample_weight=weight)
    thin = clone(estimator).fit(sparse.csr_array(X), Y, sample_weight=weight)
    assert_same_fit(thin, dense)


# Prediction, intervals, draws, table ----------------------------------------------------------------------------------


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
def test_posterior_interval_is_gaussian(estimator, level):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    half = stats.norm.ppf(0.5 + level / 2) * model.coef_std_
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
    assert len(text.splitlines()) == S.sum() + 3


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


# Streams --------------------------------------------------------------------------------------------------------------


def streamed(model, X, y, cuts, weight=None):
    """Feed the rows in blocks that end at `cuts`."""
    parts = np.split(np.arange(len(y)), cuts)
    for rows in parts:
        model.partial_fit(X[rows], y[rows], sample_weight=None if weight is None else weight[rows])
    return model


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("cuts", [[40], [1, 2, 3, 50], list(range(1, 80))], ids=["halves", "uneven", "single rows"])
def test_stream_equals_fit(estimator, intercept, weighted, cuts):
    X, Y = two_targets()
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y)) if weighted else None
    estimator.set_params(fit_intercept=intercept)
    whole = clone(estimator).fit(X, Y, sample_weight=weight)
    assert_same_fit(streamed(clone(estimator), X, Y, cuts, weight), whole)


def test_stream_of_one_target_equals_fit(estimator):
    data = sparse_data()
    whole = clone(estimator).set_params(always_keep=[3]).fit(data.X, data.y)
    assert_same_fit(streamed(estimator.set_params(always_keep=[3]), data.X, data.y, [10, 11, 60]), whole)


def test_stream_of_sparse_blocks_equals_fit(estimator):
    X, y = sparse_columns(100, 20)
    model = estimator.partial_fit(sparse.csr_array(X[:30]), y[:30]).partial_fit(sparse.csr_array(X[30:]), y[30:])
    assert_same_fit(model, clone(estimator).fit(X, y))


def test_stream_is_usable_after_every_block(estimator):
    data = sparse_data()
    model = clone(estimator)
    for start in range(0, 80, 20):
        rows = slice(start, start + 20)
        model.partial_fit(data.X[rows], data.y[rows])
        so_far = clone(estimator).fit(data.X[: start + 20], data.y[: start + 20])
        assert_same_fit(model, so_far)
        np.testing.assert_allclose(model.predict(data.X), so_far.predict(data.X), rtol=1e-7)
        assert model.get_support().sum() == so_far.support_.sum()


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AdviceWarning")
@pytest.mark.filterwarnings("ignore::ardea.CollapseWarning")
def test_stream_is_usable_from_the_first_row(estimator):
    data = sparse_data(d=5)
    model = clone(estimator)
    for row in range(12):
        model.partial_fit(data.X[[row]], data.y[[row]])
        assert np.isfinite(model.predict(data.X, return_std=True)).all()
    assert_same_fit(model, clone(estimator).fit(data.X[:12], data.y[:12]))


def test_stream_after_fit_warns_and_begins_anew(estimator):
    data = sparse_data()
    model = clone(estimator).fit(data.X, data.y)
    with pytest.warns(UserWarning, match="new stream.*partial_fit"):
        model.partial_fit(data.X[:50], data.y[:50])
    assert_same_fit(model, clone(estimator).fit(data.X[:50], data.y[:50]))


def test_fit_after_a_stream_forgets_it(estimator):
    data = sparse_data()
    model = clone(estimator).partial_fit(data.X[:40], data.y[:40]).fit(data.X[40:], data.y[40:])
    assert_same_fit(model, clone(estimator).fit(data.X[40:], data.y[40:]), rtol=0)


# Weights --------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
@pytest.mark.parametrize("keep", [None, [1]])
def test_integer_weights_are_repeated_rows(estimator, keep):
    data = sparse_data()
    weight = np.random.default_rng(0).integers(0, 4, len(data.y))
    estimator.set_params(always_keep=keep)
    weighted = clone(estimator).fit(data.X, data.y, sample_weight=weight)
    repeated = clone(estimator).fit(np.repeat(data.X, weight, axis=0), np.repeat(data.y, weight))
    assert_same_fit(weighted, repeated)
    new = 5 * data.X + 3
    assert_same_moments(weighted.predict(new, return_std=True), repeated.predict(new, return_std=True))
    interval = [m.credible_interval(kind="refit") for m in (weighted, repeated)]
    np.testing.assert_allclose(*interval, rtol=1e-8, atol=1e-10)


def test_zero_weights_drop_rows(estimator):
    data = sparse_data()
    weight = (np.arange(len(data.y)) % 3 > 0).astype(float)
    X, y = data.X.copy(), data.y.copy()
    y[weight == 0] = 1e12  # must not matter
    dropped = clone(estimator).fit(data.X[weight > 0], data.y[weight > 0])
    assert_same_fit(clone(estimator).fit(X, y, sample_weight=weight), dropped)


def test_weights_of_few_counts_warn(estimator):
    data = sparse_data()
    with pytest.warns(CollapseWarning, match=r"Weights are counts.*scale them"):
        estimator.fit(data.X, data.y, sample_weight=np.full(len(data.y), 0.01))
    assert np.isfinite(estimator.coef_).all()


# always_keep ----------------------------------------------------------------------------------------------------------

KEPT = [2, 7]


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
    """A constant column beside the intercept, and a zero column: kept in name, and no prediction changes."""
    data = sparse_data()
    X = np.column_stack([data.X, np.ones(len(data.y)), np.zeros(len(data.y))])
    model = clone(estimator).set_params(always_keep=[0, 12, 13]).fit(X, data.y)
    plain = estimator.set_params(always_keep=[0]).fit(data.X, data.y)
    assert model.support_[[0, 12, 13]].all()
    assert model.coef_[13] == 0.0
    assert model.coef_[12] + model.intercept_ == pytest.approx(plain.intercept_, rel=1e-8)
    np.testing.assert_allclose(model.coef_[:12], plain.coef_, rtol=1e-8, atol=1e-10)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-8)
    assert_same_moments(model.predict(X, return_std=True), plain.predict(data.X, return_std=True))


# Evidence and certificate ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FAMILY)
def test_log_evidence_is_the_marginal_likelihood(kind):
    data = sparse_data()
    model = lenient(kind, fit_intercept=False).fit(data.X, data.y)
    covariance = model.noise_variance_ * np.eye(len(data.y)) + (data.X * model.prior_variance_) @ data.X.T
    expected = stats.multivariate_normal(np.zeros(len(data.y)), covariance).logpdf(data.y)
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("keep", [[], KEPT])
def test_log_evidence_with_flat_columns_lives_in_their_complement(kind, keep):
    data = sparse_data()
    model = lenient(kind, always_keep=keep).fit(data.X, data.y)
    basis = complement_basis(np.column_stack([np.ones(len(data.y)), data.X[:, keep]]))
    rest = np.delete(np.arange(data.X.shape[1]), keep)
    X, y = basis.T @ data.X[:, rest], basis.T @ data.y
    covariance = model.noise_variance_ * np.eye(len(y)) + (X * model.prior_variance_[rest]) @ X.T
    expected = stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_certificate_is_within_tol(kind, tol):
    data = sparse_data(d=40)
    assert lenient(kind, tol=tol).fit(data.X, data.y).kkt_gap_ <= tol


def gap_by_definition(X, y, model, noise, slope):
    """Return max(|q²/(M + g′) − 1| on the support, (q²/(M + g′) − 1)₊ off it), densely, in the complement of 1."""
    basis = complement_basis(np.ones(len(y)))
    M, q = evidence_slopes(basis.T @ X, basis.T @ y, model.prior_variance_, noise)
    ratio = q**2 / (M + slope) - 1
    return np.where(model.support_, np.abs(ratio), np.maximum(ratio, 0)).max()


EARLY_STOPS = [
    (ARD(), lambda model: (model.noise_variance_, 0.0)),
    (ARDvi(alpha=4.0), lambda model: (4.0 * model.noise_variance_, 0.0)),
    (ARDr(lam=5.0), lambda model: (model.noise_variance_, 5.0)),
]


@pytest.mark.parametrize(("model", "noise_and_slope"), EARLY_STOPS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
def test_certificate_equals_its_definition(model, noise_and_slope, max_iter):
    """Stopped early, so that the gap is a number worth comparing and not rounding error."""
    data = sparse_data(d=40)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = clone(model).set_params(max_iter=max_iter).fit(data.X, data.y)
    expected = gap_by_definition(data.X, data.y, model, *noise_and_slope(model))
    assert model.kkt_gap_ == pytest.approx(expected, rel=1e-6)
    assert model.kkt_gap_ > 1e-6


@pytest.mark.parametrize("kind", FAMILY)
def test_converged_fit_is_a_fixed_point_densely(kind):
    """On the support q² = M + g′; off it q² ≤ M + g′, unless a threshold removed the column."""
    data = sparse_data(d=40)
    model = lenient(kind).fit(data.X, data.y)
    noise = model.noise_variance_ * (1.5 if kind is ARDvi else 1.0)
    slope = 5.0 if kind is ARDr else 0.0
    basis = complement_basis(np.ones(len(data.y)))
    M, q = evidence_slopes(basis.T @ data.X, basis.T @ data.y, model.prior_variance_, noise)
    ratio = q**2 / (M + slope) - 1
    assert np.abs(ratio[model.support_]).max() <= 1.01e-6
    if kind in (ARD, ARDvi, ARDr):
        assert ratio.max() <= 1.01e-6


# g′ + f′ of each prior as a function of γ and σ², and the bounds on γ.
PRIORS = {
    "capped linear over noise": (priors.CappedLinear(50.0, 0.02, over_noise=True), lambda g, s: 50 / s * (g < 0.02)),
    "tanh": (priors.Tanh(3.0, 1e-4), lambda g, s: 3e4 * (1 - np.tanh(1e4 * g) ** 2)),
    "log": (priors.Log(2.0, 1e-3), lambda g, s: 2 / (1e-3 + g)),
    "exponential": (priors.Gamma(1.0, 1.0), lambda g, s: 2.0 + 0 * g),
    "gamma without zeros": (priors.Gamma(2.0, 1.0), lambda g, s: 2 - 2 / g),
    "own convex": (priors.Convex(lambda g: 1e3 * g**2, lambda g: 2e3 * g), lambda g, s: 2e3 * g),
    "linear, bounded": (priors.Linear(50.0) & priors.Bounds(upper=0.01), lambda g, s: 50.0 + 0 * g),
}


@pytest.mark.parametrize("name", PRIORS)
def test_any_prior_is_met_in_the_users_units(name):
    """q² = M + g′ + f′ on the support (≥ at an upper bound), ≤ off it, at γ and σ² as reported."""
    data = sparse_data()
    X, y = 100 * data.X, 7 * data.y
    prior, slope = PRIORS[name]
    model = ARDr(prior=prior).fit(X, y)
    gamma, noise = model.prior_variance_, model.noise_variance_
    basis = complement_basis(np.ones(len(y)))
    M, q = evidence_slopes(basis.T @ X, basis.T @ y, gamma, noise)
    ratio = q**2 / (M + slope(gamma, noise)) - 1
    upper = 0.01 if "bounded" in name else np.inf
    ratio = np.where(gamma >= upper * (1 - 1e-12), np.minimum(ratio, 0), ratio)
    assert np.abs(np.where(model.support_, ratio, np.maximum(ratio, 0))).max() <= 1.01e-6


def test_lam_and_eta_are_a_capped_linear_prior():
    data = sparse_data()
    for eta in (0.5, np.inf):
        named = ARDr(lam=4.0, eta=eta).fit(data.X, data.y)
        assert_same_fit(named, ARDr(prior=priors.CappedLinear(4.0, eta)).fit(data.X, data.y), rtol=1e-12)
    linear = priors.Concave(lambda g: 4.0 * g, lambda g: np.full_like(g, 4.0))
    assert_same_fit(ARDr(prior=linear).fit(data.X, data.y), ARDr(lam=4.0).fit(data.X, data.y), rtol=1e-7)


def test_reaching_max_iter_warns_with_advice(estimator):
    data = sparse_data(d=40)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*kkt_gap_.*Raise max_iter"):
        estimator.set_params(max_iter=1).fit(data.X, data.y)
    assert np.isfinite(estimator.coef_).all()
