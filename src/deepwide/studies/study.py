"""Study: a published claim about depth, how it is tested, and the rule of its verdict.

A study is one file: its settings, the sweeps it trains (if any), what is measured on them, one rule per claim, and its
figures. Everything else (running, resuming, writing, judging) is done here for all of them.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import ValidationError, model_validator

from deepwide.answers import Answer, Interval, Note, Verdict
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.settings import Part, check_names, explain, parse_setting, with_setting
from deepwide.studies.fingerprint import source_of

REPRODUCED, NOT_REPRODUCED, NOT_DECIDABLE = "reproduced", "not reproduced", "not decidable at this scale"
PRESETS = {
    "quick": "one or two minutes: shows how the study works, decides little",
    "cpu": "at most two hours on two cores: what the published results of deepwide come from",
    "paper": "the original settings, for a cluster",
}


@dataclass(frozen=True)
class Source:
    """Where a claim was published."""

    citation: str
    link: str


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
    seconds: float = 0.0  # of training and measuring

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

    @property
    def source(self) -> str:
        """What the verdict hangs on: the words of the rule, its code, and the constants and functions that it uses."""
        return f"{self.claim.key}\n{self.claim.statement}\n{self.text}\n{source_of(self.decide)}"


@dataclass(frozen=True)
class Workplace:
    """What a study measures with: its trained runs by sweep, and a way to report progress and to be stopped."""

    runs: Mapping[str, Path] = field(default_factory=dict)  # the folder of runs of each sweep
    report: Callable[[str], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False


class Study(ABC):
    """The base of every study. Subclasses fill in the class variables and `measure`."""

    name: ClassVar[str]
    question: ClassVar[str]
    source: ClassVar[Source]
    rules: ClassVar[tuple[Rule, ...]]
    Settings: ClassVar[type[Part]]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]  # quick, cpu, paper: settings that differ from the defaults
    method: ClassVar[str]  # what is done, for the page
    differences: ClassVar[str]  # how the set-up differs from the original, for the page

    def settings(self, preset: str, changes: tuple[str, ...] = ()) -> Part:
        """The settings of a preset, with some changed, each written as `name=value`."""
        if preset not in self.presets:
            raise DeepwideError(
                f"{self.name} has no preset {quoted(preset)}: {did_you_mean(preset[:80], self.presets)}"
            )
        fields = dict(self.presets[preset])
        for written in changes:
            path, value = parse_setting(written)
            fields = with_setting(fields, path, value)
        check_names(self.Settings, fields)
        try:
            return self.Settings.model_validate(fields, strict=False)
        except ValidationError as error:
            raise DeepwideError(explain(error, self.Settings)) from None

    def sweeps(self, settings: Any) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """The sweeps to train, by name, each as the table of its TOML file; none by default."""
        return {}

    @abstractmethod
    def measure(self, settings: Any, workplace: Workplace) -> Measured:
        """What the rules judge."""

    def figures(self, measured: Measured) -> Mapping[str, Any]:  # noqa: ARG002
        """Charts by name; the first one leads the page."""
        return {}

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the study tests."""
        return tuple(rule.claim for rule in self.rules)

    @property
    def rule_hash(self) -> str:
        """A hash of every rule: its words, its code, and the constants and functions that the code uses."""
        text = "\n".join(rule.source for rule in self.rules)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Forecast(Answer):
    """What a run of a study would train, before it runs."""

    study: str
    preset: str
    settings: dict[str, Any]
    runs: int
    train_flops: int
    expected_seconds: float | None  # of training on this machine; None if nothing is trained
    sweeps: dict[str, dict[str, Any]]


class StudyResult(Answer):
    """How a study ended: what was measured, and a verdict on each claim."""

    study: str
    preset: str
    question: str
    source: str
    settings: dict[str, Any]
    measured: Measured
    verdicts: tuple[Verdict, ...]
    seconds: float
    rule_hash: str  # of the rules that judged
    rule_hash_at_start: str  # of the rules that stood when the study was started, before anything was measured
    code: dict[str, str]  # versions: of deepwide, a hash of its source, of the libraries
    notes: tuple[Note, ...] = ()

    @property
    def rules_changed(self) -> bool:
        """Whether the rules were changed after the study was started: then its verdicts prove less."""
        return self.rule_hash != self.rule_hash_at_start

    def rows(self) -> list[dict[str, Any]]:
        """One row per claim."""
        return [
            {
                "study": self.study,
                "preset": self.preset,
                "claim": verdict.claim,
                "outcome": verdict.outcome,
                "measured": verdict.measured.value if verdict.measured else None,
                "low": verdict.measured.low if verdict.measured else None,
                "high": verdict.measured.high if verdict.measured else None,
            }
            for verdict in self.verdicts
        ]
