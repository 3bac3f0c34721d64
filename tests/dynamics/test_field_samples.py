"""Fields as they come: functions of fields, samples that show something odd, gaps, and bad input."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from made_fields import drifting, found, true_support
from scipy.integrate import solve_ivp

from ardea.dynamics import (
    Custom,
    Discovery,
    Fourier,
    Polynomials,
    systems,
)
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_gaps import filled
from ardea.dynamics.field_terms import FieldTerms, Jets
from ardea.dynamics.fields import Fields, FieldWishes, mistakes_in, read_fields
from ardea.dynamics.search import RowsFit, as_good
from ardea.dynamics.terms import FieldTerm, Jet
from ardea.dynamics.told import told_of
from ardea.dynamics.windows import AxisWindows, Windows

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
