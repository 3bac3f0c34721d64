"""Two public benchmarks by their own protocols and measures, next to PySINDy's optimizers: dysts and ODEBench.

    python -m benchmarks.scoreboards run [BOARD] [--methods Ardea,STLSQ] [--names A,B] [--noises 0,.01] [--seed N]
                                         [--jobs 2]
    python -m benchmarks.scoreboards page        # docs/scoreboards.md from the records of fresh seeds

dysts
    82 chaotic flows, 10 periods of 100 points, noise in shares of the standard deviation of all states together,
    polynomials of the flow's own degree. Measured: whether all supports are exact, the mean of |ξ̂/ξ − 1| over the true
    terms that were found, CPU time. Our own rows are the records of `benchmarks.equations`, of the same data.
odebench
    63 systems, noise x(1 + σξ), from the first start alone; `CommonTerms()` for all of them. Measured: whether the
    symbolic form of all equations is right up to constants (`benchmarks.right_form`), whether R² > .9 of the motion
    from the first start (reconstruction) and from the second (generalisation), without noise both, CPU time.

Methods are `Ardea`, and where PySINDy is installed its optimizers, as they are and `tuned` by the truth
(`benchmarks.scoreboard_peers`). Every trial is a line of `--records`; a run that was stopped goes on from there, and
our own trials recorded with other code are done again. Seeds below 1000 are for tuning.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea.dynamics import Discovery
from benchmarks.equation_tables import FIRST_FRESH
from benchmarks.equations import LIMIT, TUNING_SEED, append, mapped, recorded, source_stamp
from benchmarks.equations import RECORDS as EQUATIONS
from benchmarks.motions import Array, Motion, dysts, integrated, odebench_whole
from benchmarks.process import ROOT, Record, cpu_limit, machine
from benchmarks.right_form import is_right, lettered
from benchmarks.scoreboard_peers import METHODS as PEERS
from benchmarks.scoreboard_peers import Peer, peer_model
from benchmarks.tables import machine_line, markdown, seconds

RECORDS = ROOT / "benchmarks" / "results" / "scoreboards.jsonl.gz"
PAGE = ROOT / "docs" / "scoreboards.md"
KEY = ("board", "name", "noise", "seed", "method")
# ODEBench's measure, and how far a motion may run before it counts as lost.
GOOD, RUNAWAY = 0.9, 1e3


@dataclass(frozen=True)
class Trial:
    """One method on one system."""

    board: str
    name: str
    noise: float
    seed: int
    method: str

    def generator(self) -> np.random.Generator:
        """Return the source of the errors, the same for all methods."""
        return np.random.default_rng([self.seed, crc32(self.name.encode())])


@dataclass(frozen=True)
class Answer:
    """What a method found: of every equation terms, coefficients and constants; and the right-hand side."""

    terms: Sequence[Sequence[str]]
    coefficients: Sequence[Array]
    constants: Sequence[dict[str, float]]
    flow: Callable[[Array], Array]


# Answers


def ours(motion: Motion, y: Array) -> Answer:
    """Fit Discovery; nothing is told."""
    model = Discovery(motion.library).fit(y, motion.t, feature_names=list(motion.states))
    constants = [{letter: one.value for letter, one in each.constants.items()} for each in model.equations_]
    return Answer(
        [lettered(one) for one in model.equations_],
        [one.coefficients for one in model.equations_],
        constants,
        lambda x: model.predict(x[None])[0],
    )


def theirs(trial: Trial, motion: Motion, y: Array) -> Answer:
    """Fit an optimizer of PySINDy."""
    judge = form_errors if trial.board == "odebench" else support_errors
    found = peer_model(PEERS[trial.method], motion, y, trial.seed, partial(judge, trial))
    return of_matrix(found)


def of_matrix(found: Peer) -> Answer:
    """Return coefficients on a library of ordinary terms as an answer."""
    kept = [np.flatnonzero(row) for row in found.coefficients]
    return Answer(
        [[found.names[j] for j in own] for own in kept],
        [row[own] for row, own in zip(found.coefficients, kept, strict=True)],
        [{} for _ in kept],
        lambda x: found.library.evaluate(x[None])[0] @ found.coefficients.T,
    )


# Data, and judging


def motion_of(trial: Trial) -> Motion:
    """Return the system of a trial."""
    return dysts()[trial.name] if trial.board == "dysts" else odebench_whole()[trial.name][0]


def noisy(trial: Trial, motion: Motion) -> Array:
    """Return the samples."""
    x = motion.solution()
    errors = trial.noise * trial.generator().normal(size=x.shape)
    return np.asarray(x + np.std(x) * errors if trial.board == "dysts" else x * (1 + errors))


def supports(motion: Motion, answer: Answer) -> Record:
    """Compare supports and coefficients with the truth."""
    false = missed = 0
    errors: list[float] = []
    for terms, values, truth in zip(answer.terms, answer.coefficients, motion.truth, strict=True):
        found = dict(zip(terms, map(float, values), strict=True))
        false, missed = false + len(found.keys() - truth.keys()), missed + len(truth.keys() - found.keys())
        errors += [abs(found[term] / truth[term] - 1) for term in found.keys() & truth.keys()]
    error = float(np.mean(errors)) if errors else float("inf")
    return {"right": not false + missed, "false": false, "missed": missed, "error": error}


def forms(motion: Motion, answer: Answer) -> Record:
    """Compare forms with the truth."""
    sides, x = [next(iter(truth)) for truth in motion.truth], motion.solution()
    each = zip(answer.terms, answer.constants, sides, strict=True)
    right = [is_right(terms, constants, side, motion.states, x) for terms, constants, side in each]
    return {"right": all(right), "equations": f"{sum(right)}/{len(right)}"}


def motions_of(trial: Trial, motion: Motion, answer: Answer) -> Record:
    """Return R² of the motions from both starts, without noise."""
    second, out = odebench_whole()[trial.name][1], {}
    for name, start in (("reconstruction", motion.x0), ("generalisation", second)):
        x = motion.solution(start)
        out[name] = r_squared(x, answer.flow, start, motion.t)
    return out


def r_squared(x: Array, flow: Callable[[Array], Array], start: Array, t: Array) -> float | None:
    """Return 1 − Σ(x̂ − x)²/Σ(x − x̄)² over all states together; None where the motion runs away."""
    limit = RUNAWAY * float(np.max(np.abs(x)))

    def inside(state: Array) -> Array:
        slope = np.asarray(flow(state), dtype=float)
        if not np.all(np.isfinite(slope)) or np.max(np.abs(state)) > limit:
            raise ValueError("runs away")
        return slope

    try:
        with np.errstate(all="ignore"):
            found = integrated(inside, start, t, 1e-8)
    except ValueError:
        return None
    return float(1 - np.sum((found - x) ** 2) / np.sum((x - x.mean(axis=0)) ** 2))


def support_errors(trial: Trial, motion: Motion, found: Peer) -> tuple[float, float]:
    """Return how wrong a model is: wrong terms, then the error of its coefficients."""
    record = supports(motion, of_matrix(found))
    return record["false"] + record["missed"], record["error"]


def form_errors(trial: Trial, motion: Motion, found: Peer) -> tuple[float, float]:
    """Return how wrong a model is: equations of a wrong form, then the error of the slopes on both true motions."""
    x = np.vstack([motion.solution(), motion.solution(odebench_whole()[trial.name][1])])
    slopes = motion.flow(x.T).T
    error = np.linalg.norm(found.library.evaluate(x) @ found.coefficients.T - slopes) / np.linalg.norm(slopes)
    kept = max(np.count_nonzero(row) for row in found.coefficients)
    # A form that is right leaves little of the slopes and has few terms: only then it is worth the judgement.
    few = error < 0.5 and kept <= MOST_TERMS
    wrong = not (few and forms(motion, of_matrix(found))["right"])
    return float(wrong), float(error)


MOST_TERMS = 8


def measured(trial: Trial, limit: float) -> Record:
    """Run one trial; whatever is raised is a result as well."""
    record: Record = {**asdict(trial), "right": False}
    motion = motion_of(trial)
    y, start = noisy(trial, motion), time.process_time()
    try:
        with cpu_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = ours(motion, y) if trial.method == "Ardea" else theirs(trial, motion, y)
        record["seconds"] = time.process_time() - start
        if trial.board == "dysts":
            return record | supports(motion, answer)
        record["found"] = [
            " + ".join(f"{value:.4g} {term}" for value, term in zip(values, terms, strict=True))
            for values, terms in zip(answer.coefficients, answer.terms, strict=True)
        ]
        with cpu_limit(limit):
            return record | forms(motion, answer) | motions_of(trial, motion, answer)
    except Exception as error:
        record.setdefault("seconds", time.process_time() - start)
        return record | {"failed": f"{type(error).__name__}: {error}"[:200]}


# Running


BOARDS = {
    "dysts": (lambda: list(dysts()), (0.0, 0.01, 0.05, 0.1)),
    "odebench": (lambda: list(odebench_whole()), (0.0, 0.01, 0.03, 0.05)),
}


def key_of(record: Record) -> tuple[object, ...]:
    """Return what names a trial."""
    return tuple(record[part] for part in KEY)


def planned(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that the options ask for."""
    out = []
    for board in BOARDS if options.board == "all" else [options.board]:
        names, noises = BOARDS[board]
        chosen = options.names.split(",") if options.names else names()
        levels = [float(one) for one in options.noises.split(",")] if options.noises else noises
        methods = options.methods.split(",") if options.methods else ["Ardea", *PEERS]
        methods = [one for one in methods if (board, one) != ("dysts", "Ardea")]
        out += [Trial(board, n, s, options.seed, m) for m, s, n in product(methods, levels, chosen)]
    return out


def run(options: argparse.Namespace) -> None:
    """Do the trials that are not recorded yet."""
    code, trials = source_stamp(), planned(options)
    records = recorded(options.records, key_of)
    done = {key_of(one) for one in records if one["method"] != "Ardea" or one["code"] == code}
    missing = [one for one in trials if key_of(asdict(one)) not in done]
    bar = tqdm(total=len(trials), initial=len(trials) - len(missing), unit="trials", disable=None)
    with threadpool_limits(1), bar:
        for record in mapped(partial(measured, limit=options.limit), missing, options.jobs):
            append(options.records, {**record, "code": code})
            bar.update()
    keys = {key_of(asdict(one)) for one in trials}
    print(tables([one for one in recorded(options.records, key_of) if key_of(one) in keys]))


# Tables


def our_flows() -> list[Record]:
    """Return our records of dysts."""
    found = [one for one in recorded(EQUATIONS) if one["case"] == "dysts" and one["form"] == "default"]
    return [one | {"board": "dysts", "method": "Ardea", "right": one["exact"]} for one in found]


def tables(records: Sequence[Record]) -> str:
    """Return one table for every board."""
    parts = []
    for board, (names, noises) in BOARDS.items():
        own = [one for one in records if one["board"] == board]
        levels = [noise for noise in noises if any(one["noise"] == noise for one in own)]
        if own:
            shown = dysts_columns if board == "dysts" else odebench_columns
            methods = list(dict.fromkeys(one["method"] for one in own))
            parts.append(f"## {board}, measured here")
            for noise in levels:
                at = [one for one in own if one["noise"] == noise]
                rows = [[m, *shown(mine)] for m in methods if (mine := [one for one in at if one["method"] == m])]
                header = DYSTS_HEADER if board == "dysts" else ODEBENCH_HEADER
                parts.append(f"{100 * noise:g} % noise\n\n{markdown(header, rows)}")
                known = {one["name"] for one in at if one["method"] == "Ardea"}
                if left := [name for name in names() if known and name not in known]:
                    parts.append(f"Not run with Ardea: {', '.join(left)}.")
    return "\n\n".join(parts)


DYSTS_HEADER = ("method", "exact supports", "median error of coefficients", "failed", "median time", "longest")
ODEBENCH_HEADER = (
    "method",
    "form right",
    "R² > 0.9: reconstruction",
    "R² > 0.9: generalisation",
    "failed",
    "median time",
    "longest",
)


def dysts_columns(records: Sequence[Record]) -> list[str]:
    """Return the row of a method."""
    errors = [np.inf if one.get("error") is None else one["error"] for one in records]
    return [_share(one["right"] for one in records), f"{np.median(errors):.2g}", *_times(records)]


def odebench_columns(records: Sequence[Record]) -> list[str]:
    """Return the row of a method."""
    good = [
        _share((one.get(which) or -np.inf) > GOOD for one in records) for which in ("reconstruction", "generalisation")
    ]
    return [_share(one["right"] for one in records), *good, *_times(records)]


def _share(values: Iterable[bool]) -> str:
    given = list(values)
    return f"{sum(given)} of {len(given)}"


def _times(records: Sequence[Record]) -> list[str]:
    times = [one["seconds"] for one in records] or [0.0]
    return [str(sum("failed" in one for one in records)), seconds(float(np.median(times))), seconds(max(times))]


def rewrite_page(path: Path) -> None:
    """Write the tables of fresh seeds into the page; the records are packed in one piece."""
    records = recorded(path, key_of)
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    fresh = [record for record in (*our_flows(), *records) if record["seed"] >= FIRST_FRESH]
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition("<!-- tables -->")
    wrong = sorted((r for r in records if r["method"] == "Ardea" and not r["right"] and r in fresh), key=key_of)
    listed = "\n".join(f"- {r['name']}, {100 * r['noise']:g} %: {_what(r)}" for r in wrong)
    seeds = ", ".join(map(str, sorted({record["seed"] for record in fresh})))
    parts = [
        head + mark,
        f"{machine_line(machine())} Seeds: {seeds}.",
        tables(fresh),
        "## ODEBench: where Ardea is not right",
        listed,
    ]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _what(record: Record) -> str:
    if "failed" in record:
        return str(record["failed"])
    return f"{record['equations']} equations; found " + "; ".join(f"`{side or '0'}`" for side in record["found"])


def main(arguments: Iterable[str] | None = None) -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "table", "page"))
    parser.add_argument("board", nargs="?", default="all", choices=[*BOARDS, "all"])
    parser.add_argument("--methods")
    parser.add_argument("--names")
    parser.add_argument("--noises")
    parser.add_argument("--seed", type=int, default=TUNING_SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of CPU time of a fit")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.command == "run":
        run(options)
    elif options.command == "table":
        print(tables(recorded(options.records, key_of)))
    else:
        rewrite_page(options.records)


if __name__ == "__main__":
    main()
