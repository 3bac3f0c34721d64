"""What a fitted model answers: intervals, tables, formulas and draws of a regression; doubts in plain sentences."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.equation import CLOSE, WEAK, Equation, IntervalKind, KeptTerms, python_function
from ardea.names import counted, printable, rounded, sized
from ardea.rates import NO_PRUNING_RATE
from ardea.show.fits import autocorrelation

if TYPE_CHECKING:
    import pandas as pd

# How intervals are called.
INTERVALS: dict[IntervalKind, str] = {
    "posterior": "posterior intervals",
    "refit": "intervals of least squares on the kept terms",
    "selective": "intervals of least squares that allow for the choice of the terms",
}
OFTEN_SMALLER = "such terms are kept where chance made them large, and are often smaller than shown"
SMALLER = f"{OFTEN_SMALLER[0].upper()}{OFTEN_SMALLER[1:]}."
# A convention: estimates whose errors correlate this much share all but a tenth of their variance.
NEARLY_SAME = 0.95
# A convention: a Gaussian lies further out once in two million rows.
FAR_OUT = 5.0
# Derived: a standard normal exceeds it, up or down, once in a thousand.
RARE = 3.3
# Derived: with fewer rows the standard error of a correlation is above 0.2, and tests of shape mean nothing.
FEWEST_ROWS = 20
# Derived: 95 % of a Gaussian; of so many rows of a sound model most lie outside it once in a thousand times.
TWO_SIDED, FEWEST_TO_FAIL = 1.96, 5
# A convention: lists longer than this are cut.
MOST_NAMED = 5


def beyond_ceiling(model: Any) -> str:
    """Return a sentence where more false terms were asked for than a calibrated strength can let through, else "".

    No method keeps a column with |t| < 1, so that each of those that explain nothing is kept with probability .317 at
    most (`rates.rate_for`).
    """
    equation, asked = model.equations_[0], getattr(model, "false_terms", None)
    if asked is None or (equation.kept.rate or 0.0) < NO_PRUNING_RATE:
        return ""
    columns = equation.n_candidates - equation.kept.flat.kept.size
    return (
        f"false_terms = {asked:g} is out of reach: no column with |t| < 1 is ever kept, so that if none of the "
        f"{columns} columns mattered, {NO_PRUNING_RATE * columns:.2g} of them would be kept on average"
    )


def to_arviz(equations: Sequence[Equation], n_draws: int = 1000, random_state: Any = None) -> Any:
    """Return draws from the posterior as ArviZ's InferenceData (a DataTree from ArviZ 1.0 on).

    The group `posterior` has one chain of independent draws: `coef` of the kept terms (dimension `term`), equal to
    ``model.sample(n_draws, random_state)``, and `intercept` given them where there is one. γ and σ² are fixed at their
    estimates, so they are not drawn; σ² is the attribute `noise_variance`. With several equations there is a dimension
    `target`, and a term dropped for one of them is zero there.

    Parameters
    ----------
    equations : sequence of Equation
        Those of one fitted estimator, `equations_`.
    n_draws : int, default=1000
        Number of draws.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 10))
    >>> model = SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=200))
    >>> draws = model.to_arviz(n_draws=100, random_state=0).posterior
    >>> dict(draws["coef"].sizes), draws["term"].values.tolist()
    ({'chain': 1, 'draw': 100, 'term': 1}, ['x3'])
    """
    generator = check_random_state(random_state)
    several = len(equations) > 1
    drawn = [one.spread(one.posterior.sample(n_draws, generator).T).T for one in equations]
    kept = sorted({j for one in equations for j in one.support})
    targets = ["target"] if several else []
    variables, dims = {"coef": _by_draw([draws[:, kept] for draws in drawn])}, {"coef": [*targets, "term"]}
    if equations[0].intercept is not None:
        pairs = zip(equations, drawn, strict=True)
        variables["intercept"] = _by_draw([_intercepts(one.kept, draws, generator) for one, draws in pairs])
        dims["intercept"] = targets
    names = equations[0].vocabulary.names
    coords = {"term": [names[j] for j in kept], **({"target": [one.name for one in equations]} if several else {})}
    data = _for_arviz(variables, coords=coords, dims=dims)
    noise = np.array([one.posterior.noise_variance for one in equations])
    data["posterior"].attrs["noise_variance"] = noise if several else float(noise[0])
    return data


def _for_arviz(variables: dict[str, Array], **axes: Any) -> Any:
    """Return draws in ArviZ's form, whichever version is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that ArviZ itself is going to change
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install 'ardea[arviz]'.") from error
    old = "InferenceData" in vars(arviz)  # asking for the attribute makes ArviZ 1 warn
    return arviz.from_dict(posterior=variables, **axes) if old else arviz.from_dict({"posterior": variables}, **axes)


def _by_draw(values: Sequence[Array]) -> Array:
    """Return one array (draws, …) for each target as (1 chain, draws, [targets,] …)."""
    moved = np.stack(values, axis=1)[None]
    return moved if len(values) > 1 else moved[:, :, 0]


def _intercepts(kept: KeptTerms, draws: Array, generator: np.random.RandomState) -> Array:
    """Draw the intercept given draws of all coefficients (n, d).

    The flat coefficients β = (b, β_k), the intercept first, are N(h − Hξ, σ²G) given ξ, G = (FᵀF)⁻¹. Given β_k too,

        b ~ N(h_b − H_bξ + w(β_k − h_k + H_kξ), σ²(G_bb − wG_kb)),    w = G_bk G_kk⁻¹.
    """
    gram, centre = kept.flat.inverse_gram, kept.flat_mean(draws[:, kept.active])
    weights = gram[0, 1:] @ np.linalg.pinv(gram[1:, 1:])
    mean = centre[:, 0] + (draws[:, kept.flat.kept] - centre[:, 1:]) @ weights
    variance = kept.posterior.noise_variance * max(float(gram[0, 0] - weights @ gram[1:, 0]), 0.0)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal(len(draws)))


@dataclass(frozen=True)
class Summary:
    """The kept terms as a table: prints as text, `to_frame()` for pandas.

    `columns` has one list for every column of the table, `caption` says a line on the whole fit.
    """

    columns: dict[str, list[Any]]
    caption: str

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        frame = self._shown()
        if frame.empty:
            return self.caption
        for title in {"target", "term"} & set(self.columns):
            width = max(len(title), frame[title].str.len().max())
            frame[title] = frame[title].str.ljust(width)
            frame = frame.rename(columns={title: title.ljust(width)})
        return "\n\n".join([*filter(None, [self.caption]), frame.to_string(index=False)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table for notebooks; both classes keep MathJax away from dollar signs in names."""
        table = self._shown().to_html(index=False, border=0, max_rows=30)
        return f'<div class="tex2jax_ignore mathjax_ignore"><p>{escape(printable(self.caption))}</p>{table}</div>'

    def _shown(self) -> pd.DataFrame:
        """Return the table as text: numbers to two digits of their errors, names that cannot disturb a terminal."""
        errors = self.columns["std"]
        texts = {
            title: [
                printable(cell) if isinstance(cell, str) else rounded(cell, errors[i]) for i, cell in enumerate(column)
            ]
            for title, column in self.columns.items()
        }
        return Summary(texts, "").to_frame()


class Answers:
    """What can be asked of a fitted estimator; all of it follows from its equations."""

    equations_: Any
    n_features_in_: int
    _one_target: bool

    def _stacked(self, values: list[Any]) -> Any:
        """Return the value of the one target, or those of all."""
        return values[0] if self._one_target else np.array(values)

    def credible_interval(self, level: float = 0.95, kind: IntervalKind = "posterior") -> Array:
        """Return lower and upper ends of every coefficient's interval, zeros for dropped terms.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside.
        kind : {"posterior", "refit", "selective"}, default="posterior"
            "posterior": the ARD posterior, shrunk towards zero; it covers less than `level` for coefficients of less
            than three standard errors, which are kept only where chance made them larger. "refit": least squares on the
            kept columns (a flat prior). "selective": least squares that allows for the choice, and covers those, too;
            of a term that was just kept it is wide. For methods whose strength is calibrated (`false_terms`).

        Returns
        -------
        ndarray of shape (n_features, 2), or (n_targets, n_features, 2)
        """
        check_is_fitted(self)
        _check_interval(level, kind)
        return np.asarray(self._stacked([one.spread(one.interval(level, kind)) for one in self.equations_]))

    def summary(
        self, level: float = 0.95, kind: IntervalKind = "posterior", names: Sequence[str] | None = None
    ) -> Summary:
        """Return the kept terms with their intervals as a table that prints.

        Parameters
        ----------
        level, kind
            As for `credible_interval`.
        names : sequence of str, optional
            Names of all columns of X, where X had none or others should be shown. In a pipeline the steps before know
            them: ``pipeline[-1].summary(names=pipeline[:-1].get_feature_names_out())``.
        """
        check_is_fitted(self)
        _check_interval(level, kind)
        equations = self.equations_ if names is None else [one.with_names(names) for one in self.equations_]
        parts = [equation.table(level, kind) for equation in equations]
        table = {title: [cell for part in parts for cell in part[title]] for title in parts[0]}
        if not self._one_target:
            lefts = [one.name for one in self.equations_ for _ in one.support]
            table = {"target": lefts} | table
        kept = sum(len(one.support) for one in self.equations_)
        sigma = ", ".join(sized(one.noise) for one in self.equations_[:5])
        count = f"{kept} of {len(self.equations_) * self.n_features_in_} terms kept"
        said = f"{type(self).__name__}: {count}, noise σ = {sigma}; {INTERVALS[kind]}"
        return Summary(table, ".\n".join(filter(None, [said, self._weak(kind), beyond_ceiling(self)])))

    def _weak(self, kind: IntervalKind) -> str:
        """Return what is to be said of terms so weak that only chance made them large enough to be kept."""
        weak = sum(len(one.weak_terms) for one in self.equations_)
        if not weak or kind == "selective":
            return ""
        return f"|t| < {WEAK:g} in {weak} of them: {OFTEN_SMALLER} (kind='selective' allows for that)"

    def to_arviz(self, n_draws: int = 1000, random_state: Any = None) -> Any:
        """Return posterior draws for ArviZ; see :func:`ardea.show.answers.to_arviz`."""
        check_is_fitted(self)
        return to_arviz(self.equations_, n_draws, random_state)

    def to_sympy(self) -> Any:
        """Return the prediction as a SymPy expression of the kept columns; a list of them for several targets.

        Symbols are named by the columns. Coefficients keep all digits. Needs the extra `symbolic`.
        """
        check_is_fitted(self)
        expressions = [one.sympy() for one in self.equations_]
        return expressions[0] if self._one_target else expressions

    def to_python(self, name: str = "predict") -> str:
        """Return the source of a plain function of the kept columns; see :func:`ardea.equation.python_function`."""
        check_is_fitted(self)
        return python_function(self.equations_, name)


def _check_interval(level: Any, kind: Any) -> None:
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    if kind not in INTERVALS:
        raise ValueError(f"kind={kind!r} is not known: choose 'posterior', 'refit' or 'selective'.")


# Doubts


def doubts_of_model(model: Any, equations: Sequence[Equation], level: float, notes: Sequence[str] = ()) -> list[str]:
    """Return what the fit warned of, each warning once, then doubts that the numbers give reason for."""
    told = unique([*notes, *getattr(model, "warnings_", ())])
    for equation in equations:
        # A warning about the choice between two models names the equation.
        settled = not any(equation.left.text in note for note in told)
        told += doubts_of_equation(equation, level, with_rivals=settled)
    return told


def doubts_of_equation(equation: Equation, level: float, *, with_rivals: bool = True) -> list[str]:
    """Return doubts that the numbers of an equation give reason for."""
    left = equation.left.text
    if not equation.terms:
        return [f"No candidate term explains {left}."]
    told = []
    low, high = equation.interval(level).T
    unsure = [name for name, sure in zip(equation.terms, (low > 0) | (high < 0), strict=True) if not sure]
    if unsure:
        told.append(f"Zero lies inside the interval of {first_of(unsure)}: the data do not tell the sign.")
    if equation.weak_terms and equation.left.kind == "value":
        told.append(f"Fewer than {WEAK:g} standard deviations from zero: {first_of(equation.weak_terms)}. {SMALLER}")
    told += [
        f"The estimates of {first} and {second} depend strongly on each other: their sum is known better than either, "
        "and another sample of the data might keep only one of them."
        for first, second in _entangled(equation)
    ]
    rivals = equation.close_rivals() if with_rivals else []
    if rivals:
        told.append(
            f"Another model of {left} fits about as well: {rivals[0].compared}. A difference of {CLOSE:g} or more "
            "would be clear; longer or cleaner data would decide."
        )
    return told


def _entangled(equation: Equation) -> list[tuple[str, str]]:
    """Return pairs of columns whose estimates can hardly be told apart; terms of motion correlate anyway."""
    if equation.left.kind != "value":
        return []
    deviation = np.where(equation.std > 0, equation.std, np.inf)
    correlation = np.abs(equation.covariance / np.outer(deviation, deviation))
    pairs = np.argwhere(np.triu(correlation > NEARLY_SAME, 1))
    return [(equation.terms[a], equation.terms[b]) for a, b in pairs[:MOST_NAMED]]


def doubts_of_residuals(residual: Array, left: str) -> list[str]:
    """Return doubts that residuals, in units of their standard deviation and in row order, give reason for."""
    m, told = residual.size, far_rows(residual, left)
    if m < FEWEST_ROWS:
        return told
    lagged = autocorrelation(residual, 1)
    if abs(lagged) > RARE / np.sqrt(m):
        told.append(
            f"Neighbouring rows of {left} depend on each other: residuals one row apart correlate by {lagged:.2f}. A "
            "term may be missing, and intervals, which assume independent rows, are too "
            f"{'narrow' if lagged > 0 else 'wide'}."
        )
    skew, tails = float(stats.skew(residual)), float(stats.kurtosis(residual))
    if abs(skew) > RARE * np.sqrt(6 / m) or abs(tails) > RARE * np.sqrt(24 / m):
        told.append(
            f"The noise of {left} is not Gaussian. The choice of terms is little affected; predictions may lie outside "
            "their band more or less often than it says."
        )
    return told


def contradicted(residual: Array, left: str) -> list[str]:
    """Return that a model does not hold, where most residuals, in units of their deviation, lie outside 95 % bands."""
    inside = float(np.mean(np.abs(residual) < TWO_SIDED)) if residual.size >= FEWEST_TO_FAIL else 1.0
    if inside > 0.5:
        return []
    return [
        f"The model of {left} does not hold for these rows: {100 * inside:.0f} % of them lie inside its 95 % band. Are "
        "they of the same kind, in the same units, as those of the fit?"
    ]


def far_rows(residual: Array, left: str) -> list[str]:
    """Return how many residuals, in units of their standard deviation, are too large to be noise."""
    far = int(np.sum(np.abs(residual) > FAR_OUT))
    rows = counted(far, "row lies", "rows lie")
    off = f"{rows} more than {FAR_OUT:g} standard deviations from the model of {left}"
    return [f"{off}: look for wrong entries or rare events."] if far else []


def first_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names in a row, the first few and how many more.

    Examples
    --------
    >>> first_of(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def unique(messages: Iterable[str]) -> list[str]:
    """Return every message once, on one line."""
    return list(dict.fromkeys(" ".join(message.split()) for message in messages))
