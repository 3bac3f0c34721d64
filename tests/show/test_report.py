"""The report page: its structure, its contrast, that nothing escapes, and what it says."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from ardea import ARDSearch, ARDvi, SparseARD
from ardea.dynamics import Discovery, systems
from ardea.dynamics.libraries import Polynomials
from ardea.names import rounded
from ardea.show import report_page, write_report
from ardea.show.answers import doubts_of_equation, doubts_of_residuals
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
    X = pd.DataFrame(data.X, columns=pd.Index([f"{HOSTILE}{j}\x1b" for j in range(data.X.shape[1])], dtype=object))
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(X, data.y)
    return report_page(
        search,
        data=(X, data.y),
        title=HOSTILE,
        targets=[HOSTILE],
        command=HOSTILE,
        notes=[HOSTILE],
    )


@cache
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
    assert not tree.all("script")
    assert not [name for _, attributes in tree.elements for name in attributes if name.startswith("on")]
    assert "<script>alert" not in page
    assert HOSTILE in "".join(tree.text)  # shown as it was given
    assert "\x1b" not in page


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


TEXT_ON = [
    *((text, ground) for text in ("text", "muted", "accent") for ground in ("page", "panel")),
    ("text", "alert-panel"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_in_both_schemes(scheme):
    css = re.search("<style>(.*?)</style>", several_targets(), re.DOTALL)[1]
    blocks = re.findall(r":root \{([^}]*)\}", css)
    palette = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[("light", "dark").index(scheme)]))
    for text, ground in TEXT_ON:
        assert contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
    # Every colour that CSS gives to text is among the pairs checked, and no other colour is used.
    assert set(re.findall(r"[; {]color: var\(--([a-z-]+)\)", css)) <= {text for text, _ in TEXT_ON}
    assert not re.findall(r"#[0-9a-f]{3,6}\b", re.sub(r":root \{[^}]*\}", "", css))
    for query in ("prefers-color-scheme: dark", "max-width: 36rem", "@media print"):
        assert query in css


@pytest.mark.usefixtures("no_figures")
def test_the_path_is_a_table_of_its_models():
    data = sparse_data(seed=1)
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)
    page = report_page(search)
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">(ARDvi, alpha = [^<]*)</th><td>(\d+)</td>", page)
    assert rows == [
        (f"ARDvi, alpha = {strength:.3g}", str(k))
        for strength, k in zip(search.path_["strength"], search.path_["k"], strict=True)
    ]
    (chosen,) = re.findall(r'<tr class="chosen"><th scope="row">([^<]*)</th>', page)
    assert chosen == f"ARDvi, alpha = {search.best_strength_:.3g}"


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_numbers_are_those_of_the_posterior(level):
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    page = report_page(model, level=level)
    ends = model.credible_interval(level)
    for j in np.flatnonzero(model.support_):
        std = model.coef_std_[j]
        coef, deviation, low, high = (rounded(one, std) for one in (model.coef_[j], std, *ends[j]))
        assert f"<bdi>x{j}</bdi></th><td>{coef}</td><td>{deviation}</td>\n<td>{low} to {high}</td>" in page


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("search", [False, True], ids=["estimator", "search"])
def test_the_program_on_the_page_prints_what_the_page_shows(search, capsys):
    data = sparse_data(seed=1)
    model = ARDSearch(ARDvi(), strengths=[2.0, 4.0]) if search else SparseARD(false_terms=0.1)
    page = report_page(model.fit(data.X, data.y), data=(data.X, data.y))
    exec(program(page), {"X": data.X, "y": data.y})
    formula, header, *rows = capsys.readouterr().out.splitlines()
    text = "".join(Tree(page).text)
    assert formula in text
    assert header.split() == ["term", "coef", "std", "95%", "low", "95%", "high"]
    for row in rows:
        _, name, *numbers = row.split()
        shown = [rounded(float(number), float(numbers[1])) for number in numbers]
        assert f"<bdi>{name}</bdi></th><td>{shown[0]}</td><td>{shown[1]}</td>" in page


@pytest.mark.usefixtures("no_figures")
def test_the_program_of_found_equations_makes_the_same_equations(capsys):
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    page = report_page(Discovery(Polynomials(2)).fit(x, t, feature_names=["p", "<q>'"]), data=(x, t))
    exec(program(page), {"x": x, "t": t})
    text = "".join(Tree(page).text)
    assert [line in text for line in capsys.readouterr().out.splitlines() if "=" in line] == [True, True]


def program(page):
    return Tree(f"<i>{re.findall('<code>(.*?)</code>', page, re.DOTALL)[-1]}</i>").text[0]


@pytest.mark.usefixtures("no_figures")
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
    assert several_targets.__wrapped__() == several_targets()


def test_doubts_are_raised_by_what_they_are_about():
    rng = np.random.default_rng(0)
    good = rng.normal(size=400)
    assert doubts_of_residuals(good, "y") == []
    walk = np.convolve(rng.normal(size=409), np.ones(10), "valid") / np.sqrt(10)
    far = np.r_[good, 9.0]
    skewed = rng.exponential(size=400) - 1
    for residual, words in ((walk, "depend on each other"), (far, "1 row lies more than 5"), (skewed, "not Gaussian")):
        assert any(words in one for one in doubts_of_residuals(residual, "y"))


def test_entangled_terms_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    model = SparseARD(always_keep=[0, 1]).fit(X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300))
    assert any("x0 and x1 depend strongly" in one for one in doubts_of_equation(model.equations_[0], 0.95))


@pytest.mark.usefixtures("no_figures")
def test_what_the_fit_warned_of_is_on_the_page_once():
    data = sparse_data(seed=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model = SparseARD(max_iter=1).fit(data.X, data.y)
    note = str(caught[0].message)
    page = report_page(model, notes=[note])
    assert "".join(Tree(page).text).count(" ".join(note.split())) == 1


@pytest.mark.usefixtures("no_figures")
def test_report_methods_write_files(tmp_path):
    data = sparse_data(seed=1)
    model = SparseARD().fit(data.X, data.y)
    assert model.report(tmp_path / "a.html", data.X, data.y).exists()
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    found = Discovery(Polynomials(1)).fit(x, t)
    assert found.report(tmp_path / "b.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]
    table = pd.DataFrame(data.X).add_prefix("c")
    for target in (pd.Series(data.y, name="price"), pd.DataFrame({"price": data.y})):
        page = SparseARD().fit(table, target).report(tmp_path / "a.html", table, target).read_text(encoding="utf-8")
        assert "price: a model with few terms" in page
    with pytest.raises(OSError, match="nowhere"):
        model.report(tmp_path / "nowhere" / "a.html")
    stranger = LinearRegression().fit(data.X, data.y)
    with pytest.raises(TypeError, match="none of ardea"):
        write_report(stranger, tmp_path / "c.html")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [500, 1400])
def test_in_a_browser(tmp_path, width):
    """Chromium shows the page without complaint: nothing runs off or is loaded, letters are readable, links lead on."""
    data = sparse_data(seed=1)
    search = ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)
    probe = """<script>
    const links = [...document.querySelectorAll("a")].map((one) => one.getAttribute("href"));
    const result = { wide: document.documentElement.scrollWidth, view: innerWidth,
      lost: links.filter((one) => document.querySelector(one) === null), links: links.length,
      scales: [...document.querySelectorAll("figure svg")].map(
        (one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width) };
    addEventListener("load", () => {
      result.asked_for = performance.getEntriesByType("resource").map((one) => one.name);
      document.title = "RESULT" + JSON.stringify(result);
    });
    </script></body>"""
    path = tmp_path / "page.html"
    page = report_page(search, data=(data.X, data.y)).replace("style-src", "script-src 'unsafe-inline'; style-src", 1)
    path.write_text(page.replace("</body>", probe), encoding="utf-8")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    command += ["--no-first-run", "--disable-quic", "--disable-sync", "--disable-background-networking"]
    command += ["--disable-component-update", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result = json.loads(Tree(f"<i>{re.search('<title>RESULT(.*?)</title>', done.stdout, re.DOTALL)[1]}</i>").text[0])
    assert "CONSOLE" not in done.stderr  # where it would also say what the page's policy has kept from loading
    assert result["asked_for"] == []
    assert result["wide"] <= result["view"]
    assert len(result["scales"]) > 4
    # Letters of 10 points in a drawing are then at least 9 pixels tall; natural size is 4/3 pixels a point.
    assert min(result["scales"]) > 0.9
    assert result["lost"] == []
    assert result["links"] > 9  # those of the contents, and of the picture of terms


def test_the_unit_of_time_stands_beside_the_equations():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    model = Discovery(Polynomials(1)).fit(x, pd.Timestamp("2024-01-01") + pd.to_timedelta(t, unit="h"))
    page = report_page(model)
    assert page.count("rates of change are per") == 1
    assert page.index('id="model"') < page.index("rates of change are per") < page.index('id="warnings"')
