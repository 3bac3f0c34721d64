"""What a search on the likelihood of a trajectory is asked, the points it visits, and its fits."""

from __future__ import annotations

from dataclasses import dataclass

from ardea.core.problem import Array
from ardea.core.subsets import Support
from ardea.dynamics.knowledge import Knowledge

# The expected number of false terms, where it is not told.
FALSE_TERMS = 0.02


@dataclass(frozen=True, eq=False)
class LeftOpen:
    """What an earlier search leaves open where candidates are many: some of them, and the model that it prefers."""

    candidates: Support
    support: Support
    coefficients: Array  # (n, d)


@dataclass(frozen=True)
class Wishes:
    """How equations are searched, as far as users decide."""

    discrete_time: bool = False
    order: int = 1
    false_terms: float = FALSE_TERMS
    noise: str = "auto"
    noise_std: Array | None = None
    shown: bool = False
    left_open: LeftOpen | None = None
    knowledge: Knowledge | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """States and coefficients, with the noise that they were found at."""

    states: Array  # (points, n)
    coefficients: Array  # (n, d), and constants inside terms (`inside`)
    noise: Array  # (n,): s, in units of |x|^power
    process: Array  # (n,): q
    tilt: Array | None = None  # (n, d): the half gradient by ξ of what the states' own spread adds to −2 ln p(y)


@dataclass(frozen=True, eq=False)
class Fit:
    """A support at its best point."""

    support: Support  # candidates of all equations, l·d + j
    point: Point
    deviance: float  # −2 ln p(y), up to a constant
