"""What a run learns: language modelling on a corpus, and tasks whose examples are computed."""

from typing import TYPE_CHECKING, Any

from deepwide.doors import offered
from deepwide.tasks.registry import LANGUAGE, make_task, task_names
from deepwide.tasks.task import Batch, Task, answer_metrics, measure_answers

if TYPE_CHECKING:
    from deepwide.tasks.generated import Draw, Generated
    from deepwide.tasks.language import Language

_HOME = {
    "Draw": "generated",
    "Generated": "generated",
    "Language": "language",
}
__all__ = [
    "LANGUAGE",
    "Batch",
    "Draw",
    "Generated",
    "Language",
    "Task",
    "answer_metrics",
    "make_task",
    "measure_answers",
    "task_names",
]


def __getattr__(name: str) -> Any:
    return offered(__name__, _HOME, name)
