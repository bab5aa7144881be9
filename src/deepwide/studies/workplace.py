"""Where a study measures: its trained runs, a way to report progress, and parts of the measuring that are stored.

A part is stored when it is finished, so that an interruption costs no more than one. It is used again only if whatever
determines it is as it was (settings, code, inputs). What a part returns goes through JSON before anything uses it,
stored or not: a study that was interrupted ends with the same bytes as one that was not.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.files import read_json, remove_folder, write_text

LONGEST_NAME = 60  # letters of a part's name that its file has


class StoredPart(Answer):
    """A finished part of a measurement, as its file states it."""

    name: str
    fingerprint: str  # of what determines it
    seconds: float
    content: Any


class Parts:
    """The finished parts in a folder; without one, parts are computed and not stored."""

    def __init__(self, folder: Path | None = None, fingerprint: str = "") -> None:
        self.folder, self.fingerprint = folder, fingerprint
        self.seconds_before = 0.0  # that the parts read here took when they were computed
        self._names: set[str] = set()

    def get(self, name: str, work: Callable[[], Any], begins: Callable[[], None] = lambda: None) -> Any:
        """A part's content: read, or computed by `work` and stored. `begins` is called before it is computed."""
        if name in self._names:
            raise AssertionError(f"two parts of one measurement are called '{name}'")
        self._names.add(name)
        part = self._read(name)
        if part is not None:
            self.seconds_before += part.seconds
            return part.content
        begins()
        began = time.monotonic()
        content = json.dumps(work(), ensure_ascii=False)
        if self.folder is not None:
            head = {"name": name, "fingerprint": self.fingerprint, "seconds": round(time.monotonic() - began, 3)}
            start = json.dumps(head, ensure_ascii=False).removesuffix("}")
            write_text(self._path(name), f'{start}, "content": {content}}}\n')
        return json.loads(content)

    def remove(self) -> None:
        """Forget every part: their measurement is stored as a whole."""
        if self.folder is not None and self.folder.is_dir():
            remove_folder(self.folder)

    def _read(self, name: str) -> StoredPart | None:
        """A part that was stored by the same code with the same settings. One that is damaged is computed again."""
        if self.folder is None or not self._path(name).exists():
            return None
        try:
            part = StoredPart.model_validate(read_json(self._path(name), "a part of a study's measurements"))
        except ValueError:  # DeepwideError and ValidationError are such
            return None
        return part if (part.name, part.fingerprint) == (name, self.fingerprint) else None

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        letters = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_NAME]
        return self.folder / f"{letters}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json"


@dataclass(frozen=True)
class Workplace:
    """What a study measures with: its trained runs by sweep, and a way to report progress and to be stopped."""

    runs: Mapping[str, Path] = field(default_factory=dict)  # the folder of runs of each sweep
    report: Callable[[str], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    parts: Parts = field(default_factory=Parts)

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` returns, as plain JSON values: a part of the measuring that an interruption does not lose.

        Its name is reported when it begins. Lists stand for tuples and text for the keys of dicts, as in JSON.

        >>> Workplace().part("squares", lambda: {2: (4, 4.5)})
        {'2': [4, 4.5]}
        """

        def begins() -> None:
            self.check()
            self.report(name)

        return self.parts.get(name, work, begins)

    def check(self) -> None:
        """Raise the error that ends the measuring if it is to stop."""
        if self.stop():
            raise DeepwideError("the study was stopped while measuring: run it again, and it resumes.")
