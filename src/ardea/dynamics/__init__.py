"""Equations of motion from data.

Libraries list candidate terms (`libraries`, `field_terms`, of `terms`), some of functions, which may hold unknown
constants (`parametric`, of `formulas`; in a search `inside`). `Discovery` checks the data (`series`;
`fields`). States are found on the likelihood of their trajectory (`trajectory`, `course`), or from rows that are
whitened and corrected for noise in the terms (`rows`; of fields `field_equation`), whose supports are searched
(`search`). What was found is run (`models`, `simulation`). Differences and splines estimate derivatives
(`differences`), and `systems` holds equations whose truth is known (fields solved by `field_simulation`).
"""

from ardea.dynamics import systems
from ardea.dynamics.answers import AmbiguityWarning, KnowledgeWarning, MisfitWarning
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Polynomials
from ardea.dynamics.parametric import (
    CommonTerms,
    Custom,
    Decay,
    Fourier,
    Oscillation,
    Parametric,
    Power,
    Rational,
    Saturation,
)

__all__ = [
    "AmbiguityWarning",
    "CommonTerms",
    "Custom",
    "Decay",
    "Discovery",
    "FieldTerms",
    "Fourier",
    "KnowledgeWarning",
    "MisfitWarning",
    "Oscillation",
    "Parametric",
    "Polynomials",
    "Power",
    "Rational",
    "Saturation",
    "systems",
]
