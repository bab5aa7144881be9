"""`deepwide evidence`: what all public depth × width sets say together; `evidence add` measures another one."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from deepwide.answers import Interval
from deepwide.cli.app import Json, Plot, app, console, print_json
from deepwide.cli.fit import columns_of, names_of, rows_asked_for
from deepwide.cli.tables import add as add_row
from deepwide.cli.tables import show, show_facts, show_notes, table
from deepwide.quantities import show_count

evidence_app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
app.add_typer(evidence_app, name="evidence", epilog="Example: deepwide evidence --plot forest.svg")
With = Annotated[list[Path] | None, typer.Option("--with", help="Another set's file, from evidence add. Repeat.")]
Without = Annotated[list[str] | None, typer.Option("--without", help="Leave out a set by its name. Repeat.")]


@evidence_app.callback()
def evidence(
    context: typer.Context,
    more: With = None,
    without: Without = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Judge every law on each set left out, by the rule in docs/evidence.md.")
    ] = False,
    law: Annotated[Path | None, typer.Option(help="Save the pooled law, for deepwide plan --law FILE.")] = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """What all public depth × width data say together: the best depth, and what a wrong one costs."""
    if context.invoked_subcommand is not None:
        return
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    from deepwide import pooling

    answer = pooling.evidence(*(more or ()), without=without or ())
    if plot:
        from deepwide.figures import forest_chart, save_chart

        save_chart(forest_chart(answer), plot)
    if law:
        from deepwide.laws import save_law

        save_law(answer.law, law)
    judged = None
    if judge:
        sets = {each.name: each for each in (*pooling.shipped_sets(), *map(pooling.load_set, more or ()))}
        judged = pooling.judge_laws([each for name, each in sets.items() if name not in (without or ())])
    if json:
        print_json(judged if judged is not None else answer)
        return
    if judged is not None:
        show_judgement(judged)
    else:
        show_evidence(answer)
    for what, path in (("picture", plot), ("law", law)):
        if path:
            console().print(f"Saved the {what}: {path}", markup=False)


@evidence_app.command(
    "add", epilog="Example: deepwide evidence add runs.csv --name ours2 --about 'what was trained' --out ours2.json"
)
def add(
    tables: Annotated[list[Path], typer.Argument(help="Tables of runs, or folders of them; each is a recipe.")],
    name: Annotated[str, typer.Option(help="A short name of the set.")],
    about: Annotated[str, typer.Option(help="What was trained, in a few words.")],
    out: Annotated[Path | None, typer.Option(help="File to write (default: NAME.json).")] = None,
    citation: Annotated[str, typer.Option(help="Where the runs are published, with their licence.")] = "",
    lengths: Annotated[
        str | None, typer.Option(help="Tokens at which to read checkpoints: 20B,100B (default: the runs' own).")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Map a column of a table: loss=val_loss, depth=n_layer. Repeat.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Choose rows by any column: 'loss<4.5', optimizer=adam. Repeat.")
    ] = None,
    best_of: Annotated[
        str | None, typer.Option(help="Columns of which each shape's best setting counts, besides lr: batch,warmup.")
    ] = None,
    embedding_rows: Annotated[
        str | None, typer.Option(help="Blocks are the total less so many rows of the width: 2 × vocabulary, untied.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure another set on a table of runs and write it as one file, for evidence --with and plan --evidence."""
    from deepwide.pooling import add_evidence, save_set
    from deepwide.quantities import parse_count

    near, limits = rows_asked_for(where or [])
    options: dict[str, Any] = {
        "name": name,
        "about": about,
        "citation": citation,
        "command": shlex.join(["deepwide", *sys.argv[1:]])[:1000],
        "lengths": [float(parse_count(text)) for text in lengths.split(",")] if lengths else (),
        "columns": columns_of(column or []),
        "where": near,
        "limits": limits,
        "best_of": names_of(best_of),
        "embedding_rows": float(parse_count(embedding_rows)) if embedding_rows else None,
    }
    stderr = Console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("fitting each length without each tenth of the shapes", total=1.0)
        each = add_evidence(tables, **options, progress=lambda share: bar.update(task, completed=share))
    path = save_set(each, out or Path(f"{name}.json"))
    if json:
        print_json(each)
        return
    to = console()
    slope = each.slope
    show_facts(
        [
            ("set", f"{each.name}: {each.runs} runs of {each.shapes} shapes, {_sizes(each.sizes)} block parameters"),
            ("best depth", f"{_times(each.ratio)} times the levine law's, at {show_count(each.centre_params)}"),
            ("factor 2 off", f"{_percent(each.factor_2)} of loss"),
            *(
                [("tokens", f"curvature changes as tokens per parameter to the power {_number(slope)}")]
                if slope
                else []
            ),
            ("scope", "pooled with the others" if each.scope == "pooled" else f"{each.scope}: shown, not pooled"),
            *(("note", text) for text in each.notes),
        ],
        to,
    )
    to.print(f"Saved the set: {path}", markup=False)
    to.print(f"Use it: deepwide evidence --with {path}; deepwide plan 1.3B --evidence {path}", markup=False)


def show_evidence(answer: object) -> None:
    """The forest table and the pooled answer."""
    from deepwide.pooling import Evidence

    assert isinstance(answer, Evidence)
    to = console()
    rows = table("set<", "length<<", "shapes", "ratio", "depth / levine's (95%)<", "factor 2 off<", "weight")
    for row in answer.sets:
        weight = "" if row.length else "–" if row.weight is None else f"{row.weight:.0%}"
        add_row(
            rows,
            "" if row.length else row.name + ("" if row.scope == "pooled" else f" ({row.scope})"),
            row.length or "all",
            str(row.shapes),
            f"{row.tokens_per_param:,.0f}",
            _times(row.ratio) if row.ratio else "not seen",
            _percent(row.factor_2) if row.factor_2 else "",
            weight,
        )
    show(rows, to)
    to.print("[dim]ratio: tokens per parameter. Lengths of one set are not independent: sets are pooled.[/dim]\n")
    show_facts(
        [
            ("pooled", f"best depth {_times(answer.ratio_mean)} times the levine law's, the mean over sets"),
            ("", f"{_times(answer.ratio_new)} for a set not seen yet, such as yours: the law `pooled`"),
            ("factor 2 off", f"{_percent(answer.factor_2_mean)} of loss, the mean over sets"),
            ("", f"{_percent(answer.factor_2_new)} for a set not seen yet"),
            ("tokens", _tokens(answer)),
        ],
        to,
    )
    to.print()
    show_notes(answer.notes, to)


def _tokens(answer: object) -> str:
    from deepwide.pooling import Evidence

    assert isinstance(answer, Evidence)
    if answer.token_slope is None:
        return "no set has several lengths"
    verdict = "so a plan uses its own ratio" if answer.tokens_verdict.outcome == "yes" else "so one cost serves all"
    return f"cost ~ (tokens per parameter)^{_number(answer.token_slope)}: {verdict}"


def show_judgement(judged: object) -> None:
    """Every law on the sets that it has not seen."""
    from deepwide.pooling import Judgement

    assert isinstance(judged, Judgement)
    to = console()
    names = list(dict.fromkeys(trial.set for trial in judged.trials))
    counted = {trial.set for trial in judged.trials if trial.counted}
    heads = [f"{name}{'' if name in counted else ' (not counted)'}<<" for name in names]
    rows = table("law<", *heads, "mean error", "covers", "log score", "costs")
    for score in judged.scores:
        cells = []
        for name in names:
            trial = next((t for t in judged.trials if t.law == score.law and t.set == name), None)
            cells.append("–" if trial is None else "fitted on it" if trial.seen else f"{trial.error:+.2f}")
        add_row(
            rows, score.law, *cells, f"{score.mean_error:.2f}", f"{score.covered} of {score.judged}",
            f"{score.log_score:+.2f}", f"{score.loss_percent:.2f}%",
        )  # fmt: skip
    show(rows, to)
    to.print(
        "[dim]Errors are ln(predicted / measured depth); costs are of loss, by the set's own curvature. Pooled and the "
        "constant aspect ratio (width / depth) come from the other sets; nanochat's ratio is 64. Not judged, as they "
        f"name no best depth: {', '.join(judged.unjudged)}.[/dim]"
    )
    to.print(f"[bold]{judged.verdict.outcome}[/bold]  Rule: {judged.verdict.rule}.")


def _sizes(sizes: tuple[float, float]) -> str:
    return " to ".join(show_count(size) for size in sizes)


def _limits(interval: Interval, digits: int) -> str:
    return "" if interval.low is None else f" ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def _times(interval: Interval) -> str:
    return f"{interval.value:.2f}{_limits(interval, 2)}"


def _number(interval: Interval) -> str:
    return f"{interval.value:.2f}{_limits(interval, 2)}"


def _percent(interval: Interval) -> str:
    return f"{interval.value:.2f}%{_limits(interval, 2)}"
