"""Pages about a fitted model: one self-contained file, what notebooks show, and the methods that models have for them.

What the model offers decides what a page shows.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ardea import __version__
from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.names import counted
from ardea.show import fits, motion
from ardea.show.answers import beyond_ceiling
from ardea.show.canvas import percent
from ardea.show.pages import doubts_of_model, doubts_of_residuals, far_rows, listed, render, svg, term_rows, unique
from ardea.tables.writing import write_whole

# A convention: the level of intervals where nobody chose one.
LEVEL = 0.95
# A convention: so many targets have figures of their own.
MOST_TARGETS = 5
# Derived: the ends of a 95 % band of so many draws are known to 0.35 standard deviations, a tenth of its width.
N_DRAWS = 60
# Conventions: runs that a portrait can show, and rows that a run is compared with, since chaos forgets its start.
N_PHASE_DRAWS, LONGEST_RUN = 20, 400
# A convention: in tables of more numbers terms that were not kept are not looked for again.
MOST_NUMBERS = 10**7
# Points: a wider drawing would have letters too small to read on a phone (measured on 400 pixels), so it can be moved.
FITS_A_PHONE = 400.0
# Pixels of a screen for a point of a drawing: a quarter more than on paper, which fills the page (looked at).
PIXELS = 1.25 * 4 / 3
OF_TERMS = "What every term adds, the most useful first. Names lead to the table of terms."
OF_RIVALS = "The chosen model of every equation (at 0) and its rivals. Names lead to the table of rivals."
NUMERICS = ("numpy", "scipy", "scikit-learn")  # what numbers may depend on
Drawing = tuple[str, str, Callable[[], Any]]  # identifier, caption, what draws


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
    notes : list of str
        Warnings of reading and fitting, to be shown with what the page finds itself.
    read : list of str
        How the data were read.
    reading : str, optional
        Lines of Python that read the data.

    Returns
    -------
    str
    """
    equations, moving = fits.equations_of(model, targets), hasattr(model, "simulate")
    drawings = (_of_motion if moving else _of_rows)(model, equations, data, level)
    names, (figures, warned) = listed([one.name for one in equations]), _drawn(drawings)
    given = {"model": model, "moving": moving, "read": read, "command": command, "figures": figures}
    return render(
        "report.html",
        title=title or (f"Equations of motion of {names}" if moving else f"{names}: a model with few terms"),
        level=percent(level),
        equations=[_told(one, level) for one in equations],
        doubts=[*doubts_of_model(model, equations, level, notes), *_doubts_of_fit(model, equations, data)],
        choice=f"{chosen_how(model)} {_certificate(getattr(model, 'best_estimator_', model))}",
        explained=None if moving or data is None else fits.r_squared(model, *data),
        remarks=_remarks(model, data) + warned,
        fingerprint=[*_of_file(source), *_of_arrays(data)],
        program=_program(model, level, data, reading),
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
    rows = term_rows(equation, level)
    strength = np.abs(equation.coefficients) / np.maximum(equation.std, np.finfo(float).tiny)
    return {"of": equation, "rows": rows, "strongest": [rows[i] for i in np.argsort(-strength, kind="stable")]}


def _doubts_of_fit(model: Any, equations: Sequence[Equation], data: Any) -> list[str]:
    """Return doubts that residuals give reason for: whitened ones of equations of motion, else those of the data."""
    if hasattr(model, "searched_"):
        pairs = zip(model.residuals(), equations, strict=True)
        return [doubt for residual, one in pairs for doubt in far_rows(residual, one.left.text)]
    if data is None or hasattr(model, "simulate"):
        return []
    rows = (fits.against_rows(model, data[0], data[1], target) for target in range(len(equations)))
    pairs = zip(rows, equations, strict=True)
    return [doubt for (y, mean, std), one in pairs for doubt in doubts_of_residuals((y - mean) / std, one.name)]


def _remarks(model: Any, data: Any) -> list[str]:
    """Return what the figures do not say."""
    if not hasattr(model, "simulate"):
        return [] if data is not None else ["Residuals need the data: pass them to the report."]
    return [told for told in (model.unit_told(), _obstacle(model, data)) if told]


def _obstacle(model: Any, data: Any) -> str | None:
    """Return why equations of motion cannot be run from the first row."""
    if data is None:
        return "A comparison with the data needs the data: pass them to the report."
    if motion.is_field(model):
        return motion.why_not_run(model, motion.first_run(model, *map(_first, data[:2]))[1])
    if not np.isfinite(_first_series(data)[0][0]).all():
        return "The first row has a gap, so the equations were not run from it."
    # Nobody measures rates of change; a smoothed trajectory has them.
    if hasattr(model, "states_") or len(model.model_.states) == len(model.equations_):
        return None
    return "Rates of change at the first row are not known, so the equations were not run from it."


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
        said = [f"{name} = {_short(value)}" for name, value in model.best_params_.items()]
        at = f": {', '.join(said)}" if said else ""
        return f"Chosen among {counted(len(model.path_['k']), 'model')} by the smallest “{model.criterion}”{at}."
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


def _short(value: Any) -> str:
    """Return a parameter as text, numbers to three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _certificate(model: Any) -> str:
    """Return in a sentence whether the fit of a regression came to its end; nothing of equations of motion."""
    if not hasattr(model, "kkt_gap_"):
        return ""
    gap, tol = np.max(model.kkt_gap_), model.tol
    if gap <= tol:
        return f"The fit converged: its optimality conditions hold to {gap:.1g}, and {tol:.1g} was asked for."
    return f"The fit did not converge: its optimality conditions hold to {gap:.1g} only, and {tol:.1g} was asked for."


# Figures


def _drawn(drawings: Iterator[Drawing]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return figures with their captions, and what drawing them warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        drawn = [(svg(draw, name, caption), caption) for name, caption, draw in drawings]
    widths = [float([*re.findall(r' width="([0-9.]+)pt"', one), 0][0]) for one, _ in drawn]
    figures = [
        {"svg": one, "caption": told, "wide": points > FITS_A_PHONE, "width": round(PIXELS * points)}
        for (one, told), points in zip(drawn, widths, strict=True)
    ]
    return figures, unique(str(one.message) for one in warned)


def _of_rows(model: Any, equations: Sequence[Equation], data: Any, level: float) -> Iterator[Drawing]:
    """Yield the drawings of a regression."""
    names = [one.name for one in equations]
    if any(one.terms for one in equations):
        caption = "Terms with their intervals; the numbers are in the table of terms."
        yield "coefficients", caption, partial(fits.plot_coefficients, model, level=level, targets=names)
        rows = data if data is not None and np.size(data[0]) <= MOST_NUMBERS else (None, None)
        yield "pareto", OF_TERMS, partial(fits.plot_pareto, model, *rows, targets=names)
    if hasattr(model, "path_") and np.isfinite(model.path_["strength"]).any():
        caption = "Terms kept and criterion along the path; the dotted line is the chosen model."
        yield "path", caption, partial(fits.plot_path, model)
        caption = "Coefficients along the path; those of the chosen model are named."
        yield "coefficient-path", caption, partial(fits.plot_path_coefficients, model)
    for i, name in enumerate(names[:MOST_TARGETS] if data is not None else []):
        of = f" of {name}" if len(names) > 1 else ""
        caption = f"Observed against predicted values{of}; the band is where a new observation is expected."
        draw = partial(fits.plot_prediction, model, *data, level=level, target=i, targets=names)
        yield f"prediction-{i}", caption, draw
        caption = f"Residuals{of}: against predictions and normal quantiles, and their autocorrelation in row order."
        yield f"residuals-{i}", caption, partial(fits.plot_residuals, model, *data, target=i)


def _of_motion(model: Any, equations: Sequence[Equation], data: Any, level: float) -> Iterator[Drawing]:
    """Yield the drawings of equations of motion; runs from the first row next to the data, where that row is whole."""
    caption = "Terms with their intervals; the numbers are in the tables of terms."
    yield "coefficients", caption, partial(fits.plot_coefficients, model, level=level)
    if any(one.rivals for one in equations):
        yield "pareto", OF_RIVALS, partial(fits.plot_pareto, model)
    if hasattr(model, "searched_"):
        kind = "Residuals of the equations" if model.form_ != "trajectory" else "Samples less states"
        caption = f"{kind}, in units of their noise, in order and against normal quantiles."
        yield "residuals", caption, partial(motion.plot_equation_residuals, model)
    smoothed = hasattr(model, "states_")
    if smoothed:
        caption = f"The states behind the samples, with bands of {percent(level)}; of several series the first."
        whole = None if data is None else _first(data[0])
        yield "states", caption, partial(motion.plot_states, model, whole, level=level)
    if _obstacle(model, data):
        return
    if motion.is_field(model):
        x, t = motion.first_run(model, *map(_first, data[:2]))
        caption = "The equations run from the smoothed data of the first time, next to the data."
        yield "simulation", caption, partial(motion.plot_simulation, model, None, t, x=x)
        return
    x, t, u = _first_series(data)
    n = len(x)
    times = np.arange(n) if model.discrete_time else t * np.arange(n) if t.ndim == 0 else t[:n]
    settings: dict[str, Any] = {"x": x, "level": level, "random_state": 0}
    noise = None if model.discrete_time or smoothed else np.array([one.noise for one in equations])
    start = None if smoothed else x[0]
    caption = (
        "The equations run from the first row, with bands from the uncertainty of coefficients and start (not of a "
        f"measurement), next to the first {n} rows. Chaos leaves the data sooner or later; the bands tell when."
    )
    run = settings | {"u": u, "n_samples": N_DRAWS, "x0_std": noise}
    yield "simulation", caption, partial(motion.plot_simulation, model, start, times, **run)
    if u is None:
        caption = "The same in the plane of two states (of one state: its equation), with runs from the posterior."
        yield "phase", caption, partial(motion.plot_phase, model, start, times, n_samples=N_PHASE_DRAWS, **settings)


def _first_series(data: Any) -> tuple[Array, Array, Array | None]:
    """Return the rows, times and inputs of the first trajectory that a run is compared with."""
    x, t, u = (_first(one) for one in (*data, None)[:3])
    x = np.asarray(x, dtype=float)[:LONGEST_RUN]
    x = x[:, None] if x.ndim == 1 else x
    return x, np.asarray(t), None if u is None else np.asarray(u)[: len(x)]


def _first(one: Any) -> Any:
    return one[0] if isinstance(one, list | tuple) else one


# Data and reproduction


def _of_file(source: str | os.PathLike[str] | None) -> Iterator[list[str]]:
    """Yield name, size and digest of a file; of a folder, of all its files in order."""
    if source is None:
        return
    place, digest = Path(source), hashlib.sha256()
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    for file in files:
        with file.open("rb") as content:
            hashlib.file_digest(content, lambda: digest)
    yield ["file", place.name]
    yield ["size of the file", f"{sum(file.stat().st_size for file in files):,} bytes"]
    yield ["SHA-256 of the file", digest.hexdigest()]


def _of_arrays(data: Any) -> Iterator[list[str]]:
    """Yield shapes and digests of arrays, as 64-bit floats in C order; sparse and lazy data have none."""
    names = ("X", "y") if data is not None and len(data) == 2 else ("x", "t", "u")
    for name, given in zip(names, data or (), strict=False):
        if given is None or sparse.issparse(given) or hasattr(given, "dask"):
            continue
        parts = given if isinstance(given, list | tuple) else [given]
        arrays = [np.ascontiguousarray(np.asarray(part, dtype=np.float64)) for part in parts]
        yield [f"shape of {name}", listed([" × ".join(map(str, one.shape)) or "one number" for one in arrays])]
        yield [f"SHA-256 of {name}", hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()]


def _program(model: Any, level: float, data: Any, reading: str | None) -> str:
    """Return a program that makes the model again and prints the formula and the numbers of the page."""
    arguments = "X, y"
    if hasattr(model, "simulate"):
        inputs = ", u=u" if data is not None and (*data, None)[2] is not None else ""
        space = ", space=space" if motion.is_field(model) else ""
        names = getattr(model.model_, "names", [one.name for one in model.equations_])  # and those of inputs
        arguments = f"x, t{inputs}{space}, feature_names={list(map(str, names))}"
    settings = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
    called = dict.fromkeys(re.findall(r"(?<![\w.])([A-Za-z]\w*)\(", settings))
    modules = [import_module(home) for home in ("numpy", "ardea.dynamics", "ardea")]
    homes = {name: home.__name__ for home in modules for name in called if hasattr(home, name)}
    imports = "".join(f"from {home} import {name}\n" for name, home in homes.items())
    given = reading or f"# {arguments.partition(', feature')[0]}: the data that were given to fit"
    return f"""import numpy as np
import pandas as pd
{imports}
{given}
model = {settings}.fit({arguments})
for equation in model.equations_:
    print(equation.formula())
    print(pd.DataFrame(equation.table({level:g})))"""
