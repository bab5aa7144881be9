"""The refits of Gemstones: its rules on made-up numbers, and the public runs where they are at hand."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from studies.published import (
    check_judged_by_the_rules_that_stand_here,
    check_said_on_the_page,
    estimate,
    published,
)

STUDY = find_study("gemstones")


def outcomes(**changes: Any) -> list[str]:
    """What the rules say of numbers that agree with every claim, but for some."""
    share = changes.get("share", 1.0)
    numbers = {
        "share of classes whose best shape is nearest to the law": Interval(share),
        "best depth / the law's, 100B tokens": Interval(0.95, 0.8, 1.1),
        "objective of the printed surface / the one it states": Interval(changes.get("stated", 1.0)),
        "objective of the printed surface above the least, %": Interval(changes.get("above", 0.0)),
        "best depth at 2B, printed surface": Interval(47.0),
        "best depth at 2B, shapes resampled": changes.get("depth", Interval(45.0, 40.0, 60.0)),
    }
    ridges = [{"low": low, "high": high} for low, high in changes.get("minima", [(0.8, 1.1), (0.9, 1.3)])]
    best = [{"class": name, "same": True} for name in range(changes.get("classes", 5))]
    tables: dict[str, Any] = {"ridges": ridges, "best_shapes": best}
    return [rule.judge(Measured(numbers=numbers, tables=tables)).outcome for rule in STUDY.rules]


def test_what_agrees_with_every_claim_is_reproduced() -> None:
    assert outcomes() == [REPRODUCED] * 4


def test_the_best_shape_must_be_the_nearest_everywhere() -> None:
    assert outcomes(share=0.8)[0] == NOT_DECIDABLE
    assert outcomes(share=0.3)[0] == NOT_REPRODUCED
    assert outcomes(classes=4)[0] == NOT_DECIDABLE
    assert outcomes(classes=0)[0] == NOT_DECIDABLE


def test_a_minimum_that_depends_on_the_treatment_is_not_decided() -> None:
    assert outcomes(minima=[(0.6, 0.7), (0.8, 1.1)])[1] == NOT_DECIDABLE
    assert outcomes(minima=[(0.6, 0.7), (1.2, 1.4)])[1] == NOT_REPRODUCED
    assert outcomes(minima=[])[1] == NOT_DECIDABLE
    assert outcomes(minima=[(None, None)])[1] == NOT_DECIDABLE


def test_the_printed_surface_is_least_only_on_its_own_problem() -> None:
    assert outcomes(above=0.06)[2] == NOT_REPRODUCED
    assert outcomes(above=0.06, stated=1.5)[2] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("depth", "outcome"),
    [
        (Interval(45.0, 36.0, 137.0), NOT_DECIDABLE),
        (Interval(30.0, 25.0, 40.0), NOT_REPRODUCED),
        (Interval(45.0), NOT_DECIDABLE),
    ],
)
def test_a_depth_is_judged_by_an_interval_that_is_sharp(depth: Interval, outcome: str) -> None:
    assert outcomes(depth=depth)[3] == outcome


def test_without_the_runs_it_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match=r"nowhere has no wandb_dfs/.*: set data to the folder that holds"):
        run_study("gemstones", changes=("data=nowhere",), out=tmp_path)


def test_the_public_runs_say_again_what_was_published(shared_data: Path, tmp_path: Path) -> None:
    """With few resamples: everything but the intervals of the surface."""
    changes = (f"data={shared_data / 'gemstones'}", "resamples=0")
    result = run_study("gemstones", changes=changes, out=tmp_path)
    before = published("gemstones").measured
    for name, number in before.numbers.items():
        assert result.measured.number(name).value == pytest.approx(number.value, rel=1e-4, abs=1e-4), name
    for table in ("best_shapes", "sources"):
        assert result.measured.table(table) == before.table(table)
    points = {row["name"]: row for row in result.measured.table("points")}
    assert points["1280×36"]["class"] == "1B"
    assert points["768×3"]["percent"] > 2 > points["1280×36"]["percent"]
    for picture in ("bowl", "minima", "best_depth"):
        assert (tmp_path / f"{picture}.svg").exists()


def test_the_published_result_is_that_of_the_rules_here() -> None:
    check_judged_by_the_rules_that_stand_here("gemstones")
    assert published("gemstones").settings == STUDY.settings("cpu").model_dump(mode="json")


def test_the_page_on_studies_says_what_was_measured() -> None:
    measured = published("gemstones").measured
    minima = {
        fit: [row["minimum"] for row in measured.table("ridges") if row["fit"] == fit]
        for fit in ("no embedding term", "embedding term", "from 0.4B")
    }
    cost = measured.number("a factor 2 in depth costs, % of loss")
    depths = {row["source"]: row for row in measured.table("best_depth") if row["total_params"] == 2e9}
    rows, shapes = (depths[f"refit, {unit} resampled"] for unit in ("rows", "shapes"))
    check_said_on_the_page(
        *(f"{min(values):.2f} to {max(values):.2f}" for values in minima.values()),
        f"{cost.value:.2f}% of loss ({cost.low:.2f} to {cost.high:.2f})",
        f"{measured.number('objective of the printed surface above the least, %').value:.3f}% above the least",
        estimate(rows["depth"], rows["low"], rows["high"], ".1f"),
        estimate(shapes["depth"], shapes["low"], shapes["high"], ".3g"),
        ", ".join(dict.fromkeys(row["best"] for row in measured.table("best_shapes"))),
    )
