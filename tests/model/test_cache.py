"""Named activations: each is what a slow second implementation computes, and reading them changes nothing."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer, from_hugging_face
from model.builders import SMALL, designs, hugging_face, inputs_for, seeded, shaken
from model.reference import Reference

TOKENS_BT = torch.randint(11, (2, 8), generator=seeded(5))


def decoder(**changes: Any) -> Transformer:
    return Transformer(Architecture.of(**(SMALL | changes)))


@settings(max_examples=80, deadline=None)
@given(designs(), st.integers(0, 99), st.booleans())
def test_every_activation_is_what_a_slow_network_of_plain_loops_computes(
    design: Architecture, seed: int, padded: bool
) -> None:
    model = shaken(design, seed)
    inputs = inputs_for(design, seed, padded=padded)
    with torch.no_grad():
        output, cache = model.run_with_cache(**inputs)
        plain = model(**inputs)
    assert list(cache) == model.cache_names()
    scale = max(1.0, float(plain.abs().max()))  # without norms numbers grow large
    assert torch.allclose(output, plain, rtol=1e-9, atol=1e-11 * scale)
    # Angles of rotary positions and slopes of ALiBi are kept in float32.
    digits = 1e-5 if design.shape.positions in ("rotary", "alibi") else 1e-9
    for row in range(2):
        reference = Reference(design, dict(model.named_parameters()))
        given = {name: tensor[row].numpy() for name, tensor in inputs.items()}
        logits = reference.run(
            given["tokens_BT"], given.get("source_BS"), given.get("padding_BT"), given.get("source_padding_BS")
        )
        assert np.allclose(output[row].numpy(), logits, rtol=digits, atol=digits * scale)
        assert reference.activations.keys() == cache.keys()
        for name, expected in reference.activations.items():
            ours = cache[name] if name.endswith("positions") else cache[name][row]
            size = max(1.0, float(np.abs(expected).max()))
            assert np.allclose(ours.numpy(), expected, rtol=digits, atol=digits * size), name


@settings(max_examples=25, deadline=None)
@given(designs(), st.integers(0, 99))
def test_without_scores_and_single_heads_the_output_is_that_of_forward_to_the_bit(
    design: Architecture, seed: int
) -> None:
    model, inputs = Transformer(design, seed), inputs_for(design, seed, padded=True)
    with torch.no_grad():
        output, cache = model.run_with_cache(**inputs, names=["*residual*", "*.q", "logits"])
        assert torch.equal(output, model(**inputs)) or output.isnan().any()
    assert {name.split(".")[-1] for name in cache} >= {"residual_before", "residual_after", "q", "logits"}
    assert torch.equal(cache["logits"], output) or output.isnan().any()


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_hidden_states_and_attentions_are_those_of_transformers(kind: str) -> None:
    theirs = hugging_face(kind)
    ours = from_hugging_face(theirs.config.to_dict(), theirs.state_dict())
    tokens_BT = torch.randint(29, (2, 12), generator=seeded(2))
    with torch.no_grad():
        expected = theirs(tokens_BT, output_hidden_states=True, output_attentions=True)
        logits, cache = ours.run_with_cache(tokens_BT)
    states = [cache[f"blocks.{layer}.residual_before"] for layer in range(3)] + [cache["final_norm"]]
    assert len(expected.hidden_states) == len(states)
    for our, their in zip(states, expected.hidden_states, strict=True):
        assert torch.allclose(our, their, rtol=1e-4, atol=2e-4)
    for layer, their in enumerate(expected.attentions):
        assert torch.allclose(cache[f"blocks.{layer}.attention.pattern"], their, rtol=1e-4, atol=1e-5)
    assert torch.allclose(logits, expected.logits, rtol=1e-4, atol=2e-4)


def test_names_are_chosen_exactly_or_by_glob() -> None:
    model = decoder()
    _, cache = model.run_with_cache(TOKENS_BT, ["embedding", "blocks.*.attention.pattern", "blocks.1.residual_*"])
    assert list(cache) == [
        "embedding",
        "blocks.0.attention.pattern",
        "blocks.1.residual_before",
        "blocks.1.attention.pattern",
        "blocks.1.residual_after_attention",
        "blocks.1.residual_after",
    ]
    _, nothing = model.run_with_cache(TOKENS_BT, [])
    assert nothing == {}


@pytest.mark.parametrize("names", [["blocks.0.atention.pattern"], ["blocks.7.*"], ["embedding", "nowhere"]])
def test_a_name_that_no_activation_has_is_refused_with_a_sentence(names: list[str]) -> None:
    with pytest.raises(DeepwideError, match=r"^there is no activation '.*': .*[.?]$") as complaint:
        decoder().run_with_cache(TOKENS_BT, names)
    assert "\n" not in str(complaint.value)
    with pytest.raises(DeepwideError, match=r"^there is no activation"):
        decoder().run_with_cache(TOKENS_BT, edits=dict.fromkeys(names, torch.zeros_like))


def test_the_pattern_is_a_distribution_over_the_past() -> None:
    _, cache = decoder().run_with_cache(TOKENS_BT, ["*.pattern", "*.scores"])
    pattern_BHTS = cache["blocks.1.attention.pattern"]
    assert torch.allclose(pattern_BHTS.sum(-1), torch.ones(2, 1, 8))
    assert pattern_BHTS.triu(1).count_nonzero() == 0
    assert cache["blocks.1.attention.scores"].isfinite().all()  # before the mask


def test_heads_add_up_to_the_output_and_sublayers_to_the_stream() -> None:
    _, cache = decoder(heads=4).run_with_cache(TOKENS_BT)
    for part in ("attention", "feed_forward"):
        before = "residual_before" if part == "attention" else "residual_after_attention"
        after = "residual_after_attention" if part == "attention" else "residual_after"
        total = cache[f"blocks.1.{before}"] + cache[f"blocks.1.{part}.output"]
        assert torch.allclose(cache[f"blocks.1.{after}"], total, atol=1e-6)
    heads = cache["blocks.1.attention.head_outputs"].sum(2)
    assert torch.allclose(heads, cache["blocks.1.attention.output"], atol=1e-6)  # biases start at 0


def test_gradients_flow_to_activations_unless_they_are_switched_off() -> None:
    model = decoder().double()
    loss, cache = model.run_with_cache(TOKENS_BT, targets=TOKENS_BT)
    names = ["blocks.0.residual_after", "blocks.0.attention.pattern", "blocks.1.feed_forward.post", "logits"]
    gradients = torch.autograd.grad(loss, [cache[name] for name in names], retain_graph=True)
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    # The gradient of the mean loss is softmax minus one-hot, over the number of positions.
    one_hot = torch.nn.functional.one_hot(TOKENS_BT, 11)
    assert torch.allclose(gradients[-1], (cache["logits"].softmax(-1) - one_hot) / 16)
    assert torch.allclose(loss, model(TOKENS_BT, TOKENS_BT))
    with torch.no_grad():
        _, cold = model.run_with_cache(TOKENS_BT)
    assert not any(activation.requires_grad for activation in cold.values())


def test_a_loss_over_some_positions_is_the_same_with_a_cache() -> None:
    model, mask_BT = decoder(), torch.rand(2, 8, generator=seeded(1)) < 0.5
    loss, cache = model.run_with_cache(TOKENS_BT, targets=TOKENS_BT, mask_BT=mask_BT)
    assert torch.allclose(loss, model(TOKENS_BT, TOKENS_BT, mask_BT=mask_BT))
    assert cache["logits"].shape == (2, 8, 11)


def test_nothing_is_left_behind() -> None:
    model = decoder()
    before = model(TOKENS_BT)
    model.run_with_cache(TOKENS_BT, edits={"embedding": torch.zeros_like})
    with pytest.raises(RuntimeError, match="on purpose"):
        model.run_with_cache(TOKENS_BT, edits={"blocks.1.residual_before": _fail})
    assert torch.equal(model(TOKENS_BT), before)
    for module in model.modules():
        assert not {**module._forward_hooks, **module._forward_pre_hooks, **module._backward_hooks}


def _fail(_: Any) -> Any:
    raise RuntimeError("on purpose")


def test_an_edit_changes_what_follows_and_only_that() -> None:
    """A head ablated by an edit is a network whose output matrix has zeros for it."""
    model = decoder(heads=4).double()

    def without_head_2(heads_BHTE: Any) -> Any:
        heads_BHTE = heads_BHTE.clone()
        heads_BHTE[:, 2] = 0
        return heads_BHTE

    edited, cache = model.run_with_cache(TOKENS_BT, edits={"blocks.0.attention.heads": without_head_2})
    _, whole = model.run_with_cache(TOKENS_BT)
    same = [name for name in cache if torch.equal(cache[name], whole[name])]
    assert same == model.cache_names()[: model.cache_names().index("blocks.0.attention.heads")]
    with torch.no_grad():
        model.blocks[0].attention.out.weight[:, 2 * 4 : 3 * 4] = 0
    assert torch.allclose(model(TOKENS_BT), edited)


def test_patching_all_of_the_stream_makes_the_other_run() -> None:
    model, other_BT = decoder().double(), (TOKENS_BT + 1) % 11
    expected, cache = model.run_with_cache(other_BT)
    patch = {"blocks.1.residual_before": lambda x: cache["blocks.1.residual_before"]}  # noqa: ARG005
    patched, _ = model.run_with_cache(TOKENS_BT, ["logits"], edits=patch)
    assert torch.allclose(patched, expected)


def test_an_edited_pattern_is_the_one_values_are_mixed_with() -> None:
    model = decoder(heads=2).double()
    identity = torch.eye(8, dtype=torch.float64).expand(2, 2, 8, 8)
    _, cache = model.run_with_cache(TOKENS_BT, edits={"blocks.0.attention.pattern": lambda _: identity})
    assert torch.equal(cache["blocks.0.attention.heads"], cache["blocks.0.attention.v"])


def test_an_edit_of_another_size_is_refused() -> None:
    with pytest.raises(
        DeepwideError, match=r"^the edit of 'embedding' returned .* \(2, 7, 16\) instead of \(2, 8, 16\)"
    ):
        decoder().run_with_cache(TOKENS_BT, edits={"embedding": lambda x: x[:, 1:]})
