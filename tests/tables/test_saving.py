"""Models come back from their files bit by bit; forged files are refused, or give the answers that they hold."""

from __future__ import annotations

import os
import stat
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ardea import ARD, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD, priors
from ardea.dynamics import Custom, Discovery, Fourier, Polynomials, systems
from ardea.saving import ModelFileError, load, save
from conftest import FAMILY, sparse_data

DATA = sparse_data()
NEW = sparse_data(seed=1).X
# NEW lies elsewhere than the rows fitted, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
TWO = np.column_stack([DATA.y, 3 * DATA.X[:, 1] - DATA.y])
FRAME = pd.DataFrame(DATA.X, columns=[f"naïve {j}\n" for j in range(12)])


def again(model, folder):
    save(model, folder / "model")
    return load(folder / "model")


def assert_same(one, other, where="model"):
    """The same types, shapes and bits all the way down."""
    assert type(one) is type(other) or (isinstance(one, int | float) and isinstance(other, float)), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        if one.dtype == object:
            assert_same(one.tolist(), other.tolist(), where)
        else:
            assert one.tobytes() == other.tobytes(), where
    elif isinstance(one, int | float | np.number):
        assert np.array(one, dtype=float).tobytes() == np.array(other, dtype=float).tobytes(), where
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, SparseARD | ARDSearch | Discovery | ARD):
        assert_same(fitted(one), fitted(other), where)
    elif type(one).__module__.startswith("ardea."):
        for name in vars(one).keys() & vars(other).keys():
            assert_same(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif not callable(one):
        assert one == other, where


def fitted(model):
    """What a fit sets for the user; a file holds no data."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and name != "searched_"}


def assert_same_answers(one, other, X=NEW):
    assert_same(one.predict(X), other.predict(X))
    assert_same(one.predict(X, return_std=True), other.predict(X, return_std=True))
    model, twin = (m.best_estimator_ if isinstance(m, ARDSearch) else m for m in (one, other))
    for kind in ("posterior", "refit"):
        assert_same(model.credible_interval(0.9, kind), twin.credible_interval(0.9, kind))
        assert str(model.summary(kind=kind)) == str(twin.summary(kind=kind))
    assert_same(model.sample(7, random_state=5), twin.sample(7, random_state=5))
    if model.get_support().any():
        assert_same(model.transform(X), twin.transform(X))


# Round trips


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("targets", [DATA.y, TWO, TWO[:, :1]], ids=["one", "two", "one column"])
def test_round_trip(kind, fit_intercept, targets, tmp_path):
    model = kind(fit_intercept=fit_intercept).fit(DATA.X, targets)
    twin = again(model, tmp_path)
    assert_same(fitted(model), fitted(twin))
    assert repr(model) == repr(twin)
    assert_same_answers(model, twin)


CASES = {
    "names and kept columns": lambda: SparseARD(always_keep=["naïve 3\n", "naïve 0\n"]).fit(FRAME, DATA.y),
    "a mask": lambda: SparseARD(always_keep=np.arange(12) == 4).fit(DATA.X, TWO),
    "weights and known noise": lambda: SparseARD(noise_variance=0.25).fit(DATA.X, DATA.y, np.arange(80) % 3),
    "strengths by column": lambda: ARDvi(np.linspace(1, 5, 12)).fit(DATA.X, DATA.y),
    "infinite width": lambda: ARDr(2.0, np.inf).fit(DATA.X, DATA.y),
    "numpy parameters": lambda: MSTSBL(np.float32(0.5), max_iter=np.int64(300)).fit(DATA.X, DATA.y),
    "sparse": lambda: SparseARD().fit(sparse.csr_array(DATA.X), DATA.y),
    "more columns than rows": lambda: SparseARD(noise_variance=0.25).fit(DATA.X[:9], DATA.y[:9]),
    "single precision": lambda: SparseARD().fit(DATA.X.astype(np.float32), DATA.y),
    "nothing kept": lambda: SparseARD(false_terms=1e-9).fit(DATA.X, np.random.default_rng(0).permutation(80) % 3 * 1.0),
    "nothing to explain": lambda: SparseARD().fit(DATA.X, np.full(80, 3.0)),
    "pandas output": lambda: SparseARD().set_output(transform="pandas").fit(FRAME, DATA.y),
}


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ConstantTargetWarning")
@pytest.mark.parametrize("case", CASES)
def test_round_trip_of_special_cases(case, tmp_path):
    model = CASES[case]()
    twin = again(model, tmp_path)
    assert_same(fitted(model), fitted(twin))
    if case == "pandas output":
        pd.testing.assert_frame_equal(model.transform(FRAME), twin.transform(FRAME))
    elif case == "names and kept columns":
        assert_same(model.predict(FRAME), twin.predict(FRAME))
        assert list(model.get_feature_names_out()) == list(twin.get_feature_names_out())
    else:
        assert_same_answers(model, twin)


PRIORS = [
    priors.Flat(),
    priors.CappedLinear(3.0, eta=0.1, over_noise=True),
    priors.CappedLinear(np.linspace(0, 2, 12), eta=[0.5] * 12),
    priors.Linear(0.3),
    priors.Linear(0.3, over_noise=True),
    priors.Tanh(1.0, 0.5),
    priors.Log(1.0, 2.0),
    priors.Gamma(0.5, 0.1),
    priors.Gamma(2.0, 0.1),
    priors.Bounds(0.0, 5.0),
    priors.Bounds(upper=np.full(12, 7.0)),
    priors.NegativeLog(0.2),
    priors.Linear(0.2) & priors.Bounds(0.0, 100.0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_priors(prior, tmp_path):
    model = ARDr(prior=prior).fit(DATA.X, DATA.y)
    twin = again(model, tmp_path)
    assert_same(fitted(model), fitted(twin))
    assert_same_answers(model, twin)
    refitted = twin.fit(DATA.X, DATA.y)
    assert_same(model.coef_, refitted.coef_)


@pytest.mark.parametrize("criterion", ["evidence", "cv", "stability", "oracle"])
def test_search(criterion, tmp_path):
    search = ARDSearch(
        [ARDvi(), SparseARD(always_keep=[1])],
        [{"alpha": np.array([1.0, 4.0, 16.0]), "max_iter": [100, 200]}, None],
        criterion,
        DATA.coef != 0,
        random_state=0,
        n_resamples=4,
    ).fit(DATA.X, DATA.y)
    twin = again(search, tmp_path)
    assert_same(fitted(search), fitted(twin))
    assert_same_answers(search, twin)
    pd.testing.assert_frame_equal(search.path_.to_frame(), twin.path_.to_frame())


def test_search_among_priors(tmp_path):
    grid = {"prior": [priors.Log(20.0), priors.Gamma(0.5, 1.0), None], "lam": [2.0, 30.0]}
    search = ARDSearch(ARDr(), grid).fit(DATA.X, DATA.y)
    assert_same(fitted(search), fitted(again(search, tmp_path)))


@pytest.mark.parametrize("solved", [True, False])
@pytest.mark.parametrize("y", [DATA.y, TWO], ids=["one", "two"])
def test_a_stream_goes_on(solved, y, tmp_path):
    model = SparseARD(always_keep=[2]).partial_fit(DATA.X[:30], y[:30])
    if solved:
        _ = model.coef_
    twin = again(model, tmp_path)
    assert_same_answers(model, twin)
    for one in (model, twin):
        one.partial_fit(DATA.X[30:], y[30:])
    assert_same_answers(model, twin)
    assert_same(fitted(model), fitted(twin))


def test_a_model_that_was_fitted_begins_a_new_stream(tmp_path):
    twin = again(SparseARD().fit(DATA.X, DATA.y), tmp_path)
    with pytest.warns(UserWarning, match="begins a new stream"):
        twin.partial_fit(DATA.X, DATA.y)


def test_equal_models_are_equal_files(tmp_path):
    for name in "ab":
        save(SparseARD().fit(DATA.X, DATA.y), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(load(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_loaded_arrays_can_be_changed(tmp_path):
    twin = again(SparseARD().fit(DATA.X, DATA.y), tmp_path)
    twin.coef_[0] = 1.0


def test_numpy_reads_the_arrays(tmp_path):
    model = SparseARD().fit(DATA.X, DATA.y)
    save(model, tmp_path / "model")
    with np.load(tmp_path / "model", allow_pickle=False) as arrays:
        found = [arrays[name] for name in arrays.files if name != "header.json"]
    assert any(array.shape == (1, 12) and np.array_equal(array[0], model.support_) for array in found)


# Equations of motion


@pytest.fixture(scope="module")
def lorenz():
    t, x = systems.lorenz63().noisy(0.01, seed=0)
    return t, x, Discovery().fit(x, t, feature_names=["x", "y", "z"])


def assert_same_motion(model, twin, x, t):
    assert_same(fitted(model), fitted(twin))
    assert model.equations() == twin.equations()
    assert model.latex() == twin.latex()
    assert_same(model.predict(x), twin.predict(x))
    assert_same(model.sample(3, random_state=0), twin.sample(3, random_state=0))
    assert_same(model.simulate(x[0], t[:20]), twin.simulate(x[0], t[:20]))


def test_discovery(lorenz, tmp_path):
    t, x, model = lorenz
    twin = again(model, tmp_path)
    assert_same_motion(model, twin, x, t)
    assert (tmp_path / "model").stat().st_size < 100_000
    twin.fit(x, t, feature_names=["x", "y", "z"])
    assert_same(model.coef_, twin.coef_)


def measured_lorenz():
    t, x = systems.lorenz63().noisy(0.0, seed=0)
    return t, x, systems.lorenz63().exact_derivative(x) + 0.1 * np.random.default_rng(0).normal(size=x.shape)


@pytest.mark.filterwarnings("ignore:No term was found")  # for products, of sums
@pytest.mark.parametrize(
    "library",
    [Polynomials(2), Polynomials(1) + Fourier(1), Polynomials(1, include_constant=False) * Polynomials(1)],
    ids=["polynomials", "sum", "product"],
)
def test_discovery_with_libraries(library, tmp_path):
    t, x, x_dot = measured_lorenz()
    model = Discovery(library, regressor=SparseARD(fit_intercept=False)).fit(x, t, x_dot=x_dot)
    twin = again(model, tmp_path)
    assert repr(twin) == repr(model)
    assert_same_motion(model, twin, x, t)


def test_maps(tmp_path):
    t, x = systems.henon_map().noisy(0.001, seed=0)
    model = Discovery(discrete_time=True).fit(x, t)
    twin = again(model, tmp_path)
    assert_same(fitted(model), fitted(twin))
    assert_same(model.simulate(x[0], 5), twin.simulate(x[0], 5))


def test_models_of_fields(tmp_path):
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    model = Discovery().fit(u, t, space=system.space)
    twin = again(model, tmp_path)
    assert_same(fitted(model), fitted(twin))
    assert twin.equations() == model.equations()
    assert_same(model.predict(u), twin.predict(u))
    with pytest.raises(ValueError, match="from a file"):
        twin.inclusion()


def test_libraries_of_code_are_not_stored(tmp_path):
    t, x, x_dot = measured_lorenz()
    model = Discovery(Polynomials(2) + Custom([lambda a: a**3])).fit(x, t, x_dot=x_dot)
    with pytest.raises(ModelFileError, match="code of your own"):
        save(model, tmp_path / "model")


# Writing


def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    save(SparseARD().fit(DATA.X, DATA.y), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(ARD().fit(DATA.X, DATA.y), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_the_file_has_the_usual_mode(tmp_path):
    save(SparseARD().fit(DATA.X, DATA.y), tmp_path / "model")
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    "model",
    [
        ARDr(prior=priors.Concave(np.log1p, lambda g: 1 / (1 + g))),
        ARDr(prior=priors.Linear(0.1) & priors.Convex(lambda g: g**2, lambda g: 2 * g)),
    ],
)
def test_code_is_not_stored(model, tmp_path):
    model.fit(DATA.X, DATA.y)
    with pytest.raises(ModelFileError, match=r"ARDr\.parameters\.prior.* is code of your own"):
        save(model, tmp_path / "model")
    assert not os.listdir(tmp_path)


def test_what_cannot_be_saved(tmp_path):
    class Mine(SparseARD):
        pass

    with pytest.raises(NotFittedError):
        save(SparseARD(), tmp_path / "model")
    for model in (Ridge().fit(DATA.X, DATA.y), Mine().fit(DATA.X, DATA.y), priors.Flat(), None):
        with pytest.raises(ModelFileError, match="cannot be saved"):
            save(model, tmp_path / "model")
    search = ARDSearch(ARDvi(), random_state=np.random.RandomState(0)).fit(DATA.X, DATA.y)
    with pytest.raises(ModelFileError, match=r"random_state.*RandomState"):
        save(search, tmp_path / "model")


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("target_unit", [1e-140, 1.0, 1e140])
@pytest.mark.parametrize("always_keep", [None, [0]])
def test_numbers_of_any_size_come_back(unit, target_unit, always_keep, tmp_path):
    """Whatever can be fitted and has numbers for an answer is saved, and read."""
    with np.errstate(all="ignore"):
        try:
            model = SparseARD(always_keep=always_keep).fit(DATA.X * unit, DATA.y * target_unit)
        except ValueError:  # in other units, please
            return
        if np.isfinite(model.covariance_).all():
            assert_same(fitted(model), fitted(again(model, tmp_path)))
            return
        with pytest.raises(ModelFileError, match="other units"):
            save(model, tmp_path / "model")
