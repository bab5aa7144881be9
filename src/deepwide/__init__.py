"""How deep and how wide should a transformer be, and how do you know?

Names are loaded when first used, so that `import deepwide` costs nothing.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Audit": "planning",
    "Bounds": "separation",
    "Certificate": "separation",
    "Count": "planning",
    "DeepwideError": "errors",
    "Design": "designing",
    "Evidence": "pooling",
    "EvidenceSet": "pooling",
    "Fit": "fitting",
    "Interval": "answers",
    "Language": "logic",
    "Law": "laws",
    "MachineProfile": "timing",
    "Note": "answers",
    "Plan": "planning",
    "PlanTable": "planning",
    "RunConfig": "training",
    "Runs": "fitting",
    "Shape": "shape",
    "SweepState": "sweeping",
    "Study": "studies",
    "StudyResult": "studies",
    "Task": "tasks",
    "TrainedRun": "training",
    "Translated": "training",
    "Verdict": "answers",
    "add_evidence": "pooling",
    "analyse_language": "logic",
    "audit": "planning",
    "bounds": "separation",
    "build_count": "shape",
    "count": "planning",
    "evidence": "pooling",
    "find_law": "laws",
    "find_machine": "timing",
    "find_model": "catalogue",
    "fit": "fitting",
    "flops": "shape",
    "inference_memory": "shape",
    "measure_machine": "timing",
    "plan": "planning",
    "plan_many": "planning",
    "rank": "separation",
    "read_config": "shape",
    "run_study": "studies",
    "save_law": "laws",
    "save_machine": "timing",
    "serve": "serving",
    "sweep": "sweeping",
    "sweep_design": "designing",
    "train": "training",
    "training_memory": "shape",
    "translate": "training",
    "write_config": "shape",
    "write_report": "report",
}
__all__ = ["__version__", *_HOME]


def offered(room: str, home: Mapping[str, str], name: str) -> Any:
    """What the `__getattr__` of a room returns: the name from its module in the room, imported when first asked for."""
    if name in home:
        return getattr(import_module(f"{room}.{home[name]}"), name)
    raise AttributeError(f"module {room!r} has no attribute {name!r}")


def __getattr__(name: str) -> Any:
    try:
        return offered("deepwide", _HOME, name)
    except ModuleNotFoundError as error:
        from deepwide.errors import explain

        raise explain(error) from None


def __dir__() -> list[str]:
    return sorted(__all__)
