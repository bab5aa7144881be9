"""Norms, feed-forwards, positions and residual schemes against their formulas, papers and torch's modules."""

import cmath
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from deepwide.model import Architecture, Transformer, profile
from deepwide.model.layers import (
    ACTIVATIONS,
    GatedFeedForward,
    LayerNorm,
    NoNorm,
    PlainFeedForward,
    RMSNorm,
    alibi_bias,
    rotate,
    rotation,
)
from model.builders import SMALL, seeded


def test_layer_norm_is_torchs() -> None:
    ours, theirs = LayerNorm(6, 1e-3), nn.LayerNorm(6, eps=1e-3)
    for module in (ours, theirs):
        with torch.no_grad():
            module.weight.copy_(torch.arange(6.0))
            module.bias.copy_(torch.arange(6.0) - 2)
    x = torch.randn(4, 6, generator=seeded(0))
    assert torch.equal(ours(x), theirs(x))


def test_rms_norm_divides_by_the_root_mean_square() -> None:
    ours = RMSNorm(3, 0.25)
    with torch.no_grad():
        ours.weight.copy_(torch.tensor([1.0, 10.0, -1.0]))
    root = math.sqrt((1 + 4 + 9) / 3 + 0.25)
    assert ours(torch.tensor([1.0, 2.0, 3.0])).tolist() == pytest.approx([1 / root, 20 / root, -3 / root])


def test_no_norm_is_the_identity_without_parameters() -> None:
    x = torch.randn(4, 6, generator=seeded(0))
    assert NoNorm(6, 1e-5)(x) is x
    assert not list(NoNorm(6, 1e-5).parameters())


@pytest.mark.parametrize(
    ("name", "at_two"),
    [
        ("relu", 2.0),
        ("silu", 2 / (1 + math.exp(-2))),
        ("gelu", 2 * 0.5 * (1 + math.erf(2**0.5))),
        ("gelu_tanh", 0.5 * 2 * (1 + math.tanh((2 / math.pi) ** 0.5 * (2 + 0.044715 * 8)))),
    ],
)
def test_activations_have_their_values(name: str, at_two: float) -> None:
    x = torch.tensor([2.0, 0.0], dtype=torch.float64)
    assert ACTIVATIONS[name](x).tolist() == pytest.approx([at_two, 0.0])


def test_plain_is_two_matrices_with_the_activation_between() -> None:
    module = PlainFeedForward(Architecture.of(**SMALL, activation="relu")).double()
    x = torch.randn(16, generator=seeded(0), dtype=torch.float64)
    rows = zip(module.up.weight.detach(), module.up.bias.detach(), strict=True)
    inner = [max(0.0, float(row @ x + b)) for row, b in rows]
    expected = module.down.weight @ torch.tensor(inner, dtype=torch.float64) + module.down.bias
    assert torch.allclose(module(x), expected)


def test_gated_multiplies_what_the_gate_lets_through() -> None:
    module = GatedFeedForward(Architecture.of("llama", **SMALL)).double()
    f = module.down.weight.shape[1]
    x = torch.randn(16, generator=seeded(0), dtype=torch.float64)
    both = module.gate_up.weight.detach() @ x
    inner = [float(g / (1 + math.exp(-g)) * u) for g, u in zip(both[:f], both[f:], strict=True)]
    expected = module.down.weight @ torch.tensor(inner, dtype=torch.float64)
    assert torch.allclose(module(x), expected)


def test_rotation_turns_pairs_as_complex_numbers() -> None:
    x_BTHE = torch.randn(1, 5, 2, 6, generator=seeded(0), dtype=torch.float64)
    turned = rotate(x_BTHE, rotation(9, 6, 100.0))
    for t in range(5):
        for i in range(3):
            z = complex(x_BTHE[0, t, 1, i], x_BTHE[0, t, 1, i + 3]) * cmath.exp(1j * t * 100.0 ** (-2 * i / 6))
            assert complex(turned[0, t, 1, i], turned[0, t, 1, i + 3]) == pytest.approx(z, abs=1e-6)


def test_products_of_turned_vectors_depend_on_their_distance_alone() -> None:
    q, k = (torch.randn(4, generator=seeded(seed)).expand(1, 8, 1, 4) for seed in (1, 2))
    turn = rotation(8, 4, 10000.0)
    scores = rotate(q, turn)[0, :, 0] @ rotate(k, turn)[0, :, 0].T
    for distance in range(-7, 8):
        diagonal = scores.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (8, [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8]),  # the paper's own example
        (1, [2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),  # two of two heads, and the first of four
    ],
)
def test_alibi_falls_with_distance_by_the_papers_slopes(heads: int, slopes: list[float]) -> None:
    bias_HTT = alibi_bias(heads, 5)
    assert (-bias_HTT[:, 4, 3]).tolist() == slopes
    assert torch.equal(bias_HTT[:, 4, 1], 3 * bias_HTT[:, 4, 3])
    assert torch.equal(bias_HTT, bias_HTT.transpose(1, 2))


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
    """The blocks written out: pre x + f(n(x)), post n(x + f(x)), peri x + n'(f(n(x))), pre_scaled x + f(n(x)/√l)."""
    x = torch.randn(2, 8, 16, generator=seeded(0))
    for place in ("pre", "post", "peri", "pre_scaled"):
        block = Transformer(Architecture.of(**SMALL, residual=residual, norm_place=place)).blocks[1]
        a, f = (lambda y, b=block: b.attention(y, None, None)), block.feed_forward
        n1, n2, join1, join2 = (
            block.attention_norm,
            block.feed_forward_norm,
            block.attention_join,
            block.feed_forward_join,
        )
        if place in ("pre", "pre_scaled"):
            by = 2**0.5 if place == "pre_scaled" else 1  # the second block
            expected = join1(x, a(n1(x) / by))
            expected = join2(expected, f(n2(expected) / by))
        elif place == "post":
            expected = n1(join1(x, a(x)))
            expected = n2(join2(expected, f(expected)))
        else:
            expected = join1(x, block.attention_out_norm(a(n1(x))))
            expected = join2(expected, block.feed_forward_out_norm(f(n2(expected))))
        assert torch.allclose(block(x, None, None), expected, atol=1e-6)
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


PUBLISHED = {1: 1.0, 2: 1.319, 10: 2.03, 50: 4.28, 100: 6.16, 200: 8.84}  # Transformer-Clinic's, 100 encoder layers


def profiled(**changes: Any) -> tuple[Transformer, dict[str, list[float]]]:
    fields = SMALL | {"norm_place": "post", "residual": "admin_profiled", "initialisation": "xavier"}
    model = Transformer(Architecture.of(**(fields | {"embedding_norm": True} | changes)))
    both = model.design.shape.reads_two
    inputs = {"source_BS": torch.randint(11, (3, 6), generator=seeded(4))} if both else {}
    return model, profile(model, torch.randint(11, (3, 8), generator=seeded(3)), **inputs)


def slow_profile(blocks: Any, x: Any, memory: Any = None) -> list[float]:
    """Sublayer by sublayer, from the blocks' modules, with ω as a number."""
    omegas, r = [], 1.0
    for block in blocks:
        sublayers = [("attention", lambda y, b=block: b.attention(y, None, None))]
        if memory is not None:
            sublayers.append(("cross", lambda y, b=block: b.cross(y, memory, None)))
        sublayers.append(("feed_forward", block.feed_forward))
        for name, f in sublayers:
            y = f(x)
            omegas.append(r)
            before = (r * x).detach().numpy(), y.detach().numpy()
            x = getattr(block, f"{name}_norm")(r * x + y)
            r = math.sqrt(sum(float(np.var(part.astype(np.float64))) for part in before))
    return omegas


def test_profiling_sets_omega_as_a_slow_pass_does_and_changes_nothing_else() -> None:
    model, omegas = profiled(depth=5)
    fresh = Transformer(model.design)
    x = fresh.embedding_norm(fresh.embedding(torch.randint(11, (3, 8), generator=seeded(3))) + fresh.positions)
    assert omegas[""] == pytest.approx(slow_profile(fresh.blocks, x), rel=1e-5)
    assert omegas[""][0] == 1.0
    scales = [getattr(block, f"{part}_join").scale for block in model.blocks for part in ("attention", "feed_forward")]
    assert [scale.unique().tolist() for scale in scales] == [[pytest.approx(omega)] for omega in omegas[""]]
    after = dict(model.named_parameters())
    assert all(torch.equal(after[name], p) for name, p in fresh.named_parameters() if "join" not in name)
    again = profile(model, torch.zeros(1, 8, dtype=torch.long))
    assert again[""][0] == 1.0  # profiling starts over; and a forward pass alone changes nothing:
    before = model.blocks[2].attention_join.scale.clone()
    model(torch.ones(1, 8, dtype=torch.long))
    assert torch.equal(model.blocks[2].attention_join.scale, before)


def test_the_stacks_of_an_encoder_decoder_are_profiled_apart() -> None:
    model, omegas = profiled(kind="encoder-decoder", encoder_depth=3)
    fresh = Transformer(model.design)
    source, target = torch.randint(11, (3, 6), generator=seeded(4)), torch.randint(11, (3, 8), generator=seeded(3))
    x = fresh.encoder.embedding_norm(fresh.embedding(source) + fresh.encoder.positions[:6])
    assert omegas["encoder."] == pytest.approx(slow_profile(fresh.encoder.blocks, x), rel=1e-5)
    memory = model.encoder.read(model.embedding(source), None, None)
    x = fresh.embedding_norm(fresh.embedding(target) + fresh.positions)
    assert omegas[""] == pytest.approx(slow_profile(fresh.blocks, x, memory), rel=1e-5)
    assert omegas[""][0] == omegas["encoder."][0] == 1.0
    assert (len(omegas[""]), len(omegas["encoder."])) == (6, 6)


def test_both_sequences_of_a_pair_see_the_omega_of_the_first() -> None:
    model, omegas = profiled(kind="encoder", head="pair", classes=2)
    assert len(omegas[""]) == 4
    assert model.blocks[1].feed_forward_join.scale[0].item() == pytest.approx(omegas[""][-1])


def test_other_schemes_have_no_profile() -> None:
    assert profile(Transformer(Architecture.of(**SMALL, residual="admin")), torch.zeros(1, 8, dtype=torch.long)) == {}


def test_the_profile_has_the_form_of_the_published_one() -> None:
    """ω² = a + b·i: the published 200 values, and 48 layers of ours, whose first is 1 too."""
    i = np.array(list(PUBLISHED))
    assert np.corrcoef(i, np.array(list(PUBLISHED.values())) ** 2)[0, 1] > 0.999
    _, omegas = profiled(depth=48, width=32, kind="encoder")
    assert np.corrcoef(np.arange(96), np.array(omegas[""]) ** 2)[0, 1] > 0.99


def test_admin_s_rule_is_that_of_the_package() -> None:
    admin_torch = pytest.importorskip("admin_torch", reason="needs PyPI's admin-torch")
    for depth in (1, 6, 18, 100):
        model = Transformer(Architecture.of(**(SMALL | {"depth": depth, "residual": "admin", "norm_place": "post"})))
        expected = admin_torch.as_module(2 * depth, as_parameter=True, embed_dim=16)
        ours = model.blocks[0].attention_join
        assert torch.allclose(ours.scale, expected.omega)
        x, f = torch.randn(2, 3, 16, generator=seeded(0)), torch.randn(2, 3, 16, generator=seeded(1))
        assert torch.allclose(ours(x, f), expected(x, f))
