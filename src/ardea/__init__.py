"""Ardea: linear models with very few terms and honest error bars.

The data flow: rows are compressed (:mod:`ardea.core.compression`), one outer loop finds prior variances that maximise
the evidence (:mod:`ardea.core.reweighted`), a threshold or a prior on them decides which terms stay
(:mod:`ardea.methods.thresholds`, :mod:`ardea.priors`), and an estimator turns the result into scikit-learn attributes
(:mod:`ardea.estimators.family`). How strict a threshold is follows from the number of false terms one accepts
(:mod:`ardea.rates`).
"""

from ardea import priors, rates
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD, advice
from ardea.estimators.advice import CollapseWarning
from ardea.estimators.operators import Operator
from ardea.persistence import ModelFileError, load, save
from ardea.versions import __version__, show_versions

__all__ = [
    "ARD",
    "LSTSBL",
    "MAPSTSBL",
    "MSTSBL",
    "ARDSearch",
    "ARDr",
    "ARDvi",
    "CollapseWarning",
    "ModelFileError",
    "Operator",
    "SparseARD",
    "__version__",
    "advice",
    "load",
    "priors",
    "rates",
    "save",
    "show_versions",
]
