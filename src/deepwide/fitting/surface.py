"""A loss surface from runs: Chinchilla's in parameters and tokens, or Gemstones' in width and depth as well.

  tokens  L = E + A/N^α + B/D^β                                            Hoffmann et al. 2022, approach 3
  shape   L = e^floor + e^w·width^−p + e^l·depth^−q + e^n·P^−r + e^t·T^−s  McLeish et al. 2025

N, P parameters, D, T tokens; all coefficients positive. The objective is the sum of Huber losses of
ln loss − ln prediction, with the corner at δ = 1e-3 as in Hoffmann et al.; Gemstones' printed surface has 1e-4.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from deepwide.answers import Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions, summary
from deepwide.fitting.answer import By, Fit, residual_table
from deepwide.fitting.huber import NEGLIGIBLE, Problem, best_fit, forward, minimise, sandwich
from deepwide.fitting.regression import as_tuples, check_resamples, span, span_known
from deepwide.fitting.runs import FEWEST, Counting, Runs, Terms, Unit, draws_of, spread, units_of
from deepwide.fitting.words import note
from deepwide.laws import ComputeLaw, SurfaceLaw, save_compute_law
from deepwide.quantities import ArrayLike, Floats, show_count

SIZES = {"tokens": ("params", "tokens"), "shape": ("width", "depth", "params", "tokens")}
ENOUGH = 1e-7  # of the objective: far less than one resample differs from another
NAMES = {
    "tokens": ("E", "A", "B", "alpha", "beta"),
    "shape": ("floor", *SIZES["shape"], *(f"{name}_exponent" for name in SIZES["shape"])),
}


NO_BLOCKS = 1e-6  # a share of the parameters this small is rounding
MATRICES, MOST_ROWS = (1e-3, 1e6), 1e9  # of a layer, in width²; of embeddings: what a SurfaceLaw takes
CLAIM = "the loss is a floor plus a falling power of each size"
RULE = (
    "seen if the 95% interval of every exponent lies above 0 (bootstrap, or the sandwich where there are no resamples) "
    "and every term makes a visible share of the loss; else undecided"
)


class ComputeOptimum(NamedTuple):
    """Parameters and tokens of least loss for a number of training FLOPs, with bootstrap intervals."""

    params: Interval
    tokens: Interval
    tokens_per_param: Interval
    notes: tuple[Note, ...] = ()


class SurfaceFit(Fit):
    """A fitted loss surface. `values` are E, A, B, α, β, or the logarithms of the coefficients and the exponents.

    The covariance is the sandwich estimate for an M-estimator, summed within the units that are resampled; where the
    fit passes near single runs, the bootstrap's interval is the one to trust.
    """

    estimated_by: ClassVar[By] = "sandwich"

    kind: Literal["surface"] = "surface"
    terms: Terms
    delta: float = Field(gt=0)
    unit: Unit
    objective: float
    evaluations: int  # passes over the data that the estimate took; a pass with derivatives counts as 3
    tokens_range: tuple[float, float]
    flops_range: tuple[float, float]
    tokens_per_param: float
    block_params_range: tuple[float, float] | None = None
    layer_matrices: float | None = None
    embedding_rows: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_cells(cls, given: Any) -> Any:
        """Fits saved before call a group of runs a cell."""
        if isinstance(given, Mapping) and given.get("unit") == "cell":
            return {**given, "unit": "group"}
        return given

    def predict(
        self, *, params: ArrayLike, tokens: ArrayLike, width: ArrayLike | None = None, depth: ArrayLike | None = None
    ) -> Floats:
        """The surface's loss; a surface in shape needs width and depth too."""
        sizes = [params, tokens] if self.terms == "tokens" else [width, depth, params, tokens]
        if any(size is None for size in sizes):
            raise DeepwideError("this surface is in width and depth too: give both.")
        floor, logs, exponents = self._logs(self.values)
        terms = (np.exp(c - p * np.log(np.asarray(x, float))) for c, p, x in zip(logs, exponents, sizes, strict=True))
        return np.asarray(sum(terms) + math.exp(floor))

    def compute_law(self) -> ComputeLaw:
        """The surface as E + A/N^α + B/D^β."""
        if self.terms != "tokens":
            raise DeepwideError("a surface in shape has no compute-optimal size of its own: fit terms='tokens'.")
        return ComputeLaw(f"fitted on {self.source or 'runs'}", *self.values)

    def optimum(self, train_flops: float) -> ComputeOptimum:
        """The compute-optimal size and tokens at C = 6·N·D."""
        if not (math.isfinite(train_flops) and train_flops > 0):
            raise DeepwideError(f"training FLOPs must be a number above 0, not {train_flops:g}.")
        laws = [self.compute_law(), *(ComputeLaw("", *row) for row in self.resamples)]
        if not self.has_optimum:
            raise DeepwideError("this surface has no optimum: one of its exponents is 0, see its warnings.")
        N, D = np.array([law.optimum(train_flops) for law in laws if law.has_optimum]).T
        low, high = self.flops_range
        notes = []
        if not low <= train_flops <= high:
            notes.append(note("flops-outside", flops=train_flops, low=low, high=high))
        for what, value, (least, most) in (("size", N[0], self.params_range), ("tokens", D[0], self.tokens_range)):
            if not least <= value <= most:
                notes.append(note("optimum-outside", what=what, value=float(value), low=least, high=most))
        return ComputeOptimum(spread(N), spread(D), spread(D / N), tuple(notes))

    @property
    def has_optimum(self) -> bool:
        """Whether the surface has a compute-optimal size."""
        return self.terms == "tokens" and self.compute_law().has_optimum

    @property
    def has_architecture(self) -> bool:
        """Whether the runs' parameters grow with depth·width², so that a law of depth can count them."""
        return self.layer_matrices is not None and self.layer_matrices > 0

    def law(self) -> SurfaceLaw | None:
        """A law of depth for a surface in shape, with the bootstrap's errors; one in tokens predicts no depth: None."""
        if self.terms != "shape" or not self.has_architecture:
            return None
        law = self._law(self.values)
        if len(self.resamples) < FEWEST:
            return law
        low, high = self.params_range
        P = np.geomspace(low / 10, high * 10, 17)
        L, d = law.optimum(P)
        others = [self._law(row).optimum(P)[0] / L for row in self.resamples]
        limits = np.percentile(others, [2.5, 97.5], axis=0)
        return law.model_copy(update={"errors": as_tuples(np.column_stack([law.layer_matrices * L * d**2, *limits]))})

    def save_law(self, path: str | Path) -> Path:
        """Write the law of depth, or for a surface in tokens the compute law, as JSON for `deepwide.plan`."""
        return save_compute_law(self.compute_law(), path) if self.has_optimum else super().save_law(path)

    def best_depth(self, params: float) -> Interval:
        """The depth of least loss among shapes of equal parameters, as the fit counts them, with its bootstrap."""
        if self.terms != "shape":
            raise DeepwideError("a surface in parameters and tokens predicts no depth: fit terms='shape'.")
        if not self.has_architecture:
            raise DeepwideError("the parameters of these runs do not grow with depth·width²: there is no best depth.")
        laws = (self._law(row) for row in (self.values, *self.resamples))
        return spread(np.array([law.optimum(params)[0][0] for law in laws]))

    def verdict(self) -> Verdict:
        """Whether the runs show every term; measured is the exponent whose interval reaches lowest."""
        by: By = "bootstrap" if len(self.resamples) >= FEWEST else "sandwich"
        exponents = [self.interval(name, by) for name in self.exponents]
        least = min(exponents, key=lambda i: i.value if i.low is None else i.low)
        hidden = {"term-unseen", "exponent-at-limit"} & {warning.code for warning in self.warnings}
        seen = not hidden and least.low is not None and least.low > 0
        outcome = "seen" if seen else "undecided"
        return Verdict(claim=CLAIM, outcome=outcome, rule=RULE, measured=least, notes=self.warnings)

    @property
    def exponents(self) -> tuple[str, ...]:
        """The names of the exponents."""
        return self.names[len(SIZES[self.terms]) + 1 :]

    def headline(self) -> list[str]:
        """The surface, and its optimum at the largest runs."""
        return summary.surface_headline(self)

    def resampled(self) -> dict[str, Floats]:
        """The floor and the exponents of a surface in tokens, the exponents of one in shape."""
        column = dict(zip(self.names, np.array([self.values, *self.resamples]).T, strict=True))
        return {name: column[name] for name in (*(("E",) if self.terms == "tokens" else ()), *self.exponents)}

    def _logs(self, values: tuple[float, ...]) -> tuple[float, Floats, Floats]:
        """ln of the floor, of the coefficients, and the exponents."""
        terms = len(SIZES[self.terms])
        logs = np.array(values[: terms + 1])
        logs = np.log(logs) if self.terms == "tokens" else logs
        return float(logs[0]), logs[1:], np.array(values[terms + 1 :])

    def _law(self, values: tuple[float, ...]) -> SurfaceLaw:
        floor, logs, exponents = self._logs(values)
        pairs = {
            f"{name}_term": (float(c), float(p)) for name, c, p in zip(SIZES["shape"], logs, exponents, strict=True)
        }
        assert self.layer_matrices is not None
        assert self.embedding_rows is not None
        return SurfaceLaw(
            name="fitted surface",
            about="least loss of a fitted surface",
            details="the minimum over depth, at equal parameters and tokens, of a loss fitted in shape and tokens",
            citation=f"fitted on {self.runs} runs" + (f" of {self.source}" if self.source else ""),
            status="fitted",
            tested=f"{self.runs} runs of {' to '.join(show_count(n) for n in self.params_range)} parameters",
            fitted_block_params=self.block_params_range,
            floor=floor,
            layer_matrices=self.layer_matrices,
            embedding_rows=self.embedding_rows,
            tokens_per_param=self.tokens_per_param,
            **pairs,
        )


def fit_surface(
    runs: Runs,
    *,
    terms: Terms = "tokens",
    counting: Counting = "total",
    delta: float = 1e-3,
    bootstrap: int = 1000,
    unit: Unit = "group",
    seed: int = 0,
) -> SurfaceFit:
    """Fit the surface; resample `bootstrap` times, runs that differ only in seed (a group) or tokens (a shape) as one.

    Checkpoints of one training run are not independent: where they are the rows, unit="shape" gives honest errors.
    A diverged run is a lower bound on its loss (see `Runs.bounds`): it costs only where the prediction is below it.
    """
    check_resamples(bootstrap, seed)
    if not (delta > 0 and math.isfinite(delta)):
        raise DeepwideError(f"delta must be above 0, not {delta:g}.")
    x = _columns(runs, terms, counting)
    centre = x.mean(axis=1)
    log_loss = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    problem = Problem(x - centre[:, None], log_loss, np.asarray(runs.diverged), delta)
    units = units_of(runs, unit)
    best, polished = best_fit(problem)
    theta = best.theta[0]
    draws = draws_of(units, len(theta), bootstrap, seed)
    resampled = minimise(problem, np.tile(theta, (bootstrap, 1)), draws, tolerance=ENOUGH) if bootstrap else None
    covariance, inside, known = sandwich(problem, theta, units)

    f, share, G = (part[0] for part in forward(problem, theta[None]))
    residual = log_loss - f
    Q = np.linalg.qr((G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)).T)[0]
    leverage = (Q**2).sum(axis=1)
    errors = resampled.theta.std(axis=0) if resampled is not None else np.sqrt(np.diag(covariance))
    warnings = [
        *cautions.about_terms(problem, theta, share, NAMES[terms]),
        *cautions.about_sizes(x, SIZES[terms]),
        *cautions.about_influence(problem, theta, units, leverage, errors, NAMES[terms]),
    ]
    if polished.objective.max() > polished.objective.min() * (1 + 1e-6) + NEGLIGIBLE * len(runs):
        warnings.append(note("several-minima"))
    if not known:
        warnings.append(note("errors-unknown", inside=inside))
    elif not covariance.any():
        warnings.append(note("errors-zero"))
    notes = list(runs.notes)
    if resampled is not None and not resampled.converged.all():
        unconverged = int((~resampled.converged).sum())
        notes.append(note("resamples-unconverged", count=unconverged, resamples=bootstrap))
    per_shape = len(runs) / len(np.unique(runs.shapes))
    if terms == "shape" and unit == "group" and per_shape > 5:
        warnings.append(note("shape-checkpoints", rows=per_shape))
    size = runs.size(counting)
    T = _reported(theta, centre, terms)[1]
    finished = residual[~runs.diverged]
    architecture: dict[str, Any]
    architecture, counted = ({}, []) if terms == "tokens" else _architecture(runs, counting)
    return SurfaceFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=NAMES[terms],
        values=tuple(_reported(theta, centre, terms)[0].tolist()),
        covariance=as_tuples(T @ covariance @ T.T),
        dof=max(0, int(units.max()) + 1 - len(theta)) if known else 0,
        resamples=() if resampled is None else as_tuples([_reported(t, centre, terms)[0] for t in resampled.theta]),
        residuals=residual_table(runs, counting, log_loss, f, residual, leverage),
        noise=math.sqrt(float((finished**2).sum()) / max(1, len(finished) - len(theta))),
        params_range=span(size),
        depth_range=None if np.isnan(runs.depth).any() else span(runs.depth),
        embedding_share=span_known(runs.embedding_share),
        notes=tuple(notes),
        warnings=(*warnings, *counted),
        terms=terms,
        delta=delta,
        unit=unit,
        objective=float(best.objective[0]),
        evaluations=int(best.evaluations[0]),
        tokens_range=span(runs.tokens),
        flops_range=span(6 * size * runs.tokens),
        tokens_per_param=float(np.exp(np.mean(np.log(runs.tokens / size)))),
        **architecture,
    )


def _columns(runs: Runs, terms: Terms, counting: Counting) -> Floats:
    """ln of what the surface is in, one row each; refuses what cannot be told apart."""
    if terms not in SIZES:
        raise DeepwideError(f"terms must be 'tokens' or 'shape', not {str(terms)[:40]!r}.")
    runs.need("tokens", *(("width", "depth") if terms == "shape" else ()))
    sizes = {"width": runs.width, "depth": runs.depth, "params": runs.size(counting), "tokens": runs.tokens}
    parameters = len(NAMES[terms])
    finished = ~np.asarray(runs.diverged)
    if finished.sum() <= parameters:
        raise DeepwideError(
            f"a surface in {terms} has {parameters} parameters and needs more finished runs than that; "
            f"there are {int(finished.sum())}."
        )
    x: Floats = np.log(np.array([sizes[name] for name in SIZES[terms]]))
    for name, column in zip(SIZES[terms], x, strict=True):
        if (values := cautions.distinct(column[finished])) < 3:
            raise DeepwideError(
                f"the finished runs have {values} different {name}: a power of it and a floor need at least 3; "
                "add runs that differ in it."
            )
    return x


def _reported(theta: Floats, centre: Floats, terms: Terms) -> tuple[Floats, Floats]:
    """The parameters as they are reported, and their derivatives by θ, whose sizes are about their centre."""
    k = len(centre)
    T = np.eye(len(theta))
    T[1 : k + 1, k + 1 :] = np.diag(centre)
    values = T @ theta
    if terms == "tokens":
        values[: k + 1] = np.exp(values[: k + 1])
        T[: k + 1] *= values[: k + 1, None]
    return values, T


def _architecture(runs: Runs, counting: Counting) -> tuple[dict[str, Any], list[Note]]:
    """What a law needs to count parameters as the runs do: params = layer_matrices·L·d² + embedding_rows·d."""
    from scipy.optimize import nnls

    L, d, size = runs.depth, runs.width, runs.size(counting)
    columns = [L * d**2] if counting == "block" else [L * d**2, d]
    design = np.column_stack(columns) / size[:, None]
    coefficients, _ = nnls(design, np.ones(len(size)))
    off = float(np.abs(design @ coefficients - 1).max())
    notes = [] if off < 0.02 else [note("count-approximate", percent=100 * off)]
    matrices, rows = float(coefficients[0]), 0.0 if counting == "block" else float(coefficients[1])
    possible = MATRICES[0] <= matrices <= MATRICES[1] and rows <= MOST_ROWS
    if matrices * design[:, 0].max() < NO_BLOCKS or not possible:
        matrices, notes = 0.0, [note("count-unrelated")]
    fields = {
        "layer_matrices": matrices,
        "embedding_rows": rows,
        "block_params_range": span(matrices * L * d**2) if matrices > 0 else None,
    }
    return fields, notes
