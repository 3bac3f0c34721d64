"""Every sentence of the paper that states a result, each with a check on records.

A check looks at the records of one experiment and returns whether the sentence is true of them, with the numbers that
say so. It is asked of the published and of the corrected records alike: what only the former bear out holds "only as
published". Statements about other work, definitions and opinions are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ardea.paper.records import Records

Check = Callable[[Records], tuple[bool, str]]
HOLDS, FAILS, PUBLISHED_ONLY, CORRECTED_ONLY, NOT_RUN = (
    "holds",
    "does not hold",
    "only as published",
    "holds once corrected",
    "not run",
)


@dataclass(frozen=True)
class Claim:
    """A sentence (shortened), where it stands, the experiment that tests it, and the test."""

    section: str
    sentence: str
    experiment: str
    check: Check

    def verdict(self, published: Records | None, corrected: Records | None) -> tuple[str, str]:
        """Return the verdict and its evidence; an experiment may exist in one variant only."""
        findings = {
            name: self.check(records)
            for name, records in (("published", published), ("corrected", corrected))
            if records
        }
        if not findings:
            return NOT_RUN, ""
        if len(findings) == 1:
            ((true, evidence),) = findings.values()
            return HOLDS if true else FAILS, evidence
        (as_published, first), (as_corrected, second) = findings["published"], findings["corrected"]
        word = {
            (True, True): HOLDS,
            (True, False): PUBLISHED_ONLY,
            (False, True): CORRECTED_ONLY,
            (False, False): FAILS,
        }[as_published, as_corrected]
        return word, f"published {first}; corrected {second}"


def mean(records: Records, method: str, metric: str) -> float:
    """Return the mean of a metric over the rows of a method."""
    return float(records.where(method=method).column(metric).mean())


def mode(records: Records, method: str, metric: str) -> int:
    """Return the most frequent value of a count."""
    values, counts = np.unique(records.where(method=method).column(metric), return_counts=True)
    return int(values[np.argmax(counts)])


def listed(records: Records, methods: Sequence[str], metric: str) -> str:
    """Return "metric: M 3.4, L 5.7, …"."""
    return f"{metric}: " + ", ".join(f"{method} {mean(records, method, metric):.3g}" for method in methods)
