"""A linear operator as X gives what its matrix gives, and never becomes one."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ardea import ARD, MAPSTSBL, Operator, SparseARD

M, D = 50, 140


@pytest.fixture
def dictionary():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(M, D)) + 2.0
    coef = np.zeros(D)
    coef[[4, 30, 99]] = [2.0, -3.0, 1.5]
    return X, X @ coef + 5.0 + 0.1 * rng.normal(size=M)


def as_operator(X):
    return Operator(aslinearoperator(X), np.linalg.norm(X, axis=0))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("keep", [None, [7, 30]])
@pytest.mark.parametrize("kind", [SparseARD, MAPSTSBL])
def test_operator_equals_its_matrix(dictionary, intercept, keep, kind):
    X, y = dictionary
    settings = {"fit_intercept": intercept, "always_keep": keep, "noise_variance": 0.01}
    dense = kind(**settings).fit(X, y)
    implicit = kind(**settings).fit(as_operator(X), y)
    np.testing.assert_array_equal(implicit.support_, dense.support_)
    np.testing.assert_allclose(implicit.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    assert implicit.intercept_ == pytest.approx(dense.intercept_, rel=1e-6, abs=1e-9)
    for ours, theirs in zip(
        implicit.predict(as_operator(X), return_std=True), dense.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning")
def test_weights_are_repeated_rows(dictionary):
    X, y = dictionary
    weight = np.random.default_rng(0).integers(0, 4, M)
    weighted = SparseARD(noise_variance=0.01).fit(as_operator(X), y, sample_weight=weight)
    repeated = SparseARD(noise_variance=0.01).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_only_products_are_asked_for(dictionary):
    """The columns asked for are few: those that became active, not the whole matrix."""
    X, y = dictionary
    asked = []

    def product(vectors):
        asked.append(vectors.shape[1])
        return X @ vectors

    op = LinearOperator((M, D), matvec=lambda v: X @ v, rmatvec=lambda v: X.T @ v, matmat=product)
    SparseARD().fit(Operator(op, np.linalg.norm(X, axis=0)), y)
    assert max(asked) < D // 2


def test_bad_operators_are_refused(dictionary):
    X, y = dictionary
    with pytest.raises(ValueError, match="column_norms has shape"):
        Operator(aslinearoperator(X), np.ones(3))
    with pytest.raises(ValueError, match="finite"):
        Operator(aslinearoperator(X), np.full(D, np.nan))
    with pytest.raises(ValueError, match="complex"):
        Operator(aslinearoperator(X + 1j), np.ones(D))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ARD().fit(as_operator(X), y[:-1])
    with pytest.raises(ValueError, match="use fit"):
        ARD().partial_fit(as_operator(X), y)
    with pytest.raises(ValueError, match="columns"):
        SparseARD().fit(X, y).predict(as_operator(X[:, :5]))
