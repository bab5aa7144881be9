"""Charts as files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import pytest

import deepwide.figures
from deepwide.errors import DeepwideError
from deepwide.figures import check_suffix, clean, save_chart
from deepwide.figures.save import chart_spec
from deepwide.figures.style import inline


def chart(name: str = "run") -> Any:
    return alt.Chart(inline([{"x": 1, "name": name}]), title=name).mark_point().encode(x="x:Q", color="name:N")


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".svg", b"<svg"), (".png", b"\x89PNG"), (".PDF", b"%PDF"), (".html", b"<!DOCTYPE html>"), (".json", b"{")],
)
def test_the_ending_names_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = save_chart(chart(), tmp_path / f"new/picture{suffix}")
    assert path.read_bytes().lstrip().startswith(start)


def test_json_is_the_specification_of_the_chart(tmp_path: Path) -> None:
    spec = json.loads(save_chart(chart(), tmp_path / "picture.json").read_text())
    assert spec["mark"]["type"] == "point"


@pytest.mark.parametrize("name", ["picture.gif", "picture", "picture.svg.txt"])
def test_other_endings_are_refused_before_any_work(name: str) -> None:
    with pytest.raises(DeepwideError, match=r"must end in \.svg, \.png, \.pdf, \.html, \.json\.$"):
        check_suffix(name)


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "x.svg").mkdir()
    with pytest.raises(DeepwideError, match="is a folder"):
        check_suffix(tmp_path / "x.svg")


def test_a_name_cannot_end_the_script_of_a_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(document.domain)</script>"
    page = save_chart(chart(evil), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alert(document.domain)" in page
    assert evil not in page
    assert "<script>alert" not in page


def test_checking_an_ending_loads_no_plotting_library() -> None:
    program = (
        "import sys; from deepwide.figures import check_suffix; check_suffix('a.svg'); "
        "print([name for name in ('altair', 'numpy', 'vl_convert', 'deepwide.laws') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_every_picture_is_offered_at_the_door() -> None:
    for name in deepwide.figures.__all__:
        assert getattr(deepwide.figures, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'portrait'"):
        _ = deepwide.figures.portrait


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_name_that_would_steer_a_terminal_does_not_end_the_process(tmp_path: Path, suffix: str) -> None:
    """vl-convert aborts, without an exception, at an escape character."""
    evil = chart("a\x1b[0m\u202eb\x07")
    assert save_chart(evil, tmp_path / f"chart{suffix}").stat().st_size > 0
    assert clean("a\x1b") == "a\ufffd"


def test_no_text_of_a_chart_steers_the_library_that_draws_it() -> None:
    text = json.dumps(chart_spec(chart("a\x1b[0m\u202eb")), ensure_ascii=False)
    assert "a\N{REPLACEMENT CHARACTER}[0m\N{REPLACEMENT CHARACTER}b" in text
    assert "\\u001b" not in text
    assert "\u202e" not in text


def test_where_addresses_are_limited_a_sentence_says_that_a_picture_cannot_be_drawn(tmp_path: Path) -> None:
    """The drawing library reserves tens of GB of addresses, and ends its process where it may not (ulimit -v)."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30));"
        "from figures.test_save import chart; from deepwide.figures import save_chart;"
        "from deepwide.errors import DeepwideError\n"
        "try: save_chart(chart(), sys.argv[1])\nexcept DeepwideError as error: print(error)"
    )
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent.parent}:{os.environ.get('PYTHONPATH', '')}"}
    words = [sys.executable, "-c", program, str(tmp_path / "a.svg")]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "a picture cannot be drawn within 8.59 GB of addresses (ulimit -v)" in run.stdout
    assert not (tmp_path / "a.svg").exists()


def test_within_a_limit_that_is_wide_enough_another_process_draws_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = save_chart(chart(), tmp_path / "here.svg").read_bytes()
    monkeypatch.setattr("deepwide.figures.save._address_space", lambda: 1 << 44)
    assert save_chart(chart(), tmp_path / "there.svg").read_bytes() == here
