"""Why and what to know: codes for programs, sentences for people, and no option of a command line in any of them."""

import itertools
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.laws import Bowl, TransitionLaw, depth_law
from deepwide.planning import Speed, audit, plan
from deepwide.planning.reasons import law_notes

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


def test_the_loss_data_of_a_fitted_law_are_its_own() -> None:
    (source,) = [note for note in plan("50M", law=OWN).notes if note.code == "cost-source"]
    assert "mine" in source.text
    assert source.data["extrapolated"] is False


@pytest.mark.parametrize("depth", [12, 42, 200])
def test_the_reason_names_what_is_fixed(depth: int) -> None:
    reason = plan("1.3B", depth=depth).reason
    assert "with the depth you fixed" in reason
    assert reason.endswith(".")


def speed_of(loss: float) -> Speed:
    return Speed(
        machine="mine",
        source="a test",
        batch=2,
        cached=2048,
        limit_seconds=0.008,
        decode_seconds=Interval(0.0079),
        tokens_per_second=253.0,
        train_step_seconds=None,
        loss_percent=Interval(loss),
        frontier=[],
    )


def test_a_limit_that_costs_something_is_a_note() -> None:
    limit, machine = speed_of(0.5).notes()
    assert limit.code == "speed-limit"
    assert "8 ms per token costs +0.50%" in limit.text
    assert "the last token of 2,048, batch 2, on mine: a test" in machine.text


def test_a_limit_that_costs_nothing_is_none() -> None:
    assert [note.code for note in speed_of(0.0).notes()] == ["machine"]
