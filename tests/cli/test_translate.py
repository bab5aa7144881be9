"""`deepwide translate` as a user types it: train on pairs, translate a file, compare two runs."""

import io
import json
import sys
from pathlib import Path

import pytest

from cli.calling import ask, call


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    words = ["red", "green", "cat", "dog"]
    pairs = [(f"{a} {b}", f"{b} {a}") for a in words for b in words]
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in pairs))
    (tmp_path / "test.en").write_text("".join(f"{one}\n" for one, _ in pairs))
    (tmp_path / "test.xx").write_text("".join(f"{two}\n" for _, two in pairs))
    return tmp_path


def trained(*more: str) -> str:
    run = ask(
        "train", "--task", "translation", "--data", "pairs.tsv", "--depth", "1", "--width", "16", "--set",
        "data.vocab=270", "--set", "context=12", "--set", "data.validation=0.2", "--threads", "1", *more,
    )  # fmt: skip
    assert run["status"] == "done"
    return str(run["path"])


def test_from_pairs_to_bleu(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacrebleu", reason="needs the translate extra")
    run, other = trained("--set", "steps=30"), trained("--set", "steps=3")
    plain = call("translate", run, "test.en", "--beam", "2")
    assert plain.returncode == 0, plain.stderr
    assert len(plain.stdout.splitlines()) == 16
    words = ("translate", run, "test.en", "--beam", "2", "--references", "test.xx", "--against", other)
    scored = call(*words, "--out", "out.xx")
    assert scored.returncode == 0, scored.stderr
    assert (home / "out.xx").read_text() == plain.stdout
    first, second = scored.stdout.splitlines()
    assert first.startswith("BLEU ")
    assert "on 16 texts (nrefs:1" in first
    assert second.startswith("The other run: ")
    answer = ask(*words)
    assert f"BLEU {answer['bleu']['bleu']['value']:.2f} (95%: {answer['bleu']['bleu']['low']:.2f} to" in first
    assert answer["translations"] == plain.stdout.splitlines()
    monkeypatch.setattr(sys, "stdin", io.StringIO("red cat\n"))
    assert json.loads(call("translate", run, "--beam", "2", "--json").stdout)["texts"] == ["red cat"]


def test_mistakes_cost_a_sentence(home: Path) -> None:
    run = trained("--set", "steps=1")
    for words, sentence in (
        (("translate", run, "nowhere.en"), "There is no file nowhere.en."),
        (("translate", "nowhere", "test.en"), "nowhere"),
        (("translate", run, "test.en", "--against", run), "give references too"),
    ):
        done = call(*words)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
    assert home.is_dir()


def test_a_dry_run_names_task_and_file(home: Path) -> None:
    words = "train --task translation --data pairs.tsv --depth 1 --width 16 --set steps=5 --dry-run"
    done = call(*words.split())
    assert done.returncode == 0, done.stderr
    assert "5 steps of 16 × 128 tokens of translation, 'pairs.tsv'" in done.stdout
    assert home.is_dir()
