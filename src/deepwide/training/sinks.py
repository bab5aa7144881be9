"""Where records go besides the run's own metrics.jsonl: TensorBoard, Weights & Biases, MLflow, each if installed."""

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

from deepwide.errors import DeepwideError, did_you_mean

NOT_MEASURES = {"kind", "step", "steps", "tokens", "seconds"}


class Sink(Protocol):
    """Takes each record of a run."""

    def record(self, record: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in a folder."""

    def __init__(self, folder: str, name: str, config: Mapping[str, Any]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise _missing("tensorboard") from None
        self.writer: Any = SummaryWriter(f"{folder or 'tensorboard'}/{name}")
        self.writer.add_text("config", f"```\n{dict(config)}\n```")

    def record(self, record: Mapping[str, Any]) -> None:
        for measure, value in _measures(record).items():
            self.writer.add_scalar(measure, value, record["step"])

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases:
    """A run in a project; with WANDB_MODE=offline, on this machine only."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        wandb = _imported("wandb")
        self.run = wandb.init(project=project or "deepwide", id=name, resume="allow", config=dict(config))

    def record(self, record: Mapping[str, Any]) -> None:
        self.run.log(_measures(record), step=record["step"])

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """A run in an experiment."""

    def __init__(self, experiment: str, name: str, config: Mapping[str, Any]) -> None:
        self.mlflow = _imported("mlflow")
        self.mlflow.set_experiment(experiment or "deepwide")
        self.mlflow.start_run(run_name=name)
        self.mlflow.log_dict(dict(config), "config.json")

    def record(self, record: Mapping[str, Any]) -> None:
        self.mlflow.log_metrics(_measures(record), step=record["step"])

    def close(self) -> None:
        self.mlflow.end_run()


SINKS: Mapping[str, Callable[[str, str, Mapping[str, Any]], Sink]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}


def check_sink(asked: str) -> None:
    """Refuse a sink that does not exist or whose library is not here, before any work is done."""
    kind = asked.partition(":")[0]
    if kind not in SINKS:
        raise DeepwideError(f"there is no sink '{kind[:40]}': {did_you_mean(kind, SINKS)}")
    if kind not in sys.modules and find_spec(kind) is None:  # each is named as its library
        raise _missing(kind)


class Careful:
    """A sink whose failure does not end the run: the first is reported, and the sink gets nothing more."""

    def __init__(self, kind: str, sink: Sink, report: Callable[[str], None]) -> None:
        self.kind, self.sink, self.report = kind, sink, report
        self.failed = False

    def record(self, record: Mapping[str, Any]) -> None:
        self._try(lambda: self.sink.record(record))

    def close(self) -> None:
        self._try(self.sink.close)

    def _try(self, act: Callable[[], None]) -> None:
        if self.failed:
            return
        try:
            act()
        except Exception as error:
            self.failed = True
            self.report(f"{self.kind} failed and gets nothing more; metrics.jsonl has it all. Error: {_first(error)}.")


def open_sink(asked: str, name: str, config: Mapping[str, Any], report: Callable[[str], None] = lambda _: None) -> Sink:
    """A sink from `kind` or `kind:where`, such as tensorboard:logs; `report` gets a sentence if it fails later."""
    check_sink(asked)
    kind, _, where = asked.partition(":")
    try:
        return Careful(kind, SINKS[kind](where, name, config), report)
    except DeepwideError:
        raise
    except Exception as error:
        raise DeepwideError(f"{kind} cannot be opened: {_first(error)}.") from None


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")


def _measures(record: Mapping[str, Any]) -> dict[str, float]:
    return {f"{record['kind']}/{name}": value for name, value in record.items() if name not in NOT_MEASURES}


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise _missing(name) from None


def _missing(name: str) -> DeepwideError:
    return DeepwideError(f"the sink '{name}' needs its library: pip install {name}.")
