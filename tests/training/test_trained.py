"""The verb from Python: a config in, a typed answer out."""

import math
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.training import TrainedRun, sinks, train
from training.builders import TINY


@pytest.fixture
def config(text: Path) -> dict[str, Any]:
    return TINY | {"data": {"source": str(text), "validation": 0.2}}


def test_training_answers_with_everything_there_is_to_know(config: dict[str, Any], tmp_path: Path) -> None:
    run = deepwide.train(config, runs=tmp_path / "runs", device="cpu", threads=1)
    assert isinstance(run, TrainedRun)
    assert run.path == tmp_path / "runs" / run.id
    assert (run.status, run.why, run.step, run.steps, run.tokens) == ("done", None, 7, 7, 7 * 4 * 16)
    assert (run.depth, run.width, run.block_params) == (2, 16, 2 * (12 * 16**2 + 13 * 16) + 2 * 16)
    assert run.total_params == run.block_params + 256 * 16 + 16 * 16
    assert run.validation_loss is not None
    assert run.metrics["bits_per_byte"] == pytest.approx(run.validation_loss / math.log(2), rel=0.05)
    assert [row["step"] for row in run.rows() if row["kind"] == "train"] == [1, 2, 3, 4, 5, 6, 7]
    assert run.rows()[-1]["loss"] == run.validation_loss
    assert run.to_polars().filter(kind="validation")["step"].to_list() == [0, 3, 6, 7]
    assert run.seconds is not None
    assert run.seconds > 0


def test_a_finished_run_is_read_and_not_trained_again(config: dict[str, Any], tmp_path: Path) -> None:
    first = train(config, runs=tmp_path, device="cpu", threads=1)
    again = train(config, runs=tmp_path, device="cpu", progress=lambda _: pytest.fail("trained again"))
    assert again.model_copy(update={"notes": first.notes}) == first


def test_a_stopped_run_says_where_and_resumes(config: dict[str, Any], tmp_path: Path) -> None:
    seen: list[int] = []
    stopped = train(
        config, runs=tmp_path, device="cpu", progress=lambda r: seen.append(r["step"]), stop=lambda: len(seen) > 4
    )
    assert stopped.status == "stopped"
    assert 0 < stopped.step < 7
    resumed: list[int] = []
    finished = train(config, runs=tmp_path, device="cpu", progress=lambda r: resumed.append(r["step"]))
    assert min(resumed) > stopped.step
    assert (finished.id, finished.status) == (stopped.id, "done")


def test_a_run_that_diverges_says_why(config: dict[str, Any], tmp_path: Path) -> None:
    model = {"depth": 2, "width": 16, "norm": "none"}
    wild = config | {"optimiser": {"lr": 50.0, "clip": 0.0}, "model": model, "steps": 40}
    run = train(wild, runs=tmp_path, device="cpu")
    assert run.status == "diverged"
    assert run.why is not None
    assert run.train_loss is not None
    assert math.isfinite(run.train_loss)


def test_data_that_repeat_are_noted_with_their_number(config: dict[str, Any], tmp_path: Path, text: Path) -> None:
    reported: list[Note] = []
    run = train(config | {"steps": 300}, runs=tmp_path, device="cpu", report=reported.append)
    (note,) = run.notes
    assert reported == [note]
    assert note.code == "repeated_data"
    available = sum(path.stat().st_size + 1 for path in text.iterdir())  # the validation part is not trained on
    assert 300 * 4 * 16 / available < note.data["epochs"] < 2 * 300 * 4 * 16 / available
    assert train(config | {"steps": 2}, runs=tmp_path, device="cpu").notes == ()


def test_a_sink_that_fails_is_noted_and_the_run_goes_to_its_end(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def record(self, record: Any) -> None:  # noqa: ARG002
            raise ConnectionError("away")

        def close(self) -> None: ...

    monkeypatch.setattr(sinks, "SINKS", {"wandb": lambda *_: Broken()})
    monkeypatch.setattr(sinks, "find_spec", lambda _: True)
    run = train(config, runs=tmp_path, device="cpu", log=["wandb:project"])
    assert (run.status, [note.code for note in run.notes]) == ("done", ["sink_failed"])
    again = train(config, runs=tmp_path, device="cpu", log=["wandb:project"])
    assert [note.code for note in again.notes] == ["already_finished"]


def test_a_mistake_starts_nothing(config: dict[str, Any], tmp_path: Path) -> None:
    for wrong in ({"sede": 1}, {"task": "sortin"}, {"data": "no/such/file"}):
        with pytest.raises(DeepwideError):
            train(config | wrong, runs=tmp_path / "runs")
    with pytest.raises(DeepwideError, match="no sink"):
        train(config, runs=tmp_path / "runs", log=["tensorbord"])
    assert not (tmp_path / "runs").exists()
