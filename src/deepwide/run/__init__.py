"""The run folder: what a run is on disk, who may write to it, and how nothing in it is lost."""

from deepwide.run import toy
from deepwide.run.checkpoint import Checkpoint
from deepwide.run.folder import NotARun, RunFolder, local_path, run_id
from deepwide.run.layout import FINISHED, has_result
from deepwide.run.lease import (
    LEASE_SECONDS,
    Lease,
    LeaseLost,
    LeaseWatch,
    RunFinished,
    is_disk_full,
    read_lease,
    remaining,
)
from deepwide.run.lock import LeaseHeld
from deepwide.run.process import owner_name
from deepwide.run.reader import UNFINISHED, UNREADABLE, RunRecord, read_run, read_runs, reason
from deepwide.run.records import UnreadableRun, canonical
from deepwide.run.writer import RunWriter

__all__ = [
    "FINISHED",
    "LEASE_SECONDS",
    "UNFINISHED",
    "UNREADABLE",
    "Checkpoint",
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
    "run_id",
    "toy",
]
