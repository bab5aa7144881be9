"""Scores of heads: on patterns written by hand, entry by entry, and on the same weights in TransformerLens."""

from typing import Any

import numpy as np
import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Recorder, Transformer
from deepwide.probes import (
    ablation,
    attention_importance,
    attention_patterns,
    in_context_score,
    induction_scores,
    previous_token_scores,
    repeated_blocks,
    token_losses,
)
from probes.lens import attention_only, hooked

BLOCK = 8


def pattern(looks: Any) -> torch.Tensor:
    """One head in one layer, on one sequence of 2T, that looks from i at looks(i) alone."""
    rows = torch.zeros(1, 1, 1, 2 * BLOCK, 2 * BLOCK)
    for i in range(2 * BLOCK):
        rows[0, 0, 0, i, looks(i)] = 1
    return rows


def test_blocks_are_distinct_tokens_and_come_twice() -> None:
    tokens = repeated_blocks(vocab=10, block=4, sequences=30, seed=1)
    assert tokens.shape == (30, 8)
    for row in tokens.tolist():
        assert row[:4] == row[4:]
        assert len(set(row)) == 4
    assert len({tuple(row) for row in tokens.tolist()}) > 25
    assert torch.equal(tokens, repeated_blocks(vocab=10, block=4, sequences=30, seed=1))
    assert not torch.equal(tokens, repeated_blocks(vocab=10, block=4, sequences=30, seed=2))
    with pytest.raises(DeepwideError, match="a block of 11 distinct tokens"):
        repeated_blocks(vocab=10, block=11, sequences=1)


@pytest.mark.parametrize(
    ("looks", "induction", "previous"),
    [
        (lambda i: max(i - (BLOCK - 1), 0), 1.0, 1 / 15),  # from 1 it looks at 0, which is the token before
        (lambda i: max(i - 1, 0), 0.0, 1.0),
        (lambda i: max(i - BLOCK, 0), 0.0, 1 / 15),  # the same token, one too early
        (lambda i: i, 0.0, 0.0),
    ],
)
def test_a_head_that_looks_at_one_place_has_the_score_of_that_place(
    looks: Any, induction: float, previous: float
) -> None:
    assert induction_scores(pattern(looks)).tolist() == [[induction]]
    assert previous_token_scores(pattern(looks)).item() == pytest.approx(previous)


def test_scores_are_means_over_the_entries_that_the_definition_names() -> None:
    model = attention_only(depth=2)
    tokens = repeated_blocks(17, BLOCK, sequences=5)
    patterns = attention_patterns(model, tokens)
    assert patterns.shape == (2, 5, 3, 16, 16)
    assert patterns.sum(-1) == pytest.approx(torch.ones(2, 5, 3, 16))
    scores, previous = induction_scores(patterns), previous_token_scores(patterns)
    for layer in range(2):
        for head in range(3):
            a = patterns[layer, :, head].numpy()
            looked = [a[b, i, i - (BLOCK - 1)] for b in range(5) for i in range(BLOCK, 2 * BLOCK)]
            assert scores[layer, head] == pytest.approx(np.mean(looked), rel=1e-12)
            looked = [a[b, i, i - 1] for b in range(5) for i in range(1, 2 * BLOCK)]
            assert previous[layer, head] == pytest.approx(np.mean(looked), rel=1e-12)


def test_losses_of_tokens_have_the_mean_that_the_network_computes() -> None:
    model = attention_only()
    tokens = repeated_blocks(17, BLOCK, sequences=5)
    losses = token_losses(model, tokens)
    assert losses.shape == (5, 15)
    assert losses.mean() == pytest.approx(float(model(tokens[:, :-1], tokens[:, 1:]).detach()), rel=1e-6)


def test_the_in_context_score_compares_two_tokens_counted_from_one() -> None:
    losses = np.array([[5.0, 4.0, 1.0], [7.0, 4.0, 2.0]])  # of tokens 2, 3 and 4
    assert in_context_score(losses, late=4, early=2) == (1 - 5 + 2 - 7) / 2
    for late in (1, 5):
        with pytest.raises(DeepwideError, match=f"token {late} has no loss: there are tokens 2 to 4"):
            in_context_score(losses, late, early=2)


def test_a_silenced_head_is_one_whose_output_matrix_is_zero() -> None:
    model = attention_only(depth=2)
    tokens = repeated_blocks(17, BLOCK, sequences=2)
    whole = model(tokens)
    silent, _ = model.run_with_cache(tokens, ["logits"], edits=ablation([(0, 1), (1, 2), (1, 0)]))
    with torch.no_grad():
        model.blocks[0].attention.out.weight[:, 8:16] = 0
        model.blocks[1].attention.out.weight[:, 16:] = 0
        model.blocks[1].attention.out.weight[:, :8] = 0
    assert silent.detach().numpy() == pytest.approx(model(tokens).detach().numpy(), abs=1e-12)
    assert not torch.allclose(silent, whole)
    assert ablation([]) == {}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scores_agree_with_transformer_lens(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its detector divides by all rows of the pattern, ours by those that can look there."""
    model = attention_only(depth, seed=depth)
    other = hooked(model)
    detect_head = pytest.importorskip("transformer_lens.head_detector").detect_head
    tokens = repeated_blocks(17, BLOCK, sequences=1, seed=depth)
    assert other(tokens).detach().numpy() == pytest.approx(model(tokens).detach().numpy(), abs=1e-12)
    patterns = attention_patterns(model, tokens)
    monkeypatch.setattr(other, "to_tokens", lambda *_, **__: tokens)  # it has no tokeniser to read a text with
    theirs = detect_head(other, "a text", "induction_head", error_measure="mul").numpy()
    assert induction_scores(patterns) == pytest.approx(theirs * 2, abs=1e-6)
    theirs = detect_head(other, "a text", "previous_token_head", error_measure="mul").numpy()
    assert previous_token_scores(patterns) == pytest.approx(theirs * 16 / 15, abs=1e-6)
    theirs = other(tokens, return_type="loss", loss_per_token=True).detach().numpy()
    assert token_losses(model, tokens) == pytest.approx(theirs, abs=1e-6)


def test_importance_is_the_change_of_the_objective_with_single_attention_weights() -> None:
    """By finite differences: the pattern of one layer is edited, one weight at a time."""
    design = Architecture.of("levine", kind="encoder", depth=2, width=8, heads=2, vocab=7, context=4)
    model = Transformer(design, 3).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)
    tokens_BN = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 1]])

    def objective(h_BND: torch.Tensor) -> torch.Tensor:
        return (h_BND[:, 0, :3].sum() + h_BND[:, 2].square().sum()).tanh()

    importance = attention_importance(model, tokens_BN, objective)
    assert importance.shape == (2, 2, 2, 4, 4)
    size = 1e-5
    for layer, b, head, i, j in [(0, 0, 1, 2, 3), (0, 1, 0, 0, 0), (1, 1, 1, 2, 1), (1, 0, 0, 0, 3)]:
        values = []
        for step in (size, -size):

            def move(a: torch.Tensor, place: Any = (b, head, i, j), step: float = step) -> torch.Tensor:
                moved = a.clone()
                moved[place] += step
                return moved

            tape = Recorder([], {f"blocks.{layer}.attention.pattern": move})
            with torch.no_grad():
                values.append(float(objective(model.hidden(tokens_BN, tape=tape))))
        slow = abs(values[0] - values[1]) / (2 * size)
        assert float(importance[layer, b, head, i, j]) == pytest.approx(slow, rel=1e-4, abs=1e-9)
