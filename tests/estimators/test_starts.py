"""start="paper" is the paper's algorithm and nothing else; start="safe" differs only where that fails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import ardea
import dense_twin
from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.core.compression import CompressedRows
from ardea.estimators.advice import CollapseWarning, ManyTermsWarning
from ardea.methods.task import tasks_of
from ardea.methods.thresholds import chance_beside_all
from conftest import sparse_data, wide

FAMILY = [ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL, SparseARD]


def difference(seed, gap=1e-2):
    """Return ten columns, two of them nearly the same, and y that depends on their difference: one start fails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 10))
    X[:, 1] = X[:, 0] + gap * rng.normal(size=100)
    return X, X[:, 0] + (X[:, 1] - X[:, 0]) / gap + 0.05 * rng.normal(size=100)


def quietly(model, X, y):
    """Return a model fitted without a word: here collapses and columns that are nearly the same are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def algorithm_2(theta, y, noise, alpha, steps):
    """Return γ of Alg. 2 to the letter, from γ = 0 (Alg. 1 with α = 1); its lasso by coordinate descent."""
    gamma, xi, inflated = np.zeros(theta.shape[1]), np.zeros(theta.shape[1]), alpha * noise
    square_norms = (theta**2).sum(axis=0)
    for _ in range(steps):
        c = dense_twin.slopes(theta, gamma, inflated)
        penalty = inflated * np.sqrt(c)  # half the weight 2ασ²√c
        for _ in range(20):
            for j in range(xi.size):
                score = theta[:, j] @ (y - theta @ xi) + square_norms[j] * xi[j]
                xi[j] = np.sign(score) * max(abs(score) - penalty[j], 0.0) / square_norms[j]
        gamma = np.abs(xi) / np.sqrt(c)
    return gamma


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "alpha", "share"), [(ARD, 1.0, 0.5), (ARDvi, 9.0, 0.2)])
def test_paper_is_the_printed_algorithm_where_one_start_fails(kind, alpha, share, seed):
    """σ² known, so large a share of the variance of y that the difference is not seen from γ = 0."""
    X, y = difference(seed)
    noise = share * float(np.var(y))
    settings = {"noise_variance": noise, "fit_intercept": False} | ({} if kind is ARD else {"alpha": alpha})
    paper, safe = (quietly(kind(start=start, **settings), X, y) for start in ("paper", "safe"))
    expected = algorithm_2(X, y, noise, alpha, steps=400)
    np.testing.assert_allclose(paper.prior_variance_, expected, rtol=1e-5, atol=1e-6 * expected.max())
    assert not np.array_equal(paper.support_, safe.support_)
    assert safe.log_evidence_ > paper.log_evidence_ or kind is ARDvi  # whose objective is not the evidence


def keeps(kind, model, tau):
    """Return the columns that Algs. 4, 5 and 6 keep after a fit of ARD; ξ and Σ of pruned columns are zero."""
    if kind is MSTSBL:
        return np.abs(model.coef_) >= tau
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind is LSTSBL:
            variance = model.coef_std_**2
            density = np.exp(-0.5 * model.coef_**2 / variance) / np.sqrt(2 * np.pi * variance)
            return np.nan_to_num(density, nan=np.inf) <= tau
    kept = np.zeros(model.coef_.size, dtype=bool)
    active = np.flatnonzero(model.support_)
    precision = np.linalg.inv(model.covariance_).diagonal()
    kept[active] = 0.5 * model.coef_[active] ** 2 * precision >= tau
    return kept


@pytest.mark.parametrize(
    ("kind", "tau"), [(MSTSBL, 1e-9), (MSTSBL, 0.3), (LSTSBL, 1e9), (LSTSBL, 0.2), (MAPSTSBL, 1e-9), (MAPSTSBL, 3.0)]
)
def test_thresholding_is_the_printed_recursion(kind, tau):
    """ARD, threshold, the same on what is left, until no column of those given goes; pruned columns go, too."""
    data = sparse_data(seed=4, d=30)
    settings = {"noise_variance": 0.25, "fit_intercept": False, "start": "paper"}
    columns, steps = np.arange(30), 0
    while True:
        part = quietly(ARD(**settings), data.X[:, columns], data.y)
        steps += part.n_iter_
        kept = keeps(kind, part, tau)
        if kept.all():
            break
        columns = columns[kept]
    model = quietly(kind(tau=tau, **settings), data.X, data.y)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), columns)
    np.testing.assert_allclose(model.coef_[columns], part.coef_, rtol=1e-10)
    assert model.n_iter_ == steps


@pytest.mark.parametrize("kind", FAMILY)
def test_only_safe_finds_columns_that_explain_y_by_their_difference(kind):
    for seed in range(5):
        X, y = difference(seed)
        paper, safe = (quietly(kind(start=start), X, y) for start in ("paper", "safe"))
        assert safe.support_[:2].all()
        assert np.var(y - safe.predict(X)) < 0.005
        assert not paper.support_[:2].all()
        assert np.var(y - paper.predict(X)) > 0.1


@pytest.mark.parametrize("kind", FAMILY)
def test_both_are_the_same_where_nothing_fails(kind):
    """Up to the certificate, 1e-6: "safe" refits from the fit before, the paper from nothing."""
    data = sparse_data()
    paper, safe = (kind(start=start).fit(data.X, data.y) for start in ("paper", "safe"))
    np.testing.assert_array_equal(paper.support_, safe.support_)
    np.testing.assert_allclose(safe.coef_, paper.coef_, rtol=1e-6)
    assert safe.noise_variance_ == pytest.approx(paper.noise_variance_, rel=1e-6)


@pytest.mark.parametrize("kind", [ARD, ARDr])
def test_without_refits_both_take_the_same_steps(kind):
    data = sparse_data()
    paper, safe = (kind(start=start).fit(data.X, data.y) for start in ("paper", "safe"))
    np.testing.assert_array_equal(paper.coef_, safe.coef_)
    assert (paper.noise_variance_, paper.n_iter_) == (safe.noise_variance_, safe.n_iter_)


@pytest.mark.parametrize("kind", [MSTSBL, LSTSBL, MAPSTSBL, ARDr])
def test_with_paper_calibrated_methods_begin_with_plain_ARD_even_where_it_collapses(kind):
    """More columns than rows: from plain ARD the loop runs on as it stands, screening comes first with "safe"."""
    X, y = wide(0.5)[:2]
    plain, paper, safe = (quietly(model, X, y) for model in (ARD(), kind(start="paper"), kind()))
    np.testing.assert_array_equal(paper.trace_.cost[: plain.n_iter_ + 1], plain.trace_.cost)
    assert not np.array_equal(safe.trace_.cost[: plain.n_iter_ + 1], plain.trace_.cost)


@pytest.mark.parametrize("seed", range(3))
def test_ARD_goes_on_after_a_collapse_with_paper_only(seed):
    """Both take the same steps; "safe" ends where σ² is at its floor beside more than 0.7 terms for every row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 200))
    y = X[:, :8].sum(axis=1) + rng.normal(size=60)
    paper, safe = (quietly(ARD(start=start, fit_intercept=False), X, y) for start in ("paper", "safe"))
    assert all(any("close to interpolating" in text for text in one.warnings_) for one in (paper, safe))
    np.testing.assert_array_equal(safe.trace_.cost, paper.trace_.cost[: safe.n_iter_ + 1])
    lost = (paper.trace_.n_terms > 0.7 * 60) & (paper.trace_.noise_variance <= 1.001e-6 * (y @ y) / 60)
    assert safe.n_iter_ == np.flatnonzero(lost)[0] < paper.n_iter_
    assert paper.kkt_gap_ < 1e-6 < safe.kkt_gap_


@pytest.mark.parametrize("seed", range(4))
def test_no_noise_is_no_collapse(seed):
    """σ² at its floor is right for terms that are few: "safe" finds them as "paper" does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 200))
    y = X[:, :12] @ rng.choice([-1.0, 1.0], size=12)
    safe = quietly(ARD(fit_intercept=False), X, y)
    np.testing.assert_array_equal(np.flatnonzero(safe.support_), np.arange(12))
    np.testing.assert_allclose(safe.coef_[:12], np.sign(safe.coef_[:12]), rtol=1e-6)


def test_with_paper_a_collapse_of_ARDvi_stays_a_collapse():
    X, y = wide(0.5)[:2]
    with pytest.warns(CollapseWarning):
        paper = ARDvi(alpha=3, start="paper").fit(X, y)
    safe = quietly(ARDvi(alpha=3), X, y)
    assert paper.support_.sum() > 3 * safe.support_.sum()
    assert any("close to interpolating" in text for text in paper.warnings_)
    assert not any("close to interpolating" in text for text in safe.warnings_)


@pytest.mark.parametrize("kind", [ARDvi, MAPSTSBL])
def test_a_search_with_paper_fits_every_strength_by_itself(kind):
    """No strength begins where the one before ended, so the order of the grid cannot matter."""
    X, y = difference(1)
    grid = [64.0, 16.0, 4.0, 1.0]
    search = quietly(ARDSearch(kind(start="paper"), grid), X, y)
    for strength, coef in zip(search.path_["strength"], search.path_["coef"], strict=True):
        name = "alpha" if kind is ARDvi else "tau"
        alone = quietly(kind(start="paper", **{name: strength}), X, y)
        np.testing.assert_array_equal(coef, alone.coef_)


@pytest.mark.parametrize("start", ["Paper", "", None, 1, ["paper"], np.array(["paper", "safe"])])
@pytest.mark.parametrize("kind", FAMILY)
def test_unknown_start(kind, start):
    data = sparse_data()
    for ask in (lambda model: model.fit(data.X, data.y), lambda model: model.partial_fit(data.X, data.y)):
        with pytest.raises(ValueError, match=r"start=.*is not known: choose 'paper' or 'safe'"):
            ask(kind(start=start))


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AlternativesWarning")
def test_the_start_is_saved_with_the_model_and_used_by_streams(tmp_path):
    X, y = difference(2)
    model = ARD(start="paper").fit(X, y)
    ardea.save(model, tmp_path / "model.ardea")
    assert ardea.load(tmp_path / "model.ardea").start == "paper"
    stream = ARD(start="paper").partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(stream.support_, model.support_)
    assert not np.array_equal(model.support_, quietly(ARD(), X, y).support_)


# Terms that hide each other


def dense(seed, m, d, k, size=20.0):
    """Return rows of which most columns matter."""
    rng = np.random.default_rng([5, seed])
    X = rng.normal(size=(m, d))
    return X, X[:, :k].sum(axis=1) * size + rng.normal(size=m)


@pytest.mark.parametrize(("m", "d", "k"), [(30, 22, 21), (50, 40, 38), (100, 90, 90)])
def test_most_columns_are_found_with_hardly_more_rows(m, d, k):
    """Where k - l terms are kept, the other l can only be one of C(d - k + l, l) groups."""
    for seed in range(5):
        assert SparseARD().fit(*dense(seed, m, d, k)).support_[:k].all()


@pytest.mark.filterwarnings("ignore:On the way the fit kept:ardea.estimators.advice.CollapseWarning")
@pytest.mark.filterwarnings("ignore:The fit keeps:ardea.estimators.advice.CollapseWarning")
@pytest.mark.parametrize(("m", "d", "k"), [(100, 150, 25), (100, 400, 18), (200, 1000, 36)])
def test_a_fifth_as_many_terms_as_rows_are_found_among_more_columns(m, d, k):
    """Beside the variance of y as noise they hide each other; the second start begins with little noise."""
    for seed in range(3):
        rng = np.random.default_rng([77, seed])
        X, signs = rng.normal(size=(m, d)), rng.choice([-1.0, 1.0], size=k)
        model = SparseARD().fit(X, 20 * X[:, :k] @ signs + rng.normal(size=m))
        assert model.support_[:k].all()
        assert model.support_[k:].sum() <= 2


def test_what_all_columns_explain_and_none_alone_is_told():
    """38 of 40 columns matter a little, and 50 rows are too few to choose."""
    told = missed = 0
    for seed in range(20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseARD().fit(*dense(seed, 50, 40, 38, size=3.0))
        lost = not model.support_[:38].all()
        missed += lost
        told += lost and any(issubclass(one.category, ManyTermsWarning) for one in caught)
    assert missed > 0
    assert told >= 0.9 * missed


def test_no_fit_of_columns_that_differ_is_called_stuck():
    """The cost of ARDvi may rise on the way to its fixed point, which is no rounding error."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, signs = rng.normal(size=(60, 50)), rng.choice([-1.0, 1.0], 50)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ManyTermsWarning)
            SparseARD().fit(X, 2 * X @ signs + rng.normal(size=60))


def test_the_f_test_is_that_of_least_squares():
    """Also without an intercept, where the constant is no column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = 5 + X[:, 0] + rng.normal(size=60)
    for intercept in (False, True):
        rows = CompressedRows.from_arrays(X, y[:, None])
        (problem,), coordinates = rows.pose(intercept=intercept)
        (task,) = tasks_of([problem], coordinates, (None, 500, 1e-6))
        fit = task.run(problem.restrict(np.array([0])))
        A = np.column_stack([X, np.ones((60, int(intercept)))])
        whole = np.sum((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2) / coordinates.targets[0] ** 2
        free = 60 - A.shape[1]
        F = (fit.posterior.rss - whole) / 7 / (whole / free)
        expected = stats.f.sf(F, 7, free)
        shown = chance_beside_all(problem, fit, noise_known=False)
        assert shown == pytest.approx(expected, rel=1e-6) if expected < 1e-3 else shown > 1e-3
