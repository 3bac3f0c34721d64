"""Arguments that a command does not know, and messages of the library as the command line tells them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ardea
from ardea.cli import as_options, main

SOURCE = Path(ardea.__file__).parent


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("fit x.csv --taget y", "there is no option --taget. Did you mean --target?"),
        ("fit x.csv --target y --false 3", "there is no option --false. Did you mean --false-terms?"),
        ("simulate run --unti 3", "there is no option --unti. Did you mean --until?"),  # and not that --until lacks
        ("reproduce all --beyon", "there is no option --beyon. Did you mean --beyond?"),
        ("fit x.csv --time Zeit", "explains one column, --target COLUMN; `ardea discover` finds equations of motion"),
        ("discover x.csv --target=y", "and takes --time COLUMN; `ardea fit` explains one column, --target COLUMN"),
        ("discover x.csv --drop A,B", "--states A,B chooses the columns that obey equations"),
        ("predict run x.csv --search", "there is no option --search. It is one of `ardea fit` and `ardea report`."),
        ("fit x.csv --zzz", "there is no option --zzz. See ardea fit --help."),
        ("fit x.csv --drop Order ID,Date", "'ID,Date' belongs to no option. Names with blanks need quotes: "),
        ("fit x.csv --drop Order ID,Date", "--drop 'Order ID,Date'\n"),
        ("fit x.csv --target=my own y", "'own' and 'y' belong to no option. Names with blanks need quotes: --target "),
        ("fit --drop Order ID x.csv --target y", "'x.csv' belongs to no option. Names with blanks need quotes\n"),
    ],
)
def test_arguments_that_mean_nothing_are_explained_below_the_usage_of_the_command(capsys, arguments, told):
    with pytest.raises(SystemExit) as left:
        main(arguments.split())
    assert left.value.code == 2
    said = capsys.readouterr().err
    command = arguments.split()[0]
    assert said.startswith(f"usage: ardea {command} ")
    assert f"ardea {command}: error: " in said
    assert told in said


def test_numbers_that_must_be_above_zero_are_asked_for_as_such(capsys):
    for command in (["discover", "t.csv", "--step", "0"], ["fit", "t.csv", "--false-terms", "-1"]):
        with pytest.raises(SystemExit):
            main(command)
        assert f"'{command[-1]}' is not a number above 0" in capsys.readouterr().err


def test_one_row_is_told_as_one(tmp_path, capsys):
    (tmp_path / "one.csv").write_text("a,b,y\n1,2,3\n")
    assert main(["fit", str(tmp_path / "one.csv"), "--target", "y"]) == 1
    assert "y is 3 in the only row" in capsys.readouterr().err


def test_help_comes_before_complaints(capsys):
    with pytest.raises(SystemExit) as left:
        main(["fit", "--taget", "--help"])
    assert left.value.code == 0
    assert "--target COLUMN" in capsys.readouterr().out


def told_pieces():
    """Yield the texts in the source that are part of warnings: they lead to `ardea.explain`, or to no error raised."""
    for path in (
        path for room in ("core", "dynamics", "estimators", "methods") for path in SOURCE.glob(f"{room}/*.py")
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            text = "".join(
                part.value if isinstance(part, ast.Constant) else "…"
                for part in (node.values if isinstance(node, ast.JoinedStr) else [node])
                if isinstance(part, ast.Constant | ast.FormattedValue)
                and isinstance(getattr(part, "value", 0), str | ast.expr)
            )
            if "ardea.explain" in text or (text.startswith(" ") and re.search(r"\b(try|use|need) [a-z_]+=", text)):
                yield text


def test_no_warning_names_a_parameter_of_python_without_saying_so():
    texts = list(told_pieces())
    assert len(texts) > 30
    for text in map(as_options, texts):
        for found in re.finditer(r"(?<!-)\b(?!γ)[a-z]+(?:_[a-z]+)*=(?=['\"0-9T])", text):
            before = text[max(0, found.start() - 60) : found.start()]
            assert found[0] in ("max_iter=", "tol=") or "in Python" in before, text
        assert as_options(text) == text  # told twice, it stays the same


def test_hints_are_told_as_options():
    told = {
        "One state alone cannot oscillate without a delay: try derivative_order=2.": "try --second-order",
        "Waves that run both ways need derivative_order=2.": "need derivative_order of 2, in Python",
        "intervals are too narrow (kind='selective' allows for the choice).": "(in Python kind='selective'",
        "noise_std=0.3 is 3 times the noise": "--noise 0.3 is",
        "Give a smaller bound on memory (memory=, or --memory).": "on memory (--memory).",
        "Raise max_iter, or tol if that is close enough": "In Python raise max_iter",
    }
    for text, wanted in told.items():
        assert wanted in as_options(text)
