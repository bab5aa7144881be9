"""The driver: hands cells to an executor until each has finished. It has no state: kill it, start it again.

What became of a run is read from its folder, never from an exit code, so that two drivers on one sweep, or a driver
and someone's `deepwide train`, simply see each other's work. It compares no clock of its own with the file system's.
"""

import secrets
import time
from collections import Counter, deque
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
    owner_name,
    read_lease,
    remaining,
)
from deepwide.sweeping.executors.protocol import WORKER_LOG, Executor
from deepwide.sweeping.grid import Cell
from deepwide.sweeping.worker import Exit

MOST_CRASHES = 3
TICK_SECONDS = 0.05
LOOK_SECONDS = 0.5  # between looks at cells that others hold and at workers that may be cut off
LEAVE_SECONDS = 10.0  # how long a worker may take to leave when its cells have finished
NO_CRASH = (Exit.HELD, Exit.FENCED, Exit.STOPPED, Exit.DISK_FULL)


@dataclass
class Outcome:
    """How a drive ended."""

    started: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)  # the reason by cell id
    disk_full: bool = False
    stopped: bool = False


@dataclass
class _Job:
    handle: Any
    owner: str
    folders: list[Path]
    finished_since: float | None = None


class Driver:
    """One drive over the cells that have not finished."""

    def __init__(self, executor: Executor, *, per_worker: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self.executor, self.per_worker = executor, per_worker
        self.outcome = Outcome()
        self._clock, self._watch = clock, LeaseWatch(clock)
        self._queue: deque[Path] = deque()
        self._elsewhere: set[Path] = set()
        self._jobs: list[_Job] = []
        self._crashes: Counter[Path] = Counter()
        self._last_look = clock() - LOOK_SECONDS

    def drive(
        self,
        cells: Sequence[Cell],
        runs: Path,
        *,
        on_tick: Callable[[], None] = lambda: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Run until every cell has finished or is unreadable, or there is a reason to stop."""
        for cell in cells:
            try:
                folder = cell.folder(runs)
                if folder.result() is None:
                    self._queue.append(folder.path)
            except UnreadableRun as error:
                self.outcome.unreadable[cell.id] = str(error)
        try:
            while self._queue or self._jobs or self._elsewhere:
                self._collect()
                if stop():
                    self.outcome.stopped = True
                if self.outcome.stopped or self.outcome.disk_full:
                    break
                self._look_around()
                self._start()
                on_tick()
                time.sleep(TICK_SECONDS)
        finally:
            self.executor.stop([job.handle for job in self._jobs])
        return self.outcome

    def _start(self) -> None:
        while self._queue and len(self._jobs) < self.executor.slots:
            folders: list[Path] = []
            fair_share = -(-len(self._queue) // self.executor.slots)
            while self._queue and len(folders) < max(1, min(self.per_worker, fair_share)):
                path = self._queue.popleft()
                if self._crashes[path] >= MOST_CRASHES:
                    self._give_up(path)
                elif not self._is_settled(path):
                    folders.append(path)
            if folders:
                owner = f"{owner_name()}:{secrets.token_hex(3)}"
                self._jobs.append(_Job(self.executor.start(folders, owner), owner, folders))
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
            if code not in NO_CRASH:
                self._crashes.update(self._crashed(left, job.owner))
            self._queue.extend(left)

    def _crashed(self, left: Sequence[Path], owner: str) -> Sequence[Path]:
        """The cells that ended their worker: the one it still holds, or all of them if it never came so far.

        None if the worker gave a lease back without an error: it was stopped in good order (by a time limit of Slurm,
        say), whatever the executor knows about its end.
        """
        leases = {path: held for path in left if (held := self._lease_of(path, owner)) is not None}
        if any(held["ended"] and not held.get("note") for held in leases.values()):
            return []
        return list(leases) or left

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
            if all(map(has_result, job.folders)):
                job.finished_since = job.finished_since or self._clock()
                unreachable = self._clock() - job.finished_since > LEAVE_SECONDS
            else:
                unreachable = any(self._is_silent(path, job.owner) for path in job.folders)
            if unreachable:
                self._jobs.remove(job)
                self.executor.stop([job.handle])
                self._queue.extend(path for path in job.folders if not self._is_settled(path))

    def _is_settled(self, path: Path, owner: str = "") -> bool:
        """Finished, unreadable or somebody else's: nothing to start. A lease of our dead worker does not count."""
        if has_result(path):
            return True
        try:
            held = read_lease(path)
        except UnreadableRun as error:
            self.outcome.unreadable[path.name] = str(error)
            return True
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
        return held is not None and not held["ended"] and self._watch.is_silent(path, held)

    def _lease_of(self, path: Path, owner: str) -> dict[str, Any] | None:
        """The owner's lease, held or given back. A damaged file must not end the drive: its worker's writes will."""
        try:
            held = read_lease(path)
        except UnreadableRun:
            return None
        return held if held is not None and held["owner"] == owner else None

    def _give_up(self, path: Path) -> None:
        """A cell that ends its worker every time must not hold up the others: it has failed, and says so."""
        try:
            folder = RunFolder.open(path)
            with folder.lease(owner_name(), seconds=10.0) as writer:
                log = path / WORKER_LOG
                writer.finish("failed", error=f"its worker ended {MOST_CRASHES} times without a result: see {log}")
        except LeaseHeld:
            self._elsewhere.add(path)
        except RunFinished:
            pass
        except DeepwideError as error:
            self.outcome.unreadable[path.name] = str(error)
