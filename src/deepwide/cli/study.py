"""`deepwide study`, `study show NAME`, `study run NAME`: the published claims about depth, tested."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from deepwide.cli.app import Json, app, console, print_json
from deepwide.quantities import plural, show_count, show_seconds
from deepwide.signals import stop_on_signals

if TYPE_CHECKING:
    from deepwide.studies import Forecast, Study, StudyResult
    from deepwide.sweeping import SweepState

study = typer.Typer(
    help="Published claims about depth: list them, read about one, test it.",
    invoke_without_command=True,
    epilog="Example: deepwide study run rank-collapse --preset quick",
)
app.add_typer(study, name="study")

Name = Annotated[str, typer.Argument(help="The study, as `deepwide study` lists it.")]
Preset = Annotated[
    Literal["quick", "cpu", "paper"],
    typer.Option(help="quick: a minute or two; cpu: at most two hours on two cores; paper: the original settings."),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="Change a setting: depths=[2,4], steps=500.")]


@study.callback()
def listing(context: typer.Context, json: Json = False) -> None:
    """List the studies: question, source, claims."""
    if context.invoked_subcommand is not None:
        return
    from deepwide.studies import studies

    known = studies()
    if json:
        print_json([_about(one) for one in known.values()])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("study", "question", "source", "claims"):
        table.add_column(column)
    for one in known.values():
        table.add_row(one.name, escape(one.question), escape(one.source.citation), str(len(one.claims)))
    console().print(table)
    console().print("[dim]deepwide study show NAME explains one, deepwide study run NAME runs it.[/dim]")


@study.command(epilog="Example: deepwide study show rank-collapse")
def show(name: Name, json: Json = False) -> None:
    """Explain one study: its claims, the rules that judge them, its settings and what a run costs."""
    from deepwide.studies import dry_run, find_study

    one = find_study(name)
    forecasts = [dry_run(one, preset) for preset in one.presets]
    if json:
        print_json(_about(one) | {"presets": [forecast.model_dump(mode="json") for forecast in forecasts]})
        return
    to = console()
    to.print(f"[bold]{one.name}[/bold]: {escape(one.question)}")
    to.print(f"{escape(one.source.citation)} {one.source.link}", soft_wrap=True)
    for rule in one.rules:
        to.print(f"\nClaim: {escape(rule.claim.statement)}")
        to.print(f"Rule:  {escape(rule.text)}")
    to.print(f"\n{escape(one.method)}\n")
    to.print(f"How this differs from the original: {escape(one.differences)}\n")
    for forecast in forecasts:
        to.print(_cost(forecast))


@study.command(epilog="Example: deepwide study run rank-collapse --preset quick --out collapse")
def run(
    name: Name,
    preset: Preset = "quick",
    set_: Set = None,
    out: Annotated[Path | None, typer.Option(help="The study's folder (default: studies/NAME-PRESET).")] = None,
    on: Annotated[str, typer.Option(help="Where to train: local, ray, slurm, as for sweep run.")] = "local",
    processes: Annotated[int | None, typer.Option(min=1, help="Workers at a time.")] = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Threads per worker.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be trained; run nothing.")] = False,
    json: Json = False,
) -> None:
    """Run a study, or resume it: train, measure, judge, and write results, figures and a page."""
    from deepwide import studies

    changes = tuple(set_ or ())
    if dry_run:
        forecast = studies.dry_run(name, preset, changes=changes)
        print_json(forecast) if json else console().print(_cost(forecast))
        return
    home = out or Path("studies") / f"{name}-{preset}"
    with stop_on_signals(second_interrupts=True) as stop:
        result = studies.run_study(
            name, preset, changes=changes, out=home, on=on, processes=processes, threads=threads,
            progress=None if json else _Progress(), stop=stop,
        )  # fmt: skip
    if json:
        print_json(result)
        return
    _show(result, home)


class _Progress:
    """A line when something new is done, or when the number of finished cells changes."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, what: str, state: "SweepState | None") -> None:
        line = what
        if state is not None:
            finished = len(state.cells) - state.left
            left = f", about {show_seconds(state.expected_seconds)} left" if state.expected_seconds else ""
            line = f"{what}: {finished} of {plural(len(state.cells), 'run')} finished"
            if line == self.last:
                return
            self.last = line
            line += left
        typer.echo(line, err=True)


def _about(one: "Study") -> dict[str, object]:
    return {
        "name": one.name,
        "question": one.question,
        "source": {"citation": one.source.citation, "link": one.source.link},
        "claims": [
            {"key": rule.claim.key, "claim": rule.claim.statement, "where": rule.claim.where, "rule": rule.text}
            for rule in one.rules
        ],
        "rule_hash": one.rule_hash,
    }


def _cost(forecast: "Forecast") -> str:
    if forecast.expected_seconds is None:
        return f"{forecast.preset:6} trains nothing"
    return (
        f"{forecast.preset:6} trains {plural(forecast.runs, 'run')}, {show_count(forecast.train_flops)} FLOPs: "
        f"about {show_seconds(forecast.expected_seconds)} on this machine"
    )


def _show(result: "StudyResult", home: Path) -> None:
    from deepwide.studies import show_interval

    to = console()
    to.print(f"[bold]{result.study}[/bold] ({result.preset}, {show_seconds(result.seconds)})")
    for verdict in result.verdicts:
        measured = f" Measured: {show_interval(verdict.measured)}." if verdict.measured else ""
        to.print(f"[bold]{verdict.outcome}[/bold]: {escape(verdict.claim)}{measured}")
        for note in verdict.notes:
            to.print(f"  {escape(str(note))}")
    for note in result.notes:
        to.print(f"Note: {escape(str(note))}.")
    to.print(f"Page: {home / 'page.md'}", soft_wrap=True)
