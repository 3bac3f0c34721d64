"""Powers and products of columns, as columns of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ardea.names import check_candidates
from ardea.tables.columns import level_names

Products = dict[str, list[str]]  # the columns that are multiplied, by the name of the product


def products_of(names: Sequence[str], levels: Mapping[str, Sequence[str]], degree: int, pairs: bool) -> Products:
    """Return powers of columns of numbers up to a degree, and products of any two columns if wanted.

    Columns that stand for texts have no powers, and those of one text no products: both would tell nothing new.

    Examples
    --------
    >>> list(products_of(["T", "pH", "by=Bob", "by=Cy"], {"by": ["Ann", "Bob", "Cy"]}, 2, True))
    ['T^2', 'pH^2', 'T · pH', 'T · by=Bob', 'T · by=Cy', 'pH · by=Bob', 'pH · by=Cy']
    """
    owner = {name: column for column, texts in levels.items() for name in level_names(column, texts)}
    numbers = [name for name in names if name not in owner]
    found = {f"{_factor(name)}^{power}": [name] * power for name in numbers for power in range(2, degree + 1)}
    for one, other in combinations(names, 2) if pairs else ():
        if owner.get(one, one) != owner.get(other, other):
            found[f"{one} · {other}"] = [one, other]
    check_candidates([*names, *found])
    return found


def _factor(name: str) -> str:
    return name if name.isidentifier() else f"({name})"


def multiplied(values: Mapping[str, Any], products: Products) -> dict[str, Any]:
    """Return every product of columns, by its name."""
    return {name: np.prod([values[one] for one in factors], axis=0) for name, factors in products.items()}
