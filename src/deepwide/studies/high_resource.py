"""Does a very deep encoder translate better where data are plentiful? (Liu, Duh, Liu, Gao 2020)"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.model import SCHEMES, scheme_of
from deepwide.run import RunFolder, RunRecord
from deepwide.settings import Positive, Seeds
from deepwide.studies.estimates import interval_row, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs
from deepwide.studies.translators import (
    REVERSING,
    Pairs,
    Rates,
    TranslationSettings,
    bleu_difference,
    bleu_of,
    mean_of,
    pair_files,
    references,
    run_row,
    translation_table,
    with_rate,
)
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the run with preset cpu that is published; part of the rules' hash.
FEWEST_SEEDS = 3
LEAST_BLEU = 5.0  # below it networks do not translate yet, and what depth does to them says nothing about translation
DEEPER_BLEU = "BLEU of the deepest encoders with ADMIN less that of the shallowest"
DEEPER_LOSS = "loss of the shallowest encoders with ADMIN less that of the deepest"
RESCUED = "loss of the deepest encoders without ADMIN less that of those with it"
SHALLOW, DEEP = "mean BLEU of the shallowest encoders with ADMIN", "mean BLEU of the deepest encoders with ADMIN"
ADMIN, DEFAULT = "ADMIN", "post-LN"


def deeper_translates_better(measured: Measured) -> Ruling:
    return _above_zero(measured, DEEPER_BLEU, SHALLOW, DEEP)


def deeper_predicts_better(measured: Measured) -> Ruling:
    return _above_zero(measured, DEEPER_LOSS, SHALLOW, DEEP)


def admin_is_needed(measured: Measured) -> Ruling:
    return _above_zero(measured, RESCUED, DEEP)


def _above_zero(measured: Measured, name: str, *translating: str) -> Ruling:
    number = measured.numbers.get(name)
    if number is None or number.low is None or number.high is None or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, number, (Note.of("few", "one depth only, or too few seeds"),))
    if short := [group for group in translating if measured.number(group).value < LEAST_BLEU]:
        why = f"{short[0]} is below {LEAST_BLEU:g}: they do not translate yet, so that the comparison means little"
        return Ruling(NOT_DECIDABLE, number, (Note.of("floor", why),))
    if number.low > 0:
        return Ruling(REPRODUCED, number)
    return Ruling(NOT_REPRODUCED if number.high < 0 else NOT_DECIDABLE, number)


class HighResourceSettings(TranslationSettings):
    """Which encoders learn which pair."""

    pairs: Pairs = ("en-de",)  # of Multi30k or Autshumato; reversing needs no data and decides nothing
    encoders: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=12)] = (6, 18)  # layers
    decoder: Positive = 2  # layers of the decoder
    without: bool = True  # train the deepest encoders without ADMIN too
    seeds: Seeds = (40, 41, 42)
    steps: Positive = 2500
    lr: float = 1.7e-3
    rates: Rates = ((6, 3e-3),)  # learning rates that encoders have of their own: layers, rate
    batch: Positive = 32
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.3  # with 0.02 these networks learn to ignore the source
    alike: bool = True
    sentences: Positive = 300  # of the test part that are translated
    words: Positive = 14  # of such a sentence at most


class HighResource(Study):
    """BLEU and loss by the depth of the encoder, with ADMIN and, at the greatest depth, without."""

    name = "high-resource"
    question = "Does a very deep encoder translate better where data are plentiful?"
    source = Source(
        "Liu, Duh, Liu, Gao 2020, Very deep transformers for neural machine translation.",
        "https://arxiv.org/abs/2008.07772",
    )
    rules = (
        Rule(
            Claim(
                "deeper",
                "With ADMIN a deep encoder translates better than one of 6 layers.",
                "60 + 12 layers 30.1 BLEU, 6 + 6 layers 27.7 (English to German)",
            ),
            "BLEU of the deepest encoders less that of the shallowest, both with ADMIN, by seed, mean over pairs, with "
            "a 95% interval over sentences (paired bootstrap) and seeds. Reproduced if above 0, not reproduced if "
            f"below; not decidable otherwise, with fewer than {FEWEST_SEEDS} seeds, or if on some pair the mean BLEU "
            f"of one of the two is below {LEAST_BLEU:g}.",
            deeper_translates_better,
        ),
        Rule(
            Claim(
                "loss",
                "With ADMIN a deep encoder predicts held-out translations better than one of 6 layers.",
                "the same in loss, which varies less than BLEU",
            ),
            "Validation loss of the shallowest encoders less that of the deepest, mean over pairs. Reproduced if its "
            "95% interval over seeds is above 0, not reproduced if below; not decidable as above.",
            deeper_predicts_better,
        ),
        Rule(
            Claim(
                "needed",
                "At great depth a network learns with ADMIN and does not without it.",
                "60 + 12 layers: the default diverges",
            ),
            "Validation loss of the deepest encoders with plain post-LN less that with ADMIN, mean over pairs; a run "
            "that diverged counts with the loss of its first evaluation. Reproduced if its 95% interval over seeds is "
            f"above 0, not reproduced if below; not decidable if on some pair the deepest with ADMIN have less than "
            f"{LEAST_BLEU:g} BLEU in the mean.",
            admin_is_needed,
        ),
    )
    Settings = HighResourceSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "pairs": (REVERSING,), "encoders": (2, 8), "decoder": 1, "seeds": (0,), "width": 32, "steps": 150,
            "lr": 5e-3, "rates": (), "warmup": 0.02, "smoothing": 0.0, "sentences": 100,
        },
        "cpu": {},
        "paper": {
            "pairs": ("en-de", "en-af"), "encoders": (6, 12, 18, 36, 60), "decoder": 12, "width": 512, "heads": 8,
            "vocab": 32_000, "context": 128, "steps": 100_000, "batch": 256, "lr": 1e-3, "rates": (), "warmup": 0.08,
            "dropout": 0.1, "sentences": 3000, "words": 128,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 1800}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit", "sacrebleu": "translate"}
    method = (
        "Encoder-decoders with post-LN and ADMIN (profiled on the first batch) learn a pair of languages; only the "
        "depth of the encoder differs. At its greatest depth they are trained without ADMIN too, if `without` is set. "
        "Loss on the development part, BLEU by sacrebleu on sentences of the test part that were found by beam search. "
        "Networks of one seed see the same sentences in the same order. A difference in BLEU has the variances of its "
        "paired bootstrap over sentences and of seeds added."
    )
    differences = (
        "The original: WMT'14 English to German (4.5M pairs) and French (36M), width 512, encoders of 6 to 60 layers "
        "with decoders of 6 or 12, days on eight GPUs. Preset cpu: Multi30k (29,000 pairs of captions), width 64, a "
        "decoder of 2 layers, encoders of 6 and 18 layers, three to seven minutes of training per network. Data are "
        "plentiful only in the sense that training ends when they have been seen less than three times. Rates were "
        "chosen by the loss of one other seed, each depth by itself: for 6 layers 3e-3 (1e-3 was worse), for 18 layers "
        "1.7e-3 (3e-3 was worse; 1e-3 was behind when the trial was stopped, after three quarters); networks without "
        "ADMIN have the rate of those with it. Two earlier runs had one rate for all depths and 36 layers too: with a "
        "warm-up of 2% of the steps no network learned to look at the source, with 30%, 3e-3 and one epoch only 6 "
        "layers did, and a rule that asked only some encoder to translate said not reproduced. The rules now ask both "
        "sides. 36 layers and English to Afrikaans have runs of their own, with ADMIN alone: 36 layers for 4,000 steps "
        "(more than four epochs) at 1.7e-3 (7e-4 and 1.2e-3 were behind on another seed, in trials of 2,500 steps), "
        "Afrikaans for 2,000 steps at the rates chosen on German. What this scale cannot decide: whether depth helps a "
        "network that is trained to its end, at a width that is used, on millions of pairs. Preset paper has the "
        "original's networks, and the pairs at hand. Preset quick reverses sequences: how the study works, nothing "
        "about language."
    )

    def sweeps(self, settings: HighResourceSettings) -> Mapping[str, Mapping[str, Any]]:
        model = {
            "depth": settings.decoder,
            "width": settings.width,
            "heads": settings.heads,
            "activation": "relu",
            "ff_width": settings.feed_forward * settings.width,
        }
        sweeps: dict[str, dict[str, Any]] = {}
        for pair in settings.pairs:
            deepest = (max(settings.encoders),) if settings.without else ()
            for scheme, encoders in ((ADMIN, settings.encoders), (DEFAULT, deepest)):
                run = translation_table(settings, pair, model | dict(SCHEMES[scheme]))  # type: ignore[index]
                own = dict(settings.rates)
                for depth in sorted(encoders):
                    rated = with_rate(run, own.get(depth, settings.lr), {"encoder_depth": depth})
                    sweeps[f"{pair}.{scheme}.{depth}"] = {"seeds": list(settings.seeds), "run": rated}
        return sweeps

    def inputs(self, settings: HighResourceSettings) -> Sequence[Path]:
        return [path for pair in settings.pairs for both in pair_files(pair, settings.data).values() for path in both]

    def measure(self, settings: HighResourceSettings, workplace: Workplace) -> Measured:
        entries = [
            workplace.part(f"{sweep}, run {run.id}", partial(_row, run, sweep.split(".")[0], settings))
            for sweep, folder in workplace.runs.items()
            for run in finished_runs([folder], also=("diverged",))
        ]
        wanted = {pair: references(pair, settings) for pair in settings.pairs}
        for row in entries:
            row["bleu"] = bleu_of(row, wanted[row["pair"]]).value if row["translations"] else 0.0
        cells: dict[tuple[str, str, int], dict[int, dict[str, Any]]] = {}
        for row in entries:
            cells.setdefault((row["pair"], row["scheme"], row["encoder"]), {})[row["seed"]] = row
        cells = dict(sorted(cells.items()))
        table = [{name: value for name, value in row.items() if name != "translations"} for row in entries]
        shapes = [_shape_row(key, list(group.values())) for key, group in cells.items()]
        numbers = {"seeds": Interval(len(settings.seeds)), **_numbers(cells, settings, wanted)}
        notes = () if settings.without else (Note.of("without", "no network was trained without ADMIN"),)
        return Measured(numbers=numbers, tables={"shapes": shapes, "runs": table}, notes=notes)

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import interval_chart

        shown = [
            {"label": f"{row['pair']}, {row['encoder']} layers, {row['scheme']}", "source": row["scheme"]}
            | {"value": row[value], "low": row[low], "high": row[high], "panel": panel}
            for panel, value, low, high in (
                ("validation loss, nats per token", "loss", "low", "high"),
                ("BLEU", "bleu", "bleu_low", "bleu_high"),
            )
            for row in measured.table("shapes")
        ]
        under = "mean and 95% interval over seeds, by layers of the encoder"
        return {"encoders": interval_chart(shown, "Depth of the encoder", under, panels="panel")}


def _row(run: RunRecord, pair: str, settings: HighResourceSettings) -> dict[str, Any]:
    """One run; one that diverged has translated nothing, and the loss it began with."""
    scheme = scheme_of(run.config["model"])
    if run.status == "done":
        return {"scheme": scheme, "status": run.status} | run_row(run, pair, settings)
    first = next(record for record in RunFolder.open(run.path).metrics() if record["kind"] == "validation")
    model = run.config["model"]
    return {
        "scheme": scheme, "status": run.status, "pair": pair, "encoder": model.get("encoder_depth", model["depth"]),
        "decoder": model["depth"], "residual": model["residual"], "examples": 0, "seed": run.config["seed"],
        "block_params": run.result["block_params"], "total_params": run.result["total_params"],
        "loss": first["loss"], "accuracy": first["accuracy"], "translations": [],
    }  # fmt: skip


def _shape_row(key: tuple[str, str, int], group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pair, scheme, encoder = key
    loss, score = (mean_interval([row[name] for row in group]) for name in ("loss", "bleu"))
    return (
        {"pair": pair, "scheme": scheme, "encoder": encoder, "decoder": group[0]["decoder"]}
        | {name: group[0][name] for name in ("block_params", "total_params")}
        | interval_row("loss", loss)
        | {"bleu": score.value, "bleu_low": score.low, "bleu_high": score.high}
        | {"diverged": sum(row["status"] != "done" for row in group)}
    )


def _numbers(
    cells: Mapping[tuple[str, str, int], Mapping[int, Mapping[str, Any]]],
    settings: HighResourceSettings,
    wanted: Mapping[str, Sequence[str]],
) -> dict[str, Interval]:
    """The numbers of the rules, means over pairs."""
    shallow, deep = min(settings.encoders), max(settings.encoders)

    def less(one: tuple[str, int], other: tuple[str, int], seed: int) -> float:
        """Loss of one scheme and depth less another's."""
        values = [cells[pair, *one][seed]["loss"] - cells[pair, *other][seed]["loss"] for pair in settings.pairs]
        return math.fsum(values) / len(values)

    means = {
        key: math.fsum(row["bleu"] for row in group.values()) / len(group)
        for key, group in cells.items()
    }  # fmt: skip
    numbers = {
        name: Interval(min(means[pair, ADMIN, depth] for pair in settings.pairs))
        for name, depth in ((SHALLOW, shallow), (DEEP, deep))
    }
    if settings.without:
        numbers[RESCUED] = mean_interval([less((DEFAULT, deep), (ADMIN, deep), seed) for seed in settings.seeds])
    if shallow == deep:
        return numbers
    numbers[DEEPER_LOSS] = mean_interval([less((ADMIN, shallow), (ADMIN, deep), seed) for seed in settings.seeds])
    groups = [(cells[pair, ADMIN, deep], cells[pair, ADMIN, shallow]) for pair in settings.pairs]
    if all(row["translations"] for both in groups for group in both for row in group.values()):
        scores = [bleu_difference(*both, wanted[pair]) for both, pair in zip(groups, settings.pairs, strict=True)]
        numbers[DEEPER_BLEU] = mean_of(scores)
    return numbers
