"""``ardea demo``: see it work on data it makes itself, whose truth is known.

Regression, our default next to plain ARD; then the equations of Lorenz 63 from noisy data.
"""

from __future__ import annotations

import argparse
import io
import warnings
from pathlib import Path

import numpy as np

from ardea.cli.console import BOLD, painted, working
from ardea.core.problem import Array
from ardea.dynamics import Discovery, systems
from ardea.estimators import ARD, SparseARD
from ardea.estimators.advice import CollapseWarning
from ardea.show import figure_bytes, plot_simulation
from ardea.tables.writing import write_whole

# A small problem that fits a screen (a convention): more columns than rows, few of which matter.
N_ROWS, N_COLUMNS, N_TERMS, NOISE_STD = 150, 300, 6, 0.5
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
    print(regression_text(options.seed), end="\n\n")
    print(painted("2. Equations of motion from noisy data", BOLD), end="\n\n")
    working("Searching the equations of Lorenz 63")
    system = systems.lorenz63()
    t, x = system.noisy(LORENZ_NOISE, seed=options.seed)
    model = Discovery().fit(x, t, feature_names=list(system.feature_names))
    print(motion_text(model, [dict(terms) for terms in system.true_terms], len(x)), end="\n\n")
    print("Not drawn (--no-plot)." if options.no_plot else _drawn(model, t, x, options.plot), end="\n\n")
    print(NEXT_STEPS)


def demo_data(seed: int = 0) -> tuple[Array, Array, Array]:
    """Draw correlated columns in very different units, a target that six of them explain, and their coefficients."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(N_ROWS, 1))
    columns = 0.5 * shared + generator.normal(size=(N_ROWS, N_COLUMNS))
    unit = 10.0 ** generator.integers(-3, 4, size=N_COLUMNS)
    terms = np.sort(generator.choice(N_COLUMNS, N_TERMS, replace=False))
    size = generator.uniform(0.5, 2.0, size=N_TERMS) * generator.choice([-1.0, 1.0], size=N_TERMS)
    coef = np.zeros(N_COLUMNS)
    coef[terms] = size / unit[terms]
    X = columns * unit
    return X, 3.0 + X @ coef + NOISE_STD * generator.normal(size=N_ROWS), coef


def regression_text(seed: int = 0) -> str:
    """Fit SparseARD and plain ARD to the demonstration data and return the comparison as text."""
    import pandas as pd

    X, y, coef = demo_data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # what plain ARD does here is the point of the demo
        models = {"SparseARD": SparseARD().fit(X, y), "plain ARD": ARD().fit(X, y)}
    sparse, true = models["SparseARD"], coef != 0
    low, high = sparse.credible_interval().T
    shown = np.flatnonzero(sparse.support_ | true)
    held = np.where((low <= coef) & (coef <= high), "covers the truth", "misses the truth")
    verdict = np.where(sparse.support_, np.where(true, held, "false term"), "missed")
    table = {"truth": coef, "estimate": sparse.coef_, "95 % low": low, "95 % high": high, "verdict": verdict}
    scores = {
        name: [one.support_.sum(), (one.support_ & ~true).sum(), (true & ~one.support_).sum(), one.noise_variance_**0.5]
        for name, one in models.items()
    }
    frame = pd.DataFrame(table).iloc[shown].set_axis([f"x{j}" for j in shown], axis=0)
    counts = pd.DataFrame(scores, index=["kept", "false", "missed", "noise σ"]).T
    plain, said = models["plain ARD"], "SparseARD was told one thing, to expect 0.3 false terms; that is its default."
    if plain.support_.sum() > N_ROWS / 2:
        terms = f"{plain.support_.sum()} terms to {N_ROWS} rows"
        said += (
            f"\nPlain ARD fits {terms}, nearly one for each row: hardly anything is\n"
            f"left over, so its σ = {plain.noise_variance_**0.5:.2g} says nothing of the noise. It warns of that."
        )
    return "\n\n".join(
        [
            f"{N_ROWS} rows, {N_COLUMNS} columns in units from 1e-3 to 1e3, {N_TERMS} of them in the truth, "
            f"noise σ = {NOISE_STD}.",
            frame.to_string(float_format="{:.4g}".format),
            counts.to_string(float_format="{:.3g}".format),
            said,
        ]
    )


def motion_text(model: Discovery, true_terms: list[dict[str, float]], rows: int) -> str:
    """Return the equations found with their intervals, next to the truth."""
    text = io.StringIO()
    model.print(file=text)
    true = sum(map(len, true_terms))
    found = added = covered = 0
    for equation, terms in zip(model.equations_, true_terms, strict=True):
        found += len(terms.keys() & set(equation.terms))
        added += len(set(equation.terms) - terms.keys())
        for name, (low, high) in zip(equation.terms, equation.interval(), strict=True):
            covered += name in terms and low <= terms[name] <= high
    verdict = f"All {true} true terms found" if found == true else f"{found} of {true} true terms found"
    return "\n".join(
        [
            f"{rows} rows of Lorenz 63 with 1 % noise; {len(model.get_feature_names())} candidate terms for each "
            "equation. Found, with 95 % intervals:",
            "",
            *(f"    {line}" for line in text.getvalue().splitlines()),
            "",
            f"{verdict}, {added or 'none'} added; {covered} of {found} intervals hold the true coefficient.",
            f"Of 95 % intervals one in twenty misses: {0.95 * found:.1f} of {found} hold it on average.",
        ]
    )


def _drawn(model: Discovery, t: Array, x: Array, path: Path) -> str:
    """Draw data and the found model with bands into a file, and say so."""
    t, x = t[SHOWN], x[SHOWN]
    noise = [one.noise for one in model.equations_]
    kind = path.suffix.lstrip(".") or "png"
    drawn = figure_bytes(
        lambda: plot_simulation(model, x[0], t, x=x, n_samples=N_DRAWS, random_state=0, x0_std=noise), kind
    )
    try:
        write_whole(path, drawn)
    except OSError as error:
        return f"Not drawn: {path} cannot be written ({error.strerror}). Choose another place with --plot."
    return f"Drawn in {path}: data, and the found equations run from the first row shown, with 95 % bands."
