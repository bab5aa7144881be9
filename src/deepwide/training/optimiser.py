"""AdamW with every parameter's rate, decay and ε as the parametrisation wants them, its state as named tensors; and the
learning rate of a step, as a share of its peak.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from deepwide.model import Architecture, factors
from deepwide.training.config import OptimiserConfig, ScheduleConfig

MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimiser:
    """torch's AdamW in its fused form. Matrices decay, vectors do not."""

    def __init__(self, model: nn.Module, design: Architecture, config: OptimiserConfig) -> None:
        self.names = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        groups: dict[tuple[float, float, float], list[nn.Parameter]] = {}
        for name, parameter in self.names.items():
            f = factors(design, name, parameter.ndim)
            decay = config.weight_decay * f.decay if parameter.ndim >= 2 else 0.0
            groups.setdefault((config.lr * f.lr, decay, config.eps * f.eps), []).append(parameter)
        self.adam = torch.optim.AdamW(
            [
                {"params": members, "lr": lr, "peak": lr, "weight_decay": decay, "eps": eps}
                for (lr, decay, eps), members in groups.items()
            ],
            betas=(config.beta1, config.beta2),
            fused=True,
        )
        self.clip = config.clip
        self._name_of = {parameter: name for name, parameter in self.names.items()}

    @property
    def rates(self) -> dict[str, float]:
        """The learning rate of the last update, by parameter."""
        return {self._name_of[p]: group["lr"] for group in self.adam.param_groups for p in group["params"]}

    def gradient_norm(self) -> Tensor:
        """The length of the whole gradient."""
        norm = nn.utils.get_total_norm([p.grad for p in self.names.values() if p.grad is not None])
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm

    def step(self, share: float, norm: Tensor) -> None:
        """Clip by a norm that was checked, update at this share of the peak rate, forget the gradients."""
        if self.clip and norm > self.clip:
            nn.utils.clip_grads_with_norm_(self.names.values(), self.clip, norm)
        for group in self.adam.param_groups:
            group["lr"] = group["peak"] * share
        self.adam.step()
        self.forget()

    def forget(self) -> None:
        """Drop the gradients."""
        self.adam.zero_grad(set_to_none=True)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Both moments of every parameter, by name."""
        for name, parameter in self.names.items():
            for moment in MOMENTS:
                yield f"{moment}.{name}", self.adam.state[parameter][moment]

    def load(self, tensors: Mapping[str, Tensor], step: int, like: Callable[[Tensor, nn.Parameter], Tensor]) -> None:
        """Load the moments of update `step`; `like` distributes a whole tensor as a parameter is."""
        for name, parameter in self.names.items():
            state: dict[str, Any] = {moment: like(tensors[f"{moment}.{name}"], parameter) for moment in MOMENTS}
            state["step"] = torch.tensor(float(step), device=parameter.device)
            self.adam.state[parameter] = state


def rate(schedule: ScheduleConfig, step: int, steps: int) -> float:
    """The share of the peak rate that update `step` of 1 … `steps` uses.

    >>> [round(rate(ScheduleConfig(warmup=2, final=0.1), step, 6), 3) for step in range(1, 7)]
    [0.5, 1.0, 0.868, 0.55, 0.232, 0.1]
    >>> constant = ScheduleConfig(kind="constant", warmup=2, cooldown=2, final=0.0)
    >>> [round(rate(constant, step, 6), 3) for step in range(1, 7)]
    [0.5, 1.0, 1.0, 1.0, 0.5, 0.0]
    """
    warmup, cooldown = schedule.warmup or 0, schedule.cooldown or 0
    if step <= warmup:
        return step / warmup
    if schedule.kind == "cosine":
        done = (step - warmup) / max(1, steps - warmup)
        return schedule.final + (1 - schedule.final) * 0.5 * (1 + math.cos(math.pi * done))
    into = step - (steps - cooldown)
    return 1.0 if into <= 0 else 1 - (1 - schedule.final) * into / cooldown
