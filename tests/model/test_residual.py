"""Residual schemes: how they join, and how they start."""

import math
from typing import Any

import pytest
import torch

from deepwide.model import Architecture, Transformer
from model.builders import SMALL, seeded


def test_residual_schemes_start_as_their_papers_say() -> None:
    def first(residual: str, **changes: Any) -> Any:
        return Transformer(Architecture.of(**(SMALL | {"depth": 8, "residual": residual} | changes))).blocks[0]

    assert first("deepnorm").attention_join.alpha == 16**0.25
    assert first("rezero").attention_join.scale.tolist() == [0.0]
    assert first("layerscale").attention_join.scale[0].item() == pytest.approx(0.1)
    assert first("admin").feed_forward_join.scale[3].item() == pytest.approx(math.sqrt(17 / math.log(17) - 1))
    big = {"width": 256, "initialisation": "xavier", "norm_place": "post"}
    plain, deep = first("plain", **big).attention.qkv.weight, first("deepnorm", **big).attention.qkv.weight
    ratios = [(d.std() / p.std()).item() for p, d in zip(plain.split(256), deep.split(256), strict=True)]
    assert ratios == pytest.approx([1, 1, 64**-0.25])  # queries and keys keep their size, values shrink by β


def test_a_rezero_network_starts_as_the_identity() -> None:
    model = Transformer(Architecture.of(**SMALL, residual="rezero"))
    tokens_BT = torch.arange(8)[None]
    expected = model.final_norm(model.embedding(tokens_BT) + model.positions)
    assert torch.equal(model.hidden(tokens_BT), expected)


@pytest.mark.parametrize("residual", ["plain", "deepnorm", "admin", "layerscale"])
def test_norms_stand_where_their_place_says(residual: str) -> None:
    """The three blocks written out: pre x + f(n(x)), post n(x + f(x)), peri x + n'(f(n(x)))."""
    x = torch.randn(2, 8, 16, generator=seeded(0))
    for place in ("pre", "post", "peri"):
        block = Transformer(Architecture.of(**SMALL, residual=residual, norm_place=place)).blocks[0]
        a, f = (lambda y, b=block: b.attention(y, None, None)), block.feed_forward
        n1, n2, join1, join2 = (
            block.attention_norm,
            block.feed_forward_norm,
            block.attention_join,
            block.feed_forward_join,
        )
        if place == "pre":
            expected = join1(x, a(n1(x)))
            expected = join2(expected, f(n2(expected)))
        elif place == "post":
            expected = n1(join1(x, a(x)))
            expected = n2(join2(expected, f(expected)))
        else:
            expected = join1(x, block.attention_out_norm(a(n1(x))))
            expected = join2(expected, block.feed_forward_out_norm(f(n2(expected))))
        assert torch.equal(block(x, None, None), expected)
        y = torch.randn(2, 8, 16, generator=seeded(1))
        scale = getattr(join1, "scale", 1.0)
        old, new = {"plain": (1, 1), "deepnorm": (4**0.25, 1), "admin": (scale, 1), "layerscale": (1, scale)}[residual]
        assert torch.allclose(join1(x, y), old * x + new * y)


def test_the_stacks_of_an_encoder_decoder_start_by_their_own_depths() -> None:
    """DeepNet, table 1, with N = 3 encoder and M = 2 decoder layers; ADMIN counts each stack's sublayers."""

    def network(residual: str) -> Any:
        sizes = SMALL | {"depth": 2, "width": 256}
        return Transformer(
            Architecture.of(
                **sizes, kind="encoder-decoder", encoder_depth=3, residual=residual, initialisation="xavier"
            )
        )

    plain, deep = network("plain"), network("deepnorm")
    encoder, decoder = deep.encoder.blocks[0], deep.blocks[0]
    assert encoder.attention_join.alpha == pytest.approx(0.81 * (3**4 * 2) ** (1 / 16))
    assert decoder.cross_join.alpha == decoder.feed_forward_join.alpha == pytest.approx(6**0.25)
    betas = {"encoder.blocks.0": 0.87 * (3**4 * 2) ** (-1 / 16), "blocks.0": 24**-0.25}
    weights, small = dict(plain.named_parameters()), dict(deep.named_parameters())
    for name, beta in betas.items():
        for matrix in ("attention.out", "feed_forward.up", "feed_forward.down"):
            assert torch.allclose(small[f"{name}.{matrix}.weight"], beta * weights[f"{name}.{matrix}.weight"])
    assert torch.equal(small["blocks.0.cross.q.weight"], weights["blocks.0.cross.q.weight"])
    keys, values = small["blocks.0.cross.kv.weight"].split(256)
    assert torch.equal(keys, weights["blocks.0.cross.kv.weight"][:256])
    assert torch.allclose(values, 24**-0.25 * weights["blocks.0.cross.kv.weight"][256:])
    admin = network("admin")
    for block, sublayers in ((admin.encoder.blocks[0], 3 * 2), (admin.blocks[0], 2 * 3)):
        start = math.sqrt((sublayers + 1) / math.log(sublayers + 1) - 1)
        assert block.attention_join.scale[0].item() == pytest.approx(start)
