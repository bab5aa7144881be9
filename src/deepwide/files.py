"""Writing a file so that a reader finds the old one or the new one, never half of either."""

import os
import tempfile
from pathlib import Path


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write to a sibling temporary file, sync it, rename it; returns the path.

    A link is followed, and what is no regular file (a pipe, /dev/stdout) is written to, not replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        target.write_bytes(content)
        return Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(path)


def write_text(path: str | Path, content: str) -> Path:
    """`write_bytes` in UTF-8."""
    return write_bytes(path, content.encode())
