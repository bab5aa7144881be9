"""The study of hops: its rules on made-up networks, a run so small that nothing is decided, and what was published."""

import json
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
from deepwide.studies.estimates import mean_interval
from deepwide.studies.hops import MARGIN, ORIGINAL, SLOPE
from studies.published import check_judged_by_the_rules_that_stand_here, published

ROOT = Path(__file__).parents[2]
LEVELS = (0.8, 0.9, 0.95, 0.99)
SMALL = (
    "depths=[2]", "seeds=[0, 1]", "length=10", "most=2", "width=8", "heads=2", "steps=8", "batch=4", "sequences=64",
)  # fmt: skip


def outcomes(
    breaks: dict[int, list[int]], *, most: int = 8, sequences: int = 1000, slope: Interval | None = None, **row: Any
) -> list[str]:
    """What the rules say of networks that break at these k, by depth and seed."""
    rows = [
        {"depth": depth, "seed": seed, "limit": 2 ** (depth - 1), "most": most, "break": at, "still_learning": False}
        | {"accuracy_at_limit": 1.0 if at > 2 ** (depth - 1) else 0.5}
        | row
        for depth, at_each in breaks.items()
        for seed, at in enumerate(at_each)
    ]
    numbers = {
        "seeds": Interval(len(next(iter(breaks.values())))),
        "sequences trained on": Interval(sequences),
        MARGIN: Interval(0.0),
        SLOPE: slope or Interval(1.0, 1.0, 1.0),
    }
    measured = Measured(numbers=numbers, tables={"runs": rows})
    return [rule.judge(measured).outcome for rule in find_study("hops").rules]


AS_PUBLISHED = {2: [2, 2, 2], 3: [4, 4, 4], 4: [8, 8, 8]}


def test_what_the_paper_says_is_reproduced() -> None:
    assert outcomes(AS_PUBLISHED) == [REPRODUCED] * 3
    assert outcomes(AS_PUBLISHED | {5: [9, 9, 9]}) == [REPRODUCED] * 3, "depth 5 breaks beyond what was asked for"
    assert outcomes(AS_PUBLISHED | {4: [8, 8, 5]}) == [REPRODUCED] * 3, "the median counts"


def test_too_few_seeds_or_depths_decide_nothing() -> None:
    assert outcomes({depth: at[:2] for depth, at in AS_PUBLISHED.items()}) == [NOT_DECIDABLE] * 3
    assert outcomes({2: [2, 2, 2], 3: [4, 4, 4]}) == [NOT_DECIDABLE] * 3
    assert outcomes(AS_PUBLISHED, slope=Interval(1.0))[2] == NOT_DECIDABLE
    assert outcomes(AS_PUBLISHED, most=6) == [NOT_DECIDABLE] * 2 + [NOT_DECIDABLE], "depth 4 breaks out of sight"


def test_what_a_short_training_did_not_learn_decides_nothing_and_what_a_long_one_did_not_does() -> None:
    early = AS_PUBLISHED | {4: [5, 5, 8]}
    low = Interval(0.6, 0.5, 0.7)
    assert outcomes(early, slope=low) == [NOT_DECIDABLE] * 3
    assert outcomes(early, slope=low, sequences=ORIGINAL) == [NOT_REPRODUCED, NOT_DECIDABLE, NOT_REPRODUCED]


def test_solving_more_than_the_paper_says_contradicts_it() -> None:
    late = AS_PUBLISHED | {3: [6, 6, 4]}
    assert outcomes(late) == [REPRODUCED, NOT_REPRODUCED, REPRODUCED]
    assert outcomes(late, accuracy_at_limit=0.92)[1] == NOT_DECIDABLE, "barely solved"
    assert outcomes(AS_PUBLISHED, slope=Interval(1.5, 1.4, 1.6)) == [REPRODUCED, REPRODUCED, NOT_REPRODUCED]
    assert outcomes(AS_PUBLISHED, slope=Interval(1.2, 1.0, 1.4))[2] == NOT_DECIDABLE


def test_a_network_that_is_still_learning_at_its_break_does_not_show_one() -> None:
    assert outcomes(AS_PUBLISHED, still_learning=True) == [REPRODUCED, NOT_DECIDABLE, REPRODUCED]


def test_a_tiny_run_measures_everything_and_decides_nothing(tmp_path: Path) -> None:
    result = run_study("hops", changes=SMALL, out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    tables = result.measured.tables
    assert [(row["depth"], row["hops"]) for row in tables["accuracy"]] == [(2, k) for k in range(3)]
    assert all(0 <= row["accuracy"] <= 1 for row in tables["accuracy"])
    assert [row["seed"] for row in tables["runs"]] == [0, 1]
    assert len(tables["attention"]) == 2 * 2 * 2 * 3, "seeds × layers × heads × hops"
    best = {(row["depth"], row["layer"], row["hops"]): row["attention"] for row in tables["heads"]}
    mine = [row for row in tables["attention"] if (row["depth"], row["layer"], row["hops"]) == (2, 2, 1)]
    by_seed = [max(row["attention"] for row in mine if row["seed"] == seed) for seed in (0, 1)]
    assert best[2, 2, 1] == pytest.approx(sum(by_seed) / 2)
    for picture in ("accuracy", "attention"):
        assert picture in result.figures
        assert "<svg" in (tmp_path / f"{picture}.svg").read_text()


@pytest.mark.parametrize("change", ["depths=[]", "seeds=[]", "most=0", "letters=1", "heads=3", "positions=here"])
def test_settings_that_measure_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("hops", changes=(*SMALL, change), out=tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_the_published_result_was_judged_by_the_rules_that_stand_here() -> None:
    check_judged_by_the_rules_that_stand_here("hops")
    result = published("hops")
    assert result.settings == find_study("hops").settings("cpu").model_dump(mode="json")
    for depth in result.settings["depths"]:
        breaks = [row["break"] for row in result.measured.tables["runs"] if row["depth"] == depth]
        assert result.measured.numbers[f"break at depth {depth}"] == mean_interval(breaks)


def test_the_page_on_studies_quotes_the_published_results() -> None:
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    accuracy = published("hops").measured.tables["accuracy"]
    for depth in dict.fromkeys(row["depth"] for row in accuracy):
        by_k = [row["accuracy"] for row in accuracy if row["depth"] == depth]
        shares = " | ".join(f"{share:.1%}" for share in by_k)
        breaks = [next((str(k) for k, share in enumerate(by_k) if share < least), "–") for least in LEVELS]
        assert f"| {depth} | {2 ** (depth - 1)} | {shares} | {' | '.join(breaks)} |" in page


def test_the_page_on_studies_quotes_what_was_measured_beside_the_authors_code() -> None:
    page = " ".join((ROOT / "docs" / "studies.md").read_text(encoding="utf-8").split())
    beside = json.loads((ROOT / "results" / "studies" / "hops-authors.json").read_text())
    original, small = beside["step"]["original"], beside["step"]["40 letters"]
    ours = beside["until_one_hop_is_solved"]["ours, as the study trains"]
    theirs = beside["until_one_hop_is_solved"]["theirs, our rate 3e-3"]
    together = json.loads((ROOT / "results" / "train" / "together.json").read_text())["cases"].values()
    ratios = [ratio for case in together for ratio in case["times_as_fast_as_apart"].values()]
    for words in (
        f"{beside['positions_compared']:,} positions",
        f"{beside['generator']['original']['theirs_over_ours']:.0f} times",
        f"{original['share_of_data']['ours']:.1%} and {small['share_of_data']['ours']:.1%} of a training step",
        f"{original['share_of_data']['theirs']:.0%} and {small['share_of_data']['theirs']:.0%}",
        f"{original['theirs_over_ours']:.1f} and {small['theirs_over_ours']:.1f} times",
        f"{ours['seconds']:.1f} s of processor time ({ours['steps']} steps)",
        f"{theirs['seconds']:.1f} s ({theirs['steps']} steps)",
        f"{min(ratios):.2f} to {max(ratios):.2f} times",
    ):
        assert words in page, words
