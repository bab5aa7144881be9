"""Runs as a table of columns: what every fit reads, wherever they come from (see `tables`).

A *group* is all runs that differ in nothing but the seed. A run that diverged is kept: its loss is not a number, but
that it was bad is an observation (see `Runs.bounds`). Resamples are weights on the rows, by the units that are
independent.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from deepwide.answers import Interval, Note, to_pandas, to_polars
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.fitting.words import note
from deepwide.laws import SAME_LENGTH as SAME_LENGTH
from deepwide.quantities import Floats, Integers, Numbers

if TYPE_CHECKING:
    import pandas
    import polars

Counting = Literal["block", "total"]
COLUMNS = (
    "depth", "width", "block_params", "total_params", "tokens", "train_flops", "loss", "seed", "lr", "status",
)  # fmt: skip
SHAPE = ("depth", "width", "block_params", "total_params")
NEAR = math.log(1.5)  # runs within this of a diverged one's size say what its loss exceeds
BLOCK_MATRICES = 12  # a plain block: 4 d² of attention, 8 d² of feed-forward
INSTEAD = {  # of a column that is missing
    "total_params": ", or give the rows of the embedding",
    "tokens": ", or give their number if all runs had as many: tokens=20B",
    "block_params": ", or the width, from which 12·depth·width² follows (column width=YOUR_COLUMN)",
}


@dataclass(frozen=True, eq=False)
class Runs:
    """One row per finished run; what is not known is NaN. A diverged run has a NaN loss and `diverged` set."""

    depth: Floats
    width: Floats
    block_params: Floats
    total_params: Floats
    tokens: Floats
    loss: Floats
    seed: Integers
    diverged: Numbers
    source: str = ""
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.loss)

    @classmethod
    def of(cls, *, loss: Any, source: str = "", notes: Sequence[Note] = (), **columns: Any) -> Self:
        """Runs from columns; block parameters default to 12·depth·width², tokens to train_flops / 6·total_params.

        >>> len(Runs.of(depth=[2, 4], width=[64, 45], loss=[1.5, 1.4]))
        2
        """
        values = np.atleast_1d(np.asarray(loss, dtype=float))
        given = {name: column for name, column in columns.items() if column is not None}
        if unknown := next((name for name in given if name not in (*COLUMNS, "diverged")), None):
            raise DeepwideError(f"runs have no column '{unknown}': {did_you_mean(unknown, COLUMNS)}")

        def column(name: str, default: float = math.nan) -> Floats:
            numbers = np.asarray(given.get(name, default), dtype=float)
            if numbers.ndim and numbers.shape != values.shape:
                raise DeepwideError(f"the column '{name}' has {numbers.size} values and the loss {values.size}.")
            return np.broadcast_to(numbers, values.shape).astype(float)

        assumed = list(notes)
        depth, width, block, total = (column(name) for name in SHAPE)
        tokens, flops = column("tokens"), column("train_flops")
        with np.errstate(all="ignore"):  # what overflows or is divided by 0 is refused below, by name
            if "block_params" not in given and {"depth", "width"} <= given.keys():
                block = BLOCK_MATRICES * depth * width**2
                assumed.append(note("block-params-assumed"))
            if "tokens" not in given and {"train_flops", "total_params"} <= given.keys():
                tokens = flops / (6 * total)
                assumed.append(note("tokens-from-flops"))
        seed = _whole(column("seed", 0.0))
        diverged = column("diverged", 0.0) > 0
        runs = cls(depth, width, block, total, tokens, values, seed, diverged, str(source), tuple(assumed))
        runs._check()
        if runs._seeds_link_groups():
            return runs
        return replace(runs, seed=np.zeros_like(runs.seed), notes=(*runs.notes, note("seeds-unlinked")))

    def _check(self) -> None:
        if not len(self):
            raise DeepwideError(f"{self.source or 'the table'} has no finished run.")
        for name in (*SHAPE, "tokens", "loss"):
            column = getattr(self, name)
            bad = np.flatnonzero(~np.isnan(column) & ~((column > 0) & np.isfinite(column)))
            if bad.size:
                raise DeepwideError(f"row {bad[0] + 1}: {name} is {column[bad[0]]:g}; it must be a number above 0.")
        lost = np.flatnonzero(np.isnan(self.loss) & ~self.diverged)
        if lost.size:
            raise DeepwideError(
                f"row {lost[0] + 1} has no loss and is not marked as diverged: leave it out, or map a status column "
                "that says 'diverged'."
            )
        blank = np.isnan(self.tokens)
        if blank.any() and len(lengths := np.unique(self.tokens[~blank])) > 1:
            have = "1 run has" if blank.sum() == 1 else f"{blank.sum()} runs have"
            raise DeepwideError(
                f"{have} no tokens, and the others {lengths[0]:g} to {lengths[-1]:g} of them: fill in the column, or "
                "keep one length (where tokens=NUMBER)."
            )

    def _seeds_link_groups(self) -> bool:
        """Whether seeds lead from each group to every other; if not, their effects and the groups' are confounded."""
        groups = self.groups
        reached = groups == groups[0]
        while True:
            further = np.isin(groups, groups[np.isin(self.seed, self.seed[reached])])
            if (further == reached).all():
                return bool(reached.all())
            reached = further

    @property
    def several_lengths(self) -> bool:
        """Whether runs differ in how many tokens they had."""
        known = self.tokens[~np.isnan(self.tokens)]
        return bool(known.size and known.max() > SAME_LENGTH * known.min())

    def need(self, *names: str) -> None:
        """Refuse to continue without these columns, and say how to give them."""
        for name in names:
            blank = int(np.isnan(getattr(self, name)).sum())
            if blank and name == "block_params" and any(each.code == "block-params-assumed" for each in self.notes):
                self.need("depth", "width")
            table = self.source or "the table"
            called = {each.data["column"]: each.data["name"] for each in self.notes if each.code == "column-guessed"}
            if blank and (blank < len(self) or name in called):
                what = f"'{name}'" + (f" ('{called[name][:60]}' of {table})" if name in called else f" of {table}")
                leave_out = f", leave these rows out (where {name}>0)" if blank < len(self) else ""
                raise DeepwideError(
                    f"the column {what} is blank in {blank} of the {len(self)} runs that ended, and this fit needs it: "
                    f"fill it in{leave_out}, or map another (column {name}=YOUR_COLUMN){INSTEAD.get(name, '')}."
                )
            if blank:
                raise DeepwideError(
                    f"this fit needs the column '{name}', and {table} has none that is called so: map it (column "
                    f"{name}=YOUR_COLUMN){INSTEAD.get(name, '')}."
                )

    def select(self, rows: Any) -> Self:
        """Some of the rows."""
        return replace(self, **{name: column[rows] for name, column in self._columns()})

    def size(self, counting: Counting = "block") -> Floats:
        """Parameters, of the blocks or the total."""
        if counting not in ("block", "total"):
            raise DeepwideError(f"counting is block or total, not '{str(counting)[:40]}'.")
        self.need(f"{counting}_params")
        return self.block_params if counting == "block" else self.total_params

    @property
    def embedding_share(self) -> Floats:
        """The share of each run's parameters that is outside its blocks; NaN where it is not known."""
        return 1 - self.block_params / self.total_params

    @property
    def groups(self) -> Integers:
        """A number for each run, the same for runs that differ in nothing but the seed."""
        return _numbered([*(getattr(self, name) for name in SHAPE), self.tokens])

    @property
    def shapes(self) -> Integers:
        """A number for each run, the same for runs of one shape, whatever their seed and tokens."""
        return _numbered([getattr(self, name) for name in SHAPE])

    def bounds(self, counting: Counting = "block") -> Floats:
        """What a diverged run is taken to exceed: the worst loss of its own group's other seeds, or else the worst
        that finished within a factor 1.5 of its size (and of its length, if any did).

        A run that diverged says that its shape does badly at its size under this recipe, not how badly; no number of
        its own can be taken for its loss. NaN for runs that finished.
        """
        log_size = np.log(self.size(counting))
        finished = ~self.diverged
        if not finished.any():
            raise DeepwideError("every run diverged: there is nothing to fit.")
        groups = self.groups
        worst = np.full(int(groups.max()) + 1, -np.inf)
        np.maximum.at(worst, groups[finished], self.loss[finished])
        order = np.flatnonzero(finished)[np.argsort(log_size[finished], kind="stable")]
        sizes, losses, lengths = log_size[order], self.loss[order], np.log(self.tokens[order])
        bounds = np.full(len(self), np.nan)
        for row in np.flatnonzero(self.diverged):
            if worst[groups[row]] > -np.inf:
                bounds[row] = worst[groups[row]]
                continue
            at = np.searchsorted(sizes, log_size[row])
            nearest = np.min(np.abs(sizes[max(at - 1, 0) : at + 1] - log_size[row]))
            far = max(NEAR, float(nearest)) * (1 + 1e-12)
            low = np.searchsorted(sizes, log_size[row] - far)
            high = np.searchsorted(sizes, log_size[row] + far, side="right")
            as_long = np.abs(lengths[low:high] - math.log(self.tokens[row])) <= NEAR
            bounds[row] = np.max(losses[low:high][as_long] if as_long.any() else losses[low:high])
        return bounds

    def rows(self) -> list[dict[str, Any]]:
        """One dict per run, with None for what is not known."""
        columns = {name: column.tolist() for name, column in self._columns()}
        return [
            {name: None if value != value else value for name, value in zip(columns, values, strict=True)}
            for values in zip(*columns.values(), strict=True)
        ]

    def to_polars(self) -> "polars.DataFrame":
        """`rows` as a Polars data frame."""
        return to_polars(self.rows())

    def to_pandas(self) -> "pandas.DataFrame":
        """`rows` as a pandas data frame."""
        return to_pandas(self.rows())

    def _columns(self) -> Iterator[tuple[str, Numbers]]:
        return ((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in ("source", "notes"))


def _whole(seed: Floats) -> Integers:
    if np.isnan(seed).any():
        raise DeepwideError("some runs have a seed and some have none: map seed to a whole column, or leave it out.")
    odd = np.flatnonzero((seed != np.round(seed)) | (np.abs(seed) >= 2**63))
    if odd.size:
        raise DeepwideError(f"row {odd[0] + 1}: seed is {seed[odd[0]]:g}; it must be a whole number below 2^63.")
    return seed.astype(np.int64)


def _numbered(columns: list[Floats]) -> Integers:
    """A number for each row, the same for equal rows."""
    table = np.nan_to_num(np.column_stack(columns), nan=-1.0)
    return np.asarray(np.unique(table, axis=0, return_inverse=True)[1]).reshape(-1)


FEWEST = 20  # resamples that give an interval
Unit = Literal["group", "shape"]
Terms = Literal["tokens", "shape"]  # of a surface, beside the parameters


def units_of(runs: Runs, unit: Unit) -> Integers:
    """A number for each run: the same in a group (only the seed differs), or in a shape (tokens differ too)."""
    if unit not in ("group", "shape"):
        raise DeepwideError(f"the unit to resample must be 'group' or 'shape', not {quoted(unit)}.")
    return runs.groups if unit == "group" else runs.shapes


def draws_of(units: Integers, parameters: int, bootstrap: int, seed: int) -> Floats:
    """How often each run is in each resample of the units; one with too few different runs is drawn again."""
    random = np.random.default_rng(seed)
    count = int(units.max()) + 1
    draws = np.empty((bootstrap, len(units)))
    for row in draws:
        for _ in range(100):
            row[:] = np.bincount(random.integers(count, size=count), minlength=count)[units]
            if np.count_nonzero(row) > parameters:
                break
    return draws


def spread(draws: Floats) -> Interval:
    """The first, with the middle 95% of the others; alone where there are fewer than 20 of them."""
    if len(draws) <= FEWEST:
        return Interval(float(draws[0]))
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    return Interval(float(draws[0]), float(low), float(high))
