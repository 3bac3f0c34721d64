"""One self-contained page about a fitted model; what the model offers decides what the page shows."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.names import rounded
from ardea.show import doubts
from ardea.show.fits import (
    against_rows,
    equations_of,
    plot_coefficients,
    plot_prediction,
    plot_residuals,
    plot_trace,
)
from ardea.show.motion import is_field, plot_equation_residuals, plot_phase, plot_simulation
from ardea.show.pages import count, percent, render, svg, term_rows
from ardea.show.paths import plot_path, plot_path_coefficients
from ardea.tables.writing import write_whole
from ardea.versions import __version__

# Conventions of length: sentences about the terms of an equation, equations with rivals, rivals of each, targets with
# figures of their own, names of a model in the path.
MOST_SENTENCES, MOST_EQUATIONS, MOST_RIVALS, MOST_TARGETS, MOST_NAMES = 8, 12, 3, 5, 8
# Draws for the bands of a simulation: the ends of a 95 % band are then known to a quarter of its width (measured).
N_DRAWS, N_PHASE_DRAWS = 60, 20
# A convention: a run is compared with so many rows at most, since chaotic systems forget their start.
LONGEST_RUN = 400

Drawing = tuple[str, Callable[[], Any], str]  # identifier, what draws, caption


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
    >>> model = SparseARD().fit(X, X[:, 2] + X[:, 5] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, Path(folder) / "report.html", data=(X, X[:, 2] + X[:, 5] ** 2))
    ...     "<!doctype html>" in page.read_text(encoding="utf-8")
    True
    """
    return write_whole(path, report_page(model, **details))


def report_page(
    model: Any,
    *,
    data: Any = None,
    title: str | None = None,
    level: float = 0.95,
    targets: Sequence[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return a page about a fitted model as HTML.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        Fitted.
    data : tuple, optional
        (X, y), or (x, t) or (x, t, u) for a Discovery: for diagnostics and the fingerprint. Models do not keep their
        data.
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

    Returns
    -------
    str
    """
    equations = equations_of(model, targets)
    motion = hasattr(model, "simulate")
    residuals, drawings, remarks = (_of_motion if motion else _of_rows)(model, equations, data, level)
    warned = doubts.of_model(model, equations, level, notes)
    for equation, residual in zip(equations, residuals, strict=False):
        warned += doubts.of_residuals(residual, equation.left.text)
    figures, stopped = _drawn(drawings)
    return render(
        "report.html",
        title=title or _title(equations, motion),
        version=__version__,
        motion=motion,
        level=percent(level),
        told=[_told(one, level, motion) for one in equations],
        latex="\n".join(one.latex() for one in equations),
        doubts=warned,
        choice=_choice(model),
        rivals=_rivals(equations),
        path=_path(model),
        figures=figures,
        remarks=[*remarks, *stopped],
        fingerprint=[*_of_file(source), *_of_arrays(data)],
        command=command,
        program=_program(model, motion, data, level),
        versions=", ".join([f"Ardea {__version__}", f"Python {platform.python_version()}", *_numerics()]),
    )


# The model in words


def _title(equations: Sequence[Equation], motion: bool) -> str:
    names = doubts.listed([one.name for one in equations])
    return f"Equations of motion of {names}" if motion else f"{names}: a model with few terms"


def _told(equation: Equation, level: float, motion: bool) -> dict[str, Any]:
    """Return one equation in words, as a formula and as rows of a table."""
    k, d, left = len(equation.terms), equation.n_candidates, equation.left.text
    offered = f"{count(d, 'candidate term' if motion else 'candidate column')}"
    rest = f"The other {k - MOST_SENTENCES} terms are in the table. " if k > MOST_SENTENCES and not motion else ""
    return {
        "left": left,
        "head": f"Of {offered}, {k} {'is' if k == 1 else 'are'} kept to explain {left}.",
        "formula": equation.formula(),
        "sentences": [] if motion else _sentences(equation, level),
        "rest": f"{rest}What the formula leaves unexplained has a standard deviation of {equation.noise:.4g}.",
        "rows": term_rows(equation, level),
    }


def _sentences(equation: Equation, level: float) -> list[str]:
    """Return what the strongest terms do, strongest first."""
    strength = np.abs(equation.coefficients) / np.maximum(equation.std, np.finfo(float).tiny)
    ends = equation.interval(level)
    sentences = []
    for i in np.argsort(-strength, kind="stable")[:MOST_SENTENCES]:
        coef, std = float(equation.coefficients[i]), float(equation.std[i])
        low, high = sorted(np.sign(coef) * ends[i])
        size, low, high = (rounded(value, std) for value in (abs(coef), low, high))
        way = "rises" if coef > 0 else "falls"
        told = f"When {equation.terms[i]} grows by 1, {equation.left.text} {way} by {size}"
        sentences.append(f"{told} ({percent(level)} interval {low} to {high}).")
    return sentences


# How the terms were chosen


def false_terms_told(false_terms: float, columns: int) -> str:
    """Return what the number of false terms means, in a sentence.

    Examples
    --------
    >>> false_terms_told(0.3, 12)
    'If none of the 12 columns mattered, 0.3 of them would be kept on average: each has a 2.5 % chance.'
    """
    chance = percent(float(f"{false_terms / columns:.2g}"))
    if columns == 1:
        return f"If the column did not matter, it would be kept with a chance of {chance}."
    told = f"If none of the {columns} columns mattered, {false_terms:g} of them would be kept on average"
    return f"{told}: each has a {chance} chance."


def _choice(model: Any) -> str:
    if hasattr(model, "path_"):
        many = len(model.path_["k"])
        return f"{many} models were fitted; the one with the smallest criterion “{model.criterion}” is shown."
    if not hasattr(model, "strength_name"):
        return (
            "Sets of terms from several starts were compared by a criterion (EBIC2) that weighs misfit against the "
            "number of terms and of candidates; the truth is not needed. A difference of 6 or more is clear: odds "
            "above 20 to 1."
        )
    name = type(model).__name__
    if model.strength_name is None:
        return (
            f"{name} keeps what raises the evidence. Of columns that explain nothing it keeps about 32 %, so some of "
            "the terms above may mean nothing. SparseARD keeps fewer."
        )
    strength = getattr(model, model.strength_name)
    if model.strength_name == "false_terms" or isinstance(strength, str):
        told = f"{name} was told how many irrelevant terms to accept, {model.false_terms:g}, and nothing else."
        means = false_terms_told(model.false_terms, model.n_features_in_)
        return f"{told} {means} The strength that does this follows from closed-form error rates."
    shown = f"{strength:g}" if np.ndim(strength) == 0 else "one number for each column"
    return f"{name} was run at {model.strength_name} = {shown}."


def _rivals(equations: Sequence[Equation]) -> list[list[str]]:
    return [
        [equation.left.text, ", ".join(rival.terms) or "no term", f"{rival.excess:.1f}"]
        for equation in equations[:MOST_EQUATIONS]
        for rival in equation.rivals[:MOST_RIVALS]
    ]


def _path(model: Any) -> dict[str, Any] | None:
    """Return every model of a search as rows of a table."""
    if not hasattr(model, "path_"):
        return None
    path, best, names = model.path_, model.best_index_, model.equations_[0].vocabulary.names
    rows = []
    for i, k in enumerate(path["k"]):
        varied = f", {path['varied'][i]} = {path['strength'][i]:.3g}" if path["varied"][i] else ""
        kept = doubts.listed([names[j] for j in np.flatnonzero(path["support"][i])], MOST_NAMES)
        mark = "chosen" if i == best else "" if path["eligible"][i] else "too many terms: takes no part"
        rows.append([f"{path['method'][i]}{varied}", int(k), f"{path['score'][i]:.6g}", kept or "none", mark])
    return {"header": ["model", "terms", model.criterion, "which", "remark"], "rows": rows, "chosen": best}


# Figures


def _of_rows(model: Any, equations: Any, data: Any, level: float) -> tuple[list[Array], list[Drawing], list[str]]:
    """Return residuals, drawings and remarks about a regression."""
    names = [one.name for one in equations]
    drawings: list[Drawing] = []
    if any(one.terms for one in equations):
        caption = "Terms with their intervals; the numbers are in the table of terms."
        drawings.append(("coefficients", lambda: plot_coefficients(model, level=level, targets=names), caption))
    if hasattr(model, "path_") and np.isfinite(model.path_["strength"]).any():
        caption = "Terms kept and criterion along the path; the dotted line is the chosen model."
        drawings.append(("path", lambda: plot_path(model), caption))
        caption = "Coefficients along the path; those of the chosen model are named."
        drawings.append(("coefficient-path", lambda: plot_path_coefficients(model), caption))
    residuals = []
    for target, name in enumerate(names if data is not None else []):
        observed, mean, std = against_rows(model, data[0], data[1], target)
        residuals.append((observed - mean) / std)
        if target < MOST_TARGETS:
            drawings += _against_rows(model, data, level, target, f" of {name}" if len(names) > 1 else "")
    if np.max(getattr(model, "best_estimator_", model).n_iter_) > 0:
        caption = "How the fit went: the objective falls until the certificate says that no term can improve it."
        drawings.append(("trace", lambda: plot_trace(model), caption))
    return residuals, drawings, [] if data is not None else ["Residuals need the data: pass them to the report."]


def _against_rows(model: Any, data: Any, level: float, target: int, of: str) -> list[Drawing]:
    predicted = f"Observed against predicted values{of}; the band is where a new observation is expected."
    left_over = f"Residuals{of}: against predictions, against normal quantiles, and their autocorrelation in row order."
    return [
        (f"prediction-{target}", lambda: plot_prediction(model, *data, level=level, target=target), predicted),
        (f"residuals-{target}", lambda: plot_residuals(model, *data, target=target), left_over),
    ]


def _of_motion(model: Any, equations: Any, data: Any, level: float) -> tuple[list[Array], list[Drawing], list[str]]:
    """Return residuals, drawings and remarks about equations of motion."""
    caption = "Terms with their intervals; the numbers are in the tables of terms."
    drawings: list[Drawing] = [("coefficients", lambda: plot_coefficients(model, level=level), caption)]
    residuals = model.residuals() if hasattr(model, "searched_") else []
    if residuals:
        caption = "Whitened residuals of the equations, in order and against normal quantiles."
        drawings.append(("residuals", lambda: plot_equation_residuals(model), caption))
    remarks = [told] if (told := model.unit_told()) else []
    if data is None:
        remarks.append("A comparison with the data needs the data: pass them to the report.")
    elif not is_field(model):
        drawings += _runs(model, data, level)
    return residuals, drawings, remarks


def _runs(model: Any, data: Any, level: float) -> list[Drawing]:
    """Return the found equations run from the first row next to the data, where that row is whole."""
    x, t, u = (one[0] if isinstance(one, list | tuple) else one for one in (*data, None)[:3])
    x = np.asarray(x, dtype=float)[:LONGEST_RUN]
    if not np.all(np.isfinite(x[0])):
        return []
    t = np.asarray(t)
    times = np.arange(len(x)) if model.discrete_time else t * np.arange(len(x)) if t.ndim == 0 else t[: len(x)]
    inputs = None if u is None else np.asarray(u)[: len(x)]
    noise = None if model.discrete_time else np.array([one.noise for one in model.equations_])
    settings: dict[str, Any] = {"x": x, "level": level, "random_state": 0}
    caption = (
        "The equations run from the first row, with bands from the uncertainty of coefficients and start (not the "
        f"noise of a measurement), next to the first {len(x)} rows. A chaotic system leaves the data sooner or later; "
        "the bands tell when."
    )
    run: dict[str, Any] = {"u": inputs, "n_samples": N_DRAWS, "x0_std": noise, **settings}
    drawings: list[Drawing] = [("simulation", lambda: plot_simulation(model, x[0], times, **run), caption)]
    if inputs is None:
        caption = "The same in the plane of two states (of one state: its equation), with runs from the posterior."
        phase: dict[str, Any] = {"n_samples": N_PHASE_DRAWS, **settings}
        drawings.append(("phase", lambda: plot_phase(model, x[0], times, **phase), caption))
    return drawings


def _drawn(drawings: Sequence[Drawing]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return figures, and what was warned of while they were drawn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figures = [{"svg": svg(draw, name, caption), "caption": caption} for name, draw, caption in drawings]
    return figures, list(dict.fromkeys(" ".join(str(one.message).split()) for one in caught))


# Data and reproduction


def _of_file(source: str | os.PathLike[str] | None) -> Iterator[list[str]]:
    """Yield name, size and digest of a file; of a folder, of all its files in order."""
    if source is None:
        return
    place, digest, size = Path(source), hashlib.sha256(), 0
    for file in sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]:
        content = file.read_bytes()
        digest.update(content)
        size += len(content)
    yield ["file", place.name]
    yield ["size of the file", f"{size:,} bytes"]
    yield ["SHA-256 of the file", digest.hexdigest()]


def _of_arrays(data: Any) -> Iterator[list[str]]:
    """Yield shapes and digests of arrays, as 64-bit floats in C order; sparse and lazy data have none."""
    names = ("X", "y") if data is not None and len(data) == 2 else ("x", "t", "u")
    for name, given in zip(names, data or (), strict=False):
        if given is None or sparse.issparse(given) or hasattr(given, "dask"):
            continue
        parts = given if isinstance(given, list | tuple) else [given]
        arrays = [np.ascontiguousarray(np.asarray(part, dtype=np.float64)) for part in parts]
        shapes = [" × ".join(map(str, array.shape)) or "one number" for array in arrays]
        yield [f"shape of {name}", doubts.listed(shapes)]
        yield [f"SHA-256 of {name}", hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()]


def _program(model: Any, motion: bool, data: Any, level: float) -> str:
    """Return a program that makes the model again and prints the formula and the numbers of the page."""
    settings = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
    arguments = "X, y"
    if motion:
        arguments = "x, t" + (", u=u" if data is not None and len(data) == 3 and data[2] is not None else "")
    return "\n".join(
        [
            "import pandas as pd",
            *_imports(settings),
            "",
            f"model = {settings}.fit({arguments})",
            "for equation in model.equations_:",
            "    print(equation.formula())",
            f"    print(pd.DataFrame(equation.table({level:g})))",
        ]
    )


def _imports(settings: str) -> list[str]:
    """Return the lines that import whatever a model is written with.

    Examples
    --------
    >>> _imports("ARDSearch(estimator=ARDvi(alpha=array([1.0, 2.0])))")
    ['from ardea import ARDSearch, ARDvi', 'from numpy import array']
    """
    called = dict.fromkeys(re.findall(r"(?<![\w.])([A-Za-z]\w*)\(", settings))
    lines = ["import numpy as np"] if "np." in settings else []
    for module in ("ardea", "ardea.dynamics", "numpy"):
        own = [name for name in called if hasattr(import_module(module), name)]
        called = {name: None for name in called if name not in own}
        lines += [f"from {module} import {', '.join(sorted(own))}"] if own else []
    return lines


def _numerics() -> list[str]:
    return [f"{label} {version(name)}" for label, name in (("NumPy", "numpy"), ("SciPy", "scipy"))]
