"""All sets together: the forest table, the pooled answer, and the law that a plan can follow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.answers import Z95, Answer, Interval, Note, Verdict
from deepwide.errors import DeepwideError, quoted
from deepwide.laws import Bowl, RidgeLaw, transition_law
from deepwide.pooling.random_effects import RandomEffects, combine, spread
from deepwide.pooling.sets import EvidenceSet, Scope, cost_of_factor, load_set, shipped_sets
from deepwide.quantities import plural, show_count

# Scales of the half-normal priors of what differs between sets. ln depth: a factor e^0.3 = 1.35 is usual, more than
# 1.8 is not. ln curvature: 1.6 usual, 2.7 not. The slope in tokens per parameter: the curvature of a set could fall as
# its tokens to the power 0.2 where another's does not fall at all. Growth of the ratio with size: likewise 0.1.
BETWEEN = {"place": 0.3, "log_curvature": 0.5, "token_slope": 0.2, "drift": 0.1}
# Beyond all sets: the standard deviation of published laws' growth d ln(depth) / d ln(size) at 10B block parameters
# (benchmarks.evidence computes it).
GROWTH_ERROR = 0.1
TOKENS_CLAIM = "the cost of a wrong depth changes with tokens per parameter"
TOKENS_RULE = (
    "yes if the 95% interval of the pooled mean slope excludes 0 and every pooled set's own slope has its sign, else no"
)


@dataclass(frozen=True)
class SetRow:
    """A set, or one of its lengths, as a line of the forest table."""

    name: str
    length: str  # empty: the whole set
    scope: Scope
    shapes: int
    sizes: tuple[float, float]
    tokens_per_param: float
    ratio: Interval | None  # best depth / levine's depth; None: no best depth is seen at this length
    factor_2: Interval | None  # percent of loss
    slope: Interval | None  # of ln curvature in ln tokens per parameter
    weight: float | None  # share of the pooled place; None: not pooled


class Evidence(Answer):
    """What the sets say together. `mean` intervals are of the mean over sets, `new` ones of a set not seen yet."""

    sets: list[SetRow]
    ratio_mean: Interval
    ratio_new: Interval
    factor_2_mean: Interval
    factor_2_new: Interval
    between_place: Interval  # standard deviation of ln(best depth) between sets
    between_curvature: Interval
    token_slope: Interval | None
    tokens_per_param: float  # where factor_2 is given
    tokens_verdict: Verdict
    law: RidgeLaw
    notes: list[Note]

    def rows(self) -> list[dict[str, Any]]:
        """The forest table: one row per set and length, then the pooled answer."""
        return [_plain(row) for row in self.sets]

    def __str__(self) -> str:
        ratio, cost = self.ratio_new, self.factor_2_new
        return (
            f"Best depth {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}) times the levine law's; a factor 2 "
            f"off costs {cost.value:.2f}% of loss ({cost.low:.2f} to {cost.high:.2f})"
        )

    __repr__ = __str__


def _plain(row: SetRow) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "set": row.name, "length": row.length, "scope": row.scope, "shapes": row.shapes,
        "smallest": row.sizes[0], "largest": row.sizes[1], "tokens_per_param": row.tokens_per_param,
        "weight": row.weight,
    }  # fmt: skip
    for name, interval in (("ratio", row.ratio), ("factor_2", row.factor_2), ("slope", row.slope)):
        flat |= {
            name: interval.value if interval else None,
            f"{name}_low": interval.low if interval else None,
            f"{name}_high": interval.high if interval else None,
        }
    return flat


def evidence(
    *more: str | Path | EvidenceSet, without: str | Sequence[str] = (), tokens_per_param: float = 20.0
) -> Evidence:
    """Pool the sets that come with deepwide, and `more` of them (files or sets); `without` leaves some out by name.

    A set of a name that is there already replaces it, and a note says so; that, and that a set given is not pooled, are
    cautions of the law. Where the cost depends on tokens per parameter, it is given at `tokens_per_param`.

    >>> evidence().law.name
    'pooled'
    """
    sets = {each.name: each for each in shipped_sets()}
    given = [one if isinstance(one, EvidenceSet) else load_set(one) for one in more]
    replaced = list[Note]()
    for each in given:
        if each.name in sets:
            text = f"the set '{each.name}' that was given takes the place of the one of that name"
            replaced.append(Note.of("set-replaced", text, set=each.name))
        sets[each.name] = each
    without = [without] if isinstance(without, str) else without
    if unknown := next((name for name in without if name not in sets), None):
        raise DeepwideError(f"there is no set '{unknown[:60]}': there are {', '.join(sets)}.")
    if not 0 < tokens_per_param < math.inf:
        raise DeepwideError(f"tokens_per_param must be a number above 0, not {quoted(tokens_per_param)}.")
    answer = pool([each for name, each in sets.items() if name not in without], tokens_per_param)
    names = {each.name for each in given}
    outside = [note for note in answer.notes if note.code == "set-outside" and note.data["set"] in names]
    cautions = tuple(note.text for note in (*replaced, *outside))
    law = answer.law.model_copy(update={"cautions": cautions})
    return answer.model_copy(update={"notes": [*replaced, *answer.notes], "law": law})


def pool(sets: Sequence[EvidenceSet], tokens_per_param: float = 20.0) -> Evidence:
    """The pooled answer of these sets; those outside the sizes of the levine law are shown only."""
    used = [each for each in sets if each.scope == "pooled"]
    if not used:
        left = " and ".join(each.name for each in sets)
        why = f"outside the sizes of the levine law is {left}" if left else "all of them were left out"
        raise DeepwideError(f"no set is left to pool: {why}.")
    reference = math.exp(float(np.mean([math.log(each.centre_tokens_per_param) for each in used])))
    sloped = any(each.token_slope is not None for each in used)
    full = _combine(used, reference) if sloped else None
    slope = full.interval(2, "mean") if full else None
    matters = _tokens_matter(slope, used)
    posterior = _combine(used, None)
    if full is not None and matters:
        posterior, reference = full.moved(1, 2, math.log(tokens_per_param / reference)), tokens_per_param
    between = float(np.median(posterior.between[:, 0])) ** 2
    precision = {each.name: 1 / (each.covariance[0][0] + between) for each in used}
    rows = [row for each in sets for row in _rows(each, precision)]
    place = [posterior.interval(0, of) for of in ("mean", "new")]
    curve = [posterior.interval(1, of) for of in ("mean", "new")]
    return Evidence(
        sets=rows,
        ratio_mean=_exp(place[0]),
        ratio_new=_exp(place[1]),
        factor_2_mean=cost_of_factor(2, _exp(curve[0])),
        factor_2_new=cost_of_factor(2, _exp(curve[1])),
        between_place=posterior.interval(0, "between"),
        between_curvature=posterior.interval(1, "between"),
        token_slope=slope,
        tokens_per_param=reference,
        tokens_verdict=Verdict(
            claim=TOKENS_CLAIM, rule=TOKENS_RULE, outcome="yes" if matters else "no", measured=slope
        ),
        law=_law(used, posterior),
        notes=_notes(sets, used),
    )


def _tokens_matter(slope: Interval | None, used: Sequence[EvidenceSet]) -> bool:
    if slope is None or slope.low is None or slope.high is None or slope.low <= 0 <= slope.high:
        return False
    own = [each.token_slope for each in used if each.token_slope is not None]
    return all(math.copysign(1, m) == math.copysign(1, slope.value) for m in own)


def _combine(used: Sequence[EvidenceSet], reference: float | None) -> RandomEffects:
    """With a reference ratio of tokens to parameters, place, curvature there and slope; else the first two."""
    names = ("place", "log_curvature", "token_slope")[: 2 if reference is None else 3]
    ys, Xs, Vs = [], [], []
    for each in used:
        k = 2 if reference is None or each.token_slope is None else 3
        y = np.array([each.place, each.log_curvature, each.token_slope or 0.0])[:k]
        X = np.eye(k, len(names))
        if reference is not None:
            X[1, 2] = math.log(each.centre_tokens_per_param / reference)
        ys.append(y)
        Xs.append(X)
        Vs.append(np.array(each.covariance)[:k, :k])
    return combine(ys, Xs, Vs, [BETWEEN[name] for name in names])


def _law(used: Sequence[EvidenceSet], posterior: RandomEffects) -> RidgeLaw:
    """Levine's depth times the pooled factor, with the interval of a set not seen yet, and the pooled bowl."""
    base = transition_law()
    drifts = combine(
        [np.array([each.drift]) for each in used],
        [np.eye(1)] * len(used),
        [np.array([[each.drift_error**2]]) for each in used],
        [BETWEEN["drift"]],
    )
    curvature = math.exp(posterior.interval(1).value)
    return RidgeLaw(
        name="pooled",
        about="least loss in all public sets",
        details=f"{math.exp(posterior.interval(0).value):.2f} times the levine law's depth: every public depth × width "
        "set, pooled",
        citation=f"deepwide, pooled over {', '.join(each.name for each in used)}",
        status="measured; interval of a set not seen yet",
        tested=f"{sum(each.shapes for each in used)} shapes of {len(used)} sets",
        fitted_block_params=(min(each.sizes[0] for each in used), max(each.sizes[1] for each in used)),
        base_a=base.a,
        base_b=base.b,
        shift=posterior.interval(0).value,
        centre_params=math.exp(float(np.mean([math.log(each.centre_params) for each in used]))),
        covariance=((spread(posterior.new[:, 0]) ** 2, 0.0), (0.0, float(np.mean(drifts.new**2)))),
        growth_error=GROWTH_ERROR,
        bowl=Bowl(
            curvature=curvature,
            log_error=spread(posterior.new[:, 1]),
            x_range=(min(each.x_range[0] for each in used), max(each.x_range[1] for each in used)),
            source=f"the public sets {' and '.join(each.name for each in used)}",
        ),
    )


def _rows(each: EvidenceSet, precision: dict[str, float]) -> list[SetRow]:
    weight = precision[each.name] / sum(precision.values()) if each.name in precision else None
    rows = [
        SetRow(each.name, "", each.scope, each.shapes, each.sizes, each.centre_tokens_per_param, each.ratio,
               each.factor_2, each.slope, weight)
    ]  # fmt: skip
    for length in each.lengths if len(each.lengths) > 1 else ():
        ratio = _about(length.place, length.place_error)
        curve = _about(length.log_curvature, length.log_curvature_error)
        cost = cost_of_factor(2, curve) if curve else None
        rows.append(
            SetRow(each.name, length.name, each.scope, length.shapes, each.sizes, length.tokens_per_param, ratio, cost,
                   None, None)
        )  # fmt: skip
    return rows


def _about(log: float | None, error: float | None) -> Interval | None:
    if log is None or error is None:
        return None
    return _exp(Interval(log, log - Z95 * error, log + Z95 * error))


def _exp(interval: Interval) -> Interval:
    assert interval.low is not None
    assert interval.high is not None
    return Interval(math.exp(interval.value), math.exp(interval.low), math.exp(interval.high))


def _notes(sets: Sequence[EvidenceSet], used: Sequence[EvidenceSet]) -> list[Note]:
    notes = []
    for each in sets:
        if each.scope != "pooled":
            span = " to ".join(show_count(size) for size in each.sizes)
            text = f"{each.name} ({span} block parameters) is {each.scope}: outside the levine law's sizes, not pooled"
            notes.append(Note.of("set-outside", text, set=each.name, smallest=each.sizes[0], largest=each.sizes[1]))
    few = len(used)
    place, curvature = BETWEEN["place"], BETWEEN["log_curvature"]
    text = (
        f"{plural(few, 'set')} {'says' if few == 1 else 'say'} little about how much sets differ: the interval rests "
        f"on a prior, half-normal with scale {place:g} in ln depth and {curvature:g} in ln curvature"
    )
    return [*notes, Note.of("between-prior", text, sets=few, **BETWEEN)]
