"""The scikit-learn side: input checks, the seven estimators, the search along a path, advice."""

from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch

__all__ = ["ARD", "LSTSBL", "MAPSTSBL", "MSTSBL", "ARDSearch", "ARDr", "ARDvi", "SparseARD"]
