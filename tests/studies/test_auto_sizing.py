"""The study of auto-sizing: its rules on made-up numbers, and runs so small that nothing is decided."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.auto_sizing import BASELINE, HELPS, NO_FEED_FORWARD, WITHOUT, _by_strength, _differences
from studies.published import check_judged_by_the_rules_that_stand_here

SMALL = (
    "seeds=[0, 1]", "depth=1", "width=16", "heads=2", "steps=6", "batch=4", "lr=0.01", "linf1=[5000.0]", "l21=[0.001]",
    "sentences=6", "context=40", "vocab=280",
)  # fmt: skip


def outcomes(seeds: int = 3, **numbers: Interval) -> list[str]:
    named = {HELPS if name == "helps" else WITHOUT: value for name, value in numbers.items()}
    measured = Measured(numbers={"seeds": Interval(seeds), **named})
    return [rule.judge(measured).outcome for rule in find_study("auto-sizing").rules]


def test_each_rule_can_say_each_thing() -> None:
    better, worse, unclear = Interval(1.0, 0.5, 1.5), Interval(-1.0, -1.5, -0.5), Interval(0.2, -0.3, 0.7)
    assert outcomes(helps=better, without=worse) == [REPRODUCED, NOT_REPRODUCED]
    assert outcomes(helps=worse, without=better) == [NOT_REPRODUCED, REPRODUCED]
    assert outcomes(helps=unclear, without=unclear) == [NOT_DECIDABLE] * 2
    assert outcomes(seeds=2, helps=better, without=better) == [NOT_DECIDABLE] * 2
    assert outcomes() == [NOT_DECIDABLE] * 2


def row(network: str, strength: float, seed: int, left: float, chosen_on: float, measured: float) -> dict[str, Any]:
    return {"network": network, "strength": strength, "seed": seed, "parameters_left": left} | {
        "bleu_chosen_on": chosen_on, "bleu_measured": measured,
    }  # fmt: skip


def test_a_strength_is_chosen_on_one_half_among_those_that_take_out_enough() -> None:
    rows = [
        *(row(BASELINE, 0.0, seed, 1.0, 10, 10 + seed) for seed in (0, 1)),
        *(row(NO_FEED_FORWARD, 0.0, seed, 0.4, 9, 8 + seed) for seed in (0, 1)),
        *(row("l2,1", 1.0, seed, 0.9, 99, 99) for seed in (0, 1)),  # takes out too little
        *(row("l2,1", 2.0, seed, 0.6, 12, 9 + seed) for seed in (0, 1)),
        *(row("l∞,1", 2.0, seed, 0.5, 11, 30) for seed in (0, 1)),  # better on the half that does not choose
    ]
    numbers = _differences(_by_strength(rows))
    assert numbers[HELPS].value == -1, "paired by seed"
    assert numbers[WITHOUT].value == -2
    assert HELPS not in _differences(_by_strength(rows[:6]))


def test_a_tiny_run_measures_what_is_left(tmp_path: Path) -> None:
    result = run_study("auto-sizing", changes=(*SMALL, "task=reversing"), out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    by_network = {row["network"]: row for row in result.measured.tables["strengths"]}
    assert set(by_network) == {BASELINE, NO_FEED_FORWARD, "l∞,1", "l2,1"}
    assert by_network[BASELINE]["parameters_left"] == 1
    assert by_network["l∞,1"]["neurons_left"] == by_network["l∞,1"]["heads_left"] == 0, "so strong that nothing stays"
    assert by_network["l2,1"]["parameters_left"] == 1, "so weak that everything stays"
    assert 0 < by_network["l∞,1"]["parameters_left"] < by_network[NO_FEED_FORWARD]["parameters_left"] < 1, "biases stay"
    assert result.measured.numbers["largest change of an output by rebuilding"].value < 1e-12
    assert "<svg" in (tmp_path / "sizes.svg").read_text()


def test_translations_are_measured_by_bleu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "autshumato").mkdir()
    for part, count in (("train", 40), ("dev", 10), ("test", 4)):
        for language, word in (("en", "cat"), ("nso", "katse")):
            lines = "".join(f"{word} {word} {i % 7}\n" for i in range(count))
            (tmp_path / "autshumato" / f"en-nso.{part}.{language}.gz").write_bytes(gzip.compress(lines.encode()))
    changes = (*SMALL, "task=translation", f'data="{tmp_path}"', "pair=en-nso", "seeds=[0]", "l21=[]")
    result = run_study("auto-sizing", changes=changes, out=tmp_path / "out", processes=1)
    assert {HELPS, WITHOUT} <= set(result.measured.numbers)
    assert all(0 <= row["bleu_measured"] <= 100 for row in result.measured.tables["runs"])


@pytest.mark.parametrize("change", ["seeds=[]", "l21=[-1.0]", "task=sorting", "task=translation", "heads=3"])
def test_settings_that_measure_nothing_cost_a_sentence(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    with pytest.raises(DeepwideError) as caught:
        run_study("auto-sizing", changes=(*SMALL, change), out=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_what_is_published_was_judged_by_these_rules() -> None:
    check_judged_by_the_rules_that_stand_here("auto-sizing")
