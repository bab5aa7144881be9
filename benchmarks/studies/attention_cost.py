"""Time and memory of one attention layer of an encoder against the length, every kind beside softmax.

    python -m benchmarks.studies.attention_cost --out results/studies/attention-cost.json

One layer (width 128, 4 heads of 32, one sequence, kinds at their usual sizes) is run forward and backward on one
thread. Kinds take turns, length by length, in an order that rotates, and every number is a ratio to softmax in the same
round, in processor time: a busy machine slows both. `softmax` is torch's fused kernel, which keeps no scores; `softmax,
scores kept` forms all pairs, as the papers' baselines do. Memory is the most that torch has allocated at once during a
step, from its profiler's events: it does not depend on the machine's load.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from deepwide.model import Architecture
from deepwide.model.attention import MIXERS, Attention

WIDTH, HEADS = 128, 4
LENGTHS = (500, 1000, 2000, 4000)
EAGER = "softmax, scores kept"
KINDS = ("softmax", EAGER, *sorted(MIXERS))


def layer(kind: str, length: int) -> Callable[[], None]:
    """A forward and a backward pass of one layer."""
    name = "softmax" if kind == EAGER else kind
    design = Architecture.of(
        depth=1, width=WIDTH, heads=HEADS, vocab=2, context=length, kind="encoder", attention=name
    )  # fmt: skip
    attention = Attention(design, causal=False)
    with torch.no_grad():
        for number, parameter in enumerate(attention.parameters()):
            parameter.normal_(0, 0.02, generator=torch.Generator().manual_seed(number))
    x_BTD = torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(9), requires_grad=True)
    if kind == EAGER:
        attention.mix = _eager

    def step() -> None:
        x_BTD.grad = None
        attention.zero_grad()
        attention(x_BTD, None, None, None).sum().backward()

    return step


def _eager(q: Any, k: Any, v: Any, *, scale: float, **_: Any) -> Any:
    return (q @ k.transpose(-1, -2) * scale).softmax(-1) @ v


def in_turns(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of every kind, round by round, in an order that rotates; one round to warm up."""
    seconds: dict[str, list[float]] = {kind: [] for kind in steps}
    kinds = list(steps)
    for number in range(rounds + 1):
        turn = number % len(kinds)
        for kind in kinds[turn:] + kinds[:turn]:
            began = time.process_time()
            steps[kind]()
            if number:
                seconds[kind].append(time.process_time() - began)
    return seconds


def peak_bytes(step: Callable[[], None]) -> int:
    """The most that torch had allocated at once during a step, above what was there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    inner: Any = profiler.profiler
    events = [(e.start_ns(), e.nbytes()) for e in inner.kineto_results.events() if e.name() == "[memory]"]
    peak = current = 0
    for _, change in sorted(events, key=lambda event: event[0]):
        current += change
        peak = max(peak, current)
    return peak


def measure(lengths: Sequence[int], rounds: int, kinds: Sequence[str] = KINDS) -> list[dict[str, Any]]:
    """One row per kind and length."""
    rows: list[dict[str, Any]] = []
    for length in lengths:
        steps = {kind: layer(kind, length) for kind in kinds}
        seconds = in_turns(steps, rounds)
        for kind, step in steps.items():
            ratios = sorted(a / b for a, b in zip(seconds[kind], seconds["softmax"], strict=True))
            quarter = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            rows.append(
                {
                    "kind": kind,
                    "length": length,
                    "time_over_softmax": round(median(ratios), 4),
                    "quarter": round(quarter[0], 4),
                    "three_quarters": round(quarter[2], 4),
                    "processor_seconds": round(median(seconds[kind]), 5),
                    "peak_bytes": peak_bytes(step),
                }
            )
        of_softmax = next(row["peak_bytes"] for row in rows if row["kind"] == "softmax" and row["length"] == length)
        for row in rows:
            if row["length"] == length:
                row["peak_over_softmax"] = round(row["peak_bytes"] / of_softmax, 4)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of every attention kind of encoders by length.")
    parser.add_argument("--out", type=Path, default=Path("results/studies/attention-cost.json"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(options.lengths, options.rounds)
    about = {
        "what": "one attention layer forward and backward, one sequence, one thread, beside softmax in turns",
        "width": WIDTH,
        "heads": HEADS,
        "rounds": options.rounds,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "load": [round(load, 1) for load in os.getloadavg()],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        time_and_memory = f"time × {row['time_over_softmax']:.3f}, memory × {row['peak_over_softmax']:.2f}"
        print(f"{row['length']:5d}  {row['kind']:22s} {time_and_memory}")


if __name__ == "__main__":
    main()
