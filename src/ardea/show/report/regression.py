"""Sections about an estimator or a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ardea.estimators.base import BaseARD
from ardea.estimators.search import ARDSearch
from ardea.show.report import concerns
from ardea.show.report.described import Line, Sum, described, estimator_of, false_terms_told, rounded, signed
from ardea.show.report.drawings import NO_DRAWINGS, can_draw, drawing
from ardea.show.report.page import Section, escaped, listing, paragraph, table, warnings_list
from ardea.show.report.pathfigure import path_section

MOST_SENTENCES = 8


def sections(
    model: Any, data: Any, level: float, targets: Sequence[str] | None, notes: Sequence[str]
) -> tuple[str, list[Section]]:
    """Return the heading of the page and its sections."""
    fitted = estimator_of(model)
    sums = described(model, level, targets)
    names = ", ".join(found.left for found in sums[:5]) + (", …" if len(sums) > 5 else "")
    parts = [
        Section("model", "The model", "".join(_told(found, level) for found in sums)),
        Section("warnings", "Warnings", _warnings(fitted, sums, data, notes)),
        Section("terms", "Terms", "".join(term_table(found, level) for found in sums)),
        Section("choice", "How the terms were chosen", _choice(model, fitted)),
        Section("fit", "How well it fits", _figures(model, fitted, data, level, sums)),
    ]
    return f"{names}: a model with few terms", parts


def _told(found: Sum, level: float) -> str:
    """Return formula and words of one target."""
    k, d = len(found.lines), found.n_candidates
    head = f"Of {d} candidate column{'s' * (d > 1)}, {k} {'is' if k == 1 else 'are'} kept to explain {found.left}."
    strongest = sorted(found.lines, key=lambda line: -abs(line.coef) / max(line.std, 1e-300))
    sentences = [_sentence(line, found.left, level) for line in strongest[:MOST_SENTENCES]]
    rest = f"The other {k - MOST_SENTENCES} terms are in the table." if k > MOST_SENTENCES else ""
    return (
        paragraph(head)
        + f'<p class="formula">{escaped(found.formula())}</p>'
        + (paragraph("Strongest first, with the other terms held as they are:") + listing(sentences) if k else "")
        + (paragraph(rest) if rest else "")
        + paragraph(f"What the formula leaves unexplained scatters with a standard deviation of {found.noise:.4g}.")
    )


def _sentence(line: Line, left: str, level: float) -> str:
    way = "rises" if line.coef > 0 else "falls"
    sign = 1 if line.coef > 0 else -1
    ends = sorted((sign * line.low, sign * line.high))
    size, low, high = (rounded(value, line.std) for value in (abs(line.coef), *ends))
    return f"When {line.name} grows by 1, {left} {way} by {size} ({100 * level:g} % interval {low} to {high})."


def term_table(found: Sum, level: float) -> str:
    """Return all terms with their intervals."""
    rows = [[line.name, *line.shown()] for line in found.lines]
    if found.intercept is not None:
        rows.append(["constant", signed(found.intercept), "", "", ""])
    percent = f"{100 * level:g} %"
    header = ["term", "coefficient", "standard error", f"{percent} from", f"{percent} to"]
    return table(f"Terms of {found.left}", header, rows, words=False)


def _warnings(fitted: BaseARD, sums: Sequence[Sum], data: Any, notes: Sequence[str]) -> str:
    doubts = [*concerns.of_fit(notes), *concerns.of_estimator(fitted, sums, notes)]
    if data is not None:
        for found, residual in zip(sums, _residuals(fitted, data), strict=True):
            doubts += concerns.of_residuals(residual, found.left)
    return warnings_list(doubts) if doubts else paragraph("None: nothing in the fit gives reason for doubt.")


def _residuals(fitted: BaseARD, data: Any) -> list[Any]:
    from ardea.show.plots.rows import predictions

    X, y = data
    mean, std = (np.atleast_2d(one.T) for one in predictions(fitted, X))
    return list((np.atleast_2d(np.asarray(y, dtype=float).T) - mean) / std)


def _choice(model: Any, fitted: BaseARD) -> str:
    if isinstance(model, ARDSearch):
        many = len(model.path_["k"])
        told = f"{many} models were fitted; the one with the smallest criterion “{model.criterion}” is shown."
        return paragraph(told) + path_section(model)
    name, d = type(fitted).__name__, fitted.n_features_in_
    if fitted.strength_name is None:
        return paragraph(
            f"{name} keeps what raises the evidence. Of columns that explain nothing it keeps about 32 %, so some of "
            "the terms above may mean nothing. SparseARD keeps fewer."
        )
    strength = getattr(fitted, fitted.strength_name)
    if fitted.strength_name == "false_terms" or isinstance(strength, str):
        told = f"{name} was told how many terms without meaning to accept, {fitted.false_terms:g}, and nothing else."
        means = false_terms_told(fitted.false_terms, d)
        return paragraph(f"{told} {means} The strength that does this follows from closed-form error rates.")
    shown = f"{strength:g}" if np.ndim(strength) == 0 else "one number for each column"
    return paragraph(f"{name} was run at {fitted.strength_name} = {shown}.")


def _figures(model: Any, fitted: BaseARD, data: Any, level: float, sums: Sequence[Sum]) -> str:
    if not can_draw():
        return NO_DRAWINGS
    from ardea.show import plots

    one = len(sums) == 1
    names = [found.left for found in sums]
    parts = []
    if any(found.lines for found in sums):
        alternative = "Every term with its interval; the numbers are in the table of terms."
        caption = "Terms with their intervals."
        parts.append(
            drawing(
                lambda: plots.plot_coefficients(model, level=level, targets=names), "coefficients", alternative, caption
            )
        )
    if isinstance(model, ARDSearch) and np.isfinite(model.path_["strength"]).any():
        caption = "Coefficients along the path; those of the chosen model are dark."
        parts.append(drawing(lambda: plots.plot_path_coefficients(model), "coefficient-path", caption, caption))
    if data is not None:
        X, y = data
        for t, found in enumerate(sums[:5]):
            of = "" if one else f" of {found.left}"
            parts.append(_against_rows(plots, model, X, y, t, of, level))
    else:
        parts.append(paragraph("Residuals need the data: pass them to the report."))
    caption = "How the fit went: the objective falls to a point where the certificate says that no term can improve it."
    if fitted.n_features_in_ and np.max(fitted.n_iter_) > 0:
        parts.append(drawing(lambda: plots.plot_trace(model), "trace", caption, caption))
    return "".join(parts)


def _against_rows(plots: Any, model: Any, X: Any, y: Any, target: int, of: str, level: float) -> str:
    caption = f"Observed against predicted values{of}; the band is where a new observation is expected."
    prediction = drawing(
        lambda: plots.plot_prediction(model, X, y, level=level, target=target), f"prediction-{target}", caption, caption
    )
    caption = (
        f"Residuals{of}: against predictions (no pattern is good), against normal quantiles (on the line: Gaussian), "
        "and their autocorrelation in row order (within the dotted lines: independent rows)."
    )
    residuals = drawing(
        lambda: plots.plot_residuals(model, X, y, target=target), f"residuals-{target}", caption, caption
    )
    return prediction + residuals
