"""Sub-sampling and random projections: the same for any blocks, the right C, the errors that theory asks for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ardea import ARD, ARDvi, SparseARD
from ardea.estimators.projections import OwnMatrix, RowSample, SparseSigns, project

ROWS, COLUMNS = 2000, 6
KINDS = [RowSample, SparseSigns]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)) + 3
    return X, np.column_stack([X[:, 1] - 2 * X[:, 4] + 5, X[:, 0]]) + 0.5 * rng.normal(size=(ROWS, 2))


def matrix_of(projection, rows=ROWS):
    """Return C: what the projection makes of the unit vectors."""
    return projection.finish(projection.apply(0, np.eye(rows)))


def gram(rows):
    factor = rows.factor
    return factor.T @ factor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [[1], [700, 701, 1500], list(range(40, ROWS, 40))])
def test_blocks_do_not_matter(data, kind, cuts):
    X, Y = data
    whole = project([(X, Y)], kind(300, seed=3))
    cut = project(zip(np.split(X, cuts), np.split(Y, cuts), strict=True), kind(300, seed=3))
    np.testing.assert_allclose(gram(cut), gram(whole), rtol=1e-10, atol=1e-9)
    assert cut.shape == whole.shape == (300, COLUMNS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_product_with_C(data, kind):
    X, Y = data
    C = matrix_of(kind(300, seed=1))
    rows = C @ np.column_stack([np.ones(ROWS), X, Y])
    np.testing.assert_allclose(gram(project([(X, Y)], kind(300, seed=1))), rows.T @ rows, rtol=1e-10, atol=1e-9)


def own_matrix(n, seed=0):
    """Return a matrix whose rows are far from orthogonal, and of different norms."""
    rng = np.random.default_rng(seed)
    return OwnMatrix((rng.normal(size=(n, ROWS)) + 0.5 * rng.normal(size=ROWS)) * rng.uniform(0.1, 10, size=(n, 1)))


@pytest.mark.parametrize("kind", [*KINDS, own_matrix])
@pytest.mark.parametrize("n", [50, 600])
def test_rows_of_C_are_orthonormal(kind, n):
    """So noise that is white before the projection is white after it, with the same variance."""
    C = matrix_of(kind(n, seed=2))
    np.testing.assert_allclose(C @ C.T, np.eye(len(C)), atol=1e-9)


SIGNS = np.random.default_rng(1).choice([-1.0, 1.0], size=(60, 40))


@pytest.mark.parametrize(("C", "left"), [(SIGNS, 40), (np.vstack([np.eye(30, 40)] * 2), 30)])
def test_dependent_rows_of_C_are_left_out(C, left):
    """60 combinations of 40 rows hold 40 rows, and 60 that are twice 30 hold 30."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    rows = project([(X, X[:, 0])], OwnMatrix(C))
    assert rows.shape == (left, 3)
    np.testing.assert_allclose(gram(rows)[1:4, 1:4], X[:left].T @ X[:left], rtol=1e-8)


def badly_scaled(n, seed=0):
    """Return a matrix with rows of size 1e-200 to 1e200, a tenth of them combinations of others; rank n."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, ROWS)) + rng.normal(size=ROWS)
    C = np.vstack([C, rng.normal(size=(n // 10, n)) @ C])
    return OwnMatrix(C * 10.0 ** rng.uniform(-200, 200, size=(len(C), 1)))


def nearly_dependent(n, seed=0):
    """Return a matrix of condition number above 1e8: a row is the one before and a little else."""
    rng = np.random.default_rng(seed)
    C = np.cumsum(10.0 ** -np.linspace(0, 8, n)[:, None] * rng.normal(size=(n, ROWS)), axis=0)
    return OwnMatrix(sparse.csr_array(C) if seed % 2 else C)


MATRICES = [own_matrix, badly_scaled, nearly_dependent]


def first_columns(projection, rows):
    """Return a projection of so many rows: a matrix loses its other columns."""
    return OwnMatrix(projection.matrix[:, :rows]) if isinstance(projection, OwnMatrix) else projection


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_any_matrix_become_orthonormal_and_span_the_same_space(kind, seed):
    projection = kind(50, seed=seed)
    Q = matrix_of(projection)
    np.testing.assert_allclose(Q @ Q.T, np.eye(50), atol=1e-9)
    C = projection.matrix.toarray() if sparse.issparse(projection.matrix) else projection.matrix
    C = C / np.abs(C).max(axis=1, keepdims=True)
    np.testing.assert_allclose(C @ Q.T @ Q, C, atol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, *MATRICES])
def test_false_positives_are_as_many_as_asked_for(kind):
    """Half of 100 rows of pure noise, one column, σ² known: a share of .05 within three binomial deviations.

    Ten targets a draw: given X they are independent.
    """
    rate, draws, targets, sigma = 0.05, 75, 10, 7.0
    rng = np.random.default_rng(10_001)  # no seed of a matrix
    model = ARDvi(false_terms=rate, noise_variance=sigma**2, fit_intercept=False)  # of one column
    drawn = [first_columns(kind(50, seed=seed), 100) for seed in range(draws if kind in KINDS else 4)]
    found = 0
    for i in range(draws):
        blocks = [(rng.normal(size=(100, 1)), sigma * rng.normal(size=(100, targets)))]
        found += int(model.fit(project(blocks, drawn[i % len(drawn)]), None).support_.sum())
    n = draws * targets
    assert abs(found - rate * n) < 3 * np.sqrt(n * rate * (1 - rate))


@pytest.mark.parametrize("kind", [*KINDS, *MATRICES])
def test_learned_noise_variance_has_the_distribution_of_a_chi_square(kind):
    """Of least squares with k columns on n rows: (n − k) σ̂²/σ² has mean n − k and variance 2(n − k).

    Five targets a draw: given X they are independent.
    """
    draws, targets, sigma = 80, 5, 0.3
    rng = np.random.default_rng(10_002)  # no seed of a matrix
    drawn = [first_columns(kind(40, seed=seed), 150) for seed in range(draws if kind in KINDS else 4)]
    degrees, values = 40 - 3, []
    for i in range(draws):
        X = rng.normal(size=(150, 2)) + 2
        y = (X @ [1.0, -2.0] + 5)[:, None] + sigma * rng.normal(size=(150, targets))
        model = ARD(always_keep=[0, 1]).fit(project([(X, y)], drawn[i % len(drawn)]), None)
        values.extend(degrees * model.noise_variance_ / sigma**2)
    assert abs(np.mean(values) - degrees) < 3 * np.sqrt(2 * degrees / len(values))
    # The variance of a sample variance: (μ₄ − μ₂²)/N, with μ₂ = 2k and μ₄ = 12k² + 48k of χ²_k.
    error = np.sqrt((8 * degrees**2 + 48 * degrees) / len(values))
    assert abs(np.var(values, ddof=1) - 2 * degrees) < 3 * error


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("left", ["scales", "dense", "far scales"])
def test_only_the_space_that_rows_of_C_span_matters(data, left, as_matrix):
    """AC and C lead to the same model for an invertible A."""
    X, Y = data
    rng = np.random.default_rng(3)
    C = own_matrix(80).matrix
    A = {
        "scales": np.diag(rng.uniform(0.1, 10, size=80)),
        "dense": rng.normal(size=(80, 80)),  # condition number 200 or so
        "far scales": np.diag(10.0 ** rng.uniform(-250, 250, size=80)),
    }[left]
    model, reference = (SparseARD().fit(project([(X, Y)], OwnMatrix(as_matrix(matrix))), None) for matrix in (A @ C, C))
    for name in ("coef_", "intercept_", "noise_variance_", "coef_std_", "log_evidence_"):
        np.testing.assert_allclose(getattr(model, name), getattr(reference, name), rtol=1e-8, atol=1e-12)


def test_sample_is_uniform_and_without_replacement():
    counts = sum(matrix_of(RowSample(5, seed=seed), 20).sum(axis=0) for seed in range(2000))
    assert matrix_of(RowSample(5), 20).sum() == 5
    # Each row is in 2000·5/20 = 500 samples, with deviation √(500·.75) = 19.
    assert np.abs(counts - 500).max() < 4 * 19.4


def test_all_rows_are_kept_where_there_are_fewer(data):
    X, Y = data
    model = SparseARD().fit(project([(X, Y)], RowSample(ROWS + 1)), None)
    np.testing.assert_allclose(model.coef_, SparseARD().fit(X, Y).coef_, rtol=1e-8, atol=1e-12)


def test_model_of_a_sample_is_that_of_its_rows(data):
    X, Y = data
    chosen = matrix_of(RowSample(150, seed=4)).argmax(axis=1)
    model = ARD().fit(project([(X, Y)], RowSample(150, seed=4)), None)
    np.testing.assert_allclose(model.coef_, ARD().fit(X[chosen], Y[chosen]).coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array])
def test_a_matrix_of_ones_own(data, as_matrix):
    """An orthogonal C of all rows changes nothing: the same coefficients, intercept and noise."""
    X, Y = data
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(300, 300)))[0]
    blocks = [(X[:120], Y[:120]), (X[120:300], Y[120:300])]
    model = SparseARD().fit(project(blocks, OwnMatrix(as_matrix(Q))), None)
    reference = SparseARD().fit(X[:300], Y[:300])
    for name in ("coef_", "intercept_", "noise_variance_", "coef_std_"):
        np.testing.assert_allclose(getattr(model, name), getattr(reference, name), rtol=1e-7, atol=1e-12)
    with pytest.raises(ValueError, match="300 columns, but there are more rows"):
        project([(X, Y)], OwnMatrix(as_matrix(Q)))
    with pytest.raises(ValueError, match="300 columns, but X has 299 rows"):
        project([(X[:299], Y[:299])], OwnMatrix(as_matrix(Q)))


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        (np.ones(3), "two dimensions"),
        (np.full((2, 3), 1j), "complex"),
        ([[1.0, np.nan]], "NaN"),
        (sparse.csr_array([[1.0, np.inf]]), "infinity"),
        (np.zeros((2, 3)), "is zero"),
        (sparse.csr_array((2, 3)), "is zero"),
    ],
)
def test_matrices_that_are_refused(matrix, problem):
    with pytest.raises(ValueError, match=problem):
        OwnMatrix(matrix)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_grow_as_the_root_of_rows_lost_and_noise_keeps_its_meaning(kind):
    """With n of m rows, standard errors are √(m/n) times as large, and cover the truth."""
    rng = np.random.default_rng(5)
    X, noise = rng.normal(size=(8000, 3)) + 1, 0.5
    y = X @ [1.0, -2.0, 0.5] + 4 + noise * rng.normal(size=8000)
    whole = ARD().fit(X, y)
    models = [ARD().fit(project([(X, y)], kind(500, seed=seed)), None) for seed in range(30)]
    ratio = np.mean([model.coef_std_ / whole.coef_std_ for model in models], axis=0)
    np.testing.assert_allclose(ratio, np.sqrt(8000 / 500), rtol=0.05)
    assert np.mean([model.noise_variance_ for model in models]) == pytest.approx(noise**2, rel=0.05)
    t = np.array([(model.coef_ - [1.0, -2.0, 0.5]) / model.coef_std_ for model in models])
    assert 0.7 < np.sqrt(np.mean(t**2)) < 1.3


def test_what_cannot_be_projected(data):
    X, Y = data
    with pytest.raises(ValueError, match="at least one"):
        project([], RowSample(3))
    with pytest.raises(ValueError, match="equally many rows"):
        project([(X, Y[:-1])], RowSample(3))
    with pytest.raises(ValueError, match="rows 0 to 1999 hold NaN"):
        project([(np.where(X > 5, np.nan, X), Y)], RowSample(3))
    for kind in KINDS:
        with pytest.raises(ValueError, match="n must be"):
            kind(0)
