"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

import ardea
from ardea.cli import build_parser, main
from ardea.cli.options import COMMANDS as ADDED
from ardea.cli.options import CRITERIA, METHODS
from ardea.dynamics import Discovery, systems
from ardea.dynamics.libraries import Polynomials
from ardea.estimators.search import CRITERIA as CRITERIA_OF_SEARCH
from ardea.paper.experiment import SCALES, VARIANTS
from ardea.tables.series import Choice, read_series

COMMANDS = (*ADDED, "reproduce")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one table of known truth and one noisy linear oscillator, in several formats."""
    place = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = 1.5 + 2 * X[:, 1] - 0.7 * X[:, 4] + 0.3 * rng.normal(size=120)
    table = np.column_stack([X, y])
    write_csv(place / "table.csv", [*"abcdef", "y"], table)
    np.save(place / "table.npy", table)
    np.savez(place / "table.npz", X=X, y=y)
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    write_csv(place / "motion.csv", ["t", "p", "q"], np.column_stack([t, x]))
    np.savez(place / "motion.npz", t=t, state=x)
    return place


def write_csv(path, names, rows):
    lines = [",".join(names), *(",".join(map(repr, row)) for row in np.asarray(rows).tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def fails(capsys, *arguments):
    """Run a command that must fail with one message on standard error, and return it."""
    assert main([str(one) for one in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"ardea {arguments[0]}: ")
    assert all(line.startswith("  ") for line in captured.err.splitlines()[1:])
    return captured.err


def record(capsys, *arguments):
    """Run a command with --json and return what it prints, read strictly."""
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def fitted_by_hand(folder, **settings):
    table = np.load(folder / "table.npy")
    return ardea.SparseARD(**settings).fit(table[:, :6], table[:, 6])


# fit


@pytest.mark.parametrize(
    ("file", "target"), [("table.csv", "y"), ("table.csv", "-1"), ("table.npy", "6"), ("table.npz", "y")]
)
def test_fit_is_the_estimator_on_every_format(folder, capsys, file, target):
    found = record(capsys, "fit", folder / file, "--target", target)
    by_hand = fitted_by_hand(folder)
    (equation,) = found["equations"]
    interval = by_hand.credible_interval()[by_hand.support_]
    assert [[term["low"], term["high"]] for term in equation["terms"]] == interval.tolist()
    assert found["log_evidence"] == by_hand.log_evidence_
    assert found["rows"] == 120
    assert found["columns"] == 6


def test_fit_prints_terms_formula_and_no_colour_in_a_pipe(folder, capsys):
    assert main(["fit", str(folder / "table.csv"), "--target", "y"]) == 0
    captured = capsys.readouterr()
    assert "2 of 6 columns explain y (120 rows)" in captured.out
    assert "\033" not in captured.out
    assert captured.err == ""
    (formula,) = [line for line in captured.out.splitlines() if line.startswith("y = ")]
    assert formula.split()[4::3] == ["b", "e"] or formula.split()[5::3] == ["b", "e"]


def test_blocks_of_rows_give_the_same_model(folder, capsys):
    whole = record(capsys, "fit", folder / "table.csv", "--target", "y")
    blocks = record(capsys, "fit", folder / "table.csv", "--target", "y", "--memory", "30 KB")
    for one, other in zip(whole["equations"][0]["terms"], blocks["equations"][0]["terms"], strict=True):
        assert one["name"] == other["name"]
        np.testing.assert_allclose(one["coef"], other["coef"], rtol=1e-9)


def test_options_reach_the_estimator(folder, capsys):
    found = record(capsys, "fit", folder / "table.csv", "--target", "y", "--keep", "c", "--no-intercept", "--drop", "a")
    (equation,) = found["equations"]
    assert equation["intercept"] is None
    names = [term["name"] for term in equation["terms"]]
    assert "c" in names
    assert "a" not in names
    assert found["columns"] == 5


@pytest.mark.parametrize("method", ["ard", "vi", "r", "m", "l", "map"])
def test_every_method_can_be_asked_for(folder, capsys, method):
    kinds = {"ard": "ARD", "vi": "ARDvi", "r": "ARDr", "m": "MSTSBL", "l": "LSTSBL", "map": "MAPSTSBL"}
    found = record(capsys, "fit", folder / "table.csv", "--target", "y", "--method", method)
    assert found["method"] == kinds[method]


def test_search_chooses_the_smallest_criterion(folder, capsys):
    found = record(
        capsys, "fit", folder / "table.csv", "--target", "y", "--search", "--criterion", "bic", "--method", "vi"
    )
    table = np.load(folder / "table.npy")
    by_hand = ardea.ARDSearch(ardea.ARDvi(), criterion="bic").fit(table[:, :6], table[:, 6])
    assert found["search"]["chosen"]["alpha"] == by_hand.best_strength_


def test_nothing_is_written_without_out(folder, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", str(folder / "table.csv"), "--target", "y"]) == 0
    assert main(["discover", str(folder / "motion.csv"), "--time", "t"]) == 0
    capsys.readouterr()
    assert list(tmp_path.iterdir()) == []


def test_out_writes_a_model_that_loads_and_a_table_with_all_digits(folder, capsys, tmp_path):
    out = tmp_path / "deep" / "run"
    found = record(capsys, "fit", folder / "table.csv", "--target", "y", "--search", "--out", out)
    names = {path.name for path in out.iterdir()}
    assert {"model.ardea", "coefficients.csv", "report.html", "coefficients.png", "path.svg"} <= names
    assert not [name for name in names if name.startswith(".")]
    assert sorted(found["files"]) == sorted(str(path) for path in out.iterdir())
    model = ardea.load(out / "model.ardea")
    assert list(model.feature_names_in_) == [*"abcdef"]
    rows = [line.split(",") for line in (out / "coefficients.csv").read_text().splitlines()[1:]]
    assert {row[1]: float(row[2]) for row in rows if row[1] != "intercept"} == {
        term["name"]: term["coef"] for term in found["equations"][0]["terms"]
    }


# discover


def test_discover_is_discovery(folder, capsys):
    found = record(capsys, "discover", folder / "motion.csv", "--time", "t")
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    by_hand = Discovery().fit(x, t, feature_names=["p", "q"])
    for equation, one in zip(found["equations"], by_hand.equations_, strict=True):
        assert [term["name"] for term in equation["terms"]] == list(one.terms)
        np.testing.assert_allclose([term["coef"] for term in equation["terms"]], one.coefficients, rtol=1e-12)
    assert found["latex"] == by_hand.latex()


def test_a_table_in_an_archive_is_the_same_table(folder, capsys):
    csv = record(capsys, "discover", folder / "motion.csv", "--time", "t", "--states", "p,q", "--degree", "1")
    npz = record(capsys, "discover", folder / "motion.npz", "--time", "t", "--degree", "1")
    assert npz["names"] == ["state0", "state1"]
    for one, other in zip(csv["equations"], npz["equations"], strict=True):
        assert [term["coef"] for term in one["terms"]] == [term["coef"] for term in other["terms"]]


def test_dates_gaps_and_series(folder, capsys, tmp_path):
    """One file with two series, dates for times and an empty field equals two arrays with a step and a NaN."""
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    half = len(t) // 2
    start = np.datetime64("2024-01-01T00:00:00", "ms")
    step = np.timedelta64(round(1000 * (t[1] - t[0])), "ms")
    lines = ["run;when;p;q"]
    for i, row in enumerate(x):
        p = "" if i == 7 else repr(float(row[0]))
        lines.append(f"{'first' if i < half else 'second'};{start + i * step};{p};{float(row[1])!r}")
    with gzip.open(tmp_path / "runs.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    found = record(
        capsys,
        "discover",
        tmp_path / "runs.csv.gz",
        "--time",
        "when",
        "--time-unit",
        "s",
        "--series",
        "run",
        "--degree",
        "1",
    )
    gap = x.copy()
    gap[7, 0] = np.nan
    seconds = np.arange(len(t)) * (step / np.timedelta64(1000, "ms"))
    by_hand = Discovery(Polynomials(1)).fit([gap[:half], gap[half:]], [seconds[:half], seconds[half:]])
    assert found["read"].endswith("in 2 series")
    for equation, one in zip(found["equations"], by_hand.equations_, strict=True):
        np.testing.assert_allclose([term["coef"] for term in equation["terms"]], one.coefficients, rtol=1e-6)


def test_a_field_is_found_whatever_the_order_of_its_axes(tmp_path, capsys):
    x, t = np.linspace(0, 1, 5), np.linspace(0, 2, 7)
    u = np.arange(35.0).reshape(5, 7)
    for name, values in (("space-first", u), ("time-first", u.T)):
        path = tmp_path / f"{name}.npz"
        np.savez(path, u=values, x=x, t=t)
        for more in ([], ["x"]):
            series = read_series(path, Choice(time="t", space=more))
            np.testing.assert_array_equal(series.x, u)
            np.testing.assert_array_equal(series.space[0], x)
            assert series.names == ["u"]


def archive_of_field(path, name, noise):
    system = systems.ALL_FIELDS[name]()
    t, u = system.noisy(noise, seed=1)
    np.savez(path, u=u, x=system.space[0], t=t)
    return ["discover", str(path), "--time", "t", "--space", "x"]


def test_an_equation_that_cannot_be_run_is_printed_and_reported(tmp_path, capsys):
    """Heat back in time: the report says why its picture of a run is missing."""
    x, t = np.arange(64) * 10 / 64, np.linspace(2, 0, 60)
    u = sum(np.exp(-0.2 * (k := 0.2 * np.pi * j) ** 2 * t) * np.cos(k * x + j)[:, None] for j in range(1, 6))
    noise = 0.01 * np.random.default_rng(0).normal(size=u.shape)
    np.savez(tmp_path / "back.npz", u=u + noise, x=x, t=t[::-1])
    command = ["discover", str(tmp_path / "back.npz"), "--time", "t", "--space", "x", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "u_xx" in capsys.readouterr().out
    assert "was not drawn: the linear part is ill-posed" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_fields_of_second_order_are_found_where_they_are_advised(tmp_path, capsys):
    command = archive_of_field(tmp_path / "waves.npz", "klein_gordon", 0.01)
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "try --second-order" in printed.err
    assert "--second-order" in printed.out
    assert "--inputs" not in printed.out
    assert main([*command, "--second-order"]) == 0
    assert "(u)_tt = " in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_fields_from_xarray_files(tmp_path, kind):
    xarray = pytest.importorskip("xarray")
    u = np.arange(35.0).reshape(5, 7)
    data = xarray.Dataset({"u": (("t", "x"), u.T)}, {"x": np.linspace(0, 1, 5), "t": np.linspace(0, 2, 7)})
    path = tmp_path / f"field.{kind}"
    if kind == "nc":
        pytest.importorskip("netCDF4")
        data.to_netcdf(path)
    else:
        pytest.importorskip("zarr")
        data.to_zarr(path, consolidated=False)
    series = read_series(path, Choice(time="t"))
    np.testing.assert_array_equal(series.x, u)
    np.testing.assert_array_equal(series.space[0], data["x"].values)


def test_maps_need_no_time(tmp_path, capsys):
    _, x = systems.logistic_map().simulate()
    write_csv(tmp_path / "map.csv", ["n"], x)
    found = record(capsys, "discover", tmp_path / "map.csv", "--map")
    assert [term["name"] for term in found["equations"][0]["terms"]] == ["n", "n^2"]


# rates


def test_rates_are_those_of_the_closed_form(capsys):
    found = record(
        capsys, "rates", "--false-terms", "1", "--columns", "250", "--rho", "4", "--sigma", "0.5", "--t", "3,4"
    )
    rate = 1 / 250
    assert found["strengths"]["ARDr"]["lam"] == float(ardea.rates.strength_for("r", rate, rho=4, sigma=0.5))
    # In units of t the problem has ρ = σ = 1; two of 250 columns are true.
    expected = ardea.rates.expected_terms("vi", ardea.rates.strength_for("vi", rate), [3.0, 4.0] + [0.0] * 248)
    np.testing.assert_allclose(found["expected_missed"], float(expected.missed))
    np.testing.assert_allclose(found["expected_added"], float(expected.added))


def test_rates_invert(capsys):
    there = record(capsys, "rates", "--false-terms", "2", "--columns", "80", "--rho", "3")
    for name, method in (("ARDvi", "vi"), ("ARDr", "r"), ("MSTSBL", "m"), ("LSTSBL", "l"), ("MAPSTSBL", "map")):
        (strength,) = there["strengths"][name].values()
        back = record(
            capsys, "rates", "--method", method, "--strength", repr(strength), "--columns", "80", "--rho", "3"
        )
        np.testing.assert_allclose(back["false_positive_rate"], 2 / 80, rtol=1e-9)


def test_rates_teach(capsys, tmp_path):
    assert main(["rates", "--false-terms", "1", "--columns", "250", "--plot", str(tmp_path / "c.svg")]) == 0
    out = capsys.readouterr().out
    assert "1 false term expected among 250 columns" in out
    assert "SparseARD(false_terms=1)" in out
    assert (tmp_path / "c.svg").stat().st_size > 1000


# report


@pytest.mark.usefixtures("no_figures")
def test_report_of_a_saved_model_and_of_data(folder, capsys, tmp_path):
    model = tmp_path / "model.ardea"
    ardea.save(fitted_by_hand(folder), model)
    page = tmp_path / "page.html"
    assert main(["report", str(model), "--out", str(page), "--title", "Ours & <theirs>"]) == 0
    assert "Ours &amp; &lt;theirs&gt;" in page.read_text(encoding="utf-8")
    assert main(["report", str(folder / "table.csv"), "--target", "y", "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "SHA-256 of the file" in text
    assert "ardea report" in text
    assert "--target y" in text


def test_report_checks_a_model_against_other_rows(folder, capsys, tmp_path):
    table = np.load(folder / "table.npy")
    frame = pd.DataFrame(table[:, :6], columns=[*"abcdef"])
    ardea.save(ardea.SparseARD().fit(frame, table[:, 6]), tmp_path / "model.ardea")
    arguments = [
        "report",
        tmp_path / "model.ardea",
        "--data",
        folder / "table.csv",
        "--target",
        "y",
        "--out",
        tmp_path / "p.html",
    ]
    assert main([str(one) for one in arguments]) == 0
    assert "rows lie in the 95 % band" in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_figures")
def test_report_names_columns_that_lack_and_texts_that_are_not_known(tmp_path, capsys):
    out, page = tmp_path / "run", tmp_path / "p.html"
    assert main(["fit", str(colours(tmp_path / "t.csv")), "--target", "y", "--out", str(out)]) == 0
    other = colours(tmp_path / "other.csv", extra=["pink,1,2"])
    arguments = ["report", out / "model.ardea", "--data", other, "--target", "y", "--out", page]
    capsys.readouterr()
    assert main([str(one) for one in arguments]) == 0
    said = capsys.readouterr().err
    assert "column 'colour' (1 row): unknown text 'pink'" in said
    assert "1 of 91 rows has empty cells and was left out" in said
    other.write_text("a,y\n1,2\n3,4\n", encoding="utf-8")
    assert "has no column 'colour'. There are a, y" in fails(capsys, *arguments)


# demo, reproduce, version, help


def test_demo_finds_the_truth_draws_and_names_commands_that_run(capsys, tmp_path):
    folder = tmp_path / "demo"
    assert main(["demo", "--out", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "All 7 true terms found, none added" in out
    for name in ("regression", "lorenz"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    commands = [shlex.split(line.partition("   (")[0]) for line in out.splitlines() if line.startswith("    ardea ")]
    assert len(commands) == 3
    assert main(commands[0][1:]) == 0
    assert "6 of 300 columns explain y (150 rows)" in capsys.readouterr().out
    discovered = read_series(Path(commands[1][2]), Choice("t"))  # what `discover` would read
    assert discovered.described() == "251 rows of 3 states (x, y, z)"
    (tmp_path / "file").touch()
    assert "is a file: name a folder" in fails(capsys, "demo", "--out", tmp_path / "file")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda words: "".join(words) or "ardea")
def test_help_fits_into_eighty_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert not [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]


def test_reproduce_lists_experiments(capsys, tmp_path):
    assert main(["reproduce", "list", "--out", str(tmp_path)]) == 0
    assert "lorenz63" in capsys.readouterr().out


def test_the_package_can_be_run_as_the_command():
    command = [sys.executable, "-m", "ardea", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"ardea {ardea.__version__}\n"


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"ardea {ardea.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"  ardea {command}" in out.split("examples:")[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_help_can_be_parsed(command):
    import shlex

    parser = build_parser()
    lines = parser._subparsers._group_actions[0].choices[command].epilog.split("examples:")[1].splitlines()
    examples = [line.strip().split("   ")[0].split(" > ")[0].split(" | ")[0] for line in lines if line.strip()]
    assert examples
    for example in examples:
        parser.parse_args(shlex.split(example)[1:])


# Failure


def test_bad_files_fail_in_one_line(folder, capsys, tmp_path):
    def file(name, content):
        path = tmp_path / name
        path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content, encoding="utf-8")
        return path

    fit = lambda path, target="y": fails(capsys, "fit", path, "--target", target)  # noqa: E731
    assert "no file" in fit(tmp_path / "missing.csv")
    assert "line 3, column 'b': 'oops' is not a number" in fit(file("a.csv", "a,b,y\n1,2,3\n4,oops,6\n"))
    assert "--na oops" in fit(file("a.csv", "a,b,y\n1,2,3\n4,oops,6\n"))
    assert "no column 'z'. There are a, b, y" in fit(file("b.csv", "a,b,y\n1,2,3\n"), "z")
    assert "line 3" in fit(file("c.csv", "a,b,y\n1,2,3\n4,5\n"))
    assert "empty" in fit(file("d.csv", ""))
    assert "save it as CSV" in fit(file("e.ods", "a"))
    fit(file("e.xlsx", "a"))
    fit(file("f.npy", b"not an array"))
    fit(file("g.npz", b"PK\x03\x04 nor an archive"))
    fit(file("h.csv", b"\xff\xfe\x00a,b\n"))
    fit(file("i.parquet", b"PAR1 broken"))
    assert "not a model file" in fails(capsys, "report", file("m.ardea", "nothing"), "--out", tmp_path / "x.html")


def test_discover_fails_in_one_line(folder, capsys, tmp_path):
    motion = folder / "motion.csv"
    assert "--time" in fails(capsys, "discover", motion)
    assert "There are t, p, q" in fails(capsys, "discover", motion, "--time", "when")
    text = tmp_path / "a.csv"
    text.write_text("t,x\n0,1\n1,two\n", encoding="utf-8")
    assert "line 3, column 'x': 'two' is not a number" in fails(capsys, "discover", text, "--time", "t")
    text.write_text("t,x\n0,1\nsoon,2\n", encoding="utf-8")
    assert "line 3, column 't': 'soon' is neither a number nor a date" in fails(capsys, "discover", text, "--time", "t")
    np.savez(tmp_path / "a.npz", t=np.arange(3.0), x=np.ones((4, 5)))
    assert "shape (4, 5)" in fails(capsys, "discover", tmp_path / "a.npz", "--time", "t")
    assert "There are t, x" in fails(capsys, "discover", tmp_path / "a.npz", "--time", "when")


def test_pickled_arrays_are_refused(capsys, tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"code": 1}], dtype=object), allow_pickle=True)
    fails(capsys, "fit", tmp_path / "a.npy", "--target", "0")
    fails(capsys, "discover", tmp_path / "a.npy", "--step", "1")


def test_missing_extras_are_named(folder, capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert "ardea[frames]" in fails(capsys, "fit", tmp_path / "a.parquet", "--target", "y")
    assert "ardea[frames]" in fails(capsys, "discover", tmp_path / "a.parquet", "--time", "t")
    monkeypatch.setitem(sys.modules, "xarray", None)
    (tmp_path / "a.nc").write_bytes(b"CDF")
    assert "ardea[fields]" in fails(capsys, "discover", tmp_path / "a.nc", "--time", "t")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["fit"],
        ["fit", "a.csv", "--method", "magic"],
        ["rates", "--columns", "0"],
        ["fit", "a", "--level", "2"],
    ],
)
def test_wrong_use_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_interrupt_exits_with_130(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ardea.SparseARD, "fit", interrupted)
    assert main(["fit", str(folder / "table.csv"), "--target", "y"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_warnings_are_one_line_each_on_standard_error(tmp_path, capsys):
    rng = np.random.default_rng(0)
    write_csv(tmp_path / "wide.csv", [*(f"x{j}" for j in range(40)), "y"], rng.normal(size=(20, 41)))
    assert main(["fit", str(tmp_path / "wide.csv"), "--target", "y", "--method", "ard"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: ")
    assert err.count("\n") == err.count("warning: ")


def test_a_reader_that_leaves_is_no_error_with_traceback(folder):
    command = f'"{sys.executable}" -c "import sys; from ardea.cli import main; sys.exit(main())" completion | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.usefixtures("no_figures")
def test_a_reader_that_leaves_early_costs_no_file_and_no_words(folder, tmp_path, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, contextlib.redirect_stdout(pipe):
        assert main(["fit", str(folder / "table.csv"), "--target", "y", "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err == ""
    assert {"model.ardea", "coefficients.csv", "report.html"} <= {one.name for one in (tmp_path / "run").iterdir()}


# Completion


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ardea", "dis"], ["discover"]),
        (["ardea", "fit", "--meth"], ["--method"]),
        (["ardea", "predict", "--h"], ["--header", "--help"]),
        (["ardea", "reproduce", "--sc"], ["--scale"]),
    ],
)
def test_bash_completes(capsys, words, expected):
    assert main(["completion"]) == 0
    script = capsys.readouterr().out
    listed = " ".join(words)
    ask = f'{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _ardea; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=30, check=True)
    assert sorted(done.stdout.split()) == expected


def test_equations_of_a_table_larger_than_memory(tmp_path, capsys):
    """8,000 rows within 60 kB: short stretches, spread over the whole."""
    path = tmp_path / "long.csv"
    write_csv(path, ["t", "p", "q"], long_motion(8_000))
    assert main(["discover", str(path), "--time", "t", "--degree", "1", "--memory", "60 kB", "--form", "weak"]) == 0
    shown = capsys.readouterr().out
    rows = int(shown.split(":")[1].split()[0])
    assert 1_000 <= rows <= 6_000
    assert "2 terms in 2 equations, chosen from 3 candidates" in shown
    assert main(["discover", str(path), "--step", "0.02", "--memory", "60 kB"]) == 1
    assert "larger than --memory" in capsys.readouterr().err


def test_series_of_an_array_larger_than_memory(tmp_path):
    """30,000 rows within 1 MB: every stretch is a part of the series, and they are spread over the whole of it."""
    path, table = tmp_path / "long.npy", long_motion(30_000)
    np.save(path, table)
    series = read_series(path, Choice(time="x0"), memory="1 MB")
    assert 8_000 <= sum(map(len, series.t)) <= 20_000
    for t, x in zip(series.t, series.x, strict=True):
        first = round(t[0] / 0.02)
        np.testing.assert_array_equal(np.column_stack([t, x]), table[first : first + len(t)])
    starts = np.array([0.0, *(t[0] for t in series.t), table[-1, 0]])
    assert np.diff(starts).max() < 0.05 * table[-1, 0]


def long_motion(rows):
    t = 0.02 * np.arange(rows)
    noise = 0.01 * np.random.default_rng(0).normal(size=(rows, 2))
    return np.column_stack([t, np.cos(t) + noise[:, 0], noise[:, 1] - np.sin(t)])


# Tables as laboratories write them


def lab_table(path, separator=",", decimal=".", encoding="utf-8", gaps=(), rows=80):
    """Write a table with a date, an operator, twin columns, a name with a comma, and gaps at (row, column) places."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 4)).round(3)
    X[:, 3] = (X[:, 0] + 0.01 * rng.normal(size=rows)).round(3)
    y = (2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=rows)).round(3)
    table = [[f"{value:.3f}".replace(".", decimal) for value in row] for row in np.column_stack([X, y]).tolist()]
    for row, column in gaps:
        table[row][column] = ""
    names = ["Date", "Operator", "Temp (°C)", "pH", "time, s", "Temp (K)", "yield"]
    named = [f'"{name}"' if separator in name else name for name in names]
    lines = [separator.join(named), *(separator.join(["1.2.2024", "Jörg", *row]) for row in table)]
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return path


GAPS = [(0, 0), (3, 2), (3, 1), (40, 4)]
LAB = ("--target", "yield", "--drop", "Date,Operator")


@pytest.mark.parametrize("memory", ["1 GB", "20 kB"])
def test_rows_with_gaps_are_left_out_and_counted(tmp_path, capsys, memory):
    path = lab_table(tmp_path / "lab.csv", gaps=GAPS)
    found = record(capsys, "fit", path, *LAB, "--memory", memory)
    assert (found["rows"], found["rows_left_out"]) == (77, 3)
    assert found["remarks"] == ["3 of 80 rows have empty cells and were left out"]
    lines = path.read_text(encoding="utf-8").splitlines()
    gone = {row + 1 for row, _ in GAPS}
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join(line for i, line in enumerate(lines) if i not in gone), encoding="utf-8")
    same = record(capsys, "fit", whole, *LAB)
    np.testing.assert_allclose(coefficients(found), coefficients(same), rtol=1e-9)
    assert "line 2, column 'Temp (°C)'" in fails(capsys, "fit", path, *LAB, "--missing", "refuse", "--memory", memory)


def coefficients(found):
    return [term["coef"] for term in found["equations"][0]["terms"]]


def test_most_rows_gone_is_a_warning_that_names_columns(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv", gaps=[(row, 2) for row in range(60)])
    assert main(["fit", str(path), *LAB]) == 0
    captured = capsys.readouterr()
    assert "60 of 80 rows have empty cells and were left out\n" in captured.out
    assert "More than half of the rows were left out. Most empty cells are in 'time, s' (60)" in captured.err


@pytest.mark.usefixtures("no_figures")
def test_a_report_says_which_rows_were_left_out(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv", gaps=GAPS)
    out = tmp_path / "run"
    assert main(["fit", str(path), *LAB, "--out", str(out)]) == 0
    assert "3 of 80 rows have empty cells" in (out / "report.html").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    assert main(["report", str(out / "model.ardea"), "--data", str(path), "--target", "yield", "--out", str(page)]) == 0
    assert "3 of 80 rows have empty cells" in page.read_text(encoding="utf-8")
    assert "3 of 80 rows have empty cells" in capsys.readouterr().err


def test_problems_come_with_the_command_that_works(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    days = [line.replace("1.2.2024", f"2024-01-{i % 28 + 1:02}T{i // 28:02}:00") for i, line in enumerate(lines)]
    path.write_text("\n".join(days), encoding="utf-8")
    said = fails(capsys, "fit", path, "--target", "yield")
    assert "column 'Date' holds dates, not numbers" in said
    tried, other = said.split("Try: ")[1].splitlines()
    assert tried == f"ardea fit {path} --target yield --drop Date"
    assert "write 'Date' as a number, such as the days" in other
    assert main(shlex.split(tried)[1:]) == 0
    capsys.readouterr()
    assert "The target 'Date' must hold numbers" in fails(capsys, "fit", path, "--target", "Date")
    said = fails(capsys, "discover", path, "--step", "1")
    assert said.endswith("--states 'Temp (°C),pH,\"time, s\",Temp (K),yield'\n")


def test_names_with_commas_and_repeated_lists(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv")
    for words in (['Date,Operator,"time, s"'], ["Date,1", "time, s"], ["0,1,4"]):
        drops = [word for text in words for word in ("--drop", text)]
        assert record(capsys, "fit", path, "--target", "yield", *drops)["columns"] == 3
    found = record(capsys, "fit", path, "--target", "yield", "--columns", "time, s", "--columns", "pH", "--keep", "pH")
    assert found["columns"] == 2
    with pytest.raises(SystemExit):
        main(["fit", str(path), "--target", "yield", "--drop", "a,,b"])


def test_decimal_commas_and_windows_letters(tmp_path, capsys):
    plain = record(capsys, "fit", lab_table(tmp_path / "a.csv"), *LAB)
    german = lab_table(tmp_path / "b.csv", ";", ",", "cp1252")
    found = record(capsys, "fit", german, *LAB)
    assert found["equations"] == plain["equations"]
    assert "cp1252" in found["remarks"][0]
    line = fails(capsys, "fit", german, "--target", "yield", "--decimal", ".", "--columns", "pH")
    assert "'-0,216' is not a number" in line
    assert "The target 'yield' must hold numbers" in line
    motion = tmp_path / "motion.csv"
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    write_csv(motion, ["t", "p", "q"], np.column_stack([t, x]))
    first = record(capsys, "discover", motion, "--time", "t")
    motion.write_text(motion.read_text().replace(",", ";").replace(".", ","), encoding="utf-8")
    assert record(capsys, "discover", motion, "--time", "t")["equations"] == first["equations"]


def test_near_names_are_offered(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv")
    assert "Did you mean 'yield'?" in fails(capsys, "fit", path, "--target", "YIELD")
    assert "Did you mean 'Temp (°C)' or 'Temp (K)'?" in fails(capsys, "fit", path, "--target", "temp")


def test_places_and_files_that_cannot_be(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv")
    assert "is a directory" in fails(capsys, "fit", tmp_path, "--target", "yield")
    assert "is a file" in fails(capsys, "fit", path, *LAB, "--out", path)
    assert "is a file" in fails(capsys, "discover", path, "--step", "1", "--out", path)
    header = tmp_path / "header.csv"
    header.write_text("a,b,y\n", encoding="utf-8")
    assert fails(capsys, "fit", header, "--target", "y").endswith("header.csv has no rows.\n")
    write_csv(header, ["a", "y"], [[1, 4], [2, 4], [5, 4]])
    assert "y is 4 in every row: there is nothing to explain." in fails(capsys, "fit", header, "--target", "y")
    line = fails(capsys, "fit", path, *LAB, "--false-terms", "4")
    assert "--false-terms 4 accepts every one of the 4 columns" in line


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("memory", ["1 GB", "20 kB"])
def test_warnings_name_the_columns_of_the_file(tmp_path, capsys, memory):
    path = lab_table(tmp_path / "lab.csv")
    warned = record(capsys, "fit", path, *LAB, "--memory", memory)["warnings"]
    assert any("Temp (°C) and Temp (K)" in one for one in warned)
    out = tmp_path / "run"
    assert main(["fit", str(path), *LAB, "--memory", memory, "--out", str(out)]) == 0
    assert "Temp (°C) and Temp (K)" in capsys.readouterr().err
    assert "Temp (°C) and Temp (K)" in (out / "report.html").read_text(encoding="utf-8")


def test_the_terminal_prints_numbers_that_can_be_copied(tmp_path, capsys):
    assert main(["fit", str(lab_table(tmp_path / "lab.csv")), *LAB]) == 0
    out = capsys.readouterr().out
    assert "−" not in out
    assert "If none of the 4 columns mattered, 0.3 of them would be kept on average: each has a 7.5 % chance." in out


def test_noise_does_not_exceed_what_there_is(tmp_path, capsys):
    rng = np.random.default_rng(1)
    write_csv(tmp_path / "n.csv", ["a", "y"], rng.normal(size=(12, 2)))
    assert main(["fit", str(tmp_path / "n.csv"), "--target", "y", "--false-terms", "0.0001"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("noise"))
    noise, spread = line.removeprefix("noise σ = ").split("; y itself varies by ")
    assert float(noise) <= float(spread)


@pytest.mark.usefixtures("no_figures")
def test_predict_is_the_models_prediction(tmp_path, capsys):
    path = lab_table(tmp_path / "lab.csv")
    out = tmp_path / "run"
    assert main(["fit", str(path), *LAB, "--out", str(out)]) == 0
    model = ardea.load(out / "model.ardea")
    kept = [str(name) for name in model.feature_names_in_[model.support_]]
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5, len(kept)))
    full = rng.normal(size=(5, model.n_features_in_))  # what stands in dropped columns does not matter
    full[:, model.support_] = X
    new = tmp_path / "new.csv"
    lines = [",".join([*reversed(kept), "extra"]), *(",".join([*map(repr, row[::-1].tolist()), "text"]) for row in X)]
    lines.insert(2, ",".join(["", *["1"] * (len(kept) - 1), "text"]))
    new.write_text("\n".join(lines), encoding="utf-8")
    capsys.readouterr()
    target = tmp_path / "p.csv"
    found = record(capsys, "predict", out / "model.ardea", new, "--level", "0.5", "--out", target)
    del model.feature_names_in_
    mean, std = model.predict(full, return_std=True)
    columns = found["predictions"]
    assert columns["prediction"][1] is None
    assert found["rows_without"] == 1
    half = 0.6744897501960817 * std
    for name, values in (("prediction", mean), ("std", std), ("low 50%", mean - half), ("high 50%", mean + half)):
        np.testing.assert_allclose([one for one in columns[name] if one is not None], values, rtol=1e-12)
    written = target.read_text(encoding="utf-8").splitlines()
    assert written[0] == "prediction,std,low 50%,high 50%"
    assert written[2] == ",,,"
    assert float(written[1].split(",")[0]) == columns["prediction"][0]
    new.write_text("a,b\n1,2\n", encoding="utf-8")
    line = fails(capsys, "predict", out / "model.ardea", new)
    assert all(name in line for name in kept)


def test_a_column_of_times_among_the_states_is_pointed_out(folder, capsys):
    warned = record(capsys, "discover", folder / "motion.csv", "--step", "0.1", "--degree", "1")["warnings"]
    assert "column 't' rises strictly: did you mean --time 't'?" in warned
    warned = record(capsys, "discover", folder / "motion.csv", "--time", "t")["warnings"]
    assert not any("--time" in one for one in warned)


def test_messages_speak_of_options(tmp_path, capsys):
    write_csv(tmp_path / "short.csv", ["t", "x"], [[0, 1], [1, 2], [2, 1]])
    line = fails(capsys, "discover", tmp_path / "short.csv", "--time", "t", "--form", "weak")
    assert "--form derivative" in line
    assert "form='derivative'" not in line


# Tables that say little about themselves


def colours(path, rows=90, extra=()):
    rng = np.random.default_rng(5)
    texts = np.array(["blue", "green", "red"])[rng.integers(0, 3, rows)]
    a = rng.normal(size=rows)
    y = a + 2.0 * (texts == "red") + 0.1 * rng.normal(size=rows)
    lines = [
        "colour,a,y",
        *(f"{t},{u!r},{v!r}" for t, u, v in zip(texts.tolist(), a.tolist(), y.tolist(), strict=True)),
    ]
    path.write_text("\n".join([*lines, *extra]) + "\n", encoding="utf-8")
    return path


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("search", [[], ["--search"]])
def test_texts_are_encoded_by_fit_and_again_by_predict(tmp_path, capsys, search):
    path, out = colours(tmp_path / "t.csv", extra=[",1,2"]), tmp_path / "run"
    found = record(capsys, "fit", path, "--target", "y", "--out", out, *search)
    assert {"colour=red", "a"} <= {term["name"] for term in found["equations"][0]["terms"]}
    assert any("'colour' holds 3 texts" in one and "against 'blue'" in one for one in found["remarks"])
    assert found["rows_left_out"] == 1
    new = tmp_path / "new.csv"
    new.write_text("a,colour\n1,red\n1,blue\n1,\n1,green\n", encoding="utf-8")
    predictions = record(capsys, "predict", out / "model.ardea", new)["predictions"]["prediction"]
    model = ardea.load(out / "model.ardea")
    model = getattr(model, "best_estimator_", model)
    a, red = model.coef_[2], model.coef_[1]
    np.testing.assert_allclose([predictions[0], predictions[1]], [model.intercept_ + a + red, model.intercept_ + a])
    assert predictions[2] is None
    np.testing.assert_allclose(predictions[3], model.intercept_ + a + model.coef_[0])
    new.write_text("a,colour\n1,red\n1,pink\n", encoding="utf-8")
    found = record(capsys, "predict", out / "model.ardea", new)
    assert [one is None for one in found["predictions"]["prediction"]] == [False, True]
    assert any("column 'colour' (1 row): unknown text 'pink'" in one for one in found["warnings"])
    new.write_text("a,colour\n1,RED\n1,RED\n", encoding="utf-8")
    (said,) = (one for one in record(capsys, "predict", out / "model.ardea", new)["warnings"] if "RED" in one)
    assert "(2 rows)" in said
    assert "Did you mean 'red'?" in said
    new.write_text("1.5,red\n2.5,blue\n", encoding="utf-8")
    said = fails(capsys, "predict", out / "model.ardea", new)
    assert "no header was found" in said
    assert "1.5" in said
    page = tmp_path / "page.html"
    assert main(["report", str(out / "model.ardea"), "--data", str(path), "--target", "y", "--out", str(page)]) == 0


def test_what_is_encoded_can_be_told(tmp_path, capsys):
    path = colours(tmp_path / "t.csv")
    said = fails(capsys, "fit", path, "--target", "y", "--categorical", "none")
    assert f"Try: ardea fit {path} --target y --drop colour --categorical none" in said
    found = record(capsys, "fit", path, "--target", "y", "--keep", "colour")
    assert {"colour=green", "colour=red"} <= {term["name"] for term in found["equations"][0]["terms"]}
    codes = tmp_path / "codes.csv"
    codes.write_text(path.read_text().replace("red", "3").replace("green", "2").replace("blue", "1"), encoding="utf-8")
    found = record(capsys, "fit", codes, "--target", "y", "--categorical", "colour")
    assert [term["name"] for term in found["equations"][0]["terms"]] == ["colour=3", "a"]


@pytest.mark.usefixtures("no_figures")
def test_files_without_header_are_matched_by_position_and_number_of_columns(tmp_path, capsys):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    table = np.column_stack([X[:, 0], 3 * X[:, 2] + 0.1 * rng.normal(size=60), X[:, 1:]])  # the target is second
    np.savetxt(tmp_path / "t.csv", table, delimiter=",")
    out = tmp_path / "run"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    np.savetxt(tmp_path / "new.csv", table[:5], delimiter=",")
    found = record(capsys, "predict", out / "model.ardea", tmp_path / "new.csv")["predictions"]["prediction"]
    np.testing.assert_allclose(found, table[:5, 1], atol=0.5)
    np.savetxt(tmp_path / "new.csv", X[:5], delimiter=",")
    said = fails(capsys, "predict", out / "model.ardea", tmp_path / "new.csv")
    assert "has 3 columns, but the model was fitted to a file of 4, the target x1 among them" in said
    (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n", encoding="utf-8")
    assert "x3" in fails(capsys, "predict", out / "model.ardea", tmp_path / "new.csv")


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("target", [0, 3])
def test_files_without_header_may_lack_a_target_at_the_edge(tmp_path, capsys, target):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    y = 3 * X[:, 2] + 0.1 * rng.normal(size=60)
    np.savetxt(tmp_path / "t.csv", np.insert(X, target, y, axis=1), delimiter=",")
    out, new = tmp_path / "run", tmp_path / "new.csv"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", str(target), "--out", str(out)]) == 0
    capsys.readouterr()
    np.savetxt(new, X[:5], delimiter=",")
    found = record(capsys, "predict", out / "model.ardea", new)
    np.testing.assert_allclose(found["predictions"]["prediction"], y[:5], atol=0.5)
    assert any("is not there" in one for one in found["remarks"])
    empty = "\n".join(f",{line}" if target == 0 else f"{line}," for line in new.read_text().splitlines())
    new.write_text(empty, encoding="utf-8")
    again = record(capsys, "predict", out / "model.ardea", new)
    np.testing.assert_array_equal(again["predictions"]["prediction"], found["predictions"]["prediction"])
    if target == 0:  # all columns are there, the last of them empty: nothing is moved
        new.write_text("\n".join(f"1.5,{a!r},{b!r}," for a, b in X[:5, :2].tolist()), encoding="utf-8")
        assert "needs x3" in fails(capsys, "predict", out / "model.ardea", new)
    new.write_text("a,b,c\n1,2,3\n", encoding="utf-8")
    assert "fitted to a file without names" in fails(capsys, "predict", out / "model.ardea", new)


def test_few_wrong_cells_do_not_cost_a_column(tmp_path, capsys):
    rng = np.random.default_rng(8)
    lines = [f"{a!r},{3 * a + 0.1 * b!r}" for a, b in rng.normal(size=(60, 2)).tolist()]
    path = tmp_path / "t.csv"
    for token in ("<0.5", "inf", "-inf"):
        path.write_text("\n".join(["a,y", *lines, f"{token},1"]), encoding="utf-8")
        said = fails(capsys, "fit", path, "--target", "y")
        assert "Correct these lines" in said
        assert "--drop" not in said
        assert main(shlex.split(said.split("as empty: ")[1])[1:]) == 0
        capsys.readouterr()
    for sign in ("{}%", "${}", "{} €"):
        path.write_text("\n".join(["a,y", *(f"{sign.format(i % 7)},{i}" for i in range(50))]), encoding="utf-8")
        assert "was left out" in record(capsys, "fit", path, "--target", "y")["remarks"][0]
    path.write_text("\n".join(["a,y", *(f"{i}{'%€'[i % 2]},{i}" for i in range(50))]), encoding="utf-8")
    assert "mixes numbers in different units: % in 25 cells (first in line 2) and €" in fails(
        capsys, "fit", path, "--target", "y"
    )


def test_a_sign_is_read_where_it_leaves_no_doubt(tmp_path, capsys):
    """1.234 € beside 999 € may be a thousand, and is refused unless other columns tell, or the user."""
    path = tmp_path / "t.csv"
    prices = [950 + 37 * i % 101 for i in range(60)]
    rows = [f"{price};{f'{price:,} €'.replace(',', '.')};{price % 7},5" for price in prices]
    path.write_text("\n".join(["y;price;share", *rows]), encoding="utf-8")
    decided = record(capsys, "fit", path, "--target", "y")
    assert [term["name"] for term in decided["equations"][0]["terms"]] == ["price"]
    assert decided["equations"][0]["terms"][0]["coef"] == pytest.approx(1, abs=1e-6)
    path.write_text("\n".join(["y;price", *(row.rpartition(";")[0] for row in rows)]), encoding="utf-8")
    assert "write the numbers alone, or say with --decimal" in fails(capsys, "fit", path, "--target", "y")
    told = record(capsys, "fit", path, "--target", "y", "--decimal", ",")
    assert told["equations"][0]["terms"][0]["coef"] == pytest.approx(1, abs=1e-6)


def test_a_title_above_the_table_and_times_out_of_order(tmp_path, capsys):
    path = tmp_path / "t.csv"
    lines = ["t,x", *(f"{i},{float(np.sin(i / 5))!r}" for i in range(40))]
    path.write_text("\n".join(["Measured on 3 March", "", *lines]), encoding="utf-8")
    found = record(capsys, "discover", path, "--time", "t", "--second-order")
    assert found["remarks"] == ["the table begins below 'Measured on 3 March'"]
    assert found["rows_used"] == 40
    lines[5], lines[6] = lines[6], lines[5]
    path.write_text("\n".join(lines), encoding="utf-8")
    said = fails(capsys, "discover", path, "--time", "t")
    assert "line 7, column 't': 4.0 does not come after 5.0" in said
    assert "--series" in said


@pytest.mark.usefixtures("no_figures")
def test_predictions_keep_their_places(tmp_path, capsys):
    path, out = colours(tmp_path / "t.csv"), tmp_path / "run"
    assert main(["fit", str(path), "--target", "y", "--drop", "colour", "--out", str(out)]) == 0
    new = tmp_path / "new.csv"
    new.write_text("a,b\n1,2\n,\n3,4\nbroken,5\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["predict", str(out / "model.ardea"), str(new), "--na", "broken"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [bool(line.strip(",")) for line in lines] == [True, True, False, True, False]


def test_what_was_inferred_is_said(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("# made\nday;load;y\n-;kg;m\n" + "1;12,345;2\n2;999;4\n3;1,500;6\n4;700;9\n", encoding="utf-8")
    assert main(["fit", str(path), "--target", "y"]) == 0
    out = capsys.readouterr().out
    assert "commas in column 'load' group thousands" in out
    assert "was read as units" in out
    path.write_text("2019,2020\n1,2\n3,5\n4,4\n", encoding="utf-8")
    assert "--header yes" in "".join(record(capsys, "fit", path, "--target", "1")["remarks"])
    assert record(capsys, "fit", path, "--target", "2020", "--header", "yes")["columns"] == 1


@pytest.mark.usefixtures("no_figures")
def test_names_that_would_take_over_a_terminal_or_a_spreadsheet(tmp_path, capsys):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 2))
    path, out = tmp_path / "t.csv", tmp_path / "run"
    write_csv(path, ["=1+1", "\x1b[2Ja", "y"], np.column_stack([X, X.sum(axis=1) + 0.1 * rng.normal(size=50)]))
    assert main(["fit", str(path), "--target", "y", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    written = (out / "coefficients.csv").read_text(encoding="utf-8")
    assert ",'=1+1," in written
    assert "\x1b" not in written


@pytest.mark.usefixtures("no_figures")
def test_simulate_is_the_models_simulation(folder, capsys, tmp_path):
    out = tmp_path / "run"
    assert main(["discover", str(folder / "motion.csv"), "--time", "t", "--degree", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    model = out / "model.ardea"
    arguments = ["simulate", str(model), "--start", "1,0.5", "--until", "2", "--step", "0.5"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "t,p,q"
    found = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    t = np.arange(0, 2.01, 0.5)
    np.testing.assert_array_equal(found[:, 0], t)
    np.testing.assert_allclose(found[:, 1:], ardea.load(model).simulate([1, 0.5], t), rtol=5e-6)  # six digits
    assert main([*arguments, "--out", str(tmp_path / "run.csv")]) == 0  # all of them
    again = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(again[:, 1:], ardea.load(model).simulate([1, 0.5], t), rtol=1e-12)
    capsys.readouterr()
    assert main(["simulate", str(model), "--start", "1,0.5", "--until", "2", "--out", str(tmp_path / "s.csv")]) == 0
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 102
    capsys.readouterr()
    assert "--start needs 2 numbers, for p, q; got 1" in fails(
        capsys, "simulate", model, "--start", "1", "--until", "2"
    )


@pytest.mark.usefixtures("no_figures")
def test_positions_alone(tmp_path, capsys):
    t, x = systems.duffing().noisy(0.02, seed=0)
    write_csv(tmp_path / "swing.csv", ["t", "x"], np.column_stack([t, x[:, 0]]).tolist())
    options = ["--time", "t", "--second-order", "--noise", "additive", "--false-terms", "0.1"]
    found = record(capsys, "discover", tmp_path / "swing.csv", *options, "--out", tmp_path)
    assert found["form"] == "trajectory"
    assert found["rows_used"] == len(t)
    assert found["equations"][0]["left"] == "(x)''"
    assert [term["name"] for term in found["equations"][0]["terms"]] == ["x", "x'", "x^3"]
    assert main(["simulate", str(tmp_path / "model.ardea"), "--until", "1", "--step", "0.5"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "t,x,x'"
    assert [float(one) for one in first.split(",")] == pytest.approx([0.0, 2.0, 0.0], abs=0.05)
    line = fails(capsys, "simulate", tmp_path / "model.ardea", "--start", "1", "--until", "1")
    assert "--start needs 2 numbers, for x, x'" in line


@pytest.mark.usefixtures("no_figures")
def test_known_noise(tmp_path, capsys):
    t, x = systems.linear_oscillator().noisy(0.05, seed=0)
    write_csv(tmp_path / "two.csv", ["t", "x", "y"], np.column_stack([t, x]).tolist())
    told = record(capsys, "discover", tmp_path / "two.csv", "--time", "t", "--noise", "0.03,0.04")
    assert [one["noise_std"] for one in told["equations"]] == pytest.approx([0.03, 0.04])
    weak = record(capsys, "discover", tmp_path / "two.csv", "--time", "t", "--form", "weak")
    assert weak["form"] == "weak"
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "two.csv"), "--target", "y", "--noise", "0.1", "--out", str(page)]) == 0
    capsys.readouterr()
    line = fails(capsys, "report", tmp_path / "two.csv", "--target", "y", "--noise", "auto", "--out", page)
    assert "--noise is a standard deviation" in line


def test_maps_keep_their_gaps(tmp_path, capsys):
    _, x = systems.logistic_map().simulate()
    whole = [repr(float(one)) for one in np.ravel(x)]
    whole[20] = ""
    (tmp_path / "map.csv").write_text("\n".join(["n", *whole]) + "\n", encoding="utf-8")
    found = record(capsys, "discover", tmp_path / "map.csv", "--map")
    assert [term["name"] for term in found["equations"][0]["terms"]] == ["n", "n^2"]
    assert found["read"].startswith(f"{len(whole)} rows")


def test_the_parser_loads_no_package_and_knows_their_choices():
    code = "import sys; from ardea.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "pandas", "matplotlib"} & set(loaded)
    assert METHODS[2:] == tuple(ardea.rates.METHODS)
    assert tuple(one for one in CRITERIA_OF_SEARCH if one != "oracle") == CRITERIA
    of_reproduce = dict(ADDED["reproduce"][2])
    assert [of_reproduce[name]["choices"] for name in ("--scale", "--variant")] == [SCALES, VARIANTS]


# products of columns, folders


@pytest.mark.usefixtures("no_figures")
def test_powers_and_products_are_found_and_predicted_again(tmp_path, capsys):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 120))
    colour = np.array(["red", "blue", "green"])[np.arange(120) % 3]
    y = 2 * a**2 - a * b + 3 * b * (colour == "red") + 0.1 * rng.normal(size=120)
    table = pd.DataFrame({"a a": a, "b": b, "colour": colour, "y": y})
    table.to_csv(tmp_path / "all.csv", index=False)
    run = tmp_path / "run"
    options = ["--degree", "2", "--interactions", "--out", str(run)]
    found = record(capsys, "fit", tmp_path / "all.csv", "--target", "y", *options)
    assert {term["name"] for term in found["equations"][0]["terms"]} == {"(a a)^2", "a a · b", "b · colour=red"}
    assert found["columns"] == 4 + 2 + 1 + 2 * 2  # columns, squares, and products that are not of one text with itself
    assert 0.99 < found["r_squared"] < 1
    # Predictions need only the columns of the table that the products are made of; of a folder, all its tables.
    new = tmp_path / "new"
    new.mkdir()
    for name, part in (("1.csv", table[:50]), ("2.csv", table[50:])):
        part.drop(columns="y").to_csv(new / name, index=False)
    said = record(capsys, "predict", run / "model.ardea", new)["predictions"]
    left = y - np.array(said["prediction"])
    assert 1 - left @ left / np.sum((y - y.mean()) ** 2) == pytest.approx(found["r_squared"], abs=1e-12)
    assert said["file"] == ["1.csv"] * 50 + ["2.csv"] * 70
    (tmp_path / "nothing").mkdir()
    assert "holds no table" in fails(capsys, "predict", run / "model.ardea", tmp_path / "nothing")


# first steps


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """An oscillator with a switch that drives it, in two runs with dates: the table, and a model of it."""
    place = tmp_path_factory.mktemp("driven")
    t = np.arange(0, 20, 0.1)
    model = Discovery(Polynomials(1))
    switch = np.where(t % 4 < 2, 1.0, -1.0)
    frames = []
    for start in ([1.0, 0.0], [0.0, 2.0]):
        x = _oscillator(t, switch, start)
        dates = pd.Timestamp("2024-03-01") + pd.to_timedelta(t, unit="s")
        frames.append(pd.DataFrame({"timestamp": dates, "x": x[:, 0], "v": x[:, 1], "switch": switch}))
    rng = np.random.default_rng(0)
    table = pd.concat([one.assign(run=f"run {number}") for number, one in enumerate(frames)])
    table[["x", "v"]] += 0.001 * rng.normal(size=(len(table), 2))
    table.to_csv(place / "runs.csv", index=False)
    model.fit(
        [one[["x", "v"]] for _, one in table.groupby("run")],
        [one["timestamp"].to_numpy() for _, one in table.groupby("run")],
        u=[one[["switch"]] for _, one in table.groupby("run")],
    )
    ardea.save(model, place / "model.ardea")
    return place, t, switch, frames


def _oscillator(t, switch, start):
    """x'' = −x − x'/5 + switch, exactly: between samples the switch stays what it was."""
    step = linalg.expm(np.array([[0, 1, 0], [-1, -0.2, 1], [0, 0, 0]]) * (t[1] - t[0]))
    x = [np.array(start)]
    for u in switch[:-1]:
        x.append((step @ [*x[-1], u])[:2])
    return np.array(x)


def test_simulate_takes_inputs_from_a_file_and_dates(driven, capsys):
    place, t, switch, (_, second) = driven
    model, table = place / "model.ardea", place / "inputs.csv"
    second.drop(columns=["x", "v"]).to_csv(table, index=False)
    options = ["--inputs", str(table), "--step", "0.1"]
    until = ["--from", "2024-03-01", "--until", "2024-03-01T00:00:10"]
    assert main(["simulate", str(model), "--start", "0,2", *until, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "t,x,v"
    assert lines[1].startswith("2024-03-01 00:00:00")
    found = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]])
    np.testing.assert_allclose(found, _oscillator(t, switch, [0.0, 2.0])[:101], atol=0.01)
    assert (
        main(["simulate", str(model), "--start", "0,2", "--until", "10", *options]) == 0
    )  # seconds since the first row
    assert capsys.readouterr().out.splitlines()[1:] == lines[1:]
    assert "give --inputs FILE" in fails(capsys, "simulate", model, "--start", "0,2", "--until", "1")
    assert main(["simulate", str(model), "--start", "0,2", "--until", "25", *options]) == 0
    assert "inputs stay what they are" in capsys.readouterr().err
    before = fails(capsys, "simulate", model, "--start", "0,2", "--from", "-1", "--until", "10", *options)
    assert "inputs.csv has inputs from 2024-03-01T00:00:00" in before
    assert "is not after the start" in fails(
        capsys, "simulate", model, "--start", "0,2", "--from", "3", "--until", "2", *options
    )


def test_a_date_means_nothing_to_a_model_of_numbers(folder, capsys, tmp_path):
    motion = pd.read_csv(folder / "motion.csv")
    ardea.save(Discovery(Polynomials(1)).fit(motion[["p", "q"]], motion["t"].to_numpy()), tmp_path / "model.ardea")
    said = fails(capsys, "simulate", tmp_path / "model.ardea", "--start", "1,0", "--until", "2024-03-02")
    assert "the times of the data were numbers" in said
    assert main(["simulate", str(tmp_path / "model.ardea"), "--from", "5", "--until", "6"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("5.0,")


def test_discover_offers_the_options_that_a_table_calls_for(driven, capsys, tmp_path):
    place, *_, (first, _) = driven
    runs = place / "runs.csv"
    assert fails(capsys, "discover", runs).endswith(f"  Try: ardea discover {runs} --time timestamp\n")
    said = fails(capsys, "discover", runs, "--time", "timestamp")
    assert f"If 'run' tells several runs apart: ardea discover {runs} --time timestamp --series run\n" in said
    first.to_csv(tmp_path / "one.csv", index=False)
    weak = ["--degree", "1", "--form", "weak"]
    told = record(capsys, "discover", tmp_path / "one.csv", "--time", "timestamp", *weak)["warnings"]
    assert any("switch has only the values" in one and "--inputs" in one for one in told)
    assert "There are timestamp, x, v, switch, run." in fails(capsys, "fit", runs)
    assert fails(capsys, "simulate", tmp_path / "nothing", "--until", "1").endswith(
        f"no file {tmp_path / 'nothing'}.\n"
    )


def test_what_was_tried_is_said_where_nothing_fits_and_what_to_do_with_few_rows(capsys, tmp_path):
    t = np.arange(0, 4, 0.1)
    write_csv(tmp_path / "alone.csv", ["t", "x"], np.column_stack([t, np.sin(2 * t) + np.sin(5.3 * t)]))
    assert main(["discover", str(tmp_path / "alone.csv"), "--time", "t"]) == 0
    out = capsys.readouterr().out
    assert "Tried, and not enough: 1, x, x^2, x^3." in out
    assert "(--second-order)" in out
    assert "40 rows are few" in out
