"""From runs to a law."""

from deepwide.fit.runs import Counting, Runs, read_runs

__all__ = ["Counting", "Runs", "read_runs"]
