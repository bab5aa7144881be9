"""Stopping in good order when asked to."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals(
    *,
    second_interrupts: bool = False,
    with_parent: bool = False,
    first_says: str = "",
    at_once: Callable[[], bool] = lambda: False,
) -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGTERM or SIGINT has come, or, with `with_parent`, whether the parent has died.

    With `second_interrupts`, a second signal raises KeyboardInterrupt at once. The first one prints `first_says`. While
    `at_once()` is true there is nothing to wait for: every signal raises, and nothing is printed.
    """
    received: list[int] = []
    parent = os.getppid()

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if (received and second_interrupts) or at_once():
            received.append(number)
            raise KeyboardInterrupt
        if first_says and not received:
            os.write(2, f"\n{first_says}\n".encode())  # print may be what was interrupted, and is not re-entrant
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(received) or (with_parent and os.getppid() != parent)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
