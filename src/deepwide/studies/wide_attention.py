"""Is one wide layer of attention as good as several layers with as many heads in total? (Brown et al. 2022)"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.run import RunRecord
from deepwide.settings import Natural, Part, Positive, Seeds, Sizes
from deepwide.studies.estimates import geometric_interval, interval_row, mean_interval
from deepwide.studies.public_data import public_file
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs, run_table
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before any run with preset cpu; part of the rules' hash.
FEWEST_SEEDS, FEWEST_CELLS = 3, 3
MARGIN = 0.01  # of accuracy: one point more or less is equal
LEARNED = 0.05  # a pair counts if the better network is so much above guessing the most frequent answer
CELL_MARGIN = 0.02  # the same for a single task and attention, of which less is known
OVERALL = "accuracy of one wide layer less that of the deepest networks, mean over tasks and attentions"
EQUAL = "share of tasks and attentions in which the wide network is at most two points worse"
SIZE = "largest ratio of parameters, wide over deep"
LATENCY = "latency of the deepest network over that of the wide one, one sequence"
CELLS = "pairs of a task and an attention that were learned"

Attention = Literal[
    "softmax", "bigbird", "linear_elu", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse",
    "synthesizer",
]  # fmt: skip
KINDS: tuple[Attention, ...] = get_args(Attention)
TaskName = Literal["listops", "imdb", "imdb_bytes", "matching"]
Tasks = Annotated[tuple[TaskName, ...], Field(min_length=1)]
Attentions = Annotated[tuple[Attention, ...], Field(min_length=1)]
DIVERGED = ("diverged",)  # such a network is left out, and its counterpart with it
ROUNDS, PASSES = 9, 3  # of timing: in each round every network takes its turn, and its fastest pass counts


def better(measured: Measured) -> Ruling:
    overall = measured.numbers.get(OVERALL)
    if overall is None or _too_few(measured) or overall.low is None or overall.high is None:
        return Ruling(NOT_DECIDABLE, overall, (_few(),))
    if overall.low > 0:
        return Ruling(REPRODUCED, overall)
    return Ruling(NOT_REPRODUCED if overall.high < 0 else NOT_DECIDABLE, overall)


def as_good(measured: Measured) -> Ruling:
    overall = measured.numbers.get(OVERALL)
    if overall is None or _too_few(measured) or overall.low is None or overall.high is None:
        return Ruling(NOT_DECIDABLE, overall, (_few(),))
    if overall.low > -MARGIN:
        return Ruling(REPRODUCED, overall)
    return Ruling(NOT_REPRODUCED if overall.high < -MARGIN else NOT_DECIDABLE, overall)


def typically(measured: Measured) -> Ruling:
    rows = [row for row in measured.table("cells") if row["learned"]]
    if _too_few(measured) or any(row["low"] is None for row in rows):
        return Ruling(NOT_DECIDABLE, None, (_few(),))
    fine = sum(row["low"] > -CELL_MARGIN for row in rows)
    worse = sum(row["high"] < -CELL_MARGIN for row in rows)
    share = measured.number(EQUAL)
    if 2 * fine > len(rows):
        return Ruling(REPRODUCED, share)
    return Ruling(NOT_REPRODUCED if 2 * worse > len(rows) else NOT_DECIDABLE, share)


def smaller(measured: Measured) -> Ruling:
    ratio = measured.number(SIZE)
    return Ruling(REPRODUCED if ratio.value < 1 else NOT_REPRODUCED, ratio)


def faster(measured: Measured) -> Ruling:
    ratio = measured.numbers.get(LATENCY)
    if ratio is None or ratio.low is None or ratio.high is None:
        return Ruling(NOT_DECIDABLE, ratio, (_few(),))
    if ratio.low > 1:
        return Ruling(REPRODUCED, ratio)
    return Ruling(NOT_REPRODUCED if ratio.high < 1 else NOT_DECIDABLE, ratio)


def _too_few(measured: Measured) -> bool:
    return measured.number("seeds").value < FEWEST_SEEDS or measured.number(CELLS).value < FEWEST_CELLS


def _few() -> Note:
    what = "too few seeds, or too few tasks and attentions that were learned, for a verdict"
    return Note.of("few", what, seeds=FEWEST_SEEDS, cells=FEWEST_CELLS)


class WideSettings(Part):
    """Which networks are trained on what, and for how long."""

    tasks: Tasks = ("listops", "imdb")  # what is learned; also imdb_bytes and matching
    attentions: Attentions = KINDS  # as model.md has them
    depths: Sizes = (1, 4)  # layers that the heads are spread over; the first is the wide network, the last the deep
    total_heads: Positive = 8  # of all layers together
    seeds: Seeds = (200, 201, 202, 203, 204)
    width: Positive = 32
    head_dim: Positive = 8  # width of a head, the same at every depth
    feed_forward: Positive = 2  # width of the feed-forward over the width
    shortest: Positive = 16  # tokens of a ListOps expression at least
    longest: Positive = 64  # tokens of a ListOps expression at most
    imdb_tokens: Positive = 64  # of a review that are read
    imdb_bytes: Positive = 128  # of a review that are read byte by byte
    matching_tokens: Positive = 48  # of each of the two pieces
    matching_bytes: bool = False  # read the pieces byte by byte
    block: Natural = 16  # of attention in blocks; a window is twice, a rank as large; 0: the usual sizes of each kind
    links: Positive = 2  # random blocks, and common positions of a block
    vocab: Positive = 2000
    data: str = ""  # the folder that holds imdb; $DEEPWIDE_DATA if left out
    steps: Positive = 1000
    batch: Positive = 16
    lr: float = 3e-3
    sequences: Positive = 2000  # examples of the evaluation
    timed: Positive = 256  # tokens of the sequences on which speed is measured, at most the context


class WideAttention(Study):
    """Accuracy, size and speed of one wide layer and of several narrow ones, by task and attention."""

    name = "wide-attention"
    question = "Is one wide layer of attention as good as several layers with as many heads in total?"
    source = Source(
        "Brown, Zhao, Shumailov, Mullins 2022, Wide attention is the way forward for transformers?",
        "https://arxiv.org/abs/2210.00640",
    )
    rules = (
        Rule(
            Claim(
                "better",
                "On average over tasks and kinds of attention one wide layer is more accurate than several layers.",
                "abstract: 0.3% better over 4 tasks and 10 attentions",
            ),
            "Per seed, the accuracy of the wide network less that of the deepest with the same seed, mean over all "
            "pairs of a task and an attention that were learned: of which the better network is at least "
            f"{LEARNED:g} above guessing the most frequent answer. Reproduced if the 95% interval of its mean over "
            "seeds is above 0, not reproduced if below, not decidable otherwise or with fewer than "
            f"{FEWEST_SEEDS} seeds or {FEWEST_CELLS} such pairs.",
            better,
        ),
        Rule(
            Claim(
                "as-good",
                "On average one wide layer is as accurate as several layers.",
                "abstract: wide single layer models can typically equal or sometimes outperform deeper ones",
            ),
            f"The same number. Reproduced if its interval is above −{MARGIN:g}, not reproduced if it is below that, "
            "not decidable otherwise.",
            as_good,
        ),
        Rule(
            Claim(
                "typically",
                "In most pairs of a task and an attention one wide layer equals or outperforms several layers.",
                "the same sentence, pair by pair",
            ),
            "Per pair that was learned, the mean over seeds of the difference with its 95% interval (paired by seed). "
            f"Reproduced if in more than half of the pairs the interval is above −{CELL_MARGIN:g}, not reproduced if "
            "in more than half it is below that, not decidable otherwise.",
            typically,
        ),
        Rule(
            Claim(
                "smaller",
                "The wide network has fewer parameters.",
                "abstract: on IMDb by bytes half the size",
            ),
            "Exact counts of all parameters. Reproduced if the wide network has fewer in every pair.",
            smaller,
        ),
        Rule(
            Claim(
                "faster",
                "The wide network answers faster on a CPU.",
                "abstract: on IMDb by bytes 3.1 times the speed",
            ),
            "Both networks of every pair read one sequence at a time, by turns in one process, one thread. Per round "
            "the geometric mean over pairs of the latency of the deepest over that of the wide network. Reproduced if "
            "the 95% interval of its mean over rounds is above 1, not reproduced if below.",
            faster,
        ),
    )
    Settings = WideSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "tasks": ("listops",), "attentions": ("softmax", "local"), "seeds": (0, 1), "steps": 100, "longest": 48,
            "sequences": 500,
        },
        "cpu": {},
        "paper": {
            "tasks": ("listops", "imdb", "imdb_bytes", "matching"),
            "depths": (1, 2, 4, 8), "total_heads": 32, "seeds": (0, 1, 2, 3, 4), "width": 512, "head_dim": 64,
            "shortest": 500, "longest": 2000, "imdb_tokens": 1000, "imdb_bytes": 1000, "matching_tokens": 500,
            "matching_bytes": True, "block": 0, "vocab": 16_000, "steps": 20_000, "batch": 32,
            "lr": 5e-4, "sequences": 5000, "timed": 1000,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 90, "cpu": 1500}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit"}
    method = (
        "Encoders of one width read a sequence and answer with a class, from the mean of the last activations. The "
        "same number of attention heads of one size is spread over one layer or over several, and each layer has one "
        "feed-forward: the wide network has as many attention parameters and fewer feed-forwards. Wide and deep "
        "networks of one seed see the same examples in the same order. For every pair of a task and an attention the "
        "differences are tested by a paired t test over seeds, and p values are also given by Holm's correction for "
        "the number of pairs; the mean over pairs is tested over seeds. The table `audit` is about the published table "
        "itself, 40 pairs of a wide and a deep network, one average each. Its 40 numbers were not at hand: what is "
        "quoted there stands in our survey note and was not recomputed; the other rows are arithmetic on the quoted "
        "ones. By them the published advantage is 0.195 points with a standard error of 0.28, not 0.3, and nothing is "
        "left of it without one of the 40 pairs (Linformer on ListOps)."
    )
    differences = (
        "The original: Long Range Arena's settings (ListOps of 500 to 2,000 tokens, width 512, 8 heads × 4 layers; "
        "IMDb by tokens and by 1,000 bytes; matching of citing abstracts, 4,000 bytes each), up to 8 layers, ten "
        "attentions. Preset cpu: ListOps of 16 to 64 tokens and the first 64 byte pairs of a review, the same ten "
        "attentions, width 32, 8 heads over 1 or 4 layers, 1,000 steps: far from where such networks stop learning, so "
        "that it is about small networks that train briefly. IMDb by bytes and matching are left out of it: in trials "
        "of 1,500 steps with another seed the networks were at 57% and 50%, where a coin has 50%. The abstracts of the "
        "original's matching were not at hand; matching here is whether a beginning and an end are from one film "
        "review, not of citing documents, and preset paper reads 500 bytes of each, as reviews are shorter than "
        "papers. In preset cpu blocks, windows and ranks are shrunk with the lengths. Attention kinds are those of "
        "their papers, some of them as recalled; in Long Range Arena's code local attention is strided and Sinkhorn's "
        "learned sorting is ignored (our notes on it). The optimiser is AdamW with a cosine instead of Adam with an "
        "inverse square root. ListOps expressions are drawn anew for every step; repeats are so rare that none are "
        "taken out."
    )

    def sweeps(self, settings: WideSettings) -> Mapping[str, Mapping[str, Any]]:
        sweeps = {}
        for task in settings.tasks:
            learned, data = _task(task, settings)
            run = run_table(settings, learned, examples=settings.sequences, evaluations=2) | data
            for attention in settings.attentions:
                model = {"width": settings.width, "head_dim": settings.head_dim, "initialisation": "xavier"}
                model |= {"ff_width": settings.feed_forward * settings.width, "attention": attention}
                model |= _sizes(attention, settings)
                for depth in settings.depths:
                    heads = {"depth": depth, "heads": max(1, settings.total_heads // depth)}
                    sweeps[f"{task}-{attention}-{depth}"] = {
                        "seeds": list(settings.seeds),
                        "run": run | {"model": model | heads},
                        "grid": {},
                    }
        return sweeps

    def inputs(self, settings: WideSettings) -> Sequence[Path]:
        return [] if set(settings.tasks) == {"listops"} else [_imdb(part, settings) for part in ("train", "test")]

    def measure(self, settings: WideSettings, workplace: Workplace) -> Measured:
        runs = [(key, run) for key, folder in workplace.runs.items() for run in finished_runs([folder], DIVERGED)]
        entries = [_run_row(key, run) for key, run in runs if run.status == "done"]
        diverged = [(*key.split("-"), run.config["seed"]) for key, run in runs if run.status != "done"]
        entries.sort(key=lambda row: (row["task"], row["attention"], row["depth"], row["seed"]))
        speeds = workplace.part("speed of wide and deep networks", partial(_speeds, settings, workplace))
        guesses = workplace.part("guessing the most frequent answer", partial(_guesses, settings, workplace))
        cells = _cells(entries, speeds, guesses, settings)
        learned = [row for row in cells if row["learned"]]
        pairs = [(row["task"], row["attention"]) for row in learned]
        by_seed = _by_seed(_differences(entries, settings), pairs)
        fine = [row["low"] is not None and row["low"] > -CELL_MARGIN for row in learned]
        per_round = zip(*(row["latency_ratios"] for row in speeds), strict=True)
        numbers = {
            "seeds": Interval(len(settings.seeds)),
            CELLS: Interval(len(learned)),
            **({OVERALL: mean_interval(by_seed), EQUAL: Interval(_mean(fine))} if learned else {}),
            SIZE: Interval(max(row["parameters_ratio"] for row in cells)),
            LATENCY: geometric_interval([float(np.exp(_mean(np.log(ratios).tolist()))) for ratios in per_round]),
            "such pairs in which the wide network is better": Interval(sum(row["difference"] > 0 for row in learned)),
            "such pairs in which it is worse": Interval(sum(row["difference"] < 0 for row in learned)),
        }
        accuracy = _accuracies(entries, settings)
        tables = {"audit": audit_rows(), "cells": cells, "accuracy": accuracy, "runs": entries}
        text = "the figures of the published table are quoted from a survey note and were not recomputed"
        notes = [Note.of("quoted", text)]
        if diverged:
            guessing = entries + [
                {"task": task, "attention": attention, "depth": int(depth), "seed": seed, "accuracy": guesses[task]}
                for task, attention, depth, seed in diverged
            ]
            other = mean_interval(_by_seed(_differences(guessing, settings), pairs)) if pairs else None
            which = ", ".join(
                f"{task} {attention}, {depth} layers, seed {seed}" for task, attention, depth, seed in diverged
            )
            text = (
                f"{len(diverged)} of {len(runs)} networks diverged ({which}) and are left out with their counterparts"
            )
            if other is not None:
                text += f"; counted as guessing, the mean difference would be {other.value:.4f}"
                text += "" if other.low is None else f" ({other.low:.4f} to {other.high:.4f})"
            notes.append(Note.of("diverged", text, runs=len(diverged)))
        return Measured(numbers=numbers, tables=tables, notes=tuple(notes))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import interval_chart

        shown = [
            {"label": f"{row['task']}, {row['attention']}", "value": row["difference"], "low": row["low"],
             "high": row["high"], "source": row["task"]}
            for row in measured.table("cells")
        ]  # fmt: skip
        under = "accuracy of one wide layer less that of the deepest network, mean and 95% interval over paired seeds"
        return {"differences": interval_chart(shown, "Wide less deep", under, axis="difference in accuracy")}


# The published table's audit as our survey note states it (recalled; the 40 numbers themselves were not at hand).
QUOTED = {"pairs": 40, "mean": 0.195, "error": 0.28, "p": 0.49, "wins": 22, "losses": 16, "without_one": 0.02}


def audit_rows() -> list[dict[str, Any]]:
    """The published table: what is quoted about it, and what follows from that by arithmetic."""
    from scipy.stats import binomtest, t

    n, mean, error = QUOTED["pairs"], QUOTED["mean"], QUOTED["error"]
    half = float(t.ppf(0.975, n - 1)) * error
    decided = int(QUOTED["wins"] + QUOTED["losses"])
    rows = [
        ("pairs of a wide and a deep network", n, "quoted"),
        ("mean of wide less deep, points", mean, "quoted"),
        ("its standard error", error, "quoted"),
        ("p of the paired t test", QUOTED["p"], "quoted"),
        ("wins of the wide network", QUOTED["wins"], "quoted"),
        ("losses", QUOTED["losses"], "quoted"),
        ("ties", n - decided, "computed"),
        ("mean without Linformer on ListOps", QUOTED["without_one"], "quoted"),
        ("p of the t test, from mean and error", float(2 * t.sf(mean / error, n - 1)), "computed"),
        ("95% interval of the mean, low", mean - half, "computed"),
        ("95% interval of the mean, high", mean + half, "computed"),
        ("p of a sign test, ties left out", float(binomtest(int(QUOTED["wins"]), decided).pvalue), "computed"),
        ("difference at Linformer on ListOps", n * mean - (n - 1) * QUOTED["without_one"], "computed"),
    ]
    return [{"what": what, "value": value, "from": where} for what, value, where in rows]


def _task(task: TaskName, settings: WideSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task as a run has it, and the data that it reads."""
    if task == "listops":
        return {"name": "listops", "shortest": settings.shortest, "longest": settings.longest}, {}
    held_out = str(_imdb("test", settings))
    by_bytes = task == "imdb_bytes" or (task == "matching" and settings.matching_bytes)
    tokens: dict[str, Any] = {"tokeniser": "bytes"} if by_bytes else {"tokeniser": "bpe", "vocab": settings.vocab}
    lengths = {
        "imdb": settings.imdb_tokens,
        "imdb_bytes": settings.imdb_bytes,
        "matching": settings.matching_tokens,
    }
    data = {"data": {"source": str(_imdb("train", settings)), **tokens}, "context": lengths[task]}
    if task == "matching":
        return {"name": "halves", "held_out": held_out}, data
    return {"name": "classification", "held_out": held_out, "spread": True}, data


def _imdb(part: str, settings: WideSettings) -> Path:
    folder = str(Path(settings.data) / "imdb") if settings.data else ""
    return public_file(folder, "imdb", f"{part}.jsonl.gz")


def _sizes(attention: Attention, settings: WideSettings) -> dict[str, int]:
    """Size and links of an attention, by the settings of the study."""
    sizes: dict[str, int] = {}
    if not settings.block:
        return sizes
    if attention not in ("softmax", "linear_elu", "synthesizer"):
        sizes["attention_size"] = settings.block * (2 if attention == "longformer" else 1)
    if attention in ("bigbird", "sparse"):
        sizes["attention_links"] = min(settings.links, settings.block)
    return sizes


def _run_row(sweep: str, run: RunRecord) -> dict[str, Any]:
    from deepwide.training import resolve

    task, attention, depth = sweep.split("-")
    return {
        "task": task,
        "attention": attention,
        "depth": int(depth),
        "heads_per_layer": run.config["model"]["heads"],
        "seed": run.config["seed"],
        "accuracy": run.result["accuracy"],
        "loss": run.result["validation_loss"],
        "total_params": resolve(run.config).architecture.shape.total_params,
    }


def _differences(
    entries: Sequence[Mapping[str, Any]], settings: WideSettings
) -> dict[tuple[str, str], dict[int, float]]:
    """Accuracy of the wide network less that of the deepest, by pair of task and attention and by seed of both."""
    accuracy = {(row["task"], row["attention"], row["depth"], row["seed"]): row["accuracy"] for row in entries}
    wide, deep = min(settings.depths), max(settings.depths)
    return {
        (task, attention): {
            seed: accuracy[task, attention, wide, seed] - accuracy[task, attention, deep, seed]
            for seed in settings.seeds
            if {(task, attention, wide, seed), (task, attention, deep, seed)} <= accuracy.keys()
        }
        for task in settings.tasks
        for attention in settings.attentions
    }


def _by_seed(
    differences: Mapping[tuple[str, str], Mapping[int, float]], pairs: Sequence[tuple[str, str]]
) -> list[float]:
    """The mean over pairs of a task and an attention, for every seed that some of them have."""
    seeds = dict.fromkeys(seed for pair in pairs for seed in differences[pair])
    return [_mean([differences[pair][seed] for pair in pairs if seed in differences[pair]]) for seed in seeds]


def _cells(
    entries: Sequence[Mapping[str, Any]],
    speeds: Sequence[Mapping[str, Any]],
    guesses: Mapping[str, float],
    settings: WideSettings,
) -> list[dict[str, Any]]:
    """One row per task and attention: the paired test, and sizes and speeds of both networks side by side."""
    wide, deep = min(settings.depths), max(settings.depths)
    rows: list[dict[str, Any]] = []
    for (task, attention), by_seed in _differences(entries, settings).items():
        here = [row for row in entries if (row["task"], row["attention"]) == (task, attention)]
        size = {depth: next(row["total_params"] for row in here if row["depth"] == depth) for depth in (wide, deep)}
        mean = {depth: _mean([row["accuracy"] for row in here if row["depth"] == depth]) for depth in (wide, deep)}
        speed = next(row for row in speeds if (row["task"], row["attention"]) == (task, attention))
        differences = list(by_seed.values())
        rows.append(
            {"task": task, "attention": attention, "wide": mean[wide], "deep": mean[deep], "guess": guesses[task]}
            | {"learned": max(mean.values()) >= guesses[task] + LEARNED}
            | interval_row("difference", mean_interval(differences))
            | {"p": _paired_p(differences), "p_holm": None}
            | {"wide_params": size[wide], "deep_params": size[deep], "parameters_ratio": size[wide] / size[deep]}
            | {name: speed[name] for name in ("wide_ms", "deep_ms", "latency_ratio", "training_ratio")}
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    return rows


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _paired_p(differences: Sequence[float]) -> float | None:
    """The p value of the paired t test; none with one seed, 1 where all differences are 0."""
    if len(differences) < 2:
        return None
    if len(set(differences)) == 1:
        return 1.0 if differences[0] == 0 else 0.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0).pvalue)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p values corrected for their number by Holm's method; none where one is missing.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        return [None] * len(values)
    order = sorted(range(len(given)), key=lambda i: given[i])
    corrected, largest = [0.0] * len(given), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(given) - rank) * given[i]))
        corrected[i] = largest
    return list(corrected)


def _accuracies(entries: Sequence[Mapping[str, Any]], settings: WideSettings) -> list[dict[str, Any]]:
    """The mean accuracy by task, attention and depth."""
    rows = []
    for task in settings.tasks:
        for attention in settings.attentions:
            for depth in settings.depths:
                values = [
                    row["accuracy"]
                    for row in entries
                    if (row["task"], row["attention"], row["depth"]) == (task, attention, depth)
                ]
                rows.append(
                    {"task": task, "attention": attention, "depth": depth}
                    | interval_row("accuracy", mean_interval(values))
                )
    return rows


def _guesses(settings: WideSettings, workplace: Workplace) -> dict[str, float]:
    """The share of the most frequent answer in the evaluation, by task."""
    from deepwide.training import resolve, task_of

    shares: dict[str, float] = {}
    for task in settings.tasks:
        key = f"{task}-{settings.attentions[0]}-{settings.depths[0]}"
        learned = task_of(resolve(finished_runs([workplace.runs[key]], DIVERGED)[0].config))
        answers = [batch.targets.numpy() for batch in learned.evaluation(settings.sequences, settings.sequences)]
        shares[task] = float(np.bincount(np.concatenate(answers)).max() / sum(map(len, answers)))
    return shares


def _speeds(settings: WideSettings, workplace: Workplace) -> list[dict[str, Any]]:
    """Latency and training time of the wide and the deepest network of every pair, by turns in this process."""
    import torch

    from deepwide.model import Transformer
    from deepwide.training import resolve

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = []
        for task in settings.tasks:
            for attention in settings.attentions:
                ends = (min(settings.depths), max(settings.depths))
                runs = [finished_runs([workplace.runs[f"{task}-{attention}-{depth}"]], DIVERGED)[0] for depth in ends]
                networks = [Transformer(resolve(run.config).architecture) for run in runs]
                rows.append({"task": task, "attention": attention} | _timed(networks, settings))
        return rows
    finally:
        torch.set_num_threads(threads)


def _timed(networks: Sequence[Any], settings: WideSettings) -> dict[str, Any]:
    """Milliseconds of one sequence, and of a training step; ratios are of the deep network over the wide one."""
    import torch

    s = networks[0].design.shape
    length = min(settings.timed, s.context)
    random = torch.Generator().manual_seed(0)
    one, many = (torch.randint(s.vocab, (rows, length), generator=random) for rows in (1, settings.batch))

    def answer(network: Any) -> None:
        with torch.no_grad():
            network(one, source_BS=one if s.reads_two else None)

    def train(network: Any) -> None:
        targets = torch.zeros(len(many), dtype=torch.long)
        network(many, targets, source_BS=many if s.reads_two else None).backward()

    latency, training = (_by_turns(networks, work) for work in (answer, train))
    ratios = [deep / wide for wide, deep in latency]
    return {
        "wide_ms": 1000 * float(np.median([wide for wide, _ in latency])),
        "deep_ms": 1000 * float(np.median([deep for _, deep in latency])),
        "latency_ratios": ratios,
        "latency_ratio": float(np.median(ratios)),
        "training_ratio": float(np.median([deep / wide for wide, deep in training])),
    }


def _by_turns(networks: Sequence[Any], work: Any) -> list[tuple[float, ...]]:
    """Seconds per round and network: the least of some passes, the networks taking turns."""
    import time

    for network in networks:
        work(network)
    rounds = []
    for _ in range(ROUNDS):
        least = [float("inf")] * len(networks)
        for _ in range(PASSES):
            for place, network in enumerate(networks):
                began = time.perf_counter()
                work(network)
                least[place] = min(least[place], time.perf_counter() - began)
        rounds.append(tuple(least))
    return rounds
