"""One process, or several that torchrun started and that share one model by FSDP2.

The loop speaks to a World and does not know which it has. In several processes every one computes its share of each
batch; parameters, gradients and Adam's moments are sharded; checkpoints are gathered whole, so that a run saved on two
processes can resume on one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from deepwide.errors import DeepwideError
from deepwide.model import Transformer


class World:
    """One process: everything is here."""

    rank, size = 0, 1

    def shard(self, model: Transformer) -> Transformer:
        """Distribute the model's parameters over the processes."""
        return model

    def like(self, whole: Tensor, parameter: nn.Parameter) -> Tensor:
        """A whole tensor, distributed as the parameter is."""
        return whole.to(parameter.device, copy=True)

    def whole(self, tensor: Tensor) -> Tensor:
        """A tensor gathered from all processes, which must all ask."""
        return tensor.detach()

    def mean(self, value: Tensor) -> float:
        """The mean over processes."""
        return float(value)

    def any(self, flag: bool) -> bool:
        """Whether it holds in some process."""
        return flag


class Shards(World):
    """Several processes (Zhao et al. 2023; torch's fully_shard): each block is gathered when it is its turn."""

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        from torch.distributed.device_mesh import init_device_mesh

        self.rank, self.size, self.device = rank, size, device
        self.mesh = init_device_mesh(device.type, (size,))

    def shard(self, model: Transformer) -> Transformer:
        from torch.distributed.fsdp import fully_shard

        for block in (*model.blocks, *(model.encoder.blocks if model.encoder is not None else ())):
            fully_shard(block, mesh=self.mesh)
        fully_shard(model, mesh=self.mesh)
        return model

    def like(self, whole: Tensor, parameter: nn.Parameter) -> Tensor:
        from torch.distributed.tensor import DTensor, distribute_tensor

        assert isinstance(parameter, DTensor)
        return distribute_tensor(whole.to(self.device), parameter.device_mesh, parameter.placements)

    def whole(self, tensor: Tensor) -> Tensor:
        gather: Any = getattr(tensor.detach(), "full_tensor", None)
        return gather() if gather else tensor.detach()

    def mean(self, value: Tensor) -> float:
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return float(total) / self.size

    def any(self, flag: bool) -> bool:
        count = torch.tensor(int(flag), device=self.device)
        torch.distributed.all_reduce(count)
        return bool(count)


@contextmanager
def world(device: torch.device) -> Iterator[World]:
    """The World this process belongs to, according to what torchrun has put into the environment."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in os.environ:
        yield World()
        return
    if not torch.distributed.is_available():
        raise DeepwideError("this torch was built without torch.distributed: run one process.")
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Shards(int(os.environ["RANK"]), size, device)
        torch.distributed.barrier()  # a process that tears its group down while another still uses it may abort
    finally:
        torch.distributed.destroy_process_group()
