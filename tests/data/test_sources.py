"""Documents are the same from every kind of file, and what cannot be read gets a sentence."""

import gzip
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.builders import DOCUMENTS
from deepwide.data import DataConfig, fingerprint, prepare
from deepwide.data.sources import documents, paragraphs
from deepwide.errors import DeepwideError

NO_TEXT = b'{"text": "a"}\n{"txt": "b"}\n'


def as_file(kind: str, home: Path) -> Path:
    """The documents in one file of some kind."""
    path = home / f"all.{kind}"
    rows = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(DOCUMENTS)).encode()
    if kind == "jsonl":
        path.write_bytes(rows)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(rows))
    elif kind == "parquet":
        polars.DataFrame({"id": range(len(DOCUMENTS)), "text": DOCUMENTS}).write_parquet(path, row_group_size=7)
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=3000).map(lambda b: b.replace(b"\n", b" ") + b"\n") | st.just(b"\n"), max_size=40),
    st.integers(0, 40),
)
def test_appending_to_a_text_changes_only_its_last_document(lines: list[bytes], more: int) -> None:
    before, after = list(paragraphs(lines)), list(paragraphs([*lines, *[b"more text\n"] * more]))
    assert after[: len(before) - 1] == before[:-1]
    assert b"".join(before).replace(b"\n", b"").strip() == b"".join(lines).replace(b"\n", b"").strip() or not before


@pytest.mark.parametrize(
    ("source", "content", "sentence"),
    [
        ("./nothing", None, "there is no file, folder or corpus"),
        ("tinyshakespear", None, "did you mean 'tinyshakespeare'"),
        ("tinyshakespeare", None, "allow the network"),
        ("hf:some/thing", None, "allow the network"),
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
    with pytest.raises(DeepwideError, match=sentence) as error:
        prepare(DataConfig(source=source))
    assert "--" not in str(error.value), "a page and a notebook show it too"


def test_the_standard_library_is_the_default_everywhere() -> None:
    found = documents(DataConfig())
    first = next(found)
    assert first
    assert sum(b"def " in document for document in found) > 300


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
    with pytest.raises(DeepwideError, match=sentence) as error:
        list(documents(DataConfig(source=str(path))))
    assert "--" not in str(error.value)


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


def test_a_parquet_column_without_text_gets_a_sentence_and_an_empty_cell_is_no_document(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    polars.DataFrame({"text": ["one", None, "two"], "stars": [1, 2, 3]}).write_parquet(path)
    assert list(documents(DataConfig(source=str(path)))) == [b"one", b"two"]
    with pytest.raises(DeepwideError, match=r"column 'stars' of .* holds Int64, not text"):
        list(documents(DataConfig(source=str(path), column="stars")))
    with pytest.raises(DeepwideError, match="has no column 'txt': did you mean 'text'"):
        list(documents(DataConfig(source=str(path), column="txt")))


def test_parquet_is_read_without_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    polars.DataFrame({"text": ["one"]}).write_parquet(path)
    code = (
        "import sys; sys.modules['pyarrow'] = None; from deepwide.data import DataConfig; "
        f"from deepwide.data.sources import documents; print(list(documents(DataConfig(source={str(path)!r}))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[b'one']\n"
