"""The driver: hands cells to an executor until each is over. It has no state of its own: kill it, start it again.

What became of a run is read from its folder, never from an exit code, so that two drivers on one sweep, or a driver
and someone's `deepwide train`, simply see each other's work.
"""

import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.run import LeaseHeld, RunFinished, RunFolder, UnreadableRun, has_result, owner_name, read_lease, remaining
from deepwide.sweeping import worker
from deepwide.sweeping.executors import LOG, Executor
from deepwide.sweeping.grid import Cell

MOST_CRASHES = 3
TICK_SECONDS = 0.05
LOOK_SECONDS = 0.5  # how often cells that others hold are looked at
FORGET_SECONDS = 10.0  # how long a worker may take to leave when its cells are over


@dataclass
class Outcome:
    """How a drive ended."""

    started: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    disk_full: bool = False
    stopped: bool = False


@dataclass
class _Job:
    handle: Any
    owner: str
    folders: list[Path]
    over_since: float | None = None


class Driver:
    """One drive over the cells that are not over."""

    def __init__(self, executor: Executor, *, per_worker: int = 1) -> None:
        self.executor, self.per_worker = executor, per_worker
        self.outcome = Outcome()
        self._queue: deque[Path] = deque()
        self._elsewhere: set[Path] = set()
        self._jobs: list[_Job] = []
        self._crashes: Counter[Path] = Counter()
        self._looked = 0.0

    def drive(
        self,
        cells: Sequence[Cell],
        runs: Path,
        *,
        each_tick: Callable[[], None] = lambda: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Run until every cell is over, unreadable, or there is a reason to stop."""
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
                self._look_elsewhere()
                self._start()
                each_tick()
                time.sleep(TICK_SECONDS)
        finally:
            self.executor.stop([job.handle for job in self._jobs])
        return self.outcome

    def _forget_the_unreachable(self) -> None:
        """Drop workers that the executor still believes in and the folders do not: their node may be cut off.

        Safe however wrong it is: such a worker's lease has run out or its cells are over, so it can write no more.
        """
        for job in list(self._jobs):
            if all(has_result(path) for path in job.folders):
                job.over_since = job.over_since or time.monotonic()
                gone = time.monotonic() - job.over_since > FORGET_SECONDS
            else:
                gone = any(self._has_run_out(path, job.owner) for path in job.folders)
            if gone:
                self._jobs.remove(job)
                self.executor.stop([job.handle])
                self._queue.extend(path for path in job.folders if not self._is_settled(path))

    def _start(self) -> None:
        while self._queue and len(self._jobs) < self.executor.slots:
            folders: list[Path] = []
            most = min(self.per_worker, -(-len(self._queue) // self.executor.slots))
            while self._queue and len(folders) < max(1, most):
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
        for job in list(self._jobs):
            code = self.executor.poll(job.handle)
            if code is None:
                continue
            self._jobs.remove(job)
            self.outcome.disk_full |= code == worker.DISK_FULL
            left = [path for path in job.folders if not self._is_settled(path, job.owner)]
            blamed = [path for path in left if self._holds(path, job.owner)] or left
            if code not in (worker.HELD, worker.FENCED, worker.STOPPED, worker.DISK_FULL):
                self._crashes.update(blamed)
            self._queue.extend(left)

    def _is_settled(self, path: Path, mine: str = "") -> bool:
        """Over, unreadable or somebody else's: nothing to start. A lease of our dead worker does not count."""
        if has_result(path):
            return True
        try:
            held = read_lease(path)
        except UnreadableRun as error:
            self.outcome.unreadable[path.name] = str(error)
            return True
        if held is None:
            return False
        if held["ended"] == "unreadable":
            if mine and held["owner"] == mine:
                self.outcome.unreadable[path.name] = str(held.get("note", ""))
                return True
            return False
        if remaining(path, held) > 0:
            self._elsewhere.add(path)
            return True
        return False

    def _has_run_out(self, path: Path, owner: str) -> bool:
        """Whether the owner's lease is past its time. One look: between two, a worker may end one cell and be well."""
        held = self._lease_of(path, owner)
        return held is not None and remaining(path, held) <= 0

    def _holds(self, path: Path, owner: str) -> bool:
        return self._lease_of(path, owner) is not None

    def _lease_of(self, path: Path, owner: str) -> dict[str, Any] | None:
        """The owner's lease while it is held. A damaged file must not end the drive: its worker's writes will tell."""
        try:
            held = read_lease(path)
        except UnreadableRun:
            return None
        return held if held is not None and held["owner"] == owner and not held["ended"] else None

    def _look_elsewhere(self) -> None:
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        self._forget_the_unreachable()
        waiting, self._elsewhere = self._elsewhere, set()
        self._queue.extend(path for path in sorted(waiting) if not self._is_settled(path))

    def _give_up(self, path: Path) -> None:
        """A cell that ends its worker every time must not hold up the others: it has failed, and says so."""
        try:
            folder = RunFolder.open(path)
            with folder.lease(owner_name(), seconds=10.0) as lease:
                why = f"its worker ended without a word {MOST_CRASHES} times (out of memory?): see {path / LOG}"
                lease.finish("failed", error=why)
        except LeaseHeld:
            self._elsewhere.add(path)
        except RunFinished:
            pass
        except DeepwideError as error:
            self.outcome.unreadable[path.name] = str(error)
