"""What a review found wrong once, kept from coming back."""

import pickle

import numpy as np
import pytest

from ardea import ARD, ARDr, ARDvi, Operator, SparseARD
from ardea.core import loop
from ardea.priors import Bounds, CappedLinear, Gamma, Linear, Log, Tanh


def wide(sigma, m=100, d=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    return X, X[:, :3] @ [1.0, 2.0, 3.0] + sigma * rng.normal(size=m)


@pytest.mark.parametrize("kind", [ARDvi, SparseARD])
@pytest.mark.parametrize("sigma", [1e-2, 1e-3, 1e-4, 1e-6])
def test_small_noise_is_learned_with_more_columns_than_rows(kind, sigma):
    """The floor that guards against a collapse is lifted where there was none."""
    X, y = wide(sigma)
    model = kind().fit(X, y)
    assert 0.7 < np.sqrt(model.noise_variance_) / sigma < 1.3
    assert model.kkt_gap_ <= 1e-6


def test_a_prior_with_a_convex_part_takes_no_second_one():
    with pytest.raises(ValueError, match="convex part of its own"):
        Gamma(2.0, 1.0) & Bounds(0.0, 1.0)
    with pytest.raises(ValueError, match="convex one"):
        Bounds(0.0, 1.0) & Bounds(0.0, 2.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear(1.0) & Linear(1.0)
    assert (Bounds(0.0, 1.0) & Linear(1.0)).convex is not None


@pytest.mark.parametrize("prior", [CappedLinear, Tanh, Log])
@pytest.mark.parametrize(("lam", "eta"), [(-1.0, 1.0), (np.nan, 1.0), (np.inf, 1.0), (1.0, 0.0), (1.0, np.nan)])
def test_priors_refuse_strengths_that_are_none(prior, lam, eta):
    with pytest.raises(ValueError, match="lam >= 0"):
        prior(lam, eta)


def test_calibrated_ardr_without_pruning_is_ard():
    X, y = wide(0.5, m=150, d=20)
    np.testing.assert_allclose(ARDr(false_terms=1e9).fit(X, y).noise_variance_, ARD().fit(X, y).noise_variance_)


def test_a_failed_fit_leaves_a_stream_alone():
    X, y = wide(0.5, m=60, d=5)
    stream = ARD().partial_fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        stream.fit(X * np.nan, y)
    np.testing.assert_allclose(stream.coef_, ARD().fit(X, y).coef_, rtol=1e-8)


def test_the_twin_takes_over_where_the_compiled_loop_gets_no_memory(monkeypatch):
    class Greedy:
        @staticmethod
        def Loop(*_):
            raise MemoryError

    X, y = wide(0.5, m=60, d=5)
    expected = ARD().fit(X, y).coef_
    monkeypatch.setattr(loop, "compiled", Greedy)
    np.testing.assert_allclose(ARD().fit(X, y).coef_, expected, rtol=1e-8)


def test_an_astronomical_max_iter_is_no_error():
    X, y = wide(0.5, m=60, d=5)
    assert ARD(max_iter=2**40).fit(X, y).n_iter_ < 100


@pytest.mark.parametrize("keep", [{1, 2}, np.array([1, 2]), (1, 2), range(1, 3)], ids=str)
def test_columns_to_keep_in_any_container(keep):
    X, y = wide(0.5, m=60, d=5)
    assert ARD(always_keep=keep).fit(X, y).support_[[1, 2]].all()


def test_bad_columns_to_keep_are_refused_by_the_first_block():
    X, y = wide(0.5, m=60, d=5)
    with pytest.raises(ValueError, match="no column names"):
        ARD(always_keep=["nope"]).partial_fit(X, y)


def test_wrong_column_norms_are_refused():
    X, _ = wide(0.5, m=60, d=5)
    with pytest.raises(ValueError, match="its norm is"):
        Operator(X, np.ones(5))


def test_priors_and_models_with_them_can_be_pickled():
    X, y = wide(0.5, m=60, d=5)
    model = ARDr(prior=Gamma(2.0, 1.0)).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)


def test_a_fitted_model_does_not_grow_with_the_rows():
    few, many = (len(pickle.dumps(SparseARD().fit(*wide(0.5, m=m, d=6000)))) for m in (100, 400))
    assert many < 1.2 * few
