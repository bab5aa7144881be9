"""Laws on sets left out: the error by hand, who has seen what, and the rule."""

import json
import math
from pathlib import Path

import pytest

from deepwide.laws import find_law, transition_law
from deepwide.pooling import judge_laws
from deepwide.pooling.judging import RULE, Score, _verdict
from pooling.builders import made_set

ROOT = Path(__file__).parents[2]


def test_an_error_is_of_ln_depth_at_the_centre_of_the_set() -> None:
    judged = judge_laws([made_set("one", place=-0.2), made_set("two", place=-0.4)])
    trial = next(t for t in judged.trials if t.law == "levine" and t.set == "one")
    assert trial.error == pytest.approx(0.2)
    law = transition_law().depth(2e8).at()
    assert law.high is not None
    sd = math.hypot(0.1, math.log(law.high / law.value) / 1.96)
    assert trial.covered == (1.96 * sd >= 0.2)
    assert trial.loss_percent == pytest.approx(100 * math.expm1(0.01 * 0.04))
    pooled = next(t for t in judged.trials if t.law == "pooled" and t.set == "one")
    assert pooled.error == pytest.approx(-0.2, abs=0.01), "computed from the other set alone"


def test_a_law_is_not_judged_on_what_it_was_fitted_on() -> None:
    judged = judge_laws([made_set("gemstones"), made_set("two")])
    score = next(s for s in judged.scores if s.law == "gemstones")
    assert score.judged == 1
    assert not score.everywhere
    measured = math.exp(-0.2) * transition_law().depth_at(2e8)
    law = find_law("gemstones")
    assert score.mean_error == pytest.approx(abs(math.log(law.depth_at(2e8) / measured)))  # type: ignore[attr-defined]


def test_a_constant_aspect_ratio_comes_from_the_other_sets() -> None:
    """By hand: the ratio with which 12·depth·width² at the other set's best depth is its size."""
    one, two = made_set("one", place=-0.2), made_set("two", place=0.4)
    judged = judge_laws([one, two])
    trial = next(t for t in judged.trials if t.law == "constant aspect" and t.set == "two")
    depth = math.exp(-0.2) * transition_law().depth_at(one.centre_params)
    ratio = math.sqrt(one.centre_params / (12 * depth)) / depth
    assert 12 * trial.predicted.value * (ratio * trial.predicted.value) ** 2 == pytest.approx(two.centre_params)
    assert {"morph", "kaplan"} <= set(judged.unjudged)


def score(law: str, error: float, covered: int = 2, log_score: float = 0.0, everywhere: bool = True) -> Score:
    return Score(law, 2, covered, error, log_score, 0.1, everywhere)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([score("pooled", 0.1), score("levine", 0.2)], "pooled"),
        ([score("pooled", 0.3), score("levine", 0.2)], "levine"),
        ([score("pooled", 0.1, covered=1), score("levine", 0.2)], "levine"),
        ([score("pooled", 0.1, log_score=-1), score("levine", 0.2)], "levine"),
        ([score("pooled", 0.1), score("levine", 0.2), score("liu", 0.05)], "levine"),
        ([score("pooled", 0.1), score("levine", 0.2), score("gemstones", 0.05, everywhere=False)], "pooled"),
    ],
)
def test_the_rule(scores: list[Score], outcome: str) -> None:
    assert _verdict(scores).outcome == outcome


def test_the_default_is_what_the_rule_says() -> None:
    judged = judge_laws()
    assert judged.verdict.outcome == transition_law().name == find_law().name
    saved = json.loads((ROOT / "results/evidence/judged.json").read_text(encoding="utf-8"))
    assert saved["verdict"]["outcome"] == judged.verdict.outcome
    assert {s["law"]: s["mean_error"] for s in saved["scores"]} == pytest.approx(
        {s.law: s.mean_error for s in judged.scores}, rel=1e-3
    )
    assert judged.verdict.rule == RULE
    assert judged.rows()[0]["law"] == judged.scores[0].law
