"""Ardea as an optimizer of the installed PySINDy."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.utils.validation import check_is_fitted

from ardea import ARD, MSTSBL, ARDSearch, ARDvi, CollapseWarning, SparseARD
from conftest import FAMILY

ps = pytest.importorskip("pysindy")

from pysindy.utils import supports_multiple_targets  # noqa: E402

from ardea.dynamics import Discovery, systems  # noqa: E402
from ardea.dynamics.parametric import as_library  # noqa: E402
from ardea.pysindy import ARDOptimizer  # noqa: E402

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.filterwarnings("ignore::pysindy.utils._axes.AxesWarning")


class Recorder(ARDOptimizer):
    """Remembers the rows that PySINDy passed."""

    def fit(self, x_, y, sample_weight=None, **kws):
        self.rows = np.array(x_, dtype=float), np.array(y, dtype=float)
        return super().fit(x_, y, sample_weight=sample_weight, **kws)


def regression(seed=0, m=120, d=8, targets=2, sigma=0.1):
    """Columns of very different size, three terms a target."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-2, 3, d)
    x = rng.normal(size=(m, d)) * scale
    coef = np.zeros((targets, d))
    for row in coef:
        row[rng.choice(d, 3, replace=False)] = rng.choice([-1, 1], 3) * rng.uniform(1, 3, 3)
    coef /= scale
    y = x @ coef.T
    return x, y + sigma * y.std(axis=0) * rng.normal(size=y.shape), coef


def measured_lorenz(seed=0, noise=0.05):
    """States of the Lorenz system with derivatives measured: white noise, so that all assumptions hold."""
    t, x = systems.lorenz63().noisy(0.0, seed=seed)
    right = np.column_stack(
        [10 * (x[:, 1] - x[:, 0]), x[:, 0] * (28 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8 / 3 * x[:, 2]]
    )
    return t, x, right + noise * right.std(axis=0) * np.random.default_rng(seed).normal(size=right.shape)


# In SINDy, with every library


def burgers_field():
    x, t = np.linspace(-4, 4, 48, endpoint=False), np.linspace(0, 2, 40)
    width = np.sqrt(1 + 4 * 0.3 * t)
    u = np.exp(-((x[:, None] - 0.5 * t) ** 2) / width**2) / width + 0.2 * np.sin(np.pi * x[:, None] / 4)
    return x, t, u[:, :, None]


LORENZ_LIBRARIES = {
    "polynomial": lambda t: ps.PolynomialLibrary(3),
    "fourier": lambda t: ps.FourierLibrary(2),
    "custom": lambda t: ps.CustomLibrary([lambda a: a, lambda a, b: a * b, lambda a: np.cos(a)]),
    "identity": lambda t: ps.IdentityLibrary(),
    "concatenated": lambda t: ps.PolynomialLibrary(2) + ps.FourierLibrary(1),
    "tensored": lambda t: ps.IdentityLibrary() * ps.PolynomialLibrary(1),
    "generalized": lambda t: ps.GeneralizedLibrary(
        [ps.PolynomialLibrary(2), ps.FourierLibrary(1)],
        tensor_array=[[1, 1]],
        inputs_per_library=[[0, 1, 2], [0]],
    ),
    "pde of order 0": lambda t: ps.PDELibrary(ps.PolynomialLibrary(2, include_bias=False)),
    "weak": lambda t: ps.WeakPDELibrary(
        ps.PolynomialLibrary(2, include_bias=False), spatiotemporal_grid=t, K=150, include_bias=True
    ),
}


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AlternativesWarning")
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.DependentRowsWarning")  # terms are missing
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.UnequalErrorsWarning")  # for the same reason
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.WeakEvidenceWarning")
@pytest.mark.filterwarnings("ignore:.*exact copies")  # PySINDy places some weak windows twice
@pytest.mark.parametrize("name", LORENZ_LIBRARIES)
def test_every_library_gives_the_estimator_its_rows(name):
    t, x, x_dot = measured_lorenz()
    np.random.seed(0)  # noqa: NPY002  (PySINDy places weak windows with it)
    given = None if name in {"weak", "pde of order 0"} else x_dot
    model = ps.SINDy(optimizer=Recorder(), feature_library=LORENZ_LIBRARIES[name](t)).fit(x, t, x_dot=given)
    direct = SparseARD(fit_intercept=False).fit(*model.optimizer.rows)
    np.testing.assert_array_equal(model.coefficients(), direct.coef_)
    np.testing.assert_array_equal(model.optimizer.coef_std_, direct.coef_std_)
    assert len(model.equations()) == 3
    assert model.optimizer.complexity == direct.support_.sum()


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.DependentRowsWarning")  # of differences
@pytest.mark.parametrize("weak", [False, True])
def test_pde_libraries(weak):
    x, t, u = burgers_field()
    terms = ps.PolynomialLibrary(2, include_bias=False)
    np.random.seed(0)  # noqa: NPY002
    if weak:
        grid = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1)
        library = ps.WeakPDELibrary(terms, derivative_order=2, spatiotemporal_grid=grid, K=80)
    else:
        library = ps.PDELibrary(terms, derivative_order=2, spatial_grid=x)
    model = ps.SINDy(optimizer=Recorder(), feature_library=library).fit(u, t)
    direct = SparseARD(fit_intercept=False).fit(*model.optimizer.rows)
    np.testing.assert_array_equal(model.coefficients(), direct.coef_)
    assert model.coefficients().shape == (1, len(model.get_feature_names()))


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AlternativesWarning")
def test_parameterized_library_and_control():
    t, x, x_dot = measured_lorenz()
    u = np.sin(t)[:, None]
    library = ps.ParameterizedLibrary(
        ps.PolynomialLibrary(1), ps.PolynomialLibrary(2), num_parameters=1, num_features=3
    )
    model = ps.SINDy(optimizer=Recorder(), feature_library=library).fit(x, t, x_dot=x_dot, u=u)
    direct = SparseARD(fit_intercept=False).fit(*model.optimizer.rows)
    np.testing.assert_array_equal(model.coefficients(), direct.coef_)


def test_finds_lorenz_where_rows_are_independent():
    t, x, x_dot = measured_lorenz()
    model = ps.SINDy(optimizer=ARDOptimizer(), feature_library=ps.PolynomialLibrary(3))
    model.fit(x, t, x_dot=x_dot, feature_names=["x", "y", "z"])
    names = np.array(model.get_feature_names())
    found = [set(names[row]) for row in model.optimizer.ind_]
    assert found == [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]
    truth = np.zeros_like(model.optimizer.coef_)
    for row, name, value in [
        (0, "x", -10), (0, "y", 10), (1, "x", 28), (1, "y", -1), (1, "x z", -1), (2, "z", -8 / 3), (2, "x y", 1),
    ]:  # fmt: skip
        truth[row, list(names).index(name)] = value
    kept = model.optimizer.ind_
    t_statistics = (model.optimizer.coef_ - truth)[kept] / model.optimizer.coef_std_[kept]
    assert np.abs(t_statistics).max() < 4
    np.testing.assert_allclose(model.predict(x), model.optimizer.Theta_ @ model.optimizer.coef_.T, atol=1e-9)


def test_several_trajectories():
    t, x, x_dot = measured_lorenz()
    whole = ps.SINDy(optimizer=ARDOptimizer()).fit(x, t, x_dot=x_dot)
    parts = ps.SINDy(optimizer=ARDOptimizer()).fit(
        [x[:100], x[100:]], [t[:100], t[100:]], x_dot=[x_dot[:100], x_dot[100:]]
    )
    np.testing.assert_allclose(parts.coefficients(), whole.coefficients(), rtol=1e-9, atol=1e-12)


# The posterior


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_attributes_are_the_estimators(kind):
    x, y, _ = regression()
    fitted, direct = ARDOptimizer(kind(fit_intercept=False)).fit(x, y), kind(fit_intercept=False).fit(x, y)
    np.testing.assert_array_equal(fitted.coef_, direct.coef_)
    np.testing.assert_array_equal(fitted.coef_std_, direct.coef_std_)
    np.testing.assert_array_equal(fitted.ind_, direct.support_)
    np.testing.assert_array_equal(fitted.noise_variance_, direct.noise_variance_)
    for ours, theirs in zip(fitted.coef_covariance_, direct.covariance_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("unbias", [False, True])
def test_normalisation_scales_the_covariance_back(unbias):
    """Calibrated fits do not depend on the units of the columns, so normalising must change nothing."""
    x, y, _ = regression()
    plain = ARDOptimizer(unbias=unbias).fit(x, y)
    normalised = ARDOptimizer(normalize_columns=True, unbias=unbias).fit(x, y)
    np.testing.assert_array_equal(plain.ind_, normalised.ind_)
    np.testing.assert_allclose(normalised.coef_, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(normalised.coef_std_, plain.coef_std_, rtol=1e-5)
    for ours, theirs in zip(normalised.coef_covariance_, plain.coef_covariance_, strict=True):
        size = np.sqrt(np.outer(theirs.diagonal(), theirs.diagonal()))
        np.testing.assert_allclose(ours / size, theirs / size, atol=1e-5)
    np.testing.assert_allclose(normalised.history_[-1], normalised.coef_, rtol=1e-12)


def test_normalisation_changes_what_a_threshold_means():
    x, y, _ = regression()
    norms = np.linalg.norm(x, axis=0)
    tau = 0.5
    normalised = ARDOptimizer(MSTSBL(tau, fit_intercept=False), normalize_columns=True).fit(x, y)
    direct = MSTSBL(tau, fit_intercept=False).fit(x / norms, y)
    np.testing.assert_array_equal(normalised.ind_, direct.support_)
    np.testing.assert_allclose(normalised.coef_std_, direct.coef_std_ / norms, rtol=1e-12)


def test_unbias_is_least_squares_with_its_covariance():
    x, y, _ = regression(targets=1)
    fitted = ARDOptimizer(unbias=True).fit(x, y)
    columns = x[:, fitted.ind_[0]]
    expected, rss = np.linalg.lstsq(columns, y[:, 0], rcond=None)[:2]
    np.testing.assert_allclose(fitted.coef_[0, fitted.ind_[0]], expected, rtol=1e-8)
    variance = rss[0] / (len(y) - columns.shape[1])
    covariance = variance * np.linalg.inv(columns.T @ columns)
    np.testing.assert_allclose(fitted.coef_covariance_[0], covariance, rtol=1e-6)
    shrunk = ARDOptimizer().fit(x, y)
    assert np.linalg.norm(shrunk.coef_ - fitted.coef_) > 1e-9


def test_zeros_are_exact_and_tiny_coefficients_stay():
    """PySINDy calls |coef| ≤ 1e-14 zero; the support must not depend on the units."""
    x, y, _ = regression()
    fitted, tiny = ARDOptimizer().fit(x, y), ARDOptimizer().fit(x * 2.0**60, y)
    np.testing.assert_array_equal(fitted.ind_, fitted.coef_ != 0)
    np.testing.assert_array_equal(tiny.ind_, fitted.ind_)
    np.testing.assert_array_equal(tiny.coef_ * 2.0**60, fitted.coef_)


def test_always_keep():
    x, y, coef = regression(targets=1)
    spare = int(np.flatnonzero(coef[0] == 0)[0])
    fitted = ARDOptimizer(SparseARD(fit_intercept=False, always_keep=[spare])).fit(x, y)
    assert fitted.ind_[0, spare]
    assert fitted.coef_std_[0, spare] > 0


def test_a_search_chooses_for_every_target():
    x, y, _ = regression()
    search = ARDSearch(ARDvi(fit_intercept=False))
    fitted = ARDOptimizer(search).fit(x, y)
    for row, target in enumerate(y.T):
        best = clone(search).fit(x, np.ascontiguousarray(target)).best_estimator_
        np.testing.assert_array_equal(fitted.coef_[row], best.coef_)
    assert [one.best_index_ for one in fitted.estimator_]


# Weights


def test_weights_are_relative_precisions():
    x, y, _ = regression()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(x))
    fitted = ARDOptimizer().fit(x, y, sample_weight=weight)
    root = np.sqrt(weight)[:, None]
    scaled = ARDOptimizer().fit(x * root, y * root)
    np.testing.assert_allclose(fitted.coef_, scaled.coef_, rtol=1e-9)
    more = ARDOptimizer().fit(x, y, sample_weight=4 * weight)
    np.testing.assert_array_equal(more.coef_, fitted.coef_)
    np.testing.assert_allclose(more.coef_std_, fitted.coef_std_, rtol=1e-12)
    np.testing.assert_allclose(more.noise_variance_, 4 * fitted.noise_variance_, rtol=1e-12)
    column = ARDOptimizer().fit(x, y, sample_weight=weight[:, None])
    np.testing.assert_array_equal(column.coef_, fitted.coef_)


def test_one_weight_for_all_changes_nothing():
    x, y, _ = regression()
    np.testing.assert_array_equal(ARDOptimizer().fit(x, y, sample_weight=1.0).coef_, ARDOptimizer().fit(x, y).coef_)


def test_rows_of_weight_zero_are_left_out():
    x, y, _ = regression()
    weight = np.ones(len(x))
    weight[::2] = 0
    fitted, half = ARDOptimizer().fit(x, y, sample_weight=weight), ARDOptimizer().fit(x[1::2], y[1::2])
    np.testing.assert_array_equal(fitted.coef_, half.coef_)
    np.testing.assert_array_equal(fitted.coef_std_, half.coef_std_)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_with_nan_are_left_out(weighted):
    x, y, _ = regression()
    gaps = y.copy()
    gaps[5, 0] = np.nan
    sound = np.arange(len(x)) != 5
    weight = np.ones(len(x)) if weighted else None
    fitted = ARDOptimizer().fit(x, gaps, sample_weight=weight)
    np.testing.assert_array_equal(fitted.coef_, ARDOptimizer().fit(x[sound], y[sound]).coef_)


@pytest.mark.parametrize("weight", [-np.ones(120), np.zeros(120), np.ones(7), np.full(120, np.nan)])
def test_bad_weights(weight):
    x, y, _ = regression()
    with pytest.raises(ValueError, match="sample_weight"):
        ARDOptimizer().fit(x, y, sample_weight=weight)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.DependentRowsWarning")  # two systems
def test_weights_mix_two_systems_as_least_squares_does():
    """x' = -y, y' = x twice and the same twice as fast once: the mean of the rates, by weight.

    PySINDy's next release joins the weights of all trajectories and passes them to optimizer.fit by name.
    """
    angle = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    slow = np.column_stack([np.cos(angle), np.sin(angle)])
    turned = slow @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    x, x_dot = np.vstack([slow, slow, slow]), np.vstack([turned, turned, 2 * turned])
    every_term = SparseARD(fit_intercept=False, always_keep=[0, 1])
    for weight, rate in ((np.ones(150), 4 / 3), (np.repeat([1.0, 1.0, 10.0], 50), 22 / 12)):
        fitted = ARDOptimizer(every_term).fit(x, x_dot, sample_weight=weight)
        np.testing.assert_allclose(fitted.coef_, [[0, -rate], [rate, 0]], atol=1e-12)


# Refusals


@pytest.mark.parametrize(
    "estimator", [SparseARD(), ARDSearch(ARDvi()), ARDSearch([ARDvi(fit_intercept=False), ARDvi()])]
)
def test_an_intercept_is_refused(estimator):
    x, y, _ = regression()
    with pytest.raises(ValueError, match="fit_intercept=False"):
        ARDOptimizer(estimator).fit(x, y)


def test_other_estimators_are_refused():
    x, y, _ = regression()
    with pytest.raises(TypeError, match="WrappedOptimizer"):
        ARDOptimizer(Lasso(fit_intercept=False)).fit(x, y)


def test_a_column_of_zeros_cannot_be_normalised():
    x, y, _ = regression()
    x[:, 3] = 0
    with pytest.raises(ValueError, match="Columns 3 "):
        ARDOptimizer(normalize_columns=True).fit(x, y)
    assert not ARDOptimizer().fit(x, y).ind_[:, 3].any()


def test_unbias_with_too_few_rows():
    rng = np.random.default_rng(1)  # plain ARD keeps as many of these columns as there are rows
    x, y = rng.normal(size=(8, 16)), rng.normal(size=8)
    with pytest.raises(ValueError, match="unbias"), pytest.warns(CollapseWarning):
        ARDOptimizer(ARD(fit_intercept=False), unbias=True).fit(x, y)


def test_without_pysindy_the_extra_is_named():
    script = "import sys; sys.modules['pysindy'] = None\nimport ardea\nimport ardea.pysindy"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'ardea[pysindy]'" in done.stderr


# What PySINDy expects of its own optimizers


def test_pysindy_sees_several_targets():
    assert supports_multiple_targets(ARDOptimizer())


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ARDOptimizer().predict(np.ones((1, 3)))
    with pytest.raises(NotFittedError):
        _ = ARDOptimizer().complexity


@pytest.mark.parametrize("parameters", [{}, {"normalize_columns": True}, {"copy_X": False}, {"unbias": True}])
def test_one_target_in_one_dimension(parameters):
    x, y, _ = regression(targets=1)
    fitted = ARDOptimizer(**parameters).fit(x.copy(), y[:, 0].copy())
    check_is_fitted(fitted)
    assert fitted.coef_.shape == fitted.ind_.shape == (1, x.shape[1])
    assert fitted.complexity == 3
    assert fitted.predict(x).shape == (len(x), 1)


def test_wrapped_by_pysindy():
    x, y, _ = regression()
    wrapped = ps.WrappedOptimizer(ARDOptimizer(), unbias=False).fit(x, y)
    np.testing.assert_allclose(wrapped.coef_, ARDOptimizer().fit(x, y).coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [
        {"bagging": True},
        {"bagging": True, "replace": False, "n_subset": 60},
        {"library_ensemble": True},
        {"bagging": True, "library_ensemble": True},
    ],
)
def test_ensembles(parameters):
    x, y, coef = regression(sigma=0.01)
    np.random.seed(0)  # noqa: NPY002  (EnsembleOptimizer draws from it)
    ensemble = ps.EnsembleOptimizer(ARDOptimizer(), n_models=7, **parameters).fit(x, y)
    assert ensemble.coef_.shape == coef.shape
    assert len(ensemble.coef_list) == 7
    if "library_ensemble" not in parameters:
        assert np.all((np.asarray(ensemble.coef_list) != 0).mean(axis=0)[coef != 0] == 1)


@pytest.mark.parametrize("parameters", [{}, {"bagging": True, "n_models": 0}, {"bagging": True, "n_subset": 0}])
def test_bad_ensembles(parameters):
    with pytest.raises(ValueError, match=r"."):
        ps.EnsembleOptimizer(opt=ARDOptimizer(), **parameters)


def test_verbose(capsys):
    x, y, _ = regression()
    ARDOptimizer(SparseARD(fit_intercept=False, verbose=1)).fit(x, y)
    assert "steps" in capsys.readouterr().out


def test_clone_and_parameters():
    optimizer = ARDOptimizer(ARDvi(3.0, fit_intercept=False), normalize_columns=True)
    again = clone(optimizer)
    assert again.get_params(deep=False).keys() == {"estimator", "normalize_columns", "unbias", "copy_X"}
    assert again.estimator.alpha == 3.0
    assert again.estimator is not optimizer.estimator
    assert again.set_params(estimator__alpha=5.0) is again
    assert (again.estimator.alpha, optimizer.estimator.alpha) == (5.0, 3.0)
    x, y, _ = regression()
    fitted = again.fit(x, y)
    assert not hasattr(fitted.estimator, "coef_")  # the estimator given is never fitted itself
    assert not hasattr(clone(fitted), "coef_")


def test_pickle():
    x, y, _ = regression()
    fitted = ARDOptimizer().fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.coef_std_, fitted.coef_std_)
    np.testing.assert_array_equal(again.predict(x), fitted.predict(x))


@pytest.mark.slow
def test_the_page_shows_what_its_code_prints():
    command = [sys.executable, "-m", "benchmarks.pysindy_page", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# PySINDy's habits, with Discovery


LIBRARIES = {
    "polynomials": lambda: ps.PolynomialLibrary(degree=2),
    "without constant": lambda: ps.PolynomialLibrary(degree=3, include_bias=False),
    "waves": lambda: ps.FourierLibrary(n_frequencies=2),
    "own": lambda: ps.CustomLibrary([lambda x: np.exp(x), lambda x, y: x / (2 + y**2)], include_bias=True),
    "sum": lambda: ps.PolynomialLibrary(degree=1) + ps.FourierLibrary(),
    "product": lambda: ps.PolynomialLibrary(degree=1) * ps.FourierLibrary(),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_of_pysindy_have_the_same_columns_here(name):
    x = np.random.default_rng(0).normal(size=(30, 2))
    theirs = np.asarray(LIBRARIES[name]().fit_transform(x))
    ours = as_library(LIBRARIES[name]()).evaluate(x)
    assert ours.shape == theirs.shape
    sort = [one[:, np.lexsort(np.round(one, 10))] for one in (ours, theirs)]
    np.testing.assert_allclose(*sort, rtol=1e-12)


def test_libraries_of_pysindy_without_a_counterpart_are_refused():
    with pytest.raises(TypeError, match="has no counterpart"):
        Discovery(ps.PolynomialLibrary(interaction_only=True)).fit(np.zeros((30, 2)), 0.1)


def test_a_model_is_asked_for_as_in_pysindy(capsys):
    """A library of PySINDy, one array of times (or a list of them) for all trajectories, inputs with names, print()."""
    t = np.arange(0, 8, 0.1)
    force = pd.DataFrame({"force": np.sin(1.3 * t)})
    frames, rng = [], np.random.default_rng(0)
    for start in (1.0, -0.5):
        run = solve_ivp(lambda s, x: [-0.7 * x[0] + 2 * np.sin(1.3 * s)], (0, 8), [start], t_eval=t, rtol=1e-9)
        frames.append(pd.DataFrame({"x": run.y[0] + 1e-3 * rng.normal(size=t.size)}))
    model = Discovery(ps.PolynomialLibrary(degree=2)).fit(frames, t.tolist(), u=[force, force])
    assert model.get_feature_names() == ["1", "x", "force", "x^2", "x force", "force^2"]
    model.print(precision=1)
    assert capsys.readouterr().out == "(x)' = -0.7 x + 2.0 force\n"
