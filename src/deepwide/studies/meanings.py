"""What the settings of a study mean: the comment behind a field, or what a name means in every study."""

import inspect
import json
import re
import textwrap
from typing import Any

from deepwide.settings import Part
from deepwide.studies.study import Study

# In every study that has the setting and does not say otherwise.
COMMON = {
    "batch": "sequences per step",
    "data": "folder of the public data, or the corpus that is trained on",
    "depth": "layers of the networks",
    "depths": "layers of the networks, each trained",
    "examples": "sequences of an evaluation",
    "first_seed": "the first seed; others count up from it",
    "heads": "attention heads per layer",
    "initialisation": "how weights are initialised, as for a model",
    "length": "tokens of a sequence",
    "lr": "learning rate",
    "networks": "untrained networks of each kind",
    "positions": "how positions are encoded, as for a model",
    "resamples": "bootstrap resamples",
    "seeds": "seeds, one network each",
    "steps": "training steps of each network",
    "symbols": "different tokens",
    "tokens": "training tokens of each network",
    "vocab": "vocabulary",
    "warmup": "steps of learning-rate warm-up",
    "width": "width of the networks",
    "widths": "widths of the networks, each trained",
}
LONGEST_VALUE = 60  # letters of a value that a table shows
FIELD = re.compile(r"^    (\w+): .*?(?:  # (.*))?$")


def meanings(model: type[Part]) -> dict[str, str]:
    """A line about each setting; nothing where nobody has written one."""
    written = COMMON | _comments(model)
    return {name: field.description or written.get(name, "") for name, field in model.model_fields.items()}


def setting_rows(study: Study) -> list[dict[str, str]]:
    """One row per setting: its name, its value in each preset as it is written in a change, what it means."""
    values = {preset: study.settings(preset).model_dump(mode="json") for preset in study.presets}
    return [
        {"setting": name, **{preset: _written(values[preset][name]) for preset in values}, "meaning": meaning}
        for name, meaning in meanings(study.Settings).items()
    ]


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if value is not None else "none"
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _comments(model: type[Part]) -> dict[str, str]:
    """The comment that ends the line of a field, in the class and in those that it inherits from."""
    comments: dict[str, str] = {}
    for each in reversed(model.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(each)) if issubclass(each, Part) else ""
        except (OSError, TypeError):  # typed into a session
            continue
        matches = (FIELD.match(line) for line in source.splitlines())
        comments |= {match[1]: match[2].rstrip(",") for match in matches if match and match[2]}
    return comments
