"""What deepwide weighs once installed: `python -m benchmarks.install --out results/install.json`.

Each extra is installed into an empty environment of its own, with constraints.txt; its weight is what it adds to the
core's. Extras share libraries (scipy, polars), so that two of them together weigh less than their sum.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("plot", "rank", "fit", "train", "ray", "tracking", "hub")


def megabytes(folder: Path) -> float:
    """The sizes of all files, links not followed, in units of 1e6 bytes."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1e6


def installed(extra: str) -> float:
    """Megabytes that `pip install deepwide[extra]` adds to a new environment."""
    with tempfile.TemporaryDirectory() as home:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        empty = megabytes(Path(home))
        wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
        pip = [f"{home}/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", wanted, "--constraint", str(ROOT / "constraints.txt")], check=True)
        return megabytes(Path(home)) - empty


def main(words: list[str] | None = None) -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("extras", nargs="*", default=EXTRAS)
    args = parser.parse_args(words)
    core = installed("")
    result: dict[str, Any] = {
        "command": "python -m benchmarks.install --out results/install.json",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "core_megabytes": round(core),
        "extra_megabytes": {},
    }
    for extra in args.extras:
        try:
            result["extra_megabytes"][extra] = round(installed(extra) - core)
        except subprocess.CalledProcessError:
            print(f"{extra}: not installed, its libraries cannot be had here", file=sys.stderr)
        print(json.dumps(result["extra_megabytes"]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
