"""The noise of rows of fields: uneven points, rounded samples, and what is said of a misfit."""

from __future__ import annotations

import numpy as np
import pytest

from ardea.dynamics import FieldTerms
from ardea.dynamics.differences import SplineSmoother, TensorSplines
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.fields import Fields, mistakes_in
from ardea.dynamics.windows import NoiseCovariance, noise_roots, place_windows, unit_of


def waves(x, t):
    """Waves that move and decay, u_t = −u_x + .1 u_xx."""
    return sum(np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t)) for k in (0.5, 1.0, 1.7))


def equation_of_waves(u, x, t):
    """Return their equation and its fit at the right terms."""
    library = FieldTerms(1, 2)
    equation = FieldEquation([Fields(u, (x,), t)], library)
    return equation, equation.fitted((library.names().index("u_x"), library.names().index("u_xx")))


@pytest.mark.parametrize("uneven", ["x", "t"])
def test_rows_of_uneven_points_have_the_noise_of_the_samples(uneven):
    """Seven tenths of the points of an axis, taken at random, over eight draws."""
    squares = []
    for seed in range(8):
        rng, x, t = np.random.default_rng(seed), np.linspace(0, 20, 100), np.linspace(0, 4, 60)
        x = np.sort(rng.choice(x, 70, replace=False)) if uneven == "x" else x
        t = np.sort(rng.choice(t, 42, replace=False)) if uneven == "t" else t
        u = waves(x, t)
        equation, fit = equation_of_waves(u + 0.02 * rng.normal(size=u.shape), x, t)
        A, z = equation.system(fit)
        squares.append((z - A[:, list(fit.support)] @ fit.coefficients) ** 2)
    every = np.concatenate(squares)
    assert np.mean(every) == pytest.approx(1, abs=4 * np.sqrt(2 / every.size))


@pytest.mark.parametrize("derived", [False, True])
def test_covariance_of_uneven_points_equals_the_dense_one(derived):
    """It does where weights are constant in time, whatever they are in space."""
    grid, rng = (40, 30), np.random.default_rng(0)
    windows, _, _ = place_windows(grid, [0.1, 0.1], [6.0, 6.0])
    even = [np.arange(float(n)) for n in grid]
    points = [np.sort(np.append(rng.uniform(0, n - 1, n - 2), (0.0, n - 1.0))) for n in grid]
    own = TensorSplines([SplineSmoother(*axis) for axis in zip(points, (20, 15), even, strict=True)])
    thinned = own.thinned((1, 1))
    roots = noise_roots(own, thinned, (1, 1))
    weights = {orders: np.repeat(rng.normal(size=(40, 1)), 30, axis=1) for orders in ((0,), (2,))}
    space, time = (one.basis @ root for one, root in zip(thinned.smoothers, roots, strict=True))
    rows = []
    for i, j in np.ndindex(windows.lattice[1], windows.lattice[0]):
        bumps, shapes = windows.axes[0].matrices, windows.axes[1].matrices
        along = sum(weight[:, 0] * bumps[orders[0]][j] for orders, weight in weights.items())
        row = np.outer(space.T @ along, time.T @ shapes[0][i])
        rows.append((row + derived * np.outer(space.T @ bumps[0][j], time.T @ shapes[1][i])).ravel())
    expected = np.triu(np.array(rows) @ np.array(rows).T)
    found = np.triu(NoiseCovariance(windows, thinned, 1, roots).upper(weights, derived))
    assert np.max(np.abs(found - expected)) < 1e-10 * np.max(expected)


@pytest.mark.parametrize(("unit", "n_told"), [(0.1, 0), (0.3, 1)])
def test_errors_of_rounding_that_go_on_are_noise_and_told(unit, n_told):
    x, t = np.linspace(0, 20, 100), np.linspace(0, 4, 120)
    equation, fit = equation_of_waves(np.round(waves(x, t) / unit) * unit, x, t)
    A, z = equation.system(fit)
    assert np.std(z - A[:, list(fit.support)] @ fit.coefficients) < 1.2
    assert equation.structure > 0
    told = equation.runs[0].data.told
    assert [f"rounded to {unit}," in text for text in told] == [True] * n_told


def test_rounding_of_noisy_samples_adds_what_it_should():
    """Errors of rounding that noise makes independent add unit²/12 to the square of the noise, and nothing is told."""
    x, t, unit = np.linspace(0, 20, 100), np.linspace(0, 4, 120), 0.1
    u = waves(x, t) + 0.06 * np.random.default_rng(0).normal(size=(100, 120))
    rounded = Fields(np.round(u / unit) * unit, (x,), t)
    assert rounded.noise[0] == pytest.approx(np.hypot(0.06, unit / 12**0.5), rel=0.04)
    assert not rounded.told


def test_a_rounded_peak_is_no_mistake():
    x, t = np.linspace(-3, 3, 60), np.linspace(0, 1, 40)
    u = np.round(np.exp(-(x[:, None] ** 2) - t) * 4.4) / 4
    peak = np.argwhere(u == u.max())
    u[tuple(peak[len(peak) // 2])] += 0.25
    assert len(mistakes_in(u)) > len(mistakes_in(u, unit_of(u))) == 0


def two_ways(x, t):
    """Waves that run both ways, u_tt = u_xx − u."""
    swings = [(0.5, 0.3), (1.0, 1.4), (1.7, 2.0)]
    return sum(np.cos(np.sqrt(1 + k**2) * t + phase) * np.sin(k * x[:, None] + phase) for k, phase in swings)


@pytest.mark.parametrize("noise", [0.001, 0.05])
@pytest.mark.parametrize(("field", "said"), [(two_ways, True), (waves, False)])
def test_second_derivatives_in_time_are_named_where_they_are_explained(field, said, noise):
    """The other field obeys a law of u_t that is not among the candidates."""
    x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 120)
    u = field(x, t)
    data = Fields(u + noise * u.std() * np.random.default_rng(0).normal(size=u.shape), (x,), t)
    equation = FieldEquation([data], FieldTerms(2, 2) if said else FieldTerms(2, 0))
    assert ("derivative_order=2" in equation.hint) == said


@pytest.mark.parametrize("uneven", [False, True])
def test_weights_that_do_not_change_have_the_covariance_of_others(uneven):
    grid = (40, 60)
    windows, _, _ = place_windows(grid, [0.1, 0.1], [6.0, 12.0])
    even = [np.arange(float(n)) for n in grid]
    times = np.delete(np.arange(80.0), np.arange(3, 43, 2)) * 59 / 79 if uneven else even[1]
    own = TensorSplines([SplineSmoother(even[0], 20), SplineSmoother(times, 30, even[1] if uneven else None)])
    errors = own.thinned((1, 1))
    covariance = NoiseCovariance(windows, errors, 1, noise_roots(own, errors, (1, 1)))
    constant = {orders: np.broadcast_to(value, grid) for orders, value in (((1,), -1.3), ((2,), 0.4))}
    copied = {orders: weight.copy() for orders, weight in constant.items()}
    expected = covariance.upper(copied, True)
    assert np.allclose(covariance.upper(constant, True), expected, rtol=0, atol=1e-12 * np.max(expected))
