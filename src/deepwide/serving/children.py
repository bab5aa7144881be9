"""Work in a process of its own, which can be ended at any moment with everything that it started.

The request goes to it as one line of JSON on standard input, which stays open: when it ends, the server has gone, and
the child leaves too. What it says comes back as lines of JSON.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

LONGEST_LINE = 64 << 20  # bytes: the figures of a fit are one line
Tell = Callable[..., None]


class Child:
    """A running `python -m MODULE`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, module: str, request: dict[str, Any]) -> Self:
        """Begin, in a process group of its own."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True, limit=LONGEST_LINE, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        return cls(process)

    async def said(self) -> AsyncIterator[dict[str, Any]]:
        """What it says, line by line, until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            yield json.loads(line)

    async def end(self) -> None:
        """End it now, if it has not ended, and wait until it is gone."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()


def be_a_child(work: Callable[[dict[str, Any], Tell], None]) -> None:
    """The other side: do what the request asks, and leave with the server."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_the_server, daemon=True).start()
    os.nice(5)  # what people do on the same machine comes first
    work(request, tell)
    sys.stdout.flush()
    os._exit(0)  # the thread still waits


def tell(kind: str, **data: Any) -> None:
    """One line for the server."""
    sys.stdout.write(json.dumps({"kind": kind, **data}) + "\n")
    sys.stdout.flush()


def _leave_with_the_server() -> None:
    sys.stdin.read()
    os._exit(0)
