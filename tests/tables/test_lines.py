"""A line has one number: the one of the file, in messages, in offers and as --drop-lines counts them."""

import re
import shlex
from itertools import product

import numpy as np
import pytest

from ardea.cli import main
from ardea.tables.reading import open_table

TITLES = {"none": [], "title": ["Title one;"], "two lines": ["Report of May", "made on Monday"]}


def written(path, title, above, below, comment, units, quoted, note, blank, mark=""):
    """Write 30 rows among which the names stand again twice, and return the lines where they do."""
    rng = np.random.default_rng(4)
    lines = [*["# by a machine"] * comment, *TITLES[title], *[""] * above, "a;b;where;y", *["s;m;;kg"] * units]
    lines += [""] * below
    for number in range(30):
        a, b, e = rng.normal(size=3)
        lines += ["a;b;where;y"] if number in (10, 20) else []
        lines += ["# a break"] if comment and number == 15 else []
        lines += [""] if blank and number in (5, 12) else []
        where = '"north\n\nof it"' if quoted and number == 3 else "south" if number % 2 else "north"
        lines.append(f"{a:.3f};{b:.3f};{where};{2 * a + 0.1 * e:.3f}")
        lines += ["wrong;wrong"] if note and number == 0 else []
    text = mark + "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")
    return [n for n, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1) if line == "a;b;where;y"][1:]


CASES = [
    case
    for number, case in enumerate(product(TITLES, range(4), range(4), *[(False, True)] * 6))
    if number % 83 == 0  # all 3,072 take a quarter of an hour
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_offered_lines_are_those_of_the_file(tmp_path, capsys, case):
    path = tmp_path / "table.csv"
    *rest, mark = case
    lines = written(path, *rest, mark="\ufeff" * mark)
    note = rest[-2]
    text = path.read_text(encoding="utf-8").split("\n")
    dropped = ["--drop-lines", str(text.index("wrong;wrong") + 1)] if note else []
    command = ["fit", str(path), "--target", "y", "--drop", "where", *dropped]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert [*dict.fromkeys(map(int, re.findall(r"line (\d+), column", said)))] == lines[:2]
    offered = shlex.split(said[said.index("ardea fit /") :])[1:]
    told = [*map(int, offered[offered.index("--drop-lines") + 1].split(","))]
    assert told == [*map(int, dropped[1:]), *lines]
    assert main(offered) == 0
    out = capsys.readouterr()
    assert "30 rows" in out.out
    numbers = [line for line, _ in open_table(path, drop_lines=told).numbered_rows()]
    assert len(numbers) == 30
    assert not {*told} & {*numbers}


def test_a_note_and_totals_below_a_table_are_offered_together(tmp_path, capsys):
    path, rng = tmp_path / "table.csv", np.random.default_rng(3)
    rows = [f"{a:.3f},{b:.3f},{a - b:.3f}" for a, b in rng.normal(size=(150, 2))]
    path.write_text("\n".join(["a,b,y", *rows, "", "Source: own records", "Total,,"]) + "\n", encoding="utf-8")
    assert main(["fit", str(path), "--target", "y"]) == 1
    said = capsys.readouterr().err
    offered = shlex.split(said[said.index("ardea fit /") :])[1:]
    assert offered[-2:] == ["--drop-lines", "153,154"]
    assert main(offered) == 0
    assert "150 rows" in capsys.readouterr().out
