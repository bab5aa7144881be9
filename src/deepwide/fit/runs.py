"""Runs as a table: what every fit reads, whoever made them.

Folders of `deepwide sweep` and `deepwide train`, or a CSV, JSONL or Parquet file of anybody's with its columns mapped.
A run that diverged is kept: its loss is not a number, but that it was bad is an observation (see `bounds`).
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from deepwide.arrays import Floats, Integers, Numbers
from deepwide.errors import DeepwideError, did_you_mean, quoted

Counting = Literal["block", "total"]
COLUMNS = {
    "depth": ("depth", "n_layer", "n_layers", "num_hidden_layers", "layers"),
    "width": ("width", "d_model", "n_embd", "hidden_size"),
    "block_params": ("block_params", "non_embedding_params"),
    "total_params": ("total_params", "params", "n_params"),
    "tokens": ("tokens", "train_tokens"),
    "train_flops": ("train_flops", "flops"),
    "loss": ("loss", "validation_loss", "val_loss", "final_loss"),
    "seed": ("seed",),
    "lr": ("lr", "learning_rate"),
    "status": ("status",),
}
LARGEST_TABLE = 2**28
BLOCK_MATRICES = 12  # a plain block: 4 d² of attention, 8 d² of feed-forward


@dataclass(frozen=True, eq=False)
class Runs:
    """One row a run that is over; what is not known is NaN. A diverged run has a NaN loss and `diverged` set."""

    depth: Floats
    width: Floats
    block_params: Floats
    total_params: Floats
    tokens: Floats
    loss: Floats
    seed: Integers
    diverged: Numbers
    source: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.loss)

    @classmethod
    def of(cls, *, loss: Any, source: str = "", notes: Sequence[str] = (), **columns: Any) -> Self:
        """Runs from columns; block parameters default to 12·depth·width², tokens to train_flops / 6·total_params.

        >>> len(Runs.of(depth=[2, 4], width=[64, 45], loss=[1.5, 1.4]))
        2
        """
        values = np.atleast_1d(np.asarray(loss, dtype=float))
        known = {name: column for name, column in columns.items() if column is not None}
        if unknown := next((name for name in known if name not in (*COLUMNS, "diverged")), None):
            raise DeepwideError(f"runs have no column '{unknown}': {did_you_mean(unknown, COLUMNS)}")

        def column(name: str, default: float = math.nan) -> Floats:
            made = np.asarray(known.get(name, default), dtype=float)
            if made.ndim and made.shape != values.shape:
                raise DeepwideError(f"the column '{name}' has {made.size} values and the loss {values.size}.")
            return np.broadcast_to(made, values.shape).astype(float)

        said = list(notes)
        depth, width, block, total = (column(name) for name in ("depth", "width", "block_params", "total_params"))
        tokens, flops = column("tokens"), column("train_flops")
        if "block_params" not in known and {"depth", "width"} <= known.keys():
            block = BLOCK_MATRICES * depth * width**2
            said.append("block parameters were not given: taken as 12·depth·width²")
        if "tokens" not in known and {"train_flops", "total_params"} <= known.keys():
            tokens = flops / (6 * total)
            said.append("tokens were not given: taken as FLOPs / 6·parameters")
        diverged = column("diverged", 0.0) > 0
        seed = column("seed", 0.0)
        if np.isnan(seed).any():
            raise DeepwideError(
                "some runs have a seed and some have none: map seed to a whole column, or leave it out."
            )
        made = cls(
            depth, width, block, total, tokens, values, seed.astype(np.int64), diverged, str(source), tuple(said)
        )
        made._check()
        return made

    def _check(self) -> None:
        if not len(self):
            raise DeepwideError(f"{self.source or 'the table'} has no run that is over.")
        for name in ("depth", "width", "block_params", "total_params", "tokens", "loss"):
            column = getattr(self, name)
            bad = np.flatnonzero(~np.isnan(column) & ~((column > 0) & np.isfinite(column)))
            if bad.size:
                raise DeepwideError(f"row {bad[0] + 1}: {name} is {column[bad[0]]:g}; it must be a number above 0.")
        lost = np.flatnonzero(np.isnan(self.loss) & ~self.diverged)
        if lost.size:
            raise DeepwideError(
                f"row {lost[0] + 1} has no loss and is not marked as diverged: leave it out, or map a status column "
                "that says 'diverged'."
            )

    def need(self, *names: str) -> None:
        """Refuse to go on without these columns, with how to give them."""
        for name in names:
            if np.isnan(getattr(self, name)).any():
                raise DeepwideError(
                    f"this fit needs the column '{name}', which {self.source or 'the table'} does not have for every "
                    f"run: map it with --column {name}=YOUR_COLUMN."
                )

    def select(self, rows: Any) -> Self:
        """Some of the rows."""
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("source", "notes")}
        return replace(self, **arrays)

    def size(self, counting: Counting = "block") -> Floats:
        """Parameters, of the blocks or in all."""
        self.need(f"{counting}_params")
        return self.block_params if counting == "block" else self.total_params

    @property
    def embedding_share(self) -> Floats:
        """The share of each run's parameters that is outside its blocks; NaN where it is not known."""
        return 1 - self.block_params / self.total_params

    @property
    def cells(self) -> Integers:
        """A number for each run, the same for runs that differ in nothing but the seed."""
        shape = np.column_stack([self.depth, self.width, self.block_params, self.total_params, self.tokens])
        shape = np.nan_to_num(shape, nan=-1.0)
        return np.asarray(np.unique(shape, axis=0, return_inverse=True)[1]).reshape(-1)

    def bounds(self, counting: Counting = "block") -> Floats:
        """What a diverged run is taken to exceed: the worst loss of its own cell's other seeds, or else the worst that
        finished within a factor 1.5 of its size.

        A run that diverged says that its shape does badly at its size under this recipe, not how badly; no number of
        its own can be taken for its loss. NaN for runs that finished.
        """
        log_size = np.log(self.size(counting))
        finished = ~self.diverged
        if not finished.any():
            raise DeepwideError("every run diverged: there is nothing to fit.")
        made = np.full(len(self), np.nan)
        for row in np.flatnonzero(self.diverged):
            sisters = finished & (self.cells == self.cells[row])
            if sisters.any():
                made[row] = np.max(self.loss[sisters])
                continue
            distance = np.where(finished, np.abs(log_size - log_size[row]), np.inf)
            made[row] = np.max(self.loss[distance <= max(math.log(1.5), float(distance.min()))])
        return made


def read_runs(
    paths: str | Path | Iterable[str | Path],
    columns: Mapping[str, str] | None = None,
    *,
    where: Mapping[str, float] | None = None,
    between: Mapping[str, tuple[float, float]] | None = None,
    embedding_rows: float | None = None,
) -> Runs:
    """The runs in sweep folders, run folders or tables (.csv, .jsonl, .parquet); `columns` maps our names to theirs.

    `where` keeps, of each shape, the row nearest to a value and within 1% of it (tokens=1e11: learning curves cut at
    one length); `between` keeps rows strictly between two values. `embedding_rows` gives block parameters to a table of
    totals: rows·width less. Where a shape was trained at several learning rates, its best one is kept, by the mean over
    its seeds.
    """
    sources = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    if not sources:
        raise DeepwideError("give at least one folder of runs or table.")
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for source in sources:
        if source.is_dir():
            rows += _from_folder(source, notes)
        elif source.is_file():
            rows += _from_table(source, columns or {}, notes)
        else:
            raise DeepwideError(f"there is no folder or table {source}.")
    for name, (low, high) in (between or {}).items():
        _check_column(name)
        inside = [row for row in rows if low < row.get(name, math.nan) < high]
        notes.append(f"{len(rows) - len(inside)} rows without {name} between {low:g} and {high:g}: left out as asked")
        if not inside:
            raise DeepwideError(f"no run has {name} between {low:g} and {high:g}.")
        rows = inside
    for name, value in (where or {}).items():
        _check_column(name)
        rows = _nearest(rows, name, value)
    if embedding_rows is not None:
        rows = [_less_embeddings(row, embedding_rows) for row in rows]
        notes.append(f"block parameters are the total less {embedding_rows:g}·width")
    _note_repeats(rows, notes)
    kept = _ended(_best_rates(rows, notes), notes)
    names = [name for name in COLUMNS if name not in ("lr", "status") and any(name in row for row in kept)]
    made: dict[str, list[float]] = {name: [row.get(name, math.nan) for row in kept] for name in names}
    if "loss" not in made:
        made["loss"] = [math.nan] * len(kept)
    named = ", ".join(str(source) for source in sources)
    return Runs.of(**made, diverged=[row["diverged"] for row in kept], source=named, notes=notes)


def _from_folder(folder: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The run folders in a sweep's folder, or the one that this is."""
    from deepwide.run import RunFolder
    from deepwide.sweep.trainers import trainer_of

    found = [folder] if (folder / "config.json").exists() else sorted(p.parent for p in folder.glob("*/config.json"))
    if not found:
        raise DeepwideError(f"{folder} has no run folders: give the folder named by deepwide sweep status.")
    unfinished = 0
    data: dict[str, str] = {}
    for path in found:
        run = RunFolder.open(path)
        data.setdefault(run.data_fingerprint, run.id)
        if len(data) > 1:
            first, second = list(data.values())[:2]
            raise DeepwideError(
                f"{folder} has runs on different data ({first} and {second}), whose losses cannot be compared: fit "
                "each sweep by itself."
            )
        ended = run.result()
        if ended is None:
            unfinished += 1
            continue
        trainer = trainer_of(run.config)
        cost = trainer.cost(run.config)
        row = {name: getattr(cost, name) for name in ("depth", "width", "block_params", "total_params", "tokens")}
        for name in ("seed", "lr"):
            value: Any = run.config
            for step in trainer.keys[name].split("."):
                value = value[step]
            row[name] = value
        loss = ended.get("validation_loss", ended.get("loss"))
        yield row | {"status": ended["status"], **({} if loss is None else {"loss": loss})}
    if unfinished:
        notes.append(f"{unfinished} runs in {folder} are not over: left out")


def _from_table(path: Path, columns: Mapping[str, str], notes: list[str]) -> list[dict[str, Any]]:
    rows = _rows(path)
    if not rows:
        raise DeepwideError(f"{path} has no rows.")
    theirs = list(dict.fromkeys(name for row in rows for name in row))
    for ours, name in columns.items():
        if ours not in COLUMNS:
            raise DeepwideError(f"there is no column '{ours}' to map to: {did_you_mean(ours, COLUMNS)}")
        if name not in theirs:
            raise DeepwideError(f"{path} has no column '{name[:60]}': {did_you_mean(name, theirs)}")
    chosen = dict(columns)
    for ours, guesses in COLUMNS.items():
        guess = next((g for g in guesses if g in theirs), None)
        if ours not in chosen and guess is not None:
            chosen[ours] = guess
            if guess != ours:
                notes.append(f"{ours} is the column '{guess}' of {path.name}")
    if "loss" not in chosen:
        raise DeepwideError(
            f"{path} has no column that is called a loss ({', '.join(COLUMNS['loss'])}): give --column loss=NAME; "
            f"its columns are {', '.join(theirs[:12])}."
        )
    made = []
    for number, row in enumerate(rows, 1):
        out: dict[str, Any] = {}
        for ours, name in chosen.items():
            value = row.get(name)
            if value is None or value == "":
                continue
            out[ours] = str(value) if ours == "status" else _number(value, f"{path}, row {number}, column '{name}'")
        made.append(out)
    return made


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.stat().st_size > LARGEST_TABLE:
        raise DeepwideError(f"{path} is larger than {LARGEST_TABLE // 2**20} MiB: that is no table of runs.")
    try:
        if path.suffix == ".parquet":
            try:
                import polars
            except ModuleNotFoundError:
                raise DeepwideError("Parquet needs polars: pip install 'deepwide[train]'.") from None
            try:
                return polars.read_parquet(path).to_dicts()
            except polars.exceptions.PolarsError as error:
                raise DeepwideError(f"{path} is not Parquet: {str(error)[:120]}.") from None
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".jsonl", ".ndjson"):
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        elif path.suffix == ".csv":
            rows = list(csv.DictReader(text.splitlines()))
        else:
            raise DeepwideError(f"{path} must end in .csv, .jsonl or .parquet, or be a folder of runs.")
    except (UnicodeDecodeError, csv.Error, RecursionError) as error:
        raise DeepwideError(f"{path} cannot be read as a table: {str(error)[:120]}.") from None
    except json.JSONDecodeError as error:
        raise DeepwideError(f"{path} is not JSON lines: {error}.") from None
    if not all(isinstance(row, dict) for row in rows):
        raise DeepwideError(f"{path} must have one object a line.")
    return rows


def _number(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DeepwideError(f"{where}: {quoted(value)} is not a number.") from None


def _check_column(name: str) -> None:
    if name not in COLUMNS or name == "status":
        raise DeepwideError(f"there is no column '{name}' to choose by: {did_you_mean(name, COLUMNS)}")


def _nearest(rows: list[dict[str, Any]], name: str, value: float) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        distance = abs(row.get(name, math.inf) - value)
        key = tuple(row.get(other) for other in COLUMNS if other not in (name, "tokens", "train_flops", "loss"))
        if distance <= 0.01 * abs(value) and distance < abs(found.get(key, {}).get(name, math.inf) - value):
            found[key] = row
    if not found:
        raise DeepwideError(f"no run has {name} within 1% of {value:g}.")
    return list(found.values())


def _less_embeddings(row: dict[str, Any], embedding_rows: float) -> dict[str, Any]:
    if not {"total_params", "width"} <= row.keys():
        raise DeepwideError(
            "taking embedding rows off needs the columns 'total_params' and 'width' in every row: map them with "
            "--column total_params=YOUR_COLUMN."
        )
    return row | {"block_params": row["total_params"] - embedding_rows * row["width"]}


def _note_repeats(rows: list[dict[str, Any]], notes: list[str]) -> None:
    repeated = len(rows) - len({tuple(sorted(row.items())) for row in rows})
    if repeated:
        notes.append(
            f"{repeated} rows repeat another row exactly: if they are the same runs twice, the errors are too small"
        )


def _best_rates(rows: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """For each shape and length, the runs at its best learning rate."""
    cells: dict[tuple[Any, ...], dict[float, list[dict[str, Any]]]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("depth", "width", "block_params", "total_params", "tokens"))
        cells.setdefault(key, {}).setdefault(row.get("lr", math.nan), []).append(row)
    if all(len(rates) == 1 for rates in cells.values()):
        return rows

    def mean(these: list[dict[str, Any]]) -> float:
        return sum(_finite(row.get("loss")) for row in these) / len(these)

    kept = [min(rates.values(), key=mean) for rates in cells.values()]
    notes.append("shapes trained at several learning rates: the best of each, by the mean over its seeds")
    return [row for these in kept for row in these]


def _finite(loss: float | None) -> float:
    return math.inf if loss is None or not math.isfinite(loss) else loss


def _ended(rows: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """What can be fitted: runs that finished, and those that diverged, whose loss is not a number."""
    kept, lost = [], 0
    for row in rows:
        status = row.get("status", "done")
        loss = row.get("loss", math.nan)
        diverged = status == "diverged" or (status == "done" and "loss" in row and not math.isfinite(loss))
        if status not in ("done", "finished", "completed", "diverged") or (not diverged and math.isnan(loss)):
            lost += 1
            continue
        kept.append(row | {"loss": math.nan if diverged else loss, "diverged": diverged})
    if lost:
        notes.append(f"{lost} runs failed or have no loss: left out, they say nothing about the shape")
    diverging = sum(row["diverged"] for row in kept)
    if diverging:
        notes.append(f"{diverging} runs diverged: taken as losses above the worst of their shape, or near their size")
    return kept
