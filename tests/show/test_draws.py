"""Models as draws for ArviZ."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ardea import ARDSearch, ARDvi, SparseARD
from conftest import sparse_data

DATA = sparse_data()
TWO = np.column_stack([DATA.y, 3 * DATA.X[:, 1] - DATA.y])
CASES = {
    "plain": lambda: SparseARD().fit(DATA.X, DATA.y),
    "no intercept": lambda: SparseARD(fit_intercept=False).fit(DATA.X, DATA.y),
    "kept columns": lambda: SparseARD(always_keep=[0, 5]).fit(DATA.X, DATA.y),
    "two targets": lambda: SparseARD(always_keep=[2]).fit(DATA.X, TWO),
    "search": lambda: ARDSearch(ARDvi()).fit(DATA.X, DATA.y),
    "nothing kept": lambda: SparseARD(false_terms=1e-9).fit(DATA.X[:, :2], np.arange(80) % 3 * 1.0),
}


@pytest.fixture(params=CASES)
def model(request):
    return CASES[request.param]()


def estimator_of(model):
    return model.best_estimator_ if isinstance(model, ARDSearch) else model


def test_draws_are_those_of_sample(model):
    pytest.importorskip("arviz")
    posterior = estimator_of(model).to_arviz(50, random_state=3)["posterior"]
    fitted = estimator_of(model)
    draws = fitted.sample(50, random_state=3).reshape(-1, 50, fitted.n_features_in_)[:, :, fitted.get_support()]
    coefficients = posterior["coef"].values.reshape(50, len(draws), draws.shape[-1]).swapaxes(0, 1)
    np.testing.assert_array_equal(coefficients, draws)
    assert ("intercept" in posterior) == fitted.fit_intercept
    names = [f"x{j}" for j in np.flatnonzero(fitted.get_support())]
    assert posterior["term"].values.tolist() == names
    np.testing.assert_array_equal(posterior.attrs["noise_variance"], fitted.noise_variance_)


@pytest.mark.parametrize("case", ["plain", "kept columns", "two targets"])
def test_draws_spread_as_predictions_do(case):
    """Mean and variance of b + xξ over the draws are those of predict, to the error of 20,000 draws."""
    pytest.importorskip("arviz")
    model, n = CASES[case](), 20_000
    posterior = model.to_arviz(n, random_state=0)["posterior"]
    X = DATA.X[:6]
    coefficients = posterior["coef"].values.reshape(n, len(model.equations_), -1)
    lines = posterior["intercept"].values.reshape(n, -1, 1) + coefficients @ X[:, model.get_support()].T
    mean, std = (np.atleast_2d(part.T) for part in model.predict(X, return_std=True))
    variance = std**2 - np.reshape(model.noise_variance_, (-1, 1))
    np.testing.assert_array_less(np.abs(lines.mean(axis=0) - mean), 4.5 * np.sqrt(variance / n))
    np.testing.assert_allclose(lines.var(axis=0), variance, rtol=4.5 * np.sqrt(2 / n))


def test_arviz_can_use_it():
    arviz = pytest.importorskip("arviz")
    table = arviz.summary(CASES["kept columns"]().to_arviz(500, random_state=0), kind="stats")
    assert "intercept" in table.index


def test_a_model_that_was_not_fitted():
    with pytest.raises(NotFittedError):
        SparseARD().to_arviz()


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'ardea\["):
        CASES["plain"]().to_arviz()
