"""What the samples of fields show before anything is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ardea.core.problem import Array

# Conventions: how many times as large as between neighbours the step across the seam is at most where a field is
# periodic along an axis, and at least where it is not.
PERIODIC, NOT_PERIODIC = 2.0, 6.0
# A convention: steps below this share of the deviation of a field are taken for this much.
LEAST_STEP = 1e-6


def swapped_axis(fields: Sequence[Array], axes: Sequence[str]) -> str:
    """Return a space axis that looks like time, where the time axis looks like one of a periodic field; else nothing.

    Given are smooth fields of unit deviation. Compared are their steps across the seam, from the last point to the
    first, with those between neighbours.
    """
    *space, times = fields[0].shape
    values = np.stack(fields)

    def seam(axis: int) -> float:
        inner = float(np.sqrt(np.mean(np.diff(values, axis=axis) ** 2)))
        return float(np.sqrt(np.mean((values.take(0, axis) - values.take(-1, axis)) ** 2))) / max(inner, LEAST_STEP)

    if times not in space or seam(values.ndim - 1) > PERIODIC:
        return ""
    return next((name for i, name in enumerate(axes) if space[i] == times and seam(i + 1) > NOT_PERIODIC), "")
