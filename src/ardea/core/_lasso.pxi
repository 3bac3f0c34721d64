# --- Weighted lasso (see lasso.py) ---------------------------------------------------------------------------


cdef inline double penalty(Steps self, int i) noexcept nogil:
    return 0.0 if self.signs[i] == 0 else self.weights[self.index[i]] * self.signs[i]


cdef inline int turns(Steps self, int i) noexcept nogil:
    """Whether a coefficient changes its sign on the way to the goal."""
    return self.signs[i] != 0 and self.goal[i] * self.signs[i] <= 0


cdef inline void enter(Steps self, int j, double value, double direction) noexcept nogil:
    """Put a column into the set, with the sign of a direction where it has a weight."""
    self.index[self.n_set], self.values[self.n_set] = j, value
    self.signs[self.n_set] = (1.0 if direction > 0 else -1.0) if self.weights[j] > 0 else 0.0
    self.in_set[j] = 1
    self.n_set += 1


cdef void face_gram(Steps self, int width, int known) noexcept nogil:
    """Fill rows of this width with the Gram matrix of the face, scaled to unit diagonal; not where both are known."""
    cdef int i, j, k = self.n_set
    cdef double* row
    for i in range(k):
        row = gram_row(self, self.index[i])
        for j in range(max(i, known), k):
            self.matrix[at(width, i, j)] = row[self.index[j]] / (self.scale[i] * self.scale[j])


cdef int factor_face(Steps self) noexcept nogil:
    """Factor the Gram matrix of the face, from the first column on that the last face did not have in this place.

    With L₁₁ the factor of the columns before, L₂₁ = A₂₁L₁₁⁻ᵀ and L₂₂L₂₂ᵀ = A₂₂ − L₂₁L₂₁ᵀ. −1 where it is singular.
    """
    cdef int i, info = 0, known = 0, left, k = self.n_set
    cdef double one = 1.0, minus = -1.0
    cdef double* below
    cdef double* corner
    while known < min(k, self.n_factored) and self.factored[known] == self.index[known]:
        known += 1
    self.n_factored = known
    if known == k:
        return 0
    left = k - known
    face_gram(self, self.capacity, known)
    below, corner = self.matrix + known, self.matrix + at(self.capacity, known, known)
    if known:
        dtrsm("R", "L", "T", "N", &left, &known, &one, self.matrix, &self.capacity, below, &self.capacity)
        dsyrk("L", "N", &left, &known, &minus, below, &self.capacity, &one, corner, &self.capacity)
    dpotrf("L", &left, corner, &self.capacity, &info)
    if info != 0:
        return -1
    for i in range(known, k):
        if self.matrix[at(self.capacity, i, i)] < SINGULAR_PIVOT:
            return -1
        self.factored[i] = self.index[i]
    self.n_factored = k
    return 0


cdef int face_minimiser(Steps self) noexcept nogil:
    """Fill goal with the minimiser on the face; −1 where the face is singular."""
    cdef int i, info = 0, k = self.n_set
    admit(self, self.index, k)
    for i in range(k):
        self.scale[i] = sqrt(self.rho[self.index[i]])
        self.goal[i] = (self.correlation0[self.index[i]] - penalty(self, i)) / self.scale[i]
    if factor_face(self) < 0:
        return -1
    dpotrs("L", &k, &ONE, self.matrix, &self.capacity, self.goal, &k, &info)
    for i in range(k):
        self.goal[i] /= self.scale[i]
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    subtract_fit(self, self.row_vector, self.index, self.goal, NULL, k)
    for i in range(k):
        self.vector1[i] = (ddot(&self.r, column(self, self.index[i]), &ONE, self.row_vector, &ONE)
                           - penalty(self, i)) / self.scale[i]
    dpotrs("L", &k, &ONE, self.matrix, &self.capacity, self.vector1, &k, &info)
    for i in range(k):
        self.vector1[i] /= self.scale[i]
        self.goal[i] += self.vector1[i]
    # The residual at the goal, for the correlations that follow.
    subtract_fit(self, self.row_vector, self.index, self.vector1, NULL, k)
    return 0


cdef int leave_singular_face(Steps self) noexcept nogil:
    """Move along the null direction of the face, downhill, to the first sign change, and drop that column."""
    cdef int i, j, info, first = -1, k = self.n_set, lwork = 4 * self.capacity
    cdef double uphill = 0.0, reach, best = INFINITY, turn = 1.0
    self.n_factored = 0
    face_gram(self, k, 0)
    dsyev("V", "L", &k, self.matrix, &k, self.goal, self.work, &lwork, &info)
    if info != 0:
        return -1
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    subtract_fit(self, self.row_vector, self.index, self.values, NULL, k)
    for i in range(k):
        self.goal[i] = self.matrix[i] / self.scale[i]
        uphill += self.goal[i] * (ddot(&self.r, column(self, self.index[i]), &ONE, self.row_vector, &ONE)
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
        self.keep[i] = 1
    if first < 0:
        self.keep[k - 1] = 0
    else:
        for i in range(k):
            self.values[i] += best * turn * self.goal[i]
        self.keep[first] = 0
    keep_only(self)
    return 0


cdef void keep_only(Steps self) noexcept nogil:
    cdef int i, n = 0
    for i in range(self.n_set):
        if self.keep[i]:
            self.index[n], self.signs[n], self.values[n] = self.index[i], self.signs[i], self.values[i]
            n += 1
        else:
            self.in_set[self.index[i]] = 0
    self.n_set = n


cdef int minimise_on_face(Steps self) noexcept nogil:
    """Minimise over the face, dropping columns whose sign would change; −1 where LAPACK fails."""
    cdef int i, wrong, stuck, newcomers, best
    cdef double reach, first, best_wrongness
    while self.n_set:
        self.n_faces += 1
        if face_minimiser(self) < 0:
            if leave_singular_face(self) < 0:
                return -1
            continue
        wrong = stuck = newcomers = 0
        for i in range(self.n_set):
            wrong += turns(self, i)
            stuck += 1 if turns(self, i) and self.values[i] == 0 else 0
            newcomers += 1 if self.newcomer[self.index[i]] and self.values[i] == 0 else 0
        if wrong == 0:
            memcpy(self.values, self.goal, self.n_set * sizeof(double))
            return 0
        if stuck:
            best, best_wrongness = -1, -INFINITY
            for i in range(self.n_set):
                self.keep[i] = not (turns(self, i) and self.values[i] == 0)
                if not self.keep[i] and self.goal[i] * self.signs[i] > best_wrongness:
                    best, best_wrongness = i, self.goal[i] * self.signs[i]
            if stuck > 1 and stuck == newcomers:
                self.keep[best] = 1
            keep_only(self)
            continue
        first = INFINITY
        for i in range(self.n_set):
            if turns(self, i):
                first = min(first, self.values[i] / (self.values[i] - self.goal[i]))
        for i in range(self.n_set):
            self.keep[i] = 1
            if turns(self, i):
                reach = self.values[i] / (self.values[i] - self.goal[i])
                self.keep[i] = not reach <= first * (1 + EPS)
            self.values[i] += first * (self.goal[i] - self.values[i])
        keep_only(self)
    memcpy(self.row_vector, self.b, self.r * sizeof(double))
    return 0


cdef int _worse_first(const void* left, const void* right) noexcept nogil:
    cdef Violator* a = <Violator*> left
    cdef Violator* b = <Violator*> right
    if a.ratio != b.ratio:
        return -1 if a.ratio > b.ratio else 1
    return -1 if a.column < b.column else 1


cdef int lasso(Steps self) noexcept nogil:
    """Solve the weighted lasso from the present xi; leaves the solution in xi. −1 where the twin must take over.

    Columns of large coefficients come first: those that leave are last, where the factor of the face changes least.
    """
    cdef int i, j, n = 0, batch, room, single = 0
    cdef double size, objective, best = INFINITY
    cdef Py_ssize_t limit = 20 * (min(self.r, self.d) + 10)
    self.n_set = self.n_faces = self.n_factored = 0
    for j in range(self.d):
        self.in_set[j] = self.newcomer[j] = 0
        if self.xi[j] != 0 and isfinite(self.weights[j]) and self.rho[j] > 0:
            self.violators[n].ratio, self.violators[n].column = fabs(self.xi[j]) * sqrt(self.rho[j]), j
            n += 1
    if n > self.capacity:
        return -1
    qsort(self.violators, n, sizeof(Violator), _worse_first)
    for i in range(n):
        j = self.violators[i].column
        enter(self, j, self.xi[j], self.xi[j])
    while self.n_faces < limit:
        if self.n_set == 0:
            memcpy(self.row_vector, self.b, self.r * sizeof(double))
        if minimise_on_face(self) < 0:
            return -1
        correlate(self, self.row_vector, self.index, self.values, NULL, self.n_set, self.noise, self.correlation)
        n = 0
        for j in range(self.d):
            self.newcomer[j] = 0
            size = fabs(self.correlation[j])
            if not self.in_set[j] and self.rho[j] > 0 and isfinite(self.weights[j]) \
                    and size > self.weights[j] * (1 + RELATIVE_SLACK) + self.rounding[j]:
                self.violators[n].ratio = size / (self.weights[j] + self.rounding[j] + TINY)
                self.violators[n].column = j
                n += 1
        if n == 0:
            break
        objective = 0.0
        for i in range(self.n_set):
            j = self.index[i]
            objective += self.values[i] * (penalty(self, i) - 0.5 * (self.correlation0[j] + self.correlation[j]))
        if objective >= best:
            if single:
                break
            single = 1
        best = objective
        room = self.r - self.n_set
        batch = min(n, 1 if single else max(1, min(room, max(8, self.n_set // 2))))
        if self.n_set + batch > self.capacity:
            return -1
        qsort(self.violators, n, sizeof(Violator), _worse_first)
        for i in range(batch):
            j = self.violators[i].column
            enter(self, j, 0.0, self.correlation[j])
            self.newcomer[j] = 1
    memset(self.xi, 0, self.d * sizeof(double))
    for i in range(self.n_set):
        self.xi[self.index[i]] = self.values[i]
    return 0
