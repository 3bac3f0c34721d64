"""Texts of warnings about rows that take several sentences: what was seen, what it does to the fit, what to do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ardea.core.problem import Array, Index
from ardea.estimators.advice import Advice, FewRowsWarning
from ardea.estimators.codes import is_usual
from ardea.estimators.inputs import RowKind
from ardea.estimators.residuals import WORTH_SIZES, Harm
from ardea.estimators.resting import Unsupported
from ardea.estimators.sizes import Sizes
from ardea.estimators.weights import Copies
from ardea.names import counted, printable

# Fewest groups for columns that are constant within them: with 20 neither false terms nor intervals hold, with 80 both
# do (measured, `benchmarks.dependence`), and with 40 (150 fits each of 5, 20 and 50 columns) within 1.4 times and 90 %.
FEW_GROUPS = 40
# Rows named in a message, and columns: conventions.
NAMED_ROWS, NAMED_COLUMNS = 5, 3


def told_of_dependence(of: str, harm: Harm, kind: RowKind, total: float, effective: float) -> str:
    """Return a warning with what to do."""
    apart = "neighbouring rows" if harm.lag == 1 else f"rows {harm.lag} apart (a season of {harm.lag} rows)"
    where = {
        "groups": "rows of one group",
        "within": "neighbouring rows of one group",
        "larger": "groups that follow each other",
        "replicates": "rows with the same values in all columns",
        "shared": "rows with the same values in several columns (those of one site or patient, it may be)",
    }.get(of, apart)
    left = "" if kind == "independent" else f" after rows={kind!r} has been applied"
    like = "A term that is missing, such as a season or the square of a slow column, looks the same (plot_residuals())."
    if harm.correlation < 0 and harm.lag == 1:
        like = "Differences from row to row look like this: if these are some, fit the levels instead."
    return (
        f"Errors of {where} are correlated ({harm.correlation:.2f}){left}, and so are the columns: {total:g} rows tell "
        f"about as much as {effective:.0f} independent ones. More false terms than asked for are kept, and intervals "
        f"are too narrow. {_independence(of, harm.lag, kind)} {like} (python -m ardea.explain dependent_rows)"
    )


def told_of_centred(groups: int, total: float) -> str:
    """Return a warning about rows less the means of their groups ("within", as for fixed effects)."""
    return (
        f"y and the columns add up to zero in {groups} groups of rows, as if the means of groups had been taken from "
        f"them: {total:g} rows then tell about as much as {total - groups:g}. More false terms than asked for are "
        "kept, and intervals are too narrow. Fit the columns as they were with the labels as groups= and "
        "rows='groups', or with an indicator of every group in always_keep (python -m ardea.explain dependent_rows)."
    )


def told_of_value(value: float, rows: int, total: int) -> str:
    """Return a warning about a value of y that is there far more often than all others, between them."""
    return (
        f"{rows} of {total} values of y are {value:.6g}, and hardly any other repeats. If it was filled in for missing "
        "readings, as their mean is, leave these rows out of X and y: coefficients are too small, and intervals wrong "
        "(python -m ardea.explain suspect_data)."
    )


def told_of_copies(copies: Copies, m: int, d: int, names: Sequence[str]) -> str:
    """Return a warning about rows that are copies of others."""
    other = np.setdiff1d(np.arange(d), copies.columns)
    listed = ", ".join(printable(names[int(j)]) for j in other[:NAMED_COLUMNS]) + ", …" * (other.size > NAMED_COLUMNS)
    where = f"in all columns but {listed}" if other.size else "in all columns"
    drop = "drop the copies (DataFrame.drop_duplicates(), or numpy.unique of X and y with axis=0)"
    if other.size:
        drop = "keep one row of each (DataFrame.drop_duplicates(subset=…) with the other columns and y)"
    return (
        f"{copies.number} of {m} rows are {'' if other.size else 'exact '}copies of others, in y and {where}. A copy "
        "tells nothing new but counts as a row: more false terms than asked for are kept, and intervals are too "
        f"narrow. If the table was joined or written several times, {drop}. If they are separate readings that happen "
        "to agree, ignore this (python -m ardea.explain suspect_data)."
    )


def _independence(of: str, lag: int, kind: RowKind) -> str:
    """Return what makes rows independent."""
    if kind == "unequal":
        return "Errors that depend on each other harm more: use rows='series' or rows='groups' instead."
    if lag > 1:
        same = "If a season has the same effect every time, add columns for its parts (months, weekdays) to always_keep"
        groups = "if such rows come from one subject or machine, give it as groups= and use rows='groups'"
        changes = f"; if it changes from time to time, use rows='series'; {groups}"
        return f"{same}{changes * (kind != 'series')}."
    if kind == "series":
        return "Add columns for a trend or a season, if there may be one, or take fewer rows per unit of time."
    if of == "within":
        return "They are more alike than other rows of their group: use rows='series' with the same groups=."
    if of == "across":
        return (
            "Rows of different groups that follow each other share something, such as a date: if that is what harms "
            "most, give it as groups= and use rows='groups', or add columns for it to always_keep."
        )
    if of == "larger":
        return (
            "Groups seem to lie in larger ones, as classes do in schools: give the larger as groups= and use "
            "rows='groups', if columns differ between these. Where columns differ at both levels, neither is right."
        )
    if kind == "groups" or of == "groups":
        return "Use rows='groups'."
    if of in ("replicates", "shared"):
        return "If they are readings of one thing, say which rows belong together with groups= and use rows='groups'."
    return (
        "If the rows are in the order of time, use rows='series'; if they come in blocks, say which with groups= and "
        "use rows='groups'."
    )


def told_of_blocks(breaks: Index, total: float) -> str:
    """Return a warning of levels that hold for some rows, with what to do."""
    first = ", ".join(map(str, breaks[:NAMED_ROWS].tolist()))
    return (
        f"Columns change their levels at the same rows ({first}, …, counted from 0) and keep them in between, and so "
        f"do errors: {total:g} rows are about {breaks.size + 1} blocks whose rows share an error, which is no series. "
        "More false terms than asked for are kept, and intervals are too narrow. Say which rows form a block with "
        "groups= and use rows='groups' (python -m ardea.explain dependent_rows)."
    )


def told_of_sizes(sizes: Sizes, name: str, kind: RowKind, numbers: Index) -> str:
    """Return a warning with what to do."""
    left = "" if kind == "independent" else f" after rows={kind!r} has been applied"
    look = "Look at them for slips, and mend or drop rows that are wrong"
    if sizes.gross.size:
        which = "largest error makes" if sizes.gross.size == 1 else f"{sizes.gross.size} largest errors make"
        do = ", or use rows='unequal', which draws such errors in" if kind == "independent" else ""
        kind_of_its_own = "; if they are rows of another kind, add a column that says so" * (
            sizes.gross.size > NAMED_ROWS
        )
        return (
            f"The {which} the standard deviation of the noise{left} {sizes.noise:.2g} times that of most rows "
            f"({_listed_rows(numbers[sizes.gross])}): true terms may be missed, and false ones kept if such a row "
            f"decides over a column. {look}{do}{kind_of_its_own}. (python -m ardea.explain unequal_errors)"
        )
    far = f"Rows far out contradict all others{left} ({_listed_rows(numbers[sizes.far])})" if sizes.far.size else ""
    if far and max(sizes.excess, sizes.of_kept) < WORTH_SIZES:
        do = ", or use rows='unequal', in which far rows count less" if kind == "independent" else ""
        return (
            f"{far}: without them estimates move by up to {sizes.moved:.2g} of their standard deviations. Such rows "
            "alone may keep false terms. "
            f"{look}{do}. A term that is missing, the square of a column for example, looks the same. "
            "(python -m ardea.explain unequal_errors)"
        )
    do = "Use rows='unequal', or take" if kind == "independent" else "Take"
    both = (
        "Values that were filled in between readings look like this, too: use the rows that were read. "
        "No rows= learns dependence and sizes together: if that does not help, intervals stay too narrow, and robust "
        "(HAC) standard errors of another package tell more. "
    )
    both *= kind in ("series", "groups")
    more = f"About {sizes.excess:.2g} times as many false terms as asked for may be kept, and intervals"
    harm = f"{more if sizes.excess > WORTH_SIZES else 'Intervals'} are too narrow."
    carrying = counted(round(max(sizes.carried, 1.0)), "row carries", "rows carry")
    return (
        f"Errors are of unequal size{left}. In the rows that decide over {printable(name)} their variance is "
        f"{sizes.inflation:.2g} times the mean, and about {carrying} it. {harm} "
        f"{far}{'. ' * bool(far)}{do} logarithms of what varies over orders of magnitude; look at the largest "
        "residuals (plot_residuals()), and mend or drop rows that are wrong. "
        f"{both}(python -m ardea.explain unequal_errors)"
    )


def told_of_bands(name: str) -> str:
    """Return a warning of sizes that rows='unequal' cannot follow, with what to do."""
    return (
        f"With rows='unequal' errors still change their size along {printable(name)}, as in a band of its values: such "
        "rows count for more than they tell, intervals are too narrow, most of all that of this column, and more false "
        "terms may be kept. Compare with a fit without it, or fit the rows of the band apart "
        "(python -m ardea.explain unequal_errors)."
    )


def told_of_worst(explained: float, shares: Array, numbers: Index) -> str:
    """Return a warning of a fit that is good in most rows, and further off than the mean in all, with what to do."""
    number = min(int(np.searchsorted(np.cumsum(shares), 0.5)) + 1, shares.size)
    return (
        f"R² = {explained:.2f} on the rows fitted: predictions are further off than the mean of y, although the terms "
        f"may explain most rows well. With rows='unequal' rows far out hardly count in the fit, but they do in R²: "
        f"{_listed_rows(numbers[:number])} {'has' if number == 1 else 'have'} {100 * shares[:number].sum():.0f} % of "
        "all squared errors. Look there for slips, and mend or drop rows that are wrong; if they are right, a straight "
        "line does not hold so far out: take logarithms (python -m ardea.explain unequal_errors)."
    )


def told_of_product(one: str, other: str, share: float) -> str:
    """Return a warning of a missing square or product, which looks like errors of unequal size, with what to do."""
    what, option = f"product of {printable(one)} and {printable(other)}", "--interactions"
    if one == other:
        what, option = f"square of {printable(one)}", "--degree 2"
    return (
        f"The {what} explains {100 * share:.0f} % of what the terms leave of y: add it as a column ({option} on the "
        "command line adds all of its kind). Without it errors look as if they were of unequal size, more false terms "
        "than asked for may be kept, and intervals are too narrow; rows='unequal' would not mend that. "
        "(python -m ardea.explain unequal_errors)"
    )


def told_of_piles(piles: tuple[int, int], y: Array) -> str:
    """Return a warning of many equal values at an end of y, with what to do."""
    ends = zip(piles, (y.min(), y.max()), ("smallest", "largest"), strict=True)
    said = [
        f"{number} of {y.size} values of y are equal to the {end}, {value:g}" for number, value, end in ends if number
    ]
    return (
        f"{' and '.join(said)}, while others hardly repeat: y looks cut off, as at a limit of detection or a cap. A "
        "straight line cannot bend there: coefficients come out too small, and intervals do not hold the truth. If "
        "values beyond were written as the limit, use a model for censored data (Tobit), or leave these rows out and "
        "read the rest with care (coefficients stay too small); if y is really zero there, model apart whether "
        "it is, and how large it is otherwise (python -m ardea.explain piled_up)."
    )


def told_of_two(low: float, high: float, excess: float, asked: float) -> str:
    """Return what is fitted to a target of two values, and how many times as many false terms it lets in."""
    false = (
        f"About {excess * asked:.2g} false terms are to be expected where {asked:.2g} {'is' if asked == 1 else 'are'} "
        "asked for: one of the values is rare, and so are rows that decide over some columns (indicators of few rows, "
        "long tails), so that a few rows in which both meet keep a term. Check every term by an exact test "
        "(scipy.stats.fisher_exact for an indicator, else permutation_test), and put rare indicators together"
        if excess > WORTH_SIZES
        else "Columns of noise are kept about as often as asked for"
    )
    return (
        f"y has only two values, {low:g} and {high:g}: the probability of {high:g} is fitted as a straight line in the "
        f"columns. {false}. Predictions may lie beyond both values, and intervals are rough where the probability "
        "comes near 0 or 1. If you need probabilities, fit a logistic regression to the terms kept. "
        "(python -m ardea.explain two_values)"
    )


def told_of_few(found: Sequence[Unsupported], names: Sequence[str], numbers: Index) -> str:
    """Return a warning of terms that were kept because of few rows, with what to do."""
    rows = numbers[np.unique(np.concatenate([one.rows for one in found]))]
    least = min(one.share for one in found)
    said = [
        f"{printable(name)} (t-statistic {one.t:.2g}, without {one.without:.2g})"
        for name, one in zip(names[:NAMED_COLUMNS], found, strict=False)
    ]
    more = f" and {len(found) - NAMED_COLUMNS} more" if len(found) > NAMED_COLUMNS else ""
    many, one = len(found) > 1, rows.size == 1
    return (
        f"{', '.join(said)}{more} {'are' if many else 'is'} kept because of {counted(rows.size, 'row')} "
        f"({_listed_rows(rows)}), which {'has' if one else 'have'} {100 * least:.0f} % {'or more ' * many}of the "
        f"variation of {'these columns' if many else 'the column'}. An error there would look the same, and residuals "
        "do not show it. Look at these rows for slips, use rows='unequal', in which they count less, or fit without "
        "them. (python -m ardea.explain few_rows)"
    )


def _listed_rows(numbers: Index) -> str:
    """Return the numbers of some rows for a message."""
    first = ", ".join(str(number) for number in sorted(numbers[:NAMED_ROWS].tolist()))
    return f"row{'s' * (numbers.size > 1)} {first}{', …' * (numbers.size > NAMED_ROWS)}, counted from 0"


def extrapolation_advice(fitted: Array, met: Array, names: Sequence[str]) -> str | None:
    """Return what to say of ranges met in prediction that lie far outside those fitted; None where none does.

    Examples
    --------
    >>> fitted = np.array([[0.0], [1.0]])
    >>> extrapolation_advice(fitted, np.array([[0.0], [1.9]]), ["height"])
    >>> extrapolation_advice(fitted, np.array([[0.5], [180.0]]), ["height"])[:68]
    'Prediction far outside the rows fitted: height reaches 180, fitted i'

    A value that programs write for what is missing is told wherever it lies outside.
    """
    (low, high), (lowest, highest) = fitted, met
    width = high - low
    beyond = np.maximum(low - lowest, highest - high)
    ends = np.where(low - lowest > highest - high, lowest, highest)
    code = np.array([is_usual(one) for one in ends.tolist()], dtype=bool)
    far = np.flatnonzero(((beyond > width) | (code & (beyond > 0))) & (width > 0))
    if far.size == 0:
        return None
    missing = [f"; this is how programs write a missing reading (--na={one:.10g} on the command line)" for one in ends]
    said = [
        f"{names[i]} reaches {ends[i]:.4g}, fitted in [{low[i]:.4g}, {high[i]:.4g}]{missing[i] if code[i] else ''}"
        for i in far[np.argsort(-beyond[far] / width[far])]
    ]
    more = f"; and {far.size - NAMED_COLUMNS} more" if far.size > NAMED_COLUMNS else ""
    return (
        f"Prediction far outside the rows fitted: {'; '.join(said[:NAMED_COLUMNS])}{more}. The standard deviation says "
        "nothing of whether the model holds there (python -m ardea.explain extrapolation)."
    )


def few_groups_advice(groups: Index | None, columns: Array) -> list[Advice]:
    """Return what to tell of columns that are constant within few groups."""
    if groups is None:
        return []
    labels, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    constant = int(np.all(columns == columns[first][codes], axis=0).sum())
    if constant == 0 or labels.size >= FEW_GROUPS:
        return []
    which, them = ("One of the columns is", "it") if constant == 1 else (f"{constant} of the columns are", "them")
    text = (
        f"{which} constant within groups, so that {labels.size} groups tell about {them} as much as {labels.size} "
        "rows: false terms are kept among such columns more often than asked for, and their intervals are too narrow. "
        f"From {FEW_GROUPS} groups on both hold. Add groups, or leave such columns out. "
        "(python -m ardea.explain few_rows)"
    )
    return [(text, FewRowsWarning)]
