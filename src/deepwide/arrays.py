"""Array types for readers and mypy. numpy.typing would cost every plan 20 ms, so at run time they are Any."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Numbers = NDArray[Any]
else:
    ArrayLike = Floats = Integers = Numbers = Any

__all__ = ["ArrayLike", "Floats", "Integers", "Numbers"]
