from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ardea import ARD
from ardea.estimators.base import MOST_FOR_ONE, threads_for


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_threads")
def test_small_work_has_one_thread_and_large_work_all_of_them():
    with threads_for(MOST_FOR_ONE):
        assert blas_threads() == {1}
        with threads_for():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with threads_for(2 * MOST_FOR_ONE):
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_error_sets_threads_back():
    with pytest.raises(ValueError, match="on the way"), threads_for():
        raise ValueError("on the way")
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_fits_of_many_threads_leave_the_setting_as_it_was_and_give_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, 0] + rng.normal(size=60)

    def coefficients(_):
        return ARD().fit(X, y).coef_

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(coefficients, range(64)))
    assert all(np.array_equal(found[0], one) for one in found)
    assert blas_threads() == {2}
