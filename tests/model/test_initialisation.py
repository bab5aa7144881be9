"""Initial weights: the same for a seed and a name as ever, and of the size their papers say."""

import hashlib
import math
from typing import Any

import pytest
import torch

from deepwide.model import Architecture, Transformer, generator_for
from model.builders import SMALL

# Taken from the code before networks other than decoders: hashes of names, sizes and bytes of the initial weights, and
# the loss of the fourth step. A run's numbers hang on them.
ROTARY: dict[str, Any] = {"parametrisation": "completep", "base_width": 16, "base_depth": 1, "residual": "layerscale"}
POST: dict[str, Any] = {"positions": "alibi", "norm_place": "post", "residual": "admin", "initialisation": "xavier"}
PERI: dict[str, Any] = {"norm_place": "peri", "residual": "deepnorm", "initialisation": "fan_in"}
UNTIED: dict[str, Any] = {"tied": False, "head_bias": True, "embedding_norm": True, "qk_norm": "head"}
MUP: dict[str, Any] = {"parametrisation": "mup", "base_width": 16, "residual": "rezero"}
BEFORE = [
    ("levine", {}, "8bab4ccc98e51bef", "0x1.cbeebe0000000p+1"),
    ("levine", UNTIED, "8b0457e0237044c9", "0x1.d1bb6e0000000p+1"),
    ("llama", {}, "e5adafbf0b10288d", "0x1.d3d5660000000p+1"),
    ("linear", {}, "eb65f956a45dd5e8", "0x1.ce324a0000000p+1"),
    ("levine", POST, "169d82364cdeaac7", "0x1.2625ac0000000p+2"),
    ("levine", PERI, "6192a6097f454377", "0x1.f65a980000000p+1"),
    ("llama", ROTARY, "ff01b6224f438c44", "0x1.d0b5520000000p+1"),
    ("levine", MUP, "f085cd9260e2026a", "0x1.ce0e400000000p+1"),
]


@pytest.mark.parametrize(("preset", "choices", "digest", "loss"), BEFORE)
def test_a_decoder_starts_and_trains_as_it_always_did(
    preset: str, choices: dict[str, Any], digest: str, loss: str
) -> None:
    sizes: dict[str, Any] = {"depth": 3, "width": 32, "heads": 4, "vocab": 37, "context": 12}
    model = Transformer(Architecture.of(preset, **sizes, **choices), seed=5)
    weights = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        weights.update(name.encode() + str(tuple(tensor.shape)).encode() + tensor.numpy().tobytes())
    assert weights.hexdigest()[:16] == digest
    generator, adam = torch.Generator().manual_seed(3), torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(4):
        batch = torch.randint(37, (4, 13), generator=generator)
        value = model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        adam.zero_grad()
        value.backward()
        adam.step()
    # Bit-identical on one machine; another's products may round differently.
    assert value.item() == pytest.approx(float.fromhex(loss), rel=1e-6)


def test_networks_of_other_depth_start_with_the_same_weights_where_they_can() -> None:
    fields = SMALL | {"residual": "none"}
    shallow, deep = (
        dict(Transformer(Architecture.of(**fields | {"depth": n}), seed=3).named_parameters()) for n in (2, 5)
    )
    assert all(torch.equal(shallow[name], deep[name]) for name in shallow)
    other = dict(Transformer(Architecture.of(**fields), seed=4).named_parameters())
    matrices = [name for name, p in other.items() if p.ndim == 2]
    assert not any(torch.equal(shallow[name], other[name]) for name in matrices)


def test_an_encoder_and_a_decoder_of_one_seed_start_with_the_same_blocks() -> None:
    decoder, encoder = (
        dict(Transformer(Architecture.of(**SMALL, kind=kind)).named_parameters()) for kind in ("decoder", "encoder")
    )
    assert decoder.keys() == encoder.keys()
    assert all(torch.equal(decoder[name], encoder[name]) for name in decoder)


@pytest.mark.parametrize(
    ("initialisation", "hidden", "ends", "embedding"),
    [
        ("gpt2", 0.02, 0.02 / math.sqrt(8), 0.02),
        ("fan_in", 1 / math.sqrt(128), 1 / math.sqrt(512) / math.sqrt(8), 1 / math.sqrt(128)),
        ("xavier", math.sqrt(2 / (128 + 512)), math.sqrt(2 / (128 + 512)), 1 / math.sqrt(128)),
    ],
)
def test_weights_have_the_size_their_papers_say(
    initialisation: str, hidden: float, ends: float, embedding: float
) -> None:
    sizes: dict[str, Any] = {"depth": 4, "width": 128, "vocab": 500, "context": 64}
    weights = dict(Transformer(Architecture.of(**sizes, initialisation=initialisation)).named_parameters())
    assert weights["blocks.3.feed_forward.up.weight"].std().item() == pytest.approx(hidden, rel=0.02)
    assert weights["blocks.3.feed_forward.down.weight"].std().item() == pytest.approx(ends, rel=0.02)
    assert weights["embedding.weight"].std().item() == pytest.approx(embedding, rel=0.02)
    assert weights["blocks.3.feed_forward.up.bias"].count_nonzero() == 0


def test_cross_attention_ends_a_sublayer_too() -> None:
    sizes: dict[str, Any] = {"depth": 4, "width": 128, "vocab": 50, "context": 64}
    model = Transformer(Architecture.of(**sizes, kind="encoder-decoder", encoder_depth=2))
    weights = dict(model.named_parameters())
    for name in ("attention.out", "cross.out", "feed_forward.down"):
        assert weights[f"blocks.0.{name}.weight"].std().item() == pytest.approx(0.02 / math.sqrt(12), rel=0.02)
    assert weights["encoder.blocks.0.attention.out.weight"].std().item() == pytest.approx(0.01, rel=0.02)


def test_a_generator_belongs_to_its_seed_and_name() -> None:
    def draw(seed: int, name: str) -> list[float]:
        return torch.rand(3, generator=generator_for(seed, name)).tolist()

    assert draw(1, "a") == draw(1, "a")
    assert len({tuple(draw(seed, name)) for seed in (0, 1) for name in ("a", "b", "1/a")}) == 6


def test_t_fixup_shrinks_values_outputs_feed_forward_and_embeddings_alone() -> None:
    """Huang et al. 2020; a single stack by the condition that gives the published numbers of both stacks."""
    sizes: dict[str, Any] = {"depth": 4, "width": 32, "vocab": 20, "context": 8, "norm": "none", "final_norm": False}

    def both(**kind: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        return tuple(  # type: ignore[return-value]
            dict(Transformer(Architecture.of(**sizes, **kind, initialisation=name)).named_parameters())
            for name in ("xavier", "tfixup")
        )

    plain, small = both()
    single = (6 * 4) ** -0.25
    assert 2 * 4 * 3 * single**4 == pytest.approx(1)  # n·(v²w² + v²x² + w²x²) with v = w = x
    for name in ("attention.out", "feed_forward.up", "feed_forward.down"):
        assert torch.allclose(small[f"blocks.2.{name}.weight"], single * plain[f"blocks.2.{name}.weight"])
    for name in ("embedding.weight", "positions"):
        assert torch.allclose(small[name], single * plain[name])
    qk, v = small["blocks.0.attention.qkv.weight"].split([64, 32])
    assert torch.equal(qk, plain["blocks.0.attention.qkv.weight"][:64])
    assert torch.allclose(v, single * plain["blocks.0.attention.qkv.weight"][64:])

    plain, small = both(kind="encoder-decoder", encoder_depth=4)
    encoder, decoder = 0.67 * 4**-0.25, (9 * 4) ** -0.25
    assert 2 * 4 * (encoder**4 + 2 * encoder**2 * decoder**2) == pytest.approx(1, abs=0.01)  # 0.67 is rounded
    expected = {"encoder.blocks.0.attention.out": encoder, "encoder.blocks.3.feed_forward.up": encoder}
    expected |= {"blocks.0.cross.out": decoder, "blocks.0.feed_forward.down": decoder, "embedding": decoder}
    for name, gain in expected.items():
        assert torch.allclose(small[f"{name}.weight"], gain * plain[f"{name}.weight"])
    assert torch.allclose(small["encoder.positions"], decoder * plain["encoder.positions"])
    assert torch.equal(small["blocks.0.cross.q.weight"], plain["blocks.0.cross.q.weight"])
