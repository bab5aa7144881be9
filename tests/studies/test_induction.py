"""The study of induction heads: its rules on made-up numbers, and a run so small that nothing is learned."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    Workplace,
    dry_run,
    find_study,
    read_result,
    run_study,
    show_interval,
)
from deepwide.studies import induction as study

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "studies" / "induction-cpu"

TINY = (
    "seeds=2", "depths=[1,2]", "width=16", "heads=2", "length=12", "symbols=16", "shortest=2", "longest=5", "steps=12",
    "warmup=2", "batch=4", "snapshots=3", "examples=16", "blocks=4",
)  # fmt: skip
DELAY = "delay of copy accuracy behind the induction score, over the steps before"
RISE = "steps in which copy accuracy rises, over the steps before"
COPYING = "copying score of the induction head"


def outcomes(seeds: int = 8, copying: int = 8, /, **changes: Interval) -> list[str]:
    """What the rules say of measurements that agree with the papers, but for some."""
    numbers = {
        "networks per depth": Interval(seeds),
        "networks of 2 layers that copy": Interval(copying),
        "copy accuracy of 2 layers less that of 1": Interval(0.87, 0.8, 0.9),
        study.ACCURACY + study.ONE: changes.get("one", Interval(0.12, 0.1, 0.14)),
        study.ACCURACY + study.WIDE: changes.get("wide", Interval(0.12, 0.1, 0.14)),
        study.ACCURACY + study.LONG: changes.get("long", Interval(0.12, 0.1, 0.14)),
        study.ACCURACY + study.SLOW: changes.get("slow", Interval(0.12, 0.1, 0.14)),
        study.ACCURACY + study.TWO: changes.get("two", Interval(0.99, 0.98, 1.0)),
        study.CHANCE: Interval(0.014),
    }
    if copying:
        numbers |= {
            "K" + study.EXCESS: changes.get("excess", Interval(0.1, 0.08, 0.12)),
            COPYING: changes.get("score", Interval(0.98, 0.97, 0.99)),
            RISE: changes.get("rise", Interval(0.1, 0.08, 0.12)),
            DELAY: changes.get("delay", Interval(0.01, -0.02, 0.03)),
        }
    return [rule.judge(Measured(numbers=numbers)).outcome for rule in find_study("induction").rules]


def test_what_the_papers_say_is_reproduced() -> None:
    assert outcomes() == [REPRODUCED] * 4


def test_a_few_networks_decide_nothing() -> None:
    assert outcomes(4, 4) == [NOT_DECIDABLE] * 4
    none = Interval(0.9)
    assert outcomes(two=none, excess=none, score=none, rise=none) == [NOT_DECIDABLE] * 4
    assert outcomes(wide=none, delay=none) == [NOT_DECIDABLE, REPRODUCED, REPRODUCED, NOT_DECIDABLE]


def test_without_networks_that_copy_there_are_no_heads_to_judge() -> None:
    two = Interval(0.12, 0.1, 0.14)
    assert outcomes(8, 0, two=two) == [NOT_REPRODUCED, *[NOT_DECIDABLE] * 3]
    assert outcomes(8, 4) == [REPRODUCED, *[NOT_DECIDABLE] * 3]


@pytest.mark.parametrize("which", ["one", "wide", "long", "slow"])
@pytest.mark.parametrize(
    ("accuracy", "outcome"),
    [(Interval(0.9, 0.8, 1.0), NOT_REPRODUCED), (Interval(0.3, 0.2, 0.4), NOT_DECIDABLE)],
)
def test_one_layer_that_copies_contradicts_the_claim_however_it_is_trained(
    which: str, accuracy: Interval, outcome: str
) -> None:
    assert outcomes(**{which: accuracy})[0] == outcome


def test_two_layers_must_copy_in_most_networks() -> None:
    assert outcomes(two=Interval(0.4, 0.35, 0.45))[0] == NOT_REPRODUCED
    assert outcomes(two=Interval(0.7, 0.4, 1.0))[0] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("excess", "outcome"),
    [
        (Interval(0.0, -0.01, 0.01), NOT_REPRODUCED),
        (Interval(0.02, 0.01, 0.03), NOT_DECIDABLE),
        (Interval(0.02, 0.015, 0.03), REPRODUCED),
    ],
)
def test_composition_must_exceed_what_chance_gives(excess: Interval, outcome: str) -> None:
    assert outcomes(excess=excess) == [REPRODUCED, outcome, REPRODUCED, REPRODUCED]


def test_eigenvalues_must_be_mostly_positive() -> None:
    assert outcomes(score=Interval(0.1, 0.0, 0.2))[2] == NOT_REPRODUCED
    assert outcomes(score=Interval(0.5, 0.4, 0.6))[2] == NOT_DECIDABLE


@pytest.mark.parametrize(
    ("rise", "delay", "outcome"),
    [
        (Interval(0.7, 0.6, 0.8), Interval(0.0, -0.01, 0.01), NOT_REPRODUCED),
        (Interval(0.5, 0.4, 0.6), Interval(0.0, -0.01, 0.01), NOT_DECIDABLE),
        (Interval(0.1, 0.05, 0.15), Interval(0.4, 0.3, 0.5), NOT_REPRODUCED),
        (Interval(0.1, 0.05, 0.15), Interval(-0.4, -0.5, -0.3), NOT_REPRODUCED),
        (Interval(0.1, 0.05, 0.15), Interval(0.2, 0.1, 0.3), NOT_DECIDABLE),
        (Interval(0.1, 0.05, 0.15), Interval(-0.2, -0.3, -0.1), NOT_DECIDABLE),
    ],
)
def test_abrupt_and_together_are_two_conditions(rise: Interval, delay: Interval, outcome: str) -> None:
    assert outcomes(rise=rise, delay=delay)[3] == outcome


def curve(accuracy: Any, heads: Any) -> list[dict[str, Any]]:
    return [{"step": step, "accuracy": accuracy(step), "induction": heads(step)} for step in range(0, 1001, 50)]


def test_a_rise_is_timed_between_snapshots() -> None:
    """Straight lines, whose shares of the end are known at every step."""
    line = lambda start, end: lambda step: float(np.clip((step - start) / (end - start), 0, 1))  # noqa: E731
    row = study._rise(curve(line(300, 500), line(280, 400)))
    assert row["half_of_accuracy_at_step"] == pytest.approx(400)
    assert row["half_of_induction_at_step"] == pytest.approx(340, abs=1)  # the line starts between two snapshots
    assert row["rise"] == pytest.approx(100 / 350)
    assert row["delay"] == pytest.approx(60 / 350, abs=0.003)
    assert study._rise(curve(lambda _: 0.12, lambda _: 0.1)) == {}, "nothing rises where nothing is learned"
    assert study._rise(curve(lambda _: 0.9, lambda _: 0.9))["rise"] == 0


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("induction")
    run_study("induction", changes=TINY, out=home, processes=1)
    return home


def test_a_tiny_run_measures_all_that_the_rules_ask_for(tiny: Path) -> None:
    result = read_result(tiny)
    assert [verdict.outcome for verdict in result.verdicts] == [NOT_DECIDABLE] * 4
    measured = result.measured
    assert [(row["network"], row["seed"]) for row in measured.table("networks")] == [
        (name, seed)
        for name in (study.ONE, study.TWO, study.WIDE, study.LONG, study.SLOW, study.SMALL_INIT)
        for seed in (100, 101)
    ]
    assert len(measured.table("heads")) == 2 * (1 + 2) * 2
    assert [row["step"] for row in measured.table("training")] == 4 * [0, 4, 8, 12]
    for row in measured.table("training"):
        assert 0 <= row["accuracy"] <= 1
        assert 0 < row["induction"] < 1
        assert math.isfinite(row["in_context"])
    last = {(row["depth"], row["seed"]): row for row in measured.table("training")}
    heads = [row for row in measured.table("heads") if (row["depth"], row["seed"]) == (2, 101)]
    assert max(row["induction"] for row in heads) == last[2, 101]["induction"]
    assert measured.number("networks of 2 layers that copy").value == 0
    assert "training" in read_result(tiny).figures
    assert "2 layers" in (tiny / "training.svg").read_text()


def test_the_heads_of_a_network_are_measured_and_drawn(tiny: Path) -> None:
    """Of whatever network has its largest induction score in layer 2, trained or not."""
    from deepwide.run import read_runs

    settings: Any = find_study("induction").settings("quick", TINY)
    rows = [study._network(record, settings) for record in read_runs(tiny / "runs" / "depths")]
    for row, heads, picture in rows:
        assert row["induction"] == max(head["induction"] for head in heads)
        assert bool(picture) == ("K" in row) == (not row["induction_head"].startswith("1."))
        if not picture:
            continue
        by_head = {name: [cell for cell in picture if cell["head"] == name] for name in {c["head"] for c in picture}}
        assert len(by_head) == 2
        for cells in by_head.values():
            assert len(cells) == 10 * 11 / 2
            assert sum(cell["attention"] for cell in cells) == pytest.approx(10, abs=0.01), "every row adds up to 1"
            chart = find_study("induction").figures(
                Measured(tables={"training": read_result(tiny).measured.table("training"), "pattern": picture})
            )
            assert list(chart) == ["training", "together", "heads"]


@pytest.mark.parametrize("change", ["depths=[2,3]", "heads=3", "longest=9", "symbols=12", "steps=3"])
def test_settings_that_measure_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("induction", changes=(*TINY, change), out=tmp_path, processes=1)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))
    assert not (tmp_path / "runs").exists(), "before anything is trained"


def test_a_study_that_is_stopped_while_measuring_says_so(tiny: Path) -> None:
    one: Any = find_study("induction")
    settings = one.settings("quick", TINY)
    runs = {name: tiny / "runs" / name for name in ("depths", "wide", "long", "slow", "init")}
    with pytest.raises(DeepwideError, match="resumes"):
        one.measure(settings, Workplace(runs, stop=lambda: True))


def test_the_original_size_has_a_price() -> None:
    forecast, cpu = dry_run("induction", "paper"), dry_run("induction", "cpu")
    assert (forecast.runs, cpu.runs) == (5 * 7, 8 * 7)
    assert forecast.train_flops > 1e5 * cpu.train_flops


class TestPublished:
    def test_it_was_judged_by_the_rules_that_stand_here(self) -> None:
        """A changed rule needs a new run: the hash in the result is that of the rules in the file."""
        result = read_result(PUBLISHED)
        assert result.rule_hash == result.rule_hash_at_start == find_study("induction").rule_hash
        assert result.settings == find_study("induction").settings("cpu").model_dump(mode="json")
        again = [rule.judge(result.measured) for rule in find_study("induction").rules]
        assert again == list(result.verdicts)

    def test_its_numbers_follow_from_its_tables(self) -> None:
        result = read_result(PUBLISHED)
        settings: Any = find_study("induction").settings("cpu")
        again = study._numbers(result.measured.table("networks"), settings)
        assert {name: show_interval(value) for name, value in again.items()} == {
            name: show_interval(value) for name, value in result.measured.numbers.items()
        }

    def test_the_page_on_studies_quotes_it(self) -> None:
        page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
        result = read_result(PUBLISHED)
        section = page.partition("### induction")[2].partition("\n### ")[0]
        quoted = [line for line in section.splitlines() if line.startswith("| ") and line.count("|") == 3][1:]
        values = [f"| {name} | {show_interval(value)} |" for name, value in result.measured.numbers.items()]
        assert len(quoted) > 10
        assert [line for line in quoted if line not in values] == []

    def test_what_the_page_counts_is_in_the_tables(self) -> None:
        measured = read_result(PUBLISHED).measured
        two = [row for row in measured.table("heads") if row["depth"] == 2 and row["layer"] == 1]
        whole = [seed for seed in range(20, 28) if all(r["previous"] >= 0.5 for r in two if r["seed"] == seed)]
        assert len(whole) == 6, "networks in which all heads of layer 1 are previous-token heads"
        one = [row["copying"] for row in measured.table("heads") if row["depth"] == 1]
        assert min(one) > 0.99
        networks: dict[str, list[dict[str, Any]]] = {study.TWO: [], study.SMALL_INIT: []}
        for row in measured.table("networks"):
            networks.get(row["network"], []).append(row)
        assert all(row["K"] > 0 > max(row["Q"], row["V"]) for row in networks[study.TWO])
        assert sum(row["copy_accuracy"] > study.CAN for row in networks[study.SMALL_INIT]) == 7
