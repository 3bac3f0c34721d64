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

from ardea import __version__
from ardea.equation import Equation
from ardea.show import fits, motion
from ardea.show.pages import doubts_of_model, doubts_of_residuals, far_rows, listed, percent, render, svg, term_rows
from ardea.tables.writing import write_whole

# A convention: so many targets have figures of their own.
MOST_TARGETS = 5
# Derived: the ends of a 95 % band of so many draws are known to 0.35 standard deviations, a tenth of its width.
N_DRAWS = 60
# Conventions: runs that a portrait can show, and rows that a run is compared with, since chaos forgets its start.
N_PHASE_DRAWS, LONGEST_RUN = 20, 400
# Packages that numbers may depend on.
NUMERICS = ("numpy", "scipy", "scikit-learn")
RUN_CAPTION = (
    "The equations run from the first row, with bands from the uncertainty of coefficients and start (not the noise of "
    "a measurement), next to the first {} rows. A chaotic system leaves the data sooner or later; the bands tell when."
)
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

    Returns
    -------
    str
    """
    equations = fits.equations_of(model, targets)
    moving = hasattr(model, "simulate")
    left_over, drawings, remarks = (_of_motion if moving else _of_rows)(model, equations, data, level)
    figures, warned = _drawn(drawings)
    names = listed([one.name for one in equations])
    return render(
        "report.html",
        title=title or (f"Equations of motion of {names}" if moving else f"{names}: a model with few terms"),
        moving=moving,
        level=percent(level),
        equations=[_told(one, level) for one in equations],
        doubts=[*doubts_of_model(model, equations, level, notes), *left_over],
        choice=chosen_how(model),
        path=_path(model),
        figures=figures,
        remarks=[*remarks, *warned],
        fingerprint=[*_of_file(source), *_of_arrays(data)],
        command=command,
        program=_program(model, level, _data_of_motion(model, data) if moving else "X, y"),
        versions={"Ardea": __version__, "Python": platform.python_version()} | {one: version(one) for one in NUMERICS},
    )


# The model in words


def _told(equation: Equation, level: float) -> dict[str, Any]:
    """Return an equation with the rows of its table, and the strongest of them."""
    rows = term_rows(equation, level)
    strength = np.abs(equation.coefficients) / np.maximum(equation.std, np.finfo(float).tiny)
    return {"of": equation, "rows": rows, "strongest": [rows[i] for i in np.argsort(-strength, kind="stable")]}


def chosen_how(model: Any) -> str:
    """Return in a sentence or two how the number of terms was settled.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> X = np.random.default_rng(0).normal(size=(60, 12))
    >>> chosen_how(SparseARD().fit(X, X[:, 2]))
    'If none of the 12 columns mattered, 0.3 of them would be kept on average: each has a 2.5 % chance.'
    """
    if hasattr(model, "path_"):
        at = f": {model.path_['varied'][model.best_index_]} = {model.best_strength_:.3g}" if model.best_params_ else ""
        return f"Chosen among {len(model.path_['k'])} models by the smallest “{model.criterion}”{at}."
    if not hasattr(model, "method"):
        return (
            "Sets of terms from several starts were compared by a criterion (EBIC2) that weighs misfit against the "
            "number of terms and of candidates. A difference of 6 or more is clear: odds above 20 to 1."
        )
    if model.method.strength is None:
        return "Plain ARD keeps about 32 % of the columns that explain nothing; SparseARD keeps few of them."
    return _strength_told(model, getattr(model, model.method.strength), model.n_features_in_)


def _strength_told(model: Any, strength: Any, columns: int) -> str:
    if model.method.strength != "false_terms" and not isinstance(strength, str):
        return f"At {model.method.strength} = {f'{strength:g}' if np.ndim(strength) == 0 else 'one for each column'}."
    chance = percent(float(f"{model.false_terms / columns:.2g}"))
    kept = f"{model.false_terms:g} of them would be kept on average: each has a {chance} chance"
    return f"If none of the {columns} columns mattered, {kept}."


def _path(model: Any) -> dict[str, Any] | None:
    """Return every model of a search as rows of a table."""
    if not hasattr(model, "path_"):
        return None
    path, best, names = model.path_, model.best_index_, model.equations_[0].vocabulary.names
    rows = []
    for i, k in enumerate(path["k"]):
        varied = f", {path['varied'][i]} = {path['strength'][i]:.3g}" if path["varied"][i] else ""
        kept = listed([names[j] for j in np.flatnonzero(path["support"][i])])
        mark = "chosen" if i == best else "" if path["eligible"][i] else "too many terms: takes no part"
        rows.append([f"{path['method'][i]}{varied}", int(k), f"{path['score'][i]:.6g}", kept or "none", mark])
    return {"header": ["model", "terms", model.criterion, "which", "remark"], "rows": rows, "chosen": best}


# Figures


def _of_rows(model: Any, equations: Any, data: Any, level: float) -> tuple[list[str], list[Drawing], list[str]]:
    """Return doubts from residuals, drawings and remarks about a regression."""
    names = [one.name for one in equations]
    told, drawings = [], _of_terms(model, names, any(one.terms for one in equations), level)
    for target, name in enumerate(names if data is not None else []):
        observed, mean, std = fits.against_rows(model, data[0], data[1], target)
        told += doubts_of_residuals((observed - mean) / std, name)
        if target < MOST_TARGETS:
            drawings += _against_rows(model, data, level, target, f" of {name}" if len(names) > 1 else "")
    if np.max(getattr(model, "best_estimator_", model).n_iter_) > 0:
        caption = "How the fit went: the objective falls until the certificate says that no term can improve it."
        drawings.append(("trace", lambda: fits.plot_trace(model), caption))
    return told, drawings, [] if data is not None else ["Residuals need the data: pass them to the report."]


def _of_terms(model: Any, names: Sequence[str], any_term: bool, level: float) -> list[Drawing]:
    """Return drawings of the terms, and of the path that led to them."""
    drawings: list[Drawing] = []
    if any_term:
        caption = "Terms with their intervals; the numbers are in the table of terms."
        drawings.append(("coefficients", lambda: fits.plot_coefficients(model, level=level, targets=names), caption))
    if hasattr(model, "path_") and np.isfinite(model.path_["strength"]).any():
        caption = "Terms kept and criterion along the path; the dotted line is the chosen model."
        drawings.append(("path", lambda: fits.plot_path(model), caption))
        caption = "Coefficients along the path; those of the chosen model are named."
        drawings.append(("coefficient-path", lambda: fits.plot_path_coefficients(model), caption))
    return drawings


def _against_rows(model: Any, data: Any, level: float, target: int, of: str) -> list[Drawing]:
    """Return drawings that compare a target with its predictions."""
    predicted = f"Observed against predicted values{of}; the band is where a new observation is expected."
    left_over = f"Residuals{of}: against predictions, against normal quantiles, and their autocorrelation in row order."
    return [
        (f"prediction-{target}", lambda: fits.plot_prediction(model, *data, level=level, target=target), predicted),
        (f"residuals-{target}", lambda: fits.plot_residuals(model, *data, target=target), left_over),
    ]


def _of_motion(model: Any, equations: Any, data: Any, level: float) -> tuple[list[str], list[Drawing], list[str]]:
    """Return doubts from residuals, drawings and remarks about equations of motion."""
    caption = "Terms with their intervals; the numbers are in the tables of terms."
    drawings: list[Drawing] = [("coefficients", lambda: fits.plot_coefficients(model, level=level), caption)]
    told: list[str] = []
    if hasattr(model, "searched_"):
        for equation, residual in zip(equations, model.residuals(), strict=True):
            told += far_rows(residual, equation.left.text)
        caption = "Whitened residuals of the equations, in order and against normal quantiles."
        drawings.append(("residuals", lambda: motion.plot_equation_residuals(model), caption))
    remarks = [unit] if (unit := model.unit_told()) else []
    if data is None:
        remarks.append("A comparison with the data needs the data: pass them to the report.")
    elif not motion.is_field(model):
        drawings += (runs := _runs(model, data, level))
        remarks += [] if runs else ["The first row has a gap, so the equations were not run from it."]
    return told, drawings, remarks


def _runs(model: Any, data: Any, level: float) -> list[Drawing]:
    """Return the found equations run from the first row next to the data, where that row is whole."""
    x, t, u = (one[0] if isinstance(one, list | tuple) else one for one in (*data, None)[:3])
    x, t = np.asarray(x, dtype=float)[:LONGEST_RUN], np.asarray(t)
    if not np.all(np.isfinite(x[0])):
        return []
    times = np.arange(len(x)) if model.discrete_time else t * np.arange(len(x)) if t.ndim == 0 else t[: len(x)]
    inputs = None if u is None else np.asarray(u)[: len(x)]
    noise = None if model.discrete_time else np.array([one.noise for one in model.equations_])
    settings: dict[str, Any] = {"x": x, "level": level, "random_state": 0}
    run = settings | {"u": inputs, "n_samples": N_DRAWS, "x0_std": noise}
    caption = RUN_CAPTION.format(len(x))
    drawings: list[Drawing] = [("simulation", lambda: motion.plot_simulation(model, x[0], times, **run), caption)]
    if inputs is None:
        caption = "The same in the plane of two states (of one state: its equation), with runs from the posterior."
        phase = settings | {"n_samples": N_PHASE_DRAWS}
        drawings.append(("phase", lambda: motion.plot_phase(model, x[0], times, **phase), caption))
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
    place, digest = Path(source), hashlib.sha256()
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    for file in files:
        with file.open("rb") as content:
            while block := content.read(2**20):
                digest.update(block)
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


def _data_of_motion(model: Any, data: Any) -> str:
    """Return the arguments that a Discovery was fitted with."""
    inputs = ", u=u" if data is not None and (*data, None)[2] is not None else ""
    space = ", space=space" if motion.is_field(model) else ""
    return f"x, t{inputs}{space}, feature_names={[one.name for one in model.equations_]}"


def _program(model: Any, level: float, arguments: str) -> str:
    """Return a program that makes the model again and prints the formula and the numbers of the page."""
    settings = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
    called = dict.fromkeys(re.findall(r"(?<![\w.])([A-Za-z]\w*)\(", settings))
    modules = [import_module(home) for home in ("numpy", "ardea.dynamics", "ardea")]
    homes = {name: home.__name__ for home in modules for name in called if hasattr(home, name)}
    imports = "".join(f"from {home} import {name}\n" for name, home in homes.items())
    return f"""import numpy as np
import pandas as pd
{imports}
model = {settings}.fit({arguments})
for equation in model.equations_:
    print(equation.formula())
    print(pd.DataFrame(equation.table({level:g})))"""
