"""`deepwide fit`: from runs to a law."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError, did_you_mean

if TYPE_CHECKING:
    from deepwide.fitting import Fit, Runs

KINDS = ("transition", "ridge", "surface")
PICTURES = ("curves", "map", "residuals", "resamples")


@app.command(epilog="Example: deepwide fit runs/depth-width-cpu --law law.json --plot curves.svg")
def fit(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or tables: .csv, .jsonl, .json, .parquet.")],
    kind: Annotated[
        str,
        typer.Option(help="transition (crossings of depths), ridge (best depth at a size) or surface (loss in all)."),
    ] = "transition",
    column: Annotated[
        list[str] | None, typer.Option(help="Map a column of a table: loss=val_loss, depth=n_layer. Repeat.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Choose rows: tokens=100B (within 1%), 'loss<4.5', 'depth>=2'. Repeat.")
    ] = None,
    embedding_rows: Annotated[
        str | None, typer.Option(help="Blocks are the total less so many rows of the width: 2 × vocabulary, untied.")
    ] = None,
    count: Annotated[
        str | None, typer.Option(help="Size by block or total parameters (default: total for a surface, else block).")
    ] = None,
    pair: Annotated[list[str] | None, typer.Option(help="Two depths to compare besides neighbours: 2,8.")] = None,
    slope: Annotated[float | None, typer.Option(help="transition: assume b, so that one crossing gives a law.")] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="ridge: the law that depths are measured from; power: none, the best depth is a power of the size.",
            show_default="levine",
        ),
    ] = None,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="ridge: a term for the embeddings' share.")] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="ridge: let the best depth move against the base law.")
    ] = False,
    terms: Annotated[
        str | None,
        typer.Option(
            help="surface: tokens (E + A/N^α + B/D^β) or shape (width and depth as well).", show_default="tokens"
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="surface: resample cells, or shapes (rows that are checkpoints of one run).", show_default="cell"
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="surface: of the Huber loss, in ln loss.", show_default="0.001")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="transition, ridge: the same for all runs, or each depth's own.", show_default="same"),
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, max=100_000, help="Resamples.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the resamples.")] = 0,
    law: Annotated[Path | None, typer.Option(help="Save the law for: deepwide plan --law FILE.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save the whole fit as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw: a .svg, .png or .html file.")] = None,
    picture: Annotated[
        str | None, typer.Option(help="Which: curves (transition), map, residuals or resamples.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit a law to runs: where deeper starts to win, the best depth, or the loss; with errors and warnings."""
    from deepwide.figures import check_suffix
    from deepwide.fitting import fit_ridge, fit_surface, fit_transition
    from deepwide.laws import save_law
    from deepwide.quantities import show_count

    if kind not in KINDS:
        raise DeepwideError(f"no kind of fit '{kind[:40]}': {did_you_mean(kind, KINDS)}")
    chosen = picture or ("curves" if kind == "transition" else "residuals")
    if chosen not in PICTURES:
        raise DeepwideError(f"no picture '{chosen[:40]}': {did_you_mean(chosen, PICTURES)}")
    if chosen == "curves" and kind != "transition":
        raise DeepwideError("curves are drawn of a transition fit: use --picture map, residuals or resamples.")
    count = count or ("total" if kind == "surface" else "block")
    if count not in ("block", "total"):
        raise DeepwideError(f"--count is block or total, not '{count[:40]}'.")
    if unit not in (None, "cell", "shape"):
        raise DeepwideError(f"--unit is cell or shape, not '{unit[:40]}'.")
    if noise and kind == "surface":
        raise DeepwideError("--noise belongs to --kind transition and ridge; a surface resamples its runs.")
    _belongs(kind, "transition", pair=pair, slope=slope is not None)
    _belongs(kind, "ridge", base=base, embeddings=embeddings, drift=drift)
    _belongs(kind, "surface", terms=terms, unit=unit, delta=delta is not None)
    if plot:
        check_suffix(plot)
    elif picture:
        raise DeepwideError("--picture says what to draw, and --plot where to: give --plot FILE too.")
    table = _read(runs, column, where, embedding_rows)
    common: dict[str, Any] = {"counting": count, "bootstrap": bootstrap, "seed": seed}
    scatter: dict[str, Any] = {"noise": noise or "same"}
    made: Fit
    if kind == "transition":
        made = fit_transition(
            table, slope=slope, pairs=tuple(_depths(text) for text in pair or []), **scatter, **common
        )
    elif kind == "ridge":
        made = fit_ridge(table, base=base or "levine", embeddings=embeddings, drift=drift, **scatter, **common)
    else:
        huber = {} if delta is None else {"delta": delta}
        made = fit_surface(table, terms=terms or "tokens", unit=unit or "cell", **huber, **common)  # type: ignore[arg-type]
    found = made.law()
    if law is not None and found is not None:
        save_law(found, law)
    if out is not None:
        made.save(out)
    if plot is not None:
        from deepwide.figures.fitted import draw_fit

        draw_fit(made, plot, chosen)
    if json:
        skipped = {"resamples", "residuals"}
        print_json(
            made.model_dump(mode="json", exclude=skipped)
            | {
                "intervals": {
                    "likelihood": {name: [i.low, i.high] for name, i in made.intervals().items()},
                    "bootstrap": {name: [i.low, i.high] for name, i in made.intervals("bootstrap").items()},
                },
                "headline": made.headline(),
                "resamples": len(made.resamples),
                **_pairs_json(made),
                "law": found.model_dump(mode="json") if found else None,
            }
        )
    else:
        console().print(made.summary(), markup=False, soft_wrap=True)
    if law is not None and found is None:
        raise DeepwideError(f"these runs give no law to save in {law}: {made.headline()[-1]}")
    if json:
        return
    for what, path in (("law", law), ("fit", out), ("picture", plot)):
        if path is not None:
            console().print(f"{what:<8}{path}", markup=False, soft_wrap=True)
    if law is not None:
        size = show_count(round(made.params_range[1]))
        console().print(f"Use it: deepwide plan {size} --law {law}", markup=False, soft_wrap=True)


def _belongs(kind: str, owner: str, **options: Any) -> None:
    """Refuse an option of another kind of fit rather than ignore it."""
    for name, given in options.items():
        if given and kind != owner:
            raise DeepwideError(f"--{name} belongs to --kind {owner}; this is a {kind} fit.")


def _pairs_json(made: "Fit") -> dict[str, Any]:
    from deepwide.fitting import TransitionFit

    if not isinstance(made, TransitionFit):
        return {}
    sizes = {depth: made.transition(depth) for depth in made.crossed} if made.law() else {}
    return {
        "verdict": made.verdict()[0],
        "pairs": [pair._asdict() for pair in made.pairs],
        "n_transition": {depth: [size.value, size.low, size.high] for depth, size in sizes.items()},
    }


def _read(runs: list[Path], column: list[str] | None, where: list[str] | None, embedding_rows: str | None) -> "Runs":
    from deepwide.fitting import read_runs
    from deepwide.quantities import parse_count

    nearest: dict[str, float] = {}
    limits: list[tuple[str, str, float]] = []
    for text in where or []:
        match = re.fullmatch(r"\s*(\w+)\s*(<=?|>=?|=)\s*([^\s=]+)\s*", text)
        if not match:
            raise DeepwideError(f"--where '{text[:60]}' chooses nothing: write tokens=100B, 'loss<4.5' or 'depth>2'.")
        name, how, written = match.groups()
        value = _number(written)
        if how != "=":
            limits.append((name, how, value))
        elif name in nearest:
            raise DeepwideError(f"--where {name}= was given twice: one value, or limits such as '{name}<=4.5'.")
        else:
            nearest[name] = value
    rows = float(parse_count(embedding_rows)) if embedding_rows else None
    columns = _pairs(column, "--column", "loss=val_loss")
    return read_runs(runs, columns, where=nearest, limits=limits, embedding_rows=rows)


def _number(written: str) -> float:
    from deepwide.quantities import parse_count

    try:
        return float(written)
    except ValueError:
        return float(parse_count(written))


def _pairs(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    made = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise DeepwideError(f"{option} '{text[:60]}' is not name=value: write for example {option} {example}.")
        made[name.strip()] = value.strip()
    return made


def _depths(text: str) -> tuple[int, int]:
    first, comma, second = text.partition(",")
    if not (comma and first.strip().isdigit() and second.strip().isdigit()):
        raise DeepwideError(f"--pair '{text[:40]}' is not two depths: write --pair 2,8.")
    return int(first), int(second)
