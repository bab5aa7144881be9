"""The command line in this process, which is quicker than a new one: the same `main`, arguments and streams."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any
from unittest import mock

import pytest

from deepwide.cli import main


def call(*words: str) -> "subprocess.CompletedProcess[str]":
    """What a command says and how it ends."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["deepwide", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return subprocess.CompletedProcess(words, int(stop.value.code or 0), out.getvalue(), err.getvalue())


def ask(*words: str) -> Any:
    """What a command answers in JSON."""
    done = call(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)  # NaN and Infinity are not JSON
