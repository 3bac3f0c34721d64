# Functions of a Loop (`_loop.pyx`): the weighted lasso, and the majorisation and Newton steps.

# --- Weighted lasso ------------------------------------------------------------------------------------------


cdef inline double penalty(Loop self, int i) noexcept nogil:
    return 0.0 if self.signs[i] == 0 else self.weights[self.index[i]] * self.signs[i]


cdef int face_minimiser(Loop self) noexcept nogil:
    """Fill goal with the minimiser on the face; −1 where the face is singular."""
    cdef int i, j, info = 0, k = self.n_set
    cdef double* row
    admit(self, self.index, k)
    for i in range(k):
        self.scale[i] = sqrt(self.rho[self.index[i]])
    for i in range(k):
        row = gram_row(self, self.index[i])
        for j in range(i, k):
            self.matrix[<Py_ssize_t> i * k + j] = row[self.index[j]] / (self.scale[i] * self.scale[j])
    dpotrf("L", &k, self.matrix, &k, &info)
    if info != 0:
        return -1
    for i in range(k):
        if self.matrix[<Py_ssize_t> i * k + i] < self.singular_pivot:
            return -1
        self.goal[i] = (self.correlation0[self.index[i]] - penalty(self, i)) / self.scale[i]
    dpotrs("L", &k, &ONE, self.matrix, &k, self.goal, &k, &info)
    for i in range(k):
        self.goal[i] /= self.scale[i]
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    subtract_fit(self, self.row_vector, self.index, self.goal, NULL, k)
    for i in range(k):
        self.vector1[i] = (ddot(&self.r, self.A + <Py_ssize_t> self.index[i] * self.r, &ONE, self.row_vector, &ONE)
                           - penalty(self, i)) / self.scale[i]
    dpotrs("L", &k, &ONE, self.matrix, &k, self.vector1, &k, &info)
    for i in range(k):
        self.vector1[i] /= self.scale[i]
        self.goal[i] += self.vector1[i]
    # The residual at the goal, for the correlations that follow.
    subtract_fit(self, self.row_vector, self.index, self.vector1, NULL, k)
    return 0


cdef int leave_singular_face(Loop self, char* keep) noexcept nogil:
    """Move along the null direction of the face, downhill, to the first sign change, and drop that column."""
    cdef int i, j, info, first = -1, k = self.n_set, lwork = 4 * self.capacity
    cdef double uphill = 0.0, reach, best = INFINITY, turn = 1.0
    cdef double* row
    for i in range(k):
        row = gram_row(self, self.index[i])
        for j in range(i, k):
            self.matrix[<Py_ssize_t> i * k + j] = row[self.index[j]] / (self.scale[i] * self.scale[j])
    dsyev("V", "L", &k, self.matrix, &k, self.goal, self.work, &lwork, &info)
    if info != 0:
        return -1
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    subtract_fit(self, self.row_vector, self.index, self.values, NULL, k)
    for i in range(k):
        self.goal[i] = self.matrix[i] / self.scale[i]
        uphill += self.goal[i] * (ddot(&self.r, self.A + <Py_ssize_t> self.index[i] * self.r, &ONE, self.row_vector, &ONE)
                                  - penalty(self, i))
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
    keep_only(self, keep)
    return 0


cdef void keep_only(Loop self, char* keep) noexcept nogil:
    cdef int i, n = 0
    for i in range(self.n_set):
        if keep[i]:
            self.index[n], self.signs[n], self.values[n] = self.index[i], self.signs[i], self.values[i]
            n += 1
        else:
            self.in_set[self.index[i]] = 0
    self.n_set = n


cdef int minimise_on_face(Loop self, char* keep) noexcept nogil:
    """Minimise over the face, dropping columns whose sign would change; −1 where LAPACK fails."""
    cdef int i, wrong, stuck, newcomers, best
    cdef double reach, first, best_wrongness
    while self.n_set:
        self.n_faces += 1
        if face_minimiser(self) < 0:
            if leave_singular_face(self, keep) < 0:
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
            keep_only(self, keep)
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
        keep_only(self, keep)
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    return 0


cdef int lasso(Loop self, double noise, char* keep) noexcept nogil:
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
        if minimise_on_face(self, keep) < 0:
            return -1
        correlate(self, self.row_vector, self.index, self.values, NULL, self.n_set, noise, self.correlation)
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
            objective += self.values[i] * (penalty(self, i)
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


cdef int majorise(Loop self, double* noise, int* settled, char* keep) noexcept nogil:
    """Take one majorisation step from (delta, noise) with tangent weights c."""
    cdef int j
    cdef double root, change, largest = 0.0
    cdef Post* rule
    for j in range(self.d):
        self.weights[j] = noise[0] * sqrt(self.c[j])
    if lasso(self, noise[0], keep) < 0:
        return -1
    settled[0] = 1
    for j in range(self.d):
        self.moved[j] = fabs(self.xi[j]) / sqrt(self.c[j]) if self.xi[j] != 0 else 0.0
        if (self.moved[j] > 0) != (self.delta[j] > 0):
            settled[0] = 0
    if self.learned:
        if posterior(self, &self.next_post, self.moved, NULL, noise[0]) < 0:
            return -1
        rule = noise_posterior(self, self.moved, noise[0], &self.next_post)
        if rule == NULL:
            return -1
        noise[0] = update_noise(self, rule)
    for j in range(self.d):
        change = fabs(self.moved[j] - self.delta[j]) * self.rho[j] / (noise[0] + self.moved[j] * self.rho[j])
        largest = max(largest, change)
    settled[0] = settled[0] and largest <= self.settled_change
    memcpy(self.delta, self.moved, self.d * sizeof(double))
    return 0


cdef int violation_at(Loop self, double* gamma, Post* post, double* out) noexcept nogil:
    """Return max |F_i| over the active columns and the noise rule."""
    cdef int i, j, k = post.k
    cdef double force, worst = 0.0
    cdef Post* rule = noise_posterior(self, gamma, post.noise, post)
    if rule == NULL:
        return -1
    invert(self, post)
    for i in range(k):
        j = post.active[i]
        force = post.w[i] * post.w[i] - self.alpha[j] * (1.0 - post.noise * post.inverse[<Py_ssize_t> i * k + i]) \
            - gamma[j] * prior_slope(self, j, gamma[j], post.noise)
        worst = max(worst, fabs(force))
    worst = max(worst, fabs(update_noise(self, rule) / post.noise - 1))
    out[0] = worst if isfinite(worst) else INFINITY
    return 0


cdef void mixed_slope(Loop self, Post* post, int with_alpha, double* out) noexcept nogil:
    """Fill s·δ_i ∂²/∂δ_i∂s of α log|Σ_y| + yᵀΣ_y⁻¹y."""
    cdef int i, k = post.k
    cdef double s = post.noise, alpha
    cdef double* row
    for i in range(k):
        row = post.inverse + <Py_ssize_t> i * k
        alpha = self.alpha[post.active[i]] if with_alpha else 1.0
        out[i] = 2 * s * post.w[i] * ddot(&k, row, &ONE, post.w, &ONE) \
            - alpha * (s * row[i] - s * s * ddot(&k, row, &ONE, row, &ONE))


cdef int newton_direction(Loop self, double* gamma, Post* post, double* p, double* u) noexcept nogil:
    """Fill the relative step p of δ and u of σ²; −1 where there is none."""
    cdef int i, j, info, k = post.k
    cdef double s = post.noise, m = self.rows, e, wi, size = 0.0, damping = 0.0, ai
    cdef double degrees, noise_residual, trace_square = 0.0, pull, noise_slope, schur
    cdef Post* rule
    if k == 0:
        return -1
    invert(self, post)
    for i in range(k):
        j = post.active[i]
        p[i] = -(self.alpha[j] * (1.0 - s * post.inverse[<Py_ssize_t> i * k + i]) - post.w[i] * post.w[i]
                 + gamma[j] * prior_slope(self, j, gamma[j], s))
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
    rule = noise_posterior(self, gamma, s, post)
    if rule == NULL:
        return -1
    if update_noise(self, rule) == s:
        return 0
    mixed_slope(self, post, 1, self.vector1)
    mixed_slope(self, rule, 0, self.vector2)
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


cdef int newton(Loop self, double* noise, double cost, double tol) noexcept nogil:
    """Take Newton steps; 1 where one was accepted, 0 where none was, −1 where the twin must take over."""
    cdef int step, i, j, accepted, any_accepted = 0, attempt
    cdef double u, fraction, trial_noise, trial_violation, trial_cost, violation, rounding
    cdef Post swap
    if violation_at(self, self.delta, &self.here, &violation) < 0:
        return -1
    for step in range(self.max_newton):
        if newton_direction(self, self.delta, &self.here, self.goal, &u) < 0:
            break
        accepted, fraction, rounding = 0, 1.0, 8 * EPS * fabs(cost)
        for attempt in range(4):
            memset(self.trial, 0, self.d * sizeof(double))
            for i in range(self.here.k):
                j = self.here.active[i]
                self.trial[j] = max(self.delta[j] * (1 + fraction * self.goal[i]), 0.0)
            trial_noise = noise[0] * exp(max(min(fraction * u, 1.0), -1.0))
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
        noise[0], violation, cost = trial_noise, trial_violation, trial_cost
        if violation <= tol / 10:
            break
    if any_accepted:
        memset(self.xi, 0, self.d * sizeof(double))
        for i in range(self.here.k):
            self.xi[self.here.active[i]] = self.here.root[i] * self.here.w[i]
    return any_accepted
