"""Where a test may kill the process or let a call fail: `DEEPWIDE_FAULT`, read here and nowhere else.

`DEEPWIDE_FAULT=17` ends the process by SIGKILL at the 17th point it passes, `DEEPWIDE_FAULT=17:EIO` raises that error
there once (any name of `errno`, or `MemoryError`), and `DEEPWIDE_FAULT=log:FILE` writes down the points instead, so
that a test knows how many there are. Unset, a point costs one comparison.
"""

import errno
import os
import signal
import threading
from typing import BinaryIO

_lock = threading.Lock()
_passed = 0
_strike_at = 0
_error = ""  # what is raised there; empty for SIGKILL
_log = ""


def arm(plan: str) -> None:
    """Set what happens from now on: a number, a number with an error, `log:FILE`, or nothing."""
    global _passed, _strike_at, _error, _log
    _passed, _strike_at, _error, _log = 0, 0, "", ""
    number, _, error = plan.partition(":")
    if number == "log":
        _log = error
    elif number.isdigit():
        _strike_at, _error = int(number), error


def point(name: str) -> None:
    """A place where a crash must lose nothing."""
    global _passed
    if not (_strike_at or _log):
        return
    with _lock:
        _passed += 1
        if _log:
            with open(_log, "a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        elif _passed == _strike_at:
            if not _error:
                os.kill(os.getpid(), signal.SIGKILL)
            if _error == "MemoryError":
                raise MemoryError(f"raised on purpose: {name}")
            number = getattr(errno, _error)
            raise OSError(number, os.strerror(number), name)


def write(file: BinaryIO, content: bytes, name: str) -> None:
    """`file.write` through to the kernel, with points before, in the middle and after when armed."""
    if not (_strike_at or _log):
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
