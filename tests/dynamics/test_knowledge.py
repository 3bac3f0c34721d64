"""What is known of coefficients: read, refused where it clashes, obeyed to rounding, and doubted by the data."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import ardea
from ardea.core.problem import posed
from ardea.core.subsets import model as subset
from ardea.dynamics import Custom, Discovery, Fourier, KnowledgeWarning, Polynomials, systems
from ardea.dynamics.knowledge import Knowledge, Law
from ardea.dynamics.told import hardly_told
from ardea.dynamics.trajectory import SETTLED

RNG = np.random.default_rng
CONSERVED = "S: * + I: * + R: * = 0"


def epidemic(seed, noise=0.01, rate=0.25):
    """S + I + R stays what it is."""
    t = np.linspace(0, 25, 80)

    def slope(_, y):
        return [-0.8 * y[0] * y[1], 0.8 * y[0] * y[1] - rate * y[1], rate * y[1]]

    x = solve_ivp(slope, (0, 25), [0.97, 0.03, 0.0], t_eval=t, rtol=1e-10, atol=1e-12).y.T
    return t, x + noise * RNG(seed).normal(size=x.shape)


def found(seed=0, noise=0.01, **told):
    t, x = epidemic(seed, noise)
    return Discovery(Polynomials(2), **told).fit(x, t, feature_names=["S", "I", "R"])


@pytest.fixture(scope="module")
def conserving():
    return found(constraints=[CONSERVED], known={"R": {"I": None}})


def random_knowledge(rng, rows, n=2, d=5):
    """Sparse equations, some of them with numbers."""
    laws = []
    for number in range(rows):
        chosen = rng.choice(n * d, size=rng.integers(1, 4), replace=False).tolist()
        factors = rng.choice([-2.0, -1.0, 1.0, 0.5], size=len(chosen)).tolist()
        laws.append(Law(str(number), tuple(zip(chosen, factors, strict=True)), float(rng.integers(0, 2))))
    return Knowledge(n, d, np.ones(n * d, dtype=bool), tuple(laws))


def dense(knowledge):
    C = np.zeros((len(knowledge.laws), knowledge.n * knowledge.d))
    for row, law in zip(C, knowledge.laws, strict=True):
        for candidate, factor in law.parts:
            row[candidate] += factor
    return C, np.array([law.value for law in knowledge.laws])


# Algebra


@pytest.mark.parametrize("seed", range(20))
def test_what_is_free_is_the_null_space_of_the_laws(seed):
    knowledge = random_knowledge(rng := RNG(seed), rows=4)
    everything = knowledge.candidates
    tied, (C, c) = knowledge.tied(everything), dense(knowledge)
    if np.linalg.matrix_rank(C) < len(C):
        return
    assert tied.directions.shape[1] == len(everything) - np.linalg.matrix_rank(C) == knowledge.n_free(everything)
    np.testing.assert_allclose(C @ tied.directions, 0, atol=1e-12)
    np.testing.assert_allclose(C @ tied.offset, c, atol=1e-12)
    w = knowledge.obeying(rng.normal(size=(2, 5)), everything)
    np.testing.assert_allclose(C @ w.ravel(), c, atol=1e-12)
    np.testing.assert_array_equal(knowledge.obeying(w, everything), w)


@pytest.mark.parametrize("seed", range(20))
def test_moves_are_the_smallest_sets_with_a_free_parameter_and_span_all(seed):
    knowledge = random_knowledge(RNG(seed), rows=3)
    knowledge = Knowledge(2, 5, knowledge.allowed, tuple(Law(one.text, one.parts) for one in knowledge.laws))
    C, _ = dense(knowledge)
    moves, rows = knowledge.moves(knowledge.candidates), []
    for move, way in moves:
        assert np.linalg.matrix_rank(C[:, move]) == len(move) - 1
        assert np.all(way != 0)
        row = np.zeros(10)
        row[list(move)] = way
        np.testing.assert_allclose(C @ row, 0, atol=1e-12)
        rows.append(row)
    assert np.linalg.matrix_rank(np.array(rows)) == 10 - np.linalg.matrix_rank(C)


def test_regression_is_constrained_least_squares():
    """[2S Cᵀ; C 0][w λ] = [2b c] has the same solution, and S⁻¹ within its null space is the inverse's first block."""
    t, x = epidemic(0)
    told = {"constraints": ["S: S I + I: S I = 0", "S: I + I: I + R: I = 0"], "known": {"R": {"I": 0.25}}}
    found = Discovery(Polynomials(2), **told).fit(x, t, feature_names=["S", "I", "R"]).searched_
    of, linear, support = found.likelihood, found.linear, found.fit.support
    chosen = list(support)
    C, c = dense(of.knowledge)
    rows = np.any(C[:, chosen] != 0, axis=1)
    C, c = C[rows][:, chosen], c[rows]
    A, p, _ = linear.information(support)
    k, r = len(chosen), len(C)
    system = np.block([[A.T @ A, C.T], [C, np.zeros((r, r))]])
    w = linear.point.coefficients.ravel()[chosen]
    solution = np.linalg.solve(system, np.concatenate([A.T @ (A @ w - p), c]))[:k]
    # A descent ends where J is within SETTLED of its least value, so that ξ is within √SETTLED standard deviations.
    assert np.all(np.abs(w - solution) <= np.sqrt(SETTLED * found.covariance.diagonal()) + 1e-12)
    values = found.pursuit.posed(linear).coefficients(support).ravel()[chosen]
    np.testing.assert_allclose(values, solution, rtol=1e-8)
    block = np.linalg.inv(system)[:k, :k]
    bias = found.covariance - block
    np.testing.assert_allclose(found.covariance, block, atol=0.05 * block.max())
    assert np.linalg.eigvalsh(bias).min() > -1e-8 * block.max()  # the error of the steps only adds


def test_columns_of_a_support_have_its_free_parameters():
    rng, knowledge = RNG(3), random_knowledge(RNG(4), rows=2)
    knowledge = Knowledge(2, 5, knowledge.allowed, tuple(Law(one.text, one.parts) for one in knowledge.laws))
    problem, unit = posed(rng.normal(size=(40, 10)), rng.normal(size=40))
    posed_columns = knowledge.posed(problem, unit, knowledge.candidates)
    columns = posed_columns.own(knowledge.candidates)
    assert len(columns) == knowledge.n_free(knowledge.candidates)
    A, y = problem.columns.take(np.arange(10)) / unit, problem.target
    directions = knowledge.tied(knowledge.candidates).directions
    expected = np.sum((y - A @ directions @ np.linalg.lstsq(A @ directions, y, rcond=None)[0]) ** 2) + problem.rest
    assert subset(posed_columns.problem, columns).rss == pytest.approx(expected)


# Fits


def test_a_conserved_sum_stays_constant_to_rounding(conserving):
    t = np.linspace(0, 60, 121)
    assert np.ptp(conserving.simulate([0.9, 0.1, 0.0], t).sum(axis=1)) < 1e-12
    bands = conserving.simulate([0.9, 0.1, 0.0], t, n_samples=40, random_state=0)
    assert np.max(np.ptp(bands.samples.sum(axis=2), axis=1)) < 1e-12
    assert bands.upper[-1, 0] - bands.lower[-1, 0] > 1e-4
    np.testing.assert_allclose(conserving.coef_.sum(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(conserving.sample(5, 0).sum(axis=1), 0, atol=1e-15)
    assert [set(one.terms) for one in conserving.equations_] == [{"S I"}, {"I", "S I"}, {"I"}]


def test_what_is_told_makes_intervals_shorter(conserving):
    free = found()
    assert conserving.coef_std_[0].max() < free.coef_std_[0].max()
    np.testing.assert_allclose(conserving.coef_std_[0, 5], conserving.coef_std_[1, 5])


def test_a_saved_model_obeys_the_same_laws(conserving, tmp_path):
    ardea.save(conserving, tmp_path / "model.ardea")
    again = ardea.load(tmp_path / "model.ardea")
    np.testing.assert_array_equal(again.coef_, conserving.coef_)
    np.testing.assert_array_equal(again.sample(3, 1), conserving.sample(3, 1))
    assert again.get_params()["constraints"] == [CONSERVED]


def test_known_coefficients_are_exact_and_have_no_error():
    model = found(known={"R": {"I": 0.25}, "S": {"1": 0.0}})
    table = model.equations_[2].table()
    assert (table["term"], table["coef"], table["std"]) == (["I"], [0.25], [0.0])
    np.testing.assert_array_equal(model.sample(4, 0)[:, 2, 2], 0.25)
    assert "0.25 I" in model.equations()[2]


def test_a_term_that_is_always_kept_is_there_without_evidence():
    model = found(known={"S": {"R": None}})
    low, high = model.equations_[0].interval()[model.equations_[0].terms.index("R")]
    assert low < 0 < high


def test_signs_cut_intervals_and_draws():
    told = {"noise": 0.02, "known": {"S": {"R": None}}}
    value = found(**told).coef_[0, 3]
    right, wrong = ("S: R < 0", "S: R > 0") if value < 0 else ("S: R > 0", "S: R < 0")
    signed = found(**told, constraints=[right, "S: S I < 0"])
    assert signed.coef_[0, 3] == pytest.approx(value, rel=1e-3)
    ends = signed.equations_[0].interval()[signed.equations_[0].terms.index("R")]
    assert 0.0 in ends
    draws = signed.sample(200, 0)
    assert np.all(draws[:, 0, 3] * value > 0)
    assert np.all(draws[:, 0, 5] < 0)
    other = found(**told, constraints=[wrong])
    assert [set(one.terms) for one in other.equations_] == [{"S I"}, {"I", "S I"}, {"I"}]


@pytest.mark.parametrize("told", [
    {"known": {"R": {"I": 0.35}}},
    {"constraints": ["S: S I + I: S I = 0.2"]},
    {"constraints": ["R: I < 0"]},
])  # fmt: skip
def test_wrong_knowledge_is_refuted(told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", KnowledgeWarning)
        with pytest.raises(KnowledgeWarning, match=r"The data refute (constraint|known)"):
            found(**told)


@pytest.mark.parametrize("seed", [1, 2])
def test_right_knowledge_is_not(seed):
    told = {"constraints": ["S: S I + I: S I = 0", "S: S I < 0"], "known": {"R": {"I": 0.25}}}
    with warnings.catch_warnings():
        warnings.simplefilter("error", KnowledgeWarning)
        found(seed, **told)


def test_every_state_has_its_library():
    t, x = epidemic(0)
    products = Custom([lambda a, b: a * b], ["{} {}"])
    model = Discovery({"S": products, "I": Polynomials(2), "R": Polynomials(1)}).fit(
        x, t, feature_names=["S", "I", "R"]
    )
    assert [set(one.terms) for one in model.equations_] == [{"S I"}, {"I", "S I"}, {"I"}]
    names = model.get_feature_names()
    inclusion = model.inclusion(3, 0)
    assert not inclusion[2, [names.index(name) for name in ("S I", "I R", "I^2")]].any()
    with pytest.raises(ValueError, match="no state 'Q'"):
        Discovery({"Q": products}).fit(x, t, feature_names=["S", "I", "R"])


def test_positions_and_maps_are_told_alike():
    t = np.linspace(0, 12, 240)
    swing = solve_ivp(lambda _, y: [y[1], -2 * np.sin(y[0])], (0, 12), [2.0, 0.0], t_eval=t, rtol=1e-9).y[:1].T
    library = Polynomials(3) + Fourier(1)
    model = Discovery(library, derivative_order=2, known={"x": {"sin(x)": -2.0}}).fit(
        swing + 0.01 * RNG(0).normal(size=swing.shape), t, feature_names=["x"]
    )
    assert model.equations_[0].terms == ("sin(x)",)
    _, x = systems.henon_map().noisy(0.01, seed=0)
    names = ["x", "y"]
    model = Discovery(Polynomials(2), discrete_time=True, constraints=["x: 1 + y: y = 1"]).fit(x, feature_names=names)
    terms = model.get_feature_names()
    assert model.coef_[0, terms.index("1")] + model.coef_[1, terms.index("y")] == pytest.approx(1, abs=1e-15)


# Words


@pytest.mark.parametrize(("told", "match"), [
    ({"known": {"Q": {"I": 1.0}}}, "no state 'Q'. There are 'S', 'I', 'R'"),
    ({"known": {"S": {"I S": 1.0}}}, "no term 'I S' in the library. Did you mean 'S I'"),
    ({"known": {"S": {"I": np.nan}}}, "finite number"),
    ({"known": {"S": 1.0}}, "dict of dicts"),
    ({"constraints": "S: I = 0"}, "list of texts"),
    ({"constraints": ["S: I"]}, "no =, < or >"),
    ({"constraints": ["S = 0"]}, "named by its equation and its term"),
    ({"constraints": ["S: I = I: I"]}, "right side must be a number"),
    ({"constraints": ["S: I R: I = 0"]}, r"put \+ or − between"),
    ({"constraints": ["S: I < 2"]}, "a sign is that of one coefficient"),
    ({"constraints": ["S: * + I: I = 0"]}, "for all terms, or none"),
    ({"constraints": ["S: I - S: I = 0"]}, "cancel"),
    ({"constraints": ["S: I = 1", "S: I = 2"]}, "contradicts constraint 'S: I = 1'"),
    ({"constraints": ["S: I + R: I = 0", "2 S: I + 2 R: I = 0"]}, "already follows from constraint 'S: I"),
    ({"constraints": [CONSERVED, "S: R + I: R + R: R = 1"]}, "contradicts constraint 'S: .*, of R"),
    ({"constraints": ["S: I = 1", "R: I - S: I = 0", "R: I = 1"]}, "follows from constraint 'S: I = 1' and .*'R: I"),
    ({"constraints": ["S: I < 0", "S: I > 0"]}, "contradicts constraint 'S: I < 0'"),
    ({"constraints": ["S: I < 0", "S: I < 0"]}, "repeats"),
    ({"constraints": ["S: I + R: I = 0", "S: I < 0", "R: I < 0"]}, "leave nothing but zero"),
    ({"known": {"S": {"I": 1e-12}}, "constraints": ["S: I < 0"]}, "leave nothing but zero"),
    ({"constraints": ["S: I < 0"], "form": "weak"}, "trajectory form"),
])  # fmt: skip
def test_what_cannot_be_is_refused_by_name(told, match):
    t, x = epidemic(0)
    with pytest.raises((ValueError, TypeError), match=match):
        Discovery(Polynomials(2), **told).fit(x, t, feature_names=["S", "I", "R"])


def test_factors_and_signs_of_laws():
    t, x = epidemic(0)
    laws = ["2 S: S I + 2*I: S I = 0", "-R: I < 0", "R: I + 0.5 S: S I - I: 1 = -0.15"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = Discovery(Polynomials(2), constraints=laws).fit(x, t, feature_names=["S", "I", "R"])
    names = model.get_feature_names()
    value = {f"{state}: {term}": model.coef_[i, names.index(term)] for i, state in enumerate("SIR") for term in names}
    assert value["S: S I"] + value["I: S I"] == 0
    assert value["R: I"] > 0
    assert value["R: I"] + 0.5 * value["S: S I"] - value["I: 1"] == pytest.approx(-0.15, abs=1e-15)


def test_a_wrong_sign_does_not_make_a_right_statement_look_wrong():
    """Prey that only grow differ from culture to culture; what is common to them is common still."""
    t, rng = np.linspace(0, 8, 60), RNG(51)
    x = []
    for rate in (0.6, 0.9, 1.2, 1.5):

        def slope(_, y, rate=rate):
            return [rate * y[0] - y[0] * y[1], 0.5 * y[0] * y[1] - 0.9 * y[1]]

        x.append(solve_ivp(slope, (0, 8), [2.0, 0.5], t_eval=t, rtol=1e-10).y.T)
    size = np.vstack(x).std(axis=0)
    x = [one + 0.01 * size * rng.normal(size=one.shape) for one in x]
    told = {"shared": {"x": ["x y"], "y": ["y", "x y"]}, "constraints": ["x: x y > 0"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Discovery(Polynomials(2), **told).fit(x, [t] * 4, feature_names=["x", "y"])
    (refuted,) = [str(one.message) for one in caught if one.category is KnowledgeWarning]
    assert "x: x y > 0" in refuted


def test_rivals_in_equations_that_a_law_ties_are_rivals_of_each(conserving):
    """A term that is added to one equation is taken from another: the model differs from the rival in both."""
    susceptible, ill, _ = conserving.equations_
    both = {round(one.excess, 6) for one in susceptible.rivals} & {round(one.excess, 6) for one in ill.rivals}
    assert both


@pytest.mark.parametrize(
    ("excess", "other", "hardly"),
    [
        (0.9, ("x",), True),
        (1.1, ("x",), False),
        (1.1, ("x", "z"), True),
        (2.1, ("x", "z"), False),
        (1.1, ("x", "y", "z"), False),
    ],
)
def test_a_term_more_or_less_has_its_price_and_one_for_another_has_none(excess, other, hardly):
    assert hardly_told(excess, ("x", "y"), other) is hardly
