"""Sweeps of toys: cells of milliseconds, real folders, real processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepwide.sweeping import Spec, make_spec

TABLE: dict[str, Any] = {
    "name": "toys",
    "seeds": [0, 1],
    "run": {"trainer": "toy", "steps": 4, "checkpoint_every": 2},
    "grid": {"width": [2, 3], "lr": [0.05, 0.1]},
}


def toys(**changes: Any) -> Spec:
    """The table with some of it changed; `run` is merged."""
    merged = TABLE | changes
    merged["run"] = TABLE["run"] | changes.get("run", {})
    return make_spec(merged)


def write_toml(path: Path, **changes: Any) -> Path:
    """The same as a file."""
    spec = toys(**changes)
    lines = [f'name = "{spec.name}"', f"seeds = {spec.seeds}", "[run]"]
    lines += [f"{key} = {_toml(value)}" for key, value in spec.run.items()] + ["[grid]"]
    lines += [f"{key} = {_toml(value)}" for key, value in spec.grid.items()]
    path.write_text("\n".join(lines))
    return path


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def start(*words: str | Path) -> "subprocess.Popen[str]":
    """The command in a process of its own, left running."""
    return subprocess.Popen(_command(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def deepwide(*words: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, to its end."""
    return subprocess.run(
        _command(words), env=os.environ | environment, capture_output=True, text=True, check=False, timeout=150
    )


def _command(words: tuple[str | Path, ...]) -> list[str]:
    return [sys.executable, "-m", "deepwide", *map(str, words)]
