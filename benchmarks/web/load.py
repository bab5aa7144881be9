"""200 clients on the live page of a sweep of 1,000 runs: `python -m benchmarks.web.load` writes results/web/load.json.

Each client is a real connection that listens to the sweep's events. One run after the other then gets its result, and
the time from the write to the event is taken at every client. The server is a process of its own; clients, writer and
server share this machine, so the times are upper limits. Run it on a quiet machine: the load average is recorded.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.web.served import resident_bytes, served, write_runs

OUT = Path(__file__).resolve().parents[2] / "results" / "web" / "load.json"
BEHIND_SECONDS = 60.0


class Client:
    """One listener: how long until it had every cell, and when each later cell came."""

    def __init__(self, port: int, path: str, total: int) -> None:
        self.port, self.path, self.total = port, path, total
        self.ready = asyncio.Event()
        self.first_byte = self.whole = 0.0
        self.bytes = 0
        self.came: dict[str, float] = {}

    async def listen(self) -> None:
        """Read events until cancelled."""
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=64 << 20)
        writer.write(f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        known: set[str] = set()
        try:
            while line := await reader.readline():
                self.first_byte = self.first_byte or time.monotonic() - began
                self.bytes += len(line)
                if not line.startswith(b"data: "):
                    continue
                now = time.monotonic()
                for cell in json.loads(line[6:]).get("cells", ()):
                    if cell["id"] in known and cell["state"] == "done":
                        self.came.setdefault(cell["id"], now)
                    known.add(cell["id"])
                if len(known) >= self.total and not self.ready.is_set():
                    self.whole = now - began
                    self.ready.set()
        finally:
            writer.close()


def spread(seconds: list[float]) -> dict[str, float]:
    """Median, 95th percentile and worst, in milliseconds."""
    ordered = sorted(seconds)
    at = {"median": statistics.median(ordered), "p95": ordered[int(0.95 * (len(ordered) - 1))], "worst": ordered[-1]}
    return {name: round(1000 * value, 1) for name, value in at.items()}


async def drive(port: int, path: str, clients: int, runs: Path, names: list[str], total: int) -> dict[str, Any]:
    """Connect everybody, write results, and wait until everybody has seen each of them."""
    listeners = [Client(port, path, total) for _ in range(clients)]
    tasks = [asyncio.create_task(one.listen()) for one in listeners]
    await asyncio.wait_for(asyncio.gather(*(one.ready.wait() for one in listeners)), 300)
    delays: list[float] = []
    for name in names:
        target = runs / name / "result.json"
        temporary = target.with_suffix(".tmp")
        temporary.write_text('{"loss":1.5,"status":"done","step":40}')
        written = time.monotonic()
        os.rename(temporary, target)
        while not all(name in one.came for one in listeners):
            await asyncio.sleep(0.01)
            if time.monotonic() - written > BEHIND_SECONDS:
                raise SystemExit(f"after {BEHIND_SECONDS:g} s some clients have not seen {name}")
        delays += [one.came[name] - written for one in listeners]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "first_byte_ms": spread([one.first_byte for one in listeners]),
        "all_cells_ms": spread([one.whole for one in listeners]),
        "change_ms": spread(delays),
        "changes_seen": len(delays),
        "bytes_per_client": round(statistics.mean(one.bytes for one in listeners)),
    }


def timed(url: str) -> float:
    """Seconds of one request."""
    began = time.monotonic()
    urllib.request.urlopen(url, timeout=60).read()
    return time.monotonic() - began


def measure(clients: int, runs: int, changes: int) -> dict[str, Any]:
    """The whole experiment."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        names = write_runs(home / "runs" / "load", runs, waiting=changes)
        with served(home) as (url, process):
            key = json.load(urllib.request.urlopen(f"{url}/api/index", timeout=60))["sweeps"][0]["id"]
            pages = {path: round(1000 * min(timed(url + path) for _ in range(3)), 1) for path in ("/", "/sweeps")}
            before = resident_bytes(process.pid)
            unfinished = [name for name in names if not (home / "runs" / "load" / name / "result.json").exists()]
            port = int(url.rpartition(":")[2])
            job = drive(port, f"/api/sweeps/{key}/events", clients, home / "runs" / "load", unfinished, runs)
            answer = asyncio.run(job)
            after = resident_bytes(process.pid)
            answer |= {"page_ms": pages, "server_mb_before": round(before / 1e6), "server_mb_after": round(after / 1e6)}
            answer["kb_per_client"] = round((after - before) / 1e3 / clients, 1)
    return {"clients": clients, "runs": runs, "changes": changes, **answer}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    load = [round(value, 1) for value in os.getloadavg()]
    answer = measure(given.clients, given.runs, given.changes)
    about = {"load_average_before": load, "cores": os.cpu_count(), "python": platform.python_version()}
    given.out.write_text(json.dumps(answer | about, indent=1) + "\n")
    print(json.dumps(answer | about, indent=1))


if __name__ == "__main__":
    main()
