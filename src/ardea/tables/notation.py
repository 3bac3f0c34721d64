"""How numbers are written, and what words in cells and in names of columns mean: patterns, and nothing else."""

from __future__ import annotations

import re
from typing import NamedTuple

_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_GROUPED = "[+-]?[1-9][0-9]{0,2}"
APOSTROPHES = "'’"  # as in Switzerland
BLANK = f"[ \u00a0\u2006-\u200a\u202f{APOSTROPHES}]"  # narrow, or not to be broken
_MONEY, _UNIT = "[$€£¥]", "(?:[%‰$€£¥]|[A-Za-zµμΩ°²³/·]+)"
# 1 234 567,8 and 1'234'567.8 €, with blanks or apostrophes between thousands.
SPACED = re.compile(
    rf"(?P<before>(?:{_MONEY}\s*)?)(?P<digits>{_GROUPED}(?:{BLANK}[0-9]{{3}})+(?:[.,][0-9]*)?)(?P<after>(?:\s*{_UNIT})?)"
)
_DIGITS, _BEFORE = rf"(?P<digits>[0-9](?:{BLANK}?[0-9.,])*)", rf"(?P<before>(?:{_MONEY}\s?)?)"
# What is written for $-1,200.50: ($1,200.50) and $(1,200.50) by accountants, 1200,50- by business software.
NEGATIVES = {
    "brackets": re.compile(rf"\({_BEFORE}{_DIGITS}(?P<after>(?:\s*{_UNIT})?)\)"),
    "brackets behind a sign": re.compile(rf"{_BEFORE}\({_DIGITS}(?P<after>)\)"),
    "trailing hyphens": re.compile(rf"{_BEFORE}{_DIGITS}(?P<after>)-"),
    "hyphens before a sign": re.compile(rf"-\s?(?P<before>{_MONEY}\s?){_DIGITS}(?P<after>)"),
}
MINUS = re.compile("−|^–(?=[0-9.,])")  # U+2212, and the dash that many write for it
# How numbers are written, by what the comma or dot in them tells; the first that fits holds.
NOTATIONS = {
    "whole": "[+-]?[0-9]+",
    "dots": rf"{_GROUPED}\.[0-9]{{3}}",  # 1.775: decimals, or thousands where the comma stands before decimals
    "point": rf"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT}",  # 1.5: can only stand before decimals
    "plain": rf"[+-]?[0-9]+{_EXPONENT}|[+-]?(?:inf|infinity|INF|Infinity|Inf)",
    "either": rf"{_GROUPED},[0-9]{{3}}{_EXPONENT}",  # 1,234: decimals or thousands
    "comma": rf"[+-]?(?:0?|[0-9]{{4,}}),[0-9]+{_EXPONENT}",  # 0,5 and 1234,5: decimals, not even thousands with a slip
    "decimal": rf"[+-]?(?:[0-9]+,[0-9]*|,[0-9]+|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+(?:,[0-9]*)?){_EXPONENT}",
    "thousands": rf"{_GROUPED}(?:,[0-9]{{3}})+(?:\.[0-9]*)?{_EXPONENT}",
}
NOTATION = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in NOTATIONS.items()))
# Which of them are numbers, by what stands before decimals; without a mark a comma makes no number.
READ_WITH = {
    None: {"whole", "dots", "point", "plain"},
    ".": {"whole", "dots", "point", "plain", "thousands", "either"},
    ",": {"whole", "dots", "plain", "comma", "decimal", "either"},
}


class Mark(NamedTuple):
    """A mark that may stand before decimals or group thousands: its name, and what --decimal says of either."""

    decimals: str
    thousands: str
    name: str


# Numbers with one mark before three digits, by their notation; read as thousands, the other mark is before decimals.
MARKS = {"dots": Mark(".", ",", "dots"), "either": Mark(",", ".", "commas")}
ROLES = {True: "stand before decimals", False: "group thousands"}
# Numbers with a sign of a currency before them, or with it, with per cent or with a unit behind them.
SIGNED = re.compile(rf"({_MONEY})\s*[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]*?\s*({_UNIT})")
# How texts begin that may be numbers.
NUMERAL = re.compile(rf"[-+(]?{_MONEY}?[-+(]?[0-9]")
# What stands before sums and means of the other rows (a convention: English and German), and before sums of groups of
# them, such as "North Total" or "Nord Ergebnis" in spreadsheets.
TOTALS = re.compile(
    r"(.+\s)?(((grand|sub)[ -]?)?totals?|summe|gesamt|ergebnis)|gesamt(ergebnis|summe)|teilergebnis|zwischensumme"
    r"|sums?|means?|averages?|avg|median|s\.?d\.?|std\.?( dev\.?)?|mittelwert|durchschnitt",
    re.IGNORECASE,
)
# Last words of what a column is called that numbers the rows, and things that a row is about (conventions).
NUMBER_WORDS = {"index", "idx", "id", "ids", "row", "nr", "no", "num", "number", "#", "unnamed"}
ROW_WORDS = {"sample", "respondent", "case", "record", "observation", "obs", "subject", "participant", "patient"}
# What columns of numbers are called that name things (English, German and French).
CODE_NAMES = re.compile(
    "site|station|plot|batch|lot|store|shop|plant|machine|operator|region|district|zip|postcode|code|category|class|group|"
    "type|cluster|id|hospital|clinic|ward|department|school|classroom|treatment|arm|species|strain|breed|country|state|"
    "county|city|sex|gender|race|ethnicity|month|weekday|season|branch|"
    "gruppe|klinik|krankenhaus|standort|filiale|abteilung|anlage|maschine|charge|schule|klasse|kategorie|"
    "behandlung|bundesland|landkreis|kreis|stadt|plz|postleitzahl|geschlecht|monat|wochentag|"
    "groupe|clinique|ville|pays|sexe|mois|parcelle|traitement|classe|categorie"
)
# What a switch is called that is on; the other text is its reference.
SWITCHED_ON = re.compile("on|yes|true|open|running|active|an|ein|ja|oui|y|t|high|pass|passed|positive|success")
# Numbers written against the mark of a file are slips where they are at most so many for each that tells it: a file has
# one mark, and more would be columns from another one (a convention).
MINORITY = 0.25
# Of decimals to three places a tenth has fewer, if zeros at the end are left out: that of 60 or more at most one in 60
# has other than three places, one comma being a slip among thousands, is then rare (0.9⁶⁰ + 6 · 0.9⁵⁹ = 1.4 %).
RARE = 1 / 60
# Wrong cells are few where at most this share of a column is wrong, or one: then the column is sound (a convention).
FEW = 0.1
