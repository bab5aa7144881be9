"""Text becomes the same tokens everywhere, split by document, and nothing damaged is trained on."""

import hashlib
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from data.builders import DOCUMENTS
from deepwide.data import DataConfig, prepare
from deepwide.data import corpus as corpus_module
from deepwide.data.corpus import in_validation, training_tokens
from deepwide.errors import DeepwideError, OutsideError

CHOSEN = [16, 19, 25, 26, 47, 59]


def test_tokens_are_the_documents_each_with_its_end(folder: Path) -> None:
    corpus = prepare(DataConfig(source=str(folder), validation=0.3))
    for tokens, validation in ((corpus.train, False), (corpus.validation, True)):
        kept = [text for text in DOCUMENTS if in_validation(text.encode(), 0.3) == validation]
        assert bytes(tokens.tolist()) == b"".join(text.encode() + b"\0" for text in kept)
    assert sum(corpus.documents) == 60
    assert isinstance(corpus.train, np.memmap)


def test_adding_documents_moves_none_between_training_and_validation(folder: Path) -> None:
    config = DataConfig(source=str(folder), validation=0.3)
    before = prepare(config)
    old = (bytes(before.train.tolist()).split(b"\0"), bytes(before.validation.tolist()).split(b"\0"))
    (folder / "0000 first.txt").write_text("a new document\n")
    (folder / "zzz last.txt").write_text("another new document\n")
    after = prepare(config)
    assert after.fingerprint != before.fingerprint
    new = (bytes(after.train.tolist()).split(b"\0"), bytes(after.validation.tolist()).split(b"\0"))
    assert all(set(a) <= set(b) for a, b in zip(old, new, strict=True))


def test_a_corpus_is_made_once_and_found_again_without_its_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = DataConfig(source=str(folder), tokeniser="bpe", vocab=300)
    first = prepare(config)
    monkeypatch.setattr(corpus_module, "documents", lambda _: pytest.fail("read again"))
    assert (prepare(config).train == first.train).all()
    for path in folder.iterdir():
        path.unlink()
    assert (prepare(config, first.fingerprint).validation == first.validation).all()


@pytest.mark.parametrize("name", ["train.bin", "validation.bin", "tokeniser.json", "corpus.json"])
@pytest.mark.parametrize("harm", ["flip", "cut", "delete", "pickle"])
def test_damaged_tokens_are_found(folder: Path, private_cache: Path, name: str, harm: str) -> None:
    config = DataConfig(source=str(folder), tokeniser="bpe", vocab=300)
    prepare(config)
    (path,) = private_cache.glob(f"tokens/*/{name}")
    content = path.read_bytes()
    if harm == "delete":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 0x80]) + content[middle + 1 :]
        path.write_bytes({"flip": flipped, "cut": content[:-2], "pickle": pickle.dumps([1, 2])}[harm])
    with pytest.raises(DeepwideError, match="damaged: delete that folder"):
        prepare(config)


def test_where_a_document_goes_never_changes() -> None:
    """A change here changes every corpus: raise the version in corpus.py."""
    chosen = [i for i, text in enumerate(DOCUMENTS) if in_validation(text.encode(), 0.1)]
    assert chosen == CHOSEN


def test_a_crash_while_tokens_are_made_leaves_no_corpus_that_looks_whole(
    folder: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write goes through `deepwide.files`, which faults can stop anywhere."""
    config = DataConfig(source=str(folder))

    def fail(label: str) -> None:
        if label.startswith("before rename to"):
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("deepwide.faults.point", fail)
        patch.setattr(
            corpus_module, "write_text", lambda path, _: path.touch() or path
        )  # the memo of the fingerprint is not at stake
        with pytest.raises(OSError, match="Input/output"):
            prepare(config)
    assert list((private_cache / "tokens").iterdir()) == [], "neither the corpus nor a temporary folder"
    assert len(prepare(config).train) > 0


def test_training_tokens_are_counted_where_that_is_quick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = DataConfig(source=str(folder))
    assert training_tokens(config) == len(prepare(config).train)
    monkeypatch.setattr(corpus_module, "QUICKLY_COUNTED", 10)
    assert training_tokens(config) is None


def test_tokens_of_another_text_under_this_one_s_name_are_refused(folder: Path, private_cache: Path) -> None:
    config = DataConfig(source=str(folder))
    home = private_cache / "tokens" / prepare(config).fingerprint
    (folder / "more.txt").write_text("another text, and so another corpus")
    other = private_cache / "tokens" / prepare(config).fingerprint
    assert other != home
    shutil.rmtree(home)
    shutil.copytree(other, home)
    with pytest.raises(OutsideError, match="damaged: delete that folder"):
        prepare(config, home.name)


@pytest.mark.parametrize(("key", "value"), [("version", "0"), ("vocab", 7), ("dtype", "<u4")])
def test_tokens_that_say_they_are_of_another_kind_are_refused(
    folder: Path, private_cache: Path, key: str, value: object
) -> None:
    config = DataConfig(source=str(folder))
    path = private_cache / "tokens" / prepare(config).fingerprint / "corpus.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(OutsideError, match="damaged: delete that folder"):
        prepare(config)


def test_an_index_that_points_to_another_corpus_is_not_believed(folder: Path, private_cache: Path) -> None:
    config = DataConfig(source=str(folder))
    own = prepare(config).fingerprint
    (memo,) = private_cache.glob("sources/*.json")
    about = json.loads(memo.read_text())
    (folder / "more.txt").write_text("another text, and so another corpus")
    other = prepare(config).fingerprint
    (folder / "more.txt").unlink()
    for redirected in (about | {"fingerprint": other}, {"fingerprint": other}, about | {"fingerprint": 3}, [1], "x"):
        memo.write_text(json.dumps(redirected))
        corpus_module._fingerprint.cache_clear()
        assert prepare(config).fingerprint == own


def test_a_fingerprint_is_no_path(folder: Path, private_cache: Path) -> None:
    """A stranger's run folder may name any: it must not lead out of the cache."""
    config = DataConfig(source=str(folder))
    inside = private_cache / "tokens" / prepare(config).fingerprint
    shutil.copytree(inside, private_cache / "elsewhere")
    with pytest.raises(OutsideError, match="has changed since this run began"):
        prepare(config, "../elsewhere")


def test_tokens_from_before_they_named_their_text_are_made_again(folder: Path, private_cache: Path) -> None:
    config = DataConfig(source=str(folder))
    first = prepare(config)
    path = private_cache / "tokens" / first.fingerprint / "corpus.json"
    about = json.loads(path.read_text())
    del about["fingerprint"]
    path.write_text(json.dumps(about))
    assert prepare(config, first.fingerprint).checksum == first.checksum
    assert json.loads(path.read_text())["fingerprint"] == first.fingerprint


def test_other_tokens_have_another_checksum_even_if_the_folder_agrees_with_itself(
    folder: Path, private_cache: Path
) -> None:
    """What a run's checkpoints hold: whoever changes tokens and their hash is found when a run resumes."""
    config = DataConfig(source=str(folder))
    first = prepare(config)
    path = private_cache / "tokens" / first.fingerprint / "corpus.json"
    content = bytearray((path.parent / "train.bin").read_bytes())
    content[0] ^= 1
    (path.parent / "train.bin").write_bytes(content)
    about = json.loads(path.read_text())
    about["train"]["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(about))
    assert prepare(config).checksum != first.checksum


@pytest.mark.parametrize("name", ["", "tokens", "tokens/NAME", "tokens/NAME/train.bin", "tokens/NAME/corpus.json"])
def test_tokens_that_everybody_may_change_are_refused(folder: Path, private_cache: Path, name: str) -> None:
    config = DataConfig(source=str(folder))
    path = private_cache / name.replace("NAME", prepare(config).fingerprint)
    path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(OutsideError, match="everybody may write"):
        prepare(config)


def test_a_power_cut_while_tokens_are_made_leaves_none_or_all(
    folder: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything in the folder, and the folder itself, is synced before it gets its name."""
    events: list[str] = []
    monkeypatch.setattr("deepwide.faults.point", events.append)
    name = prepare(DataConfig(source=str(folder))).fingerprint
    renamed = events.index(f"before rename to {name}")
    synced = [event.removeprefix("before fsync of ") for event in events[:renamed] if "before fsync" in event]
    assert {"train.bin", "validation.bin", "tokeniser.json", "corpus.json"} <= set(synced)
    assert synced[-1].startswith("the folder .")
    assert f"after fsync of the folder of {name}" in events[renamed:]
    assert (private_cache / "tokens" / name).is_dir()
