"""What may be passed as X, y and weights, and what is refused: arrays, frames, sparse matrices, unsound numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import ardea
from ardea import ARD, ARDSearch, CollapseWarning, Operator, SparseARD
from ardea.estimators.advice import SuspectDataWarning
from conftest import (
    assert_same_fit,
    assert_same_moments,
    sparse_columns,
    sparse_data,
    spoiled,
    wide,
)

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y
# Rows that are repeated on purpose are told.
COPIES = "ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning"


def refuses(model, X, y, match, **arguments):
    """Both ways in refuse, and leave no half-fitted model behind."""
    for method in ("fit", "partial_fit"):
        fresh = clone(model)
        with pytest.raises(ValueError, match=match):
            getattr(fresh, method)(X, y, **arguments)
        with pytest.raises((NotFittedError, AttributeError)):
            fresh.coef_  # noqa: B018


BAD_DATA = {
    "NaN in X": (spoiled(X, np.nan), Y, "NaN"),
    "infinity in X": (spoiled(X, np.inf), Y, "infinity"),
    "NaN in y": (X, spoiled(Y, np.nan), "NaN"),
    "infinity in y": (X, spoiled(Y, -np.inf), "infinity"),
    "sparse y": (X, sparse.csr_matrix(np.ones((20, 1))), r"y\.toarray\(\)"),
    "NaN in sparse X": (sparse.csr_array(spoiled(X, np.nan)), Y, "NaN"),
    "fewer targets than rows": (X, Y[:-1], "inconsistent numbers of samples"),
    "no rows": (X[:0], Y[:0], "0 sample"),
    "no columns": (X[:, :0], Y, "0 feature"),
    "one-dimensional X": (Y, Y, "Reshape your data"),
    "three-dimensional X": (X[:, :, None], Y, "dim 3"),
    "text in X": (X.astype(str).astype(object) + "a", Y, "X holds text: .*a. in row 0"),
    "text in y": (X, np.array(["a"] * 20), "y holds text: .a. in row 0"),
    "complex X": (X + 1j, Y, "Complex data not supported"),
    "complex y": (X, Y + 1j, "Complex data not supported"),
    "no y": (X, None, "requires y"),
    "None in y": (X, [*Y[:3], None, *Y[4:]], "NaN in row 3"),
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


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_names(estimator, frame):
    data = sparse_data()
    names = [f"term {j}" for j in range(data.X.shape[1])]
    model = estimator.fit(frame(dict(zip(names, data.X.T, strict=True))), data.y)
    plain = clone(estimator).fit(data.X, data.y)
    assert_same_fit(model, plain)
    assert list(model.feature_names_in_) == names
    kept = [name for name, keep in zip(names, model.support_, strict=True) if keep]
    assert list(model.get_feature_names_out()) == kept
    assert model.summary().columns["term"] == kept
    assert all(name in str(model.summary()) for name in kept)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_can_be_predicted_and_transformed(estimator, frame):
    data = sparse_data()
    names = [f"t{j}" for j in range(data.X.shape[1])]
    X = frame(dict(zip(names, data.X.T, strict=True)))
    model = estimator.fit(X, data.y)
    plain = clone(estimator).fit(data.X, data.y)
    assert_same_moments(model.predict(X, return_std=True), plain.predict(data.X, return_std=True))
    np.testing.assert_array_equal(np.asarray(model.transform(X)), data.X[:, model.support_])


def test_series_target_is_one_target(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, pd.Series(data.y))
    np.testing.assert_array_equal(model.coef_, clone(estimator).fit(data.X, data.y).coef_)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize("shape", [(100, 30), (60, 150)])
@pytest.mark.parametrize("keep", [None, [0, 4]])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_matrix_equals_dense(container, shape, keep, intercept):
    X, y = sparse_columns(*shape)
    model = SparseARD(always_keep=keep, fit_intercept=intercept)
    dense, thin = clone(model).fit(X, y), clone(model).fit(container(X), y)
    assert_same_fit(thin, dense)
    assert_same_moments(thin.predict(container(X), return_std=True), dense.predict(X, return_std=True))


def test_beyond_the_column_limit_all_ways_in_agree():
    """Above 5,000 columns rows are kept as they are: array, sparse matrix, stream."""
    X, y = sparse_columns(60, 5100)
    model = SparseARD().fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), [1, 4])
    assert_same_fit(SparseARD().fit(sparse.csr_array(X), y), model)
    assert_same_fit(SparseARD().partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]), model)


@pytest.mark.parametrize("shape", [(100, 30), (60, 150)])
def test_sparse_matrix_with_weights_and_targets_equals_dense(estimator, shape):
    X, y = sparse_columns(*shape)
    Y = np.column_stack([y, y - X[:, 7]])
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    estimator.set_params(noise_variance=0.04)  # for d > m plain ARD cannot learn it
    dense = clone(estimator).fit(X, Y, sample_weight=weight)
    thin = clone(estimator).fit(sparse.csr_array(X), Y, sample_weight=weight)
    assert_same_fit(thin, dense)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning", COPIES)
@pytest.mark.parametrize("keep", [None, [1]])
def test_integer_weights_are_repeated_rows(estimator, keep):
    data = sparse_data()
    weight = np.random.default_rng(0).integers(0, 4, len(data.y))
    estimator.set_params(always_keep=keep)
    weighted = clone(estimator).fit(data.X, data.y, sample_weight=weight)
    repeated = clone(estimator).fit(np.repeat(data.X, weight, axis=0), np.repeat(data.y, weight))
    assert_same_fit(weighted, repeated)
    new = 5 * data.X + 3
    assert_same_moments(weighted.predict(new, return_std=True), repeated.predict(new, return_std=True))
    interval = [m.credible_interval(kind="refit") for m in (weighted, repeated)]
    np.testing.assert_allclose(*interval, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::ardea.CollapseWarning", "ignore::sklearn.exceptions.ConvergenceWarning", COPIES)
def test_weights_are_repeated_rows_where_columns_are_between_rows_and_weights(estimator):
    """30 rows, 40 columns, about 60 counted rows: rows that differ decide over a collapse, however they are given."""
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(30, 40)), rng.integers(1, 4, 30)
    y = 3 * X[:, 0] + rng.normal(size=30)
    weighted = clone(estimator).fit(X, y, sample_weight=weight)
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)
    copies = [text for text in repeated.warnings_ if "exact copies" in text]
    assert len(weighted.warnings_) == len(repeated.warnings_) - len(copies)


def test_zero_weights_drop_rows(estimator):
    data = sparse_data()
    weight = (np.arange(len(data.y)) % 3 > 0).astype(float)
    X, y = data.X.copy(), data.y.copy()
    y[weight == 0] = 1e12  # must not matter
    dropped = clone(estimator).fit(data.X[weight > 0], data.y[weight > 0])
    assert_same_fit(clone(estimator).fit(X, y, sample_weight=weight), dropped)


def test_weights_of_few_counts_warn(estimator):
    data = sparse_data()
    with pytest.warns(CollapseWarning, match=r"Weights are counts.*scale them"):
        estimator.fit(data.X, data.y, sample_weight=np.full(len(data.y), 0.01))
    assert np.isfinite(estimator.coef_).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_other_number_types(estimator, dtype):
    data = sparse_data()
    X, y = (100 * data.X).astype(dtype), (1e4 * data.y).astype(dtype)
    model = estimator.fit(X, y)
    np.testing.assert_allclose(model.coef_ / 100, data.coef, atol=0.2)


SINGLE = {
    "array": lambda X: X.astype(np.float32),
    "sparse": lambda X: sparse.csr_array(X.astype(np.float32)),
    "pandas": lambda X: pd.DataFrame(X.astype(np.float32)).add_prefix("c"),
    "polars": lambda X: pl.DataFrame(X.astype(np.float32), schema=list("abcdefghijkl")),
}


@pytest.mark.parametrize("holder", SINGLE)
@pytest.mark.parametrize("targets", [1, 2])
def test_single_precision_comes_back_as_in_scikit_learn(estimator, holder, targets):
    data = sparse_data()
    X, y = SINGLE[holder](data.X), data.y if targets == 1 else np.column_stack([data.y, -data.y])
    peer = Ridge().fit(X, y)
    assert peer.coef_.dtype == (np.float64 if holder == "polars" else np.float32)  # they see no type in polars frames
    model = estimator.fit(X, y)
    assert {values.dtype for values in (model.coef_, model.coef_std_)} == {peer.coef_.dtype}
    assert np.asarray(model.intercept_).dtype == peer.coef_.dtype
    assert {values.dtype for values in (model.predict(X), *model.predict(X, True))} == {peer.predict(X).dtype}
    np.testing.assert_array_equal(model.coef_ != 0, model.support_)
    double = clone(estimator).fit(data.X.astype(np.float32).astype(float), y)
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-6)
    assert double.predict(data.X.astype(np.float32)).dtype == np.float64
    if holder == "array":
        assert model.predict(data.X).dtype == np.float64
        np.testing.assert_allclose(model.predict(data.X), double.predict(data.X), rtol=1e-9)


def test_a_stream_is_single_precision_if_all_its_blocks_are(estimator):
    data = sparse_data()
    single = data.X.astype(np.float32)
    stream = clone(estimator).partial_fit(single[:40], data.y[:40]).partial_fit(single[40:], data.y[40:])
    assert stream.coef_.dtype == stream.predict(single).dtype == np.float32
    mixed = clone(estimator).partial_fit(single[:40], data.y[:40]).partial_fit(data.X[40:], data.y[40:])
    assert mixed.coef_.dtype == mixed.predict(single).dtype == np.float64


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_what_single_precision_cannot_hold_stays_double(estimator, unit):
    """Neither infinity, nor a kept term with a coefficient of zero."""
    data = sparse_data()
    X = data.X.astype(np.float32)
    model = estimator.fit(X, unit * data.y)
    np.testing.assert_array_equal(model.coef_ != 0, model.support_)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_a_search_in_single_precision(tmp_path):
    data = sparse_data()
    X = data.X.astype(np.float32)
    search = ARDSearch(SparseARD(), [0.1, 1.0], "cv", cv=3).fit(X, data.y)
    assert search.coef_.dtype == search.predict(X).dtype == np.float32
    ardea.save(search, tmp_path / "model")
    np.testing.assert_array_equal(ardea.load(tmp_path / "model").coef_, search.coef_)


def test_wrong_column_norms_are_refused():
    X, _ = wide(0.5, m=60, d=5)
    with pytest.raises(ValueError, match="its norm is"):
        Operator(X, np.ones(5))


def masked(array, cell):
    """Return the array with one cell masked."""
    hidden = np.ma.masked_array(array, mask=np.zeros(array.shape, dtype=bool))
    hidden[cell] = np.ma.masked
    return hidden


DAYS = pd.date_range("2024-01-01", periods=20)
MASKED_OR_DATED = {
    "masked X": (masked(X, (3, 1)), Y, {}, r"X has 1 masked cell, the first at \(3, 1\): what is masked is missing"),
    "masked y": (X, masked(Y, (2,)), {}, r"y has 1 masked cell, the first at \(2,\)"),
    "masked weights": (X, Y, {"sample_weight": masked(np.ones(20), (0,))}, "sample_weight has 1 masked cell"),
    "dates in X": (np.full((20, 2), np.datetime64("2024-01-01")), Y, {}, "X holds dates or times.*numbers of a unit"),
    "durations in X": (np.full((20, 2), np.timedelta64(1, "s")), Y, {}, "X holds dates or times"),
    "dates in y": (X, np.full(20, np.datetime64("2024-01-01")), {}, "y holds dates or times"),
    "a list of dates as y": (X, [np.datetime64("2024-01-01")] * 20, {}, "y holds dates or times"),
    "dates in a list of rows": ([[1.0, DAYS[0]]] * 20, Y, {}, "X holds dates or times"),
    "dates among objects": (np.array([[1.0, day] for day in DAYS], dtype=object), Y, {}, "X holds dates or times"),
    "durations as objects": (X, np.array(list(DAYS - DAYS[0]), dtype=object), {}, "y holds dates or times"),
    "periods in y": (X, pd.Series(DAYS.to_period("D")), {}, "y holds dates or times"),
    "dates in y of polars": (X, pl.Series(DAYS), {}, "y holds dates or times"),
    "dates in a frame as y": (X, pd.DataFrame({"day": DAYS}), {}, "Not numbers: column 'day' of y"),
}


WORDS = np.where(Y > 0, "yes", "no")
GAPS = pd.DataFrame(X, columns=list("abcd")).assign(c=lambda frame: frame["c"].round().astype("Int64"))
GAPS.loc[[3, 8], "c"] = pd.NA
NUMBERS = pl.DataFrame(X, schema=list("abcd"))
MISSING_OR_TEXT = {
    "NA among whole numbers": (GAPS, Y, "NaN in row 3, column 'c'; 2 rows have such cells.*dropna"),
    "NA among objects": (GAPS.astype(object), Y, "NaN in row 3, column 'c'; 2 rows have such cells.*dropna"),
    "NA in y": (X, GAPS["c"].astype(object), "y contains NaN or infinity: NaN in row 3; 2 rows have such cells"),
    "null of polars": (
        NUMBERS.with_columns(b=pl.when(pl.col("a") != X[5, 0]).then("b")),
        Y,
        "NaN in row 5, column 'b'; in this row only.*drop_nulls",
    ),
    "text as y": (X, WORDS, f"y holds text: '{WORDS[0]}' in row 0. Turn it into numbers"),
    "objects as y": (X, WORDS.astype(object), f"y holds text: '{WORDS[0]}' in row 0. Turn it into numbers"),
    "text of pandas as y": (X, pd.Series(WORDS), f"y holds text: '{WORDS[0]}' in row 0. Turn it into numbers"),
    "text of polars as y": (X, pl.Series(WORDS.tolist()), f"y holds text: '{WORDS[0]}' in row 0."),
    "a name as y": (GAPS, "c", r"y='c' is a text: give the numbers themselves, such as table\['c'\]"),
    "one column of text": (NUMBERS.with_columns(b=pl.lit("w")), Y, r"Not numbers: column 'b' of X.*X.drop\(\[…\]\)"),
    "columns of text": (GAPS.assign(a="w", b="w"), Y, r"Not numbers: columns 'a', 'b' of X.*X.drop\(columns=\[…\]\)"),
}


@pytest.mark.parametrize("case", MISSING_OR_TEXT)
def test_missing_values_and_text_are_named(case):
    bad_X, bad_y, match = MISSING_OR_TEXT[case]
    for model in (SparseARD(), ARDSearch(SparseARD())):
        with pytest.raises(ValueError, match=match):
            model.fit(bad_X, bad_y)


@pytest.mark.parametrize("case", MASKED_OR_DATED)
def test_masked_cells_and_dates_are_refused(estimator, case):
    bad_X, bad_y, arguments, match = MASKED_OR_DATED[case]
    refuses(estimator, bad_X, bad_y, match, **arguments)


def test_masked_cells_and_dates_are_refused_in_predictions(estimator):
    model = estimator.fit(X, Y)
    with pytest.raises(ValueError, match="masked"):
        model.predict(masked(X, (0, 0)))
    with pytest.raises(ValueError, match="dates or times"):
        model.predict(np.full((3, 4), np.datetime64("2024-01-01")))


def test_a_mask_that_hides_nothing_is_no_mask(estimator):
    whole = clone(estimator).fit(np.ma.masked_array(X), np.ma.masked_array(Y))
    np.testing.assert_array_equal(whole.coef_, estimator.fit(X, Y).coef_)


def few_different_rows(times):
    """20 rows, each several times, and 30 columns that explain nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    return X, y, np.full(20, float(times))


@pytest.mark.parametrize("kind", [ARD, SparseARD])
def test_a_collapse_is_seen_by_the_rows_that_differ(kind):
    """19 terms are few for 400 rows, but not for 20 rows that were given 20 times, in whatever way."""
    X, y, weight = few_different_rows(20)
    many = np.repeat(X, 20, axis=0)
    ways = [(X, y, weight), (many, np.repeat(y, 20), None), (sparse.csr_array(many), np.repeat(y, 20), None)]
    models = []
    for rows in ways:
        with pytest.warns(CollapseWarning, match="400 rows, 20 of them different"):
            models.append(kind().fit(*rows))
    for other in models[1:]:
        np.testing.assert_array_equal(other.support_, models[0].support_)


FRAME = pl.DataFrame(X, schema=list("abcd"))


@pytest.mark.parametrize(
    ("bad_X", "bad_y", "weight", "name"),
    [(FRAME.lazy(), Y, None, "X"), (X, FRAME.select("a").lazy(), None, "y"), (X, Y, FRAME.lazy(), "sample_weight")],
)
def test_queries_that_have_not_run_are_refused(estimator, bad_X, bad_y, weight, name):
    refuses(estimator, bad_X, bad_y, rf"{name} is a polars LazyFrame.*Pass {name}\.collect\(\)", sample_weight=weight)
    with pytest.raises(ValueError, match=r"Pass X\.collect"):
        estimator.fit(FRAME, Y).predict(FRAME.lazy())


@pytest.mark.parametrize("names", [["a", "b", "b", "c"], [0, 1, 1, 2]], ids=["words", "numbers"])
def test_columns_of_the_same_name_are_refused(estimator, names):
    frame = pd.DataFrame(X, columns=names)
    message = rf"have the same name: '{names[1]}'\. Rename them"
    refuses(estimator, frame, Y, message)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y).predict(frame)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1e-154])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_columns_whose_squares_vanish_are_refused(estimator, unit, container):
    """They counted as columns of zeros, however well they explain y."""
    tiny = X.copy()
    tiny[:, 1] = unit * np.arange(-10, 10)
    with pytest.raises(ValueError, match=r"'x1': their squares are lost.*another unit"):
        clone(estimator).fit(container(tiny), Y)
    with pytest.raises(ValueError, match="'pressure': their squares are lost"):
        clone(estimator).fit(pd.DataFrame(tiny, columns=["a", "pressure", "c", "d"]), Y)
    tiny[::2, 1] = np.arange(10.0)
    fitted = clone(estimator).fit(container(tiny), Y)
    assert np.isfinite(fitted.coef_).all()


def test_a_stream_may_hold_a_tiny_block_but_not_a_tiny_column(estimator):
    tiny = X * [1.0, 1e-200, 1.0, 1.0]
    model = estimator.partial_fit(tiny[:10], Y[:10])
    with pytest.raises(ValueError, match="'x1': their squares are lost"):
        model.coef_  # noqa: B018
    assert np.isfinite(model.partial_fit(X[10:], Y[10:]).coef_).all()


def test_a_row_of_a_frame_is_told_to_be_one(estimator):
    """Named after places in the row, a text in it had seemed to stand in row 3 of the table."""
    frame = FRAME.to_pandas() if hasattr(FRAME, "to_pandas") else pd.DataFrame(X, columns=list("abcd"))
    model = estimator.fit(frame, Y)
    for one in (frame.iloc[0], frame.assign(name="Anna").iloc[0], frame[frame.columns[0]]):
        with pytest.raises(ValueError, match=r"X is a single row or column .* pass table\.iloc\[\[0\]\]"):
            model.predict(one)
    assert model.predict(frame.iloc[[0]]).shape == (1,)


@pytest.mark.parametrize("what", ["groups", "sample_weight"])
def test_names_in_the_place_of_columns_are_refused(what):
    with pytest.raises(ValueError, match=rf"{what}='site' is a text: give the .* such as table\['site'\]"):
        SparseARD().fit(X, Y, **{what: "site"})


@pytest.mark.parametrize("what", ["y", "sample_weight", "groups"])
def test_labels_in_another_order_are_told(what):
    """Rows are paired by their place; other labels, or the same ones twice, say nothing."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    m = len(frame)
    y, other = pd.Series(Y), pd.Series(np.arange(m) // 2 if what == "groups" else np.ones(m))

    def fit(turned):
        data = {"y": y} | ({what: turned} if what != "y" else {"y": turned})
        return SparseARD().fit(frame, **data)

    turned = (y if what == "y" else other).iloc[[1, 0, *range(2, m)]]
    with pytest.warns(SuspectDataWarning, match=rf"{what} has the row labels of X in another order.*\.loc\[X\.index\]"):
        fit(turned)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SuspectDataWarning)
        fit(turned.loc[frame.index])
        fit(turned.set_axis(np.arange(m) + 100))
        fit(turned.set_axis(np.arange(m) // 2))
