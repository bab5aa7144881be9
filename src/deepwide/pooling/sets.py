"""A set: what one group's runs say about the best depth, as a few derived numbers in one JSON file."""

import json
import math
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from deepwide.answers import Z95, Interval
from deepwide.errors import DeepwideError, quoted
from deepwide.files import read_json, write_text
from deepwide.laws import transition_law

FORMAT = "deepwide-evidence-1"
LARGEST_BYTES = 2**20
NAME = r"\w[\w .+-]*"
NAME_LENGTH, ABOUT_LENGTH, CITATION_LENGTH = 40, 200, 300
Scope = Literal["pooled", "small", "large"]
Span = tuple[PositiveFloat, PositiveFloat]


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Length(_Plain):
    """One length (or recipe) of a set by itself: for the table, not for pooling."""

    name: str = Field(min_length=1, max_length=80)
    tokens_per_param: PositiveFloat  # the geometric mean
    shapes: PositiveInt
    place: float | None  # ln(best depth / levine's depth); None: no best depth is seen at this length
    place_error: float | None
    log_curvature: float | None
    log_curvature_error: float | None


class EvidenceSet(_Plain):
    """Where a set has its best depth and how much leaving it costs, with the covariance of these.

    `place` is ln(best depth / levine's depth) at `centre_params` block parameters; `log_curvature` is of ln loss in
    ln depth, at `centre_tokens_per_param`; `token_slope` is how it changes per e-fold of tokens per parameter (None:
    one length). `covariance` is of these two or three.
    """

    name: str = Field(min_length=1, max_length=NAME_LENGTH, pattern=f"^{NAME}$")
    about: str = Field(max_length=ABOUT_LENGTH)
    citation: str = Field(default="", max_length=CITATION_LENGTH)
    command: str = Field(default="", max_length=1000)
    sha256: dict[str, str] = Field(default_factory=dict)
    runs: PositiveInt
    shapes: PositiveInt
    sizes: Span
    depths: Span
    tokens_per_param: Span
    shares: tuple[float, float]  # of embeddings in all parameters
    x_range: tuple[float, float]  # ln(depth / best depth) of its runs
    centre_params: PositiveFloat
    centre_tokens_per_param: PositiveFloat
    place: float = Field(gt=-10, lt=10)
    log_curvature: float = Field(gt=-20, lt=10)
    token_slope: float | None = Field(default=None, gt=-10, lt=10)
    covariance: tuple[tuple[float, ...], ...]
    drift: float = Field(gt=-5, lt=5)  # of the place, per e-fold of size
    drift_error: float = Field(ge=0)
    lengths: tuple[Length, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        k = 2 if self.token_slope is None else 3
        if len(self.covariance) != k or any(len(row) != k for row in self.covariance):
            raise ValueError(f"covariance must be of {k} numbers")
        matrix = np.array(self.covariance)
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix)[0] <= 0:
            raise ValueError("covariance must be symmetric and positive")
        return self

    @property
    def scope(self) -> Scope:
        """Whether the levine law, in whose depths the place is measured, was fitted at such sizes."""
        low, high = transition_law().fitted_block_params or (0.0, math.inf)
        return "small" if self.centre_params < low else "large" if self.centre_params > high else "pooled"

    @property
    def ratio(self) -> Interval:
        """Best depth / levine's depth."""
        return _exponential(self.place, self.covariance[0][0])

    @property
    def factor_2(self) -> Interval:
        """Extra loss, in percent, of half or twice the best depth."""
        return cost_of_factor(2, _exponential(self.log_curvature, self.covariance[1][1]))

    @property
    def slope(self) -> Interval | None:
        """The change of ln curvature per e-fold of tokens per parameter."""
        if self.token_slope is None:
            return None
        error = Z95 * math.sqrt(self.covariance[2][2])
        return Interval(self.token_slope, self.token_slope - error, self.token_slope + error)


def cost_of_factor(factor: float, curvature: Interval) -> Interval:
    """Extra loss, in percent, of so many times the best depth, by a parabola of this curvature."""
    limits = (curvature.value, curvature.low, curvature.high)
    value, low, high = (None if c is None else 100 * math.expm1(c * math.log(factor) ** 2) for c in limits)
    assert value is not None
    return Interval(value, low, high)


def _exponential(log: float, variance: float) -> Interval:
    error = Z95 * math.sqrt(variance)
    return Interval(math.exp(log), math.exp(log - error), math.exp(log + error))


def check_words(name: str, about: str, citation: str = "") -> None:
    """Refuse a name or words that no set can have, before anything is fitted."""
    if not isinstance(name, str) or not re.fullmatch(NAME, name) or len(name) > NAME_LENGTH:
        raise DeepwideError(
            f"a set's name is up to {NAME_LENGTH} letters, digits, spaces, dots and dashes, not {quoted(name)}."
        )
    for what, text, most in (("about", about, ABOUT_LENGTH), ("citation", citation, CITATION_LENGTH)):
        if len(text) > most:
            raise DeepwideError(f"{what} has {len(text)} characters: write at most {most}.")


@cache
def shipped_sets() -> tuple[EvidenceSet, ...]:
    """The sets that come with deepwide, by name."""
    folder = files(__package__).joinpath("sets")
    documents = (
        json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir() if path.name.endswith(".json")
    )
    sets = (EvidenceSet.model_validate(document["set"]) for document in documents)
    return tuple(sorted(sets, key=lambda each: each.name))


def load_set(path: str | Path) -> EvidenceSet:
    """A set that `save_set` wrote."""
    path = Path(path)
    if not path.is_file():
        raise DeepwideError(f"there is no set of evidence at {str(path)[:200]}.")
    document = read_json(path, "a set of evidence", most=LARGEST_BYTES)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a set of evidence: it must be an object with "format": "{FORMAT}".')
    try:
        return EvidenceSet.model_validate(document.get("set"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])[:80] or "set"
        reason = " ".join(first["msg"].split())[:160].rstrip(".")
        raise DeepwideError(f"{path} is not a set of evidence deepwide can read: {where}: {reason}.") from None


def save_set(each: EvidenceSet, path: str | Path) -> Path:
    """Write a set as JSON, its numbers to six digits."""
    plain = json.loads(each.model_dump_json(), parse_float=lambda text: float(f"{float(text):.6g}"))
    document: dict[str, Any] = {"format": FORMAT, "set": plain}
    return write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
