"""Documents are the same from every kind of file, and what cannot be read gets a sentence."""

import gzip
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.builders import DOCUMENTS
from deepwide.data import DataConfig, fingerprint, prepare
from deepwide.data import sources as sources_module
from deepwide.data.sources import REGISTRY, allow_network, documents, network_allowed, paragraphs
from deepwide.errors import DeepwideError


def test_sets_on_this_machine_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        monkeypatch.setattr(sources_module, "REGISTRY", {**REGISTRY, "tinyshakespeare": entry})
        try:
            with pytest.raises(DeepwideError, match="could not be fetched"):
                list(documents(DataConfig(source="tinyshakespeare")))
            files[address] = "sha256:" + hashlib.sha256(b"not Shakespeare").hexdigest()
            assert list(documents(DataConfig(source="tinyshakespeare"))) == [b"not Shakespeare"]
        finally:
            server.shutdown()


def test_the_network_is_allowed_for_this_process_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPWIDE_NETWORK", "0")
    assert not network_allowed()
    allow_network()
    assert network_allowed()
    assert os.environ["DEEPWIDE_NETWORK"] == "1"


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


def test_parquet_on_which_its_library_panics_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic of Rust is no Exception."""
    polars = pytest.importorskip("polars")

    def panic(*_: object, **__: object) -> None:
        raise polars.exceptions.PanicException("assertion failed: offset + length <= self.length")

    monkeypatch.setattr(polars, "read_parquet_schema", panic)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DeepwideError, match="cannot be read as Parquet: assertion failed"):
        list(documents(DataConfig(source=str(tmp_path / "t.parquet"))))


def test_parquet_is_read_without_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    polars.DataFrame({"text": ["one"]}).write_parquet(path)
    code = (
        "import sys; sys.modules['pyarrow'] = None; from deepwide.data import DataConfig; "
        f"from deepwide.data.sources import documents; print(list(documents(DataConfig(source={str(path)!r}))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[b'one']\n"


def test_an_archive_that_unpacks_to_hundreds_of_times_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "RATIO_FROM", 1 << 20)
    zeros = bytes(8 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(zeros))
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * (1 << 19)))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(16):
            archive.writestr(f"{i}.txt", zeros[: 1 << 19])
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as archive:
        (tmp_path / "zeros").write_bytes(zeros)
        archive.add(tmp_path / "zeros", "zeros.txt")
    for name in ("bomb.gz", "bomb.jsonl.gz", "bomb.zip", "bomb.tar.gz"):
        with pytest.raises(DeepwideError, match=f"{name} unpacks to more than 200 times its size"):
            list(documents(DataConfig(source=str(tmp_path / name))))


def test_a_sparse_member_of_a_tar_is_refused(tmp_path: Path) -> None:
    """Two kilobytes that say they are a terabyte."""
    member = tarfile.TarInfo("hole.txt")
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = (1 << 40).to_bytes(12, "big")  # the real size, in base 256
    header[483] |= 0x80
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "sparse.tar").write_bytes(bytes(header) + bytes(1024))
    with pytest.raises(DeepwideError, match="holds a sparse file"):
        list(documents(DataConfig(source=str(tmp_path / "sparse.tar"))))


def test_a_long_line_is_read_in_pieces_and_gives_the_same_documents(tmp_path: Path) -> None:
    line = bytes(range(97, 123)) * 20_000  # half a megabyte
    text = b"short\n\n" + line + b"\n\n" + b"the end\n"
    (tmp_path / "long.txt").write_bytes(text)
    whole = list(paragraphs(text.splitlines(keepends=True)))
    assert list(documents(DataConfig(source=str(tmp_path / "long.txt")))) == whole
    assert b"".join(whole).replace(b"\n", b"") == text.replace(b"\n", b"")


def test_a_long_line_takes_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b"x" * (16 << 20))
    tracemalloc.start()
    try:
        for _ in documents(DataConfig(source=str(tmp_path / "long.txt"))):
            pass
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_a_row_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "LONGEST_ROW", 1 << 20)
    (tmp_path / "long.jsonl").write_bytes(b'{"text": "' + b"x" * (3 << 20) + b'"}\n')
    with pytest.raises(DeepwideError, match=r"line 1 of .* is longer than 1 MiB"):
        list(documents(DataConfig(source=str(tmp_path / "long.jsonl"))))


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_tar_whose_headers_are_endless_is_refused(kind: str, tmp_path: Path) -> None:
    """What describes a member is read as a whole: a few kilobytes must not ask for gigabytes of it."""
    path = tmp_path / f"long.tar.{kind}"
    with tarfile.open(path, f"w:{kind}", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("a.txt")
        member.pax_headers = {"comment": "x" * (8 << 20)}
        archive.addfile(member)
    assert path.stat().st_size < 100_000
    with pytest.raises(DeepwideError, match="is damaged: a member is described by"):
        list(documents(DataConfig(source=str(path))))


def test_a_tar_of_very_many_empty_members_takes_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "many.tar.gz").write_bytes(gzip.compress(tarfile.TarInfo("a").tobuf() * 5_000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in documents(DataConfig(source=str(tmp_path / "many.tar.gz")))) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["tar", "tar.bz2", "tar.xz"])
def test_every_packing_of_a_tar_gives_the_same_documents(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"all.{kind}"
    with tarfile.open(path, f"w:{kind.removeprefix('tar').removeprefix('.')}") as archive:  # type: ignore[call-overload]
        for i, text in enumerate(DOCUMENTS):
            (tmp_path / f"{i:03}").write_text(text, encoding="utf-8")
            archive.add(tmp_path / f"{i:03}", f"{i:03}.txt")
    assert list(documents(DataConfig(source=str(path)))) == [text.encode() for text in DOCUMENTS]
