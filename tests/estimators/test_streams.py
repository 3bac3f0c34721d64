"""Blocks of rows, one after another, give what all rows together give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi
from conftest import (
    assert_same_fit,
    sparse_columns,
    sparse_data,
    two_targets,
    wide,
)

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y


STRENGTHS = ((ARDvi, "alpha"), (ARDr, "lam"), (MSTSBL, "tau"), (LSTSBL, "tau"), (MAPSTSBL, "tau"))


def streamed(model, X, y, cuts, weight=None):
    """Feed the rows in blocks that end at `cuts`."""
    parts = np.split(np.arange(len(y)), cuts)
    for rows in parts:
        model.partial_fit(X[rows], y[rows], sample_weight=None if weight is None else weight[rows])
    return model


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.SuspectDataWarning")  # weights that are no counts
@pytest.mark.parametrize(
    ("cuts", "intercept", "weighted"),
    [([40], False, False), ([1, 2, 3, 50], True, False), ([1, 2, 3, 50], False, True), (range(1, 80), True, True)],
    ids=["halves", "uneven with intercept", "uneven with weights", "single rows with both"],
)
def test_stream_equals_fit(estimator, intercept, weighted, cuts):
    X, Y = two_targets()
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y)) if weighted else None
    estimator.set_params(fit_intercept=intercept)
    whole = clone(estimator).fit(X, Y, sample_weight=weight)
    assert_same_fit(streamed(clone(estimator), X, Y, cuts, weight), whole)


def test_stream_of_one_target_equals_fit(estimator):
    data = sparse_data()
    whole = clone(estimator).set_params(always_keep=[3]).fit(data.X, data.y)
    assert_same_fit(streamed(estimator.set_params(always_keep=[3]), data.X, data.y, [10, 11, 60]), whole)


def test_stream_of_sparse_blocks_equals_fit(estimator):
    X, y = sparse_columns(100, 20)
    model = estimator.partial_fit(sparse.csr_array(X[:30]), y[:30]).partial_fit(sparse.csr_array(X[30:]), y[30:])
    assert_same_fit(model, clone(estimator).fit(X, y))


def test_stream_is_usable_after_every_block(estimator):
    data = sparse_data()
    model = clone(estimator)
    for start in range(0, 80, 20):
        rows = slice(start, start + 20)
        model.partial_fit(data.X[rows], data.y[rows])
        so_far = clone(estimator).fit(data.X[: start + 20], data.y[: start + 20])
        assert_same_fit(model, so_far)
        np.testing.assert_allclose(model.predict(data.X), so_far.predict(data.X), rtol=1e-7)
        assert model.get_support().sum() == so_far.support_.sum()


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AdviceWarning")
@pytest.mark.filterwarnings("ignore::ardea.CollapseWarning")
def test_stream_is_usable_from_the_first_row(estimator):
    data = sparse_data(d=5)
    model = clone(estimator)
    for row in range(12):
        model.partial_fit(data.X[[row]], data.y[[row]])
        assert np.isfinite(model.predict(data.X, return_std=True)).all()
    assert_same_fit(model, clone(estimator).fit(data.X[:12], data.y[:12]))


def test_stream_after_fit_warns_and_begins_anew(estimator):
    data = sparse_data()
    model = clone(estimator).fit(data.X, data.y)
    with pytest.warns(UserWarning, match="new stream.*partial_fit"):
        model.partial_fit(data.X[:50], data.y[:50])
    assert_same_fit(model, clone(estimator).fit(data.X[:50], data.y[:50]))


def test_fit_after_a_stream_forgets_it(estimator):
    data = sparse_data()
    model = clone(estimator).partial_fit(data.X[:40], data.y[:40]).fit(data.X[40:], data.y[40:])
    assert_same_fit(model, clone(estimator).fit(data.X[40:], data.y[40:]), rtol=0)


def test_blocks_of_other_shape(estimator):
    model = estimator.partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(ValueError, match="targets"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    np.testing.assert_array_equal(model.coef_, clone(estimator).partial_fit(X, Y).coef_)  # the stream is unharmed


def test_block_of_a_table_with_one_target_into_a_stream_of_vectors(estimator):
    """(n, 1) after (n,): the same numbers, and the shape of the result stays that of the first block."""
    model = estimator.partial_fit(X[:10], Y[:10]).partial_fit(X[10:], Y[10:, None])
    np.testing.assert_allclose(model.coef_, clone(estimator).fit(X, Y).coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("kind", "name"), STRENGTHS)
def test_bad_strength_in_a_stream(kind, name):
    """At the latest when the model is asked for."""
    with pytest.raises(ValueError, match=f"{name}.*not negative"):
        kind(**{name: -1.0}).partial_fit(X, Y).predict(X)


def test_a_failed_fit_leaves_a_stream_alone():
    X, y = wide(0.5, m=60, d=5)
    stream = ARD().partial_fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(X * np.nan, y)
    np.testing.assert_allclose(stream.coef_, ARD().fit(X, y).coef_, rtol=1e-8)


def test_bad_columns_to_keep_are_refused_by_the_first_block():
    X, y = wide(0.5, m=60, d=5)
    with pytest.raises(ValueError, match="no column names"):
        ARD(always_keep=["nope"]).partial_fit(X, y)
