"""`deepwide study`: the list, one study explained, a run, a dry run; mistakes cost a sentence and exit code 2."""

import errno
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide import files
from deepwide.cli.study import progress
from deepwide.errors import missing
from deepwide.studies import registry
from deepwide.sweeping import CellState, SweepState
from studies.fakes import Sums, Toys


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"sums": Sums(), "toys": Toys()}
    monkeypatch.setattr(registry, "studies", lambda: known)
    monkeypatch.setattr("deepwide.studies.studies", lambda: known)
    monkeypatch.chdir(tmp_path)


QUICK = ("study", "run", "toys", "--set", "depths=[1]", "--set", "steps=5")


def test_the_list_names_every_study_with_its_question() -> None:
    done = call("study")
    assert done.returncode == 0
    assert "toys" in done.stdout
    assert "Do toys finish?" in done.stdout
    assert [study["name"] for study in ask("study")] == ["sums", "toys"]


def test_a_study_is_explained_with_its_rules_and_what_it_costs() -> None:
    done = call("study", "show", "toys")
    for words in ("every toy finishes", "reproduced if all runs are done", "Toys are trained.", "cpu    trains 2 runs"):
        assert words in done.stdout
    shown = ask("study", "show", "toys")
    assert [preset["runs"] for preset in shown["presets"]] == [2, 2, 3]
    assert shown["claims"][0]["rule"] == "reproduced if all runs are done"


def test_a_run_ends_in_verdicts_and_a_folder(tmp_path: Path) -> None:
    done = call(*QUICK)
    assert done.returncode == 0, done.stderr
    assert "reproduced: every toy finishes Measured: done: 1 (95%: 1 to 1)." in done.stdout
    assert "toys (quick). Training took" in done.stdout
    assert "toys: 1 of 1 run finished" in done.stderr
    page = (tmp_path / "studies" / "toys-quick" / "page.md").read_text()
    assert "\n    deepwide study run toys --preset quick --set 'depths=[1]' --set steps=5\n" in page
    again = ask(*QUICK, "--out", "studies/toys-quick")
    assert again["verdicts"][0]["outcome"] == "reproduced"
    assert again["settings"] == {"depths": [1], "steps": 5}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert ask(*QUICK, "--dry-run")["runs"] == 1
    assert "quick  trains 1 run" in call(*QUICK, "--dry-run").stdout
    assert list(tmp_path.iterdir()) == []


def test_the_list_is_readable_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = call("study").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.strip() for line in lines if "claim" in line or "Estimated" in line] == [
        "1 claim: adds", "1 claim: finishes", "Estimated time on two idle cores: quick 3 s, cpu 2.2 min",
    ]  # fmt: skip
    assert [study["expected_seconds"] for study in ask("study")] == [{}, {"quick": 3, "cpu": 130}]


def test_the_name_of_a_study_alone_points_to_what_takes_it() -> None:
    done = call("study", "toys")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "deepwide: toys is a study: deepwide study show toys explains it, deepwide study run toys runs it.\n"
    )
    assert "No such command 'tyos'" in call("study", "tyos").stderr


def test_settings_are_shown_for_each_preset_with_what_they_mean() -> None:
    lines = call("study", "show", "sums").stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("setting"))
    assert lines[start].split() == ["setting", "quick", "cpu", "paper", "meaning"]
    assert [line.split(maxsplit=4) for line in lines[start + 1 : start + 4]] == [
        ["parts", "4", "4", "4"],
        ["steps", "3", "5", "3", "terms of each part"],
        ["data", '""', '""', '"lost"', "a file that is needed"],
    ]
    assert "To change one: deepwide study run sums --set steps=5" in lines
    assert [row["setting"] for row in ask("study", "show", "sums")["settings"]] == ["parts", "steps", "data"]


def test_a_preset_whose_data_are_missing_is_said_in_a_line() -> None:
    done = call("study", "show", "sums")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "paper  cannot be run here: there is no file lost: set data to one"
    assert ask("study", "show", "sums")["presets"][2]["missing"] == "there is no file lost: set data to one."
    dry = call("study", "run", "sums", "--preset", "paper", "--dry-run")
    assert (dry.returncode, dry.stderr) == (2, "deepwide: there is no file lost: set data to one.\n")


def test_a_dry_run_says_what_is_in_the_folder() -> None:
    run = ("study", "run", "sums", "--out", "s")
    assert call(*run, "--dry-run").stdout.splitlines()[-1] == "s holds no study: it would start there."
    assert call(*run).returncode == 0
    assert call(*run, "--dry-run").stdout.splitlines()[-1] == (
        "This study in s is finished: it would be judged again, and its page written anew; nothing would be trained."
    )
    refused = call(*run, "--dry-run", "--set", "steps=9")
    assert refused.returncode == 2
    assert refused.stderr == call(*run, "--set", "steps=9").stderr
    assert "s holds sums (quick) with other settings: steps is 3, not 9." in refused.stderr


def test_json_is_all_that_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    done = call(*QUICK, "--json")
    json.loads(done.stdout)
    assert done.stderr == ""
    assert capfd.readouterr() == ("", "")


def state(done: int, cells: int, seconds: float | None = None) -> SweepState:
    states = [CellState(id=str(n), name="", state="done" if n < done else "waiting") for n in range(cells)]
    return SweepState(
        name="s", runs="", cells=tuple(states), counts={}, left=cells - done, expected_seconds=seconds
    )  # fmt: skip


def test_hundreds_of_runs_give_few_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: round(now, 3))
    with progress(quiet=False) as report:
        assert report is not None
        for done in range(301):
            now = done * 0.1
            report("grid", state(done, 300, 90.0 - 0.3 * done))
        for number in range(100):
            now += 0.1
            report(f"measuring {number}", None)
    lines = [line[len("00:00:00 ") :] for line in capsys.readouterr().err.splitlines()]
    assert lines[0] == "grid: 0 of 300 runs finished, about 90 s left"
    assert lines[1:] == [
        "grid: 100 of 300 runs finished, about 60 s left",
        "grid: 200 of 300 runs finished, about 30 s left",
        "grid: 300 of 300 runs finished",
        "measuring 0",
    ]


def test_the_time_left_alone_is_worth_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress(quiet=False) as report:
        assert report is not None
        for second in range(3600):
            now = float(second)
            report("grid", state(0, 4, 7200.0 - second))
    assert 10 <= len(capsys.readouterr().err.splitlines()) <= 30


def test_a_terminal_gets_one_line_that_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress(quiet=False) as report:
        assert report is not None
        report("grid", state(3, 300, 90.0))
        report("a [b] name", None)
        time.sleep(0.3)
    shown = screen.getvalue()
    assert "a [b] name" in shown
    assert shown.count("\n") == 1, "the line ends once, and is wiped"


STARTED_BY_ANOTHER = '{"study": "others", "preset": "cpu", "settings": {}, "rule_hash": "", "code": {}}'
STOPPED = """
import os, signal, sys
from deepwide.studies import registry
from studies.fakes import Sums, Toys
from deepwide.cli import main

def interrupt(number):
    if number == 2:
        os.kill(os.getpid(), signal.{signal})

class Stopped(Toys):
    def measure(self, settings, workplace):
        workplace.report("measuring")
        os.kill(os.getpid(), signal.{signal})

Sums.before = staticmethod(interrupt)
registry.studies = lambda: {{"toys": Stopped(), "sums": Sums()}}
sys.argv = ["deepwide", "study", "run", {name!r}, "--set", "steps=5"]
main()
"""


def stopped(name: str, signal: str) -> "subprocess.CompletedProcess[str]":
    """A study that gets a signal while it measures."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", STOPPED.format(name=name, signal=signal)],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number", "saved"),
    [
        ("toys", "SIGINT", "2 finished runs and the checkpoints of other runs"),
        ("sums", "SIGINT", "2 finished parts of the measuring"),
        ("sums", "SIGTERM", "2 finished parts of the measuring"),
    ],
)
def test_a_study_interrupted_while_measuring_stops_at_once_and_says_what_is_saved(
    name: str, number: str, saved: str
) -> None:
    done = stopped(name, number)
    assert done.returncode == 130, done.stderr
    *_, last = done.stderr.splitlines()
    assert last == f"deepwide: Interrupted: {saved} are saved in studies/{name}-quick; the same command resumes."
    assert "Stopping in good order" not in done.stderr
    again = call("study", "run", name, "--set", "steps=5")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("show", "toy"),
        ("run", "tyos"),
        ("run", "toys", "--set", "step=1"),
        ("run", "toys", "--set", "steps"),
        ("run", "toys", "--set", "steps=many"),
        ("run", "toys", "--set", "steps=[1]"),
        ("run", "toys", "--set", "steps.of=1"),
        ("run", "toys", "--set", "depths=3,x"),
        ("run", "toys", "--set", "depths=[1.5]"),
        ("run", "toys", "--set", "depths=[nan]"),
        ("run", "toys", "--preset", "huge"),
        ("run", "toys", "--on", "mars"),
        ("run", "toys", "--processes", "0"),
        ("run",),
        ("rnu", "toys"),
        ("run", "toys", "--out", "file"),
        ("run", "toys", "--out", "other"),
        ("run", "toys", "--out", "other", "--dry-run"),
        ("run", "toys", "--out", "file", "--dry-run"),
        ("run", "toys", "--out", "broken-start"),
        ("run", "toys", "--out", "/proc/nowhere"),
    ],
)
def test_a_mistake_costs_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for folder, text in (("other", STARTED_BY_ANOTHER), ("broken-start", "{")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "started.json").write_text(text)
    done = call("study", *words)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.strip().endswith((".", "?", "--help"))


@pytest.mark.parametrize(
    ("name", "number", "sentence"),
    [
        ("started.json", errno.EROFS, "Read-only file system"),
        ("measured.json", errno.ENOSPC, "the disk is full"),
        ("study.json", errno.ENOSPC, "the disk is full"),
        ("parts", errno.ENOSPC, "the disk is full"),
    ],
)
def test_a_folder_that_cannot_be_written_costs_a_sentence_and_no_work(
    name: str, number: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("study", "run", "sums") if name == "parts" else QUICK
    with monkeypatch.context() as patch:
        patch.setattr("deepwide.files.write_file", _refuse(name, number))
        done = call(*command)
    assert done.returncode == 2
    assert sentence in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    again = call(*command)
    assert again.returncode == 0, again.stderr


def _refuse(name: str, number: int) -> Callable[[Path, bytes], None]:
    """A file system on which one file cannot be written."""
    write = files.write_file

    def refuse(path: Path, content: bytes) -> None:
        if name in (path.name, path.parent.name):
            raise OSError(number, os.strerror(number), str(path))
        write(path, content)

    return refuse


def test_a_missing_library_costs_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Toys, "libraries", {"flint": "rank"})
    monkeypatch.setitem(sys.modules, "flint", None)
    done = call(*QUICK)
    assert done.returncode == 2
    assert done.stderr == f"deepwide: {missing('flint', 'rank')}\n"
