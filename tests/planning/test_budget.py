"""Budgets of every kind come back within rounding, and many at once are the same as one by one."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.laws import compute_law
from deepwide.planning import Budget, Style, count, plan
from deepwide.quantities import parse_count
from deepwide.shape import INFERENCE_BYTES, Shape, flops, inference_memory

SIZES = np.logspace(6, 14, 2001)  # 1M to 100T
PLAIN = ("gpt2", "gpt_neox", "bloom", "opt")

# How near is within rounding?
# A gated feed-forward moves in units of 64 (8 below width 1024) of about 12·width: half a unit of 3 matrices is
# 3·32 / (12·1024) = 0.8% where width passes 1024, and less elsewhere. Never over the budget, it is a whole unit.
GATED, GATED_BELOW = 0.01, 0.02
# A plain one is 4 × width, so that only width (in heads) and depth move; worst near 75M, with 8 heads of 64.
PLAIN_MISS = 0.045


@given(
    st.integers(10**8, 2 * 10**15),
    st.sampled_from(["fp32", "bf16", "int8", "int4"]),
    st.integers(1, 64),
    st.integers(1, 10**5),
    st.sampled_from([None, 1, 8]),
)
@settings(max_examples=15)
def test_a_memory_plan_fits_whatever_it_holds(
    budget: int, precision: str, batch: int, context: int, kv_heads: int | None
) -> None:
    try:
        best = plan(
            budget, kind="memory", inference_precision=precision, batch=batch, context=context, kv_heads=kv_heads
        )
    except DeepwideError as complaint:
        assert "budget" in str(complaint)  # noqa: PT017 - a long context may leave room for nothing
        return
    taken = inference_memory(best.shape, precision=precision, batch=batch, sequence=context).total
    assert taken == best.inference_bytes == best.reached <= budget


def test_a_memory_that_is_exactly_one_shape_is_filled_to_the_byte() -> None:
    first = plan(24_000_000_000, kind="memory")
    assert plan(first.reached, kind="memory").reached == first.reached


@pytest.mark.parametrize("compute", ["epoch", "hoffmann"])
def test_flops_come_back_within_one_percent(compute: str) -> None:
    for C in np.logspace(17, 29, 9):
        best = plan(C, kind="flops", compute=compute)
        assert 0.3 < best.tokens / compute_law(compute).optimum(C)[1] < 1.2  # tests/planning/test_tokens.py
        assert compute_law(compute).citation in best.tokens_from
        spent = flops(best.shape, convention="causal").training_per_token * best.tokens
        assert spent == pytest.approx(C, rel=1e-5)
        assert best.train_flops == pytest.approx(spent)
        assert best.reached == pytest.approx(spent)


def test_flops_with_given_tokens_buy_the_size_that_spends_them() -> None:
    best = plan(1e21, kind="flops", tokens=10**9)
    assert (best.tokens, best.tokens_from) == (10**9, "given")
    assert best.train_flops == pytest.approx(1e21, rel=GATED)
    assert best.params.total > 5 * plan(1e21, kind="flops").params.total


@pytest.mark.parametrize(("C", "context"), [(1e19, 128), (1e24, 10**6), (1e28, 10**6), (1e32, 10**6), (1e28, 10**9)])
def test_long_contexts_do_not_overflow(C: float, context: int) -> None:
    """They did: the FLOPs of one sequence pass the largest 64-bit integer."""
    best = plan(C, kind="flops", context=context)
    assert best.train_flops == pytest.approx(C, rel=GATED)


@pytest.mark.parametrize("text", ["1.3B", "1300M", 1_300_000_000, 1.3e9])
def test_a_budget_is_read_as_people_write_it(text: Any) -> None:
    assert Budget.of(text).amount == 1.3e9


@pytest.mark.parametrize("text", ["24GB", "24G", "24000000000", 24 * 10**9])
def test_a_memory_budget_is_read_in_bytes(text: Any) -> None:
    assert Budget.of(text, "memory").amount == 24e9


@pytest.mark.parametrize(
    ("budget", "more", "complaint"),
    [
        (0, {}, "is not a budget: it must be between 1 and 1e40"),
        (-1, {}, "'-1' is not a budget"),
        (float("nan"), {}, "'nan' is not a budget"),
        (float("inf"), {}, "'inf' is not a budget"),
        ("many", {}, "'many' is not a budget"),
        (999, {}, r"the budget must be between 1K parameters and 1e\+16 parameters here\.$"),
        (10**22, {}, "if this is a number of training FLOPs or of bytes, say so"),
        (1, {"kind": "flops"}, "the budget must be between"),
        (0, {"kind": "flops"}, "is not a budget"),
        (-1, {"kind": "flops"}, "is not a budget"),
        (1, {"kind": "memory"}, "the budget must be between"),
        ("24X", {"kind": "memory"}, "is not a memory size"),
        ("1.3B", {"kind": "memory"}, "between 20[0-9] kB and 20 PB here, and this was read as 1 byte "),
        ("1e21", {"kind": "flops", "tokens": 10}, "and 6e.17 FLOPs here; the training tokens given are 10"),
        ("7B", {"kind": "memory"}, r"read as 7 bytes \(gigabytes are written 24GB\); one layer of width 1 with"),
        (3e9, {"kind": "flops"}, r"between .* FLOPs and .*e\+\d\d FLOPs here"),
        (100_000, {"kind": "total"}, "one layer of width 1 with vocabulary 50,304 takes"),
        (1e9, {"kind": "blocks"}, "no kind of budget 'blocks': did you mean 'block'"),
        (1e9, {"inference_precision": "int5"}, "no inference precision 'int5': did you mean 'int"),
        (1e9, {"batch": 0}, "batch must be at least 1, not '0'"),
        (1e9, {"tokens": -1}, "tokens must be at least 1, not '-1'"),
        (1e9, {"compute": "epock"}, "no compute law 'epock': did you mean 'epoch'"),
        (1e9, {"law": "levin"}, "no law 'levin'.*did you mean 'levine'"),
        (1e9, {"law": "kaplan"}, "'kaplan' predicts no depth"),
        (1e9, {"depth": 0}, "depth must be at least 1, not '0'"),
        (1e9, {"depth": 100_001}, "depth must be at most 100,000"),
        (1e9, {"depth": 30, "pipeline_stages": 4}, "depth 30 is not a multiple of the 4 pipeline stages"),
        (1e9, {"width": 0}, "width must be at least 1, not '0'"),
        (1e9, {"width": -64}, "width must be at least 1, not '-64'"),
        (1e9, {"width": 100}, "width 100 cannot be split into heads of 128, 64"),
        (1e6, {"width": 4096}, "width 4096 leaves no room for one layer in this budget"),
        (1e9, {"depth": 30, "width": 64}, "depth and width together are the size"),
        (1e6, {"depth": 100_000}, "misses the budget by more than a factor 1.5"),
        (1e6, {"tensor_parallel": 64}, "misses the budget by more than a factor 1.5"),
        (1e9, {"pipeline_stages": 10**9}, "pipeline stages need at least 1,000,000,000 layers, more than 8 times"),
        (1e9, {"tensor_parallel": 10**9}, "nothing fits"),
        (1e9, {"tensor_parallel": 999_999_937, "width_multiple": 999_999_929}, "nothing fits"),
        (1e9, {"famly": "llama"}, r"there is no setting 'famly': did you mean 'family'\?$"),
        (1e9, {"family": "lama"}, r"no family 'lama': did you mean 'llama'\?$"),
        (1e9, {"family": "mixtral"}, "mixtral has experts: give the number of experts and of active ones"),
        (1e9, {"bandwidth": 0}, "bandwidth must be 1 MB per second"),
        (1e9, {"bandwidth": float("nan")}, "bandwidth must be 1 MB per second"),
        (1e9, {"bandwidth": "fast"}, "bandwidth must be 1 MB per second"),
        (1e9, {"layer_us": -1.0}, "layer_us must be from 0"),
    ],
)
def test_what_cannot_be_planned_gets_a_sentence(budget: Any, more: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeepwideError, match=complaint) as error:
        plan(budget, **more)
    assert len(str(error.value)) < 400
    assert not str(error.value).endswith(("?.", ".."))


@pytest.mark.parametrize("compute", ["epoch", "hoffmann"])
def test_the_range_for_flops_is_what_can_be_planned(compute: str) -> None:
    """Newcomer's review, S9: the upper limit printed was 8.71e+21, and 1e30 works."""
    with pytest.raises(DeepwideError) as error:
        plan(3e6, kind="flops", compute=compute)
    low, high = (parse_count(text) for text in re.findall(r"between (\S+) FLOPs and (\S+) FLOPs", str(error.value))[0])
    for inside in (100 * low, 0.95 * high):  # width 1 has no heads: just above the least, nothing fits
        assert plan(inside, kind="flops", compute=compute).train_flops == pytest.approx(inside, rel=0.03)
    for outside in (0.9 * low, 1.1 * high):
        with pytest.raises(DeepwideError, match="the budget must be between"):
            plan(outside, kind="flops", compute=compute)


JUNK = st.none() | st.booleans() | st.integers(-5, 10**10) | st.floats() | st.text(max_size=4)
INTEGERS = st.integers(-2, 10**4) | st.sampled_from([10**9, 10**10, 10**18])


@given(
    st.floats(2, 18).map(lambda power: 10**power) | st.sampled_from([0, -1, "x", "1.3B", 10**50]),
    st.sampled_from(["block", "total", "flops", "memory"]),
    st.dictionaries(
        st.sampled_from(["vocab", "context", "head_dim", "kv_heads", "width_multiple", "tensor_parallel"]), INTEGERS
    ),
    st.dictionaries(st.sampled_from(["pipeline_stages", "depth", "width", "tokens", "batch"]), INTEGERS, max_size=2),
    st.dictionaries(st.sampled_from(["ff_ratio", "tied", "family", "junk"]), JUNK, max_size=1),
)
@settings(max_examples=100)
def test_any_options_give_a_plan_or_a_sentence(
    budget: Any, kind: Any, style: dict[str, int], more: dict[str, int], junk: dict[str, Any]
) -> None:
    """Warnings are errors here, so this also says that nothing overflows."""
    try:
        best = plan(budget, kind=kind, **(style | more | junk))
    except DeepwideError as complaint:
        assert len(str(complaint)) < 500  # noqa: PT017 - either outcome is right
        assert "\n" not in str(complaint)  # noqa: PT017
        assert str(complaint).endswith((".", "?"))  # noqa: PT017
    else:
        assert isinstance(best.shape, Shape)
        assert 1 / 1.5 <= 1 + best.miss <= 1.5


@pytest.mark.parametrize(
    "options",
    [
        {"tensor_parallel": 8, "kv_heads": 8},
        {"pipeline_stages": 4, "family": "gpt2", "inference_precision": "int4"},
        {"tensor_parallel": 8, "pipeline_stages": 2, "kv_heads": 2, "data_parallel": 4, "zero": 1, "batch": 16},
        {"data_parallel": 8, "zero": 3, "experts": 16, "active": 2},
        {"machine": "tensor-8", "zero": 2, "data_parallel": 2},
    ],
)
def test_a_split_plan_has_the_memory_of_its_fullest_device_and_of_those_of_other_depths(
    options: dict[str, Any],
) -> None:
    best = plan("1.3B", **options)
    split = best.split
    assert split is not None
    ranks: dict[str, Any] = {
        "tensor_parallel": split.tensor_parallel, "pipeline_stages": split.pipeline_stages,
        "data_parallel": split.data_parallel, "zero": split.zero,
    }  # fmt: skip
    assert ranks["tensor_parallel"] == (8 if "machine" in options else options.get("tensor_parallel", 1))
    own = next(c.device for c in best.candidates if c.depth == best.shape.depth)
    counted = count(best.shape, **ranks).device
    assert own is not None
    assert counted is not None
    assert own.training_bytes == own.state_bytes + own.activation_bytes == counted.training
    batch = options.get("batch", 1)
    served = inference_memory(best.shape, precision=options.get("inference_precision", "bf16"), batch=batch)
    assert own.cache_bytes == batch * counted.cache
    devices = split.tensor_parallel * split.pipeline_stages
    s, t = best.shape, split.tensor_parallel
    per_layer = 2 * 2 * s.head_dim * max(1, s.kv_heads // t)  # a rank has at least one key/value head
    assert own.cache_bytes == batch * s.context * (s.depth // split.pipeline_stages) * per_layer
    weights = own.serving_bytes - own.cache_bytes
    assert served.weights / devices <= weights <= 1.6 * served.weights / devices  # ends and norms are not shared
    assert all(c.device is not None for c in best.candidates)
    assert best.rows()[0]["device_training_bytes"] == best.candidates[0].device.training_bytes  # type: ignore[union-attr]


def test_what_is_not_split_or_cannot_be_counted_so_has_no_memory_per_device() -> None:
    assert plan("1.3B").split is None
    assert plan("1.3B").candidates[0].device is None
    uneven = plan("1.3B", tensor_parallel=8, kv_heads=3)
    assert all(c.device is None for c in uneven.candidates)
    (note,) = [note for note in uneven.notes if note.code == "kv-heads-replicated"]
    assert "memory per device is not counted" in note.text
    for wrong in ({"zero": 4}, {"zero": True}, {"zero": "1"}, {"data_parallel": 0}):
        with pytest.raises(DeepwideError):
            plan("1.3B", **wrong)


SPLITS: list[dict[str, Any]] = [
    {},
    {"tensor_parallel": 8, "kv_heads": 8},
    {"tensor_parallel": 8, "pipeline_stages": 4, "kv_heads": 8, "context": "32Ki", "batch": 8},
    {"tensor_parallel": 16, "kv_heads": 8, "inference_precision": "fp8"},  # key/value heads on two ranks each
    {"pipeline_stages": 6, "vocab": 50257, "tied": True, "inference_precision": "int4"},
    {"tensor_parallel": 2, "experts": 8, "active": 2},
]


@pytest.mark.parametrize("more", SPLITS)
def test_the_fullest_device_holds_what_was_asked_for(more: dict[str, Any]) -> None:
    """Counted as `count` does; twice the memory would hold more."""
    for budget in (12_000_000_000, 80_000_000_000):
        best = plan(budget, kind="device", **more)
        ranks = {name: more.get(name, 1) for name in ("tensor_parallel", "pipeline_stages")}
        device = count(best.shape, **ranks).device if max(ranks.values()) > 1 else None
        params = best.params.total if device is None else max(device.stage_params)
        cache = inference_memory(best.shape).cache if device is None else device.cache
        taken = round(INFERENCE_BYTES[more.get("inference_precision", "bf16")] * params) + more.get("batch", 1) * cache
        assert best.reached == taken
        assert 0.95 * budget < taken <= budget
        assert f"per device at inference ({more.get('inference_precision', 'bf16')}" in best.budget_words
        text = next(note.text for note in best.notes if note.code == "memory-without-activations")
        assert "the memory is that of each device" in text
        assert plan(2 * budget, kind="device", **more).params.total > 1.5 * best.params.total


@given(
    st.integers(1, 12), st.integers(1, 12), st.sampled_from([(1, 1), (2, 1), (8, 1), (1, 4), (4, 2), (16, 3)]),
    st.sampled_from([None, 8]), st.sampled_from(["llama", "gpt2", "qwen3"]), st.booleans(),
)  # fmt: skip
def test_the_memory_of_a_device_is_the_same_for_one_shape_and_for_many(
    depth: int, units: int, ranks: tuple[int, int], kv_heads: int | None, family: str, tied: bool
) -> None:
    t, p = ranks
    style = Style(family=family, tied=tied, kv_heads=None if family == "gpt2" else kv_heads,
                  tensor_parallel=t, pipeline_stages=p)  # fmt: skip
    budget = Budget.of("80GB", "device", batch=3, context=2048).per_device(style)
    width = 64 * style.heads_share * units
    size = (depth * p, width, 64, int(style.usual_ff_width(width)))
    one, many = budget.measure(style.shape(*size)), budget.measure(style.grid(*(np.array([float(x)]) for x in size)))
    assert many.tolist() == [one]


def test_one_device_has_the_memory_of_all_devices_together() -> None:
    one, all_of_it = plan("24GB", kind="device", kv_heads=8), plan("24GB", kind="memory", kv_heads=8)
    assert one.shape == all_of_it.shape
    assert one.reached == all_of_it.reached


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kv_heads": 3, "tensor_parallel": 8}, "where 3 key/value heads neither divide over 8 tensor parallel ranks"),
        ({"budget": "1MB"}, "no shape of this style stays below the budget: allow more"),
        ({"budget": "80"}, "this was read as 80 bytes"),
        ({"context": "1M", "batch": 1024, "kv_heads": 8}, "the budget must be between"),
    ],
)
def test_a_device_that_is_too_small_or_cannot_be_counted_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        plan(more.pop("budget", "80GB"), kind="device", **more)


def test_a_limit_on_time_keeps_to_the_memory_of_a_device() -> None:
    best = plan("40GB", kind="device", machine="tensor-8", latency="8ms", kv_heads=8)
    assert best.reached <= best.budget
    assert "tensor 8 × pipeline 1" in best.budget_words
