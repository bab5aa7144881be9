"""How deep should a translator be when there is little to learn from? (Van Biljon, Pretorius, Kreutzer 2020)"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.settings import Natural, Positive, Seeds
from deepwide.studies.estimates import interval_row, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs
from deepwide.studies.translators import (
    NETWORK,
    REVERSING,
    Pairs,
    Rates,
    TranslationSettings,
    bleu_difference,
    bleu_of,
    loss_difference,
    mean_of,
    pair_files,
    references,
    run_row,
    translation_table,
    with_rate,
)
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run with preset cpu; part of the rules' hash.
FEWEST_SEEDS = 3
LEAST_BLEU = 5.0  # of the best networks: below it they do not translate yet
ORIGINAL_WIDTH = 256
EARLIER = {"en-tn": 33.53, "en-nso": 24.16, "en-af": 35.26}  # BLEU before the paper
DEEP_BLEU = "BLEU of the deepest networks less that of moderate ones, most data"
DEEP_LOSS = "least loss of the deepest networks less that of moderate ones, fewest data"
MORE_DATA = "what depth gains in least loss with the most data less what it gains with the fewest"
BEST = "best mean BLEU of a shape"


def deep_is_worse(measured: Measured) -> Ruling:
    difference = measured.numbers.get(DEEP_BLEU)
    if difference is None:
        why = f"no pair has a shape with {LEAST_BLEU:g} BLEU: such networks do not translate yet"
        return Ruling(NOT_DECIDABLE, None, (Note.of("floor", why),))
    return _side(measured, difference, reproduced_above=False)


def deep_loses_on_few(measured: Measured) -> Ruling:
    return _side(measured, measured.numbers.get(DEEP_LOSS), reproduced_above=True)


def depth_pays_with_data(measured: Measured) -> Ruling:
    return _side(measured, measured.numbers.get(MORE_DATA), reproduced_above=True)


def doubled_for_afrikaans(measured: Measured) -> Ruling:
    return _doubled(measured, "en-af")


def doubled_for_sepedi(measured: Measured) -> Ruling:
    return _doubled(measured, "en-nso")


def _doubled(measured: Measured, pair: str) -> Ruling:
    ratio = measured.numbers.get(f"best BLEU over the earlier best, {pair}")
    if ratio is None or ratio.low is None or ratio.high is None or measured.number("width").value < ORIGINAL_WIDTH:
        why = f"the networks are narrower than the original's {ORIGINAL_WIDTH}, or the pair was not trained"
        return Ruling(NOT_DECIDABLE, ratio, (Note.of("scale", why),))
    if ratio.low > 2:
        return Ruling(REPRODUCED, ratio)
    return Ruling(NOT_REPRODUCED if ratio.high < 2 else NOT_DECIDABLE, ratio)


def _side(measured: Measured, number: Interval | None, *, reproduced_above: bool) -> Ruling:
    if number is None or number.low is None or number.high is None or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, number, (Note.of("few", "one shape or one size only, or too few seeds"),))
    above, below = number.low > 0, number.high < 0
    if above or below:
        return Ruling(REPRODUCED if above == reproduced_above else NOT_REPRODUCED, number)
    return Ruling(NOT_DECIDABLE, number)


Depths = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=12)]
Uneven = Annotated[tuple[tuple[Positive, Positive], ...], Field(max_length=20)]


class LowResourceSettings(TranslationSettings):
    """Which networks learn which pair from how much of it."""

    pairs: Pairs = ("en-de",)  # of Autshumato or Multi30k; reversing needs no data and decides nothing
    depths: Depths = (1, 3, 6)  # layers on each side; the one in the middle is called moderate
    uneven: Uneven = ()  # more networks: layers of the encoder, layers of the decoder
    examples: Annotated[tuple[Natural, ...], Field(min_length=1, max_length=20)] = (1000, 5000, 0)  # pairs; 0: all
    seeds: Seeds = (14, 15, 16)
    steps: Positive = 1200
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.25  # with 0.02 deep networks learn much later
    alike: bool = True
    rates: Rates = ()  # learning rates that depths have of their own: depth, rate
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1  # share of embeddings and of what sublayers add, in training


class LowResource(Study):
    """BLEU and loss by depth and amount of data."""

    name = "low-resource"
    question = "How deep should a translator be when there is little to learn from?"
    source = Source(
        "Van Biljon, Pretorius, Kreutzer 2020, On optimal transformer depth for low-resource language translation.",
        "https://arxiv.org/abs/2004.04418",
    )
    rules = (
        Rule(
            Claim(
                "moderate",
                "On low-resource pairs networks of low to moderate depth translate better than deep ones.",
                "abstract: very large models are detrimental (recalled); 3 + 3 layers against shallower and deeper",
            ),
            f"With the most data of the settings, mean over the pairs on which some shape reaches {LEAST_BLEU:g} BLEU: "
            "BLEU of the deepest networks less that of those in the middle of the depths, by seed, with a 95% interval "
            "over sentences (paired bootstrap) and seeds. Reproduced if below 0, not reproduced if above; not "
            f"decidable otherwise, with fewer than {FEWEST_SEEDS} seeds, or without such a pair.",
            deep_is_worse,
        ),
        Rule(
            Claim(
                "few",
                "With the fewest data deep networks predict held-out translations worse than moderate ones.",
                "the same in loss, which can be measured before networks translate",
            ),
            "With the fewest data: the least validation loss of a run (of all evaluations, as the original stops when "
            "it no longer improves), of the deepest less that of those in the middle, mean over pairs and seeds. "
            "Reproduced if its 95% interval over seeds is above 0, not reproduced if below.",
            deep_loses_on_few,
        ),
        Rule(
            Claim(
                "data",
                "The more data, the more depth pays.",
                "the paper's reason: depths in use were tuned on millions of pairs",
            ),
            "What depth gains is the least loss of the shallowest less that of the deepest, mean over pairs. "
            "Reproduced if the 95% interval over seeds of its difference between the most and the fewest data is above "
            "0, not reproduced if below.",
            depth_pays_with_data,
        ),
        Rule(
            Claim(
                "doubled-afrikaans",
                "The best depth doubles the BLEU of earlier work for English to Afrikaans.",
                "abstract (recalled); earlier best 35.26",
            ),
            "BLEU of the best shape with the most data, first seed, over the earlier best, with its interval over "
            "sentences. "
            f"Reproduced if above 2, not reproduced if below; not decidable with networks narrower than "
            f"{ORIGINAL_WIDTH} or without the pair.",
            doubled_for_afrikaans,
        ),
        Rule(
            Claim(
                "doubled-sepedi",
                "The best depth doubles the BLEU of earlier work for English to Sepedi.",
                "the survey's reading of the same sentence; earlier best 24.16",
            ),
            "The same for the other reading.",
            doubled_for_sepedi,
        ),
    )
    Settings = LowResourceSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "pairs": (REVERSING,), "depths": (1, 2, 3), "examples": (40, 0), "seeds": (0,), "width": 32, "steps": 80,
            "batch": 32, "lr": 5e-3, "warmup": 0.02, "smoothing": 0.0, "dropout": 0.1, "sentences": 100,
        },
        "cpu": {},
        "paper": {
            "pairs": ("en-nso", "en-af", "en-tn"), "depths": (1, 2, 3, 4, 5, 6), "width": 256,
            "uneven": ((1, 6), (6, 1), (3, 6), (6, 3)), "examples": (5000, 10_000, 20_000, 0), "vocab": 4000,
            "context": 100, "steps": 30_000, "batch": 128, "lr": 3e-4, "dropout": 0.25, "sentences": 1898, "words": 100,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 1000}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit", "sacrebleu": "translate"}
    method = (
        "Encoder-decoders with as many layers on one side as on the other (and uneven ones, if asked for) learn a pair "
        "of languages from a part of its training sentences; the smaller part is in the larger one, byte pairs are "
        "those of all the data, and networks of one seed see the same sentences in the same order. Loss is measured on "
        "the development part, BLEU by sacrebleu on different sentences of the test part with their first reference, "
        "found by beam search. A difference in BLEU has the variances of its paired bootstrap over sentences and of "
        "seeds added."
    )
    differences = (
        "The original: JoeyNMT, width 256, feed-forward 1024, 4 heads, dropout 0.25 (also on attention weights), "
        "4,000 byte pairs, Adam at 3e-4 with a plateau schedule, batches of 4,096 tokens, label smoothing 0.1, beam "
        "5, trained until the development BLEU stops rising. Here: width 64, short sentences, a minute of training, a "
        "cosine schedule, dropout on embeddings and sublayers only. In that time networks this small do not learn "
        "Autshumato's Sepedi or Afrikaans (1 BLEU or less in an earlier run and in trials), so preset cpu has parts "
        "of Multi30k's English to German, 29,000 captions, as a stand-in for a low-resource pair; the original ones "
        "can be set, and need longer training. Two earlier runs had other seeds: one, on 500 and 4,000 pairs of "
        "Sepedi, judged by the loss at the end of training, which rewards whoever learns least by heart (the rules "
        "now take the least loss); one, on captions, had a warm-up of 2% of the steps, with which 6 + 6 layers lost "
        "6.6 BLEU to 3 + 3. Then a trial with one more seed on Afrikaans showed that 6 + 6 layers learn sooner with "
        "25%, which all depths have now. BLEU is that of the network at the end. The Setswana training file at hand "
        "is not the original one. What this scale cannot decide: whether networks that translate well are hurt by "
        "depth, and whether BLEU doubled. The sentence on doubling is read in two ways, since the abstract names "
        "Afrikaans and a survey Sepedi; both are judged. Preset quick reverses sequences: how the study works, "
        "nothing about language."
    )

    def sweeps(self, settings: LowResourceSettings) -> Mapping[str, Mapping[str, Any]]:
        model = {
            "width": settings.width,
            "heads": settings.heads,
            **NETWORK,
            "ff_width": settings.feed_forward * settings.width,
        }
        sweeps: dict[str, dict[str, Any]] = {}
        for pair in settings.pairs:
            for size in settings.examples:
                name = f"{pair}.{size or 'all'}"
                run = translation_table(settings, pair, model, size)
                own = dict(settings.rates)
                usual = [depth for depth in settings.depths if depth not in own]
                if usual:
                    sweeps[name] = {"seeds": list(settings.seeds), "run": run, "grid": {"depth": usual}}
                for depth in sorted(own.keys() & set(settings.depths)):
                    rated = with_rate(run, own[depth], {"depth": depth})
                    sweeps[f"{name}.{depth}"] = {"seeds": list(settings.seeds), "run": rated}
                for encoder, decoder in settings.uneven:
                    sides = {"depth": decoder, "encoder_depth": encoder}
                    uneven = run | {"model": run["model"] | sides}
                    sweeps[f"{name}.{encoder}-{decoder}"] = {"seeds": list(settings.seeds), "run": uneven}
        return sweeps

    def inputs(self, settings: LowResourceSettings) -> Sequence[Path]:
        return [
            path
            for pair in settings.pairs
            for both in pair_files(pair, settings.data).values()
            for path in both
        ]  # fmt: skip

    def measure(self, settings: LowResourceSettings, workplace: Workplace) -> Measured:
        entries = [
            workplace.part(f"{sweep}, run {run.id}", partial(run_row, run, sweep.split(".")[0], settings))
            for sweep, folder in workplace.runs.items()
            for run in finished_runs([folder])
        ]
        wanted = {pair: references(pair, settings) for pair in settings.pairs}
        for row in entries:
            row["bleu"] = bleu_of(row, wanted[row["pair"]]).value
        cells = _cells(entries)
        compared = _compared(cells, settings, wanted)
        numbers = {"seeds": Interval(len(settings.seeds)), "width": Interval(settings.width)}
        best = _best(cells, settings, wanted)
        numbers |= best | _over_pairs(compared, best, cells, settings)
        shapes = [_shape_row(key, list(group.values())) for key, group in cells.items()]
        table = [{name: value for name, value in row.items() if name != "translations"} for row in entries]
        return Measured(numbers=numbers, tables={"shapes": shapes, "compared": compared, "runs": table})

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import interval_chart

        shown = [
            {
                "label": f"{row['pair']}, {_amount(row['examples'])}",
                "source": f"{row['encoder']} + {row['decoder']} layers",
            }
            | {"value": row[value], "low": row[low], "high": row[high], "panel": panel}
            for panel, value, low, high in (
                ("least validation loss, nats per token", "loss", "low", "high"),
                ("BLEU", "bleu", "bleu_low", "bleu_high"),
            )
            for row in measured.table("shapes")
        ]
        under = "mean and 95% interval over seeds, by the number of training pairs"
        return {"depths": interval_chart(shown, "Depth of the translator and amount of data", under, panels="panel")}


Cell = Mapping[int, Mapping[str, Any]]  # the run of each seed
Cells = Mapping[tuple[str, int, int, int], Cell]  # by pair, examples (0: all), layers of encoder and decoder


def _cells(entries: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, int, int], dict[int, Mapping[str, Any]]]:
    cells: dict[tuple[str, int, int, int], dict[int, Mapping[str, Any]]] = {}
    for row in entries:
        key = (row["pair"], row["examples"], row["encoder"], row["decoder"])
        cells.setdefault(key, {})[row["seed"]] = row
    return dict(sorted(cells.items(), key=lambda item: (item[0][0], item[0][1] or 10**12, *item[0][2:])))


def _amount(examples: int) -> str:
    return f"{examples:,} pairs" if examples else "all pairs"


def _shape_row(key: tuple[str, int, int, int], group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pair, examples, encoder, decoder = key
    loss, score = (mean_interval([row[name] for row in group]) for name in ("least_loss", "bleu"))
    return (
        {"pair": pair, "examples": examples, "encoder": encoder, "decoder": decoder}
        | {name: group[0][name] for name in ("block_params", "total_params")}
        | interval_row("loss", loss)
        | {"bleu": score.value, "bleu_low": score.low, "bleu_high": score.high}
    )


def _compared(cells: Cells, settings: LowResourceSettings, wanted: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The deepest networks less moderate ones and less the shallowest, for each pair and amount of data."""
    depths = sorted(settings.depths)
    others = dict.fromkeys(depth for depth in (depths[len(depths) // 2], depths[0]) if depth != depths[-1])
    return [
        {"pair": pair, "examples": examples, "deeper": depths[-1], "shallower": other}
        | interval_row("loss", loss_difference(deep, cells[pair, examples, other, other]))
        | {
            f"bleu{end}": value
            for end, value in zip(("", "_low", "_high"), (score.value, score.low, score.high), strict=True)
        }
        for pair in settings.pairs
        for examples in settings.examples
        for deep in (cells[pair, examples, depths[-1], depths[-1]],)
        for other in others
        for score in (bleu_difference(deep, cells[pair, examples, other, other], wanted[pair]),)
    ]


def _over_pairs(
    compared: Sequence[Mapping[str, Any]], best: Mapping[str, Interval], cells: Cells, settings: LowResourceSettings
) -> dict[str, Interval]:
    """The numbers of the rules, means over pairs."""
    depths, sizes = sorted(settings.depths), sorted(settings.examples, key=lambda size: size or 10**12)
    numbers: dict[str, Interval] = {}
    if len(depths) < 2:
        return numbers
    deep, moderate, shallow = depths[-1], depths[len(depths) // 2], depths[0]

    def losses(size: int, depth: int, seed: int) -> list[float]:
        return [cells[pair, size, depth, depth][seed]["least_loss"] for pair in settings.pairs]

    def less(size: int, one: int, other: int, seed: int) -> float:
        """Loss of one depth less another's."""
        values = zip(losses(size, one, seed), losses(size, other, seed), strict=True)
        return math.fsum(a - b for a, b in values) / len(settings.pairs)

    if moderate != deep:
        numbers[DEEP_LOSS] = mean_interval([less(sizes[0], deep, moderate, seed) for seed in settings.seeds])
        translated = [pair for pair in settings.pairs if best[f"{BEST}, {pair}"].value >= LEAST_BLEU]
        chosen = [
            Interval(row["bleu"], row["bleu_low"], row["bleu_high"])
            for row in compared
            if (row["examples"], row["shallower"]) == (sizes[-1], moderate) and row["pair"] in translated
        ]
        if chosen:
            numbers[DEEP_BLEU] = mean_of(chosen)
    if len(sizes) > 1:
        gains = [[less(size, shallow, deep, seed) for size in (sizes[-1], sizes[0])] for seed in settings.seeds]
        numbers[MORE_DATA] = mean_interval([most - fewest for most, fewest in gains])
    return numbers


def _best(cells: Cells, settings: LowResourceSettings, wanted: Mapping[str, Sequence[str]]) -> dict[str, Interval]:
    """The best shape with the most data: its BLEU, and what that is of the best before the paper."""
    most = max(settings.examples, key=lambda size: size or 10**12)
    numbers: dict[str, Interval] = {}
    for pair in settings.pairs:
        groups = [list(group.values()) for key, group in cells.items() if key[:2] == (pair, most)]
        means = [math.fsum(row["bleu"] for row in group) / len(group) for group in groups]
        numbers[f"{BEST}, {pair}"] = Interval(max(means))
        if pair in EARLIER:
            row = groups[means.index(max(means))][0]
            score, earlier = bleu_of(row, wanted[pair]), EARLIER[pair]
            assert score.low is not None
            assert score.high is not None
            ratio = Interval(score.value / earlier, score.low / earlier, score.high / earlier)
            numbers[f"best BLEU over the earlier best, {pair}"] = ratio
    return numbers
