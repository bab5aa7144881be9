"""Columns of somebody's table that are none of ours: which are settings of a run, and between which runs these differ.

A setting is chosen before a run (batch, warm-up, optimizer), an outcome is measured (time, memory, accuracy), and a
label says which run it is. The name decides first; where it says nothing, values do: those of a setting recur.
"""

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal

from deepwide.answers import Note
from deepwide.fitting.columns import BLANK, meaning, split_name
from deepwide.fitting.runs import BLOCK_MATRICES, COLUMNS, SHAPE
from deepwide.fitting.words import note

Row = dict[str, Any]
Cell = tuple[Any, ...]
Sort = Literal["setting", "length", "unknown", "other"]
FEW_VALUES = 8  # of a setting that nothing but its values shows to be one
GLANCE = 1000  # rows that show whether a column has more values than that
RECURS = 2  # rows per value, from which more values than these are a setting's

_METRICS = {
    "loss", "losses", "ppl", "perplexity", "bpb", "bpc", "bpd", "nll", "xent", "entropy", "acc", "accuracy", "error",
    "err", "stderr", "score", "scores", "metric", "metrics", "auc", "mrr", "recall", "bleu", "rouge", "reward", "eval",
    "evaluation", "val", "valid", "validation", "test", "heldout", "hellaswag", "piqa", "mmlu", "arc", "winogrande",
    "boolq", "lambada", "openbookqa", "obqa", "copa", "sciq", "race", "triviaqa", "squad", "wikitext", "glue",
}  # fmt: skip
_LOGGED = {"summary", "history", "metrics"}  # folders of what a tracker recorded during a run
_TIMES = {
    "time", "times", "timestamp", "date", "datetime", "day", "days", "hour", "hours", "hrs", "minutes", "seconds",
    "second", "sec", "secs", "s", "ms", "runtime", "walltime", "wall", "clock", "duration", "elapsed", "eta", "created",
    "started", "finished", "ended", "updated", "throughput", "speed", "tps", "mfu", "hfu", "util", "utilization",
    "utilisation", "tflop", "tflops", "seed", "seeds",
}  # fmt: skip
_LABELS = {
    "name", "id", "ids", "uid", "uuid", "hash", "sha", "commit", "git", "path", "dir", "directory", "folder", "file",
    "filename", "url", "uri", "link", "tag", "tags", "note", "notes", "comment", "comments", "description", "label",
    "labels", "group", "run", "runs", "job", "slurm", "user", "author", "project", "entity", "experiment", "exp",
    "host", "hostname", "version", "index", "idx", "unnamed", "trial", "trials", "try", "tries", "repeat", "rep",
    "replicate", "replica", "fold", "log", "logs", "logger", "memory", "mem", "vram", "gpu", "gpus", "tpu", "tpus",
    "cpu", "cpus", "device", "devices", "node", "nodes", "processes", "workers", "cost", "price", "usd", "power",
    "energy", "kwh",
}  # fmt: skip
_SETTINGS = {
    "batch", "batchsize", "bs", "bsz", "gbs", "mbs", "lr", "schedule", "scheduler", "warmup", "cooldown", "decay", "wd",
    "anneal", "annealing", "optimizer", "optimiser", "optim", "opt", "momentum", "beta", "betas", "eps", "epsilon",
    "dropout", "clip", "clipping", "accum", "accumulation", "init", "initialization", "initialisation", "norm",
    "layernorm", "rmsnorm", "activation", "precision", "dtype", "dataset", "datasets", "corpus", "mixture", "tokenizer",
    "tokeniser", "context", "ctx", "seqlen", "ema", "smoothing", "mup", "rope", "bias", "tied",
}  # fmt: skip
_PHRASES = ({"learning", "rate"}, {"seq", "len"}, {"seq", "length"}, {"sequence", "length"}, {"block", "size"})
_NORM_OF = {"grad", "gradient", "gradients", "param", "params", "update", "weight", "weights", "activation"}
_LENGTHS = {
    "step", "steps", "iter", "iters", "iteration", "iterations", "epoch", "epochs", "tokens", "token", "toks",
    "samples", "sequences", "examples", "updates", "checkpoint", "ckpt",
}  # fmt: skip
_COMPUTE = {"flop", "flops", "gflops", "pflops", "eflops", "zflops", "compute"}
_NOT_A_LENGTH = {"per", "every", "interval", "freq", "frequency", "start", "first", "save", "size", "type"}
_KIND_WORDS = {"name", "type", "class", "kind"}


@lru_cache(maxsize=4096)
def sort_of(name: str, numeric: bool = True) -> Sort:
    """What a column is, by its name: a setting, how long a run was, something else, or not known.

    >>> [sort_of(name) for name in ("batch_size", "warmup_steps", "global_step", "tokens_per_second", "gpu_mem", "k")]
    ['setting', 'setting', 'length', 'other', 'other', 'unknown']
    """
    parts = [part for part in re.split(r"(?<=\S)[./]+(?=\S)", name) if split_name(part)]
    if not parts:
        return "other"
    every, last = set(split_name(name)), set(split_name(parts[-1]))
    if len(parts) > 1 and last <= _KIND_WORDS:  # optimizer.name
        last |= set(split_name(parts[-2]))
    ours = guess.column if (guess := meaning(name)) else None
    if numeric and (ours in ("tokens", "train_flops") or _is_length(last)):
        return "length" if "total" in last or not every & {"throughput", "speed"} else "other"
    if (numeric and every & _METRICS) or every & _TIMES or every & _LOGGED:
        return "other"
    if ours == "lr":
        return "setting"
    norm_measured = "norm" in last and last & _NORM_OF and not last & {"clip", "max"}
    if ours is not None or norm_measured:
        return "other"
    if last & _SETTINGS or any(phrase <= last for phrase in _PHRASES):
        return "setting"
    return "other" if last & _LABELS else "unknown"


def _is_length(words: set[str]) -> bool:
    if words & (_SETTINGS | _METRICS | _TIMES | _NOT_A_LENGTH):
        return False
    return bool(words & _LENGTHS or (words & _COMPUTE and words <= _COMPUTE | {"budget", "total", "train", "training"}))


def candidates(rows: Sequence[Row], mapped: Sequence[Row], used: Iterable[str]) -> list[str]:
    """Columns that may be settings of these runs, for `differing` and `by_shape` to judge once rows are chosen.

    A table may have many rows and columns, so this looks at cells as they are written.
    """
    used = set(used)
    names = [name for name in dict.fromkeys(chain.from_iterable(rows)) if name not in used]
    cells: list[int] = []
    chosen = []
    for name in names:
        try:
            if sort_of(name) == "other" and len({row.get(name) for row in rows[:GLANCE]}) > FEW_VALUES:
                continue
            values = [row.get(name) for row in rows]
            different = set(values)
        except TypeError:  # a list is no setting
            continue
        if len(different) == 1:
            continue
        sort = sort_of(name, len(different) > FEW_VALUES or _numeric(different))
        if sort == "setting":
            chosen.append(name)
            continue
        if len(different) > FEW_VALUES and not (sort == "length" or (sort == "unknown" and _recurs(different, rows))):
            continue
        cells = cells or _numbered(map(_rough_cell, mapped))
        if max(cells) + 1 < len(rows) and _differ_within(cells, values):
            chosen.append(name)
    return chosen


def _recurs(values: set[Any], rows: Sequence[Row]) -> bool:
    return RECURS * len(values) <= len(rows) and _numeric(values)


def _numeric(values: Iterable[Any]) -> bool:
    """Whether all that is no blank is a number."""
    return all(isinstance(value, int | float) or _is_number(str(value)) for value in values if value is not None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in BLANK
    return True


def length_of(row: Row) -> float | None:
    """How long a run was, in tokens, or in FLOPs that tokens are computed from."""
    return row.get("tokens", row.get("train_flops"))


def cell_of(row: Row) -> Cell:
    """What runs share that differ in nothing we read."""
    return (*map(row.get, (*SHAPE, "lr", "seed")), length_of(row))


def _rough_cell(row: Row) -> Cell:
    """As `cell_of`, without counts where depth and width are known: nearly equal ones become equal later."""
    get = row.get
    depth, width = get("depth"), get("width")
    counts = () if depth and width else (get("block_params"), get("total_params"))
    return depth, width, length_of(row), get("lr"), get("seed"), *counts


def _numbered(cells: Iterable[Cell]) -> list[int]:
    numbers: dict[Cell, int] = {}
    return [numbers.setdefault(cell, len(numbers)) for cell in cells]


def _differ_within(cells: Sequence[Any], values: Sequence[Any]) -> bool:
    return len(set(zip(cells, values, strict=True))) > len(set(cells))


def differing(rows: Sequence[Row], asked: Iterable[str] = (), lengths_ignored: bool = False) -> list[Note]:
    """Notes on settings in which runs of one shape, length, rate and seed differ, and on lengths that nobody reads.

    `asked` are columns that rows were chosen by: one of them that nothing says to be a setting is none.
    """
    names = other_columns(rows)
    cells = _numbered(map(cell_of, rows)) if names else []
    if len(set(cells)) == len(cells):
        return []
    by_sort: dict[Sort, list[str]] = {"setting": [], "length": [], "unknown": []}
    for name in names:
        at = [i for i, row in enumerate(rows) if name in row]
        values = [_value(rows[i][name]) for i in at]
        if not _differ_within([cells[i] for i in at], values):
            continue
        different = set(values)
        sort = sort_of(name, all(isinstance(value, float) or not value for value in different))
        unsure = len(different) == len(rows) or (name in asked and len(different) > FEW_VALUES)
        if sort != "other" and not (sort == "unknown" and unsure):
            by_sort[sort].append(name)
    notes = []
    if by_sort["length"] and not lengths_ignored and not any("tokens" in row for row in rows):
        names = by_sort.pop("length")
        numbers = [row[names[0]] for row in rows if isinstance(row.get(names[0]), float)]
        notes.append(note("lengths-unread", names=names, low=min(numbers), high=max(numbers)))
    names = [name for sort in ("setting", "length", "unknown") for name in by_sort.get(sort, [])]
    return notes + ([note("settings-differ", names=names)] if names else [])


def by_shape(rows: Sequence[Row], best_of: Sequence[str] = ()) -> list[Note]:
    """A note on settings of few values that each shape has one of, unless sizes alone tell which.

    Those of which each shape's best was chosen (`best_of`) are meant to differ.
    """
    settings: dict[str, list[Any]] = {}
    for name in other_columns(rows):
        different = {_value(value) for value in {row.get(name) for row in rows}} - {""}
        numeric = all(isinstance(value, float) for value in different)
        if name in best_of or not 1 < len(different) <= FEW_VALUES or sort_of(name, numeric) != "setting":
            continue
        shapes: dict[Cell, Any] = {}
        values = [_value(row.get(name)) for row in rows]
        cells = (tuple(map(row.get, SHAPE)) for row in rows)
        one_each = all(shapes.setdefault(cell, value) == value for cell, value in zip(cells, values, strict=True))
        if one_each and not _follows_size(rows, values):
            settings[name] = sorted(different) if numeric else sorted(map(str, different))
    return [note("settings-by-shape", settings=settings)] if settings else []


def _follows_size(rows: Sequence[Row], values: Sequence[float | str]) -> bool:
    """Whether runs of one value are all larger than those of the value before, or all smaller."""
    spans: dict[float | str, tuple[float, float]] = {}
    for row, value in zip(rows, values, strict=True):
        size = _size(row)
        if value != "" and not math.isnan(size):
            low, high = spans.get(value, (size, size))
            spans[value] = min(low, size), max(high, size)
    numeric = all(isinstance(value, float) for value in spans)
    order = [spans[value] for value in sorted(spans)] if numeric else sorted(spans.values())
    ways = (order, order[::-1])
    return any(all(a[1] < b[0] for a, b in pairwise(way)) for way in ways)


def _size(row: Row) -> float:
    plain = BLOCK_MATRICES * row.get("depth", math.nan) * row.get("width", math.nan) ** 2
    return float(row.get("block_params") or (row.get("total_params", plain) if math.isnan(plain) else plain))


def other_columns(rows: Sequence[Row]) -> list[str]:
    """Names that are none of ours, in order."""
    return [name for name in dict.fromkeys(chain.from_iterable(rows)) if name not in (*COLUMNS, "diverged")]


def _value(cell: Any) -> float | str:
    """A cell that was carried along; one blank is like another."""
    if isinstance(cell, float):
        return "" if math.isnan(cell) else cell
    return "" if cell is None or str(cell).lower() in BLANK else str(cell)
