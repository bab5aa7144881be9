"""The report of a study, which is its page too: its verdicts, its figures, and every table that was measured."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.report.document import Attachment, Block, Command, Facts, Figure, Notes, Report, Section, Table, Text
from deepwide.studies import Study, StudyResult, find_study, show_interval, show_measured, show_time

LARGEST_PICTURE = 4 << 20  # bytes
MOST_PICTURES = 20
MOST_ROWS = 24  # of a table; all are in its CSV


def study_report(result: StudyResult, folder: Path | None = None) -> Report:
    """The report of a result; pictures are those that the study wrote into its folder."""
    try:
        study: Study | None = find_study(result.study)
    except DeepwideError:  # of another version, or somebody's own
        study = None
    numbers = tuple((name, show_interval(value)) for name, value in result.measured.numbers.items())
    settings = tuple((name, _written(value)) for name, value in result.settings.items())
    repeat = (
        ("preset", result.preset),
        ("rules", result.rule_hash + (" (changed after the study was started)" if result.rules_changed else "")),
        *((f"{name} version" if name != "source" else "source", version) for name, version in result.code.items()),
    )
    measured: tuple[Block, ...] = (
        *([Facts(numbers)] if numbers else []),
        *(
            Table.of(name, rows, f"{name.replace('_', ' ').capitalize()}:", most=MOST_ROWS)
            for name, rows in result.measured.tables.items()
            if rows
        ),
        *_notes(result.measured.notes),
    )
    document = Attachment("study.json", result.model_dump_json(indent=1).encode(), "application/json")
    sections = (
        Section("Verdicts", (*_notes(result.notes, warning=True), *_verdicts(result, study))),
        *([Section("Figures", pictures)] if (pictures := _pictures(result, folder)) else []),
        Section("What was done", (*([Text(study.method)] if study else []), Text("Settings:"), Facts(settings))),
        Section("What was measured", measured),
        *([Section("How this differs from the original", (Text(study.differences),))] if study else []),
        Section(
            "How to repeat it",
            (Command(_command(result, study)), Text(show_time(result.measured)), Facts(repeat), document),
        ),
    )
    return Report("study", f"{result.study}: {result.question}", f"Source: {result.source}", sections, folder=folder)


def _notes(notes: Sequence[Note], *, warning: bool = False) -> tuple[Notes, ...]:
    return (Notes(tuple(map(str, notes)), warning),) if notes else ()


def _verdicts(result: StudyResult, study: Study | None) -> list[Block]:
    """Each claim with its outcome, its rule and the number it rests on, as the result has them."""
    blocks: list[Block] = []
    where = {claim.statement: claim.where for claim in study.claims} if study else {}
    for index, verdict in enumerate(result.verdicts):
        number = show_measured(study, result, index)
        facts = [("where", where.get(verdict.claim, "")), ("rule", verdict.rule), ("measured", number)]
        facts = [(name, text) for name, text in facts if text]
        facts += [("note", str(note)) for note in verdict.notes]
        blocks += [Text(f"{verdict.outcome}: {verdict.claim}", strong=True), Facts(tuple(facts))]
    return blocks


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _command(result: StudyResult, study: Study | None) -> str:
    """What runs the same study again: its preset, and the settings that differ from it."""
    changed = {}
    if study and result.preset in study.presets:
        preset = study.settings(result.preset).model_dump(mode="json")
        changed = {name: value for name, value in result.settings.items() if preset.get(name) != value}
    words = [word for name, value in changed.items() for word in ("--set", f"{name}={_written(value)}")]
    return shlex.join(["deepwide", "study", "run", result.study, "--preset", result.preset, *words])


def _pictures(result: StudyResult, folder: Path | None) -> tuple[Block, ...]:
    """The pictures in a study's folder, in the study's order; one that is too large is a sentence."""
    blocks: list[Block] = []
    places = {name: place for place, name in enumerate(result.figures)}
    figures = [path for path in folder.glob("*.svg") if path.is_file() and not path.is_symlink()] if folder else []
    for path in sorted(figures, key=lambda path: (places.get(path.stem, len(places)), path.name))[:MOST_PICTURES]:
        if path.stat().st_size > LARGEST_PICTURE:
            blocks.append(Notes((f"{path.name} is larger than {LARGEST_PICTURE >> 20} MiB and is left out",)))
            continue
        figure = Figure.from_svg(path.stem, path.read_text("utf-8", "replace"), path.stem.replace("_", " "))
        blocks.append(figure if figure.alt == figure.caption else replace(figure, caption=""))  # its title is in it
    return tuple(blocks)
