"""The page as a file: whole, small, and closed to the network."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from benchmarks.web.settings import FITTED

from deepwide.web import page as page_module
from deepwide.web import plan_page
from deepwide.web.page import PROGRAMS

FOLDER = Path(page_module.__file__).parent


@pytest.fixture(scope="module")
def text() -> str:
    return plan_page()


def test_it_is_one_file_below_two_megabytes(text: str) -> None:
    assert len(text.encode()) < 2_000_000
    assert "{{" not in text
    assert re.findall(r'\b(?:src|href)="(?!data:,")', text) == []


def test_it_names_no_address_but_that_of_svg(text: str) -> None:
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}


def test_its_policy_allows_its_own_style_and_program_and_nothing_else(text: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "http" not in policy[1]
    for tag, directive in (("style", "style-src"), ('script type="module"', "script-src")):
        inside = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy[1]


def test_a_law_s_name_cannot_end_the_script() -> None:
    law = FITTED["own ridge"].model_copy(update={"name": "</script><script>alert(1)</script>"})
    text = plan_page(laws=[law])
    assert "<script>alert" not in text
    assert "\\u003c/script>" in text


def test_every_program_of_the_folder_is_in_it_in_an_order_that_works() -> None:
    assert set(PROGRAMS) == {path.stem for path in FOLDER.glob("*.js")}
    for position, name in enumerate(PROGRAMS):
        source = (FOLDER / f"{name}.js").read_text()
        needed = re.findall(r'from "\./(\w+)\.js"', source)
        assert set(needed) <= set(PROGRAMS[:position]), name


def test_no_program_writes_html_or_runs_text(text: str) -> None:
    script = text[text.index('<script type="module">') :]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch("):
        assert word not in script


def test_the_docs_quote_what_was_measured() -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "page.md").read_text(encoding="utf-8")
    compared = json.loads((root / "results" / "web" / "compare.json").read_text())
    numbers = [compared[name] for name in ("settings", "refused", "lines_compared", "different")]
    assert "| " + " | ".join(f"{number:,}" for number in numbers) + " |" in text
    for name, drag in json.loads((root / "results" / "web" / "drag.json").read_text())["drags"].items():
        cpu = drag["main_thread_cpu_ms"]
        assert f"| {name} | {cpu['median']} | {cpu['p95']} |" in text
