"""A network of ours as TransformerLens has it: the same weights in a HookedTransformer built from a config."""

import warnings
from typing import Any

import pytest
import torch

from deepwide.model import Architecture, Transformer


def attention_only(depth: int = 2, seed: int = 0, **choices: Any) -> Transformer:
    """A small network of attention alone, with weights far from zero, in double precision."""
    fields: dict[str, Any] = {
        "depth": depth, "width": 24, "heads": 3, "vocab": 17, "context": 20, "ff_width": 0, "norm": "none",
        "final_norm": False, "tied": False, "qkv_bias": False, "out_bias": False, "initialisation": "fan_in",
    }  # fmt: skip
    model = Transformer(Architecture.of(**(fields | choices)), seed).double().eval()
    with torch.no_grad():
        model.embedding.weight *= 5
    return model


def hooked(model: Transformer) -> Any:
    """The same network in TransformerLens; skips the test where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what others' packages say about themselves is no failure of ours
        return _hooked(model, pytest.importorskip("transformer_lens", reason="TransformerLens 3 is not installed"))


def _hooked(model: Transformer, lens: Any) -> Any:
    s = model.design.shape
    config = lens.HookedTransformerConfig(
        n_layers=s.depth, d_model=s.width, n_heads=s.heads, d_head=s.head_dim, n_ctx=s.context, d_vocab=s.vocab,
        attn_only=True, normalization_type=None, act_fn=None, device="cpu", dtype=torch.float64, seed=0,
    )  # fmt: skip
    other = lens.HookedTransformer(config)
    H, E, D = s.heads, s.head_dim, s.width
    assert model.head is not None
    assert model.positions is not None
    state = {name: torch.zeros_like(value) for name, value in other.state_dict().items() if ".b_" in name}
    state |= {"embed.W_E": model.embedding.weight, "pos_embed.W_pos": model.positions}
    state |= {"unembed.W_U": model.head.weight.T, "unembed.b_U": torch.zeros(s.vocab)}
    for layer, block in enumerate(model.blocks):
        for name, part in zip("QKV", block.attention.qkv.weight.chunk(3), strict=True):
            state[f"blocks.{layer}.attn.W_{name}"] = part.view(H, E, D).transpose(1, 2)
        state[f"blocks.{layer}.attn.W_O"] = block.attention.out.weight.T.reshape(H, E, D)
    missing, unexpected = other.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(name.endswith((".mask", ".IGNORE")) for name in missing), missing
    return other.double()
