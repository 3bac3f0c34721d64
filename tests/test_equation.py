"""One equation: its numbers against dense formulas, and its words against the numbers."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ardea import ARD, SparseARD
from ardea.dynamics import Fourier, Polynomials
from ardea.names import ColumnNames, Left, Rival, latex_name, printable, rounded
from conftest import sparse_data

DATA = sparse_data()
TWO = np.column_stack([DATA.y, 3 * DATA.X[:, 1] - DATA.y])
CASES = {
    "plain": lambda: SparseARD().fit(DATA.X, DATA.y),
    "no intercept": lambda: SparseARD(fit_intercept=False).fit(DATA.X, DATA.y),
    "kept columns": lambda: SparseARD(always_keep=[0, 5]).fit(DATA.X, DATA.y),
    "two targets": lambda: SparseARD(always_keep=[2]).fit(DATA.X, TWO),
    "nothing kept": lambda: SparseARD(false_terms=1e-9).fit(DATA.X[:, :2], np.arange(80) % 3 * 1.0),
}


@pytest.fixture(params=CASES)
def model(request):
    return CASES[request.param]()


def function_of(source):
    """Compile the source and return its only function, with no name to reach for."""
    space = {"__builtins__": {}}
    exec(compile(source, "<model>", "exec"), space)
    del space["__builtins__"]
    (function,) = space.values()
    return function


def kept_columns(model, X):
    return [X[:, j] for j in np.flatnonzero(model.get_support())]


def expected(model, X):
    return np.atleast_2d(model.predict(X).T)


# Numbers


def joint_posterior(model, equation, X, y):
    """Mean and covariance of (intercept, support), with the flat prior of both as a limit: N(0, γ) with γ → ∞."""
    support = list(equation.support)
    design = np.column_stack([np.ones(len(X)), X[:, support]])
    prior = np.concatenate([[np.inf], np.atleast_2d(model.prior_variance_)[0][support]])
    noise = equation.posterior.noise_variance
    precision = design.T @ design / noise + np.diag(1 / prior)
    covariance = np.linalg.inv(precision)
    return covariance @ design.T @ y / noise, covariance


@pytest.mark.parametrize("case", ["plain", "kept columns"])
def test_posterior_is_that_of_a_dense_computation(case):
    model = CASES[case]()
    (equation,) = model.equations_
    mean, covariance = joint_posterior(model, equation, DATA.X, DATA.y)
    np.testing.assert_allclose(equation.coefficients, mean[1:], rtol=1e-9)
    np.testing.assert_allclose(equation.covariance, covariance[1:, 1:], rtol=1e-7, atol=1e-12)
    assert equation.intercept == pytest.approx(mean[0], rel=1e-8)
    assert equation.intercept_std == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-8)


def test_refit_is_least_squares():
    (equation,) = CASES["kept columns"]().equations_
    design = np.column_stack([np.ones(len(DATA.X)), DATA.X[:, list(equation.support)]])
    coefficients, (rss,), *_ = np.linalg.lstsq(design, DATA.y, rcond=None)
    degrees = len(DATA.y) - design.shape[1]
    np.testing.assert_allclose(equation.refit.mean, coefficients[1:], rtol=1e-9)
    assert equation.refit.noise_variance == pytest.approx(rss / degrees, rel=1e-9)
    covariance = rss / degrees * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(equation.refit.covariance, covariance[1:, 1:], rtol=1e-7, atol=1e-12)
    half = stats.t.ppf(0.95, degrees) * np.sqrt(covariance.diagonal()[1:])
    np.testing.assert_allclose(np.diff(equation.interval(0.9, "refit"))[:, 0], 2 * half, rtol=1e-9)


def test_attributes_are_those_of_the_equations(model):
    for one, coef, std, support in zip(
        model.equations_,
        np.atleast_2d(model.coef_),
        np.atleast_2d(model.coef_std_),
        np.atleast_2d(model.support_),
        strict=True,
    ):
        np.testing.assert_array_equal(one.spread(one.coefficients), coef)
        np.testing.assert_array_equal(one.spread(one.std), std)
        np.testing.assert_array_equal(np.flatnonzero(support), one.support)


# Words


def test_formula_and_table_say_the_numbers_to_their_errors():
    (equation,) = CASES["plain"]().equations_
    shown = [float(number) for number in re.findall(r"-?\d+\.?\d*(?= x)", equation.formula().replace("- ", "-"))]
    np.testing.assert_array_less(np.abs(shown - equation.coefficients), 0.06 * equation.std)
    table = equation.table(0.9)
    assert table["term"] == list(equation.terms)
    np.testing.assert_array_equal(np.column_stack([table["90% low"], table["90% high"]]), equation.interval(0.9))


def test_a_column_named_one_is_no_constant():
    names = ["1", *"abcdefghijk"]
    equation = SparseARD(always_keep=["1"]).fit(pd.DataFrame(DATA.X, columns=names), DATA.y).equations_[0]
    assert re.search(r"\d 1( |$)", equation.formula())


def test_an_equation_prints_as_its_formula():
    (equation,) = CASES["plain"]().equations_
    assert str(equation) == repr(equation) == equation.formula()


def test_other_names_change_the_words_and_no_number():
    equation = SparseARD().fit(DATA.X, DATA.y).equations_[0]
    named = equation.with_names([f"c{j}" for j in range(12)])
    assert named.terms == tuple(f"c{j}" for j in equation.support)
    assert named.formula() == equation.formula().replace(" x", " c")
    assert named.latex() == equation.latex().replace("x_", "c_")
    np.testing.assert_array_equal(named.coefficients, equation.coefficients)
    motion = replace(equation, vocabulary=Polynomials(1).vocabulary([f"s{j}" for j in range(11)]))
    with pytest.raises(ValueError, match="feature_names"):
        motion.with_names([f"c{j}" for j in range(12)])


def test_code_of_a_motion_takes_the_states_in_their_order():
    words = Polynomials(2).vocabulary(["a", "b"])
    equation = CASES["no intercept"]().equations_[0]
    (last, first) = (words.names.index("b"), words.names.index("a^2"))
    assert list(words.arguments([last, first])) == ["a", "b"]
    assert equation.python().startswith("def predict(x")


def test_small_numbers_and_their_errors_have_matching_digits():
    assert (rounded(-1.2543e-07, 4.9634e-10), rounded(4.9634e-10, 4.9634e-10)) == ("-1.2543e-07", "5e-10")


def test_left_sides():
    kinds = ("value", "rate", "next", "field")
    assert [Left("x", kind).text for kind in kinds] == ["x", "(x)'", "(x)[k+1]", "(x)_t"]
    assert [Left("x1", kind).latex for kind in kinds] == ["x_{1}", "\\dot{x_{1}}", "{x_{1}}_{k+1}", "{x_{1}}_t"]


def test_rivals_say_where_they_stand():
    assert Rival(("x", "y"), 4.24).compared == "x, y (4.2 worse)"
    assert Rival((), -3.0).compared == "no term (3.0 better)"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(0.0, 1e-3, "0.0000"), (-0.5, 0.02, "-0.500"), (1e9, 10.0, "1000000000"), (2.0, np.nan, "2")],
)
def test_numbers_to_two_digits_of_their_error(value, error, text):
    assert rounded(value, error) == text


@pytest.mark.parametrize("name", ["a\x1b[2J", "tab\there", "\x00", "line\nfeed", "\x9b31m"])
def test_control_characters_do_not_reach_the_terminal(name):
    frame = pd.DataFrame(DATA.X, columns=[name, *"abcdefghijk"])
    model = ARD(always_keep=[0]).fit(frame, DATA.y)
    equation = model.equations_[0]
    for text in (equation.formula(), equation.with_intervals(), str(model.summary()), printable(name)):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert printable(name) in equation.formula()


@pytest.mark.parametrize("name", ["a_b", "50 %", "x^2", "\\input{secret}", "a{b", "$y$", "#1", "~", "&"])
def test_latex_names_hold_no_commands(name):
    body = latex_name(name)
    assert not re.search(r"(?<!\\)[_&%#$](?![{0-9])", body)
    assert "\\input" not in body
    stripped = re.sub(r"\\[{}]", "", body)
    assert stripped.count("{") == stripped.count("}")


# Plain Python


def test_python_predicts_the_same(model):
    X = DATA.X[:, : model.n_features_in_]
    result = function_of(model.to_python())(*kept_columns(model, X))
    result = result if isinstance(result, tuple) else (result,)
    for ours, theirs in zip(result, expected(model, X), strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-12, atol=1e-12)


def test_python_works_on_single_numbers():
    model = CASES["plain"]()
    row = [float(column[0]) for column in kept_columns(model, DATA.X)]
    result = function_of(model.to_python("f"))(*row)
    assert type(result) is float
    assert result == pytest.approx(model.predict(DATA.X[:1])[0], rel=1e-12)


def test_coefficients_keep_all_digits():
    model = CASES["plain"]()
    numbers = {
        node.value for node in ast.walk(ast.parse(model.to_python())) if isinstance(node, ast.Constant)
    }  # fmt: skip
    assert {abs(value) for value in model.coef_[model.support_]} <= numbers
    assert model.intercept_ in numbers


def test_arguments_bear_the_names():
    frame = pd.DataFrame(DATA.X, columns=[f"θ_{j}" for j in range(12)])
    model = SparseARD().fit(frame, DATA.y)
    assert model.to_python().startswith(f"def predict({', '.join(model.get_feature_names_out())}):")


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
    named = SparseARD().fit(pd.DataFrame(DATA.X, columns=columns), DATA.y).to_python()
    plain = SparseARD().fit(DATA.X, DATA.y).to_python()
    assert ast.dump(ast.parse(named)) == ast.dump(ast.parse(plain))


def test_names_that_repeat_give_positions():
    fitted = SparseARD(always_keep=[0, 1]).fit(DATA.X, DATA.y)
    model = replace(fitted.equations_[0], vocabulary=ColumnNames(("same",) * 12))
    assert model.python().startswith("def predict(x0, x1")
    with pytest.raises(ValueError, match="same name"):
        model.sympy()


@pytest.mark.parametrize("name", ["", "1f", "class", "f(x)", "__import__", "a b"])
def test_names_of_functions_are_checked(name):
    with pytest.raises(ValueError, match="name="):
        CASES["plain"]().to_python(name)


def test_python_of_waves_brings_its_import():
    """Terms of a library: the function of the states has the values of Θξ, whatever the states are called."""
    library = Polynomials(2) + Fourier(2)
    states = np.random.default_rng(0).normal(size=(60, 2))
    theta = library.evaluate(states)
    names = library.names(["a", "b"])
    target = 2 * theta[:, names.index("a b")] - theta[:, names.index("sin(2 b)")] + 1e-3 * states[::-1, 0]
    fitted = SparseARD(fit_intercept=False).fit(theta, target)
    for spelling in (["a", "b"], ["wind speed", "class"]):
        equation = replace(fitted.equations_[0], vocabulary=library.vocabulary(spelling))
        space = {}
        exec(equation.python("f"), space)
        np.testing.assert_allclose(space["f"](*states.T), theta @ fitted.coef_, rtol=1e-12, atol=1e-12)


# SymPy


def test_sympy_predicts_the_same(model):
    pytest.importorskip("sympy")
    X = DATA.X[:5, : model.n_features_in_]
    expressions = model.to_sympy()
    expressions = expressions if isinstance(expressions, list) else [expressions]
    for expression, theirs in zip(expressions, expected(model, X), strict=True):
        values = [expression.subs({f"x{j}": value for j, value in enumerate(row)}) for row in X.tolist()]
        np.testing.assert_allclose(np.array(values, dtype=float), theirs, rtol=1e-12, atol=1e-12)


def test_sympy_keeps_all_digits():
    sympy = pytest.importorskip("sympy")
    model = CASES["plain"]()
    expression = model.to_sympy()
    for j in np.flatnonzero(model.support_):
        assert float(expression.coeff(sympy.Symbol(f"x{j}"))) == model.coef_[j]
    assert expression.free_symbols == {sympy.Symbol(f"x{j}") for j in np.flatnonzero(model.support_)}


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_latex_writes_powers_of_ten(scale):
    """The numbers of the text, none of them in the notation of a program."""
    equation = SparseARD().fit(DATA.X, DATA.y * scale).equations_[0]
    told = equation.latex().partition(" = ")[2]
    assert not re.search(r"\de[-+]?\d", told)
    powers = re.sub(r" \\times 10\^\{(-?\d+)\}", r"e\1", told)
    numbers = [float(one) for one in re.findall(r"(?<![\w{])\d[\d.]*(?:e-?\d+)?", powers)]
    shown = [float(one) for one in re.findall(r"(?<!\w)\d[\d.]*(?:e[-+]?\d+)?", equation.right_hand_side())]
    assert numbers == shown
    assert len(numbers) == len(equation.terms) + 1
