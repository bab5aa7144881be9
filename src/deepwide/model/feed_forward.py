"""Feed-forward kinds and activations by name. Shapes: B batch, T positions, D width, F feed-forward width."""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.cache import NO_TAPE, Tape

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
    "silu": functional.silu,
}


class PlainFeedForward(nn.Module):
    """down(act(up(x)))."""

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        s = design.shape
        self.up = nn.Linear(s.width, s.ff_width, bias=s.ff_bias)
        self.down = nn.Linear(s.ff_width, s.width, bias=s.ff_bias)
        self.act = ACTIVATIONS[design.activation]

    def forward(self, x_BTD: Tensor, tape: Tape = NO_TAPE) -> Tensor:
        pre_BTF = tape("pre", self.up(x_BTD))
        y: Tensor = self.down(tape("post", self.act(pre_BTF)))
        return y


class GatedFeedForward(nn.Module):
    """down(act(gate(x)) · up(x)), Shazeer 2020; gate and up are one matrix, gate's rows first."""

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        s = design.shape
        self.gate_up = nn.Linear(s.width, 2 * s.ff_width, bias=s.ff_bias)
        self.down = nn.Linear(s.ff_width, s.width, bias=s.ff_bias)
        self.act = ACTIVATIONS[design.activation]

    def forward(self, x_BTD: Tensor, tape: Tape = NO_TAPE) -> Tensor:
        gate_BTF, up_BTF = self.gate_up(x_BTD).chunk(2, dim=-1)
        gate_BTF, up_BTF = tape("pre", gate_BTF), tape("up", up_BTF)
        y: Tensor = self.down(tape("post", self.act(gate_BTF) * up_BTF))
        return y


FEED_FORWARD: Mapping[str, Callable[[Architecture], nn.Module]] = {
    "plain": PlainFeedForward,
    "gated": GatedFeedForward,
}
