"""Runs as a table: what every fit reads, whoever made them.

Folders of `deepwide sweep` and `deepwide train`, or a CSV, JSON, JSONL or Parquet file of anybody's with its columns
mapped.
A run that diverged is kept: its loss is not a number, but that it was bad is an observation (see `bounds`).
"""

import csv
import io
import json
import math
import operator
from collections import Counter
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
FINISHED = ("done", "finished", "completed", "complete", "success", "succeeded", "ok")
DIVERGED = ("diverged", "nan", "exploded")
FAILED = ("failed", "oom", "crashed", "killed", "error")
ALONG_A_RUN = ("tokens", "train_flops")  # what grows from checkpoint to checkpoint
LIMITS = {  # how a limit compares, and what it leaves out
    "<": (operator.lt, "of {:g} or more"),
    "<=": (operator.le, "above {:g}"),
    ">": (operator.gt, "of {:g} or less"),
    ">=": (operator.ge, "below {:g}"),
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
        with np.errstate(all="ignore"):  # what overflows or is divided by 0 is refused below, by name
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
        odd = np.flatnonzero((seed != np.round(seed)) | (np.abs(seed) >= 2**63))
        if odd.size:
            raise DeepwideError(f"row {odd[0] + 1}: seed is {seed[odd[0]]:g}; it must be a whole number below 2^63.")
        made = cls(
            depth, width, block, total, tokens, values, seed.astype(np.int64), diverged, str(source), tuple(said)
        )
        made._check()
        if not made._linked():
            note = "seeds do not link all shapes: taken as repeats of a shape, not as pairs across shapes"
            made = replace(made, seed=np.zeros_like(made.seed), notes=(*made.notes, note))
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
        blank = np.isnan(self.tokens)
        if blank.any() and len(lengths := np.unique(self.tokens[~blank])) > 1:
            raise DeepwideError(
                f"{blank.sum()} runs have no tokens, and the others {lengths[0]:g} to {lengths[-1]:g} of them: fill in "
                "the column, or keep one length (--where tokens=NUMBER)."
            )

    def _linked(self) -> bool:
        """Whether seeds lead from each shape to every other; if not, theirs cannot be told from the shapes' effects."""
        cells = self.cells
        reached = cells == cells[0]
        while True:
            further = np.isin(cells, cells[np.isin(self.seed, self.seed[reached])])
            if (further == reached).all():
                return bool(reached.all())
            reached = further

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
    limits: Iterable[tuple[str, str, float]] = (),
    embedding_rows: float | None = None,
) -> Runs:
    """The runs in sweep folders, run folders or tables (.csv, .json, .jsonl, .parquet); `columns` maps ours to theirs.

    `where` keeps the rows within 1% of a value; for what grows along a run, of each shape the nearest of them alone
    (tokens=1e11: learning curves cut at one length). `limits` keeps the rows that obey each of ("depth", "<=", 8).
    `embedding_rows` gives block parameters to a table of totals: rows·width less. Where a shape was trained at several
    learning rates, its best one is kept, by the mean over its seeds.
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
    for limit in limits:
        rows = _inside(rows, *limit, notes)
    for name, value in (where or {}).items():
        _check_column(name)
        rows = _nearest(rows, name, value)
    if embedding_rows is not None:
        rows = [_less_embeddings(row, embedding_rows) for row in rows]
        notes.append(f"block parameters are the total less {embedding_rows:g}·width")
    _note_repeats(rows, notes)
    named = ", ".join(str(source) for source in sources)
    kept = _best_rates(_ended(rows, named, notes), notes)
    diverging = sum(row["diverged"] for row in kept)
    if diverging:
        notes.append(f"{diverging} runs diverged: taken as losses above the worst of their shape, or near their size")
    names = [name for name in COLUMNS if name not in ("lr", "status") and any(name in row for row in kept)]
    made: dict[str, list[float]] = {name: [row.get(name, math.nan) for row in kept] for name in names}
    if "loss" not in made:
        made["loss"] = [math.nan] * len(kept)
    return Runs.of(**made, diverged=[row["diverged"] for row in kept], source=named, notes=notes)


def _from_folder(folder: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The run folders in a sweep's folder, or the one that this is."""
    from deepwide.run import RunFolder
    from deepwide.sweeping.trainers import trainer_of

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
            if isinstance(value, str):
                value = value.strip()
            if value is None or value == "" or (ours != "loss" and value != value):  # NaN: how pandas says blank
                continue
            if ours == "status":
                out[ours] = str(value).lower()
                continue
            found = _number(value, f"{path}, row {number}, column '{name}'")
            if ours == "loss" or not math.isnan(found):
                out[ours] = found
        made.append(out)
    return made


def _rows(path: Path) -> list[dict[str, Any]]:
    """A .csv or .tsv with a header, .jsonl or .ndjson (an object a line), .json (a list of objects) or .parquet."""
    if path.stat().st_size > LARGEST_TABLE:
        raise DeepwideError(f"{path} is larger than {LARGEST_TABLE // 2**20} MiB: that is no table of runs.")
    if path.suffix == ".parquet":
        return _from_parquet(path)
    if path.suffix not in (".csv", ".tsv", ".jsonl", ".ndjson", ".json"):
        raise DeepwideError(f"{path} must end in .csv, .jsonl, .json or .parquet, or be a folder of runs.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".csv", ".tsv"):
            return _from_csv(path, text)
        if path.suffix == ".json":
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except DeepwideError:
        raise
    except (ValueError, csv.Error, RecursionError) as error:  # ValueError: not UTF-8, not JSON, or an endless number
        raise DeepwideError(f"{path} cannot be read as a table: {str(error)[:120]}.") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DeepwideError(f"{path} must have one object a run: a list of them in .json, one a line in .jsonl.")
    return rows


def _from_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        import polars
    except ModuleNotFoundError:
        raise DeepwideError("Parquet needs polars: pip install 'deepwide[train]'.") from None
    try:
        return polars.read_parquet(path).to_dicts()
    except polars.exceptions.PolarsError as error:
        raise DeepwideError(f"{path} is not Parquet: {str(error)[:120]}.") from None


def _from_csv(path: Path, text: str) -> list[dict[str, Any]]:
    """Separated by what the header has most of; a row longer than the header has slipped, so nothing in it is sure."""
    text = text.lstrip("\r\n")
    separator = max(",;\t", key=text.split("\n", 1)[0].count)
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines = ([value.strip() for value in line] for line in read)
    header = next(lines, [])
    if twice := [name for name, times in Counter(header).items() if name and times > 1]:
        raise DeepwideError(f"{path} has {header.count(twice[0])} columns called {quoted(twice[0])}: rename them.")
    rows: list[dict[str, Any]] = []
    for line in filter(any, lines):
        if any(line[len(header) :]):
            raise DeepwideError(
                f"{path}, row {len(rows) + 1} has {len(line)} values for {len(header)} columns: is there a separator "
                "inside a number?"
            )
        rows.append(dict(zip(header, line, strict=False)))
    return rows


def _number(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DeepwideError(
            f"{where}: {quoted(value)} is not a number: write 12345.6, without separators or units."
        ) from None


def _check_column(name: str) -> None:
    if name not in COLUMNS or name == "status":
        raise DeepwideError(f"there is no column '{name}' to choose by: {did_you_mean(name, COLUMNS)}")


def _inside(rows: list[dict[str, Any]], name: str, sign: str, value: float, notes: list[str]) -> list[dict[str, Any]]:
    _check_column(name)
    if sign not in LIMITS:
        raise DeepwideError(f"there is no limit {quoted(sign)}: it must be one of {', '.join(LIMITS)}.")
    holds, beyond = LIMITS[sign]
    kept = [row for row in rows if holds(row.get(name, math.nan), value)]
    if not kept:
        raise DeepwideError(f"no run is left that has {name} {sign} {value:g}.")
    if len(kept) < len(rows):
        none = ", or none" if any(math.isnan(row.get(name, math.nan)) for row in rows) else ""
        notes.append(f"{len(rows) - len(kept)} rows with {name} {beyond.format(value)}{none}: left out as asked")
    return kept


def _nearest(rows: list[dict[str, Any]], name: str, value: float) -> list[dict[str, Any]]:
    def distance(row: dict[str, Any]) -> float:
        return abs(float(row.get(name, math.nan)) - value)

    near = [row for row in rows if distance(row) <= 0.01 * abs(value) < math.inf]
    if not near:
        raise DeepwideError(f"no run has {name} within 1% of {value:g}.")
    if name not in ALONG_A_RUN:
        return near

    def run(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(other) for other in COLUMNS if other not in (*ALONG_A_RUN, "loss"))

    nearest: dict[tuple[Any, ...], float] = {}
    for row in sorted(near, key=distance):
        nearest.setdefault(run(row), row[name])
    return [row for row in near if row[name] == nearest[run(row)]]  # several, where repeats have no seed to tell them


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
            f"{repeated} rows repeat another row exactly: if they are the same runs twice, their shapes may weigh too "
            "much (errors count shapes, not rows, and do not shrink)"
        )


def _best_rates(rows: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """For each shape and length, the runs at its best learning rate: of those at which fewest diverged."""
    cells: dict[tuple[Any, ...], dict[float, list[dict[str, Any]]]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("depth", "width", "block_params", "total_params", "tokens"))
        cells.setdefault(key, {}).setdefault(row.get("lr", math.nan), []).append(row)
    if all(len(rates) == 1 for rates in cells.values()):
        return rows

    def badness(these: list[dict[str, Any]]) -> tuple[float, float]:
        losses = [row["loss"] for row in these if not row["diverged"]]
        return 1 - len(losses) / len(these), sum(losses) / max(len(losses), 1)

    kept = [row for rates in cells.values() for row in min(rates.values(), key=badness)]
    note = "shapes trained at several learning rates: the best of each, by the mean over its seeds"
    if lost := sum(row["diverged"] for row in rows) - sum(row["diverged"] for row in kept):
        note += f"; {len(rows) - len(kept)} runs at other rates left out, of which {lost} diverged"
    notes.append(note)
    return kept


def _ended(rows: list[dict[str, Any]], named: str, notes: list[str]) -> list[dict[str, Any]]:
    """What can be fitted: runs that finished, and those that diverged, whose loss is not a number."""
    kept, failed = [], 0
    unknown: Counter[str] = Counter()
    for row in rows:
        status, loss = row.get("status", "done"), row.get("loss")
        diverged = status in DIVERGED or (status in FINISHED and loss is not None and not loss < math.inf)
        if diverged or (status in FINISHED and loss is not None):
            kept.append(row | {"loss": math.nan if diverged else loss, "diverged": diverged})
        elif status in FINISHED + FAILED:
            failed += 1
        else:
            unknown[status] += 1
    left = [f"{failed} runs failed or have no loss: left out, they say nothing about the shape"] if failed else []
    if unknown:
        words = ", ".join(f"{quoted(word)} {number}" for word, number in unknown.most_common(5))
        left.append(
            f"{unknown.total()} runs have a status that is not known ({words}): left out; write 'done' or 'diverged'"
        )
    if not kept:
        raise DeepwideError(f"{named} has no run that is over: {'; '.join(left)}.")
    notes += left
    return kept
