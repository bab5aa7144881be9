"""One reader per source, any number of listeners: what changes is read once, written as text once, and sent to all.

A listener gets everything first, and then the changes, as server-sent events. One that is too slow to take them is
not waited for: its changes are dropped, and it gets everything again when it is ready. Nobody listening, nobody reads.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.serving.contents import Contents, Index, SweepPlace
from deepwide.sweeping import Cell, RunsReader, SweepChange, SweepState, cells_of, read_spec

PAUSE_SECONDS = 1.0  # between two looks,
SHARE_OF_TIME = 0.1  # and looking takes at most this share of the time
LOOK_SECONDS = 0.3  # of one look: what is read so far is sent before the rest is read
LINGER_SECONDS = 20.0  # a reader waits so long for the next listener
HEARTBEAT_SECONDS = 15.0
MOST_WAITING = 20  # events for one listener
CELLS_PER_EVENT = 500
ALIVE = b": alive\n\n"


def event(kind: str, data: str) -> bytes:
    """A server-sent event; JSON has no line break in it.

    >>> event("index", "{}")
    b'event: index\\ndata: {}\\n\\n'
    """
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")


class Listener:
    """What waits for one client."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.behind = False

    def offer(self, events: Sequence[bytes]) -> None:
        """Add events, unless the client is so slow that it must begin again."""
        if len(self.waiting) + len(events) > MOST_WAITING:
            self.waiting.clear()
            self.behind = True
        elif not self.behind:
            self.waiting.extend(events)
        self.wake.set()


class Feed(ABC):
    """A source that is looked at while anybody listens."""

    def __init__(self, pause_seconds: float = PAUSE_SECONDS) -> None:
        self.pause_seconds = pause_seconds
        self.listeners: set[Listener] = set()
        self.looks = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._left_at = time.monotonic()
        self._whole = asyncio.Event()

    @abstractmethod
    async def look(self) -> tuple[list[bytes], bool]:
        """Events for what has changed, and whether more is to be read at once."""

    @abstractmethod
    def snapshot(self) -> list[bytes]:
        """Events that tell everything."""

    async def listen(self) -> AsyncIterator[bytes]:
        """Everything, then changes, until the client leaves or the server stops."""
        listener = Listener()
        self.listeners.add(listener)
        self._start()
        try:
            for one in self.snapshot():
                yield one
                await asyncio.sleep(0)  # whether the client has left is seen between two events
            while not self._closed and not self._has_failed():
                try:
                    await asyncio.wait_for(listener.wake.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield ALIVE
                    continue
                listener.wake.clear()
                if listener.behind:
                    listener.behind = False
                    listener.waiting.clear()
                    listener.waiting.extend(self.snapshot())
                while listener.waiting and not listener.behind:
                    yield listener.waiting.popleft()
                    await asyncio.sleep(0)
        finally:
            self.listeners.discard(listener)
            self._left_at = time.monotonic()

    async def whole(self) -> None:
        """Wait until everything has been read at least once, and is not old."""
        self._left_at = time.monotonic()
        task = self._start()
        if task is not None:
            waiting = asyncio.ensure_future(self._whole.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self._has_failed():
                task.result()  # raises what went wrong

    def close(self) -> None:
        """End every stream: the server stops."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        self._whole.set()
        self._wake()

    def _start(self) -> "asyncio.Task[None] | None":
        if (self._task is None or self._task.done()) and not self._closed:
            self._whole.clear()
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(lambda _: self._wake())
        return self._task

    def _has_failed(self) -> bool:
        """Whether reading ended with an error: streams end too, and whoever connects again starts it anew."""
        task = self._task
        return task is not None and task.done() and not task.cancelled() and task.exception() is not None

    def _wake(self) -> None:
        for listener in self.listeners:
            listener.wake.set()

    async def _run(self) -> None:
        while self.listeners or time.monotonic() - self._left_at < LINGER_SECONDS:
            began = time.monotonic()
            events, more = await self.look()
            self.looks += 1
            if events:
                for listener in self.listeners:
                    listener.offer(events)
            if more:
                await asyncio.sleep(0)
                continue
            self._whole.set()
            await asyncio.sleep(max(self.pause_seconds, (time.monotonic() - began) / SHARE_OF_TIME))


class IndexFeed(Feed):
    """What lies under the served folder."""

    def __init__(self, contents: Contents, pause_seconds: float = 2 * PAUSE_SECONDS) -> None:
        super().__init__(pause_seconds)
        self.contents = contents
        self._last: Index | None = None

    async def look(self) -> tuple[list[bytes], bool]:
        """The index, if it is another one."""
        index = await asyncio.to_thread(self.contents.index)
        if index == self._last:
            return [], False
        self._last = index
        return self.snapshot(), False

    def snapshot(self) -> list[bytes]:
        """The index."""
        return [event("index", self._last.model_dump_json())] if self._last else []


class SweepFeed(Feed):
    """The cells of one sweep: `begin` means that all cells follow, `change` holds a SweepChange."""

    def __init__(self, place: SweepPlace, shown: str, pause_seconds: float = PAUSE_SECONDS) -> None:
        super().__init__(pause_seconds)
        self.place, self.shown = place, shown
        self.notes: tuple[Note, ...] = ()
        self._reader: RunsReader | None = None
        self._cells: dict[str, str] = {}  # as JSON, by id
        self._last: SweepChange | None = None
        self._snapshot: list[bytes] | None = None

    async def look(self) -> tuple[list[bytes], bool]:
        """What has changed since the last look."""
        change, cells = await asyncio.to_thread(self._read)
        before = self._last
        self._last = change
        if not cells and not change.gone and before is not None and _head(before) == _head(change):
            return [], change.unread > 0
        self._cells.update(cells)
        for name in change.gone:
            self._cells.pop(name, None)
        self._snapshot = None
        return _events(change, list(cells.values())), change.unread > 0

    def snapshot(self) -> list[bytes]:
        """Every cell, as text that all listeners share."""
        if self._last is None:
            return [event("begin", "{}")]
        if self._snapshot is None:
            change = self._last.model_copy(update={"cells": (), "gone": ()})
            self._snapshot = [event("begin", "{}"), *_events(change, list(self._cells.values()))]
        return self._snapshot

    async def state_json(self) -> str:
        """Every cell as one SweepState."""
        await self.whole()
        last = self._last
        if last is None:
            raise DeepwideError("the server is stopping.")
        state = SweepState(
            name=last.name,
            runs=self.shown,
            cells=(),
            counts=last.counts,
            left=last.left,
            expected_seconds=last.expected_seconds,
            notes=self.notes,
        )
        return _with_cells(state.model_dump_json(exclude={"cells"}), list(self._cells.values()))

    async def usable(self) -> int:
        """How many runs a fit can use."""
        await self.whole()
        counts = self._last.counts if self._last else {}
        return counts.get("done", 0) + counts.get("diverged", 0)

    async def ids(self) -> set[str]:
        """Which runs there are."""
        await self.whole()
        return set(self._cells)

    def _read(self) -> tuple[SweepChange, dict[str, str]]:
        """In a thread: a look, and its cells as JSON."""
        if self._reader is None:
            self._reader = self._open()
        change = self._reader.look(LOOK_SECONDS)
        return change, {cell.id: cell.model_dump_json() for cell in change.cells}

    def _open(self) -> RunsReader:
        cells: list[Cell] = []
        name = self.place.runs.name
        if self.place.spec is not None:
            try:
                spec = read_spec(self.place.spec)
                name, cells = spec.name, cells_of(spec)
            except (DeepwideError, OSError) as error:  # its runs can still be shown
                self.notes = (Note.of("no_spec", f"cells that nobody has begun are not shown: {error}"),)
        if cells and not _belong(cells, self.place.runs):
            text = f"{self.place.spec.name if self.place.spec else ''} has other cells than the runs in this folder"
            self.notes, cells = (Note.of("other_cells", text),), []
        return RunsReader(self.place.runs, cells, name=name)


def _belong(cells: Sequence[Cell], runs: Path) -> bool:
    """Whether a spec is that of a folder of runs: some run is one of its cells, or there is none yet."""
    try:
        names = {path.name for path in runs.iterdir() if path.is_dir()}
    except OSError:
        names = set()
    return not names or any(cell.id in names for cell in cells)


def _head(change: SweepChange) -> SweepChange:
    """A change without what time alone moves: seconds that are estimated anew are no news."""
    rounded = None if change.expected_seconds is None else float(f"{change.expected_seconds:.2g}")
    return change.model_copy(update={"cells": (), "gone": (), "unread": 0, "expected_seconds": rounded})


def _events(change: SweepChange, cells: Sequence[str]) -> list[bytes]:
    head = change.model_dump_json(exclude={"cells"})
    later = change.model_copy(update={"gone": ()}).model_dump_json(exclude={"cells"})
    parts = [cells[i : i + CELLS_PER_EVENT] for i in range(0, max(1, len(cells)), CELLS_PER_EVENT)]
    return [event("change", _with_cells(later if number else head, part)) for number, part in enumerate(parts)]


def _with_cells(head: str, cells: Sequence[str]) -> str:
    return f'{head[:-1]},"cells":[{",".join(cells)}]}}'
