"""`deepwide train` and `check-scaling` as a person uses them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TINY = ["--depth", "1", "--width", "16", "--set", "steps=4", "--set", "context=16", "--set", "batch=2"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"Paragraph {i}. " * 40 for i in range(200)))
    return path


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    env = os.environ | {"DEEPWIDE_CACHE": str(cwd / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "deepwide", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env)


def deepwide(*words: str, cwd: Path) -> tuple[int, str, str]:
    process = start(*words, cwd=cwd)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def test_train_makes_a_run_and_shows_it_again_without_training(tmp_path: Path, text: Path) -> None:
    words = ["train", *TINY, "--data", str(text), "--threads", "1", "--json"]
    code, out, err = deepwide(*words, cwd=tmp_path)
    assert code == 0, err
    answer = json.loads(out)
    assert answer["status"] == "done"
    assert answer["metrics"]["bits_per_byte"] > 0
    folder = Path(answer["path"])
    assert folder == tmp_path / "runs" / answer["id"]
    assert {"config.json", "metrics.jsonl", "result.json", "checkpoints"} <= {path.name for path in folder.iterdir()}
    before = (folder / "metrics.jsonl").stat().st_mtime_ns
    assert json.loads(deepwide(*words, cwd=tmp_path)[1]) == answer | {"notes": []}
    assert (folder / "metrics.jsonl").stat().st_mtime_ns == before


def test_sigterm_saves_leaves_within_ten_seconds_and_the_same_command_resumes(tmp_path: Path, text: Path) -> None:
    (tmp_path / "run.toml").write_text(
        f'steps = 100000\nlog_every = 10\nbatch = 2\ncontext = 16\ndata.source = "{text}"\n'
        "[model]\ndepth = 1\nwidth = 16\n"
    )
    words = ["train", "--config", "run.toml", "--threads", "1"]
    process = start(*words, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 500 for path in tmp_path.glob("runs/*/metrics.jsonl")):
        assert time.monotonic() < deadline, _killed(process)
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - begun < 10
    assert process.returncode == 130, err
    assert "Stopped at step" in out
    kept = [int(path.name) for path in tmp_path.glob("runs/*/checkpoints/*")]
    assert kept
    again = start(*words, cwd=tmp_path)
    while True:  # it resumes from there: its records do not begin anew
        steps = [json.loads(line)["step"] for path in tmp_path.glob("runs/*/metrics.jsonl") for line in _whole(path)]
        if max(steps) > max(kept) + 50:
            break
        assert time.monotonic() < deadline + 60, _killed(again)
        time.sleep(0.1)
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=30)
    assert steps == sorted(steps)


def _killed(process: subprocess.Popen[str]) -> str:
    process.kill()
    return str(process.communicate())


def _whole(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--depth", "2", "--tokens", "1K"], "model.width: field required"),
        ([], "needs --depth and --width"),
        (["--depth", "2", "--width", "16"], "a run needs a budget"),
        ([*TINY, "--preset", "lama"], "model.preset"),
        ([*TINY, "--set", "optimizer.lr=1"], "did you mean 'optimiser'"),
        ([*TINY, "--set", "model.residual=magic"], "model.residual"),
        ([*TINY, "--data", "no/such/file"], "no file, folder or corpus"),
        ([*TINY, "--device", "abacus"], "no device 'abacus'"),
        ([*TINY, "--log", "tensorbord"], "did you mean 'tensorboard'"),
        ([*TINY, "--config", "none.toml"], "There is no file none.toml"),
        ([*TINY, "--compile", "perhaps"], "must be off, on or auto"),
        ([*TINY, "--runs", "s3://bucket/runs"], "s3:… is an address"),
        ([*TINY, "--data", "tinyshakespeare"], "'tinyshakespeare' is not on this machine"),
        ([*TINY, "--task", "sortin"], "there is no task 'sortin': did you mean 'sorting'?"),
        ([*TINY, "--set", "task.lenght=3", "--task", "sorting"], "there is no setting 'task.lenght'"),
        ([*TINY, "--data", "1979"], "no file, folder or corpus '1979'"),
    ],
)
def test_a_mistake_costs_a_sentence_and_starts_nothing(words: list[str], sentence: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from deepwide.cli.app import app, load
    from deepwide.errors import DeepwideError

    load("train")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
        patch.delenv("DEEPWIDE_DATA", raising=False)
        outcome = CliRunner().invoke(app, ["train", *words])
    assert isinstance(outcome.exception, DeepwideError)
    assert sentence in str(outcome.exception)
    assert not (tmp_path / "runs").exists() or not list(tmp_path.glob("runs/*/metrics.jsonl"))


def test_a_sink_whose_library_is_missing_is_refused_before_anything_is_made(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.calling import call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deepwide.training.sinks.find_spec", lambda _: None)
    done = call("train", *TINY, "--data", str(text), "--log", "wandb:x")
    assert done.returncode == 2
    assert "pip install wandb" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_brackets_in_a_path_are_text_and_a_finished_run_logs_nothing_and_says_so(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.calling import call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024" / "[b]a.txt").write_bytes(text.read_bytes()[: len(text.read_bytes()) // 2])
    (tmp_path / "2024" / "b.txt").write_bytes(text.read_bytes()[len(text.read_bytes()) // 2 :])
    words = ["train", "--depth", "1", "--width", "16", "--tokens", ".0001M", "--set", "context=16", "--data", "2024"]
    for _ in range(2):
        done = call(*words, "--runs", "odd[/b]", "--threads", "1")
        assert done.returncode == 0, done.stderr
        assert "odd[/b]" in done.stdout.replace("\n", "")
    monkeypatch.setattr("deepwide.training.sinks.find_spec", lambda name: name)
    done = call(*words, "--runs", "odd[/b]", "--log", "wandb:x")
    assert done.returncode == 0, done.stderr
    assert "already finished, so nothing is recorded to wandb:x" in done.stderr


def test_one_width_and_one_depth_get_no_verdict(tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.calling import ask, call

    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    words = ["check-scaling", "--depths", "1", "--seeds", "1", "--steps", "1", "--data", str(text)]
    words += ["--parametrisation", "mup"]
    assert "have no slope" in call(*words, "--widths", "16").stderr
    assert {row["along"] for row in ask(*words, "--widths", "16,32")["slopes"]} == {"width"}


def test_a_dry_run_says_what_it_would_do_and_how_long_that_takes(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.calling import ask, call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    words = ["train", *TINY, "--data", str(text), "--dry-run"]
    estimate: dict[str, Any] = ask(*words)
    assert estimate["config"]["steps"] == 4
    assert estimate["total_params"] == 256 * 16 + 16 * 16 + 12 * 16**2 + 13 * 16 + 2 * 16
    assert estimate["seconds"] > 0
    assert estimate["notes"] == []
    repeated = call("train", *TINY[:4], "--tokens", "2M", "--data", str(text), "--dry-run").stdout
    assert re.search(r"Estimated time here: [^\n]*\d[^\n]*\.\n", repeated)
    assert re.search(r"2M tokens are \d+\S* epochs: '", repeated.replace("\n", " "))
    assert not (tmp_path / "runs").exists()


def test_short_names_of_settings_work_as_in_a_sweep(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.calling import ask

    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    words = ["train", "--set", "depth=1", "--set", "width=16", "--set", "lr=3e-4", "--set", "steps=4", "--dry-run"]
    config = ask(*words, "--set", f"data={text}")["config"]
    assert config["optimiser"]["lr"] == 3e-4
    assert (config["model"]["depth"], config["data"]["source"]) == (1, str(text))
    (tmp_path / "run.toml").write_text(f'depth = 1\nwidth = 16\nlr = 3e-4\nsteps = 4\ndata = "{text}"\n')
    assert ask("train", "--config", str(tmp_path / "run.toml"), "--dry-run")["config"] == config


def test_a_task_is_trained_and_shows_its_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.calling import ask, call

    monkeypatch.chdir(tmp_path)
    words = ["train", "--task", "reversing", "--depth", "1", "--width", "16", "--set", "steps=3", "--threads", "1"]
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"nats per answer, accuracy 0\.\d+, whole accuracy 0\.\d+, after 768 tokens", done.stdout)
    assert set(ask(*words)["metrics"]) == {"accuracy", "whole_accuracy"}


def test_the_folder_is_printed_in_one_piece_on_a_narrow_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.calling import call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    words = ["train", "--task", "reversing", "--depth", "1", "--width", "16", "--set", "steps=1", "--threads", "1"]
    out = call(*words).stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"Folder: {folder}" in out.splitlines()


def test_the_network_can_be_allowed_where_data_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message asks for it, so both verbs offer it; here there is no network, and pooch reports that."""
    from cli.calling import call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    for verb in (["train", *TINY], ["check-scaling"]):
        monkeypatch.setenv("DEEPWIDE_NETWORK", "0")
        refused = call(*verb, "--data", "tinyshakespeare").stderr
        assert refused.endswith("allow the network with DEEPWIDE_NETWORK=1. Add --network.\n")
        assert "could not be fetched" in call(*verb, "--data", "tinyshakespeare", "--network").stderr


def test_check_scaling_prints_slopes_and_saves_a_picture(tmp_path: Path, text: Path) -> None:
    words = ["--widths", "16,32", "--depths", "1,2", "--seeds", "1", "--steps", "2", "--data", str(text)]
    code, out, err = deepwide("check-scaling", *words, "--plot", "s.svg", "--json", cwd=tmp_path)
    assert code == 0, err
    check = json.loads(out)
    assert {row["parametrisation"] for row in check["slopes"]} == {"standard", "mup", "completep"}
    assert len(check["points"]) == 3 * 4 * 4
    assert "<svg" in (tmp_path / "s.svg").read_text()
    assert deepwide("check-scaling", "--widths", "a,b", cwd=tmp_path)[0] == 2
