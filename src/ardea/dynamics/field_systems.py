"""Fields whose equations are known, for trying methods on.

`ALL_PDES` are single fields, periodic in one space dimension, with terms u^p ∂^q u. `ALL_FIELDS` are of all kinds:
several fields, two and three space dimensions, walls, a shock, a potential that is known, second order in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.field_simulation import SpectralEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.known import ALL_PDES, System, listed
from ardea.dynamics.libraries import Library

# From a start of shape (…grid, fields) and times to fields of shape (…grid, times, fields).
Solver = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Pde(System):
    """u_t = Σ ξ u^p ∂^q u, periodic in one space dimension, solved by ETDRK4.

    Attributes
    ----------
    length : float
        Period.
    max_step : float
        Longest internal time step.
    """

    length: float
    max_step: float

    @property
    def space(self) -> tuple[Array]:
        """The grid, length·i/n_x, as the tuple that `Discovery.fit` takes."""
        return (self.length * np.arange(len(self.x0)) / len(self.x0),)

    @cached_property
    def _equation(self) -> SpectralEquation:
        return SpectralEquation(FieldTerms(4, 4).terms(), self.true_coefficients(), self.x0.shape, (self.length,))

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return u_t for a field of shape (n_x, n_t) or (n_x,), by FFT."""
        return np.apply_along_axis(lambda u: self._equation.derivative(u[None])[0], 0, np.asarray(x, dtype=float))

    def _solve(self, x0: Array, t: Array) -> Array:
        return self._equation.solve(x0[None], t, self.max_step)[:, 0].T


def _pde(u0: Array, length: float, dt: float, max_step: float) -> Callable[[Any], Callable[[], Pde]]:
    """Make a function that returns the terms of u_t a factory of its system."""
    size = (u0, dt, 200, FieldTerms(4, 4), length, max_step)
    return lambda terms: listed(Pde("pde", terms.__name__, ("u",), (terms(),), *size), terms.__doc__)


def _waves(n_modes: int, seed: int) -> Array:
    """Return a sum of the first modes with random phases and decaying amplitudes, scaled to a largest value of 1."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(256) / 256
    modes = np.arange(1, n_modes + 1)
    phases, sizes = rng.uniform(0, 2 * np.pi, n_modes), rng.uniform(0.5, 1.0, n_modes) / np.sqrt(modes)
    u = np.cos(modes[:, None] * angle + phases[:, None]).T @ sizes
    return np.asarray(u / np.max(np.abs(u)))


def _bump(centre: float, spread: float) -> Array:
    """Return exp(−(x − centre)²/spread) on [0, 80)."""
    return np.asarray(np.exp(-((80.0 * np.arange(256) / 256 - centre) ** 2) / spread))


@lru_cache(maxsize=4)
def kuramoto_sivashinsky(n_x: int = 512) -> Pde:
    """Kuramoto–Sivashinsky: u_t = −u u_x − u_xx − u_xxxx on [0, 32π); 512 × 1072 at dt = 0.14, steps of 0.01.

    The start is cos(x/8)(1 + sin(x/16)).

    Parameters
    ----------
    n_x : int
        Number of grid points.
    """
    length = 32 * np.pi
    x = length * np.arange(n_x) / n_x
    u0, terms = np.cos(x / 8) * (1 + np.sin(x / 16)), {"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0}
    return Pde("pde", "kuramoto_sivashinsky", ("u",), (terms,), u0, 0.14, 1072, FieldTerms(4, 4), length, 0.01)


ALL_PDES |= {"kuramoto_sivashinsky": kuramoto_sivashinsky}


@_pde(_waves(5, seed=1), 10.0, 0.05, 0.01)
def burgers() -> Any:
    """Burgers; waves steepen and merge."""
    return {"u u_x": -1.0, "u_xx": 0.1}


@_pde(2.0 * (1 + _waves(4, seed=2)), 40.0, 0.05, 0.005)
def korteweg_de_vries() -> Any:
    """Korteweg–de Vries; solitons of several speeds pass through each other."""
    return {"u u_x": -1.0, "u_xxx": -1.0}


@_pde(2.0 * _waves(4, seed=3), 30.0, 0.05, 0.005)
def kdv_burgers() -> Any:
    """Korteweg–de Vries–Burgers."""
    return {"u u_x": -1.0, "u_xx": 0.2, "u_xxx": -0.5}


@_pde(_waves(6, seed=4), 30.0, 0.02, 0.005)
def modified_kdv() -> Any:
    """KdV with a cubic flux (modified KdV)."""
    return {"u^2 u_x": -1.0, "u_xxx": -1.0}


@_pde(1.2 * _waves(8, seed=7), 16 * np.pi, 0.05, 0.0125)
def swift_hohenberg() -> Any:
    """Swift–Hohenberg with a quadratic term; a pattern grows and settles."""
    return {"u": -0.7, "u_xx": -2.0, "u_xxxx": -1.0, "u^2": 1.0, "u^3": -1.0}


@_pde(0.6 * _bump(15, 8) + 1.5 * _bump(40, 20) + 0.2 * _bump(62, 3), 80.0, 0.04, 0.02)
def fisher_kpp() -> Any:
    """Fisher–KPP; bumps grow into fronts that run into each other."""
    return {"u_xx": 1.0, "u": 1.0, "u^2": -1.0}


@_pde(1.5 * _waves(6, seed=10), 24.0, 0.025, 0.0125)
def allen_cahn() -> Any:
    """Allen–Cahn; domains of ±1 form and coarsen."""
    return {"u_xx": 0.5, "u": 1.0, "u^3": -1.0}


@_pde(_waves(8, seed=7), 20.0, 0.025, 0.025)
def advection_diffusion() -> Any:
    """Advection and diffusion, linear: every mode moves and decays on its own."""
    return {"u_x": -1.0, "u_xx": 0.2}


@_pde(1.5 * _waves(5, seed=10), 14.0, 0.02, 0.001)
def nonlinear_diffusion() -> Any:
    """Diffusion that grows with the field."""
    return {"u_x": -0.5, "u_xx": 0.4, "u^2 u_xx": 0.4}


@dataclass(frozen=True, eq=False)
class FieldSystem(System):
    """Fields of any kind.

    Attributes
    ----------
    space : tuple of arrays
        The grid.
    order : {1, 2}
        Order of the time derivative, `derivative_order` of `Discovery`.
    options : dict
        What `Discovery.fit` is told besides: names, known fields, equations wanted.

    Examples
    --------
    >>> from ardea.dynamics import Discovery, systems
    >>> system = systems.porous_medium()
    >>> t, u = system.noisy(0.01, seed=0)
    >>> model = Discovery(system.library, derivative_order=system.order).fit(u, t, space=system.space, **system.options)
    >>> model.equations_[0].terms
    ('(u^2)_xx',)
    """

    space: tuple[Array, ...]
    order: int
    options: Mapping[str, Any]
    solver: Solver = field(repr=False)

    @property
    def names(self) -> list[str]:
        """Names of all candidate terms."""
        known = self.options.get("known_fields", {})
        fields = [*self.options.get("feature_names", self.feature_names), *known]
        assert isinstance(self.library, FieldTerms)
        return self.library.vocabulary(fields, ["x", "y", "z"][: len(self.space)], len(known)).names

    def true_coefficients(self, library: Library | FieldTerms | None = None) -> Array:
        """Return the true ξ, shape (n_equations, n_terms), in the columns of the system's own library."""
        return np.array([[equation.get(name, 0.0) for name in self.names] for equation in self.true_terms])

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Refuse: the derivative of a shock, or at a wall, is not to be had from samples."""
        raise NotImplementedError("fields of this kind do not tell their derivative: compare with simulate().")

    def _solve(self, x0: Array, t: Array) -> Array:
        fields = self.solver(x0, t)
        return fields[..., 0] if fields.shape[-1] == 1 else fields


def _by_lines(slope: Callable[..., Any], *lengths: float) -> Solver:
    """Return a solver of periodic fields: the method of lines with derivatives by FFT, integrated by DOP853 or LSODA.

    `slope` maps derivative(u, orders) and the fields to their time derivatives.
    """

    def solver(x0: Array, t: Array) -> Array:
        grid, axes = x0.shape[:-1], tuple(range(x0.ndim - 1))
        waves = [2j * np.pi * np.fft.fftfreq(n, length / n) for n, length in zip(grid, lengths, strict=True)]

        def derivative(u: Array, *orders: int) -> Array:
            modes = np.fft.fftn(u, axes=axes)
            for axis, order in enumerate(orders):
                modes = modes * waves[axis].reshape([-1 if other == axis else 1 for other in axes]) ** order
            return np.asarray(np.fft.ifftn(modes, axes=axes).real)

        def flow(_: float, state: Array) -> Array:
            fields = state.reshape(-1, *grid)
            return np.ravel(slope(derivative, *fields))

        stiff = "LSODA" if len(grid) == 1 else "RK45"
        start = np.moveaxis(x0, -1, 0).ravel()
        solution = solve_ivp(flow, (t[0], t[-1]), start, t_eval=t, method=stiff, rtol=1e-7, atol=1e-8)
        return np.moveaxis(solution.y.reshape(-1, *grid, len(t)), 0, -1)

    return solver


def _field_system(
    start: Array, space: tuple[Array, ...], dt: float, n_rows: int, library: FieldTerms, solver: Solver, **more: Any
) -> Callable[[Any], Callable[[], FieldSystem]]:
    """Make a function that returns the terms of every equation a factory of its system."""
    order, names = more.pop("order", 1), more.pop("names", ("u",))

    def factory_of(terms: Any) -> Callable[[], FieldSystem]:
        size = (start, dt, n_rows, library, space, order, more, solver)
        system = FieldSystem("field", terms.__name__, names, terms(), *size)
        return listed(system, terms.__doc__)

    return factory_of


def _grid(n: int, length: float, first: float = 0.0) -> Array:
    """Return the points of one period."""
    return np.asarray(first + length * np.arange(n) / n)


def _surface(n: int, seed: int) -> Array:
    """Return a sum of the lowest waves on a square of n × n points, of unit deviation."""
    rng = np.random.default_rng(seed)
    angle, total = _grid(n, 2 * np.pi), np.zeros((n, n))
    for i, j in np.ndindex(4, 4):
        size, first, second = rng.normal() / (1 + i + j), *rng.uniform(0, 2 * np.pi, 2)
        total += size * np.outer(np.cos(i * angle + first), np.cos(j * angle + second))
    return np.asarray((total - total.mean()) / total.std())


def _lambda_omega(d: Any, u: Array, v: Array) -> Any:
    square = u**2 + v**2
    diffused = [0.1 * (d(one, 2, 0) + d(one, 0, 2)) for one in (u, v)]
    return (1 - square) * u + square * v + diffused[0], -square * u + (1 - square) * v + diffused[1]


SQUARE = (_grid(64, 20.0), _grid(64, 20.0))


@_field_system(
    np.stack([_surface(64, 1), _surface(64, 2)], axis=-1),
    *(SQUARE, 0.1, 100, FieldTerms(3, 2), _by_lines(_lambda_omega, 20.0, 20.0)),
    names=("u", "v"),
)
def lambda_omega() -> Any:
    """λ–ω reaction and diffusion in two dimensions; spirals form."""
    diffusion = ({f"{name}_xx": 0.1, f"{name}_yy": 0.1} for name in "uv")
    return (
        {"u": 1.0, "u^3": -1.0, "u^2 v": 1.0, "u v^2": -1.0, "v^3": 1.0} | next(diffusion),
        {"v": 1.0, "u^3": -1.0, "u^2 v": -1.0, "u v^2": -1.0, "v^3": -1.0} | next(diffusion),
    )


def _stirred(d: Any, w: Array) -> Any:
    """ω_t = −u ω_x − v ω_y + ν∇²ω, where u and v follow from ∇²ψ = −ω."""
    u, v = _velocity(w)
    return -u * d(w, 1, 0) - v * d(w, 0, 1) + 0.02 * (d(w, 2, 0) + d(w, 0, 2))


def _velocity(w: Array) -> Array:
    """Return u = ψ_y and v = −ψ_x on the square of length 2π; time may follow the axes of space."""
    waves = 1j * np.fft.fftfreq(len(w), 1 / len(w))
    along, across = (waves.reshape(shape + (1,) * (w.ndim - 2)) for shape in ((-1, 1), (1, -1)))
    square = along**2 + across**2
    modes = -np.fft.fft2(w, axes=(0, 1)) / np.where(square == 0, 1.0, square)
    return np.array([np.fft.ifft2(symbol * modes, axes=(0, 1)).real for symbol in (across, -along)])


def _with_velocity(x0: Array, t: Array) -> Array:
    w = _by_lines(_stirred, 2 * np.pi, 2 * np.pi)(x0[..., :1], t)[..., 0]
    return np.stack([w, *_velocity(w)], axis=-1)


@_field_system(
    np.stack([2 * _surface(64, 3), *_velocity(2 * _surface(64, 3))], axis=-1),
    *((_grid(64, 2 * np.pi), _grid(64, 2 * np.pi)), 0.04, 100, FieldTerms(1, 2), _with_velocity),
    names=("w", "u", "v"),
    equations=["w"],
)
def vorticity() -> Any:
    """Navier–Stokes in two dimensions: the vorticity w is carried by the velocity (u, v) and diffuses."""
    return ({"u w_x": -1.0, "v w_y": -1.0, "w_xx": 0.02, "w_yy": 0.02},)


def _carried(x0: Array, t: Array) -> Array:
    """Return c at all times: every wave moves and decays on its own."""
    waves = np.meshgrid(*[np.fft.fftfreq(n, 1 / n) for n in x0.shape[:-1]], indexing="ij")
    drift = sum(-1j * speed * k for speed, k in zip((0.8, -0.5, 0.3), waves, strict=True))
    modes, growth = np.fft.fftn(x0[..., 0]), drift - 0.1 * sum(k**2 for k in waves)
    fields = [np.fft.ifftn(modes * np.exp(growth * time)).real for time in t - t[0]]
    return np.stack(fields, axis=-1)[..., None]


def _cloud(n: int, seed: int) -> Array:
    """Return a sum of waves in a cube, none shorter than half its side."""
    rng, angle = np.random.default_rng(seed), _grid(n, 2 * np.pi)
    total = np.zeros((n, n, n))
    for _ in range(8):
        numbers, size, phase = rng.integers(-2, 3, 3), rng.normal(), rng.uniform(0, 2 * np.pi)
        total += size * np.cos(
            np.add.outer(np.add.outer(numbers[0] * angle, numbers[1] * angle), numbers[2] * angle) + phase
        )
    return np.asarray(total[..., None])


@_field_system(
    _cloud(32, seed=0),
    (_grid(32, 2 * np.pi),) * 3,
    0.04,
    50,
    FieldTerms(1, 2),
    _carried,
    names=("c",),
    feature_names=["c"],
)
def drifting_cloud() -> Any:
    """Advection and diffusion in three dimensions; a cloud drifts and spreads."""
    return ({"c_x": -0.8, "c_y": 0.5, "c_z": -0.3, "c_xx": 0.1, "c_yy": 0.1, "c_zz": 0.1},)


def _excited(d: Any, u: Array, v: Array) -> Any:
    return u - u**3 - v + 0.5 * d(u, 2), 0.2 * u - 0.1 * v + 0.1


@_field_system(
    np.stack([1.5 * _waves(6, seed=11), 0.5 * _waves(5, seed=12)], axis=-1),
    *((_grid(256, 60.0),), 0.1, 200, FieldTerms(3, 2), _by_lines(_excited, 60.0)),
    names=("u", "v"),
)
def fitzhugh_nagumo_waves() -> Any:
    """FitzHugh–Nagumo with diffusion; pulses run and meet."""
    return {"u": 1.0, "u^3": -1.0, "v": -1.0, "u_xx": 0.5}, {"u": 0.2, "v": -0.1, "1": 0.1}


def _swung(x0: Array, t: Array) -> Array:
    solver = _by_lines(lambda d, u, v: (v, d(u, 2) - u - u**3), 20.0)
    return solver(np.concatenate([x0, np.zeros_like(x0)], axis=-1), t)[..., :1]


@_field_system(1.5 * _waves(5, seed=13)[::2, None], (_grid(128, 20.0),), 0.08, 150, FieldTerms(3, 2), _swung, order=2)
def klein_gordon() -> Any:
    """Klein–Gordon with a cubic term, second order in time, from a start at rest."""
    return ({"u": -1.0, "u^3": -1.0, "u_xx": 1.0},)


@_field_system(
    1 + 0.7 * _waves(4, seed=14)[::2, None],
    *((_grid(128, 10.0),), 0.01, 150, FieldTerms(3, 2, conservative=True)),
    _by_lines(lambda d, u: d(u**2, 2), 10.0),
)
def porous_medium() -> Any:
    """Porous medium; the denser, the faster it spreads."""
    return ({"(u^2)_xx": 1.0},)


@_field_system(
    0.6 * _waves(6, seed=15)[::2, None],
    *((_grid(128, 10.0),), 0.01, 150, FieldTerms(3, 4, conservative=True)),
    _by_lines(lambda d, u: d(u**3 - u, 2) - 0.05 * d(u, 4), 10.0),
)
def cahn_hilliard() -> Any:
    """Cahn–Hilliard; a mixture parts."""
    return ({"(u^3)_xx": 1.0, "u_xx": -1.0, "u_xxxx": -0.05},)


def _shocked(x0: Array, t: Array) -> Array:
    """Return the solution with shocks (Lax and Oleinik): u₀(y), y the least of ∫u₀ + (x − y)²/(2t).

    The least is found on a fine grid, and y + t u₀(y) = x by Newton's method from there.
    """
    n, x = len(x0), _grid(len(x0), 10.0)
    start = CubicSpline(np.append(x, 10.0), np.append(x0[:, 0], x0[0, 0]), bc_type="periodic")
    y, whole = _grid(20 * n, 50.0, -20.0), float(start.integrate(0, 10.0))
    slope, potential = start.derivative(), start.antiderivative()(y % 10.0) + whole * (y // 10.0)
    out = np.empty((n, len(t), 1))
    for i, elapsed in enumerate(t - t[0]):
        origin = x
        if elapsed:
            origin = y[np.argmin(potential + (x[:, None] - y) ** 2 / (2 * elapsed), axis=1)]
            for _ in range(5):
                origin = origin - (origin + elapsed * start(origin) - x) / (1 + elapsed * slope(origin))
        out[:, i, 0] = start(origin)
    return out


@_field_system(0.5 + _waves(3, seed=16)[:, None], (_grid(256, 10.0),), 0.04, 160, FieldTerms(), _shocked)
def inviscid_burgers() -> Any:
    """Burgers without viscosity; waves break into shocks."""
    return ({"u u_x": -1.0},)


def _walled(x0: Array, t: Array) -> Array:
    """Return Σ a_k exp(−κ(kπ/L)²t) sin(kπx/L) + 1 + x/L, with the a_k of the start."""
    x = np.linspace(0, 1, len(x0))
    modes = np.arange(1, 31)
    shapes = np.sin(np.pi * np.outer(x, modes))
    sizes = np.linalg.lstsq(shapes, x0[:, 0] - 1 - x, rcond=None)[0]
    decay = np.exp(-0.5 * np.outer((modes * np.pi / 5) ** 2, t - t[0]))
    return np.asarray((1 + x[:, None] + shapes @ (sizes[:, None] * decay))[..., None])


def _between_walls() -> Array:
    x = np.linspace(0, 1, 128)
    return np.asarray(
        (1 + x + sum(a * np.sin(k * np.pi * x) for k, a in enumerate((1, -0.8, 0.9, 0.7, -0.6), 1)))[:, None]
    )


@_field_system(_between_walls(), (np.linspace(0, 5, 128),), 0.01, 120, FieldTerms(), _walled)
def heat_with_walls() -> Any:
    """Heat between walls that are kept at two temperatures."""
    return ({"u_xx": 0.5},)


@_field_system(
    np.stack([1 + 0.5 * _waves(4, seed=17)[::2], 0.5 * _waves(4, seed=18)[::2]], axis=-1),
    *((_grid(128, 20.0),), 0.03, 150, FieldTerms(3, 2)),
    _by_lines(
        lambda d, u, v: (-0.5 * d(v, 2) - (u**2 + v**2) * v, 0.5 * d(u, 2) + (u**2 + v**2) * u),
        20.0,
    ),
    names=("u", "v"),
)
def nonlinear_schroedinger() -> Any:
    """Nonlinear Schrödinger equation, as real part u and imaginary part v."""
    return {"v_xx": -0.5, "u^2 v": -1.0, "v^3": -1.0}, {"u_xx": 0.5, "u^3": 1.0, "u v^2": 1.0}


WELL = _grid(128, 16.0, -8.0)


@_field_system(
    np.stack([np.exp(-((WELL - 1.5) ** 2) / 2), 0.8 * np.exp(-((WELL + 1) ** 2)) * np.sin(2 * WELL)], axis=-1),
    *((WELL,), 0.03, 150, FieldTerms(2, 2)),
    _by_lines(
        lambda d, u, v: (-0.5 * d(v, 2) + 0.5 * WELL**2 * v, 0.5 * d(u, 2) - 0.5 * WELL**2 * u),
        16.0,
    ),
    names=("u", "v"),
    known_fields={"V": 0.5 * WELL**2},
)
def schroedinger() -> Any:
    """Schrödinger equation in a well V = x²/2 that is known."""
    return {"v_xx": -0.5, "v V": 1.0}, {"u_xx": 0.5, "u V": -1.0}
