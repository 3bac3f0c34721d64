# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What the tests of :mod:`ardea.estimators.residuals` look at, compiled: all statistics of ordinary rows in one call.

Step for step `_sample` of :mod:`ardea.estimators.dependence` and the functions of `residuals`, which hold the maths and
run wherever rows are out of the ordinary, or one of these statistics is.
"""

from typing import NamedTuple

import numpy as np

from ardea.estimators import residuals

from libc.math cimport erfc, sqrt
from scipy.linalg.cython_blas cimport ddot, dgemv, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dtrcon

cdef int ONE = 1
cdef double UNIT = 1.0, ZERO = 0.0, EPS = 2.220446049250313e-16
cdef char UPPER = b"U", TRANSPOSED = b"T", PLAIN = b"N", RIGHT = b"R"
# Both twins take the same decisions.
cdef double FAR = residuals.FAR, MOST_TAKEN = residuals.MOST_TAKEN, MEDIAN = residuals.MEDIAN
cdef double WELL_CONDITIONED = residuals.WELL_CONDITIONED
cdef int FAR_ROWS = residuals.FAR_ROWS, FEWEST_LEFT = residuals.FEWEST_LEFT
# Deviations of a column, relative to its largest value, that may be rounding.
cdef double NONE = 1e-9
# Leverages that differ by less, relative to their size, may come in another order in the twin.
cdef double ALIKE = 1e-9


class Look(NamedTuple):
    """Statistics of the errors of some rows."""

    rows: np.ndarray  # errors less their mean, their squares, and orthonormal columns that were fitted, one a row
    kurtosis: float
    noise: float  # the standard deviation of the noise relative to that of most rows
    false_terms: float  # mean of 2Φ(−z/√v) over the columns
    of_kept: float  # the largest v of a column that was kept
    theirs: np.ndarray  # the part of the 1, 2, … farthest rows in all squares that the fitted columns leave
    left: float  # all these squares


cdef bint ordinary(const double[:] y) noexcept nogil:
    """Whether no two neighbours are equal, values rise and fall, and there are more than two of them."""
    cdef Py_ssize_t i
    cdef bint rises = False, falls = False, third = False
    cdef double first = y[0], second = y[1]
    for i in range(1, y.shape[0]):
        if y[i] == y[i - 1]:
            return False
        rises, falls = rises or y[i] > y[i - 1], falls or y[i] < y[i - 1]
        third = third or (y[i] != first and y[i] != second)
    return rises and falls and third


cdef bint orthonormal(double *columns, int m, int k, double scale, double *work) noexcept nogil:
    """Make columns orthonormal, times some scale; whether Cholesky has digits for it."""
    cdef int i, j, info = 0
    cdef double *gram = work
    cdef double *size = gram + k * k
    cdef double *room = size + k
    cdef double mean, reciprocal
    for j in range(k):
        mean = 0.0
        for i in range(m):
            mean += columns[j * m + i]
        mean /= m
        for i in range(m):
            columns[j * m + i] -= mean
    dsyrk(&UPPER, &TRANSPOSED, &k, &m, &UNIT, columns, &m, &ZERO, gram, &k)
    for j in range(k):
        size[j] = sqrt(gram[j * k + j])
        if not size[j] > 0:
            return False
        for i in range(j + 1):
            gram[j * k + i] /= size[i] * size[j]
    dpotrf(&UPPER, &k, gram, &k, &info)
    if info == 0:
        dtrcon(b"1", &UPPER, &PLAIN, &k, gram, &k, &reciprocal, room, <int *>(room + 3 * k), &info)
    if info != 0 or reciprocal * reciprocal <= WELL_CONDITIONED:
        return False
    for j in range(k):
        for i in range(j + 1):
            gram[j * k + i] *= size[j] / scale
    dtrsm(&RIGHT, &UPPER, &PLAIN, &PLAIN, &m, &k, &UNIT, gram, &k, columns, &m)
    return True


cdef void inflations(
    const double[:, ::1] X, const double *squares, double total, double *mean, double *scale, double *v
) noexcept nogil:
    """Fill in v of every column; squares have this sum."""
    cdef Py_ssize_t i, j, m = X.shape[0], d = X.shape[1]
    cdef double apart
    for j in range(d):
        mean[j] = scale[j] = v[j] = 0.0
    for i in range(m):
        for j in range(d):
            mean[j] += X[i, j]
    for j in range(d):
        mean[j] /= m
    for i in range(m):
        for j in range(d):
            apart = (X[i, j] - mean[j]) * (X[i, j] - mean[j])
            scale[j] += apart
            v[j] += squares[i] * apart
    for j in range(d):
        v[j] *= m / (total * scale[j])


cdef int farthest(const double *leverage, int m, int q, double total, int *rows) noexcept nogil:
    """Fill in the few rows that are far out, the farthest first, and return their number; −1 where some are alike."""
    cdef int i, j, n = 0, met = 0, most = max(min(FAR_ROWS, m - q - FEWEST_LEFT), 0)
    for i in range(m):
        if not leverage[i] > FAR * total / m:
            continue
        j = min(n, most)
        while j > 0 and leverage[rows[j - 1]] < leverage[i]:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = i
        n = min(n + 1, most + 1)  # one more, to see whether it is like the last
    for j in range(1, n):
        if leverage[rows[j - 1]] - leverage[rows[j]] < ALIKE * leverage[rows[j]]:
            return -1
    n = min(n, most)
    for j in range(n):
        if leverage[rows[j]] < MOST_TAKEN:
            rows[met] = rows[j]
            met += 1
    return met


cdef int theirs(
    const double *fitted, const double *errors, const double *along, const int *rows, int n, int m, int q,
    double *root, double *parts
) noexcept nogil:
    """Fill in the squares of far rows one by one, by Cholesky of (I − FFᵀ)_SS; return for how many it has digits."""
    cdef int i, j, l, known, info = 0
    for j in range(n):
        parts[j] = errors[rows[j]]
        for l in range(q):
            parts[j] -= fitted[l * m + rows[j]] * along[l]
        for i in range(j + 1):
            root[j * n + i] = 1.0 if i == j else 0.0
            for l in range(q):
                root[j * n + i] -= fitted[l * m + rows[i]] * fitted[l * m + rows[j]]
    dpotrf(&UPPER, &n, root, &n, &info)
    known = n if info == 0 else info - 1
    for j in range(known):
        for i in range(j):
            parts[j] -= root[j * n + i] * parts[i]
        parts[j] /= root[j * n + j]
    return known


cdef double usual_size(const double[::1] ordered) noexcept nogil:
    """Return the median of |e|, given e in order; −1 where some are equal."""
    cdef Py_ssize_t low = 0, high = ordered.shape[0] - 1, i
    for i in range(high):
        if ordered[i] == ordered[i + 1]:
            return -1.0
    for i in range(high - (high + 1) // 2):
        if -ordered[low] > ordered[high]:
            low += 1
        else:
            high -= 1
    return max(-ordered[low], ordered[high])


def look(
    const double[:, ::1] X,
    const double[:] y,
    const double[::1] largest,
    const Py_ssize_t[::1] places,
    const double[::1] coefficients,
    double intercept,
    double share,
    double cut,
):
    """Return the statistics of errors, given the size of all columns, and places and coefficients of those kept.

    `share` is that of the rows looked at in all, and `cut` the z of a column that is kept by chance. None where rows or
    columns are out of the ordinary.
    """
    cdef int m = <int>X.shape[0], d = <int>X.shape[1], k = <int>places.shape[0], q = k + 1, i, j, n = 0
    cdef double total = 0.0, leverages = 0.0, least, most, mean, second = 0.0, fourth = 0.0, false_terms = 0.0
    cdef double of_kept = 0.0, all_errors = 0.0, along_all = 0.0, size, scale = sqrt(share)
    cdef bint constant = False
    cdef int far[64]
    if m < 2 or FAR_ROWS > 60 or not ordinary(y):
        return None
    both, residual = np.empty((2 + q, m)), np.empty(m)
    cdef double[:, ::1] rows = both
    cdef double[::1] errors = residual, work = np.zeros(k * k + 5 * k + 2 * m + 3 * d + q + FAR_ROWS * (FAR_ROWS + 1))
    cdef double *fitted = &rows[2, 0]
    cdef double *leverage = &work[k * k + 5 * k]
    cdef double *squares = leverage + m
    cdef double *v = squares + m
    cdef double *along = v + 3 * d
    cdef double *root = along + q
    cdef double *parts = root + FAR_ROWS * FAR_ROWS
    with nogil:
        for i in range(m):
            errors[i] = y[i] - intercept
            fitted[i] = scale / sqrt(m)
            leverage[i] = share / m
            for j in range(k):
                errors[i] -= X[i, places[j]] * coefficients[j]
                rows[3 + j, i] = X[i, places[j]]
        least = most = errors[0]
        for i in range(m):
            least, most = min(least, errors[i]), max(most, errors[i])
    if least == most or (k and not orthonormal(fitted + m, m, k, scale, &work[0])):
        return None
    with nogil:
        size, mean = max(most, -least), 0.0
        for j in range(k):
            for i in range(m):
                leverage[i] += rows[3 + j, i] * rows[3 + j, i]
        for i in range(m):
            errors[i] /= size
            mean += errors[i] / m
            all_errors += errors[i] * errors[i]
            squares[i] = errors[i] * errors[i] / max(1 - leverage[i], 1 - MOST_TAKEN)
            total += squares[i]
            leverages += leverage[i]
        for i in range(m):
            rows[0, i] = errors[i] - mean
            rows[1, i] = rows[0, i] * rows[0, i]
            second += rows[1, i]
            fourth += rows[1, i] * rows[1, i]
        inflations(X, squares, total, v + d, v + 2 * d, v)
        for j in range(d):
            false_terms += erfc(cut / sqrt(2 * max(v[j], EPS))) / d
            constant = constant or not sqrt(v[2 * d + j]) > NONE * largest[j]
        for j in range(k):
            of_kept = max(of_kept, v[places[j]])
        n = farthest(leverage, m, q, leverages, far)
        dgemv(&TRANSPOSED, &m, &q, &UNIT, fitted, &m, &errors[0], &ONE, &ZERO, along, &ONE)
        along_all = ddot(&q, along, &ONE, along, &ONE)
        if n > 0:
            n = theirs(fitted, &errors[0], along, far, n, m, q, root, parts)
    usual = usual_size(np.sort(residual))
    if constant or n < 0 or usual < 0:
        return None
    noise = sqrt(all_errors / m) / max(usual / MEDIAN, EPS)
    theirs_all = np.cumsum([parts[i] ** 2 for i in range(n)])
    left = all_errors + (share - 2) * along_all
    return Look(both, m * fourth / second**2, noise, false_terms, of_kept, theirs_all, left)


def neighbours(
    const double complex[:, ::1] transforms,
    const double[::1] count,
    const double[::1] near,
    const double[::1] of_squares,
):
    """Return the sum over pairs of rows that are near each other, and its variance, from the transforms of a look."""
    cdef Py_ssize_t f, l
    cdef double m = 0.0, own, taken, value = 0.0, norm = 0.0, variance = 0.0, square = transforms[1, 0].real
    with nogil:
        for f in range(count.shape[0]):
            m += count[f]  # all frequencies are as many as rows
        for f in range(count.shape[0]):
            own = transforms[1, f].real ** 2 + transforms[1, f].imag ** 2
            variance += of_squares[f] * own
            if f == 0:
                continue
            taken = 0.0
            for l in range(2, transforms.shape[0]):
                taken += transforms[l, f].real ** 2 + transforms[l, f].imag ** 2
            own = transforms[0, f].real ** 2 + transforms[0, f].imag ** 2
            own /= 1 - min(taken / m, MOST_TAKEN)
            value += near[f] * own
            norm += count[f] * own
    return value / norm - 1, variance / square**2
