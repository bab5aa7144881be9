"""Which shapes a command is about: models by name or config, or a shape by its options."""

from pathlib import Path
from typing import Annotated, Any

import typer

from deepwide.errors import DeepwideError

Depth = Annotated[int | None, typer.Option(help="Layers.")]
Width = Annotated[int | None, typer.Option(help="Width of the residual stream.")]
Heads = Annotated[int | None, typer.Option(help="Heads.")]
KvHeads = Annotated[int | None, typer.Option(help="Key/value heads.")]
HeadDim = Annotated[int | None, typer.Option(help="Width of a head.")]
FeedForward = Annotated[str | None, typer.Option("--feed-forward", help="plain or gated.")]
FfWidth = Annotated[int | None, typer.Option(help="Feed-forward width.")]
Vocab = Annotated[int | None, typer.Option(help="Vocabulary.")]
Context = Annotated[int | None, typer.Option(help="Context length.")]
Tied = Annotated[bool | None, typer.Option("--tied/--untied", help="Embedding and head shared or not.")]
ShapeFamily = Annotated[
    str | None,
    typer.Option("--family", help="Family of a shape given by options (default: gpt2), and of a saved config."),
]
FIELDS = ("depth", "width", "heads", "kv_heads", "head_dim", "ff", "ff_width", "vocab", "context", "tied")


def given(*values: Any) -> dict[str, Any]:
    """The Shape fields the user gave, from the options in the order of FIELDS."""
    return {name: value for name, value in zip(FIELDS, values, strict=True) if value is not None}


def named_shapes(
    models: list[str] | None, options: dict[str, Any], family: str | None, network: bool
) -> list[tuple[str, Any, tuple[str, ...]]]:
    """Name, shape and notes of each model asked for, or of the shape the options describe."""
    from deepwide.shape import Shape, family_named

    if models:
        return [_shape(model, options, network) for model in models]
    if not {"depth", "width"} <= options.keys():
        raise DeepwideError("name a model (see: deepwide models), a config.json, or give --depth and --width.")
    like = family_named(family or "gpt2")
    common = like.fixed | {"tied": like.defaults["tie_word_embeddings"]}
    shape = Shape.of(**common | options)
    note = "" if family else "norms, biases and positions as in GPT-2; for another block, say which: --family llama"
    return [(f"{shape.depth} × {shape.width}", shape, (note,) if note else ())]


def _shape(model: str, options: dict[str, Any], network: bool) -> tuple[str, Any, tuple[str, ...]]:
    from deepwide.catalogue import find_model
    from deepwide.shape import read_config

    if Path(model).exists() or model.endswith(".json"):
        reading = read_config(model, **options)
        return model, reading.shape, reading.notes
    try:
        found = find_model(model)
    except DeepwideError as error:
        if "/" in model and network:
            reading = read_config(model, network=True, **options)
            return model, reading.shape, reading.notes
        hint = " With --network the hub is asked too." if "/" in model else ""
        raise DeepwideError(f"{error}{hint}") from None
    shape = found.shape.but(**options) if options else found.shape
    return found.name, shape, (found.note,) if found.note else ()


def own_family(model: str | None, network: bool) -> str:
    """The family a model's config is saved in unless told."""
    from deepwide.catalogue import find_model
    from deepwide.shape import read_config

    family: str | None = "gpt2"
    if model:
        is_config = Path(model).exists() or model.endswith(".json")
        family = read_config(model, network=network).family if is_config else find_model(model).family
    if family is None:
        raise DeepwideError("this model is of no family deepwide can write: say which with --family.")
    return family
