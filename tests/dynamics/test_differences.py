"""Finite differences, spectral derivatives and smoothing splines: exactness, order of convergence, projection."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ardea.dynamics.differences import (
    SplineSmoother,
    difference_matrix,
    difference_weights,
    finite_difference,
    spectral_derivative,
)

CASES = [(derivative, order) for derivative in (1, 2, 3, 4) for order in (2, 4, 6, 8)]


def uneven(n, seed=0):
    """Points on [0, 1] whose gaps differ by up to a factor of 3."""
    gaps = np.random.default_rng(seed).uniform(0.5, 1.5, n - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)]) / gaps.sum()


# Weights


def test_well_known_weights():
    assert difference_weights((-1, 1)).tolist() == [-0.5, 0.5]
    sixth = [Fraction(n, 60) for n in (-1, 9, -45, 0, 45, -9, 1)]
    assert difference_weights(tuple(range(-3, 4))).tolist() == [float(w) for w in sixth]


@pytest.mark.parametrize("offsets", [range(-3, 4), range(9), [-5, -2, 0, 1, 7]])
def test_weights_fulfil_their_order_conditions(offsets):
    for derivative in range(len(offsets)):
        weights = difference_weights(tuple(offsets), derivative)
        for power in range(len(offsets)):
            moments = weights * np.array(offsets, dtype=float) ** power
            expected = np.prod(np.arange(1, derivative + 1.0)) if power == derivative else 0.0
            assert moments.sum() == pytest.approx(expected, abs=1e-13 * np.abs(moments).sum())


def test_matrix_scales_with_the_step_and_follows_the_points():
    points = uneven(12)
    matrix = difference_matrix(12, points, derivative=2).toarray()
    np.testing.assert_allclose(difference_matrix(12, 3 * points, derivative=2).toarray(), matrix / 9, rtol=1e-9)
    # Points that are almost even have almost the weights of even ones, which are computed as fractions.
    nudged = np.arange(12.0)
    nudged[5] += 1e-7
    exact = difference_matrix(12, 1.0).toarray()
    np.testing.assert_allclose(difference_matrix(12, nudged).toarray(), exact, atol=1e-5)


# Finite differences


@pytest.mark.parametrize(("derivative", "order"), CASES)
@pytest.mark.parametrize("spacing", ["uniform", "uneven"])
def test_exact_for_polynomials_of_the_right_degree_at_every_row(derivative, order, spacing):
    t = np.linspace(-1, 1, 31) if spacing == "uniform" else 2 * uneven(31) - 1
    coefficients = np.random.default_rng(1).normal(size=derivative + order)  # degree derivative + order − 1
    polynomial = np.polynomial.Polynomial(coefficients)
    expected = polynomial.deriv(derivative)(t)
    got = finite_difference(polynomial(t), t, derivative=derivative, order=order)
    rounding = 1e-15 * np.max(np.abs(difference_matrix(31, t, derivative=derivative, order=order)).sum(axis=1))
    np.testing.assert_allclose(got, expected, atol=30 * rounding * np.abs(coefficients).sum())


@pytest.mark.parametrize(("derivative", "order"), [(1, 6), (2, 6), (3, 4), (4, 4), (1, 3), (2, 5)])
@pytest.mark.parametrize("periodic", [False, True])
def test_order_of_convergence(derivative, order, periodic):
    errors = []
    for n in (40, 80):
        x = 2 * np.pi * np.arange(n) / n
        exact = np.real(1j**derivative * np.exp(1j * x)) if derivative else np.cos(x)
        got = finite_difference(np.cos(x), x[1], derivative=derivative, order=order, periodic=periodic)
        errors.append(np.max(np.abs(got - exact)))
    assert np.log2(errors[0] / errors[1]) > order - 0.35


def test_order_of_convergence_on_uneven_points():
    errors = []
    for n in (41, 81):
        t = np.linspace(0, 1, n) ** 1.5 + np.linspace(0, 1, n)
        errors.append(np.max(np.abs(finite_difference(np.sin(3 * t), t) - 3 * np.cos(3 * t))))
    assert np.log2(errors[0] / errors[1]) > 5.6


@pytest.mark.parametrize(("derivative", "periodic"), [(1, False), (2, False), (1, True), (4, True)])
def test_matrix_and_array_agree_along_every_axis(derivative, periodic):
    values = np.random.default_rng(2).normal(size=(15, 16, 17))
    for axis in range(3):
        matrix = difference_matrix(values.shape[axis], 0.3, derivative=derivative, periodic=periodic)
        got = finite_difference(values, 0.3, derivative=derivative, axis=axis, periodic=periodic)
        expected = np.moveaxis(np.tensordot(matrix.toarray(), values, axes=(1, axis)), 0, axis)
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_points_with_rounding_errors_count_as_uniform():
    t = 100.0 + 0.05 * np.arange(50)
    values = np.sin(t)
    np.testing.assert_allclose(finite_difference(values, t), finite_difference(values, 0.05), rtol=1e-9, atol=1e-9)


def test_periodic_matrix_is_circulant_and_the_ends_mirror_each_other():
    circulant = difference_matrix(20, 1.0, periodic=True).toarray()
    np.testing.assert_array_equal(np.roll(np.roll(circulant, 3, axis=0), 3, axis=1), circulant)
    for derivative in (1, 2, 3):
        matrix = difference_matrix(20, 1.0, derivative=derivative).toarray()
        np.testing.assert_allclose(matrix[::-1, ::-1], (-1) ** derivative * matrix, rtol=1e-14)


def test_the_matrix_whitens_the_noise_of_differences():
    """Noise of variance s² in the data has covariance s² D Dᵀ in the derivative."""
    matrix = difference_matrix(30, 0.1)
    noise = np.random.default_rng(3).normal(size=(30, 40_000))
    sample = np.cov(finite_difference(noise, 0.1))
    expected = (matrix @ matrix.T).toarray()
    spread = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) / 40_000)
    assert np.max(np.abs(sample - expected) / spread) < 8


# Spectral derivatives


@pytest.mark.parametrize("n", [31, 32])
@pytest.mark.parametrize("derivative", [0, 1, 2, 3, 4])
def test_spectral_derivative_is_exact_for_resolved_modes(n, derivative):
    length = 5.0
    x = length * np.arange(n) / n
    wave = 2 * np.pi * np.array([1, 3, 7]) / length
    values = np.cos(np.outer(x, wave) + 0.3)
    expected = wave**derivative * np.cos(np.outer(x, wave) + 0.3 + derivative * np.pi / 2)
    np.testing.assert_allclose(spectral_derivative(values, length, derivative), expected, atol=1e-9)


def test_highest_mode_has_no_odd_derivative():
    zigzag = (-1.0) ** np.arange(16)
    np.testing.assert_allclose(spectral_derivative(zigzag, 1.0, 1), 0.0, atol=1e-12)


# Splines


def test_basis_is_orthonormal_and_spans_polynomials():
    t = np.linspace(2, 5, 70)
    smoother = SplineSmoother(t, 25)
    basis = smoother.basis
    assert basis.shape == (70, 25)
    np.testing.assert_allclose(basis.T @ basis, np.eye(25), atol=1e-13)
    for power in range(8):
        np.testing.assert_allclose(smoother.smooth(t**power), t**power, rtol=1e-10)


@pytest.mark.parametrize("spacing", ["uniform", "uneven"])
def test_spline_derivatives_are_exact_for_polynomials(spacing):
    t = np.linspace(0, 1, 60) if spacing == "uniform" else uneven(60)
    smoother = SplineSmoother(t, 20)
    polynomial = np.polynomial.Polynomial(np.random.default_rng(4).normal(size=8))
    for derivative in range(5):
        got = smoother.smooth(polynomial(t), derivative=derivative)
        np.testing.assert_allclose(got, polynomial.deriv(derivative)(t), rtol=1e-6, atol=1e-13 * 60.0**derivative)


def test_smoothing_is_a_projection():
    t = np.linspace(0, 1, 50)
    smoother = SplineSmoother(t, 15)
    values = np.random.default_rng(5).normal(size=(50, 4))
    once = smoother.smooth(values)
    np.testing.assert_allclose(smoother.smooth(once), once, atol=1e-12)
    np.testing.assert_allclose(smoother.basis.T @ (values - once), 0.0, atol=1e-12)


def test_ends_stay_calm_with_many_splines():
    """Noise is amplified at the ends, but by no more than a one-sided difference would."""
    t = np.arange(100.0)
    smoother = SplineSmoother(t, 70)
    gain = np.sqrt(np.sum((smoother.derivative_basis(1) @ smoother.basis.T) ** 2, axis=1))
    one_sided = np.linalg.norm(difference_weights(tuple(range(8))))
    assert np.max(gain) < 2 * one_sided


def test_cross_validation_follows_its_formula():
    """The banded residual equals the dense one, and the choice is twice the best of 12, 15, 18, … within the cap."""
    t = np.linspace(0, 1, 120)
    values = np.sin(25 * t)[:, None] + 0.1 * np.random.default_rng(6).normal(size=(120, 3))
    candidates = [int(12 * 1.25**i) for i in range(8) if 12 * 1.25**i <= 60]
    scores = []
    for k in candidates:
        smoother = SplineSmoother(t, k)
        dense = np.sum((values - smoother.smooth(values)) ** 2) / (1 - k / 120) ** 2
        assert smoother.cross_validation(values).sum() == pytest.approx(dense, rel=1e-9)
        scores.append(dense)
    best = candidates[int(np.argmin(scores))]
    assert SplineSmoother.fit(values, t, cap=0.5).n_basis == min(60, 2 * best)
    assert SplineSmoother.fit(values, t, cap=0.5, factor=1.0).n_basis == best


def test_more_structure_asks_for_more_splines():
    t = np.linspace(0, 1, 300)
    noise = 0.05 * np.random.default_rng(7).normal(size=(300, 20))
    slow, fast = (SplineSmoother.fit(np.sin(w * t)[:, None] + noise, t).n_basis for w in (10, 150))
    assert slow < fast
    # Pure noise: nothing to keep, so a small number wins.
    assert SplineSmoother.fit(noise, t).n_basis <= 60


def test_smoothing_beats_differences_on_noisy_data():
    t = np.linspace(0, 10, 400)
    noisy = np.sin(t) + 0.02 * np.random.default_rng(10).normal(size=400)
    smooth_error = np.std(SplineSmoother.fit(noisy, t).smooth(noisy, derivative=1) - np.cos(t))
    assert smooth_error < 0.2 * np.std(finite_difference(noisy, t) - np.cos(t))


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: finite_difference(np.ones(5), 0.1), "at least 7 points"),
        (lambda: finite_difference(np.ones(9), np.arange(8.0)), "8 points for 9 values"),
        (lambda: finite_difference(np.ones(9), np.ones(9)), "strictly ascending"),
        (lambda: finite_difference(np.ones(20), uneven(20), periodic=True), "uniform"),
        (lambda: difference_matrix(20, 1.0, derivative=0), "at least 1"),
        (lambda: SplineSmoother(np.arange(20.0), 25), "between 8 and 20"),
        (lambda: SplineSmoother(np.arange(20.0), 12).derivative_basis(8), "derivatives 0 to 7"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
