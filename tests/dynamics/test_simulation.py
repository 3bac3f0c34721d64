"""Simulation of found equations: closed forms, convergence, conservation, guards, maps, inputs, fields, draws."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from ardea.dynamics import Custom, Discovery, FieldTerms, Fourier, Polynomials, field_simulation, simulation, systems
from ardea.dynamics.right_hand_side import RightHandSide
from ardea.dynamics.simulation import Bands, SimulationWarning

ODES_AND_MAPS = {**systems.ALL_ODES, **systems.ALL_MAPS}


def settings_for(x0, settings):
    """Return a limit of 10⁶ times the start, and an absolute tolerance of rtol/100 times the start, unless given."""
    size = np.max(np.abs(x0)) or 1.0
    rtol = settings.get("rtol", simulation.TOLERANCE)
    return {"limit": 1e6 * max(1.0, size), "atol": 0.01 * rtol * size, **settings}


def simulate_states(rhs, x0, t, **settings):
    return simulation.simulate_states(rhs, x0, t, **settings_for(x0, settings))


def simulate_draws(rhs, x0, t, **settings):
    return simulation.simulate_draws(rhs, x0, t, **settings_for(x0, settings))[0]


def simulate_field(library, coefficients, u0, x, t, **settings):
    limit = settings_for(u0, settings)["limit"]
    start, x = np.asarray(u0, dtype=float)[None], np.asarray(x)
    periods = field_simulation.checked_periods((x,), start, ["x"])
    equation = field_simulation.SpectralEquation(library.terms(), coefficients, x.shape, periods)
    return field_simulation.simulate_fields(equation, start, t, **{**settings, "limit": limit})[:, 0].T


def right_hand_side(library, names, *equations, n_inputs=0):
    """Build from the names of terms, as in {"x": -1.0, "x y": 2.0}."""
    terms = library.names(names)
    assert all(term in terms for equation in equations for term in equation)
    coefficients = [[equation.get(term, 0.0) for term in terms] for equation in equations]
    return RightHandSide(library, coefficients, len(names) - n_inputs, n_inputs)


def of_system(system):
    return RightHandSide(system.library, system.true_coefficients(), len(system.feature_names))


def linear(matrix):
    """x' = Ax."""
    return RightHandSide(Polynomials(1, include_constant=False), matrix, len(matrix))


def square():
    """x' = x², so x = x0/(1 − x0 t)."""
    return right_hand_side(Polynomials(2), ["x"], {"x^2": 1.0})


def relative(error, size):
    return np.max(np.abs(error)) / np.max(np.abs(size))


# The right-hand side


@pytest.mark.parametrize("name", ODES_AND_MAPS)
def test_right_hand_side_is_the_flow(name):
    """Against the hand-written flow: many rows, one row, one row without checks."""
    system = ODES_AND_MAPS[name]()
    rhs, x = of_system(system), np.random.default_rng(0).normal(size=(7, len(system.feature_names)))
    expected = system.exact_derivative(x)
    np.testing.assert_allclose(rhs(x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rhs(x[:1]), expected[:1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([rhs.row(row) for row in x], expected, rtol=1e-12, atol=1e-12)


def test_right_hand_side_is_theta_times_xi():
    """A dense ξ over sums and products of all kinds of terms; terms with the same name count once."""
    library = Polynomials(4) + Polynomials(1) * Fourier(2) + Custom([np.tanh, lambda x, y: x * np.exp(y)])
    xi = np.random.default_rng(1).normal(size=(2, library.n_terms(3)))
    z = np.random.default_rng(2).normal(size=(6, 3))
    rhs = RightHandSide(library, xi, n_states=2, n_inputs=1)
    np.testing.assert_allclose(rhs(z[:, :2], z[:, 2]), library.evaluate(z) @ xi.T, rtol=1e-11)
    np.testing.assert_allclose(rhs.row(z[0, :2], z[0, 2:]), library.evaluate(z[:1])[0] @ xi.T, rtol=1e-11)


def test_many_terms_take_the_other_way_to_the_same_row():
    """A dense ξ is evaluated by NumPy, a sparse one in Python numbers; both are Θξ."""
    library = Polynomials(4)
    xi = np.random.default_rng(3).normal(size=(3, library.n_terms(3)))
    sparse = np.where(np.arange(xi.shape[1]) % 9 == 0, xi, 0.0)
    x = np.random.default_rng(4).normal(size=3)
    for coefficients in (xi, sparse):
        row = RightHandSide(library, coefficients, 3).row(x)
        np.testing.assert_allclose(row, coefficients @ library.evaluate(x[None])[0], rtol=1e-12)


def test_draws_have_rows_of_their_own():
    """Row i belongs to draw i, whatever other draws are there."""
    library = Polynomials(2) + Fourier(1)
    draws = np.random.default_rng(3).normal(size=(5, 2, library.n_terms(3)))
    draws[:, :, ::2] = 0.0
    x, u = np.random.default_rng(4).normal(size=(5, 2)), np.array([0.7])
    rhs = RightHandSide(library, draws, n_states=2, n_inputs=1)
    alone = [RightHandSide(library, xi, 2, 1).row(row, u) for xi, row in zip(draws, x, strict=True)]
    np.testing.assert_allclose(rhs.stacked(x, u), alone, rtol=1e-12)
    np.testing.assert_allclose(
        rhs.of_draws(np.array([3, 1])).stacked(x[[3, 1]], u), np.array(alone)[[3, 1]], rtol=1e-12
    )


def test_unused_terms_are_never_evaluated():
    def forbidden(x):
        raise AssertionError("evaluated a term whose coefficient is zero")

    library = Polynomials(1) + Custom([forbidden], ["forbidden({})"])
    rhs = right_hand_side(library, ["x"], {"x": 2.0})
    assert rhs.row(np.array([3.0]))[0] == 6.0
    assert rhs([[3.0], [4.0]])[1, 0] == 8.0


def test_no_terms_at_all():
    rhs = RightHandSide(Polynomials(3), np.zeros((2, 10)), 2)
    assert np.array_equal(rhs(np.ones((4, 2))), np.zeros((4, 2)))
    assert np.array_equal(simulate_states(rhs, [1.0, 2.0], [0.0, 5.0, 10.0]), [[1.0, 2.0]] * 3)


# Ordinary differential equations


def test_linear_systems_follow_the_exponential():
    """x(t) = e^{At} x0, whatever the output times."""
    matrix = np.array([[-0.3, 2.0, 0.1], [-2.0, -0.3, 0.0], [0.5, 0.0, -1.0]])
    x0 = np.array([1.0, -1.0, 2.0])
    for t in (np.linspace(0.0, 6.0, 13), np.array([0.0, 0.01, 5.0, 6.0])):
        solution = simulate_states(linear(matrix), x0, t)
        np.testing.assert_allclose(solution, [expm(matrix * s) @ x0 for s in t], atol=1e-7)


def test_error_falls_with_the_tolerance():
    """The logistic equation forgets errors: those of all steps stay below four times that of one, and fall with it."""
    logistic, t = right_hand_side(Polynomials(2), ["x"], {"x": 1.0, "x^2": -1.0}), np.linspace(0, 10, 50)
    exact, tolerances = 1 / (1 + 9 * np.exp(-t)), (1e-5, 1e-7, 1e-9, 1e-11)
    errors = [np.max(np.abs(simulate_states(logistic, [0.1], t, rtol=rtol)[:, 0] - exact)) for rtol in tolerances]
    assert all(error < 4 * rtol for error, rtol in zip(errors, tolerances, strict=True))
    assert all(finer < coarser / 10 for coarser, finer in pairwise(errors))
    assert np.max(np.abs(simulate_states(logistic, [0.1], t)[:, 0] - exact)) < 1e-9


@pytest.mark.parametrize("name", systems.ALL_ODES)
def test_true_coefficients_reproduce_the_system(name):
    """Against the system's own integration (DOP853 at 1e-12); the first 20 rows: chaos amplifies rounding."""
    system = systems.ALL_ODES[name]()
    t = system.t[:20]
    expected = system.simulate(t=t)[1]
    solution = simulate_states(of_system(system), system.x0, t, rtol=1e-11)
    assert relative(solution - expected, expected) < 1e-8


def test_invariant_of_lotka_volterra():
    """x − ln x + (4/3)y − (2/3) ln y is constant along x' = (2/3)x − (4/3)xy, y' = xy − y."""
    system = systems.lotka_volterra()
    x, y = simulate_states(of_system(system), system.x0, np.linspace(0, 100, 300), rtol=1e-10).T
    invariant = x - np.log(x) + 4 / 3 * y - 2 / 3 * np.log(y)
    assert np.ptp(invariant) < 1e-7


def test_energy_of_an_oscillator():
    """x'' = −x³ keeps v²/2 + x⁴/4."""
    rhs = right_hand_side(Polynomials(3), ["x", "v"], {"v": 1.0}, {"x^3": -1.0})
    x, v = simulate_states(rhs, [1.0, 0.0], np.linspace(0, 200, 500), rtol=1e-10).T
    assert np.ptp(v**2 / 2 + x**4 / 4) < 1e-7


def test_output_times_do_not_change_the_solution():
    """The steps are the integrator's own: more output times give the same values."""
    system = systems.lorenz63()
    fine = simulate_states(of_system(system), system.x0, np.linspace(0, 20, 2001))
    coarse = simulate_states(of_system(system), system.x0, np.linspace(0, 20, 21))
    np.testing.assert_allclose(fine[::100], coarse, rtol=1e-12)


def test_solution_between_steps_meets_the_steps():
    """At times close to each other the solution moves by its slope: it is continuous, wherever the steps end."""
    system = systems.rossler()
    ends = np.linspace(0.5, 49.5, 2000)
    t = np.concatenate([[0.0], np.column_stack([ends - 1e-9, ends + 1e-9]).ravel()])
    x = simulate_states(of_system(system), system.x0, t)[1:]
    jumps, slopes = x[1::2] - x[::2], np.abs(system.exact_derivative(x[::2]))
    assert np.all(np.abs(jumps) < 2.1e-9 * slopes + 1e-8)


def test_tolerances_per_state_follow_the_units():
    """A state in units a million times larger, with its tolerance, gives the same solution."""
    system, scale = systems.van_der_pol(), 1e6
    stretched = right_hand_side(
        Polynomials(3), ["x", "v"], {"v": scale}, {"x": -1.0 / scale, "v": 1.5, "x^2 v": -1.5 / scale**2}
    )
    plain = simulate_states(of_system(system), system.x0, system.t, atol=1e-9)
    other = simulate_states(stretched, system.x0 * [scale, 1.0], system.t, atol=[1e-9 * scale, 1e-9])
    np.testing.assert_allclose(other / [scale, 1.0], plain, atol=1e-9)


def stiff_van_der_pol(mu):
    return right_hand_side(Polynomials(3), ["x", "v"], {"v": 1.0}, {"x": -1.0, "v": mu, "x^2 v": -mu})


def test_stiff_equations():
    """Van der Pol with μ = 1000: all times are reached, and Radau agrees."""
    rhs, t = stiff_van_der_pol(1000.0), np.linspace(0, 2000, 50)
    found = simulate_states(rhs, [2.0, 0.0], t)
    truth = solve_ivp(lambda _, x: rhs.row(x), (0, 2000), [2.0, 0.0], "Radau", t, rtol=1e-8, atol=1e-10)
    assert np.max(np.abs(found[:, 0] - truth.y[0])) < 1e-4


def test_robertson_keeps_its_mass():
    """The classic stiff problem: rates from .04 to 3·10⁷; a + b + c = 1; the values at t = 40 are well known."""
    rhs = right_hand_side(
        Polynomials(2),
        ["a", "b", "c"],
        {"a": -0.04, "b c": 1e4},
        {"a": 0.04, "b c": -1e4, "b^2": -3e7},
        {"b^2": 3e7},
    )
    solution = simulate_states(rhs, [1.0, 0.0, 0.0], [0.0, 0.4, 4.0, 40.0], atol=[1e-10, 1e-14, 1e-10])
    np.testing.assert_allclose(solution.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(solution[-1], [0.71582707, 9.1855348e-6, 0.28416375], rtol=1e-6)


# Guards


def test_blow_up_is_named():
    """x' = x² from 1 is 1/(1 − t): it passes 10⁶ at t = 1 − 10⁻⁶."""
    t = np.linspace(0, 2, 201)
    with pytest.warns(SimulationWarning, match=r"passed its limit at t = 0.99999.*blows up \(100 of 201 times"):
        solution = simulate_states(square(), [1.0], t)
    assert solution.shape == (100, 1)
    # The error of every step is stretched by x' ~ x², 10⁴ here.
    np.testing.assert_allclose(solution[:90, 0], 1 / (1 - t[:90]), rtol=1e-6)


def test_limit_is_met_where_it_is_crossed():
    """x' = x passes 100 at ln 100, whatever the steps; with a limit per state the right one counts."""
    growth = linear(np.diag([1.0, -1.0]))
    with pytest.warns(SimulationWarning, match=f"t = {np.log(100):.6f}"[:10]):
        solution = simulate_states(growth, [1.0, 5.0], np.linspace(0, 10, 1001), limit=[100.0, 6.0])
    assert len(solution) == 461  # t = 4.60
    assert np.max(solution[:, 0]) <= 100
    # Another 10⁶ of the default is not reached in this time.
    assert len(simulate_states(growth, [1.0, 5.0], [0.0, 10.0])) == 2


def test_violent_blow_up_stops_at_once():
    """x' = x⁵ overflows within one trial step; x = (1 − 4t)^(−1/4) ends at t = 1/4."""
    rhs = right_hand_side(Polynomials(5), ["x"], {"x^5": 1.0})
    with pytest.warns(SimulationWarning, match=r"t = 0\.(25|2499)"):
        solution = simulate_states(rhs, [1.0], np.linspace(0, 1e6, 11))
    assert len(solution) == 1


def test_singular_right_hand_side():
    """x' = −1/x from 1 ends at x = 0, t = 1/2, where |x| is small: the step size collapses."""
    rhs = RightHandSide(Custom([lambda x: 1 / x], ["1/{}"]), [[-1.0]], 1)
    with pytest.warns(SimulationWarning, match=r"collapsed at t = 0\.5"):
        solution = simulate_states(rhs, [1.0], np.linspace(0, 1, 11))
    np.testing.assert_allclose(solution[:5, 0], np.sqrt(1 - 0.2 * np.arange(5)), rtol=1e-6)


def test_hopeless_runs_are_given_up(monkeypatch):
    monkeypatch.setattr("ardea.dynamics.simulation.MOST_STEPS", 500)
    rhs, x0, t = of_system(systems.lorenz63()), systems.lorenz63().x0, np.linspace(0, 1000, 1001)
    with pytest.warns(SimulationWarning, match="given up"):
        assert 1 < len(simulate_states(rhs, x0, t)) < 100
    assert np.isnan(simulate_draws(rhs, x0, t)[0, -1]).all()


def test_errors_of_library_functions_are_raised():
    def picky(x):
        if np.any(x > 2):
            raise ZeroDivisionError("too large for me")
        return x

    rhs = RightHandSide(Custom([picky]), [[1.0]], 1)
    with pytest.raises(ZeroDivisionError, match="too large for me"):
        simulate_states(rhs, [1.0], [0.0, 10.0])


def test_bad_input_is_refused():
    rhs = square()
    forced = right_hand_side(Polynomials(1), ["x", "u"], {"u": 1.0}, n_inputs=1)
    cases = [
        (lambda: simulate_states(rhs, [1.0, 2.0], [0, 1]), "x0 must have shape"),
        (lambda: simulate_states(rhs, [np.nan], [0, 1]), "start must be finite"),
        (lambda: simulate_states(rhs, [1.0], [0, 1, 1]), "strictly ascending"),
        (lambda: simulate_states(rhs, [2.0], [0, 1], limit=1.0), "outside the limit"),
        (lambda: simulate_states(rhs, [1.0], [0, 1], inputs=[1, 2]), "0 inputs"),
        (lambda: simulate_states(forced, [1.0], [0, 1]), "1 input;"),
        (lambda: simulate_states(forced, [1.0], [0, 1], inputs=np.ones((2, 3))), "inputs must have shape"),
        (lambda: simulate_states(forced, [1.0], [0, 1], inputs=np.ones(3)), "one row for each"),
        (lambda: simulate_states(forced, [1.0], [0, 1], inputs=[1.0, np.nan]), "inputs must be finite"),
        (lambda: simulate_states(forced, [1.0], [0, 1], inputs=lambda t: [1, 2]), "must return 1 values"),
        (lambda: rhs([1.0]), "states must have shape"),
        (lambda: forced([[1.0]]), "1 input;"),
        (lambda: simulate_states(forced, [1.0], 5, discrete_time=True, inputs=[1.0]), "inputs must have shape"),
        (lambda: Bands.of(np.ones((3, 2, 1)), [0.0, 1.0], level=1.0), "between 0 and 1"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


# Inputs


def forced_oscillator():
    """x' = v, v' = −4x + u."""
    return right_hand_side(Polynomials(1), ["x", "v", "u"], {"v": 1.0}, {"x": -4.0, "u": 1.0}, n_inputs=1)


def test_forced_oscillator():
    """u = cos t from rest: x = (cos t − cos 2t)/3; as a function, and as samples through a cubic spline."""
    t = np.linspace(0, 10, 501)
    exact = (np.cos(t) - np.cos(2 * t)) / 3
    given = simulate_states(forced_oscillator(), [0.0, 0.0], t, inputs=np.cos)
    sampled = simulate_states(forced_oscillator(), [0.0, 0.0], t, inputs=np.cos(t))
    np.testing.assert_allclose(given[:, 0], exact, atol=1e-6)
    # The spline's error, 5/384·h⁴·max|u''''| = 2e-9, is below the integrator's.
    np.testing.assert_allclose(sampled[:, 0], given[:, 0], atol=1e-6)


def test_cubic_inputs_are_exact():
    """A cubic spline holds cubics: u = t³ gives x = t⁴/4."""
    rhs = right_hand_side(Polynomials(1), ["x", "u"], {"u": 1.0}, n_inputs=1)
    t = np.linspace(0, 2, 7)
    solution = simulate_states(rhs, [0.0], t, inputs=t**3)
    np.testing.assert_allclose(solution[:, 0], t**4 / 4, atol=1e-9)


def test_inputs_multiply_states():
    """x' = u₁x + u₂ with u = (−1, 2): x = 2 − e^{−t}."""
    rhs = right_hand_side(Polynomials(2), ["x", "a", "b"], {"x a": 1.0, "b": 1.0}, n_inputs=2)
    t = np.array([0.0, 1.0, 3.0])
    solution = simulate_states(rhs, [1.0], t, inputs=lambda _: (-1.0, 2.0))
    np.testing.assert_allclose(solution[:, 0], 2 - np.exp(-t), rtol=1e-7)


# Maps


@pytest.mark.parametrize("name", systems.ALL_MAPS)
def test_maps_are_the_systems(name):
    system = systems.ALL_MAPS[name]()
    t, expected = system.simulate()
    solution = simulate_states(of_system(system), system.x0, t, discrete_time=True)
    # Rounding grows with the Lyapunov exponent; the first rows are exact to it.
    np.testing.assert_allclose(solution[:20], expected[:20], rtol=1e-8)
    np.testing.assert_array_equal(simulate_states(of_system(system), system.x0, 30, discrete_time=True), solution[:30])


def test_map_with_inputs():
    """x_{n+1} = x_n + u_n adds the inputs up; the last one has no use."""
    rhs = right_hand_side(Polynomials(1), ["x", "u"], {"x": 1.0, "u": 1.0}, n_inputs=1)
    u = np.array([3.0, -1.0, 4.0, 1.0])
    expected = [0.0, 3.0, 2.0, 6.0, 7.0]
    for inputs in (u, lambda t: u[int(t)]):
        solution = simulate_states(rhs, [0.0], 5, inputs=inputs, discrete_time=True)
        np.testing.assert_array_equal(solution[:, 0], expected)


def test_map_stops_when_it_escapes():
    """x ← x² from 2 is 2^(2^n): 2^16 is the last below 10⁶·2; no overflow warning."""
    with pytest.warns(SimulationWarning, match=r"at t = 5: the model blows up \(5 of 100 times"):
        solution = simulate_states(square(), [2.0], 100, discrete_time=True)
    np.testing.assert_array_equal(solution[:, 0], [2.0, 4.0, 16.0, 256.0, 65536.0])


# Fields


def field_terms(terms, library=None):
    library = library or FieldTerms()
    assert set(terms) <= set(library.names())
    return [terms.get(name, 0.0) for name in library.names()]


@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_true_fields_reproduce_the_system(name):
    """Against the system's own fixed steps, for 30 output times; both solve the same truncated equations."""
    system, library = systems.ALL_PDES[name](), FieldTerms()
    t = system.t[:30]
    expected = system.simulate(t=t)[1]
    solution = simulate_field(library, system.true_coefficients(library), system.x0, system.space[0], t, rtol=1e-7)
    assert solution.shape == expected.shape
    assert relative(solution - expected, expected) < 2e-7


def test_soliton_travels():
    """u_t = −u u_x − u_xxx carries 3c sech²(√c (x − ct)/2) unchanged; rtol bounds the error."""
    n, length, c = 256, 40.0, 2.0
    x, t = length * np.arange(n) / n, np.linspace(0, 3, 7)

    def soliton(s):
        return 3 * c / np.cosh(np.sqrt(c) / 2 * (x - 15 - c * s)) ** 2

    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        u = simulate_field(FieldTerms(), field_terms({"u u_x": -1.0, "u_xxx": -1.0}), soliton(0.0), x, t, rtol=rtol)
        errors.append(relative(u - np.stack([soliton(s) for s in t], axis=1), u))
    assert all(error < rtol for error, rtol in zip(errors, (1e-4, 1e-6, 1e-8), strict=True))
    assert errors[2] < errors[0] / 100


def test_mean_is_kept_by_a_flux():
    system, library = systems.kdv_burgers(), FieldTerms()
    u = simulate_field(library, system.true_coefficients(library), system.x0, system.space[0], system.t[:40])
    np.testing.assert_allclose(u.mean(axis=0), system.x0.mean(), atol=1e-13)


def test_uneven_and_far_output_times():
    """One long interval starts with steps far too long for the explicit part: they are halved, not called a blow-up."""
    system, library = systems.nonlinear_diffusion(), FieldTerms()
    xi, x = system.true_coefficients(library), system.space[0]
    far = simulate_field(library, xi, system.x0, x, [0.0, 1.0])
    uneven = simulate_field(library, xi, system.x0, x, [0.0, 0.1, 0.15, 0.7, 1.0])
    assert relative(far[:, -1] - uneven[:, -1], far) < 2e-6


def test_field_blow_up_is_named():
    """u_t = u² at every point: u0 = 1 + cos(x)/2 ends at t = 1/1.5."""
    x, t = 2 * np.pi * np.arange(64) / 64, np.linspace(0, 1, 21)
    with pytest.warns(SimulationWarning, match=r"near t = 0\.66"):
        solution = simulate_field(FieldTerms(), field_terms({"u^2": 1.0}), 1 + 0.5 * np.cos(x), x, t)
    assert solution.shape == (64, 14)
    u0 = 1 + 0.5 * np.cos(x[:, None])
    # Twelve modes carry the field; close to the end it needs more of them.
    np.testing.assert_allclose(solution[:, :9], u0 / (1 - u0 * t[:9]), rtol=1e-3)


@pytest.mark.parametrize("terms", [{"u_xx": -1.0}, {"u_xxxx": 1.0}, {"u_xx": 1.0, "u_xxxx": 0.1, "u u_x": -1.0}])
def test_ill_posed_fields_are_refused(terms):
    x = 2 * np.pi * np.arange(64) / 64
    with pytest.raises(ValueError, match="ill-posed"):
        simulate_field(FieldTerms(), field_terms(terms), np.cos(x), x, [0.0, 1.0])


def test_long_waves_may_grow():
    """KS grows long waves (checked above); u_t = u grows all alike, e^t, and is well-posed."""
    x = 2 * np.pi * np.arange(16) / 16
    solution = simulate_field(FieldTerms(), field_terms({"u": 1.0}), np.cos(x), x, [0.0, 5.0, 10.0])
    np.testing.assert_allclose(solution, np.outer(np.cos(x), np.exp([0.0, 5.0, 10.0])), atol=1e-9)


def test_field_that_starts_at_zero():
    """u_t = 1 from u = 0 gives u = t; u_t = 0 stays."""
    x, t = np.arange(8.0), np.array([0.0, 1.0, 2.5])
    solution = simulate_field(FieldTerms(), field_terms({"1": 1.0, "u_xx": 1.0}), np.zeros(8), x, t)
    np.testing.assert_allclose(solution, np.tile(t, (8, 1)), rtol=1e-12)
    assert not np.any(simulate_field(FieldTerms(), field_terms({}), np.zeros(8), x, t))


def test_bad_fields_are_refused():
    x = 2 * np.pi * np.arange(64) / 64
    heat, library = field_terms({"u_xx": 1.0}), FieldTerms()
    cases = [
        (lambda: simulate_field(library, heat, np.cos(x), x**1.1, [0, 1]), "evenly spaced"),
        (lambda: simulate_field(library, heat, x, x, [0, 1]), "periodic"),
        (lambda: simulate_field(library, heat[:-1], np.cos(x), x, [0, 1]), "argument 2 is shorter"),
        (lambda: simulate_field(library, heat, np.cos(x), x, [0, 1], limit=0.5), "outside the limit"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


# Draws and bands


def test_draws_are_the_single_runs():
    """Draw by draw the large system gives what each gives alone, with inputs too; equations may be empty."""
    library = Polynomials(2)
    names = library.names(["x", "y", "u"])
    rng, t = np.random.default_rng(5), np.linspace(0, 4, 17)
    draws = np.zeros((6, 2, len(names)))
    draws[:, 0, names.index("y")] = 1.0 + 0.1 * rng.normal(size=6)
    draws[:4, 1, names.index("x")] = -1.0
    draws[:4, 1, names.index("x u")] = 0.3 * rng.normal(size=4)
    starts = np.array([1.0, 0.5]) + 0.1 * rng.normal(size=(6, 2))
    rhs = RightHandSide(library, draws, 2, 1)
    for discrete_time in (False, True):
        for x0 in (starts, np.tile(starts[0], (6, 1))):
            given = starts[0] if np.array_equal(x0[0], x0[1]) else x0
            together = simulate_draws(rhs, given, t, inputs=np.sin, discrete_time=discrete_time)
            for xi, start, one in zip(draws, x0, together, strict=True):
                single = RightHandSide(library, xi, 2, 1)
                alone = simulate_states(single, start, t, inputs=np.sin, discrete_time=discrete_time)
                np.testing.assert_allclose(one, alone, atol=1e-7)


def growth_draws(rates):
    """x' = a x², so x = x0/(1 − a x0 t)."""
    draws = np.zeros((len(rates), 1, 3))
    draws[:, 0, 2] = rates
    return RightHandSide(Polynomials(2), draws, 1)


def test_draws_that_blow_up_do_not_hold_up_the_others():
    """x' = a x², x0 = 1, ends at 1/a for a > 0 and is 1/(1 − a t) throughout for a < 0."""
    rates, t = np.array([2.0, -1.0, 1.0, -3.0, 0.0]), np.linspace(0, 2, 41)
    found = simulate_draws(growth_draws(rates), [1.0], t)[:, :, 0]
    reached = np.sum(np.isfinite(found), axis=1)
    np.testing.assert_array_equal(reached, [10, 41, 20, 41, 41])
    for rate, n, x in zip(rates, reached, found, strict=True):
        np.testing.assert_allclose(x[: n - 1], 1 / (1 - rate * t[: n - 1]), rtol=1e-6)


def test_draws_that_become_singular_do_not_hold_up_the_others():
    """x' = a/x from 1 is √(1 + 2at): it ends at t = 1/2 for a = −1, where |x| is small, and goes on for a = 1."""
    rhs = RightHandSide(Custom([lambda x: 1 / x], ["1/{}"]), [[[-1.0]], [[1.0]], [[-0.1]]], 1)
    t = np.linspace(0, 1, 21)
    found = simulate_draws(rhs, [1.0], t)[:, :, 0]
    assert 9 <= np.sum(np.isfinite(found[0])) <= 11
    for rate, x in ((1.0, found[1]), (-0.1, found[2])):
        np.testing.assert_allclose(x, np.sqrt(1 + 2 * rate * t), rtol=1e-7)


def test_draws_that_leave_the_domain_do_not_hold_up_the_others():
    """x' = −a√x from 1 is (1 − at/2)²: for a = 2 it ends at t = 1, where √x is no number, for a = 1 it goes on."""
    rhs = RightHandSide(Custom([np.sqrt]), [[[-2.0]], [[-1.0]], [[0.5]]], 1)
    t = np.linspace(0, 1.5, 31)
    found = simulate_draws(rhs, [1.0], t)[:, :, 0]
    assert 20 <= np.sum(np.isfinite(found[0])) <= 21
    np.testing.assert_allclose(found[0, :20], (1 - t[:20]) ** 2, atol=1e-8)
    for rate, x in ((1.0, found[1]), (-0.5, found[2])):
        np.testing.assert_allclose(x, (1 - rate * t / 2) ** 2, rtol=1e-7)


def test_maps_that_escape_do_not_hold_up_the_others():
    """x ← a x² from 1 stays for |a| ≤ 1 and escapes for a = 2."""
    found = simulate_draws(growth_draws([2.0, 1.0, 0.5]), [1.0], 30, discrete_time=True)[:, :, 0]
    np.testing.assert_array_equal(found[1], np.ones(30))
    assert np.isfinite(found[2]).all()
    np.testing.assert_array_equal(found[0, :6], [1.0, 2.0, 8.0, 128.0, 32768.0, np.nan])


def test_stiff_draws():
    library = Polynomials(3)
    names = library.names(["x", "v"])
    draws = np.zeros((2, 2, len(names)))
    for draw, mu in zip(draws, (900.0, 1000.0), strict=True):
        draw[0, names.index("v")] = 1.0
        draw[1, [names.index("x"), names.index("v"), names.index("x^2 v")]] = -1.0, mu, -mu
    t = np.linspace(0, 500, 6)
    found = simulate_draws(RightHandSide(library, draws, 2), [2.0, 0.0], t)
    for mu, one in zip((900.0, 1000.0), found, strict=True):
        np.testing.assert_allclose(one, simulate_states(stiff_van_der_pol(mu), [2.0, 0.0], t), rtol=1e-7)


def test_bands_of_a_monotone_family():
    """x = e^{at} grows with a, so every quantile of x is e^{t·quantile of a}."""
    rates, t = np.random.default_rng(6).normal(-1, 0.3, size=101), np.linspace(0, 2, 9)
    draws = np.stack([np.zeros_like(rates), rates], axis=1)[:, None]
    found = Bands.of(simulate_draws(RightHandSide(Polynomials(1), draws, 1), [1.0], t), t, 0.8)
    assert found.n_stopped == 0
    assert found.samples.shape == (101, 9, 1)
    # With 101 samples the 10 %, 50 % and 90 % quantiles are the 11th, 51st and 91st of them.
    for band, rank in ((found.lower, 10), (found.median, 50), (found.upper, 90)):
        np.testing.assert_allclose(band[:, 0], np.exp(np.sort(rates)[rank] * t), rtol=1e-6)


def test_bands_count_what_stopped():
    """Of rates −1 … 1 in x' = a x² those with 1/a < 2 stop; bands say so and hold the others."""
    rates, t = np.linspace(-1, 1, 21), np.linspace(0, 2, 5)
    samples = simulate_draws(growth_draws(rates), [1.0], t)
    with pytest.warns(SimulationWarning, match="6 of 21 samples stopped") as caught:
        found = Bands.of(samples, t)
    assert len(caught) == 1
    # 1/(1 − at) passes its limit of 10⁶ just before t = 1/a, so a = .5 stops at t = 2.
    assert found.n_stopped == np.sum(rates > 0.5 - 1e-9)
    np.testing.assert_array_equal(found.n_running, [np.sum(rates * s < 1 - 1e-9) for s in t])
    expected = np.nanquantile(found.samples, [0.025, 0.5, 0.975], axis=0)
    np.testing.assert_allclose([found.lower, found.median, found.upper], expected, rtol=1e-12)


def test_bands_of_nothing_but_failures():
    samples = np.full((3, 3, 1), np.nan)
    samples[:, 0, 0] = [0.0, 1.0, 2.0]
    with pytest.warns(SimulationWarning, match="3 of 3"):
        found = Bands.of(samples, [0.0, 1.0, 2.0])
    assert found.median[0, 0] == 1.0
    assert np.all(np.isnan(found.median[1:]))


def test_bands_of_fields():
    """Time is the last axis of a field: heat with diffusivity κ, u = e^{−κt} cos x."""
    x, t = 2 * np.pi * np.arange(16) / 16, np.array([0.0, 0.5, 1.0])
    library = FieldTerms(1, 2)
    samples = [
        simulate_field(library, field_terms({"u_xx": kappa}, library), np.cos(x), x, t) for kappa in (0.5, 1.0, 2.0)
    ]
    samples.append(np.where(t < 1, np.cos(x)[:, None], np.nan))
    with pytest.warns(SimulationWarning, match="1 of 4"):
        found = Bands.of(np.array(samples), t, time_axis=1)
    np.testing.assert_allclose(found.median[:, 2], np.cos(x) * np.exp(-1.0), atol=1e-9)
    assert found.samples.shape == (4, 16, 3)
    np.testing.assert_array_equal(found.n_running, [4, 4, 3])


def test_no_warning_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate_states(square(), [1.0], [0.0, 0.5])
        simulate_states(square(), [0.5], 10, discrete_time=True)
        simulate_draws(growth_draws([-1.0, -2.0]), [1.0], [0.0, 1.0])


# How they are shown


def test_bands_are_shown_in_one_line():
    t = np.linspace(0.0, 2.0, 201)
    samples = np.ones((5, 201, 2))
    samples[4, 5:] = np.nan
    with pytest.warns(SimulationWarning):
        found = Bands.of(samples, t)
    assert repr(found) == "<95 % bands of shape (201, 2), 201 times from 0 to 2, 5 samples of which 1 stopped early>"


def test_frames_hold_the_numbers_by_name():
    t = np.array([0.0, 1.0, 2.0])
    found = Bands.of(np.random.default_rng(0).normal(size=(5, 3, 2)), t)
    frame = found.to_frame(["a", "b"])
    assert list(frame.index) == [0, 1, 2]
    np.testing.assert_array_equal(frame["b upper"], found.upper[:, 1])
    assert Bands.of(np.ones((3, 4, 3)), t, time_axis=1).to_frame().shape == (3, 13)
    with pytest.raises(ValueError, match="2 names"):
        found.to_frame(["a"])


def test_a_run_without_a_start_passes_the_first_row_of_the_data():
    """What is asked from later on is the end of the run from the first row, with draws and with dates alike."""
    t, x = systems.lorenz63().noisy(0.02, seed=1)
    when = np.datetime64("2024-03-01") + np.round(t * 3600e6).astype("timedelta64[us]")
    model, dated = Discovery().fit(x, t), Discovery().fit(x, when, time_unit="h")
    whole = model.simulate(t=t[:80])
    np.testing.assert_allclose(model.simulate(t=t[50:80]), whole[50:], rtol=1e-6)
    np.testing.assert_allclose(dated.simulate(t=when[50:80]), whole[50:], rtol=1e-4)
    draws = [model.simulate(t=t[first:80], n_samples=5, random_state=0) for first in (0, 50)]
    np.testing.assert_allclose(draws[1].upper, draws[0].upper[50:], rtol=1e-6)
    assert draws[1].n_running.shape == draws[1].t.shape == (30,)
    bands = dated.simulate(t=when[50:80], n_samples=5, random_state=0)
    np.testing.assert_array_equal(bands.to_frame().index, when[50:80])
    np.testing.assert_array_equal(dated.states_[0]["time"], when)
    with pytest.raises(ValueError, match=r"2024-02-29T23:00.* before the data"):
        dated.simulate(t=when - np.timedelta64(1, "h"))


def test_a_forecast_goes_on_from_the_last_row():
    """From the smoothed state there, at whose time a run from it has the deviations of that state."""
    t, x = systems.lorenz63().noisy(0.02, seed=1)
    model = Discovery().fit(x, t)
    later = t[-1] + np.array([1e-6, 0.2, 0.4])
    state = model.states_[0].iloc[-1]
    run, bands = model.simulate(t=later), model.simulate(t=later, n_samples=400, random_state=0)
    np.testing.assert_allclose(run[0], state[model.feature_names_].astype(float), rtol=1e-4)
    std = state[[f"{name} std" for name in model.feature_names_]].astype(float)
    np.testing.assert_allclose(bands.samples[:, 0].std(axis=0), std, rtol=0.15)


def test_a_map_without_a_start_is_run_to_the_times_asked_for():
    x = [0.2]
    for _ in range(59):
        x.append(2.9 * x[-1] * (1 - x[-1]))
    data = np.array(x) + 0.002 * np.random.default_rng(0).normal(size=60)
    model = Discovery(discrete_time=True).fit(data, np.arange(1960, 2020))
    whole = model.simulate(t=60)
    np.testing.assert_array_equal(model.simulate(t=[2015, 2019]), whole[[55, 59]])
    bands = model.simulate(t=np.arange(2015, 2020), n_samples=3, random_state=0)
    np.testing.assert_array_equal(bands.t, np.arange(2015, 2020))
    np.testing.assert_array_equal(bands.median, model.simulate(t=60, n_samples=3, random_state=0).median[55:])
