"""The answer: which runs to do, batch by batch, and what interval to expect for how much."""

import json
from pathlib import Path
from typing import Any

from deepwide.answers import Answer, Interval, Note
from deepwide.errors import DeepwideError
from deepwide.files import write_text
from deepwide.fitting import Goal
from deepwide.laws import without_limit
from deepwide.quantities import plural, show_count, show_seconds

FEW_SWEEPS = 10  # made up: fewer show no spread
WORTHLESS = 1000.0  # high/low that says nothing
HEAD = "# Chosen for the "  # how a batch that was written begins


class DesignedRun(Answer):
    """One shape to train with one seed; with a grid in the base sweep, once for each of its points."""

    batch: int  # 1 is next
    size: int  # as asked for
    depth: int
    width: int
    block_params: int
    total_params: int
    tokens: int
    seed: int
    train_flops: int
    expected_seconds: float  # on one worker of this machine
    cells: int = 1  # points of the base's grid


class Stage(Answer):
    """The target's 95% interval at one moment: what the runs say, or what is expected after a batch."""

    batch: int  # 0: before any of these runs
    runs: int  # of the batches so far
    train_flops: int  # spent by then
    expected_seconds: float  # of work by then, on one worker
    ratio: float  # high/low of the interval
    interval: Interval | None  # where one can be stated
    expected: bool  # of runs that are to be done; else stated by what has been run


class Rehearsal(Answer):
    """So many made-up sweeps, how many ended with an interval, and its high/low: the median, and the middle 80%.

    A sweep that ended with none counts as one without end: None where that is reached.
    """

    sweeps: int
    stated: int
    ratio: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        made_up = plural(self.sweeps, "made-up sweep")
        if not self.stated:
            return f"no interval in any of {made_up}"
        stated = f"an interval in {self.stated} of {made_up}"
        if self.sweeps < FEW_SWEEPS:
            return stated
        low, middle, high = ("none" if end is None else f"{end:.2g}" for end in (self.low, self.ratio, self.high))
        return f"{stated}, high/low {middle} in the middle of all (80%: {low} to {high})"

    __repr__ = __str__


class Design(Answer):
    """Which runs to do next for a target, and what to expect of them."""

    name: str
    goal: Goal  # what is to be known at the target's size: its best depth, or the loss there
    target_params: float
    target_tokens: float | None = None  # where runs may have several lengths
    budget: float
    unit: str  # of the budget: FLOPs or seconds
    spent: float  # of it, by batches before
    source: str  # the runs so far
    runs_before: int
    runs: tuple[DesignedRun, ...]
    stages: tuple[Stage, ...]
    frontier: tuple[tuple[float, float], ...]  # of the budget, and high/low that so much should give
    noise: float | None = None  # before any fit: by how much losses of one shape are assumed to differ
    rehearsal: Rehearsal | None = None  # likewise, if asked for: what made-up sweeps of these runs end with
    floor: float  # high/low that no number of runs of what may be run would pass
    stop: Note | None = None  # why no run is chosen
    notes: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()  # of the fit to the runs so far
    spec: dict[str, Any]  # the next batch as a sweep

    @property
    def now(self) -> Stage:
        """The target as it is known now."""
        return [stage for stage in self.stages if not stage.expected][-1]

    @property
    def after(self) -> Stage:
        """The target as it should be known when all runs are done."""
        return self.stages[-1]

    @property
    def next(self) -> tuple[DesignedRun, ...]:
        """The runs of the next batch."""
        return tuple(run for run in self.runs if run.batch == 1)

    def rows(self) -> list[dict[str, Any]]:
        """One row per run."""
        return [run.model_dump(mode="json") for run in self.runs]

    def headline(self) -> str:
        """What is known now, and what to expect for how much."""
        what = "Best depth" if self.goal == "depth" else "Loss at the best depth"
        at = f"{what} at {show_count(self.target_params)}"
        if self.target_tokens is not None:
            at += f" and {show_count(round(self.target_tokens))} tokens"
        now = self.now
        if now.interval is None:
            known = f"{at}: nothing can be stated yet"
            known += f" (assumed before any run: high/low {show_ratio(now.ratio)})" if not self.runs_before else ""
        else:
            known = f"{at}: {_interval(now.interval)} now, high/low {show_ratio(now.ratio)}"
        if not self.runs:
            return f"{known}."
        flops = sum(run.train_flops for run in self.runs)
        after = f"{plural(len(self.runs), 'run')} and {show_count(flops)} FLOPs"
        return f"{known}; expected after {after}: {self.rehearsal or _expected(self.after.ratio)}."

    @property
    def assumed(self) -> str:
        """What the expected intervals rest on until runs can be fitted."""
        if self.noise is None or not self.runs:
            return ""
        return f"if the runs show a best depth and seeds differ by {100 * self.noise:.2g}% of loss"

    def time(self) -> str:
        """How long the runs should take."""
        seconds = sum(run.expected_seconds for run in self.runs)
        return f"Expected time: {show_seconds(seconds)} of one worker on this machine"

    def save_spec(self, path: str | Path) -> Path:
        """Write the next batch as a TOML file that `deepwide.sweep` runs."""
        if Path(path).suffix != ".toml":
            raise DeepwideError(f"{Path(path).name} must end in .toml.")
        if not self.runs:
            raise DeepwideError(f"there is no run to write: {self.stop}." if self.stop else "there is no run to write.")
        return write_text(path, spec_text(self))


def _expected(ratio: float) -> str:
    return f"high/low {show_ratio(ratio)}" if ratio < WORTHLESS else "no interval worth the name"


def spec_text(design: Design) -> str:
    """The next batch as TOML."""
    what = "best depth" if design.goal == "depth" else "loss"
    head = f"{HEAD}{what} at {show_count(design.target_params)}: {plural(len(design.next), 'run')}.\n"
    table = dict(design.spec)
    cells = table.pop("cells")
    run, grid = table.pop("run"), table.pop("grid")
    lines = [f"{_key(key)} = {_toml(value)}" for key, value in table.items()]
    for name, part in (("run", run), ("grid", grid)):
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_toml(value)}" for key, value in part.items())] if part else []
    for cell in cells:
        lines += ["", "[[cells]]", *(f"{_key(key)} = {_toml(value)}" for key, value in cell.items())]
    return head + "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _toml(value: Any) -> str:
    """A plain value as TOML writes it: a JSON string is a TOML string."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def show_ratio(ratio: float) -> str:
    """High/low of an interval, as sentences have it."""
    return f"{ratio:.3g}" if ratio < WORTHLESS else "above 1,000"


def _interval(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3g}"
    return f"{interval.value:.3g} ({interval.low:.3g} to {show_high(interval)})"


def show_high(depth: Interval) -> str:
    """The upper limit of a depth; one that no network has is none."""
    return "no upper limit" if without_limit(depth) else f"{depth.high:.3g}"
