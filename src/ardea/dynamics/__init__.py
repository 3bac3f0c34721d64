"""Equations of motion from data.

Libraries list candidate terms (`libraries`, built from `products`), differences and splines estimate derivatives
(`differences`), and `systems` holds equations whose truth is known (fields solved by `etdrk4`).
"""

from ardea.dynamics import systems
from ardea.dynamics.libraries import Custom, FieldTerms, Fourier, Polynomials

__all__ = ["Custom", "FieldTerms", "Fourier", "Polynomials", "systems"]
