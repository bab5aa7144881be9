"""C += A·B in place, by the BLAS that SciPy carries; by NumPy where that cannot be trusted.

NumPy cannot add a product onto a view without a copy of it, BLAS can. SciPy exports dgemm and sgemm to Cython as
capsules: an address and a C signature in words. This is the only module that hands addresses to C, so it checks the
signature, the shapes and the strides, and at first use multiplies small integer matrices inside a guarded buffer. If
anything is not as expected, every product is NumPy's: slower, never wrong.

BLAS's own threads wait for each other by spinning. Beside another busy process one of them is often off its core, and
all wait: five times as long and more. So BLAS gets one thread here, and large products are cut into pieces that as many
threads of ours as there are cores take one after the other; a slow thread then costs one piece.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]  # float64 or float32
Kernel = Callable[..., None]

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_SIGNATURE = b"void (char *, char *, int *, int *, int *, "  # 32-bit sizes; a build with 64-bit ones reads "long"
_NAMES = {8: "dgemm", 4: "sgemm"}
_REALS = {8: ctypes.c_double, 4: ctypes.c_float}
_SHARED = 1 << 22  # multiplications below which a product is not worth cutting
_PIECES = 4  # per core
_FEWEST_ROWS = 32  # of a piece


@cache
def pool() -> ThreadPoolExecutor:
    """As many threads as there are cores."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="deepwide-field")


@cache
def gemm(size: int = 8) -> Kernel | None:
    """SciPy's dgemm (entries of 8 bytes) or sgemm (4) if it is there and multiplies rightly, else None."""
    try:
        kernel = _load(size)
    except (ImportError, AttributeError, KeyError, ValueError):
        return None
    return kernel if is_right(kernel, size) else None


def _load(size: int) -> Kernel:
    from scipy.linalg import cython_blas

    exported: dict[str, Any] = cython_blas.__pyx_capi__  # type: ignore[assignment]
    capsule = exported[_NAMES[size]]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name(capsule)
    if not signature.startswith(_SIGNATURE) or signature.count(b",") != 12:
        raise ValueError(f"another signature of {_NAMES[size]}")
    character, integer, real = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(_REALS[size])
    prototype = ctypes.CFUNCTYPE(
        None, character, character, integer, integer, integer, real,
        ctypes.c_void_p, integer, ctypes.c_void_p, integer, real, ctypes.c_void_p, integer,
    )  # fmt: skip
    return prototype(pointer(capsule, signature))


def is_right(kernel: Kernel, size: int = 8) -> bool:
    """Whether a kernel adds the right product to a view, and touches nothing around it."""
    draw = np.random.default_rng(0)
    real: Any = np.float64 if size == 8 else np.float32
    large = 2**18 if size == 8 else 2**10
    for m, n, k in ((1, 1, 1), (3, 5, 2), (7, 4, 6)):
        buffer = draw.integers(-99, 99, (m + 2, n + 3)).astype(real)
        a, b = (draw.integers(-large, large, shape).astype(real) for shape in ((m, k), (k, n)))
        expected = buffer.copy()
        expected[1:-1, 1 : n + 1] += a.astype(np.int64) @ b.astype(np.int64)
        _call(kernel, buffer[1:-1, 1 : n + 1], a, b)
        if not (buffer == expected).all():
            return False
    return True


def add_product(c: Floats, a: Floats, b: Floats) -> None:
    """C += A·B in place; C and B may be views as long as their rows are contiguous.

    Every large product of this room goes through this one BLAS: NumPy's own is a second library with threads of its
    own, and the two would wait for each other.

    >>> c = np.ones((2, 2))
    >>> add_product(c, np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> c.tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    a = np.ascontiguousarray(a)
    if not (a.size and b.size):
        return
    kernel = gemm(c.dtype.itemsize)
    if kernel is None:
        c += a @ b
    elif CORES == 1 or a.size * b.shape[1] < _SHARED:
        with _one_thread():
            _call(kernel, c, a, b)
    else:
        tall = len(a) >= CORES * _FEWEST_ROWS  # else by columns: the first products of an elimination are low and wide
        length = len(a) if tall else b.shape[1]
        step = max(_FEWEST_ROWS, -(-length // (_PIECES * CORES)))

        def piece(start: int) -> None:
            part = slice(start, start + step)
            if tall:
                _call(kernel, c[part], a[part], b)
            else:
                _call(kernel, c[:, part], a, b[:, part])

        with _one_thread():
            list(pool().map(piece, range(0, length, step)))


@cache
def _libraries() -> tuple[Any, ...]:
    """SciPy's BLAS as threadpoolctl sees it: none where it is no OpenBLAS, or threadpoolctl is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return ()
    loaded = ThreadpoolController().select(internal_api="openblas").lib_controllers
    return tuple(library for library in loaded if "scipy" in library.filepath.split(os.sep)[-2])


_lock, _inside, _threads = Lock(), 0, (0,)


@contextmanager
def _one_thread() -> Iterator[None]:
    """SciPy's BLAS with one thread, until the last product that is under way has finished."""
    global _inside, _threads
    with _lock:
        _inside += 1
        if _inside == 1:
            _threads = tuple(library.get_num_threads() for library in _libraries())
            for library in _libraries():
                library.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for library, threads in zip(_libraries(), _threads, strict=True):
                    library.set_num_threads(threads)


def _call(kernel: Kernel, c: Floats, a: Floats, b: Floats) -> None:
    (m, n), k, size = c.shape, a.shape[1], c.dtype.itemsize
    # Asserted because a wrong shape or stride would silently write elsewhere.
    assert a.shape == (m, k)
    assert b.shape == (k, n)
    assert a.dtype == b.dtype == c.dtype
    assert c.dtype in (np.float64, np.float32)
    assert c.flags.writeable

    def integer(value: int) -> "ctypes._Pointer[ctypes.c_int]":
        assert 0 < value < 2**31
        return ctypes.pointer(ctypes.c_int(value))

    def leading(x: Floats) -> "ctypes._Pointer[ctypes.c_int]":
        # NumPy leaves the stride of an axis of length one undefined.
        assert x.shape[1] == 1 or x.strides[1] == size
        assert x.shape[0] == 1 or x.strides[0] % size == 0
        stride = x.strides[0] // size if x.shape[0] > 1 else x.shape[1]
        assert stride >= x.shape[1]
        return integer(stride)

    one = _REALS[size](1.0)
    # BLAS is column-major: our rows are its columns, so it computes Cᵀ += Bᵀ·Aᵀ.
    kernel(
        b"N", b"N", integer(n), integer(m), integer(k), ctypes.pointer(one), b.ctypes.data, leading(b),
        a.ctypes.data, leading(a), ctypes.pointer(one), c.ctypes.data, leading(c),
    )  # fmt: skip
