"""Scikit-learn's rules, for every estimator and for searches; what is answered before a fit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ardea
from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.priors import Gamma, Log
from conftest import (
    FAMILY,
    assert_same_fit,
    sparse_data,
    spoiled,
    wide,
)

DATA = sparse_data(m=20, d=4, k=1)
X, Y = DATA.X, DATA.y


STRENGTH_NAMES = {ARDvi: "alpha", ARDr: "lam", MSTSBL: "tau", LSTSBL: "tau", MAPSTSBL: "tau"}


COMMON_DEFAULTS = {
    "noise_variance": None,
    "fit_intercept": True,
    "always_keep": None,
    "max_iter": 500,
    "tol": 1e-6,
    "start": "safe",
    "rows": "independent",
    "verbose": 0,
}


# Some checks fit pure noise, or ten columns to ten free rows without noise, where a warning is what we promise.
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::ardea.estimators.advice.WeakEvidenceWarning",
    "ignore::ardea.estimators.advice.TwoValuesWarning",
    "ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning",
    "ignore:No features were selected:UserWarning",
    "ignore:Every model of the path:UserWarning",
)
@parametrize_with_checks(
    [
        *(kind() for kind in FAMILY),
        ARDSearch(ARDvi()),
        ARDSearch(MAPSTSBL(), [2.0, 8.0], criterion="cv", cv=2),
        ARDSearch(ARDvi(), [2.0, 8.0], criterion="stability", n_resamples=3, random_state=0),
        ARDSearch(ARDr(), {"prior": [Log(20.0), Gamma(0.5, 1.0)]}),
    ]
)
def test_scikit_learn_rules(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", FAMILY)
def test_constructor_names_and_defaults(kind):
    expected = dict(COMMON_DEFAULTS)
    if kind is not ARD:
        expected["false_terms"] = 0.3 if kind is SparseARD else 1.0
    if kind in STRENGTH_NAMES:
        expected[STRENGTH_NAMES[kind]] = "calibrated"
    if kind is ARDr:
        expected |= {"eta": None, "prior": None}
    if kind is MAPSTSBL:
        expected["search"] = "diagonal"
    assert kind().get_params() == expected


@pytest.mark.parametrize("kind", FAMILY)
def test_common_arguments_are_keyword_only(kind):
    with pytest.raises(TypeError):
        kind(1.0, 1.0, 1.0)


def test_public_names():
    for name in ("ARD", "ARDvi", "ARDr", "MSTSBL", "LSTSBL", "MAPSTSBL", "SparseARD", "rates", "show_versions"):
        assert hasattr(ardea, name)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AlternativesWarning")  # without an intercept
def test_set_params_reaches_the_fit(estimator):
    data = sparse_data()
    model = estimator.set_params(noise_variance=0.7, fit_intercept=False).fit(data.X, data.y)
    assert model.noise_variance_ == pytest.approx(0.7, rel=1e-14)
    assert model.intercept_ == 0.0


def test_parameters_changed_after_the_fit_change_no_answer(estimator):
    data = sparse_data()
    model = estimator.fit(data.X, data.y)
    before = model.predict(data.X, return_std=True)
    model.set_params(fit_intercept=False, always_keep=[0], noise_variance=9.0)
    np.testing.assert_array_equal(model.predict(data.X, return_std=True), before)


def test_clone_fits_alike_and_is_unfitted(estimator):
    data = sparse_data()
    fitted = estimator.fit(data.X, data.y)
    copy = clone(fitted)
    assert not hasattr(copy, "coef_")
    np.testing.assert_array_equal(copy.fit(data.X, data.y).coef_, fitted.coef_)


def test_constructor_parameters_survive_fit(estimator):
    before = estimator.get_params()
    data = sparse_data()
    assert estimator.fit(data.X, data.y).get_params() == before


@pytest.mark.parametrize("streamed", [False, True])
def test_pickle_round_trip(estimator, streamed):
    data = sparse_data()
    model = estimator.partial_fit(data.X, data.y) if streamed else estimator.fit(data.X, data.y)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(copy, model, rtol=0)
    for one, other in zip(copy.predict(data.X, return_std=True), model.predict(data.X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_pipeline_equals_fit_on_scaled_columns(estimator):
    data = sparse_data()
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(data.X, data.y)
    scaled = StandardScaler().fit_transform(data.X)
    np.testing.assert_array_equal(pipeline.predict(data.X), estimator.fit(scaled, data.y).predict(scaled))


def test_as_selector_in_a_pipeline(estimator):
    data = sparse_data(sigma=0.01)
    pipeline = make_pipeline(estimator, SparseARD()).fit(data.X, data.y)
    assert pipeline[-1].n_features_in_ == pipeline[0].support_.sum()
    assert pipeline.score(data.X, data.y) > 0.999


@pytest.mark.parametrize("kind", [kind for kind in FAMILY if kind is not ARD])
def test_grid_search_prefers_the_strength_that_keeps_the_signal(kind):
    data = sparse_data()
    grid = {"false_terms": [1e-300, 1.0]} if kind is not SparseARD else {"false_terms": [1e-250, 0.3]}
    best = GridSearchCV(kind(), grid, cv=3).fit(data.X, data.y).best_estimator_
    assert best.support_[data.coef != 0].all()


def test_cross_validation_scores(estimator):
    data = sparse_data(sigma=0.1)
    scores = cross_val_score(estimator, data.X, data.y, cv=4)
    # Known truth: 1 − σ²/var(y) is the score of the true model.
    assert scores.mean() == pytest.approx(1 - data.sigma**2 / data.y.var(), abs=5 * data.sigma**2 / data.y.var())


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


def test_strength_of_plain_ard_does_not_exist():
    with pytest.raises(TypeError, match="false_terms"):
        ARD(false_terms=1.0)


def test_refused_fit_after_a_good_one_leaves_the_good_one_or_nothing():
    model = SparseARD().fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(spoiled(X, np.nan), Y)
    np.testing.assert_array_equal(model.coef_, before)


def test_priors_and_models_with_them_can_be_pickled():
    X, y = wide(0.5, m=60, d=5)
    model = ARDr(prior=Gamma(2.0, 1.0)).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)


def test_a_fitted_model_does_not_grow_with_the_rows():
    few, many = (len(pickle.dumps(SparseARD().fit(*wide(0.5, m=m, d=6000)))) for m in (100, 400))
    assert many < 1.2 * few
