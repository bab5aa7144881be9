"""Public data that studies read: where they are, and which bytes they were."""

import hashlib
import os
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError


def public_file(folder: str, collection: str, name: str, *, inside: bool = False) -> Path:
    """A file of a public collection, in the folder given (or `inside` it, in that of the collection's name) or, without
    one, in that of its name in $DEEPWIDE_DATA."""
    local = os.environ.get("DEEPWIDE_DATA")
    home = (Path(folder) / collection if inside else Path(folder)) if folder else None
    home = home or (Path(local) / collection if local else None)
    if home is None or not (home / name).is_file():
        where = f"{home} has no {name}" if home else f"the public data {collection} are not on this machine"
        holds = f"{collection}/{name}" if inside else name
        raise DeepwideError(
            f"{where}: set data to the folder that holds {holds}, or DEEPWIDE_DATA to the one that holds {collection}/."
        )
    return home / name


def file_row(path: Path) -> dict[str, Any]:
    """A line of the table of sources: the file, its bytes, their SHA-256."""
    content = path.read_bytes()
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
