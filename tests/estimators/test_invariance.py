"""What a change of units, order or memory must not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from conftest import sparse_data

# All of these are free of units: the last three by calibration.
UNIT_FREE = {
    "ARD": ARD(),
    "ARDvi": ARDvi(),
    "ARDvi-4": ARDvi(alpha=4.0),
    "MAPSTSBL": MAPSTSBL(),
    "MAPSTSBL-2": MAPSTSBL(tau=2.0),
    "MAPSTSBL-greedy": MAPSTSBL(search="greedy"),
    "MAPSTSBL-forward-backward": MAPSTSBL(search="forward-backward"),
    "MAPSTSBL-backward": MAPSTSBL(search="backward"),
    "SparseARD": SparseARD(),
    "ARDr": ARDr(),
    "MSTSBL": MSTSBL(),
    "LSTSBL": LSTSBL(),
}
few_examples = settings(max_examples=3, derandomize=True, deadline=None, database=None)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(params=UNIT_FREE, scope="module")
def unit_free(request):
    """An estimator whose result does not depend on units, with a fit to compare with."""
    data = sparse_data(seed=7, d=20, sigma=1.0)
    # Two ways to the same optimum agree as well as both are converged.
    model = clone(UNIT_FREE[request.param]).set_params(tol=1e-10)
    return model, data, clone(model).fit(data.X, data.y)


def assert_equivalent(model, reference, *, columns=1.0, target=1.0, order=slice(None), rtol=1e-7):
    """The fit is the reference in other units (x·columns, y·target) and another order of columns."""
    unit = (target / np.broadcast_to(columns, reference.coef_.shape))[order]
    np.testing.assert_array_equal(model.support_, reference.support_[order])
    size = np.abs(reference.coef_).max()
    np.testing.assert_allclose(model.coef_ / unit, reference.coef_[order], rtol=rtol, atol=rtol * size)
    np.testing.assert_allclose(model.coef_std_ / unit, reference.coef_std_[order], rtol=rtol)
    np.testing.assert_allclose(model.prior_variance_ / unit**2, reference.prior_variance_[order], rtol=100 * rtol)
    assert model.noise_variance_ / target**2 == pytest.approx(reference.noise_variance_, rel=rtol)
    assert model.intercept_ / target == pytest.approx(reference.intercept_, rel=rtol, abs=rtol)


@few_examples
@given(seed=seeds)
def test_column_units(unit_free, seed):
    """Six decades of units: identical support, coefficients in the new units."""
    model, data, reference = unit_free
    scale = 10 ** np.random.default_rng(seed).uniform(-3, 3, data.X.shape[1])
    assert_equivalent(clone(model).fit(data.X * scale, data.y), reference, columns=scale)


@few_examples
@given(seed=seeds)
def test_order_of_columns(unit_free, seed):
    model, data, reference = unit_free
    order = np.random.default_rng(seed).permutation(data.X.shape[1])
    assert_equivalent(clone(model).fit(data.X[:, order], data.y), reference, order=order)


@few_examples
@given(seed=seeds)
def test_signs_of_columns(unit_free, seed):
    model, data, reference = unit_free
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], data.X.shape[1])
    flipped = clone(model).fit(data.X * signs, data.y)
    flipped.coef_std_ = flipped.coef_std_ * signs  # a deviation does not change sign
    assert_equivalent(flipped, reference, columns=signs)


@few_examples
@given(exponent=st.floats(-12, 12), sign=st.sampled_from([-1.0, 1.0]))
def test_unit_of_the_target(unit_free, exponent, sign):
    model, data, reference = unit_free
    target = sign * 10**exponent
    scaled = clone(model).fit(data.X, data.y * target)
    scaled.coef_std_ = scaled.coef_std_ * sign
    assert_equivalent(scaled, reference, target=target)


@few_examples
@given(seed=seeds)
def test_order_of_rows(unit_free, seed):
    model, data, reference = unit_free
    order = np.random.default_rng(seed).permutation(len(data.y))
    assert_equivalent(clone(model).fit(data.X[order], data.y[order]), reference)


@pytest.mark.filterwarnings("ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning")
@few_examples
@given(seed=seeds)
def test_repeated_rows_are_weights(unit_free, seed):
    model, data, _ = unit_free
    weight = 1 + np.random.default_rng(seed).integers(0, 3, len(data.y))
    weighted = clone(model).fit(data.X, data.y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(data.X, weight, axis=0), np.repeat(data.y, weight))
    assert_equivalent(weighted, repeated)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-9)


@few_examples
@given(shift=st.floats(-100, 100), seed=seeds)
def test_origin_of_columns_and_target(unit_free, shift, seed):
    """With an intercept, constants added to columns and target only move the intercept."""
    model, data, reference = unit_free
    offset = 10 * np.random.default_rng(seed).normal(size=data.X.shape[1])
    moved = clone(model).fit(data.X + offset, data.y + shift)
    expected = reference.intercept_ + shift - offset @ reference.coef_
    assert moved.intercept_ == pytest.approx(expected, rel=1e-7, abs=1e-7)
    moved.intercept_ = reference.intercept_
    assert_equivalent(moved, reference)


@few_examples
@given(seed=seeds)
def test_rotation_of_rows_without_intercept(unit_free, seed):
    """Gaussian noise has no preferred direction: only XᵀX, Xᵀy, ‖y‖² and m matter."""
    model, data, _ = unit_free
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(data.y),) * 2))[0]
    model = clone(model).set_params(fit_intercept=False)
    reference = clone(model).fit(data.X, data.y)
    assert_equivalent(clone(model).fit(rotation @ data.X, rotation @ data.y), reference)


# Strengths with a unit follow the unit --------------------------------------------------------------------------------

# The power of a column's scale s by which its strength changes: |ξ| ~ 1/s, density of ξ ~ s, λγ with γ ~ 1/s².
WITH_UNITS = {
    "MSTSBL": (lambda s: MSTSBL(tau=0.3 * s), -1),
    "LSTSBL": (lambda s: LSTSBL(tau=0.1 * s), 1),
    "ARDr": (lambda s: ARDr(lam=3.0 * s), 2),
}


@pytest.mark.parametrize("name", WITH_UNITS)
@few_examples
@given(seed=seeds)
def test_strength_in_the_units_of_each_column(name, seed):
    build, power = WITH_UNITS[name]
    data = sparse_data(seed=7, d=20, sigma=1.0)
    scale = 10 ** np.random.default_rng(seed).uniform(-3, 3, 20)
    reference = build(np.ones(20)).fit(data.X, data.y)
    assert 0 < reference.support_.sum() < 20
    assert_equivalent(build(scale**power).fit(data.X * scale, data.y), reference, columns=scale)


@pytest.mark.parametrize("name", WITH_UNITS)
@pytest.mark.parametrize("target", [1e-6, 1e5])
def test_strength_in_the_unit_of_the_target(name, target):
    build, power = WITH_UNITS[name]
    data = sparse_data(seed=7, d=20, sigma=1.0)
    reference = build(1.0).fit(data.X, data.y)
    assert_equivalent(build(target**-power).fit(data.X, data.y * target), reference, target=target)


def test_cap_in_the_units_of_gamma():
    data, target = sparse_data(seed=7, d=20, sigma=1.0), 1e4
    reference = ARDr(lam=3.0, eta=0.5).fit(data.X, data.y)
    assert_equivalent(ARDr(lam=3e-8, eta=0.5e8).fit(data.X, data.y * target), reference, target=target)


def test_magnitude_threshold_depends_on_units_by_design():
    """The contrast to the tests above: one τ for all columns is not free of units."""
    data = sparse_data(seed=7, d=20, sigma=1.0)
    reference = MSTSBL(tau=0.3).fit(data.X, data.y)
    scaled = MSTSBL(tau=0.3).fit(data.X * 10 ** np.random.default_rng(0).uniform(-3, 3, 20), data.y)
    assert (scaled.support_ != reference.support_).any()


# Memory ---------------------------------------------------------------------------------------------------------------


def test_data_are_left_alone(estimator):
    data = sparse_data()
    X, y, weight = data.X.copy(), data.y.copy(), np.linspace(0, 2, len(data.y))
    kept_weight = weight.copy()
    for array in (X, y, weight):
        array.setflags(write=False)
    estimator.fit(X, y, sample_weight=weight).predict(X, return_std=True)
    clone(estimator).partial_fit(X, y, sample_weight=weight).predict(X)
    for array, before in ((X, data.X), (y, data.y), (weight, kept_weight)):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(
    "layout",
    [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], lambda X: X[::-1].copy()[::-1], np.ndarray.tolist],
    ids=["fortran", "strided", "reversed", "lists"],
)
def test_memory_layout(estimator, layout):
    data = sparse_data()
    reference = clone(estimator).fit(data.X, data.y)
    assert_equivalent(estimator.fit(layout(data.X), layout(data.y)), reference, rtol=1e-9)


def test_single_precision_equals_double_precision_of_the_same_numbers(estimator):
    data = sparse_data()
    X, y = data.X.astype(np.float32), data.y.astype(np.float32)
    reference = clone(estimator).fit(X.astype(float), y.astype(float))
    model = estimator.fit(X, y)
    assert model.coef_.dtype == np.float32
    assert_equivalent(model, reference, rtol=1e-6)
    for name in ("noise_variance_", "log_evidence_", "covariance_", "prior_variance_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(reference, name))
    np.testing.assert_allclose(model.predict(X), reference.predict(X.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool])
def test_whole_numbers_equal_the_same_numbers_as_floats(estimator, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 8)).astype(dtype)
    y = 3 * X[:, 1].astype(int) - 2 * X[:, 5].astype(int) + rng.integers(0, 2, 60)
    assert_equivalent(clone(estimator).fit(X, y), clone(estimator).fit(X.astype(float), y.astype(float)), rtol=1e-12)


def test_same_result_twice_and_after_other_data(estimator):
    data, other = sparse_data(), sparse_data(seed=9, d=5)
    first = clone(estimator).fit(data.X, data.y)
    again = estimator.fit(other.X, np.column_stack([other.y, other.y])).fit(data.X, data.y)
    for name in ("coef_", "prior_variance_", "covariance_", "trace_"):
        one, two = getattr(first, name), getattr(again, name)
        np.testing.assert_array_equal(*((t.cost for t in (one, two)) if name == "trace_" else (one, two)))
    assert (first.noise_variance_, first.n_iter_) == (again.noise_variance_, again.n_iter_)
