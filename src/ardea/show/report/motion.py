"""Sections about equations of motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ardea.dynamics.discovery import Discovery
from ardea.dynamics.models import FieldModel
from ardea.equation import Equation
from ardea.show.report import concerns
from ardea.show.report.described import described, signed
from ardea.show.report.drawings import NO_DRAWINGS, can_draw, drawing
from ardea.show.report.notes import kept_warnings
from ardea.show.report.page import Section, code, escaped, paragraph, table, warnings_list
from ardea.show.report.regression import term_table

N_DRAWS = 60
# A simulation is compared with so many rows at most: chaotic systems forget their start.
LONGEST_RUN = 400
LARGEST_NUMBER = 12


def sections(model: Discovery, data: Any, level: float, notes: Sequence[str]) -> tuple[str, list[Section]]:
    """Return the heading of the page and its sections."""
    sums = described(model, level)
    names = ", ".join(model.feature_names_[:5]) + (", …" if len(model.feature_names_) > 5 else "")
    doubts = concerns.of_discovery(model, notes)
    if hasattr(model, "searched_"):
        for equation, residual in zip(model.equations_, model.residuals(), strict=True):
            far = [one for one in concerns.of_residuals(residual, equation.name) if "far off" in one[0]]
            doubts += far
    warned = warnings_list(doubts) if doubts else paragraph("None: nothing in the fit gives reason for doubt.")
    parts = [
        Section("model", "The equations", _told(model, level)),
        Section("warnings", "Warnings", warned),
        Section("terms", "Terms", "".join(term_table(found, level) for found in sums)),
        Section("choice", "How the terms were chosen", _choice(model)),
        Section("fit", "How well it fits", _figures(model, data, level)),
    ]
    return f"Equations of motion of {names}", parts


def _told(model: Discovery, level: float) -> str:
    n_terms, many = len(model.get_feature_names()), len(model.equations_)
    kind = "next value" if getattr(model, "discrete_time", False) else "rate of change"
    head = (
        f"The {kind} of each of {many} unknown{'s' * (many > 1)} was sought among {n_terms} candidate terms; "
        f"{model.complexity} terms were found in all. Numbers after ± are half the {100 * level:g} % interval."
    )
    lines = [
        f"{equation.left.text} = {equation.with_intervals(level)}".replace("-", "−") for equation in model.equations_
    ]
    formulas = "".join(f'<p class="formula">{escaped(line)}</p>' for line in lines)
    words = "".join(paragraph(_sentence(equation, kind)) for equation in model.equations_[:LARGEST_NUMBER])
    words += paragraph(told) if (told := model.unit_told()) else ""
    return paragraph(head) + formulas + words + f"<details><summary>As LaTeX</summary>{code(model.latex())}</details>"


def _sentence(equation: Equation, kind: str) -> str:
    if not equation.terms:
        return f"The {kind} of {equation.name} depends on nothing that was offered."
    pairs = zip(equation.coefficients.tolist(), equation.terms, strict=True)
    parts = [f"{signed(value, 3)}" + ("" if term == "1" else f" times {term}") for value, term in pairs]
    return f"The {kind} of {equation.name} is {', plus '.join(parts)}. Its noise is about {equation.noise:.2g}."


def _choice(model: Discovery) -> str:
    told = (
        "Sets of terms from several starts were compared by a criterion (EBIC2) that weighs misfit against the number "
        "of terms and of candidates; the truth is not needed. The closest rivals, with how far they are behind (6 or "
        "more is clear: odds above 20 to 1):"
    )
    rows = []
    for equation in model.equations_[:LARGEST_NUMBER]:
        rows += [
            [equation.left.text, ", ".join(rival.terms) or "no term", f"{rival.excess:.1f}"]
            for rival in equation.rivals[:3]
        ]
    listed = table("Closest rivals of every equation", ["equation", "terms of the rival", "by the criterion"], rows)
    return paragraph(told) + (listed if rows else paragraph("There are none."))


def _figures(model: Discovery, data: Any, level: float) -> str:
    if not can_draw():
        return NO_DRAWINGS
    from ardea.show import plots

    alternative = "Every term with its interval; the numbers are in the tables of terms."
    parts = [
        drawing(
            lambda: plots.plot_coefficients(model, level=level),
            "coefficients",
            alternative,
            "Terms with their intervals.",
        )
    ]
    if hasattr(model, "searched_"):
        caption = (
            "Whitened residuals of the equations, in order and against normal quantiles (on the line: the noise is "
            "Gaussian and the equation leaves nothing out)."
        )
        parts.append(drawing(lambda: plots.plot_equation_residuals(model), "residuals", caption, caption))
    if data is None:
        parts.append(paragraph("A comparison with the data needs the data: pass them to the report."))
        return "".join(parts)
    return "".join([*parts, *_against_data(model, data, level, plots)])


def _against_data(model: Discovery, data: Any, level: float, plots: Any) -> list[str]:
    """Return the found equations run from the first row next to the data, where that can be done."""
    x, t, u = data
    first = isinstance(x, list | tuple)
    x = np.asarray(x[0] if first else x, dtype=float)
    u = u[0] if isinstance(u, list | tuple) else u
    if isinstance(model.model_, FieldModel):
        return []
    t = t[0] if isinstance(t, list | tuple) else t
    t = model.elapsed(t)
    t = float(t) * np.arange(len(x)) if np.ndim(t) == 0 else np.asarray(t, dtype=float)
    rows = slice(0, LONGEST_RUN)
    if not np.all(np.isfinite(x[0])):
        return [paragraph("The first row has a gap, so the equations were not run from it.")]
    inputs = None if u is None else np.asarray(u)[rows]
    times = np.arange(len(x[rows])) if model.model_.discrete_time else t[rows]
    deviations = None if model.model_.discrete_time else np.array([one.noise for one in model.equations_])
    settings = {"n_samples": N_DRAWS, "x": x[rows], "level": level, "random_state": 0, "x0_std": deviations}
    caption = (
        "The equations run from the first row, with bands from the uncertainty of coefficients and start (not the "
        f"noise of a measurement), next to the first {len(times)} rows. A chaotic system leaves the data sooner or "
        "later; the bands tell when."
    )

    with kept_warnings() as stopped:
        parts = [
            drawing(
                lambda: plots.plot_simulation(model, x[0], times, u=inputs, **settings), "simulation", caption, caption
            )
        ]
        if inputs is None:
            caption = "The same in the plane of two states (of one state: its equation), with runs from the posterior."
            settings = {"n_samples": 20, "x": x[rows], "level": level, "random_state": 0}
            parts.append(drawing(lambda: plots.plot_phase(model, x[0], times, **settings), "phase", caption, caption))
    parts += [paragraph(f"While running it: {note}.") for note in stopped]
    return parts
