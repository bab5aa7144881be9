"""`make bench`: every benchmark, one after another."""

from benchmarks import planner, separation
from benchmarks.train import speed

planner.main()
separation.main([])
speed.main(["--out", "results/train/speed.json"])
