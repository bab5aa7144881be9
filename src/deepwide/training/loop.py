"""One run, from its last checkpoint to its end.

What happens in a step is a function of config, seed and step: batches are indexed by step, nothing else is random.
So a run that was interrupted, however often, is on a CPU bit for bit the run that was not.

`Learner` computes; `_Writer` decides what is written when; `continue_run` puts the two together.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepwide.errors import DeepwideError, OutsideError
from deepwide.model import Transformer, profile
from deepwide.tasks import Batch, Task
from deepwide.training.config import RunConfig, resolve, task_of
from deepwide.training.hardware import find_device, is_out_of_memory, keep_memory
from deepwide.training.optimiser import Optimiser, rate
from deepwide.training.parallel import World, world

if TYPE_CHECKING:
    from deepwide.run import RunFolder, RunWriter
    from deepwide.training.proximal import Autosizer

Progress = Callable[[Mapping[str, Any]], None]
HALVINGS = 5  # of the micro-batch, before a run is declared too large
FAR_ABOVE, AT_LEAST = 2.0, 3.0  # times the first loss, and nats above it: diverged


class Diverged(Exception):  # noqa: N818
    """The loss or its gradient is not a number, or the loss is far above where it began; no update was made."""

    def __init__(self, step: int, why: str) -> None:
        super().__init__(why)
        self.step, self.why = step, why


class Stopped(Exception):  # noqa: N818
    """The run was asked to stop; the step under way is dropped."""


class Learner:
    """A model in training on a task: it takes steps, evaluates, and turns itself into a checkpoint and back."""

    def __init__(
        self, config: RunConfig, task: Task, here: World, device: torch.device, stop: Callable[[], bool]
    ) -> None:
        if config.batch % here.size:
            raise DeepwideError(f"a batch of {config.batch} cannot be divided among {here.size} processes.")
        assert config.steps is not None
        assert config.micro_batch is not None
        self.config, self.task, self.here, self.device, self.stop = config, task, here, device, stop
        self.steps, self.tokens_per_step = config.steps, config.batch * task.context
        self.data: str = getattr(task, "checksum", "")  # of tokens on disk; examples that are computed have none
        self.share = config.batch // here.size
        self.micro = math.gcd(config.micro_batch, self.share)
        self.step, self.first_loss, self.last_loss = 0, 0.0, 0.0
        self.model = Transformer(config.architecture, config.seed).to(device)
        self.optimiser: Optimiser | None = None
        self.autosizer: Autosizer | None = None
        self.compiled: Callable[..., Tensor] = self.model

    def begin(self, tensors: Mapping[str, Tensor] | None, state: Mapping[str, Any]) -> None:
        """Load a checkpoint if there is one, then distribute the model over the processes."""
        if state.get("data", self.data) != self.data:
            raise OutsideError(
                "the stored tokens are not those that this run began with: put them back, or delete its metrics.jsonl "
                "and checkpoints, and it starts over."
            )
        if tensors is None:
            self._profile()
        else:
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(tensors[f"model.{name}"])
        self.here.shard(self.model)
        self.optimiser = Optimiser(self.model, self.config.architecture, self.config.optimiser)
        if self.config.autosize.strength:
            if self.here.size > 1:
                raise DeepwideError("auto-sizing needs whole rows of weights: train in one process.")
            from deepwide.training.proximal import Autosizer

            self.autosizer = Autosizer(self.model, self.config.autosize)
        if tensors is not None:
            self.step, self.first_loss, self.last_loss = int(state["step"]), state["first_loss"], state["last_loss"]
            self.micro = math.gcd(int(state["micro_batch"]), self.share)
            self.optimiser.load(tensors, self.step, self.here.like)
        self.compiled = torch.compile(self.model) if self.config.compile else self.model

    def checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything the rest of the run depends on, whole, whatever the number of processes."""
        assert self.optimiser is not None
        tensors = {f"model.{name}": self.here.whole(p) for name, p in self.model.named_parameters()}
        tensors |= {name: self.here.whole(moment) for name, moment in self.optimiser.tensors()}
        state = {"step": self.step, "first_loss": self.first_loss, "last_loss": self.last_loss}
        return tensors, state | {"micro_batch": self.micro} | ({"data": self.data} if self.data else {})

    def advance(self) -> dict[str, Any]:
        """One update; returns its record."""
        assert self.optimiser is not None
        step = self.step + 1
        try:
            loss = self._gradients(step)
        except BaseException:
            self.optimiser.forget()
            raise
        norm = self.optimiser.gradient_norm()
        self._check(step, loss, float(norm))
        share = rate(self.config.schedule, step, self.steps)
        self.optimiser.step(share, norm)
        if self.autosizer is not None:
            self.autosizer.apply(self.optimiser.rates)
        self.step, self.last_loss = step, loss
        self.first_loss = self.first_loss or loss
        tokens = step * self.tokens_per_step
        lr = self.config.optimiser.lr * share
        return {"kind": "train", "step": step, "tokens": tokens, "loss": loss, "lr": lr, "gradient_norm": float(norm)}

    def evaluate(self) -> dict[str, Any]:
        """The metrics of the task on its evaluation examples, which are always the same."""
        together = max(1, self.config.micro_batch or 1)
        sums: dict[str, float] = {}
        self.model.eval()
        with torch.no_grad():
            for batch in self.task.evaluation(self.config.evaluation.sequences, together):
                self._leave_if_asked()
                here = batch.to(self.device)
                loss, logits = float(self._loss(here)), partial(self._logits, here)
                for name, value in self.task.measure(here, loss, logits).items():
                    sums[name] = sums.get(name, 0.0) + value
        self.model.train()
        return {"kind": "validation", "step": self.step, **self.task.metrics(sums)}

    def smaller(self) -> bool:
        """Halve the micro-batch; False when it is one sequence already."""
        half = self.micro // 2
        while half and self.share % half:
            half -= 1
        self.micro = half or self.micro
        return bool(half)

    def _gradients(self, step: int) -> float:
        """The gradient of the whole batch, a micro-batch at a time; returns the mean loss."""
        first = (step - 1) * self.config.batch + self.here.rank * self.share
        batch = self.task.batch(first, self.share, self.config.seed)
        # Where only some positions count, each answer of the whole batch weighs the same, whoever computes it.
        answers = (
            batch.answers
            if batch.mask_BT is None
            else self.here.mean(torch.tensor(float(batch.answers), device=self.device))
        )
        total = torch.zeros((), device=self.device)
        for start in range(0, self.share, self.micro):
            self._leave_if_asked()
            rows = batch.rows(start, start + self.micro).to(self.device)
            if self.config.dropout:
                share, seed, when = self.config.dropout, self.config.seed, f"{step}/{self.here.rank}"
                self.model.dropout.begin(share, seed, when, first=start, rows=self.share)
            loss = self._loss(rows) * (rows.answers / answers)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return self.here.mean(total)

    def _profile(self) -> None:
        """Set what is measured on data (ADMIN's ω) by the first sequences of the run, the same in all processes."""
        if self.model.design.residual != "admin_profiled":
            return
        assert self.config.micro_batch is not None
        batch = self.task.batch(0, self.config.micro_batch, self.config.seed).to(self.device)
        profile(self.model, batch.tokens_BT, **_without_mask(batch))

    def _loss(self, batch: Batch) -> Tensor:
        smoothing = self.config.label_smoothing if self.model.training else 0.0  # what is reported is never smoothed
        smoothed = {"smoothing": smoothing} if smoothing else {}
        with self._precision():
            return self.compiled(batch.tokens_BT, batch.targets, **batch.inputs, **smoothed)

    def _logits(self, batch: Batch) -> Tensor:
        with self._precision():
            logits: Tensor = self.model(batch.tokens_BT, **_without_mask(batch))
        return logits

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.config.precision == "bf16" else nullcontext()

    def _check(self, step: int, loss: float, norm: float) -> None:
        assert self.optimiser is not None
        why = ""
        if not math.isfinite(loss) or not math.isfinite(norm):
            why = f"the {'gradient' if math.isfinite(loss) else 'loss'} of step {step} is not a finite number"
        elif self.first_loss and loss > max(FAR_ABOVE * self.first_loss, self.first_loss + AT_LEAST):
            why = f"the loss of step {step}, {loss:.4g}, is far above the first, {self.first_loss:.4g}"
        if why:
            self.optimiser.forget()
            raise Diverged(step, why)

    def _leave_if_asked(self) -> None:
        # With several processes all must leave at the same place; the writer asks them between steps.
        if self.here.size == 1 and self.stop():
            raise Stopped


def _without_mask(batch: Batch) -> dict[str, Tensor]:
    """What a forward pass without targets takes."""
    return {name: tensor for name, tensor in batch.inputs.items() if name != "mask_BT"}


def continue_run(
    folder: "RunFolder",
    lease: "RunWriter | None",
    *,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train the run in `folder` from its last checkpoint on; the lease writes, on the first process alone.

    Returns when the run is finished (it has a result then) or was asked to stop (it has a checkpoint to resume from).
    """
    config = resolve(folder.config)
    if threads:
        torch.set_num_threads(threads)
    where = find_device(device)
    keep_memory()
    with world(where) as here:
        learner = Learner(config, task_of(config, folder.data_fingerprint), here, where, stop)
        saved = folder.latest_checkpoint()
        learner.begin(saved.tensors if saved else None, saved.state if saved else {})
        _Writer(learner, folder, lease if here.rank == 0 else None, progress, saved.step if saved else None).go()


class _Writer:
    """What is written when: records, checkpoints and the result."""

    def __init__(
        self,
        learner: Learner,
        folder: "RunFolder",
        lease: "RunWriter | None",
        progress: Progress | None,
        saved: int | None,
    ) -> None:
        self.learner, self.lease, self.progress = learner, lease, progress
        self.saved = saved or 0
        # Past the checkpoint everything is computed and written again; what stands up to it is true.
        self.validation: dict[str, Any] = {"step": -1}
        for record in folder.records():
            if saved is not None and record["step"] <= saved and record.get("kind") == "validation":
                self.validation = record
        if lease is not None:
            lease.cut_metrics(-1 if saved is None else saved)
        self.started, self.start_step = time.monotonic(), learner.step

    def go(self) -> None:
        learner, c = self.learner, self.learner.config
        assert c.log_every
        assert c.evaluation.every
        assert c.checkpoint_every
        try:
            self._evaluate_if_due()
            while learner.step < learner.steps:
                if learner.here.any(learner.stop()):
                    raise Stopped
                record = self._advance()
                if learner.step % c.log_every == 0 or learner.step in (1, learner.steps):
                    self._append(record)
                self._report(record)
                self._evaluate_if_due()
                if learner.step % c.checkpoint_every == 0 or learner.step == learner.steps:
                    self._save()
        except Stopped:
            self._save()
        except Diverged as error:
            last = learner.last_loss if learner.step else None
            self._finish("diverged", step=error.step, last_finite_loss=last, why=error.why)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            why = f"memory ran out with {learner.micro} sequences at a time"
            self._finish("oom", step=learner.step + 1, micro_batch=learner.micro, why=why)
            if learner.here.size > 1:  # the others wait for this one in a collective: end badly, and torchrun ends them
                raise DeepwideError(f"{why}; several processes do not halve it: set a smaller micro_batch.") from None
        else:
            metrics = {name: value for name, value in self.validation.items() if name not in ("kind", "step")}
            metrics["validation_loss"] = metrics.pop("loss")
            self._finish("done", step=learner.step, train_loss=learner.last_loss, **metrics)

    def _advance(self) -> dict[str, Any]:
        """A step, in halves as small as memory asks for, a bounded number of times."""
        for attempt in range(HALVINGS + 1):
            try:
                return self.learner.advance()
            except Exception as error:
                if not is_out_of_memory(error) or self.learner.here.size > 1:  # halving in one process would part them
                    raise
                if attempt == HALVINGS or not self.learner.smaller():
                    raise
        raise AssertionError

    def _evaluate_if_due(self) -> None:
        learner, every = self.learner, self.learner.config.evaluation.every
        assert every
        if self.validation["step"] < learner.step and (learner.step % every == 0 or learner.step == learner.steps):
            self.validation = learner.evaluate()
            self._append(self.validation)
            self._report(self.validation)

    def _append(self, record: Mapping[str, Any]) -> None:
        if self.lease is not None:
            self.lease.append(record)

    def _save(self) -> None:
        learner = self.learner
        if learner.step > self.saved:
            tensors, state = learner.checkpoint()
            if self.lease is not None:
                self.lease.checkpoint(learner.step, tensors, state, learner.config.keep_checkpoints)
            self.saved = learner.step

    def _finish(self, status: str, **fields: Any) -> None:
        s = self.learner.model.design.shape
        tokens = self.learner.step * self.learner.tokens_per_step
        if self.lease is not None:
            self.lease.finish(
                status,
                self.learner.config.keep_checkpoints,
                tokens=tokens,
                total_params=s.total_params,
                block_params=s.block_params,
                **fields,
            )

    def _report(self, record: Mapping[str, Any]) -> None:
        if self.progress is None:
            return
        seconds, done = time.monotonic() - self.started, self.learner.step - self.start_step
        speed = done * self.learner.tokens_per_step / seconds if seconds > 0 else 0.0
        self.progress({**record, "steps": self.learner.steps, "seconds": seconds, "tokens_per_second": speed})
