"""`translate`: texts through a trained run, and BLEU against references with intervals by paired bootstrap.

BLEU is sacrebleu's. A corpus's BLEU depends on sums over its sentences (matches and n-grams of each order, both
lengths), so a resample of sentences is a sum of rows, and both systems are resampled alike (Koehn 2004).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.answers import Answer, Interval, Note
from deepwide.errors import DeepwideError, at_least_one, needs
from deepwide.quantities import Floats
from deepwide.run import RunFolder
from deepwide.tasks import Translation
from deepwide.training.config import resolve, task_of
from deepwide.training.hardware import find_device
from deepwide.training.trained import trained_model

if TYPE_CHECKING:
    from deepwide.model import Hypothesis

RESAMPLES = 1000
TOGETHER = 16  # sentences searched at a time
ALPHA = 1.0


class Bleu(Answer):
    """BLEU of a corpus, and of another system's translations of the same sentences; intervals by resampling them."""

    bleu: Interval
    against: Interval | None = None
    difference: Interval | None = None  # the first less the other, resampled together
    sentences: int
    signature: str  # how sacrebleu computed it


class Translated(Answer):
    """What a run makes of some texts, in their order; `rows()` has one row per text."""

    run: str
    beam: int
    alpha: float
    texts: tuple[str, ...]
    translations: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    bleu: Bleu | None = None
    notes: tuple[Note, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        columns = (self.texts, self.translations, self.log_probabilities)
        return [
            {"text": text, "translation": translation, "log_probability": log}
            for text, translation, log in zip(*columns, strict=True)
        ]


def translate(
    run: RunFolder | Path | str,
    texts: Sequence[str],
    *,
    beam: int = 5,
    alpha: float = ALPHA,
    references: Sequence[str] | None = None,
    against: RunFolder | Path | str | None = None,
    device: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Translated:
    """Translate texts by the last checkpoint of a run of the task translation.

    `beam` sequences are searched at a time (1 is greedy) and compared by log p / ((5 + length) / 6)^alpha. With
    `references` the answer has BLEU; with `against`, another run, also the difference from it. `progress` gets the
    number of texts that are finished.
    """
    needs("torch", "train")
    at_least_one(beam=beam)
    if references is not None:
        needs("sacrebleu", "translate")
        if len(references) != len(texts):
            raise DeepwideError(f"there are {len(texts):,} texts and {len(references):,} references: give one each.")
    elif against is not None:
        raise DeepwideError("two runs are compared by their BLEU: give references too.")
    if not texts:
        raise DeepwideError("there is nothing to translate: give at least one text.")
    answers, cut = _search(run, texts, beam, alpha, device, progress)
    score = None
    if references is not None:
        other = None if against is None else [text for text, _ in _search(against, texts, beam, alpha, device, None)[0]]
        score = bleu([text for text, _ in answers], references, other)
    notes = (Note.of("cut", f"{cut:,} texts are longer than the network reads and were cut.", texts=cut),)
    return Translated(
        run=_opened(run).id,
        beam=beam,
        alpha=alpha,
        texts=tuple(texts),
        translations=tuple(text for text, _ in answers),
        log_probabilities=tuple(hypothesis.log_probability for _, hypothesis in answers),
        bleu=score,
        notes=notes if cut else (),
    )


def bleu(
    translations: Sequence[str], references: Sequence[str], against: Sequence[str] | None = None, seed: int = 0
) -> Bleu:
    """BLEU by sacrebleu with its defaults, and its 95% interval from resampled sentences; `against` is another system.

    The difference of two systems is resampled with the same sentences for both.
    """
    needs("sacrebleu", "translate")
    from sacrebleu.metrics import BLEU

    if not len(translations) == len(references) == len(references if against is None else against) > 0:
        raise DeepwideError("BLEU compares texts one by one: give as many translations as references, at least one.")
    order = np.random.default_rng(seed).integers(len(references), size=(RESAMPLES, len(references)))
    resampled: list[Floats] = []
    scores: list[float] = []
    for system in (translations, *([] if against is None else [against])):
        sums = _statistics(system, references)
        scores.append(_score(sums.sum(0)))
        resampled.append(np.array([_score(sums[rows].sum(0)) for rows in order]))
    whole = BLEU()
    whole.corpus_score(list(translations), [list(references)])  # the signature knows the number of references then
    return Bleu(
        bleu=_interval(scores[0], resampled[0]),
        against=None if against is None else _interval(scores[1], resampled[1]),
        difference=None if against is None else _interval(scores[0] - scores[1], resampled[0] - resampled[1]),
        sentences=len(references),
        signature=str(whole.get_signature()),
    )


def _statistics(translations: Sequence[str], references: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Per sentence: matches of order 1 to 4, n-grams of order 1 to 4, both lengths."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(effective_order=True)  # without it, one sentence alone is warned about; the counts are the same
    scores = [metric.sentence_score(ours, [theirs]) for ours, theirs in zip(translations, references, strict=True)]
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], dtype=np.int64)


def _score(sums: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    from sacrebleu.metrics import BLEU

    numbers = [int(number) for number in sums]
    whole = BLEU.compute_bleu(numbers[:4], numbers[4:8], sys_len=numbers[8], ref_len=numbers[9], smooth_method="exp")
    return float(whole.score)


def _interval(value: float, resampled: Floats) -> Interval:
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Interval(value, float(low), float(high))


def _opened(run: RunFolder | Path | str) -> RunFolder:
    return run if isinstance(run, RunFolder) else RunFolder.open(Path(run))


def _search(
    run: RunFolder | Path | str,
    texts: Sequence[str],
    beam: int,
    alpha: float,
    device: str,
    progress: Callable[[int], None] | None,
) -> "tuple[list[tuple[str, Hypothesis]], int]":
    """The translation of every text, and how many were too long to be read whole."""
    import torch

    from deepwide.model import beam_search

    folder = _opened(run)
    task = task_of(resolve(folder.config), folder.data_fingerprint)
    if not isinstance(task, Translation):
        raise DeepwideError(f"{folder.path} learned the task '{task.name}': only a run of 'translation' translates.")
    model, where = trained_model(folder), find_device(device)
    model.to(where)
    tokeniser = task.corpus.tokeniser
    encoded = [tokens.astype(np.int64) for tokens in tokeniser.encode(text.encode() for text in texts)]
    read = [tokens if len(tokens) <= task.context else np.append(tokens[: task.context - 1], 0) for tokens in encoded]
    answers: dict[int, tuple[str, Hypothesis]] = {}
    by_length = sorted(range(len(read)), key=lambda place: len(read[place]))
    for start in range(0, len(read), TOGETHER):
        places = by_length[start : start + TOGETHER]
        source_BS, real_BS = task.side_by_side([read[place] for place in places])
        hypotheses = beam_search(
            model, torch.from_numpy(source_BS).to(where), torch.from_numpy(real_BS).to(where), beam=beam, alpha=alpha
        )
        for place, hypothesis in zip(places, hypotheses, strict=True):
            answers[place] = (tokeniser.decode(hypothesis.tokens).decode("utf-8", "replace"), hypothesis)
        if progress is not None:
            progress(len(answers))
    cut = sum(len(tokens) > task.context for tokens in encoded)
    return [answers[place] for place in range(len(texts))], cut
