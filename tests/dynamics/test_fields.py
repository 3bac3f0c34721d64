"""Equations of fields: discovery with nothing told, several runs, grids, and what does not fit."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from made_fields import drifting, found, noisy, size_of, summed, true_support, waves, windows_and_jets
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline

from ardea.dynamics import (
    AmbiguityWarning,
    Custom,
    Discovery,
    MisfitWarning,
    search,
    systems,
)
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_terms import FieldTerms, noise_weights, plain, weak_form
from ardea.dynamics.fields import Fields, mistakes_in
from ardea.dynamics.search import equivalents, searched
from ardea.dynamics.terms import Jet
from ardea.dynamics.told import said_of_expansions
from ardea.methods.task import ard_supports

# Discovery


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
