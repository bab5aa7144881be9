"""Where the deeper network starts to win, and the law that the crossings follow (Levine et al. 2020, 2021, section 5).

For each pair of neighbouring depths L₁ < L₂ the curves of loss against size cross at N*. If loss at equal size is a
bowl in ln depth, the best depth at N* lies halfway: L = √(L₁L₂), d = √(N*/12L). The transition law is the line
ln d = a + b·L through these points, by generalised least squares: errors of neighbouring crossings are correlated,
since they share a curve. That the best depth is only known to lie between L₁ and L₂ is an error in L of its own
(uniform in ln L), which `placed` adds; the likelihood's covariance is without it.
"""

import math
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from deepwide.answers import Z95, Interval
from deepwide.arrays import Floats
from deepwide.errors import DeepwideError
from deepwide.fitting.curves import Curves, fit_curves
from deepwide.fitting.fit import (
    Fit,
    check_noise,
    check_positive,
    joined,
    residual_table,
    rows,
    share_range,
    t95,
    told_noise,
)
from deepwide.fitting.regression import Noise, Regression
from deepwide.fitting.ridge import fit_ridge
from deepwide.fitting.runs import BLOCK_MATRICES, Counting, Runs
from deepwide.laws import Bowl, TransitionLaw, transition_law
from deepwide.quantities import show_count

REACH = math.log(4)  # how far beyond the data a crossing is still called one
SPAN = math.log(1000)  # how far limits of an interval are looked for
NOTHING = 1e-9  # a gap of ln loss that is rounding
MISFIT = 5  # curves that miss shapes by so many times what seeds differ are said to
PLACEMENT = 1 / math.sqrt(12)  # standard deviation of a uniform of length 1

Status = Literal["bracketed", "extrapolated", "none"]
Seen = Literal["seen", "not seen", "undecided"]


class Pair(NamedTuple):
    """Two depths: where the deeper starts to win, and whether both regimes show."""

    shallow: int
    deep: int
    status: Status
    size: float | None  # N*, None where there is none
    low: float | None  # 95% limits; None: not limited by these data
    high: float | None
    verdict: Seen
    words: str
    until: float | None = None  # where, still among the sizes trained, the deeper stops winning
    vanished: float | None = None  # share of resamples without this crossing
    resampled: tuple[float, float] | None = None  # the middle 95% of the resamples' crossings

    @property
    def depth(self) -> float:
        """Halfway between the two on the scale of a bowl in ln depth."""
        return math.sqrt(self.shallow * self.deep)


class TransitionFit(Fit):
    """Curves, crossings, and a and b of ln width = a + b·depth where there are crossings enough."""

    kind: Literal["transition"] = "transition"
    curves: Curves
    pairs: tuple[Pair, ...]
    used: tuple[int, ...] = ()  # which pairs the line goes through
    # The covariance of a and b with the depths' own error.
    placed: tuple[tuple[float, float], tuple[float, float]] | None = None
    slope: float | None = None  # a slope that was assumed, not fitted
    bowl: Bowl | None = None  # what leaving the fitted law costs, by a ridge about it

    def law(self) -> TransitionLaw | None:
        """The transition law of these runs, with its full error; None without crossings or with b ≤ 0.

        A law is asked about block parameters, so crossings in total parameters give none either.
        """
        if not self.used or self.counting == "total":
            return None
        a = self["a"]
        b = self["b"] if self.slope is None else self.slope
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
            cautions=(f"two regimes {self.verdict()[0]} in its runs", *self.warnings),
        )

    def predict(self, depth: int, params: float) -> Interval:
        """The curve's loss at a size, with its 95% interval; for many sizes, `curves.loss`."""
        check_positive(depth=depth, params=params)
        return self.curves.loss(depth, params)[0]

    @property
    def crossed(self) -> tuple[int, ...]:
        """The depths whose crossings the line goes through."""
        return tuple(sorted({depth for i in self.used for depth in (self.pairs[i].shallow, self.pairs[i].deep)}))

    def transition(self, depth: float) -> Interval:
        """N at which networks of this depth are as deep as pays, 12·L·e^(2(a + b·L)), with its 95% interval."""
        law = self.law()
        if law is None or law.covariance is None:
            raise DeepwideError("these runs give no transition law.")
        (aa, ab), (_, bb) = law.covariance
        middle = math.log(BLOCK_MATRICES * depth) + 2 * (law.a + law.b * depth)
        error = 2 * t95(max(self.dof, 1)) * math.sqrt(max(0.0, aa + 2 * depth * ab + depth**2 * bb))
        return Interval(*(math.exp(min(700.0, v)) for v in (middle, middle - error, middle + error)))

    def verdict(self) -> tuple[Seen, str]:
        """The two regimes of the paper: seen, not seen, or undecided from these runs."""
        return _verdict(self.pairs)

    def headline(self) -> list[str]:
        """Each pair in a sentence, the line, the comparison with the paper's."""
        lines = [pair.words for pair in self.pairs]
        lines.append(f"Two regimes: {self.verdict()[0]}. {self.verdict()[1]}")
        if not self.used:
            enough = "two crossings (or --slope to assume one)" if self.slope is None else "one crossing"
            return [*lines, f"No law: a line needs {enough}."]
        paper = transition_law()
        a, b = self["a"], self["b"] if self.slope is None else self.slope
        errors = self.standard_errors
        fitted = f"b = {b:.4g} ± {errors['b']:.2g}" if self.slope is None else f"b = {b:.4g} assumed"
        lines.append(
            f"ln width = a + b·depth: a = {a:.4g} ± {errors['a']:.2g}, {fitted} (the paper: {paper.a:g}, {paper.b:g})."
        )
        if self.law() is not None:
            sizes = [(depth, self.transition(depth)) for depth in self.crossed]
            said = [f"{_few(i.value)} ({_few(i.low)} to {_few(i.high)}) for {depth}" for depth, i in sizes]
            lines.append(f"N_transition, from which more layers pay: {joined(said)}.")
        if self.counting == "total":
            lines.append("These are total parameters, and plan's laws count blocks: no law for plan.")
        elif self.law() is None and b <= 0:
            lines.append("The crossings do not move to larger widths with depth: these runs give no law for plan.")
        elif self.law() is None:
            lines.append(
                f"a = {a:.3g} is outside −20 to 20: these are no sizes of networks, and there is no law for plan."
            )
        return lines


def fit_transition(
    runs: Runs,
    *,
    counting: Counting = "block",
    bootstrap: int = 1000,
    seed: int = 0,
    slope: float | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
    noise: Noise = "same",
) -> TransitionFit:
    """The paper's method on these runs; `pairs` adds pairs of depths that are not neighbours, `slope` assumes b.

    With noise "depth" every depth's runs scatter by an amount of their own, which its own runs must tell.
    """
    if bootstrap < 0:
        raise DeepwideError(f"the number of resamples must be at least 0, not {bootstrap}.")
    if slope is not None and not 0 < slope < 5:
        raise DeepwideError(f"a slope must be between 0 and 5, not {slope:g}: the paper's is 0.0555.")
    check_noise(noise)
    curves, regression, into = fit_curves(runs, counting, noise)
    by_depth = dict(zip(curves.depths, curves.noises, strict=True))
    uneven = told_noise(by_depth, regression)
    kept = np.isin(runs.depth, curves.depths)
    left_out = [
        f"depth {depth:g} finished at fewer than three sizes: its {int((runs.depth == depth).sum())} runs "
        f"({int(runs.diverged[runs.depth == depth].sum())} diverged) are left out"
        for depth in np.unique(runs.depth[~kept])
    ]
    runs = runs.select(kept)
    neighbours = tuple(pairwise(curves.depths))
    for shallow, deep in pairs:
        curves.gradient(shallow, 1.0), curves.gradient(deep, 1.0)
        if shallow >= deep:
            raise DeepwideError(f"a pair is the shallower depth, then the deeper: {deep},{shallow}.")
    found = [_pair(curves, *pair) for pair in dict.fromkeys((*neighbours, *pairs))]
    draws = np.zeros((0, len(into)))
    if bootstrap and regression.dof:
        draws = regression.resample(bootstrap, seed) @ into.T
    roots = np.array([[_root(curves, theta, pair) for pair in found] for theta in draws]).reshape(-1, len(found))
    found = [_resampled(pair, roots[:, i]) if pair.size else pair for i, pair in enumerate(found)]
    warnings = [*left_out, *_warnings(found, curves, regression, runs, counting), *uneven]
    usable = [i for i, pair in enumerate(found[: len(neighbours)]) if pair.status == "bracketed"]
    if slope is None and len(usable) < 2:
        more = [i for i, pair in enumerate(found[: len(neighbours)]) if pair.status != "none"]
        if len(more) >= 2:
            usable = more
            warnings.append("the line uses a crossing that lies outside the data: treat a and b as a guess")
    if len(usable) < (2 if slope is None else 1):
        usable = []
    line = _Line.through(curves, [found[i] for i in usable], slope) if usable else None
    if any(found[i].low is None or found[i].high is None for i in usable):
        warnings.append("a crossing of the line has no limit on one side: a, b and their errors are a guess")
    if regression.dof:
        trusted = line is not None and all(found[i].status == "bracketed" for i in usable)
        warnings += _hangs_on_one(runs, counting, slope, noise, line if trusted else None, found)
    resamples: Floats = np.zeros((0, 0))
    if line is not None:
        whole = roots[:, usable][~np.isnan(roots[:, usable]).any(axis=1)]
        resamples = np.array([line.again(each) for each in whole]).reshape(len(whole), len(line.names))
    made = TransitionFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=line.names if line else (),
        values=tuple(map(float, line.values)) if line else (),
        covariance=rows(line.covariance) if line else (),
        dof=regression.dof if not (curves.dofs and line) else _least_freedom(curves, [found[i] for i in usable]),
        resamples=rows(resamples) if line else (),
        residuals=residual_table(
            runs, counting, regression.y, regression.fitted, regression.residuals, regression.leverage
        ),
        noise=curves.noise,
        seed_noise=regression.between_seeds,
        noise_by_depth=by_depth if noise == "depth" else None,
        params_range=(float(runs.size(counting).min()), float(runs.size(counting).max())),
        depth_range=(float(min(curves.depths)), float(max(curves.depths))),
        embedding_share=share_range(runs.embedding_share),
        notes=runs.notes,
        warnings=tuple(warnings),
        curves=curves,
        pairs=tuple(found),
        used=tuple(usable),
        placed=line.placed if line else None,
        slope=slope,
    )
    law = made.law()
    if law is None:
        return made
    # A drift, because the fitted line is not quite where the bowls of all sizes have their minima.
    about = (
        fit_ridge(runs, base=law, counting=counting, drift=True, bootstrap=0, noise=noise)
        if regression.dof > 1
        else None
    )
    return made.model_copy(update={"bowl": about.bowl() if about else None})


def _pair(curves: Curves, shallow: int, deep: int) -> Pair:
    low, high = curves.common(shallow, deep)
    names = f"{shallow} and {deep} layers"
    if low >= high:
        return Pair(shallow, deep, "none", None, None, None, "undecided", f"{names}: no sizes in common.")
    bare = Pair(shallow, deep, "none", None, None, None, "undecided", "")
    log_root = _root(curves, np.array(curves.theta), bare)
    sizes = np.array(sorted({s for d in (shallow, deep) for s in curves.sizes[curves.depths.index(d)]}))
    sizes = sizes[(sizes >= low * 0.999) & (sizes <= high * 1.001)]
    delta, error = curves.difference(shallow, deep, sizes)
    if np.max(np.abs(delta)) < NOTHING:
        return bare._replace(words=f"{names}: no crossing; their losses are the same at every size.")
    sure = _sure(len(sizes), curves.freedom(shallow, deep, sizes)) * error  # for all these sizes together
    shallow_wins, deep_wins = delta < -sure, delta > sure
    verdict: Seen
    if not curves.dof:
        verdict, regime = "undecided", "without repeated sizes or seeds there is no error to judge by"
    elif deep_wins.all() or shallow_wins.all():
        verdict, regime = "not seen", f"the {'deeper' if deep_wins.all() else 'shallower'} wins at every size"
    elif not (shallow_wins.any() and deep_wins.any()):
        verdict, regime = "undecided", "over all sizes together the gap is within its error at one end or both"
    else:
        in_order = sizes[shallow_wins].min() < sizes[deep_wins].max()
        back = sizes[shallow_wins].max() > sizes[deep_wins].max()
        verdict = "not seen" if not in_order else "undecided" if back else "seen"
        regime = f"the shallower surely wins at {_at(sizes[shallow_wins])}, the deeper at {_at(sizes[deep_wins])}"
        if back and in_order:
            below = shallow_wins & (sizes < sizes[deep_wins].min())
            again = f"{_at(sizes[below])} and again at {_at(sizes[shallow_wins & ~below])}"
            regime = f"the shallower surely wins at {again}, the deeper at {_at(sizes[deep_wins])}"
    bare = bare._replace(verdict=verdict)
    if math.isnan(log_root):
        falls = math.exp(_root(curves, np.array(curves.theta), bare, rising=False))
        if low <= falls <= high:
            said = (
                f"the deeper wins up to {show_count(round(falls))} and the shallower beyond, the reverse of two regimes"
            )
        else:
            who = "deeper" if delta[-1] > 0 else "shallower"
            said = f"no crossing; the {who} has the lower loss over the sizes trained"
        return bare._replace(words=f"{names}: {said} ({regime}).")
    size = math.exp(log_root)
    left, right = _limits(curves, shallow, deep, log_root)
    if curves.dof and curves.alike(shallow, deep) > 0.05:
        return bare._replace(words=f"{names}: no crossing shown; their curves cannot be told apart.")
    status: Status = "bracketed" if low <= size <= high else "extrapolated"
    falls = math.exp(_root(curves, np.array(curves.theta), bare, rising=False))
    until = falls if size < falls <= high else None
    limits = " to ".join(show_count(round(v)) if v else "no limit" for v in (left, right))
    span = f"from {show_count(round(size))} " + (f"to {show_count(round(until))} only" if until else "on")
    words = f"{names}: the deeper wins {span} ({limits}), {status}; {regime}."
    return Pair(shallow, deep, status, size, left, right, verdict, words, until)


def _least_freedom(curves: Curves, pairs: list[Pair]) -> int:
    """Of the depths that the line's crossings hang on, the degrees of freedom of the one that knows its noise least."""
    depths = {depth for pair in pairs for depth in (pair.shallow, pair.deep)}
    return max(1, int(min(curves.dofs[curves.depths.index(depth)] for depth in depths)))


def _resampled(pair: Pair, log_roots: Floats) -> Pair:
    """The pair with what the resamples say of its crossing."""
    there = np.exp(log_roots[~np.isnan(log_roots)])
    if len(there) < 20:
        return pair
    low, high = np.percentile(there, [2.5, 97.5])
    return pair._replace(vanished=1 - len(there) / len(log_roots), resampled=(float(low), float(high)))


def _root(curves: Curves, theta: Floats, pair: Pair, rising: bool = True) -> float:
    """ln N at which the deeper starts to win, or stops, in the data or not far outside; NaN without such a size."""
    i, j = (3 * curves.depths.index(depth) for depth in (pair.shallow, pair.deep))
    c, b, a = theta[i : i + 3] - theta[j : j + 3]
    low, high = (math.log(size / curves.centre) for size in curves.common(pair.shallow, pair.deep))
    if abs(a) * (high - low) ** 2 < 1e-12 * (abs(b) * (high - low) + abs(c)):
        roots = [-c / b] if b else []
    else:
        square = b * b - 4 * a * c
        roots = [] if square < 0 else [(-b - math.sqrt(square)) / (2 * a), (-b + math.sqrt(square)) / (2 * a)]
    found = [x for x in roots if (b + 2 * a * x > 0) == rising and low - REACH <= x <= high + REACH]
    if not found:
        return math.nan
    return float(math.log(curves.centre) + min(found, key=lambda x: max(low - x, x - high, 0.0)))


def _limits(curves: Curves, shallow: int, deep: int, log_root: float) -> tuple[float | None, float | None]:
    """Sizes around the root at which δ = 0 is not refused at 95% (Fieller 1954); None: not limited by the data."""
    if not curves.dof:
        return None, None
    steps = np.linspace(0, SPAN, 4001)
    found: list[float | None] = []
    for sign in (-1, 1):
        sizes = np.exp(log_root + sign * steps)
        delta, error = curves.difference(shallow, deep, sizes)
        outside = np.flatnonzero(np.abs(delta) > _sure(1, curves.freedom(shallow, deep, sizes)) * error)
        found.append(math.exp(log_root + sign * float(steps[outside[0]])) if outside.size else None)
    return found[0], found[1]


def _sure(number: int, dof: Floats) -> Floats:
    """How many standard errors are beyond chance, at 95% for so many comparisons together."""
    from scipy.special import stdtrit

    return np.where(dof >= 1, stdtrit(np.maximum(dof, 1.0), 1 - 0.025 / number), math.inf)


def _few(size: float | None) -> str:
    return "no limit" if size is None or size > 1e15 else show_count(round(size))


def _at(sizes: Floats) -> str:
    ends = dict.fromkeys(show_count(round(float(s))) for s in (sizes.min(), sizes.max()))
    return " to ".join(ends)


class _Line(NamedTuple):
    """ln d = a + b·L through crossings."""

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    placed: tuple[tuple[float, float], tuple[float, float]]
    depths: Floats
    weights: Floats
    slope: float | None

    @classmethod
    def through(cls, curves: Curves, pairs: list[Pair], slope: float | None) -> "_Line":
        L = np.array([pair.depth for pair in pairs])
        log_size = np.log([pair.size or math.nan for pair in pairs])
        J = []
        for pair, x in zip(pairs, log_size, strict=True):
            g = (curves.gradient(pair.shallow, math.exp(x)) - curves.gradient(pair.deep, math.exp(x)))[0]
            i, j = (3 * curves.depths.index(depth) for depth in (pair.shallow, pair.deep))
            theta = np.array(curves.theta)
            _, b, a = theta[i : i + 3] - theta[j : j + 3]
            J.append(-g / (b + 2 * a * (x - math.log(curves.centre))))
        C = np.array(J) @ np.array(curves.covariance) @ np.array(J).T / 4  # of ln d at given L
        free = slope is None
        D = np.column_stack([np.ones_like(L), L]) if free else np.ones((len(L), 1))
        tau = np.array([PLACEMENT * math.log(pair.deep / pair.shallow) for pair in pairs])
        b = 0.05 if slope is None else slope
        weights = values = np.zeros(0)
        for _ in range(50):  # the error in L counts by the slope, which it helps to find
            E = np.diag(((0.5 + b * L) * tau) ** 2)
            W = np.linalg.inv(C + E + 1e-18 * np.eye(len(L)))
            weights = np.linalg.solve(D.T @ W @ D, D.T @ W)
            values = weights @ cls._targets(log_size, L, slope)
            if not free or abs(values[1] - b) < 1e-12:
                break
            b = float(values[1])
        placed = np.zeros((2, 2))
        placed[: len(values), : len(values)] = weights @ (C + E) @ weights.T
        names = ("a", "b") if free else ("a",)
        (aa, ab), (_, bb) = placed.tolist()
        return cls(names, values, weights @ C @ weights.T, ((aa, ab), (ab, bb)), L, weights, slope)

    @staticmethod
    def _targets(log_size: Floats, L: Floats, slope: float | None) -> Floats:
        return np.asarray((log_size - np.log(BLOCK_MATRICES * L)) / 2 - (0.0 if slope is None else slope * L))

    def again(self, log_size: Floats) -> Floats:
        """The same line through other crossings of the same pairs."""
        return np.asarray(self.weights @ self._targets(log_size, self.depths, self.slope))


def _verdict(pairs: tuple[Pair, ...] | list[Pair]) -> tuple[Seen, str]:
    seen = [pair for pair in pairs if pair.verdict == "seen"]
    if not seen:
        if all(pair.verdict == "not seen" for pair in pairs):
            return "not seen", "For no pair does the shallower surely win at small sizes and the deeper at larger ones."
        return (
            "undecided",
            "No pair shows the shallower surely winning at small sizes and the deeper from some size on.",
        )
    names = joined([f"{pair.shallow}/{pair.deep}" for pair in seen])
    ordered = sorted((pair for pair in pairs if pair.size), key=lambda pair: pair.depth)
    moving = [
        f"the crossing of {q.shallow}/{q.deep} {_moves(p, q)} that of {p.shallow}/{p.deep}"
        for p, q in pairwise(ordered)
    ]
    return "seen", f"Both show for {names}" + (f"; {joined(moving)}." if moving else ".")


def _moves(first: Pair, second: Pair) -> str:
    assert first.size is not None
    assert second.size is not None
    if second.low and first.high and second.low > first.high:
        return "lies at larger sizes than"
    if second.high and first.low and second.high < first.low:
        return "lies at smaller sizes than"
    return "cannot be told apart from"


def _warnings(pairs: list[Pair], curves: Curves, regression: Regression, runs: Runs, counting: Counting) -> list[str]:
    said = []
    leverage, seed_noise = regression.leverage, regression.between_seeds
    for pair in pairs:
        if pair.status == "extrapolated":
            said.append(f"the crossing of {pair.shallow} and {pair.deep} layers lies outside the sizes trained")
        if pair.vanished and pair.vanished > 0.05:
            said.append(
                f"{pair.vanished:.0%} of the resamples have no crossing of {pair.shallow} and {pair.deep} layers"
            )
    if curves.noise > MISFIT * (seed_noise or math.inf):
        said.append(
            f"the curves miss shapes by {curves.noise / (seed_noise or 1):.0f} times what seeds differ: a parabola "
            "does not fit so many sizes; fit fewer (--where 'block_params>…')"
        )
    if curves.dof < 3:
        said.append(f"only {curves.dof} cells more than parameters: errors mean little; train more sizes or seeds")
    decided = np.flatnonzero(leverage > 0.95)
    if decided.size:
        row = decided[0]
        said.append(
            f"{len(set(runs.cells[decided].tolist()))} cells decide their own fit (leverage above 0.95), first depth "
            f"{runs.depth[row]:g} at {show_count(round(float(runs.size(counting)[row])))}"
        )
    share = share_range(runs.embedding_share)
    if share is not None and share[1] > 0.5:
        said.append(f"up to {share[1]:.0%} of the parameters are embeddings: at the small end they are the confound")
    return said


def _hangs_on_one(
    runs: Runs, counting: Counting, slope: float | None, noise: Noise, line: _Line | None, pairs: list[Pair]
) -> list[str]:
    """Leave each cell out: does a crossing vanish, or it or the law move by more than its own error?"""
    cells = runs.cells
    vanish: dict[str, list[str]] = {}
    move: dict[str, list[str]] = {}
    for cell in np.unique(cells):
        first = int(np.flatnonzero(cells == cell)[0])
        what = f"depth {runs.depth[first]:g} at {show_count(round(float(runs.size(counting)[first])))}"
        try:
            curves, _, _ = fit_curves(runs.select(cells != cell), counting, noise)
        except DeepwideError:
            curves = None
        for pair in pairs:
            if pair.status != "bracketed" or runs.depth[first] not in (pair.shallow, pair.deep):
                continue
            name = f"the crossing of {pair.shallow} and {pair.deep} layers"
            size = _size_again(curves, pair)
            if size is None:
                vanish.setdefault(name, []).append(what)
            elif (pair.low and size < pair.low) or (pair.high and size > pair.high):
                move.setdefault(name, []).append(what)
        if line is not None:
            values = _line_again(curves, slope)
            if values is None:
                vanish.setdefault("the law", []).append(what)
            elif np.any(np.abs(values - line.values) > Z95 * np.sqrt(np.diag(line.placed)[: len(values)])):
                move.setdefault("the law", []).append(what)
    return [
        *(
            f"{name} hangs on one cell: without {' or without '.join(those)} there is none"
            for name, those in vanish.items()
        ),
        *(f"{name} moves by more than its error without {' or without '.join(those)}" for name, those in move.items()),
    ]


def _size_again(curves: Curves | None, pair: Pair) -> float | None:
    """The pair's crossing in other curves, None where they have none among their sizes."""
    if curves is None or not {pair.shallow, pair.deep} <= set(curves.depths):
        return None
    low, high = curves.common(pair.shallow, pair.deep)
    size = math.exp(_root(curves, np.array(curves.theta), pair)) if low < high else math.nan
    return size if low <= size <= high else None


def _line_again(curves: Curves | None, slope: float | None) -> Floats | None:
    """a and b through the crossings of other curves, None where these do not give a line."""
    if curves is None:
        return None
    bare = [Pair(*depths, "none", None, None, None, "undecided", "") for depths in pairwise(curves.depths)]
    usable = [pair._replace(size=size) for pair in bare if (size := _size_again(curves, pair)) is not None]
    return _Line.through(curves, usable, slope).values if len(usable) >= (2 if slope is None else 1) else None
