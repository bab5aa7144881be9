"""C += A·B in place, by the BLAS that SciPy carries; by NumPy where that cannot be trusted.

NumPy cannot add a product onto a view without a copy of it, BLAS can. SciPy exports dgemm to Cython as a capsule: an
address and a C signature in words. This is the only module that hands addresses to C, so it checks the signature, the
shapes and the strides, and at first use multiplies small integer matrices inside a guarded buffer. If anything is not
as expected, every product is NumPy's: slower, never wrong.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Kernel = Callable[..., None]

_SIGNATURE = b"void (char *, char *, int *, int *, int *, "  # 32-bit sizes; a build with 64-bit ones reads "long"


@cache
def dgemm() -> Kernel | None:
    """SciPy's dgemm if it is there and multiplies rightly, else None."""
    try:
        kernel = _load()
    except (ImportError, AttributeError, KeyError, ValueError):
        return None
    return kernel if is_right(kernel) else None


def _load() -> Kernel:
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["dgemm"]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name(capsule)
    if not signature.startswith(_SIGNATURE) or signature.count(b",") != 12:
        raise ValueError("another signature of dgemm")
    character, integer, real = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
    prototype = ctypes.CFUNCTYPE(
        None, character, character, integer, integer, integer, real,
        ctypes.c_void_p, integer, ctypes.c_void_p, integer, real, ctypes.c_void_p, integer,
    )  # fmt: skip
    return prototype(pointer(capsule, signature))


def is_right(kernel: Kernel) -> bool:
    """Whether a kernel adds the right product to a view, and touches nothing around it."""
    draw = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (3, 5, 2), (7, 4, 6)):
        buffer = draw.integers(-99, 99, (m + 2, n + 3)).astype(np.float64)
        a, b = (draw.integers(-(2**18), 2**18, shape).astype(np.float64) for shape in ((m, k), (k, n)))
        expected = buffer.copy()
        expected[1:-1, 1 : n + 1] += a.astype(np.int64) @ b.astype(np.int64)
        _call(kernel, buffer[1:-1, 1 : n + 1], a, b)
        if not (buffer == expected).all():
            return False
    return True


def add_product(c: Matrix, a: Matrix, b: Matrix) -> None:
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
    kernel = dgemm()
    if kernel is None:
        c += a @ b
    else:
        _call(kernel, c, a, b)


def _call(kernel: Kernel, c: Matrix, a: Matrix, b: Matrix) -> None:
    (m, n), k = c.shape, a.shape[1]
    # Asserted because a wrong shape or stride would silently write elsewhere.
    assert a.shape == (m, k)
    assert b.shape == (k, n)
    assert a.dtype == b.dtype == c.dtype == np.float64
    assert c.flags.writeable

    def integer(value: int) -> "ctypes._Pointer[ctypes.c_int]":
        assert 0 < value < 2**31
        return ctypes.pointer(ctypes.c_int(value))

    def leading(x: Matrix) -> "ctypes._Pointer[ctypes.c_int]":
        # NumPy leaves the stride of an axis of length one undefined.
        assert x.shape[1] == 1 or x.strides[1] == 8
        assert x.shape[0] == 1 or x.strides[0] % 8 == 0
        stride = x.strides[0] // 8 if x.shape[0] > 1 else x.shape[1]
        assert stride >= x.shape[1]
        return integer(stride)

    one = ctypes.c_double(1.0)
    # BLAS is column-major: our rows are its columns, so it computes Cᵀ += Bᵀ·Aᵀ.
    kernel(
        b"N", b"N", integer(n), integer(m), integer(k), ctypes.pointer(one), b.ctypes.data, leading(b),
        a.ctypes.data, leading(a), ctypes.pointer(one), c.ctypes.data, leading(c),
    )  # fmt: skip
