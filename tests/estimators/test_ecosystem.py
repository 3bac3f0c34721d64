"""Inside scikit-learn's own tools every estimator does what the same steps do by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from ardea import ARD, ARDSearch, ARDvi, SparseARD
from conftest import FAMILY, sparse_data

FOLDS = KFold(4, shuffle=True, random_state=0)
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
NAMES = [f"column {j}" for j in range(12)]


def frame(kind, X, names=NAMES):
    return FRAMES[kind](dict(zip(names, X.T, strict=True)))


def names_of(table):
    return [str(name) for name in table.columns]


def assert_same_model(one, other, rtol=0.0):
    np.testing.assert_array_equal(one.support_, other.support_)
    for name in ("coef_", "intercept_", "coef_std_", "noise_variance_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name)


def on_folds(model, data, folds=FOLDS):
    """Yield a fit on every fold, and the rows left out."""
    for rows, left_out in folds.split(data.X):
        yield clone(model).fit(data.X[rows], data.y[rows]), left_out


# Pipelines and choosing parameters ------------------------------------------------------------------------------------


def test_polynomials_in_a_pipeline_are_the_columns_made_by_hand():
    data = sparse_data(d=4, k=2)
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), SparseARD())
    pipeline.fit(data.X, data.y)
    z = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    products = [z[:, i] * z[:, j] for i in range(4) for j in range(i, 4)]
    by_hand = SparseARD().fit(np.column_stack([z, *products]), data.y)
    assert_same_model(pipeline[-1], by_hand, rtol=1e-9)
    np.testing.assert_allclose(pipeline.predict(data.X), by_hand.predict(np.column_stack([z, *products])), rtol=1e-10)


def test_names_travel_through_a_pipeline():
    data = sparse_data(d=4, k=2)
    made = ["a", "b", "c", "d", "a^2", "a b", "a c", "a d", "b^2", "b c", "b d", "c^2", "c d", "d^2"]
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), SparseARD()).set_output(transform="pandas")
    pipeline.fit(frame("pandas", data.X, list("abcd")), data.y)
    assert list(pipeline[-1].feature_names_in_) == made
    kept = [name for name, is_kept in zip(made, pipeline[-1].support_, strict=True) if is_kept]
    assert list(pipeline.get_feature_names_out()) == kept == pipeline[-1].summary().columns["term"]


def test_grid_search_over_a_pipeline_is_the_loop_by_hand():
    data = sparse_data()
    strengths = [1e-6, 0.3, 8.0]
    pipeline = make_pipeline(StandardScaler(), SparseARD())
    search = GridSearchCV(pipeline, {"sparseard__false_terms": strengths}, cv=FOLDS).fit(data.X, data.y)
    scores = [
        np.mean([m.score(data.X[out], data.y[out]) for m, out in on_folds(clone(pipeline).set_params(**s), data)])
        for s in ({"sparseard__false_terms": value} for value in strengths)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-12)
    best = strengths[int(np.argmax(scores))]
    assert search.best_params_ == {"sparseard__false_terms": best}
    by_hand = SparseARD(false_terms=best).fit(StandardScaler().fit_transform(data.X), data.y)
    assert_same_model(search.best_estimator_[-1], by_hand)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # by chance, on few rows
def test_halving_ends_with_all_rows_and_the_score_by_hand():
    data = sparse_data(m=160)
    search = HalvingGridSearchCV(
        ARDvi(), {"alpha": [1.0, 4.0, 16.0, 1e4]}, cv=FOLDS, factor=2, min_resources=40, random_state=0
    ).fit(data.X, data.y)
    assert search.n_resources_[-1] == len(data.y)
    survivors = [p["alpha"] for p, i in zip(*map(search.cv_results_.get, ("params", "iter")), strict=True) if i == 2]
    assert len(survivors) == 1
    assert search.best_params_ == {"alpha": survivors[0]}
    assert_same_model(search.best_estimator_, ARDvi(alpha=survivors[0]).fit(data.X, data.y))


@pytest.mark.parametrize("kind", FAMILY)
def test_cross_validation_is_the_loop_by_hand(kind):
    data = sparse_data()
    fits = list(on_folds(kind(), data))
    scores = [r2_score(data.y[out], model.predict(data.X[out])) for model, out in fits]
    np.testing.assert_array_equal(cross_val_score(kind(), data.X, data.y, cv=FOLDS), scores)
    predicted = np.empty_like(data.y)
    for model, out in fits:
        predicted[out] = model.predict(data.X[out])
    np.testing.assert_array_equal(cross_val_predict(kind(), data.X, data.y, cv=FOLDS), predicted)
    result = cross_validate(kind(), data.X, data.y, cv=FOLDS, return_estimator=True, scoring="neg_mean_squared_error")
    for model, (by_hand, out), score in zip(result["estimator"], fits, result["test_score"], strict=True):
        assert_same_model(model, by_hand)
        assert score == -mean_squared_error(data.y[out], by_hand.predict(data.X[out]))


def test_a_search_is_cross_validated_as_a_whole():
    """The choice of the strength is made anew on every fold: nothing of the rows left out gets into it."""
    data = sparse_data()
    search = ARDSearch(ARDvi(), strengths=[1.0, 4.0, 16.0])
    result = cross_validate(search, data.X, data.y, cv=FOLDS, return_estimator=True)
    for found, (by_hand, _) in zip(result["estimator"], on_folds(search, data), strict=True):
        assert found.best_strength_ == by_hand.best_strength_
        assert_same_model(found.best_estimator_, by_hand.best_estimator_)


def test_learning_curve_is_the_fit_on_the_first_rows():
    data = sparse_data()
    sizes, _, scores = learning_curve(SparseARD(), data.X, data.y, train_sizes=[30, 60], cv=FOLDS)
    for size, row in zip(sizes, scores, strict=True):
        by_hand = [
            SparseARD().fit(data.X[rows[:size]], data.y[rows[:size]]).score(data.X[out], data.y[out])
            for rows, out in FOLDS.split(data.X)
        ]
        np.testing.assert_array_equal(row, by_hand)


def test_nested_parameters_reach_the_model_and_no_clone():
    pipeline = Pipeline([("scale", StandardScaler()), ("model", ARDSearch(SparseARD()))])
    other = clone(pipeline).set_params(model__estimator__false_terms=2.0, model__criterion="bic")
    assert other.named_steps["model"].estimator.false_terms == 2.0
    assert pipeline.get_params()["model__estimator__false_terms"] == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'false_term'"):
        pipeline.set_params(model__estimator__false_term=1.0)


# Selecting columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefit", [False, True])
def test_select_from_model_above_zero_is_the_support(prefit):
    data = sparse_data()
    model = SparseARD().fit(data.X, data.y)
    selector = SelectFromModel(model if prefit else SparseARD(), threshold=1e-12, prefit=prefit).fit(data.X, data.y)
    np.testing.assert_array_equal(selector.get_support(), model.support_)
    np.testing.assert_array_equal(selector.transform(data.X), model.transform(data.X))


def test_select_from_model_keeps_the_largest_coefficients():
    data = sparse_data()
    selector = SelectFromModel(ARD(), threshold=-np.inf, max_features=2).fit(data.X, data.y)
    largest = np.argsort(-np.abs(ARD().fit(data.X, data.y).coef_))[:2]
    assert set(np.flatnonzero(selector.get_support())) == set(largest)


@pytest.mark.parametrize("kind", FAMILY)
def test_a_step_before_least_squares_is_the_refit(kind):
    """Least squares on the columns that the step keeps: the centre of the interval `refit`."""
    data = sparse_data()
    pipeline = make_pipeline(kind(), LinearRegression()).fit(data.X, data.y)
    model = kind().fit(data.X, data.y)
    assert pipeline[-1].n_features_in_ == model.support_.sum()
    centre = model.credible_interval(kind="refit").mean(axis=1)[model.support_]
    np.testing.assert_allclose(pipeline[-1].coef_, centre, rtol=1e-9)
    kept = data.X[:, model.support_]
    np.testing.assert_allclose(pipeline.predict(data.X), LinearRegression().fit(kept, data.y).predict(kept), rtol=1e-12)


def test_recursive_elimination_drops_the_smallest_coefficient_each_time():
    data = sparse_data(d=8)
    left = np.arange(8)
    while left.size > 3:
        coef = ARD().fit(data.X[:, left], data.y).coef_
        left = np.delete(left, np.argmin(coef**2))
    found = RFE(ARD(), n_features_to_select=3).fit(data.X, data.y)
    np.testing.assert_array_equal(np.flatnonzero(found.support_), left)
    assert_same_model(found.estimator_, ARD().fit(data.X[:, left], data.y))


# Frames ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", FRAMES)
@pytest.mark.parametrize("given", FRAMES)
def test_output_frames_hold_the_kept_columns_by_name(given, output):
    data = sparse_data()
    model = SparseARD().set_output(transform=output).fit(frame(given, data.X), data.y)
    table = model.transform(frame(given, data.X))
    assert isinstance(table, FRAMES[output])
    kept = [name for name, is_kept in zip(NAMES, model.support_, strict=True) if is_kept]
    assert names_of(table) == kept == list(model.get_feature_names_out())
    np.testing.assert_array_equal(table.to_numpy(), data.X[:, model.support_])


@pytest.mark.parametrize("output", FRAMES)
def test_output_frames_in_a_pipeline(output):
    data = sparse_data()
    pipeline = make_pipeline(StandardScaler(), SparseARD()).set_output(transform=output)
    table = pipeline.fit_transform(frame("pandas", data.X), data.y)
    assert isinstance(table, FRAMES[output])
    assert names_of(table) == list(pipeline.get_feature_names_out())
    scaled = StandardScaler().fit_transform(data.X)
    kept = SparseARD().fit(scaled, data.y).support_
    # The scaler sums a frame in another memory order.
    np.testing.assert_allclose(table.to_numpy(), scaled[:, kept], rtol=1e-12)


@pytest.mark.parametrize("output", FRAMES)
def test_selected_columns_are_named_for_the_next_estimator(output):
    data = sparse_data()
    pipeline = make_pipeline(ARDvi(alpha=1.5), SparseARD()).set_output(transform=output)
    pipeline.fit(frame(output, data.X), data.y)
    kept = ARDvi(alpha=1.5).fit(data.X, data.y).support_
    assert list(pipeline[-1].feature_names_in_) == [name for name, one in zip(NAMES, kept, strict=True) if one]
    assert_same_model(pipeline[-1], SparseARD().fit(data.X[:, kept], data.y))


def test_names_of_unnamed_columns():
    data = sparse_data()
    model = SparseARD().fit(data.X, data.y)
    assert list(model.get_feature_names_out()) == [f"x{j}" for j in np.flatnonzero(model.support_)]
    named = [name for name, one in zip(NAMES, model.support_, strict=True) if one]
    assert list(model.get_feature_names_out(NAMES)) == named


def test_column_transformer_before():
    data = sparse_data(d=3, k=2)
    group = np.random.default_rng(1).choice(["p", "q", "r"], len(data.y))
    table = pd.DataFrame(data.X, columns=list("abc")).assign(group=group)
    y = data.y + 5.0 * (group == "q")
    columns = ColumnTransformer([("numbers", StandardScaler(), list("abc")), ("words", OneHotEncoder(), ["group"])])
    pipeline = make_pipeline(columns, SparseARD()).fit(table, y)
    X = np.column_stack([StandardScaler().fit_transform(data.X), *(group == level for level in "pqr")])
    by_hand = SparseARD().fit(X, y)
    assert_same_model(pipeline[-1], by_hand, rtol=1e-9)
    np.testing.assert_allclose(pipeline.predict(table), by_hand.predict(X), rtol=1e-10)


def people():
    """Return a frame with numbers and words, y that depends on one of each, and the steps that make columns of them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 80, 200), "income": rng.lognormal(size=200)})
    table["city"] = rng.choice(["Rome", "Oslo", "Bern"], 200)
    y = 0.1 * table["age"] + 2.0 * (table["city"] == "Oslo") + 0.1 * rng.normal(size=200)
    columns = [("scale", StandardScaler(), ["age", "income"]), ("word", OneHotEncoder(sparse_output=False), ["city"])]
    return table, y, ColumnTransformer(columns)


@pytest.mark.parametrize("output", FRAMES)
def test_names_of_a_column_transformer_are_shown(output):
    table, y, columns = people()
    pipeline = make_pipeline(columns, SparseARD()).set_output(transform=output).fit(table, y)
    assert pipeline[-1].summary().columns["term"] == ["scale__age", "word__city_Oslo"]


@pytest.mark.parametrize("thin", [False, True])
def test_names_that_a_pipeline_does_not_hand_on_can_be_given(thin):
    """Arrays and sparse matrices inside a pipeline have no names, but its steps know them."""
    table, y, columns = people()
    columns.set_params(word__sparse_output=thin, sparse_threshold=float(thin))
    pipeline = make_pipeline(columns, SparseARD()).fit(table, y)
    assert sparse.issparse(pipeline[0].transform(table)) == thin
    model, names = pipeline[-1], pipeline[:-1].get_feature_names_out()
    assert model.summary().columns["term"] == ["x0", "x3"]
    named = model.summary(names=names)
    assert named.columns == model.summary().columns | {"term": ["scale__age", "word__city_Oslo"]}
    assert "scale__age" in str(named)
    assert "word__city_Oslo" in model.equations_[0].with_names(names).formula()
    assert model.summary().columns["term"] == ["x0", "x3"]  # the model itself is as before
    pipeline.predict(table)  # and no warning says that names are missing


def test_names_of_several_targets_can_be_given():
    data = sparse_data()
    model = SparseARD().fit(data.X, np.column_stack([data.y, -data.y]))
    kept = [NAMES[j] for j in np.flatnonzero(data.coef)]
    assert model.summary(names=np.array(NAMES)).columns["term"] == kept + kept


@pytest.mark.parametrize("names", [NAMES[:-1], "column"])
def test_as_many_names_as_columns_are_needed(names):
    data = sparse_data()
    with pytest.raises(ValueError, match=r"names? (was|were) given for 12 columns: give one for each"):
        SparseARD().fit(data.X, data.y).summary(names=names)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "boolean", "float32[pyarrow]"])
def test_nullable_columns_are_plain_numbers(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    data = sparse_data()
    values = data.X > 0 if dtype == "boolean" else np.round(data.X) if dtype == "Int64" else data.X
    table = frame("pandas", values).astype(dtype)
    plain = table.to_numpy(dtype=float)
    y = plain @ data.coef + 0.1 * np.random.default_rng(0).normal(size=len(plain))
    assert_same_model(SparseARD().fit(table, pd.Series(y, dtype="Float64")), SparseARD().fit(plain, y), rtol=1e-6)


def test_missing_values_in_nullable_columns_are_refused():
    data = sparse_data()
    table = frame("pandas", data.X).astype("Float64")
    table.iloc[3, 2] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        SparseARD().fit(table, data.y)


@pytest.mark.parametrize("kind", FRAMES)
def test_words_are_refused(kind):
    data = sparse_data()
    words = ["low", "high"] * 40
    table = frame(kind, data.X).assign(word=pd.Categorical(words)) if kind == "pandas" else frame(kind, data.X)
    if kind == "polars":
        table = table.with_columns(pl.Series("word", words, dtype=pl.Categorical))
    with pytest.raises(ValueError, match=r"Not numbers: column 'word'"):
        SparseARD().fit(table, data.y)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_in_another_order_are_refused(kind):
    data = sparse_data()
    model = SparseARD().fit(frame(kind, data.X), data.y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame(kind, data.X[:, ::-1], NAMES[::-1]))


# Weights --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def whole_weights(data, seed=4):
    return np.random.default_rng(seed).integers(1, 4, len(data.y)).astype(float)


@pytest.mark.usefixtures("routing")
def test_weights_reach_the_model_in_a_pipeline():
    data = sparse_data()
    weight = whole_weights(data)
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), SparseARD().set_fit_request(sample_weight=True)
    ).fit(data.X, data.y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(data.X)
    assert_same_model(pipeline[-1], SparseARD().fit(scaled, data.y, weight))
    assert not np.allclose(pipeline[-1].coef_, SparseARD().fit(scaled, data.y).coef_, rtol=1e-6)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("weighted_score", [False, True])
def test_weights_reach_the_model_in_a_grid_search(weighted_score):
    data = sparse_data()
    weight = whole_weights(data)
    model = ARDvi().set_fit_request(sample_weight=True).set_score_request(sample_weight=weighted_score)
    search = GridSearchCV(model, {"alpha": [1.0, 4.0]}, cv=FOLDS).fit(data.X, data.y, sample_weight=weight)
    for alpha, scores in zip([1.0, 4.0], search.cv_results_["mean_test_score"], strict=True):
        by_hand = []
        for rows, out in FOLDS.split(data.X):
            fitted = ARDvi(alpha=alpha).fit(data.X[rows], data.y[rows], weight[rows])
            by_hand.append(fitted.score(data.X[out], data.y[out], weight[out] if weighted_score else None))
        assert scores == pytest.approx(np.mean(by_hand), rel=1e-12)
    assert_same_model(search.best_estimator_, ARDvi(**search.best_params_).fit(data.X, data.y, weight))


@pytest.mark.usefixtures("routing")
def test_weights_reach_a_search_of_ours():
    data = sparse_data()
    weight = whole_weights(data)
    search = ARDSearch(ARDvi(), strengths=[1.0, 4.0]).set_fit_request(sample_weight=True)
    pipeline = Pipeline([("search", search)]).fit(data.X, data.y, sample_weight=weight)
    by_hand = ARDSearch(ARDvi(), strengths=[1.0, 4.0]).fit(data.X, data.y, weight)
    assert_same_model(pipeline[-1].best_estimator_, by_hand.best_estimator_)


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_asked_for_are_refused():
    data = sparse_data()
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(SparseARD(), data.X, data.y, params={"sample_weight": whole_weights(data)})


@pytest.mark.filterwarnings("ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning")
def test_weights_are_repeated_rows_in_a_pipeline_without_routing():
    data = sparse_data()
    weight = whole_weights(data)
    pipeline = make_pipeline(SparseARD()).fit(data.X, data.y, sparseard__sample_weight=weight)
    repeated = np.repeat(np.arange(len(data.y)), weight.astype(int))
    assert_same_model(pipeline[-1], SparseARD().fit(data.X[repeated], data.y[repeated]), rtol=1e-6)


# Estimators made of estimators ----------------------------------------------------------------------------------------


def two_targets():
    data = sparse_data()
    other = data.X @ np.roll(data.coef, 1) + np.random.default_rng(3).normal(size=len(data.y))
    return data.X, np.column_stack([data.y, other])


@pytest.mark.parametrize("kind", FAMILY)
def test_one_model_per_target_is_one_model_of_all_targets(kind):
    X, Y = two_targets()
    several, one = MultiOutputRegressor(kind()).fit(X, Y), kind().fit(X, Y)
    for model, coef, support in zip(several.estimators_, one.coef_, one.support_, strict=True):
        np.testing.assert_array_equal(model.support_, support)
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    np.testing.assert_allclose(several.predict(X), one.predict(X), rtol=1e-8)


def test_a_chain_adds_the_first_target_as_a_column():
    X, Y = two_targets()
    chain = RegressorChain(SparseARD()).fit(X, Y)
    assert_same_model(chain.estimators_[0], SparseARD().fit(X, Y[:, 0]))
    assert_same_model(chain.estimators_[1], SparseARD().fit(np.column_stack([X, Y[:, 0]]), Y[:, 1]))


def test_a_transformed_target():
    data = sparse_data()
    y = np.exp(data.y / 10)
    model = TransformedTargetRegressor(SparseARD(), func=np.log, inverse_func=np.exp).fit(data.X, y)
    by_hand = SparseARD().fit(data.X, np.log(y))
    assert_same_model(model.regressor_, by_hand)
    np.testing.assert_allclose(model.predict(data.X), np.exp(by_hand.predict(data.X)), rtol=1e-12)


@pytest.mark.parametrize("kind", FAMILY)
def test_scaling_the_target_changes_nothing(kind):
    """Calibrated strengths have no unit: the fit to (y − mean)/std, scaled back, is the fit to y."""
    data = sparse_data()
    scaled = TransformedTargetRegressor(kind(), transformer=StandardScaler()).fit(data.X, data.y)
    np.testing.assert_array_equal(scaled.regressor_.support_, kind().fit(data.X, data.y).support_)
    np.testing.assert_allclose(scaled.predict(data.X), kind().fit(data.X, data.y).predict(data.X), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # by chance, on few rows
@pytest.mark.filterwarnings("ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning")
def test_a_bag_is_the_mean_of_fits_to_the_rows_drawn():
    data = sparse_data()
    bag = BaggingRegressor(SparseARD(), n_estimators=5, random_state=0).fit(data.X, data.y)
    fits = [SparseARD().fit(data.X[rows], data.y[rows]) for rows in bag.estimators_samples_]
    for model, by_hand in zip(bag.estimators_, fits, strict=True):
        assert_same_model(model, by_hand, rtol=1e-6)
    np.testing.assert_allclose(bag.predict(data.X), np.mean([m.predict(data.X) for m in fits], axis=0), rtol=1e-6)


def test_a_stack_learns_from_predictions_of_rows_left_out():
    data = sparse_data()
    parts = [("sparse", SparseARD()), ("least_squares", LinearRegression())]
    stack = StackingRegressor(parts, final_estimator=SparseARD(), cv=FOLDS).fit(data.X, data.y)
    left_out = np.column_stack([cross_val_predict(model, data.X, data.y, cv=FOLDS) for _, model in parts])
    by_hand = SparseARD().fit(left_out, data.y)
    assert_same_model(stack.final_estimator_, by_hand)
    whole = np.column_stack([clone(model).fit(data.X, data.y).predict(data.X) for _, model in parts])
    np.testing.assert_allclose(stack.predict(data.X), by_hand.predict(whole), rtol=1e-12)


# Looking into a model -------------------------------------------------------------------------------------------------


def test_importance_of_dropped_columns_is_exactly_zero():
    data = sparse_data()
    model = SparseARD().fit(data.X, data.y)
    found = permutation_importance(model, data.X, data.y, n_repeats=3, random_state=0)
    assert not found.importances[~model.support_].any()
    assert (found.importances_mean[model.support_] > 0).all()


def test_partial_dependence_is_a_line_with_the_slope_of_the_coefficient():
    data = sparse_data()
    model = SparseARD().fit(data.X, data.y)
    for j, coef in enumerate(model.coef_):
        found = partial_dependence(model, data.X, [j], grid_resolution=5, kind="average")
        values, mean = found["grid_values"][0], found["average"][0]
        expected = model.predict(data.X).mean() + coef * (values - data.X[:, j].mean())
        np.testing.assert_allclose(mean, expected, rtol=1e-9)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_jobs_in_parallel_give_the_same_bits(backend):
    data = sparse_data()
    alone = [kind().fit(data.X, data.y).coef_ for kind in FAMILY]
    with parallel_config(backend=backend, n_jobs=2):
        together = Parallel()(delayed(kind().fit)(data.X, data.y) for kind in FAMILY)
        scores = cross_val_score(SparseARD(), data.X, data.y, cv=FOLDS)
    for coef, model in zip(alone, together, strict=True):
        np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(scores, cross_val_score(SparseARD(), data.X, data.y, cv=FOLDS, n_jobs=1))
