"""`deepwide sweep` as a user types it."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

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
        "0 of 8 cells have finished",
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
    assert "Every cell had finished already: nothing was run." in again.stdout
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
    assert call("sweep", "verify", "runs/toys").stdout == "8 of 8 runs whole.\n"
    copied, other = sorted((home / "runs" / "toys").glob("*/result.json"))[:2]
    copied.write_bytes(other.read_bytes())
    verified = call("sweep", "verify", "runs/toys")
    assert verified.returncode == 1
    assert (
        f"{copied.parent.name}/result.json: it belongs to run {other.parent.name}. To do: put it back"
        in verified.stdout
    )
    assert "7 of 8 runs whole." in verified.stdout
    verified = call("sweep", "verify", "runs/toys", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["whole"]) == (1, 7)
    assert call("sweep", "export", "toys.toml").returncode == 2, "never exported"


def test_plan_expects_only_what_is_left_and_export_says_what_is_missing() -> None:
    half = ("toys.toml", "--set", "grid.fail_at=[0]")
    assert ask("sweep", "plan", *half)["expected_seconds"] > 0
    assert call("sweep", "run", *half, "--set", "seeds=[0]").returncode == 0
    shown = call("sweep", "export", *half)
    assert shown.returncode == 0
    assert shown.stdout.count("\n") == 3, "a header and two rows"
    assert "2 of 4 cells have not finished" in shown.stderr
    assert len(ask("sweep", "export", *half)) == 2
    done = (*half, "--set", "seeds=[0]")
    assert ask("sweep", "plan", *done)["expected_seconds"] == 0
    assert "Nothing is left to run" in call("sweep", "plan", *done).stdout
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
    assert "move the folder away" in states["cells"][0]["error"]
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
    assert "cut it before line 1" in state["error"]
    assert state["number"] == 2, "tried once, not until it has failed"


def test_a_driver_that_waited_for_another_does_not_say_that_all_had_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.sweeping import Driver, Outcome, work

    def elsewhere(_: Driver, cells: Any, runs: Path, **__: Any) -> Outcome:
        work([cell.folder(runs).path for cell in cells], owner="another")
        return Outcome(started=0)

    monkeypatch.setattr(Driver, "drive", elsewhere)
    words = ("sweep", "run", "toys.toml", "--set", "grid.fail_at=[0]")
    assert "finished already" not in call(*words).stdout
    assert "finished already" in call(*words).stdout


def test_a_log_gets_a_line_when_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.cli.sweep_tables.LINE_SECONDS", 0.0)
    done = call("sweep", "run", "toys.toml", "--set", "grid.fail_at=[0]", "--set", "seconds_per_step=0.2")
    assert done.returncode == 0
    assert "toys: 4 waiting" in done.stderr
    assert "running" in done.stderr
    assert " left" in done.stderr


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


def test_the_network_is_allowed_by_an_option_of_plan_run_and_resume(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it a public set that is not here is refused in a sentence that names it."""
    from deepwide import data

    monkeypatch.setenv("DEEPWIDE_NETWORK", "0")
    monkeypatch.setenv("DEEPWIDE_CACHE", str(home / "cache"))
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    (home / "far.toml").write_text(
        'name = "far"\n[run]\ndata.source = "imdb"\ntokens = 1000\n[grid]\ndepth = [1]\nwidth = [16]\n'
    )
    refused = call("sweep", "plan", "far.toml")
    assert refused.returncode == 2
    assert "DEEPWIDE_NETWORK=1" in refused.stderr
    assert refused.stderr.endswith("Add --network.\n")
    spy = mock.Mock(side_effect=lambda *_: pytest.fail("fetched"))
    monkeypatch.setattr(data.sources, "_fetch", spy)
    for verb in ("plan", "run", "resume"):
        monkeypatch.setenv("DEEPWIDE_NETWORK", "0")
        with pytest.raises(pytest.fail.Exception, match="fetched"):
            call("sweep", verb, "far.toml", "--network")
    assert spy.call_count == 3


def test_init_writes_a_sweep_that_can_be_planned_at_once(home: Path) -> None:
    done = call("sweep", "init", "mine.toml")
    assert done.returncode == 0, done.stderr
    assert "deepwide sweep plan mine.toml" in done.stdout
    assert len(ask("sweep", "plan", "mine.toml")["cells"]) == 8
    before = (home / "mine.toml").read_bytes()
    assert call("sweep", "init", "mine.toml").returncode == 2
    assert (home / "mine.toml").read_bytes() == before


SET = ("run", "toys.toml", "--set")
BAD = [
    ("plan", "none.toml"), ("plan", "."), ("plan",), ("status", "none.toml"), ("paln", "toys.toml"),
    ("run", "toys.toml", "--on", "moon"), ("run", "toys.toml", "--threads", "0"),
    ("run", "toys.toml", "--processes", "0"), ("run", "toys.toml", "--lease", "0"),
    (*SET, "lr"), (*SET, "stesp=3"), (*SET, "grid.widht=[1]"), (*SET, "width=-1"), (*SET, "grid.width=[0]"),
    (*SET, "seeds=[]"), (*SET, "trainer=os.system"), (*SET, "steps=nan"), (*SET, "iso.params=[1]"),
    ("run", "toys.toml", "--runs", "s3://bucket/runs"), ("plan", "toys.toml", "--runs", "gs://bucket"),
    ("retry", "toys.toml"), ("init", "toys.toml"), ("init", "x.txt"),
    ("export", "toys.toml", "--to", "x.xlsx"), ("export", "toys.toml", "--to", "x.csv"),
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


@pytest.mark.parametrize("verb", ["plan", "run", "status", "resume", "retry", "export", "init"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = call("sweep", verb, "--help")
    assert done.returncode == 0
    assert f"deepwide sweep {verb}" in done.stdout.split("Example")[-1]
