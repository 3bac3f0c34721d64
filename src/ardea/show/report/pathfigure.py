"""The path of a search: a picture whose points tell their model, and a table that says the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.estimators.search import ARDSearch
from ardea.show.report.described import column_names, estimator_of, signed
from ardea.show.report.page import escaped, table

WIDTH, PANEL, GAP, LEFT, RIGHT, TOP, BOTTOM = 720, 150, 34, 64, 16, 22, 40
MOST_NAMES = 8


def path_section(search: ARDSearch) -> str:
    """Return picture, box and table of the path."""
    finite = np.isfinite(search.path_["strength"])
    picture = _picture(search) if finite.any() else ""
    return picture + _table(search)


def _named(search: ARDSearch, place: int) -> str:
    """Return the terms of one model of the path, the first few by name."""
    names = column_names(estimator_of(search))
    kept = [names[j] for j in np.flatnonzero(search.path_["support"][place])]
    shown = ", ".join(kept[:MOST_NAMES])
    return (shown or "none") + (f" and {len(kept) - MOST_NAMES} more" if len(kept) > MOST_NAMES else "")


def _told(search: ARDSearch, place: int) -> str:
    """Return what is known of one model, in a sentence or two."""
    path = search.path_
    k = int(path["k"][place])
    text = f"{path['method'][place]}, {path['varied'][place]} = {path['strength'][place]:.3g}: "
    text += f"{k} term{'s' * (k != 1)} ({_named(search, place)}), {search.criterion} {signed(path['score'][place], 6)}."
    if place == search.best_index_:
        return f"Chosen. {text}"
    return text if path["eligible"][place] else f"{text} Too many terms for the number of rows: takes no part."


def _picture(search: ARDSearch) -> str:
    path = search.path_
    same = (path["method"] == path["method"][search.best_index_]) & np.isfinite(path["strength"])
    places = np.flatnonzero(same)[np.argsort(path["strength"][same], kind="stable")]
    strength = path["strength"][places]
    x = _scaled(np.log10(strength) if np.all(strength > 0) else strength, LEFT + 14, WIDTH - RIGHT - 14)
    eligible = path["eligible"][places]
    terms = _scaled(path["k"][places].astype(float), TOP + PANEL, TOP + 8)
    low = TOP + PANEL + GAP
    score = np.where(eligible, path["score"][places], np.nan)
    heights = _scaled(score, low + PANEL - 6, low + 8)
    shapes = [_line(x, terms), _line(x[eligible], heights[eligible])]
    edges = np.concatenate([[LEFT], (x[1:] + x[:-1]) / 2, [WIDTH - RIGHT]])
    for i, place in enumerate(places):
        kind = "chosen" if place == search.best_index_ else "" if eligible[i] else "out"
        told = escaped(_told(search, int(place)))
        second = f'<circle class="dot" cx="{x[i]:.1f}" cy="{heights[i]:.1f}" r="4"/>' if eligible[i] else ""
        shapes.append(
            f'<g class="model {kind}" tabindex="0" role="img" aria-label="{told}"><title>{told}</title>'
            f'<rect class="strip" x="{edges[i]:.1f}" y="{TOP}" width="{edges[i + 1] - edges[i]:.1f}" '
            f'height="{2 * PANEL + GAP}"/><circle class="dot" cx="{x[i]:.1f}" cy="{terms[i]:.1f}" r="4"/>{second}</g>'
        )
    shapes += _axes(path, places, score, strength, x, search)
    height = TOP + 2 * PANEL + GAP + BOTTOM
    best = escaped(_told(search, search.best_index_))
    return (
        f'<figure><svg class="path" data-box="path-model" viewBox="0 0 {WIDTH} {height}" role="group" '
        f'aria-label="Terms kept and criterion along the path, one point for each model">{"".join(shapes)}</svg>'
        "<figcaption>Above: terms kept. Below: the criterion, smaller is better. Point at a model, or step through "
        "them with the tabulator key, to see it; the table has all of them.</figcaption></figure>"
        f'<output id="path-model" aria-live="polite">{best}</output>'
    )


def _scaled(values: Array, start: float, end: float) -> Array:
    """Return values moved to a range of the picture, NaN left alone."""
    low, high = np.nanmin(values), np.nanmax(values)
    share = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.5)
    return np.asarray(start + share * (end - start))


def _line(x: Array, y: Array) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="line" points="{points}"/>'


def _axes(path: Any, places: Any, score: Array, strength: Array, x: Array, search: ARDSearch) -> list[str]:
    low = TOP + PANEL + GAP
    bottom = low + PANEL
    k = path["k"][places]
    labels = [
        _text(LEFT - 6, TOP + 12, f"{k.max()}", "end"),
        _text(LEFT - 6, TOP + PANEL, f"{k.min()}", "end"),
        _text(LEFT, TOP - 8, "terms kept"),
        _text(LEFT, low - 8, f"criterion: {search.criterion}"),
        _text(LEFT - 6, low + 12, signed(float(np.nanmax(score))), "end"),
        _text(LEFT - 6, bottom, signed(float(np.nanmin(score))), "end"),
        _text(WIDTH / 2, bottom + 34, f"{path['varied'][places[0]]} ({path['method'][places[0]]})", "middle"),
    ]
    shown = np.unique(np.linspace(0, len(places) - 1, min(len(places), 5)).round().astype(int))
    labels += [_text(float(x[i]), bottom + 16, f"{strength[i]:.2g}", "middle") for i in shown]
    frame = [f'<path class="axis" d="M{LEFT},{top} V{top + PANEL} H{WIDTH - RIGHT}"/>' for top in (TOP, low)]
    return [*frame, *labels]


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'


def _table(search: ARDSearch) -> str:
    path = search.path_
    rows = []
    for place in range(len(path["k"])):
        mark = "chosen" if place == search.best_index_ else "" if path["eligible"][place] else "takes no part"
        rows.append(
            [
                f"{path['method'][place]}, {path['varied'][place] or 'no strength'} = {path['strength'][place]:.3g}",
                int(path["k"][place]),
                signed(float(path["score"][place]), 6),
                _named(search, place),
                mark,
            ]
        )
    header = ["model", "terms", search.criterion, "which", "remark"]
    return table("Every model of the path", header, rows, chosen=search.best_index_)
