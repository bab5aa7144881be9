"""`deepwide plan`, `audit`, `count`, `models` and `laws`: options in, answers rendered."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepwide.cli.app import Json, app, console, print_json, with_remedies
from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    from deepwide.laws import Law

FeedForward = Literal["plain", "gated"]
InferencePrecision = Annotated[
    Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4"], typer.Option(help="Of the weights at inference.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the depth–width map: a .svg, .png, .pdf, .html or .json (Vega-Lite) file.")
]
LawName = Annotated[
    str, typer.Option("--law", help="A published law (see: deepwide laws) or a fitted law's JSON file.")
]
Network = Annotated[bool, typer.Option("--network", help="Allow fetching a config.json from the Hugging Face hub.")]
Vocab = Annotated[str | None, typer.Option(help="Vocabulary: 50304, 128k (128,000).", metavar="COUNT")]
Context = Annotated[str | None, typer.Option(help="Context length: 8192, 8Ki (8,192), 8k (8,000).", metavar="COUNT")]

# The options that describe a shape, in `audit` and in `count`: each is a field of Shape.
SHAPE_OPTIONS: dict[str, Any] = {
    "depth": Annotated[int | None, typer.Option(help="Layers.")],
    "width": Annotated[int | None, typer.Option(help="Width of the residual stream.")],
    "heads": Annotated[int | None, typer.Option(help="Heads.")],
    "kv_heads": Annotated[int | None, typer.Option(help="Key/value heads.")],
    "head_dim": Annotated[int | None, typer.Option(help="Width of a head.")],
    "feed_forward": Annotated[FeedForward | None, typer.Option(help="Kind of feed-forward.")],
    "ff_width": Annotated[int | None, typer.Option(help="Feed-forward width.")],
    "vocab": Vocab,
    "context": Context,
    "tied": Annotated[bool | None, typer.Option("--tied/--untied", help="Embedding and head shared or not.")],
    "family": Annotated[
        str | None, typer.Option(help="Family of a shape given by options (default: gpt2), and of a saved config.")
    ],
    "network": Network,
}


def with_shape_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that describe a shape; it receives them as one dict, `fields`."""
    signature = inspect.signature(command)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "fields"]
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if name == "network" else None,
            annotation=annotation,
        )
        for name, annotation in SHAPE_OPTIONS.items()
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        fields = {name: values.pop(name) for name in SHAPE_OPTIONS}
        command(**values, fields=fields)

    by_name = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    wrapped.__signature__ = signature.replace(parameters=[*by_name, *shared])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*by_name, *shared)}
    return wrapped


@app.command(epilog="Example: deepwide plan 1.3B --vocab 32000 --kv-heads 8 --save config.json")
def plan(
    budget: Annotated[str, typer.Argument(help="1.3B, 350M, 1e12; with --flops 1e21; with --memory 24GB.")],
    total: Annotated[bool, typer.Option("--total", help="The budget counts embeddings and head too.")] = False,
    flops: Annotated[
        bool, typer.Option("--flops", help="The budget is training FLOPs, spent compute-optimally.")
    ] = False,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="The budget is bytes at inference, of all devices together: weights and cache."),
    ] = False,
    device_memory: Annotated[
        bool,
        typer.Option("--device-memory", help="The same of each device, split by --tensor-parallel, --pipeline-stages."),
    ] = False,
    law: LawName = "levine",
    evidence: Annotated[
        list[Path] | None,
        typer.Option(help="Plan by the law pooled, with this set in it (see: deepwide evidence add). Repeat."),
    ] = None,
    compute: Annotated[
        str, typer.Option(help="Compute law with --flops: epoch, hoffmann, or one that fit saved (.json).")
    ] = "epoch",
    tokens: Annotated[str | None, typer.Option(help="Training tokens (default: 20 per parameter).")] = None,
    depth: Annotated[int | None, typer.Option(help="Fix the depth; the budget gives the width.")] = None,
    width: Annotated[int | None, typer.Option(help="Fix the width; the budget gives the depth.")] = None,
    vocab: Vocab = "50304",
    context: Context = "2048",
    tied: Annotated[
        bool | None, typer.Option("--tied/--untied", help="Share embedding and head (default: the family's).")
    ] = None,
    head_dim: Annotated[
        int | None, typer.Option(help="Width of a head (default: 128, 64 or 32 by width, or between them).")
    ] = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key/value heads (default: one per head).")] = None,
    feed_forward: Annotated[
        FeedForward | None, typer.Option(help="gated: 8/3 × width, the default; plain: 4 × width.")
    ] = None,
    ff_ratio: Annotated[float | None, typer.Option(help="Feed-forward width over width.")] = None,
    family: Annotated[
        str | None, typer.Option(help="Hugging Face family that fixes norms, biases, positions and the config format.")
    ] = None,
    width_multiple: Annotated[int | None, typer.Option(help="Width in multiples of this, such as 64 or 128.")] = None,
    tensor_parallel: Annotated[int, typer.Option(help="Heads divisible by this, and by the devices of --machine.")] = 1,
    pipeline_stages: Annotated[int, typer.Option(help="Layers divisible by this.")] = 1,
    data_parallel: Annotated[
        int, typer.Option(help="Copies that read other sequences: memory per device; see --zero.")
    ] = 1,
    zero: Annotated[
        int, typer.Option(help="Copies share the optimiser's state (1), gradients too (2), weights too (3).")
    ] = 0,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Full activation checkpointing, in training memory.")
    ] = False,
    experts: Annotated[
        int | None, typer.Option(help="Experts per layer; the budget then counts block parameters that are active.")
    ] = None,
    active: Annotated[int | None, typer.Option(help="Experts per token, with --experts.")] = None,
    shared: Annotated[int, typer.Option(help="Experts that every token passes, beside the active ones.")] = 0,
    granularity: Annotated[
        float | None,
        typer.Option(help="Width of a dense feed-forward over an expert's (default: active + shared)."),
    ] = None,
    at_most: Annotated[bool, typer.Option("--at-most", help="Never exceed the budget (memory never does).")] = False,
    inference_precision: InferencePrecision = "bf16",
    batch: Annotated[int, typer.Option(help="Sequences in the cache at inference, and in a decode step.")] = 1,
    bandwidth: Annotated[str, typer.Option(help="Memory bandwidth per second, for decode time: 3350GB.")] = "3350GB",
    layer_us: Annotated[
        float, typer.Option(help="Microseconds of overhead per layer, for decode time (default: the preset captured).")
    ] = 16.0,
    machine: Annotated[
        str | None, typer.Option(help="Times of a profile (see: deepwide time) or preset (deepwide time --presets).")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="Longest time per decoded token, with its unit: 8ms, 250us.")
    ] = None,
    throughput: Annotated[
        str | None, typer.Option(help="Fewest decoded tokens per second, of all --batch sequences together.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the shape as a config.json of the family; missing folders are created.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the depth–width map, with a limit on time the frontier: .svg, .png, .pdf, .html or .json "
            "(Vega-Lite)."
        ),
    ] = None,
    picture: Annotated[
        Literal["map", "frontier"] | None,
        typer.Option(help="What --plot draws: map; or frontier, loss against decode time (with --machine or a limit)."),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Five lines that fit a chat message.")] = False,
    json: Json = False,
) -> None:
    """The shape to build for a budget, with reasons, intervals and what rival laws say.

    Counts block parameters (the non-embedding parameters) by default, with experts those that a token passes through.
    """
    from deepwide.planning import BudgetKind
    from deepwide.planning import plan as make_plan

    kinds: dict[BudgetKind, bool] = {"total": total, "flops": flops, "memory": memory, "device": device_memory}
    if sum(kinds.values()) > 1:
        raise DeepwideError("--total, --flops, --memory and --device-memory are kinds of budget: choose one.")
    _check_plot(plot)
    timed = not (machine is None and latency is None and throughput is None)
    if picture and not plot:
        raise DeepwideError("--picture says what to draw, and --plot where to: give --plot FILE too.")
    if picture == "frontier" and not timed:
        raise DeepwideError("a frontier needs a machine or a limit on time: give --machine, --latency or --throughput.")
    chosen = _pooled_with(evidence, law) if evidence else law
    answer = make_plan(
        budget,
        kind=next((kind for kind, chosen in kinds.items() if chosen), "block"),
        law=chosen,
        compute=compute,
        tokens=tokens,
        depth=depth,
        width=width,
        vocab=vocab,
        context=context,
        tied=tied,
        head_dim=head_dim,
        kv_heads=kv_heads,
        feed_forward=feed_forward,
        ff_ratio=ff_ratio,
        family=family,
        width_multiple=width_multiple,
        tensor_parallel=tensor_parallel,
        pipeline_stages=pipeline_stages,
        experts=experts,
        active=active,
        shared=shared,
        granularity=granularity,
        at_most=at_most,
        inference_precision=inference_precision,
        batch=batch,
        bandwidth=bandwidth,
        layer_us=layer_us,
        machine=machine,
        latency=latency,
        throughput=throughput,
        data_parallel=data_parallel,
        zero=zero,
        recompute=recompute,
    )
    saved = _save(answer.shape, answer.family, save)
    if plot:
        from deepwide.figures import frontier_chart, plan_map, save_chart

        limited = latency is not None or throughput is not None
        draws_frontier = picture == "frontier" or (picture is None and limited)
        save_chart(frontier_chart(answer) if draws_frontier else plan_map(answer, chosen), plot)
    if json:
        print_json(answer)
        return
    from deepwide.cli.tables import show_plan

    if brief:
        console().print(answer.brief(), markup=False, soft_wrap=True)
    else:
        show_plan(answer, console())
    _say_what_was_saved(saved, plot)


@app.command(
    epilog="Examples: deepwide audit gpt3-175b llama-3-8b --plot map.svg · deepwide audit config.json · "
    "deepwide audit --depth 48 --width 1600"
)
@with_shape_options
def audit(
    fields: dict[str, Any],
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Names (see: deepwide models), config.json files, folders, or hub ids with --network."),
    ] = None,
    law: LawName = "levine",
    tokens: Annotated[
        str | None, typer.Option(help="Training tokens, for what the depth is worth (default: 20 per parameter).")
    ] = None,
    compute: Annotated[
        str, typer.Option(help="Loss surface for what the depth is worth: epoch, hoffmann, or one that fit saved.")
    ] = "epoch",
    price: Annotated[
        float | None,
        typer.Option(
            help="Of a GPU-hour: the training, and what its depth is worth (size and tokens grown alike), in money."
        ),
    ] = None,
    gpu_flops: Annotated[
        float, typer.Option(help="FLOPs per second of such a GPU, as used: peak × utilisation.")
    ] = 4e14,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Is this model deeper or shallower than a law recommends, and what does that cost? Several models give a table."""
    from deepwide.cli.tables import show_audit, show_audits
    from deepwide.laws import depth_law
    from deepwide.planning import Audit
    from deepwide.planning import audit as judge

    _check_plot(plot)
    chosen = depth_law(law)
    fields |= {"tokens": tokens, "compute": compute, "price": price, "gpu_flops": gpu_flops}
    audits: list[Audit] = []
    failures: list[tuple[str, str]] = []
    if not models:
        audits.append(judge(law=chosen, **fields))
    for model in models or ():
        try:
            audits.append(judge(model, law=chosen, **fields))
        except DeepwideError as error:
            if len(models or ()) == 1:
                raise
            failures.append((model, with_remedies(error)))
    if plot and audits:
        from deepwide.figures import audit_map, save_chart

        save_chart(audit_map(audits, chosen), plot)
    if json:
        documents = [answer.model_dump(mode="json") for answer in audits]
        print_json(documents + [{"name": name, "error": reason} for name, reason in failures])
    elif len(audits) == 1 and not failures:
        show_audit(audits[0], console())
    else:
        show_audits(audits, failures, console())
    if not json:
        _say_what_was_saved(None, plot if audits else None)
    if failures:
        raise DeepwideError(f"{len(failures)} of {len(audits) + len(failures)} models could not be read.")


@app.command(epilog="Example: deepwide count llama-3-8b --sequence 8192 --batch 8 --convention causal")
@with_shape_options
def count(
    fields: dict[str, Any],
    model: Annotated[
        str | None, typer.Argument(help="A name, a config.json, a folder, or a hub id with --network.")
    ] = None,
    sequence: Annotated[
        str | None, typer.Option(help="Sequence length: 8192, 8Ki, 1e6 (default: the context).", metavar="COUNT")
    ] = None,
    batch: Annotated[int, typer.Option(help="Sequences in a batch.")] = 1,
    convention: Annotated[
        Literal["torch", "causal", "kaplan", "chinchilla", "recompute", "selective"] | None,
        typer.Option(help="FLOP convention (default: torch)."),
    ] = None,
    training_precision: Annotated[Literal["mixed", "bf16", "fp32"], typer.Option(help="Of a training step.")] = "mixed",
    inference_precision: InferencePrecision = "bf16",
    attention: Annotated[
        Literal["flash", "eager"], typer.Option(help="Attention; eager keeps the score matrices.")
    ] = "flash",
    recompute: Annotated[bool, typer.Option("--recompute", help="Full activation checkpointing.")] = False,
    tensor_parallel: Annotated[int, typer.Option(help="Devices that share every layer: memory per device.")] = 1,
    pipeline_stages: Annotated[int, typer.Option(help="Groups of layers on devices of their own.")] = 1,
    data_parallel: Annotated[int, typer.Option(help="Copies that read other sequences; see --zero.")] = 1,
    expert_parallel: Annotated[int, typer.Option(help="Data parallel copies that share the experts.")] = 1,
    zero: Annotated[
        int, typer.Option(help="Copies share the optimiser's state (1), gradients too (2), weights too (3).")
    ] = 0,
    build: Annotated[
        bool, typer.Option("--build", help="Count parameters by building the config with transformers, any family.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the shape as a config.json (see --family); missing folders are created.")
    ] = None,
    json: Json = False,
) -> None:
    """Parameters part by part, FLOPs and memory of a shape, each with its formula or convention."""
    from deepwide.planning import count as count_model

    if build:
        _count_built(model, fields, json)
        return
    answer = count_model(
        model,
        sequence=sequence,
        batch=batch,
        convention=convention,
        training_precision=training_precision,
        inference_precision=inference_precision,
        attention=attention,
        recompute=recompute,
        tensor_parallel=tensor_parallel,
        pipeline_stages=pipeline_stages,
        data_parallel=data_parallel,
        zero=zero,
        expert_parallel=expert_parallel,
        **fields,
    )
    saved = _save(answer.shape, answer.family, save)
    if json:
        print_json(answer)
        return
    from deepwide.cli.tables import show_count_of

    show_count_of(answer, console())
    _say_what_was_saved(saved, None)


@app.command(epilog="Example: deepwide models llama")
def models(
    search: Annotated[str, typer.Argument(help="Part of a name, an organisation or a family.")] = "",
    json: Json = False,
) -> None:
    """List and search the catalogue of public models."""
    from deepwide.catalogue import search_models
    from deepwide.cli.tables import show_models

    matches = search_models(search)
    if json:
        print_json([m.model_dump(mode="json") | {"params": m.params.model_dump(mode="json")} for m in matches])
        return
    show_models(matches, console())


@app.command(epilog="Example: deepwide laws --json")
def laws(json: Json = False) -> None:
    """List the published laws with their citation, status and what they were tested on."""
    from deepwide.cli.tables import show_laws
    from deepwide.laws import published_laws

    if json:
        print_json([law.model_dump(mode="json") for law in published_laws().values()])
        return
    show_laws(list(published_laws().values()), console())


def _count_built(model: str | None, fields: dict[str, Any], json: bool) -> None:
    """Parameters alone, as transformers builds them."""
    from deepwide.cli.tables import show_built
    from deepwide.shape import build_count

    given = [name for name, value in fields.items() if value not in (None, False) and name != "network"]
    if model is None or given:
        raise DeepwideError("--build counts a config.json as it is: name the file and leave the sizes out.")
    answer = build_count(model, network=bool(fields["network"]))
    if json:
        print_json(answer)
        return
    show_built(answer, console())


def _pooled_with(files: list[Path], law: str) -> "Law":
    """The pooled law with further sets."""
    if law not in ("levine", "pooled"):  # levine is what stands there when nobody chose
        raise DeepwideError(f"--evidence plans with the pooled law, and --law asks for '{law[:60]}': give one of them.")
    from deepwide.pooling import evidence

    return evidence(*files).law


def _check_plot(plot: Path | None) -> None:
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)


def _save(shape: Any, family: str | None, path: Path | None) -> Path | None:
    if path is None:
        return None
    from deepwide.shape import config_path, write_config

    if family is None:
        raise DeepwideError("this model is of no family deepwide can write: say which with --family.")
    target = config_path(path)
    write_config(shape, family, target)
    return target


def _say_what_was_saved(config: Path | None, picture: Path | None) -> None:
    for what, path in (("config", config), ("picture", picture)):
        if path:
            console().print(f"Saved the {what}: {path}", markup=False)
