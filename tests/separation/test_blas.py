"""The one door to C: right on views, and not trusted when it is wrong."""

import ctypes
from typing import Any

import numpy as np
import pytest

from deepwide.separation import blas
from deepwide.separation.blas import add_product, gemm, is_right


@pytest.fixture
def fresh() -> object:
    """The kernel is looked up anew in a test, and once more after it."""
    gemm.cache_clear()
    yield
    gemm.cache_clear()


@pytest.mark.parametrize("real", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1), (5, 3, 4), (1, 7, 2), (6, 1, 3), (40, 50, 60), (0, 3, 2), (2, 0, 3), (2, 3, 0),
        (401, 203, 99), (33, 1201, 120), (64, 257, 300),  # cut into pieces, by rows and by columns
    ],
)  # fmt: skip
def test_it_adds_the_product_to_a_view_and_touches_nothing_else(
    shape: tuple[int, int, int], real: type[np.floating[Any]]
) -> None:
    m, n, k = shape
    draw = np.random.default_rng(m + 10 * n + 100 * k)
    buffer = draw.integers(-9, 9, (m + 4, n + 6)).astype(real)
    wide = draw.integers(-9, 9, (k + 1, n + 2)).astype(real)
    a, b = draw.integers(-9, 9, (m, k)).astype(real), wide[:k, 1 : n + 1]
    expected = buffer.copy()
    expected[2 : m + 2, 3 : n + 3] += a @ b
    add_product(buffer[2 : m + 2, 3 : n + 3], a, b)
    np.testing.assert_array_equal(buffer, expected)


def test_it_is_the_fast_one_here() -> None:
    kernel = gemm()
    assert kernel is not None
    assert is_right(kernel)


def test_blas_has_one_thread_during_a_product_and_its_own_number_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blas._libraries(), "threadpoolctl does not find SciPy's BLAS"
    before = [library.get_num_threads() for library in blas._libraries()]
    during: list[int] = []
    honest = blas._call

    def watched(*arguments: Any) -> None:
        during.extend(library.get_num_threads() for library in blas._libraries())
        honest(*arguments)

    monkeypatch.setattr(blas, "_call", watched)
    add_product(np.zeros((400, 400)), np.ones((400, 200)), np.ones((200, 400)))
    assert len(during) > 1
    assert set(during) == {1}
    assert [library.get_num_threads() for library in blas._libraries()] == before


def test_a_kernel_that_does_nothing_or_the_wrong_thing_is_found_out() -> None:
    honest = gemm()
    assert honest is not None
    assert not is_right(lambda *_: None)
    assert not is_right(lambda *arguments: honest(*arguments) or honest(*arguments))
    forgetful = ctypes.pointer(ctypes.c_double(0.0))  # C = A·B instead of C += A·B
    assert not is_right(lambda *arguments: honest(*arguments[:10], forgetful, *arguments[11:]))


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("broken", [lambda: lambda *_: None, lambda: (_ for _ in ()).throw(ImportError("no SciPy"))])
def test_without_a_kernel_that_is_right_numpy_multiplies(monkeypatch: pytest.MonkeyPatch, broken: object) -> None:
    monkeypatch.setattr(blas, "_load", lambda _: broken())  # type: ignore[operator]
    assert gemm() is None
    c = np.ones((3, 3))
    add_product(c[:2], np.full((2, 1), 2.0), np.full((1, 3), 5.0))
    assert c.tolist() == [[11.0] * 3, [11.0] * 3, [1.0] * 3]


@pytest.mark.usefixtures("fresh")
def test_another_signature_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_SIGNATURE", b"void (char *, char *, long *, long *, long *, ")
    assert gemm() is None


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((2, 2))),  # shapes that do not fit
        (np.zeros((2, 4))[:, ::2], np.zeros((2, 2)), np.zeros((2, 2))),  # columns that are not neighbours
        (np.zeros((2, 2)).T.copy(order="F"), np.zeros((2, 2)), np.zeros((2, 2))),
        (np.zeros((2, 2), dtype=np.float32), np.zeros((2, 2)), np.zeros((2, 2))),
    ],
)
def test_what_would_write_elsewhere_stops(arguments: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    with pytest.raises(AssertionError):
        add_product(*arguments)
