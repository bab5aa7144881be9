"""Run folders as plain rows, for a table or a fit: what each run was, what it counts, how it ended."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.run import UNREADABLE, RunRecord, read_runs

RATES = ("optimiser.lr", "lr")  # where configs of the transformer and of the toy have it


def run_rows(folder: Path | str) -> list[dict[str, Any]]:
    """One row per run: id, data (fingerprint), status, error, seed, lr, its counts, and its loss if it has one.

    The counts are those that the folder states; for a folder made before runs stated them, those of its config. A run
    that cannot be read has the status `unreadable` and the reason as its error.
    """
    rows = []
    for record in map(with_counts, read_runs(folder)):
        row: dict[str, Any] = {
            "id": record.id,
            "data": record.data_fingerprint,
            "status": record.status,
            "error": record.error,
        }
        if record.status != UNREADABLE:
            rates = [_setting(record.config, key) for key in RATES]
            lr = next((rate for rate in rates if rate is not None), None)
            row |= {"seed": record.config.get("seed"), "lr": lr} | dict(record.counts)
        loss = record.result.get("validation_loss", record.result.get("loss"))
        rows.append(row | ({} if loss is None else {"loss": loss}))
    return rows


def with_counts(record: RunRecord) -> RunRecord:
    """The record with counts: the folder's own, else its config's; unreadable where the config cannot be resolved."""
    if record.counts or record.status == UNREADABLE:
        return record
    from deepwide.sweeping.trainers import trainer_of  # which leads to training and model: old folders alone need it

    try:
        return replace(record, counts=trainer_of(record.config).cost(record.config)._asdict())
    except DeepwideError as error:
        reason = f"{record.path} states no counts, and its config is not one of this version: {error}"
        return replace(record, status=UNREADABLE, error=reason)


def _setting(config: Mapping[str, Any], key: str) -> Any:
    """A setting by its dotted name, None where the config leaves it out."""
    value: Any = config
    for step in key.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
