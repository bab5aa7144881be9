"""Sweeps and tables that several tests of fits need."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.answers import Note
from deepwide.fitting import Runs, read_runs, simulate
from deepwide.laws import TransitionLaw
from deepwide.run import RunFolder
from deepwide.sweeping import cells_of, make_spec

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
DEPTHS = (1, 2, 4, 8)
SIZES = list(np.geomspace(1e4, 4e6, 8))
UNEVEN = {1: 0.04, 2: 0.004, 4: 0.002, 8: 0.002}  # noise by depth
TRUTH = (1.8, 400.0, 1500.0, 0.34, 0.36)  # E, A, B, alpha, beta
SHAPE_TRUTH = (0.4, 1.1, -0.2, 6.0, 10.5, 0.25, 0.5, 0.36, 0.5)
SPEC = {"name": "s", "seeds": [0, 1], "run": {"trainer": "toy", "steps": 4}, "grid": {"depth": [1, 2], "width": [4]}}


def sweep(law: TransitionLaw = LAW, **changes: object) -> Runs:
    """A simulated sweep of 4 depths and 8 sizes."""
    settings: dict[str, object] = {"depths": DEPTHS, "sizes": SIZES, "noise": 0.002} | changes
    return simulate(law, **settings)  # type: ignore[arg-type]


def codes(notes: Iterable[Note]) -> list[str]:
    """The codes of notes."""
    return [note.code for note in notes]


def noted(code: str, notes: Iterable[Note]) -> dict[str, Any]:
    """The numbers of the first note of that code."""
    return next(dict(note.data) for note in notes if note.code == code)


def parabolas(crossing: float, sizes: list[float]) -> Runs:
    """Two depths whose curves are exact parabolas and cross at one place: the deeper wins beyond it."""
    x = np.log(np.array(sizes) / crossing)
    shallow, deep = 0.5 - 0.1 * x + 0.01 * x**2, 0.5 - 0.15 * x + 0.01 * x**2
    return Runs.of(
        depth=np.repeat([2, 4], len(sizes)),
        block_params=np.tile(sizes, 2),
        loss=np.exp(np.concatenate([shallow, deep])),
    )


def curved(gap: Callable[[np.ndarray], np.ndarray], noise: float = 0.0005) -> Runs:
    """2 and 4 layers whose gap δ in ln loss, over ln size from −3 to 3, is the given function of x."""
    x = np.tile(np.linspace(-3, 3, 9), 2)
    depth = np.repeat([2, 4], 9)
    loss = np.exp(1 - 0.1 * x + np.where(depth == 2, gap(x), 0.0) + np.random.default_rng(3).normal(0, noise, 18))
    return Runs.of(depth=depth, block_params=1e5 * np.exp(x), loss=loss)


def one_bowl(
    total: Callable[[np.ndarray, np.ndarray], np.ndarray] | None, sizes: Sequence[float] = (1e7, 1e8, 1e9)
) -> Runs:
    """24 shapes with a bowl about 12 layers, and totals as asked for."""
    L, N = (g.ravel() for g in np.meshgrid([3.0, 6.0, 12.0, 24.0, 48.0], sizes))
    width = np.sqrt(N / (12 * L))
    noise = np.random.default_rng(5).normal(0, 0.002, len(L))
    loss = np.exp(1 - 0.1 * np.log(N / 1e8) + 0.02 * np.log(L / 12) ** 2 + noise)
    more: dict[str, Any] = {} if total is None else {"total_params": total(L, width)}
    return Runs.of(depth=L, width=width, block_params=N, loss=loss, **more)


def chinchilla_like(noise: float = 0.0, seed: int = 0, sizes: int = 8, lengths: int = 6, **more: Any) -> Runs:
    N, D = (g.ravel() for g in np.meshgrid(np.geomspace(3e7, 3e9, sizes), np.geomspace(1e9, 1e11, lengths)))
    E, A, B, alpha, beta = TRUTH
    loss = (E + A / N**alpha + B / D**beta) * np.exp(np.random.default_rng(seed).normal(0, noise, len(N)))
    return Runs.of(total_params=N, tokens=D, loss=loss, **more)


def gemstones_like(noise: float = 0.0) -> Runs:
    L, d, T = (g.ravel() for g in np.meshgrid([3, 6, 12, 24, 36, 60], [128, 256, 512, 1024, 2048], [5e9, 3e10, 2e11]))
    P = 15 * L * d**2 + 100608 * d
    c, p = np.array(SHAPE_TRUTH[:5]), np.array(SHAPE_TRUTH[5:])
    loss = np.exp(c[0]) + np.exp(c[1:, None] - p[:, None] * np.log([d, L, P, T])).sum(axis=0)
    loss = loss * np.exp(np.random.default_rng(0).normal(0, noise, len(L)))
    return Runs.of(depth=L, width=d, total_params=P, block_params=15 * L * d**2, tokens=T, loss=loss)


def epoch_points(shared_data: Path) -> Runs:
    path = shared_data / "gemstones" / "data" / "epoch_chinchilla_svg_extracted_data.csv"
    return read_runs(path, {"total_params": "Model Size", "train_flops": "Training FLOP"})


def without_the_five_highest(runs: Runs) -> Runs:
    return runs.select(runs.loss < np.sort(runs.loss)[-5])


def huber_of_ln(values: Any, runs: Runs, delta: float = 1e-3) -> float:
    """The objective of E, A, B, alpha, beta, written a second time."""
    E, A, B, alpha, beta = values
    r = np.log(runs.loss) - np.log(E + A / runs.total_params**alpha + B / runs.tokens**beta)
    return float(np.where(np.abs(r) <= delta, r**2 / 2, delta * (np.abs(r) - delta / 2)).sum())


def write_csv(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def end(folder: RunFolder, status: str, **fields: object) -> None:
    with folder.lease("test") as lease:
        lease.finish(status, **fields)


def make_sweep(home: Path, **endings: dict[str, object]) -> list[RunFolder]:
    """The groups of a sweep with results; on one corpus, unlike the toy's, whose data is its seed."""
    groups = cells_of(make_spec(SPEC))
    folders = [RunFolder.create(home, cell.config, data_fingerprint="corpus", numerics="1") for cell in groups]
    for number, folder in enumerate(folders):
        result = endings.get(f"run{number}", {"status": "done", "validation_loss": 1.0 + number})
        if result:
            end(folder, **result)  # type: ignore[arg-type]
    return folders


def ladder(vocabulary: float) -> Runs:
    """tokens = 20·total, with the truth a constant ratio."""
    draw = np.random.default_rng(7)
    L, N = (c.ravel() for c in np.meshgrid([4.0, 8, 16, 32], np.geomspace(1e7, 1e9, 6)))
    total = N + vocabulary * np.sqrt(N / (12 * L))
    z = np.log(L / (16 * np.cbrt(N / 1e8)))
    loss = (1.7 + 0.9 * (N / 1e8) ** -0.3 + 0.6 * (total / 1e8) ** -0.3) * np.exp(0.02 * z**2)
    return Runs.of(
        depth=L, block_params=N, total_params=total, tokens=20 * total, loss=loss * np.exp(draw.normal(0, 0.003, 24))
    )


def three_lengths(shift: float = 0.3, noise: float = 0.002, falls: float = 0.0) -> Runs:
    """25 shapes, each run for three lengths; the best depth is 12 at 1e8 and 3e9 tokens, and shifts with tokens."""
    L, N, D = (g.ravel() for g in np.meshgrid([3.0, 6, 12, 24, 48], np.geomspace(1e7, 1e9, 5), [1e9, 3e9, 9e9]))
    best = np.log(12) + 0.25 * np.log(N / 1e8) + shift * np.log(D / 3e9)
    mean = np.log(1.7 + 0.9 * (N / 1e8) ** -0.3 + 0.6 * (D / 3e9) ** -0.3) + 0.02 * (np.log(L) - best) ** 2
    own = np.random.default_rng(7).normal(0, noise, len(L)) * (D / 3e9) ** -falls
    return Runs.of(depth=L, block_params=N, tokens=D, loss=np.exp(mean + own))
