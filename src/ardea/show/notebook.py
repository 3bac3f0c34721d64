"""How a fitted model shows itself: in notebooks its few terms and scikit-learn's diagram, and methods that draw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

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
    plot_states = motion.plot_states
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
    return render(
        "notebook.html",
        model=model,
        name=type(model).__name__,
        fitted=getattr(model, "best_estimator_", model),
        equations=[{"of": one, "rows": term_rows(one, LEVEL)} for one in equations],
        level=percent(LEVEL),
        doubts=doubts_of_model(model, equations, LEVEL),
        diagram=diagram,
    )
