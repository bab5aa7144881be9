"""Sweeps: a spec that expands to runs, executors that run them, results that are read from their folders."""

from deepwide.sweep.driver import Driver, Outcome
from deepwide.sweep.executors import Executor, Resources, executor_named
from deepwide.sweep.grid import Cell, cells_of
from deepwide.sweep.results import export, metrics, table
from deepwide.sweep.spec import Spec, make_spec, read_spec
from deepwide.sweep.status import CellStatus, status_of

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
    "status_of",
    "table",
]
