"""What a reader of a joint fit must beware of: what is assumed, what the model misses, shapes that decide alone."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from deepwide.answers import Z95, Interval, Note
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions
from deepwide.fitting.inference import Posterior, infer
from deepwide.fitting.misfit import misfit_factors
from deepwide.fitting.mixed import KERNELS, Cells
from deepwide.fitting.model import Design, log_loss
from deepwide.fitting.regression import as_tuples, variance_inflation
from deepwide.fitting.runs import Runs
from deepwide.fitting.words import note

if TYPE_CHECKING:
    from deepwide.fitting.joint_answer import JointFit

FEWEST_DRAWS = 200
END_IS_THIN = math.log(2) / 2  # in ln size: that the best depth is not seen at the largest sizes
CORRELATED = 0.7  # probability from which a correlated misfit is mentioned; 0.39 before any run
ASSUMED = 0.9  # a posterior as wide as its prior
FEW_CELLS = 4  # beyond the parameters
TOO_CORRELATED = 30.0  # variance inflation of ln depth, ln tokens or the embeddings' share that is mentioned
MISSES = 0.01  # chance of a lack of fit as large, below which it is mentioned
OF_A_BEST_DEPTH = ("end-thin", "bowl-skewed", "skew-assumed", "growth-assumed")  # warned of only where there is one
FAR_LENGTH = 2.0  # times the longest, or the shortest over it
APART = math.log(2.5)  # in ln depth or ln size: from all other runs
VERY_FAR = math.log(4)
MOVED = 0.5  # standard deviations


Again = Callable[[Runs, int], "JointFit"]  # the same fit to other runs, with so many draws


def about_runs(fit: "JointFit", runs: Runs, again: Again) -> tuple[Note, ...]:
    """A shape far from all others, a best depth that no run has, and runs that diverged if they decide."""
    usual = [each for each in fit.warnings if not (fit.declined and each.code in OF_A_BEST_DEPTH)]
    about = (*usual, *_beyond(fit, runs), *_length_beyond(fit))
    return (*_apart(fit, runs, again), *about, *_diverged(fit, runs, again))


def about_assumptions(
    runs: Runs, inferred: Posterior, design: Design, cells: Cells, centre: float, known: tuple[float, float]
) -> list[Note]:
    """What a careful reader must know."""
    notes = []
    mixture, names = inferred.mixture, inferred.names
    place = float(inferred.mode[names.index("depth")])
    if not design.x.min() <= place <= design.x.max():
        notes.append(note("minimum-outside"))
    if design.s.max() - known[1] > END_IS_THIN:
        largest, end = (centre * math.exp(s) for s in (float(design.s.max()), known[1]))
        notes.append(note("end-thin", largest=largest, known=end))
    kernels = tuple(misfit_factors(design))
    missed = [name in ("smooth", "depth") for name in kernels]
    correlated = float(mixture.weights[(mixture.settings[:, KERNELS:][:, missed] > 0).any(axis=1)].sum())
    if correlated > CORRELATED:
        notes.append(note("misfit-correlated", probability=correlated))
    rest = [np.ones_like(design.s), design.s]
    if (inflation := variance_inflation(design.x, rest)) > TOO_CORRELATED:
        notes.append(note("depth-collinear", inflation=inflation))
    if design.t is not None:
        inflation = variance_inflation(design.t, [*rest, *([] if design.e is None else [design.e])])
        if inflation > TOO_CORRELATED:
            notes.append(note("ladder", inflation=inflation))
    if design.e is not None and (inflation := variance_inflation(design.e, [*rest, design.x])) > TOO_CORRELATED:
        notes.append(note("embeddings-collinear", inflation=inflation))
    notes += _lack_of_fit(inferred, design, cells)
    i = names.index("skew")
    skew, error = float(mixture.mean[i]), math.sqrt(mixture.covariance[i, i])
    if abs(skew) > 2 * error:
        notes.append(note("bowl-skewed", skew=skew))
    if error > ASSUMED * inferred.prior_sd[i]:
        notes.append(note("skew-assumed"))
    i = names.index("growth")
    if math.sqrt(mixture.covariance[i, i]) > ASSUMED * inferred.prior_sd[i]:
        notes.append(note("growth-assumed", times=math.exp(np.ptp(design.s))))
    if len(cells.y) - len(names) < FEW_CELLS:
        notes.append(note("few-cells", cells=len(cells.y), parameters=len(names)))
    about = (cautions.about_losses, cautions.about_tokens, cautions.about_blocks, cautions.about_totals)
    notes += [each for caution in about for each in caution(runs)]
    return [*notes, *([] if "run" in kernels else cautions.about_checkpoints(runs))]


def _lack_of_fit(inferred: Posterior, design: Design, cells: Cells) -> list[Note]:
    """Whether shapes miss the model by more than seeds differ: an F test (Fisher 1922)."""
    from scipy.special import fdtrc

    spare = len(cells.y) - len(inferred.names)
    falls = float(inferred.mixture.weights @ inferred.mixture.settings[:, 1])
    cells = cells._replace(t=design.t)
    between, repeats = cells.between_seeds(falls), float(cells.within_dof.sum())
    if repeats < 1 or spare < 1 or not between:
        return []
    off = (cells.y - log_loss(inferred.names, inferred.mode[None], design)[0]) / cells.falling(falls)
    weights = 1 / (cells.M if cells.M.ndim == 1 else np.diag(cells.M))
    ratio = float(weights @ off**2) / spare / between**2
    if fdtrc(spare, repeats, ratio) > MISSES:
        return []
    return [note("lack-of-fit", ratio=math.sqrt(ratio))]


def with_wider_bend(fit: "JointFit", cells: Cells, design: Design, seed: int) -> Interval | None:
    """The best depth at ten times the largest size if the bend's prior were twice as wide."""
    if fit.declined:
        return None
    try:
        wider = infer(cells, design, number=len(fit.resamples), seed=seed, widened={"bend": 2.0})
    except np.linalg.LinAlgError:
        return None
    again = fit.model_copy(update={"resamples": as_tuples(wider.draws)})
    return None if len(wider.draws) < FEWEST_DRAWS else again.best_depth(10 * fit.params_range[1])[0]


def _beyond(fit: "JointFit", runs: Runs) -> list[Note]:
    """Whether the best depth of the largest size lies outside all depths that were run."""
    if fit.declined:
        return []
    size = fit.params_range[1]
    best = fit.best_depth(size)[0].value
    for side, depth in (("deepest", float(runs.depth.max())), ("shallowest", float(runs.depth.min()))):
        if best > depth if side == "deepest" else best < depth:
            return [note("best-beyond-depths", size=size, best=best, depth=depth, side=side)]
    return []


def _length_beyond(fit: "JointFit") -> list[Note]:
    """Whether the best depth is stated for a length far from those of the runs."""
    at, slope = fit.line
    if fit.declined or fit.centre_tokens is None or fit.tokens_range is None or slope:
        return []
    length, (low, high) = fit.centre_tokens * math.exp(at), fit.tokens_range
    if low / FAR_LENGTH <= length <= high * FAR_LENGTH:
        return []
    return [note("length-beyond", length=length, low=low, high=high)]


def _diverged(fit: "JointFit", runs: Runs, again: Again) -> list[Note]:
    """Whether the best depth of the largest size moves out of its interval without the runs that diverged."""
    if fit.declined or not fit.diverged:
        return []
    try:
        others = again(runs.select(~runs.diverged), len(fit.resamples))
    except DeepwideError:
        return []
    if others.declined:
        return [note("diverged-decide", count=fit.diverged, size=None, best=None, low=None, high=None)]
    size = fit.params_range[1]
    stated, without = fit.best_depth(size)[0], others.best_depth(size)[0]
    if (stated.low or 0.0) <= without.value <= (stated.high or math.inf):
        return []
    best = {"best": without.value, "low": without.low, "high": without.high}
    return [note("diverged-decide", count=fit.diverged, size=size, **best)]


def _apart(fit: "JointFit", runs: Runs, again: Again) -> list[Note]:
    """A single shape whose depth or size is far from all others': it may be a typing error, which no loss shows.

    It is named if without it nothing can be stated, or the best depth of the others' largest size is another by half a
    standard deviation; a depth that is very far, always.
    """
    if fit.declined:
        return []
    size = runs.size(fit.counting)
    for what, column in (("depth", runs.depth), ("size", size)):
        values = np.unique(np.log(column))
        for end, next_to_it in ((values[-1], values[-2]), (values[0], values[1])) if len(values) > 1 else ():
            here = np.abs(np.log(column) - end) < 1e-9
            if abs(end - next_to_it) < APART or len(np.unique(runs.groups[here])) > 1:
                continue
            at = float(size[~here].max())
            shape = {"what": what, "depth": float(runs.depth[here][0]), "size": float(size[here][0])}
            try:
                others = again(runs.select(~here), FEWEST_DRAWS)
                without = None if others.declined else others.best_depth(at)[0]
            except DeepwideError:
                without = None
            very_far = what == "depth" and abs(end - next_to_it) > VERY_FAR
            if without is None or very_far or _moved(fit.best_depth(at)[0], without) > MOVED:
                best = (without.value, without.low, without.high) if without else (None, None, None)
                return [note("shape-apart", **shape, at=at, best=best[0], low=best[1], high=best[2])]
    return []


def _moved(one: Interval, other: Interval) -> float:
    """How far apart two depths lie, in standard deviations of the other's logarithm."""
    error = math.log(other.high / other.low) / (2 * Z95) if other.low and other.high else 1.0
    return abs(math.log(one.value / other.value)) / max(error, 1e-9)
