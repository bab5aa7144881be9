"""Where laws are found: the published ones by name, a fitted one in a JSON file; compute laws beside laws of depth.

A compute law goes from training FLOPs to a size and a number of tokens: the least L(N, D) = E + A/N^α + B/D^β at
C = 6·N·D. N is the total number of parameters, embeddings included, as in the Chinchilla paper's own table.
"""

import functools
import json
import math
import operator
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.laws.kinds import (
    AspectLaw,
    CeilingLaw,
    IndifferentLaw,
    JointLaw,
    NarrowerLaw,
    PowerLaw,
    RidgeLaw,
    SurfaceLaw,
    TransitionLaw,
    VocabularyLaw,
)
from deepwide.laws.law import Bowl, DepthLaw, Law
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LARGEST_BYTES = 2**20
FORMAT = "deepwide-law-1"
COMPUTE_FORMAT = "deepwide-compute-law-1"
SIZES = (1e3, 1e16)  # block parameters that a law may be asked about
BEYOND_THE_FIT = 1e3  # a fitted law need only make sense this factor beyond the sizes it was fitted on
DEPTHS = (1e-3, 1e6)  # layers that a law may answer with

KINDS: tuple[type[Law], ...] = (
    TransitionLaw, RidgeLaw, JointLaw, SurfaceLaw, AspectLaw, PowerLaw, IndifferentLaw, NarrowerLaw,
    CeilingLaw, VocabularyLaw,
)  # fmt: skip


@cache
def published_laws() -> dict[str, Law]:
    """Every published law by name, the default first."""
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    kinds = {kind.model_fields["kind"].default: kind for kind in KINDS}
    # Our own file needs no validation (a test does it): the schema of all laws would cost a plan 15 ms.
    laws = [kinds[fields["kind"]].model_construct(**_as_tuples(fields)) for fields in json.loads(text)]
    return {law.name: law for law in (laws[0], pooled_law(), *laws[1:])}


@cache
def pooled_law() -> RidgeLaw:
    """The best depth in all public sets together, with what leaving it costs: written by `benchmarks.evidence`."""
    text = files(__package__).joinpath("pooled.json").read_text(encoding="utf-8")
    fields = _as_tuples(json.loads(text)["law"])
    return RidgeLaw.model_construct(**fields | {"bowl": Bowl.model_construct(**fields["bowl"])})


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_tuples(inner) for name, inner in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def transition_law() -> TransitionLaw:
    """Levine et al. 2021: the default, and the scale on which the best depths of sets are measured."""
    law = published_laws()["levine"]
    assert isinstance(law, TransitionLaw)
    return law


def rival_laws(chosen: Law) -> tuple[Law, ...]:
    """The chosen law and all other published ones; a fitted law with a published name replaces none of them."""
    return (chosen, *(law for law in published_laws().values() if law != chosen))


def find_law(name: str | Path | Law | None = None) -> Law:
    """A published law's name, or the path of a law saved as JSON."""
    if isinstance(name, Law):
        return name
    if name is None:
        return transition_law()
    return _find(name, published_laws())


def _find(name: str | Path, suggested: Iterable[str]) -> Law:
    """A law by its name or path; where there is none, the nearest of the suggested names is offered."""
    if not isinstance(name, str | Path):
        raise DeepwideError(f"a law is a name, a path or a Law, not {quoted(name)}.")
    laws = published_laws()
    if str(name) in laws:
        return laws[str(name)]
    path = Path(name)
    if path.suffix == ".json" or _is_file(path):
        return load_law(path)
    raise DeepwideError(
        f"no law '{str(name)[:60]}', nor a law's JSON file of that name: {did_you_mean(str(name)[:60], suggested)}"
    )


def depth_law(name: str | Path | Law | None = None) -> DepthLaw:
    """`find_law`, refusing a law that predicts no depth, or an impossible one."""
    able = [other.name for other in published_laws().values() if isinstance(other, DepthLaw)]
    law = find_law(name) if name is None or isinstance(name, Law) else _find(name, able)
    if not isinstance(law, DepthLaw):
        raise DeepwideError(
            f"the law '{law.name}' predicts no depth ({law.details or law.about}); use one of {', '.join(able)}."
        )
    if law not in published_laws().values():
        check_depths(law)
    return law


def check_depths(law: DepthLaw) -> None:
    """Refuse a law whose depths are not usable numbers of layers at the sizes it may be asked about."""
    low, high = SIZES
    if law.fitted_block_params is not None:
        low = min(max(low, law.fitted_block_params[0] / BEYOND_THE_FIT), high)
        high = max(min(high, law.fitted_block_params[1] * BEYOND_THE_FIT), low)
    N = np.geomspace(low, high, 27)
    with np.errstate(all="ignore"):
        L = law.depth(N).value
    wrong = np.flatnonzero(~((DEPTHS[0] <= L) & (DEPTHS[1] >= L)))
    if wrong.size:
        raise DeepwideError(
            f"the law '{law.name}' gives {L[wrong[0]]:.3g} layers at {show_count(N[wrong[0]])} block parameters: "
            f"a usable law stays between {DEPTHS[0]:g} and {DEPTHS[1]:g}."
        )


@cache
def any_law() -> "TypeAdapter[Law]":
    """What validates a law of any kind; built when a file is read, since published laws do not need it."""
    from pydantic import Field, TypeAdapter

    union = functools.reduce(operator.or_, KINDS)
    return TypeAdapter(Annotated[union, Field(discriminator="kind")])  # type: ignore[arg-type]


def load_law(path: str | Path) -> Law:
    """A law saved by `save_law` (or by `deepwide fit`)."""
    from pydantic import ValidationError

    from deepwide.files import read_json  # a plan does not wait for it

    path = Path(path)
    if not _is_file(path):
        raise DeepwideError(f"there is no law at {str(path)[:200]}.")
    try:
        document = read_json(path, "a law", most=LARGEST_BYTES)
    except OSError as error:
        raise DeepwideError(f"cannot read {path}: {error.strerror}.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a law: it must be an object with "format": "{FORMAT}".')
    try:
        return any_law().validate_python(document.get("law"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "law"
        raise DeepwideError(f"{path} is not a law deepwide can read: {where}: {_brief(first['msg'])}.") from None


def save_law(law: Law, path: str | Path) -> Path:
    """Save a law as a JSON file that `find_law` reads."""
    from deepwide.files import write_text  # a plan does not wait for it

    if not isinstance(law, Law):
        raise DeepwideError(f"only a Law is saved as one, not {quoted(law)}.")
    return write_text(path, json.dumps({"format": FORMAT, "law": law.model_dump(mode="json")}, indent=2) + "\n")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long to be one, or with a NUL in it
        return False


def _brief(message: str) -> str:
    """The start and the end of a message that quotes its input, however long that is."""
    return message if len(message) <= 240 else f"{message[:60]} … {message[-160:]}"


LARGEST_SCALE = 1e40  # of the best size at 6 FLOPs, where those of real fits are near 1


class ComputeLaw(NamedTuple):
    """A fitted loss in parameters and tokens."""

    citation: str
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def optimum(self, train_flops: float) -> tuple[float, float]:
        """Parameters and tokens of least loss for C = 6·N·D."""
        a, b = self.alpha, self.beta
        N = self._scale * (train_flops / 6) ** (b / (a + b))
        return N, train_flops / (6 * N)

    def flops_for(self, params: float) -> float:
        """The training FLOPs at which this many parameters are the optimum; infinite where no float can hold them."""
        a, b = self.alpha, self.beta
        try:
            return float(6 * (params / self._scale) ** ((a + b) / b))
        except OverflowError:
            return math.inf

    @property
    def has_optimum(self) -> bool:
        """Whether there is a least loss, at a size that any fit of real runs could have."""
        return min(self[2:]) > 0 and 1 / LARGEST_SCALE < self._scale < LARGEST_SCALE

    @property
    def _scale(self) -> float:
        a, b = float(self.alpha), float(self.beta)
        try:
            return float((a * float(self.A) / (b * float(self.B))) ** (1 / (a + b)))
        except (OverflowError, ZeroDivisionError):
            return math.inf


COMPUTE_LAWS: Mapping[str, ComputeLaw] = {
    "epoch": ComputeLaw("Besiroglu et al. 2024 (Epoch), refit of Chinchilla", 1.8169, 482.01, 2085.43, 0.3478, 0.3658),
    "hoffmann": ComputeLaw("Hoffmann et al. 2022, as printed (rounded)", 1.69, 406.4, 410.7, 0.34, 0.28),
}


def compute_law(name: str | Path) -> ComputeLaw:
    """The compute law of that name, or one that `save_compute_law` (or a fitted surface) wrote to this path."""
    if name in COMPUTE_LAWS:
        return COMPUTE_LAWS[str(name)]
    path = Path(name)
    if path.suffix == ".json":
        return _load_compute_law(path)
    raise DeepwideError(f"no compute law '{str(name)[:60]}': {did_you_mean(str(name), COMPUTE_LAWS)}")


def save_compute_law(law: ComputeLaw, path: str | Path) -> Path:
    """Save a compute law as a JSON file that `compute_law` reads."""
    from deepwide.files import write_text  # a plan does not wait for it

    return write_text(path, json.dumps({"format": COMPUTE_FORMAT, "law": law._asdict()}, indent=2) + "\n")


def _load_compute_law(path: Path) -> ComputeLaw:
    from deepwide.files import read_json  # a plan does not wait for it

    document = read_json(path, "a compute law", most=2**20)
    if not isinstance(document, dict) or document.get("format") != COMPUTE_FORMAT:
        raise DeepwideError(f'{path} is not a compute law: it must be an object with "format": "{COMPUTE_FORMAT}".')
    law = document.get("law")
    fields: dict[str, Any] = law if isinstance(law, dict) else {}
    given = [fields.get(name) for name in ComputeLaw._fields[1:]]
    numbers = [x for x in given if isinstance(x, int | float) and not isinstance(x, bool)]
    if len(numbers) < len(given) or not all(0 < x <= sys.float_info.max for x in numbers):
        raise DeepwideError(f"{path} is not a compute law: E, A, B, alpha and beta must be numbers above 0.")
    read = ComputeLaw(str(fields.get("citation", path))[:200], *map(float, numbers))
    if not read.has_optimum:
        raise DeepwideError(
            f"{path} is not a compute law: its A, B, alpha and beta put the least loss at no real size."
        )
    return read
