"""A FLOPs budget buys the tokens of least expected loss, attention counted; against a search over a grid."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from deepwide.laws import compute_law, own_costs, transition_law
from deepwide.planning import Budget, Plan, Style, plan
from deepwide.planning.tokens import with_best_tokens
from deepwide.quantities import Floats


def tokens(C: float, depth: int | None = None, width: int | None = None, compute: str = "epoch", **style: Any) -> int:
    budget = Budget.of(C, "flops", compute=compute)
    return with_best_tokens(Style(**style), transition_law(), budget, depth, width).tokens or 0


def surface(N: Any, D: Any) -> Floats:
    return np.asarray(1.8169 + 482.01 * N**-0.3478 + 2085.43 * D**-0.3658)


def least_loss(C: float, context: int, D: float | None = None) -> tuple[float, float]:
    """A second way: every size (1% apart) and depth, a layer 12·width² and a token 6·N + 6·depth·context·width."""
    N = np.exp(np.arange(math.log(1e6), math.log(1e13), 0.01))[:, None]
    law = transition_law()
    L = np.maximum(1.0, law.depth(N.ravel()).value[:, None] * np.geomspace(0.05, 1, 200))
    spent = 6 * N + 6 * L * context * np.sqrt(N / (12 * L))
    bought = C / spent
    loss = np.log(surface(N, bought)) + own_costs(L, N, law)
    if D is not None:  # the least with these tokens, or up to 2% off them
        loss = np.where(np.abs(np.log(bought / D)) < 0.02, loss, np.inf)
    at = np.unravel_index(np.argmin(loss), loss.shape)
    return float(loss[at]), float(bought[at])


@pytest.mark.parametrize("C", [1e20, 1e22, 1e24])
@pytest.mark.parametrize("context", [2048, 32768, 131072])
def test_tokens_are_those_of_a_search_over_all_sizes_and_depths(C: float, context: int) -> None:
    loss, expected = least_loss(C, context)
    chosen = tokens(C, context=context)
    assert chosen == pytest.approx(expected, rel=0.05)  # the loss is flat there
    assert least_loss(C, context, chosen)[0] < loss + 1e-4
    if context == 131072:  # with the tokens of the closed form it is not
        assert least_loss(C, context, compute_law("epoch").optimum(C)[1])[0] > loss + 0.003


@pytest.mark.parametrize("compute", ["epoch", "hoffmann"])
@pytest.mark.parametrize("C", [1e16, 1e20, 1e24, 1e28])
def test_without_attention_they_are_the_closed_form(compute: str, C: float) -> None:
    closed = compute_law(compute).optimum(C)[1]
    assert tokens(C, compute=compute, context=1) == pytest.approx(closed, rel=0.002)
    ratios = [tokens(C, compute=compute, context=2**power) / closed for power in range(0, 28, 3)]
    assert all(more <= less for less, more in pairwise(ratios))
    assert ratios[-1] < 0.05


@pytest.mark.parametrize("kv_heads", [None, 8])
def test_they_grow_with_the_budget(kv_heads: int | None) -> None:
    for context in (2048, 8192, 131072):
        row = [tokens(float(C), context=context, kv_heads=kv_heads) for C in np.logspace(18, 26, 13)]
        assert all(more > less for less, more in pairwise(row))


def test_a_depth_or_width_that_is_fixed_has_tokens_of_its_own() -> None:
    N = np.exp(np.arange(math.log(1e6), math.log(1e13), 0.01))
    widths = np.sqrt(N / (12 * 12))
    cases: list[tuple[dict[str, Any], Floats]] = [({"depth": 12}, 12 * widths), ({"width": 4096}, N / (12 * 4096))]
    for fixed, attention in cases:
        D = 1e22 / (6 * N + 6 * 131072 * attention)
        expected = D[np.argmin(surface(N, D))]
        assert tokens(1e22, context=131072, **fixed) == pytest.approx(expected, rel=0.02)
        assert plan("1e22", kind="flops", context=131072, **fixed).tokens == tokens(1e22, context=131072, **fixed)


def expected_loss(best: Plan) -> float:
    N = best.params.active_block
    return float(np.log(surface(N, best.tokens)) + own_costs(best.shape.depth, N, transition_law())[0])


@pytest.mark.parametrize(("C", "context"), [("1e22", 131072), ("1e24", 131072), ("1e22", 2048), ("1e20", 8192)])
def test_a_plan_with_other_tokens_is_no_better(C: str, context: int) -> None:
    """With the tokens of 6·N FLOPs each, 1e22 at 128Ki had 1.4% more loss."""
    best = plan(C, kind="flops", context=context)
    for factor in (0.33, 0.5, 0.7, 1.4, 2, 3):
        other = plan(C, kind="flops", context=context, tokens=round(factor * best.tokens))
        gap = expected_loss(other) - expected_loss(best)
        assert gap > (0.002 if abs(math.log(factor)) > 0.6 else 0)


def test_more_flops_never_give_a_worse_plan() -> None:
    plans = [plan(float(C), kind="flops", context=131072, kv_heads=8) for C in np.logspace(20, 25, 60)[8:20]]
    assert all(expected_loss(more) < expected_loss(less) for less, more in pairwise(plans))


def test_tokens_that_were_given_stay() -> None:
    given = Budget.of("1e22", "flops", tokens="60B")
    for budget in (given, Budget.of("1.3B"), Budget.of("24GB", "memory")):
        assert with_best_tokens(Style(), transition_law(), budget, None, None) == budget
