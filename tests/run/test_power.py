"""Power cuts: what was not synced is gone, and nothing that was promised is. Without any one sync, this test fails.

A disk that keeps exactly what was synced is simulated by watching `fsync`: of a file it keeps the content of that
moment, of a folder its entries. At every point of a run the power is cut in two ways:

- strict: files and names that were not synced are not there;
- ahead: names and sizes are there as of now, contents as of their last sync and zeros beyond (ext4 in writeback mode).
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from deepwide import faults, files
from deepwide.run import RunFolder, RunWriter, lease
from deepwide.run.records import CHECKPOINTS
from deepwide.sweeping import trainer_of, work
from run.killer import contents

CONFIG = {"trainer": "toy", "steps": 5, "checkpoint_every": 2}
Tree = dict[str, bytes | None]  # by relative path; None for a folder


@pytest.fixture(autouse=True)
def without_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sync is the run's own, however slow the machine is."""
    monkeypatch.setattr(lease.Lease, "start_heartbeat", lambda _: None)


@dataclass
class Disk:
    """What would be there after a power cut."""

    root: Path
    ignored: str = ""  # syncs of names that begin so are left out
    files: dict[int, bytes] = field(default_factory=dict)  # contents by inode
    folders: dict[int, dict[str, int]] = field(default_factory=dict)  # inodes by name, by inode
    known_folders: set[int] = field(default_factory=set)
    promised: tuple[int, bool] = (-1, False)  # the newest checkpoint, and whether the run has finished
    synced: set[str] = field(default_factory=set)  # the names of all syncs there were
    cuts: dict[str, tuple[str, Tree, tuple[int, bool], str]] = field(default_factory=dict)

    def sync(self, handle: int, name: str) -> None:
        """In place of `files.sync`."""
        faults.point(f"before fsync of {name}")
        label = self.label(name)
        self.synced.add(label)
        if self.ignored and label == self.ignored:
            return
        about = os.fstat(handle)
        path = os.readlink(f"/proc/self/fd/{handle}")
        if os.path.isdir(path):
            self.folders[about.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            with open(f"/proc/self/fd/{handle}", "rb") as file:
                self.files[about.st_ino] = file.read()

    @staticmethod
    def label(name: str) -> str:
        """The name of a sync without what differs between runs."""
        prefix, _, last = name.rpartition(" ")
        if prefix and last.startswith("."):
            kind = "a run" if len(last.split(".")[1]) == 16 else "a checkpoint"
            return f"{prefix} in which {kind} is made"
        return f"{prefix} of a run" if len(last) == 16 else name

    def cut(self, point: str) -> None:
        """Remember what would be there if the power went now."""
        for how, tree in (("strict", self.strict()), ("ahead", self.ahead())):
            key = hashlib.sha256(repr((how, self.promised, sorted(tree.items()))).encode()).hexdigest()
            self.cuts.setdefault(key, (how, tree, self.promised, point))

    def strict(self) -> Tree:
        """What was synced, by names that were synced."""
        tree: Tree = {}

        def walk(inode: int, prefix: str) -> None:
            for name, inner in self.folders.get(inode, {}).items():
                if inner in self.folders or inner in self.known_folders:
                    tree[prefix + name] = None
                    walk(inner, f"{prefix}{name}/")
                else:
                    tree[prefix + name] = self.files.get(inner, b"")

        walk(self.root.stat().st_ino, "")
        return tree

    def ahead(self) -> Tree:
        """What is there, with the contents that were synced."""
        tree: Tree = {}
        for path in sorted(self.root.rglob("*")):
            about, name = path.stat(), str(path.relative_to(self.root))
            if path.is_dir():
                self.known_folders.add(about.st_ino)
                tree[name] = None
            else:
                tree[name] = self.files.get(about.st_ino, b"").ljust(about.st_size, b"\0")[: about.st_size]
        return tree


def train(runs: Path) -> RunFolder:
    trainer = trainer_of(CONFIG)
    resolved = trainer.resolve(CONFIG)
    identity = trainer.identity(resolved.config)
    folder = RunFolder.create(runs, resolved.config, **identity, counts=resolved.cost._asdict())
    assert work([folder.path], owner="one") == 0
    return folder


def cuts(home: Path, ignored: str = "") -> Disk:
    """A run of which every moment is remembered as a power cut would leave it."""
    root = home / "disk"
    root.mkdir()
    disk = Disk(root, ignored)
    save, finish = RunWriter.checkpoint, RunWriter.finish

    def saved(self: RunWriter, step: int, *words: Any, **more: Any) -> None:
        save(self, step, *words, **more)
        disk.promised = step, False
        disk.cut(f"checkpoint {step} was saved")

    def finished(self: RunWriter, *words: Any, **more: Any) -> None:
        finish(self, *words, **more)
        disk.promised = disk.promised[0], True
        disk.cut("the run has finished")

    with (
        mock.patch.object(files, "sync", disk.sync),
        mock.patch.object(faults, "point", disk.cut),
        mock.patch.object(faults, "_strike_at", 1 << 62),
        mock.patch.object(RunWriter, "checkpoint", saved),
        mock.patch.object(RunWriter, "finish", finished),
    ):
        train(root / "deep" / "runs")
        disk.cut("the end")
    return disk


def wrong_after(home: Path, disk: Disk, *, stop_at_first: bool = False) -> list[str]:
    """Every cut, resumed: what was promised and is not there, and what ends otherwise than a whole run."""
    expected = contents(disk.root / "deep" / "runs")
    wrong: list[str] = []
    name = next((disk.root / "deep" / "runs").glob("[0-9a-f]*")).name
    for number, (how, tree, (saved, finished), point) in enumerate(disk.cuts.values()):
        if wrong and stop_at_first:
            break
        where = home / f"cut-{number}"
        for path, content in tree.items():
            target = where / path
            if content is None:
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        what = f"{how}, {point}"
        try:
            if saved >= 0:
                folder = RunFolder.open(where / "deep" / "runs" / name)
                newest = folder.latest_checkpoint("numpy")
                if newest is None or newest.step < saved:
                    wrong.append(f"{what}: checkpoint {saved} is lost")
                if finished and folder.result() is None:
                    wrong.append(f"{what}: the result is lost")
            with mock.patch.object(lease, "is_dead", return_value=True):  # the machine was off
                train(where / "deep" / "runs")
            if contents(where / "deep" / "runs") != expected:
                wrong.append(f"{what}: differs after resume")
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__} {error}")
    return wrong


def test_a_power_cut_at_any_point_loses_nothing_that_was_promised(memory: Path) -> None:
    disk = cuts(memory)
    assert wrong_after(memory, disk) == []
    assert len(disk.cuts) > 40
    assert disk.synced == SYNCS


SYNCS = {
    "config.json", "lease.json", "metrics.jsonl", "result.json", "state.json", "tensors-0001.safetensors",
    "manifest.json", "the folder disk", "the folder deep", "the folder runs", "the folder checkpoints",
    "the folder of a run", "the folder in which a run is made", "the folder in which a checkpoint is made",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SYNCS))
def test_without_any_one_sync_a_power_cut_is_noticed(memory: Path, name: str) -> None:
    assert wrong_after(memory, cuts(memory, ignored=name), stop_at_first=True) != []


def _metrics_synced_too_late(patch: pytest.MonkeyPatch) -> None:
    sync, save = RunWriter._sync_metrics, RunWriter.checkpoint

    def late(self: RunWriter, *words: Any) -> None:
        with mock.patch.object(RunWriter, "_sync_metrics"):
            save(self, *words)
        sync(self)

    patch.setattr(RunWriter, "checkpoint", late)


def _old_checkpoints_removed_first(patch: pytest.MonkeyPatch) -> None:
    save = RunWriter.checkpoint

    def early(self: RunWriter, *words: Any) -> None:
        for old in (self.path / CHECKPOINTS).glob("[0-9]*"):
            files.remove_folder(old)
        save(self, *words)

    patch.setattr(RunWriter, "checkpoint", early)


@pytest.mark.parametrize("swap", [_metrics_synced_too_late, _old_checkpoints_removed_first])
def test_two_writes_in_the_wrong_order_are_noticed(
    memory: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[pytest.MonkeyPatch], None]
) -> None:
    with monkeypatch.context() as patch:
        swap(patch)
        disk = cuts(memory)
    assert wrong_after(memory, disk, stop_at_first=True) != []
