"""Run, fit, design, again and again, until the interval or the budget is reached.

The only state is a folder: `design-001.toml`, `design-002.toml`, … beside the run folders of their cells. A file is
written once, whole, and never changed; what it says follows from the results of those before it. So a process that is
killed anywhere is repeated to resume: it finishes the cells of the last file and designs the next.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deepwide.answers import Note
from deepwide.designing.answer import Design, Stage, spec_text
from deepwide.designing.candidates import Choice, candidates
from deepwide.designing.design import Request, SpecLike, Spent, design_next
from deepwide.errors import DeepwideError
from deepwide.files import make_folder, write_file
from deepwide.fitting import Goal, Runs, read_runs
from deepwide.run import has_result, read_lease
from deepwide.sweeping import Cell, Spec, SweepState, as_spec, cells_of, read_spec, runs_folder, sweep


def run_designs(
    base: SpecLike,
    runs: Sequence[Path | str] = (),
    *,
    target: str | float,
    budget: str | float,
    goal: Goal = "depth",
    sizes: Choice | None = None,
    depths: Choice | None = None,
    tokens: Choice | None = None,
    length: str | float | None = None,
    noise: str | float | None = None,
    until: float | None = None,
    batch: int = 4,
    threads: int = 1,
    folder: Path | str | None = None,
    rehearse: int = 20,
    report: Callable[[Design], None] | None = None,
    progress: Callable[[SweepState], None] | None = None,
    stop: Callable[[], bool] | None = None,
    **executing: Any,
) -> Design:
    """Alternate running, fitting and designing in a folder; returns the last design, which says why it stopped.

    Takes what `sweep_design` takes; `runs` are files and folders of runs besides the folder's own. `report` is called
    with each design before its first batch runs, `progress` with the state of the batch that runs; `executing` goes to
    `sweep` (on, processes, gpus, device). Call it again to resume.
    """
    spec = as_spec(base)
    request = Request.of(target, goal, budget, until, batch, length, noise)
    home = runs_folder(spec, folder)
    make_folder(home)
    options = candidates(spec, sizes=sizes, depths=depths, tokens=tokens, runs=home, threads=threads)
    stages: list[Stage] = []
    done: list[Spec] = []
    while True:
        earlier = [cell for each in done for cell in cells_of(each)]
        path = home / f"design-{len(done) + 1:03d}.toml"
        design = design_next(
            spec,
            _finished(runs, home, [cell.id for cell in earlier]),
            request,
            options,
            spent=_spent(earlier, home),
            before=stages,
            taken=_seeds(earlier),
            rehearse=0 if path.exists() else rehearse,
        )
        if report and not path.exists():
            report(design)
        if not path.exists():
            if design.stop:
                return design
            write_file(path, spec_text(design).encode())
        part = _written(path, spec)
        state = sweep(part, runs=home, threads=threads, progress=progress, stop=stop, **executing)
        if note := _trouble(state, path):
            return design.model_copy(update={"stop": note})
        done.append(part)
        stages.append(design.now)


def _written(path: Path, base: Spec) -> Spec:
    """The spec of a batch, which must be of the same base."""
    part = read_spec(path)
    if (part.run, part.grid) != (base.run, base.grid):
        raise DeepwideError(
            f"{path} was written for a base sweep with other settings: name another folder for this one, or put the "
            "settings back."
        )
    return part


def _finished(runs: Sequence[Path | str], home: Path, ids: Sequence[str]) -> Runs | None:
    """The runs that were given and those of the batches so far."""
    own = [home / name for name in ids if has_result(home / name)]
    sources = [*(path for path in runs if Path(path).absolute() != home), *own]
    return read_runs(sources) if sources else None


def _seeds(cells: Sequence[Cell]) -> dict[tuple[int, int, int], set[int]]:
    seeds: dict[tuple[int, int, int], set[int]] = {}
    for cell in cells:
        seeds.setdefault((cell.cost.depth, cell.cost.width, cell.cost.tokens), set()).add(cell.seed)
    return seeds


def _spent(cells: Sequence[Cell], home: Path) -> Spent:
    """By the batches so far: FLOPs as counted, seconds as worked."""
    seconds = sum((read_lease(home / cell.id) or {}).get("worked", 0.0) for cell in cells)
    return Spent(len(cells), sum(cell.cost.train_flops for cell in cells), float(seconds))


def _trouble(state: SweepState, path: Path) -> Note | None:
    """Why the batch cannot be left behind."""
    for code in ("disk_full", "unreadable", "blocked", "stopped"):
        if note := state.note(code):
            return note
    if state.failed:
        bad = sum(state.counts.get(name, 0) for name in ("failed", "oom"))
        return Note.of("failed", f"{bad} runs of {path.name} failed: retry them, then start again to go on", runs=bad)
    return None
