"""Simulation of fields: several of them, two dimensions, second order, walls, known fields; orders of convergence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ardea.dynamics import Custom, Discovery, FieldTerms, systems
from ardea.dynamics.field_runs import ends_twice, samples_end_twice
from ardea.dynamics.field_simulation import SpectralEquation
from ardea.dynamics.fields import Fields
from ardea.dynamics.models import FieldModel
from ardea.dynamics.simulation import SimulationWarning


def relative(error, size):
    return np.max(np.abs(error)) / np.max(np.abs(size))


def model_with(library, names, axes, equations, space, **more):
    """Return equations, each {term: coefficient}, as a model of all these fields."""
    words = library.vocabulary(names, axes, more.get("n_known", 0)).names
    assert all(set(one) <= set(words) for one in equations)
    rows = np.array([[one.get(word, 0.0) for word in words] for one in equations])
    solved = more.pop("solved", names[: len(equations)])
    return FieldModel(library, names, axes, rows, space, np.full(len(names), 100.0), solved, **more)


def model_of(system, **changes):
    """Return the true equations as a model."""
    names = [*system.options.get("feature_names", system.feature_names), *system.options.get("known_fields", {})]
    solved = system.options.get("equations", list(system.feature_names))
    known = len(system.options.get("known_fields", {}))
    parts = (system.true_coefficients(), system.space, np.full(len(names), 100.0), solved, known, system.order)
    return replace(FieldModel(system.library, names, ["x", "y"][: len(system.space)], *parts), **changes)


@pytest.mark.parametrize(
    ("name", "times", "error"),
    [
        ("fitzhugh_nagumo_waves", 30, 1e-5),
        ("klein_gordon", 30, 1e-5),
        ("porous_medium", 30, 1e-5),
        ("cahn_hilliard", 30, 1e-5),
        ("nonlinear_schroedinger", 30, 1e-5),
        ("schroedinger", 30, 1e-5),
        ("lambda_omega", 6, 2e-4),
        ("vorticity", 9, 1e-4),
    ],
)
def test_true_fields_of_all_kinds_reproduce_the_system(name, times, error):
    """Against solvers of their own, of a tolerance of 1e-7, with aliasing; velocities of w are interpolated."""
    system = systems.ALL_FIELDS[name]()
    t = system.t[:times]
    expected = system.simulate(t=t)[1]
    start, more = system.x0, dict(system.options.get("known_fields", {}))
    if name == "klein_gordon":
        start = np.concatenate([start, np.zeros_like(start)], axis=-1)
    elif name == "vorticity":
        start, more, expected = start[..., 0], {"u": expected[..., 1], "v": expected[..., 2]}, expected[..., 0]
    start = start[..., 0] if start.shape[-1] == 1 else start
    solution = model_of(system).simulate(start, t, more or None)
    solution = solution[..., 0] if name == "klein_gordon" else solution
    assert solution.shape == expected.shape
    assert relative(solution - expected, expected) < error


def test_walls_reproduce_the_system():
    """Heat between walls, against its Fourier series."""
    system = systems.heat_with_walls()
    t, expected = system.simulate()
    solution = model_of(system).simulate(system.x0[:, 0], t, None, (expected[0], expected[-1]))
    assert relative(solution - expected, expected) < 1e-6


def test_waves_on_a_surface_by_hand():
    """Advection and diffusion in two dimensions: every wave moves and decays on its own, exactly."""
    x, y, t = 2 * np.pi * np.arange(16) / 16, 3 * np.arange(12) / 12, np.array([0.0, 0.4, 1.0])
    k, j = 2.0, 2 * np.pi / 3

    def wave(s):
        return np.exp(-(0.1 * k**2 + 0.2 * j**2 + 0.05 * k * j) * s) * np.cos(
            k * (x[:, None] - s) + j * (y[None] + 0.5 * s)
        )

    terms = {"u_x": -1.0, "u_y": 0.5, "u_xx": 0.1, "u_yy": 0.2, "u_xy": 0.05}
    model = model_with(FieldTerms(1, 2), ["u"], ["x", "y"], [terms], (x, y))
    expected = np.stack([wave(s) for s in t], axis=-1)
    np.testing.assert_allclose(model.simulate(wave(0.0), t, None), expected, atol=1e-12)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_standing_waves_swing_in_any_dimension(n_axes):
    """u_tt = ∇²u, u = cos(|k| t) Π cos x_a: fields come with their rates of change."""
    points, t = 2 * np.pi * np.arange(8) / 8, np.linspace(0, 2, 5)
    axes = ["x", "y", "z"][:n_axes]
    shape = np.prod(np.meshgrid(*[np.cos(points)] * n_axes, indexing="ij"), axis=0)
    model = model_with(FieldTerms(0, 2), ["u"], axes, [{f"u_{a}{a}": 1.0 for a in axes}], (points,) * n_axes, order=2)
    solution = model.simulate(np.stack([shape, 0 * shape], axis=-1), t, None)
    speed = np.sqrt(n_axes)
    expected = np.stack([np.cos(speed * t), -speed * np.sin(speed * t)], axis=-1)
    np.testing.assert_allclose(solution, shape[..., None, None] * expected, atol=5e-6)


@pytest.mark.parametrize("kind", ["two fields", "two dimensions", "second order"])
def test_etdrk4_converges_with_order_four(kind):
    x = 2 * np.pi * np.arange(32) / 32
    grid, order = ((32,) if kind != "two dimensions" else (32, 32)), 1 + (kind == "second order")
    library, axes = FieldTerms(2, 2), ["x", "y"][: len(grid)]
    fields = ["u", "v"] if kind == "two fields" else ["u"]
    equations = {
        "two fields": [{"u_xx": 0.1, "v_xx": 0.2, "u v": -1.0}, {"v_xx": 0.1, "u v": 1.0, "u_xx": -0.2}],
        "two dimensions": [{"u_xx": 0.1, "u_yy": 0.1, "u u_x": -1.0, "u u_y": -0.5}],
        "second order": [{"u_xx": 1.0, "u": -1.0, "u^2": -1.0}],
    }[kind]
    words = library.names(fields, axes)
    rows = [[one.get(word, 0.0) for word in words] for one in equations]
    solved = list(range(len(fields)))
    terms = library.terms(len(fields), len(grid))
    equation = SpectralEquation(terms, rows, grid, (2 * np.pi,) * len(grid), solved=solved, order=order)
    first = 0.5 * np.sin(x) + 0.3 * np.cos(2 * x)
    start = np.stack([first, 0.4 * np.cos(x)]) if len(grid) == 1 else (first[:, None] + 0.5 * np.cos(x))[None]
    t = np.array([0.0, 1.0])
    fine = equation.solve(start, t, 1 / 320)
    errors = [np.max(np.abs(equation.solve(start, t, h) - fine)) for h in (1 / 20, 1 / 40, 1 / 80)]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 4.0, atol=0.35)


@pytest.mark.parametrize(
    ("terms", "speed"),
    [
        ({"u_xx": 0.1, "u u_x": -1.0}, None),
        ({"u_x": -1.0, "u_xx": 0.1}, lambda k: -1j * k - 0.1 * k**2),
        ({"u_xxx": -0.02, "u_xx": 0.005}, lambda k: 0.02j * k**3 - 0.005 * k**2),
        ({"u_xxxx": -0.002, "u_xx": -0.02}, lambda k: -0.002 * k**4 + 0.02 * k**2),
    ],
)
def test_lines_between_walls_converge_with_order_four(terms, speed):
    """Waves that cross the walls, whose values are given; and the front 1 − tanh((x − t)/(2·0.1)) of Burgers."""
    library, t, errors = FieldTerms(1, 4), np.linspace(0, 1, 41), []

    def exact(x):
        if speed is None:
            return 1 - np.tanh((x[:, None] - 0.5 - t) / 0.2)
        return np.sum([np.real(np.exp(1j * k * x[:, None] + speed(k) * t + 1j * k)) for k in (2.0, 5.0)], axis=0)

    for n in (21, 41, 81):
        x = np.linspace(0, 2, n)
        u, model = exact(x), model_with(library, ["u"], ["x"], [terms], (x,))
        width = 2 if {"u_xxx", "u_xxxx"} & set(terms) else 1
        errors.append(relative(model.simulate(u[:, 0], t, None, (u[:width], u[-width:])) - u, u))
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 3.3)
    assert errors[-1] < 1e-3


def test_walls_may_be_uneven_and_of_several_fields():
    """Two fields turn into each other and spread: u = e^{−κt} sin x cos t, v = e^{−κt} sin x sin t."""
    x, t = np.pi * np.linspace(0.02, 0.97, 60) ** 1.2, np.linspace(0, 1, 11)
    shape = np.sin(x)[:, None, None] * np.exp(-0.3 * t)[:, None]
    expected = shape * np.stack([np.cos(t), np.sin(t)], axis=-1)
    equations = [{"u_xx": 0.3, "v": -1.0}, {"v_xx": 0.3, "u": 1.0}]
    model = model_with(FieldTerms(1, 2), ["u", "v"], ["x"], equations, (x,))
    solution = model.simulate(expected[:, 0], t, None, (expected[0], expected[-1]))
    np.testing.assert_allclose(solution, expected, atol=1e-6)


def test_strings_between_walls_swing():
    """u_tt = u_xx between walls at zero: cos(2t) sin(2x)."""
    x, t = np.linspace(0, np.pi, 81), np.linspace(0, 2, 9)
    model = model_with(FieldTerms(0, 2), ["u"], ["x"], [{"u_xx": 1.0}], (x,), order=2)
    start = np.stack([np.sin(2 * x), 0 * x], axis=-1)
    solution = model.simulate(start, t, None, (0.0, 0.0))
    np.testing.assert_allclose(solution[..., 0], np.outer(np.sin(2 * x), np.cos(2 * t)), atol=1e-4)


def test_functions_and_known_fields_act():
    """u_t = cos x · F(t) with a known field, and u_t = sin(u), whose solution is 2 arctan(tan(u₀/2) eᵗ)."""
    x, t = 2 * np.pi * np.arange(32) / 32, np.linspace(0, 1, 21)
    model = model_with(FieldTerms(1, 0), ["u", "F"], ["x"], [{"F": 1.0}], (x,), n_known=1)
    force = np.outer(np.cos(x), np.exp(t))
    solution = model.simulate(np.zeros(32), t, {"F": force})
    np.testing.assert_allclose(solution, np.outer(np.cos(x), np.exp(t) - 1), atol=1e-6)
    model = model_with(FieldTerms(0, 1) + Custom([np.sin]), ["u"], ["x"], [{"sin(u)": 1.0}], (x,))
    start = 1 + 0.1 * np.cos(x)
    expected = 2 * np.arctan(np.tan(start / 2)[:, None] * np.exp(t))
    np.testing.assert_allclose(model.simulate(start, t, None), expected, atol=1e-5)


def test_draws_of_fields_have_bands():
    """Two fields on a surface that decay at drawn rates: the median of three draws is the run of the middle one."""
    x, t = 2 * np.pi * np.arange(8) / 8, np.linspace(0, 1, 4)
    model = model_with(FieldTerms(1, 1), ["u", "v"], ["x", "y"], [{"u": -1.0}, {"v": -2.0}], (x, x[:4]))
    start = 1 + np.random.default_rng(0).uniform(size=(8, 4, 2))
    draws = np.array([0.5, 1.0, 1.5])[:, None, None] * model.coefficients
    bands = model.simulate_bands(draws, start, t, None, 0.9)
    np.testing.assert_allclose(bands.median, model.simulate(start, t, None), rtol=1e-9)
    assert bands.samples.shape == (3, 8, 4, 4, 2)
    assert bands.to_frame().shape == (4, 3 * 64 + 1)
    apart = model.simulate_bands(draws, np.stack([start, 2 * start, start]), t, None, 0.9)
    np.testing.assert_allclose(apart.samples[1], 2 * bands.samples[1], rtol=1e-9)


def test_a_surface_that_blows_up_is_named():
    x, t = 2 * np.pi * np.arange(16) / 16, np.linspace(0, 1, 21)
    model = model_with(FieldTerms(2, 2), ["u"], ["x", "y"], [{"u^2": 1.0}], (x, x))
    with pytest.warns(SimulationWarning, match=r"near t = 0\.6"):
        assert model.simulate(1 + 0.5 * np.cos(x)[:, None] * np.ones(16), t, None).shape == (16, 16, 14)


def test_what_cannot_be_run_is_refused():
    x = 2 * np.pi * np.arange(32) / 32
    heat = model_with(FieldTerms(1, 2), ["u", "v"], ["x"], [{"u_xx": 1.0, "v": 1.0}], (x,))
    flat = model_with(FieldTerms(1, 2), ["u"], ["x", "y"], [{"u_xx": 1.0}], (x, x))
    stirred = model_with(FieldTerms(1, 2), ["u"], ["x", "y"], [{"u_xx": 1.0, "u_yy": -1.0}], (x, x))
    start, t = np.cos(x), [0.0, 1.0]
    cases = [
        (lambda: heat.simulate(start, t, None), r"u must be \{'v': …\}"),
        (lambda: heat.simulate(start, t, {"v": start, "w": start}), r"u must be \{'v': …\}"),
        (lambda: heat.simulate(start, t, {"v": start[:-1]}), r"v must have the shape \(32,\)"),
        (lambda: heat.simulate(start[:-1], t, {"v": start}), r"shape of the grid, \(32,\)"),
        (lambda: heat.simulate(x, t, {"v": start}), "boundary=\\(left, right\\)"),
        (lambda: heat.simulate(start, t, {"v": start}, 0.0), "pair"),
        (lambda: heat.simulate(start, t, {"v": start}, (np.zeros(3), 0.0)), r"fit the shape \(1, 2\)"),
        (lambda: flat.simulate(np.outer(start, x), t, None), "last point of y"),
        (lambda: stirred.simulate(np.outer(start, start), t, None), "ill-posed"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="one space dimension"):
        flat.simulate(np.outer(start, start), t, None, (0.0, 0.0))


def carried(x, t, phase, noise, seed):
    """Return u_t = −u_x + 0.1 u_xx, sampled with noise."""
    waves = [np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t) + phase) for k in (0.5, 1.0, 1.7)]
    return np.sum(waves, axis=0) + noise * np.random.default_rng(seed).normal(size=(len(x), len(t)))


def test_fields_are_scored():
    """R² of the rows: near 1 on other data and grids, 0 where nothing is explained, below where a sign is wrong."""
    x, t = np.linspace(0, 20, 120), np.linspace(0, 4, 100)
    model = Discovery(FieldTerms(1, 2)).fit(carried(x, t, 0.0, 0.01, 1000), t, space=(x,))
    other, fine = carried(x, t, 1.0, 0.01, 1001), np.linspace(0, 18, 150)
    assert model.score(other, t) > 0.999
    assert model.score([other, carried(x, t, 2.0, 0.01, 1002)], t) > 0.999
    assert model.score(carried(fine, t, 1.0, 0.01, 1003), t, space=(fine,)) > 0.999
    assert model.score(7 * other, t) == pytest.approx(model.score(other, t), abs=1e-9)
    right = model.model_
    model.model_ = replace(right, coefficients=0 * right.coefficients)
    assert model.score(other, t) == 0.0
    model.model_ = replace(right, coefficients=-right.coefficients)
    assert model.score(other, t) == pytest.approx(-3.0, abs=0.1)
    with pytest.raises(ValueError, match="known fields, none"):
        model.score(other, t, u={"V": x})
    system = systems.schroedinger()
    (t, u), known = system.noisy(0.01, seed=1000), system.options["known_fields"]
    model.model_ = model_of(system)
    assert model.score(u, t, u=known) > 0.999
    assert model.score(u[..., 0] + 1j * u[..., 1], t, u=known) == model.score(u, t, u=known)
    with pytest.raises(ValueError, match="known fields, V"):
        model.score(u, t)


def of_high_order(equation, x):
    return model_with(FieldTerms(1, 4), ["u"], ["x"], [equation], (x,))


def waves(equation):
    """Return x, t and u of a periodic equation from three waves."""
    x, t = np.arange(200) / 10, np.linspace(0, 2, 60)
    start = sum(a * np.cos(2 * np.pi * k * x / 20 + a) for k, a in ((1, 1.0), (2, 0.5), (3, 0.3)))
    return x, t, of_high_order(equation, x).simulate(start, t, None)


HIGH_ORDERS = {
    "Korteweg–de Vries": {"u u_x": -1.0, "u_xxx": -0.5},
    "Kuramoto–Sivashinsky": {"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0},
}


@pytest.mark.parametrize("name", HIGH_ORDERS)
def test_walls_of_third_and_fourth_order_take_two_points(name):
    """A window of a periodic run, with the values at its outer two points given, is that run; one is refused."""
    x, t, u = waves(HIGH_ORDERS[name])
    window = slice(20, 110)
    model, own = of_high_order(HIGH_ORDERS[name], x[window]), u[window]
    run = model.simulate(own[:, 0], t, None, boundary=(own[:2], own[-2:]))
    assert np.max(np.abs(run - own)) < 2e-3 * np.ptp(own)
    for one in ((own[0], own[-1]), (0.0, 0.0), (own[:2], own[-1])):
        with pytest.raises(ValueError, match=r"outer 2 points.*boundary=\(u\[:2\], u\[-2:\]\)"):
            model.simulate(own[:, 0], t, None, boundary=one)


@pytest.mark.parametrize("name", HIGH_ORDERS)
def test_an_end_that_is_given_twice_counts_once(name):
    x, t, u = waves(HIGH_ORDERS[name])
    run = of_high_order(HIGH_ORDERS[name], np.append(x, 20.0)).simulate(np.append(u[:, 0], u[0, 0]), t, None)
    assert np.allclose(run, np.vstack([u, u[:1]]), atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("n", [41, 40])
def test_samples_may_end_twice(n, noise):
    """Of a ring of 40 points, with or without the first again at the end, smoothed samples give the period."""
    x, t = np.arange(n) / 2, np.linspace(0, 4, 60)
    turns = 2 * np.pi / 20 * np.array([1, 2, 4])
    u = sum(np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t) + 1) for k in turns)
    samples = u + noise * np.random.default_rng(0).normal(size=u.shape)
    model = Discovery(FieldTerms(1, 2)).fit(samples, t, space=(x,))
    assert samples_end_twice(Fields(samples, (x,), t)) == [n == 41]
    assert np.max(np.abs(model.simulate(None, t) - u)) < 4 * noise + 1e-3


def test_walls_with_one_value_at_both_ends_do_not_repeat_it():
    x, t = np.linspace(0, 3, 60), np.linspace(0, 1, 40)
    u = sum(np.exp(-t) * np.sin(np.pi * k / 3 * x[:, None]) for k in (1, 3))
    assert samples_end_twice(Fields(u + 1e-3 * np.random.default_rng(0).normal(size=u.shape), (x,), t)) == [False]


def test_symmetric_starts_have_two_equal_ends():
    """Cell centres of a symmetric start are all different points, and so are points with a zero at both ends."""
    ends, centres = np.linspace(-1, 1, 33), (np.arange(32) + 0.5) / 16 - 1
    assert ends_twice(np.cos(np.pi * ends)[None]) == [True]
    assert ends_twice(np.cos(np.pi * centres)[None]) == [False]
    assert ends_twice(np.maximum(0.5 - np.abs(ends), 0)[None]) == [False]
    both = np.cos(np.pi * ends)[:, None] + np.sin(np.pi * ends[:-1])
    assert ends_twice(both[None]) == [True, False]


def test_a_field_held_at_zero_at_both_ends_is_run_between_its_ends():
    x, t = np.linspace(0, 1, 64), np.linspace(0, 0.05, 80)
    modes = ((1, 1.0), (3, 0.5))
    u = sum(size * np.exp(-((k * np.pi) ** 2) * t) * np.sin(k * np.pi * x)[:, None] for k, size in modes)
    u = u + 0.01 * np.random.default_rng(1).normal(size=u.shape)
    model = Discovery().fit(u, t, space=(x,), feature_names=["u"])
    assert np.sqrt(np.mean((model.simulate(None, t) - u) ** 2)) < 0.015  # as periodic 0.26
