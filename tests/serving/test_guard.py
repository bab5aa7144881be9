"""Requests that must not be answered: foreign hosts, foreign pages, huge bodies; and what every answer says."""

import asyncio
import contextlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from deepwide.serving import guard
from deepwide.serving.guard import LARGEST_BODY, LONGEST_ADDRESS, Guard, is_loopback

WANTED = {"depth": 1, "width": 1}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8383", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.0.7", "8.8.8.8",
     "user@127.0.0.1", "127.0.0.1/evil", "", "[::2]", "127.0.0.1:port", "0.0.0.0"],
)  # fmt: skip
def test_a_host_that_is_not_ours_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/index", headers={"host": host})
    assert answer.status_code == 421
    assert "runs/small" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:8383", "[::1]:8383", "127.0.0.2"])
def test_this_machine_s_own_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/models", headers={"host": host}).status_code == 200


def test_an_exposed_server_answers_to_addresses_and_to_its_own_name_only() -> None:
    async def nothing(*_: Any) -> None: ...

    ours = Guard(nothing, names=("box",), exposed=True)
    assert [ours.is_ours(host) for host in ("192.168.0.7:80", "box:80", "BOX", "evil.example")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "OPTIONS", "GET"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8383"])
def test_a_page_of_another_origin_is_refused_without_cors(client: TestClient, method: str, origin: str) -> None:
    answer = client.request(method, "/api/measurements", headers={"origin": origin})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_pages_may_ask_for_work(client: TestClient) -> None:
    own = {"origin": "http://127.0.0.1:8383", "sec-fetch-site": "same-origin"}
    answer = client.post("/api/measurements", json={"depth": 0, "width": 1}, headers=own)
    assert answer.status_code == 422


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_can_neither_embed_nor_fetch_but_link(client: TestClient, site: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    assert client.get("/api/index", headers=headers).status_code == 403
    assert client.post("/api/measurements", json=WANTED, headers=headers).status_code == 403
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert client.get("/sweeps", headers=link).status_code == 200
    assert client.post("/api/measurements", json=WANTED, headers=link).status_code == 403  # a form is no link


def test_a_huge_body_is_refused_whether_announced_or_not(client: TestClient) -> None:
    body = b'{"a":"' + b"x" * LARGEST_BODY + b'"}'
    json = {"content-type": "application/json"}
    assert client.post("/api/audit", content=body, headers=json).status_code == 413

    def unannounced() -> Any:
        for _ in range(20):
            yield b" " * (LARGEST_BODY // 8)

    assert client.post("/api/audit", content=unannounced(), headers=json).status_code == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999999999"])
def test_a_lie_about_the_length_is_refused(client: TestClient, length: str) -> None:
    answer = client.post("/api/audit", content=b"{}", headers={"content-length": length})
    assert answer.status_code == 413


def test_a_long_address_is_refused(client: TestClient) -> None:
    assert client.get("/api/audit", params={"model": "x" * LONGEST_ADDRESS}).status_code == 414


@pytest.mark.parametrize("path", ["/", "/sweeps", "/api/index", "/static/dom.js", "/nothing", "/openapi.json"])
def test_every_answer_is_closed(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_web_socket_is_closed_at_once(client: TestClient) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/index"):
        pass


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("no.such.host.invalid", False)],
)
def test_which_addresses_only_this_machine_can_reach(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone


async def answered(app: Any, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What a guarded application answers to a POST whose body comes in these messages and then never goes on."""
    sent: list[dict[str, Any]] = []
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.sleep(3600)
        return left.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "scheme": "http", "headers": [(b"host", b"localhost")]}
    await Guard(app)(scope, receive, send)
    return sent


async def reads_all(_: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_body_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    part = {"type": "http.request", "body": b"{", "more_body": True}
    sent = asyncio.run(answered(reads_all, part, part))
    assert [message["status"] for message in sent if "status" in message] == [408]
    whole = {"type": "http.request", "body": b"}", "more_body": False}
    assert asyncio.run(answered(reads_all, part, whole))[0]["status"] == 200


def test_a_client_that_listens_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.1)

    async def waits(_: Any, receive: Any, send: Any) -> None:
        await receive()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(receive(), 0.4)  # as a stream waits for the client to leave
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent = asyncio.run(answered(waits, {"type": "http.request", "body": b"", "more_body": False}))
    assert sent[0]["status"] == 200


def test_a_server_that_stops_says_so_to_who_is_still_sending() -> None:
    async def stopped() -> list[dict[str, Any]]:
        part = {"type": "http.request", "body": b"{", "more_body": True}
        task = asyncio.create_task(answered(reads_all, part))
        await asyncio.sleep(0.1)
        task.cancel()
        return await task

    assert asyncio.run(stopped())[0]["status"] == 503
