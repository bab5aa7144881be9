"""`make bench`: every benchmark of speed, one after another."""

import sys
from pathlib import Path

from benchmarks import fit_surface, journeys, planner, separation
from benchmarks.train import speed

planner.main()
journeys.main([])
separation.main([])
speed.main(["--out", "results/train/speed.json"])
if Path("../shared/data").is_dir():
    fit_surface.main(["--data", "../shared/data", "--out", "results/fit/surface_speed.json"])
else:
    print("fits: skipped, Epoch's points are not at ../shared/data", file=sys.stderr)
