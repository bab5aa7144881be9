"""Work is what torch does: FLOPs by its counter, bytes by its tensors."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from deepwide import DeepwideError, Shape
from deepwide.model import Architecture, Decoder, Transformer
from deepwide.timing import work

SIZES: dict[str, Any] = {"depth": 3, "width": 32, "heads": 4, "vocab": 40, "context": 16}


def counted(model: Transformer, tokens: int, batch: int, already: int = 0) -> int:
    decoder = Decoder(model, batch)
    decoder.fill(already)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        decoder.read(torch.zeros(batch, tokens, dtype=torch.long))
    return int(counter.get_total_flops())


@pytest.mark.parametrize("changes", [{}, {"kv_heads": 2}, {"tied": True}])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_decoded_token_takes_the_flops_that_torch_counts(changes: dict[str, Any], batch: int) -> None:
    model = Transformer(Architecture.of("llama", **SIZES | {"kv_heads": 4} | changes))
    wanted = work("decode", model.design.shape, batch=batch, tokens=11)
    assert wanted.flops == counted(model, 1, batch, already=10)
    assert wanted.layers == 3


def test_a_prefill_takes_the_flops_that_torch_counts_but_for_the_pairs_that_a_mask_hides() -> None:
    model = Transformer(Architecture.of("llama", **SIZES, kv_heads=4))
    T, s = 16, model.design.shape
    hidden_pairs = s.depth * (T * T - T * (T + 1) // 2)
    assert counted(model, T, 2) - work("prefill", s, batch=2, tokens=T).flops == 2 * 4 * hidden_pairs * s.width


@pytest.mark.parametrize("tied", [False, True])
def test_a_decoded_token_reads_the_weights_that_multiply_it_and_the_cache(tied: bool) -> None:
    model = Transformer(Architecture.of("llama", **SIZES, kv_heads=2, tied=tied))
    decoder = Decoder(model, batch=2, room=11)
    weights = sum(p.nbytes for name, p in model.named_parameters() if tied or name != "embedding.weight")
    cache = sum(past.keys.nbytes + past.values.nbytes for past in decoder.past)
    assert work("decode", model.design.shape, batch=2, tokens=11).bytes == weights + cache


def test_training_moves_and_computes_more_than_prefill() -> None:
    shape = Shape(depth=3, width=64, vocab=100, context=32)
    train, prefill = work("train", shape), work("prefill", shape)
    assert train.bytes > 5 * prefill.bytes > 0
    assert train.flops > 3 * prefill.flops


def test_bad_questions_are_refused() -> None:
    shape = Shape(depth=3, width=64)
    with pytest.raises(DeepwideError, match="did you mean 'decode'"):
        work("decod", shape)
    with pytest.raises(DeepwideError, match="decoders"):
        work("decode", shape.but(kind="encoder"))
    with pytest.raises(DeepwideError, match="batch must be at least 1"):
        work("decode", shape, batch=0)


def test_a_batch_reads_as_many_experts_as_its_tokens_reach() -> None:
    moe = {"experts": 8, "active": 2, "width": 64}
    shape = Shape(depth=2, width=64, heads=2, experts=moe, ff_bias=False, ff="gated", vocab=100, context=64)
    expert = 2 * 3 * 64 * 64
    read = [work("decode", shape, batch=batch, tokens=1, weight_bytes=1).bytes for batch in (1, 2, 1000)]
    cache = 2 * 2 * 64
    assert read[0] == shape.active_params - shape.params.positions + cache
    assert read[1] - read[0] == round(expert * (8 * (1 - 0.75**2) - 2)) + cache
    assert read[2] == shape.total_params - shape.params.positions + 1000 * cache
