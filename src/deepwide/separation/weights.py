"""Weights from somebody's file, taken at their exact value. The file may be a stranger's: regular, of limited size."""

import hashlib
import os
import zipfile
from collections.abc import Collection, Iterator
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deepwide.errors import DeepwideError, did_you_mean, install
from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import check_shape
from deepwide.separation.field import balanced
from deepwide.separation.network import NAMES, Network

LARGEST_BYTES = 1 << 28
_PIECE = 1 << 20


def load_network(
    path: Path,
    heads: int,
    prime: int,
    residual: bool = False,
    causal: bool = False,
    shape: tuple[int, int] | None = None,
) -> Network:
    """Weights from .npz or .safetensors: `0.query`, `0.key`, `0.value`, `0.output`, `1.query`, …, `readout`.

    Each is a d×d matrix as torch's Linear keeps it (out, in), heads one after another. Floats are taken
    at their exact value n·2^e, so the answer is about the very network in the file. A `shape` (depth, width) that the
    file does not have is refused before its values are looked at: a stranger's file may hold millions.
    """
    arrays = read_arrays(path)
    depth = _layers(arrays)
    wanted = [f"{layer}.{name}" for layer in range(depth) for name in NAMES]
    for name in wanted:
        if name not in arrays:
            raise DeepwideError(f"{path} has no array '{name}'; it holds {_list(arrays)}; needed: {_list(wanted)}.")
    for name in arrays:
        if name not in (*wanted, "readout"):
            raise DeepwideError(f"{path} has an array '{name[:80]}', no weight: {did_you_mean(name[:80], wanted)}")
    if not depth:
        raise DeepwideError(f"{path} holds no weights; it needs arrays 0.query, 0.key, 0.value, 0.output.")
    width = arrays["0.query"].shape[-1] if arrays["0.query"].ndim else 0
    check_shape(depth, width, heads)
    if shape and shape != (depth, width):
        raise DeepwideError(f"{path} holds depth {depth} and width {width}, not depth {shape[0]} and width {shape[1]}.")
    for name in wanted:
        if arrays[name].shape != (width, width):
            raise DeepwideError(f"'{name}' in {path} is {arrays[name].shape}; all must be {(width, width)}.")
    readout = arrays.get("readout", np.eye(width)[0])
    if readout.shape != (width,):
        raise DeepwideError(f"'readout' in {path} is {readout.shape}; it must be {(width,)}.")
    exact = {name: exact_residues(arrays[name], prime, f"'{name}' in {path}") for name in wanted}
    inner = (depth, heads, width // heads, width)
    query, key, value = (
        np.stack([exact[f"{layer}.{name}"] for layer in range(depth)]).reshape(inner) for name in NAMES[:3]
    )
    output = np.stack([exact[f"{layer}.output"] for layer in range(depth)])
    output = output.reshape(depth, width, heads, width // heads).transpose(0, 2, 1, 3)
    ends = exact_residues(readout, prime, f"'readout' in {path}")
    return Network(query, key, value, output, ends, prime, residual, causal)


def file_shape(path: Path) -> tuple[int, int]:
    """The depth and width of the weights in a file, from its names and its first query matrix."""
    arrays = read_arrays(path)
    if "0.query" not in arrays or arrays["0.query"].ndim != 2:
        raise DeepwideError(f"{path} has no matrix '0.query'; it holds {_list(arrays)}.")
    return _layers(arrays), arrays["0.query"].shape[1]


def file_hash(path: Path) -> str:
    """The SHA-256 of a regular file of limited size."""
    digest = hashlib.sha256()
    for piece in pieces(path):
        digest.update(piece)
    return digest.hexdigest()


def pieces(path: Path) -> Iterator[bytes]:
    """A file piece by piece, and no more of it than its size promised: some files of /proc are regular and endless."""
    check_file(path)
    with open(path, "rb") as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece


def check_file(path: Path) -> None:
    """Refuse what cannot be weights before a byte of it is read: /dev/zero has no end."""
    if path.exists() and not path.is_file():
        raise DeepwideError(
            f"{path} is not a regular file; weights: random, identity, or an .npz or .safetensors file."
        )
    if not path.is_file():
        raise DeepwideError(f"There is no file {path}; weights: random, identity, or an .npz or .safetensors file.")
    if not path.stat().st_size:
        raise DeepwideError(f"{path} is empty; weights: random, identity, or an .npz or .safetensors file.")
    if path.stat().st_size > LARGEST_BYTES:
        raise DeepwideError(f"{path} is too large for weights that can be measured: at most {LARGEST_BYTES >> 20} MiB.")


def read_arrays(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Named arrays from .npz or .safetensors; anything else gets a sentence."""
    check_file(path)
    try:
        if path.suffix == ".npz":
            content = b"".join(pieces(path))
            with zipfile.ZipFile(BytesIO(content)) as packed:
                members = packed.infolist()
            if sum(member.file_size for member in members) > LARGEST_BYTES:
                raise DeepwideError(f"{path} unpacks to more than {LARGEST_BYTES >> 20} MiB, too large for weights.")
            if len({member.filename for member in members}) < len(members):
                raise DeepwideError(f"{path} holds an array twice, and readers would differ on which one counts.")
            with np.load(BytesIO(content), allow_pickle=False) as file:
                return dict(file)
        if path.suffix == ".safetensors":
            from safetensors.numpy import load

            return dict(load(b"".join(pieces(path))))
    except ImportError:
        raise DeepwideError(f"For .safetensors you need safetensors: {install('train')}.") from None
    except DeepwideError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise DeepwideError(f"{path} cannot be read as {path.suffix[1:]}: {reason}.") from None
    raise DeepwideError(f"{path} must end in .npz or .safetensors.")


def exact_residues(values: npt.NDArray[np.generic], prime: int, what: str) -> Matrix:
    """Integers or floats (each exactly n·2^e) as residues modulo an odd prime.

    >>> exact_residues(np.array([0.5, -3.0, 0.75]), 7, "x")   # 1/2 = 4, −3 and 3/4 = 6 modulo 7
    array([-3., -3., -1.])
    """
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise DeepwideError(f"{what} must hold finite numbers.")
    residues = []
    for value in values.ravel().tolist():
        ratio = Fraction(value)
        residues.append(ratio.numerator * pow(ratio.denominator, -1, prime) % prime)
    return balanced(np.array(residues, dtype=np.int64), prime).reshape(values.shape)


def _layers(arrays: Collection[str]) -> int:
    return len({name.split(".")[0] for name in arrays if "." in name})


def _list(names: Collection[str]) -> str:
    shown = [f"'{name[:40]}'" for name in list(names)[:5]]
    return ", ".join(shown) + (", …" if len(names) > 5 else "")
