"""What a page says of its data, and the program that makes its model again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ardea.show import motion
from ardea.show.answers import first_of


def of_file(source: str | os.PathLike[str] | None) -> Iterator[list[str]]:
    """Yield name, size and digest of a file; of a folder, of all its files in order."""
    if source is None:
        return
    place, digest = Path(source), hashlib.sha256()
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    for file in files:
        with file.open("rb") as content:
            hashlib.file_digest(content, lambda: digest)
    yield ["file", place.name]
    yield ["size of the file", f"{sum(file.stat().st_size for file in files):,} bytes"]
    yield ["SHA-256 of the file", digest.hexdigest()]


def of_arrays(data: Any) -> Iterator[list[str]]:
    """Yield shapes and digests of arrays, as 64-bit floats in C order; sparse and lazy data have none."""
    names = ("X", "y") if data is not None and len(data) == 2 else ("x", "t", "u")
    for name, given in zip(names, data or (), strict=False):
        if given is None or sparse.issparse(given) or hasattr(given, "dask"):
            continue
        parts = given if isinstance(given, list | tuple) else [given]
        arrays = [np.ascontiguousarray(np.asarray(part, dtype=np.float64)) for part in parts]
        yield [f"shape of {name}", first_of([" × ".join(map(str, one.shape)) or "one number" for one in arrays])]
        yield [f"SHA-256 of {name}", hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()]


def program_of(
    model: Any, level: float, reading: str | None, saved: str | None, targets: Sequence[str] | None = None
) -> str:
    """Return a program that makes the model again, or loads it, and prints the formula and the numbers of the page."""
    grouped = "\ngroups = " in (reading or "") or getattr(model, "rows", "") == "groups"
    arguments = f"X, y{', groups=groups' * grouped}"
    if hasattr(model, "simulate"):
        inputs = ", u=u" * bool(getattr(model.model_, "n_inputs", 0))
        space = ", space=space" if motion.is_field(model) else ""
        names = getattr(model.model_, "names", [one.name for one in model.equations_])  # and those of inputs
        arguments = f"x, t{inputs}{space}, feature_names={list(map(str, names))}"
    settings = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
    called = dict.fromkeys(re.findall(r"(?<![\w.])([A-Za-z]\w*)\(", settings))
    modules = [import_module(home) for home in ("numpy", "ardea.dynamics", "ardea")]
    homes = {name: home.__name__ for home in modules for name in called if hasattr(home, name)}
    imports = "".join(f"from {home} import {name}\n" for name, home in homes.items())
    data = re.sub(r", feature.*|=\w+", "", arguments)
    given = reading or f"# {data}: the data that were given to fit"
    made = f"{imports}\n{given}\nmodel = {settings}.fit({arguments})"
    if saved is not None:
        made = f"from ardea import load\n\nmodel = load({saved!r})"
    named = "model.equations_" if targets is None else f"equations_of(model, {list(targets)})"
    read = "" if targets is None else "from ardea.show.fits import equations_of\n"
    return f"""import numpy as np
import pandas as pd
{read}{made}
for equation in {named}:
    print(equation.formula())
    print(pd.DataFrame(equation.table({level:g})))"""
