"""Every fitted attribute against a dense recomputation: shapes, posterior, noise, trace, evidence, certificate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD, priors
from ardea.core.loop import Trace
from conftest import (
    FAMILY,
    assert_same_fit,
    complement_basis,
    evidence_slopes,
    lenient,
    sparse_data,
    two_targets,
)

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


KEPT = [2, 7]


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


@pytest.mark.parametrize("kind", [ARDr, ARDvi])
def test_steps_before_columns_are_barred_are_counted_once(kind):
    """Each of many such rounds once doubled the trace of ARDr, up to all memory."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 70)), rng.normal(size=80)
    model = kind(false_terms=3.0).fit(X, y)
    cost = model.trace_.cost
    assert np.count_nonzero(cost == cost[0]) == 1
