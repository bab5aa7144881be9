"""Presets have a source, and the default one is what a plan always assumed."""

from typing import Any

import pytest

from deepwide import DeepwideError, Shape
from deepwide.planning.candidates import BANDWIDTH, LAYER_US
from deepwide.quantities import parse_bytes
from deepwide.timing import PRESETS, find_machine, with_rates

SHAPE = Shape(depth=24, width=2048, vocab=50304)


def test_captured_has_the_constants_that_a_plan_assumes() -> None:
    law = find_machine("captured").phases["decode"]
    assert law.per_layer.value == LAYER_US / 1e6
    assert law.per_byte.value == 1 / parse_bytes(BANDWIDTH)


def test_every_preset_has_a_source_and_a_place_in_the_order_that_its_source_gives() -> None:
    assert all(len(preset.source) > 20 for preset in PRESETS.values())
    layer = {name: preset.phases["decode"].per_layer.value for name, preset in PRESETS.items()}
    assert layer["captured"] < layer["tensor-8"] < layer["tensor-64"] < layer["eager"]


def test_eager_has_the_range_of_its_source() -> None:
    seconds = find_machine("eager").seconds("decode", SHAPE)
    assert seconds.low is not None
    assert seconds.high is not None
    assert seconds.high - seconds.low == pytest.approx(24 * (570e-6 - 340e-6))


def test_other_rates_make_another_machine() -> None:
    captured = find_machine("captured")
    assert with_rates(captured, 3.35e12, 1.6e-5) is captured
    other = with_rates(captured, 1e12, 2e-5)
    assert other.phases["decode"].coefficients[::2] == (1e-12, 2e-5)
    assert "1000 GB/s and 20 µs" in other.source
    assert (captured.memory_bytes, other.memory_bytes) == (80 * 10**9, None)  # nobody said whose rates these are


def test_presets_say_how_many_devices_share_a_layer() -> None:
    devices = {name: preset.devices for name, preset in PRESETS.items()}
    assert devices == {"captured": 1, "eager": 1, "tensor-8": 8, "tensor-64": 64}


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(DeepwideError, match="did you mean 'eager'"):
        find_machine("egaer")
    strange: tuple[Any, ...] = (8, {}, None)
    for wrong in strange:
        with pytest.raises(DeepwideError, match="a preset's name, a profile or its file"):
            find_machine(wrong)
    with pytest.raises(DeepwideError, match="There is no file"):
        find_machine("nowhere.json")
