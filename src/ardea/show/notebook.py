"""What a notebook shows of a fitted model: the few terms with their intervals, then scikit-learn's diagram.

Colours are those of the notebook (`currentColor`), so that light, dark and grey all work; without styles (a notebook
that is not trusted) a plain table is left. Whatever comes from the user passes through `escaped`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ardea.dynamics.discovery import Discovery
from ardea.dynamics.times import per_unit
from ardea.equation import Summary
from ardea.estimators.search import ARDSearch
from ardea.show.report import concerns
from ardea.show.report.described import Line, Sum, described, estimator_of, signed
from ardea.show.report.page import escaped

LEVEL = 0.95
MOST_ROWS = 30
LONGEST_NAME = 60
MOST_WARNINGS = 5
# Width and height of the picture of an interval, and the room left at its ends for the dot.
WIDTH, HEIGHT, ROOM = 96, 12, 4

# A notebook is one page with many outputs: no rule reaches beyond our own elements, nor into scikit-learn's diagram.
STYLE = """
.ardea { overflow-x: auto; }
.ardea > p { margin: .3em 0; }
.ardea > ul { margin: .3em 0; padding-left: 1.3em; }
.ardea > details > summary { cursor: pointer; }
.ardea > table { border-collapse: collapse; margin: .4em 0; font-variant-numeric: tabular-nums; }
.ardea > table th, .ardea > table td { padding: .15em .8em .15em 0; text-align: right; white-space: nowrap; }
.ardea > table th.name { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.ardea > table tbody th.name { font-weight: normal; }
.ardea > table thead th { font-weight: 600; border-bottom: 1px solid currentColor; }
.ardea > table th.group { text-align: left; padding-top: .6em; font-weight: 600; }
.ardea > table svg { display: inline-block; vertical-align: middle; }
"""
# Dollar signs in the names of columns are no formulas: both classes keep MathJax away.
CLASSES = "ardea tex2jax_ignore mathjax_ignore"


def model_html(model: Any) -> str:
    """Return a fitted estimator, search or discovery as HTML; before the fit, scikit-learn's diagram alone.

    Coefficients and intervals are those to report: least squares on the kept columns, or the posterior where there are
    too few rows for that. At most 30 terms are shown.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> shown = model_html(SparseARD().fit(X, 2 * X[:, 3] + 0.1 * rng.normal(size=100)))
    >>> "1 of 20 terms" in shown, "<bdi>x3</bdi>" in shown
    (True, True)
    """
    if isinstance(model, Discovery):
        return discovery_html(model)
    if not _is_fitted(model):
        return str(estimator_html_repr(model))
    fitted = estimator_of(model)
    sums = described(model, LEVEL)
    kept, possible = sum(len(found.lines) for found in sums), len(sums) * fitted.n_features_in_
    by_posterior = any(terms.refit is None for terms in fitted.equations_)
    caption = [
        f"{kept} of {possible} terms kept{_noise(sums)}",
        f"certificate {np.max(fitted.kkt_gap_):.0e} (tol {fitted.tol:.0e})",
        f"{100 * LEVEL:g} % intervals of {'the posterior' if by_posterior else 'least squares on the kept terms'}",
    ]
    doubts = concerns.of_estimator(fitted, sums, ())
    said = "warnings/convergence" if np.any(fitted.kkt_gap_ > fitted.tol) else None  # among the doubts already
    notes = [note for note in _warned(model, fitted) if said is None or said not in note]
    doubts = [*concerns.of_fit(notes), *doubts]
    return _page(_method(model), caption, _table(sums, grouped=len(sums) > 1), doubts, model)


def discovery_html(model: Discovery) -> str:
    """Return found equations as HTML: the terms of each with their intervals; before the fit, the diagram alone.

    Parameters
    ----------
    model : Discovery
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> from ardea.dynamics import Discovery, systems
    >>> t, x = systems.lorenz63().noisy(0.01, seed=0)
    >>> shown = discovery_html(Discovery().fit(x, t, feature_names=["x", "y", "z"]))
    >>> "7 terms in 3 equations" in shown, "<bdi>x y</bdi>" in shown
    (True, True)
    """
    if not _is_fitted(model):
        return str(estimator_html_repr(model))
    sums = described(model, LEVEL)
    kept = sum(len(found.lines) for found in sums)
    caption = [
        f"{_count(kept, 'term')} in {_count(len(sums), 'equation')}, chosen from {model.coef_.shape[1]} for each",
        f"{100 * LEVEL:g} % intervals",
    ]
    rate = per_unit(getattr(model, "time_unit_", None))
    caption += [f"rates {rate}"] if rate and not model.discrete_time else []
    doubts = concerns.of_discovery(model, _warned(model))
    return _page(type(model).__name__, caption, _table(sums, grouped=True), doubts, model)


def summary_html(summary: Summary) -> str:
    """Return the table of `model.summary()` as HTML.

    Parameters
    ----------
    summary : Summary
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> table = {"term": ["<b>"], "coef": [1.0], "std": [0.1], "95% low": [0.8], "95% high": [1.2]}
    >>> shown = summary_html(Summary(table, "SparseARD: 1 of 9 terms kept"))
    >>> "&lt;b&gt;" in shown, "<b>" in shown
    (True, False)
    """
    columns = summary.columns
    interval = next(name.removesuffix(" low") for name in columns if name.endswith(" low"))
    names = ("term", "coef", "std", f"{interval} low", f"{interval} high")
    lines = [Line(*row) for row in zip(*(columns[name] for name in names), strict=True)]
    targets = columns.get("target", [""] * len(lines))
    sums = [
        Sum(target, None, tuple(line for line, own in zip(lines, targets, strict=True) if own == target), np.nan, 0)
        for target in dict.fromkeys(targets)
    ]
    table = _table(sums, grouped="target" in columns, interval=f"{interval.rstrip('%')} % interval")
    return _wrapped(f"<p>{escaped(summary.caption)}</p>{table}")


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _warned(*models: Any) -> list[str]:
    """Return what the fits have warned of, each warning once."""
    return list(dict.fromkeys(note for model in models for note in getattr(model, "warnings_", ())))


def _method(model: Any) -> str:
    if not isinstance(model, ARDSearch):
        return type(model).__name__
    varied = model.path_["varied"][model.best_index_]
    chosen = {
        name: value
        for name, value in model.best_params_.items()
        if isinstance(value, Real) and (name != "false_terms" or varied == "false_terms")
    }
    told = ", ".join(f"{name}={value:.4g}" for name, value in chosen.items())
    best = f"{type(model.best_estimator_).__name__}({told})"
    return f"{best}, the best of {_count(len(model.path_['k']), 'model')} by {model.criterion!r}"


def _noise(sums: Sequence[Sum]) -> str:
    """Return the noise of one target; several have theirs in the table."""
    return f", noise σ = {sums[0].noise:.4g}" if len(sums) == 1 else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _page(method: str, caption: Sequence[str], table: str, doubts: Sequence[concerns.Concern], model: Any) -> str:
    """Return caption, table, doubts and, folded, scikit-learn's diagram."""
    head = f"<p><strong>{escaped(method)}</strong>: {escaped('; '.join(caption))}.</p>"
    shown = "".join(
        f"<li><strong>{escaped(short)}</strong> {escaped(rest)}</li>" for short, rest in doubts[:MOST_WARNINGS]
    )
    beyond = len(doubts) - MOST_WARNINGS
    shown += f"<li>… and {beyond} more; the report lists them.</li>" if beyond > 0 else ""
    told = f"<ul>{shown}</ul>" if doubts else ""
    diagram = f"<details><summary>Parameters</summary>{estimator_html_repr(model)}</details>"
    return _wrapped(head + table + told + diagram)


def _wrapped(body: str) -> str:
    return f'<div class="{CLASSES}"><style>{STYLE}</style>{body}</div>'


def _table(sums: Sequence[Sum], *, grouped: bool, interval: str = f"{100 * LEVEL:g} % interval") -> str:
    """Return the terms, one body of the table for every equation, and how many are not shown."""
    shown = _cut(sums)
    bodies = "".join(_body(found, grouped=grouped) for found in shown)
    if not bodies:
        return ""
    header = "".join(f'<th scope="col">{name}</th>' for name in ("coefficient", interval, "against 0"))
    header = f'<th scope="col" class="name">term</th>{header}'
    return f"<table><thead><tr>{header}</tr></thead>{bodies}</table>{_rest(sums, shown)}"


def _cut(sums: Sequence[Sum]) -> list[Sum]:
    """Return as many terms as are shown, in equations of which the last may be cut short."""
    shown, room = [], MOST_ROWS
    for found in sums:
        if room <= 0:
            break
        shown.append(replace(found, lines=found.lines[:room]))
        room -= max(len(found.lines), 1)
    return shown


def _rest(sums: Sequence[Sum], shown: Sequence[Sum]) -> str:
    terms = sum(len(found.lines) for found in sums) - sum(len(found.lines) for found in shown)
    equations = len(sums) - len(shown)
    parts = [f"{terms} more"] if terms else []
    parts += [f"{_count(equations, 'equation')} not shown"] if equations else []
    return f"<p>… and {'; '.join(parts)}</p>" if parts else ""


def _body(found: Sum, *, grouped: bool) -> str:
    rows = [_row(line) for line in found.lines]
    if found.intercept is not None:
        rows.append(
            f'<tr><th scope="row" class="name">constant</th><td>{signed(found.intercept)}</td><td></td><td></td></tr>'
        )
    if grouped:
        noise = f", noise σ = {found.noise:.4g}" if np.isfinite(found.noise) else ""
        rows.insert(0, f'<tr><th scope="rowgroup" class="group" colspan="4">{_name(found.left)}{noise}</th></tr>')
    return f"<tbody>{''.join(rows)}</tbody>" if rows else ""


def _row(line: Line) -> str:
    coefficient, _, low, high = line.shown()
    return (
        f'<tr><th scope="row" class="name">{_name(line.name)}</th><td>{coefficient}</td>'
        f"<td>{low} to {high}</td><td>{_picture(line)}</td></tr>"
    )


def _name(name: str) -> str:
    """Return a name that stays what it is: no markup, no endless line, and its direction of writing to itself."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f"<bdi>{escaped(short)}</bdi>"


def _picture(line: Line) -> str:
    """Return estimate and interval as a dot on a line, zero in the middle, in units of the end further from zero.

    So the picture does not depend on the unit of the column: it shows the sign, and how far from zero the interval is.
    """
    ends = np.array([line.low, line.coef, line.high])
    size = np.abs(ends).max()
    if not np.isfinite(size):
        return ""
    half = WIDTH / 2
    low, dot, high = half + (half - ROOM) * (ends / size if size > 0 else ends)
    middle = HEIGHT // 2
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f'<path d="M{half:g} 0V{HEIGHT}" stroke="currentColor" stroke-opacity=".45"/>'
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{dot:.1f}" cy="{middle}" r="3" fill="currentColor"/></svg>'
    )
