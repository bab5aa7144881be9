"""Rules: what a study claims, what it measured, and how one is judged by the other.

The words and the code of a rule are fixed before the run; their hash is recorded with the result (fingerprint.py).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pydantic import model_validator

from deepwide.answers import Answer, Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.studies.fingerprint import source_of

REPRODUCED, NOT_REPRODUCED, NOT_DECIDABLE = "reproduced", "not reproduced", "not decidable at this scale"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper that a study tests, in our words, and where it stands there."""

    key: str
    statement: str
    where: str = ""


class Measured(Answer):
    """What a study measured: numbers with intervals by name, and tables of plain rows. All finite: JSON has no NaN."""

    numbers: Mapping[str, Interval] = {}
    tables: Mapping[str, list[dict[str, Any]]] = {}
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0  # of training and measuring together
    training_seconds: float | None = None  # of all workers; None in folders from before it was recorded
    measuring_seconds: float | None = None

    @model_validator(mode="after")
    def _is_finite(self) -> Self:
        values = [(name, value) for name, i in self.numbers.items() for value in (i.value, i.low, i.high)]
        values += [(name, value) for rows in self.tables.values() for row in rows for name, value in row.items()]
        for name, value in values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"'{name}' is {value}, which is no measurement: leave it out or give none")
        return self

    def number(self, name: str) -> Interval:
        """A number that a rule needs."""
        if name not in self.numbers:
            raise DeepwideError(
                f"the measurements have no number '{name}': another version of the study took them, so measure again "
                "in another folder."
            )
        return self.numbers[name]

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table; none if it was not measured."""
        return self.tables.get(name, [])


class Ruling(NamedTuple):
    """What a rule decides: one of the three outcomes, the number it rests on, and what the reader should know."""

    outcome: str
    measured: Interval | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Rule:
    """How a claim is judged: in words for the reader, as a function for the computer. Written before the run."""

    claim: Claim
    text: str
    decide: Callable[[Measured], Ruling]
    quantity: str = ""  # what the measured number is, with its unit; not needed where it is one of the numbers

    def judge(self, measured: Measured) -> Verdict:
        """The verdict on the claim."""
        ruling = self.decide(measured)
        if ruling.outcome not in (REPRODUCED, NOT_REPRODUCED, NOT_DECIDABLE):
            raise AssertionError(f"a rule has three outcomes, and '{ruling.outcome}' is none of them")
        return Verdict(
            claim=self.claim.statement,
            outcome=ruling.outcome,
            rule=self.text,
            measured=ruling.measured,
            notes=ruling.notes,
        )

    def quantity_in(self, measured: Measured, interval: Interval | None) -> str:
        """What the number of a verdict is: as the rule says, or the name under which it was measured."""
        if interval is None or self.quantity:
            return self.quantity if interval is not None else ""
        return next((name for name, value in measured.numbers.items() if value == interval), "")

    @property
    def source(self) -> str:
        """What the verdict hangs on: the words of the rule, its code, and the constants and functions that it uses."""
        return f"{self.claim.key}\n{self.claim.statement}\n{self.text}\n{source_of(self.decide)}"
