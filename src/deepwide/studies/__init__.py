"""Studies: published claims about depth, each with one command that tests it and a rule, written first, that judges."""

from deepwide.studies.folder import read_result
from deepwide.studies.page import show_interval
from deepwide.studies.registry import find_study, studies
from deepwide.studies.running import dry_run, run_study
from deepwide.studies.study import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    PRESETS,
    REPRODUCED,
    Claim,
    Forecast,
    Measured,
    Rule,
    Ruling,
    Source,
    Study,
    StudyResult,
    Workplace,
)

__all__ = [
    "NOT_DECIDABLE",
    "NOT_REPRODUCED",
    "PRESETS",
    "REPRODUCED",
    "Claim",
    "Forecast",
    "Measured",
    "Rule",
    "Ruling",
    "Source",
    "Study",
    "StudyResult",
    "Workplace",
    "dry_run",
    "find_study",
    "read_result",
    "run_study",
    "show_interval",
    "studies",
]
