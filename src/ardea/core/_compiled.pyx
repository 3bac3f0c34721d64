# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The steps of :mod:`ardea.core.reweighted`, compiled, for a dense design and a flat or capped linear prior.

Step for step the NumPy twin, which stays the reference (its docstrings hold the maths); the names are the same. Arrays
of the problem are column-major. An ArithmeticError says that the twin has a special path (a posterior too
ill-conditioned for Cholesky, more active columns than there is room for): the caller then runs the twin. No Python
object is touched inside a step, so the GIL is released.
"""

import numpy as np

from ardea.core import evidence, lasso as weighted_lasso, reweighted

from libc.math cimport INFINITY, exp, fabs, isfinite, log, sqrt
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dpotrs, dsyev, dtrcon

cdef double EPS = 2.220446049250313e-16
cdef double TINY = 2.2250738585072014e-308
cdef int ONE = 1
# Columns whose products are taken at once: more cost memory, fewer read the design more often (measured).
cdef int GATHER = 128
# Up to so many rows there is room for as many active columns, which a collapse needs: 2 GB of addresses, a convention.
cdef int MOST_ROOM = 5120
# Both twins take the same decisions.
cdef double SAFE_PIVOT = evidence.SAFE_PIVOT
cdef double SAFE_SHARE = evidence.SAFE_SHARE
cdef double SAFE_CONDITION = evidence.SAFE_CONDITION
cdef double SAFE_EXPLAINED = evidence.SAFE_EXPLAINED
cdef double LOST_DIGITS = evidence.LOST_DIGITS
cdef double RELATIVE_SLACK = weighted_lasso.RELATIVE_SLACK
cdef double SINGULAR_PIVOT = weighted_lasso.SINGULAR_PIVOT
cdef double SETTLED_CHANGE = reweighted.SETTLED_CHANGE
cdef int MAX_NEWTON_STEPS = reweighted.MAX_NEWTON_STEPS

ctypedef double* Doubles
ctypedef int* Ints
ctypedef char* Flags

cdef struct Violator:
    double ratio
    int column

cdef struct Post:
    int k, has_inverse
    double noise, rss, log_determinant, quadratic, undetermined
    Ints active
    Doubles root, w, triangle, inverse, residual


cdef class Steps:
    """The problem, the setting, the present δ and σ², and all the work space that the steps need."""

    cdef int r, d, capacity, pool_capacity, pool_count, learned, uniform, rescaled, has_prior, over_noise, has_cost
    cdef int n_set, n_faces, n_factored, direct
    cdef double rows, rest, total, floor, noise, cost, kkt_gap, noise_gap
    cdef Doubles A, b, rho, correlation0, alpha, noise_scale, lam, eta
    cdef Doubles delta, moved, trial, c, q, score, xi, weights, rounding, correlation
    cdef Doubles pool, half, matrix, scale, goal, signs, values, vector1, vector2, work
    cdef Doubles row_vector, gather, vectors, block, block2
    cdef Ints position, pooled, index, gathered, factored, chosen
    cdef Flags in_set, newcomer, doubtful, keep
    cdef Violator* violators
    cdef Post here, next_post, rule_post
    cdef Doubles next_double
    cdef Ints next_int
    cdef list _arrays

    def __init__(self, setting, double[::1] lam, double[::1] eta, bint over_noise, double[::1] delta, double noise):
        """`lam` and `eta` are None where there is no prior."""
        cdef int j
        problem, rule = setting.problem, setting.noise_rule
        cdef double[::1, :] A = problem.columns.matrix
        cdef double[::1] b = np.ascontiguousarray(problem.target), rho = problem.square_norms
        cdef double[::1] correlation0 = problem.correlations
        cdef double[::1] alpha = np.ascontiguousarray(setting.inflation, dtype=float)
        cdef double[::1] noise_scale = np.ascontiguousarray(setting.noise_factors, dtype=float)
        self._arrays = [A, b, rho, correlation0, alpha, lam, eta, noise_scale]
        self.r, self.d = A.shape[0], A.shape[1]
        self.A, self.b, self.rho, self.correlation0 = &A[0, 0], &b[0], &rho[0], &correlation0[0]
        self.alpha, self.noise_scale = &alpha[0], &noise_scale[0]
        if lam is not None:
            self.lam, self.eta = &lam[0], &eta[0]
        self.rest, self.rows, self.total = problem.rest, problem.n_rows, problem.total
        self.learned, self.floor = rule.learned, rule.floor(problem) if rule.learned else 0.0
        self.over_noise, self.has_cost, self.noise = over_noise, setting.has_cost, noise
        self.uniform, self.rescaled, self.has_prior, self.direct, self.pool_count = 1, 0, 0, 0, 0
        for j in range(self.d):
            self.uniform = self.uniform and self.alpha[j] == self.alpha[0]
            self.rescaled = self.rescaled or self.noise_scale[j] != 1.0
            self.has_prior = self.has_prior or (lam is not None and self.lam[j] != 0.0)
        self.capacity = min(self.d, self.r + 2 if self.r <= MOST_ROOM else max(MOST_ROOM, self.r // 2))
        self.pool_capacity = min(self.d, 2 * self.capacity + 128)
        self._allocate()
        for j in range(self.d):
            self.position[j] = -1
            self.rounding[j] = 8 * EPS * sqrt(self.rho[j] * self.total)
            self.delta[j], self.xi[j] = delta[j], 0.0

    def _allocate(self):
        """Carve all work space out of three arrays; pages that are never touched cost nothing."""
        cdef Py_ssize_t k = self.capacity, d = self.d, r = self.r, pool = self.pool_capacity
        cdef double[::1] doubles = np.empty(pool * d + 10 * d + d * k + k * k + 10 * k + r + GATHER * (r + 2 * k)
                                            + r * k + 3 * (2 * k + 2 * k * k + r))
        cdef int[::1] ints = np.zeros(2 * d + pool + 5 * k + GATHER, dtype=np.intc)
        cdef char[::1] bytes_ = np.zeros(3 * d + k + 1 + d * sizeof(Violator), dtype=np.int8)
        self._arrays += [doubles, ints, bytes_]
        self.next_double, self.next_int = &doubles[0], &ints[0]
        self.pool = self.doubles(pool * d)
        self.position, self.pooled, self.chosen = self.ints(d), self.ints(pool), self.ints(d)
        self.delta, self.moved, self.trial = self.doubles(d), self.doubles(d), self.doubles(d)
        self.c, self.q, self.xi, self.score = self.doubles(d), self.doubles(d), self.doubles(d), self.doubles(d)
        self.weights, self.rounding, self.correlation = self.doubles(d), self.doubles(d), self.doubles(d)
        self.half, self.matrix = self.doubles(d * k), self.doubles(k * k)
        self.scale, self.goal, self.signs, self.values = self.doubles(k), self.doubles(k), self.doubles(k), self.doubles(k)
        self.vector1, self.vector2, self.work = self.doubles(k), self.doubles(k), self.doubles(4 * k)
        self.row_vector, self.gather, self.vectors = self.doubles(r), self.doubles(GATHER * r), self.doubles(r * k)
        self.block, self.block2 = self.doubles(GATHER * k), self.doubles(GATHER * k)
        self.index, self.gathered, self.factored = self.ints(k), self.ints(GATHER), self.ints(k)
        self.violators = <Violator*> &bytes_[0]
        self.in_set = &bytes_[d * sizeof(Violator)]
        self.newcomer, self.doubtful, self.keep = self.in_set + d, self.in_set + 2 * d, self.in_set + 3 * d
        self.allot(&self.here)
        self.allot(&self.next_post)
        self.allot(&self.rule_post)

    cdef double* doubles(self, Py_ssize_t n) noexcept:
        self.next_double += n
        return self.next_double - n

    cdef int* ints(self, Py_ssize_t n) noexcept:
        self.next_int += n
        return self.next_int - n

    cdef void allot(self, Post* post) noexcept:
        cdef Py_ssize_t k = self.capacity
        post.active, post.root, post.w = self.ints(k), self.doubles(k), self.doubles(k)
        post.triangle, post.inverse, post.residual = self.doubles(k * k), self.doubles(k * k), self.doubles(self.r)

    def certify(self, double tol):
        """Return where δ and σ² stand: the cost, both gaps, σ², and the number of active columns."""
        cdef int outcome
        with nogil:
            outcome = certify(self)
            if outcome == 0 and not self.direct and self.kkt_gap <= tol and self.noise_gap <= tol:
                # The Gram rows say that this is the end; the columns themselves have the last word.
                self.direct = 1
                outcome = certify(self)
        _needs_twin(outcome)
        return self.cost, self.kkt_gap, self.noise_gap, self.noise, self.here.k

    def majorise(self):
        """Take one majorisation step; return whether it moved next to nothing."""
        cdef int outcome
        with nogil:
            outcome = majorise(self)
        _needs_twin(outcome)
        return outcome == 1

    def newton(self, double tol):
        """Take Newton steps; return whether one was accepted."""
        cdef int outcome
        with nogil:
            outcome = newton(self, tol)
        _needs_twin(outcome)
        return outcome == 1

    def variances(self):
        """Return δ."""
        return np.array(<double[:self.d]> self.delta)

    def posterior_parts(self):
        """Return active columns, √γ, σ², Cholesky factor, w, residual, rss and log-determinant at γ = αδ and σ², where
        the last certificate stands, and an estimate of the condition number of B scaled to unit diagonal."""
        cdef int i, j, k, outcome = 0, inflated = 0
        cdef double size, reciprocal = 1.0
        cdef Post* post = &self.here
        for j in range(self.d):
            inflated = inflated or self.alpha[j] != 1.0
        if inflated:
            post = &self.rule_post
            outcome = posterior(self, post, self.delta, self.alpha, self.noise)
        _needs_twin(outcome)
        k = post.k
        active, root, w, triangle = np.empty(k, dtype=np.intp), np.empty(k), np.empty(k), np.zeros((k, k), order="F")
        residual = np.empty(self.r)
        cdef Py_ssize_t[::1] places = active
        cdef double[::1] roots = root, means = w, left = residual
        cdef double[::1, :] lower = triangle
        memcpy(&left[0], post.residual, self.r * sizeof(double))
        for i in range(k):
            places[i], roots[i], means[i] = post.active[i], post.root[i], post.w[i]
            memcpy(&lower[i, i], post.triangle + at(k, i, i), (k - i) * sizeof(double))
        for i in range(k):
            size = 0.0
            for j in range(i + 1):
                size += lower[i, j] * lower[i, j]
            for j in range(i + 1):
                self.matrix[at(k, j, i)] = lower[i, j] / sqrt(size)
        if k:
            dtrcon("1", "L", "N", &k, self.matrix, &k, &reciprocal, self.work, <int*> self.vector1, &i)
        parts = active, root, self.noise, triangle, w, residual, post.rss, post.log_determinant
        return *parts, 1 / max(reciprocal * reciprocal, TINY)


cdef _needs_twin(int outcome):
    if outcome < 0:
        raise ArithmeticError("a case for the NumPy twin")


cdef inline double* column(Steps self, int j) noexcept nogil:
    return self.A + <Py_ssize_t> j * self.r


cdef inline Py_ssize_t at(int width, int i, int j) noexcept nogil:
    """Return the place of entry j of row i in an array of rows of this width."""
    return <Py_ssize_t> i * width + j


include "_evidence.pxi"
include "_lasso.pxi"

# --- Steps ---------------------------------------------------------------------------------------------------


cdef int majorise(Steps self) noexcept nogil:
    """Take one majorisation step with tangent weights c; 1 where it moved next to nothing, −1 for the twin."""
    cdef int j, settled = 1
    cdef double change, largest = 0.0
    cdef Post* rule
    for j in range(self.d):
        self.weights[j] = self.noise * sqrt(self.c[j])
    if lasso(self) < 0:
        return -1
    for j in range(self.d):
        self.moved[j] = fabs(self.xi[j]) / sqrt(self.c[j]) if self.xi[j] != 0 else 0.0
        if (self.moved[j] > 0) != (self.delta[j] > 0):
            settled = 0
    if self.learned:
        if posterior(self, &self.next_post, self.moved, NULL, self.noise) < 0:
            return -1
        rule = noise_posterior(self, self.moved, &self.next_post)
        if rule == NULL:
            return -1
        self.noise = update_noise(self, rule)
    for j in range(self.d):
        change = fabs(self.moved[j] - self.delta[j]) * self.rho[j] / (self.noise + self.moved[j] * self.rho[j])
        largest = max(largest, change)
    memcpy(self.delta, self.moved, self.d * sizeof(double))
    return 1 if settled and largest <= SETTLED_CHANGE else 0


cdef int violation_at(Steps self, double* gamma, Post* post, double* out) noexcept nogil:
    """Return max |F_i| over the active columns and the noise rule."""
    cdef int i, j, k = post.k
    cdef double force, worst = 0.0
    cdef Post* rule = noise_posterior(self, gamma, post)
    if rule == NULL:
        return -1
    invert(self, post)
    for i in range(k):
        j = post.active[i]
        force = post.w[i] * post.w[i] - self.alpha[j] * (1.0 - post.noise * post.inverse[at(k, i, i)]) \
            - gamma[j] * prior_slope(self, j, gamma[j], post.noise)
        worst = max(worst, fabs(force))
    worst = max(worst, fabs(update_noise(self, rule) / post.noise - 1))
    out[0] = worst if isfinite(worst) else INFINITY
    return 0


cdef void mixed_slope(Steps self, Post* post, int with_alpha, double* out) noexcept nogil:
    """Fill s·δ_i ∂²/∂δ_i∂s of α log|Σ_y| + yᵀΣ_y⁻¹y."""
    cdef int i, k = post.k
    cdef double s = post.noise, alpha
    cdef double* row
    for i in range(k):
        row = post.inverse + at(k, i, 0)
        alpha = self.alpha[post.active[i]] if with_alpha else 1.0
        out[i] = 2 * s * post.w[i] * ddot(&k, row, &ONE, post.w, &ONE) \
            - alpha * (s * row[i] - s * s * ddot(&k, row, &ONE, row, &ONE))


cdef int newton_direction(Steps self, double* gamma, Post* post, double* p, double* u) noexcept nogil:
    """Fill the relative step p of δ and u of σ²; −1 where there is none."""
    cdef int i, j, info, k = post.k
    cdef double s = post.noise, m = self.rows, e, ai, size = 0.0, damping = 0.0
    cdef double degrees, noise_residual, trace_square = 0.0, pull = 0.0, noise_slope, schur
    cdef double* row
    cdef Post* rule
    if k == 0:
        return -1
    invert(self, post)
    for i in range(k):
        j = post.active[i]
        p[i] = -(self.alpha[j] * (1.0 - s * post.inverse[at(k, i, i)]) - post.w[i] * post.w[i]
                 + gamma[j] * prior_slope(self, j, gamma[j], s))
    while True:
        for i in range(k):
            ai = sqrt(self.alpha[post.active[i]])
            for j in range(i, k):
                e = (1.0 if i == j else 0.0) - s * post.inverse[at(k, i, j)]
                self.matrix[at(k, i, j)] = 2 * post.w[i] * post.w[j] * e - ai * sqrt(self.alpha[post.active[j]]) * e * e
            if damping == 0:
                size += fabs(self.matrix[at(k, i, i)])
            self.matrix[at(k, i, i)] += damping
        if not isfinite(size):
            return -1
        dpotrf("L", &k, self.matrix, &k, &info)
        if info == 0:
            break
        damping = max(10 * damping, 1e-6 * (size / k + TINY))
    dpotrs("L", &k, &ONE, self.matrix, &k, p, &k, &info)
    u[0] = 0.0
    rule = noise_posterior(self, gamma, post)
    if rule == NULL:
        return -1
    if update_noise(self, rule) == s:
        return 0
    mixed_slope(self, post, 1, self.vector1)
    mixed_slope(self, rule, 0, self.vector2)
    degrees = m - k + rule.undetermined
    noise_residual = degrees - rule.rss / s
    for i in range(k):
        row = rule.inverse + at(k, i, 0)
        trace_square += ddot(&k, row, &ONE, row, &ONE)
        pull += rule.w[i] * ddot(&k, row, &ONE, rule.w, &ONE)
    trace_square = m - k + s * s * trace_square
    pull = rule.rss / s - s * pull
    noise_slope = degrees - trace_square + 2 * pull - rule.rss / s
    dpotrs("L", &k, &ONE, self.matrix, &k, self.vector1, &k, &info)
    schur = noise_slope - ddot(&k, self.vector2, &ONE, self.vector1, &ONE)
    if schur <= 0:
        return 0
    u[0] = -(noise_residual + ddot(&k, self.vector2, &ONE, p, &ONE)) / schur
    for i in range(k):
        p[i] -= self.vector1[i] * u[0]
    return 0


cdef int newton(Steps self, double tol) noexcept nogil:
    """Take Newton steps; 1 where one was accepted, 0 where none was, −1 where the twin must take over."""
    cdef int step, i, j, accepted, any_accepted = 0, attempt
    cdef double u, fraction, trial_noise, trial_violation, trial_cost, violation, rounding, cost = self.cost
    cdef Post swap
    if violation_at(self, self.delta, &self.here, &violation) < 0:
        return -1
    for step in range(MAX_NEWTON_STEPS):
        if newton_direction(self, self.delta, &self.here, self.goal, &u) < 0:
            break
        accepted, fraction, rounding = 0, 1.0, 8 * EPS * fabs(cost)
        for attempt in range(4):
            memset(self.trial, 0, self.d * sizeof(double))
            for i in range(self.here.k):
                j = self.here.active[i]
                self.trial[j] = max(self.delta[j] * (1 + fraction * self.goal[i]), 0.0)
            trial_noise = self.noise * exp(max(min(fraction * u, 1.0), -1.0))
            if posterior(self, &self.next_post, self.trial, NULL, trial_noise) < 0:
                return -1
            if violation_at(self, self.trial, &self.next_post, &trial_violation) < 0:
                return -1
            trial_cost = cost_at(self, self.trial, &self.next_post)
            accepted = trial_violation < violation
            if self.has_cost:
                accepted = trial_cost < cost - rounding or (accepted and trial_cost <= cost + rounding)
            if accepted:
                break
            fraction /= 2
        if not accepted:
            break
        any_accepted = 1
        memcpy(self.delta, self.trial, self.d * sizeof(double))
        swap = self.here
        self.here = self.next_post
        self.next_post = swap
        self.noise, violation, cost = trial_noise, trial_violation, trial_cost
        if violation <= tol / 10:
            break
    if any_accepted:
        memset(self.xi, 0, self.d * sizeof(double))
        for i in range(self.here.k):
            self.xi[self.here.active[i]] = self.here.root[i] * self.here.w[i]
    return any_accepted
