"""From a spec to its cells: each one a complete config with a name, an id and a cost, before anything runs."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError, one_line
from deepwide.quantities import show_count
from deepwide.run import RunFolder, run_id
from deepwide.settings import with_setting
from deepwide.sweeping.spec import Iso, Spec
from deepwide.sweeping.trainers import Cost, Resolved, Trainer, trainer_of

MOST_CELLS = 100_000
WIDEST = 2**20
MOST_MISSES_SHOWN = 6


class NoWidthError(DeepwideError):
    """No width comes near enough to a size; `width` is the nearest, and has `params`."""

    def __init__(self, size: int, depth: int, width: int, params: int) -> None:
        self.miss = f"{show_count(size)} at depth {depth} (width {width} has {show_count(params)})"
        super().__init__(f"no width is near enough to {self.miss}.")


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    id: str
    varied: Mapping[str, Any]  # what distinguishes it, by short name, in the order of the spec
    seed: int
    config: Mapping[str, Any]
    identity: Mapping[str, str]
    cost: Cost

    @property
    def name(self) -> str:
        """What distinguishes the cell, for reading."""
        return " ".join(f"{key.rpartition('.')[2]}={_short(key, value)}" for key, value in self.varied.items())

    def folder(self, runs: Path) -> RunFolder:
        """Its run folder, made if need be; it states the counts of the run."""
        return RunFolder.create(
            runs,
            self.config,
            data_fingerprint=self.identity["data_fingerprint"],
            numerics=self.identity["numerics"],
            counts=self.cost._asdict(),
        )


def cells_of(spec: Spec) -> list[Cell]:
    """Every cell, in the order of the file; the same spec gives the same ids. Points that coincide are one cell."""
    try:
        return _cells(spec)
    except DeepwideError as error:
        sentence = one_line(f"{spec.source}: {error}" if spec.source else str(error))
        raise DeepwideError(sentence, remedies=error.remedies) from None


def _cells(spec: Spec) -> list[Cell]:
    trainer = trainer_of(spec.run)
    fixed = _with({}, {trainer.keys.get(key, key): value for key, value in spec.run.items()})
    axes = {trainer.keys.get(key, key): (key, values) for key, values in spec.grid.items()}
    _refuse_conflicts(spec, fixed, trainer, axes)
    _refuse_gaps(spec, fixed, trainer, axes)
    number = math.prod(len(values) for _, values in axes.values()) * len(spec.seeds)
    number *= len(spec.iso.params) * len(spec.iso.depths) if spec.iso else max(1, len(spec.cells))
    if number > MOST_CELLS:
        raise DeepwideError(f"{spec.name} has {number:,} cells, and {MOST_CELLS:,} is the most: shorten a list.")
    cells: dict[str, Cell] = {}
    checked_seeds: set[int] = set()
    for values in itertools.product(*(values for _, values in axes.values())):
        varied = {name: value for (name, _), value in zip(axes.values(), values, strict=True)}
        point = _with(fixed, dict(zip(axes, values, strict=True)))
        for shape, shaped in _listed(spec, point, trainer) if spec.cells else _shapes(spec.iso, point, trainer):
            own = shape.pop("seed", None)
            first: Resolved | None = None
            for seed in spec.seeds if own is None else [own]:
                if first is None or seed not in checked_seeds:
                    first = trainer.resolve(_with(shaped, {trainer.keys["seed"]: seed}))
                    checked_seeds.add(seed)
                # Nothing else depends on the seed: very large sweeps are resolved once per shape.
                resolved = Resolved(first.config | {trainer.keys["seed"]: seed}, first.cost)
                identity = trainer.identity(resolved.config)
                name = run_id(resolved.config, **identity)
                seeded = {"seed": seed} if len(spec.seeds) > 1 or own is not None else {}
                cell = Cell(name, shape | varied | seeded, seed, resolved.config, identity, resolved.cost)
                cells.setdefault(name, cell)
    if not cells:
        raise DeepwideError(f"{spec.name} has no cell: no depth has a width within iso.tolerance of a size.")
    return list(cells.values())


def _listed(spec: Spec, point: dict[str, Any], trainer: Trainer) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The cells that a spec lists, likewise; `seed` among what names one is its own."""
    for listed in spec.cells:
        settings = {trainer.keys.get(key, key): value for key, value in listed.items() if key != "seed"}
        yield dict(listed), _with(point, settings)


def _shapes(
    iso: Iso | None, point: dict[str, Any], trainer: Trainer
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The shapes of a point of the grid: what names each, and the point with it."""
    if iso is None:
        yield {}, point
        return
    widths, misses = {}, []
    for size, depth in itertools.product(iso.params, iso.depths):
        try:
            widths[size, depth] = width_for(iso, size, depth, point, trainer)
        except NoWidthError as error:
            misses.append(error.miss)
    if misses and iso.misses == "refuse":
        raise _too_far(iso, misses)
    for (size, depth), width in widths.items():
        shaped, resolved = _shaped(iso, depth, width, point, trainer)
        cost = resolved.cost
        params = cost.block_params if iso.counting == "block" else cost.total_params
        tokens = iso.tokens
        if iso.tokens_per_param:
            tokens = round(iso.tokens_per_param * params)
        if iso.flops:
            tokens = max(1, iso.flops * cost.tokens // cost.train_flops)
        if tokens:
            shaped = _with(shaped, {trainer.keys["tokens"]: tokens})
        yield {"size": size, "depth": depth, "width": width}, shaped


def width_for(iso: Iso, size: int, depth: int, point: Mapping[str, Any], trainer: Trainer) -> int:
    """The width, a multiple of `width_multiple`, whose exact parameter count is nearest to the size."""

    def params(multiple: int) -> int:
        cost = _shaped(iso, depth, multiple * iso.width_multiple, point, trainer)[1].cost
        return cost.block_params if iso.counting == "block" else cost.total_params

    low, high = 0, 1
    while params(high) <= size and high * iso.width_multiple < WIDEST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if params(middle) > size else (middle, high)
    best = min((max(1, low), high), key=lambda m: abs(math.log(params(m) / size)))
    width, reached = best * iso.width_multiple, params(best)
    if abs(reached / size - 1) > iso.tolerance:
        raise NoWidthError(size, depth, width, reached)
    return width


def _too_far(iso: Iso, misses: Sequence[str]) -> DeepwideError:
    """One sentence about all sizes and depths without a width."""
    shown = ", ".join(misses[:MOST_MISSES_SHOWN])
    more = f" and {len(misses) - MOST_MISSES_SHOWN} more" if len(misses) > MOST_MISSES_SHOWN else ""
    return DeepwideError(
        f"no width in multiples of {iso.width_multiple} is within {100 * iso.tolerance:g}% of {shown}{more}: raise "
        "iso.tolerance or the size, lower iso.width_multiple, or leave such cells out with "
        'iso.misses = "skip".'
    )


def _shaped(
    iso: Iso, depth: int, width: int, point: Mapping[str, Any], trainer: Trainer
) -> tuple[dict[str, Any], Resolved]:
    """The point with this shape, as written and resolved; a length yet to be chosen stands in as the longest."""
    shaped = _with(point, {trainer.keys["depth"]: depth, trainer.keys["width"]: width})
    tokens = trainer.longest(shaped) if iso.flops or iso.tokens_per_param else iso.tokens
    full = _with(shaped, {trainer.keys["tokens"]: tokens}) if tokens else shaped
    return shaped, trainer.resolve(full)


def _refuse_conflicts(spec: Spec, fixed: Mapping[str, Any], trainer: Trainer, axes: Mapping[str, Any]) -> None:
    """A key may be set in one place only: what would win otherwise is anyone's guess."""
    iso = {trainer.keys[name] for name in ("depth", "width")} if spec.iso else set()
    if spec.iso and (spec.iso.tokens or spec.iso.flops or spec.iso.tokens_per_param):
        iso.add(trainer.keys["tokens"])
    for written in dict.fromkeys(key for listed in spec.cells for key in listed if key != "seed"):
        key = trainer.keys.get(written, written)
        other = next((where for where, has in (("grid", key in axes), ("run", _has(fixed, key))) if has), None)
        if other:
            raise DeepwideError(f"both cells and {other} set '{key}': keep one of them.")
    for key, (written, _) in axes.items():
        if key in iso:
            raise DeepwideError(f"both grid.{written} and iso set '{key}': keep one of them.")
        if key == trainer.keys["seed"]:
            raise DeepwideError(
                f"grid.{written}: write seeds = […] at the top, so that every shape gets the same seeds."
            )
        if _has(fixed, key):
            raise DeepwideError(f"both run.{key} and grid.{written} set '{key}': keep one of them.")
    for key in (*iso, trainer.keys["seed"]):
        if _has(fixed, key):
            raise DeepwideError(
                f"run.{key} is set by {'seeds' if key == trainer.keys['seed'] else 'iso'}: leave it out."
            )


def _refuse_gaps(spec: Spec, fixed: Mapping[str, Any], trainer: Trainer, axes: Mapping[str, Any]) -> None:
    """A run needs its required settings; if one is only misspelt, name the misspelling."""
    for name in trainer.required:
        key = trainer.keys[name]
        listed = spec.cells and all({name, key} & cell.keys() for cell in spec.cells)
        if not (spec.iso or listed or key in axes or _has(fixed, key)):
            trainer.check_names(_with(fixed, {axis: values[0] for axis, (_, values) in axes.items()}))
            raise DeepwideError(f"the sweep gives no {name}: write grid.{name} = […], an [iso] part, or run.{key}.")


def _has(config: Mapping[str, Any], key: str) -> bool:
    for part in key.split("."):
        if not isinstance(config, Mapping) or part not in config:
            return False
        config = config[part]
    return True


def _with(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with dotted keys set."""
    result = dict(config)
    for key, value in changes.items():
        result = with_setting(result, key.split("."), value)
    return result


def _short(key: str, value: Any) -> str:
    """A value for reading: sizes and large integers with a unit, all sizes alike (6K beside 12K)."""
    if isinstance(value, float):
        return f"{value:g}"
    large = isinstance(value, int) and value >= 10_000
    return show_count(value) if key == "size" or large else str(value)
