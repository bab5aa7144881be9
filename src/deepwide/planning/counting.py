"""Count: parameters, FLOPs and memory of a shape, part by part."""

import os
from typing import Any

from deepwide.answers import Answer, Note
from deepwide.catalogue import find_shape
from deepwide.planning.reasons import zero_notes
from deepwide.quantities import parse_count
from deepwide.shape import (
    DeviceMemory,
    Flops,
    InferenceMemory,
    Params,
    Shape,
    TrainingMemory,
    device_memory,
    flops,
    inference_memory,
    training_memory,
)

PARAMETER_PARTS = (
    "embedding",
    "positions",
    "attention",
    "mixers",
    "feed_forward",
    "norms",
    "head",
    "block",
    "total",
    "active",
)
FLOP_PARTS = (
    "projections", "attention", "mixers", "feed_forward", "head", "embedding", "recomputed", "forward", "training",
)  # fmt: skip
DEVICE_PARTS = (
    "weights", "gradients", "optimiser", "activations", "logits", "training", "inference_weights", "cache", "inference",
)  # fmt: skip


class Count(Answer):
    """What a shape has and what it takes."""

    name: str
    shape: Shape
    family: str | None  # that it can be written in; None: unknown
    exact: bool  # False: read from a config of an unknown family, so every number is a guess
    params: Params
    flops: Flops
    training_memory: TrainingMemory
    inference_memory: InferenceMemory
    notes: list[Note]
    device: DeviceMemory | None = None  # the fullest device, where the model is split

    def rows(self) -> list[dict[str, Any]]:
        """Every part in one row: what is counted, the part, the amount and its unit."""
        parts: list[tuple[str, str, Any, tuple[str, ...]]] = [
            ("parameters", "parameters", self.params, PARAMETER_PARTS),
            (f"FLOPs per sequence of {self.flops.sequence}", "FLOPs", self.flops, FLOP_PARTS),
            ("training memory", "bytes", self.training_memory, (*self.training_memory.formula, "total")),
            ("inference memory", "bytes", self.inference_memory, (*self.inference_memory.formula, "total")),
        ]
        if self.device is not None:
            parts.append(("memory of the fullest device", "bytes", self.device, DEVICE_PARTS))
        return [
            {"what": what, "part": name, "amount": getattr(counted, name), "unit": unit}
            for what, unit, counted, names in parts
            for name in names
        ]


def count(
    model: Shape | str | os.PathLike[str] | None = None,
    *,
    sequence: int | str | None = None,
    batch: int = 1,
    convention: str | None = None,
    training_precision: str = "mixed",
    inference_precision: str = "bf16",
    attention: str = "flash",
    recompute: bool = False,
    tensor_parallel: int = 1,
    pipeline_stages: int = 1,
    data_parallel: int = 1,
    zero: int = 0,
    expert_parallel: int = 1,
    family: str | None = None,
    network: bool = False,
    **fields: Any,
) -> Count:
    """Parameters, FLOPs and memory of a model: a Shape, a name of the catalogue, a path, or sizes, as for `audit`.

    The FLOP convention is torch's unless named, or "recompute" with full activation checkpointing (`recompute`). With
    tensor, pipeline or data parallelism, `device` is the memory of the fullest device (shape/devices.py).

    >>> count("gpt2").params.total, count(depth=12, width=768, context=1024).params.total
    (124439808, 124439808)
    """
    named = find_shape(model, family=family, network=network, **fields)
    shape = named.shape
    if isinstance(sequence, str):
        sequence = parse_count(sequence, "a sequence length")
    device = None
    if (tensor_parallel, pipeline_stages, data_parallel, zero, expert_parallel) != (1, 1, 1, 0, 1):
        device = device_memory(
            shape,
            tensor_parallel=tensor_parallel,
            pipeline_stages=pipeline_stages,
            data_parallel=data_parallel,
            zero=zero,
            expert_parallel=expert_parallel,
            batch=batch,
            sequence=sequence,
            precision=training_precision,
            recompute=recompute,
        )
    return Count.model_construct(
        name=named.name,
        shape=shape,
        family=named.family,
        exact=named.exact,
        params=shape.params,
        flops=flops(shape, sequence, convention or ("recompute" if recompute else "torch")),
        training_memory=training_memory(
            shape,
            batch=batch,
            sequence=sequence,
            precision=training_precision,
            attention=attention,
            recompute=recompute,
        ),
        inference_memory=inference_memory(shape, batch=batch, sequence=sequence, precision=inference_precision),
        notes=[*named.notes, *zero_notes(data_parallel, zero)],
        device=device,
    )
