"""The search over supports: what ARD, elimination and estimators propose on a problem."""

from itertools import combinations

import numpy as np
import pytest

from ardea import MSTSBL, SparseARD
from ardea.core.problem import posed
from ardea.core.subsets import model, select
from ardea.dynamics.discovery import regressor_supports
from ardea.methods.task import ard_supports, wide_supports


def drawn(seed=0, n=40, d=9, noise=0.3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) * 10.0 ** rng.integers(-3, 4, d)
    xi = np.zeros(d)
    xi[[1, 4, 6]] = [2.0, -1.0, 1.5] / np.linalg.norm(A[:, [1, 4, 6]], axis=0) * np.sqrt(n)
    return A, A @ xi + noise * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(8))
def test_selection_among_the_proposals_finds_the_exhaustive_optimum(seed):
    problem, _ = posed(*drawn(seed, n=60, noise=0.6))
    found = select(problem, [*ard_supports(problem), *wide_supports(problem)])[0]
    everything = (model(problem, s) for k in range(10) for s in combinations(range(9), k))
    assert found.support == min(everything, key=lambda one: one.criterion).support


def test_terms_that_explain_only_together_are_found():
    """Two nearly opposite columns whose sum matters: each alone explains nothing."""
    rng = np.random.default_rng(0)
    common, small = rng.normal(size=100), 0.01 * rng.normal(size=100)
    A = np.column_stack([common + small, -common, rng.normal(size=(100, 10))])
    problem, _ = posed(A, 100 * small + 0.3 * rng.normal(size=100))
    assert select(problem, [*ard_supports(problem), *wide_supports(problem)])[0].support == (0, 1)


def test_proposals_do_not_depend_on_units():
    A, z = drawn(5)
    first, second = (posed(B, c * z)[0] for B, c in ((A, 7.0), (A * 10.0 ** np.arange(-4, 5), 1e-5)))
    assert ard_supports(first) == ard_supports(second)
    wide = [posed(B[:12], c * z[:12])[0] for B, c in ((A, 7.0), (A * 10.0 ** np.arange(-4, 5), 1e-5))]
    assert wide_supports(wide[0]) == wide_supports(wide[1])


@pytest.mark.parametrize("n", [16, 40, 500])
@pytest.mark.parametrize("regressor", [SparseARD(), MSTSBL(0.5, always_keep=[2])])
def test_an_estimator_proposes_what_it_finds_on_the_rows(n, regressor):
    """Compressed or not: strengths in the units of the columns, always_keep and the number of rows are those of fit."""
    A, z = drawn(6, n=n, noise=0.1)
    plain = regressor.set_params(fit_intercept=False).fit(A, z)
    assert regressor_supports(regressor, *posed(A, z)) == [tuple(np.flatnonzero(plain.support_))]


def test_a_target_of_zero_has_no_proposals():
    A, _ = drawn(8)
    problem, _ = posed(A, np.zeros(40))
    assert ard_supports(problem) == []
    assert select(problem, wide_supports(problem))[0].support == ()
