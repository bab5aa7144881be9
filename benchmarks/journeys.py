"""Which of our modules three journeys pass through: `python -m benchmarks.journeys`.

A stranger who wants to understand a command reads these files. Every process of a journey, a sweep's workers too,
writes down what it has loaded when it ends. `--source` walks another checkout's src.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from deepwide.cli.tour import SWEEP

ROOT = Path(__file__).resolve().parent.parent
# Imported by every Python of the journey when it starts.
RECORDER = """
import atexit, os, sys

def record():
    ours = sorted(name for name in sys.modules if name.split(".")[0] == "deepwide")
    with open(os.path.join(os.environ["DEEPWIDE_JOURNEY"], f"{os.getpid()}.txt"), "w") as file:
        file.write(" ".join(sys.argv[1:]) + "\\n" + "\\n".join(ours))

atexit.register(record)
"""


def journeys(home: Path) -> dict[str, list[str]]:
    """The three of the review, as commands."""
    spec, runs, law = home / "journey.toml", home / "runs", home / "law.json"
    spec.write_text(SWEEP)
    return {
        "plan": ["plan 1.3B"],
        "rank": ["rank --depth 2 --width 3"],
        "loop": [
            f"sweep run {spec} --runs {runs}",
            f"fit {runs} --kind ridge --base power --law {law}",
            f"plan 100k --law {law}",
        ],
    }


def walk(commands: list[str], home: Path, source: Path) -> list[dict[str, Any]]:
    """Every process of a journey: what it was asked, and which modules of ours it loaded."""
    (home / "sitecustomize.py").write_text(RECORDER)
    path = os.pathsep.join(filter(None, [str(home), str(source), os.environ.get("PYTHONPATH")]))
    processes: list[dict[str, Any]] = []
    for command in commands:
        with tempfile.TemporaryDirectory(dir=home) as folder:
            environment = os.environ | {"DEEPWIDE_JOURNEY": folder, "PYTHONPATH": path}
            subprocess.run(
                [sys.executable, "-m", "deepwide", *command.split()],
                check=True,
                stdout=subprocess.DEVNULL,
                env=environment,
            )
            for record in sorted(Path(folder).glob("*.txt")):
                asked, *modules = record.read_text().splitlines()
                if modules:
                    processes.append({"asked": asked.replace(str(home), "…"), "modules": modules})
    return processes


def main(words: list[str] | None = None) -> None:
    """Walk, print, and save with --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("--list", action="store_true", help="Print the modules too.")
    args = parser.parse_args(words)
    result: dict[str, Any] = {
        "command": "python -m benchmarks.journeys",
        "modules": {},
        "per_process": {},
    }
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        for name, commands in journeys(home).items():
            processes = walk(commands, home, args.source.resolve())
            modules = sorted({module for process in processes for module in process["modules"]})
            result["modules"][name] = modules
            # Workers that ran different cells loaded the same.
            counts = {process["asked"].split(" ")[0]: len(process["modules"]) for process in processes}
            result["per_process"][name] = counts
            print(f"{name}: {len(modules)} modules; by process {counts}")
            if args.list:
                print("".join(f"  {module}\n" for module in modules), end="")
    if args.out:
        args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
