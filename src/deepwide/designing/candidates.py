"""What may be run: every size, depth and length of a base sweep, each with its exact cost and expected time."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwide.designing.choosing import Pool
from deepwide.errors import DeepwideError, quoted
from deepwide.fitting import SAME_LENGTH, Places, Runs
from deepwide.quantities import parse_count, show_count
from deepwide.sweeping import Cell, Spec, cells_of, expected_seconds, make_spec, trainer_of

Choice = str | int | float | Sequence[str | int | float]
MOST_SEEDS = 8  # of one shape
MOST_CANDIDATES = 1500
FAR_LENGTH = 100.0  # times the longest, or the shortest over it
STEPS = {"sizes": 2.0, "depths": math.sqrt(2), "tokens": 2.0}  # from one to the next in a range


class Candidate(NamedTuple):
    """One shape at one length: a run for each point of the base's grid."""

    size: int  # as asked for
    depth: int
    width: int
    tokens: int
    block_params: int
    total_params: int
    train_flops: int  # of all its runs
    expected_seconds: float  # likewise, on one worker
    cells: int


def values_of(choice: Choice, what: str) -> list[int]:
    """The values that a choice names: one, several, "10k,20k", or a range "10k:1M" in steps of a factor.

    >>> values_of("10k:80k", "sizes"), values_of("1:8", "depths"), values_of([1, 2], "depths")
    ([10000, 20000, 40000, 80000], [1, 2, 3, 4, 6, 8], [1, 2])
    """
    parts: list[str | int | float]
    if isinstance(choice, np.ndarray):
        choice = np.atleast_1d(choice).tolist()
    if not isinstance(choice, str | int | float | Sequence):
        raise DeepwideError(f"the {what} are a number, a list of them or a range such as '1:8', not {quoted(choice)}.")
    if not isinstance(choice, str):
        parts = list(choice) if isinstance(choice, Sequence) else [choice]
    elif ":" in choice:
        low, high = (parse_count(part, f"an end of the range of {what}") for part in choice.split(":", 1))
        if high < low:
            raise DeepwideError(f"the range of {what} {quoted(choice)} ends before it begins: write LOW:HIGH.")
        number = math.ceil(round(math.log(high / low) / math.log(STEPS[what]), 6))
        steps = np.geomspace(float(low), float(high), number + 1).tolist() if number else [low]
        parts = [max(low, min(high, round(float(f"{step:.3g}")))) for step in steps]
    else:
        parts = list(choice.split(","))
    if broken := [part for part in parts if what == "depths" and _fraction(part)]:
        raise DeepwideError(f"depths are whole numbers of layers, not {quoted(broken[0])}.")
    values = sorted({parse_count(part, f"one of the {what}") for part in parts})
    if not values:
        raise DeepwideError(f"no {what} are given: give at least one.")
    return values


def _fraction(part: str | int | float) -> bool:
    try:
        return float(part) % 1 != 0
    except ValueError:  # not a plain number: the parser says what is wrong with it
        return False


def candidates(
    base: Spec,
    *,
    sizes: Choice | None = None,
    depths: Choice | None = None,
    tokens: Choice | None = None,
    runs: Path | None = None,
    threads: int = 1,
) -> list[Candidate]:
    """Everything that the base sweep allows; sizes, depths and tokens replace those of its iso part."""
    iso: dict[str, Any] = base.iso.model_dump(exclude_none=True) if base.iso else {}
    for key, choice, what in (("params", sizes, "sizes"), ("depths", depths, "depths")):
        if choice is not None:
            iso[key] = values_of(choice, what)
        elif key not in iso:
            raise DeepwideError(f"the base sweep has no iso.{key}: give the {what} that may be run.")
    lengths: list[int | None] = [None]
    if tokens is not None:
        lengths = list(values_of(tokens, "tokens"))
        iso = {key: value for key, value in iso.items() if key not in ("tokens", "flops", "tokens_per_param")}
    number = len(iso["params"]) * len(iso["depths"]) * len(lengths)
    if number > MOST_CANDIDATES:
        raise DeepwideError(
            f"{number:,} shapes and lengths may be run, and {MOST_CANDIDATES:,} is the most: choose fewer."
        )
    table = base.model_dump(exclude={"cells", "iso"}) | {"seeds": base.seeds[:1]}
    groups: dict[tuple[int, int, int], list[Cell]] = {}
    for length in lengths:
        part = iso | {"misses": "skip"} | ({} if length is None else {"tokens": length})
        for cell in cells_of(make_spec(table | {"iso": part}, base.source)):
            groups.setdefault((cell.cost.depth, cell.cost.width, cell.cost.tokens), []).append(cell)
    cells = [cell for group in groups.values() for cell in group]
    seconds = dict(zip((cell.id for cell in cells), expected_seconds(cells, runs or Path("."), threads), strict=True))
    return [_candidate(group, sum(seconds[cell.id] for cell in group)) for group in groups.values()]


def _candidate(group: Sequence[Cell], seconds: float) -> Candidate:
    cost = group[0].cost
    flops = sum(cell.cost.train_flops for cell in group)
    size = int(group[0].varied["size"])
    return Candidate(
        size, cost.depth, cost.width, cost.tokens, cost.block_params, cost.total_params, flops, seconds, len(group)
    )


def seeds_used(candidate: Candidate, runs: Runs | None) -> set[int]:
    """The seeds that a shape was already run with at this length."""
    if runs is None:
        return set()
    same = (runs.depth == candidate.depth) & (np.abs(runs.block_params / candidate.block_params - 1) < 1e-9)
    same &= np.isnan(runs.tokens) | (np.abs(runs.tokens / candidate.tokens - 1) < 1e-9)
    seeds = {int(seed) for seed in runs.seed[same]}
    return seeds if len(seeds) == same.sum() else seeds | set(range(int(same.sum())))


def pool_of(options: Sequence[Candidate], cost: Sequence[float], used: Sequence[set[int]]) -> Pool:
    """Candidates as columns."""
    depth, block, total, tokens = (
        np.array([getattr(option, name) for option in options], dtype=float)
        for name in ("depth", "block_params", "total_params", "tokens")
    )
    places = Places(depth, block, total, tokens, np.ones(len(options)))
    repeats = np.array([max(0, MOST_SEEDS - len(seeds)) for seeds in used])
    return Pool(places, np.array(cost, dtype=float), repeats)


def share_at(options: Sequence[Candidate], params: float) -> float:
    """ln(total/block) of a model of the target's size: by that of the largest candidate, whose embeddings grow like
    the width.
    """
    largest = max(options, key=lambda option: option.block_params)
    wider = math.sqrt(params / largest.block_params)  # at equal depth; what depth adds is less than what it leaves out
    outside = (largest.total_params - largest.block_params) * wider
    return math.log1p(outside / params)


def target_length(options: Sequence[Candidate], runs: Runs | None, asked: float | None) -> float | None:
    """The tokens that the target is for: as asked for, or the most that may be run; None where there is one length, or
    each size has its own (a ladder).

    Refuses a length that nothing could tell of.
    """
    may = np.array([float(option.tokens) for option in options])
    known = runs.tokens[~np.isnan(runs.tokens)] if runs is not None else np.zeros(0)
    lengths = np.concatenate([may, known])
    one = bool(lengths.max() <= SAME_LENGTH * lengths.min())
    if one and asked is not None and not 1 / SAME_LENGTH < asked / may.max() < SAME_LENGTH:
        raise DeepwideError(
            f"all runs have {show_count(round(may.max()))} tokens, so none would tell the best depth at "
            f"{show_count(round(asked))}: allow several lengths."
        )
    if asked is not None and not lengths.min() / FAR_LENGTH <= asked <= lengths.max() * FAR_LENGTH:
        least, most = (show_count(round(end)) for end in (lengths.min(), lengths.max()))
        raise DeepwideError(
            f"a length of {show_count(round(asked))} tokens is over {FAR_LENGTH:g} times away from those of the runs "
            f"({least} to {most}): they say nothing of it."
        )
    if asked is not None or one:
        return None if one else asked
    several = len({(option.depth, option.width) for option in options}) < len(options)
    return float(may.max()) if several or may.max() <= SAME_LENGTH * may.min() else None


def tokens_key(base: Spec) -> str:
    """What a cell of this sweep calls its length."""
    return trainer_of(base.run).keys["tokens"]
