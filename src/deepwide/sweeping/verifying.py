"""`verify`: every byte of every run in a folder, compared with what was written."""

from pathlib import Path
from typing import Any

from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.run import local_path, run_folders, scrub


class Damage(Answer):
    """One file that is not known to be as it was written; `kind` is damaged, unchecked or leftover."""

    run: str
    file: str
    kind: str
    what: str
    remedy: str = ""


class Verification(Answer):
    """What a scrub of a folder of runs found."""

    folder: str
    runs: int
    whole: int  # runs of which nothing is damaged
    findings: tuple[Damage, ...] = ()

    @property
    def damaged(self) -> list[Damage]:
        """What needs a person."""
        return [finding for finding in self.findings if finding.kind == "damaged"]

    def rows(self) -> list[dict[str, Any]]:
        """One row per finding."""
        return [finding.model_dump(mode="json") for finding in self.findings]


def verify(folder: Path | str) -> Verification:
    """Read every byte of every run in a folder of runs (or of one run): what is damaged, and what to do about it.

    Writes nothing, and may be asked while workers run: what they are writing just now is not damage.
    """
    home = local_path(folder, "the folder of runs")
    if not home.is_dir():
        raise DeepwideError(f"there is no folder {home}.")
    paths = run_folders(home)
    if not paths:
        raise DeepwideError(f"{home} holds no runs: name the folder of a sweep's runs, or of one run.")
    findings = [Damage(**vars(finding)) for path in paths for finding in scrub(path.absolute())]
    broken = {finding.run for finding in findings if finding.kind == "damaged"}
    return Verification(folder=str(home), runs=len(paths), whole=len(paths) - len(broken), findings=tuple(findings))
