"""Tasks by name: those of this package, and those that other installed packages offer.

Another package offers a task under the entry-point group `deepwide.tasks`; the entry point is a class such as those
here, called with its parameters by name. A config can name a task, and only what is installed is ever loaded.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.settings import explain
from deepwide.tasks.task import Task

GROUP = "deepwide.tasks"
LANGUAGE = "language"
BUILT_IN: Mapping[str, str] = {
    "copying": "deepwide.tasks.sequences:Copying",
    "sorting": "deepwide.tasks.sequences:Sorting",
    "reversing": "deepwide.tasks.sequences:Reversing",
    "parity": "deepwide.tasks.classification:Parity",
    "majority": "deepwide.tasks.classification:Majority",
    "matching": "deepwide.tasks.classification:Matching",
}


def task_names() -> list[str]:
    """Every task that a config can name here."""
    return [LANGUAGE, *BUILT_IN, *sorted({entry.name for entry in entry_points(group=GROUP)} - BUILT_IN.keys())]


def make_task(name: str, parameters: Mapping[str, Any]) -> Task:
    """A task that reads no corpus, from its name and parameters; the complaint is one sentence.

    >>> make_task("sorting", {"lenght": 3})
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: there is no setting 'task.lenght': did you mean 'length'?
    """
    make = _maker(name)
    try:
        return make(**parameters)
    except ValidationError as error:
        model = make if isinstance(make, type) and issubclass(make, BaseModel) else BaseModel
        raise DeepwideError(explain(error, model, "task")) from None
    except TypeError as error:  # a class of another package that is not a pydantic model
        raise DeepwideError(f"task '{name}' does not accept {quoted(dict(parameters))}: {error}.") from None


@lru_cache(maxsize=64)
def _maker(name: str) -> Callable[..., Task]:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return cast(Callable[..., Task], getattr(import_module(module), attribute))
    offered = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not offered:
        raise DeepwideError(f"there is no task {quoted(name)}: {did_you_mean(name[:80], task_names())}")
    try:
        return cast(Callable[..., Task], offered[0].load())
    except Exception as error:  # whatever importing somebody else's module raises
        raise DeepwideError(
            f"task '{name}' of {offered[0].value} cannot be loaded: {type(error).__name__}: {error}."
        ) from None
