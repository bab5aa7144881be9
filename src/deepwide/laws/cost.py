"""What a wrong depth costs: in loss by the law's own runs or else by all public sets together, in time by Gemstones.

`pooled.json` is written by `benchmarks/evidence.py`: a law of the best depth, and the curvature of ln loss in ln depth
about it. `gemstones.json` is written by `benchmarks/derive_gemstones.py`: node-seconds per step grow like depth^c.
"""

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from deepwide.answers import Z95, Interval, Note
from deepwide.laws.book import find_law, pooled_law, transition_law
from deepwide.laws.kinds import JointLaw
from deepwide.laws.law import Bowl, DepthLaw, within
from deepwide.quantities import ArrayLike, Floats, show_count


@cache
def _measured() -> dict[str, Any]:
    text = files(__package__).joinpath("gemstones.json").read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result


@cache
def pooled_bowl() -> Bowl:
    """The bowl of a law that has none of its own: about the pooled best depth, whose error is an error of the cost."""
    law = pooled_law()
    assert law.bowl is not None
    return law.bowl.model_copy(update={"reference": law.name, "sizes": law.fitted_block_params})


def bowl_of(law: DepthLaw | None = None) -> Bowl:
    """The bowl by which another depth than the law's is priced: its own, or else the pooled one."""
    return pooled_bowl() if law is None or law.bowl is None else law.bowl


def _reference(law: DepthLaw | None) -> DepthLaw:
    name = bowl_of(law).reference
    if not name and law is not None:
        return law
    reference = find_law(name or None)
    return reference if isinstance(reference, DepthLaw) else transition_law()


def depth_cost(depth: float, instead_of: float, block_params: float, law: DepthLaw | None = None) -> Interval | None:
    """Extra loss, in percent, of one depth instead of another at equal block parameters; None far beyond the data."""
    return shape_cost(depth, block_params, (instead_of, block_params), law)


def shape_cost(depth: float, params: float, than: tuple[float, float], law: DepthLaw | None = None) -> Interval | None:
    """Extra loss, in percent, that a shape of this depth and so many block parameters owes to its depth, compared with
    what another shape (its depth, its block parameters) owes to its own; None far beyond the data.

    Each depth is seen against the best one of its own size, so what the two sizes are worth is left out.
    """
    if isinstance(law, JointLaw):
        return law.cost_of(depth, params, than)
    bowl = bowl_of(law)
    curve = _reference(law).depth([params, than[1]])
    best, other = curve.at(0), curve.at(1)
    place_error = 0.0
    if bowl.covariance is None:  # neither how steep the bowl is nor where it has its minimum is known exactly
        limits = [(limit, place.value) for place in (best, other) for limit in (place.low, place.high) if limit]
        place_error = max((abs(math.log(limit / value)) for limit, value in limits), default=0.0)
    return bowl.cost(math.log(depth / best.value), math.log(than[0] / other.value), place_error)


def shape_costs(depths: ArrayLike, params: ArrayLike, than: tuple[float, float], law: DepthLaw | None = None) -> Floats:
    """`shape_cost` of many shapes at once, without its interval; NaN far beyond the data."""
    L, N = (np.atleast_1d(np.asarray(values, dtype=float)) for values in (depths, params))
    if isinstance(law, JointLaw):
        return law.costs_of(L, N, than)
    best, other = _reference(law).depth(N).value, _reference(law).depth_at(than[1])
    return np.asarray(100 * np.expm1(bowl_of(law).log_ratio(np.log(L / best), math.log(than[0] / other))))


def own_costs(depths: ArrayLike, params: ArrayLike, law: DepthLaw) -> Floats:
    """ln of the loss over that of the law's own best depth at each size, if the law is right.

    How steep it is comes from the law's own runs or else from all public sets; where its minimum is, from the law. Far
    beyond the data it is a cautious guess, for choosing between shapes of very different sizes.
    """
    L, N = np.broadcast_arrays(*(np.atleast_1d(np.asarray(values, dtype=float)) for values in (depths, params)))
    centre = law if law.bowl is None else _reference(law)
    return bowl_of(law).above_best(np.log(L / centre.depth(N.ravel()).value.reshape(N.shape)))


def own_cost(depth: float, params: float, than: tuple[float, float], law: DepthLaw) -> Interval | None:
    """`shape_cost` if the law is right about the best depth of every size: its interval is that of the steepness."""
    if isinstance(law, JointLaw) or law.bowl is not None:
        return shape_cost(depth, params, than, law)
    return bowl_of(law).cost(math.log(depth / law.depth_at(params)), math.log(than[0] / law.depth_at(than[1])))


def own_shape_costs(depths: ArrayLike, params: ArrayLike, than: tuple[float, float], law: DepthLaw) -> Floats:
    """`own_cost` of many shapes at once, without its interval; NaN far beyond the data."""
    if isinstance(law, JointLaw) or law.bowl is not None:
        return shape_costs(depths, params, than, law)
    L, N = (np.atleast_1d(np.asarray(values, dtype=float)) for values in (depths, params))
    ratio = bowl_of(law).log_ratio(np.log(L / law.depth(N).value), math.log(than[0] / law.depth_at(than[1])))
    return np.asarray(100 * np.expm1(ratio))


def measured_optimum(block_params: float) -> Interval:
    """Where all public sets together put the best depth at this size: wide, since that is what the data know."""
    return pooled_law().depth(block_params).at()


def outside_the_data(depth: float, block_params: float, law: DepthLaw | None = None) -> Note | None:
    """Why `depth_cost` is an extrapolation here, or None when it is not."""
    bowl = bowl_of(law)
    own = law is not None and law.bowl is not None
    verb = "fitted" if own else "measured"
    sizes = bowl.sizes or (law.fitted_block_params if law is not None else None)
    if sizes is not None and not within(block_params, sizes):
        small, large = (show_count(size, 3 if own else 2) for size in sizes)
        text = f"{verb} from {small} to {large} block parameters only"
        return Note.of("cost-extrapolated-size", text, smallest=sizes[0], largest=sizes[1])
    if not bowl.covers(math.log(depth / _reference(law).depth_at(block_params))):
        low, high = map(math.exp, bowl.x_range)
        text = f"{verb} from {low:.2f} to {high:.1f} times the best depth only"
        return Note.of("cost-extrapolated-depth", text, lowest=low, highest=high)
    return None


def step_time_ratio(depth: float, instead_of: float) -> Interval:
    """Node-time per training step of one depth over another at equal FLOPs."""
    time = _measured()["step_time"]
    x = math.log(depth / instead_of)
    value, error = time["c2"] * x, Z95 * time["c2_se_with_choices"] * abs(x)
    return Interval(math.exp(value), math.exp(value - error), math.exp(value + error))
