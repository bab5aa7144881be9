"""The folder of a study's run.

<out>/started.json       settings, rules and code as they stood before anything was trained or measured
      runs/<sweep>/      run folders, as of any sweep
      parts/             parts of the measuring that are finished, until all of it is
      measured.json      what was measured; the slow part, never done twice
      study.json         the StudyResult
      <table>.csv, <figure>.svg
      page.md            the report of this folder, written by `deepwide study run` and `deepwide report`

A study that was interrupted resumes: finished runs and measurements stay. One process at a time works in a folder: it
holds a lock on started.json, which ends with the process however that ends.
"""

import csv
import fcntl
import hashlib
import io
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from deepwide.studies.fingerprint import source_of
from deepwide.studies.rules import Measured
from deepwide.studies.study import Folder, Study, StudyResult

Model = TypeVar("Model", bound=Answer)
STARTED, MEASURED, RESULT, RUNS, PARTS = "started.json", "measured.json", "study.json", "runs", "parts"
MOST_NAMED = 3  # settings that a refusal names


class Started(Answer):
    """What stood before the study began."""

    study: str
    preset: str
    settings: dict[str, Any]
    rule_hash: str
    code: dict[str, str]


def as_started(study: Study, preset: str, settings: dict[str, Any]) -> Started:
    """What a study that starts now records."""
    return Started(study=study.name, preset=preset, settings=settings, rule_hash=study.rule_hash, code=code_version())


@contextmanager
def working_in(out: Path, now: Started) -> Iterator[Started]:
    """The record of a study's start: the one in the folder, or a new one; for the block, nobody else works there.

    A folder of another study or of other settings is refused, and so is one in which a process works.
    """
    path = out / STARTED
    while True:
        if not path.exists():
            write_text(path, now.model_dump_json(indent=2) + "\n")
        before = read_started(out)
        if refusal := _differs(out, before, now):
            raise DeepwideError(refusal)
        with open(path, "r+b") as file:
            _lock(file.fileno(), out)
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                continue  # two began at the same moment, and the other one's record replaced ours
            yield before
            return


def look_at(out: Path, now: Started) -> Folder:
    """What a study would find in a folder; changes nothing."""
    path = out / STARTED
    if not path.exists():
        above = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            return Folder(path=str(out), state="refused", refusal=f"{above} cannot be written to: give another folder.")
        return Folder(path=str(out), state="new")
    try:
        refusal = _differs(out, read_started(out), now)
        measured = read_measured(out)
        with open(path, "r+b") as file:
            _lock(file.fileno(), out)
    except DeepwideError as error:
        refusal, measured = str(error), None
    except OSError as error:
        refusal, measured = f"{path} cannot be written to ({error.strerror}): give another folder.", None
    state = "refused" if refusal else "resumes" if measured is None else "measured"
    if state == "measured" and (out / RESULT).exists():
        state = "finished"
    saved = {"finished_runs": saved_runs(out), "finished_parts": saved_parts(out)}
    return Folder(path=str(out), state=state, refusal=refusal, **saved)


def _lock(handle: int, out: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DeepwideError(
            f"another process is at work in {out}: wait until it has finished, or give another folder."
        ) from None
    except OSError as error:
        raise DeepwideError(f"the file system of {out} has no locks ({error.strerror}): give another folder.") from None


def read_started(out: Path) -> Started:
    """What stood before the study in a folder began."""
    return _read(out / STARTED, Started, "the start of a study", "move the folder away, or give another")


def _differs(out: Path, before: Started, now: Started) -> str:
    """Why a folder is not this study's, as a sentence; nothing if it is."""
    if before.study != now.study:
        return (
            f"{out} holds the study {before.study} ({before.preset}), not {now.study}: give another folder, or move "
            "that one away."
        )
    names = [name for name in now.settings | before.settings if before.settings.get(name) != now.settings.get(name)]
    if not names:
        return ""
    shown = [f"{name} is {_short(before.settings, name)}, not {_short(now.settings, name)}" for name in names]
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (
        f"{out} holds {before.study} ({before.preset}) with other settings: {'; '.join(shown[:MOST_NAMED])}{rest}. "
        "Give its settings to resume it, or give another folder."
    )


def _short(settings: dict[str, Any], name: str) -> str:
    text = json.dumps(settings[name]) if name in settings else "not set"
    return text if len(text) <= 40 else text[:39] + "…"


def fingerprint(study: Study, settings: dict[str, Any], inputs: Sequence[Path]) -> str:
    """A hash of what determines a measurement: settings, our code and the study's own, the files that it reads."""
    module = getattr(sys.modules.get(type(study).__module__), "__file__", None)
    own = Path(module).read_text(encoding="utf-8") if module else source_of(type(study).measure)
    files = [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in inputs]
    known = [study.name, settings, code_version(), own, files]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def read_measured(out: Path) -> Measured | None:
    """What was measured before, if it was."""
    path, remedy = out / MEASURED, "delete it, and the study is measured again; its runs stay"
    return _read(path, Measured, "a study's measurements", remedy) if path.exists() else None


def write_measured(out: Path, measured: Measured) -> None:
    """Store what was measured."""
    write_text(out / MEASURED, measured.model_dump_json(indent=1) + "\n")


def read_result(out: Path | str) -> StudyResult:
    """The result in a study's folder."""
    return _read(Path(out) / RESULT, StudyResult, "a study's result", "run the study again, and it is written anew")


def saved_runs(out: Path | str) -> int:
    """How many runs of a study have finished."""
    return sum(1 for _ in (Path(out) / RUNS).glob("*/*/result.json"))


def saved_parts(out: Path | str) -> int:
    """How many parts of a study's measuring have finished, while all of it has not."""
    return sum(1 for _ in (Path(out) / PARTS).glob("[!.]*.json"))


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


def _read(path: Path, model: type[Model], what: str, remedy: str) -> Model:
    try:
        return model.model_validate(read_json(path, what))
    except ValidationError as error:
        raise DeepwideError(f"{path} is not {what}: {explain(error, model).removesuffix('.')}; {remedy}.") from None
    except DeepwideError as error:
        if not path.exists():
            raise
        raise DeepwideError(f"{str(error).removesuffix('.')}; {remedy}.") from None
