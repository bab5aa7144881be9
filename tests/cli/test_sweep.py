"""`deepwide sweep` as a user types it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from cli.calling import ask, call

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
    assert done.returncode == 1, "four cells failed"
    assert "4 done, 4 failed" in done.stdout
    again = call("sweep", "run", "toys.toml")
    assert "Every cell was over already: nothing was run." in again.stdout
    states = ask("sweep", "status", "toys.toml")
    assert states["counts"] == {"done": 4, "failed": 4}
    assert "fails here on purpose" in call("sweep", "status", "toys.toml").stdout
    assert len(ask("sweep", "retry", "toys.toml", "--failed")["reopened"]) == 4
    assert ask("sweep", "status", "toys.toml")["counts"] == {"done": 4, "interrupted": 4}
    resumed = call("sweep", "resume", "toys.toml", "--json")
    assert resumed.returncode == 1
    assert json.loads(resumed.stdout)["counts"] == {"done": 4, "failed": 4}
    for suffix in ("csv", "parquet"):
        answer = ask("sweep", "export", "toys.toml", "--to", f"out/table.{suffix}")
        assert answer["rows"] == 8
        assert (home / "out" / f"table.{suffix}").stat().st_size > 100
    assert call("sweep", "status", "toys.toml", "--watch").returncode == 0


def test_plan_expects_only_what_is_left_and_export_says_what_is_missing() -> None:
    half = ("toys.toml", "--set", "grid.fail_at=[0]")
    assert ask("sweep", "plan", *half)["expected_seconds"] > 0
    assert call("sweep", "run", *half, "--set", "seeds=[0]").returncode == 0
    shown = call("sweep", "export", *half)
    assert shown.returncode == 0
    assert shown.stdout.count("\n") == 3, "a header and two rows"
    assert "2 of 4 cells are not over" in shown.stderr
    assert len(ask("sweep", "export", *half)) == 2
    done = (*half, "--set", "seeds=[0]")
    assert ask("sweep", "plan", *done)["expected_seconds"] == 0
    assert "nothing is left for" in call("sweep", "plan", *done).stdout
    assert "nothing to retry" in call("sweep", "retry", *done, "--failed").stdout


def test_one_damaged_folder_is_named_and_the_others_run(home: Path) -> None:
    words = ("toys.toml", "--set", "grid.fail_at=[0]")
    cells = ask("sweep", "plan", *words)["cells"]
    lost, junk = (home / "runs" / "toys" / cell["id"] for cell in cells[:2])
    for folder in (lost, junk):
        folder.mkdir(parents=True)
    assert call("sweep", "run", *words).returncode == 2
    states = ask("sweep", "status", *words)
    assert states["counts"] == {"unreadable": 2, "done": 2}
    assert "move the folder away" in states["cells"][0]["note"]
    lost.rmdir()
    junk.rmdir()
    assert call("sweep", "run", *words).returncode == 0
    (junk / "result.json").unlink()
    (junk / "metrics.jsonl").write_text("junk\n")
    done = call("sweep", "run", *words)
    assert done.returncode == 2
    assert "metrics.jsonl is unreadable" in done.stderr
    state = ask("sweep", "status", *words)["cells"][1]
    assert state["state"] == "unreadable"
    assert "cut it before line 1" in state["note"]
    assert state["number"] == 2, "tried once, not until it has failed"


def test_a_driver_that_waited_for_another_does_not_say_that_all_was_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.sweeping import Driver, Outcome
    from deepwide.sweeping.worker import work

    def elsewhere(_: Driver, cells: Any, runs: Path, **__: Any) -> Outcome:
        work([cell.folder(runs).path for cell in cells], owner="another")
        return Outcome(started=0)

    monkeypatch.setattr(Driver, "drive", elsewhere)
    words = ("sweep", "run", "toys.toml", "--set", "grid.fail_at=[0]")
    assert "over already" not in call(*words).stdout
    assert "over already" in call(*words).stdout


def test_a_log_gets_a_line_when_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.cli.sweep_tables.LINE_SECONDS", 0.0)
    done = call("sweep", "run", "toys.toml", "--set", "grid.fail_at=[0]", "--set", "seconds_per_step=0.2")
    assert done.returncode == 0
    assert "toys: 4 waiting" in done.stderr
    assert "running" in done.stderr


def test_notes_and_names_may_have_brackets() -> None:
    from rich.console import Console

    from deepwide.cli.sweep_tables import status_table
    from deepwide.sweeping import CellStatus

    out = Console(width=200, record=True, file=io.StringIO())
    out.print(status_table("s", [CellStatus("0" * 16, "x=[1]", "oom", note="[enforce fail at alloc.cpp:1] [/x]")]))
    text = out.export_text()
    assert "[enforce fail at alloc.cpp:1] [/x]" in text
    assert "x=[1]" in text


def test_a_device_that_is_not_here_is_refused_before_cells_fail_on_it(home: Path) -> None:
    pytest.importorskip("torch")
    done = call("sweep", "run", "toys.toml", "--device", "abacus")
    assert done.returncode == 2
    assert "no device 'abacus'" in done.stderr
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    ("words", "help_"),
    [
        (("sweep", "plan", "x.toml", "--procesess", "2"), "deepwide sweep plan --help"),
        (("sweep", "paln", "x.toml"), "deepwide sweep --help"),
        (("plna", "1B"), "deepwide --help"),
        (("check-scaling", "--lrr", "2"), "deepwide check-scaling --help"),
    ],
)
def test_a_mistyped_command_is_sent_to_the_help_that_fits(words: tuple[str, ...], help_: str) -> None:
    assert call(*words).stderr.endswith(f"See: {help_}\n")


SET = ("run", "toys.toml", "--set")
BAD = [
    ("plan", "none.toml"), ("plan", "."), ("plan",), ("status", "none.toml"), ("paln", "toys.toml"),
    ("run", "toys.toml", "--on", "moon"), ("run", "toys.toml", "--threads", "0"),
    ("run", "toys.toml", "--processes", "0"), ("run", "toys.toml", "--lease", "0"),
    (*SET, "lr"), (*SET, "stesp=3"), (*SET, "grid.widht=[1]"), (*SET, "width=-1"), (*SET, "grid.width=[0]"),
    (*SET, "seeds=[]"), (*SET, "trainer=os.system"), (*SET, "steps=nan"), (*SET, "iso.params=[1]"),
    ("run", "toys.toml", "--runs", "s3://bucket/runs"), ("plan", "toys.toml", "--runs", "gs://bucket"),
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


def test_the_worker_on_something_that_is_no_run_says_so(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert call("worker", str(home)).returncode == 6
    assert "is not a run folder" in caplog.text


@pytest.mark.parametrize("verb", ["plan", "run", "status", "resume", "retry", "export"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = call("sweep", verb, "--help")
    assert done.returncode == 0
    assert f"deepwide sweep {verb}" in done.stdout.split("Example")[-1]
