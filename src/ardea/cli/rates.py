"""``ardea rates``: what a strength means, in false and missed terms."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ardea import rates
from ardea.cli.console import BOLD, Failure, painted, print_json
from ardea.core.problem import Array
from ardea.show import figure_bytes, plot_operating_curves
from ardea.tables.writing import write_whole

PARAMETERS = {"vi": "alpha", "r": "lam", "m": "tau", "l": "tau", "map": "tau"}
ESTIMATORS = {"vi": "ARDvi", "r": "ARDr", "m": "MSTSBL", "l": "LSTSBL", "map": "MAPSTSBL"}
MEANINGS = {
    "vi": "z², whatever the units",
    "r": "(z² − 1)ρ/σ²",
    "m": "√v (z − 1/z), v = σ²/ρ: in units of the coefficient",
    "l": "a density at zero: large values keep more",
    "map": "(z² − 1)/2, whatever the units",
}
SHOWN_T = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def run(options: argparse.Namespace) -> None:
    """Print the rates, and draw them where asked."""
    if (options.strength is None) != (options.method is None) or (options.strength and options.false_terms):
        raise Failure("Give --false-terms, or --method together with --strength.")
    rate = _rate(options)
    if options.json:
        print_json(as_record(rate, options))
    else:
        print(as_text(rate, options))
    if options.plot is not None:
        _draw(rate, options)


def _rate(options: argparse.Namespace) -> float:
    """Return the false positive rate of one column."""
    if options.method is not None:
        return float(rates.false_positive_rate(options.method, options.strength, rho=options.rho, sigma=options.sigma))
    rate = (options.false_terms or 1.0) / options.columns
    if rate > rates.NO_PRUNING_RATE:
        raise Failure(
            f"Plain ARD itself lets only {rates.NO_PRUNING_RATE:.3f} of the columns through: --false-terms can be at "
            f"most {rates.NO_PRUNING_RATE * options.columns:.3g} for {options.columns} columns."
        )
    return rate


def _missed(rate: float, t: Any) -> Array:
    """Return the probability that a true term of t-statistic t stays below the cut; the same for every method."""
    return rates.false_negative_rate("vi", rates.strength_for("vi", rate), t)


def _cut(rate: float) -> float:
    return float(np.sqrt(rates.strength_for("vi", rate)))


def as_text(rate: float, options: argparse.Namespace) -> str:
    """Return the rates as a person reads them."""
    n_true = len(options.t or [])
    n_false = options.columns - n_true
    if n_false < 0:
        raise Failure(f"--t lists {n_true} true terms, but there are {options.columns} columns.")
    lines = [
        painted(f"{_counted(rate * n_false)} expected among {n_false} columns that explain nothing.", BOLD),
        f"Each of them is kept with probability {rate:.3g}: where |t| exceeds the cut z = {_cut(rate):.3f}.",
        "",
        f"Strengths that do this to a column of squared norm ρ = {options.rho:g} at noise σ = {options.sigma:g}:",
        "",
        *_strengths(rate, options),
        "",
    ]
    if options.t:
        missed = _missed(rate, options.t)
        lines += [f"Of {n_true} true term{'s' * (n_true > 1)}, {missed.sum():.3g} expected to be missed:", ""]
    else:
        missed = _missed(rate, SHOWN_T)
        lines += ["A true term of t-statistic t = |ξ|√ρ/σ is missed with probability:", ""]
    shown = options.t or SHOWN_T
    lines += [f"{'t':>4}  missed", *(f"{t:>4g}  {p:.2g}" for t, p in zip(shown, np.ravel(missed), strict=True))]
    lines += ["", f"In Python: SparseARD(false_terms={rate * options.columns:.3g}), which needs no ρ and no σ."]
    return "\n".join(lines)


def _strengths(rate: float, options: argparse.Namespace) -> list[str]:
    rows = []
    for method in rates.METHODS:
        strength = float(rates.strength_for(method, rate, rho=options.rho, sigma=options.sigma))
        rows.append(f"  {ESTIMATORS[method]:<9} {PARAMETERS[method]:>5} = {strength:<10.4g} {MEANINGS[method]}")
    return rows


def as_record(rate: float, options: argparse.Namespace) -> dict[str, Any]:
    """Return the rates as machines read them."""
    t = list(options.t or SHOWN_T)
    missed = np.ravel(_missed(rate, t))
    return {
        "columns": options.columns,
        "rho": options.rho,
        "sigma": options.sigma,
        "false_positive_rate": rate,
        "expected_added": rate * (options.columns - len(options.t or [])),
        "expected_missed": float(missed.sum()) if options.t else None,
        "cut": _cut(rate),
        "strengths": {
            ESTIMATORS[m]: {PARAMETERS[m]: float(rates.strength_for(m, rate, rho=options.rho, sigma=options.sigma))}
            for m in rates.METHODS
        },
        "missed": [{"t": one, "probability": p} for one, p in zip(t, missed.tolist(), strict=True)],
    }


def _draw(rate: float, options: argparse.Namespace) -> None:
    kind = options.plot.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise Failure(f"{options.plot}: figures end in .png, .svg or .pdf.")
    drawn = figure_bytes(lambda: plot_operating_curves(options.t or (2, 3, 4, 5), false_positive_rate=rate), kind)
    write_whole(options.plot, drawn)
    if not options.json:
        print(f"wrote {options.plot}")


def _counted(false_terms: float) -> str:
    shown = f"{false_terms:.3g}"
    return f"{shown} false term{'s' * (shown != '1')}"
