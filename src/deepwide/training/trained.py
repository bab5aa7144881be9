"""`train`: one run from a config to its result, and the answer that it gives."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, needs
from deepwide.run import RunFolder, owner_name
from deepwide.training.config import NUMERICS, RunConfig, data_fingerprint, resolve, stored_config
from deepwide.training.counts import data_notes, run_counts
from deepwide.training.sinks import Sink, check_sink, open_sink

if TYPE_CHECKING:
    from deepwide.model import Transformer

Status = Literal["done", "diverged", "oom", "failed", "stopped"]
NOT_METRICS = {"kind", "step", "loss"}


class TrainedRun(Answer):
    """One training and what came of it; `rows()` is its metrics, one row per record.

    `stopped` means that it was asked to stop, or still runs elsewhere: training it again resumes it. `metrics` are
    those of the last evaluation besides its loss, such as bits_per_byte or accuracy.
    """

    id: str
    path: Path
    status: Status
    why: str | None = None  # it did not end in `done`
    depth: int
    width: int
    block_params: int  # all but embeddings and head
    total_params: int
    step: int
    steps: int
    tokens: int
    train_loss: float | None = None
    validation_loss: float | None = None
    metrics: Mapping[str, float] = {}
    seconds: float | None = None  # of work, over all interruptions
    records: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(cls, folder: RunFolder, notes: Sequence[Note] = ()) -> Self:
        """What a run folder holds."""
        config, result, lease = resolve(folder.config), folder.result() or {}, folder.lease_record() or {}
        counts, records = run_counts(config), folder.metrics()
        evaluated: dict[str, Any] = next((record for record in reversed(records) if record["kind"] == "validation"), {})
        trained: dict[str, Any] = next((record for record in reversed(records) if record["kind"] == "train"), {})
        saved = None if result else folder.latest_checkpoint()
        step = result.get("step", saved.step if saved else 0)
        assert config.context is not None
        return cls(
            id=folder.id,
            path=folder.path,
            status=result.get("status", "stopped"),
            why=result.get("why") or result.get("error"),
            depth=counts.depth,
            width=counts.width,
            block_params=counts.block_params,
            total_params=counts.total_params,
            step=step,
            steps=counts.steps,
            tokens=result.get("tokens", step * config.batch * config.context),
            train_loss=result.get("train_loss", result.get("last_finite_loss", trained.get("loss"))),
            validation_loss=evaluated.get("loss"),
            metrics={name: value for name, value in evaluated.items() if name not in NOT_METRICS},
            seconds=lease.get("worked"),
            records=tuple(records),
            notes=tuple(notes),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Every record of training and evaluation, in order."""
        return [dict(record) for record in self.records]


def train(
    config: RunConfig | Mapping[str, Any],
    *,
    runs: Path | str = "runs",
    device: str = "auto",
    threads: int | None = None,
    log: Sequence[str] = (),
    progress: Callable[[Mapping[str, Any]], None] | None = None,
    report: Callable[[Note], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> TrainedRun:
    """Train the run that a config describes in its folder under `runs`; resume it if it has begun.

    A run that is finished is not trained again. `progress` gets every step's record; `report` gets notes as they arise,
    which the answer holds too; when `stop` returns True, the run saves a checkpoint and returns. `log` names other
    places to record to, such as tensorboard:logs. Under torchrun every process calls this, and the first one writes.
    """
    needs("torch", "train")
    needs("safetensors", "train")
    run = resolve(config)
    for asked in log:
        check_sink(asked)
    folder = make_folder(run, runs)
    notes: list[Note] = []

    def tell(note: Note) -> None:
        notes.append(note)
        if report is not None:
            report(note)

    if folder.result() is None:
        _work(run, folder, device, threads, log, progress, tell, stop or (lambda: False))
    elif log:
        tell(Note.of("already_finished", f"the run is already finished, so nothing is recorded to {', '.join(log)}."))
    return TrainedRun.of(folder, notes)


def trained_model(folder: RunFolder | Path | str, step: int | None = None) -> "Transformer":
    """The network of a run with the weights of its last checkpoint, or of a step's, ready to be evaluated.

    Step 0 is the network before training. `keep_checkpoints` says how many steps a run keeps.
    """
    needs("torch", "train")
    import torch

    from deepwide.model import Transformer

    here = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    config = resolve(here.config)
    model = Transformer(config.architecture, config.seed)
    if step == 0:
        return model.eval()
    saved = here.latest_checkpoint() if step is None else here.checkpoint_at(step)
    if saved is None:
        raise DeepwideError(f"{here.path} has no checkpoint yet: train the run first.")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(saved.tensors[f"model.{name}"])
    return model.eval()


def make_folder(run: RunConfig, runs: Path | str) -> RunFolder:
    """The folder of a resolved run, made if there is none."""
    return RunFolder.create(
        Path(runs),
        stored_config(run),
        data_fingerprint=data_fingerprint(run),
        numerics=NUMERICS,
        counts=run_counts(run)._asdict(),
    )


def _work(
    run: RunConfig,
    folder: RunFolder,
    device: str,
    threads: int | None,
    log: Sequence[str],
    progress: Callable[[Mapping[str, Any]], None] | None,
    tell: Callable[[Note], None],
    stop: Callable[[], bool],
) -> None:
    from deepwide.training.loop import continue_run

    if int(os.environ.get("RANK", "0")) > 0:
        continue_run(folder, None, device=device, threads=threads, stop=stop)
        return
    with ExitStack() as stack:
        lease = stack.enter_context(folder.lease(owner_name()))
        for note in data_notes(run):
            tell(note)

        def sink_failed(sentence: str) -> None:
            tell(Note.of("sink_failed", sentence))

        sinks: list[Sink] = []
        for asked in log:
            sinks.append(open_sink(asked, folder.id, folder.config, sink_failed))
            stack.callback(sinks[-1].close)

        def record(entry: Mapping[str, Any]) -> None:
            if progress is not None:
                progress(entry)
            for sink in sinks:
                sink.record(entry)

        continue_run(folder, lease, device=device, threads=threads, progress=record, stop=stop)
