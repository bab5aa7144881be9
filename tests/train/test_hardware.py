"""What the machine gives back and what it keeps."""

import subprocess
import sys

import pytest

from deepwide.errors import DeepwideError
from deepwide.train.hardware import find_device

STEPS = """
import resource
from deepwide.train.hardware import keep_memory
import torch
kept = keep_memory()
def step():
    for size in (2**22 + 2**21, 2**22, 2**20):
        blocks = [torch.ones(size) for _ in range(4)]
for _ in range(3): step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10): step()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc is asked")
def test_memory_that_a_step_frees_is_kept_for_the_next() -> None:
    """Without it glibc may or may not give the blocks back, as its moving thresholds fall; with it, it never does."""
    said = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True).stdout
    kept, faults = said.split()
    if kept == "False":
        pytest.skip("no glibc here")
    pages = 10 * 4 * 4 * (2**22 + 2**21 + 2**22 + 2**20) // 4096
    assert int(faults) < pages / 100


@pytest.mark.parametrize("name", ["meta", "cuda:99", "abacus"])
def test_a_device_that_cannot_train_gets_a_sentence(name: str) -> None:
    with pytest.raises(DeepwideError, match=f"there is no device '{name}' here"):
        find_device(name)
