"""A child answers, is ended with all it started, and leaves when its server does."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwide.serving import children
from deepwide.serving.children import Child

SERVER = """
import asyncio, sys, time
from deepwide.serving.children import Child
async def main():
    child = await Child.start("child_of_tests", {})
    async for told in child.said():
        print(told["pid"], flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
CHILD = """
import os, time
from deepwide.serving.children import be_a_child
def work(request, tell):
    tell("here", pid=os.getpid(), request=request)
    time.sleep(60 if not request.get("quick") else 0)
be_a_child(work)
"""


# It does not look at its standard input, as while FLINT computes, and has a child of its own.
DEAF = """
import json, os, subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(json.dumps({"pids": [os.getpid(), inner.pid]}), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "child_of_tests.py").write_text(CHILD)
    (tmp_path / "deaf_child_of_tests.py").write_text(DEAF)
    monkeypatch.syspath_prepend(str(tmp_path))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_it_gets_the_request_and_answers() -> None:
    async def main() -> list[dict[str, object]]:
        child = await Child.start("child_of_tests", {"quick": 1})
        lines = [told async for told in child.said()]
        await child.end()
        return lines

    assert [(told["kind"], told["request"]) for told in asyncio.run(main())] == [("here", {"quick": 1})]


def test_ending_it_ends_the_process() -> None:
    async def main() -> int:
        child = await Child.start("child_of_tests", {})
        async for told in child.said():
            assert is_alive(int(told["pid"]))
            await child.end()
            return int(told["pid"])
        raise AssertionError

    assert not is_alive(asyncio.run(main()))


def test_a_deaf_one_is_ended_with_what_it_started() -> None:
    async def main() -> list[int]:
        child = await Child.start("deaf_child_of_tests", {})
        async for told in child.said():
            async with asyncio.timeout(30):
                await child.end()
            return list(told["pids"])
        raise AssertionError

    pids = asyncio.run(main())
    deadline = time.monotonic() + 20
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_leaves_when_the_server_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_is_told_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    children.tell("note", text="a\nb")
    assert capsys.readouterr().out == '{"kind": "note", "text": "a\\nb"}\n'
