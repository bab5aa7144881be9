"""Verdicts: the rule, its edges, and what surrounds it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.auditing import WITHIN, audit
from deepwide.catalogue import all_models, find_model
from deepwide.errors import DeepwideError
from deepwide.laws import AspectLaw, TransitionLaw, depth_cost, transition_law
from deepwide.shape import Shape


def test_known_models_sit_where_the_facts_put_them() -> None:
    """laws.md: Llama-3-405B 1.44, PaLM 1.32, GPT-3 1.19; Qwen-32B, Falcon-180B, SmolLM2-360M near 1."""
    expected = {"llama-3.1-405b": 1.44, "palm-540b": 1.32, "gpt3-175b": 1.19, "qwen2.5-32b": 0.96, "falcon-180b": 0.99}
    for name, ratio in expected.items():
        assert audit(find_model(name).shape).depth_over_law.value == pytest.approx(ratio, abs=0.006)


@given(depth=st.integers(1, 300), width=st.integers(1, 300))
def test_the_verdict_follows_its_rule(depth: int, width: int) -> None:
    shape = Shape(depth=depth, width=64 * width)
    verdict = audit(shape)
    law = transition_law().depth(shape.block_params).at()
    assert law.low is not None and law.high is not None  # noqa: PT018
    expected = "too deep" if depth > law.high else "too shallow" if depth < law.low else "within"
    assert verdict.verdict == expected
    ratio = verdict.depth_over_law
    assert ratio.low is not None and ratio.high is not None  # noqa: PT018
    assert ratio.low <= ratio.value <= ratio.high


def test_deepening_a_shape_never_turns_the_verdict_shallow() -> None:
    order = ["too shallow", "within", "too deep"]
    seen = [order.index(audit(Shape(depth=depth, width=1024)).verdict) for depth in range(1, 120)]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}


def test_a_law_without_errors_judges_by_a_tenth() -> None:
    law = AspectLaw(name="mine", ratio=64)
    width = 64 * 20
    on = Shape(depth=20, width=width)
    exact = float(law.depth(on.block_params).value[0])
    assert audit(on, law=law).verdict == "within"
    assert audit(on.but(depth=math.ceil(exact * (1 + 2 * WITHIN))), law=law).verdict == "too deep"
    assert "10%" in audit(on, law=law).rule


def test_a_fitted_law_takes_the_place_of_the_published_one_and_is_listed_first() -> None:
    mine = TransitionLaw(name="mine", a=4.0, b=0.1)
    verdict = audit(find_model("gpt2").shape, law=mine)
    assert verdict.law == "mine"
    assert [opinion.law for opinion in verdict.opinions][:2] == ["mine", "levine"]


def test_the_cost_is_against_the_law_s_own_depth() -> None:
    shape = find_model("pythia-1b").shape
    verdict = audit(shape)
    assert verdict.loss_percent == depth_cost(shape.depth, verdict.law_depth.value, shape.block_params)
    assert verdict.extrapolated is None
    assert "1.8B" in (audit(find_model("llama-3-8b").shape).extrapolated or "")


def test_the_shape_offered_instead_has_about_the_same_size() -> None:
    for model in all_models():
        verdict = audit(model.shape)
        size = verdict.instead_depth * verdict.instead_width**2
        assert size == pytest.approx(model.shape.depth * model.shape.width**2, rel=0.15), model.name


def test_a_width_beyond_the_vocabulary_or_a_narrow_embedding_is_wasted() -> None:
    assert audit(Shape(depth=4, width=512, vocab=256)).vocabulary_wastes_width
    assert not audit(Shape(depth=4, width=512, vocab=512)).vocabulary_wastes_width
    assert audit(find_model("opt-350m").shape).vocabulary_wastes_width


def test_experts_are_judged_by_all_blocks_and_told_so() -> None:
    (note,) = [n for n in audit(find_model("mixtral-8x7b").shape).notes if "dense" in n]
    assert "active" in note


def test_theory_s_threshold_is_log_3_of_the_width() -> None:
    verdict = audit(Shape(depth=7, width=729 * 3, heads=3))
    assert verdict.theory_threshold == pytest.approx(7)
    assert not verdict.past_threshold


def test_the_library_takes_a_name_and_refuses_what_is_neither() -> None:
    assert audit("gpt2") == audit(find_model("gpt2").shape, name="gpt2")
    with pytest.raises(DeepwideError, match="a Shape or a model's name"):
        audit(42)  # type: ignore[arg-type]


def test_far_beyond_the_data_no_loss_is_quoted() -> None:
    verdict = audit(Shape(depth=100_000, width=64))
    assert verdict.loss_percent is None
    assert "no loss data" in verdict.sentence


def test_a_law_at_odds_with_the_loss_data_is_said_to_be() -> None:
    shape = Shape(depth=30, width=512)
    deep = TransitionLaw(name="mine", a=1.0, b=0.03)
    verdict = audit(shape, law=deep)
    assert verdict.verdict == "too shallow"
    assert "loss data disagree" in verdict.sentence
