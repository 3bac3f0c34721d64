# --- Gram rows on demand -------------------------------------------------------------------------------------


cdef void admit(Steps self, int* columns, int n) noexcept nogil:
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
            memcpy(self.gather + at(self.r, batch, 0), column(self, j), self.r * sizeof(double))
            self.position[j] = self.pool_count + batch
            self.pooled[self.pool_count + batch] = j
            batch += 1
        if batch == GATHER or (i == n and batch > 0):
            dgemm("T", "N", &self.d, &batch, &self.r, &one, self.A, &self.r, self.gather, &self.r, &zero,
                  self.pool + at(self.d, self.pool_count, 0), &self.d)
            self.pool_count += batch
            batch = 0


cdef inline double* gram_row(Steps self, int j) noexcept nogil:
    return self.pool + at(self.d, self.position[j], 0)


cdef void subtract_fit(Steps self, double* out, int* columns, double* coefficients, double* scales, int n) noexcept nogil:
    """Return out − Σ A_j·coefficient·scale, in place."""
    cdef int i
    cdef double factor
    for i in range(n):
        factor = -coefficients[i] * (1.0 if scales == NULL else scales[i])
        daxpy(&self.r, &factor, column(self, columns[i]), &ONE, out, &ONE)


cdef void correlate(Steps self, double* residual, int* columns, double* coefficients, double* scales, int n,
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


cdef int posterior(Steps self, Post* post, double* gamma, double* factors, double noise) noexcept nogil:
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
            post.triangle[at(k, i, j)] = row[post.active[j]] * post.root[i] * post.root[j]
        post.triangle[at(k, i, i)] += noise
        self.vector1[i] = post.triangle[at(k, i, i)]
    post.log_determinant = (self.rows - k) * log(noise)
    if k:
        dpotrf("L", &k, post.triangle, &k, &info)
        if info != 0:
            return -1
        for i in range(k):
            if post.triangle[at(k, i, i)] ** 2 < SAFE_PIVOT * self.vector1[i]:
                return -1
            post.log_determinant += 2 * log(post.triangle[at(k, i, i)])
            post.w[i] = post.root[i] * self.correlation0[post.active[i]]
        dpotrs("L", &k, &ONE, post.triangle, &k, post.w, &k, &info)
    memcpy(post.residual, self.b, self.r * sizeof(double))
    subtract_fit(self, post.residual, post.active, post.w, post.root, k)
    if k:
        for i in range(k):
            self.vector1[i] = post.root[i] * ddot(&self.r, column(self, post.active[i]), &ONE,
                                                  post.residual, &ONE) - noise * post.w[i]
        dpotrs("L", &k, &ONE, post.triangle, &k, self.vector1, &k, &info)
        for i in range(k):
            post.w[i] += self.vector1[i]
        subtract_fit(self, post.residual, post.active, self.vector1, post.root, k)
    post.rss = ddot(&self.r, post.residual, &ONE, post.residual, &ONE) + self.rest
    post.quadratic = post.rss / noise + ddot(&k, post.w, &ONE, post.w, &ONE)
    return 0


cdef void invert(Steps self, Post* post) noexcept nogil:
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
                post.inverse[at(k, j, i)] = post.inverse[at(k, i, j)]
            post.undetermined += post.noise * post.inverse[at(k, i, i)]
    post.has_inverse = 1


cdef double update_noise(Steps self, Post* post) noexcept nogil:
    """Return σ² by the learned rule from one posterior."""
    cdef double degrees
    if not self.learned:
        return post.noise
    invert(self, post)
    degrees = self.rows - post.k + post.undetermined
    if degrees <= 0:
        return self.floor
    return max(post.rss / degrees, self.floor)


cdef Post* noise_posterior(Steps self, double* gamma, Post* post) noexcept nogil:
    """Return the posterior that the noise rule looks at, or NULL where it cannot be factored."""
    if not self.rescaled or not self.learned:
        return post
    if posterior(self, &self.rule_post, gamma, self.noise_scale, post.noise) < 0:
        return NULL
    return &self.rule_post

# --- Certificate ---------------------------------------------------------------------------------------------


cdef inline double prior_slope(Steps self, int j, double gamma, double noise) noexcept nogil:
    if not self.has_prior or gamma >= self.eta[j]:
        return 0.0
    return self.lam[j] / noise if self.over_noise else self.lam[j]


cdef void log_determinant_slopes(Steps self, Post* post, double* out) noexcept nogil:
    """Fill M_j for every column; where B⁻¹ tells it, the Schur complement is not computed."""
    cdef int i, j, k = post.k, any_doubtful = 0
    cdef double condition = 0.0, gamma, explained
    if k == 0:
        for j in range(self.d):
            out[j] = self.rho[j] / post.noise
            self.doubtful[j] = 0
        return
    for i in range(k):
        condition += post.root[i] * post.root[i] * self.rho[post.active[i]]
    condition /= post.noise
    for j in range(self.d):
        out[j], self.doubtful[j] = 0.0, self.rho[j] > 0
    if condition <= SAFE_CONDITION:
        invert(self, post)
        for i in range(k):
            j = post.active[i]
            gamma = post.root[i] * post.root[i]
            explained = 1.0 - post.noise * post.inverse[at(k, i, i)]
            if gamma * self.rho[j] > SAFE_SHARE * post.noise \
                    and explained > max(SAFE_EXPLAINED, LOST_DIGITS * EPS * condition):
                out[j] = explained / gamma
                self.doubtful[j] = 0
    schur_complements(self, post, condition > SAFE_CONDITION, out)
    for j in range(self.d):
        any_doubtful = any_doubtful or self.doubtful[j]
    if any_doubtful:
        minimum_forms(self, post, out)


cdef void schur_complements(Steps self, Post* post, int unsafe, double* out) noexcept nogil:
    """Fill M_j of the doubtful columns from their Schur complements; doubtful stay those where that has cancelled."""
    cdef int i, j, n = 0, k = post.k
    cdef double one = 1.0, schur
    cdef double* row
    cdef double* column
    cdef double* sums = self.moved
    for j in range(self.d):
        if self.doubtful[j]:
            self.chosen[n], sums[n] = j, 0.0
            n += 1
    if n == 0:
        return
    for i in range(k):
        row, column = gram_row(self, post.active[i]), self.half + at(n, i, 0)
        for j in range(n):
            column[j] = row[self.chosen[j]] * post.root[i]
    dtrsm("R", "L", "T", "N", &n, &k, &one, post.triangle, &k, self.half, &n)
    for i in range(k):
        column = self.half + at(n, i, 0)
        for j in range(n):
            sums[j] += column[j] * column[j]
    for i in range(n):
        j = self.chosen[i]
        schur = self.rho[j] - sums[i]
        out[j] = schur / post.noise
        self.doubtful[j] = unsafe or schur < SAFE_SHARE * self.rho[j]


cdef void minimum_forms(Steps self, Post* post, double* out) noexcept nogil:
    """Fill M_j and (in `score`) q_j of the doubtful columns, as minima evaluated near their minimisers."""
    cdef int i, j, n = 0, info, k = post.k
    cdef double one = 1.0, minus = -1.0, negative_noise = -post.noise
    cdef double* z = self.vectors
    cdef double* v
    for i in range(k):
        memcpy(z + at(self.r, i, 0), column(self, post.active[i]), self.r * sizeof(double))
        for j in range(self.r):
            z[at(self.r, i, j)] *= post.root[i]
    active_minima(self, post, out)
    for j in range(self.d + 1):
        if j < self.d:
            if not self.doubtful[j]:
                continue
            memcpy(self.gather + at(self.r, n, 0), column(self, j), self.r * sizeof(double))
            v = self.block + at(k, n, 0)
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
            v = self.block + at(k, i, 0)
            daxpy(&k, &one, self.block2 + at(k, i, 0), &ONE, v, &ONE)
            out[self.gathered[i]] = square(self, self.gather + at(self.r, i, 0), self.r) / post.noise \
                + square(self, v, k)
            self.score[self.gathered[i]] = ddot(&k, v, &ONE, post.w, &ONE) \
                + ddot(&self.r, self.gather + at(self.r, i, 0), &ONE, post.residual, &ONE) / post.noise
        n = 0


cdef void active_minima(Steps self, Post* post, double* out) noexcept nogil:
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
                self.block[at(k, n, j)] = post.noise * post.inverse[at(k, i, j)]
                self.block2[at(k, n, j)] = -post.noise * self.block[at(k, n, j)]
            self.block2[at(k, n, i)] += post.noise
            self.gathered[n] = i
            n += 1
        if n < GATHER and (i < k or n == 0):
            continue
        dgemm("N", "N", &self.r, &n, &k, &one, z, &self.r, self.block, &k, &zero, self.gather, &self.r)
        dgemm("T", "N", &k, &n, &self.r, &minus, z, &self.r, self.gather, &self.r, &one, self.block2, &k)
        dpotrs("L", &k, &n, post.triangle, &k, self.block2, &k, &info)
        dgemm("N", "N", &self.r, &n, &k, &one, z, &self.r, self.block2, &k, &one, self.gather, &self.r)
        for j in range(n):
            t = self.block + at(k, j, 0)
            daxpy(&k, &one, self.block2 + at(k, j, 0), &ONE, t, &ONE)
            t[self.gathered[j]] -= 1.0
            out[post.active[self.gathered[j]]] = (
                square(self, self.gather + at(self.r, j, 0), self.r) / post.noise + square(self, t, k)
            ) / post.root[self.gathered[j]] ** 2
        n = 0


cdef inline double square(Steps self, double* vector, int n) noexcept nogil:
    return ddot(&n, vector, &ONE, vector, &ONE)


cdef double cost_at(Steps self, double* gamma, Post* post) noexcept nogil:
    """Return the objective at the noise used in the loop."""
    cdef double alpha = self.alpha[0] if self.uniform else 1.0
    cdef double value = self.rows * log(alpha) + post.log_determinant + post.quadratic / alpha
    cdef int i, j
    if self.has_prior:
        for i in range(post.k):
            j = post.active[i]
            value += self.lam[j] / (post.noise if self.over_noise else 1.0) * min(gamma[j], self.eta[j])
    return value


cdef int certify(Steps self) noexcept nogil:
    """Fill the posterior, c and q at the present δ and σ², the cost, and the two gaps; −1 for the twin."""
    cdef int i, j
    cdef double ratio
    cdef Post* rule
    if posterior(self, &self.here, self.delta, NULL, self.noise) < 0:
        return -1
    log_determinant_slopes(self, &self.here, self.c)
    correlate(self, self.here.residual, self.here.active, self.here.w, self.here.root, self.here.k, self.noise, self.q)
    for j in range(self.d):
        self.c[j] = self.alpha[j] * self.c[j] + prior_slope(self, j, self.delta[j], self.noise)
        self.q[j] = self.score[j] if self.doubtful[j] else self.q[j] / self.noise
    for i in range(self.here.k):
        self.q[self.here.active[i]] = self.here.w[i] / self.here.root[i]
    self.kkt_gap = 0.0
    for j in range(self.d):
        if self.rho[j] > 0:
            ratio = self.q[j] * self.q[j] / self.c[j] - 1
            if self.delta[j] <= 0:
                ratio = max(ratio, 0.0)
            if not fabs(ratio) <= self.kkt_gap:
                self.kkt_gap = fabs(ratio)
    rule = noise_posterior(self, self.delta, &self.here)
    if rule == NULL:
        return -1
    self.noise_gap = fabs(update_noise(self, rule) / self.noise - 1)
    self.cost = cost_at(self, self.delta, &self.here)
    return 0
