"""Hyper-priors on the prior variances γ: p(γ) ∝ exp(−(g(γ) + f(γ))/2), g concave, f convex (Eq. gamma_prior).

A concave g prunes: its slope is added to the tangent weight of Alg. 3. A convex f bounds or spreads γ. Both are
written in the user's units; :func:`in_coordinates` carries them into a problem's normalised ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.evidence import Flat, Prior
from ardea.core.problem import Array

__all__ = [
    "Both",
    "Bounds",
    "CappedLinear",
    "Concave",
    "Convex",
    "Flat",
    "Gamma",
    "Linear",
    "Log",
    "Prior",
    "Tanh",
]

# Without a rate γ^(shape − 1) outgrows the evidence of one column, which falls as γ^(−1/2).
UNBOUNDED_SHAPE = 1.5


@dataclass(frozen=True, eq=False)
class _Penalty(Prior):
    """A concave g of a slope and a width."""

    lam: ArrayLike
    eta: ArrayLike = 1.0

    def __post_init__(self) -> None:
        strength, width = np.asarray(self.lam, dtype=float), np.asarray(self.eta, dtype=float)
        if not np.all(np.isfinite(strength) & (strength >= 0)) or not np.all(width > 0):
            raise ValueError(f"A prior needs a finite lam >= 0 and an eta > 0; got lam={self.lam!r}, eta={self.eta!r}.")


@dataclass(frozen=True, eq=False)
class CappedLinear(_Penalty):
    """g(γ) = lam·min(γ, eta), or (lam/σ²)·min(γ, eta) as in the paper's experiments (`over_noise=True`).

    Examples
    --------
    >>> import numpy as np
    >>> CappedLinear(2.0, eta=3.0).value(np.array([1.0, 5.0]), noise=1.0)
    array([2., 6.])
    """

    eta: ArrayLike = np.inf
    over_noise: bool = False

    @property
    def scales_with_noise(self) -> bool:
        """Whether g depends on σ²."""
        return self.over_noise

    @property
    def capped_linear(self) -> tuple[Array, Array, bool]:
        """The parameters."""
        return np.asarray(self.lam, dtype=float), np.asarray(self.eta, dtype=float), self.over_noise

    def _strength(self, noise: float) -> Array:
        return np.asarray(self.lam, dtype=float) / (noise if self.over_noise else 1.0)

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return self._strength(noise) * np.minimum(gamma, self.eta)

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ): lam below the cap, zero above it."""
        return np.where(gamma < np.asarray(self.eta), self._strength(noise), 0.0)

    def curvature(self, gamma: Array, noise: float) -> Array:
        """Return zero."""
        return np.zeros_like(gamma)


class Linear(CappedLinear):
    """g(γ) = lam·γ: exponential prior on γ, hence a Laplace prior on ξ (Sec. 3.2)."""

    def __init__(self, lam: ArrayLike, over_noise: bool = False) -> None:
        super().__init__(lam, np.inf, over_noise)


class Tanh(_Penalty):
    """g(γ) = lam·tanh(γ/eta): slope lam/eta at zero, flat beyond a few eta."""

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return np.asarray(self.lam) * np.tanh(gamma / np.asarray(self.eta))

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return np.asarray(self.lam) / np.asarray(self.eta) * (1 - np.tanh(gamma / np.asarray(self.eta)) ** 2)


class Log(_Penalty):
    """g(γ) = lam·ln(1 + γ/eta), a smooth stand-in for counting terms."""

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return np.asarray(self.lam) * np.log1p(gamma / np.asarray(self.eta))

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return np.asarray(self.lam) / (np.asarray(self.eta) + gamma)


@dataclass(frozen=True, eq=False)
class Gamma(Prior):
    """γ ~ Gamma(shape, rate): g + f = 2·rate·γ − 2(shape − 1) ln γ.

    shape = 1 is the linear prior, i.e. Laplace on ξ. shape < 1 adds a concave logarithm whose slope is infinite at
    zero: a column once pruned stays pruned. shape > 1 adds a convex one, which rules out exact zeros (the paper:
    "the general class of Gamma distributions does not impose sparsity").

    rate = 0 needs shape < 3/2. The evidence cost grows as ln γ_j for large γ_j, so that cost and prior together go as
    (3 − 2·shape) ln γ_j: from 3/2 on they fall for ever, and no γ is the best. With d columns on m < d rows, log|Σ_y|
    grows as m ln γ when all γ grow together, and the limit is 1 + m/(2d).
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        if not (self.shape > 0 and self.rate >= 0):
            raise ValueError(f"A gamma prior needs shape > 0 and rate >= 0; got {self.shape} and {self.rate}.")
        if self.rate == 0 and self.shape >= UNBOUNDED_SHAPE:
            raise ValueError(
                f"A gamma prior with rate=0 needs shape < 1.5; got {self.shape}. From there on the larger γ is, the "
                "better, so that a fit has no solution. Give a rate above 0, or a smaller shape (1 or less to drop "
                "terms)."
            )

    @property
    def convex(self) -> Convex | None:
        """The convex part, −2(shape − 1) ln γ, where shape > 1."""
        return NegativeLog(2 * (self.shape - 1)) if self.shape > 1 else None

    def value(self, gamma: Array, noise: float) -> Array:
        """Return the concave part, elementwise; the logarithm over γ > 0 only, so that pruned columns cost nothing."""
        logarithm = np.log(gamma, where=gamma > 0, out=np.zeros_like(gamma))
        return 2 * self.rate * gamma + 2 * max(1 - self.shape, 0.0) * logarithm

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return the slope of the concave part, elementwise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            extra = 2 * (1 - self.shape) / gamma if self.shape < 1 else np.zeros_like(gamma)
        return 2 * self.rate + extra


@dataclass(frozen=True, eq=False)
class Concave(Prior):
    """A concave g of the user's own: two functions of γ, its value and its slope (non-negative, non-increasing)."""

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return np.asarray(self.function(gamma), dtype=float)

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return np.asarray(self.derivative(gamma), dtype=float)


@dataclass(frozen=True, eq=False)
class Both(Prior):
    """A concave g together with a convex f, written ``g & f``."""

    concave: Prior
    convex: Convex | None
    # What one unit of γ and of σ² is worth where g is written in others.
    gamma_unit: Any = field(default=1.0, init=False)
    noise_unit: Any = field(default=1.0, init=False)

    @property
    def scales_with_noise(self) -> bool:
        """Whether g depends on σ²."""
        return self.concave.scales_with_noise

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return self.concave.value(gamma * self.gamma_unit, noise * self.noise_unit)

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return self.gamma_unit * self.concave.slope(gamma * self.gamma_unit, noise * self.noise_unit)

    def curvature(self, gamma: Array, noise: float) -> Array:
        """Return g″(γ), elementwise."""
        inner = self.concave.curvature(gamma * self.gamma_unit, noise * self.noise_unit)
        return self.gamma_unit * (self.gamma_unit * inner)


@dataclass(eq=False, repr=False)
class Convex:
    """A convex f of the user's own: value and slope as functions of γ, on lower ≤ γ ≤ upper.

    The step for γ (Alg. 3, line 5) needs arg min size²/γ + cγ + f(γ); it is found by bisection unless a subclass knows
    it in closed form. A finite f′(0) keeps exact zeros possible; f′(0) = −∞ or lower > 0 rules them out.

    Examples
    --------
    >>> import numpy as np
    >>> square = Convex(lambda g: g**2, lambda g: 2 * g)
    >>> square.minimiser(np.array([2.0]), np.array([0.0])).round(6)  # 4/γ² = 2γ
    array([1.259921])
    """

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    lower: ArrayLike = 0.0
    upper: ArrayLike = np.inf

    def __post_init__(self) -> None:
        lower, upper = self.bounds
        if not np.all((lower >= 0) & (lower < upper)):
            raise ValueError("Bounds on γ need 0 <= lower < upper.")

    def __and__(self, concave: Prior) -> Both:
        if not isinstance(concave, Prior):
            raise ValueError("Write g & f with g a concave prior and f a convex one (Bounds, Convex).")
        if concave.convex is not None:
            raise ValueError(f"{type(concave).__name__} has a convex part of its own already: only one can be used.")
        return Both(concave, self)

    __rand__ = __and__

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest γ allowed."""
        return np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)

    def value(self, gamma: Array) -> Array:
        """Return f(γ), elementwise."""
        return np.asarray(self.function(gamma), dtype=float)

    def slope(self, gamma: Array) -> Array:
        """Return f′(γ), elementwise."""
        return np.asarray(self.derivative(gamma), dtype=float)

    def minimiser(self, size: Array, c: Array) -> Array:
        """Return arg min over γ of size²/γ + cγ + f(γ), by bisection of ln γ on size²/γ² = c + f′(γ)."""
        low, high = np.full(size.shape, -690.0), np.full(size.shape, 690.0)
        for _ in range(100):
            middle = (low + high) / 2
            gamma = np.exp(middle)
            with np.errstate(over="ignore", invalid="ignore"):
                rising = (size / gamma) ** 2 < c + self.slope(gamma)
            high, low = np.where(rising, middle, high), np.where(rising, low, middle)
        root = np.exp((low + high) / 2)
        root = np.where(root < 1e-290, 0.0, root)
        return np.clip(root, *self.bounds)


class Bounds(Convex):
    """f is zero on lower ≤ γ ≤ upper and infinite outside.

    The penalty on ξ is then 2√c|ξ| for √c·lower ≤ |ξ| ≤ √c·upper and quadratic outside. lower > 0 rules out exact
    zeros.
    """

    def __init__(self, lower: ArrayLike = 0.0, upper: ArrayLike = np.inf) -> None:
        super().__init__(np.zeros_like, np.zeros_like, lower, upper)

    def minimiser(self, size: Array, c: Array) -> Array:
        """Return |ξ|/√c, clipped to the bounds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(size > 0, size / np.sqrt(c), 0.0)
        return np.clip(free, *self.bounds)


class NegativeLog(Convex):
    """f(γ) = −weight·ln γ: the convex part of a gamma prior with shape > 1."""

    def __init__(self, weight: float) -> None:
        super().__init__(self.value, self.slope)
        self.weight = weight

    def value(self, gamma: Array) -> Array:
        """Return f(γ) over γ > 0 (columns of zeros take no part)."""
        return -self.weight * np.log(gamma, where=gamma > 0, out=np.zeros_like(gamma))

    def slope(self, gamma: Array) -> Array:
        """Return f′(γ), −∞ at zero."""
        with np.errstate(divide="ignore"):
            return -self.weight / gamma

    def minimiser(self, size: Array, c: Array) -> Array:
        """Return the positive root of cγ² − weight·γ − size² = 0."""
        half = self.weight / 2
        root: Array = (half + np.sqrt(half**2 + c * size**2)) / c
        return root


@dataclass(frozen=True, eq=False)
class InCoordinates(Both):
    """A prior seen from a problem's coordinates: γ = γ̃·gamma_unit, σ² = σ̃²·noise_unit."""

    gamma_unit: Any = 1.0
    noise_unit: Any = 1.0

    @property
    def capped_linear(self) -> tuple[Array, Array, bool] | None:
        """The parameters in these coordinates."""
        if self.concave.capped_linear is None:
            return None
        lam, eta, over_noise = self.concave.capped_linear
        with np.errstate(over="ignore"):  # an infinite width is no cap
            return lam * self.gamma_unit / (self.noise_unit if over_noise else 1.0), eta / self.gamma_unit, over_noise


class ConvexInCoordinates(Convex):
    """A convex part seen from a problem's coordinates."""

    def __init__(self, part: Convex, unit: Array) -> None:
        lower, upper = (bound / unit for bound in part.bounds)
        super().__init__(
            lambda gamma: part.value(gamma * unit), lambda gamma: unit * part.slope(gamma * unit), lower, upper
        )
        self.part, self.unit = part, unit

    def minimiser(self, size: Array, c: Array) -> Array:
        """Return the minimiser of size²/γ̃ + cγ̃ + f(γ̃·unit)."""
        return self.part.minimiser(size * np.sqrt(self.unit), c / self.unit) / self.unit


def in_coordinates(prior: Prior, gamma_unit: Array, noise_unit: float) -> InCoordinates:
    """Return a prior in the user's units as it is seen from a problem's coordinates."""
    convex = None if prior.convex is None else ConvexInCoordinates(prior.convex, gamma_unit)
    return InCoordinates(prior, convex, gamma_unit, noise_unit)
