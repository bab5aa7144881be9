"""What do attention heads look at, and which layer does what? (Clark, Khandelwal, Levy, Manning 2019)"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
from deepwide.settings import Natural, Part, Positive
from deepwide.studies.looking import (
    ALIKE,
    ALL,
    ALL_LESS,
    ALL_WORDS,
    ANTECEDENT_LESS,
    FROM_LAYER,
    GRADIENT,
    MIDDLE,
    SEPARATOR,
    Found,
    Reader,
    antecedents_found,
    corpora,
    dependencies,
    folder_of,
    look,
    look_closely,
    names_told_apart,
    pretrained_reader,
    trained_reader,
)
from deepwide.studies.public_data import file_row
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs
from deepwide.studies.workplace import Workplace

LAYERS, WIDTH = "layers of the deepest pretrained encoder", "width of the deepest pretrained encoder"

# What the verdicts hang on. Written before the first run with preset cpu; part of the rules' hash.
RELATIONS = ("det", "obj", "nmod:poss", "aux:pass", "compound:prt")  # published 94.3, 86.8, 80.5, 94.1, 99.1
FEWEST_WORDS = 50  # of a relation in the test part, without which it is not judged
FEWEST_RELATIONS = 4
SHARP, SHARP_RELATIONS = 0.75, ("det", "obj")  # "remarkably high accuracy"
MOST_OF_ALL = 0.5  # published: the best head has 34.7% of all words right
HALF = 0.5
SMALL = 0.5  # the gradient at [SEP] over that at other tokens
FEWEST_SENTENCES = 50
DEEP, WIDE = 12, 768  # layers and width of BERT-base, without which claims about its [SEP] are not judged


def specialised(measured: Measured) -> Ruling:
    rows = [row for row in _deepest(measured, "relations") if row["relation"] in RELATIONS]
    judged = [row for row in rows if row["words"] >= FEWEST_WORDS]
    if len(judged) < FEWEST_RELATIONS:
        return Ruling(NOT_DECIDABLE, None, (_few(f"relations with {FEWEST_WORDS} words"),))
    least = min(judged, key=lambda row: float(row["less_offset"]))
    number = Interval(least["less_offset"], least["less_low"], least["less_high"])
    if all(row["less_low"] > 0 for row in judged):
        return Ruling(REPRODUCED, number)
    return Ruling(NOT_REPRODUCED if any(row["less_high"] < 0 for row in judged) else NOT_DECIDABLE, number)


def sharp(measured: Measured) -> Ruling:
    rows = [row for row in _deepest(measured, "relations") if row["relation"] in SHARP_RELATIONS]
    if len(rows) < len(SHARP_RELATIONS) or any(row["words"] < FEWEST_WORDS for row in rows):
        return Ruling(NOT_DECIDABLE, None, (_few(f"words of {' and '.join(SHARP_RELATIONS)}"),))
    least = min(rows, key=lambda row: float(row["accuracy"]))
    number = Interval(least["accuracy"], least["low"], least["high"])
    if all(row["low"] > SHARP for row in rows):
        return Ruling(REPRODUCED, number)
    return Ruling(NOT_REPRODUCED if any(row["high"] < SHARP for row in rows) else NOT_DECIDABLE, number)


def no_head_does_all(measured: Measured) -> Ruling:
    best, less = measured.numbers.get(ALL_WORDS), measured.numbers.get(ALL_LESS)
    if best is None or less is None or not _enough(measured):
        return Ruling(NOT_DECIDABLE, best, (_few("sentences"),))
    assert best.low is not None
    assert best.high is not None
    assert less.low is not None
    if best.high < MOST_OF_ALL and less.low > 0:
        return Ruling(REPRODUCED, best)
    contradicted = best.low > MOST_OF_ALL or (less.high is not None and less.high < 0)
    return Ruling(NOT_REPRODUCED if contradicted else NOT_DECIDABLE, best)


def finds_antecedents(measured: Measured) -> Ruling:
    return _above(measured, ANTECEDENT_LESS, 0.0)


def separator_is_half(measured: Measured) -> Ruling:
    if not _like_the_original(measured):
        return Ruling(NOT_DECIDABLE, measured.numbers.get(SEPARATOR), (_another(),))
    return _above(measured, SEPARATOR, HALF)


def layers_are_alike(measured: Measured) -> Ruling:
    return _above(measured, ALIKE, 0.0)


def separator_hardly_matters(measured: Measured) -> Ruling:
    ratio = measured.numbers.get(GRADIENT)
    if not _like_the_original(measured):
        return Ruling(NOT_DECIDABLE, ratio, (_another(),))
    if ratio is None or ratio.low is None or ratio.high is None or not _enough(measured):
        return Ruling(NOT_DECIDABLE, ratio, (_few("sentences"),))
    if ratio.high < SMALL:
        return Ruling(REPRODUCED, ratio)
    return Ruling(NOT_REPRODUCED if ratio.low > 1 else NOT_DECIDABLE, ratio)


def _above(measured: Measured, name: str, limit: float) -> Ruling:
    number = measured.numbers.get(name)
    if number is None or number.low is None or number.high is None or not _enough(measured):
        return Ruling(NOT_DECIDABLE, number, (_few("sentences or mentions"),))
    if number.low > limit:
        return Ruling(REPRODUCED, number)
    return Ruling(NOT_REPRODUCED if number.high < limit else NOT_DECIDABLE, number)


def _deepest(measured: Measured, table: str) -> list[dict[str, Any]]:
    """The rows of the deepest pretrained encoder."""
    rows = [row for row in measured.table(table) if row["pretrained"]]
    return [row for row in rows if row["depth"] == max(other["depth"] for other in rows)]


def _enough(measured: Measured) -> bool:
    pretrained = measured.numbers.get(LAYERS, Interval(0)).value > 0
    return pretrained and measured.number("sentences looked at closely").value >= FEWEST_SENTENCES


def _like_the_original(measured: Measured) -> bool:
    """Whether the deepest pretrained encoder has at least BERT-base's depth and width."""
    least = {LAYERS: DEEP, WIDTH: WIDE}
    return all(measured.numbers.get(name, Interval(0)).value >= size for name, size in least.items())


def _another() -> Note:
    what = f"a claim about BERT-base, {DEEP} layers of width {WIDE}: another encoder cannot decide it"
    return Note.of("another_encoder", what)


def _few(what: str) -> Note:
    return Note.of("few", f"no pretrained encoder, or too few {what}, for a verdict")


WORK: Mapping[str, Callable[[Reader, Any], Found]] = {
    "shares": look_closely,
    "dependencies": dependencies,
    "antecedents": antecedents_found,
    "names": names_told_apart,
}


class HeadsSettings(Part):
    """Which networks look at how much text."""

    models: tuple[str, ...] = ("paraphrase-MiniLM-L3", "all-MiniLM-L6", "gte-small")  # BERTs: folders, or their names
    data: str = ""  # the folder that holds ud_ewt, gum, gap and encoders; $DEEPWIDE_DATA if left out
    depths: tuple[Positive, ...] = (2, 4)  # layers of the decoders that are trained here; may be none
    text: str = "wikitext-2"  # what they are trained on
    vocab: Positive = 2000
    width: Positive = 64
    steps: Positive = 400
    batch: Positive = 16
    lr: float = 2e-3
    sentences: Positive = 2000  # of the treebank, to choose heads on, and as many again to measure them on
    longest: Positive = 60  # words of a sentence
    documents: Positive = 20  # of GUM, likewise
    window: Positive = 100  # words of a document that are read together
    names: Positive = 300  # examples of GAP, likewise
    closely: Positive = 60  # sentences for shares, entropies, distances and gradients
    directions: Positive = 4  # random directions of the output whose gradients are taken
    seed: Natural = 0  # of the networks trained here, and of the random directions


class HeadsStudy(Study):
    """Per-head measures, dependencies, coreference, and a map of heads."""

    name = "heads"
    question = "What do attention heads look at, and which layer does what?"
    source = Source(
        "Clark, Khandelwal, Levy, Manning 2019, What does BERT look at? An analysis of BERT's attention.",
        "https://arxiv.org/abs/1906.04341",
    )
    rules = (
        Rule(
            Claim(
                "specialised",
                "For certain relations a head finds a word's syntactic head better than any fixed offset.",
                "head and best offset: det 94.3/51.7, dobj 86.8/40.0, poss 80.5/47.7, auxpass 94.1/82.5, prt 99.1/91.4",
            ),
            f"In the deepest pretrained encoder, for {', '.join(RELATIONS)} (those with at least {FEWEST_WORDS} words "
            "in the test part): a head with a direction, and an offset, are chosen on the development part and "
            "measured on the test part. Reproduced if for each the 95% interval of head less offset (sentences "
            "resampled) is above 0, not reproduced if for one it is below 0, and not decidable otherwise or with "
            f"fewer than {FEWEST_RELATIONS} such relations.",
            specialised,
            "least difference of the accuracies of head and offset",
        ),
        Rule(
            Claim(
                "sharp",
                "Heads find the determiner's noun and the object's verb with remarkably high accuracy.",
                "over 75% (recalled); det 94.3, dobj 86.8",
            ),
            f"As above, for {' and '.join(SHARP_RELATIONS)}: reproduced if the 95% intervals of both accuracies are "
            f"above {SHARP:g}, not reproduced if one is below it.",
            sharp,
            "lesser of the two accuracies",
        ),
        Rule(
            Claim(
                "no-head",
                "No single head does well at all relations, but the best is better than the best offset.",
                "34.7 against 26.7",
            ),
            "As above, over all words but punctuation and roots: reproduced if the 95% interval of the best head's "
            f"accuracy is below {MOST_OF_ALL:g} and that of its difference from the best offset above 0; not "
            f"reproduced if one is on the other side. With fewer than {FEWEST_SENTENCES} sentences not decidable.",
            no_head_does_all,
        ),
        Rule(
            Claim(
                "coreference",
                "One head finds antecedents of mentions better than comparing head words does.",
                "head 65.1; the same head word 52, the nearest mention 27 (both recalled)",
            ),
            "In the deepest pretrained encoder, on GUM: how often a mention's head word looks most at the head word of "
            "one of its antecedents, by a head that is chosen on other documents. The rival is the last mention with "
            "the same head word, and without one the mention before. Reproduced if the 95% interval of the difference "
            "(documents resampled) is above 0, not reproduced if below.",
            finds_antecedents,
        ),
        Rule(
            Claim(
                "separator",
                "In the middle layers over half of the attention goes to [SEP].",
                "layers 6 to 10 of 12",
            ),
            f"In the deepest pretrained encoder: the mean share of attention to [SEP] over the heads of layers "
            f"{MIDDLE[0]:.0%} to {MIDDLE[1]:.0%} of the depth. Reproduced if its 95% interval over sentences is above "
            f"{HALF:g}, not reproduced if below. A claim about BERT-base: with fewer than {DEEP} layers or a width "
            f"below {WIDE} not decidable.",
            separator_is_half,
        ),
        Rule(
            Claim(
                "unimportant",
                "From layer 5 on attention to [SEP] hardly changes what BERT computes: its gradients are small.",
                "figure on gradient-based importance",
            ),
            f"In the same encoder, over the layers from {FROM_LAYER:.0%} of the depth on: the mean gradient of the "
            "output with respect to attention to [SEP] over that to other tokens. Reproduced if its 95% interval over "
            f"sentences is below {SMALL:g}, not reproduced if above 1; not decidable as above.",
            separator_hardly_matters,
        ),
        Rule(
            Claim("alike", "Heads of one layer are often alike.", "map of heads by Jensen–Shannon divergence"),
            "In the deepest pretrained encoder: the mean divergence between heads of different layers less that "
            "between heads of one layer. Reproduced if its 95% interval over sentences is above 0, not if below.",
            layers_are_alike,
        ),
    )
    Settings = HeadsSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "models": ("paraphrase-MiniLM-L3",), "depths": (2,), "width": 32, "steps": 40, "sentences": 40,
            "documents": 3, "names": 30, "closely": 10,
        },
        "cpu": {},
        "paper": {"models": ("bert-base-uncased",), "depths": (), "sentences": 2000, "documents": 130, "names": 2000,
                  "closely": 1000},
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 600}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "tokenizers": "train", "scipy": "fit"}
    method = (
        "Networks are run on single sentences, and the attention of every head is taken. Pieces are joined to words: "
        "summed where they are looked at, averaged where they look. A head guesses for every word another word, the "
        "one that it looks at most, or in the other direction the one that looks at it most; offsets are −5 to 5 "
        "words. Dependencies: English Web Treebank, heads and offsets chosen on its development part, measured on its "
        "test part. Coreference: GUM in windows of whole sentences, documents parted by the hash of their names; GAP, "
        "where the head chooses the one of two names that the pronoun looks at more, or that looks at it more. "
        "Intervals by 1000 resamples of sentences, documents or examples. Entropy and distances are smoothed as in the "
        "original. Importance is |∂f/∂A|, f the mean of the last hidden states, scaled to length 1, along a random "
        "direction. Decoders are trained here on plain text with byte pairs; they see only what came before."
    )
    differences = (
        "The original: BERT-base (12 layers of width 768, 12 heads) on Wikipedia segments of 128 tokens, Penn Treebank "
        "with Stanford dependencies, CoNLL-2012 coreference, the head chosen and measured on the same data, gradients "
        "of the loss of masked tokens, two segments and so two [SEP] per text. Here: single sentences with one [SEP]; "
        "encoders of 3, 6 and 12 layers of width 384 that were distilled and then trained on pairs of sentences, so "
        "that attention may serve another end, and that have no head for masked tokens; they share width, heads and "
        "vocabulary but not their training, so that they say little about depth alone. Universal Dependencies differ: "
        "prepositions depend on their nouns, so pobj has no counterpart; dobj is obj, poss nmod:poss, auxpass "
        "aux:pass, prt compound:prt. An earlier run, on half of these sentences and with the nearest mention as the "
        "only rival, was known when the rules were written. Preset paper needs bert-base-uncased, which the machine "
        "that made the published results could not fetch."
    )

    def sweeps(self, settings: HeadsSettings) -> Mapping[str, Mapping[str, Any]]:
        if not settings.depths:
            return {}
        run = {
            "model": {"width": settings.width},
            "data": {"source": settings.text, "tokeniser": "bpe", "vocab": settings.vocab},
            "context": 128,
            "steps": settings.steps,
            "batch": settings.batch,
            "optimiser": {"lr": settings.lr},
        }
        return {"heads": {"seeds": [settings.seed], "run": run, "grid": {"depth": sorted(settings.depths)}}}

    def inputs(self, settings: HeadsSettings) -> Sequence[Path]:
        folders = [folder_of(model, settings.data) for model in settings.models]
        needed = [
            folder / name for folder in folders for name in ("config.json", "model.safetensors", "tokenizer.json")
        ]
        for path in needed:
            if not path.is_file():
                raise DeepwideError(f"{path.parent} has no {path.name}: it must be a BERT in Hugging Face's layout.")
        return [*needed, *corpora(settings.data).values()]

    def measure(self, settings: HeadsSettings, workplace: Workplace) -> Measured:
        runs = finished_runs(workplace.runs.values()) if settings.depths else []
        networks: list[tuple[str, Callable[[], Reader]]] = [
            (model, partial(pretrained_reader, model, settings.data)) for model in settings.models
        ]
        networks += [
            (f"decoder of {run.config['model']['depth']} layers", partial(trained_reader, run)) for run in runs
        ]
        tables: dict[str, list[dict[str, Any]]] = {}
        numbers: dict[str, Interval] = {"sentences looked at closely": Interval(settings.closely)}
        for name, load in networks:
            for what, work in WORK.items():
                part = workplace.part(f"{what}, {name}", partial(look, name, load, work, settings))
                for table, rows in part["tables"].items():
                    tables.setdefault(table, []).extend(rows)
                if part["pretrained"]:  # in the order of the settings: the deepest comes last or is asked for
                    tables.setdefault("encoders", []).append({key: part[key] for key in ("depth", "width", "numbers")})
        encoders = tables.pop("encoders", [])
        numbers[LAYERS], numbers[WIDTH] = Interval(0), Interval(0)
        deepest = max((row["depth"] for row in encoders), default=0)
        for row in encoders:
            if row["depth"] == deepest:
                numbers |= {key: Interval(*value) for key, value in row["numbers"].items()}
                numbers[LAYERS], numbers[WIDTH] = Interval(deepest), Interval(row["width"])
        tables["sources"] = [file_row(path) for path in self.inputs(settings)]
        return Measured(numbers=numbers, tables=tables)

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import head_map, head_plane, interval_chart, sentence_attention, share_lines

        by_layer = _deepest(measured, "by_layer")
        name = by_layer[0]["model"] if by_layer else ""
        charts = {}
        if by_layer:
            under = "share of words whose syntactic head the layer's best head finds; head chosen on other sentences"
            charts["relations"] = head_map(
                by_layer, "relation", "layer", "accuracy", f"Which layer does what, {name}", under
            )
        if rows := _deepest(measured, "plane"):
            under = "heads that look alike are near each other; by Jensen–Shannon divergence"
            charts["plane"] = head_plane(rows, f"The heads of {name}", under)
        if rows := _deepest(measured, "example"):
            charts["example"] = sentence_attention(
                rows, "Where single heads look", f"{name}, the best head of each relation"
            )
        kinds = ("next", "previous", "[CLS]", "[SEP]", "punctuation")
        lines = [
            {"layer": row["layer"], "share": row[kind], "kind": kind, "panel": row["model"]}
            for row in measured.table("layers")
            for kind in kinds
        ]
        charts["shares"] = share_lines(lines, "What layers look at", "mean share of attention over heads and sentences")
        rows = [
            {"label": row["relation"], "value": row[value], "low": row[low], "high": row[high], "source": source,
             "panel": row["model"]}
            for row in measured.table("relations")
            if row["relation"] in (*RELATIONS, ALL)
            for source, value, low, high in (("best head", "accuracy", "low", "high"),
                                             ("best offset", "offset_accuracy", "offset_low", "offset_high"))
        ]  # fmt: skip
        if rows:
            charts["accuracy"] = interval_chart(
                rows, "Best head against best offset", "share of words whose syntactic head is found", panels="panel",
                width=220,
            )  # fmt: skip
        return charts
