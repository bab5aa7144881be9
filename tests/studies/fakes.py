"""Studies for tests: one trains toys, since real sweeps would be slow; one trains nothing and measures in parts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
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
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 3, "cpu": 130}

    def sweeps(self, settings: ToySettings) -> Mapping[str, Mapping[str, Any]]:
        run = {"trainer": "toy", "width": 2, "steps": settings.steps}
        return {"toys": {"seeds": [0], "run": run, "grid": {"depth": list(settings.depths)}}}

    def measure(self, settings: ToySettings, workplace: Workplace) -> Measured:  # noqa: ARG002
        workplace.report("measuring")
        runs = read_runs(workplace.runs["toys"])
        done = sum(run.status == "done" for run in runs) / len(runs)
        rows = [{"id": run.id, "depth": run.config["depth"], "status": run.status} for run in runs]
        return Measured(numbers={"done": Interval(done, done, done)}, tables={"runs": rows})


class SumSettings(Part):
    """What is added."""

    parts: int = 4
    steps: int = 3  # terms of each part
    data: str = ""  # a file that is needed


class Sums(Study):
    """Thirds, added in parts. `before` is called with the number of the part that begins."""

    name = "sums"
    question = "Do thirds add up?"
    source = Source("Nobody 2026, Sums.", "https://example.org/sums")
    rules = (Rule(Claim("adds", "they do"), "reproduced if the sum is positive", lambda m: Ruling(
        REPRODUCED if m.number("sum").value > 0 else NOT_REPRODUCED, m.number("sum"))),)  # fmt: skip
    Settings = SumSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {}, "cpu": {"steps": 5}, "paper": {"data": "lost"}}
    method = "Thirds are added."
    differences = "None."
    before: Callable[[int], None] = staticmethod(lambda _: None)

    def inputs(self, settings: SumSettings) -> list[Path]:
        if settings.data and not Path(settings.data).is_file():
            raise DeepwideError(f"there is no file {settings.data}: set data to one.")
        return [Path(settings.data)] if settings.data else []

    def measure(self, settings: SumSettings, workplace: Workplace) -> Measured:
        rows = []
        for number in range(settings.parts):

            def add(number: int = number) -> tuple[float, ...]:
                self.before(number)
                return tuple((number + 1) / 3**n for n in range(1, settings.steps + 1))

            rows += [{"part": number, "third": third} for third in workplace.part(f"part {number}", add)]
        total = sum(row["third"] for row in rows)
        return Measured(numbers={"sum": Interval(total, total, total)}, tables={"thirds": rows})
