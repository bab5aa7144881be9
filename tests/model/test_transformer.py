"""The network is what its Shape counts, sees what its kind lets it see, and scores what its mask says."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from deepwide.model import Architecture, Transformer
from model.builders import SMALL, designs, inputs_for, seeded, shaken

TOKENS_BT = torch.randint(11, (2, 8), generator=seeded(1))
SOURCE_BS = torch.randint(11, (2, 6), generator=seeded(2))


def network(preset: str = "levine", **changes: Any) -> Transformer:
    return Transformer(Architecture.of(preset, **(SMALL | changes))).double()


@settings(max_examples=60, deadline=None)
@given(designs(), st.integers(0, 99), st.booleans())
def test_a_network_has_as_many_parameters_as_its_shape_says_and_runs(
    design: Architecture, seed: int, padded: bool
) -> None:
    model, s, inputs = Transformer(design), design.shape, inputs_for(design, seed, padded=padded)
    parameters = {name: p.numel() for name, p in model.named_parameters()}
    assert sum(parameters.values()) == s.total_params
    in_blocks = [n for name, n in parameters.items() if "blocks." in name or "final_norm" in name]
    assert sum(in_blocks) == s.block_params
    in_head = [n for name, n in parameters.items() if name.startswith(("head", "classifier"))]
    assert sum(in_head) == s.params.head
    logits = model(**inputs)
    B, T = inputs["tokens_BT"].shape
    assert logits.shape == ((B, T, s.vocab) if s.head == "tokens" else (B, s.classes))
    targets = torch.zeros(logits.shape[:-1], dtype=torch.long)
    loss = model(**inputs, targets=targets)
    loss.backward()
    flat = nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
    assert torch.allclose(loss, flat, atol=1e-5, rtol=1e-4, equal_nan=True)  # without norms, numbers may overflow
    # The last layer's output reaches every loss, and so gradients reach every parameter.
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("preset", ["levine", "llama", "linear"])
@pytest.mark.parametrize("changes", [{}, {"positions": "alibi"}, {"residual": "admin", "norm_place": "post"}])
@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
@pytest.mark.parametrize("padded", [False, True])
def test_no_position_of_a_decoder_sees_the_future(
    preset: str, changes: dict[str, Any], kind: str, padded: bool
) -> None:
    if preset == "linear":
        changes = {}
    both = kind == "encoder-decoder"
    model = network(preset, kind=kind, encoder_depth=2 if both else 0, **changes)
    inputs: dict[str, Any] = {"source_BS": SOURCE_BS} if both else {}
    if padded:
        inputs["padding_BT"] = torch.ones(2, 8, dtype=torch.bool)
    before = model(TOKENS_BT, **inputs)
    for t in range(1, 8):
        changed_BT = TOKENS_BT.clone()
        changed_BT[:, t:] = (changed_BT[:, t:] + 1) % 11
        after = model(changed_BT, **inputs)
        assert torch.allclose(before[:, :t], after[:, :t], atol=1e-12)
        assert not torch.allclose(before[:, t:], after[:, t:])


def test_every_position_of_an_encoder_sees_all_and_a_decoder_sees_all_of_its_source() -> None:
    encoder, both = network(kind="encoder"), network(kind="encoder-decoder", encoder_depth=2)
    for t in range(6):
        changed = TOKENS_BT.clone()
        changed[:, t] = (changed[:, t] + 1) % 11
        assert ((encoder(changed) - encoder(TOKENS_BT)).abs().amax(-1) > 1e-9).all()
        source = SOURCE_BS.clone()
        source[:, t] = (source[:, t] + 1) % 11
        moved = both(TOKENS_BT, source_BS=source) - both(TOKENS_BT, source_BS=SOURCE_BS)
        assert (moved.abs().amax(-1) > 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(designs(), st.integers(0, 99))
def test_changing_padded_tokens_changes_nothing(design: Architecture, seed: int) -> None:
    """And a padded sequence gives what the same sequence gives without its padding."""
    model, inputs = shaken(design, seed), inputs_for(design, seed, padded=True)
    changed = dict(inputs)
    for name, padding in (("tokens_BT", "padding_BT"), ("source_BS", "source_padding_BS")):
        if name in inputs:
            other = (inputs[name] + 1) % design.shape.vocab
            changed[name] = torch.where(inputs[padding], inputs[name], other)
    with torch.no_grad():
        logits, after = model(**inputs), model(**changed)
        if design.shape.head == "tokens":
            logits, after = (x[inputs["padding_BT"]] for x in (logits, after))
        assert torch.allclose(logits, after, rtol=1e-9, atol=1e-11)
        row = {}
        for name, padding in (("tokens_BT", "padding_BT"), ("source_BS", "source_padding_BS")):
            if name in inputs:
                row[name] = inputs[name][:1, : int(inputs[padding][0].sum())]
        alone = model(**row).flatten(0, -2)
        assert torch.allclose(logits[: len(alone)], alone, rtol=1e-8, atol=1e-9)


def test_padding_may_stand_in_front() -> None:
    """Its rows see nothing real, and no number of them reaches the rest as NaN."""
    for preset in ("levine", "linear"):
        model = network(preset, positions="none")
        padding_BT = torch.arange(8) >= torch.tensor([[0], [3]])
        logits = model(TOKENS_BT, padding_BT=padding_BT)
        assert logits.isfinite().all()
        assert torch.allclose(logits[1, 3:], model(TOKENS_BT[1:, 3:])[0])


def test_a_masked_loss_is_the_mean_over_the_scored_positions() -> None:
    model, mask_BT = network(head_bias=True), torch.rand(2, 8, generator=seeded(3)) < 0.4
    targets_BT = torch.randint(11, (2, 8), generator=seeded(4))
    log_p = model(TOKENS_BT).log_softmax(-1)
    scored = [-log_p[b, t, targets_BT[b, t]] for b in range(2) for t in range(8) if mask_BT[b, t]]
    loss = model(TOKENS_BT, targets_BT, mask_BT=mask_BT)
    assert 0 < len(scored) < 16
    assert loss.item() == pytest.approx(torch.stack(scored).mean().item())
    everywhere = model(TOKENS_BT, targets_BT, mask_BT=torch.ones(2, 8, dtype=torch.bool))
    assert torch.equal(everywhere, model(TOKENS_BT, targets_BT))
    ours = torch.autograd.grad(loss, list(model.parameters()))
    theirs = torch.autograd.grad(sum(scored) / len(scored), list(model.parameters()))
    assert all(torch.allclose(o, t, atol=1e-10) for o, t in zip(ours, theirs, strict=True))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch, about a fast path of its own
@pytest.mark.parametrize("place", ["pre", "post"])
def test_an_encoder_decoder_is_torchs_with_the_same_weights(place: str) -> None:
    sizes: dict[str, Any] = {"heads": 4, "positions": "none", "norm_place": place, "final_norm": True}
    ours: Any = shaken(Architecture.of(**SMALL, **sizes, kind="encoder-decoder", encoder_depth=3))
    theirs = nn.Transformer(
        16, 4, 3, 2, 64, 0.0, activation="gelu", norm_first=place == "pre", batch_first=True, dtype=torch.float64
    )
    weights = dict(ours.named_parameters())
    renamed = {}
    for name in theirs.state_dict():
        stack, rest = name.split(".", 1)
        at = "encoder." if stack == "encoder" else ""
        if rest.startswith("norm."):
            renamed[name] = weights[f"{at}final_{rest}"]
            continue
        _, layer, part = rest.split(".", 2)
        if part.startswith("multihead_attn.in_proj"):
            end = part.removeprefix("multihead_attn.in_proj_")
            renamed[name] = torch.cat([weights[f"blocks.{layer}.cross.{matrix}.{end}"] for matrix in ("q", "kv")])
            continue
        third = "cross" if stack == "decoder" else "feed_forward"
        for their, our in (
            ("self_attn.in_proj_", "attention.qkv."),
            ("self_attn.out_proj", "attention.out"),
            ("multihead_attn.out_proj", "cross.out"),
            ("linear1", "feed_forward.up"),
            ("linear2", "feed_forward.down"),
            ("norm1", "attention_norm"),
            ("norm2", f"{third}_norm"),
            ("norm3", "feed_forward_norm"),
        ):
            part = part.replace(their, our)
        renamed[name] = weights[f"{at}blocks.{layer}.{part}"]
    theirs.load_state_dict(renamed)
    real_BS = torch.arange(6) < torch.tensor([[6], [4]])
    expected = theirs(
        ours.embedding(SOURCE_BS),
        ours.embedding(TOKENS_BT),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(8, dtype=torch.float64),
        src_key_padding_mask=torch.zeros(2, 6, dtype=torch.float64).masked_fill(~real_BS, -torch.inf),
        memory_key_padding_mask=torch.zeros(2, 6, dtype=torch.float64).masked_fill(~real_BS, -torch.inf),
    )
    hidden = ours.hidden(TOKENS_BT, source_BS=SOURCE_BS, source_padding_BS=real_BS)
    assert torch.allclose(hidden, expected, atol=1e-10)


def test_a_pair_is_read_by_one_network() -> None:
    """With one sequence twice, a = b: the head sees [a, a, a², 0] of the vector that the class head would see."""
    pair: Any = network(kind="encoder", head="pair", classes=3)
    _, cache = pair.run_with_cache(TOKENS_BT, ["*pooled", "features"], source_BS=TOKENS_BT)
    a, b = cache["pooled"], cache["source.pooled"]
    assert torch.equal(a, b)
    assert torch.equal(cache["features"], torch.cat([a, a, a * a, torch.zeros_like(a)], dim=-1))
    single: Any = network(kind="encoder", head="class", classes=3)
    assert torch.equal(single.run_with_cache(TOKENS_BT, ["pooled"])[1]["pooled"], a)


@pytest.mark.parametrize(
    ("changes", "inputs"),
    [
        ({}, {"source_BS": SOURCE_BS}),
        ({}, {"source_padding_BS": SOURCE_BS > 3}),
        ({"kind": "encoder-decoder", "encoder_depth": 1}, {}),
        ({"head": "pair", "classes": 2}, {}),
        ({"head": "class", "classes": 2}, {"mask_BT": TOKENS_BT > 3}),
    ],
)
def test_inputs_that_the_network_does_not_read_are_refused(changes: dict[str, Any], inputs: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        network(**changes)(TOKENS_BT, **inputs)


def test_more_positions_than_the_context_are_refused() -> None:
    with pytest.raises(AssertionError, match="9 positions in a context of 8"):
        network()(torch.zeros(1, 9, dtype=torch.long))
