"""RunConfig: the one truth about everything that determines a run's numbers. No torch here.

A config as a person writes it leaves most of it out; `resolve` fills it in from the preset, the shape and the budget.
What is resolved lies in the run's folder and, hashed, names it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from deepwide.data.config import DataConfig
from deepwide.errors import DeepwideError, quoted
from deepwide.model.architecture import (
    Activation,
    Architecture,
    AttentionKind,
    Initialisation,
    NormPlace,
    Parametrisation,
    Residual,
)
from deepwide.quantities import parse_count
from deepwide.settings import Natural, Part, Positive, check_names, explain, parse_setting, with_setting

MOST_TOKENS = 10**15
Rate = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Momentum = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


def _tokens(value: Any) -> Any:
    return parse_count(value, "a number of tokens") if isinstance(value, str) else value


Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS), BeforeValidator(_tokens)]


class ModelConfig(Part):
    """The network: a preset, and what differs from it. Vocabulary and context come from the data and the run."""

    preset: Literal["levine", "llama", "linear"] = "levine"
    depth: Positive
    width: Positive
    heads: Positive | None = None
    kv_heads: Positive | None = None
    head_dim: Positive | None = None
    ff: Literal["plain", "gated"] | None = None
    ff_width: Natural | None = None
    tied: bool | None = None
    positions: Literal["learned", "rotary", "alibi", "none"] | None = None
    norm: Literal["layernorm", "rmsnorm", "none"] | None = None
    norm_place: NormPlace | None = None
    norm_eps: Annotated[float, Field(gt=0, le=1)] | None = None
    final_norm: bool | None = None
    embedding_norm: bool | None = None
    qk_norm: Literal["none", "head", "full"] | None = None
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    ff_bias: bool | None = None
    head_bias: bool | None = None
    attention: AttentionKind | None = None
    activation: Activation | None = None
    rotary_base: Annotated[float, Field(gt=1, le=1e9)] | None = None
    residual: Residual | None = None
    initialisation: Initialisation | None = None
    parametrisation: Parametrisation | None = None
    base_width: Positive | None = None
    base_depth: Positive | None = None

    def architecture(self, vocab: int, context: int) -> Architecture:
        """The network these choices name."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "preset"}
        return Architecture.of(self.preset, vocab=vocab, context=context, **given)


class OptimiserConfig(Part):
    """AdamW (Loshchilov & Hutter 2019) with clipping by the global norm."""

    lr: Rate = 1e-3
    beta1: Momentum = 0.9
    beta2: Momentum = 0.95
    eps: Annotated[float, Field(gt=0, le=1)] = 1e-8
    weight_decay: Annotated[float, Field(ge=0, le=100)] = 0.1
    clip: Annotated[float, Field(ge=0, le=1e6)] = 1.0  # 0: no clipping


class ScheduleConfig(Part):
    """Warm-up, then a cosine down to `final` of the rate, or constant with a linear cooldown to it."""

    kind: Literal["cosine", "constant"] = "cosine"
    warmup: Natural | None = None  # steps; 2% of the run, at least 1
    cooldown: Natural | None = None  # steps, for constant; a fifth of the run
    final: Share = 0.1


class EvaluationConfig(Part):
    """How often, and on how much of the validation set; always the same part of it."""

    every: Positive | None = None  # steps; a tenth of the run
    sequences: Positive = 64


class RunConfig(Part):
    """One run."""

    model: ModelConfig
    data: DataConfig = DataConfig()
    tokens: Tokens | None = None  # or steps: one gives the other; 2M and 1e9 are read
    steps: Positive | None = None
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 16  # sequences per step, over all processes
    micro_batch: Positive | None = None  # sequences at a time; the whole batch, or what keeps 8192 tokens
    context: Annotated[int, Field(ge=1, le=10_000_000)] = 128
    optimiser: OptimiserConfig = OptimiserConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    seed: Natural = 0
    log_every: Positive | None = None  # steps; a two-hundredth of the run
    checkpoint_every: Positive | None = None  # steps; a tenth of the run

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """A config from a file or a command line; the complaint is one sentence and names the nearest valid key.

        >>> RunConfig.of({"sede": 1})
        Traceback (most recent call last):
        deepwide.errors.DeepwideError: there is no setting 'sede': did you mean 'seed' or 'schedule'?
        """
        if not isinstance(fields, Mapping):
            raise DeepwideError(f"a run's config must be a table of settings, not {quoted(fields)}.")
        check_names(cls, fields)
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as error:
            raise DeepwideError(explain(error, cls)) from None

    @property
    def architecture(self) -> Architecture:
        """The network of this run."""
        return self.model.architecture(self.data.vocab_size, self.context)

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.tokens is not None and self.steps is not None:
            per_step = self.batch * self.context
            if -(-self.tokens // per_step) != self.steps:
                raise ValueError(f"tokens and steps disagree (a step has {per_step} tokens): give one of them")
        if self.micro_batch is not None and self.batch % self.micro_batch:
            raise ValueError(f"micro_batch ({self.micro_batch}) must divide batch ({self.batch})")
        return self


MICRO_TOKENS = 8192


def resolve(config: RunConfig | Mapping[str, Any]) -> RunConfig:
    """The same run with everything filled in; resolving twice changes nothing.

    >>> run = resolve({"model": {"depth": 2, "width": 64}, "tokens": 100_000})
    >>> run.steps, run.schedule.warmup, run.model.heads, run == resolve(run)
    (49, 1, 2, True)
    """
    given = config if isinstance(config, RunConfig) else RunConfig.of(config)
    per_step = given.batch * given.context
    if given.tokens is None and given.steps is None:
        raise DeepwideError("a run needs a budget: give tokens or steps.")
    steps = given.steps or -(-(given.tokens or 0) // per_step)
    design = given.architecture
    if not design.causal:
        raise DeepwideError("a language model is trained causally.")
    known = design.model_dump() | design.shape.model_dump()
    model = ModelConfig(
        preset=given.model.preset, **{name: known[name] for name in ModelConfig.model_fields if name != "preset"}
    )
    s, e = given.schedule, given.evaluation
    warmup = max(1, round(0.02 * steps)) if s.warmup is None else s.warmup
    cooldown = round(0.2 * steps) if s.cooldown is None else s.cooldown
    if warmup > steps or (s.kind == "constant" and warmup + cooldown > steps):
        raise DeepwideError(f"warm-up ({warmup}) and cooldown ({cooldown}) are longer than the run of {steps} steps.")
    return RunConfig.of(
        {
            **given.model_dump(),
            "model": model.model_dump(),
            "data": given.data.resolved().model_dump(),
            "tokens": steps * per_step,
            "steps": steps,
            "micro_batch": given.micro_batch or _micro_batch(given.batch, given.context),
            "schedule": s.model_dump() | {"warmup": warmup, "cooldown": cooldown},
            "evaluation": e.model_dump() | {"every": e.every or max(1, math.ceil(steps / 10))},
            "log_every": given.log_every or max(1, steps // 200),
            "checkpoint_every": given.checkpoint_every or max(1, math.ceil(steps / 10)),
        }
    )


def _micro_batch(batch: int, context: int) -> int:
    """The largest divisor of the batch with at most 8192 tokens, at least one sequence."""
    most = max(1, MICRO_TOKENS // context)
    return max(size for size in range(1, min(batch, most) + 1) if batch % size == 0)


def override(fields: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """A table of settings with some of them changed, each written as `name=value`.

    >>> override({"seed": 1}, ["optimiser.lr=3e-4", "model.preset=llama", "tokens=2M"])
    {'seed': 1, 'optimiser': {'lr': 0.0003}, 'model': {'preset': 'llama'}, 'tokens': '2M'}
    """
    result = dict(fields)
    for written in settings:
        path, value = parse_setting(written)
        result = with_setting(result, path, value)
    return result
