"""Output that cannot be encoded, and names that would steer a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepwide.cli.streams import visible


def deepwide(*words: str, encoding: str = "utf-8") -> "subprocess.CompletedProcess[bytes]":
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "deepwide", *words]
    return subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
@pytest.mark.parametrize("words", ["plan 3B", "audit gpt3-175b llama-3-8b", "laws", "plan --help", "count gpt2"])
def test_a_terminal_without_unicode_gets_plain_letters(words: str, encoding: str) -> None:
    done = deepwide(*words.split(), encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.decode(encoding)


def test_numbers_and_signs_survive_in_ascii() -> None:
    there, plain = (deepwide("plan", "3B", encoding=name).stdout.decode(name) for name in ("utf-8", "ascii"))
    assert "48 layers × 2,304 wide" in there
    assert "48 layers x 2,304 wide" in plain
    assert "?" not in plain


def test_json_loses_nothing_in_ascii() -> None:
    there, plain = (json.loads(deepwide("laws", "--json", encoding=encoding).stdout) for encoding in ("utf-8", "ascii"))
    assert there == plain
    assert any("·" in law["details"] for law in plain)


def test_an_error_that_cannot_be_encoded_is_still_one_sentence() -> None:
    done = deepwide("plan", "3×B", encoding="ascii")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"3xB" in done.stderr


def test_control_characters_are_replaced() -> None:
    assert visible("a\x1b[31mb\x07\x9bc\td\n") == "a\ufffd[31mb\ufffd\ufffdc\td\n"


def test_a_file_name_does_not_steer_the_terminal(tmp_path: Path) -> None:
    done = deepwide("audit", str(tmp_path / "evil\x1b]0;title\x07\x9b31m.json"))
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert b"\x07" not in done.stderr
    assert b"\xc2\x9b" not in done.stderr


def test_a_law_s_name_neither_steers_the_terminal_nor_breaks_the_markup(tmp_path: Path) -> None:
    law = {"kind": "transition", "name": "x\x1b[31m[/b]", "a": 4.9, "b": 0.06}
    path = tmp_path / "law.json"
    path.write_text(json.dumps(law))
    done = deepwide("plan", "1.3B", "--law", str(path))
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
