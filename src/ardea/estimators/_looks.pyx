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
# Columns, or rows, that are looked at at once: more would not stay in the fastest memory.
cdef enum:
    WIDTH = 32
# Both twins take the same decisions.
cdef double FAR = residuals.FAR, MOST_TAKEN = residuals.MOST_TAKEN, MEDIAN = residuals.MEDIAN
cdef double WELL_CONDITIONED = residuals.WELL_CONDITIONED
cdef double MODEST = residuals.MODEST
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
    carried: float  # the share that three rows could have at most of all squared distances of a kept column


cdef bint ordinary(const double[:] y) noexcept nogil:
    """Whether no two neighbours are equal, values rise and fall, and there are more than two of them."""
    cdef Py_ssize_t i
    cdef bint up = False, down = False, third = False
    cdef double first = y[0], second = y[1]
    for i in range(1, y.shape[0]):
        if y[i] == y[i - 1]:
            return False
        up, down = up or y[i] > y[i - 1], down or y[i] < y[i - 1]
        third = third or (y[i] != first and y[i] != second)
    return up and down and third


cdef bint orthonormal(double *columns, int m, int k, double scale, double *work) noexcept nogil:
    """Make columns of mean zero orthonormal, times some scale; whether Cholesky has digits for it."""
    cdef int i, j, info = 0
    cdef double *gram = work
    cdef double *size = gram + k * k
    cdef double *room = size + k
    cdef double reciprocal = 0.0
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


cdef void means(const double[:, ::1] X, double *mean) noexcept nogil:
    """Fill in the means of all columns."""
    cdef Py_ssize_t i, j, start = 0, width, m = X.shape[0], d = X.shape[1]
    cdef const double *row
    cdef double sums[WIDTH]
    while start < d:
        width = d - start if d - start < WIDTH else WIDTH
        for j in range(width):
            sums[j] = 0.0
        for i in range(m):
            row = &X[i, start]
            for j in range(width):
                sums[j] += row[j]
        for j in range(width):
            mean[start + j] = sums[j] / m
        start += WIDTH


cdef void gather(
    const double[:, ::1] X, const Py_ssize_t[::1] places, const double[::1] coefficients, const double *mean,
    double *errors, double *columns
) noexcept nogil:
    """Take some columns from the errors, and fill them in less their means; some rows at a time, which stay near."""
    cdef Py_ssize_t i, j, place, start = 0, end, m = X.shape[0]
    while start < m:
        end = m if m - start < WIDTH else start + WIDTH
        for j in range(places.shape[0]):
            place = places[j]
            for i in range(start, end):
                errors[i] -= X[i, place] * coefficients[j]
                columns[j * m + i] = X[i, place] - mean[place]
        start = end


cdef void inflations(
    const double[:, ::1] X, const double *mean, const double *squares, double total, double *scale, double *v
) noexcept nogil:
    """Fill in Σ (x − x̄)² and v of all columns; squares have this sum."""
    cdef Py_ssize_t i, j, start = 0, width, m = X.shape[0], d = X.shape[1]
    cdef const double *row
    cdef double apart[WIDTH]
    cdef double every[WIDTH]
    cdef double weighted[WIDTH]
    while start < d:
        width = d - start if d - start < WIDTH else WIDTH
        for j in range(width):
            every[j] = weighted[j] = 0.0
        for i in range(m):
            row = &X[i, start]
            for j in range(width):
                apart[j] = row[j] - mean[start + j]
                apart[j] *= apart[j]
                every[j] += apart[j]
                weighted[j] += squares[i] * apart[j]
        for j in range(width):
            scale[start + j] = every[j]
            v[start + j] = m * weighted[j] / (total * every[j])
        start += WIDTH


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


cdef bint rises(const double[::1] ordered) noexcept nogil:
    """Whether no two numbers in order are equal."""
    cdef Py_ssize_t i
    for i in range(ordered.shape[0] - 1):
        if ordered[i] == ordered[i + 1]:
            return False
    return True


cdef double usual_size(const double[::1] ordered) noexcept nogil:
    """Return the median of |e|, given e in order."""
    cdef Py_ssize_t low = 0, high = ordered.shape[0] - 1, i
    for i in range(high - (high + 1) // 2):
        if -ordered[low] > ordered[high]:
            low += 1
        else:
            high -= 1
    return max(-ordered[low], ordered[high])


def look(
    const double[:, ::1] X,
    const double[:] y,
    const double[:, :] ranges,
    const Py_ssize_t[::1] places,
    const double[::1] coefficients,
    double intercept,
    double share,
    double cut,
):
    """Return the statistics of errors, given the ranges of all columns, and places and coefficients of those kept.

    `share` is that of the rows looked at in all, and `cut` the z of a column that is kept by chance. None where rows or
    columns are out of the ordinary.
    """
    cdef int m = <int>X.shape[0], d = <int>X.shape[1], k = <int>places.shape[0], q = k + 1, i, j, n = 0
    cdef double total = 0.0, leverages = 0.0, least, most, centre, second = 0.0, fourth = 0.0, false_terms = 0.0
    cdef double of_kept = 0.0, all_errors = 0.0, along_all = 0.0, size, value, scale = sqrt(share)
    cdef bint odd = False
    for j in range(d):
        odd = odd or not 1 / MODEST < max(ranges[1, j], -ranges[0, j]) < MODEST
    if odd or m < 2 or not ordinary(y):
        return None
    both, residual, chosen = np.empty((2 + q, m)), np.empty(m), np.empty(FAR_ROWS + 1, dtype=np.intc)
    cdef int[::1] far = chosen
    cdef double[:, ::1] rows = both
    cdef double[::1] errors = residual, work = np.empty(k * k + 5 * k + 2 * m + 3 * d + q + FAR_ROWS * (FAR_ROWS + 1))
    cdef double *fitted = &rows[2, 0]
    cdef double *leverage = &work[k * k + 5 * k]
    cdef double *squares = leverage + m
    cdef double *mean = squares + m
    cdef double *v = mean + d
    cdef double *along = v + 2 * d
    cdef double *root = along + q
    cdef double *parts = root + FAR_ROWS * FAR_ROWS
    with nogil:
        means(X, mean)
        size = sqrt(share / m)
        for i in range(m):
            errors[i], fitted[i], leverage[i] = y[i] - intercept, size, share / m
        gather(X, places, coefficients, mean, &errors[0], fitted + m)
        least = most = errors[0]
        for i in range(1, m):
            least, most = min(least, errors[i]), max(most, errors[i])
    if least == most or (k and not orthonormal(fitted + m, m, k, scale, &work[0])):
        return None
    with nogil:
        size, centre = max(most, -least), 0.0
        for j in range(k):
            for i in range(m):
                leverage[i] += fitted[(1 + j) * m + i] * fitted[(1 + j) * m + i]
        for i in range(m):
            errors[i] = value = errors[i] / size
            squares[i] = value * value / max(1 - leverage[i], 1 - MOST_TAKEN)
            centre += value
            all_errors += value * value
            total += squares[i]
            leverages += leverage[i]
        centre /= m
        for i in range(m):
            rows[0, i] = errors[i] - centre
            rows[1, i] = rows[0, i] * rows[0, i]
            second += rows[1, i]
            fourth += rows[1, i] * rows[1, i]
        inflations(X, mean, squares, total, v + d, v)
        for j in range(d):
            false_terms += erfc(cut / sqrt(2 * max(v[j], EPS))) / d
            odd = odd or not sqrt(v[d + j]) > NONE * max(ranges[1, j], -ranges[0, j])
        for j in range(k):
            of_kept = max(of_kept, v[places[j]])
        n = farthest(leverage, m, q, leverages, &far[0])
        dgemv(&TRANSPOSED, &m, &q, &UNIT, fitted, &m, &errors[0], &ONE, &ZERO, along, &ONE)
        along_all = ddot(&q, along, &ONE, along, &ONE)
        if n > 0:
            n = theirs(fitted, &errors[0], along, &far[0], n, m, q, root, parts)
    cdef double[::1] ordered = np.sort(residual)
    if odd or n < 0 or not rises(ordered):
        return None
    usual = usual_size(ordered)
    noise = sqrt(all_errors / m) / max(usual / MEDIAN, EPS)
    carried = 0.0
    for j in range(k):
        i = <int>places[j]
        value = max(ranges[1, i] - mean[i], mean[i] - ranges[0, i])
        carried = max(carried, 3 * value * value / v[d + i])
    theirs_all = np.cumsum([parts[i] ** 2 for i in range(n)])
    left = all_errors + (share - 2) * along_all
    return Look(both, m * fourth / second**2, noise, false_terms, of_kept, theirs_all, left, carried)


def neighbours(
    double complex[:, ::1] transforms,
    const double[::1] count,
    const double[:, ::1] near,
    const double[::1] of_squares,
    const double[::1] of_sizes,
):
    """Return three sums over pairs of rows that are near each other, their variance, and how variances of rows differ.

    The powers of errors, what was fitted given back, and of their squares are left in place of the first two.
    """
    cdef Py_ssize_t f, l
    cdef double m = 0.0, own, taken, alike = 0.0, turned = 0.0, apart = 0.0, norm = 0.0, variance = 0.0
    cdef double sizes = 0.0, square = transforms[1, 0].real
    with nogil:
        for f in range(count.shape[0]):
            m += count[f]  # all frequencies are as many as rows
        for f in range(count.shape[0]):
            own = transforms[1, f].real ** 2 + transforms[1, f].imag ** 2
            variance += of_squares[f] * own
            sizes += of_sizes[f] * own
            transforms[1, f] = own
            if f == 0:
                transforms[0, f] = 0.0
                continue
            taken = 0.0
            for l in range(2, transforms.shape[0]):
                taken += transforms[l, f].real ** 2 + transforms[l, f].imag ** 2
            own = transforms[0, f].real ** 2 + transforms[0, f].imag ** 2
            own /= 1 - min(taken / m, MOST_TAKEN)
            alike += near[0, f] * own
            turned += near[1, f] * own
            apart += near[2, f] * own
            norm += count[f] * own
            transforms[0, f] = own
    return (alike / norm - 1, turned / norm - 1, apart / norm - 1), variance / square**2, sizes / square**2


def largest(const double[:, ::1] lags, int number, double squared):
    """Return the largest |z| of the correlations at so many lags (`_at_lags`), given the squared sum of squares."""
    cdef Py_ssize_t k, m = lags.shape[1]
    cdef double z, most = 0.0, least = EPS * lags[1, 0]
    with nogil:
        for k in range(1, 1 + number):
            z = lags[0, k] / lags[0, 0] + 1.0 / (m - 1)
            most = max(most, z * z / max(lags[1, k], least))
    return sqrt(most * squared)
