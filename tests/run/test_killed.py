"""SIGKILL at every point of every write: after resume nothing can be told from a run that nobody interrupted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepwide.run import RunFolder
from deepwide.run.toy import NUMERICS, ToyConfig

KILLER = Path(__file__).parent / "killer.py"


def kill_everywhere(home: Path, config: dict[str, Any], first: int = 1, stride: int = 1) -> dict[str, Any]:
    """The killer's report."""
    settings = home / "config.json"
    settings.write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, str(KILLER), str(home / "runs"), str(settings), str(first), str(stride)],
        capture_output=True, text=True, timeout=400, check=False,
        env=os.environ | {"DEEPWIDE_CACHE": str(home / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_kill_at_any_point_leaves_the_same_result_metrics_and_weights(memory: Path) -> None:
    report = kill_everywhere(memory, {"trainer": "toy", "steps": 5, "checkpoint_every": 2})
    assert report["wrong"] == []
    assert report["tried"] == report["count"] > 80
    met = " / ".join(report["points"])
    for what in (
        "in the middle of append of metrics", "before rename to result.json", "after rename to result.json",
        "in the middle of temporary write of lease.json", "in the middle of write of manifest.json",
        "after fsync of tensors-0001.safetensors", "before rename to 4", "in the middle of removal of 2",
        "in the middle of write of config.json",
    ):  # fmt: skip
        assert what in met


def test_a_worker_started_by_the_command_line_dies_where_the_environment_says(tmp_path: Path) -> None:
    config = ToyConfig(steps=3).model_dump(mode="json")
    folder = RunFolder.create(tmp_path, config, data_fingerprint="d", numerics=NUMERICS)
    command = [sys.executable, "-m", "deepwide", "worker", str(folder.path)]
    died = subprocess.run(command, env=os.environ | {"DEEPWIDE_FAULT": "20"}, check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert folder.result() is None
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert folder.result() is not None
    lease = folder.lease_record()
    assert lease is not None
    assert lease["number"] == 2, "whoever takes over gets the next number"


@pytest.mark.slow
def test_the_real_trainer_killed_anywhere_gives_the_same_weights_to_the_bit(memory: Path, small_corpus: Path) -> None:
    pytest.importorskip("torch")
    config = {
        "model": {"depth": 1, "width": 16, "heads": 2},
        "data": {"source": str(small_corpus)},
        "steps": 6, "batch": 2, "context": 16, "checkpoint_every": 2,
        "evaluation": {"every": 3, "sequences": 2}, "log_every": 1,
    }  # fmt: skip
    report = kill_everywhere(memory, config)
    assert report["wrong"] == []
    assert report["tried"] == report["count"] > 80
