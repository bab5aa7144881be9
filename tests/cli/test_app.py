"""What every verb shares: its home, its exit code, an end by interruption or a closed pipe, what a stream may get."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import typer.main

from cli.calling import call
from deepwide.cli.app import HOME, app, console, load, visible


def test_every_verb_has_its_home() -> None:
    """A verb that is not in HOME would load every module each time it is called."""
    load()
    group = typer.main.get_command(app)
    assert set(getattr(group, "commands")) == set(HOME)  # noqa: B009
    for info in app.registered_commands:
        assert info.callback is not None
        name = info.name or info.callback.__name__.replace("_", "-")
        assert info.callback.__module__ == f"deepwide.cli.{HOME[name]}", name


@pytest.mark.parametrize("verb", sorted(HOME))
def test_every_verb_s_help_has_an_example(verb: str) -> None:
    words = {"sweep": [verb, "run"]}.get(verb, [verb])
    text = call(*words, "--help").stdout
    assert "Example" in text


def test_a_worker_loads_the_module_of_sweeps_alone() -> None:
    program = """
import sys
sys.argv[1:] = ["worker", "--help"]
from deepwide.cli import main
try:
    main()
except SystemExit:
    pass
print(sorted(name for name in sys.modules if name.startswith("deepwide.cli.")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "deepwide.cli.sweep" in loaded
    assert not [home for home in set(HOME.values()) - {"sweep"} if f"'deepwide.cli.{home}'" in loaded]


@pytest.mark.parametrize("words", ["plan 1.3B --json", "models", "models --json", "laws"])
def test_a_reader_who_leaves_is_no_failure(words: str) -> None:
    command = [sys.executable, "-m", "deepwide", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        message = process.stderr.read()
    assert (process.returncode, message) == (0, b"")


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("rank --depth 3 --width 4", "nothing was saved; with --out FOLDER finished blocks are."),
        ("rank --depth 3 --width 4 --out ranks", "finished are saved; the same command resumes."),
        ("fit runs.csv", "nothing was saved."),
        ("plan 1.3B", ""),
    ],
)
def test_an_interrupted_command_says_what_it_leaves(words: str, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.cli.app.app", lambda **_: 130)  # as Typer ends on KeyboardInterrupt
    done = call(*words.split())
    assert done.returncode == 130
    assert done.stderr.strip().endswith(left)
    assert done.stderr.startswith("deepwide: Interrupted: ") == bool(left)


def test_an_interrupt_of_a_real_process_is_said_in_one_line() -> None:
    command = [sys.executable, "-m", "deepwide", "rank", "--depth", "3", "--width", "4"]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # in the background of a shell it is ignored
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    ) as process:
        time.sleep(5)
        assert process.poll() is None, "it was to take longer than this"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        message = process.stderr.read()
    assert process.returncode == 130
    *_, last = message.splitlines()
    assert last.startswith("deepwide: Interrupted: ")
    assert "Traceback" not in message


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


def test_markup_of_others_that_somebody_forgot_to_escape_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("a [/b] c\x1b[31m")
    assert capsys.readouterr().out == "a [/b] c\ufffd[31m\n"


@pytest.mark.parametrize("columns", ["", "abc", "-5", "0"])
def test_a_width_that_is_none_is_the_usual_one(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert call("plan", "1B").returncode == 0


def test_an_interrupt_while_libraries_are_imported_is_no_traceback() -> None:
    """Most of a short command's time is imports: Ctrl-C comes there."""
    program = (
        "import builtins, sys\n"
        "from deepwide.cli import main\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest, **more):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv = ['deepwide', 'plan', '1B']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
