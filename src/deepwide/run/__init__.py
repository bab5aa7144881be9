"""The run folder: what a run is on disk, who may write to it, and how nothing in it is lost."""

from deepwide.run.checkpoint import Checkpoint
from deepwide.run.folder import RunFolder, run_id
from deepwide.run.lease import Lease, LeaseHeld, LeaseLost, RunOver, me
from deepwide.run.records import UnreadableRun

__all__ = ["Checkpoint", "Lease", "LeaseHeld", "LeaseLost", "RunFolder", "RunOver", "UnreadableRun", "me", "run_id"]
