"""``ardea demo``: see it work on data it makes itself, whose truth is known.

Regression, our default next to plain ARD; then the equations of Lorenz 63 from noisy data.
"""

from __future__ import annotations

import argparse
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ardea.cli.console import BOLD, painted, working
from ardea.core.problem import Array, Index
from ardea.dynamics import Discovery, systems
from ardea.estimators.advice import CollapseWarning
from ardea.estimators.base import BaseARD
from ardea.estimators.family import ARD, SparseARD
from ardea.show import figure_bytes, plot_simulation
from ardea.tables.writing import write_whole

# A small problem that fits a screen (a convention): more columns than rows, few of which matter.
N_ROWS, N_COLUMNS, N_TERMS = 150, 300, 6
NOISE_STD = 0.5
LEVEL = "95 % interval"
LORENZ_NOISE = 0.01
# Draws for the bands, and the rows shown: Lorenz 63 forgets its start in a few time units.
N_DRAWS, SHOWN = 60, slice(25, 145)
NEXT_STEPS = """\
With your own data, on the command line:
    ardea fit your.csv --target y
    ardea discover your.csv --time t
or in Python:
    import pandas as pd
    from ardea import SparseARD
    table = pd.read_csv("your.csv").dropna()
    model = SparseARD().fit(table.drop(columns="y"), table["y"])
    print(model.summary())"""


def run(options: argparse.Namespace) -> None:
    """Run both parts."""
    print(painted("1. Few terms out of many columns", BOLD), end="\n\n")
    print(run_demo(options.seed), end="\n\n")
    print(painted("2. Equations of motion from noisy data", BOLD), end="\n\n")
    working("Searching the equations of Lorenz 63")
    lorenz = find_lorenz(options.seed)
    print(lorenz_text(lorenz), end="\n\n")
    print(_drawing(lorenz, options), end="\n\n")
    print(NEXT_STEPS)


def _drawing(lorenz: LorenzDemo, options: argparse.Namespace) -> str:
    if options.no_plot:
        return "Not drawn (--no-plot)."
    try:
        draw_lorenz(lorenz, options.plot)
    except OSError as error:
        return f"Not drawn: {options.plot} cannot be written ({error.strerror}). Choose another place with --plot."
    return f"Drawn in {options.plot}: data, and the found equations run from the first row shown, with 95 % bands."


@dataclass(frozen=True)
class DemoData:
    """Rows, target, and the truth behind them."""

    X: Array
    y: Array
    coef: Array

    @property
    def terms(self) -> Index:
        """Columns with a non-zero coefficient."""
        return np.flatnonzero(self.coef)


def demo_data(seed: int = 0) -> DemoData:
    """Draw correlated columns in very different units, six of which matter.

    Examples
    --------
    >>> data = demo_data(seed=0)
    >>> data.X.shape, data.terms.size
    ((150, 300), 6)
    """
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(N_ROWS, 1))
    columns = 0.5 * shared + generator.normal(size=(N_ROWS, N_COLUMNS))
    unit = 10.0 ** generator.integers(-3, 4, size=N_COLUMNS)
    terms = np.sort(generator.choice(N_COLUMNS, N_TERMS, replace=False))
    size = generator.uniform(0.5, 2.0, size=N_TERMS) * generator.choice([-1.0, 1.0], size=N_TERMS)
    coef = np.zeros(N_COLUMNS)
    coef[terms] = size / unit[terms]
    X = columns * unit
    y = 3.0 + X @ coef + NOISE_STD * generator.normal(size=N_ROWS)
    return DemoData(X, y, coef)


def run_demo(seed: int = 0) -> str:
    """Fit SparseARD and plain ARD to the demonstration data and return the comparison as text."""
    data = demo_data(seed)
    sparse_model = SparseARD().fit(data.X, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # what plain ARD does here is the point of the demo
        plain = ARD().fit(data.X, data.y)
    lines = [
        f"{N_ROWS} rows, {N_COLUMNS} columns in units from 1e-3 to 1e3, {N_TERMS} of them in the truth, "
        f"noise σ = {NOISE_STD}.",
        "",
        *_table(data, sparse_model),
        "",
        f"{'':<12}{'kept':>6}{'false':>7}{'missed':>8}{'noise σ':>9}",
        _score("SparseARD", sparse_model, data),
        _score("plain ARD", plain, data),
        "",
        *_explained(plain),
    ]
    return "\n".join(lines)


def _explained(plain: BaseARD) -> list[str]:
    """Return what the scores mean."""
    lines = ["SparseARD was told one thing, to expect 0.3 false terms; that is its default."]
    sigma, kept = float(np.sqrt(plain.noise_variance_)), int(plain.support_.sum())
    if kept > N_ROWS / 2:
        lines += [
            f"Plain ARD fits {kept} terms to {N_ROWS} rows, nearly one for each row: hardly anything is left over,",
            f"so its σ = {sigma:.2g} says nothing of the noise. It warns of that (docs/warnings/collapse).",
        ]
    return lines


def _table(data: DemoData, model: BaseARD) -> list[str]:
    """Return one line for every term that is kept or in the truth."""
    interval = model.credible_interval()
    lines = [f"{'term':<8}{'truth':>12}{'estimate':>12}   {LEVEL:<26}verdict"]
    for j in np.flatnonzero(model.support_ | (data.coef != 0)):
        low, high = interval[j]
        kept, true = bool(model.support_[j]), data.coef[j] != 0
        shown = f"[{low:.4g}, {high:.4g}]" if kept else "dropped"
        if not true:
            verdict = "false term"
        elif not kept:
            verdict = "missed"
        else:
            verdict = "covers the truth" if low <= data.coef[j] <= high else "found; interval misses the truth"
        lines.append(f"x{j:<7}{data.coef[j]:>12.4g}{model.coef_[j]:>12.4g}   {shown:<26}{verdict}")
    return lines


def _score(name: str, model: BaseARD, data: DemoData) -> str:
    true = data.coef != 0
    added, missed = int((model.support_ & ~true).sum()), int((true & ~model.support_).sum())
    sigma = float(np.sqrt(model.noise_variance_))
    return f"{name:<12}{int(model.support_.sum()):>6}{added:>7}{missed:>8}{sigma:>9.2g}"


@dataclass(frozen=True)
class LorenzDemo:
    """The data, and what was found in them."""

    t: Array
    x: Array
    model: Discovery
    true_terms: tuple[dict[str, float], ...]


def find_lorenz(seed: int = 0) -> LorenzDemo:
    """Find the equations of Lorenz 63 in 251 rows with 1 % noise, told nothing but the names of the states.

    Examples
    --------
    >>> print(lorenz_text(find_lorenz(seed=0)).splitlines()[-2])
    All 7 true terms found, none added; 6 of 7 intervals hold the true coefficient.
    """
    system = systems.lorenz63()
    t, x = system.noisy(LORENZ_NOISE, seed=seed)
    model = Discovery().fit(x, t, feature_names=list(system.feature_names))
    return LorenzDemo(t, x, model, tuple(map(dict, system.true_terms)))


def lorenz_text(lorenz: LorenzDemo) -> str:
    """Return the equations found with their intervals, next to the truth."""
    model = lorenz.model
    text = io.StringIO()
    model.print(file=text)
    true = sum(len(terms) for terms in lorenz.true_terms)
    found = added = covered = 0
    for equation, terms in zip(model.equations_, lorenz.true_terms, strict=True):
        found += len(terms.keys() & set(equation.terms))
        added += len(set(equation.terms) - terms.keys())
        for name, (low, high) in zip(equation.terms, equation.interval(), strict=True):
            covered += name in terms and low <= terms[name] <= high
    verdict = f"All {true} true terms found" if found == true else f"{found} of {true} true terms found"
    lines = [
        f"{len(lorenz.x)} rows of Lorenz 63 with 1 % noise; {len(model.get_feature_names())} candidate terms for each "
        "equation. Found, with 95 % intervals:",
        "",
        *(f"    {line}" for line in text.getvalue().splitlines()),
        "",
        f"{verdict}, {added or 'none'} added; {covered} of {found} intervals hold the true coefficient.",
        f"Of 95 % intervals one in twenty misses: {0.95 * found:.1f} of {found} hold it on average.",
    ]
    return "\n".join(lines)


def draw_lorenz(lorenz: LorenzDemo, path: Path, seed: int = 0) -> None:
    """Draw data and the found model with bands into a file."""
    t, x = lorenz.t[SHOWN], lorenz.x[SHOWN]
    settings: dict[str, Any] = {
        "n_samples": N_DRAWS,
        "random_state": seed,
        "x0_std": [one.noise for one in lorenz.model.equations_],
    }
    kind = path.suffix.lstrip(".") or "png"
    write_whole(path, figure_bytes(lambda: plot_simulation(lorenz.model, x[0], t, x=x, **settings), kind))
