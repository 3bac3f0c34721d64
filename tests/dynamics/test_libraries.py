"""Libraries of terms: order, names, values against plain powers, derivatives against a complex step, their algebra."""

from __future__ import annotations

import sys
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from ardea.dynamics import Custom, FieldTerms, Fourier, Polynomials
from ardea.dynamics.course import distinct
from ardea.dynamics.rows import curved, directional
from ardea.dynamics.terms import CompiledTerms, Term
from ardea.names import default_axis_names, default_field_names, default_names

RNG = np.random.default_rng(0)
LIBRARIES = {
    "cubic": Polynomials(3),
    "quintic": Polynomials(5),
    "no constant": Polynomials(2, include_constant=False),
    "waves": Fourier(3),
    "sum": Polynomials(2) + Fourier(2),
    "product": Polynomials(2) * Fourier(1),
    "square of waves": Fourier(1) * Fourier(1),
    "own": Custom([np.exp, lambda x, y: x * np.sin(y)], ["exp({})", "{0} s({1})"]),
    "own with a named function": Custom([np.tanh]),
    "all": (Polynomials(1) + Custom([np.exp])) * Fourier(1),
}


@pytest.fixture(params=LIBRARIES, ids=list(LIBRARIES))
def library(request):
    return LIBRARIES[request.param]


def complex_step(library, X, state):
    """Return ∂Θ/∂x_state to all digits."""
    moved = X.astype(complex)
    moved[:, state] += 1e-30j
    return library.evaluate(moved).imag / 1e-30


@pytest.mark.parametrize(("n_states", "degree"), [(1, 4), (2, 3), (3, 5), (40, 2)])
def test_polynomials_stand_in_graded_order(n_states, degree):
    X = RNG.normal(size=(7, n_states))
    twin = PolynomialFeatures(degree).fit(X)
    library = Polynomials(degree)
    names = default_names(n_states)
    assert library.names(names) == list(twin.get_feature_names_out(names))
    assert library.n_terms(n_states) == comb(n_states + degree, degree)
    np.testing.assert_allclose(library.evaluate(X), twin.transform(X), rtol=1e-13)


def test_names_are_those_that_users_of_pysindy_know():
    assert Polynomials(3).names(["x", "y"]) == ["1", "x", "y", "x^2", "x y", "y^2", "x^3", "x^2 y", "x y^2", "y^3"]
    assert (Polynomials(1) * Fourier(2)).names(["x", "y"])[8:12] == ["x sin(x)", "x cos(x)", "x sin(y)", "x cos(y)"]
    assert (Fourier(1) * Fourier(1)).names(["x"]) == ["sin(x)^2", "cos(x) sin(x)", "cos(x)^2"]


def test_default_degree_falls_above_ten_states():
    assert Polynomials().n_terms(10) == comb(13, 3)
    assert Polynomials().n_terms(11) == comb(13, 2)
    assert Polynomials().degree_for(10) == 3
    assert Polynomials().degree_for(11) == 2


def test_names_are_unique(library):
    names = library.names(["x", "y", "z"])
    assert len(set(names)) == len(names) == library.n_terms(3)
    words = library.vocabulary(["x", "y", "z"])
    assert len({words.latex(j) for j in range(len(names))}) == len(names)


def test_any_choice_of_columns_equals_the_columns_of_all(library):
    for rows in (1, 6):
        X = RNG.normal(size=(rows, 3))
        full = library.evaluate(X)
        for size in (1, 3, library.n_terms(3)):
            chosen = RNG.choice(library.n_terms(3), size=size, replace=False)
            np.testing.assert_allclose(library.evaluate(X, terms=chosen), full[:, chosen], rtol=1e-14)


def test_many_rows_are_computed_block_by_block():
    """More values than fit in one block give the same as each row alone."""
    X = RNG.normal(size=(5000, 3))
    library = Polynomials(4) + Fourier(1)
    np.testing.assert_array_equal(library.evaluate(X)[4000:4003], library.evaluate(X[4000:4003]))


def jacobian_of(library, X):
    """Return ∂θ_i/∂x_l at every row, shape (rows, n_terms, n_states)."""
    return np.stack([directional(library, X, xi) for xi in np.eye(library.n_terms(X.shape[1]))], axis=1)


def test_derivatives_equal_the_complex_step(library):
    X = RNG.normal(size=(5, 3))
    jacobian = jacobian_of(library, X)
    assert jacobian.shape == (5, library.n_terms(3), 3)
    for state in range(3):
        np.testing.assert_allclose(jacobian[:, :, state], complex_step(library, X, state), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rows", [1, 5])
def test_directional_is_the_jacobian_times_the_coefficients(library, rows):
    X = RNG.normal(size=(rows, 3))
    xi = np.zeros(library.n_terms(3))
    xi[RNG.choice(len(xi), size=3, replace=False)] = RNG.normal(size=3)
    expected = np.einsum("rts,t->rs", jacobian_of(library, X), xi)
    np.testing.assert_allclose(directional(library, X, xi), expected, rtol=1e-12, atol=1e-13)


def test_directional_of_nothing_is_zero():
    assert not directional(Polynomials(3), RNG.normal(size=(4, 2)), np.zeros(10)).any()


@pytest.mark.parametrize(
    ("function", "derivative", "tolerance"),
    [
        (np.exp, np.exp, 1e-14),
        (lambda x: np.sin(50 * x), lambda x: 50 * np.cos(50 * x), 1e-13),
        (np.abs, np.sign, 1e-8),  # complex step would give 0
        (lambda x: np.arctan2(x, 2.0), lambda x: 2.0 / (4.0 + x**2), 1e-8),  # refuses complex numbers
        (lambda x: x.astype(float) ** 2, lambda x: 2 * x, 1e-8),  # drops the imaginary part
    ],
    ids=["exp", "fast wave", "abs", "arctan2", "cast"],
)
def test_numerical_derivatives_of_own_functions(function, derivative, tolerance):
    X = np.linspace(0.3, 3.0, 20)[:, None] * np.where(np.arange(20) % 2, 1, -1)[:, None]
    got = directional(Custom([function]), X, np.ones(1))[:, 0]
    np.testing.assert_allclose(got, derivative(X[:, 0]), rtol=tolerance, atol=tolerance)


def test_function_of_two_states_takes_all_pairs():
    library = Custom([lambda x, y: x / y], ["{0}/{1}"])
    assert library.names(["a", "b", "c"]) == ["a/b", "a/c", "b/c"]
    X = RNG.uniform(1, 2, size=(4, 3))
    np.testing.assert_allclose(library.evaluate(X)[:, 1], X[:, 0] / X[:, 2])


def test_names_of_own_functions():
    library = Custom([np.exp, lambda x: x, np.hypot], [lambda x: f"e^{x}", "id {}", "hypot({}, {})"])
    assert library.names(["x", "y"]) == ["e^x", "e^y", "id x", "id y", "hypot(x, y)"]
    assert Custom([np.exp, lambda x: x]).names(["x"]) == ["exp(x)", "f1(x)"]


def test_a_constant_function_counts_for_every_row():
    np.testing.assert_array_equal(Custom([lambda x: 2.0]).evaluate(np.ones((3, 1))), np.full((3, 1), 2.0))


def test_sum_is_the_union():
    assert Polynomials(2) + Polynomials(3) != Polynomials(3)
    assert (Polynomials(2) + Polynomials(3)).names(["x", "y"]) == Polynomials(3).names(["x", "y"])
    assert (Custom([np.square], ["{}^2"]) + Polynomials(2)).names(["x"]) == ["x^2", "1", "x"]
    a, b, c = Polynomials(1), Fourier(1), Custom([np.exp])
    assert (a + b) + c == a + (b + c)


def test_product_is_commutative_up_to_order_and_distributes():
    names = ["x", "y"]
    a, b, c = Polynomials(1), Fourier(1), Custom([np.exp])
    assert set((a * b).names(names)) == set((b * a).names(names))
    assert set((a * (b + c)).names(names)) == set((a * b + a * c).names(names))
    assert set((Polynomials(1) * Polynomials(1)).names(names)) == set(Polynomials(2).names(names))


def test_product_has_the_values_of_the_product():
    X = RNG.normal(size=(6, 2))
    a, b = Polynomials(2), Fourier(2)
    outer = np.einsum("ri,rj->rij", a.evaluate(X), b.evaluate(X)).reshape(6, -1)
    np.testing.assert_allclose((a * b).evaluate(X), outer, rtol=1e-13, atol=1e-15)


def test_products_may_need_terms_that_nobody_asked_for():
    X = RNG.normal(size=(5, 2))
    terms = [Term.monomial([0] * 5 + [1] * 2), Term.monomial([1]), Term()]
    expected = np.column_stack([X[:, 0] ** 5 * X[:, 1] ** 2, X[:, 1], np.ones(5)])
    np.testing.assert_allclose(CompiledTerms(terms, 2).values(X.T).T, expected, rtol=1e-13)


def test_terms_tell_their_structure():
    term = (Term.monomial([0, 0]) * Fourier(1).terms(2)[2]) * Term.monomial([1])
    assert term.arguments == [0, 1]
    assert term.degree == 4
    assert term.name(["x", "y"]) == "x^2 y sin(y)"
    assert term.latex(["x0", "wind"]) == r"x_{0}^{2}\, \mathrm{wind}\, \sin\left(\mathrm{wind}\right)"


def test_leibniz_rule_on_products_of_terms():
    a, b = Term.monomial([0, 0, 1]), Fourier(2).terms(2)[5]
    X = RNG.normal(size=(4, 2))

    def values(pairs):
        return sum(factor * CompiledTerms([term], 2).values(X.T)[0] for factor, term in pairs)

    for state in range(2):
        left = values((a * b).derivative(state))
        right = values([(f, t * b) for f, t in a.derivative(state)] + [(f, a * t) for f, t in b.derivative(state)])
        np.testing.assert_allclose(left, right, rtol=1e-13)


def test_symbolic_functions_say_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match=r"ardea\[symbolic\]"):
        Fourier(1).vocabulary(["x"]).sympy(0)


def test_symbolic_functions():
    sympy = pytest.importorskip("sympy")
    x, y, t = sympy.symbols("x y t")
    waves = Fourier(2).vocabulary(["x"])
    assert [waves.sympy(j) for j in (2, 3)] == [sympy.sin(2 * x), sympy.cos(2 * x)]
    assert Custom([np.exp]).vocabulary(["x"]).sympy(0) == sympy.exp(x)
    assert Custom([np.hypot]).vocabulary(["x", "y"]).sympy(0) == sympy.Function("hypot")(x, y)
    assert Polynomials(3).vocabulary(["x", "y"]).sympy(7) == x**2 * y
    u = sympy.Function("u")(x, t)
    assert FieldTerms(1, 1).vocabulary().sympy(3) == u * sympy.Derivative(u, x)


def test_code_of_terms_has_their_values(library):
    """What stands in the code is what the library computes; states bear names that Python reads, whatever they are."""
    X = RNG.normal(size=(5, 3))
    values = library.evaluate(X)
    for names, known in ((["x", "y", "np"], ["x0", "x1", "x2"]), (["a", "b", "c"], ["a", "b", "c"])):
        words = library.vocabulary(names)
        scope = {"np": np, **dict(zip(known, X.T, strict=True))}
        for j in range(len(words.names)):
            try:
                code = words.python(j)
            except ValueError:
                continue  # a function without a name
            np.testing.assert_allclose(np.broadcast_to(eval(code, scope), 5), values[:, j], rtol=1e-13)


def test_code_of_field_terms_takes_derivatives_as_variables():
    words = FieldTerms(2, 2).vocabulary(["u", "v"], ["x", "y"])
    assert words.python(words.names.index("v^2 u_xy")) == "v**2 * u_xy"
    assert words.python(words.constant) == "1.0"


def test_the_constant_is_known_by_its_structure():
    assert Polynomials(2).vocabulary(["1", "y"]).constant == 0
    assert Polynomials(2, include_constant=False).vocabulary(["1", "y"]).constant is None
    assert FieldTerms(1, 1).vocabulary().constant == 0
    assert (Fourier(1) + Polynomials(1)).vocabulary(["x"]).constant == 2


# Fields


def test_field_terms_are_the_papers_25():
    """Eq. KS_features: powers with the factor 1 first, then with u_x, …; no term twice."""
    names = FieldTerms().names()
    assert len(set(names)) == len(names) == FieldTerms().n_terms() == 25
    assert names[:7] == ["1", "u", "u^2", "u^3", "u^4", "u_x", "u u_x"]
    assert names[-1] == "u^4 u_xxxx"
    for (p, q), name in zip([(p, q) for q in range(5) for p in range(5)], names, strict=True):
        factors = [["", "u", "u^2", "u^3", "u^4"][p], "u_" + "x" * q if q else ""]
        assert name == (" ".join(filter(None, factors)) or "1")


@pytest.mark.parametrize(("n_fields", "n_axes"), [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_number_of_field_terms(n_fields, n_axes):
    """C(n + P, P) monomials times 1 + n·(C(a + Q, Q) − 1) derivatives."""
    library = FieldTerms(2, 3)
    names = library.names(default_field_names(n_fields), default_axis_names(n_axes))
    expected = comb(n_fields + 2, 2) * (1 + n_fields * (comb(n_axes + 3, 3) - 1))
    assert len(set(names)) == len(names) == expected == library.n_terms(n_fields, n_axes)


def test_names_of_several_fields_and_axes():
    names = FieldTerms(2, 2).names(["u", "v"], ["x", "y"])
    assert {"1", "u v", "u v_xx", "v^2 u_xy", "v_y"} <= set(names)
    words = FieldTerms(1, 1).vocabulary(["u1"])
    assert [words.latex(j) for j in range(4)] == ["1", "u_{1}", "{u_{1}}_{x}", "u_{1} {u_{1}}_{x}"]
    assert FieldTerms(2, 2).vocabulary().latex(8) == "u^{2} u_{xx}"


def test_values_of_field_terms():
    u, v = RNG.normal(size=(2, 4, 5, 3))
    table = {}

    def derivative(index, orders):
        assert (index, orders) not in table  # each is asked for once
        return table.setdefault((index, orders), RNG.normal(size=u.shape))

    library = FieldTerms(2, 2)
    values = library.evaluate([u, v], derivative, n_axes=2)
    assert values.shape == (u.size, library.n_terms(2, 2))
    for column, term in zip(values.T, library.terms(2, 2), strict=True):
        jets = [((u, v)[jet.field] if not any(jet.orders) else table[jet[:2]], power) for jet, power in term.factors]
        np.testing.assert_allclose(
            column, np.prod([values**power for values, power in jets], axis=0).ravel() * np.ones(u.size)
        )


def test_chosen_field_terms_ask_only_for_their_derivatives():
    u = RNG.normal(size=(4, 6))
    asked = []

    def derivative(index, orders):
        asked.append(orders)
        return 2 * u

    names = FieldTerms().names()
    chosen = [names.index("u^3 u_xx"), names.index("u")]
    values = FieldTerms().evaluate([u], derivative, terms=chosen)
    assert asked == [(2,)]
    np.testing.assert_allclose(values, np.column_stack([(2 * u**4).ravel(), u.ravel()]))


def test_terms_that_inputs_make_alike_are_told_once():
    """With u of 0 and 1, u² is u; of 2 and 5, 7u − 10; of one value, the constant; with a third, none."""
    library, names, states = Polynomials(2), ["x", "u"], np.linspace(-1, 1.5, 30)[:, None]
    for values, left in [
        ([0, 1], ["1", "x", "u", "x^2", "x u"]),
        ([2, 5], ["1", "x", "u", "x^2", "x u"]),
        ([2, 2], ["1", "x", "x^2"]),
        ([0, 1, 3], None),
    ]:
        inputs = np.array(values, dtype=float)[:, None]
        expected = library.names(names) if left is None else left
        assert [library.names(names)[j] for j in distinct(library, states, inputs)] == expected
    assert distinct(library, states, np.empty((30, 0))) == list(range(library.n_terms(1)))
    friction, levels = Polynomials(1) + Custom([np.sign], names=["sign({})"]), np.array([[0.5], [1.0], [2.0]])
    assert [friction.names(names)[j] for j in distinct(friction, states, levels)] == ["1", "x", "u", "sign(x)"]
    assert [friction.names(names)[j] for j in distinct(friction, np.abs(states), levels)] == ["1", "x", "u"]


# Bad input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Polynomials(-1), ValueError, "degree == -1, must be >= 0"),
        (lambda: Polynomials(2.5), TypeError, "degree must be an instance of int"),
        (lambda: Fourier(0), ValueError, "n == 0, must be >= 1"),
        (lambda: FieldTerms(powers=-1), ValueError, "powers"),
        (lambda: Polynomials(2).evaluate(np.ones(3)), ValueError, "reshape"),
        (lambda: Polynomials(2).names("xy"), TypeError, "list of strings"),
        (lambda: Polynomials(2).names(["x", "x"]), ValueError, "differ"),
        (lambda: Polynomials(2).evaluate(np.ones((2, 2)), terms=[1, 1]), ValueError, "twice"),
        (lambda: Custom([np.exp], ["a", "b"]), ValueError, "one name"),
        (lambda: Custom([lambda: 1.0]), ValueError, "at least one"),
        (lambda: Custom([lambda x: x[:2]]).evaluate(np.ones((3, 1))), ValueError, "one value per row"),
        (lambda: default_axis_names(4), ValueError, "at most 3"),
        (lambda: Polynomials(2) + 1, TypeError, "unsupported"),
        (lambda: Polynomials(2) * 2, TypeError, "unsupported"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_monomials_come_from_their_states():
    for states in combinations_with_replacement(range(3), 4):
        assert Term.monomial(states).degree == 4
        assert Term.monomial(states).arguments == sorted(set(states))


def test_terms_that_are_curved_are_those_with_a_second_derivative():
    """Against second differences of all terms by all states."""
    library, x, step = Polynomials(3) + Fourier(1) + Custom([np.exp], ["exp({})"]), np.array([0.3, -0.7, 1.1]), 1e-3
    places = {state: own for state, own, _ in curved(library, 3, None)}
    for state in range(3):
        shift = step * np.eye(3)[state]
        second = library.evaluate(np.array([x + shift, x, x - shift])).T @ [1.0, -2.0, 1.0]
        np.testing.assert_array_equal(np.flatnonzero(np.abs(second) > 1e-12), places[state])
    (state, own, terms), *_ = curved(library, 3, (1, 4, 5, 7))
    assert (state, own.tolist()) == (0, [1])
    np.testing.assert_allclose(terms.values(x[:, None]), [[x[0] ** 2]])


def test_products_of_names_of_several_words_can_be_told_apart():
    """`air temp wind speed` could be one, two, three or four states."""
    names = Polynomials(2).names(["air temp", "wind speed", "h"])
    assert names[4:] == [
        "(air temp)^2",
        "air temp · wind speed",
        "air temp · h",
        "(wind speed)^2",
        "wind speed · h",
        "h^2",
    ]
    words = ["a", "b c", "a b", "c"]
    every = Polynomials(3).names(words)
    assert len(set(every)) == len(every)


def test_templates_may_name_their_only_state_several_times():
    names = Custom([lambda x: x * np.log(x), np.exp], ["{} log {}", "exp({0})"]).names(["a", "b"])
    assert list(names) == ["a log a", "b log b", "exp(a)", "exp(b)"]
