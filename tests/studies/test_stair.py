"""The study of stairs: its rules on rows of the table, and a small run that proves what it says."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, read_result, run_study
from studies.published import check_said_on_the_page, published

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "studies" / "stair-cpu"


def row(k: int, direction: str) -> dict[str, Any]:
    depth = k if direction == "past" else k // 2 + 1
    return {
        "k": k, "direction": direction, "formula_depth": depth, "formula_is_exact": True, "shallower_refuted": True,
        "layers": depth, "words": 10, "disagreements": 0,
    }  # fmt: skip


def outcomes(most: int = 4, only: str = "past", **change: Any) -> list[str]:
    rows = [row(k, direction) for k in range(1, most + 1) for direction in ("past", "both")]
    rows = [each | (change if each["k"] == 2 and each["direction"] == only else {}) for each in rows]
    return [rule.judge(Measured(tables={"stairs": rows})).outcome for rule in find_study("stair").rules]


def test_the_rules_ask_for_the_depth_the_proof_and_the_agreement() -> None:
    assert outcomes() == [REPRODUCED] * 3
    assert outcomes(most=2) == [NOT_DECIDABLE] * 3
    assert outcomes(formula_is_exact=False) == [NOT_REPRODUCED, REPRODUCED, REPRODUCED]
    assert outcomes(formula_depth=1, layers=1) == [NOT_REPRODUCED, REPRODUCED, REPRODUCED]
    assert outcomes(shallower_refuted=False) == [NOT_DECIDABLE, REPRODUCED, REPRODUCED]
    assert outcomes(only="both", shallower_refuted=False) == [REPRODUCED, NOT_DECIDABLE, REPRODUCED]
    assert outcomes(disagreements=1) == [REPRODUCED, REPRODUCED, NOT_REPRODUCED]
    assert outcomes(layers=3) == [REPRODUCED, REPRODUCED, NOT_REPRODUCED]


def test_a_small_run_proves_its_claims(tmp_path: Path) -> None:
    result = run_study("stair", changes=("most=3", "word_length=4", "long_words=20"), out=tmp_path)
    assert [verdict.outcome for verdict in result.verdicts] == [REPRODUCED] * 3
    rows = {(each["k"], each["direction"]): each for each in result.measured.table("stairs")}
    assert rows[3, "past"]["formula_depth"] == 3
    assert rows[3, "both"]["formula"] == "P (a & c S< a & c U> a)"
    assert rows[3, "both"]["words"] == 3 + 9 + 27 + 81 + 20


def test_a_study_that_is_stopped_says_so(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="resumes"):
        run_study("stair", out=tmp_path, stop=lambda: True)


def test_the_published_result_was_judged_by_the_rules_that_stand_here() -> None:
    result = read_result(PUBLISHED)
    assert result.rule_hash == result.rule_hash_at_start == find_study("stair").rule_hash
    assert result.settings == find_study("stair").settings("cpu").model_dump(mode="json")
    assert [rule.judge(result.measured) for rule in find_study("stair").rules] == list(result.verdicts)


def test_the_page_on_studies_quotes_the_published_result() -> None:
    rows = published("stair").measured.table("stairs")
    by_stair = {(row["k"], row["direction"]): row for row in rows}
    most = max(row["k"] for row in rows)
    lines = [
        f"| {k} | {by_stair[k, 'past']['formula_depth']} | {by_stair[k, 'both']['formula_depth']} | "
        f"{by_stair[k, 'past']['inside']} from {by_stair[k, 'past']['outside']} |"
        for k in range(1, most + 1)
    ]
    check_said_on_the_page(*lines, f"k = 1 to {most}", f"{sum(row['words'] for row in rows):,} words")
