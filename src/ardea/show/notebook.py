"""How a fitted model shows itself: in notebooks its few terms and scikit-learn's diagram, and methods that draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ardea.equation import Equation
from ardea.show import fits, motion
from ardea.show.pages import doubts_of_model, percent, render, term_rows
from ardea.show.report import write_report

# A convention: the level of intervals where nobody chose one.
LEVEL = 0.95


class ShowsTerms:
    """Shows a fitted model in notebooks as its few terms, with scikit-learn's diagram below.

    Goes before BaseEstimator, whose representation it replaces. As there, ``display="text"`` turns it off.
    """

    plot_coefficients = fits.plot_coefficients

    def _repr_html_inner(self) -> str:
        return model_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return shown | {"text/html": model_html(self)} if get_config()["display"] == "diagram" else shown


class ShowsFit(ShowsTerms):
    """Draws a regression, and writes a page about it."""

    plot_prediction = fits.plot_prediction
    plot_residuals = fits.plot_residuals
    plot_trace = fits.plot_trace

    def report(self, path: Any, X: Any = None, y: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`ardea.show.report_page`."""
        return write_report(self, path, data=None if X is None else (X, y), **details)


class ShowsMotion(ShowsTerms):
    """Draws equations of motion, and writes a page about them."""

    plot_residuals = motion.plot_equation_residuals
    plot_simulation = motion.plot_simulation
    plot_phase = motion.plot_phase
    elapsed: Callable[[Any], Any]

    def report(self, path: Any, x: Any = None, t: Any = None, u: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`ardea.show.report_page`."""
        return write_report(self, path, data=None if x is None else (x, self.elapsed(t), u), **details)


def model_html(model: Any) -> str:
    """Return a fitted estimator, search or discovery as HTML; before the fit, scikit-learn's diagram alone.

    Coefficients and intervals are those of the posterior. At most 30 terms of an equation and 12 equations are shown.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> shown = model_html(SparseARD().fit(X, 2 * X[:, 3] + 0.1 * rng.normal(size=100)))
    >>> "1 of 20 terms" in shown, "<bdi>x3</bdi>" in shown
    (True, True)
    """
    diagram = str(estimator_html_repr(model))
    try:
        check_is_fitted(model)
    except NotFittedError:
        return diagram
    equations = fits.equations_of(model)
    plain = len(equations) == 1 and equations[0].left.kind == "value"
    groups = [
        {"head": "" if plain else one.left.text, "noise": f", noise σ = {one.noise:.4g}", "rows": term_rows(one, LEVEL)}
        for one in equations
    ]
    return render(
        "notebook.html",
        method=_method(model),
        caption=_caption(model, equations),
        level=percent(LEVEL),
        groups=[group for group in groups if group["rows"] or group["head"]],
        doubts=doubts_of_model(model, equations, LEVEL),
        diagram=diagram,
    )


def _method(model: Any) -> str:
    if not hasattr(model, "path_"):
        return type(model).__name__
    path, best = model.path_, model.best_index_
    varied = f"{path['varied'][best]}={path['strength'][best]:.4g}" if path["varied"][best] else ""
    return f"{path['method'][best]}({varied}), the best of {len(path['k'])} by {model.criterion!r}"


def _caption(model: Any, equations: Sequence[Equation]) -> str:
    kept, possible = sum(len(one.terms) for one in equations), sum(one.n_candidates for one in equations)
    noise = f", noise σ = {equations[0].noise:.4g}" if len(equations) == 1 else f" in {len(equations)} equations"
    fitted = getattr(model, "best_estimator_", model)
    gap = f"; certificate {np.max(fitted.kkt_gap_):.0e} (tol {fitted.tol:.0e})" if hasattr(fitted, "kkt_gap_") else ""
    unit = f" {model.unit_told()}" if hasattr(model, "unit_told") else ""
    return f"{kept} of {possible} terms kept{noise}{gap}; {percent(LEVEL)} intervals of the posterior.{unit}"
