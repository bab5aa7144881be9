"""A scrub reads every byte: whatever is changed in a run folder is named, with its file and a remedy."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from deepwide.run import RunFolder, scrub


def finished(runs: Path, lr: float = 0.1) -> RunFolder:
    folder = RunFolder.create(runs, {"lr": lr}, data_fingerprint="d", numerics="1")
    with folder.lease("me") as writer:
        for step in (1, 2, 3, 4):
            writer.append({"step": step, "loss": lr / step})
            if step % 2 == 0:
                writer.checkpoint(step, {"w": np.arange(8.0) * step}, {"step": step})
        writer.finish("done", loss=lr)
    return folder


def test_a_whole_run_has_no_findings(memory: Path) -> None:
    assert scrub(finished(memory).path) == []


def test_every_byte_of_a_run_counts(memory: Path) -> None:
    """300 random bytes, each changed in turn; a lease states nothing that a result depends on, so it is left out."""
    folder = finished(memory)
    paths = sorted(p for p in folder.path.rglob("*") if p.is_file() and p.name not in ("lease.json", ".lock"))
    chance = random.Random(0)
    missed = []
    for _ in range(300):
        path = chance.choice(paths)
        content = path.read_bytes()
        at, other = chance.randrange(len(content)), chance.randrange(1, 256)
        path.write_bytes(content[:at] + bytes([content[at] ^ other]) + content[at + 1 :])
        found = scrub(folder.path)
        if not any(finding.kind == "damaged" and finding.remedy for finding in found):
            missed.append((path.name, at, content[at] ^ other))
        path.write_bytes(content)
    # The last line break of a file is no part of any record.
    assert [miss for miss in missed if miss[0] != "config.json" or miss[2] not in b" \t\r"] == []
    assert scrub(folder.path) == []


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "result.json", "checkpoints/2", "checkpoints/4"])
@pytest.mark.parametrize("how", ["deleted", "from another run"])
def test_a_missing_or_foreign_file_is_named(memory: Path, name: str, how: str) -> None:
    folder, other = finished(memory, 0.1), finished(memory, 0.2)
    path = folder.path / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if how == "from another run":
        source = other.path / name
        shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)
    found = [finding for finding in scrub(folder.path) if finding.kind == "damaged"]
    if how == "deleted" and name in ("result.json", "checkpoints/2", "checkpoints/4"):
        assert found == [], "a run without it is a run: it has not finished, or keeps one checkpoint less"
        return
    assert found
    assert any(finding.file.startswith((name, "result.json")) for finding in found)
    assert all(finding.run == folder.id and finding.remedy for finding in found)


def test_what_killed_workers_left_and_what_has_no_checksum_is_no_damage(memory: Path) -> None:
    folder = RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")
    (folder.path / "metrics.jsonl").write_text('{"step":1}\n{"st')
    (folder.path / "result.json").write_text('{"status":"done"}')
    (folder.path / ".result.json.1.aa.tmp").write_text("{")
    (folder.path / "config.json").write_text('{"config":{"lr":0.1},"data":"d","numerics":"1"}')
    assert [(finding.file, finding.kind) for finding in scrub(folder.path)] == [
        ("config.json", "unchecked"),
        ("metrics.jsonl", "unchecked"),
        ("result.json", "unchecked"),
        (".result.json.1.aa.tmp", "leftover"),
    ]


def test_a_checkpoint_ahead_of_its_metrics_is_named(memory: Path) -> None:
    folder = finished(memory)
    (folder.path / "result.json").unlink()
    path = folder.path / "metrics.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    found = [finding for finding in scrub(folder.path) if finding.kind == "damaged"]
    assert [finding.file for finding in found] == ["checkpoints/4"]
    assert "does not hold the 4 records before it" in found[0].what
