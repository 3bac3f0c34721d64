"""What a check of a sentence returns, and the verdict that follows from several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ardea.paper.regressions import METHODS

if TYPE_CHECKING:
    from pandas import DataFrame


class Finding(NamedTuple):
    """Whether a sentence is true of some records, the numbers, and how far that hangs on what its words mean."""

    true: bool
    evidence: str
    margin: str = ""


Check = Callable[["DataFrame"], Finding | None]
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
PUBLISHED_ONLY, CORRECTED_ONLY = "only as published", "holds once corrected"
WORDS = {(True, True): HOLDS, (True, False): PUBLISHED_ONLY, (False, True): CORRECTED_ONLY, (False, False): FAILS}
# Resamples of the trials that tell how far a verdict hangs on the draw.
RESAMPLES = 50


def verdict(found: Sequence[tuple[str, Finding]]) -> tuple[str, str, str]:
    """Return the verdict on a sentence, its evidence and its margin, from findings by source, corrected ones last."""
    if not found:
        return NOT_RUN, "", ""
    word = WORDS[found[0][1].true, found[-1][1].true]
    evidence = "; ".join(f"{source}: {one.evidence}" if len(found) > 1 else one.evidence for source, one in found)
    margins = [f"{source}: {one.margin}" if len(found) > 1 else one.margin for source, one in found if one.margin]
    return word, evidence, "; ".join(margins)


def steadiness(check: Check, records: DataFrame) -> float:
    """Return the share of resamples of the trials (with replacement) in which a check comes to the same truth."""
    rows = records[records["method"].isin(METHODS)].sort_values("trial", kind="stable")
    rows = rows.reset_index(drop=True)
    sizes = rows.groupby("trial").size()
    first = check(rows)
    if first is None or sizes.nunique() != 1 or len(sizes) < 2:
        return np.nan
    places, generator = np.arange(len(rows)).reshape(len(sizes), -1), np.random.default_rng(0)
    same = 0
    for _ in range(RESAMPLES):
        drawn = places[generator.integers(len(sizes), size=len(sizes))].ravel()
        again = check(rows.take(drawn).assign(trial=np.repeat(np.arange(len(sizes)), places.shape[1])))
        same += again is not None and again.true == first.true
    return same / RESAMPLES


def at_most(word: str, bound: float, values: Mapping[str, float], evidence: str) -> Finding:
    """Find that all values are within a bound, which is what a word means; they are shares of what is compared with."""
    worst = max(values, key=lambda name: values[name])
    margin = f"“{word}” is at most {bound:g} times; turns at {values[worst]:.2g} ({worst})"
    return Finding(bool(values[worst] <= bound), evidence, margin)
