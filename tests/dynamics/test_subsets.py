"""Selection on a small system: every move against brute force, paths, and the criterion."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.special import comb

from ardea import SparseARD
from ardea.dynamics.subsets import System, ard_supports, regressor_supports, wide_supports


def drawn(seed=0, n=40, d=9, noise=0.3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) * 10.0 ** rng.integers(-3, 4, d)
    xi = np.zeros(d)
    xi[[1, 4, 6]] = [2.0, -1.0, 1.5] / np.linalg.norm(A[:, [1, 4, 6]], axis=0) * np.sqrt(n)
    return A, A @ xi + noise * rng.normal(size=n)


def rss_of(A, z, support):
    columns = A[:, list(support)]
    return float(np.sum((z - columns @ np.linalg.lstsq(columns, z, rcond=None)[0]) ** 2)) if support else float(z @ z)


def ebic2(A, z, support):
    n, d, k = len(z), A.shape[1], len(support)
    return n * np.log(rss_of(A, z, support) / n) + 2 * (k * np.log(n) + 2 * np.log(comb(d, k)))


@pytest.mark.parametrize("support", [(), (3,), (1, 4), (0, 1, 4, 6)])
def test_the_criterion_is_that_of_least_squares(support):
    A, z = drawn()
    model = System.of(A, z).model(support)
    assert model.rss == pytest.approx(rss_of(A, z, support), rel=1e-9)
    assert model.criterion == pytest.approx(ebic2(A, z, support), rel=1e-9)


@pytest.mark.parametrize("n", [15, 200])
@pytest.mark.parametrize("support", [(), (3,), (1, 4), (0, 1, 4)])
def test_the_best_move_is_the_best_of_all_neighbours(n, support):
    A, z = drawn(1, n=n)
    system, d = System.of(A, z), A.shape[1]
    near = [set(support) ^ {j} for j in range(d)]
    near += [set(support) - {i} | {j} for i in support for j in range(d) if j not in support]
    near = [tuple(sorted(s)) for s in near if len(s) <= n // 4]
    best = min(near, key=lambda s: ebic2(A, z, s))
    assert system.best_move(system.model(support)).support == best


def test_squeezing_long_systems_changes_nothing():
    A, z = drawn(2, n=500)
    squeezed = System.of(A, z)
    assert squeezed.columns.shape[0] == A.shape[1] + 1
    for support in ((), (1, 4), (0, 2, 5, 6)):
        assert squeezed.model(support).rss == pytest.approx(rss_of(A, z, support), rel=1e-9)
    again = System.of(squeezed.columns, squeezed.target, 500)
    assert again.model((1, 4)).criterion == pytest.approx(ebic2(A, z, (1, 4)), rel=1e-9)


def test_the_backward_path_removes_the_cheapest_term_first():
    A, z = drawn(3)
    path = System.of(A, z).backward_path(range(9))
    assert [len(model.support) for model in path] == list(range(9, 0, -1))
    for larger, smaller in pairwise(path):
        cheapest = min(combinations(larger.support, len(larger.support) - 1), key=lambda s: rss_of(A, z, s))
        assert smaller.support == cheapest
        assert smaller.rss == pytest.approx(rss_of(A, z, cheapest), rel=1e-6)


def test_dependent_columns_do_not_break_the_path():
    A, z = drawn(4)
    A = np.column_stack([A, A[:, 0] + A[:, 1], np.zeros(len(z))])
    path = System.of(A, z).backward_path(range(11))
    assert len(path[0].support) == 9
    assert all(np.isfinite(model.rss) for model in path)


@pytest.mark.parametrize("seed", range(8))
def test_selection_finds_the_exhaustive_optimum(seed):
    A, z = drawn(seed, n=60, noise=0.6)
    system = System.of(A, z)
    found = system.select([*ard_supports(system), *wide_supports(system)])[0]
    everything = [s for k in range(10) for s in combinations(range(9), k)]
    assert found.support == min(everything, key=lambda s: ebic2(A, z, s))


def test_terms_that_explain_only_together_are_found():
    """Two nearly opposite columns whose sum matters: each alone explains nothing."""
    rng = np.random.default_rng(0)
    common, small = rng.normal(size=100), 0.01 * rng.normal(size=100)
    A = np.column_stack([common + small, -common, rng.normal(size=(100, 10))])
    z = 100 * small + 0.3 * rng.normal(size=100)
    system = System.of(A, z)
    assert system.select([*ard_supports(system), *wide_supports(system)])[0].support == (0, 1)


def test_rescaling_columns_changes_no_choice():
    A, z = drawn(5)
    scaled = A * 10.0 ** np.arange(-4, 5)
    first, second = (System.of(B, 7.0 * z) for B in (A, scaled))
    assert first.select(ard_supports(first))[0].support == second.select(ard_supports(second))[0].support


def test_an_estimator_may_propose():
    A, z = drawn(6, noise=0.1)
    assert regressor_supports(SparseARD(fit_intercept=False), System.of(A, z)) == [(1, 4, 6)]


def test_neighbours_are_sorted_and_near():
    A, z = drawn(7)
    system = System.of(A, z)
    chosen = system.model((1, 4, 6))
    near = system.neighbours(chosen)
    assert [model.criterion for model in near] == sorted(model.criterion for model in near)
    assert all(len(set(model.support) ^ {1, 4, 6}) in (1, 2) for model in near)


def test_a_target_of_zero_has_the_empty_model():
    A, _ = drawn(8)
    system = System.of(A, np.zeros(40))
    assert system.select(ard_supports(system))[0].support == ()
