"""Markdown in which nothing that a file said is markup, as another reader of Markdown sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from deepwide.figures import clean
from deepwide.report import make_report, to_markdown
from deepwide.report.markdown import _text
from report.parts import EVIL, Reader
from report.test_html import everywhere

RENDERER = MarkdownIt("commonmark", {"html": True}).enable("table")  # html: as if nobody cleaned it afterwards
RENDERER.validateLink = lambda url: bool(url)  # type: ignore[method-assign]  # nor its links


def rendered(text: str) -> Reader:
    return Reader(RENDERER.render(text).replace(" />", ">"))


def test_a_hostile_text_is_text_wherever_it_stands() -> None:
    page = rendered(to_markdown(everywhere(EVIL)))
    tags = [tag for tag, _ in page.tags]
    assert "script" not in tags
    assert all(line.startswith("    ") for line in to_markdown(everywhere(EVIL)).splitlines() if "<" in line)
    assert tags.count("img") == 1
    assert not [at for _, at in page.tags if at.get("href", "data:").partition(":")[0] != "data"]


@pytest.mark.parametrize(
    "start", ["# ", "- ", "1. ", "1) ", "> ", "+ ", "=== ", "```", "~~~", "    ", "***", "| ", "$", ":"]
)
def test_a_line_is_a_paragraph_whatever_it_begins_with(start: str) -> None:
    page = rendered(_text(f"{start}x"))
    assert [tag for tag, _ in page.tags] == ["p"]
    assert page.text.strip() == " ".join(f"{start}x".split())


@given(st.text(max_size=40))
def test_text_comes_back_as_it_was(text: str) -> None:
    page = rendered(f"a {_text(text)} b")
    assert page.text.split() == f"a {clean(text)} b".split()


def test_a_plan_s_table_has_a_row_per_depth() -> None:
    page = rendered(to_markdown(make_report("1.3B")))
    assert [tag for tag, _ in page.tags].count("table") == 3
    assert "1,455,226,368" in page.text
