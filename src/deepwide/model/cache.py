"""Names for the activations of a forward pass, so that they can be read or changed (`Transformer.run_with_cache`).

Each part of the network shows its activations to a tape: `x = tape("q", x)`. The ordinary tape returns what it is
given; a Recorder keeps what was asked for and applies edits. There are no hooks, so nothing is left behind.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from deepwide.errors import DeepwideError, did_you_mean

Edit = Callable[[Tensor], Tensor]


class Tape:
    """Ignores all activations: the tape of an ordinary forward pass."""

    def __call__(self, name: str, x: Tensor) -> Tensor:  # noqa: ARG002
        """Show the activation `name`; the network continues with what is returned."""
        return x

    def at(self, place: str) -> "Tape":  # noqa: ARG002
        """The tape for a part of the network, whose names begin with `place`."""
        return self

    def wants(self, *names: str) -> bool:  # noqa: ARG002
        """Whether one of these activations is asked for; what a fused kernel never forms is computed only then."""
        return False


NO_TAPE = Tape()


class Recorder(Tape):
    """Keeps the activations whose full names match one of `names` (all of them for None), after edits.

    Names and the keys of `edits` are full names or globs, in which `*` also matches dots.
    """

    def __init__(self, names: Sequence[str] | None = None, edits: Mapping[str, Edit] | None = None) -> None:
        self.names, self.edits, self.prefix = names, edits or {}, ""
        self.activations: dict[str, Tensor] = {}
        self.seen: dict[str, None] = {}  # every name the pass went through, in order

    def __call__(self, name: str, x: Tensor) -> Tensor:
        full = self.prefix + name
        self.seen[full] = None
        for pattern, edit in self.edits.items():
            if fnmatchcase(full, pattern):
                edited = edit(x)
                if edited.shape != x.shape:
                    sizes = f"{tuple(edited.shape)} instead of {tuple(x.shape)}"
                    raise DeepwideError(f"the edit of '{full}' returned a tensor of shape {sizes}.")
                x = edited
        if self._is_named(full):
            # A slice of all of a parameter, as positions may be, would require gradients even without any.
            self.activations[full] = x if torch.is_grad_enabled() else x.detach()
        return x

    def at(self, place: str) -> "Recorder":
        part = Recorder(self.names, self.edits)
        part.prefix, part.activations, part.seen = f"{self.prefix}{place}.", self.activations, self.seen
        return part

    def wants(self, *names: str) -> bool:
        return any(
            self._is_named(full) or any(fnmatchcase(full, pattern) for pattern in self.edits)
            for full in (self.prefix + name for name in names)
        )

    def _is_named(self, full: str) -> bool:
        return self.names is None or any(fnmatchcase(full, pattern) for pattern in self.names)

    def check(self, also: Sequence[str] = ()) -> None:
        """Refuse names and edits that no activation of the pass has; `also` are names known without it."""
        known = [*self.seen, *also]
        for pattern in (*(self.names or ()), *self.edits):
            if not any(fnmatchcase(name, pattern) for name in known):
                raise DeepwideError(f"there is no activation '{pattern}': {did_you_mean(pattern, known)}")
