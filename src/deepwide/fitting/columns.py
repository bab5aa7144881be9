"""Which column of somebody's table is which of ours, and in what unit it counts.

Names that are often used are known as they are written (`NAMES`, ours first). Others are read as words, so that
"Number of layers", "config.model.n_layers" and "numLayers" are the same, and "Tokens (B)" counts in billions. Every
guess is noted. A name that says more than a word we know (val/c4_loss) is not guessed.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from deepwide.answers import Note
from deepwide.errors import DeepwideError, quoted
from deepwide.fitting.runs import BLOCK_MATRICES, COLUMNS
from deepwide.fitting.words import note
from deepwide.quantities import parse_count

NAMES = {  # what other people call our columns, ours first
    "depth": ("depth", "n_layer", "n_layers", "num_hidden_layers", "num_layers", "layers"),
    "width": ("width", "d_model", "n_embd", "hidden_size"),
    "block_params": ("block_params", "non_embedding_params", "n_params_no_embed", "params_no_embed"),
    "total_params": ("total_params", "params", "n_params", "num_params", "parameter_count", "N"),
    "tokens": ("tokens", "train_tokens", "num_tokens", "D"),
    "train_flops": ("train_flops", "flops"),
    "loss": ("loss", "validation_loss", "val_loss", "final_loss"),
    "seed": ("seed",),
    "lr": ("lr", "learning_rate"),
    "status": ("status",),
}
assert tuple(NAMES) == COLUMNS
COUNTS = ("block_params", "total_params", "tokens", "train_flops")  # may be written 125M, or count in millions
WHOLE = ("depth", "width")  # may be written 1,280
BLANK = ("", "-", "–", "—", "?", "na", "n/a", "none", "null")

_FOLDERS = {"config", "cfg", "summary", "args", "hparams", "metrics", "model", "arch", "optim", "optimizer", "trainer"}
_COUNTERS = {"throughput", "perf", "performance", "stats"}  # folders of totals, and of rates
_MANY = {"n", "num", "number", "of", "no", "count", "total"}
_LAYERS = {"layer", "layers", "block", "blocks", "depth", "nlayer", "nlayers"}
_WIDTHS = (
    "width", "d_model", "dmodel", "dim", "n_embd", "nembd", "n_embed", "embed_dim", "emb_dim", "embedding_dim",
    "embedding_size", "hidden_size", "hidden_width", "hidden_dim", "hidden_dimension", "hidden",
)  # fmt: skip
_PARAMS = {"param", "params", "parameter", "parameters"}
_EMBEDDINGS = {"emb", "embd", "embed", "embedding", "embeddings"}
_NO_EMBEDDINGS = re.compile(r"_?(non|no|without|wo|w_o|excl|excluding)_?(emb|embd|embed|embedding|embeddings)(?=_|$)")
_TRAINED = {"train", "training", "trained", "seen", "consumed", "processed", "data", "budget", "cumulative"}
_HELD_OUT = {"val", "valid", "validation", "eval", "evaluation", "test", "heldout", "held", "out", "dev"}
_SUMMARY = {"final", "last", "best", "min", "mean", "avg", "average", "ce", "lm", "mlm", "cross", "entropy"}
_OTHERS = {
    "seed": ("seed", "random_seed"),
    "lr": ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr", "max_learning_rate", "peak_learning_rate"),
    "status": ("status", "state"),
}
_LETTERS = {"depth": "L", "width": "d"}
_VOCABULARY = {"vocab", "vocab_size", "n_vocab", "num_vocab", "vocabulary", "vocabulary_size"}
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")
_UNITS = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9, "t": 1e12}
_UNITS |= {"trillion": 1e12, "g": 1e9, "mio": 1e6}
_UNIT = re.compile(
    r"^(.*?[a-z].*?)[\s_(\[,/-]+(?:in[\s_]+)?(k|m|b|g|t|bn|mio|(?:thou|mill?i|billi|trilli)\w*)[)\]]*$", re.I
)
_SAME_LOSS = 12  # ranks below are losses on held-out data; what is above is the same in bits, or of training
_OF_TRAINING = 14  # rank of a loss that is not of held-out data
LIKE_A_LOSS = re.compile("loss|ppl|perplexity|bpb|nll", re.IGNORECASE)
_SAME_COUNT = 0.005  # relative
MOST = 1e40  # of anything that is counted: beyond it a table is not about networks
_SCALES = {1e3: "thousands", 1e6: "millions", 1e9: "billions", 1e12: "trillions"}


class Guess(NamedTuple):
    """What a name is taken to mean; the least rank is the surest."""

    column: str
    rank: int
    scale: float = 1.0
    perplexity: bool = False
    bits: bool = False


def embedding_params(theirs: Iterable[str]) -> tuple[str, float] | None:
    """The column that counts the parameters of embeddings, and by how many, if there is one.

    >>> embedding_params(["n_embd", "params_no_embed", "Embedding params (M)"])
    ('Embedding params (M)', 1000000.0)
    """
    for name in theirs:
        words, scale = _words(name)
        text, rest = "_".join(words), set(words)
        ours = rest & _PARAMS and rest & _EMBEDDINGS and rest <= _PARAMS | _EMBEDDINGS | _MANY
        if ours and not _NO_EMBEDDINGS.search(text):
            return name, scale
    return None


def meaning(name: str) -> Guess | None:
    """Which of our columns a name is, if it says so.

    >>> meaning("config.model.numLayers").column, meaning("Non-embedding params (M)").scale, meaning("val/c4_loss")
    ('depth', 1000000.0, None)
    """
    for ours, usual in NAMES.items():
        if name in usual:
            return Guess(ours, usual.index(name))
    words, scale = _words(name)
    text, rest = "_".join(words), set(words)
    if scale != 1.0:
        return _count(text, rest, scale)
    if text in ("depth_layers", "depth_in_layers") or (
        len(rest & _LAYERS) == 1 and rest <= _LAYERS | _MANY | {"hidden", "transformer"}
    ):
        return Guess("depth", 10)
    if text in _WIDTHS:
        return Guess("width", 10 + _WIDTHS.index(text))
    for ours, others in _OTHERS.items():
        if text in others:
            return Guess(ours, 10)
    return _loss(rest) or _count(text, rest, 1.0)


def _words(name: str) -> tuple[list[str], float]:
    """The words of a name, without folders and its unit, and how many it counts by."""
    plain, scale = _unit(name)
    words = split_name(plain)
    while len(words) > 1 and (words[0] in _FOLDERS or (words[0] in _COUNTERS and words[1] == "total")):
        words = words[1:]
    return words, scale


def split_name(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> split_name("trainer/numLayers.v2")
    ['trainer', 'num', 'layers', 'v', '2']
    """
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _unit(name: str) -> tuple[str, float]:
    """The name without its unit, and how many it counts by."""
    match = _UNIT.match(name.strip())
    if match is None:
        return name, 1.0
    word = match[2].lower()
    scale = _UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or 1.0
    return (match[1], scale) if scale != 1.0 else (name, 1.0)


def _count(text: str, rest: set[str], scale: float) -> Guess | None:
    blocks = _NO_EMBEDDINGS.sub("", text)
    if blocks != text and set(re.findall(r"[a-z]+", blocks)) <= _PARAMS | _MANY | {"size"}:
        return Guess("block_params", 10, scale)
    if rest & _PARAMS:
        if rest <= _PARAMS | _MANY | {"trainable"}:
            return Guess("total_params", 10, scale)
        if rest & {"active", "activated"} and rest <= _PARAMS | _MANY | {"active", "activated"}:
            return Guess("total_params", -1, scale)  # of a mixture of experts, what a token uses
    if rest & {"token", "tokens"} and rest <= {"token", "tokens"} | _MANY | _TRAINED:
        return Guess("tokens", 10, scale)
    if rest & {"flop", "flops"} and rest <= {"flop", "flops", "compute"} | _MANY | _TRAINED:
        return Guess("train_flops", 10, scale)
    return None


def _loss(rest: set[str]) -> Guess | None:
    known = _HELD_OUT | _SUMMARY
    if (rest & {"loss", "nll", "xent"} or rest == {"cross", "entropy"}) and rest <= known | {"loss", "nll", "xent"}:
        return Guess("loss", 10 if rest & _HELD_OUT else 11)
    if rest & {"ppl", "perplexity"} and rest <= known | {"ppl", "perplexity"}:
        return Guess("loss", 12, perplexity=True)
    bits = rest & {"bpb", "bpc", "bpd"} or {"bits", "per"} <= rest
    if bits and rest <= known | {"bpb", "bpc", "bpd", "bits", "per", "byte", "char", "character"}:
        return Guess("loss", 13, bits=True)
    if rest in ({"train", "loss"}, {"training", "loss"}, {"train", "loss", "final"}, {"final", "training", "loss"}):
        return Guess("loss", _OF_TRAINING)
    return None


def guess_columns(
    theirs: Sequence[str], given: Mapping[str, str], ignored: Iterable[str], table: str
) -> tuple[dict[str, str], list[Note]]:
    """Ours to theirs: as given, and guessed for the others."""
    chosen, notes = dict(given), []
    guesses: dict[str, list[tuple[int, str]]] = {}
    for name in theirs:
        if (guess := meaning(name)) is not None and name not in given.values():
            guesses.setdefault(guess.column, []).append((guess.rank, name))
    if set(_LETTERS.values()) <= {*theirs} - {*given.values()}:  # alone, L may be a loss, and d anything
        guesses = {ours: [(0, name)] for ours, name in _LETTERS.items()} | guesses
    if "block_params" in {*guesses, *given} and "total_params" not in {*guesses, *given}:  # beside it, of what else?
        guesses["total_params"] = [(10, name) for name in theirs if split_name(name) == ["total"]]
    guesses = {ours: names for ours, names in guesses.items() if names}
    for ours in NAMES:
        if ours in given or ours in set(ignored) or ours not in guesses:
            continue
        rank, name = min(guesses[ours], key=lambda pair: pair[0])
        chosen[ours] = name
        if name != ours:
            notes.append(note("column-guessed", column=ours, name=name, table=table))
        if rank < 0:
            notes.append(note("experts-active", name=name))
        others = [other for other_rank, other in guesses[ours] if other != name and other_rank < _SAME_LOSS]
        if ours == "loss" and others:
            notes.append(note("losses-several", name=name, others=others))
        unread = [other for other in theirs if LIKE_A_LOSS.search(other) and other not in chosen.values()]
        if ours == "loss" and rank == _OF_TRAINING and unread:
            notes.append(note("losses-unread", name=name, others=unread[:5]))
    for ours, name in chosen.items():
        guess = meaning(name)
        if guess is None or guess.column != ours:
            continue
        if guess.scale != 1.0:
            notes.append(note("column-unit", column=ours, name=name, unit=_SCALES[guess.scale], seen=False))
        if guess.perplexity:
            notes.append(note("loss-from-perplexity", name=name))
        if guess.bits:
            notes.append(note("loss-in-bits", name=name))
    return chosen, notes


def number_of(value: Any, ours: str, guess: Guess | None, where: str) -> float:
    """A cell as our column's number, in our unit."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = _written(value, ours, where)
    if guess is None or guess.column != ours:
        return number
    if guess.perplexity and not number <= 1:
        return math.log(number)
    if guess.perplexity:
        raise DeepwideError(f"{where}: a perplexity must be above 1, not {number:g}.")
    return number * guess.scale


def _written(value: Any, ours: str, where: str) -> float:
    """A count as people write it: 125M, 1,300,000."""
    if ours in WHOLE and isinstance(value, str) and _THOUSANDS.fullmatch(value.strip()):
        return float(value.replace(",", ""))
    if ours in COUNTS and isinstance(value, str):
        try:
            return float(parse_count(value))
        except DeepwideError:
            pass
    units = "write 12345.6 or 125M" if ours in COUNTS else "write 12345.6, without separators or units"
    if ours == "loss":
        units = "write 2.345, or nan for a run that diverged"
    what = "is not a number"
    if is_list(value):
        what, units = "is a list", "write a row for each of its values, or the last one alone"
    ignore = "" if ours == "loss" else ", or do not read this column"
    raise DeepwideError(f"{where}: {quoted(value)} {what}: {units}{ignore}.") from None


def is_list(value: Any) -> bool:
    """Whether a cell is a list, or one as it was printed."""
    return isinstance(value, list | tuple) or str(value).lstrip().startswith("[")


def vocabulary(theirs: Iterable[str]) -> str | None:
    """The column that says how many rows an embedding has, if there is one.

    >>> vocabulary(["depth", "config.model.vocabSize"])
    'config.model.vocabSize'
    """
    return next((name for name in theirs if "_".join(_words(name)[0]) in _VOCABULARY), None)


def blocks_named_total(
    rows: list[dict[str, Any]], notes: list[Note], chosen: dict[str, str]
) -> tuple[list[dict[str, Any]], list[Note], dict[str, str]]:
    """Rows, notes and columns, where a count that was guessed to be the total is 12·depth·width² in every row.

    That is the count of the blocks; only a name that says "total" is believed.
    """
    name = chosen.get("total_params", "total")
    known = [row for row in rows if "total_params" in row]
    if "total" in split_name(name) or not known:
        return rows, notes, chosen
    for row in known:
        plain = BLOCK_MATRICES * row.get("depth", math.nan) * row.get("width", math.nan) ** 2
        if not abs(row["total_params"] - plain) <= _SAME_COUNT * plain < math.inf:
            return rows, notes, chosen
    notes = [
        note(each.code, **{**each.data, "column": "block_params"})
        if each.data.get("column") == "total_params"
        else each
        for each in notes
    ]
    notes.append(note("total-is-blocks", name=name))
    from_flops = "train_flops" in chosen and "tokens" not in chosen  # by the only count there is, as published
    renamed = []
    for row in rows:
        row = {{"total_params": "block_params"}.get(key, key): value for key, value in row.items()}
        if from_flops and row.get("train_flops") and row.get("block_params"):
            row["tokens"] = row["train_flops"] / (6 * row["block_params"])
        renamed.append(row)
    if from_flops:
        notes.append(note("tokens-from-flops"))
    columns = {{"total_params": "block_params"}.get(ours, ours): theirs for ours, theirs in chosen.items()}
    return renamed, notes, columns


def in_units(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Note]]:
    """Parameters that are in millions without saying so, as depth and width show."""
    notes = []
    for name in ("block_params", "total_params"):
        known = [row for row in rows if all(0 < (row.get(key) or 0) < MOST for key in ("depth", "width", name))]
        ratios = sorted(row[name] / (BLOCK_MATRICES * row["depth"] * row["width"] ** 2) for row in known)
        if not ratios:
            continue
        middle = ratios[len(ratios) // 2]
        scale = next((scale for scale in _SCALES if 0.3 < middle * scale < 30), None) if middle < 0.03 else None
        if scale is not None:
            rows = [row | {name: row[name] * scale} if name in row else row for row in rows]
            notes.append(note("column-unit", column=name, name=name, unit=_SCALES[scale], seen=True))
    return rows, notes
