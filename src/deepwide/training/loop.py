"""One run, from its last checkpoint to its end.

What happens in a step is a function of config, seed and step: batches are indexed by step, nothing else is random.
So a run that was interrupted, however often, is on a CPU bit for bit the run that was not.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepwide.data.batches import training_batch, validation_batches
from deepwide.data.corpus import Corpus, prepare
from deepwide.errors import DeepwideError
from deepwide.model.transformer import Transformer
from deepwide.training.config import RunConfig
from deepwide.training.hardware import find_device, is_out_of_memory, keep_memory
from deepwide.training.optimiser import Optimiser
from deepwide.training.parallel import World, world
from deepwide.training.schedule import rate

if TYPE_CHECKING:
    from deepwide.run import RunFolder, RunWriter

Progress = Callable[[Mapping[str, Any]], None]
HALVINGS = 5  # of the micro-batch, before a run is declared too large
FAR_ABOVE = 2.0  # times the first loss: diverged


class Diverged(Exception):  # noqa: N818
    """The loss or its gradient is not a number, or the loss is far above where it began; no update was made."""

    def __init__(self, step: int, why: str) -> None:
        super().__init__(why)
        self.step, self.why = step, why


class Stopped(Exception):  # noqa: N818
    """Somebody asked the run to leave; the step that was under way is forgotten."""


class Run:
    """A model in training. It computes; `train` decides what is written when."""

    def __init__(
        self, config: RunConfig, corpus: Corpus, here: World, device: torch.device, stop: Callable[[], bool]
    ) -> None:
        if config.batch % here.size:
            raise DeepwideError(f"a batch of {config.batch} cannot be shared out among {here.size} processes.")
        assert config.steps is not None
        assert config.micro_batch is not None
        self.config, self.corpus, self.here, self.device, self.stop = config, corpus, here, device, stop
        self.steps = config.steps
        self.share = config.batch // here.size
        self.micro = math.gcd(config.micro_batch, self.share)
        self.step, self.first_loss, self.last_loss = 0, 0.0, 0.0
        self.model = Transformer(config.architecture, config.seed).to(device)
        self.optimiser: Optimiser | None = None
        self.compiled: Callable[..., Tensor] = self.model

    def begin(self, tensors: Mapping[str, Tensor] | None, state: Mapping[str, Any]) -> None:
        """Take up a checkpoint if there is one, then lay the model out over the processes."""
        if tensors is not None:
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(tensors[f"model.{name}"])
        self.here.shard(self.model)
        self.optimiser = Optimiser(self.model, self.config.architecture, self.config.optimiser)
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
        return tensors, state | {"micro_batch": self.micro}

    def advance(self) -> dict[str, Any]:
        """One update, and what there is to say about it."""
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
        self.step, self.last_loss = step, loss
        self.first_loss = self.first_loss or loss
        tokens = step * self.config.batch * self.config.context
        lr = self.config.optimiser.lr * share
        return {"kind": "train", "step": step, "tokens": tokens, "loss": loss, "lr": lr, "gradient_norm": float(norm)}

    def evaluate(self) -> dict[str, Any]:
        """The loss on the fixed part of the validation set, in nats per token and bits per byte."""
        e, context = self.config.evaluation, self.config.context
        together = max(1, self.config.micro_batch or 1)
        nats = tokens = text = 0.0
        self.model.eval()
        with torch.no_grad():
            for batch_BT in validation_batches(self.corpus.validation, e.sequences, context, together):
                self._leave_if_asked()
                target_BT = batch_BT[:, 1:]
                loss = self._loss(batch_BT)
                nats += float(loss) * target_BT.numel()
                tokens += target_BT.numel()
                text += float(self.corpus.token_bytes[target_BT.numpy()].sum())
        self.model.train()
        bits = nats / math.log(2) / text if text else math.nan
        return {"kind": "validation", "step": self.step, "loss": nats / tokens, "bits_per_byte": bits}

    def smaller(self) -> bool:
        """Halve the micro-batch; False when it is one sequence already."""
        half = self.micro // 2
        while half and self.share % half:
            half -= 1
        self.micro = half or self.micro
        return bool(half)

    def _gradients(self, step: int) -> float:
        """The gradient of the whole batch, a micro-batch at a time; returns the mean loss."""
        c = self.config
        first = (step - 1) * c.batch + self.here.rank * self.share
        batch_BT = training_batch(self.corpus.train, first, self.share, c.context, c.seed)
        total = torch.zeros((), device=self.device)
        for at in range(0, self.share, self.micro):
            self._leave_if_asked()
            rows_BT = batch_BT[at : at + self.micro]
            loss = self._loss(rows_BT) * (len(rows_BT) / self.share)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return self.here.mean(total)

    def _loss(self, batch_BT: Tensor) -> Tensor:
        batch_BT = batch_BT.to(self.device)
        with self._precision():
            return self.compiled(batch_BT[:, :-1].contiguous(), batch_BT[:, 1:].contiguous())

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.config.precision == "bf16" else nullcontext()

    def _check(self, step: int, loss: float, norm: float) -> None:
        assert self.optimiser is not None
        why = ""
        if not math.isfinite(loss) or not math.isfinite(norm):
            why = f"the {'gradient' if math.isfinite(loss) else 'loss'} of step {step} is not a finite number"
        elif self.first_loss and loss > FAR_ABOVE * self.first_loss:
            first = f"{FAR_ABOVE:g} times the first, {self.first_loss:.4g}"
            why = f"the loss of step {step}, {loss:.4g}, is more than {first}"
        if why:
            self.optimiser.forget()
            raise Diverged(step, why)

    def _leave_if_asked(self) -> None:
        # With several processes all must leave at the same place; `train` asks them between steps.
        if self.here.size == 1 and self.stop():
            raise Stopped


def train(
    folder: "RunFolder",
    lease: "RunWriter | None",
    *,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train the run in `folder` from its last checkpoint on; the lease writes, on the first process alone.

    Returns when the run is over (it has a result then) or was asked to stop (it has a checkpoint to go on from).
    """
    config = RunConfig.of(folder.config)
    if threads:
        torch.set_num_threads(threads)
    where = find_device(device)
    keep_memory()
    with world(where) as here:
        run = Run(config, prepare(config.data, folder.data_fingerprint), here, where, stop)
        kept = folder.latest_checkpoint()
        run.begin(kept.tensors if kept else None, kept.state if kept else {})
        _Writer(run, folder, lease if here.rank == 0 else None, progress, kept.step if kept else None).go()


class _Writer:
    """What is written when: records, checkpoints and the result."""

    def __init__(
        self, run: Run, folder: "RunFolder", lease: "RunWriter | None", progress: Progress | None, saved: int | None
    ) -> None:
        self.run, self.lease, self.progress = run, lease, progress
        self.saved = saved or 0
        # Past the checkpoint everything is computed and written again; what stands up to it is true.
        seen = [record for record in folder.metrics() if saved is not None and record["step"] <= saved]
        self.validation = next((r for r in reversed(seen) if r.get("kind") == "validation"), {"step": -1})
        if lease is not None:
            lease.cut_metrics(-1 if saved is None else saved)
        self.started, self.start_step = time.monotonic(), run.step

    def go(self) -> None:
        run, c = self.run, self.run.config
        assert c.log_every
        assert c.evaluation.every
        assert c.checkpoint_every
        try:
            self._evaluate_if_due()
            while run.step < run.steps:
                if run.here.any(run.stop()):
                    raise Stopped
                record = self._advance()
                if run.step % c.log_every == 0 or run.step in (1, run.steps):
                    self._append(record)
                self._report(record)
                self._evaluate_if_due()
                if run.step % c.checkpoint_every == 0 or run.step == run.steps:
                    self._save()
        except Stopped:
            self._save()
        except Diverged as error:
            last = run.last_loss if run.step else None
            self._finish("diverged", step=error.step, last_finite_loss=last, why=error.why)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            why = f"memory ran out with {run.micro} sequences at a time"
            self._finish("oom", step=run.step + 1, micro_batch=run.micro, why=why)
            if run.here.size > 1:  # the others wait for this one in a collective: end badly, and torchrun ends them
                raise DeepwideError(f"{why}; several processes do not halve it: set a smaller micro_batch.") from None
        else:
            loss, bits = self.validation["loss"], self.validation["bits_per_byte"]
            self._finish("done", step=run.step, train_loss=run.last_loss, validation_loss=loss, bits_per_byte=bits)

    def _advance(self) -> dict[str, Any]:
        """A step, in halves as small as memory asks for, a bounded number of times."""
        for attempt in range(HALVINGS + 1):
            try:
                return self.run.advance()
            except Exception as error:
                if not is_out_of_memory(error) or self.run.here.size > 1:  # halving alone would part the processes
                    raise
                if attempt == HALVINGS or not self.run.smaller():
                    raise
        raise AssertionError

    def _evaluate_if_due(self) -> None:
        run, every = self.run, self.run.config.evaluation.every
        assert every
        if self.validation["step"] < run.step and (run.step % every == 0 or run.step == run.steps):
            self.validation = run.evaluate()
            self._append(self.validation)
            self._report(self.validation)

    def _append(self, record: Mapping[str, Any]) -> None:
        if self.lease is not None:
            self.lease.append(record)

    def _save(self) -> None:
        run = self.run
        if run.step > self.saved:
            tensors, state = run.checkpoint()
            if self.lease is not None:
                self.lease.checkpoint(run.step, tensors, state)
            self.saved = run.step

    def _finish(self, status: str, **fields: Any) -> None:
        s = self.run.config.architecture.shape
        tokens = self.run.step * self.run.config.batch * self.run.config.context
        if self.lease is not None:
            self.lease.finish(status, tokens=tokens, total_params=s.total_params, block_params=s.block_params, **fields)

    def _report(self, record: Mapping[str, Any]) -> None:
        if self.progress is None:
            return
        seconds, done = time.monotonic() - self.started, self.run.step - self.start_step
        speed = done * self.run.config.batch * self.run.config.context / seconds if seconds > 0 else 0.0
        self.progress({**record, "steps": self.run.steps, "seconds": seconds, "tokens_per_second": speed})
