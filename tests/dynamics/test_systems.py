"""Systems with known truth: the truth against the flow and the data, the paper's set-ups, the ETDRK4 solver."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ardea.dynamics import FieldTerms, Fourier, Polynomials, systems
from ardea.dynamics.differences import finite_difference, spectral_derivative
from ardea.dynamics.field_simulation import SpectralEquation, Weights

STATE_SYSTEMS = {**systems.ALL_ODES, **systems.ALL_MAPS}
SMALL_PDES = {name: factory for name, factory in systems.ALL_PDES.items() if name != "kuramoto_sivashinsky"}


def field_equation(terms, n_x=64, length=2 * np.pi):
    library = FieldTerms()
    return SpectralEquation(library.terms(), [terms.get(name, 0.0) for name in library.names()], (n_x,), (length,))


def relative(error, size):
    return np.max(np.abs(error)) / np.max(np.abs(size))


# Truth


@pytest.mark.parametrize("name", STATE_SYSTEMS)
def test_true_terms_are_the_flow(name):
    """Names and numbers of the terms are expanded from the flow: both agree on random states, not only on the data."""
    system = STATE_SYSTEMS[name]()
    x = np.random.default_rng(0).normal(size=(20, len(system.feature_names)))
    theta = system.library.evaluate(x)
    np.testing.assert_allclose(theta @ system.true_coefficients().T, system.exact_derivative(x), rtol=1e-12, atol=1e-12)


def test_true_terms_by_hand():
    """Three systems multiplied out on paper."""
    assert systems.van_der_pol().true_terms == ({"v": 1.0}, {"x": -1.0, "v": 1.5, "x^2 v": -1.5})
    assert systems.pendulum().true_terms == ({"w": 1.0}, {"w": -0.1, "sin(a)": -1.0})
    assert systems.hopf().true_terms == (
        {"x": 0.1, "y": -1.0, "x^3": -0.1, "x y^2": -0.1},
        {"x": 1.0, "y": 0.1, "x^2 y": -0.1, "y^3": -0.1},
    )
    assert systems.lorenz96(5, 8.0).true_terms[0] == {"1": 8.0, "x0": -1.0, "x1 x4": 1.0, "x3 x4": -1.0}


def test_factories_tell_their_equations():
    assert systems.rossler.__doc__ == (
        "Rössler, chaotic; z comes in spikes: x' = -1 y - 1 z, y' = 1 x + 0.2 y, z' = 1 x z - 5.7 z + 0.2."
    )
    assert systems.burgers.__doc__ == "Burgers; waves steepen and merge: u_t = -1 u u_x + 0.1 u_xx."


@pytest.mark.parametrize("name", systems.ALL_ODES)
def test_solution_obeys_its_equation(name):
    """x(t + 2dt) − x(t) is the integral of the flow, by Gauss–Legendre between the rows (10 nodes)."""
    system = systems.ALL_ODES[name]()
    t, x = system.simulate()
    assert t.shape == (system.n_rows,)
    assert x.shape == (system.n_rows, len(system.feature_names))
    nodes, weights = np.polynomial.legendre.leggauss(10)
    first = system.n_rows // 3
    times = t[first] + system.dt * (1 + nodes)
    _, inside = system.simulate(x[first], np.concatenate([t[first : first + 1], times]))
    integral = system.dt * weights @ system.exact_derivative(inside[1:])
    np.testing.assert_allclose(x[first + 2] - x[first], integral, atol=1e-8 * np.max(np.abs(x)))


@pytest.mark.parametrize("name", systems.ALL_MAPS)
def test_maps_iterate(name):
    system = systems.ALL_MAPS[name]()
    t, x = system.simulate()
    np.testing.assert_allclose(x[1:], system.exact_derivative(x[:-1]), rtol=1e-12)
    np.testing.assert_array_equal(system.simulate(t=t[::2])[1], x[::2])
    assert np.std(x[-50:, 0]) > 0.1  # no fixed point


@cache
def solved(name):
    """A field equation and its solution, which takes seconds."""
    system = systems.ALL_PDES[name]()
    return system, *system.simulate()


@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_true_terms_are_the_field_equation(name):
    """Θξ with spectral derivatives equals the right-hand side of the solver, whose products are dealiased."""
    system, _, u = solved(name)
    assert u.shape == (len(system.x0), system.n_rows)
    columns = np.flatnonzero(system.true_coefficients()[0])
    theta = system.library.evaluate([u], lambda _, q: spectral_derivative(u, system.length, q[0]), terms=columns)
    exact = system.exact_derivative(u).ravel()
    assert relative(theta @ system.true_coefficients()[0, columns] - exact, exact) < 2e-7


@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_fields_obey_their_equation_in_time(name):
    """u(t + dt) − u(t) is the integral of u_t, by Gauss–Legendre between two rows.

    What is left is the error of the solver's own steps; the paper's step for KS is the coarsest.
    """
    system, t, u = solved(name)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    first = system.n_rows // 4
    times = t[first] + 0.5 * system.dt * (1 + nodes)
    _, inside = system.simulate(u[:, first], np.concatenate([t[first : first + 1], times]))
    integral = 0.5 * system.dt * system.exact_derivative(inside[:, 1:]) @ weights
    assert relative(u[:, first + 1] - u[:, first] - integral, u) < (1e-7 if name == "kuramoto_sivashinsky" else 1e-8)


def test_field_equations_by_hand():
    """Four equations written out with derivatives of a known field."""
    x = 2 * np.pi * np.arange(64) / 64
    u, ux, uxx = np.sin(x) + 0.5 * np.cos(2 * x), np.cos(x) - np.sin(2 * x), -np.sin(x) - 2 * np.cos(2 * x)
    uxxx, uxxxx = -np.cos(x) + 4 * np.sin(2 * x), np.sin(x) + 8 * np.cos(2 * x)
    cases = [
        ({"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0}, -u * ux - uxx - uxxxx),
        ({"u^2 u_x": -3.0, "u_xxx": -1.0}, -3 * u**2 * ux - uxxx),
        ({"1": 0.5, "u": 2.0, "u^3": -1.0, "u_x": 0.3}, 0.5 + 2 * u - u**3 + 0.3 * ux),
        ({"u^2 u_xx": 0.5, "u u_xxx": 0.1, "u u_xxxx": -0.2}, 0.5 * u**2 * uxx + 0.1 * u * uxxx - 0.2 * u * uxxxx),
    ]
    for terms, expected in cases:
        np.testing.assert_allclose(field_equation(terms).derivative(u[None])[0], expected, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in systems.ALL_FIELDS if name != "vorticity"])
def test_fields_of_other_kinds_obey_their_equations(name):
    """The true terms, with derivatives by differences, give the rate of change between two rows, where it is smooth."""
    system = systems.ALL_FIELDS[name]()
    n_axes, known = len(system.space), system.options.get("known_fields", {})
    t = 0.5 * system.dt * np.arange(9)
    _, u = system.simulate(t=t)
    fields = [u] if len(system.feature_names) == 1 else list(np.moveaxis(u, -1, 0))
    grid = fields[0].shape
    fields += [np.broadcast_to(np.asarray(one)[..., None], grid) for one in known.values()]

    def derivative(field, orders):
        out = fields[field]
        for axis, order in enumerate(orders):
            out = finite_difference(out, system.space[axis], derivative=order, axis=axis) if order else out
        return out

    theta = system.library.evaluate(fields, derivative, n_axes=n_axes, n_known=len(known))
    inside = (*[slice(8, -8)] * n_axes, 4)
    for field, xi in zip(fields, system.true_coefficients(), strict=False):
        rate = finite_difference(field, t, derivative=system.order, axis=n_axes)[inside]
        assert relative((theta @ xi).reshape(grid)[inside] - rate, rate) < 2e-2


@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_fields_are_resolved_and_excited(name):
    """The spectrum falls to rounding before the grid ends, and the field is no single travelling wave."""
    system = systems.ALL_PDES[name]()
    _, u = system.simulate()
    spectrum = np.abs(np.fft.rfft(u, axis=0))
    assert np.max(spectrum[len(u) // 3 :]) < 1e-8 * np.max(spectrum)
    singular = np.linalg.svd(u - u.mean(axis=0), compute_uv=False)
    assert np.sum(singular > 0.03 * singular[0]) >= 4
    # A travelling wave has u_t ∝ u_x everywhere.
    ut, ux = system.exact_derivative(u).ravel(), spectral_derivative(u, system.length).ravel()
    assert abs(ut @ ux) < 0.995 * np.linalg.norm(ut) * np.linalg.norm(ux)


# The paper's set-ups


def test_lorenz63_is_the_papers():
    system = systems.lorenz63()
    t, x = system.simulate()
    assert x.shape == (251, 3)
    assert t[1] - t[0] == 0.05
    assert system.library.n_terms(3) == 56
    np.testing.assert_array_equal(np.count_nonzero(system.true_coefficients(), axis=1), [2, 3, 2])
    wing = np.sqrt(8 / 3 * 27)
    np.testing.assert_allclose(system.exact_derivative([[wing, wing, 27.0]]), 0.0, atol=1e-13)  # fixed point
    starts = np.array([systems.lorenz63(seed=seed).x0 for seed in range(200)])
    assert np.max(np.abs(starts.mean(axis=0) - [0, 0, 15])) < 4 * 5 / np.sqrt(200)
    assert np.max(np.abs(starts.std(axis=0) - 5)) < 1


def test_lorenz96_is_the_papers():
    system = systems.lorenz96()
    _, x = system.simulate()
    assert x.shape == (200, 40)
    assert system.library.n_terms(40) == 861
    np.testing.assert_allclose(x[0], np.exp(-((np.arange(40) - 20) ** 2) / 16))
    xi = system.true_coefficients()
    assert (np.count_nonzero(xi, axis=1) == 4).all()
    np.testing.assert_array_equal(xi[:, 0], 16.0)
    # The quadratic part keeps the energy: Σ x_j (x_j' + x_j − F) = 0.
    rest = system.exact_derivative(x) + x - 16.0
    np.testing.assert_allclose(np.sum(x * rest, axis=1), 0.0, atol=1e-10)


def test_kuramoto_sivashinsky_is_the_papers():
    system = systems.kuramoto_sivashinsky()
    t, u = system.simulate()
    (x,) = system.space
    assert u.shape == (512, 1072)
    assert t[-1] == pytest.approx(149.94)
    assert x[1] == pytest.approx(32 * np.pi / 512)
    np.testing.assert_allclose(u[:, 0], np.cos(x / 8) * (1 + np.sin(x / 16)))
    assert system.true_terms == ({"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0},)
    assert system.library.n_terms() == 25
    np.testing.assert_allclose(u.mean(axis=0), u[:, 0].mean(), atol=1e-12)  # conserved
    ut = finite_difference(u, 0.14, order=10, axis=1)[:, 20:-20]
    assert relative(ut - system.exact_derivative(u)[:, 20:-20], ut) < 1e-5


# Exact solutions


def test_linear_oscillator_in_closed_form():
    t, x = systems.linear_oscillator().simulate()
    expected = 2 * np.exp(-0.1 * t) * np.array([np.cos(2 * t), -np.sin(2 * t)])
    np.testing.assert_allclose(x.T, expected, atol=1e-10)


def test_lotka_volterra_keeps_its_first_integral():
    _, x = systems.lotka_volterra().simulate()
    integral = x[:, 0] - np.log(x[:, 0]) + 4 / 3 * x[:, 1] - 2 / 3 * np.log(x[:, 1])
    np.testing.assert_allclose(integral, integral[0], rtol=1e-10)


def test_advection_diffusion_in_closed_form():
    system = systems.advection_diffusion()
    t, u = system.simulate()
    k = 2 * np.pi * np.fft.rfftfreq(len(u), d=system.length / len(u))
    modes = np.fft.rfft(u[:, 0])[:, None] * np.exp((-1j * k - 0.2 * k**2)[:, None] * t)
    np.testing.assert_allclose(u, np.fft.irfft(modes, n=len(u), axis=0), atol=1e-12)


def test_burgers_by_the_cole_hopf_transform():
    """u = −2ν φ_x/φ with φ_t = ν φ_xx solves u_t = −u u_x + ν u_xx."""
    system, nu = systems.burgers(), 0.1
    (x,) = system.space
    k = 2 * np.pi / system.length
    t = np.array([0.0, 0.5, 2.0])
    decay = np.exp(-nu * k**2 * t)
    phi = 1 + 0.6 * np.cos(k * x)[:, None] * decay
    exact = 2 * nu * 0.6 * k * np.sin(k * x)[:, None] * decay / phi
    np.testing.assert_allclose(system.simulate(exact[:, 0], t)[1], exact, atol=1e-10)


def test_korteweg_de_vries_soliton():
    """u = 3c sech²(√c (x − ct)/2) solves u_t = −u u_x − u_xxx."""
    system, c = systems.korteweg_de_vries(), 1.0

    def soliton(time):
        distance = (system.space[0] - 15.0 - c * time + 20.0) % 40.0 - 20.0
        return 3 * c / np.cosh(np.sqrt(c) / 2 * distance) ** 2

    _, u = system.simulate(soliton(0.0), np.array([0.0, 5.0]))
    np.testing.assert_allclose(u[:, 1], soliton(5.0), atol=1e-6)  # the tails are cut at 20: 12 e^-20


def test_korteweg_de_vries_keeps_mean_and_energy():
    _, u = systems.korteweg_de_vries().simulate()
    np.testing.assert_allclose(u.sum(axis=0), u[:, 0].sum(), rtol=1e-12)
    np.testing.assert_allclose((u**2).sum(axis=0), (u[:, 0] ** 2).sum(), rtol=1e-7)


# The solver


@pytest.mark.parametrize(
    "terms", [{"u u_x": -1.0, "u_xx": 0.1}, {"u u_x": -1.0, "u_xxx": -0.05}, {"u": 1.0, "u^3": -1.0, "u_xx": 0.2}]
)
def test_etdrk4_converges_with_order_four(terms):
    equation = field_equation(terms)
    x = 2 * np.pi * np.arange(64) / 64
    u0, t = 0.5 * np.sin(x) + 0.3 * np.cos(2 * x), np.array([0.0, 1.0])
    fine = equation.solve(u0[None], t, 1 / 640)
    errors = [np.max(np.abs(equation.solve(u0[None], t, h) - fine)) for h in (1 / 20, 1 / 40, 1 / 80)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 4.0, atol=0.35)


@pytest.mark.parametrize("name", SMALL_PDES)
def test_default_steps_are_fine_enough(name):
    system = SMALL_PDES[name]()
    t = system.t[: system.n_rows // 4]
    _, u = system.simulate(t=t)
    _, halved = replace(system, max_step=system.max_step / 2).simulate(t=t)
    assert relative(u - halved, u) < 1e-7


def test_coefficients_near_zero_equal_their_taylor_series():
    """φ(z/2)/2, f₁, 2f₂, f₃ at small z; the printed formulas lose all digits there."""
    h, z = 0.5, np.array([0.0, 1e-9, 1e-4, -1e-4j, 1e-2])
    c = Weights.of(z / h, h)
    np.testing.assert_allclose(c.inner / h, 1 / 2 + z / 8 + z**2 / 48 + z**3 / 384, rtol=1e-9)
    np.testing.assert_allclose(c.first / h, 1 / 6 + z / 6 + 3 * z**2 / 40 + z**3 / 45, rtol=1e-7)
    np.testing.assert_allclose(c.middle / h, 1 / 3 + z / 6 + z**2 / 20 + z**3 / 90, rtol=1e-7)
    np.testing.assert_allclose(c.last / h, 1 / 6 + z * 0 - z**2 / 120 - z**3 / 360, rtol=1e-7)
    np.testing.assert_allclose(c.first[0] + c.middle[0] * 2 + c.last[0], h)  # the weights of Runge–Kutta


def test_coefficients_far_from_zero_equal_the_formulas():
    z = np.array([-50.0, -3.0, 4j, -2 + 30j])
    c, e = Weights.of(z, 1.0), np.exp(z)
    np.testing.assert_allclose(c.first, (-4 - z + e * (4 - 3 * z + z**2)) / z**3, rtol=1e-12)
    np.testing.assert_allclose(c.middle, 2 * (2 + z + e * (-2 + z)) / z**3, rtol=1e-12)
    np.testing.assert_allclose(c.last, (-4 - 3 * z - z**2 + e * (4 - z)) / z**3, rtol=1e-12)


def test_uneven_times_give_the_same_field():
    system = systems.fisher_kpp()
    t, u = system.simulate()
    some = np.array([0, 1, 5, 6, 20])
    np.testing.assert_allclose(system.simulate(t=t[some])[1], u[:, some], atol=1e-7)


def test_blow_up_says_when():
    equation = field_equation({"u^2": 1.0})
    with pytest.raises(ValueError, match="blew up between t = 0 and t = 5"):
        equation.solve(np.ones((1, 64)), np.array([0.0, 5.0]), 0.1)


def test_the_linear_part_is_solved_exactly_whatever_the_step():
    """u_t = −u_x carries the field along; u_t = u_xx damps each mode by itself."""
    x = 2 * np.pi * np.arange(16) / 16
    t = np.array([0.0, 3.0])
    moved = field_equation({"u_x": -1.0}, n_x=16).solve(np.cos([x]), t, 3.0)
    np.testing.assert_allclose(moved[1, 0], np.cos(x - 3.0), atol=1e-14)
    damped = field_equation({"u_xx": 1.0}, n_x=16).solve(np.cos([2 * x]), t, 3.0)
    np.testing.assert_allclose(damped[1, 0], np.exp(-12.0) * np.cos(2 * x), atol=1e-14)


# Noise, coefficients, caching


def test_noise_is_a_fraction_of_the_spread_of_all_states():
    system = systems.rossler()
    _, x = system.simulate()
    t, noisy = system.noisy(0.05, seed=1)
    error = noisy - x
    assert np.std(error) == pytest.approx(0.05 * np.std(x), rel=0.05)
    np.testing.assert_allclose(np.std(error, axis=0), 0.05 * np.std(x), rtol=0.1)  # the same in every state
    np.testing.assert_array_equal(system.noisy(0.05, seed=1)[1], noisy)
    assert not np.array_equal(system.noisy(0.05, seed=2)[1], noisy)
    np.testing.assert_array_equal(system.noisy(0.0, seed=1)[1], x)
    np.testing.assert_array_equal(t, system.t)


def test_noise_on_other_starts_and_times():
    t = np.linspace(0, 1, 30)
    times, x = systems.lorenz63().noisy(0.01, 0, x0=[1.0, 2.0, 20.0], t=t)
    np.testing.assert_array_equal(times, t)
    assert x.shape == (30, 3)


def test_true_coefficients_in_any_library():
    system = systems.lorenz63()
    for library in (Polynomials(2), Polynomials(4), Polynomials(2) + Fourier(1)):
        xi = system.true_coefficients(library)
        assert xi.shape == (3, library.n_terms(3))
        assert xi[1, library.names(["x", "y", "z"]).index("x z")] == -1.0
    with pytest.raises(ValueError, match="lacks true terms of lorenz63: x y, x z"):
        system.true_coefficients(Polynomials(1))


def test_solutions_are_computed_once_and_cannot_be_spoiled():
    assert systems.lorenz63() is systems.lorenz63()
    _, x = systems.lorenz63().simulate()
    x[:] = 0.0
    assert systems.lorenz63().simulate()[1].any()


def test_names_and_kinds():
    everything = {**STATE_SYSTEMS, **systems.ALL_PDES}
    for name, factory in everything.items():
        assert factory().name == name == factory.__name__
    assert len(systems.ALL_ODES) >= 10
    assert len(systems.ALL_PDES) >= 5
    kinds = {name: factory().kind for name, factory in everything.items()}
    assert {kinds[name] for name in systems.ALL_ODES} == {"ode"}
    assert {kinds[name] for name in systems.ALL_MAPS} == {"map"}
    assert {kinds[name] for name in systems.ALL_PDES} == {"pde"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: systems.lorenz63().simulate(x0=[1.0, 2.0]), r"shape \(3,\)"),
        (lambda: systems.lorenz63().simulate(t=[0.0, 1.0, 0.5]), "ascending"),
        (lambda: systems.lorenz63().simulate(t=[0.0]), "at least two"),
        (lambda: systems.lorenz63().noisy(-1.0, 0), "cannot be negative"),
        (lambda: systems.lorenz96(n=3), "at least 4"),
        (lambda: systems.logistic_map().simulate(t=[0.0, 0.5]), "whole steps"),
        (lambda: SpectralEquation(FieldTerms().terms(), np.zeros(3), (8,), (1.0,)), "shorter"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
