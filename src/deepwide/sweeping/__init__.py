"""Sweeps: a spec that expands to runs, executors that run them, results that are read from their folders."""

from deepwide.sweeping.driver import Driver, Outcome
from deepwide.sweeping.executors import Executor, Resources, executor_named
from deepwide.sweeping.grid import Cell, cells_of
from deepwide.sweeping.results import export, metrics, table
from deepwide.sweeping.rows import run_rows
from deepwide.sweeping.spec import Spec, make_spec, read_spec
from deepwide.sweeping.status import CellStatus, status_of
from deepwide.sweeping.trainers import trainer_of

__all__ = [
    "Cell",
    "CellStatus",
    "Driver",
    "Executor",
    "Outcome",
    "Resources",
    "Spec",
    "cells_of",
    "executor_named",
    "export",
    "make_spec",
    "metrics",
    "read_spec",
    "run_rows",
    "status_of",
    "table",
    "trainer_of",
]
