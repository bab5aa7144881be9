"""One run: its config, its loop, and what it writes. Configs need no torch; the loop is loaded when it is used."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.training.config import (
    CONTEXT,
    MOST_TOKENS,
    NUMERICS,
    SHORT_NAMES,
    AutosizeConfig,
    OptimiserConfig,
    RunConfig,
    data_fingerprint,
    override,
    resolve,
    stored_config,
    task_of,
)
from deepwide.training.counts import RunCounts, run_counts

if TYPE_CHECKING:
    from deepwide.training.coordinate_check import ScalingCheck, check_scaling
    from deepwide.training.counts import LAYER_SECONDS, SHARE_OF_PEAK, STEP_SECONDS, RunEstimate, estimate_run
    from deepwide.training.hardware import find_device, keep_memory, peak_flops
    from deepwide.training.loop import continue_run
    from deepwide.training.optimiser import Optimiser
    from deepwide.training.trained import TrainedRun, train, trained_model
    from deepwide.training.translating import Bleu, Translated, bleu, translate
    from deepwide.training.tuning import Tuned, tune

_HOME = {
    "Bleu": "translating",
    "LAYER_SECONDS": "counts",
    "Optimiser": "optimiser",
    "RunEstimate": "counts",
    "SHARE_OF_PEAK": "counts",
    "STEP_SECONDS": "counts",
    "ScalingCheck": "coordinate_check",
    "TrainedRun": "trained",
    "Translated": "translating",
    "Tuned": "tuning",
    "bleu": "translating",
    "check_scaling": "coordinate_check",
    "continue_run": "loop",
    "estimate_run": "counts",
    "find_device": "hardware",
    "keep_memory": "hardware",
    "peak_flops": "hardware",
    "train": "trained",
    "trained_model": "trained",
    "translate": "translating",
    "tune": "tuning",
}
__all__ = [
    "CONTEXT",
    "LAYER_SECONDS",
    "MOST_TOKENS",
    "NUMERICS",
    "SHARE_OF_PEAK",
    "SHORT_NAMES",
    "STEP_SECONDS",
    "AutosizeConfig",
    "Bleu",
    "Optimiser",
    "OptimiserConfig",
    "RunConfig",
    "RunCounts",
    "RunEstimate",
    "ScalingCheck",
    "TrainedRun",
    "Translated",
    "Tuned",
    "bleu",
    "check_scaling",
    "continue_run",
    "data_fingerprint",
    "estimate_run",
    "find_device",
    "keep_memory",
    "override",
    "peak_flops",
    "resolve",
    "run_counts",
    "stored_config",
    "task_of",
    "train",
    "trained_model",
    "translate",
    "tune",
]
__getattr__ = partial(offered, __name__, _HOME)
