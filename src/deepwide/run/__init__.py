"""The run folder: what a run is on disk, who may write to it, and how nothing in it is lost.

`toy`, a trainer for tests of durability, is a module of this room that is loaded when it is imported. `scrub` checks
every byte of a folder, which only `verify` asks for, and is loaded then.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.run.checkpoint import Checkpoint
from deepwide.run.folder import (
    UNFINISHED,
    UNREADABLE,
    NotARun,
    RunFolder,
    RunRecord,
    local_path,
    read_run,
    read_runs,
    reason,
    run_folders,
    run_id,
)
from deepwide.run.lease import (
    LEASE_SECONDS,
    Lease,
    LeaseHeld,
    LeaseLost,
    LeaseWatch,
    RunFinished,
    is_disk_full,
    owner_name,
    read_lease,
    remaining,
)
from deepwide.run.metrics import SAMPLE_BYTES
from deepwide.run.records import FINISHED, UnreadableRun, canonical, has_result
from deepwide.run.writer import RunWriter

if TYPE_CHECKING:
    from deepwide.run.scrubbing import Finding as Finding
    from deepwide.run.scrubbing import scrub as scrub

__all__ = [
    "FINISHED",
    "LEASE_SECONDS",
    "SAMPLE_BYTES",
    "UNFINISHED",
    "UNREADABLE",
    "Checkpoint",
    "Finding",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "LeaseWatch",
    "NotARun",
    "RunFinished",
    "RunFolder",
    "RunRecord",
    "RunWriter",
    "UnreadableRun",
    "canonical",
    "has_result",
    "is_disk_full",
    "local_path",
    "owner_name",
    "read_lease",
    "read_run",
    "read_runs",
    "reason",
    "remaining",
    "run_folders",
    "run_id",
    "scrub",
    "toy",
]
__getattr__ = partial(offered, __name__, {"Finding": "scrubbing", "scrub": "scrubbing"})
