"""From a folder to a running server: which address, whether it may be had, and a clean end."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, needs
from deepwide.laws import Law
from deepwide.serving.guard import is_loopback

PORT = 8383
PORTS_TRIED = 50  # after one that is in use
GRACE_SECONDS = 3  # for answers that are under way when the server stops


class Address(Answer):
    """Where the server listens and what it shows."""

    url: str
    host: str
    port: int
    folder: str
    sweeps: int
    studies: int
    exposed: bool


def serve(
    folder: str | Path = ".",
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    expose: bool = False,
    laws: Sequence[str | Path | Law] = (),
    started: Callable[[Address], None] | None = None,
) -> None:
    """Serve the pages of a folder's sweeps and studies until interrupted; reads only, and only for this machine.

    `port` 0 takes any free one. `expose` lets other machines in, to a `host` that they can reach: there is no password.
    `started` is called with the address once it listens.
    """
    for module in ("fastapi", "uvicorn"):
        needs(module, "serve")
    import uvicorn

    from deepwide.serving.app import make_app
    from deepwide.serving.patience import PatientProtocol

    if not expose and not is_loopback(host):
        raise DeepwideError(
            f"{host[:80]} can be reached from other machines, and there is no password: serve on 127.0.0.1 and forward "
            "the port (ssh -L), or expose it on purpose.",
            remedies=("expose",),
        )
    listening = _listen(host, port)
    with contextlib.closing(listening):
        app = make_app(folder, laws=laws, names=(host, socket.gethostname()) if expose else (), exposed=expose)
        actual = int(listening.getsockname()[1])
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=GRACE_SECONDS,
            lifespan="on", ws="none", http=PatientProtocol, h11_max_incomplete_event_size=32_768,
        )  # fmt: skip

        class Server(uvicorn.Server):
            """Tells when it listens; when asked to stop, ends the streams first, which would never end themselves."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if started is not None and not self.should_exit:
                    index = await asyncio.to_thread(app.state.live.contents.index)
                    started(
                        Address(
                            url=f"http://{f'[{host}]' if ':' in host else host}:{actual}/",
                            host=host,
                            port=actual,
                            folder=index.folder,
                            sweeps=len(index.sweeps),
                            studies=len(index.studies),
                            exposed=expose,
                        )
                    )

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await app.state.live.close()
                await super().shutdown(sockets)

        with _quiet_interrupt():
            Server(config).run(sockets=[listening])


@contextlib.contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """uvicorn raises the signal again that stopped it; a stop that was asked for is no error."""
    with contextlib.suppress(KeyboardInterrupt):
        yield


def _listen(host: str, port: int) -> socket.socket:
    """A socket on the port, or a sentence that names the next free one."""
    if not 0 <= port <= 65535:
        raise DeepwideError(f"the port must be between 0 and 65535, not {port}.", remedies=("port",))
    try:
        return _bound(host, port)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise DeepwideError(f"there is no address {host[:80]!r} to serve on: use 127.0.0.1.") from None
        if isinstance(error, PermissionError):
            raise DeepwideError(f"port {port} needs more rights: take one above 1023, such as {PORT}.") from None
        free = next((other for other in range(port + 1, min(port + PORTS_TRIED, 65536)) if _is_free(host, other)), 0)
        hint = f"{free} is free" if free else "let the system choose one with 0"
        raise DeepwideError(
            f"port {port} of {host} is in use ({error.strerror}): {hint}.", remedies=("port",)
        ) from None


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    return listening


def _is_free(host: str, port: int) -> bool:
    try:
        _bound(host, port).close()
    except OSError:
        return False
    return True
