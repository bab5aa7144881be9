"""From a budget to a shape: one plan with everything around it, or thousands at once."""

from deepwide.planning.budget import Budget, BudgetKind, PlanTable, plan_many
from deepwide.planning.plan import Candidate, NearModel, Plan, plan

__all__ = ["Budget", "BudgetKind", "Candidate", "NearModel", "Plan", "PlanTable", "plan", "plan_many"]
