"""The report page: its structure, its contrast, that nothing escapes, and what it says."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ardea import ARDSearch, ARDvi, SparseARD
from ardea.dynamics import Discovery, systems
from ardea.dynamics.libraries import Polynomials
from ardea.show.report import concerns, report_page, write_report
from ardea.show.report.described import described
from ardea.show.report.style import CSS, DARK, LIGHT, TEXT_ON
from conftest import sparse_data

HOSTILE = '"><script>alert(1)</script>&amp;<img src=x onerror=alert(2)>'
VOID = {"meta", "br", "img", "hr", "link", "input"}
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


class Tree(HTMLParser):
    """Read a page: every element with its attributes, and whether all tags are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.open, self.text = [], [], []
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


def hostile_search():
    data = sparse_data(seed=1)
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)
    names = np.array([f"{HOSTILE}{j}" for j in range(data.X.shape[1])], dtype=object)
    search.feature_names_in_ = search.best_estimator_.feature_names_in_ = names
    return report_page(
        search,
        data=(data.X, data.y),
        title=HOSTILE,
        targets=[HOSTILE],
        command=HOSTILE,
        notes=[HOSTILE],
    )


def several_targets():
    data = sparse_data(seed=2)
    model = SparseARD().fit(data.X, np.column_stack([data.y, -data.y]))
    return report_page(model, data=(data.X, np.column_stack([data.y, -data.y])))


def equations():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    return report_page(Discovery(Polynomials(2)).fit(x, t, feature_names=["p", "<q>"]), data=(x, t))


@pytest.fixture(scope="module", params=[hostile_search, several_targets, equations], ids=lambda make: make.__name__)
def page(request):
    return request.param()


def test_structure(page):
    tree = Tree(page)
    assert page.startswith("<!doctype html>")
    assert tree.all("html")[0]["lang"] == "en"
    for landmark in ("header", "nav", "main", "footer", "h1", "head"):
        assert len(tree.all(landmark)) == 1, landmark
    identifiers = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    links = [attributes["href"] for attributes in tree.all("a")]
    assert all(link.startswith("#") and link[1:] in identifiers for link in links)
    labels = [attributes["aria-labelledby"] for attributes in tree.all("section")]
    assert set(labels) <= set(identifiers)


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in Tree(page).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_pictures_and_tables_can_be_read_aloud(page):
    tree = Tree(page)
    pictures = tree.all("svg")
    assert pictures
    for attributes in pictures:
        assert attributes["role"] in ("img", "group")
        assert attributes["aria-label"]
    assert all(attributes["scope"] in ("col", "row") for attributes in tree.all("th"))
    assert len(tree.all("caption")) == len(tree.all("table"))
    assert len(tree.all("figcaption")) == len(tree.all("figure"))
    for attributes in tree.all("div"):
        assert attributes.get("class") != "scroll" or (attributes["tabindex"] == "0" and attributes["aria-label"])


def test_the_page_loads_nothing(page):
    tree = Tree(page)
    assert not tree.all("link", "img", "iframe", "object", "embed", "base", "form")
    for _, attributes in tree.elements:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/"))
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    policy = next(one["content"] for one in tree.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("page", [hostile_search], indirect=True)
def test_nothing_of_the_user_becomes_markup(page):
    tree = Tree(page)
    assert len(tree.all("script")) == 1
    assert not [name for _, attributes in tree.elements for name in attributes if name.startswith("on")]
    assert "<script>alert" not in page
    assert HOSTILE in "".join(tree.text)  # shown as it was given


def test_anchors_and_inner_references_of_drawings_exist(page):
    tree = Tree(page)
    identifiers = {attributes["id"] for _, attributes in tree.elements if "id" in attributes}
    used = set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'xlink:href="#([^"]*)"', page))
    assert used <= identifiers


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_of_contrast():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def variables(block):
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize(("place", "palette"), [(0, LIGHT), (1, DARK)], ids=["light", "dark"])
def test_contrast_is_enough_in_the_css_that_is_written(place, palette):
    blocks = re.findall(r":root \{([^}]*)\}", CSS)
    assert variables(blocks[place]) == palette
    for text, ground in TEXT_ON:
        assert contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
    # Every colour that CSS gives to text is among the pairs checked, and no other colour is used.
    used = set(re.findall(r"[; {]color: var\(--([a-z-]+)\)", CSS)) | set(
        re.findall(r"text \{ fill: var\(--([a-z-]+)\)", CSS)
    )
    assert used <= {text for text, _ in TEXT_ON}
    assert not re.findall(r"#[0-9a-f]{3,6}\b", re.sub(r":root \{[^}]*\}", "", CSS))


def test_dark_phone_and_print_have_rules():
    for query in ("prefers-color-scheme: dark", "max-width", "@media print"):
        assert query in CSS


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out what needs matplotlib, as where it is not installed."""
    from ardea.show.report import motion, regression

    for module in (motion, regression):
        monkeypatch.setattr(module, "can_draw", lambda: False)


@pytest.mark.usefixtures("undrawn")
def test_path_points_tell_their_models():
    data = sparse_data(seed=1)
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)
    tree = Tree(report_page(search))
    points = [one for one in tree.all("g") if "model" in one.get("class", "").split()]
    assert len(points) == 5
    assert all(point["tabindex"] == "0" for point in points)
    (chosen,) = [point for point in points if "chosen" in point["class"].split()]
    k = int(search.path_["k"][search.best_index_])
    assert chosen["aria-label"].startswith("Chosen.")
    assert f"alpha = {search.best_strength_:.3g}: {k} terms" in chosen["aria-label"]
    text = "".join(tree.text)
    assert all(f"alpha = {strength:.3g}" in text for strength in search.path_["strength"])  # the table says the same


@pytest.mark.usefixtures("undrawn")
def test_numbers_are_those_of_the_model():
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    (found,) = described(model)
    interval = model.credible_interval(kind="refit")[model.support_]
    np.testing.assert_array_equal([[line.low, line.high] for line in found.lines], interval)
    # With intercept and coefficients of the refit, residuals are orthogonal to the constant and to the kept columns.
    residual = data.y - found.intercept - data.X[:, model.support_] @ [line.coef for line in found.lines]
    np.testing.assert_allclose(residual @ data.X[:, model.support_], 0, atol=1e-8)
    assert residual.sum() == pytest.approx(0, abs=1e-9)
    page = report_page(model)
    for line in found.lines:
        assert "</td><td>".join(line.shown()) in page


@pytest.mark.usefixtures("undrawn")
def test_fingerprint_is_of_the_bytes(tmp_path):
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    file = tmp_path / "a.csv"
    file.write_bytes(b"x,y\n1,2\n")
    page = report_page(model, data=(data.X, data.y), source=file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() in page
    assert hashlib.sha256(np.ascontiguousarray(data.X).tobytes()).hexdigest() in page
    assert "80 × 12" in page
    changed = data.X.copy()
    changed[0, 0] = np.nextafter(changed[0, 0], np.inf)
    assert hashlib.sha256(data.X.tobytes()).hexdigest() not in report_page(model, data=(changed, data.y))


def test_the_same_model_gives_the_same_page():
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    assert report_page(model, data=(data.X, data.y)) == report_page(model, data=(data.X, data.y))


def test_warnings_are_raised_by_what_they_are_about():
    rng = np.random.default_rng(0)
    good = rng.normal(size=400)
    assert concerns.of_residuals(good, "y") == []
    walk = np.convolve(rng.normal(size=409), np.ones(10), "valid") / np.sqrt(10)
    far = np.r_[good, 9.0]
    skewed = rng.exponential(size=400) - 1
    for residual, word in ((walk, "depend"), (far, "far off"), (skewed, "Gaussian")):
        assert any(word in short for short, _ in concerns.of_residuals(residual, "y"))


def test_entangled_terms_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    model = SparseARD(always_keep=[0, 1]).fit(X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300))
    doubts = concerns.of_estimator(model, described(model), [])
    assert any("x0 and x1 are hard to tell apart" in short for short, _ in doubts)


def test_report_methods_write_files(tmp_path):
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    assert model.report(tmp_path / "a.html", data.X, data.y).exists()
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    found = Discovery(Polynomials(1)).fit(x, t)
    assert found.report(tmp_path / "b.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]
    with pytest.raises(OSError, match="nowhere"):
        model.report(tmp_path / "nowhere" / "a.html")
    stranger = LinearRegression().fit(data.X, data.y)
    with pytest.raises(TypeError, match="none of ardea"):
        write_report(stranger, tmp_path / "c.html")


@pytest.mark.usefixtures("undrawn")
def test_pages_need_no_matplotlib():
    data = sparse_data(seed=1)
    page = report_page(SparseARD().fit(data.X, data.y), data=(data.X, data.y))
    assert "ardea[plots]" in page
    Tree(page)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_in_a_browser(tmp_path):
    """Chromium runs the page: pointing at a model shows it, a phone needs no sideways scrolling, nothing is refused."""
    data = sparse_data(seed=1)
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)
    probe = """<script>
    const box = document.getElementById("path-model"), models = document.querySelectorAll(".model"), told = [];
    for (const model of models) { model.dispatchEvent(new MouseEvent("mouseenter")); told.push(box.textContent); }
    models[0].focus();
    const result = { told, focused: box.textContent, wide: document.documentElement.scrollWidth, view: innerWidth,
      dots: document.querySelectorAll(".path .dot").length, sizes: [...document.querySelectorAll("figure svg")].map(
        (one) => one.getBoundingClientRect().width) };
    document.title = "RESULT" + JSON.stringify(result);
    </script></body>"""
    path = tmp_path / "page.html"
    path.write_text(report_page(search, data=(data.X, data.y)).replace("</body>", probe), encoding="utf-8")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=500,900"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result = json.loads(Tree(f"<i>{re.search('<title>RESULT(.*?)</title>', done.stdout, re.DOTALL)[1]}</i>").text[0])
    assert len(set(result["told"])) == 5
    assert sum(text.startswith("Chosen.") for text in result["told"]) == 1
    assert result["focused"] == result["told"][0]
    assert result["wide"] <= result["view"]
    assert all(0 < width <= result["view"] for width in result["sizes"])
