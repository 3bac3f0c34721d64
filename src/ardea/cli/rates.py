"""``ardea rates``: what a strength means, in false and missed terms."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ardea import rates
from ardea.cli import BOLD, Failure, painted, print_json
from ardea.cli.outputs import write_file
from ardea.names import counted
from ardea.show import figure_bytes, plot_operating_curves

# Of every method: its estimator, its strength, and what that is in terms of the cut z.
METHODS: dict[Any, tuple[str, str, str]] = {
    "vi": ("ARDvi", "alpha", "z², whatever the units"),
    "r": ("ARDr", "lam", "(z² − 1)ρ/σ²"),
    "m": ("MSTSBL", "tau", "√v (z − 1/z), v = σ²/ρ: in units of the coefficient"),
    "l": ("LSTSBL", "tau", "a density at zero: large values keep more"),
    "map": ("MAPSTSBL", "tau", "(z² − 1)/2, whatever the units"),
}
SHOWN_T = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def run(options: argparse.Namespace) -> None:
    """Print the rates, and draw them where asked."""
    if (options.strength is None) != (options.method is None) or (options.strength and options.false_terms):
        raise Failure("Give --false-terms, or --method together with --strength.")
    found = as_record(_rate(options), options)
    if options.json:
        print_json(found)
    else:
        print(as_text(found, bool(options.t)))
    if options.plot is not None:
        _draw(found["false_positive_rate"], options)


def _rate(options: argparse.Namespace) -> float:
    """Return the false positive rate of one column."""
    if options.method is not None:
        return float(rates.false_positive_rate(options.method, options.strength, rho=options.rho, sigma=options.sigma))
    rate = (options.false_terms or 1.0) / options.columns
    if rate > rates.NO_PRUNING_RATE:
        raise Failure(
            f"Plain ARD itself lets only {rates.NO_PRUNING_RATE:.3f} of the columns through: --false-terms can be at "
            f"most {rates.NO_PRUNING_RATE * options.columns:.3g} for {counted(options.columns, 'column')}."
        )
    return rate


def as_record(rate: float, options: argparse.Namespace) -> dict[str, Any]:
    """Return the rates as machines read them; a true term is missed by every method with the same probability."""
    n_true, t = len(options.t or []), list(options.t or SHOWN_T)
    if n_true > options.columns:
        raise Failure(f"--t lists {counted(n_true, 'true term')}, but the number of columns is {options.columns}.")
    squared_cut = rates.strength_for("vi", rate)
    missed = np.ravel(rates.false_negative_rate("vi", squared_cut, t))
    units = {"rho": options.rho, "sigma": options.sigma}
    return {
        "columns": options.columns,
        **units,
        "false_positive_rate": rate,
        "expected_added": rate * (options.columns - n_true),
        "expected_missed": float(missed.sum()) if n_true else None,
        "cut": float(np.sqrt(squared_cut)),
        "strengths": {
            estimator: {strength: float(rates.strength_for(method, rate, **units))}
            for method, (estimator, strength, _) in METHODS.items()
        },
        "missed": [{"t": one, "probability": p} for one, p in zip(t, missed.tolist(), strict=True)],
    }


def as_text(found: dict[str, Any], told_t: bool) -> str:
    """Return the rates as a person reads them."""
    rate, columns, n_true = found["false_positive_rate"], found["columns"], len(found["missed"]) if told_t else 0
    added = f"{found['expected_added']:.3g}"
    among = counted(columns - n_true, "column")
    title = f"{added} false term{'s' * (added != '1')} expected among {among} without any effect."
    strengths = [
        f"  {estimator:<9} {strength:>5} = {found['strengths'][estimator][strength]:<10.4g} {meaning}"
        for estimator, strength, meaning in METHODS.values()
    ]
    missed = "A true term of t-statistic t = |ξ|√ρ/σ is missed with probability:"
    if told_t:
        missed = f"Of {counted(n_true, 'true term')}, {found['expected_missed']:.3g} expected to be missed:"
    return "\n".join(
        [
            painted(title, BOLD),
            f"Each of them is kept with probability {rate:.3g}: where |t| exceeds the cut z = {found['cut']:.3f}.",
            "",
            f"Strengths that do this to a column of squared norm ρ = {found['rho']:g} at noise σ = {found['sigma']:g}:",
            "",
            *strengths,
            "",
            missed,
            "",
            f"{'t':>4}  missed",
            *(f"{one['t']:>4g}  {one['probability']:.2g}" for one in found["missed"]),
            "",
            f"In Python: SparseARD(false_terms={rate * columns:.3g}), which needs no ρ and no σ.",
        ]
    )


def _draw(rate: float, options: argparse.Namespace) -> None:
    kind = options.plot.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise Failure(f"{options.plot}: figures end in .png, .svg or .pdf.")
    drawn = figure_bytes(lambda: plot_operating_curves(options.t or (2, 3, 4, 5), false_positive_rate=rate), kind)
    told = write_file(options.plot, drawn)
    if not options.json:
        print(told)
