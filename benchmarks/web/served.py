"""A server in a process of its own, and folders of simulated runs for it to show."""

import json
import math
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepwide.run import canonical, run_id

SECONDS_TO_STOP = 20


@contextmanager
def served(folder: Path, *words: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`deepwide serve FOLDER` on a free port: its address and its process; interrupted at the end, as by Ctrl-C."""
    command = [sys.executable, "-m", "deepwide", "serve", str(folder), "--port", "0", "--json", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        yield json.loads("".join(lines))["url"].rstrip("/"), process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(SECONDS_TO_STOP)
        finally:
            process.kill()
            process.stdout.close() if process.stdout else None


def simulated_loss(depth: int, width: int, draw: random.Random) -> float:
    """A loss with a best depth that grows with the size, and some noise: for pictures, not for conclusions."""
    size = 12 * depth * width**2
    best = 0.6 * math.log(size) - 2
    return (1.7 + 40 / size**0.25) * (1 + 0.012 * math.log(depth / max(best, 1)) ** 2) * math.exp(draw.gauss(0, 0.002))


def write_runs(folder: Path, number: int, *, waiting: int = 0, running: int = 0, corrupt: int = 0) -> list[str]:
    """So many run folders; the last ones corrupt, running or begun and left, as asked. Returns their ids."""
    draw = random.Random(0)
    names = []
    for i in range(number):
        depth, width = (1, 2, 4, 6, 8, 12)[i % 6], 16 * (1 + i // 6 % 12)
        config = {"trainer": "toy", "depth": depth, "width": width, "seed": i // 72, "lr": 0.05, "steps": 40,
                  "checkpoint_every": 2, "seconds_per_step": 0.0, "fail_at": 0, "exit_at": 0}  # fmt: skip
        name = run_id(config, data_fingerprint="simulated", numerics="toy-1")
        names.append(name)
        params = 12 * depth * width**2
        counts = {"depth": depth, "width": width, "block_params": params, "total_params": params, "steps": 40,
                  "tokens": 40_000, "train_flops": 240_000 * params, "train_bytes": 32 * params}  # fmt: skip
        kind = number - i
        loss = simulated_loss(depth, width, draw)
        write_run(
            folder / name,
            {"config": config, "data": "simulated", "numerics": "toy-1", "counts": counts},
            loss,
            state="corrupt" if kind <= corrupt else "running" if kind <= corrupt + running else
            "waiting" if kind <= corrupt + running + waiting else "diverged" if draw.random() < 0.004 else "done",
        )  # fmt: skip
    return names


def write_run(path: Path, record: dict[str, object], loss: float, state: str) -> None:
    """One run folder as a worker would leave it."""
    path.mkdir(parents=True)
    text = canonical(record)
    (path / "config.json").write_text(text[:-9] if state == "corrupt" else text)
    if state == "waiting":
        return
    steps = 17 if state == "running" else 40
    curve = [{"step": s, "loss": loss * (1 + 3 * math.exp(-s / 9))} for s in range(1, steps + 1)]
    (path / "metrics.jsonl").write_text("".join(canonical(one) + "\n" for one in curve))
    ended = "" if state == "running" else state
    lease = {"owner": "simulated:1", "number": 1, "seconds": 3600.0, "worked": 12.5, "ended": ended}
    (path / "lease.json").write_text(canonical(lease))
    if state in ("done", "diverged"):
        result = {"status": state, "step": 40, "loss": loss if state == "done" else None}
        (path / "result.json").write_text(canonical(result))


def resident_bytes(pid: int) -> int:
    """The memory that a process has in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
