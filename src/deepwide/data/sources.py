"""Documents from what the setting `data.source` names.

    python              the Python standard library's own source, on every machine with nothing downloaded
    a public set        by name: found under $DEEPWIDE_DATA, or fetched, with its checksum, if the network is allowed
    a file              text; .jsonl or .parquet, whose column is text; each may be .gz; .zip and .tar.* of text files
    a folder            all such files in it, in order of their names, hidden ones and hidden folders left out
    hf:owner/name       a Hugging Face data set, with `datasets` installed and the network allowed

A document is a file, a row of a table, or, in a text file of more than a megabyte or given by itself, about four
kilobytes of whole paragraphs. Everything is read as a stream, in memory that does not depend on the source: a line is
read in pieces, and an archive that unpacks to hundreds of times its size is refused, for no text does.
"""

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import sysconfig
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from deepwide.data.cache import cache_folder
from deepwide.data.config import DataConfig
from deepwide.errors import DeepwideError, OutsideError, did_you_mean, install, quoted

NETWORK = "DEEPWIDE_NETWORK"


@dataclass(frozen=True)
class PublicSet:
    """A corpus, the folder it has under $DEEPWIDE_DATA, and where its files are on the network."""

    name: str
    about: str
    licence: str
    files: Mapping[str, str]  # address: checksum of the file, as pooch writes it


_WIKITEXT = "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2"

REGISTRY: Mapping[str, PublicSet] = {
    entry.name: entry
    for entry in (
        PublicSet(
            "tinyshakespeare",
            "1.1 MB of Shakespeare's plays",
            "public domain",
            {
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt": (
                    "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
                )
            },
        ),
        PublicSet(
            "wikitext-2",
            "2.4 MB of Wikipedia: WikiText-2's validation and test parts",
            "CC BY-SA",
            {
                f"{_WIKITEXT}/{part}.txt": f"sha256:{checksum}"
                for part, checksum in (
                    ("valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
                    ("test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
                )
            },
        ),
        PublicSet(
            "enwik8",
            "the first 100 MB of English Wikipedia in 2006 (under $DEEPWIDE_DATA: with its markup stripped)",
            "GFDL, CC BY-SA",
            # The checksum is the unpacked file's, the one that everybody quotes.
            {"http://mattmahoney.net/dc/enwik8.zip": "unpacked md5:a1fa5ffddb56f4953e226637dabbb36a"},
        ),
        PublicSet(
            "imdb",
            "50,000 film reviews",
            "research",
            {
                "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz": (
                    "md5:7c2ac02c03563afcf9b574c7e56c153a"
                )
            },
        ),
    )
}


def allow_network() -> None:
    """Let this process and those that it starts fetch public corpora.

    Not a setting of a run: it decides where the text comes from, and the fingerprint says what it is.
    """
    os.environ[NETWORK] = "1"


def network_allowed() -> bool:
    """Whether something may be fetched: after `allow_network()`, or with DEEPWIDE_NETWORK=1."""
    return os.environ.get(NETWORK, "") not in ("", "0")


def find_set(name: str) -> list[Path]:
    """The files of a registered corpus."""
    entry = REGISTRY[name]
    local_data = os.environ.get("DEEPWIDE_DATA")
    if local_data and (folder := Path(local_data) / name).is_dir():
        return sorted(path for path in folder.iterdir() if path.is_file())
    home = cache_folder() / "downloads" / name
    wanted = {address: home / address.rpartition("/")[2] for address in entry.files}
    if not all(path.exists() for path in wanted.values()) and not network_allowed():
        raise OutsideError(
            f"'{name}' is not on this machine: set DEEPWIDE_DATA to a folder that holds {name}/, or allow the network "
            f"with {NETWORK}=1.",
            remedies=("network",),
        )
    return [
        _fetch(address, checksum, path)
        for (address, checksum), path in zip(entry.files.items(), wanted.values(), strict=True)
    ]


def _fetch(address: str, checksum: str, path: Path) -> Path:
    """The file at an address, by pooch, which checks it each time it is used."""
    try:
        import pooch  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise DeepwideError(f"Public corpora are fetched with pooch: {install('train')}.") from None
    known = None if checksum.startswith("unpacked ") else checksum
    try:
        fetched = Path(pooch.retrieve(address, known_hash=known, fname=path.name, path=path.parent, progressbar=False))
    except Exception as error:  # pooch passes on whatever the network raises
        raise DeepwideError(f"{address} could not be fetched: {error}.") from None
    if known is None:
        _check_unpacked(fetched, checksum.removeprefix("unpacked md5:"))
    return fetched


def _check_unpacked(path: Path, md5: str) -> None:
    import zipfile

    digest = hashlib.md5(usedforsecurity=False)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != md5:
        raise DeepwideError(f"{path} is not what it should be (md5 {digest.hexdigest()}, not {md5}): delete it.")


DOCUMENT_BYTES = 4096
LONGEST_PARAGRAPH = 65536
SPLIT_FROM = 1 << 20
LONGEST_ROW = 16 << 20  # bytes of one line of .jsonl, which must be parsed as a whole
LONGEST_HEADER = 2 << 20  # bytes of what describes a member of a .tar, which is read as a whole
ROW_BYTES = 16  # of memory that one row of a Parquet column takes at least
MOST_RATIO, RATIO_FROM = 200, 64 << 20  # unpacked to packed, once so much is unpacked; text is below 20
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
        return visible_files(path)
    known = ["python", *REGISTRY]
    raise DeepwideError(f"there is no file, folder or corpus '{source[:200]}': {did_you_mean(source[:200], known)}")


def visible_files(folder: Path) -> list[Path]:
    """All files in a folder and its folders, in order of their names, hidden ones left out."""
    visible = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and not _is_hidden(path.relative_to(folder))
    ]
    if not visible:
        raise DeepwideError(f"the folder {folder} holds no files to train on.")
    return visible


def _is_hidden(path: Path) -> bool:
    """Whether it or a folder above it begins with a dot: nobody means to train on .git."""
    return any(part.startswith(".") for part in path.parts)


def _standard_library() -> list[Path]:
    modules: list[Path] = []
    for folder, inner, names in os.walk(sysconfig.get_paths()["stdlib"]):
        inner[:] = [name for name in inner if name not in NOT_STANDARD]
        modules += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(modules)


def limited_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, which may be .gz; one of more than LONGEST_ROW bytes comes in pieces."""
    try:
        with _opened(path) as file:
            yield from _limited(_pieces(file, LONGEST_ROW), path)
    except DAMAGED as error:
        raise DeepwideError(f"{path} is damaged: {error}.") from None


def _from_file(path: Path, column: str, alone: bool) -> Iterator[bytes]:
    name = path.name.lower()
    try:
        if name.endswith(".zip"):
            yield from _from_zip(path)
        elif name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
            yield from _from_tar(path)
        elif name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
            with _opened(path) as file:
                yield from _rows(_limited(_pieces(file, LONGEST_ROW), path), column, path)
        elif name.endswith(".parquet"):
            yield from _parquet(path, column)
        elif alone or name.endswith(".gz") or path.stat().st_size > SPLIT_FROM:
            with _opened(path) as file:
                yield from paragraphs(_limited(_pieces(file), path))
        else:
            yield path.read_bytes()
    except DAMAGED as error:
        raise DeepwideError(f"{path} is damaged: {error}.") from None
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # the ways of bz2 and zipfile to say so
            raise
        raise DeepwideError(f"{path} is damaged: {error}.") from None
    except (NotImplementedError, RuntimeError) as error:  # zipfile's words for a password or an odd compression
        if not name.endswith(".zip"):
            raise
        raise DeepwideError(f"{path} cannot be read: {error}.") from None


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")  # type: ignore[return-value]


def _pieces(file: IO[bytes], most: int = LONGEST_PARAGRAPH) -> Iterator[bytes]:
    """The lines of a file; one that is longer than `most` bytes comes in pieces."""
    while piece := file.readline(most):
        yield piece


def _limited(pieces: Iterable[bytes], path: Path, before: list[int] | None = None) -> Iterator[bytes]:
    """The same pieces, until they are more than the file can hold as text; `before` counts over several calls."""
    total = [0] if before is None else before
    most = _most_unpacked(path)
    for piece in pieces:
        total[0] += len(piece)
        if total[0] > most:
            raise _bomb(path)
        yield piece


def _most_unpacked(path: Path) -> int:
    return max(RATIO_FROM, MOST_RATIO * path.stat().st_size)


def _bomb(path: Path) -> DeepwideError:
    return DeepwideError(f"{path} unpacks to more than {MOST_RATIO} times its size, which no text does.")


def paragraphs(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Whole paragraphs, about four kilobytes together; adding text at the end changes only the last one.

    >>> [len(d) for d in paragraphs([b"a" * 3000 + b"\\n", b"\\n", b"b" * 3000 + b"\\n", b"\\n", b"c\\n"])]
    [6003, 2]
    """
    document: list[bytes] = []
    size = 0
    whole = True  # whether the line before had its end
    for line in lines:
        ended = line.endswith(b"\n") or len(line) < LONGEST_PARAGRAPH
        blank, whole = whole and ended and not line.strip(), ended
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
        if len(line) >= LONGEST_ROW and not line.endswith(b"\n"):
            raise DeepwideError(f"line {number} of {path} is longer than {LONGEST_ROW >> 20} MiB.")
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
        table = polars.scan_parquet(path, glob=False)
        if ROW_BYTES * table.select(polars.len()).collect().item() > _most_unpacked(path):
            raise _bomb(path)
        batches = table.select(column).collect_batches(chunk_size=1000)
        texts = (value.encode("utf-8", "replace") for rows in batches for value in rows[column] if value is not None)
        yield from _limited(texts, path)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise DeepwideError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())[:200]}.") from None


def _from_zip(path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive:
        unpacked = [0]
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                with archive.open(name) as file:
                    large = archive.getinfo(name).file_size > SPLIT_FROM
                    yield from _member(file, large, path, unpacked)


def _from_tar(path: Path) -> Iterator[bytes]:
    """Members are read one after another and never written to disk."""
    with _Unpacked(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:  # type: ignore[call-overload]
        unpacked = [0]
        while (member := archive.next()) is not None:
            archive.members = []  # tarfile remembers every member, and there may be millions of empty ones
            if member.issparse():
                raise DeepwideError(f"{path} holds a sparse file, {quoted(member.name)}: unpack it yourself.")
            if member.isfile() and (file := archive.extractfile(member)):
                yield from _member(file, member.size > SPLIT_FROM, path, unpacked)


class _Unpacked:
    """The unpacked bytes of a .tar, which may not be more than text can be, nor be asked for by the gigabyte."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            start = file.read(6)
        unpack: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
        self._file: IO[bytes] = unpack.get(start[:2], open)(path, "rb")
        self._path, self._most = path, _most_unpacked(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        if not 0 <= size <= LONGEST_HEADER:
            raise tarfile.ReadError(f"a member is described by {size} bytes")
        return self._file.read(size)

    def seek(self, place: int) -> int:
        """Go to a place from the beginning."""
        if place > self._most:
            raise _bomb(self._path)
        return self._file.seek(place)

    def tell(self) -> int:
        """Where it is."""
        return self._file.tell()


def _member(file: IO[bytes], large: bool, path: Path, unpacked: list[int]) -> Iterator[bytes]:
    """The documents of one file in an archive: paragraphs of a large one, a small one as a whole."""
    if large:
        yield from paragraphs(_limited(_pieces(file), path, unpacked))
    else:
        yield from _limited([file.read()], path, unpacked)


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
