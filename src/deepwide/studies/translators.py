"""What studies of translation have in common: their pairs, their runs, BLEU of each run, and how two kinds compare.

Autshumato (English with Afrikaans, Sepedi, Setswana) and Multi30k (English with German, French) are read from the
folder of public data. `reversing` needs none: sequences of symbols and the same backwards.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from deepwide.answers import Interval
from deepwide.data import Table, rows
from deepwide.errors import DeepwideError, did_you_mean, needs
from deepwide.model import SCHEMES
from deepwide.run import RunFolder, RunRecord
from deepwide.settings import Part, Positive
from deepwide.studies.estimates import mean_interval, with_variance
from deepwide.studies.public_data import public_file
from deepwide.studies.trained import run_table

REVERSING = "reversing"
AUTSHUMATO = {"en-af": "Afrikaans", "en-nso": "Sepedi", "en-tn": "Setswana"}
MULTI30K = {"en-de": "German", "en-fr": "French"}
PAIRS = {**AUTSHUMATO, **MULTI30K, REVERSING: "backwards"}
Pairs = Annotated[tuple[str, ...], Field(min_length=1, max_length=len(PAIRS))]
Rates = Annotated[tuple[tuple[Positive, float], ...], Field(max_length=12)]  # depth, learning rate
SYMBOLS, LENGTH = 12, 8  # of sequences to be reversed
# Xavier's start and normed embeddings: with GPT-2's start the same networks take several times as many steps.
NETWORK = {**SCHEMES["pre-LN"], "activation": "relu"}


class TranslationSettings(Part):
    """What every study of translation sets; its own settings and its own amounts come with it."""

    data: str = ""  # the folder that holds autshumato and multi30k; $DEEPWIDE_DATA if left out
    width: Positive = 64
    heads: Positive = 4
    feed_forward: Positive = 4  # width of the feed-forward over the width
    vocab: Positive = 2000
    context: Positive = 24  # tokens of a sentence at most; longer pairs are left out
    steps: Positive = 1000
    batch: Positive = 16
    lr: float = 3e-3
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.02  # share of the steps in which the rate rises
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of embeddings and of what sublayers add, in training
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # of labels
    alike: bool = False  # batches of pairs of about one length: less padding
    sentences: Positive = 200  # of the test part that are translated
    words: Positive = 12  # of such a sentence at most
    beam: Positive = 5  # sequences that the search for a translation keeps


def pair_files(pair: str, data: str) -> dict[str, tuple[Path, Path]]:
    """Both files of the parts train, dev and test; none for sequences that are computed."""
    if pair == REVERSING:
        return {}
    if pair not in PAIRS:
        raise DeepwideError(f"there is no pair '{pair[:40]}': {did_you_mean(pair[:40], PAIRS)}")
    collection = "autshumato" if pair in AUTSHUMATO else "multi30k"
    parts = {"train": "train", "dev": "val", "test": "test_2016_flickr"}

    def file(part: str, language: str) -> Path:
        name = f"{pair}.{part}" if pair in AUTSHUMATO else parts[part]
        return public_file(data, collection, f"{name}.{language}.gz", inside=True)

    source, target = pair.split("-")
    return {part: (file(part, source), file(part, target)) for part in parts}


def as_source(files: tuple[Path, Path]) -> str:
    """Two aligned files as the setting `data.source` names them."""
    return ",".join(map(str, files))


def translation_table(
    settings: TranslationSettings, pair: str, model: Mapping[str, Any], examples: int = 0
) -> dict[str, Any]:
    """The table of a run that learns a pair, from so many examples of it; 0: all of them."""
    files = pair_files(pair, settings.data)
    task: dict[str, Any] = {"name": REVERSING, "length": LENGTH, "symbols": SYMBOLS}
    read: dict[str, Any] = {}
    if files:
        task = {"name": "translation", "held_out": as_source(files["dev"])}
        corpus = {"source": as_source(files["train"]), "tokeniser": "bpe", "vocab": settings.vocab}
        read = {"data": corpus, "context": settings.context}
        if settings.alike:
            task["alike"] = settings.batch
    if examples:
        task["examples"] = examples
    return {
        "model": dict(model),
        **run_table(settings, task, examples=256, evaluations=8),
        **read,
        "schedule": {"warmup": max(1, round(settings.warmup * settings.steps))},
        "dropout": settings.dropout,
        "label_smoothing": settings.smoothing,
    }


def with_rate(table: Mapping[str, Any], lr: float, model: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a run with another learning rate and some of its model's settings."""
    return {**table, "model": {**table["model"], **model}, "optimiser": {**table["optimiser"], "lr": lr}}


def run_row(run: RunRecord, pair: str, settings: TranslationSettings) -> dict[str, Any]:
    """One run: its network, its loss, and what it makes of the test sentences (`translations`, not for tables).

    `loss` is the last one, `least_loss` the least of all evaluations: that of who stops when it no longer falls.
    """
    model, result = run.config["model"], run.result
    evaluations = [record["loss"] for record in RunFolder.open(run.path).metrics() if record["kind"] == "validation"]
    return {
        "pair": pair,
        "encoder": model.get("encoder_depth", model["depth"]),
        "decoder": model["depth"],
        "residual": model["residual"],
        "examples": run.config["task"].get("examples", 0),
        "seed": run.config["seed"],
        "block_params": result["block_params"],
        "total_params": result["total_params"],
        "loss": result["validation_loss"],
        "least_loss": min(evaluations),
        "accuracy": result["accuracy"],
        "translations": _translations(run, pair, settings),
    }


def _translations(run: RunRecord, pair: str, settings: TranslationSettings) -> list[str]:
    """What a run makes of the sources of the test sentences."""
    import torch

    from deepwide.model import beam_search
    from deepwide.training import resolve, task_of, trained_model, translate

    if pair != REVERSING:
        sources = [source for source, _ in sentence_pairs(pair, settings)]
        return list(translate(run.path, sources, beam=settings.beam, device="cpu").translations)
    model, batch = (
        trained_model(run.path),
        next(iter(task_of(resolve(run.config)).evaluation(settings.sentences, 10**6))),
    )
    assert batch.source_BS is not None
    with torch.no_grad():
        answers = beam_search(model, batch.source_BS, begin=SYMBOLS, end=SYMBOLS, beam=settings.beam, longest=LENGTH)
    return [_as_words(hypothesis.tokens) for hypothesis in answers]


def references(pair: str, settings: TranslationSettings) -> list[str]:
    """What the test sentences should become."""
    if pair != REVERSING:
        return [target for _, target in sentence_pairs(pair, settings)]
    from deepwide.tasks import make_task

    task = make_task(REVERSING, {"length": LENGTH, "symbols": SYMBOLS})
    batch = next(iter(task.evaluation(settings.sentences, 10**6)))
    return [_as_words(row) for row in batch.targets.tolist()]


def _as_words(tokens: Iterable[int]) -> str:
    return " ".join(f"w{token}" for token in tokens)


def sentence_pairs(pair: str, settings: TranslationSettings) -> list[tuple[str, str]]:
    """Different sources of the test part that are not too long, spread evenly, each with its first reference."""
    table = Table(columns=("source", "target"), usual=("source", "target"))
    first: dict[str, str] = {}
    for row in rows(as_source(pair_files(pair, settings.data)["test"]), table):
        source, target = (text.decode("utf-8", "replace").strip() for text in row)
        if len(source.split()) <= settings.words:
            first.setdefault(source, target)
    every = list(first.items())
    count = min(settings.sentences, len(every))
    return [every[number * len(every) // count] for number in range(count)]


def bleu_of(row: Mapping[str, Any], wanted: Sequence[str]) -> Interval:
    """BLEU of a run with its interval over sentences."""
    from deepwide.training import bleu

    return bleu(row["translations"], wanted).bleu


def bleu_difference(
    ours: Mapping[int, Mapping[str, Any]], theirs: Mapping[int, Mapping[str, Any]], wanted: Sequence[str]
) -> Interval:
    """BLEU of one kind of network less another's, mean over the seeds that both have, with its 95% interval.

    Two things vary: sentences (the paired bootstrap of each seed) and seeds. Their variances are added; that of the
    sentences is not divided by the number of seeds, which share them. The quantile is Student's at the degrees of
    freedom of the sum (Satterthwaite 1946), and the interval no narrower than that of seeds alone. None from one seed.
    """
    needs("scipy", "fit")
    from scipy.stats import norm

    from deepwide.training import bleu

    seeds = sorted(ours.keys() & theirs.keys())
    answers = [bleu(ours[s]["translations"], wanted, theirs[s]["translations"]).difference for s in seeds]
    differences = [answer for answer in answers if answer is not None]
    widths = [(d.high - d.low) / (2 * norm.ppf(0.975)) for d in differences if d.low is not None and d.high is not None]
    by_sentence = math.fsum(w * w for w in widths) / len(widths)
    over_seeds = mean_interval([d.value for d in differences])
    return with_variance(over_seeds, len(seeds), by_sentence, max(1, len(wanted) - 1))


def loss_difference(ours: Mapping[int, Mapping[str, Any]], theirs: Mapping[int, Mapping[str, Any]]) -> Interval:
    """The least loss of one kind of network less another's, mean and 95% interval over the seeds of both."""
    seeds = sorted(ours.keys() & theirs.keys())
    return mean_interval([ours[s]["least_loss"] - theirs[s]["least_loss"] for s in seeds])


def mean_of(estimates: Sequence[Interval]) -> Interval:
    """The mean of independent estimates, such as one per pair of languages; no interval where one has none."""
    value = math.fsum(estimate.value for estimate in estimates) / len(estimates)
    halves = [(e.high - e.low) / 2 for e in estimates if e.low is not None and e.high is not None]
    if len(halves) < len(estimates):
        return Interval(value)
    half = math.hypot(*halves) / len(estimates)
    return Interval(value, value - half, value + half)
