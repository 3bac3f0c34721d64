"""From a model to a page: which sections there are, and in which order."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ardea.dynamics.discovery import Discovery
from ardea.show.report import motion, regression
from ardea.show.report.fingerprint import of_arrays, of_file
from ardea.show.report.page import Section, code, document, escaped, listing, table
from ardea.tables.writing import write_whole
from ardea.versions import __version__

PAPER = "S. H. Rudy and T. P. Sapsis: Sparse Methods for Automatic Relevance Determination. arXiv:2005.08741, 2020."
SOFTWARE = (
    f"Ardea {__version__}: sparse Bayesian regression with exact zeros, calibrated false-term rates and error bars."
)


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
        Warnings of the fit, to be shown with what the page finds itself.

    Returns
    -------
    str
    """
    if isinstance(model, Discovery):
        data = None if data is None else (*data, None)[:3]
        heading, sections = motion.sections(model, data, level, notes)
    else:
        heading, sections = regression.sections(model, data, level, targets, notes)
    sections = [*sections, _data_section(data, source), _reproduction(model, command), _citation()]
    return document(title or heading, sections, version=__version__)


def _data_section(data: Any, source: Any) -> Section:
    rows = []
    if source is not None:
        place = Path(source)
        mark = of_file(place)
        rows += [
            ["file", place.name],
            ["size of the file", f"{mark.size:,} bytes"],
            ["SHA-256 of the file", mark.digest],
        ]
    for name, one in of_arrays(data).items():
        rows += [[f"shape of {name}", one.shape], [f"SHA-256 of {name}", one.digest]]
    if not rows:
        body = "<p>No data were passed to the report, so there is nothing to check the model against.</p>"
        return Section("data", "Data", body)
    told = "<p>The digests change if a single number does: they tell whether somebody else has the same data.</p>"
    return Section("data", "Data", told + table("Fingerprint of the data", ["what", "value"], rows))


def _reproduction(model: Any, command: str | None) -> Section:
    body = []
    if command is not None:
        body.append(f"<p>The command line that made this page:</p>{code(command)}")
    if isinstance(model, Discovery):
        program = f"from ardea.dynamics import Discovery\n\nmodel = {_settings(model)}.fit(x, t)\nmodel.print()"
    else:
        name = type(model).__name__
        inner = {type(model).__name__, *_inner_names(model)}
        program = f"from ardea import {', '.join(sorted(inner, key=str.lower))}\n\nmodel = {_settings(model)}.fit(X, y)"
        program += "\nprint(model.best_estimator_.summary())" if name == "ARDSearch" else "\nprint(model.summary())"
    body.append(f"<p>In Python, with the same data:</p>{code(program)}")
    versions = [f"Ardea {__version__}", f"Python {platform.python_version()}", *_numerics()]
    body.append(f"<p>Made with {escaped(', '.join(versions))}.</p>")
    return Section("reproduce", "How to reproduce it", "".join(body))


def _settings(model: Any) -> str:
    """Return the model as Python writes it, without its defaults, on one line."""
    return " ".join(repr(model).split())


def _inner_names(model: Any) -> list[str]:
    inner = getattr(model, "estimator", None)
    inner = inner if isinstance(inner, list | tuple) else [inner]
    return [type(one).__name__ for one in inner if one is not None]


def _numerics() -> list[str]:
    from importlib.metadata import version

    return [f"{label} {version(name)}" for label, name in (("NumPy", "numpy"), ("SciPy", "scipy"))]


def _citation() -> Section:
    return Section("cite", "How to cite", listing([f"The methods: {PAPER}", f"The software: {SOFTWARE}"]))
