"""Choosing along a path: every strength of a grid on one compression, the best by a criterion.

With L the evidence cost at the model's un-inflated σ², k its number of terms, d the number of candidate columns, m the
rows, and RSS that of least squares on the support:

=============  ====================================================================================================
criterion      smallest wins
=============  ====================================================================================================
"evidence"     L + 2k + 2 ln C(d, k), the default
"aicc"         L + 2k′ + (2k′² + 2k′)/(m − k′ − 1), k′ = k + 1 (Eq. AICc, with its signs put right)
"aic"          m ln(RSS/m) + 2k
"bic"          m ln(RSS/m) + k ln m
"ebic"         m ln(RSS/m) + k ln m + 2 ln C(d, k)
"ebic2"        m ln(RSS/m) + 2(k ln m + 2 ln C(d, k))
"cv"           mean squared error over blocks of rows left out; the sparsest model within one standard error
"stability"    −Φ, Φ the stability of the support over random halves of the rows (Nogueira, Sechidis & Brown 2018)
"oracle"       terms added + terms missed, given `true_support`: for experiments
=============  ====================================================================================================

Models with k > m/4 take no part: there σ² cannot be trusted. Strengths weaker than one that keeps more than m/2 terms
are not fitted; the path repeats that model for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from ardea.core.compression import CompressedRows
from ardea.core.implicit import Operator
from ardea.core.loop import Fit
from ardea.core.problem import Array, Coordinates, Criterion, Problem, misfit, penalty
from ardea.equation import Equation
from ardea.estimators.advice import warn_caller
from ardea.estimators.base import BaseARD, predicted, threads_for
from ardea.estimators.family import SparseARD, grid_of, is_number, name_of_strength
from ardea.estimators.inputs import CheckedRows, checked_positive, checked_rows
from ardea.methods.task import Task, tasks_of
from ardea.names import counted
from ardea.show import fits
from ardea.show.answers import Answers
from ardea.show.report import ShowsFit

# Rows to fit, and rows left out.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
RSS_CRITERIA: tuple[Criterion, ...] = ("aic", "bic", "ebic", "ebic2")
EVIDENCE_CRITERIA: tuple[Criterion, ...] = ("evidence", "aicc")
CRITERIA = (*EVIDENCE_CRITERIA, *RSS_CRITERIA, "cv", "stability", "oracle")
NONE_ELIGIBLE = (
    "Every model of the path keeps more than a quarter as many terms as there are rows; the sparsest is returned. Try "
    "larger strengths, or add rows."
)


@dataclass(frozen=True)
class Candidate:
    """One model to try: an estimator with its parameters set, which of those given it is, and what is varied in it."""

    model: BaseARD
    number: int
    varied: str
    parameters: dict[str, Any]

    @property
    def strength(self) -> float:
        """The value of what is varied, where that is one number."""
        value: Any = self.parameters.get(self.varied)
        return float(value) if is_number(value) else np.nan

    def follows(self, other: Candidate | None) -> bool:
        """Whether this is the next weaker model: only the strength differs from the one before."""
        if other is None or other.number != self.number or np.isnan([self.strength, other.strength]).any():
            return False
        return all(value is other.parameters[name] for name, value in self.parameters.items() if name != self.varied)


@dataclass(frozen=True)
class Entry:
    """One model of the path, fitted."""

    candidate: Candidate
    fit: Fit
    problem: Problem
    coordinates: Coordinates
    rows: CheckedRows

    @property
    def support(self) -> NDArray[np.bool_]:
        """Which penalised columns are kept."""
        return self.fit.gamma > 0

    @property
    def equation(self) -> Equation:
        """The model in the user's units."""
        return self.candidate.model._equations([self.problem], self.coordinates, [self.fit])[0]


class Path(dict[str, Any]):
    """The path as a dict of arrays of equal length; `to_frame()` for pandas."""

    @property
    def best(self) -> int:
        """Place of the model with the least score among those that take part; where none does, of the sparsest."""
        score = np.where(self["eligible"], self["score"], np.inf) if self["eligible"].any() else self["k"]
        return int(np.argmin(score))

    def to_frame(self) -> Any:
        """Return the columns with one number for every model as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame({name: values for name, values in self.items() if values.ndim == 1})


@dataclass(eq=False, repr=False)
class ARDSearch(ShowsFit, Answers, RegressorMixin, BaseEstimator):
    """Fit an estimator with several strengths and choose the best model by a criterion.

    The rows are compressed once for all fits, and the thresholding methods and ARDr share their first fit.

    Parameters
    ----------
    estimator : estimator of ardea, or a list of them, optional
        What to fit; SparseARD() by default. A list chooses between methods as well.
    strengths : array-like, dict, or a list of these, optional
        Values of the estimator's strength (`alpha`, `lam`, `tau` or `false_terms`), or a dict of parameters to values,
        all combinations of which are tried (``{"lam": [...], "eta": [...]}``, ``{"prior": [Log(1.0), Tanh(2.0)]}``).
        With several estimators, one entry for each. None: 15 strengths from plain ARD to 0.001 expected false terms.
    criterion : str, default="evidence"
        One of "evidence", "aicc", "aic", "bic", "ebic", "ebic2", "cv", "stability", "oracle".
    true_support : boolean array of shape (n_features,), optional
        The truth, for "oracle".
    cv : int, cross-validation splitter or iterable of (train, test) rows, default=5
        Number of blocks of rows for "cv", whole groups if `groups` are given, or how to split them.
    n_resamples : int, default=20
        Number of halves for "stability".
    n_jobs : int, optional
        Parallel jobs (joblib) over blocks or halves.
    random_state : int, RandomState or None
        Seed of the halves.
    verbose : int, default=0
        1 shows progress, with the time left, on standard error.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model, fitted.
    best_strength_ : float
        Its strength (`alpha`, `lam`, `tau`, or `false_terms` of a default grid); nan for an estimator without one.
    best_params_ : dict
        What was varied to get it: ``cv_results_["params"][best_index_]``.
    best_index_ : int
        Its place in `path_`.
    coef_ : ndarray of shape (n_features,)
        The coefficients of the chosen model.
    intercept_ : float
        Its constant.
    equations_ : list of Equation
        Its equations.
    warnings_ : list of str
        Its warnings.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    path_ : Path
        Dict of arrays: method, what is varied, strength, k, cost, log_evidence, every cheap criterion, the one
        used ("score"), whether the model took part ("eligible"), and, two-dimensional, support, coef and the mean
        squared error on every block left out ("split_error"; no blocks unless the criterion is "cv"). `to_frame()`.
    cv_results_ : dict
        The same in the words of scikit-learn's searches, model by model: "params", "param_…" for every parameter
        varied, "mean_test_score" and "rank_test_score". Scores are negated, so that the largest is the best: the
        criterion, or for "cv" the mean squared error, then also "std_test_score" and "split0_test_score", …. Models
        that take no part have the last rank. For "cv" the chosen model need not have rank 1: it is the sparsest within
        one standard error of it. There are no times, for the models of a path share their work.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDSearch, ARDvi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 40))
    >>> y = X[:, 3] - 2 * X[:, 8] + 0.5 * rng.normal(size=100)
    >>> search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(X, y)
    >>> np.flatnonzero(search.best_estimator_.support_)
    array([3, 8])
    """

    estimator: Any = None
    strengths: Any = None
    criterion: str = "evidence"
    true_support: ArrayLike | None = None
    _: KW_ONLY
    cv: Any = 5
    n_resamples: int = 20
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> ARDSearch:
        """Fit the whole path and choose.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for the estimators; one target. A splitter `cv` gets the groups.

        Returns
        -------
        self
        """
        models = self._checked_models()
        rows = self._checked_rows(X, y, sample_weight, groups)
        truth = self._checked_truth(rows.n_columns)
        splits = self._splits(rows, groups) if self.criterion == "cv" else []
        candidates = self._candidates(models, rows.n_columns)
        for candidate in candidates:
            candidate.model._like(self, rows)
        told: list[str] = []
        with threads_for(rows.operations):
            steps = _path(candidates, _independent(candidates, rows))
            entries = list(self._shown(steps, "path", " models", len(candidates)))
            known = [_row(entry) for entry in entries]
            table = {name: np.array([row[name] for row in known]) for name in known[0]}
            path = Path(table, **self._scored(table, entries, rows, splits, truth, told))
        if not path["eligible"].any():
            told.append(NONE_ELIGIBLE)
        entry = entries[path.best]
        entry.candidate.model._adopt(entry.rows, [entry.problem], entry.coordinates, [entry.fit])
        self._set_attributes(path, [candidate.parameters for candidate in candidates], entry.candidate.model, told)
        for text in told:
            warn_caller(text, UserWarning)
        return self

    def _checked_models(self) -> list[BaseARD]:
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion={self.criterion!r} is not known: choose one of {', '.join(CRITERIA)}.")
        checked_positive("n_resamples", self.n_resamples, whole=True)
        if isinstance(self.cv, Integral) and self.cv < 2:
            raise ValueError(f"cv={self.cv} blocks of rows cannot leave one out: give 2 or more.")
        given = SparseARD() if self.estimator is None else self.estimator
        models = given if isinstance(given, list | tuple) else [given]
        if not models or not all(isinstance(model, BaseARD) for model in models):
            raise ValueError("estimator must be one of ardea's estimators, such as SparseARD(), or a list of them.")
        models = [clone(model) for model in models]
        for model in models:
            model._check_parameters()
        return models

    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> CheckedRows:
        rows = checked_rows(self, X, y, sample_weight, groups, first=True)
        if rows.Y.shape[1] != 1:
            raise ValueError("ARDSearch takes one target: fit one search per column of y.")
        if not rows.one_target:
            column_or_1d(rows.Y, warn=True)
        if self.criterion in ("cv", "stability") and isinstance(rows.X, CompressedRows | Operator):
            raise ValueError(
                f"criterion={self.criterion!r} needs rows in memory, which an Operator, and rows that were compressed "
                "where they lie, do not have. Use 'evidence', or a sample of the rows."
            )
        return rows

    def _checked_truth(self, n_columns: int) -> NDArray[np.bool_] | None:
        if self.criterion != "oracle":
            return None
        truth = np.asarray(self.true_support)
        if truth.dtype != bool or truth.shape != (n_columns,):
            raise ValueError(f"criterion='oracle' needs true_support, a boolean array of length {n_columns}.")
        return truth

    def _candidates(self, models: list[BaseARD], n_columns: int) -> list[Candidate]:
        """Return every model of the grid, strongest first within a method."""
        several = isinstance(self.estimator, list | tuple)
        grids = self.strengths if several and self.strengths is not None else [self.strengths] * len(models)
        if len(grids) != len(models):
            raise ValueError(
                f"strengths has {counted(len(grids), 'entry', 'entries')} for {counted(len(models), 'estimator')}: "
                "give one for each."
            )
        candidates = []
        for number, (model, grid) in enumerate(zip(models, grids, strict=True)):
            for parameters in grid_of(model, grid, n_columns):
                one = replace(model, **parameters)
                one._check_parameters()
                candidates.append(Candidate(one, number, name_of_strength(model, parameters), parameters))
        return candidates

    def _scored(
        self,
        table: dict[str, Any],
        entries: list[Entry],
        rows: CheckedRows,
        splits: list[Split],
        truth: NDArray[np.bool_] | None,
        told: list[str],
    ) -> dict[str, Any]:
        """Return the criterion of every model and which of them take part."""
        eligible = np.array([not entry.problem.too_many(k) for entry, k in zip(entries, table["k"], strict=True)])
        if self.criterion in RSS_CRITERIA and entries[0].problem.wide:
            told.append(
                f"criterion={self.criterion!r} rests on the residual sum of squares, which fails where columns "
                "outnumber rows: it keeps far too many terms. Use 'evidence'."
            )
        errors = np.empty((len(entries), 0))
        if truth is not None:
            score, eligible = (table["support"] != truth).sum(axis=1).astype(float), np.ones_like(eligible)
        elif self.criterion == "cv":
            errors = self._split_errors(entries, rows, splits)
            score = _one_standard_error(errors, table["k"], eligible)
        else:
            score = -self._stability(entries, rows) if self.criterion == "stability" else table[self.criterion]
        return {"score": score, "eligible": eligible, "split_error": errors}

    def _set_attributes(self, path: Path, params: list[dict[str, Any]], best: BaseARD, told: list[str]) -> None:
        """Set the fitted attributes, given the path, what was varied, the best model (fitted) and what was told."""
        self.path_, self.best_index_, self.best_estimator_, self._one_target = path, path.best, best, True
        self.best_strength_ = float(path["strength"][path.best])
        self.best_params_, self.cv_results_ = params[path.best], _results(path, params)
        self.coef_, self.intercept_ = best.coef_, best.intercept_
        self.equations_, self.warnings_ = best.equations_, [*told, *best.warnings_]

    def _shown(self, steps: Iterable[Any], title: str, unit: str, total: int) -> Iterable[Any]:
        """Show a bar with the time left while something is gone through, where that is asked for."""
        from tqdm import tqdm

        return tqdm(steps, desc=title, unit=unit, total=total, disable=not self.verbose)

    def _resampled(self, entries: list[Entry], subsets: list[NDArray[np.intp]]) -> Any:
        """Run the path on every subset of the rows, made independent as a whole."""
        candidates = [entry.candidate for entry in entries]

        def run(subset: NDArray[np.intp]) -> list[Entry]:
            parts = {
                id(rows): rows.subset(subset) for rows in {id(entry.rows): entry.rows for entry in entries}.values()
            }
            return list(_path(candidates, [parts[id(entry.rows)] for entry in entries]))

        jobs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        paths = jobs(delayed(run)(subset) for subset in subsets)
        return list(self._shown(paths, self.criterion, " paths", len(subsets)))

    def _split_errors(self, entries: list[Entry], rows: CheckedRows, splits: list[Split]) -> Array:
        """Return the mean squared error of every model on every block of rows left out."""
        paths = self._resampled(entries, [train for train, _ in splits])
        pairs = zip(paths, splits, strict=True)
        return np.array([[_error(entry.equation, rows, out) for entry in path] for path, (_, out) in pairs]).T

    def _splits(self, rows: CheckedRows, groups: Any) -> list[Split]:
        """Return the rows to fit and those left out: blocks of the rows that count, or what a splitter says of all."""
        from sklearn.model_selection import GroupKFold, check_cv  # half of the time to load this file

        number = 1 if rows.groups is None else np.unique(rows.groups).size
        if isinstance(self.cv, Integral) and number > 1:  # rows of one group are not parted
            return list(GroupKFold(min(int(self.cv), number)).split(rows.X, rows.Y[:, 0], rows.groups))
        if rows.used is None or isinstance(self.cv, Integral):
            return list(check_cv(self.cv).split(rows.X, rows.Y[:, 0], rows.groups))
        places = np.cumsum(rows.used) - 1
        splits = check_cv(self.cv).split(np.empty((rows.used.size, 1)), groups=groups)
        return [tuple(places[part[rows.used[part]]] for part in split) for split in splits]

    def _stability(self, entries: list[Entry], rows: CheckedRows) -> Array:
        """Return Φ of every strength: 1 for the same support on every half of the rows, 0 for chance."""
        m = rows.X.shape[0]
        if m < 2:
            raise ValueError(
                f"criterion='stability' fits halves of the rows, and n_samples={m}. Give more rows, or use 'evidence'."
            )
        generator = check_random_state(self.random_state)
        halves = [np.sort(generator.permutation(m)[: m // 2]) for _ in range(self.n_resamples)]
        paths = self._resampled(entries, halves)
        chosen = np.array([[entry.support for entry in path] for path in paths], dtype=float)
        frequency, size, d = chosen.mean(axis=0), chosen.sum(axis=2).mean(axis=0), chosen.shape[2]
        repeats = len(paths)
        variance = repeats / max(repeats - 1, 1) * (frequency * (1 - frequency)).mean(axis=1)
        chance = size / d * (1 - size / d)
        return np.where(chance > 0, 1 - variance / np.where(chance > 0, chance, 1.0), 0.0)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict with the chosen model; see its `predict`."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, return_std=return_std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    plot_path = fits.plot_path
    plot_path_coefficients = fits.plot_path_coefficients


def _independent(candidates: Sequence[Candidate], rows: CheckedRows) -> list[CheckedRows]:
    """Return the rows that each candidate is fitted to; those whose parameters say the same of them share theirs."""
    made: dict[Any, CheckedRows] = {}
    keys = []
    for model in (candidate.model for candidate in candidates):
        keep, _ = model._checked(rows.n_columns)
        own = (model.rows, model.fit_intercept, *keep, *model._limits)
        keys.append(model.rows if model.rows == "independent" else own)
        if keys[-1] not in made:
            made[keys[-1]] = model._independent(rows, keep)
    return [made[key] for key in keys]


def _path(candidates: Sequence[Candidate], each: Sequence[CheckedRows]) -> Iterator[Entry]:
    """Fit every candidate to its rows: one compression per choice of flat columns, one task per method and limits."""
    posed: dict[Any, tuple[list[Problem], Coordinates]] = {}
    tasks: dict[Any, Task] = {}
    before: Candidate | None = None
    near: Fit | None = None
    for candidate, rows in zip(candidates, each, strict=True):
        model = candidate.model
        keep, wish = model._checked(rows.n_columns)
        flat = (bool(model.fit_intercept), tuple(keep), id(rows))
        if flat not in posed:
            posed[flat] = rows.pose(intercept=flat[0], keep=keep)
        (problem,), coordinates = posed[flat]
        shared = (candidate.number, flat, model._limits, model.start)
        if shared not in tasks:
            (tasks[shared],) = tasks_of([problem], coordinates, model._limits, model.start)
        if not candidate.follows(before):
            near = None
        # Beyond a collapse weaker strengths keep more terms still; none of them takes part, so none is fitted.
        if near is None or not problem.too_many(near.posterior.active.size, plain=True):
            near = model.method.solve(tasks[shared], wish, near)
        before = candidate
        yield Entry(candidate, near, problem, coordinates, rows)


def _one_standard_error(errors: Array, k: Array, eligible: NDArray[np.bool_]) -> Array:
    """Return the score of the one-standard-error rule: k for models within it, the error beyond."""
    mean, n_splits = errors.mean(axis=1), errors.shape[1]
    spread = errors.std(axis=1, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.zeros_like(mean)
    best = int(np.argmin(np.where(eligible, mean, np.inf)))
    within = eligible & (mean <= mean[best] + spread[best])
    # Within one standard error the sparsest wins; the rest are ranked behind all of them by their error.
    return np.where(within, k - k.max() - 1.0, mean / mean[best])


def _results(path: Path, params: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a path in the words of scikit-learn's searches."""
    results: dict[str, Any] = {"params": params}
    for name in sorted({name for one in params for name in one}):
        column = np.ma.masked_all(len(params), dtype=object)
        for i, one in enumerate(params):
            if name in one:
                column[i] = one[name]
        results[f"param_{name}"] = column
    scores, loss = -path["split_error"], path["score"]
    if scores.shape[1]:
        results |= {f"split{i}_test_score": column for i, column in enumerate(scores.T)}
        results["std_test_score"], loss = scores.std(axis=1), -scores.mean(axis=1)
    behind = np.where(path["eligible"], loss, np.inf) if path["eligible"].any() else loss
    rank = (1 + np.searchsorted(np.sort(behind), behind)).astype(np.int32)
    return results | {"mean_test_score": -loss, "rank_test_score": rank}


def _row(entry: Entry) -> dict[str, Any]:
    """Return what is known of a model, with every criterion that costs nothing."""
    problem, active, equation = entry.problem, entry.fit.posterior.active, entry.equation
    k, m, d = active.size, problem.n_rows, problem.n_candidates
    scale = 2 * np.log(entry.coordinates.targets[0])
    unit = m * scale + entry.coordinates.log_volume
    cost = entry.fit.posterior.cost + unit
    unexplained = misfit(problem.least_squares(active)[1], m, problem.floor) + unit
    return {
        "method": type(entry.candidate.model).__name__,
        "varied": entry.candidate.varied,
        "strength": entry.candidate.strength,
        "k": k,
        "cost": cost,
        "log_evidence": -0.5 * (m * np.log(2 * np.pi) + cost),
        "noise_variance": entry.fit.noise * np.exp(scale),
        **{name: cost + penalty(name, m, d, k) for name in EVIDENCE_CRITERIA},
        **{name: unexplained + penalty(name, m, d, k) for name in RSS_CRITERIA},
        "support": entry.support,
        "coef": equation.spread(equation.coefficients),
    }


def _error(equation: Equation, rows: CheckedRows, chosen: NDArray[np.intp]) -> float:
    """Return the mean squared error on some rows."""
    square = (rows.Y[chosen, 0] - predicted([equation], True, rows.X[chosen])) ** 2
    return float(square.mean() if rows.weight is None else np.average(square, weights=rows.weight[chosen]))
