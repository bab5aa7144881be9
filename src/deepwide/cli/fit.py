"""`deepwide fit`: from runs to a law."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError

LIMIT = re.compile(r"\s*([\w .:/-]*\w)\s*(<=?|>=?|!=|=)\s*([^=]*[^\s=])\s*")
HINTS = {  # the option that a note is about
    "noise-unequal": "--noise depth",
    "drift-left-out": "--drift",
    "embeddings-left-out": "--embeddings",
    "base-extrapolated": "--base power",
    "shape-checkpoints": "--unit shape",
    "settings-differ": "--best-of NAME",
    "lengths-unread": "--where NAME=NUMBER, or --column tokens=NAME",
    "settings-by-shape": "--where NAME=VALUE",
    "checkpoints-as-runs": "--where tokens=NUMBER",
    "tokens-collinear": "--kind joint, or --column tokens=",
    "losses-several": "--column loss=NAME",
    "embeddings-unknown": "--column total_params=NAME, or --embedding-rows VOCABULARY",
    "curves-misfit": "--where 'block_params>NUMBER'",
    "stands-out": "--all-runs keeps it",
    "failed-by-loss": "--all-runs keeps them",
}


@app.command(epilog="Example: deepwide fit runs/depth-width-cpu --law law.json --plot map.svg")
def fit(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or tables: .csv, .tsv, .jsonl, .json (also .gz), .parquet.")
    ],
    kind: Annotated[
        Literal["joint", "transition", "ridge", "surface"] | None,
        typer.Option(
            help="joint (best depth at any size), transition (crossings of depths), ridge (bowl about a law) or "
            "surface (loss formula).",
            show_default="joint, or the kind that has the options given",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Map a column of a table: loss=val_loss; tokens= reads none, tokens=20B is for all runs. Repeat."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Choose rows by any column: tokens=100B (within 1%), 'loss<4.5', optimizer=adam, 'lr!=0.1'. Repeat."
        ),
    ] = None,
    best_of: Annotated[
        str | None, typer.Option(help="Columns of which each shape's best setting counts, besides lr: batch,warmup.")
    ] = None,
    embedding_rows: Annotated[
        str | None,
        typer.Option(
            help="Blocks are the total less so many rows of the width: 2 × vocabulary, untied. "
            "Where no total is given, it is the blocks and these rows."
        ),
    ] = None,
    count: Annotated[
        Literal["block", "total"] | None,
        typer.Option(help="Size in block or total parameters (default: total for a surface, else block)."),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option(
            help="joint: the tokens for which the best depth is stated, if runs have several lengths.",
            show_default="their mean, or as they grow with size",
        ),
    ] = None,
    all_runs: Annotated[
        bool, typer.Option("--all-runs", help="joint: keep losses that the other runs do not expect.")
    ] = False,
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
        Literal["tokens", "shape"] | None,
        typer.Option(
            help="surface: tokens (E + A/N^α + B/D^β) or shape (width and depth as well).", show_default="tokens"
        ),
    ] = None,
    unit: Annotated[
        Literal["group", "shape"] | None,
        typer.Option(
            help="surface: resample groups (all seeds of a shape), or shapes (rows are checkpoints of one run).",
            show_default="group",
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="surface: of the Huber loss, in ln loss.", show_default="0.001")
    ] = None,
    noise: Annotated[
        Literal["same", "depth"] | None,
        typer.Option(help="transition, ridge: the same for all runs, or each depth's own.", show_default="same"),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, max=100_000, help="Number of resamples (0: none); joint: of draws, at least 200.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    law: Annotated[
        Path | None,
        typer.Option(help="Save the law, for deepwide plan --law FILE (a surface in tokens: --flops --compute FILE)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Save the whole fit as JSON.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw: a .svg, .png, .pdf, .html or .json (Vega-Lite) file.")
    ] = None,
    picture: Annotated[
        Literal["curves", "growth", "map", "residuals", "resamples"] | None,
        typer.Option(
            help="Which: curves (transition), growth (best depth against size), map, residuals or resamples "
            "(default: curves, else map)."
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="joint: what other depths cost at this size, such as 1.3B, and how sure it is.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit a law to runs: the best depth at any size, where deeper starts to win, or the loss; with errors."""
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    elif picture:
        raise DeepwideError("--picture says what to draw, and --plot where to: give --plot FILE too.")
    asked_for = kind
    kind = kind or ("transition" if picture == "curves" else None)
    if picture == "curves" and kind != "transition":
        raise DeepwideError("curves are drawn of a transition fit: use --picture growth, map, residuals or resamples.")
    for name, path in (("--law", law), ("--out", out)):
        if path is not None and path.is_dir():
            raise DeepwideError(
                f"{name} {path} is a folder: give the name of a file in it, such as {path / 'law.json'}."
            )
    from deepwide import fitting
    from deepwide.quantities import parse_count

    size = float(parse_count(profile)) if profile else None
    near, limits = rows_asked_for(where or [])
    answer = fitting.fit(
        runs,
        kind,
        columns=columns_of(column or []),
        where=near,
        limits=limits,
        best_of=names_of(best_of),
        embedding_rows=float(parse_count(embedding_rows)) if embedding_rows else None,
        counting=count,
        length=float(parse_count(length, "a length in tokens")) if length is not None else None,
        all_runs=all_runs,
        bootstrap=bootstrap,
        seed=seed,
        noise=noise,
        slope=slope,
        pairs=tuple(_depths(text) for text in pair or []),
        base=base,
        embeddings=embeddings,
        drift=drift,
        terms=terms,
        unit=unit,
        delta=delta,
    )
    if out is not None:
        answer.save(out)
    if plot is not None:
        from deepwide.figures import draw_fit

        draw_fit(answer, plot, picture)
    depths = _profile(answer, size) if size is not None else None
    if json:
        document = answer.model_dump(mode="json", exclude={"resamples", "residuals"})
        print_json(document | ({} if depths is None else {"profile": {"params": size, "depths": depths}}))
    else:
        console().print(answer.summary(HINTS), markup=False, soft_wrap=True)
        for line in _profile_lines(answer, size or 0.0, depths or []):
            console().print(line, markup=False, soft_wrap=True)
    if law is not None:
        answer.save_law(law)
    if not json:
        if picture == "curves" and not asked_for:
            note = "Note: curves are those of a transition fit, so that is what is shown; the default is the joint fit."
            console().print(note, markup=False, soft_wrap=True)
        _show_files(answer, law, out, plot)


def _profile(answer: Any, size: float) -> list[dict[str, float]]:
    if answer.kind != "joint":
        raise DeepwideError(f"--profile belongs to a joint fit; this is a {answer.kind} fit.")
    rows: list[dict[str, float]] = answer.profile(size)
    return rows


def _profile_lines(answer: Any, size: float, rows: list[dict[str, float]]) -> list[str]:
    from deepwide.quantities import show_count

    if not rows:
        return []
    lines = ["", f"At {show_count(size)}: the probability that the best depth is shallower, and the loss above it"]
    if not answer.known[0] <= size <= answer.known[1]:
        lines.append(
            "Growth beyond the runs counts both ways in probabilities and limits; losses are for growth that goes on, "
            "as the best depth above is."
        )
    return lines + [
        f"{row['depth']:>7g} layers {row['below']:>6.0%}   +{row['cost']:.2f}% ({row['low']:.2f} to {row['high']:.2f})"
        for row in rows
    ]


def _show_files(answer: Any, law: Path | None, out: Path | None, plot: Path | None) -> None:
    from deepwide.quantities import show_count

    for what, path in (("law", law), ("fit", out), ("picture", plot)):
        if path is not None:
            console().print(f"{what:<8}{path}", markup=False, soft_wrap=True)
    if law is None:
        return
    size = show_count(round(answer.params_range[1]))
    use = f"{size} --law {law}"
    if answer.kind == "surface" and answer.terms == "tokens":
        use = f"{answer.flops_range[1]:.1e} --flops --compute {law}"
    console().print(f"Use it: deepwide plan {use}", markup=False, soft_wrap=True)


def rows_asked_for(where: Sequence[str]) -> tuple[dict[str, float | str], list[tuple[str, str, float | str]]]:
    """`tokens=100B` as a value to be near to, 'loss<4.5' and 'optimizer!=adam' as limits."""
    near: dict[str, float | str] = {}
    limits: list[tuple[str, str, float | str]] = []
    for text in where:
        match = LIMIT.fullmatch(text)
        if not match:
            raise DeepwideError(f"--where '{text[:60]}' chooses nothing: write tokens=100B, 'loss<4.5' or 'depth>2'.")
        name, sign, written = match.groups()
        if sign != "=":
            limits.append((name, sign, _number_or_text(name, written) if sign == "!=" else _number(written)))
        elif name in near:
            raise DeepwideError(f"--where {name}= was given twice: one value, or limits such as '{name}<=4.5'.")
        else:
            near[name] = _number_or_text(name, written)
    return near, limits


def _number_or_text(name: str, written: str) -> float | str:
    """A number, or for a column that is none of ours any text."""
    from deepwide.fitting import COLUMNS

    try:
        return _number(written)
    except DeepwideError:
        if name in COLUMNS:
            raise
        return written


def _number(written: str) -> float:
    from deepwide.quantities import parse_count

    try:
        return float(written)
    except ValueError:
        return float(parse_count(written))


def names_of(best_of: str | None) -> list[str]:
    """batch,warmup as names; the learning rate is always among them."""
    return [name.strip() for name in (best_of or "").split(",") if name.strip() not in ("", "lr")]


def columns_of(given: Sequence[str]) -> dict[str, str | None]:
    """loss=val_loss as a map; `tokens=` as a column that is not read."""
    columns: dict[str, str | None] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise DeepwideError(f"--column '{text[:60]}' is not name=value: write for example --column loss=val_loss.")
        columns[name.strip()] = value.strip() or None
    return columns


def _depths(text: str) -> tuple[int, int]:
    first, comma, second = text.partition(",")
    if not (comma and first.strip().isdecimal() and second.strip().isdecimal()):
        raise DeepwideError(f"--pair '{text[:40]}' is not two depths: write --pair 2,8.")
    return int(first), int(second)
