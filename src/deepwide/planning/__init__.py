"""From a budget to a shape (`plan`, `plan_many`), and from a shape to a judgement (`audit`) or its costs (`count`)."""

from deepwide.planning.audit import Audit, audit
from deepwide.planning.budget import Budget, BudgetKind
from deepwide.planning.count import Count, count
from deepwide.planning.many import PlanTable, plan_many
from deepwide.planning.plan import Candidate, NearModel, Plan, plan
from deepwide.planning.style import Style

__all__ = [
    "Audit",
    "Budget",
    "BudgetKind",
    "Candidate",
    "Count",
    "NearModel",
    "Plan",
    "PlanTable",
    "Style",
    "audit",
    "count",
    "plan",
    "plan_many",
]
