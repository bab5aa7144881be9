"""Does each layer double the number of induction hops that a transformer learns? (Sanford, Hsu, Telgarsky 2024)"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, ClassVar

import numpy as np

from deepwide.answers import Interval, Note
from deepwide.probes import attention_to
from deepwide.run import RunFolder, RunRecord
from deepwide.settings import Natural, Part, Positive, Seeds, Sizes
from deepwide.studies.estimates import interval_row, late_gain, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs, run_table
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run with preset cpu; part of the rules' hash.
SOLVED = 0.9  # share of right answers from which a number of hops counts as solved
SURELY = 0.95  # and from which it contradicts a claim that it cannot be
STILL = 0.05  # a network that gained more than this at its break in the last quarter of training is still learning
DOUBLES = (0.75, 1.25)  # log2 of the break per layer: 1 is doubling
ORIGINAL = 3_200_000  # sequences that the original trained each network on: what fails after fewer may only need more
FEWEST_SEEDS, FEWEST_DEPTHS = 3, 3

PROBED = 64  # sequences on which attention is measured
MARGIN, SLOPE = "log2 of the break over 2^(L−1)", "log2 of the break per layer"


def solves_below(measured: Measured) -> Ruling:
    runs = [row for row in measured.table("runs") if row["limit"] <= row["most"] + 1]
    long_enough = measured.number("sequences trained on").value >= ORIGINAL
    says = {}
    for depth, rows in _by_depth(runs).items():
        enough = median(row["break"] for row in rows) >= rows[0]["limit"]
        says[depth] = enough if enough or long_enough else None
    return _judge(measured, MARGIN, says)


def breaks_there(measured: Measured) -> Ruling:
    runs = [row for row in measured.table("runs") if row["limit"] <= row["most"]]
    says: dict[int, bool | None] = {}
    for depth, rows in _by_depth(runs).items():
        middle, limit = median(row["break"] for row in rows), rows[0]["limit"]
        learning = any(row["still_learning"] for row in rows if row["break"] == limit)
        surely = middle > limit and median(row["accuracy_at_limit"] for row in rows) >= SURELY
        says[depth] = False if surely else True if middle == limit and not learning else None
    return _judge(measured, MARGIN, says)


def doubles(measured: Measured) -> Ruling:
    slope = measured.number(SLOPE)
    depths = {row["depth"] for row in measured.table("runs") if row["break"] <= row["most"]}
    if measured.number("seeds").value < FEWEST_SEEDS or len(depths) < FEWEST_DEPTHS or slope.low is None:
        return Ruling(NOT_DECIDABLE, slope, (_few(),))
    assert slope.high is not None
    if DOUBLES[0] <= slope.low and slope.high <= DOUBLES[1]:
        return Ruling(REPRODUCED, slope)
    if slope.high < DOUBLES[0]:
        long_enough = measured.number("sequences trained on").value >= ORIGINAL
        return Ruling(NOT_REPRODUCED, slope) if long_enough else Ruling(NOT_DECIDABLE, slope, (_short(),))
    return Ruling(NOT_REPRODUCED if slope.low > DOUBLES[1] else NOT_DECIDABLE, slope)


def _judge(measured: Measured, name: str, says: Mapping[int, bool | None]) -> Ruling:
    """From what each depth says: yes, no, or (None) nothing."""
    number = measured.number(name)
    if measured.number("seeds").value < FEWEST_SEEDS or len(says) < FEWEST_DEPTHS:
        return Ruling(NOT_DECIDABLE, number, (_few(),))
    if False in says.values():
        return Ruling(NOT_REPRODUCED, number)
    silent = [depth for depth, answer in says.items() if answer is None]
    return Ruling(NOT_DECIDABLE, number, (_short(silent),)) if silent else Ruling(REPRODUCED, number)


def _by_depth(rows: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    depths = sorted({row["depth"] for row in rows})
    return {depth: [row for row in rows if row["depth"] == depth] for depth in depths}


def _few() -> Note:
    return Note.of("few", "too few seeds, or too few depths that break within the hops asked for, for a verdict")


def _short(depths: Sequence[int] = ()) -> Note:
    where = f"at depth {', '.join(map(str, depths))} " if depths else ""
    return Note.of("short", f"{where}what was not learned may need longer training: it was shorter than the original's")


class HopsSettings(Part):
    """Which networks are trained on what, and for how long."""

    depths: Sizes = (2, 3, 4, 5)
    seeds: Seeds = (20, 21, 22)
    length: Positive = 40  # letters of a sequence
    letters: Positive = 4  # different letters: the alphabet
    most: Positive = 8  # hops that are asked for at most
    width: Positive = 64
    heads: Positive = 4
    feed_forward: Positive = 2  # width of the feed-forward over the width
    positions: str = "learned"
    initialisation: str = "xavier"
    steps: Positive = 8000
    batch: Positive = 32
    lr: float = 1e-3
    warmup: Natural | None = None  # steps of learning-rate warm-up; none: 2% of the steps
    sequences: Positive = 512  # sequences of the evaluation


class HopsStudy(Study):
    """Error against the number of hops, by depth."""

    name = "hops"
    question = "Does each layer double the number of induction hops that a transformer learns?"
    source = Source(
        "Sanford, Hsu, Telgarsky 2024, Transformers, parallel computation, and logarithmic depth.",
        "https://arxiv.org/abs/2402.09268",
    )
    rules = (
        Rule(
            Claim(
                "suffices",
                "A network of L layers learns k hops for every k below 2^(L−1).",
                "upper bound on k-hop induction heads (depth ⌊log₂ k⌋ + 2), and the experiments with trained networks",
            ),
            f"The break of a network is the least k at which fewer than {SOLVED:.0%} of its answers are right, on "
            "fresh sequences, without dropout. Of depths with 2^(L−1) at most one more than the hops asked for: "
            "reproduced if at each depth the median break over seeds is at least 2^(L−1); if at one it is not, not "
            f"reproduced if each network saw at least {ORIGINAL:,} sequences, as in the original, and not decidable "
            f"otherwise. Not decidable with fewer than {FEWEST_SEEDS} seeds or {FEWEST_DEPTHS} such depths.",
            solves_below,
        ),
        Rule(
            Claim(
                "necessary",
                "A network of L layers does not learn 2^(L−1) hops: there its error jumps.",
                "conditional lower bound (depth Ω(log k)), and the experiments with trained networks",
            ),
            "Of depths with 2^(L−1) among the hops asked for: not reproduced if at one the median break is larger and "
            f"the median share of right answers at 2^(L−1) at least {SURELY:.0%}; reproduced if at each the break is "
            "exactly 2^(L−1), in networks whose share of right answers there did not rise by more than "
            f"{STILL} in the last quarter of training; otherwise not decidable, as with fewer than {FEWEST_SEEDS} "
            f"seeds or {FEWEST_DEPTHS} such depths.",
            breaks_there,
        ),
        Rule(
            Claim("doubles", "Each layer doubles the number of hops.", "depth logarithmic in k suffices and is needed"),
            "Per seed, the slope of log2 of the break against depth, over the depths that break within the hops asked "
            f"for. Reproduced if the 95% interval of its mean lies within {DOUBLES[0]} to {DOUBLES[1]}; not reproduced "
            "if it lies above, or below after as much training as in the original; otherwise not decidable, as with "
            f"fewer than {FEWEST_SEEDS} seeds or {FEWEST_DEPTHS} such depths.",
            doubles,
        ),
    )
    Settings = HopsSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"depths": (1, 2), "seeds": (0,), "most": 2, "length": 24, "steps": 500, "lr": 3e-3},
        "cpu": {},
        "paper": {
            "depths": (2, 3, 4, 5, 6), "length": 100, "most": 16, "width": 128, "positions": "learned",
            "feed_forward": 4, "initialisation": "gpt2", "steps": 100_000, "lr": 1e-4, "warmup": 1000,
        },
    }  # fmt: skip
    method = (
        "One network per depth and seed is trained on all numbers of hops at once: the first token asks for k, drawn "
        "from 0 to the most, and every later position answers with the letter that k hops lead to; undefined answers "
        "do not count. Every training sequence is new. After training, the share of right answers is taken for each k "
        "on sequences that all networks share. Attention: for each head, the mean weight from a letter to the place j "
        f"hops back, on {PROBED} sequences that ask for 2^(L−1) − 1 hops or the most there are."
    )
    differences = (
        "The original: sequences of length 100, up to 16 hops, width 128, learned positions, GPT-2's weights, "
        "100,000 steps of 32 sequences at a rate of 1e-4 that falls linearly (preset paper, but for the rate, which "
        "stays constant before a cooldown). Preset cpu: length 40, up to 8 hops, width 64, and 12 times fewer steps, "
        "with larger initial weights and a larger rate, chosen in a short trial with another seed because they learn "
        "early. An earlier run with length 24, up to 4 hops, 1 to 3 layers and rotary positions learned more hops "
        "than the second claim allows. The original trains on undefined answers too, as a token of their own, and "
        "published errors that were measured with dropout on; here undefined answers do not count, and there is no "
        "dropout. What a claim says about more hops than were asked for is not judged."
    )

    def sweeps(self, settings: HopsSettings) -> Mapping[str, Mapping[str, Any]]:
        task = {"name": "hops", **_task_settings(settings)}
        run = {
            "model": {
                "width": settings.width,
                "heads": settings.heads,
                "ff_width": settings.feed_forward * settings.width,
                "positions": settings.positions,
                "initialisation": settings.initialisation,
                "tied": False,
            },
            **run_table(settings, task, examples=settings.sequences, evaluations=10),
            "schedule": {"kind": "constant", "warmup": settings.warmup or max(1, settings.steps // 50)},
        }
        slowest_first = sorted(settings.depths, reverse=True)
        return {"hops": {"seeds": list(settings.seeds), "run": run, "grid": {"depth": slowest_first}}}

    def measure(self, settings: HopsSettings, workplace: Workplace) -> Measured:
        runs = finished_runs(workplace.runs.values())
        rows = sorted((_run_row(run, settings) for run in runs), key=lambda row: (row["depth"], row["seed"]))
        attention = [
            row
            for run in runs
            for row in workplace.part(f"attention against hops, run {run.id}", partial(_attention_rows, run, settings))
        ]
        within = [row for row in rows if row["limit"] <= settings.most]
        margins = [
            float(np.mean([math.log2(max(row["break"], 0.5) / row["limit"]) for row in within if row["seed"] == seed]))
            for seed in settings.seeds
            if within
        ]
        numbers = {
            "seeds": Interval(len(settings.seeds)),
            "sequences trained on": Interval(settings.steps * settings.batch),
            MARGIN: mean_interval(margins or [0.0]),
            SLOPE: _slope(rows, settings),
            **{
                f"break at depth {depth}": mean_interval([row["break"] for row in group])
                for depth, group in _by_depth(rows).items()
            },
        }
        tables = {
            "accuracy": _accuracy_rows(runs, settings),
            "runs": rows,
            "heads": _best_heads(attention),
            "attention": attention,
        }
        return Measured(numbers=numbers, tables=tables, notes=_notes(rows))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import accuracy_chart, head_map

        below = f"share of right answers, mean and 95% interval over seeds; dashed: {SOLVED:.0%}, solved"
        charts = {
            "accuracy": accuracy_chart(
                measured.table("accuracy"), "hops", "What each depth learns", below, solved=SOLVED, x_title="hops k"
            )
        }
        heads = measured.table("heads")
        if heads:
            deepest = max(row["depth"] for row in heads)
            rows = [row for row in heads if row["depth"] == deepest]
            title = f"Where heads look, {deepest} layers"
            under = "attention from a letter to the place j hops back, best head of each layer, mean over seeds"
            charts["attention"] = head_map(rows, "layer", "hops", "attention", title, under)
        return charts


def _task_settings(settings: HopsSettings) -> dict[str, Any]:
    return {"length": settings.length, "letters": settings.letters, "most": settings.most}


def _run_row(run: RunRecord, settings: HopsSettings) -> dict[str, Any]:
    """One network: where it breaks, and whether it was still learning there."""
    depth, last = run.config["model"]["depth"], run.result
    broken = [k for k in range(settings.most + 1) if last.get(f"accuracy_{k}", 1.0) < SOLVED]
    at = broken[0] if broken else settings.most + 1
    gain = late_gain(RunFolder.open(run.path).metrics(), f"accuracy_{at}") if broken else None
    return {
        "depth": depth,
        "seed": run.config["seed"],
        "limit": 2 ** (depth - 1),
        "most": settings.most,
        "break": at,
        "accuracy_at_limit": last.get(f"accuracy_{2 ** (depth - 1)}"),
        "gain_at_break_in_last_quarter": gain,
        "still_learning": gain is not None and gain > STILL,
        "accuracy": last["accuracy"],
    }


def _slope(rows: Sequence[dict[str, Any]], settings: HopsSettings) -> Interval:
    """log2 of the break per layer: the mean over seeds of each one's slope."""
    slopes = []
    for seed in settings.seeds:
        points = [(row["depth"], row["break"]) for row in rows if row["seed"] == seed and row["break"] <= row["most"]]
        depths, breaks = [depth for depth, _ in points], [math.log2(max(at, 0.5)) for _, at in points]
        if len(set(depths)) > 1:
            slopes.append(float(np.polyfit(depths, breaks, 1)[0]))
    return mean_interval(slopes) if slopes else Interval(0.0)


def _accuracy_rows(runs: Sequence[RunRecord], settings: HopsSettings) -> list[dict[str, Any]]:
    rows = []
    for depth in settings.depths:
        results = [run.result for run in runs if run.config["model"]["depth"] == depth]
        for k in range(settings.most + 1):
            mean = mean_interval([result[f"accuracy_{k}"] for result in results])
            rows.append({"depth": depth, "hops": k, **interval_row("accuracy", mean)})
    return rows


def _attention_rows(run: RunRecord, settings: HopsSettings) -> list[dict[str, Any]]:
    """Attention of every head to the place j hops back, on sequences that ask for as many hops as depth allows."""
    from deepwide.tasks import Hops, hop_positions
    from deepwide.training import trained_model

    task = Hops(**_task_settings(settings))
    model, depth = trained_model(run.path), run.config["model"]["depth"]
    [batch] = task.evaluation(PROBED, PROBED)
    tokens_BT = batch.tokens_BT.clone()
    tokens_BT[:, 0] = task.letters + min(2 ** (depth - 1) - 1, settings.most)
    letters_BN = tokens_BT[:, 1:].numpy()
    hops = range(min(settings.most, 8) + 1)
    places_JBN = np.stack([hop_positions(letters_BN, np.full(len(letters_BN), j)) for j in hops])
    scores_LHJ = attention_to(model, tokens_BT, places_JBN)
    labels = {"depth": depth, "seed": run.config["seed"]}
    return [
        {**labels, "layer": layer + 1, "head": head, "hops": j, "attention": float(scores_LHJ[layer, head, j])}
        for layer, head, j in np.ndindex(*scores_LHJ.shape)
    ]


def _best_heads(attention: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The strongest head of each layer for each j, its attention averaged over seeds."""
    best: dict[tuple[int, int, int], dict[int, float]] = {}
    for row in attention:
        by_seed = best.setdefault((row["depth"], row["layer"], row["hops"]), {})
        by_seed[row["seed"]] = max(by_seed.get(row["seed"], 0.0), row["attention"])
    return [
        {"depth": depth, "layer": layer, "hops": j, "attention": float(np.mean(list(by_seed.values())))}
        for (depth, layer, j), by_seed in sorted(best.items())
    ]


def _notes(rows: Sequence[dict[str, Any]]) -> tuple[Note, ...]:
    learning = [f"depth {row['depth']} seed {row['seed']}" for row in rows if row["still_learning"]]
    text = "Still learning at their break when training ended: " + (", ".join(learning) or "none")
    return (Note.of("still_learning", text, runs=len(learning)),)
