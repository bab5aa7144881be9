"""No network for tests: any Python with this folder on its path refuses to leave the machine, as if it were unplugged.

Python imports a module of this name when it starts, so processes that tests start are cut off too. What libraries do
below Python is not seen here; `.ci/run` takes the network away altogether where it may.
"""

import errno
import os
import sys
from typing import Any

LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")


def refuse(event: str, details: tuple[Any, ...]) -> None:
    """An audit hook: it cannot be taken off again, and sees every connection and every name that is looked up."""
    if event in ("socket.connect", "socket.sendto") and isinstance(details[1], tuple):
        if not _is_this_machine(str(details[1][0])):
            raise OSError(errno.ENETUNREACH, f"tests run without a network, and this wants {details[1][0]}")
    elif event in LOOKUPS:
        host = details[0].decode() if isinstance(details[0], bytes) else details[0]
        numeric = not host or ":" in host or host.replace(".", "").isdecimal()
        if not numeric and host not in ("localhost", os.uname().nodename):
            import socket

            raise socket.gaierror(socket.EAI_AGAIN, f"tests run without a network, and this asks for {host}")


def _is_this_machine(host: str) -> bool:
    """Loopback, or an address that one can listen at."""
    if host.startswith("127.") or host in ("", "localhost", "::1", os.uname().nodename):
        return True
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


if not getattr(sys, "_deepwide_offline", False):  # once a process, however it was imported
    sys._deepwide_offline = True  # type: ignore[attr-defined]
    sys.addaudithook(refuse)
