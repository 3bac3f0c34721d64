"""Several experiments: the same terms, chosen together, with coefficients of their own; and blocks of columns."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import ardea
from ardea.core.problem import DenseColumns, Problem
from ardea.core.subsets import backward_path, moves, neighbours, select, small_models
from ardea.core.subsets import model as subset
from ardea.dynamics import Discovery, KnowledgeWarning, Polynomials, Saturation
from ardea.dynamics.course import price_of

RNG = np.random.default_rng
RATES = (0.6, 0.8, 1.1)


def prey(rate, seed, n=60):
    """x' = rate x − x y, y' = −y + 0.5 x y."""
    t = np.linspace(0, 8, n)
    x = solve_ivp(
        lambda _, y: [rate * y[0] - y[0] * y[1], -y[1] + 0.5 * y[0] * y[1]], (0, 8), [2.0, 0.4], t_eval=t, rtol=1e-9
    ).y.T
    return t, x + 0.02 * RNG(seed).normal(size=x.shape)


def fitted(**told):
    t, x = zip(*(prey(rate, seed) for seed, rate in enumerate(RATES)), strict=True)
    return Discovery(Polynomials(2), **told).fit(list(x), list(t), feature_names=["x", "y"])


@pytest.fixture(scope="module")
def varying():
    return fitted(shared="structure")


# Blocks


NONE = np.empty(0, dtype=np.intp)


def blocks(seed, widths, m=60):
    """A problem whose columns come in blocks, each of price 3, and the columns of every block."""
    rng = RNG(seed)
    A, y, first = rng.normal(size=(m, sum(widths))), rng.normal(size=m), np.cumsum(widths) - widths
    problem = Problem(DenseColumns(A), y, 0.5, float(m), price=np.repeat(3.0 / np.array(widths), widths))
    members = [tuple(range(start, start + width)) for start, width in zip(first, widths, strict=True)]
    return replace(problem, owners=np.repeat(first, widths)), members


def test_blocks_of_one_column_are_columns():
    of, _ = blocks(0, [1] * 8)
    columns = replace(of, owners=None, price=3.0)
    mine = subset(of, [1, 4])
    assert mine == subset(columns, [1, 4])
    expected = {one.support: one.criterion for one in neighbours(columns, mine)}
    assert {one.support: one.criterion for one in neighbours(of, mine)} == pytest.approx(expected)
    assert small_models(of, np.arange(8), NONE, 1) == small_models(columns, np.arange(8), NONE, 1)
    path = [(one.support, pytest.approx(one.rss)) for one in backward_path(columns, range(8))]
    assert [(one.support, one.rss) for one in backward_path(of, range(8))] == path


def test_blocks_of_any_size_against_least_squares():
    of, members = blocks(1, [1, 3, 2, 3, 1])
    A, y = of.columns.matrix, of.target
    for chosen in [(), (0,), (1, 3), (0, 2, 4)]:
        columns = [j for b in chosen for j in members[b]]
        left = y - A[:, columns] @ np.linalg.lstsq(A[:, columns], y, rcond=None)[0] if chosen else y
        one = subset(of, columns)
        assert one.rss == pytest.approx(left @ left + 0.5)
        assert one.criterion == pytest.approx(60 * np.log(one.rss / 60) + 3 * len(chosen))
    every = [subset(of, [*members[a], *(members[b] if b > a else ())]) for a in range(5) for b in range(a, 5)]
    best = min(every, key=lambda one: one.criterion)
    assert min(small_models(of, np.arange(10), NONE, 5), key=lambda one: one.criterion).criterion <= best.criterion
    assert best in small_models(of, np.arange(10), NONE, 25)
    found = select(of, [])
    assert found[0].criterion <= best.criterion


def test_moves_of_blocks_are_differences_of_least_squares():
    of, members = blocks(2, [2, 1, 3, 2])
    support = (*members[0], *members[1])
    change, rss = moves(of, support), subset(of, support).rss
    for b in (2, 3):
        assert change.additions[members[b][0]] == pytest.approx(subset(of, [*support, *members[b]]).rss - rss)
        for place, rest in ((0, members[1]), (2, members[0])):
            exchanged = subset(of, [*rest, *members[b]]).rss - rss
            assert change.exchanges[place, members[b][0]] == pytest.approx(exchanged)
    assert change.removals[[0, 2]] == pytest.approx([subset(of, members[b]).rss - rss for b in (1, 0)])
    assert not np.isfinite(change.additions[[0, 1, 2, 4, 5, 7]]).any()  # of blocks that are there, and of their rest
    path = backward_path(of, range(8))
    assert [one.rss for one in path] == pytest.approx([subset(of, one.support).rss for one in path])
    first = [subset(of, [j for own in members if own != out for j in own]).rss for out in members]
    assert path[1].rss == pytest.approx(min(first))


@pytest.mark.parametrize("together", [1, 2, 5])
def test_price_of_several_coefficients_is_a_quantile(together):
    price = price_of(0.1, 10, 1e9, together)
    assert stats.chi2(together).sf(price) == pytest.approx(0.01, rel=1e-4)


# Fits


def test_terms_are_the_same_and_coefficients_are_not(varying):
    for rate, one in zip(RATES, varying.experiments_, strict=True):
        assert [set(equation.terms) for equation in one.equations_] == [{"x", "x y"}, {"y", "x y"}]
        low, high = one.equations_[0].interval(0.9999)[one.equations_[0].terms.index("x")]
        assert low < rate < high
    assert varying.coefficients(trajectory=2)[0, 1] == varying.experiments_[2].coef_[0, 1]
    np.testing.assert_array_equal(varying.coefficients(), varying.coefficients(trajectory=0))


def test_a_fit_of_each_alone_has_the_same_coefficients(varying):
    """With the noise told, trajectories whose terms are known do not act on each other."""
    t, x = prey(RATES[1], 1)
    told = {"noise_std": 0.02, "noise": "additive", "library": Polynomials(2)}
    known = {"x": {"x": None, "x y": None}, "y": {"y": None, "x y": None}}
    together = Discovery(**told, known=known, shared="structure").fit(
        [prey(RATES[0], 0)[1], x], [t, t], feature_names=["x", "y"]
    )
    alone = Discovery(**told, known=known).fit(x, t, feature_names=["x", "y"])
    np.testing.assert_allclose(together.coefficients(trajectory=1), alone.coef_, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(together.experiments_[1].coef_std_, alone.coef_std_, rtol=1e-2, atol=1e-9)


def test_common_coefficients_are_equal_to_rounding():
    model = fitted(shared={"y": ["y", "x y"], "x": ["x y"]})
    values = np.array([one.coef_ for one in model.experiments_])
    assert np.ptp(values[:, 1], axis=0).max() < 1e-12
    assert np.ptp(values[:, 0, 4]) < 1e-12
    assert np.ptp(values[:, 0, 1]) > 0.3
    spread = [one.coef_std_[1, 2] for one in model.experiments_]
    np.testing.assert_allclose(spread, spread[0])


def test_what_is_not_common_is_refuted():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(shared={"x": ["x"]})
    (refuted,) = (one for one in caught if one.category is KnowledgeWarning)
    assert "The data refute shared={'x': ['x']}" in str(refuted.message)


def test_laws_hold_in_every_experiment():
    model = fitted(shared="structure", constraints=["x: x y + 2 y: x y = 0"])
    for one in model.experiments_:
        assert one.coef_[0, 4] == -2 * one.coef_[1, 4] != 0
        draws = one.sample(4, 0)
        np.testing.assert_allclose(draws[:, 0, 4], -2 * draws[:, 1, 4], rtol=1e-15)


def test_every_experiment_is_a_model(varying, tmp_path, capsys):
    one = varying.experiments_[2]
    ardea.save(one, tmp_path / "one.ardea")
    again = ardea.load(tmp_path / "one.ardea")
    t = np.linspace(0, 4, 9)
    np.testing.assert_array_equal(again.simulate([2.0, 0.4], t), one.simulate([2.0, 0.4], t))
    assert one.simulate(t=t, n_samples=5, random_state=0).samples.shape == (5, 9, 2)
    assert len(one.residuals()[0]) == 60
    with pytest.raises(ardea.saving.ModelFileError, match="experiments_"):
        ardea.save(varying, tmp_path / "all.ardea")
    varying.print()
    assert capsys.readouterr().out.count("(x)'") == len(RATES)
    assert "The first of 3 trajectories" in varying.unit_told()
    with pytest.raises(ValueError, match="experiments_"):
        varying.score([prey(0.8, 0)[1]] * 3, prey(0.8, 0)[0])


def test_table_and_picture_of_the_variation(varying):
    frame = varying.variation(covariate=RATES)
    own = frame[(frame["equation"] == "x") & (frame["term"] == "x")]
    assert own["covariate"].tolist() == list(RATES)
    assert np.all(np.diff(own["coef"]) > 0)
    axes = varying.plot_variation(RATES)
    assert axes.flat[0].get_xlabel() == "covariate"
    with pytest.raises(ValueError, match="one value for each of the 3"):
        varying.variation(covariate=[1, 2])


# Constants inside terms

RATIO = "S/(K + S)"


def doses(halves=(0.7, 0.7, 0.7), seed=0):
    """S' = −v S/(K + S) for three v."""
    t, rng, out = np.linspace(0, 6, 60), RNG(seed), []
    for v, start, K in zip((0.8, 1.5, 2.4), (5.0, 3.0, 4.0), halves, strict=True):
        run = solve_ivp(lambda _, s, v=v, K=K: -v * s / (K + s), (0, 6), [start], t_eval=t, rtol=1e-9, atol=1e-12)
        out.append(run.y.T + 0.03 * rng.normal(size=(60, 1)))
    return out, [t] * 3


def test_experiments_have_constants_of_their_own(tmp_path):
    model = Discovery(Polynomials(2) + Saturation(), shared="structure").fit(
        *doses((0.3, 0.7, 1.5)), feature_names=["S"]
    )
    for one, v, K in zip(model.experiments_, (0.8, 1.5, 2.4), (0.3, 0.7, 1.5), strict=True):
        (equation,) = one.equations_
        assert equation.terms == (RATIO,)
        assert (-v - equation.coefficients[0]) / equation.std[0] == pytest.approx(0, abs=3.5)
        assert (K - equation.constants["K"].value) / equation.constants["K"].std == pytest.approx(0, abs=3.5)
        ardea.save(one, tmp_path / "one.ardea")
        again, t = ardea.load(tmp_path / "one.ardea"), np.linspace(0, 3, 7)
        np.testing.assert_array_equal(again.simulate([2.0], t), one.simulate([2.0], t))
    frame = model.variation()
    assert sorted(set(frame["term"])) == [f"K of {RATIO}", RATIO]
    assert len(frame) == 6


def test_constants_alone_and_together_are_the_same():
    """With the noise told, trajectories whose terms are known do not act on each other."""
    told = {"noise_std": 0.03, "noise": "additive", "known": {"S": {RATIO: None}}}
    x, t = doses((0.3, 0.7, 1.5))
    together = Discovery(Saturation(), **told, shared="structure").fit(x, t, feature_names=["S"])
    for own, series in zip(together.experiments_, x, strict=True):
        alone = Discovery(Saturation(), **told).fit(series, t[0], feature_names=["S"])
        mine, other = own.equations_[0], alone.equations_[0]
        np.testing.assert_allclose(mine.parameters.mean, other.parameters.mean, rtol=1e-3)
        np.testing.assert_allclose(mine.parameters.std, other.parameters.std, rtol=1e-2)


def test_a_common_constant_is_one_and_better_known():
    x, t = doses()
    common = {"S": [f"K of {RATIO}"]}
    own, one = (
        Discovery(Polynomials(2) + Saturation(), shared=shared).fit(x, t, feature_names=["S"])
        for shared in ("structure", common)
    )
    constants = [experiment.equations_[0].constants["K"] for experiment in one.experiments_]
    assert np.ptp([constant.value for constant in constants]) < 1e-12
    assert constants[0].value == pytest.approx(0.7, abs=3.5 * constants[0].std)
    stds = [experiment.equations_[0].constants["K"].std for experiment in own.experiments_]
    # Of independent estimates the mean with the least variance has Σ 1/sᵢ², and common rates of noise add little.
    assert constants[0].std == pytest.approx(np.sum(1 / np.square(stds)) ** -0.5, rel=0.1)


def test_a_constant_that_is_not_common_is_refuted():
    library, common = Polynomials(1) + Saturation(powers=(1,)), {"S": [f"K of {RATIO}"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Discovery(library, shared=common).fit(*doses((0.3, 0.7, 1.5)), feature_names=["S"])
    (refuted,) = (one for one in caught if one.category is KnowledgeWarning)
    assert str(refuted.message).startswith(f"The data refute shared={common}")


def test_what_cannot_be_shared_is_refused():
    t, x = prey(0.8, 0)
    with pytest.raises(ValueError, match="several trajectories"):
        Discovery(shared="structure").fit(x, t)
    with pytest.raises(ValueError, match="shared='all' is not known"):
        Discovery(shared="all").fit([x, x], [t, t])
    with pytest.raises(ValueError, match="Did you mean 'x y'"):
        Discovery(shared={"x": ["y x"]}).fit([x, x], [t, t], feature_names=["x", "y"])
    with pytest.raises(ValueError, match="shared='structure'"):
        Discovery().fit(x, t).variation()
