"""Settings as people write them: TOML files, `optimiser.lr=3e-4`, and pydantic's complaints as one sentence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepwide.errors import DeepwideError, did_you_mean, quoted

LARGEST = 10**9
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Natural = Annotated[int, Field(ge=0, le=LARGEST)]
Sizes = Annotated[tuple[Positive, ...], Field(min_length=1)]
Seeds = Annotated[tuple[Natural, ...], Field(min_length=1)]
DEEPEST = 20  # levels of nesting that anybody needs


class Part(BaseModel):
    """A frozen value that rejects what it does not know: the base of every config."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DeepwideError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise DeepwideError(f"{path} is a folder, not a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeepwideError(f"{path} is not TOML: {' '.join(str(error).split())}.") from None
    except (RecursionError, ValueError):  # nested a thousand deep, or a number of thousands of digits
        raise DeepwideError(f"{path} is nested too deep or its numbers are too long.") from None


def parse_setting(written: str) -> tuple[list[str], Any]:
    """`optimiser.lr=3e-4` as a path and a TOML value; a bare word is text.

    >>> parse_setting("optimiser.lr=3e-4"), parse_setting("model.preset=llama")
    ((['optimiser', 'lr'], 0.0003), (['model', 'preset'], 'llama'))
    """
    import tomllib

    name, equals, value = written.partition("=")
    path = [step.strip() for step in name.split(".")]
    if not equals or not all(path):
        raise DeepwideError(f"{quoted(written)} is not a setting: write it as name=value, for example lr=3e-4.")
    if len(path) > DEEPEST:
        raise DeepwideError(f"{quoted(written)} is nested too deep.")
    try:
        return path, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):  # TOMLDecodeError is a ValueError
        return path, value.strip()


def with_setting(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy of nested tables with one setting changed.

    >>> with_setting({"seed": 1}, ["optimiser", "lr"], 3e-4)
    {'seed': 1, 'optimiser': {'lr': 0.0003}}
    """
    first, *rest = path
    if not rest:
        return {**table, first: value}
    inner = table.get(first, {})
    if not isinstance(inner, Mapping):
        raise DeepwideError(f"'{'.'.join(path)}' cannot be set: '{first}' is one value, not a table.")
    return {**table, first: with_setting(inner, rest, value)}


def explain(error: Exception, model: type[BaseModel], where: str = "", noun: str = "setting") -> str:
    """Pydantic's first complaint as a sentence, with the nearest valid name at the right level."""
    if not isinstance(error, ValidationError):
        return f"{where or 'the config'} must be a table of named values."
    # A misspelt name often comes with a missing one: report the misspelling.
    first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    path = [str(step) for step in first["loc"]]
    shown = ".".join([where, *path] if where else path)[:80]
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(model, path[:-1])
        return f"there is no {noun} '{shown}': {did_you_mean(path[-1][:80], allowed)}"
    if first["type"] == "model_type" and path:
        inner = _fields_at(model, path)
        example = f", such as {shown}.{inner[0]} = …" if inner else ""
        return f"'{shown}' is a table of {noun}s, not {quoted(first['input'])}: give its {noun}s by name{example}."
    what = first["msg"].removeprefix("Value error, ").removesuffix(".")
    end = "" if what.endswith("?") else "."
    got = "" if first["type"] in ("missing", "value_error") else f", not {quoted(first['input'])}"
    return f"{shown + ': ' if shown else ''}{what[:1].lower()}{what[1:]}{got}{end}"


def check_names(model: type[BaseModel], fields: Mapping[str, Any], short_names: Iterable[str] = ()) -> None:
    """Refuse names that a config does not have, at every level, and say where a misplaced one belongs.

    `short_names` may be meant at the top level too: they are suggested, not allowed.
    """
    _check_names(model, model, fields, "", short_names)


def _check_names(
    root: type[BaseModel],
    model: type[BaseModel],
    fields: Mapping[str, Any],
    prefix: str,
    short_names: Iterable[str] = (),
) -> None:
    allowed_here = model.model_fields
    for name, value in fields.items():
        if name not in allowed_here:
            homes = [path for path in _paths(root) if path.rpartition(".")[2] == name]
            allowed = {*(f"{prefix}{field}" for field in model.model_fields), *short_names}
            near = f"did you mean '{homes[0]}'?" if len(homes) == 1 else did_you_mean(f"{prefix}{name}", allowed)
            raise DeepwideError(f"there is no setting '{prefix}{str(name)[:60]}': {near}")
        if not isinstance(value, Mapping):
            continue
        part = _model_in(allowed_here[name].annotation)
        if part is not None:
            _check_names(root, part, value, f"{prefix}{name}.")


def _paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every setting by its full name."""
    for name, field in model.model_fields.items():
        part = _model_in(field.annotation)
        if part is not None:
            yield from _paths(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The names allowed at a place inside nested models and lists of them."""
    for step in (step for step in path if not step.isdigit()):
        field = model.model_fields.get(step)
        inner = _model_in(field.annotation) if field is not None else None
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The pydantic model in `Model` or `Model | None`, if there is one."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
