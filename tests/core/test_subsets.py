"""Subsets of a problem: every move against brute force, paths, and the criteria."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.special import comb

from ardea.core.problem import DenseColumns, Problem, penalty, posed
from ardea.core.subsets import (
    backward_path,
    best_move,
    compiled,
    forward_path,
    given,
    model,
    moves,
    neighbours,
    select,
    small_models,
    small_supports,
)


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def loops(request, monkeypatch):
    """Run every test with the compiled loops and with their NumPy twins."""
    if request.param == "compiled" and compiled is None:
        pytest.skip("installed without a compiler")
    monkeypatch.setenv("ARDEA_LOOP", request.param)


def drawn(seed=0, n=40, d=9, noise=0.3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) * 10.0 ** rng.integers(-3, 4, d)
    xi = np.zeros(d)
    xi[[1, 4, 6]] = [2.0, -1.0, 1.5] / np.linalg.norm(A[:, [1, 4, 6]], axis=0) * np.sqrt(n)
    return A, A @ xi + noise * rng.normal(size=n)


def problem_of(A, z):
    return posed(A, z)[0]


def rss_of(A, z, support):
    columns = A[:, list(support)]
    return float(np.sum((z - columns @ np.linalg.lstsq(columns, z, rcond=None)[0]) ** 2)) if support else float(z @ z)


def ebic2(A, z, support):
    n, d, k = len(z), A.shape[1], len(support)
    return n * np.log(rss_of(A, z, support) / n) + 2 * (k * np.log(n) + 2 * np.log(comb(d, k)))


@pytest.mark.parametrize("n", [15, 40, 500])
@pytest.mark.parametrize("support", [(), (3,), (1, 4), (0, 1, 4, 6), (0, 2, 5, 6)])
def test_the_criterion_is_that_of_least_squares_compressed_or_not(n, support):
    A, z = drawn(2, n=n)
    problem = problem_of(A, z)
    assert problem.columns.shape[0] == (n if n == 15 else A.shape[1])
    found = model(problem, support)
    assert found.rss == pytest.approx(rss_of(A, z, support), rel=1e-9)
    assert found.criterion == pytest.approx(ebic2(A, z, support), rel=1e-9)


@pytest.mark.parametrize("n", [15, 200])
@pytest.mark.parametrize("support", [(), (3,), (1, 4), (0, 1, 4)])
def test_the_best_move_is_the_best_of_all_neighbours(n, support):
    A, z = drawn(1, n=n)
    problem, d = problem_of(A, z), A.shape[1]
    near = [set(support) ^ {j} for j in range(d)]
    near += [set(support) - {i} | {j} for i in support for j in range(d) if j not in support]
    near = [tuple(sorted(s)) for s in near if len(s) <= n // 4]
    best = min(near, key=lambda s: ebic2(A, z, s))
    assert best_move(problem, model(problem, support)).support == best


@pytest.mark.parametrize("support", [(), (3,), (6, 1, 4), (6, 1, 4, 9)])
def test_every_move_changes_rss_as_least_squares_does(support):
    A, z = drawn(9)
    A = np.column_stack([A, A[:, 1] - 1e3 * A[:, 4]])
    change, start = moves(problem_of(A, z), support), rss_of(A, z, support)
    for j in range(9):
        added = np.inf if j in support else rss_of(A, z, (*support, j)) - start
        assert change.additions[j] == pytest.approx(added, rel=1e-8)
    if 9 in support:  # one of three dependent terms goes for nothing; its exchange is an addition
        assert (change.removals == 0).sum() == 1
        np.testing.assert_array_equal(change.exchanges[change.removals == 0][0], change.additions)
        return
    for j in range(9):
        for i, term in enumerate(support):
            others = [one for one in support if one != term]
            exchanged = np.inf if j in support else rss_of(A, z, (*others, j)) - start
            assert change.exchanges[i, j] == pytest.approx(exchanged, rel=1e-8)
    removed = [rss_of(A, z, [one for one in support if one != term]) - start for term in support]
    np.testing.assert_allclose(change.removals, removed, rtol=1e-8)


def test_the_forward_path_adds_the_best_term_first():
    A, z = drawn(10)
    support = ()
    for length in range(1, 5):
        best = min(set(range(9)) - set(support), key=lambda j, held=support: rss_of(A, z, (*held, j)))
        support = tuple(sorted((*support, best)))
        assert forward_path(problem_of(A, z), length) == support


def test_penalties_are_those_of_their_names():
    m, d, k = 80, 12, np.array([0, 3])
    choices = np.log(comb(d, k))
    assert penalty("aic", m, d, k).tolist() == [0, 6]
    np.testing.assert_allclose(penalty("bic", m, d, k), k * np.log(m))
    np.testing.assert_allclose(penalty("ebic", m, d, k), k * np.log(m) + 2 * choices)
    np.testing.assert_allclose(penalty("ebic2", m, d, k), 2 * (k * np.log(m) + 2 * choices))
    np.testing.assert_allclose(penalty("evidence", m, d, k), 2 * k + 2 * choices)
    np.testing.assert_allclose(penalty("aicc", m, d, k), 2 * (k + 1) + 2 * (k + 1) * (k + 2) / (m - k - 2))
    assert penalty("aicc", 4, d, 3) == np.inf


def test_the_backward_path_removes_the_cheapest_term_first():
    A, z = drawn(3)
    path = backward_path(problem_of(A, z), range(9))
    assert [len(one.support) for one in path] == list(range(9, 0, -1))
    for larger, smaller in pairwise(path):
        cheapest = min(combinations(larger.support, len(larger.support) - 1), key=lambda s: rss_of(A, z, s))
        assert smaller.support == cheapest
        assert smaller.rss == pytest.approx(rss_of(A, z, cheapest), rel=1e-6)


def test_dependent_columns_do_not_break_the_path():
    A, z = drawn(4)
    A = np.column_stack([A, A[:, 0] + A[:, 1], np.zeros(len(z))])
    path = backward_path(problem_of(A, z), range(11))
    assert len(path[0].support) == 9
    assert all(np.isfinite(one.rss) for one in path)


@pytest.mark.parametrize("seed", range(8))
def test_selection_finds_the_exhaustive_optimum(seed):
    A, z = drawn(seed, n=60, noise=0.6)
    found = select(problem_of(A, z), [tuple(range(9))])[0]
    everything = [s for k in range(10) for s in combinations(range(9), k)]
    assert found.support == min(everything, key=lambda s: ebic2(A, z, s))


def test_a_column_in_the_span_of_others_explains_nothing():
    rng = np.random.default_rng(16)
    u = rng.uniform(-1, 1, 50)
    A = np.column_stack([np.ones(50), 10 + u, u**2, (10 + u) ** 2])
    problem = problem_of(A, 2 * u - u**2 + 1e-3 * rng.normal(size=50))
    assert model(problem, range(4)).rss == pytest.approx(model(problem, range(3)).rss, rel=1e-6)


def test_rescaling_columns_changes_no_choice():
    A, z = drawn(5)
    first, second = (problem_of(B, 7.0 * z) for B in (A, A * 10.0 ** np.arange(-4, 5)))
    assert [one.support for one in select(first, [(0, 1, 4, 6)])] == [
        one.support for one in select(second, [(0, 1, 4, 6)])
    ]


def test_a_target_of_zero_has_the_empty_model():
    A, _ = drawn(8)
    assert select(problem_of(A, np.zeros(40)), [(1, 2)])[0].support == ()


def test_neighbours_are_sorted_and_near():
    A, z = drawn(7)
    near = neighbours(problem_of(A, z), model(problem_of(A, z), (1, 4, 6)))
    assert [one.criterion for one in near] == sorted(one.criterion for one in near)
    assert all(len(set(one.support) ^ {1, 4, 6}) in (1, 2) for one in near)


@pytest.mark.parametrize("subset", [(), (0,), (2, 3), (0, 4, 6)])
def test_what_kept_columns_explain_can_be_taken_out(subset):
    """Frisch and Waugh: RSS is that of all columns together; a column in the span of those kept explains nothing."""
    A, z = drawn(3)
    A[:, 8] = A[:, 0] - 2 * A[:, 1]
    problem, block, others = problem_of(A, z), np.arange(2, 9), np.array([0, 1])
    inner = given(problem, block, others)
    assert model(inner, subset).rss == pytest.approx(rss_of(A, z, (0, 1, *(block[j] for j in subset))), rel=1e-9)
    assert inner.square_norms[6] == 0


def test_small_models_are_the_best_of_all_subsets():
    """Against all subsets fitted one by one, beside columns that are kept and one that depends on these."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(60, 9))
    A[:, 8] = A[:, 0] + A[:, 1]
    problem, _ = posed(A, A[:, [0, 3, 5]] @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=60))
    block, others = np.arange(2, 9), np.array([0, 1])
    every = [model(problem, (0, 1, *subset)) for size in (1, 2, 3) for subset in combinations(block.tolist(), size)]
    best = sorted((one for one in every if 8 not in one.support), key=lambda one: one.criterion)
    found = small_models(problem, block, others, 3)
    assert found[0].support == best[0].support == (0, 1, 3, 5)
    assert {one.support for one in found} <= {one.support for one in best[:12]}


@pytest.mark.parametrize(("rows", "kept"), [(8, ()), (13, ()), (13, (0, 1)), (22, (0, 1))])
def test_small_models_have_no_more_terms_than_a_search_considers(rows, kept):
    """A quarter of the rows, those that are kept with them; and the best of every size is among them."""
    rng = np.random.default_rng(rows)
    problem, _ = posed(rng.normal(size=(rows, 9)), rng.normal(size=rows))
    others = np.array(kept, dtype=np.intp)
    found = [support for _, support in small_supports(problem, np.arange(len(kept), 9), others, 1)]
    sizes = range(len(kept) + 1, rows // 4 + 1)
    every = {
        size: min(
            (model(problem, (*kept, *one)) for one in combinations(range(len(kept), 9), size - len(kept))),
            key=lambda one: one.rss,
        )
        for size in sizes
    }
    assert sorted(found, key=len) == [every[size].support for size in sizes]
    assert all(len(one.support) <= rows // 4 for one in small_models(problem, np.arange(len(kept), 9), others, 20))


def test_small_models_go_on_from_the_best_where_subsets_are_too_many():
    """Three terms of 40: with 780 pairs at most, triples are pairs with one column more; all triples give the same."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 40))
    problem, _ = posed(A, A[:, [3, 17, 29]] @ [1.0, -1.0, 1.0] + 0.1 * rng.normal(size=200))
    every, none = np.arange(40), np.empty(0, dtype=np.intp)
    found = [small_models(problem, every, none, 1, most)[0].support for most in (780, 10_000)]
    assert found == [(3, 17, 29)] * 2


def test_growing_ends_where_all_other_columns_are_in_the_span():
    """Four copies of one column: no second lowers RSS, and next to one of them nothing is left."""
    rng = np.random.default_rng(0)
    column, z = rng.normal(size=(30, 1)), rng.normal(size=30)
    problem, _ = posed(np.repeat(column, 4, axis=1), z)
    found = small_models(problem, np.arange(4), np.empty(0, dtype=np.intp), 6)
    assert found
    assert [one.rss for one in found] == pytest.approx([model(problem, (0,)).rss] * len(found))
    assert small_models(problem, np.arange(1, 4), np.array([0]), 6) == []
    assert small_models(problem, np.empty(0, dtype=np.intp), np.array([0]), 6) == []


@pytest.mark.skipif(compiled is None, reason="installed without a compiler")
@pytest.mark.parametrize("seed", range(20))
def test_compiled_loops_give_the_numbers_of_their_twins(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 40)), int(rng.integers(1, 60))
    A = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 6, d)
    A[:, rng.random(d) < 0.2] = A[:, :1] * (1 + 1e-6 * rng.normal(size=(n, 1)))  # nearly dependent
    problem, support = problem_of(A, rng.normal(size=n)), tuple(rng.permutation(d)[: rng.integers(0, min(n, d) + 1)])
    found = []
    for loop in ("compiled", "numpy"):
        monkeypatch.setenv("ARDEA_LOOP", loop)
        small = small_models(problem, np.arange(d), np.empty(0, dtype=np.intp), 10)
        found.append((model(problem, support), moves(problem, support), backward_path(problem, support), small))
    (one, change, path, small), (same, twin, way, also) = found
    assert one.rss == pytest.approx(same.rss, rel=1e-9)
    for name in ("additions", "removals", "exchanges"):
        np.testing.assert_allclose(getattr(change, name), getattr(twin, name), rtol=1e-5, atol=1e-9 * problem.total)
    assert [step.support for step in path] == [step.support for step in way]
    # Columns that are nearly the same stand in for each other.
    assert [step.criterion for step in small] == pytest.approx([step.criterion for step in also], abs=1e-3)


def test_columns_without_any_rows_are_no_matter_for_blas(capfd):
    problem = Problem(DenseColumns(np.empty((0, 3))), np.empty(0), 2.0, 10.0)
    assert np.all(np.isinf(moves(problem, []).additions))
    assert model(problem, ()).rss == 2.0
    assert capfd.readouterr() == ("", "")
