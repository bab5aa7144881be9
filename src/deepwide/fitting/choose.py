"""Which rows a fit uses: those asked for, those that ended, and of each shape those at its best learning rate."""

import math
import operator
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.fitting.runs import BLOCK_MATRICES, COLUMNS, SHAPE
from deepwide.fitting.settings import FEW_VALUES, cell_of, length_of, other_columns, sort_of
from deepwide.fitting.words import joined, note

Row = dict[str, Any]
Cell = tuple[Any, ...]
Limit = tuple[str, str, float | str]  # ("depth", "<=", 8), ("optimizer", "!=", "adam")
# Words that other people's tables have for how a run ended.
FINISHED = ("done", "finished", "completed", "complete", "success", "succeeded", "ok")
DIVERGED = ("diverged", "nan", "exploded")
FAILED = ("failed", "oom", "crashed", "killed", "error")
ALONG_A_RUN = ("tokens", "train_flops")  # what grows from checkpoint to checkpoint
NEAR = 0.01  # relative: how close to a value a row must be
SAME_COUNT = 0.01  # relative: parameters of one shape
PRECISE = 0.7  # of the losses have four decimals or more: two seeds never agree in all digits
FEWEST_REPEATED = 4  # cells with several rows, from which these are looked at
APART = 0.01  # of ln loss
UNEXPLAINED = 0.1
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
UNLIKE = "!="
_AS_TOKENS = (
    " Lengths are fitted together if the table has tokens: steps times the tokens of a batch, in a column of that."
)


def within_limits(rows: list[Row], limits: Iterable[Limit]) -> tuple[list[Row], list[Note]]:
    """The rows that obey each limit; a row without the value obeys none but `!=`, which leaves out those that have it.

    A text has no other limit than that.
    """
    notes = []
    for name, sign, value in limits:
        _check_column(name, rows)
        if sign not in (*SIGNS, UNLIKE) or (isinstance(value, str) and sign != UNLIKE):
            allowed = f"{', '.join(SIGNS)} with a number, {UNLIKE} with any value"
            raise DeepwideError(f"there is no limit {quoted(f'{sign} {value}')}: it must be one of {allowed}.")
        chosen = [row for row in rows if _obeys(row, name, sign, value)]
        if not chosen:
            raise DeepwideError(f"no run is left that has {name} {sign} {value}.")
        if len(chosen) < len(rows):
            blank = sign != UNLIKE and any(math.isnan(_number(row, name)) for row in rows)
            notes.append(_left_out(rows, chosen, name, sign, value, blank))
        rows = chosen
    return rows, notes


def _left_out(
    rows: list[Row], chosen: list[Row], name: str, sign: str, value: float | str, blank: bool = False
) -> Note:
    count = len(rows) - len(chosen)
    return note("rows-left-out", count=count, rows=len(rows), name=name, sign=sign, value=value, blank=blank)


def _obeys(row: Row, name: str, sign: str, value: float | str) -> bool:
    if isinstance(value, str):
        return str(row.get(name, "")).lower() != value.lower()
    if sign == UNLIKE:
        return not math.isclose(_number(row, name), value)
    return bool(SIGNS[sign](_number(row, name), value))


def _number(row: Row, name: str) -> float:
    value = row.get(name, math.nan)
    return math.nan if isinstance(value, str) else float(value)


def near_values(rows: list[Row], where: Mapping[str, float | str]) -> tuple[list[Row], list[Note]]:
    """The rows within 1% of each value; for what grows along a run, of each run only its nearest row.

    A text chooses the rows that have it, in any case of its letters.
    """
    notes = []
    for name, value in where.items():
        _check_column(name, rows)
        if isinstance(value, str):
            values = [str(row.get(name, "")) for row in rows]
            chosen = [row for row, text in zip(rows, values, strict=True) if text.lower() == value.lower()]
            if not chosen:
                raise DeepwideError(f"no run has {name} {quoted(value)}: {did_you_mean(value, dict.fromkeys(values))}")
        else:
            chosen = _near(rows, name, value)
        if len(chosen) < len(rows):
            notes.append(_left_out(rows, chosen, name, "nearest" if name in ALONG_A_RUN else "=", value))
        rows = chosen
    return rows, notes


def _near(rows: list[Row], name: str, value: float) -> list[Row]:
    def distance(row: Row) -> float:
        return abs(_number(row, name) - value)

    near = [row for row in rows if distance(row) <= NEAR * abs(value) < math.inf]
    if not near:
        raise DeepwideError(f"no run has {name} within 1% of {value:g}.")
    if name not in ALONG_A_RUN:
        return near

    def run(row: Row) -> tuple[Any, ...]:
        return tuple(row.get(other) for other in COLUMNS if other not in (*ALONG_A_RUN, "loss"))

    nearest: dict[tuple[Any, ...], float] = {}
    for row in sorted(near, key=distance):
        nearest.setdefault(run(row), row[name])
    return [row for row in near if row[name] == nearest[run(row)]]  # several, where repeats have no seed to tell them


def with_embeddings(rows: list[Row], embedding_rows: Sequence[float | None]) -> list[Row]:
    """The rows with total parameters: the blocks and so many rows of the width, where these are known."""
    totals = []
    for row, count in zip(rows, embedding_rows, strict=True):
        width = row.get("width", math.nan)
        block = row.get("block_params", BLOCK_MATRICES * row.get("depth", math.nan) * width**2)
        total = math.nan if count is None else block + count * width
        totals.append(row if math.isnan(total) else row | {"total_params": total})
    return totals


def by_embeddings(rows: list[Row], counts: Sequence[float | None]) -> list[Row]:
    """The rows with both counts, of blocks and in total, where one of them and the embeddings are known."""
    both = []
    for row, count in zip(rows, counts, strict=True):
        total, known = row.get("total_params"), row.get("block_params")
        block = known or BLOCK_MATRICES * row.get("depth", math.nan) * row.get("width", math.nan) ** 2
        if count is not None and not total and not math.isnan(block):
            row = row | {"total_params": block + count}
        elif count is not None and total and not known and total > count:
            row = row | {"block_params": total - count}
        both.append(row)
    return both


def without_embeddings(rows: list[Row], embedding_rows: float) -> list[Row]:
    """The rows with block parameters: the total less so many rows of the width."""
    if not all({"total_params", "width"} <= row.keys() for row in rows):
        raise DeepwideError(
            "removing embedding rows needs the columns 'total_params' and 'width' in every row: map them (column "
            "total_params=YOUR_COLUMN)."
        )
    return [row | {"block_params": row["total_params"] - embedding_rows * row["width"]} for row in rows]


def one_count_per_shape(rows: list[Row]) -> tuple[list[Row], list[Note]]:
    """The rows with equal counts where depth and width are equal and counts within 1%: the median of such a shape.

    What norms, biases and rounding add to a count makes no other shape.
    """
    same: dict[str, dict[Cell, dict[float, float]]] = {}
    merged: dict[Cell, float] = {}  # shapes, and by what share their counts differ
    for name in ("block_params", "total_params"):
        shapes: dict[Cell, list[float]] = {}
        for row in rows:
            if "depth" in row and "width" in row and 0 < row.get(name, 0) < math.inf:
                shapes.setdefault((row["depth"], row["width"]), []).append(row[name])
        for shape, counts in shapes.items():
            if min(counts) == max(counts):
                continue
            counts.sort()
            end = 0
            while end < len(counts):
                start, end = end, bisect_right(counts, counts[end] * (1 + SAME_COUNT))
                alike = counts[start:end]
                if alike[0] != alike[-1]:
                    same.setdefault(name, {}).setdefault(shape, {}).update(dict.fromkeys(alike, alike[len(alike) // 2]))
                    merged[shape] = max(merged.get(shape, 0.0), alike[-1] / alike[0] - 1)
    if not merged:
        return rows, []

    def counted(row: Row) -> Row:
        shape = (row.get("depth"), row.get("width"))
        changed = {
            name: at[shape].get(row[name], row[name]) for name, at in same.items() if shape in at and name in row
        }
        return row | changed

    return [counted(row) for row in rows], [note("counts-merged", shapes=len(merged), share=max(merged.values()))]


def without_repeats(rows: list[Row]) -> tuple[list[Row], list[Note]]:
    """The rows without exact copies of others, where the loss is written so precisely that no other seed has it.

    Copies would count as seeds that do not differ, and the noise would come out too small.
    """
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    once = list({tuple(map(row.get, names)): row for row in rows}.values())
    if len(once) == len(rows):
        return rows, []
    losses = [row["loss"] for row in once if math.isfinite(row.get("loss", math.nan))]
    precise = sum(round(loss, 3) != loss for loss in losses) > PRECISE * len(losses)
    return once if precise else rows, [note("rows-repeated", count=len(rows) - len(once), left_out=precise)]


def one_loss_per_run(rows: list[Row], best_of: Sequence[str] = ()) -> None:
    """Refuse a table in which each run has several losses, as of several validation sets: they are no repeats.

    Rows of one shape, length, rate and seed are told apart by a column that says which loss it is, or by their order.
    Rows without a size say nothing of shapes: that is for the fit to refuse.
    """
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        sized = any(math.isfinite(row.get(name) or math.nan) for name in ("block_params", "total_params", "width"))
        if sized and not row["diverged"] and row["loss"] > 0:
            cells.setdefault((*cell_of(row), *(row.get(name) for name in best_of)), []).append(row)
    repeated = [cell for cell in cells.values() if len(cell) > 1]
    if len(repeated) < max(FEWEST_REPEATED, len(cells) / 2):
        return
    settings = [name for name in other_columns(rows) if name not in best_of and _says_which(repeated, name)]
    for names in [*((name,) for name in settings), tuple(settings)]:
        kinds = [[tuple(row.get(name) for name in names) for row in cell] for cell in repeated]
        if not names or any(len(set(cell)) < len(cell) for cell in kinds):
            continue
        if (apart := _apart(repeated, kinds)) is not None:
            values = list(dict.fromkeys(_shown(value[0]) for cell in kinds for value in cell))
            raise DeepwideError(
                f"each shape has {len({kind for cell in kinds for kind in cell})} losses that differ by "
                f"{joined([name[:40] for name in names])} ({', '.join(values[:4])}), by {apart:.1%}: choose one (where "
                f"{names[0][:40]}={values[0]}), or the best of each shape (best_of {','.join(n[:40] for n in names)})."
                + (_AS_TOKENS if any(sort_of(name) == "length" for name in names) else "")
            )
    if len({len(cell) for cell in repeated}) > 1 or len(repeated) < len(cells):
        return
    if (apart := _apart(repeated, [list(range(len(cell))) for cell in repeated])) is not None:
        raise DeepwideError(
            f"each run has {len(repeated[0])} losses, which differ by {apart:.1%} in the same order at every shape: "
            "keep one row per run, or number the seeds if these are repeats."
        )


def _shown(value: Any) -> str:
    return (f"{value:g}" if isinstance(value, float) else str(value))[:20]


def _says_which(cells: list[list[Row]], name: str) -> bool:
    """Whether a column has few values and differs within cells, as one that says which loss it is."""
    values = [{row.get(name) for row in cell} for cell in cells]
    return len(set().union(*values)) <= FEW_VALUES and any(len(cell) > 1 for cell in values)


def _apart(cells: list[list[Row]], kinds: list[list[Any]]) -> float | None:
    """How far ln losses of different kinds lie apart within cells, if that is nearly all by which they differ."""
    logs = [[math.log(row["loss"]) for row in cell] for cell in cells]
    off = [
        (kind, y - sum(ys) / len(ys))
        for ks, ys in zip(kinds, logs, strict=True)
        for kind, y in zip(ks, ys, strict=True)
    ]
    by_kind: dict[Any, list[float]] = {}
    for kind, value in off:
        by_kind.setdefault(kind, []).append(value)
    means = {kind: sum(values) / len(values) for kind, values in by_kind.items()}
    total = sum(value**2 for _, value in off)
    left = sum((value - means[kind]) ** 2 for kind, value in off)
    gap = max(means.values()) - min(means.values())
    return gap if gap > APART and left < UNEXPLAINED * total else None


def ended(rows: list[Row], source: str) -> tuple[list[Row], list[Note]]:
    """What can be fitted: runs that finished, and those that diverged, whose loss is not a number."""
    usable, failed = [], 0
    unknown: Counter[str] = Counter()
    for row in rows:
        status, loss = row.get("status", "done"), row.get("loss")
        diverged = status in DIVERGED or (status in FINISHED and loss is not None and not loss < math.inf)
        if diverged or (status in FINISHED and loss is not None):
            usable.append(row | {"loss": math.nan if diverged else loss, "diverged": diverged})
        elif status in FINISHED + FAILED:
            failed += 1
        else:
            unknown[" ".join(str(status).split())[:40]] += 1
    notes = [note("runs-failed", count=failed)] if failed else []
    if unknown:
        notes.append(note("status-unknown", count=unknown.total(), words=dict(unknown.most_common(5))))
    if not usable:
        raise DeepwideError(f"{source} has no finished run" + "".join(f": {n}" for n in notes[:1]) + _rest(notes))
    return usable, notes


def _rest(notes: list[Note]) -> str:
    return "".join(f"; {n}" for n in notes[1:]) + "."


def best_settings(rows: list[Row], names: Sequence[str] = ("lr",)) -> tuple[list[Row], list[Note]]:
    """For each shape and length, the runs at its best setting of these columns: of those at which fewest diverged."""
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Row]]] = {}
    for row in rows:
        group = (*(row.get(name) for name in SHAPE), length_of(row))
        groups.setdefault(group, {}).setdefault(tuple(row.get(name) for name in names), []).append(row)
    if all(len(settings) == 1 for settings in groups.values()):
        return rows, []
    varied = [
        name
        for i, name in enumerate(names)
        if any(len({values[i] for values in settings}) > 1 for settings in groups.values())
    ]

    def badness(runs: list[Row]) -> tuple[float, float]:
        losses = [row["loss"] for row in runs if not row["diverged"]]
        return 1 - len(losses) / len(runs), sum(losses) / max(len(losses), 1)

    best = [row for settings in groups.values() for row in min(settings.values(), key=badness)]
    diverged = sum(row["diverged"] for row in rows) - sum(row["diverged"] for row in best)
    left_out = len(rows) - len(best)
    if varied == ["lr"]:
        return best, [note("best-rates", left_out=left_out, diverged=diverged)]
    return best, [note("best-settings", names=varied, left_out=left_out, diverged=diverged)]


def _check_column(name: str, rows: list[Row]) -> None:
    if name == "status" or (name not in COLUMNS and not any(name in row for row in rows)):
        raise DeepwideError(f"there is no column '{name[:60]}' to choose by: {did_you_mean(name, COLUMNS)}")
