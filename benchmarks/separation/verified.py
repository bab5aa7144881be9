"""`python -m benchmarks.separation.verified [--minutes 2]`: `rank verify` on every published certificate.

Writes results/separation/verified.json after each file, with the seal of the certificate that was checked, and does not
check one again that has been; quick ones first. What would take longer than so many minutes (by the time that it took
to be made and confirmed) is left out, and listed.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from deepwide.files import write_text
from deepwide.separation import is_structured, verify, verify_structured

RESULTS = Path(__file__).parents[2] / "results" / "separation"
OUT = RESULTS / "verified.json"


def cost(content: dict[str, Any]) -> float:
    """The seconds that a certificate took to be made and confirmed."""
    second = content.get("second") or content.get("confirmed") or {"seconds": 0.0}
    return float(content["seconds"] + second["seconds"])


def check(path: Path) -> dict[str, Any]:
    """One certificate: what it was measured by this time."""
    started = time.process_time()
    if is_structured(path):
        structured = verify_structured(path)
        row: dict[str, Any] = {"rank": structured.lower, "upper": structured.upper, "primes": [structured.prime]}
        row["by"] = structured.algorithm
    else:
        answer = verify(path)
        row = {"rank": answer.rank, "primes": [answer.prime] + [answer.second_prime] * bool(answer.second_prime)}
        row["by"] = f"{answer.method}, {answer.algorithm}"
    return {**row, "cpu_seconds": round(time.process_time() - started, 2)}


def main(arguments: list[str] | None = None) -> None:
    """Every certificate that is not checked yet, the quickest first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0, help="leave out what takes longer")
    options = parser.parse_args(arguments)
    before = json.loads(OUT.read_text(encoding="utf-8"))["checked"] if OUT.exists() else {}
    files = {path.relative_to(RESULTS).as_posix(): json.loads(path.read_text(encoding="utf-8"))
             for folder in ("ranks", "structured") for path in (RESULTS / folder).glob("*.json")}  # fmt: skip
    checked = {name: row for name, row in before.items() if name in files and row["sha256"] == files[name]["sha256"]}
    for name, content in sorted(files.items(), key=lambda item: cost(item[1])):
        if name not in checked and cost(content) <= 60 * options.minutes:
            checked[name] = {"sha256": content["sha256"], **check(RESULTS / name)}
            print(name, checked[name], flush=True)
        result = {
            "command": "python -m benchmarks.separation.verified",
            "checked": dict(sorted(checked.items())),
            "left_out": sorted(set(files) - set(checked)),
        }
        write_text(OUT, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
