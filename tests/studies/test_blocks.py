"""The study of blocks: its rules on made-up shares, and a run of a few steps that decides nothing."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

SMALL = (
    "depths=[1,2]", "blocks=[3]", "seeds=[0,1]", "steps=4", "width=8", "batch=4", "shortest=6", "length=8",
    "longest=12", "words=16",
)  # fmt: skip


def outcomes(seeds: int = 3, **best: Any) -> list[str]:
    """What the rules say if depth d solves d + 2 blocks and no more, but for some cells: d1k4=0.99."""
    cells: list[dict[str, Any]] = []
    for depth in (1, 2, 3):
        for blocks in (3, 4, 5):
            share = best.get(f"d{depth}k{blocks}", 1.0 if blocks <= depth + 2 else 0.3)
            still = {"still_learning": best.get("still", False)}
            cells.append(
                still | {"depth": depth, "blocks": blocks, "best": share, "best_longer": best.get("longer", share)}
            )
    measured = Measured(numbers={"seeds": Interval(seeds)}, tables={"cells": cells})
    return [rule.judge(measured).outcome for rule in find_study("blocks").rules]


def test_what_the_paper_says_is_reproduced() -> None:
    assert outcomes() == [REPRODUCED] * 3
    assert outcomes(seeds=2) == [NOT_DECIDABLE] * 3


def test_a_deep_network_that_fails_counts_only_if_others_learn_the_same() -> None:
    assert outcomes(d2k4=0.5)[0] == NOT_REPRODUCED  # depth 3 learns it
    assert outcomes(d3k5=0.5)[0] == NOT_DECIDABLE  # nobody does: perhaps too little training


def test_a_shallow_network_that_succeeds_refutes_the_second_claim() -> None:
    assert outcomes(d1k4=0.97) == [REPRODUCED, NOT_REPRODUCED, REPRODUCED]
    assert outcomes(still=True) == [REPRODUCED, NOT_DECIDABLE, REPRODUCED], "it may learn later"
    assert outcomes(d1k4=0.97, still=True)[1] == NOT_REPRODUCED


def test_longer_words_are_judged_where_short_ones_are_solved() -> None:
    assert outcomes(longer=0.5) == [REPRODUCED, REPRODUCED, NOT_REPRODUCED]
    nothing: dict[str, Any] = {f"d{depth}k{blocks}": 0.1 for depth in (1, 2, 3) for blocks in (3, 4, 5)}
    assert outcomes(**nothing) == [NOT_DECIDABLE, REPRODUCED, NOT_DECIDABLE]


def test_a_small_run_tests_every_network_at_both_lengths(tmp_path: Path) -> None:
    result = run_study("blocks", changes=SMALL, out=tmp_path, processes=1)
    assert [verdict.outcome for verdict in result.verdicts] == [NOT_DECIDABLE] * 3
    networks = result.measured.table("networks")
    assert [(each["depth"], each["seed"]) for each in networks] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(0 <= each["right"] <= 1 and 0 <= each["longer"] <= 1 for each in networks)
    assert len(result.measured.table("cells")) == 2
    assert result.figures == ("accuracy",)
    assert "longer words" in (tmp_path / "accuracy.svg").read_text()


def test_words_too_short_for_their_blocks_cost_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="at least blocks"):
        run_study("blocks", changes=(*SMALL, "blocks=[9]"), out=tmp_path, processes=1)


def test_the_published_result_was_judged_by_the_rules_that_stand_here() -> None:
    check_judged_by_the_rules_that_stand_here("blocks")
    means = {(row["depth"], row["blocks"]): row for row in published("blocks").measured.table("cells")}
    check_said_on_the_page(
        *(
            f"| {depth} | "
            + " | ".join(f"{means[depth, k]['mean']:.1%}, {means[depth, k]['mean_longer']:.1%}" for k in (3, 4, 5, 6))
            for depth in (1, 2, 3)
        )
    )
