"""From a budget to a shape (`plan`, `plan_many`), and from a shape to a judgement (`audit`) or its costs (`count`).

A question's module is loaded when it is first asked for, so that a plan does not wait for the others.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.planning.auditing import RULE_OF_COST as RULE_OF_COST
    from deepwide.planning.auditing import Audit as Audit
    from deepwide.planning.auditing import audit as audit
    from deepwide.planning.budget import Budget as Budget
    from deepwide.planning.budget import BudgetKind as BudgetKind
    from deepwide.planning.candidates import Candidate as Candidate
    from deepwide.planning.counting import Count as Count
    from deepwide.planning.counting import count as count
    from deepwide.planning.many import PlanTable as PlanTable
    from deepwide.planning.many import plan_many as plan_many
    from deepwide.planning.planner import NearModel as NearModel
    from deepwide.planning.planner import Plan as Plan
    from deepwide.planning.planner import plan as plan
    from deepwide.planning.reasons import Speed as Speed
    from deepwide.planning.reasons import SpeedRow as SpeedRow
    from deepwide.planning.style import Style as Style

_HOME = {
    "RULE_OF_COST": "auditing",
    "Audit": "auditing",
    "Budget": "budget",
    "BudgetKind": "budget",
    "Candidate": "planner",
    "Count": "counting",
    "NearModel": "planner",
    "Plan": "planner",
    "PlanTable": "many",
    "Speed": "reasons",
    "SpeedRow": "reasons",
    "Style": "style",
    "audit": "auditing",
    "count": "counting",
    "plan": "planner",
    "plan_many": "many",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
