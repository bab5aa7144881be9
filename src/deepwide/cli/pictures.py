"""Pictures of plans and verdicts for `--plot`."""

from pathlib import Path

from deepwide.auditing import Verdict
from deepwide.catalogue import find_model
from deepwide.cli.tables import percent
from deepwide.figures import save_chart
from deepwide.figures.depth_width import Point, depth_width_map
from deepwide.planning import Plan


def draw_plan(plan: Plan, law: str, path: Path) -> None:
    """The plan, its neighbours in depth and the public models of its size."""
    points = [Point.of(f"plan: {plan.shape.depth} × {plan.shape.width}", plan.shape, "plan", plan.reason)]
    points += [
        Point(f"{c.depth} × {c.width}", c.depth, c.width, c.block_params, "other depths", percent(c.loss_percent))
        for c in plan.candidates
        if c.depth != plan.shape.depth
    ]
    for near in plan.nearest:
        detail = f"{near.depth_over_law:.2f} times the law's depth"
        points.append(Point.of(near.name, find_model(near.name).shape, "public", detail))
    matrices = plan.params.block / (plan.shape.depth * plan.shape.width**2)
    save_chart(depth_width_map(points, law, f"A shape for {plan.budget_words}", matrices), path)


def draw_verdicts(verdicts: list[Verdict], law: str, path: Path) -> None:
    """The judged models on the law's map."""
    points = [Point.of(v.name, v.shape, v.verdict, v.sentence) for v in verdicts]
    title = f"{verdicts[0].name}: {verdicts[0].verdict}" if len(verdicts) == 1 else ""
    save_chart(depth_width_map(points, law, title), path)
