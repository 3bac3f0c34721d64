"""Terms that were chosen because of a few rows: residuals tell nothing of errors there, since such rows are fitted.

Most of the variation Σ (x − x̄)² of a column may be that of one to three rows. Its coefficient is then known from these,
and an error in one of them looks like an effect of the column. If the column has an effect, the others show it, too:
a term is told of if its t-statistic is clear with these rows and not without them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ardea.core.problem import EPS, TINY, Array, Index

# How many rows are few: of a column of two values, such as a rare indicator, fewer (conventions).
FEW_ROWS, FEW_OF_TWO = 3, 2
# Share of the variation that such rows have (measured: of 0.5 to 0.9 the least that hardly ever tells of lognormal
# columns of 100 rows), and t-statistics that are not clear (a convention).
MOST_OF_IT, CLEAR = 0.85, 2.0


class Unsupported(NamedTuple):
    """A column whose term rests on few rows."""

    column: int
    rows: Index  # the one farthest out first
    share: float  # of the variation
    t: float  # with all rows
    without: float  # without these


def unsupported(columns: Array, constant: Array, y: Array, chosen: Index, two: Index) -> list[Unsupported]:
    """Return which of the chosen columns of a model are clear because of few rows.

    `constant` is the column of the intercept, (m, 1) or (m, 0), and `two` says of all columns whether they have two
    values only.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, ones, none = rng.normal(size=(60, 2)), np.ones((60, 1)), np.zeros(2, dtype=bool)
    >>> X[7, 1], y = 40.0, X[:, 0] + rng.normal(size=60)
    >>> y[7] += 20
    >>> [(one.column, one.rows.tolist()) for one in unsupported(X, ones, y, np.arange(2), none)]
    [(1, [7])]
    """
    columns, y = (one / np.maximum(np.abs(one).max(axis=0), TINY) for one in (columns, y))
    found = []
    for j in chosen:
        apart = columns[:, j] - constant @ (constant.T @ columns[:, j] / max(float((constant**2).sum()), TINY))
        rows, share = _few(apart**2, FEW_OF_TWO if two[j] else FEW_ROWS)
        if share < MOST_OF_IT:
            continue
        others = np.concatenate([constant, np.delete(columns, j, axis=1)], axis=1)
        rest = np.delete(np.arange(y.size), rows)
        t, without = (_t_statistic(columns[some, j], others[some], y[some]) for some in (slice(None), rest))
        if abs(t) > CLEAR > abs(without):
            found.append(Unsupported(int(j), rows, share, t, without))
    return found


def _few(squares: Array, most: int) -> tuple[Index, float]:
    """Return the fewest rows with so large a share of all squares, `most` at most, and their share."""
    if (bound := most * float(squares.max()) / max(float(squares.sum()), TINY)) < MOST_OF_IT:
        return np.empty(0, dtype=np.intp), bound
    order = np.argpartition(-squares, most)[:most]
    order = order[np.argsort(-squares[order])]
    shares = np.cumsum(squares[order]) / max(float(squares.sum()), TINY)
    number = min(int(np.searchsorted(shares, MOST_OF_IT)) + 1, most)
    return order[:number], float(shares[number - 1])


def _t_statistic(x: Array, others: Array, y: Array) -> float:
    """Return the t-statistic of a column beside others; 0 where it is nothing beside them."""
    both = np.column_stack([x, y])
    basis = np.linalg.qr(others)[0]
    x, y = (both - basis @ (basis.T @ both)).T
    square, free = float(x @ x), y.size - others.shape[1] - 1
    if square <= EPS * float(both[:, 0] @ both[:, 0]) or free < 1:
        return 0.0
    along = float(x @ y) / np.sqrt(square)
    return along / np.sqrt(max(float(y @ y) - along**2, TINY) / free)
