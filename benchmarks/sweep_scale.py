"""What a sweep of very many cells costs to look at: `python -m benchmarks.sweep_scale`.

`sweep plan` of transformers (100 shapes × rates × 10 seeds, and every cell another rate), then status, export, verify
and `run` over folders of toy runs that have finished, six records each, in memory where there is such a file system.
Every command is a process of its own; CPU seconds and peak memory are the kernel's. A look of the live table is timed
in this process: the first, and one when nothing has changed. `ratio` is CPU at 50,000 over ten times that at 5,000.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "sweep" / "scale.json"
SIZES = (500, 5_000, 50_000)


def measured(words: Sequence[str]) -> dict[str, float]:
    """CPU seconds and peak megabytes of one command."""
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen([sys.executable, "-m", "deepwide", *words], stdout=nowhere, stderr=nowhere, cwd=ROOT)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {child.returncode}")
    return {"cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "megabytes": round(used.ru_maxrss / 1000)}


def transformers(cells: int, seeds: int) -> str:
    """A sweep of 100 shapes with so many cells."""
    rates = [round(1e-5 * (i + 1), 8) for i in range(cells // (100 * seeds))]
    return "\n".join(
        [
            'name = "large"', f"seeds = {list(range(seeds))}", "[run]", "steps = 1000", "[grid]",
            f"depth = {list(range(1, 11))}", f"width = {[32 * i for i in range(1, 11)]}", f"lr = {rates}", "",
        ]
    )  # fmt: skip


def toys(cells: int) -> str:
    """A sweep of toy runs."""
    seeds = list(range(cells // 10))
    run = '[run]\ntrainer = "toy"\nsteps = 6\n[grid]\nwidth = [2, 4]\ndepth = [1, 2, 3, 4, 5]\n'
    return f'name = "toys"\nseeds = {seeds}\n{run}'


def finished_runs(spec: Path, runs: Path) -> None:
    """The folders that such a sweep leaves, written without training or syncing."""
    from deepwide.run import canonical
    from deepwide.run.seals import Chain, seal
    from deepwide.sweeping import cells_of, read_spec

    for cell in cells_of(read_spec(spec)):
        home = runs / cell.id
        home.mkdir(parents=True)
        record = {"config": cell.config, "data": cell.identity["data_fingerprint"]}
        record |= {"numerics": cell.identity["numerics"], "counts": cell.cost._asdict()}
        (home / "config.json").write_bytes(seal(record, cell.id) + b"\n")
        chain, lines = Chain(), b""
        for step in range(1, 7):
            line = seal({"step": step, "loss": 1 / step}, cell.id, chain.check)
            chain, lines = chain.after(cell.id, line), lines + line + b"\n"
        (home / "metrics.jsonl").write_bytes(lines)
        ends: dict[str, Any] = {"records": 6, "records_check": chain.check}
        result = {"status": "done", "step": 6, "loss": 1 / 6} | ends
        (home / "result.json").write_bytes(seal(result, cell.id) + b"\n")
        lease = {"owner": "scale", "number": 1, "nonce": "0", "seconds": 60.0, "saved": True, "worked": 0.1}
        (home / "lease.json").write_text(canonical(lease | {"ended": "done"}) + "\n", encoding="utf-8")


def live_look(spec: Path, runs: Path) -> dict[str, float]:
    """CPU seconds of a look at all cells by the live table: the first, and one when nothing has changed."""
    from deepwide.sweeping import cells_of, read_spec
    from deepwide.sweeping.state import StateReader

    reader = StateReader("toys", cells_of(read_spec(spec)), runs)
    looks = []
    for _ in range(2):
        began = time.process_time()
        assert reader.read().left == 0
        looks.append(round(time.process_time() - began, 3))
    return {"first_cpu_seconds": looks[0], "unchanged_cpu_seconds": looks[1]}


def at(cells: int, home: Path, rows: dict[str, Any], say: Callable[[], None]) -> None:
    """Everything at one size, into `rows`; what they say is written after each."""
    large, each, toy = home / "large.toml", home / "each.toml", home / "toys.toml"
    large.write_text(transformers(cells, 10 if cells >= 1000 else 1), encoding="utf-8")
    each.write_text(transformers(cells, 1), encoding="utf-8")
    toy.write_text(toys(cells), encoding="utf-8")
    runs = home / "runs"
    where = [str(toy), "--runs", str(runs)]
    commands = {
        "plan": ["plan", str(large)],
        "plan --json": ["plan", str(large), "--json"],
        "plan, every cell another rate": ["plan", str(each)],
        "status": ["status", *where],
        "export": ["export", *where, "--to", str(home / "table.csv")],
        "export --curves": ["export", *where, "--curves", "--to", str(home / "curves.csv")],
        "verify": ["verify", str(runs)],
        "run, all finished": ["run", *where],
    }
    for name, words in commands.items():
        if name == "status":
            finished_runs(toy, runs)
        rows[name] = measured(["sweep", *words])
        say()
    rows["a look of the live table"] = live_look(toy, runs)
    say()


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(words)
    shared = Path("/dev/shm")
    rows: dict[str, Any] = {}
    for cells in given.sizes:
        home = Path(tempfile.mkdtemp(prefix="deepwide-scale-", dir=shared if shared.is_dir() else None))
        try:
            at(cells, home, rows.setdefault(str(cells), {}), lambda: write(rows, given.out))
        finally:
            shutil.rmtree(home, ignore_errors=True)
    print(given.out.read_text(encoding="utf-8"))


def write(rows: dict[str, Any], out: Path) -> None:
    """What is known so far, and how far from linear it is."""
    small, large = rows.get("5000", {}), rows.get("50000", {})
    ratio = {
        what: round(large[what]["cpu_seconds"] / (10 * small[what]["cpu_seconds"]), 2)
        for what in large
        if "cpu_seconds" in large[what] and what in small
    }
    result = {"command": "python -m benchmarks.sweep_scale", "cells": rows, "ratio": ratio}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
