"""Where the deeper network starts to win, and the law that the crossings follow (Levine et al. 2020, 2021, section 5).

For each pair of neighbouring depths L₁ < L₂ the curves of loss against size cross at N*. If loss at equal size is a
bowl in ln depth, the best depth at N* lies halfway: L = √(L₁L₂), d = √(N*/12L). The transition law is the line
ln d = a + b·L through these points.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from deepwide.answers import Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions, summary
from deepwide.fitting.answer import Fit, Prediction, Table, residual_table
from deepwide.fitting.crossings import Crossing, Line, find_crossing, log_crossing, needed, with_resamples
from deepwide.fitting.curves import CurveFit, Curves, fit_curves
from deepwide.fitting.regression import (
    Noise,
    as_tuples,
    check_noise,
    check_positive,
    check_resamples,
    span,
    span_known,
    t95,
)
from deepwide.fitting.ridge import bowl_about
from deepwide.fitting.runs import BLOCK_MATRICES, Counting, Runs
from deepwide.laws import Bowl, TransitionLaw
from deepwide.quantities import Floats

CLAIM = "a shallower network wins at small sizes, and a deeper one from some size on"
RULE = (
    "seen if, for some pair of depths, the shallower surely wins at a size and the deeper from a larger one on, at 95% "
    "for all sizes together; not seen if for every pair one depth surely wins at all sizes or the order is reversed; "
    "else undecided"
)


class TransitionFit(Fit):
    """Curves, crossings, and a and b of ln width = a + b·depth where there are crossings enough."""

    kind: Literal["transition"] = "transition"
    curves: Curves
    crossings: tuple[Crossing, ...]
    used: tuple[int, ...] = ()  # which crossings the line goes through
    # The covariance of a and b with the depths' own error.
    placed: tuple[tuple[float, float], tuple[float, float]] | None = None
    slope: float | None = None  # a slope that was assumed, not fitted
    bowl: Bowl | None = None  # what leaving the fitted law costs, from a ridge about it

    @model_validator(mode="before")
    @classmethod
    def _read_pairs(cls, given: Any) -> Any:
        """Fits saved before had `pairs`, rows of values; their curves say the rest."""
        if not isinstance(given, Mapping) or "pairs" not in given or "crossings" in given:
            return given
        fields = {name: value for name, value in given.items() if name != "pairs"}
        try:
            curves = Curves.model_validate(fields["curves"])
            fields["crossings"] = tuple(
                Crossing(**vars(find_crossing(curves, pair[0], pair[1])) | _resamples_of(pair))
                for pair in given["pairs"]
            )
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"its pairs cannot be read ({type(error).__name__})") from None
        return fields

    def law(self) -> TransitionLaw | None:
        """The transition law of these runs, with its full error; None without crossings or with b ≤ 0.

        A law is asked about block parameters, so crossings in total parameters give none either.
        """
        if not self.used or self.counting == "total":
            return None
        a, b = self["a"], self.b
        if not (0 < b < 5 and -20 < a < 20):
            return None
        assert self.placed is not None
        (aa, ab), (ba, bb) = self.placed
        depths = ", ".join(map(str, self.curves.depths))
        slope = "" if self.slope is None else f"; slope {b:g} assumed"
        return TransitionLaw(
            **self._origin(),
            about="deeper stops paying here (fitted)",
            details=f"crossings of depths {depths}{slope}",
            a=a,
            b=b,
            covariance=((aa, (ab + ba) / 2), ((ab + ba) / 2, bb)),
            bowl=self.bowl,
            cautions=(f"two regimes {self.outcome} in its runs", *map(str, self.warnings)),
        )

    def _ridge_may_give_a_law(self) -> bool:
        """A bowl needs three depths, and a power of the size gives a law only in block parameters."""
        return len(self.curves.depths) >= 3 and self.counting == "block"

    @property
    def b(self) -> float:
        """The slope, fitted or assumed."""
        return self["b"] if self.slope is None else self.slope

    def predict(self, depth: int, params: float) -> Prediction:
        """The curve's loss at a size, with its 95% interval; for many sizes, `curves.loss`."""
        check_positive(depth=depth, params=params)
        loss = self.curves.loss(depth, params)[0]
        return Prediction(loss.value, loss.low, loss.high, self._outside(size=params, depth=depth))

    @property
    def crossed(self) -> tuple[int, ...]:
        """The depths whose crossings the line goes through."""
        through = [self.crossings[i] for i in self.used]
        return tuple(sorted({depth for crossing in through for depth in (crossing.shallow, crossing.deep)}))

    def transition(self, depth: float) -> Interval:
        """N at which networks of this depth are as deep as pays, 12·L·e^(2(a + b·L)), with its 95% interval."""
        law = self.law()
        if law is None or law.covariance is None:
            raise DeepwideError("these runs give no transition law.")
        (aa, ab), (_, bb) = law.covariance
        middle = math.log(BLOCK_MATRICES * depth) + 2 * (law.a + law.b * depth)
        error = 2 * t95(max(self.dof, 1)) * math.sqrt(max(0.0, aa + 2 * depth * ab + depth**2 * bb))
        return Interval(*(math.exp(min(700.0, v)) for v in (middle, middle - error, middle + error)))

    @property
    def outcome(self) -> str:
        """The two regimes of the paper: seen, not seen, or undecided from these runs."""
        regimes = {crossing.regimes for crossing in self.crossings}
        return "seen" if "seen" in regimes else "not seen" if regimes == {"not seen"} else "undecided"

    def verdict(self) -> Verdict:
        """Whether the two regimes of the paper show; measured is the first crossing of a pair that shows both."""
        shown = [crossing for crossing in self.crossings if crossing.regimes == "seen" and crossing.size]
        measured = Interval(shown[0].size or math.nan, shown[0].low, shown[0].high) if shown else None
        return Verdict(
            claim=CLAIM,
            outcome=self.outcome,
            rule=RULE,
            measured=measured,
            notes=(Note("regimes", summary.regimes(self)), *self.warnings),
        )

    def headline(self) -> list[str]:
        """Each pair in a sentence, the line, the comparison with the paper's."""
        return summary.transition_headline(self)

    def resampled(self) -> dict[str, Floats]:
        """a and b."""
        return dict(zip(self.names, np.array([self.values, *self.resamples]).T, strict=True))

    def rows(self, table: Table = "crossings") -> list[dict[str, Any]]:
        """A table of plain rows: crossings, coefficients, groups (all seeds of a shape) or runs."""
        return [dict(vars(crossing)) for crossing in self.crossings] if table == "crossings" else super().rows(table)

    def _derived(self) -> dict[str, Any]:
        sizes = {depth: self.transition(depth) for depth in self.crossed} if self.law() else {}
        return super()._derived() | {"n_transition": {d: [i.value, i.low, i.high] for d, i in sizes.items()}}


def fit_transition(
    runs: Runs,
    *,
    counting: Counting = "block",
    bootstrap: int = 1000,
    seed: int = 0,
    slope: float | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
    noise: Noise = "same",
    bowl: bool = True,
) -> TransitionFit:
    """The paper's method on these runs; `pairs` adds pairs of depths that are not neighbours, `slope` assumes b.

    With noise "depth" the noise of every depth is estimated from its own runs. `bowl` also fits a ridge about the law,
    so that the law can say what another depth costs.
    """
    check_resamples(bootstrap, seed)
    check_noise(noise)
    if slope is not None and not 0 < slope < 5:
        raise DeepwideError(f"a slope must be between 0 and 5, not {slope:g}: the paper's is 0.0555.")
    fitted = fit_curves(runs, counting, noise)
    curves, regression, _ = fitted
    warnings = [*cautions.about_blocks(runs), *cautions.left_out(runs, curves.depths)]
    runs = runs.select(np.isin(runs.depth, curves.depths))
    crossings, log_sizes = _crossings(fitted, pairs, bootstrap, seed)
    warnings += cautions.about_curves(crossings, curves, regression, runs, counting)
    warnings += cautions.about_noise(dict(zip(curves.depths, curves.noises, strict=True)), regression)
    used, line = _line(curves, crossings, slope)
    warnings += cautions.about_line([crossings[i] for i in used])
    if regression.dof:
        trusted = line is not None and all(crossings[i].status == "bracketed" for i in used)
        warnings += cautions.leave_one_group_out(
            runs, counting, slope, noise, line if trusted else None, crossings, regression
        )
    resamples: Floats = np.zeros((0, 0))
    if line is not None:
        whole = log_sizes[:, used][~np.isnan(log_sizes[:, used]).any(axis=1)]
        resamples = np.array([line.again(sizes) for sizes in whole]).reshape(len(whole), len(line.names))
    size = runs.size(counting)
    fit = TransitionFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=line.names if line else (),
        values=tuple(map(float, line.values)) if line else (),
        covariance=as_tuples(line.covariance) if line else (),
        dof=regression.dof if not (curves.dofs and line) else _least_freedom(curves, [crossings[i] for i in used]),
        resamples=as_tuples(resamples) if line else (),
        residuals=residual_table(
            runs, counting, regression.y, regression.fitted, regression.residuals, regression.leverage
        ),
        noise=curves.noise,
        seed_noise=regression.between_seeds,
        noise_by_depth=dict(zip(curves.depths, curves.noises, strict=True)) if noise == "depth" else None,
        params_range=span(size),
        depth_range=(float(min(curves.depths)), float(max(curves.depths))),
        tokens_range=span_known(runs.tokens),
        embedding_share=span_known(runs.embedding_share),
        notes=runs.notes,
        warnings=tuple(warnings),
        curves=curves,
        crossings=tuple(crossings),
        used=tuple(used),
        placed=line.placed if line else None,
        slope=slope,
    )
    law = fit.law() if bowl and regression.dof > 1 else None
    if law is None:
        return fit
    return fit.model_copy(update={"bowl": bowl_about(law, runs, counting=counting, noise=noise)})


def _crossings(
    fitted: CurveFit, pairs: tuple[tuple[int, int], ...], bootstrap: int, seed: int
) -> tuple[list[Crossing], Floats]:
    """The crossings of neighbours, then of the pairs asked for, and ln N* of each in every resample."""
    curves, regression, into = fitted
    for shallow, deep in pairs:
        curves.index(shallow), curves.index(deep)  # refuse a depth without a curve before any work
        if shallow >= deep:
            raise DeepwideError(f"a pair is the shallower depth, then the deeper: {deep},{shallow}.")
    all_pairs = tuple(dict.fromkeys((*pairwise(curves.depths), *pairs)))
    draws = np.zeros((0, len(into)))
    if bootstrap and regression.dof:
        draws = regression.resample(bootstrap, seed) @ into.T
    log_sizes = np.array([[log_crossing(curves, theta, *pair) for pair in all_pairs] for theta in draws])
    log_sizes = log_sizes.reshape(-1, len(all_pairs))
    crossings = [find_crossing(curves, *pair) for pair in all_pairs]
    return [with_resamples(crossing, log_sizes[:, i]) for i, crossing in enumerate(crossings)], log_sizes


def _line(curves: Curves, crossings: list[Crossing], slope: float | None) -> tuple[list[int], Line | None]:
    """The line through neighbours' crossings, and which: the bracketed, and others only where those are too few."""
    neighbours = set(pairwise(curves.depths))
    among = [i for i, crossing in enumerate(crossings) if (crossing.shallow, crossing.deep) in neighbours]
    used = [i for i in among if crossings[i].status == "bracketed"]
    if slope is None and len(used) < 2:
        used = [i for i in among if crossings[i].status != "none"]
    if len(used) < needed(slope):
        return [], None
    return used, Line.through(curves, [crossings[i] for i in used], slope)


def _least_freedom(curves: Curves, crossings: list[Crossing]) -> int:
    """Of the depths that the line's crossings are of, the fewest degrees of freedom of a noise."""
    depths = {depth for crossing in crossings for depth in (crossing.shallow, crossing.deep)}
    least = min(curves.dofs[curves.index(depth)] for depth in depths)
    return max(1, int(least + 1e-6))  # 5 may come out as 4.999…


def _resamples_of(pair: Any) -> dict[str, Any]:
    """The last two values of an old row: the share of resamples without the crossing, and their middle 95%."""
    vanished, resampled = pair[9:11]
    return {"vanished": vanished, "resampled": None if resampled is None else tuple(resampled)}
