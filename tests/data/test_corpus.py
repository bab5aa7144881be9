"""Text from anywhere becomes the same tokens everywhere, split by document, and nothing damaged is trained on."""

import gzip
import hashlib
import http.server
import json
import pickle
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.data import DataConfig, fingerprint, prepare
from deepwide.data import corpus as corpus_module
from deepwide.data import registry as registry_module
from deepwide.data.corpus import in_validation
from deepwide.data.registry import REGISTRY
from deepwide.data.sources import documents, paragraphs
from deepwide.data.tokenisers import BytePairs, Bytes
from deepwide.errors import DeepwideError

DOCUMENTS = [f"Document {i} says: {'über ' * (i % 7)}{'words and words ' * (i % 11)}\n" for i in range(60)]


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    corpus_module._fingerprint.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "docs"
    home.mkdir()
    for i, text in enumerate(DOCUMENTS):
        (home / f"{i:03}.txt").write_text(text, encoding="utf-8")
    return home


def as_file(kind: str, home: Path) -> Path:
    """The documents in one file of some kind."""
    path = home / f"all.{kind}"
    rows = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(DOCUMENTS)).encode()
    if kind == "jsonl":
        path.write_bytes(rows)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(rows))
    elif kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pytest.importorskip("pyarrow").table({"text": DOCUMENTS})
        parquet.write_table(table, path)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for i, text in enumerate(DOCUMENTS):
                archive.writestr(f"{i:03}.txt", text)
    elif kind == "tar.gz":
        with tarfile.open(path, "w:gz") as archive:
            for i, text in enumerate(DOCUMENTS):
                (home / f"{i:03}").write_text(text, encoding="utf-8")
                archive.add(home / f"{i:03}", f"{i:03}.txt")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet", "zip", "tar.gz"])
def test_the_same_documents_are_the_same_corpus_in_every_kind_of_file(kind: str, folder: Path, tmp_path: Path) -> None:
    one, other = DataConfig(source=str(folder)), DataConfig(source=str(as_file(kind, tmp_path)))
    assert list(documents(one)) == list(documents(other)) == [text.encode() for text in DOCUMENTS]
    assert fingerprint(one) == fingerprint(other)


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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=3000).map(lambda b: b.replace(b"\n", b" ") + b"\n") | st.just(b"\n"), max_size=40),
    st.integers(0, 40),
)
def test_appending_to_a_text_changes_only_its_last_document(lines: list[bytes], more: int) -> None:
    before, after = list(paragraphs(lines)), list(paragraphs([*lines, *[b"more text\n"] * more]))
    assert after[: len(before) - 1] == before[:-1]
    assert b"".join(before).replace(b"\n", b"").strip() == b"".join(lines).replace(b"\n", b"").strip() or not before


def test_byte_pairs_write_any_text_and_are_trained_the_same_way_twice() -> None:
    texts = [text.encode() for text in DOCUMENTS]
    one, two = (BytePairs.train(texts, 300) for _ in range(2))
    assert one.to_json() == two.to_json()
    again = BytePairs.from_json(one.to_json(), 300)
    for text in [*texts, "日本語, émoji 🎉, tab\t.".encode(), b"", b"<|end|> in a text"]:
        (tokens,) = again.encode([text])
        assert tokens[-1] == 0
        assert (tokens[:-1] > 0).all()
        assert again.token_bytes()[tokens].sum() == len(text) + (2 if b"<|" in text else 0)  # its | becomes ¦
        if b"<|" not in text:
            assert again.decode(tokens.tolist()) == text
    assert sum(map(len, one.encode(texts))) < sum(map(len, Bytes().encode(texts)))


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


NO_TEXT = b'{"text": "a"}\n{"txt": "b"}\n'


@pytest.mark.parametrize(
    ("source", "content", "sentence"),
    [
        ("./nothing", None, "there is no file, folder or corpus"),
        ("tinyshakespear", None, "did you mean 'tinyshakespeare'"),
        ("tinyshakespeare", None, "allow a download"),
        ("hf:some/thing", None, "allow it with"),
        ("empty.txt", b"", "too little"),
        ("bad.jsonl", NO_TEXT, "line 2 of .* has no column 'text'; with text it has txt"),
        ("bad.jsonl", b"[1, 2\n", "line 1 of .* is not JSON"),
        ("bad.gz", b"no gzip", "is damaged"),
        ("bad.zip", b"no zip", "is damaged"),
        ("bad.tar.gz", b"no tar", "is damaged"),
        ("bad.parquet", b"no parquet", "cannot be read as Parquet"),
    ],
)
def test_a_source_that_cannot_be_read_gets_a_sentence(
    source: str, content: bytes | None, sentence: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / source).write_bytes(content)
        source = str(tmp_path / source)
    with pytest.raises(DeepwideError, match=sentence):
        prepare(DataConfig(source=source))


def test_the_registry_finds_sets_at_hand_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "data" / "tinyshakespeare"
    home.mkdir(parents=True)
    (home / "input.txt").write_text("\n\n".join("To be or not to be. " * 50 for _ in range(30)))
    monkeypatch.setenv("DEEPWIDE_DATA", str(home.parent))
    assert len(list(documents(DataConfig(source="tinyshakespeare")))) > 5
    assert all(entry.files and entry.licence for entry in REGISTRY.values())


def test_pooch_fetches_and_checks_a_public_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "input.txt").write_bytes(b"not Shakespeare")
    handler = lambda *a: http.server.SimpleHTTPRequestHandler(*a, directory=str(tmp_path / "site"))  # noqa: E731
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/input.txt"
        checksum = next(iter(REGISTRY["tinyshakespeare"].files.values()))
        monkeypatch.setenv("DEEPWIDE_NETWORK", "1")
        files = {address: checksum}
        entry = replace(REGISTRY["tinyshakespeare"], files=files)
        monkeypatch.setattr(registry_module, "REGISTRY", {**REGISTRY, "tinyshakespeare": entry})
        try:
            with pytest.raises(DeepwideError, match="could not be fetched"):
                list(documents(DataConfig(source="tinyshakespeare")))
            files[address] = "sha256:" + hashlib.sha256(b"not Shakespeare").hexdigest()
            assert list(documents(DataConfig(source="tinyshakespeare"))) == [b"not Shakespeare"]
        finally:
            server.shutdown()


def test_the_standard_library_is_the_default_everywhere() -> None:
    found = documents(DataConfig())
    first = next(found)
    assert first
    assert sum(b"def " in document for document in found) > 300


def test_where_a_document_goes_never_changes() -> None:
    """A change here changes every corpus: raise the version in corpus.py."""
    chosen = [i for i, text in enumerate(DOCUMENTS) if in_validation(text.encode(), 0.1)]
    assert chosen == CHOSEN


CHOSEN = [16, 19, 25, 26, 47, 59]


def test_hidden_folders_are_not_trained_on(folder: Path) -> None:
    before = fingerprint(DataConfig(source=str(folder)))
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "objects" / "ab12").write_bytes(b"\x00\x01")
    assert fingerprint(DataConfig(source=str(folder))) == before


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"text": 3}, "has '3' in column 'text', which is not text"),
        ({"body": "a", "n": 1}, "has no column 'text'; with text it has body"),
        ([1], "is not an object"),
    ],
)
def test_a_row_without_text_says_what_it_has(row: object, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DeepwideError, match=sentence):
        list(documents(DataConfig(source=str(path))))


def test_an_archive_damaged_in_the_middle_or_under_a_password_says_so(tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    content = bytearray(gzip.compress("\n".join(DOCUMENTS).encode()))
    content[40:60] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(DeepwideError, match="is damaged"):
        list(documents(DataConfig(source=str(path))))
    locked = tmp_path / "locked.zip"
    with zipfile.ZipFile(locked, "w") as archive:
        archive.writestr("a.txt", "text")
    raw = bytearray(locked.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + flags] |= 1  # encrypted, says the header
    locked.write_bytes(raw)
    with pytest.raises(DeepwideError, match="password"):
        list(documents(DataConfig(source=str(locked))))
