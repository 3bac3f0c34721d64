"""Fields of all kinds: how often their terms are exact, how often intervals hold, time and memory.

    python -m benchmarks.fields [--draws 1] [--seed 1000] [--noises .0001,.01,.05,.1] [--only NAME,…]

Every system of `ardea.dynamics.systems.ALL_FIELDS` is fitted with its own library at every noise, each fit in a process
of its own on one thread. Noise is Gaussian, as a share of the standard deviation of all fields of a system together.
Results are saved after every system, and docs/fields_table.md is written from all that were saved. Systems in two and
three dimensions have one draw, and none with the least and the largest noise: a fit takes 10 s to half a minute. No
two fits of a system have the same seed, so that what their intervals hold is independent.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from itertools import count, islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ardea.dynamics import Discovery
from ardea.dynamics.systems import ALL_FIELDS
from benchmarks.process import ROOT, Record, machine, save_json
from benchmarks.tables import machine_line, markdown, seconds

RESULTS, PAGE = ROOT / "benchmarks" / "results" / "fields.json", ROOT / "docs" / "fields_table.md"


def trial(name: str, noise: float, seed: int) -> Record:
    """Return what one fit came to."""
    system = ALL_FIELDS[name]()
    t, u = system.noisy(noise, seed)
    options = {"feature_names": list(system.feature_names), **system.options}
    with threadpool_limits(1), warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        start = time.process_time()
        model = Discovery(system.library, derivative_order=system.order).fit(u, t, space=system.space, **options)
        spent = time.process_time() - start
    right, inside, coefficients = [], 0, 0
    for equation, true in zip(model.equations_, system.true_terms, strict=True):
        right.append(set(equation.terms) == set(true))
        if right[-1]:
            numbers = [true[term] for term in equation.terms]
            inside += int(np.sum(np.prod(equation.interval(0.95) - np.array(numbers)[:, None], axis=1) < 0))
            coefficients += len(numbers)
    return {
        "name": name,
        "noise": noise,
        "seed": seed,
        "grid": list(u.shape),
        "exact": all(right),
        "warned": len(raised),
        "inside": inside,
        "coefficients": coefficients,
        "cpu": spent,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def page(records: list[Record], said: dict[str, str]) -> str:
    """Return the table: one row for every system, one column for every noise."""
    noises = sorted({one["noise"] for one in records})
    rows = []
    for name in dict.fromkeys(one["name"] for one in records):
        own = [one for one in records if one["name"] == name]
        cells = []
        for noise in noises:
            here = [one["exact"] for one in own if one["noise"] == noise]
            cells.append(f"{sum(here)} of {len(here)}" if here else "–")
        inside, number = (sum(one[key] for one in own) for key in ("inside", "coefficients"))
        times = [one["cpu"] for one in own]
        grid = " × ".join(map(str, own[0]["grid"]))
        memory = f"{max(one['memory'] for one in own):.0f} MB"
        rows.append(
            [
                *(name, grid, *cells, f"{inside} of {number}"),
                *(str(sum(one["warned"] > 0 for one in own)), f"{seconds(min(times))}–{seconds(max(times))}", memory),
            ]
        )
    every, whole = (sum(one[key] for one in records) for key in ("inside", "coefficients"))
    header = [
        "system",
        "grid",
        *(f"exact, {100 * noise:g} %" for noise in noises),
        "95 % intervals hold",
        "warned",
        "CPU time",
    ]
    return f"""# Fields of all kinds, in numbers

Made by `python -m benchmarks.fields`. Systems of `systems.ALL_FIELDS` are fitted with their own libraries; nothing else
is told. *Exact* counts draws in which all equations have exactly the true terms; noise is Gaussian, in % of the
standard deviation of all fields together. Intervals are counted where an equation is exact: {every} of {whole} hold
the truth. Memory is the largest that a process took, Python and its packages included. Seeds from
{min(one["seed"] for one in records)} on, none twice; systems in two and three dimensions have one draw at each noise.
*Warned* counts fits with a warning.

{machine_line(said)}

{markdown([*header, "memory"], rows)}
"""


def main() -> None:
    """Run all trials, or one of them as a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--noises", default=".0001,.01,.05,.1")
    parser.add_argument("--only", default=",".join(ALL_FIELDS))
    parser.add_argument("--one", nargs=3, metavar=("NAME", "NOISE", "SEED"), help="one trial, printed as JSON")
    options = parser.parse_args()
    if options.one:
        name, noise, seed = options.one
        print(json.dumps(trial(name, float(noise), int(seed))))
        return
    saved: Any = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"records": []}
    for name in options.only.split(","):
        flat = len(ALL_FIELDS[name]().space) == 1
        noises = sorted(map(float, options.noises.split(",")))
        records = [one for one in saved["records"] if one["name"] != name]
        seeds = count(options.seed)
        for noise in noises if flat else noises[1:-1]:
            for seed in islice(seeds, options.draws if flat else 1):
                command = [sys.executable, "-m", "benchmarks.fields", "--one", name, str(noise), str(seed)]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
                records.append(json.loads(done.stdout.splitlines()[-1]))
                print(records[-1], flush=True)
        saved = {"machine": machine(), "records": records}
        save_json(RESULTS, saved)
        PAGE.write_text(page(records, saved["machine"]), encoding="utf-8")


if __name__ == "__main__":
    main()
