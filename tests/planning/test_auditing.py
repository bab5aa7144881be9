"""Verdicts: the rule, its edges, and what surrounds it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.answers import Interval
from deepwide.catalogue import all_models, find_model
from deepwide.errors import DeepwideError
from deepwide.laws import (
    AspectLaw,
    TransitionLaw,
    depth_cost,
    depth_law,
    step_time_ratio,
    transition_law,
    worth_of,
)
from deepwide.planning import Audit, audit, plan
from deepwide.shape import Shape, flops, read_config, write_config

JAMBA = read_config(
    {"model_type": "jamba", "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
     "intermediate_size": 2048, "num_hidden_layers": 16, "max_position_embeddings": 128, "num_experts": 4,
     "num_experts_per_tok": 2, "mamba_dt_rank": 4, "attn_layer_period": 2, "attn_layer_offset": 1}
).shape  # fmt: skip


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
    assert verdict.verdict.outcome == expected
    ratio = verdict.depth_over_law
    assert ratio.low is not None and ratio.high is not None  # noqa: PT018
    assert ratio.low <= ratio.value <= ratio.high


def test_deepening_a_shape_never_turns_the_verdict_shallow() -> None:
    order = ["too shallow", "within", "too deep"]
    seen = [order.index(audit(Shape(depth=depth, width=1024)).verdict.outcome) for depth in range(1, 120)]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}


def test_a_law_without_errors_judges_by_a_tenth() -> None:
    law = AspectLaw(name="mine", ratio=64)
    width = 64 * 20
    on = Shape(depth=20, width=width)
    exact = float(law.depth(on.block_params).value[0])
    assert audit(on, law=law).verdict.outcome == "within"
    assert audit(on.but(depth=math.ceil(exact * 1.2)), law=law).verdict.outcome == "too deep"
    assert "10%" in audit(on, law=law).verdict.rule


def test_a_fitted_law_takes_the_place_of_the_published_one_and_is_listed_first() -> None:
    mine = TransitionLaw(name="mine", a=4.0, b=0.1)
    verdict = audit(find_model("gpt2").shape, law=mine)
    assert verdict.law == "mine"
    assert [opinion.law for opinion in verdict.opinions][:2] == ["mine", "levine"]


def test_the_cost_is_against_the_law_s_own_depth() -> None:
    shape = find_model("pythia-1b").shape
    verdict = audit(shape)
    assert verdict.loss_percent == depth_cost(shape.depth, verdict.law_depth.value, shape.block_params)
    assert "cost-extrapolated" not in [note.code for note in verdict.notes]
    (note,) = [note for note in audit("llama-3-8b").notes if note.code == "cost-extrapolated"]
    assert note.data["largest"] == pytest.approx(1.77e9, rel=0.01)


def test_the_shape_offered_instead_has_about_the_same_size() -> None:
    for model in all_models():
        instead = audit(model.shape).instead
        if model.shape.experts or model.shape.latent:
            assert instead is None, model.name
            continue
        assert instead is not None, model.name
        assert instead.block_params == pytest.approx(model.shape.block_params, rel=0.05), model.name


@pytest.mark.parametrize("name", ["llama-3.2-3b", "llama-3-8b", "qwen3-8b", "qwen2.5-7b", "mistral-7b"])
def test_the_shape_offered_instead_can_be_built(name: str) -> None:
    """Newcomer's review, S11: 37 × 64 wide for a model with 8 key/value heads of 128."""
    result, model = audit(name), find_model(name)
    assert result.instead is not None
    assert (result.instead.kv_heads, result.instead.head_dim) == (model.shape.kv_heads, model.shape.head_dim)
    assert result.instead.width == result.instead.heads * result.instead.head_dim
    assert result.instead.depth == pytest.approx(result.law_depth.value, rel=0.05)
    assert model.family is not None
    assert write_config(result.instead, model.family)["num_hidden_layers"] == result.instead.depth


def test_a_width_beyond_the_vocabulary_or_a_narrow_embedding_is_wasted() -> None:
    assert audit(Shape(depth=4, width=512, vocab=256)).vocabulary_wastes_width
    assert not audit(Shape(depth=4, width=512, vocab=512)).vocabulary_wastes_width
    assert audit(find_model("opt-350m").shape).vocabulary_wastes_width


def test_experts_are_judged_by_active_parameters_as_they_are_planned_and_by_total_ones_beside() -> None:
    """A fresh user's find: an audit led with total parameters where a plan counts active ones."""
    result = audit("qwen3-30b-a3b")
    active = result.params.block - result.params.inactive
    assert result.law_depth == depth_law(None).depth(active).at()
    assert result.law_depth == plan(active, experts=128, active=8).law_depth
    assert result.verdict.outcome == "within"
    assert result.verdict_total is not None
    assert result.verdict_total.outcome == "too shallow"
    assert result.verdict_total.measured is not None
    assert result.verdict_total.measured.value == 48 / depth_law(None).depth_at(result.params.block)
    assert result.words.startswith("within by active, too shallow by total parameters")
    assert result.loss_percent == depth_cost(48, result.law_depth.value, active)
    assert result.rows()[0]["block_params"] == active
    (note,) = [note for note in result.notes if note.code == "experts"]
    assert (note.data["active"], note.data["block"]) == (active, result.params.block)
    assert audit("gpt2").verdict_total is None
    assert audit("mixtral-8x7b").words.startswith("too shallow by active and total parameters, ")


def test_theory_s_threshold_is_log_3_of_the_width() -> None:
    verdict = audit(Shape(depth=7, width=729 * 3, heads=3))
    assert verdict.theory_threshold == pytest.approx(7)
    assert not verdict.past_threshold


def test_the_library_takes_a_name_and_refuses_what_is_neither() -> None:
    assert audit("gpt2") == audit(find_model("gpt2").shape, name="gpt2", family="gpt2")
    with pytest.raises(DeepwideError, match="a model is a Shape, a name of the catalogue or a path"):
        audit(42)  # type: ignore[arg-type]


def test_far_beyond_the_data_no_loss_is_quoted() -> None:
    verdict = audit(Shape(depth=100_000, width=64))
    assert verdict.loss_percent is None
    assert verdict.cost == "no data"
    assert "no loss data" in verdict.sentence


def test_a_law_at_odds_with_the_loss_data_is_said_to_be() -> None:
    shape = Shape(depth=12, width=874, heads=2)
    deep = TransitionLaw(name="mine", a=2.4, b=0.029)
    verdict = audit(shape, law=deep)
    assert verdict.verdict.outcome == "too shallow"
    assert verdict.cost == "negative"
    assert "loss data disagree" in verdict.sentence


def test_a_fitted_law_with_a_published_name_judges_and_is_listed_beside_it() -> None:
    """Code review, B1: the published law took its place in the table."""
    mine = TransitionLaw(name="levine", a=4.5, b=0.08)
    result = audit("gpt2", law=mine)
    depths = [opinion.depth for opinion in result.opinions if opinion.law == "levine"]
    size = result.params.block
    assert depths == pytest.approx([float(law.depth(size).value[0]) for law in (mine, transition_law())])
    assert depths[0] == result.law_depth.value
    assert depths[0] == pytest.approx(plan(size, law=mine).opinions[0].depth, rel=0.01)


@pytest.mark.parametrize(
    ("name", "cost", "words"),
    [
        ("qwen3-8b", "not determined", "cost not determined"),
        ("llama-3.2-1b", "not determined", "cost not determined"),
        ("smollm2-1.7b", "not determined", "cost not determined"),
    ],
)
def test_a_verdict_says_whether_its_cost_is_measurable(name: str, cost: str, words: str) -> None:
    """Newcomer's review, S3: "too shallow" alone reads as a fault, where no loss data show one."""
    result = audit(name)
    assert result.loss_percent is not None
    assert result.loss_percent.low is not None
    assert result.loss_percent.low < 0
    assert result.cost == cost
    assert result.words == f"too shallow, {words}"


def test_a_wrong_depth_that_costs_says_so() -> None:
    result = audit(Shape(depth=3, width=3328), law="pooled")
    assert result.cost == "measurable"
    assert result.words == "too shallow, measurable cost"
    assert "expect" in result.sentence


def test_an_audit_has_a_verdict_with_its_claim_rule_and_measurement() -> None:
    result = audit("gpt3-175b")
    assert isinstance(result, Audit)
    verdict = result.verdict
    assert (verdict.outcome, verdict.measured) == ("too deep", result.depth_over_law)
    assert "gpt3-175b" in verdict.claim
    assert "levine" in verdict.claim
    assert "95%" in verdict.rule


def test_what_a_depth_is_worth_is_the_loss_put_into_the_surface() -> None:
    result = audit("llama-3-8b", tokens="15T", price=2.0)
    assert result.worth is not None
    assert result.loss_percent is not None
    per_flop = 2.0 / 3600 / 4e14
    # By hand: every matrix, and the keys and values of half the context; then an hour of 4e14 per second costs 2.
    s = result.shape
    matrices = result.params.total - s.vocab * s.width - (2 * s.depth + 1) * s.width  # no lookup and no norms
    per_token = 3 * (2 * matrices + s.depth * 2 * s.heads * s.head_dim * (s.context + 1))
    assert result.worth == worth_of(result.loss_percent, result.params.total, 15e12, "epoch", per_flop, per_token)
    assert result.worth.money is not None
    hours = per_token * 15e12 / 4e14 / 3600
    assert result.worth.training_money == pytest.approx(2.0 * hours)
    assert result.worth.money.value == pytest.approx(2.0 * hours * result.worth.flops_percent.value / 100)
    assert audit("llama-3-8b", tokens="15T", price=2.0, gpu_flops=2e14).worth.training_money == pytest.approx(4 * hours)  # type: ignore[union-attr]
    assert result.step_time == step_time_ratio(32, result.law_depth.value)
    usual = audit("llama-3-8b").worth
    assert usual is not None
    assert (usual.tokens, usual.money) == (20 * result.params.total, None)
    mixture = audit("mixtral-8x7b", price=2.0)
    assert mixture.loss_percent is not None
    counted = flops(mixture.shape, convention="causal").training_per_token
    tokens = 20.0 * mixture.params.active
    assert mixture.worth == worth_of(mixture.loss_percent, mixture.params.active, tokens, "epoch", per_flop, counted)
    hybrid = audit(JAMBA, price=2.0)
    assert hybrid.worth is not None
    assert hybrid.worth.money is not None
    assert hybrid.worth.tokens == 20 * hybrid.params.active
    assert "hybrid" in [note.code for note in hybrid.notes]
    far = audit(Shape(depth=100_000, width=64), price=2.0)
    assert far.worth is None
    assert "no-price" in [note.code for note in far.notes]
    for wrong in (
        {"price": -1},
        {"price": 1, "gpu_flops": 0},
        {"tokens": "many"},
        {"tokens": "1e30"},
        {"compute": "nobody"},
    ):
        with pytest.raises(DeepwideError):
            audit("llama-3-8b", **wrong)


def test_an_audit_and_a_plan_count_the_same_training_flops() -> None:
    """A fresh user's find: 6·P·D here, 28% less than a plan's count at a context of 32Ki."""
    best = plan("1.3B", kv_heads=8, context="32Ki")
    result = audit(best.shape, tokens=best.tokens, price=2.0)
    assert result.worth is not None
    assert result.worth.training_flops == best.train_flops
    assert result.worth.training_flops > 1.2 * 6 * best.params.total * best.tokens
    noted = [note.code for note in result.notes]
    assert "price-of-the-context" in noted
    shorter = audit(best.shape, tokens=best.tokens, price=2.0, context=2048)
    assert shorter.worth is not None
    assert shorter.worth.training_flops < 0.8 * best.train_flops
    assert "price-of-the-context" not in [note.code for note in shorter.notes]


def test_one_head_that_nobody_asked_for_is_noted() -> None:
    noted = [note.code for note in audit(depth=10, width=1601).notes]
    assert "assumed-heads" in noted
    for other in (audit(depth=10, width=1600), audit(depth=10, width=1601, heads=1), audit(depth=10, width=48)):
        assert "assumed-heads" not in [note.code for note in other.notes]


def test_it_is_a_row_and_a_json_document() -> None:
    (row,) = audit("gpt3-175b").rows()
    assert (row["outcome"], row["cost"], row["depth"]) == ("too deep", "not determined", 96)
    document = audit("gpt3-175b").model_dump(mode="json")
    assert document["verdict"]["outcome"] == "too deep"
    assert {"code", "text", "data"} == set(document["notes"][0])


@pytest.mark.parametrize(
    ("low", "high", "cost"),
    [
        (-1.02, 11.52, "not determined"),
        (-3.0, 0.5, "not determined"),
        (-0.34, 0.91, "not measurable"),
        (0.2, 9.0, "measurable"),
        (-9.0, -0.2, "negative"),
    ],
)
def test_a_wide_interval_around_zero_is_no_sign_of_no_cost(low: float, high: float, cost: str) -> None:
    """A new user read "no measurable cost" beside +5.06% of loss (-1.02 to +11.52)."""
    result = audit("gpt2").model_copy(update={"loss_percent": Interval((low + high) / 2, low, high)})
    assert result.cost == result.rows()[0]["cost"] == cost
    assert ("no measurable cost" in result.words) == ("no measurable cost" in result.sentence) == ("not m" in cost)
    assert ("cost not determined" in result.words) == ("cost not determined" in result.sentence) == ("not d" in cost)
