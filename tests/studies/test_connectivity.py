"""The study of connectivity: its rules on made-up networks, a tiny run that decides nothing, and what was published."""

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
from deepwide.studies.connectivity import BEND, WIDER, ConnectivitySettings, _bend, _growth, _least_depths
from deepwide.studies.estimates import mean_interval
from studies.published import check_judged_by_the_rules_that_stand_here, published

ROOT = Path(__file__).parents[2]
SMALL = (
    "depths=[1, 2]", "widths=[8, 16]", "seeds=[0]", "heads=2", "vertices=6", "largest=2", "steps=8", "batch=4",
    "sequences=64",
)  # fmt: skip


def outcomes(
    bend: Interval | None, wider: Interval, *, seeds: int = 3, widths: tuple[int, ...] = (16, 64), **row: Any
) -> Any:
    """What the rules say of such numbers."""
    rows = [{"width": width, "reach": 2, "largest": 8, "still_learning": False} | row for width in widths]
    numbers = {"seeds": Interval(seeds), WIDER: wider} | ({BEND: bend} if bend else {})
    measured = Measured(numbers=numbers, tables={"runs": rows})
    return [rule.judge(measured).outcome for rule in find_study("connectivity").rules]


ABOVE, BELOW, ACROSS, ALONE = Interval(1, 0.5, 1.5), Interval(-1, -1.5, -0.5), Interval(0, -1, 1), Interval(1.0)


def test_each_layer_that_adds_more_than_the_last_and_width_that_helps_are_reproduced() -> None:
    assert outcomes(ABOVE, ABOVE) == [REPRODUCED, REPRODUCED]


def test_equal_or_smaller_gains_contradict_unless_networks_were_learning_or_at_the_ceiling() -> None:
    assert outcomes(BELOW, BELOW) == [NOT_REPRODUCED, NOT_REPRODUCED]
    assert outcomes(Interval(0, 0, 0), ABOVE)[0] == NOT_REPRODUCED
    assert outcomes(BELOW, ABOVE, still_learning=True)[0] == NOT_DECIDABLE
    assert outcomes(BELOW, ABOVE, reach=8)[0] == NOT_DECIDABLE
    assert outcomes(ABOVE, ABOVE, reach=8)[0] == REPRODUCED
    assert outcomes(ABOVE, ABOVE, still_learning=True)[0] == NOT_DECIDABLE, "the middle depth may only lag behind"


def test_narrow_networks_that_still_learn_may_catch_up() -> None:
    assert outcomes(ABOVE, ABOVE, still_learning=True)[1] == NOT_DECIDABLE
    assert outcomes(ABOVE, BELOW, still_learning=True)[1] == NOT_REPRODUCED


def test_what_is_uncertain_decides_nothing() -> None:
    assert outcomes(ACROSS, ACROSS) == [NOT_DECIDABLE, NOT_DECIDABLE]
    assert outcomes(ALONE, ALONE) == [NOT_DECIDABLE, NOT_DECIDABLE]
    assert outcomes(None, ABOVE) == [NOT_DECIDABLE, REPRODUCED]
    assert outcomes(ABOVE, ABOVE, seeds=2) == [NOT_DECIDABLE, NOT_DECIDABLE]
    assert outcomes(ABOVE, ABOVE, widths=(64,)) == [REPRODUCED, NOT_DECIDABLE]


@pytest.mark.parametrize(
    ("reach", "bend"),
    [
        ([1, 2, 4, 8, 8], 1.5),  # 1 and 2; what comes after the ceiling does not count
        ([1, 2, 3, 4], 0.0),
        ([1, 4, 6, 7], -1.0),
        ([1, 8, 8], None),
        ([1, 2], None),
    ],
)
def test_the_bend_is_the_mean_second_difference_up_to_the_ceiling(reach: list[int], bend: float | None) -> None:
    assert _bend(reach, ConnectivitySettings(largest=8, vertices=18)) == bend


def test_least_depths_and_their_growth() -> None:
    settings = ConnectivitySettings(depths=(1, 2, 3), widths=(16,), seeds=(0, 1, 2), largest=5, vertices=12)
    reach = {(16, depth, seed): 2 ** (depth - 1) for depth in (1, 2, 3) for seed in (0, 1, 2)} | {(16, 3, 0): 1}
    rows = _least_depths(reach, settings)
    assert [row["least_depth"] for row in rows] == [1, 2, 3, 3, None]
    assert [row["seeds_depth_3"] for row in rows] == [3, 2, 2, 2, 0]
    assert _growth({(16, depth, 0): 2 ** (depth - 1) for depth in (1, 2)}, 16, 0, (1, 2)) == pytest.approx(1)
    assert _growth(reach, 16, 0, (1,)) is None


def test_a_tiny_run_measures_everything_and_decides_nothing(tmp_path: Path) -> None:
    result = run_study("connectivity", changes=SMALL, out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    tables = result.measured.tables
    shapes = [(width, depth) for width in (8, 16) for depth in (1, 2)]
    assert [(row["width"], row["depth"], row["diameter"]) for row in tables["accuracy"]] == [
        (*shape, d) for shape in shapes for d in (1, 2)
    ]
    assert all(0 <= row["accuracy"] <= 1 for row in tables["accuracy"])
    assert [(row["width"], row["depth"], row["seed"]) for row in tables["runs"]] == [(*shape, 0) for shape in shapes]
    assert len(tables["least_depth"]) == 4
    assert result.figures == ("accuracy",)
    assert "width 16" in (tmp_path / "accuracy.svg").read_text()


@pytest.mark.parametrize("change", ["depths=[]", "widths=[]", "seeds=[]", "vertices=5", "largest=9", "heads=3"])
def test_settings_that_measure_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("connectivity", changes=(*SMALL, change), out=tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


@pytest.mark.parametrize("run", ["cpu", "far"])
def test_the_published_result_was_judged_by_the_rules_that_stand_here(run: str) -> None:
    check_judged_by_the_rules_that_stand_here("connectivity", run)
    result = published("connectivity", run)
    if run == "cpu":
        assert result.settings == find_study("connectivity").settings("cpu").model_dump(mode="json")
    for width in result.settings["widths"]:
        for depth in result.settings["depths"]:
            rows = [row for row in result.measured.tables["runs"] if (row["width"], row["depth"]) == (width, depth)]
            expected = mean_interval([row["reach"] for row in rows])
            assert result.measured.numbers[f"reach at width {width}, depth {depth}"] == expected


@pytest.mark.parametrize("run", ["cpu", "far"])
def test_the_page_on_studies_quotes_the_published_result(run: str) -> None:
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    tables = published("connectivity", run).measured.tables
    for width, depth in dict.fromkeys((row["width"], row["depth"]) for row in tables["accuracy"]):
        shares, reaches = (
            [row[name] for row in tables[table] if (row["width"], row["depth"]) == (width, depth)]
            for table, name in (("accuracy", "accuracy"), ("runs", "reach"))
        )
        row = " | ".join(f"{share:.1%}" for share in shares)
        shape = f"{width} | {depth}" if run == "cpu" else str(depth)  # the farther run has one width
        assert f"| {shape} | {row} | {', '.join(map(str, reaches))} |" in page
