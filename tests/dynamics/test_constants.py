"""Terms with unknown constants inside: their derivatives, that a search finds them, and that nothing else changes."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import ardea
from ardea.core.problem import DenseColumns, Problem
from ardea.core.subsets import backward_path, model, neighbours, select
from ardea.dynamics import (
    AmbiguityWarning,
    CommonTerms,
    Decay,
    Discovery,
    KnowledgeWarning,
    Oscillation,
    Parametric,
    Polynomials,
    Power,
    Rational,
    Saturation,
)
from ardea.dynamics.collocation import Point, nodes_of
from ardea.dynamics.differences import NumericalPartial
from ardea.dynamics.formulas import WithConstants
from ardea.dynamics.inside import unfolded
from ardea.dynamics.series import Series
from ardea.dynamics.states import smoothed
from ardea.dynamics.trajectory import Likelihood

FAMILIES = [Saturation(powers=(1, 2, 3)), Rational(), Decay(), Oscillation(), Power()]
T = np.linspace(0, 8, 120)


def solved(flow, start, t=T):
    return solve_ivp(lambda _, x: flow(x), (t[0], t[-1]), start, t_eval=t, rtol=1e-10, atol=1e-12).y.T


def enzyme(noise, seed, starts=(5.0, 1.0)):
    """Return noisy decays S′ = −1.5 S/(0.7 + S)."""
    generator = np.random.default_rng(seed)
    clean = [solved(lambda x: -1.5 * x / (0.7 + x), [start]) for start in starts]
    return [x + noise * generator.normal(size=x.shape) for x in clean], [T] * len(clean)


@cache
def found():
    return Discovery(Polynomials(2) + Saturation()).fit(*enzyme(0.03, 0), feature_names=["S"])


# Formulas


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: type(one).__name__)
def test_derivatives_by_states_and_constants_are_those_of_differences(family):
    rng = np.random.default_rng(0)
    for term in family.terms(2):
        factor = term.factors[0][0]
        n = len(factor.arguments) + len(factor.letters)
        columns = [rng.uniform(0.3, 2.0, 20) for _ in range(n)]
        for argument in range(n):
            slope = np.broadcast_to(factor.formula.partial_derivative(argument)(*columns), 20)
            numerical = NumericalPartial(lambda *x, f=factor.formula: np.real(f(*map(np.real, x))), argument)(*columns)
            np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: type(one).__name__)
def test_python_and_sympy_say_what_the_values_are(family):
    sympy = pytest.importorskip("sympy")
    x = np.array([[0.7], [1.3]])
    for term in family.terms(2):
        held = term.with_constants(term.letters, [0.4 + 0.3 * i for i in range(len(term.letters))])
        value = float(np.ravel(held.factors[0][0].values(x))[0])
        assert eval(held.python(["x", "y"]), {"np": np, "x": 0.7, "y": 1.3}) == pytest.approx(value, rel=1e-12)
        symbolic = held.sympy(["x", "y"]).subs({sympy.Symbol("x"): 0.7, sympy.Symbol("y"): 1.3})
        assert float(symbolic) == pytest.approx(value, rel=1e-9)


def test_a_function_of_ones_own_is_named_by_its_template():
    library = Parametric(lambda x, y, a, b: x * np.exp(-a * y) + b, "{0} exp(-a {1}) + b", a=(0.1, 1), b=(-1, 1))
    assert library.names(["u", "v"]) == ["u exp(-a v) + b", "v exp(-a u) + b"]
    assert Parametric(lambda x, K: x / (K + x), "{}/(K + {})", K=(0.1, 1)).names(["u"]) == ["u/(K + u)"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parametric(lambda K, x: x / K, "{}/K", K=(1, 2)), "States come first"),
        (lambda: Parametric(lambda x, K: x / K, "{}/K", L=(1, 2)), "States come first"),
        (lambda: Parametric(lambda K: K, "K", K=(1, 2)), "takes no state"),
        (lambda: Parametric(lambda x, K: x / K, "{}/K", K=(2, 1)), "least and the greatest"),
        (lambda: Parametric(lambda x, K: x / K, "{}/K", derivatives=[np.sin], K=(1, 2)), "one derivative for each"),
        (lambda: Saturation(K=(1, 1)), "least and the greatest"),
        (lambda: Saturation().names(["K"]), "rename the state"),
        (lambda: Discovery(Saturation(), form="weak").fit(*enzyme(0.0, 0)), "is for the trajectory form"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_derivatives_are_refused():
    wrong = Parametric(
        lambda x, K: x / (K + x), "{}/(K + {})", derivatives=[lambda x, K: K / (K + x), lambda x, K: x], K=(0.1, 10)
    )
    with pytest.raises(ValueError, match="not that of the function"):
        Discovery(wrong).fit(*enzyme(0.03, 0))


# Columns that go with others


def tied():
    """Return a problem in which column 2 goes with column 1."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, 5))
    z = A[:, 1] + 0.5 * A[:, 2] - A[:, 3] + 0.1 * rng.normal(size=40)
    return Problem(DenseColumns(A), z, 0.0, 40.0, owners=np.array([0, 1, 1, 3, 4]))


def test_a_column_is_in_a_model_with_its_owner_alone():
    problem = tied()
    assert model(problem, [1, 3]).support == (1, 2, 3)
    assert model(problem, [2, 3]).support == (3,)
    best = select(problem, [(0, 1, 2, 3, 4)])[0]
    assert best.support == (1, 2, 3)
    near = [one.support for one in neighbours(problem, best)]
    assert all((1 in support) == (2 in support) for support in near)
    assert (3,) in near
    path = backward_path(problem, range(5))
    for one in path:
        assert (1 in one.support) == (2 in one.support)
        assert one.rss == pytest.approx(model(problem, one.support).rss)


# The likelihood


def likelihood():
    """Return the likelihood of a noisy enzyme, a point, and the support of its free term and tangent."""
    (x, *_), _ = enzyme(0.03, 0)
    nodes = nodes_of([Series(T, x, np.empty((len(T), 0)))])
    states = smoothed(nodes)
    of = Likelihood(nodes, unfolded(Saturation(powers=(1,)), states, [0])[0])
    inside = of.inside
    (free, *rest) = sorted(j for j in range(of.d) if j >= inside.n_open)[:2]
    coefficients = np.zeros((1, of.d))
    coefficients[0, [free, *rest]] = -1.4, 0.6
    return of, Point(states, coefficients, np.array([0.03]), np.array([0.01])), (free, *rest)


def test_the_border_of_a_constant_is_the_derivative_of_the_steps():
    of, point, (free, tangent) = likelihood()
    border = of.steps(point).border(np.zeros(1, dtype=int), np.array([tangent])).rows()[:, :, 0]
    step = 1e-5
    residuals = []
    for sign in (1, -1):
        moved = point.coefficients.copy()
        moved[0, tangent] += sign * step
        residuals.append(of.steps(Point(point.states, moved, point.noise, point.process)).residual)
    numerical = (residuals[0] - residuals[1]) / (2 * step)
    np.testing.assert_allclose(point.coefficients[0, free] * border, numerical, rtol=1e-6, atol=1e-9)


def test_a_descent_moves_a_constant_to_its_least_squares_value_from_anywhere():
    of, point, support = likelihood()
    ends = []
    for start in (0.2, 0.6, 3.0):
        coefficients = point.coefficients.copy()
        coefficients[0, support[1]] = start
        at, _ = of.descended(Point(point.states, coefficients, point.noise, point.process), support)
        ends.append(at.coefficients[0, support[1]])
    assert np.ptp(ends) < 0.01


# Searches


def test_an_enzyme_is_found_with_its_constant():
    model = found()
    (equation,) = model.equations_
    assert equation.terms == ("S/(K + S)",)
    constant = equation.constants["K"]
    assert abs(constant.value - 0.7) < 3 * constant.std
    assert constant.interval[1] - constant.interval[0] == pytest.approx(3.92 * constant.std, rel=0.02)
    assert "S/(K + S), K = " in equation.with_intervals()
    assert "\\frac{S}{K + S}" in model.latex()
    assert model.coef_.shape == (1, len(model.get_feature_names()))


def test_a_constant_is_as_uncertain_as_its_likelihood_says():
    """Over draws of the noise, K̂ spreads as its standard deviation says (χ² of 6 draws, 1 in 1000 on either side)."""
    z = []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AmbiguityWarning)
            model = Discovery(Saturation(powers=(1,))).fit(*enzyme(0.03, 100 + seed), feature_names=["S"])
        (equation,) = model.equations_
        if equation.terms == ("S/(K + S)",):
            z.append((equation.constants["K"].value - 0.7) / equation.constants["K"].std)
    assert len(z) == 6
    assert 0.38 < np.sum(np.square(z)) < 22.5


def test_the_model_runs_with_its_constant():
    model, K = found(), found().equations_[0].constants["K"].value
    c = float(model.equations_[0].coefficients[0])
    np.testing.assert_allclose(model.predict([[0.3], [2.0]])[:, 0], [c * 0.3 / (K + 0.3), c * 2 / (K + 2)])
    exact = solved(lambda x: c * x / (K + x), [4.0])
    np.testing.assert_allclose(model.simulate([4.0], T), exact, rtol=1e-6, atol=1e-8)
    source: dict[str, object] = {}
    exec(model.equations_[0].python(), source)
    assert source["predict"](0.3) == pytest.approx(c * 0.3 / (K + 0.3))  # type: ignore[operator]


def test_draws_have_constants_of_their_own():
    """The spread of slopes over draws is that of cx/(K + x) to first order in c and K."""
    model, at = found(), 0.5
    (equation,) = model.equations_
    c, K = float(equation.coefficients[0]), equation.constants["K"].value
    slope = np.array([at / (K + at), -c * at / (K + at) ** 2])
    expected = np.sqrt(slope @ equation.parameters.covariance @ slope)
    short = np.array([0.0, 1e-3])
    drawn = model.simulate([at], short, n_samples=1000, random_state=0).samples[:, 1, 0]
    assert drawn.std() / short[1] == pytest.approx(expected, rel=0.1)


def test_a_stored_model_is_the_same(tmp_path):
    model = found()
    ardea.save(model, tmp_path / "model")
    again = ardea.load(tmp_path / "model")
    assert again.equations_[0].constants == model.equations_[0].constants
    assert again.equations() == model.equations()
    np.testing.assert_array_equal(again.predict([[0.3]]), model.predict([[0.3]]))
    np.testing.assert_array_equal(
        again.simulate([4.0], T, n_samples=3, random_state=0).samples,
        model.simulate([4.0], T, n_samples=3, random_state=0).samples,
    )


def test_a_constant_at_the_limit_of_its_range_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery(Saturation(powers=(1,), K=(1.0, 8.0))).fit(*enzyme(0.03, 0), feature_names=["S"])
    assert any("the limit of its range" in one for one in model.warnings_)


def test_units_of_states_change_units_of_constants_alone():
    x, t = enzyme(0.03, 0)
    model = Discovery(Polynomials(2) + Saturation()).fit([1000 * one for one in x], t, feature_names=["S"])
    assert model.equations_[0].terms == found().equations_[0].terms
    given, first = model.equations_[0].constants["K"], found().equations_[0].constants["K"]
    assert given.value == pytest.approx(1000 * first.value, rel=1e-3)
    assert given.std == pytest.approx(1000 * first.std, rel=1e-2)


def test_a_function_of_ones_own_finds_what_the_family_finds():
    library = Polynomials(2) + Parametric(lambda S, K: S / (K + S), "{}/(K + {})", K=(0.1, 10))
    model = Discovery(library).fit(*enzyme(0.03, 0), feature_names=["S"])
    assert model.equations_[0].terms == ("S/(K + S)",)
    given, first = model.equations_[0].constants["K"], found().equations_[0].constants["K"]
    assert given.value == pytest.approx(first.value, rel=1e-3)


def test_letters_that_repeat_are_numbered():
    words = Saturation(powers=(1,)).vocabulary(["x", "y"])
    both = [q for q, (j, _) in enumerate(words.constants) if words.names[j] in ("x/(K + x)", "y/(K + y)")]
    written = words.with_constants({q: (f"K{i + 1}", 0.5) for i, q in enumerate(both)})
    assert set(written.names) - set(words.names) == {"x/(K1 + x)", "y/(K2 + y)"}


def test_products_with_other_libraries_have_constants_too():
    library = Polynomials(1, include_constant=False) * Decay()
    assert library.names(["x"]) == ["x · exp(-k x)"]
    x = solved(lambda x: x * np.exp(-0.8 * x) - 0.3 * x, [0.1], np.linspace(0, 12, 120))
    y = x + 0.003 * np.random.default_rng(0).normal(size=x.shape)
    other = solved(lambda x: x * np.exp(-0.8 * x) - 0.3 * x, [4.0], np.linspace(0, 12, 120))
    z = other + 0.003 * np.random.default_rng(1).normal(size=x.shape)
    model = Discovery(Polynomials(2) + library).fit([y, z], [np.linspace(0, 12, 120)] * 2, feature_names=["x"])
    assert model.equations_[0].terms == ("x", "x · exp(-k x)")
    low, high = model.equations_[0].constants["k"].interval
    assert low < 0.8 < high


def test_factors_are_equal_where_formula_states_and_constants_are():
    (first, *_), (again, *_) = Saturation().terms(1), Saturation().terms(1)
    assert first == again
    assert isinstance(first.factors[0][0], WithConstants)


def test_maps_inputs_and_positions_have_constants_too():
    generator = np.random.default_rng(0)

    def noisy(x):
        return x + 0.01 * x.std() * generator.normal(size=x.shape)

    ricker = [0.3]
    for _ in range(150):
        ricker.append(12 * ricker[-1] * np.exp(-0.9 * ricker[-1]))
    products = Polynomials(1, include_constant=False) * Decay()
    mapped = Discovery(Polynomials(2) + products, discrete_time=True).fit(noisy(np.array(ricker)[:, None]))
    t = np.linspace(0, 20, 300)
    fed = solve_ivp(lambda s, x: 1.2 + np.sin(s) - 2 * x / (0.6 + x), (0, 20), [1.0], t_eval=t, rtol=1e-9).y.T
    u = (1.2 + np.sin(t))[:, None]
    driven = Discovery(Polynomials(2) + Saturation(powers=(1,))).fit(noisy(fed), t, u=u, feature_names=["x", "u"])
    swing = solved(lambda x: np.array([x[1], -1.3 * np.sin(1.7 * x[0]) - 0.1 * x[1]]), [1.5, 0.0], t)[:, :1]
    swung = Discovery(Polynomials(3) + Oscillation(), derivative_order=2).fit(noisy(swing), t, feature_names=["x"])
    for one, terms, letter, truth in (
        (mapped, {"x0 · exp(-k x0)"}, "k", 0.9),
        (driven, {"u", "x/(K + x)"}, "K", 0.6),
        (swung, {"x'", "sin(w x)"}, "w", 1.7),
    ):
        (equation,) = one.equations_
        assert set(equation.terms) == terms
        assert abs(equation.constants[letter].value - truth) < 3.5 * equation.constants[letter].std
    np.testing.assert_allclose(driven.simulate([1.0], t, u=u), fed, atol=0.05)


# Rivals, and the library for when little is known


def test_the_same_curve_in_other_words_is_no_rival():
    """c + a S/(K + S) is (c + a) − aK/(K + S): one model, of which one way to write it is told."""
    generator = np.random.default_rng(0)
    clean = [solved(lambda x: 0.3 - 1.5 * x / (0.7 + x), [start]) for start in (5.0, 0.02)]
    runs = [x + 0.01 * generator.normal(size=x.shape) for x in clean]
    model = Discovery(Polynomials(1) + Saturation(powers=(1,))).fit(runs, [T, T], feature_names=["S"])
    ways = [{"1", "S/(K + S)"}, {"1", "1/(K + S)"}]
    assert set(model.equations_[0].terms) in ways
    assert not any(set(rival.terms) in ways for rival in model.equations_[0].rivals)


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_common_terms_are_independent_of_each_other(n_states):
    """None is a combination of others, as sin(x) cos(x) of sin(2 x): its coefficient would be anything."""
    library = CommonTerms()
    plain = [j for j, term in enumerate(library.listed(n_states)) if not term.letters]
    columns = library.evaluate(np.random.default_rng(0).uniform(-4.0, 6.0, (4000, n_states)), plain)
    values = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False)
    assert values[-1] > 1e-9 * values[0]
    assert Polynomials(3).n_terms(n_states) < len(plain) < library.n_terms(n_states)


# What is known beforehand

REACTION = "S/(K + S)"


def reaction(seed):
    """Return two runs of S' = −1.5 S/(0.7 + S), P' = −S′, with noise."""
    generator = np.random.default_rng(seed)
    runs = [S[::2] for S in enzyme(0.0, 0)[0]]
    noisy = [np.hstack([S, S[0] - S]) + 0.05 * generator.normal(size=(len(S), 2)) for S in runs]
    return noisy, [T[::2]] * 2


def discovered(seed=0, **told):
    library = Polynomials(1) + Parametric(lambda x, K: x / (K + x), "{}/(K + {})", K=(0.05, 20))
    return Discovery(library, **told).fit(*reaction(seed), feature_names=["S", "P"])


@pytest.fixture(scope="module")
def conserved():
    return discovered(constraints=["S: * + P: * = 0"])


def test_a_law_ties_terms_with_constants_and_these_exactly(conserved):
    first, second = conserved.equations_
    assert [one.terms for one in conserved.equations_] == [(REACTION,), (REACTION,)]
    assert first.coefficients[0] == -second.coefficients[0]
    assert first.constants["K"].value == pytest.approx(second.constants["K"].value, rel=1e-12)
    assert first.constants["K"].interval[0] < 0.7 < first.constants["K"].interval[1]
    later = np.linspace(0, 30, 61)
    assert np.ptp(conserved.simulate([5.0, 0.0], later).sum(axis=1)) < 1e-12
    bands = conserved.simulate([5.0, 0.0], later, n_samples=20, random_state=0)
    assert np.ptp(bands.samples.sum(axis=2), axis=1).max() < 1e-11


def test_one_constant_in_two_equations_is_one_parameter(conserved):
    one = discovered(constraints=[f"S: K of {REACTION} - P: K of {REACTION} = 0"])
    apart = discovered()
    for each in (one, apart):
        assert [equation.terms for equation in each.equations_] == [(REACTION,), (REACTION,)]
    first, second = (equation.constants["K"] for equation in one.equations_)
    assert first.value == pytest.approx(second.value, rel=1e-12)
    assert first.std == pytest.approx(second.std, rel=1e-12)
    assert conserved.equations_[0].constants["K"].std <= first.std
    assert first.std < min(equation.constants["K"].std for equation in apart.equations_)
    assert apart.equations_[0].constants["K"].value != apart.equations_[1].constants["K"].value


def test_given_coefficients_and_constants_are_exact_and_a_term_can_be_certain():
    told = {"S": {REACTION: -1.5, f"K of {REACTION}": 0.7}, "P": {REACTION: None}}
    model = discovered(known=told)
    first, second = model.equations_
    assert (first.coefficients[0], first.std[0]) == (-1.5, 0.0)
    assert (first.constants["K"].value, first.constants["K"].std) == (0.7, 0.0)
    assert second.terms == (REACTION,)
    assert second.constants["K"].std > 0


def test_a_wrong_constant_is_refuted():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        discovered(known={"S": {f"K of {REACTION}": 3.0, REACTION: None}})
    assert any(issubclass(one.category, KnowledgeWarning) and "refute known" in str(one.message) for one in said)


@pytest.mark.filterwarnings("ignore::ardea.dynamics.AmbiguityWarning", "ignore::ardea.dynamics.MisfitWarning")
def test_equations_have_families_of_their_own():
    plain, family = Polynomials(1), Parametric(lambda x, K: x / (K + x), "{}/(K + {})", K=(0.05, 20))
    model = Discovery(library={"S": plain + family, "P": plain}).fit(*reaction(0), feature_names=["S", "P"])
    assert model.equations_[0].terms == (REACTION,)
    assert set(model.equations_[1].terms) <= {"1", "S", "P"}


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"constraints": [f"S: {REACTION} + P: S = 0"]}, "ties the coefficient of a term with an unknown constant"),
        ({"constraints": [f"S: {REACTION} + P: K of {REACTION} = 0"]}, "about coefficients or about constants"),
        ({"constraints": [f"S: K of {REACTION} > 0"]}, "about coefficients or about constants"),
        ({"constraints": ["S: K of P = 1"]}, "there is no term 'K of P'"),
        ({"known": {"S": {f"K of {REACTION}": None}}}, "is estimated unless you give its value"),
    ],
)
def test_laws_that_constants_cannot_obey_are_refused(told, match):
    with pytest.raises(ValueError, match=match):
        discovered(**told)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e5])
def test_functions_of_ones_own_do_not_depend_on_units(scale):
    """The same samples in other units have the same equation: steps of differences have the size of the values."""
    x, t = enzyme(0.03, 0)
    library = Parametric(lambda x, K: x / (K + x), "{0}/(K + {0})", K=(0.05 * scale, 20 * scale))
    model = Discovery(Polynomials(1) + library).fit([scale * one for one in x], t, feature_names=["S"])
    (equation,) = model.equations_
    assert equation.terms == ("S/(K + S)",)
    assert equation.constants["K"].value == pytest.approx(scale * found().equations_[0].constants["K"].value, rel=1e-3)


def test_rivals_with_constants_can_be_told_apart_by_an_experiment():
    """Where S is small next to K, the law is a straight line; a start far above K tells."""
    t, rng = np.linspace(0, 8, 40), np.random.default_rng(1000)
    x = solve_ivp(lambda _, s: -1.5 * s / (6 + s), (0, 8), [3.0], t_eval=t, rtol=1e-10).y.T
    x = x + 0.05 * x.std() * rng.normal(size=x.shape)
    with pytest.warns(UserWarning, match="hardly tell"):
        model = Discovery(Polynomials(2) + Saturation(powers=(1,))).fit(x, t, feature_names=["S"])
    proposed = model.distinguish(n=2, bounds={"S": (0.0, 60.0)}, random_state=0)
    law = proposed.rivals.index("(S)': S/(K + S)")
    assert proposed.starts.min() > 30
    assert proposed.differences[:, law].min() > 100
    assert proposed.differences.min() > 10  # of another straight line, too


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x, K: x / (K + x), "{0}/({1} + {0})"),
        (lambda x, K: x / (K + x), "{}/({1} + {0})"),
        (lambda x, K: x / (K + x), "saturation"),
        (lambda x, y, K: x * y / (K + x), "{} {}/(K + {})"),
        (lambda x, y, K: x * y / (K + x), "{0}/(K + {0})"),
    ],
)
def test_names_that_do_not_say_where_states_stand_are_refused_when_they_are_given(function, name):
    with pytest.raises(ValueError, match="must say where the function"):
        Parametric(function, name, K=(0.1, 10))


def test_functions_of_numpy_are_those_of_sympy():
    sympy = pytest.importorskip("sympy")
    rate = Parametric(lambda c, T, E: c * np.exp(-E / T) + np.abs(c), "{0} exp(-E/{1})", E=(0.4, 12))
    c, T = sympy.symbols("c T", real=True)
    (made,) = [one.sympy(["c", "T"]) for one in rate.terms(2)[:1]]
    plain = made.subs({symbol: {"c": c, "T": T}[symbol.name] for symbol in made.free_symbols})
    value = float(plain.subs({c: -2.0, T: 3.0}))
    held = rate.terms(2)[0].factors[0][0].held[0]
    np.testing.assert_allclose(value, -2.0 * np.exp(-held / 3.0) + 2.0)


def test_a_library_that_cannot_be_saved_is_told_as_one(tmp_path):
    model = Discovery(Polynomials(1) + Parametric(lambda x, K: x / (K + x), "{}/(K + {})", K=(0.05, 20)))
    x, t = enzyme(0.03, 0)
    with pytest.raises(ardea.saving.ModelFileError, match="Use a library of ardea"):
        ardea.save(model.fit(x, t, feature_names=["S"]), tmp_path / "model.ardea")
