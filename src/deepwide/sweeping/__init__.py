"""Sweeps: a spec that expands to runs, executors that run them, results that are read from their folders.

`expand`, `sweep`, `sweep_state`, `watch`, `retry`, `table`, `curves` and `export` are the questions one may ask; each
takes a spec, or the path of its TOML file.

Names are loaded when first used: a worker needs no driver, and a fit reads folders only.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.sweeping.driver import Driver as Driver
    from deepwide.sweeping.driver import Outcome as Outcome
    from deepwide.sweeping.example import write_example as write_example
    from deepwide.sweeping.executors import Executor as Executor
    from deepwide.sweeping.executors import Resources as Resources
    from deepwide.sweeping.grid import Cell as Cell
    from deepwide.sweeping.grid import cells_of as cells_of
    from deepwide.sweeping.reader import RunsReader as RunsReader
    from deepwide.sweeping.reader import SweepChange as SweepChange
    from deepwide.sweeping.results import check_format as check_format
    from deepwide.sweeping.results import curves as curves
    from deepwide.sweeping.results import export as export
    from deepwide.sweeping.results import locate as locate
    from deepwide.sweeping.results import table as table
    from deepwide.sweeping.results import unchecked as unchecked
    from deepwide.sweeping.results import unfinished as unfinished
    from deepwide.sweeping.rows import run_rows as run_rows
    from deepwide.sweeping.running import ExpandedCell as ExpandedCell
    from deepwide.sweeping.running import Expansion as Expansion
    from deepwide.sweeping.running import executor_named as executor_named
    from deepwide.sweeping.running import expand as expand
    from deepwide.sweeping.running import retry as retry
    from deepwide.sweeping.running import runs_folder as runs_folder
    from deepwide.sweeping.running import sweep as sweep
    from deepwide.sweeping.running import sweep_state as sweep_state
    from deepwide.sweeping.running import watch as watch
    from deepwide.sweeping.spec import Spec as Spec
    from deepwide.sweeping.spec import as_spec as as_spec
    from deepwide.sweeping.spec import make_spec as make_spec
    from deepwide.sweeping.spec import read_spec as read_spec
    from deepwide.sweeping.state import STATES as STATES
    from deepwide.sweeping.state import CellState as CellState
    from deepwide.sweeping.state import SweepState as SweepState
    from deepwide.sweeping.state import cell_state as cell_state
    from deepwide.sweeping.state import expected_seconds as expected_seconds
    from deepwide.sweeping.trainers import trainer_of as trainer_of
    from deepwide.sweeping.verifying import Damage as Damage
    from deepwide.sweeping.verifying import Verification as Verification
    from deepwide.sweeping.verifying import verify as verify
    from deepwide.sweeping.worker import Exit as Exit
    from deepwide.sweeping.worker import work as work

_HOME = {
    "Cell": "grid",
    "CellState": "state",
    "Damage": "verifying",
    "Driver": "driver",
    "Executor": "executors",
    "Exit": "worker",
    "ExpandedCell": "running",
    "Expansion": "running",
    "Outcome": "driver",
    "Resources": "executors",
    "RunsReader": "reader",
    "STATES": "state",
    "Spec": "spec",
    "SweepChange": "reader",
    "SweepState": "state",
    "Verification": "verifying",
    "as_spec": "spec",
    "cell_state": "state",
    "cells_of": "grid",
    "check_format": "results",
    "curves": "results",
    "executor_named": "running",
    "expand": "running",
    "expected_seconds": "state",
    "export": "results",
    "locate": "results",
    "make_spec": "spec",
    "read_spec": "spec",
    "retry": "running",
    "run_rows": "rows",
    "runs_folder": "running",
    "sweep": "running",
    "sweep_state": "running",
    "table": "results",
    "trainer_of": "trainers",
    "unchecked": "results",
    "unfinished": "results",
    "verify": "verifying",
    "watch": "running",
    "work": "worker",
    "write_example": "example",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
