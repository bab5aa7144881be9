"""Measuring a machine: every case once per round, the shapes of a round in random order, medians over rounds.

Load that comes and goes then hits all shapes alike. CUDA is written and was never run.
"""

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from deepwide import __version__
from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Decoder, Transformer
from deepwide.quantities import Floats, plural, show_count, show_seconds
from deepwide.shape import Shape
from deepwide.timing.fitting import left_out, median_error, with_intervals
from deepwide.timing.profile import MachineProfile, PhaseProfile, Timing
from deepwide.timing.rounds import Rounds
from deepwide.timing.work import PHASES, Phase, Work, work
from deepwide.training import Optimiser, OptimiserConfig, find_device, keep_memory, peak_flops

# Three sizes of 12.6M to 50M block parameters at equal 12·depth·width², larger than the caches of most processors.
SHAPES = ((1, 1024), (4, 512), (16, 256), (2, 1088), (9, 512), (36, 256), (4, 1024), (16, 512), (64, 256))
VOCAB, CONTEXT = 4096, 512
LEAST_ROUNDS, MOST_ROUNDS = 3, 25
LEAST_SECONDS, DEFAULT_SECONDS = 1.0, 240.0
SHORT = 1.5  # a time is refused if three rounds are expected to take so many times as long
SIMILAR = 0.1  # widths whose logarithms differ by less are timed by one trial
Progress = Callable[[str, float, float], None]  # what is being measured, the share that is done, the seconds left


class Case(NamedTuple):
    """What is timed of every shape."""

    phase: Phase
    batch: int
    tokens: int
    repeats: int = 1


CASES = (
    Case("decode", 1, 32, 3), Case("decode", 1, 480, 3), Case("decode", 4, 256, 3),
    Case("prefill", 1, 128), Case("prefill", 1, 384),
    Case("train", 1, 128), Case("train", 1, 384),
)  # fmt: skip


@dataclass(frozen=True)
class _Bench:
    """One network and the cases that are timed on it."""

    design: Architecture
    model: Transformer
    device: torch.device

    @classmethod
    def of(cls, depth: int, width: int, device: torch.device, kind: torch.dtype) -> "_Bench":
        heads = max(1, width // 64)
        sizes = {"depth": depth, "width": width, "heads": heads, "kv_heads": heads, "vocab": VOCAB, "context": CONTEXT}
        design = Architecture.of("llama", **sizes)
        return cls(design, Transformer(design).to(device=device, dtype=kind), device)

    def time(self, case: Case) -> float:
        """The median seconds of some repeats, after one that is not counted."""
        once = self.prepare(case)
        once()
        seconds = []
        for _ in range(case.repeats):
            start = self._now()
            once()
            seconds.append(self._now() - start)
        return float(np.median(seconds))

    def prepare(self, case: Case) -> Callable[[], object]:
        """What is timed, ready to be called."""
        return {"decode": self._decode, "prefill": self._prefill, "train": self._train}[case.phase](case)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def _tokens(self, batch: int, tokens: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(batch * tokens)
        return torch.randint(VOCAB, (batch, tokens), generator=generator).to(self.device)

    def _decode(self, case: Case) -> Callable[[], object]:
        decoder = Decoder(self.model, case.batch)
        decoder.fill(case.tokens - 1)
        token_B1 = self._tokens(case.batch, 1)

        def once() -> None:
            decoder.read(token_B1)
            decoder.rewind(case.tokens - 1)

        return once

    def _prefill(self, case: Case) -> Callable[[], object]:
        decoder, tokens_BT = Decoder(self.model, case.batch), self._tokens(case.batch, case.tokens)

        def once() -> None:
            decoder.rewind()
            decoder.read(tokens_BT)

        return once

    def _train(self, case: Case) -> Callable[[], object]:
        optimiser = Optimiser(self.model, self.design, OptimiserConfig(lr=1e-6))
        tokens_BT = self._tokens(case.batch, case.tokens)

        def once() -> None:
            self.model(tokens_BT, tokens_BT).backward()
            optimiser.step(1.0, optimiser.gradient_norm())

        return once


def measure_machine(
    *,
    seconds: float | None = None,
    device: str = "auto",
    threads: int | None = None,
    shapes: tuple[tuple[int, int], ...] = SHAPES,
    name: str | None = None,
    progress: Progress | None = None,
    keep: str | Path | None = None,
) -> MachineProfile:
    """Time training steps, prefill and decoding of several depths and widths here, and fit the machine's law.

    Rounds are measured until `seconds` are over, at least three and at most 25: by default for four minutes, or for as
    long as three rounds take. A time that is too short for three is refused after a short trial.
    `progress` hears what is measured, the share that is done and the seconds that are left (NaN before the trial).
    Finished rounds are written to `keep`, and a measurement with the same settings continues with them.
    """
    if seconds is not None and not (isinstance(seconds, int | float) and LEAST_SECONDS <= seconds <= 86_400):
        raise DeepwideError(f"seconds must be from {LEAST_SECONDS:g} to 86,400, not {str(seconds)[:20]}.")
    if threads is not None and not 1 <= threads <= 1024:
        raise DeepwideError(f"threads must be from 1 to 1024, not {threads}.")
    if len(set(shapes)) < 6:
        raise DeepwideError("a machine is measured on at least six shapes: the fit has four coefficients.")
    place, before = find_device(device), torch.get_num_threads()
    kind, weight_bytes = (torch.bfloat16, 2) if place.type == "cuda" else (torch.float32, 4)
    try:
        if threads:
            torch.set_num_threads(threads)
        used = torch.get_num_threads()
        keep_memory()
        settings = {"device": place.type, "threads": used, "shapes": shapes, "cases": CASES, "versions": _versions()}
        rounds = Rounds.of(settings, None if keep is None else Path(keep), (len(shapes), len(CASES)))
        benches = [_Bench.of(depth, width, place, kind) for depth, width in shapes]
        if progress and not rounds.took:
            progress("a short trial, to say how long it will take", 0.0, math.nan)
        expected = _trial(benches) if not rounds.took else np.full(len(benches), np.mean(rounds.took) / len(benches))
        pace = _Pace(seconds, expected, len(rounds.took), sum(rounds.took), progress)
        order = np.random.default_rng(len(rounds.took))
        while pace.has_time:
            began = time.monotonic()
            peak, rate = peak_flops(place, "bf16" if weight_bytes == 2 else "fp32"), read_rate(place)
            measured = np.zeros((len(benches), len(CASES)))
            for index in order.permutation(len(benches)):
                start = pace.begins(f"{shapes[index][0]} × {shapes[index][1]}")
                for column in order.permutation(len(CASES)):
                    measured[index, column] = benches[index].time(CASES[column])
                pace.ends(int(index), time.monotonic() - start)
            rounds.add(measured, time.monotonic() - began, peak, rate)
            pace.next_round(rounds.took[-1])
    finally:
        torch.set_num_threads(before)
    designs = [bench.design.shape for bench in benches]
    times = np.stack(rounds.seconds, axis=-1)
    return _profile(designs, times, rounds.peak, rounds.rate, place, weight_bytes, used, name)


class _Pace:
    """How many rounds there is time for, and how much of it is left."""

    def __init__(
        self, seconds: float | None, expected: Floats, rounds: int, spent: float, progress: Progress | None
    ) -> None:
        self.expected, self.rounds, self.spent, self.progress = expected, rounds, spent, progress
        least = (LEAST_ROUNDS - rounds) * float(expected.sum())
        if seconds is not None and least > SHORT * seconds:
            raise DeepwideError(
                f"{LEAST_ROUNDS - rounds} rounds, the fewest that will do, take about {show_seconds(least)} here: "
                f"allow {math.ceil(least):,} seconds instead of {seconds:g}, or measure when the machine is idle."
            )
        self.seconds = DEFAULT_SECONDS if seconds is None else seconds
        self.now = 0.0  # spent in the round that is being measured
        self.left_in_round = float(expected.sum())
        if rounds:
            self._say(f"continuing after round {rounds}")
        self._say(f"{plural(self.planned - rounds, 'round')} of about {show_seconds(float(expected.sum()))}")

    @property
    def planned(self) -> int:
        """All rounds that there is time for; the last ends at most half a round late."""
        each = float(self.expected.sum())
        more = round((self.seconds - self.spent) / each)
        return max(LEAST_ROUNDS, min(self.rounds + more, MOST_ROUNDS))

    @property
    def has_time(self) -> bool:
        return self.rounds < self.planned

    def begins(self, words: str) -> float:
        """A shape is measured now."""
        self._say(f"round {self.rounds + 1}, {words}")
        return time.monotonic()

    def ends(self, index: int, took: float) -> None:
        """It took this long: so it will in the next round."""
        self.left_in_round -= float(self.expected[index])
        self.expected[index] = took
        self.now += took

    def next_round(self, took: float) -> None:
        """A round is over."""
        self.rounds, self.spent, self.now = self.rounds + 1, self.spent + took, 0.0
        self.left_in_round = float(self.expected.sum())

    def _say(self, words: str) -> None:
        if self.progress is None:
            return
        after = max(0, self.planned - self.rounds - 1) * float(self.expected.sum())
        left, done = max(0.0, self.left_in_round) + after, self.spent + self.now
        self.progress(words, done / (done + left), left)


def _expected(bench: _Bench, phase: Phase) -> float:
    """About how long the cases of a phase take: the shortest measured once, the others by calls and tokens."""
    cases = [case for case in CASES if case.phase == phase]
    shortest = min(cases, key=lambda case: case.batch * case.tokens)
    once = bench.prepare(shortest)
    start = time.monotonic()
    once()
    took = time.monotonic() - start
    grows = [1.0 if phase == "decode" else case.tokens / shortest.tokens for case in cases]
    return took * sum((1 + case.repeats) * factor for case, factor in zip(cases, grows, strict=True))


def _trial(benches: list[_Bench]) -> Floats:
    """About how many seconds each shape takes per round: the smallest of each width measured, the others in proportion.

    Times of one width grow about as depth does.
    """
    sizes = [bench.design.shape.block_params for bench in benches]
    widths = np.log([bench.design.shape.width for bench in benches])
    tried: dict[int, float] = {}
    smallest = np.argsort(sizes, kind="stable")
    for phase in PHASES:  # the first calls of all are slow
        _expected(benches[smallest[0]], phase)
    for index in smallest:
        if all(abs(widths[index] - widths[other]) > SIMILAR for other in tried):
            tried[int(index)] = sum(_expected(benches[index], phase) for phase in PHASES)
    nearest = [min(tried, key=lambda other: abs(widths[index] - widths[other])) for index in range(len(benches))]
    return np.array([tried[other] * sizes[index] / sizes[other] for index, other in enumerate(nearest)])


def read_rate(device: torch.device, megabytes: int = 256, seconds: float = 0.2) -> float:
    """The best measured rate at which a matrix is read for a product with a vector, in bytes per second."""
    side = int((megabytes * 2**18) ** 0.5)
    a, x = torch.ones(side, side, device=device), torch.ones(side, device=device)
    best, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until or not best:
        start = time.perf_counter()
        torch.mv(a, x)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 4 * side * side / (time.perf_counter() - start))
    return best


def memory_of(device: torch.device) -> int | None:
    """The bytes of memory that a device has; None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _profile(
    shapes: list[Shape],
    seconds: Floats,  # shape × case × round
    peak: float,
    rate: float,
    device: torch.device,
    weight_bytes: int,
    threads: int,
    name: str | None,
) -> MachineProfile:
    phases: dict[Phase, PhaseProfile] = {}
    timings: list[Timing] = []
    for phase in PHASES:
        columns = [(j, case) for j, case in enumerate(CASES) if case.phase == phase]
        cases = [(i, shape, j, case) for i, shape in enumerate(shapes) for j, case in columns]
        amounts = [work(phase, s, batch=c.batch, tokens=c.tokens, weight_bytes=weight_bytes) for _, s, _, c in cases]
        by_round = np.array([seconds[i, j] for i, _, j, _ in cases])
        groups = [i for i, *_ in cases]
        law, medians, predicted, roofline = fit_phase(amounts, by_round, groups, peak, rate)
        phases[phase] = law
        for (_, s, _, c), amount, *numbers in zip(cases, amounts, medians, predicted, roofline, strict=True):
            timings.append(
                Timing(phase, s.depth, s.width, s.block_params, c.batch, c.tokens, amount.bytes, amount.flops,
                       *map(float, numbers))
            )  # fmt: skip
    what = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    sizes = [shape.block_params for shape in shapes]
    span = f"{show_count(min(sizes))} to {show_count(max(sizes))} block parameters"
    return MachineProfile(
        name=name or f"{what}, {plural(threads, 'thread')}",
        source=f"measured on {len(shapes)} shapes of {span}, {seconds.shape[-1]} rounds",
        device=device.type,
        threads=threads,
        precision="bf16" if weight_bytes == 2 else "fp32",
        weight_bytes=weight_bytes,
        rounds=seconds.shape[-1],
        peak_flops=peak,
        bytes_per_second=rate,
        memory_bytes=memory_of(device),
        versions=_versions(),
        phases=phases,
        timings=tuple(timings),
    )


def _versions() -> dict[str, str]:
    return {"deepwide": __version__, "torch": str(torch.__version__), "python": platform.python_version()}


def fit_phase(
    amounts: list[Work], by_round: Floats, groups: list[int], peak: float, rate: float
) -> tuple[PhaseProfile, Floats, Floats, Floats]:
    """The law of one phase; the median seconds, those predicted with the shape left out, and the roofline's."""
    features = np.array([[*amount, 1.0] for amount in amounts], dtype=float)
    medians = np.median(by_round, axis=1)
    predicted = left_out(features, medians, groups)
    roofline = np.maximum(features[:, 0] / rate, features[:, 1] / peak)
    per_byte, per_flop, per_layer, constant = with_intervals(features, by_round, groups)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(predicted, 1e-12) / medians)
    law = PhaseProfile(
        per_byte=per_byte,
        per_flop=per_flop,
        per_layer=per_layer,
        constant=constant,
        error=median_error(predicted, medians),
        roofline_error=median_error(roofline, medians),
        spread=float(np.sqrt(np.mean(logs**2))),
    )
    return law, medians, predicted, roofline
