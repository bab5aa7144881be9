"""A machine as one short law per phase: seconds = per_byte·bytes + per_flop·FLOPs + per_layer·layers + constant."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepwide.answers import Z95, Answer, Interval
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.files import read_json, write_text
from deepwide.shape import Shape
from deepwide.timing.work import Phase, Work, work

FORMAT = "deepwide machine 1"
LARGEST_BYTES = 8 << 20


@dataclass(frozen=True)
class Timing:
    """One measured case: the median over rounds, and what two models say that did not see its shape."""

    phase: Phase
    depth: int
    width: int
    block_params: int
    batch: int
    tokens: int
    bytes: int
    flops: int
    seconds: float
    predicted: float  # by the fit to all other shapes
    roofline: float  # max(bytes / bandwidth, FLOPs / peak), from the measured bandwidth and peak


class PhaseProfile(BaseModel):
    """The law of one phase, in seconds per byte, per FLOP, per layer and per step, and how well it predicts.

    Errors are medians of |predicted / measured − 1| over the shapes left out of the fit; `spread` is the root mean
    square of ln(predicted / measured) there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    per_byte: Interval
    per_flop: Interval
    per_layer: Interval
    constant: Interval
    error: float | None = Field(default=None, ge=0)  # None: not measured here
    roofline_error: float | None = Field(default=None, ge=0)
    spread: float | None = Field(default=None, ge=0)

    @property
    def coefficients(self) -> tuple[float, float, float, float]:
        """Per byte, FLOP, layer and step."""
        return self.per_byte.value, self.per_flop.value, self.per_layer.value, self.constant.value

    def seconds(self, amount: Work) -> float:
        """The time of this much work."""
        a, b, c, constant = self.coefficients
        return a * amount.bytes + b * amount.flops + c * amount.layers + constant


class MachineProfile(Answer):
    """What was measured on a machine, or a preset with its source; `seconds` asks it."""

    name: str
    source: str
    device: str
    threads: int | None = None
    precision: str
    weight_bytes: int = Field(ge=1, le=4)
    rounds: int = 0
    peak_flops: float | None = None
    bytes_per_second: float | None = None
    devices: int = Field(default=1, ge=1)  # that share every layer, by tensor parallelism
    memory_bytes: int | None = Field(default=None, ge=1)  # of each device
    versions: dict[str, str] = Field(default_factory=dict)
    phases: dict[Phase, PhaseProfile]
    timings: tuple[Timing, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.source}"

    __repr__ = __str__

    def seconds(
        self,
        phase: Phase,
        shape: Shape,
        *,
        batch: int = 1,
        tokens: int | None = None,
        stored_bytes: float | None = None,
    ) -> Interval:
        """The time of a training step, a prefill, or one decoded token at `tokens` cached ones (the context).

        Weights stored in `stored_bytes` each are read so, and multiplied in the machine's own precision.

        The interval is 95% by the errors on shapes left out; a preset's is that of its source, if it has one.
        """
        if phase not in self.phases:
            near = did_you_mean(phase, self.phases)
            raise DeepwideError(f"the machine '{self.name}' says nothing about {phase}: {near}")
        law = self.phases[phase]
        amount = work(phase, shape, batch=batch, tokens=tokens, weight_bytes=self.weight_bytes,
                      stored_bytes=stored_bytes)  # fmt: skip
        value, layer = law.seconds(amount), law.per_layer
        if law.spread is None:
            if layer.low is None or layer.high is None:
                return Interval(value)
            return Interval(
                value, *(value + amount.layers * (limit - layer.value) for limit in (layer.low, layer.high))
            )
        factor = math.exp(Z95 * law.spread)
        return Interval(value, value / factor, value * factor)

    def rows(self) -> list[dict[str, Any]]:
        """The measured cases, one row each."""
        return [vars(timing).copy() for timing in self.timings]


def save_machine(profile: MachineProfile, path: str | Path) -> Path:
    """Save a profile as a JSON file that `find_machine` reads."""
    document = {"format": FORMAT, "machine": profile.model_dump(mode="json")}
    return write_text(path, json.dumps(document, indent=1) + "\n")


def load_machine(path: Path) -> MachineProfile:
    """A profile that `save_machine` wrote."""
    document = read_json(path, "a machine profile", most=LARGEST_BYTES)
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a machine profile: it must be an object with "format": "{FORMAT}".')
    try:
        profile = MachineProfile.model_validate(document.get("machine"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "machine"
        raise DeepwideError(f"{path} is not a machine profile: {where}: {first['msg'][:160]}.") from None
    for phase, law in profile.phases.items():
        if not all(0 <= value < math.inf for value in law.coefficients) or not any(law.coefficients):
            raise DeepwideError(f"{path} is not a machine profile: the times of {phase} must not be negative.")
    return profile
