"""Records go elsewhere too, and a place that fails does not end the run."""

import sys
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.training import sinks

TRAIN = {"kind": "train", "step": 3, "steps": 10, "loss": 2.5, "lr": 0.1, "seconds": 1.0, "tokens_per_second": 2000.0}
VALIDATION = {"kind": "validation", "step": 3, "steps": 10, "loss": 2.25, "bits_per_byte": 3.1, "seconds": 12.0}


def test_sinks_get_measures_by_step_and_missing_libraries_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []

    class FakeRun:
        def log(self, measures: dict[str, float], step: int) -> None:
            logged.append((step, measures))

        def finish(self) -> None:
            logged.append("closed")

    fake = type("wandb", (), {"init": staticmethod(lambda **fields: logged.append(fields["id"]) or FakeRun())})
    monkeypatch.setitem(sys.modules, "wandb", fake)
    sink = sinks.open_sink("wandb:project", "run1", {"seed": 0})
    sink.record(TRAIN)
    sink.record(VALIDATION)
    sink.close()
    assert logged == [
        "run1",
        (3, {"train/loss": 2.5, "train/lr": 0.1, "train/tokens_per_second": 2000.0}),
        (3, {"validation/loss": 2.25, "validation/bits_per_byte": 3.1}),
        "closed",
    ]
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(DeepwideError, match="pip install mlflow"):
        sinks.open_sink("mlflow", "run1", {})
    with pytest.raises(DeepwideError, match="did you mean 'wandb'"):
        sinks.check_sink("wanb")


def test_a_sink_that_fails_is_reported_once_and_does_not_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Away:
        def log(self, *_: Any, **__: Any) -> None:
            calls.append("log")
            raise ConnectionError("the service is away\nand more")

    monkeypatch.setitem(sys.modules, "wandb", type("wandb", (), {"init": staticmethod(lambda **_: Away())}))
    reports: list[str] = []
    sink = sinks.open_sink("wandb:project", "run1", {}, reports.append)
    sink.record(TRAIN)
    sink.record(TRAIN)
    sink.close()
    assert calls == ["log"]
    assert reports == ["wandb failed and gets nothing more; metrics.jsonl has it all. Error: the service is away."]

    def refuse(**_: Any) -> None:
        raise RuntimeError("not logged in")

    monkeypatch.setitem(sys.modules, "wandb", type("wandb", (), {"init": staticmethod(refuse)}))
    with pytest.raises(DeepwideError, match="wandb cannot be opened: not logged in"):
        sinks.open_sink("wandb:project", "run1", {})
