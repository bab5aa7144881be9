"""Fits to draw, and how to read a chart: for the tests of pictures of fits."""

import json
from functools import cache
from typing import Any

import numpy as np

from deepwide.fitting import RidgeFit, Runs, TransitionFit, fit_ridge, fit_transition, simulate
from deepwide.laws import TransitionLaw, transition_law

TRUTH = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = np.geomspace(1e4, 4e6, 8)


@cache
def runs() -> Runs:
    return simulate(TRUTH, depths=(1, 2, 4, 8), sizes=SIZES.tolist(), seeds=2, noise=0.003)


@cache
def transition() -> TransitionFit:
    return fit_transition(runs(), bootstrap=50)


@cache
def large() -> RidgeFit:
    """Of Gemstones' sizes and as many depths."""
    many = simulate(transition_law(), depths=tuple(range(10, 66, 5)), sizes=(5e8, 1e9, 2e9), seeds=1, noise=0.001)
    return fit_ridge(many, bootstrap=50)


def spec(chart: Any) -> dict[str, Any]:
    made: dict[str, Any] = chart if isinstance(chart, dict) else json.loads(chart.to_json())
    return made


def data(chart: Any, field: str) -> list[dict[str, Any]]:
    """The rows that have a field, each once."""
    rows = [row for rows in spec(chart)["datasets"].values() for row in rows if field in row]
    return [json.loads(row) for row in dict.fromkeys(json.dumps(row) for row in rows)]


def layers(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The single charts of a specification, with what they inherit."""
    shared = part.get("encoding", {})
    inside = [
        each | {"encoding": shared | each.get("encoding", {})}
        for key in ("layer", "hconcat", "concat")
        for each in part.get(key, [])
    ]
    return [layer for each in inside for layer in layers(each)] if inside else [part]
