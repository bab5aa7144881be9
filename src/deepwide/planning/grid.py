"""Many shapes at once: sizes as arrays, everything else from one Shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from deepwide.shape import Shape


@dataclass(frozen=True)
class Grid:
    """Shapes that differ in their sizes only, the sizes held as numbers or numpy arrays, whole or real.

    It reads as a Shape: a field that is no size is the template's, and what a Shape derives from its fields (such as
    `params`) is derived from the grid's. So all counting functions take it, and give arrays.
    """

    template: Shape
    depth: Any
    width: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    ff_width: Any

    def __post_init__(self) -> None:
        vars(self).update({**vars(self.template), **vars(self)})

    def __getattr__(self, name: str) -> Any:
        if name not in _DERIVED:
            raise AttributeError(f"a Shape has no '{name}'")
        return _DERIVED[name](self)

    @property
    def as_shape(self) -> Shape:
        """The grid itself, for functions that are annotated for one Shape."""
        return cast(Shape, self)


# Looked up once: a plan counts a thousand grids.
_DERIVED: dict[str, Callable[[Any], Any]] = {
    name: value.fget
    for kind in reversed(Shape.__mro__)
    for name, value in vars(kind).items()
    if isinstance(value, property) and value.fget is not None
}

Sizes = Shape | Grid
Measure = Callable[[Sizes], Any]  # what a budget limits: block parameters, total parameters, bytes, …
