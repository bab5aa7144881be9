"""Public models as data: `models.json`, one line each, looked up by a forgiving name."""

import json
import re
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.shape import Shape, family_named

__all__ = ["Model", "all_models", "find_model", "nearest_models"]


class Model(BaseModel):
    """A public model: its shape, and where the numbers come from."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    org: str
    shape: Shape
    family: str | None
    published_total: int | None  # what our count is tested against, where there is such a number
    source: str
    note: str


@cache
def all_models() -> tuple[Model, ...]:
    """Every model of the catalogue, by name."""
    entries = json.loads(files(__package__).joinpath("models.json").read_text(encoding="utf-8"))
    return tuple(
        Model.model_construct(
            name=entry["name"],
            org=entry["org"],
            shape=family_named(entry["config"]["model_type"]).read(entry["config"])
            if "config" in entry
            else Shape(**entry["shape"]),
            family=entry.get("config", {}).get("model_type"),
            published_total=entry.get("total"),
            source=entry["source"],
            note=entry.get("note", ""),
        )
        for entry in entries
    )


def find_model(name: str) -> Model:
    """The model of that name; case, punctuation and an organisation before a slash do not matter.

    >>> find_model("meta-llama/Llama-3-8B").shape.total_params
    8030261248
    """
    known = {_plain(model.name): model for model in all_models()}
    dotted = re.sub(r"(?<=\d)_(?=\d)", ".", name)  # the hub has phi-1_5; and opt_1_3b is not opt-13b
    spellings = (_plain(part) for given in (dotted, name) for part in (given, given.rsplit("/", 1)[-1]))
    found = next((known[spelling] for spelling in spellings if spelling in known), None)
    if found is None:
        names = [model.name for model in all_models()]
        word = name[:60].rsplit("/", 1)[-1].removeprefix("Meta-")
        raise DeepwideError(f"no model '{name[:60]}' in the catalogue: {did_you_mean(word, names)}")
    return found


def nearest_models(shape: Shape, count: int = 3) -> list[Model]:
    """The public models nearest in block parameters, then in depth (dense ones only, sizes within a factor 3)."""
    import math

    def distance(model: Model) -> float:
        size = math.log(model.shape.block_params / shape.block_params)
        return abs(size) + 0.3 * abs(math.log(model.shape.depth / shape.depth))

    dense = [
        m for m in all_models() if m.shape.experts is None and 1 / 3 < m.shape.block_params / shape.block_params < 3
    ]
    return sorted(dense, key=distance)[:count]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
