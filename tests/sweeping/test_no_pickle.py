"""No pickle is ever loaded: malicious ones lie in every place we read, and nothing happens but a sentence."""

import hashlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.run import RunFolder, canonical
from deepwide.sweeping import cell_state, cells_of, read_spec, table
from deepwide.sweeping.worker import Exit, work
from sweeping.toys import toys

SOURCE = Path(deepwide.__file__).parent
LOADERS = re.compile(
    r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve|marshal)\b"
    r"|(?<!safetensors\.)torch\.load\(|allow_pickle=True|(?<!\.)\beval\(|\bexec\("
)


class Malice:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def malice(tmp_path: Path) -> bytes:
    payload = pickle.dumps(Malice(tmp_path / "marker"))
    pickle.loads(payload)
    assert (tmp_path / "marker").exists(), "the payload works"
    (tmp_path / "marker").unlink()
    return payload


def made(runs: Path) -> RunFolder:
    """A run whose newest checkpoint is step 4 of 6."""
    (cell,) = cells_of(toys(grid={}, seeds=[0], run={"steps": 6, "checkpoint_every": 2}))
    folder = cell.folder(runs)
    with folder.lease("me") as lease:
        import numpy as np

        for step in (2, 4):
            lease.append({"step": step, "loss": 1.0})
            lease.checkpoint(step, {"weights": np.zeros((4, 4)), "momentum": np.zeros((4, 4))}, {})
    return folder


FILES = ["config.json", "lease.json", "result.json", "metrics.jsonl"]
SAVED = ["manifest.json", "state.json", "tensors-0001.safetensors"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("ending", [b"", b"\n"], ids=["bare", "line"])
def test_a_pickle_in_place_of_state_is_unreadable(
    memory: Path, tmp_path: Path, malice: bytes, name: str, ending: bytes
) -> None:
    folder = made(memory)
    (folder.path / name).write_bytes(malice.replace(b"\n", b" ") + ending)
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    (cell,) = cells_of(toys(grid={}, seeds=[0], run={"steps": 6, "checkpoint_every": 2}))
    cell_state(cell, memory)
    if name in ("config.json", "result.json"):
        with pytest.raises(DeepwideError):
            table([cell], memory)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("vouched", [False, True], ids=["damaged", "with a manifest that vouches for it"])
def test_a_pickle_in_a_checkpoint_is_skipped(
    memory: Path, tmp_path: Path, malice: bytes, name: str, vouched: bool
) -> None:
    folder = made(memory)
    home = folder.path / "checkpoints" / "4"
    (home / name).write_bytes(malice)
    (home / "model.pt").write_bytes(malice)
    (home / "optimizer.bin").write_bytes(malice)
    if vouched and name != "manifest.json":
        files = {saved: hashlib.sha256((home / saved).read_bytes()).hexdigest() for saved in SAVED[1:]}
        files["model.pt"] = hashlib.sha256(malice).hexdigest()
        manifest = {"run": folder.id, "step": 4, "files": files}
        own = hashlib.sha256(canonical(manifest).encode()).hexdigest()
        (home / "manifest.json").write_text(canonical(manifest | {"sha256": own}))
    found = folder.latest_checkpoint("numpy")
    assert found is not None
    assert found.step == 2
    assert work([folder.path], owner="one") == Exit.FINISHED
    assert not (tmp_path / "marker").exists()


def test_a_manifest_cannot_reach_outside_its_folder(memory: Path) -> None:
    folder = made(memory)
    home = folder.path / "checkpoints" / "4"
    outside = folder.path / "config.json"
    manifest = {
        "run": folder.id,
        "step": 4,
        "files": {"../../config.json": hashlib.sha256(outside.read_bytes()).hexdigest()},
    }
    own = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    (home / "manifest.json").write_text(canonical(manifest | {"sha256": own}))
    found = folder.latest_checkpoint("numpy")
    assert found is not None
    assert found.step == 2


def test_a_pickle_as_a_spec_is_a_sentence(tmp_path: Path, malice: bytes) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(malice)
    with pytest.raises(DeepwideError):
        read_spec(path)
    assert not (tmp_path / "marker").exists()


def test_nothing_is_unpickled_while_a_run_is_resumed(memory: Path) -> None:
    """Python itself is the witness: its audit event for looking up a pickled class never comes."""
    folder = made(memory)
    code = f"""
import sys
from pathlib import Path
from typing import Any
from deepwide.sweeping.worker import work
seen = []
sys.addaudithook(lambda name, _: seen.append(name) if name == "pickle.find_class" else None)
code = work([Path({str(folder.path)!r})], owner="audited")
print(code, seen)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "0 []\n"


def test_no_module_of_ours_can_load_a_pickle_or_run_text() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if LOADERS.search(line)
    ]
    assert found == []
