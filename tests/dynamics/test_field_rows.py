"""Rows of fields: integration by parts, noise by linearisation, covariance, splines and windows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from made_fields import found, noisy, size_of, summed, true_support, windows_and_jets

from ardea.dynamics import (
    systems,
)
from ardea.dynamics.differences import SplineSmoother, TensorSplines
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_terms import FieldTerms, Jets, noise_weights, weak_form
from ardea.dynamics.fields import Fields
from ardea.dynamics.search import RowsFit, searched
from ardea.dynamics.terms import FieldTerm, Jet
from ardea.dynamics.windows import AxisWindows, NoiseCovariance, place_windows, spectral_radii
from ardea.methods.task import ard_supports

# Integration by parts, on fields whose derivatives are known


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
