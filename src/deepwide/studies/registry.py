"""Which studies there are: our own, and those of installed packages through the entry-point group `deepwide.studies`.

Adding a study to deepwide is adding a file here with a class that subclasses `Study`; nothing else changes.
"""

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.studies.study import Study

GROUP = "deepwide.studies"


@cache
def studies() -> dict[str, Study]:
    """Every study by name."""
    by_name: dict[str, Study] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for study in _studies_in(import_module(f"deepwide.studies.{module.name}")):
            by_name[study.name] = study
    for entry in entry_points(group=GROUP):
        study = _offered(entry)
        by_name.setdefault(study.name, study)
    return dict(sorted(by_name.items()))


def find_study(name: str) -> Study:
    """A study by its name."""
    known = studies()
    if name not in known:
        raise DeepwideError(f"there is no study {quoted(name)}: {did_you_mean(name[:80], known)}")
    return known[name]


def _studies_in(module: object) -> list[Study]:
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Study)]
    own = [value for value in classes if value.__module__ == getattr(module, "__name__", "")]
    return [value() for value in own if not inspect.isabstract(value)]


def _offered(entry: EntryPoint) -> Study:
    """The study of another package."""
    try:
        loaded = entry.load()
        study = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:  # whatever importing somebody else's module raises
        raise DeepwideError(
            f"study '{entry.name}' of {entry.value} cannot be loaded: {type(error).__name__}: {error}."
        ) from None
    if not isinstance(study, Study):
        raise DeepwideError(f"study '{entry.name}' of {entry.value} cannot be used: it is not a Study.")
    return study
