"""One thread inside, what was there before outside."""

import sys

import pytest
from threadpoolctl import threadpool_info

from deepwide.fitting.threads import one_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_again_outside() -> None:
    before = blas_threads()
    assert before, "NumPy has a BLAS that threadpoolctl knows"
    with one_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_without_threadpoolctl_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    before = blas_threads()
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_thread():
        assert blas_threads() == before
