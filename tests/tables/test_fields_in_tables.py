"""Fields whose samples are the rows of a table, or whose points are its columns."""

import shlex

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.tables.series import Choice, read_series


@pytest.fixture(scope="module")
def travelling():
    """A field that moves at speed 0.7 and spreads, u_t = −0.7 u_x + 0.1 u_xx, on 40 points at 60 times, with noise."""
    t, x = np.arange(60) / 20, np.arange(40) / 4
    waves = [(1.0, 2 * np.pi / 10), (0.6, 4 * np.pi / 10), (0.5, 6 * np.pi / 10)]
    u = sum(a * np.exp(-0.1 * k**2 * t) * np.sin(k * np.subtract.outer(x, 0.7 * t) + a) for a, k in waves)
    return t, x, u + 0.01 * np.random.default_rng(0).normal(size=u.shape)


@pytest.fixture
def table(travelling):
    t, x, u = travelling
    return pd.DataFrame({"t": np.repeat(t, x.size), "x": np.tile(x, t.size), "u": u.T.ravel()})


def test_rows_in_any_order_are_the_field(table, travelling, tmp_path):
    t, x, u = travelling
    table.sample(frac=1, random_state=0).drop(index=[7, 11]).to_csv(tmp_path / "long.csv", index=False)
    series = read_series(tmp_path / "long.csv", Choice("t", space=("x",)))
    np.testing.assert_array_equal(series.t, t)
    np.testing.assert_array_equal(series.space[0], x)
    gaps = np.isnan(series.x)
    assert np.argwhere(gaps).tolist() == [[7, 0], [11, 0]]
    np.testing.assert_allclose(series.x[~gaps], u[~gaps])


def test_several_fields_on_a_plane_have_an_axis_each(tmp_path):
    t, x, y = np.arange(3.0), np.arange(4.0), np.arange(5.0)
    grid = np.stack(np.meshgrid(x, y, t, indexing="ij"))
    names = {"x": grid[0], "y": grid[1], "t": grid[2], "u": grid[0] + 10 * grid[1], "v": grid[2]}
    pd.DataFrame({name: one.ravel() for name, one in names.items()}).to_csv(tmp_path / "plane.csv", index=False)
    series = read_series(tmp_path / "plane.csv", Choice("t", space=("x,y",)))
    assert series.names == ["u", "v"]
    np.testing.assert_array_equal(series.x, np.stack([grid[0] + 10 * grid[1], grid[2]], axis=-1))


def test_a_field_is_recognised_and_the_command_offered_works(table, tmp_path, capsys):
    path = str(tmp_path / "long.csv")
    table.to_csv(path, index=False)
    assert main(["discover", path, "--time", "t"]) == 1
    said = capsys.readouterr().err
    assert "Every time has the same 40 values of 'x', as the points of a field." in said
    assert "several runs" not in said
    command = shlex.split(said.splitlines()[1].split("as a field: ")[1])
    assert command[-2:] == ["--space", "x"]
    assert main(command[1:]) == 0
    assert ") u_x + (0.0" in capsys.readouterr().out
    assert main(["discover", path, "--time", "t", "--series", "x", "--degree", "1"]) == 0
    assert "--space x in place of --series x" in "".join(capsys.readouterr())


def test_a_table_with_a_column_for_every_point_comes_with_python_that_reads_it(travelling, tmp_path, capsys):
    t, x, u = travelling
    path = tmp_path / "wide.csv"
    pd.DataFrame(u.T, index=pd.Index(t, name="t"), columns=x).to_csv(path)
    assert main(["discover", str(path), "--time", "t"]) == 1
    said = capsys.readouterr().err
    assert "the columns are named 0.0, 0.25, 0.5 and 37 more, as the points of a field" in said
    lines = [line.strip() for line in said.splitlines()]
    exec("\n".join(lines[lines.index("import pandas as pd") : -1]), {})
    assert ") u_x + (0.0" in capsys.readouterr().out


def test_runs_that_are_few_or_not_alike_are_no_field(table, tmp_path):
    few = table[table.x < 2.6]  # 11 values
    few.to_csv(tmp_path / "few.csv", index=False)
    assert not read_series(tmp_path / "few.csv", Choice("t", series="x")).doubts
    table.drop(index=[7]).to_csv(tmp_path / "unlike.csv", index=False)
    with pytest.raises(ValueError, match="Are these several runs"):
        read_series(tmp_path / "unlike.csv", Choice("t"))


def test_what_is_no_grid_is_refused(table, tmp_path):
    for rows, said in (
        (pd.concat([table, table[:1]]), "line 2402, column 'x': an earlier row has the same time and place"),
        (table.sample(frac=0.1, random_state=0), "less than half of the grid"),
        (table.assign(x=table.x.where(table.x != 1)), "every row needs a time, and a number in 'x'"),
    ):
        rows.to_csv(tmp_path / "rows.csv", index=False)
        with pytest.raises(ValueError, match=said):
            read_series(tmp_path / "rows.csv", Choice("t", space=("x",)))
    for choice in (Choice(space=("x",)), Choice("t", series="u", space=("x",)), Choice("t", ("x",), space=("x",))):
        with pytest.raises(ValueError, match=r"--space needs --time|none of them the time"):
            read_series(tmp_path / "rows.csv", choice)
