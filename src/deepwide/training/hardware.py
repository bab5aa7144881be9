"""What this machine can do: devices by name, bf16, the peak of its matrix product, its memory."""

import ctypes
import os
import subprocess
import sys
import time

import torch

from deepwide.errors import DeepwideError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
BF16_PRODUCT = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(x, x)"


def find_device(name: str) -> torch.device:
    """`cpu`, `cuda`, `cuda:1`, or `auto`: the graphics processor if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
        torch.empty(1, device=device).item()  # meta has no numbers
    except (RuntimeError, AssertionError):
        raise DeepwideError(f"there is no device '{name[:40]}' here: use cpu, or auto.") from None
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bf16 itself; where it does not, bf16 is slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        announced = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return bool(announced) and _survives(BF16_PRODUCT)
    return False


def _survives(program: str) -> bool:
    """Whether Python gets through these lines, in a process of its own: some virtual machines announce AMX and trap
    its use, which ends the process."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def peak_flops(device: torch.device, precision: str = "fp32", size: int = 1024, seconds: float = 0.2) -> float:
    """The best measured rate of a square matrix product with the present number of threads, in FLOPs per second."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    out = torch.empty_like(a)
    best, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def keep_memory() -> bool:
    """Let glibc keep what a step frees for the next step instead of giving it back to the system page by page.

    A step allocates the same activations every time; handing them back costs thousands of page faults per step. Blocks
    above 32 MiB, the most that glibc allows, still go back at once. False where there is no glibc to ask.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((M_MMAP_THRESHOLD, 2**25), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**26))
    return all(mallopt(name, value) == 1 for name, value in settings)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OUT_OF_MEMORY)
