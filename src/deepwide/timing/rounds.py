"""The rounds of a measurement as they are finished: kept in a file, so that an interrupted one resumes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.files import read_json, write_text
from deepwide.quantities import Floats

FORMAT = "deepwide rounds of a machine 1"
LARGEST_BYTES = 8 << 20


@dataclass
class Rounds:
    """What was measured so far: seconds of every shape and case per round, and what the roofline needs."""

    settings: dict[str, Any]  # rounds of other settings are not continued
    path: Path | None = None
    seconds: list[Floats] = field(default_factory=list)  # shape × case
    took: list[float] = field(default_factory=list)  # seconds of each round as a whole
    peak: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, settings: dict[str, Any], path: Path | None, cells: tuple[int, int]) -> "Rounds":
        """Those that the file has, if they are of the same settings; else none. The file is written at once."""
        settings = json.loads(json.dumps(settings))
        rounds = cls(settings, path)
        if path is not None and path.exists():
            document = read_json(path, "rounds of a machine", most=LARGEST_BYTES)
            if not isinstance(document, Mapping) or document.get("format") != FORMAT:
                raise DeepwideError(f"{path} is in the way: rounds are kept there, and it is something else.")
            if document.get("settings") == settings:
                rounds = cls._read(settings, path, document, cells)
        rounds.keep()  # a folder that cannot be written to is found out before anything is measured
        return rounds

    @classmethod
    def _read(
        cls, settings: dict[str, Any], path: Path, document: Mapping[str, Any], cells: tuple[int, int]
    ) -> "Rounds":
        try:
            seconds = [np.array(each, dtype=float).reshape(cells) for each in document["seconds"]]
            took = [float(each) for each in document["took"]]
            peak, rate = float(document["peak"]), float(document["rate"])
            sound = all(np.all(np.isfinite(each) & (each > 0)) for each in seconds) and len(took) == len(seconds)
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DeepwideError(f"{path} does not hold whole rounds of a machine: delete it to measure anew.")
        return cls(settings, path, seconds, took, peak, rate)

    def add(self, seconds: Floats, took: float, peak: float, rate: float) -> None:
        """One more round."""
        self.seconds.append(seconds)
        self.took.append(took)
        self.peak, self.rate = max(self.peak, peak), max(self.rate, rate)
        self.keep()

    def keep(self) -> None:
        """Write the file, if there is one."""
        if self.path is None:
            return
        document = {
            "format": FORMAT,
            "settings": self.settings,
            "peak": self.peak,
            "rate": self.rate,
            "took": self.took,
            "seconds": [each.tolist() for each in self.seconds],
        }
        write_text(self.path, json.dumps(document) + "\n")
