"""A table written as text: how it is written, found from its beginning, and its bytes as a parser takes them."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from ardea.tables.columns import ANY_NUMBER, DOTTED, WHOLE_NUMBER, Notation, is_missing
from ardea.tables.naming import sound_names

# So much is looked at to tell the encoding, and of that so many lines to tell separators; beyond two lines no more
# letters than that (conventions: a screenful of rows tells a person, too).
HEAD, SAMPLE_LINES, SAMPLE_LETTERS = 2**22, 100, 2**16
# Cells of a row that are looked at to choose a separator (a convention; very wide tables would take seconds else).
SAMPLE_CELLS = 200
# Bytes read at a time: as pandas asks for (2¹⁸), times four, so that lines are cut less often.
CHUNK = 2**20
# A line of text longer than this is none (a convention: 100,000 columns of 17 digits take 2 MB).
LONGEST_LINE = 2**26
# First of all that may fit wins where two separators explain a file equally well; None stands for blanks.
SEPARATORS: tuple[str | None, ...] = ("\t", ";", "|", ",", None)
SPREADSHEETS = (".xlsx", ".xlsm")
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
ENCODED = {
    "cp1252": "the file is not UTF-8; it was read as Windows-1252 (cp1252)",
    "utf-16": "the file is not UTF-8; it was read as UTF-16",
}
ENDINGS = (".gz", ".bz2", ".xz")
SAID = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", None: "blanks"}
NO_HEADER = "no header was found: the column is named x0"
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
Header = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class TextFormat:
    """How a table is written.

    Attributes
    ----------
    encoding, separator : str
        Of letters, and between fields (None: blanks).
    decimal : str or None
        What stands before decimals, where the beginning leaves no doubt.
    names, given : list of str
        Of the columns; and as they stand in the file, where they may be doubled.
    headed : bool
        Whether they come from the file.
    width : int
        Fields of a row; one more than names where every row ends in a separator.
    skipped : int
        Lines of names and units.
    line_bytes : int
        Length of the longest line seen.
    remarks : list of str
        What was inferred.
    sheet : str or None
        Of a spreadsheet: which, by name or number.
    """

    encoding: str
    separator: str | None
    decimal: str | None
    names: list[str]
    given: list[str]
    headed: bool
    width: int
    skipped: int
    line_bytes: int
    remarks: list[str]
    sheet: str | None = None


class TextSource:
    """The bytes of a text as UTF-8, in whole lines without comments (lines that begin with #), read once.

    Attributes
    ----------
    head : bytes
        The beginning, as it is stored.
    separators : int
        How many were handed on so far, outside quotes.
    """

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        self.path, self.sheet = path, sheet
        try:
            self._closing = ExitStack()
            self._file = self._closing.enter_context(unpacked(path, sheet))
            self.head = self._whole_head()
        except UNREADABLE as error:
            self._closing.close()
            raise ValueError(f"{path} cannot be read as text: {error}") from error
        self.separators = 0
        self._rest, self._carry, self._counted = self.head.removeprefix(codecs.BOM_UTF8), b"", b""
        self._decoder: Any = None
        self._begun, self._skipped, self._one_column = False, 0, False

    def _whole_head(self) -> bytes:
        """Return the beginning, of two lines at least."""
        head = self._file.read(HEAD)
        while head.count(b"\n") < 3 and len(head) < LONGEST_LINE and (more := self._file.read(HEAD)):
            head += more
        return head

    def start(self, written: TextFormat) -> TextSource:
        """Return itself, ready to be read."""
        if written.encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(written.encoding)()
        self._counted = (written.separator or "").encode()
        self._skipped, self._one_column = written.skipped, written.width == 1
        return self

    def __iter__(self) -> TextSource:  # pandas asks for it of what it reads from, and never uses it
        return self

    def read(self, _: int = -1) -> bytes:
        """Return the next lines, nothing at the end."""
        while True:
            chunk, self._rest = self._rest or self._next(), b""
            if b"\n" not in self.head:  # lines end as on old Macintoshes, or there is one
                chunk = chunk.replace(b"\r", b"\n")
            if self._decoder is not None:
                chunk = self._decoder.decode(chunk, final=not chunk).encode()
            if not chunk:
                lines, self._carry = self._carry, b""
                return self._cleaned(lines.rstrip(b"\r\n"))
            if lines := self._cleaned(self._whole_lines(self._carry + chunk)):
                return lines

    def _whole_lines(self, chunk: bytes) -> bytes:
        """Return all lines that are whole, and carry the rest to the next chunk."""
        cut = chunk.rfind(b"\n") + 1
        if self._one_column:  # a blank line is a gap there, but not at the end
            cut = chunk.find(b"\n", len(chunk[:cut].rstrip(b"\r\n"))) + 1
        self._carry = chunk[cut:]
        if len(self._carry) > LONGEST_LINE:
            raise ValueError(f"{self.path}: a line is longer than {LONGEST_LINE} letters; this is no table.")
        return chunk[:cut]

    def _next(self) -> bytes:
        try:
            return self._file.read(CHUNK)
        except UNREADABLE as error:
            raise ValueError(f"{self.path} cannot be read as text: {error}") from error

    def _cleaned(self, lines: bytes) -> bytes:
        """Return lines without comments, names and units, and count separators."""
        if b"\0" in lines:
            raise ValueError(f"{self.path} holds binary data, not text.")
        if b"#" in lines and (lines.startswith(b"#") or b"\n#" in lines):
            lines = re.sub(rb"(?m)^#[^\n]*\n?", b"", lines)
        if not self._begun:
            lines = re.sub(rb"\A(?:[ \t]*\r?\n)+", b"", lines)
            self._begun = bool(lines)
        while self._skipped and lines:
            lines = lines.partition(b"\n")[2]
            self._skipped -= 1
        if self._counted:
            outside = re.sub(rb'"[^"]*"', b"", lines) if b'"' in lines else lines
            self.separators += int(np.count_nonzero(np.frombuffer(outside, np.uint8) == ord(self._counted)))
        return lines

    def close(self) -> None:
        """Let go of the file."""
        self._closing.close()


@contextmanager
def unpacked(path: Path, sheet: str | None = None) -> Iterator[IO[bytes]]:
    """Open a file, which may be a pipe; one that is packed by its first bytes is unpacked, a spreadsheet is turned."""
    if path.suffix.lower() in SPREADSHEETS:
        yield io.BytesIO(_spreadsheet(path, sheet))
        return
    with path.open("rb") as raw:
        first = raw.peek(6)
        opener = next((one for magic, one in PACKED.items() if first.startswith(magic)), None)
        with nullcontext(raw) if opener is None else opener(raw) as file:
            yield file


def _spreadsheet(path: Path, sheet: str | None) -> bytes:
    """Return a sheet of an Excel file (else the first) as CSV; numbers keep all digits, and lines are its rows."""
    import pandas as pd

    if find_spec("openpyxl") is None:
        raise ImportError(f"{path}: Excel files need openpyxl: pip install openpyxl. Or save it as CSV.")
    chosen: str | int = 0
    if sheet is not None:
        sheets = sheet_names(path)
        if sheet not in sheets and not (sheet.isdigit() and int(sheet) < len(sheets)):
            raise ValueError(f"{path} has no sheet {sheet!r}: there are {', '.join(sheets)} (or numbers from 0).")
        chosen = sheet if sheet in sheets else int(sheet)
    try:
        cells = pd.read_excel(path, sheet_name=chosen, header=None, dtype=object, na_filter=False)
    except Exception as error:  # the packages behind it raise errors of many kinds
        raise ValueError(f"{path} cannot be read as a spreadsheet: {error}") from error
    return str(cells.to_csv(index=False, header=False)).encode()


def sheet_names(path: Path) -> list[str]:
    """Return the sheets of an Excel file."""
    import pandas as pd

    try:
        with pd.ExcelFile(path) as book:
            return [str(name) for name in book.sheet_names]
    except Exception as error:  # the packages behind it raise errors of many kinds
        raise ValueError(f"{path} cannot be read as a spreadsheet: {error}") from error


def text_format(
    source: TextSource, *, header: Header = "auto", decimal: str | None = None, na: Sequence[str] = ()
) -> TextFormat:
    """Find out how a table is written."""
    path = source.path
    encoding = _encoding_of(source.head, path)
    comments, lines = _sampled(codecs.getincrementaldecoder(encoding)().decode(source.head).lstrip("\ufeff"), path)
    try:
        separator, rows = _separated(lines)
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if decimal == "," and separator == "," and not any('"' in line for line in lines):
        raise ValueError(f"{path}: commas stand between the fields, so that they cannot stand before decimals.")
    if not rows:
        raise ValueError(f"{path} is empty.")
    heading = heading_of(rows, comments, separator, header, na)
    body = rows[heading.rows :]
    fields, closed = _closed(heading, body)
    given = fields[:-1] if closed else fields
    names, renamed = sound_names(given)
    remarks = [*([ENCODED[encoding]] if encoding in ENCODED else []), *heading.remarks, *renamed]
    if closed:
        remarks.append("every row ends in a separator, after which no column was read")
    mark, skipped = decimal or _decimal_of(body), _lines_of(lines, separator, heading.rows)
    remarks += _told(path, separator) if len(names) > 1 else []
    if mark == "," and decimal is None:
        remarks.append("commas stand before decimals")
    if header == "auto" and not heading.headed and not heading.remarks:
        remarks.append(
            f"no header was found: columns are named {names[0]}, {names[1]}, …" if len(names) > 1 else NO_HEADER
        )
    remarks += _doubtful_dots(body, names, separator) if mark is None else []
    longest = max(map(len, lines))
    return TextFormat(
        encoding, separator, mark, names, given, heading.headed, len(fields), skipped, longest, remarks, source.sheet
    )


def _told(path: Path, separator: str | None) -> list[str]:
    """Say what separates columns where the ending of the file lets expect something else."""
    usual = {".csv": ",", ".tsv": "\t"}.get((path.with_suffix("") if path.suffix in ENDINGS else path).suffix.lower())
    if usual in (None, separator):
        return []
    return [f"columns are separated by {SAID[separator]}"]


def _closed(heading: Heading, body: list[list[str]]) -> tuple[list[str], bool]:
    """Return the fields of a row, and whether the last is none: every row ends in a separator."""
    fields = heading.names
    if body and all(len(row) == len(fields) + 1 and not row[-1] for row in body):
        fields = [*fields, ""]
    nameless = not heading.headed or not fields[-1]
    empty = bool(body) and not any(row[-1] for row in body if len(row) == len(fields))
    return fields, len(fields) > 1 and nameless and empty


def _encoding_of(head: bytes, path: Path) -> str:
    """Return UTF-8 or UTF-16 by its mark, else UTF-8 or Windows-1252 where the beginning can be read so."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        return encoding
    raise ValueError(f"{path} cannot be read as text: it is neither UTF-8 nor Windows-1252. Save it as CSV in UTF-8.")


def _sampled(text: str, path: Path) -> tuple[list[str], list[str]]:
    """Return the comments before the first row, and the first lines that are neither comments nor blank."""
    comments: list[str] = []
    lines: list[str] = []
    letters = 0
    if "\0" in text:
        raise ValueError(f"{path} holds binary data, not text.")
    for line in io.StringIO(text, newline=None):
        if len(lines) >= 2 and (letters > SAMPLE_LETTERS or len(lines) == SAMPLE_LINES or not line.endswith("\n")):
            break
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{path}: a line is longer than {LONGEST_LINE} letters; this is no table.")
        if line.startswith("#"):
            comments += [] if lines else [line.lstrip("#").strip()]
        elif line.strip() or lines:
            lines.append(line)
            letters += len(line)
    if not lines:
        raise ValueError(f"{path} is empty.")
    return comments, lines


def _separated(lines: list[str]) -> tuple[str | None, list[list[str]]]:
    """Return the separator under which most lines have equally many fields, most of them numbers; and the rows."""
    best: tuple[float, float] = (-1.0, -1.0)
    found: tuple[str | None, list[list[str]]] = (",", [])
    for separator in SEPARATORS:
        rows = [[cell.strip() for cell in row] for row in fields_of(lines, separator)]
        rows = [row for row in rows if len(row) > 1 or any(row)]
        if not rows:
            continue
        width, count = Counter(map(len, rows)).most_common(1)[0]
        body = [row for row in rows[1:] or rows if len(row) == width]
        cells = [cell for row in body for cell in row[:SAMPLE_CELLS]]
        numbers = sum(bool(ANY_NUMBER.fullmatch(cell)) or cell == "" for cell in cells) / max(1, len(cells))
        score = (round(count / len(rows), 1) if width > 1 else -0.5, numbers)
        if score > best:
            best, found = score, (separator, rows)
    return found


def fields_of(lines: Sequence[str] | Iterator[str], separator: str | None) -> Iterator[list[str]]:
    """Yield the fields of every row; quoted fields may go across lines."""
    if separator is None:
        yield from (line.split() for line in lines)
        return
    csv.field_size_limit(2 * LONGEST_LINE)
    yield from csv.reader(lines, delimiter=separator)


def _lines_of(lines: list[str], separator: str | None, rows: int) -> int:
    """Return how many lines so many rows take; more than one each where quoted fields go across lines."""
    if separator is None:
        return rows
    reader = csv.reader(lines, delimiter=separator)
    while rows:
        rows -= any(cell.strip() for cell in next(reader))
    return reader.line_num


def _decimal_of(rows: list[list[str]]) -> str | None:
    """Return what stands before decimals in the first rows, None where it could also group thousands, or both do."""
    seen = Notation()
    for cell in {cell for row in rows for cell in row if "," in cell or "." in cell}:
        seen.add(cell)
    return seen.decided


def _doubtful_dots(rows: list[list[str]], names: list[str], separator: str | None) -> list[str]:
    """Tell of columns in which every dot has one to three digits before and three behind, as thousands have.

    Where commas separate columns they hardly stand before decimals, so that dots do.
    """
    remarks = []
    for j, name in enumerate(names if separator != "," else []):
        dots = [row[j] for row in rows if j < len(row) and "." in row[j]]
        if dots and all(re.fullmatch(DOTTED, cell) for cell in dots):
            read = f"dots in column {name!r} were read as decimal points ({dots[0]})"
            remarks.append(f"{read}; if they group thousands, give --decimal ,")
    return remarks


@dataclass(frozen=True)
class Heading:
    """The names above a table, how many rows they and their units take, and what was inferred."""

    names: list[str]
    headed: bool
    rows: int
    remarks: list[str]


def heading_of(
    rows: list[list[str]], comments: list[str], separator: str | None, header: Header, na: Sequence[str] = ()
) -> Heading:
    """Return the names of the columns.

    A first row with a text in it holds names. One of numbers holds data, unless these are whole numbers in steps of one
    (0, 1, 2 or 2019, 2020) above columns in which no other number is whole. A comment just before rows of numbers holds
    names where it has as many fields.
    """
    first, body = rows[0], rows[1:]
    numbers = all(_is_data(cell, na) for cell in first)
    remarks: list[str] = []
    headed = header == "yes" or (header == "auto" and not numbers)
    if header == "auto" and numbers:
        named = [name.strip() for name in next(fields_of([comments[-1]], separator), [])] if comments else []
        if len(named) == len(first) and not any(_is_data(name, na) for name in named):
            return Heading(named, True, 0, ["names are taken from the comment before the rows"])
        headed = _counts_on(first, body)
        if headed or all(map(WHOLE_NUMBER.fullmatch, first)):
            kind = "names (--header no: as data)" if headed else "data (--header yes: as names)"
            remarks.append(f"the first row, {_shortened(first)}, was read as {kind}")
    if not headed:
        return Heading([f"x{j}" for j in range(len(first))], False, 0, remarks)
    units = bool(body) and _is_units(body[0], body[1:], na)
    remarks += [f"the second row, {_shortened(body[0])}, was read as units"] if units else []
    return Heading(first, True, 1 + units, remarks)


def _shortened(row: list[str]) -> str:
    return ", ".join(row[:5]) + ", …" * (len(row) > 5)


def _is_data(cell: str, na: Sequence[str]) -> bool:
    return is_missing(cell, na) or ANY_NUMBER.fullmatch(cell) is not None


def _counts_on(first: list[str], body: list[list[str]]) -> bool:
    """Whether a row of numbers looks like names: see `heading_of`."""
    if not body or not all(map(WHOLE_NUMBER.fullmatch, first)):
        return False
    whole = [int(cell) for cell in first]
    steps = all(b - a == 1 for a, b in pairwise(whole))
    # 0, 1 above two columns may be the first values of a series; three such numbers, or two years, are names.
    if not steps or len(whole) < 2 or (len(whole) == 2 and whole[0] < 1000):
        return False
    return not any(WHOLE_NUMBER.fullmatch(cell) for row in body for cell in row)


def _is_units(row: list[str], below: list[list[str]], na: Sequence[str]) -> bool:
    """Whether the second row holds units: a text, not a number, above columns of numbers alone."""
    columns = [[one[j] for one in below if j < len(one) and not is_missing(one[j], na)] for j in range(len(row))]
    numeric = [bool(cells) and all(map(ANY_NUMBER.fullmatch, cells)) for cells in columns]
    texts = [not _is_data(cell, na) for cell in row]
    return any(text and number for text, number in zip(texts, numeric, strict=True)) and not any(
        ANY_NUMBER.fullmatch(cell) for cell in row
    )


def numbered_rows(path: Path, written: TextFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the names, each with the number of its first line: slow, for messages."""
    places = [0]
    with unpacked(path, written.sheet) as file, io.TextIOWrapper(file, written.encoding, errors="replace") as text:

        def lines() -> Iterator[str]:
            for number, line in enumerate(text, 1):
                if not line.startswith("#") and (line.strip() or (written.width == 1 and len(places) > 1)):
                    places.append(number)
                    yield line

        taken = 1
        for row in fields_of(lines(), written.separator):
            if taken > written.skipped:
                yield places[taken], [cell.strip() for cell in row] or [""]
            taken = len(places)
