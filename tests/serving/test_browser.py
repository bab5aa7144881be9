"""The pages in a real browser: a sweep that finishes while one looks, a measurement that is cancelled, ten keys."""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.web.axe import axe_source, serious_faults
from benchmarks.web.browser import chromium, missing
from benchmarks.web.served import served, write_run, write_runs

from deepwide.planning import audit
from deepwide.run import run_id
from serving.folders import EVIL, write_folder
from sweeping.toys import start, write_toml

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")

MANY = 1500
PATHS = ("/", "/separation", "/sweeps", "/sweeps/{small}", "/studies", "/studies/{stair}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = write_folder(tmp_path_factory.mktemp("browsed"))
    write_runs(home / "runs" / "many", MANY, corrupt=1)
    config = {"trainer": "toy", "depth": 2, "width": 8, "seed": 0, "lr": EVIL}
    name = run_id(config, data_fingerprint="x", numerics="toy-1")
    counts = {"depth": 2, "width": 8, "block_params": 128, "total_params": 128, "steps": 40, "tokens": 40,
              "train_flops": 9, "train_bytes": 9}  # fmt: skip
    record: dict[str, object] = {"config": config, "data": "x", "numerics": "toy-1", "counts": counts}
    write_run(home / "runs" / "evil" / name, record, 2.5, "done")
    result = {"status": "failed", "error": EVIL}
    write_run(home / "runs" / "evil" / "0123456789abcdef", record, 2.5, "waiting")
    (home / "runs" / "evil" / name / "result.json").write_text(json.dumps(result))
    write_toml(home / "sweeps" / "live.toml", name="live", run={"steps": 60, "seconds_per_step": 0.02})
    return home


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder) as (address, _):
        yield address


@pytest.fixture(scope="module")
def ids(url: str) -> dict[str, str]:
    index = json.load(urllib.request.urlopen(f"{url}/api/index", timeout=60))
    return {
        Path(each["folder"]).name.removesuffix("-cpu"): each["id"] for each in (*index["sweeps"], *index["studies"])
    }


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on which a console message or an error at any time fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def wait_until(page: Any, expression: str, seconds: float = 90) -> None:
    """Ask until it is so; Playwright's own waiting evaluates text in the page, which the page's policy refuses."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(30)


def says(page: Any, key: str, text: str, seconds: float = 90) -> None:
    wait_until(page, f"document.getElementById({key!r}).textContent.includes({text!r})", seconds)


def test_a_real_sweep_is_watched_to_its_end(page: Any, url: str, ids: dict[str, str], folder: Path) -> None:
    page.goto(f"{url}/sweeps/{ids['live']}")
    says(page, "standing", "0 of 8 runs finished")
    page.evaluate("window.unchanged = true")
    sweep = start("sweep", "run", folder / "sweeps" / "live.toml", "--runs", folder / "runs" / "live")
    try:
        wait_until(page, "document.querySelector('#states .running') !== null", 120)
        says(page, "standing", "8 of 8 runs finished", 150)
    finally:
        sweep.communicate(timeout=60)
    says(page, "states", "8 done")
    wait_until(page, "document.querySelectorAll('#runs .run:not([hidden])').length === 8")
    wait_until(page, "document.querySelectorAll('#losses .dot').length > 0")
    wait_until(page, "document.querySelectorAll('#curves .line').length > 0")
    assert page.locator("#losses svg text[text-anchor=end]").count() >= 2  # however near to each other the losses are
    assert page.eval_on_selector("#runs", "grid => grid.clientHeight < 34 + 9 * 30")  # no taller than its rows
    assert page.input_value("#kind") == "joint"  # as `deepwide fit`
    assert page.evaluate("window.unchanged")  # it was never loaded again


def test_a_measurement_is_watched_and_cancelled(page: Any, url: str) -> None:
    page.goto(f"{url}/separation#depth=2&width=3")
    says(page, "notes", "5 blocks: 49.")
    page.click("#measure")
    says(page, "certificate", "49: reached, so the rank is proved")
    says(page, "measured", "49")
    page.fill("#depth", "3")
    page.fill("#width", "4")
    page.click("#measure")
    says(page, "stage", "%")
    assert page.evaluate("document.activeElement.id") == "cancel"
    page.keyboard.press("Enter")
    says(page, "stage", "Cancelled after")
    states = json.load(urllib.request.urlopen(f"{url}/api/measurements", timeout=30))
    assert [each["state"] for each in states] == ["cancelled", "done"]


def test_what_is_too_large_to_measure_is_a_sentence_that_stays(browser: Any, url: str) -> None:
    page = browser.new_page()  # the browser logs a refused request to its console: here it is asked for on purpose
    page.goto(f"{url}/separation#depth=2&width=200")
    says(page, "why", "Theorem 1")
    page.click("#measure")
    says(page, "refused", "what would fit")
    page.fill("#width", "3")  # new bounds are shown; the sentence is about what was asked for
    says(page, "notes", "5 blocks: 49.")
    assert "what would fit" in page.text_content("#refused")
    page.close()


def test_many_runs_are_a_few_elements_and_one_corrupt_run_is_one_red_row(
    page: Any, url: str, ids: dict[str, str]
) -> None:
    page.goto(f"{url}/sweeps/{ids['many']}")
    says(page, "standing", f"{MANY - 1:,} of {MANY:,} runs finished, 1 cannot be read")
    assert page.get_attribute("#runs", "aria-rowcount") == str(MANY + 1)
    assert page.locator("#runs .run").count() < 80
    page.eval_on_selector("#runs", "grid => { grid.scrollTop = 1e9; }")
    last = f"[...document.querySelectorAll('#runs .run')].some(row => !row.hidden && row.ariaRowIndex === '{MANY + 1}')"
    wait_until(page, last)
    assert page.locator("#runs .run").count() < 80
    page.click("#states .unreadable")
    wait_until(page, "document.querySelectorAll('#runs .run:not([hidden])').length === 1")
    assert page.locator("#runs .run.bad:not([hidden])").count() == 1
    assert page.inner_text("#runs .run.bad .error").startswith("config.json is unreadable (not JSON)")
    page.click("#runs .run.bad:not([hidden])")
    says(page, "remark", "move the folder away")  # the whole sentence, for which the row has no room
    says(page, "losses-about", "finished runs; lines join")


def test_the_table_works_with_the_keyboard(page: Any, url: str, ids: dict[str, str]) -> None:
    page.goto(f"{url}/sweeps/{ids['small']}")
    says(page, "standing", "32 of 36 runs finished, 1 cannot be read")
    page.focus("#runs")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    wait_until(page, "document.querySelectorAll('#runs .run[aria-selected=true]').length > 0")
    active = page.get_attribute("#runs", "aria-activedescendant")
    assert page.get_attribute(f"#{active}", "aria-rowindex") == "3"
    page.keyboard.press("End")
    wait_until(page, "document.querySelector('#runs .run.active')?.ariaRowIndex === '37'")
    page.select_option("#order", label="loss")
    wait_until(page, "document.querySelector('[aria-sort=ascending]')?.textContent === 'loss'")
    page.eval_on_selector("#runs", "grid => { grid.scrollTop = 0; }")
    losses = (
        "[...document.querySelectorAll('#runs .run:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
    )
    wait_until(page, f"(rows => Number(rows[0]) < Number(rows[5]))({losses}.map(row => row.children[6].textContent))")


def test_script_in_a_run_s_name_and_error_is_text(page: Any, url: str, ids: dict[str, str]) -> None:
    page.goto(f"{url}/sweeps/{ids['evil']}")
    says(page, "states", "1 failed")
    wait_until(page, "document.querySelector('#runs .run.bad') !== null")
    shown = page.text_content("#runs")
    assert "<img src=x" in shown
    assert page.locator("main img, main script").count() == 0
    assert "owned" not in page.title()


def test_studies_show_verdicts_and_pictures(page: Any, url: str) -> None:
    page.goto(f"{url}/studies")
    wait_until(page, "document.querySelectorAll('#studies .card').length === 3")
    says(page, "known", "rank-collapse")
    page.click("#studies a")
    page.wait_for_url("**/studies/*")
    assert "STAIR_k is the words over a, b, c" in page.inner_text("main")
    wait_until(page, "[...document.images].every(each => each.complete)")
    page.click("nav >> text=Sweeps")
    says(page, "sweeps", "small")
    page.go_back()
    assert "owned" not in page.title()


def test_the_planner_asks_the_library(page: Any, url: str) -> None:
    page.goto(f"{url}/")
    page.fill("#public", "llama-3-8b")
    page.click("#judge")
    says(page, "judged", audit("llama-3-8b").verdict.outcome)
    page.click("#counts summary")
    says(page, "count-list", "1,455,226,368")
    page.fill("#budget", "7B")
    wait_until(page, "!document.getElementById('count-list').textContent.includes('1,455,226,368')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Any, url: str, ids: dict[str, str], scheme: str) -> None:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is not installed: npm install axe-core, or pip install axe-core-python")
    # A study's page allows no script, not even axe.
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 900}, bypass_csp=True)
    faults = {}
    for path in PATHS:
        page.goto(url + path.format(**ids))
        page.wait_for_timeout(1200)
        faults[path] = serious_faults(page, source)
    page.close()
    assert {path: found for path, found in faults.items() if found} == {}


def test_every_page_fits_a_phone(browser: Any, url: str, ids: dict[str, str]) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 700})
    for path in PATHS:
        page.goto(url + path.format(**ids))
        page.wait_for_timeout(600)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    page.close()
