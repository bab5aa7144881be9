"""The study of auto-sizing: its rules on made-up numbers, and runs so small that nothing is decided."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.auto_sizing import (
    BASELINE,
    HELPS,
    LEAST,
    NO_FEED_FORWARD,
    WITHOUT,
    _by_strength,
    _chosen,
    _differences,
)
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

SMALL = (
    "seeds=[0, 1]", "depth=1", "width=16", "heads=2", "steps=6", "batch=4", "lr=0.01", "linf1=[5000.0]", "l21=[0.001]",
    "l21_heads=[5000.0]", "sentences=6", "context=40", "vocab=280", "examples=0", "alike=false",
)  # fmt: skip


def outcomes(seeds: int = 3, least: float = 9.0, **numbers: Interval) -> list[str]:
    named = {HELPS if name == "helps" else WITHOUT: value for name, value in numbers.items()}
    measured = Measured(numbers={"seeds": Interval(seeds), LEAST: Interval(least), **named})
    return [rule.judge(measured).outcome for rule in find_study("auto-sizing").rules]


def test_each_rule_can_say_each_thing() -> None:
    better, worse, unclear = Interval(1.0, 0.5, 1.5), Interval(-1.0, -1.5, -0.5), Interval(0.2, -0.3, 0.7)
    assert outcomes(helps=better, without=worse) == [REPRODUCED, NOT_REPRODUCED]
    assert outcomes(helps=worse, without=better) == [NOT_REPRODUCED, REPRODUCED]
    assert outcomes(helps=unclear, without=unclear) == [NOT_DECIDABLE] * 2
    assert outcomes(seeds=2, helps=better, without=better) == [NOT_DECIDABLE] * 2
    assert outcomes(least=4.9, helps=better, without=worse) == [NOT_DECIDABLE] * 2, "they do not translate"
    assert outcomes() == [NOT_DECIDABLE] * 2


def row(network: str, strength: float, seed: int, left: float, translations: list[str]) -> dict[str, Any]:
    return {"network": network, "strength": strength, "seed": seed, "parameters_left": left, "bleu": 10.0} | {
        "translations": translations,
    }  # fmt: skip


def test_a_strength_is_chosen_on_one_half_among_those_that_take_out_enough() -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    wanted = [f"the cat number {i} sat on mat {i + 1} today" for i in range(40)]
    wrong = "nothing of the kind was seen"
    right, none = list(wanted), [wrong] * 40
    on_first = [text if i % 2 == 0 else wrong for i, text in enumerate(wanted)]  # right on the half that chooses
    on_second = [text if i % 2 else wrong for i, text in enumerate(wanted)]
    rows = [
        *(row(BASELINE, 0.0, seed, 1.0, on_second) for seed in (0, 1)),
        *(row(NO_FEED_FORWARD, 0.0, seed, 0.4, right) for seed in (0, 1)),
        *(row("l2,1", 1.0, seed, 0.9, right) for seed in (0, 1)),  # takes out too little
        *(row("l2,1", 2.0, seed, 0.6, on_first) for seed in (0, 1)),
        *(row("l∞,1", 2.0, seed, 0.5, on_second) for seed in (0, 1)),  # better on the half that does not choose
    ]
    groups = _by_strength(rows)
    assert _chosen(groups, wanted) == ("l2,1", 2.0)
    numbers = _differences(groups, wanted, _chosen(groups, wanted))
    assert numbers[HELPS].value < -90, "chosen on one half, measured on the other"
    assert 0 < numbers[WITHOUT].value < 90, "on all sentences"
    assert numbers[LEAST].value == 10
    assert _chosen(_by_strength(rows[:6]), wanted) is None
    assert HELPS not in _differences(_by_strength(rows[:6]), wanted, None)
    nobody = _by_strength([{**entry, "translations": none} for entry in rows])
    assert _differences(nobody, wanted, _chosen(nobody, wanted))[HELPS].value == 0


def test_a_tiny_run_measures_what_is_left(tmp_path: Path) -> None:
    result = run_study("auto-sizing", changes=SMALL, out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    by_network = {row["network"]: row for row in result.measured.tables["strengths"]}
    assert set(by_network) == {BASELINE, NO_FEED_FORWARD, "l∞,1", "l2,1", "l2,1 on heads"}
    heads = by_network["l2,1 on heads"]
    assert (heads["heads_left"], heads["neurons_left"]) == (0, 1), "only heads are sized"
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
    changes = (*SMALL, f'data="{tmp_path}"', "pair=en-nso", "seeds=[0]", "l21=[]", "l21_heads=[]")
    result = run_study("auto-sizing", changes=changes, out=tmp_path / "out", processes=1)
    assert {HELPS, WITHOUT} <= set(result.measured.numbers)
    assert all(0 <= row["bleu"] <= 100 for row in result.measured.tables["runs"])


@pytest.mark.parametrize("change", ["seeds=[]", "l21=[-1.0]", "pair=en-xx", "pair=en-nso", "heads=3"])
def test_settings_that_measure_nothing_cost_a_sentence(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    with pytest.raises(DeepwideError) as caught:
        run_study("auto-sizing", changes=(*SMALL, change), out=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_what_is_published_was_judged_by_these_rules_and_stands_on_the_page() -> None:
    check_judged_by_the_rules_that_stand_here("auto-sizing")
    measured = published("auto-sizing").measured
    rows = {(row["network"], row["strength"]): row for row in measured.table("strengths")}
    shown = {
        "baseline": (BASELINE, 0.0), "l2,1, λ = 1.5": ("l2,1", 1.5), "l2,1, λ = 1.75": ("l2,1", 1.75),
        "l2,1, λ = 2 (chosen)": ("l2,1", 2.0), "l∞,1, λ = 11": ("l∞,1", 11.0),
        "l∞,1, λ = 9.5": ("l∞,1", 9.5), "l2,1 on heads alone, λ = 6": ("l2,1 on heads", 6.0),
        "l2,1 on heads alone, λ = 8": ("l2,1 on heads", 8.0), "no feed-forward": (NO_FEED_FORWARD, 0.0),
    }  # fmt: skip
    assert [key for key, row in rows.items() if row["chosen"]] == [("l2,1", 2.0)]
    for name, key in shown.items():
        row = rows[key]
        neurons = "–" if key[0] == NO_FEED_FORWARD else _percent(row["neurons_left"])
        left, heads = _percent(row["parameters_left"]), _percent(row["heads_left"])
        check_said_on_the_page(f"| {name} | {left} | {neurons} | {heads} | {row['bleu']:.1f} |")
    for number in (HELPS, WITHOUT):
        value = measured.numbers[number]
        assert value.low is not None
        assert value.high is not None
        assert value.low < 0 < value.high < 3.9
        check_said_on_the_page(f"({-value.low:.1f} less to {value.high:.1f} more)")


def _percent(share: float) -> str:
    return f"{share:.1%}" if 0 < share < 0.01 else f"{share:.0%}"
