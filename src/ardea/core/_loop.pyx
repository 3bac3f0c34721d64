# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The outer loop of :mod:`ardea.core.reweighted`, compiled, for a dense design and a flat or capped linear prior.

Step for step the NumPy twin, which stays the reference (its docstrings hold the maths); the names are the same. Arrays
of the problem are column-major. Returns status FALLBACK where the twin has a special path (a posterior too
ill-conditioned for Cholesky, more active columns than there is room for): the caller then runs the twin. No Python
object is touched inside the loop, so the GIL is released.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, isfinite, log, sqrt
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dpotrs, dsyev

cdef double EPS = 2.220446049250313e-16
cdef double TINY = 2.2250738585072014e-308
cdef int ONE = 1
cdef int GATHER = 32

cpdef enum Outcome:
    CONVERGED = 0
    MAX_ITER = 1
    FALLBACK = 2
    STALLED = 3

cdef struct Violator:
    double ratio
    int column

cdef struct Post:
    int k
    int has_inverse
    double noise
    double rss
    double log_determinant
    double quadratic
    double undetermined
    int* active
    double* root
    double* w
    double* triangle
    double* inverse
    double* residual


cdef int _worse_first(const void* left, const void* right) noexcept nogil:
    cdef Violator* a = <Violator*> left
    cdef Violator* b = <Violator*> right
    if a.ratio != b.ratio:
        return -1 if a.ratio > b.ratio else 1
    return -1 if a.column < b.column else 1


cdef class Loop:
    """One run of the loop: the problem, the setting, and all the work space it needs."""

    cdef int r, d, capacity, pool_capacity, pool_count, learned, uniform, rescaled, has_prior
    cdef int stall_window, over_noise, newton_allowed, has_cost, n_set, n_faces, direct, first_newton, next_newton, max_newton
    cdef double safe_explained, lost_digits, safe_pivot, stall_share, rows, rest, total, floor, settled_change, safe_share, safe_condition, slack, singular_pivot
    cdef double* A
    cdef double* b
    cdef double* rho
    cdef double* correlation0
    cdef double* alpha
    cdef double* noise_scale
    cdef double* lam
    cdef double* eta
    cdef double* pool
    cdef int* position
    cdef int* pooled
    cdef double* delta
    cdef double* moved
    cdef double* trial
    cdef double* c
    cdef double* q
    cdef double* score
    cdef double* xi
    cdef double* weights
    cdef double* rounding
    cdef double* correlation
    cdef double* half
    cdef double* matrix
    cdef double* scale
    cdef double* goal
    cdef double* vector1
    cdef double* vector2
    cdef double* row_vector
    cdef double* gather
    cdef double* vectors
    cdef double* block
    cdef double* block2
    cdef int* gathered
    cdef double* work
    cdef int* index
    cdef double* signs
    cdef double* values
    cdef char* in_set
    cdef char* newcomer
    cdef char* doubtful
    cdef Violator* violators
    cdef Post here, next_post, rule_post
    cdef double* next_double
    cdef int* next_int
    cdef list _arrays

    def __init__(self, double[::1, :] A, double[::1] b, double rest, double n_rows, double[::1] rho,
                 double[::1] correlation0, double total, double[::1] alpha, double[::1] lam, double[::1] eta,
                 bint has_prior, bint over_noise, bint learned, double floor, double[::1] noise_scale,
                 bint has_cost, bint newton, dict constants):
        cdef int j
        self._arrays = [A, b, rho, correlation0, alpha, lam, eta, noise_scale]
        self.r, self.d = A.shape[0], A.shape[1]
        self.A, self.b, self.rho, self.correlation0 = &A[0, 0], &b[0], &rho[0], &correlation0[0]
        self.alpha, self.lam, self.eta, self.noise_scale = &alpha[0], &lam[0], &eta[0], &noise_scale[0]
        self.rest, self.rows, self.total, self.floor = rest, n_rows, total, floor
        self.has_prior, self.over_noise, self.learned = has_prior, over_noise, learned
        self.has_cost, self.newton_allowed = has_cost, newton
        self.uniform, self.rescaled = 1, 0
        for j in range(self.d):
            self.uniform = self.uniform and self.alpha[j] == self.alpha[0]
            self.rescaled = self.rescaled or self.noise_scale[j] != 1.0
        self.stall_window, self.stall_share = constants["stall_window"], constants["stall_share"]
        self.first_newton, self.next_newton = constants["first_newton"], constants["next_newton"]
        self.max_newton, self.settled_change = constants["max_newton"], constants["settled_change"]
        self.safe_share, self.safe_condition = constants["safe_share"], constants["safe_condition"]
        self.safe_explained, self.lost_digits = constants["safe_explained"], constants["lost_digits"]
        self.safe_pivot = constants["safe_pivot"]
        self.slack, self.singular_pivot = constants["slack"], constants["singular_pivot"]
        self.capacity = min(self.d, self.r + 2 if self.r <= 1024 else max(1024, self.r // 2))
        self.pool_capacity = min(self.d, 2 * self.capacity + 128)
        self.pool_count = 0
        self.direct = 0
        self._allocate()

    def _allocate(self):
        """Carve all work space out of three arrays; pages that are never touched cost nothing."""
        cdef Py_ssize_t k = self.capacity, d = self.d, r = self.r, pool = self.pool_capacity
        cdef double[::1] doubles = np.empty(pool * d + 10 * d + d * k + k * k + 10 * k + r + GATHER * (r + 2 * k)
                                            + r * k + 3 * (2 * k + 2 * k * k + r))
        cdef int[::1] ints = np.zeros(d + pool + 4 * k + GATHER, dtype=np.intc)
        cdef char[::1] bytes_ = np.zeros(3 * d + d * sizeof(Violator), dtype=np.int8)
        self._arrays += [doubles, ints, bytes_]
        self.next_double, self.next_int = &doubles[0], &ints[0]
        self.pool = self.doubles(pool * d)
        self.position, self.pooled = self.ints(d), self.ints(pool)
        self.delta, self.moved, self.trial = self.doubles(d), self.doubles(d), self.doubles(d)
        self.c, self.q, self.xi, self.score = self.doubles(d), self.doubles(d), self.doubles(d), self.doubles(d)
        self.weights, self.rounding, self.correlation = self.doubles(d), self.doubles(d), self.doubles(d)
        self.half, self.matrix = self.doubles(d * k), self.doubles(k * k)
        self.scale, self.goal, self.signs, self.values = self.doubles(k), self.doubles(k), self.doubles(k), self.doubles(k)
        self.vector1, self.vector2, self.work = self.doubles(k), self.doubles(k), self.doubles(4 * k)
        self.row_vector, self.gather = self.doubles(r), self.doubles(GATHER * r)
        self.vectors = self.doubles(r * k)
        self.block, self.block2 = self.doubles(GATHER * k), self.doubles(GATHER * k)
        self.index, self.gathered = self.ints(k), self.ints(GATHER)
        self.violators = <Violator*> &bytes_[0]
        self.in_set = &bytes_[d * sizeof(Violator)]
        self.newcomer, self.doubtful = self.in_set + d, self.in_set + 2 * d
        self.allot(&self.here)
        self.allot(&self.next_post)
        self.allot(&self.rule_post)
        cdef int j
        for j in range(self.d):
            self.position[j] = -1
            self.rounding[j] = 8 * EPS * sqrt(self.rho[j] * self.total)

    cdef double* doubles(self, Py_ssize_t n) noexcept:
        cdef double* start = self.next_double
        self.next_double += n
        return start

    cdef int* ints(self, Py_ssize_t n) noexcept:
        cdef int* start = self.next_int
        self.next_int += n
        return start

    cdef void allot(self, Post* post) noexcept:
        cdef Py_ssize_t k = self.capacity
        post.active, post.root, post.w = self.ints(k), self.doubles(k), self.doubles(k)
        post.triangle, post.inverse, post.residual = self.doubles(k * k), self.doubles(k * k), self.doubles(self.r)

    cdef int iterate(self, double* noise, int started, int max_iter, double tol, double* kkt_gap, int* n_iter,
                     double* costs, double* noises, double* terms, char* keep) noexcept nogil:
        cdef int wait = self.first_newton, since = 0, settled = 0, due, outcome
        cdef double noise_gap = 0.0, cost, gap, earlier_gap = INFINITY, earlier_cost = INFINITY
        n_iter[0] = 0
        if certify(self, noise[0], kkt_gap, &noise_gap) < 0:
            return FALLBACK
        while True:
            cost = cost_at(self, self.delta, &self.here)
            costs[n_iter[0]], noises[n_iter[0]], terms[n_iter[0]] = cost, noise[0], self.here.k
            if kkt_gap[0] <= tol and noise_gap <= tol and (n_iter[0] > 0 or started):
                if self.direct:
                    return CONVERGED
                # The Gram rows said so; the columns themselves have the last word.
                self.direct = 1
                if certify(self, noise[0], kkt_gap, &noise_gap) < 0:
                    return FALLBACK
                if kkt_gap[0] <= tol and noise_gap <= tol:
                    return CONVERGED
            if n_iter[0] >= max_iter:
                return MAX_ITER
            if n_iter[0] % self.stall_window == 0:
                gap = max(kkt_gap[0], noise_gap)
                if gap > 0.5 * earlier_gap and cost > earlier_cost - self.stall_share * fabs(cost):
                    return STALLED
                earlier_gap, earlier_cost = gap, cost
            n_iter[0] += 1
            due = self.newton_allowed and (settled or since >= wait)
            outcome = newton(self, noise, cost, tol) if due else 0
            if outcome < 0:
                return FALLBACK
            if outcome:
                since, wait, settled = 0, self.next_newton, 0
            else:
                wait = 2 * wait if due else wait
                if majorise(self, noise, &settled, keep) < 0:
                    return FALLBACK
                settled = settled and not due
                since += 1
            if certify(self, noise[0], kkt_gap, &noise_gap) < 0:
                return FALLBACK

    def run(self, double[::1] start, double noise, bint started, int max_iter, double tol):
        """Run from δ = start; return (outcome, δ, σ², kkt_gap, n_iter, (costs, noises, terms))."""
        cdef int n_iter = 0, outcome
        cdef double kkt_gap = 0.0
        cdef double[::1] costs = np.empty(max_iter + 1)
        cdef double[::1] noises = np.empty(max_iter + 1)
        cdef double[::1] terms = np.empty(max_iter + 1)
        cdef char[::1] keep = np.empty(self.capacity + 1, dtype=np.int8)
        memcpy(self.delta, &start[0], self.d * sizeof(double))
        memset(self.xi, 0, self.d * sizeof(double))
        with nogil:
            outcome = self.iterate(&noise, started, max_iter, tol, &kkt_gap, &n_iter, &costs[0], &noises[0], &terms[0],
                                   &keep[0])
        delta = np.array(<double[:self.d]> self.delta)
        n = n_iter + 1
        steps = np.array(costs[:n]), np.array(noises[:n]), np.array(terms[:n])
        return outcome, delta, noise, kkt_gap, n_iter, steps

    def posterior_parts(self):
        """Return active columns, √γ, Cholesky factor, w, residual, rss and log-determinant at the end of the run."""
        cdef int k = self.here.k
        residual = np.array(<double[:self.r]> self.here.residual)
        if k == 0:
            nothing = np.empty(0)
            parts = np.empty(0, dtype=np.intp), nothing, np.empty((0, 0)), nothing
        else:
            triangle = np.array(<double[:k, :k]> self.here.triangle).T
            parts = (
                np.array(<int[:k]> self.here.active, dtype=np.intp),
                np.array(<double[:k]> self.here.root),
                np.tril(triangle),
                np.array(<double[:k]> self.here.w),
            )
        return *parts, residual, self.here.rss, self.here.log_determinant


# Functions of a Loop: Gram rows, posterior and certificate; weighted lasso, majorisation and Newton steps.
include "_evidence.pxi"
include "_steps.pxi"
