"""The worker: what every executor runs. It takes run folders, leases each, trains, and leaves the result in the folder.

Exit codes: 0 all over; 3 a folder is another worker's; 4 this worker was fenced off; 5 disk full; 6 a folder is
unreadable; 7 asked to stop, and stopped with a checkpoint.
"""

import logging
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from deepwide.errors import DeepwideError
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

OVER, HELD, FENCED, DISK_FULL, UNREADABLE, STOPPED = 0, 3, 4, 5, 6, 7
log = logging.getLogger("deepwide.worker")


def work(
    folders: Sequence[Path],
    *,
    owner: str,
    seconds: float = LEASE_SECONDS,
    device: str = "auto",
    threads: int = 1,
    with_parent: bool = False,
) -> int:
    """Run each folder that is free and not over; returns the exit code, the most serious of all."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    worst = OVER
    with stop_on_signals(with_parent=with_parent) as stop:
        for path in folders:
            code = _work(path, owner, seconds, device, threads, stop)
            worst = max(worst, code)
            if code in (DISK_FULL, STOPPED):
                break
    return worst


def _work(path: Path, owner: str, seconds: float, device: str, threads: int, stop: Callable[[], bool]) -> int:
    try:
        folder = RunFolder.open(path)
        trainer = trainer_of(folder.config)
        with folder.lease(owner, seconds) as lease:
            try:
                trainer.train(folder, lease, device=device, threads=threads, progress=None, stop=stop)
            except Exception as error:
                _end(lease, error)
        return OVER if folder.result() is not None else STOPPED
    except RunFinished:
        return OVER
    except LeaseHeld as error:
        log.warning("%s", error)
        return HELD
    except LeaseLost as error:
        log.warning("%s", error)
        return FENCED
    except UnreadableRun as error:
        log.error("%s", error)
        return UNREADABLE
    except OSError as error:
        if not is_disk_full(error):
            raise
        log.error("disk_full: no room for %s; free some and resume: the last checkpoint is good.", path)
        return DISK_FULL


def _end(lease: RunWriter, error: BaseException) -> None:
    """Turn an error of the trainer into the run's result, unless it is about the folder: that can be mended."""
    full = is_disk_full(error)
    if full or isinstance(error, UnreadableRun | LeaseLost | LeaseHeld | RunFinished):
        if isinstance(error, UnreadableRun):
            lease.leave("unreadable", str(error))
        raise error
    log.error("%s", "".join(traceback.format_exception(error)))
    what = f"{type(error).__name__}: {error}" if not isinstance(error, DeepwideError) else str(error)
    memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    lease.finish("oom" if memory else "failed", error=" ".join(what.split())[:500])
