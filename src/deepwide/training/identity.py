"""What, with the config, names a run: the version of the numerics and the fingerprint of the data."""

from collections.abc import Mapping
from typing import Any

from deepwide.training.config import RunConfig

# Raise it with every change after which the same config would give other numbers: then old runs keep their names.
NUMERICS = "1"


def data_fingerprint(config: RunConfig | Mapping[str, Any]) -> str:
    """The fingerprint of the tokens a run is trained on."""
    from deepwide.data.corpus import fingerprint

    given = config if isinstance(config, RunConfig) else RunConfig.of(config)
    return fingerprint(given.data)
