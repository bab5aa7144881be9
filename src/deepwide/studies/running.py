"""From a study's name to its folder: train what it trains, measure, judge by its rules, write."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.figures import check_suffix
from deepwide.files import write_text
from deepwide.studies.folder import PAGE, RESULT, code_version, read_measured, start, write_measured, write_table
from deepwide.studies.page import write_page
from deepwide.studies.registry import find_study
from deepwide.studies.study import Forecast, Measured, Study, StudyResult, Workplace

if TYPE_CHECKING:
    from deepwide.sweeping import SweepState


def run_study(
    name: str | Study,
    preset: str = "quick",
    *,
    changes: tuple[str, ...] = (),
    out: Path | str | None = None,
    on: str = "local",
    processes: int | None = None,
    threads: int = 1,
    progress: "Callable[[str, SweepState | None], None] | None" = None,
    stop: Callable[[], bool] = lambda: False,
) -> StudyResult:
    """Run a study, or resume it, and write its folder; returns what is in study.json.

    `changes` are settings as `name=value`. `progress` is called with what is being done and, during a sweep, with its
    state. When `stop()` becomes true, runs write a checkpoint and a DeepwideError says that the study resumes.
    """
    study = find_study(name) if isinstance(name, str) else name
    settings = study.settings(preset, changes)
    if type(study).figures is not Study.figures:
        check_suffix("figure.svg")  # what draws must be installed before hours are spent
    plain = settings.model_dump(mode="json")
    home = Path(out) if out is not None else Path("studies") / f"{study.name}-{preset}"
    started = start(home, study, preset, plain)
    report = progress or (lambda *_: None)
    began = time.monotonic()
    measured = read_measured(home)
    if measured is None:
        folders = _train(study, settings, home, on, processes, threads, report, stop)
        workplace = Workplace(folders, lambda what: report(what, None), stop)
        measured = study.measure(settings, workplace)
        measured = measured.model_copy(update={"seconds": time.monotonic() - began})
        write_measured(home, measured)
    result = StudyResult(
        study=study.name,
        preset=preset,
        question=study.question,
        source=f"{study.source.citation} {study.source.link}",
        settings=plain,
        measured=measured,
        verdicts=tuple(rule.judge(measured) for rule in study.rules),
        seconds=measured.seconds,
        rule_hash=study.rule_hash,
        rule_hash_at_start=started.rule_hash,
        code=code_version(),
        notes=_notes(started.code, started.rule_hash, study),
    )
    _write(home, study, measured, result)
    return result


def dry_run(name: str | Study, preset: str = "quick", *, changes: tuple[str, ...] = ()) -> Forecast:
    """What a study would train, and how long that would take on this machine. Runs nothing and writes nothing."""
    from deepwide.sweeping import expand

    study = find_study(name) if isinstance(name, str) else name
    settings = study.settings(preset, changes)
    expansions = {key: expand({"name": key, **spec}) for key, spec in study.sweeps(settings).items()}
    return Forecast(
        study=study.name,
        preset=preset,
        settings=settings.model_dump(mode="json"),
        runs=sum(len(expansion.cells) for expansion in expansions.values()),
        train_flops=sum(expansion.train_flops for expansion in expansions.values()),
        expected_seconds=sum(e.expected_seconds for e in expansions.values()) if expansions else None,
        sweeps={
            key: {"runs": len(e.cells), "train_flops": e.train_flops, "expected_seconds": e.expected_seconds}
            for key, e in expansions.items()
        },
    )


def _train(
    study: Study,
    settings: Any,
    home: Path,
    on: str,
    processes: int | None,
    threads: int,
    report: "Callable[[str, SweepState | None], None]",
    stop: Callable[[], bool],
) -> dict[str, Path]:
    """Every sweep of a study, from where it stands to its end."""
    specs = study.sweeps(settings)
    if not specs:
        return {}
    from deepwide.sweeping import sweep

    folders = {}
    for key, spec in specs.items():
        folders[key] = home / "runs" / key
        state = sweep(
            {"name": key, **spec},
            runs=folders[key],
            on=on,
            processes=processes,
            threads=threads,
            progress=lambda state, key=key: report(key, state),  # type: ignore[misc]
            stop=stop,
        )
        report(key, state)
        if state.left or state.failed:
            why = "; ".join(str(note) for note in state.notes) or f"{state.counts}"
            raise DeepwideError(
                f"the sweep {key} of {study.name} is not finished ({why}): run the same study again, and it resumes."
            )
    return folders


def _notes(code: dict[str, str], rule_hash: str, study: Study) -> tuple[Note, ...]:
    notes = []
    if rule_hash != study.rule_hash:
        notes.append(
            Note.of(
                "rules_changed",
                "the rules were changed after this study was started: its verdicts were not fixed in advance",
                before=rule_hash,
                now=study.rule_hash,
            )
        )
    if code["source"] != code_version()["source"]:
        notes.append(
            Note.of(
                "code_changed",
                "the code was changed between the start of this study and its judgement",
                before=code["source"],
                now=code_version()["source"],
            )
        )
    return tuple(notes)


def _write(home: Path, study: Study, measured: Measured, result: StudyResult) -> None:
    """Result, tables, figures and page; study.json last."""
    for name, rows in measured.tables.items():
        write_table(home / f"{name}.csv", rows)
    pictures = []
    charts = study.figures(measured)
    if charts:
        from deepwide.figures import save_chart

        for name, chart in charts.items():
            save_chart(chart, home / f"{name}.svg")
            pictures.append(f"{name}.svg")
    write_text(home / PAGE, write_page(study, result, pictures))
    write_text(home / RESULT, result.model_dump_json(indent=1) + "\n")
