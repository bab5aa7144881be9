"""A narrower network gives the outputs of the one it came from, with as many weights as its parts have."""

from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer, narrowed, sized_groups
from deepwide.model.narrowing import Silent
from model.builders import SMALL, inputs_for, shaken

KINDS: list[dict[str, Any]] = [
    {"kind": "decoder"},
    {"kind": "encoder"},
    {"kind": "encoder-decoder", "encoder_depth": 2},
    {"kind": "decoder", "ff": "gated", "activation": "silu"},
    {"kind": "encoder", "head": "class", "classes": 3, "norm_place": "post", "positions": "rotary"},
    {"kind": "decoder", "activation": "relu", "qkv_bias": False, "ff_bias": False, "out_bias": False},
    {"kind": "decoder", "qk_norm": "head"},
]


def with_zeros(design: Architecture, seed: int) -> Transformer:
    """A random network of which half of the neurons and heads, in one layer all, are zero."""
    model, draw = shaken(design, seed), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for number, groups in enumerate(sized_groups(model)):
            dead_G = torch.rand(groups.count, generator=draw) < 0.5
            dead_G = torch.ones_like(dead_G) if number in (0, 3) else dead_G
            groups.write(groups.read().masked_fill(dead_G[:, None], 0))
    return model


@pytest.mark.parametrize("changes", KINDS)
def test_the_outputs_are_the_same_and_the_matrices_smaller(changes: dict[str, Any]) -> None:
    design = Architecture.of("levine", **SMALL | {"heads": 4, "ff_width": 12} | changes)
    model = with_zeros(design, 3)
    smaller = narrowed(model)
    inputs = inputs_for(design, 5, padded=True)
    with torch.no_grad():
        assert torch.allclose(smaller(**inputs), model(**inputs), atol=1e-12)
    s, before = design.shape, sum(p.numel() for p in model.parameters())
    gone = 0
    for groups in sized_groups(model):
        dead = groups.count - int(groups.alive.sum())
        if groups.kind == "heads":
            rows = 3 * s.head_dim * (s.width + s.qkv_bias) + s.head_dim * s.width
        else:
            rows = (1 + (s.ff == "gated")) * (s.width + s.ff_bias) + s.width
        gone += dead * rows
    if s.qk_norm == "head":  # a layer without heads loses its norms of queries and keys too
        gone += 2 * 2 * s.head_dim
    assert sum(p.numel() for p in smaller.parameters()) == before - gone
    assert gone > 0
    assert sum(p.numel() for p in model.parameters()) == before, "the first network is as it was"


def test_a_network_without_zeros_stays_as_it_is() -> None:
    model = shaken(Architecture.of("levine", **SMALL), 1)
    smaller = narrowed(model)
    assert {name: p.shape for name, p in smaller.named_parameters()} == {
        n: p.shape for n, p in model.named_parameters()
    }


def test_a_narrower_network_can_be_trained_further() -> None:
    smaller = narrowed(with_zeros(Architecture.of("levine", **SMALL | {"heads": 4, "ff_width": 12}), 3))
    tokens = torch.tensor([[1, 2, 3]])
    smaller(tokens, tokens).backward()
    silent = [name for name, module in smaller.named_modules() if isinstance(module, Silent)]
    without = {name for name, p in smaller.named_parameters() if p.grad is None}
    assert silent
    assert without == {f"{name}_norm.{part}" for name in silent for part in ("weight", "bias")}, "nobody reads these"


def test_reading_and_writing_groups_changes_what_it_says() -> None:
    model = shaken(Architecture.of("llama", **SMALL | {"heads": 2, "kv_heads": 2, "ff_width": 5}), 2)
    for groups in sized_groups(model):
        w_GN = groups.read()
        assert len(w_GN) == groups.count
        groups.write(2 * w_GN)
        assert torch.equal(groups.read(), 2 * w_GN)
        parameter = dict(model.named_parameters())[groups.name]
        assert parameter.data_ptr() <= groups.weights[0].data_ptr(), "a view of the network's own weights"


def test_what_cannot_be_taken_out_is_refused() -> None:
    shared = Transformer(Architecture.of("llama", **SMALL | {"heads": 4, "kv_heads": 2}))
    with pytest.raises(DeepwideError, match="heads that share keys and values cannot be sized one by one"):
        list(sized_groups(shared))
    tied = with_zeros(Architecture.of("levine", **SMALL | {"heads": 4, "qk_norm": "full", "depth": 3}), 3)
    with pytest.raises(DeepwideError, match="a norm over all queries together ties heads to each other"):
        narrowed(tied)
