"""`deepwide sweep` as a user types it."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from deepwide.cli import main

SPEC = """
name = "toys"
seeds = [0, 1]
[run]
trainer = "toy"
steps = 4
[grid]
width = [2, 3]
fail_at = [0, 3]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "toys.toml").write_text(SPEC)
    return tmp_path


def call(*words: str) -> "subprocess.CompletedProcess[str]":
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["deepwide", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return subprocess.CompletedProcess(words, int(stop.value.code or 0), out.getvalue(), err.getvalue())


def ask(*words: str) -> Any:
    done = call(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)


def test_plan_prints_every_cell_and_its_cost_and_writes_nothing(home: Path) -> None:
    done = call("sweep", "plan", "toys.toml")
    assert done.returncode == 0, done.stderr
    for words in (
        "8 cells",
        "width=2 fail_at=0 seed=0",
        "params",
        "FLOPs",
        "memory",
        "expected",
        "0 of 8 cells are over",
    ):
        assert words in done.stdout
    assert [path.name for path in home.iterdir()] == ["toys.toml"]
    planned = ask("sweep", "plan", "toys.toml")
    assert len(planned["cells"]) == 8
    assert all(cell["train_flops"] > 0 and cell["expected_seconds"] > 0 for cell in planned["cells"])


def test_a_sweep_from_run_to_retry_to_export(home: Path) -> None:
    assert call("sweep", "resume", "toys.toml").returncode == 2, "nothing to resume yet"
    done = call("sweep", "run", "toys.toml")
    assert done.returncode == 0, done.stderr
    assert "4 done, 4 failed" in done.stdout
    again = call("sweep", "run", "toys.toml")
    assert "Every cell was over already: nothing was run." in again.stdout
    states = ask("sweep", "status", "toys.toml")
    assert states["counts"] == {"done": 4, "failed": 4}
    assert "told to fail" in call("sweep", "status", "toys.toml").stdout
    assert len(ask("sweep", "retry", "toys.toml", "--failed")["reopened"]) == 4
    assert ask("sweep", "status", "toys.toml")["counts"] == {"done": 4, "interrupted": 4}
    assert ask("sweep", "resume", "toys.toml")["counts"] == {"done": 4, "failed": 4}
    for suffix in ("csv", "parquet"):
        answer = ask("sweep", "export", "toys.toml", "--to", f"out/table.{suffix}")
        assert answer["rows"] == 8
        assert (home / "out" / f"table.{suffix}").stat().st_size > 100
    assert call("sweep", "status", "toys.toml", "--watch").returncode == 0


SET = ("run", "toys.toml", "--set")
BAD = [
    ("plan", "none.toml"), ("plan", "."), ("plan",), ("status", "none.toml"), ("paln", "toys.toml"),
    ("run", "toys.toml", "--on", "moon"), ("run", "toys.toml", "--threads", "0"),
    ("run", "toys.toml", "--processes", "0"), ("run", "toys.toml", "--lease", "0"),
    (*SET, "lr"), (*SET, "stesp=3"), (*SET, "grid.widht=[1]"), (*SET, "width=-1"), (*SET, "grid.width=[0]"),
    (*SET, "seeds=[]"), (*SET, "trainer=os.system"), (*SET, "steps=nan"), (*SET, "iso.params=[1]"),
    ("retry", "toys.toml"), ("export", "toys.toml", "--to", "x.xlsx"), ("export", "toys.toml", "--to", "x.csv"),
]  # fmt: skip


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_gets_one_sentence_and_starts_nothing(words: tuple[str, ...], home: Path) -> None:
    done = call("sweep", *words)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("deepwide: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert [path.name for path in home.iterdir()] == ["toys.toml"], "a refused command leaves nothing behind"


def test_the_worker_on_something_that_is_no_run_says_so(home: Path) -> None:
    done = call("worker", str(home))
    assert done.returncode == 6
    assert "is not a run folder" in done.stderr


@pytest.mark.parametrize("verb", ["plan", "run", "status", "resume", "retry", "export"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = call("sweep", verb, "--help")
    assert done.returncode == 0
    assert f"deepwide sweep {verb}" in done.stdout.split("Example")[-1]
