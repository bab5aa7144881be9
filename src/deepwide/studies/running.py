"""From a study's name to its folder: train what it trains, measure, judge by its rules, write."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError, needs
from deepwide.figures import check_suffix, save_chart
from deepwide.files import clear_temporaries, write_text
from deepwide.run import read_lease
from deepwide.studies import folder as folders
from deepwide.studies.registry import find_study
from deepwide.studies.study import Forecast, Study, StudyResult
from deepwide.studies.workplace import Parts, Workplace

if TYPE_CHECKING:
    from deepwide.sweeping import Expansion, SweepState


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
    state. When `stop()` becomes true, runs write a checkpoint, the measuring ends after the part that it is at, and a
    DeepwideError says that the study resumes. The study's page is the report of its folder: `write_report`.
    """
    study = find_study(name) if isinstance(name, str) else name
    settings = study.settings(preset, changes)
    _check_libraries(study)  # what is missing is asked for before hours are spent
    inputs = study.inputs(settings)
    plain = settings.model_dump(mode="json")
    home = folder_of(study, preset, out)
    report = progress or (lambda *_: None)
    with folders.working_in(home, folders.as_started(study, preset, plain)) as started:
        measured = folders.read_measured(home)
        if measured is None:
            runs = _train(study, settings, home, on, processes, threads, report, stop)
            parts = Parts(home / folders.PARTS, folders.fingerprint(study, plain, inputs))
            began = time.monotonic()
            measured = study.measure(settings, Workplace(runs, lambda what: report(what, None), stop, parts))
            training = _worked(home)
            measuring = time.monotonic() - began + parts.seconds_before
            seconds = {"training_seconds": training, "measuring_seconds": measuring, "seconds": training + measuring}
            measured = measured.model_copy(update=seconds)
            folders.write_measured(home, measured)
        charts = study.figures(measured)
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
            code=folders.code_version(),
            figures=tuple(charts),
            notes=_notes(started.code, started.rule_hash, study),
        )
        _write(home, charts, result)
        Parts(home / folders.PARTS).remove()
        clear_temporaries(home)  # of processes that were killed
    return result


def folder_of(study: Study, preset: str, out: Path | str | None) -> Path:
    """Where a study is run: in the folder given, or in the one of its name and preset."""
    return Path(out) if out is not None else Path("studies") / f"{study.name}-{preset}"


def dry_run(
    name: str | Study, preset: str = "quick", *, changes: tuple[str, ...] = (), out: Path | str | None = None
) -> Forecast:
    """What a study would train, how long the rest of that would take on this machine, and what is in its folder.

    Runs nothing and writes nothing. The time is an estimate for the machine as busy as it is now.
    """
    study = find_study(name) if isinstance(name, str) else name
    settings = study.settings(preset, changes)
    plain = settings.model_dump(mode="json")
    home = folder_of(study, preset, out)
    missing, expansions = "", {}
    try:
        _check_libraries(study)
        study.inputs(settings)
        expansions = _expand(study, settings, home)
    except DeepwideError as error:
        missing = str(error)
    return Forecast(
        study=study.name,
        preset=preset,
        settings=plain,
        runs=sum(len(expansion.cells) for expansion in expansions.values()),
        train_flops=sum(expansion.train_flops for expansion in expansions.values()),
        expected_seconds=sum(e.expected_seconds for e in expansions.values()) if expansions else None,
        workers=max((e.workers for e in expansions.values()), default=1),
        sweeps={
            key: {"runs": len(e.cells), "train_flops": e.train_flops, "expected_seconds": e.expected_seconds}
            for key, e in expansions.items()
        },
        missing=missing,
        folder=folders.look_at(home, folders.as_started(study, preset, plain)),
    )


def _expand(study: Study, settings: Any, home: Path) -> "dict[str, Expansion]":
    specs = study.sweeps(settings)
    if not specs:
        return {}
    from deepwide.sweeping import expand

    return {key: expand({"name": key, **spec}, runs=home / folders.RUNS / key) for key, spec in specs.items()}


def _check_libraries(study: Study) -> None:
    """Ask for the libraries that measuring and drawing need."""
    for module, extra in study.libraries.items():
        needs(module, extra)
    if type(study).figures is not Study.figures:
        check_suffix("figure.svg")


def _worked(home: Path) -> float:
    """Seconds that workers spent on the runs of a study, in all its sessions."""
    leases = (read_lease(path.parent) for path in (home / folders.RUNS).glob("*/*/lease.json"))
    return round(sum(float(lease.get("worked", 0.0)) for lease in leases if lease), 3)


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

    runs = {}
    for key, spec in specs.items():
        runs[key] = home / folders.RUNS / key
        state = sweep(
            {"name": key, **spec},
            runs=runs[key],
            on=on,
            processes=processes,
            threads=threads,
            progress=lambda state, key=key: report(key, state),  # type: ignore[misc]
            stop=stop,
        )
        report(key, state)
        if state.left or state.failed:
            if state.failed:
                raise DeepwideError(
                    f"{state.failed} of the runs of {study.name}, {key}, failed: `deepwide sweep status {runs[key]}` "
                    f"says why, and `deepwide sweep retry {runs[key]}` tries them again."
                )
            why = "; ".join(str(note) for note in state.notes) or f"{state.counts}"
            raise DeepwideError(
                f"the sweep {key} of {study.name} is not finished ({why}): run the same study again, and it resumes."
            )
    return runs


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
    if code["source"] != folders.code_version()["source"]:
        notes.append(
            Note.of(
                "code_changed",
                "the code was changed between the start of this study and its judgement",
                before=code["source"],
                now=folders.code_version()["source"],
            )
        )
    return tuple(notes)


def _write(home: Path, charts: Mapping[str, Any], result: StudyResult) -> None:
    """Tables, figures and result; study.json last."""
    for name, rows in result.measured.tables.items():
        folders.write_table(home / f"{name}.csv", rows)
    for name, chart in charts.items():
        save_chart(chart, home / f"{name}.svg")
    write_text(home / folders.RESULT, result.model_dump_json(indent=1) + "\n")
