"""`make bench`: every benchmark of speed, one after another, then the rows of coverage that are not measured yet."""

import sys
from pathlib import Path

from benchmarks import coverage, fit_surface, journeys, planner, separation
from benchmarks.train import speed

planner.main()
journeys.main([])
separation.main([])
speed.main(["--out", "results/train/speed.json"])
if Path("../shared/data").is_dir():
    fit_surface.main(["--data", "../shared/data", "--out", "results/fit/surface_speed.json"])
else:
    print("fits: skipped, Epoch's points are not at ../shared/data", file=sys.stderr)
coverage.main(["--out", "results/fit/coverage.json"])
