"""A working set gives a fixed point of the whole problem, and touches few columns."""

import numpy as np
import pytest
from scipy import sparse

from ardea import ARDvi, SparseARD
from ardea.core import loop
from ardea.core.evidence import NoiseRule, Setting
from ardea.core.loop import solve, solve_wide
from ardea.core.problem import DenseColumns, Problem
from ardea.priors import Flat

M, D, TERMS = 60, 2500, [3, 700, 2400]


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(M, D)) + 0.5 * rng.normal(size=(M, 1))
    return X, X[:, TERMS] @ [3.0, -2.0, 2.5] + 0.3 * rng.normal(size=M)


@pytest.mark.parametrize("rule", [NoiseRule(0.09), NoiseRule()], ids=["known", "learned"])
@pytest.mark.parametrize("alpha", [12.0, 20.0])
def test_the_certificate_covers_every_column(wide, rule, alpha):
    X, y = wide
    setting = Setting(Problem(DenseColumns(X), y, 0.0, M), Flat(), rule, inflation=np.full(D, alpha))
    fit, whole = solve_wide(setting), solve(setting)
    noise = alpha * fit.noise
    inverse = np.linalg.inv(noise * np.eye(M) + (X * fit.gamma) @ X.T)
    slopes, scores = np.einsum("ij,ij->j", X, inverse @ X), X.T @ (inverse @ y)
    ratio = scores**2 / slopes - 1
    assert np.abs(ratio[fit.gamma > 0]).max() <= 1e-6
    assert ratio.max() <= 1e-6
    assert fit.kkt_gap == pytest.approx(max(ratio.max(), np.abs(ratio[fit.gamma > 0]).max()), abs=1e-9)
    np.testing.assert_array_equal(np.flatnonzero(fit.gamma), np.flatnonzero(whole.gamma))
    np.testing.assert_allclose(fit.gamma, whole.gamma, rtol=1e-5)


def test_columns_left_out_at_first_come_in(wide, monkeypatch):
    """A column that explains nothing until another is in the model starts outside and is found by the check."""
    X, y = wide
    X = X.copy()
    X[:, 9] = X[:, 3] - 0.6 * X[:, 700]
    y = 3 * X[:, 3] - 1.8 * X[:, 700] - 2.9 * X[:, 9] + 2 * X[:, 2400] + 0.01 * y
    monkeypatch.setattr(loop, "FIRST_RATIO", 0)
    setting = Setting(Problem(DenseColumns(X), y, 0.0, M), Flat(), NoiseRule(1e-3), inflation=np.full(D, 12.0))
    fit = solve_wide(setting)
    assert fit.kkt_gap <= 1e-6
    assert 2400 in fit.posterior.active


def test_few_columns_are_worked_on(wide, monkeypatch):
    X, y = wide
    sizes = []
    monkeypatch.setattr(loop, "solve", lambda s, **options: sizes.append(s.problem.n_columns) or solve(s, **options))
    model = SparseARD().fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), TERMS)
    assert max(sizes) < D // 10


def test_sparse_and_dense_agree(wide):
    X, y = wide
    thin = np.where(np.abs(X) > 1.2, X, 0.0)
    dense = ARDvi(alpha=14.0).fit(thin, y)
    implicit = ARDvi(alpha=14.0).fit(sparse.csc_array(thin), y)
    np.testing.assert_array_equal(dense.support_, implicit.support_)
    np.testing.assert_allclose(dense.coef_, implicit.coef_, rtol=1e-6, atol=1e-10)
