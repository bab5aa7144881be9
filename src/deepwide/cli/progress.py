"""What a person sees during a run: a bar in a terminal, a line every ten seconds in a file."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from deepwide.quantities import show_count


class Bar:
    """Loss, tokens per second, share of the machine's peak, time left."""

    def __init__(self, steps: int, train_flops_per_token: float, peak: float, console: Console) -> None:
        self.flops, self.peak, self.console = train_flops_per_token, peak, console
        self.loss = self.validation = ""
        self.validated = 0  # the step that the validation is of
        self.next_line = 0.0
        self.progress = Progress(
            TextColumn("step {task.completed}/{task.total}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("", total=steps)

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Take one record of the loop."""
        if record["kind"] == "validation":
            self.validation = f", validation {record['loss']:.4f}{_others(record)}"
            self.validated = record["step"]
        else:
            self.loss = f"loss {record['loss']:.4f}"
        speed = record["tokens_per_second"]
        share = f", {speed * self.flops / self.peak:.0%} of peak" if self.peak and speed else ""
        rate = f", {show_count(speed)} tokens/s{share}" if speed else ""
        at = f" at step {self.validated}" if self.validation and self.validated != record["step"] else ""
        words = f"{self.loss}{self.validation}{at}{rate}"
        self.progress.update(self.task, completed=record["step"], description=words)
        if not self.console.is_terminal and record["seconds"] >= self.next_line:
            line = f"step {record['step']}/{record['steps']}: {words.removeprefix(', ')}"
            self.console.print(line, soft_wrap=True)
            self.next_line = record["seconds"] + 10


def _others(record: Mapping[str, Any]) -> str:
    """The task's metrics besides the loss."""
    if "bits_per_byte" in record:
        return f" ({record['bits_per_byte']:.3f} bits/byte)"
    return f" (accuracy {record['accuracy']:.3f})" if "accuracy" in record else ""
