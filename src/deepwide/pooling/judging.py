"""Laws judged on sets that they have not seen: error of the depth, coverage of the interval, what it costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepwide.answers import Z95, Answer, Interval, Verdict
from deepwide.laws import AspectLaw, DepthLaw, published_laws, transition_law
from deepwide.pooling.random_effects import log_density
from deepwide.pooling.sets import EvidenceSet, shipped_sets
from deepwide.pooling.together import pool

ASPECT = "constant aspect"  # the best constant width / depth of the other sets
SAW = {"gemstones": {"gemstones"}, "liu": {"chinchilla"}}  # the sets that published laws were fitted on
CLAIM = "the pooled law predicts a set left out better than the levine law and every rival"
RULE = (
    "pooled if its mean error is the least of all laws judged on every counted set, its intervals cover every set left "
    "out and its mean log score is not below levine's, else levine"
)


@dataclass(frozen=True)
class Trial:
    """One law on one set."""

    law: str
    set: str
    counted: bool  # False: the set lies outside the levine law's sizes
    seen: bool  # the law was fitted on it: not judged
    size: float
    measured: float  # layers
    predicted: Interval
    error: float  # ln(predicted / measured)
    covered: bool
    log_score: float
    loss_percent: float  # what the predicted depth costs by the set's own curvature


@dataclass(frozen=True)
class Score:
    """A law over the counted sets that it has not seen."""

    law: str
    judged: int
    covered: int
    mean_error: float  # of |ln(predicted / measured)|
    log_score: float
    loss_percent: float
    everywhere: bool  # judged on every counted set


class Judgement(Answer):
    """Every law on every set, and which law a plan should follow."""

    trials: list[Trial]
    scores: list[Score]  # the best first
    verdict: Verdict
    unjudged: list[str]  # published laws that name no best depth

    def rows(self) -> list[dict[str, Any]]:
        """One row per law."""
        return [dict(vars(score)) for score in self.scores]


def judge_laws(sets: Sequence[EvidenceSet] | None = None) -> Judgement:
    """Leave one set out at a time and ask every law for its best depth.

    >>> judge_laws().verdict.outcome in ("pooled", "levine")
    True
    """
    given = list(shipped_sets() if sets is None else sets)
    trials = []
    for each in given:
        others = [other for other in given if other.name != each.name]
        laws: dict[str, DepthLaw] = {n: law for n, law in published_laws().items() if isinstance(law, DepthLaw)}
        laws.pop("pooled", None)
        if any(other.scope == "pooled" for other in others):
            laws["pooled"] = pool(others).law
            laws[ASPECT] = _constant_aspect(others)
        trials += [_trial(law, each) for law in laws.values()]
    scores = sorted(filter(None, (_score(name, trials) for name in dict.fromkeys(t.law for t in trials))), key=_order)
    unjudged = [name for name, law in published_laws().items() if not isinstance(law, DepthLaw)]
    return Judgement(trials=trials, scores=scores, verdict=_verdict(scores), unjudged=unjudged)


def _constant_aspect(sets: Sequence[EvidenceSet]) -> AspectLaw:
    """width = ratio·depth with N = 12·depth·width², the ratio's logarithm averaged over sets by their precision."""
    used = [each for each in sets if each.scope == "pooled"]
    ratios = [math.log(each.centre_params / 12) / 2 - 1.5 * math.log(_measured_depth(each)) for each in used]
    mean = np.average(ratios, weights=[1 / each.covariance[0][0] for each in used])
    return AspectLaw(name=ASPECT, ratio=math.exp(float(mean)))


def _measured_depth(each: EvidenceSet) -> float:
    return math.exp(each.place) * transition_law().depth_at(each.centre_params)


def _trial(law: DepthLaw, each: EvidenceSet) -> Trial:
    size = each.centre_params
    predicted = law.depth(size).at()
    measured = _measured_depth(each)
    error = math.log(predicted.value / measured)
    own = 0.0
    if predicted.low and predicted.high:
        own = (math.log(predicted.high / predicted.low) / (2 * Z95)) ** 2
    variance = own + each.covariance[0][0]
    return Trial(
        law=law.name,
        set=each.name,
        counted=each.scope == "pooled",
        seen=each.name in SAW.get(law.name, ()),
        size=size,
        measured=measured,
        predicted=predicted,
        error=error,
        covered=abs(error) <= Z95 * math.sqrt(variance),
        log_score=log_density(error, 0.0, variance),
        loss_percent=100 * math.expm1(min(math.exp(each.log_curvature) * error**2, 50.0)),
    )


def _score(law: str, trials: Sequence[Trial]) -> Score | None:
    counted = {trial.set for trial in trials if trial.counted}
    own = [trial for trial in trials if trial.law == law and trial.counted and not trial.seen]
    if not own:
        return None
    return Score(
        law=law,
        judged=len(own),
        covered=sum(trial.covered for trial in own),
        mean_error=float(np.mean([abs(trial.error) for trial in own])),
        log_score=float(np.mean([trial.log_score for trial in own])),
        loss_percent=float(np.mean([trial.loss_percent for trial in own])),
        everywhere=len(own) == len(counted),
    )


def _order(score: Score) -> float:
    return score.mean_error


def _verdict(scores: Sequence[Score]) -> Verdict:
    everywhere = {score.law: score for score in scores if score.everywhere}
    pooled, levine = everywhere.get("pooled"), everywhere.get("levine")
    wins = (
        pooled is not None
        and levine is not None
        and pooled.mean_error <= min(score.mean_error for score in everywhere.values())
        and pooled.covered == pooled.judged
        and pooled.log_score >= levine.log_score
    )
    measured = Interval(pooled.mean_error) if pooled else None
    return Verdict(claim=CLAIM, rule=RULE, outcome="pooled" if wins else "levine", measured=measured)
