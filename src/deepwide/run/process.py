"""Which process holds a lease, so precisely that another one on the same machine can tell whether it still lives."""

import os
import socket
from pathlib import Path
from typing import Any

STARTED_FIELD = 19  # of /proc/PID/stat after the command's name: the start time in clock ticks since boot (proc(5))


def owner_name() -> str:
    """A lease owner's name that says where to look: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def this_process() -> dict[str, Any]:
    """Machine, process id and start time; a process id alone is used again."""
    pid = os.getpid()
    return {"machine": _machine(), "pid": pid, "started": _started(pid)}


def is_dead(process: Any) -> bool:
    """Whether a process of this machine is gone; False when that cannot be known from here."""
    if not isinstance(process, dict) or not process.get("machine") or process["machine"] != _machine():
        return False
    pid, started = process.get("pid"), process.get("started")
    return isinstance(pid, int) and bool(started) and _started(pid) != started


def _machine() -> str:
    """This boot of this machine and its namespace of process ids; empty where there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a living process was started; empty for one that is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[STARTED_FIELD]
