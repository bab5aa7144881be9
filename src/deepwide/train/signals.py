"""Leaving in good order when asked to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGTERM or SIGINT has come; a second one interrupts at once."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
