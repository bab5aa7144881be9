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


def _read() -> tuple[Mutant, ...]:
    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(
        Mutant(part["file"], tuple(part["tests"]), each["name"], each["old"], each["new"], each.get("review", False))
        for part in document["files"]
        for each in part["breaks"]
    )


MUTANTS = _read()
