"""Tasks on a user's own rows of two texts: translating pairs, giving texts their labels, and matching their parts.

Token 0, which ends every document, also begins an answer and fills what a shorter row leaves empty. Batches are as long
as their longest row. The i-th example of a run is row π_e(i mod R) of epoch e = i div R, over the R rows that fit: the
order depends on the seed alone, so that runs of other shapes are paired. With `alike`, rows of about one length come
together: each POOL of groups of that many rows is sorted by length, and its groups come in an order of their own.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from deepwide.data import DataConfig, Table, draws, key_of, permuted
from deepwide.errors import DeepwideError
from deepwide.settings import Natural, Part, Positive
from deepwide.shape import Head, Kind
from deepwide.tasks.task import Batch, answer_metrics, measure_answers

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.data import Corpus

END = 0
SCANNED = 1 << 24  # tokens looked at together for their ends
POOL = 64  # groups of rows of about one length that are made together
Integers = NDArray[np.int64]
Name = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(lambda v: str(v) if type(v) is int else v)]
Path = Annotated[str, Field(min_length=1, max_length=4096)]
Group = Annotated[int, Field(ge=1, le=65_536)]
Names = Annotated[
    tuple[str, ...],
    Field(min_length=2, max_length=10_000),
    BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
]


class Rows:
    """The rows of one part of a corpus: documents come in twos, and each ends in token 0."""

    def __init__(self, stream: NDArray[Any]) -> None:
        self.stream = stream
        ends = [at + np.flatnonzero(stream[at : at + SCANNED] == END) for at in range(0, len(stream), SCANNED)]
        self.ends = np.concatenate(ends) if ends else np.zeros(0, dtype=np.int64)
        self.starts = np.concatenate([[0], self.ends[:-1] + 1]).astype(np.int64)[: len(self.ends)]

    def __len__(self) -> int:
        return len(self.ends) // 2

    def text(self, row: int, column: int) -> Integers:
        """The tokens of a text, its end included."""
        place = 2 * row + column
        return np.asarray(self.stream[self.starts[place] : self.ends[place] + 1], dtype=np.int64)

    @property
    def lengths(self) -> Integers:
        """Tokens of both texts of each row, ends included: R × 2."""
        return (self.ends - self.starts + 1).reshape(-1, 2).astype(np.int64)


@dataclass(frozen=True)
class Tabled:
    """A task on rows. Their tokens are opened, or made, when they are first needed."""

    given: Any
    data: DataConfig
    context: int
    expected: str | None = field(default=None, compare=False)  # the fingerprint that a run began with

    name: ClassVar[str]
    Settings: ClassVar[type[Part]]
    fitting: ClassVar[str] = "longer"  # a context that more rows fit
    read: ClassVar[tuple[int, ...]] = (0,)  # columns whose length makes a batch long, the one that counts most last

    @property
    @abstractmethod
    def table(self) -> Table:
        """Where the texts are."""

    @abstractmethod
    def fits(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are used."""

    @abstractmethod
    def together(self, rows: Rows, which: Sequence[int]) -> Batch:
        """Some rows as a batch."""

    @property
    def vocab(self) -> int:
        return self.data.vocab_size

    @property
    def spread(self) -> bool:
        """Whether an evaluation on some of the validation rows takes them from all over, not the first ones."""
        return False

    @cached_property
    def corpus(self) -> "Corpus":
        """The tokens of both parts."""
        from deepwide.data import prepare

        return prepare(self.data, self.expected, self.table)

    @cached_property
    def fingerprint(self) -> str:
        from deepwide.data import fingerprint

        return fingerprint(self.data, self.table)

    @property
    def checksum(self) -> str:
        """Of the tokens that are stored here: a run's checkpoints hold it."""
        return self.corpus.checksum

    @cached_property
    def _that_fit(self) -> tuple[Rows, Integers]:
        return self._part(self.corpus.train, "training")

    @cached_property
    def _training(self) -> tuple[Rows, Integers]:
        """The rows to learn from. Which of them a smaller number leaves does not depend on the seed; the smaller
        selection is part of the larger."""
        rows, usable = self._that_fit
        wanted = self.given.examples
        if wanted is None:
            return rows, usable
        if wanted > len(usable):
            raise DeepwideError(
                f"task.examples is {wanted:,}, and '{self.data.source}' has {len(usable):,} rows to train on: give "
                "fewer, or leave it out."
            )
        chosen = permuted(np.arange(wanted, dtype=np.uint64), len(usable), key_of(self.name, "examples"))
        return rows, usable[chosen.astype(np.int64)]

    @cached_property
    def _validation(self) -> tuple[Rows, Integers]:
        return self._part(self.corpus.validation, "validation")

    def _part(self, stream: NDArray[Any], part: str) -> tuple[Rows, Integers]:
        rows = Rows(stream)
        usable = np.flatnonzero(self.fits(rows))
        if not len(usable):
            raise DeepwideError(
                f"no row of the {part} set of '{self.data.source}' can be used, as {self.unfit}: give more rows or a "
                f"{self.fitting} context."
            )
        return rows, usable.astype(np.int64)

    @property
    def examples(self) -> int | None:
        return len(self._training[1])

    @property
    def left_out(self) -> int:
        """Rows of both parts that do not fit."""
        return sum(len(rows) - len(usable) for rows, usable in (self._that_fit, self._validation))

    @property
    def unfit(self) -> str:
        """Why rows are left out."""
        return f"one of their texts has more than {self.context} tokens"

    def settings(self) -> dict[str, Any]:
        return self.given.model_dump(mode="json", exclude_defaults=True)  # type: ignore[no-any-return]

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        index = np.arange(first, first + rows, dtype=np.int64)
        chosen = self._by_length(index, seed) if self.given.alike else self._in_order(index, seed)
        return self.together(self._training[0], chosen.tolist())

    def _in_order(self, index: Integers, seed: int) -> Integers:
        """The rows that are these examples of a run, each epoch in an order of its own."""
        usable = self._training[1]
        epochs, places = index // len(usable), (index % len(usable)).astype(np.uint64)
        chosen = np.empty(len(index), dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            key = key_of(self.name, "order", seed, epoch)
            chosen[here] = usable[permuted(places[here], len(usable), key).astype(np.int64)]
        return chosen

    def _by_length(self, index: Integers, seed: int) -> Integers:
        """The same rows in another order: groups of `alike` rows of about one length."""
        group, lengths = self.given.alike, np.minimum(self._training[0].lengths, self.context)
        pools = index // (POOL * group)
        chosen = np.empty(len(index), dtype=np.int64)
        for pool in np.unique(pools).tolist():
            here = pools == pool
            row_P = self._in_order(pool * POOL * group + np.arange(POOL * group), seed)
            sorted_P = row_P[np.lexsort([lengths[row_P, column] for column in self.read])]  # ties stay in random order
            order = permuted(np.arange(POOL, dtype=np.uint64), POOL, key_of(self.name, "groups", seed, pool))
            chosen[here] = sorted_P.reshape(POOL, group)[order.astype(np.int64)].ravel()[index[here] % (POOL * group)]
        return chosen

    def evaluation(self, examples: int, together: int) -> Iterator[Batch]:
        table, usable = self._validation
        places = np.arange(len(usable))[:examples]
        if self.spread and examples < len(usable):
            places = np.arange(examples) * len(usable) // examples
        chosen = usable[places].tolist()
        for start in range(0, len(chosen), together):
            yield self.together(table, chosen[start : start + together])

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
        return measure_answers(batch, loss, logits)


def padded(texts: Sequence[Integers]) -> tuple[Integers, NDArray[np.bool_]]:
    """Texts side by side, filled up with token 0, and where their own tokens are."""
    lengths = np.array([len(text) for text in texts])
    tokens_BT = np.full((len(texts), lengths.max()), END, dtype=np.int64)
    for row, text in zip(tokens_BT, texts, strict=True):
        row[: len(text)] = text
    return tokens_BT, np.arange(lengths.max())[None, :] < lengths[:, None]


class TranslationSettings(Part):
    """Where the pairs are."""

    source: Name = "source"  # column to translate from, by name or number
    target: Name = "target"  # column to translate to
    languages: Annotated[str, Field(min_length=3, max_length=40)] | None = None  # of a folder's aligned files, as en-de
    held_out: Path | None = None  # pairs to validate on, instead of a share of the data
    examples: Positive | None = None  # training pairs that are used, drawn evenly; all that fit if left out
    alike: Group | None = None  # so many pairs of about one length come together: as many as the batch has


class Translation(Tabled):
    """Translate a text: the encoder reads it, the decoder writes the other side, one token after the other.

    Pairs of which one side has more tokens than the context, its end included, are left out.
    """

    name: ClassVar[str] = "translation"
    kind: ClassVar[Kind] = "encoder-decoder"
    head: ClassVar[Head] = "tokens"
    classes: ClassVar[int] = 0
    Settings: ClassVar[type[Part]] = TranslationSettings
    read: ClassVar[tuple[int, ...]] = (0, 1)

    @property
    def table(self) -> Table:
        given = self.given
        return Table(
            columns=(given.source, given.target),
            usual=("source", "target"),
            languages=given.languages,
            held_out=given.held_out,
        )

    def fits(self, rows: Rows) -> NDArray[np.bool_]:
        return np.asarray((rows.lengths <= self.context).all(1))

    def together(self, rows: Rows, which: Sequence[int]) -> Batch:
        source_BS, real_BS = padded([rows.text(row, 0) for row in which])
        answer_BT, real_BT = padded([rows.text(row, 1) for row in which])
        begun_BT = np.hstack([np.full((len(which), 1), END), answer_BT[:, :-1]])
        return Batch.of(
            begun_BT, answer_BT, mask=real_BT, source=source_BS, padding=real_BT, source_padding=real_BS
        )  # fmt: skip

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return answer_metrics(sums)

    @staticmethod
    def side_by_side(texts: Sequence[Integers]) -> tuple[Integers, NDArray[np.bool_]]:
        """Sources as the encoder reads them, and where their tokens are."""
        return padded(texts)


class ClassificationSettings(Part):
    """Where the texts and their labels are."""

    text: Name = "text"  # column of texts, by name or number
    label: Name = "label"  # column of labels
    labels: Names | None = None  # the classes; those that the data have, if left out
    held_out: Path | None = None  # rows to validate on, instead of a share of the data
    examples: Positive | None = None  # training rows that are used, drawn evenly; all if left out
    spread: bool = False  # validate on rows from all over, not on the first ones: for rows that are sorted by label
    alike: Group | None = None  # so many texts of about one length come together: as many as the batch has


class Classification(Tabled):
    """Say which label a text has; an encoder reads the text's first tokens, as many as the context has."""

    name: ClassVar[str] = "classification"
    kind: ClassVar[Kind] = "encoder"
    head: ClassVar[Head] = "class"
    Settings: ClassVar[type[Part]] = ClassificationSettings

    @property
    def table(self) -> Table:
        given = self.given
        return Table(columns=(given.text, given.label), usual=("text", "label"), labelled=True, held_out=given.held_out)

    @property
    def spread(self) -> bool:
        return bool(self.given.spread)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes by number."""
        from deepwide.data import labels

        return self.given.labels or labels(self.data, self.table)

    @property
    def classes(self) -> int:
        return len(self.labels)

    def settings(self) -> dict[str, Any]:
        """With the labels: which class is which is part of the run."""
        return super().settings() | {"labels": list(self.labels)}

    @cached_property
    def _class_of(self) -> dict[bytes, int]:
        encoded = self.corpus.tokeniser.encode(label.encode() for label in self.labels)
        return {tokens.astype(np.int64).tobytes(): number for number, tokens in enumerate(encoded)}

    def fits(self, rows: Rows) -> NDArray[np.bool_]:
        return np.ones(len(rows), dtype=bool)

    def together(self, rows: Rows, which: Sequence[int]) -> Batch:
        tokens_BT, real_BT = padded([rows.text(row, 0)[: self.context] for row in which])
        answers = [self._class_of.get(rows.text(row, 1).tobytes()) for row in which]
        if None in answers:
            label = self.corpus.tokeniser.decode(rows.text(which[answers.index(None)], 1).tolist())
            raise DeepwideError(
                f"'{self.data.source}' has the label '{label.decode('utf-8', 'replace')}', which is not among "
                f"task.labels: {', '.join(self.labels[:20])}."
            )
        return Batch.of(tokens_BT, np.array(answers), padding=real_BT)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in answer_metrics(sums).items() if name != "whole_accuracy"}


class HalvesSettings(Part):
    """Where the texts are; their labels are read and not used."""

    text: Name = "text"  # column of texts, by name or number
    label: Name = "label"  # column of labels
    held_out: Path | None = None  # rows to validate on, instead of a share of the data
    examples: Positive | None = None  # training rows that are used, drawn evenly; all if left out
    overlap: Natural = 0  # tokens that both pieces of one text share; 0: its beginning and its end
    alike: ClassVar[None] = None  # all pieces have one length


class Halves(Tabled):
    """Say whether two pieces come from one text: the first tokens of a text, and the last ones of it or of another.

    With `overlap` the second piece begins so many tokens before the first one ends. Both pieces have as many tokens as
    the context; texts that are shorter than both together are left out, so that lengths say nothing. Which of them keep
    their own end, and whose end the others get, is drawn for every example of a run anew, so that no pair can be
    learned by heart, and in validation by the row's number alone; a half of them do.
    """

    name: ClassVar[str] = "halves"
    kind: ClassVar[Kind] = "encoder"
    head: ClassVar[Head] = "pair"
    classes: ClassVar[int] = 2
    Settings: ClassVar[type[Part]] = HalvesSettings
    fitting: ClassVar[str] = "shorter"

    @property
    def spread(self) -> bool:
        return True

    @property
    def table(self) -> Table:
        given = self.given
        return Table(columns=(given.text, given.label), usual=("text", "label"), labelled=True, held_out=given.held_out)

    def fits(self, rows: Rows) -> NDArray[np.bool_]:
        return np.asarray(rows.lengths[:, 0] > self._needed)  # an end of text is among the tokens

    @property
    def _needed(self) -> int:
        """Tokens of both pieces together."""
        overlap = self.given.overlap
        if overlap >= self.context:
            raise DeepwideError(f"task.overlap is {overlap}, and a piece has {self.context} tokens: give fewer.")
        return 2 * self.context - int(overlap)

    @property
    def unfit(self) -> str:
        return f"their texts have fewer than {self._needed} tokens"

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        index = np.arange(first, first + rows, dtype=np.int64)
        return self._pieces(*self._training, self._in_order(index, seed), index, key_of(self.name, "partners", seed))

    def together(self, rows: Rows, which: Sequence[int]) -> Batch:
        row_B = np.array(which)
        return self._pieces(rows, np.flatnonzero(self.fits(rows)), row_B, row_B, key_of(self.name, "partners"))

    def _pieces(self, rows: Rows, usable: Integers, row_B: Integers, number_B: Integers, key: int) -> Batch:
        """Beginnings of rows with their own ends or others', as the numbers of the examples draw them."""
        random_B2: Any = draws(key, number_B.astype(np.uint64), 2)
        same_B = random_B2[:, 0] % 2 == 1
        ends = np.sort(usable)
        step_B = 1 + (random_B2[:, 1] % max(1, len(ends) - 1)).astype(np.int64)
        other_B = ends[(np.searchsorted(ends, row_B) + step_B) % len(ends)]
        end_B = np.where(same_B, row_B, other_B)
        begins = np.stack([rows.text(row, 0)[: self.context] for row in row_B.tolist()])
        stop = self._needed if self.given.overlap else -1  # the last token ends the text
        ends_BT = np.stack([rows.text(row, 0)[:stop][-self.context :] for row in end_B.tolist()])
        return Batch.of(begins, same_B.astype(np.int64), source=ends_BT)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in answer_metrics(sums).items() if name != "whole_accuracy"}
