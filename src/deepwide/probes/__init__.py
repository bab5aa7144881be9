"""Measurements on networks, each a small function held against an independent reference. Loaded when first used."""

from typing import TYPE_CHECKING, Any

from deepwide.doors import offered

if TYPE_CHECKING:
    from deepwide.probes.collapse import AttentionLayer as AttentionLayer
    from deepwide.probes.collapse import attention_collapse as attention_collapse
    from deepwide.probes.collapse import composite_norm as composite_norm
    from deepwide.probes.collapse import random_layers as random_layers
    from deepwide.probes.collapse import relative_residual as relative_residual
    from deepwide.probes.stream import stream_residuals as stream_residuals

_HOME = {
    "AttentionLayer": "collapse",
    "attention_collapse": "collapse",
    "composite_norm": "collapse",
    "random_layers": "collapse",
    "relative_residual": "collapse",
    "stream_residuals": "stream",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    return offered(__name__, _HOME, name)
