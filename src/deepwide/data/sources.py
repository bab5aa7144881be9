"""Documents from what the setting `data.source` names.

    python              the Python standard library's own source, on every machine with nothing downloaded
    a registry name     see registry.py
    a file              text; .jsonl or .parquet, whose column is text; each may be .gz; .zip and .tar.* of text files
    a folder            all such files in it, in order of their names, hidden ones and hidden folders left out
    hf:owner/name       a Hugging Face data set, with `datasets` installed and the network allowed

A document is a file, a row of a table, or, in a text file of more than a megabyte or given by itself, about four
kilobytes of whole paragraphs. Everything is read as a stream.
"""

import gzip
import json
import lzma
import os
import sysconfig
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from deepwide.data.config import DataConfig
from deepwide.data.registry import NETWORK, REGISTRY, find_set, network_allowed
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.extras import install

DOCUMENT_BYTES = 4096
LONGEST_PARAGRAPH = 65536
SPLIT_FROM = 1 << 20
DAMAGED = (gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
NOT_STANDARD = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


def documents(config: DataConfig) -> Iterator[bytes]:
    """Every document of the source, in an order that depends on names alone."""
    if config.source.startswith("hf:"):
        yield from _hugging_face(config)
        return
    paths = files(config)
    alone = len(paths) == 1
    for path in paths:
        yield from _from_file(path, config.column, alone)


def files(config: DataConfig) -> list[Path]:
    """The files a source consists of; none for a Hugging Face data set."""
    source = config.source
    if source.startswith("hf:"):
        return []
    if source == "python":
        return _standard_library()
    if source in REGISTRY:
        return find_set(source)
    path = Path(source).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        visible = [p for p in sorted(path.rglob("*")) if p.is_file() and not _is_hidden(p.relative_to(path))]
        if not visible:
            raise DeepwideError(f"the folder {path} holds no files to train on.")
        return visible
    known = ["python", *REGISTRY]
    raise DeepwideError(f"there is no file, folder or corpus '{source[:200]}': {did_you_mean(source[:200], known)}")


def _is_hidden(path: Path) -> bool:
    """Whether it or a folder above it begins with a dot: nobody means to train on .git."""
    return any(part.startswith(".") for part in path.parts)


def _standard_library() -> list[Path]:
    modules: list[Path] = []
    for folder, inner, names in os.walk(sysconfig.get_paths()["stdlib"]):
        inner[:] = [name for name in inner if name not in NOT_STANDARD]
        modules += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(modules)


def _from_file(path: Path, column: str, alone: bool) -> Iterator[bytes]:
    name = path.name.lower()
    try:
        if name.endswith(".zip"):
            yield from _from_zip(path)
        elif name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
            yield from _from_tar(path)
        elif name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
            with _opened(path) as file:
                yield from _rows(file, column, path)
        elif name.endswith(".parquet"):
            yield from _parquet(path, column)
        elif alone or name.endswith(".gz") or path.stat().st_size > SPLIT_FROM:
            with _opened(path) as file:
                yield from paragraphs(file)
        else:
            yield path.read_bytes()
    except DAMAGED as error:
        raise DeepwideError(f"{path} is damaged: {error}.") from None
    except (NotImplementedError, RuntimeError) as error:  # zipfile's words for a password or an odd compression
        if not name.endswith(".zip"):
            raise
        raise DeepwideError(f"{path} cannot be read: {error}.") from None


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")  # type: ignore[return-value]


def paragraphs(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Whole paragraphs, about four kilobytes together; adding text at the end changes only the last one.

    >>> [len(d) for d in paragraphs([b"a" * 3000 + b"\\n", b"\\n", b"b" * 3000 + b"\\n", b"\\n", b"c\\n"])]
    [6003, 2]
    """
    document: list[bytes] = []
    size = 0
    for line in lines:
        blank = not line.strip()
        if blank and size >= DOCUMENT_BYTES:
            yield b"".join(document)
            document, size = [], 0
            continue
        if blank and not document:
            continue
        document.append(line)
        size += len(line)
        while size >= LONGEST_PARAGRAPH:
            text = b"".join(document)
            yield text[:LONGEST_PARAGRAPH]
            document, size = [text[LONGEST_PARAGRAPH:]], size - LONGEST_PARAGRAPH
    if b"".join(document).strip():
        yield b"".join(document)


def _rows(file: Iterable[bytes], column: str, path: Path) -> Iterator[bytes]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise DeepwideError(f"line {number} of {path} is not JSON.") from None
        value = row.get(column) if isinstance(row, dict) else None
        if not isinstance(value, str):
            raise DeepwideError(f"line {number} of {path} {_no_text(row, column)}.")
        yield value.encode("utf-8", "replace")


def _no_text(row: object, column: str) -> str:
    """Why a row is not a document."""
    if not isinstance(row, dict):
        return "is not an object with named columns"
    if column in row:
        return f"has {quoted(row[column])} in column '{column}', which is not text"
    with_text = sorted(str(name) for name, value in row.items() if isinstance(value, str))
    return f"has no column '{column}'; with text it has {', '.join(with_text[:8]) or 'none'} (setting data.column)"


def _parquet(path: Path, column: str) -> Iterator[bytes]:
    try:
        import polars
    except ImportError:
        raise DeepwideError(f"Parquet files are read with polars: {install('train')}.") from None
    try:
        columns = polars.read_parquet_schema(path)
        if column not in columns:
            raise DeepwideError(f"{path} has no column '{column}': {did_you_mean(column, list(columns))}")
        if columns[column] != polars.String:
            raise DeepwideError(f"column '{column}' of {path} holds {columns[column]}, not text (setting data.column).")
        for rows in polars.scan_parquet(path, glob=False).select(column).collect_batches(chunk_size=1000):
            for value in rows[column]:
                if value is not None:
                    yield value.encode("utf-8", "replace")
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DeepwideError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())[:200]}.") from None


def _from_zip(path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                with archive.open(name) as file:
                    yield from paragraphs(file) if archive.getinfo(name).file_size > SPLIT_FROM else [file.read()]


def _from_tar(path: Path) -> Iterator[bytes]:
    """Members are read one after another and never written to disk."""
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield from paragraphs(file) if member.size > SPLIT_FROM else [file.read()]


def _hugging_face(config: DataConfig) -> Iterator[bytes]:
    name = config.source.removeprefix("hf:")
    if not network_allowed():
        sentence = f"'{config.source}' is not on this machine: allow the network with {NETWORK}=1."
        raise DeepwideError(sentence, remedies=("network",))
    try:
        import datasets  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise DeepwideError("Hugging Face data sets need their library: pip install datasets.") from None
    try:
        rows = datasets.load_dataset(name, split="train", streaming=True)
    except Exception as error:  # the library raises a dozen kinds, from the network's to its own
        raise DeepwideError(f"{config.source} could not be opened: {' '.join(str(error).split())[:300]}.") from None
    for row in rows:
        value = row.get(config.column)
        if not isinstance(value, str):
            raise DeepwideError(f"a row of {config.source} {_no_text(row, config.column)}.")
        yield value.encode("utf-8", "replace")
