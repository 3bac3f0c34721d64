"""All experiments, declared as data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ardea import rates
from ardea.paper import closed_forms, regressions
from ardea.paper.experiment import Experiment
from ardea.paper.figures import draw_boxes, draw_curve, draw_kappa, draw_levels, draw_merits, draw_rho
from ardea.paper.inference import group
from ardea.paper.regressions import COMBINED, DIFFERENCED, INDEPENDENT, OF_DIFFERENCES
from ardea.paper.tables import (
    at_one_strength,
    comparison,
    comparisons,
    curve_table,
    kappa_table,
    level_table,
    merits_table,
    rho_table,
)

# Experiments, in the order of the paper.


# Figs. 1 to 6: name, what, symbol, method and values of the strength, and the sentence above the figure.
ORTHOGONAL: tuple[tuple[str, str, str, rates.Method, tuple[float, ...], str], ...] = (
    ("vi", "ARDvi", "α", "vi", (1, 2, 4, 8),
     "With less noise fewer terms are missed; false terms go only as α grows"),
    ("r", "ARDr with λ fixed", "λ", "r", (0, 10, 100, 10_000),
     "At fixed λ less noise means more false terms"),
    ("r-scaled", "ARDr with λσ² fixed", "λσ²", "r", (0, 1, 5, 10),
     "At fixed λσ² the number of false terms does not depend on the noise"),
    ("m", "M-STSBL", "τ", "m", (0, 0.01, 0.05, 0.25),
     "A threshold on magnitude ends false terms at small noise, and misses what is smaller than itself"),
    ("l", "L-STSBL", "τ", "l", (np.inf, 1, 0.1, 0.01),
     "A threshold on the likelihood ends both false and missed terms at small noise"),
    ("map", "MAP-STSBL", "τ", "map", (0, 0.2, 2, 20),
     "A price per term acts as variance inflation does"),
)  # fmt: skip


# What the groups of rows of two examples are.
ERRORS_OF_63 = {
    "oracle": "Strengths chosen by the oracle, as in the paper",
    "aicc": "Strengths chosen by AICc",
    f"oracle, {DIFFERENCED}": "Oracle, with Gaussian errors of y that depend on each other as differences of noise do",
    f"aicc, {DIFFERENCED}": "AICc, with Gaussian errors of y that depend on each other as differences of noise do",
    f"oracle, {INDEPENDENT}": "Oracle, with Gaussian, independent errors of y",
    f"aicc, {INDEPENDENT}": "AICc, with Gaussian, independent errors of y",
    f"oracle, {OF_DIFFERENCES}": "Oracle, with the errors of differences alone: noise inside the features does no harm",
    f"aicc, {OF_DIFFERENCES}": "AICc, with the errors of differences alone: noise inside the features does no harm",
}
ROWS_OF_KS = {
    "sample": "Samples of the rows, as in the paper",
    "signs": "Sums of rows with random signs: all rows enter, each once",
    "Gaussian": f"Sums of {COMBINED} rows each with Gaussian weights",
    "all": "All rows at once (one trial: no errors, no tests)",
}


def _orthogonal(
    number: int, name: str, what: str, symbol: str, method: rates.Method, strengths: tuple[float, ...], title: str
) -> Experiment:
    """Return a study of added and missed terms against σ."""
    return Experiment(
        name=f"orthogonal-{name}",
        label=f"Fig. {number}",
        what=f"added and missed terms against σ, orthogonal columns, {what}",
        sizes={"trials": (4, 50), "columns": (60, 250), "terms": (6, 25), "levels": (5, 25)},
        trial=partial(closed_forms.orthogonal, method=method, strengths=strengths, over_noise="σ²" in symbol),
        table=level_table,
        draw=partial(draw_levels, symbol=symbol, title=title),
        core_seconds={"corrected": (1, 50), "published": (1, 50)},
        figure_size=(7.2, 3.6),
    )


def _comparison(name: str, label: str, what: str, **rest: Any) -> Experiment:
    """Return a comparison of all methods on the regression problems of a study."""
    usual: Any = {"table": comparison, "draw": draw_boxes, "figure_size": (11.0, 4.1)}
    return Experiment(name, label, what, **(usual | rest))


EXPERIMENTS: tuple[Experiment, ...] = (
    *(_orthogonal(number, *study) for number, study in enumerate(ORTHOGONAL, 1)),
    Experiment(
        name="fpfn-curve",
        label="Fig. 7",
        what="false negative against false positive rate, orthonormal columns, σ = 1",
        sizes={"trials": (3, 5), "draws": (3, 40)},
        trial=closed_forms.fpfn_curve,
        table=curve_table,
        draw=draw_curve,
        core_seconds={"corrected": (1, 36)},
        figure_size=(4.6, 4.6),
    ),
    Experiment(
        name="rho",
        label="Fig. 8",
        what="false positive and negative rates against ρ, equal at ρ = 1; σ = 1, ξ = 3",
        sizes={"trials": (5, 5), "points": (41, 81)},
        trial=closed_forms.rho_rates,
        table=rho_table,
        draw=draw_rho,
        core_seconds={"corrected": (1, 1)},
        figure_size=(7.2, 3.6),
    ),
    Experiment(
        name="kappa",
        label="Fig. 9",
        what="ARDvi against MAP-STSBL over the condition number, σ known",
        sizes={
            "trials": (6, 250),
            "published_trials": (3, 250),
            "beyond_trials": (3, 100),
            "columns": (40, 100),
            "terms": (10, 25),
            "levels": (5, 17),
        },
        trial=closed_forms.kappa,
        table=kappa_table,
        draw=draw_kappa,
        core_seconds={"corrected": (1, 91), "published": (1, 61), "beyond": (1, 93)},
        figure_size=(7.2, 6.0),
    ),
    Experiment(
        name="merits",
        label="Fig. 10",
        what="relative merits: measured cost and sparsity at one expected false term (closed form), linear example",
        sizes={"trials": (2, 20), "columns": (60, 250), "terms": (6, 25), "repetitions": (1, 3)},
        trial=closed_forms.merits,
        table=merits_table,
        draw=draw_merits,
        core_seconds={"corrected": (1, 7), "beyond": (1, 15)},
        figure_size=(5.0, 4.4),
        shown=at_one_strength,
    ),
    _comparison(
        "linear",
        "Table 1, Fig. 11",
        "sparse linear system, singular values from 0.01 to 1, σ learned",
        sizes={
            "trials": (3, 100),
            "ablation_trials": (1, 5),
            "beyond_trials": (1, 24),
            "columns": (60, 250),
            "terms": (6, 25),
        },
        trial=regressions.LINEAR.trial,
        core_seconds={"corrected": (1, 34), "published": (2, 405), "beyond": (2, 111), "ablation": (2, 257)},
    ),
    _comparison(
        "fourier",
        "Fig. 12",
        "function fitting in a cosine basis, more columns than rows, σ learned",
        sizes={
            "trials": (2, 100),
            "published_trials": (1, 10),
            "ablation_trials": (1, 10),
            "beyond_trials": (1, 6),
            "rows": (60, 250),
            "modes": (10, 30),
            "terms": (6, 50),
        },
        trial=regressions.FOURIER.trial,
        core_seconds={"corrected": (1, 505), "published": (4, 158), "beyond": (2, 432), "ablation": (3, 960)},
    ),
    _comparison(
        "lorenz63",
        "Fig. 13",
        "Lorenz 63, quintic library, errors summed over the three equations, strengths chosen by an oracle",
        sizes={"trials": (1, 200), "published_trials": (1, 10), "ablation_trials": (1, 5), "beyond_trials": (1, 30)},
        trial=regressions.LORENZ63.trial,
        core_seconds={"corrected": (3, 569), "published": (3, 23), "beyond": (3, 99), "ablation": (20, 142)},
        table=partial(comparisons, column="criterion", titles=ERRORS_OF_63),
        shown=partial(group, column="criterion", value="oracle"),
    ),
    _comparison(
        "lorenz96",
        "Fig. 14",
        "Lorenz 96, quadratic library, one trial per equation, strengths chosen by an oracle",
        sizes={
            "trials": (2, 400),
            "published_trials": (1, 40),
            "ablation_trials": (1, 3),
            "beyond_trials": (1, 10),
            "states": (8, 40),
        },
        trial=regressions.LORENZ96.trial,
        core_seconds={"corrected": (2, 155), "published": (2, 103), "beyond": (3, 77), "ablation": (5, 102)},
    ),
    _comparison(
        "ks",
        "Fig. 15",
        "Kuramoto–Sivashinsky, samples of the rows, strengths chosen by an oracle",
        sizes={
            "trials": (2, 100),
            "published_trials": (1, 10),
            "ablation_trials": (1, 8),
            "beyond_trials": (1, 12),
            "sample": (300, 2500),
            "n_x": (128, 512),
            "n_t": (60, 1072),
        },
        trial=regressions.KS.trial,
        core_seconds={"corrected": (2, 130), "published": (5, 17), "beyond": (5, 84), "ablation": (5, 62)},
        table=partial(comparisons, column="rows", titles=ROWS_OF_KS),
        draw=partial(draw_boxes, empty={"l2": 3**0.5, "l1": 3.0}),
        shown=partial(group, column="rows", value="sample"),
    ),
)


def experiment_named(name: str) -> Experiment:
    """Return an experiment by its name on the command line."""
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if name not in known:
        raise ValueError(f"There is no experiment {name!r}. There are: {', '.join(known)}; also all, list and report.")
    return known[name]
