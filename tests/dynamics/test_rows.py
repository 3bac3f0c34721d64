"""Rows of series: integration by parts, windows, noise levels, and the whitening of several equations together."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ardea.dynamics import Polynomials, systems
from ardea.dynamics.rows import (
    corner_frequency,
    derivative_rows,
    filled,
    map_rows,
    stretch_rows,
    weak_rows,
    window_radius,
)
from ardea.dynamics.series import Series, noise_levels
from ardea.dynamics.whitening import JITTER, FirstPass, JointFit, JointRows


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


def test_the_joint_covariance_is_that_of_the_linearised_rows():
    """C = Σ_l s_l² L_l L_lᵀ with the L_l written out, for all equations at once."""
    rng = np.random.default_rng(2)
    t = 0.05 * np.arange(60)
    x, noise = rng.normal(size=(60, 2)), np.array([0.3, 1.2])
    stretch = weak_rows(series(t, x), [0.5])
    library = Polynomials(2)
    supports, coefficients = ((1, 4), (2, 3)), (np.array([0.7, -0.4]), np.array([1.1, 0.2]))
    errors = 0.1 * rng.normal(size=x.shape)
    rows = JointRows([stretch], library, [0, 1], noise)
    fit = JointFit(supports, coefficients, 0.0, [errors])
    loads = []
    for i in range(2):
        xi = np.zeros(6)
        xi[list(supports[i])] = coefficients[i]
        slopes = library.directional(x - errors, xi)
        loads.append(np.hstack([noise[j] * ((i == j) * stretch.D - stretch.V * slopes[:, j]) for j in range(2)]))
    dense = np.vstack(loads)
    C = dense @ dense.T
    C += JITTER * np.trace(C) / len(C) * np.eye(len(C))
    A, z = rows.design(fit)
    factor = np.linalg.cholesky(C)
    theta = stretch.V @ library.evaluate(x - errors)
    expected = np.zeros((2 * stretch.n_rows, 4))
    expected[: stretch.n_rows, :2], expected[stretch.n_rows :, 2:] = theta[:, [1, 4]], theta[:, [2, 3]]
    np.testing.assert_allclose(A, np.linalg.solve(factor, expected), rtol=1e-6, atol=1e-8)
    stacked = np.concatenate([stretch.D @ (x - errors)[:, i] for i in range(2)])
    stacked += np.concatenate(loads, axis=0) @ np.concatenate([errors[:, j] / noise[j] for j in range(2)])
    np.testing.assert_allclose(z, np.linalg.solve(factor, stacked), rtol=1e-6, atol=1e-8)
    partialled, rest = rows.system(fit, 1)
    others = A[:, :2]
    projector = np.eye(len(z)) - others @ np.linalg.pinv(others)
    np.testing.assert_allclose(partialled[:, [2, 3]], projector @ A[:, 2:], atol=1e-8)
    np.testing.assert_allclose(rest, projector @ z, atol=1e-8)


def test_estimated_errors_bring_the_states_closer_to_the_truth():
    (t, truth), (_, x) = systems.lorenz63().simulate(), systems.lorenz63().noisy(0.01, seed=5)
    stretch = weak_rows(series(t, x), [0.5, 0.25])
    library = Polynomials(2)
    true = systems.lorenz63().true_coefficients(library)
    rows = JointRows([stretch], library, range(3), np.full(3, np.std(x - truth)))
    fit = rows.fitted([tuple(np.flatnonzero(row).tolist()) for row in true])
    assert np.std(x - fit.errors[0] - truth) < 0.6 * np.std(x - truth)
    assert fit.rss / rows.n_rows == pytest.approx(1.0, abs=0.2)


def test_products_of_noisy_states_have_no_bias_of_second_order():
    """x' = y z, y' = x² − y, z' = 1 − 4x with 5 % noise: a constant, −s² if x² is not corrected, is not there."""

    def rates(_, s):
        return [s[1] * s[2], s[0] ** 2 - s[1], 1 - 4 * s[0]]

    t = np.linspace(0, 60, 800)
    clean = solve_ivp(rates, (0, 60), [-1.0, 1.2, 0.4], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    scores = []
    for seed in range(12):
        x = clean + 0.05 * clean.std() * np.random.default_rng(seed).normal(size=clean.shape)
        stretches = stretch_rows([series(t, x)])
        rows = JointRows(stretches, Polynomials(2), range(3), noise_levels([one.data for one in stretches]))
        fit = rows.fitted([(8,), (0, 2, 4), (0, 1)])
        A, z = rows.design(fit)
        deviation = np.sqrt(np.linalg.inv(A.T @ A)[1, 1] * fit.rss / (len(z) - A.shape[1]))
        scores.append(fit.coefficients[1][0] / deviation)
    assert abs(np.mean(scores)) < 3 / np.sqrt(len(scores))


def test_short_gaps_are_filled_with_values_as_unsure_as_they_are():
    rng = np.random.default_rng(4)
    t = np.delete(0.3 * np.arange(200), [20, 50, 51, 90, 91, 92])
    truth = np.column_stack([np.sin(t), np.cos(2 * t)])
    (part,) = series(t, truth + 0.01 * rng.normal(size=truth.shape)).stretches(bridged=True)
    whole = filled(part)
    np.testing.assert_allclose(whole.t, 0.3 * np.arange(200))
    np.testing.assert_allclose(whole.measured.x, part.x, rtol=1e-12)
    gaps = np.flatnonzero(whole.unsure[:, 0])
    assert gaps.tolist() == [20, 50, 51, 90, 91, 92]
    off = whole.x[gaps] - np.column_stack([np.sin(whole.t), np.cos(2 * whole.t)])[gaps]
    assert np.all(np.abs(off) < 3 * np.sqrt(whole.unsure[gaps]))
    (stretch,) = stretch_rows([series(t, truth)])
    assert stretch.n_samples == 194
    assert filled(series(np.arange(20.0), np.ones((20, 1)))).unsure is None


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


@pytest.mark.parametrize("form", ["weak", "derivative"])
@pytest.mark.parametrize("states", [[1], [0, 1, 2]])
def test_fits_from_the_shared_first_pass_are_those_from_zero(form, states):
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    rows = JointRows(stretch_rows([series(t, x)], form), system.library, states, np.ones(3))
    first = FirstPass(rows)
    for supports in ([(1, 2)] * len(states), [(0, 1, 5)] * len(states), [()] * len(states)):
        for passes in (1, 2, 3):
            ours, plain = (rows.fitted(supports, start, passes) for start in (first, None))
            np.testing.assert_allclose(ours.rss, plain.rss, rtol=1e-8)
            for one, other in zip(ours.coefficients, plain.coefficients, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_fit_that_has_settled_is_returned_as_it_is():
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    rows = JointRows(stretch_rows([series(t, x)]), system.library, [0], 0.01 * x.std(axis=0))
    fit = rows.fitted([(1, 2)])
    assert fit.settled
    assert rows.fitted([(1, 2)], fit) is fit
    assert rows.fitted([(1, 2)], passes=1).settled is False
