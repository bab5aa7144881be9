"""The parts of a block besides attention, each chosen by name: norms, feed-forward, positions, residual schemes.

Shapes: B batch, T positions, D width, F feed-forward width, H heads, E head width.

Learned positions are vectors added to embeddings (transformer.py); rotary ones turn queries and keys, ALiBi biases
scores.

Residual schemes say how a sublayer joins the stream, and with what gain its matrices start:

    plain       x + f              deepnorm    αx + f, α = (2N)^¼, gain β = (8N)^−¼     (Wang et al. 2022)
    none        f                  rezero      x + a·f, a = 0 learned                   (Bachlechner et al. 2020)
    layerscale  x + γ⊙f            admin       ω⊙x + f, ω learned                       (Liu et al. 2020)

N is the depth; an encoder-decoder has other α and β for each stack (`_deepnorm`). LayerScale (Touvron et al. 2021)
starts at γ = 0.1, 1e-5 or 1e-6 by depth (up to 18, up to 24, deeper). ADMIN starts without profiling at admin-torch's
ω = √((n+1)/ln(n+1) − 1), n residual sublayers; `admin_profiled` is the original, whose ω are measured on a batch by
`profile` and are 1 until then. The parametrisation's branch multiplier stands before f in all of them.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture, Stack, branch_multiplier
from deepwide.model.cache import NO_TAPE, Tape


class LayerNorm(nn.Module):
    """Ba et al. 2016: centred, divided by the standard deviation, scaled and shifted."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        return functional.layer_norm(x_BTD, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Zhang & Sennrich 2019: divided by the root mean square and scaled."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        return functional.rms_norm(x_BTD, self.weight.shape, self.weight, self.eps)


class NoNorm(nn.Module):
    """The identity, for networks without norms."""

    def __init__(self, width: int, eps: float) -> None:  # noqa: ARG002
        super().__init__()

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD


NORMS: Mapping[str, Callable[[int, float], nn.Module]] = {
    "layernorm": LayerNorm,
    "rmsnorm": RMSNorm,
    "none": NoNorm,
}


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


Rotation = tuple[Tensor, Tensor]  # cosines and sines, T × E/2


def rotation(context: int, head_dim: int, base: float) -> Rotation:
    """Angles of Su et al. 2021: position t turns pair i by t·base^(−2i/E); pairs are (i, i + E/2) as in Llama."""
    frequency = base ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.outer(torch.arange(context, dtype=torch.float64), frequency)
    return angle.cos().float(), angle.sin().float()


def rotate(x_BTHE: Tensor, turn: Rotation) -> Tensor:
    """Queries or keys turned by their positions."""
    T = x_BTHE.shape[1]
    cos, sin = (part[:T, None, :].to(x_BTHE.dtype) for part in turn)
    left, right = x_BTHE.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def alibi_bias(heads: int, context: int) -> Tensor:
    """Press et al. 2022: −slope·distance, slopes 2^(−8h/H) for a power of two, interleaved otherwise."""

    def powers(n: int) -> list[float]:
        return [2 ** (-8 * (h + 1) / n) for h in range(n)]

    floor = 1 << (heads.bit_length() - 1)
    slopes = torch.tensor(powers(floor) + powers(2 * floor)[0::2][: heads - floor])
    distance = torch.arange(context)[:, None] - torch.arange(context)[None, :]
    return -slopes[:, None, None] * distance.abs()


class PlainResidual(nn.Module):
    """x + m·f."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__()
        self.multiplier = branch_multiplier(design, stack)

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(x_BTD, f_BTD, alpha=self.multiplier)


class NoResidual(PlainResidual):
    """m·f: no residual connection."""

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:  # noqa: ARG002
        return f_BTD if self.multiplier == 1 else f_BTD * self.multiplier


class DeepNorm(PlainResidual):
    """αx + m·f."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        self.alpha = _deepnorm(design, stack)[0]

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(self.multiplier * f_BTD, x_BTD, alpha=self.alpha)


class LearnedScale(PlainResidual):
    """x + m·s⊙f with s learned: ReZero's number, LayerScale's vector."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        size, self.start = (1, 0.0) if design.residual == "rezero" else (design.shape.width, _layerscale(stack))
        self.scale = nn.Parameter(torch.full((size,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(x_BTD, f_BTD, self.scale, value=self.multiplier)


class Admin(PlainResidual):
    """ω⊙x + m·f with ω learned."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        n = stack.depth * stack.sublayers
        self.start = 1.0 if design.residual == "admin_profiled" else math.sqrt((n + 1) / math.log(n + 1) - 1)
        self.scale = nn.Parameter(torch.full((design.shape.width,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(self.multiplier * f_BTD, x_BTD, self.scale)


class ProfiledAdmin(Admin):
    """ADMIN whose ω is set in the first forward pass after a `Profile` was given to it."""

    profile: "Profile | None" = None

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        if self.profile is not None:
            self.profile.visit(self.scale, x_BTD, self.multiplier * f_BTD)
            self.profile = None  # once: the second sequence of a pair passes through what the first one set
        return super().forward(x_BTD, f_BTD)


class Profile:
    """The running r of one stack: ω_i := r, then r := √(Var(ω_i x) + Var(f_i(x))) over all elements, from r = 1."""

    def __init__(self) -> None:
        self.r, self.omegas = 1.0, list[float]()

    def visit(self, scale_D: Tensor, x_BTD: Tensor, f_BTD: Tensor) -> None:
        """Set the ω of the next sublayer; what is computed after it sees the new one."""
        self.omegas.append(self.r)
        scale_D.fill_(self.r)
        parts = (scale_D * x_BTD, f_BTD)
        self.r = math.sqrt(sum(float(part.double().var(correction=0)) for part in parts))


def profile(model: nn.Module, tokens_BT: Tensor, **inputs: Tensor) -> dict[str, list[float]]:
    """ADMIN's profiling (Liu et al. 2020): one batch through the initial weights sets every ω, which are returned in
    order by stack, "" or "encoder."; nothing else changes. Empty for networks with another residual scheme."""
    profiles: dict[str, Profile] = {}
    for name, module in model.named_modules():
        if isinstance(module, ProfiledAdmin):
            stack = "encoder." if name.startswith("encoder.") else ""
            module.profile = profiles.setdefault(stack, Profile())
    if profiles:
        with torch.no_grad():
            model(tokens_BT, **inputs)
    return {stack: running.omegas for stack, running in profiles.items()}


def _layerscale(stack: Stack) -> float:
    return 0.1 if stack.depth <= 18 else 1e-5 if stack.depth <= 24 else 1e-6


def _deepnorm(design: Architecture, stack: Stack) -> tuple[float, float]:
    """α and β of Wang et al. 2022, table 1."""
    N, M = design.shape.encoder_depth, design.shape.depth
    if not N:
        return (2 * M) ** 0.25, (8 * M) ** -0.25
    if stack.cross:
        return (3 * M) ** 0.25, (12 * M) ** -0.25
    return 0.81 * (N**4 * M) ** 0.0625, 0.87 * (N**4 * M) ** -0.0625


RESIDUAL: Mapping[str, Callable[[Architecture, Stack], nn.Module]] = {
    "plain": PlainResidual,
    "none": NoResidual,
    "deepnorm": DeepNorm,
    "rezero": LearnedScale,
    "layerscale": LearnedScale,
    "admin": Admin,
    "admin_profiled": ProfiledAdmin,
}


def gain(design: Architecture, stack: Stack) -> float:
    """What the scheme multiplies the initial value, output and feed-forward matrices of a stack by."""
    return float(_deepnorm(design, stack)[1]) if design.residual == "deepnorm" else 1.0
