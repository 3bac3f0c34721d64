"""Equations of motion from data.

Libraries list candidate terms (`libraries`, of `terms`). `Discovery` checks the data (`series`; `fields`),
makes rows of them (`rows`; `field_equation`), whitens them and corrects for noise in the terms (`whitening`), searches
supports (`search`) and runs what it found (`models`, `simulation`). Differences and splines estimate derivatives
(`differences`), and `systems` holds equations whose truth is known (fields solved by `field_simulation`).
"""

from ardea.dynamics import systems
from ardea.dynamics.discovery import AmbiguityWarning, Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Custom, Fourier, Polynomials

__all__ = [
    "AmbiguityWarning",
    "Custom",
    "Discovery",
    "FieldTerms",
    "Fourier",
    "Polynomials",
    "systems",
]
