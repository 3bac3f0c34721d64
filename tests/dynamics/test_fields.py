"""Equations of fields: integration by parts, noise by linearisation, covariance, and discovery with nothing told."""

from __future__ import annotations

import pickle
import re
import tracemalloc
import warnings
from dataclasses import replace
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline

from ardea.dynamics import (
    AmbiguityWarning,
    Custom,
    Discovery,
    Fourier,
    MisfitWarning,
    Polynomials,
    search,
    systems,
)
from ardea.dynamics.differences import SplineSmoother, TensorSplines
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_gaps import filled
from ardea.dynamics.field_terms import FieldTerms, Jets, noise_weights, plain, weak_form
from ardea.dynamics.fields import Fields, FieldWishes, mistakes_in, read_fields
from ardea.dynamics.search import RowsFit, Tournament, as_good, equivalents, searched
from ardea.dynamics.terms import FieldTerm, Jet
from ardea.dynamics.told import said_of_expansions, told_of
from ardea.dynamics.windows import AxisWindows, NoiseCovariance, Windows, place_windows, spectral_radii
from ardea.methods.task import ard_supports

# Integration by parts, on fields whose derivatives are known

INTERVALS = {1: (100, 40), 2: (40, 36, 24)}


def waves(n_fields, n_space, seed=0):
    """Return a function of (jet, points): exact derivatives of sums of three waves per field."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0.5, 2.0, size=(n_fields, 3, n_space + 1))
    phases = rng.uniform(0, 2 * np.pi, size=(n_fields, 3))

    def jet(which, points):
        index, orders = which[:2]
        total = 0.0
        for wave, phase in zip(numbers[index], phases[index], strict=True):
            angle = phase + sum(k * x for k, x in zip(wave, np.meshgrid(*points, indexing="ij"), strict=True))
            total = total + np.prod(wave[:-1] ** orders) * np.cos(angle + np.pi / 2 * sum(orders))
        return total

    return jet


def windows_and_jets(n_fields, n_space, seed=0, refined=1):
    """Return test functions of radius 1 on [0, 3]^n and exact derivatives; space may be refined."""
    *space, times = INTERVALS[n_space]
    shape = (*(refined * n + 1 for n in space), times + 1)
    points = [np.linspace(0, 3, n) for n in shape]
    windows, _, _ = place_windows(shape, [p[1] - p[0] for p in points], [n / 3 for n in shape])
    exact = waves(n_fields, n_space, seed)
    return windows, Jets(lambda jet: exact(jet, points))


def summed(windows, values, orders):
    values = np.broadcast_to(values, windows.grid)
    return windows.tested_in_space(windows.tested_in_time(values), orders)


def size_of(windows, values, orders):
    """Return the sum of absolute values, against which rounding and quadrature errors are measured."""
    total = np.abs(np.broadcast_to(values, windows.grid))
    for axis, order in enumerate((*orders, 0)):
        total = np.moveaxis(np.tensordot(np.abs(windows.axes[axis].matrices[order]), total, (1, axis)), 0, axis)
    return total.max()


def field_term(exponents, field, orders):
    """Return a product of powers of the fields and one derivative."""
    powers = FieldTerm(tuple((Jet(i, (0,) * len(orders)), n) for i, n in enumerate(exponents) if n))
    return powers if field is None else powers * FieldTerm.of(Jet(field, orders))


def derivative_in(term):
    """Return the order of the derivative of a term."""
    return max((sum(jet.orders) for jet, _ in term.factors), default=0)


@pytest.mark.parametrize(
    ("library", "n_fields", "n_space"),
    [(FieldTerms(4, 4), 1, 1), (FieldTerms(1, 6), 1, 1), (FieldTerms(2, 3), 1, 2), (FieldTerms(2, 3), 2, 1)],
)
def test_integration_by_parts_is_an_identity(library, n_fields, n_space):
    """Up to rounding: sums by parts are exact for polynomials, and so nearly for waves."""
    for refined in (1, 2):
        errors = errors_by_parts(library, n_fields, n_space, refined=refined)
        assert max(errors.values()) < 1e-11


@pytest.mark.parametrize("radius", [6, 8, 11, 80])
def test_sums_by_parts_are_exact_for_polynomials(radius):
    """Σ φ^(q) p = (−1)^q Σ φ p^(q), and the derivatives are those of φ where there are many samples."""
    axis = AxisWindows(n_samples=4 * radius, step=0.1, radius=radius, stride=3, first=radius)
    place = 0.1 * np.arange(-radius, radius + 1)
    for degree in range(min(20, 2 * radius - 4) + 1):
        p = np.polynomial.Polynomial.basis(degree, domain=[-0.1 * radius, 0.1 * radius])
        for q in range(5):
            expected = (-1) ** q * axis.shapes[0] @ (p.deriv(q)(place) if q else p(place))
            size = np.abs(axis.shapes[q]) @ np.abs(p(place))
            assert abs(axis.shapes[q] @ p(place) - expected) < 1e-10 * size
    bump = np.polynomial.Polynomial([1, 0, -1]) ** 8
    for q in range(1, 5 if radius == 80 else 1):
        expected = bump.deriv(q)(place / place[-1]) / np.linalg.norm(bump(place / place[-1])) / place[-1] ** q
        np.testing.assert_allclose(axis.shapes[q], expected, atol=1e-3 * np.abs(expected).max())


def errors_by_parts(library, n_fields, n_space, refined):
    """Return for every term the difference of both sides, relative to the sum of absolute values."""
    windows, jets = windows_and_jets(n_fields, n_space, refined=refined)
    errors = {}
    for term in library.terms(n_fields, n_space):
        direct = summed(windows, jets.monomial(term), (0,) * n_space)
        parts = [(c, jets.monomial(m), orders) for (orders, m), c in weak_form(term, n_space).items()]
        by_parts = sum(c * summed(windows, values, orders) for c, values, orders in parts)
        scale = sum(abs(c) * size_of(windows, values, orders) for c, values, orders in parts)
        errors[term] = np.max(np.abs(by_parts - direct)) / scale
    return errors


def test_closed_form_of_the_fourth_derivative():
    """u^p u_xxxx: the lead, and what is left with u_x and u_xx, for p = 4."""
    p = 4
    u, ux, uxx = Jet(0, (0,)), Jet(0, (1,)), Jet(0, (2,))
    expected = {
        ((4,), FieldTerm(((u, p + 1),))): 1 / (p + 1),
        ((2,), FieldTerm(((u, p - 1), (ux, 2)))): -2 * p,
        ((0,), FieldTerm(((u, p - 1), (uxx, 2)))): p,
        ((1,), FieldTerm(((u, p - 2), (ux, 3)))): -4 * p * (p - 1) / 3,
        ((0,), FieldTerm(((u, p - 3), (ux, 4)))): -p * (p - 1) * (p - 2) / 3,
    }
    found = weak_form(field_term((p,), 0, (4,)))
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key]) for key in expected)


def test_closed_form_of_the_third_derivative():
    p = 3
    u, ux = Jet(0, (0,)), Jet(0, (1,))
    expected = {
        ((3,), FieldTerm(((u, p + 1),))): -1 / (p + 1),
        ((1,), FieldTerm(((u, p - 1), (ux, 2)))): 3 * p / 2,
        ((0,), FieldTerm(((u, p - 2), (ux, 3)))): p * (p - 1) / 2,
    }
    found = weak_form(field_term((p,), 0, (3,)))
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key]) for key in expected)


def test_half_of_the_derivatives_go_to_the_test_function():
    for term in FieldTerms(4, 6).terms():
        left = [derivative_in(monomial) for _, monomial in weak_form(term)]
        assert max(left) <= derivative_in(term) // 2


def test_linear_terms_leave_no_derivative():
    for term in FieldTerms(0, 4).terms(2, 2):
        ((orders, monomial),) = weak_form(term, 2)
        assert orders == (term.factors[0][0].orders if term.factors else (0, 0))
        assert derivative_in(monomial) == 0


# Noise

PROBED = [
    (field_term((2,), 0, (4,)), 1, 1),
    (field_term((3,), None, (0,)), 1, 1),
    (field_term((1,), 0, (1, 2)), 1, 2),
    (field_term((1, 2), 1, (2,)), 2, 1),
]


@pytest.mark.parametrize(("term", "n_fields", "n_space"), PROBED)
def test_noise_weights_are_the_derivative_of_the_weak_term(term, n_fields, n_space):
    """The term is a polynomial of the fields, so a central difference of small step shows its slope."""
    windows, jets = windows_and_jets(n_fields, n_space, seed=1, refined=2)
    _, errors = windows_and_jets(n_fields, n_space, seed=2, refined=2)
    step = 1e-4

    def value(sign):
        moved = Jets(lambda jet: jets(jet) + sign * step * errors(jet))
        return summed(windows, moved.monomial(term), (0,) * n_space)

    slope = (value(1) - value(-1)) / (2 * step)
    linear = sum(
        coefficient * summed(windows, jets.monomial(monomial) * errors(Jet(index, (0,) * n_space)), orders)
        for (index, orders), polynomial in noise_weights(term).items()
        for monomial, coefficient in polynomial.items()
    )
    assert np.max(np.abs(slope - linear)) < 1e-5 * np.max(np.abs(slope))


def dense_rows(windows, weights, derived):
    """Return W with one column per sample, function by function."""
    rows = []
    for time, *space in np.ndindex(windows.lattice[-1], *windows.lattice[:-1]):
        index = (*space, time)
        pieces = [(orders, 0, weight) for orders, weight in weights.items()]
        if derived:
            pieces.append(((0,) * (len(windows.axes) - 1), 1, 1.0))
        row = np.zeros(windows.grid)
        for orders, time_order, weight in pieces:
            bump = 1.0
            for axis, (i, order) in enumerate(zip(index, (*orders, time_order), strict=True)):
                bump = np.multiply.outer(bump, windows.axes[axis].matrices[order][i])
            row -= weight * bump
        rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize(("grid", "orders"), [((40, 30), [(0,), (3,)]), ((17, 20, 16), [(0, 1), (2, 0)])])
def test_covariance_equals_the_dense_one(grid, orders, derived):
    rng = np.random.default_rng(0)
    windows, _, _ = place_windows(grid, [0.1] * len(grid), [6.0] * len(grid))
    weights = {order: rng.normal(size=grid) for order in orders}
    smoothers = [SplineSmoother(np.arange(float(n)), n // 2) for n in grid]
    projection = np.eye(1)
    for basis in [*(smoother.basis for smoother in smoothers[:-1]), np.eye(grid[-1])]:
        projection = np.kron(projection, basis @ basis.T)
    W = dense_rows(windows, weights, derived)
    expected = np.triu(W @ projection @ W.T)
    found = np.triu(NoiseCovariance(windows, TensorSplines(smoothers)).upper(weights, derived))
    assert np.max(np.abs(found - expected)) < 1e-12 * np.max(expected)


def test_covariance_of_wide_windows_takes_some_of_the_times():
    """Where weights are smooth, every fourth of the samples is as good as all of them."""
    grid, x, t = (40, 90), np.arange(40.0)[:, None], np.arange(90.0)
    windows, _, _ = place_windows(grid, [0.1] * 2, [6.0, 20.0])
    windows = replace(windows, axes=(windows.axes[0], AxisWindows(90, 0.1, 20, 7, 20)))
    weights = {(0,): np.sin(0.1 * x - 0.07 * t), (1,): np.cos(0.05 * x * t / 40)}
    smoothers = [SplineSmoother(np.arange(float(n)), n // 2) for n in grid]
    basis, W = smoothers[0].basis, dense_rows(windows, weights, True)
    expected = np.triu(W @ np.kron(basis @ basis.T, np.eye(90)) @ W.T)
    found = np.triu(NoiseCovariance(windows, TensorSplines(smoothers)).upper(weights, True))
    assert np.max(np.abs(found - expected)) < 1e-4 * np.max(expected)


@pytest.mark.parametrize("kept", [None, np.array([0, 3, 4, 7])])
def test_spreading_is_the_transpose_of_testing(kept):
    rng = np.random.default_rng(1)
    windows, _, _ = place_windows((30, 40), (0.2, 0.1), (6.0, 8.0))
    windows = replace(windows, kept=kept)
    values, weights = rng.normal(size=windows.grid), rng.normal(size=windows.n_functions)
    forward = windows.tested_in_space(windows.tested_in_time(values, 1), (2,))
    assert weights @ forward == pytest.approx(np.sum(values * windows.spread(weights, (2, 1))))


# Splines and windows


def test_noise_of_a_field_is_estimated_without_bias():
    """E s² = s² when û spans the signal: N − k_x k_t degrees of freedom are left."""
    x, t = np.linspace(0, 1, 60), np.linspace(0, 2, 50)
    signal = np.outer(x**3 - x, 1 + t**2)
    splines = TensorSplines([SplineSmoother(x, 20), SplineSmoother(t, 15)])
    rng = np.random.default_rng(8)

    def smooth(u):
        return splines.derivative(splines.coefficients(u), (0,))

    draws = [signal + 0.3 * rng.normal(size=(60, 50)) for _ in range(40)]
    estimates = [splines.noise(u, splines.coefficients(u)) ** 2 for u in draws]
    error = 0.09 * np.sqrt(2 / (60 * 50 - 300) / 40)
    assert np.mean(estimates) == pytest.approx(0.09, abs=4 * error)
    np.testing.assert_allclose(smooth(signal), signal, atol=1e-11)
    assert splines.noise(signal, splines.coefficients(signal)) < 1e-10


def test_thinned_functions_are_the_same_functions():
    """Sums of a smooth field agree, up to the factor √D of unit norms and the error of 10 samples per radius.

    A constant, however large, does not add to it: against derivatives it vanishes.
    """
    x, t = np.linspace(0, 10, 240), np.linspace(0, 5, 300)
    u = np.sin(1.3 * x[:, None] - 2 * t) + np.cos(0.7 * x[:, None] + t)
    windows, thinned, factors = place_windows(u.shape, (x[1] - x[0], t[1] - t[0]), (35.0, 42.0))
    assert factors == (3, 4)
    for order, error in ((0, 1e-8), (2, 2e-6), (4, 2e-3)):
        full = windows.tested_in_space(windows.tested_in_time(u), (order,))
        if order:
            far = windows.tested_in_space(windows.tested_in_time(u + 1e6), (order,))
            np.testing.assert_allclose(far, full, atol=1e-6 * np.max(np.abs(full)))
        thin = thinned.tested_in_space(thinned.tested_in_time(u[::3, ::4]), (order,))
        assert np.max(np.abs(full - np.sqrt(12) * thin)) < error * np.max(np.abs(full))


def test_windows_stay_inside_and_cover_the_axis():
    for n, radius in product((29, 64, 201), (6.0, 9.4)):
        for axis in place_windows((n, n), (1.0, 1.0), (radius, radius))[0].axes:
            first, last = axis.starts[[0, -1]]
            assert first >= 0
            assert last + axis.width <= n
            assert first + (n - last - axis.width) < axis.stride + 2 * axis.radius


def test_derivatives_of_the_window():
    axis = AxisWindows(401, 0.01, 200, 50, 200)
    for order in range(1, 6):
        numerical = np.gradient(axis.shapes[order - 1], 0.01, edge_order=2)
        assert np.max(np.abs(numerical - axis.shapes[order])) < 1e-2 * np.max(np.abs(axis.shapes[order]))


def test_radius_follows_the_frequency():
    x, t = np.linspace(0, 100, 400), np.linspace(0, 100, 400)
    slow, fast = (np.sin(k * x[:, None]) * np.cos(k * t) for k in (1.0, 2.0))
    for one, other in zip(spectral_radii([slow], [400, 400]), spectral_radii([fast], [400, 400]), strict=True):
        assert one / other == pytest.approx(2, rel=0.15)


def test_radius_keeps_its_limits():
    """At most a tenth of the axis; but four splines and ten points, up to a sixth; and at least six points."""
    slow = np.sin(np.linspace(0, 3, 120)[:, None] + np.linspace(0, 3, 300))
    assert spectral_radii([slow], [120, 300]) == pytest.approx((12, 30))
    assert spectral_radii([slow], [30, 30]) == pytest.approx((16, 40))
    assert spectral_radii([slow], [8, 8]) == pytest.approx((20, 50))
    fast = np.sin(3.0 * np.arange(120)[:, None] + 3.0 * np.arange(300))
    assert spectral_radii([fast], [120, 300]) == (10, 10)
    assert spectral_radii([fast[:48, :30]], [48, 30]) == (8, 6)


# The equation at its true support


@cache
def noisy(name, noise, seed=0):
    system = getattr(systems, name)()
    t, u = system.noisy(noise, seed)
    return Fields(u, system.space, t)


def true_support(system):
    return tuple(np.flatnonzero(system.true_coefficients()[0]).tolist())


def noise_ratio(equation, fit):
    """Return the noise of the fields, as the residual shows it, in units of s."""
    A, z = equation.system(fit)
    return np.sqrt(np.mean((z - A[:, list(fit.support)] @ fit.coefficients) ** 2))


def standard_errors(equation, fit):
    A = equation.system(fit)[0][:, list(fit.support)]
    return np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * fit.rss / (equation.n_rows - len(fit.support)))


def test_noise_of_the_rows_is_the_noise_of_the_field():
    system = systems.burgers()
    equation = FieldEquation([noisy("burgers", 0.1)], system.library)
    ratio = noise_ratio(equation, equation.fitted(true_support(system)))
    assert ratio == pytest.approx(1, abs=4 / np.sqrt(2 * equation.n_rows))


def test_intervals_cover():
    """Errors in units of their standard errors, over draws of the noise, have mean square 1."""
    system = systems.advection_diffusion()
    true, support = system.true_coefficients()[0], true_support(system)
    scores = []
    for seed in range(20):
        equation = FieldEquation([noisy("advection_diffusion", 0.1, seed)], FieldTerms(1, 2))
        narrow = tuple(FieldTerms(1, 2).names().index(system.library.names()[j]) for j in support)
        fit = equation.fitted(narrow)
        deviation = standard_errors(equation, fit)
        scores.append((fit.coefficients - true[list(support)]) / deviation)
    assert 0.6 < np.mean(np.square(scores)) < 1.6


def test_units_do_not_matter():
    """Scaling u, x and t scales the coefficients and leaves the whitened fit as it is."""
    system = systems.burgers()
    t, u = system.noisy(0.1, 0)
    support = true_support(system)
    c, length, time = 100.0, 5.0, 0.01
    data = Fields(u, system.space, t), Fields(c * u, (length * system.space[0],), time * t)
    equations = [FieldEquation([one], system.library) for one in data]
    one, other = (equation.fitted(support) for equation in equations)
    u_ux, uxx = one.coefficients
    assert other.coefficients == pytest.approx([u_ux * length / (c * time), uxx * length**2 / time], rel=1e-6)
    assert other.rss == pytest.approx(one.rss, rel=1e-6)
    assert noise_ratio(equations[1], other) == pytest.approx(noise_ratio(equations[0], one), rel=1e-6)


def test_correction_for_errors_in_the_terms():
    """At 50 % noise the diffusion of the first pass is biased; the passes remove the bias."""
    system = systems.burgers()
    equation = FieldEquation([noisy("burgers", 0.5)], system.library)
    support = true_support(system)
    true = system.true_coefficients()[0][list(support)]
    fit = equation.fitted(support)
    deviation = standard_errors(equation, fit)
    assert np.all(np.abs(fit.coefficients - true) < 4 * deviation)
    assert equation.fitted(support, start=fit).coefficients == pytest.approx(fit.coefficients, rel=2e-3)


def test_rough_terms_do_not_explain_noise_away():
    """u² u_xxxx amplifies noise; were all noise white, its rows would seem less noisy than the field (ratio .75)."""
    system = systems.burgers()
    names = system.library.names()
    equation = FieldEquation([noisy("burgers", 1.0, seed=1000)], system.library)
    rough = equation.fitted((names.index("u"), names.index("u^2 u_xxxx")))
    true = equation.fitted(true_support(system))
    assert rough.rss > true.rss


def test_passes_do_not_end_while_the_fit_still_improves():
    """At 100 % noise three passes leave a true model far above its noise."""
    system = systems.swift_hohenberg()
    equation = FieldEquation([noisy("swift_hohenberg", 1.0, seed=1001)], system.library)
    quick, full = (equation.fitted(true_support(system), passes=passes) for passes in (3, None))
    assert equation.n_rows * np.log(quick.rss / full.rss) < 10


@pytest.mark.parametrize(("order", "root"), [(1, 1.0), (2, 0.5)])
def test_growth_of_short_waves_is_that_of_the_linear_equation(order, root):
    """∂_t^m u = a u_xx + b u_xxxx + c u_x: waves e^(iκx) grow with the rate (b κ⁴ − a κ²)^(1/m), or decay."""
    x, t = np.linspace(0, 20, 120), np.linspace(0, 4, 100)
    u = sum(np.sin(k * (x[:, None] - t)) for k in (0.5, 1.0, 1.7))
    data, library = Fields(u + 0.01 * np.random.default_rng(0).normal(size=u.shape), (x,), t), FieldTerms(1, 4)
    equation = FieldEquation([data], library, order=order)
    support = tuple(map(library.names().index, ("u_x", "u_xx", "u_xxxx")))
    wave = np.pi * data.splines[0].smoothers[0].n_basis / 20
    for a, b in ((-0.1, -0.01), (0.1, 0.03), (0.2, -0.01), (-0.3, 0.1)):
        fit = RowsFit(support, np.array([0.7, a, b]), 1.0)
        rate = max(b * wave**4 - a * wave**2, 0.0)
        assert equation.runs[0].growth(fit) == pytest.approx(4 * rate**root, rel=1e-9)


def test_noise_that_hides_high_derivatives_is_whitened_away():
    """At 30 % noise u_xxxx is hidden where it is looked for with the noise of u_t alone, and (u^3)_xx with it."""
    system = systems.cahn_hilliard()
    equation = FieldEquation([noisy("cahn_hilliard", 0.3, seed=2000)], system.library)
    names, result = system.library.names(), searched(equation, ard_supports)
    assert [names[j] for j in result.support] == ["u_xx", "u_xxxx", "(u^3)_xx"]
    assert equation.stands(result.fit)


def test_heat_whose_second_mode_dies_is_not_taken_for_decay():
    """u_t = −1.2 u explains what is left of two modes nearly as well; u_xx alone scores better, and is always tried."""
    x, t = np.linspace(0, 10, 40), np.linspace(0, 4, 40)
    rates = 3 * (np.array([0.2, 0.4]) * np.pi) ** 2
    u = np.outer(np.cos(0.2 * np.pi * x), np.exp(-rates[0] * t))
    u += 0.5 * np.outer(np.sin(0.4 * np.pi * x), np.exp(-rates[1] * t))
    for seed in (113, 115):
        data = Fields(u + 0.07 * np.random.default_rng(seed).normal(size=u.shape), (x,), t)
        assert [FieldTerms().names()[j] for j in found(data, FieldTerms())[1].support] == ["u_xx"]


def test_system_at_a_fit_contains_the_fit():
    system = systems.burgers()
    equation = FieldEquation([noisy("burgers", 0.1)], system.library)
    support = true_support(system)
    fit = equation.fitted(support)
    A, z = equation.system(fit)
    assert A.shape == (equation.n_rows, equation.n_terms)
    refit = np.linalg.lstsq(A[:, support], z, rcond=None)[0]
    assert refit == pytest.approx(fit.coefficients, rel=1e-3)


# Discovery


def found(data, library, field=0):
    tournament = Tournament(FieldEquation([data], library, field), ard_supports)
    return tournament, tournament.run()[0]


@cache
def found_in(name, noise):
    return found(noisy(name, noise, seed=7), getattr(systems, name)().library)


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("korteweg_de_vries", 0.0),
        ("burgers", 0.001),
        ("burgers", 0.25),
        ("swift_hohenberg", 0.1),
        ("korteweg_de_vries", 0.25),
    ],
)
def test_exact_terms(name, noise):
    system = getattr(systems, name)()
    _, best = found_in(name, noise)
    assert best.support == true_support(system)
    true = system.true_coefficients()[0][list(best.support)]
    assert np.linalg.norm(best.coefficients - true) < 0.4 * noise * np.linalg.norm(true) + 1e-4


def test_exact_terms_on_a_part_of_the_domain():
    system = systems.korteweg_de_vries()
    t, u = system.noisy(0.1, 3)
    middle = slice(51, 205)
    _, best = found(Fields(u[middle], (system.space[0][middle],), t), system.library)
    assert best.support == true_support(system)


def test_exact_terms_without_noise():
    """Truncation errors of splines and sums, 1e-6 of the field, do not bring terms in."""
    system = systems.burgers()
    _, best = found(noisy("burgers", 0.0), system.library)
    assert best.support == true_support(system)
    assert best.coefficients == pytest.approx([-1, 0.1], rel=1e-5)


def test_two_space_dimensions():
    """u_t = −.8 u_x + .5 u_y + .1(u_xx + u_yy), a sum of waves that move and decay."""
    rng = np.random.default_rng(0)
    x, y, t = np.linspace(0, 10, 36), np.linspace(0, 8, 32), np.linspace(0, 3, 36)
    u = np.zeros((36, 32, 36))
    for a, b, phase in zip(*rng.normal(size=(2, 8)), rng.uniform(0, 6, 8), strict=True):
        angle = a * (x[:, None, None] - 0.8 * t) + b * (y[:, None] + 0.5 * t) + phase
        u += np.exp(-0.1 * (a * a + b * b) * t) * np.cos(angle)
    u += 0.05 * u.std() * rng.normal(size=u.shape)
    library = FieldTerms(1, 2)
    _, best = found(Fields(u, (x, y), t), library)
    names = library.names(["u"], ["x", "y"])
    assert [names[j] for j in best.support] == ["u_x", "u_y", "u_xx", "u_yy"]
    assert best.coefficients == pytest.approx([-0.8, 0.5, 0.1, 0.1], abs=0.01)


@cache
def schroedinger():
    """Return x, t and (u, v) of i ψ_t = −½ψ_xx − |ψ|²ψ, ψ = u + iv, by splitting."""
    n, length, step, every = 128, 20.0, 0.001, 40
    x = length * np.arange(n) / n
    half = np.exp(-0.25j * (2 * np.pi * np.fft.fftfreq(n, length / n)) ** 2 * step)
    angle = 2 * np.pi * x / length
    psi = 1 + 0.3 * np.cos(angle) + 0.4j * np.sin(2 * angle) + 0.3 * np.exp(-3j * angle)
    states = []
    for i in range(100 * every):
        if i % every == 0:
            states.append(psi)
        psi = np.fft.ifft(half * np.fft.fft(psi))
        psi = psi * np.exp(1j * np.abs(psi) ** 2 * step)
        psi = np.fft.ifft(half * np.fft.fft(psi))
    psi = np.array(states).T
    return x, every * step * np.arange(100), np.stack([psi.real, psi.imag], axis=-1)


def test_two_fields_with_different_noise():
    """u_t = −½v_xx − (u² + v²)v and v_t = ½u_xx + (u² + v²)u; v is ten times as noisy as u."""
    x, t, fields = schroedinger()
    noise = np.array([0.02, 0.2]) * np.random.default_rng(0).normal(size=fields.shape)
    data = Fields(fields + noise, (x,), t)
    assert data.noise == pytest.approx([0.02, 0.2], rel=0.05)
    library = FieldTerms(3, 2)
    names = library.names(["u", "v"])
    expected = [["u^2 v", "v^3", "v_xx"], ["u^3", "u v^2", "u_xx"]]
    for field, terms in enumerate(expected):
        _, best = found(data, library, field)
        assert [names[j] for j in best.support] == terms
        assert np.abs(best.coefficients) == pytest.approx([1, 1, 0.5], abs=0.1)


def test_a_single_wave_has_rivals():
    """One soliton solves u_t = −c u_x and u_t = −u u_x − u_xxx; the data cannot tell."""
    x, t, speed = np.linspace(0, 40, 200), np.linspace(0, 10, 150), 1.5
    u = 3 * speed / np.cosh(np.sqrt(speed) / 2 * (x[:, None] - 10 - speed * t)) ** 2
    u = u + 0.01 * u.std() * np.random.default_rng(0).normal(size=u.shape)
    library = FieldTerms(4, 4)
    names = library.names()
    tournament, best = found(Fields(u, (x,), t), library)
    assert [names[j] for j in best.support] == ["u_x"]
    assert ["u u_x", "u_xxx"] in [[names[j] for j in rival.support] for rival in equivalents(tournament, best)]


X, T = np.meshgrid(np.linspace(-15, 25, 160), np.linspace(0, 8, 80), indexing="ij")
SINGLE_WAVES = {
    "front of u_t = u_xx + u - u^2": (1 + np.exp((X - 5 / np.sqrt(6) * T) / np.sqrt(6))) ** -2.0,
    "soliton of u_t = -6 u u_x - u_xxx": 0.5 / np.cosh(0.5 * (X - T)) ** 2,
    "soliton of u_t = -6 u^2 u_x - u_xxx": 1 / np.cosh(X - T),
    "shock of u_t = -u u_x + u_xx": 1 - np.tanh((X - T) / 2),
    "any shape": np.exp(-((X - T) ** 2)) + 0.5 * np.exp(-((X - T + 4) ** 2) / 3) + 0.3 * np.sin(X - T),
}


@pytest.mark.parametrize("noise", [0, 0.01, 0.1])
@pytest.mark.parametrize("name", SINGLE_WAVES)
def test_a_shape_that_only_moves_is_told(name, noise):
    """Without noise too, and where the law has two terms more than u_t = −c u_x."""
    u = SINGLE_WAVES[name]
    u = u + noise * u.std() * np.random.default_rng(0).normal(size=u.shape)
    with pytest.warns(AmbiguityWarning, match="u is one shape that only moves") as told:
        Discovery().fit(u, T[0], space=(X[:, 0],))
    assert len(told) == 1


def test_waves_of_two_speeds_do_not_only_move():
    """The same solitons, a slow and a fast one, as two runs."""
    runs = [speed / 2 / np.cosh(np.sqrt(speed) / 2 * (X - speed * T)) ** 2 for speed in (1.0, 1.6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Discovery().fit(runs, T[0], space=(X[:, 0],))
    assert model.equations_[0].terms == ("u u_x", "u_xxx")


@pytest.mark.parametrize("kink", [True, False])
def test_a_kink_only_moves_and_two_waves_do_not(kink):
    """u_tt = c² u_xx holds for waves that run both ways as well."""
    u = np.arctan(np.exp(1.25 * (X - 0.6 * T))) if kink else np.exp(-((X - T) ** 2)) + np.exp(-((X - 8 + T) ** 2) / 2)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        Discovery(FieldTerms(3, 2) + Custom([np.sin]), derivative_order=2).fit(4 * u, T[0], space=(X[:, 0],))
    assert any("only moves" in str(one.message) for one in raised) == kink


def test_many_waves_have_no_rivals():
    assert equivalents(*found_in("korteweg_de_vries", 0.25)) == []


# Second derivatives in time, conserved quantities, complex fields


@cache
def klein_gordon():
    """Return x, t and u of u_tt = u_xx − u − u³, periodic, by the leapfrog rule at a fortieth of the step."""
    n, length, step, every = 96, 10.0, 0.002, 40
    x, u = length * np.arange(n) / n, np.cos(2 * np.pi * np.arange(n) / n) + 0.6 * np.sin(4 * np.pi * np.arange(n) / n)
    waves = -((2 * np.pi / length * np.arange(n // 2 + 1)) ** 2)

    def force(u):
        return np.fft.irfft(waves * np.fft.rfft(u), n) - u - u**3

    speed, states = 0.5 * step * force(u), []
    for i in range(100 * every):
        if i % every == 0:
            states.append(u)
        u = u + step * speed
        speed = speed + step * force(u)
    return x, every * step * np.arange(100), np.array(states).T


def test_second_derivatives_in_time():
    x, t, u = klein_gordon()
    u = u + 0.02 * u.std() * np.random.default_rng(0).normal(size=u.shape)
    model = Discovery(derivative_order=2).fit(u, t, space=(x,))
    (equation,) = model.equations_
    assert (equation.left.text, equation.left.latex, equation.terms) == ("(u)_tt", "u_{tt}", ("u", "u^3", "u_xx"))
    assert np.all(np.abs(equation.coefficients - [-1, -1, 1]) < 4 * equation.std)
    assert model.misfit_[0] == pytest.approx(1, abs=4 / np.sqrt(2 * equation.degrees))
    assert model.predict(u[:, 0]).shape == (96,)
    with pytest.raises(ValueError, match="a last axis of u, u_t"):
        model.simulate(u[:, 0], t[:3])


@pytest.mark.parametrize("n_axes", [1, 2])
def test_derivatives_of_powers_are_sums_of_products(n_axes):
    """By the product rule: their noise is that of the sum, and so are their values; integrated, one sum is left."""
    library, jet = FieldTerms(3, 2, conservative=True), waves(2, n_axes)
    windows, jets = windows_and_jets(2, n_axes)
    derived = [term for term in library.terms(2, n_axes) if term.derived_power]
    assert len(derived) == 4 * (1 if n_axes == 1 else 3)
    for term in derived:
        whole = {}
        for monomial, number in plain(term).items():
            for key, weights in noise_weights(monomial).items():
                for one, c in weights.items():
                    whole.setdefault(key, {}).setdefault(one, 0.0)
                    whole[key][one] += number * c
        left = {key: {one: c for one, c in weights.items() if abs(c) > 1e-12} for key, weights in whole.items()}
        assert {key: weights for key, weights in left.items() if weights} == noise_weights(term)
        direct = summed(windows, sum(c * jets.monomial(one) for one, c in plain(term).items()), (0,) * n_axes)
        (((orders, power), sign),) = weak_form(term, n_axes).items()
        by_parts = sign * summed(windows, jets.monomial(power), orders)
        assert np.max(np.abs(direct - by_parts)) < 1e-4 * size_of(windows, jets.monomial(power), orders)
    points = [np.linspace(0, 1, 5)] * (n_axes + 1)
    fields = [jet(Jet(i, (0,) * n_axes), points) for i in range(2)]
    values = library.evaluate(fields, lambda i, orders: jet(Jet(i, orders), points), n_axes=n_axes)
    first = library.terms(2, n_axes).index(derived[0])
    expected = sum(
        c * np.prod([jet(one, points) ** n for one, n in m.factors], axis=0) for m, c in plain(derived[0]).items()
    )
    assert values[:, first] == pytest.approx(expected.ravel())


@cache
def porous_medium():
    """Return x, t and u of u_t = (u²)_xx, periodic, by the midpoint rule."""
    n, length, step, every = 64, 10.0, 0.001, 20
    angle = 2 * np.pi * np.arange(n) / n
    u, states = 1 + 0.5 * np.cos(angle) + 0.3 * np.sin(2 * angle), []
    waves = -((2 * np.pi / length * np.arange(n // 2 + 1)) ** 2)
    for i in range(90 * every):
        if i % every == 0:
            states.append(u)
        half = u + 0.5 * step * np.fft.irfft(waves * np.fft.rfft(u**2), n)
        u = u + step * np.fft.irfft(waves * np.fft.rfft(half**2), n)
    return length * np.arange(n) / n, every * step * np.arange(90), np.array(states).T


def test_a_conserved_quantity():
    """(u²)_xx is one term; that 2 u u_xx + 2 u_x² is the same is no ambiguity. Without it nothing fits."""
    x, t, u = porous_medium()
    u = u + 0.01 * u.std() * np.random.default_rng(2).normal(size=u.shape)
    model = Discovery(FieldTerms(4, 4, conservative=True)).fit(u, t, space=(x,))
    (equation,) = model.equations_
    assert equation.terms == ("(u^2)_xx",)
    assert ("u u_xx", "u_x^2") not in equation.equivalents
    assert abs(equation.coefficients[0] - 1) < 4 * equation.std[0]
    assert equation.latex().endswith("(u^{2})_{xx}")


def test_complex_fields_are_parted_on_request():
    x, t, fields = schroedinger()
    rng = np.random.default_rng(0)
    psi = fields[..., 0] + 1j * fields[..., 1] + 0.01 * (rng.normal(size=(128, 100)) + 1j * rng.normal(size=(128, 100)))
    given = {"t": t, "space": (x,), "feature_names": ["p", "q"]}
    model = Discovery(FieldTerms(3, 2)).fit(psi, **given, split=True)
    assert [one.terms for one in model.equations_] == [("p^2 q", "q^3", "q_xx"), ("p^3", "p q^2", "p_xx")]
    with pytest.raises(ValueError, match=r"split=True\) takes its real and its imaginary part"):
        Discovery().fit(psi, **given)
    with pytest.raises(ValueError, match="this one is real"):
        Discovery().fit(psi.real, **given, split=True)
    with pytest.raises(ValueError, match="one complex field"):
        Discovery().fit(np.stack([psi, psi], axis=-1), **given, split=True)


@cache
def in_a_potential():
    """Return x, t, V and ψ of i ψ_t = −½ψ_xx + Vψ, V = 1 + cos(2πx/L), by splitting."""
    n, length, step, every = 96, 12.0, 0.002, 25
    angle = 2 * np.pi * np.arange(n) / n
    V = 1 + np.cos(angle)
    half = np.exp(-0.25j * (2 * np.pi * np.fft.fftfreq(n, length / n)) ** 2 * step)
    psi, states = 1 + 0.4 * np.cos(angle) + 0.3j * np.sin(2 * angle) + 0.3 * np.exp(-3j * angle), []
    for i in range(90 * every):
        if i % every == 0:
            states.append(psi)
        psi = np.fft.ifft(half * np.fft.fft(np.fft.ifft(half * np.fft.fft(psi)) * np.exp(-1j * V * step)))
    return length * np.arange(n) / n, every * step * np.arange(90), V, np.array(states).T


def test_known_fields_and_equations_wanted():
    """u_t = −½v_xx + V v: V has no noise, no derivative and no equation; given for every time it is the same."""
    x, t, V, psi = in_a_potential()
    rng = np.random.default_rng(0)
    psi = psi + 0.01 * (rng.normal(size=psi.shape) + 1j * rng.normal(size=psi.shape))
    model = Discovery(FieldTerms(2, 2)).fit(psi, t, space=(x,), split=True, known_fields={"V": V}, equations=["u"])
    (equation,) = model.equations_
    assert equation.terms == ("v V", "v_xx")
    assert np.all(np.abs(equation.coefficients - [1, -0.5]) < 4 * equation.std)
    assert not any("V_x" in name for name in model.get_feature_names())
    assert model.misfit_.shape == (1,)
    fields = np.stack([psi.real, psi.imag, np.broadcast_to(V[:, None], psi.shape)], axis=-1)
    assert model.predict(fields[:, 0]).shape == (96,)
    both = {"V": np.broadcast_to(V[:, None], psi.shape)}
    again = Discovery(FieldTerms(2, 2)).fit(psi, t, space=(x,), split=True, known_fields=both, equations=["u"])
    assert again.equations_[0].coefficients == pytest.approx(equation.coefficients, rel=1e-9)


def test_known_fields_of_several_runs():
    """u_t = −u_x + 0.5 f with a pushing f of its own in every run; a list of another length is refused."""
    x, t, L = np.arange(64) * 2 * np.pi / 64, np.linspace(0, 2, 60), FieldTerms(1, 2)
    runs, pushes = [], []
    for shift, n in ((0.0, 40), (0.7, 60)):
        moving, times = x[:, None] - t[:n], t[:n]
        f = np.cos(2 * moving + shift) * np.cos(3 * times)
        u = np.sin(moving + shift) + 0.4 * np.cos(3 * moving) + np.cos(2 * moving + shift) * np.sin(3 * times) / 6
        runs.append(u + 0.002 * np.random.default_rng(n).normal(size=u.shape))
        pushes.append(f)
    model = Discovery(L).fit(runs, [t[:40], t], space=(x,), known_fields={"f": pushes})
    assert set(model.equations_[0].terms) == {"u_x", "f"}
    assert np.abs(model.equations_[0].coefficients) == pytest.approx([0.5, 1.0], abs=0.01)
    with pytest.raises(ValueError, match="f is a list of 3 arrays, and there are 2 runs"):
        Discovery(L).fit(runs, [t[:40], t], space=(x,), known_fields={"f": [*pushes, pushes[0]]})


def test_fields_that_are_the_same_are_told():
    t, u = systems.burgers().noisy(0.01, seed=0)
    x = systems.burgers().space[0]
    assert (
        "u and v are the same but for a factor of 2 at every point" in Fields(np.stack([u, 2 * u], -1), (x,), t).told[0]
    )
    assert "V is 1 + u at every point" in Fields(u, (x,), t, known={"V": u + 1}).told[0]
    with pytest.raises(ValueError, match="g is constant, so every term with it repeats one without it"):
        Fields(u, (x,), t, known={"g": np.full(x.size, 9.81)})


@pytest.mark.parametrize(
    "asked", [{"noise_std": 0.1}, {"noise": "counts"}, {"false_terms": 0.1}, {"known": {"u": {"u": 1}}}]
)
@pytest.mark.parametrize("labelled", [True, False])
def test_what_fields_do_not_have_is_refused(asked, labelled):
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    coordinates = {"x": system.space[0], "t": t}
    given = (xr.DataArray(u, coordinates, ("x", "t")), None, None) if labelled else (u, t, system.space)
    with pytest.raises(ValueError, match="noise and noise_std are for states"):
        Discovery(**asked).fit(given[0], given[1], space=given[2])


def test_models_of_fields_can_be_pickled():
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    model = Discovery().fit(u, t, space=system.space)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.equations() == model.equations()
    assert np.array_equal(copy.simulate(t=t), model.simulate(t=t))
    assert np.array_equal(copy.residuals()[0], model.residuals()[0])


def test_data_without_noise_are_not_said_to_misfit():
    """What splines leave of every fourth point is no noise that an equation could leave."""
    system = systems.advection_diffusion()
    t, u = system.noisy(0, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Discovery().fit(u[::4, ::4], t[::4], space=(system.space[0][::4],))
    assert model.misfit_[0] < 0.5
    assert set(model.equations_[0].terms) == set(system.true_terms[0])


@pytest.mark.parametrize("every", [(1, 4), (2, 6), (4, 1), (6, 6)])
def test_a_shock_on_any_grid_is_no_mistake(every):
    _, u = systems.inviscid_burgers().noisy(0.01, seed=1)
    assert not len(mistakes_in(u[:: every[0], :: every[1]]))


def test_what_is_said_of_fields_is_checked():
    x, t = np.linspace(0, 1, 60), np.linspace(0, 1, 50)
    u = np.sin(9 * x[:, None] + 5 * t)
    for more, message in [
        ({"equations": ["w"]}, r"measured \(u\), got \['w'\]"),
        ({"known_fields": {"V": x[:5]}}, r"known field V must have the shape \(60, 50\), or \(60,\)"),
        ({"known_fields": {"u": x}}, "different names"),
        ({"known_fields": {"V": 0 * x}}, "field V is constant"),
        ({"u": t}, "see known_fields"),
    ]:
        with pytest.raises(ValueError, match=message):
            Discovery().fit(u, t, space=(x,), **more)
    with pytest.raises(ValueError, match="are for fields"):
        Discovery().fit(u.T, t, equations=["x0"])


def test_two_candidates_of_one_name_are_refused():
    x, t = np.linspace(0, 1, 60), np.linspace(0, 1, 50)
    u = np.stack([np.sin(9 * x[:, None] + 5 * t), np.cos(7 * x[:, None] - 3 * t)], axis=-1)
    with pytest.raises(ValueError, match="Two candidates would be called 'u_x'"):
        Discovery().fit(u, t, space=(x,), feature_names=["u", "u_x"])


def test_a_field_far_from_zero_is_told():
    system = systems.advection_diffusion()
    t, u = system.noisy(0.01, 1)
    _, told = warned_of(AmbiguityWarning, FieldTerms(2, 2), x=u + 1e6, t=t, space=system.space)
    assert any("Subtract a reference value, such as 1e+06, from u" in one for one in told)


def test_swapped_axes_are_thought_of_where_nothing_fits():
    system = systems.fisher_kpp()
    t, u = system.noisy(0.01, 1)
    square = u[::2][:120, :120]
    _, told = warned_of(MisfitWarning, FieldTerms(2, 2), x=square.T, t=t[:120], space=(system.space[0][::2][:120],))
    assert told[0].endswith("try derivative_order=2. Is the last axis time?")


# Several runs


def test_several_runs_are_more_than_one():
    """Half the data each: together the standard errors of the whole, within a tenth; one alone has wider ones."""
    system = systems.burgers()
    t, u = system.noisy(0.05, 0)
    first, second = (u[:, :100], t[:100]), (u[:, 100:], t[100:])
    both = Discovery(system.library).fit([first[0], second[0]], [first[1], second[1]], space=system.space)
    whole, part = (Discovery(system.library).fit(*one, space=system.space) for one in ((u, t), first))
    assert both.equations_[0].terms == whole.equations_[0].terms == ("u u_x", "u_xx")
    assert np.all(np.abs(both.equations_[0].coefficients - [-1, 0.1]) < 4 * both.equations_[0].std)
    assert np.all(both.equations_[0].std < part.equations_[0].std)
    assert both.misfit_[0] == pytest.approx(1, abs=4 / np.sqrt(2 * both.equations_[0].degrees))
    with pytest.raises(ValueError, match="same fields"):
        Discovery().fit([u, np.stack([u, u**2], axis=-1)], t, space=system.space)


@pytest.mark.parametrize(("again", "share"), [(slice(None), "200 times"), (slice(60, None), "140 times")])
def test_times_of_a_run_that_are_given_twice_are_told(again, share):
    """A whole run and a part of one, as of series; runs of other noise are not told."""
    system = systems.fisher_kpp()
    t, u = system.noisy(0.05, 0)
    _, twice = warned_of(AmbiguityWarning, FieldTerms(2, 2), x=[u, u[:, again]], t=[t, t[again]], space=system.space)
    assert f"Run 2 has {share} of run 1 again: times that are given twice count twice" in twice[0]
    _, thrice = warned_of(AmbiguityWarning, FieldTerms(2, 2), x=[u, u, u, u], t=t, space=system.space)
    assert "again (and 2 more runs of others): times" in thrice[0]
    other = system.noisy(0.05, 1)[1]
    _, told = warned_of(AmbiguityWarning, FieldTerms(2, 2), x=[u, other], t=t, space=system.space)
    assert not any("again" in one for one in told)


def test_one_run_in_a_list_is_that_run():
    system = systems.fisher_kpp()
    t, u = system.noisy(0.05, 0)
    alone, listed = (Discovery(system.library).fit(one, t, space=system.space) for one in (u, [u]))
    assert np.array_equal(alone.coef_, listed.coef_)


# Grids


def test_uneven_points_in_space_and_time():
    system, rng = systems.fisher_kpp(), np.random.default_rng(0)
    t, u = system.simulate()
    (x,) = system.space
    times = np.sort(rng.uniform(t[0], t[-1], t.size))
    places = x.copy()
    places[1:-1] += 0.3 * (x[1] - x[0]) * rng.uniform(-1, 1, x.size - 2)
    between = make_interp_spline(x, make_interp_spline(t, u, k=7, axis=1)(times), k=7)(places)
    noisy_field = between + 0.02 * u.std() * rng.normal(size=u.shape)
    model = Discovery(system.library).fit(noisy_field, times, space=(places,))
    (equation,) = model.equations_
    assert equation.terms == ("u", "u^2", "u_xx")
    assert np.all(np.abs(equation.coefficients - [1, -1, 1]) < 4 * equation.std)
    assert model.misfit_[0] < 1.5


def test_points_that_were_rounded_are_even():
    """To the last bit: a grid written with few digits gives what the even one does."""
    system = systems.fisher_kpp()
    t, u = system.noisy(0.02, 0)
    even, rounded = (
        Fields(u, system.space, times) for times in (np.linspace(0, 1, t.size), np.linspace(0, 1, t.size).round(4))
    )
    assert rounded.noise == even.noise
    assert rounded.windows.axes[1].step == even.windows.axes[1].step
    shifted = Fields(u, system.space, np.linspace(0, 1, t.size) + 0.1 / t.size * np.sin(np.arange(t.size)))
    assert shifted.noise != even.noise


def drifting(n, times, end, shifts=(0.0,), noise=0.01, seed=0):
    """Return fields of three waves that drift and decay, u_t = −0.8 u_x + 0.3 u_xx, with noise."""
    x, t = np.linspace(0, 3, n), np.linspace(0, end, times)
    waves, place = (
        [(1.3, 1.0, 0.3), (2.9, 0.7, 1.1), (4.7, 0.5, 2.0)],
        x[:, None, None] + np.array(shifts) - 0.8 * t[:, None],
    )
    u = sum(a * np.exp(-0.3 * k**2 * t)[:, None] * np.sin(k * place + at) for k, a, at in waves)
    return u + noise * u.std() * np.random.default_rng(seed).normal(size=u.shape), x, t


@pytest.mark.parametrize("times", [13, 16])
@pytest.mark.parametrize("seed", [2, 7])
def test_few_times_of_two_fields_are_enough(times, seed):
    """13 and 26 rows for 30 candidates: the truth is found, and where there are 13 rows, that they are few is told."""
    u, x, t = drifting(40, times, 3.0, (0.0, 1.0), seed=seed)
    model, told = warned_of(AmbiguityWarning, FieldTerms(2, 2), x=u, t=t, space=(x,))
    assert [one.terms for one in model.equations_] == [("u_x", "u_xx"), ("v_x", "v_xx")]
    few = "has room for 13 test functions, the rows of an equation (13 along x and 1 along t): hardly any model"
    assert any(few in one for one in told) == (times == 13)


@pytest.mark.parametrize("shape", [(13, 13), (15, 20), (20, 16), (60, 13)])
def test_grids_with_room_for_too_few_test_functions_are_refused(shape):
    u, x, t = drifting(*shape, 1.2)
    with pytest.raises(ValueError, match=r"room for \d+ test functions?, .* too few to find an equation"):
        Discovery().fit(u[..., 0], t, space=(x,))


def test_several_runs_on_a_small_grid_are_enough():
    runs = [drifting(20, 16, 1.2, (shift,))[0][..., 0] for shift in np.arange(8.0)]
    _, x, t = drifting(20, 16, 1.2)
    assert Discovery(FieldTerms(1, 2)).fit(runs, t, space=(x,)).equations_[0].terms == ("u_x", "u_xx")


# What does not fit


def warned_of(category, *arguments, **more):
    """Return the model that Discovery finds, and the texts of its warnings of one kind."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = Discovery(*arguments).fit(**more)
    return model, [str(one.message) for one in raised if issubclass(one.category, category)]


@pytest.mark.parametrize(("name", "library"), [("fisher_kpp", (1, 4)), ("swift_hohenberg", (2, 4))])
def test_a_library_that_lacks_the_truth_is_told(name, library):
    system = getattr(systems, name)()
    t, u = system.noisy(0.01, 5)
    model, told = warned_of(MisfitWarning, FieldTerms(*library), x=u, t=t, space=system.space)
    assert model.misfit_[0] > 1.5
    assert "times the noise of the samples: most likely no candidate fits" in told[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_power_series_in_place_of_the_law_is_told(seed):
    """u_t = 0.2 u_xx − 0.3 exp(0.8 u) is followed by 1, u, …, u⁴ to the noise; these terms are no law."""
    n, length, rng = 128, 20.0, np.random.default_rng(seed)
    x, t, waves = length * np.arange(n) / n, np.linspace(0, 4, 100), 2 * np.pi / length * np.arange(n // 2 + 1)
    start = sum(rng.normal() * np.cos(k * waves[1] * x) + rng.normal() * np.sin(k * waves[1] * x) for k in (1, 2, 3, 4))

    def slope(_, u):
        return 0.2 * np.fft.irfft(-(waves**2) * np.fft.rfft(u), n) - 0.3 * np.exp(0.8 * u)

    u = solve_ivp(slope, (0, 4), start / start.std(), t_eval=t, method="LSODA", rtol=1e-8, atol=1e-9).y
    u = u + 0.001 * u.std() * rng.normal(size=u.shape)
    with pytest.warns(MisfitWarning, match=r"has \d+ of 25 candidates, all of 1, u, u\^2, u\^3, u\^4 among them"):
        Discovery().fit(u, t, space=(x,))


@pytest.mark.parametrize("terms", ["u, u^2, u^3, u^4", "1, u, u^2, u^3"])
def test_the_highest_powers_are_told_and_the_lowest_are_not(terms):
    """Of a library up to u⁴, u to u⁴ stand for something else; a cubic reaction with a constant is a law."""
    names = FieldTerms(4, 2).names()
    data = noisy("fisher_kpp", 0.05)
    rows, found = FieldEquation([data], FieldTerms(4, 2)), tuple(names.index(one) for one in terms.split(", "))
    equation = SimpleNamespace(
        name="u",
        left=SimpleNamespace(text="(u)_t"),
        terms=tuple(names[j] for j in found),
        n_candidates=len(names),
        vocabulary=SimpleNamespace(names=names),
    )
    told = said_of_expansions([equation], rows.ladders, {})
    assert [f"all of {terms}" in one or "4 of 15 candidates" in one for one in told] == [True] * terms.startswith("u")


def test_a_model_worse_than_none_is_told():
    """Allen–Cahn on 48 × 48 points with 15 % noise: what has a negative score says so, and what has none does not."""
    n, length, rng = 96, 20.0, np.random.default_rng(32)
    waves, t, x = 2 * np.pi / length * np.arange(n // 2 + 1), np.linspace(0, 3, 48), length * np.arange(n) / n
    start = np.fft.irfft(np.r_[0, rng.normal(size=4) + 1j * rng.normal(size=4), np.zeros(n // 2 - 4)], n)

    def slope(_, u):
        return 0.4 * np.fft.irfft(-(waves**2) * np.fft.rfft(u), n) + u - u**3

    u = solve_ivp(slope, (0, 3), 0.6 * start / start.std(), t_eval=t, method="LSODA", rtol=1e-8, atol=1e-9).y[::2]
    scores = []
    for seed in range(4):
        field = u + 0.15 * u.std() * np.random.default_rng(seed).normal(size=u.shape)
        model, told = warned_of(MisfitWarning, x=field, t=t, space=(x[::2],))
        scores.append(model.score(field, t))
        assert any(f"negative score on its own data (R² = {scores[-1]:.2f})" in one for one in told) == (scores[-1] < 0)
    assert min(scores) < 0 < max(scores)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_right_equations_leave_the_noise_of_the_samples(noise):
    system = systems.burgers()
    t, u = system.noisy(noise, 5)
    model = Discovery(system.library).fit(u, t, space=system.space)
    assert model.misfit_[0] == pytest.approx(1, abs=4 / np.sqrt(2 * model.equations_[0].degrees))
    assert model.warnings_ == []


def test_noise_that_alternates_is_told():
    """Sums over a window hardly see noise that changes sign from sample to sample; smoothing does."""
    system = systems.burgers()
    t, u = system.simulate()
    sign = (-1.0) ** np.add.outer(*map(np.arange, u.shape))
    noise = 0.02 * u.std() * sign * (1 + 0.1 * np.random.default_rng(0).normal(size=u.shape))
    _, told = warned_of(MisfitWarning, system.library, x=u + noise, t=t, space=system.space)
    assert "leaves only 0" in told[0]


def test_what_a_model_misses_is_not_taken_for_noise():
    """However far a model is from the data, the errors that its passes estimate are no larger than the noise."""
    system = systems.korteweg_de_vries()
    for level in (1e-5, 1e-2):
        data = noisy("korteweg_de_vries", level)
        errors = FieldEquation([data], system.library).fitted(()).errors[0][0]
        assert np.sqrt(np.mean(data.errors[0].derivative(errors, (0,)) ** 2)) < data.noise[0]


def test_windows_hold_enough_splines_however_smooth_the_field():
    """Four splines for every radius; else smoothing takes noise away that the covariance of the rows counts."""
    for name, noise in product(("swift_hohenberg", "allen_cahn"), (0.01, 0.5)):
        data = noisy(name, noise)
        for axis, smoother in zip(data.windows.axes, data.splines[0].smoothers, strict=True):
            assert axis.radius * smoother.n_basis > 3.9 * axis.n_samples  # radii are rounded


# Search


@pytest.mark.parametrize("powers", [1, 2])
def test_no_model_that_was_met_is_better(powers):
    """Whether the library holds the truth (powers of 2) or not."""
    result = searched(FieldEquation([noisy("fisher_kpp", 0.01)], FieldTerms(powers, 4)), ard_supports)
    assert not result.unfinished
    assert all(excess >= 0 for _, excess in result.rivals)


def test_a_search_that_is_stopped_is_told(monkeypatch):
    monkeypatch.setattr(search, "MOST_FITS", 5)
    system = systems.fisher_kpp()
    t, u = system.noisy(0.01, 0)
    _, told = warned_of(AmbiguityWarning, FieldTerms(1, 4), x=u, t=t, space=system.space)
    assert any("was stopped after 5 fits" in one for one in told)


# Functions of fields


def varied_field(noise, seed=0):
    """u_t = .3 u_xx − .5/u + .2 cos(2πx/L) u_x, from a start that is positive."""
    x, t = 10 * np.arange(96) / 96, np.linspace(0, 2, 80)
    angle, waves = 2 * np.pi * x / 10, 2j * np.pi / 10 * np.arange(49)

    def slope(_, u):
        bent, slanted = (np.fft.irfft(waves**q * np.fft.rfft(u), 96) for q in (2, 1))
        return 0.3 * bent - 0.5 / u + 0.2 * np.cos(angle) * slanted

    start = 2.5 + 0.8 * np.cos(angle) + 0.5 * np.sin(2 * angle)
    u = solve_ivp(slope, (0, 2), start, t_eval=t, method="LSODA", rtol=1e-8, atol=1e-9).y
    return u + noise * u.std() * np.random.default_rng(seed).normal(size=u.shape), t, x, np.cos(angle)


def test_functions_of_fields_and_coefficients_that_vary():
    u, t, x, speed = varied_field(0.02)
    library = FieldTerms(2, 2) + Custom([lambda u: 1 / u], ["1/{}"])
    model = Discovery(library).fit(u, t, space=(x,), known_fields={"c": speed})
    equation = model.equations_[0]
    assert sorted(equation.terms) == ["1/u", "c u_x", "u_xx"]
    true = {"1/u": -0.5, "c u_x": 0.2, "u_xx": 0.3}
    z = [(c - true[term]) / s for term, c, s in zip(equation.terms, equation.coefficients, equation.std, strict=True)]
    assert np.max(np.abs(z)) < 4
    assert model.get_feature_names()[-2:] == ["1/u", "1/c"]


def test_functions_add_from_either_side_and_repeat_nothing():
    left, right = FieldTerms(2, 1) + Fourier(1), Fourier(1) + FieldTerms(2, 1)
    assert left == right
    assert (FieldTerms(2, 1) + Polynomials(2)).names() == FieldTerms(2, 1).names()
    assert left.n_terms() == FieldTerms(2, 1).n_terms() + 2 <= left.n_listed(1, 1)
    both = left + Custom([np.exp])
    assert both.names()[-3:] == ["sin(u)", "cos(u)", "exp(u)"]
    values = both.evaluate([np.array([0.5, 1.0])], lambda field, orders: np.zeros(2))
    np.testing.assert_allclose(values[:, -1], np.exp([0.5, 1.0]))


def test_candidates_that_are_zero_or_not_finite_are_left_out_and_named():
    """A field that does not depend on y has no derivatives along it, and 1/u has a pole where u is zero."""
    x, y, t = np.linspace(0, 20, 60), np.linspace(0, 1, 30), np.linspace(0, 4, 50)
    u = sum(np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t)) for k in (0.5, 1.0, 1.7))
    u[20, 30] = 0.0
    field = np.repeat(u[:, None], 30, axis=1)
    library = FieldTerms(0, 2) + Custom([lambda u: np.where(np.abs(u) < 1e-2, np.inf, u)], ["pole({})"])
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = Discovery(library).fit(field, t, space=(x, y))
    told = " ".join(str(one.message) for one in raised)
    assert "such as u_y: each is zero up to rounding" in told
    assert "such as pole(u): each is not finite" in told
    assert set(model.equations_[0].terms) <= {"1", "u_x", "u_xx"}


# Fields of all kinds


def fitted(name, noise, seed):
    """Return the model of a system, and what it warned of."""
    system = systems.ALL_FIELDS[name]()
    t, u = system.noisy(noise, seed)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = Discovery(system.library, derivative_order=system.order).fit(
            u, t, space=system.space, **{"feature_names": list(system.feature_names), **system.options}
        )
    return system, model, [str(one.message) for one in raised]


@pytest.mark.parametrize("name", ["cahn_hilliard", "inviscid_burgers", "heat_with_walls", "schroedinger"])
def test_fields_of_other_kinds(name):
    """All terms are exact, and the truth is within four standard errors."""
    system, model, _ = fitted(name, 0.05, seed=21)
    for equation, true in zip(model.equations_, system.true_terms, strict=True):
        assert set(equation.terms) == set(true)
        numbers = np.array([true[term] for term in equation.terms])
        assert np.max(np.abs(equation.coefficients - numbers) / equation.std) < 4


def test_near_a_shock_no_derivatives_are_candidates():
    """What is left of u u_xx after integration by parts is u_x², which does not exist at a jump."""
    _, model, told = fitted("inviscid_burgers", 0.01, seed=22)
    assert len(told) == 1
    assert (
        "such as u u_xx: each has derivatives of u, which jumps or changes faster than its grid shows, and" in told[0]
    )
    assert model.equations_[0].terms == ("u u_x",)
    assert not Fields(systems.burgers().noisy(0.01, seed=0)[1], systems.burgers().space, systems.burgers().t).rough


# What samples show


def told_at_once(u, t=None, x=None):
    """Return what is said of the samples of a field before an equation is sought."""
    points = [np.linspace(0, 20, u.shape[0]) if x is None else x, np.linspace(0, 2, u.shape[1]) if t is None else t]
    return Fields(u, points[:1], points[1]).told


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.1, 1.0])
@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_white_noise_is_taken_for_noise(name, noise):
    """On the grids of the noise tables nothing is said of the samples, whatever the noise."""
    system = systems.ALL_PDES[name]()
    t, u = system.noisy(noise, seed=41)
    assert told_at_once(u, t, system.space[0]) == []


@pytest.mark.parametrize(("every", "axes"), [((12, 1), "x"), ((1, 12), "t"), ((8, 12), "x and t")])
def test_a_grid_that_is_too_coarse_is_told_by_axis(every, axes):
    """Waves of 2.2 points along an axis, with noise of 1 %: the size of what is taken for noise stands in the text."""
    x, t = np.arange(480) / 24, np.arange(480) / 240
    fast = np.sin(5.5 * x[:, None] - 2 * t) * (every[0] > 1) + np.sin(60 * t - 0.3 * x[:, None]) * (every[1] > 1)
    u = np.sin(0.5 * x[:, None] - t) + 0.3 * fast
    u = u + 0.01 * np.random.default_rng(0).normal(size=u.shape)
    assert told_at_once(u, t, x) == []
    (told,) = told_at_once(u[:: every[0], :: every[1]], t[:: every[1]], x[:: every[0]])
    assert f"changes faster along {axes} than its grid shows" in told
    taken = float(re.search(r"noise of u, (\S+) % of its standard deviation", told)[1])
    assert taken == pytest.approx(30 * fast.std() / u.std(), rel=0.3)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("name", [*systems.ALL_PDES, "inviscid_burgers", "cahn_hilliard"])
def test_single_mistakes_are_found_and_named(name, noise):
    """All of five samples eight deviations off, next to a shock too, and no other; nothing is said of jumps."""
    system = {**systems.ALL_PDES, **systems.ALL_FIELDS}[name]()
    t, u = system.noisy(noise, seed=42)
    places = np.random.default_rng(43).choice(u.size, 5, replace=False)
    u.ravel()[places] -= 8 * u.std()
    (told,) = told_at_once(u, t, system.space[0])
    assert told.startswith("Single samples of u are far beyond all samples near them, 5 in all: at x = ")
    first = np.unravel_index(places.min(), u.shape)
    assert f"x = {system.space[0][first[0]]:.6g}, t = {t[first[1]]:.6g}" in told


def test_mistakes_set_to_nan_leave_the_equation():
    system = systems.korteweg_de_vries()
    t, u = system.noisy(0.01, seed=44)
    u.ravel()[np.random.default_rng(45).choice(u.size, 5, replace=False)] += 8 * u.std()
    u[tuple(mistakes_in(u).T)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Discovery().fit(u, t, space=system.space)
    assert set(model.equations_[0].terms) == set(system.true_terms[0])


@pytest.mark.parametrize("name", ["burgers", "swift_hohenberg", "advection_diffusion"])
def test_noise_that_grows_with_the_field_is_no_jump(name):
    """Noise of 10 % of u itself has a large kurtosis, as a shock has; no candidate is left out for it."""
    system = systems.ALL_PDES[name]()
    t, u = system.noisy(0, seed=46)
    fields = Fields(u * (1 + 0.1 * np.random.default_rng(47).normal(size=u.shape)), system.space, t)
    assert not fields.rough
    assert [text.split(",")[0] for text in fields.told] == ["The noise of u grows with |u|"]


def test_products_of_noisy_jets_have_the_mean_of_those_without_noise():
    """E H(m(w + e)) = m(w) for Gaussian e, whose parts depend on each other: 200,000 draws, four standard errors."""
    rng, jets = np.random.default_rng(5), [Jet(0, (0,)), Jet(0, (1,)), Jet(1, (0,))]
    true, root = np.array([1.5, -0.7, 0.9]), np.array([[0.4, 0.0, 0.0], [0.2, 0.5, 0.0], [-0.1, 0.1, 0.3]])
    draws = dict(zip(jets, true[:, None] + root @ rng.normal(size=(3, 200_000)), strict=True))
    both = root @ root.T
    noisy = Jets(lambda jet: draws[jet], lambda one, other: both[jets.index(one), jets.index(other)])
    for powers in np.ndindex(4, 3, 2):
        monomial = FieldTerm(tuple((jet, n) for jet, n in zip(jets, powers, strict=True) if n))
        values = np.broadcast_to(noisy.monomial(monomial), 200_000)
        error = 4 * np.std(values) / np.sqrt(200_000) + 1e-12
        assert np.mean(values) == pytest.approx(np.prod(true**powers), abs=error)


def test_errors_that_are_taken_out_of_jets_are_noise_no_more():
    """What is left of noise e after ê, independent of it, has the covariance of e less that of ê."""
    rng, jet = np.random.default_rng(6), Jet(0, (0,))
    found, left = rng.normal(0, 0.3, 200_000), rng.normal(0, 0.4, 200_000)
    jets = Jets(lambda _: 1.5 + found + left, lambda *_: 0.25).minus({0: lambda _: found})
    for power in (2, 3, 4):
        values = jets(jet, power)
        assert np.mean(values) == pytest.approx(1.5**power, abs=4 * np.std(values) / np.sqrt(200_000))


@pytest.mark.parametrize("uneven", [False, True])
def test_covariance_of_jets_equals_the_dense_one(uneven):
    """s² D_q D_rᵀ on the diagonal, the D applied to one sample after the other, on the grid and on the thinned one."""
    rng, x, t = np.random.default_rng(0), np.linspace(0, 6, 30), np.linspace(0, 1, 26)
    x = np.sort(x + 0.05 * rng.random(30)) if uneven else x
    data = Fields(np.sin(2 * x[:, None] - t) + 0.01 * rng.normal(size=(30, 26)), (x,), t)
    splines = data.splines[0]
    units = [splines.coefficients(one.reshape(30, 26)) for one in np.eye(30 * 26)]
    for first, second in [(0, 0), (0, 1), (1, 1), (1, 3)]:
        for factors in (None, (2, 3)):
            parts = [np.array([splines.derivative(one, (q,), factors) for one in units]) for q in (first, second)]
            dense = data.noise[0] ** 2 * np.sum(parts[0] * parts[1], axis=0)
            found = data.covariance(Jet(0, (first,)), Jet(0, (second,)), factors)
            assert np.allclose(found, dense, rtol=1e-9, atol=1e-9 * np.abs(dense).max())


def test_products_of_slopes_are_not_biased_by_noise():
    """h_t = .3 h_xx + .7 h_x² (Kardar, Parisi, Zhang), exact by Cole and Hopf, 5 % noise: mean z of 8 draws is 0 ± 1.2.

    Where noise in h_x is left in h_x², it is −2.5.
    """
    n, rng, x, t = 64, np.random.default_rng(1), np.arange(64) * 19.0 / 64, np.linspace(0, 5, 80)
    k, fine = 2 * np.pi * np.fft.fftfreq(8 * n, 1 / (8 * n)) / 19.0, np.arange(8 * n) * 2 * np.pi / (8 * n)
    start = sum(rng.normal() * np.cos(j * fine + rng.uniform(0, 6)) for j in range(1, 5))
    w = np.fft.fft(np.exp(0.7 / 0.3 * 1.3 * start / start.std()))
    h = np.stack([0.3 / 0.7 * np.log(np.fft.ifft(w * np.exp(-0.3 * k**2 * time)).real)[::8] for time in t], axis=-1)
    library, true = FieldTerms(1, 2, conservative=True), np.array([0.3, 0.7])
    support, z = tuple(library.names(["h"]).index(name) for name in ("h_xx", "h_x^2")), []
    for seed in range(8):
        noisy = h + 0.05 * h.std() * np.random.default_rng(seed).normal(size=h.shape)
        equation = FieldEquation([Fields(noisy, (x,), t)], library)
        fit = equation.fitted(support)
        A = equation.system(fit)[0][:, list(support)]
        z.append((fit.coefficients - true) / np.sqrt(np.diag(np.linalg.inv(A.T @ A))))
    assert np.all(np.abs(np.mean(z, axis=0)) < 1.2), np.mean(z, axis=0)


def test_fits_whose_residuals_are_alike_are_told_apart_by_less():
    """N ln RSS 24 higher: nothing where residuals have nothing in common (3√N is 42), enough where they are alike."""
    rng, n = np.random.default_rng(0), 200
    own, apart = rng.normal(size=(2, n))
    worse = own + 0.35 * apart
    for other, good in ((worse, False), (apart, True)):
        sizes = float(own @ own), float(own @ own) * np.exp(24 / n)
        fits = [
            RowsFit((j,), np.ones(1), size, shares=one**2 / (one @ one))
            for j, (one, size) in enumerate(zip((own, other), sizes, strict=True))
        ]
        assert as_good(fits[1], fits[0], SimpleNamespace(n_rows=n)) == good


@pytest.mark.parametrize("swapped", [False, True])
def test_axes_that_look_swapped_are_told(swapped):
    """A field on one period of space returns to its beginning along space, and not along time."""
    x, t = 2 * np.pi * np.arange(80) / 80, np.linspace(0, 1, 80)
    u = np.exp(-t) * np.sin(x[:, None] - t) + np.exp(-4 * t) * np.cos(2 * x[:, None]) + 0 * t
    u = u + 0.01 * np.random.default_rng(0).normal(size=u.shape)
    told, _ = told_of([Fields(u.T, (t,), x) if swapped else Fields(u, (x,), t)], 4)
    assert any("see that the last axis is time" in text for text in told) == swapped


# Gaps


def holes(u, kind, rng):
    """Return a field that lacks scattered samples, frames, columns, or a hole."""
    n, m = u.shape
    lost = {
        "scattered": rng.random(u.shape) < 0.3,
        "frames": np.isin(np.arange(m), rng.choice(m, 10, replace=False)) & np.ones(u.shape, bool),
        "block of columns": (np.abs(np.arange(n) - n // 2) < 10)[:, None] & np.ones(u.shape, bool),
        "hole": (np.abs(np.arange(n) - n // 2) < 20)[:, None] & (np.abs(np.arange(m) - m // 2) < 15),
    }[kind]
    return np.where(lost, np.nan, u), lost


@pytest.mark.parametrize("kind", ["scattered", "frames", "block of columns", "hole"])
def test_fields_with_gaps(kind):
    """The terms are exact, and intervals and noise are what they are without gaps; rows left out are told."""
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=7)
    gappy, lost = holes(u, kind, np.random.default_rng(0))
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = Discovery().fit(gappy, t, space=system.space)
    equation = model.equations_[0]
    assert sorted(equation.terms) == sorted(system.true_terms[0])
    true = np.array([system.true_terms[0][term] for term in equation.terms])
    assert np.max(np.abs(equation.coefficients - true) / equation.std) < 4
    assert model.misfit_ == pytest.approx([1], abs=0.1)
    assert equation.noise == pytest.approx(0.01 * np.std(system.simulate()[1]), rel=0.1)
    wide = kind in ("block of columns", "hole")
    assert any("test functions touch" in str(one.message) for one in raised) == wide
    assert len(raised) == wide
    masked = Fields(np.ma.masked_array(u, lost), system.space, t)
    assert masked.noise == pytest.approx(Fields(gappy, system.space, t).noise)
    whole = Fields(u, system.space, t)
    for with_gaps, without in zip(masked.windows.axes, whole.windows.axes, strict=True):
        assert with_gaps.radius == pytest.approx(without.radius, rel=0.25)


def test_what_splines_span_is_filled_in():
    """Splines fitted to some of the samples of a field give all of it back."""
    x, t = np.linspace(0, 1, 60), np.linspace(0, 2, 50)
    u = np.outer(x**3 - x, 1 + t**2)
    seen = np.random.default_rng(1).random(u.shape) < 0.6
    some = filled(np.where(seen, u, np.nan), (x, t), (None, None), 12)
    np.testing.assert_allclose(some.splines.derivative(some.coefficients, (0,)), u, atol=1e-6)
    assert some.density == pytest.approx(seen.mean(), abs=0.02)


@pytest.mark.parametrize(("share", "end"), [(0.8, ""), (0.95, "can be used, and at least 12"), (0.99, "far")])
def test_fields_that_are_mostly_gaps(share, end):
    """Told in our words, whether they are enough or not, and without warnings of NumPy."""
    u, x, t = drifting(80, 60, 1.2)
    u[np.random.default_rng(1).random(u.shape) < share] = np.nan
    if end:
        with pytest.raises(ValueError, match=f"so many gaps that .*{end}"):
            Discovery(FieldTerms(1, 2)).fit(u[..., 0], t, space=(x,))
    else:
        assert Discovery(FieldTerms(1, 2)).fit(u[..., 0], t, space=(x,)).equations_[0].terms == ("u_x", "u_xx")


# Bad input


def test_a_field_at_rest_is_refused_where_its_equation_is_wanted():
    """It may be a known field, or one of several that only acts."""
    u, x, t = drifting(60, 50, 1.2)
    still = np.repeat(np.sin(2 * x)[:, None], 50, axis=1)
    with pytest.raises(ValueError, match=r"field u is at rest, the same at all times.*known_fields"):
        Discovery().fit(still, t, space=(x,))
    both = np.stack([u[..., 0], still], axis=-1)
    model = Discovery(FieldTerms(1, 2)).fit(both, t, space=(x,), equations=["u"])
    assert model.equations_[0].terms == ("u_x", "u_xx")


def test_bad_input_is_refused():
    x, t = np.linspace(0, 1, 60), np.linspace(0, 1, 50)
    u = np.sin(9 * x[:, None] + 5 * t)
    with pytest.raises(ValueError, match="uniform grid"):
        Fields(u, (x**2,), t)
    with pytest.raises(ValueError, match=r"t is descending: turn it and the fields around along this axis, t\[::-1\]"):
        Fields(u, (x,), t[::-1])
    with pytest.raises(ValueError, match="t must be one-dimensional and strictly ascending"):
        Fields(u, (x,), np.where(t == t[3], t[2], t))
    with pytest.raises(ValueError, match=r"grid is \(60, 50\)"):
        Fields(u.T, (x,), t)
    for constant in (np.zeros((60, 50)), np.full((60, 50), 3.7)):
        with pytest.raises(ValueError, match="field v is constant"):
            Fields(np.stack([u, constant], axis=-1), (x,), t)
    with pytest.raises(ValueError, match="field u holds infinities"):
        Fields(np.where(u > 0.99, np.inf, u), (x,), t)
    with pytest.raises(ValueError, match="field u has no number"):
        Fields(np.full(u.shape, np.nan), (x,), t)
    with pytest.raises(ValueError, match="so many gaps"):
        Fields(np.where(np.abs(x[:, None] - 0.5) < 0.4, np.nan, u), (x,), t)
    with pytest.raises(ValueError, match="field is complex"):
        Fields(u + 0j, (x,), t)
    with pytest.raises(ValueError, match=r"2 different names, got \['u', 'u'\]"):
        Fields(np.stack([u, u], axis=-1), (x,), t, ["u", "u"])
    data = Fields(u, (x,), t)
    with pytest.raises(ValueError, match="up to order 6"):
        FieldEquation([data], FieldTerms(1, 7))


@pytest.mark.parametrize(("n_x", "n_t"), [(12, 50), (60, 12)])
def test_the_least_number_of_points_is_told_once_and_is_enough(n_x, n_t):
    """13 points: the message says so, and fields of so many points are taken."""
    with pytest.raises(ValueError, match=r"[xt] has 12 points.*at least 13"):
        Fields(np.random.default_rng(0).normal(size=(n_x, n_t)), (np.arange(n_x),), np.arange(n_t))
    x, t = np.linspace(0, 1, 13), np.linspace(0, 1, 13)
    equation = FieldEquation([Fields(np.sin(9 * x[:, None] + 5 * t), (x,), t)], FieldTerms(0, 1))
    assert equation.n_rows >= 1


# xarray


def test_xarray_objects_bring_names_coordinates_and_which_axis_is_time():
    x, when = np.linspace(0, 1, 30), np.linspace(0, 2, 40)
    u, v = np.sin(9 * x[:, None] + 5 * when), np.cos(7 * x[:, None] - 3 * when)
    expected = Fields(np.stack([u, v], axis=-1), (x,), when)
    pair = xr.Dataset({"a": (("s", "time"), u), "b": (("time", "s"), v.T)}, coords={"s": x, "time": when})
    for given in (pair, pair.transpose("time", "s")):
        (data,), _ = read_fields(given, None, FieldWishes())
        assert (data.names, data.axes) == (["a", "b"], ["s"])
        np.testing.assert_array_equal(data.noise, expected.noise)
        np.testing.assert_array_equal(data.space[0], x)
    (named,), _ = read_fields(pair, None, FieldWishes(), ["p", "q"])
    assert named.names == ["p", "q"]


def test_xarray_objects_without_coordinates_say_what_is_missing():
    u = np.random.default_rng(0).normal(size=(30, 40))
    field = xr.DataArray(u, dims=("x", "t"))
    with pytest.raises(ValueError, match="need space"):
        read_fields(field, None, FieldWishes())
    (data,), _ = read_fields(field, 0.5, FieldWishes((np.arange(30),)))
    assert (data.names, data.axes) == (["u"], ["x"])
    with pytest.raises(ValueError, match="needs space axes and a time axis"):
        read_fields(field[0], None, FieldWishes())
    with pytest.raises(ValueError, match="complex"):
        read_fields(field + 1j, 0.5, FieldWishes((np.arange(30),)))


def test_windows_of_one_axis_alone():
    """A lattice of one function per axis works too."""
    windows = Windows((AxisWindows(13, 1.0, 6, 3, 6), AxisWindows(13, 1.0, 6, 3, 6)))
    assert windows.lattice == (1, 1)
    assert windows.tested_in_space(windows.tested_in_time(np.ones((13, 13))), (0,)).shape == (1,)


# The whole list, minutes


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.001, 0.01, 0.1, 0.25])
@pytest.mark.parametrize("name", systems.ALL_PDES)
def test_every_equation_at_every_noise(name, noise):
    system = systems.ALL_PDES[name]()
    exact = 0
    for seed in range(3):
        t, u = system.noisy(noise, 100 + seed)
        _, best = found(Fields(u, system.space, t), system.library)
        exact += best.support == true_support(system)
    assert exact == 3


@pytest.mark.slow
def test_memory_of_the_large_one():
    system = systems.kuramoto_sivashinsky()
    t, u = system.noisy(0.01, 0)
    tracemalloc.start()
    _, best = found(Fields(u, system.space, t), system.library)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert best.support == true_support(system)
    assert peak < 300e6


def test_the_distance_of_points_stands_for_coordinates():
    u = np.random.default_rng(0).normal(size=(40, 30))
    coordinates = 0.1 * np.arange(40)
    for space in (0.1, (0.1,), (coordinates,)):
        ((run,), _) = read_fields(u, 0.2, FieldWishes(space))
        np.testing.assert_array_equal(run.space[0], coordinates)


@pytest.mark.parametrize(("n_times", "said"), [(14, True), (40, False)])
def test_few_times_with_little_noise_are_told(n_times, said):
    """Kardar–Parisi–Zhang by Cole and Hopf: exp(2 h) solves the equation of heat."""
    x, t = np.arange(128) * 2 * np.pi / 128, np.linspace(0.1, 1, n_times)
    start = np.exp(2.4 * np.cos(x) - 1.2 * np.sin(2 * x + 1) + 0.9 * np.cos(3 * x + 2))
    heat = np.fft.rfft(start)[:, None] * np.exp(-0.5 * np.arange(65)[:, None] ** 2 * t)
    u = np.log(np.fft.irfft(heat, 128, axis=0)) / 2
    u += 1e-4 * u.std() * np.random.default_rng(0).normal(size=u.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery(FieldTerms(2, 2, conservative=True)).fit(u, t, space=x)
    assert set(model.equations_[0].terms) == {"u_xx", "u_x^2"}
    assert any("structure that the grid does not show" in text for text in model.warnings_) == said
