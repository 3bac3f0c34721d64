"""The problem a solver receives: what is left of (Theta, y) after compression, and the way back to the user's units.

Everything above asks only three things of a design matrix A (rows × columns): some of its columns, Aᵀv, and the
squared norms of its columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import gammaln

from ardea.core.lazy import cached_property

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
Criterion = Literal["aic", "bic", "ebic", "ebic2", "evidence", "aicc"]
# A noise variance can be learned beside as many terms as this share of the rows (a convention: four rows for each).
# Plain ARD keeps a third of all irrelevant columns, up to a third of the rows where nothing is wrong: half for it.
LARGEST_SHARE = 0.25
LARGEST_SHARE_OF_PLAIN_ARD = 0.5
# A flat column of which those before it leave no larger share is a sum of them: a convention, 4500 roundings.
DEPENDENT = 1e-12


def power_of_two(size: Array) -> Array:
    """Return the power of two just above each size (1 for zero): dividing by it is exact."""
    power: Array = np.ldexp(1.0, np.frexp(size)[1])
    return power


class Columns(Protocol):
    """What the core needs to know of a design matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def square_norms(self) -> Array:
        """Squared norm of every column, ρ."""

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""

    def restrict(self, index: Index) -> Columns:
        """Return the design with the chosen columns only."""


class DenseColumns:
    """Columns of an array in memory."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = np.asfortranarray(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.matrix.shape
        return rows, columns

    @cached_property
    def square_norms(self) -> Array:
        """Squared norm of every column, ρ."""
        norms: Array = np.einsum("ij,ij->j", self.matrix, self.matrix)
        return norms

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return self.matrix[:, index]

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""
        product: Array = self.matrix.T @ vectors
        return product

    def restrict(self, index: Index) -> DenseColumns:
        """Return the design with the chosen columns only."""
        return DenseColumns(self.matrix[:, index])


class ActiveColumns:
    """Columns that have been active at least once, with their Gram rows G_j: = θ_jᵀA, each computed once.

    The outer loop meets the same few columns again and again; their Gram rows make the posterior, the tangent
    weights and the lasso cost O(k²d) instead of O(mkd), and no d×d matrix exists unless every column gets active.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        rows, d = columns.shape
        self._place = np.full(d, -1, dtype=np.intp)  # among those met; −1 for columns that were not
        self._number = 0
        self._vectors, self._gram_rows = np.empty((0, rows)), np.empty((0, d))

    def _met(self, index: Index) -> Index:
        """Return the places of the chosen columns, after meeting those that are new."""
        places = self._place[index]
        if places.size and places.min() < 0:
            self._meet(index[places < 0])
            places = self._place[index]
        return places

    def _meet(self, new: Index) -> None:
        first, self._number = self._number, self._number + new.size
        if self._number > self._vectors.shape[0]:
            room = max(self._number, min(2 * first, self._place.size))
            for name in ("_vectors", "_gram_rows"):
                held = getattr(self, name)
                setattr(self, name, np.empty((room, held.shape[1])))
                getattr(self, name)[:first] = held[:first]
        vectors = self._columns.take(new)
        self._vectors[first : self._number] = vectors.T
        self._gram_rows[first : self._number] = self._columns.correlate(vectors).T
        self._place[new] = np.arange(first, self._number)

    def vectors(self, index: Index) -> Array:
        """Return the columns themselves, rows × k."""
        places = self._met(index)
        return self._vectors[places].T

    def gram_rows(self, index: Index) -> Array:
        """Return θ_jᵀA for every chosen j, k × d."""
        places = self._met(index)
        return self._gram_rows[places]

    def gram(self, index: Index) -> Array:
        """Return the Gram block of the chosen columns, k × k."""
        return self.gram_rows(index)[:, index]


@dataclass(frozen=True)
class Problem:
    """One right-hand side after compression: minimise over γ (and σ²) with these alone."""

    columns: Columns  # r × d design A with AᵀA = ΘᵀΘ (flat columns projected out)
    target: Array  # part of y in the rows kept, z
    rest: float  # squared norm of y outside them
    n_rows: float  # m: sum of the weights, less the number of flat directions projected out
    floor: float = 0.0  # residual sum of squares that rounding or truncation leaves: nothing below tells models apart
    distinct: float = np.inf  # number of rows that differ, less the flat directions; infinity where not counted
    price: float | Array | None = None  # what a column, or each, must lower m ln RSS by; None: what the criterion says
    owners: Index | None = None  # of each column the one before it with which it goes, or itself; None: itself

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        return self.columns.shape[1]

    @property
    def square_norms(self) -> Array:
        """ρ, the squared norms of the columns."""
        return self.columns.square_norms

    @cached_property
    def n_candidates(self) -> int:
        """Number of columns that are not zero once the flat ones are projected out."""
        return int((self.square_norms > 0).sum())

    @cached_property
    def n_distinct(self) -> float:
        """Number of rows that tell something of their own: a row of weight 3, or given three times, is one."""
        return min(self.n_rows, self.distinct)

    @cached_property
    def wide(self) -> bool:
        """Whether the columns are enough to interpolate the rows."""
        return self.n_candidates >= self.n_distinct

    @property
    def largest(self) -> int:
        """The largest number of terms that a search considers."""
        return int(min(LARGEST_SHARE * self.n_distinct, self.n_columns))

    def too_many(self, n_terms: int, *, plain: bool = False) -> bool:
        """Whether σ² cannot be learned beside so many terms: the one bound on the size of a model with learned noise.

        `plain` is for plain ARD, which keeps a third of all irrelevant columns where nothing is wrong.
        """
        return n_terms > (LARGEST_SHARE_OF_PLAIN_ARD if plain else LARGEST_SHARE) * self.n_distinct

    @cached_property
    def blocks(self) -> list[Index]:
        """Columns that go together, their owner first: an array for every width of such blocks, with a row for each."""
        return blocks_of(np.arange(self.n_columns) if self.owners is None else self.owners)

    def together(self, support: Iterable[int]) -> tuple[int, ...]:
        """Return a support with all columns that go with one of it, and without those whose owner is not there."""
        chosen = {int(j) for j in support}
        if self.owners is not None:
            leading = [j for j in chosen if self.owners[j] == j]
            chosen = set(np.flatnonzero(np.isin(self.owners, leading)).tolist())
        return tuple(sorted(chosen))

    @cached_property
    def correlations(self) -> Array:
        """Θᵀy."""
        return self.columns.correlate(self.target)

    @cached_property
    def total(self) -> float:
        """‖y‖²."""
        return float(self.target @ self.target) + self.rest

    @cached_property
    def active(self) -> ActiveColumns:
        """Cache of the columns met so far and their Gram rows."""
        return ActiveColumns(self.columns)

    def least_squares(self, index: Index) -> tuple[Array, float]:
        """Return the least-squares coefficients of the chosen columns and the residual sum of squares over all rows."""
        vectors = self.columns.take(index)
        coefficients: Array = np.linalg.lstsq(vectors, self.target, rcond=None)[0].astype(np.float64, copy=False)
        residual = self.target - vectors @ coefficients
        return coefficients, float(residual @ residual) + self.rest

    def among(self, index: Index) -> Problem:
        """Return the same rows with the chosen columns only, whole blocks of them."""
        owners = None if self.owners is None else np.searchsorted(index, self.owners[index])
        price = self.price[index] if isinstance(self.price, np.ndarray) else self.price
        return replace(self, columns=self.columns.restrict(index), owners=owners, price=price)

    def restrict(self, index: Index) -> Problem:
        """Return the same data with the chosen columns only, compressed again where that is smaller."""
        part = self.among(index)
        if part.columns.shape[0] <= 2 * (index.size + 1):
            return part
        rows, target, rest = squeezed(part.columns.take(np.arange(index.size)), self.target)
        return replace(part, columns=DenseColumns(rows), target=target, rest=self.rest + rest)


def penalty(name: Criterion, n_rows: Any, n_columns: Any, k: Any) -> Any:
    """Return what a criterion adds for k of d terms on m rows: the table of :mod:`ardea.estimators.search`.

    Examples
    --------
    >>> penalty("aic", 100, 20, 3), round(float(penalty("bic", 100, 20, 3)), 2)
    (6, 13.82)
    """
    if name == "aic":
        return 2 * k
    if name == "aicc":
        more, left = np.asarray(k + 1.0), np.asarray(n_rows - k - 2.0)
        with np.errstate(divide="ignore"):
            return 2 * more + np.where(left > 0, (2 * more**2 + 2 * more) / left, np.inf)
    if name == "bic":
        return k * np.log(n_rows)
    choices = gammaln(n_columns + 1) - gammaln(k + 1) - gammaln(n_columns - k + 1)
    if name == "evidence":
        return 2 * k + 2 * choices
    return (k * np.log(n_rows) + 2 * choices) if name == "ebic" else 2 * (k * np.log(n_rows) + 2 * choices)


def misfit(rss: Any, n_rows: Any, floor: Any = 0.0) -> Any:
    """Return m ln((RSS + floor)/m): what lies well below truncation or rounding error gains nothing."""
    if isinstance(rss, float) and isinstance(floor, float):  # NumPy takes ten times as long for one number
        return n_rows * log((max(rss, 0.0) + max(floor, TINY)) / n_rows)
    return n_rows * np.log((np.maximum(rss, 0.0) + np.maximum(floor, TINY)) / n_rows)


def squeezed(columns: Array, target: Array) -> tuple[Array, Array, float]:
    """Return as many rows as there are columns that say the same of them, and the squared norm of y outside them.

    By QR: a Gram matrix would lose the residual of data without noise.
    """
    k = columns.shape[1]
    upper = triangle(np.column_stack([columns, target]))
    return upper[:k, :k], upper[:k, k], float(upper[k, k] ** 2)


def triangle(rows: Array) -> Array:
    """Return the upper triangle of a QR factorisation."""
    width = rows.shape[1]
    packed, *_ = linalg.lapack.dgeqrf(rows, lwork=64 * width)
    return np.triu(packed[:width])


def blocks_of(owners: Index) -> list[Index]:
    """Return the places with one owner, it first: an array for every number of such places, with a row for each."""
    _, block, width = np.unique(owners, return_inverse=True, return_counts=True)
    order = np.argsort(block, kind="stable")
    return [order[width[block[order]] == one].reshape(-1, one) for one in np.unique(width)]


def posed(A: Array, z: Array, n_rows: float | None = None, floor: float = 0.0) -> tuple[Problem, Array]:
    """Return the problem of some rows without flat columns, and what one unit of each coefficient is worth.

    Columns get unit norm, and rows are squeezed where they are many. `n_rows` is the number of independent rows where
    it is not that of A, `floor` the residual sum of squares that truncation error alone leaves.
    """
    rows, d = A.shape
    m = float(rows if n_rows is None else n_rows)
    norms = np.linalg.norm(A, axis=0)
    unit = 1 / np.where(norms > 0, norms, 1.0)
    columns, target, rest = A * unit, z, 0.0
    if rows > 2 * (d + 1):
        columns, target, rest = squeezed(columns, z)
    return Problem(DenseColumns(columns), target, rest, m, floor), unit


@dataclass(frozen=True, eq=False)
class FlatColumns:
    """The columns F with a flat prior (intercept first, then `always_keep`), and what they explain.

    With H the loadings of the penalised columns on F, β | ξ ~ N(h − Hξ, σ²(FᵀF)⁻¹): centring, in general form.
    """

    kept: Index  # columns of Θ in F
    intercept: bool  # whether the first column of F is the constant one
    loadings: Array  # H (p, d): least-squares coefficients of Θ's columns on F; for the intercept alone, their means
    target_loadings: Array  # h (p, n_targets), the same for y; (p,) for one target
    inverse_gram: Array  # (FᵀWF)⁻¹ of the columns that are no sums of those before them, zeros for the others

    @classmethod
    def empty(cls, n_columns: int) -> FlatColumns:
        """Return no flat columns beside so many penalised ones."""
        return cls(np.empty(0, dtype=np.intp), False, np.empty((0, n_columns)), np.empty(0), np.empty((0, 0)))

    @property
    def redundant(self) -> Index:
        """Columns in `kept` that are sums of the flat columns before them: their coefficients are zero."""
        return self.kept[self.inverse_gram.diagonal()[int(self.intercept) :] == 0]

    def of(self, columns: Index, target: int) -> FlatColumns:
        """Return what they explain of some columns and one target."""
        return replace(self, loadings=self.loadings[:, columns], target_loadings=self.target_loadings[:, target])


class FlatRows:
    """The rows of the flat columns F, weighted: an orthonormal basis of their range, F⁺ and (FᵀF)⁺.

    A column that those before it explain (a constant one beside the intercept) has coefficient zero: F⁺ is that of the
    others, with rows of zeros.
    """

    def __init__(self, rows: Array, intercept: bool, keep: Sequence[int]) -> None:
        self.intercept = intercept
        self.kept: Index = np.asarray(keep, dtype=np.intp)
        scale = power_of_two(np.abs(rows).max(axis=0, initial=0.0))
        columns, scaled = np.arange(rows.shape[1]), rows / scale
        u, s, vt, rank = _svd(scaled)
        if rank < columns.size:
            columns = _independent(scaled)
            u, s, vt, rank = _svd(scaled[:, columns])
        half = np.zeros((rows.shape[1], rank))
        half[columns] = (vt[:rank].T / s[:rank]) / scale[columns, None]
        self.basis: Array = u[:, :rank]
        self.unload: Array = half @ self.basis.T
        self.inverse_gram: Array = half @ half.T
        if (self.inverse_gram.diagonal()[columns] == 0).any():
            raise ValueError(
                "Columns in always_keep are so large that their squares overflow: give them in another unit."
            )

    def projected(self, rows: Array) -> Array:
        """Return rows − UUᵀrows, twice, since once leaves rounding error of the size of what was removed."""
        if self.basis.shape[1] == 0:
            return rows
        left = rows - self.basis @ (self.basis.T @ rows)
        left -= self.basis @ (self.basis.T @ left)
        return left


def _svd(rows: Array) -> tuple[Array, Array, Array, int]:
    """Return UΣVᵀ and the rank."""
    if rows.shape[1] == 1 and (size := np.sqrt(rows[:, 0] @ rows[:, 0])) > 0:
        return rows / size, np.array([size]), np.ones((1, 1)), 1
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    return u, s, vt, int((s > s.max(initial=0.0) * DEPENDENT).sum())


def _independent(rows: Array) -> Index:
    """Return the columns that are no sum of those before them."""
    basis = np.empty((rows.shape[0], 0))
    chosen = []
    for j, column in enumerate(rows.T):
        left = column - basis @ (basis.T @ column)
        left -= basis @ (basis.T @ left)
        if (norm := np.linalg.norm(left)) > DEPENDENT * np.linalg.norm(column):
            basis = np.column_stack([basis, left / norm])
            chosen.append(j)
    return np.array(chosen, dtype=np.intp)


@dataclass(frozen=True)
class Coordinates:
    """How to go back from a problem's coordinates to the user's.

    Columns and targets are divided by powers of two near their norms, so that results do not depend on the units
    and numbers near 1e±150 do not overflow when squared: ξ = ξ̃ · target/columns.
    """

    columns: Array
    targets: Array
    flat: FlatColumns
    flat_rank: int
    total_weight: float
    n_samples: int
    log_volume: float = 0.0  # ln|V| where the rows had the covariance σ²V and were whitened

    def coefficient_unit(self, target: int) -> Array:
        """Return what one unit of each coefficient is worth in the user's units."""
        return self.targets[target] / self.columns


# Memory: a clear MemoryError before the machine swaps. Asked only where an allocation of many megabytes is ahead, so
# that small work costs nothing. Available is the least of what the kernel could give without swapping, what is left of
# the limits of the control groups (containers, batch jobs), and of the limit on addresses (``ulimit -v``). Where the
# system tells none of them nothing is refused.

# Less than this is never looked at: a convention.
LEAST = 64 * 2**20
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
ADVICE = (
    "Give the rows in blocks (partial_fit, Dask arrays, ardea.tables; on the command line a smaller --memory), fewer "
    "rows, or fewer columns or terms."
)


def require(n_bytes: float, what: str, advice: str = ADVICE) -> None:
    """Raise MemoryError, with advice, where what is about to be allocated would not fit into the memory available."""
    if n_bytes < LEAST:
        return
    there = available()
    if there is not None and n_bytes > there:
        raise MemoryError(f"{what} needs about {_shown(n_bytes)} of memory; {_shown(there)} are available. {advice}")


def available() -> int | None:
    """Return how many bytes can be allocated before the machine swaps or a limit is hit; None where nobody tells."""
    machine = (1024 * int(line.split()[1]) for line in _lines(PROC / "meminfo") if line.startswith("MemAvailable:"))
    bounds = [*machine, *_left_of_groups(), *_left_of_addresses()]
    return max(0, min(bounds)) if bounds else None


def _shown(n_bytes: float) -> str:
    size = float(min(n_bytes, 10**300))  # beyond, a float has no room
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def _left_of_groups() -> Iterator[int]:
    """Yield limit − usage of the process's control group and of those around it; files that can be dropped are free."""
    for line in _lines(PROC / "self" / "cgroup"):
        inner = CGROUPS / line.split(":", 2)[2].strip("/")
        for folder in (inner, *inner.parents[: len(inner.parts) - len(CGROUPS.parts)]):
            numbers = [" ".join(_lines(folder / name)) for name in ("memory.max", "memory.current")]
            if all(number.isdigit() for number in numbers):
                entries = (line.split() for line in _lines(folder / "memory.stat"))
                dropped = sum(int(entry[1]) for entry in entries if entry[0] == "inactive_file")
                yield int(numbers[0]) - int(numbers[1]) + dropped


def _left_of_addresses() -> Iterator[int]:
    """Yield what is left of the limit on addresses."""
    pages = " ".join(_lines(PROC / "self" / "statm")).split()
    if resource is not None and pages:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
