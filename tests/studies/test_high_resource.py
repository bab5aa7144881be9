"""The study of deep encoders: its rules on made-up numbers, and a run so small that nothing is decided."""

from pathlib import Path

import pytest

import deepwide
from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.model import SCHEMES
from deepwide.run import RunFolder, read_runs
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.high_resource import DEEP, DEEPER_BLEU, DEEPER_LOSS, RESCUED, SHALLOW, _row
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

SMALL = ("encoders=[1, 2]", "seeds=[0, 1]", "width=16", "heads=2", "steps=4", "batch=4", "sentences=6", "beam=2")
ABOVE, BELOW, UNCLEAR = Interval(1.0, 0.5, 1.5), Interval(-1.0, -1.5, -0.5), Interval(0.2, -0.3, 0.7)


def outcomes(number: Interval, seeds: int = 3, shallow: float = 10.0, deep: float = 10.0) -> list[str]:
    numbers = dict.fromkeys((DEEPER_BLEU, DEEPER_LOSS, RESCUED), number)
    measured = Measured(numbers={"seeds": Interval(seeds), SHALLOW: Interval(shallow), DEEP: Interval(deep)} | numbers)
    return [rule.judge(measured).outcome for rule in find_study("high-resource").rules]


def test_each_rule_can_say_each_thing() -> None:
    assert outcomes(ABOVE) == [REPRODUCED] * 3
    assert outcomes(BELOW) == [NOT_REPRODUCED] * 3
    assert outcomes(UNCLEAR) == outcomes(ABOVE, seeds=2) == [NOT_DECIDABLE] * 3


def test_who_does_not_translate_yet_is_not_compared() -> None:
    assert outcomes(BELOW, deep=4.9) == [NOT_DECIDABLE] * 3
    assert outcomes(BELOW, shallow=4.9) == [NOT_DECIDABLE, NOT_DECIDABLE, NOT_REPRODUCED]


def test_a_run_without_data_compares_depths_and_schemes(tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    result = run_study("high-resource", changes=SMALL, out=tmp_path, processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    shapes = {(row["scheme"], row["encoder"]): row for row in result.measured.tables["shapes"]}
    assert set(shapes) == {("ADMIN", 1), ("ADMIN", 2), ("post-LN", 2)}
    numbers = result.measured.numbers
    assert numbers[DEEPER_LOSS].value == pytest.approx(shapes["ADMIN", 1]["loss"] - shapes["ADMIN", 2]["loss"])
    assert numbers[RESCUED].value == pytest.approx(shapes["post-LN", 2]["loss"] - shapes["ADMIN", 2]["loss"])
    assert {DEEPER_BLEU, SHALLOW, DEEP} <= set(numbers)
    assert "translations" not in (tmp_path / "runs.csv").read_text()
    assert "<svg" in (tmp_path / "encoders.svg").read_text()


def test_an_encoder_may_have_a_rate_of_its_own() -> None:
    study = find_study("high-resource")
    settings = study.settings("quick", ("encoders=2,8", "rates=[[8, 1e-3]]", "lr=4e-3"))
    tables = {name: sweep["run"] for name, sweep in study.sweeps(settings).items()}
    rates = {name: (run["model"]["encoder_depth"], run["optimiser"]["lr"]) for name, run in tables.items()}
    assert rates == {
        "reversing.ADMIN.2": (2, 4e-3),
        "reversing.ADMIN.8": (8, 1e-3),
        "reversing.post-LN.8": (8, 1e-3),
    }


def test_a_run_that_diverged_counts_with_the_loss_it_began_with(tmp_path: Path) -> None:
    model = {"depth": 1, "encoder_depth": 2, "width": 16, "heads": 2, **SCHEMES["post-LN"]}
    run = {"task": {"name": "reversing", "length": 8}, "model": model, "steps": 20, "optimiser": {"lr": 90, "clip": 0}}
    deepwide.train(run, runs=tmp_path, threads=1)
    record = read_runs(tmp_path)[0]
    assert record.status == "diverged"
    row = _row(record, "en-de", find_study("high-resource").settings("cpu"))  # type: ignore[arg-type]
    assert row["loss"] == RunFolder.open(record.path).metrics()[0]["loss"]
    assert (row["encoder"], row["decoder"], row["translations"], row["scheme"]) == (2, 1, [], "post-LN")


@pytest.mark.parametrize("change", ["seeds=[]", "encoders=[]", 'pairs=["en-de"]', "beam=0"])
def test_settings_that_measure_nothing_cost_a_sentence(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    with pytest.raises(DeepwideError) as caught:
        run_study("high-resource", changes=(*SMALL, change), out=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_what_is_published_was_judged_by_these_rules() -> None:
    check_judged_by_the_rules_that_stand_here("high-resource")


def test_the_page_quotes_what_was_measured() -> None:
    measured = published("high-resource").measured
    rows = [
        f"| {row['encoder']} | {row['scheme']} | {row['loss']:.2f} | {row['bleu']:.1f} |"
        for row in measured.tables["shapes"]
    ]
    bleu, loss, rescued = (measured.numbers[name] for name in (DEEPER_BLEU, DEEPER_LOSS, RESCUED))
    assert bleu.low is not None
    assert bleu.high is not None
    assert loss.low is not None
    assert loss.high is not None
    assert rescued.low is not None
    assert rescued.high is not None
    check_said_on_the_page(
        *rows,
        f"18 layers have {-bleu.value:.1f} BLEU less than 6",
        f"{-bleu.low:.1f} less to {bleu.high:.1f} more",
        f"{-loss.value:.2f} worse ({-loss.high:.2f} to {-loss.low:.2f})",
        f"{rescued.value:.2f} higher ({rescued.low:.2f} to {rescued.high:.2f})",
    )


def test_36_layers_and_afrikaans_were_judged_by_these_rules_and_stand_on_the_page() -> None:
    for run in ("36", "afrikaans"):
        check_judged_by_the_rules_that_stand_here("high-resource", run)
        assert {verdict.outcome for verdict in published("high-resource", run).verdicts} == {NOT_DECIDABLE}
    deep, pair = (published("high-resource", run).measured for run in ("36", "afrikaans"))
    scores = sorted(row["bleu"] for row in deep.tables["runs"] if row["encoder"] == 36)
    shallow = next(row for row in deep.tables["shapes"] if row["encoder"] == 6)
    few, many = sorted(pair.tables["shapes"], key=lambda row: row["encoder"])

    def behind(number: Interval) -> str:
        assert number.low is not None
        assert number.high is not None
        return f"{-number.value:.2f} behind ({-number.high:.2f} to {-number.low:.2f})"

    check_said_on_the_page(
        f"one seed of three has {scores[2]:.1f} BLEU, the others {scores[0]:.1f} and {scores[1]:.1f}, where 6 layers "
        f"have {shallow['bleu']:.1f}",
        f"In loss 36 layers are {behind(deep.numbers[DEEPER_LOSS])}",
        f"6 layers have a loss of {few['loss']:.2f} and {few['bleu']:.1f} BLEU, 18 layers {many['loss']:.2f} and "
        f"{many['bleu']:.1f}.",
        f"in loss 18 layers are {behind(pair.numbers[DEEPER_LOSS])}",
    )
