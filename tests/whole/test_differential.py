"""The package against slow, independent truth: 110-digit arithmetic, all subsets, and other people's programs.

How large may an error be? Every quantity of the evidence is a function of the columns z_j = √γ_j θ_j and of y. `Exact`
returns with each the size κ of its first-order change when every column and y change by one part in one: an algorithm
that solves a problem within ε of the given one (a backward stable one) errs by a few εκ, and no algorithm that reads
rounded data can do better. κ is small for most quantities even where cond(Θ) is 1e16, so these bounds bite.
"""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product

import numpy as np
import pytest
from mpmath import MPContext
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, special, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression, Lasso, LinearRegression

import dense_twin as twin
from ardea import ARD, MAPSTSBL, ARDr, ARDvi, SparseARD, rates
from ardea.core import subsets
from ardea.core.compression import GRAM_CONDITION_LIMIT, CompressedRows
from ardea.core.evidence import (
    LOST_DIGITS,
    SAFE_CONDITION,
    SHARP_CONDITION,
    NoiseRule,
    Setting,
    posterior,
    sharpened,
    slopes_and_scores,
)
from ardea.core.lasso import weighted_lasso
from ardea.core.loop import compiled, compiled_steps
from ardea.core.problem import EPS, posed
from ardea.core.reweighted import State
from ardea.methods.task import ard_supports, wide_supports
from ardea.methods.thresholds import SEARCHES, Rule
from ardea.priors import Flat

mp = MPContext()
mp.dps = 110
# A backward stable algorithm errs by this many εκ, at these sizes (k ≤ 15).
FEW = 30.0
LOOPS = ["numpy", pytest.param("compiled", marks=pytest.mark.skipif(compiled is None, reason="no compiler"))]


# Exact arithmetic -----------------------------------------------------------------------------------------------------


def exact(values):
    return np.frompyfunc(lambda x: mp.mpf(float(x)), 1, 1)(np.asarray(values, dtype=float))


def rounded(values):
    return np.asarray(values, dtype=float)


root_of = np.frompyfunc(mp.sqrt, 1, 1)


def column_norms(matrix):
    return root_of((matrix * matrix).sum(axis=0)) if matrix.shape[1] else np.empty(0, dtype=object)


def zeros(*shape):
    return np.full(shape, mp.mpf(0), dtype=object)


def cholesky(matrix):
    n = len(matrix)
    lower = zeros(n, n)
    for j in range(n):
        lower[j, j] = mp.sqrt(matrix[j, j] - lower[j, :j] @ lower[j, :j]) if j else mp.sqrt(matrix[j, j])
        for i in range(j + 1, n):
            lower[i, j] = (matrix[i, j] - (lower[i, :j] @ lower[j, :j] if j else 0)) / lower[j, j]
    return lower


def solved(lower, right):
    """Return (LLᵀ)⁻¹ right."""
    x, n = right.copy(), len(lower)
    for i in range(n):
        x[i] = (x[i] - (lower[i, :i] @ x[:i] if i else 0)) / lower[i, i]
    for i in reversed(range(n)):
        x[i] = (x[i] - (lower[i + 1 :, i] @ x[i + 1 :] if i < n - 1 else 0)) / lower[i, i]
    return x


def exact_rows(theta, y, weight=None, *, intercept=False):
    """Return √w·Θ and √w·y less their projection on √w·1, exactly; their norms before that; and m less one."""
    root = root_of(exact(np.ones(len(y)) if weight is None else weight))
    rows = np.column_stack([exact(theta), exact(y)]) * root[:, None]
    m = (root * root).sum()
    sizes = column_norms(rows)
    if intercept:
        rows = rows - np.outer(root, root @ rows) / m
    return rows[:, :-1], rows[:, -1], sizes, m - int(intercept)


def squeezed(theta, y):
    """Return few rows with the same Gram matrix of [Θ y], exactly: Eq. (neg_log_likelihood) asks for no more."""
    both = np.column_stack([theta, y])
    upper = cholesky(both.T @ both).T
    return upper[:, :-1], upper[:, -1]


class Exact:
    """All quantities at (γ, σ²) from Σ_y itself, each with its sensitivity κ (attributes `k_…`).

    With u_j = Σ_y⁻¹θ_j, u = Σ_y⁻¹y, v_j = Zᵀu_j, w = Zᵀu and C = σ²B⁻¹ = I − ZᵀΣ_y⁻¹Z, a change E of Z changes Σ_y by
    EZᵀ + ZEᵀ, so that e.g. δM_j = 2u_jᵀ(δθ_j − Ev_j). `sizes` are the norms that ε is a share of: those of the columns
    and of y before an intercept was projected out.
    """

    def __init__(self, theta, y, gamma, noise, sizes=None, m=None):
        theta, y = (array if array.dtype == object else exact(array) for array in (np.asarray(theta), np.asarray(y)))
        rows, gamma, noise = len(y), np.asarray(gamma, dtype=float), mp.mpf(float(noise))
        sizes = column_norms(np.column_stack([theta, y])) if sizes is None else sizes
        self.active = np.flatnonzero(gamma)
        self.noise, self.root = noise, root_of(exact(gamma[self.active]))
        self.z = z = theta[:, self.active] * self.root
        sigma = z @ z.T if self.active.size else zeros(rows, rows)
        sigma[np.diag_indices(rows)] += noise
        lower = cholesky(sigma)
        u_all = solved(lower, np.column_stack([theta, y]))
        u, u_y = u_all[:, :-1], u_all[:, -1]
        v = z.T @ u
        self.slopes, self.scores = (theta * u).sum(axis=0), theta.T @ u_y
        self.w = self.root * self.scores[self.active]
        self.mean = self.root * self.w
        self.quadratic = y @ u_y
        logarithms = [mp.log(lower[i, i]) for i in range(rows)]
        self.m = mp.mpf(rows) if m is None else m
        self.log_determinant = 2 * sum(logarithms) + (self.m - rows) * mp.log(noise)
        self.shrinkage = -(v[:, self.active] * self.root)
        self.shrinkage[np.diag_indices(self.active.size)] += 1
        self.rss = noise * noise * (u_y @ u_y)
        self._sensitivities(z, u, u_y, v, sizes)

    def _sensitivities(self, z, u, u_y, v, sizes):
        size_z, size_theta, size_y = self.root * sizes[self.active], sizes[:-1], sizes[-1]
        norm_u, norm_u_y = column_norms(u), mp.sqrt(u_y @ u_y)
        spread_w, spread_v = (abs(self.w) * size_z).sum(), (abs(v) * size_z[:, None]).sum(axis=0)
        self.k_slopes = 2 * norm_u * (size_theta + spread_v)
        # Of second order, but where M_j is tiny the larger: (‖δθ_j‖ + ‖Ev_j‖)²/σ².
        self.second_slopes = (size_theta + spread_v) ** 2 / self.noise
        self.k_scores = norm_u * (size_y + spread_w) + norm_u_y * (size_theta + spread_v)
        self.k_w = self.root * self.k_scores[self.active]
        self.k_quadratic = 2 * norm_u_y * (size_y + spread_w)
        reach = column_norms(z @ self.shrinkage) / self.noise if self.active.size else zeros(0)
        spread = (abs(self.shrinkage) * size_z[:, None]).sum(axis=0)
        self.k_log_determinant = 2 * (size_z * reach).sum() + abs(self.log_determinant) + 1
        self.k_shrinkage = np.outer(reach, spread) + np.outer(spread, reach)
        self.condition = float(((size_z * size_z).sum() + self.noise) / self.noise)

    @property
    def crowd(self):
        """√cond(B) where the active columns are dependent to the last digit, as more of them than rows must be."""
        unit = self.z / column_norms(self.z)
        spectrum = np.linalg.svd(rounded(unit), compute_uv=False) if self.active.size else np.ones(1)
        dependent = self.active.size > len(self.z) or spectrum[-1] < 1e-14
        return np.sqrt(self.condition) if dependent else 0.0

    @property
    def cost(self):
        return self.log_determinant + self.quadratic

    @property
    def shrinkage_scale(self):
        """√(C_iiC_jj), the size of an element of C."""
        root = root_of(self.shrinkage.diagonal()) if self.active.size else zeros(0)
        return np.outer(root, root)

    @property
    def kkt_violation(self):
        """Relative violation of q² = M on the support and of q² ≤ M off it, for every column."""
        ratio = self.scores**2 / self.slopes - 1
        on = np.zeros(ratio.size, dtype=bool)
        on[self.active] = True
        return np.where(on, abs(ratio), np.maximum(ratio, 0))

    @property
    def k_kkt(self):
        """How much an error of εκ in q and in M moves the violation."""
        ratio = self.scores**2 / self.slopes
        return 1 + ratio + 2 * abs(self.scores) * self.k_scores / self.slopes + ratio * self.k_slopes / self.slopes

    @property
    def noise_violation(self):
        """σ² as the rule has it, rss/(m − k + tr C), over σ², less one: ∂L/∂σ² = 0 where it is zero."""
        degrees = self.m - self.active.size + self.shrinkage.trace()
        return abs(self.rss / degrees / self.noise - 1)


def assert_within(found, truth, allowed, what):
    excess = rounded(abs(found - truth)) / rounded(allowed)
    assert np.all(excess <= 1), f"{what}: {float(np.max(excess)):.2g} times the error allowed"


def assert_posterior_is_exact(post, truth, factor=FEW):
    """Compare one posterior with the truth: every number within `factor`·εκ, or what its factorisation allows.

    Cholesky (B scaled to unit diagonal has a condition number below SHARP_CONDITION there) loses so much, relative to
    the size of an element. Where active columns are dependent, [Z; σI] is solved as a least-squares problem whose
    condition number is that of the whole, √cond(B), whatever the columns: nothing better is claimed.
    """
    slack = factor * EPS
    crowd = truth.crowd
    chol = SHARP_CONDITION * EPS + slack * crowd
    assert_array_equal(post.active, truth.active)
    natural = root_of(truth.quadratic * np.maximum(1 - truth.shrinkage.diagonal(), mp.mpf(10) ** -90))
    assert_within(post.w, truth.w, slack * (abs(truth.w) + truth.k_w + crowd * natural), "w")
    assert_within(post.mean, truth.mean, slack * truth.root * (abs(truth.w) + truth.k_w + crowd * natural), "mean")
    assert_within(post.quadratic, truth.quadratic, slack * (truth.quadratic + truth.k_quadratic), "quadratic")
    assert_within(
        post.log_determinant, truth.log_determinant, (slack + chol / 10) * truth.k_log_determinant, "log-determinant"
    )
    allowed = slack * truth.k_shrinkage + (slack + chol) * truth.shrinkage_scale
    assert_within(post.noise * post.inverse, truth.shrinkage, allowed, "B⁻¹")
    outer = np.outer(truth.root, truth.root)
    assert_within(post.covariance, outer * truth.shrinkage, outer * allowed * 2, "covariance")
    assert_within(post.n_undetermined, truth.shrinkage.trace(), allowed.trace() + slack, "Σ Σ_jj/γ_j")
    # s_j = 1/Σ_jj − 1/γ_j = (1 − C_jj)/(C_jjγ_j), on which calibrated thresholds rest.
    left = truth.shrinkage.diagonal()
    own, share = (1 - left) / (left * truth.root**2), allowed.diagonal() / (left * (1 - left))
    clear = rounded(share) < 0.01
    assert_within(post.own_precision[clear], own[clear], (2 * share * own)[clear], "own precision")


def assert_slopes_and_scores_are_exact(slopes, scores, truth, factor=FEW):
    """The same for M and q. Where B is well enough conditioned for Cholesky, LOST_DIGITS says what M may lose."""
    slack = factor * EPS
    crowd = truth.crowd
    lost = 1 / LOST_DIGITS if truth.condition <= 2 * SAFE_CONDITION else slack
    allowed = slack * (truth.k_slopes + slack * truth.second_slopes) + (lost + slack * crowd) * truth.slopes
    assert_within(slopes, truth.slopes, allowed, "M")
    natural = root_of(truth.slopes * truth.quadratic)
    chol = EPS * SHARP_CONDITION if truth.condition <= 2 * SAFE_CONDITION else 0.0
    allowed = slack * (abs(truth.scores) + truth.k_scores + crowd * natural) + chol * natural
    assert_within(scores, truth.scores, allowed, "q")


# Evidence and posterior -----------------------------------------------------------------------------------------------


def near_duplicates(m, d, distance):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(m, d // 2))
    return np.column_stack([half, half + distance * rng.normal(size=half.shape)])


DESIGNS = {
    "hilbert": linalg.hilbert(12)[:, :9],
    "square hilbert": linalg.hilbert(12),
    "vandermonde": np.vander(np.linspace(0, 1, 14), 11),
    "near duplicates": near_duplicates(12, 10, 1e-9),
    "equal to the last digit": near_duplicates(10, 8, 1e-15),
    "gaussian": np.random.default_rng(0).normal(size=(14, 6)),
    "wide": np.random.default_rng(0).normal(size=(8, 15)),
    "wide hilbert": linalg.hilbert(12)[:6],
}
SHARES = [1.0, 1e-4, 1e-8, 1e-12, 1e-14]


@cache
def drawn(name, share, decades, seed=1):
    """Return Θ, y, γ over twice so many decades (a third of them zero) and σ² = share·var y."""
    theta, rng = DESIGNS[name], np.random.default_rng(seed)
    m, d = theta.shape
    y = theta @ rng.normal(size=d) + 0.1 * rng.normal(size=m)
    return theta, y, 10.0 ** rng.uniform(-decades, decades, d) * (rng.random(d) < 0.7), share * float(y.var())


@cache
def exactly(name, share, decades):
    return Exact(*drawn(name, share, decades))


def test_the_designs_are_as_ill_conditioned_as_they_should_be():
    condition = {name: np.linalg.cond(theta) for name, theta in DESIGNS.items()}
    assert condition["square hilbert"] > 1e15
    assert condition["equal to the last digit"] > 1e14
    assert condition["hilbert"] > 1e10
    assert exactly("gaussian", 1e-14, 15).condition > 1e27


# Every design with every share of noise and every spread of γ; the widest spread with the most and the least noise.
DECADES = [0, 4, 15]
CASES = {(name, share, DECADES[(i + j) % 3]) for i, name in enumerate(DESIGNS) for j, share in enumerate(SHARES)}
CASES |= {(name, share, DECADES[-1]) for name in DESIGNS for share in (SHARES[0], SHARES[-1])}


@pytest.mark.parametrize(("name", "share", "decades"), sorted(CASES))
def test_posterior_slopes_and_scores_on_ill_conditioned_problems(name, share, decades):
    theta, y, gamma, noise = drawn(name, share, decades)
    truth = exactly(name, share, decades)
    problem = twin.as_problem(theta, y)
    post = sharpened(problem, posterior(problem, gamma, noise))
    assert_posterior_is_exact(post, truth)
    assert_slopes_and_scores_are_exact(*slopes_and_scores(problem, post), truth)
    in_the_loop = posterior(problem, gamma, noise)
    assert_slopes_and_scores_are_exact(*slopes_and_scores(problem, in_the_loop), truth)


def anything(rng):
    """Return a small problem of any shape, rank and scale, with σ² down to 1e-14 of ‖y‖²/m."""
    m, d = int(rng.integers(2, 9)), int(rng.integers(1, 10))
    theta = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, d if rng.random() < 0.5 else 1)
    if rng.random() < 0.3:
        u, s, vt = np.linalg.svd(theta, full_matrices=False)
        theta = (u * 10.0 ** rng.uniform(-8, 0, s.size)) @ vt
    elif d > 1 and rng.random() < 0.4:
        half = d // 2
        theta[:, half : 2 * half] = theta[:, :half] * (1 + 10.0 ** rng.uniform(-9, -2) * rng.normal(size=(m, half)))
    y = rng.normal(size=m) + theta @ rng.normal(size=d)
    decades = rng.choice([1, 4, 8])
    gamma = 10.0 ** rng.uniform(-decades, decades, d) * (rng.random(d) < 0.75) / (theta**2).sum(axis=0)
    return theta, y, gamma, float(10.0 ** rng.uniform(-14, 1) * (y @ y) / m)


def crowded(truth, n_rows):
    """More active columns than rows and hardly any noise: float64 has no digits left for w there."""
    return truth.active.size > n_rows and truth.condition > 1e16


def assert_random_problems_are_exact(seed, n):
    rng = np.random.default_rng(seed)
    left_out = 0
    for _ in range(n):
        theta, y, gamma, noise = anything(rng)
        truth, problem = Exact(theta, y, gamma, noise), twin.as_problem(theta, y)
        if crowded(truth, len(y)):
            left_out += 1
            continue
        post = sharpened(problem, posterior(problem, gamma, noise))
        assert_posterior_is_exact(post, truth)
        assert_slopes_and_scores_are_exact(*slopes_and_scores(problem, post), truth)
    assert left_out < 0.1 * n


def test_random_problems():
    assert_random_problems_are_exact(0, 150)


@pytest.mark.slow
def test_many_random_problems():
    assert_random_problems_are_exact(1, 5000)


# Certificates of both loops -------------------------------------------------------------------------------------------


def certificate(loop, problem, gamma, noise):
    """Return the KKT gap that a loop finds at (γ, σ²) without taking a step; None where the compiled one declines."""
    setting = Setting(problem, Flat(), NoiseRule(noise), inflation=np.ones(gamma.size))
    if loop == "numpy":
        return State(setting, gamma, noise).kkt_gap
    steps = compiled_steps(setting, gamma, noise)
    try:
        return None if steps is None else steps.certify(1e-300)[1]
    except ArithmeticError:
        return None


def assert_certificate_is_exact(loop, theta, y, gamma, noise, truth):
    found = certificate(loop, twin.as_problem(theta, y), gamma, noise)
    if found is None:
        return False
    ratio = rounded(truth.scores**2 / truth.slopes)
    lost = 1 / LOST_DIGITS if truth.condition <= 2 * SAFE_CONDITION else FEW * EPS
    crowd = truth.crowd
    second = rounded(truth.second_slopes / truth.slopes) * ratio
    allowed = FEW * EPS * (rounded(truth.k_kkt) + FEW * EPS * second + crowd * (1 + ratio)) + lost * (1 + ratio)
    assert_within(found, float(max(truth.kkt_violation)), float(np.max(allowed)), f"{loop} certificate")
    return True


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", DESIGNS)
def test_certificates_on_ill_conditioned_problems(name, loop):
    """Away from a fixed point: the gap is the true one, so the loop neither stops early nor misses its end."""
    for share, decades in product(SHARES, [0, 4, 15]):
        assert_certificate_is_exact(loop, *drawn(name, share, decades), exactly(name, share, decades))


@pytest.mark.parametrize("loop", LOOPS)
def test_certificates_on_random_problems(loop):
    rng, judged = np.random.default_rng(2), 0
    for _ in range(100):
        case = anything(rng)
        truth = Exact(*case)
        if not crowded(truth, len(case[1])):
            judged += assert_certificate_is_exact(loop, *case, truth)
    assert judged > 60


# Compression ----------------------------------------------------------------------------------------------------------


def in_blocks(theta, Y, weight, cuts):
    parts = np.split(np.arange(len(theta)), cuts)
    return CompressedRows.from_blocks(
        (theta[part], Y[part], None if weight is None else weight[part]) for part in parts
    )


def merged_in_a_tree(theta, Y, weight, cuts):
    parts = [
        CompressedRows.from_arrays(theta[part], Y[part], None if weight is None else weight[part])
        for part in np.split(np.arange(len(theta)), cuts)
    ]
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [pair[0].merge(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


WAYS = {
    "at once": lambda theta, Y, weight: CompressedRows.from_arrays(theta, Y, weight),
    "single rows": lambda theta, Y, weight: in_blocks(theta, Y, weight, range(1, len(theta))),
    "uneven blocks": lambda theta, Y, weight: in_blocks(theta, Y, weight, [1, 4, 17, 18]),
    "tree": lambda theta, Y, weight: merged_in_a_tree(theta, Y, weight, range(5, len(theta), 5)),
}


def tall(name, rows):
    """Return many rows of one kind of ill-conditioned column."""
    x = np.linspace(-1, 1, rows)
    if name == "vandermonde":
        return np.vander(x, 9) + 0.0
    if name == "near duplicates":
        return near_duplicates(rows, 6, 1e-8) + 0.5
    if name == "hilbert":
        return 1 / (2 + x[:, None] + np.arange(8))
    return np.random.default_rng(0).normal(size=(rows, 6)) + 0.5


@cache
def compressed_truth(name, rows, weighted, intercept, share):
    rng = np.random.default_rng(3)
    theta = tall(name, rows)
    d = theta.shape[1]
    y = theta @ rng.normal(size=d) + 0.1 * rng.normal(size=rows) + 0.3
    weight = rng.integers(1, 6, rows).astype(float) if weighted else None
    gamma, noise = 10.0 ** rng.uniform(-2, 2, d) * (rng.random(d) < 0.8), share * float(y.var())
    gamma[np.ptp(theta, axis=0) == 0] = 0.0
    A, z, sizes, m = exact_rows(theta, y, weight, intercept=intercept)
    live = np.flatnonzero(rounded(column_norms(A)) > 1e-40) if intercept else np.arange(d)
    rows_of, target = squeezed(A[:, live], z)
    truth = Exact(rows_of, target, gamma[live], noise, np.append(sizes[live], sizes[-1]), m)
    return theta, y, weight, gamma, noise, live, truth


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "rows", "share"),
    [("vandermonde", 40, 1e-3), ("vandermonde", 40, 1e-10), ("near duplicates", 40, 1e-6), ("hilbert", 40, 1e-8)],
)
def test_compression_costs_no_digits(name, rows, share, way, weighted, intercept):
    """A chain or tree of QR factorisations is backward stable column by column, each level at most adding its ε."""
    assert_compressed_is_exact(name, rows, share, way, weighted, intercept, FEW)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["at once", "uneven blocks"])
def test_compression_by_gram_matrix_costs_what_its_limit_says(way, weighted, intercept):
    """Well-conditioned long blocks are compressed by Cholesky of their Gram matrix: ε times its condition number."""
    assert_compressed_is_exact("gaussian", 400, 1e-4, way, weighted, intercept, GRAM_CONDITION_LIMIT)


def assert_compressed_is_exact(name, rows, share, way, weighted, intercept, factor):
    theta, y, weight, gamma, noise, live, truth = compressed_truth(name, rows, weighted, intercept, share)
    (problem,), coordinates = WAYS[way](theta, y[:, None], weight).pose(intercept=intercept)
    unit, scale = coordinates.coefficient_unit(0), float(coordinates.targets[0])
    post = sharpened(problem, posterior(problem, gamma / unit**2, noise / scale**2))
    slopes, scores = slopes_and_scores(problem, post)
    slack = factor * EPS
    shift = 2 * problem.n_rows * np.log(scale)
    cost = post.cost + shift
    kappa = truth.quadratic + truth.k_quadratic + truth.k_log_determinant + abs(shift)
    assert_within(cost, truth.cost, (slack + SHARP_CONDITION * EPS / 10) * kappa, "cost")
    mean = unit[post.active] * post.mean
    assert_within(mean, truth.mean, slack * truth.root * (abs(truth.w) + truth.k_w), "mean")
    allowed = slack * truth.k_shrinkage + (slack + SHARP_CONDITION * EPS) * truth.shrinkage_scale
    assert_within(post.noise * post.inverse, truth.shrinkage, allowed, "B⁻¹")
    lost = 1 / LOST_DIGITS
    allowed = slack * (truth.k_slopes + slack * truth.second_slopes) + lost * truth.slopes
    assert_within(slopes[live] / unit[live] ** 2, truth.slopes, allowed, "M")
    natural = root_of(truth.slopes * truth.quadratic)
    allowed = slack * (abs(truth.scores) + truth.k_scores) + EPS * SHARP_CONDITION * natural
    assert_within(scores[live] / unit[live], truth.scores, allowed, "q")


# Whole fits -----------------------------------------------------------------------------------------------------------


def polynomial_data(seed=0, m=60, degree=8, sigma=1e-3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, m)
    X = np.vander(x, degree + 1)[:, :-1]
    return X, 2 * X[:, -1] - 0.7 * X[:, -3] + 0.4 + sigma * rng.normal(size=m), None


def weighted_data(seed=1, m=50, d=7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + rng.normal(size=(m, 1))
    return X, X[:, :3] @ [1.0, -2.0, 0.5] + rng.normal(size=m), rng.integers(1, 4, m).astype(float)


def square_data(seed=2, n=20):
    rng = np.random.default_rng(seed)
    u, _, vt = np.linalg.svd(rng.normal(size=(n, n)))
    X = (u * np.logspace(-4, 0, n)) @ vt
    return X, X[:, :4] @ [1.0, -1.0, 2.0, 0.7] + 0.01 * rng.normal(size=n), None


def wide_data(seed=3, m=12, d=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, 3 * X[:, 2] - 2 * X[:, 11] + 0.3 * rng.normal(size=m), None


FITS = {
    "polynomials": (polynomial_data(), {}),
    "polynomials, hardly any noise": (polynomial_data(sigma=1e-7), {}),
    "polynomials, known noise": (polynomial_data(), {"noise_variance": 1e-6}),
    "weights": (weighted_data(), {}),
    "weights, no intercept": (weighted_data(), {"fit_intercept": False}),
    "as many columns as rows, known noise": (square_data(), {"noise_variance": 1e-4}),
    "more columns than rows, known noise": (wide_data(), {"noise_variance": 0.09}),
}


@pytest.mark.filterwarnings("ignore:The data hardly tell")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", FITS)
def test_a_converged_fit_is_stationary_in_exact_arithmetic(name, loop, monkeypatch):
    """γ and σ² as returned satisfy the conditions to tol, and all that is reported belongs to them."""
    (X, y, weight), options = FITS[name]
    monkeypatch.setenv("ARDEA_LOOP", loop)
    model = ARD(**options).fit(X, y, sample_weight=weight)
    A, z, sizes, m = exact_rows(X, y, weight, intercept=model.fit_intercept)
    rows, target = squeezed(A, z) if len(y) > X.shape[1] else (A, z)
    truth = Exact(rows, target, model.prior_variance_, model.noise_variance_, sizes, m)
    slack = FEW * EPS
    # The problem is normalised by powers of two, so γ and σ² come back without a rounding error that would matter.
    rounding = slack * float(np.max(rounded(truth.k_kkt))) + 1 / LOST_DIGITS
    assert float(max(truth.kkt_violation)) <= model.tol + rounding
    assert abs(float(max(truth.kkt_violation)) - model.kkt_gap_) <= rounding
    if model.noise_variance is None:
        assert float(truth.noise_violation) <= model.tol + slack * float(truth.k_quadratic)
    assert_within(model.coef_[truth.active], truth.mean, slack * truth.root * (abs(truth.w) + truth.k_w), "coef_")
    evidence = -(m * mp.log(2 * mp.pi) + truth.cost) / 2
    kappa = truth.quadratic + truth.k_quadratic + truth.k_log_determinant + abs(m)
    assert_within(model.log_evidence_, evidence, (slack + SHARP_CONDITION * EPS / 10) * kappa, "log_evidence_")
    outer = np.outer(truth.root, truth.root)
    allowed = outer * (slack * truth.k_shrinkage + (slack + SHARP_CONDITION * EPS) * truth.shrinkage_scale)
    assert_within(model.covariance_, outer * truth.shrinkage, allowed, "covariance_")
    deviation = root_of((outer * truth.shrinkage).diagonal())
    assert_within(model.coef_std_[truth.active], deviation, allowed.diagonal() / deviation, "coef_std_")


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.KnownNoiseWarning")  # stationary at any noise
@pytest.mark.filterwarnings("ignore:The data hardly tell")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("learned", [True, False])
def test_inflated_fits_are_stationary_at_the_inflated_noise(learned, loop, monkeypatch):
    """Alg. 2: q² = M on the support and q² ≤ M off it, both at ασ²; σ² itself by the rule at (γ, σ²)."""
    monkeypatch.setenv("ARDEA_LOOP", loop)
    alpha = 6.0
    for X, y, weight in (polynomial_data(), weighted_data()):
        model = ARDvi(alpha=alpha, noise_variance=None if learned else 0.8).fit(X, y, sample_weight=weight)
        A, z, sizes, m = exact_rows(X, y, weight, intercept=True)
        rows, target = squeezed(A, z)
        inflated = Exact(rows, target, model.prior_variance_, alpha * model.noise_variance_, sizes, m)
        rounding = FEW * EPS * float(np.max(rounded(inflated.k_kkt))) + 1 / LOST_DIGITS
        assert float(max(inflated.kkt_violation)) <= model.tol + rounding
        truth = Exact(rows, target, model.prior_variance_, model.noise_variance_, sizes, m)
        assert not learned or float(truth.noise_violation) <= model.tol + FEW * EPS * float(truth.k_quadratic)
        assert_within(
            model.coef_[truth.active], truth.mean, FEW * EPS * truth.root * (abs(truth.w) + truth.k_w), "coef_"
        )


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.KnownNoiseWarning")  # stationary at any noise
@pytest.mark.filterwarnings("ignore:The data hardly tell")
@pytest.mark.parametrize("loop", LOOPS)
def test_regularised_fits_are_stationary_with_their_prior(loop, monkeypatch):
    """Alg. 3 with g = λγ: q² = M + λ on the support, q² ≤ M + λ off it."""
    monkeypatch.setenv("ARDEA_LOOP", loop)
    lam = 3.0
    for X, y, weight in (polynomial_data(), weighted_data()):
        model = ARDr(lam=lam, noise_variance=1e-2).fit(X, y, sample_weight=weight)
        A, z, sizes, m = exact_rows(X, y, weight, intercept=True)
        truth = Exact(*squeezed(A, z), model.prior_variance_, 1e-2, sizes, m)
        ratio = rounded(truth.scores**2 / (truth.slopes + lam)) - 1
        violation = np.where(model.support_, np.abs(ratio), np.maximum(ratio, 0.0))
        assert violation.max() <= model.tol + 1 / LOST_DIGITS
        assert model.support_.any()


def any_design(rng, m):
    """Return m rows of polynomials, near duplicates, a Hilbert-like matrix, a steep spectrum, or scales of 1e±5."""
    kind, d = rng.integers(5), int(rng.integers(3, 10))
    if kind == 0:
        return np.vander(rng.uniform(-1, 1, m), d + 1)[:, :-1]
    if kind == 1:
        return near_duplicates(m, 8, 10.0 ** rng.uniform(-12, -2))
    if kind == 2:
        return 1 / (1 + np.arange(m)[:, None] + np.arange(d))
    if kind == 3:
        u, _, vt = np.linalg.svd(rng.normal(size=(m, d)), full_matrices=False)
        return (u * 10.0 ** -rng.uniform(0, 10, d)) @ vt
    return rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-5, 5, d)


def assert_no_fit_is_silently_wrong(seed, n):
    """Every fit that ends without a ConvergenceWarning is stationary in exact arithmetic, as far as float64 goes."""
    rng, silent = np.random.default_rng(seed), 0
    for _ in range(n):
        X = any_design(rng, int(rng.integers(15, 40)))
        m, d = X.shape
        signal = X @ (rng.normal(size=d) * (rng.random(d) < 0.6) / np.linalg.norm(X, axis=0)) * np.sqrt(m)
        sigma = 10.0 ** rng.uniform(-7, 0) * (signal.std() or 1.0)
        y = signal + rng.normal() + sigma * rng.normal(size=m)
        known = sigma**2 if rng.random() < 0.3 else None
        model = ARD(noise_variance=known, fit_intercept=bool(rng.random() < 0.6))
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            model.fit(X, y)
        if any(issubclass(warning.category, ConvergenceWarning) for warning in raised):
            continue
        silent += 1
        A, z, sizes, degrees = exact_rows(X, y, intercept=model.fit_intercept)
        truth = Exact(*squeezed(A, z), model.prior_variance_, model.noise_variance_, sizes, degrees)
        assert float(max(truth.kkt_violation)) <= model.tol + 1 / LOST_DIGITS + EPS * max(rounded(truth.k_kkt))
        if known is None:
            assert float(truth.noise_violation) <= model.tol + EPS * float(truth.k_quadratic)
    assert silent > 0.85 * n


@pytest.mark.parametrize("loop", LOOPS)
def test_no_fit_is_silently_wrong(loop, monkeypatch):
    monkeypatch.setenv("ARDEA_LOOP", loop)
    assert_no_fit_is_silently_wrong(0, 25)


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_none_of_many_fits_is_silently_wrong(loop, monkeypatch):
    monkeypatch.setenv("ARDEA_LOOP", loop)
    assert_no_fit_is_silently_wrong(1, 500)


# Rates ----------------------------------------------------------------------------------------------------------------


def exact_cut_square(method, strength, v):
    """Return z² of a method (Sec. 3–5 of the paper), v = σ²/ρ."""
    strength = mp.mpf(strength)
    if method == "vi":
        return strength
    if method == "map":
        return 1 + 2 * strength
    if method == "r":
        return 1 + strength * v
    if method == "m":
        t = strength / mp.sqrt(v)
        return ((t + mp.sqrt(t * t + 4)) / 2) ** 2
    if strength in (0, mp.inf):
        return mp.inf if strength == 0 else mp.mpf(1)
    level = mp.log(4 * mp.pi * v * strength**2)  # of (1 + 2w)/w·exp(−2w), Eq. (L_STSBL_FP_rate)
    x = mp.log(max(mp.mpf(0.5), -level / 2)) if level < 0 else -level
    for _ in range(80):
        w = mp.exp(x)
        step = (mp.log(1 + 2 * w) - x - 2 * w - level) / (2 * w / (1 + 2 * w) - 1 - 2 * w)
        x -= step
        if abs(step) < mp.mpf(10) ** -50:
            break
    return 1 + 2 * mp.exp(x)


def exact_added(z):
    if z > 1e6:
        return mp.mpf(0)
    return mp.erfc(z / mp.sqrt(2))


def exact_missed(z, t):
    if z > 1e6:
        return mp.mpf(1)
    with mp.workdps(420 if z < 1e-5 else 110):  # the difference of the two is as small as z
        return (mp.erfc((t - z) / mp.sqrt(2)) - mp.erfc((t + z) / mp.sqrt(2))) / 2


def as_float(x):
    """Return the nearest float, zero or infinity beyond the range."""
    if x == 0 or abs(x) > mp.mpf(10) ** 320:
        return float("inf") * float(mp.sign(x)) if x else 0.0
    return float(x) if abs(x) > mp.mpf(10) ** -330 else 0.0


TINY = 1e-307
RATE_STRENGTHS = [0.0, 1e-300, 1e-100, 1e-16, 1e-3, 0.3, 1.0, 10.0, 700.0, 1e4, 1e100, 1e300, np.inf]
SCALES = [(1.0, 1.0), (7.0, 1e-200), (7.0, 1e-160), (1e200, 1e100), (3e-100, 1e-8), (1.0, 1e150)]


def assert_relative(found, truth, allowed, about):
    truth = as_float(truth)
    if truth < TINY:
        assert found <= 2 * TINY, about
    else:
        assert abs(found - truth) <= allowed * truth, (about, found, truth)


@pytest.mark.parametrize(("rho", "sigma"), SCALES)
@pytest.mark.parametrize("method", rates.METHODS)
def test_rates_over_the_whole_range_of_numbers(method, rho, sigma):
    """Relative error: a few ε, times z² for the tail of a Gaussian, whose relative slope is z."""
    v = mp.mpf(sigma) ** 2 / mp.mpf(rho)
    for strength in RATE_STRENGTHS:
        z_square = exact_cut_square(method, strength, v)
        z = mp.sqrt(z_square)
        near = float(min(z, mp.mpf(40)))
        at = {"rho": rho, "sigma": sigma}
        cut = float(rates.cut(method, strength, **at))
        if as_float(z) == np.inf:
            assert cut > 1e150
        else:
            assert_relative(cut, z, 4 * EPS, ("cut", strength))
        added = float(rates.false_positive_rate(method, strength, **at))
        assert_relative(added, exact_added(z), 8 * EPS * (1 + near**2), ("FP", strength))
        for t in (0.0, 1e-9, 0.5, 6.0, 35.0):
            xi = as_float(t * mp.sqrt(v))
            if t and not 1e-300 < xi < 1e300:
                continue
            truth = exact_missed(z, mp.mpf(xi) / mp.sqrt(v))
            missed = float(rates.false_negative_rate(method, strength, xi, **at))
            assert_relative(missed, truth, 8 * EPS * (1 + (t + 1) * (t + min(near, t + 9))), ("FN", strength, t))


@pytest.mark.parametrize(("rho", "sigma"), SCALES)
@pytest.mark.parametrize("method", rates.METHODS)
def test_the_strength_for_a_rate_in_exact_arithmetic(method, rho, sigma):
    """The exact rate at the strength returned is the rate asked for, down to 1e-300: relative error of ε·z²."""
    v = mp.mpf(sigma) ** 2 / mp.mpf(rho)
    targets = np.array([1e-300, 1e-200, 1e-30, 1e-8, 0.01, 0.2, 0.31])
    found = rates.strength_for(method, targets, rho=rho, sigma=sigma)
    for target, strength in zip(targets, found, strict=True):
        if not TINY < strength < 1 / TINY:
            continue  # λ or τ itself is beyond the numbers
        reached = exact_added(mp.sqrt(exact_cut_square(method, float(strength), v)))
        z_square = 2 * special.erfcinv(target) ** 2
        assert_relative(target, reached, 20 * EPS * (1 + z_square), (target, strength))


@pytest.mark.parametrize("method", rates.METHODS)
@pytest.mark.parametrize("to", rates.METHODS)
def test_equivalent_strengths_in_exact_arithmetic(method, to):
    """Also where the cut is 1 + 1e-20: tiny strengths keep their digits on the way through z² − 1."""
    rho, sigma = 7.0, 1e-3
    v = mp.mpf(sigma) ** 2 / mp.mpf(rho)
    strengths = {"vi": [1.0, 1.5, 30.0, 1e3], "l": [1e3, 1.0, 1e-3, 1e-250]}.get(method, [1e-30, 1e-20, 1e-3, 0.4, 9.0])
    for strength in strengths:
        found = float(rates.equivalent(method, strength, to, rho=rho, sigma=sigma))
        if not TINY < found < 1 / TINY:
            continue
        excess, reached = (exact_cut_square(name, s, v) - 1 for name, s in ((method, strength), (to, found)))
        # τ_L varies with z² − 1 as an exponential; all others as a power.
        allowed = 20 * EPS * (1 + excess) + (EPS if to == "vi" else 0)
        assert abs(reached - excess) <= allowed * (excess if to != "vi" else 1 + excess), (strength, found)


@pytest.mark.parametrize("method", rates.METHODS)
def test_expected_terms_and_operating_curves_in_exact_arithmetic(method):
    rng = np.random.default_rng(0)
    xi = np.where(np.arange(12) < 5, rng.normal(size=12) * 1e-4, 0.0)
    rho, sigma = 10.0 ** rng.uniform(-2, 6, 12), 1e-3
    strength = float(rates.strength_for(method, 1e-3, rho=1e2, sigma=sigma))
    added, missed = mp.mpf(0), mp.mpf(0)
    for x, r in zip(xi, rho, strict=True):
        v = mp.mpf(sigma) ** 2 / mp.mpf(r)
        z = mp.sqrt(exact_cut_square(method, strength, v))
        if x:
            missed += exact_missed(z, abs(mp.mpf(x)) / mp.sqrt(v))
        else:
            added += exact_added(z)
    found = rates.expected_terms(method, strength, xi, rho=rho, sigma=sigma)
    assert_allclose([found.added, found.missed], [float(added), float(missed)], rtol=1e-12)
    targets = np.array([1e-250, 1e-12, 1e-3, 0.3])
    curve = rates.operating_curve(method, 5e-3, rho=2.0, sigma=sigma, false_positive=targets)
    for target, reached in zip(targets, curve.false_negative, strict=True):
        z = mp.findroot(lambda z, p=target: mp.log(exact_added(z)) - mp.log(p), np.sqrt(2) * special.erfcinv(target))
        truth = exact_missed(z, mp.mpf(5e-3) * mp.sqrt(2) / mp.mpf(sigma))
        assert_relative(float(reached), truth, 1e-12, target)


# MAP search against all subsets ---------------------------------------------------------------------------------------


def all_masks(k):
    return np.array(list(product([False, True], repeat=k)))


def frozen_gains(mean, covariance, tau):
    """Return ln p(ξ₋S)/p(μ) of Eq. (sparse_xi_posterior) for every set S of coordinates put to zero, others at μ."""
    removed = all_masks(mean.size)
    step = np.where(removed, -mean, 0.0)
    return removed @ tau - 0.5 * np.einsum("si,ij,sj->s", step, np.linalg.inv(covariance), step)


def followed_gains(mean, covariance, tau):
    """The same with the kept coordinates at their best: ½μ_Sᵀ(Σ_SS)⁻¹μ_S is then the price of S."""
    removed = all_masks(mean.size)
    price = [0.5 * mean[s] @ np.linalg.solve(covariance[np.ix_(s, s)], mean[s]) if s.any() else 0.0 for s in removed]
    return removed @ tau - np.array(price)


def random_posterior(rng, k):
    """Return a posterior over k correlated columns, a third of which explain nothing."""
    m = 3 * k
    theta = rng.normal(size=(m, k)) @ (np.eye(k) + 0.4 * rng.normal(size=(k, k)) / np.sqrt(k) * 2)
    xi = rng.normal(size=k) * (rng.random(k) < 0.67)
    y = theta @ xi * 0.3 + rng.normal(size=m)
    problem = twin.as_problem(theta, y)
    return posterior(problem, 10.0 ** rng.uniform(-1.5, 1, k), 1.0), problem.square_norms


def searched(search, post, rho, tau):
    """Return which columns a search removes and what that gains, over the best of all subsets, and over 0."""
    verdict = Rule(SEARCHES[search], tau)(post, rho, np.arange(tau.size))
    gains = (followed_gains if search == "backward" else frozen_gains)(post.mean, post.covariance, tau)
    index = int(verdict.drop @ (1 << np.arange(tau.size)[::-1]))
    return gains[index], gains.max()


# The best of all subsets is found in at least this share of random cases of 4 to 9 columns.
REACHED = {"greedy": 0.82, "forward-backward": 0.84, "backward": 0.88}


def reached_share(search, seed, n, largest=9):
    rng, hits = np.random.default_rng(seed), 0
    for _ in range(n):
        k = int(rng.integers(4, largest + 1))
        post, rho = random_posterior(rng, k)
        tau = rng.uniform(0.3, 4, k) if rng.random() < 0.5 else np.full(k, rng.uniform(0.3, 4))
        gain, best = searched(search, post, rho, tau)
        assert -1e-9 <= gain <= best + 1e-9
        hits += gain >= best - 1e-9 * (1 + best)
    return hits


def assert_at_least(hits, n, share):
    """A search that reaches the share stated would fall so low once in a thousand runs."""
    assert stats.binom.cdf(hits, n, share) > 1e-3, f"{hits} of {n}, {share} stated"


@pytest.mark.parametrize("search", REACHED)
def test_no_search_beats_all_subsets_and_most_reach_them(search):
    assert_at_least(reached_share(search, 0, 150), 150, REACHED[search])


@pytest.mark.slow
@pytest.mark.parametrize("search", REACHED)
def test_no_search_beats_all_subsets_of_twelve(search):
    assert_at_least(reached_share(search, 1, 1000, largest=12), 1000, REACHED[search] - 0.05)


@pytest.mark.parametrize("k", [1, 5, 12])
@pytest.mark.parametrize("search", ["diagonal", *REACHED])
def test_on_orthogonal_columns_every_search_is_all_subsets(search, k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        theta = twin.orthogonal_columns(rng, k + 3, rng.uniform(1, 3, k))
        problem = twin.as_problem(theta, theta @ rng.normal(size=k) + 0.5 * rng.normal(size=k + 3))
        post = posterior(problem, 10.0 ** rng.uniform(-1, 1, k), 0.25)
        gain, best = searched(search, post, problem.square_norms, rng.uniform(0.2, 4, k))
        assert gain == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("search", ["diagonal", *REACHED])
def test_what_mapstsbl_keeps_no_subset_would_improve_by_one_more_removal(search):
    """At the end of the whole estimator: the posterior it returns is one from which its own search removes nothing."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 8)) + rng.normal(size=(40, 1))
    y = X[:, :3] @ [0.4, -0.6, 1.0] + rng.normal(size=40)
    tau = 2.0
    model = MAPSTSBL(tau=tau, search=search).fit(X, y)
    mean, covariance = model.coef_[model.support_], model.covariance_
    gains = (followed_gains if search == "backward" else frozen_gains)(mean, covariance, np.full(mean.size, tau))
    single = all_masks(mean.size).sum(axis=1) == 1
    assert gains[single].max(initial=-np.inf) <= 1e-9


# Search by EBIC2 against all subsets ----------------------------------------------------------------------------------


def best_by_ebic2(A, z, largest):
    """Return the least N ln(RSS/N) + 2[k ln N + 2 ln C(d,k)] over all supports of at most so many terms."""
    n, d = A.shape
    best = (n * np.log(z @ z / n), ())
    for mask in all_masks(d):
        k = int(mask.sum())
        if 0 < k <= largest:
            coefficients, *_ = np.linalg.lstsq(A[:, mask], z, rcond=None)
            rss = float(np.sum((z - A[:, mask] @ coefficients) ** 2))
            criterion = n * np.log(rss / n) + 2 * (k * np.log(n) + 2 * np.log(special.comb(d, k)))
            best = min(best, (float(criterion), tuple(np.flatnonzero(mask).tolist())))
    return best


def pool_reaches_all_subsets(seed, n, d):
    hits = 0
    for trial in range(n):
        rng = np.random.default_rng([seed, trial])
        A = rng.normal(size=(50, d)) @ (np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d))
        xi = np.where(np.arange(d) < 3, rng.choice([-1, 1], d) * rng.uniform(0.2, 1.0, d), 0.0)
        z = A @ xi + rng.normal(size=50)
        problem, _ = posed(A, z)
        found = subsets.select(problem, [*ard_supports(problem), *wide_supports(problem)])[0]
        criterion, support = best_by_ebic2(A / np.linalg.norm(A, axis=0), z, problem.largest)
        assert found.criterion >= criterion - 1e-7
        hits += found.support == support
    return hits


def test_the_pool_of_supports_holds_the_best_of_all_subsets():
    """EBIC2: least over all subsets in at least 95 % of random correlated systems with weak terms."""
    assert_at_least(pool_reaches_all_subsets(0, 30, 8), 30, 0.95)


@pytest.mark.slow
def test_the_pool_of_supports_holds_the_best_of_all_subsets_of_twelve():
    assert_at_least(pool_reaches_all_subsets(1, 60, 12), 60, 0.95)


def neighbours_of(support, d, largest):
    near = [set(support) ^ {j} for j in range(d)]
    near += [set(support) - {i} | {j} for i in support for j in range(d) if j not in support]
    return [tuple(sorted(s)) for s in near if len(s) <= largest]


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e4])
def test_the_best_move_among_nearly_equal_columns(offset):
    """Powers of offset + u differ by parts of u/offset: what is left of one beside the others is still a column."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        u = rng.uniform(-1, 1, 50)
        A = np.column_stack([np.ones(50), offset + u, (offset + u) ** 2, offset * rng.normal(size=50) + u**3, u**2])
        z = rng.normal() + 2 * u - u**2 + 1e-3 * rng.normal(size=50)
        problem, _ = posed(A, z)
        support = tuple(sorted(rng.choice(5, int(rng.integers(0, 4)), replace=False).tolist()))
        near = neighbours_of(support, 5, problem.largest)
        best = min(subsets.model(problem, s).criterion for s in near)
        assert subsets.best_move(problem, subsets.model(problem, support)).criterion <= best + 1e-6 * abs(best)


# Other people's programs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_ard_reaches_the_optimum_of_scikit_learns_ard(seed):
    """Well-conditioned, no hyper-priors: one optimum, so γ, σ² and ξ agree to the tolerance of theirs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 6))
    y = X @ rng.choice([-1, 1], 6) * 2.0 + 0.5 * rng.normal(size=120)
    none = {f"{name}_{i}": 0.0 for name in ("alpha", "lambda") for i in (1, 2)}
    theirs = ARDRegression(fit_intercept=False, tol=1e-12, max_iter=100_000, threshold_lambda=1e12, **none).fit(X, y)
    ours = ARD(fit_intercept=False, tol=1e-10).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    assert_allclose(ours.prior_variance_, 1 / theirs.lambda_, rtol=1e-7)
    assert ours.noise_variance_ == pytest.approx(1 / theirs.alpha_, rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_flat_prior_on_all_columns_is_linear_regression(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * 10.0 ** rng.integers(-3, 4, 5) + 2.0
    y = X @ rng.normal(size=5) + rng.normal(size=40)
    weight = rng.integers(1, 5, 40).astype(float) if weighted else None
    theirs = LinearRegression().fit(X, y, sample_weight=weight)
    ours = ARD(always_keep=range(5)).fit(X, y, sample_weight=weight)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8)
    m = 40 if weight is None else weight.sum()
    rss = np.sum((1 if weight is None else weight) * (y - theirs.predict(X)) ** 2)
    assert ours.noise_variance_ == pytest.approx(rss / (m - 6), rel=1e-9)


def test_refit_intervals_are_those_of_linear_regression_on_the_support():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 10))
    y = X[:, :3] @ [2.0, -1.0, 1.5] + 0.7 + rng.normal(size=60)
    model = SparseARD().fit(X, y)
    kept = model.support_
    theirs = LinearRegression().fit(X[:, kept], y)
    design = np.column_stack([np.ones(60), X[:, kept]])
    degrees = 60 - design.shape[1]
    variance = np.sum((y - theirs.predict(X[:, kept])) ** 2) / degrees * np.linalg.inv(design.T @ design).diagonal()[1:]
    low, high = model.credible_interval(0.9, "refit")[kept].T
    assert_allclose((low + high) / 2, theirs.coef_, rtol=1e-9)
    assert_allclose((high - low) / 2, stats.t(degrees).ppf(0.95) * np.sqrt(variance), rtol=1e-9)


@pytest.mark.parametrize("shape", [(40, 10), (15, 30)])
@pytest.mark.parametrize("seed", range(3))
def test_the_weighted_lasso_is_scikit_learns_on_rescaled_columns(seed, shape):
    """½‖y − Θξ‖² + Σλ_j|ξ_j| is Lasso on θ_j/λ_j with alpha = 1/m."""
    rng = np.random.default_rng(seed)
    m, d = shape
    theta, weights = rng.normal(size=shape), rng.uniform(0.5, 6, d)
    y = theta[:, :4] @ [2.0, -1.0, 1.0, 0.5] + rng.normal(size=m)
    theirs = Lasso(alpha=1 / m, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(theta / weights, y)
    ours = weighted_lasso(twin.as_problem(theta, y), weights)
    assert_allclose(ours, theirs.coef_ / weights, rtol=1e-5, atol=1e-8)
    assert_array_equal(ours != 0, theirs.coef_ != 0)


@pytest.mark.parametrize("seed", range(3))
def test_supports_of_abess_on_easy_problems(seed):
    abess = pytest.importorskip("abess")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 20))
    coef = np.zeros(20)
    coef[rng.choice(20, 4, replace=False)] = rng.choice([-1, 1], 4) * 3.0
    y = X @ coef + rng.normal(size=150)
    theirs = abess.LinearRegression().fit(X, y)
    ours = SparseARD(false_terms=1e-3).fit(X, y)
    assert_array_equal(ours.support_, theirs.coef_ != 0)
    assert_array_equal(ours.support_, coef != 0)
    assert_allclose(ours.coef_[ours.support_], theirs.coef_[ours.support_], rtol=0.02)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.TinyNoiseWarning")
def test_pysindy_with_our_optimizer_finds_what_stlsq_finds_without_noise():
    """Exact derivatives of Lorenz 63: both must return the equations themselves."""
    pysindy = pytest.importorskip("pysindy")
    from ardea.dynamics import systems
    from ardea.pysindy import ARDOptimizer

    t, x = systems.lorenz63().simulate()
    x_dot = np.column_stack(
        [10 * (x[:, 1] - x[:, 0]), x[:, 0] * (28 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8 / 3 * x[:, 2]]
    )
    found = []
    for optimizer in (pysindy.STLSQ(threshold=0.1), ARDOptimizer(SparseARD(fit_intercept=False))):
        model = pysindy.SINDy(optimizer=optimizer, feature_library=pysindy.PolynomialLibrary(degree=2))
        found.append(model.fit(x, t=t, x_dot=x_dot).coefficients())
    assert_array_equal(found[0] != 0, found[1] != 0)
    assert (found[1] != 0).sum() == 7
    assert_allclose(found[0], found[1], atol=1e-6)
    assert_allclose(sorted(np.abs(found[1][found[1] != 0])), [1, 1, 1, 8 / 3, 10, 10, 28], rtol=1e-7)


def test_inflation_of_one_is_ard_to_the_last_digits():
    X, y, _ = weighted_data()
    assert_allclose(ARDvi(alpha=1.0).fit(X, y).coef_, ARD().fit(X, y).coef_, rtol=1e-12)
