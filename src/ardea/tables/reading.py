"""Tables of any format: opened by their ending; text is looked at until it is known how it is written."""

from __future__ import annotations

import codecs
import csv
import io
import lzma
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from ardea.tables.columns import decided, notation_of, sign_of, unit_of
from ardea.tables.endings import PACKED, ending_of
from ardea.tables.layout import Comments, counts_on, dotted, holds_units, is_whole
from ardea.tables.spreadsheets import read_spreadsheet, sheet_names
from ardea.tables.table import (
    ARRAYS,
    PARQUET,
    SPREADSHEETS,
    ArrayTable,
    ParquetTable,
    Table,
    TableError,
    read_arrays,
    shortened,
    sound_names,
)
from ardea.tables.wrong import uneven_or_wrong

# So much is looked at to tell the encoding, and of that so many lines to tell separators; beyond two lines no more
# letters than that (conventions: a screenful of rows tells a person, too).
HEAD, SAMPLE_LINES, SAMPLE_LETTERS = 2**22, 100, 2**16
# Bytes read at a time: as pandas asks for (2¹⁸), times four, so that lines are cut less often.
CHUNK, LONGEST_QUOTE = 2**20, 40
# Cells of a row that are looked at to choose a separator (a convention; very wide tables would take seconds else).
SAMPLE_CELLS = 200
# A line of text longer than this is none (a convention: 100,000 columns of 17 digits take 2 MB).
LONGEST_LINE = 2**26
# First of all that may fit wins where two separators explain a file equally well; None stands for blanks.
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", None: "blanks"}
USUAL = {".csv": ",", ".tsv": "\t"}
ENCODED = {"cp1252": "Windows-1252 (cp1252)", "utf-16": "UTF-16"}
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
# Cells as they are: what pandas would else infer or leave out.
AS_THEY_ARE: dict[str, Any] = {"header": None, "index_col": False, "keep_default_na": False, "low_memory": False}
Header = Literal["auto", "yes", "no"]


def open_table(
    path: str | Path,
    *,
    header: Header = "auto",
    decimal: str | None = None,
    na: Sequence[str] = (),
    sheet: str | None = None,
    drop_lines: Collection[int] = (),
    zone: str | None = None,
) -> Table:
    r"""Open a table of any format and read its names.

    Parameters
    ----------
    path : str or Path
        CSV or other text (also packed: .gz, .bz2, .xz), Parquet (or a folder of it), NPY, NPZ, Excel, NetCDF or Zarr.
    header : {"auto", "yes", "no"}
        Whether the first row of a text or a spreadsheet holds names.
    decimal : {".", ","}, optional
        What stands before the decimals in a text; inferred by default.
    na : sequence of str
        Cells that hold nothing, besides the usual ones (empty, NA, nan, null, -, ? and so on); "none" turns these off.
    sheet : str, optional
        Which sheet of a spreadsheet, by name or number from 0; the first by default.
    drop_lines : collection of int
        Lines of a text, or rows of a sheet, to leave out, such as one of totals; the first line is 1.
    zone : str, optional
        Time zone of dates that name none, such as Europe/Berlin: they are counted in UTC then.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("a;b\n1,5;red\n2,5;blue\n")
    ...     table = open_table(path)
    ...     table.names, next(table.frames(10, ["a"]))["a"].tolist()
    (['a', 'b'], [1.5, 2.5])
    """
    path = Path(path)
    ending = ending_of(path)
    if sheet is not None and ending not in SPREADSHEETS:
        raise ValueError(f"{path} is no spreadsheet: leave out --sheet.")
    if ending not in (".npy", *ARRAYS, *PARQUET):
        table: Table = TextTable(path, ending, header, decimal, na, sheet, drop_lines)
    elif drop_lines:
        raise ValueError(f"{path} is no text: --drop-lines is for CSV, other text, and Excel.")
    else:
        table = ParquetTable(path, na) if ending in PARQUET else ArrayTable(path, read_arrays(path), na)
    table.zone = zone
    return table


class TextTable(Table):
    """Text with one row a line, or a spreadsheet turned into it."""

    def __init__(
        self,
        path: Path,
        ending: str,
        header: Header,
        decimal: str | None,
        na: Sequence[str],
        sheet: str | None,
        drop_lines: Collection[int],
    ) -> None:
        super().__init__(path, [], (), na)
        self._dropped, self._n_lines, self._units = frozenset(drop_lines), 0, list[str]()
        # How a cell stands in the text; 98.0 is 98.
        cell = r'(?:^|{{0}}|")[ \t]*{}(?:[.,]0*)?[ \t]*(?={{0}}|"|\r?$)'
        self._unseen = {one: cell.format(re.escape(one)) for one in na if one != "none"}
        self.sheet, self.once, self.told_decimal = sheet, not path.is_file(), decimal
        self._chunks: Iterator[bytes] | None = None
        chunks = self._stored()
        with nullcontext() if self.once else closing(chunks):
            head = next(chunks, b"")
            self._look(head, ending, header)
        if self.once:
            self._chunks = chain([head], chunks)
        if ending in SPREADSHEETS and sheet is None and len(sheets := sheet_names(path)) > 1:
            self.other_sheets = sheets[1:]
            self.remarks.append(f"the first of {len(sheets)} sheets was read; --sheet reads {', '.join(sheets[1:])}")

    # How it is written

    def _look(self, head: bytes, ending: str, header: Header) -> None:
        """Find out how the table is written: encoding, separator, names, fields of a row, lines before the rows."""
        path, told = self.path, self.told_decimal
        self.encoding = _encoding_of(head, path)
        self._old_ends = b"\n" not in head  # lines end as on old Macintoshes, or there is one
        text = codecs.getincrementaldecoder(self.encoding)().decode(head).lstrip("\ufeff")
        _, lines = _sampled(text, path, self._dropped, Comments())
        try:
            self.separator, _, rows = separated(lines)
            below = [*map(len, rows[lines_above(rows) :])]
            self.comments = Comments(self.separator, {below[0], Counter(below).most_common(1)[0][0]})
            comments, lines = _sampled(text, path, self._dropped, self.comments)
            ended = [one for one in fields_of(lines, self.separator) if len(one[1]) > 1 or any(one[1])]
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as a table: {error}") from error
        ends, rows = [end for end, _ in ended], [row for _, row in ended]
        if told == "," and self.separator == "," and not any('"' in line for line in lines):
            raise ValueError(f"{path}: commas stand between the fields, so that they cannot stand before decimals.")
        before = lines_above(rows)
        fields, n_rows, said = self._heading(rows[before:], comments, header)
        above = [text for row in rows[:before] if (text := " ".join(row).strip())]
        said = [f"the table begins below {shortened(above, 2)!r}", *said] if above else said
        body = rows[(n_rows := n_rows + before) :]
        passed = [
            one for k, one in enumerate(re.findall(r"(?m)^#.*", text)) if k < len(comments) or self.comments.holds(one)
        ]
        if self.headed and n_rows == before:  # names were taken from one
            del passed[len(comments) - 1]
        if passed:
            least = "at least " * (len(head) >= HEAD)
            lines_with = "line begins with # and was" if len(passed) == 1 else "lines begin with # and were"
            what = f"{least}{len(passed)} {lines_with} left out, such as {passed[0].strip()[:LONGEST_QUOTE]!r}"
            said = [what, *said]
        self._name(fields, body, said)
        self.skipped = ends[n_rows - 1] if n_rows else 0
        self.notations = Counter(notation_of(cell) for row in body for cell in row)
        self.decimal = told or decided(self.notations)
        self._blanks = any(f"{self.separator} " in line for line in lines)  # numbers need no such care of the parser
        # The parser holds the text, and two places of every field, in arrays that it doubles when they are full.
        self.bytes_per_row = 2.0 * max(map(len, lines)) + 48 * self.width
        if len(self.names) > 1 and USUAL.get(ending) not in (None, self.separator):
            self.remarks.append(f"columns are separated by {SEPARATORS[self.separator]}")
        if self.decimal == "," and told is None:
            self.remarks.append("commas stand before decimals")
        if header == "auto" and not self.headed and not said:
            many = f"columns are named {', '.join(self.names[:2])}, …"
            self.remarks.append(f"no header was found: {many if len(self.names) > 1 else 'the column is named x0'}")
        self._sample, self.keep_dots = body, self.decimal is None and self.separator != ","

    def _heading(self, rows: list[list[str]], comments: list[str], header: Header) -> tuple[list[str], int, list[str]]:
        """Return the names of the columns, how many rows they and their units take, and what was inferred.

        A first row with a text in it holds names. One of numbers holds data, unless these are whole numbers in steps of
        one (0, 1, 2 or 2019, 2020) above columns in which no other number is whole. A comment just before rows of
        numbers holds names where it has as many fields.
        """
        first, body = rows[0], rows[1:]
        under = [*chain(*body[:1]), *("" for _ in first)]  # 5 kPa above 6 kPa is data, 5 h above 6 a name
        numbers = all(self._is_data(a) or "" != sign_of(a) == sign_of(b) for a, b in zip(first, under, strict=False))
        remarks: list[str] = []
        self.headed = header == "yes" or (header == "auto" and not numbers)
        if header == "auto" and numbers:
            _, named = next(fields_of(comments[-1:], self.separator), (0, []))
            named = [named[0] or "#", *named[1:]] if len(named) > 1 else named  # a column may be called so
            if len(named) == len(first) and not any(map(self._is_data, named)):
                self.headed = True
                return named, 0, ["names are taken from the comment before the rows"]
            self.headed = counts_on(first, body)
            if self.headed or all(map(is_whole, first)):
                kind = "names (--header no: as data)" if self.headed else "data (--header yes: as names)"
                remarks.append(f"the first row, {shortened(first)}, was read as {kind}")
        if not self.headed:
            return [f"x{j}" for j in range(len(first))], 0, remarks
        units = bool(body) and not any(map(notation_of, body[0])) and holds_units(body[0], body[1:], self.empty)
        if units:
            self._units = body[0]
            remarks.append(f"the second row, {shortened([*filter(None, body[0])])}, was read as units")
        return first, 1 + units, remarks

    def _is_data(self, cell: str) -> bool:
        return cell in self.empty or notation_of(cell) != ""

    def _name(self, fields: list[str], body: list[list[str]], said: list[str]) -> None:
        """Name the columns; where every row ends in a separator, there is none behind it."""
        if body and all(len(row) == len(fields) + 1 and not row[-1] for row in body):
            fields = [*fields, ""]
        empty = bool(body) and not any(row[-1] for row in body if len(row) == len(fields))
        closed = len(fields) > 1 and empty and not (self.headed and fields[-1])
        self.width = len(fields)
        self.names, renamed = sound_names(fields[:-1] if closed else fields)
        given = zip(self.names, self._units, strict=False)
        self.units = {name: unit.strip("[]() ") for name, unit in given if unit not in self.empty}
        self.unnamed = {name for name, given in zip(self.names, fields, strict=False) if not given.strip()}
        if encoded := ENCODED.get(self.encoding):
            self.remarks.append(f"the file is not UTF-8; it was read as {encoded}")
        self.remarks += [*said, *renamed]
        self.remarks += ["every row ends in a separator, after which no column was read"] if closed else []

    # Its rows

    def _stored(self) -> Generator[bytes, None, None]:
        """Yield the bytes of the file: first a beginning of two lines at least."""
        try:
            with unpacked(self.path, self.sheet) as file:
                head = file.read(HEAD)
                while head.count(b"\n") < 3 and len(head) < LONGEST_LINE and (more := file.read(HEAD)):
                    head += more
                yield head
                while chunk := file.read(CHUNK):
                    yield chunk
        except UNREADABLE as error:
            raise ValueError(f"{self.path} cannot be read as text: {error}") from error

    def whole_lines(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield whole lines in UTF-8, without comments, names and units."""
        decoder = None if self.encoding == "utf-8" else codecs.getincrementaldecoder(self.encoding)()
        carry, begun, skipped, before = b"", False, self.skipped, 0
        for number, chunk in enumerate(chain(chunks, [b""])):  # an empty one at the end
            part = chunk if number else chunk.removeprefix(codecs.BOM_UTF8)
            part = part.replace(b"\r", b"\n") if self._old_ends else part
            text = carry + (part if decoder is None else decoder.decode(part, final=not chunk).encode())
            cut = text.rfind(b"\n") + 1 if chunk else len(text.rstrip(b"\r\n"))
            if self.width == 1 and chunk:  # a blank line is a gap there, but not at the end
                cut = text.find(b"\n", len(text[:cut].rstrip(b"\r\n"))) + 1
            lines, carry = text[:cut], text[cut:]
            _require_text(self.path, b"\0" in lines, len(carry))
            if self._dropped:
                numbered = enumerate(re.findall(rb"[^\n]*\n|[^\n]+", lines), before + 1)
                before += lines.count(b"\n")
                self._n_lines = before + bool(lines and not lines.endswith(b"\n"))
                lines = b"".join(line for number, line in numbered if number not in self._dropped)
            lines = self.comments.left_out(lines, begun)
            if not begun:
                lines = re.sub(rb"\A(?:[ \t]*\r?\n)+", b"", lines)
                begun = bool(lines)
            while skipped and lines:
                lines, skipped = lines.partition(b"\n")[2], skipped - 1
            if self._unseen:
                gap = r"\s" if self.separator is None else re.escape(self.separator)
                cells = {one: cell.replace("{0}", gap).encode() for one, cell in self._unseen.items()}
                self._unseen = {one: self._unseen[one] for one in cells if not re.search(cells[one], lines, re.M)}
            if lines:
                yield lines

    def unmet(self) -> list[str]:
        """Return which lines to leave out, and cells to take as empty, the text does not have, once it was read."""
        last = max(self._dropped, default=0)
        said = [f"--drop-lines names line {last}, and there are {self._n_lines}"] * (last > self._n_lines)
        return said + [f"--na {token}: no cell holds this" for token in self._unseen]

    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows."""
        import pandas as pd

        if self.once and self._chunks is None:
            raise ValueError(f"{self.path} is a pipe, which can be read only once: save it to a file first.")
        chunks, self._chunks = self._chunks or self._stored(), None
        lines = Lines(self.whole_lines(chunks), self.separator)
        n_read, gap_at_end = 0, False
        try:
            for frame in self._parsed(lines, rows):
                n_read += len(frame)
                gap_at_end |= self.separator is None and bool(frame.iloc[:, -1].isna().any())
                yield frame if list(names) == list(frame.columns) else frame[list(names)]
        except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError, OverflowError) as error:
            found, lines_out = (
                ([], []) if isinstance(error, UnicodeDecodeError) else uneven_or_wrong(self, names, unit_of)
            )
            said = f"{self.path} cannot be read as text: {' '.join(str(error).split())}"
            raise (TableError(self.path, found, lines=lines_out) if found else ValueError(said)) from error
        uneven = self.separator and lines.separators != n_read * (self.width - 1)
        if (gap_at_end or uneven) and (wrong := uneven_or_wrong(self, names, unit_of))[0]:
            raise TableError(self.path, wrong[0], lines=wrong[1])

    def _parsed(self, lines: Lines, rows: int) -> Iterator[Any]:
        """Yield what pandas makes of the text; a first row that is too long is an error."""
        import pandas as pd

        names = [*self.names, *(f"\0{j}" for j in range(self.width - len(self.names)))]
        settings = {"sep": self.separator or r"\s+", "decimal": self.decimal or ".", "names": names, **AS_THEY_ARE}
        settings |= {"na_values": list(self.empty), "skipinitialspace": self._blanks}
        if self.keep_dots and self.decimal != ",":
            settings["dtype"] = {names[j]: object for j in dotted(self._sample, len(self.names))}
        if int(pd.__version__.split(".")[0]) < 3:  # later versions read numbers to the last digit anyway
            settings["float_precision"] = "round_trip"
        try:
            reader = pd.read_csv(lines, chunksize=rows, skip_blank_lines=self.width > 1, **settings)
        except pd.errors.EmptyDataError:
            return
        with reader:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    frame = next(reader, None)
                if frame is None:
                    return
                yield frame

    def numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows below the names, read again, each with the number of its first line; of a pipe none."""
        if self.once:
            return
        places, taken = list[int](), 0
        with unpacked(self.path, self.sheet) as file, io.TextIOWrapper(file, self.encoding, errors="replace") as text:

            def lines() -> Iterator[str]:
                for number, line in enumerate(text, 1):
                    line = line.removeprefix("\ufeff") if number == 1 else line
                    comment = number in self._dropped or self.comments.holds(line, begun=bool(places))
                    if not comment and (line.strip() or places):
                        places.append(number)  # of blank lines, too, as `skipped` counts them
                        yield line

            for end, row in fields_of(lines(), self.separator):
                if taken >= self.skipped and (len(row) > 1 or any(row) or self.width == 1):
                    yield places[taken], row or [""]
                taken = end


class Lines:
    """Lines as pandas reads them, with a count of the separators outside quotes."""

    def __init__(self, lines: Iterator[bytes], separator: str | None) -> None:
        self._lines, self._separator, self.separators = lines, separator, 0

    def __iter__(self) -> Lines:  # pandas asks for it of what it reads from, and never uses it
        return self

    def read(self, _: int = -1) -> bytes:
        """Return the next lines, nothing at the end."""
        lines = next(self._lines, b"")
        if self._separator:
            outside = re.sub(rb'"[^"]*"', b"", lines) if b'"' in lines else lines
            self.separators += int(np.count_nonzero(np.frombuffer(outside, np.uint8) == ord(self._separator)))
        return lines


@contextmanager
def unpacked(path: Path, sheet: str | None = None) -> Iterator[IO[bytes]]:
    """Open a file, which may be a pipe; one that is packed by its first bytes is unpacked, a spreadsheet is turned."""
    if path.suffix.lower() in SPREADSHEETS:
        yield io.BytesIO(read_spreadsheet(path, sheet))
        return
    with path.open("rb") as raw:
        first = raw.peek(6)
        opener: Any = next((one for magic, one in PACKED.values() if first.startswith(magic)), nullcontext)
        with opener(raw) as file:
            yield file


def _encoding_of(head: bytes, path: Path) -> str:
    """Return UTF-8 or UTF-16 by its mark, else UTF-8 or Windows-1252 where the beginning can be read so."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(encoding)().decode(head)
            return encoding
    raise ValueError(f"{path} cannot be read as text: it is neither UTF-8 nor Windows-1252. Save it as CSV in UTF-8.")


def _require_text(path: Path, binary: bool, longest: int) -> None:
    if binary:
        raise ValueError(f"{path} holds binary data, not text.")
    if longest > LONGEST_LINE:
        raise ValueError(f"{path}: a line is longer than {LONGEST_LINE} letters; this is no table.")


def _sampled(text: str, path: Path, dropped: Collection[int], without: Comments) -> tuple[list[str], list[str]]:
    """Return the comments before the first row, and the first lines that are neither comments, blank nor dropped."""
    comments: list[str] = []
    lines: list[str] = []
    letters = 0
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        if number in dropped:
            continue
        if len(lines) >= 2 and (letters > SAMPLE_LETTERS or len(lines) == SAMPLE_LINES or not line.endswith("\n")):
            break
        _require_text(path, "\0" in line, len(line))
        if without.holds(line, begun=bool(lines)):
            comments += [] if lines else [line.lstrip("#").strip()]
        elif line.strip() or lines:
            lines.append(line)
            letters += len(line)
    if not lines:
        only = (
            ": all its lines begin with #, as comments do. If they are rows, put names above them" if comments else ""
        )
        raise ValueError(f"{path} is empty{only}.")
    return comments, lines


def separated(lines: list[str]) -> tuple[str | None, list[int], list[list[str]]]:
    """Return the separator under which most lines have equally many fields, most of them numbers; line ends; rows.

    Of two under which as many have, the first line tells: the fewer names it lacks, up to two, the better. Blanks make
    no table of one that names and all rows below them are under another separator, unless of numbers alone.
    """
    is_table = False
    best: tuple[float, int, float] = (-1.0, 0, -1.0)
    found: tuple[str | None, list[int], list[list[str]]] = (",", [], [])
    for separator in SEPARATORS:
        ended = [(end, row) for end, row in fields_of(lines, separator) if len(row) > 1 or any(row)]
        rows = [row for _, row in ended]
        if not rows or (separator is None and len(rows) > 1 and len(rows[0]) == 1 and all(map(sign_of, lines[1:]))):
            continue  # blanks stand before units
        width, count = Counter(map(len, rows)).most_common(1)[0]
        body = [row for row in rows[1:] or rows if len(row) == width]
        cells = [cell for row in body for cell in row[:SAMPLE_CELLS]]
        numbers = sum(not cell or bool(notation_of(cell) or sign_of(cell)) for cell in cells) / max(1, len(cells))
        if separator is None and is_table and numbers < 1:
            break
        below = rows[lines_above(rows) :]
        is_table |= width > 1 and {*map(len, below)} == {width} and not any(cell[:1].isdigit() for cell in below[0])
        lacking = min(max(width - len(rows[0]), 0), 2)
        score = (round(count / len(rows), 1) if width > 1 else -0.5, -lacking, numbers)
        if score > best:
            best, found = score, (separator, [end for end, _ in ended], rows)
    return found


def lines_above(rows: list[list[str]]) -> int:
    """Return how many rows stand above the table, such as a title: they have fewer cells than nearly all others.

    Empty cells at the end of a row count for nothing above names, else of a row without a number. Names may lack one
    cell; numbers follow them.
    """
    filled = [len("\0".join(row).rstrip("\0").split("\0")) for row in rows]
    lengths = [len(row) if any(map(notation_of, row)) else short for row, short in zip(rows, filled, strict=True)]
    width = Counter(lengths).most_common(1)[0][0]
    names = next((k for k, row in enumerate(rows[:-1]) if filled[k] >= width), 0)
    under = chain(*rows[names + 1 : names + 3])  # units may stand between
    if all(rows[names]) and not any(map(notation_of, rows[names])) and any(map(notation_of, under)):
        return names
    for number, (length, below) in enumerate(zip(lengths, rows[1:], strict=False)):
        if length >= width or (length == width - 1 and any(map(notation_of, below))):
            return number
    return 0


def fields_of(lines: Iterable[str], separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield how many lines were read so far, and the cells of every row: quoted cells may go across lines."""
    if separator is None:
        yield from enumerate(map(str.split, lines), 1)
        return
    csv.field_size_limit(2 * LONGEST_LINE)
    reader = csv.reader(lines, delimiter=separator)
    for row in reader:
        yield reader.line_num, [cell.strip() for cell in row]
