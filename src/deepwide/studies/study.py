"""Study: a published claim about depth, how it is tested, and the rule of its verdict.

A study is one file: its settings, the sweeps it trains (if any), what is measured on them, one rule per claim, and its
figures. Everything else (running, resuming, writing, judging) is done here for all of them.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_origin

from pydantic import ValidationError

from deepwide.answers import Answer, Note, Verdict
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.settings import Part, check_names, explain, parse_setting, with_setting
from deepwide.studies.rules import Claim, Measured, Rule
from deepwide.studies.workplace import Workplace

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


def _as_list(value: Any) -> Any:
    """`1,3,6`, a name or a number where a list is wanted.

    >>> _as_list("en-af,en-nso"), _as_list("1, 3"), _as_list(4), _as_list([1, 3])
    (['en-af', 'en-nso'], [1, 3], [4], [1, 3])
    """
    if isinstance(value, str):
        return [parse_setting(f"one={part}")[1] for part in value.split(",")]
    return value if isinstance(value, list | tuple) else [value]


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
    # A run on two idle cores by preset, training included: stated, so that a list of studies builds and times nothing.
    # What was measured (costs.json) goes first; a study without either still works.
    expected_seconds: ClassVar[Mapping[str, float]] = {}
    libraries: ClassVar[Mapping[str, str]] = {}  # modules beyond the core that `measure` needs, and their extras

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
        fields = {name: _as_list(value) if self._is_list(name) else value for name, value in fields.items()}
        try:
            return self.Settings.model_validate(fields, strict=False)
        except ValidationError as error:
            raise DeepwideError(explain(error, self.Settings)) from None

    def _is_list(self, name: str) -> bool:
        return get_origin(self.Settings.model_fields[name].annotation) is tuple

    def sweeps(self, settings: Any) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """The sweeps to train, by name, each as the table of its TOML file; none by default."""
        return {}

    def inputs(self, settings: Any) -> Sequence[Path]:  # noqa: ARG002
        """The files that `measure` reads besides its runs; raises a DeepwideError that names one that is missing."""
        return ()

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


class Folder(Answer):
    """What a study would find in its folder: nothing, work to resume, measurements to judge, or somebody else's."""

    path: str
    state: str  # new, resumes, measured, finished, refused
    finished_runs: int = 0
    finished_parts: int = 0  # of the measuring
    refusal: str = ""  # why a run would not begin


class Forecast(Answer):
    """What a run of a study would train, before it runs."""

    study: str
    preset: str
    settings: dict[str, Any]
    runs: int
    train_flops: int  # of all runs, finished ones too
    # of training what is left, on this machine as busy as it is now; None if nothing is trained
    expected_seconds: float | None
    workers: int
    sweeps: dict[str, dict[str, Any]]
    missing: str = ""  # which corpus, file or library a run would not find here
    folder: Folder | None = None


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
    figures: tuple[str, ...] = ()  # names of its pictures, the first one first; none in results from before
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
