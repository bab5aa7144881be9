"""Time this machine and judge the fit on shapes left out: `python -m benchmarks.latency` (about four minutes).

Writes results/latency/machine.json, the profile as `deepwide time --save` would, with every case; and summary.json: the
median errors of the fit and of a bare roofline on shapes left out, and whether the aim of 10% was met. Run it on a
quiet machine; the load before and after is part of the result.
"""

import argparse
import json
import os
from pathlib import Path

from deepwide.timing import MachineProfile, measure_machine, save_machine

FOLDER = Path(__file__).resolve().parent.parent / "results" / "latency"
AIM = 0.10


def summary(profile: MachineProfile, load: tuple[float, float]) -> dict[str, object]:
    """The errors by phase, and the verdict."""
    errors = {
        phase: {
            "left_out": round(law.error or 0.0, 4),
            "roofline": round(law.roofline_error or 0.0, 4),
            "per_layer_us": [
                None if value is None else round(1e6 * value, 2)
                for value in (law.per_layer.value, law.per_layer.low, law.per_layer.high)
            ],
            "met": law.error is not None and law.error < AIM,
        }
        for phase, law in profile.phases.items()
    }
    return {
        "command": "python -m benchmarks.latency",
        "aim": f"median |predicted / measured - 1| below {AIM:.0%} on shapes left out, in every phase",
        "met": all(bool(each["met"]) for each in errors.values()),
        "phases": errors,
        "rounds": profile.rounds,
        "shapes": len({(t.depth, t.width) for t in profile.timings}),
        "threads": profile.threads,
        "load_before_and_after": [round(value, 2) for value in load],
        "versions": profile.versions,
    }


def main() -> None:
    """Measure, write, and print what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    profile = measure_machine(
        seconds=options.seconds,
        threads=options.threads,
        device="cpu",
        progress=lambda words, share, left: print(f"{share:4.0%} {words}, {left:.0f} s left", flush=True),
    )
    save_machine(profile, options.out / "machine.json")
    document = summary(profile, (before, os.getloadavg()[0]))
    (options.out / "summary.json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
