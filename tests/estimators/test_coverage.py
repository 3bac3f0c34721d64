"""Error bars are honest: intervals cover as often as they say, within binomial error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from ardea import ARD, MAPSTSBL, SparseARD
from ardea.core.evidence import posterior
from ardea.core.problem import DenseColumns, Problem
from ardea.estimators.advice import WeakEvidenceWarning

# Four standard errors of a binomial share: a fair interval fails once in 16,000 runs, and the seeds are fixed.
STANDARD_ERRORS = 4


def assert_covers(hits, level):
    share, n = np.mean(hits), np.size(hits)
    assert abs(share - level) < STANDARD_ERRORS * np.sqrt(level * (1 - level) / n), f"{share:.4f} of {n}"


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_posterior_covers_exactly_when_the_prior_is_true(level):
    """ξ ~ N(0, γ) with γ and σ² known: the posterior is Bayes' and covers at every level."""
    rng = np.random.default_rng(0)
    gamma, noise, hits = 10 ** rng.uniform(-2, 1, 20), 0.25, []
    for _ in range(100):
        X = rng.normal(size=(30, 20)) @ np.diag(rng.uniform(0.2, 2, 20))
        xi = np.sqrt(gamma) * rng.normal(size=20)
        y = X @ xi + np.sqrt(noise) * rng.normal(size=30)
        post = posterior(Problem(DenseColumns(X), y, 0.0, 30), gamma, noise)
        half = stats.norm.ppf(0.5 + level / 2) * np.sqrt(post.covariance.diagonal())
        hits.append(np.abs(xi - post.mean) <= half)
    assert np.size(hits) == 2000
    assert_covers(hits, level)


def test_posterior_is_calibrated_jointly():
    """(ξ − μ)ᵀΣ⁻¹(ξ − μ) is χ² with d degrees of freedom: also the correlations are right."""
    rng = np.random.default_rng(1)
    gamma, noise, d = np.array([2.0, 0.5, 0.1, 1.0, 3.0]), 0.25, 5
    distances = []
    for _ in range(500):
        X = rng.normal(size=(12, d)) + rng.normal(size=(12, 1))
        xi = np.sqrt(gamma) * rng.normal(size=d)
        post = posterior(Problem(DenseColumns(X), X @ xi + 0.5 * rng.normal(size=12), 0.0, 12), gamma, noise)
        distances.append((xi - post.mean) @ np.linalg.solve(post.covariance, xi - post.mean))
    assert stats.kstest(distances, stats.chi2(d).cdf).pvalue > 1e-3


def strong_signal(rng, m=150, d=30, k=5):
    """Coefficients of 15 standard errors or more."""
    X = rng.normal(size=(m, d)) + 3.0
    coef = np.zeros(d)
    coef[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(18, 40, k) / np.sqrt(m)
    return X, X @ coef + rng.normal(size=m) - 2.0, coef


@pytest.mark.parametrize("model", [SparseARD(false_terms=1e-4), ARD()], ids=["SparseARD", "ARD"])
def test_intervals_of_strong_terms_cover_with_learned_noise(model):
    """Where shrinkage and selection do not bite, both kinds cover 95 %."""
    rng, hits = np.random.default_rng(2), {"posterior": [], "refit": []}
    for _ in range(60):
        X, y, coef = strong_signal(rng)
        true = coef != 0
        model.fit(X, y)
        assert model.support_[true].all()
        for kind, found in hits.items():
            low, high = model.credible_interval(0.95, kind)[true].T
            found.append((low <= coef[true]) & (coef[true] <= high))
    for found in hits.values():
        assert_covers(found, 0.95)


def test_posterior_of_strong_terms_covers_on_ten_rows():
    """Student's t with ν = 10 − 1 − 3 degrees; a Gaussian would cover 90 %."""
    rng, hits = np.random.default_rng(5), []
    for _ in range(250):
        X, coef = rng.normal(size=(10, 3)), rng.choice([-1, 1], 3) * rng.uniform(30, 60, 3)
        model = ARD().fit(X, X @ coef + rng.normal(size=10))
        low, high = model.credible_interval(0.95).T
        hits.append((low <= coef) & (coef <= high))
    assert_covers(hits, 0.95)
    (equation,) = model.equations_
    assert 6 <= equation.degrees < 6.1
    assert not np.isfinite(ARD(noise_variance=1.0).fit(X, X @ coef).equations_[0].degrees)


def test_predictive_deviation_covers_new_rows():
    rng, hits = np.random.default_rng(3), []
    for _ in range(40):
        X, y, _ = strong_signal(rng, m=200)
        mean, std = SparseARD().fit(X[:150], y[:150]).predict(X[150:], return_std=True)
        hits.append(np.abs(y[150:] - mean) <= stats.norm.ppf(0.975) * std)
    assert_covers(hits, 0.95)


def test_draws_are_the_posterior_that_covers():
    """The central 90 % of draws is the 90 % interval."""
    X, y, _ = strong_signal(np.random.default_rng(4))
    model = SparseARD().fit(X, y)
    quantiles = np.quantile(model.sample(40_000, random_state=0), [0.05, 0.95], axis=0).T
    error = 5 * model.coef_std_[:, None] * np.sqrt(0.05 * 0.95 / 40_000) / stats.norm.pdf(stats.norm.ppf(0.05))
    assert np.all(np.abs(quantiles - model.credible_interval(0.9)) <= error)


def test_selective_intervals_allow_for_weak_evidence():
    """One true term of four standard errors: where it was shrunk, the posterior holds it in half of the fits only."""
    rng, hits = np.random.default_rng(8), {"posterior": [], "selective": [], "refit": []}
    for _ in range(250):
        X = rng.normal(size=(60, 12))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = SparseARD().fit(X, 4 / np.sqrt(60) * X[:, 0] + rng.normal(size=60))
        if model.support_[0] and any(issubclass(one.category, WeakEvidenceWarning) for one in told):
            for kind, found in hits.items():
                low, high = model.credible_interval(0.95, kind)[0]
                found.append(low <= 4 / np.sqrt(60) <= high)
    assert len(hits["posterior"]) > 50
    assert np.mean(hits["posterior"]) < 0.7
    assert np.mean(hits["selective"]) > 0.8
    assert np.mean(hits["refit"]) > 0.9


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # one fit in 1,000
def test_selective_intervals_hold_weak_terms_that_were_kept():
    """Orthonormal columns, σ told: of weak terms that pass the cut 95 % are held; the refit holds fewer."""
    rng, n, d = np.random.default_rng(7), 80, 40
    X = np.linalg.qr(rng.normal(size=(100, d)))[0]
    truth = np.tile([1.0, 2.0, 3.0, 6.0], d // 4)
    held = {"refit": np.zeros(4), "selective": np.zeros(4)}
    kept = np.zeros(4)
    for _ in range(n):
        y = X @ truth + rng.normal(size=100)
        model = MAPSTSBL(false_terms=1.0, noise_variance=1.0, fit_intercept=False).fit(X, y)
        kept += model.support_.reshape(-1, 4).sum(axis=0)
        for kind, count in held.items():
            low, high = model.credible_interval(kind=kind).T
            count += (model.support_ & (low <= truth) & (truth <= high)).reshape(-1, 4).sum(axis=0)
    assert held["refit"][0] / kept[0] < 0.9
    error = np.sqrt(0.95 * 0.05 / kept)
    np.testing.assert_array_less(np.abs(held["selective"] / kept - 0.95), 4 * error)


def test_selective_intervals_are_those_of_least_squares_far_from_the_cut_and_need_a_known_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ [3.0, 0, -2.0, 0, 0] + rng.normal(size=200)
    model = SparseARD(always_keep=[4]).fit(X, y)
    refit, selective = (model.credible_interval(kind=kind) for kind in ("refit", "selective"))
    np.testing.assert_allclose(selective, refit, atol=1e-6)
    np.testing.assert_array_equal(selective[4], refit[4])
    with pytest.raises(ValueError, match="calibrated"):
        MAPSTSBL(tau=3.0).fit(X, y).credible_interval(kind="selective")
