"""What names a run: its settings, the fingerprint of its task, and the version of the numerics.

The settings of schema 1, those of the first release, are stored and hashed whole. A setting that was added since is
left out of what is stored and hashed while it has its default, which is what `resolve` fills in when nobody gives it.
So a new setting renames no run, and a run that uses it gets an id of its own.

It follows that the default of a setting added since schema 1 must never change: runs that leave it out have used it.
To change one, write schema 2, which adds that setting to the list, and hash its number with it.
"""

from collections.abc import Mapping
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.training.config import RunConfig, resolve, task_of

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


def stored_config(run: RunConfig) -> dict[str, Any]:
    """What a run folder stores and its id hashes: a resolved config without new settings at their defaults.

    Resolving it gives the same run.
    """
    stored: dict[str, Any] = run.model_dump(mode="json")
    for table, names in SCHEMA_1.items():
        for name in (stored if not table else stored[table]).keys() - names:
            shorter = _without(stored, table, name)
            if _is_same(run, shorter):
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
