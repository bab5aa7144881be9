"""Connectivity: which edges of a graph belong to the component of a marked vertex (Sanford, Hsu, Telgarsky 2024).

A graph is a list of edges in random order, one token per edge, after one token that marks a vertex. Every component is
a path of D edges, and the marked vertex is an end of one, so that an answer may need all D steps of the diameter. The
components of a graph differ in nothing but the mark, and answers are scored on the marked component and on one other:
without following edges from the mark, yes and no are equally likely at every edge.

Letters: B examples, V vertices, S places for edges, T = S + 1 tokens.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from deepwide.shape import Kind
from deepwide.tasks.generated import Draw, Generated, Integers
from deepwide.tasks.task import Batch

if TYPE_CHECKING:
    from torch import Tensor

RANDOM = 2**62  # sort keys are drawn below it


class Connectivity(Generated):
    """Whether each edge belongs to the marked vertex's component; diameters 1 … largest are equally frequent.

    Tokens: edge {u, v} with u < v is v(v − 1)/2 + u; then one token per vertex to mark it; then the answers no and yes.
    """

    name: ClassVar[str] = "connectivity"
    kind: ClassVar[Kind] = "encoder"

    vertices: Annotated[int, Field(ge=4, le=1000)] = 18
    largest: Annotated[int, Field(ge=1, le=499, description="the largest diameter of a component")] = 8

    @model_validator(mode="after")
    def _two_components_fit(self) -> Self:
        if self.vertices < 2 * (self.largest + 1):
            raise ValueError(
                f"vertices ({self.vertices}) must be at least 2 (largest + 1) = {2 * (self.largest + 1)}, "
                "so that there are two components of the largest diameter"
            )
        return self

    @property
    def edges(self) -> int:
        """How many different edges there are, each with a token of its own."""
        return self.vertices * (self.vertices - 1) // 2

    @property
    def no(self) -> int:
        """The token of the answer no; yes is the next."""
        return self.edges + self.vertices

    @property
    def vocab(self) -> int:
        return self.no + 2

    @property
    def context(self) -> int:
        return self.vertices - 1  # paths in V vertices, at least two, have at most V − 2 edges

    def generate(self, draw: Draw) -> Batch:
        B, V, S = len(draw), self.vertices, self.context - 1
        diameter_B1 = 1 + draw.below(self.largest, 1)
        order_BV = np.argsort(draw.below(RANDOM, V), axis=1, kind="stable")
        # Vertices order[p] and order[p + 1] are joined, but for the last vertex of a path and for what is left over.
        place = np.arange(V - 1)[None, :]
        path, step = place // (diameter_B1 + 1), place % (diameter_B1 + 1)
        joined = (step < diameter_B1) & (path < V // (diameter_B1 + 1))
        low, high = np.minimum(order_BV[:, :-1], order_BV[:, 1:]), np.maximum(order_BV[:, :-1], order_BV[:, 1:])
        shuffled = np.argsort(np.where(joined, draw.below(RANDOM, V - 1), RANDOM), axis=1, kind="stable")[:, :S]
        edge_BS, path_BS, joined_BS = (
            np.take_along_axis(values, shuffled, axis=1) for values in (high * (high - 1) // 2 + low, path, joined)
        )
        mark_B1 = self.edges + order_BV[:, :1]
        first_B1 = np.zeros((B, 1), dtype=np.int64)
        return Batch.of(
            np.hstack([mark_B1, np.where(joined_BS, edge_BS, self.no)]),
            np.hstack([first_B1, self.no + (joined_BS & (path_BS == 0))]),
            mask=np.hstack([first_B1 > 0, joined_BS & (path_BS <= 1)]),
            padding=np.hstack([first_B1 == 0, joined_BS]),
        )

    def ends(self, tokens_BS: Integers) -> tuple[Integers, Integers]:
        """The vertices u < v of each edge; of what is no edge, nothing sensible."""
        of_edge = np.array([(u, v) for v in range(self.vertices) for u in range(v)], dtype=np.int64)
        u_BS, v_BS = np.moveaxis(of_edge[np.minimum(tokens_BS, self.edges - 1)], -1, 0)
        return u_BS, v_BS

    def distances(self, tokens_BT: Integers) -> Integers:
        """How many edges lie between the marked vertex and each edge, −1 where none lead there: B × T − 1.

        By waves from the mark; any graph may be given, not only those that are generated.
        """
        edge_BS = tokens_BT[:, 1:]
        is_edge_BS = edge_BS < self.edges
        u_BS, v_BS = self.ends(edge_BS)
        rows_B1 = np.arange(len(tokens_BT))[:, None]
        reached_BV: NDArray[np.bool_] = np.zeros((len(tokens_BT), self.vertices), dtype=bool)
        reached_BV[rows_B1[:, 0], tokens_BT[:, 0] - self.edges] = True
        distance_BS = np.full(edge_BS.shape, -1)
        for wave in range(edge_BS.shape[1]):
            new_BS = is_edge_BS & (distance_BS < 0) & (reached_BV[rows_B1, u_BS] | reached_BV[rows_B1, v_BS])
            if not new_BS.any():
                break
            distance_BS[new_BS] = wave
            row, place = np.nonzero(new_BS)
            reached_BV[row, u_BS[row, place]] = True
            reached_BV[row, v_BS[row, place]] = True
        return distance_BS

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
        """The usual sums, and by diameter: right answers at the farthest edges, and at edges elsewhere."""
        output = logits()
        sums = super().measure(batch, loss, lambda: output)
        assert batch.mask_BT is not None
        right_BS = (output.argmax(-1) == batch.targets).numpy(force=True)[:, 1:]
        scored_BS = batch.mask_BT.numpy(force=True)[:, 1:]
        distance_BS = self.distances(batch.tokens_BT.numpy(force=True))
        diameter_B1 = scored_BS.sum(1, keepdims=True) // 2  # as many answers are yes as no
        farthest_BS, elsewhere_BS = distance_BS == diameter_B1 - 1, scored_BS & (distance_BS < 0)
        for diameter in range(1, self.largest + 1):
            here_B1 = diameter_B1 == diameter
            for name, group_BS in (("farthest", farthest_BS), ("elsewhere", elsewhere_BS)):
                sums[f"{name}_{diameter}"] = int((group_BS & here_B1).sum())
                sums[f"right_{name}_{diameter}"] = int((group_BS & here_B1 & right_BS).sum())
        return sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The usual ones, and `accuracy_D` for every diameter D: the mean of the shares of right answers at the edges
        farthest from the mark and at edges of the other component. Whoever looks less than D steps far has ½."""

        def share(name: str, diameter: int) -> float:
            return sums[f"right_{name}_{diameter}"] / sums[f"{name}_{diameter}"]

        drawn = [diameter for diameter in range(1, self.largest + 1) if sums[f"farthest_{diameter}"]]
        by_diameter = {f"accuracy_{d}": (share("farthest", d) + share("elsewhere", d)) / 2 for d in drawn}
        return super().metrics(sums) | by_diameter
