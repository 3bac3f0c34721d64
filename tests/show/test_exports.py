"""Models as draws, expressions and plain Python."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ardea import ARDSearch, ARDvi, SparseARD
from ardea.exports import to_arviz, to_python, to_sympy
from conftest import sparse_data

DATA = sparse_data()
TWO = np.column_stack([DATA.y, 3 * DATA.X[:, 1] - DATA.y])
CASES = {
    "plain": lambda: SparseARD().fit(DATA.X, DATA.y),
    "no intercept": lambda: SparseARD(fit_intercept=False).fit(DATA.X, DATA.y),
    "kept columns": lambda: SparseARD(always_keep=[0, 5]).fit(DATA.X, DATA.y),
    "two targets": lambda: SparseARD(always_keep=[2]).fit(DATA.X, TWO),
    "search": lambda: ARDSearch(ARDvi()).fit(DATA.X, DATA.y),
    "nothing kept": lambda: SparseARD(false_terms=1e-9).fit(DATA.X[:, :2], np.arange(80) % 2 * 1.0),
}


@pytest.fixture(params=CASES)
def model(request):
    return CASES[request.param]()


def estimator_of(model):
    return model.best_estimator_ if isinstance(model, ARDSearch) else model


def function_of(source):
    """Compile the source and return its only function, with no name to reach for."""
    space = {"__builtins__": {}}
    exec(compile(source, "<model>", "exec"), space)
    del space["__builtins__"]
    (function,) = space.values()
    return function


def kept_columns(model, X):
    return [X[:, j] for j in np.flatnonzero(estimator_of(model).get_support())]


def expected(model, X):
    return np.atleast_2d(model.predict(X).T)


# Plain Python


def test_python_predicts_the_same(model):
    X = DATA.X[:, : model.n_features_in_]
    result = function_of(to_python(model))(*kept_columns(model, X))
    result = result if isinstance(result, tuple) else (result,)
    for ours, theirs in zip(result, expected(model, X), strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-12, atol=1e-12)


def test_python_works_on_single_numbers():
    model = CASES["plain"]()
    row = [float(column[0]) for column in kept_columns(model, DATA.X)]
    result = function_of(to_python(model, "f"))(*row)
    assert type(result) is float
    assert result == pytest.approx(model.predict(DATA.X[:1])[0], rel=1e-12)


def test_coefficients_keep_all_digits():
    model = CASES["plain"]()
    numbers = {
        node.value for node in ast.walk(ast.parse(to_python(model))) if isinstance(node, ast.Constant)
    }  # fmt: skip
    assert {abs(value) for value in model.coef_[model.support_]} <= numbers
    assert model.intercept_ in numbers


def test_arguments_bear_the_names():
    frame = pd.DataFrame(DATA.X, columns=[f"θ_{j}" for j in range(12)])
    model = SparseARD().fit(frame, DATA.y)
    assert to_python(model).startswith(f"def predict({', '.join(model.get_feature_names_out())}):")


HOSTILE = [
    "x): import os #",
    'a"""\nimport os\n"""',
    "new\nline",
    "class",
    "__debug__",
    "ﬁ",
    "x0 x1",
    "",
    "\x00",
    "a\r__import__('os')",
    "\u2028print()",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_strange_names_stay_out_of_the_code(name):
    """The syntax tree must be that of a model without names."""
    columns = [f"c{j}" for j in range(12)]
    keep = int(np.flatnonzero(DATA.coef)[0])
    columns[keep] = name
    named = to_python(SparseARD().fit(pd.DataFrame(DATA.X, columns=columns), DATA.y))
    plain = to_python(SparseARD().fit(DATA.X, DATA.y))
    assert ast.dump(ast.parse(named)) == ast.dump(ast.parse(plain))


def test_names_that_repeat_give_positions():
    model = SparseARD(always_keep=[0, 1]).fit(DATA.X, DATA.y)
    model.feature_names_in_ = np.array(["same"] * 12, dtype=object)
    assert to_python(model).startswith("def predict(x0, x1")
    with pytest.raises(ValueError, match="same name"):
        to_sympy(model)


@pytest.mark.parametrize("name", ["", "1f", "class", "f(x)", "__import__", "a b"])
def test_names_of_functions_are_checked(name):
    with pytest.raises(ValueError, match="name="):
        to_python(CASES["plain"](), name)


# SymPy


def test_sympy_predicts_the_same(model):
    pytest.importorskip("sympy")
    X = DATA.X[:5, : model.n_features_in_]
    expressions = to_sympy(model)
    expressions = expressions if isinstance(expressions, list) else [expressions]
    for expression, theirs in zip(expressions, expected(model, X), strict=True):
        values = [expression.subs({f"x{j}": value for j, value in enumerate(row)}) for row in X.tolist()]
        np.testing.assert_allclose(np.array(values, dtype=float), theirs, rtol=1e-12, atol=1e-12)


def test_sympy_keeps_all_digits():
    sympy = pytest.importorskip("sympy")
    model = CASES["plain"]()
    expression = to_sympy(model)
    for j in np.flatnonzero(model.support_):
        assert float(expression.coeff(sympy.Symbol(f"x{j}"))) == model.coef_[j]
    assert expression.free_symbols == {sympy.Symbol(f"x{j}") for j in np.flatnonzero(model.support_)}


# ArviZ


def test_draws_are_those_of_sample(model):
    pytest.importorskip("arviz")
    posterior = to_arviz(model, 50, random_state=3)["posterior"]
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
    posterior = to_arviz(model, n, random_state=0)["posterior"]
    X = DATA.X[:6]
    coefficients = posterior["coef"].values.reshape(n, len(model._terms), -1)
    lines = posterior["intercept"].values.reshape(n, -1, 1) + coefficients @ X[:, model.get_support()].T
    mean, std = (np.atleast_2d(part.T) for part in model.predict(X, return_std=True))
    variance = std**2 - np.reshape(model.noise_variance_, (-1, 1))
    np.testing.assert_array_less(np.abs(lines.mean(axis=0) - mean), 4.5 * np.sqrt(variance / n))
    np.testing.assert_allclose(lines.var(axis=0), variance, rtol=4.5 * np.sqrt(2 / n))


def test_arviz_can_use_it():
    arviz = pytest.importorskip("arviz")
    table = arviz.summary(to_arviz(CASES["kept columns"](), 500, random_state=0), kind="stats")
    assert "intercept" in table.index


@pytest.mark.parametrize("function", [to_arviz, to_sympy, to_python])
def test_what_cannot_be_exported(function):
    with pytest.raises(NotFittedError):
        function(SparseARD())
    with pytest.raises(TypeError, match="Ridge"):
        function(Ridge().fit(DATA.X, DATA.y))


@pytest.mark.parametrize(("function", "package"), [(to_arviz, "arviz"), (to_sympy, "sympy")])
def test_a_missing_package_names_the_extra(function, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'ardea\["):
        function(CASES["plain"]())
