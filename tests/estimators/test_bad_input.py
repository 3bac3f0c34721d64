"""What cannot be fitted is refused, with a message that says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, CollapseWarning, SparseARD
from ardea.priors import CappedLinear
from conftest import FAMILY, sparse_data

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y
STRENGTHS = ((ARDvi, "alpha"), (ARDr, "lam"), (MSTSBL, "tau"), (LSTSBL, "tau"), (MAPSTSBL, "tau"))


def spoiled(array, value):
    """Return a copy with one entry replaced."""
    array = array.copy()
    array.flat[3] = value
    return array


def refuses(model, X, y, match, **arguments):
    """Both ways in refuse, and leave no half-fitted model behind."""
    for method in ("fit", "partial_fit"):
        fresh = clone(model)
        with pytest.raises(ValueError, match=match):
            getattr(fresh, method)(X, y, **arguments)
        with pytest.raises((NotFittedError, AttributeError)):
            fresh.coef_  # noqa: B018


# Data -----------------------------------------------------------------------------------------------------------------

BAD_DATA = {
    "NaN in X": (spoiled(X, np.nan), Y, "NaN"),
    "infinity in X": (spoiled(X, np.inf), Y, "infinity"),
    "NaN in y": (X, spoiled(Y, np.nan), "NaN"),
    "infinity in y": (X, spoiled(Y, -np.inf), "infinity"),
    "NaN in sparse X": (sparse.csr_array(spoiled(X, np.nan)), Y, "NaN"),
    "fewer targets than rows": (X, Y[:-1], "inconsistent numbers of samples"),
    "no rows": (X[:0], Y[:0], "0 sample"),
    "no columns": (X[:, :0], Y, "0 feature"),
    "one-dimensional X": (Y, Y, "Reshape your data"),
    "three-dimensional X": (X[:, :, None], Y, "dim 3"),
    "text in X": (X.astype(str).astype(object) + "a", Y, "could not convert string|convert"),
    "text in y": (X, np.array(["a"] * 20), "could not convert string|convert|numeric"),
    "complex X": (X + 1j, Y, "Complex data not supported"),
    "complex y": (X, Y + 1j, "Complex data not supported"),
    "no y": (X, None, "requires y"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(estimator, case):
    bad_X, bad_y, match = BAD_DATA[case]
    refuses(estimator, bad_X, bad_y, match)


BAD_WEIGHTS = {
    "negative": (spoiled(np.ones(20), -1.0), "[Nn]egative"),
    "all zero": (np.zeros(20), "at least one"),
    "NaN": (spoiled(np.ones(20), np.nan), "NaN"),
    "infinite": (spoiled(np.ones(20), np.inf), "infinity"),
    "too few": (np.ones(19), "shape"),
    "two-dimensional": (np.ones((20, 2)), "1D"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(estimator, case):
    weight, match = BAD_WEIGHTS[case]
    refuses(estimator, X, Y, match, sample_weight=weight)


# Strengths ------------------------------------------------------------------------------------------------------------

BAD_STRENGTHS = {
    "negative": (-1.0, "not negative"),
    "NaN": (np.nan, "finite"),
    "text": ("strong", "not known.*'calibrated'"),
    "None": (None, "not a number.*'calibrated'"),
    "True": (True, "not a number.*'calibrated'"),
    "complex": (1j, "not a number.*'calibrated'"),
    "too few": (np.ones(3), r"shape \(3,\).*4 columns.*one per column"),
    "too many": ([1.0] * 5, r"shape \(5,\).*4 columns"),
    "a column of them": (np.ones((4, 1)), r"shape \(4, 1\).*4 columns"),
    "one negative": ([1.0, 1.0, -1.0, 1.0], "not negative"),
    "one NaN": ([1.0, 1.0, np.nan, 1.0], "finite"),
    "ragged": ([1.0, [2.0]], "not a number.*'calibrated'"),
    "list of text": (["1", "2", "3", "4"], "not a number.*'calibrated'"),
}


@pytest.mark.parametrize(("kind", "name"), STRENGTHS)
@pytest.mark.parametrize("case", BAD_STRENGTHS)
def test_bad_strength(kind, name, case):
    value, match = BAD_STRENGTHS[case]
    with pytest.raises(ValueError, match=rf"{name}.*{match}"):
        kind(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(("kind", "name"), STRENGTHS)
def test_bad_strength_in_a_stream(kind, name):
    """At the latest when the model is asked for."""
    with pytest.raises(ValueError, match=f"{name}.*not negative"):
        kind(**{name: -1.0}).partial_fit(X, Y).predict(X)


@pytest.mark.parametrize(("kind", "name"), [pair for pair in STRENGTHS if pair[0] is not LSTSBL])
def test_infinite_strength(kind, name):
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        kind(**{name: np.inf}).fit(X, Y)


def test_no_inflation_at_all():
    with pytest.raises(ValueError, match="alpha must be above zero"):
        ARDvi(alpha=0.0).fit(X, Y)


@pytest.mark.parametrize("eta", [-1.0, 0.0, np.nan, "wide", "calibrated", np.ones(3)])
def test_bad_width_of_the_prior(eta):
    with pytest.raises(ValueError, match="eta"):
        ARDr(lam=1.0, eta=eta).fit(X, Y)


@pytest.mark.parametrize("prior", ["flat", 3.0, CappedLinear, lambda gamma: gamma])
def test_unknown_prior(prior):
    with pytest.raises(ValueError, match=r"prior=.*is not a prior.*ardea\.priors"):
        ARDr(prior=prior).fit(X, Y)


@pytest.mark.parametrize("search", ["exhaustive", "", None, 3, "Diagonal"])
def test_unknown_search(search):
    with pytest.raises(ValueError, match=r"search=.*is not known.*'forward-backward'"):
        MAPSTSBL(search=search).fit(X, Y)


# Other parameters -----------------------------------------------------------------------------------------------------

NOT_POSITIVE = (0, -1.0, np.nan, np.inf, "1", None, True, [1.0], 1j)


@pytest.mark.parametrize("name", ["false_terms", "tol", "max_iter", "noise_variance"])
@pytest.mark.parametrize("value", NOT_POSITIVE, ids=repr)
def test_bad_number(estimator, name, value):
    unused = name not in estimator.get_params()
    if unused or (name == "noise_variance" and value is None):  # None: learn it
        estimator = ARDvi()
        name = "tol"
    refuses(estimator.set_params(**{name: value}), X, Y, f"{name} must be a .* number above zero")


@pytest.mark.parametrize("value", [2.5, 1e3])
def test_steps_are_counted_in_whole_numbers(estimator, value):
    refuses(estimator.set_params(max_iter=value), X, Y, "max_iter must be a whole number above zero")


@pytest.mark.parametrize("value", [None, "yes", 1, 0.0])
def test_intercept_is_yes_or_no(estimator, value):
    refuses(estimator.set_params(fit_intercept=value), X, Y, "fit_intercept must be True or False")


BAD_KEEP = {
    "unknown name": (["z"], "'z'.*no column names"),
    "beyond the last": ([4], "4 columns, numbered from 0"),
    "before the first": ([-5], "4 columns, numbered from 0"),
    "short mask": ([True, False], "mask.*4 columns"),
    "fraction": ([1.5], "always_keep"),
    "a number with a point": (1.0, "always_keep.*column numbers, names or a boolean mask"),
    "None inside": ([None], "always_keep"),
    "a number with a fraction": (1.5, "always_keep.*column numbers, names or a boolean mask"),
}


@pytest.mark.parametrize("case", BAD_KEEP)
def test_bad_columns_to_keep(estimator, case):
    value, match = BAD_KEEP[case]
    with pytest.raises(ValueError, match=match):
        estimator.set_params(always_keep=value).fit(X, Y)


def test_unknown_name_to_keep_lists_the_known_ones(estimator):
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"'z'.*a, b, c, d"):
        estimator.set_params(always_keep=["z"]).fit(frame, Y)


@pytest.mark.parametrize("kept", [9, 12])
def test_as_many_kept_columns_as_rows(estimator, kept):
    """They interpolate, so σ² cannot be learned: error bars of 1e-153 without a word are not honest."""
    data = sparse_data(m=10)
    with pytest.raises((ValueError, CollapseWarning), match="rows"):
        estimator.set_params(always_keep=list(range(kept))).fit(data.X, data.y)


# After the fit --------------------------------------------------------------------------------------------------------

BEFORE_FIT = {
    "predict": lambda model: model.predict(X),
    "predict with deviation": lambda model: model.predict(X, return_std=True),
    "credible_interval": lambda model: model.credible_interval(),
    "sample": lambda model: model.sample(),
    "summary": lambda model: model.summary(),
    "get_support": lambda model: model.get_support(),
    "transform": lambda model: model.transform(X),
    "get_feature_names_out": lambda model: model.get_feature_names_out(),
    "score": lambda model: model.score(X, Y),
}


@pytest.mark.parametrize("question", BEFORE_FIT)
def test_questions_before_the_fit(estimator, question):
    with pytest.raises(NotFittedError, match=r"not fitted yet.*fit"):
        BEFORE_FIT[question](estimator)


@pytest.mark.parametrize("kind", FAMILY)
def test_attributes_before_the_fit(kind):
    assert not hasattr(kind(), "coef_")
    with pytest.raises(AttributeError, match=f"This {kind.__name__} is not fitted yet"):
        kind().coef_  # noqa: B018


def test_rows_with_other_columns(estimator):
    model = estimator.fit(X, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(spoiled(X, np.nan), return_std=True)


def test_frame_with_other_names(estimator):
    model = estimator.fit(pd.DataFrame(X, columns=list("abcd")), Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("abce")))


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


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
def test_level_outside_zero_to_one(estimator, level):
    model = estimator.fit(X, Y)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.credible_interval(level)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.summary(level)


@pytest.mark.parametrize("level", ["95%", None])
def test_level_that_is_no_number(estimator, level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        estimator.fit(X, Y).credible_interval(level)


@pytest.mark.parametrize("kind", ["bayes", "", None])
def test_unknown_kind_of_interval(estimator, kind):
    with pytest.raises(ValueError, match=r"kind=.*is not known.*'posterior' or 'refit'"):
        estimator.fit(X, Y).credible_interval(kind=kind)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
def test_bad_number_of_draws(estimator, n):
    with pytest.raises(ValueError, match="n must be a whole number above zero"):
        estimator.fit(X, Y).sample(n)


def test_refused_fit_after_a_good_one_leaves_the_good_one_or_nothing():
    model = SparseARD().fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(spoiled(X, np.nan), Y)
    np.testing.assert_array_equal(model.coef_, before)


def test_strength_of_plain_ard_does_not_exist():
    with pytest.raises(TypeError, match="false_terms"):
        ARD(false_terms=1.0)
