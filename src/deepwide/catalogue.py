"""Public models as data, and the one place that turns what a user names into a shape.

`catalogue.json` has one line per model, looked up by a forgiving name.
"""

import json
import math
import os
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.quantities import parse_count
from deepwide.shape import Params, Shape, family_named, read_config

# Owners under which the Hugging Face hub has an organisation's models, beside the organisation's own name.
OWNERS = {
    "AI2": ("allenai",),
    "AI21": ("ai21labs",),
    "BSC": ("BSC-LT",),
    "DeepMind": ("google-deepmind",),
    "DeepSeek": ("deepseek-ai",),
    "Hugging Face": ("HuggingFaceTB",),
    "Meta": ("meta-llama", "facebook"),
    "Mistral": ("mistralai", "mistral-community"),
    "OpenAI": ("openai-community", "gpt2"),
    "OpenLM": ("openlm-research",),
    "Stability": ("stabilityai",),
    "TII": ("tiiuae",),
}


class Model(Answer):
    """A public model: its shape, and where the numbers come from."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    org: str
    shape: Shape
    family: str | None
    published_total: int | None  # what our count is tested against, where there is such a number
    source: str
    note: str

    @property
    def params(self) -> Params:
        """Parameters part by part."""
        return self.shape.params

    def rows(self) -> list[dict[str, Any]]:
        """The model in one row."""
        s, p = self.shape, self.params
        sizes = {"depth": s.depth, "width": s.width, "heads": s.heads, "kv_heads": s.kv_heads, "vocab": s.vocab}
        counts = {"block_params": p.block, "total_params": p.total, "active_params": p.active}
        return [{"name": self.name, "org": self.org, "family": self.family} | sizes | counts]


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")))


@cache
def _model(index: int) -> Model:
    entry = _entries()[index]
    config = entry.get("config")
    return Model.model_construct(
        name=entry["name"],
        org=entry["org"],
        shape=family_named(config["model_type"]).read(config) if config else Shape(**entry["shape"]),
        family=config["model_type"] if config else None,
        published_total=entry.get("total"),
        source=entry["source"],
        note=entry.get("note", ""),
    )


@cache
def all_models() -> tuple[Model, ...]:
    """Every model of the catalogue, by name."""
    return tuple(_model(index) for index in range(len(_entries())))


def find_model(name: str) -> Model:
    """The model of that name; case and punctuation do not matter, an owner before a slash must be the model's.

    >>> find_model("meta-llama/Llama-3-8B").shape.total_params
    8030261248
    """
    known = {_plain(model.name): model for model in all_models()}
    owner, _, bare = name.rpartition("/")
    dotted = re.sub(r"(?<=\d)_(?=\d)", ".", bare)  # the hub has phi-1_5; and opt_1_3b is not opt-13b
    model = known.get(_plain(dotted)) or known.get(_plain(bare))
    if model is None:
        word = bare[:60].removeprefix("Meta-")
        raise _no_model(f"no model '{name[:60]}' in the catalogue", word)
    if "/" in name and _plain(owner) not in {_plain(other) for other in (model.org, *OWNERS.get(model.org, ()))}:
        raise DeepwideError(
            f"no model '{name[:60]}' in the catalogue: {model.name} is by {model.org}; did you mean '{model.name}'?"
        )
    return model


def _no_model(what: str, word: str) -> DeepwideError:
    """The error for a name that no model has; where none is near, a few far-off names would help nobody."""
    names = [model.name for model in all_models()]
    listed = f"none of the {len(names)} names is near."
    near = did_you_mean(word, names, otherwise=listed)
    return DeepwideError(f"{what}: {near}", remedies=("catalogue",) if near == listed else ())


def search_models(text: str = "") -> list[Model]:
    """The models whose name, organisation or family contains a text."""
    word = text.lower()
    matches = [m for m in all_models() if word in f"{m.name} {m.org} {m.family or ''}".lower()]
    if not matches:
        raise _no_model(f"no model matches '{text[:60]}'", text[:60])
    return matches


def nearest_models(shape: Shape, count: int = 3) -> list[Model]:
    """The public models nearest in active block parameters, then in depth, sizes within a factor 3.

    Beside a dense shape stand dense models, beside one with experts those with experts.
    """
    size = shape.params.active_block

    def distance(entry: tuple[Model, int]) -> float:
        model, params = entry
        return abs(math.log(params / size)) + 0.3 * abs(math.log(model.shape.depth / shape.depth))

    # A plan should not read a hundred configs for three: blocks are a part of the published total.
    models = [_model(i) for i, entry in enumerate(_entries()) if entry.get("total", math.inf) > size / 3]
    alike = [(m, m.params.active_block) for m in models if (m.shape.experts is None) == (shape.experts is None)]
    near = [(model, params) for model, params in alike if 1 / 3 < params / size < 3]
    return [model for model, _ in sorted(near, key=distance)[:count]]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


PATH_LIKE = re.compile(r"(\.{0,2}|~[^/]*)/|.*[/\\].*[/\\]|.*\.json$|\.{1,2}$", re.IGNORECASE | re.DOTALL)
FREE_FAMILY = "gpt2"  # of a shape that is given by its sizes alone


class NamedShape(NamedTuple):
    """A shape, what to call it, and what the reader should know about it."""

    name: str
    shape: Shape
    family: str | None  # that it can be written in; None: unknown
    exact: bool = True  # False: read by the usual key names of an unknown family, so every count is a guess
    notes: tuple[Note, ...] = ()


def find_shape(
    model: Shape | str | os.PathLike[str] | None = None,
    *,
    family: str | None = None,
    network: bool = False,
    feed_forward: str | None = None,
    **fields: Any,
) -> NamedShape:
    """The shape of a model, with some of its fields changed; or, without a model, the shape that the fields describe.

    What looks like a path (it begins with `/`, `./`, `../` or `~`, ends in `.json`, or exists) is a path; otherwise it
    is a name of the catalogue, and with `network` a hub id. `feed_forward` is the field `ff`; None means not given.

    >>> find_shape("gpt2").shape.depth, find_shape(depth=2, width=128).name
    (12, '2 × 128')
    """
    changes = {name: value for name, value in (fields | {"ff": feed_forward}).items() if value is not None}
    for name, noun in (("vocab", "a vocabulary"), ("context", "a context length")):
        if isinstance(changes.get(name), str):
            changes[name] = parse_count(changes[name], noun)
    if model is None:
        return _by_sizes(family, changes)
    if isinstance(model, Shape):
        shape = model.but(**changes) if changes else model
        return NamedShape(f"{shape.depth} × {shape.width}", shape, family)
    if not isinstance(model, str | os.PathLike):
        raise DeepwideError(f"a model is a Shape, a name of the catalogue or a path, not {quoted(model)}.")
    named = _by_name(os.fspath(model), changes, network)
    return named._replace(family=family or named.family)


def _by_sizes(family: str | None, fields: dict[str, Any]) -> NamedShape:
    if not {"depth", "width"} <= fields.keys():
        raise DeepwideError("name a model of the catalogue or a config.json, or give depth and width.")
    like = family_named(family or FREE_FAMILY)
    shape = Shape.of(**like.fixed | {"tied": like.defaults["tie_word_embeddings"]} | fields)
    notes: tuple[Note, ...] = ()
    if family is None:
        text = "norms, biases and positions are those of GPT-2; for another kind of block, name its family"
        notes = (Note.of("assumed-family", text, family=FREE_FAMILY),)
    if not {"heads", "head_dim"} & fields.keys() and shape.heads == 1 and shape.width > 64:
        text = (
            f"a width of {shape.width:,} does not divide into heads of 64, so one head of {shape.width:,} is assumed: "
            "give the number of heads, or their width"
        )
        notes += (Note.of("assumed-heads", text, heads=1, head_dim=shape.width),)
    return NamedShape(f"{shape.depth} × {shape.width}", shape, like.name, notes=notes)


def _by_name(model: str, changes: dict[str, Any], network: bool) -> NamedShape:
    if _is_path(model):
        reading = read_config(model, **changes)
        return NamedShape(_renamed(model, changes), reading.shape, reading.family, reading.exact, reading.notes)
    try:
        public = find_model(model)
    except DeepwideError as error:
        if "/" not in model:
            raise
        if not network:
            text = f"{error} Without network access the hub was not asked."
            raise DeepwideError(text, remedies=("network",)) from None
        reading = read_config(model, network=True, **changes)
        return NamedShape(_renamed(model, changes), reading.shape, reading.family, reading.exact, reading.notes)
    shape = public.shape.but(**changes) if changes else public.shape
    notes = (Note.of("catalogue", public.note),) if public.note else ()
    return NamedShape(_renamed(public.name, changes), shape, public.family, notes=notes)


def _is_path(model: str) -> bool:
    try:
        return bool(PATH_LIKE.match(model)) or Path(model).exists()
    except (OSError, ValueError):  # too long to be one, or with a NUL in it
        return False


def _renamed(name: str, changes: dict[str, Any]) -> str:
    """A changed model does not bear the model's own name alone."""
    if not changes:
        return name
    return f"{name} with " + ", ".join(f"{field.replace('_', ' ')} {value}" for field, value in changes.items())
