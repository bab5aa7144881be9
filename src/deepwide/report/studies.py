"""The report of a study: its verdicts, its figures, and every table that was measured."""

import json
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.quantities import show_seconds
from deepwide.report.document import Attachment, Block, Facts, Figure, Notes, Report, Section, Table, Text
from deepwide.studies import StudyResult, find_study, show_interval

LARGEST_PICTURE = 4 << 20  # bytes
MOST_PICTURES = 20


def study_report(result: StudyResult, folder: Path | None = None) -> Report:
    """The report of a result; pictures are those that the study wrote into its folder."""
    numbers = [
        {"what": name, "value": value.value, "low": value.low, "high": value.high}
        for name, value in result.measured.numbers.items()
    ]
    titles = {"what": "what", "value": "value", "low": "from", "high": "to"}
    tables = [Table.of(name, rows, name) for name, rows in result.measured.tables.items() if rows]
    notes = tuple(map(str, result.measured.notes))
    measured: list[Block] = [
        *([Notes(notes)] if notes else []),
        *([Table.of("numbers", numbers, "From, to: 95%.", titles)] if numbers else []),
        *tables,
    ]
    settings = tuple((name, json.dumps(value)) for name, value in result.settings.items())
    repeat = (
        ("settings", ""),
        *settings,
        ("rules", result.rule_hash + (" (changed after the study was started)" if result.rules_changed else "")),
        ("time", show_seconds(result.seconds)),
        *((f"{name} version" if name != "source" else "source", version) for name, version in result.code.items()),
    )
    document = Attachment("study.json", result.model_dump_json(indent=1).encode(), "application/json")
    sections = [
        Section("Verdicts", (*_warnings(result), *_verdicts(result))),
        *([Section("Figures", pictures)] if (pictures := _pictures(folder)) else []),
        *_words(result.study),
        Section("What was measured", tuple(measured)),
        Section("How to repeat it", (Facts(repeat), document)),
    ]
    return Report("study", f"{result.study}: {result.question}", f"Source: {result.source}", tuple(sections))


def _warnings(result: StudyResult) -> tuple[Notes, ...]:
    texts = tuple(str(note) for note in result.notes)
    return (Notes(texts, warning=True),) if texts else ()


def _verdicts(result: StudyResult) -> list[Block]:
    blocks: list[Block] = []
    for verdict in result.verdicts:
        facts = [("rule", verdict.rule)]
        if verdict.measured is not None:
            facts.append(("measured", show_interval(verdict.measured)))
        facts += [("note", str(note)) for note in verdict.notes]
        blocks += [Text(f"{verdict.outcome}: {verdict.claim}", strong=True), Facts(tuple(facts))]
    return blocks


def _words(name: str) -> tuple[Section, ...]:
    """What was done and how it differs from the original, in the words of the study, where we have it."""
    try:
        study = find_study(name)
    except DeepwideError:
        return ()
    words = (Text(study.method), Text(f"How this differs from the original: {study.differences}"))
    return (Section("What was done", words),)


def _pictures(folder: Path | None) -> tuple[Block, ...]:
    """The pictures in a study's folder; one that is too large is a sentence."""
    blocks: list[Block] = []
    for path in sorted(folder.glob("*.svg"))[:MOST_PICTURES] if folder else ():
        if not path.is_file():
            continue
        if path.stat().st_size > LARGEST_PICTURE:
            blocks.append(Notes((f"{path.name} is larger than {LARGEST_PICTURE >> 20} MiB and is left out",)))
            continue
        words = path.stem.replace("_", " ")
        blocks.append(Figure.from_svg(path.stem, path.read_text("utf-8", "replace"), words))
    return tuple(blocks)
