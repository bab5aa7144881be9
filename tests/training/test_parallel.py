"""Two gloo processes under FSDP2 train the run that one process trains, and one can resume what they saved."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.run import RunFolder
from training.builders import MakeRun, finish, weights

WORKER = """
import os, sys
from deepwide.run import RunFolder
from deepwide.training import continue_run

run = RunFolder.open(sys.argv[1])
left = iter([False] * int(sys.argv[2]))
stop = lambda: next(left, True)
if os.environ["RANK"] == "0":
    with run.lease("two") as lease:
        continue_run(run, lease, device="cpu", threads=1, stop=stop)
else:
    continue_run(run, None, device="cpu", threads=1, stop=stop)
"""


def on_two(run: RunFolder, tmp_path: Path, steps: int) -> None:
    """Let two processes train so many steps, then ask both to leave."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    command = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
        str(run.path),
        str(steps),
    ]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"depth": 2, "width": 16, "preset": "llama", "parametrisation": "completep"}},
        {"task": {"name": "reversing", "length": 8, "shortest": 1}, "model": {"depth": 1, "width": 16}},
    ],
    ids=["language", "reversing"],
)
def test_two_processes_give_the_losses_of_one_and_one_resumes_what_two_saved(
    make_run: MakeRun, tmp_path: Path, changes: dict[str, Any]
) -> None:
    alone, shared = finish(make_run("alone", **changes)), make_run("shared", **changes)
    on_two(shared, tmp_path, 5)
    kept = shared.latest_checkpoint()
    assert kept is not None
    assert kept.step == 5  # left between steps, with everything gathered
    assert shared.result() is None
    for one, two in zip(alone.metrics(), shared.metrics(), strict=False):
        assert (one["kind"], one["step"]) == (two["kind"], two["step"])
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-5)
    finish(shared)
    assert shared.result()["status"] == "done"  # type: ignore[index]
    assert shared.result()["validation_loss"] == pytest.approx(alone.result()["validation_loss"], rel=1e-5)  # type: ignore[index]
    for name, tensor in weights(alone).items():
        assert torch.allclose(tensor, weights(shared)[name], rtol=1e-3, atol=1e-5), name
