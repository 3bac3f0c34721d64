"""Where a run of equations begins: as the data began, as a run of the data that is named did, or at states as told."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from ardea.cli import Failure
from ardea.core.problem import Array
from ardea.dynamics.states import Joint, KnownState
from ardea.tables.series import Series
from ardea.tables.table import shortened, unknown


@dataclass(frozen=True)
class Start:
    """Where a run begins: with states as told, or with those that are known, which have a time of their own."""

    states: Array | KnownState
    time: float
    told: str = ""  # in words, where nobody told it


def starts_of(model: Any, series: Series) -> dict[str, list[float]]:
    """Return time and states at the start of every run of a series, by its name: smoothed, else the first whole row."""
    names = model.model_.states if hasattr(model.model_, "states") else []
    found = {}
    for number, run in enumerate(series.labels):
        if hasattr(model, "states_"):
            times, states = model.searched_.times[number], model.searched_.states()[number][:, : len(names)]
        else:
            states = series.x[number]
            step = series.t if isinstance(series.t, float) else None
            times = model.elapsed(series.t[number]) if step is None else step * np.arange(len(states))
        whole = np.flatnonzero(np.isfinite(states).all(axis=1))[:1].tolist()
        if whole and states.shape[1] == len(names):  # of second order only smoothed states have rates
            found[run] = [float(times[whole[0]]), *map(float, states[whole[0]])]
    return found


def start_of(model: Any, options: argparse.Namespace, starts: dict[str, list[float]], begin: float | None) -> Start:
    """Return where a run begins, as the options say; `begin` is the time that --from names."""
    names = model.model_.states if hasattr(model.model_, "states") else model.feature_names_
    if options.series is not None:
        return _of_run(model, options, starts, begin)
    if options.start is not None:
        return Start(_states(options.start, names), 0.0 if begin is None else begin)
    if model.joint_ is None:
        runs = f", or a run of the data with --series ({shortened([*starts])})" if starts else ""
        raise Failure(f"Say where to begin: {_needed(names)}{runs}.")
    first, *others = starts or [""]
    of = f"run {first!r} (--series RUN begins as another: {shortened(others)})" if others else "the data"
    return _known(model.joint_, of, 0, begin)


def _of_run(model: Any, options: argparse.Namespace, starts: dict[str, list[float]], begin: float | None) -> Start:
    """Return the start of the run that --series names, or where noise moves the system, its state at --from."""
    if not starts:
        raise Failure("--series: the model knows no runs by name. It was found from one series, or is an older file.")
    if options.start is not None:
        raise Failure("--series says where the run begins: leave out --start.")
    if options.series not in starts:
        raise unknown(options.series, starts, "The model has no run")
    if model.joint_ is not None and model.joint_.rows is not None:
        return _known(model.joint_, f"run {options.series!r}", [*starts].index(options.series), begin)
    time, *states = starts[options.series]
    n, k = len(states), 0 if model.joint_ is None else len(model.joint_.correlation)
    known = KnownState(np.array(states), np.zeros((n, k)), np.zeros((n, n)), time)
    return Start(known, time, f"The start is that of run {options.series!r}")


def _known(joint: Joint, of: str, series: int, begin: float | None) -> Start:
    """Return the smoothed state from which a run goes on to its first time, and at which row that is."""
    known = joint.before(0 if begin is None else [begin], series)
    ends = {joint.before([np.inf], series).time: "last", joint.before(0, series).time: "first"}
    row = f"the {ends[known.time]} row of {of}" if known.time in ends else f"the latest row of {of} up to --from"
    return Start(known, known.time, f"The start is the smoothed state at {row}")


def _states(told: str, names: list[str]) -> Array:
    """Return states as they are told: in the order of the model, or each with its name."""
    parts = told.split(",")
    named = [part.rpartition("=") for part in parts]
    if not any(mark for _, mark, _ in named):
        if len(parts) != len(names):
            raise Failure(f"{_needed(names)}; got {len(parts)}.")
        return np.array([float(part) for part in parts])
    if not all(mark for _, mark, _ in named):
        raise Failure(f"{_needed(names)}: give all of them with their names, or none.")
    given = {name.strip(): value for name, _, value in named}
    wrong = [name for name in given if name not in names]
    lacking = [name for name in names if name not in given]
    if wrong or lacking or len(given) < len(parts):
        told_wrong = f"{shortened(wrong)} is none of them" if wrong else ""
        told_lacking = f"{shortened(lacking)} is lacking" if lacking else ""
        said = "; ".join(filter(None, [told_wrong, told_lacking])) or "one is given twice"
        raise Failure(f"{_needed(names)}: {said}.")
    return np.array([float(given[name]) for name in names])


def _needed(names: list[str]) -> str:
    """Return what --start takes."""
    return f"--start needs {len(names)} numbers, for {', '.join(names)}"
