"""``ardea demo``: see it work on data it makes itself, whose truth is known.

A regression next to plain ARD and the lasso; then the equations of Lorenz 63 from noisy data. Two pictures and the data
go into a folder, so that the commands named at the end run as they stand.
"""

from __future__ import annotations

import argparse
import io
import warnings
from typing import Any

import numpy as np

from ardea.cli import BOLD, painted, visible, working
from ardea.cli.outputs import as_csv, files_in
from ardea.core.problem import Array
from ardea.dynamics import Discovery, systems
from ardea.estimators import ARD, SparseARD
from ardea.estimators.advice import CollapseWarning
from ardea.show import canvas, figure_bytes, plot_simulation
from ardea.tables import write_whole

# A small problem that fits a screen (a convention): more columns than rows, few of which matter.
N_ROWS, N_COLUMNS, N_TERMS, NOISE_STD = 150, 300, 6, 0.5
LORENZ_NOISE = 0.01
# Draws for the bands.
N_DRAWS = 60
# How methods are drawn: colour, marker, and how far from the middle of a line.
LOOKS = {
    "SparseARD": (canvas.MODEL, "o", 0.2),
    "plain ARD": (canvas.OTHER, "s", 0.0),
    "lasso": (canvas.MIDDLE, "^", -0.2),
}


def run(options: argparse.Namespace) -> None:
    """Run both parts, draw them, and say what to do next."""
    folder = options.out
    files_in(folder)
    folder.mkdir(parents=True, exist_ok=True)
    print(painted("1. Few terms out of many columns", BOLD), end="\n\n")
    X, y, coef = demo_data(options.seed)
    fits = demo_fits(X, y)
    print(regression_text(fits, coef), end="\n\n")
    print(painted("2. Equations of motion from noisy data", BOLD), end="\n\n")
    working("Searching the equations of Lorenz 63")
    system = systems.lorenz63()
    t, x = system.noisy(LORENZ_NOISE, seed=options.seed)
    names = list(system.feature_names)
    model = Discovery().fit(x, t, feature_names=names)
    print(motion_text(model, [dict(terms) for terms in system.true_terms], len(x)), end="\n\n")
    columns = dict(zip([f"x{j}" for j in range(N_COLUMNS)], X.T, strict=True))
    write_whole(folder / "table.csv", as_csv({**columns, "y": y}))
    write_whole(folder / "lorenz.csv", as_csv({"t": t, **dict(zip(names, x.T, strict=True))}))
    for name, draw in (("regression", lambda: _draw_fits(fits, coef)), ("lorenz", lambda: _draw_motion(model, t, x))):
        write_whole(folder / f"{name}.png", figure_bytes(draw, "png"))
    print(painted("Drawn, and what to try next", BOLD), visible(_next_steps(str(folder))), sep="\n\n")


def _next_steps(folder: str) -> str:
    return f"""\
{folder}/regression.png: the six true terms with intervals, and what plain ARD
and the lasso make of them.
{folder}/lorenz.png: samples, smoothed states, and the found equations run from
the first row. The band holds 95 % of runs with coefficients and starts drawn
from their posterior. Lorenz 63 is chaotic, so that even these small differences
grow until the band says nothing more (dotted line).

The same data, and then your own:
    ardea fit {folder}/table.csv --target y
    ardea discover {folder}/lorenz.csv --time t --out run   (open run/report.html)
    ardea fit your.csv --target y"""


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


def demo_fits(X: Array, y: Array) -> dict[str, Any]:
    """Return SparseARD, and the coefficients of plain ARD and of the lasso, chosen by cross-validation."""
    from sklearn.linear_model import LassoCV

    scale = X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # what plain ARD does here is the point of the demo
        plain = ARD().fit(X, y)
    lasso = LassoCV(cv=5).fit(X / scale, y)
    return {"SparseARD": SparseARD().fit(X, y), "plain ARD": plain.coef_, "lasso": lasso.coef_ / scale}


def regression_text(fits: dict[str, Any], coef: Array) -> str:
    """Return what was found of the demonstration data, next to the truth and to other methods, as text."""
    import pandas as pd

    sparse, true = fits["SparseARD"], coef != 0
    low, high = sparse.credible_interval().T
    shown = np.flatnonzero(sparse.support_ | true)
    held = np.where((low <= coef) & (coef <= high), "covers the truth", "misses the truth")
    verdict = np.where(sparse.support_, np.where(true, held, "false term"), "missed")
    table = {"truth": coef, "estimate": sparse.coef_, "95 % low": low, "95 % high": high, "verdict": verdict}
    frame = pd.DataFrame(table).iloc[shown].set_axis([f"x{j}" for j in shown], axis=0)
    kept = {name: np.asarray(getattr(one, "coef_", one)) != 0 for name, one in fits.items()}
    counts = {name: [own.sum(), (own & ~true).sum(), (true & ~own).sum()] for name, own in kept.items()}
    return "\n\n".join(
        [
            f"{N_ROWS} rows, {N_COLUMNS} columns in units from 1e-3 to 1e3, {N_TERMS} of them in the truth, "
            f"noise σ = {NOISE_STD}.",
            frame.to_string(float_format="{:.4g}".format),
            pd.DataFrame(counts, index=["kept", "false", "missed"]).T.to_string(),
            "SparseARD was told one thing, to accept 0.3 false terms on average, which is its\n"
            f"default. It needs no threshold and no cross-validation. It found σ = {sparse.noise_variance_**0.5:.2g}.",
        ]
    )


def _draw_fits(fits: dict[str, Any], coef: Array) -> Any:
    """Draw the true terms as every method estimates them, in units of the truth, and how many columns it keeps."""
    true = np.flatnonzero(coef)
    left, right = places = canvas.panels(None, 1, 2, width=4.4, height=3.6).ravel()
    at = np.arange(true.size)[::-1]
    left.axvline(1.0, color=canvas.DARK, linewidth=0.8, linestyle=":")
    for name, one in fits.items():
        colour, marker, shift = LOOKS[name]
        estimate = np.asarray(getattr(one, "coef_", one))[true] / coef[true]
        look = {"fmt": marker, "color": colour, "markersize": 5, "capsize": 3, "label": name}
        bars = None
        if name == "SparseARD":
            bars = np.abs(one.credible_interval()[true] / coef[true, None] - estimate[:, None]).T
        left.errorbar(estimate, at + shift, xerr=bars, **look)
    left.set_yticks(at, [f"x{j}" for j in true])
    label = "estimate / truth (bars: 95 % intervals)"
    canvas.finished(left, "The truth (dotted) and what methods make of it", legend=True, xlabel=label)
    for row, one in enumerate(fits.values()):
        kept = np.asarray(getattr(one, "coef_", one)) != 0
        found, false = int((kept & (coef != 0)).sum()), int((kept & (coef == 0)).sum())
        names = {} if row else {"true": "true terms", "false": "false terms"}
        right.barh(-row, found, color=canvas.MODEL, label=names.get("true"))
        look = {"color": canvas.LIGHT, "hatch": "///", "edgecolor": canvas.MIDDLE, "linewidth": 0}
        right.barh(-row, false, left=found, label=names.get("false"), **look)
        right.annotate(f" {found} + {false}", (found + false, -row), va="center", fontsize="small")
    right.set_yticks(-np.arange(len(fits)), list(fits))
    right.margins(x=0.2)
    told = f"{N_TERMS} of {N_COLUMNS} columns matter; so many are kept"
    canvas.finished(right, told, legend=True, xlabel="columns kept")
    return places


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
            f"{rows} rows of Lorenz 63 with 1 % noise; {len(model.get_feature_names())} candidates for each equation.",
            "Found, with 95 % intervals:",
            "",
            *(f"    {line}" for line in text.getvalue().splitlines()),
            "",
            f"{verdict}, {added or 'none'} added; {covered} of {found} intervals hold the true coefficient.",
            f"Of 95 % intervals one in twenty misses: {0.95 * found:.1f} of {found} hold it on average.",
        ]
    )


def _draw_motion(model: Discovery, t: Array, x: Array) -> Any:
    """Draw samples, the states behind them, and the equations run from the first row with bands."""
    axes, smoothed = canvas.panels(None, x.shape[1], 1, width=6.4, height=1.6, sharex=True).ravel(), model.states_[0]
    look = {"color": canvas.OTHER, "linewidth": 2.5, "alpha": 0.6, "label": "smoothed states"}
    for ax, name in zip(axes, model.feature_names_, strict=True):
        ax.plot(smoothed["time"], smoothed[name], **look)
    return plot_simulation(model, None, t, x=x, n_samples=N_DRAWS, random_state=0, axes=axes)
