"""The study of depth against width: its rules on made-up crossings, simulated tables, and a run of tiny networks."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepwide
from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.quantities import show_count
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    StudyResult,
    Workplace,
    dry_run,
    find_study,
    run_study,
)
from studies.published import (
    ROOT,
    check_judged_by_the_rules_that_stand_here,
    check_said_on_the_page,
    estimate,
    published,
)

STUDY = find_study("depth-width")
SLOPE, EXPONENT = "slope b of ln width = a + b·depth", "exponent of the best depth in the size"


def crossing(pair: str, size: float | None, low: float | None, high: float | None, **changes: Any) -> dict[str, Any]:
    """A row of the table of crossings, of neighbours with sizes enough."""
    shallow, deep = map(int, pair.split("/"))
    row = {"pair": pair, "shallow": shallow, "deep": deep, "neighbours": True, "fewest_sizes": 9, "size": size}
    row |= {"low": low, "high": high, "line_size": size, "regimes": "undecided"}
    return row | {"status": "none" if size is None else "bracketed"} | changes


def outcomes(*crossings: dict[str, Any], **numbers: Interval) -> dict[str, str]:
    """What the rules say, by the key of the claim."""
    measured = Measured(
        numbers={{"slope": SLOPE, "exponent": EXPONENT}[name]: value for name, value in numbers.items()},
        tables={"crossings": list(crossings)},
    )
    return {rule.claim.key: rule.judge(measured).outcome for rule in STUDY.rules}


TWO, FOUR, EIGHT = crossing("2/4", 5e4, 3e4, 8e4), crossing("4/8", 2e5, 1e5, 4e5), crossing("8/16", 9e5, 5e5, 2e6)


def test_what_the_paper_says_is_reproduced() -> None:
    seen = TWO | {"regimes": "seen"}
    got = outcomes(seen, FOUR, EIGHT, slope=Interval(0.2, 0.1, 0.3), exponent=Interval(0.4, 0.3, 0.5))
    assert set(got.values()) == {REPRODUCED}


def test_nothing_measured_decides_nothing() -> None:
    assert set(outcomes().values()) == {NOT_DECIDABLE}


def test_regimes_are_judged_by_neighbours_with_sizes_enough() -> None:
    for change in ({"neighbours": False}, {"fewest_sizes": 4}):
        assert outcomes(TWO | {"regimes": "seen"} | change)["regimes"] == NOT_DECIDABLE
    against = {"regimes": "not seen"}
    assert outcomes(TWO | against, FOUR | against)["regimes"] == NOT_REPRODUCED
    assert outcomes(TWO | against, FOUR)["regimes"] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        (FOUR, REPRODUCED),
        (crossing("4/8", 2e5, 7e4, 4e5), NOT_DECIDABLE),  # overlaps
        (crossing("4/8", 2e5, 1e5, None), NOT_DECIDABLE),  # no upper limit
        (crossing("4/8", None, None, None), NOT_DECIDABLE),
        (crossing("4/8", 2e5, 1e5, 4e5, status="extrapolated"), NOT_DECIDABLE),
        (crossing("4/8", 1e4, 8e3, 2e4), NOT_REPRODUCED),  # the other way round
        (EIGHT, NOT_DECIDABLE),  # no neighbour of 2/4
    ],
)
def test_crossings_grow_if_their_limits_do_not_overlap(second: dict[str, Any], outcome: str) -> None:
    assert outcomes(TWO, second)["crossing-grows"] == outcome


def test_crossings_that_rise_and_fall_decide_nothing() -> None:
    assert outcomes(TWO, FOUR, crossing("8/16", 4e4, 3e4, 9e4))["crossing-grows"] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("third", "slope", "outcome"),
    [
        (EIGHT, Interval(0.2, -0.1, 0.5), NOT_DECIDABLE),
        (EIGHT, Interval(-0.2, -0.4, -0.1), NOT_REPRODUCED),
        (EIGHT, Interval(0.2), NOT_DECIDABLE),
        (EIGHT | {"line_size": 5e6}, Interval(0.2, 0.1, 0.3), NOT_REPRODUCED),
        (EIGHT | {"line_size": 3e6}, Interval(0.2, 0.1, 0.3), REPRODUCED),  # its depth is known to a factor only
        (EIGHT | {"high": None}, Interval(0.2, 0.1, 0.3), NOT_DECIDABLE),  # two crossings are on any line
    ],
)
def test_a_line_needs_three_crossings_and_passes_through_them(
    third: dict[str, Any], slope: Interval, outcome: str
) -> None:
    assert outcomes(TWO, FOUR, third, slope=slope)["exponential"] == outcome


def test_the_best_depth_grows_if_its_exponent_is_surely_above_zero() -> None:
    assert outcomes(exponent=Interval(0.3, -0.1, 0.7))["best-depth"] == NOT_DECIDABLE
    assert outcomes(exponent=Interval(-0.3, -0.5, -0.1))["best-depth"] == NOT_REPRODUCED


def crossing_size(shallow: int, deep: int, a: float, b: float) -> float:
    """Where the law puts the crossing: 12·L·d² at the depth halfway."""
    depth = math.sqrt(shallow * deep)
    return 12 * depth * math.exp(2 * (a + b * depth))


def write_table(path: Path, a: float = 3.2, b: float = 0.25, tokens: int = 1000) -> str:
    """A table of runs whose curves are parabolas, and neighbours cross on ln width = a + b·depth."""
    random = np.random.default_rng(0)
    lines = ["depth,width,block_params,tokens,loss"]
    for depth in (1, 2, 4, 8):
        for size in np.geomspace(6e3, 3e6, 9):
            x = math.log(size)
            gains = [x - math.log(crossing_size(d, 2 * d, a, b)) for d in (1, 2, 4) if d < depth]
            loss = math.exp(3 - 0.3 * x + 0.01 * x**2 - 0.015 * sum(gains) + random.normal(0, 0.002))
            lines.append(f"{depth},{math.sqrt(size / (12 * depth))},{size},{tokens},{loss}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def judged(tmp_path: Path, *changes: str) -> StudyResult:
    return run_study("depth-width", changes=("shapes=[]", "resamples=100", *changes), out=tmp_path / "out")


def test_a_world_with_the_law_is_recognised_from_tables_alone(tmp_path: Path) -> None:
    table, other = write_table(tmp_path / "runs.csv"), write_table(tmp_path / "other.csv", a=3.6)
    result = judged(tmp_path, f"earlier=['{table}']", f"beside={{other=['{other}']}}")
    by_claim = dict(zip([claim.key for claim in STUDY.claims], result.verdicts, strict=True))
    assert {key: verdict.outcome for key, verdict in by_claim.items()} == dict.fromkeys(by_claim, REPRODUCED)
    neighbours = [row for row in result.measured.table("crossings") if row["neighbours"]]
    assert [row["pair"] for row in neighbours] == ["1/2", "2/4", "4/8"]
    for row in neighbours:
        truth = crossing_size(row["shallow"], row["deep"], 3.2, 0.25)
        assert row["low"] < row["size"] < row["high"]
        assert row["size"] == pytest.approx(truth, rel=0.3)
    assert {row["set"] for row in result.measured.table("compared")} == {"all", "other"}
    assert [row["file"] for row in result.measured.table("sources")] == ["runs.csv", "other.csv"]
    assert len(result.measured.table("runs")) == 4 * 9
    for picture in ("curves", "crossings"):
        assert "block parameters" in (tmp_path / f"out/{picture}.svg").read_text()


@pytest.mark.parametrize("change", ["earlier=[]", "earlier=['no.csv']", "beside={reviews=['no.csv']}"])
def test_tables_that_are_not_there_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        judged(tmp_path, change)
    assert "\n" not in str(caught.value)


def test_runs_of_several_lengths_are_not_compared(tmp_path: Path) -> None:
    tables = [write_table(tmp_path / f"{tokens}.csv", tokens=tokens) for tokens in (1000, 4000)]
    with pytest.raises(DeepwideError, match="1000 to 4000 tokens"):
        judged(tmp_path, f"earlier={tables}")


def test_tiny_networks_are_trained_and_judged(tmp_path: Path) -> None:
    shapes = "shapes=[{params=['2k', '4k', '8k', '16k'], depths=[1, 2, 3]}]"
    small = ("tokens=2k", "context=32", "evaluation_sequences=8", "resamples=50", "tolerance=0.6")
    result = run_study("depth-width", changes=(shapes, *small), out=tmp_path, processes=1)
    assert result.measured.number("runs").value == 12
    assert [row["depth"] for row in result.measured.table("noise")] == [1, 2, 3]
    assert [row["pair"] for row in result.measured.table("crossings") if row["neighbours"]] == ["1/2", "2/3"]
    assert "The best depth grows" in result.verdicts[-1].claim


def test_the_original_s_size_is_stated_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    forecast = dry_run("depth-width", "paper")
    assert forecast.runs > 100
    assert forecast.train_flops > 1e21


def test_the_published_result_is_that_of_the_rules_and_tables_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of the earlier runs alone is what their tables in the repository say when measured again."""
    check_judged_by_the_rules_that_stand_here("depth-width")
    monkeypatch.chdir(ROOT)
    before = published("depth-width")
    assert before.settings == STUDY.settings("cpu").model_dump(mode="json")
    earlier = STUDY.settings("cpu", ("shapes=[]",)).model_copy(update={"resamples": 0})
    again = STUDY.measure(earlier, Workplace()).table("compared")
    rows = [row for row in before.measured.table("compared") if row["set"] == "earlier runs alone"]
    assert rows
    alone = [row | {"set": "earlier runs alone"} for row in again if row["set"] == "all"]
    for row, published_row in zip(alone, rows, strict=True):
        assert row == pytest.approx(published_row)


def test_the_published_crossings_are_those_of_the_published_runs(tmp_path: Path) -> None:
    before = published("depth-width").measured
    for row in before.table("sources"):
        content = (ROOT / "results" / "fit" / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
    table = tmp_path / "runs.json"
    table.write_text(json.dumps([{**row, "block_params": row["size"]} for row in before.table("runs")]))
    pairs = [(row["shallow"], row["deep"]) for row in before.table("crossings") if not row["neighbours"]]
    again = deepwide.fit(table, "transition", noise="depth", pairs=pairs, bootstrap=0).rows("crossings")
    limits = {(row["shallow"], row["deep"]): (row["size"], row["low"], row["high"]) for row in again}
    for row in before.table("crossings"):
        for value, name in zip(limits[row["shallow"], row["deep"]], ("size", "low", "high"), strict=True):
            assert (None if value is None else round(value)) == row[name], (row["pair"], name)


def test_the_page_on_studies_says_what_was_measured() -> None:
    measured = published("depth-width").measured
    growth = {row["set"]: row for row in measured.table("best_depth") if row["noise"] == "by depth"}
    check_said_on_the_page(
        *(estimate(row["exponent"], row["low"], row["high"], ".2f") for row in growth.values()),
        "{:.1f}% of loss ({:.1f} to {:.1f})".format(
            *(growth["all"][name] for name in ("factor_2_costs_percent", "costs_at_least", "costs_at_most"))
        ),
    )
    crossings = {row["pair"]: row for row in measured.table("crossings")}
    size, low, high = (show_count(crossings["2/4"][name]) for name in ("size", "low", "high"))
    check_said_on_the_page(f"{size} ({low} to {high})")
    size, low = (show_count(crossings["4/8"][name]) for name in ("size", "low"))
    assert crossings["4/8"]["high"] is None
    until, since = (show_count(crossings["2/8"][name]) for name in ("shallow_wins_up_to", "deep_wins_from"))
    check_said_on_the_page(
        f"{size} ({low} to no limit)",
        f"up to {until}, the deeper from {since} on",
    )
    noise = {row["depth"]: row["noise_percent"] for row in measured.table("noise")}
    others = [percent for depth, percent in noise.items() if depth > 1]
    check_said_on_the_page(f"{noise[1]:.1f}% of loss about its curve, against {min(others):.1f} to {max(others):.1f}%")
