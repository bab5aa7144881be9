"""Studies: published claims about depth, each with one command that tests it and a rule, written first, that judges."""

from deepwide.studies.costs import estimated_seconds, recorded_costs
from deepwide.studies.folder import read_result, saved_parts, saved_runs
from deepwide.studies.meanings import setting_rows
from deepwide.studies.registry import find_study, studies
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.running import dry_run, folder_of, run_study
from deepwide.studies.study import PRESETS, Folder, Forecast, Source, Study, StudyResult
from deepwide.studies.words import show_interval, show_measured, show_time
from deepwide.studies.workplace import Workplace

__all__ = [
    "NOT_DECIDABLE",
    "NOT_REPRODUCED",
    "PRESETS",
    "REPRODUCED",
    "Claim",
    "Folder",
    "Forecast",
    "Measured",
    "Rule",
    "Ruling",
    "Source",
    "Study",
    "StudyResult",
    "Workplace",
    "dry_run",
    "estimated_seconds",
    "find_study",
    "folder_of",
    "read_result",
    "recorded_costs",
    "run_study",
    "saved_parts",
    "saved_runs",
    "setting_rows",
    "show_interval",
    "show_measured",
    "show_time",
    "studies",
]
