"""What the machine gives back and what it keeps."""

import subprocess
import sys

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.training import hardware
from deepwide.training.hardware import find_device, has_fast_bf16

STEPS = """
import ctypes, resource
from deepwide.training.hardware import keep_memory
kept = keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def step(size=24 << 20):
    blocks = [libc.malloc(size) for _ in range(4)]
    for block in blocks: ctypes.memset(block, 1, size)
    for block in blocks: libc.free(block)
for _ in range(3): step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10): step()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc is asked")
def test_memory_that_a_step_frees_is_kept_for_the_next() -> None:
    said = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True).stdout
    kept, faults = said.split()
    if kept == "False":
        pytest.skip("no glibc here")
    assert int(faults) < 10 * 4 * (24 << 20) // 4096 / 100, "fewer than one page in a hundred comes anew"


@pytest.mark.parametrize("name", ["meta", "cuda:99", "abacus"])
def test_a_device_that_cannot_train_gets_a_sentence(name: str) -> None:
    with pytest.raises(DeepwideError, match=f"there is no device '{name}' here"):
        find_device(name)


def test_a_product_that_ends_the_process_is_not_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual machine may announce AMX and trap its use."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    monkeypatch.setattr(hardware, "BF16_PRODUCT", "pass")
    assert has_fast_bf16(torch.device("cpu"))
    monkeypatch.setattr(hardware, "BF16_PRODUCT", "import os; os.abort()")
    assert not has_fast_bf16(torch.device("cpu"))
