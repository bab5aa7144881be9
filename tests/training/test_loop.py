"""A run loses nothing: interrupted anywhere it ends in the same bits; trouble ends it with a reason."""

import hashlib
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError, OutsideError
from deepwide.model import Transformer, profile
from deepwide.tasks import Batch, Language, make_task
from deepwide.training import loop as loop_module
from deepwide.training import resolve, trained_model
from training.builders import MakeRun, finish, weights

PROFILED = {"residual": "admin_profiled", "norm_place": "post", "initialisation": "xavier"}
LEVINE, LLAMA = {"depth": 2, "width": 16}, {"depth": 1, "width": 16, "preset": "llama"}


@pytest.mark.parametrize(
    "changes",
    [
        {"model": LEVINE},
        {"model": LLAMA},
        {"model": LEVINE, "task": {"name": "copying", "length": 6, "examples": 9}},
        {"model": LLAMA, "task": {"name": "reversing", "length": 6, "shortest": 2}},
        {"model": LLAMA, "task": {"name": "matching", "length": 6}},
        {"model": LEVINE | PROFILED, "task": {"name": "sorting", "length": 6}},
        {"model": LEVINE | PROFILED, "task": {"name": "reversing", "length": 6, "shortest": 2}, "dropout": 0.3},
    ],
    ids=["levine", "llama", "copying", "reversing", "matching", "profiled", "dropout"],
)
def test_a_run_stopped_after_every_step_and_inside_steps_ends_in_the_same_bits(
    make_run: MakeRun, changes: dict[str, Any]
) -> None:
    whole = finish(make_run("whole", **changes, micro_batch=2))
    broken = make_run("broken", **changes, micro_batch=2)
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


@pytest.mark.parametrize(
    "task", ["language", "copying", "sorting", "reversing", "repeats", "parity", "majority", "matching"]
)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_micro_batches_do_not_change_the_numbers(make_run: MakeRun, task: str, dropout: float) -> None:
    """Also where examples have different numbers of answers: each answer counts the same."""
    changes: dict[str, Any] = {"dropout": dropout} | ({} if task == "language" else {"task": {"name": task}})
    if task == "reversing":
        changes["task"]["shortest"] = 1
    whole, parts = (finish(make_run(f"{n}", **changes, micro_batch=n)).metrics() for n in (4, 1))
    for one, other in zip(whole, parts, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"kind"}:
            assert one[name] == pytest.approx(other[name], rel=1e-4, abs=1e-6), name


def test_divergence_is_caught_before_the_update(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    original = Transformer.forward
    calls = 0

    def poisoned(self: Transformer, tokens: torch.Tensor, targets: torch.Tensor, **inputs: Any) -> torch.Tensor:
        nonlocal calls
        calls += self.training
        loss = original(self, tokens, targets, **inputs)
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


@pytest.mark.parametrize(("first", "loss", "ends"), [
    (0.7, 2.0, False), (0.7, 3.6, False), (0.7, 3.8, True), (8.0, 15.9, False), (8.0, 16.1, True),
])  # fmt: skip
def test_one_bad_batch_of_two_classes_is_no_divergence(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, first: float, loss: float, ends: bool
) -> None:
    losses = iter([first, loss, *[first] * 40])
    original = Transformer.forward

    def told(self: Transformer, tokens: torch.Tensor, targets: torch.Tensor, **inputs: Any) -> torch.Tensor:
        real = original(self, tokens, targets, **inputs)
        return real * (next(losses) / real.detach()) if self.training else real

    monkeypatch.setattr(Transformer, "forward", told)
    result = finish(make_run(steps=3)).result()
    assert result is not None
    assert result["status"] == ("diverged" if ends else "done")


def make_cramped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Memory for one sequence at a time; returns the sizes that were tried."""
    original, tried = loop_module.Learner._loss, []

    def cramped(self: Any, batch: Batch, *smoothing: float) -> torch.Tensor:
        if self.model.training:
            tried.append(len(batch))
            if len(batch) > 1:
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes")
        return original(self, batch, *smoothing)

    monkeypatch.setattr(loop_module.Learner, "_loss", cramped)
    return tried


def test_a_run_resumes_with_the_micro_batch_that_fitted(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it runs out of memory again each time, and a halving is taken from the few it has."""
    tried = make_cramped(monkeypatch)
    run = make_run()
    left = iter([False] * 10)
    finish(run, stop=lambda: next(left, True))
    assert run.result() is None
    assert max(tried) == 4
    tried.clear()
    finish(run)
    assert set(tried) == {1}


def test_a_resumed_run_remembers_its_first_loss(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a loss that tripled while the run was stopped would become the measure of divergence."""
    run = make_run()
    left = iter([False] * 12)
    finish(run, stop=lambda: next(left, True))
    saved = run.latest_checkpoint()
    assert saved is not None
    assert 0 < saved.step < 7
    original = loop_module.Learner._loss
    monkeypatch.setattr(loop_module.Learner, "_loss", lambda self, batch: 3 * original(self, batch))
    finish(run)
    result = run.result()
    assert result is not None
    assert (result["status"], result["step"]) == ("diverged", saved.step + 1)


def test_out_of_memory_halves_the_micro_batch_and_keeps_the_batch(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = finish(make_run("plain")).metrics()
    make_cramped(monkeypatch)
    run = finish(make_run("cramped"))
    assert run.latest_checkpoint().state["micro_batch"] == 1  # type: ignore[union-attr]
    for one, other in zip(plain, run.metrics(), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_a_run_that_fits_nowhere_ends_oom(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop_module.Learner, "_gradients", never)
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

    def never(*_: Any) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop_module.Learner, "_gradients", never)
    monkeypatch.setattr(loop_module, "world", lambda _: nullcontext(OneOfTwo()))
    run = make_run()
    with pytest.raises(DeepwideError, match="set a smaller micro_batch"):
        finish(run)
    ended = run.result()
    assert (ended["status"] if ended else None) == ("oom" if rank == 0 else None), "the first process writes"


def test_paired_runs_of_other_shapes_see_the_same_data(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    original = Language.batch

    def watched(self: Language, first: int, rows: int, seed: int) -> Batch:
        batch = original(self, first, rows, seed)
        seen.append(batch.tokens_BT)
        return batch

    monkeypatch.setattr(Language, "batch", watched)
    finish(make_run(model={"depth": 1, "width": 8}, steps=3))
    finish(make_run(model={"depth": 3, "width": 24}, steps=3))
    assert all(torch.equal(a, b) for a, b in zip(seen[:3], seen[3:], strict=True))


def test_data_that_changed_under_a_run_stops_it(make_run: MakeRun, text: Path) -> None:
    run = make_run()
    (text / "00.txt").write_text("something else")
    with pytest.raises(DeepwideError, match="has changed since this run began"):
        finish(run)
    assert run.result() is None


def test_tokens_that_changed_with_their_checksum_under_a_run_stop_it(make_run: MakeRun, text: Path) -> None:
    """A cache that agrees with itself and is not the one that the run began with."""
    run = make_run()
    left = iter([False] * 12)
    finish(run, stop=lambda: next(left, True))
    assert run.checkpoint_steps()
    (path,) = (text.parent / "cache" / "tokens").glob("*/corpus.json")
    content = bytearray((path.parent / "train.bin").read_bytes())
    content[4] ^= 1
    (path.parent / "train.bin").write_bytes(content)
    about = json.loads(path.read_text())
    about["train"]["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(about))
    with pytest.raises(OutsideError, match="not those that this run began with"):
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


@pytest.mark.parametrize("name", ["copying", "sorting", "reversing", "repeats", "parity", "majority", "matching"])
def test_every_task_trains_and_reports_its_metrics(make_run: MakeRun, name: str) -> None:
    run = finish(make_run(task={"name": name}, model={"depth": 1, "width": 16, "preset": "llama"}))
    result = run.result()
    assert result is not None
    assert result["status"] == "done"
    assert 0 <= result["accuracy"] <= 1
    assert result["validation_loss"] == run.metrics()[-1]["loss"]
    assert "bits_per_byte" not in result


def test_a_small_encoder_learns_to_sort(make_run: MakeRun) -> None:
    """Far above guessing, which is right about once in four times at best."""
    changes = {"model": {"depth": 2, "width": 32}, "steps": 250, "batch": 32, "optimiser": {"lr": 3e-3}}
    run = finish(make_run(task={"name": "sorting", "length": 6}, **changes, evaluation={"sequences": 64}))
    assert run.metrics()[-1]["accuracy"] > 0.8


def test_a_task_that_changed_under_a_run_stops_it(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(task={"name": "sorting"})
    monkeypatch.setattr("deepwide.tasks.sequences.Sorting.version", 2)
    with pytest.raises(DeepwideError, match="has changed since this run began"):
        finish(run)
    assert run.result() is None


def test_a_run_starts_with_the_profile_of_its_own_first_sequences(make_run: MakeRun) -> None:
    """ADMIN's ω: the same whatever is done later, and trained from there on."""
    task = make_task("sorting", {"length": 6})
    run = make_run(model=LEVINE | PROFILED, task={"name": "sorting", "length": 6}, micro_batch=2, steps=1, seed=3)
    config = resolve(run.config)
    fresh = Transformer(config.architecture, seed=3)
    profile(fresh, task.batch(0, 2, 3).tokens_BT)
    omegas = {name: p.detach().clone() for name, p in fresh.named_parameters() if name.endswith("join.scale")}
    assert len({float(omega[0]) for omega in omegas.values()}) == 4
    trained = weights(finish(run))
    for name, omega in omegas.items():
        moved = (trained[f"model.{name}"] - omega).abs()
        assert 0 < float(moved.max()) < 2 * config.optimiser.lr


def test_answers_are_smoothed_in_training_and_not_in_evaluation(make_run: MakeRun) -> None:
    """At the start, where both networks are one: the loss of step 1 differs, the first validation loss does not."""
    plain = finish(make_run("plain", task={"name": "majority"}, steps=1))
    smooth = finish(make_run("smooth", task={"name": "majority"}, steps=1, label_smoothing=0.4))
    before, after = plain.metrics(), smooth.metrics()
    assert before[0]["kind"] == after[0]["kind"] == "validation"
    assert before[0]["loss"] == after[0]["loss"]
    losses = [next(record["loss"] for record in records if record["kind"] == "train") for records in (before, after)]
    assert losses[0] != losses[1]


def test_dropout_is_on_in_training_and_off_in_evaluation(make_run: MakeRun) -> None:
    plain = finish(make_run("plain", task={"name": "majority"}, steps=1)).metrics()
    dropped = finish(make_run("dropped", task={"name": "majority"}, steps=1, dropout=0.4))
    records = dropped.metrics()
    assert records[0]["kind"] == "validation"
    assert records[0]["loss"] == plain[0]["loss"]
    first = [next(record["loss"] for record in each if record["kind"] == "train") for each in (plain, records)]
    assert first[0] != first[1]
    tokens = torch.ones(2, 15, dtype=torch.long)
    model = trained_model(dropped)
    assert torch.equal(model(tokens), model(tokens))
