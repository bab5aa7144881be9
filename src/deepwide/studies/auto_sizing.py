"""Can a penalty find the right width of every layer while a network trains? (Murray et al. 2019)"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.run import RunRecord
from deepwide.settings import Natural, Positive, Seeds
from deepwide.studies.estimates import interval_row, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs
from deepwide.studies.translators import (
    NETWORK,
    REVERSING,
    TranslationSettings,
    bleu_difference,
    bleu_of,
    pair_files,
    references,
    run_row,
    translation_table,
)
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the run with preset cpu that is published; part of the rules' hash.
GONE = 1 / 3  # share of the block parameters that auto-sizing must take out
FEWEST_SEEDS = 3
LEAST_BLEU = 5.0  # below it networks do not translate yet, and a comparison says nothing about translation
HELPS = "BLEU of the chosen auto-sized networks less the baseline's"
WITHOUT = "BLEU without feed-forward less the baseline's"
LEAST = "least mean BLEU of the networks that are compared"

BASELINE, NO_FEED_FORWARD = "baseline", "no feed-forward"
# As tables call them, by sweep; neurons and heads are sized together but in the last one.
NETWORKS = {"no-feed-forward": NO_FEED_FORWARD, "linf1": "l∞,1", "l21": "l2,1", "l21-heads": "l2,1 on heads"}
PROBED = 16  # sequences on which a network and the narrower one are compared
Strengths = Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Field(max_length=20)]


def sizing_helps(measured: Measured) -> Ruling:
    return _better(measured, HELPS)


def needs_no_feed_forward(measured: Measured) -> Ruling:
    return _better(measured, WITHOUT)


def _better(measured: Measured, name: str) -> Ruling:
    difference, least = measured.numbers.get(name), measured.numbers.get(LEAST)
    if difference is None or difference.low is None or measured.number("seeds").value < FEWEST_SEEDS:
        why = "too little was taken out, or seeds are too few"
        return Ruling(NOT_DECIDABLE, difference, (Note.of("few", why),))
    if least is None or least.value < LEAST_BLEU:
        why = f"not all networks that are compared have {LEAST_BLEU:g} BLEU: they do not translate yet"
        return Ruling(NOT_DECIDABLE, difference, (Note.of("floor", why),))
    assert difference.high is not None
    if difference.low > 0:
        return Ruling(REPRODUCED, difference)
    return Ruling(NOT_REPRODUCED if difference.high < 0 else NOT_DECIDABLE, difference)


class AutoSizingSettings(TranslationSettings):
    """Which networks are trained on what, and how strongly they are sized."""

    pair: str = "en-de"  # of Multi30k or Autshumato; reversing needs no data, and decides nothing
    examples: Natural = 3000  # training pairs; 0: all
    linf1: Strengths = (9.0, 9.5, 11.0)  # λ of the l∞,1 penalty
    l21: Strengths = (1.5, 1.75, 2.0)  # λ of the l2,1 penalty
    l21_heads: Strengths = (4.0, 6.0, 8.0)  # the same on attention heads alone, whose groups are larger
    parts: tuple[Literal["feed_forward", "heads"], ...] = ("feed_forward", "heads")  # what the first two size
    seeds: Seeds = (60, 61, 62)
    depth: Positive = 2  # layers of the encoder and of the decoder
    steps: Positive = 800
    batch: Positive = 32
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.25  # share of the steps in which the rate rises
    alike: bool = True
    sentences: Positive = 600  # that are translated: half to choose a strength on, half to measure it on
    words: Positive = 14  # of such a sentence at most
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
            "if the 95% interval of its difference from the baseline, over sentences (paired bootstrap) and seeds, is "
            f"above 0; not reproduced if below; not decidable with fewer than {FEWEST_SEEDS} seeds, without such a "
            f"strength, or if the mean BLEU of one of the compared networks is below {LEAST_BLEU:g}.",
            sizing_helps,
        ),
        Rule(
            Claim(
                "without",
                "Without any feed-forward layer a low-resource translator can be better than with them.",
                "deleting the feed-forward entirely can still beat the baseline",
            ),
            "The same on all sentences for networks that were built without feed-forward layers.",
            needs_no_feed_forward,
        ),
    )
    Settings = AutoSizingSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "pair": REVERSING, "examples": 0, "seeds": (0,), "depth": 1, "width": 32, "steps": 120, "batch": 16,
            "linf1": (4.0, 16.0), "l21": (2.0,), "l21_heads": (), "lr": 5e-3, "warmup": 0.02, "smoothing": 0.0,
            "sentences": 100,
        },
        "cpu": {},
        "paper": {
            "pair": "en-nso", "examples": 0, "linf1": (1.0, 4.0, 16.0), "l21": (0.25, 1.0, 4.0),
            "l21_heads": (4.0, 16.0, 64.0), "depth": 6, "width": 512, "heads": 8, "vocab": 16_000, "context": 128,
            "steps": 100_000, "batch": 128, "sentences": 1898, "words": 128, "beam": 5, "lr": 5e-4, "warmup": 0.08,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 900}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit", "sacrebleu": "translate"}
    method = (
        "Encoder-decoders with ReLU are trained with AdamW; after every update each neuron of a feed-forward (its "
        "weights and its bias) and the values of each attention head take the exact proximal step of the penalty, with "
        "the rate of that update times λ. Groups that end at zero are taken out: the network is rebuilt with smaller "
        "matrices, and its outputs are compared with those of the one that was trained. Networks without any "
        "feed-forward layer are the extreme. BLEU by sacrebleu on sentences of the test part. A difference in BLEU has "
        "the variances of its paired bootstrap over sentences and of seeds added."
    )
    differences = (
        "The original: fairseq on pairs from TED talks and others, 6 + 6 layers of width 512, the penalties on "
        "feed-forward rows and, by rows too, on attention; pairs of 5,000 to 210,000 sentences (recalled). Here: "
        "3,000 captions of Multi30k, English to German, seen about eight times: at this size of network "
        "and training Sepedi and Afrikaans are not learned (1 BLEU in trials); small networks, no dropout; a head is "
        "one group, so that what is taken out makes matrices smaller. A head's values are sixteen times as many "
        "numbers as a neuron's weights, so at strengths that leave no neuron every head stays, and heads are sized by "
        "themselves too, more strongly. Strengths were chosen so that they leave a part of what they size, by a trial "
        "with another seed (λ = 1.5 left 60% of the neurons, 9.5 18%; 8 and 12 left 54% and 17% of the heads). Preset "
        "quick reverses sequences, which shows how sizing works and says nothing "
        "about translation. Two earlier runs with other seeds had all captions, less than one epoch, where there is "
        "nothing to be gained by a smaller network, and tested without an interval over sentences; with 43% of the "
        "parameters left BLEU was 0.2 lower (0.9 lower to 0.6 higher). Strengths are per unit of the learning rate of "
        "AdamW, whose steps differ from those of the original's optimiser, so that λ cannot be compared."
    )

    def sweeps(self, settings: AutoSizingSettings) -> Mapping[str, Mapping[str, Any]]:
        model = {"depth": settings.depth, "width": settings.width, "heads": settings.heads, **NETWORK}
        run = translation_table(settings, settings.pair, model, settings.examples)

        def sweep(ff_width: int, grid: Mapping[str, list[Any]] = {}) -> dict[str, Any]:
            model = run["model"] | {"ff_width": ff_width}
            return {"seeds": list(settings.seeds), "run": run | {"model": model}, "grid": dict(grid)}

        wide = settings.feed_forward * settings.width
        sweeps = {BASELINE: sweep(wide), "no-feed-forward": sweep(0)}
        for name, strengths, parts in (
            ("linf1", settings.linf1, settings.parts),
            ("l21", settings.l21, settings.parts),
            ("l21-heads", settings.l21_heads, ("heads",)),
        ):
            if strengths:
                penalty = name.partition("-")[0]
                sized: dict[str, list[Any]] = {"autosize.strength": list(strengths), "autosize.penalty": [penalty]}
                sweeps[name] = sweep(wide, sized | {"autosize.parts": [list(parts)]})
        return sweeps

    def inputs(self, settings: AutoSizingSettings) -> Sequence[Path]:
        return [path for both in pair_files(settings.pair, settings.data).values() for path in both]

    def measure(self, settings: AutoSizingSettings, workplace: Workplace) -> Measured:
        entries = [
            workplace.part(f"{sweep}, run {run.id}", partial(_run_row, sweep, run, settings))
            for sweep, folder in workplace.runs.items()
            for run in finished_runs([folder])
        ]
        entries.sort(key=lambda row: (row["network"], row["strength"], row["seed"]))
        wanted = references(settings.pair, settings)
        for row in entries:
            row["bleu"] = bleu_of(row, wanted).value
        groups = _by_strength(entries)
        chosen = _chosen(groups, wanted)
        numbers = {"seeds": Interval(len(settings.seeds)), **_differences(groups, wanted, chosen)}
        numbers["largest change of an output by rebuilding"] = Interval(max(row["rebuilt_change"] for row in entries))
        table = [
            {"network": name, "strength": strength, "parameters_left": _mean(group, "parameters_left")}
            | {f"{part}_left": _mean(group, f"{part}_left") for part in ("neurons", "heads")}
            | interval_row("loss", mean_interval([row["loss"] for row in group]))
            | _bleu_columns([row["bleu"] for row in group])
            | {"chosen": (name, strength) == chosen}
            for (name, strength), group in groups.items()
        ]
        runs = [{name: value for name, value in row.items() if name != "translations"} for row in entries]
        return Measured(numbers=numbers, tables={"strengths": table, "runs": runs})

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
        ]
        under = "mean and 95% interval over seeds; share of the baseline's block parameters that is left"
        return {"sizes": interval_chart(shown, "What auto-sizing leaves of a network", under, panels="panel")}


def _run_row(sweep: str, run: RunRecord, settings: AutoSizingSettings) -> dict[str, Any]:
    """One network: what is left of it, its loss, and its translations (not for tables)."""
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
    trained = run_row(run, settings.pair, settings)
    return {
        "network": NETWORKS.get(sweep, sweep),
        "strength": config.autosize.strength,
        "seed": config.seed,
        "loss": trained["least_loss"],
        "block_params": left,
        "parameters_left": left / whole.block_params,
        "neurons_left": _left(alive["feed_forward"]),
        "heads_left": _left(alive["heads"]),
        "rebuilt_change": change,
        "translations": trained["translations"],
    }


def _whole(settings: AutoSizingSettings) -> dict[str, Any]:
    """What a network without feed-forward layers lacks of the baseline."""
    return {"ff_width": settings.feed_forward * settings.width, "ff_bias": True}


def _left(layers: Sequence[Any]) -> float:
    """The share of groups that are not zero; 0 where there are none."""
    total = sum(groups.count for groups in layers)
    return float(sum(int(groups.alive.sum()) for groups in layers) / total) if total else 0.0


def _by_strength(entries: Sequence[dict[str, Any]]) -> dict[tuple[str, float], list[dict[str, Any]]]:
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in entries:
        groups.setdefault((row["network"], row["strength"]), []).append(row)
    return groups


def _bleu_columns(scores: Sequence[float]) -> dict[str, Any]:
    score = mean_interval(scores)
    return {"bleu": score.value, "bleu_low": score.low, "bleu_high": score.high}


def _mean(group: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in group]))


Groups = Mapping[tuple[str, float], Sequence[Mapping[str, Any]]]  # runs by network and strength
CHOOSING, MEASURING = slice(0, None, 2), slice(1, None, 2)  # halves of the sentences


def _chosen(groups: Groups, wanted: Sequence[str]) -> tuple[str, float] | None:
    """The network and strength that is best on one half, of those that take out enough."""

    def on_one_half(key: tuple[str, float]) -> float:
        return float(np.mean([bleu_of(_part(row, CHOOSING), wanted[CHOOSING]).value for row in groups[key]]))

    smaller = [key for key, group in groups.items() if key[1] and _mean(group, "parameters_left") <= 1 - GONE]
    return max(smaller, key=on_one_half, default=None)


def _differences(groups: Groups, wanted: Sequence[str], chosen: tuple[str, float] | None) -> dict[str, Interval]:
    """BLEU less the baseline's: of the chosen strength on the half that did not choose, and without feed-forward."""
    baseline, without = groups[BASELINE, 0.0], groups[NO_FEED_FORWARD, 0.0]
    compared = [baseline, without]
    numbers = {WITHOUT: _less(without, baseline, wanted)}
    if chosen is not None:
        ours, theirs = ([_part(row, MEASURING) for row in group] for group in (groups[chosen], baseline))
        numbers[HELPS] = _less(ours, theirs, wanted[MEASURING])
        compared.append(groups[chosen])
    return numbers | {LEAST: Interval(min(_mean(group, "bleu") for group in compared))}


def _less(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> Interval:
    """BLEU of some networks less that of others of the same seeds."""
    return bleu_difference({row["seed"]: row for row in ours}, {row["seed"]: row for row in theirs}, wanted)


def _part(row: Mapping[str, Any], half: slice) -> dict[str, Any]:
    """The same run with some of its translations."""
    return {**row, "translations": row["translations"][half]}
