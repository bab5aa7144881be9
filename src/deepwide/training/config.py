"""RunConfig: the one truth about everything that determines a run's numbers. No torch here.

A config as a person writes it leaves most of it out; `resolve` fills it in from the task, the preset, the shape and the
budget. What is resolved is stored in the run's folder and, hashed with the fingerprint of its task and the version of
the numerics, names it.

The settings of schema 1, those of the first release, are stored and hashed whole. A setting that was added since is
left out of what is stored and hashed while it has its default, which is what `resolve` fills in when nobody gives it.
So a new setting renames no run, and a run that uses it gets an id of its own.

It follows that the default of a setting added since schema 1 must never change: runs that leave it out have used it.
To change one, write schema 2, which adds that setting to the list, and hash its number with it.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from deepwide.data import DataConfig
from deepwide.errors import DeepwideError, quoted
from deepwide.model import (
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
from deepwide.tasks import LANGUAGE, TABLED, Language, Task, make_tabled_task, make_task

# Raise it with every change after which the same config would give other numbers: then old runs keep their names.
NUMERICS = "1"

SCHEMA_1: Mapping[str, frozenset[str]] = {
    table: frozenset(names.split())
    for table, names in {
        "": "batch checkpoint_every compile context data evaluation log_every micro_batch model optimiser precision "
        "schedule seed steps tokens",
        "model": "activation attention base_depth base_width depth embedding_norm ff ff_bias ff_width final_norm "
        "head_bias head_dim heads initialisation kv_heads norm norm_eps norm_place out_bias parametrisation positions "
        "preset qk_norm qkv_bias residual rotary_base tied width",
        "data": "column source tokeniser validation vocab",
        "optimiser": "beta1 beta2 clip eps lr weight_decay",
        "schedule": "cooldown final kind warmup",
        "evaluation": "every sequences",
    }.items()
}

MOST_TOKENS = 10**15
CONTEXT = 128  # of language modelling
SHORT_NAMES: Mapping[str, str] = {
    "depth": "model.depth",
    "width": "model.width",
    "lr": "optimiser.lr",
    "data": "data.source",
    "task": "task.name",
}
WRONG_GUESSES: Mapping[str, str] = dict.fromkeys(("path", "file", "folder", "name", "dataset"), "data.source")
Rate = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Momentum = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


def _tokens(value: Any) -> Any:
    return parse_count(value, "a number of tokens") if isinstance(value, str) else value


Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS), BeforeValidator(_tokens)]


class TaskConfig(Part):
    """What is learned: a task by name, and its parameters. Language modelling has none; it and `TABLED` read `data`."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=100)] = LANGUAGE

    @property
    def parameters(self) -> dict[str, Any]:
        """All but the name."""
        return dict(self.model_extra or {})


class ModelConfig(Part):
    """The network: a preset, and what differs from it. The task gives vocabulary, context, kind and head."""

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
    attention_size: Positive | None = None  # block, window, rank or features of the kinds for encoders
    attention_links: Positive | None = None  # random blocks of bigbird, common positions of a block of sparse
    activation: Activation | None = None
    rotary_base: Annotated[float, Field(gt=1, le=1e9)] | None = None
    residual: Residual | None = None
    initialisation: Initialisation | None = None
    parametrisation: Parametrisation | None = None
    base_width: Positive | None = None
    base_depth: Positive | None = None
    encoder_depth: Positive | None = None  # layers of the encoder of an encoder-decoder; as many as `depth`

    def architecture(self, task: Task) -> Architecture:
        """The network these choices name, for a task."""
        try:
            return _architecture(self, task)  # type: ignore[arg-type]
        except TypeError:  # a task of another package that cannot be hashed
            return self._made_for(task)

    def _made_for(self, task: Task) -> Architecture:
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "preset"}
        if task.kind == "encoder-decoder":
            given["encoder_depth"] = self.encoder_depth or self.depth
        return Architecture.of(
            self.preset,
            vocab=task.vocab,
            context=task.context,
            kind=task.kind,
            head=task.head,
            classes=task.classes,
            **given,
        )


@lru_cache(maxsize=1024)  # very many cells of a sweep differ in nothing that makes another network
def _architecture(model: ModelConfig, task: Task) -> Architecture:
    return model._made_for(task)


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


class AutosizeConfig(Part):
    """Auto-sizing (proximal.py): a penalty on whole neurons and heads, whose step makes some of them exactly zero."""

    strength: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0  # λ; 0: none
    penalty: Literal["l21", "linf1"] = "linf1"
    parts: Annotated[
        tuple[Literal["feed_forward", "heads"], ...],
        Field(min_length=1),
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    ] = ("feed_forward", "heads")


class EvaluationConfig(Part):
    """How often, and on how much of the validation set; always the same part of it."""

    every: Positive | None = None  # steps; a tenth of the run
    sequences: Positive = 64


class RunConfig(Part):
    """One run."""

    model: ModelConfig
    task: TaskConfig = TaskConfig()
    data: DataConfig = DataConfig()
    tokens: Tokens | None = None  # or steps: one gives the other; 2M and 1e9 are read
    steps: Positive | None = None
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 16  # sequences per step, over all processes
    micro_batch: Positive | None = None  # sequences at a time; the whole batch, or what keeps 8192 tokens
    context: Annotated[int, Field(ge=1, le=10_000_000)] | None = None  # 128, or the length that a task has
    optimiser: OptimiserConfig = OptimiserConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    autosize: AutosizeConfig = AutosizeConfig()
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    seed: Natural = 0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of embeddings and of what sublayers add, in training
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of the answer given to all tokens alike
    log_every: Positive | None = None  # steps; a two-hundredth of the run
    checkpoint_every: Positive | None = None  # steps; a tenth of the run
    keep_checkpoints: Annotated[int, Field(ge=2, le=1_000_000)] = 2  # the newest; older ones are removed

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """A config from a file or a command line; the complaint is one sentence and names the nearest valid key.

        >>> RunConfig.of({"sede": 1})
        Traceback (most recent call last):
        deepwide.errors.DeepwideError: there is no setting 'sede': did you mean 'seed' or 'schedule'?
        """
        if not isinstance(fields, Mapping):
            raise DeepwideError(f"a run's config must be a table of settings, not {quoted(fields)}.")
        fields = _with_data_for_rows(spell_out(fields))
        cls.check_names(fields)
        return cls._validated(fields)

    @classmethod
    def _validated(cls, fields: Mapping[str, Any]) -> Self:
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise DeepwideError(explain(error, cls)) from None

    @classmethod
    def check_names(cls, fields: Mapping[str, Any]) -> None:
        """Refuse settings that a run does not have, and suggest the nearest; a task knows its own parameters."""
        data = fields.get("data")
        for name in data if isinstance(data, Mapping) else ():
            if name in WRONG_GUESSES:
                raise DeepwideError(f"there is no setting 'data.{name}': did you mean '{WRONG_GUESSES[name]}'?")
        check_names(cls, {name: value for name, value in fields.items() if name != "task"}, SHORT_NAMES)

    @property
    def architecture(self) -> Architecture:
        """The network of this run."""
        return self.model.architecture(task_of(self))

    @model_validator(mode="after")
    def _micro_batches_fit(self) -> Self:
        if self.micro_batch is not None and self.batch % self.micro_batch:
            raise ValueError(f"micro_batch ({self.micro_batch}) must divide batch ({self.batch})")
        return self


MICRO_TOKENS = 8192


def task_of(config: RunConfig, expected: str | None = None) -> Task:
    """The task of a run; with the fingerprint of a run that has begun, other data are refused."""
    if config.task.name in TABLED:
        return make_tabled_task(
            config.task.name, config.task.parameters, config.data, config.context or CONTEXT, expected
        )
    if config.task.name != LANGUAGE:
        if config.data.resolved() != DataConfig().resolved():
            raise DeepwideError(
                f"the task '{config.task.name}' computes its examples and reads no data: leave data out."
            )
        task = make_task(config.task.name, config.task.parameters)
        if config.context not in (None, task.context):
            raise DeepwideError(
                f"the task '{task.name}' has {task.context} positions, and context is {config.context}: leave it out."
            )
        if expected and task.fingerprint != expected:
            raise DeepwideError(
                f"the task '{task.name}' has changed since this run began: put the old one back, or start a new run."
            )
        return task
    for name in config.task.parameters:
        raise DeepwideError(f"the task '{LANGUAGE}' has no setting 'task.{name[:60]}': it reads data and context.")
    return Language(config.data, config.context or CONTEXT, expected)


def _with_data_for_rows(fields: dict[str, Any]) -> dict[str, Any]:
    """Tasks on rows need a source, and read byte pairs unless told otherwise: sentences of bytes are long."""
    task, data = fields.get("task"), fields.get("data", {})
    name = task.get("name") if isinstance(task, Mapping) else None
    if not isinstance(name, str) or name not in TABLED or not isinstance(data, Mapping):
        return fields
    if not data.get("source"):
        raise DeepwideError(f"the task '{name}' needs data: a .tsv or .jsonl file of rows, or a folder of them.")
    return fields | {"data": {"tokeniser": "bpe", **data}}


def resolve(config: RunConfig | Mapping[str, Any]) -> RunConfig:
    """The same run with everything filled in; resolving twice changes nothing.

    >>> run = resolve({"model": {"depth": 2, "width": 64}, "tokens": 100_000})
    >>> run.steps, run.schedule.warmup, run.model.heads, run == resolve(run)
    (49, 1, 2, True)
    """
    given = config if isinstance(config, RunConfig) else RunConfig.of(config)
    task = task_of(given)
    per_step = given.batch * task.context
    if given.tokens is None and given.steps is None:
        raise DeepwideError("a run needs a budget: give tokens or steps.")
    steps = given.steps or -(-(given.tokens or 0) // per_step)
    if given.tokens is not None and -(-given.tokens // per_step) != steps:
        raise DeepwideError(f"tokens and steps disagree (a step has {per_step} tokens): give one of them.")
    design = given.model.architecture(task)
    known = design.model_dump() | design.shape.model_dump()
    model = {name: known[name] for name in type(given.model).model_fields if name != "preset"}
    model |= {"preset": given.model.preset, "encoder_depth": known["encoder_depth"] or None}
    s, e = given.schedule, given.evaluation
    warmup = max(1, round(0.02 * steps)) if s.warmup is None else s.warmup
    cooldown = round(0.2 * steps) if s.cooldown is None else s.cooldown
    if warmup > steps or (s.kind == "constant" and warmup + cooldown > steps):
        raise DeepwideError(f"warm-up ({warmup}) and cooldown ({cooldown}) are longer than the run of {steps} steps.")
    return type(given)._validated(
        {
            **given.model_dump(),
            "model": model,
            "task": {"name": given.task.name, **task.settings()},
            "data": given.data.resolved().model_dump(),
            "context": task.context,
            "tokens": steps * per_step,
            "steps": steps,
            "micro_batch": given.micro_batch or _micro_batch(given.batch, task.context),
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


def stored_config(run: RunConfig) -> dict[str, Any]:
    """What a run folder stores and its id hashes: a resolved config without new settings at their defaults.

    Resolving it gives the same run.
    """
    stored: dict[str, Any] = run.model_dump(mode="json")
    for table, names in SCHEMA_1.items():
        part = getattr(run, table) if table else run
        for name in (stored if not table else stored[table]).keys() - names:
            shorter = _without(stored, table, name)
            if getattr(part, name) == type(part).model_fields[name].default or _is_same(run, shorter):
                stored = shorter
    return stored


def data_fingerprint(config: RunConfig | Mapping[str, Any]) -> str:
    """The fingerprint of what a run learns: of its corpus, or of its task's examples."""
    return task_of(config if isinstance(config, RunConfig) else RunConfig.of(config)).fingerprint


def _without(stored: dict[str, Any], table: str, name: str) -> dict[str, Any]:
    if not table:
        return {key: value for key, value in stored.items() if key != name}
    return stored | {table: {key: value for key, value in stored[table].items() if key != name}}


def _is_same(run: RunConfig, shorter: Mapping[str, Any]) -> bool:
    """Whether resolving a config with a setting left out gives the run back."""
    given = type(run).model_validate(shorter)
    if given == run:
        return True
    try:
        return resolve(given) == run
    except DeepwideError:  # it cannot do without
        return False


def override(fields: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """A table of settings with some of them changed, each written as `name=value`.

    >>> override({"seed": 1}, ["lr=3e-4", "model.preset=llama", "tokens=2M"])
    {'seed': 1, 'optimiser': {'lr': 0.0003}, 'model': {'preset': 'llama'}, 'tokens': '2M'}
    """
    result = spell_out(fields)
    for written in settings:
        path, value = parse_setting(written)
        if len(path) == 1 and path[0] in SHORT_NAMES and not isinstance(value, Mapping):
            path = SHORT_NAMES[path[0]].split(".")
        result = with_setting(result, path, value)
    return result


def spell_out(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with short names, such as lr and depth, replaced by full ones.

    >>> spell_out({"lr": 3e-4, "data": "corpus.txt"})
    {'optimiser': {'lr': 0.0003}, 'data': {'source': 'corpus.txt'}}
    """
    result = dict(fields)
    for short, full in SHORT_NAMES.items():
        if short not in fields or isinstance(fields[short], Mapping):
            continue
        value = result.pop(short)
        table, name = full.split(".")
        if isinstance(result.get(table), Mapping) and name in result[table]:
            raise DeepwideError(f"both '{short}' and '{full}' are set: keep one of them.")
        result = with_setting(result, [table, name], value)
    return result
