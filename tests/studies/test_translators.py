"""Pairs are found by name, test sentences are chosen evenly, and differences have the errors that they should have."""

import gzip
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies.estimates import mean_interval
from deepwide.studies.translators import (
    REVERSING,
    TranslationSettings,
    as_source,
    bleu_difference,
    loss_difference,
    mean_of,
    pair_files,
    references,
    sentence_pairs,
    translation_table,
)
from deepwide.training import bleu, resolve

SETTINGS: dict[str, Any] = {
    "data": "", "vocab": 300, "context": 24, "steps": 4, "batch": 4, "lr": 1e-3, "dropout": 0.2, "smoothing": 0.1,
    "sentences": 3, "words": 3, "beam": 1,
}  # fmt: skip


def settings(**changes: Any) -> Any:
    return TranslationSettings.model_validate(SETTINGS | changes)


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Both collections; the test part has doubles, and sentences of more than three words."""
    for name in ("autshumato", "multi30k"):
        (tmp_path / name).mkdir()
    for stem, languages in (("autshumato/en-nso.{}", ("en", "nso")), ("multi30k/{}", ("en", "de"))):
        parts = ("train", "dev", "test") if "auts" in stem else ("train", "val", "test_2016_flickr")
        for part in parts:
            for language in languages:
                lines = [f"{language} {i // 2} {i if language != 'en' else ''}" for i in range(12)]
                lines += [f"{language} has more than three words"]
                path = tmp_path / f"{stem.format(part)}.{language}.gz"
                path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(tmp_path)


def test_files_are_those_of_the_pair(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path.name for path in pair_files("en-nso", data)["test"]] == ["en-nso.test.en.gz", "en-nso.test.nso.gz"]
    monkeypatch.setenv("DEEPWIDE_DATA", data)
    assert [path.name for path in pair_files("en-de", "")["dev"]] == ["val.en.gz", "val.de.gz"]
    assert as_source((Path("a"), Path("b"))) == "a,b"
    assert pair_files(REVERSING, "") == {}
    with pytest.raises(DeepwideError, match="there is no pair 'en-xx': did you mean"):
        pair_files("en-xx", data)
    with pytest.raises(DeepwideError, match=r"has no en-af\.train\.en\.gz"):
        pair_files("en-af", data)


def test_test_sentences_are_different_short_and_spread_evenly(data: str) -> None:
    pairs = sentence_pairs("en-nso", settings(data=data))
    assert pairs == [("en 0", "nso 0 0"), ("en 2", "nso 2 4"), ("en 4", "nso 4 8")], "each with its first reference"
    assert len(sentence_pairs("en-nso", settings(data=data, sentences=100))) == 6
    assert references("en-nso", settings(data=data)) == [target for _, target in pairs]


def test_sequences_and_their_reverse_need_no_data() -> None:
    wanted = references(REVERSING, settings(sentences=5))
    assert len(wanted) == 5
    assert {len(text.split()) for text in wanted} == {8}


@pytest.mark.parametrize("pair", ["en-nso", REVERSING])
def test_the_table_is_a_run(data: str, pair: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    table = translation_table(settings(data=data), pair, {"depth": 1, "width": 16}, examples=5)
    run = resolve(table)
    assert run.task.parameters["examples"] == 5
    assert (run.dropout, run.label_smoothing) == (0.2, 0.1)
    assert "examples" not in resolve(translation_table(settings(data=data), pair, table["model"])).task.parameters
    slow = resolve(translation_table(settings(data=data, warmup=0.5, steps=10, alike=True), pair, table["model"]))
    assert slow.schedule.warmup == 5
    assert slow.task.parameters.get("alike") == (None if pair == REVERSING else slow.batch)


def runs(*texts: list[str]) -> dict[int, dict[str, Any]]:
    return {seed: {"translations": each, "least_loss": float(seed)} for seed, each in enumerate(texts)}


WANTED = [f"the cat number {i} sits on the mat" for i in range(30)]
GOOD = [[text.replace("mat", "rug") if i % (3 + s) == 0 else text for i, text in enumerate(WANTED)] for s in range(3)]
BAD = [[text.replace("sits", "is") if i % (2 + s) == 0 else text for i, text in enumerate(WANTED)] for s in range(3)]


def test_a_difference_in_bleu_has_the_errors_of_sentences_and_of_seeds() -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    stats = pytest.importorskip("scipy.stats", reason="needs the fit extra")
    number = bleu_difference(runs(*GOOD), runs(*BAD), WANTED)
    each = [bleu(ours, WANTED, theirs).difference for ours, theirs in zip(GOOD, BAD, strict=True)]
    values = [answer.value for answer in each if answer is not None]
    assert number.value == pytest.approx(math.fsum(values) / 3)
    over_seeds = mean_interval(values)
    assert number.low is not None
    assert over_seeds.low is not None
    assert number.low <= over_seeds.low
    by_seed = statistics.variance(values) / 3
    by_sentence = statistics.fmean(((d.high - d.low) / 2 / 1.959963985) ** 2 for d in each if d)  # type: ignore[operator]
    freedom = (by_seed + by_sentence) ** 2 / (by_seed**2 / 2 + by_sentence**2 / (len(WANTED) - 1))
    half = math.sqrt(by_seed + by_sentence) * stats.t.ppf(0.975, freedom)
    assert number.value - number.low == pytest.approx(max(half, over_seeds.value - over_seeds.low)), (
        "sentences vary too"
    )
    alike = bleu_difference(runs(GOOD[0], GOOD[0]), runs(BAD[0], BAD[0]), WANTED)
    assert alike.low is not None
    assert each[0] is not None
    assert each[0].low is not None
    assert alike.low < each[0].low, "two seeds that agree do not make fewer sentences more"
    assert each[0].value - alike.low < 1.2 * (each[0].value - each[0].low), "sentences are many, if seeds are few"
    backwards = bleu_difference(runs(*BAD), runs(*GOOD), WANTED)
    assert backwards.value == pytest.approx(-number.value)


def test_a_single_seed_has_no_interval_and_only_shared_seeds_are_compared() -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    assert bleu_difference(runs(GOOD[0]), runs(*BAD), WANTED).low is None
    few = {0: {"least_loss": 3.0}, 2: {"least_loss": 5.0}}
    other = {0: {"least_loss": 1.0}, 1: {"least_loss": 9.0}, 2: {"least_loss": 3.0}}
    assert loss_difference(few, other).value == 2


def test_the_mean_of_independent_estimates() -> None:
    both = mean_of([Interval(1.0, 0.0, 2.0), Interval(3.0, 2.0, 4.0)])
    assert both == Interval(2.0, 2.0 - math.sqrt(2) / 2, 2.0 + math.sqrt(2) / 2)
    assert mean_of([Interval(1.0), Interval(3.0, 2.0, 4.0)]) == Interval(2.0)
