"""`sweep_design`: from a base sweep, the runs so far, a target and a budget to the runs to do next."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from deepwide.answers import Interval, Note
from deepwide.designing.answer import FEW_SWEEPS, WORTHLESS, Design, DesignedRun, Stage, show_ratio
from deepwide.designing.candidates import (
    Candidate,
    Choice,
    candidates,
    pool_of,
    seeds_used,
    share_at,
    target_length,
    tokens_key,
)
from deepwide.designing.choosing import DEPTHS, SHAPES, Pool
from deepwide.designing.deciding import Decision, Goalpost, decide
from deepwide.designing.rehearsing import rehearsed
from deepwide.errors import DeepwideError, at_least_one, quoted
from deepwide.fitting import SAME_LENGTH, Goal, Runs, read_runs
from deepwide.quantities import parse_count, parse_percent, show_count, show_seconds
from deepwide.sweeping import Spec, as_spec, runs_folder

SpecLike = Spec | Mapping[str, Any] | str | Path
Unit = Literal["FLOPs", "seconds"]
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|seconds?|min|minutes?|h|hours?|d|days?)\s*")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # by the first letter
UNTIL_FITTED = ("no_fit", "no_bowl", "other_length")  # notes on the next batch
HELPS = 0.03  # a fall of ln(high/low) by less than this share is no help
ENOUGH_TOKENS = 10.0  # per parameter: of Gemstones' shortest runs, which told of the longer ones
MOST_REHEARSED = 1000
FAR_BELOW = 1000  # times smaller than the runs so far: growth is not one curve over so many sizes


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    goal: Goal
    params: float
    budget: float
    unit: Unit
    until: float | None
    batch: int
    length: float | None = None
    noise: float | None = None

    @classmethod
    def of(
        cls,
        target: str | float,
        goal: Goal,
        budget: str | float,
        until: float | None,
        batch: int,
        length: str | float | None = None,
        noise: str | float | None = None,
    ) -> Self:
        """From what a user writes."""
        if goal not in ("depth", "loss"):
            raise DeepwideError(f"the goal is depth or loss, not {quoted(goal)}.")
        at_least_one(batch=batch)
        if until is not None:
            until = _above_one(until)
        time = DURATION.fullmatch(budget) if isinstance(budget, str) else None
        flops = "a budget of FLOPs, or a time such as 30min, 2h or 3d"
        amount = float(time[1]) * SECONDS[time[2][0]] if time else float(parse_count(budget, flops))
        if not amount > 0:
            raise DeepwideError(f"the budget must be above 0, not {quoted(budget)}.")
        params = float(parse_count(target, "a target, a size in block parameters"))
        tokens = None if length is None else float(parse_count(length, "a length in tokens"))
        scatter = None if noise is None else parse_percent(noise, "the noise of one run's loss, a share of it")
        return cls(goal, params, amount, "seconds" if time else "FLOPs", until, batch, tokens, scatter)


def _above_one(until: Any) -> float:
    try:
        value = float(until)
    except (TypeError, ValueError):
        value = math.nan
    if not 1 < value < math.inf:
        raise DeepwideError(f"until is the high/low of an interval, a number above 1, not {quoted(until)}.")
    return value


class Spent(NamedTuple):
    """By the batches before."""

    runs: int = 0
    train_flops: int = 0
    seconds: float = 0.0

    def of(self, unit: Unit) -> float:
        """In the unit of the budget."""
        return float(self.train_flops) if unit == "FLOPs" else self.seconds


def sweep_design(
    base: SpecLike,
    runs: Any = None,
    *,
    target: str | float,
    budget: str | float,
    goal: Goal = "depth",
    sizes: Choice | None = None,
    depths: Choice | None = None,
    tokens: Choice | None = None,
    length: str | float | None = None,
    noise: str | float | None = None,
    until: float | None = None,
    batch: int = 4,
    threads: int = 1,
    folder: Path | str | None = None,
    rehearse: int = 20,
) -> Design:
    """The runs that should shrink the target's 95% interval most for a budget, in batches; starts nothing.

    `base` is a sweep whose settings all runs share and whose iso part says what may be run; `sizes`, `depths` and
    `tokens` replace that (a list, or a range such as "10k:1M"). `runs` are those so far: folders, tables, `Runs`, None.
    `target` is a size in block parameters, `length` its tokens (default: the longest that may be run); `budget` is in
    FLOPs ("1e17") or time of one worker ("2h"); `until` is the high/low of an interval that suffices; `noise` is by how
    much losses of one shape differ between seeds ("1.5%"), if you know it, and counts until runs can be fitted. Run the
    first batch, give its results as `runs`, and ask again. Until runs can be fitted, `rehearse` makes up so many sweeps
    of these runs and fits them, to see how many end with an interval.
    """
    spec = as_spec(base)
    request = Request.of(target, goal, budget, until, batch, length, noise)
    home = runs_folder(spec, folder)
    options = candidates(spec, sizes=sizes, depths=depths, tokens=tokens, runs=home, threads=threads)
    return design_next(spec, as_runs(runs), request, options, rehearse=rehearse)


def as_runs(runs: Any) -> Runs | None:
    """Runs from whatever the caller has."""
    if runs is None or isinstance(runs, Runs):
        return runs
    if isinstance(runs, Sequence) and not isinstance(runs, str) and not runs:
        return None
    return read_runs(runs)


def design_next(
    spec: Spec,
    runs: Runs | None,
    request: Request,
    options: Sequence[Candidate],
    *,
    spent: Spent = Spent(),
    before: Sequence[Stage] = (),
    taken: Mapping[tuple[int, int, int], set[int]] | None = None,
    rehearse: int = 0,
) -> Design:
    """The design with what is left of the budget; `before` are the stages so far.

    `taken` are the seeds of (depth, width, tokens) to avoid.
    """
    if not isinstance(rehearse, int) or isinstance(rehearse, bool) or not 0 <= rehearse <= MOST_REHEARSED:
        raise DeepwideError(f"the number of rehearsals must be a whole number from 0 to {MOST_REHEARSED}.")
    if runs is not None and runs.diverged.all():
        raise DeepwideError(
            f"all {len(runs)} runs so far diverged, so there is nothing to design by: mend their recipe (a lower "
            "learning rate), or start without them."
        )
    used = [
        seeds_used(option, runs) | (taken or {}).get((option.depth, option.width, option.tokens), set())
        for option in options
    ]
    depths = {option.depth for option in options} | ({*runs.depth.tolist()} if runs is not None else set())
    if len(depths) < DEPTHS:
        raise DeepwideError(
            f"a best depth needs runs of at least {DEPTHS} depths, and with what may be run there are {len(depths)}: "
            "allow more depths."
        )
    _check_shapes(runs, options)
    cost = [float(option.train_flops if request.unit == "FLOPs" else option.expected_seconds) for option in options]
    left = request.budget - spent.of(request.unit)
    if not before and min(cost) > left:
        cheapest = options[cost.index(min(cost))]
        raise DeepwideError(
            f"the budget of {_amount(left, request.unit)} pays for no run: the cheapest that may be run, "
            f"{cheapest.depth} layers of width {cheapest.width}, costs {_amount(min(cost), request.unit)}."
        )
    pool = pool_of(options, cost, used)
    length = target_length(options, runs, request.length)
    goal = Goalpost(request.goal, request.params, share_at(options, request.params), length)
    decision = decide(
        runs, pool, goal, left, least=request.batch, until=request.until, noise=request.noise, examine=True
    )
    stop = _stop(decision, request, left, pays=min(cost) <= left) or _too_small(decision, runs, options)
    now = Stage(
        batch=len(before),
        runs=spent.runs,
        train_flops=spent.train_flops,
        expected_seconds=spent.seconds,
        ratio=decision.ratio,
        interval=decision.interval,
        expected=False,
    )
    chosen = [] if stop else _runs(decision, options, used, spec.seeds[0])
    notes = [] if stop and stop.code == "small" else _notes(decision, request, pool, left)
    notes = [each for each in notes if not (stop and each.code in UNTIL_FITTED)]
    rehearsal = None
    if rehearse and chosen and decision.fit is None and runs is None:
        everything = [run for batch in decision.batches for run in batch]
        rehearsal = rehearsed(pool, everything, goal, noise=request.noise, number=rehearse)
        reached = rehearsal.ratio or math.inf
        if request.until is not None and rehearse >= FEW_SWEEPS and reached > request.until:
            text = f"more than half of the made-up sweeps end with more than {request.until:g}, or with none"
            notes.append(Note.of("rehearsed-short", text, until=request.until))
    return Design(
        name=spec.name,
        goal=request.goal,
        target_params=request.params,
        target_tokens=goal.tokens,
        budget=request.budget,
        unit=request.unit,
        spent=spent.of(request.unit),
        source=runs.source if runs is not None else "",
        runs_before=len(runs) if runs is not None else 0,
        runs=tuple(chosen),
        stages=(*before, now, *([] if stop else _expected(decision, chosen, now))),
        frontier=tuple((spent.of(request.unit) + amount, ratio) for amount, ratio in decision.frontier),
        noise=decision.noise,
        rehearsal=rehearsal,
        floor=decision.floor,
        stop=stop,
        notes=(*notes, *_others(runs, used), *_short(options)),
        warnings=decision.fit.warnings if decision.fit else (),
        spec=_spec(spec, [run for run in chosen if run.batch == 1]),
    )


def _check_shapes(runs: Runs | None, options: Sequence[Candidate]) -> None:
    """Refuse a pool that no budget could fit."""
    before = set() if runs is None else {*zip(runs.depth.tolist(), runs.block_params.tolist(), strict=True)}
    shapes = before | {(option.depth, option.block_params) for option in options}
    if len(shapes) < SHAPES:
        raise DeepwideError(
            f"a best depth needs runs of at least {SHAPES} shapes, and with what may be run there are {len(shapes)}: "
            "allow more sizes or depths."
        )


def _runs(decision: Decision, options: Sequence[Candidate], used: Sequence[set[int]], first: int) -> list[DesignedRun]:
    """The chosen runs with their seeds: of each shape the first that nobody has used."""
    taken = [set(seeds) for seeds in used]
    runs = []
    for number, batch in enumerate(decision.batches, 1):
        for index in batch:
            option = options[index]
            seed = next(seed for seed in range(first, first + len(taken[index]) + 1) if seed not in taken[index])
            taken[index].add(seed)
            runs.append(DesignedRun(batch=number, seed=seed, **option._asdict()))
    return runs


def _expected(decision: Decision, runs: Sequence[DesignedRun], now: Stage) -> list[Stage]:
    """What to expect after each batch: the interval now, narrower about the same value."""
    stages = []
    last = now
    for number, ratio in enumerate(decision.ratios, 1):
        these = [run for run in runs if run.batch == number]
        interval = decision.interval
        if interval is not None and interval.low and interval.high:
            share = math.log(ratio) / math.log(interval.high / interval.low)
            low, high = (interval.value * (end / interval.value) ** share for end in (interval.low, interval.high))
            interval = Interval(interval.value, low, high)
        last = Stage(
            batch=last.batch + 1,
            runs=last.runs + len(these),
            train_flops=last.train_flops + sum(run.train_flops for run in these),
            expected_seconds=last.expected_seconds + sum(run.expected_seconds for run in these),
            ratio=ratio,
            interval=interval,
            expected=True,
        )
        stages.append(last)
    return stages


def _stop(decision: Decision, request: Request, left: float, *, pays: bool) -> Note | None:
    """Why to stop, if there is a reason."""
    if request.until is not None and decision.interval is not None and decision.ratio <= request.until:
        text = f"the interval's high/low is {decision.ratio:.3g}, and {request.until:g} was asked for"
        return Note.of("interval", text, ratio=decision.ratio, until=request.until)
    if not decision.batches and not (pays and decision.interval is not None):
        text = "what is left of the budget pays for no run that would help"
        if left <= 0:
            spent = _amount(request.budget - left, request.unit)
            text = f"the budget is spent: {spent} of {_amount(request.budget, request.unit)}"
        elif decision.fit is None:
            text = (
                f"the budget pays for too few runs: nothing can be fitted to fewer than {SHAPES} shapes of {DEPTHS} "
                f"depths, the cheapest of which cost {_amount(decision.first_cost or 0.0, request.unit)}"
            )
        return Note.of("budget", text)
    after = decision.ratios[-1] if decision.ratios else decision.ratio
    enough = request.until is not None and after <= request.until
    if decision.interval is not None and not enough and math.log(after) > (1 - HELPS) * math.log(decision.ratio):
        beyond, rest = decision.floor_share
        now, then = show_ratio(decision.ratio), show_ratio(after)
        little = f"all that is left of the budget would narrow the interval's high/low only from {now} to {then}"
        if math.log(decision.floor) < (1 - HELPS) * math.log(decision.ratio):
            text = f"this budget cannot help: {little}; a larger one would, towards {show_ratio(decision.floor)}"
        else:
            text = (
                f"more runs cannot help: {little}, and by what is known now no number of such runs goes below "
                f"{show_ratio(decision.floor)}; of that variance {100 * beyond:.0f}% is growth beyond the largest size "
                f"that may be run, and {100 * rest:.0f}% what the model misses and assumes"
            )
        return Note.of("misfit", text, ratio=decision.ratio, after=after, floor=decision.floor, beyond=beyond)
    return None


def _too_small(decision: Decision, runs: Runs | None, options: Sequence[Candidate]) -> Note | None:
    """Whether all that may be run is far smaller than what was.

    By the model such runs are a long lever. Simulated, they widened the interval (1.42 to 1.87 where 1.37 was promised:
    growth as by Levine, runs of 1e8 and more, then some of 1e4), because no one curve holds over so many sizes.
    """
    if runs is None or decision.interval is None:
        return None
    largest, allowed = float(runs.block_params.max()), max(option.block_params for option in options)
    if largest < FAR_BELOW * allowed:
        return None
    text = (
        f"the runs so far have up to {show_count(largest)} parameters, {largest / allowed:,.0f} times the largest that "
        f"may be run ({show_count(allowed)}): runs so much smaller say little about larger ones; allow larger sizes"
    )
    return Note.of("small", text, largest=largest, allowed=allowed)


def _others(runs: Runs | None, used: Sequence[set[int]]) -> list[Note]:
    """Whether the runs may be somebody else's: not one is of a shape and length of this sweep's."""
    if runs is None or any(used):
        return []
    text = (
        f"none of the {len(runs)} runs so far has a shape and length that may be run here: they are taken to have this "
        "sweep's data, tokens and recipe; if they do not, start without them, because losses of different data do not "
        "belong in one fit"
    )
    return [Note.of("other-runs", text, runs=len(runs))]


def _short(options: Sequence[Candidate]) -> list[Note]:
    """Whether some lengths that may be run are so short that they say little of longer ones.

    A real sweep of 1M to 8M tokens stated 4.2 (2.0 to 8.6) where runs of 8M tokens say 12 (4.9 to 22): networks of 400K
    parameters had hardly begun to learn after 1M tokens.
    """
    lengths = [option.tokens for option in options]
    least = min(options, key=lambda option: option.tokens / option.block_params)
    if max(lengths) <= SAME_LENGTH * min(lengths) or least.tokens >= ENOUGH_TOKENS * least.block_params:
        return []
    text = (
        f"{show_count(least.tokens)} tokens are {least.tokens / least.block_params:.2g} per parameter of the largest "
        "networks: runs so short say little of longer ones, and may mislead; allow lengths of at least "
        f"{ENOUGH_TOKENS:g} tokens per parameter"
    )
    return [Note.of("short", text, tokens=least.tokens, params=least.block_params)]


def _deeper(decision: Decision, pool: Pool) -> list[Note]:
    """Whether the best depth of the target lies beyond what may be run."""
    least, most = float(pool.places.depth.min()), float(pool.places.depth.max())
    best = max(decision.interval.value, 1.0) if decision.interval else least
    if least <= best <= most:
        return []
    end, ask = (f"at most {most:g}", "deeper") if best > most else (f"at least {least:g}", "shallower")
    text = f"the target's best depth is estimated at {best:.3g} layers, and {end} may be run: allow {ask} networks"
    return [Note.of("depths-end", text, best=best, least=least, most=most)]


def _notes(decision: Decision, request: Request, pool: Pool, left: float) -> list[Note]:
    notes = []
    largest = float(pool.places.block_params.max())
    if decision.fit is None:
        scatter = f"noise of {100 * (decision.noise or 0.0):.2g}% of loss"
        scatter += "" if request.noise else "; if you know it, say so"
        text = (
            f"the runs so far allow no fit: the first batch is chosen by what is assumed of any sweep ({scatter}), and "
            f"has at least {SHAPES} shapes of {DEPTHS} depths"
        )
        notes.append(Note.of("no_fit", text))
    elif decision.interval is None and not decision.fit.declined:
        text = (
            "the runs so far have one length, and not the target's: the next tell what length does to the best depth; "
            "if the target has the length of the runs so far, give that as its length"
        )
        notes.append(Note.of("other_length", text))
    elif decision.interval is None:
        text = f"the runs so far show no best depth ({decision.fit.declined}): the next are chosen to see one"
        notes.append(Note.of("no_bowl", text, flat=decision.fit.flat))
    if decision.interval is not None and request.goal == "depth" and decision.interval.value < 1:
        notes.append(Note.of("below-one", "a best depth below 1 means that one layer is best there"))
    if decision.fit is not None and request.noise is not None:
        text = "the noise that was given counts until runs can be fitted: now it is what the fit finds"
        notes.append(Note.of("noise-found", text, noise=request.noise))
    after = decision.ratios[-1] if decision.ratios else decision.ratio
    if request.until is not None and after > request.until:
        text = f"a high/low of {request.until:g} is not expected: with what may be run and paid {show_ratio(after)} is"
        notes.append(Note.of("out-of-reach", text, until=request.until, after=after))
    notes += _deeper(decision, pool) if request.goal == "depth" else []
    if request.params > largest * 1.001:
        factor = request.params / largest
        by = "the noise that is assumed" if decision.fit is None else "what is known now"
        text = f"the target is {factor:.3g} times the largest size that may be run, and "
        if request.goal == "depth" and decision.floor < WORTHLESS:
            text += f"by {by} more and more of these runs would bring high/low towards {show_ratio(decision.floor)}; "
        what = "growth is" if request.goal == "depth" else "loss against size is"
        text += f"what they give rests on how {what} assumed to go on there"
        notes.append(Note.of("beyond", text, factor=factor, floor=decision.floor))
    planned = sum(float(pool.cost[run]) for batch in decision.batches for run in batch)
    if request.until is None and decision.batches and planned < left / 2:
        text = (
            f"{_amount(planned, request.unit)} of {_amount(left, request.unit)} are planned: no more of what may be "
            "run would narrow the interval enough to count"
        )
        notes.append(Note.of("unspent", text, planned=planned, budget=left))
    return notes


def _spec(spec: Spec, runs: Sequence[DesignedRun]) -> dict[str, Any]:
    """The next batch as a sweep: the base, with its cells one by one."""
    length = tokens_key(spec)
    table = spec.model_dump(exclude={"cells", "iso"})
    fixed = length in table["run"]
    cells = [
        {"depth": run.depth, "width": run.width} | ({} if fixed else {length: run.tokens}) | {"seed": run.seed}
        for run in runs
    ]
    return table | {"cells": cells}


def _amount(amount: float, unit: Unit) -> str:
    return show_seconds(amount) if unit == "seconds" else f"{show_count(amount)} FLOPs"
