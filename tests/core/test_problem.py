import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from ardea.core import compression as compression_module
from ardea.core.compression import CompressedRows
from ardea.core.implicit import pose_implicit, sparse_operator
from ardea.core.problem import DenseColumns, Problem
from dense_twin import without_flat

M, D = 90, 5


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)
    Y = X @ rng.normal(size=(D, 2)) + rng.normal(size=(M, 2)) + 3.0
    return X, Y, rng.integers(1, 4, size=M).astype(float)


def facts(posed, target=0):
    """Return all that a problem says of the data, in the user's units."""
    problems, coordinates = posed
    problem, unit = problems[target], coordinates.targets[target]
    A = problem.columns.take(np.arange(problem.n_columns))
    return {
        "gram": A.T @ A * np.outer(coordinates.columns, coordinates.columns),
        "correlations": problem.correlations * coordinates.columns * unit,
        "square_norms": problem.square_norms * coordinates.columns**2,
        "total": problem.total * unit**2,
        "n_rows": problem.n_rows,
        "loadings": coordinates.flat.loadings,
        "target_loadings": coordinates.flat.target_loadings,
        "inverse_gram": coordinates.flat.inverse_gram,
        "total_weight": coordinates.total_weight,
    }


def assert_same_facts(one, other, rtol=1e-11):
    for name, value in other.items():
        size = np.abs(value).max(initial=0.0)
        np.testing.assert_allclose(one[name], value, rtol=rtol, atol=rtol * size, err_msg=name)


def by_qr(monkeypatch, X, Y, weight=None):
    with monkeypatch.context() as patch:
        patch.setattr(compression_module, "factor_by_gram", lambda *_: None)
        return CompressedRows.from_arrays(X, Y, weight)


def explicit_facts(X, Y, weight, flat, target=0):
    """Return the same facts by projecting on the complement of the flat columns, row by row."""
    root = np.sqrt(weight)[:, None]
    X, Y, flat = root * X, root * Y, root * flat
    inverse_gram = np.linalg.pinv(flat.T @ flat)
    A, z = without_flat(flat, X, Y[:, target]) if flat.shape[1] else (X, Y[:, target])
    return {
        "gram": A.T @ A,
        "correlations": A.T @ z,
        "square_norms": (A**2).sum(axis=0),
        "total": z @ z,
        "n_rows": weight.sum() - np.linalg.matrix_rank(flat) if flat.shape[1] else weight.sum(),
        "loadings": inverse_gram @ flat.T @ X,
        "target_loadings": inverse_gram @ flat.T @ Y,
        "inverse_gram": inverse_gram,
        "total_weight": weight.sum(),
    }


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("target", [0, 1])
def test_all_ways_of_reading_the_rows_give_one_problem(data, monkeypatch, intercept, target):
    X, Y, _ = data
    reference = facts(by_qr(monkeypatch, X, Y).pose(intercept=intercept), target)
    blocks = [(X[:7], Y[:7], None), (X[7:50], Y[7:50], None), (X[50:], Y[50:], None)]
    single_rows = [(X[i : i + 1], Y[i : i + 1], None) for i in range(M)]
    ways = {
        "gram": CompressedRows.from_arrays(X, Y),
        "merged": CompressedRows.from_arrays(X[:40], Y[:40]).merge(CompressedRows.from_arrays(X[40:], Y[40:])),
        "blocks": CompressedRows.from_blocks(blocks),
        "rows": CompressedRows.from_blocks(single_rows),
        "sparse": CompressedRows.from_arrays(sparse.csr_array(X), Y),
        "unit weights": CompressedRows.from_arrays(X, Y, np.ones(M)),
    }
    for compression in ways.values():
        assert compression.n_samples == M
        assert_same_facts(facts(compression.pose(intercept=intercept), target), reference)


@pytest.mark.parametrize("intercept", [True, False])
def test_integer_weights_are_repeated_rows(data, monkeypatch, intercept):
    X, Y, weight = data
    times = weight.astype(int)
    repeated = facts(
        CompressedRows.from_arrays(X.repeat(times, axis=0), Y.repeat(times, axis=0)).pose(intercept=intercept)
    )
    assert repeated["n_rows"] == weight.sum() - intercept
    for compression in (CompressedRows.from_arrays(X, Y, weight), by_qr(monkeypatch, X, Y, weight)):
        assert_same_facts(facts(compression.pose(intercept=intercept)), repeated)


def test_too_many_columns_for_a_factor_keep_their_rows(data, monkeypatch):
    X, Y, weight = data
    factored = facts(CompressedRows.from_arrays(X, Y, weight).pose(intercept=True, keep=[2]))
    monkeypatch.setattr(compression_module, "COMPRESSION_COLUMN_LIMIT", D - 1)
    rows = CompressedRows.from_arrays(X, Y, weight)
    assert rows.factor.shape[0] == M
    assert_same_facts(facts(rows.pose(intercept=True, keep=[2])), factored)


def test_rows_of_weight_zero_do_not_exist(data):
    X, Y, weight = data
    weight[:40] = 0.0
    weight[::3] = 0.0
    there = weight > 0
    whole = facts(CompressedRows.from_arrays(X, Y, weight).pose(intercept=True))
    assert_same_facts(whole, facts(CompressedRows.from_arrays(X[there], Y[there], weight[there]).pose(intercept=True)))


@pytest.mark.parametrize(("intercept", "keep"), [(False, ()), (True, ()), (False, (2,)), (True, (1, 3))])
@pytest.mark.parametrize("m", [M, 4])
def test_flat_columns_are_projected_out_exactly(data, intercept, keep, m):
    X, Y, weight = (array[:m] for array in data)
    flat = np.column_stack([np.ones((m, int(intercept))), X[:, list(keep)]])
    posed = facts(CompressedRows.from_arrays(X, Y, weight).pose(intercept=intercept, keep=keep))
    assert_same_facts(posed, explicit_facts(X, Y, weight, flat))
    assert np.all(posed["square_norms"][list(keep)] == 0)


def test_a_flat_column_given_twice_counts_once(data):
    X, Y, _ = data
    X[:, 3] = X[:, 1]
    once, _ = CompressedRows.from_arrays(X, Y).pose(intercept=True, keep=[1])
    twice, _ = CompressedRows.from_arrays(X, Y).pose(intercept=True, keep=[1, 3])
    assert twice[0].n_rows == once[0].n_rows == M - 2
    np.testing.assert_allclose(twice[0].total, once[0].total, rtol=1e-12)


def restricted_facts(problem):
    A = problem.columns.take(np.arange(problem.n_columns))
    return {
        "gram": A.T @ A,
        "correlations": problem.correlations,
        "square_norms": problem.square_norms,
        "total": problem.total,
        "n_rows": problem.n_rows,
    }


@pytest.mark.parametrize("index", [[0, 2], [4, 1, 0, 3, 2], [3], []])
@pytest.mark.parametrize("m", [M, 4])
def test_restriction_is_the_problem_of_those_columns(data, index, m):
    X, Y = data[0][:m], data[1][:m]
    problems, coordinates = CompressedRows.from_arrays(X, Y).pose(intercept=True)
    index = np.array(index, dtype=np.intp)
    direct, own = CompressedRows.from_arrays(X[:, index], Y).pose(intercept=True)
    expected = restricted_facts(direct[1])
    ratio = own.columns / coordinates.columns[index]
    expected["gram"] = expected["gram"] * np.outer(ratio, ratio)
    expected["correlations"] = expected["correlations"] * ratio
    expected["square_norms"] = expected["square_norms"] * ratio**2
    assert_same_facts(restricted_facts(problems[1].restrict(index)), expected)


def test_restriction_of_raw_rows_compresses_them(data):
    X, Y, _ = data
    rows = Problem(DenseColumns(X), Y[:, 0], 0.0, M)
    index = np.array([1, 4])
    part = rows.restrict(index)
    assert part.columns.shape[0] <= 3
    assert_same_facts(
        restricted_facts(part),
        restricted_facts(Problem(DenseColumns(X[:, index]), Y[:, 0], 0.0, M)),
    )


@pytest.mark.parametrize(("intercept", "keep"), [(False, ()), (True, ()), (True, (1, 6))])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_problems_equal_dense_ones(intercept, keep, weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 30)) * (rng.random((20, 30)) < 0.3) * 10.0 ** rng.uniform(-3, 3, 30)
    X[:, 4], X[:, 5], X[:, 7] = 0.0, 2.0, X[:, 8]
    Y = rng.normal(size=(20, 2)) + 1
    weight = rng.uniform(0.5, 2, 20) if weighted else None
    source = sparse_operator(sparse.csc_array(X))
    sparse_posed = pose_implicit(source, Y, weight, intercept=intercept, keep=keep)
    dense_posed = CompressedRows.from_arrays(X, Y, weight).pose(intercept=intercept, keep=keep)
    for target in (0, 1):
        assert_same_columns(facts(sparse_posed, target), facts(dense_posed, target))
    index = np.array([3, 8, 12])
    assert_same_columns(
        facts(([sparse_posed[0][0].restrict(index)], rescaled(sparse_posed[1], index))),
        facts(([dense_posed[0][0].restrict(index)], rescaled(dense_posed[1], index))),
    )


def rescaled(coordinates, index):
    return replace(coordinates, columns=coordinates.columns[index])


def assert_same_columns(one, other):
    """Compare Gram matrices and correlations relative to the norms of their own columns."""
    norm = np.sqrt(other["square_norms"])
    scale = np.where(norm > 0, norm, 1.0)
    np.testing.assert_array_equal(one["square_norms"] > 0, norm > 0)
    np.testing.assert_allclose(one["gram"] / np.outer(scale, scale), other["gram"] / np.outer(scale, scale), atol=1e-12)
    size = np.sqrt(other["total"])
    np.testing.assert_allclose(one["correlations"] / scale / size, other["correlations"] / scale / size, atol=1e-12)
    for name in ("total", "n_rows", "target_loadings", "inverse_gram", "total_weight"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("m", [6, 90, 200_000])
@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -7.3e-12])
def test_constant_columns_and_targets_vanish_with_an_intercept(m, value):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(m, 4))
    X[:, 1] = value
    posed, _ = CompressedRows.from_arrays(X, np.full((m, 1), value)).pose(intercept=True)
    assert posed[0].square_norms[1] == 0
    assert np.all(posed[0].columns.take(np.array([1])) == 0)
    assert np.all(posed[0].square_norms[[0, 2, 3]] > 0.2)
    assert posed[0].total == 0


@pytest.mark.parametrize("rows", [1, 10, 1000])
def test_constant_columns_vanish_in_a_stream_too(rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 3))
    X[:, 1] = 0.1
    Y = np.full((3000, 1), 0.7)
    parts = [slice(start, start + rows) for start in range(0, 3000, rows)]
    posed, _ = CompressedRows.from_blocks((X[part], Y[part], None) for part in parts).pose(intercept=True)
    assert posed[0].square_norms[1] == 0
    assert posed[0].total == 0


def test_large_offsets_do_not_spoil_the_centring():
    rng = np.random.default_rng(3)
    centred = rng.normal(size=(200_000, 2))
    centred -= centred.mean(axis=0)
    X = centred + np.array([1e6 + 0.1, -1e5 / 3])
    stored = X.astype(np.longdouble)
    stored -= stored.mean(axis=0)
    expected = (stored.T @ stored).astype(float)
    posed = facts(CompressedRows.from_arrays(X, rng.normal(size=(200_000, 1))).pose(intercept=True))
    np.testing.assert_allclose(posed["square_norms"], expected.diagonal(), rtol=1e-11)
    np.testing.assert_allclose(posed["loadings"][0], X.astype(np.longdouble).mean(axis=0).astype(float), rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_rows_need_not_look_like_the_others(weighted):
    """First half: constant columns, and of weight zero; second half: other levels, small variation."""
    rng = np.random.default_rng(5)
    X, Y = np.full((60_000, 3), 1e3), rng.normal(size=(60_000, 1))
    X[30_000:] = 7.0 + 1e-3 * rng.normal(size=(30_000, 3))
    weight = np.repeat([0.0, 2.0], 30_000) if weighted else np.ones(60_000)
    centred = X.astype(np.longdouble)
    centred -= (weight @ centred) / weight.sum()
    expected = ((centred.T * weight) @ centred).astype(float)
    (problem,), coordinates = CompressedRows.from_arrays(X, Y, weight if weighted else None).pose(intercept=True)
    A = problem.columns.take(np.arange(3)) * coordinates.columns
    np.testing.assert_allclose(A.T @ A, expected, rtol=1e-10, atol=1e-10 * expected.max())


def test_zero_columns_stay_zero_without_an_intercept(data):
    X, Y, _ = data
    X[:, 2] = 0.0
    for rows in (slice(None), slice(0, 4)):
        (problem, _), coordinates = CompressedRows.from_arrays(X[rows], Y[rows]).pose(intercept=False)
        assert problem.square_norms[2] == 0
        assert coordinates.columns[2] == 1
        assert (problem.square_norms > 0).sum() == D - 1


def test_nothing_but_constants_is_an_empty_problem():
    for intercept in (True, False):
        (problem,), _ = CompressedRows.from_arrays(np.full((50, 3), 2.5), np.ones((50, 1))).pose(intercept=intercept)
        assert np.all((problem.square_norms == 0) == intercept)
        assert (problem.total == 0) == intercept


def test_zero_targets_are_empty_problems(data):
    X, Y, _ = data
    Y[:, 0] = 0.0
    problems, _ = CompressedRows.from_arrays(X, Y).pose(intercept=False)
    assert problems[0].total == 0
    assert problems[1].total > 0


def test_duplicate_columns_stay_duplicates(data):
    X, Y, _ = data
    X[:, 3] = X[:, 0]
    (problem, _), _ = CompressedRows.from_arrays(X, Y).pose(intercept=True)
    A = problem.columns.take(np.arange(D))
    np.testing.assert_allclose(A[:, 3], A[:, 0], atol=1e-13)


@pytest.mark.parametrize("m", [M, 4])
@pytest.mark.parametrize("exponents", [(150, -150), (-150, 150), (-150, -150)])
def test_units_change_nothing_but_the_coordinates(data, m, exponents):
    X, Y = data[0][:m], data[1][:m]
    column_units = 10.0 ** np.linspace(*exponents, D)
    plain, own = CompressedRows.from_arrays(X, Y).pose(intercept=True)
    scaled, theirs = CompressedRows.from_arrays(X * column_units, Y * 10.0 ** exponents[1]).pose(intercept=True)
    ratio = own.columns * column_units / theirs.columns
    target_ratio = own.targets[0] * 10.0 ** exponents[1] / theirs.targets[0]
    np.testing.assert_allclose(scaled[0].square_norms, plain[0].square_norms * ratio**2, rtol=1e-11)
    np.testing.assert_allclose(
        scaled[0].correlations, plain[0].correlations * ratio * target_ratio, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(scaled[0].total, plain[0].total * target_ratio**2, rtol=1e-11)
    assert np.all((scaled[0].square_norms >= 0.24) & (scaled[0].square_norms <= 1.01))


@pytest.mark.parametrize("closeness", [1e-4, 1e-6, 1e-9])
def test_ill_conditioned_columns_keep_the_digits_of_a_qr(data, closeness):
    X, Y, _ = data
    X[:, 4] = X[:, 0] + closeness * X[:, 4]
    (problem, _), coordinates = CompressedRows.from_arrays(X, Y).pose(intercept=True)
    centred = (X - X.mean(axis=0)) / coordinates.columns
    singular = np.linalg.svd(problem.columns.take(np.arange(D)), compute_uv=False)
    np.testing.assert_allclose(singular, np.linalg.svd(centred, compute_uv=False), rtol=1e-14 / closeness)


@pytest.mark.parametrize("needs_qr", [False, True])
def test_many_rows_need_little_memory_beyond_their_own(needs_qr):
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(200_000, 20)), rng.normal(size=(200_000, 1))
    if needs_qr:
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    tracemalloc.start()
    CompressedRows.from_arrays(X, Y).pose(intercept=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * X.nbytes


def test_blocks_of_different_width_are_refused(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match="Blocks differ"):
        CompressedRows.from_arrays(X, Y).merge(CompressedRows.from_arrays(X[:, :3], Y))
    with pytest.raises(ValueError, match="No block"):
        CompressedRows.from_blocks([])


def test_columns_that_were_met_are_those_of_the_design_in_any_order():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 30))
    active = Problem(DenseColumns(A), np.zeros(7), 0.0, 7.0).active
    for size in (0, 3, 1, 9, 30):
        index = rng.permutation(30)[:size]
        np.testing.assert_array_equal(active.vectors(index), A[:, index])
        np.testing.assert_allclose(active.gram_rows(index), A[:, index].T @ A, rtol=0, atol=1e-13)
        np.testing.assert_allclose(active.gram(index), A[:, index].T @ A[:, index], rtol=0, atol=1e-13)
