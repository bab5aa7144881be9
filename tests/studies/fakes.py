"""A study for tests: two toy sweeps would be slow, so it trains toys and measures their losses."""

from collections.abc import Mapping
from typing import Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.run import read_runs
from deepwide.settings import Part
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Measured,
    Rule,
    Ruling,
    Source,
    Study,
    Workplace,
)

FINISHES = Claim("finishes", "every toy finishes", "section 1")


def every_run_is_done(measured: Measured) -> Ruling:
    done = measured.number("done")
    if done.value == 0:
        return Ruling(NOT_DECIDABLE, done, (Note.of("none", "no run finished"),))
    return Ruling(REPRODUCED if done.value == 1 else NOT_REPRODUCED, done)


class ToySettings(Part):
    depths: tuple[int, ...] = (1, 2)
    steps: int = 20


class Toys(Study):
    name = "toys"
    question = "Do toys finish?"
    source = Source("Nobody 2026, Toys.", "https://example.org/toys")
    rules = (Rule(FINISHES, "reproduced if all runs are done", every_run_is_done),)
    Settings = ToySettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {},
        "cpu": {"steps": 30},
        "paper": {"depths": [1, 2, 3]},
    }
    method = "Toys are trained."
    differences = "None."

    def sweeps(self, settings: ToySettings) -> Mapping[str, Mapping[str, Any]]:
        run = {"trainer": "toy", "width": 2, "steps": settings.steps}
        return {"toys": {"seeds": [0], "run": run, "grid": {"depth": list(settings.depths)}}}

    def measure(self, settings: ToySettings, workplace: Workplace) -> Measured:  # noqa: ARG002
        workplace.report("measuring")
        runs = read_runs(workplace.runs["toys"])
        done = sum(run.status == "done" for run in runs) / len(runs)
        rows = [{"id": run.id, "depth": run.config["depth"], "status": run.status} for run in runs]
        return Measured(numbers={"done": Interval(done, done, done)}, tables={"runs": rows})
