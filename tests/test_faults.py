"""Where a test may kill the process: points are counted, logged, or deadly, and cost nothing otherwise."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepwide import faults


@pytest.fixture(autouse=True)
def disarm() -> Iterator[None]:
    yield
    faults.arm(os.environ.get("DEEPWIDE_FAULT", ""))


def test_points_are_written_down_in_order(tmp_path: Path) -> None:
    log = tmp_path / "points.txt"
    faults.arm(f"log:{log}")
    faults.point("one")
    file = io.BytesIO()
    faults.write(file, b"content", "a file")
    assert file.getvalue() == b"content"
    assert log.read_text().splitlines() == ["one", "before a file", "in the middle of a file", "after a file"]


def test_unarmed_points_do_nothing() -> None:
    faults.arm("")
    file = io.BytesIO()
    faults.point("one")
    faults.write(file, b"content", "a file")
    assert file.getvalue() == b"content"


@pytest.mark.parametrize(("number", "written"), [(1, b""), (2, b"con"), (3, b"content")])
def test_the_process_dies_at_its_point_with_what_was_written_before(
    number: int, written: bytes, tmp_path: Path
) -> None:
    program = "import sys; from deepwide import faults; faults.write(open(sys.argv[1], 'wb'), b'content', 'a file')"
    target = tmp_path / "file"
    environment = os.environ | {"DEEPWIDE_FAULT": str(number)}
    done = subprocess.run([sys.executable, "-c", program, str(target)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == written
