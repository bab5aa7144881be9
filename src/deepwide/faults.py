"""Where a test may kill the process: `DEEPWIDE_FAULT`, read here and nowhere else.

`DEEPWIDE_FAULT=17` ends the process by SIGKILL at the 17th point it passes; `DEEPWIDE_FAULT=log:FILE` writes down the
points instead, so that a test knows how many there are. Unset, a point costs one comparison.
"""

import os
import signal
import threading
from typing import BinaryIO

_lock = threading.Lock()
_passed = 0
_kill_at = 0
_log = ""


def arm(plan: str) -> None:
    """Set what happens from now on: a number, `log:FILE`, or nothing."""
    global _passed, _kill_at, _log
    _passed, _kill_at, _log = 0, 0, ""
    if plan.startswith("log:"):
        _log = plan.removeprefix("log:")
    elif plan.isdigit():
        _kill_at = int(plan)


def point(name: str) -> None:
    """A place where a crash must lose nothing."""
    global _passed
    if not (_kill_at or _log):
        return
    with _lock:
        _passed += 1
        if _log:
            with open(_log, "a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        elif _passed == _kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def write(file: BinaryIO, content: bytes, name: str) -> None:
    """`file.write` through to the kernel, with points before, in the middle and after when armed."""
    if not (_kill_at or _log):
        file.write(content)
        file.flush()
        return
    point(f"before {name}")
    file.write(content[: len(content) // 2])
    file.flush()
    point(f"in the middle of {name}")
    file.write(content[len(content) // 2 :])
    file.flush()
    point(f"after {name}")


arm(os.environ.get("DEEPWIDE_FAULT", ""))
