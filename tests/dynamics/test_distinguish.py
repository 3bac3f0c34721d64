"""Which experiment next: differences of rival models in units of noise, and the promise that `print` tells."""

import io
import warnings
from dataclasses import replace

import numpy as np
import pytest

from ardea.dynamics import Discovery, Polynomials, systems


@pytest.fixture(scope="module")
def noisy():
    """Few samples with much noise, which leave rivals."""
    t, x = systems.van_der_pol().noisy(0.2, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Discovery(Polynomials(3), false_terms=0.5).fit(x[::8], t[::8], feature_names=["x", "y"])


def test_differences_are_those_of_runs_in_units_of_noise(noisy):
    t = np.linspace(0, 5, 21)
    found = noisy.distinguish(n=2, t=t, within=12, random_state=0)
    fits = [one for one in noisy.searched_.pursuit.ranking if one.support != noisy.searched_.fit.support]
    for start, runs, differences in zip(found.starts, found.runs, found.differences, strict=True):
        np.testing.assert_allclose(runs[0], noisy.simulate(start, t), rtol=1e-5, atol=1e-6)
        for fit, run, difference in zip(fits, runs[1:], differences, strict=False):
            rival = replace(noisy.model_, coefficients=fit.point.coefficients).simulate(start, t, None)
            np.testing.assert_allclose(run, rival, rtol=1e-5, atol=1e-5)
            gap = (rival - runs[0]) / found.noise
            assert difference == pytest.approx(np.sqrt(np.mean(gap**2)), rel=1e-3)


def test_the_first_start_is_the_best_of_all_and_the_next_add_to_it(noisy):
    few, many = (noisy.distinguish(n=n, within=12, random_state=1) for n in (1, 3))
    np.testing.assert_array_equal(few.starts[0], many.starts[0])
    assert many.differences.shape == (3, len(many.rivals))
    assert np.all(many.differences[0].min() >= many.differences[1:].min(axis=1))
    assert len({tuple(start) for start in many.starts}) == 3


def test_starts_lie_within_bounds_and_are_told(noisy):
    found = noisy.distinguish(n=4, bounds={"x": (3.0, 4.0)}, within=12, random_state=0)
    assert np.all((found.starts[:, 0] >= 3) & (found.starts[:, 0] <= 4))
    assert list(found.to_frame().columns) == ["x", "y", *found.rivals]
    assert found.plot().shape == (4, 2)


def test_what_cannot_be_told_apart_is_said(noisy):
    with pytest.raises(ValueError, match="No rival is within"):
        noisy.distinguish(within=-100)
    with pytest.raises(ValueError, match="no state 'q'"):
        noisy.distinguish(bounds={"q": (0, 1)}, within=12)
    with pytest.raises(ValueError, match="where the model has inputs"):
        noisy.distinguish(u=[np.zeros((3, 1))])


def test_inputs_are_chosen_too():
    rng, t = np.random.default_rng(0), np.linspace(0, 6, 60)
    u = np.sign(np.sin(2 * t))[:, None]
    x = np.zeros((60, 1))
    for i, h in enumerate(np.diff(t)):  # x' = -x + u, held over a step
        x[i + 1] = u[i] + (x[i] - u[i]) * np.exp(-h)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery(Polynomials(2)).fit(x + 0.1 * rng.normal(size=x.shape), t, u=u, feature_names=["x", "u"])
    choice = [u, -0.5 * u]
    found = model.distinguish(n=2, u=choice, within=50, random_state=0)
    for start, which, runs in zip(found.starts, found.inputs, found.runs, strict=True):
        np.testing.assert_allclose(runs[0], model.simulate(start, t, choice[which]), rtol=1e-5, atol=1e-6)
    assert "input" in found.to_frame()


def test_print_says_what_was_promised(noisy):
    page = io.StringIO()
    noisy.print(file=page)
    assert "0.5 false terms are expected at most" in page.getvalue()
    with pytest.raises(ValueError, match="false_terms is for the trajectory form"):
        Discovery(form="weak", false_terms=1.0).fit(np.zeros((9, 1)) + np.arange(9)[:, None], 0.1)
