"""The study of rank collapse: its rules on made-up numbers, and a run so small that nothing is decided."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    find_study,
    run_study,
)

SMALL = (
    "networks=2", "tokens=5", "width=8", "heads=2", "depth=4", "attention_depth=6", "weights=[1.0]", "scales=[1.0]",
    "trained=0",
)  # fmt: skip
TRAINED = ("trained=2", "sort_steps=4", "fresh_steps=4", "sort_depth=2", "encoder_depth=3", "encoder_width=8",
           "encoder_steps=8", "repeats=2")  # fmt: skip
EXPONENT = "exponent p of r ← c·rᵖ"
GAIN = "log10 of the residual with MLPs over that without"
LAST = "last relative residual, "
DEEPEST = "relative residual of attention + skip after the deepest networks' last layer"
LAST_TRAINED = "last relative residual of trained encoders, "
GAIN_TRAINED = "log10 of the residual of trained encoders with MLPs over that without"
DROP = "accuracy of paths of length 1 less that of the longest, "


def outcomes(networks: int = 50, trained: int = 10, **changes: Interval) -> list[str]:
    """What the rules say of measurements that agree with the paper, but for some."""
    numbers = {
        "networks": Interval(networks),
        EXPONENT: changes.get("exponent", Interval(3.0, 2.99, 3.01)),
        f"{LAST}attention": changes.get("alone", Interval(1e-15, 1e-16, 1e-14)),
        DEEPEST: changes.get("skip", Interval(0.3, 0.2, 0.4)),
        GAIN: changes.get("gain", Interval(0.5, 0.1, 0.9)),
        "largest log10 of residual over bound": changes.get("excess", Interval(-3.0)),
        "trained encoders": Interval(trained),
        f"{LAST_TRAINED}attention": changes.get("trained_alone", Interval(1e-3, 1e-4, 5e-3)),
        f"{LAST_TRAINED}attention + skip": changes.get("trained_skip", Interval(0.3, 0.2, 0.4)),
        GAIN_TRAINED: changes.get("trained_gain", Interval(0.5, 0.1, 0.9)),
        "sorting networks, original recipe": Interval(trained),
        "sorting networks, fresh examples": Interval(trained),
        f"{DROP}original recipe": changes.get("original", Interval(0.3, 0.2, 0.4)),
        f"{DROP}fresh examples": changes.get("fresh", Interval(0.3, 0.2, 0.4)),
    }
    measured = Measured(numbers=numbers)
    return [rule.judge(measured).outcome for rule in find_study("rank-collapse").rules]


def test_what_the_paper_says_is_reproduced() -> None:
    assert outcomes() == [REPRODUCED] * 8


def test_a_few_networks_decide_nothing() -> None:
    assert outcomes(networks=9) == [NOT_DECIDABLE] * 4 + [REPRODUCED] * 4
    assert outcomes(trained=3) == [REPRODUCED] * 4 + [NOT_DECIDABLE] * 4
    none = Interval(3.0)
    assert outcomes(exponent=none, skip=none, gain=none) == [NOT_DECIDABLE] * 3 + [REPRODUCED] * 5
    assert outcomes(trained_skip=none, trained_gain=none, original=none, fresh=none) == (
        [REPRODUCED] * 4 + [NOT_DECIDABLE] * 4
    )
    assert outcomes(trained_alone=none)[4] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("exponent", "outcome"),
    [
        (Interval(3.118, 3.116, 3.121), NOT_REPRODUCED),
        (Interval(2.0, 1.9, 2.1), NOT_REPRODUCED),
        (Interval(3.0, 2.9, 3.1), NOT_DECIDABLE),
        (Interval(3.02, 3.01, 3.04), NOT_DECIDABLE),
    ],
)
def test_an_exponent_that_is_not_three_is_not_reproduced(exponent: Interval, outcome: str) -> None:
    assert outcomes(exponent=exponent) == [outcome, *[REPRODUCED] * 7]


@pytest.mark.parametrize(
    ("alone", "skip", "outcome"),
    [
        (Interval(1e-3, 1e-4, 1e-2), Interval(0.3, 0.2, 0.4), NOT_DECIDABLE),
        (Interval(1e-9, 1e-9, 1e-9), Interval(1e-7, 1e-8, 9e-7), NOT_REPRODUCED),
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.01, 0.005, 0.02), NOT_DECIDABLE),  # slowed
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.11, 0.09, 0.13), NOT_DECIDABLE),
    ],
)
def test_skips_prevent_only_what_happens_without_them(alone: Interval, skip: Interval, outcome: str) -> None:
    assert outcomes(alone=alone, skip=skip)[1] == outcome


def test_mlps_that_hasten_the_collapse_do_not_slow_it() -> None:
    assert outcomes(gain=Interval(-0.5, -0.9, -0.1))[2] == NOT_REPRODUCED
    assert outcomes(gain=Interval(0.1, -0.1, 0.3))[2] == NOT_DECIDABLE


def test_one_residual_above_the_bound_refutes_it() -> None:
    assert outcomes(excess=Interval(1e-9))[3] == NOT_REPRODUCED
    assert outcomes(excess=Interval(0.0))[3] == REPRODUCED


@pytest.mark.parametrize(
    ("alone", "skip", "outcome"),
    [
        (Interval(0.05, 0.02, 0.1), Interval(0.3, 0.2, 0.4), NOT_REPRODUCED),  # attention alone keeps its rank
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.01, 0.005, 0.02), NOT_REPRODUCED),
        (Interval(0.01, 0.005, 0.02), Interval(0.3, 0.2, 0.4), NOT_DECIDABLE),
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.11, 0.09, 0.13), NOT_DECIDABLE),
        (Interval(0.01, 0.005, 0.02), Interval(0.01, 0.005, 0.02), NOT_REPRODUCED),
    ],
)
def test_trained_networks_must_collapse_without_skips_and_not_with_them(
    alone: Interval, skip: Interval, outcome: str
) -> None:
    assert outcomes(trained_alone=alone, trained_skip=skip)[4] == outcome


@pytest.mark.parametrize(("place", "name"), [(5, "trained_gain"), (6, "original"), (7, "fresh")])
def test_what_goes_the_other_way_is_not_reproduced(place: int, name: str) -> None:
    worse: dict[str, Any] = {name: Interval(-0.3, -0.4, -0.2)}
    unclear: dict[str, Any] = {name: Interval(0.1, -0.2, 0.4)}
    assert outcomes(**worse)[place] == NOT_REPRODUCED
    assert outcomes(**unclear)[place] == NOT_DECIDABLE


def test_paths_that_lose_little_are_not_worse() -> None:
    assert outcomes(original=Interval(0.03, 0.02, 0.04))[6] == NOT_REPRODUCED


def test_a_small_run_trains_removes_parts_and_sums_paths(tmp_path: Path) -> None:
    result = run_study("rank-collapse", changes=(*SMALL, *TRAINED), out=tmp_path, processes=1)
    assert result.measured.number("trained encoders").value == 2
    trained, paths = result.measured.table("trained"), result.measured.table("paths")
    assert len(trained) == 4 * (3 + 1)
    assert len({row["relative_residual"] for row in trained if row["layer"] == 0}) == 1, "the same networks before"
    assert len({row["relative_residual"] for row in trained if row["layer"] == 3}) == 4, "parts were removed"
    assert [(row["recipe"], row["paths"], row["length"]) for row in paths] == [
        (recipe, number, length)
        for recipe in ("original recipe", "fresh examples")
        for number in (5, 20)
        for length in (0, 1, 2)
    ]
    assert all(0 <= row["accuracy"] <= 1 for row in paths)
    assert {"residual.svg", "trained.svg", "paths.svg"} <= {path.name for path in tmp_path.iterdir()}


def test_a_small_run_measures_every_condition_and_draws(tmp_path: Path) -> None:
    result = run_study("rank-collapse", changes=SMALL, out=tmp_path)
    assert [verdict.outcome for verdict in result.verdicts] == [NOT_DECIDABLE] * 8
    assert len(result.measured.table("conditions")) == 3 * 2 * 4
    assert len(result.measured.table("layers")) == 3 * 2 * 4 * 5
    growths = [row["growth_from_layer_before"] for row in result.measured.table("law")]
    assert growths[-1] == pytest.approx(3, abs=0.1)
    assert {note.code for note in result.measured.notes} == {"mlps", "mask", "scales", "bound"}
    assert len(result.measured.table("bound")) == 2 * 6
    assert all(row["largest_log10_ratio"] <= 0 for row in result.measured.table("bound"))
    assert "relative residual" in (tmp_path / "residual.svg").read_text()
    assert "residual" in result.figures
    assert run_study("rank-collapse", changes=SMALL, out=tmp_path / "again").measured.numbers == result.measured.numbers


@pytest.mark.parametrize("change", ["tokens=1", "attention_depth=4", "weights=[2.0]", "heads=3", "networks=0"])
def test_settings_that_measure_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("rank-collapse", changes=(*SMALL, change), out=tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_a_study_that_is_stopped_while_measuring_says_so(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="resumes"):
        run_study("rank-collapse", changes=SMALL, out=tmp_path, stop=lambda: True)
    assert not (tmp_path / "measured.json").exists()
