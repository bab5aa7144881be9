"""The residual of a network's stream, against attention alone computed from the same weights."""

import math
from typing import Any

import numpy as np
import pytest

from deepwide.model import Architecture, Transformer
from deepwide.probes import AttentionLayer, attention_collapse, relative_residual, stream_residuals

torch = pytest.importorskip("torch")


def network(**choices: Any) -> Transformer:
    fields: dict[str, Any] = {
        "depth": 2, "width": 8, "heads": 2, "vocab": 6, "context": 6, "kind": "encoder", "positions": "none",
        "norm": "none", "final_norm": False, "residual": "none", "ff_width": 0, "initialisation": "xavier",
    }  # fmt: skip
    return Transformer(Architecture.of(**(fields | choices))).double()


def layer(block: object) -> AttentionLayer:
    """The matrices of one block as the law's probe takes them; torch keeps them transposed."""
    qkv, out = block.attention.qkv.weight.detach().numpy(), block.attention.out.weight.detach().numpy()  # type: ignore[attr-defined]
    q, k, v = (part.reshape(2, 4, 8) for part in np.split(qkv, 3))
    o = out.T.reshape(2, 4, 8)
    return AttentionLayer(np.einsum("hed,hef->hdf", q, k) / math.sqrt(4), np.einsum("hed,hef->hdf", v, o))


def test_without_skips_and_norms_it_is_the_law_of_attention_alone() -> None:
    model = network()
    model.embedding.weight.data *= 3
    tokens = torch.tensor([[0, 1, 2, 3, 4, 5], [5, 5, 1, 0, 2, 2]])
    measured = stream_residuals(model, tokens)
    assert measured.shape == (2, 3)
    for row, sequence in zip(measured, tokens, strict=True):
        x = model.embedding.weight.detach().numpy()[sequence.numpy()]
        expected = [math.exp(r.log_relative) for r in attention_collapse(x, [layer(block) for block in model.blocks])]
        assert row == pytest.approx(expected, rel=1e-5)


def test_the_stream_starts_with_the_embedding_and_ends_with_the_last_block() -> None:
    model = network(residual="plain", ff_width=16, norm="layernorm", kind="decoder", depth=3)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    [measured] = stream_residuals(model, tokens)
    assert len(measured) == 4
    assert measured[0] == relative_residual(model.embedding.weight.detach().numpy()[tokens[0].numpy()])
    assert measured[-1] == pytest.approx(relative_residual(model.hidden(tokens)[0].detach().numpy()))


def test_equal_tokens_have_no_residual() -> None:
    assert stream_residuals(network(), torch.full((1, 4), 2)).max() < 1e-15
