"""One file that needs nothing, and in which nothing that a file said is markup."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.web.axe import axe_source, serious_faults
from benchmarks.web.browser import chromium, missing
from hypothesis import given
from hypothesis import strategies as st

from deepwide.figures import clean
from deepwide.report import (
    Attachment,
    Command,
    Facts,
    Figure,
    Notes,
    Report,
    Section,
    Table,
    Text,
    make_report,
    to_html,
)
from report.parts import EVIL, Reader, read, write_runs

ROOT = Path(__file__).resolve().parents[2]
needs_browser = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")
A4 = {"width": 210 / 25.4 * 96, "height": 297 / 25.4 * 96}  # CSS pixels


def everywhere(text: str) -> Report:
    """A report that says the text wherever it can say anything."""
    blocks = (
        Text(text), Text(text, strong=True), Command(text), Facts(((text, text),)), Notes((text,)),
        Notes((text,), warning=True),
        Table(text, [{text: text}], {text: text}, text), Figure(text, text, text, text), Attachment(text, b"x"),
    )  # fmt: skip
    return Report("plan", text, text, (Section(text, blocks),), text, {text: text})


def test_a_hostile_text_is_text_wherever_it_stands() -> None:
    page = read(everywhere(EVIL))
    assert page.text.count(clean(EVIL)) >= 18
    assert [tag for tag, _ in page.tags].count("img") == 1


@given(st.text(st.characters(codec=None), min_size=1, max_size=30))
def test_every_text_gives_the_same_tags(text: str) -> None:
    expected = [tag for tag, _ in read(everywhere("x")).tags]
    page = read(everywhere(text))
    assert [tag for tag, _ in page.tags] == expected
    to_html(everywhere(text)).encode()


def test_the_policy_forbids_scripts_and_the_network_and_comes_first() -> None:
    page = Reader(to_html(everywhere("x")))
    metas = [attributes for tag, attributes in page.tags if tag == "meta"]
    assert metas[0] == {"charset": "utf-8"}
    assert metas[1]["http-equiv"] == "Content-Security-Policy"
    rules = dict(rule.strip().split(" ", 1) for rule in metas[1]["content"].split(";"))
    assert rules == {
        "default-src": "'none'", "style-src": "'unsafe-inline'", "img-src": "data:", "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip


def test_the_style_loads_nothing_and_knows_dark_print_and_phones() -> None:
    page = to_html(everywhere("x"))
    assert "url(" not in page
    assert "@import" not in page
    for words in ("prefers-color-scheme: dark", "@media print", "max-width: 560px", "table-header-group"):
        assert words in page
    own = (ROOT / "src/deepwide/report/report.css").read_text()
    assert "#" not in own  # colours are those of all pictures


def test_images_have_a_text_and_tables_a_head_and_a_name() -> None:
    page = read(everywhere("x"))
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")
    assert all(attributes["scope"] == "col" for tag, attributes in page.tags if tag == "th")
    assert [at for _, at in page.tags if at.get("role") == "region"] == [
        {"class": "table", "role": "region", "tabindex": "0", "aria-label": "x"}
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One report of each kind as a file, real pictures in those that are looked at in print."""
    home = tmp_path_factory.mktemp("reports")
    runs = write_runs(home / f"runs {EVIL.replace('/', '')[:60]}", error=EVIL)
    sources = {
        "sweep": runs,
        "audit": "llama-3-8b",
        "plan": "1.3B",
        "fit": ROOT / "results/fit/depth-width-long.csv",
        "study": ROOT / "results/studies/gemstones-cpu",
    }
    for kind, source in sources.items():
        (home / f"{kind}.html").write_text(to_html(make_report(source)), encoding="utf-8")
    return {kind: home / f"{kind}.html" for kind in sources}


KINDS = ("sweep", "audit", "plan", "fit", "study")


@pytest.fixture
def opened(browser: Any, reports: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A report from disk with the network cut; a console message, an error or a request fails the test."""
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request", lambda sent: complaints.append(sent.url) if not sent.url.startswith(("file:", "data:")) else None
    )
    page.goto(reports[request.param].as_uri())
    yield page
    context.close()
    assert complaints == []


@needs_browser
@pytest.mark.parametrize("opened", KINDS, indirect=True)
def test_it_opens_from_disk_without_a_network_and_is_accessible(opened: Any) -> None:
    assert opened.inner_text("h1")
    assert opened.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1000
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is not installed: npm install axe-core, or pip install axe-core-python")
    assert serious_faults(opened, source) == []
    opened.emulate_media(color_scheme="dark")
    assert serious_faults(opened, source) == []


@needs_browser
@pytest.mark.parametrize("opened", ["sweep"], indirect=True)
def test_script_in_a_run_s_name_and_error_is_shown_as_text(opened: Any) -> None:
    assert "<script>alert(1)" in opened.inner_text("h1")
    assert "<script>alert(1)" in opened.inner_text("main")
    assert opened.evaluate("document.scripts.length") == 0
    assert opened.evaluate("[...document.images].filter(image => !image.src.startsWith('data:')).length") == 0


@needs_browser
@pytest.mark.parametrize("opened", KINDS, indirect=True)
def test_in_print_nothing_is_cut_and_the_pages_are_few(opened: Any, tmp_path: Path) -> None:
    opened.set_viewport_size({name: round(value - 2 * 14 / 25.4 * 96) for name, value in A4.items()})
    opened.emulate_media(media="print")
    wide = "[...document.querySelectorAll('table, img, dl, p, h1, li')].filter(each => each.getBoundingClientRect()"
    cut = opened.evaluate(f"{wide}.right > innerWidth + 1).map(each => each.outerHTML.slice(0, 200))")
    assert cut == []
    opened.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True, format="A4")
    pages = (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n")
    tall = opened.evaluate("document.documentElement.scrollHeight")
    assert 1 <= pages <= 2 + 1.5 * tall / A4["height"]


@needs_browser
@pytest.mark.parametrize("opened", ["sweep", "study"], indirect=True)
def test_on_a_phone_only_tables_and_pictures_scroll_sideways(opened: Any) -> None:
    opened.set_viewport_size({"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
