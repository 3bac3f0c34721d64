"""Rows that are not independent: how it is noticed, and how series and groups are made independent.

Let the errors of the rows have the covariance σ²V, with ones on the diagonal of V:

- in a series they are a stationary autoregression, given by its partial autocorrelations π₁ … π_p;
- in groups V_st = ρ for two rows of one group, and 0 for rows of two groups.

With LVLᵀ = I the rows L[1 X y] are independent and have the noise variance σ² (generalised least squares); any method
can be fitted to them. Terms and V are learned in turn:

1) given the terms, with q columns F (those kept and the intercept) and S² the sum of squares that they leave of Ly, the
   least (m − q) ln S² + ln|V| + ln|FᵀV⁻¹F|, the restricted likelihood; the order p by AIC;
2) given V, SparseARD on L[1 X y]; until the terms stay the same.

Both from independent rows and from the V of no term at all: the first would keep false terms that imitate correlated
errors, the second can take true terms for them. The better evidence is taken, terms priced as in SparseARD.

Rows are tested in their order and by group. Least squares gives the coefficient of a column x the variance that
independent errors would, times v = 1 + Σ ρ_e(s, t) ρ_x(s, t) over pairs of rows: dependence harms where it is in the
errors *and* in the columns. In order, v is the mean over frequencies of the product of two periodograms, of the errors
and of the columns (averaged), each of mean 1; by group it follows from the two intraclass correlations. What the fitted
terms took away from the errors, a share h of the power at a frequency if those are independent, is given back. Rows are
said to depend on each other where v is large and independent errors would hardly ever be as correlated. For these,
sums over pairs of rows are a quadratic form of random signs: its variance is known, whatever the variances of the rows,
and its tail is that of the χ² that has the skewness of its eigenvalues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy import fft, linalg, optimize, sparse, special

from ardea.core.compression import CompressedRows, ranges_of, root_weights
from ardea.core.evidence import NoiseRule
from ardea.core.implicit import Operator
from ardea.core.loop import STATUS_ADVICE, Fit
from ardea.core.problem import EPS, Array, Index, Problem, require
from ardea.equation import Equation
from ardea.estimators.advice import Advice, DependentRowsWarning
from ardea.estimators.inputs import CheckedRows, Whitened
from ardea.methods.task import Task, Wish, tasks_of
from ardea.methods.task import sparse as sparse_ard

RowKind = Literal["independent", "series", "groups"]
ROW_KINDS: tuple[RowKind, ...] = get_args(RowKind)
# Probability of an alarm where rows are independent, the share of rows below which dependence is worth a word
# (intervals are then 10 % too narrow), and the fewest rows tested: conventions.
ALARM, WORTH_A_WORD, FEWEST_TESTED = 1e-3, 0.8, 20
# Rows k apart count 0.3ᵏ in the test (measured: of 0.1, 0.3, 0.5, 0.7 and the columns' own correlations it finds most
# series of 100 rows, since false terms imitate slow errors); a frequency counts 20 times at most (a convention).
NEIGHBOURS, MOST_TAKEN = 0.3, 0.95
# Rows and columns that are looked at, so that large fits do not wait for it: conventions.
MOST_TESTED_ROWS, MOST_TESTED_COLUMNS = 4096, 64
# Partial autocorrelations stay within ±0.999: beyond, a series of thousands of rows cannot be told from a random walk.
LARGEST = 0.999
FARTHEST = float(np.arctanh(LARGEST))
# 10 log₁₀ m orders at most (a convention), one for every ten rows; two in a row that do not pay end the search, after
# the order that Yule and Walker's equations favour.
ROWS_PER_ORDER, UNPAID = 10, 2
# Up to so many partial autocorrelations are learned once more, all together; more would take seconds (a convention).
MOST_TOGETHER = 4
# The terms stay the same after two or three rounds (measured); beyond this many they alternate between equals.
MOST_ROUNDS = 10
# The default of SparseARD: few false terms imitate errors, whatever the estimator that is fitted afterwards.
FALSE_TERMS = 0.3


# Errors ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeriesErrors:
    """Errors of one or several series: a stationary autoregression, the same for all of them."""

    order: Index  # the rows, one series after another
    place: Index  # how many rows of its series come before each of these
    partial: tuple[float, ...] = ()  # partial autocorrelations

    @classmethod
    def of(cls, rows: CheckedRows) -> SeriesErrors:
        """Return independent errors of a series, or of one for every group."""
        m = rows.X.shape[0]
        codes = np.zeros(m, dtype=np.intp) if rows.groups is None else rows.groups
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], codes[order])
        return cls(order, np.arange(m) - first)

    @cached_property
    def predictors(self) -> tuple[list[Array], Array]:
        """Best predictions from 0, 1, … p rows before, and the variances that they leave (Durbin–Levinson)."""
        weights, left = [np.empty(0)], [1.0]
        for partial in self.partial:
            weights.append(_longer(weights[-1], partial))
            left.append(left[-1] * (1 - partial**2))
        return weights, np.array(left)

    @property
    def correlation(self) -> Array:
        """Coefficients of the autoregression."""
        return self.predictors[0][-1]

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        return float(np.log(self.predictors[1][self._known]).sum())

    @property
    def _known(self) -> Index:
        """How many rows before each are used for its prediction."""
        return np.minimum(self.place, len(self.partial))

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns: errors of prediction from the rows before, divided by their deviation."""
        weights, left = self.predictors
        ordered, white = block[self.order], np.empty(block.shape)
        for known, weight in enumerate(weights):
            rows = np.flatnonzero(self._known == known)
            part = ordered[rows]
            for lag, one in enumerate(weight, 1):
                part -= one * ordered[rows - lag]
            white[self.order[rows]] = part / np.sqrt(left[known])
        return white

    def learned(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors that y leaves beside some orthonormal columns; see 1)."""
        m, current = y.size, replace(self, partial=())
        best, least = current, _restricted(current, flat, y)
        most = max(1, min(int(10 * np.log10(m)), m // ROWS_PER_ORDER))
        at_least = self._likely_order(y - flat @ (flat.T @ y), most)
        for p in range(1, most + 1):
            before = current.partial
            at = optimize.minimize_scalar(
                lambda z, before=before: _restricted(self._at((*np.arctanh(before), z)), flat, y),
                bounds=(-FARTHEST, FARTHEST),
                method="bounded",
            )
            current = self._at((*np.arctanh(before), at.x))
            if at.fun + 2 * p < least:
                best, least = current, at.fun + 2 * p
            elif p >= max(len(best.partial), at_least) + UNPAID:
                break
        return best._together(flat, y) if 2 <= len(best.partial) <= MOST_TOGETHER else best

    def _likely_order(self, errors: Array, most: int) -> int:
        """Return the order of least AIC by Yule and Walker: seasons act on a late row and on none before it."""
        ordered = errors[self.order]
        lags = [float(ordered @ ordered)]
        for lag in range(1, most + 1):
            rows = np.flatnonzero(self.place >= lag)
            lags.append(float(ordered[rows] @ ordered[rows - lag]))
        criterion, left, weights = [0.0], 1.0, np.empty(0)
        correlation = np.array(lags) / max(lags[0], np.finfo(float).tiny)
        for p in range(1, most + 1):
            one = float(np.clip((correlation[p] - weights @ correlation[p - 1 : 0 : -1]) / left, -LARGEST, LARGEST))
            weights = _longer(weights, one)
            left *= 1 - one**2
            criterion.append(errors.size * np.log(left) + 2 * p)
        return int(np.argmin(criterion))

    def _at(self, angles: Sequence[float]) -> SeriesErrors:
        return replace(self, partial=tuple(np.tanh(angles).tolist()))

    def _together(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors with all partial autocorrelations learned at once, from those found one by one."""
        at = optimize.minimize(
            lambda angles: _restricted(self._at(angles), flat, y),
            np.arctanh(self.partial),
            method="L-BFGS-B",
            bounds=[(-FARTHEST, FARTHEST)] * len(self.partial),
        )
        return self._at(at.x)


def _longer(weights: Array, partial: float) -> Array:
    """Return the best prediction from one row more, given its partial autocorrelation (Durbin–Levinson)."""
    return np.append(weights - partial * weights[::-1], partial)


@dataclass(frozen=True)
class GroupErrors:
    """Errors of which rows of one group share a part: V = (1 − ρ)I + ρ11ᵀ within a group."""

    codes: Index  # the group of every row
    weight: Array  # how often each row counts
    shared: float = 0.0  # ρ

    @classmethod
    def of(cls, rows: CheckedRows) -> GroupErrors:
        """Return independent errors of rows in groups."""
        if rows.groups is None:
            raise ValueError("rows='groups' needs the groups: fit(X, y, groups=…), one label for every row.")
        return cls(rows.groups, root_weights(rows.weight, rows.X.shape[0])[:, 0] ** 2)

    @cached_property
    def sizes(self) -> Array:
        """How many rows each group has."""
        return np.bincount(self.codes, self.weight).astype(float)

    @property
    def correlation(self) -> Array:
        """The intraclass correlation."""
        return np.array([self.shared] if self.shared > 0 else [])

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        own = np.log1p(-self.shared)
        return float(((self.sizes - 1) * own + np.log1p(self.shared * (self.sizes - 1))).sum())

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns, L = (I − θ11ᵀ/n)/√(1 − ρ) within a group of n rows."""
        own = 1 - self.shared
        taken = 1 - np.sqrt(own / (own + self.shared * self.sizes))
        sums = sparse.csr_array((self.weight, (self.codes, np.arange(self.codes.size)))) @ block
        scale = taken / self.sizes
        means = sums * (scale if block.ndim == 1 else scale[:, None])
        return np.asarray((block - means[self.codes]) / np.sqrt(own))

    def learned(self, flat: Array, y: Array) -> GroupErrors:
        """Return the errors that y leaves beside some orthonormal columns; see 1)."""
        at = optimize.minimize_scalar(
            lambda z: _restricted(replace(self, shared=float(np.tanh(z))), flat, y, self.weight),
            bounds=(0.0, FARTHEST),
            method="bounded",
        )
        independent = replace(self, shared=0.0)
        better = at.fun < _restricted(independent, flat, y, self.weight)
        return replace(self, shared=float(np.tanh(at.x))) if better else independent


Errors = SeriesErrors | GroupErrors


def _restricted(errors: Errors, flat: Array, y: Array, weight: Array | None = None) -> float:
    """Return −2 ln of the restricted likelihood, up to a constant, at the best σ²."""
    root = root_weights(weight, y.size)
    (triangle,) = linalg.qr(root * errors.whitened(np.column_stack([flat, y])), mode="r", check_finite=False)
    q, m = flat.shape[1], float((root**2).sum())
    diagonal: Array = np.abs(triangle.diagonal())
    left = max(float(diagonal[q]) ** 2, m * EPS**2)
    return float((m - q) * np.log(left) + errors.log_volume + 2 * np.log(diagonal[:q]).sum())


# Rows made independent ------------------------------------------------------------------------------------------------


def independent_rows(
    rows: CheckedRows,
    kind: RowKind,
    intercept: bool,
    keep: Sequence[int],
    noise_variance: float | None,
    max_iter: int,
    tol: float,
) -> CheckedRows:
    """Return the rows as they are where they are told to be independent, else L times them, with L learned."""
    if kind == "independent":
        return rows
    _check_rows(rows, kind)
    start: Errors = SeriesErrors.of(rows) if kind == "series" else GroupErrors.of(rows)
    tried = []
    for first in (start, start.learned(*_beside(rows, keep, intercept))):
        errors, terms = first, None
        for _ in range(MOST_ROUNDS):
            problems, coordinates = _times(errors, rows).pose(intercept=intercept, keep=keep)
            (task,) = tasks_of(problems, coordinates, noise_variance, max_iter, tol)
            fit = sparse_ard(task, Wish(false_terms=FALSE_TERMS))
            if terms == (terms := fit.posterior.active.tolist()):
                break
            errors = errors.learned(*_beside(rows, [*keep, *terms], intercept))
        scale = coordinates.log_volume + 2 * task.problem.n_rows * np.log(coordinates.targets[0])
        tried.append((_cost(task, fit) + scale + 2 * errors.correlation.size, errors))
    return _times(min(tried, key=lambda one: one[0])[1], rows)


def _cost(task: Task, fit: Fit) -> float:
    """Return −2 ln(evidence) with terms priced as in the elimination of SparseARD."""
    k = fit.posterior.active.size
    excess = task.excess(FALSE_TERMS, k)
    return float(fit.posterior.cost + k * (excess - np.log1p(excess)))


def _check_rows(rows: CheckedRows, kind: RowKind) -> None:
    if isinstance(rows.X, CompressedRows | Operator):
        raise ValueError(
            f"rows={kind!r} needs rows in memory. Streams, Dask collections, compressed rows and operators do not have "
            "them: fit a part of the rows as an array."
        )
    if rows.Y.shape[1] != 1:
        raise ValueError(f"rows={kind!r} takes one target, whose errors it learns: fit one model per column of y.")
    if kind == "series" and (rows.used is not None or (rows.weight is not None and np.any(rows.weight != 1))):
        raise ValueError("rows='series' takes no sample_weight: rows that count twice, or not at all, tear a series.")


def _beside(rows: CheckedRows, columns: Sequence[int], intercept: bool) -> tuple[Array, Array]:
    """Return an orthonormal basis of some columns and the constant, and y, in units of its largest value."""
    y, ones = rows.Y[:, 0], np.ones((rows.Y.shape[0], int(intercept)))
    basis = _basis(np.column_stack([ones, _dense(rows.X[:, sorted(set(columns))])]))
    return basis, y / max(float(np.abs(y).max()), np.finfo(float).tiny)


def _basis(columns: Array) -> Array:
    """Return orthonormal columns of the same span."""
    scale = np.abs(columns).max(axis=0, initial=0.0)
    basis, size, _ = np.linalg.svd(columns / np.where(scale > 0, scale, 1.0), full_matrices=False)
    return np.asarray(basis[:, size > size.max(initial=0.0) * np.sqrt(EPS)])


def _times(errors: Errors, rows: CheckedRows) -> CheckedRows:
    """Return L times the rows; the rows themselves where L = I."""
    if errors.correlation.size == 0:
        return rows
    m, d = rows.X.shape
    require(8 * 3 * m * d, f"{m} rows and {d} columns made independent")
    X = errors.whitened(_dense(rows.X))
    how = Whitened(errors.whitened(np.ones(m)), errors.log_volume, errors.correlation, rows)
    return replace(rows, X=X, Y=errors.whitened(rows.Y), ranges=ranges_of(X), whitened=how)


def _dense(block: Any) -> Array:
    return np.array(block.toarray() if hasattr(block, "toarray") else block, dtype=float)


# The test -------------------------------------------------------------------------------------------------------------


class Harm(NamedTuple):
    """How dependence changes variances of coefficients, on average over the columns."""

    inflation: float  # v
    chance: float  # probability of as large a v where rows are independent
    correlation: float  # of the errors: of neighbours, or within a group


def harm_in_order(columns: Array, errors: Array, fitted: Array) -> Harm:
    """Return what dependence between rows that are near each other does.

    Parameters
    ----------
    columns : array of shape (m, d)
        Columns of the model, none of them constant.
    errors : array of shape (m,)
        Residuals, in the order of the rows.
    fitted : array of shape (m, q)
        Orthonormal columns that were fitted to the same rows.

    Returns
    -------
    Harm

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walks, nothing = np.cumsum(rng.normal(size=(200, 4)), axis=0), np.empty((200, 0))
    >>> harm_in_order(walks, rng.normal(size=200), nothing).chance > 0.01
    True
    >>> harm_in_order(walks, np.cumsum(rng.normal(size=200)), nothing).chance < 1e-6
    True
    """
    m, errors = errors.size, errors - errors.mean()
    square = float(errors @ errors)
    taken = (np.abs(fft.fft(fitted, axis=0)) ** 2).sum(axis=1) / m
    own = _of_mean_one(np.abs(fft.fft(errors)) ** 2 / (1 - np.minimum(taken, MOST_TAKEN)))
    power = _of_mean_one(np.abs(fft.fft(columns, axis=0)) ** 2).mean(axis=1)
    near = _of_mean_one(np.abs(1 - NEIGHBOURS * np.exp(2j * np.pi * np.arange(m) / m)) ** -2)
    products = fft.ifft(np.abs(fft.fft(errors**2)) ** 2).real  # Σ_t e²_t e²_{t+k}
    variance = 2 * float(fft.ifft(near).real[1:] ** 2 @ products[1:]) / square**2
    eigenvalues = near[1:] - 1
    squares, cubes = float((eigenvalues**2).sum()), float((eigenvalues**3).sum())
    chance = _tail(float(near @ own) / (m - 1) - 1, variance, squares, cubes)
    return Harm(float(power @ own) / (m - 1), chance, float(errors[1:] @ errors[:-1]) / square)


def _of_mean_one(power: Array) -> Array:
    """Return powers at all frequencies, divided by their mean; none at frequency zero."""
    power[0] = 0.0
    return np.asarray(power * (len(power) - 1) / power.sum(axis=0))


def harm_by_groups(columns: Array, errors: Array, fitted: Array, codes: Index) -> Harm:
    """Return what dependence between rows of one group does; see `harm_in_order`."""
    errors, columns = errors - errors.mean(), columns - columns.mean(axis=0)
    m, square = errors.size, float(errors @ errors)
    sizes = np.bincount(codes).astype(float)
    pairs, triples = float((sizes * (sizes - 1)).sum()), float((sizes * (sizes - 1) * (sizes - 2)).sum())
    if pairs == 0:
        return Harm(1.0, 1.0, 0.0)
    together = sparse.csr_array((np.ones(codes.size), (codes, np.arange(codes.size))))

    def products(block: Array) -> Array:
        """Return the sum of products of two rows of one group."""
        return np.asarray(((together @ block) ** 2).sum(axis=0) - (block**2).sum(axis=0))

    taken = float(products(fitted).sum()) * square / (m - fitted.shape[1])
    found = float(products(errors[:, None])[0]) + taken
    chance = _tail(found, 2 * float(products(errors[:, None] ** 2)[0]), pairs, triples)
    correlation = found * m / (pairs * square)
    of_columns = float(np.mean(products(columns) * m / (pairs * (columns**2).sum(axis=0))))
    return Harm(1 + pairs / m * correlation * of_columns, chance, correlation)


def _tail(value: float, variance: float, squares: float, cubes: float) -> float:
    """Return the chance of a larger quadratic form of mean 0 whose eigenvalues have these sums of squares and cubes."""
    if variance <= 0:
        return 1.0
    z = value / np.sqrt(variance)
    if cubes <= 0:
        return float(special.ndtr(-z))
    degrees = squares**3 / cubes**2
    return float(special.chdtrc(degrees, max(degrees + z * np.sqrt(2 * degrees), 0.0)))


def dependence_advice(
    rows: CheckedRows, kind: RowKind, problem: Problem, fit: Fit, equation: Equation, target: int
) -> tuple[float, list[Advice]]:
    """Return the effective number of rows as they were given, and what to tell of rows that harm the fit.

    The number is NaN where no test can be trusted.
    """
    given = rows if rows.whitened is None else rows.whitened.original
    m, in_memory = given.Y.shape[0], not isinstance(given.X, CompressedRows)
    total = float(m if given.weight is None else given.weight.sum())
    sound = fit.status not in STATUS_ADVICE and fit.noise > NoiseRule(low_floor=True).floor(problem) * (1 + 1e-9)
    if not (in_memory and sound and m >= FEWEST_TESTED) or problem.too_many(fit.posterior.active.size):
        return np.nan, []
    harms = _harms(given, equation, target)
    effective = total / max([1.0, *(harm.inflation for harm in harms.values())])
    for of, harm in (harms if rows is given else _harms(rows, equation, target)).items():
        if harm.chance < ALARM and harm.inflation * WORTH_A_WORD > 1:
            left = effective if rows is given else total / harm.inflation
            return effective, [(_told(of, harm, kind, total, left), DependentRowsWarning)]
    return effective, []


def _harms(rows: CheckedRows, equation: Equation, target: int) -> dict[str, Harm]:
    """Return what dependence by group, where there are any, and in the order of the rows does to the first of them.

    A row that is given several times is looked at once. If rows are sorted by y, so are their errors: their order tells
    nothing.
    """
    part = slice(0, MOST_TESTED_ROWS)
    columns, kept = (_columns_of(rows, index)[part] for index in (_spread(rows.n_columns), equation.kept.support))
    y, constant = rows.Y[part, target], np.ones(columns.shape[0])
    if rows.whitened is not None:
        constant = rows.whitened.constant[part]
    errors = y - kept @ equation.coefficients - (equation.intercept or 0.0) * constant
    new = np.append(True, (np.diff(columns, axis=0) != 0).any(axis=1) | (np.diff(y) != 0))
    columns, steps = columns[:, np.ptp(columns, axis=0) > 0][new], np.diff(y)
    if columns.shape[1] == 0 or new.sum() < FEWEST_TESTED or np.ptp(errors[new]) == 0:
        return {}
    columns, errors = columns / np.abs(columns).max(axis=0), errors[new] / np.abs(errors).max()
    # Fitted to more rows than are looked at, they took less from these.
    fitted = (_basis(np.column_stack([constant, kept])) * np.sqrt(y.size / rows.Y.shape[0]))[new]
    harms = {} if rows.groups is None else {"groups": harm_by_groups(columns, errors, fitted, rows.groups[part][new])}
    if np.all(steps >= 0) or np.all(steps <= 0):
        return harms
    return harms | {"order": harm_in_order(columns, errors, fitted)}


def _spread(n_columns: int) -> Index:
    return np.unique(np.linspace(0, n_columns - 1, MOST_TESTED_COLUMNS).astype(np.intp))


def _columns_of(rows: CheckedRows, index: Index) -> Array:
    X = rows.X
    return X.take(index) if isinstance(X, Operator) else _dense(X[:MOST_TESTED_ROWS, index])


def _told(of: str, harm: Harm, kind: RowKind, total: float, effective: float) -> str:
    """Return a warning with what to do."""
    where = "rows of one group" if of == "groups" else "neighbouring rows"
    left = "" if kind == "independent" else f" after rows={kind!r} has been applied"
    do = {
        "independent": "Use rows='groups'."
        if of == "groups"
        else "If the rows are in the order of time, use rows='series'; if they come in blocks, say which with groups= "
        "and use rows='groups'.",
        "series": "Add columns for a trend or a season, if there may be one, or take fewer rows per unit of time.",
        "groups": "If the rows are in the order of time, use rows='series'.",
    }
    return (
        f"Errors of {where} are correlated ({harm.correlation:.2f}){left}, and so are the columns: {total:g} rows tell "
        f"about as much as {effective:.0f} independent ones. More false terms than asked for are kept, and intervals "
        f"are too narrow. {do[kind]} (docs/warnings/dependent_rows)"
    )
