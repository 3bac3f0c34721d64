"""Rows that depend on each other: whitening is generalised least squares, and alarms are rare and deserved."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats
from scipy.sparse.linalg import aslinearoperator
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ardea
from ardea import ARD, ARDSearch, ARDvi, Operator, SparseARD
from ardea.estimators.advice import DependentRowsWarning, FewRowsWarning, SuspectDataWarning
from ardea.estimators.errors import GroupErrors, SeriesErrors
from ardea.estimators.residuals import harm_by_groups, harm_in_order

M, D = 120, 8


def autoregression(phi, shape, rng, burn_in=200):
    """Return series of variance 1 along the first axis."""
    x = rng.normal(size=(shape[0] + burn_in, *shape[1:]))
    for t in range(1, len(x)):
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * x[t]
    return x[burn_in:]


def series(seed, phi, m=M, d=D):
    """Return a series with two true terms."""
    rng = np.random.default_rng(seed)
    X = autoregression(0.9, (m, d), rng)
    return X, X[:, 0] - X[:, 1] + autoregression(phi, (m,), rng)


def grouped(seed, rho, m=M, d=D, size=3):
    """Return rows in groups with two true terms; half of the columns are constant within groups."""
    rng = np.random.default_rng(seed)
    codes = np.arange(m) // size
    X = rng.normal(size=(m, d))
    X[:, ::2] = rng.normal(size=(m // size, d))[codes][:, ::2]
    errors = np.sqrt(rho) * rng.normal(size=m // size)[codes] + np.sqrt(1 - rho) * rng.normal(size=m)
    return X, X[:, 0] - X[:, 1] + errors, codes


def told(model, *data, **more):
    """Fit, and return whether it said that rows depend on each other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data, **more)
    return any(issubclass(one.category, DependentRowsWarning) for one in caught)


ERRORS = {
    "series": SeriesErrors(np.arange(M), np.arange(M), (0.7, -0.3, 0.2)),
    "three series": SeriesErrors(np.arange(M), np.arange(M) % (M // 3), (0.9,)),
    "groups": GroupErrors(np.arange(M) % 7, np.ones(M), 0.6),
}


@pytest.mark.parametrize("name", ERRORS)
def test_whitening_is_an_inverse_root_of_a_correlation_matrix(name):
    """LVLᵀ = I with ones on the diagonal of V, and ln|V| as told."""
    inverse_root = ERRORS[name].whitened(np.eye(M))
    root = np.linalg.inv(inverse_root)
    V = root @ root.T
    np.testing.assert_allclose(V.diagonal(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(ERRORS[name].log_volume, np.linalg.slogdet(V)[1], rtol=1e-12)


def test_an_autoregression_of_order_one_has_powers_as_correlations():
    errors = SeriesErrors(np.arange(M), np.arange(M), (0.8,))
    root = np.linalg.inv(errors.whitened(np.eye(M)))
    np.testing.assert_allclose(root @ root.T, linalg.toeplitz(0.8 ** np.arange(M)), atol=1e-12)
    np.testing.assert_array_equal(errors.correlation, [0.8])


def test_rows_of_one_group_are_equally_correlated():
    errors = ERRORS["groups"]
    root = np.linalg.inv(errors.whitened(np.eye(M)))
    same = errors.codes[:, None] == errors.codes
    np.testing.assert_allclose(root @ root.T, np.where(same, 0.6, 0.0) + 0.4 * np.eye(M), atol=1e-12)


def dense_covariance(model, codes):
    """Return V of a fitted model, from what it says of its errors."""
    (found,) = model.error_correlation_[:1]
    if model.rows == "groups":
        return found * (codes[:, None] == codes) + (1 - found) * np.eye(M)
    return linalg.toeplitz(found ** np.arange(M))


@pytest.mark.parametrize("rows", ["series", "groups"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_fit_with_all_columns_kept_is_generalised_least_squares(rows, intercept):
    """Coefficients, intercept, σ² and intervals by dense algebra, in the units of the rows as given."""
    X, y, codes = grouped(3, 0.5) if rows == "groups" else (*series(0, 0.8), np.arange(M))
    model = ARD(always_keep=range(D), rows=rows, fit_intercept=intercept).fit(
        X, y, groups=None if rows == "series" else codes
    )
    assert model.error_correlation_.size == 1
    whole = np.column_stack([X, np.ones((M, int(intercept)))])
    inverse = np.linalg.inv(dense_covariance(model, codes))
    normal = whole.T @ inverse @ whole
    coef = np.linalg.solve(normal, whole.T @ inverse @ y)
    np.testing.assert_allclose(model.coef_, coef[:D], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, coef[D] if intercept else 0.0, rtol=1e-7)
    errors = y - whole @ coef
    degrees = M - whole.shape[1]
    np.testing.assert_allclose(model.noise_variance_, errors @ inverse @ errors / degrees, rtol=1e-6)
    np.testing.assert_allclose(model.covariance_, model.noise_variance_ * np.linalg.inv(normal)[:D, :D], rtol=1e-6)


def test_the_evidence_is_that_of_the_rows_as_given():
    """Without terms and intercept, with σ² known: the density of y under N(0, σ²V)."""
    y = autoregression(0.7, (M,), np.random.default_rng(3))
    model = ARDvi(1e9, noise_variance=1.0, fit_intercept=False, rows="series").fit(np.eye(M)[:, :2], y)
    assert not model.support_.any()
    assert model.error_correlation_.size == 1
    V = dense_covariance(model, None)
    np.testing.assert_allclose(model.log_evidence_, stats.multivariate_normal(cov=V).logpdf(y), rtol=1e-9)


@pytest.mark.parametrize("rows", ["series", "groups"])
def test_independent_rows_are_fitted_as_such(rows):
    """Where no dependence is found nothing changes, and that is the rule."""
    same = 0
    for seed in range(8):
        X, y, codes = grouped(seed, 0.0)
        plain, other = SparseARD().fit(X, y), SparseARD(rows=rows).fit(X, y, groups=codes if rows == "groups" else None)
        same += (unchanged := other.error_correlation_.size == 0)
        if unchanged:
            np.testing.assert_array_equal(plain.coef_, other.coef_)
    assert same >= stats.binom(8, 0.5).ppf(0.01)


@pytest.mark.parametrize("rows", ["series", "groups"])
def test_units_and_the_order_of_columns_do_not_matter(rows):
    X, y, codes = grouped(3, 0.5) if rows == "groups" else (*series(0, 0.8), None)
    scale = 10.0 ** np.arange(-4, 4)
    model = SparseARD(rows=rows).fit(X, y, groups=codes)
    scaled = clone(model).fit(X[:, ::-1] * scale, 1e3 * y, groups=codes)
    np.testing.assert_allclose(scaled.error_correlation_, model.error_correlation_, rtol=1e-6)
    np.testing.assert_allclose((scaled.coef_ * scale)[::-1], 1e3 * model.coef_, rtol=1e-6, atol=1e-9)


def test_groups_do_not_depend_on_their_labels_or_the_order_of_rows():
    X, y, codes = grouped(3, 0.5)
    order = np.random.default_rng(0).permutation(M)
    model = SparseARD(rows="groups").fit(X, y, groups=codes)
    other = SparseARD(rows="groups").fit(X[order], y[order], groups=[f"plot {code}" for code in codes[order]])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*rows are exact copies:ardea.estimators.advice.SuspectDataWarning")
def test_weights_are_repeated_rows_of_their_group():
    X, y, codes = grouped(3, 0.5)
    weight = np.random.default_rng(1).integers(0, 3, size=M)
    weighted = SparseARD(rows="groups").fit(X, y, sample_weight=weight, groups=codes)
    repeated = SparseARD(rows="groups").fit(
        *(np.repeat(one, weight, axis=0) for one in (X, y)), groups=np.repeat(codes, weight)
    )
    np.testing.assert_allclose(weighted.error_correlation_, repeated.error_correlation_, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def agreeing(seed, n=60, size=5):
    """Return n rows of three true terms, and for each of several copies the row it is of, mixed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 15))
    return X, X[:, :3].sum(axis=1) + rng.normal(size=n), rng.permutation(np.repeat(np.arange(n), size))


@pytest.mark.parametrize("size", [2, 5])
def test_groups_that_agree_count_as_one_row_each(size):
    """Copies in groups, however many and whether repeated or weighted, give the fit to one of each."""
    X, y, codes = agreeing(0, size=size)
    alone = SparseARD().fit(X, y)
    copied = SparseARD(rows="groups").fit(X[codes], y[codes], groups=codes)
    weighted = SparseARD(rows="groups").fit(X, y, sample_weight=np.full(60, size), groups=np.arange(60))
    for model in (copied, weighted):
        assert model.warnings_ == alone.warnings_ == []
        assert model.effective_rows_ == alone.effective_rows_ == 60
        for name in ("coef_", "coef_std_", "noise_variance_", "intercept_"):
            np.testing.assert_allclose(getattr(model, name), getattr(alone, name), rtol=1e-8)
        np.testing.assert_array_equal(model.error_correlation_, [1.0])


def test_groups_whose_rows_have_one_y_are_fitted_by_their_means():
    """A target of groups beside columns of single rows says nothing of differences within a group."""
    X, y, codes = agreeing(1)
    wide = X[codes] + np.random.default_rng(2).normal(size=(300, 15))
    means = np.stack([wide[codes == code].mean(axis=0) for code in range(60)])
    model, alone = SparseARD(rows="groups").fit(wide, y[codes], groups=codes), SparseARD().fit(means, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_std_, alone.coef_std_, rtol=1e-8)


@pytest.mark.parametrize("jitter", [0.0, 1e-4, 1e-2])
def test_false_terms_and_intervals_hold_where_rows_of_a_group_nearly_agree(jitter):
    """120 fits that should keep 0.24 false terms each; with the correlation held at 0.999 they kept 3 to 5."""
    false = held = 0
    for seed in range(120):
        X, y, codes = agreeing(100 + seed)
        y = y[codes] + jitter * np.random.default_rng(seed).normal(size=codes.size)
        model = SparseARD(rows="groups").fit(X[codes], y, groups=codes)
        low, high = model.credible_interval(kind="refit")[:3].T
        false, held = false + model.support_[3:].sum(), held + ((low <= 1) & (high >= 1)).sum()
    assert false <= 1.5 * 0.24 * 120
    assert held >= 0.9 * 360


@pytest.mark.parametrize("criterion", ["evidence", "cv", "stability"])
def test_groups_that_agree_are_searched(criterion):
    X, y, codes = agreeing(3, size=2)
    search = ARDSearch(SparseARD(rows="groups"), criterion=criterion, n_resamples=4, cv=GroupKFold(3))
    assert search.fit(X[codes], y[codes], groups=codes).best_estimator_.support_[:3].all()


def test_several_series_are_those_of_their_labels():
    """Series that are mixed row by row are found apart."""
    parts = [series(seed, 0.8, m=60) for seed in range(3)]
    one = [np.concatenate(data) for data in zip(*parts, strict=True)]
    mixed = [np.stack(data, axis=1).reshape(180, *data[0].shape[1:]) for data in zip(*parts, strict=True)]
    together = SparseARD(rows="series").fit(*one, groups=np.repeat(np.arange(3), 60))
    apart = SparseARD(rows="series").fit(*mixed, groups=np.tile(np.arange(3), 60))
    np.testing.assert_allclose(apart.coef_, together.coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("rows", ["series", "groups"])
def test_false_terms_and_intervals_hold(rows):
    """0.3 false terms and 5 % of intervals missed, within a factor 1.5 and the error of few fits."""
    false = {"independent": 0, rows: 0}
    missed, trials = 0, 8
    for seed in range(trials):
        X, y, codes = (
            grouped(100 + seed, 0.7, m=200, size=5) if rows == "groups" else (*series(100 + seed, 0.9, 200), None)
        )
        for how in false:
            model = SparseARD(rows=how)
            told(model, X, y, groups=codes)
            false[how] += int(model.support_[2:].sum())
        low, high = model.credible_interval()[:2].T
        missed += int(((low > [1, -1]) | (high < [1, -1])).sum())
    assert false[rows] <= stats.poisson(1.5 * 0.3 * trials).ppf(0.999)
    assert false[rows] < false["independent"]
    assert missed <= stats.binom(2 * trials, 1.5 * 0.05).ppf(0.999)


@pytest.mark.parametrize("columns", ["independent", "sorted", "series"])
def test_independent_errors_hardly_ever_alarm(columns):
    """Fewer than 1 in 1,000: none in so few fits, whatever the columns and the variances of the rows."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = autoregression(0.95 if columns == "series" else 0.0, (50, 10), rng)
        X = X[np.argsort(X[:, 0])] if columns == "sorted" else X
        y = X[:, 0] + rng.normal(size=50) * np.exp(np.linspace(-1, 1, 50) * (seed % 2))
        alarms += told(SparseARD(false_terms=1.0), X, y, groups=np.arange(50) // 5)
    assert alarms <= stats.binom(20, 1e-3).ppf(0.9999)


@pytest.mark.parametrize("size", [40, 400])
def test_the_chance_of_an_alarm_is_what_it_says(size):
    """Of independent errors, 1 in 100 has a chance below 0.01, or fewer."""
    rng = np.random.default_rng(0)
    columns, nothing, codes = np.cumsum(rng.normal(size=(size, 3)), axis=0), np.empty((size, 0)), np.arange(size) // 4
    chances = np.array(
        [
            (harm_in_order(columns, errors, nothing).chance, harm_by_groups(columns, errors, nothing, codes).chance)
            for errors in rng.normal(size=(500, size))
        ]
    )
    assert np.all((chances < 0.01).sum(axis=0) <= stats.binom(500, 0.01).ppf(0.9999))


def test_turning_every_other_sign_turns_the_correlation():
    """Series whose neighbours differ are series whose neighbours are alike, turned."""
    rng, turn = np.random.default_rng(3), (-1.0) ** np.arange(100)
    errors, columns = (autoregression(0.5, shape, rng) for shape in ((100,), (100, 4)))
    errors, columns = (x - x.mean(axis=0) - np.multiply.outer(turn, (turn @ x) / 100) for x in (errors, columns))
    alike = harm_in_order(columns, errors, np.empty((100, 0)))
    apart = harm_in_order(columns * turn[:, None], errors * turn, np.empty((100, 0)))
    np.testing.assert_allclose([apart.correlation, apart.inflation], [-alike.correlation, alike.inflation])
    assert max(alike.chance, apart.chance) < 1e-3  # not the same: the mean was taken away, what alternates was not
    assert alike.lag == apart.lag == 1


def test_differences_of_what_is_independent_are_told():
    """Of 100 rows, most; 15 of these by the largest correlation at some lag alone."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, noise = np.diff(rng.normal(size=(101, 10)), axis=0), np.diff(rng.normal(size=101))
        found += told(SparseARD(), X, X[:, 0] - X[:, 1] + noise)
    assert found >= 26


def test_groups_none_of_whose_rows_count_are_not_there():
    rng, labels = np.random.default_rng(3), np.repeat(np.arange(20), 3)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=20)[labels] + rng.normal(size=60)
    for gone in (0, 7, 19):
        used = labels != gone
        model = SparseARD(rows="groups").fit(X, y + X[:, 0], sample_weight=1.0 * used, groups=labels)
        rest = SparseARD(rows="groups").fit(X[used], (y + X[:, 0])[used], groups=labels[used])
        np.testing.assert_allclose(model.coef_, rest.coef_)
        np.testing.assert_allclose(model.coef_std_, rest.coef_std_)


@pytest.mark.parametrize("rows", ["independent", "series", "groups", "unequal"])
def test_columns_always_kept_that_fit_all_rows_are_refused(rows):
    rng = np.random.default_rng(0)
    X, y, labels = rng.normal(size=(15, 20)), rng.normal(size=15), np.arange(15) // 3
    with pytest.raises(ValueError, match="fit the 15 rows exactly"):
        SparseARD(rows=rows, always_keep=list(range(20))).fit(X, y, groups=labels if rows == "groups" else None)


def test_levels_are_offered_in_place_of_differences():
    rng = np.random.default_rng(0)
    X, noise = np.diff(rng.normal(size=(201, 8)), axis=0), np.diff(rng.normal(size=201))
    with pytest.warns(DependentRowsWarning, match=r"correlated \(-0\.\d+\).*fit the levels instead"):
        SparseARD().fit(X, X[:, 0] + noise)


def test_inflation_is_that_of_the_variance_of_least_squares():
    """v of errors and columns with φ = 0.8 and 0.9: (1 + 0.72)/(1 − 0.72) for long series."""
    rng = np.random.default_rng(0)
    columns, errors = autoregression(0.9, (4000, 40), rng), autoregression(0.8, (4000,), rng)
    found = harm_in_order(columns, errors, np.empty((4000, 0)))
    assert found.inflation == pytest.approx(1.72 / 0.28, rel=0.15)
    assert found.correlation == pytest.approx(0.8, abs=0.05)


def test_dependent_rows_are_told_with_their_effective_number():
    X, y = series(0, 0.8, m=400)
    with pytest.warns(
        DependentRowsWarning, match=r"400 rows tell about as much as \d+ independent ones.*rows='series'"
    ):
        model = SparseARD().fit(X, y)
    assert 30 < model.effective_rows_ < 200
    assert "python -m ardea.explain dependent_rows" in model.warnings_[0]
    assert not told(SparseARD(rows="series"), X, y)
    X, y, codes = grouped(1, 0.6, m=400, size=4)
    with pytest.warns(DependentRowsWarning, match="rows of one group are correlated.*rows='groups'"):
        SparseARD().fit(X, y, groups=codes)
    assert not told(SparseARD(rows="groups"), X, y, groups=codes)


def test_few_groups_are_told_where_columns_are_constant_within_them():
    X, y, codes = grouped(3, 0.5, size=10)
    with pytest.warns(FewRowsWarning, match="4 of the columns are constant within groups, so that 12 groups"):
        SparseARD(rows="groups").fit(X, y, groups=codes)
    with pytest.warns(
        FewRowsWarning, match="One of the columns is constant within groups, so that 12 groups tell about i"
    ):
        SparseARD(rows="groups").fit(X[:, [0, *range(1, 8, 2)]], y, groups=codes)
    told(model := SparseARD(rows="groups"), X[:, 1::2], y - X[:, 0], groups=codes)
    assert not any("constant within groups" in text for text in model.warnings_)


def test_dependence_that_harms_nothing_is_not_told():
    """Errors of a series beside columns that are not; the other way round; rows sorted by y; rows given twice."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    noise, slow = rng.normal(size=400), autoregression(0.9, (400, 30), rng)
    y = X[:, 0] + noise
    order = np.argsort(y)
    assert not told(SparseARD(), X, X[:, 0] + autoregression(0.8, (400,), rng))
    assert not told(SparseARD(), slow, slow[:, 0] + noise)
    assert not told(SparseARD(), X[order], y[order])
    assert not told(SparseARD(), np.repeat(X, 3, axis=0), np.repeat(y, 3))


def test_a_model_with_dependent_rows_is_saved_and_loaded(tmp_path):
    X, y = series(0, 0.8)
    model = SparseARD(rows="series").fit(X, y)
    ardea.save(model, tmp_path / "model.ardea")
    again = ardea.load(tmp_path / "model.ardea")
    for name in ("coef_", "effective_rows_", "error_correlation_", "log_evidence_", "rows"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


@pytest.mark.parametrize("criterion", ["evidence", "cv", "stability"])
def test_a_search_knows_of_rows_too(criterion):
    """Among both, the evidence chooses the series; resampling takes parts of rows that were made independent."""
    X, y = series(0, 0.9)
    search = ARDSearch([ARDvi(), ARDvi(rows="series")], [[4.0, 16.0]] * 2, criterion, n_resamples=4, random_state=0)
    told(search, X, y)
    assert search.best_estimator_.support_[:2].all()
    if criterion == "evidence":
        assert search.best_estimator_.rows == "series"
        alone = ARDvi(search.best_strength_, rows="series").fit(X, y)
        np.testing.assert_allclose(search.coef_, alone.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(search.path_["log_evidence"][search.best_index_], alone.log_evidence_, rtol=1e-9)


def test_groups_are_routed():
    X, y, codes = grouped(3, 0.5)
    direct = SparseARD(rows="groups").fit(X, y, groups=codes)
    with config_context(enable_metadata_routing=True):
        model = SparseARD(rows="groups").set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(with_mean=False, with_std=False), model).fit(X, y, groups=codes)
    np.testing.assert_array_equal(routed[-1].coef_, direct.coef_)


def test_what_cannot_be_made_independent_is_refused():
    X, y, codes = grouped(0, 0.5)
    cases = [
        (lambda: SparseARD(rows="sorted").fit(X, y), "choose one of 'independent', 'series', 'groups', 'unequal'"),
        (lambda: SparseARD(rows="groups").fit(X, y), "needs the groups"),
        (lambda: SparseARD(rows="series").partial_fit(X, y), "needs all rows at once"),
        (lambda: SparseARD(rows="series").fit(X, np.column_stack([y, y])), "one target"),
        (lambda: SparseARD(rows="series").fit(X, y, sample_weight=np.arange(M)), "takes no sample_weight"),
        (
            lambda: SparseARD(rows="series").fit(Operator(aslinearoperator(X), np.linalg.norm(X, axis=0)), y),
            "needs rows in memory",
        ),
        (lambda: SparseARD().fit(X, y, groups=codes[1:]), "one label for every row"),
        (lambda: SparseARD().fit(X, y, groups=np.where(codes == 1, np.nan, codes)), "no label for row 3"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=text):
            call()


def test_predictions_are_those_of_the_rows_as_given():
    """`predict` and `score` know nothing of the whitening; the deviation is that of a new observation."""
    X, y = series(5, 0.9, m=400)
    model = SparseARD(rows="series").fit(X, y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, X @ model.coef_ + model.intercept_)
    assert 0.5 < np.std(y - mean) / np.median(std) < 1.5
    assert model.score(X, y) == pytest.approx(LinearRegression().fit(X, y).score(X, y), abs=0.2)


def test_errors_that_return_after_a_week_are_found():
    """Only the seventh row before acts: orders between, which do not pay, do not end the search."""
    rng = np.random.default_rng(3)

    def weekly(shape):
        out = rng.normal(size=shape)
        for i in range(7, len(out)):
            out[i] += 0.9 * out[i - 7]
        return out

    X = weekly((350, 12))
    model = SparseARD(rows="series").fit(X, X[:, 0] - X[:, 1] + weekly(350))
    assert model.error_correlation_.size >= 7
    assert model.error_correlation_[6] == pytest.approx(0.9, abs=0.1)
    assert model.support_[:2].all()


def seasonal(seed, lag, m=300, d=12):
    """Return rows whose columns and errors remember only the row of one season before; two columns are true."""
    rng = np.random.default_rng(seed)
    both = rng.normal(size=(m + 5 * lag, d + 1))
    for t in range(lag, len(both)):
        both[t] += 0.8 * both[t - lag]
    X, errors = both[-m:, :d], both[-m:, d]
    return X, X[:, 0] - X[:, 1] + errors


@pytest.mark.parametrize("lag", [2, 4, 7, 12, 24])
def test_errors_of_a_season_are_told_with_its_length(lag):
    for seed in range(3):
        with pytest.warns(DependentRowsWarning, match=f"Errors of rows {lag} apart \\(a season .* to always_keep"):
            model = SparseARD().fit(*seasonal(seed, lag))
        assert model.effective_rows_ < 200


@pytest.mark.parametrize("size", [40, 41, 400])
def test_the_chance_of_a_correlation_at_some_lag_is_what_it_says(size):
    """Of independent errors, however heavy their tails, 1 in 100 has a chance below 0.01, or fewer."""
    rng = np.random.default_rng(0)
    columns, nothing = np.cumsum(rng.normal(size=(size, 3)), axis=0), np.empty((size, 0))
    for errors in (rng.normal(size=(500, size)), rng.standard_t(3, size=(500, size))):
        chances = np.array([harm_in_order(columns, one, nothing).chance for one in errors])
        assert (chances < 0.01).sum() <= stats.binom(500, 0.02).ppf(0.9999)  # of two tests


def test_a_season_as_long_as_an_eighth_of_the_rows_is_learned():
    """Lag 12 of 100 rows: the errors held ten rows at most, and two false terms were kept in every fit."""
    false = held = found = 0
    for seed in range(12):
        X, y = seasonal(seed, 12, m=100)
        model = SparseARD(rows="series")
        told(model, X, y)
        found += model.error_correlation_.size >= 12 and model.error_correlation_[11] > 0.4
        low, high = model.credible_interval(kind="refit")[:2].T
        held += int(((low <= [1, -1]) & (high >= [1, -1])).sum())
        false += int(model.support_[2:].sum())
    assert found >= 11
    assert false <= 12
    assert held >= 17


def test_independent_rows_have_no_season():
    """One lag of many is bought at the price of the choice."""
    sizes = [
        SparseARD(rows="series").fit(X, X[:, 0] + rng.normal(size=100)).error_correlation_.size
        for rng in map(np.random.default_rng, range(30))
        for X in [rng.normal(size=(100, 4))]
    ]
    assert sum(size > 10 for size in sizes) <= 4


def test_a_model_of_changes_that_misses_the_levels_says_so():
    """A curve that no column follows: with its square among the columns nothing is left to say."""
    for seed in range(4):
        rng, t = np.random.default_rng(seed), np.linspace(0, 1, 100)
        X = np.column_stack([t, rng.normal(size=100)])
        y = 10 * (t - 0.3) ** 2 + 0.3 * X[:, 1] + 0.1 * rng.normal(size=100)
        with pytest.warns(DependentRowsWarning, match="further off than its mean"):
            model = SparseARD(rows="series").fit(X, y)
        assert model.score(X, y) < 0
        whole = SparseARD(rows="series").fit(np.column_stack([X, t**2]), y)
        assert whole.score(np.column_stack([X, t**2]), y) > 0.9
        assert not any("further off" in one for one in whole.warnings_)


def test_a_small_design_with_few_terms_is_not_said_to_interpolate():
    """An unreplicated 2⁴ factorial with all products: fifteen columns on sixteen rows, of which three matter."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, 16).T
    products = [np.prod(signs[:, [j for j in range(4) if k >> j & 1]], axis=1) for k in range(1, 16)]
    for seed in range(20):
        y = signs @ [3.0, -2.0, 2.0, 0.0] + 0.5 * np.random.default_rng(seed).normal(size=16)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseARD().fit(np.column_stack(products), y)
        few = np.count_nonzero(model.coef_) <= 4
        assert not (few and any("close to interpolating" in str(one.message) for one in caught))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_rows_less_the_means_of_their_groups_are_told(size):
    """Of groups that follow each other, or are given; rows as they were, and whole tables less their means, are not."""
    rng = np.random.default_rng(size)
    codes, mixed = np.repeat(np.arange(240 // size), size), rng.permutation(240)
    X = rng.normal(size=(240, 15)) + 3
    y = X[:, 0] + rng.normal(size=240 // size)[codes] + rng.normal(size=240)
    means = np.array([np.column_stack([X, y])[codes == g].mean(axis=0) for g in range(240 // size)])
    within = np.column_stack([X, y]) - means[codes]
    text = f"add up to zero in {240 // size} groups .* as much as {240 - 240 // size}"
    with pytest.warns(DependentRowsWarning, match=text):
        SparseARD().fit(within[:, :-1], within[:, -1])
    with pytest.warns(DependentRowsWarning, match=text):
        SparseARD(rows="groups").fit(within[mixed, :-1], within[mixed, -1], groups=codes[mixed])
    for columns, target in ((X, y), (X - X.mean(axis=0), y - y.mean())):
        model = SparseARD(rows="groups").fit(columns, target, groups=codes)
        assert not any("add up to zero" in one for one in model.warnings_)


def test_a_series_whose_labels_are_out_of_order_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, D))
    y = X[:, 0] + rng.normal(size=M)
    table = pd.DataFrame(X, index=pd.date_range("2024-01-01", periods=M, freq="h")).add_prefix("c")
    mixed = rng.permutation(M)
    with pytest.warns(DependentRowsWarning, match=r"X\.index are not in order.*sort_index"):
        SparseARD(rows="series").fit(table.iloc[mixed], y[mixed])
    hours = table.set_axis(np.arange(M) % 24)  # begins anew every day
    panel = table.set_axis(np.arange(M) // 3)  # three series, sorted by time
    SparseARD(rows="series").fit(table, y)
    SparseARD(rows="series").fit(table[::-1], y[::-1])
    SparseARD(rows="series").fit(hours, y)
    SparseARD(rows="series").fit(panel, y, groups=np.arange(M) % 3)


def test_blocks_left_out_of_a_search_are_whole_groups():
    X, y, codes = grouped(0, 0.5)
    search = ARDSearch(SparseARD(rows="groups"), criterion="cv", cv=4).fit(X, y, groups=codes)
    expected = ARDSearch(SparseARD(rows="groups"), criterion="cv", cv=GroupKFold(4)).fit(X, y, groups=codes)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


@pytest.mark.filterwarnings("ignore:.*columns are constant within groups")
@pytest.mark.parametrize(("groups", "size"), [(50, 4), (12, 20), (5, 40)])
def test_beside_an_indicator_of_every_group_nothing_is_shared(groups, size):
    """The restricted likelihood is the same for all correlations: independent rows, as least squares takes them."""
    rng = np.random.default_rng(groups)
    codes = np.repeat(np.arange(groups), size)
    X = np.column_stack([np.eye(groups)[codes][:, 1:], rng.normal(size=(groups * size, 5))])
    y = X @ rng.normal(size=X.shape[1]) + 3 * X[:, -1] + rng.normal(size=groups * size)
    kept = list(range(X.shape[1]))
    model = SparseARD(rows="groups", always_keep=kept).fit(X, y, groups=codes)
    alone = SparseARD(always_keep=kept).fit(X, y)
    assert model.noise_variance_ == pytest.approx(alone.noise_variance_, rel=1e-9)
    np.testing.assert_allclose(model.coef_std_, alone.coef_std_, rtol=1e-9)


def test_what_is_told_of_labels_stays_with_the_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(M, D))).add_prefix("c")
    y = X["c0"] + rng.normal(size=M)
    with pytest.warns(SuspectDataWarning, match="in another order"):
        model = SparseARD().fit(X, y[::-1].set_axis(y.index[::-1]).sample(frac=1, random_state=0))
    assert any("in another order" in text for text in model.warnings_)
