"""Candidates have other depths and the same size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.laws import depth_cost, outside_the_data, step_time_ratio, transition_law
from deepwide.planning import plan
from deepwide.shape import Shape, inference_memory

SIZES = st.floats(8, 13).map(lambda power: 10**power)


@given(SIZES)
@settings(max_examples=12)
def test_candidates_have_other_depths_and_the_same_size(size: float) -> None:
    best = plan(size)
    depths = [candidate.depth for candidate in best.candidates]
    wanted = sorted({max(1, round(best.shape.depth * f)) for f in (0.5, 0.75, 1, 1.5, 2)})
    assert depths == [depth for depth in wanted if depth in depths]
    assert best.shape.depth in depths
    for c in best.candidates:
        assert abs(c.block_params / best.params.block - 1) <= 0.05
        assert c.depth_over_law == pytest.approx(c.depth / transition_law().depth_at(size))
        assert c.loss_percent == depth_cost(c.depth, best.shape.depth, best.params.block)
        assert c.extrapolated == (outside_the_data(c.depth, best.params.block) is not None)
        assert c.step_time == step_time_ratio(c.depth, best.shape.depth)
        if c.depth == best.shape.depth:
            assert (c.width, c.heads, c.ff_width) == (best.shape.width, best.shape.heads, best.shape.ff_width)
            assert c.loss_percent is None or c.loss_percent.value == 0
            assert (c.step_time.value, c.decode_time) == (1, 1)


def test_candidates_are_half_to_twice_as_deep() -> None:
    best = plan("1.3B")
    assert [c.depth / best.shape.depth for c in best.candidates] == pytest.approx([0.5, 0.75, 1, 1.5, 2], abs=0.02)


def test_candidates_that_constraints_push_off_the_size_are_left_out() -> None:
    """In steps of 1024 most other depths have no width of the same size."""
    assert [c.depth for c in plan("1.5B", family="gpt2", width_multiple=1024).candidates] == [30]
    assert [c.depth for c in plan("1.5B", tensor_parallel=8, head_dim=128).candidates] == [26, 35]


def test_candidates_keep_the_pipeline_stages() -> None:
    assert all(c.depth % 4 == 0 for c in plan("1.3B", pipeline_stages=4).candidates)


@pytest.mark.parametrize("kv_heads", [None, 8])
@pytest.mark.parametrize("ranks", [1, 16, 64])
def test_sizes_are_equal_where_a_feed_forward_can_make_them_so(ranks: int, kv_heads: int | None) -> None:
    """They differed by up to 2.4% with 64 ranks."""
    for budget in ("1.3B", "7B", "70B"):
        best = plan(budget, tensor_parallel=ranks, kv_heads=kv_heads)
        for c in best.candidates:
            assert c.size_percent == pytest.approx(100 * (c.block_params / best.params.block - 1))
            assert c.is_equal or ranks > 1
            assert abs(c.size_percent) < 0.8
            assert 0.79 < c.ff_width / (8 / 3 * c.width) < 1.36


def test_a_row_of_another_size_says_so() -> None:
    """A plain feed-forward of 4 × width takes up no slack."""
    best = plan("1.3B", feed_forward="plain", tensor_parallel=32)
    unequal = [c for c in best.candidates if not c.is_equal]
    assert unequal
    assert all(abs(c.block_params / best.params.block - 1) > 0.005 for c in unequal)
    if best.candidates[0] in unequal:
        assert f"{best.candidates[0].size_percent:+.1f}% of size" in best.brief()
    assert [row["size_percent"] for row in best.rows()] == [c.size_percent for c in best.candidates]


@pytest.mark.parametrize(("context", "batch"), [(2048, 1), (32768, 8)])
def test_decode_time_is_reading_weights_and_cache_and_passing_the_layers(context: int, batch: int) -> None:
    best = plan("1.3B", bandwidth="1TB/s", layer_us=20, context=context, batch=batch)

    def seconds(s: Shape) -> float:
        return inference_memory(s, batch=batch).total / 1e12 + s.depth * 2e-5

    for c in best.candidates:
        sizes = {"depth": c.depth, "width": c.width, "heads": c.heads, "kv_heads": c.heads, "ff_width": c.ff_width}
        shape = best.shape.but(head_dim=c.head_dim, **sizes)
        assert c.decode_time == pytest.approx(seconds(shape) / seconds(best.shape))
    slow, fast = best.candidates[-1], best.candidates[0]
    assert slow.decode_time > 1 > fast.decode_time  # depth is sequential
