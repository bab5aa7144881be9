"""The study of rank collapse: its rules on made-up numbers, and a run so small that nothing is decided."""

from pathlib import Path

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    find_study,
    read_result,
    run_study,
    show_interval,
)

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "studies" / "rank-collapse-cpu"

SMALL = (
    "networks=2", "tokens=5", "width=8", "heads=2", "depth=4", "attention_depth=6", "weights=[1.0]", "scales=[1.0]",
)  # fmt: skip
EXPONENT = "exponent p of r ← c·rᵖ"
GAIN = "log10 of the residual with MLPs over that without"
LAST = "last relative residual, "


def outcomes(networks: int = 50, **changes: Interval) -> list[str]:
    """What the rules say of measurements that agree with the paper, but for some."""
    numbers = {
        "networks": Interval(networks),
        EXPONENT: changes.get("exponent", Interval(3.0, 2.99, 3.01)),
        f"{LAST}attention": changes.get("alone", Interval(1e-15, 1e-16, 1e-14)),
        f"{LAST}attention + skip": changes.get("skip", Interval(0.3, 0.2, 0.4)),
        GAIN: changes.get("gain", Interval(0.5, 0.1, 0.9)),
    }
    measured = Measured(numbers=numbers)
    return [rule.judge(measured).outcome for rule in find_study("rank-collapse").rules]


def test_what_the_paper_says_is_reproduced() -> None:
    assert outcomes() == [REPRODUCED] * 3


def test_a_few_networks_decide_nothing() -> None:
    assert outcomes(networks=9) == [NOT_DECIDABLE] * 3
    none = Interval(3.0)
    assert outcomes(exponent=none, skip=none, gain=none) == [NOT_DECIDABLE] * 3


@pytest.mark.parametrize(
    ("exponent", "outcome"),
    [
        (Interval(3.118, 3.116, 3.121), NOT_REPRODUCED),
        (Interval(2.0, 1.9, 2.1), NOT_REPRODUCED),
        (Interval(3.0, 2.9, 3.1), NOT_DECIDABLE),
        (Interval(3.02, 3.01, 3.04), NOT_DECIDABLE),
    ],
)
def test_an_exponent_that_is_not_three_is_not_reproduced(exponent: Interval, outcome: str) -> None:
    assert outcomes(exponent=exponent) == [outcome, REPRODUCED, REPRODUCED]


@pytest.mark.parametrize(
    ("alone", "skip", "outcome"),
    [
        (Interval(1e-3, 1e-4, 1e-2), Interval(0.3, 0.2, 0.4), NOT_DECIDABLE),
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.01, 0.005, 0.02), NOT_REPRODUCED),
        (Interval(1e-9, 1e-9, 1e-9), Interval(0.11, 0.09, 0.13), NOT_DECIDABLE),
    ],
)
def test_skips_prevent_only_what_happens_without_them(alone: Interval, skip: Interval, outcome: str) -> None:
    assert outcomes(alone=alone, skip=skip)[1] == outcome


def test_mlps_that_hasten_the_collapse_do_not_slow_it() -> None:
    assert outcomes(gain=Interval(-0.5, -0.9, -0.1))[2] == NOT_REPRODUCED
    assert outcomes(gain=Interval(0.1, -0.1, 0.3))[2] == NOT_DECIDABLE


def test_a_small_run_measures_every_condition_and_draws(tmp_path: Path) -> None:
    result = run_study("rank-collapse", changes=SMALL, out=tmp_path)
    assert [verdict.outcome for verdict in result.verdicts] == [NOT_DECIDABLE] * 3
    assert len(result.measured.table("conditions")) == 3 * 2 * 4
    assert len(result.measured.table("layers")) == 3 * 2 * 4 * 5
    growths = [row["growth_from_layer_before"] for row in result.measured.table("law")]
    assert growths[-1] == pytest.approx(3, abs=0.1)
    assert {note.code for note in result.measured.notes} == {"mlps", "mask", "scales"}
    assert "relative residual" in (tmp_path / "residual.svg").read_text()
    assert "![residual](residual.svg)" in (tmp_path / "page.md").read_text()
    assert run_study("rank-collapse", changes=SMALL, out=tmp_path / "again").measured.numbers == result.measured.numbers


@pytest.mark.parametrize("change", ["tokens=1", "attention_depth=4", "weights=[2.0]", "heads=3", "networks=0"])
def test_settings_that_measure_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("rank-collapse", changes=(*SMALL, change), out=tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_a_study_that_is_stopped_while_measuring_says_so(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="resumes"):
        run_study("rank-collapse", changes=SMALL, out=tmp_path, stop=lambda: True)
    assert not (tmp_path / "measured.json").exists()


def test_the_published_result_was_judged_by_the_rules_that_stand_here() -> None:
    """A changed rule needs a new run: the hash in the result is that of the rules in the file."""
    result = read_result(PUBLISHED)
    assert result.rule_hash == result.rule_hash_at_start == find_study("rank-collapse").rule_hash
    assert result.settings == find_study("rank-collapse").settings("cpu").model_dump(mode="json")
    again = [rule.judge(result.measured) for rule in find_study("rank-collapse").rules]
    assert again == list(result.verdicts)


def test_the_page_on_studies_quotes_the_published_result() -> None:
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    for verdict in read_result(PUBLISHED).verdicts:
        assert verdict.measured is not None
        row = f"| rank-collapse | {verdict.claim} | **{verdict.outcome}** | {show_interval(verdict.measured)} |"
        assert row in page
