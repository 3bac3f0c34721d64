"""Simulation of one periodic field in one space dimension, by ETDRK4 with steps that adapt."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.problem import Array
from ardea.dynamics.etdrk4 import Modes, SpectralEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.simulation import checked_limit, checked_times, checked_tolerances, warn_stopped

# Convention: an interval between output times is cut into at most so many steps, about three seconds of work.
MOST_STEPS = 2**15
# A blow-up is looked for from so many steps on: with fewer, steps too long for the explicit part blow up as well
# (measured on the fields of `ardea.dynamics.systems`).
STEPS_OF_BLOW_UP = 64
# Convention: a field whose jump across the seam is this many times its largest jump inside is not periodic.
SEAM_FACTOR = 5.0
# Relative errors below this are rounding: about 500 units of it, one for each of some hundred steps.
ROUNDING = 1e-13


def simulate_field(
    library: FieldTerms,
    coefficients: ArrayLike,
    u0: ArrayLike,
    x: ArrayLike,
    t: ArrayLike,
    *,
    rtol: float = 1e-6,
    limit: float | None = None,
) -> Array:
    """Integrate u_t = Σ ξ_pq u^p ∂^q u for one field, periodic in one space dimension.

    ETDRK4 takes the linear terms exactly, mode by mode, and the others on the grid without aliasing
    (`ardea.dynamics.etdrk4`). Every interval between output times is solved with n and with 2n steps; n doubles until
    a fifteenth of their difference, the error of the finer solution, is within the tolerance.

    Parameters
    ----------
    library : FieldTerms
        Candidate terms.
    coefficients : array of shape (n_terms,) or (1, n_terms)
        ξ.
    u0 : array of shape (n_x,)
        The field at t[0].
    x : array of shape (n_x,)
        Evenly spaced grid over one period, without the point that repeats the first.
    t : array of shape (n_times,)
        Ascending times. Even spacing is fastest.
    rtol : float
        The local errors of all intervals add up to at most rtol times the largest |u|.
    limit : float, optional
        The simulation stops when |u| passes it. Default: 10⁶ times the largest |u0|, or 10⁶ if that is below 1.

    Returns
    -------
    array of shape (n_x, n_reached)
        Space first, then time. Fewer times, with a `SimulationWarning` that says why, if the field blew up.

    Examples
    --------
    >>> from ardea.dynamics import FieldTerms
    >>> library = FieldTerms(1, 2)
    >>> heat = [float(name == "u_xx") for name in library.names()]
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> u = simulate_field(library, heat, np.cos(x), x, [0.0, 1.0])
    >>> bool(np.allclose(u[:, 1], np.exp(-1) * np.cos(x)))
    True
    """
    times, start = checked_times(t), np.asarray(u0, dtype=float)
    if start.ndim != 1:
        raise ValueError(f"u0 must be one field in one space dimension, of shape (n_x,), got {start.shape}")
    bound = float(checked_limit(limit, start)[0])
    checked_tolerances(rtol, None, start)
    equation = _field_equation(library, coefficients, len(start), _checked_period(x, start))
    _check_well_posed(equation, float(times[-1] - times[0]))
    u, stop = _solved(equation, start, times, rtol, bound)
    if stop is not None:
        warn_stopped(stop, u.shape[1], len(times))
    return u


class _StoppedError(Exception):
    """A field cannot go on: why, and how long after the last output time."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.after = why, after


def _solved(equation: SpectralEquation, u0: Array, t: Array, rtol: float, bound: float) -> tuple[Array, str | None]:
    """Return the field at the times reached, shape (n_x, n_reached), and why it stopped, if it did."""
    out = np.empty((len(u0), len(t)))
    out[:, 0] = u0
    modes, n_steps, size = equation.modes(u0), 1, float(np.max(np.abs(u0)))
    for i, interval in enumerate(np.diff(t)):
        tolerance = max(rtol * float(interval) / float(t[-1] - t[0]), ROUNDING)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                modes, n_steps = _interval(equation, modes, float(interval), n_steps, tolerance, size, bound)
        except _StoppedError as stop:
            return out[:, : i + 1], stop.why.format(t=float(t[i]) + stop.after)
        out[:, i + 1] = equation.field(modes)
        size = max(size, float(np.max(np.abs(out[:, i + 1]))))
    return out, None


def _interval(
    equation: SpectralEquation, modes: Modes, interval: float, n_steps: int, rtol: float, size: float, bound: float
) -> tuple[Modes, int]:
    """Return the modes after an interval and the number of coarse steps to try in the next one."""
    coarse = equation.advanced(modes, interval, n_steps)
    while True:
        fine = equation.advanced(modes, interval, 2 * n_steps)
        error, reached = equation.largest(fine - coarse) / 15, equation.largest(fine)
        tolerance = rtol * max(size, reached)
        if error <= tolerance and reached <= bound:
            # Half as many steps would give about 16 times the error.
            return fine, max(1, n_steps // 2) if 32 * error < tolerance else n_steps
        _check_blow_up(equation, modes, interval, n_steps, bound)
        if n_steps >= MOST_STEPS:
            raise _StoppedError("the step size collapsed at t = {t:.4g}: the solution is singular there")
        coarse, n_steps = fine, 2 * n_steps


def _check_blow_up(equation: SpectralEquation, modes: Modes, interval: float, n_steps: int, bound: float) -> None:
    """Stop where the field passes its limit, if n and 2n steps agree within 2 % on when that is.

    Steps too long for the explicit part also blow up, but after a number of steps, not at a time.
    """
    if n_steps < STEPS_OF_BLOW_UP:
        return
    coarse, fine = (_first_outside(equation, modes, interval, n, bound) for n in (n_steps, 2 * n_steps))
    step = interval / n_steps
    if coarse is not None and fine is not None and abs(fine - coarse) <= 0.02 * fine + step and fine > 16 * step:
        raise _StoppedError("|u| passed its limit near t = {t:.4g}: the model blows up", fine)


def _first_outside(
    equation: SpectralEquation, modes: Modes, interval: float, n_steps: int, bound: float
) -> float | None:
    for i in range(n_steps):
        modes = equation.advanced(modes, interval / n_steps, 1)
        if not equation.largest(modes) <= bound:
            return interval * (i + 1) / n_steps
    return None


def _field_equation(library: FieldTerms, coefficients: ArrayLike, n_x: int, period: float) -> SpectralEquation:
    xi = np.asarray(coefficients, dtype=float)
    if xi.shape not in ((library.n_terms(),), (1, library.n_terms())):
        raise ValueError(f"coefficients must have shape ({library.n_terms()},) for one field, got {xi.shape}")
    if not np.all(np.isfinite(xi)):
        raise ValueError("coefficients must be finite")
    return SpectralEquation(library.terms(), xi.ravel(), n_x, period)


def _checked_period(x: ArrayLike, u0: Array) -> float:
    """Return the period of an evenly spaced grid on which the field goes on smoothly across the seam."""
    grid = np.asarray(x, dtype=float)
    if grid.shape != u0.shape or len(grid) < 4:
        raise ValueError(f"x must hold one position for each of the {len(u0)} values of u0 (at least 4)")
    steps = np.diff(grid)
    if not np.all(steps > 0) or np.ptp(steps) > 1e-4 * np.mean(steps):
        raise ValueError("x must be evenly spaced and ascending; interpolate u0 to such a grid")
    if abs(u0[0] - u0[-1]) > SEAM_FACTOR * np.max(np.abs(np.diff(u0))):
        raise ValueError(
            "u0 jumps from the last point of x to the first: simulate_field needs a periodic field over one period"
        )
    return float(np.mean(steps)) * len(grid)


def _check_well_posed(equation: SpectralEquation, duration: float) -> None:
    """Refuse a linear part that grows rounding errors at the highest wavenumber to order one."""
    growth = float(equation.linear[-1].real - equation.linear[0].real)
    if growth * duration > -np.log(np.finfo(float).eps):
        raise ValueError(
            f"the linear part is ill-posed: its derivatives grow the shortest waves of this grid by exp({growth:.3g} t)"
            ", so no solution can be computed; diffusion must be positive (u_xx) and u_xxxx negative"
        )
