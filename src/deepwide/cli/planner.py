"""`deepwide plan`, `audit`, `count`, `models` and `laws`."""

from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.cli.shapes import (
    Context,
    Depth,
    FeedForward,
    FfWidth,
    HeadDim,
    Heads,
    KvHeads,
    ShapeFamily,
    Tied,
    Vocab,
    Width,
    given,
    named_shapes,
    own_family,
)
from deepwide.errors import DeepwideError, did_you_mean

Plot = Annotated[Path | None, typer.Option(help="Draw the depth–width map: a .svg, .png or .html file.")]
LawName = Annotated[
    str, typer.Option("--law", help="A published law (see: deepwide laws) or a fitted law's JSON file.")
]
Network = Annotated[bool, typer.Option("--network", help="Allow fetching a config.json from the Hugging Face hub.")]
InferencePrecision = Annotated[str, typer.Option(help="Of weights at inference: bf16, fp8, int8, int4, …")]
FAMILY_HELP = "Hugging Face family that fixes norms, biases, positions and the config format."


@app.command(epilog="Example: deepwide plan 1.3B --vocab 32000 --kv-heads 8 --save config.json")
def plan(
    budget: Annotated[str, typer.Argument(help="1.3B, 350M, 1e12; with --flops 1e21; with --memory 24GB.")],
    total: Annotated[bool, typer.Option("--total", help="The budget counts embeddings and head too.")] = False,
    flops: Annotated[
        bool, typer.Option("--flops", help="The budget is training FLOPs, spent compute-optimally.")
    ] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="The budget is bytes at inference: weights and cache.")
    ] = False,
    law: LawName = "levine",
    compute: Annotated[str, typer.Option(help="With --flops: epoch or hoffmann.")] = "epoch",
    tokens: Annotated[str | None, typer.Option(help="Training tokens (default: 20 per parameter).")] = None,
    depth: Annotated[int | None, typer.Option(help="Fix the depth; the budget gives the width.")] = None,
    width: Annotated[int | None, typer.Option(help="Fix the width; the budget gives the depth.")] = None,
    vocab: Annotated[int, typer.Option(help="Vocabulary.")] = 50304,
    context: Annotated[int, typer.Option(help="Context length.")] = 2048,
    tied: Annotated[
        bool | None, typer.Option("--tied/--untied", help="Share embedding and head (default: the family's).")
    ] = None,
    head_dim: Annotated[int | None, typer.Option(help="Width of a head (default: 128, 64 or 32 by width).")] = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key/value heads (default: one per head).")] = None,
    feed_forward: Annotated[
        str | None, typer.Option(help="gated (8/3 × width, the default) or plain (4 × width).")
    ] = None,
    ff_ratio: Annotated[float | None, typer.Option(help="Feed-forward width over width.")] = None,
    family: Annotated[str | None, typer.Option(help=FAMILY_HELP)] = None,
    width_multiple: Annotated[int | None, typer.Option(help="Width in multiples of this, such as 64 or 128.")] = None,
    tensor_parallel: Annotated[int, typer.Option(help="Heads divisible by this.")] = 1,
    pipeline_stages: Annotated[int, typer.Option(help="Layers divisible by this.")] = 1,
    at_most: Annotated[bool, typer.Option("--at-most", help="Never exceed the budget (memory never does).")] = False,
    inference_precision: InferencePrecision = "bf16",
    batch: Annotated[int, typer.Option(help="Sequences in the cache at inference.")] = 1,
    bandwidth: Annotated[str, typer.Option(help="Memory bandwidth per second, for decode time.")] = "3350GB",
    layer_us: Annotated[float, typer.Option(help="Microseconds of overhead per layer, for decode time.")] = 10.0,
    save: Annotated[Path | None, typer.Option(help="Write the shape as a config.json of the family.")] = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """The shape to build for a budget, with reasons, intervals and what rival laws say.

    Counts block parameters (no embeddings) unless told otherwise.
    """
    from deepwide.figures import check_suffix
    from deepwide.planning import plan as make_plan
    from deepwide.quantities import parse_bytes, parse_count
    from deepwide.shape import write_config

    if total + flops + memory > 1:
        raise DeepwideError("--total, --flops and --memory are three kinds of budget: choose one.")
    if plot:
        check_suffix(plot)
    if not 0 <= layer_us <= 1e6:
        raise DeepwideError(f"--layer-us must be between 0 and 1e6, not {layer_us}.")
    made = make_plan(
        budget,
        kind="memory" if memory else "flops" if flops else "total" if total else "block",
        law=law,
        compute=compute,
        depth=depth,
        width=width,
        tokens=parse_count(tokens, "a number of tokens") if tokens else None,
        at_most=at_most,
        precision=inference_precision,
        batch=batch,
        bandwidth_bytes=parse_bytes(bandwidth),
        layer_seconds=layer_us / 1e6,
        family=_family(family, feed_forward),
        vocab=vocab,
        context=context,
        tied=tied,
        head_dim=head_dim,
        kv_heads=kv_heads,
        ff_ratio=ff_ratio,
        width_multiple=width_multiple,
        tensor_parallel=tensor_parallel,
        pipeline_stages=pipeline_stages,
    )
    if save:
        write_config(made.shape, made.family, save)
    if plot:
        from deepwide.cli.pictures import draw_plan

        draw_plan(made, law, plot)
    if json:
        print_json(made)
        return
    from deepwide.cli.tables import show_plan

    show_plan(made, console())
    for what, path in (("config", save), ("picture", plot)):
        if path:
            console().print(f"Saved the {what}: {path}")


@app.command(
    epilog="Examples: deepwide audit gpt3-175b llama-3-8b --plot map.svg · deepwide audit config.json · "
    "deepwide audit --depth 48 --width 1600"
)
def audit(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Names (see: deepwide models), config.json files, folders, or hub ids with --network."),
    ] = None,
    law: LawName = "levine",
    depth: Depth = None,
    width: Width = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    ff: FeedForward = None,
    ff_width: FfWidth = None,
    vocab: Vocab = None,
    context: Context = None,
    tied: Tied = None,
    family: ShapeFamily = None,
    network: Network = False,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Is this model too deep or too shallow, and what does that cost? Several models give a table."""
    from deepwide.auditing import audit as judge
    from deepwide.cli.tables import show_verdict, show_verdicts
    from deepwide.figures import check_suffix

    if plot:
        check_suffix(plot)
    options = given(depth, width, heads, kv_heads, head_dim, ff, ff_width, vocab, context, tied)
    verdicts = [
        judge(shape, name=name, law=law, notes=notes)
        for name, shape, notes in named_shapes(models, options, family, network)
    ]
    if plot:
        from deepwide.cli.pictures import draw_verdicts

        draw_verdicts(verdicts, law, plot)
    if json:
        print_json([verdict.model_dump(mode="json") for verdict in verdicts])
        return
    if len(verdicts) == 1:
        show_verdict(verdicts[0], console())
    else:
        show_verdicts(verdicts, console())
    if plot:
        console().print(f"Saved the picture: {plot}")


@app.command(epilog="Example: deepwide count llama-3-8b --sequence 8192 --batch 8 --convention causal")
def count(
    model: Annotated[
        str | None, typer.Argument(help="A name, a config.json, a folder, or a hub id with --network.")
    ] = None,
    depth: Depth = None,
    width: Width = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    ff: FeedForward = None,
    ff_width: FfWidth = None,
    vocab: Vocab = None,
    context: Context = None,
    tied: Tied = None,
    sequence: Annotated[int | None, typer.Option(help="Sequence length (default: the context).")] = None,
    batch: Annotated[int, typer.Option(help="Sequences in a batch.")] = 1,
    convention: Annotated[
        str | None,
        typer.Option(help="FLOP convention: torch (default), causal, kaplan, chinchilla, recompute, selective."),
    ] = None,
    training_precision: Annotated[str, typer.Option(help="mixed, bf16 or fp32.")] = "mixed",
    inference_precision: InferencePrecision = "bf16",
    attention: Annotated[str, typer.Option(help="flash, or eager (keeps the score matrices).")] = "flash",
    recompute: Annotated[bool, typer.Option("--recompute", help="Full activation checkpointing.")] = False,
    network: Network = False,
    save: Annotated[Path | None, typer.Option(help="Write the shape as a config.json (see --family).")] = None,
    family: ShapeFamily = None,
    json: Json = False,
) -> None:
    """Parameters part by part, FLOPs and memory of a shape, each with its formula or convention."""
    from deepwide.cli.tables import show_count_of
    from deepwide.shape import flops, inference_memory, training_memory, write_config

    options = given(depth, width, heads, kv_heads, head_dim, ff, ff_width, vocab, context, tied)
    name, shape, notes = named_shapes([model] if model else None, options, family, network)[0]
    cost = flops(shape, sequence, convention or ("recompute" if recompute else "torch"))
    training = training_memory(
        shape,
        batch=batch,
        sequence=sequence,
        precision=training_precision,
        attention=attention,
        recompute=recompute,
    )
    inference = inference_memory(shape, batch=batch, sequence=sequence, precision=inference_precision)
    if save:
        write_config(shape, family or own_family(model, network), save)
    if json:
        print_json(
            {
                "name": name,
                "shape": shape.model_dump(mode="json"),
                "params": shape.params.model_dump(mode="json"),
                "flops": cost.model_dump(mode="json"),
                "training_memory": training.model_dump(mode="json"),
                "inference_memory": inference.model_dump(mode="json"),
                "notes": list(notes),
            }
        )
        return
    show_count_of(name, shape, cost, training, inference, notes, console())
    if save:
        console().print(f"Saved the config: {save}")


@app.command(epilog="Example: deepwide models llama")
def models(
    search: Annotated[str, typer.Argument(help="Part of a name, an organisation or a family.")] = "",
    json: Json = False,
) -> None:
    """List and search the catalogue of public models."""
    from deepwide.catalogue import all_models
    from deepwide.cli.tables import show_models

    word = search.lower()
    found = [m for m in all_models() if word in f"{m.name} {m.org} {m.family or ''}".lower()]
    if not found:
        names = [m.name for m in all_models()]
        raise DeepwideError(f"no model matches '{search[:60]}': {did_you_mean(search[:60], names)}")
    if json:
        rows = [m.model_dump(mode="json") | {"params": m.shape.params.model_dump(mode="json")} for m in found]
        print_json(rows)
        return
    show_models(found, console())


@app.command(epilog="Example: deepwide laws --json")
def laws(json: Json = False) -> None:
    """List the published laws with their citation, status and what they were tested on."""
    from deepwide.cli.tables import show_laws
    from deepwide.laws import published_laws

    if json:
        print_json([law.model_dump(mode="json") for law in published_laws().values()])
        return
    show_laws(list(published_laws().values()), console())


def _family(family: str | None, feed_forward: str | None) -> str:
    from deepwide.shape import family_named

    if feed_forward is not None and feed_forward not in ("plain", "gated"):
        raise DeepwideError(f"no feed-forward '{feed_forward}': {did_you_mean(feed_forward, ['plain', 'gated'])}")
    if family is None:
        return "gpt2" if feed_forward == "plain" else "llama"
    has = family_named(family).fixed.get("ff", "plain")
    if feed_forward not in (None, has):
        raise DeepwideError(
            f"the family {family} has a {has} feed-forward, not a {feed_forward} one: leave one of them out."
        )
    return family
