"""`make bench`: everything that we claim and measure, one after another, the cheap ones first.

    make bench                                   all of it, many hours
    make bench BENCH="planner fuzz"              these
    make bench BENCH="--skip coverage design"    all but these
    make bench BENCH=--list                      what there is, and what it needs

Each runs in a process of its own, writes its file in results/ and goes on where it was interrupted if it can. One that
fails does not stop the others; one that needs what this machine lacks is skipped and named. Not part of it: what is
measured beside other people's code (`benchmarks.studies`, `benchmarks.separation.rivals`), and what draws the pages.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"


class Step(NamedTuple):
    """One benchmark: its module, its words, and what it needs."""

    module: str
    words: str = ""
    needs: str = ""  # data or browser

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return "_".join(
            [self.module, *(word.lstrip("-") for word in self.words.split() if word in ("--calibrate", "--later"))]
        )


STEPS = (
    Step("journeys"),
    Step("planner"),
    Step("memory_plans"),
    Step("separation.growth"),
    Step("separation.ideal"),
    Step("logic", "--write"),
    Step("families"),
    Step("fit_scale"),
    Step("derive_gemstones", "--data DATA --out src/deepwide/laws/gemstones.json", "data"),
    Step("fit_surface", "--data DATA --out results/fit/surface_speed.json", "data"),
    Step("web.view", needs="browser"),
    Step("web.drag", needs="browser"),
    Step("web.load"),
    Step("latency"),
    Step("train.speed", "--out results/train/speed.json"),
    Step("train.together", "--out results/train/together.json"),
    Step("separation"),
    Step("separation.verified"),
    Step("sweep_scale"),
    Step("evidence", "--data DATA", "data"),
    Step("prediction", "--data DATA --out results/fit/prediction.json", "data"),
    Step("halves", "--data DATA --out results/fit/halves.json", "data"),
    Step("lengths", "--data DATA --out results/fit/lengths.json", "data"),
    Step("mutations", "--resume"),
    Step("fuzz", "--resume"),
    Step("web.compare", needs="browser"),
    Step("design_branches", "--out results/design/branches.json"),
    Step("design_limit", "--out results/design/limit.json"),
    Step("fit_surface", "--calibrate --surfaces 120 --out results/fit/surface_calibration.json"),
    Step("fit_calibration", "--out results/fit/calibration.json"),
    Step("design_replay", "--data DATA --out results/design/replay.json", "data"),
    Step("coverage", "--out results/fit/coverage.json"),
    Step("coverage", "--later --number 40 --out results/fit/coverage_later.json"),
    Step("decomposition", "--out results/fit/decomposition.json"),
    Step("posterior", "--out results/fit/posterior.json"),
    Step("losses", "--out results/fit/losses.json"),
    Step("needed", "--out results/fit/needed.json"),
    Step("design", "--out results/design/simulated.json"),
    Step("install", "--out results/install.json"),
)


def missing(step: Step) -> str:
    """What a step needs and this machine lacks; empty when it can run."""
    if step.needs == "data" and not DATA.is_dir():
        return f"no development data at {DATA}"
    if step.needs == "browser" and not shutil.which("chromium"):
        return "no Chromium"
    return ""


def run(steps: Sequence[Step]) -> list[str]:
    """Each in turn; returns those that failed."""
    failed = []
    for step in steps:
        if why := missing(step):
            print(f"== {step.name}: skipped, {why}", file=sys.stderr, flush=True)
            continue
        print(f"== {step.name}", file=sys.stderr, flush=True)
        words = [str(DATA) if word == "DATA" else word for word in step.words.split()]
        began = time.monotonic()
        code = subprocess.run([sys.executable, "-m", f"benchmarks.{step.module}", *words], cwd=ROOT, check=False)
        seconds = time.monotonic() - began
        print(f"== {step.name}: ended with {code.returncode} after {seconds:.0f} s", file=sys.stderr, flush=True)
        if code.returncode:
            failed.append(step.name)
    return failed


def main(words: Sequence[str] | None = None) -> None:
    """Run what was asked for; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [step.name for step in STEPS]
    parser.add_argument("only", nargs="*", metavar="NAME", help="these alone")
    parser.add_argument("--skip", nargs="*", default=[], metavar="NAME", help="all but these")
    parser.add_argument("--list", action="store_true", help="print their names, and what keeps them from running")
    given = parser.parse_args(words)
    if strange := sorted({*given.only, *given.skip} - set(names)):
        parser.error(f"there is no benchmark {strange[0]!r}; there are {', '.join(names)}")
    chosen = [step for step in STEPS if step.name not in given.skip and (not given.only or step.name in given.only)]
    if given.list:
        for step in chosen:
            print(f"{step.name}{f' ({missing(step)})' if missing(step) else ''}")
        return
    if failed := run(chosen):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
