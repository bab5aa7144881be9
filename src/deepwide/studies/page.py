"""A study's page in plain words, as Markdown: the claim, what was done, what was measured, the verdict."""

import json

from deepwide.answers import Interval
from deepwide.quantities import show_seconds
from deepwide.studies.rules import Measured
from deepwide.studies.study import Study, StudyResult

LONGEST_TABLE = 60  # rows on the page; longer ones are in their CSV files


def write_page(study: Study, result: StudyResult, pictures: list[str], command: str = "") -> str:
    """The page of a result, with links to the pictures beside it; it ends with the command that made it."""
    parts = [
        f"# {study.name}: {study.question}",
        f"Source: {study.source.citation} <{study.source.link}>",
        *_warnings(result),
        "## Verdict",
        *(_verdict(study, result, index) for index in range(len(study.rules))),
        *(f"![{name.removesuffix('.svg')}]({name})" for name in pictures),
        "## What was done",
        study.method,
        "Settings: " + ", ".join(f"`{name} = {value}`" for name, value in result.settings.items()) + ".",
        "## What was measured",
        _numbers(result),
        *(_table(name, rows) for name, rows in result.measured.tables.items()),
        *(f"- {note}." for note in result.measured.notes),
        "## How this differs from the original",
        study.differences,
        "## How to repeat it",
        f"{show_time(result.measured)} Versions: "
        + ", ".join(f"{name} {version}" for name, version in result.code.items())
        + f". Rules: {result.rule_hash}.",
        f"    {command or f'deepwide.run_study({_arguments(study, result)})'}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _arguments(study: Study, result: StudyResult) -> str:
    """What `run_study` is called with: the study, the preset, and the settings that differ from it."""
    preset = study.settings(result.preset).model_dump(mode="json")
    changed = [name for name, value in result.settings.items() if preset.get(name) != value]
    changes = tuple(f"{name}={json.dumps(result.settings[name])}" for name in changed)
    return f'"{result.study}", "{result.preset}"' + (f", changes={changes!r}" if changes else "")


def show_time(measured: Measured) -> str:
    """What training and measuring took, as a sentence."""
    training, measuring = measured.training_seconds, measured.measuring_seconds
    if training is None or measuring is None:
        return f"It took {show_seconds(measured.seconds)}."
    if not training:
        return f"Measuring took {show_seconds(measuring)}."
    return f"Training took {show_seconds(training)} of one worker, measuring {show_seconds(measuring)}."


def show_measured(study: Study, result: StudyResult, index: int) -> str:
    """The number that a verdict rests on and what it is; nothing where there is none."""
    interval = result.verdicts[index].measured
    if interval is None:
        return ""
    quantity = study.rules[index].quantity_in(result.measured, interval)
    return f"{quantity}: {show_interval(interval)}" if quantity else show_interval(interval)


def show_interval(interval: Interval) -> str:
    """0.36 (95%: 0.27 to 0.45), with more digits where four would show no difference."""
    if interval.low is None or interval.high is None:
        whole = float(interval.value).is_integer() and abs(interval.value) < 1e15
        return f"{interval.value:,.0f}" if whole else f"{interval.value:.4g}"
    low, high = interval.low, interval.high
    digits = next((n for n in range(4, 10) if low == high or f"{low:.{n}g}" != f"{high:.{n}g}"), 4)
    return f"{interval.value:.{digits}g} (95%: {low:.{digits}g} to {high:.{digits}g})"


def _warnings(result: StudyResult) -> list[str]:
    return [f"> **{str(note)[:1].upper()}{str(note)[1:]}.**" for note in result.notes]


def _verdict(study: Study, result: StudyResult, index: int) -> str:
    rule, verdict = study.rules[index], result.verdicts[index]
    where = f" ({rule.claim.where})" if rule.claim.where else ""
    lines = [f"- **{verdict.outcome}**: {rule.claim.statement}{where}", f"  Rule: {rule.text}"]
    if shown := show_measured(study, result, index):
        lines.append(f"  Measured: {shown}.")
    lines += [f"  {note}." for note in verdict.notes]
    return "\n".join(lines)


def _numbers(result: StudyResult) -> str:
    if not result.measured.numbers:
        return ""
    rows = [f"| {name} | {show_interval(value)} |" for name, value in result.measured.numbers.items()]
    return "\n".join(["| what | value |", "|---|---|", *rows])


def _table(name: str, rows: list[dict[str, object]]) -> str:
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if len(rows) > LONGEST_TABLE:
        return f"**{name}**: {len(rows)} rows in [{name}.csv]({name}.csv)."
    lines = [f"**{name}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")
