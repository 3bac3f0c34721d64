"""What is said below equations that were found: noise of the system, what was tried and what may help."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ardea.cli import command_line
from ardea.tables.series import Series
from ardea.tables.table import shortened

# Candidates named in a line (a convention), and the degree of the polynomials where none was told.
MOST_TRIED, USUAL_DEGREE = 12, 3
# A convention: of 20 rows of Lorenz 63 with 5 % noise no equations were exact (docs/equations_table.md, short).
FEW_ROWS = 50


def _switches(series: Series) -> list[str]:
    """Return inputs that are only ever 0 or 1, so that their powers are themselves."""
    if not series.n_inputs:
        return []
    u = np.vstack(series.u if isinstance(series.u, list) else [series.u])
    pairs = zip(series.names[-series.n_inputs :], u.T, strict=True)
    return [name for name, column in pairs if np.isin(column[~np.isnan(column)], (0, 1)).all()]


def in_steps(series: Series) -> bool:
    """Whether the times of states are whole numbers with one step, as those that count generations are."""
    times = series.t if isinstance(series.t, list) else [series.t]
    arrays = [np.asarray(t) for t in times if series.space is None and np.size(t) > 1]
    steps = [np.diff(t) for t in arrays if t.dtype.kind in "fiu" and not np.any(t % 1)]
    return 0 < len(steps) == len(times) and all(np.all(step == steps[0][0]) for step in steps)


def what_may_help(model: Any, series: Series, options: argparse.Namespace) -> list[str]:
    """Return what was tried where no candidates fit, and what to try next; for few rows, how to make more of them."""
    told, doubted = [], any("explain misfit" in one for one in model.warnings_)
    if doubted:
        degree = "" if options.degree is None else f" (--degree {options.degree})"
        powers = tuple(f"{written}^" for name in _switches(series) for written in (name, f"({name})"))
        tried = [name for name in model.get_feature_names() if not any(power in name for power in powers)]
        told.append(f"Tried, and not enough{degree}: {shortened(tried, MOST_TRIED)}.")
        field = series.space is not None
        hints = {
            "what acts from outside (--inputs A,B)": options.inputs or field,
            "x'' where only positions were measured (--second-order)": options.second_order or options.map or field,
            "u_tt, as of waves (--second-order)": options.second_order or not field,
            "steps in place of time, x[k+1] = f(x[k]) (--map)": options.map or not in_steps(series),
            "a higher --degree": (options.degree or 0) > USUAL_DEGREE or (field and options.degree is None),
            "fewer or other --states": False,
            "in Python sines, fractions and functions of your own (docs/constants)": field,
            "in Python products of derivatives, functions of your own and known fields (docs/fields)": not field,
        }
        told.append(f"What may help: {'; '.join(hint for hint, done in hints.items() if not done)}.")
    elif not options.map and in_steps(series) and not all(one.terms for one in model.equations_):
        told.append(
            "The times are whole numbers in even steps. If the states jump from one to the next, as generations do, "
            f"find a map, x[k+1] = f(x[k]): {command_line(options, map=True)}"
        )
    if model.rows_used_ is not None and model.rows_used_ < FEW_ROWS:
        fewer = "fewer candidates (--degree 2), " * (options.degree is None or options.degree > 2)
        told.append(
            f"{model.rows_used_} rows are few: only strong terms can be told from chance. What helps: several runs of "
            f"the same system in one file (--series COLUMN), {fewer}and noise that is known (--noise, such as "
            "proportional, or its size)."
        )
    return told


def process_noise(model: Any) -> list[str]:
    """Return a sentence on noise that moves the system itself, where there is some."""
    pairs = zip(model.feature_names_, model.process_noise_ if model.process_noise_ is not None else [], strict=False)
    moved = [f"{name} {noise:.2g}" for name, noise in pairs if noise > 0]
    over = "a step" if model.discrete_time else "a unit of time"
    return [f"Noise that moves the system itself, over {over}: {', '.join(moved[:8])}."] if moved else []
