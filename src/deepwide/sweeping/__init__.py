"""Sweeps: a spec that expands to runs, executors that run them, results that are read from their folders.

`expand`, `sweep`, `sweep_state`, `watch`, `retry`, `table`, `curves` and `export` are the questions one may ask; each
takes a spec, or the path of its TOML file.
"""

from deepwide.sweeping.driver import Driver, Outcome
from deepwide.sweeping.example import write_example
from deepwide.sweeping.executors import Executor, Resources, executor_named
from deepwide.sweeping.expansion import ExpandedCell, Expansion, expand
from deepwide.sweeping.grid import Cell, cells_of
from deepwide.sweeping.results import check_format, curves, export, locate, table, unfinished
from deepwide.sweeping.rows import run_rows
from deepwide.sweeping.running import retry, sweep, sweep_state, watch
from deepwide.sweeping.spec import Spec, make_spec, read_spec
from deepwide.sweeping.state import STATES, CellState, SweepState, cell_state
from deepwide.sweeping.trainers import trainer_of
from deepwide.sweeping.worker import Exit, work

__all__ = [
    "STATES",
    "Cell",
    "CellState",
    "Driver",
    "Executor",
    "Exit",
    "ExpandedCell",
    "Expansion",
    "Outcome",
    "Resources",
    "Spec",
    "SweepState",
    "cell_state",
    "cells_of",
    "check_format",
    "curves",
    "executor_named",
    "expand",
    "export",
    "locate",
    "make_spec",
    "read_spec",
    "retry",
    "run_rows",
    "sweep",
    "sweep_state",
    "table",
    "trainer_of",
    "unfinished",
    "watch",
    "work",
    "write_example",
]
