"""Dask: the same model as in memory, on threads and on a real cluster, and what happens when things go wrong."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from ardea import ARD, MAPSTSBL, ARDSearch, ARDvi, SparseARD
from ardea.core.compression import CompressedRows
from ardea.distributed import BlockError, compress, compress_files, features, field_derivative, field_rows
from ardea.dynamics import Custom, FieldTerms, Fourier, Polynomials
from ardea.dynamics.differences import finite_difference
from conftest import sparse_data
from distributed import Client, LocalCluster

pytestmark = pytest.mark.filterwarnings("ignore::ardea.estimators.advice.SuspectDataWarning")  # weights are no counts

ROWS, COLUMNS = 1000, 12
MODELS = [ARD(), SparseARD(), ARDvi(alpha=4.0, fit_intercept=False), MAPSTSBL(always_keep=[2])]


@pytest.fixture(scope="module")
def data():
    """Off-centre columns, two targets, weights some of which are zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)) + 5 * rng.normal(size=COLUMNS)
    Y = np.column_stack([X[:, 3] - 2 * X[:, 7], 0.5 * X[:, 0] + 3]) + 0.3 * rng.normal(size=(ROWS, 2))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], ROWS)
    return X, Y, weight


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def cluster(forkserver):
    """Two workers of one thread, each in a process of its own with a memory limit."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        settings = {
            "distributed.admin.log-length": 0,
            "distributed.comm.timeouts.connect": "5s",
            "distributed.worker.multiprocessing-method": "forkserver",
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.pause": False,
        }
        with (
            dask.config.set(settings),
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit="400MB", dashboard_address=":0", silence_logs=50
            ) as local,
        ):
            yield local


@pytest.fixture
def client(cluster):
    with Client(cluster) as connected:
        cluster.scale(2)  # replaces a worker that an earlier test killed for good
        connected.wait_for_workers(2, timeout=120)
        yield connected


def assert_same_model(model, reference, rtol=1e-8):
    for name in ("coef_", "intercept_", "coef_std_", "noise_variance_", "log_evidence_"):
        ours, theirs = np.asarray(getattr(model, name)), np.asarray(getattr(reference, name))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max(), err_msg=name)
    np.testing.assert_array_equal(model.support_, reference.support_)


def cut(X, Y, weight=None, rows=130):
    parts = [da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(Y, chunks=(rows, *Y.shape[1:]))]
    return (*parts, None if weight is None else da.from_array(weight, chunks=rows))


# The same model -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.AlternativesWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("rows", [7, 130, ROWS], ids=["fewer rows than columns", "blocks", "one block"])
def test_blocks_on_threads_equal_arrays(threads, data, model, rows):
    X, Y, weight = data
    lazy = cut(X, Y, weight, rows)
    reference = type(model)(**model.get_params()).fit(X, Y, sample_weight=weight)
    assert_same_model(model.fit(*lazy), reference)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_on_a_cluster_equal_arrays(client, data, weighted):
    X, Y, weight = data
    weight = weight if weighted else None
    assert_same_model(SparseARD().fit(*cut(X, Y, weight)), SparseARD().fit(X, Y, sample_weight=weight))


def test_one_target_and_y_in_memory(threads, data):
    X, Y, weight = data
    lazy = da.from_array(X, chunks=(130, COLUMNS))
    assert_same_model(ARD().fit(lazy, Y[:, 0], sample_weight=list(weight)), ARD().fit(X, Y[:, 0], sample_weight=weight))


def test_blocks_that_differ_are_cut_anew(threads, data):
    """Columns in chunks, and other rows per block in y and the weights than in X."""
    X, Y, weight = data
    lazy = da.from_array(X, chunks=(300, 5)), da.from_array(Y, chunks=(170, 1)), da.from_array(weight, chunks=333)
    assert_same_model(SparseARD().fit(*lazy), SparseARD().fit(X, Y, sample_weight=weight))


def test_single_precision_and_integers(threads, data):
    X, Y, _ = data
    small = np.round(X).astype(np.int32)
    assert_same_model(ARD().fit(*cut(small, Y)), ARD().fit(small, Y))
    single = X.astype(np.float32)
    lazy = cut(single, Y)
    model = ARD().fit(*lazy)
    assert_same_model(model, ARD().fit(single, Y))
    answer = model.predict(lazy[0])
    assert model.coef_.dtype == answer.dtype == answer.compute().dtype == np.float32


def test_unknown_rows_are_paired_block_by_block(threads, data):
    X, Y, _ = data
    lazy_X, lazy_y, _ = cut(X, Y[:, 0])
    chosen = X[:, 0] > np.median(X[:, 0])
    model = ARD().fit(lazy_X[lazy_X[:, 0] > np.median(X[:, 0])], lazy_y[lazy_X[:, 0] > np.median(X[:, 0])])
    assert_same_model(model, ARD().fit(X[chosen], Y[chosen, 0]))


def test_a_stream_of_dask_arrays(threads, data):
    X, Y, weight = data
    model = SparseARD()
    for rows in (slice(0, 400), slice(400, ROWS)):
        model.partial_fit(*cut(X[rows], Y[rows], weight[rows]))
        so_far = SparseARD().fit(X[: rows.stop], Y[: rows.stop], sample_weight=weight[: rows.stop])
        assert_same_model(model, so_far)


@pytest.mark.parametrize("n_blocks", [1, 2, 8, 9, 64, 65])
def test_any_number_of_blocks_gives_the_same_factor(threads, n_blocks):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7 * n_blocks, 3))
    rows = compress(*cut(X, X[:, 0], rows=7)[:2])
    whole = np.column_stack([np.ones(len(X)), X, X[:, 0]])
    np.testing.assert_allclose(rows.factor.T @ rows.factor, whole.T @ whole, atol=1e-10)
    assert rows.shape == X.shape


@pytest.mark.parametrize("exponent", [0, 4, 8, 12])
def test_merged_factor_is_as_good_as_one_qr(threads, exponent):
    """Singular values differ from those of one Householder QR by rounding of the largest, at any condition number.

    A Gram matrix would leave √eps of the largest.
    """
    rng = np.random.default_rng(exponent)
    m, d = 3000, 20
    U, V = np.linalg.qr(rng.normal(size=(m, d)))[0], np.linalg.qr(rng.normal(size=(d, d)))[0]
    X, y = (U * np.logspace(0, -exponent, d)) @ V.T, rng.normal(size=m)
    merged = compress(*cut(X, y, rows=200)[:2]).factor
    whole = np.linalg.qr(np.column_stack([np.ones(m), X, y]), mode="r")
    for columns in (slice(1, 1 + d), slice(0, 1 + d)):
        ours = np.linalg.svd(merged[:, columns], compute_uv=False)
        theirs = np.linalg.svd(whole[:, columns], compute_uv=False)
        assert np.abs(ours - theirs).max() < 200 * np.finfo(float).eps * theirs.max()
    assert np.linalg.cond(X) > 0.5 * 10.0**exponent


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.TinyNoiseWarning")
def test_ill_conditioned_blocks_give_the_coefficients_of_one_fit(threads):
    rng = np.random.default_rng(1)
    base = rng.normal(size=(2000, 3))
    X = np.column_stack([base, base[:, 0] + 1e-7 * rng.normal(size=2000)])
    y = X @ [1.0, -1.0, 0.5, 0.0] + 1e-9 * rng.normal(size=2000)
    ours, theirs = ARD().fit(*cut(X, y, rows=90)), ARD().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_std_, theirs.coef_std_, rtol=1e-6)


def test_persisted_arrays(client, data):
    """Blocks that lie in the workers' memory already are used there."""
    X, Y, _ = data
    lazy_X, lazy_Y, _ = cut(X, Y)
    assert_same_model(SparseARD().fit(lazy_X.persist(), 1.0 * lazy_Y.persist()), SparseARD().fit(X, Y))


class Watched(np.ndarray):
    """A block whose life is counted."""


@pytest.mark.parametrize("in_memory", [False, True])
def test_blocks_do_not_pile_up(threads, in_memory):
    """X and y from one table, or y from memory: a block is compressed and let go before most others are made."""
    alive, most, lock = [0], [0], threading.Lock()

    def let_go():
        with lock:
            alive[0] -= 1

    def made(block):
        watched = block.copy().view(Watched)
        with lock:
            alive[0] += 1
            most[0] = max(most[0], alive[0])
        weakref.finalize(watched, let_go)
        return watched

    n_blocks = 100
    table = da.ones((10 * n_blocks, 5), chunks=(10, 5)).map_blocks(made, meta=np.empty((0, 0)))
    compress(table[:, :4], np.zeros(10 * n_blocks) if in_memory else table[:, 4] - table[:, 0])
    assert 0 < most[0] < n_blocks / 4


def test_progress_is_shown_where_it_is_wanted(threads, data, capsys):
    lazy_X, lazy_Y, _ = cut(*data[:2], rows=125)
    compress(lazy_X, lazy_Y)
    assert capsys.readouterr().err == ""
    compress(lazy_X, lazy_Y, verbose=1)
    assert "8/8" in capsys.readouterr().err


# Data frames and files ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(data):
    X, Y, weight = data
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(COLUMNS)]).assign(y=Y[:, 0], w=weight)


def test_data_frames_keep_their_names(threads, frame):
    lazy = dd.from_pandas(frame, npartitions=4)
    X = frame.drop(columns=["y", "w"])
    model = SparseARD(always_keep=["c5"]).fit(lazy.drop(columns=["y", "w"]), lazy["y"], sample_weight=lazy["w"])
    assert_same_model(model, SparseARD(always_keep=["c5"]).fit(X, frame["y"], sample_weight=frame["w"]))
    assert list(model.feature_names_in_) == list(X.columns)
    np.testing.assert_allclose(model.predict(lazy[list(X.columns)]).compute(), model.predict(X), rtol=1e-12)


def test_parquet(client, frame, tmp_path):
    dd.from_pandas(frame, npartitions=3).to_parquet(tmp_path / "rows", write_index=False)
    lazy = dd.read_parquet(tmp_path / "rows")
    columns = [f"c{j}" for j in range(COLUMNS)]
    assert_same_model(SparseARD().fit(lazy[columns], lazy[["y"]]), SparseARD().fit(frame[columns], frame[["y"]]))


def test_zarr(client, data, tmp_path):
    X, Y, _ = data
    for name, values in (("X", X), ("Y", Y)):
        stored = zarr.create_array(tmp_path / name, shape=values.shape, chunks=(200, values.shape[1]), dtype="f8")
        stored[:] = values
    lazy = da.from_zarr(str(tmp_path / "X")), da.from_zarr(str(tmp_path / "Y"))
    assert_same_model(SparseARD().fit(*lazy), SparseARD().fit(X, Y))


@pytest.mark.parametrize("where", ["threads", "client"])
def test_many_files(request, frame, tmp_path, where):
    request.getfixturevalue(where)
    paths = [tmp_path / f"{number}.csv" for number in range(11)]
    for path, part in zip(paths, np.array_split(np.arange(ROWS), 11), strict=True):
        frame.drop(columns="w").iloc[part].to_csv(path, index=False, float_format="%.17g")
    model = SparseARD().fit(compress_files(paths, "y", memory=100_000), None)
    assert_same_model(model, SparseARD().fit(frame.drop(columns=["y", "w"]), frame["y"]))
    lines = paths[4].read_text().splitlines()
    paths[4].write_text("\n".join([*lines[:5], lines[5].replace(lines[5].split(",")[1], "much", 1), *lines[6:]]))
    with pytest.raises(BlockError, match=r"Block 4: .*4\.csv, line 6, column 'c1': 'much' is not a number"):
        compress_files(paths, "y")
    frame.rename(columns={"c1": "other"}).drop(columns="w").to_csv(paths[4], index=False)
    with pytest.raises(BlockError, match=r"4\.csv: the columns are not those of the first file"):
        compress_files(paths, "y")
    with pytest.raises(ValueError, match="at least one path"):
        compress_files([], "y")


def test_columns_that_are_not_numbers_are_named(threads, frame):
    lazy = dd.from_pandas(frame.assign(when=pd.Timestamp("2020-01-01"), who="a"), npartitions=2)
    with pytest.raises(TypeError, match="not numbers: when, who"):
        ARD().fit(lazy.drop(columns=["y"]), lazy["y"])


def test_missing_values_in_a_frame_are_found(threads, frame):
    holed = frame.astype({"c1": "Float64"})
    holed.loc[777, "c1"] = pd.NA
    lazy = dd.from_pandas(holed, npartitions=4)
    with pytest.raises(ValueError, match=r"Block 3, row 27 of the block, column 1 \('c1'\): X holds NaN"):
        ARD().fit(lazy.drop(columns=["y"]), lazy["y"])


# Errors before anything is computed -----------------------------------------------------------------------------------


def test_row_counts_must_agree(threads, data):
    X, Y, weight = data
    lazy_X, lazy_Y, lazy_weight = cut(X, Y, weight)
    with pytest.raises(ValueError, match="X has 1000 rows, but y has 999"):
        ARD().fit(lazy_X, lazy_Y[:-1])
    with pytest.raises(ValueError, match="X has 1000 rows, but y has 999"):
        ARD().fit(lazy_X, Y[:-1])
    with pytest.raises(ValueError, match="X has 1000 rows, but sample_weight has 10"):
        ARD().fit(lazy_X, lazy_Y, sample_weight=lazy_weight[:10])


def test_unknown_rows_that_cannot_be_matched(threads, data):
    X, Y, _ = data
    lazy_X, lazy_y, _ = cut(X, Y[:, 0])
    unknown = lazy_X[lazy_X[:, 0] > -np.inf]
    with pytest.raises(ValueError, match=r"8 blocks of rows and y has 4.*compute_chunk_sizes"):
        ARD().fit(unknown, lazy_y.rechunk(250))
    with pytest.raises(ValueError, match=r"y is in memory.*compute_chunk_sizes"):
        ARD().fit(unknown, Y[:, 0])
    with pytest.raises(ValueError, match=r"Block \d: X has \d+ rows here, but y has 125.*compute_chunk_sizes"):
        ARD().fit(unknown, lazy_y.rechunk(125))
    assert_same_model(ARD().fit(unknown.compute_chunk_sizes(), lazy_y.rechunk(250)), ARD().fit(X, Y[:, 0]))


def test_what_is_no_table_is_refused(threads, data):
    X, Y, _ = data
    lazy_X, lazy_Y, _ = cut(X, Y)
    with pytest.raises(TypeError, match="y or sample_weight is a Dask collection, but X is not"):
        ARD().fit(X, lazy_Y)
    with pytest.raises(TypeError, match="X is a Delayed"):
        ARD().fit(dask.delayed(X), lazy_Y)
    with pytest.raises(TypeError, match="X holds complex128"):
        ARD().fit(lazy_X * 1j, lazy_Y)
    with pytest.raises(ValueError, match="two axes"):
        ARD().fit(lazy_X[:, 0], lazy_Y)
    with pytest.raises(ValueError, match="5001 columns"):
        ARD().fit(da.zeros((10, 5001)), da.zeros(10))


def test_parameters_are_checked_before_the_data_are_read(threads):
    def unread(block):
        raise AssertionError("the block was read")

    X = da.zeros((100, 3), chunks=(10, 3)).map_blocks(unread, meta=np.empty((0, 3)))
    with pytest.raises(ValueError, match="alpha has shape"):
        ARDvi(alpha=[1.0, 2.0]).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="always_keep"):
        ARD(always_keep=[3]).fit(X, X[:, 0])


def test_import_of_ardea_leaves_dask_alone():
    code = "import ardea, sys; assert not {'dask', 'distributed', 'zarr', 'xarray'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


# Blocks that are not sound --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["threads", "client"])
def test_the_block_with_nan_is_named(request, data, where):
    request.getfixturevalue(where)
    X, Y, weight = data
    holed = X.copy()
    holed[[300, 301], 4] = np.nan, np.inf
    with pytest.raises(ValueError, match="Block 2, row 300, column 4: X holds NaN or infinity in 2 of 130 rows"):
        ARD().fit(*cut(holed, Y))
    y = Y[:, 0].copy()
    y[999] = np.nan
    with pytest.raises(ValueError, match="Block 7, row 999: y holds NaN"):
        ARD().fit(*cut(X, y))
    with pytest.raises(ValueError, match="Block 0, row 5: sample_weight is negative"):
        ARD().fit(*cut(X, Y, np.where(np.arange(ROWS) == 5, -1.0, weight)))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        ARD().fit(*cut(X, Y, np.zeros(ROWS)))


def raising(block, block_id=None, number=5):
    if block_id is not None and block_id[0] == number:
        raise OSError("the disk is gone")
    return block


@pytest.mark.parametrize("where", ["threads", "client"])
def test_the_block_that_raises_is_named(request, data, where):
    request.getfixturevalue(where)
    X, Y, _ = data
    lazy_X, lazy_Y, _ = cut(X, Y)
    model = ARD().fit(X, Y)
    before = model.coef_
    with pytest.raises(BlockError, match="Block 5: it could not be computed: OSError: the disk is gone") as caught:
        model.fit(lazy_X.map_blocks(raising, meta=np.empty((0, COLUMNS))), lazy_Y)
    assert isinstance(caught.value.__cause__, OSError)
    np.testing.assert_array_equal(model.coef_, before)  # the model is as it was
    assert_same_model(model.fit(lazy_X, lazy_Y), ARD().fit(X, Y))  # and so is the cluster


@pytest.mark.parametrize("where", ["threads", "client"])
def test_a_failing_block_stops_the_rest(request, tmp_path, where):
    connected = request.getfixturevalue(where)
    done, bad = tmp_path / "done", tmp_path / "bad"
    done.mkdir()

    def slow(block, block_id=None):
        """Fail at the block that comes when five are done, and whenever it is tried again."""
        number = str(block_id[0])
        if not bad.exists() and len(list(done.iterdir())) >= 5:
            bad.write_text(number)
        if bad.exists() and bad.read_text() == number:
            raise OSError("the disk is gone")
        time.sleep(0.05)
        (done / number).touch()
        return block

    X = da.ones((400, 2), chunks=(2, 2))
    with pytest.raises(BlockError, match=r"Block \d+: it could not be computed: OSError") as caught:
        compress(X.map_blocks(slow, meta=np.empty((0, 2))), X[:, 0])
    assert f"Block {bad.read_text()}:" in str(caught.value)
    if where == "client":
        assert_left_alone(connected)
    assert len(list(done.iterdir())) < X.numblocks[0] / 2


def assert_left_alone(client):
    """Nobody computes the rest."""
    for _ in range(100):
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            return
        time.sleep(0.05)
    raise AssertionError(f"{left} tasks are still there")


# Survival -------------------------------------------------------------------------------------------------------------


def first_time(flag):
    """Whether this is the first call with that file, in whatever process."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def with_accident(lazy, accident):
    return lazy.map_blocks(accident, meta=np.empty((0, lazy.shape[1])))


def test_survives_a_worker_killed_in_the_middle(client, data, tmp_path):
    X, Y, _ = data
    flag = str(tmp_path / "killed")

    def kill(block, block_id=None):
        time.sleep(0.02)
        if block_id and block_id[0] == 3 and first_time(flag):
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    lazy_X, lazy_Y, _ = cut(X, Y)
    model = SparseARD().fit(with_accident(lazy_X, kill), lazy_Y)
    assert Path(flag).exists()
    assert_same_model(model, SparseARD().fit(X, Y))


@pytest.mark.slow  # to Ardea a worker that dies, as above; that it dies is Dask's doing
def test_survives_a_worker_out_of_memory(client, data, tmp_path):
    """The nanny ends a worker beyond 95 % of its 400 MB; the block is computed anew."""
    X, Y, _ = data
    flag = str(tmp_path / "swollen")

    def swell(block, block_id=None):
        if block_id and block_id[0] == 2 and first_time(flag):
            ballast = [np.ones(2_500_000) for _ in range(25)]  # 500 MB
            time.sleep(60)
            Path(flag + " and slept").touch()
            return block + 0 * ballast[0][0]
        return block

    lazy_X, lazy_Y, _ = cut(X, Y)
    model = SparseARD().fit(with_accident(lazy_X, swell), lazy_Y)
    assert Path(flag).exists()
    assert not Path(flag + " and slept").exists()
    assert_same_model(model, SparseARD().fit(X, Y))


@pytest.fixture
def impatient(client):
    """A scheduler that gives up on a block at the first worker it kills."""

    def allow(failures):
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))

    allow(0)
    yield client
    allow(3)


def test_a_block_that_kills_every_worker_is_named(impatient, data):
    """Dask blames all blocks that a dead worker had; the message says so."""
    X, Y, _ = data

    def kill(block, block_id=None):
        if block_id and block_id[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    lazy_X, lazy_Y, _ = cut(X, Y)
    with pytest.raises(BlockError, match=r"Block .*\b1\b.*: the worker .* died.*smaller"):
        SparseARD().fit(with_accident(lazy_X, kill), lazy_Y)


def test_retries_are_dasks_own(client, data, tmp_path):
    X, Y, _ = data

    def flaky(block, block_id=None):
        if block_id and first_time(tmp_path / str(block_id[0])):
            raise OSError("try again")
        return block

    lazy_X, lazy_Y, _ = cut(X, Y)
    with dask.annotate(retries=2):
        model = SparseARD().fit(with_accident(lazy_X, flaky), lazy_Y)
    assert_same_model(model, SparseARD().fit(X, Y))


def test_an_interrupted_client_leaves_model_and_cluster_as_they_were(client, data):
    X, Y, _ = data

    def slow(block):
        time.sleep(0.5)
        return block

    lazy_X, lazy_Y, _ = cut(X, Y, rows=20)
    model = SparseARD().fit(X, Y)
    before = model.coef_
    # A process started in the background may ignore SIGINT.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(with_accident(lazy_X, slow), lazy_Y)
    timer.join()
    signal.signal(signal.SIGINT, earlier)
    np.testing.assert_array_equal(model.coef_, before)
    assert_left_alone(client)
    assert_same_model(model.fit(lazy_X, lazy_Y), SparseARD().fit(X, Y))


def test_the_client_never_holds_X(client):
    """30 blocks of 8 MB, made on the workers; the client sees a triangle."""
    import psutil

    X = da.random.default_rng(0).normal(size=(1_500_000, 20), chunks=(50_000, 20))
    y = X[:, 4] - X[:, 9] + 0.1 * da.random.default_rng(1).normal(size=len(X), chunks=50_000)
    process, peak, over = psutil.Process(), [0], threading.Event()

    def watch():
        while not over.wait(0.05):
            peak[0] = max(peak[0], process.memory_info().rss)

    before = process.memory_info().rss
    threading.Thread(target=watch, daemon=True).start()
    model = SparseARD().fit(X, y)
    over.set()
    np.testing.assert_array_equal(np.flatnonzero(model.support_), [4, 9])
    assert peak[0] - before < 100e6


@pytest.mark.slow
def test_eight_gigabytes_on_two_small_workers():
    """20 million × 50: right support, client below 1 GB, at least half the rate of plain Gram products."""
    command = [sys.executable, "-m", "benchmarks.large", "cluster", "--check"]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


# Prediction, search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [0, slice(None)], ids=["one target", "two targets"])
def test_prediction_is_lazy_and_the_same(threads, data, targets):
    X, Y, _ = data
    model = SparseARD().fit(X, Y[:, targets])
    mean, std = model.predict(da.from_array(X, chunks=(130, 5)), return_std=True)
    assert isinstance(mean, da.Array)
    assert mean.shape == std.shape == Y[:, targets].shape
    expected = model.predict(X, return_std=True)
    for ours, theirs in zip(dask.compute(mean, std), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(model.predict(da.from_array(X, chunks=(300, -1))), expected[0], rtol=1e-12)


def test_prediction_on_a_cluster(client, data):
    X, Y, _ = data
    model = SparseARD().fit(X, Y)
    std = model.predict(cut(X, Y)[0], return_std=True)[1]
    np.testing.assert_allclose(std.compute(), model.predict(X, return_std=True)[1], rtol=1e-12)


def test_prediction_refuses_other_columns_and_names_bad_blocks(threads, data, frame):
    X, Y, _ = data
    model = SparseARD().fit(X, Y)
    with pytest.raises(ValueError, match="X has 5 columns; the model was fitted to 12"):
        model.predict(da.from_array(X[:, :5]))
    holed = X.copy()
    holed[555, 6] = np.nan
    lazy = model.predict(da.from_array(holed, chunks=(100, -1)))
    with pytest.raises(ValueError, match="Block 5, row 555, column 6"):
        lazy.compute()
    columns = [f"c{j}" for j in range(COLUMNS)]
    named = SparseARD().fit(frame[columns], frame["y"])
    with pytest.raises(ValueError, match="not those the model was fitted to"):
        named.predict(dd.from_pandas(frame[columns[::-1]], npartitions=2))


def test_search_on_dask_arrays(threads, data):
    X, Y, _ = data
    lazy_X, lazy_y, _ = cut(X, Y[:, 0])
    ours, theirs = ARDSearch(ARDvi()).fit(lazy_X, lazy_y), ARDSearch(ARDvi()).fit(X, Y[:, 0])
    assert ours.best_strength_ == theirs.best_strength_
    assert_same_model(ours.best_estimator_, theirs.best_estimator_)
    with pytest.raises(ValueError, match="compressed where they lie"):
        ARDSearch(ARDvi(), criterion="stability").fit(lazy_X, lazy_y)


def test_resampling_through_joblib_on_the_cluster(client):
    data = sparse_data(m=120)
    search = ARDSearch(ARDvi(), criterion="stability", n_resamples=6, random_state=0)
    here = search.fit(data.X, data.y).path_["score"]
    with joblib.parallel_config(backend="dask", wait_for_workers_timeout=120):
        there = ARDSearch(ARDvi(), criterion="stability", n_resamples=6, random_state=0, n_jobs=-1).fit(data.X, data.y)
    np.testing.assert_array_equal(there.path_["score"], here)


# Features -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "library",
    [Polynomials(3), Fourier(2) + Polynomials(1), Custom([lambda x: np.tanh(x)], ["tanh({})"])],
    ids=["polynomials", "sum", "custom"],
)
def test_features_of_states_equal_those_in_memory(threads, library):
    states = np.random.default_rng(0).normal(size=(500, 3))
    theta = features(library, da.from_array(states, chunks=(60, 2)))
    np.testing.assert_array_equal(theta.compute(), library.evaluate(states))
    assert theta.numblocks[1] == 1


def test_model_of_lazy_features_on_a_cluster(client):
    rng = np.random.default_rng(1)
    states = rng.normal(size=(3000, 3))
    library = Polynomials(2)
    y = states[:, 0] * states[:, 2] - 28 * states[:, 1] + 0.01 * rng.normal(size=3000)
    theta = features(library, da.from_array(states, chunks=(400, 3)))
    settings = {"fit_intercept": False}
    model = SparseARD(**settings).fit(theta, y)
    assert_same_model(model, SparseARD(**settings).fit(library.evaluate(states), y))
    assert [library.names(["x", "y", "z"])[j] for j in np.flatnonzero(model.support_)] == ["y", "x z"]


def wave(n_x=48, n_t=70, uneven=False):
    x = 2 * np.pi * np.arange(n_x) / n_x
    t = np.linspace(0, 2, n_t)
    if uneven:
        x = x + 0.3 * (x[1] - x[0]) * np.sin(np.arange(n_x))
    return x, t, np.sin(x[:, None] - t) + 0.5 * np.cos(2 * x[:, None] + 3 * t)


@pytest.mark.parametrize("derivative", [1, 2, 4])
@pytest.mark.parametrize("kind", ["periodic", "one-sided", "uneven"])
def test_field_derivative_equals_finite_difference(threads, kind, derivative):
    x, _, u = wave(uneven=kind == "uneven")
    steps = x if kind == "uneven" else x[1] - x[0]
    periodic = kind == "periodic"
    expected = finite_difference(u, steps, derivative=derivative, periodic=periodic)
    for chunks in ((12, 70), (16, 20), (48, 9)):
        lazy = field_derivative(da.from_array(u, chunks=chunks), steps, derivative=derivative, periodic=periodic)
        np.testing.assert_allclose(lazy.compute(), expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.DependentRowsWarning")  # of rows in memory
@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.TinyNoiseWarning")
@pytest.mark.parametrize("chunks", [(48, 20), (16, 70), (24, 35)])
@pytest.mark.parametrize("periodic", [True, False])
def test_field_terms_equal_those_in_memory(threads, chunks, periodic):
    x, t, u = wave()
    library, step = FieldTerms(powers=2, derivatives=3), x[1] - x[0]
    lazy = da.from_array(u, chunks=chunks)
    u_t = field_derivative(lazy, t, axis=1)
    theta, y = features(library, lazy, space=[step], periodic=periodic), field_rows(u_t, lazy)
    derivatives = {(q,): finite_difference(u, step, derivative=q, periodic=periodic) for q in (1, 2, 3)}
    expected = library.evaluate([u], lambda field, orders: derivatives[orders])
    order = field_rows(da.from_array(np.arange(u.size).reshape(u.shape)), lazy).compute()
    np.testing.assert_allclose(theta.compute(), expected[order], atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(y.compute(), finite_difference(u, t, axis=1).ravel()[order], atol=1e-11)
    settings = {"fit_intercept": False}
    in_memory = SparseARD(**settings).fit(expected, finite_difference(u, t, axis=1).ravel())
    assert_same_model(SparseARD(**settings).fit(theta, y), in_memory, rtol=1e-6)


def test_two_fields_in_two_dimensions_from_xarray(threads):
    x, y, t = np.linspace(0, 1, 24), np.linspace(0, 2, 20), np.linspace(0, 1, 12)
    grid = np.meshgrid(x, y, t, indexing="ij")
    u, v = np.sin(3 * grid[0] + grid[2]) * grid[1], np.cos(2 * grid[1]) + grid[0] ** 2
    axes = {"x": x, "y": y, "time": t}
    dataset = xr.Dataset({name: (tuple(axes), field) for name, field in (("u", u), ("v", v))}, coords=axes)
    library = FieldTerms(powers=1, derivatives=2)
    theta = features(library, dataset.chunk({"x": 12, "time": 5}).transpose("time", "y", "x"), time="time", order=2)

    def derivative(field, orders):
        values = (u, v)[field].transpose(1, 0, 2)  # the transposed dataset has y before x
        for axis, (points, times) in enumerate(zip((y, x), orders, strict=True)):
            values = finite_difference(values, points, derivative=times, order=2, axis=axis) if times else values
        return values

    expected = library.evaluate([u.transpose(1, 0, 2), v.transpose(1, 0, 2)], derivative, n_axes=2)
    assert theta.shape == expected.shape == (u.size, library.n_terms(2, 2))
    ours = CompressedRows.from_arrays(theta.compute(), np.ones((u.size, 1))).factor
    theirs = CompressedRows.from_arrays(expected, np.ones((u.size, 1))).factor
    np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max() ** 2)


def test_field_features_say_what_is_missing(threads):
    x, _, u = wave()
    lazy = da.from_array(u, chunks=(48, 20))
    with pytest.raises(ValueError, match="1 space axes: give `space`"):
        features(FieldTerms(), lazy)
    with pytest.raises(ValueError, match="3 points along axis 0, but the differences borrow 7"):
        field_derivative(lazy.rechunk((5, 20)), x[1])
    with pytest.raises(ValueError, match="70 points, but 48 coordinates"):
        field_derivative(lazy, x, axis=1)
    with pytest.raises(ValueError, match="say which is time"):
        features(FieldTerms(), xr.DataArray(u, dims=("x", "time")))
    with pytest.raises(ValueError, match="shape"):
        field_rows(lazy[:, :-1], lazy)
