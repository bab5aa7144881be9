"""How quick a plan is on a machine, and loss against time around it: what a plan with a machine or a limit answers."""

from dataclasses import dataclass

from deepwide.answers import Interval, Note
from deepwide.quantities import show_time


@dataclass(frozen=True)
class SpeedRow:
    """A shape on the frontier: nothing tried is both quicker and expected to have less loss."""

    depth: int
    width: int
    block_params: int
    total_params: int
    loss_percent: Interval  # against the plan without a limit; the interval is that of the depth alone
    decode_seconds: Interval
    tokens_per_second: float  # of all sequences of the batch together
    chosen: bool


@dataclass(frozen=True)
class Speed:
    """How quick the plan is on a machine, what the limit was, and what more or less time would buy."""

    machine: str
    source: str
    batch: int
    cached: int  # tokens of each sequence that a decoded token looks at
    limit_seconds: float | None
    decode_seconds: Interval
    tokens_per_second: float
    train_step_seconds: Interval | None  # of one sequence of the whole context; None: the machine was not measured
    loss_percent: Interval  # against the plan without a limit
    frontier: list[SpeedRow]

    def notes(self) -> list[Note]:
        """What the limit did to the plan, and which machine it is about."""
        at = f"the last token of {self.cached:,}, batch {self.batch}"
        notes = [Note.of("machine", f"decode time is that of {at}, on {self.machine}: {self.source}")]
        if self.loss_percent.value:
            percent, limit = self.loss_percent, show_time(self.limit_seconds or 0.0)
            text = f"the limit of {limit} per token costs {percent.value:+.2f}% of loss against the plan without it"
            notes.insert(0, Note.of("speed-limit", text, limit_seconds=self.limit_seconds, loss_percent=percent.value))
        return notes
