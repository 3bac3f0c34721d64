"""All experiments, in the order of the paper, declared as data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ardea import rates
from ardea.paper import closed_forms, regressions, showing
from ardea.paper.experiment import Experiment, ExperimentError


def _orthogonal(
    name: str, label: str, what: str, symbol: str, method: rates.Method, strengths: tuple[float, ...], **rest: Any
) -> Experiment:
    """Return a study of added and missed terms against σ."""
    return Experiment(
        name=f"orthogonal-{name}",
        label=f"fig:{label}",
        what=f"added and missed terms against σ, orthogonal columns, {what}",
        sizes={"trials": (4, 50), "columns": (60, 250), "terms": (6, 25), "levels": (5, 25)},
        trial=partial(closed_forms.orthogonal, method=method, strengths=strengths, **rest),
        keys=("sigma", "strength"),
        table=showing.level_table,
        draw=partial(showing.draw_levels, symbol=symbol),
        core_seconds={"corrected": (1, 60)},
    )


def _comparison(name: str, label: str, what: str, **rest: Any) -> Experiment:
    """Return a comparison of all methods on the regression problems of a study."""
    usual: Any = {"table": showing.comparison, "draw": showing.draw_boxes, "figure_size": (11.0, 3.4), "beyond": True}
    return Experiment(name, label, what, **(usual | rest))


EXPERIMENTS: tuple[Experiment, ...] = (
    _orthogonal("vi", "orthonormal_variance_inflation", "ARDvi", "α", "vi", (1, 2, 4, 8)),
    _orthogonal("r", "orthonormal_ARDr_2", "ARDr with λ fixed", "λ", "r", (0, 10, 100, 10_000)),
    _orthogonal("r-scaled", "orthonormal_ARDr", "ARDr with λσ² fixed", "λσ²", "r", (0, 1, 5, 10), over_noise=True),
    _orthogonal("m", "orthonormal_threshodling", "M-STSBL", "τ", "m", (0, 0.01, 0.05, 0.25)),
    _orthogonal("l", "orthonormal_L_STSBL", "L-STSBL", "τ", "l", (np.inf, 1, 0.1, 0.01)),
    _orthogonal("map", "orthonormal_MAP_STSBL", "MAP-STSBL", "τ", "map", (0, 0.2, 2, 20)),
    Experiment(
        name="fpfn-curve",
        label="fig:FP_FN_curve",
        what="false negative against false positive rate, orthonormal columns, σ = 1",
        sizes={"trials": (3, 5), "draws": (3, 40)},
        trial=closed_forms.fpfn_curve,
        keys=("xi", "kind", "z"),
        table=showing.curve_table,
        draw=showing.draw_curve,
        core_seconds={"corrected": (1, 5)},
        figure_size=(4.6, 4.0),
    ),
    Experiment(
        name="rho",
        label="fig:FP_FN_rho",
        what="false positive and negative rates against ρ, equal at ρ = 1; σ = 1, ξ = 3",
        sizes={"trials": (5, 5), "points": (41, 81)},
        trial=closed_forms.rho_rates,
        keys=("method", "rho"),
        table=showing.rho_table,
        draw=showing.draw_rho,
        core_seconds={"corrected": (1, 1)},
    ),
    Experiment(
        name="kappa",
        label="fig:VI_MAP_k100",
        what="ARDvi against MAP-STSBL over the condition number, σ known (dotted: closed form at κ = 1)",
        sizes={"trials": (6, 1000), "columns": (40, 100), "terms": (10, 25), "levels": (5, 17)},
        trial=closed_forms.kappa,
        keys=("sigma", "kappa", "method"),
        table=showing.kappa_table,
        draw=showing.draw_kappa,
        core_seconds={"corrected": (1, 285), "published": (1, 230)},
    ),
    Experiment(
        name="merits",
        label="fig:comparison_fig",
        what="relative merits: measured cost and sparsity at one expected false term (closed form), linear example",
        sizes={"trials": (2, 20), "columns": (60, 250), "terms": (6, 25), "repetitions": (1, 3)},
        trial=closed_forms.merits,
        table=showing.merits_table,
        draw=showing.draw_merits,
        core_seconds={"corrected": (1, 7)},
        figure_size=(5.0, 3.8),
    ),
    _comparison(
        "linear",
        "tab:linear_example, fig:linear_stats",
        "sparse linear system, singular values from 0.01 to 1, σ learned",
        sizes={"trials": (3, 100), "columns": (60, 250), "terms": (6, 25)},
        trial=regressions.LINEAR.trial,
        core_seconds={"corrected": (1, 60), "published": (2, 510)},
    ),
    _comparison(
        "fourier",
        "fig:fourier_stats",
        "function fitting in a cosine basis, more columns than rows, σ learned",
        sizes={"trials": (2, 10), "rows": (60, 250), "modes": (10, 30), "terms": (6, 50)},
        trial=regressions.FOURIER.trial,
        core_seconds={"corrected": (1, 130), "published": (4, 240)},
    ),
    _comparison(
        "lorenz63",
        "fig:L63_stats",
        "Lorenz 63, quintic library, errors summed over the three equations, strengths chosen by an oracle",
        sizes={"trials": (1, 10)},
        trial=regressions.lorenz63_trial,
        core_seconds={"corrected": (1, 5), "published": (3, 25)},
        keys=("criterion", "dimension", "method"),
        table=showing.lorenz63_table,
        shown=showing.by_oracle,
    ),
    _comparison(
        "lorenz96",
        "fig:L96_stats",
        "Lorenz 96, quadratic library, one trial per equation, strengths chosen by an oracle",
        sizes={"trials": (2, 40), "states": (8, 40)},
        trial=regressions.LORENZ96.trial,
        core_seconds={"corrected": (2, 30), "published": (2, 115)},
    ),
    _comparison(
        "ks",
        "fig:KS_stats",
        "Kuramoto–Sivashinsky, samples of the rows and all rows at once, strengths chosen by an oracle",
        sizes={"trials": (3, 11), "sample": (300, 2500), "n_x": (128, 512), "n_t": (60, 1072)},
        trial=regressions.KS.trial,
        core_seconds={"corrected": (2, 15), "published": (5, 10)},
        keys=("rows", "method"),
        table=showing.ks_table,
        shown=showing.sampled,
    ),
)


def experiment_named(name: str) -> Experiment:
    """Return an experiment by its name on the command line.

    Examples
    --------
    >>> experiment_named("linear").label
    'tab:linear_example, fig:linear_stats'
    """
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    known = ", ".join(experiment.name for experiment in EXPERIMENTS)
    raise ExperimentError(f"There is no experiment {name!r}. There are: {known}; also all, list and report.")
