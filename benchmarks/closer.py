"""What brings SparseARD closer to the oracle on the paper's Linear and Fourier problems, and what does not.

    python -m benchmarks.closer [--linear-trials 100] [--fourier-trials 30] [--seed 1000]

Each variant starts from SparseARD's model and looks at neighbouring ones (a term added, dropped or exchanged) by the
criterion `evidence`, L + 2k + 2 ln C(d, k):

- "add": terms whose statistic against the model exceeds the cut come back, then backward elimination again;
- "add, drop, swap": the best neighbour is taken while one is better;
- "averaged": the mean coefficients over all models met, weighted by exp(−½ criterion); no exact zeros;
- "noise told": SparseARD with the true σ².
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from tqdm import tqdm

from ardea import ARD, SparseARD, rates
from ardea.core.evidence import posterior, slopes_and_scores
from ardea.core.loop import Fit
from ardea.estimators.inputs import CheckedRows
from ardea.methods.task import Task, Wish, tasks_of
from ardea.methods.thresholds import SEARCHES, Rule
from benchmarks.cases import fourier, linear
from benchmarks.process import save_json

Array = NDArray[np.float64]
Index = NDArray[np.intp]
RESULT = Path(__file__).parent / "results" / "closer.json"
FALSE_TERMS = 0.3
WEAKEST_TRIED, ENTRANTS_TRIED = 8, 5


class Neighbourhood:
    """Models around a support, fitted by ARD and ranked by the evidence criterion; remembers all it met."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.met: dict[tuple[int, ...], tuple[float, Fit]] = {}

    def criterion(self, fit: Fit) -> float:
        """Return L + 2k + 2 ln C(d, k)."""
        k, d = fit.posterior.active.size, self.task.problem.n_candidates
        return fit.posterior.cost + 2 * k + 2 * (gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1))

    def fitted(self, columns: Index, noise: float) -> tuple[float, Fit]:
        """Return criterion and fit of ARD on some columns."""
        key = tuple(sorted(columns.tolist()))
        if key not in self.met:
            problem = self.task.problem
            chosen = np.array(key, dtype=np.intp)
            fit = self.task.run(problem.restrict(chosen), noise).on(problem.n_columns, chosen)
            self.met[key] = (self.criterion(fit), fit)
        return self.met[key]

    def statistics(self, gamma: Array, noise: float) -> Array:
        """Return t² = q²/M of every column outside the model, zero inside."""
        post = posterior(self.task.problem, gamma, noise)
        slopes, scores = slopes_and_scores(self.task.problem, post)
        return np.where(gamma > 0, 0.0, scores**2 / np.where(slopes > 0, slopes, np.inf))

    def around(self, fit: Fit) -> list[Index]:
        """Return supports with one term more, one less, or one exchanged."""
        active = fit.posterior.active
        entrants = np.argsort(-self.statistics(fit.gamma, fit.noise))[:ENTRANTS_TRIED]
        supports = [np.append(active, j) for j in entrants]
        for i in np.argsort(fit.posterior.mean**2 / fit.posterior.variance)[:WEAKEST_TRIED]:
            rest = np.delete(active, i)
            supports.append(rest)
            gamma = fit.gamma.copy()
            gamma[active[i]] = 0.0
            t_square = self.statistics(gamma, fit.noise)
            t_square[active[i]] = 0.0
            supports += [np.append(rest, j) for j in np.argsort(-t_square)[:3]]
        return [support for support in supports if support.size]

    def descended(self, fit: Fit) -> Fit:
        """Take the best neighbour while one is better."""
        best, fit = self.fitted(fit.posterior.active, fit.noise)
        while True:
            score, neighbour = min((self.fitted(s, fit.noise) for s in self.around(fit)), key=lambda pair: pair[0])
            if score >= best - 1e-9:
                return fit
            best, fit = score, neighbour

    def averaged(self) -> Array:
        """Return the mean over the models met, weighted by exp(−½ criterion)."""
        scores = np.array([score for score, _ in self.met.values()])
        weights = np.exp(-0.5 * (scores - scores.min()))
        mean = np.zeros(self.task.problem.n_columns)
        for weight, (_, fit) in zip(weights / weights.sum(), self.met.values(), strict=True):
            mean[fit.posterior.active] += weight * fit.posterior.mean
        return mean * self.task.unit


def with_terms_added_back(neighbourhood: Neighbourhood, fit: Fit) -> Fit:
    """Add the strongest outsider while its statistic exceeds the cut, and eliminate backward after each."""
    task = neighbourhood.task
    cut = float(rates.strength_for("vi", task.false_positive_rate(FALSE_TERMS)))
    rule = Rule(SEARCHES["backward"], Wish(false_terms=FALSE_TERMS).price(task))
    while True:
        t_square = neighbourhood.statistics(fit.gamma, fit.noise)
        entrant = int(np.argmax(t_square))
        if t_square[entrant] < cut:
            return fit
        columns = np.sort(np.append(fit.posterior.active, entrant))
        first = task.run(task.problem.restrict(columns), fit.noise)
        new = task.sequential(rule, first, columns)
        if neighbourhood.criterion(new) >= neighbourhood.criterion(fit):
            return fit
        fit = new


def coefficients(task: Task, fit: Fit) -> Array:
    """Return the posterior mean over all columns in the data's units."""
    mean = np.zeros(task.problem.n_columns)
    mean[fit.posterior.active] = fit.posterior.mean
    return mean * task.unit


def estimates(X: Array, y: Array, truth: Array) -> dict[str, Array]:
    """Return the coefficients of every variant."""
    problems, coordinates = CheckedRows(X, y[:, None], None, None, True).pose(intercept=False, keep=[])
    (task,) = tasks_of(problems, coordinates, (None, 500, 1e-6))
    start = SparseARD.method.solve(task, Wish(false_terms=FALSE_TERMS), None)
    around = Neighbourhood(task)
    added = with_terms_added_back(around, start)
    descended = around.descended(start)
    support = truth != 0
    oracle, oracle_ard = np.zeros_like(truth), np.zeros_like(truth)
    oracle[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
    oracle_ard[support] = ARD(fit_intercept=False).fit(X[:, support], y).coef_
    noise_variance = float(np.var(y - X @ truth))
    told = SparseARD(false_terms=FALSE_TERMS, noise_variance=noise_variance, fit_intercept=False).fit(X, y)
    return {
        "SparseARD": coefficients(task, start),
        "noise told": told.coef_,
        "add": coefficients(task, added),
        "add, drop, swap": coefficients(task, descended),
        "averaged": around.averaged(),
        "ARD on the true support": oracle_ard,
        "least squares on the true support": oracle,
    }


def scores(estimate: Array, truth: Array) -> list[float]:
    """Return l2, l1, added, missed."""
    error = estimate - truth
    added, missed = np.sum((estimate != 0) & (truth == 0)), np.sum((estimate == 0) & (truth != 0))
    return [float(np.linalg.norm(error)), float(np.abs(error).sum()), float(added), float(missed)]


def table(results: dict[str, dict[str, list[list[float]]]]) -> str:
    """Return the means as Markdown."""
    heads = [f"{problem} ({len(next(iter(rows.values())))})" for problem, rows in results.items()]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for variant in next(iter(results.values())):
        cells = [np.mean(rows[variant], axis=0) for rows in results.values()]
        text = (f"{a:.3f} / {b:.2f} / {c:.2f} / {d:.2f}" for a, b, c, d in cells)
        lines.append(f"| {variant} | {' | '.join(text)} |")
    return "\n".join(lines)


def main() -> None:
    """Run both problems and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linear-trials", type=int, default=100)
    parser.add_argument("--fourier-trials", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1000, help="seed of the first trial")
    arguments = parser.parse_args()
    problems: dict[str, tuple[Callable[[int], tuple[Array, Array, Array]], int]] = {
        "Linear": (linear, arguments.linear_trials),
        "Fourier": (fourier, arguments.fourier_trials),
    }
    results: dict[str, dict[str, list[list[float]]]] = {}
    for name, (draw, trials) in problems.items():
        for trial in tqdm(range(trials), name, disable=None):
            X, y, truth = draw(arguments.seed + trial)
            for variant, estimate in estimates(X, y, truth).items():
                results.setdefault(name, {}).setdefault(variant, []).append(scores(estimate, truth))
    save_json(RESULT, {"seed": arguments.seed, "l2, l1, added, missed": results})
    print(table(results))


if __name__ == "__main__":
    main()
