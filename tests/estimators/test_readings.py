"""What looks like no reading is told, whatever the units and the order of the columns; what chance brings is not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ardea import SparseARD
from ardea.estimators.advice import AdviceWarning, PiledUpWarning, SuspectDataWarning
from ardea.estimators.codes import codes_of


def table(seed=0, rows=60, columns=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 9, size=(rows, columns))
    return X, 3 * X[:, 0] - X[:, 1] + rng.normal(size=rows)


def told(X, y, kind=SuspectDataWarning):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AdviceWarning)
        SparseARD().fit(X, y)
    return [str(one.message) for one in caught if issubclass(one.category, kind)]


@pytest.mark.parametrize("code", [-999, -1e30, 9999, 99999, -32768])
@pytest.mark.parametrize("rows", [[7], [3, 9, 33]])
def test_codes_are_told_with_their_rows_and_the_option(code, rows):
    X, y = table()
    X[rows, 2] = code
    (said,) = told(X, y)
    assert f"x2 is {code:g} in {len(rows)} row" in said
    assert f"{code:g} on the command line" in said
    y[rows], X[rows, 2] = code, 5
    (said,) = told(X, y)
    assert said.startswith(f"y is {code:g} in")


def test_several_codes_of_a_column_are_told_together():
    column = np.tile([1.0, 2, 3, 4, 5], 8)
    column[[3, 8, 20]], column[[5, 6]] = 97, 99
    assert codes_of(column, lambda value, rows: rows > 1).values == [(97.0, 3), (99.0, 2)]
    column[[11, 12]] = -9999
    assert codes_of(column, lambda value, rows: rows > 1).values == [(-9999.0, 2), (97.0, 3), (99.0, 2)]


def test_a_negative_code_among_large_amounts_is_told():
    X, y = table()
    X[:, 1] *= 10_000
    X[[4, 8], 1] = -999
    assert "x1 is -999 in 2 rows" in told(X, y)[0]


def test_minus_one_among_whole_numbers_well_above_zero_is_told():
    """Of ages it is a code; near zero, of measured numbers, and of few levels it is a number."""
    rng = np.random.default_rng(1)
    ages = rng.integers(18, 80, 60).astype(float)
    rows = [4, 8, 30]
    for column, is_code in [
        (ages, True),
        (ages % 9, False),
        (ages % 9 + 1, False),
        (ages + 0.5, False),
        (ages % 3 + 8, False),
    ]:
        X, y = table()
        X[:, 1] = column
        X[rows, 1] = -1
        assert any("x1 is -1 in 3 rows" in one and "--na=-1" in one for one in told(X, y)) == is_code
    X[:, 1] = ages
    X[4, 1] = -1  # once may be a slip
    assert not any("x1 is -1" in one for one in told(X, y))


@pytest.mark.parametrize("units", [1.0, 1e-6])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("digits", [9, 1])
def test_a_row_of_sums_is_told(units, first, digits):
    X, y = table()
    X = np.column_stack([X, np.arange(60) % 2])  # of indicators nothing is asked
    whole = np.vstack([X, X.sum(axis=0).round(digits)]) * units, np.append(y, y.sum()) * units
    (said,) = told(*(one[::-1] if first else one for one in whole))
    assert (
        f"Row {0 if first else 60}, the {'first' if first else 'last'} of 61, holds the sums of the others in 5" in said
    )


def test_a_row_of_means_and_one_far_from_all_others_are_told():
    X, y = table()
    assert "holds the means" in told(np.vstack([X, X.mean(axis=0).round(2)]), np.append(y, y.mean()))[0]
    assert "far from those of all other rows" in told(np.vstack([X, 1000 + X[0]]), np.append(y, 3000))[0]


def test_what_chance_and_growth_bring_is_not_told():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.column_stack(
            [
                rng.normal(size=(40, 5)),
                rng.lognormal(size=(40, 2)),
                rng.standard_t(2, size=40),
                rng.poisson(0.3, size=(40, 2)),
                rng.integers(0, 2, size=(40, 3)),
                np.cumsum(rng.normal(size=(40, 2)), axis=0),
                10.0 ** np.linspace(0, 6, 40),
                np.arange(40),
            ]
        )
        assert told(X, X[:, 0] + rng.normal(size=40)) == []


def test_what_most_rows_have_and_products_with_indicators_are_no_codes():
    rng = np.random.default_rng(3)
    X, y = table(rows=40)
    X[:, 2] = np.where(np.arange(40) < 4, rng.uniform(8, 9, size=40), 0.0)  # an amount that is seldom there
    assert told(X, y) == []
    X[:, 2] = np.arange(40) >= 10
    X[:, 3] = X[:, 2] * rng.uniform(8, 9, size=40)
    assert told(X, y) == []
    assert "x3 is 0 in 10 rows" in told(X[:, [0, 1, 1, 3]], y)[0]


def test_frames_name_their_columns():
    X, y = table()
    frame = pd.DataFrame(X, columns=["heat", "b", "c", "d"])
    frame.loc[[2, 5], "heat"] = -999
    assert told(frame, y)[0].startswith("heat is -999 in 2 rows")


# Rows that are copies


def copied(X, y, times=5, seed=0):
    """Return every row several times, mixed."""
    order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(y)), times))
    return X[order], y[order]


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array, np.asfortranarray, np.float32])
@pytest.mark.parametrize("digits", [9, 0])
def test_copies_are_told_with_their_number(kind, digits):
    """Whatever holds the rows, and whether y is continuous or rounded."""
    X, y = copied(*table())
    model = SparseARD()
    with pytest.warns(SuspectDataWarning, match=r"240 of 300 rows are exact copies.*drop_duplicates"):
        model.fit(kind(X), y.round(digits))
    assert model.effective_rows_ == 60
    assert any("exact copies" in text for text in model.warnings_)


def test_a_crowd_of_customers_who_bought_nothing_are_no_copies():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        buys = rng.random(300) < 0.6
        X = rng.exponential(size=(300, 6)) * buys[:, None]
        assert not [one for one in told(X, X[:, 0] + rng.exponential(size=300) * buys) if "copies" in one]


@pytest.mark.parametrize("order", ["stacked", "joined", "mixed"])
def test_copies_in_all_columns_but_one_are_told_with_its_name(order):
    """As after a join with several rows for one, or a table written twice beside its numbers."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 8)), rng.normal(size=200)
        numbers = {"stacked": np.tile(np.arange(200), 2), "joined": np.repeat(np.arange(200), 2)}
        rows = numbers[order] if order in numbers else rng.permutation(numbers["joined"])
        beside = np.arange(400.0) if order == "stacked" else rng.normal(size=400)
        table = pd.DataFrame(np.column_stack([X[rows], beside])).add_prefix("c")
        [text] = [one for one in told(table, y[rows]) if "copies" in one]
        assert re.match(r"200 of 400 rows are copies of others.* but c8\.", text)


def test_copies_among_indicators_are_told_by_a_continuous_target():
    X, y = table()
    assert "180 of 240 rows" in told(*copied(X > 5, y, 4))[0]


def test_copies_of_a_whole_table_are_told_though_chance_repeats_some():
    """Every row is there a multiple of three times, which chance does not do to more than a few rows."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.random((150, 12)) < 0.3
        y = np.round(X[:, 0] + rng.normal(size=150), 1)
        assert told(X, y) == []
        assert "rows are exact copies" in told(*copied(X, y, 3))[0]


def test_one_row_in_eight_written_twice_is_told_and_fewer_are_not():
    """v = Σ w²/Σ w is above 1.25, where intervals are 10 % too narrow, from m/8 pairs on."""
    X, y = table(rows=160)
    for extra, expected in ((10, []), (30, ["30 of 190 rows"])):
        found = told(np.vstack([X, X[:extra]]), np.append(y, y[:extra]))
        assert [text[: len("30 of 190 rows")] for text in found] == expected


def test_repeats_that_chance_brings_are_not_told():
    """Indicators, levels and counts repeat, as do designs with several runs; weights are counts on purpose."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        marks, levels = rng.integers(0, 2, size=(200, 3)), rng.integers(0, 3, size=(200, 2))
        for X in (marks, levels, np.column_stack([marks, levels])):
            mean = X @ np.arange(1, 1 + X.shape[1])
            for y in (
                rng.poisson(0.02 + 0.05 * X[:, 0]),  # hardly ever anything but zero
                rng.poisson(np.exp(0.3 * X[:, 0])),
                np.round(mean + rng.normal(size=200)),
                mean + rng.normal(size=200),
            ):
                assert told(X, y) == []
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseARD().fit(X, y, sample_weight=np.arange(60) % 5 + 1)
        SparseARD().fit(X, np.round(2 * y), sample_weight=np.full(60, 5))


@pytest.mark.parametrize(("shape", "rare"), [((100, 20), 0.05), ((100, 40), 0.03), ((60, 15), 0.05)])
def test_rare_indicators_beside_a_rare_event_are_no_copies(shape, rare):
    """Most rows are all zero, and so is y: one large group that agrees is no evidence."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = (rng.random(shape) < rare).astype(float), (rng.random(shape[0]) < 0.05).astype(float)
        if np.ptp(y) > 0:
            assert told(X, y) == []


# Values that pile up at an end of y


@pytest.mark.parametrize("end", ["smallest", "largest"])
@pytest.mark.parametrize("share", [0.07, 0.2, 0.5])
def test_a_target_that_is_cut_off_is_told(end, share):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 5))
        y = np.maximum(free := X[:, 0] + rng.normal(size=300), np.quantile(free, share))
        said = told(X, y if end == "smallest" else -y, PiledUpWarning)
        assert re.match(rf"\d+ of 300 values of y are equal to the {end}.*\(Tobit\)", said[0])
        assert abs(int(said[0].split()[0]) - 300 * share) <= 1


def test_counts_ratings_and_rounded_numbers_do_not_pile_up():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 3))
        for y in (
            rng.poisson(0.5, size=200),
            rng.poisson(20, size=200),
            rng.integers(1, 6, size=200),
            np.clip(np.round(7 + 2 * rng.normal(size=200)), 0, 10),
            np.round(X[:, 0] + rng.normal(size=200), 1),
            np.round(rng.exponential(size=200), 2),
            rng.geometric(0.7, size=200),
        ):
            assert told(X, y.astype(float), PiledUpWarning) == []


def test_groups_may_hold_copies():
    X, y = copied(*table())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseARD(rows="groups").fit(X, y, groups=np.unique(y, return_inverse=True)[1])


@pytest.mark.parametrize(
    ("points", "codes"), [(5, [9]), (5, [7]), (5, [-9]), (5, [-1]), (7, [9]), (10, [-8, -9]), (5, [8, 9])]
)
def test_codes_beside_a_short_scale_of_answers_are_told(points, codes):
    X, y = table(rows=200)
    rng = np.random.default_rng(3)
    X[:, 0] = rng.integers(1, points + 1, 200)
    for place, code in enumerate(codes):
        X[place : place + 32 : 4, 0] = code
    (said,) = told(X, y)
    assert f"unlike all its other values, 1 to {points}" in said
    assert all(f"{code} on the command line" in said or f"{code} --na" in said for code in codes)


def test_ordinary_whole_numbers_hold_no_codes():
    """Neighbours of a scale are points of it, few rows tell of no gap, and levels of a design come equally often."""
    scale = np.repeat([1.0, 2, 3, 4, 5], 20)
    for others in ([0] * 8, [6] * 8, [9], [9] * 20):
        assert codes_of(np.append(scale, others), lambda value, rows: rows > 1) is None
    rng = np.random.default_rng(4)
    draws = [1 + rng.poisson(2, (500, 60)), rng.geometric(0.4, (500, 200)), 1 + rng.binomial(8, 0.3, (500, 30))]
    draws += [np.clip(np.round(rng.normal(2, 1.2, (500, 100))), 1, 7), rng.integers(1, 7, (500, 20))]
    for column in (one for many in draws for one in many.astype(float)):
        assert codes_of(column, lambda value, rows: rows > 1) is None


@pytest.mark.parametrize("rows", ["independent", "series"])
@pytest.mark.parametrize("kind", ["lines", "steps"])
def test_values_filled_in_between_readings_are_told(kind, rows):
    rng, place = np.random.default_rng(1), np.arange(240)
    X = np.cumsum(rng.normal(size=(240, 5)), axis=0)
    y = X[:, 0] - X[:, 1] + rng.normal(size=240)
    filled = np.interp(place, place[::3], y[::3]) if kind == "lines" else y[3 * (place // 3)]
    how = "on a straight line" if kind == "lines" else "the same as in the row before"
    with pytest.warns(SuspectDataWarning, match=rf"1\d\d of 240 values of y are {how}.*fit the rows that were read"):
        SparseARD(rows=rows).fit(X, filled)


def test_values_that_lie_on_lines_by_nature_are_not_told():
    """Whole, rounded and constant numbers, two values, and counts of the rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    for y in (
        rng.poisson(3, 200),
        np.sort(rng.poisson(30, 200)),
        X[:, 0].round(1),
        (X[:, 0] > 0) * 1.0,
        np.arange(200.0),
        np.repeat([1.0, 2.0, 3.0, 4.0], 50) + X[:, 0],
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            SparseARD().fit(X, y)
        assert not [one for one in caught if "filled in" in str(one.message)]


def test_one_value_in_place_of_missing_ones_is_told():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 8))
        y, missing = X[:, 0] + rng.normal(size=300), rng.random(300) < 0.2
        y[missing] = y[~missing].mean()
        assert any("filled in for missing readings" in one for one in told(X, y))


def test_runs_at_the_centre_of_a_design_are_no_row_of_means():
    factors = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)
    X = np.vstack([factors, factors, np.zeros((5, 3))])
    for seed in range(200):
        y = X[:, 0] + 0.05 * np.random.default_rng(seed).normal(size=21)
        assert not any("the means of the others" in one for one in told(X, y))
