"""What every fit is: parameters with their covariance and resamples, residuals, notes; text, tables, JSON and back."""

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, SerializationInfo, SerializerFunctionWrapHandler, model_serializer, model_validator

from deepwide.answers import Answer, Interval, Note, Verdict, to_pandas, to_polars
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.files import write_text
from deepwide.fitting.regression import t95
from deepwide.fitting.runs import FEWEST, Counting, Runs
from deepwide.fitting.summary import summarise
from deepwide.fitting.words import note
from deepwide.laws import DepthLaw, save_law
from deepwide.quantities import Floats

if TYPE_CHECKING:
    import pandas
    import polars

FORMAT = "deepwide-fit-1"
By = Literal["likelihood", "sandwich", "posterior", "bootstrap"]
Table = Literal["coefficients", "groups", "runs", "crossings"]
# What a dump says besides the fields; computed again when a fit is loaded.
DERIVED = ("intervals", "headline", "resample_count", "verdict", "law", "n_transition")


class Residual(NamedTuple):
    """One run as the fit sees it. `residual` is ln loss − ln fitted; for a diverged run `loss` is its lower bound."""

    depth: float | None  # None where the runs do not say
    width: float | None
    params: float
    tokens: float | None
    seed: int
    loss: float
    fitted: float
    residual: float
    leverage: float
    diverged: bool
    total: float | None = None  # parameters


@dataclass(frozen=True)
class Prediction(Interval):
    """A predicted loss with its 95% interval, and what to beware of: that it lies outside the runs."""

    notes: tuple[Note, ...] = ()


class Fit(Answer):
    """Parameters in the order of `names`, their covariance, and their bootstrap resamples.

    Intervals are 95%: by Student's t with `dof` degrees of freedom from the covariance (`estimated_by` says what that
    is estimated by), or by the percentiles of the bootstrap.
    """

    estimated_by: ClassVar[By] = "likelihood"

    kind: str
    source: str = ""
    runs: int = Field(ge=1)
    diverged: int = Field(default=0, ge=0)
    counting: Counting = "block"
    names: tuple[str, ...]
    values: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    dof: int = Field(ge=0)
    resamples: tuple[tuple[float, ...], ...] = ()  # one row per resample
    residuals: tuple[Residual, ...] = ()
    noise: float  # standard deviation of ln loss about the fit
    seed_noise: float | None = None  # the part of it that differs between seeds; None where no shape was repeated
    noise_by_depth: dict[int, float] | None = None  # where every depth was given its own
    params_range: tuple[float, float]
    depth_range: tuple[float, float] | None = None
    tokens_range: tuple[float, float] | None = None
    embedding_share: tuple[float, float] | None = None
    notes: tuple[Note, ...] = ()  # what was done to the data
    warnings: tuple[Note, ...] = ()  # what a careful reader must know

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, given: Any) -> Any:
        """Fits saved before notes had codes have sentences; what a dump derives is left out."""
        if not isinstance(given, Mapping):
            return given
        fields = {name: value for name, value in given.items() if name not in DERIVED}
        for name in ("notes", "warnings"):
            texts = fields.get(name)
            if isinstance(texts, list | tuple):
                fields[name] = tuple(Note("unknown", text) if isinstance(text, str) else text for text in texts)
        return fields

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        k = len(self.names)
        rows = (self.values, self.covariance, *self.covariance, *self.resamples)
        if any(len(row) != k for row in rows):
            raise ValueError(f"there are {k} parameters, but values, covariance or resamples have another number")
        return self

    @model_serializer(mode="wrap")
    def _with_derived(self, fields: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        plain: dict[str, Any] = fields(self)
        return plain if (info.context or {}).get("fields only") else plain | self._derived()

    def _derived(self) -> dict[str, Any]:
        """What a reader of the JSON wants besides the fields."""
        law = self.law()
        return {
            "intervals": {
                by: {name: [i.low, i.high] for name, i in self.intervals(by).items()} for by in self.interval_kinds
            },
            "headline": self.headline(),
            "resample_count": len(self.resamples),
            "verdict": self.verdict().model_dump(mode="json"),
            "law": law.model_dump(mode="json") if law else None,
        }

    def noise_elsewhere(self) -> str:
        """How the noise differs from the one that is stated, in words."""
        return ""

    def __getitem__(self, name: str) -> float:
        return self.values[self._index(name)]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise DeepwideError(f"this fit has no parameter '{name}': {did_you_mean(name, self.names)}")
        return self.names.index(name)

    @property
    def interval_kinds(self) -> tuple[By, ...]:
        """By what intervals are estimated: a posterior's draws need no bootstrap beside them."""
        return (self.estimated_by,) if self.estimated_by == "posterior" else (self.estimated_by, "bootstrap")

    @property
    def standard_errors(self) -> dict[str, float]:
        """By name, from the covariance."""
        return {n: math.sqrt(max(0.0, self.covariance[i][i])) for i, n in enumerate(self.names)}

    def interval(self, name: str, by: By | None = None) -> Interval:
        """The parameter with its 95% interval; without limits where there is nothing to compute them from."""
        if by not in (None, *self.interval_kinds):
            raise DeepwideError(f"an interval is by {' or '.join(self.interval_kinds)}, not '{str(by)[:40]}'.")
        i = self._index(name)
        value = self.values[i]
        if by == "bootstrap" or (self.estimated_by == "posterior" and len(self.resamples) >= FEWEST):
            draws = np.array([row[i] for row in self.resamples])
            if len(draws) < FEWEST:
                return Interval(value)
            low, high = np.percentile(draws, [2.5, 97.5])
            return Interval(value, float(low), float(high))
        if self.dof < 1:
            return Interval(value)
        error = t95(self.dof) * self.standard_errors[name]
        return Interval(value, value - error, value + error)

    def intervals(self, by: By | None = None) -> dict[str, Interval]:
        """Every parameter's."""
        return {name: self.interval(name, by) for name in self.names}

    @abstractmethod
    def law(self) -> DepthLaw | None:
        """The law that `deepwide.plan` can use, None where the data do not give one."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """What the fit is asked about, by which rule it is judged, and the outcome: seen, not seen or undecided."""

    @abstractmethod
    def headline(self) -> list[str]:
        """What the fit says, in a few sentences."""

    @abstractmethod
    def resampled(self) -> dict[str, Floats]:
        """What a reader asks about: by name the estimate, then its resamples. Resamples without it are left out."""

    def summary(self, hints: Mapping[str, str] | None = None) -> str:
        """The fit as text: what it says, its parameters with errors, what to beware of.

        `hints` adds words to a note by its code, for example the option that changes it.
        """
        return summarise(self, hints or {})

    def rows(self, table: Table = "coefficients") -> list[dict[str, Any]]:
        """A table of plain rows: coefficients, groups (all seeds of a shape), runs, or a transition's crossings."""
        if table == "coefficients":
            return [self._coefficient(name) for name in self.names]
        if table == "groups":
            return self._groups()
        if table == "runs":
            return [run._asdict() for run in self.residuals]
        raise DeepwideError(f"a {self.kind} fit has no table '{str(table)[:40]}': it has coefficients, groups, runs.")

    def to_polars(self, table: Table = "coefficients") -> "polars.DataFrame":
        """`rows` as a Polars data frame."""
        return to_polars(self.rows(table))

    def to_frame(self, table: Table = "coefficients") -> "polars.DataFrame":
        """The same as `to_polars`, by the name that other libraries give it."""
        return self.to_polars(table)

    def to_pandas(self, table: Table = "coefficients") -> "pandas.DataFrame":
        """`rows` as a pandas data frame."""
        return to_pandas(self.rows(table))

    def _coefficient(self, name: str) -> dict[str, Any]:
        interval = self.interval(name)
        bootstrap = self.interval(name, "bootstrap") if "bootstrap" in self.interval_kinds else Interval(self[name])
        error = self.standard_errors[name] if self.dof else None
        row: dict[str, Any] = {"name": name, "estimate": self[name], "standard_error": error}
        row |= {"low": interval.low, "high": interval.high}
        return row | {"bootstrap_low": bootstrap.low, "bootstrap_high": bootstrap.high}

    def _groups(self) -> list[dict[str, Any]]:
        groups: dict[tuple[float | None, ...], list[Residual]] = {}
        for run in self.residuals:
            groups.setdefault((run.depth, run.width, run.params, run.tokens), []).append(run)
        return [
            dict(zip(("depth", "width", "params", "tokens"), shape, strict=True))
            | {"runs": len(runs), "diverged": sum(run.diverged for run in runs)}
            | {name: float(np.mean([getattr(run, name) for run in runs])) for name in ("loss", "fitted", "residual")}
            | {"leverage": runs[0].leverage}
            for shape, runs in groups.items()
        ]

    def save(self, path: str | Path) -> Path:
        """Write the fit as JSON; `load_fit` reads it back."""
        document = {"format": FORMAT, "fit": self.model_dump(mode="json", context={"fields only": True})}
        return write_text(path, json.dumps(document, allow_nan=False) + "\n")

    def save_law(self, path: str | Path) -> Path:
        """Write the law as JSON, for `deepwide.find_law` and `deepwide.plan`."""
        law = self.law()
        if law is None:
            why = self.headline()[-1].removeprefix("No law: ").removesuffix(".")
            sentence = f"these runs give no law to save in {path}: {why}"
            if self._ridge_may_give_a_law():
                raise DeepwideError(f"{sentence}; a ridge with base power may give one.", remedies=("ridge",))
            raise DeepwideError(f"{sentence}.")
        return save_law(law, path)

    def _ridge_may_give_a_law(self) -> bool:
        """Whether another kind of fit has a chance where this one gives no law."""
        return False

    def _origin(self) -> dict[str, Any]:
        """What every law made of a fit says about where it comes from."""
        return {
            "name": "fitted",
            "citation": f"deepwide fit {self.source}",
            "status": "fitted on your runs",
            "tested": f"{self.runs} runs",
            "fitted_block_params": self.params_range if self.counting == "block" else None,
        }

    def _outside(self, *, size: float, depth: float, tokens: float | None = None) -> tuple[Note, ...]:
        """Notes for what lies outside the runs."""
        places = (
            ("outside-size", size, self.params_range),
            ("outside-depth", depth, self.depth_range),
            ("outside-tokens", tokens, self.tokens_range),
        )
        return tuple(
            note(code, value=value, low=ends[0], high=ends[1])
            for code, value, ends in places
            if value is not None and ends is not None and not ends[0] * 0.999 <= value <= ends[1] * 1.001
        )


def residual_table(
    runs: Runs, counting: Counting, y: Floats, fitted: Floats, residual: Floats, leverage: Floats
) -> tuple[Residual, ...]:
    """One record per run, for pictures and for readers; y and fitted are of ln loss."""

    def known(column: Floats) -> list[float | None]:
        return [None if math.isnan(x) else x for x in column.tolist()]

    sizes = runs.size(counting).tolist()
    shapes = (known(runs.depth), known(runs.width), sizes, known(runs.tokens), runs.seed.tolist())
    near = np.exp(np.clip(fitted, -700, 700))  # a fit to numbers without any order may be anything
    losses = (np.exp(y).tolist(), near.tolist(), residual.tolist(), leverage.tolist(), runs.diverged.tolist())
    return tuple(Residual(*row) for row in zip(*shapes, *losses, known(runs.total_params), strict=True))
