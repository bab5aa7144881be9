"""Where laws are found: the published ones by name, a fitted one in a JSON file."""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.files import write_text
from deepwide.laws.law import AnyLaw, Law, TransitionLaw

LARGEST_BYTES = 2**20
FORMAT = "deepwide-law-1"


@cache
def published_laws() -> dict[str, Law]:
    """Every published law by name, the default first."""
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    return {law.name: law for law in TypeAdapter(list[AnyLaw]).validate_json(text)}


def transition_law() -> TransitionLaw:
    """Levine et al. 2021: the default, and the scale on which the cost of a wrong depth was measured."""
    law = published_laws()["levine"]
    assert isinstance(law, TransitionLaw)
    return law


def find_law(name: str | Path | Law | None = None) -> Law:
    """A published law's name, or the path of a law saved as JSON."""
    if isinstance(name, Law):
        return name
    if name is None:
        return transition_law()
    laws = published_laws()
    if str(name) in laws:
        return laws[str(name)]
    path = Path(name)
    if path.suffix == ".json" or _is_file(path):
        return load_law(path)
    raise DeepwideError(
        f"no law '{str(name)[:60]}', nor a law's JSON file of that name: {did_you_mean(str(name)[:60], laws)}"
    )


def depth_law(name: str | Path | Law | None = None) -> Law:
    """`find_law`, refusing a law that names no depth."""
    law = find_law(name)
    if not law.names_a_depth:
        able = [other.name for other in published_laws().values() if other.names_a_depth]
        raise DeepwideError(
            f"the law '{law.name}' names no depth ({law.details or law.about}); use one of {', '.join(able)}."
        )
    return law


def load_law(path: str | Path) -> Law:
    """A law saved by `save_law` (or by `deepwide fit`)."""
    path = Path(path)
    if not _is_file(path):
        raise DeepwideError(f"there is no law at {str(path)[:200]}.")
    if path.stat().st_size > LARGEST_BYTES:
        raise DeepwideError(f"{path} is too large for a law.")
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise DeepwideError(f"cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise DeepwideError(f"{path} is not JSON: {str(error)[:120]}.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a deepwide law: it must be an object with "format": "{FORMAT}".')
    try:
        law: Law = TypeAdapter(AnyLaw).validate_python(document.get("law"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "law"
        raise DeepwideError(f"{path} is not a law deepwide can read: {where}: {_brief(first['msg'])}.") from None
    return law


def save_law(law: Law, path: str | Path) -> Path:
    """Save a law where `--law` can find it."""
    return write_text(path, json.dumps({"format": FORMAT, "law": law.model_dump(mode="json")}, indent=2) + "\n")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long to be one
        return False


def _brief(message: str) -> str:
    """The start and the end of a message that quotes what it found, however long that is."""
    return message if len(message) <= 240 else f"{message[:60]} … {message[-160:]}"
