"""What a model remembers of its rows tells how new ones are read, and what of them is odd."""

import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.cli import main
from ardea.tables.series import Choice, read_series

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def predict(tmp_path, capsys):
    """Predict the lines of a table with a model of warmth and price, and return what is printed and said."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"T": rng.normal(20, 5, 80).round(1), "price": rng.integers(1094, 8959, 80)})
    frame["y"] = (3 * frame["T"] + 0.01 * frame.price + rng.normal(size=80)).round(2)
    rows = "\n".join(";".join(map(str, row)) for row in frame.to_numpy().tolist())
    (tmp_path / "table.csv").write_text(f"T;price;y\n°C;€;kg\n{rows}\n", encoding="utf-8")
    assert main(["fit", str(tmp_path / "table.csv"), "--target", "y", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()

    def predicted(*lines):
        (tmp_path / "new.csv").write_text("\n".join(["T;price", *lines]) + "\n", encoding="utf-8")
        assert main(["predict", str(tmp_path / "run" / "model.ardea"), str(tmp_path / "new.csv")]) == 0
        return capsys.readouterr()

    return predicted


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["°F;€", "50;5000", "51;5001"], "°C when the model was fitted, and have °F here"),
        (["[°C];€", "20;5000", "21;5001"], None),
        (["20 °C;5000 €", "21 °C;5001 €"], None),
        (["20 °C;5000 $", "21 °C;5001 $"], "€ when the model was fitted, and have $ here"),
        (["20;5000 €", "21;5001 €"], "°C when the model was fitted, and have none here"),
    ],
)
def test_units_below_the_names_and_in_cells_are_compared(predict, lines, told):
    said = predict(*lines).err
    assert ("sign or unit" in said) == (told is not None)
    assert told is None or told in said


def test_marks_in_doubt_are_read_so_that_numbers_lie_in_the_rows_of_the_fit(predict):
    out, said = predict("°C;€", "20.5;5,115", "21.5;4,200")
    assert float(out.splitlines()[1].split(",")[0]) == pytest.approx(61.5 + 51.15, abs=3)
    assert "commas in column 'price' group thousands" in said


def test_codes_for_missing_readings_outside_the_rows_of_the_fit_are_told_with_what_helps(predict):
    assert "price reaches -999, fitted in [" in (said := predict("°C;€", "20;5000", "20;-999").err)
    assert "--na=-999" in said
    assert "Prediction" not in predict("°C;€", "20;5000", "20;1000").err


def test_equal_times_of_a_series_are_in_order(tmp_path, capsys):
    rng = np.random.default_rng(5)
    days = np.sort(rng.integers(0, 28, 60)) + 1
    frame = pd.DataFrame({"date": [f"2024-02-{day:02d}" for day in days], "a": rng.normal(size=60)})
    frame.assign(y=frame.a + 0.1 * rng.normal(size=60)).to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--drop", "date", "--rows", "series"]
    assert main(command) == 0
    said = "".join(capsys.readouterr())
    assert "in the order of time" not in said
    assert "the steps of 'date' are uneven" in said


def test_rows_that_contradict_a_model_are_told_on_top_of_its_page_and_in_the_terminal(tmp_path, capsys):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=50)})
    frame.assign(y=2 * frame.a + 0.1 * rng.normal(size=50)).to_csv(tmp_path / "t.csv", index=False)
    frame.assign(y=-30 * frame.a + 9).to_csv(tmp_path / "other.csv", index=False)
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    page = tmp_path / "page.html"
    for name, fails in (("t.csv", False), ("other.csv", True)):
        command = ["report", str(tmp_path / "run" / "model.ardea"), "--data", str(tmp_path / name), "--out", str(page)]
        assert main(command) == 0
        said, text = capsys.readouterr().err, page.read_text(encoding="utf-8")
        assert ("The model of y does not hold for these rows: 4 % of them" in said) == fails
        assert text.count("does not hold for these rows") == fails
        assert "Gaussian" not in text


def test_a_model_fitted_in_python_knows_no_units_to_compare_with(tmp_path, capsys):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=50)})
    ardea.save(ardea.SparseARD().fit(frame, 2 * frame.a + 0.1 * rng.normal(size=50)), tmp_path / "model.ardea")
    (tmp_path / "new.csv").write_text("a;b\nkg;m\n1;2\n2;3\n")
    assert main(["predict", str(tmp_path / "model.ardea"), str(tmp_path / "new.csv")]) == 0
    assert "sign or unit" not in capsys.readouterr().err


def test_of_a_folder_all_tables_are_predicted_and_others_are_named(predict, tmp_path, capsys):
    new = tmp_path / "new"
    new.mkdir()
    for name, text in {
        "a.csv": "T;price\n20;5000\n",
        "b.csv": "T;prise\n20;5000\n",
        "c.txt": "read me\n",
        "d.csv": "T;price\n21;5001\n",
    }.items():
        (new / name).write_text(text, encoding="utf-8")
    for name in (".DS_Store", "._a.csv", "~$a.xlsx"):
        (new / name).write_bytes(b"\x00")
    command = ["predict", str(tmp_path / "run" / "model.ardea"), str(new), "--out", str(tmp_path / "out.csv")]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "no tables, and left out: .DS_Store, ._a.csv, ~$a.xlsx" in said
    assert "no predictions for 2 of 4 tables:" in said
    assert "b.csv has no column 'price'. Did you mean 'prise'?" in said
    assert "c.txt has no column 'T'." in said
    assert pd.read_csv(tmp_path / "out.csv")["file"].tolist() == ["a.csv", "d.csv"]
    for name in ("b.csv", "c.txt"):
        (new / name).unlink()
    assert main(command) == 0
    for name in ("a.csv", "d.csv"):
        (new / name).write_text("nothing\n", encoding="utf-8")
    capsys.readouterr()
    assert main(command) == 1
    assert "d.csv has no column 'T'" in capsys.readouterr().err


def test_parquet_files_are_tables_like_others_but_for_parts_of_one(predict, tmp_path, capsys):
    predict("°C;€", "20;5000")
    rows = pd.DataFrame({"T": [20.0, 21.0], "price": [5000, 6000]})
    for folder, names in {
        "mixed": ["a.parquet", "part-0.parquet"],
        "parts": ["part-0.parquet", "part-1.parquet"],
        "named.parquet": ["a.parquet", "b.parquet"],
    }.items():
        (tmp_path / folder).mkdir()
        for name in names:
            rows.to_parquet(tmp_path / folder / name)
    (tmp_path / "mixed" / "us.csv").write_text("T,price\n20,5000\n")
    (tmp_path / "mixed" / "broken.parquet").write_text("nothing")
    (tmp_path / "parts" / "_SUCCESS").write_text("")

    def predicted(folder):
        code = main(["predict", str(tmp_path / "run" / "model.ardea"), str(tmp_path / folder)])
        said = capsys.readouterr()
        return code, [line.split(",")[0] for line in said.out.splitlines()[1:]], said.err

    code, files, said = predicted("mixed")
    assert (code, files) == (1, ["a.parquet"] * 2 + ["part-0.parquet"] * 2 + ["us.csv"])
    assert "broken.parquet cannot be read as Parquet" in said
    for folder in ("parts", "named.parquet"):
        code, files, _ = predicted(folder)
        assert (code, len(files)) == (0, 4)
        assert "parquet" not in str(files)
    (tmp_path / "parts" / "part-1.parquet").write_text("nothing")
    code, _, said = predicted("parts")
    assert code == 1
    assert "part-1.parquet cannot be read" in said
    assert main(["fit", str(tmp_path / "mixed"), "--target", "T"]) == 1
    assert "where all are called part-0.parquet" in capsys.readouterr().err


def test_names_are_compared_however_their_accents_are_stored(tmp_path, capsys):
    """ä as one letter, or as a and two dots, as on a Macintosh."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    table = pd.DataFrame({"Fläche": x, "y": 2 * x + 0.1 * rng.normal(size=40)})
    table.to_csv(tmp_path / "t.csv", index=False)
    run = tmp_path / "run"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--keep", "Fla\u0308che", "--out", str(run)]) == 0
    (tmp_path / "new.csv").write_text("Fla\u0308che\n1\n2\n", encoding="utf-8")
    assert main(["predict", str(run / "model.ardea"), str(tmp_path / "new.csv")]) == 0


def test_columns_of_one_name_are_not_taken_for_those_that_pandas_numbers(tmp_path, capsys):
    rng = np.random.default_rng(3)
    X = rng.normal(10, 2, (60, 2)).round(2)
    y = (3 * X[:, 0] + rng.normal(0, 0.3, 60)).round(2)
    raw = "\n".join(["signal,signal,y", *(f"{a},{b},{c}" for (a, b), c in zip(X, y, strict=True))])
    (tmp_path / "raw.csv").write_text(raw + "\n", encoding="utf-8")
    pd.read_csv(tmp_path / "raw.csv").to_csv(tmp_path / "pandas.csv", index=False)
    for fitted, other in (("raw", "pandas"), ("pandas", "raw")):
        model = tmp_path / fitted
        assert main(["fit", str(tmp_path / f"{fitted}.csv"), "--target", "y", "--out", str(model)]) == 0
        assert main(["predict", str(model / "model.ardea"), str(tmp_path / f"{fitted}.csv")]) == 0
        found = np.loadtxt(capsys.readouterr().out.split("prediction,")[-1].splitlines()[1:], delimiter=",")[:, 0]
        np.testing.assert_allclose(found, 3 * X[:, 0], atol=0.5)
        assert main(["predict", str(model / "model.ardea"), str(tmp_path / f"{other}.csv")]) == 1
        said = capsys.readouterr().err
        assert "has no column 'signal" in said
        assert ("had several columns 'signal', told apart as 'signal#1'" in said) == (fitted == "raw")


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "npy", "xlsx"])
def test_codes_are_no_values_in_every_format(tmp_path, ending, capsys):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"a": rng.normal(size=60), "n": rng.integers(1000, 2000, 60)})
    frame["y"] = 2 * frame.a + 0.01 * rng.normal(size=60)
    frame.loc[::10, "a"] = -999
    frame.loc[5, "n"] = -77
    path, target = tmp_path / f"table.{ending}", "x2" if ending == "npy" else "y"
    write = {"csv": frame.to_csv, "xlsx": frame.to_excel}
    if ending in write:
        write[ending](path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    elif ending == "npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    else:
        np.save(path, frame.to_numpy())
    codes = ["--na=-999", "--na=-77", "--na", "void"]
    assert main(["fit", str(path), "--target", target, *codes, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "53 of 60 rows" in said
    assert "--na void: no cell" in said
    assert "--na -999" not in said
    assert main(["predict", str(tmp_path / "run" / "model.ardea"), str(path)]) == 0
    printed = capsys.readouterr()
    assert sum(line.startswith(",") for line in printed.out.splitlines()) == 6
    assert "6 of 60 rows have empty cells" in printed.err


@pytest.mark.parametrize("ending", ["npz", "nc"])
def test_codes_are_gaps_in_fields_and_not_in_their_coordinates(tmp_path, ending):
    t, x = np.arange(30) / 10, np.arange(20) - 10.0
    u = np.sin(np.add.outer(x, -t))
    u[3, 4] = -5.0
    if ending == "npz":
        np.savez(tmp_path / "field.npz", u=u, x=x, t=t)
    else:
        xarray = pytest.importorskip("xarray")
        xarray.Dataset({"u": (("x", "t"), u)}, {"x": x, "t": t}).to_netcdf(tmp_path / "field.nc")
    series = read_series(tmp_path / f"field.{ending}", Choice("t"), na=("-5", "-7"))
    assert np.flatnonzero(np.isnan(series.x.ravel())).tolist() == [3 * 30 + 4]
    np.testing.assert_array_equal(series.space[0], x)
    assert series.remarks == ["--na -7: no cell that was read holds this"]


@pytest.mark.parametrize("first", ["#DIV/0!", "#N/A", "#WERT!", "#1", "#2,5"])
@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_rows_that_begin_with_a_sign_of_comments_keep_their_places(predict, tmp_path, capsys, first, ending):
    predict("°C;€", "20;5000")
    capsys.readouterr()
    rows = [
        "# made by hand",
        "note;price;T",
        "1;5000;20",
        f"{first};6000;21",
        "# a break",
        "3;7000;22",
        f"{first};1;20",
    ]
    text = "\n".join(rows) + "\n"
    path = tmp_path / f"hash.{ending}"
    path.write_text(text if ending == "csv" else text.replace(";", " ").replace("# made by hand", "# by hand"))
    assert main(["predict", str(tmp_path / "run" / "model.ardea"), str(path)]) == 0
    said = capsys.readouterr()
    found = [float(line.split(",")[0]) for line in said.out.splitlines()[1:]]
    np.testing.assert_allclose(found, [110, 123, 136, 60], atol=4)
    assert "2 lines begin with # and were left out" in said.err


def test_an_error_of_a_spreadsheet_in_a_first_cell_is_an_empty_cell(predict, tmp_path, capsys):
    predict("°C;€", "20;5000")
    capsys.readouterr()
    (tmp_path / "first.csv").write_text("#DIV/0!,5000\n20,5000\n#NV,6000\n")
    table = ardea.tables.reading.open_table(tmp_path / "first.csv")
    values = next(table.frames(10, table.names))
    assert values["x0"].isna().tolist() == [True, False, True]
    assert [line for line, _ in table.numbered_rows()] == [1, 2, 3]
