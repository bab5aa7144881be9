"""One run: its config, its loop, and what it writes. Configs need no torch; the loop is loaded when it is used."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deepwide.training.config import RunConfig, override, resolve
from deepwide.training.identity import NUMERICS, data_fingerprint

if TYPE_CHECKING:
    from deepwide.run import RunFolder, RunWriter

__all__ = ["NUMERICS", "RunConfig", "data_fingerprint", "override", "resolve", "train"]


def train(
    folder: "RunFolder",
    lease: "RunWriter | None",
    *,
    device: str = "auto",
    threads: int | None = None,
    progress: Callable[[Mapping[str, Any]], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train the run in `folder` from its last checkpoint on; see loop.py."""
    from deepwide.training.loop import train as run

    run(folder, lease, device=device, threads=threads, progress=progress, stop=stop)
