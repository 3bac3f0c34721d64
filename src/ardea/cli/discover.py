"""``ardea discover DATA --time t``: equations of motion from a time series or a field."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from math import comb
from typing import Any

from ardea.cli.console import BOLD, Failure, kept_warnings, painted, visible, working
from ardea.cli.outputs import (
    check_folder,
    equation_record,
    header_record,
    helped,
    print_found,
    text_settings,
    write_outputs,
)
from ardea.core.memory import require
from ardea.dynamics import Discovery, FieldTerms, Polynomials
from ardea.dynamics.series import as_numbers
from ardea.tables.series import Choice, Series, read_series

# d × d matrices that a search among d terms holds at a time: the Gram matrix, its factor, and copies of both.
GRAM_COPIES = 4


def run(options: argparse.Namespace) -> None:
    """Find the equations, print them, and write where asked."""
    check_folder(options.out)
    with kept_warnings() as notes:
        series, unit = series_of(options)
        model = found_model(series, unit, options)
    notes[:0] = series.doubts
    text, record = as_text(model, series, options), as_record(model, series, options)
    said, data = [*series.remarks, *notes], (series.x, series.t, series.u)
    print_found(text, record, notes, options.json, lambda: write_outputs(model, options, said, data))


def series_of(options: argparse.Namespace) -> tuple[Series, str | None]:
    """Read what the options name, with times as numbers in a unit that is known where they were dates."""
    if options.time is not None and options.step is not None:
        raise Failure("Give --time or --step, not both.")
    if options.time is None and options.step is None and not options.map:
        raise Failure("Say when the rows were taken: --time COLUMN, or --step DT (or --map for discrete time).")
    choice = Choice(options.time, options.states or (), options.inputs or (), options.series, options.space or ())
    with helped(options):
        series = read_series(options.data, choice, memory=options.memory, **text_settings(options))
    if series.t is None:
        return replace(series, t=options.step or 1.0), None
    several = isinstance(series.t, list)
    times, unit = as_numbers(series.t if several else [series.t], options.time_unit)
    return replace(series, t=times if several else times[0]), unit


def found_model(series: Series, unit: str | None, options: argparse.Namespace) -> Discovery:
    """Return the fitted Discovery that the options ask for."""
    library: Any = None
    if options.degree is not None:
        library = Polynomials(options.degree) if series.space is None else FieldTerms(powers=options.degree)
        _require_room(series, library)
    if series.space is not None and (options.map or options.form != "weak"):
        raise Failure("Fields are found in weak form and continuous time: leave out --form and --map.")
    working(f"Searching: {series.described()}")
    model = Discovery(library, form=options.form, discrete_time=options.map, verbose=int(sys.stderr.isatty()))
    settings = {"u": series.u, "feature_names": series.names, "space": series.space, "time_unit": unit}
    return model.fit(series.x, series.t, **settings)


def _require_room(series: Series, library: Any) -> None:
    """Refuse a library of more terms than memory has room for, before any is listed."""
    if series.space is None:
        degree = library.degree
        terms = comb(len(series.names) + degree, degree)
    else:
        axes, fields, degree = len(series.space), len(series.names), library.powers
        terms = fields * comb(fields + degree, degree) * comb(axes + library.derivatives, axes)
    advice = "Give a smaller --degree, or fewer --states."
    require(8 * GRAM_COPIES * terms**2, f"A library of terms up to degree {degree}", advice)


def as_text(model: Discovery, series: Series, options: argparse.Namespace) -> str:
    """Return the equations as a person reads them."""
    text = io.StringIO()
    model.print(options.level, file=text)
    many = len(model.equations_)
    counted = f"{model.complexity} terms in {many} equation{'s' * (many > 1)}"
    chosen = f"chosen from {len(model.get_feature_names())} candidates for each"
    noise = ", ".join(f"{one.name} {one.noise:.2g}" for one in model.equations_[:8])
    return "\n".join(
        [
            painted(f"{options.data}: {series.described()}", BOLD),
            *map(visible, series.remarks),
            "",
            visible(text.getvalue()),
            f"{counted}, {chosen}; ± is half the {100 * options.level:g} % interval.",
            visible(f"Noise seen by the equations: {noise}{', …' * (many > 8)}."),
        ]
    )


def as_record(model: Discovery, series: Series, options: argparse.Namespace) -> dict[str, Any]:
    """Return the equations as machines read them."""
    equations = [
        {
            **equation_record(one, options.level),
            "rivals": [{"terms": list(rival.terms), "excess": rival.excess} for rival in one.rivals],
            "equivalents": [list(terms) for terms in one.equivalents],
        }
        for one in model.equations_
    ]
    return {
        **header_record(options),
        "read": series.described(),
        "remarks": series.remarks,
        "names": series.names,
        "candidates": model.get_feature_names(),
        "equations": equations,
        "latex": model.latex(),
    }
