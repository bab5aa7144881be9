"""The tour shows what it runs, in an order in which anyone could type it."""

import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from deepwide.cli import tour
from deepwide.errors import DeepwideError


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that the tour would have run."""
    commands: list[list[str]] = []
    monkeypatch.setattr(tour, "app", lambda words, **_: commands.append(words))
    monkeypatch.setattr(tour, "load", lambda: None)
    return commands


def test_the_commands_shown_are_those_that_run(
    ran: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tour.tour(tmp_path / "a folder")
    shown = [line.removeprefix("$ deepwide ") for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    assert [shlex.split(line) for line in shown] == ran
    assert [words[0] for words in ran] == ["plan", "audit", "bounds", "rank", "sweep", "fit", "plan", "study"]


def test_every_file_that_a_step_reads_was_written_by_one_before_it(tmp_path: Path) -> None:
    written = {str(tmp_path / "sweep.toml")}  # the tour says that it writes this one
    for _, command, _ in tour.steps(tmp_path):
        words = shlex.split(command)
        after = dict(pairwise(words))
        writes = {after[option] for option in ("--plot", "--runs", "--out") if option in after}
        if words[0] == "fit":
            writes.add(after["--law"])
        reads = {word for word in words if word.startswith(str(tmp_path))} - writes
        assert reads <= written, command
        written |= writes


def test_without_a_library_its_steps_are_skipped_with_a_sentence(
    ran: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tour, "is_installed", lambda module: module not in ("torch", "flint"))
    tour.tour(tmp_path)
    assert [words[0] for words in ran] == ["plan", "audit"]
    text = capsys.readouterr().out
    assert text.count("deepwide[rank]") == 2
    assert text.count("deepwide[train]") == 4


def test_runs_that_give_no_law_end_the_tour_in_good_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(words: list[str], **_: Any) -> None:
        if words[0] == "fit":
            raise DeepwideError("these runs give no law.")

    monkeypatch.setattr(tour, "app", answer)
    monkeypatch.setattr(tour, "load", lambda: None)
    tour.tour(tmp_path)
    text = capsys.readouterr().out
    assert "deepwide: these runs give no law." in text
    assert "plan 100k" not in text


def test_the_tour_s_sweep_is_small() -> None:
    spec = tomllib.loads(tour.SWEEP)
    assert len(spec["iso"]["params"]) * len(spec["iso"]["depths"]) <= 12
    assert (spec["iso"]["params"][-1], spec["iso"]["tokens"]) == ("90k", "150k")
