"""What stands for "no value": texts, and codes such as -999 among numbers that a file holds as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What spreadsheets write where a formula has no value, in English and German.
ERRORS = (
    *("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"),
    *("#NV", "#BEZUG!", "#WERT!", "#ZAHL!"),
)
# What stands in cells that hold nothing (a convention: what pandas takes, and what R, SAS and spreadsheets write).
# "Na" is not among them: it is sodium.
MISSING = (
    *("", "-", "--", "?", ".", "NA", "na", "N/A", "n/a", "n.a.", "<NA>", "nan", "NaN", "NAN", "NULL", "null"),
    *("Null", "None", "none", "NONE"),
    *ERRORS,
)


class Codes:
    """What `--na` names: numbers become NaN where they stand, and what stands nowhere is remembered.

    Examples
    --------
    >>> codes = Codes(["-999", "void"])
    >>> codes.emptied(np.array([1, -999, 3])), codes.unmet()
    (array([ 1., nan,  3.]), ['--na void: no cell that was read holds this'])
    """

    def __init__(self, na: Sequence[str]) -> None:
        self._unseen = dict.fromkeys(one for one in na if one != "none")
        self._numbers: dict[str, float] = {}
        for token in self._unseen:
            with suppress(ValueError):
                self._numbers[token] = float(token)

    def emptied(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return numbers with NaN in place of the codes; others as they are."""
        if values.dtype.kind not in "fiu" or not self._numbers:
            return values
        out = values
        for token, number in self._numbers.items():
            # As the file has it: 99.9 in single precision is another number.
            here = values == (values.dtype.type(number) if values.dtype.kind == "f" else number)
            if np.any(here):
                self._unseen.pop(token, None)
                out = np.where(here, np.nan, out)
        return out

    def emptied_frame(self, frame: Any) -> Any:
        """Return a frame of a table with gaps in place of the codes; texts are told as empty where they are read."""
        changed: dict[str, Any] = {}
        for name, column in frame.items():
            if getattr(column.dtype, "kind", "O") in "fiu":
                values = column.to_numpy(dtype=float, na_value=np.nan) if column.isna().any() else column.to_numpy()
                emptied = self.emptied(values)
                changed |= {} if emptied is values else {name: emptied}
            else:
                for token in [one for one in self._unseen if (column.astype(str) == one).any()]:
                    del self._unseen[token]
        return frame.assign(**changed)

    def unmet(self) -> list[str]:
        """Return which codes stood nowhere, once all was read."""
        return [f"--na {token}: no cell that was read holds this" for token in self._unseen]
