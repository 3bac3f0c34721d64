"""Least squares against certified values: the linear sets of the NIST Statistical Reference Datasets (StRD).

Source: National Institute of Standards and Technology, Statistical Reference Datasets, Linear Least Squares Regression
(Norris, Pontius, NoInt1, NoInt2, Filip, Longley, Wampler1 to Wampler5). The values were certified by computing with 500
digits; a test here repeats that with fractions, so that neither data nor certified values can hold a slip.

Users get least squares in two ways: all columns in `always_keep`, or the refit on the columns that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from ardea import ARD

CERTIFIED_DIGITS = 15


@dataclass(frozen=True)
class Certified:
    """A set: the columns, y, certified coefficients (the constant first) and their standard deviations, as printed."""

    columns: tuple[str, ...]
    y: str
    coefficients: str
    deviations: str
    residual_deviation: str
    degree: int = 1  # the columns are x, x², … up to it
    intercept: bool = True

    @cached_property
    def target(self) -> list[Fraction]:
        return [Fraction(number) for number in self.y.split()]

    @cached_property
    def rows(self) -> list[list[Fraction]]:
        """The columns without the constant."""
        columns = [[Fraction(number) for number in column.split()] for column in self.columns]
        if self.degree > 1:
            columns = [[x**power for x in columns[0]] for power in range(1, self.degree + 1)]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def arrays(self):
        return np.array(self.rows, dtype=float), np.array(self.target, dtype=float)

    def exact(self) -> tuple[list[Fraction], list[Fraction], Fraction]:
        """Return coefficients, their variances and σ², exactly, by the normal equations."""
        rows = [[Fraction(1), *row] if self.intercept else row for row in self.rows]
        p = len(rows[0])
        gram = [[sum(row[i] * row[j] for row in rows) for j in range(p)] for i in range(p)]
        moment = [sum(row[i] * y for row, y in zip(rows, self.target, strict=True)) for i in range(p)]
        inverse = inverted(gram)
        coefficients = [sum(a * b for a, b in zip(line, moment, strict=True)) for line in inverse]
        fitted = [sum(a * b for a, b in zip(row, coefficients, strict=True)) for row in rows]
        rss = sum((y - f) ** 2 for y, f in zip(self.target, fitted, strict=True))
        noise = rss / (len(rows) - p)
        return coefficients, [noise * inverse[i][i] for i in range(p)], noise


def inverted(matrix):
    """Return the inverse of a matrix of fractions (Gauss–Jordan)."""
    p = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(p))] for i, row in enumerate(matrix)]
    for i in range(p):
        pivot = next(k for k in range(i, p) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(p):
            if k != i and rows[k][i] != 0:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[p:] for row in rows]


UP_TO_20 = " ".join(map(str, range(21)))
ONES, ZEROS = " ".join(["1"] * 6), " ".join(["0"] * 6)
LOADS = " ".join(str(150_000 * i) for _ in range(2) for i in range(1, 21))

SETS = {
    "Norris": Certified(
        columns=(
            """0.2 337.4 118.2 884.6 10.1 226.5 666.3 996.3 448.6 777.0 558.2 0.4 0.6 775.5 666.9 338.0 447.5 11.6 556.0
            228.1 995.8 887.6 120.2 0.3 0.3 556.8 339.1 887.2 999.0 779.0 11.1 118.3 229.2 669.1 448.9 0.5""",
        ),
        y="""0.1 338.8 118.1 888.0 9.2 228.1 668.5 998.5 449.1 778.9 559.2 0.3 0.1 778.1 668.8 339.3 448.9 10.8 557.7
        228.3 998.0 888.8 119.6 0.3 0.6 557.6 339.3 888.0 998.5 778.9 10.2 117.6 228.9 668.4 449.2 0.2""",
        coefficients="-0.262323073774029 1.00211681802045",
        deviations="0.232818234301152 0.429796848199937E-03",
        residual_deviation="0.884796396144373",
    ),
    "Pontius": Certified(
        columns=(LOADS,),
        y=""".11019 .21956 .32949 .43899 .54803 .65694 .76562 .87487 .98292 1.09146 1.20001 1.30822 1.41599 1.52399
        1.63194 1.73947 1.84646 1.95392 2.06128 2.16844 .11052 .22018 .32939 .43886 .54798 .65739 .76596 .87474 .98300
        1.09150 1.20004 1.30818 1.41613 1.52408 1.63159 1.73965 1.84696 1.95445 2.06177 2.16829""",
        coefficients="0.673565789473684E-03 0.732059160401003E-06 -0.316081871345029E-14",
        deviations="0.107938612033077E-03 0.157817399981659E-09 0.486652849992036E-16",
        residual_deviation="0.205177424076185E-03",
        degree=2,
    ),
    "NoInt1": Certified(
        columns=("60 61 62 63 64 65 66 67 68 69 70",),
        y="130 131 132 133 134 135 136 137 138 139 140",
        coefficients="2.07438016528926",
        deviations="0.165289256198347E-01",
        residual_deviation="3.56753034006338",
        intercept=False,
    ),
    "NoInt2": Certified(
        columns=("4 5 6",),
        y="3 4 4",
        coefficients="0.727272727272727",
        deviations="0.420827318078432E-01",
        residual_deviation="0.369274472937998",
        intercept=False,
    ),
    "Filip": Certified(
        columns=(
            """-6.860120914 -4.324130045 -4.358625055 -4.358426747 -6.955852379 -6.661145254 -6.355462942 -6.118102026
            -7.115148017 -6.815308569 -6.519993057 -6.204119983 -5.853871964 -6.109523091 -5.79832982 -5.482672118
            -5.171791386 -4.851705903 -4.517126416 -4.143573228 -3.709075441 -3.499489089 -6.300769497 -5.953504836
            -5.642065153 -5.031376979 -4.680685696 -4.329846955 -3.928486195 -8.56735134 -8.363211311 -8.107682739
            -7.823908741 -7.522878745 -7.218819279 -6.920818754 -6.628932138 -6.323946875 -5.991399828 -8.781464495
            -8.663140179 -8.473531488 -8.247337057 -7.971428747 -7.676129393 -7.352812702 -7.072065318 -6.774174009
            -6.478861916 -6.159517513 -6.835647144 -6.53165267 -6.224098421 -5.910094889 -5.598599459 -5.290645224
            -4.974284616 -4.64454848 -4.290560426 -3.885055584 -3.408378962 -3.13200249 -8.726767166 -8.66695597
            -8.511026475 -8.165388579 -7.886056648 -7.588043762 -7.283412422 -6.995678626 -6.691862621 -6.392544977
            -6.067374056 -6.684029655 -6.378719832 -6.065855188 -5.752272167 -5.132414673 -4.811352704 -4.098269308
            -3.66174277 -3.2644011""",
        ),
        y="""0.8116 0.9072 0.9052 0.9039 0.8053 0.8377 0.8667 0.8809 0.7975 0.8162 0.8515 0.8766 0.8885 0.8859 0.8959
        0.8913 0.8959 0.8971 0.9021 0.909 0.9139 0.9199 0.8692 0.8872 0.89 0.891 0.8977 0.9035 0.9078 0.7675 0.7705
        0.7713 0.7736 0.7775 0.7841 0.7971 0.8329 0.8641 0.8804 0.7668 0.7633 0.7678 0.7697 0.77 0.7749 0.7796 0.7897
        0.8131 0.8498 0.8741 0.8061 0.846 0.8751 0.8856 0.8919 0.8934 0.894 0.8957 0.9047 0.9129 0.9209 0.9219 0.7739
        0.7681 0.7665 0.7703 0.7702 0.7761 0.7809 0.7961 0.8253 0.8602 0.8809 0.8301 0.8664 0.8834 0.8898 0.8964 0.8963
        0.9074 0.9119 0.9228""",
        coefficients="""-1467.48961422980 -2772.17959193342 -2316.37108160893 -1127.97394098372 -354.478233703349
        -75.1242017393757 -10.8753180355343 -1.06221498588947 -0.670191154593408E-01 -0.246781078275479E-02
        -0.402962525080404E-04""",
        deviations="""298.084530995537 559.779865474950 466.477572127796 227.204274477751 71.6478660875927
        15.2897178747400 2.23691159816033 0.221624321934227 0.142363763154724E-01 0.535617408889821E-03
        0.896632837373868E-05""",
        residual_deviation="0.334801051324544E-02",
        degree=10,
    ),
    "Longley": Certified(
        columns=(
            "83.0 88.5 88.2 89.5 96.2 98.1 99.0 100.0 101.2 104.6 108.4 110.8 112.6 114.2 115.7 116.9",
            """234289 259426 258054 284599 328975 346999 365385 363112 397469 419180 442769 444546 482704 502601 518173
            554894""",
            "2356 2325 3682 3351 2099 1932 1870 3578 2904 2822 2936 4681 3813 3931 4806 4007",
            "1590 1456 1616 1650 3099 3594 3547 3350 3048 2857 2798 2637 2552 2514 2572 2827",
            """107608 108632 109773 110929 112075 113270 115094 116219 117388 118734 120445 121950 123366 125368 127852
            130081""",
            " ".join(map(str, range(1947, 1963))),
        ),
        y="60323 61122 60171 61187 63221 63639 64989 63761 66019 67857 68169 66513 68655 69564 69331 70551",
        coefficients="""-3482258.63459582 15.0618722713733 -0.358191792925910E-01 -2.02022980381683 -1.03322686717359
        -0.511041056535807E-01 1829.15146461355""",
        deviations="""890420.383607373 84.9149257747669 0.334910077722432E-01 0.488399681651699 0.214274163161675
        0.226073200069370 455.478499142212""",
        residual_deviation="304.854073561965",
    ),
    "Wampler1": Certified(
        columns=(UP_TO_20,),
        y="""1 6 63 364 1365 3906 9331 19608 37449 66430 111111 177156 271453 402234 579195 813616 1118481 1508598
        2000719 2613660 3368421""",
        coefficients=ONES,
        deviations=ZEROS,
        residual_deviation="0",
        degree=5,
    ),
    "Wampler2": Certified(
        columns=(UP_TO_20,),
        y="""1.00000 1.11111 1.24992 1.42753 1.65984 1.96875 2.38336 2.94117 3.68928 4.68559 6.00000 7.71561 9.92992
        12.75603 16.32384 20.78125 26.29536 33.05367 41.26528 51.16209 63.00000""",
        coefficients="1 0.1 0.01 0.001 0.0001 0.00001",
        deviations=ZEROS,
        residual_deviation="0",
        degree=5,
    ),
    "Wampler3": Certified(
        columns=(UP_TO_20,),
        y="""760 -2042 2111 -1684 3888 1858 11379 17560 39287 64382 113159 175108 273291 400186 581243 811568 1121004
        1506550 2002767 2611612 3369180""",
        coefficients=ONES,
        deviations="""2152.32624678170 2363.55173469681 779.343524331583 101.475507550350 5.64566512170752
        0.112324854679312""",
        residual_deviation="2360.14502379268",
        degree=5,
    ),
    "Wampler4": Certified(
        columns=(UP_TO_20,),
        y="""75901 -204794 204863 -204436 253665 -200894 214131 -185192 221249 -138370 315911 -27644 455253 197434
        783995 608816 1370781 1303798 2205519 2408860 3444321""",
        coefficients=ONES,
        deviations="""215232.624678170 236355.173469681 77934.3524331583 10147.5507550350 564.566512170752
        11.2324854679312""",
        residual_deviation="236014.502379268",
        degree=5,
    ),
    "Wampler5": Certified(
        columns=(UP_TO_20,),
        y="""7590001 -20479994 20480063 -20479636 25231365 -20476094 20489331 -20460392 18417449 -20413570 20591111
        -20302844 18651453 -20077766 21059195 -19666384 26348481 -18971402 22480719 -17866340 10958421""",
        coefficients=ONES,
        deviations="""21523262.4678170 23635517.3469681 7793435.24331583 1014755.07550350 56456.6512170752
        1123.24854679312""",
        residual_deviation="23601450.2379268",
        degree=5,
    ),
}


def root(value: Fraction) -> Decimal:
    """Return the square root to 40 digits."""
    with localcontext(prec=40):
        return (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()


def printed(value) -> Decimal:
    """Return a number rounded to the digits that are certified."""
    with localcontext(prec=CERTIFIED_DIGITS):
        return +(Decimal(value.numerator) / Decimal(value.denominator) if isinstance(value, Fraction) else value)


@pytest.mark.parametrize("name", SETS)
def test_data_and_certified_values_belong_together(name):
    """Exact arithmetic gives every digit that is certified."""
    one = SETS[name]
    coefficients, variances, noise = one.exact()
    assert [printed(value) for value in coefficients] == [printed(Decimal(text)) for text in one.coefficients.split()]
    assert [printed(root(value)) for value in variances] == [printed(Decimal(text)) for text in one.deviations.split()]
    assert printed(root(noise)) == printed(Decimal(one.residual_deviation))


def digits(values, certified) -> float:
    """Return the least number of right digits, −log₁₀ of the relative error (absolute where zero is certified)."""
    certified = np.array([float(text) for text in certified.split()])
    error = np.abs(np.ravel(values) - certified) / np.where(certified == 0, 1.0, np.abs(certified))
    return float(np.minimum(-np.log10(np.maximum(error, 1e-16)), CERTIFIED_DIGITS).min())


# Right digits of coefficients and of standard deviations, at least: rounded down from what was measured with two
# kernels of OpenBLAS. NumPy's lstsq on columns scaled to one is within one digit of it. The condition number of these
# columns is 7e9 for Filip, where rounding x² to x¹⁰ to doubles alone leaves 7.7 digits; y of Wampler5 is up to 2e7
# times the part of it that the coefficients explain.
LEAST_DIGITS = {
    "Norris": (11.5, 10),
    "Pontius": (11, 11.5),
    "NoInt1": (14, 14),
    "NoInt2": (14, 14),
    "Filip": (7, 6.5),
    "Longley": (10, 11),
    "Wampler1": (8.5, 15),
    "Wampler2": (12, 15),
    "Wampler3": (8.5, 12.5),
    "Wampler4": (6.5, 13),
    "Wampler5": (4.5, 13),
}
# Wampler1 and Wampler2 are fitted exactly, NoInt2 has three rows: the user is told.
TOLD = pytest.mark.filterwarnings(
    "ignore:y is constant .*or the columns always kept explain all of it",
    "ignore:After 1 term 2 degrees of freedom are left for the noise variance",
)


def all_kept(one):
    X, _ = one.arrays
    return ARD(always_keep=list(range(X.shape[1])), fit_intercept=one.intercept)


def assert_certified(model, name, less=0.0):
    one, (least, least_deviations) = SETS[name], np.subtract(LEAST_DIGITS[name], less)
    (equation,) = model.equations_
    constant, its_deviation = ([model.intercept_], [equation.intercept_std]) if one.intercept else ([], [])
    assert digits([*constant, *model.coef_], one.coefficients) >= least
    assert digits([*its_deviation, *model.coef_std_], one.deviations) >= least_deviations
    assert digits(np.sqrt(model.noise_variance_), one.residual_deviation) >= least_deviations


@TOLD
@pytest.mark.parametrize("name", SETS)
def test_columns_always_kept_have_the_coefficients_of_least_squares(name):
    X, y = SETS[name].arrays
    assert_certified(all_kept(SETS[name]).fit(X, y), name)


@TOLD
@pytest.mark.parametrize("name", SETS)
def test_a_stream_has_them_too(name):
    """To a digit less, since its triangles are merged one after another (Filip: 6.8 or 7.2 digits)."""
    one = SETS[name]
    X, y = one.arrays
    model = all_kept(one)
    for rows in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(X[rows], y[rows])
    assert_certified(model, name, less=1)


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.TinyNoiseWarning")  # Wampler1 and 2 have no noise
@pytest.mark.parametrize("name", ["Norris", "Pontius", "NoInt1", "Wampler1", "Wampler2"])
def test_the_refit_is_least_squares_where_ARD_keeps_all_columns(name):
    one, (least, least_deviations) = SETS[name], LEAST_DIGITS[name]
    X, y = one.arrays
    model = ARD(fit_intercept=one.intercept).fit(X, y)
    assert model.support_.all()
    refit, after = model.equations_[0].refit, slice(int(one.intercept), None)
    assert digits(refit.mean, " ".join(one.coefficients.split()[after])) >= least
    assert digits(refit.std, " ".join(one.deviations.split()[after])) >= min(least_deviations, least)
