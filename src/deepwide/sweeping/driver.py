"""The driver: hands cells to an executor until each has finished. It has no state: kill it, start it again.

What became of a run is read from its folder, never from an exit code, so that two drivers on one sweep, or a driver
and someone's `deepwide train`, simply see each other's work. It compares no clock of its own with the file system's.

A worker that stops in good order is no crash, on any executor: its lease says so. Cells that end their worker, or that
an error stopped which may pass, are tried again after a while. They are given up after three tries in a row without a
new checkpoint: as failed if the worker died while it held the cell, as blocked if somebody can mend the reason.
"""

import secrets
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.run import (
    UNREADABLE,
    LeaseHeld,
    LeaseWatch,
    RunFinished,
    RunFolder,
    UnreadableRun,
    has_result,
    is_disk_full,
    owner_name,
    read_lease,
    remaining,
)
from deepwide.sweeping.executors import WORKER_LOG, Executor
from deepwide.sweeping.grid import Cell
from deepwide.sweeping.worker import Exit

MOST_CRASHES = 3  # in a row without a new checkpoint
MOST_LOOKS = 6  # at a folder that the file system does not let us read, and starts that the executor refuses, in a row
BACK_OFF_SECONDS, LONGEST_BACK_OFF = 0.5, 60.0  # before the second try; twice as long before each further one
TICK_SECONDS = 0.05
LOOK_SECONDS = 0.5  # between looks at cells that others hold and at workers that may be cut off
LEAVE_SECONDS = 10.0  # how long a worker may take to leave when its cells have finished
NO_CRASH = (Exit.HELD, Exit.FENCED, Exit.STOPPED, Exit.DISK_FULL)


@dataclass
class Outcome:
    """How a drive ended."""

    started: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)  # the reason by cell id
    blocked: dict[str, str] = field(default_factory=dict)  # likewise: an error that did not pass
    disk_full: bool = False
    stopped: bool = False


@dataclass
class _Job:
    handle: Any
    owner: str
    folders: list[Path]
    finished_since: float | None = None


@dataclass
class _Tries:
    """How often in a row a cell's worker ended badly without a new checkpoint, and what is known about it."""

    deaths: int = 0  # while it held the cell
    stumbles: int = 0  # with an error that it noted, or before it could begin
    saved: int = -1
    ending: str = ""
    note: str = ""  # about the last stumble
    looks: int = 0  # in a row that failed

    @property
    def count(self) -> int:
        """Of the kind that is more frequent."""
        return max(self.deaths, self.stumbles)


class Driver:
    """One drive over the cells that have not finished. Clock, sleep and executor are given, so that tests simulate."""

    def __init__(
        self,
        executor: Executor,
        *,
        per_worker: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.executor, self.per_worker = executor, per_worker
        self.outcome = Outcome()
        self._clock, self._sleep, self._watch = clock, sleep, LeaseWatch(clock)
        self._queue: deque[Path] = deque()
        self._later: dict[Path, float] = {}  # when to try it again
        self._elsewhere: set[Path] = set()
        self._jobs: list[_Job] = []
        self._tries: dict[Path, _Tries] = {}
        self._refused, self._start_after = 0, clock()  # starts that the executor refused in a row
        self._last_look = clock() - LOOK_SECONDS

    def drive(
        self,
        cells: Sequence[Cell],
        runs: Path,
        *,
        on_tick: Callable[[], None] = lambda: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Run until every cell has finished, is unreadable or blocked, or there is a reason to stop."""
        try:
            self.begin(cells, runs)
            while self.tick(stop):
                on_tick()
                self._sleep(TICK_SECONDS)
        finally:
            self.end()
        return self.outcome

    def begin(self, cells: Sequence[Cell], runs: Path) -> None:
        """Make the folders, and queue those without a result."""
        for cell in cells:
            for attempt in range(MOST_CRASHES):
                try:
                    folder = cell.folder(runs)
                    if folder.result() is None:
                        self._queue.append(folder.path)
                    break
                except UnreadableRun as error:
                    self.outcome.unreadable[cell.id] = str(error)
                    break
                except OSError as error:
                    if is_disk_full(error):
                        self.outcome.disk_full = True
                        return
                    if attempt == MOST_CRASHES - 1:
                        self.outcome.blocked[cell.id] = _sentence(error)
                    else:
                        self._sleep(_back_off(attempt + 1))

    def tick(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Take back what ended, start what can be started; False when nothing is left to do."""
        self._collect()
        self.outcome.stopped = self.outcome.stopped or stop()
        if self.outcome.stopped or self.outcome.disk_full:
            return False
        self._look_around()
        self._start()
        return bool(self._queue or self._later or self._jobs or self._elsewhere)

    def end(self) -> None:
        """Stop the workers that still run, in good order."""
        self.executor.stop([job.handle for job in self._jobs])
        self._jobs.clear()

    def _start(self) -> None:
        now = self._clock()
        for path in [path for path, when in self._later.items() if when <= now]:
            del self._later[path]
            if not self._is_settled(path):
                self._queue.append(path)
        while self._queue and len(self._jobs) < self.executor.slots and now >= self._start_after:
            folders: list[Path] = []
            fair_share = -(-len(self._queue) // self.executor.slots)
            while self._queue and len(folders) < max(1, min(self.per_worker, fair_share)):
                path = self._queue.popleft()
                if path in self._tries and self._tries[path].count >= MOST_CRASHES and not self._has_progressed(path):
                    self._give_up(path)
                elif not self._is_settled(path):
                    folders.append(path)
            if folders:
                self._start_on(folders)

    def _start_on(self, folders: list[Path]) -> None:
        owner = f"{owner_name()}:{secrets.token_hex(3)}"
        try:
            handle = self.executor.start(folders, owner)
        except UnreadableRun as error:  # its log cannot be written
            self.outcome.unreadable[folders[0].name] = str(error)
            self._queue.extend(folders[1:])
            return
        except OSError as error:  # too many processes or open files, or a scheduler that does not answer
            if is_disk_full(error):
                self.outcome.disk_full = True
                return
            self._queue.extendleft(reversed(folders))
            self._refused += 1
            if self._refused >= MOST_LOOKS:
                raise
            self._start_after = self._clock() + _back_off(self._refused)
            return
        self._refused = 0
        self._jobs.append(_Job(handle, owner, folders))
        self.outcome.started += 1

    def _collect(self) -> None:
        """Take back the cells of workers that have ended."""
        for job in list(self._jobs):
            code = self.executor.poll(job.handle)
            if code is None:
                continue
            self._jobs.remove(job)
            self.outcome.disk_full |= code == Exit.DISK_FULL
            left = [path for path in job.folders if not self._is_settled(path, job.owner)]
            crashed = [] if code in NO_CRASH else self._crashed(job, left)
            for path in crashed:
                self._blame(path, job.owner, code)
            for path in left:
                if path in crashed:
                    self._later[path] = self._clock() + _back_off(self._tries[path].count)
                else:
                    self._queue.append(path)

    def _crashed(self, job: _Job, left: Sequence[Path]) -> Sequence[Path]:
        """The cells that ended their worker: the one it still holds, or all that are left if it never came so far.

        None if the worker gave a lease back without an error: it was stopped in good order (by a time limit of Slurm,
        say), whatever the executor knows about its end.
        """
        unfinished = [path for path in job.folders if not _is_finished(path)]
        leases = {path: held for path in unfinished if (held := self._lease_of(path, job.owner)) is not None}
        if any(held["ended"] and not held.get("note") for held in leases.values()):
            return []
        return list(leases) or left

    def _blame(self, path: Path, owner: str, code: int) -> None:
        """Count a try that ended badly, from one again if there is a new checkpoint since."""
        tries = self._tries.setdefault(path, _Tries())
        self._has_progressed(path)
        tries.ending = _ending(code, self.executor.name)
        held = self._lease_of(path, owner)
        if held is not None and not held["ended"] and code != Exit.PASSING:
            tries.deaths += 1
            return
        tries.stumbles += 1
        before = f"its worker ended ({tries.ending}) before it could begin: see {path / WORKER_LOG}"
        tries.note = before if held is None else str(held.get("note") or "an error that may pass: see its log")

    def _has_progressed(self, path: Path) -> bool:
        """Whether there is a new checkpoint, by whose worker ever: then what was counted before counts no more."""
        tries = self._tries[path]
        try:
            saved = RunFolder.open(path).checkpoint_steps()
        except (DeepwideError, OSError):
            return False
        if not saved or saved[-1] <= tries.saved:
            return False
        tries.deaths, tries.stumbles, tries.saved = 0, 0, saved[-1]
        return True

    def _look_around(self) -> None:
        """Now and then: which workers are cut off, and which cells have others let go of?"""
        if self._clock() - self._last_look < LOOK_SECONDS:
            return
        self._last_look = self._clock()
        self._forget_the_unreachable()
        waiting, self._elsewhere = self._elsewhere, set()
        self._queue.extend(path for path in sorted(waiting) if not self._is_settled(path))

    def _forget_the_unreachable(self) -> None:
        """Drop workers that the executor still believes in and the folders do not: their node may be cut off.

        Safe however wrong it is: such a worker's lease has run out or its cells have finished, so it can write no more.
        """
        for job in list(self._jobs):
            if all(map(_is_finished, job.folders)):
                job.finished_since = job.finished_since or self._clock()
                unreachable = self._clock() - job.finished_since > LEAVE_SECONDS
            else:
                unreachable = any(self._is_silent(path, job.owner) for path in job.folders)
            if unreachable:
                self._jobs.remove(job)
                self.executor.stop([job.handle])
                self._queue.extend(path for path in job.folders if not self._is_settled(path))

    def _is_settled(self, path: Path, owner: str = "") -> bool:
        """Finished, unreadable, to be looked at later or somebody else's: nothing to start now.

        A lease of our dead worker does not count.
        """
        try:
            settled = has_result(path) or self._is_held(path, owner)
        except UnreadableRun as error:
            self.outcome.unreadable[path.name] = str(error)
            return True
        except OSError as error:
            tries = self._tries.setdefault(path, _Tries())
            tries.looks += 1
            if tries.looks >= MOST_LOOKS:
                self.outcome.blocked[path.name] = _sentence(error)
            else:
                self._later[path] = self._clock() + _back_off(tries.looks)
            return True
        if path in self._tries:
            self._tries[path].looks = 0
        return settled

    def _is_held(self, path: Path, owner: str) -> bool:
        held = read_lease(path)
        if held is None:
            return False
        if held["ended"] == UNREADABLE:
            if owner and held["owner"] == owner:
                self.outcome.unreadable[path.name] = str(held.get("note", ""))
                return True
            return False
        if remaining(path, held) > 0:
            self._elsewhere.add(path)
            return True
        return False

    def _is_silent(self, path: Path, owner: str) -> bool:
        """Whether the owner holds the cell and has not renewed its lease for as long as that lasts."""
        held = self._lease_of(path, owner)
        try:
            return held is not None and not held["ended"] and self._watch.is_silent(path, held)
        except OSError:  # the next look tells
            return False

    def _lease_of(self, path: Path, owner: str) -> dict[str, Any] | None:
        """The owner's lease, held or given back. A damaged file must not end the drive: its worker's writes will."""
        try:
            held = read_lease(path)
        except (UnreadableRun, OSError):
            return None
        return held if held is not None and held["owner"] == owner else None

    def _give_up(self, path: Path) -> None:
        """A cell that ends its worker every time must not hold up the others: it has failed, or is blocked."""
        tries = self._tries[path]
        if tries.deaths < MOST_CRASHES:
            self.outcome.blocked[path.name] = tries.note
            return
        try:
            folder = RunFolder.open(path)
            with folder.lease(owner_name(), seconds=10.0) as writer:
                times = f"its worker ended {tries.deaths} times without a new checkpoint"
                writer.finish("failed", error=f"{times} (last: {tries.ending}): see {path / WORKER_LOG}")
        except LeaseHeld:
            self._elsewhere.add(path)
        except RunFinished:
            pass
        except UnreadableRun as error:
            self.outcome.unreadable[path.name] = str(error)
        except (DeepwideError, OSError) as error:
            self.outcome.blocked[path.name] = _sentence(error)


def _is_finished(path: Path) -> bool:
    try:
        return has_result(path)
    except OSError:
        return False


def _back_off(tries: int) -> float:
    """Seconds before the next try.

    >>> [_back_off(tries) for tries in (1, 2, 3, 99)]
    [0.5, 1.0, 2.0, 60.0]
    """
    return float(min(LONGEST_BACK_OFF, BACK_OFF_SECONDS * 2 ** min(tries - 1, 30)))


def _ending(code: int, executor: str) -> str:
    """How a worker ended, for people; executors of a cluster know only that it did.

    >>> _ending(-9, "local"), _ending(77, "local"), _ending(-1, "slurm")
    ('SIGKILL', 'exit code 77', 'lost')
    """
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return names.get(-code, f"signal {-code}") if executor == "local" else "lost"


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())
