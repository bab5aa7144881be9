"""Networks take turns, and the fastest of some passes counts."""

import pytest

from deepwide.studies.wide_attention import WideSettings
from deepwide.studies.wide_speed import PASSES, ROUNDS, by_turns, timed


def test_networks_take_turns_and_the_least_of_their_passes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [0.0], list[str]()
    monkeypatch.setattr("deepwide.studies.wide_speed.time.perf_counter", lambda: now[0])

    def work(name: str) -> None:
        turns.append(name)
        hiccup = 5.0 if len(turns) % 3 == 0 else 0.0
        now[0] += {"wide": 1.0, "deep": 4.0}[name] + hiccup

    rounds = by_turns(["wide", "deep"], work)
    assert turns == ["wide", "deep"] * (1 + ROUNDS * PASSES)
    assert rounds == [(1.0, 4.0)] * ROUNDS


def test_a_network_beside_itself_is_as_fast() -> None:
    torch = pytest.importorskip("torch")
    from deepwide.model import Transformer
    from deepwide.training import resolve

    run = {"model": {"depth": 1, "width": 8, "heads": 1}, "task": {"name": "listops", "longest": 24}, "steps": 1}
    network = Transformer(resolve(run | {"batch": 2, "seed": 0}).architecture)
    threads = torch.get_num_threads()
    row = timed([network, network], WideSettings(batch=2, timed=8))
    assert torch.get_num_threads() == threads
    assert len(row["latency_ratios"]) == ROUNDS
    assert 0.2 < row["latency_ratio"] < 5
    assert row["wide_ms"] > 0
