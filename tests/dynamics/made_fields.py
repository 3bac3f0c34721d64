"""Fields with known derivatives, and what is found in fields."""

from __future__ import annotations

from functools import cache

import numpy as np

from ardea.dynamics import (
    systems,
)
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_terms import Jets
from ardea.dynamics.fields import Fields
from ardea.dynamics.search import Tournament
from ardea.dynamics.windows import place_windows
from ardea.methods.task import ard_supports

INTERVALS = {1: (100, 40), 2: (40, 36, 24)}


def waves(n_fields, n_space, seed=0):
    """Return a function of (jet, points): exact derivatives of sums of three waves per field."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0.5, 2.0, size=(n_fields, 3, n_space + 1))
    phases = rng.uniform(0, 2 * np.pi, size=(n_fields, 3))

    def jet(which, points):
        index, orders = which[:2]
        total = 0.0
        for wave, phase in zip(numbers[index], phases[index], strict=True):
            angle = phase + sum(k * x for k, x in zip(wave, np.meshgrid(*points, indexing="ij"), strict=True))
            total = total + np.prod(wave[:-1] ** orders) * np.cos(angle + np.pi / 2 * sum(orders))
        return total

    return jet


def windows_and_jets(n_fields, n_space, seed=0, refined=1):
    """Return test functions of radius 1 on [0, 3]^n and exact derivatives; space may be refined."""
    *space, times = INTERVALS[n_space]
    shape = (*(refined * n + 1 for n in space), times + 1)
    points = [np.linspace(0, 3, n) for n in shape]
    windows, _, _ = place_windows(shape, [p[1] - p[0] for p in points], [n / 3 for n in shape])
    exact = waves(n_fields, n_space, seed)
    return windows, Jets(lambda jet: exact(jet, points))


def summed(windows, values, orders):
    values = np.broadcast_to(values, windows.grid)
    return windows.tested_in_space(windows.tested_in_time(values), orders)


def size_of(windows, values, orders):
    """Return the sum of absolute values, against which rounding and quadrature errors are measured."""
    total = np.abs(np.broadcast_to(values, windows.grid))
    for axis, order in enumerate((*orders, 0)):
        total = np.moveaxis(np.tensordot(np.abs(windows.axes[axis].matrices[order]), total, (1, axis)), 0, axis)
    return total.max()


@cache
def noisy(name, noise, seed=0):
    system = getattr(systems, name)()
    t, u = system.noisy(noise, seed)
    return Fields(u, system.space, t)


def true_support(system):
    return tuple(np.flatnonzero(system.true_coefficients()[0]).tolist())


def found(data, library, field=0):
    tournament = Tournament(FieldEquation([data], library, field), ard_supports)
    return tournament, tournament.run()[0]


def drifting(n, times, end, shifts=(0.0,), noise=0.01, seed=0):
    """Return fields of three waves that drift and decay, u_t = −0.8 u_x + 0.3 u_xx, with noise."""
    x, t = np.linspace(0, 3, n), np.linspace(0, end, times)
    waves, place = (
        [(1.3, 1.0, 0.3), (2.9, 0.7, 1.1), (4.7, 0.5, 2.0)],
        x[:, None, None] + np.array(shifts) - 0.8 * t[:, None],
    )
    u = sum(a * np.exp(-0.3 * k**2 * t)[:, None] * np.sin(k * place + at) for k, a, at in waves)
    return u + noise * u.std() * np.random.default_rng(seed).normal(size=u.shape), x, t
