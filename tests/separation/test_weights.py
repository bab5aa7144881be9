"""Weights from files: exact, and nothing but regular files of limited size."""

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import weights
from deepwide.separation.field import PRIME as P
from deepwide.separation.network import direct
from deepwide.separation.weights import exact_residues, file_hash, file_shape, load_network, read_arrays
from separation.builders import is_one_sentence, save_weights


def same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool((np.mod(x - y, P) == 0).all())


def save(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)  # type: ignore[arg-type]
    else:
        from safetensors.numpy import save_file

        save_file(arrays, path)
    return path


def some_weights(depth: int, width: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    names = [f"{layer}.{name}" for layer in range(depth) for name in ("query", "key", "value", "output")]
    return {name: draw.normal(size=(width, width)).astype(np.float32) for name in names}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_weights_from_a_file_are_the_network_that_floats_compute(tmp_path: Path, suffix: str) -> None:
    arrays = {name: np.round(array * 2) / 2 for name, array in some_weights(2, 4).items()}
    path = save(tmp_path / f"w{suffix}", arrays | {"readout": np.ones(4, dtype=np.float32)})
    assert file_shape(path) == (2, 4)
    network = load_network(path, 2, P)
    x = np.random.default_rng(1).integers(-3, 4, (3, 4)).astype(float)
    y = x.copy()
    for layer in range(2):
        w = {name: arrays[f"{layer}.{name}"].astype(float) for name in ("query", "key", "value", "output")}
        new = np.zeros_like(y)
        for h in range(2):
            rows = slice(2 * h, 2 * h + 2)
            q, k, v = (y @ w[name][rows].T for name in ("query", "key", "value"))
            new += (q @ k.T) @ v @ w["output"][:, rows].T
        y = new
    exact = exact_residues(np.array([y[1].sum()]), P, "y")
    assert same(direct(network, x[..., None], 1), exact)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("1.key"), "no array '1.key'"),
        (lambda a: a.update({"0.querry": a["0.query"]}), "did you mean '0.query'"),
        (lambda a: a.update({"0.key": np.zeros((3, 4))}), "all must be"),
        (lambda a: a.update({"0.key": np.full((4, 4), np.nan)}), "finite"),
        (lambda a: a.clear(), "holds no weights"),
    ],
)
def test_a_weight_file_that_is_wrong_gets_a_sentence(tmp_path: Path, change: object, words: str) -> None:
    arrays = some_weights(2, 4)
    change(arrays)  # type: ignore[operator]
    with pytest.raises(DeepwideError, match=words):
        load_network(save(tmp_path / "w.npz", arrays), 1, P)


def test_a_weight_file_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"not a file of arrays")
    (tmp_path / "w.txt").write_text("weights")
    (tmp_path / "e.npz").write_text("")
    for name, words in (
        ("w.npz", "cannot be read"), ("w.txt", "must end in"), ("v.npz", "no file"), ("e.npz", "is empty")
    ):  # fmt: skip
        with pytest.raises(DeepwideError, match=words):
            load_network(tmp_path / name, 1, P)


def test_the_hash_is_that_of_the_whole_file(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "w.npz").write_bytes(content)
    assert file_hash(tmp_path / "w.npz") == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/stdin", "/dev", "nowhere.npz"])
@pytest.mark.parametrize("reader", [file_hash, read_arrays, file_shape])
def test_only_regular_files_are_read(device: str, reader: object) -> None:
    with pytest.raises(DeepwideError, match=r"not a regular file|no file") as stopped:
        reader(Path(device))  # type: ignore[operator]
    assert is_one_sentence(str(stopped.value))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.npz")
    with pytest.raises(DeepwideError, match="not a regular file"):
        file_hash(tmp_path / "w.npz")


@pytest.mark.parametrize("endless", ["/proc/self/pagemap", "/proc/kmsg", "/proc/self/mem"])
@pytest.mark.parametrize("reader", [file_hash, read_arrays, file_shape])
def test_regular_files_without_an_end_are_not_read(endless: str, reader: object, tmp_path: Path) -> None:
    """Their size is 0, and the first would take hours, the second waits for ever."""
    if not Path(endless).is_file():
        pytest.skip(f"this system has no {endless}")
    (tmp_path / "w.npz").symlink_to(endless)
    with pytest.raises(DeepwideError, match="is empty"):
        reader(tmp_path / "w.npz")  # type: ignore[operator]


def test_no_more_is_read_than_the_size_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.npz").write_bytes(b"x" * 2500)
    monkeypatch.setattr(weights, "_PIECE", 1000)
    assert [len(piece) for piece in weights.pieces(tmp_path / "w.npz")] == [1000, 1000, 500]
    growing = weights.pieces(tmp_path / "w.npz")
    first = next(growing)
    with open(tmp_path / "w.npz", "ab") as file:
        file.write(b"x" * 10_000)
    assert len(first + b"".join(growing)) == 2500


def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **{"0.query": np.eye(2)})  # type: ignore[arg-type]
    with zipfile.ZipFile(tmp_path / "w.npz", "a") as packed, pytest.warns(UserWarning, match="Duplicate"):
        packed.writestr("0.query.npy", packed.read("0.query.npy"))
    with pytest.raises(DeepwideError, match="twice"):
        read_arrays(tmp_path / "w.npz")


def test_another_shape_is_refused_before_the_values_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_weights(tmp_path / "w.npz", 0, width=3)
    assert load_network(path, 1, P, shape=(2, 3)).width == 3
    monkeypatch.setattr(weights, "exact_residues", lambda *_: pytest.fail("looked at"))
    with pytest.raises(DeepwideError, match="holds depth 2 and width 3, not depth 2 and width 2"):
        load_network(path, 1, P, shape=(2, 2))


def test_files_and_archives_that_are_too_large_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LARGEST_BYTES", 1 << 20)
    with open(tmp_path / "sparse.npz", "wb") as file:
        file.truncate((1 << 20) + 1)
    np.savez_compressed(tmp_path / "bomb.npz", **{"0.query": np.zeros((1000, 1000))})  # type: ignore[arg-type]
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 20
    with pytest.raises(DeepwideError, match="too large"):
        file_hash(tmp_path / "sparse.npz")
    with pytest.raises(DeepwideError, match="unpacks to more"):
        read_arrays(tmp_path / "bomb.npz")
