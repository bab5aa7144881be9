"""Attention to places, against a loop over every example, layer, head and letter."""

import numpy as np
import pytest

from deepwide.model import Architecture, Transformer
from deepwide.probes import attention_to
from deepwide.tasks.hops import Hops, hop_positions

torch = pytest.importorskip("torch")
TASK = Hops(length=14, letters=3, most=4)


def network(seed: int = 0) -> Transformer:
    design = Architecture.of(
        depth=2, width=12, heads=3, vocab=TASK.vocab, context=TASK.context, positions="rotary", initialisation="xavier"
    )
    model = Transformer(design, seed)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.qkv.weight *= 6  # far from uniform attention
    return model


def places(tokens: np.ndarray, most: int) -> np.ndarray:
    letters = tokens[:, 1:]
    return np.stack([hop_positions(letters, np.full(len(letters), j)) for j in range(most + 1)])


def test_it_is_the_mean_over_letters_that_have_such_a_place() -> None:
    model, tokens = network(), TASK.batch(0, 5, 1).tokens_BT
    where = places(tokens.numpy(), 4)
    _, cache = model.run_with_cache(tokens)
    scores = attention_to(model, tokens, where)
    assert scores.shape == (2, 3, 5)
    for layer in range(2):
        pattern = cache[f"blocks.{layer}.attention.pattern"].detach()
        for head in range(3):
            for j in range(5):
                paid = [
                    float(pattern[b, head, 1 + i, 1 + where[j, b, i]])
                    for b in range(5)
                    for i in range(14)
                    if where[j, b, i] >= 0
                ]
                assert scores[layer, head, j] == pytest.approx(np.mean(paid), abs=1e-6)


def test_a_head_that_looks_at_itself_has_all_its_attention_at_no_hops() -> None:
    model, tokens = network(), TASK.batch(0, 5, 1).tokens_BT
    with torch.no_grad():  # one query and key for every token: rotary positions then favour the nearest
        for block in model.blocks:
            block.attention.qkv.weight.zero_()
            block.attention.qkv.bias.zero_()
            block.attention.qkv.bias[:24] = 100.0
    scores = attention_to(model, tokens, places(tokens.numpy(), 2))
    assert scores[..., 0].min() > 0.99
    assert scores[..., 1:].max() < 0.01


def test_places_that_nobody_has_score_nothing() -> None:
    tokens = TASK.batch(0, 3, 1).tokens_BT
    assert (attention_to(network(), tokens, np.full((1, 3, 14), -1)) == 0).all()
