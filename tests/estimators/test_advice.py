"""Warnings tell the truth: exchanges recomputed, ranges exact, silence on the rows fitted, no refuted fit returned."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.linear_model import ARDRegression

import ardea
from ardea import ARD, ARDvi, SparseARD
from ardea.core.compression import ranges_of
from ardea.core.problem import DenseColumns, Problem
from ardea.equation import CLOSE
from ardea.estimators.advice import (
    AlternativesWarning,
    CollapseWarning,
    ConstantTargetWarning,
    DuplicateColumnsWarning,
    ExtrapolationWarning,
    FewRowsWarning,
    KnownNoiseWarning,
    TinyNoiseWarning,
    WeakEvidenceWarning,
    alternatives,
    correlations,
)


def twins(seed=0, gap=0.05, rows=80, columns=6, noise=0.5):
    """Return columns of which 1 is nearly 0, and y that depends on 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 1] = X[:, 0] + gap * rng.normal(size=rows)
    return X, X[:, 0] + noise * rng.normal(size=rows)


def rss_of(X, y):
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return residual @ residual


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [None, 0.3])
def test_the_cost_of_an_exchange_is_that_of_two_least_squares_fits(seed, noise):
    X, y = twins(seed, gap=0.2)
    problem, support = Problem(DenseColumns(X), y, 0.0, len(y)), np.array([0, 3, 4])
    pairs = alternatives(problem, support, correlations(problem, support), noise)
    found = {(pair.kept, pair.other): pair.cost for pair in pairs}
    before, after = rss_of(X[:, support], y), rss_of(X[:, [1, 3, 4]], y)
    cost = len(y) * np.log(after / before) if noise is None else (after - before) / noise
    assert set(found) <= {(0, 1)}
    assert ((0, 1) in found) == (cost < CLOSE)
    if found:
        np.testing.assert_allclose(found[0, 1], cost, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_a_dropped_twin_is_named_whatever_its_unit(scale):
    X, y = twins(gap=0.01)
    X[:, 1] *= scale
    with pytest.warns(AlternativesWarning, match="x0 and x1|x1 and x0"):
        SparseARD().fit(X, y)


def test_a_twin_that_the_data_rule_out_is_not_named():
    X, y = twins(gap=0.2, rows=2000, noise=0.1)
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] > 0.95
    assert SparseARD().fit(X, y).support_.tolist() == [True] + [False] * 5


def test_twins_that_are_both_kept_are_named():
    X, y = twins(gap=0.01, rows=200)
    y = y + 100 * (X[:, 1] - X[:, 0])
    with pytest.warns(DuplicateColumnsWarning, match="x0 and x1"):
        model = SparseARD().fit(X, y)
    np.testing.assert_allclose(model.coef_[:2].sum(), 1.0, atol=0.2)


def test_few_rows_are_told_of_unless_the_noise_is_known():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 4))
    y = X @ [1.0, -2.0, 3.0, 0.0] + 0.1 * rng.normal(size=8)
    with pytest.warns(FewRowsWarning, match="degrees of freedom"):
        assert SparseARD(false_terms=0.1).fit(X, y).support_.sum() == 3
    SparseARD(false_terms=0.1, noise_variance=0.01).fit(X, y)


def test_few_rows_are_told_with_the_terms_that_were_kept():
    """The intercept is no term."""
    rng = np.random.default_rng(0)
    with pytest.warns(FewRowsWarning, match="After 0 terms and the intercept 2 degrees of freedom are left"):
        model = SparseARD().fit(rng.normal(size=(3, 2)), np.array([1.0, -1.0, 0.5]))
    assert not model.support_.any()


@pytest.mark.parametrize(
    ("shape", "given"), [((150, 20), 0.01), ((150, 20), 0.1), ((150, 20), 100.0), ((60, 100), 100.0), ((100, 40), 0.01)]
)
def test_a_known_noise_that_the_residuals_contradict_is_told(shape, given):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=shape)
        with pytest.warns(KnownNoiseWarning, match="too small" if given < 1 else "too large"):
            SparseARD(noise_variance=given).fit(X, X[:, 0] + rng.normal(size=shape[0]))


@pytest.mark.parametrize("estimator", [SparseARD, ARD, ARDvi])
@pytest.mark.parametrize("shape", [(20, 5), (150, 20), (60, 100)])
def test_a_known_noise_that_is_right_is_not_told(estimator, shape):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=shape)
        model = estimator(noise_variance=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, 3 * X[:, 0] + rng.normal(size=shape[0]))
        assert not any("contradict noise_variance" in text for text in model.warnings_)


def one_term(t, *, columns=40, rows=60):
    """Orthonormal columns of mean zero, and y with a least-squares statistic of t for the first and of 0 for others."""
    rng = np.random.default_rng(0)
    ones = np.ones((rows, 1))
    Q = np.linalg.qr(np.hstack([ones, rng.normal(size=(rows, columns + 1))]))[0][:, 1:]
    return Q[:, :-1], t * Q[:, 0] + np.sqrt(rows - 2) * Q[:, -1]


@pytest.mark.parametrize("known", [None, 1.0])
def test_terms_that_chance_might_give_are_told_of_and_shrunk(known):
    """To a fifth at the cut, less beyond it, and not at all where chance does as well in one table of 110."""
    cut = np.sqrt(1 + 2 * ardea.rates.strength_for("map", 0.3 / 40, degrees=np.inf if known else 58))
    shares = []
    for t in (1.01 * cut, 1.1 * cut, 1.2 * cut):
        with pytest.warns(WeakEvidenceWarning, match="among 40 columns of noise .* the 1 term kept"):
            model = SparseARD(noise_variance=known).fit(*one_term(t))
        shares.append(model.coef_[0] / (t - 1 / t))
        assert model.noise_variance_ == known if known else model.noise_variance_ > 1
    assert shares == sorted(shares)
    assert 0.22 < shares[0] < 0.26
    model = SparseARD(noise_variance=known).fit(*one_term(1.6 * cut))  # a warning is an error here
    np.testing.assert_allclose(model.coef_[0], 1.6 * cut - 1 / (1.6 * cut), rtol=1e-4)


@pytest.mark.parametrize("shape", [(60, 5), (60, 200)])
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_noise_that_rounding_hides_is_told_of(estimator, shape, noise, scale):
    X, y = measured_with(noise, shape)
    with pytest.warns(TinyNoiseWarning, match=r"up to 1e-08 of its size.*fit the rest"):
        estimator.fit(X, scale * y)
    assert np.sqrt(estimator.noise_variance_) == pytest.approx(1e-8 * scale * y.std(), rel=0.02)


@pytest.mark.parametrize("shape", [(60, 5), (60, 200)])
def test_noise_that_can_be_learned_is_not_told_of(estimator, shape):
    """A warning is an error here. Plain ARD does not learn it where columns are in excess, and says so."""
    for noise in (1e-7, 1e-6):
        held = isinstance(estimator, ARD) and shape[1] > shape[0]
        with pytest.warns(CollapseWarning, match="is held at") if held else nullcontext():
            estimator.fit(*measured_with(noise, shape))
        assert len(estimator.warnings_) == held


def test_noise_held_above_what_the_data_say_is_told_of():
    """With more columns than rows plain ARD would interpolate below 1e-6 of y's mean square; SparseARD goes there."""
    X, y = measured_with(1e-4, (40, 60))
    with pytest.warns(CollapseWarning, match=r"σ² is held at 1e-06 of the mean square of y"):
        held = ARD().fit(X, y)
    assert held.noise_variance_ == pytest.approx(1e-6 * np.var(y) * 40 / 39, rel=1e-6)
    assert SparseARD().fit(X, y).noise_variance_ < 1e-7 * np.var(y)


def test_tiny_noise_that_is_known_is_not_told_of():
    X, y = measured_with(1e-9, (60, 5))
    model = SparseARD(noise_variance=1e-18 * y.var()).fit(X, y)
    assert model.noise_variance_ == pytest.approx(1e-18 * y.var())


def test_the_rest_has_noise_of_its_own():
    """What the warning advises: subtract what is known, and the noise is learned."""
    X, y = measured_with(1e-9, (60, 5))
    model = SparseARD().fit(X, y - 10 - 2 * X[:, 1] + X[:, 3])
    assert np.sqrt(model.noise_variance_) == pytest.approx(1e-9 * y.std(), rel=0.3)


def measured_with(noise, shape):
    """Return columns, and y of two terms with noise of this share of its size."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape)
    signal = 10 + 2 * X[:, 1] - X[:, 3]
    return X, signal + noise * signal.std() * rng.normal(size=len(X))


# Extrapolation

FINITE = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@given(arrays(float, st.tuples(st.integers(0, 70), st.integers(1, 5)), elements=FINITE), st.sampled_from("CFSR"))
@settings(max_examples=60, deadline=None)
def test_ranges_are_least_and_greatest_values(X, layout):
    expected = [X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)]
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "S":
        X = sparse.csr_array(X)
    elif layout == "R":
        X = X[::-1]
    np.testing.assert_array_equal(ranges_of(X), expected)


def test_folded_ranges_are_least_and_greatest_values():
    X = np.random.default_rng(0).normal(size=(3001, 7))
    np.testing.assert_array_equal(ranges_of(X), [X.min(axis=0), X.max(axis=0)])


@pytest.mark.parametrize("degrees", [1, 3])
def test_rows_that_were_fitted_are_never_extrapolation(degrees):
    rng = np.random.default_rng(degrees)
    X = rng.standard_t(degrees, size=(300, 5))
    y = X[:, 2] + rng.normal(size=300)
    SparseARD().fit(X, y).predict(X)


def test_far_rows_are_told_of_with_the_column_and_its_range():
    X, y = twins(gap=1.0)
    model = SparseARD().fit(X, y)
    far = X[:3].copy()
    far[1, 5] = 1e9  # not a term of the model
    model.predict(far)
    far[1, 0] = 50.0
    with pytest.warns(ExtrapolationWarning, match=r"x0 reaches 50, fitted in \[-2"):
        model.predict(far)


def test_streams_dask_and_files_know_the_same_ranges(tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = twins(gap=1.0)
    whole = SparseARD().fit(X, y)
    stream = SparseARD().partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    lazy = SparseARD().fit(da.from_array(X, chunks=(20, 6)), da.from_array(y, chunks=20))
    ardea.save(whole, tmp_path / "model.ardea")
    for model in (stream, lazy, ardea.load(tmp_path / "model.ardea")):
        np.testing.assert_array_equal(model._ranges, [X.min(axis=0), X.max(axis=0)])
        with pytest.warns(ExtrapolationWarning):
            model.predict(100 * X)


# No fit that an F test against all columns refutes


@pytest.mark.parametrize("gap", [1e-2, 1e-4])
@pytest.mark.parametrize("kind", [ARD, ARDvi, SparseARD])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_that_explain_y_by_their_difference_are_found(kind, gap, known):
    for seed in range(5):
        X, _ = twins(seed, gap, rows=100, columns=10)
        y = X[:, 0] + (X[:, 1] - X[:, 0]) / gap + 0.05 * np.random.default_rng(100 + seed).normal(size=100)
        model = kind(noise_variance=0.0025 if known else None).fit(X, y)
        assert model.support_[:2].all()
        assert np.var(y - model.predict(X)) < 0.005
        peer = ARDRegression().fit(X, y)
        assert np.var(y - peer.predict(X)) > 0.1  # what a loop from one start returns


def test_collapse_is_a_convergence_warning():
    assert issubclass(CollapseWarning, ardea.estimators.advice.ConvergenceWarning)


# What was wrong with the data, in words


def framed(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["Temp (°C)", "pH", "flow"])
    return frame.assign(**columns), frame["pH"] + 0.1 * rng.normal(size=30)


def test_categories_are_no_amounts_even_if_they_are_numbers():
    X, y = framed(site=pd.Categorical([1, 2] * 15))
    with pytest.raises(ValueError, match=r"column 'site' of X.*pandas.get_dummies"):
        SparseARD().fit(X, y)
    with pytest.raises(ValueError, match="y holds categories"):
        SparseARD().fit(X.drop(columns="site"), pd.Series(pd.Categorical([1, 2] * 15)))


@pytest.mark.parametrize("strange", ["Anna", pd.Timestamp("2024-01-01")])
def test_columns_that_are_no_numbers_are_named(strange):
    X, y = framed(Operator=strange)
    with pytest.raises(ValueError, match="Not numbers: column 'Operator'"):
        SparseARD().fit(X, y)
    with pytest.raises(ValueError, match="Not numbers: column 'Operator'"):
        SparseARD().fit(polars.from_pandas(X), y)


@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_cells_without_a_number_are_named(value, said):
    X, y = framed()
    X.loc[[4, 9], "pH"] = value
    with pytest.raises(ValueError, match=f"{said} in row 4, column 'pH'; 2 rows have such cells"):
        SparseARD().fit(X, y)
    sound, _ = framed()
    with pytest.raises(ValueError, match=f"{said} in row 4, column 'pH'"):
        SparseARD().fit(sound, y).predict(X)
    y[7] = value
    with pytest.raises(ValueError, match=f"y contains NaN or infinity: {said} in row 7; in this row only"):
        SparseARD().fit(sound, y)


def test_variances_that_overflow_are_refused():
    X, y = framed()
    with pytest.raises(ValueError, match="pH overflows"):
        SparseARD().fit(X * 1e200, y)


def test_a_constant_target_is_told_of():
    X, _ = framed()
    with pytest.warns(ConstantTargetWarning, match="nothing to explain"):
        model = SparseARD().fit(X, np.full(30, 2.5))
    assert model.warnings_ == [
        "y is constant (or varies in its last digits only: subtract a constant from it), or the columns always kept "
        "explain all of it: there is nothing to explain, and no noise "
        "(python -m ardea.explain constant_target)."
    ]
    assert not model.support_.any()


def test_warnings_stay_with_the_model(tmp_path):
    X, y = twins(gap=0.01)
    with pytest.warns(AlternativesWarning) as told:
        model = SparseARD().fit(X, y)
    ardea.save(model, tmp_path / "model.ardea")
    assert ardea.load(tmp_path / "model.ardea").warnings_ == model.warnings_ == [str(told[0].message)]
