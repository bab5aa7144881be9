"""What every fit is: parameters with their covariance and resamples, residuals, warnings; text, JSON and back."""

import json
import math
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from deepwide.answers import Interval
from deepwide.arrays import Floats
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.files import write_text
from deepwide.fitting.regression import Regression
from deepwide.fitting.runs import Counting, Runs
from deepwide.laws import Law

FORMAT = "deepwide-fit-1"
LARGEST_BYTES = 2**26
UNEQUAL = 0.01  # noises as different as this by chance in one sweep of a hundred are said to be so
How = Literal["likelihood", "bootstrap"]


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


class Fit(BaseModel):
    """Parameters in the order of `names`, their covariance from the likelihood, and their bootstrap resamples.

    Intervals are 95%: the likelihood's by Student's t with `dof` degrees of freedom, the bootstrap's by percentiles.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = ""
    runs: int = Field(ge=1)
    diverged: int = Field(default=0, ge=0)
    counting: Literal["block", "total"] = "block"
    names: tuple[str, ...]
    values: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    dof: int = Field(ge=0)
    resamples: tuple[tuple[float, ...], ...] = ()  # one row a resample
    residuals: tuple[Residual, ...] = ()
    noise: float  # standard deviation of ln loss about the fit
    seed_noise: float | None = None  # of it, what differs between seeds of one shape; None where none was repeated
    noise_by_depth: dict[int, float] | None = None  # where every depth was given its own
    params_range: tuple[float, float]
    depth_range: tuple[float, float] | None = None
    embedding_share: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()  # what was done to the data
    warnings: tuple[str, ...] = ()  # what a careful reader must know

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        k = len(self.names)
        rows = (self.values, self.covariance, *self.covariance, *self.resamples)
        if any(len(row) != k for row in rows):
            raise ValueError(f"there are {k} parameters, but values, covariance or resamples have another number")
        return self

    def __getitem__(self, name: str) -> float:
        return self.values[self._index(name)]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise DeepwideError(f"this fit has no parameter '{name}': {did_you_mean(name, self.names)}")
        return self.names.index(name)

    @property
    def standard_errors(self) -> dict[str, float]:
        """By name, from the likelihood."""
        return {n: math.sqrt(max(0.0, self.covariance[i][i])) for i, n in enumerate(self.names)}

    def interval(self, name: str, how: How = "likelihood") -> Interval:
        """The parameter with its 95% interval; without limits where there is nothing to compute them from."""
        if how not in ("likelihood", "bootstrap"):
            raise DeepwideError(f"an interval is by likelihood or bootstrap, not '{str(how)[:40]}'.")
        i = self._index(name)
        value = self.values[i]
        if how == "bootstrap":
            draws = np.array([row[i] for row in self.resamples])
            if len(draws) < 20:
                return Interval(value)
            low, high = np.percentile(draws, [2.5, 97.5])
            return Interval(value, float(low), float(high))
        if self.dof < 1:
            return Interval(value)
        error = t95(self.dof) * self.standard_errors[name]
        return Interval(value, value - error, value + error)

    def intervals(self, how: How = "likelihood") -> dict[str, Interval]:
        """Every parameter's."""
        return {name: self.interval(name, how) for name in self.names}

    @abstractmethod
    def law(self) -> Law | None:
        """What `deepwide plan --law` can use, None where the data do not give one."""

    def _origin(self) -> dict[str, Any]:
        """What every law made of a fit says about where it comes from."""
        return {
            "name": "fitted",
            "citation": f"deepwide fit {self.source}",
            "status": "fitted on your runs",
            "tested": f"{self.runs} runs",
            "fitted_block_params": self.params_range if self.counting == "block" else None,
        }

    @abstractmethod
    def headline(self) -> list[str]:
        """What the fit says, in a few sentences."""

    def summary(self) -> str:
        """The fit as text: what it says, its parameters with errors, what to beware of."""
        lines = [*self.headline(), ""]
        width = max((len(n) for n in self.names), default=4)
        if self.names:
            lines.append(
                f"{'':{width}}  {'estimate':>11} {'std. error':>11} {'95% likelihood':>25} {'95% bootstrap':>25}"
            )
        for name in self.names:
            error = f"{self.standard_errors[name]:.3g}" if self.dof else "–"
            ranges = [_range(self.interval(name, how)) for how in ("likelihood", "bootstrap")]
            lines.append(f"{name:{width}}  {self[name]:>11.5g} {error:>11} {ranges[0]:>25} {ranges[1]:>25}")
        count = f"{self.runs} runs" + (f", {self.diverged} of them diverged" if self.diverged else "")
        noise = each_noise(self.noise_by_depth) if self.noise_by_depth else f"{100 * self.noise:.2g}% of loss"
        if self.seed_noise is not None:
            noise += f" ({100 * self.seed_noise:.2g}% between seeds)"
        lines += [*([""] if self.names else []), f"{count}; noise {noise}; {len(self.resamples)} resamples"]
        if self.embedding_share is not None:
            low, high = self.embedding_share
            lines.append(f"Embeddings are {100 * low:.2g} to {100 * high:.2g}% of the parameters.")
        lines += [f"Warning: {each}" for each in self.warnings]
        lines += [f"Note: {each}" for each in self.notes]
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Write the fit as JSON; `load_fit` reads it back."""
        document = {"format": FORMAT, "fit": self.model_dump(mode="json")}
        return write_text(path, json.dumps(document, allow_nan=False) + "\n")


def check_noise(noise: str) -> None:
    """Refuse a word that says nothing about the noise."""
    if noise not in ("same", "depth"):
        raise DeepwideError(f"noise is the same for all runs or each depth's own: same or depth, not {quoted(noise)}.")


def told_noise(noises: dict[int, float], regression: Regression) -> list[str]:
    """Warnings: of depths whose runs cannot tell their own noise, or of depths whose noises are not the same."""
    if regression.own_noise:
        few = [str(depth) for depth, dof in zip(noises, regression.dofs, strict=True) if dof < 1]
        if len(few) == len(noises):
            raise DeepwideError("no depth was trained at enough sizes to tell its own noise: leave it the same.")
        words = f"depth {joined(few)} cannot tell its own noise from so few sizes: it is given that of all"
        return [words] if few else []
    if regression.unequal > UNEQUAL:
        return []
    return [f"depths scatter differently (noise {each_noise(noises)}): errors are wrong unless you use --noise depth"]


def each_noise(noises: dict[int, float]) -> str:
    """The noise of each depth, in words."""
    shares = ", ".join(f"{100 * noise:.2g}" for noise in noises.values())
    return f"{shares}% of loss at {joined([str(depth) for depth in noises])} layers"


def check_positive(**numbers: float | None) -> None:
    """Refuse what is no size: a list, a number that is not above 0."""
    for name, value in numbers.items():
        if value is None:
            continue
        if np.ndim(value):
            raise DeepwideError(
                f"predict takes one {name} at a time: loop over them, or use fit.curves.loss for sizes."
            )
        if not (value > 0 and math.isfinite(value)):
            raise DeepwideError(f"{name} must be above 0, not {value:g}.")


def t95(dof: float) -> float:
    """Student's two-sided 95% quantile."""
    from scipy.special import stdtrit

    return float(stdtrit(dof, 0.975))


def rows(matrix: Any) -> tuple[tuple[float, ...], ...]:
    """A matrix as the tuples that a frozen model keeps."""
    return tuple(tuple(float(x) for x in row) for row in np.asarray(matrix))


def residual_table(
    runs: Runs, counting: Counting, y: Floats, fitted: Floats, residual: Floats, leverage: Floats
) -> tuple[Residual, ...]:
    """One record a run, for pictures and for readers; y and fitted are of ln loss."""

    def known(column: Floats) -> list[float | None]:
        return [None if math.isnan(x) else x for x in column.tolist()]

    sizes = runs.size(counting).tolist()
    shapes = (known(runs.depth), known(runs.width), sizes, known(runs.tokens), runs.seed.tolist())
    found = (np.exp(y).tolist(), np.exp(fitted).tolist(), residual.tolist(), leverage.tolist(), runs.diverged.tolist())
    return tuple(Residual(*row) for row in zip(*shapes, *found, strict=True))


def share_range(shares: Floats) -> tuple[float, float] | None:
    """Least and largest, None when unknown."""
    known: Floats = shares[~np.isnan(shares)]
    return (float(known.min()), float(known.max())) if known.size else None


def _range(interval: Interval) -> str:
    return "–" if interval.low is None else f"{interval.low:.5g} to {interval.high:.5g}"


def read_document(path: str | Path) -> Any:
    """The object under "fit" in a file that `save` wrote."""
    path = Path(path)
    if not path.is_file():
        raise DeepwideError(f"there is no fit at {str(path)[:200]}.")
    if path.stat().st_size > LARGEST_BYTES:
        raise DeepwideError(f"{path} is too large for a fit.")
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DeepwideError(f"{path} is not JSON: {str(error)[:120]}.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a fit: it must be an object with "format": "{FORMAT}".')
    return document.get("fit")


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
