"""All experiments, declared as data, with their tables (Markdown) and figures.

Tables and figures are made from records alone; all figures read in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea import rates
from ardea.core.problem import Array
from ardea.paper import closed_forms, regressions
from ardea.paper.experiment import Experiment
from ardea.paper.regressions import METHODS, METRICS, OURS
from ardea.show.canvas import DASHES

if TYPE_CHECKING:
    from pandas import DataFrame

TONES = ("0.0", "0.35", "0.55", "0.7", "0.45")
LINE_TONES = ("0.0", "0.25", "0.5", "0.1", "0.4")
MARKERS = ("o", "s", "^", "D", "v", "P")
# Convention: counts beyond the first of these are shown on a logarithmic axis that keeps zero.
WIDE_COUNTS = 30
COUNT_TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
BOX_STYLE: dict[str, Any] = {
    "boxprops": {"facecolor": "0.85", "edgecolor": "0.2"},
    "medianprops": {"color": "0", "linewidth": 1.6},
    "whiskerprops": {"color": "0.2"},
    "capprops": {"color": "0.2"},
}
METRIC_LABELS = {
    "l2": "ℓ² error of the coefficients",
    "l1": "ℓ¹ error of the coefficients",
    "added": "terms added",
    "missed": "terms missed",
}
RATE_LABELS = {"fp": "false positive rate", "fn": "false negative rate"}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Return a table; numbers to the digits that matter, bars inside cells escaped."""
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in (header, *rows)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def number(value: float) -> str:
    """Return a number with three or four digits that matter."""
    size = abs(value)
    if value == 0:
        return "0"
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:.0f}"


def methods_in(records: DataFrame) -> list[str]:
    """Return the methods that occur, in the paper's order, ours last."""
    present = set(records["method"])
    return [method for method in (*METHODS, *OURS) if method in present]


def method_means(records: DataFrame) -> DataFrame:
    """Return the four metrics averaged, one row per method."""
    return records.groupby("method")[list(METRICS)].mean().loc[methods_in(records)]


def exact(records: DataFrame) -> DataFrame:
    """Return for every method in how many rows the support is exactly that of the truth, and the number of rows."""
    right = (records["added"] == 0) & (records["missed"] == 0)
    return right.groupby(records["method"]).agg(["sum", "size"]).loc[methods_in(records)]


def group(records: DataFrame, column: str, value: str) -> DataFrame:
    """Return the rows of one group, metrics summed over the equations of the system."""
    rows = records[records[column] == value]
    return rows.groupby(["trial", "method"], sort=False, as_index=False)[list(METRICS)].sum()


# Tables.


def comparison(records: DataFrame) -> str:
    """Return mean errors of every method, as Table 1 of the paper, with the number of exact supports."""
    found = exact(records)
    rows = [
        [str(method), *means, f"{found.loc[method, 'sum']} of {found.loc[method, 'size']}"]
        for method, means in method_means(records).iterrows()
    ]
    return markdown(["method", "ℓ² error", "ℓ¹ error", "added", "missed", "exact support"], rows)


def comparisons(records: DataFrame, column: str, values: tuple[str, str], title: str) -> str:
    """Return the errors of one group of rows and, under a title, those of a second where there is one."""
    first, second = (group(records, column, value) for value in values)
    return comparison(first) + ("" if second.empty else f"\n\n{title}:\n\n{comparison(second)}")


def level_table(records: DataFrame) -> str:
    """Return mean added and missed terms with their expectation, at some noise levels of every strength."""
    names = ["added", "expected_added", "missed", "expected_missed", "l2"]
    rows: list[list[str | float]] = []
    for strength, part in records.groupby("strength", sort=False):
        means = part.groupby("sigma")[names].mean()
        for i in np.unique(np.linspace(0, len(means) - 1, min(7, len(means))).astype(int)):
            rows.append([f"{strength:g}", means.index[i], *means.iloc[i]])
    return markdown(["strength", "sigma", "added", "theory", "missed", "theory", "ℓ² error"], rows)


def curve_table(records: DataFrame) -> str:
    """Return theory and simulation of the FP–FN curves side by side."""
    rows: list[list[str | float]] = []
    for point in records[records["kind"] == "simulated"].itertuples():
        theory = (rates.false_positive_rate("vi", point.z**2), rates.false_negative_rate("vi", point.z**2, point.xi))
        rows.append([f"{point.xi:g}", f"{point.z:.2f}", point.fp, float(theory[0]), point.fn, float(theory[1])])
    return markdown(["ξ/σ", "cut z", "FP simulated", "FP theory", "FN simulated", "FN theory"], rows)


def growth(records: DataFrame, method: str) -> float:
    """Return d ln ψ/d ln ρ of a method at the large end."""
    end = np.log(records.loc[records["method"] == method, ["rho", "psi"]].to_numpy()[-2:])
    rho, psi = end[1] - end[0]
    return float(psi / rho)


def rho_table(records: DataFrame) -> str:
    """Return the rates at the ends and the exponent of ψ for large ρ."""
    rows: list[list[str | float]] = []
    for method, part in records.groupby("method", sort=False):
        ends = part.iloc[[0, -1]]
        rows.append([str(method), part["strength"].iloc[0], *ends["fp"], *ends["fn"], growth(records, str(method))])
    ends = f"{records['rho'].min():g}", f"{records['rho'].max():g}"
    header = ["method", "strength", *(f"{rate} at ρ = {end}" for rate in ("FP", "FN") for end in ends)]
    return markdown([*header, "d ln ψ/d ln ρ at the end"], rows)


def kappa_table(records: DataFrame) -> str:
    """Return the mean rates at some condition numbers."""
    means = records.pivot_table(index=["sigma", "kappa"], columns="method", values=["fp", "fn"])
    cells = [(rate, method) for rate in ("fp", "fn") for method in ("ARDvi", "MAP-STSBL")]
    rows: list[list[str | float]] = []
    for sigma, part in means.groupby(level="sigma"):
        for (_, kappa), row in part.iloc[:: max(1, len(part) // 8)].iterrows():
            rows.append([f"{sigma:g}", f"{kappa:.0e}", *row[cells]])
    return markdown(["σ", "κ", *(f"{rate.upper()} {method}" for rate, method in cells)], rows)


def relative_costs(records: DataFrame) -> DataFrame:
    """Return the median over trials of every method's time relative to plain ARD's."""
    times = records.pivot(index="trial", columns="method", values="milliseconds")
    return times.div(times["ARD"], axis=0).median()[methods_in(records)]


def merits_table(records: DataFrame) -> str:
    """Return cost and sparsity of every method."""
    names = ["steps", "rounds", "kept", "added", "missed", "l2", "named"]
    groups = records.groupby("method")
    costs, milliseconds, means = relative_costs(records), groups["milliseconds"].median(), groups[names].mean()
    rows = [[method, milliseconds[method], costs[method], *means.loc[method]] for method in methods_in(records)]
    header = ["steps", "rounds", "kept", "added", "missed", "ℓ² error", "removals with a reason"]
    return markdown(["method", "ms", "time / ARD", *header], rows)


# Figures.


def draw_boxes(records: DataFrame, figure: Any) -> None:
    """Draw the four metrics of every method: quartiles and median, whiskers at minimum and maximum."""
    methods = methods_in(records)
    for ax, metric in zip(figure.subplots(1, len(METRICS)), METRICS, strict=True):
        values = [records.loc[records["method"] == method, metric].to_numpy() for method in methods]
        ax.boxplot(values, whis=(0, 100), widths=0.6, patch_artist=True, **BOX_STYLE)
        ax.set_xticks(range(1, len(methods) + 1), methods, rotation=60, ha="right", rotation_mode="anchor")
        ax.set_ylabel(METRIC_LABELS[metric])
        _spread_axis(ax, np.concatenate(values), counts=metric in ("added", "missed"))
        _grid(ax, color="0.9", axis="y")


def _spread_axis(ax: Any, values: Array, *, counts: bool) -> None:
    """Use a logarithmic axis where the values span decades; counts keep their zero."""
    largest, positive = values.max(initial=0.0), values[values > 0]
    if counts and largest > WIDE_COUNTS:
        ax.set_yscale("symlog", linthresh=5)
        ax.set_yticks([tick for tick in COUNT_TICKS if tick <= 1.3 * largest])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylim(-0.4, 1.3 * largest)
    elif counts:
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(-0.03 * max(largest, 1), 1.05 * max(largest, 1))
    elif positive.size and largest > 30 * positive.min():
        ax.set_yscale("log")


def _grid(ax: Any, color: str = "0.92", axis: str = "both") -> None:
    """Draw a faint grid behind everything else."""
    ax.grid(color=color, axis=axis)
    ax.set_axisbelow(True)


def line_style(i: int) -> dict[str, Any]:
    """Return colour, dash and width of the i-th of several lines."""
    return {"color": LINE_TONES[i], "linestyle": DASHES[i], "linewidth": 1.4}


def draw_levels(records: DataFrame, figure: Any, symbol: str) -> None:
    """Draw mean added and missed terms against σ, dots measured, dashed lines predicted."""
    panels = figure.subplots(1, 2)
    for ax, name in zip(panels, ("added", "missed"), strict=True):
        for i, (strength, part) in enumerate(records.groupby("strength", sort=False)):
            means = part.groupby("sigma")[[name, f"expected_{name}"]].mean()
            label = f"{symbol} = {'∞' if np.isinf(strength) else f'{strength:g}'}"
            dots = {"markersize": 4, "fillstyle": "none" if i % 2 else "full"}
            ax.plot(means.index, means[name], MARKERS[i], color=TONES[i], label=label, **dots)
            ax.plot(means.index, means[f"expected_{name}"], "--", color=TONES[i], linewidth=1)
        ax.set(xscale="log", xlabel="noise σ", ylabel=f"mean number of {METRIC_LABELS[name]}")
        _grid(ax)
    panels[0].set_ylim(bottom=min(-1.0, panels[0].get_ylim()[0]))
    panels[1].legend(fontsize="small", title="dots: measured, dashes: theory", title_fontsize="small")


def draw_curve(records: DataFrame, figure: Any) -> None:
    """Draw FN against FP: the curves and the simulated points."""
    ax = figure.subplots()
    for i, (xi, part) in enumerate(records.groupby("xi")):
        theory, points = (part[part["kind"] == kind] for kind in ("theory", "simulated"))
        ax.plot(theory["fp"], theory["fn"], label=f"ξ = {xi:g} σ", **line_style(i))
        ax.plot(points["fp"], points["fn"], "o", color="0", markersize=3)
    ax.set(xlabel=RATE_LABELS["fp"], ylabel=RATE_LABELS["fn"], xlim=(0, 1), ylim=(0, 1))
    ax.legend(title="lines: theory, dots: simulated", fontsize="small", title_fontsize="small")


def draw_rho(records: DataFrame, figure: Any) -> None:
    """Draw FP and FN against ρ."""
    panels = figure.subplots(1, 2)
    for ax, (rate, label) in zip(panels, RATE_LABELS.items(), strict=True):
        for i, (method, part) in enumerate(records.groupby("method", sort=False)):
            # ARDvi and MAP-STSBL coincide: one is drawn as a thick light line under the other.
            style = line_style(i) if method != "ARDvi" else {"color": "0.8", "linewidth": 5}
            ax.plot(part["rho"], np.maximum(part[rate], 1e-12), label=method, **style)
        ax.set(xscale="log", yscale="log", ylim=(1e-6, 1.3), xlabel="squared norm of the column, ρ", ylabel=label)
        ax.axvline(1, color="0.85", linewidth=0.8, zorder=0)
    panels[1].set_xlim(right=30)
    panels[1].legend(fontsize="small")


def draw_kappa(records: DataFrame, figure: Any) -> None:
    """Draw mean FP and FN against κ."""
    panels = figure.subplots(1, 2)
    for ax, (rate, label) in zip(panels, RATE_LABELS.items(), strict=True):
        lines = records.groupby(["method", "sigma", "kappa"])[rate].mean()
        for i, method in enumerate(("ARDvi", "MAP-STSBL")):
            for j, sigma in enumerate(records["sigma"].unique()):
                line = lines[method][sigma]
                style = line_style(2 * i) | {"linestyle": ("-", "--")[j], "marker": "os"[i], "markersize": 4}
                ax.plot(line.index, line, label=f"{method}, σ = {sigma:g}", **style)
        ax.set(xscale="log", xlabel="condition number κ", ylabel=label)
        ax.set_ylim(bottom=0)
        _grid(ax)
    closed_form = float(rates.false_positive_rate("vi", closed_forms.ALPHA))
    panels[0].axhline(closed_form, color="0.5", linestyle=":", linewidth=1)
    panels[1].legend(fontsize="small")


def draw_merits(records: DataFrame, figure: Any) -> None:
    """Draw wrong terms against cost, one marker per method."""
    ax = figure.subplots()
    means, costs = records.groupby("method")[["added", "missed", "named"]].mean(), relative_costs(records)
    for i, (method, cost) in enumerate(costs.items()):
        added, missed, named = means.loc[method]
        style = {"color": "0.15", "fillstyle": "full" if named > 0 else "none", "markersize": 8}
        ax.plot(cost, added + missed, MARKERS[i], linestyle="none", label=method, **style)
    ax.set(xlabel="processor time relative to plain ARD (median)", ylabel="wrong terms: added + missed (mean)")
    _grid(ax)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.18)
    ax.legend(title="filled: removals have a reason", fontsize="small", title_fontsize="small")


# Experiments, in the order of the paper.


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
        table=level_table,
        draw=partial(draw_levels, symbol=symbol),
        core_seconds={"corrected": (1, 60)},
    )


def _comparison(name: str, label: str, what: str, **rest: Any) -> Experiment:
    """Return a comparison of all methods on the regression problems of a study."""
    usual: Any = {"table": comparison, "draw": draw_boxes, "figure_size": (11.0, 3.4), "beyond": True}
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
        table=curve_table,
        draw=draw_curve,
        core_seconds={"corrected": (1, 5)},
        figure_size=(4.6, 4.0),
    ),
    Experiment(
        name="rho",
        label="fig:FP_FN_rho",
        what="false positive and negative rates against ρ, equal at ρ = 1; σ = 1, ξ = 3",
        sizes={"trials": (5, 5), "points": (41, 81)},
        trial=closed_forms.rho_rates,
        table=rho_table,
        draw=draw_rho,
        core_seconds={"corrected": (1, 1)},
    ),
    Experiment(
        name="kappa",
        label="fig:VI_MAP_k100",
        what="ARDvi against MAP-STSBL over the condition number, σ known (dotted: closed form at κ = 1)",
        sizes={"trials": (6, 1000), "columns": (40, 100), "terms": (10, 25), "levels": (5, 17)},
        trial=closed_forms.kappa,
        table=kappa_table,
        draw=draw_kappa,
        core_seconds={"corrected": (1, 285), "published": (1, 230)},
    ),
    Experiment(
        name="merits",
        label="fig:comparison_fig",
        what="relative merits: measured cost and sparsity at one expected false term (closed form), linear example",
        sizes={"trials": (2, 20), "columns": (60, 250), "terms": (6, 25), "repetitions": (1, 3)},
        trial=closed_forms.merits,
        table=merits_table,
        draw=draw_merits,
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
        trial=regressions.LORENZ63.trial,
        core_seconds={"corrected": (1, 5), "published": (3, 25)},
        table=partial(
            comparisons, column="criterion", values=("oracle", "aicc"), title="Strengths chosen by AICc instead"
        ),
        shown=partial(group, column="criterion", value="oracle"),
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
        table=partial(comparisons, column="rows", values=("sample", "all"), title="All rows at once"),
        shown=partial(group, column="rows", value="sample"),
    ),
)


def experiment_named(name: str) -> Experiment:
    """Return an experiment by its name on the command line."""
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if name not in known:
        raise ValueError(f"There is no experiment {name!r}. There are: {', '.join(known)}; also all, list and report.")
    return known[name]
