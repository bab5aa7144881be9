"""A run loses nothing: interrupted anywhere it ends in the same bits; trouble ends it with a reason."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import Transformer
from deepwide.run import RunFolder
from deepwide.training import loop as loop_module
from deepwide.training import train
from training.conftest import MakeRun


def finish(run: RunFolder, **options: Any) -> RunFolder:
    with run.lease("test") as lease:
        train(run, lease, device="cpu", threads=1, **options)
    return run


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    kept = run.latest_checkpoint()
    assert kept is not None
    return kept.tensors


@pytest.mark.parametrize("model", [{"depth": 2, "width": 16}, {"depth": 1, "width": 16, "preset": "llama"}])
def test_a_run_stopped_after_every_step_and_inside_steps_ends_in_the_same_bits(
    make_run: MakeRun, model: dict[str, Any]
) -> None:
    whole = finish(make_run("whole", model=model, micro_batch=2))
    broken = make_run("broken", model=model, micro_batch=2)
    times = 0
    while broken.result() is None:
        left = iter([False] * (2 + times % 5))  # so many questions later, inside or between steps, it has to leave
        finish(broken, stop=lambda: next(left, True))  # noqa: B023
        times += 1
        assert times < 60
    assert times > 4
    assert broken.metrics() == whole.metrics()
    assert broken.result() == whole.result()
    assert weights(broken).keys() == weights(whole).keys()
    assert all(torch.equal(tensor, weights(broken)[name]) for name, tensor in weights(whole).items())


def test_a_run_killed_between_checkpoints_writes_its_records_again_once(make_run: MakeRun) -> None:
    whole, broken = finish(make_run("whole")), make_run("broken")

    def die(record: Any) -> None:
        if record["step"] == 5:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        finish(broken, progress=die)
    assert [r["step"] for r in broken.metrics()][-1] == 5
    assert broken.latest_checkpoint().step == 4  # type: ignore[union-attr]
    finish(broken)
    assert broken.metrics() == whole.metrics()
    assert all(torch.equal(tensor, weights(broken)[name]) for name, tensor in weights(whole).items())


def test_a_run_says_what_it_did(make_run: MakeRun) -> None:
    run = finish(make_run())
    records = run.metrics()
    assert [r["step"] for r in records if r["kind"] == "train"] == [1, 2, 3, 4, 5, 6, 7]
    assert [r["step"] for r in records if r["kind"] == "validation"] == [0, 3, 6, 7]
    result = run.result()
    assert result is not None
    assert (result["status"], result["step"], result["tokens"]) == ("done", 7, 7 * 4 * 16)
    assert result["validation_loss"] == records[-1]["loss"] < records[0]["loss"]
    assert records[0]["loss"] == pytest.approx(math.log(256), abs=0.1)


def test_bits_per_byte_of_bytes_are_nats_over_ln_2_but_for_the_ends_of_documents(make_run: MakeRun) -> None:
    records = finish(make_run(evaluation={"sequences": 99}, steps=2)).metrics()
    ends = records[-1]["bits_per_byte"] / (records[-1]["loss"] / math.log(2))
    assert 1 < ends < 1.05


def test_accumulation_keeps_the_batch(make_run: MakeRun) -> None:
    whole, parts = (finish(make_run(micro_batch=n)).metrics() for n in (4, 1))
    for one, other in zip(whole, parts, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_divergence_is_caught_before_the_update(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    original = Transformer.forward
    calls = 0

    def poisoned(self: Transformer, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += self.training
        loss = original(self, tokens, targets)
        return loss * math.nan if calls == 4 else loss

    monkeypatch.setattr(Transformer, "forward", poisoned)
    seen: list[Any] = []
    finish(run, progress=lambda r: seen.append(r) if r["kind"] == "train" else None)
    result = run.result()
    assert result is not None
    assert (result["status"], result["step"]) == ("diverged", 4)
    assert result["last_finite_loss"] == seen[-1]["loss"]
    assert seen[-1]["step"] == 3
    assert all(tensor.isfinite().all() for tensor in weights(run).values())


def test_a_loss_far_above_the_start_is_divergence_too(make_run: MakeRun) -> None:
    run = finish(
        make_run(optimiser={"lr": 50.0, "clip": 0.0}, model={"depth": 2, "width": 16, "norm": "none"}, steps=40)
    )
    result = run.result()
    assert result is not None
    assert result["status"] == "diverged"
    assert math.isfinite(result["last_finite_loss"])


def test_out_of_memory_halves_the_micro_batch_and_keeps_the_batch(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = finish(make_run("plain")).metrics()
    original = loop_module.Run._loss

    def cramped(self: Any, batch_BT: torch.Tensor) -> torch.Tensor:
        if self.model.training and len(batch_BT) > 1:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes")
        return original(self, batch_BT)

    monkeypatch.setattr(loop_module.Run, "_loss", cramped)
    run = finish(make_run("cramped"))
    assert run.latest_checkpoint().state["micro_batch"] == 1  # type: ignore[union-attr]
    for one, other in zip(plain, run.metrics(), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_a_run_that_fits_nowhere_ends_oom(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop_module.Run, "_gradients", never)
    result = finish(make_run()).result()
    assert result is not None
    assert (result["status"], result["micro_batch"]) == ("oom", 1)


@pytest.mark.parametrize("rank", [0, 1])
def test_one_of_several_processes_out_of_memory_ends_badly_so_that_none_waits_for_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    class OneOfTwo(loop_module.World):  # type: ignore[name-defined,misc]
        size = 2

    OneOfTwo.rank = rank

    def never(*_: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop_module.Run, "_gradients", never)
    monkeypatch.setattr(loop_module, "world", lambda _: nullcontext(OneOfTwo()))
    run = make_run()
    with pytest.raises(DeepwideError, match="set a smaller micro_batch"):
        finish(run)
    ended = run.result()
    assert (ended["status"] if ended else None) == ("oom" if rank == 0 else None), "the first process writes"


def test_paired_runs_of_other_shapes_see_the_same_data(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    original = loop_module.training_batch  # type: ignore[attr-defined]
    monkeypatch.setattr(loop_module, "training_batch", lambda *a: seen.append(original(*a)) or seen[-1])
    finish(make_run(model={"depth": 1, "width": 8}, steps=3))
    finish(make_run(model={"depth": 3, "width": 24}, steps=3))
    assert all(torch.equal(a, b) for a, b in zip(seen[:3], seen[3:], strict=True))


def test_data_that_changed_under_a_run_stops_it(make_run: MakeRun, text: Path) -> None:
    run = make_run()
    (text / "00.txt").write_text("something else")
    with pytest.raises(DeepwideError, match="has changed since this run began"):
        finish(run)
    assert run.result() is None


@pytest.mark.parametrize("parametrisation", ["mup", "completep"])
def test_all_parametrisations_are_one_network_at_the_base_shape(make_run: MakeRun, parametrisation: str) -> None:
    model = {"depth": 2, "width": 64, "heads": 1, "base_width": 64, "base_depth": 2}
    one, other = (
        finish(make_run(model=model | {"parametrisation": kind}, steps=3)).metrics()
        for kind in ("standard", parametrisation)
    )
    assert [r["loss"] for r in one] == [r["loss"] for r in other]


def test_bf16_trains_too(make_run: MakeRun) -> None:
    plain = finish(make_run()).metrics()
    half = finish(make_run(precision="bf16")).metrics()
    assert plain[-1]["loss"] == pytest.approx(half[-1]["loss"], rel=0.01)
    assert plain[-1]["loss"] != half[-1]["loss"]
