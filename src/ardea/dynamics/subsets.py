"""Which few columns explain a small whitened system z = Aξ + noise: candidates from ARD, polished, ranked by EBIC2.

With N rows, d columns and k terms of residual sum of squares RSS (least squares on the support), the criterion is

    EBIC2 = N ln(RSS/N) + 2[k ln N + 2 ln C(d, k)],      k ≤ N/4.

Candidates: plain ARD and ARDvi at α = 16, and all models on the backward paths from them (the term whose removal costs
least goes first). The best few and the empty model are polished: the best of all additions, removals and exchanges of
one term is taken while it lowers the criterion. With Q an orthonormal basis of the support's columns, r = z − QQᵀz and
u_i the unit vector in their span that is orthogonal to all but column i, every such move costs one product:

    add j:           RSS − (rᵀa_j)²/‖a_j − QQᵀa_j‖²
    remove i:        RSS + (u_iᵀz)²
    exchange i for j: RSS + (u_iᵀz)² − (rᵀa_j + (u_iᵀz)(u_iᵀa_j))²/(‖a_j − QQᵀa_j‖² + (u_iᵀa_j)²)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack
from scipy.special import gammaln

from ardea.core.problem import DenseColumns, Problem
from ardea.estimators.advice import AdviceWarning
from ardea.methods.task import Task

Array = NDArray[np.float64]
Support = tuple[int, ...]
# From a system A, z to supports worth a look.
Proposal = Callable[[Array, Array], Iterable[Support]]

INFLATION = 16.0
POLISHED = 3
ADDITIONS = 3
FORWARD_LENGTH = 30
HELD_NOISE, HELD_INFLATION = (1e-1, 1e-2, 1e-3), 4.0
LARGEST_SHARE = 0.25
# A column is in the span of others when this share of its norm, or less, is left outside.
DEPENDENT = 1e-10
# 1 − ‖Qᵀa_j‖² has lost digits below this: what is left of a_j is then formed and measured.
CANCELLED = 1e-4
# RSS/N below this share of ‖z‖²/N is rounding error: two models that reach it are equally good.
ROUNDING = 1e-18
ARD_STEPS, ARD_TOLERANCE = 200, 1e-4


@dataclass(frozen=True)
class Model:
    """One support with its criterion."""

    support: Support
    criterion: float
    rss: float


@dataclass(frozen=True, eq=False)
class _Moves:
    """Best columns to add, what each removal costs, and the best exchange of every term."""

    additions: list[int]
    losses: Array
    exchanges: list[int]
    changes: Array


@dataclass(frozen=True, eq=False)
class System:
    """A small linear system with unit columns, squeezed to at most d + 1 rows.

    Attributes
    ----------
    columns : ndarray of shape (rows, d)
        A, every column divided by its norm (zero columns stay zero).
    target : ndarray of shape (rows,)
        z.
    n_rows : float
        N, the number of rows before squeezing.
    floor : float
        RSS that truncation error alone leaves: to fit better than that is no merit.
    """

    columns: Array
    target: Array
    n_rows: float
    floor: float = 0.0

    @classmethod
    def of(cls, A: Array, z: Array, n_rows: float | None = None, floor: float = 0.0) -> System:
        """Pose a system; `n_rows` where A and z were squeezed already."""
        n, d = A.shape
        norms = np.linalg.norm(A, axis=0)
        stacked = np.column_stack([A / np.where(norms > 0, norms, 1.0), z])
        if n > 2 * (d + 1):
            (stacked,) = linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)
            stacked = stacked[: d + 1]
        rows = float(n if n_rows is None else n_rows)
        return cls(np.asfortranarray(stacked[:, :-1]), stacked[:, -1], rows, floor)

    @cached_property
    def total(self) -> float:
        """‖z‖²."""
        return float(self.target @ self.target)

    @cached_property
    def _best_moves(self) -> dict[Support, Model]:
        """The best move from every support asked for so far: polishing from several starts soon follows one way."""
        return {}

    @cached_property
    def _nonzero(self) -> NDArray[np.bool_]:
        return np.any(self.columns, axis=0)

    @property
    def n_columns(self) -> int:
        """Number of candidate terms d."""
        return self.columns.shape[1]

    @property
    def largest(self) -> int:
        """Largest number of terms considered."""
        return int(min(LARGEST_SHARE * self.n_rows, self.n_columns))

    def criterion(self, rss: Any, k: Any) -> Any:
        """Return EBIC2 of a residual sum of squares and a number of terms."""
        return self.misfit(rss) + penalty(self.n_rows, self.n_columns, k)

    def misfit(self, rss: Any) -> Any:
        """Return N ln((RSS + floor)/N): what lies well below truncation or rounding error gains nothing."""
        floor = max(self.floor, ROUNDING * self.total, np.finfo(float).tiny)
        return self.n_rows * np.log((np.maximum(rss, 0.0) + floor) / self.n_rows)

    def model(self, support: Iterable[int]) -> Model:
        """Return the support with its least-squares criterion."""
        chosen = tuple(sorted(int(j) for j in support))
        rss = self._rss(chosen)
        return Model(chosen, float(self.criterion(rss, len(chosen))), rss)

    def _rss(self, support: Support) -> float:
        """Return ‖z − QQᵀz‖² as the squared norm of the last rows of Hz, H the reflections of a QR of the columns."""
        if not support:
            return self.total
        reflections, scales, _, _ = lapack.dgeqrf(self.columns[:, support])
        rotated, _, _ = lapack.dormqr("L", "T", reflections, scales, self.target[:, None], max(1, self.target.size))
        outside = rotated[len(support) :, 0]
        return float(outside @ outside)

    def backward_path(self, support: Iterable[int]) -> list[Model]:
        """Return the nested models from the support given to a single term; the cheapest term goes first."""
        chosen = np.array(sorted(support), dtype=np.intp)
        if chosen.size == 0:
            return []
        _, triangle, order = linalg.qr(self.columns[:, chosen], mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(triangle.diagonal())
        independent = int((pivots > DEPENDENT * max(pivots[0], np.finfo(float).tiny)).sum())
        chosen = np.sort(chosen[order[:independent]])
        q, triangle = np.linalg.qr(self.columns[:, chosen])
        inverse = np.linalg.inv(triangle)
        covariance = inverse @ inverse.T
        loads = q.T @ self.target
        coefficients = inverse @ loads
        residual = self.target - q @ loads
        rss = [float(residual @ residual)]
        supports = [tuple(chosen.tolist())]
        left = np.ones(chosen.size, dtype=bool)
        while len(supports[-1]) > 1:
            # Terms that are gone have no variance left.
            cost = np.divide(coefficients**2, covariance.diagonal(), out=np.full(left.size, np.inf), where=left)
            i = int(cost.argmin())
            rss.append(rss[-1] + float(cost[i]))
            row = covariance[i].copy()
            coefficients -= row * (coefficients[i] / row[i])
            covariance -= np.multiply.outer(row / row[i], row)
            left[i] = False
            supports.append(tuple(chosen[left].tolist()))
        criteria = self.criterion(np.array(rss), np.arange(chosen.size, 0, -1))
        return [Model(*one) for one in zip(supports, criteria.tolist(), rss, strict=True)]

    def forward_path(self, length: int) -> Support:
        """Return the terms that are added one after the other, each the best addition, whatever the criterion says."""
        model = self.model(())
        while len(model.support) < min(length, self.largest):
            additions = self._moves(model).additions
            if not additions:
                break
            model = self.model((*model.support, additions[0]))
        return model.support

    def best_move(self, model: Model) -> Model:
        """Return the best model one addition, removal or exchange away."""
        if model.support not in self._best_moves:
            self._best_moves[model.support] = self._best_move(model)
        return self._best_moves[model.support]

    def _best_move(self, model: Model) -> Model:
        """Fit the best of each kind of move: RSS less a gain is rounding error where next to nothing is unexplained."""
        moves = self._moves(model)
        options: list[Support] = [(*model.support, j) for j in moves.additions[:1]]
        if model.support:
            options.append(_without(model.support, int(np.argmin(moves.losses))))
            i = int(np.argmin(moves.changes))
            if moves.exchanges[i] >= 0:
                options.append((*_without(model.support, i), moves.exchanges[i]))
        return min(map(self.model, options), key=_by_criterion, default=model)

    def _moves(self, model: Model) -> _Moves:
        """Return what every addition, removal and exchange does to RSS."""
        support = np.array(model.support, dtype=np.intp)
        k = support.size
        q, triangle = _orthonormal(self.columns[:, support])
        loads = q.T @ self.columns
        outside = 1.0 - np.einsum("ij,ij->j", loads, loads)
        residual = self.target - q @ (q.T @ self.target)
        residual -= q @ (q.T @ residual)
        correlation = residual @ self.columns
        candidate = self._nonzero.copy()
        candidate[support] = False
        close = np.flatnonzero(candidate & (outside < CANCELLED))
        left = self.columns[:, close] - q @ loads[:, close]
        outside[close] = np.einsum("ij,ij->j", left, left)
        correlation[close] = residual @ left
        free = candidate & (outside > DEPENDENT**2)
        gains = np.where(free, correlation**2 / np.where(free, outside, 1.0), -1.0)
        additions = [int(j) for j in np.argsort(-gains)[:ADDITIONS] if free[j]] if k < self.largest else []
        if k == 0:
            return _Moves(additions, np.empty(0), [], np.empty(0))
        inverse, _ = lapack.dtrtri(triangle)
        directions = (q @ inverse.T) / np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
        heights = directions.T @ self.target
        across = directions.T @ self.columns
        room = np.where(free, outside, 0.0) + across**2
        possible = candidate & (room > DEPENDENT**2)
        gain = (correlation + heights[:, None] * across) ** 2 / np.where(possible, room, np.inf)
        best = np.argmax(gain, axis=1)
        exchanges = [int(j) if possible[i, j] else -1 for i, j in enumerate(best)]
        losses = heights**2
        return _Moves(additions, losses, exchanges, losses - gain[np.arange(k), best])

    def neighbours(self, model: Model) -> list[Model]:
        """Return the model without each of its terms, with each exchanged for the best other, and with the best added.

        The rivals of a chosen model: how much worse they are says how sure the choice is.
        """
        found = [self.model(_without(model.support, i)) for i in range(len(model.support))]
        moves = self._moves(model)
        found += [self.model((*_without(model.support, i), j)) for i, j in enumerate(moves.exchanges) if j >= 0]
        found += [self.model((*model.support, j)) for j in moves.additions]
        return sorted(found, key=_by_criterion)

    def polished(self, model: Model) -> Model:
        """Move to the best neighbour while that lowers the criterion."""
        while True:
            neighbour = self.best_move(model)
            if neighbour.criterion >= model.criterion - 1e-9 * abs(model.criterion):
                return model
            model = neighbour

    def select(self, proposals: Iterable[Support]) -> list[Model]:
        """Return all models met, best first: the proposals, their backward paths, and the best of them polished."""
        pool: dict[Support, Model] = {(): self.model(())}
        for proposal in proposals:
            for model in self.backward_path(proposal):
                if len(model.support) <= self.largest:
                    pool.setdefault(model.support, model)
        starts = sorted(pool.values(), key=_by_criterion)[:POLISHED]
        for start in {model.support: model for model in (*starts, pool[()])}.values():
            model = self.polished(start)
            pool[model.support] = model
        return sorted(pool.values(), key=_by_criterion)


def _orthonormal(columns: Array) -> tuple[Array, Array]:
    """Return Q and R of a few columns: LAPACK alone, since the checks around it take longer than the work."""
    k = columns.shape[1]
    if k == 0:
        return columns, np.empty((0, 0))
    reflections, scales, _, _ = lapack.dgeqrf(columns)
    triangle = np.triu(reflections[:k])
    q, _, _ = lapack.dorgqr(reflections, scales)
    return q, triangle


def penalty(n_rows: float, n_columns: int, k: Any) -> Any:
    """Return 2[k ln N + 2 ln C(d, k)]."""
    choices = gammaln(n_columns + 1) - gammaln(k + 1) - gammaln(n_columns - k + 1)
    return 2 * (k * np.log(n_rows) + 2 * choices)


def ard_supports(system: System) -> list[Support]:
    """Return the support of ARD at α = 16 and, where columns do not outnumber rows, at α = 1."""
    inflations = (1.0, INFLATION) if system.n_columns < system.n_rows else (INFLATION,)
    return [_ard_support(system, alpha, None) for alpha in inflations] if system.total > 0 else []


def wide_supports(system: System) -> list[Support]:
    """Return supports to eliminate from where terms explain something only together.

    If each alone is hidden by another, the empty model is a fixed point of ARD. The backward path from all columns
    finds them or, where those are too many, that from ARD with σ² held at small shares of the variance, or from a
    forward selection which does not stop at the criterion.
    """
    if 2 * system.n_columns <= system.n_rows:
        return [tuple(range(system.n_columns))]
    held = [_ard_support(system, HELD_INFLATION, share) for share in HELD_NOISE] if system.total > 0 else []
    return [*held, system.forward_path(FORWARD_LENGTH)]


def _ard_support(system: System, inflation: float, noise_share: float | None) -> Support:
    """Return the columns that ARD keeps, σ² learned or held at a share of ‖z‖²/N."""
    noise = None if noise_share is None else noise_share / system.n_rows
    spanned = np.any(system.columns, axis=1)  # of a squeezed system all but the last row
    target = system.target / np.sqrt(system.total)
    rest = float(np.sum(target[~spanned] ** 2))
    problem = Problem(DenseColumns(system.columns[spanned]), target[spanned], rest, system.n_rows)
    task = Task(problem, np.ones(system.n_columns), 1.0, noise, ARD_STEPS, ARD_TOLERANCE)
    gamma = task.run_once(inflation=np.full(system.n_columns, inflation)).gamma
    return tuple(np.flatnonzero(gamma).tolist())


def regressor_supports(regressor: Any, system: System) -> list[Support]:
    """Return the support that an estimator of ours finds, as the only proposal."""
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)  # of a step on the way, not of the equations
        model = clone(regressor).fit(system.columns, system.target)
    return [tuple(np.flatnonzero(model.support_).tolist())]


def _without(support: Support, position: int) -> Support:
    return support[:position] + support[position + 1 :]


def _by_criterion(model: Model) -> float:
    return model.criterion
