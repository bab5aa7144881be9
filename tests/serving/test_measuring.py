"""Measurements of a page: bounded, few, ended when asked, in real processes."""

import asyncio
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from deepwide.errors import DeepwideError
from deepwide.separation import rank
from deepwide.serving.measuring import BusyError, Measurement, Measurements, Wanted
from serving.test_children import is_alive

SLOW = Wanted(depth=3, width=4)  # more than a minute


async def ended(one: Measurement) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        states = [json.loads(event.split(b"data: ")[1]) async for event in one.events() if b"data" in event]
        await one.cancel()  # too late; waits until its process is gone
        return states


def test_a_measurement_tells_its_progress_and_its_certificate() -> None:
    async def main() -> None:
        one = await Measurements().start(Wanted(depth=2, width=3))
        states = await ended(one)
        assert states[0]["state"] == "running"
        assert states[-1]["state"] == "done"
        assert states[-1]["certificate"]["rank"] == rank(depth=2, width=3).rank == 49
        assert one.certificate is not None
        assert one.certificate.confirmed is not None

    asyncio.run(main())


def test_cancelling_ends_the_process() -> None:
    async def main() -> None:
        measurements = Measurements(most_seconds=1e4)
        one = await measurements.start(SLOW)
        assert one.child is not None
        pid = one.child.process.pid
        watching = asyncio.create_task(ended(one))
        async with asyncio.timeout(60):
            while one.share is None:  # it is at work
                await asyncio.sleep(0.02)
        assert is_alive(pid)
        await one.cancel()
        assert not is_alive(pid)
        assert (await watching)[-1]["state"] == "cancelled"
        assert measurements.certificates() == []

    asyncio.run(main())


def test_one_that_takes_too_long_is_ended() -> None:
    async def main() -> None:
        measurements = Measurements(most_seconds=1e4)
        one = Measurement(SLOW, measurements.check(SLOW), most_seconds=0.3)
        await one.start()
        last = (await ended(one))[-1]
        assert last["state"] == "too slow"
        assert "measure something smaller" in last["error"]
        assert one.child is not None
        await one.child.end()
        assert not is_alive(one.child.process.pid)

    asyncio.run(main())


def test_only_so_many_at_once_and_all_end_with_the_server() -> None:
    async def main() -> None:
        measurements = Measurements(at_once=1, most_seconds=1e4)
        one = await measurements.start(SLOW)
        with pytest.raises(BusyError, match="1 measurements are running already"):
            await measurements.start(SLOW)
        await measurements.close()
        assert one.child is not None
        assert not is_alive(one.child.process.pid)
        assert [state.state for state in measurements.states()] == ["cancelled"]

    asyncio.run(main())


def test_a_process_that_dies_is_a_failure() -> None:
    async def main() -> None:
        one = await Measurements(most_seconds=1e4).start(SLOW)
        assert one.child is not None
        one.child.process.kill()
        assert (await ended(one))[-1]["state"] == "failed"

    asyncio.run(main())


@pytest.mark.parametrize(
    "wanted", [{"depth": 3, "width": 5}, {"depth": 6, "width": 2}, {"depth": 2, "width": 3, "heads": 2}]
)
def test_what_is_too_large_or_impossible_is_refused_before_it_starts(wanted: dict[str, int]) -> None:
    with pytest.raises(DeepwideError):
        Measurements().check(Wanted(**wanted))


def test_over_http_it_is_started_watched_and_cancelled(client: TestClient) -> None:
    started = client.post("/api/measurements", json={"depth": 2, "width": 2})
    assert started.status_code == 202
    key = started.json()["id"]
    lines = client.get(f"/api/measurements/{key}/events").text.split("\n\n")
    assert json.loads(lines[-2].split("data: ")[1])["certificate"]["rank"] == 18
    assert client.delete(f"/api/measurements/{key}").json()["state"] == "done"  # too late to cancel
    assert key in [each["id"] for each in client.get("/api/measurements").json()]
    for path in ("/api/measurements/none", "/api/measurements/none/events"):
        assert client.get(path).status_code == 404
    assert client.delete("/api/measurements/none").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"depth": "2", "width": "x"}, {"depth": 9, "width": 2}, {"depth": 2, "width": 2, "weights": "/etc/passwd"}],
)
def test_a_bad_wish_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/api/measurements", json=body).status_code == 422
