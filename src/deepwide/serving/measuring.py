"""Measurements that a page asks for: few at a time, small, short, each in a process that can be ended at any moment."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import ConfigDict, Field

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, needs
from deepwide.quantities import show_bytes, show_seconds
from deepwide.separation import Certificate, Forecast, forecast, make_case
from deepwide.serving.children import Child
from deepwide.serving.feeds import ALIVE, HEARTBEAT_SECONDS, event

MOST_AT_ONCE = 2
MOST_SECONDS = 120.0  # estimated, to begin; and twice that by the clock, to be ended
MOST_BYTES = 2 << 30
MOST_REMEMBERED = 50

State = Literal["running", "done", "failed", "cancelled", "too slow"]


class Wanted(Answer):
    """What to measure: a network with weights drawn from the seed, and equal sides."""

    model_config = ConfigDict(defer_build=False)  # FastAPI warns about a body that is built later

    depth: int = Field(ge=1, le=8)
    width: int = Field(ge=1, le=256)
    heads: int = Field(default=1, ge=1, le=256)
    residual: bool = False
    causal: bool = False
    seed: int = Field(default=0, ge=0, le=10**9)


class MeasurementState(Answer):
    """Where a measurement stands."""

    id: str
    wanted: Wanted
    forecast: Forecast
    state: State
    stage: str = ""
    share: float | None = None  # of the stage
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: str = ""
    certificate: Certificate | None = None


class BusyError(DeepwideError):
    """As many measurements are running as may."""


class Measurement:
    """One process and what it has reported."""

    def __init__(self, wanted: Wanted, expected: Forecast, most_seconds: float) -> None:
        self.wanted, self.forecast, self.most_seconds = wanted, expected, most_seconds
        self.id = secrets.token_hex(8)
        self.state: State = "running"
        self.stage, self.error = "starting", ""
        self.notes: tuple[str, ...] = ()
        self.share: float | None = None
        self.certificate: Certificate | None = None
        self.child: Child | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def answer(self) -> MeasurementState:
        """Where it stands."""
        return MeasurementState(
            id=self.id,
            wanted=self.wanted,
            forecast=self.forecast,
            state=self.state,
            stage=self.stage,
            share=self.share,
            seconds=round((self._ended or time.monotonic()) - self._began, 3),
            notes=self.notes,
            error=self.error,
            certificate=self.certificate,
        )

    async def start(self) -> None:
        """Begin, in a process of its own."""
        request = self.wanted.model_dump() | {"memory": MOST_BYTES}
        self.child = await Child.start("deepwide.serving.measurement", request)
        self._task = asyncio.get_running_loop().create_task(self._follow(self.child))

    async def cancel(self, state: State = "cancelled") -> None:
        """End the process now, and wait until it is gone."""
        if self._ended is None:
            self._finish(state)
        if self.child is not None:
            await self.child.end()

    async def events(self) -> AsyncIterator[bytes]:
        """Its states as server-sent events, until it has ended."""
        while not self._stopping:
            changed = self._changed
            answer = self.answer()
            yield event("measurement", answer.model_dump_json())
            if answer.state != "running":
                return
            while not changed.is_set() and not self._stopping:
                try:
                    await asyncio.wait_for(changed.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield ALIVE

    async def stop(self) -> None:
        """The server stops: end the process and every stream."""
        self._stopping = True
        await self.cancel()
        self._tell()

    async def _follow(self, child: Child) -> None:
        try:
            async with asyncio.timeout(self.most_seconds):
                async for message in child.said():
                    self._take(message)
            if self._ended is None:
                self._finish("failed", "the measurement ended without a word: it may have run out of memory.")
        except TimeoutError:
            self._finish(
                "too slow", f"it was ended after {show_seconds(self.most_seconds)}: measure something smaller."
            )
        except (ValueError, OSError) as error:
            self._finish("failed", f"the measurement's process cannot be read: {error}.")
        finally:
            await child.end()

    def _take(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "stage":
                self.stage, self.share = message["stage"], 0.0
            case "progress":
                self.share = message["share"]
            case "note":
                self.notes = (*self.notes, message["text"])
            case "failed":
                self._finish("failed", message["text"])
            case "done":
                self.certificate = Certificate.model_validate(message["certificate"], strict=False)
                self._finish("done")
        self._tell()

    def _finish(self, state: State, error: str = "") -> None:
        if self._ended is None:
            self.state, self.error, self._ended = state, error, time.monotonic()
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Measurements:
    """All measurements of this server; those that have ended are remembered, up to a number."""

    def __init__(
        self, *, at_once: int = MOST_AT_ONCE, most_seconds: float = MOST_SECONDS, most_bytes: int = MOST_BYTES
    ) -> None:
        self.at_once, self.most_seconds, self.most_bytes = at_once, most_seconds, most_bytes
        self._by_id: dict[str, Measurement] = {}

    async def start(self, wanted: Wanted) -> Measurement:
        """Begin one, or a sentence that says why not."""
        expected = self.check(wanted)
        if sum(one.state == "running" for one in self._by_id.values()) >= self.at_once:
            raise BusyError(f"{self.at_once} measurements are running already: wait for one to end, or cancel it.")
        one = Measurement(wanted, expected, 2 * self.most_seconds)
        self._by_id[one.id] = one
        for key in [key for key, old in self._by_id.items() if old.state != "running"][:-MOST_REMEMBERED]:
            del self._by_id[key]
        await one.start()
        return one

    def check(self, wanted: Wanted) -> Forecast:
        """What it would cost, or a refusal of what is too large for a page."""
        needs("flint", "rank")
        expected = forecast(make_case(**wanted.model_dump()), memory=self.most_bytes)
        if expected.total_seconds > self.most_seconds:
            raise DeepwideError(
                f"depth {wanted.depth} and width {wanted.width} would take about "
                f"{show_seconds(expected.total_seconds)}, and a page may take {show_seconds(self.most_seconds)} and "
                f"{show_bytes(self.most_bytes)}: measure something smaller here, or this in a terminal."
            )
        return expected

    def find(self, key: str) -> Measurement | None:
        """One by its id."""
        return self._by_id.get(key)

    def states(self) -> list[MeasurementState]:
        """All, newest first."""
        return [one.answer() for one in reversed(self._by_id.values())]

    def certificates(self) -> list[Certificate]:
        """What was measured here."""
        return [one.certificate for one in self._by_id.values() if one.certificate is not None]

    async def close(self) -> None:
        """End all of them."""
        for one in list(self._by_id.values()):
            await one.stop()
