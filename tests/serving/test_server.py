"""The server as a process: where it listens, what it refuses, how it ends."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.web.served import served

from deepwide.errors import DeepwideError
from deepwide.serving import make_app, serve


def test_other_machines_are_not_let_in_unasked(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(
            DeepwideError, match="can be reached from other machines, and there is no password"
        ) as error:
            serve(tmp_path, host=host)
        assert error.value.remedies == ("expose",)


def test_a_port_in_use_is_a_sentence_with_the_next_free_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DeepwideError, match=rf"port {port} of 127.0.0.1 is in use .*: \d+ is free"):
            serve(tmp_path, port=port)


@pytest.mark.parametrize(("port", "sentence"), [(-1, "between 0 and 65535"), (70_000, "between 0 and 65535")])
def test_an_impossible_port_is_a_sentence(tmp_path: Path, port: int, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        serve(tmp_path, port=port)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="is not a folder"):
        serve(tmp_path / "absent", port=0)


def test_it_says_where_it_listens_and_ends_cleanly_with_streams_and_a_measurement_open(home: Path) -> None:
    with served(home) as (url, process):
        stream = urllib.request.urlopen(f"{url}/api/index/events", timeout=20)
        assert stream.readline() == b"event: index\n"
        body = json.dumps({"depth": 2, "width": 12}).encode()
        request = urllib.request.Request(f"{url}/api/measurements", body, {"content-type": "application/json"})
        assert json.load(urllib.request.urlopen(request, timeout=20))["state"] == "running"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert time.monotonic() - began < 15
        stream.close()


def test_a_listener_that_leaves_is_forgotten(home: Path) -> None:
    import uvicorn

    app = make_app(home, pause_seconds=0.05)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        listeners = app.state.live.index().listeners
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /api/index/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
            wait_for(lambda: len(listeners) == 1)
        wait_for(lambda: len(listeners) == 0)
    finally:
        server.should_exit = True
        thread.join(30)


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_command_prints_the_address_and_names_the_option_in_a_refusal(home: Path) -> None:
    with served(home) as (url, _):
        words = [sys.executable, "-m", "deepwide", "serve", str(home), "--port", url.rpartition(":")[2]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "is in use" in done.stderr
        assert done.stderr.endswith("Add --port.\n")
