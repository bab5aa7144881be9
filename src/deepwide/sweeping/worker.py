"""The worker that every executor starts: it takes run folders, leases each, trains, and leaves the result in it."""

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from deepwide.errors import DeepwideError, OutsideError
from deepwide.run import (
    LEASE_SECONDS,
    LeaseHeld,
    LeaseLost,
    RunFinished,
    RunFolder,
    RunWriter,
    UnreadableRun,
    is_disk_full,
)
from deepwide.signals import stop_on_signals
from deepwide.sweeping.trainers import trainer_of

log = logging.getLogger("deepwide.worker")


class Exit(IntEnum):
    """The worker's exit codes; a higher one is more serious."""

    FINISHED = 0  # every folder has its result
    HELD = 3  # a folder is another worker's
    FENCED = 4  # a folder was taken over by another worker
    DISK_FULL = 5
    UNREADABLE = 6
    STOPPED = 7  # asked to stop, and stopped with a checkpoint
    PASSING = 8  # an error of the machine that may be gone at the next try, or missing data: the lease says which


def work(
    folders: Sequence[Path],
    *,
    owner: str,
    seconds: float = LEASE_SECONDS,
    device: str = "auto",
    threads: int = 1,
    with_parent: bool = False,
) -> Exit:
    """Run each folder that is free and not finished; returns the exit code, the most serious of all."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    worst = Exit.FINISHED
    with stop_on_signals(with_parent=with_parent) as stop:
        for path in folders:
            code = _work(path, owner, seconds, device, threads, stop)
            worst = max(worst, code)
            if code in (Exit.DISK_FULL, Exit.STOPPED):
                break
    _settle_log()
    return worst


def _settle_log() -> None:
    """Let go of a log that cannot be written: on a full disk Python would end with 120, not with what we say."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _work(path: Path, owner: str, seconds: float, device: str, threads: int, stop: Callable[[], bool]) -> Exit:
    try:
        folder = RunFolder.open(path)
        trainer = trainer_of(folder.config)
        with folder.lease(owner, seconds) as writer:

            def leave() -> bool:
                return stop() or writer.lost  # what is computed without the lease would be refused anyway

            try:
                trainer.train(folder, writer, device=device, threads=threads, progress=None, stop=leave)
            except Exception as error:
                _end(writer, error)
        if writer.lost:
            log.warning("the lease of %s was taken over; this worker left it.", path)
            return Exit.FENCED
        return Exit.FINISHED if folder.result() is not None else Exit.STOPPED
    except RunFinished:
        return Exit.FINISHED
    except LeaseHeld as error:
        log.warning("%s", error)
        return Exit.HELD
    except LeaseLost as error:
        log.warning("%s", error)
        return Exit.FENCED
    except UnreadableRun as error:
        log.error("%s", error)
        return Exit.UNREADABLE
    except (OSError, MemoryError, OutsideError) as error:
        if is_disk_full(error):
            log.error("disk_full: no room for %s; free some and resume: the last checkpoint is good.", path)
            return Exit.DISK_FULL
        log.error("%s was left to be tried again: %s: %s", path, type(error).__name__, error)
        return Exit.PASSING


def _end(writer: RunWriter, error: BaseException) -> None:
    """Turn an error of the trainer into the run's result, unless it is about the folder or the machine.

    A disk that is away, full or forbidden, or data that are missing say nothing about the run: they are mended.
    """
    if isinstance(error, UnreadableRun):
        writer.leave("unreadable", str(error))
    if isinstance(error, OutsideError):
        writer.leave("interrupted", str(error))
    about_the_folder = isinstance(error, UnreadableRun | LeaseLost | LeaseHeld | RunFinished)
    if about_the_folder or isinstance(error, OutsideError | OSError):
        raise error
    log.error("%s", "".join(traceback.format_exception(error)))
    text = str(error) if isinstance(error, DeepwideError) else f"{type(error).__name__}: {error}"
    memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    writer.finish("oom" if memory else "failed", error=" ".join(text.split())[:500])
