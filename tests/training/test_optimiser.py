"""Rates, decay and ε are what the parametrisation's table says; clipping is torch's."""

from typing import Literal

import pytest
import torch

from deepwide.model import Architecture, Transformer
from deepwide.training.config import OptimiserConfig, ScheduleConfig
from deepwide.training.optimiser import Optimiser, rate


def settings_of(parametrisation: str) -> dict[str, tuple[float, float, float]]:
    design = Architecture.of(
        depth=8, width=64, vocab=16, context=8, parametrisation=parametrisation, base_width=16, base_depth=2
    )
    model = Transformer(design)
    optimiser = Optimiser(model, design, OptimiserConfig(lr=1.0, weight_decay=0.5, eps=1e-4))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        names[id(parameter)]: (group["lr"], group["weight_decay"], group["eps"])
        for group in optimiser.adam.param_groups
        for parameter in group["params"]
    }


def test_factors_are_those_of_the_papers() -> None:
    """m_d = 4, m_L = 4."""
    standard, mup, complete = (settings_of(kind) for kind in ("standard", "mup", "completep"))
    hidden, norm, embedding = "blocks.3.attention.qkv.weight", "blocks.3.attention_norm.weight", "embedding.weight"
    assert set(standard.values()) == {(1.0, 0.5, 1e-4), (1.0, 0.0, 1e-4)}
    assert mup[hidden] == pytest.approx((1 / 4, 2.0, 1e-4 / 4))
    assert complete[hidden] == pytest.approx((1 / 4, 2.0, 1e-4 / 16))
    assert mup[norm] == pytest.approx((1, 0, 1e-4 / 4))
    assert complete[norm] == pytest.approx((1, 0, 1e-4 / 16))
    assert mup[embedding] == complete[embedding] == pytest.approx((1, 0.5, 1e-4 / 4))


def test_networks_start_and_join_as_the_parametrisation_says() -> None:
    def network(kind: str) -> Transformer:
        return Transformer(
            Architecture.of(depth=8, width=256, vocab=16, context=8, parametrisation=kind, base_width=64, base_depth=2)
        )

    standard, mup, complete = network("standard"), network("mup"), network("completep")
    ratio = mup.blocks[0].attention.qkv.weight.std() / standard.blocks[0].attention.qkv.weight.std()
    assert ratio.item() == pytest.approx(4**-0.5)
    assert [m.blocks[0].attention_join.multiplier for m in (standard, mup, complete)] == [1, 1, 1 / 4]
    assert [m.logits_multiplier for m in (standard, mup, complete)] == [1, 1 / 4, 1 / 4]
    assert torch.equal(mup.embedding.weight, standard.embedding.weight)


def test_a_gradient_is_clipped_to_the_length_asked_for() -> None:
    design = Architecture.of(depth=1, width=8, vocab=4, context=4)
    model = Transformer(design)
    optimiser = Optimiser(model, design, OptimiserConfig(clip=0.5))
    seen: list[float] = []
    optimiser.adam.register_step_pre_hook(lambda *_: seen.append(float(optimiser.gradient_norm())))
    for scale in (100.0, 1e-3):
        (model(torch.zeros(1, 4, dtype=torch.long)).square().sum() * scale).backward()
        norm = optimiser.gradient_norm()
        by_hand = torch.sqrt(sum((p.grad.square().sum() for p in model.parameters()), torch.zeros(())))
        assert float(norm) == pytest.approx(by_hand.item(), rel=1e-5)
        optimiser.step(1.0, norm)
        assert seen[-1] == pytest.approx(min(0.5, float(norm)), rel=1e-4)
        assert all(p.grad is None for p in model.parameters())


def test_schedules_begin_peak_and_end_where_they_should() -> None:
    kinds: tuple[Literal["cosine", "constant"], ...] = ("cosine", "constant")
    for kind in kinds:
        schedule = ScheduleConfig(kind=kind, warmup=10, cooldown=30, final=0.1)
        rates = [rate(schedule, step, 100) for step in range(1, 101)]
        assert rates[0] == 0.1
        assert max(rates) == rates[9] == 1
        assert rates[-1] == pytest.approx(0.1)
        assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[69] == 1 > rates[70]
