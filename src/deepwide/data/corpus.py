"""A corpus: tokens on disk, memory-mapped, named by a fingerprint of what they were made from.

    <cache>/tokens/<fingerprint>/{train.bin, validation.bin, tokeniser.json, corpus.json}

A row is what belongs together: one document, or the two texts of a row of a table (tables.py), each a document with an
end of its own. The fingerprint hashes every document and how they become tokens, so the same text gives the same corpus
wherever it lies. A row goes to the validation set by the hash of its first document: adding others moves none, and a
sentence that comes twice is not in both parts. The folder is made under another name and renamed when it is whole;
corpus.json names its fingerprint and holds the checksums of the rest, which are compared when it is opened. A run's
checkpoints hold the checksum of all of it, `Corpus.checksum`.
"""

import contextlib
import hashlib
import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepwide.data.cache import cache_folder, check_file, check_private, close_to_others, make_private
from deepwide.data.config import DataConfig
from deepwide.data.sources import documents, files
from deepwide.data.tokenisers import Tokeniser, make_tokeniser, stored_tokeniser
from deepwide.errors import DeepwideError, OutsideError
from deepwide.files import move, read_json, remove_folder, sync, sync_folder, temporary_beside, write_new, write_text

if TYPE_CHECKING:
    from deepwide.data.tables import Row, Table  # loaded where a table is read

VERSION = "1"  # of splitting and tokenising: raise it when the same text would give other tokens
QUICKLY_COUNTED = 1 << 28  # bytes of files whose tokens are counted without being asked
PARTS = ("train", "validation")
NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Corpus:
    """Tokens of both parts, and how many bytes of text each kind of token stands for."""

    fingerprint: str
    vocab: int
    train: NDArray[Any]
    validation: NDArray[Any]
    token_bytes: NDArray[np.uint32]
    tokeniser: Tokeniser
    documents: tuple[int, int]
    checksum: str  # of tokens and tokeniser


def fingerprint(config: DataConfig, table: "Table | None" = None) -> str:
    """What the tokens depend on, as a hash. Reads every document, unless the files look as they did last time."""
    return _fingerprint(config.resolved(), table, _stamp(config, table))


def prepare(config: DataConfig, expected: str | None = None, table: "Table | None" = None) -> Corpus:
    """The corpus of a config, made if this machine does not have it yet; with a `table`, of its rows.

    With the fingerprint that a run began with, the source is not read when its tokens are on this machine.
    """
    config = config.resolved()
    stored = expected and NAME.fullmatch(expected) and _home(expected).is_dir() and not _is_nameless(_home(expected))
    name = expected if expected and stored else fingerprint(config, table)
    if expected and name != expected:
        raise OutsideError(
            f"the data '{config.source}' has changed since this run began: put the old data back, or start a new run."
        )
    if _is_nameless(_home(name)):
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            remove_folder(_home(name))
    if not _home(name).is_dir():
        _make(config, table, name)
    return _open(config, name)


def labels(config: DataConfig, table: "Table") -> tuple[str, ...]:
    """The labels of a table, read once while its files look the same."""
    return _labels(config.source, table, _stamp(config, table))


@lru_cache(maxsize=64)
def _labels(source: str, table: "Table", stamp: str) -> tuple[str, ...]:  # noqa: ARG001
    from deepwide.data.tables import label_names

    return label_names(source, table)


def training_tokens(config: DataConfig) -> int | None:
    """How many tokens the training part has; None when that is more than a short look at files on this machine."""
    if not 0 < sum(path.stat().st_size for path in files(config)) <= QUICKLY_COUNTED:
        return None
    return len(prepare(config).train)


def in_validation(document: bytes, share: float) -> bool:
    """Whether what begins with a document belongs to the validation set, by its hash."""
    return _place(document) < share


def _place(document: bytes) -> float:
    return int.from_bytes(hashlib.sha256(document).digest()[:8], "big") / 2**64


def _home(name: str) -> Path:
    return cache_folder() / "tokens" / name


def _is_nameless(home: Path) -> bool:
    """Whether tokens are from before they named their text, so that nobody can tell whose they are: made again."""
    try:
        about = read_json(home / "corpus.json", "a corpus")
    except DeepwideError:  # damaged or missing: `_open` says so
        return False
    return isinstance(about, dict) and "fingerprint" not in about


def _stamp(config: DataConfig, table: "Table | None") -> str:
    """Names, sizes and times of the files: enough to know that they need not be read again."""
    facts = [(str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in _files(config, table)]
    what: list[Any] = [VERSION, config.resolved().model_dump(), facts]
    what += [table.model_dump()] if table else []
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _files(config: DataConfig, table: "Table | None") -> list[Path]:
    if table is None:
        return files(config)
    from deepwide.data.tables import table_files

    sources = [source for source in (config.source, table.held_out) if source]
    return [path for source in sources for together in table_files(source, table) for path in together]


@lru_cache(maxsize=64)
def _fingerprint(config: DataConfig, table: "Table | None", stamp: str) -> str:
    home = make_private(make_private(cache_folder()) / "sources")
    memo = home / f"{stamp}.json"
    if _files(config, table) and memo.is_file():
        check_private(cache_folder(), home, memo)
        try:
            about = read_json(memo, "a fingerprint")
            if NAME.fullmatch(about["fingerprint"]) and about["check"] == _check_of(stamp, about["fingerprint"]):
                return str(about["fingerprint"])
        except (ValueError, KeyError, TypeError):
            pass  # it only saves reading: read again
    settings = config.model_dump(include={"tokeniser", "vocab", "validation"})
    settings |= {"labelled": table.labelled, "held_out": table.held_out is not None} if table else {}
    digest = hashlib.sha256(json.dumps([VERSION, settings], sort_keys=True).encode())
    for row in _rows(config, table, held_out=False):
        for document in row:
            digest.update(hashlib.sha256(document).digest())
    if table is not None and table.held_out:
        digest.update(b"held out")
        for row in _rows(config, table, held_out=True):
            for document in row:
                digest.update(hashlib.sha256(document).digest())
    name = digest.hexdigest()[:32]
    about = {"source": config.source, "fingerprint": name, "check": _check_of(stamp, name)}
    close_to_others(write_text(memo, json.dumps(about)))
    return name


def _check_of(stamp: str, name: str) -> str:
    """What ties a fingerprint to the files that it was computed from."""
    return hashlib.sha256(f"deepwide/source/{stamp}/{name}".encode()).hexdigest()


def _split(config: DataConfig, table: "Table | None") -> float:
    """The share below which a row's place puts it into validation; a few rows need a larger one."""
    places = sorted({_place(row[0]) for row in _rows(config, table, held_out=False)})
    if len(places) < 2:
        what = "document" if table is None else "different text"
        raise DeepwideError(
            f"'{config.source}' is {len(places)} {what}{'s' * (len(places) != 1)}, too little to keep some for "
            "validation: give more text."
        )
    return min(max(config.validation, math.nextafter(places[0], 1)), places[-1])


def _rows(config: DataConfig, table: "Table | None", *, held_out: bool) -> "Iterator[Row]":
    if table is None:
        return ((document,) for document in documents(config))
    from deepwide.data.tables import rows

    return rows(table.held_out if held_out and table.held_out else config.source, table)


def _part(config: DataConfig, table: "Table | None", share: float | None, validation: bool) -> "Iterator[Row]":
    """The rows of a part; without a share, those that are held out are the validation set."""
    if share is None:
        return _rows(config, table, held_out=validation)
    return (row for row in _rows(config, table, held_out=False) if in_validation(row[0], share) == validation)


def _make(config: DataConfig, table: "Table | None", name: str) -> None:
    home = _home(name)
    make_private(make_private(cache_folder()) / "tokens")
    check_private(cache_folder(), home.parent)
    share = None if table is not None and table.held_out else _split(config, table)
    texts = 1 if table is not None and table.labelled else None  # a label is no text to learn tokens from
    training = (document for row in _part(config, table, share, validation=False) for document in row[:texts])
    tokeniser = make_tokeniser(config, training)
    kind = _dtype(config.vocab_size)
    temporary = make_private(temporary_beside(home))
    try:
        about: dict[str, Any] = {"version": VERSION, "source": config.source, "vocab": config.vocab_size, "dtype": kind}
        about["fingerprint"] = name
        for part in PARTS:
            count = tokens = 0
            digest = hashlib.sha256()
            with open(temporary / f"{part}.bin", "xb") as file:
                part_rows = _part(config, table, share, part == "validation")
                for document in tokeniser.encode(document for row in part_rows for document in row):
                    block = document.astype(kind).tobytes()
                    file.write(block)
                    digest.update(block)
                    count, tokens = count + 1, tokens + len(document)
                file.flush()
                sync(file.fileno(), f"{part}.bin")
            about[part] = {"documents": count, "tokens": tokens, "sha256": digest.hexdigest()}
        write_new(temporary / "tokeniser.json", tokeniser.to_json().encode())
        about["tokeniser"] = {"sha256": hashlib.sha256(tokeniser.to_json().encode()).hexdigest()}
        write_new(temporary / "corpus.json", json.dumps(about, indent=2).encode())
        close_to_others(*temporary.iterdir())
        try:
            sync_folder(temporary)
            move(temporary, home)
        except OSError:
            if not home.is_dir():  # else another process was quicker, with the same content
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _open(config: DataConfig, name: str) -> Corpus:
    home = _home(name)
    stored = [home / file for file in ("train.bin", "validation.bin", "tokeniser.json", "corpus.json")]
    check_private(cache_folder(), home.parent, home, *stored)
    try:
        about = read_json(home / "corpus.json", "a corpus")
        kind, vocab = _dtype(config.vocab_size), config.vocab_size
        if (about["fingerprint"], about["version"], about["vocab"], about["dtype"]) != (name, VERSION, vocab, kind):
            raise ValueError("it is of another text or kind")
        parts = []
        for part in PARTS:
            tokens, sha256 = int(about[part]["tokens"]), about[part]["sha256"]
            check_file(home / f"{part}.bin", sha256, kind=kind, tokens=tokens, vocab=vocab)
            parts.append(np.memmap(home / f"{part}.bin", dtype=kind, mode="r"))
        check_file(home / "tokeniser.json", about["tokeniser"]["sha256"])
        text = (home / "tokeniser.json").read_text(encoding="utf-8")
        counts = (int(about["train"]["documents"]), int(about["validation"]["documents"]))
        hashes = [about[part]["sha256"] for part in (*PARTS, "tokeniser")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise OutsideError(
            f"the tokens stored in {home} are damaged: delete that folder, they are made again."
        ) from None
    train, validation = parts
    tokeniser = stored_tokeniser(config, text)
    checksum = hashlib.sha256("/".join(hashes).encode()).hexdigest()[:32]
    return Corpus(name, vocab, train, validation, tokeniser.token_bytes(), tokeniser, counts, checksum)


def _dtype(vocab: int) -> str:
    return "<u2" if vocab <= 1 << 16 else "<u4"
