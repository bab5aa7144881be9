"""The folder of a study's run.

<out>/started.json       settings, rules and code as they stood before anything was trained or measured
      runs/<sweep>/      run folders, as of any sweep
      measured.json      what was measured; the slow part, never done twice
      study.json         the StudyResult
      <table>.csv, <figure>.svg, page.md

A study that was interrupted resumes: finished runs and measurements stay.
"""

import csv
import hashlib
import io
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

import deepwide
from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.files import read_json, write_text
from deepwide.settings import explain
from deepwide.studies.study import Measured, Study, StudyResult

Model = TypeVar("Model", bound=Answer)
STARTED, MEASURED, RESULT, PAGE = "started.json", "measured.json", "study.json", "page.md"


class Started(Answer):
    """What stood before the study began."""

    study: str
    preset: str
    settings: dict[str, Any]
    rule_hash: str
    code: dict[str, str]


def start(out: Path, study: Study, preset: str, settings: dict[str, Any]) -> Started:
    """The record of a study's start: the one in the folder, or a new one. A folder of another study is refused."""
    now = Started(study=study.name, preset=preset, settings=settings, rule_hash=study.rule_hash, code=code_version())
    path = out / STARTED
    if not path.exists():
        write_text(path, now.model_dump_json(indent=2) + "\n")
        return now
    before = _read(path, Started, "the start of a study")
    if (before.study, before.settings) != (now.study, now.settings):
        raise DeepwideError(
            f"{out} holds {before.study} ({before.preset}) with other settings: give another folder, or move it away."
        )
    return before


def read_measured(out: Path) -> Measured | None:
    """What was measured before, if it was."""
    path = out / MEASURED
    return _read(path, Measured, "a study's measurements") if path.exists() else None


def write_measured(out: Path, measured: Measured) -> None:
    """Keep what was measured."""
    write_text(out / MEASURED, measured.model_dump_json(indent=1) + "\n")


def read_result(out: Path | str) -> StudyResult:
    """The result in a study's folder."""
    return _read(Path(out) / RESULT, StudyResult, "a study's result")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows as CSV; columns in the order in which they appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


@cache
def code_version() -> dict[str, str]:
    """Which code computes: our version, a hash of our source, and the libraries that numbers may depend on."""
    digest = hashlib.sha256()
    home = Path(deepwide.__file__).parent
    for path in sorted(home.rglob("*.py")):
        digest.update(str(path.relative_to(home)).encode() + b"\0" + path.read_bytes())
    versions = {
        "deepwide": deepwide.__version__,
        "source": digest.hexdigest()[:16],
        "python": platform.python_version(),
    }
    for library in ("numpy", "torch", "scipy"):
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    return versions


def _read(path: Path, model: type[Model], what: str) -> Model:
    content = read_json(path, what)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise DeepwideError(f"{path} is not {what}: {explain(error, model)}") from None
