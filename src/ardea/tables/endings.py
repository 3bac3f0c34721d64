"""What the name of a file tells of its kind, and which folders are one table."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

from ardea.tables.table import ARRAYS, PARQUET, SPREADSHEETS

KNOWN = (".csv", ".tsv", ".txt", ".dat", ".npy", *PARQUET, *SPREADSHEETS, *ARRAYS)
PACKED = {".gz": (b"\x1f\x8b", gzip.open), ".bz2": (b"BZh", bz2.open), ".xz": (b"\xfd7zXZ", lzma.open)}
# What Spark, Dask and Arrow call the parts of one table.
PART = re.compile(r"part[-._][^/]*\.parquet")


def ending_of(path: Path) -> str:
    """Return the ending that tells the kind of a file; .csv for .csv.gz and for pipes, .parquet for folders of it."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    ending = (path.with_suffix("") if path.suffix.lower() in PACKED else path).suffix.lower()
    if is_dataset(path):
        return ".parquet"
    if path.is_dir() and ending != ".zarr":
        parts = " Parquet files are parts of one table where all are called part-0.parquet and so on."
        known = parts * any(path.glob("*.parquet"))
        raise ValueError(f"{path} is a directory, not a table: name a file in it.{known}")
    if not path.is_file() and not path.is_dir():
        return ".csv"
    if ending in (".xls", ".ods"):
        raise ValueError(f"{path} is a spreadsheet of a kind that is not read: save it as CSV or .xlsx.")
    if ending not in KNOWN:
        raise ValueError(f"{path}: the ending {ending!r} is not known. Read are {', '.join(KNOWN)}, and .csv.gz.")
    return ending


def is_dataset(path: Path) -> bool:
    """Whether a folder holds parts of one table, and nothing else: by their names, or by its own, x.parquet.

    What begins with a dot or an underscore tells how the parts were written.
    """
    if not path.is_dir():
        return False
    names = [one.name for one in path.iterdir() if not one.name.startswith((".", "_"))]
    form = PART if path.suffix.lower() != ".parquet" else re.compile(r".*\.parquet")
    return bool(names) and all(map(form.fullmatch, names))
