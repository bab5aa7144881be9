"""Pictures of plans and verdicts for `--plot`."""

from pathlib import Path

from deepwide.auditing import Verdict
from deepwide.catalogue import find_model
from deepwide.figures import save_chart
from deepwide.figures.depth_width import Point, depth_width_map
from deepwide.planning import Plan
from deepwide.quantities import show_count


def draw_plan(plan: Plan, law: str, path: Path) -> None:
    """The plan, its neighbours in depth and the public models of its size."""
    points = [Point(f"plan: {plan.shape.depth} × {plan.shape.width}", plan.shape, "plan", plan.reason)]
    for near in plan.nearest:
        detail = f"{near.depth_over_law:.2f} times the law's depth"
        points.append(Point(near.name, find_model(near.name).shape, "public", detail))
    matrices = plan.params.block / (plan.shape.depth * plan.shape.width**2)
    save_chart(depth_width_map(points, law, f"A shape for {plan.budget_words}", matrices), path)


def draw_verdicts(verdicts: list[Verdict], law: str, path: Path) -> None:
    """The judged models on the law's map."""
    points = [Point(v.name, v.shape, v.verdict, v.sentence) for v in verdicts]
    title = f"{verdicts[0].name}: {verdicts[0].verdict}" if len(verdicts) == 1 else ""
    title = title and f"{title} ({show_count(verdicts[0].params.total)} parameters)"
    save_chart(depth_width_map(points, law, title), path)
