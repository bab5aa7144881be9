"""The suite runs as on a machine without a network: nothing a test does, or a process it starts, may leave it."""

import errno
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

OUTSIDE = "192.0.2.1"  # reserved for documentation (RFC 5737): it leads nowhere


def test_a_connection_out_of_this_machine_is_refused_at_once() -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as out, pytest.raises(OSError, match="without a network") as refused:
            out.connect((OUTSIDE, 80))
        assert refused.value.errno == errno.ENETUNREACH, "as when there is no network"
    with pytest.raises(urllib.error.URLError, match="without a network"):
        urllib.request.urlopen("https://example.com", timeout=1)


def test_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5) as out:
        assert out.getpeername() == server.getsockname()


def test_processes_that_tests_start_are_cut_off_too() -> None:
    code = f"import socket; socket.create_connection(({OUTSIDE!r}, 80), 1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "tests run without a network" in done.stderr
