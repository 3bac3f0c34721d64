"""The fitted terms in the user's units: posterior, intervals, draws, prediction variance, and the table of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import linalg, stats
from sklearn import get_config

from ardea.core.columns import Array, DenseColumns, Index
from ardea.core.problem import Coordinates, Problem
from ardea.core.result import Fit
from ardea.estimators.operators import Operator

SMALL_BLOCK = 2**14
IntervalKind = Literal["posterior", "refit"]


@dataclass(frozen=True)
class Gaussian:
    """Gaussian of the penalised coefficients ξ_a, and of the flat ones given them.

    With H the loadings of Θ_a on the flat columns F, β | ξ ~ N(Hy − Hξ, σ²(FᵀF)⁻¹): centring, in general form.
    """

    mean: Array
    covariance: Array
    noise: float
    degrees: float


@dataclass(frozen=True)
class SupportRows:
    """The problem of the active columns alone, dense, for least squares on the support when asked for."""

    part: Problem
    unit: Array
    noise_unit: float
    known_noise: float | None

    def least_squares(self) -> Gaussian | None:
        """Return Student's t with m − k degrees where σ² was learned, else a Gaussian."""
        degrees = self.part.n_rows - self.unit.size
        if degrees < 0 or (degrees == 0 and self.known_noise is None):
            return None
        every = np.arange(self.unit.size)
        mean, rss = self.part.least_squares(every)
        noise = rss / degrees if self.known_noise is None else self.known_noise
        inverse = np.linalg.pinv(self.part.columns.take(every))
        covariance = noise * (inverse @ inverse.T) * np.outer(self.unit, self.unit)
        known = self.known_noise is not None
        return Gaussian(mean * self.unit, covariance, noise * self.noise_unit, np.inf if known else degrees)


@dataclass(frozen=True)
class Terms:
    """What a fit says of one target, in the user's units.

    Attributes
    ----------
    n_features : int
        Number of columns of X.
    active : ndarray of int
        Penalised columns with a non-zero coefficient.
    kept : ndarray of int
        Columns with a flat prior (`always_keep`).
    intercept : bool
        Whether the first flat column is the constant one.
    loadings : ndarray of shape (p, k)
        Least-squares coefficients of the active columns on the flat ones.
    target_loadings : ndarray of shape (p,)
        The same for y.
    inverse_gram : ndarray of shape (p, p)
        (FᵀWF)⁻¹.
    posterior : Gaussian
        The ARD posterior of the active coefficients.
    support_rows : SupportRows
        What a refit without the prior needs.
    """

    n_features: int
    active: Index
    kept: Index
    intercept: bool
    loadings: Array
    target_loadings: Array
    inverse_gram: Array
    posterior: Gaussian
    support_rows: SupportRows

    @cached_property
    def refit(self) -> Gaussian | None:
        """With a flat prior on the active columns too: least squares on the support; None with too few rows."""
        return self.support_rows.least_squares()

    def _flat_mean(self, gaussian: Gaussian) -> Array:
        return np.asarray(self.target_loadings - self.loadings @ gaussian.mean)

    @property
    def intercept_value(self) -> float:
        """Posterior mean of the intercept, 0 without one."""
        return float(self._flat_mean(self.posterior)[0]) if self.intercept else 0.0

    @property
    def support(self) -> Index:
        """All columns with a non-zero coefficient, in order."""
        return np.sort(np.concatenate([self.active, self.kept])) if self.kept.size else self.active

    def coefficients(self, gaussian: Gaussian) -> Array:
        """Return the mean of every column's coefficient (d,), exact zeros off the support."""
        coefficients = np.zeros(self.n_features)
        coefficients[self.active] = gaussian.mean
        coefficients[self.kept] = self._flat_mean(gaussian)[int(self.intercept) :]
        return coefficients

    def covariance(self, gaussian: Gaussian) -> Array:
        """Return the covariance of the support's coefficients, in column order."""
        if self.kept.size == 0:
            return gaussian.covariance
        flat = self.loadings[int(self.intercept) :]
        cross = -flat @ gaussian.covariance
        own = gaussian.noise * self.inverse_gram[int(self.intercept) :, int(self.intercept) :]
        joint = np.block([[gaussian.covariance, cross.T], [cross, own - cross @ flat.T]])
        order = np.argsort(np.concatenate([self.active, self.kept]), kind="stable")
        return joint[np.ix_(order, order)]

    def standard_deviations(self, gaussian: Gaussian) -> Array:
        """Return the standard deviation of every column's coefficient (d,), zero off the support."""
        deviations = np.zeros(self.n_features)
        deviations[self.support] = np.sqrt(self.covariance(gaussian).diagonal())
        return deviations

    def interval(self, level: float, kind: IntervalKind) -> Array:
        """Return lower and upper ends (d, 2): zeros off the support."""
        gaussian = self.posterior
        if kind == "refit":
            if self.refit is None:
                raise ValueError(
                    f"The refit interval needs more rows than terms; this model keeps {self.support.size} terms. "
                    "Use kind='posterior', or a sparser model."
                )
            gaussian = self.refit
        tail = 0.5 + level / 2
        quantile = stats.t.ppf(tail, gaussian.degrees) if np.isfinite(gaussian.degrees) else stats.norm.ppf(tail)
        centre, half = self.coefficients(gaussian), quantile * self.standard_deviations(gaussian)
        return np.column_stack([centre - half, centre + half])

    def sample(self, n: int, generator: np.random.Generator | np.random.RandomState) -> Array:
        """Return n posterior draws of all coefficients (n, d), exact zeros off the support."""
        covariance = self.covariance(self.posterior)
        # In units of each deviation, so that coefficients of very different size are drawn alike.
        deviation = np.sqrt(covariance.diagonal())
        safe = np.where(deviation > 0, deviation, 1.0)
        values, vectors = linalg.eigh(covariance / np.outer(safe, safe))
        half = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = np.zeros((n, self.n_features))
        noise = generator.standard_normal((n, values.size))
        draws[:, self.support] = self.coefficients(self.posterior)[self.support] + noise @ half.T * deviation
        return draws

    def prediction_variance(self, X: Any) -> Array:
        """Return the variance of a new observation at every row of X: noise, coefficients, intercept."""
        kept, active = _dense(columns_of(X, self.kept)), _dense(columns_of(X, self.active))
        flat = np.column_stack([np.ones((X.shape[0], int(self.intercept))), kept])
        gaussian = self.posterior
        centred = active - flat @ self.loadings
        spread = np.einsum("ij,jk,ik->i", centred, gaussian.covariance, centred, optimize=True)
        spread += gaussian.noise * np.einsum("ij,jk,ik->i", flat, self.inverse_gram, flat, optimize=True)
        return np.asarray(gaussian.noise + np.maximum(spread, 0.0))


def columns_of(X: Any, index: Index) -> Any:
    """Return some columns of an array, a sparse matrix or an operator."""
    return X.take(index) if isinstance(X, Operator) else X[:, index]


def _dense(block: Any) -> Array:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=float)


def terms_of(problem: Problem, fit: Fit, coordinates: Coordinates, target: int, *, noise_known: bool) -> Terms:
    """Carry one fit back to the user's units."""
    post, flat = fit.posterior, coordinates.flat
    unit = coordinates.coefficient_unit(target)[post.active]
    noise_unit = float(coordinates.targets[target]) ** 2
    rows, k = problem.columns.shape[0], post.active.size
    # A compressed copy keeps fitted models small; a small one is not worth the QR.
    part = (
        problem.restrict(post.active)
        if rows * k > SMALL_BLOCK
        else replace(problem, columns=problem.columns.restrict(post.active))
    )
    support_rows = SupportRows(
        part=replace(part, columns=DenseColumns(part.columns.take(np.arange(k)))),
        unit=unit,
        noise_unit=noise_unit,
        known_noise=fit.noise if noise_known else None,
    )
    covariance = post.covariance * unit[:, None] * unit
    return Terms(
        n_features=problem.n_columns,
        active=post.active,
        kept=flat.kept,
        intercept=flat.intercept,
        loadings=flat.loadings[:, post.active],
        target_loadings=flat.target_loadings[:, target],
        inverse_gram=flat.inverse_gram,
        posterior=Gaussian(post.mean * unit, covariance, post.noise * noise_unit, np.inf),
        support_rows=support_rows,
    )


@dataclass(frozen=True)
class Summary:
    """The kept terms as a table: prints as text, `to_frame()` for pandas.

    Attributes
    ----------
    columns : dict of str to list
        One list per column of the table.
    caption : str
        One line on the whole fit.
    """

    columns: dict[str, list[Any]]
    caption: str

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame (needs the extra `frames`)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() needs pandas: pip install 'ardea[frames]'.") from error
        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        header = list(self.columns)
        rows = [
            [value if isinstance(value, str) else f"{value:.4g}" for value in row]
            for row in zip(*self.columns.values(), strict=True)
        ]
        widths = [max(len(name), *(len(row[i]) for row in rows), 0) for i, name in enumerate(header)]
        rule = "  ".join("-" * width for width in widths)
        left = [isinstance(values[0], str) if values else False for values in self.columns.values()]
        lines = [_aligned(header, widths, left), rule, *(_aligned(row, widths, left) for row in rows)]
        return "\n".join([self.caption, "", *(line.rstrip() for line in lines)] if rows else [self.caption])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        from ardea.show.notebook import summary_html

        return summary_html(self)


class ShowsTerms:
    """Shows a fitted model in notebooks as its few terms, with scikit-learn's diagram below; see `ardea.show.notebook`.

    Goes before BaseEstimator, whose representation it replaces. As there, ``display="text"`` turns it off.
    """

    def _repr_html_inner(self) -> str:
        from ardea.show.notebook import model_html

        return model_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return shown | {"text/html": self._repr_html_inner()} if get_config()["display"] == "diagram" else shown


def _aligned(cells: list[str], widths: list[int], left: list[bool]) -> str:
    padded = [
        cell.ljust(width) if to_left else cell.rjust(width)
        for cell, width, to_left in zip(cells, widths, left, strict=True)
    ]
    return "  ".join(padded)
