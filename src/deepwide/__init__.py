"""How deep and how wide should a transformer be, and how do you know?

Names are loaded when first used, so that `import deepwide` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Audit": "deepwide.planning",
    "Bounds": "deepwide.separation",
    "Certificate": "deepwide.separation",
    "Count": "deepwide.planning",
    "DeepwideError": "deepwide.errors",
    "Fit": "deepwide.fitting",
    "Interval": "deepwide.answers",
    "Law": "deepwide.laws",
    "Note": "deepwide.answers",
    "Plan": "deepwide.planning",
    "PlanTable": "deepwide.planning",
    "RunConfig": "deepwide.training",
    "Runs": "deepwide.fitting",
    "Shape": "deepwide.shape",
    "SweepState": "deepwide.sweeping",
    "Study": "deepwide.studies",
    "StudyResult": "deepwide.studies",
    "Task": "deepwide.tasks",
    "TrainedRun": "deepwide.training",
    "Verdict": "deepwide.answers",
    "audit": "deepwide.planning",
    "bounds": "deepwide.separation",
    "count": "deepwide.planning",
    "find_law": "deepwide.laws",
    "find_model": "deepwide.catalogue",
    "fit": "deepwide.fitting",
    "flops": "deepwide.shape",
    "inference_memory": "deepwide.shape",
    "plan": "deepwide.planning",
    "plan_many": "deepwide.planning",
    "rank": "deepwide.separation",
    "read_config": "deepwide.shape",
    "run_study": "deepwide.studies",
    "save_law": "deepwide.laws",
    "sweep": "deepwide.sweeping",
    "train": "deepwide.training",
    "training_memory": "deepwide.shape",
    "write_config": "deepwide.shape",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        try:
            return getattr(import_module(_HOME[name]), name)
        except ModuleNotFoundError as error:
            from deepwide.extras import explain

            raise explain(error) from None
    raise AttributeError(f"module 'deepwide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
