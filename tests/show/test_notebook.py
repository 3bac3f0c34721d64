"""What notebooks show: the numbers of the posterior, whatever the columns are called."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_html_repr

from ardea import ARD, ARDSearch, ARDvi, SparseARD
from ardea.dynamics import Discovery, systems
from ardea.show import model_html
from ardea.show.report import term_row
from conftest import FAMILY, sparse_data

TABLE_ELEMENTS = {"table", "thead", "tbody", "tr", "th", "td", "bdi", "svg", "path", "circle"}
OWN_ELEMENTS = {"div", "style", "p", "strong", "ul", "li"} | TABLE_ELEMENTS
SKLEARN_IDS = re.compile(r"sk-(container|estimator)-id-\d+")
HOSTILE = ["<script>alert(1)</script>", "a\"b'c&d", "</table></div>", "\ud800\u202e\x00", "$x^2$", "x" * 5000, ""]


class Elements(HTMLParser):
    """Collects the names of all elements and the text, and checks that every element is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.names, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in {"style", "script"}:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


def own_part(shown):
    """Return what comes before scikit-learn's diagram."""
    return shown[: shown.index("<details>")]


def table_rows(shown):
    """Return the cells of every row of our table, as text."""
    body = re.findall(r"<tr>(.*?)</tr>", shown[: shown.index("</table>")], flags=re.DOTALL)
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in body]
    return [[Elements(cell).text for cell in row] for row in cells]


@pytest.fixture(scope="module")
def lorenz():
    t, x = systems.lorenz63().noisy(0.01, seed=0)
    return Discovery().fit(x, t, feature_names=["x", "y", "z"])


@pytest.mark.parametrize("kind", FAMILY)
def test_every_term_is_shown_with_its_posterior(kind):
    data = sparse_data()
    model = kind().fit(pd.DataFrame(data.X, columns=[f"column {j}" for j in range(12)]), data.y)
    head, *rows, constant = table_rows(model_html(model))
    assert head == ["term", "coefficient", "standard error", "95 % interval", "against 0"]
    assert [row[0] for row in rows] == list(model.get_feature_names_out())
    kept = model.support_
    for row, coef, std, ends in zip(
        rows, model.coef_[kept], model.coef_std_[kept], model.credible_interval()[kept], strict=True
    ):
        shown = [float(text) for text in (row[1], row[2], *row[3].split(" to "))]
        np.testing.assert_allclose(shown, [coef, std, *ends], atol=0.06 * std)
    assert constant[0] == "constant"
    assert float(constant[1]) == pytest.approx(model.intercept_, abs=0.06 * float(constant[2]))


@pytest.mark.parametrize("kind", FAMILY)
def test_caption(kind):
    data = sparse_data()
    model = kind().fit(data.X, data.y)
    text = Elements(own_part(model_html(model))).text
    noise = np.sqrt(model.noise_variance_)
    assert text.startswith(f"{kind.__name__}: {model.support_.sum()} of 12 terms kept, noise σ = {noise:.4g}; ")
    assert f"certificate {model.kkt_gap_:.0e} (tol 1e-06); 95 % intervals of the posterior." in text


def test_pictures_do_not_depend_on_units():
    data = sparse_data()
    unit = 10.0 ** np.arange(-6, 6)
    pictures = [
        re.findall(r'(M[\d.]+ 6H[\d.]+|cx="[\d.]+")', model_html(SparseARD().fit(X, y)))
        for X, y in ((data.X, data.y), (data.X * unit, 1e5 * data.y))
    ]
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) == 2 * SparseARD().fit(data.X, data.y).support_.sum()


def test_a_picture_is_the_interval():
    first, second = term_row("a", 1.0, 0.5, 0.5, 2.0), term_row("b", -2.0, 1.0, -4.0, 0.0)
    assert [*map(float, first.at)] == [48 + 44 / 4, 48 + 44 / 2, 48 + 44]
    assert [*map(float, second.at)] == [48 - 44, 48 - 44 / 2, 48]


def test_thirty_terms_are_shown_and_the_rest_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 50))
    model = ARDvi(alpha=2.0).fit(X, X[:, :45].sum(axis=1) + 0.1 * rng.normal(size=300))
    shown = model_html(model)
    assert len(table_rows(shown)) == 1 + 30 + 1
    assert f"… and {model.support_.sum() + 1 - 30} more" in shown
    many = model_html(SparseARD().fit(X, X[:, :15] + 0.1 * rng.normal(size=(300, 15))))
    assert "… and 3 more equations" in many


def test_several_targets_are_shown_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    model = SparseARD().fit(X, X[:, [1, 4]] + 0.1 * rng.normal(size=(90, 2)))
    rows = table_rows(model_html(model))[1:]
    assert [row[0].split(",")[0] for row in rows if len(row) == 1] == ["y0", "y1"]
    assert len([row for row in rows if row[0].startswith("x")]) == model.support_.sum()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name):
    data = sparse_data(d=3, k=3)
    model = SparseARD().fit(pd.DataFrame(data.X, columns=pd.Index([name, "b", "c"], dtype=object)), data.y)
    for shown in (own_part(model_html(model)), model.summary()._repr_html_()):
        shown.encode("utf-8")
        elements = Elements(shown)
        assert elements.open in ([], ["div"])  # our part of a model ends before its last </div>
        assert set(elements.names) <= OWN_ELEMENTS
        assert "\x00" not in shown
        assert len(shown) < 8000
        assert "mathjax_ignore" in shown
        assert "tex2jax_ignore" in shown


def test_doubts_are_told():
    data = sparse_data()
    with pytest.warns(ConvergenceWarning) as caught:
        stopped = ARD(max_iter=1).fit(data.X, data.y)
    assert " ".join(str(caught[0].message).split()) in Elements(own_part(model_html(stopped))).text
    noise = np.random.default_rng(0).normal(size=80)
    weak = SparseARD(always_keep=[0]).fit(data.X, noise)
    assert "Zero lies inside the interval of x0" in Elements(own_part(model_html(weak))).text


def test_an_empty_model_is_shown_in_words():
    rng = np.random.default_rng(0)
    model = SparseARD(false_terms=1e-9, fit_intercept=False).fit(rng.normal(size=(50, 5)), rng.normal(size=50))
    shown = model_html(model)
    assert "0 of 5 terms" in shown
    assert "No candidate term explains y." in shown
    assert "<table>" not in own_part(shown)


def test_a_search_shows_the_model_that_it_chose():
    data = sparse_data()
    search = ARDSearch(ARDvi(), strengths=[1.0, 4.0, 16.0]).fit(data.X, data.y)
    shown = model_html(search)
    assert f"ARDvi(alpha={search.best_strength_:.4g}), the best of 3 by" in shown
    assert table_rows(shown) == table_rows(model_html(search.best_estimator_))


def test_found_equations_are_shown_apart(lorenz):
    rows = table_rows(model_html(lorenz))[1:]
    assert [row[0].split(",")[0] for row in rows if len(row) == 1] == ["(x)'", "(y)'", "(z)'"]
    assert [row[0] for row in rows if len(row) > 1] == [term for one in lorenz.equations_ for term in one.terms]


@pytest.mark.parametrize("model", [SparseARD(), ARDSearch(SparseARD()), Discovery()], ids=lambda m: type(m).__name__)
def test_before_the_fit_the_diagram_is_scikit_learns(model):
    assert SKLEARN_IDS.sub("", model_html(model)) == SKLEARN_IDS.sub("", estimator_html_repr(model))


def test_scikit_learns_diagram_stands_below():
    data = sparse_data()
    model = SparseARD().fit(data.X, data.y)
    assert SKLEARN_IDS.sub("", estimator_html_repr(model)) in SKLEARN_IDS.sub("", model_html(model))


def test_a_stream_is_shown_as_the_fit():
    data = sparse_data()
    stream = SparseARD().partial_fit(data.X[:50], data.y[:50]).partial_fit(data.X[50:], data.y[50:])
    assert table_rows(model_html(stream)) == table_rows(model_html(SparseARD().fit(data.X, data.y)))


@pytest.mark.parametrize("name", ["estimator", "search", "discovery"])
def test_notebooks_ask_us(name, lorenz):
    """Both ways in which a notebook asks, on every version of scikit-learn; its setting still turns HTML off."""
    data = sparse_data()
    model = {
        "estimator": SparseARD().fit(data.X, data.y),
        "search": ARDSearch(ARDvi(), strengths=[1.0, 4.0]).fit(data.X, data.y),
        "discovery": lorenz,
    }[name]
    ours = own_part(model_html(model))
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"].startswith(ours)
    assert bundle["text/plain"] == repr(model)
    assert model._repr_html_().startswith(ours)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_a_summary_is_a_table_of_the_same_numbers():
    data = sparse_data()
    summary = SparseARD().fit(data.X, data.y).summary()
    rows = re.findall(r"<td>(.*?)</td>", summary._repr_html_())
    low = [float(cell) for cell in rows[3 :: len(summary.columns)]]
    np.testing.assert_allclose(low, summary.columns["95% low"], rtol=1e-3)


def test_the_diagram_of_a_pipeline_is_scikit_learns():
    data = sparse_data()
    pipeline = make_pipeline(StandardScaler(), SparseARD(), FunctionTransformer()).fit(data.X, data.y)
    shown = pipeline._repr_html_()
    assert 'class="ardea' not in shown
    assert "SparseARD" in shown
    assert "StandardScaler" in shown
