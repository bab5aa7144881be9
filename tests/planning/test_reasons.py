"""Why and what to know: codes for programs, sentences for people, and no option of a command line in any of them."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from deepwide.answers import Interval, Note
from deepwide.laws import Bowl, JointLaw, TransitionLaw, depth_law
from deepwide.planning import Speed, SpeedRow, audit, count, plan
from deepwide.planning.reasons import law_notes
from deepwide.quantities import show_bytes

OWN = TransitionLaw(
    name="mine", a=4.5, b=0.08, bowl=Bowl(curvature=0.02, error=0.001, x_range=(-1, 1)),
    cautions=("two cells decide it",), fitted_block_params=(1e6, 1e8),
)  # fmt: skip


def test_every_note_has_a_code_and_names_no_option() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"kind": "memory"},
        {"tensor_parallel": 5, "kv_heads": 4},
        {"vocab": 256},
        {"law": OWN},
        {"machine": "eager"},
        {"machine": "tensor-8", "latency": "2ms"},
        {"kind": "memory", "throughput": 900, "batch": 4, "at_most": True},
        {"experts": 8, "active": 2, "granularity": 7.7},
    ]
    plans = [plan(3_000_000_000, **more).notes for more in options]
    audits = [audit(name).notes for name in ("gpt2", "mixtral-8x7b", "opt-350m", "llama-3-8b")]
    for note in itertools.chain(*plans, *audits):
        assert note.code
        assert note.code == note.code.lower()
        assert "--" not in note.text
        assert not note.text.endswith(".")


def test_a_law_s_cautions_and_its_extrapolation_are_noted() -> None:
    notes = law_notes(OWN, 1e10)
    assert [note.code for note in notes] == ["law-caution", "law-extrapolated"]
    assert notes[1].data == {"law": "mine", "smallest": 1e6, "largest": 1e8, "factor": 100.0}
    assert law_notes(depth_law("nanochat"), 1e10) == []


def test_a_law_whose_growth_may_end_says_what_is_best_if_it_does() -> None:
    """The depth of a plan is for growth that goes on; without this it contradicts its own table of costs."""
    draws = ((2.0, 0.3, 0.0, 0.25, 0.02, 0.0, 0.1, 0.0),) * 100
    law = JointLaw(
        name="mine", centre_params=1e7, soft=0.25, relax=0.3, sizes=(1e6, 1e8), fitted_block_params=(1e6, 1e8),
        draws=draws, may_end=True,
    )  # fmt: skip
    (note,) = [note for note in law_notes(law, 1e10) if note.code == "growth-may-end"]
    assert note.data["depth"] == pytest.approx(math.exp(2 + 0.3 * math.log(10)))
    assert "growth-may-end" not in [note.code for note in law_notes(law, 5e7)]


def test_the_loss_data_of_a_fitted_law_are_its_own() -> None:
    (source,) = [note for note in plan("50M", law=OWN).notes if note.code == "cost-source"]
    assert "mine" in source.text
    assert source.data["extrapolated"] is False


@pytest.mark.parametrize("depth", [12, 42, 200])
def test_the_reason_names_what_is_fixed(depth: int) -> None:
    reason = plan("1.3B", depth=depth).reason
    assert "with the depth you fixed" in reason
    assert reason.endswith(".")


def row_of(depth: int, seconds: float, loss: float, chosen: bool = False) -> SpeedRow:
    by_law, by_data = Interval(loss), Interval(loss / 2, loss / 2 - 1, loss / 2 + 1)
    return SpeedRow(depth, 512, 8, 64, 10**8, 2 * 10**8, by_law, by_data, Interval(seconds), 2 / seconds, chosen)


def speed_of(loss: float, **changes: Any) -> Speed:
    usual: dict[str, Any] = {
        "machine": "mine",
        "source": "a test",
        "devices": 1,
        "batch": 2,
        "cached": 2048,
        "limit_seconds": 0.008,
        "limit_words": "within 8 ms per token",
        "decode_seconds": Interval(0.0079),
        "tokens_per_second": 253.0,
        "train_step_seconds": None,
        "loss_percent": Interval(loss),
        "frontier": [row_of(12, 0.0079, loss, chosen=True)],
        "without_limit": row_of(24, 0.02, 0.0, chosen=loss == 0),
        "data_percent": Interval(loss / 2, loss / 2 - 1, loss / 2 + 1),
        "own_data": False,
        "quicker_and_better": None,
        "weights": "bf16",
        "device_bytes": 10**9,
        "memory_bytes": 8 * 10**10,
    }
    return Speed(**usual | changes)


def test_a_limit_that_costs_something_is_a_note() -> None:
    limit, machine = speed_of(0.5).notes("levine", "bf16")
    assert limit.code == "speed-limit"
    assert "being within 8 ms per token costs +0.50%" in limit.text
    assert "if the levine law is right about the best depth; +0.25% by the loss data" in limit.text
    assert "loss data" not in speed_of(0.5, own_data=True).notes("pooled", "bf16")[0].text
    assert "24 × 512 at 20 ms per token" in limit.text
    assert "the last token of 2,048, batch 2, weights in bf16, on mine: a test" in machine.text


def test_a_limit_that_costs_nothing_says_so() -> None:
    assert "is quick enough: the limit changes nothing" in speed_of(0.0).notes("levine", "bf16")[0].text


def test_a_limit_that_only_the_estimate_meets_says_so() -> None:
    assert (
        "its interval reaches 9 ms"
        in speed_of(0.5, decode_seconds=Interval(0.0079, 0.007, 0.009)).notes("x", "bf16")[0].text
    )
    assert "interval" not in speed_of(0.5, decode_seconds=Interval(0.0075, 0.0070, 0.0079)).notes("x", "bf16")[0].text


def test_without_a_limit_a_shape_that_beats_the_plan_is_named() -> None:
    def notes(other: SpeedRow) -> list[Note]:
        free = speed_of(0.0, limit_seconds=None, limit_words="", quicker_and_better=other, frontier=[])
        return free.notes("levine", "bf16")

    beaten = notes(replace(row_of(16, 0.01, -0.2), loss_percent=Interval(0.3)))
    assert [note.code for note in beaten] == ["quicker-and-better", "machine"]
    assert (
        "by the loss data alone 16 × 512 would be quicker (10 ms per token) and have -0.10% of loss" in beaten[0].text
    )
    assert "trusts the levine law" in beaten[0].text
    assert "the levine law prefers it too" in notes(row_of(16, 0.01, -0.2))[0].text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"budget": "200M", "tensor_parallel": 8}, "heads of 64 in multiples of 8 do not divide a width of "),
        ({"budget": "640M", "kv_heads": 8}, "heads of 64 in multiples of 8 do not divide a width of 1,280"),
    ],
)
def test_the_reason_for_unusual_heads_is_the_true_one(options: dict[str, Any], why: str) -> None:
    best = plan(**options)
    text = next(note.text for note in best.notes if note.code == "head-width")
    assert why in text
    assert best.shape.width % (64 * 8)


def test_fewer_layers_than_the_law_s_are_explained() -> None:
    best = plan("16GB", kind="memory", kv_heads=8, context="32Ki", batch=8)
    note = next(note for note in best.notes if note.code == "fewer-layers")
    cache = 2 * 2 * 8 * best.shape.head_dim * 8 * 2**15
    assert f"in every layer the cache takes {show_bytes(cache)}" in note.text
    assert best.fixed == "budget"
    assert best.law_params == best.params.active_block
    assert best.law_depth == audit(best.shape).law_depth
    assert "with the depth that suits the budget" in best.reason
    assert note.data["loss_percent"] > 5
    assert "within this budget fewer layers lose less" in best.brief().splitlines()[2]
    at_the_law = plan("16GB", kind="memory", kv_heads=8)
    assert at_the_law.fixed is None
    assert audit(at_the_law.shape).verdict.outcome == "within"


def test_where_the_cache_leaves_room_for_few_layers_the_budget_is_named() -> None:
    """A fresh user's find: 3 × 2048 was "the nearest shape that divides well" where the cache left room for no more."""
    best = plan("4GB", kind="memory", kv_heads=8, context="32Ki", batch=8, head_dim=128)
    assert best.fixed == "budget"
    assert "with the depth that suits the budget" in best.reason
    assert "divides well" not in best.reason
    assert "disagree" not in best.reason
    note = next(note for note in best.notes if note.code == "fewer-layers")
    assert note.data["loss_percent"] > 20
    for budget in ("2.4GB", "3.6GB", "5GB"):  # whatever depth the law's rounds to
        other = plan(budget, kind="memory", kv_heads=8, context="32Ki", batch=8, head_dim=128)
        note = next(note for note in other.notes if note.code == "fewer-layers")
        assert 20 < note.data["loss_percent"] < 100
    assert "depth-pushed" not in [note.code for note in best.notes]


def test_depths_of_the_same_size_that_the_budget_does_not_hold_are_named() -> None:
    best = plan("80GB", kind="memory", context="128Ki", batch=16, kv_heads=8)
    note = next(note for note in best.notes if note.code == "depths-over-budget")
    deep = best.candidates[-1]
    cache = 2 * 2 * 8 * deep.head_dim * deep.depth * 16 * 2**17
    assert deep.budget_share == pytest.approx((2 * deep.total_params + cache) / 80e9)
    assert f"{deep.depth} layers {deep.budget_share:.2f} times" in note.text
    assert f"takes {deep.budget_share:.2f} times the budget" in best.brief().splitlines()[-1]
    assert "depths-over-budget" not in [note.code for note in plan("1.3B", context="128Ki").notes]


def test_where_the_cache_decides_key_value_heads_are_named() -> None:
    note = next(n for n in plan("80GB", kind="memory", context="128Ki", batch=16).notes if n.code == "fewer-layers")
    assert "less with fewer key/value heads" in note.text
    fewer = plan("80GB", kind="memory", context="128Ki", batch=16, kv_heads=8)
    assert "less with fewer" not in next(n for n in fewer.notes if n.code == "fewer-layers").text


def test_a_brief_plan_has_devices_and_what_makes_it_doubtful() -> None:
    lines = plan("7B", tensor_parallel=8, data_parallel=8, zero=3).brief().splitlines()
    assert len(lines) == 5
    assert "per device" in lines[1]
    assert "extrapolated by a factor 2.5" in lines[2]
    assert plan("7B", zero=3).brief().splitlines()[-1].startswith("note: ZeRO 3 shares")
    assert "push the depth to 11" in plan("7B", tensor_parallel=1000).brief()
    quick = plan("7B", throughput=5000, batch=32, kv_heads=8, context="8Ki").brief().splitlines()
    assert quick[-1].endswith("too slow for the limit")


def test_zero_without_copies_says_what_to_do() -> None:
    alone = plan("1.3B", zero=3)
    assert "zero-without-copies" in [note.code for note in alone.notes]
    assert "zero-without-copies" not in [note.code for note in plan("1.3B", zero=3, data_parallel=8).notes]
    assert "zero-without-copies" in [note.code for note in count("gpt2", zero=1).notes]


def test_a_model_that_exceeds_the_memory_of_a_device_is_a_note() -> None:
    other, note = speed_of(0.0, devices=8, device_bytes=9 * 10**10).notes("levine", "fp8")[-2:]
    assert other.text == "times are those of weights in bf16, memory is that of weights in fp8"
    assert note.code == "exceeds-memory"
    assert "weights (fp8) and cache (2 × 2,048 tokens) take 90 GB, and each of its devices has 80 GB" in note.text
    assert note.data == {"device_bytes": 9 * 10**10, "memory_bytes": 8 * 10**10}
    for unknown in ({"device_bytes": None}, {"memory_bytes": None}):
        assert "exceeds-memory" not in [n.code for n in speed_of(0.0, **unknown).notes("levine", "bf16")]


def test_a_plan_with_one_depth_only_does_not_blame_the_loss_data() -> None:
    lonely = plan("10M", tensor_parallel=64)
    assert len(lonely.candidates) == 1
    assert "No other depth that was tried divides as asked" in lonely.reason
    assert lonely.brief().splitlines()[3] == "no other depth that was tried divides as asked at this size"


def test_narrow_heads_at_other_depths_are_noted() -> None:
    best = plan("133M", kv_heads=16)
    tiny = [c.depth for c in best.candidates if c.head_dim < 32]
    note = next(note for note in best.notes if note.code == "narrow-heads-at-other-depths")
    assert best.shape.head_dim >= 32
    assert note.data["depths"] == tiny == [52]
    for other in (plan("133M"), plan("133M", head_dim=16)):
        assert "narrow-heads-at-other-depths" not in [note.code for note in other.notes]
