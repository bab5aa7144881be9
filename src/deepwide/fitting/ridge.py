"""The best depth as a function of size: a bowl in ln depth about a law, at equal size.

    ln loss = c + s·σ + s₂·σ² [+ e·ln(total/block)] [+ t·θ + t₂·θ²] + b₁·x + b₂·x² [+ b₃·σ·x]

σ = ln(N / centre), θ = ln(tokens / centre), x = ln(depth / law's depth at N). Its minimum is at x* = −(b₁ + b₃σ)/2b₂,
and a depth f times the best one costs b₂·ln²f of ln loss. The square brackets are optional terms.
Without a law, x = ln depth and the b₃ term stays: the best depth is then a power of the size.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from deepwide.answers import Z95, Interval
from deepwide.arrays import Floats
from deepwide.errors import DeepwideError
from deepwide.fitting.fit import Fit, check_noise, check_positive, residual_table, rows, share_range, t95, told_noise
from deepwide.fitting.regression import Noise, Regression, regress, seed_columns
from deepwide.fitting.resampling import units_of
from deepwide.fitting.runs import Counting, Runs
from deepwide.laws import Bowl, RidgeLaw, TransitionLaw, find_law
from deepwide.quantities import show_count

LEARNING_CURVE = 4  # lengths of one shape from which they are probably checkpoints
SPAN = math.log(1000)  # how far from the data's middle limits of the minimum are looked for


class Other(NamedTuple):
    """A term that was left out and is significant: where the minimum would be with it, and how it would drift."""

    term: str
    minimum: float
    drift: float


class RidgeFit(Fit):
    """The regression, and the bowl's minimum as a factor on the base law's depth, or in layers."""

    kind: Literal["ridge"] = "ridge"
    base: TransitionLaw | None  # None: depths are measured from one layer
    centre: float
    centre_tokens: float | None
    x_range: tuple[float, float]
    minimum: Interval | None  # depth / base depth at the centre's size; None: no bowl
    others: tuple[Other, ...] = ()  # terms left out that the data want

    def law(self) -> RidgeLaw | None:
        """The base law's depth times the fitted factor; None where the data show no bowl.

        A law is asked about block parameters, so a drift in total parameters gives none either; nor does a depth that
        grows faster than the size, which no width could follow.
        """
        if self.minimum is None or (self.counting == "total" and "drift" in self.names) or abs(self.drift.value) >= 1:
            return None
        shift, error = self._at_minimum()
        error *= (t95(self.dof) / Z95) ** 2  # a law's limits are the normal's
        # What other terms would make of the minimum is an error too; the saved law carries it.
        error[0, 0] += max(((math.log(other.minimum) - shift) ** 2 for other in self.others), default=0.0)
        error[1, 1] += max((other.drift**2 for other in self.others), default=0.0)
        return RidgeLaw(
            **self._origin(),
            about="least loss at equal size (fitted)",
            details=f"{math.exp(shift):.2f} {self._unit}",
            base_a=self.base.a if self.base else None,
            base_b=self.base.b if self.base else None,
            shift=shift,
            drift=self.drift.value,
            centre_params=self.centre,
            covariance=rows(error),
            bowl=self.bowl(),
            cautions=self.warnings,
        )

    @property
    def drift(self) -> Interval:
        """The power of the size that the best depth has above the base's own."""
        if "drift" not in self.names:
            return Interval(0.0)
        value = -self["drift"] / (2 * self["b2"])
        error = t95(self.dof) * math.sqrt(self._at_minimum()[1][1, 1]) if self.dof else math.inf
        return Interval(value, value - error, value + error)

    @property
    def _unit(self) -> str:
        return f"times the depth of the law '{self.base.name}'" if self.base else "layers"

    def bowl(self) -> Bowl | None:
        """The curvature, for laws; None where the data show none."""
        if self.minimum is None:
            return None
        low, high = (x - math.log(self.minimum.value) for x in self.x_range)
        return Bowl(curvature=self["b2"], error=self.standard_errors["b2"], x_range=(low, high))

    def _at_minimum(self) -> tuple[float, Floats]:
        """x* at the centre and the covariance of x* and its drift, by the delta method."""
        b1, b2 = self["b1"], self["b2"]
        b3 = self["drift"] if "drift" in self.names else 0.0
        J = np.zeros((2, len(self.names)))
        i1, i2 = self.names.index("b1"), self.names.index("b2")
        J[0, i1], J[0, i2] = -1 / (2 * b2), b1 / (2 * b2**2)
        if "drift" in self.names:
            i3 = self.names.index("drift")
            J[1, i3], J[1, i2] = -1 / (2 * b2), b3 / (2 * b2**2)
        C = J @ np.array(self.covariance) @ J.T
        return -b1 / (2 * b2), (C + C.T) / 2

    def cost(self, factor: float) -> Interval:
        """Extra loss, in percent, of a depth that is `factor` times the best one at equal size."""
        if not factor > 0:
            raise DeepwideError(f"a factor of depth must be above 0, not {factor:g}.")
        curve = self.interval("b2")
        limits = (curve.value, curve.low, curve.high)
        values = [None if b is None else 100 * math.expm1(b * math.log(factor) ** 2) for b in limits]
        assert values[0] is not None
        return Interval(values[0], values[1], values[2])

    def predict(self, depth: float, params: float, *, tokens: float | None = None, total: float | None = None) -> float:
        """The regression's loss at a number of block parameters; a fit by the total, or with embeddings, needs both."""
        check_positive(depth=depth, params=params, tokens=tokens, total=total)
        if total is None and (self.counting == "total" or "embeddings" in self.names):
            raise DeepwideError("this fit knows embeddings: give the total number of parameters too.")
        x = np.log(depth / _base_depth(self.base, np.array([params])))
        size = params if self.counting == "block" or total is None else total
        s = np.log([size / self.centre])
        t = None if self.centre_tokens is None else np.log([(tokens or self.centre_tokens) / self.centre_tokens])
        e = np.log([total / params]) if total is not None and "embeddings" in self.names else None
        columns = _columns(s, x, t, e, "drift" in self.names, "tokens2" in self.names)
        return math.exp(sum(self[name] * float(column[0]) for name, column in columns.items()))

    def headline(self) -> list[str]:
        """Where the bowl is and what missing it costs."""
        if not self.dof:
            return [f"No bowl can be shown: there are {len(self.names)} parameters and no more shapes than that."]
        if self.minimum is None:
            return [
                "No bowl: at equal size these runs do not show a best depth "
                f"(curvature {self['b2']:.3g} ± {self.standard_errors['b2']:.2g})."
            ]
        low, high = (f"{v:.2f}" if v is not None else "…" for v in (self.minimum.low, self.minimum.high))
        limits = f"({low} to {high})" + (f", at {show_count(round(self.centre))}" if "drift" in self.names else "")
        lines = [f"Least loss at {self.minimum.value:.2f} {self._unit} {limits}."]
        law = self.law()
        if self.base is None:
            power = self.drift
            limits = f"({power.low:.2f} to {power.high:.2f})"
            lines.append(f"The best depth grows like the size to the power {power.value:.2f} {limits}.")
        if law is not None and self.counting == "block":
            ends = [law.depth(size).at() for size in self.params_range]
            said = [f"{d.value:.1f} ({d.low:.1f} to {d.high:.1f})" for d in ends if d.low is not None]
            sizes = [show_count(round(size)) for size in self.params_range]
            more = ", with the error of terms left out (see the warnings)" if self.others else ""
            lines.append(f"That is {said[0]} layers at {sizes[0]} and {said[1]} at {sizes[1]}{more}.")
        for factor in (2, 4):
            cost = self.cost(factor)
            limits = "" if cost.low is None else f" ({cost.low:.2f} to {cost.high:.2f})"
            lines.append(f"A depth off by a factor {factor} costs {cost.value:.2f}% of loss{limits}.")
        return lines


def fit_ridge(
    runs: Runs,
    *,
    base: str | TransitionLaw | None = "levine",
    counting: Counting = "block",
    embeddings: bool = False,
    drift: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
    noise: Noise = "same",
) -> RidgeFit:
    """The bowl about a transition law; `embeddings` adds their share as a term, `drift` lets the minimum move.

    With base None or "power" no law is assumed and the best depth is a power of the size.
    """
    check_noise(noise)
    law = None if base in (None, "power") else find_law(base)
    if not isinstance(law, TransitionLaw | None):
        raise DeepwideError(
            f"a ridge is measured from a transition law, and '{law.name}' is none: use levine or power."
        )
    drift = drift or law is None
    runs.need("depth")
    block = runs.block_params if counting == "total" and not np.isnan(runs.block_params).any() else runs.size(counting)
    size = runs.size(counting)
    x = np.log(runs.depth / _base_depth(law, block))
    centre = float(np.exp(np.mean(np.log(size))))
    lengths = np.unique(runs.tokens[~np.isnan(runs.tokens)])
    centre_tokens = float(np.exp(np.mean(np.log(runs.tokens)))) if lengths.size > 1 else None
    t = None if centre_tokens is None else np.log(runs.tokens / centre_tokens)
    if embeddings:
        runs.need("total_params", "block_params")
    e = np.log(runs.total_params / runs.block_params) if embeddings else None
    columns = _columns(np.log(size / centre), x, t, e, drift, lengths.size > 2)
    seeds = seed_columns(runs.seed)
    X = np.column_stack([*columns.values(), seeds])
    y = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    depths, groups = np.unique(runs.depth, return_inverse=True)
    made = regress(X, y, runs.cells, runs.diverged, seeds.shape[1], groups, noise == "depth")
    by_depth = dict(zip(map(int, depths), made.noises.tolist(), strict=True))
    uneven = told_noise(by_depth, made)
    k = len(columns)
    covariance = np.nan_to_num(made.covariance[:k, :k])
    draws = made.resample(bootstrap, seed)[:, :k] if bootstrap and made.dof else np.zeros((0, k))
    names = tuple(columns)
    b1, b2 = (float(made.theta[names.index(name)]) for name in ("b1", "b2"))
    x_range = (float(x.min()), float(x.max()))
    minimum = _minimum(b1, b2, covariance[np.ix_(*[[names.index("b1"), names.index("b2")]] * 2)], made.dof)
    others = _others(made, columns, x, np.log(size / centre), runs, seeds, minimum)
    return RidgeFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=names,
        values=tuple(map(float, made.theta[:k])),
        covariance=rows(covariance),
        dof=made.dof,
        resamples=rows(draws),
        residuals=residual_table(runs, counting, made.y, made.fitted, made.residuals, made.leverage),
        noise=0.0 if math.isnan(made.noise) else made.noise,
        seed_noise=made.between_seeds,
        noise_by_depth=by_depth if noise == "depth" else None,
        params_range=(float(size.min()), float(size.max())),
        depth_range=(float(runs.depth.min()), float(runs.depth.max())),
        embedding_share=share_range(runs.embedding_share),
        notes=runs.notes,
        warnings=(
            *_warnings(minimum, x_range, made, names, runs, counting),
            *_told(others, law, size),
            *uneven,
            *_checkpoints(runs),
        ),
        others=others,
        base=law,
        centre=centre,
        centre_tokens=centre_tokens,
        x_range=x_range,
        minimum=minimum,
    )


def _checkpoints(runs: Runs) -> list[str]:
    shapes = units_of(runs, "shape")
    lengths = [len(np.unique(runs.tokens[shapes == shape])) for shape in np.unique(shapes)]
    if max(lengths) < LEARNING_CURVE:
        return []
    said = f"up to {max(lengths)} lengths of one shape count as runs of their own"
    return [f"{said}: if they are checkpoints of one run, errors are too small; keep one (--where tokens=N)"]


def _base_depth(law: TransitionLaw | None, size: Floats) -> Floats:
    return np.ones_like(size) if law is None else law.depth(size).value


def _columns(s: Floats, x: Floats, t: Floats | None, e: Floats | None, drift: bool, bend: bool) -> dict[str, Floats]:
    made = {"intercept": np.ones_like(s), "size": s, "size2": s**2}
    if e is not None:
        made["embeddings"] = e
    if t is not None:
        made |= {"tokens": t} | ({"tokens2": t**2} if bend else {})  # two lengths tell no bend
    made |= {"b1": x, "b2": x**2}
    return made | ({"drift": s * x} if drift else {})


def _minimum(b1: float, b2: float, covariance: Floats, dof: int) -> Interval | None:
    """e^x* with the x at which a slope of zero is not refused (Fieller 1954); None unless b₂ is surely above 0."""
    if not dof or b2 <= t95(dof) * math.sqrt(max(0.0, float(covariance[1, 1]))):
        return None
    best = -b1 / (2 * b2)
    steps = np.linspace(0, SPAN, 4001)
    limits: list[float | None] = []
    for sign in (-1, 1):
        z = best + sign * steps
        slope = b1 + 2 * b2 * z
        error = np.sqrt(covariance[0, 0] + 4 * z * covariance[0, 1] + 4 * z**2 * covariance[1, 1])
        outside = np.flatnonzero(np.abs(slope) > t95(dof) * error)
        limits.append(math.exp(z[outside[0]]) if outside.size else None)
    return Interval(math.exp(best), limits[0], limits[1])


def _others(
    made: Regression,
    columns: dict[str, Floats],
    x: Floats,
    s: Floats,
    runs: Runs,
    seeds: Floats,
    minimum: Interval | None,
) -> tuple[Other, ...]:
    """Refit with each term that was left out; those that are significant at 95%."""
    if minimum is None or made.dof < 4:
        return ()
    candidates = {"drift": s * x, "skew": x**3} | ({"bend": s**2 * x} if "drift" in columns else {})
    share = np.log(runs.total_params / runs.block_params)
    if not np.isnan(share).any() and float(np.ptp(share)) > 0.05:
        candidates["embeddings"] = share
    found = []
    for term, column in candidates.items():
        if term in columns:
            continue
        X = np.column_stack([*columns.values(), column, seeds])
        if np.linalg.matrix_rank(X) < X.shape[1]:
            continue
        again = regress(X, made.y, made.cells, made.censored, seeds.shape[1], made.groups, made.own_noise)
        k = len(columns)
        error = math.sqrt(max(0.0, float(again.covariance[k, k])))
        value = float(again.theta[k])
        if not again.dof or abs(value) <= t95(again.dof) * error:
            continue
        b1, b2 = (float(again.theta[list(columns).index(name)]) for name in ("b1", "b2"))
        at = math.log(minimum.value)
        if term == "skew":  # the root of b₁ + 2b₂x + 3b₃x² that is a minimum
            square = b2 * b2 - 3 * value * b1
            at = (-b2 + math.sqrt(square)) / (3 * value) if square > 0 else at
        elif b2 > 0:
            at = -b1 / (2 * b2)
        drifts = -value / (2 * b2) if term == "drift" and b2 > 0 else 0.0
        found.append(Other(term, math.exp(min(max(at, -20.0), 20.0)), max(min(drifts, 1.0), -1.0)))
    return tuple(found)


def _told(others: tuple[Other, ...], base: TransitionLaw | None, size: Floats) -> list[str]:
    words = {
        "drift": "the best depth moves against the base law with size: use --drift",
        "bend": "the best depth is not quite a power of the size",
        "skew": "the bowl is steeper on one side, which this model leaves out",
        "embeddings": "the embeddings' share matters: use --embeddings",
    }
    unit = "times the law's depth" if base else "layers"
    said = [f"{words[term]} (the minimum is then at {at:.2f} {unit})" for term, at, _ in others]
    if base is None:
        return said
    if base.is_extrapolated(float(size.min())) or base.is_extrapolated(float(size.max())):
        said.append(f"the base law '{base.name}' was {base.fitted_words}: here it is only a scale; try --base power")
    return said


def _warnings(
    minimum: Interval | None, x_range: tuple[float, float], made: Regression, names: tuple[str, ...],
    runs: Runs, counting: Counting,
) -> list[str]:  # fmt: skip
    said = []
    if made.dof < 3:
        said.append(f"only {made.dof} cells more than parameters: errors mean little; train more shapes")
    if minimum is not None and not x_range[0] <= math.log(minimum.value) <= x_range[1]:
        said.append("the minimum lies outside the depths trained")
    if not made.dof:
        return said
    i1, i2 = names.index("b1"), names.index("b2")
    for cell in np.unique(made.cells):
        left = made.cells != cell
        try:
            kept = (made.X[left], made.y[left], made.cells[left], made.censored[left])
            nuisance = made.X.shape[1] - len(names)
            again = regress(*kept, nuisance, made.groups[left], made.own_noise)
        except DeepwideError:
            again = None
        first = int(np.flatnonzero(~left)[0])
        what = f"depth {runs.depth[first]:g} at {show_count(round(float(runs.size(counting)[first])))}"
        b1, b2 = (0.0, 0.0) if again is None else (again.theta[i1], again.theta[i2])
        if minimum is None:
            if again is not None and again.dof and b2 > t95(again.dof) * math.sqrt(again.covariance[i2, i2]):
                said.append(f"without the cell of {what} there would be a bowl")
        elif b2 <= 0:
            said.append(f"without the cell of {what} there is no bowl")
        else:
            moved = math.exp(-b1 / (2 * b2))
            if (minimum.low and moved < minimum.low) or (minimum.high and moved > minimum.high):
                said.append(f"without the cell of {what} the minimum moves to {moved:.2f}, beyond its interval")
    return said
