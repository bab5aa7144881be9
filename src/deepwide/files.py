"""Writing that survives a crash at any instant: temporary sibling, sync, rename, sync of the folder."""

import errno
import json
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Any, BinaryIO

from deepwide import faults
from deepwide.errors import DeepwideError

TEMPORARY = ".tmp"
LARGEST_JSON = 64 << 20  # bytes: nothing that we write comes near


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file for a user, missing folders included; returns the path.

    A link is followed, and what is no regular file (a pipe, /dev/stdout) is written to, not replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return Path(path)
    make_folder(target.parent)
    try:
        write_file(target, content)
    except OSError as error:  # say the name that the user knows, not the temporary one
        raise type(error)(error.errno, error.strerror, str(path)) from None
    return Path(path)


def write_text(path: str | Path, content: str) -> Path:
    """`write_bytes` in UTF-8."""
    return write_bytes(path, content.encode())


def write_file(path: Path, content: bytes) -> None:
    """Replace `path` as a whole: after this returns it outlives a power cut, before it the old one does."""
    temporary = temporary_beside(path)
    try:
        with open(temporary, "xb") as file:
            faults.write(file, content, f"temporary write of {path.name}")
            sync(file.fileno(), path.name)
        move(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: bytes) -> None:
    """A file that nobody reads yet (its folder is temporary), synced."""
    with open(path, "xb") as file:
        faults.write(file, content, f"write of {path.name}")
        sync(file.fileno(), path.name)
    faults.point(f"after fsync of {path.name}")


class NotRegularError(OSError):
    """A folder, a pipe or a device where a regular file should be."""


def open_regular(path: Path) -> BinaryIO:
    """A regular file opened for reading; a pipe or a device in its place is refused at once, and never waited for."""
    faults.point(f"before read of {path.name}")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotRegularError(errno.EINVAL, "it is not a regular file", str(path))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_json(path: Path, what: str, *, most: int = LARGEST_JSON, unique_keys: bool = False) -> Any:
    """The JSON in a regular file of a bounded size, or one sentence that says why it is not `what`.

    With `unique_keys` an object that has a key twice is refused: readers would differ on which value counts.
    """
    if not path.exists():
        raise DeepwideError(f"There is no file {path}.")
    if not path.is_file():
        raise DeepwideError(f"{path} is not {what}: it is not a regular file.")
    if path.stat().st_size > most:
        raise DeepwideError(f"{path} is not {what}: it is larger than {most >> 20} MiB.")
    try:
        with path.open("rb") as file:  # no further than its size: some files of /proc are regular and have no end
            content = file.read(os.fstat(file.fileno()).st_size)
        document = json.loads(content, object_pairs_hook=_unique if unique_keys else None)
        if b"\\ud" in content.lower():  # half a character can be written in JSON, and in no file that we would write
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except RecursionError:
        raise DeepwideError(f"{path} is not {what}: it is nested too deep.") from None
    except ValueError as error:
        raise DeepwideError(f"{path} is not {what}: it is not JSON ({' '.join(str(error).split())[:120]}).") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in table if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]!r} appears twice")
    return table


def temporary_beside(path: Path) -> Path:
    """A new hidden name in the same folder, so that a rename to `path` is atomic."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{TEMPORARY}")


def is_temporary(path: Path) -> bool:
    """Whether a crashed writer may have left it: no reader ever looks at these."""
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


def move(source: Path, target: Path) -> None:
    """Rename within one folder and make the rename durable."""
    faults.point(f"before rename to {target.name}")
    os.rename(source, target)
    faults.point(f"after rename to {target.name}")
    sync_folder(target.parent)
    faults.point(f"after fsync of the folder of {target.name}")


def sync(handle: int, name: str) -> None:
    """Make what was written to an open file durable."""
    faults.point(f"before fsync of {name}")
    os.fsync(handle)


def sync_folder(path: Path) -> None:
    """Make what was created, renamed or removed in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(handle, f"the folder {path.name}")
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """A folder and those above it, each of which outlives a power cut."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no reader ever sees half of it: first its name, then its content."""
    gone = temporary_beside(path)
    faults.point(f"before removal of {path.name}")
    os.rename(path, gone)
    faults.point(f"in the middle of removal of {path.name}")
    shutil.rmtree(gone, ignore_errors=True)


def clear_temporaries(folder: Path) -> None:
    """Remove what crashed writers left in a folder. Only its owner may call this."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if not is_temporary(path):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
