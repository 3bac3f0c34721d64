"""Least and greatest value of every column, in one pass each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ardea.core.columns import Array

# Narrow rows are folded to rows of about this many values, which NumPy reduces several times faster.
FOLDED_WIDTH = 2048


def ranges_of(X: Any) -> Array:
    """Return the least and the greatest value of every column, shape (2, d); (∞, −∞) without rows.

    Examples
    --------
    >>> ranges_of(np.array([[1.0, 5.0], [3.0, -2.0]]))
    array([[ 1., -2.],
           [ 3.,  5.]])
    """
    m, d = X.shape
    if m == 0:
        return np.stack([np.full(d, np.inf), np.full(d, -np.inf)])
    if sparse.issparse(X):
        return np.stack([X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()]).astype(float)
    fold = max(1, FOLDED_WIDTH // max(d, 1))
    whole = m - m % fold if X.flags.c_contiguous and m >= 2 * fold else 0
    if whole == 0:
        return np.stack([X.min(axis=0), X.max(axis=0)]).astype(float)
    folded = X[:whole].reshape(-1, fold * d)
    low, high = (extreme.reshape(fold, d) for extreme in (folded.min(axis=0), folded.max(axis=0)))
    parts = np.stack([low.min(axis=0), high.max(axis=0)]).astype(float)
    return parts if whole == m else merged_ranges(parts, ranges_of(X[whole:]))


def merged_ranges(one: Array, other: Array) -> Array:
    """Return the ranges of the rows of both."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])
