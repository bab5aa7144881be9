"""Can a penalty find the right width of every layer while a network trains? (Murray et al. 2019)"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.data import Table, rows
from deepwide.run import RunRecord
from deepwide.settings import Part, Positive, Seeds
from deepwide.studies.estimates import interval_row, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs, run_table
from deepwide.studies.translators import NETWORK, as_source, pair_files
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before any run with preset cpu; part of the rules' hash.
GONE = 1 / 3  # share of the block parameters that auto-sizing must take out
FEWEST_SEEDS = 3
HELPS = "BLEU of the chosen auto-sized networks less the baseline's"
WITHOUT = "BLEU without feed-forward less the baseline's"

BASELINE, NO_FEED_FORWARD = "baseline", "no feed-forward"
NETWORKS = {"no-feed-forward": NO_FEED_FORWARD, "linf1": "l∞,1", "l21": "l2,1"}  # as tables call them, by sweep
PROBED = 16  # sequences on which a network and the narrower one are compared
Strengths = Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Field(max_length=20)]


def sizing_helps(measured: Measured) -> Ruling:
    return _better(measured, HELPS)


def needs_no_feed_forward(measured: Measured) -> Ruling:
    return _better(measured, WITHOUT)


def _better(measured: Measured, name: str) -> Ruling:
    difference = measured.numbers.get(name)
    if difference is None or difference.low is None or measured.number("seeds").value < FEWEST_SEEDS:
        why = "nothing was translated, too little was taken out, or seeds are too few"
        return Ruling(NOT_DECIDABLE, difference, (Note.of("few", why),))
    assert difference.high is not None
    if difference.low > 0:
        return Ruling(REPRODUCED, difference)
    return Ruling(NOT_REPRODUCED if difference.high < 0 else NOT_DECIDABLE, difference)


class AutoSizingSettings(Part):
    """Which networks are trained on what, and how strongly they are sized."""

    task: Literal["translation", "reversing"] = "translation"  # reversing needs no data, and decides nothing
    pair: str = "en-de"  # languages: of Multi30k, or en-nso, en-af, en-tn of Autshumato
    data: str = ""  # the folder that holds multi30k and autshumato; $DEEPWIDE_DATA if left out
    linf1: Strengths = (6.0, 8.0, 11.0, 16.0)  # λ of the l∞,1 penalty
    l21: Strengths = (1.5, 2.0, 3.0, 4.0)  # λ of the l2,1 penalty
    parts: tuple[Literal["feed_forward", "heads"], ...] = ("feed_forward", "heads")  # what is sized
    seeds: Seeds = (10, 11, 12)
    depth: Positive = 2  # layers of the encoder and of the decoder
    width: Positive = 64
    heads: Positive = 4
    feed_forward: Positive = 4  # width of the feed-forward over the width
    vocab: Positive = 2000
    context: Positive = 24  # tokens of a sentence at most; longer pairs are left out
    length: Positive = 8  # of a sequence to be reversed
    steps: Positive = 800
    batch: Positive = 16
    lr: float = 3e-3
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # of labels
    sentences: Positive = 600  # that are translated: half to choose a strength on, half to measure it on
    beam: Positive = 1  # sequences that the search for a translation keeps; 1 is greedy


class AutoSizing(Study):
    """Loss and BLEU against the parameters that are left, by penalty and strength."""

    name = "auto-sizing"
    question = "Can a penalty find the right width of every layer while a network trains?"
    source = Source(
        "Murray, Kinnison, Nguyen, Scheirer, Chiang 2019, Auto-sizing the Transformer network: improving speed, "
        "efficiency, and performance for low-resource machine translation.",
        "https://arxiv.org/abs/1910.06717",
    )
    rules = (
        Rule(
            Claim(
                "helps",
                "On a low-resource pair auto-sizing takes out a third of the parameters and improves BLEU.",
                "up to +3.9 BLEU with a third of the parameters gone on the lowest-resource pair",
            ),
            f"Of the penalties and strengths that take out at least {GONE:.0%} of the block parameters, mean over "
            "seeds, the one with the best BLEU on one half of the sentences is measured on the other half. Reproduced "
            "if the 95% interval of its difference from the baseline, mean over seeds, is above 0; not reproduced if "
            f"below; not decidable with fewer than {FEWEST_SEEDS} seeds or without such a strength.",
            sizing_helps,
        ),
        Rule(
            Claim(
                "without",
                "Without any feed-forward layer a low-resource translator can be better than with them.",
                "deleting the feed-forward entirely can still beat the baseline",
            ),
            "The same on the same half for networks that were built without feed-forward layers.",
            needs_no_feed_forward,
        ),
    )
    Settings = AutoSizingSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "task": "reversing", "seeds": (0,), "depth": 1, "width": 32, "steps": 120, "linf1": (4.0, 16.0),
            "l21": (2.0,), "lr": 5e-3, "smoothing": 0.0,
        },
        "cpu": {},
        "paper": {
            "pair": "en-nso", "linf1": (1.0, 4.0, 16.0), "l21": (0.25, 1.0, 4.0),
            "depth": 6, "width": 512, "heads": 8, "vocab": 16_000, "context": 128, "steps": 100_000, "batch": 128,
            "sentences": 3000, "beam": 5, "lr": 5e-4,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 450}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit"}
    method = (
        "Encoder-decoders with ReLU are trained with AdamW; after every update each neuron of a feed-forward (its "
        "weights and its bias) and the values of each attention head take the exact proximal step of the penalty, with "
        "the rate of that update times λ. Groups that end at zero are taken out: the network is rebuilt with smaller "
        "matrices, and its outputs are compared with those of the one that was trained. Networks without any "
        "feed-forward layer are the extreme. BLEU by sacrebleu on held-out sentences."
    )
    differences = (
        "The original: fairseq on pairs from TED talks and others, 6 + 6 layers of width 512, the penalties on "
        "feed-forward rows and, by rows too, on attention; pairs of 5,000 to 210,000 sentences (recalled). Here: "
        "English to German of Multi30k (29,000 captions), the one pair at hand on which networks this small translate "
        "at all after a minute of training (a pilot with another seed had 13 BLEU there and 0.8 on Sepedi); small "
        "networks, no dropout; a head is one group, so that what is taken out makes matrices smaller. Preset quick "
        "reverses sequences, which shows how sizing works and says nothing about translation. An earlier run with "
        "other seeds and two strengths per penalty left every neuron at the weaker and none at the stronger one; the "
        "four of this one lie between them. Strengths are per unit of the learning rate of AdamW, whose steps differ "
        "from those of the original's optimiser, so that λ cannot be compared."
    )

    def sweeps(self, settings: AutoSizingSettings) -> Mapping[str, Mapping[str, Any]]:
        task: dict[str, Any] = {"name": "reversing", "length": settings.length}
        data: dict[str, Any] = {}
        if settings.task == "translation":
            files = pair_files(settings.pair, settings.data)
            task = {"name": "translation", "held_out": as_source(files["dev"])}
            source = {"source": as_source(files["train"]), "tokeniser": "bpe", "vocab": settings.vocab}
            data = {"data": source, "context": settings.context}
        run: dict[str, Any] = {
            "model": {
                "depth": settings.depth,
                "width": settings.width,
                "heads": settings.heads,
                **NETWORK,
            },
            **run_table(settings, task, examples=256, evaluations=5),
            **data,
            "label_smoothing": settings.smoothing,
        }

        def sweep(ff_width: int, grid: Mapping[str, list[Any]] = {}) -> dict[str, Any]:
            model = run["model"] | {"ff_width": ff_width}
            return {"seeds": list(settings.seeds), "run": run | {"model": model}, "grid": dict(grid)}

        wide = settings.feed_forward * settings.width
        sweeps = {BASELINE: sweep(wide), "no-feed-forward": sweep(0)}
        for penalty, strengths in (("linf1", settings.linf1), ("l21", settings.l21)):
            if strengths:
                sized: dict[str, list[Any]] = {"autosize.strength": list(strengths), "autosize.penalty": [penalty]}
                sweeps[penalty] = sweep(wide, sized | {"autosize.parts": [list(settings.parts)]})
        return sweeps

    def inputs(self, settings: AutoSizingSettings) -> Sequence[Path]:
        if settings.task != "translation":
            return []
        return [path for both in pair_files(settings.pair, settings.data).values() for path in both]

    def measure(self, settings: AutoSizingSettings, workplace: Workplace) -> Measured:
        entries = [
            workplace.part(f"{sweep}, run {run.id}", partial(_run_row, sweep, run, settings))
            for sweep, folder in workplace.runs.items()
            for run in finished_runs([folder])
        ]
        entries.sort(key=lambda row: (row["network"], row["strength"], row["seed"]))
        groups = _by_strength(entries)
        numbers = {"seeds": Interval(len(settings.seeds)), **_differences(groups)}
        numbers["largest change of an output by rebuilding"] = Interval(max(row["rebuilt_change"] for row in entries))
        table = [
            {"network": name, "strength": strength, "parameters_left": _mean(group, "parameters_left")}
            | {f"{part}_left": _mean(group, f"{part}_left") for part in ("neurons", "heads")}
            | interval_row("loss", mean_interval([row["loss"] for row in group]))
            | _bleu_columns(group)
            for (name, strength), group in groups.items()
        ]
        return Measured(numbers=numbers, tables={"strengths": table, "runs": entries})

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import interval_chart

        shown = [
            {"label": f"{row['parameters_left']:.0%} left, {row['network']}, λ {row['strength']:g}"}
            | {"value": row[value], "low": row[low], "high": row[high], "source": row["network"], "panel": panel}
            for panel, value, low, high in (
                ("validation loss", "loss", "low", "high"),
                ("BLEU", "bleu", "bleu_low", "bleu_high"),
            )
            for row in sorted(measured.table("strengths"), key=lambda row: -float(row["parameters_left"]))
            if value in row
        ]
        under = "mean and 95% interval over seeds; share of the baseline's block parameters that is left"
        return {"sizes": interval_chart(shown, "What auto-sizing leaves of a network", under, panels="panel")}


def _run_row(sweep: str, run: RunRecord, settings: AutoSizingSettings) -> dict[str, Any]:
    """One network: what is left of it, its loss, and the BLEU of both halves of the sentences."""
    import torch

    from deepwide.model import narrowed, sized_groups
    from deepwide.training import resolve, task_of, trained_model

    config = resolve(run.config)
    model = trained_model(run.path).double()
    smaller = narrowed(model)
    batch = next(iter(task_of(config).evaluation(PROBED, PROBED)))
    inputs = {name: value for name, value in batch.inputs.items() if name != "mask_BT"}
    with torch.no_grad():
        change = float((model(batch.tokens_BT, **inputs) - smaller(batch.tokens_BT, **inputs)).abs().max())
    whole = config.model_copy(update={"model": config.model.model_copy(update=_whole(settings))}).architecture.shape
    outside = config.architecture.shape.total_params - config.architecture.shape.block_params
    left = sum(parameter.numel() for parameter in smaller.parameters()) - outside
    alive = {kind: [g for g in sized_groups(model) if g.kind == kind] for kind in ("feed_forward", "heads")}
    row: dict[str, Any] = {
        "network": NETWORKS.get(sweep, sweep),
        "strength": config.autosize.strength,
        "seed": config.seed,
        "loss": run.result["validation_loss"],
        "block_params": left,
        "parameters_left": left / whole.block_params,
        "neurons_left": _left(alive["feed_forward"]),
        "heads_left": _left(alive["heads"]),
        "rebuilt_change": change,
    }
    return row | (_bleu_row(run, settings) if settings.task == "translation" else {})


def _whole(settings: AutoSizingSettings) -> dict[str, Any]:
    """What a network without feed-forward layers lacks of the baseline."""
    return {"ff_width": settings.feed_forward * settings.width, "ff_bias": True}


def _left(layers: Sequence[Any]) -> float:
    """The share of groups that are not zero; 0 where there are none."""
    total = sum(groups.count for groups in layers)
    return float(sum(int(groups.alive.sum()) for groups in layers) / total) if total else 0.0


def _bleu_row(run: RunRecord, settings: AutoSizingSettings) -> dict[str, float]:
    from deepwide.training import bleu, translate

    table = Table(columns=("source", "target"), usual=("source", "target"))
    held_out = islice(rows(as_source(pair_files(settings.pair, settings.data)["dev"]), table), settings.sentences)
    pairs = [tuple(text.decode("utf-8", "replace") for text in pair) for pair in held_out]
    answer = translate(run.path, [source for source, _ in pairs], beam=settings.beam, device="cpu")
    halves = {"bleu_chosen_on": slice(0, None, 2), "bleu_measured": slice(1, None, 2)}
    references = [target for _, target in pairs]
    return {name: bleu(answer.translations[half], references[half]).bleu.value for name, half in halves.items()}


def _by_strength(entries: Sequence[dict[str, Any]]) -> dict[tuple[str, float], list[dict[str, Any]]]:
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in entries:
        groups.setdefault((row["network"], row["strength"]), []).append(row)
    return groups


def _bleu_columns(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """BLEU on the half that is measured on, where there is any."""
    if "bleu_measured" not in group[0]:
        return {}
    score = mean_interval([row["bleu_measured"] for row in group])
    return {"bleu": score.value, "bleu_low": score.low, "bleu_high": score.high}


def _mean(group: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in group]))


def _differences(groups: Mapping[tuple[str, float], Sequence[Mapping[str, Any]]]) -> dict[str, Interval]:
    """BLEU less the baseline's, by seed: of the strength chosen on the other half, and without feed-forward layers."""
    baseline = {row["seed"]: row for row in groups[BASELINE, 0.0]}
    if "bleu_measured" not in next(iter(baseline.values())):
        return {}

    def less(group: Sequence[Mapping[str, Any]]) -> Interval:
        return mean_interval([row["bleu_measured"] - baseline[row["seed"]]["bleu_measured"] for row in group])

    numbers = {WITHOUT: less(groups[NO_FEED_FORWARD, 0.0])}
    sized = [group for (_, strength), group in groups.items() if strength]
    smaller = [group for group in sized if _mean(group, "parameters_left") <= 1 - GONE]
    if smaller:
        numbers[HELPS] = less(max(smaller, key=lambda group: _mean(group, "bleu_chosen_on")))
    return numbers
