"""One measurement in a process of its own, so that ending the process ends it.

Run as `python -m deepwide.serving.measurement`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.separation import Watcher, certify, make_case
from deepwide.serving.children import Tell, be_a_child

TELL_SECONDS = 0.1  # between two lines of progress


class Teller(Watcher):
    """Prints every stage, its progress and the notes."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def note(self, note: Note) -> None:
        """As a line of its own."""
        self.tell("note", text=note.text)

    @contextmanager
    def stage(self, name: str, seconds: float) -> Iterator[Callable[[float], None]]:
        """A part of the work."""
        self.tell("stage", stage=name, expected_seconds=seconds)
        last = time.monotonic()

        def progress(share: float) -> None:
            nonlocal last
            if time.monotonic() - last >= TELL_SECONDS:
                last = time.monotonic()
                self.tell("progress", share=share)

        yield progress


def run(request: dict[str, Any], tell: Tell) -> None:
    """Measure what is asked for, and tell how it goes."""
    memory = request.pop("memory")
    try:
        certificate = certify(make_case(**request), memory=memory, watcher=Teller(tell))
    except DeepwideError as error:
        tell("failed", text=str(error))
    except MemoryError:
        tell("failed", text="There is not enough memory for this; measure something smaller.")
    else:
        tell("done", certificate=certificate.model_dump(mode="json"))


if __name__ == "__main__":
    be_a_child(run)
