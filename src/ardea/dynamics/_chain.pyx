# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of :mod:`ardea.dynamics.chain`, compiled; its NumPy twins hold the maths."""

import numpy as np


def step_blocks(
    const double[:, :, :] J_a, const double[:, :, :] J_m, const double[:, :, :] J_b, const double[:] h
):
    """Return ∂r/∂x_a and ∂r/∂x_b of every step."""
    cdef Py_ssize_t steps = J_m.shape[0], n = J_m.shape[1], i, k, l, m
    before, after = np.empty((steps, n, n)), np.empty((steps, n, n))
    cdef double[:, :, ::1] a = before, b = after
    cdef double to_a, to_b, one
    with nogil:
        for i in range(steps):
            for k in range(n):
                for l in range(n):
                    to_a = to_b = 0.0
                    for m in range(n):
                        to_a += J_m[i, k, m] * J_a[i, m, l]
                        to_b += J_m[i, k, m] * J_b[i, m, l]
                    one = 1.0 if k == l else 0.0
                    a[i, k, l] = -one - h[i] / 6 * (J_a[i, k, l] + 2 * J_m[i, k, l] + h[i] / 2 * to_a)
                    b[i, k, l] = one - h[i] / 6 * (J_b[i, k, l] + 2 * J_m[i, k, l] - h[i] / 2 * to_b)
    return before, after


def pulled(
    const double[:, :, :] before,
    const double[:, :, :] after,
    const double[:, ::1] precisions,
    const double[:, :, ::1] rows,
):
    """Return RᵀQ⁻¹ rows."""
    cdef Py_ssize_t steps = rows.shape[0], n = rows.shape[1], p = rows.shape[2], i, k, l, j
    out = np.zeros((steps + 1, n, p))
    cdef double[:, :, ::1] o = out
    cdef double a, b
    cdef const double *row
    cdef double *first
    cdef double *second
    with nogil:
        for i in range(steps):
            for l in range(n):
                row = &rows[i, l, 0]
                for k in range(n):
                    a = precisions[i, l] * before[i, l, k]
                    b = precisions[i, l] * after[i, l, k]
                    first = &o[i, k, 0]
                    second = &o[i + 1, k, 0]
                    for j in range(p):
                        first[j] += a * row[j]
                        second[j] += b * row[j]
    return out


def hessian(
    const double[:, :, :] before,
    const double[:, :, :] after,
    const double[:, ::1] weights,
    const double[:, ::1] precisions,
):
    """Return H = W + RᵀQ⁻¹R, each row of the result a column of its lower band."""
    cdef Py_ssize_t points = weights.shape[0], n = weights.shape[1], i, k, l, m
    out = np.zeros((points * n, 2 * n))
    cdef double[:, ::1] H = out
    cdef double a, b
    with nogil:
        for i in range(points):
            for l in range(n):
                H[i * n + l, 0] += weights[i, l]
        for i in range(points - 1):
            for k in range(n):
                for l in range(n):
                    a = precisions[i, k] * before[i, k, l]
                    b = precisions[i, k] * after[i, k, l]
                    for m in range(l, n):
                        H[i * n + l, m - l] += a * before[i, k, m]
                        H[i * n + n + l, m - l] += b * after[i, k, m]
                    for m in range(n):
                        H[i * n + l, n + m - l] += a * after[i, k, m]
    return out


def forward(const double[:, ::1] factor, const double[:, ::1] rows, Py_ssize_t solved):
    """Return L⁻¹ rows of the first ones, and what these leave of those after them."""
    cdef Py_ssize_t size = rows.shape[0], p = rows.shape[1], width = factor.shape[1], i, j, k
    out = np.array(rows)
    cdef double[:, ::1] o = out
    cdef double c
    cdef double *own
    cdef double *below
    with nogil:
        for i in range(solved):
            own = &o[i, 0]
            c = 1 / factor[i, 0]
            for j in range(p):
                own[j] *= c
            for k in range(1, min(width, size - i)):
                c = factor[i, k]
                below = &o[i + k, 0]
                for j in range(p):
                    below[j] -= c * own[j]
    return out


def carried_back(const double[:, :, ::1] gain, const double[:, :, ::1] own):
    """Return V_i = own_i + G_iᵀV_{i+1}G_i, from the last to the first."""
    cdef Py_ssize_t steps = gain.shape[0], n = own.shape[1], i, k, l, m
    out, room = np.array(own), np.empty((n, n))
    cdef double[:, :, ::1] V = out
    cdef double[:, ::1] product = room
    cdef double total
    with nogil:
        for i in range(steps - 1, -1, -1):
            for k in range(n):
                for l in range(n):
                    total = 0.0
                    for m in range(n):
                        total += V[i + 1, k, m] * gain[i, m, l]
                    product[k, l] = total
            for k in range(n):
                for l in range(n):
                    total = 0.0
                    for m in range(n):
                        total += gain[i, m, k] * product[m, l]
                    V[i, k, l] += total
    return out
