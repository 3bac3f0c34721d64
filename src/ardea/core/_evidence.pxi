# Functions of a Loop (`_loop.pyx`): Gram rows on demand, the posterior, and the certificate.

# --- Gram rows on demand -------------------------------------------------------------------------------------


cdef void admit(Loop self, int* columns, int n) noexcept nogil:
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


cdef inline double* gram_row(Loop self, int j) noexcept nogil:
    return self.pool + <Py_ssize_t> self.position[j] * self.d


cdef void subtract_fit(Loop self, double* out, int* columns, double* coefficients, double* scales, int n) noexcept nogil:
    """Return out − Σ A_j·coefficient·scale, in place."""
    cdef int i
    cdef double factor
    for i in range(n):
        factor = -coefficients[i] * (1.0 if scales == NULL else scales[i])
        daxpy(&self.r, &factor, self.A + <Py_ssize_t> columns[i] * self.r, &ONE, out, &ONE)


cdef void correlate(Loop self, double* residual, int* columns, double* coefficients, double* scales, int n,
                    double noise, double* out) noexcept nogil:
    """Return Aᵀresidual, from the Gram rows where that reads less memory and keeps its digits."""
    cdef int i
    cdef double one = 1.0, zero = 0.0, factor
    if not self.direct and 4 * n < self.r and noise * self.rows > 1e-8 * self.total:
        memcpy(out, self.correlation0, self.d * sizeof(double))
        for i in range(n):
            factor = -coefficients[i] * (1.0 if scales == NULL else scales[i])
            daxpy(&self.d, &factor, gram_row(self, columns[i]), &ONE, out, &ONE)
        return
    dgemv("T", &self.r, &self.d, &one, self.A, &self.r, residual, &ONE, &zero, out, &ONE)

# --- Posterior -----------------------------------------------------------------------------------------------


cdef int posterior(Loop self, Post* post, double* gamma, double* factors, double noise) noexcept nogil:
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
    admit(self, post.active, k)
    for i in range(k):
        row = gram_row(self, post.active[i])
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
    subtract_fit(self, post.residual, post.active, post.w, post.root, k)
    if k:
        for i in range(k):
            self.vector1[i] = post.root[i] * ddot(&self.r, self.A + <Py_ssize_t> post.active[i] * self.r, &ONE,
                                                  post.residual, &ONE) - noise * post.w[i]
        dpotrs("L", &k, &ONE, post.triangle, &k, self.vector1, &k, &info)
        for i in range(k):
            post.w[i] += self.vector1[i]
        subtract_fit(self, post.residual, post.active, self.vector1, post.root, k)
    post.rss = ddot(&self.r, post.residual, &ONE, post.residual, &ONE) + self.rest
    post.quadratic = post.rss / noise + ddot(&k, post.w, &ONE, post.w, &ONE)
    return 0


cdef void invert(Loop self, Post* post) noexcept nogil:
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


cdef double update_noise(Loop self, Post* post) noexcept nogil:
    """Return σ² by the learned rule from one posterior."""
    cdef double degrees
    if not self.learned:
        return post.noise
    invert(self, post)
    degrees = self.rows - post.k + post.undetermined
    if degrees <= 0:
        return self.floor
    return max(post.rss / degrees, self.floor)


cdef Post* noise_posterior(Loop self, double* gamma, double noise, Post* post) noexcept nogil:
    """Return the posterior that the noise rule looks at, or NULL where it cannot be factored."""
    if not self.rescaled or not self.learned:
        return post
    if posterior(self, &self.rule_post, gamma, self.noise_scale, noise) < 0:
        return NULL
    return &self.rule_post

# --- Certificate ---------------------------------------------------------------------------------------------


cdef inline double prior_slope(Loop self, int j, double gamma, double noise) noexcept nogil:
    if not self.has_prior or gamma >= self.eta[j]:
        return 0.0
    return self.lam[j] / noise if self.over_noise else self.lam[j]


cdef void log_determinant_slopes(Loop self, Post* post, double* out) noexcept nogil:
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
        row, column = gram_row(self, post.active[i]), self.half + <Py_ssize_t> i * self.d
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
        invert(self, post)
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
        minimum_forms(self, post, out)


cdef void minimum_forms(Loop self, Post* post, double* out) noexcept nogil:
    """Fill M_j and (in `score`) q_j of the doubtful columns, as minima evaluated near their minimisers."""
    cdef int i, j, n = 0, info, k = post.k
    cdef double one = 1.0, minus = -1.0, negative_noise = -post.noise
    cdef double* z = self.vectors
    cdef double* v
    for i in range(k):
        memcpy(z + <Py_ssize_t> i * self.r, self.A + <Py_ssize_t> post.active[i] * self.r, self.r * sizeof(double))
        for j in range(self.r):
            z[<Py_ssize_t> i * self.r + j] *= post.root[i]
    active_minima(self, post, out)
    for j in range(self.d + 1):
        if j < self.d:
            if not self.doubtful[j]:
                continue
            memcpy(self.gather + <Py_ssize_t> n * self.r, self.A + <Py_ssize_t> j * self.r, self.r * sizeof(double))
            v = self.block + <Py_ssize_t> n * k
            for i in range(k):
                v[i] = post.root[i] * gram_row(self, post.active[i])[j]
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
            out[self.gathered[i]] = square(self, self.gather + <Py_ssize_t> i * self.r, self.r) / post.noise \
                + square(self, v, k)
            self.score[self.gathered[i]] = ddot(&k, v, &ONE, post.w, &ONE) \
                + ddot(&self.r, self.gather + <Py_ssize_t> i * self.r, &ONE, post.residual, &ONE) / post.noise
        n = 0


cdef void active_minima(Loop self, Post* post, double* out) noexcept nogil:
    """Fill M_j of the doubtful active columns, which then are no longer doubtful; Z is in `vectors`."""
    cdef int i, j, n = 0, info, k = post.k
    cdef double one = 1.0, zero = 0.0, minus = -1.0
    cdef double* z = self.vectors
    cdef double* t
    invert(self, post)
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
                square(self, self.gather + <Py_ssize_t> j * self.r, self.r) / post.noise + square(self, t, k)
            ) / post.root[self.gathered[j]] ** 2
        n = 0


cdef inline double square(Loop self, double* vector, int n) noexcept nogil:
    return ddot(&n, vector, &ONE, vector, &ONE)


cdef double cost_at(Loop self, double* gamma, Post* post) noexcept nogil:
    """Return the objective at the noise used in the loop."""
    cdef double alpha = self.alpha[0] if self.uniform else 1.0
    cdef double value = self.rows * log(alpha) + post.log_determinant + post.quadratic / alpha
    cdef int i, j
    if self.has_prior:
        for i in range(post.k):
            j = post.active[i]
            value += self.lam[j] / (post.noise if self.over_noise else 1.0) * min(gamma[j], self.eta[j])
    return value


cdef int certify(Loop self, double noise, double* kkt_gap, double* noise_gap) noexcept nogil:
    """Fill the posterior, c and q at (delta, noise), and the two gaps."""
    cdef int i, j
    cdef double ratio
    cdef Post* rule
    if posterior(self, &self.here, self.delta, NULL, noise) < 0:
        return -1
    log_determinant_slopes(self, &self.here, self.c)
    correlate(self, self.here.residual, self.here.active, self.here.w, self.here.root, self.here.k, noise, self.q)
    for j in range(self.d):
        self.c[j] = self.alpha[j] * self.c[j] + prior_slope(self, j, self.delta[j], noise)
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
    rule = noise_posterior(self, self.delta, noise, &self.here)
    if rule == NULL:
        return -1
    noise_gap[0] = fabs(update_noise(self, rule) / noise - 1)
    return 0
