"""From what a user names to a shape: a Shape, a model of the catalogue, a file, a folder, a hub id, or sizes."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from deepwide.answers import Note
from deepwide.catalogue.models import find_model
from deepwide.errors import DeepwideError, quoted
from deepwide.quantities import parse_count
from deepwide.shape import Shape, family_named, read_config

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
