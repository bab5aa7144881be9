"""The folder in which downloads and tokens are stored, and how what is in it is checked before it is believed.

Whoever can write here decides what runs train on. So a folder or file that everybody may write to is refused, tokens
are hashed when they are opened, and a hash that was computed before is believed only while the file system says that
the file is the same: its inode, size, and times of the last change to its content and to its inode.
"""

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.errors import OutsideError
from deepwide.files import open_regular, write_text

HASHED_EACH_TIME = 1 << 28  # bytes: larger files are hashed once
BLOCK = 1 << 22


def cache_folder() -> Path:
    """Where downloads and tokens are stored: $DEEPWIDE_CACHE, or deepwide in the user's cache."""
    if given := os.environ.get("DEEPWIDE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepwide"


def make_private(folder: Path) -> Path:
    """A folder in the cache that not everybody may write to, whatever the process's mask for new files is."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o755, exist_ok=True)
    return folder


def close_to_others(*paths: Path) -> None:
    """Take the right to write to new files from everybody but the owner."""
    for path in paths:
        path.chmod(path.stat().st_mode & 0o755)


def check_private(*paths: Path) -> None:
    """Refuse what everybody may write to: anyone on the machine could put other tokens there."""
    for path in paths:
        if path.exists() and path.stat().st_mode & stat.S_IWOTH:
            raise OutsideError(
                f"everybody may write to {path}, so what is stored there cannot be trusted: take that right away "
                f"(chmod o-w {path}), or set DEEPWIDE_CACHE to a folder of your own."
            )


def check_file(path: Path, sha256: str, *, kind: str = "", tokens: int = 0, vocab: int = 0) -> None:
    """Compare a file with its hash; one of tokens of a `kind` also with their number and the vocabulary.

    Raises ValueError with what is wrong.
    """
    with open_regular(path) as file:
        about = os.fstat(file.fileno())
        if kind and about.st_size != tokens * np.dtype(kind).itemsize:
            raise ValueError("size")
        seen = _seen(path, about, sha256, vocab)
        if about.st_size > HASHED_EACH_TIME and seen.is_file():
            check_private(seen.parent, seen)
            return
        digest, largest = hashlib.sha256(), 0
        while block := file.read(BLOCK):
            digest.update(block)
            if kind:
                largest = max(largest, int(np.frombuffer(block, dtype=kind).max()))
    if digest.hexdigest() != sha256:
        raise ValueError("checksum")
    if kind and tokens and largest >= vocab:
        raise ValueError("vocabulary")
    if about.st_size > HASHED_EACH_TIME:
        with contextlib.suppress(OSError):  # a cache that we may only read: hashed again next time
            make_private(seen.parent)
            close_to_others(write_text(seen, f"{path}\n"))


def _seen(path: Path, about: os.stat_result, sha256: str, vocab: int) -> Path:
    """The file that says that this very file had this hash."""
    facts: list[Any] = [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns, sha256, vocab]
    return cache_folder() / "hashed" / hashlib.sha256(f"{path} {facts}".encode()).hexdigest()
