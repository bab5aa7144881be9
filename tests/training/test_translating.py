"""Texts go through a trained run and back in order; BLEU and its intervals are sacrebleu's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.training import bleu, train, trained_model, translate
from deepwide.training.translating import RESAMPLES, _statistics

sacrebleu = pytest.importorskip("sacrebleu", reason="needs the translate extra")
REFERENCES = [f"the cat number {i} sat on the {'red' if i % 3 else 'blue'} mat ." for i in range(40)]
GOOD = [line.replace("sat", "sits") if i % 4 == 0 else line for i, line in enumerate(REFERENCES)]
POOR = [line.replace("the", "a") for line in GOOD]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that learned a little of spelling words backwards."""
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    words = ["red", "green", "cat", "dog", "runs", "eats"]
    lines = [f"{a} {b}\t{a[::-1]} {b[::-1]}\n" for a in words for b in words]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    return train(settings(tmp_path), runs=tmp_path / "runs", threads=1).path


def settings(home: Path, **changes: Any) -> dict[str, Any]:
    return {
        "task": "translation", "data": {"source": str(home / "pairs.tsv"), "vocab": 280, "validation": 0.1},
        "depth": 1, "width": 32, "steps": 60, "lr": 5e-3, "context": 16,
    } | changes  # fmt: skip


def test_translations_come_in_the_order_of_the_texts(run: Path) -> None:
    texts = ["red cat", "dog", "green eats runs", "cat cat"]
    answer = translate(run, texts, beam=2)
    assert [row["text"] for row in answer.rows()] == texts
    for text, translation in zip(texts, answer.translations, strict=True):
        assert translate(run, [text], beam=2).translations == (translation,)
    assert all(log < 0 for log in answer.log_probabilities)
    assert answer.notes == ()
    assert answer.bleu is None


def test_the_log_probability_is_that_of_a_full_pass(run: Path) -> None:
    from deepwide.run import RunFolder
    from deepwide.training import resolve, task_of

    answer = translate(run, ["red dog"], beam=3)
    tokeniser = task_of(resolve(RunFolder.open(run).config)).corpus.tokeniser  # type: ignore[attr-defined]
    both = ("red dog", answer.translations[0])
    source, target = (next(tokeniser.encode([text.encode()])).astype(np.int64) for text in both)
    begun = torch.tensor([[0, *target[:-1]]])
    logs = trained_model(run)(begun, source_BS=torch.from_numpy(source)[None])[0].double().log_softmax(-1).detach()
    assert float(logs[range(len(target)), target].sum()) == pytest.approx(answer.log_probabilities[0], abs=1e-4)


def test_texts_that_are_too_long_are_cut_with_a_note(run: Path) -> None:
    answer = translate(run, ["red " * 30, "dog"], beam=1)
    assert [(note.code, note.data["texts"]) for note in answer.notes] == [("cut", 1)]


def test_references_give_bleu_and_another_run_the_difference(run: Path, tmp_path: Path) -> None:
    other = train(settings(tmp_path, steps=2), runs=tmp_path / "runs", threads=1).path
    texts = [line.split("\t")[0] for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    references = [line.split("\t")[1] for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    answer = translate(run, texts, beam=2, references=references, against=other)
    again = translate(other, texts, beam=2)
    assert answer.bleu is not None
    assert answer.bleu == bleu(answer.translations, references, again.translations)


def test_bleu_is_that_of_sacrebleu() -> None:
    for translations in (GOOD, POOR, REFERENCES, ["nothing of it"] * 40):
        theirs = sacrebleu.corpus_bleu(translations, [REFERENCES]).score
        ours = bleu(translations, REFERENCES)
        assert ours.bleu.value == pytest.approx(theirs, abs=1e-10)
        assert ours.bleu.low <= ours.bleu.value <= ours.bleu.high  # type: ignore[operator]
    assert "tok:13a" in bleu(GOOD, REFERENCES).signature


def test_the_interval_is_as_wide_as_sacrebleu_s_own_bootstrap() -> None:
    metric = sacrebleu.metrics.BLEU()
    theirs = metric.corpus_score(GOOD, [REFERENCES], n_bootstrap=RESAMPLES)
    ours = bleu(GOOD, REFERENCES).bleu
    assert ours.high is not None
    assert ours.low is not None
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.15)


def test_resampling_is_that_of_whole_sentences_and_both_systems_together() -> None:
    """The slow way: corpus BLEU of resampled lists of sentences."""
    order = np.random.default_rng(0).integers(40, size=(RESAMPLES, 40))[:60]
    answer = bleu(GOOD, REFERENCES, POOR)
    stats = [_statistics(system, REFERENCES) for system in (GOOD, POOR)]
    from deepwide.training.translating import _score

    for rows in order:
        slow = [
            sacrebleu.corpus_bleu([s[i] for i in rows], [[REFERENCES[i] for i in rows]]).score for s in (GOOD, POOR)
        ]
        assert [_score(s[rows].sum(0)) for s in stats] == pytest.approx(slow, abs=1e-10)
    assert answer.difference is not None
    assert answer.against is not None
    assert answer.difference.value == pytest.approx(answer.bleu.value - answer.against.value)
    assert answer.difference.low > 0  # type: ignore[operator]
    same = bleu(GOOD, REFERENCES, GOOD).difference
    assert same is not None
    assert (same.value, same.low, same.high) == (0, 0, 0), "paired: a system is never better than itself"


def test_mistakes_cost_a_sentence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, sentence in (
        ({"texts": []}, "there is nothing to translate"),
        ({"texts": ["a"], "references": ["a", "b"]}, "there are 1 texts and 2 references"),
        ({"texts": ["a"], "against": run}, "two runs are compared by their BLEU: give references too"),
        ({"texts": ["a"], "beam": 0}, "beam must be at least 1"),
        ({"texts": ["a"], "alpha": -1.0}, "alpha, the weight of length"),
    ):
        with pytest.raises(DeepwideError, match=sentence):
            translate(run, **arguments)
    sorting = train({"task": "sorting", "depth": 1, "width": 16, "steps": 1}, runs=tmp_path / "runs", threads=1)
    with pytest.raises(DeepwideError, match="learned the task 'sorting': only a run of 'translation' translates"):
        translate(sorting.path, ["a"])
    with pytest.raises(DeepwideError, match="as many translations as references"):
        bleu(["a"], [])
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu", None)
    with pytest.raises(DeepwideError, match=r"needs sacrebleu, which is not installed"):
        translate(run, ["a"], references=["a"])
