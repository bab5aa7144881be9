"""The page in a real browser: dials, map, audit, copies, address, keyboard, accessibility, and no network."""

import json
import random
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.web import compare
from benchmarks.web.axe import axe_source, serious_faults
from benchmarks.web.browser import chromium, missing, saved_page
from benchmarks.web.settings import FITTED, lines_of

from cli.calling import ask
from deepwide.catalogue import all_models, find_model
from deepwide.cli.tables import show_audit
from deepwide.figures import LAW_COLOURS
from deepwide.laws import save_law
from deepwide.planning import audit, plan
from deepwide.quantities import show_bytes, show_count
from deepwide.shape import FAMILIES, Shape, read_config, write_config

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")

SAMPLE = 100  # settings compared in every test run; benchmarks/web/compare.py does 10,000
FILE = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "application/json" }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved_page(tmp_path_factory.mktemp("page"), tuple(FITTED.values()))


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page from disk, without a network; a console message or an error at any time fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    context.set_default_timeout(60_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    for gesture in ("fill", "select_option", "check", "click"):
        setattr(opened, gesture, then_drawn(opened, getattr(opened, gesture)))
    opened.goto(address)
    yield opened
    context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def then_drawn(page: Any, gesture: Callable[..., None]) -> Callable[..., None]:
    """The gesture, and the frame in which the page answers it: without it a test reads the answer before."""

    def call(*args: Any, **options: Any) -> None:
        gesture(*args, **options)
        wait_for_frame(page)

    return call


def wait_for_frame(page: Any) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shape_of(page: Any) -> str:
    """The recommended shape, once the page has drawn it."""
    wait_for_frame(page)
    return str(page.inner_text("#size"))


def wait_until(page: Any, expression: str) -> None:
    """Ask until it is so; Playwright's own waiting evaluates text in the page, which the page's policy refuses."""
    deadline = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def open_all_settings(page: Any) -> None:
    """Unfold what is folded."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


def drop(page: Any, name: str, text: str) -> None:
    """Drop a file, and wait until the page has answered."""
    page.evaluate(FILE, [name, text])
    wait_until(page, "!document.getElementById('audit').hidden")


def test_dialling_a_budget_changes_the_shape_and_the_map(page: Any) -> None:
    assert shape_of(page) == "42 layers × 1,536 wide"
    before = page.get_attribute("#map circle.plan", "cx")
    page.fill("#budget", "70B")
    answer = plan("70B").shape
    assert shape_of(page) == f"{answer.depth} layers × {answer.width:,} wide"
    assert float(page.get_attribute("#map circle.plan", "cx")) > float(before) + 50
    page.fill("#budget", "1.3B")
    page.eval_on_selector("#dial", "dial => { dial.value = 500; dial.dispatchEvent(new Event('input')); }")
    answer = plan(page.input_value("#budget")).shape
    assert shape_of(page) == f"{answer.depth} layers × {answer.width:,} wide"
    assert page.input_value("#budget") == "316M"


def test_the_dial_reaches_down_to_what_a_law_of_the_page_was_fitted_on(page: Any, browser: Any, tmp_path: Path) -> None:
    assert page.inner_text("#budget-about") == "Block parameters (without embeddings), 1M to 10T on the dial."
    assert page.get_attribute("#dial", "max") == "1400"
    plain = browser.new_page()
    plain.goto(saved_page(tmp_path))
    assert "10M to 10T" in plain.inner_text("#budget-about")
    assert plain.get_attribute("#dial", "max") == "1200"
    plain.close()


def test_laws_of_one_name_are_told_apart_and_a_law_s_file_is_a_name_for_it(browser: Any, tmp_path: Path) -> None:
    one, other = FITTED["own ridge"], FITTED["own shift"].model_copy(update={"name": "own ridge"})
    files = tuple(save_law(law, tmp_path / name) for law, name in ((one, "a.json"), (other, "b.json")))
    page = browser.new_page()
    page.goto(saved_page(tmp_path, files) + "#law=b.json&budget=300M")
    assert page.input_value("#law") == "own ridge (b.json)"
    answer = plan("300M", law=other).shape
    assert shape_of(page) == f"{answer.depth} layers × {answer.width:,} wide"
    assert page.inner_text("#law-keys li:first-child") == "own ridge (b.json) law"
    assert "--law b.json" in page.inner_text("#command")
    page.select_option("#law", "own ridge")
    shape_of(page)
    assert "Fitted on 1M to 5B block parameters" in page.inner_text("#law-about")
    page.close()


def test_keys_of_the_map_are_drawn_as_what_they_explain(page: Any) -> None:
    shown = ["fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-dasharray"]
    style = "(each, names) => names.map(name => getComputedStyle(each)[name])"
    for mark in ("plan", "candidate", "model", "budget", "equal", "threshold", "band.law", "band.data"):
        key, drawn = (page.eval_on_selector(f"{where} .{mark}", style, shown) for where in (".legend .key", "#map"))
        assert key == drawn, mark
    lines = page.evaluate("[...document.querySelectorAll('#law-keys line')].map(each => getComputedStyle(each).stroke)")
    assert len(set(lines)) == len(lines) == len(LAW_COLOURS)


def test_nothing_is_blank_below_the_fold_once_the_dial_rests(page: Any) -> None:
    page.fill("#budget", "7B")
    wait_until(page, "!document.getElementById('numbers').classList.contains('moving')")
    hidden = "getComputedStyle(document.querySelector('#numbers > section:last-child')).contentVisibility"
    assert page.evaluate(hidden) == "visible"


def test_in_print_no_table_is_cut(page: Any) -> None:
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins
    open_all_settings(page)
    page.fill("#zero", "1")  # with memory per device
    assert page.is_visible("#shares-section")
    page.emulate_media(media="print")
    ends = page.evaluate("[...document.querySelectorAll('table')].map(each => each.getBoundingClientRect().right)")
    assert len(ends) == 3
    assert min(ends) > 0
    assert max(ends) <= 718


def test_memory_per_device_is_shown_only_of_what_is_split(page: Any) -> None:
    assert page.is_hidden("#shares-section")
    open_all_settings(page)
    page.fill("#data_parallel", "4")
    page.fill("#zero", "3")
    assert page.is_visible("#shares-section")
    assert page.locator("#shares tr").count() == len(plan("1.3B", data_parallel=4, zero=3).candidates)
    assert "--data-parallel 4 --zero 3" in page.inner_text("#command")
    page.fill("#zero", "4")
    assert "Zero must be 0, 1, 2 or 3" in page.inner_text("#refusal")


def test_the_other_dials_reach_the_planner(page: Any) -> None:
    page.fill("#kv_heads", "8")
    page.fill("#vocab", "128k")
    page.fill("#tensor_parallel", "8")
    page.select_option("#law", "nanochat")
    page.check("input[value=total]", force=True)
    answer = plan(
        page.input_value("#budget"), kind="total", kv_heads=8, vocab="128k", tensor_parallel=8, law="nanochat"
    )
    assert shape_of(page) == f"{answer.shape.depth} layers × {answer.shape.width:,} wide"
    assert "(8 key/value)" in page.inner_text("#rest")


def test_changing_the_kind_of_budget_keeps_about_the_same_model(page: Any) -> None:
    for kind in ("total", "flops", "memory", "block"):
        page.check(f"input[value={kind}]", force=True)
        depth = int(shape_of(page).split()[0])
        assert 38 <= depth <= 46, kind


def test_dragging_on_the_map_sets_the_size_under_the_pointer(page: Any) -> None:
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.3
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    page.mouse.up()
    shape_of(page)
    assert re.fullmatch(r"[\d.]+[BT]", page.input_value("#budget"))
    line = page.eval_on_selector("#map path.budget", "path => path.getTotalLength()")
    assert line > 100
    assert page.inner_text("#title") == f"Plan for {page.input_value('#budget')} block parameters"


def test_a_depth_can_be_fixed_from_the_table_and_freed_again(page: Any) -> None:
    page.click("#candidates tr:first-child button")
    assert shape_of(page).startswith("21 layers")
    assert "(depth is fixed)" in page.inner_text("#facts")
    page.click("#candidates tr.chosen button")
    assert shape_of(page) == "42 layers × 1,536 wide"


def test_a_sample_of_settings_shows_what_the_command_line_prints(page: Any) -> None:
    settings = compare.many_settings(SAMPLE, seed=20)
    expected = compare.expected_lines(settings)
    assert sum(lines[0].startswith("refused") for lines in expected) < SAMPLE / 4
    assert compare.differences(settings, expected, compare.shown_lines(page, settings)) == []


def test_numbers_are_written_as_python_writes_them(page: Any) -> None:
    """Above all where a number lies halfway between two: Python rounds to even, JavaScript away from zero."""
    draw = random.Random(1)
    halves = [whole + part / 16 for whole in (0, 1, 2, 41, 42, 1024, 99_999) for part in range(17)]
    sizes = [draw.uniform(1, 10) * 10**power for power in range(-7, 24) for _ in range(20)]
    round_ones = [mantissa * 10.0**power / 8 for mantissa in range(1, 1000, 7) for power in (0, 3, 6, 9, 12, 18)]
    values = [*halves, *(-each for each in halves), *sizes, *round_ones, 999_500.0, 999_499.9, 1e21, 5e-324, 0.0, -0.0]
    expected = [[f"{x:.0f}", f"{x:.1f}", f"{x:.2f}", f"{x:.2g}", f"{x:.3g}", f"{x:g}"] for x in values]
    shown = page.evaluate(
        "values => values.map(x => { const { fixed, general } = deepwide.formats; "
        "return [fixed(x, 0), fixed(x, 1), fixed(x, 2), general(x, 2), general(x, 3), general(x, 6)]; })",
        values,
    )
    assert shown == expected
    counts = [x for x in values if x >= 1]
    script = "counts => counts.map(x => [deepwide.formats.showCount(x), deepwide.formats.showBytes(x)])"
    assert page.evaluate(script, counts) == [[show_count(x), show_bytes(x)] for x in counts]


def test_every_public_model_gets_the_verdict_of_the_command_line(page: Any, tmp_path: Path) -> None:
    configs = [write_config(m.shape, m.family) for m in all_models() if m.family][::3]
    # Depths that no amount of parameters or tokens makes up, or over 100 times as many.
    far = [Shape(depth=depth, width=width, vocab=50257) for depth, width in ((4, 8192), (2, 2048), (400, 768))]
    configs += [write_config(shape, "gpt2") for shape in far]
    expected, texts = [], []
    for config in configs:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        texts.append(path.read_text())
        answer = audit(path, name="config.json")
        expected.append(lines_of(lambda console, answer=answer: show_audit(answer, console)))
    shown = " ".join(line for lines in expected[-3:] for line in lines)
    assert "to no amount) parameters" in shown
    assert "over 100×" in shown
    assert page.evaluate("texts => texts.map(text => deepwide.audit(text))", texts) == expected


def test_an_unknown_family_is_read_with_the_assumptions_of_the_command_line(page: Any, tmp_path: Path) -> None:
    sizes = {"hidden_size": 512, "num_hidden_layers": 9, "num_attention_heads": 8, "intermediate_size": 1408,
             "vocab_size": 32000}  # fmt: skip
    configs = [sizes | more for more in (
        {}, {"model_type": "newest"}, {"hidden_act": "relu2", "attention_bias": True}, {"hidden_act": "it's"},
        {"hidden_act": "silu", "use_bias": True, "use_qk_norm": True, "num_key_value_heads": 2},
    )]  # fmt: skip
    expected, texts = [], [json.dumps(config) for config in configs]
    for text in texts:
        path = tmp_path / "config.json"
        path.write_text(text)
        answer = audit(path, name="config.json")
        assert any(note.code == "assumed" for note in answer.notes)
        expected.append(lines_of(lambda console, answer=answer: show_audit(answer, console)))
    assert page.evaluate("texts => texts.map(text => deepwide.audit(text))", texts) == expected


def test_a_dropped_config_is_audited_and_stands_on_the_map(page: Any) -> None:
    config = write_config(find_model("llama-3-8b").shape, "llama")
    drop(page, "config.json", json.dumps(config))
    answer = audit("llama-3-8b", name="config.json")
    assert page.inner_text("#verdict") == answer.words
    assert page.inner_text("#audit-sentence") == answer.sentence
    assert page.locator("#map path.audited.too-shallow").count() == 1
    page.select_option("#law", "nanochat")
    shape_of(page)
    assert page.inner_text("#verdict") == audit("llama-3-8b", law="nanochat").words
    page.click("#audit-close")
    assert page.locator("#audit").is_hidden()
    assert page.locator("#map path.audited").count() == 0


def test_a_chosen_file_is_audited_too(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(write_config(find_model("gpt2").shape, "gpt2")))
    page.set_input_files("#file", str(path))
    wait_until(page, "!document.getElementById('audit').hidden")
    assert page.inner_text("#verdict") == audit("gpt2").words


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[1]", "must hold a JSON object, not list."),
        ("1.5", "must hold a JSON object, not float."),
        ('{"model_type": "zamba2"}', "state-space layers"),
        ('{"model_type": "mamba"}', "the page does not read the family mamba; the command line counts it exactly"),
        ('{"model_type": "some_moe", "num_experts": 8}', "has experts (num_experts)"),
        ('{"model_type": "llama"}', "this llama config lacks depth (num_hidden_layers)"),
        ("[" * 100_000, "nested too deep"),
        ('{"model_type": "llama", "num_hidden_layers": 1e3, "hidden_size": 64, "num_attention_heads": 1, '
         '"vocab_size": 9, "intermediate_size": 9}', "depth: input should be a valid integer, not '1000.0'."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_gets_one_sentence(page: Any, text: str, sentence: str) -> None:
    drop(page, "config.json", text)
    shown = page.inner_text("#audit-refusal")
    assert sentence in shown
    assert shown.startswith("config.json")
    assert page.locator("#audit-answer").is_hidden()
    assert shape_of(page) == "42 layers × 1,536 wide"  # the plan is still there


def test_a_huge_file_is_refused_without_being_read(page: Any) -> None:
    big = FILE.replace("[text]", '["x".repeat(11 * 2 ** 20)]')
    page.evaluate(big, ["config.json", ""])
    wait_until(page, "!document.getElementById('audit').hidden")
    assert page.inner_text("#audit-refusal") == "config.json is too large for a config (11,534,336 bytes)."


def test_what_is_no_text_is_refused(page: Any) -> None:
    page.evaluate(FILE.replace("[text]", "[new Uint8Array([0xff, 0xfe, 0x00])]"), ["config.json", ""])
    wait_until(page, "!document.getElementById('audit').hidden")
    assert page.inner_text("#audit-refusal") == "config.json could not be read as UTF-8 text."


def test_script_in_a_model_s_name_is_text(page: Any) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    config = {"model_type": evil, "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8,
              "intermediate_size": 2048, "vocab_size": 1000}  # fmt: skip
    drop(page, f"{evil}.json", json.dumps(config))
    assert evil in page.inner_text("#audit-name")
    assert "<img" in page.inner_text("#audit-notes")
    assert page.locator("#audit img, #audit script, #map img").count() == 0
    assert page.title() != "owned"


def test_the_address_holds_the_state_and_gives_it_back(page: Any, browser: Any, address: str) -> None:
    page.fill("#budget", "24 GB")
    page.check("input[value=memory]", force=True)
    page.fill("#budget", "80GiB")
    page.fill("#kv_heads", "8")
    page.select_option("#law", "own ridge")
    open_all_settings(page)
    page.fill("#bandwidth", "3.35TB/s")
    shape = shape_of(page)
    wait_until(page, "location.hash.includes('bandwidth=3.35TB/s')")
    fragment = page.evaluate("location.hash")
    assert "budget=80GiB" in fragment
    other = browser.new_page()
    other.goto(address + fragment)
    assert shape_of(other) == shape
    assert other.locator("#bandwidth").is_visible()  # what is not as usual is not folded away
    assert [other.input_value(f"#{name}") for name in ("budget", "kv_heads", "law", "bandwidth")] == [
        "80GiB", "8", "own ridge", "3.35TB/s"
    ]  # fmt: skip
    other.evaluate("location.hash = '#budget=7B'")
    wait_until(other, "document.getElementById('budget').value === '7B'")
    assert other.input_value("#kv_heads") == ""
    other.close()


def test_an_address_with_nonsense_says_so(page: Any, browser: Any, address: str) -> None:
    other = browser.new_page()
    for fragment, sentence in (
        ("budgt=7B", "settings that this page does not know: 'budgt'"),
        ("law=nobody", "Law must be one of levine"),
        ("budget=lots", "'lots' is not a budget"),
        ("kv_heads=-1", "Kv heads must be a whole number, not '-1'"),
        ("kind=%3Cb%3E", "Kind must be one of block, total, flops, memory, not '<b>'"),
        ("family=mixtral", "Family must be one of llama"),
    ):
        other.goto("about:blank")
        other.goto(f"{address}#{fragment}")
        assert sentence in other.inner_text("#refusal"), fragment
        if not fragment.startswith("budgt"):
            assert other.locator("#numbers").is_hidden(), "no number may be shown that was not asked for"
    other.close()
    assert shape_of(page)


def test_the_copied_config_is_the_plan_s(page: Any, tmp_path: Path) -> None:
    page.fill("#budget", "7B")
    page.fill("#kv_heads", "8")
    shape_of(page)
    page.click("#copy-config")
    wait_until(page, "document.getElementById('copied').textContent !== ''")
    text = page.evaluate("navigator.clipboard.readText()")
    answer = plan("7B", kv_heads=8)
    assert json.loads(text) == write_config(answer.shape, answer.family)
    assert read_config(json.loads(text)).shape == answer.shape
    with page.expect_download() as download:
        page.click("#save-config")
    download.value.save_as(tmp_path / "config.json")
    assert (tmp_path / "config.json").read_text() == text


def test_configs_of_all_dense_families_are_the_library_s(page: Any) -> None:
    families = page.evaluate("[...document.querySelectorAll('#family option')].map(each => each.value)")
    assert set(families) == {"", *(name for name, family in FAMILIES.items() if not family.has_experts)}
    for family in filter(None, families):
        expected = write_config(plan("1.3B", family=family).shape, family)
        assert json.loads(page.evaluate("family => deepwide.config({ family })", family)) == expected


def test_the_copied_command_makes_the_same_plan(page: Any) -> None:
    page.check("input[value=memory]", force=True)
    page.fill("#budget", "24 GB")
    page.fill("#kv_heads", "4")
    open_all_settings(page)
    page.select_option("#tied", "true")
    page.select_option("#inference_precision", "int4")
    page.check("#at_most")
    shape = shape_of(page)
    page.click("#copy-command")
    wait_until(page, "document.getElementById('copied').textContent !== ''")
    program, *words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert program == "deepwide"
    answer = ask(*words)["shape"]
    assert shape == f"{answer['depth']} layers × {answer['width']:,} wide"
    assert answer["tied"] is True


def test_it_works_with_the_keyboard_alone(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "block"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('[name=kind]:checked').value") == "total"
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("13B")
    assert shape_of(page).startswith(str(plan("13B", kind="total").shape.depth))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "dial"
    before = page.input_value("#budget")
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    assert page.input_value("#budget") != before
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"law", "vocab", "kv_heads", "file", "copy-config", "copy-command", "fix"} <= seen


def test_a_screen_reader_is_told_the_answer(page: Any) -> None:
    page.fill("#budget", "7B")
    wait_until(page, "document.getElementById('status').textContent.startsWith('55 layers')")
    assert page.get_attribute("#map", "role") == "img"
    assert "55 layers × 3,328 wide" in page.text_content("#map-title")
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(each => !each.labels?.length && "
        "!each.textContent && !each.ariaLabel).map(each => each.outerHTML)"
    )
    assert unlabelled == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Any, address: str, scheme: str) -> None:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is not installed: npm install axe-core, or pip install axe-core-python")
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    page.evaluate(FILE, ["config.json", json.dumps(write_config(find_model("gpt2").shape, "gpt2"))])
    wait_until(page, "!document.getElementById('audit').hidden")
    open_all_settings(page)
    assert serious_faults(page, source) == []
    page.close()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_a_phone(browser: Any, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.goto(address + "#budget=7B&kv_heads=8")
    assert shape_of(page) == "55 layers × 3,072 wide"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#size").bounding_box()["y"] < 700  # the answer is in sight without scrolling
    page.close()


# Names of laws, and of the theory's line, that some point of the budget's line lies in
COVERED = """(() => {
  const line = document.querySelector("#map .budget");
  const onScreen = line.getScreenCTM();
  const long = line.getTotalLength();
  const at = (i) => line.getPointAtLength((long * i) / 399).matrixTransform(onScreen);
  const points = Array.from({ length: 400 }, (_, i) => at(i));
  return [...document.querySelectorAll("#map .curve-label:not(.chosen), #map .threshold-label")].filter((each) => {
    const box = each.getBoundingClientRect();
    return points.some(({ x, y }) => x > box.left && x < box.right && y > box.top + 2 && y < box.bottom - 2);
  }).map((each) => each.textContent);
})()"""


# Sizes whose label some law's curve runs through
STRUCK = """(() => {
  const curves = [...document.querySelectorAll("#map path.curve, #map path.threshold")].flatMap((path) => {
    const onScreen = path.getScreenCTM();
    const long = path.getTotalLength();
    const at = (i) => path.getPointAtLength(4 * i).matrixTransform(onScreen);
    return Array.from({ length: Math.min(2000, Math.floor(long / 4)) }, (_, i) => at(i));
  });
  return [...document.querySelectorAll("#map .equal-label:not(.covered)")].filter((each) => {
    const box = each.getBoundingClientRect();
    return curves.some(({ x, y }) => x > box.left + 2 && x < box.right - 2 && y > box.top + 4 && y < box.bottom - 4);
  }).map((each) => each.textContent);
})()"""


def test_no_law_runs_through_the_label_of_a_size(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    for law in ("levine", "pooled", "own surface"):
        page.evaluate("given => deepwide.show(given)", {"budget": "1.3B", "law": law})
        assert len(page.query_selector_all("#map .equal-label:not(.covered)")) >= 4
        assert page.evaluate(STRUCK) == []
    page.close()


@pytest.mark.parametrize("width", [320, 1280])
def test_labels_on_the_map_do_not_overlap(browser: Any, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    for budget in ("10M", "350M", "1.3B", "7B", "70B", "1T", "10T"):
        for law in ("levine", "gemstones", "own surface"):
            page.evaluate("given => deepwide.show(given)", {"budget": budget, "law": law})
            boxes = page.evaluate(
                "[...document.querySelectorAll('#map text:not(.axis-title):not(.covered)')].map(each => "
                "[each.textContent, ...(box => [box.left, box.top + 2, box.right, box.bottom - 2])"
                "(each.getBoundingClientRect())])"
            )
            assert page.evaluate(COVERED) == [], f"the budget's line runs through a law's name at {budget}, {law}"
            for i, (one, *a) in enumerate(boxes):
                for other, *b in boxes[:i]:
                    apart = a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
                    assert apart, f"{one} meets {other} at {budget}, {law}"
    page.close()
