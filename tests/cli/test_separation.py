"""`deepwide bounds` as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.calling import ask, call
from deepwide.separation import Case, Certificate, Store, measure


def test_the_papers_example_shows_all_three_forms() -> None:
    done = call("bounds", "--depth", "6", "--width", "1000", "--heads", "16", "--match", "2")
    assert done.returncode == 0
    assert "Theorem 1" in done.stdout
    for number in ("7.34e+15", "1.55e+17", "1e+25", "133.01", "2293.99", "1474.72", "2.90e63", "4.17e703", "6.288"):
        assert number in done.stdout


def test_json_is_the_answer_with_structured_notes() -> None:
    answer = ask("bounds", "--depth", "50", "--width", "12288", "--heads", "96")
    assert answer["theorem"] == 2
    assert answer["dimension_count"]["log3"] == pytest.approx(2501957378.2064, abs=1e-3)
    assert "open-question" in {note["code"] for note in answer["notes"]}
    assert answer["wider"]["depth"] == 15


def test_on_the_boundary_neither_theorem_is_shown() -> None:
    done = call("bounds", "--depth", "2", "--width", "9")
    assert done.returncode == 0
    assert "neither theorem" in done.stdout
    assert "6.65374" in done.stdout


def test_a_match_is_a_width_or_trivial() -> None:
    assert "5e+17" in call("bounds", "--depth", "2", "--width", str(10**18), "--match", "1").stdout
    words = ("bounds", "--depth", "2", "--width", "12", "--heads", "11", "--match", "1")
    assert "any (trivial)" in call(*words).stdout
    assert [row["width"] for row in ask(*words)["match"]] == [None] * 3


def test_relations_are_shown_beside_the_count() -> None:
    out = call("bounds", "--depth", "3", "--width", "4").stdout
    assert "31460" in out
    assert "31456" in out
    assert "less relations" in out


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_a_picture_is_saved(tmp_path: Path, ending: str, start: bytes) -> None:
    picture = tmp_path / f"p.{ending}"
    assert call("bounds", "--depth", "2", "--width", "3", "--plot", str(picture)).returncode == 0
    assert picture.read_bytes().lstrip().startswith(start)


def test_a_picture_shows_the_certificates_that_are_given_and_no_others(tmp_path: Path) -> None:
    for width in (3, 5, 7):
        Store(tmp_path / "ranks").write(Certificate.of(measure(Case(2, width))))
    words = ["bounds", "--depth", "2", "--width", "2", "--plot", str(tmp_path / "p.json")]

    def widths() -> set[int]:
        text = (tmp_path / "p.json").read_text()
        rows = [row for row in _rows(json.loads(text)) if row["bound"] == "measured"]
        return {row["width"] for row in rows if "width" in row}

    assert call(*words).returncode == 0
    assert widths() == set()
    assert call(*words, "--measured", str(tmp_path / "ranks")).returncode == 0
    assert widths() == {3, 5, 7}


def _rows(chart: object) -> list[dict[str, Any]]:
    if isinstance(chart, dict):
        own = [chart] if "bound" in chart and "log3" in chart else []
        return own + [row for value in chart.values() for row in _rows(value)]
    return [row for value in chart for row in _rows(value)] if isinstance(chart, list) else []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--depth", "12", "--width", "768", "--match", "6"], "Corollary 1 is about"),
        (["--depth", "2", "--width", "3", "--plot", "x.svg", "--measured", "no"], "no certificates in"),
        (["--depth", "2", "--width", "3", "--measured", "no"], "--measured adds ranks to the picture"),
        (["--depth", "2", "--width", "3", "--plot", "x.gif"], "must end in"),
        (["--depth", "2"], "--width"),
        (["--depth", "two", "--width", "3"], "valid integer"),
    ],
)
def test_bad_input_gets_one_sentence(words: list[str], sentence: str) -> None:
    done = call("bounds", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("deepwide: ")
    assert len(done.stderr.splitlines()) == 1
    assert sentence in done.stderr


def test_help_has_an_example() -> None:
    assert "Example" in call("bounds", "--help").stdout


def test_importing_the_room_imports_neither_torch_nor_altair() -> None:
    script = "import deepwide.separation, deepwide.cli.rank, sys; print({'torch', 'altair'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
