"""The compiled loop and its NumPy twin give the same numbers; threads may run it side by side."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, CollapseWarning, SparseARD, show_versions
from ardea.core import loop
from ardea.core.compression import normalised
from ardea.core.problem import FlatRows
from ardea.priors import CappedLinear

pytestmark = pytest.mark.skipif(loop.compiled is None, reason="installed without a compiler")

MODELS = [
    ARD(),
    ARD(noise_variance=0.5),
    ARDvi(),
    ARDvi(alpha=np.resize([4.0, 6.0, 9.0], 60)),
    ARDr(),
    ARDr(lam=3.0, eta=0.5),
    ARDr(prior=CappedLinear(5.0, 0.3, over_noise=True)),
    MSTSBL(tau=0.1),
    LSTSBL(tau=0.5),
    MAPSTSBL(search="backward"),
    SparseARD(),
]


def problem(seed, m, d, k=6, sigma=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d))
    coef = np.zeros(d)
    coef[rng.choice(d, k, replace=False)] = rng.normal(size=k) * 2
    return X, X @ coef + sigma * rng.normal(size=m)


def both(monkeypatch, model, X, y):
    monkeypatch.delenv("ARDEA_LOOP", raising=False)
    first = clone(model).fit(X, y)
    monkeypatch.setenv("ARDEA_LOOP", "numpy")
    return first, clone(model).fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(("m", "d"), [(150, 60), (60, 60)])
def test_both_loops_give_the_same_numbers(monkeypatch, model, m, d):
    X, y = problem(1, m, d)
    one, other = both(monkeypatch, model, X, y)
    np.testing.assert_array_equal(one.support_, other.support_)
    assert one.n_iter_ == other.n_iter_
    for name in ("coef_", "prior_variance_", "noise_variance_", "coef_std_", "log_evidence_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(one.trace_.cost, other.trace_.cost, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_both_loops_agree_where_the_noise_collapses(monkeypatch, seed):
    """More columns than rows and no inflation: singular faces and a tiny σ², the hardest case there is."""
    X, y = problem(seed, 40, 120, sigma=0.05)
    with pytest.warns(CollapseWarning):
        one, other = both(monkeypatch, ARD(start="paper"), X, y)
    assert one.kkt_gap_ <= 1e-6
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-3 * abs(other.log_evidence_))


@pytest.mark.parametrize("scale", [1e-7, 1e-3])
def test_both_loops_agree_when_there_is_hardly_any_noise(monkeypatch, scale):
    X, y = problem(4, 90, 30, sigma=scale)
    one, other = both(monkeypatch, SparseARD(), X, y)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.noise_variance_, other.noise_variance_, rtol=1e-6)


def test_more_columns_than_the_pool_of_gram_rows_holds(monkeypatch):
    """Columns come and go over more active sets than fit: the pool is emptied and filled again."""
    X, y = problem(7, 12, 400, k=3, sigma=0.3)
    one, other = both(monkeypatch, SparseARD(noise_variance=0.09), X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-12)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.WeakEvidenceWarning")  # targets of other columns
def test_threads_give_what_one_thread_gives():
    X, _ = problem(0, 200, 40)
    targets = [problem(seed, 200, 40)[1] for seed in range(12)]

    def fitted(y):
        return SparseARD().fit(X, y).coef_

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, targets))
    np.testing.assert_array_equal(together, [fitted(y) for y in targets])


def test_versions_name_the_loop_in_use(monkeypatch, capsys):
    for name in ("compiled", "numpy"):
        monkeypatch.setenv("ARDEA_LOOP", name)
        show_versions()
        assert f"outer loop    {name}" in capsys.readouterr().out


def test_the_twin_takes_over_where_the_compiled_loop_gets_no_memory(monkeypatch):
    class Greedy:
        @staticmethod
        def Steps(*_):
            raise MemoryError

    X, y = problem(0, 60, 5, k=2)
    expected = ARD().fit(X, y).coef_
    monkeypatch.setattr(loop, "compiled", Greedy)
    np.testing.assert_allclose(ARD().fit(X, y).coef_, expected, rtol=1e-8)


@pytest.mark.parametrize("n_flat", range(3))
def test_both_ways_to_normalise_columns_give_the_same_numbers(monkeypatch, n_flat):
    rng = np.random.default_rng(n_flat)
    flat = FlatRows(rng.normal(size=(12, n_flat)), False, range(n_flat))
    rows = rng.normal(size=(12, 6)) * 10.0 ** np.arange(-100, 140, 40)
    rows[:, 0] = 0.0
    rows[:, 1] = flat.basis @ np.full(n_flat, 3.0)  # explained by the flat ones, up to rounding
    outside, found = np.zeros((3, 6)), []
    outside[:, 4:] = rng.normal(size=(3, 2)) * rows[0, 4:]
    for way in ("compiled", "numpy"):
        monkeypatch.setenv("ARDEA_LOOP", way)
        found.append(normalised(rows, outside, flat, 1e-14))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found[0][0].any(axis=0), [False, False, True, True, True, True])
