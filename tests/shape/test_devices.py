"""Memory per device: parameters against sharded modules on torch's meta device, the rest against the whole model's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide import DeepwideError, Shape
from deepwide.shape import Extra, device_memory, inference_memory, training_memory

torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
nn = torch.nn


def on_one_device(s: Shape, t: int, p: int, stage: int) -> int:
    """Parameters of real modules of one Megatron rank, built on the meta device, biases and norms included."""
    H, K, E, d, F = s.heads // t, max(1, s.kv_heads // t), s.head_dim, s.width, s.ff_width // t
    rows = -(-s.vocab // t)

    def norm(size: int) -> list[Any]:
        if s.norm == "none":
            return []
        return [nn.LayerNorm(size) if s.norm == "layernorm" else nn.RMSNorm(size)]

    modules: list[Any] = []
    with torch.device("meta"):
        for _ in range(s.depth // p):
            modules += [nn.Linear(d, H * E, s.qkv_bias), *(nn.Linear(d, K * E, s.qkv_bias) for _ in "kv")]
            modules += [nn.Linear(H * E, d, s.out_bias)]
            modules += [nn.Linear(d, F, s.ff_bias) for _ in range(2 if s.ff == "gated" else 1)]
            modules += [nn.Linear(F, d, s.ff_bias)]
            modules += [each for _ in range(s.block_norms) for each in norm(d)]
            if s.qk_norm == "head":
                modules += norm(E) + norm(E)
            if s.qk_norm == "full":
                modules += norm(H * E) + norm(K * E)
        if stage == 0:
            modules += [nn.Embedding(rows, d)]
            if s.positions == "learned":
                modules += [nn.Embedding(s.context, d)]
        if stage == p - 1:
            modules += norm(d) if s.final_norm else []
            if not s.tied or p > 1:
                modules += [nn.Linear(d, rows, bias=False)]
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_parameters_of_every_stage_are_those_of_its_modules(data: st.DataObject) -> None:
    flag, t, p = st.booleans(), data.draw(st.sampled_from([1, 2, 4])), data.draw(st.integers(1, 3))
    kv_heads = data.draw(st.sampled_from([1, 2, 4]))
    shape = Shape(
        depth=p * data.draw(st.integers(1, 3)),
        width=data.draw(st.integers(1, 20)),
        heads=4 * data.draw(st.sampled_from([1, 2])),
        kv_heads=kv_heads,
        head_dim=data.draw(st.integers(1, 5)),
        ff=data.draw(st.sampled_from(["plain", "gated"])),
        ff_width=4 * data.draw(st.integers(1, 9)),
        vocab=data.draw(st.integers(1, 50)),
        context=8,
        tied=data.draw(flag),
        positions=data.draw(st.sampled_from(["learned", "rotary"])),
        norm=data.draw(st.sampled_from(["layernorm", "rmsnorm", "none"])),
        block_norms=data.draw(st.integers(1, 4)),
        final_norm=data.draw(flag),
        qk_norm=data.draw(st.sampled_from(["none", "head", "full"])),
        qkv_bias=data.draw(flag),
        out_bias=data.draw(flag),
        ff_bias=data.draw(flag),
    )
    memory = device_memory(shape, tensor_parallel=t, pipeline_stages=p)
    assert memory.stage_params == tuple(on_one_device(shape, t, p, stage) for stage in range(p))


MIXTURE = {"experts": {"experts": 4, "active": 1, "width": 8}}
SHAPE = Shape(depth=8, width=256, heads=8, kv_heads=4, vocab=1000, context=128, tied=False, positions="rotary")


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("precision", ["mixed", "fp32"])
def test_one_device_needs_what_the_whole_model_needs(recompute: bool, precision: str) -> None:
    settings: dict[str, Any] = {"batch": 3, "precision": precision, "recompute": recompute}
    one, whole = device_memory(SHAPE, **settings), training_memory(SHAPE, **settings)
    for part in ("weights", "gradients", "optimiser", "activations", "logits"):
        assert getattr(one, part) == getattr(whole, part), part
    assert one.training == whole.total
    assert one.inference == inference_memory(SHAPE, batch=3).total


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_experts_are_shared_by_data_parallel_ranks_and_split_by_tensor_ranks(data: st.DataObject) -> None:
    pick, several = data.draw, st.sampled_from([1, 2, 4])
    t, p, e = pick(several), pick(st.sampled_from([1, 2])), pick(several)
    moe: dict[str, Any] = {"experts": 4 * pick(st.integers(1, 3)), "active": 2, "width": 4 * pick(st.integers(1, 5))}
    moe |= {"shared": pick(st.integers(0, 2)), "dense_layers": tuple(range(pick(st.integers(0, 4))))}
    shape = SHAPE.but(depth=4, ff="gated", ff_bias=False, experts=moe)
    memory = device_memory(shape, tensor_parallel=t, pipeline_stages=p, data_parallel=4, expert_parallel=e, zero=1)
    mixture = shape.experts
    assert mixture is not None
    dense = shape.but(experts=None)
    for stage in range(p):
        layers = range(stage * 4 // p, (stage + 1) * 4 // p)
        routed = [i for i in layers if i not in mixture.dense_layers]
        with torch.device("meta"):
            one = [nn.Linear(256, mixture.width // t, False) for _ in range(2)]
            one += [nn.Linear(mixture.width // t, 256, False)]
            router = nn.Linear(256, mixture.experts, False)
            inner = [nn.Linear(256, dense.ff_width // t, False) for _ in range(2)]
            inner += [nn.Linear(dense.ff_width // t, 256, False)]
        expert, feed_forward = (sum(m.weight.numel() for m in modules) for modules in (one, inner))
        each = (mixture.experts // e + mixture.shared) * expert + router.weight.numel() - feed_forward
        assert memory.stage_params[stage] == on_one_device(dense, t, p, stage) + len(routed) * each
    if t == p == 1:
        whole = training_memory(shape)
        assert memory.activations == whole.activations
        own = (4 - len(mixture.dense_layers)) * mixture.experts // e * expert
        assert memory.optimiser == 12 * (-(-(memory.stage_params[0] - own) // 4) + -(-own // (4 // e)))
        assert memory.weights == 2 * (whole.weights // 2 - own * (e - 1))


def test_windows_shorten_the_cache_of_the_stage_that_has_them() -> None:
    windowed = SHAPE.but(window=16, sliding_layers=tuple(range(6)))
    assert device_memory(windowed).inference == inference_memory(windowed).total
    assert device_memory(windowed, pipeline_stages=4).cache == device_memory(SHAPE, pipeline_stages=4).cache


def test_zero_splits_the_optimiser_then_gradients_then_weights() -> None:
    levels = [device_memory(SHAPE, data_parallel=8, zero=level) for level in range(4)]
    P = SHAPE.total_params
    share = -(-P // 8)
    assert [(m.weights, m.gradients, m.optimiser) for m in levels] == [
        (2 * P, 2 * P, 12 * P),
        (2 * P, 2 * P, 12 * share),
        (2 * P, 2 * share, 12 * share),
        (2 * share, 2 * share, 12 * share),
    ]
    assert len({m.activations for m in levels}) == 1


def test_tensor_parallel_ranks_share_activations_and_cache_and_pipelines_keep_batches_in_flight() -> None:
    one, four = device_memory(SHAPE), device_memory(SHAPE, tensor_parallel=4)
    assert four.activations * 4 == one.activations
    assert four.cache * 4 == one.cache
    assert device_memory(SHAPE, tensor_parallel=8).cache == four.cache  # four key/value heads on eight ranks
    whole_inputs = device_memory(SHAPE, tensor_parallel=4, sequence_parallel=False)
    assert four.activations < whole_inputs.activations < one.activations
    stages = device_memory(SHAPE, pipeline_stages=4)
    ends = one.activations - 8 * (layer := (one.activations - 2 * 2 * 128 * 256) // 8)
    assert ends == 2 * 2 * 128 * 256
    assert stages.stage == 0
    assert stages.activations == 4 * 2 * layer
    assert stages.cache * 4 == one.cache


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({}, {"pipeline_stages": 3}, "8 layers do not divide over 3"),
        ({}, {"tensor_parallel": 3}, "do not divide over 3 tensor"),
        ({}, {"zero": 4}, "zero must be 0, 1, 2 or 3"),
        ({}, {"data_parallel": 0}, "data_parallel must be at least 1"),
        ({}, {"expert_parallel": 2, "data_parallel": 2}, "expert_parallel is for models with experts"),
        (MIXTURE, {"expert_parallel": 3, "data_parallel": 3}, "expert_parallel 3 must divide the 4 experts"),
        (MIXTURE, {"expert_parallel": 2}, "and the 1 data parallel ranks"),
        (MIXTURE | {"heads": 32, "head_dim": 8}, {"tensor_parallel": 16}, "experts of width 8 do not divide over 16"),
        ({"extras": (Extra(name="gate", params=3),)}, {}, "whose layers are all alike"),
        ({"kind": "encoder"}, {}, "decoders with a head"),
    ],
)
def test_what_does_not_divide_is_refused(changes: dict[str, Any], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        device_memory(SHAPE.but(**changes), **options)
