"""What a run learns: language modelling on a corpus, and tasks whose examples are computed."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.tasks.task import LANGUAGE, Batch, Task, answer_metrics, make_task, measure_answers, task_names

if TYPE_CHECKING:
    from deepwide.tasks.connectivity import Connectivity
    from deepwide.tasks.generated import Draw, Generated
    from deepwide.tasks.hops import Hops, hop_positions
    from deepwide.tasks.language import Language

_HOME = {
    "Connectivity": "connectivity",
    "Draw": "generated",
    "Generated": "generated",
    "Hops": "hops",
    "Language": "language",
    "hop_positions": "hops",
}
__all__ = [
    "LANGUAGE",
    "Batch",
    "Connectivity",
    "Draw",
    "Generated",
    "Hops",
    "Language",
    "Task",
    "answer_metrics",
    "hop_positions",
    "make_task",
    "measure_answers",
    "task_names",
]
__getattr__ = partial(offered, __name__, _HOME)
