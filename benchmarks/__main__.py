"""`make bench`: every benchmark, one after another."""

from benchmarks import planner

planner.main()
