"""Pages about a fitted model: one self-contained file, what notebooks show, and the methods that models have for them.

What the model offers decides what a page shows.
"""

from __future__ import annotations

import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ardea import __version__
from ardea.equation import Equation
from ardea.names import counted, printable, rounded, sized
from ardea.show import fits, motion
from ardea.show.answers import (
    beyond_ceiling,
    contradicted,
    doubts_of_model,
    doubts_of_residuals,
    far_rows,
    first_of,
    unique,
)
from ardea.show.canvas import Drawing, figure_bytes, percent
from ardea.show.reproduction import of_arrays, of_file, program_of
from ardea.tables import write_whole
from ardea.tables.levels import level_names

if TYPE_CHECKING:
    from jinja2 import Environment

# A convention: the level of intervals where nobody chose one.
LEVEL = 0.95
# A convention: longer names are cut in tables.
LONGEST_NAME = 60
# Half the width of the picture of an interval in `pieces.html`, and how far its ends may reach from the middle.
MIDDLE, REACH = 48, 44
# Points: a wider drawing would have letters too small to read on a phone (measured on 400 pixels), so it can be moved.
FITS_A_PHONE = 400.0
# Pixels of a screen for a point of a drawing: a quarter more than on paper, which fills the page (looked at).
PIXELS = 1.25 * 4 / 3
# What is best where it is largest; other criteria are best where they are smallest.
LARGEST = {"evidence": "largest evidence", "stability": "largest stability"}
UNSEEN = "Residuals need the data: pass them to the report."
NUMERICS = ("numpy", "scipy", "scikit-learn")  # what numbers may depend on


def write_report(model: Any, path: str | os.PathLike[str], **details: Any) -> Path:
    """Write one self-contained HTML page about a fitted model.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        Fitted.
    path : path
        Where to write. An existing file is replaced.
    **details
        See :func:`report_page`.

    Returns
    -------
    Path
        Where the page is.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.show import write_report
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X, y = X[:, :7], X[:, 2] - X[:, 5] + X[:, 7]
    >>> model = SparseARD().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, Path(folder) / "report.html", data=(X, y))
    ...     "<!doctype html>" in page.read_text(encoding="utf-8")
    True
    """
    return write_whole(path, report_page(model, **details))


def report_page(
    model: Any,
    *,
    data: Any = None,
    title: str | None = None,
    level: float = LEVEL,
    targets: Sequence[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
    read: Sequence[str] = (),
    reading: str | None = None,
    saved: str | None = None,
    checked: tuple[str, bool | None] = ("", True),
) -> str:
    """Return a page about a fitted model as HTML.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        Fitted.
    data : tuple, optional
        (X, y), or (x, t) or (x, t, u) for a Discovery, for diagnostics and the fingerprint: models do not keep it.
    title : str, optional
        Title of the page.
    level : float, default=0.95
        Probability inside the intervals.
    targets : list of str, optional
        Names of the targets of an estimator.
    source : path, optional
        The file that the data came from, for the fingerprint.
    command : str, optional
        A command that makes the model again.
    notes, read : list of str
        Warnings of reading and fitting, to be shown with what the page finds itself; how the data were read.
    reading, saved : str, optional
        Lines of Python that read the data; the file that the model came from.
    checked : (str, bool or None)
        What is said of equations on other rows, and whether they hold there; None: unknown.
    """
    equations, moving = fits.equations_of(model, targets), hasattr(model, "simulate")
    drawings = (motion.drawings_of_motion if moving else fits.drawings_of_rows)(model, equations, data, level)
    names, (figures, warned) = first_of([one.name for one in equations]), _drawn(drawings)
    doubted = _doubted(model, equations, data, level, notes, *checked)
    given = {"model": model, "moving": moving, "read": read, "command": command, "figures": figures} | doubted
    return render(
        "report.html",
        title=title or (f"Equations of motion of {names}" if moving else f"{names}: a model with few terms"),
        level=percent(level),
        equations=[_told(one, level) for one in equations],
        references=_references(model),
        choice=f"{chosen_how(model)} {_certificate(getattr(model, 'best_estimator_', model))}",
        explained=None if moving or data is None else fits.r_squared(model, *data),
        remarks=[*_limits(model, data, *checked), *warned],
        fingerprint=[*of_file(source), *of_arrays(data)],
        program=program_of(model, level, reading, saved, targets),
        versions={"Ardea": __version__, "Python": platform.python_version()} | {one: version(one) for one in NUMERICS},
        **given,
    )


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
        equations=[_told(one, LEVEL) for one in equations],
        level=percent(LEVEL),
        doubts=doubts_of_model(model, equations, LEVEL),
        diagram=diagram,
    )


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
    plot_pareto = fits.plot_pareto

    def report(self, path: Any, X: Any = None, y: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`ardea.show.report_page`."""
        named = getattr(y, "columns", [getattr(y, "name", None)])  # of a frame, or of a series
        details.setdefault("targets", None if None in list(named) else [str(name) for name in named])
        return write_report(self, path, data=None if X is None else (X, y), **details)


class ShowsMotion(ShowsTerms):
    """Draws equations of motion, and writes a page about them."""

    plot_pareto = fits.plot_pareto
    plot_residuals = motion.plot_equation_residuals
    plot_simulation = motion.plot_simulation
    plot_phase = motion.plot_phase
    plot_states = motion.plot_states
    plot_variation = motion.plot_variation
    elapsed: Callable[[Any], Any]

    def report(self, path: Any, x: Any = None, t: Any = None, u: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`ardea.show.report_page`."""
        return write_report(self, path, data=None if x is None else (x, self.elapsed(t), u), **details)


# The model in words


def _told(equation: Equation, level: float) -> dict[str, Any]:
    """Return an equation with the rows of its table, and the strongest of them."""
    rows = [term_row(*row) for row in equation.rows(level)]
    if equation.intercept is not None:
        error = equation.intercept_std or 0.0
        rows.append(Row("constant", rounded(equation.intercept, error), rounded(error, error)))
    strength = np.abs(equation.coefficients) / np.maximum(equation.std, np.finfo(float).tiny)
    return {"of": equation, "rows": rows, "strongest": [rows[i] for i in np.argsort(-strength, kind="stable")]}


def _references(model: Any) -> dict[str, str]:
    """Return what the columns of texts are compared with: by a text and its column, the reference."""
    levels = getattr(model, "table_", {}).get("levels", {})
    return {
        name: f"{column}={texts[0]}" if texts[0] else f"an empty cell of {column}"
        for column, texts in levels.items()
        for name in level_names(column, texts)
    }


def _doubted(
    model: Any,
    equations: Sequence[Equation],
    data: Any,
    level: float,
    notes: Sequence[str],
    text: str,
    holds: bool | None,
) -> dict[str, Any]:
    """Return where the rows contradict the model, which a page begins with, and all other doubts."""
    failed = [] if hasattr(model, "simulate") else doubts_of_fit(model, equations, data, contradicted)
    of_rows = [] if failed else doubts_of_fit(model, equations, data)
    failed, notes = [*failed, *[text] * (holds is False)], [*notes, *[text] * (holds is None)]
    return {"failed": failed, "doubts": [*doubts_of_model(model, equations, level, notes), *of_rows]}


def _limits(model: Any, data: Any, text: str, holds: bool | None) -> list[str]:
    """Return how equations hold for other rows, and what of a page lacks data."""
    lacking = motion.obstacle(model, data) if hasattr(model, "simulate") else UNSEEN * (data is None)
    return [*filter(None, [text if holds else "", lacking])]


def doubts_of_fit(
    model: Any, equations: Sequence[Equation], data: Any, told: Callable[[Any, str], list[str]] = doubts_of_residuals
) -> list[str]:
    """Return doubts that residuals give reason for: whitened ones of equations of motion, else those of the data."""
    if hasattr(model, "searched_"):
        pairs = zip(model.residuals(), equations, strict=True)
        return [doubt for residual, one in pairs for doubt in far_rows(residual, one.left.text)]
    if data is None or hasattr(model, "simulate"):
        return []
    rows = (fits.against_rows(model, data[0], data[1], target) for target in range(len(equations)))
    pairs = zip(rows, equations, strict=True)
    return [doubt for (y, mean, std), one in pairs for doubt in told((y - mean) / std, one.name)]


def chosen_how(model: Any) -> str:
    """Return in a sentence or two how the number of terms was settled.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> X = np.random.default_rng(0).normal(size=(60, 12))
    >>> chosen_how(SparseARD().fit(X, X[:, 2] + np.sin(7 * X[:, 5])))
    'If none of the 12 columns mattered, 0.3 of them would be kept on average: each has a 2.5 % chance.'
    """
    return " ".join(filter(None, [_strength_told(model), _rows_told(getattr(model, "best_estimator_", model))]))


def _rows_told(model: Any) -> str:
    """Return how rows that depend on each other were dealt with; nothing where they were taken as independent."""
    if getattr(model, "rows", "independent") == "independent":
        return ""
    if model.rows == "unequal":
        return "Errors were taken to be of unequal size: rows are weighted, and large errors drawn in."
    found = ", ".join(f"{one:.2g}" for one in model.error_correlation_[:4])
    many = ", …" if model.error_correlation_.size > 4 else ""
    what = "errors follow those before" if model.rows == "series" else "errors of rows of one group are correlated"
    said = f"{what} ({found}{many})" if found else "beside the columns no dependence of their errors was found"
    return f"Rows were taken as {model.rows}: {said}."


def _strength_told(model: Any) -> str:
    """Return how the number of terms was settled."""
    if hasattr(model, "path_"):
        params = model.best_params_.items()
        said = [f"{name} = {f'{one:.3g}' if isinstance(one, float) else one}" for name, one in params]
        at = f": {', '.join(said)}" if said else ""
        best = LARGEST.get(model.criterion, f"smallest “{model.criterion}”")
        return f"Chosen among {counted(len(model.path_['k']), 'model')} by the {best}{at}."
    if getattr(model, "form_", None) == "trajectory":
        return (
            "Sets of terms were compared by the likelihood of the samples, less a price per term that chance pays for "
            f"{model.false_terms or 0.02:g} false terms in all equations together. A difference of 6 or more is clear."
        )
    if not hasattr(model, "method"):
        return (
            "Sets of terms from several starts were compared by a criterion (EBIC2) that weighs misfit against the "
            "number of terms and of candidates. A difference of 6 or more is clear: odds above 20 to 1."
        )
    name = model.method.strength
    if name is None:
        return "Plain ARD keeps about 32 % of the columns that explain nothing; SparseARD keeps few of them."
    strength = getattr(model, name)
    if name != "false_terms" and not isinstance(strength, str):
        return f"At {name} = {f'{strength:g}' if np.ndim(strength) == 0 else 'one for each column'}."
    if beyond := beyond_ceiling(model):
        return f"{beyond}."
    kept, rate = model.equations_[0].kept, model.equations_[0].kept.rate
    if kept.flat.kept.size == model.n_features_in_:
        return "All columns were told to be kept: none had to be chosen."
    columns, chance = round(model.false_terms / rate), percent(float(f"{rate:.2g}"))  # of those that vary
    if columns == 1:
        return f"If the column did not matter, it would be kept with a chance of {chance}."
    many = f"{model.false_terms:g} of them would be kept on average: each has a {chance} chance"
    return f"If none of the {columns} columns mattered, {many}."


def _certificate(model: Any) -> str:
    """Return in a sentence whether the fit of a regression came to its end; nothing of equations of motion."""
    if not hasattr(model, "kkt_gap_"):
        return ""
    gap, tol = np.max(model.kkt_gap_), model.tol
    if gap <= tol:
        return f"The fit converged: its optimality conditions hold to {gap:.1g}, and {tol:.1g} was asked for."
    return f"The fit did not converge: its optimality conditions hold to {gap:.1g} only, and {tol:.1g} was asked for."


# Figures


def _drawn(drawings: Iterable[Drawing]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return figures with their captions, what drawing them warned of, and why some were not: a run may be refused."""
    drawn, refused = list[tuple[str, str]](), list[str]()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for name, caption, draw in drawings:
            try:
                drawn.append((svg(draw, name, caption), caption))
            except ValueError as error:
                refused.append(f"The picture “{name}” was not drawn: {error}.".replace("..", "."))
    widths = [float([*re.findall(r' width="([0-9.]+)pt"', one), 0][0]) for one, _ in drawn]
    figures = [
        {"svg": one, "caption": told, "wide": points > FITS_A_PHONE, "width": round(PIXELS * points)}
        for (one, told), points in zip(drawn, widths, strict=True)
    ]
    return figures, [*refused, *unique(str(one.message) for one in warned)]


# Terms as rows of a table, drawings, and the templates that hold them


class Row(NamedTuple):
    """One term of a table as text; `at` is where its interval begins, has its middle and ends in the picture."""

    name: str
    coef: str
    std: str
    low: str = ""
    high: str = ""
    at: tuple[str, ...] = ()


def term_row(name: str, coef: float, std: float, low: float, high: float) -> Row:
    """Return a term as text, to two digits of its standard deviation."""
    ends = np.array([low, coef, high])
    size = np.abs(ends).max()
    at = MIDDLE + REACH * (ends / size if size > 0 else ends) if np.isfinite(size) else ()
    shown = [rounded(value, std) for value in (coef, std, low, high)]
    return Row(name, shown[0], shown[1], shown[2], shown[3], tuple(f"{place:.1f}" for place in at))


def render(template: str, **facts: Any) -> str:
    """Return a template filled with facts: escaped unless it calls them safe, control characters shown as text."""
    return _environment().get_template(template).render(**facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ardea.show"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cut": lambda name: name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…",
        "kept": lambda names, support: first_of([names[j] for j in np.flatnonzero(support)]),
        "largest": np.max,
        "sized": sized,
    }
    return environment


def _shown(value: Any) -> Any:
    """Leave markup and macros of ours as they are; show control characters of anything else as text."""
    return value if hasattr(value, "__html__") else "\n".join(map(printable, str(value).split("\n")))


def svg(draw: Callable[[], Any], name: str, alternative: str) -> str:
    """Return what a function draws as an svg element; `name` is unique on the page, `alternative` says what is seen."""
    import matplotlib

    # Text stays text; the same figure gives the same bytes; no background, so that dark pages can invert it.
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": name, "savefig.transparent": True}
    with matplotlib.rc_context(settings | {"font.family": "sans-serif"}):
        drawn = figure_bytes(draw, "svg").decode()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", drawn)
    drawn = re.sub(r'<a xlink:href="([^"]*)" target="_blank">', r'<a href="\1">', drawn)  # within the page
    return drawn.replace("<svg", f'<svg role="img" aria-label="{escape(printable(alternative))}"', 1)
