"""Measuring gives a whole profile; how long things take is never asserted."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from deepwide import DeepwideError
from deepwide.timing import MachineProfile, Work, measure_machine
from deepwide.timing.measuring import CASES, fit_phase, read_rate

SHAPES = ((1, 64), (2, 32), (4, 16), (2, 64), (4, 32), (8, 16))


@pytest.fixture(scope="module")
def measured() -> tuple[MachineProfile, list[str]]:
    said: list[str] = []
    options: dict[str, Any] = {"device": "cpu", "threads": 1, "shapes": SHAPES}
    profile = measure_machine(seconds=1, progress=lambda words, _: said.append(words), **options)
    return profile, said


def test_every_shape_and_case_is_timed_and_predicted(measured: tuple[MachineProfile, list[str]]) -> None:
    profile, _ = measured
    assert len(profile.timings) == len(SHAPES) * len(CASES)
    assert {(t.depth, t.width) for t in profile.timings} == set(SHAPES)
    assert all(t.seconds > 0 and t.roofline > 0 and t.predicted >= 0 for t in profile.timings)
    assert profile.phases.keys() == {"train", "prefill", "decode"}
    for law in profile.phases.values():
        assert min(law.coefficients) >= 0 < max(law.coefficients)
        assert law.error is not None
        assert law.roofline_error is not None
    assert profile.rounds >= 3
    assert profile.devices == 1
    assert profile.memory_bytes is None or profile.memory_bytes > 2**26
    assert profile.threads == 1
    assert profile.peak_flops
    assert profile.bytes_per_second
    assert len(profile.rows()) == len(profile.timings)


def test_the_order_of_shapes_changes_from_round_to_round(measured: tuple[MachineProfile, list[str]]) -> None:
    said = measured[1]
    rounds = [said[at : at + len(SHAPES)] for at in range(0, 3 * len(SHAPES), len(SHAPES))]
    orders = [tuple(words.partition(", ")[2] for words in each) for each in rounds]
    assert all(len(set(order)) == len(SHAPES) for order in orders)
    assert len(set(orders)) > 1


def test_threads_are_given_back(measured: tuple[MachineProfile, list[str]]) -> None:
    before = torch.get_num_threads()
    assert measured[0].threads == 1
    assert torch.get_num_threads() == before


def test_a_phase_is_judged_on_shapes_left_out_and_beside_the_roofline() -> None:
    amounts = [Work(10**7 * (1 + i % 3), 10**8 * (1 + i % 2), 2 ** (i % 5)) for i in range(12)]
    exact = np.array([1e-10 * b + 1e-11 * f + 1e-3 * layers for b, f, layers in amounts])
    by_round = exact[:, None].repeat(3, axis=1)
    law, medians, predicted, roofline = fit_phase(amounts, by_round, list(range(12)), 1e11, 1e10)
    assert law.error == pytest.approx(0, abs=1e-6)
    assert law.per_layer.value == pytest.approx(1e-3)
    assert predicted == pytest.approx(medians)
    assert (roofline < medians).all()
    assert law.roofline_error is not None
    assert 0.1 < law.roofline_error < 1


def test_the_machine_reads_at_some_rate() -> None:
    assert 0 < read_rate(torch.device("cpu"), megabytes=1, seconds=0.01) < math.inf


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seconds": 0}, "seconds must be from 1"),
        ({"threads": 0}, "threads must be from 1"),
        ({"shapes": SHAPES[:5]}, "at least six shapes"),
        ({"device": "tpu"}, "no device 'tpu'"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        measure_machine(**wrong)
