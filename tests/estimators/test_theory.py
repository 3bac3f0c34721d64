"""Theorems of the paper, asked of the estimators: closed-form supports, equal methods, limits, other packages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, special
from sklearn.base import clone
from sklearn.linear_model import ARDRegression, BayesianRidge, Ridge

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD, rates
from ardea.core.evidence import posterior
from ardea.core.problem import DenseColumns, Problem
from conftest import evidence_cost, linear_data, orthogonal_data, sparse_data

# method of ardea.rates, how to build the estimator from its strength, and strengths from lenient to strict.
CLOSED_FORMS = {
    "vi": (lambda s, **p: ARDvi(alpha=s, **p), (0.25, 1.0, 2.0, 8.0, 30.0)),
    "r": (lambda s, **p: ARDr(lam=s, **p), (0.0, 10.0, 100.0, 1e4)),
    "m": (lambda s, **p: MSTSBL(tau=s, **p), (0.0, 0.05, 0.25, 1.0)),
    "l": (lambda s, **p: LSTSBL(tau=s, **p), (np.inf, 1.0, 0.1, 0.01)),
    "map": (lambda s, **p: MAPSTSBL(tau=s, **p), (0.0, 0.2, 2.0, 20.0)),
}
METHODS = tuple(CLOSED_FORMS)
AT_EACH_STRENGTH = [(method, s) for method, (_, strengths) in CLOSED_FORMS.items() for s in strengths]
STRICTEST = {"vi": 1e9, "r": 1e15, "m": 1e9, "l": 0.0, "map": 1e9}
SEEDS = (0, 1, 2)


def build(method, strength, data, **parameters):
    make = CLOSED_FORMS[method][0]
    return make(strength, noise_variance=data.sigma**2, fit_intercept=False, **parameters).fit(data.X, data.y)


def least_squares_coefficients(data):
    """Return ρ and ρ⁻¹Θᵀy."""
    rho = (data.X**2).sum(axis=0)
    return rho, data.X.T @ data.y / rho


def assert_support_is_beyond(model, data, cut):
    np.testing.assert_array_equal(model.support_, np.abs(least_squares_coefficients(data)[1]) > cut)


# Orthogonal columns: the support is |ρ⁻¹Θᵀy| > ψ ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("method", "strength"), AT_EACH_STRENGTH)
def test_support_on_orthogonal_columns(method, strength, seed):
    data = orthogonal_data(seed)
    rho, _ = least_squares_coefficients(data)
    cut = rates.psi(method, strength, rho=rho, sigma=data.sigma)
    assert_support_is_beyond(build(method, strength, data), data, cut)


@pytest.mark.parametrize("method", METHODS)
def test_strengths_are_not_all_alike(method):
    """The cases above tell strengths apart: stricter ones keep fewer terms."""
    data = orthogonal_data(0)
    sizes = [build(method, s, data).support_.sum() for s in CLOSED_FORMS[method][1]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", SEEDS)
def test_support_with_one_strength_per_column(method, seed):
    data = orthogonal_data(seed)
    rng = np.random.default_rng(seed)
    strength = rates.strength_for(method, 10 ** rng.uniform(-4, -0.6, 60), rho=2.0, sigma=data.sigma)
    rho, _ = least_squares_coefficients(data)
    cut = rates.psi(method, strength, rho=rho, sigma=data.sigma)
    assert_support_is_beyond(build(method, strength, data), data, cut)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("false_terms", [0.01, 1.0, 10.0, 1e6])
def test_calibrated_support_is_one_cut_on_the_t_statistic(method, false_terms):
    """FP = min(false_terms/d, .3173) for every column, whatever its ρ."""
    data = orthogonal_data(4)
    rho, _ = least_squares_coefficients(data)
    rate = min(false_terms / 60, special.erfc(np.sqrt(0.5)))
    z = np.sqrt(2) * special.erfcinv(rate)
    model = build(method, "calibrated", data, false_terms=false_terms)
    assert_support_is_beyond(model, data, z * data.sigma / np.sqrt(rho))


@pytest.mark.parametrize("false_terms", [0.01, 0.3, 1.0, 10.0])
def test_default_estimator_cuts_at_its_false_terms(false_terms):
    """The first stage is never stricter than the last, so the last alone decides on orthogonal columns."""
    data = orthogonal_data(5)
    rho, _ = least_squares_coefficients(data)
    z = np.sqrt(2) * special.erfcinv(false_terms / 60)
    model = SparseARD(false_terms=false_terms, noise_variance=data.sigma**2, fit_intercept=False).fit(data.X, data.y)
    assert_support_is_beyond(model, data, z * data.sigma / np.sqrt(rho))


@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_capped_prior_on_orthogonal_columns(eta, seed):
    """Started at ARD's γ, ψ² = v + min(λv², η)."""
    data, lam = orthogonal_data(seed), 100.0
    rho, _ = least_squares_coefficients(data)
    v = data.sigma**2 / rho
    model = ARDr(lam, eta, noise_variance=data.sigma**2, fit_intercept=False).fit(data.X, data.y)
    assert_support_is_beyond(model, data, np.sqrt(v + np.minimum(lam * v**2, eta)))


def test_gamma_and_mean_of_ard_on_orthogonal_columns():
    """γ = max(b² − v, 0) and μ = b(1 − v/b²)₊ with b = ρ⁻¹Θᵀy."""
    data = orthogonal_data(0)
    rho, b = least_squares_coefficients(data)
    v = data.sigma**2 / rho
    model = ARD(noise_variance=data.sigma**2, fit_intercept=False).fit(data.X, data.y)
    np.testing.assert_allclose(model.prior_variance_, np.maximum(b**2 - v, 0), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(model.coef_, b * np.maximum(1 - v / b**2, 0), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("search", ["diagonal", "greedy", "forward-backward", "backward"])
@pytest.mark.parametrize("tau", [0.2, 2.0, 20.0])
def test_every_map_search_agrees_on_orthogonal_columns(search, tau):
    data = orthogonal_data(6)
    rho, _ = least_squares_coefficients(data)
    cut = rates.psi("map", tau, rho=rho, sigma=data.sigma)
    assert_support_is_beyond(build("map", tau, data, search=search), data, cut)


@pytest.mark.parametrize("method", ["m", "l", "map"])
@pytest.mark.parametrize("seed", SEEDS)
def test_thresholding_is_done_after_one_round_on_orthogonal_columns(method, seed):
    data = orthogonal_data(seed)
    for strength in CLOSED_FORMS[method][1]:
        rounds = [dropped.round for dropped in build(method, strength, data).trace_.dropped]
        assert max(rounds, default=0) <= 1


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.5, 6.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_inflation_and_map_threshold_agree_on_orthogonal_columns(tau, seed):
    data = orthogonal_data(seed)
    by_inflation, by_threshold = build("vi", 2 * tau + 1, data), build("map", tau, data)
    np.testing.assert_array_equal(by_inflation.support_, by_threshold.support_)


# Strengths that do nothing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_the_neutral_strength_is_plain_ard(method, learned):
    data = sparse_data(seed=2, d=30)
    make, strengths = CLOSED_FORMS[method]
    neutral = 1.0 if method == "vi" else strengths[0]
    noise = None if learned else data.sigma**2
    plain = ARD(noise_variance=noise).fit(data.X, data.y)
    model = make(neutral, noise_variance=noise).fit(data.X, data.y)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-6)
    assert model.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_strictest_strength_keeps_nothing(method):
    data = sparse_data()
    model = CLOSED_FORMS[method][0](STRICTEST[method]).fit(data.X, data.y)
    assert not model.support_.any()
    assert model.intercept_ == pytest.approx(data.y.mean(), rel=1e-12)
    assert model.noise_variance_ == pytest.approx(data.y.var(ddof=1), rel=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_infinite_price_on_one_column_is_leaving_it_out(method):
    """What is left is plain ARD on the other columns (for a threshold: on those of them that ARD had kept)."""
    data = sparse_data(seed=2)
    strength = np.full(12, 1.0 if method == "vi" else CLOSED_FORMS[method][1][0])
    column = int(np.argmax(np.abs(data.coef)))
    strength[column] = STRICTEST[method]
    model = CLOSED_FORMS[method][0](strength, tol=1e-9).fit(data.X, data.y)
    first = np.ones(12, dtype=bool) if method in ("vi", "r") else ARD(tol=1e-9).fit(data.X, data.y).support_
    others = np.setdiff1d(np.flatnonzero(first), column)
    expected = np.zeros(12)
    expected[others] = ARD(tol=1e-9).fit(data.X[:, others], data.y).coef_
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-6, atol=1e-9)


def test_no_density_at_zero_is_small_enough_for_a_threshold_of_zero():
    """Densities are positive, so τ_L = 0 drops every column, also one whose density underflows: rates.cut gives ∞."""
    data = sparse_data(sigma=0.001)
    assert np.isposinf(rates.cut("l", 0.0))
    assert not LSTSBL(tau=0.0).fit(data.X, data.y).support_.any()


# Agreement with other code --------------------------------------------------------------------------------------------


def problem_of(X, y):
    return Problem(DenseColumns(X), y, 0.0, len(y))


def test_posterior_at_equal_gamma_is_ridge():
    data, gamma, noise = sparse_data(), 0.7, 0.3
    post = posterior(problem_of(data.X, data.y), np.full(12, gamma), noise)
    ridge = Ridge(alpha=noise / gamma, fit_intercept=False).fit(data.X, data.y)
    np.testing.assert_allclose(post.mean, ridge.coef_, rtol=1e-10)


def test_posterior_at_its_gamma_is_bayesian_ridge():
    data = sparse_data()
    ridge = BayesianRidge(fit_intercept=False).fit(data.X, data.y)
    post = posterior(problem_of(data.X, data.y), np.full(12, 1 / ridge.lambda_), 1 / ridge.alpha_)
    np.testing.assert_allclose(post.mean, ridge.coef_, rtol=1e-9)
    np.testing.assert_allclose(post.covariance, ridge.sigma_, rtol=1e-8, atol=1e-12)


def test_one_column_is_bayesian_ridge_without_hyperpriors():
    """With a single column there is one γ, so ARD and Bayesian ridge maximise the same evidence."""
    data = sparse_data(d=1, k=1)
    parameters = {f"{name}_{i}": 0.0 for name in ("alpha", "lambda") for i in (1, 2)}
    ridge = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=10_000, **parameters).fit(data.X, data.y)
    model = ARD(fit_intercept=False, tol=1e-10).fit(data.X, data.y)
    assert model.coef_[0] == pytest.approx(ridge.coef_[0], rel=1e-6)
    assert model.noise_variance_ == pytest.approx(1 / ridge.alpha_, rel=1e-6)
    assert model.prior_variance_[0] == pytest.approx(1 / ridge.lambda_, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_never_a_higher_evidence_cost_than_scikit_learn(seed):
    """On the paper's Linear problem; scikit-learn's pruned columns counted with and without their last γ."""
    data = linear_data(seed)
    theirs = ARDRegression(fit_intercept=False).fit(data.X, data.y)
    gamma = 1 / theirs.lambda_
    reached = min(evidence_cost(data.X, data.y, g, 1 / theirs.alpha_) for g in (gamma, gamma * (theirs.coef_ != 0)))
    ours = ARD(fit_intercept=False).fit(data.X, data.y)
    cost = evidence_cost(data.X, data.y, ours.prior_variance_, ours.noise_variance_)
    assert cost <= reached
    assert cost == pytest.approx(ours.trace_.cost[-1], rel=1e-8)


@pytest.mark.parametrize(("model", "joints"), [(ARD(), 0), (ARDvi(alpha=4.0), 0), (ARDr(lam=1.0), 1)])
def test_cost_never_rises_with_known_noise(model, joints):
    """Algs. 1–3 are majorisations: the objective falls at every step (ARDr: within each of its two runs)."""
    data = linear_data(0)
    cost = clone(model).set_params(noise_variance=data.sigma**2).fit(data.X, data.y).trace_.cost
    assert cost.size > 5
    assert (np.diff(cost) > 1e-9 * np.abs(cost[:-1])).sum() <= joints


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1e-2, 1e-4, 1e-8])
def test_ard_keeps_false_terms_however_small_the_noise(sigma):
    """As σ → 0 the error vanishes in proportion, but .3173(d − k) columns that explain nothing stay."""
    trials, d, k = 12, 60, 15
    added, error = 0, 0.0
    for seed in range(trials):
        data = orthogonal_data(seed, sigma=sigma)
        model = ARD(noise_variance=sigma**2, fit_intercept=False).fit(data.X, data.y)
        added += (model.support_ & (data.coef == 0)).sum()
        error += ((model.coef_ - data.coef) ** 2).sum() / trials
    n, rate = trials * (d - k), special.erfc(np.sqrt(0.5))
    assert abs(added - n * rate) < 4 * np.sqrt(n * rate * (1 - rate))
    assert np.sqrt(error) < np.sqrt(d) * sigma


@pytest.mark.parametrize("method", METHODS)
def test_calibrated_false_terms_on_average(method):
    """Learned noise, correlated columns and an intercept: about as many false terms as asked for."""
    false_terms, trials, d = 2.0, 25, 30
    added = 0
    for seed in range(trials):
        data = sparse_data(seed, m=200, d=d)
        model = CLOSED_FORMS[method][0]("calibrated", false_terms=false_terms).fit(data.X, data.y)
        added += (model.support_ & (data.coef == 0)).sum()
    expected = false_terms * (d - 3) / d * trials
    assert abs(added - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize("kept", [5, 19, 20, 25, 30, 34])
def test_columns_always_kept_cost_one_row_each(kept):
    """With all columns kept σ² is RSS/(m − k − 1), whatever their number."""
    rng = np.random.default_rng(kept)
    X = rng.normal(size=(40, kept))
    y = X @ rng.normal(size=kept) + rng.normal(size=40)
    A = np.column_stack([np.ones(40), X])
    model = SparseARD(always_keep=range(kept)).fit(X, y)
    rss = np.sum((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)
    assert model.noise_variance_ == pytest.approx(rss / (40 - kept - 1), rel=1e-9)


def test_columns_always_kept_are_projected_out():
    """40 of 70 rows' degrees of freedom are gone: what is chosen among the others is what 29 rows would choose."""
    rng = np.random.default_rng(0)
    kept, X = rng.normal(size=(70, 40)), rng.normal(size=(70, 20))
    y = kept.sum(axis=1) + 3 * X[:, 0] + rng.normal(size=70)
    beside = linalg.null_space(np.column_stack([np.ones(70), kept]).T)
    model = SparseARD(always_keep=range(40)).fit(np.column_stack([kept, X]), y)
    by_hand = SparseARD(fit_intercept=False).fit(beside.T @ X, beside.T @ y)
    np.testing.assert_allclose(model.coef_[40:], by_hand.coef_, rtol=1e-6)
    assert model.noise_variance_ == pytest.approx(by_hand.noise_variance_, rel=1e-6)
