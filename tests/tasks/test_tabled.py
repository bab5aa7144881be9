"""Batches of a user's rows are those rows, each once per epoch; networks learn from them; a sweep on them is fitted."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.tasks import Batch, Classification, Halves, Translation, make_task
from deepwide.tasks.tabled import POOL
from deepwide.training import RunConfig, resolve, stored_config, task_of
from deepwide.training.counts import data_notes

WORDS = ["red", "green", "blue", "big", "small", "cat", "dog", "fish", "runs", "eats", "sees", "the"]


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    draw = random.Random(seed)
    return [[draw.choice(WORDS) for _ in range(draw.randint(2, 5))] for _ in range(count)]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Sentences, and the same with every word spelt backwards."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{' '.join(s)}\t{' '.join(word[::-1] for word in s)}\n" for s in sentences(120)))
    return path


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Whether a sentence has a cat in it."""
    path = tmp_path / "labelled.jsonl"
    rows = [{"text": " ".join(s), "label": "cat" if "cat" in s else "none"} for s in sentences(200)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(name: str, source: Path, **changes: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"task": name, "data": str(source), "model": {"depth": 1, "width": 16}, "steps": 4}
    return run | {"context": 40} | changes


def texts(task: Translation | Classification, tokens: Any, real: Any) -> list[str]:
    decode = task.corpus.tokeniser.decode
    return [decode(row[keep].tolist()).decode() for row, keep in zip(tokens, real, strict=True)]


@pytest.mark.parametrize("tokeniser", ["bytes", "bpe"])
def test_a_batch_of_pairs_is_what_encoder_and_decoder_read(pairs: Path, tokeniser: str) -> None:
    task = task_of(RunConfig.of(config("translation", pairs, data={"source": str(pairs), "tokeniser": tokeniser})))
    assert isinstance(task, Translation)
    assert task.examples is not None
    seen: Counter[tuple[str, str]] = Counter()
    for batch in (task.batch(start, 8, seed=1) for start in range(0, 8 * (task.examples // 8), 8)):
        assert batch.source_BS is not None
        assert batch.mask_BT is not None
        assert (batch.tokens_BT[:, 0] == 0).all(), "the answer begins"
        assert (batch.tokens_BT[:, 1:] == batch.targets[:, :-1]).all(), "teacher forcing: shifted by one"
        last = batch.mask_BT.sum(1) - 1
        assert (batch.targets[range(8), last] == 0).all(), "the last answer that counts is the end"
        source = texts(task, batch.source_BS.numpy(), batch.source_padding_BS.numpy())  # type: ignore[union-attr]
        target = texts(task, batch.targets.numpy(), batch.mask_BT.numpy())
        seen.update(zip(source, target, strict=True))
    lines = Counter((line.split("\t")[0], line.split("\t")[1]) for line in pairs.read_text().splitlines())
    assert not seen - lines, "rows of the file, none more often than there"
    assert sum(seen.values()) == 8 * (task.examples // 8)


def test_fewer_examples_are_part_of_more_and_the_same_for_every_seed(pairs: Path) -> None:
    def seen(examples: int | None, seed: int) -> set[bytes]:
        settings = {"name": "translation"} | ({"examples": examples} if examples else {})
        task = task_of(RunConfig.of(config("translation", pairs, task=settings)))
        assert task.examples is not None
        assert examples in (None, task.examples)
        batch = task.batch(0, task.examples, seed)
        assert batch.source_BS is not None
        width = 60 - batch.source_BS.shape[1]
        return {row.tobytes() for row in np.pad(batch.source_BS.numpy(), ((0, 0), (0, width)))}

    few, more, every = seen(10, 0), seen(50, 0), seen(None, 0)
    assert seen(10, 1) == few
    assert few < more < every
    with pytest.raises(DeepwideError, match=r"task.examples is 1,000, and .* has 11. rows to train on"):
        seen(1000, 0)


def test_every_row_comes_once_per_epoch_in_an_order_of_its_own(pairs: Path) -> None:
    task = task_of(RunConfig.of(config("translation", pairs)))
    rows = task.examples
    assert rows is not None

    def epoch(number: int, seed: int, together: int = 1) -> list[tuple[int, ...]]:
        starts = range(number * rows, (number + 1) * rows, together)
        batches = [task.batch(start, min(together, (number + 1) * rows - start), seed) for start in starts]
        return [tuple(int(t) for t, m in zip(*row, strict=True) if m) for batch in batches for row in _answers(batch)]

    assert epoch(0, 0) == epoch(0, 0, together=7), "the order does not depend on the batch"
    assert sorted(epoch(0, 0)) == sorted(epoch(1, 0)) == sorted(epoch(0, 5))
    assert epoch(0, 0) != epoch(1, 0)
    assert epoch(0, 0) != epoch(0, 5)


def test_rows_of_about_one_length_come_together(pairs: Path) -> None:
    apart, together = (
        task_of(resolve(config("translation", pairs, task={"name": "translation", **more})))
        for more in ({}, {"alike": 4})
    )  # fmt: skip

    def real(task: Any, seed: int = 0) -> tuple[list[Any], float]:
        """What two pools of batches of four teach, and which share of their tokens is no padding."""
        batches = [task.batch(4 * number, 4, seed) for number in range(2 * POOL)]
        answers = [tuple(row[keep].tolist()) for batch in batches for row, keep in _answers(batch)]
        return answers, np.concatenate([batch.mask_BT.numpy().ravel() for batch in batches]).mean()

    (rows, share), (sorted_rows, sorted_share) = real(apart), real(together)
    for pool in (slice(4 * POOL), slice(4 * POOL, None)):
        assert sorted(rows[pool]) == sorted(sorted_rows[pool]), "the same rows, pool by pool"
    assert sorted_share > 0.95 > 0.85 > share
    lengths = [len(sorted_rows[place]) for place in range(0, 4 * POOL, 4)]
    assert lengths != sorted(lengths), "groups come in an order of their own"
    assert real(together, seed=5)[0] != sorted_rows
    whole = together.batch(0, 40, 0)
    assert [tuple(row[keep].tolist()) for row, keep in _answers(whole)] == sorted_rows[:40], "whatever the batch"


def test_labels_do_not_decide_which_texts_come_together(tmp_path: Path) -> None:
    """Rows sorted by label, all longer than the context: a batch has both labels."""
    path = tmp_path / "sorted.jsonl"
    rows = [{"text": " ".join(s * 9), "label": label} for label in ("a", "longer") for s in sentences(100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = task_of(
        resolve(config("classification", path, context=8, task={"name": "classification", "alike": 16}))
    )  # fmt: skip
    shares = [task.batch(16 * number, 16, 0).targets.double().mean().item() for number in range(POOL)]
    assert 0.05 < min(shares) < max(shares) < 0.95


def _answers(batch: Batch) -> list[tuple[Any, Any]]:
    assert batch.mask_BT is not None
    return list(zip(batch.targets.numpy(), batch.mask_BT.numpy(), strict=True))


def test_pairs_that_are_too_long_are_left_out_and_counted(pairs: Path) -> None:
    task = task_of(RunConfig.of(config("translation", pairs, data={"source": str(pairs), "tokeniser": "bytes"})))
    short = task_of(
        RunConfig.of(config("translation", pairs, context=16, data={"source": str(pairs), "tokeniser": "bytes"}))
    )
    assert isinstance(task, Translation)
    assert isinstance(short, Translation)
    lines = [line.split("\t")[0] for line in pairs.read_text().splitlines()]
    assert task.left_out == 0
    assert short.left_out == sum(len(line) + 1 > 16 for line in lines) > 0
    assert all(max(b.tokens_BT.shape[1], b.source_BS.shape[1]) <= 16 for b in short.evaluation(99, 4))  # type: ignore[union-attr]
    notes = deepwide.train(config("translation", pairs, context=16, data=short.data.model_dump())).notes
    assert [note.data["rows"] for note in notes if note.code == "left_out"] == [short.left_out]
    with pytest.raises(
        DeepwideError, match=r"no row of the training set .* can be used, as one of their texts has more than 2"
    ):
        task_of(RunConfig.of(config("translation", pairs, context=2))).batch(0, 1, 0)


def test_classes_are_the_labels_and_part_of_the_run(labelled: Path) -> None:
    run = resolve(config("classification", labelled))
    shape = run.architecture.shape
    assert (shape.kind, shape.head, shape.classes, shape.vocab) == ("encoder", "class", 2, 4096)
    assert stored_config(run)["task"] == {"name": "classification", "labels": ["cat", "none"]}
    assert resolve(json.loads(json.dumps(stored_config(run)))) == run == resolve(run)
    task = task_of(run)
    assert isinstance(task, Classification)
    for batch in task.evaluation(1000, 16):
        assert batch.padding_BT is not None
        read = texts(task, batch.tokens_BT.numpy(), batch.padding_BT.numpy())
        for text, answer in zip(read, batch.targets, strict=True):
            assert task.labels[int(answer)] == ("cat" if "cat" in text.split() else "none")
    other = resolve(config("classification", labelled, task={"name": "classification", "labels": ["none", "cat"]}))
    assert task_of(other).batch(0, 9, 0).targets.tolist() == [1 - t for t in task.batch(0, 9, 0).targets.tolist()]
    wrong = config("classification", labelled, task={"name": "classification", "labels": ["none", "dog"]})
    with pytest.raises(DeepwideError, match=r"has the label 'cat', which is not among task.labels: none, dog"):
        list(task_of(RunConfig.of(wrong)).evaluation(1000, 16))


def test_texts_are_cut_to_the_context(labelled: Path) -> None:
    task = task_of(RunConfig.of(config("classification", labelled, context=3)))
    assert {batch.tokens_BT.shape[1] for batch in task.evaluation(64, 16)} == {3}


def test_an_evaluation_takes_the_first_rows_or_rows_from_all_over(tmp_path: Path) -> None:
    """Where rows are sorted by label, the first ones have only one."""
    held_out, train = tmp_path / "held_out.jsonl", tmp_path / "train.jsonl"
    rows = [json.dumps({"text": f"text {i}", "label": str(i // 50)}) + "\n" for i in range(100)]
    held_out.write_text("".join(rows))
    train.write_text("".join(rows[::10]))
    for spread, ones in ((False, 0), (True, 5)):
        settings = {"name": "classification", "held_out": str(held_out), "spread": spread}
        run = resolve(config("classification", train, task=settings))
        assert ("spread" in stored_config(run)["task"]) == spread, "runs that do not say keep their names"
        (batch,) = task_of(run).evaluation(10, 16)
        assert batch.targets.sum() == ones
    assert sum(len(batch) for batch in task_of(run).evaluation(1000, 16)) == 100


@pytest.mark.parametrize("tokeniser", ["bytes", "bpe"])
def test_halves_are_the_first_and_last_tokens_of_one_text_or_of_two(tmp_path: Path, tokeniser: str) -> None:
    draw, path = random.Random(3), tmp_path / "texts.jsonl"
    written = [" ".join(draw.choice(WORDS) for _ in range(draw.randint(2, 40))) for _ in range(300)]
    path.write_text("".join(json.dumps({"text": text, "label": "any"}) + "\n" for text in written))
    data = {"source": str(path), "tokeniser": tokeniser} | ({"vocab": 300} if tokeniser == "bpe" else {})
    run = resolve(config("halves", path, data=data, context=12))
    shape, task = run.architecture.shape, task_of(run)
    assert isinstance(task, Halves)
    assert (shape.kind, shape.head, shape.classes) == ("encoder", "pair", 2)
    assert stored_config(run)["task"] == {"name": "halves"}
    decode, same = task.corpus.tokeniser.decode, []
    for number in range(task.examples or 0):
        batch = task.batch(number, 1, 0)
        assert batch.source_BS is not None
        assert batch.tokens_BT.shape == batch.source_BS.shape == (1, 12)
        begin, end = (decode(tokens[0].tolist()).decode() for tokens in (batch.tokens_BT, batch.source_BS))
        owners = [
            {i for i, text in enumerate(written) if text.startswith(begin)},
            {i for i, text in enumerate(written) if text.endswith(end)},
        ]
        assert owners[0]
        assert owners[1]
        if batch.targets[0] == 1:
            assert owners[0] & owners[1]
        same.append(int(batch.targets[0]))
    assert 0.35 < sum(same) / len(same) < 0.65
    assert task.left_out == 300 - len(task._training[1]) - len(task._validation[1]) > 0
    assert "fewer than 24 tokens" in str([note.text for note in data_notes(run)])
    short = config("halves", path, data=data, context=500)
    with pytest.raises(DeepwideError, match="give more rows or a shorter context"):
        task_of(RunConfig.of(short)).batch(0, 1, 0)


def test_halves_of_different_texts_are_not_of_one(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": f"{i:04d}" * 6, "label": "any"}) + "\n" for i in range(200)))
    data = {"source": str(path), "tokeniser": "bytes"}
    task = task_of(resolve(config("halves", path, data=data, context=8)))
    batch = task.batch(0, 150, 0)
    assert batch.source_BS is not None
    equal = (batch.tokens_BT == batch.source_BS).all(1)
    assert equal.tolist() == [bool(target) for target in batch.targets]
    epoch = task.examples or 0
    again = [int(task.batch(first, epoch, 0).targets.sum()) for first in (0, epoch, 2 * epoch)]
    assert len(set(again)) > 1, "every epoch draws its partners anew"
    once, twice = (next(iter(task.evaluation(20, 20))) for _ in range(2))
    assert once.targets.tolist() == twice.targets.tolist()


def test_halves_may_overlap(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(
        "".join(json.dumps({"text": f"{i:04d}" + "abcdefghijklmnop", "label": "a"}) + "\n" for i in range(99))
    )
    settings = config("halves", path, data={"source": str(path), "tokeniser": "bytes"}, context=8)
    task = task_of(resolve(settings | {"task": {"name": "halves", "overlap": 6}}))
    batch = task.batch(0, 80, 0)
    assert batch.source_BS is not None
    assert (batch.tokens_BT[:, 2:4] == batch.source_BS[:, :2]).all(1).tolist() != [True] * 80
    same = batch.targets == 1
    assert (batch.tokens_BT[same, 2:] == batch.source_BS[same, :6]).all()
    with pytest.raises(DeepwideError, match="overlap is 8, and a piece has 8 tokens"):
        task_of(resolve(settings | {"task": {"name": "halves", "overlap": 8}})).batch(0, 1, 0)


def test_a_translation_is_learned(pairs: Path) -> None:
    settings = config("translation", pairs, steps=250, lr=5e-3, data={"source": str(pairs), "vocab": 330})
    run = deepwide.train(settings | {"model": {"depth": 1, "width": 32}, "label_smoothing": 0.1}, threads=1)
    losses = [record["loss"] for record in run.rows() if record["kind"] == "validation"]
    assert run.status == "done"
    assert losses[-1] < 0.5 * losses[0]
    assert run.metrics["accuracy"] > 0.5
    assert 0 <= run.metrics["whole_accuracy"] <= 1


def test_a_class_is_learned(labelled: Path) -> None:
    settings = config("classification", labelled, steps=60, lr=5e-3, data={"source": str(labelled), "vocab": 300})
    assert deepwide.train(settings, threads=1).metrics["accuracy"] > 0.95


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": {}}, "the task 'translation' needs data"),
        ({"data": {"source": "nowhere.tsv"}}, "there is no file 'nowhere.tsv'"),
        ({"task": {"name": "translation", "targt": "x"}}, "there is no setting 'task.targt': did you mean 'target'?"),
        ({"task": {"name": "translation", "languages": 3}}, "task.languages: input should be a valid string"),
        (
            {"data": {"source": "pairs.tsv", "column": "en"}},
            "data.column is for the task 'language': name the columns by task.source and task.target.",
        ),
        ({"label_smoothing": 1.0}, "label_smoothing: input should be less than 1"),
        ({"task": {"name": "translatoin"}, "data": {}}, "there is no task 'translatoin': did you mean 'translation'?"),
    ],
)
def test_a_mistake_costs_a_sentence(changes: dict[str, Any], sentence: str, pairs: Path) -> None:
    with pytest.raises(DeepwideError) as error:
        deepwide.train(config("translation", pairs) | changes)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


def test_a_task_on_rows_cannot_be_made_without_them() -> None:
    with pytest.raises(DeepwideError, match="the task 'translation' reads data: give them in the config of a run"):
        make_task("translation", {})


def test_other_rows_are_another_run_and_a_run_that_has_begun_refuses_them(pairs: Path, tmp_path: Path) -> None:
    first = deepwide.train(config("translation", pairs), runs=tmp_path / "runs", stop=lambda: True)
    assert first.status == "stopped"
    pairs.write_text(pairs.read_text() + "one more\terom eno\n")
    again = deepwide.train(config("translation", pairs), runs=tmp_path / "runs", stop=lambda: True)
    assert again.id != first.id


@pytest.mark.slow
@pytest.mark.parametrize("task", ["translation", "classification"])
def test_a_sweep_of_depth_and_width_is_fitted_and_plans(
    task: str, pairs: Path, labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.calling import ask, call

    monkeypatch.chdir(tmp_path)
    source = pairs if task == "translation" else labelled
    (tmp_path / "mine.toml").write_text(
        f'name = "mine"\nseeds = [0]\n[run]\ntask = "{task}"\ncontext = 40\nbatch = 4\nlr = 3e-3\n'
        f'data.source = "{source}"\ndata.vocab = 300\n[grid]\ndepth = [1, 2, 4]\nwidth = [8, 16, 32]\n'
        "steps = [6, 12, 24]\n"
    )
    done = call("sweep", "run", "mine.toml")
    assert done.returncode == 0, done.stderr
    fitted = ask("fit", "runs/mine", "--kind", "surface", "--terms", "shape", "--bootstrap", "20", "--law", "law.json")
    assert fitted["kind"] == "surface"
    planned = ask("plan", "100K", "--law", "law.json")
    assert planned["law"] == "fitted surface"
    assert planned["shape"]["depth"] >= 1
