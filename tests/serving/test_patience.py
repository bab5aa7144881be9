"""A connection that never says what it wants is closed; one that is answered, or listens, is not."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from deepwide.serving import patience
from deepwide.serving.patience import PatientProtocol

WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope: Any, _: Any, send: Any) -> None:
    """Answers; under /slow after a while."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        import asyncio

        await asyncio.sleep(0.8)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.3)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=PatientProtocol, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    yield int(listening.getsockname()[1])
    server.should_exit = True
    thread.join(20)


def answer(client: socket.socket) -> bytes:
    """An answer of two letters, in however many pieces it comes."""
    received = b""
    while not received.endswith(b"\r\n\r\nok"):
        piece = client.recv(1000)
        assert piece, received
        received += piece
    return received


def seconds_open(port: int, *parts: bytes) -> float:
    """How long the server keeps a connection that sends these, a tenth of a second apart, and then nothing."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        began = time.monotonic()
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(0.1)
            while client.recv(1000):
                pass
        except ConnectionError:
            pass
        return time.monotonic() - began


@pytest.mark.parametrize(
    "parts", [(), (b"G",), (b"GET / HT",), (WHOLE[:-2],), (b"GET / HTTP/1.1\r\n", *[b"X: y\r\n"] * 30)]
)
def test_half_a_head_is_not_waited_for(port: int, parts: tuple[bytes, ...]) -> None:
    assert seconds_open(port, *parts) < 4


def test_after_an_answer_too_half_a_head_is_not_waited_for(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(WHOLE)
        assert answer(client).endswith(b"ok")
        began = time.monotonic()
        client.sendall(b"GET / HT")
        assert client.recv(1000) == b""
        assert time.monotonic() - began < 4


def test_an_answer_may_take_longer_than_a_head(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(WHOLE.replace(b"/ ", b"/slow "))
        assert answer(client).endswith(b"ok")
