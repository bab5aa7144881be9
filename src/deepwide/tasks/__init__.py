"""What a run learns: language modelling, tasks on rows of a user's own files, and tasks whose examples are computed."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.tasks.task import (
    LANGUAGE,
    TABLED,
    Batch,
    Task,
    answer_metrics,
    make_tabled_task,
    make_task,
    measure_answers,
    task_names,
)

if TYPE_CHECKING:
    from deepwide.tasks.connectivity import Connectivity
    from deepwide.tasks.generated import Draw, Generated
    from deepwide.tasks.hops import Hops, hop_positions
    from deepwide.tasks.language import Language
    from deepwide.tasks.tabled import Classification, Halves, Translation

_HOME = {
    "Classification": "tabled",
    "Connectivity": "connectivity",
    "Draw": "generated",
    "Generated": "generated",
    "Halves": "tabled",
    "Hops": "hops",
    "Language": "language",
    "Translation": "tabled",
    "hop_positions": "hops",
}
__all__ = [
    "LANGUAGE",
    "TABLED",
    "Batch",
    "Classification",
    "Connectivity",
    "Draw",
    "Generated",
    "Halves",
    "Hops",
    "Language",
    "Task",
    "Translation",
    "answer_metrics",
    "hop_positions",
    "make_tabled_task",
    "make_task",
    "measure_answers",
    "task_names",
]
__getattr__ = partial(offered, __name__, _HOME)
