"""Requests that must not be answered: foreign hosts, foreign pages, huge bodies; and what every answer says."""

from typing import Any

import pytest
from starlette.testclient import TestClient

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

    guard = Guard(nothing, names=("box",), exposed=True)
    assert [guard.is_ours(host) for host in ("192.168.0.7:80", "box:80", "BOX", "evil.example")] == [
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
