"""Sets of few terms with constants inside: what they lower RSS by, and models that neighbours alone do not lead to."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ardea.core.problem import DenseColumns, Problem
from ardea.dynamics import Decay, Discovery, KnowledgeWarning, Parametric, Polynomials, Saturation
from ardea.dynamics.few import Sets, Values, finer


def decays(rates):
    return np.exp(-np.outer(rates, np.linspace(0, 3, 40)))


def alike(columns, exact):
    """Return the cosine of the angle between columns and those of the term itself."""
    return np.sum(columns * exact, axis=1) / np.linalg.norm(columns, axis=1) / np.linalg.norm(exact, axis=1)


def test_columns_between_those_of_a_grid_are_those_of_the_term_there():
    rates = np.geomspace(0.1, 10, 8)
    columns, constants = finer(decays(rates)[:, :, None], rates[:, None], [8])
    exact = decays(constants[:, 0])
    assert len(columns) > 3 * len(rates)
    assert alike(columns[:, :, 0], exact).min() > 0.999


def test_of_two_constants_all_pairs_of_values_are_met():
    one, other = np.geomspace(0.1, 10, 5), np.linspace(1, 2, 4)
    grid = np.array(list(product(one, other)))
    columns, constants = finer(decays(grid[:, 0] * grid[:, 1])[:, :, None], grid, [5, 4])
    exact = decays(constants[:, 0] * constants[:, 1])
    assert len(columns) > 2 * len(grid)
    assert alike(columns[:, :, 0], exact).min() > 0.99


def test_an_incomplete_grid_stays_as_it_is():
    rates = np.geomspace(0.1, 10, 7)
    columns, constants = finer(decays(rates)[:, :, None], rates[:, None], [8])
    np.testing.assert_array_equal(columns[:, :, 0], decays(rates))
    np.testing.assert_array_equal(constants[:, 0], rates)


@pytest.mark.parametrize("wide", [1, 2])
def test_sets_gain_what_least_squares_do_and_no_pair_of_columns_gains_more(wide):
    rng = np.random.default_rng(wide)
    terms = [
        Values(rng.normal(size=(number, 30, wide)), np.empty((number, 0)), cost, None, None)
        for number, cost in ((1, 3.0), (4, 6.0), (5, 6.0), (1, 3.0))
    ]
    target = terms[1].columns[2].sum(axis=1) + terms[3].columns[0].sum(axis=1) + 0.1 * rng.normal(size=30)
    sets = Sets.of(Problem(DenseColumns(np.eye(30)), target, 0.0, 30.0), terms)
    judged = {frozenset(chosen): (score, numbers) for score, chosen, numbers in sets.few()}
    assert {frozenset(one) for size in (1, 2, 3) for one in combinations(range(4), size)} == set(judged)

    def rss(columns):
        return float(np.sum((target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]) ** 2))

    for own in combinations(range(4), 2):
        score, numbers = judged[frozenset(own)]
        every = [rss(np.hstack(pair)) for pair in product(terms[own[0]].columns, terms[own[1]].columns)]
        met = rss(np.hstack([np.concatenate([one.columns for one in terms])[number] for number in numbers]))
        np.testing.assert_allclose(met, min(every), rtol=1e-6)
        np.testing.assert_allclose(score, 30 * np.log(met / 30) + sum(terms[j].cost for j in own), rtol=1e-6)
    assert min(judged, key=lambda one: judged[one][0]) == {1, 3}


def noisy(slope, starts, t, noise, seed):
    clean = [solve_ivp(slope, (0, t[-1]), start, t_eval=t, rtol=1e-10, atol=1e-12).y.T for start in starts]
    size, rng = np.vstack(clean).std(axis=0), np.random.default_rng(seed)
    return [x + noise * size * rng.normal(size=x.shape) for x in clean], [t] * len(starts)


def test_a_gene_that_activates_itself_is_found_next_to_sums_of_fractions_that_look_alike():
    x, t = noisy(
        lambda _, x: 0.1 + 2 * x**2 / (1 + x**2) - 0.8 * x,
        [[0.01], [0.4], [4.0], [1.0]],
        np.linspace(0, 14, 70),
        0.02,
        4011,
    )
    (equation,) = Discovery(Polynomials(3) + Saturation()).fit(x, t, feature_names=["x"]).equations_
    assert set(equation.terms) in ({"1", "x", "x^2/(K^2 + x^2)"}, {"1", "x", "1/(K^2 + x^2)"})
    assert abs(equation.constants["K"].value - 1) < 0.1


def test_one_hill_term_is_found_where_a_difference_of_two_fits_roughly():
    def slope(_, y):
        eaten = y[0] ** 2 * y[1] / (4 + y[0] ** 2)
        return [y[0] - 0.1 * y[0] ** 2 - 1.5 * eaten, 0.75 * eaten - 0.4 * y[1]]

    x, t = noisy(slope, [[5, 1], [1.0, 2.5]], np.linspace(0, 25, 150), 0.02, 4015)
    prey, predator = Discovery(Polynomials(2) + Saturation()).fit(x, t, feature_names=["x", "y"]).equations_
    assert set(prey.terms) == {"x", "x^2", "x^2 y/(K^2 + x^2)"}
    assert set(predator.terms) == {"y", "x^2 y/(K^2 + x^2)"}


def test_products_with_rates_of_arrhenius_are_found():
    def slope(_, y):
        rate = 20 * y[0] * np.exp(-4 / y[1])
        return [0.5 * (1 - y[0]) - rate, 0.5 * (1 - y[1]) + 1.5 * rate]

    x, t = noisy(slope, [[1, 0.6], [0.2, 2.0], [0.7, 1.4]], np.linspace(0, 10, 80), 0.01, 11)
    rate = Parametric(lambda c, T, E: c * np.exp(-E / T), "{0} exp(-E/{1})", E=(0.4, 12))
    c, temperature = Discovery(Polynomials(2) + rate).fit(x, t, feature_names=["c", "T"]).equations_
    assert set(c.terms) == {"1", "c", "c exp(-E/T)"}
    assert set(temperature.terms) == {"1", "T", "c exp(-E/T)"}


def test_a_constant_that_is_not_common_is_told_where_the_same_curve_is_found_in_other_words():
    t, rng = np.linspace(0, 5, 50), np.random.default_rng(0)
    x = [
        solve_ivp(lambda _, y, K=K: -1.5 * y / (K + y), (0, 5), [4.0], t_eval=t, rtol=1e-9).y.T
        + 0.03 * rng.normal(size=(50, 1))
        for K in (0.3, 0.7, 1.5)
    ]
    shared = {"S": ["S/(K + S)", "K of S/(K + S)"]}
    with pytest.warns(KnowledgeWarning, match="K of S"):
        Discovery(Polynomials(2) + Saturation(), shared=shared).fit(x, [t] * 3, feature_names=["S"])


def test_under_a_law_terms_of_one_equation_are_exchanged_next_to_those_of_the_other():
    """A feed 2.4 − 0.3 S has looked like a parabola and a fraction, and the right law then like a wrong one."""

    def slope(_, y):
        eaten = y[0] * y[1] / (1.5 + y[0])
        return [0.3 * (8 - y[0]) - 1.8 * eaten, 0.9 * eaten - 0.3 * y[1]]

    x, t = noisy(slope, [[8, 0.2], [2, 2.0], [6, 4]], np.linspace(0, 14, 80), 0.02, 3020)
    eaten = "S X/(K + S)"
    laws = [f"S: K of {eaten} - X: K of {eaten} = 0", f"S: {eaten} + 2 X: {eaten} = 0"]
    model = Discovery(Polynomials(2) + Saturation(powers=(1,)), constraints=laws).fit(x, t, feature_names=["S", "X"])
    assert [set(one.terms) for one in model.equations_] == [{"1", "S", eaten}, {"X", eaten}]


@pytest.mark.parametrize("seed", [8, 9])
def test_steps_that_lead_far_from_the_data_overflow_without_a_word(seed):
    """Warnings are errors here."""
    t, rng = np.linspace(0, 10, 80), np.random.default_rng(seed)
    x = [
        solve_ivp(
            lambda _, y: [2 * np.exp(-1.3 * y[1]) - 0.5 * y[0], 0.7 * y[0] - 0.6 * y[1]],
            (0, 10),
            start,
            t_eval=t,
            rtol=1e-9,
        ).y.T
        + 0.01 * rng.normal(size=(80, 2))
        for start in ([0.1, 0.1], [3, 0], [0, 3.0])
    ]
    library = {"x": Polynomials(2) + Decay(), "m": Polynomials(2)}
    model = Discovery(library).fit(x, [t] * 3, feature_names=["x", "m"])
    assert [set(one.terms) for one in model.equations_] == [{"x", "exp(-k m)"}, {"x", "m"}]
