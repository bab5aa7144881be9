"""The breaks of mutants.toml: what mutations.py applies, one at a time."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Mutant(NamedTuple):
    """One break: a text that occurs once in a file of src/deepwide, and what replaces it."""

    file: str
    tests: tuple[str, ...]
    name: str
    old: str
    new: str
    review: bool  # of the kinds that a review from outside tried first
    finding: str = ""  # of that review, which the line holds: D1 to D22


DOCUMENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FINDINGS: dict[str, tuple[str, str]] = {name: (was, now) for name, (was, now) in DOCUMENT["findings"].items()}


def _read() -> tuple[Mutant, ...]:
    return tuple(
        Mutant(
            part["file"],
            tuple(part["tests"]),
            each["name"],
            each["old"],
            each["new"],
            each.get("review", False),
            each.get("finding", ""),
        )
        for part in DOCUMENT["files"]
        for each in part["breaks"]
    )


MUTANTS = _read()
