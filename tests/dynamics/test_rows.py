"""Rows of series: integration by parts, windows, noise levels, and the whitening of an equation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ardea.dynamics import Polynomials, systems
from ardea.dynamics.rows import (
    JITTER,
    StateRows,
    corner_frequency,
    derivative_rows,
    directional,
    map_rows,
    stretch_rows,
    weak_rows,
    window_radius,
)
from ardea.dynamics.search import RowsFit
from ardea.dynamics.series import Series, noise_levels


def series(t, x):
    return Series(t, x, np.empty((len(t), 0)))


@pytest.mark.parametrize("times", ["uniform", "uneven"])
def test_the_weak_form_is_exact_integration_by_parts(times):
    """D x = V x′ for a smooth x, whatever the times."""
    rng = np.random.default_rng(0)
    steps = np.full(300, 0.02) if times == "uniform" else 0.02 * rng.uniform(0.6, 1.4, 300)
    t = np.cumsum(steps)
    x, slope = np.sin(3 * t) + t**2, 3 * np.cos(3 * t) + 2 * t
    stretch = weak_rows(series(t, x[:, None]), [0.4, 0.2])
    tolerance = 1e-6  # windows of ten steps; twenty alone reach 1e-9
    np.testing.assert_allclose(stretch.D @ x, stretch.V @ slope, atol=tolerance * np.abs(stretch.D @ x).max())
    np.testing.assert_allclose(stretch.D @ stretch.D.T, np.eye(stretch.n_rows), atol=1e-8)


def test_gaps_cut_a_trajectory():
    t = 0.1 * np.delete(np.arange(120), [30, 31])
    x = np.sin(t)[:, None]
    x[70] = np.nan
    assert [len(part.t) for part in series(t, x).stretches()] == [30, 40, 47]
    assert [len(part.t) for part in series(np.arange(1000.0), np.ones((1000, 1))).stretches()] == [334, 333, 333]


def test_the_window_follows_the_time_scale_of_the_data():
    t = np.linspace(0, 40, 801)
    slow, fast = (np.column_stack([np.sin(f * t), np.cos(f * t)]) for f in (1.0, 4.0))
    assert corner_frequency([series(t, fast)]) > 2 * corner_frequency([series(t, slow)])
    assert window_radius([series(t, fast)]) < window_radius([series(t, slow)])
    assert window_radius([series(t, slow)]) <= 801 / 6 * 0.05 + 1e-12


@pytest.mark.parametrize("uneven", [False, True])
def test_noise_levels_are_those_of_the_channels(uneven):
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(0.7, 1.3, 2000) if uneven else np.ones(2000)) * 0.01
    true = np.array([0.1, 0.01])
    x = np.column_stack([np.sin(t), np.cos(2 * t)]) + true * rng.normal(size=(2000, 2))
    np.testing.assert_allclose(noise_levels([series(t, x)]), true, rtol=0.06)


def test_noise_in_proportion_is_read_off_samples_of_all_sizes():
    """Decay over eight decades: each difference counts in shares of its own samples."""
    t, rng = np.linspace(0, 20, 2000), np.random.default_rng(1)
    size = np.exp(-t)[:, None]
    x = size * (1 + 0.05 * rng.normal(size=(2000, 1)))
    np.testing.assert_allclose(noise_levels([series(t, x)], [size]), 0.05, rtol=0.06)
    parts, sizes = [series(t[:700], x[:700]), series(t[700:], x[700:])], [size[:700], size[700:]]
    np.testing.assert_allclose(noise_levels(parts, sizes), 0.05, rtol=0.06)


@pytest.mark.parametrize("state", [0, 1])
def test_the_covariance_is_that_of_the_linearised_rows(state):
    """C = Σ_l s_l² L_l L_lᵀ with the L_l written out."""
    rng = np.random.default_rng(2)
    t = 0.05 * np.arange(60)
    x, noise = rng.normal(size=(60, 2)), np.array([0.3, 1.2])
    stretch = replace(weak_rows(series(t, x), [0.5]), truncation=np.zeros(2))
    library = Polynomials(2)
    support, coefficients = [((1, 4), np.array([0.7, -0.4])), ((2, 3), np.array([1.1, 0.2]))][state]
    errors = 0.1 * rng.normal(size=x.shape)
    rows = StateRows([stretch], library, state, noise)
    fit = RowsFit(support, coefficients, 0.0, [errors])
    xi = np.zeros(6)
    xi[list(support)] = coefficients
    slopes = directional(library, x - errors, xi)
    loads = np.hstack([noise[j] * ((state == j) * stretch.D - stretch.V * slopes[:, j]) for j in range(2)])
    C = loads @ loads.T
    C += JITTER * np.trace(C) / len(C) * np.eye(len(C))
    factor = np.linalg.cholesky(C)
    A, z = rows.system(fit)
    expected = np.linalg.solve(factor, stretch.V @ library.evaluate(x - errors))
    np.testing.assert_allclose(A, expected, rtol=1e-6, atol=1e-8)
    target = stretch.D @ (x - errors)[:, state]
    target += loads @ np.concatenate([errors[:, j] / noise[j] for j in range(2)])
    np.testing.assert_allclose(z, np.linalg.solve(factor, target), rtol=1e-6, atol=1e-8)


def test_estimated_errors_bring_the_states_closer_to_the_truth():
    (t, truth), (_, x) = systems.lorenz63().simulate(), systems.lorenz63().noisy(0.01, seed=5)
    stretch = weak_rows(series(t, x), [0.5, 0.25])
    library = Polynomials(2)
    for state, row in enumerate(systems.lorenz63().true_coefficients(library)):
        rows = StateRows([stretch], library, state, np.full(3, np.std(x - truth)))
        fit = rows.fitted(tuple(np.flatnonzero(row).tolist()))
        assert np.std(x - fit.errors[0] - truth) < 0.95 * np.std(x - truth)
        assert fit.rss / rows.n_rows == pytest.approx(1.0, abs=0.3)


def test_products_of_noisy_states_have_no_bias_of_second_order():
    """x' = y z, y' = x² − y, z' = 1 − 4x with 5 % noise: a constant, −s² if x² is not corrected, is not there."""

    def rates(_, s):
        return [s[1] * s[2], s[0] ** 2 - s[1], 1 - 4 * s[0]]

    t = np.linspace(0, 30, 400)
    clean = solve_ivp(rates, (0, 30), [-1.0, 1.2, 0.4], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    scores = []
    for seed in range(12):
        x = clean + 0.05 * clean.std() * np.random.default_rng(seed).normal(size=clean.shape)
        stretches = stretch_rows([series(t, x)])
        rows = StateRows(stretches, Polynomials(2), 1, noise_levels([one.data for one in stretches]))
        fit = rows.fitted((0, 2, 4))
        A, z = rows.system(fit)
        A = A[:, fit.support]
        deviation = np.sqrt(np.linalg.inv(A.T @ A)[0, 0] * fit.rss / (len(z) - A.shape[1]))
        scores.append(fit.coefficients[0] / deviation)
    assert abs(np.mean(scores)) < 3 / np.sqrt(len(scores))


def test_stretches_too_short_are_left_out():
    assert derivative_rows(series(np.arange(5.0), np.ones((5, 1))), "finite", 6) is None
    assert map_rows(series(np.arange(1.0), np.ones((1, 1)))) is None
    assert weak_rows(series(np.arange(20.0), np.ones((20, 1))), [30.0]) is None


@pytest.mark.parametrize("radius", [4, 7, 11, 15, 19])
def test_stretches_of_any_length_give_rows_or_are_left_out(radius):
    """Beside a long one that sets the radius; only those into which half a radius does not fit are left out."""
    for m in range(2, 2 * radius + 3):
        t = np.arange(float(m))
        found = weak_rows(series(t, np.sin(0.3 * t)[:, None]), [float(radius), radius / 2])
        assert (found is None) == (m < max(9, radius + 1 + radius % 2))
        assert found is None or 0 < found.n_rows < m


@pytest.mark.parametrize("radius", [2, 3, 4, 9])
def test_narrow_windows_are_exact_integration_by_parts(radius):
    """However few samples a window holds, D x = V x′ up to what a spline through them leaves."""
    t = 0.1 * np.arange(20)
    x, slope = np.column_stack([np.sin(t), np.cos(t)]), np.column_stack([np.cos(t), -np.sin(t)])
    stretch = weak_rows(series(t, x), [0.1 * radius])
    np.testing.assert_allclose(stretch.D @ x, stretch.V @ slope, atol=1e-6 * np.abs(stretch.D @ x).max())
    assert np.all(np.mean((stretch.D @ x - stretch.V @ slope) ** 2, axis=0) < stretch.truncation)


def test_passes_add_up():
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    rows = StateRows(stretch_rows([series(t, x)]), system.library, 1, np.ones(3))
    for support in ((1, 2), (0, 1, 5), ()):
        once, twice = rows.fitted(support, passes=1), rows.fitted(support, passes=2)
        np.testing.assert_array_equal(rows.fitted(support, once, 1).coefficients, twice.coefficients)
        A, z = rows.system(RowsFit((), np.empty(0), np.inf))
        np.testing.assert_allclose(once.coefficients, np.linalg.lstsq(A[:, support], z)[0], rtol=1e-6)


def test_a_fit_that_has_settled_is_returned_as_it_is():
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    rows = StateRows(stretch_rows([series(t, x)]), system.library, 0, 0.01 * x.std(axis=0))
    fit = rows.fitted((1, 2))
    assert fit.settled
    assert rows.fitted((1, 2), fit) is fit
    assert rows.fitted((1, 2), passes=1).settled is False
