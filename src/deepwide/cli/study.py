"""`deepwide study`, `study show NAME`, `study run NAME`: the published claims about depth, tested."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from deepwide.cli.app import Json, app, console, print_json, visible
from deepwide.errors import DeepwideError
from deepwide.quantities import plural, show_count, show_seconds
from deepwide.signals import stop_on_signals

if TYPE_CHECKING:
    from deepwide.studies import Folder, Forecast, Study, StudyResult
    from deepwide.sweeping import SweepState


class _Studies(TyperGroup):
    """`study NAME` is no command: say which ones take the name of a study."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            from deepwide.studies import studies

            if args[0] in studies():
                raise DeepwideError(
                    f"{args[0]} is a study: deepwide study show {args[0]} explains it, deepwide study run {args[0]} "
                    "runs it."
                )
        return super().resolve_command(ctx, args)


study = typer.Typer(
    cls=_Studies,
    help="Published claims about depth: list them, read about one, test it.",
    invoke_without_command=True,
    epilog="Example: deepwide study run rank-collapse --preset quick",
)
app.add_typer(study, name="study")

LINE_SECONDS = 10.0  # between lines of progress, when they go to a log,
TIME_SECONDS = 120.0  # and between those where only the time left is another

Name = Annotated[str, typer.Argument(help="The study, as `deepwide study` lists it.")]
Preset = Annotated[
    Literal["quick", "cpu", "paper"],
    typer.Option(help="quick: a minute or two; cpu: at most two hours on two cores; paper: the original settings."),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="Change a setting: depths=[2,4], steps=500.")]


@study.callback()
def listing(context: typer.Context, json: Json = False) -> None:
    """List the studies: question, source, claims, and what a run takes on two cores."""
    if context.invoked_subcommand is not None:
        return
    from deepwide.studies import estimated_seconds, studies

    known = studies()
    if json:
        print_json([_about(one) for one in known.values()])
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for one in known.values():
        claims = f"{plural(len(one.claims), 'claim')}: {', '.join(claim.key for claim in one.claims)}"
        costs = [f"{name} {show_seconds(seconds)}" for name, seconds in estimated_seconds(one).items()]
        lines = [
            one.question,
            one.source.citation,
            claims,
            f"Estimated time on two idle cores: {', '.join(costs)}" if costs else "",
        ]
        table.add_row(one.name, escape("\n".join(line for line in lines if line)), end_section=True)
        table.add_row()
    console().print(table)
    console().print("[dim]deepwide study show NAME explains one, deepwide study run NAME runs it.[/dim]")


@study.command(epilog="Example: deepwide study show rank-collapse")
def show(name: Name, json: Json = False) -> None:
    """Explain one study: its claims, the rules that judge them, its settings and what a run costs."""
    from deepwide.studies import dry_run, find_study, setting_rows

    one = find_study(name)
    forecasts = [dry_run(one, preset) for preset in one.presets]
    if json:
        presets = [forecast.model_dump(mode="json", exclude={"folder"}) for forecast in forecasts]
        print_json(_about(one) | {"settings": setting_rows(one), "presets": presets})
        return
    to = console()
    to.print(f"[bold]{one.name}[/bold]: {escape(one.question)}")
    to.print(f"{escape(one.source.citation)} {one.source.link}", soft_wrap=True)
    for rule in one.rules:
        to.print(f"\nClaim: {escape(rule.claim.statement)}")
        to.print(f"Rule:  {escape(rule.text)}")
    to.print(f"\n{escape(one.method)}\n")
    to.print(f"How this differs from the original: {escape(one.differences)}\n")
    rows = setting_rows(one)
    table = Table(box=None, pad_edge=False, title="Settings by preset", title_justify="left", title_style="bold")
    for column in rows[0] if rows else ():
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(value) for value in row.values()))
    to.print(table)
    if example := _example(one):
        to.print(f"\nTo change one: deepwide study run {one.name} --set {escape(example)}\n", soft_wrap=True)
    missing: dict[str, list[str]] = {}
    for forecast in forecasts:
        if forecast.missing:
            missing.setdefault(forecast.missing, []).append(forecast.preset)
        else:
            to.print(_cost(forecast) + _stated(one, forecast.preset))
    for why, names in missing.items():
        to.print(f"{', '.join(names):6} cannot be run here: {escape(why.removesuffix('.'))}", soft_wrap=True)


def _example(one: "Study") -> str:
    """The first setting that a preset changes, written as a change."""
    from deepwide.studies import setting_rows

    rows = [row for row in setting_rows(one) if not row["cpu"].endswith("…")]
    row = next((row for row in rows if row["quick"] != row["cpu"]), rows[0] if rows else None)
    return shlex.quote(f"{row['setting']}={row['cpu']}") if row else ""


@study.command(epilog="Example: deepwide study run rank-collapse --preset quick --out collapse")
def run(
    name: Name,
    preset: Preset = "quick",
    set_: Set = None,
    out: Annotated[Path | None, typer.Option(help="The study's folder (default: studies/NAME-PRESET).")] = None,
    on: Annotated[str, typer.Option(help="Where to train: local, ray, slurm, as for sweep run.")] = "local",
    processes: Annotated[int | None, typer.Option(min=1, help="Workers at a time.")] = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Threads per worker.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be trained and what is in the folder; run nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a study, or resume it: train, measure, judge, and write results, figures and a page. Ctrl-C saves."""
    from deepwide import studies
    from deepwide.report import write_report

    changes = tuple(set_ or ())
    if dry_run:
        _dry_run(studies.dry_run(name, preset, changes=changes, out=out), json=json)
        return
    home = studies.folder_of(studies.find_study(name), preset, out)
    says = "Stopping in good order, as soon as runs have written a checkpoint; Ctrl-C again stops at once."
    measuring = False

    def tell(what: str, state: "SweepState | None") -> None:
        nonlocal measuring
        measuring = state is None
        if report:
            report(what, state)

    # While measuring there is no run that needs time to stop: what is finished is saved.
    stopping = stop_on_signals(second_interrupts=True, first_says=says, at_once=lambda: measuring)
    with stopping as stop, progress(quiet=json) as report:
        try:
            result = studies.run_study(
                name, preset, changes=changes, out=home, on=on, processes=processes, threads=threads, progress=tell,
                stop=stop,
            )  # fmt: skip
            page = write_report(home, home / "page.md")
        except (DeepwideError, KeyboardInterrupt):
            if not stop():
                raise
            _interrupted(home)
            raise typer.Exit(130) from None
    if json:
        print_json(result)
        return
    _show(result, page)


Report = Callable[[str, "SweepState | None"], None]


@contextmanager
def progress(*, quiet: bool) -> Iterator[Report | None]:
    """What to call with what is being done: one line that is redrawn on a terminal, now and then a line in a log."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _log_lines()
        return
    out = Console(stderr=True, highlight=False)
    with out.status("…") as line:
        yield lambda what, state: line.update(escape(visible(_doing(what, state))))


def _log_lines() -> Report:
    """A line when another sweep or measurement begins or ends, and otherwise at most every ten seconds; every two
    minutes where only the time left is another."""
    stage, last_line, last_time = "", "", 0.0

    def report(what: str, state: "SweepState | None") -> None:
        nonlocal stage, last_line, last_time
        line = _doing(what, state)
        now = "measuring" if state is None else f"{what} {'running' if state.left else 'finished'}"
        same = line.partition(",")[0] == last_line.partition(",")[0] and state is not None
        wait = TIME_SECONDS if same else LINE_SECONDS
        if line == last_line or (now == stage and time.monotonic() - last_time < wait):
            return
        stage, last_line, last_time = now, line, time.monotonic()
        typer.echo(f"{time.strftime('%H:%M:%S')} {visible(line)}", err=True)

    return report


def _doing(what: str, state: "SweepState | None") -> str:
    if state is None:
        return what
    finished = len(state.cells) - state.left
    left = f", about {show_seconds(state.expected_seconds)} left" if state.left and state.expected_seconds else ""
    return f"{what}: {finished} of {plural(len(state.cells), 'run')} finished{left}"


def _interrupted(home: Path) -> None:
    """What an interrupted study leaves behind."""
    from deepwide.studies import saved_parts, saved_runs

    runs, parts = saved_runs(home), saved_parts(home)
    saved = [plural(runs, "finished run")] if runs else []
    saved += [f"{plural(parts, 'finished part')} of the measuring"] if parts else ["the checkpoints of other runs"]
    what = f"{' and '.join(saved)} are" if runs or parts else "what was begun is"
    typer.echo(f"deepwide: Interrupted: {what} saved in {visible(str(home))}; the same command resumes.", err=True)


def _about(one: "Study") -> dict[str, object]:
    from deepwide.studies import estimated_seconds

    return {
        "name": one.name,
        "question": one.question,
        "source": {"citation": one.source.citation, "link": one.source.link},
        "claims": [
            {"key": rule.claim.key, "claim": rule.claim.statement, "where": rule.claim.where, "rule": rule.text}
            for rule in one.rules
        ],
        "expected_seconds": estimated_seconds(one),
        "rule_hash": one.rule_hash,
    }


def _stated(one: "Study", preset: str) -> str:
    from deepwide.studies import estimated_seconds

    seconds = estimated_seconds(one).get(preset)
    return f"; the whole study, estimated for two idle cores: {show_seconds(seconds)}" if seconds else ""


def _cost(forecast: "Forecast") -> str:
    if forecast.expected_seconds is None:
        return f"{forecast.preset:6} trains nothing"
    return (
        f"{forecast.preset:6} trains {plural(forecast.runs, 'run')}, {show_count(forecast.train_flops)} FLOPs: "
        f"about {show_seconds(forecast.expected_seconds)} on this machine, as busy as it is now"
    )


def _dry_run(forecast: "Forecast", *, json: bool) -> None:
    """What a run would do; what would stop it is an error here too."""
    if json:
        print_json(forecast)
    elif not forecast.missing:
        console().print(_cost(forecast))
    assert forecast.folder is not None
    if forecast.folder.refusal or forecast.missing:
        raise DeepwideError(forecast.missing or forecast.folder.refusal)
    if not json:
        console().print(escape(_in_folder(forecast.folder, forecast.runs)), soft_wrap=True)


def _in_folder(folder: "Folder", runs: int) -> str:
    if folder.state == "new":
        return f"{folder.path} holds no study: it would start there."
    finished = f"{folder.finished_runs} of {plural(runs, 'run')} finished" if runs else "it had started"
    parts = f", {plural(folder.finished_parts, 'finished part')} of the measuring" if folder.finished_parts else ""
    ends = {
        "resumes": f"would be resumed: {finished}{parts}.",
        "measured": "has been measured: it would be judged, and its page written.",
        "finished": "is finished: it would be judged again, and its page written anew; nothing would be trained.",
    }
    return f"This study in {folder.path} {ends[folder.state]}"


def _show(result: "StudyResult", page: Path) -> None:
    from deepwide.studies import find_study, show_measured, show_time

    to, one = console(), find_study(result.study)
    to.print(f"[bold]{result.study}[/bold] ({result.preset}). {show_time(result.measured)}")
    for index, verdict in enumerate(result.verdicts):
        shown = show_measured(one, result, index)
        measured = f" Measured: {escape(shown)}." if shown else ""
        to.print(f"[bold]{verdict.outcome}[/bold]: {escape(verdict.claim)}{measured}")
        for note in verdict.notes:
            to.print(f"  {escape(str(note))}")
    for note in result.notes:
        to.print(f"Note: {escape(str(note))}.")
    to.print(f"Page: {page}", soft_wrap=True)
