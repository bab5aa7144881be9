"""Networks that read words, and what the study of heads measures on them: shares, dependencies, antecedents, names.

Letters: L layers, H heads, T tokens, W words, R relations, S sentences, 2 directions: to a word's head, and back.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from deepwide.answers import Interval
from deepwide.data import GapExample, Sentence, read_conllu, read_gap
from deepwide.errors import DeepwideError
from deepwide.probes import (
    NEITHER,
    antecedents_hit,
    attention_importance,
    attention_patterns,
    entropies,
    head_distances,
    looked_at,
    looks_more,
    most_attended,
    offset_guess,
    scaled_to_plane,
    word_attention,
)
from deepwide.quantities import Floats
from deepwide.run import RunFolder, RunRecord
from deepwide.studies.estimates import interval_row, mean_interval
from deepwide.studies.public_data import public_file

if TYPE_CHECKING:
    import torch

    from deepwide.model import Transformer

ALL = "all"  # relations together, without punctuation and roots
SHOWN = ("det", "obj", "nmod:poss")  # relations whose best heads are drawn on the example
MAPPED = (
    *SHOWN,
    "aux:pass",
    "compound:prt",
    "nsubj",
    "amod",
    "case",
    "advmod",
    ALL,
)  # whose best heads are shown by layer
MIDDLE = (6 / 12, 10 / 12)  # of the layers: where over half of attention goes to [SEP]
FROM_LAYER = 5 / 12  # from where on attention to [SEP] hardly matters
OFFSETS = tuple(offset for offset in range(-5, 6) if offset)
RESAMPLES = 1000
EXAMPLE = "The old captain gave his crew the last bread before the storm was seen ."
SEPARATOR = "share of attention to [SEP] in the middle layers"
GRADIENT = "gradient at [SEP] over that at other tokens, later layers"
ALIKE = "distance between heads of different layers less that within layers"
ALL_WORDS, ALL_LESS = "best head, all relations", "best head less best offset, all relations"
ANTECEDENT = "best head, antecedents"
ANTECEDENT_LESS = "best head less nearest mention with the same head word, antecedents"
Found = tuple[dict[str, list[dict[str, Any]]], dict[str, Interval]]  # tables, and numbers that rules may need


class Amounts(Protocol):
    """How much text is looked at, and where it is."""

    @property
    def data(self) -> str: ...
    @property
    def sentences(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def names(self) -> int: ...
    @property
    def closely(self) -> int: ...
    @property
    def directions(self) -> int: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class Reader:
    """A network, and how it reads words: the tokens, and the word that each belongs to."""

    model: "Transformer"
    tokens: Callable[[Sequence[str]], tuple[list[int], list[int]]]
    special: Mapping[str, int]  # tokens that are no words
    pretrained: bool

    def pattern(self, tokens: Sequence[int]) -> Floats:
        """L × H × T × T."""
        import torch

        return np.asarray(attention_patterns(self.model, torch.tensor([list(tokens)]))[:, 0].double().numpy())

    def words(self, words: Sequence[str]) -> Floats | None:
        """Attention between words, or none where a word has no token or the sentence is too long to be read."""
        tokens, word_of_token = self.tokens(words)
        if len(tokens) > self.model.design.shape.context or set(range(len(words))) - set(word_of_token):
            return None
        return word_attention(self.pattern(tokens), word_of_token)


def folder_of(model: str, data: str) -> Path:
    """The folder of a model: a path, or a name in the folder `encoders` of the data."""
    if Path(model).is_dir():
        return Path(model)
    home = data or os.environ.get("DEEPWIDE_DATA")
    if home is None:
        raise DeepwideError(f"there is no folder {model}: set DEEPWIDE_DATA to the folder that holds encoders/{model}.")
    return Path(home) / "encoders" / model


def corpora(data: str) -> dict[str, Path]:
    def file(collection: str, name: str) -> Path:
        return public_file(data, collection, name, inside=True)

    return {
        "development": file("ud_ewt", "en_ewt-ud-dev.conllu.gz"),
        "test": file("ud_ewt", "en_ewt-ud-test.conllu.gz"),
        "gum": file("gum", "gum_dep_coref.tar.gz"),
        "gap development": file("gap", "gap-development.tsv"),
        "gap test": file("gap", "gap-test.tsv"),
    }


def pretrained_reader(model: str, data: str) -> Reader:
    from tokenizers import Tokenizer

    from deepwide.model import load_folder

    folder = folder_of(model, data)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(words: Sequence[str]) -> tuple[list[int], list[int]]:
        encoding = tokenizer.encode(list(words), is_pretokenized=True)
        return encoding.ids, [NEITHER if word is None else word for word in encoding.word_ids]

    numbers = {name: tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")}
    special = {name: number for name, number in numbers.items() if number is not None}
    return Reader(load_folder(folder).eval(), tokens, special, pretrained=True)


def trained_reader(run: RunRecord) -> Reader:
    from deepwide.tasks import Language
    from deepwide.training import resolve, task_of, trained_model

    folder = RunFolder.open(run.path)
    task = task_of(resolve(folder.config), folder.data_fingerprint)
    assert isinstance(task, Language)
    tokeniser = task.corpus.tokeniser

    def tokens(words: Sequence[str]) -> tuple[list[int], list[int]]:
        pieces = [each[:-1].tolist() for each in tokeniser.encode(f" {word}".encode() for word in words)]  # no ends
        word_of_token = [number for number, word in enumerate(pieces) for _ in word]
        return [piece for word in pieces for piece in word], word_of_token

    return Reader(trained_model(folder), tokens, {}, pretrained=False)


def look(
    name: str, load: Callable[[], Reader], work: Callable[[Reader, Any], Found], settings: Amounts
) -> dict[str, Any]:
    """A part of the measuring: tables whose rows name the network, and numbers that rules may need."""
    reader = load()
    depth = reader.model.design.shape.depth
    tables, numbers = work(reader, settings)
    about = {"model": name, "depth": depth, "pretrained": reader.pretrained}
    return {
        "pretrained": reader.pretrained,
        "depth": depth,
        "width": reader.model.design.shape.width,
        "tables": {table: [about | row for row in rows] for table, rows in tables.items()},
        "numbers": {key: (number.value, number.low, number.high) for key, number in numbers.items()},
    }


def _sentences(path: Path, settings: Amounts, count: int) -> list[Sentence]:
    """So many sentences of a treebank, of at least two words and not too long, spread evenly over its kinds of text."""
    usable = [sentence for sentence in read_conllu(path) if 2 <= len(sentence.words) <= settings.longest]
    count = min(count, len(usable))
    return [usable[number * len(usable) // count] for number in range(count)]


def look_closely(reader: Reader, settings: Amounts) -> Found:
    """Shares, entropies, distances and gradients, on few sentences."""
    shape = reader.model.design.shape
    L, H = shape.depth, shape.heads
    shares: list[dict[str, Floats]] = []
    broad: list[Floats] = []
    apart: list[Floats] = []
    steep: list[tuple[Floats, Floats]] = []  # by layer: at [SEP], and at other tokens
    for number, sentence in enumerate(_sentences(corpora(settings.data)["test"], settings, settings.closely)):
        tokens, word_of_token = reader.tokens(sentence.words)
        pattern = reader.pattern(tokens)
        stops = [t for t, word in enumerate(word_of_token) if word != NEITHER and sentence.tags[word] == "PUNCT"]
        special = {name: [t for t, token in enumerate(tokens) if token == its] for name, its in reader.special.items()}
        shares.append(looked_at(pattern, {"[CLS]": [], "[SEP]": []} | special | {"punctuation": stops}))
        broad.append(entropies(pattern))
        apart.append(head_distances(pattern))
        gradient = _gradient(reader, tokens, settings, number)
        ends = special.get("[SEP]", [])
        others = [t for t in range(len(tokens)) if t not in ends]
        at_ends = gradient[..., ends].mean((1, 2, 3)) if ends else np.zeros(L)
        steep.append((at_ends, gradient[..., others].mean((1, 2, 3))))
    mean = {name: np.mean([share[name] for share in shares], axis=0) for name in shares[0]}
    entropy, distance = np.mean(broad, axis=0), np.mean(apart, axis=0)
    plane = scaled_to_plane(distance)
    heads = [
        {"layer": layer + 1, "head": head + 1, "entropy": float(entropy[layer, head])}
        | {name: float(share[layer, head]) for name, share in mean.items()}
        for layer in range(L)
        for head in range(H)
    ]
    layers = [
        {"layer": layer + 1, "entropy": float(entropy[layer].mean())}
        | {name: float(share[layer].mean()) for name, share in mean.items()}
        | {"gradient_at_separator": float(np.mean([at[layer] for at, _ in steep]))}
        | {"gradient_elsewhere": float(np.mean([at[layer] for _, at in steep]))}
        for layer in range(L)
    ]
    points = [
        {"x": float(x), "y": float(y), "layer": row["layer"], "head": row["head"], "role": _role(row)}
        for (x, y), row in zip(plane, heads, strict=True)
    ]
    same = np.kron(np.eye(L, dtype=bool), np.ones((H, H), dtype=bool)) & ~np.eye(L * H, dtype=bool)
    other = ~np.kron(np.eye(L, dtype=bool), np.ones((H, H), dtype=bool))
    numbers = {}
    if L > 1 and H > 1:
        numbers[ALIKE] = mean_interval([float(d[other].mean() - d[same].mean()) for d in apart])
    if reader.special:
        middle = [layer for layer in range(L) if MIDDLE[0] <= (layer + 1) / L <= MIDDLE[1]]
        late = [layer for layer in range(L) if (layer + 1) / L >= FROM_LAYER]
        numbers[SEPARATOR] = mean_interval([float(share["[SEP]"][middle].mean()) for share in shares])
        numbers[GRADIENT] = mean_interval([float(at[late].mean() / rest[late].mean()) for at, rest in steep])
    return {"heads": heads, "layers": layers, "plane": points}, numbers


def _role(row: Mapping[str, Any]) -> str:
    """What a head mostly looks at, by the thresholds of the original."""
    for kind, least in (("next", 0.5), ("previous", 0.5), ("[SEP]", 0.6), ("[CLS]", 0.6), ("punctuation", 0.6)):
        if row[kind] > least:
            return kind
    return "nothing special"


def _gradient(reader: Reader, tokens: Sequence[int], settings: Amounts, number: int) -> Floats:
    """|∂f/∂A|, the mean over random directions of the output: L × H × T × T."""
    import torch

    from deepwide.model import generator_for

    width = reader.model.design.shape.width
    total: Floats | float = 0.0
    for direction in range(settings.directions):
        generator = generator_for(settings.seed, f"direction {number} {direction}")
        u_D = torch.nn.functional.normalize(torch.randn(width, generator=generator), dim=0)

        def along(h_BTD: "torch.Tensor", u_D: "torch.Tensor" = u_D) -> "torch.Tensor":
            return torch.nn.functional.normalize(h_BTD.mean(1), dim=-1)[0] @ u_D

        total = total + attention_importance(reader.model, torch.tensor([list(tokens)]), along)[:, 0].double().numpy()
    return np.asarray(total) / settings.directions


def dependencies(reader: Reader, settings: Amounts) -> Found:
    """For every relation the best head and the best offset, chosen on one part and measured on another."""
    files = corpora(settings.data)
    parts = [_sentences(files[part], settings, settings.sentences) for part in ("development", "test")]
    names = [*sorted({relation for part in parts for s in part for relation in s.relations} - {"root", "punct"}), ALL]
    shape = reader.model.design.shape
    hits: list[Floats] = []  # per part: S × R × 2 × L × H
    guesses: list[Floats] = []  # S × R × offsets
    totals: list[Floats] = []  # S × R
    for sentences in parts:
        size = (len(sentences), len(names))
        hits.append(np.zeros((*size, 2, shape.depth, shape.heads), dtype=np.float32))
        guesses.append(np.zeros((*size, len(OFFSETS)), dtype=np.float32))
        totals.append(np.zeros(size, dtype=np.float32))
        for s, sentence in enumerate(sentences):
            attention = reader.words(sentence.words)
            if attention is None:
                continue
            there, back = most_attended(attention)
            fixed = [offset_guess(len(sentence.words), offset) for offset in OFFSETS]
            for word, (head, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
                if relation in ("root", "punct"):
                    continue
                right = np.stack([there[..., word] == head, back[..., word] == head])
                for r in (names.index(relation), len(names) - 1):
                    hits[-1][s, r] += right
                    guesses[-1][s, r] += [guess[word] == head for guess in fixed]
                    totals[-1][s, r] += 1
    rows: list[dict[str, Any]] = []
    by_layer: list[dict[str, Any]] = []
    for r, relation in enumerate(names):
        if not all(total[:, r].sum() for total in totals):
            continue
        score = hits[0][:, r].sum(0)  # on the development part: 2 × L × H
        direction, layer, head = (int(i) for i in np.unravel_index(score.argmax(), score.shape))
        best = int(guesses[0][:, r].sum(0).argmax())
        mine, fixed_hits, words = hits[1][:, r, direction, layer, head], guesses[1][:, r, best], totals[1][:, r]
        accuracy, offset, less = (_share(values, words) for values in (mine, fixed_hits, mine - fixed_hits))
        rows.append(
            {"relation": relation, "words": int(words.sum()), "layer": layer + 1, "head": head + 1}
            | {"direction": ("to its head", "from its head")[direction], **interval_row("accuracy", accuracy)}
            | {"offset": OFFSETS[best], "offset_accuracy": offset.value, "offset_low": offset.low}
            | {"offset_high": offset.high, "less_offset": less.value, "less_low": less.low, "less_high": less.high}
        )
        if relation in MAPPED:
            for each in range(shape.depth):
                way, one = (int(i) for i in np.unravel_index(score[:, each].argmax(), score[:, each].shape))
                value = float(hits[1][:, r, way, each, one].sum() / words.sum())
                by_layer.append({"relation": relation, "layer": each + 1, "head": one + 1, "accuracy": value})
    every = next(row for row in rows if row["relation"] == ALL)
    numbers = {
        ALL_WORDS: Interval(every["accuracy"], every["low"], every["high"]),
        ALL_LESS: Interval(every["less_offset"], every["less_low"], every["less_high"]),
    }
    return {"relations": rows, "by_layer": by_layer, "example": _example(reader, rows)}, numbers


def _example(reader: Reader, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Where the best heads of three relations look in a sentence of ours."""
    words = EXAMPLE.split()
    attention = reader.words(words)
    chosen = [row for name in SHOWN for row in rows if row["relation"] == name]
    if attention is None:
        return []
    return [
        {"head": f"{row['relation']}: layer {row['layer']}, head {row['head']}", "row": i, "looking": words[i]}
        | {"column": j, "looked_at": words[j]}
        | {"attention": round(float(attention[row["layer"] - 1, row["head"] - 1, i, j]), 4)}
        for row in chosen
        for i in range(len(words))
        for j in range(len(words))
    ]


def _share(hits_S: Floats, words_S: Floats) -> Interval:
    """Σ hits / Σ words with its 95% interval from resampled sentences, documents or examples."""
    draw = np.random.default_rng(0)
    counts = draw.multinomial(len(words_S), np.full(len(words_S), 1 / len(words_S)), size=RESAMPLES).astype(np.float64)
    below = counts @ words_S
    values = (counts @ hits_S)[below > 0] / below[below > 0]
    low, high = np.quantile(values, (0.025, 0.975))
    return Interval(float(hits_S.sum() / words_S.sum()), float(low), float(high))


def _windows(sentences: Sequence[Sentence], longest: int) -> Iterator[list[Sentence]]:
    """Sentences of one document, as many together as have so many words."""
    window: list[Sentence] = []
    for sentence in sentences:
        if window and sum(len(each.words) for each in window) + len(sentence.words) > longest:
            yield window
            window = []
        window.append(sentence)
    if window:
        yield window


def antecedents_found(reader: Reader, settings: Amounts) -> Found:
    """How often a mention looks most at one of its antecedents; heads chosen on other documents."""
    documents: dict[str, list[Sentence]] = {}
    for sentence in read_conllu(corpora(settings.data)["gum"], "dep"):
        documents.setdefault(sentence.document, []).append(sentence)
    order = sorted(documents, key=lambda name: hashlib.sha256(name.encode()).digest())
    parts = [order[: settings.documents], order[settings.documents : 2 * settings.documents]]
    if not parts[1]:
        raise DeepwideError(f"GUM has {len(order)} documents: ask for at most {len(order) // 2} on either side.")
    shape = reader.model.design.shape
    hits: list[Floats] = []  # per document: L × H
    rules: list[list[float]] = []  # per document: the nearest mention right, the same head word right, mentions
    for name in (name for part in parts for name in part):
        right, counts = np.zeros((shape.depth, shape.heads)), np.zeros(3)
        for window in _windows(documents[name], settings.window):
            words = [word for sentence in window for word in sentence.words]
            attention = reader.words(words) if len(words) > 1 else None
            if attention is None:
                continue
            for place, antecedents, before, alike in _mentions(window):
                right = right + antecedents_hit(attention, place, sorted(antecedents))
                counts += (before in antecedents, alike in antecedents, 1)
        hits.append(right)
        rules.append(counts.tolist())
    score = np.sum(hits[: settings.documents], axis=0)
    layer, head = (int(i) for i in np.unravel_index(score.argmax(), score.shape))
    chosen = np.array([each[layer, head] for each in hits[settings.documents :]])
    nearest_D, same_D, mentions_D = np.array(rules[settings.documents :]).T
    if not mentions_D.sum():
        return {"antecedents": []}, {}
    accuracy, nearest, same, less = (
        _share(values, mentions_D) for values in (chosen, nearest_D, same_D, chosen - same_D)
    )
    row = {
        "mentions": int(mentions_D.sum()), "layer": layer + 1, "head": head + 1, **interval_row("accuracy", accuracy),
        "nearest": nearest.value, "nearest_low": nearest.low, "nearest_high": nearest.high,
        "same_word": same.value, "same_word_low": same.low, "same_word_high": same.high,
        "less_same_word": less.value, "less_low": less.low, "less_high": less.high,
    }  # fmt: skip
    return {"antecedents": [row]}, {ANTECEDENT: accuracy, ANTECEDENT_LESS: less}


def _mentions(window: Sequence[Sentence]) -> Iterator[tuple[int, set[int], int, int]]:
    """Of every mention that has antecedents in the window: its head word, theirs, and two guesses at one of them.

    The guesses are the mention before it, and the last one with the same head word (without one, the mention before).
    """
    words = [word.lower() for sentence in window for word in sentence.words]
    earlier: list[tuple[str, int]] = []
    start = 0
    for sentence in window:
        for mention in sentence.mentions:
            place = start + mention.head
            antecedents = {at for entity, at in earlier if entity == mention.entity and at != place}
            others = [at for _, at in earlier if at != place]
            if antecedents:
                alike = [at for at in others if words[at] == words[place]]
                yield place, antecedents, others[-1], (alike or others)[-1]
            earlier.append((mention.entity, place))
        start += len(sentence.words)


def names_told_apart(reader: Reader, settings: Amounts) -> Found:
    """GAP: which of two names a pronoun means, where it means one of them; the baseline is the nearer name."""
    files = corpora(settings.data)
    shape = reader.model.design.shape
    right: list[list[Floats]] = [[], []]  # 2 × L × H each
    nearer: list[float] = []
    for part, name in enumerate(("gap development", "gap test")):
        examples = [example for example in read_gap(files[name]) if sum(example.meant) == 1]
        for example in examples[: settings.names]:
            meant, other = example.names if example.meant[0] else example.names[::-1]
            attention = reader.words(example.words)
            if attention is None:
                continue
            right[part].append(np.stack(looks_more(attention, example.pronoun, meant, other)))
            if part:
                nearer.append(float(_distance(example, meant) < _distance(example, other)))
    if not right[0] or not right[1]:
        return {"names": []}, {}
    score = np.sum(right[0], axis=0)
    direction, layer, head = (int(i) for i in np.unravel_index(score.argmax(), (2, shape.depth, shape.heads)))
    chosen, baseline = np.array([each[direction, layer, head] for each in right[1]]), np.array(nearer)
    ones = np.ones(len(chosen))
    accuracy, near, less = (_share(values, ones) for values in (chosen, baseline, chosen - baseline))
    row = {
        "examples": len(chosen), "layer": layer + 1, "head": head + 1,
        "direction": ("from the pronoun", "to the pronoun")[direction], **interval_row("accuracy", accuracy),
        "nearer": near.value, "less_nearer": less.value, "less_low": less.low, "less_high": less.high,
    }  # fmt: skip
    return {"names": [row]}, {}


def _distance(example: GapExample, name: Sequence[int]) -> int:
    return min(abs(example.pronoun - word) for word in name)
