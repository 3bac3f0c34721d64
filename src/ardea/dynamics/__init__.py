"""Equations of motion from data.

Libraries list candidate terms (`libraries`, built from `terms`). `Discovery` cuts trajectories into pieces and poses
rows D x = VΘ(x)ξ (`pieces`), whitens them and corrects for noise in the terms (`errors_in_variables`), searches
supports (`subsets`, `tournament`, `search`), and writes what it found (`equations`). Differences and splines estimate
derivatives (`differences`), and `systems` holds equations whose truth is known (fields solved by `etdrk4`).
"""

from ardea.dynamics import systems
from ardea.dynamics.discovery import AmbiguityWarning, Discovery
from ardea.dynamics.libraries import Custom, FieldTerms, Fourier, Polynomials

__all__ = ["AmbiguityWarning", "Custom", "Discovery", "FieldTerms", "Fourier", "Polynomials", "systems"]
