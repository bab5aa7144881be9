"""`make bench`: every benchmark, one after another."""

from benchmarks import planner, separation

planner.main()
separation.main([])
