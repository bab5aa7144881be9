"""Speed of networks by turns in one process, so that whatever else the machine does meets them all."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from deepwide.studies.wide_attention import WideSettings

ROUNDS, PASSES = 9, 3  # of timing: in each round every network takes its turn, and its fastest pass counts


def timed(networks: Sequence[Any], settings: "WideSettings") -> dict[str, Any]:
    """Milliseconds of one sequence, and of a training step; ratios are of the deep network over the wide one."""
    import torch

    s = networks[0].design.shape
    length = min(settings.timed, s.context)
    random = torch.Generator().manual_seed(0)
    one, many = (torch.randint(s.vocab, (rows, length), generator=random) for rows in (1, settings.batch))

    def answer(network: Any) -> None:
        with torch.no_grad():
            network(one, source_BS=one if s.reads_two else None)

    def train(network: Any) -> None:
        targets = torch.zeros(len(many), dtype=torch.long)
        network(many, targets, source_BS=many if s.reads_two else None).backward()

    latency, training = (by_turns(networks, work) for work in (answer, train))
    ratios = [deep / wide for wide, deep in latency]
    return {
        "wide_ms": 1000 * float(np.median([wide for wide, _ in latency])),
        "deep_ms": 1000 * float(np.median([deep for _, deep in latency])),
        "latency_ratios": ratios,
        "latency_ratio": float(np.median(ratios)),
        "training_ratio": float(np.median([deep / wide for wide, deep in training])),
    }


def by_turns(networks: Sequence[Any], work: Callable[[Any], None]) -> list[tuple[float, ...]]:
    """Seconds per round and network: the least of some passes, the networks taking turns."""
    for network in networks:
        work(network)
    rounds = []
    for _ in range(ROUNDS):
        least = [float("inf")] * len(networks)
        for _ in range(PASSES):
            for place, network in enumerate(networks):
                began = time.perf_counter()
                work(network)
                least[place] = min(least[place], time.perf_counter() - began)
        rounds.append(tuple(least))
    return rounds
