"""Sweeps in simulated time: the real driver, leases and run folders, with workers, clocks and disks that misbehave.

    python -m sweeping.simulation 2000          prints what went wrong, by seed, as JSON

One seed is one sweep. Everything that happens in it is drawn from the seed: kills, pauses beyond the lease, file server
clocks that drift and jump, drivers' clocks that run at another speed, slow disks, EIO and its like in the middle of
any write or read, drivers killed and started twice, an operator who deletes lease.json as its remedy says. Then a calm
driver finishes what is left. What may come out of it is in `Sweep.wrong`: every cell done with exactly the true
records, or failed after three deaths without progress; never unreadable, never two results, never endless.
"""

import contextlib
import errno
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from deepwide import faults
from deepwide.errors import DeepwideError
from deepwide.run import LeaseHeld, LeaseLost, RunFinished, RunFolder, RunWriter, UnreadableRun, lease, scrub
from deepwide.sweeping import Cell, Driver, Exit, cells_of
from deepwide.sweeping.worker import _end
from sweeping.toys import toys

STEPS, SAVE_EVERY, LEASE_SECONDS = 6, 2, 10.0
TICK_SECONDS, LONGEST_SECONDS = 3.0, 5000.0
ERRORS = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.ETIMEDOUT)


@cache
def cells() -> list[Cell]:
    """Three cells; the third ends its worker at step 3 in those sweeps that ask for it."""
    return cells_of(toys(grid={}, seeds=[0, 1, 2], run={"steps": STEPS, "checkpoint_every": SAVE_EVERY}))


def loss(run: str, step: int) -> float:
    """What a cell's loss is at a step, always."""
    return int(hashlib.sha256(f"{run} {step}".encode()).hexdigest()[:8], 16) / 2**32


class Died(Exception):  # noqa: N818
    """The worker's process is gone."""


@dataclass
class Worker:
    """A process: what it does next and when, and whether it still answers."""

    owner: str
    work: Generator[float, None, Exit]
    wakes: float
    beats: float
    writer: RunWriter | None = None
    path: Path | None = None  # the folder that it was on last
    code: int | None = None
    asked_to_stop: bool = False


@dataclass
class World:
    """Time, and everything in it that is drawn from the seed."""

    seed: int
    runs: Path
    now: float = 0.0
    calm: bool = False
    workers: list[Worker] = field(default_factory=list)
    deaths: Counter[tuple[str, int]] = field(default_factory=Counter)  # by cell and newest checkpoint
    results: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        draw = self.chance.uniform
        self.server_offset, self.server_rate = draw(-1e6, 1e6) + 1e9, draw(0.9, 1.1)
        self.kill_rate, self.pause_rate = draw(0, 0.06), draw(0, 0.06)
        self.error_rate = draw(0, 0.004) if self.chance.random() < 0.6 else 0.0
        self.slow = self.chance.choice([1.0, 1.0, 3.0])
        self.deadly_step = 3 if self.chance.random() < 0.2 else 0
        self.knows_codes = self.chance.random() < 0.5  # else like Slurm: ended, and no more is known

    def happens(self, rate: float) -> bool:
        """Whether something with this probability happens now; nothing does in the calm at the end."""
        return not self.calm and self.chance.random() < rate

    def stamp(self, target: Path | int) -> None:
        """The file server writes its time."""
        then = self.server_offset + self.now * self.server_rate
        os.utime(target, (then, then))

    def point(self, name: str) -> None:
        """Every write, sync, rename and read passes here; some fail."""
        if self.happens(self.error_rate):
            number = self.chance.choice(ERRORS)
            raise OSError(number, os.strerror(number), name)

    def advance(self, seconds: float) -> None:
        """Let time pass, and everybody do what is due in it, in order."""
        until = self.now + seconds
        if self.happens(0.01):
            self.server_offset += self.chance.uniform(-100, 100)
        while due := [w for w in self.workers if w.code is None and min(w.wakes, w.beats) <= until]:
            worker = min(due, key=lambda w: min(w.wakes, w.beats))
            self.now = max(self.now, min(worker.wakes, worker.beats))
            if self.happens(self.pause_rate):  # frozen, swapped out, cut off: no step and no heartbeat
                length = self.chance.uniform(0, 3 * LEASE_SECONDS)
                worker.wakes, worker.beats = worker.wakes + length, worker.beats + length
            elif worker.beats < worker.wakes:
                worker.beats = self.now + LEASE_SECONDS / lease.BEATS_PER_LEASE
                if worker.writer is not None:
                    with contextlib.suppress(OSError, DeepwideError):
                        worker.writer.lease.renew()
            else:
                self.step(worker)
        self.now = until

    def step(self, worker: Worker) -> None:
        """One thing that a worker does."""
        try:
            worker.wakes = self.now + next(worker.work) * self.slow
        except StopIteration as ended:
            worker.code = ended.value
            if ended.value == Exit.PASSING and worker.path is not None:
                self.died(worker.path)  # if the disk let it not even give its lease back, it looks like that
        except Died:
            worker.code = -9
        except OSError:  # a traceback ends the process
            worker.code = 1
        if worker.code is None and self.happens(self.kill_rate):
            self.kill(worker)

    def kill(self, worker: Worker) -> None:
        """SIGKILL: its generator is never resumed, so nothing in it is tidied up."""
        worker.code = -9
        if worker.writer is not None:
            self.died(worker.writer.path)

    def forget(self) -> None:
        """Drop the killed workers here, and not when the garbage collector would: in the middle of another sweep."""
        for worker in self.workers:
            if worker.writer is not None:
                _leave_untouched(worker.writer)
            worker.work.close()

    def died(self, path: Path) -> None:
        """Remember where a cell stood when its worker died."""
        saved = [int(p.name) for p in (path / "checkpoints").glob("[0-9]*")]
        self.deaths[path.name, max(saved, default=-1)] += 1

    def work(self, me: list[Worker], folders: Sequence[Path]) -> Generator[float, None, Exit]:
        """What the real worker does, one action at a time; see `deepwide.sweeping.worker`."""
        worst = Exit.FINISHED
        yield self.chance.uniform(0.5, 3)  # Python starts
        for path in folders:
            code = yield from self.work_on(me[0], path)
            worst = max(worst, code)
            if code in (Exit.DISK_FULL, Exit.STOPPED):
                break
        return worst

    def work_on(self, me: Worker, path: Path) -> Generator[float, None, Exit]:
        """One folder."""
        try:
            folder = RunFolder.open(path)
            with folder.lease(me.owner, LEASE_SECONDS, 0.0) as writer:
                me.writer, me.path, me.beats = writer, path, self.now
                try:
                    yield from self.train(me, folder, writer)
                except Exception as error:
                    if isinstance(error, Died):
                        raise
                    _end(writer, error)
            if writer.lost:
                return Exit.FENCED
            return Exit.FINISHED if folder.result() is not None else Exit.STOPPED
        except RunFinished:
            return Exit.FINISHED
        except LeaseHeld:
            return Exit.HELD
        except LeaseLost:
            return Exit.FENCED
        except UnreadableRun:
            return Exit.UNREADABLE
        except OSError:
            return Exit.PASSING
        finally:
            if me.code is None:
                me.writer = None

    def train(self, me: Worker, folder: RunFolder, writer: RunWriter) -> Generator[float, None, None]:
        """A trainer that resumes as ours do."""
        saved = folder.latest_checkpoint("numpy")
        step = saved.step if saved is not None else 0
        writer.cut_metrics(step)
        while step < STEPS:
            yield self.chance.uniform(0.5, 8)
            if me.asked_to_stop or writer.lost:
                writer.checkpoint(step, {}, {})
                return
            step += 1
            if step == self.deadly_step and folder.config["seed"] == 2:
                self.died(folder.path)
                me.writer = None
                raise _leave_untouched(writer)
            writer.append({"step": step, "loss": loss(folder.id, step)})
            yield self.chance.uniform(0, 1)
            if step % SAVE_EVERY == 0 or step == STEPS:
                writer.checkpoint(step, {}, {})
        writer.finish("done", step=step, loss=loss(folder.id, step))
        self.results[folder.id] += 1


def _leave_untouched(writer: RunWriter) -> Died:
    """A process that ends itself gives no lease back."""
    writer.lease.give_back = lambda *_: None  # type: ignore[method-assign]
    return Died()


class Machines:
    """An executor of two workers in a world."""

    slots = 2

    def __init__(self, world: World) -> None:
        self.world, self.name = world, "local" if world.knows_codes else "slurm"

    def start(self, folders: Sequence[Path], owner: str) -> Worker:
        """A worker that begins now."""
        me: list[Worker] = []
        worker = Worker(owner, self.world.work(me, list(folders)), self.world.now, self.world.now + 1e9)
        me.append(worker)
        self.world.workers.append(worker)
        return worker

    def poll(self, job: Worker) -> int | None:
        """Its exit code, where one is known."""
        return job.code if job.code is None or self.world.knows_codes else -1

    def stop(self, jobs: Sequence[Worker]) -> None:
        """As SIGTERM: at its next step it leaves, unless it is frozen."""
        for job in jobs:
            job.asked_to_stop = True


class Sweep:
    """One simulated sweep: the storm, the calm, and what is wrong after it."""

    def __init__(self, seed: int, home: Path) -> None:
        self.world = World(seed, home / str(seed))
        self.wrong: list[str] = []
        self.drivers = 1

    def run(self) -> list[str]:
        """What is wrong; empty when all is as it may be."""
        with simulated(self.world):
            self.drive(self.storm())
            self.world.calm = True
            self.world.now += 10 * LEASE_SECONDS
            self.drive([self.driver()])
            self.check()
            self.world.forget()
        shutil.rmtree(self.world.runs, ignore_errors=True)
        return self.wrong

    def driver(self) -> Driver:
        """A driver whose clock is its own."""
        world, chance = self.world, self.world.chance
        rate, offset = chance.uniform(0.8, 1.25), chance.uniform(0, 1e6)
        return Driver(
            Machines(world),
            per_worker=chance.choice([1, 2]),
            clock=lambda: offset + world.now * rate,
            sleep=world.advance,
        )

    def storm(self) -> list[Driver]:
        """One or two drivers."""
        self.drivers = self.world.chance.choice([1, 1, 2])
        return [self.driver() for _ in range(self.drivers)]

    def drive(self, drivers: list[Driver]) -> None:
        """Until all drivers have ended, some by a kill, or until it takes too long."""
        world = self.world
        for driver in drivers:
            driver.begin(cells(), world.runs)
        began = world.now
        while drivers:
            for driver in list(drivers):
                if world.happens(0.003):
                    drivers.remove(driver)  # killed: its workers live on
                elif not driver.tick():
                    driver.end()
                    drivers.remove(driver)
                    self.wrong += [f"unreadable: {why}" for why in driver.outcome.unreadable.values()]
                    if world.calm:
                        self.wrong += [f"blocked in the calm: {why}" for why in driver.outcome.blocked.values()]
            if world.happens(0.02):  # the remedy for a damaged lease, followed whether it was damaged or not
                (world.runs / world.chance.choice(cells()).id / "lease.json").unlink(missing_ok=True)
            world.advance(TICK_SECONDS)
            if world.now - began > LONGEST_SECONDS:
                self.wrong.append("endless")
                return

    def check(self) -> None:
        """The model: what a folder may hold in the end."""
        for cell in cells():
            folder = RunFolder.open(self.world.runs / cell.id)
            try:
                result = folder.result() or {"status": "unfinished"}
            except UnreadableRun as error:
                self.wrong.append(str(error))
                continue
            truth = [{"step": step, "loss": loss(cell.id, step)} for step in range(1, STEPS + 1)]
            died = [n for (run, _), n in self.world.deaths.items() if run == cell.id]
            deaths = max(died, default=0)
            if result["status"] == "failed":
                if deaths < 3 or folder.metrics() != truth[: len(folder.metrics())]:
                    self.wrong.append(f"{cell.id} failed after {deaths} deaths without progress: {result}")
            elif result != {"status": "done", "step": STEPS, "loss": loss(cell.id, STEPS)}:
                self.wrong.append(f"{cell.id} ended {result}")
            elif folder.metrics() != truth:
                self.wrong.append(f"{cell.id} has records {[record['step'] for record in folder.metrics()]}")
            if self.world.results[cell.id] > 1:
                self.wrong.append(f"{cell.id} has {self.world.results[cell.id]} results")
            self.wrong += [str(finding) for finding in scrub(folder.path) if finding.kind == "damaged"]


@contextlib.contextmanager
def simulated(world: World) -> Iterator[None]:
    """The world's clock and disks in place of the machine's."""
    with (
        mock.patch.object(lease, "stamp", world.stamp),
        mock.patch.object(lease.Lease, "start_heartbeat"),  # the world beats
        mock.patch.object(lease, "is_dead", return_value=False),  # as on another machine
        mock.patch.object(lease, "this_process", return_value={}),
        mock.patch.object(lease, "GIVE_BACK_PAUSES", (0.0, 0.0)),
        mock.patch.object(faults, "point", world.point),
        mock.patch.object(faults, "_strike_at", 1 << 62),  # so that writes pass their points
        mock.patch.object(os, "fsync"),
    ):
        yield


def simulate(seeds: Sequence[int], until: Callable[[], bool] = lambda: False) -> dict[int, list[str]]:
    """What went wrong, by seed."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    home = Path(tempfile.mkdtemp(prefix="deepwide-simulated-", dir=place))
    wrong: dict[int, list[str]] = {}
    try:
        for seed in seeds:
            if until():
                break
            if found := Sweep(seed, home).run():
                wrong[seed] = found
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return wrong


def main(words: Sequence[str]) -> int:
    """See the module."""
    number, began = int(words[0]), time.process_time()
    wrong: dict[Any, Any] = dict(simulate(range(number)))
    print(json.dumps({"sweeps": number, "cpu_seconds": round(time.process_time() - began, 1), "wrong": wrong}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
