"""The study of depth and data: its rules on made-up numbers, and a run so small that nothing is decided."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.low_resource import DEEP_BLEU, DEEP_LOSS, MORE_DATA
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

SMALL = (
    "depths=[1, 2]", "seeds=[0, 1]", "width=16", "heads=2", "steps=4", "batch=4", "sentences=6", "context=40",
    "vocab=280", "beam=2",
)  # fmt: skip
ABOVE, BELOW, UNCLEAR = Interval(1.0, 0.5, 1.5), Interval(-1.0, -1.5, -0.5), Interval(0.2, -0.3, 0.7)
RATIO = "best BLEU over the earlier best, {}"


def outcomes(numbers: dict[str, Interval], seeds: int = 3, width: int = 256) -> list[str]:
    measured = Measured(numbers={"seeds": Interval(seeds), "width": Interval(width)} | numbers)
    return [rule.judge(measured).outcome for rule in find_study("low-resource").rules]


def test_each_rule_can_say_each_thing() -> None:
    def three(bleu: Interval, loss: Interval, data: Interval) -> list[str]:
        return outcomes({DEEP_BLEU: bleu, DEEP_LOSS: loss, MORE_DATA: data})[:3]

    assert three(BELOW, ABOVE, ABOVE) == [REPRODUCED] * 3, "less BLEU and more loss are both worse"
    assert three(ABOVE, BELOW, BELOW) == [NOT_REPRODUCED] * 3
    assert three(UNCLEAR, UNCLEAR, UNCLEAR) == [NOT_DECIDABLE] * 3
    assert outcomes({DEEP_BLEU: BELOW, DEEP_LOSS: ABOVE, MORE_DATA: ABOVE}, seeds=2) == [NOT_DECIDABLE] * 5
    assert outcomes({}) == [NOT_DECIDABLE] * 5


def test_both_readings_of_the_doubling_are_judged_and_only_at_the_original_width() -> None:
    doubled, same = Interval(2.4, 2.2, 2.6), Interval(1.0, 0.9, 1.1)
    numbers = {RATIO.format("en-af"): doubled, RATIO.format("en-nso"): same}
    assert outcomes(numbers)[3:] == [REPRODUCED, NOT_REPRODUCED]
    assert outcomes(numbers, width=64)[3:] == [NOT_DECIDABLE] * 2


def test_a_run_without_data_measures_loss_and_bleu(tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    changes = (*SMALL, "uneven=[[2, 1]]", "examples=[8, 0]")
    result = run_study("low-resource", changes=changes, out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    shapes = result.measured.tables["shapes"]
    assert [(row["examples"], row["encoder"], row["decoder"]) for row in shapes] == [
        (size, *sides) for size in (8, 0) for sides in ((1, 1), (2, 1), (2, 2))
    ]
    assert shapes[0]["block_params"] < shapes[1]["block_params"] < shapes[2]["block_params"]
    assert {row["seed"] for row in result.measured.tables["runs"]} == {0, 1}
    compared = result.measured.tables["compared"]
    assert [(row["examples"], row["deeper"], row["shallower"]) for row in compared] == [(8, 2, 1), (0, 2, 1)]
    losses = {(row["examples"], row["encoder"], row["decoder"]): row["loss"] for row in shapes}
    assert compared[0]["loss"] == pytest.approx(losses[8, 2, 2] - losses[8, 1, 1])
    gains = [losses[size, 1, 1] - losses[size, 2, 2] for size in (0, 8)]
    assert result.measured.numbers[MORE_DATA].value == pytest.approx(gains[0] - gains[1])
    assert "translations" not in (tmp_path / "runs.csv").read_text()
    assert "<svg" in (tmp_path / "depths.svg").read_text()


def test_a_depth_may_have_a_rate_of_its_own_and_batches_pairs_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "deepwide.studies.translators.pair_files", lambda *_: dict.fromkeys(("train", "dev"), ("a", "b"))
    )
    study = find_study("low-resource")
    settings = study.settings("cpu", ("depths=1,3,6", "examples=0", "rates=[[6, 1e-3]]", "alike=true", "batch=8"))
    sweeps = study.sweeps(settings)
    assert {name: sweep.get("grid") for name, sweep in sweeps.items()} == {
        "en-de.all": {"depth": [1, 3]},
        "en-de.all.6": None,
    }
    deep, usual = sweeps["en-de.all.6"]["run"], sweeps["en-de.all"]["run"]
    assert (deep["model"]["depth"], deep["optimiser"]["lr"], usual["optimiser"]["lr"]) == (6, 1e-3, 3e-3)
    assert deep["task"]["alike"] == usual["task"]["alike"] == 8


def test_languages_are_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "autshumato").mkdir()
    for part, count in (("train", 40), ("dev", 10), ("test", 10)):
        for language, word in (("en", "cat"), ("nso", "katse")):
            lines = "".join(f"{word} {word} {i % 7}\n" for i in range(count))
            (tmp_path / "autshumato" / f"en-nso.{part}.{language}.gz").write_bytes(gzip.compress(lines.encode()))
    changes = (*SMALL, 'pairs=["en-nso"]', f'data="{tmp_path}"', "seeds=[0]", "examples=[20]", "depths=[1]")
    result = run_study("low-resource", changes=changes, out=tmp_path / "out", processes=1)
    assert RATIO.format("en-nso") in result.measured.numbers
    assert "katse" not in "".join(path.read_text() for path in (tmp_path / "out").glob("*.*")), "no text of the data"


@pytest.mark.parametrize("change", ["seeds=[]", "depths=[]", 'pairs=["en-xx"]', 'pairs=["en-nso"]', "dropout=1.0"])
def test_settings_that_measure_nothing_cost_a_sentence(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    with pytest.raises(DeepwideError) as caught:
        run_study("low-resource", changes=(*SMALL, change), out=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_the_paper_s_preset_has_the_original_s_network() -> None:
    chosen: Any = find_study("low-resource").settings("paper")
    assert (chosen.width, chosen.heads, chosen.feed_forward, chosen.dropout, chosen.vocab) == (256, 4, 4, 0.25, 4000)
    assert chosen.depths == (1, 2, 3, 4, 5, 6)


def test_what_is_published_was_judged_by_these_rules_and_stands_on_the_page() -> None:
    check_judged_by_the_rules_that_stand_here("low-resource")
    shapes = published("low-resource").measured.tables["shapes"]
    for examples in (1000, 5000, 0):
        rows = [row for row in shapes if row["examples"] == examples]
        losses, scores = (" | ".join(f"{row[n]:.{d}f}" for row in rows) for n, d in (("loss", 2), ("bleu", 1)))
        check_said_on_the_page(f"| {examples or 29000:,} | least loss | {losses} |", f"| BLEU | {scores} |")


def test_the_run_on_afrikaans_stands_on_the_page_too() -> None:
    check_judged_by_the_rules_that_stand_here("low-resource", "afrikaans")
    measured = published("low-resource", "afrikaans").measured
    shapes = measured.tables["shapes"]
    losses, scores = ([f"{row[name]:.{digits}f}" for row in shapes] for name, digits in (("loss", 2), ("bleu", 1)))
    less = measured.tables["compared"][0]
    gain = measured.tables["compared"][1]
    check_said_on_the_page(
        f"least loss {losses[0]}, {losses[1]} and {losses[2]} and BLEU {scores[0]}, {scores[1]} and {scores[2]}",
        f"{less['bleu']:.1f} BLEU (−{-less['bleu_low']:.1f} to {less['bleu_high']:.1f})",
        f"6 + 6 gain {-gain['loss']:.2f} on 1 + 1 ({-gain['high']:.2f} to {-gain['low']:.2f})",
    )


def test_the_run_on_sepedi_and_setswana_stands_on_the_page_too() -> None:
    check_judged_by_the_rules_that_stand_here("low-resource", "sotho-tswana")
    measured = published("low-resource", "sotho-tswana").measured
    shapes = measured.tables["shapes"]
    for pair in ("en-nso", "en-tn"):
        for examples in (3000, 0):
            losses = [row["loss"] for row in shapes if (row["pair"], row["examples"]) == (pair, examples)]
            check_said_on_the_page(f"| least loss | {' | '.join(f'{loss:.2f}' for loss in losses)} |")
    less = measured.numbers[DEEP_LOSS]
    assert less.low is not None
    assert less.high is not None
    check_said_on_the_page(
        f"6 + 6 layers lose {less.value:.2f} of loss to 3 + 3 ({less.low:.2f} to {less.high:.2f})",
        f"no network translates: {max(row['bleu'] for row in shapes):.1f} BLEU at most",
    )


def test_the_page_quotes_the_difference_that_the_rule_judges() -> None:
    less = published("low-resource").measured.numbers[DEEP_BLEU]
    assert less.low is not None
    assert less.high is not None
    check_said_on_the_page(f"{-less.value:.1f} BLEU less than 3 + 3 ({-less.low:.1f} less to {less.high:.1f} more)")
