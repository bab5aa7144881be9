"""Checkpoints: any damage is found, and the run resumes from the one before and says so."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deepwide.run import RunFolder, UnreadableRun, canonical
from deepwide.run import checkpoint as checkpoints
from deepwide.run.metrics import lines
from deepwide.run.toy import NUMERICS, ToyConfig
from deepwide.sweeping.worker import Exit, work


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    """A run with checkpoints of steps 2 and 4."""
    run = RunFolder.create(memory / "runs", {"lr": 0.1}, data_fingerprint="d", numerics="1")
    with run.lease("me") as writer:
        for step in (2, 4):
            writer.checkpoint(step, {"w": np.full(5, step), "b": np.full(3, -step)}, {"at": step})
    return run


def loaded(folder: RunFolder) -> tuple[int, float] | None:
    newest = folder.latest_checkpoint("numpy")
    return None if newest is None else (newest.step, float(newest.tensors["w"][0]))


def test_the_newest_comes_back_with_tensors_and_state(folder: RunFolder) -> None:
    newest = folder.latest_checkpoint("numpy")
    assert newest is not None
    assert newest.step == 4
    assert newest.state == {"at": 4}
    assert newest.tensors["b"].tolist() == [-4, -4, -4]


def test_torch_tensors_come_back_to_the_bit_also_tied_ones_and_bf16(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = RunFolder.create(tmp_path, {}, data_fingerprint="d", numerics="1")
    weight = torch.randn(7, 5).to(torch.bfloat16)
    given = {"weight": weight, "tied": weight, "turned": weight.T, "none": torch.zeros(0), "state": torch.arange(9)}
    with folder.lease("me") as lease:
        lease.checkpoint(1, given, {})
    newest = folder.latest_checkpoint()
    assert newest is not None
    assert newest.tensors.keys() == given.keys()
    assert all(torch.equal(newest.tensors[name], given[name]) for name in given)
    assert all(newest.tensors[name].dtype == given[name].dtype for name in given)


def test_large_checkpoints_are_split_and_come_back_whole(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SHARD_BYTES", 100)
    tensors = {f"t{i}": np.full(10, float(i)) for i in range(7)}
    with folder.lease("me") as lease:
        lease.checkpoint(6, tensors, {})
    assert len(list((folder.path / "checkpoints" / "6").glob("*.safetensors"))) == 7
    newest = folder.latest_checkpoint("numpy")
    assert newest is not None
    assert {name: float(tensor[0]) for name, tensor in newest.tensors.items()} == {f"t{i}": i for i in range(7)}


def test_a_bounded_number_is_kept(folder: RunFolder) -> None:
    with folder.lease("me") as lease:
        for step in range(5, 12):
            lease.checkpoint(step, {"w": np.zeros(2)}, {})
    assert checkpoints.steps(folder.path / "checkpoints") == [10, 11]


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_one_flipped_byte_anywhere_is_found(folder: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    newest = folder.path / "checkpoints" / "4"
    tried = 0
    for path in sorted(newest.iterdir()):
        for at in range(path.stat().st_size):
            flip(path, at)
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                assert loaded(folder) == (2, 2.0), f"{path.name} byte {at}"
            assert "damaged and was skipped" in caplog.text
            assert "resumes from the checkpoint before, step 2" in caplog.text
            flip(path, at)
            tried += 1
    assert loaded(folder) == (4, 4.0)
    assert tried > 400


def cut_in_half(folder: Path) -> None:
    path = folder / "tensors-0001.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def swap(folder: Path) -> None:
    one, two = folder / "tensors-0001.safetensors", folder.parent / "2" / "tensors-0001.safetensors"
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    del content


def replace_folder(folder: Path, other: Path | None = None) -> None:
    """An empty folder, or a copy of another one, in its place."""
    shutil.rmtree(folder)
    if other is None:
        folder.mkdir()
    else:
        shutil.copytree(other, folder)


def replace_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def rename_in_manifest(folder: Path, name: str) -> None:
    """As somebody would who knows how the manifest is sealed."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]
    manifest["files"] = {name: next(iter(manifest["files"].values()))}
    text = canonical(manifest | {"sha256": hashlib.sha256(canonical(manifest).encode()).hexdigest()})
    (folder / "manifest.json").write_text(text)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a truncated file": cut_in_half,
    "an emptied file": lambda f: (f / "state.json").write_bytes(b""),
    "a deleted tensor file": lambda f: (f / "tensors-0001.safetensors").unlink(),
    "a deleted manifest": lambda f: (f / "manifest.json").unlink(),
    "a file of another step": swap,
    "a manifest of another step": lambda f: shutil.copy(f.parent / "2" / "manifest.json", f / "manifest.json"),
    "the whole folder of another step": lambda f: replace_folder(f, f.parent / "2"),
    "a pickle in place of tensors": lambda f: (f / "tensors-0001.safetensors").write_bytes(b"\x80\x04K\x01."),
    "a manifest nested deep": lambda f: (f / "manifest.json").write_text('{"a":' * 900 + "1" + "}" * 900),
    "a manifest that names a NUL": lambda f: rename_in_manifest(f, "a\0b"),
    "an empty folder": replace_folder,
    "a file in place of the folder": replace_by_file,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found_and_the_one_before_is_used(folder: RunFolder, damage: Callable[[Path], object]) -> None:
    damage(folder.path / "checkpoints" / "4")
    assert loaded(folder) == (2, 2.0)


def test_a_checkpoint_of_another_run_is_not_loaded(folder: RunFolder) -> None:
    other = RunFolder.create(folder.path.parent, {"lr": 0.2}, data_fingerprint="d", numerics="1")
    shutil.copytree(folder.path / "checkpoints", other.path / "checkpoints")
    with pytest.raises(UnreadableRun, match="none of its 2 checkpoints is whole"):
        other.latest_checkpoint("numpy")


@pytest.mark.parametrize("kind", ["a link to a disk that is not mounted", "a file"])
def test_checkpoints_that_are_no_folder_stop_the_run_until_they_are_put_back(memory: Path, kind: str) -> None:
    folder, expected = interrupted(memory)
    home, away = folder.path / "checkpoints", memory / "away"
    home.rename(away)
    if kind == "a file":
        home.write_text("")
    else:
        home.symlink_to(memory / "nowhere")
    with pytest.raises(UnreadableRun, match=r"not a folder.*put the folder back \(is its disk mounted\?\)"):
        checkpoints.steps(home)
    before = (folder.path / "metrics.jsonl").read_bytes()
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    assert (folder.path / "metrics.jsonl").read_bytes() == before
    home.unlink()
    away.rename(home)
    assert work([folder.path], owner="one") == Exit.FINISHED
    assert folder.result() == expected.result()


def test_a_checkpoint_states_the_records_before_it(folder: RunFolder) -> None:
    with folder.lease("me") as lease:
        lease.append({"step": 5, "loss": 1.0})
        lease.append({"step": 6, "loss": 0.5})
        lease.checkpoint(6, {"w": np.zeros(2)}, {})
        lease.append({"step": 7, "loss": 0.25})
    (_, _), (_, _), (third, _) = list(lines(folder.path))
    before = checkpoints.verify(folder.path / "checkpoints" / "6", folder.id)
    assert before is not None
    assert before.records == 2
    assert before.check == list(lines(folder.path))[1][0].check != third.check


def test_when_no_checkpoint_is_whole_the_run_stops_and_does_not_start_over(memory: Path) -> None:
    folder, _ = interrupted(memory)
    for path in (folder.path / "checkpoints").glob("*/manifest.json"):
        flip(path, 10)
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    assert folder.result() is None
    record = folder.lease_record()
    assert record is not None
    assert "delete metrics.jsonl and the folder of checkpoints, and the run starts over" in record["note"]


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "tensors-0001.safetensors"])
def test_a_run_with_a_damaged_newest_checkpoint_ends_with_the_same_numbers(memory: Path, name: str) -> None:
    folder, expected = interrupted(memory)
    steps = checkpoints.steps(folder.path / "checkpoints")
    flip(folder.path / "checkpoints" / str(steps[-1]) / name, 5)
    assert work([folder.path], owner="one") == Exit.FINISHED
    assert (folder.path / "metrics.jsonl").read_bytes() == (expected.path / "metrics.jsonl").read_bytes()
    assert folder.result() == expected.result()
    assert checkpoints.verify(folder.path / "checkpoints" / "9", folder.id) is not None


def test_damaged_checkpoints_do_not_count_as_kept(folder: RunFolder) -> None:
    flip(folder.path / "checkpoints" / "4" / "manifest.json", 3)
    with folder.lease("me") as lease:
        lease.checkpoint(5, {"w": np.zeros(2)}, {})
    assert checkpoints.steps(folder.path / "checkpoints") == [2, 5]


def interrupted(home: Path) -> tuple[RunFolder, RunFolder]:
    """A toy run of nine steps that failed at the eighth, and one that did not."""
    config = ToyConfig(steps=9, checkpoint_every=3).model_dump(mode="json")
    whole = RunFolder.create(home / "whole", config, data_fingerprint="d", numerics=NUMERICS)
    assert work([whole.path], owner="one") == Exit.FINISHED
    folder = RunFolder.create(home / "runs", config, data_fingerprint="d", numerics=NUMERICS)
    shutil.copytree(whole.path / "checkpoints", folder.path / "checkpoints")
    shutil.copy(whole.path / "metrics.jsonl", folder.path)
    return folder, whole
