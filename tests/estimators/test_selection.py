"""Paths over a strength, criteria, and the choice between methods."""

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.estimators.advice import AlternativesWarning, ExtrapolationWarning
from ardea.priors import Gamma, Linear, Log

M, D = 80, 30
TERMS = [2, 5, 11]
METHODS = {
    "vi": (ARDvi(), [1.0, 2.0, 4.0, 8.0, 16.0]),
    "r": (ARDr(), [0.0, 10.0, 100.0]),
    "m": (MSTSBL(), [0.0, 0.05, 0.2, 0.4]),
    "l": (LSTSBL(), [np.inf, 1.0, 0.1, 1e-3]),
    "map": (MAPSTSBL(search="backward"), [0.0, 1.0, 3.0, 6.0]),
    "sparse": (SparseARD(), [0.01, 0.3, 3.0]),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, D)) * 10.0 ** rng.integers(-2, 3, D)
    coef = np.zeros(D)
    coef[TERMS] = [1.0, -2.0, 1.5] / np.abs(X[:, TERMS]).mean(axis=0)
    return X, 4.0 + X @ coef + 0.4 * rng.normal(size=M)


@pytest.mark.parametrize("method", METHODS)
def test_every_model_of_the_path_is_the_one_fitted_alone(data, method):
    """One compression and shared first fits change nothing."""
    X, y = data
    model, strengths = METHODS[method]
    path = ARDSearch(model, strengths).fit(X, y).path_
    assert sorted(path["strength"]) == sorted(strengths)
    for i, strength in enumerate(path["strength"]):
        alone = clone(model).set_params(**{model.method.strength: strength}).fit(X, y)
        np.testing.assert_array_equal(path["support"][i], alone.support_)
        np.testing.assert_allclose(path["coef"][i], alone.coef_, rtol=1e-5, atol=1e-8 * np.abs(alone.coef_).max())
        assert path["log_evidence"][i] == pytest.approx(alone.log_evidence_, abs=1e-6)


def test_a_search_without_an_estimator_is_one_of_the_default(data):
    X, y = data
    alone, told = ARDSearch().fit(X, y), ARDSearch(SparseARD()).fit(X, y)
    np.testing.assert_array_equal(alone.coef_, told.coef_)


def test_criteria_by_their_definitions(data):
    X, y = data
    path = ARDSearch(ARDvi(), [1.0, 4.0, 9.0]).fit(X, y).path_
    m = M - 1
    basis = np.linalg.svd(np.ones((M, 1)))[0][:, 1:]
    Xc, yc = basis.T @ X, basis.T @ y
    for i, alpha in enumerate(path["strength"]):
        model = ARDvi(alpha).fit(X, y)
        covariance = model.noise_variance_ * np.eye(m) + (Xc * model.prior_variance_) @ Xc.T
        log_density = multivariate_normal(np.zeros(m), covariance).logpdf(yc)
        cost = -2 * log_density - m * np.log(2 * np.pi)
        k = int(model.support_.sum())
        rss = np.linalg.lstsq(Xc[:, model.support_], yc, rcond=None)[1][0]
        choices, fit = np.log(comb(D, k)), m * np.log(rss / m)
        expected = {
            "k": k,
            "cost": cost,
            "evidence": cost + 2 * k + 2 * choices,
            "aicc": cost + 2 * (k + 1) + (2 * (k + 1) ** 2 + 2 * (k + 1)) / (m - k - 2),
            "aic": fit + 2 * k,
            "bic": fit + k * np.log(m),
            "ebic": fit + k * np.log(m) + 2 * choices,
            "ebic2": fit + 2 * (k * np.log(m) + 2 * choices),
        }
        for name, value in expected.items():
            assert path[name][i] == pytest.approx(value, rel=1e-6), name


@pytest.mark.parametrize("criterion", ["evidence", "aicc", "bic", "ebic", "ebic2", "cv", "stability", "oracle"])
def test_the_best_is_the_smallest_that_takes_part(data, criterion):
    X, y = data
    truth = np.isin(np.arange(D), TERMS)
    search = ARDSearch(ARDvi(), criterion=criterion, true_support=truth, n_resamples=8, random_state=0).fit(X, y)
    score = np.where(search.path_["eligible"], search.path_["score"], np.inf)
    assert search.best_index_ == np.argmin(score)
    np.testing.assert_array_equal(search.best_estimator_.support_, search.path_["support"][search.best_index_])
    assert search.best_strength_ == search.path_["strength"][search.best_index_]
    assert search.best_params_["alpha"] == search.best_strength_
    assert search.best_estimator_.support_[TERMS].all()
    if criterion in {"evidence", "ebic2", "oracle"}:
        assert search.best_estimator_.support_.sum() == len(TERMS)


def test_the_chosen_model_is_a_whole_estimator(data):
    X, y = data
    search = ARDSearch(ARDvi()).fit(X, y)
    alone = ARDvi(search.best_strength_).fit(X, y)
    for ours, theirs in zip(search.predict(X, return_std=True), alone.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(
        search.best_estimator_.credible_interval(), alone.credible_interval(), rtol=1e-5, atol=1e-9
    )


def test_the_one_standard_error_rule_prefers_fewer_terms(data):
    X, y = data
    search = ARDSearch(ARDvi(), criterion="cv").fit(X, y)
    unruled = ARDSearch(ARDvi(), criterion="aic").fit(X, y)
    assert search.best_estimator_.support_.sum() <= unruled.best_estimator_.support_.sum()


def test_between_methods(data):
    X, y = data
    models = [ARD(), ARDvi(), MAPSTSBL()]
    search = ARDSearch(models, strengths=[None, [2.0, 8.0], [1.0, 4.0]]).fit(X, y)
    assert list(search.path_["method"]) == ["ARD", "ARDvi", "ARDvi", "MAPSTSBL", "MAPSTSBL"]
    assert np.isnan(search.path_["strength"][0])
    assert search.path_["evidence"][search.best_index_] == search.path_["evidence"].min()
    assert type(search.best_estimator_).__name__ == search.path_["method"][search.best_index_]


def test_two_parameters_at_once(data):
    X, y = data
    search = ARDSearch(ARDr(), {"lam": [1.0, 100.0], "eta": [0.01, 1.0]}).fit(X, y)
    assert len(search.path_["k"]) == 4
    assert search.best_params_["lam"] in {1.0, 100.0}
    assert search.best_params_["eta"] in {0.01, 1.0}


def test_models_with_too_many_terms_take_no_part():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 100))
    y = 3 * X[:, 0] + rng.normal(size=40)
    search = ARDSearch(ARDvi(), [1.0, 12.0]).fit(X, y)
    weak = search.path_["strength"] == 1.0
    assert search.path_["k"][weak] > 10
    assert not search.path_["eligible"][weak]
    assert search.best_strength_ == 12.0
    with pytest.warns(UserWarning, match="outnumber rows"):
        ARDSearch(ARDvi(), [12.0], criterion="bic").fit(X, y)
    with pytest.warns(UserWarning, match="sparsest is"), pytest.warns(UserWarning, match="interpolating"):
        ARDSearch(ARDvi(), [1.0]).fit(X, y)


def test_stability_has_a_seed_and_jobs_change_nothing(data):
    X, y = data
    settings = {"strengths": [2.0, 6.0, 12.0], "criterion": "stability", "n_resamples": 6}
    one = ARDSearch(ARDvi(), random_state=3, **settings).fit(X, y).path_["score"]
    np.testing.assert_array_equal(
        one, ARDSearch(ARDvi(), random_state=3, n_jobs=2, **settings).fit(X, y).path_["score"]
    )
    assert np.all((one >= -1) & (one <= 1))


def test_in_pipelines_and_cross_validation(data):
    X, y = data
    model = make_pipeline(StandardScaler(), ARDSearch(ARDvi(), [4.0, 9.0]))
    assert cross_val_score(model, X, y, cv=3).min() > 0.8
    assert clone(ARDSearch(ARDvi(), [1.0])).get_params()["estimator__alpha"] == "calibrated"


def test_frames_keep_their_names(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    search = ARDSearch(SparseARD(always_keep=["c7"])).fit(frame, y)
    assert search.best_estimator_.support_[7]
    assert "c7" in str(search.best_estimator_.summary())
    assert list(search.path_.to_frame()["k"]) == list(search.path_["k"])


def test_plot_path_shows_terms_and_criterion(data):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    search = ARDSearch(ARDvi()).fit(*data)
    ax = search.plot_path()
    np.testing.assert_array_equal(np.sort(ax.get_lines()[0].get_ydata()), np.sort(search.path_["k"]))
    assert "alpha" in ax.get_xlabel()
    assert "evidence" in ax.figure.axes[1].get_ylabel()
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "sparse"}, r"one of ardea's estimators, such as SparseARD\(\)"),
        ({"criterion": "aicx"}, "criterion='aicx'"),
        ({"criterion": "oracle"}, "true_support"),
        ({"strengths": [-1.0]}, "alpha"),
        ({"strengths": {"beta": [1.0]}}, "no parameter beta"),
        ({"estimator": [ARD(), ARDvi()], "strengths": [[1.0]]}, "one for each"),
        ({"cv": 0}, "cv"),
        ({"estimator": ARD(), "strengths": [1.0, 2.0]}, "ARD has no strength to vary"),
        ({"strengths": []}, "no value for alpha"),
        ({"estimator": ARDr(), "strengths": {"prior": ["log"]}}, "prior='log' is not a prior"),
    ],
)
def test_bad_settings_are_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        ARDSearch(**{"estimator": ARDvi(), **settings}).fit(*data)


def test_several_targets_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="one target"):
        ARDSearch(ARDvi()).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("criterion", ["evidence", "bic", "stability", "oracle"])
def test_results_are_the_criterion_in_the_words_of_scikit_learn(data, criterion):
    truth = np.isin(np.arange(D), TERMS)
    search = ARDSearch(ARDvi(), [1.0, 4.0, 16.0], criterion, truth, n_resamples=4, random_state=0).fit(*data)
    results = search.cv_results_
    assert results["params"] == [{"alpha": 16.0}, {"alpha": 4.0}, {"alpha": 1.0}]
    assert list(results["param_alpha"]) == [16.0, 4.0, 1.0]
    np.testing.assert_array_equal(results["mean_test_score"], -search.path_["score"])
    assert set(results) == {"params", "param_alpha", "mean_test_score", "rank_test_score"}
    assert results["rank_test_score"][search.best_index_] == 1
    assert results["params"][search.best_index_] == search.best_params_


def test_results_of_cross_validation_are_those_of_a_grid_search(data):
    X, y = data
    strengths, folds = [16.0, 4.0, 1.0], KFold(4, shuffle=True, random_state=0)
    ours = ARDSearch(ARDvi(), strengths, "cv", cv=folds).fit(X, y).cv_results_
    grid = GridSearchCV(ARDvi(), {"alpha": strengths}, cv=folds, scoring="neg_mean_squared_error").fit(X, y)
    theirs = grid.cv_results_
    assert {name for name in theirs if "time" not in name} == set(ours)
    assert ours["params"] == theirs["params"]
    for name in set(ours) - {"params"}:
        np.testing.assert_allclose(ours[name].astype(float), theirs[name].astype(float), rtol=1e-5, err_msg=name)


def test_models_that_take_no_part_come_last_in_the_results():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 100))
    y = 3 * X[:, 0] + rng.normal(size=40)
    search = ARDSearch(ARDvi(), [1.0, 2.0, 9.0, 12.0]).fit(X, y)
    rank, eligible = search.cv_results_["rank_test_score"], search.path_["eligible"]
    assert 0 < eligible.sum() < 4
    assert rank[eligible].max() < rank[~eligible].min()


def test_parameters_that_a_method_lacks_are_masked_in_the_results(data):
    search = ARDSearch([ARD(), ARDvi()], [{"fit_intercept": [True, False]}, [2.0, 8.0]]).fit(*data)
    np.testing.assert_array_equal(search.cv_results_["param_alpha"].mask, [True, True, False, False])
    assert list(search.cv_results_["param_fit_intercept"][:2]) == [True, False]


def test_priors_are_chosen_between(data):
    """Each model is the one fitted alone, whatever stood before it on the path."""
    X, y = data
    priors = [Linear(0.0), Log(30.0), None, Gamma(0.5, 1.0)]
    search = ARDSearch(ARDr(), {"prior": priors, "lam": [1.0, 50.0]}).fit(X, y)
    assert [params["prior"] for params in search.cv_results_["params"]] == [one for one in priors for _ in range(2)]
    for params, coef in zip(search.cv_results_["params"], search.path_["coef"], strict=True):
        np.testing.assert_allclose(coef, ARDr(**params).fit(X, y).coef_, rtol=1e-5, atol=1e-8)
    assert search.best_params_["prior"] is search.best_estimator_.prior
    alone = ARDSearch(ARDr(), {"prior": priors}).fit(X, y)
    assert np.isnan(alone.best_strength_)
    assert alone.best_params_ == {"prior": alone.best_estimator_.prior}


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.KnownNoiseWarning")
def test_a_collapse_ends_the_path_of_its_own_parameters_only():
    """The weak prior keeps more than half as many terms as rows; the strong one after it is fitted all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 100))
    y = 3 * X[:, 0] + rng.normal(size=40)
    weak, strong = Linear(0.0), Linear(1e4)
    search = ARDSearch(ARDr(noise_variance=0.1), {"prior": [weak, strong]}).fit(X, y)
    assert search.path_["k"][0] > 20
    assert search.path_["k"][1] == ARDr(prior=strong, noise_variance=0.1).fit(X, y).support_.sum() <= 10


@pytest.mark.parametrize("several", [np.array, list])
def test_a_strength_may_be_one_for_every_column(data, several):
    X, y = data
    strengths = [np.full(D, 4.0), np.where(np.arange(D) < 10, 2.0, 30.0)]
    search = ARDSearch(ARDvi(), {"alpha": several(strengths)}).fit(X, y)
    assert len(search.path_["k"]) == 2
    for strength, coef in zip(strengths, search.path_["coef"], strict=True):
        np.testing.assert_allclose(coef, ARDvi(strength).fit(X, y).coef_, rtol=1e-5, atol=1e-8)


def test_lists_of_columns_may_be_varied(data):
    choices = [None, [7], [8, 9]]
    search = ARDSearch(ARDvi(), {"alpha": [9.0], "always_keep": choices}).fit(*data)
    assert [params["always_keep"] for params in search.cv_results_["params"]] == choices
    assert search.path_["coef"][1][7] != 0
    assert (search.path_["coef"][2][[8, 9]] != 0).all()


def test_splits_may_be_given_as_rows(data):
    X, y = data
    folds = KFold(3)
    one = ARDSearch(ARDvi(), [2.0, 9.0], "cv", cv=folds).fit(X, y).path_
    for cv in (list(folds.split(X)), iter(folds.split(X))):
        np.testing.assert_array_equal(
            ARDSearch(ARDvi(), [2.0, 9.0], "cv", cv=cv).fit(X, y).path_["score"], one["score"]
        )


def test_one_split_has_no_standard_error(data):
    """The least error wins."""
    X, y = data
    split = [(np.arange(50), np.arange(50, M))]
    search = ARDSearch(ARDvi(), [1.0, 4.0, 16.0], "cv", cv=split).fit(X, y)
    assert search.best_index_ == np.argmax(search.cv_results_["split0_test_score"])


@pytest.mark.parametrize(("criterion", "message"), [("stability", r"halves.*n_samples=1\."), ("cv", "n_samples=1")])
def test_one_row_is_too_few_to_split(data, criterion, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        ARDSearch(ARDvi(), criterion=criterion).fit(X[:1], y[:1])


def test_progress_with_the_time_left_is_shown_when_asked(data, capsys):
    X, y = data
    ARDSearch(ARDvi(), strengths=[1, 4, 16], criterion="cv", cv=3).fit(X, y)
    assert capsys.readouterr().err == ""
    ARDSearch(ARDvi(), strengths=[1, 4, 16], criterion="cv", cv=3, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert "path: 100%" in shown
    assert "cv: 100%" in shown
    assert "3/3" in shown


@pytest.mark.parametrize("weighted", [False, True])
def test_splitters_get_the_groups(data, weighted):
    """As scikit-learn's search with the same folds; rows without weight are left out of every fold."""
    X, y = data
    groups = np.arange(M) % 7
    weight = (np.arange(M) % 3).astype(float) if weighted else None
    by_groups = ARDSearch(SparseARD(), [0.01, 0.3], "cv", cv=LeaveOneGroupOut()).fit(X, y, weight, groups=groups)
    folds = list(LeaveOneGroupOut().split(X, y, groups))
    by_hand = ARDSearch(SparseARD(), [0.01, 0.3], "cv", cv=folds).fit(X, y, weight)
    assert by_groups.path_["split_error"].shape == (2, 7)
    np.testing.assert_array_equal(by_groups.path_["split_error"], by_hand.path_["split_error"])
    with pytest.raises(ValueError, match="groups"):
        ARDSearch(SparseARD(), [0.01, 0.3], "cv", cv=LeaveOneGroupOut()).fit(X, y)


def test_a_search_answers_as_the_model_it_chose(data):
    X, y = data
    search = ARDSearch(SparseARD(), [0.01, 0.3]).fit(X, y)
    best = search.best_estimator_
    assert str(search.summary()).removeprefix("ARDSearch") == str(best.summary()).removeprefix("SparseARD")
    np.testing.assert_array_equal(search.credible_interval(0.5), best.credible_interval(0.5))
    assert search.to_python() == best.to_python()


@pytest.mark.parametrize("model", [SparseARD(), ARDSearch(SparseARD(), [0.3])], ids=["estimator", "search"])
def test_warnings_point_at_the_line_that_asked(data, model):
    X, y = data
    twin = np.column_stack([X, X[:, 2] + 1e-4 * np.random.default_rng(1).normal(size=M)])
    with pytest.warns(AlternativesWarning) as told:
        model.fit(twin, y)
    with pytest.warns(ExtrapolationWarning) as told_later:
        model.predict(1e3 * twin)
    assert {one.filename for one in [*told, *told_later]} == {__file__}


def test_warnings_of_a_stream_point_at_the_line_that_asked(data):
    X, y = data
    model = SparseARD().partial_fit(np.column_stack([X, X[:, 2]]), y)
    with pytest.warns(AlternativesWarning) as told:
        model.coef_  # noqa: B018
    assert {one.filename for one in told} == {__file__}
