"""Spreadsheets: a sheet of an Excel file as the text of a CSV."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ardea.tables.table import readable


def read_spreadsheet(path: Path, sheet: str | None) -> bytes:
    """Return a sheet of an Excel file (else the first) as CSV; numbers keep all digits, and lines are its rows."""
    import pandas as pd

    if find_spec("openpyxl") is None:
        raise ImportError(f"{path}: Excel files need openpyxl: pip install openpyxl. Or save it as CSV.")
    chosen: str | int = 0
    if sheet is not None:
        sheets = sheet_names(path)
        if sheet not in sheets and not (sheet.isdigit() and int(sheet) < len(sheets)):
            raise ValueError(f"{path} has no sheet {sheet!r}: there are {', '.join(sheets)} (or numbers from 0).")
        chosen = sheet if sheet in sheets else int(sheet)
    with readable(path, "a spreadsheet"):
        cells = pd.read_excel(path, sheet_name=chosen, header=None, dtype=object, na_filter=False)
    return str(cells.to_csv(index=False, header=False)).encode()


def sheet_names(path: Path) -> list[str]:
    """Return the sheets of an Excel file."""
    import pandas as pd

    with readable(path, "a spreadsheet"), pd.ExcelFile(path) as book:
        return [str(name) for name in book.sheet_names]
