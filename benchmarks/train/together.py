"""Small models of one shape: one after another, or all seeds in one batched step?

    python -m benchmarks.train.together --out results/train/together.json

The shapes of the studies hops and connectivity, three seeds each. "apart" is deepwide's own step, once per seed.
"together" stacks the parameters of all seeds and takes one step through torch.func (vmap of the gradient), each seed
with its own batch, and one AdamW over the stacked parameters; torch has no batched form of its fused attention on a
CPU, so there is also "together, plain attention", by matrix products. Batches are drawn outside the clock, which is
processor time on one thread; rounds alternate, and the ratio is the median over rounds. The losses are compared after
every step: building this into the training loop would need them to be equal to the bit.
"""

import argparse
import json
import platform
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from deepwide.model import Transformer
from deepwide.tasks import Batch
from deepwide.training import Optimiser, keep_memory, resolve, task_of

SEEDS = (0, 1, 2)
_MODEL = {"heads": 4, "initialisation": "xavier", "tied": False}
CASES: dict[str, dict[str, Any]] = {
    "hops, 3 layers of 64": {
        "model": _MODEL | {"depth": 3, "width": 64, "ff_width": 128, "positions": "rotary"},
        "task": {"name": "hops"},
        "batch": 32,
    },
    "connectivity, 3 layers of 64": {
        "model": _MODEL | {"depth": 3, "width": 64, "ff_width": 128, "positions": "none"},
        "task": {"name": "connectivity", "vertices": 10, "largest": 4},
        "batch": 64,
    },
    "connectivity, 3 layers of 16": {
        "model": _MODEL | {"depth": 3, "width": 16, "ff_width": 32, "positions": "none"},
        "task": {"name": "connectivity", "vertices": 10, "largest": 4},
        "batch": 64,
    },
}


class Apart:
    """Every seed's own model and optimiser, one step after another, as in the training loop."""

    def __init__(self, config: dict[str, Any]) -> None:
        runs = [resolve(config | {"steps": 100, "seed": seed, "lr": 1e-3}) for seed in SEEDS]
        self.models = [Transformer(run.architecture, run.seed) for run in runs]
        self.optimisers = [
            Optimiser(model, run.architecture, run.optimiser) for model, run in zip(self.models, runs, strict=True)
        ]

    def step(self, batches: list[Batch]) -> list[float]:
        losses = []
        for model, optimiser, batch in zip(self.models, self.optimisers, batches, strict=True):
            loss = model(batch.tokens_BT, batch.targets, **batch.inputs)
            loss.backward()
            optimiser.step(1.0, optimiser.gradient_norm())
            losses.append(float(loss.detach()))
        return losses


class Together:
    """The same models with their parameters stacked, and one step for all."""

    def __init__(self, config: dict[str, Any], attention: SDPBackend = SDPBackend.FLASH_ATTENTION) -> None:
        self.attention = attention
        runs = [resolve(config | {"steps": 100, "seed": seed, "lr": 1e-3}) for seed in SEEDS]
        models = [Transformer(run.architecture, run.seed) for run in runs]
        self.model = models[0]
        parameters, self.buffers = stack_module_state(models)
        self.parameters = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        o = runs[0].optimiser
        matrices = [p for p in self.parameters.values() if p.ndim > 2]
        vectors = [p for p in self.parameters.values() if p.ndim <= 2]
        groups = [{"params": matrices, "weight_decay": o.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self.adam = torch.optim.AdamW(groups, lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps, fused=True)
        self.clip = o.clip

    def _loss(self, parameters: Any, buffers: Any, tokens: Tensor, targets: Tensor, mask: Tensor, padding: Any) -> Any:
        inputs = {} if padding is None else {"padding_BT": padding}
        logits = functional_call(self.model, (parameters, buffers), (tokens,), inputs)
        each = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return (each * mask.flatten()).sum() / mask.sum()

    def step(self, batches: list[Batch]) -> list[float]:
        tokens, targets = torch.stack([b.tokens_BT for b in batches]), torch.stack([b.targets for b in batches])
        mask = torch.stack([b.mask_BT for b in batches if b.mask_BT is not None])
        padded = [b.padding_BT for b in batches if b.padding_BT is not None]
        padding = torch.stack(padded) if padded else None
        in_padding = None if padding is None else 0
        run = vmap(grad_and_value(self._loss), in_dims=(0, 0, 0, 0, 0, in_padding))
        with sdpa_kernel([self.attention, SDPBackend.MATH]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no batched form of the fused attention
            gradients, losses = run(self.parameters, self.buffers, tokens, targets, mask, padding)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        shares = (self.clip / norms).clamp(max=1.0)
        for name, parameter in self.parameters.items():
            parameter.grad = gradients[name] * shares.view(-1, *[1] * (parameter.ndim - 1))
        self.adam.step()
        return [float(loss) for loss in losses.detach()]


def contest(config: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Seconds of processor time per step of all seeds, both ways, and how far their losses part."""
    ways: dict[str, Apart | Together] = {
        "apart": Apart(config),
        "together": Together(config),
        "together, plain attention": Together(config, SDPBackend.MATH),
    }
    task = task_of(resolve(config | {"steps": 100}))
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    differences: dict[str, list[float]] = {name: [] for name in ways if name != "apart"}
    for number in range(rounds + 2):
        batches = [task.batch(number * config["batch"], config["batch"], seed) for seed in SEEDS]
        losses = {}
        for name in list(ways) if number % 2 else list(ways)[::-1]:
            begun = time.process_time()
            losses[name] = ways[name].step(batches)
            if number >= 2:
                seconds[name].append(time.process_time() - begun)
        for name, parting in differences.items():
            parting.append(max(abs(a - b) for a, b in zip(losses["apart"], losses[name], strict=True)))
    return {
        "seeds": len(SEEDS),
        "rounds": rounds,
        "milliseconds_per_step_of_all": {name: 1000 * median(times) for name, times in seconds.items()},
        "times_as_fast_as_apart": {
            name: median(a / b for a, b in zip(seconds["apart"], seconds[name], strict=True)) for name in differences
        },
        "largest_difference_of_losses": {
            name: {"first step": parting[0], "last step": parting[-1]} for name, parting in differences.items()
        },
    }


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    keep_memory()
    rows = {}
    for name, config in CASES.items():
        rows[name] = contest(config, given.rounds)
        for way, ratio in rows[name]["times_as_fast_as_apart"].items():
            print(f"{name}: {way} is {ratio:.2f} times as fast as apart")
    if given.out:
        about = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__, "threads": 1}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"about": about, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
