"""Measuring gives a whole profile; how long things take is never asserted."""

import json
import math
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from deepwide import DeepwideError
from deepwide.timing import MachineProfile, Work, measure_machine, measuring
from deepwide.timing.measuring import CASES, fit_phase, read_rate

SHAPES = ((1, 64), (2, 32), (4, 16), (2, 64), (4, 32), (8, 16))
TINY: dict[str, Any] = {"device": "cpu", "threads": 1, "shapes": SHAPES}
Measured = tuple[MachineProfile, list[tuple[str, float, float]]]


@pytest.fixture(scope="module")
def measured() -> Measured:
    said: list[tuple[str, float, float]] = []
    with mock.patch.object(measuring, "MOST_ROUNDS", 3):
        profile = measure_machine(progress=lambda *words: said.append(words), **TINY)
    return profile, said


def test_every_shape_and_case_is_timed_and_predicted(measured: Measured) -> None:
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


def test_the_order_of_shapes_changes_from_round_to_round(measured: Measured) -> None:
    said = [words for words, _, _ in measured[1] if words.startswith("round ")]
    rounds = [said[at : at + len(SHAPES)] for at in range(0, 3 * len(SHAPES), len(SHAPES))]
    orders = [tuple(words.partition(", ")[2] for words in each) for each in rounds]
    assert all(len(set(order)) == len(SHAPES) for order in orders)
    assert len(set(orders)) > 1


def test_threads_are_given_back(measured: Measured) -> None:
    before = torch.get_num_threads()
    assert measured[0].threads == 1
    assert torch.get_num_threads() == before


def test_the_whole_time_is_said_first_and_what_is_left_at_every_shape(measured: Measured) -> None:
    (trial, *_), (first, done, left), *shapes = measured[1]
    assert trial == "a short trial, to say how long it will take"
    assert " rounds of about " in first
    assert done == 0
    assert left > 0
    assert all(0 <= share <= 1 and left >= 0 for _, share, left in shapes)
    assert shapes[-1][1] > 0.5


def test_a_time_that_is_too_short_is_refused_before_anything_is_measured() -> None:
    said: list[Any] = []
    slow = tuple((depth, 512) for depth in range(1, 7))
    with pytest.raises(DeepwideError, match=r"3 rounds, the fewest that will do, take about .* instead of 1,"):
        measure_machine(seconds=1, device="cpu", threads=1, shapes=slow, progress=lambda *words: said.append(words))
    assert [words for words, *_ in said] == ["a short trial, to say how long it will take"]


def test_an_interrupted_measurement_continues_with_its_rounds(tmp_path: Path) -> None:
    path = tmp_path / "rounds"

    def interrupt(words: str, share: float, left: float) -> None:
        if words.startswith("round 3"):
            raise KeyboardInterrupt
        assert 0 <= share < 1
        assert not left < 0

    with pytest.raises(KeyboardInterrupt):
        measure_machine(keep=path, progress=interrupt, **TINY)
    kept = json.loads(path.read_text())
    assert len(kept["seconds"]) == 2
    said: list[str] = []
    with mock.patch.object(measuring, "MOST_ROUNDS", 3):
        profile = measure_machine(keep=path, progress=lambda words, *_: said.append(words), **TINY)
    assert said[0] == "continuing after round 2"
    assert not [words for words in said if words.startswith(("round 1,", "round 2,"))]
    after = json.loads(path.read_text())
    assert after["seconds"][:2] == kept["seconds"]
    assert profile.rounds == len(after["seconds"]) >= 3
    for timing in profile.timings:
        case = [c[:3] for c in CASES].index((timing.phase, timing.batch, timing.tokens))
        row = SHAPES.index((timing.depth, timing.width))
        assert timing.seconds == pytest.approx(np.median([each[row][case] for each in after["seconds"]]))


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
