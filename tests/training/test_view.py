"""What is shown and sent elsewhere, and what planning must not load."""

import io
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from deepwide.errors import DeepwideError
from deepwide.training import sinks
from deepwide.training.progress import Bar
from deepwide.training.tuning import Trial

TRAIN = {"kind": "train", "step": 3, "steps": 10, "loss": 2.5, "lr": 0.1, "seconds": 1.0, "tokens_per_second": 2000.0}
VALIDATION = {"kind": "validation", "step": 3, "steps": 10, "loss": 2.25, "bits_per_byte": 3.1, "seconds": 12.0}


def test_progress_says_loss_speed_and_share_of_peak() -> None:
    out = io.StringIO()
    with Bar(10, 0, train_flops_per_token=1e6, peak=1e10, console=Console(file=out, width=200)) as bar:
        bar(TRAIN)
        bar(VALIDATION | {"tokens_per_second": 4000.0})
    first, second = out.getvalue().splitlines()
    assert first == "step 3/10: loss 2.5000, 2K tokens/s, 20% of peak"
    assert "validation 2.2500 (3.100 bits/byte), 4K tokens/s, 40% of peak" in second


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    out = io.StringIO()
    with Bar(10, 0, 1e6, 1e10, Console(file=out, width=150, force_terminal=True)) as bar:
        bar(TRAIN)
        bar.progress.refresh()
    assert "step 3/10" in out.getvalue()
    assert "━" in out.getvalue()


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


def test_a_sink_that_fails_is_told_once_and_does_not_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Away:
        def log(self, *_: Any, **__: Any) -> None:
            calls.append("log")
            raise ConnectionError("the service is away\nand more")

    monkeypatch.setitem(sys.modules, "wandb", type("wandb", (), {"init": staticmethod(lambda **_: Away())}))
    told: list[str] = []
    sink = sinks.open_sink("wandb:project", "run1", {}, told.append)
    sink.record(TRAIN)
    sink.record(TRAIN)
    sink.close()
    assert calls == ["log"]
    assert told == ["wandb failed and gets nothing more; metrics.jsonl has it all. It said: the service is away"]

    def refuse(**_: Any) -> None:
        raise RuntimeError("not logged in")

    monkeypatch.setitem(sys.modules, "wandb", type("wandb", (), {"init": staticmethod(refuse)}))
    with pytest.raises(DeepwideError, match=r"wandb cannot be opened\. It said: not logged in"):
        sinks.open_sink("wandb:project", "run1", {})


def test_compiling_pays_only_for_runs_long_enough() -> None:
    trial = Trial(plain=0.010, compiled=0.006, compiling=30.0)
    assert not trial.pays(1000)
    assert trial.pays(10_000)
    assert not Trial(plain=0.010, compiled=0.011, compiling=0.0).pays(10**9)


def test_configs_and_plans_of_runs_do_not_load_torch() -> None:
    code = (
        "import sys; from deepwide.training import resolve, data_fingerprint; from deepwide.model import Architecture;"
        "resolve({'model': {'depth': 2, 'width': 64}, 'steps': 5}); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
