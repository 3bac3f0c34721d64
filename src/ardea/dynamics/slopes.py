"""Derivatives of functions of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values may be complex, so that a complex step through a library gives a derivative to all digits.
Values = NDArray[Any]


def slope_of(function: Callable[..., Any], argument: int) -> Callable[..., Any]:
    """Return the derivative of a function by one of its arguments: its own, or a numerical one."""
    own = getattr(function, "partial_derivative", None)
    return NumericalPartial(function, argument) if own is None else own(argument)


@dataclass(frozen=True)
class NumericalPartial:
    """Partial derivative of a callable, by complex step where that is right, else by central differences.

    A complex step has no rounding error but is wrong for functions that are not analytic (`abs`) or that drop the
    imaginary part. It is taken if it agrees with the central difference within 1 % of the largest derivative;
    otherwise the central difference stands, with a relative error of about 1e-10.
    """

    function: Callable[..., Any]
    argument: int

    def __call__(self, *columns: Values) -> Values:
        """Return the derivative, one value per row."""
        step = np.cbrt(np.finfo(float).eps) * (1.0 + np.abs(columns[self.argument]))
        central = (self._shifted(columns, step) - self._shifted(columns, -step)) / (2 * step)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                exact = np.imag(self._shifted(columns, 1e-30j)) / 1e-30
        except (TypeError, ValueError):
            return central
        agrees = np.max(np.abs(exact - central), initial=0.0) <= 1e-2 * np.max(np.abs(central), initial=0.0)
        return np.asarray(exact if agrees else central)

    def _shifted(self, columns: Sequence[Values], shift: Any) -> Values:
        moved = [column + shift if i == self.argument else column for i, column in enumerate(columns)]
        return np.broadcast_to(np.asarray(self.function(*moved)), columns[0].shape)
