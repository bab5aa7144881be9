"""The toy trainer: real steps, and a resumed run is an uninterrupted one to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.run import RunFolder
from deepwide.run.toy import NUMERICS, ToyConfig, train


def create(runs: Path, **settings: Any) -> RunFolder:
    config = ToyConfig(**settings).model_dump(mode="json")
    return RunFolder.create(runs, config, data_fingerprint="d", numerics=NUMERICS)


def test_a_run_stopped_at_any_step_ends_as_one_that_was_not(memory: Path) -> None:
    whole = create(memory / "whole", steps=5, checkpoint_every=2)
    with whole.lease("me") as writer:
        assert train(whole, writer)
    for stop_at in range(5):
        folder = create(memory / str(stop_at), steps=5, checkpoint_every=2)
        asked = iter([False] * stop_at + [True]).__next__
        with folder.lease("me") as writer:
            assert not train(folder, writer, stop=asked)
        with folder.lease("me") as writer:
            assert train(folder, writer)
        assert folder.result() == whole.result()
        assert folder.metrics() == whole.metrics()


def test_the_loss_falls_and_too_high_a_rate_diverges(memory: Path) -> None:
    folder = create(memory, steps=40)
    with folder.lease("me") as writer:
        train(folder, writer)
    losses = [record["loss"] for record in folder.metrics()]
    assert losses[-1] < losses[0] / 2
    wild = create(memory, steps=400, lr=1e5)
    with wild.lease("me") as writer, np.errstate(over="ignore"):
        train(wild, writer)
    assert (wild.result() or {})["status"] == "diverged"


def test_it_fails_where_it_is_asked_to(memory: Path) -> None:
    folder = create(memory, fail_at=3)
    with pytest.raises(RuntimeError, match="on purpose"), folder.lease("me") as writer:
        train(folder, writer)
    assert [record["step"] for record in folder.metrics()] == [1, 2]
