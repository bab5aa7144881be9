"""Paths: they add up to the network, there are as many as the formula says, and each is computed as by hand."""

from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer
from deepwide.probes import (
    SKIP,
    all_paths,
    count_paths,
    exact_path_sum,
    path_accuracies,
    path_logits,
    sample_paths,
)

torch = pytest.importorskip("torch")
TOKENS = torch.tensor([[0, 1, 2, 3, 4], [4, 4, 1, 0, 2]])


def network(**choices: Any) -> Transformer:
    fields: dict[str, Any] = {
        "depth": 3, "width": 8, "heads": 2, "vocab": 5, "context": 5, "kind": "encoder", "ff_width": 0,
        "initialisation": "xavier", "tied": False, "head_bias": True, "norm_place": "post",
    }  # fmt: skip
    model = Transformer(Architecture.of(**(fields | choices)), seed=5).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double() / 3)
    return model.eval()


BARE = {"norm": "none", "final_norm": False, "qkv_bias": False, "out_bias": False}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("depth", "heads"), [(1, 1), (2, 2), (3, 2), (4, 1), (2, 4)])
def test_the_sum_over_all_paths_is_the_network(depth: int, heads: int, causal: bool) -> None:
    model = network(depth=depth, heads=heads, kind="decoder" if causal else "encoder", **BARE)
    paths = all_paths(depth, heads)
    with torch.no_grad():
        whole = model.hidden(TOKENS).numpy()
    assert exact_path_sum(model, TOKENS, paths).numpy() == pytest.approx(whole, rel=1e-10, abs=1e-12)
    assert not np.allclose(exact_path_sum(model, TOKENS, paths[1:]).numpy(), whole), "each path counts"


@pytest.mark.parametrize(("depth", "heads"), [(1, 3), (4, 2), (6, 1)])
def test_there_are_as_many_paths_of_a_length_as_the_formula_says(depth: int, heads: int) -> None:
    lengths = (all_paths(depth, heads) != SKIP).sum(1)
    counts = [count_paths(depth, heads, length) for length in range(depth + 1)]
    assert np.bincount(lengths, minlength=depth + 1).tolist() == counts
    assert sum(counts) == (heads + 1) ** depth


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_sampled_paths_have_their_length_and_all_occur_equally_often(length: int) -> None:
    paths = sample_paths(3, 2, length, 3000, np.random.default_rng(1))
    assert ((paths != SKIP).sum(1) == length).all()
    _, counts = np.unique(paths, axis=0, return_counts=True)
    expected = 3000 / count_paths(3, 2, length)
    assert len(counts) == count_paths(3, 2, length)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def by_hand(model: Transformer, paths: Any) -> Any:
    """One path after the other, one sequence at a time, in numpy."""
    E = model.design.shape.head_dim

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + model.design.norm_eps)

    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    outputs = []
    for sequence in TOKENS.numpy():
        total: Any = 0.0
        for path in paths:
            x = weights["embedding.weight"][sequence] + weights["positions"][: len(sequence)]
            for layer, head in enumerate(path):
                if head == SKIP:
                    continue
                at, rows = f"blocks.{layer}.attention.", slice(head * E, (head + 1) * E)
                q, k, v = (
                    x @ w[rows].T + b[rows]
                    for w, b in zip(
                        np.split(weights[at + "qkv.weight"], 3), np.split(weights[at + "qkv.bias"], 3), strict=True
                    )
                )
                scores = np.exp(q @ k.T / np.sqrt(E))
                pattern = scores / scores.sum(1, keepdims=True)
                x = norm(pattern @ v @ weights[at + "out.weight"][:, rows].T + weights[at + "out.bias"])
            total = total + x
        outputs.append(norm(total) @ weights["head.weight"].T + weights["head_bias"])
    return np.array(outputs)


@pytest.mark.parametrize(
    "paths", [[[0, 1, 0]], [[SKIP, SKIP, SKIP]], [[1, SKIP, 0], [0, SKIP, SKIP], [SKIP, SKIP, 1], [1, 1, 1]]]
)
def test_paths_are_evaluated_as_the_original_does(paths: list[list[int]]) -> None:
    model = network()
    logits = path_logits(model, TOKENS, np.array(paths))
    assert logits.numpy() == pytest.approx(by_hand(model, paths), abs=1e-10)


@pytest.mark.parametrize("choices", [{"ff_width": 16}, {"norm_place": "pre"}, {"residual": "rezero"}])
def test_networks_that_are_no_sum_of_paths_are_refused(choices: dict[str, Any]) -> None:
    for measure in (path_logits, exact_path_sum):
        with pytest.raises(DeepwideError, match="paths need"):
            measure(network(**choices), TOKENS, all_paths(3, 2))


def test_accuracies_are_means_over_draws_by_length() -> None:
    model = network()
    measured = path_accuracies(model, TOKENS, TOKENS.flip(1), 4, 2, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    for length, accuracy in enumerate(measured):
        draws = [sample_paths(3, 2, length, 4, rng) for _ in range(2)]
        right = [(by_hand(model, paths).argmax(-1) == TOKENS.flip(1).numpy()).mean() for paths in draws]
        assert accuracy == pytest.approx(np.mean(right))
    assert len(measured) == 4
