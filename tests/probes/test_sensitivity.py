"""The output change and the gradients by layer, against forms that are slow or written out."""

import math
from typing import Any

import numpy as np
import pytest

from deepwide.model import Architecture, Transformer, generator_for
from deepwide.probes import gradient_norms, output_change

torch = pytest.importorskip("torch")
TOKENS = torch.tensor([[0, 1, 2, 3, 4, 5], [5, 5, 1, 0, 2, 2]])
TARGETS = torch.tensor([[1, 2, 3, 4, 5, 0], [5, 1, 0, 2, 2, 1]])


def network(depth: int = 3, **choices: Any) -> Transformer:
    fields: dict[str, Any] = {"width": 16, "heads": 2, "vocab": 6, "context": 6, "initialisation": "xavier"}
    return Transformer(Architecture.of(depth=depth, **(fields | choices))).double()


@pytest.mark.parametrize("choices", [{}, {"norm_place": "post"}])
def test_a_random_move_is_that_of_another_network_with_the_moved_weights(choices: dict[str, Any]) -> None:
    model, moved = network(**choices), network(**choices)
    measured = output_change(model, TOKENS, TARGETS, size=0.01, seed=7)
    state = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    for name, p in moved.named_parameters():
        if ".weight" in name and "blocks" in name and "norm" not in name:
            z = torch.randn(p.shape, generator=generator_for(7, f"move/{name}"), dtype=torch.float64).numpy()
            p.data += torch.from_numpy(0.01 * math.sqrt(np.mean(state[name] ** 2)) * z)

    def outputs(of: Transformer) -> Any:
        x = of.run_with_cache(TOKENS, ["blocks.2.residual_after"])[1]["blocks.2.residual_after"].detach().numpy()
        return np.stack([[(row - row.mean()) / row.std() for row in sequence] for sequence in x])

    assert measured == pytest.approx(np.mean((outputs(moved) - outputs(model)) ** 2) / 0.01**2, rel=1e-9)
    assert all(np.array_equal(state[name], p.detach().numpy()) for name, p in model.named_parameters())


def test_the_change_of_a_small_move_is_quadratic_in_its_size() -> None:
    model = network()
    for move in ("random", "gradient"):
        small, smaller = (output_change(model, TOKENS, TARGETS, move, size) for size in (1e-4, 1e-5))
        assert small == pytest.approx(smaller, rel=0.01)


def test_a_gradient_move_lowers_the_loss_to_first_order() -> None:
    """Σ|∂loss/∂w|·rms(W)·ε: Adam's first step, by differences of the loss itself."""
    model, size = network(), 1e-6
    before = model(TOKENS, TARGETS)
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = dict(zip(names, torch.autograd.grad(before, parameters), strict=True))
    moved = network()
    expected = 0.0
    with torch.no_grad():
        for name, p in moved.named_parameters():
            if name.startswith("blocks.") and p.ndim == 2:
                step = size * p.square().mean().sqrt()
                expected += float(gradients[name].abs().sum() * step)
                p -= step * gradients[name].sign()
    assert (before - moved(TOKENS, TARGETS)).item() == pytest.approx(expected, rel=1e-3)
    name = "blocks.2.residual_after"
    x, y = (of.run_with_cache(TOKENS, [name])[1][name] for of in (model, moved))
    x, y = (torch.nn.functional.layer_norm(z, (16,), eps=0.0) for z in (x, y))
    assert output_change(model, TOKENS, TARGETS, "gradient", size) == pytest.approx(
        (x - y).square().mean().item() / size**2, rel=1e-6
    )


def test_a_network_of_one_linear_layer_changes_as_computed_by_hand() -> None:
    """Without feed-forward, attention of one position is a linear map: F = normalised(W_o W_v x)."""
    model = network(1, ff_width=0, residual="none", norm="none", final_norm=False, positions="none", heads=1)
    changes = [output_change(model, TOKENS[:, :1], TARGETS[:, :1], size=1e-4, seed=seed) for seed in range(300)]
    generator = np.random.default_rng(0)
    v = model.blocks[0].attention.qkv.weight.detach().numpy()[32:]
    o = model.blocks[0].attention.out.weight.detach().numpy()
    sizes = math.sqrt(np.mean(model.blocks[0].attention.qkv.weight.detach().numpy() ** 2)), math.sqrt(np.mean(o**2))
    x = model.embedding.weight.detach().numpy()[[0, 5]]
    expected = []
    for _ in range(300):
        dv, do = (size * generator.normal(size=(16, 16)) for size in sizes)
        y, z = x @ v.T @ o.T, x @ (v + 1e-4 * dv).T @ (o + 1e-4 * do).T
        y, z = ((a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True) for a in (y, z))
        expected.append(np.mean((y - z) ** 2) / 1e-8)
    assert np.mean(changes) == pytest.approx(np.mean(expected), rel=0.1)


def test_gradient_norms_are_those_of_backward_block_by_block() -> None:
    model = network(norm_place="post")
    measured = gradient_norms(model, TOKENS, TARGETS)
    model(TOKENS, TARGETS).backward()
    expected = [
        math.sqrt(sum(float((p.grad**2).sum()) for n, p in block.named_parameters() if p.ndim == 2))
        for block in model.blocks
    ]
    assert measured == pytest.approx(expected, rel=1e-9)
    assert len(measured) == 3
