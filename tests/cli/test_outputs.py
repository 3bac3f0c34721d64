"""Results never replace what a command reads, and say where they replace others."""

import shlex

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main, models
from ardea.tables import write_whole

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table and a model of it, entered."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(y=2 * frame.a + 0.1 * rng.normal(size=40)).round(3).to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "table.csv", "--target", "y", "--out", "run"]) == 0
    return tmp_path


def refused(capsys, command):
    """Run a command that fails, and return what it says."""
    try:
        code = main(shlex.split(command))
    except SystemExit as left:
        code = left.code
    assert code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "predict run/model.ardea table.csv --out table.csv",
        "predict run/model.ardea table.csv --out run/../table.csv",
        "predict run/model.ardea table.csv --out linked.csv",
        "predict run/model.ardea table.csv --out run/model.ardea",
        "predict run/model.ardea tables --out tables/more.csv",
        "report run/model.ardea --data page.html --out page.html",
        "fit run/coefficients.csv --target coef --out run",
    ],
)
def test_what_a_command_reads_is_not_replaced(folder, capsys, command):
    (folder / "linked.csv").symlink_to(folder / "table.csv")
    (folder / "tables").mkdir()
    for name in ("tables/more.csv", "page.html"):
        (folder / name).write_bytes((folder / "table.csv").read_bytes())
    before = {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    assert "is a file that this command reads, and --out" in refused(capsys, command)
    assert {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()} == before


def test_results_say_that_they_replace_others(folder, capsys):
    capsys.readouterr()
    for command in ("fit table.csv --target y --out run", "report run/model.ardea --out run/report.html"):
        assert main(shlex.split(command)) == 0
        assert "replaced run/report.html" in capsys.readouterr().out
    for word in ("wrote", "replaced"):
        assert main(shlex.split("predict run/model.ardea table.csv --out new/p.csv")) == 0
        assert capsys.readouterr().out == f"{word} new/p.csv\n"


def test_reports_are_pages_and_places_have_names(folder, capsys):
    assert "--out x.html" in refused(capsys, "report run/model.ardea --out x.pdf")
    assert not (folder / "x.pdf").exists()
    assert "is not the name of a file" in refused(capsys, "fit table.csv --target y --out ''")


def test_errors_of_the_disk_name_the_file_and_what_helps(folder, capsys, monkeypatch):
    def full(*_):
        raise OSError(30, "Read-only file system", "run/.p.csv.part", None, "run/p.csv")

    monkeypatch.setattr("ardea.tables._locked_beside", full)
    said = refused(capsys, "predict run/model.ardea table.csv --out run/p.csv")
    assert said == "ardea predict: run/p.csv: Read-only file system. Name another place with --out.\n"
    with pytest.raises(OSError, match=r"Read-only file system: 'run/p\.csv'$"):
        write_whole("run/p.csv", "1")


def test_an_interrupted_run_leaves_the_folder_of_results_as_it_was(folder, monkeypatch, capsys):
    run = folder / "new"
    command = ["fit", "table.csv", "--target", "y", "--out", str(run)]
    for there in (False, True):
        if there:
            assert main(command) == 0
        before = {one.name: one.read_bytes() for one in run.iterdir()} if there else None
        with monkeypatch.context() as patch:

            def stopped(*_, **__):
                raise KeyboardInterrupt

            patch.setattr(models, "write_page", stopped)
            assert main([*command, "--level", "0.5"]) == 130
        assert ({one.name: one.read_bytes() for one in run.iterdir()} if run.exists() else None) == before


def test_pictures_of_an_earlier_run_are_removed_and_told(folder, capsys):
    command = ["fit", "table.csv", "--target", "y", "--out", str(folder / "new")]
    (folder / "new").mkdir()
    (folder / "new" / "path.png").write_text("mine")
    (folder / "new" / "notes.svg").write_text("mine")
    assert main(command) == 0
    assert "removed" not in capsys.readouterr().out
    assert (folder / "new" / "path.png").read_text() == "mine"  # where no model stood, nobody ran before
    assert main([*command, "--search"]) == 0
    assert "removed" not in capsys.readouterr().out
    assert main(command) == 0
    assert f"removed path.png and path.svg of an earlier run in {folder / 'new'}" in capsys.readouterr().out
    names = {one.name for one in (folder / "new").iterdir()}
    assert names == {
        "model.ardea",
        "coefficients.csv",
        "coefficients.png",
        "coefficients.svg",
        "report.html",
        "notes.svg",
    }
