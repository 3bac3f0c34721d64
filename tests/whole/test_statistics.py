"""What the package says of chance holds: coverage, calibration, false terms, with exact binomial bounds.

Every comparison is a count of independent events against its exact probability (a closed form or a one-dimensional
integral), two-sided, with a false-alarm probability of ALARM. There are fewer than 200 comparisons, so that all of them
together would fail a correct package with a probability of at most 1e-3; the seeds are fixed. `scale` = 1 is the quick
version; the slow one repeats each check with other seeds and ten times the draws.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD, rates
from ardea.dynamics import Discovery, Polynomials

ALARM = 5e-6
SIZES = [pytest.param(1, id="quick"), pytest.param(10, id="large", marks=pytest.mark.slow)]
EVERY_METHOD = {"vi": ARDvi, "r": ARDr, "m": MSTSBL, "l": LSTSBL, "map": MAPSTSBL}


def assert_count(hits, n, probability):
    """Fail where a count of n independent events is improbable, by the exact binomial law, on either side."""
    below, above = stats.binom.cdf(hits, n, probability), stats.binom.sf(hits - 1, n, probability)
    assert min(below, above) > ALARM / 2, f"{hits} of {n} = {hits / n:.4f}, expected {probability:.4f}"


def assert_at_most(hits, n, probability):
    assert stats.binom.sf(hits - 1, n, probability) > ALARM, f"{hits} of {n}, at most {probability:.4f} expected"


def assert_at_least(hits, n, probability):
    assert stats.binom.cdf(hits, n, probability) > ALARM, f"{hits} of {n}, at least {probability:.4f} expected"


def orthogonal(rng, m, d):
    """Return orthogonal columns with ρ ~ U[1, 3], and ρ."""
    rho = rng.uniform(1, 3, d)
    return np.linalg.qr(rng.normal(size=(m, d)))[0] * np.sqrt(rho), rho


# Coverage on orthogonal columns, σ known: every column is a trial of its own ------------------------------------------


def covered(kind, a, level, cut):
    """Return P(kept) and P(kept and covered) of a coefficient of a standard errors, in closed form.

    With b ~ N(a, 1) the least-squares coefficient in standard errors, a column is kept where |b| > cut. The refit
    interval is b ± q. The posterior of ARD has γ = b² − 1, so mean b − 1/b and variance 1 − 1/b².
    """
    q = stats.norm.ppf(0.5 + level / 2)
    b, step = np.linspace(-12, a + 12, 400_000, retstep=True)  # zero is not among them
    weight = stats.norm(a).pdf(b) * step
    kept = np.abs(b) > cut
    if kind == "refit":
        inside = np.abs(b - a) <= q
    else:
        inside = np.abs(b - 1 / b - a) <= q * np.sqrt(np.maximum(1 - 1 / b**2, 0.0))
    return float(weight[kept].sum()), float(weight[kept & inside].sum())


def simulated_coverage(kind, a, level, scale):
    """Return how many columns there were, were kept, and were kept and covered; all have a standard errors."""
    rng = np.random.default_rng([1, scale, int(10 * a)])
    m, targets, sigma = 60, 40 * scale, 0.3
    X, rho = orthogonal(rng, m, m)
    coef = a * sigma / np.sqrt(rho)
    Y = (X @ coef)[:, None] + sigma * rng.normal(size=(m, targets))
    model = ARD(noise_variance=sigma**2, fit_intercept=False).fit(X, Y)
    interval = model.credible_interval(level, kind)
    hits = model.support_ & (interval[..., 0] <= coef) & (coef <= interval[..., 1])
    return model.support_.size, int(model.support_.sum()), int(hits.sum())


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("a", [0.5, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("kind", ["posterior", "refit"])
def test_coverage_on_orthogonal_columns_is_that_of_theory(kind, a, scale):
    """Both kinds cover less than 95 % of kept terms where selection bites, by exactly the amount theory says."""
    n, kept, hits = simulated_coverage(kind, a, 0.95, scale)
    p_kept, p_hit = covered(kind, a, 0.95, 1.0)
    assert_count(kept, n, p_kept)
    assert_count(hits, n, p_hit)


def test_what_theory_says_of_posterior_intervals():
    """The documented figures: the nominal 95 % covers 85 % at t = 2, 87 % at 3, 91 % at 4, 94.8 % at 15."""
    found = [np.divide(*covered("posterior", a, 0.95, 1.0)[::-1]) for a in (2.0, 3.0, 4.0, 15.0)]
    np.testing.assert_allclose(found, [0.85, 0.87, 0.91, 0.948], atol=0.012)
    assert np.divide(*covered("refit", 15.0, 0.95, 1.0)[::-1]) == pytest.approx(0.95, abs=1e-4)


# Few rows and a learned σ²: Student's law -----------------------------------------------------------------------------


def strong(rng, m, d):
    """Return correlated columns and coefficients of fifty standard errors and more: all are kept, none is shrunk."""
    X = rng.normal(size=(m, d)) + rng.normal(size=(m, 1))
    return X, rng.choice([-1, 1], d) * rng.uniform(200, 400, d) / np.sqrt(m)


@pytest.mark.parametrize("scale", SIZES)
def test_refit_intervals_with_few_rows_cover_as_students_law_says(scale):
    """Nine degrees of freedom: a Gaussian quantile would cover 91.8 % instead of 95 %, and be found out."""
    rng, n, m, d, hits = np.random.default_rng([2, scale]), 600 * scale, 13, 3, dict.fromkeys([0.8, 0.95], 0)
    for _ in range(n):
        X, coef = strong(rng, m, d)
        model = ARD().fit(X, X @ coef + 1.0 + rng.normal(size=m))
        for level in hits:
            low, high = model.credible_interval(level, "refit")[0]
            hits[level] += low <= coef[0] <= high
    for level, count in hits.items():
        assert_count(count, n, level)
        gaussian = 2 * stats.t(m - d - 1).cdf(stats.norm.ppf(0.5 + level / 2)) - 1
        assert gaussian < level - 0.02


@pytest.mark.filterwarnings("ignore:Prediction far outside")
@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # by chance, on few rows
def test_predictive_intervals_cover_new_observations(scale):
    """σ known, far outside the data too: the uncertainty of mean and intercept is all in."""
    rng, n, m, d, off = np.random.default_rng([3, scale]), 500 * scale, 20, 4, []
    for _ in range(n):
        X, coef = strong(rng, m, d)
        model = ARD(noise_variance=1.0).fit(X, X @ coef + 1.0 + rng.normal(size=m))
        x = 3 * rng.normal(size=(1, d)) + 2.0
        mean, deviation = model.predict(x, return_std=True)
        off.append(abs(x[0] @ coef + 1.0 + rng.normal() - mean[0]) / deviation[0])
    for level in (0.5, 0.95):
        assert_count(int(np.sum(np.array(off) <= stats.norm.ppf(0.5 + level / 2))), n, level)


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("model", [ARD(), SparseARD(false_terms=1e-6)], ids=["ARD", "SparseARD"])
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # by chance, on few rows
def test_the_learned_noise_variance_scatters_as_chi_square(model, scale):
    """(m − k − 1)σ̂²/σ² is χ² with m − k − 1 degrees of freedom: mean, spread and shape."""
    rng, n, m, d, sigma = np.random.default_rng([4, scale]), 400 * scale, 25, 4, 0.7
    scaled = np.empty(n)
    for i in range(n):
        X, coef = strong(rng, m, d)
        model.fit(X, X @ coef - 2.0 + sigma * rng.normal(size=m))
        assert model.support_.all()
        scaled[i] = (m - d - 1) * model.noise_variance_ / sigma**2
    degrees = m - d - 1
    assert stats.kstest(scaled, stats.chi2(degrees).cdf).pvalue > ALARM
    law = stats.chi2(n * degrees)  # of the sum: the mean of σ̂² is right to a share of √(2/nν)
    assert min(law.cdf(scaled.sum()), law.sf(scaled.sum())) > ALARM / 2
    for level in (0.5, 0.9):
        low, high = stats.chi2(degrees).interval(level)
        assert_count(int(((low < scaled) & (scaled < high)).sum()), n, level)


# False positives and negatives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("kind", [*EVERY_METHOD.values(), SparseARD], ids=lambda kind: kind.__name__)
def test_calibrated_false_positives_on_orthogonal_columns(kind, scale):
    """σ known: every column that explains nothing is kept with probability false_terms/d, whatever the others are."""
    rng, m, d, k, sigma, false_terms = np.random.default_rng([5, scale]), 80, 60, 6, 0.3, 3.0
    added = trials = 0
    for _ in range(3 * scale):
        X, _ = orthogonal(rng, m, d)
        coef = np.where(np.arange(d) < k, 3.0, 0.0)
        Y = (X @ coef)[:, None] + sigma * rng.normal(size=(m, 20))
        support = kind(false_terms=false_terms, noise_variance=sigma**2, fit_intercept=False).fit(X, Y).support_
        assert support[:, :k].all()
        added, trials = added + int(support[:, k:].sum()), trials + support[:, k:].size
    assert_count(added, trials, false_terms / d)


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_false_negatives_on_orthogonal_columns(method, scale):
    """σ known, one strength for columns of one ρ: the share missed is the closed form's, at three signal strengths."""
    rng, m, sigma, rho = np.random.default_rng([6, scale]), 60, 0.3, 2.0
    strength = float(rates.strength_for(method, 0.02, rho=rho, sigma=sigma))
    X = np.linalg.qr(rng.normal(size=(m, m)))[0] * np.sqrt(rho)
    xi = np.repeat([1.0, 2.5, 4.0], m // 3) * sigma / np.sqrt(rho)
    Y = (X @ xi)[:, None] + sigma * rng.normal(size=(m, 30 * scale))
    support = EVERY_METHOD[method](strength, noise_variance=sigma**2, fit_intercept=False).fit(X, Y).support_
    for part in np.split(np.arange(m), 3):
        rate = float(rates.false_negative_rate(method, strength, xi[part[0]], rho=rho, sigma=sigma))
        assert_count(int((~support[:, part]).sum()), support[:, part].size, rate)


# Gaussian columns, σ learned: the closed form is a guide, good to this factor on either side.
GUIDE = 1.35


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("kind", [*EVERY_METHOD.values(), SparseARD], ids=lambda kind: kind.__name__)
def test_calibrated_false_positives_on_gaussian_columns(kind, scale):
    rng, m, d, k, false_terms = np.random.default_rng([7, scale]), 150, 20, 3, 2.0
    added, n = 0, 60 * scale
    for _ in range(n):
        X = rng.normal(size=(m, d))
        y = X[:, :k] @ np.full(k, 2.0) + 1.0 + rng.normal(size=m)
        support = kind(false_terms=false_terms).fit(X, y).support_
        assert support[:k].all()
        added += int(support[k:].sum())
    expected = false_terms / d
    assert_at_most(added, n * (d - k), min(GUIDE * expected, 1.0))
    assert_at_least(added, n * (d - k), expected / GUIDE)


# Draws ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("keep", [None, [0, 5]], ids=["", "always_keep"])
def test_draws_have_the_stated_mean_and_covariance(keep, scale):
    """Whitened by `covariance_`, draws are standard normal: radius, every mean and every covariance."""
    rng, n = np.random.default_rng(8), 20_000 * scale
    X = rng.normal(size=(40, 8)) + rng.normal(size=(40, 1))
    model = ARD(always_keep=keep).fit(X, X[:, :4] @ [1.0, -2.0, 0.5, 1.0] + rng.normal(size=40))
    draws = model.sample(n, random_state=scale)
    kept = model.support_
    assert not draws[:, ~kept].any()
    lower = np.linalg.cholesky(model.covariance_)
    white = linalg.solve_triangular(lower, (draws - model.coef_)[:, kept].T, lower=True)
    k = int(kept.sum())
    assert stats.kstest((white**2).sum(axis=0), stats.chi2(k).cdf).pvalue > ALARM
    limit = stats.norm.isf(ALARM / (k * (k + 3)))
    assert np.all(np.abs(white.mean(axis=1)) * np.sqrt(n) < limit)
    z = (white @ white.T / n - np.eye(k)) * np.sqrt(n / (1 + np.eye(k)))
    assert np.all(np.abs(z) < limit)
    np.testing.assert_allclose(np.sqrt(model.covariance_.diagonal()), model.coef_std_[kept], rtol=1e-12)


# Selection on pure noise ----------------------------------------------------------------------------------------------


def any_term_pays(statistics):
    """Whether `evidence` prefers some terms to none on orthogonal columns with t-statistics z (σ known).

    A column of γ = b² − v lowers L by z² − 1 − ln z² (z > 1); k columns must pay 2k + 2 ln C(d, k).
    """
    d = statistics.shape[1]
    square = np.maximum(statistics**2, 1.0)
    gains = -np.sort(-(square - 1 - np.log(square)), axis=1)
    k = np.arange(1, d // 4 + 1)
    log_choices = np.array([np.log(float(stats.binom(d, 0.5).pmf(j))) + d * np.log(2) for j in k])
    return np.any(np.cumsum(gains, axis=1)[:, : k.size] > 2 * k + 2 * log_choices, axis=1)


@pytest.mark.parametrize("scale", SIZES)
def test_the_evidence_criterion_keeps_terms_of_pure_noise_as_rarely_as_theory_says(scale):
    """The path of ARDvi visits the columns in order of |z|, so the search can do no more than theory's best set."""
    m, d, n = 40, 20, 80 * scale
    theory = any_term_pays(np.random.default_rng(9).normal(size=(50_000, d))).mean()
    assert 0.005 < theory < 0.03
    rng, found, stated = np.random.default_rng([10, scale]), 0, 0
    for _ in range(n):
        X, rho = orthogonal(rng, m, d)
        y = rng.normal(size=m)
        search = ARDSearch(ARDvi(noise_variance=1.0, fit_intercept=False)).fit(X, y)
        found += search.best_estimator_.support_.any()
        stated += bool(any_term_pays((X.T @ y / np.sqrt(rho))[None])[0])
    assert found <= stated
    assert_at_most(found, n, theory)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.WeakEvidenceWarning")
@pytest.mark.parametrize("scale", SIZES)
def test_sparse_ard_on_pure_noise(scale):
    """σ learned, Gaussian columns: an expected number of false terms of .3 means a non-empty model in at most 30 %."""
    rng, n, found = np.random.default_rng([11, scale]), 150 * scale, 0
    for _ in range(n):
        found += SparseARD().fit(rng.normal(size=(80, 15)), rng.normal(size=80)).support_.any()
    assert_at_most(found, n, 0.3)
    assert_at_least(found, n, 0.1)


# Discovery ------------------------------------------------------------------------------------------------------------


def oscillator():
    """Return times and states of x′ = −.1x + 2y, y′ = −2x − .1y, and the matrix."""
    matrix = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    t, step = np.arange(160) * 0.05, linalg.expm(0.05 * matrix)
    x = [np.array([2.0, 0.0])]
    for _ in t[1:]:
        x.append(step @ x[-1])
    return t, np.array(x), matrix


@pytest.mark.filterwarnings("ignore:The data hardly tell two models")
@pytest.mark.parametrize("scale", SIZES)
def test_intervals_of_discovered_coefficients_cover(scale):
    """A linear oscillator with 1 % noise: the right terms, and 95 % intervals that cover at least nine times in ten."""
    t, x, matrix = oscillator()
    rng, n = np.random.default_rng([12, scale]), 16 * scale
    hits, right = np.zeros((2, 2), dtype=int), 0
    for _ in range(n):
        model = Discovery(Polynomials(2)).fit(x + 0.015 * rng.normal(size=x.shape), t, feature_names=["x", "y"])
        names = model.get_feature_names()
        where = [names.index("x"), names.index("y")]
        coef, deviation = model.coefficients(), model.coef_std_
        right += np.flatnonzero(coef.any(axis=0)).tolist() == where
        hits += np.abs(coef[:, where] - matrix) <= stats.norm.ppf(0.975) * deviation[:, where]
    assert_at_least(right, n, 0.95)
    for count in hits.ravel():
        assert_at_least(int(count), n, 0.9)
    # Both coefficients of an equation share their noise, so only one of each is counted for the upper side.
    assert_count(int(hits[0, 0]), n, 0.95)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.WeakEvidenceWarning")
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.CollapseWarning")
@pytest.mark.parametrize(
    ("estimator", "rows", "columns", "asked"),
    [
        *((SparseARD, *shape) for shape in [(15, 45, 0.3), (20, 16, 0.3), (40, 200, 0.1)]),
        *((kind, 15, 45, 0.3) for kind in (ARDvi, MSTSBL, MAPSTSBL)),
        *((kind, 20, 16, 0.3) for kind in (ARDr, LSTSBL, MAPSTSBL)),
        *((kind, 40, 200, 0.1) for kind in (ARDvi, ARDr)),
    ],
)
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # by chance, on few rows
def test_false_terms_are_as_many_as_asked_for_on_few_rows(estimator, rows, columns, asked):
    """Pure noise whose size is learned; normal quantiles would keep 1.5 to 4 times as many."""
    rng, counts = np.random.default_rng(rows), []
    for _ in range(200):
        X, y = rng.normal(size=(rows, columns)), rng.normal(size=rows)
        counts.append(int(estimator(false_terms=asked).fit(X, y).support_.sum()))
    assert np.mean(counts) < asked + 3 * np.sqrt(asked / len(counts))
