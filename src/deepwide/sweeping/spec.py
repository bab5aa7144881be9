"""A sweep as one TOML file.

name = "first"
seeds = [0, 1]               # paired: every shape is trained with the same seeds, so with the same order of data

[run]                        # any key of a run's config; the same for all
data.source = "python"       # a public set by name, a file or folder of text, or hf:owner/name

[grid]                       # every combination; depth, width, lr, or any dotted key of a run's config
lr = [1e-3, 3e-3]

[iso]                        # shapes of equal size by construction: for each size and depth, the width
params = ["100k", "400k"]
depths = [1, 2, 4, 8]
tokens = "1M"                # the same tokens for all, or flops = "1e13": the same compute

[[cells]]                    # instead of iso: cells one by one; keys as in grid, and seed
depth = 4
width = 48
seed = 3                     # instead of all seeds
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from deepwide.errors import DeepwideError, one_line, quoted
from deepwide.quantities import parse_count
from deepwide.settings import explain, parse_setting, read_toml, with_setting

LARGEST_FILE = 2**20
OWN_KEYS = ("name", "seeds", "grid", "iso", "cells", "run")


def _count(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("write a number such as 350k, 1.3B or 1e12")
    return parse_count(value)


Count = Annotated[int, BeforeValidator(_count)]
Whole = Annotated[int, Field(ge=1, le=10**6)]


class Table(BaseModel):
    """A part of the spec: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Iso(Table):
    """Shapes of the same number of parameters, at several depths; all with the same tokens or the same FLOPs."""

    params: list[Count] = Field(min_length=1)
    depths: list[Whole] = Field(min_length=1)
    counting: Literal["block", "total"] = "block"
    tokens: Count | None = None
    flops: Count | None = None
    tokens_per_param: Annotated[float, Field(gt=0, le=1e6)] | None = None
    width_multiple: Whole = 8
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.1
    misses: Literal["refuse", "skip"] = "refuse"  # what to do where no width is within the tolerance

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if sum(budget is not None for budget in (self.tokens, self.flops, self.tokens_per_param)) > 1:
            raise ValueError("tokens, flops and tokens_per_param each set how long to train: choose one")
        return self


class Spec(Table):
    """A sweep: what is fixed, what varies."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    seeds: list[Annotated[int, Field(ge=0, le=2**31)]] = [0]
    run: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    iso: Iso | None = None
    cells: list[dict[str, Any]] = []
    _source: str = PrivateAttr("")  # where it was read, for messages

    @property
    def source(self) -> str:
        """The file it was read from, empty when it was not."""
        return self._source

    @model_validator(mode="after")
    def _values_are_plain(self) -> Self:
        if not self.seeds:
            raise ValueError("seeds is empty: give at least one, such as seeds = [0]")
        if empty := next((key for key, values in self.grid.items() if not values), None):
            raise ValueError(f"grid.{empty} has no values: give at least one")
        if self.iso and self.cells:
            raise ValueError("iso and cells each give the shapes: keep one of them")
        if not all(self.cells):
            raise ValueError("one of the cells is empty: give it a depth and a width")
        for value in (self.run, self.grid, *self.cells):
            _check_plain(value)
        return self


def read_spec(path: str | Path, overrides: Sequence[str] = ()) -> Spec:
    """The spec in a file, with `key=value` overrides; every mistake is one sentence that names the file."""
    path = Path(path)
    if path.is_file() and path.stat().st_size > LARGEST_FILE:
        raise DeepwideError(f"{path} is larger than 1 MiB: that is not a sweep.")
    table = read_toml(path)
    for written in overrides:
        table = _override(table, written)
    return make_spec(table, source=str(path))


def as_spec(spec: Spec | Mapping[str, Any] | str | Path) -> Spec:
    """A spec from whatever the caller has: a spec, a table, or the path of a TOML file."""
    if isinstance(spec, Spec):
        return spec
    return make_spec(spec) if isinstance(spec, Mapping) else read_spec(spec)


def make_spec(table: Mapping[str, Any], source: str = "") -> Spec:
    """A spec from a table as TOML gives it; `source` is where it was read."""
    where = source or "the sweep"
    try:
        spec = Spec(**table)
        spec._source = source
        return spec
    except (ValidationError, TypeError) as error:
        raise DeepwideError(one_line(f"{where}: {explain(error, Spec)}")) from None
    except DeepwideError as error:
        raise DeepwideError(one_line(f"{where}: {error}")) from None
    except RecursionError:
        raise DeepwideError(f"{where} is nested too deep.") from None


def _override(table: dict[str, Any], written: str) -> dict[str, Any]:
    """`lr=3e-4`, `model.preset=llama`, `grid.lr=[1e-3, 3e-3]`, `iso.tokens="2M"`: a spec's key or a run's."""
    path, value = parse_setting(written)
    name = ".".join(path)
    if path[0] not in OWN_KEYS:
        if isinstance(grid := table.get("grid"), Mapping) and name in grid:
            raise DeepwideError(f"{name} cannot be set: the grid varies it; set grid.{name} to a list.")
        path = ["run", *path]
    elif path[0] == "grid" and len(path) > 1:
        path = ["grid", ".".join(path[1:])]
    return with_setting(table, path, value)


def _check_plain(value: Any, depth: int = 0) -> None:
    if depth > 20:
        raise ValueError("run and grid are nested too deep")
    if isinstance(value, dict):
        for item in value.values():
            _check_plain(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_plain(item, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("numbers must be finite")
    elif isinstance(value, int) and value.bit_length() > 128:
        raise ValueError("a number is too large")
    elif not isinstance(value, str | int | float | bool):
        raise ValueError(f"{quoted(value)} is a date; values are numbers, text, true, false or lists")
