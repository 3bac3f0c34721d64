"""What makes an estimator of a declaration, and the parameters and fitted attributes that all pages name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

PARAMETERS = """\
noise_variance : float, optional
    The variance σ² of the noise, if you know it. By default it is learned from the data.
fit_intercept : bool, default=True
    Whether the model has a constant. It has a flat prior and is integrated out, so it is never shrunk.
always_keep : list of int or str, or boolean mask, optional
    Columns that you know to belong to the model. They have a flat prior and are never dropped.
max_iter : int, default=500
    The largest number of steps of the outer loop. Methods that refit run it several times. Reaching it gives a warning.
tol : float, default=1e-6
    A fit has converged when `kkt_gap_` is below this number.
start : {"safe", "paper"}, default="safe"
    "paper" runs the algorithm of the paper and nothing else. "safe" also checks the result and tries again where the
    data show that the algorithm has failed: from least squares where an F test against all columns rejects the fit, and
    from fewer columns or with a larger noise where the model nearly interpolates (docs/methods, "Two starts").
rows : {"independent", "series", "groups", "unequal"}, default="independent"
    What the errors of the rows are like. "independent": independent and of equal size. "series": the rows are in the
    order of time, and each error depends on those before it (an autoregression, which is learned); `groups` of `fit`
    separates several series. "groups": rows with the same label in `groups` share a part of their error. "unequal": the
    errors are independent but not of equal size; how their size depends on the columns is learned, and very large
    errors count less (docs/dependent_rows). A fit to rows in memory warns when its residuals contradict this choice.
verbose : int, default=0
    1 prints a line for every fit, and on standard error where it stands if it takes longer than five seconds.
"""

ATTRIBUTES = """\
coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    The coefficients (posterior means); exactly zero for dropped columns. In single precision if X is, and so are
    `intercept_` and `coef_std_`.
intercept_ : float or ndarray of shape (n_targets,)
    The constant (posterior mean).
support_ : boolean ndarray of the shape of coef_
    Which columns are kept.
coef_std_ : ndarray of the shape of coef_
    Posterior standard deviations of the coefficients.
covariance_ : ndarray of shape (k, k), or a list of them
    Posterior covariance of the k kept coefficients.
noise_variance_ : float or ndarray of shape (n_targets,)
    The variance σ² of the noise, learned or given. With ``rows="unequal"`` it is the mean over the rows, where very
    large errors count less.
prior_variance_ : ndarray of the shape of coef_
    The prior variances γ: zero for dropped columns, infinite for `always_keep`.
equations_ : list of Equation
    The fitted model, one equation for every target: formula, intervals, table(), latex(), sympy(), python().
log_evidence_ : float or ndarray of shape (n_targets,)
    The logarithm of the evidence, −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y), at the γ and σ² found. The number m of rows is
    reduced by one for the intercept and by one for every independent column in `always_keep`.
kkt_gap_ : float or ndarray of shape (n_targets,)
    How far the fit is from satisfying its optimality conditions, q² = M for kept columns and q² ≤ M for the others:
    the largest relative violation, over the columns that no threshold has removed.
n_iter_ : int or ndarray of shape (n_targets,)
    Number of steps of the outer loop.
trace_ : Trace, or a list of them
    Cost, noise variance and number of terms at every step, and the columns that a threshold has dropped.
effective_rows_ : float or ndarray of shape (n_targets,)
    How many independent rows would carry as much information about a column as these rows do, on average over the
    columns. NaN where this is unknown: streams, compressed rows, fewer than 20 rows, or a model that nearly
    interpolates.
error_correlation_ : ndarray
    How the errors of the rows are correlated: the coefficients of the autoregression for ``rows="series"``, the
    correlation within groups for "groups". Empty where the errors are independent, and for "unequal".
warnings_ : list of str
    The warnings of the fit.
n_features_in_ : int
    Number of columns of X.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the columns, if X had names.
"""

FALSE_TERMS = """\
false_terms : float, default=1.0
    How many irrelevant columns may be kept on average; used with "calibrated".
"""

Class = TypeVar("Class", bound=type)


@dataclass_transform()
def estimator(declared: Class) -> Class:
    """Make a declared estimator a dataclass, and complete its docstring by what it shares with others."""
    dataclass(eq=False, repr=False)(declared)  # in place
    if declared.__doc__ is None:  # python -OO
        return declared
    text, _, examples = inspect.cleandoc(declared.__doc__).partition("\n\nExamples\n--------\n")
    if "\nParameters\n" not in text:
        text += "\n\nParameters\n----------"
    parameters = FALSE_TERMS * ('or "calibrated"' in text) + PARAMETERS
    sections = [f"{text}\n{parameters}", f"Attributes\n----------\n{ATTRIBUTES}", f"Examples\n--------\n{examples}"]
    declared.__doc__ = "\n".join(sections)
    return declared
