"""What every request must be, before anything answers it, and what every answer says about itself.

A page of another site must not read what this server knows or start work on it, not even by a name that was made to
point at this machine (DNS rebinding). So: the Host must be ours, a request that changes something must come from our
own pages, none may come from another site, bodies are small, and answers can be neither framed nor read elsewhere.
"""

import asyncio
import ipaddress
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LARGEST_BODY = 1 << 20  # bytes
BODY_SECONDS = 20.0  # in which a body must have come
LONGEST_ADDRESS = 4096  # characters of path and query
READING = ("GET", "HEAD")
CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": CLOSED,
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware; `names` are host names that are ours besides this machine's loopback addresses."""

    def __init__(self, app: App, names: Iterable[str] = (), exposed: bool = False) -> None:
        self.app = app
        self.names = {"localhost", *(name.lower() for name in names)}
        self.exposed = exposed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        limited, begun = _Limited(receive), False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if limited.refusal:  # what the application makes of the cut body is not sent
                return
            if message["type"] == "http.response.start":
                begun = True
                given = {name.lower() for name, _ in message.get("headers", ())}
                extra = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            await self.app(scope, limited, send_with_headers)
        except _CutError:
            pass
        except asyncio.CancelledError:  # the server stops, and does not wait for the rest of a request
            if begun:
                raise
            limited.refusal = 503, "The server is stopping."
        if limited.refusal:
            await _refuse(send, *limited.refusal)

    def refusal(self, scope: MutableMapping[str, Any]) -> tuple[int, str] | None:
        """Why a request is refused, None if it is not: a status and a sentence."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self.is_ours(hosts[0]):
            return 421, f"This server does not answer to the name {hosts[0][:80]!r}." if hosts else "No Host was named."
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > LONGEST_ADDRESS:
            return 414, f"The address is longer than {LONGEST_ADDRESS} characters."
        site = headers.get("sec-fetch-site", ["none"])[0]
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode", [""])[0] != "navigate":
            return 403, "Pages of other sites may not ask this server."
        origins = headers.get("origin", [])
        if any(origin != f"{scope['scheme']}://{hosts[0]}" for origin in origins):
            return 403, "Pages of other sites may not ask this server."
        if scope["method"] not in READING and site not in ("none", "same-origin"):
            return 403, "Only this server's own pages may ask for work."
        length = headers.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length[:20]) > LARGEST_BODY:
            return 413, TOO_LARGE
        return None

    def is_ours(self, host: str) -> bool:
        """Whether a Host is this machine's: by a loopback address, by name; for an exposed server by any address.

        An address instead of a name cannot be rebound: no DNS is asked for it.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            _ = urlsplit(f"//{host}").port
        except ValueError:
            return False
        if any(sign in host for sign in "@/?#\\ "):
            return False
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self.exposed


TOO_LARGE = f"What was sent is larger than {LARGEST_BODY >> 20} MiB."


class _CutError(Exception):
    pass


class _Limited:
    """The body of a request, counted and timed: one that is longer than announced or allowed, or never ends, is cut."""

    def __init__(self, receive: Receive) -> None:
        self.receive, self.size, self.whole = receive, 0, False
        self.refusal: tuple[int, str] | None = None
        self.until = time.monotonic() + BODY_SECONDS

    async def __call__(self) -> Message:
        if self.whole:  # what is waited for now is that the client leaves
            return await self.receive()
        try:
            async with asyncio.timeout(self.until - time.monotonic()):
                message = await self.receive()
        except TimeoutError:
            self.refusal = 408, f"What is sent must be here within {BODY_SECONDS:.0f} seconds."
            raise _CutError from None
        if message["type"] == "http.request":
            self.size += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)
            if self.size > LARGEST_BODY:
                self.refusal = 413, TOO_LARGE
                raise _CutError
        return message


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = {**HEADERS, "content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in addresses)
