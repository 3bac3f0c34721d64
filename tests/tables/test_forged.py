"""Forged model files: whatever is changed inside a sound archive, the file is refused, or the model is what it says.

Values, shapes, types and the structure of the tree are altered at random. A few hundred files run with the other tests;
`pytest -m fuzz` tries 10,000.
"""

from __future__ import annotations

import copy
import faulthandler
import io
import json
import warnings
import zipfile

import numpy as np
import pytest

import ardea
from ardea.dynamics import Discovery, systems
from conftest import sparse_data

DATA = sparse_data(m=40, d=6)
LONGEST = 60  # seconds for one file; a hang
SPECIAL = [
    *(np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e-100, 1e-9, 1e9, 1e60, 1e100, 1e150),
    *(1e200, 1e300, 1.7e308, -1e300, 2.0**53, 2.0**63),
]
LEAVES = [
    *(None, True, False, 0, 1, -1, 2, 3, 17, 2**31, 2**63, 10**18, 10**400, 0.5, -0.5, 1e-300, 1e300, 1e999, -1e999),
    *("", "x", "nan", "inf", "ARD", "Discovery", "1", "é" * 99, [], {}, [0], [[]], {"#tuple": []}, {"#float": "inf"}),
    *({"#float": "nan"}, {"#array": 0}, {"#array": 1}, {"#array": 99}, {"#made": "Flat"}, {"#made": "ARD"}, {"a": 1}),
    *({"#made": "Polynomials", "degree": 7}, {"#made": "FieldTerms", "powers": 99}, {"#made": "object"}),
]


def burgers():
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    return Discovery(ardea.dynamics.FieldTerms(2, 2)).fit(u, t, space=system.space)


def motion():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    library = ardea.dynamics.Polynomials(2) + ardea.dynamics.Fourier(1)
    return Discovery(library).fit(x[::4], t[::4], feature_names=["x", "y"])


def positions():
    t, x = systems.duffing().noisy(0.01, seed=0)
    return Discovery(derivative_order=2, noise_std=0.02).fit(x[:, 0], t, feature_names=["x"])


KINDS = {
    "plain": lambda: ardea.SparseARD().fit(DATA.X, DATA.y),
    "kept": lambda: ardea.MSTSBL(tau=0.5, always_keep=[1], noise_variance=0.2).fit(DATA.X, DATA.y),
    "targets": lambda: ardea.ARDr(prior=ardea.priors.Linear(0.2) & ardea.priors.Bounds(0.0, 9.0)).fit(
        DATA.X, np.column_stack([DATA.y, DATA.X[:, 2] - DATA.y])
    ),
    "stream": lambda: ardea.ARD().partial_fit(DATA.X, DATA.y),
    "search": lambda: ardea.ARDSearch([ardea.ARDvi(), ardea.SparseARD()]).fit(DATA.X, DATA.y),
    "motion": motion,
    "positions": positions,
    "fields": burgers,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The tree and the arrays of one file of every kind."""
    folder = tmp_path_factory.mktemp("models")
    for name, fitted in KINDS.items():
        with warnings.catch_warnings(action="ignore"):
            ardea.save(fitted(), folder / name)
    return {name: contents(folder / name) for name in KINDS}


def contents(path):
    """Return the header and the arrays of a file."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name != "header.json"]
        arrays = [np.load(io.BytesIO(archive.read(f"arrays/{i}.npy"))) for i in range(len(names))]
        return json.loads(archive.read("header.json")), arrays


def write(path, header, arrays):
    """Write a sound archive."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for i, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"arrays/{i}.npy", buffer.getvalue())


# Forging


def places(tree, path=()):
    """Yield the path of every value in a tree."""
    if path:
        yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def forged_tree(model, rng):
    """Change one value of the tree: replace, scale, remove, repeat, rename, or swap it with another."""
    every = list(places(model))
    *parents, last = every[rng.integers(len(every))]
    inside = model
    for key in parents:
        inside = inside[key]
    value = inside[last]
    change = rng.integers(6)
    if change == 0 and isinstance(value, int | float):
        inside[last] = value * (1 + rng.normal()) if rng.random() < 0.5 else value + int(rng.integers(-3, 4))
    elif change == 1:
        inside.pop(last)
    elif change == 2 and isinstance(inside, list):
        inside.insert(last, copy.deepcopy(value))
    elif change == 2:
        inside[str(last) + "_"] = inside.pop(last)
    elif change == 3:
        *others, other = every[rng.integers(len(every))]
        source = model
        for key in [*others, other]:
            source = source[key] if not isinstance(source, list) or key < len(source) else None
        inside[last] = copy.deepcopy(source)
    else:
        inside[last] = copy.deepcopy(LEAVES[rng.integers(len(LEAVES))])


def forged_array(array, rng):
    """Return an array with other values, another shape or another type."""
    change = rng.integers(10)
    array = array.copy()
    if change <= 2 and array.size:
        array = array.astype(float) if array.dtype != float and rng.random() < 0.5 else array
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            array.flat[rng.integers(array.size)] = np.array(SPECIAL[rng.integers(len(SPECIAL))]).astype(array.dtype)
        return array
    if change <= 4 and array.dtype == float:
        return array * np.exp(rng.normal(size=array.shape) * 10.0 ** rng.integers(-8, 3))
    if change == 5:
        return rng.permutation(array.ravel()).reshape(array.shape)
    if change == 6:
        return array.ravel()[: rng.integers(array.size + 1)]
    if change == 7:
        return array.T if array.ndim == 2 else array[:, None]
    if change == 8:
        return array.astype([float, np.int64, bool, np.float32, complex, "U3"][rng.integers(6)])
    return np.zeros_like(array) if rng.random() < 0.5 or array.dtype.kind == "U" else array * -1.0


def forge(header, arrays, rng):
    header, arrays = copy.deepcopy(header), list(arrays)
    for _ in range(1 + rng.integers(2)):
        if arrays and rng.random() < 0.5:
            number = rng.integers(len(arrays))
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                arrays[number] = forged_array(arrays[number], rng)
        else:
            forged_tree(header["model"], rng)
    return header, arrays


# What must hold


def assert_same_tree(one, other, ours, theirs, where="model"):
    """The same values; arrays where both have arrays."""
    if isinstance(one, dict) and one.keys() == {"#array"}:
        np.testing.assert_array_equal(ours[one["#array"]], theirs[other["#array"]], err_msg=where)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same_tree(one[key], other[key], ours, theirs, f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same_tree(*pair, ours, theirs, f"{where}[{i}]")
    else:
        assert one == other, where


def assert_numbers(*values):
    for value in values:
        assert not np.isnan(np.asarray(value, dtype=float)).any()


def check_regression(model):
    """Every number is one, and all ways to ask give the same."""
    X = DATA.X[:, : model.n_features_in_]
    mean, std = model.predict(X, return_std=True)
    assert_numbers(mean, std, model.coef_std_, model.noise_variance_, model.log_evidence_)
    coef, intercept = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    difference = np.reshape(mean, (len(X), -1)) - (X @ coef.T + intercept)
    digits = max(1e-12, float(np.finfo(coef.dtype).eps))  # a file may say that its model was fitted in single precision
    assert np.all(np.abs(difference) <= digits * (np.abs(X) @ np.abs(coef).T + np.abs(intercept)))
    intervals = model.credible_interval()
    assert_numbers(intervals)
    assert np.all((intervals[..., 0] <= model.coef_) & (model.coef_ <= intervals[..., 1]))
    told = np.array(model.summary().columns["coef"], dtype=coef.dtype)
    np.testing.assert_array_equal(told, coef[np.atleast_2d(model.support_)])
    for one, row in zip(model.equations_, np.atleast_2d(model.coef_std_), strict=True):
        np.testing.assert_array_equal(np.sqrt(one.covariance.diagonal()).astype(row.dtype), row[list(one.support)])
        one.formula(), one.latex(), repr(model)


def check_content(record, arrays, equation):
    """The coefficients are those of the stored problem, by the textbook, wherever it is well enough conditioned."""
    problem = record["problem"]
    A, z, unit = (arrays[one["#array"]] for one in (problem["columns"]["matrix"], problem["target"], record["unit"]))
    prior = np.zeros(len(unit))
    if record["prior_variance"] is not None:
        prior = record["noise"] / arrays[record["prior_variance"]["#array"]]
    scale = np.sqrt(np.einsum("ij,ij->j", A, A) + prior)
    matrix = (A.T @ A + np.diag(prior)) / np.outer(scale, scale)
    alike = scale.max(initial=0.0) < 1e6 * scale.min(initial=1.0)  # as in normalised problems
    if len(unit) and alike and np.isfinite(matrix).all() and np.linalg.cond(matrix) < 1e6:
        expected = np.linalg.solve(matrix, A.T @ z / scale)
        found = equation.kept.posterior.mean / unit * scale
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def check_motion(model):
    names = model.get_feature_names()
    assert_numbers(model.coef_, model.coef_std_, *(one.noise for one in model.equations_))
    assert model.coef_.shape == (len(model.equations_), len(names))
    for row, one in zip(model.coef_, model.equations_, strict=True):
        np.testing.assert_array_equal(row[list(one.support)], one.coefficients)
        assert [names[j] for j in one.support] == list(one.terms)
        assert_numbers(one.interval())
        one.formula(), one.latex(), one.with_intervals()
    if hasattr(model.model_, "names"):
        x = np.random.default_rng(0).uniform(0.5, 1, size=(4, len(model.model_.variables)))
        n = len(model.model_.states)
        values = model.predict(x[:, :n], x[:, n:] if model.model_.n_inputs else None)
        library = model.model_.library.evaluate(x)
        assert_numbers(values)
        np.testing.assert_allclose(values, library @ model.coef_.T, rtol=1e-8, atol=1e-8 * np.abs(model.coef_).max())


def check_joint(model):
    """Draws agree with the equations' own errors, and runs have a start."""
    joint = model.joint_.estimate(model.equations_)
    np.testing.assert_array_equal(joint.mean, np.concatenate([one.coefficients for one in model.equations_]))
    std = np.concatenate([one.std for one in model.equations_])
    np.testing.assert_allclose(joint.std, std, rtol=1e-12)
    states = [
        array for one in (model.joint_.first, model.joint_.last) for array in (one.mean, one.gain, one.covariance)
    ]
    assert_numbers(model.sample(3, random_state=0), *states)


def check(path, folder):
    """Refused, or a model that says what the file says."""
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    try:
        model = ardea.load(path)
    except ardea.ModelFileError:
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
    header, arrays = contents(path)
    ardea.save(model, folder / "again")
    again, theirs = contents(folder / "again")
    assert_same_tree(header["model"], again["model"], arrays, theirs)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        content = header["model"]["found"]
        content = content["best"]["found"] if "best" in content else content
        content = content.get("found", content)
        stream = "factor" in content
        if not stream:
            found = getattr(model, "best_estimator_", model).equations_
            for record, equation in zip(content["kept"], found, strict=True):
                check_content(record, arrays, equation)
        if isinstance(model, Discovery):
            check_motion(model)
            if model.joint_ is not None:
                check_joint(model)
        elif not stream or can_be_solved(model):
            check_regression(getattr(model, "best_estimator_", model))
    return True


def can_be_solved(stream):
    """The rows of a stream are data like any other: a fit may refuse them, in its own words."""
    try:
        return stream.coef_ is not None
    except ValueError:
        return False


def run(files, folder, n, seed):
    rng = np.random.default_rng(seed)
    accepted = dict.fromkeys(KINDS, 0)
    for number in range(n):
        name = list(KINDS)[number % len(KINDS)]
        header, arrays = forge(*files[name], rng)
        write(folder / "forged", header, arrays)
        try:
            accepted[name] += check(folder / "forged", folder)
        except BaseException as error:
            error.add_note(f"forged file {number} of seed {seed} ({name})")
            raise
    return accepted


def test_the_files_themselves_are_read(files, tmp_path):
    for name in KINDS:
        write(tmp_path / name, *files[name])
        assert check(tmp_path / name, tmp_path), name


def test_forged_files(files, tmp_path):
    accepted = run(files, tmp_path, 420, seed=0)
    assert all(0 < count < 50 for count in accepted.values())


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_thousand_forged_files(files, tmp_path, seed):
    run(files, tmp_path, 1000, seed)
