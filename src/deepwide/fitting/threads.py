"""One thread for BLAS: the matrices of a fit are small."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread inside.

    Its threads wait for each other by spinning: beside other work, fits took up to 60 times as long with them.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limited: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limited
