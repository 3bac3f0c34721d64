"""Access to the columns of Theta: dense in memory, or implicit with its flat columns projected out on the fly.

Everything above asks only three things of a design matrix A (rows × columns): some of its columns, Aᵀv, and the
squared norms of its columns.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


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


class Source(Protocol):
    """A Θ that is never made dense: a sparse matrix or a linear operator."""

    shape: tuple[int, int]

    @property
    def norms(self) -> Array:
        """Norm of every column."""

    def weighted(self, root: Array) -> Source:
        """Return the same with every row multiplied by its root weight."""

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""

    def correlate(self, vectors: Array) -> Array:
        """Return Θᵀ vectors."""

    def restrict(self, index: Index) -> Source:
        """Return the chosen columns only."""


class ProjectedColumns:
    """Columns of (Θ − UVᵀ)/unit: a source less its projection on the orthonormal flat basis U, V = ΘᵀU.

    The difference is never formed as a whole, so a sparse Θ stays sparse although centring it would fill it.
    """

    def __init__(self, source: Source, basis: Array, loadings: Array, square_norms: Array, unit: Array) -> None:
        self.source = source
        self.basis = basis
        self.loadings = loadings
        self.square_norms = square_norms
        self.unit = unit
        self._factor = np.where(square_norms > 0, 1 / unit, 0.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return (self.source.take(index) - self.basis @ self.loadings[index].T) * self._factor[index]

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""
        product = self.source.correlate(vectors) - self.loadings @ (self.basis.T @ vectors)
        return product * (self._factor if vectors.ndim == 1 else self._factor[:, None])

    def restrict(self, index: Index) -> ProjectedColumns:
        """Return the design with the chosen columns only."""
        return ProjectedColumns(
            self.source.restrict(index), self.basis, self.loadings[index], self.square_norms[index], self.unit[index]
        )


class ActiveColumns:
    """Columns that have been active at least once, with their Gram rows G_j: = θ_jᵀA, each computed once.

    The outer loop meets the same few columns again and again; their Gram rows make the posterior, the tangent
    weights and the lasso cost O(k²d) instead of O(mkd), and no d×d matrix exists unless every column gets active.
    """

    def __init__(self, columns: Columns) -> None:
        rows, width = columns.shape
        self._columns = columns
        self._position = np.full(width, -1, dtype=np.intp)
        self._count = 0
        self._vectors = np.empty((rows, 0), order="F")
        self._gram_rows = np.empty((0, width))

    def _admit(self, index: Index) -> Index:
        new = index[self._position[index] < 0]
        if new.size:
            vectors = self._columns.take(new)
            gram_rows = self._columns.correlate(vectors).T
            needed = self._count + new.size
            if needed > self._gram_rows.shape[0]:
                room = min(max(2 * self._gram_rows.shape[0], needed), self._columns.shape[1])
                self._vectors = _grown(self._vectors.T, room, self._count).T
                self._gram_rows = _grown(self._gram_rows, room, self._count)
            self._vectors[:, self._count : needed] = vectors
            self._gram_rows[self._count : needed] = gram_rows
            self._position[new] = np.arange(self._count, needed)
            self._count = needed
        return self._position[index]

    def vectors(self, index: Index) -> Array:
        """Return the columns themselves, rows × k."""
        position = self._admit(index)
        return self._vectors[:, position]

    def gram_rows(self, index: Index) -> Array:
        """Return θ_jᵀA for every chosen j, k × d."""
        position = self._admit(index)
        return self._gram_rows[position]

    def gram(self, index: Index) -> Array:
        """Return the Gram block of the chosen columns, k × k."""
        position = self._admit(index)
        return self._gram_rows[np.ix_(position, index)]


def _grown(rows: Array, room: int, used: int) -> Array:
    grown = np.empty((room, rows.shape[1]))
    grown[:used] = rows[:used]
    return grown
