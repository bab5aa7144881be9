"""Kills a worker at every point where it writes, and lets another finish: a real process, a real SIGKILL, each time.

    python killer.py HOME CONFIG.json FIRST STEP    prints what it found as JSON

Every process is forked from this one, which has imported everything and started no thread: hundreds of deaths in
seconds. HOME/whole is the run that nobody interrupted.
"""

import hashlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from deepwide import faults
from deepwide.run import RunFolder
from deepwide.sweeping import trainer_of, work

# What the real trainer imports on its way, five seconds of it: once here, and not in every child.
REAL = ("safetensors.torch", "deepwide.training.loop", "torch._dynamo")


def main() -> None:
    """See the module."""
    home, config = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    first, stride = int(sys.argv[3]), int(sys.argv[4])
    log = home / "points.log"
    home.mkdir(parents=True, exist_ok=True)
    whole = home / "whole"
    trainer = trainer_of(config)
    trainer.identity(trainer.resolve(config).config)  # what this imports and caches, every child has for nothing
    for name in ("safetensors.numpy",) if config.get("trainer") == "toy" else REAL:
        importlib.import_module(name)
    assert in_a_process(partial(run, home / "first", config, "")) == 0  # which leaves the corpus in the cache
    assert in_a_process(partial(run, whole, config, f"log:{log}")) == 0
    names, expected = log.read_text().splitlines(), contents(whole)
    report: dict[str, Any] = {"points": sorted(set(names)), "count": len(names), "tried": 0, "wrong": []}
    for number in range(first, len(names) + 1, stride):
        runs = home / f"killed-{number}"
        died = in_a_process(partial(run, runs, config, str(number)))
        resumed = in_a_process(partial(run, runs, config, ""))
        report["tried"] += 1
        what = f"{number} ({names[number - 1]})"
        if died != -signal.SIGKILL:
            report["wrong"].append(f"{what}: not killed but {died}")
        elif resumed != 0:
            report["wrong"].append(f"{what}: could not resume ({resumed})")
        elif contents(runs) != expected:
            report["wrong"].append(f"{what}: differs after resume")
    print(json.dumps(report))


def run(runs: Path, config: dict[str, Any], plan: str) -> int:
    """Make the folder and work on it, as an executor would."""
    faults.arm(plan)
    trainer = trainer_of(config)
    resolved = trainer.resolve(config)
    identity = trainer.identity(resolved.config)
    folder = RunFolder.create(runs, resolved.config, **identity, counts=resolved.cost._asdict())
    return work([folder.path], owner="killer", device="cpu", threads=1)


def contents(runs: Path) -> dict[str, str]:
    """Everything that determines a table and its weights: hashes of result, metrics and checkpoints by name."""
    hashes = {}
    for path in sorted(runs.rglob("*")):
        name = str(path.relative_to(runs))
        if path.is_file() and path.name != "lease.json" and not any(part.startswith(".") for part in Path(name).parts):
            hashes[name] = hashlib.sha256(stable(path)).hexdigest()
    return hashes


def stable(path: Path) -> bytes:
    """The content without what the clock wrote (a real trainer's result and records say how long it took)."""
    if path.name == "result.json":
        return json.dumps(without_clock(json.loads(path.read_text()))).encode()
    if path.name == "metrics.jsonl":
        return json.dumps([without_clock(json.loads(line)) for line in path.read_text().splitlines()]).encode()
    if path.name in ("state.json", "manifest.json"):
        return b""  # tensors are compared byte by byte; the state may hold seconds, and the manifest its hash
    return path.read_bytes()


def without_clock(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the fields that the results table leaves out too."""
    from deepwide.sweeping.results import TIMINGS

    return {key: value for key, value in record.items() if key not in TIMINGS}


def in_a_process(job: Callable[[], int]) -> int:
    """The exit code of a job in a process of its own, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = job()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
