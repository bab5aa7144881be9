"""Stopping in good order when asked to."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals(*, second_interrupts: bool = False, with_parent: bool = False) -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGTERM or SIGINT has come, or, with `with_parent`, whether the parent has died.

    With `second_interrupts`, a second signal raises KeyboardInterrupt at once.
    """
    received: list[int] = []
    parent = os.getppid()

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if received and second_interrupts:
            raise KeyboardInterrupt
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(received) or (with_parent and os.getppid() != parent)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
