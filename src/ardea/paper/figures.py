"""The figures, one style for all: a sentence that the records bear out above each, and an error bar on every mean.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; what differs in colour differs in dashes and
markers too, so that nothing is lost in grey. Every function draws into a figure and returns its title.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea.core.problem import Array
from ardea.paper.closed_forms import MARGINAL
from ardea.paper.experiment import METHODS
from ardea.paper.inference import SIGNIFICANT, Paired, by_trial, error_of, independent, methods_in, uncorrected
from ardea.paper.regressions import METRICS, WIDE
from ardea.paper.tables import relative_times
from ardea.show.canvas import DASHES

if TYPE_CHECKING:
    from pandas import DataFrame, Series

COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = (*DASHES, (0, (1, 3)))
# What is drawn beside the paper's methods; the rest is in the tables.
DRAWN = (f"ARDr, {WIDE}", "TSBR", "SparseARD", "ARDSearch", "Discovery")
# Convention: counts beyond the first of these are shown on a logarithmic axis that keeps zero.
WIDE_COUNTS = 30
COUNT_TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
PAPER_BOX, OTHER_BOX = "#dbe9f4", "#ffffff"
BOX_STYLE: dict[str, Any] = {
    "whis": (0, 100),
    "widths": 0.6,
    "patch_artist": True,
    "medianprops": {"color": "#0072b2", "linewidth": 1.6},
    "whiskerprops": {"color": "0.2"},
    "capprops": {"color": "0.2"},
}
MEAN_STYLE: dict[str, Any] = {"markersize": 3.5, "capsize": 2.5}
METRIC_LABELS = {
    "l2": "ℓ² error of the coefficients",
    "l1": "ℓ¹ error of the coefficients",
    "added": "terms added",
    "missed": "terms missed",
}
MEASURED = "markers: measured, mean ± standard error; dashes: theory"
# The two readings of MAP-STSBL share a colour: the second has open markers and a line of its own.
KAPPA_LOOKS: dict[str, dict[str, Any]] = {
    method: {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": LINES[i]} for i, method in enumerate(METHODS)
}
KAPPA_LOOKS[MARGINAL] = {"color": COLOURS[5], "marker": "o", "fillstyle": "none", "linestyle": "--"}
RATE_LABELS = {"fp": "false positive rate", "fn": "false negative rate"}


def number_of(method: str) -> int:
    """Return which colour, dashes and marker a method has in all figures; the other reading of a rule has ARD's."""
    return METHODS.index(method) if method in METHODS else 0


def style(i: int, *, theory: bool = False) -> dict[str, Any]:
    """Return how the i-th of several lines looks; theory has dashes and no markers, measurements markers only."""
    look = {"color": COLOURS[i], "linewidth": 1.2}
    return look | ({"linestyle": "--"} if theory else {"marker": MARKERS[i], "markersize": 4, "capsize": 2})


def _grid(ax: Any, axis: str = "both") -> None:
    """Draw a faint grid behind everything else."""
    ax.grid(color="0.92", axis=axis)
    ax.set_axisbelow(True)


def draw_boxes(records: DataFrame, figure: Any, empty: Mapping[str, float] | None = None) -> str:
    """Draw the four metrics of every method: quartiles, median and range; the mean with its standard error.

    `empty` are the errors of the empty model, drawn as a line; axes then begin at zero, so that it is seen how far
    everything is from it.
    """
    records = uncorrected(records)
    methods = [method for method in methods_in(records) if method in (*METHODS, *DRAWN)]
    for ax, metric in zip(figure.subplots(1, len(METRICS)), METRICS, strict=True):
        table = by_trial(records, metric)
        _boxes(ax, {method: table[method].dropna() for method in methods})
        scale = _spread_axis(ax, table[methods].to_numpy()[table[methods].notna()], metric in ("added", "missed"))
        ax.set_ylabel(METRIC_LABELS[metric] + scale)
        if empty and metric in empty:
            ax.axhline(
                empty[metric],
                color="#cc79a7",
                linestyle="--",
                linewidth=1.2,
                label=f"empty model ({empty[metric]:.4g})",
            )
            ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
            ax.legend(loc="lower right", fontsize="small")
        _grid(ax, "y")
    own = records[records["method"].isin(METHODS)]
    others = records.loc[~records["method"].isin(METHODS), "trial"].nunique()
    trials = f"{own['trial'].nunique()} trials"
    if "start" in own:
        starts = own["start"].nunique()
        trials = f"{own['trial'].nunique()} equations of {starts} {'trajectory' if starts == 1 else 'trajectories'}"
    trials += f"; white, not the paper's: {others}" if others else ""
    return f"{_least(own)}\n(box: quartiles, whiskers: range, diamond: mean ± standard error; {trials})"


def _boxes(ax: Any, values: Mapping[str, Series]) -> None:
    """Draw a box for every method, and its mean."""
    drawn = ax.boxplot([list(one) for one in values.values()], **BOX_STYLE)
    for box, method in zip(drawn["boxes"], values, strict=True):
        box.set(facecolor=PAPER_BOX if method in METHODS else OTHER_BOX, edgecolor="0.2")
    places = np.arange(1, len(values) + 1)
    errors = np.nan_to_num([error_of(independent(one)) for one in values.values()])
    ax.errorbar(places, [one.mean() for one in values.values()], errors, fmt="D", color="#d55e00", **MEAN_STYLE)
    ax.set_xticks(places, values, rotation=60, ha="right", rotation_mode="anchor")


def _least(records: DataFrame) -> str:
    """Return which of the paper's methods has the least ℓ² error and the fewest wrong terms, and who equals it."""
    told: dict[str, str] = {}
    for metric, name in (("l2", "the least mean ℓ² error"), ("wrong", "the fewest wrong terms")):
        best, like = leader(records, metric)
        part = name + (f" (no significant difference from {', '.join(like)})" if like else "")
        told[best] = f"{told[best]} and {part}" if best in told else part
    return "Of the paper's methods " + ",\n".join(f"{best} has {part}" for best, part in told.items())


def leader(records: DataFrame, metric: str) -> tuple[str, list[str]]:
    """Return the method with the least mean, and those from which a paired test does not tell it."""
    table = by_trial(records, metric)
    methods = [method for method in METHODS if method in table]
    best = str(table[methods].mean().idxmin())
    like = [m for m in methods if m != best and not Paired(table[m], table[best]).chance < SIGNIFICANT]
    return best, like


def _spread_axis(ax: Any, values: Array, counts: bool) -> str:
    """Use a logarithmic axis where the values span decades; counts keep their zero. Return what to say of it."""
    from matplotlib.ticker import LogLocator

    largest, positive = values.max(initial=0.0), values[values > 0]
    if counts and largest > WIDE_COUNTS:
        ax.set_yscale("symlog", linthresh=5)
        ax.set_yticks([tick for tick in COUNT_TICKS if tick <= 1.3 * largest])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylim(-0.4, 1.3 * largest)
        return " (linear to 5, then log)"
    if counts:
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(-0.03 * max(largest, 1), 1.05 * max(largest, 1))
    elif positive.size and largest > 20 * positive.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if largest < 1000 * positive.min() else (1,)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        return " (log scale)"
    return ""


def draw_levels(records: DataFrame, figure: Any, symbol: str, title: str) -> str:
    """Draw mean added and missed terms against σ: markers measured, dashed lines predicted."""
    panels = figure.subplots(1, 2)
    for ax, name in zip(panels, ("added", "missed"), strict=True):
        for i, (strength, part) in enumerate(records.groupby("strength", sort=False)):
            groups = part.groupby("sigma")[[name, f"expected_{name}"]]
            means, errors = groups.mean(), groups.sem()
            label = f"{symbol} = {'∞' if np.isinf(strength) else f'{strength:g}'}"
            ax.errorbar(means.index, means[name], errors[name], linestyle="none", label=label, **style(i))
            ax.plot(means.index, means[f"expected_{name}"], **style(i, theory=True))
        ax.set(xscale="log", xlabel="noise σ (log scale)", ylabel=f"mean number of {METRIC_LABELS[name]}")
        _grid(ax)
    panels[0].set_ylim(bottom=min(-1.0, panels[0].get_ylim()[0]))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, title=MEASURED)
    return title


def draw_curve(records: DataFrame, figure: Any) -> str:
    """Draw FN against FP: the curves and the simulated points of all methods, which coincide."""
    ax = figure.subplots()
    for i, (xi, part) in enumerate(records.groupby("xi")):
        theory, points = (part[part["kind"] == kind] for kind in ("theory", "simulated"))
        look = {"color": COLOURS[i], "linestyle": LINES[i]}
        ax.plot(theory["fp"], theory["fn"], **look)
        ax.plot([], [], label=f"ξ = {xi:g} σ", marker=MARKERS[i], markersize=4, **look)
        one = points.groupby("z")[["fp", "fn", "draws"]].mean()
        errors = [np.sqrt(one[rate] * (1 - one[rate]) / one["draws"]) for rate in ("fn", "fp")]
        ax.errorbar(one["fp"], one["fn"], *errors, linestyle="none", **style(i))
    ax.set(xlabel=RATE_LABELS["fp"], ylabel=RATE_LABELS["fn"], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    _grid(ax)
    told = "lines: theory (Sec. 5); markers: simulated ± std. error,\nfive methods in one: all keep the same columns"
    figure.legend(loc="outside lower center", ncols=3, title=told)
    return "All five methods lie on one curve for each size of a coefficient"


def draw_rho(records: DataFrame, figure: Any) -> str:
    """Draw FP and FN against ρ."""
    panels = figure.subplots(1, 2)
    for ax, (rate, label) in zip(panels, RATE_LABELS.items(), strict=True):
        for method, part in records.groupby("method", sort=False):
            i = number_of(str(method))
            # ARDvi and MAP-STSBL coincide: one is drawn as a thick light line under the other.
            under = {"color": COLOURS[i], "alpha": 0.25, "linewidth": 6}
            look = {"color": COLOURS[i], "linestyle": LINES[i], "linewidth": 1.5} if method != "ARDvi" else under
            ax.plot(part["rho"], np.maximum(part[rate], 1e-12), label=method, **look)
        ax.set(xscale="log", yscale="log", ylim=(1e-6, 1.3), xlabel="squared norm of the column, ρ (log scale)")
        ax.set_ylabel(f"{label} (log scale)")
        ax.axvline(1, color="0.85", linewidth=0.8, zorder=0)
    panels[1].set_xlim(right=30)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return "A longer column is missed less often by all; only M and L then also add fewer false ones"


def draw_kappa(records: DataFrame, figure: Any) -> str:
    """Draw mean numbers of added and missed terms against κ at both noise levels."""
    panels = figure.subplots(2, 2, sharex=True)
    for row, name in zip(panels, ("added", "missed"), strict=True):
        for ax, (sigma, level) in zip(row, records.groupby("sigma"), strict=True):
            for method, part in level.groupby("method", sort=False):
                look = KAPPA_LOOKS[str(method)] | {"markersize": 4}
                groups = part.groupby("kappa")[[name, f"expected_{name}"]]
                means, errors = groups.mean(), groups.sem()
                ax.errorbar(means.index, means[name], errors[name], **(look | {"linestyle": "none", "capsize": 2}))
                ax.plot(means.index, means[f"expected_{name}"], **(look | {"marker": "none", "linewidth": 1.1}))
                told = str(method).replace("Σ_jj", r"$\Sigma_{jj}$")
                ax.plot([], [], label=f"{told} ({part['trial'].nunique()} trials)", **look)
            ax.set(xscale="log", ylabel=f"mean number of {METRIC_LABELS[name]}")
            ax.set_title(f"σ = {sigma:g}", fontsize="medium")
            ax.set_ylim(bottom=0)
            _grid(ax)
    for ax in panels[1]:
        ax.set_xlabel("condition number κ (log scale)")
    told = "markers: measured, mean ± standard error; lines: our theory of correlated columns"
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, title=told)
    return "Equal at κ = 1, the methods part on correlated columns"


def draw_merits(records: DataFrame, figure: Any) -> str:
    """Draw wrong terms against cost, with standard errors."""
    ax = figure.subplots()
    wrong = (records["added"] + records["missed"]).groupby(records["method"]).agg(["mean", "sem"])
    named, times = records.groupby("method")["named"].mean(), relative_times(records)
    costs = times.median()
    for method, cost in costs.items():
        i, (mean, error) = number_of(str(method)), wrong.loc[method]
        filled = {"fillstyle": "full" if named[method] > 0 else "none"}
        quartiles = times[method].quantile([0.25, 0.75]).to_numpy()
        spread = np.abs(quartiles - cost)[:, None]
        look = style(i) | {"markersize": 7} | filled
        ax.errorbar(cost, mean, error, spread, linestyle="none", label=method, **look)
    ax.set_xlabel("processor time of our implementation relative to plain ARD (median)")
    ax.set_ylabel("wrong terms: added + missed (mean)")
    _grid(ax)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.12)
    told = "bars: standard error of the mean, quartiles of the time\nfilled: removals have a reason"
    figure.legend(loc="outside lower center", ncols=3, title=told)
    best, like = leader(records, "wrong")
    few = f", not significantly fewer than {', '.join(like)}" if like else ""
    return f"{costs.drop('ARD').idxmin()} is the cheapest; {best} has the fewest wrong terms{few}"
