"""Fits in words: each crossing in a sentence, the headline of each kind, and the whole as text."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from deepwide.answers import Z95, Interval
from deepwide.fitting.crossings import Crossing
from deepwide.fitting.words import joined, noise_by_depth, show_depth, show_interval, show_size
from deepwide.laws import transition_law, without_limit
from deepwide.quantities import plural, show_count

if TYPE_CHECKING:
    from deepwide.fitting.answer import Fit
    from deepwide.fitting.joint_answer import JointFit, Prior
    from deepwide.fitting.ridge import RidgeFit
    from deepwide.fitting.surface import SurfaceFit
    from deepwide.fitting.transition import TransitionFit


def summarise(fit: "Fit", hints: Mapping[str, str]) -> str:
    """What the fit says, its parameters with errors, what to beware of."""
    lines = [*fit.headline(), ""]
    width = max((len(name) for name in fit.names), default=4)
    estimates = fit.interval_kinds
    priors = getattr(fit, "priors", {})
    if fit.names:
        heads = [f"{f'95% {by}':>25}" for by in estimates] + ([f"{'assumed':>18}", "from runs"] if priors else [])
        lines.append(f"{'':{width}}  {'estimate':>11} {'std. error':>11} {' '.join(heads)}")
    for name in fit.names:
        error = f"{fit.standard_errors[name]:.3g}" if fit.dof else "–"
        ranges = [f"{_range(fit.interval(name, by)):>25}" for by in estimates]
        if priors:
            ranges += _assumed(priors.get(name), fit.standard_errors[name])
        lines.append(f"{name:{width}}  {fit[name]:>11.5g} {error:>11} {' '.join(ranges)}")
    count = f"{fit.runs} runs" + (f", {fit.diverged} of them diverged" if fit.diverged else "")
    noise = noise_by_depth(fit.noise_by_depth) if fit.noise_by_depth else f"{100 * fit.noise:.2g}% of loss"
    if fit.seed_noise is not None:
        noise += f" ({100 * fit.seed_noise:.2g}% between seeds)"
    noise += fit.noise_elsewhere()
    drawn = "draws of the posterior" if fit.estimated_by == "posterior" else "resamples"
    lines += [*([""] if fit.names else []), f"{count}; noise {noise}; {len(fit.resamples)} {drawn}"]
    if fit.embedding_share is not None and fit.embedding_share[0] >= 0:
        low, high = fit.embedding_share
        lines.append(f"Embeddings are {100 * low:.2g} to {100 * high:.2g}% of the parameters.")
    for word, notes in (("Warning", fit.warnings), ("Note", fit.notes)):
        lines += [f"{word}: {note}" + (f" [{hints[note.code]}]" if note.code in hints else "") for note in notes]
    return "\n".join(lines)


def _assumed(prior: "Prior | None", error: float) -> list[str]:
    """A prior, and the share of the doubt in it that the runs have removed."""
    if prior is None:
        return [f"{'nothing':>18}", f"{'100%':>9}"]
    learnt = max(0.0, 1 - (error / prior.sd) ** 2)
    return [f"{f'{prior.mean:.3g} ± {prior.sd:.2g}':>18}", f"{learnt:>9.0%}"]


def crossing_sentence(crossing: Crossing) -> str:
    """Two depths in a sentence."""
    names = f"{crossing.shallow} and {crossing.deep} layers"
    if crossing.absent == "no sizes in common":
        return f"{names}: no sizes in common."
    if crossing.absent == "equal losses":
        return f"{names}: no crossing; their losses are the same at every size."
    if crossing.absent == "same curve":
        return f"{names}: no crossing shown; their curves cannot be told apart."
    if crossing.absent == "reversed":
        until = show_size(crossing.until)
        reverse = f"the deeper wins up to {until} and the shallower beyond, the reverse of two regimes"
        return f"{names}: {reverse} ({_evidence(crossing)})."
    if crossing.size is None:
        lower = "deeper" if crossing.lower == "deep" else "shallower"
        return f"{names}: no crossing; the {lower} has the lower loss over the sizes trained ({_evidence(crossing)})."
    limits = " to ".join(show_count(round(end)) if end else "no limit" for end in (crossing.low, crossing.high))
    end = f"to {show_size(crossing.until)} only" if crossing.until else "on"
    span = f"from {show_count(round(crossing.size))} {end} ({limits})"
    return f"{names}: the deeper wins {span}, {crossing.status}; {_evidence(crossing)}."


def _evidence(crossing: Crossing) -> str:
    if crossing.evidence == "no error":
        return "without repeated sizes or seeds there is no error to judge by"
    if crossing.evidence in ("deeper everywhere", "shallower everywhere"):
        return f"the {crossing.evidence.split()[0]} wins at every size"
    if crossing.evidence == "within error":
        return "over all sizes together the gap is within its error at one end or both"
    shallow, deep = crossing.shallow_wins, crossing.deep_wins
    where = _ends(shallow)
    if crossing.wins_again:
        below = [size for size in shallow if size < min(deep)]
        where = f"{_ends(below)} and again at {_ends([size for size in shallow if size not in below])}"
    return f"the shallower surely wins at {where}, the deeper at {_ends(deep)}"


def regimes(fit: "TransitionFit") -> str:
    """Why the two regimes are seen, not seen or undecided."""
    seen = [crossing for crossing in fit.crossings if crossing.regimes == "seen"]
    if not seen and fit.outcome == "not seen":
        return "For no pair does the shallower surely win at small sizes and the deeper at larger ones."
    if not seen:
        return "No pair shows the shallower surely winning at small sizes and the deeper from some size on."
    names = joined([f"{crossing.shallow}/{crossing.deep}" for crossing in seen])
    ordered = sorted((crossing for crossing in fit.crossings if crossing.size), key=lambda crossing: crossing.depth)
    moving = [
        f"the crossing of {q.shallow}/{q.deep} {_moves(p, q)} that of {p.shallow}/{p.deep}"
        for p, q in pairwise(ordered)
    ]
    return f"Both show for {names}" + (f"; {joined(moving)}." if moving else ".")


def _moves(first: Crossing, second: Crossing) -> str:
    if second.low and first.high and second.low > first.high:
        return "lies at larger sizes than"
    if second.high and first.low and second.high < first.low:
        return "lies at smaller sizes than"
    return "cannot be told apart from"


def transition_headline(fit: "TransitionFit") -> list[str]:
    """Each pair in a sentence, the line, the comparison with the paper's."""
    lines = [crossing_sentence(crossing) for crossing in fit.crossings]
    lines.append(f"Two regimes: {fit.outcome}. {regimes(fit)}")
    if not fit.used:
        enough = "two crossings, or one and an assumed slope" if fit.slope is None else "one crossing"
        return [*lines, f"No law: a line needs {enough}."]
    paper = transition_law()
    a, b, errors = fit["a"], fit.b, fit.standard_errors
    slope = f"b = {b:.4g} ± {errors['b']:.2g}" if fit.slope is None else f"b = {b:.4g} assumed"
    lines.append(
        f"ln width = a + b·depth: a = {a:.4g} ± {errors['a']:.2g}, {slope} (the paper: {paper.a:g}, {paper.b:g})."
    )
    if fit.law() is not None:
        sizes = [(depth, fit.transition(depth)) for depth in fit.crossed]
        parts = [f"{show_size(i.value)} ({show_size(i.low)} to {show_size(i.high)}) for {depth}" for depth, i in sizes]
        lines.append(f"N_transition, from which more layers pay: {joined(parts)}.")
    if fit.counting == "total":
        lines.append("These are total parameters, and plan's laws count blocks: no law for plan.")
    elif fit.law() is None and b <= 0:
        lines.append("The crossings do not move to larger widths with depth: these runs give no law for plan.")
    elif fit.law() is None:
        lines.append(f"a = {a:.3g} is outside −20 to 20: these are no sizes of networks, and there is no law for plan.")
    return lines


def joint_headline(fit: "JointFit") -> list[str]:
    """The best depth in the runs' middle, at their largest size and beyond; what another depth costs."""
    if fit.declined:
        return [f"No best depth: {fit.declined}."]
    largest = fit.params_range[1]
    sizes = (fit.centre, largest, 10 * largest, 100 * largest)
    depths = [show_depth(interval) for interval in fit.best_depth(sizes)]
    shown = [show_count(round(size)) for size in sizes]
    one_size = shown[0] == shown[1]
    middle = "" if one_size else f"; at {shown[0]} {depths[0]}"
    lines = [f"Best depth at {shown[1]}, the largest size: {depths[1]} layers{middle}."]
    going_on = show_depth(fit.going_on(sizes[2]))
    lines.append(
        f"Beyond the runs: {depths[2]} at {shown[2]} and {depths[3]} at {shown[3]}, whether growth goes on or ends "
        f"there; if it surely went on as in the runs, {going_on} at {shown[2]}."
    )
    if fit.with_wider_bend is not None:
        wider = fit.with_wider_bend
        high = "no upper limit" if without_limit(wider) else f"{wider.high:.3g}"
        lines.append(
            f"Were growth twice as free to bend as is assumed, that would be {wider.low:.3g} to {high} at {shown[2]}."
        )
    growth = show_interval(fit.growth(), 2)
    source = "By assumption, as all runs have one size," if one_size else "In the runs"
    lines.append(f"{source} the best depth grows like the size to the power {growth}.")
    if fit.centre_tokens is not None:
        lines.append(_about_tokens(fit))
    if fit.bases:
        compared = [f"{name} {value:+.1f}" for name, value in fit.bases.items()]
        lines.append(f"Laws of growth by AIC, the least is best and less than 2 apart is a tie: {', '.join(compared)}.")
    for factor in (0.5, 2):
        cost = fit.cost(factor)
        lines.append(
            f"{'Half' if factor < 1 else 'Twice'} the best depth costs {cost.value:.2f}% of loss "
            f"({cost.low:.2f} to {cost.high:.2f}), at {shown[0]}."
        )
    return lines


def _about_tokens(fit: "JointFit") -> str:
    """Which length the best depth is for, and what twice the tokens do to it."""
    shift = show_interval(fit.shift_by_tokens(2.0), 3)
    return f"This is {fit.tokens_words}; twice the tokens multiply the best depth by {shift}."


def ridge_headline(fit: "RidgeFit") -> list[str]:
    """Where the bowl is and what missing it costs."""
    if not fit.dof:
        return [f"No bowl can be shown: there are {plural(len(fit.names), 'parameter')} and no more shapes than that."]
    if fit.minimum is None:
        curvature = f"curvature {fit['b2']:.3g} ± {fit.standard_errors['b2']:.2g}"
        return [f"No bowl: at equal size these runs do not show a best depth ({curvature})."]
    limits_of = (fit.minimum.low, fit.minimum.high)
    if fit.others and (whole := fit.law()) is not None and whole.covariance is not None:
        error = Z95 * math.sqrt(whole.covariance[0][0])  # the law's own, with what the terms left out would change
        limits_of = (fit.minimum.value * math.exp(-error), fit.minimum.value * math.exp(error))
    low, high = (f"{v:.2f}" if v is not None else "…" for v in limits_of)
    limits = f"({low} to {high})" + (f", at {show_count(round(fit.centre))}" if "drift" in fit.names else "")
    lines = [f"Least loss at {fit.minimum.value:.2f} {fit.unit} {limits}."]
    if fit.base is None:
        power = fit.drift
        lines.append(
            f"The best depth grows like the size to the power {power.value:.2f} ({power.low:.2f} to {power.high:.2f})."
        )
    law = fit.law()
    if law is not None and fit.counting == "block":
        ends = [law.depth(size).at() for size in fit.params_range]
        depths = [f"{d.value:.1f} ({d.low:.1f} to {d.high:.1f})" for d in ends]
        sizes = [show_count(round(size)) for size in fit.params_range]
        more = ", with the error of terms left out (see the warnings)" if fit.others else ""
        lines.append(f"That is {depths[0]} layers at {sizes[0]} and {depths[1]} at {sizes[1]}{more}.")
    for factor in (2, 4):
        cost = fit.cost(factor)
        limits = "" if cost.low is None else f" ({cost.low:.2f} to {cost.high:.2f})"
        lines.append(f"A depth off by a factor {factor} costs {cost.value:.2f}% of loss{limits}.")
    return lines


def surface_headline(fit: "SurfaceFit") -> list[str]:
    """The surface, and its optimum at the largest runs."""
    if fit.terms == "tokens":
        return _tokens_headline(fit)
    terms = [f"e^{fit[n]:.4g}·{n}^−{fit[n + '_exponent']:.4g}" for n in ("width", "depth", "params", "tokens")]
    lines = [f"Loss = {' + '.join(terms)} + e^{fit['floor']:.4g}, with {fit.counting} parameters."]
    if not fit.has_architecture:
        return [*lines, "These parameters do not grow with depth·width²: there is no best depth, and no law for plan."]
    most = fit.params_range[1]
    depth = fit.best_depth(most)
    where = f"At {show_count(most)} parameters the least loss is at depth {show_interval(depth)}."
    if fit.depth_range and not fit.depth_range[0] <= depth.value <= fit.depth_range[1]:
        where += " But the runs have {:g} to {:g} layers.".format(*fit.depth_range)
    return [*lines, where]


def _tokens_headline(fit: "SurfaceFit") -> list[str]:
    E, A, B, alpha, beta = fit.values
    formula = f"Loss = {E:.4g} + {A:.4g}/N^{alpha:.4g} + {B:.4g}/D^{beta:.4g}, N {fit.counting} parameters, D tokens."
    no_depth = "A surface in parameters and tokens predicts no depth."
    if not fit.has_optimum:
        return [formula, no_depth]
    flops = fit.flops_range[1]
    best = fit.optimum(flops)
    optimum = (
        f"At the largest runs' {flops:.2g} FLOPs the least loss is at {show_count(best.params.value)} parameters and "
        f"{show_count(best.tokens.value)} tokens: {show_interval(best.tokens_per_param)} per parameter."
    )
    return [formula, " ".join([optimum, *(f"But {note}." for note in best.notes)]), no_depth]


def _range(interval: Interval) -> str:
    return "–" if interval.low is None else f"{interval.low:.5g} to {interval.high:.5g}"


def _ends(sizes: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(show_count(round(size)) for size in (min(sizes), max(sizes))))
