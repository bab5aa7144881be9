"""What lies under the served folder: sweeps, studies, certificates. Each gets an id, and only an id opens it again.

A path never comes from a client. Links that lead elsewhere are not followed, hidden folders are left out, and the walk
ends after so many folders, so that serving a home directory by mistake is slow for a moment and not for ever.
"""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from deepwide.answers import Answer, Verdict
from deepwide.errors import DeepwideError
from deepwide.separation import Certificate
from deepwide.studies import StudyResult, find_study, read_result, show_measured
from deepwide.sweeping import Spec, read_spec

RUN = re.compile(r"[0-9a-f]{16}")
CERTIFICATE = re.compile(r"L\d+-d\d+-H\d+.*\.json")
LEFT_OUT = {"__pycache__", "node_modules", "checkpoints", "site-packages"}
DEEPEST, MOST_FOLDERS, MOST_CERTIFICATES, MOST_SPECS = 6, 20_000, 500, 200
Readable = StudyResult | Certificate | Spec
FRESH_SECONDS = 2.0  # how long one walk serves everybody


class SweepEntry(Answer):
    """A folder of runs, or a spec that nobody has begun."""

    id: str
    name: str
    folder: str  # of the runs, under the served one
    spec: str  # the TOML file, under the served one; empty where none is there
    runs: int  # folders of runs
    finished: int  # of them, those with a result


class StudyEntry(Answer):
    """A study that was run, or is being run."""

    id: str
    folder: str
    study: str
    preset: str
    question: str
    status: Literal["finished", "started", "unreadable"]
    verdicts: tuple[Verdict, ...] = ()
    seconds: float | None = None
    measured: tuple[str, ...] = ()  # the number behind each verdict, in words
    error: str = ""


class Index(Answer):
    """Everything that was seen under the served folder."""

    folder: str
    sweeps: tuple[SweepEntry, ...]
    studies: tuple[StudyEntry, ...]
    certificates: int
    complete: bool  # False: the walk ended early, because there are too many folders


class SweepPlace(NamedTuple):
    """Where a sweep is."""

    runs: Path
    spec: Path | None


class _Walk(NamedTuple):
    runs: dict[Path, list[str]]  # folders of runs with the names of the runs
    studies: list[Path]
    specs: list[Path]
    certificates: list[Path]
    complete: bool


class Contents:
    """The served folder, walked at most once in so many seconds however many clients ask."""

    def __init__(self, folder: Path | str, fresh_seconds: float = FRESH_SECONDS) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            raise DeepwideError(f"{folder} is not a folder: name the one that has your sweeps and studies.")
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._walked = -float("inf")
        self._index = Index(folder=str(self.folder), sweeps=(), studies=(), certificates=0, complete=True)
        self._sweeps: dict[str, SweepPlace] = {}
        self._studies: dict[str, Path] = {}
        self._certificates: list[Path] = []
        self._finished: dict[Path, set[str]] = {}
        self._read: dict[Path, tuple[tuple[int, int], Readable | str]] = {}

    def index(self) -> Index:
        """What is there now."""
        with self._lock:
            if time.monotonic() - self._walked > self._fresh_seconds:
                self._look()
                self._walked = time.monotonic()
            return self._index

    def sweep(self, key: str) -> SweepPlace | None:
        """The sweep of an id that was issued; None for any other text."""
        if key not in self._sweeps:
            self.index()
        return self._sweeps.get(key)

    def study(self, key: str) -> Path | None:
        """The folder of a study, by its id."""
        if key not in self._studies:
            self.index()
        return self._studies.get(key)

    def certificates(self) -> list[Certificate]:
        """Every certificate that can be read."""
        self.index()
        read = [self._cached(path, self._certificate) for path in self._certificates]
        return [one for one in read if isinstance(one, Certificate)]

    def relative(self, path: Path) -> str:
        """A path as a client sees it."""
        return path.relative_to(self.folder).as_posix()

    def _look(self) -> None:
        walk = self._walk()
        places = {self._id("sweep", runs): SweepPlace(runs, None) for runs in walk.runs}
        names = {self._id("sweep", runs): runs.name for runs in walk.runs}
        for path in walk.specs[:MOST_SPECS]:
            spec = self._cached(path, read_spec)
            if not isinstance(spec, Spec):  # another program's TOML
                continue
            name = spec.name
            runs = self._runs_of(name, walk)
            key = self._id("sweep", runs)
            if key in places and places[key].spec is not None:
                continue
            places[key], names[key] = SweepPlace(runs, path), name
        sweeps = [self._sweep_entry(key, names[key], place, walk) for key, place in places.items()]
        studies = {self._id("study", path): path for path in walk.studies}
        self._sweeps, self._studies, self._certificates = places, studies, walk.certificates
        self._index = Index(
            folder=str(self.folder),
            sweeps=tuple(sorted(sweeps, key=lambda entry: (not entry.runs, entry.folder))),
            studies=tuple(self._study_entry(key, path) for key, path in sorted(studies.items(), key=lambda p: p[1])),
            certificates=len(walk.certificates),
            complete=walk.complete,
        )

    def _walk(self) -> _Walk:
        walk = _Walk({}, [], [], [], True)
        folders = [(self.folder, 0)]
        for number, (folder, depth) in enumerate(_growing(folders)):
            if number >= MOST_FOLDERS:
                return walk._replace(complete=False)
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError:
                continue
            inner = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            files = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
            links = {entry.name for entry in entries if entry.is_symlink()}
            runs = [entry.name for entry in inner if RUN.fullmatch(entry.name)]
            if runs:
                walk.runs[folder] = runs
            if files & {"study.json", "started.json"} and "study.json" not in links:
                walk.studies.append(folder)
            walk.specs.extend(folder / name for name in sorted(files) if name.endswith(".toml"))
            room = MOST_CERTIFICATES - len(walk.certificates)
            walk.certificates.extend([folder / name for name in sorted(files) if CERTIFICATE.fullmatch(name)][:room])
            if depth < DEEPEST:
                folders.extend(
                    (folder / entry.name, depth + 1)
                    for entry in inner
                    if not entry.name.startswith(".") and entry.name not in LEFT_OUT and not RUN.fullmatch(entry.name)
                )
        return walk

    def _runs_of(self, name: str, walk: _Walk) -> Path:
        """Where the runs of a spec are: a folder of its name, the usual place first."""
        usual = self.folder / "runs" / name
        return next((path for path in (usual, *walk.runs) if path in walk.runs and path.name == name), usual)

    def _sweep_entry(self, key: str, name: str, place: SweepPlace, walk: _Walk) -> SweepEntry:
        runs = walk.runs.get(place.runs, [])
        finished = self._finished.setdefault(place.runs, set())
        finished &= set(runs)
        # A result is written once: a run that has one is not asked again.
        finished |= {one for one in runs if one not in finished and os.path.exists(place.runs / one / "result.json")}
        return SweepEntry(
            id=key,
            name=name,
            folder=self.relative(place.runs),
            spec=self.relative(place.spec) if place.spec else "",
            runs=len(runs),
            finished=len(finished),
        )

    def _study_entry(self, key: str, path: Path) -> StudyEntry:
        about = {"id": key, "folder": self.relative(path)}
        if not (path / "study.json").exists():
            return StudyEntry(**about, study=path.name, preset="", question="", status="started")
        result = self._cached(path / "study.json", lambda file: read_result(file.parent))
        if not isinstance(result, StudyResult):
            unreadable = {"study": path.name, "preset": "", "question": "", "error": str(result)}
            return StudyEntry(**about, **unreadable, status="unreadable")
        try:
            study = find_study(result.study)
        except DeepwideError:  # of another version, or somebody's own
            study = None
        return StudyEntry(
            **about,
            study=result.study,
            preset=result.preset,
            question=result.question,
            status="finished",
            verdicts=result.verdicts,
            measured=tuple(show_measured(study, result, index) for index in range(len(result.verdicts))),
            seconds=result.seconds,
        )

    def _certificate(self, path: Path) -> Certificate:
        from deepwide.separation import read_certificate

        return read_certificate(path)

    def _cached(self, path: Path, read: Callable[[Path], Readable]) -> Readable | str:
        """What a file holds, read again when it has changed; the reason, if it cannot be read."""
        try:
            status = path.stat()
        except OSError as error:
            return str(error)
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            try:
                value: Readable | str = read(path)
            except (DeepwideError, OSError) as error:
                value = str(error)
            known = self._read[path] = (stamp, value)
        return known[1]

    def _id(self, kind: str, path: Path) -> str:
        return hashlib.sha256(f"{kind} {self.relative(path)}".encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _growing(folders: list[tuple[Path, int]]) -> Iterator[tuple[Path, int]]:
    """The items of a list that grows meanwhile."""
    place = 0
    while place < len(folders):
        yield folders[place]
        place += 1
