"""Checkpoints: safetensors files and a manifest of their SHA-256, written last. No pickle, on any path.

    checkpoints/<step>/tensors-0001.safetensors …, state.json, manifest.json

The folder is filled under a temporary name and renamed when it is whole. The manifest carries the run, the step and
its own hash, so that a flipped byte, a truncation, a missing file, or a file or folder from elsewhere is found.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deepwide import files
from deepwide.errors import quoted
from deepwide.run.records import UnreadableRun, canonical, read_record
from deepwide.run.seals import Chain

if TYPE_CHECKING:
    import torch

MANIFEST, STATE = "manifest.json", "state.json"
SHARD_BYTES = 256 * 2**20  # a shard is serialised in memory before it is written
Framework = Literal["torch", "numpy"]


class BadCheckpoint(Exception):  # noqa: N818
    """A checkpoint that does not verify; the message says which file and why."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: tensors by name, and what else the trainer wants back (JSON)."""

    step: int
    tensors: dict[str, "torch.Tensor"]
    state: dict[str, Any]
    metrics: Chain | None = None  # the records before it; None where it was written before it said so


def write(
    folder: Path, run: str, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], metrics: Chain
) -> None:
    """Fill `folder`, which must be new and not yet anyone's: data first, manifest last.

    `metrics` are the records before it: without them the run cannot resume from here.
    """
    folder.mkdir(parents=True)
    hashes = {}
    for name, content in chain([(STATE, canonical(dict(state)).encode())], _shards(tensors)):
        files.write_new(folder / name, content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    manifest: dict[str, Any] = {"run": run, "step": step, "files": hashes}
    manifest["metrics"] = {"records": metrics.records, "check": metrics.check}
    files.write_new(folder / MANIFEST, canonical(manifest | {"sha256": _hash_of(manifest)}).encode())
    files.sync_folder(folder)


def read(folder: Path, run: str, framework: Framework = "torch") -> Checkpoint:
    """The checkpoint in a folder, every byte verified; raises `BadCheckpoint`."""
    contents, metrics = _verified(folder, run)
    tensors: dict[str, Any] = {}
    try:
        state = json.loads(contents.pop(STATE, b"{}"))
        for content in contents.values():
            tensors |= _load(content, framework)
    except Exception as error:  # a manifest that is right about files that are wrong: somebody made it
        raise BadCheckpoint(f"{folder} cannot be decoded ({' '.join(str(error).split())[:80]})") from None
    if not isinstance(state, dict):
        raise BadCheckpoint(f"{folder / STATE} is not an object")
    return Checkpoint(int(folder.name), tensors, state, metrics)


def verify(folder: Path, run: str) -> Chain | None:
    """Check every byte of a checkpoint and return the records before it; raises `BadCheckpoint`."""
    return _verified(folder, run)[1]


def steps(checkpoints: Path) -> list[int]:
    """The steps there are checkpoints of, good or bad, rising."""
    if not os.path.lexists(checkpoints):
        return []
    if not checkpoints.is_dir():  # a file, or a link to a disk that is not mounted
        raise UnreadableRun(checkpoints, "it is not a folder", "put the folder back (is its disk mounted?)")
    return sorted(int(path.name) for path in checkpoints.iterdir() if path.name.isdecimal())


def _verified(folder: Path, run: str) -> tuple[dict[str, bytes], Chain | None]:
    """The contents by name, read once, so that what is loaded is what was verified; and the records before it."""
    try:
        manifest = read_record(folder / MANIFEST, "")
    except (UnreadableRun, NotADirectoryError):
        raise BadCheckpoint(f"{folder / MANIFEST} is damaged") from None
    if manifest is None:
        raise BadCheckpoint(f"{folder / MANIFEST} is missing")
    try:
        whole = manifest.pop("sha256", None) == _hash_of(manifest) and isinstance(manifest.get("files"), dict)
        before = manifest.get("metrics")
        metrics = None if before is None else Chain(before["records"], before["check"])
    except (RecursionError, KeyError, TypeError, UnicodeError):
        whole, metrics = False, None
    if not whole:
        raise BadCheckpoint(f"{folder / MANIFEST} is damaged")
    if manifest.get("run") != run or str(manifest.get("step")) != folder.name:
        raise BadCheckpoint(f"{folder} holds step {manifest.get('step')} of run {manifest.get('run')}")
    contents = {}
    for name, expected in manifest["files"].items():
        try:
            with files.open_regular(folder / Path(name).name) as file:
                content = file.read()
        except (FileNotFoundError, files.NotRegularError, ValueError):  # the last for a NUL in the name
            raise BadCheckpoint(f"{folder / MANIFEST} names {quoted(name)}, which is missing") from None
        if hashlib.sha256(content).hexdigest() != expected:
            raise BadCheckpoint(f"{folder / name} is not what was written")
        contents[name] = content
    return contents, metrics


def _hash_of(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(manifest)).encode()).hexdigest()


def _shards(tensors: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    groups: list[dict[str, Any]] = [{}]
    size = 0
    for name, tensor in sorted(tensors.items()):
        if size and size + tensor.nbytes > SHARD_BYTES:
            groups.append({})
            size = 0
        groups[-1][name] = tensor
        size += tensor.nbytes
    for i, group in enumerate(groups, start=1):
        yield f"tensors-{i:04d}.safetensors", _save(group)


def _save(tensors: dict[str, Any]) -> bytes:
    if any(hasattr(tensor, "detach") for tensor in tensors.values()):
        import safetensors.torch

        # Tied weights share memory, which the format refuses: each name gets its own copy.
        own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        return safetensors.torch.save(own)
    import safetensors.numpy

    return safetensors.numpy.save(tensors)


def _load(content: bytes, framework: Framework) -> dict[str, Any]:
    if framework == "numpy":
        import safetensors.numpy

        return safetensors.numpy.load(content)
    import safetensors.torch

    return safetensors.torch.load(content)
