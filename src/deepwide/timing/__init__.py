"""What depth costs in time on a machine: measured (`measure_machine`), saved, and asked (`MachineProfile.seconds`).

Profiles and presets need no torch; measuring does, and is loaded when it is used.
"""

from functools import partial

from deepwide import offered
from deepwide.timing.presets import PRESETS, find_machine, with_rates
from deepwide.timing.profile import MachineProfile, PhaseProfile, Timing, save_machine
from deepwide.timing.work import PHASES, Phase, Work, work

_HOME = {"measure_machine": "measuring"}
__all__ = [
    "PHASES",
    "PRESETS",
    "MachineProfile",
    "Phase",
    "PhaseProfile",
    "Timing",
    "Work",
    "find_machine",
    "measure_machine",
    "save_machine",
    "with_rates",
    "work",
]
__getattr__ = partial(offered, __name__, _HOME)
