# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of :mod:`ardea.core.subsets`, and of a few columns elsewhere, compiled; NumPy twins hold the maths.

Arrays of columns are column-major.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, frexp, ldexp, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot, dgemm, dgemv, dtrmm
from scipy.linalg.cython_lapack cimport dgeqrf, dorgqr, dormqr, dtrtri

cdef int ONE = 1
cdef double UNIT = 1.0, MINUS = -1.0, ZERO = 0.0
cdef double TINY = 2.2250738585072014e-308
# Room for LAPACK's blocks, of this many columns.
cdef int BLOCK = 32


cdef int _factored(
    const double[::1, :] A, const Py_ssize_t[::1] support, double *reflections, double *scales, double *room
) noexcept nogil:
    """Make a QR decomposition of some columns."""
    cdef int n = <int>A.shape[0], k = <int>support.shape[0], size = BLOCK * k, info = 0
    cdef Py_ssize_t i
    for i in range(k):
        memcpy(reflections + i * n, &A[0, support[i]], n * sizeof(double))
    if k:
        dgeqrf(&n, &k, reflections, &n, scales, room, &size, &info)
    return info


def rss(
    const double[::1, :] A,
    const double[::1] target,
    const double[::1] square,
    const Py_ssize_t[::1] support,
    double dependent,
):
    """Return ‖y − QQᵀy‖², without what columns in the span of those before them explain."""
    cdef int n = <int>A.shape[0], k = <int>support.shape[0], size = BLOCK, info
    cdef int rank = min(n, k)
    cdef double out = 0.0
    cdef Py_ssize_t i
    cdef char left = b"L", transposed = b"T"
    cdef double[::1] work = np.empty(n * k + k + BLOCK * max(k, 1) + n)
    cdef double *reflections = &work[0]
    cdef double *scales = reflections + n * k
    cdef double *room = scales + k
    cdef double *rotated = room + BLOCK * k
    with nogil:
        _factored(A, support, reflections, scales, room)
        memcpy(rotated, &target[0], n * sizeof(double))
        dormqr(&left, &transposed, &n, &ONE, &rank, reflections, &n, scales, rotated, &n, room, &size, &info)
        for i in range(n):
            if i >= k or reflections[i * n + i] ** 2 <= dependent * dependent * square[support[i]]:
                out += rotated[i] * rotated[i]
    return out


def moves(
    const double[::1, :] A,
    const double[::1] target,
    const double[::1] square,
    const Py_ssize_t[::1] support,
    double dependent,
    double cancelled,
):
    """Return what additions, removals and exchanges do to RSS; None where columns of the support depend on others."""
    cdef int n = <int>A.shape[0], d = <int>A.shape[1], k = <int>support.shape[0], size = BLOCK * k, info = 0
    cdef Py_ssize_t i, j, l
    cdef double limit = dependent * dependent, h, norm, room_left, correlated, value
    cdef char upper = b"U", plain = b"N", transposed = b"T", left_side = b"L"
    if k > n:
        return None
    added, removed, exchanged = np.empty(d), np.empty(k), np.empty((k, d))
    cdef double[::1] additions = added, removals = removed
    cdef double[:, ::1] exchanges = exchanged
    cdef double[::1] work = np.empty(n * k + k + BLOCK * k + k * k + k * d + 3 * n + 2 * k + 2 * d)
    cdef char[::1] candidate = np.ones(d, dtype=np.int8)
    cdef double *q = &work[0]
    cdef double *scales = q + n * k
    cdef double *room = scales + k
    cdef double *inverse = room + BLOCK * k
    cdef double *loads = inverse + k * k  # Qᵀa_j, (k, d), and then those of the directions u_i
    cdef double *residual = loads + k * d
    cdef double *left = residual + n
    cdef double *kept = left + n
    cdef double *heights = kept + n
    cdef double *projected = heights + k
    cdef double *outside = projected + k
    cdef double *correlation = outside + d
    with nogil:
        _factored(A, support, q, scales, room)
        for i in range(k):
            if q[i * n + i] ** 2 <= limit * square[support[i]]:
                info = 1
            candidate[support[i]] = 0
            for l in range(k):
                inverse[i * k + l] = q[i * n + l] if l <= i else 0.0
        if info == 0:
            # 1) Q, and what is left of y, made orthogonal twice
            memcpy(residual, &target[0], n * sizeof(double))
            if k:
                dorgqr(&n, &k, &k, q, &n, scales, room, &size, &info)
                dgemv(&transposed, &n, &k, &UNIT, q, &n, residual, &ONE, &ZERO, projected, &ONE)
                dgemv(&plain, &n, &k, &MINUS, q, &n, projected, &ONE, &UNIT, residual, &ONE)
                dgemv(&transposed, &n, &k, &UNIT, q, &n, residual, &ONE, &ZERO, heights, &ONE)
                dgemv(&plain, &n, &k, &MINUS, q, &n, heights, &ONE, &UNIT, residual, &ONE)
                dgemm(
                    &transposed, &plain, &k, &d, &n, &UNIT, q, &n, <double *>&A[0, 0], &n, &ZERO, loads, &k
                )
            dgemv(&transposed, &n, &d, &UNIT, <double *>&A[0, 0], &n, residual, &ONE, &ZERO, correlation, &ONE)
            # 2) what is left of every column, formed where the difference of squares has lost its digits
            for j in range(d):
                if not square[j] > 0:
                    candidate[j] = 0
                outside[j] = square[j]
                for i in range(k):
                    outside[j] -= loads[j * k + i] * loads[j * k + i]
                if candidate[j] and outside[j] < cancelled * square[j]:
                    memcpy(left, &A[0, j], n * sizeof(double))
                    dgemv(&plain, &n, &k, &MINUS, q, &n, loads + j * k, &ONE, &UNIT, left, &ONE)
                    outside[j] = ddot(&n, left, &ONE, left, &ONE)
                    correlation[j] = ddot(&n, residual, &ONE, left, &ONE)
                if candidate[j] and outside[j] > limit * square[j]:
                    additions[j] = -correlation[j] * correlation[j] / outside[j]
                else:
                    additions[j] = INFINITY
                    outside[j] = 0.0
            # 3) u_i = Q R⁻ᵀe_i, of norm one
            if k:
                dtrtri(&upper, &plain, &k, inverse, &k, &info)
                for i in range(k):
                    norm = h = 0.0
                    for l in range(i, k):
                        norm += inverse[l * k + i] * inverse[l * k + i]
                        h += inverse[l * k + i] * projected[l]
                    norm = sqrt(norm)
                    for l in range(i, k):
                        inverse[l * k + i] /= norm
                    heights[i] = h / norm
                    removals[i] = heights[i] * heights[i]
                dtrmm(&left_side, &upper, &plain, &plain, &k, &d, &UNIT, inverse, &k, loads, &k)
            # 4) exchanges
            for j in range(d):
                for i in range(k):
                    room_left = outside[j] + loads[j * k + i] * loads[j * k + i]
                    value = INFINITY
                    if candidate[j] and room_left > limit * square[j]:
                        correlated = correlation[j] + heights[i] * loads[j * k + i]
                        value = removals[i] - correlated * correlated / room_left
                    exchanges[i, j] = value
    return None if info else (added, removed, exchanged)


def leaving(double[:, ::1] rows, const double[::1] loads):
    """Return the order in which columns go, until one is left, and what each adds to RSS; the rows are used up."""
    cdef int k = <int>rows.shape[0], p = <int>rows.shape[1]
    order, added = np.empty(max(k - 1, 0), dtype=np.intp), np.empty(max(k - 1, 0))
    cdef Py_ssize_t[::1] gone = order
    cdef double[::1] costs = added
    cdef Py_ssize_t[::1] places = np.arange(k)
    cdef double[::1] direction = np.empty(p)
    cdef Py_ssize_t left, i, j, best
    cdef double square, height, cost, least, best_square, share
    with nogil:
        for left in range(k, 1, -1):
            least, best, best_square = INFINITY, 0, TINY
            for i in range(left):
                square = height = 0.0
                for j in range(p):
                    square += rows[i, j] * rows[i, j]
                    height += rows[i, j] * loads[j]
                square = max(square, TINY)
                cost = height * height / square
                if cost < least:
                    least, best, best_square = cost, i, square
            gone[k - left], costs[k - left] = places[best], least
            for j in range(p):
                direction[j] = rows[best, j] / sqrt(best_square)
                rows[best, j] = rows[left - 1, j]
            places[best] = places[left - 1]
            for i in range(left - 1):
                share = 0.0
                for j in range(p):
                    share += rows[i, j] * direction[j]
                for j in range(p):
                    rows[i, j] -= share * direction[j]
    return order, added


cdef double power_of_two(double size) noexcept nogil:
    """Return the power of two just above a size."""
    cdef int exponent = 0
    frexp(size, &exponent)
    return ldexp(1.0, exponent)


def normalised(const double[:, :] rows, const double[:, :] outside, const double[::1, :] basis, double share):
    """Return columns less what flat ones explain, squares outside, and units (`normalised` of `compression`)."""
    cdef int m = <int>rows.shape[0], d = <int>rows.shape[1], p = <int>basis.shape[1], i, j, l, times
    cdef double largest, coarse, fine, value, raw, left
    matrix, squares, units = np.zeros((m, d), order="F"), np.zeros(d), np.empty(d)
    cdef double[::1, :] out = matrix
    cdef double[::1] rest = squares, unit = units, along = np.empty(p)
    cdef double *own
    with nogil:
        for j in range(d):
            largest = 0.0
            for i in range(m):
                largest = max(largest, fabs(rows[i, j]))
            for i in range(outside.shape[0]):
                largest = max(largest, fabs(outside[i, j]))
            coarse = max(power_of_two(largest), TINY)
            unit[j] = coarse
            if m:
                own = &out[0, j]
            for i in range(m):
                own[i] = rows[i, j] / coarse
            for i in range(outside.shape[0]):
                value = outside[i, j] / coarse
                rest[j] += value * value
            raw = left = ddot(&m, own, &ONE, own, &ONE) if m else 0.0
            if p:
                for times in range(2):  # once leaves rounding error of the size of what was removed
                    for l in range(p):
                        along[l] = ddot(&m, &basis[0, l], &ONE, own, &ONE)
                    for l in range(p):
                        for i in range(m):
                            own[i] -= along[l] * basis[i, l]
                left = ddot(&m, own, &ONE, own, &ONE)
            fine = power_of_two(sqrt(left + rest[j])) if left + rest[j] > share * share * (raw + rest[j]) else INFINITY
            for i in range(m):
                own[i] /= fine
            rest[j] /= fine * fine
            if fine < INFINITY:
                unit[j] *= fine
    return matrix, squares, units


def eliminated(double[::1] mean, double[:, ::1] covariance, const double[::1] threshold, bint every):
    """Return which columns go and what each costs (`_eliminated` of `methods.thresholds`); mean and Σ are used up."""
    cdef Py_ssize_t k = mean.shape[0], n, i, j, best
    cdef double share, most
    order, statistic = np.empty(k, dtype=np.intp), np.full(k, np.inf)
    cdef Py_ssize_t[::1] gone = order
    cdef double[::1] cost = statistic
    cdef char[::1] alive = np.ones(k, dtype=np.int8)
    with nogil:
        for n in range(k + 1):
            best, most = -1, -INFINITY
            for i in range(k):
                if not alive[i]:
                    continue
                cost[i] = 0.5 * (mean[i] * mean[i]) / covariance[i, i] if covariance[i, i] > 0 else INFINITY
                if covariance[i, i] > 0 and threshold[i] - cost[i] > most:
                    best, most = i, threshold[i] - cost[i]
            if best < 0 or not (every or threshold[best] > cost[best]):
                break
            gone[n], alive[best] = best, False
            for i in range(k):
                if alive[i]:
                    share = covariance[i, best] / covariance[best, best]
                    mean[i] -= share * mean[best]
                    for j in range(k):
                        covariance[i, j] -= share * covariance[best, j]
    return order[:n], statistic


def longer(
    const double[:, ::1] gram,
    const double[::1] correlations,
    const double[::1] norms,
    const Py_ssize_t[:, ::1] subsets,
    double least,
):
    """Return what every column more lowers RSS by, of every subset; −inf where nothing is left of it."""
    cdef Py_ssize_t n = subsets.shape[0], s = subsets.shape[1], d = gram.shape[1], i, j, l, m
    out, more = np.empty((n, d)), np.empty((s, d))
    cdef double[:, ::1] gains = out
    cdef double[:, ::1] solved = more  # L⁻¹G_Sj, row by row
    cdef double[::1] room = np.empty(d), left = np.empty(d)
    cdef double[:, ::1] root = np.empty((s, s))
    cdef double[::1] goals = np.empty(s)  # L⁻¹c_S
    cdef double value, goal
    with nogil:
        for i in range(n):
            for j in range(d):
                room[j], left[j] = norms[j], correlations[j]
            for l in range(s):
                for m in range(l + 1):
                    value = gram[subsets[i, l], subsets[i, m]]
                    for j in range(m):
                        value -= root[l, j] * root[m, j]
                    root[l, m] = value / root[m, m] if m < l else sqrt(max(value, TINY))
                for j in range(d):
                    solved[l, j] = gram[subsets[i, l], j]
                for m in range(l):
                    value = root[l, m]
                    for j in range(d):
                        solved[l, j] -= value * solved[m, j]
                goal = correlations[subsets[i, l]]
                for m in range(l):
                    goal -= root[l, m] * goals[m]
                goals[l] = goal = goal / root[l, l]
                for j in range(d):
                    solved[l, j] /= root[l, l]
                    room[j] -= solved[l, j] * solved[l, j]
                    left[j] -= goal * solved[l, j]
            for j in range(d):
                gains[i, j] = left[j] * left[j] / room[j] if room[j] > least else -INFINITY
            for l in range(s):
                gains[i, subsets[i, l]] = -INFINITY
    return out
