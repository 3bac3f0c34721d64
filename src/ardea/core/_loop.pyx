# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The outer loop of :mod:`ardea.core.reweighted`, compiled, for a dense design and a flat or capped linear prior.

Step for step the NumPy twin, which stays the reference (its docstrings hold the maths); the names are the same. Arrays
of the problem are column-major. Returns status FALLBACK where the twin has a special path (a posterior too
ill-conditioned for Cholesky, more active columns than there is room for): the caller then runs the twin. No Python object is touched inside
the loop, so the GIL is released.
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

    # --- Gram rows on demand -------------------------------------------------------------------------------------

    cdef void admit(self, int* columns, int n) noexcept nogil:
        """Make sure the Gram rows of these columns are in the pool; many at once read the design once."""
        cdef int i, j, missing = 0, batch = 0
        cdef double one = 1.0, zero = 0.0
        for i in range(n):
            if self.position[columns[i]] < 0:
                missing += 1
        if missing == 0:
            return
        if self.pool_count + missing > self.pool_capacity:
            for i in range(self.pool_count):
                self.position[self.pooled[i]] = -1
            self.pool_count = 0
        for i in range(n + 1):
            if i < n:
                j = columns[i]
                if self.position[j] >= 0:
                    continue
                memcpy(self.gather + <Py_ssize_t> batch * self.r, self.A + <Py_ssize_t> j * self.r, self.r * sizeof(double))
                self.position[j] = self.pool_count + batch
                self.pooled[self.pool_count + batch] = j
                batch += 1
            if batch == GATHER or (i == n and batch > 0):
                dgemm("T", "N", &self.d, &batch, &self.r, &one, self.A, &self.r, self.gather, &self.r, &zero,
                      self.pool + <Py_ssize_t> self.pool_count * self.d, &self.d)
                self.pool_count += batch
                batch = 0

    cdef inline double* gram_row(self, int j) noexcept nogil:
        return self.pool + <Py_ssize_t> self.position[j] * self.d

    cdef void subtract_fit(self, double* out, int* columns, double* coefficients, double* scales, int n) noexcept nogil:
        """Return out − Σ A_j·coefficient·scale, in place."""
        cdef int i
        cdef double factor
        for i in range(n):
            factor = -coefficients[i] * (1.0 if scales == NULL else scales[i])
            daxpy(&self.r, &factor, self.A + <Py_ssize_t> columns[i] * self.r, &ONE, out, &ONE)

    cdef void correlate(self, double* residual, int* columns, double* coefficients, double* scales, int n,
                        double noise, double* out) noexcept nogil:
        """Return Aᵀresidual, from the Gram rows where that reads less memory and keeps its digits."""
        cdef int i
        cdef double one = 1.0, zero = 0.0, factor
        if not self.direct and 4 * n < self.r and noise * self.rows > 1e-8 * self.total:
            memcpy(out, self.correlation0, self.d * sizeof(double))
            for i in range(n):
                factor = -coefficients[i] * (1.0 if scales == NULL else scales[i])
                daxpy(&self.d, &factor, self.gram_row(columns[i]), &ONE, out, &ONE)
            return
        dgemv("T", &self.r, &self.d, &one, self.A, &self.r, residual, &ONE, &zero, out, &ONE)

    # --- Posterior -----------------------------------------------------------------------------------------------

    cdef int posterior(self, Post* post, double* gamma, double* factors, double noise) noexcept nogil:
        """Factor B at prior variances gamma (times factors, unless NULL); 0, or −1 where Cholesky fails."""
        cdef int i, j, k = 0, info = 0
        cdef double value
        cdef double* row
        for j in range(self.d):
            if gamma[j] > 0:
                if k == self.capacity:
                    return -1
                post.active[k] = j
                value = gamma[j] if factors == NULL else gamma[j] * factors[j]
                post.root[k] = sqrt(value)
                k += 1
        post.k, post.noise, post.has_inverse = k, noise, 0
        self.admit(post.active, k)
        for i in range(k):
            row = self.gram_row(post.active[i])
            for j in range(i, k):
                post.triangle[<Py_ssize_t> i * k + j] = row[post.active[j]] * post.root[i] * post.root[j]
            post.triangle[<Py_ssize_t> i * k + i] += noise
            self.vector1[i] = post.triangle[<Py_ssize_t> i * k + i]
        post.log_determinant = (self.rows - k) * log(noise)
        if k:
            dpotrf("L", &k, post.triangle, &k, &info)
            if info != 0:
                return -1
            for i in range(k):
                if post.triangle[<Py_ssize_t> i * k + i] ** 2 < self.safe_pivot * self.vector1[i]:
                    return -1
                post.log_determinant += 2 * log(post.triangle[<Py_ssize_t> i * k + i])
                post.w[i] = post.root[i] * self.correlation0[post.active[i]]
            dpotrs("L", &k, &ONE, post.triangle, &k, post.w, &k, &info)
        memcpy(post.residual, self.b, self.r * sizeof(double))
        self.subtract_fit(post.residual, post.active, post.w, post.root, k)
        if k:
            for i in range(k):
                self.vector1[i] = post.root[i] * ddot(&self.r, self.A + <Py_ssize_t> post.active[i] * self.r, &ONE,
                                                      post.residual, &ONE) - noise * post.w[i]
            dpotrs("L", &k, &ONE, post.triangle, &k, self.vector1, &k, &info)
            for i in range(k):
                post.w[i] += self.vector1[i]
            self.subtract_fit(post.residual, post.active, self.vector1, post.root, k)
        post.rss = ddot(&self.r, post.residual, &ONE, post.residual, &ONE) + self.rest
        post.quadratic = post.rss / noise + ddot(&k, post.w, &ONE, post.w, &ONE)
        return 0

    cdef void invert(self, Post* post) noexcept nogil:
        """Fill B⁻¹ and Σ_j Σ_jj/γ_j."""
        cdef int i, j, info, k = post.k
        if post.has_inverse:
            return
        post.undetermined = 0.0
        if k:
            memcpy(post.inverse, post.triangle, <Py_ssize_t> k * k * sizeof(double))
            dpotri("L", &k, post.inverse, &k, &info)
            for i in range(k):
                for j in range(i + 1, k):
                    post.inverse[<Py_ssize_t> j * k + i] = post.inverse[<Py_ssize_t> i * k + j]
                post.undetermined += post.noise * post.inverse[<Py_ssize_t> i * k + i]
        post.has_inverse = 1

    cdef double update_noise(self, Post* post) noexcept nogil:
        """Return σ² by the learned rule from one posterior."""
        cdef double degrees
        if not self.learned:
            return post.noise
        self.invert(post)
        degrees = self.rows - post.k + post.undetermined
        if degrees <= 0:
            return self.floor
        return max(post.rss / degrees, self.floor)

    cdef Post* noise_posterior(self, double* gamma, double noise, Post* post) noexcept nogil:
        """Return the posterior that the noise rule looks at, or NULL where it cannot be factored."""
        if not self.rescaled or not self.learned:
            return post
        if self.posterior(&self.rule_post, gamma, self.noise_scale, noise) < 0:
            return NULL
        return &self.rule_post

    # --- Certificate ---------------------------------------------------------------------------------------------

    cdef inline double prior_slope(self, int j, double gamma, double noise) noexcept nogil:
        if not self.has_prior or gamma >= self.eta[j]:
            return 0.0
        return self.lam[j] / noise if self.over_noise else self.lam[j]

    cdef void log_determinant_slopes(self, Post* post, double* out) noexcept nogil:
        """Fill M_j for every column."""
        cdef int i, j, k = post.k, any_doubtful = 0
        cdef double one = 1.0, condition = 0.0, schur, gamma, explained
        cdef double* row
        cdef double* column
        if k == 0:
            for j in range(self.d):
                out[j] = self.rho[j] / post.noise
                self.doubtful[j] = 0
            return
        for i in range(k):
            row, column = self.gram_row(post.active[i]), self.half + <Py_ssize_t> i * self.d
            for j in range(self.d):
                column[j] = row[j] * post.root[i]
            condition += post.root[i] * post.root[i] * self.rho[post.active[i]]
        dtrsm("R", "L", "T", "N", &self.d, &k, &one, post.triangle, &k, self.half, &self.d)
        for j in range(self.d):
            out[j] = 0.0
        for i in range(k):
            column = self.half + <Py_ssize_t> i * self.d
            for j in range(self.d):
                out[j] += column[j] * column[j]
        condition /= post.noise
        for j in range(self.d):
            schur = self.rho[j] - out[j]
            out[j] = schur / post.noise
            self.doubtful[j] = self.rho[j] > 0 and (schur < self.safe_share * self.rho[j]
                                                    or condition > self.safe_condition)
        if condition <= self.safe_condition:
            self.invert(post)
            for i in range(k):
                j = post.active[i]
                gamma = post.root[i] * post.root[i]
                explained = 1.0 - post.noise * post.inverse[<Py_ssize_t> i * k + i]
                if gamma * self.rho[j] > self.safe_share * post.noise \
                        and explained > max(self.safe_explained, self.lost_digits * EPS * condition):
                    out[j] = explained / gamma
                    self.doubtful[j] = 0
        for j in range(self.d):
            if self.rho[j] == 0:
                out[j] = 0.0
            any_doubtful = any_doubtful or self.doubtful[j]
        if any_doubtful:
            self.minimum_forms(post, out)

    cdef void minimum_forms(self, Post* post, double* out) noexcept nogil:
        """Fill M_j and (in `score`) q_j of the doubtful columns, as minima evaluated near their minimisers."""
        cdef int i, j, n = 0, info, k = post.k
        cdef double one = 1.0, minus = -1.0, negative_noise = -post.noise
        cdef double* z = self.vectors
        cdef double* v
        for i in range(k):
            memcpy(z + <Py_ssize_t> i * self.r, self.A + <Py_ssize_t> post.active[i] * self.r, self.r * sizeof(double))
            for j in range(self.r):
                z[<Py_ssize_t> i * self.r + j] *= post.root[i]
        self.active_minima(post, out)
        for j in range(self.d + 1):
            if j < self.d:
                if not self.doubtful[j]:
                    continue
                memcpy(self.gather + <Py_ssize_t> n * self.r, self.A + <Py_ssize_t> j * self.r, self.r * sizeof(double))
                v = self.block + <Py_ssize_t> n * k
                for i in range(k):
                    v[i] = post.root[i] * self.gram_row(post.active[i])[j]
                self.gathered[n] = j
                n += 1
            if n < GATHER and (j < self.d or n == 0):
                continue
            dpotrs("L", &k, &n, post.triangle, &k, self.block, &k, &info)
            dgemm("N", "N", &self.r, &n, &k, &minus, z, &self.r, self.block, &k, &one, self.gather, &self.r)
            memcpy(self.block2, self.block, <Py_ssize_t> n * k * sizeof(double))
            dgemm("T", "N", &k, &n, &self.r, &one, z, &self.r, self.gather, &self.r, &negative_noise, self.block2, &k)
            dpotrs("L", &k, &n, post.triangle, &k, self.block2, &k, &info)
            dgemm("N", "N", &self.r, &n, &k, &minus, z, &self.r, self.block2, &k, &one, self.gather, &self.r)
            for i in range(n):
                v = self.block + <Py_ssize_t> i * k
                daxpy(&k, &one, self.block2 + <Py_ssize_t> i * k, &ONE, v, &ONE)
                out[self.gathered[i]] = self.square(self.gather + <Py_ssize_t> i * self.r, self.r) / post.noise \
                    + self.square(v, k)
                self.score[self.gathered[i]] = ddot(&k, v, &ONE, post.w, &ONE) \
                    + ddot(&self.r, self.gather + <Py_ssize_t> i * self.r, &ONE, post.residual, &ONE) / post.noise
            n = 0

    cdef void active_minima(self, Post* post, double* out) noexcept nogil:
        """Fill M_j of the doubtful active columns, which then are no longer doubtful; Z is in `vectors`."""
        cdef int i, j, n = 0, info, k = post.k
        cdef double one = 1.0, zero = 0.0, minus = -1.0
        cdef double* z = self.vectors
        cdef double* t
        self.invert(post)
        for i in range(k + 1):
            if i < k:
                if not self.doubtful[post.active[i]]:
                    continue
                self.doubtful[post.active[i]] = 0
                for j in range(k):
                    self.block[<Py_ssize_t> n * k + j] = post.noise * post.inverse[<Py_ssize_t> i * k + j]
                    self.block2[<Py_ssize_t> n * k + j] = -post.noise * self.block[<Py_ssize_t> n * k + j]
                self.block2[<Py_ssize_t> n * k + i] += post.noise
                self.gathered[n] = i
                n += 1
            if n < GATHER and (i < k or n == 0):
                continue
            dgemm("N", "N", &self.r, &n, &k, &one, z, &self.r, self.block, &k, &zero, self.gather, &self.r)
            dgemm("T", "N", &k, &n, &self.r, &minus, z, &self.r, self.gather, &self.r, &one, self.block2, &k)
            dpotrs("L", &k, &n, post.triangle, &k, self.block2, &k, &info)
            dgemm("N", "N", &self.r, &n, &k, &one, z, &self.r, self.block2, &k, &one, self.gather, &self.r)
            for j in range(n):
                t = self.block + <Py_ssize_t> j * k
                daxpy(&k, &one, self.block2 + <Py_ssize_t> j * k, &ONE, t, &ONE)
                t[self.gathered[j]] -= 1.0
                out[post.active[self.gathered[j]]] = (
                    self.square(self.gather + <Py_ssize_t> j * self.r, self.r) / post.noise + self.square(t, k)
                ) / post.root[self.gathered[j]] ** 2
            n = 0

    cdef inline double square(self, double* vector, int n) noexcept nogil:
        return ddot(&n, vector, &ONE, vector, &ONE)

    cdef double cost(self, double* gamma, Post* post) noexcept nogil:
        """Return the objective at the noise used in the loop."""
        cdef double alpha = self.alpha[0] if self.uniform else 1.0
        cdef double value = self.rows * log(alpha) + post.log_determinant + post.quadratic / alpha
        cdef int i, j
        if self.has_prior:
            for i in range(post.k):
                j = post.active[i]
                value += self.lam[j] / (post.noise if self.over_noise else 1.0) * min(gamma[j], self.eta[j])
        return value

    cdef int certify(self, double noise, double* kkt_gap, double* noise_gap) noexcept nogil:
        """Fill the posterior, c and q at (delta, noise), and the two gaps."""
        cdef int i, j
        cdef double ratio
        cdef Post* rule
        if self.posterior(&self.here, self.delta, NULL, noise) < 0:
            return -1
        self.log_determinant_slopes(&self.here, self.c)
        self.correlate(self.here.residual, self.here.active, self.here.w, self.here.root, self.here.k, noise, self.q)
        for j in range(self.d):
            self.c[j] = self.alpha[j] * self.c[j] + self.prior_slope(j, self.delta[j], noise)
            self.q[j] = self.score[j] if self.doubtful[j] else self.q[j] / noise
        for i in range(self.here.k):
            self.q[self.here.active[i]] = self.here.w[i] / self.here.root[i]
        kkt_gap[0] = 0.0
        for j in range(self.d):
            if self.rho[j] > 0:
                ratio = self.q[j] * self.q[j] / self.c[j] - 1
                if self.delta[j] <= 0:
                    ratio = max(ratio, 0.0)
                if not fabs(ratio) <= kkt_gap[0]:
                    kkt_gap[0] = fabs(ratio)
        rule = self.noise_posterior(self.delta, noise, &self.here)
        if rule == NULL:
            return -1
        noise_gap[0] = fabs(self.update_noise(rule) / noise - 1)
        return 0

    # --- Weighted lasso ------------------------------------------------------------------------------------------

    cdef inline double penalty(self, int i) noexcept nogil:
        return 0.0 if self.signs[i] == 0 else self.weights[self.index[i]] * self.signs[i]

    cdef int face_minimiser(self) noexcept nogil:
        """Fill goal with the minimiser on the face; −1 where the face is singular."""
        cdef int i, j, info = 0, k = self.n_set
        cdef double* row
        self.admit(self.index, k)
        for i in range(k):
            self.scale[i] = sqrt(self.rho[self.index[i]])
        for i in range(k):
            row = self.gram_row(self.index[i])
            for j in range(i, k):
                self.matrix[<Py_ssize_t> i * k + j] = row[self.index[j]] / (self.scale[i] * self.scale[j])
        dpotrf("L", &k, self.matrix, &k, &info)
        if info != 0:
            return -1
        for i in range(k):
            if self.matrix[<Py_ssize_t> i * k + i] < self.singular_pivot:
                return -1
            self.goal[i] = (self.correlation0[self.index[i]] - self.penalty(i)) / self.scale[i]
        dpotrs("L", &k, &ONE, self.matrix, &k, self.goal, &k, &info)
        for i in range(k):
            self.goal[i] /= self.scale[i]
        memcpy(self.row_vector, self.b, self.r * sizeof(double))
        self.subtract_fit(self.row_vector, self.index, self.goal, NULL, k)
        for i in range(k):
            self.vector1[i] = (ddot(&self.r, self.A + <Py_ssize_t> self.index[i] * self.r, &ONE, self.row_vector, &ONE)
                               - self.penalty(i)) / self.scale[i]
        dpotrs("L", &k, &ONE, self.matrix, &k, self.vector1, &k, &info)
        for i in range(k):
            self.vector1[i] /= self.scale[i]
            self.goal[i] += self.vector1[i]
        # The residual at the goal, for the correlations that follow.
        self.subtract_fit(self.row_vector, self.index, self.vector1, NULL, k)
        return 0

    cdef int leave_singular_face(self, char* keep) noexcept nogil:
        """Move along the null direction of the face, downhill, to the first sign change, and drop that column."""
        cdef int i, j, info, first = -1, k = self.n_set, lwork = 4 * self.capacity
        cdef double uphill = 0.0, reach, best = INFINITY, turn = 1.0
        cdef double* row
        for i in range(k):
            row = self.gram_row(self.index[i])
            for j in range(i, k):
                self.matrix[<Py_ssize_t> i * k + j] = row[self.index[j]] / (self.scale[i] * self.scale[j])
        dsyev("V", "L", &k, self.matrix, &k, self.goal, self.work, &lwork, &info)
        if info != 0:
            return -1
        memcpy(self.row_vector, self.b, self.r * sizeof(double))
        self.subtract_fit(self.row_vector, self.index, self.values, NULL, k)
        for i in range(k):
            self.goal[i] = self.matrix[i] / self.scale[i]
            uphill += self.goal[i] * (ddot(&self.r, self.A + <Py_ssize_t> self.index[i] * self.r, &ONE, self.row_vector, &ONE)
                                      - self.penalty(i))
        if uphill < 0:
            turn = -1.0
        for j in range(2):
            for i in range(k):
                if self.signs[i] != 0 and turn * self.goal[i] * self.signs[i] < 0:
                    reach = -self.values[i] / (turn * self.goal[i])
                    if reach < best:
                        best, first = reach, i
            if first >= 0:
                break
            turn = -turn
        for i in range(k):
            keep[i] = 1
        if first < 0:
            keep[k - 1] = 0
        else:
            for i in range(k):
                self.values[i] += best * turn * self.goal[i]
            keep[first] = 0
        self.keep_only(keep)
        return 0

    cdef void keep_only(self, char* keep) noexcept nogil:
        cdef int i, n = 0
        for i in range(self.n_set):
            if keep[i]:
                self.index[n], self.signs[n], self.values[n] = self.index[i], self.signs[i], self.values[i]
                n += 1
            else:
                self.in_set[self.index[i]] = 0
        self.n_set = n

    cdef int minimise_on_face(self, char* keep) noexcept nogil:
        """Minimise over the face, dropping columns whose sign would change; −1 where LAPACK fails."""
        cdef int i, wrong, stuck, newcomers, best
        cdef double reach, first, best_wrongness
        while self.n_set:
            self.n_faces += 1
            if self.face_minimiser() < 0:
                if self.leave_singular_face(keep) < 0:
                    return -1
                continue
            wrong = stuck = newcomers = 0
            for i in range(self.n_set):
                if self.signs[i] != 0 and self.goal[i] * self.signs[i] <= 0:
                    wrong += 1
                    if self.values[i] == 0:
                        stuck += 1
                if self.newcomer[self.index[i]] != 0 and self.values[i] == 0:
                    newcomers += 1
            if wrong == 0:
                memcpy(self.values, self.goal, self.n_set * sizeof(double))
                return 0
            if stuck:
                best, best_wrongness = -1, -INFINITY
                for i in range(self.n_set):
                    keep[i] = not (self.signs[i] != 0 and self.goal[i] * self.signs[i] <= 0 and self.values[i] == 0)
                    if not keep[i] and self.goal[i] * self.signs[i] > best_wrongness:
                        best, best_wrongness = i, self.goal[i] * self.signs[i]
                if stuck > 1 and stuck == newcomers:
                    keep[best] = 1
                self.keep_only(keep)
                continue
            first = INFINITY
            for i in range(self.n_set):
                if self.signs[i] != 0 and self.goal[i] * self.signs[i] <= 0:
                    first = min(first, self.values[i] / (self.values[i] - self.goal[i]))
            for i in range(self.n_set):
                keep[i] = 1
                if self.signs[i] != 0 and self.goal[i] * self.signs[i] <= 0:
                    reach = self.values[i] / (self.values[i] - self.goal[i])
                    keep[i] = not reach <= first * (1 + EPS)
                self.values[i] += first * (self.goal[i] - self.values[i])
            self.keep_only(keep)
        memcpy(self.row_vector, self.b, self.r * sizeof(double))
        return 0

    cdef int lasso(self, double noise, char* keep) noexcept nogil:
        """Solve the weighted lasso from the present xi; leaves the solution in xi. −1 where the twin must take over."""
        cdef int i, j, n, batch, room, single = 0
        cdef double size, objective, best = INFINITY
        cdef Py_ssize_t limit = 20 * (min(self.r, self.d) + 10)
        self.n_set = self.n_faces = 0
        for j in range(self.d):
            self.in_set[j] = self.newcomer[j] = 0
            if self.xi[j] != 0 and isfinite(self.weights[j]) and self.rho[j] > 0:
                if self.n_set == self.capacity:
                    return -1
                self.index[self.n_set], self.values[self.n_set] = j, self.xi[j]
                self.signs[self.n_set] = (1.0 if self.xi[j] > 0 else -1.0) if self.weights[j] > 0 else 0.0
                self.in_set[j] = 1
                self.n_set += 1
        while self.n_faces < limit:
            if self.n_set == 0:
                memcpy(self.row_vector, self.b, self.r * sizeof(double))
            if self.minimise_on_face(keep) < 0:
                return -1
            self.correlate(self.row_vector, self.index, self.values, NULL, self.n_set, noise, self.correlation)
            n = 0
            for j in range(self.d):
                self.newcomer[j] = 0
                size = fabs(self.correlation[j])
                if not self.in_set[j] and self.rho[j] > 0 and isfinite(self.weights[j]) \
                        and size > self.weights[j] * (1 + self.slack) + self.rounding[j]:
                    self.violators[n].ratio = size / (self.weights[j] + self.rounding[j] + TINY)
                    self.violators[n].column = j
                    n += 1
            if n == 0:
                break
            objective = 0.0
            for i in range(self.n_set):
                j = self.index[i]
                objective += self.values[i] * (self.penalty(i)
                                               - 0.5 * (self.correlation0[j] + self.correlation[j]))
            if objective >= best:
                if single:
                    break
                single = 1
            best = objective
            room = self.r - self.n_set
            batch = 1 if single else max(1, min(room, max(8, self.n_set // 2)))
            batch = min(batch, n)
            if self.n_set + batch > self.capacity:
                return -1
            qsort(self.violators, n, sizeof(Violator), _worse_first)
            for i in range(batch):
                j = self.violators[i].column
                self.index[self.n_set], self.values[self.n_set] = j, 0.0
                self.signs[self.n_set] = (1.0 if self.correlation[j] > 0 else -1.0) if self.weights[j] > 0 else 0.0
                self.in_set[j] = self.newcomer[j] = 1
                self.n_set += 1
        for j in range(self.d):
            self.xi[j] = 0.0
            self.in_set[j] = self.newcomer[j] = 0
        for i in range(self.n_set):
            self.xi[self.index[i]] = self.values[i]
        return 0

    # --- Steps ---------------------------------------------------------------------------------------------------

    cdef int majorise(self, double* noise, int* settled, char* keep) noexcept nogil:
        """Take one majorisation step from (delta, noise) with tangent weights c."""
        cdef int j
        cdef double root, change, largest = 0.0
        cdef Post* rule
        for j in range(self.d):
            self.weights[j] = noise[0] * sqrt(self.c[j])
        if self.lasso(noise[0], keep) < 0:
            return -1
        settled[0] = 1
        for j in range(self.d):
            self.moved[j] = fabs(self.xi[j]) / sqrt(self.c[j]) if self.xi[j] != 0 else 0.0
            if (self.moved[j] > 0) != (self.delta[j] > 0):
                settled[0] = 0
        if self.learned:
            if self.posterior(&self.next_post, self.moved, NULL, noise[0]) < 0:
                return -1
            rule = self.noise_posterior(self.moved, noise[0], &self.next_post)
            if rule == NULL:
                return -1
            noise[0] = self.update_noise(rule)
        for j in range(self.d):
            change = fabs(self.moved[j] - self.delta[j]) * self.rho[j] / (noise[0] + self.moved[j] * self.rho[j])
            largest = max(largest, change)
        settled[0] = settled[0] and largest <= self.settled_change
        memcpy(self.delta, self.moved, self.d * sizeof(double))
        return 0

    cdef int violation(self, double* gamma, Post* post, double* out) noexcept nogil:
        """Return max |F_i| over the active columns and the noise rule."""
        cdef int i, j, k = post.k
        cdef double force, worst = 0.0
        cdef Post* rule = self.noise_posterior(gamma, post.noise, post)
        if rule == NULL:
            return -1
        self.invert(post)
        for i in range(k):
            j = post.active[i]
            force = post.w[i] * post.w[i] - self.alpha[j] * (1.0 - post.noise * post.inverse[<Py_ssize_t> i * k + i]) \
                - gamma[j] * self.prior_slope(j, gamma[j], post.noise)
            worst = max(worst, fabs(force))
        worst = max(worst, fabs(self.update_noise(rule) / post.noise - 1))
        out[0] = worst if isfinite(worst) else INFINITY
        return 0

    cdef void mixed_slope(self, Post* post, int with_alpha, double* out) noexcept nogil:
        """Fill s·δ_i ∂²/∂δ_i∂s of α log|Σ_y| + yᵀΣ_y⁻¹y."""
        cdef int i, k = post.k
        cdef double s = post.noise, alpha
        cdef double* row
        for i in range(k):
            row = post.inverse + <Py_ssize_t> i * k
            alpha = self.alpha[post.active[i]] if with_alpha else 1.0
            out[i] = 2 * s * post.w[i] * ddot(&k, row, &ONE, post.w, &ONE) \
                - alpha * (s * row[i] - s * s * ddot(&k, row, &ONE, row, &ONE))

    cdef int newton_direction(self, double* gamma, Post* post, double* p, double* u) noexcept nogil:
        """Fill the relative step p of δ and u of σ²; −1 where there is none."""
        cdef int i, j, info, k = post.k
        cdef double s = post.noise, m = self.rows, e, wi, size = 0.0, damping = 0.0, ai
        cdef double degrees, noise_residual, trace_square = 0.0, pull, noise_slope, schur
        cdef Post* rule
        if k == 0:
            return -1
        self.invert(post)
        for i in range(k):
            j = post.active[i]
            p[i] = -(self.alpha[j] * (1.0 - s * post.inverse[<Py_ssize_t> i * k + i]) - post.w[i] * post.w[i]
                     + gamma[j] * self.prior_slope(j, gamma[j], s))
        while True:
            for i in range(k):
                wi, ai = post.w[i], sqrt(self.alpha[post.active[i]])
                for j in range(i, k):
                    e = (1.0 if i == j else 0.0) - s * post.inverse[<Py_ssize_t> i * k + j]
                    self.matrix[<Py_ssize_t> i * k + j] = 2 * wi * post.w[j] * e \
                        - ai * sqrt(self.alpha[post.active[j]]) * e * e
                if damping == 0:
                    size += fabs(self.matrix[<Py_ssize_t> i * k + i])
                self.matrix[<Py_ssize_t> i * k + i] += damping
            if not isfinite(size):
                return -1
            dpotrf("L", &k, self.matrix, &k, &info)
            if info == 0:
                break
            damping = max(10 * damping, 1e-6 * (size / k + TINY))
        dpotrs("L", &k, &ONE, self.matrix, &k, p, &k, &info)
        u[0] = 0.0
        rule = self.noise_posterior(gamma, s, post)
        if rule == NULL:
            return -1
        if self.update_noise(rule) == s:
            return 0
        self.mixed_slope(post, 1, self.vector1)
        self.mixed_slope(rule, 0, self.vector2)
        degrees = m - k + rule.undetermined
        noise_residual = degrees - rule.rss / s
        pull = 0.0
        for i in range(k):
            trace_square += ddot(&k, rule.inverse + <Py_ssize_t> i * k, &ONE, rule.inverse + <Py_ssize_t> i * k, &ONE)
            pull += rule.w[i] * ddot(&k, rule.inverse + <Py_ssize_t> i * k, &ONE, rule.w, &ONE)
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

    cdef int newton(self, double* noise, double cost, double tol) noexcept nogil:
        """Take Newton steps; 1 where one was accepted, 0 where none was, −1 where the twin must take over."""
        cdef int step, i, j, accepted, any_accepted = 0, attempt
        cdef double u, fraction, trial_noise, trial_violation, trial_cost, violation, rounding
        cdef Post swap
        if self.violation(self.delta, &self.here, &violation) < 0:
            return -1
        for step in range(self.max_newton):
            if self.newton_direction(self.delta, &self.here, self.goal, &u) < 0:
                break
            accepted, fraction, rounding = 0, 1.0, 8 * EPS * fabs(cost)
            for attempt in range(4):
                memset(self.trial, 0, self.d * sizeof(double))
                for i in range(self.here.k):
                    j = self.here.active[i]
                    self.trial[j] = max(self.delta[j] * (1 + fraction * self.goal[i]), 0.0)
                trial_noise = noise[0] * exp(max(min(fraction * u, 1.0), -1.0))
                if self.posterior(&self.next_post, self.trial, NULL, trial_noise) < 0:
                    return -1
                if self.violation(self.trial, &self.next_post, &trial_violation) < 0:
                    return -1
                trial_cost = self.cost(self.trial, &self.next_post)
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
            noise[0], violation, cost = trial_noise, trial_violation, trial_cost
            if violation <= tol / 10:
                break
        if any_accepted:
            memset(self.xi, 0, self.d * sizeof(double))
            for i in range(self.here.k):
                self.xi[self.here.active[i]] = self.here.root[i] * self.here.w[i]
        return any_accepted

    cdef int iterate(self, double* noise, int started, int max_iter, double tol, double* kkt_gap, int* n_iter,
                     double* costs, double* noises, double* terms, char* keep) noexcept nogil:
        cdef int wait = self.first_newton, since = 0, settled = 0, due, outcome
        cdef double noise_gap = 0.0, cost, gap, earlier_gap = INFINITY, earlier_cost = INFINITY
        n_iter[0] = 0
        if self.certify(noise[0], kkt_gap, &noise_gap) < 0:
            return FALLBACK
        while True:
            cost = self.cost(self.delta, &self.here)
            costs[n_iter[0]], noises[n_iter[0]], terms[n_iter[0]] = cost, noise[0], self.here.k
            if kkt_gap[0] <= tol and noise_gap <= tol and (n_iter[0] > 0 or started):
                if self.direct:
                    return CONVERGED
                # The Gram rows said so; the columns themselves have the last word.
                self.direct = 1
                if self.certify(noise[0], kkt_gap, &noise_gap) < 0:
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
            outcome = self.newton(noise, cost, tol) if due else 0
            if outcome < 0:
                return FALLBACK
            if outcome:
                since, wait, settled = 0, self.next_newton, 0
            else:
                wait = 2 * wait if due else wait
                if self.majorise(noise, &settled, keep) < 0:
                    return FALLBACK
                settled = settled and not due
                since += 1
            if self.certify(noise[0], kkt_gap, &noise_gap) < 0:
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
