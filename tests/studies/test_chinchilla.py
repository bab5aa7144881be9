"""The refit of Chinchilla's points: its rules on made-up numbers, and a world whose surface is known."""

from pathlib import Path

import numpy as np
import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.chinchilla import EPOCH, POINTS
from deepwide.studies.public_data import file_row
from studies.published import (
    check_judged_by_the_rules_that_stand_here,
    check_said_on_the_page,
    estimate,
    published,
)

STUDY = find_study("chinchilla")
HOFFMANN = {"E": 1.69, "alpha": 0.34, "beta": 0.28}
REFIT = {"E": 1.8169, "alpha": 0.3478, "beta": 0.3658}


def outcomes(
    ours: dict[str, Interval] | None = None,
    share: Interval = Interval(0.51, 0.45, 0.55),
    ratio: Interval = Interval(20.0, 15.0, 30.0),
) -> list[str]:
    values = {name: Interval(REFIT[name], *EPOCH[name]) for name in REFIT} | (ours or {})
    rows = [{"source": "this refit", "parameter": n, "value": i.value, "low": i.low, "high": i.high}
            for n, i in values.items()]  # fmt: skip
    rows += [{"source": "Epoch's refit", "parameter": n, "value": REFIT[n], "low": EPOCH[n][0], "high": EPOCH[n][1]}
             for n in REFIT]  # fmt: skip
    rows += [{"source": "Hoffmann et al., printed", "parameter": n, "value": HOFFMANN[n], "low": None, "high": None}
             for n in REFIT]  # fmt: skip
    numbers = {"exponent of parameters in compute": share, "tokens per parameter at 5.76e23 FLOPs": ratio}
    measured = Measured(numbers=numbers, tables={"parameters": rows})
    return [rule.judge(measured).outcome for rule in STUDY.rules]


def test_numbers_like_epoch_s_agree_with_all_but_the_printed_surface() -> None:
    assert outcomes() == [REPRODUCED, REPRODUCED, NOT_REPRODUCED, REPRODUCED]


def test_agreement_is_mutual() -> None:
    assert outcomes({"E": Interval(1.9, 1.7, 2.1)})[1] == NOT_REPRODUCED  # ours outside Epoch's limits
    assert outcomes({"E": Interval(1.85, 1.83, 1.87)})[1] == NOT_REPRODUCED  # Epoch's outside ours


def test_the_printed_surface_would_be_recognised() -> None:
    ours = {name: Interval(value, value - 0.01, value + 0.01) for name, value in HOFFMANN.items()}
    assert outcomes(ours)[1:3] == [NOT_REPRODUCED, REPRODUCED]


@pytest.mark.parametrize(
    ("share", "outcome"),
    [
        (Interval(0.6, 0.55, 0.65), NOT_REPRODUCED),
        (Interval(0.5, 0.35, 0.6), NOT_DECIDABLE),
        (Interval(0.5), NOT_DECIDABLE),
    ],
)
def test_equal_scaling_is_an_exponent_of_a_half(share: Interval, outcome: str) -> None:
    assert outcomes(share=share)[0] == outcome


def test_twenty_tokens_within_a_factor_two() -> None:
    assert outcomes(ratio=Interval(18.0, 7.0, 34.0))[3] == NOT_DECIDABLE
    assert outcomes(ratio=Interval(70.0, 50.0, 90.0))[3] == NOT_REPRODUCED


def test_without_resamples_nothing_is_compared() -> None:
    ours = {name: Interval(value) for name, value in REFIT.items()}
    assert outcomes(ours)[1:3] == [NOT_DECIDABLE, NOT_DECIDABLE]


def test_a_surface_that_is_known_is_found(tmp_path: Path) -> None:
    """Points of the printed surface, and five that are off: left out, the printed values are reproduced."""
    params, tokens = (g.ravel() for g in np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 5e11, 8)))
    noise = np.random.default_rng(0).normal(0, 0.003, params.size)
    loss = (1.69 + 406.4 / params**0.34 + 410.7 / tokens**0.28) * np.exp(noise)
    worst = np.argsort(loss)[-5:]
    loss[worst] *= 1.5
    path = tmp_path / POINTS
    path.parent.mkdir()
    rows = [f"{n},{6 * n * d},{v}" for n, d, v in zip(params, tokens, loss, strict=True)]
    path.write_text("\n".join(["Model Size,Training FLOP,loss", *rows]) + "\n")
    changes = (f"data={tmp_path}", "resamples=100")
    result = run_study("chinchilla", changes=changes, out=tmp_path / "out")
    assert result.verdicts[1].outcome == NOT_REPRODUCED
    assert result.verdicts[2].outcome == REPRODUCED
    surfaces = {row["source"]: row for row in result.measured.table("surfaces")}
    assert surfaces["this refit"]["objective"] <= surfaces["Hoffmann et al., printed"]["objective"]
    assert surfaces["this refit"]["objective"] < surfaces["this refit, all points"]["objective"]
    for picture, words in (("parameters", "Epoch's refit"), ("tokens_per_param", "training FLOPs")):
        assert words in (tmp_path / f"out/{picture}.svg").read_text()


def test_without_the_points_it_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    with pytest.raises(DeepwideError, match="set data to the folder that holds"):
        run_study("chinchilla", out=tmp_path)


def test_the_published_result_is_that_of_the_rules_here() -> None:
    check_judged_by_the_rules_that_stand_here("chinchilla")
    assert published("chinchilla").settings == STUDY.settings("cpu").model_dump(mode="json")


def test_the_published_result_is_that_of_the_data_at_hand(shared_data: Path) -> None:
    assert published("chinchilla").measured.table("sources") == [file_row(shared_data / "gemstones" / POINTS)]


def test_the_page_on_studies_says_what_was_measured() -> None:
    measured = published("chinchilla").measured
    parameters = {(row["source"], row["parameter"]): row for row in measured.table("parameters")}
    beta = parameters["this refit, all points", "beta"]
    off = {row["source"]: row["mean_residual_percent"] for row in measured.table("surfaces")}
    ratios = {row["source"]: row for row in measured.table("tokens_per_param") if row["train_flops"] == 5.76e23}
    ours, printed = ratios["this refit"], ratios["Hoffmann et al., printed"]
    check_said_on_the_page(
        estimate(beta["value"], beta["low"], beta["high"], ".3f"),
        f"{-off['Hoffmann et al., printed']:.1f}% too high",
        f"{printed['tokens_per_param']:.0f} tokens per parameter",
        f"{ours['tokens_per_param']:.1f} ({ours['low']:.1f} to {ours['high']:.0f})",
    )
