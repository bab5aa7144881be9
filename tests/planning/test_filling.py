"""Memory, and FLOPs for given tokens, are filled by expected loss; against all shapes that divide, one by one."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.memory_plans import less_loss

from deepwide.errors import DeepwideError
from deepwide.laws import own_costs, transition_law
from deepwide.planning import Budget, Plan, Style, filling, plan
from deepwide.planning.filling import fill_budgets
from deepwide.quantities import Floats, Integers, Numbers
from deepwide.shape import inference_memory

LONG: list[tuple[str, dict[str, Any]]] = [
    ("16GB", {"context": "8Ki", "batch": 16}),  # 12 layers with 35 heads: 13 had 0.68% less loss
    ("24GB", {"context": "8Ki", "batch": 16}),  # 16 layers with 39 heads: 13 had 0.47% less
    ("80GB", {"context": "8Ki", "batch": 16}),  # 31 heads
    ("320GB", {"context": "32Ki", "batch": 8}),  # 45 heads
    ("320GB", {"context": "128Ki", "batch": 8}),  # 29 heads
    ("24GB", {}),
    ("80GB", {"context": "32Ki", "batch": 8, "kv_heads": 8}),
    ("80GB", {"context": "128Ki", "batch": 8, "kv_heads": 8}),
]


def filled(budget: float | str, **more: Any) -> Plan:
    return plan(budget, kind="memory", **more)


def expected_losses(best: Plan, depth: Numbers, block_params: Floats, tokens: float | None = None) -> Floats:
    size, tokens = best.params.total * block_params / best.params.block, tokens or 20.0 * best.params.total
    surface = 1.8169 + 482.01 * size**-0.3478 + 2085.43 * tokens**-0.3658
    return np.log(surface) + own_costs(depth, block_params, transition_law())


def every_shape(best: Plan, context: int, batch: int, kv_heads: int | None) -> tuple[Integers, ...]:
    """All depths and widths with usual heads: depth, heads and block parameters with the feed-forward that fits."""
    shapes = []
    for head_dim in (64, 128):
        heads = np.arange(512 // head_dim, 260, kv_heads or 1, dtype=np.int64)
        heads = heads[heads % (kv_heads or 1) == 0]
        L, h = (each.ravel() for each in np.meshgrid(np.arange(1, 2 * round(best.law_depth.value)), heads))
        d, kv = h * head_dim, (h if kv_heads is None else kv_heads) * head_dim
        fixed = L * (2 * d * d + 2 * d * kv + 2 * d) + d
        room = (best.budget - 4 * batch * context * L * kv) // 2 - fixed - 2 * 50304 * d
        unit = np.where(d >= 1024, 64, 8)
        usual = np.rint(8 / 3 * d / unit)
        F = np.minimum(room // (3 * d * L * unit), np.rint(1.35 * usual)) * unit
        fits = (np.rint(0.8 * usual) * unit <= F) & (head_dim <= np.where(d >= 2048, 256, 128))
        blocks = fixed + 3 * d * L * F.astype(np.int64)
        if (own := best.shape).head_dim == head_dim:
            at = fits & (own.depth == L) & (own.heads == h)
            assert blocks[at].max() == best.params.block
        shapes.append((L[fits], h[fits], blocks[fits]))
    return tuple(np.concatenate(values) for values in zip(*shapes, strict=True))


@pytest.mark.parametrize(("budget", "more"), LONG)
def test_no_shape_is_better_and_heads_are_odd_only_where_loss_asks_for_it(budget: str, more: dict[str, Any]) -> None:
    """A second way: every depth, width and number of heads that divides, one by one."""
    best = filled(budget, **more)
    context, batch = best.shape.context, more.get("batch", 1)
    L, heads, blocks = every_shape(best, context, batch, more.get("kv_heads"))
    losses = expected_losses(best, L, blocks.astype(float))
    own = float(expected_losses(best, np.array([best.shape.depth]), np.array([float(best.params.block)]))[0])
    assert own < losses.min() + 0.0005
    if best.shape.heads % 2:
        assert not np.any((heads % 2 == 0) & (losses < losses.min() + 0.00038))
    assert best.reached == inference_memory(best.shape, batch=batch).total <= best.budget


@pytest.mark.parametrize(("budget", "more"), [*LONG[:2], LONG[-1]])
def test_no_plan_of_another_depth_is_better(budget: str, more: dict[str, Any]) -> None:
    best = filled(budget, **more)
    for depth in range(max(1, best.shape.depth - 4), best.shape.depth + 5):
        assert less_loss(best, filled(budget, **more, depth=depth)) < 0.0005


@pytest.mark.parametrize("context", [2048, 32768, 131072])
def test_flops_for_given_tokens_are_filled_by_loss_too(context: int) -> None:
    asked: dict[str, Any] = {"kind": "flops", "tokens": "100B", "context": context}
    best = plan("1e22", **asked)
    assert abs(best.miss) < 0.03
    assert best.shape.heads % 2 == 0
    style, budget = Style(context=context), Budget.of("1e22", "flops", tokens="100B", context=context)
    L = np.arange(1.0, 2 * best.law_depth.value)
    sizes = style.grid(L, style.width_for(L, 1e22, budget.measure)).params.block
    own = np.array([float(best.shape.depth)]), np.array([float(best.params.block)])
    losses = [expected_losses(best, depths, blocks, 100e9) for depths, blocks in ((L, sizes), own)]
    assert losses[1][0] < losses[0].min() + 0.0005


@pytest.mark.parametrize("more", [{}, {"kv_heads": 8}, {"width_multiple": 1000}, {"feed_forward": "plain"}])
def test_depths_that_are_not_tried_would_change_nothing(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    style, amounts = Style(context=32768, **more), np.geomspace(2e10, 1e12, 9)
    budget = Budget.of(1, "memory", batch=4, context=32768)
    some = fill_budgets(style, transition_law(), budget, amounts)
    monkeypatch.setattr(filling, "LIKELY", -1.0)  # so that all are
    every = fill_budgets(style, transition_law(), budget, amounts)
    assert np.array_equal(some.shapes, every.shapes)
    assert np.array_equal(some.left, every.left)


@pytest.mark.parametrize("depth", [2, 8, 20, 60])
def test_a_fixed_depth_fills_the_memory(depth: int) -> None:
    """What a depth costs would speak for a small model where it is much too shallow: memory is there to be used."""
    best = filled("80GB", depth=depth)
    assert best.shape.depth == depth
    assert -0.03 < best.miss <= 0


def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(DeepwideError, match="no shape of this style stays below the budget: allow more, or loosen"):
        filled("68.9GB", context="128Ki", batch=64, kv_heads=16, head_dim=128)
    with pytest.raises(DeepwideError, match=r"misses the budget by more than a factor 1\.5: loosen kv_heads"):
        filled("3.1GB", width_multiple=8192, vocab=100, feed_forward="plain")


@pytest.mark.parametrize(
    ("kv_heads", "context", "batch", "budgets"),
    [(4, "8Ki", 8, ("6.0GB", "6.2GB", "6.5GB", "7.3GB", "13GB", "14GB")),
     (8, "32Ki", 8, ("8GB", "12GB", "16GB", "24GB", "70GB", "75GB", "80GB")),
     (1, "64Ki", 8, ("21GB", "22.9GB", "24.4GB", "26GB"))],
)  # fmt: skip
def test_more_memory_is_never_filled_with_cache_instead_of_parameters(
    kv_heads: int, context: str, batch: int, budgets: tuple[str, ...]
) -> None:
    options: dict[str, Any] = {"kind": "memory", "kv_heads": kv_heads, "context": context, "batch": batch}
    plans = [plan(budget, **options) for budget in budgets]
    sizes = [best.params.active_block for best in plans]
    assert all(more > 0.97 * less for less, more in pairwise(sizes)), sizes
    assert {best.shape.head_dim for best in plans} <= {64, 128}
    for budget, best in zip(budgets, plans, strict=True):  # nor would the user's own choice of heads do better
        assert plan(budget, head_dim=64, **options).params.active_block < 1.1 * best.params.active_block


def test_a_law_that_asks_for_more_layers_than_fit_is_left_in_words() -> None:
    best = plan("16GB", kind="memory", kv_heads=8, context="32Ki", batch=8, law="gemstones")
    assert best.params.active_block > 2e9
    assert "inf" not in " ".join(note.text for note in best.notes)


@pytest.mark.parametrize(("memory", "context", "batch", "stages"), [("24GB", "8Ki", 16, 1), ("80GB", "128Ki", 8, 6)])
def test_a_fixed_depth_has_the_heads_that_leave_most_for_parameters(
    memory: str, context: str, batch: int, stages: int
) -> None:
    """80 GB with 8 × 128Ki and 18 layers were 1.0B with heads of 128, and 19.6B with heads of 64."""
    for depth in range(18, 37, 6):
        asked: dict[str, Any] = {"kind": "memory", "context": context, "batch": batch, "kv_heads": 8, "depth": depth}
        free, narrow = (plan(memory, **asked, pipeline_stages=stages, head_dim=h).params.block for h in (None, 64))
        assert free > 0.95 * narrow
