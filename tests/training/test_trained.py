"""The verb from Python: a config in, a typed answer out."""

import math
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.run import RunFolder
from deepwide.training import TrainedRun, sinks, train, trained_model
from training.builders import TINY

FLAT = {"kind": "constant", "warmup": 1, "cooldown": 0}


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


def test_the_trained_network_gives_the_loss_that_was_reported(config: dict[str, Any], tmp_path: Path) -> None:
    import torch

    from deepwide.training import resolve, task_of

    run = train(config, runs=tmp_path, device="cpu", threads=1)
    model = trained_model(run.path)
    assert not model.training
    resolved = resolve(config)
    batches = list(task_of(resolved).evaluation(resolved.evaluation.sequences, 4))
    with torch.no_grad():
        losses = [float(model(batch.tokens_BT, batch.targets)) for batch in batches]
    weights = [batch.answers for batch in batches]
    mean = math.fsum(map(math.prod, zip(losses, weights, strict=True))) / sum(weights)
    assert mean == pytest.approx(run.validation_loss, rel=1e-5)


def test_a_run_that_keeps_checkpoints_gives_the_network_of_each_step(config: dict[str, Any], tmp_path: Path) -> None:
    import torch

    run = train(config | {"checkpoint_every": 2, "keep_checkpoints": 50}, runs=tmp_path, device="cpu", threads=1)
    plain = train(config | {"checkpoint_every": 2}, runs=tmp_path, device="cpu", threads=1)
    assert run.id != plain.id
    assert run.validation_loss == plain.validation_loss
    assert [RunFolder.open(one.path).checkpoint_steps() for one in (run, plain)] == [[2, 4, 6, 7], [6, 7]]
    short = train(config | {"steps": 4, "schedule": FLAT}, runs=tmp_path, device="cpu", threads=1)
    long = train(config | {"checkpoint_every": 2, "keep_checkpoints": 9, "schedule": FLAT}, runs=tmp_path, threads=1)
    # Without a schedule that knows the end, the first steps of a long run are those of a short one.
    for ours, theirs in zip(
        trained_model(long.path, 4).parameters(), trained_model(short.path).parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    for step in (0, 2):
        assert not torch.equal(trained_model(long.path, step).positions, trained_model(long.path, 4).positions)
    with pytest.raises(DeepwideError, match="has no checkpoint of step 3: it has 2, 4, 6, 7"):
        trained_model(run.path, 3)
    next((run.path / "checkpoints" / "4").glob("*.safetensors")).write_bytes(b"")
    with pytest.raises(DeepwideError, match="checkpoint 4 is damaged"):
        trained_model(run.path, 4)


def test_a_run_without_checkpoint_has_no_network(config: dict[str, Any], tmp_path: Path) -> None:
    stopped = train(config, runs=tmp_path, device="cpu", stop=lambda: True)
    with pytest.raises(DeepwideError, match="has no checkpoint yet"):
        trained_model(stopped.path)
