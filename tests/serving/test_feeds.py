"""One reader for all listeners: what is sent, to whom, how often it is read."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.web.served import write_runs

from deepwide.serving import feeds
from deepwide.serving.contents import Contents, SweepPlace
from deepwide.serving.feeds import IndexFeed, Listener, SweepFeed
from sweeping.toys import write_toml


def parsed(one: bytes) -> tuple[str, dict[str, Any]]:
    kind, data = one.decode().rstrip("\n").split("\n")
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def until(stream: AsyncIterator[bytes], enough: Any) -> list[tuple[str, dict[str, Any]]]:
    """Events until one is enough."""
    events = []
    async with asyncio.timeout(20):
        async for one in stream:
            if one == feeds.ALIVE:
                continue
            events.append(parsed(one))
            if enough(events[-1]):
                return events
    raise AssertionError("the stream ended")


def whole(event: tuple[str, dict[str, Any]]) -> bool:
    return event[0] == "change" and event[1]["unread"] == 0


def feed_of(runs: Path, spec: Path | None = None) -> SweepFeed:
    return SweepFeed(SweepPlace(runs, spec), runs.name, pause_seconds=0.02)


def test_a_listener_gets_everything_then_only_changes(tmp_path: Path) -> None:
    names = write_runs(tmp_path / "runs", 12, waiting=1, corrupt=1)

    async def main() -> None:
        feed = feed_of(tmp_path / "runs")
        stream = feed.listen()
        events = await until(stream, whole)
        assert events[0][0] == "begin"
        cells = {cell["id"]: cell for _, event in events for cell in event.get("cells", ())}
        assert cells.keys() == set(names)
        assert cells[names[-1]]["state"] == "unreadable"
        assert cells[names[-1]]["error"]
        result = json.dumps({"status": "done", "step": 40, "loss": 1.25})
        (tmp_path / "runs" / names[-2] / "result.json").write_text(result)
        ((kind, change),) = await until(stream, whole)
        assert kind == "change"
        assert [(cell["id"], cell["loss"]) for cell in change["cells"]] == [(names[-2], 1.25)]
        feed.close()

    asyncio.run(main())


def test_many_listeners_cost_one_reader_and_share_one_text(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", 8)

    async def main() -> None:
        feed = feed_of(tmp_path / "runs")
        await feed.whole()
        looks, reader = feed.looks, feed._reader
        streams = [feed.listen() for _ in range(50)]
        firsts = [await anext(stream) for stream in streams]
        seconds = [await anext(stream) for stream in streams]
        assert len({id(one) for one in firsts + seconds}) == 2
        assert len(feed.listeners) == 50
        assert feed._reader is reader
        assert feed.looks <= looks + 10  # by the clock, not by the listeners
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        assert not feed.listeners
        feed.close()

    asyncio.run(main())


def test_a_slow_listener_loses_changes_and_begins_again() -> None:
    async def main() -> None:
        listener = Listener()
        listener.offer([b"x"] * feeds.MOST_WAITING)
        assert len(listener.waiting) == feeds.MOST_WAITING
        listener.offer([b"y"])
        assert listener.behind
        assert not listener.waiting
        listener.offer([b"z"])
        assert not listener.waiting

    asyncio.run(main())


def test_a_large_sweep_is_sent_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "CELLS_PER_EVENT", 5)
    write_runs(tmp_path / "runs", 12)

    async def main() -> None:
        feed = feed_of(tmp_path / "runs")
        await feed.whole()
        assert [len(event.get("cells", ())) for _, event in map(parsed, feed.snapshot())] == [0, 5, 5, 2]
        feed.close()

    asyncio.run(main())


def test_a_spec_shows_the_cells_that_nobody_has_begun(tmp_path: Path) -> None:
    spec = write_toml(tmp_path / "toys.toml")

    async def main() -> dict[str, Any]:
        feed = feed_of(tmp_path / "runs" / "toys", spec)
        state: dict[str, Any] = json.loads(await feed.state_json())
        feed.close()
        return state

    state = asyncio.run(main())
    assert state["counts"] == {"waiting": 8}
    assert state["name"] == "toys"


def test_a_spec_of_other_cells_or_a_broken_one_is_a_note_beside_the_runs(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", 3)
    spec = write_toml(tmp_path / "toys.toml")

    async def notes() -> list[str]:
        feed = feed_of(tmp_path / "runs", spec)
        state = json.loads(await feed.state_json())
        feed.close()
        assert state["counts"] == {"done": 3}
        return [note["code"] for note in state["notes"]]

    assert asyncio.run(notes()) == ["other_cells"]
    spec.write_text("name = ")
    assert asyncio.run(notes()) == ["no_spec"]


def test_nobody_listening_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LINGER_SECONDS", 0.0)
    write_runs(tmp_path / "runs", 2)

    async def main() -> None:
        feed = feed_of(tmp_path / "runs")
        stream = feed.listen()
        await until(stream, whole)
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        looks = feed.looks
        await asyncio.sleep(0.2)
        assert feed.looks == looks
        assert (await until(feed.listen(), whole))[-1][1]["total"] == 2  # and it wakes again
        feed.close()

    asyncio.run(main())


def test_a_quiet_stream_says_that_it_is_alive_and_ends_with_the_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.05)

    async def main() -> None:
        feed = IndexFeed(Contents(home), pause_seconds=0.02)
        stream = feed.listen()
        assert (await until(stream, lambda _: True))[0][0] == "index"
        async with asyncio.timeout(10):
            assert await anext(stream) == feeds.ALIVE  # an index that is the same is not sent again
            feed.close()
            assert [one async for one in stream if one != feeds.ALIVE] == []

    asyncio.run(main())


def test_a_reader_that_fails_ends_the_streams_and_the_next_listener_starts_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(tmp_path / "runs", 2)

    async def main() -> None:
        feed = feed_of(tmp_path / "runs")
        with monkeypatch.context() as broken:
            broken.setattr(feed, "_read", lambda: 1 / 0)
            async with asyncio.timeout(20):
                assert [parsed(one)[0] async for one in feed.listen()] == ["begin"]
                with pytest.raises(ZeroDivisionError):
                    await feed.whole()
        assert (await until(feed.listen(), whole))[-1][1]["total"] == 2
        feed.close()

    asyncio.run(main())
