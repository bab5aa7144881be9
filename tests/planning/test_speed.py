"""A plan with a limit on time keeps to it, to the budget, and loses as little as can be."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from deepwide import DeepwideError, plan
from deepwide.laws import compute_law, depth_cost
from deepwide.planning import Plan
from deepwide.planning.candidates import TENSOR_PARALLEL
from deepwide.quantities import show_count
from deepwide.timing import find_machine, work


def limited(budget: str = "300M", **options: Any) -> Plan:
    answer = plan(budget, **options)
    assert answer.speed is not None
    return answer


def test_without_a_machine_nothing_changes() -> None:
    assert plan("300M").speed is None


def test_a_machine_without_a_limit_keeps_the_shape_and_says_how_quick_it_is() -> None:
    answer = limited(machine="captured")
    assert answer.shape == plan("300M").shape
    assert answer.speed is not None
    assert answer.speed.limit_seconds is None
    assert answer.speed.loss_percent.value == 0
    assert answer.fixed is None
    own = next(row for row in answer.speed.frontier if row.chosen)
    assert own.decode_seconds == answer.speed.decode_seconds


def test_captured_and_the_default_constants_are_one_machine() -> None:
    assert limited(latency="0.3ms").speed == limited(machine="captured", latency="0.3ms").speed


@pytest.mark.parametrize(("machine", "latency"), [("captured", "0.3ms"), ("eager", "4ms"), ("tensor-8", "500us")])
def test_the_plan_keeps_to_the_limit_and_the_budget(machine: str, latency: str) -> None:
    free, answer = plan("300M"), limited(machine=machine, latency=latency)
    speed = answer.speed
    assert speed is not None
    assert speed.limit_seconds is not None
    assert speed.decode_seconds.value <= speed.limit_seconds
    assert speed.decode_seconds.value > 0.8 * speed.limit_seconds  # and uses it
    assert answer.shape.depth < free.shape.depth
    assert answer.reached <= 1.001 * max(free.reached, answer.budget)
    assert answer.fixed == "latency"
    assert "speed-limit" in [note.code for note in answer.notes]
    # Of the shapes on the frontier that keep to the limit, the plan's has the least loss.
    quick = [row for row in speed.frontier if row.decode_seconds.value <= speed.limit_seconds]
    assert min(quick, key=lambda row: row.loss_percent.value).chosen


def test_less_time_costs_more_loss_and_fewer_layers() -> None:
    answers = [limited(machine="eager", latency=time).speed for time in ("8ms", "5ms", "3ms", "2ms")]
    losses = [speed.loss_percent.value for speed in answers if speed]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


def test_nothing_on_the_frontier_beats_another_in_time_and_loss() -> None:
    speed = limited(machine="eager").speed
    assert speed is not None
    rows = [row for row in speed.frontier if not row.chosen]
    assert len(rows) >= 4
    times, losses = [row.decode_seconds.value for row in rows], [row.loss_percent.value for row in rows]
    assert times == sorted(times)
    assert losses == sorted(losses, reverse=True)


def test_throughput_is_a_limit_on_the_time_of_a_batch() -> None:
    many = limited(machine="captured", throughput=20_000, batch=8).speed
    assert many is not None
    assert many.limit_seconds == pytest.approx(8 / 20_000)
    assert many.tokens_per_second >= 20_000


CASES = st.fixed_dictionaries(
    {
        "machine": st.sampled_from(["captured", "eager", "tensor-8"]),
        "law": st.sampled_from(["levine", "pooled", "nanochat", "depth-delusion"]),
        "context": st.sampled_from([512, 2048, 32768]),
    },
    optional={
        "kv_heads": st.sampled_from([1, 8]),
        "tensor_parallel": st.sampled_from([2, 6]),
        "pipeline_stages": st.sampled_from([2, 4]),
        "family": st.sampled_from(["gpt2", "qwen3"]),
        "at_most": st.just(True),
        "batch": st.sampled_from([4, 64]),
        "tokens": st.sampled_from(["3B", "2T"]),
        "depth": st.sampled_from([8, 24]),
    },
)


@settings(
    max_examples=12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)  # shrinking takes minutes
@given(st.floats(7.5, 10.5), CASES, st.lists(st.floats(0.35, 3), min_size=2, max_size=2))
def test_a_looser_limit_never_gives_more_expected_loss(
    size: float, options: dict[str, Any], shares: list[float]
) -> None:
    """A fresh user's find: 25 ms gave the law's own plan, slower and worse than what 15 ms gave."""
    if options.get("family") == "gpt2":
        options.pop("kv_heads", None)
    try:
        free = plan(10**size, **options).speed
    except DeepwideError:
        return  # nothing divides as asked at this size
    assert free is not None
    losses, refused = [], False
    for share in sorted(shares, reverse=True):
        limit = f"{1000 * share * free.decode_seconds.value:.9f}ms"
        if refused:
            with pytest.raises(DeepwideError):
                plan(10**size, **options, latency=limit)
            continue
        try:
            speed = plan(10**size, **options, latency=limit).speed
        except DeepwideError:
            refused = True
            continue
        assert speed is not None
        assert speed.limit_seconds is not None
        assert speed.decode_seconds.value <= speed.limit_seconds
        quick = [row.loss_percent.value for row in speed.frontier if row.decode_seconds.value <= speed.limit_seconds]
        assert min(quick) == speed.loss_percent.value
        if free.decode_seconds.value <= speed.limit_seconds:
            assert speed.without_limit.chosen
            assert speed.loss_percent.value == 0
        else:
            losses.append(speed.loss_percent.value)
    assert losses == sorted(losses)


@pytest.mark.parametrize(
    ("budget", "options"),
    [
        ("1.3B", {}),
        ("1.3B", {"machine": "eager", "experts": 16, "active": 2}),
        ("3B", {"kind": "total", "law": "nanochat"}),
        ("1e20", {"kind": "flops", "context": "32Ki"}),
        ("24GB", {"kind": "memory"}),
        ("16GB", {"kind": "memory", "kv_heads": 8, "context": "32Ki", "batch": 8}),
    ],
)
def test_a_limit_that_does_not_bind_changes_nothing(budget: str, options: dict[str, Any]) -> None:
    """A fresh user's find: `--latency 100s` gave 2.3 times the model in the same memory."""
    free, loose = plan(budget, **options), limited(budget, **options, latency="100s")
    assert loose.speed is not None
    assert loose.shape == free.shape
    assert (loose.fixed, loose.law_depth, loose.tokens) == (free.fixed, free.law_depth, free.tokens)
    assert loose.speed.loss_percent.value == 0
    assert loose.speed.without_limit.chosen
    assert min(row.loss_percent.value for row in loose.speed.frontier) == 0
    assert "the limit changes nothing" in next(note.text for note in loose.notes if note.code == "speed-limit")


def test_a_flops_budget_is_spent_whole_within_a_limit() -> None:
    """A fresh user's find: 1e22 FLOPs within 3 ms left 59% of them unspent, and that cost 3.1% of loss, not 1.0%."""
    answer = limited("1e22", kind="flops", latency="3ms")
    free = plan("1e22", kind="flops")
    assert answer.speed is not None
    assert answer.train_flops == pytest.approx(1e22, rel=1e-9)
    assert answer.tokens > 2 * free.tokens
    c = compute_law("epoch")
    at, here = (c.E + c.A * p.params.active**-c.alpha + c.B * p.tokens**-c.beta for p in (answer, free))
    assert 100 * (at / here - 1) < answer.speed.loss_percent.value < 100 * (at / here - 1) + 0.5
    given = limited("1e22", kind="flops", latency="3ms", tokens=answer.tokens)
    assert given.speed is not None
    assert given.train_flops <= 1.001e22, "tokens that are given stay"


@pytest.mark.parametrize("budget", ["350MB", "510MB", "2GB", "9GB"])
def test_a_limit_that_binds_costs_loss(budget: str) -> None:
    """A quicker shape of less expected loss was left out of the plan without a limit."""
    options: dict[str, Any] = {"kind": "memory", "machine": "eager"}
    free = limited(budget, **options).speed
    assert free is not None
    quick = limited(budget, **options, latency=f"{900 * free.decode_seconds.value:.6f}ms").speed
    assert quick is not None
    assert quick.loss_percent.value > -0.05, "no more than shapes are told apart by"
    assert not quick.without_limit.chosen


@pytest.mark.parametrize(("budget", "limit"), [
    ("7B", {"throughput": 2000, "batch": 32}), ("70B", {"latency": "15ms", "batch": 8}),
])  # fmt: skip
def test_asking_for_narrower_heads_finds_nothing_better(budget: str, limit: dict[str, Any]) -> None:
    """A fresh user's find: with 8 key/value heads, heads of 64 halve the cache, and wide shapes were tried with 128."""
    options: dict[str, Any] = {"kv_heads": 8, "context": "32Ki", **limit}
    free, narrow = limited(budget, **options), limited(budget, **options, head_dim=64)
    assert free.params.active_block >= 0.99 * narrow.params.active_block
    assert free.shape.head_dim == 64


def test_what_is_quicker_and_better_by_the_loss_data_alone_is_named() -> None:
    answer = limited("1.3B", machine="eager")
    speed = answer.speed
    assert speed is not None
    other = speed.quicker_and_better
    assert other is not None
    assert other.decode_seconds.value < speed.decode_seconds.value
    assert other.data_percent is not None
    assert other.data_percent.value < 0 < other.loss_percent.value
    assert "quicker-and-better" in [note.code for note in answer.notes]
    # By the law of those data the two are one, and the plan has that depth.
    pooled = limited("1.3B", machine="eager", law="pooled").speed
    assert pooled is not None
    assert pooled.quicker_and_better is None
    assert all(row.loss_percent == row.data_percent for row in pooled.frontier)


def test_loss_within_a_limit_is_compared_by_block_parameters_as_in_the_table_beside_it() -> None:
    """By total parameters a wide shape gained from its embedding, which a table at equal blocks cannot show."""
    answer = limited("300M", machine="eager", latency="7ms", vocab="256k")
    speed = answer.speed
    assert speed is not None
    same = [row for row in speed.frontier if abs(row.block_params / speed.without_limit.block_params - 1) < 2e-3]
    depths = {row.depth: row.data_percent for row in same}
    assert len(depths) >= 2
    for depth, percent in depths.items():
        alone = depth_cost(depth, speed.without_limit.depth, answer.params.active_block)
        assert percent is not None
        assert alone is not None
        assert percent.value == pytest.approx(alone.value, abs=0.06)


@pytest.mark.parametrize(
    "options",
    [
        {"latency": "1ms"},
        {"latency": "1ms", "kv_heads": 8},
        {"latency": "1.2ms", "kv_heads": 8, "context": "32Ki", "batch": 8},
        {"throughput": 2000, "batch": 16, "context": "8Ki"},
    ],
)
def test_heads_are_not_made_narrow_to_shrink_the_cache(options: dict[str, Any]) -> None:
    for budget in ("700M", "1.3B", "3B"):
        answer = limited(budget, **options)
        assert answer.speed is not None
        for row in answer.speed.frontier:
            assert row.head_dim >= 64 or row.width < 512, (budget, row)
            assert row.heads * row.head_dim == row.width


def test_narrow_heads_are_taken_where_nothing_else_is_quick_enough() -> None:
    """64 ranks ask for 64 heads: with the usual ones nothing is narrower than 4,096."""
    usual = limited("300M", machine="tensor-64")
    assert usual.speed is not None
    tight = limited("300M", machine="tensor-64", latency=f"{700 * usual.speed.decode_seconds.value:.6f}ms")
    assert tight.speed is not None
    assert tight.shape.heads % 64 == 0
    assert tight.speed.loss_percent.value >= 0


def test_the_cost_of_a_limit_is_at_the_tokens_that_the_plan_shows() -> None:
    """Loss at equal tokens beside 20 tokens per parameter of a smaller model would promise too much."""
    answer = limited("7B", machine="captured", latency="1ms")
    free = plan("7B")
    assert answer.params.total < 0.5 * free.params.total
    assert answer.tokens == free.tokens
    assert "for the plan without a limit on time" in answer.tokens_from
    assert limited("7B", machine="captured", latency="1ms", tokens="1T").tokens_from == "given"


def test_a_fixed_depth_stays_and_the_size_gives_way() -> None:
    answer = limited(machine="captured", latency="0.25ms", depth=12)
    assert answer.shape.depth == 12
    assert answer.fixed == "depth"
    assert "with the depth you fixed" in answer.reason
    assert answer.reached < 0.9 * answer.budget
    assert "budget-missed" not in [note.code for note in answer.notes]


@pytest.mark.parametrize("machine", ["tensor-8", "tensor-64"])
@pytest.mark.parametrize(
    "options", [{}, {"latency": "100ms"}, {"kv_heads": 8}, {"tensor_parallel": 3, "family": "gpt2"}]
)
def test_heads_and_feed_forward_divide_over_the_devices_of_a_machine(machine: str, options: dict[str, Any]) -> None:
    answer = limited("7B", machine=machine, **options)
    assert answer.speed is not None
    split = answer.speed.devices
    assert split == int(machine.removeprefix("tensor-"))
    for heads, ff_width in [(answer.shape.heads, answer.shape.ff_width)] + [
        (c.heads, c.ff_width) for c in answer.candidates
    ]:
        assert heads % split == 0
        assert ff_width % split == 0
        assert heads % options.get("tensor_parallel", 1) == 0


@pytest.mark.parametrize(
    ("budget", "machine", "options", "fits"),
    [
        ("70B", "eager", {}, False),
        ("70B", "tensor-8", {}, True),
        ("30B", "captured", {}, True),
        ("30B", "captured", {"batch": 64}, False),
        ("70B", "eager", {"inference_precision": "int4"}, True),
        ("1T", "tensor-8", {}, False),
    ],
)
def test_a_model_larger_than_the_memory_of_its_machine_is_warned_of(
    budget: str, machine: str, options: dict[str, Any], fits: bool
) -> None:
    answer = limited(budget, machine=machine, **options)
    speed = answer.speed
    assert speed is not None
    assert speed.memory_bytes == 80 * 10**9
    assert speed.device_bytes is not None
    # By hand: an equal share of what the whole plan takes, but for norms, which every device has.
    assert speed.device_bytes == pytest.approx(answer.inference_bytes / speed.devices, rel=0.01)
    assert ("exceeds-memory" in [note.code for note in answer.notes]) is not fits
    assert ("whose 80 GB per device are too few" in answer.brief()) is not fits


@pytest.mark.parametrize(
    ("ranks", "machine", "other"),
    [(8, "captured", True), (1, "captured", False), (8, "tensor-8", False), (4, "tensor-8", True)],
)
def test_times_of_another_number_of_devices_than_asked_for_are_warned_of(ranks: int, machine: str, other: bool) -> None:
    answer = limited("7B", machine=machine, latency="8ms", tensor_parallel=ranks, kv_heads=8)
    assert ("other-devices" in [note.code for note in answer.notes]) is other
    assert (f", not {ranks})" in answer.brief()) is other


@pytest.mark.parametrize(("precision", "each"), [("int4", 0.5), ("int8", 1), ("bf16", 2), ("fp32", 4)])
def test_times_are_those_of_the_weights_asked_for(precision: str, each: float) -> None:
    """int4 had the times of bf16."""
    answer = limited("7B", machine="captured", inference_precision=precision, kv_heads=8)
    shape, speed = answer.shape, answer.speed
    assert speed is not None
    amount = work("decode", shape, tokens=shape.context, weight_bytes=2)
    cache = 2 * shape.context * 2 * shape.depth * 8 * shape.head_dim
    read = each * (amount.bytes - cache) / 2 + cache
    by_hand = read / 3.35e12 + amount.flops / 9.89e14 + 16e-6 * shape.depth
    assert speed.decode_seconds.value == pytest.approx(by_hand, rel=1e-9)
    assert speed.weights == precision
    assert "precision-of-times" not in [note.code for note in answer.notes]


def test_weights_of_fewer_bytes_leave_room_for_a_larger_model() -> None:
    sizes = [limited("7B", latency="3ms", inference_precision=each).params.block for each in ("int4", "int8", "bf16")]
    assert sizes[0] > 1.5 * sizes[2]
    assert sizes == sorted(sizes, reverse=True)


def test_a_machine_that_was_measured_knows_no_weights_but_its_own() -> None:
    measured = find_machine("captured").model_copy(update={"name": "mine", "rounds": 3})
    with pytest.raises(DeepwideError, match="was measured with weights in bf16 and cannot say how quick int4 is"):
        plan("7B", machine=measured, latency="8ms", inference_precision="int4")
    answer = limited("7B", machine=measured, inference_precision="int4")
    assert "precision-of-times" in [note.code for note in answer.notes]
    assert "on mine in bf16" in answer.brief()
    assert "in bf16" not in limited("7B", machine=measured).brief()


@pytest.mark.parametrize(("ranks", "machine"), [(8, "tensor-8"), (64, "tensor-64")])
def test_without_a_machine_times_are_those_of_the_ranks_planned_for(ranks: int, machine: str) -> None:
    """They were those of one H100."""
    preset = find_machine(machine)
    assert preset.devices == ranks
    rate, per_layer = TENSOR_PARALLEL[ranks]
    assert rate == preset.bytes_per_second
    assert per_layer / 1e6 == preset.phases["decode"].per_layer.value
    asked = limited("30B", latency="10ms", tensor_parallel=ranks)
    assert asked.speed == limited("30B", latency="10ms", tensor_parallel=ranks, machine=machine).speed
    table = plan("30B", tensor_parallel=ranks)
    assert machine in table.decode_from
    shallow, own = table.candidates[0], next(c for c in table.candidates if c.depth == table.shape.depth)
    seconds = [2 * (c.total_params + 2 * c.depth * c.width * 2048) / rate + per_layer / 1e6 * c.depth
               for c in (shallow, own)]  # fmt: skip
    assert shallow.decode_time == pytest.approx(seconds[0] / seconds[1], rel=1e-6)


def test_other_numbers_of_ranks_are_told_whose_times_are_shown() -> None:
    assert plan("7B", tensor_parallel=4).decode_from.endswith("on one H100, not on 4 devices")
    assert "as given" in plan("7B", tensor_parallel=8, layer_us=20).decode_from


def test_a_size_below_the_budget_is_said_in_the_brief_and_in_the_heading() -> None:
    answer = limited("7B", machine="captured", latency="2ms")
    first = answer.brief().splitlines()[0]
    assert first.startswith(f"{show_count(answer.reached)} of 7B block parameters within 2 ms per token: ")
    assert str(answer).startswith("Plan for 7B block parameters within 2 ms per token: ")
    assert plan("7B").brief().startswith("7B block parameters: ")
    memory = limited("24GB", kind="memory", machine="captured", latency="2ms").brief().splitlines()[0]
    assert " GB of 24 GB at inference" in memory


def test_where_no_loss_data_reach_a_machine_alone_still_gives_times() -> None:
    answer = limited("7B", depth=2, machine="captured")
    assert answer.speed is not None
    assert len(answer.speed.frontier) == 1
    with pytest.raises(DeepwideError, match="no loss data reach this far"):
        plan("7B", depth=2, machine="captured", latency="1s")


@pytest.mark.parametrize("given", [0.1, "0.1", ".1"])
def test_less_than_a_token_per_second_is_a_limit_too(given: float | str) -> None:
    speed = limited("70B", throughput=given, layer_us=1e5).speed
    assert speed is not None
    assert speed.limit_seconds == pytest.approx(10)
    assert speed.limit_words == "at 0.1 tokens per second or more"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"latency": "1us"}, "nothing decodes within 1 µs per token on 'captured'"),
        ({"latency": "soon"}, "'soon' is not a time"),
        ({"latency": "8"}, "'8' is a time without its unit: write 8ms, 8us or 8s"),
        ({"latency": 0.008}, "'0.008' is a time without its unit"),
        ({"throughput": "-3"}, "not a number of tokens per second"),
        ({"throughput": "0"}, "not a number of tokens per second"),
        ({"throughput": "nan"}, "not a number of tokens per second"),
        ({"latency": "1ms", "width": 512}, "chooses the width"),
        ({"machine": "eager", "layer_us": 5.0}, "leave bandwidth and layer_us out"),
        ({"machine": "abacus"}, "no machine 'abacus'"),
    ],
)
def test_bad_limits_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        plan("300M", **options)
