"""How the joint fit is made: the cells, their posterior, and what its answer needs to know of the runs."""

import math
from functools import partial

import numpy as np

from deepwide.answers import Z95
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions
from deepwide.fitting.answer import residual_table
from deepwide.fitting.bases import compare_bases
from deepwide.fitting.examining import (
    FEWEST_DRAWS,
    about_assumptions,
    about_runs,
    with_wider_bend,
)
from deepwide.fitting.inference import Posterior, infer
from deepwide.fitting.joint_answer import JointFit, Prior, positive_numbers
from deepwide.fitting.misfit import RunNoise, misfit_factors
from deepwide.fitting.mixed import KERNELS, Cells, cell_means
from deepwide.fitting.model import Design, along, best_log_depth, by_name, jacobian, log_loss, size_curve
from deepwide.fitting.regression import (
    as_tuples,
    censored_least_squares,
    check_resamples,
    expected_above,
    span,
    span_known,
)
from deepwide.fitting.runs import SAME_LENGTH, Counting, Runs
from deepwide.fitting.suspects import about_standing_out, standing_out, trained
from deepwide.fitting.threads import one_thread
from deepwide.laws import FARTHEST_LENGTH
from deepwide.quantities import Floats, show_count

SAME_SHARE = 0.05  # of ln(total/block): less is the same for all shapes
FEWEST_CELLS = 8
MOST_DRAWS = 10_000  # of a law
MOST_ENDS = 200  # sizes that are looked at
NEARBY = math.log(2)  # ln size, within which runs say together where the best depth is
ENOUGH = 0.7  # times the fit's own error of the best depth: what they may be off by and still show it
WELL = 0.07  # in ln depth: an error of theirs that is always small enough


def fit_joint(
    runs: Runs,
    *,
    counting: Counting = "block",
    length: float | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    examine: bool = True,
    all_runs: bool = False,
) -> JointFit:
    """The joint model's posterior; `bootstrap` is the number of its draws, 200 to 10,000.

    `length` is the tokens of a run for which the best depth is stated, where runs have several (default: their mean,
    or lengths that grow with size as theirs do). `examine` also looks for what a reader must beware of;
    `all_runs` keeps losses that the other runs do not expect (`suspects`).
    """
    check_resamples(bootstrap, seed)
    if not FEWEST_DRAWS <= bootstrap <= MOST_DRAWS:
        raise DeepwideError(
            f"a joint fit, whose intervals are its posterior's draws, has {FEWEST_DRAWS} to {MOST_DRAWS:,} of them "
            f"(bootstrap), not {bootstrap:,}."
        )
    runs.need("depth")
    if length is not None:
        length = _checked_length(runs, length)

    with one_thread():
        return _examined(runs, counting, length, bootstrap, seed, examine, all_runs)


def _examined(
    runs: Runs, counting: Counting, length: float | None, bootstrap: int, seed: int, examine: bool, all_runs: bool
) -> JointFit:
    """The fit without runs that stand out, and what to beware of."""
    fitted = partial(_fit, counting=counting, length=length, seed=seed, examine=examine)
    again = partial(_fit, counting=counting, length=length)
    rows, out = (np.arange(len(runs)), []) if all_runs else trained(runs, counting)
    fit = fitted(runs.select(rows), bootstrap)
    if suspects := [] if all_runs else standing_out(fit, runs.select(rows), again):
        rows = np.delete(rows, [suspect.row for suspect in suspects])
        left = fitted(runs.select(rows), bootstrap)
        out += about_standing_out(fit, suspects, left.params_range[1])
        fit = left
    left_out = tuple(np.setdiff1d(np.arange(len(runs)), rows).tolist())
    warnings = (*out, *about_runs(fit, runs.select(rows), again)) if examine else ()
    return fit.model_copy(update={"left_out": left_out, "warnings": warnings})


def _fit(
    runs: Runs, bootstrap: int, *, counting: Counting, length: float | None, seed: int = 0, examine: bool = False
) -> JointFit:
    """The posterior of all these runs; `examine` also says what is assumed and what the model misses."""
    size = runs.size(counting)
    centre = float(np.exp(np.mean(np.log(size))))
    centre_tokens = float(np.exp(np.mean(np.log(runs.tokens)))) if runs.several_lengths else None
    share = np.log(runs.total_params / runs.block_params)
    counted = counting == "block" and not np.isnan(share).any() and float(np.ptp(share)) > SAME_SHARE
    counted = counted and not cautions.about_totals(runs)
    s, x = np.log(size / centre), np.log(runs.depth)
    t = np.log(runs.tokens / centre_tokens) if centre_tokens else None
    e = share - share.mean() if counted else None
    y = _observed(runs, counting, s, x, t, e)
    cells = cell_means(y, runs.groups, runs.seed, runs.diverged)
    at = cells.first
    _check(cells, x[at])
    design = Design(s[at], None if t is None else t[at], None if e is None else e[at], x[at])
    try:
        inferred = infer(cells, design, number=bootstrap, seed=seed)
    except np.linalg.LinAlgError:
        raise DeepwideError("these runs do not determine the joint model: more sizes or depths are needed.") from None
    whole = Design(s, t, e, x)
    fitted = log_loss(inferred.names, inferred.mode[None], whole)[0]
    residual = np.where(runs.diverged, np.maximum(y - fitted, 0.0), y - fitted)
    mixture = inferred.mixture
    sigma2 = float(mixture.weights @ mixture.sigma2)
    falls = float(mixture.weights @ mixture.settings[:, 1])
    within = cells._replace(t=design.t).between_seeds(falls)
    r2 = dict(zip(misfit_factors(design), mixture.settings[:, KERNELS:].T ** 2, strict=True))
    missed = {name: math.sqrt(float(mixture.weights @ (mixture.sigma2 * part))) for name, part in r2.items()}
    assumed = zip(inferred.names, inferred.prior_mean.tolist(), inferred.prior_sd.tolist(), strict=True)
    place = float(inferred.mode[inferred.names.index("depth")])
    line = _line(design, length, centre_tokens)
    known = _known_sizes(inferred, design, RunNoise(math.sqrt(sigma2), falls), line or (0.0, 0.0))
    leverage = _leverage(inferred, design, cells)[np.unique(runs.groups, return_inverse=True)[1]]
    separate = examine and "run" not in r2  # lengths that may be of one run are no evidence each
    fit = JointFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=inferred.names,
        values=tuple(map(float, inferred.mode)),
        covariance=as_tuples(mixture.covariance),
        dof=int(mixture.dof),
        resamples=as_tuples(inferred.draws),
        residuals=residual_table(runs, counting, y, fitted, residual, leverage),
        noise=math.sqrt(sigma2),
        seed_noise=within,
        params_range=span(size),
        depth_range=span(runs.depth),
        tokens_range=span_known(runs.tokens),
        embedding_share=span_known(runs.embedding_share),
        notes=runs.notes,
        warnings=tuple(about_assumptions(runs, inferred, design, cells, centre, known)) if examine else (),
        centre=centre,
        centre_tokens=centre_tokens,
        embeddings_mean=float(share.mean()) if counted else None,
        tokens_line=line,
        priors={name: Prior(mean, sd) for name, mean, sd in assumed if math.isfinite(sd)},
        flat=inferred.flat,
        different=inferred.different,
        misfit=(missed["smooth"], missed.get("depth", 0.0)),
        run_noise=missed.get("run", 0.0),
        curve_misfit=missed.get("curve", 0.0),
        noise_falls=falls,
        x_range=(float(x.min() - place), float(x.max() - place)),
        known_sizes=(centre * math.exp(known[0]), centre * math.exp(known[1])),
        bases=compare_bases(_without_embeddings(cells.y, inferred, design), design, np.log(size[at]))
        if separate
        else {},
    )
    return fit.model_copy(update={"with_wider_bend": with_wider_bend(fit, cells, design, seed)}) if examine else fit


def _known_sizes(
    inferred: Posterior, design: Design, noise: RunNoise, line: tuple[float, float]
) -> tuple[float, float]:
    """σ of the least and the largest size at which the runs from there on show the best depth about as well as the fit
    states.

    Runs that know the bowl and how the best depth grows are off by noise / 2c·√Σ(z − z̄)², z their ln depth over the
    best, each weighted by (c / noise)² at its length. Where that is much more than the fit's error, the fit has carried
    the best depth there from other sizes: one depth at a size tells nothing. What counts is all runs within a factor 2
    of a size and beyond it, so that several thin sizes show together what none of them does alone. Growth is taken to
    be seen between these two sizes only.
    """
    s = design.s
    draws = dict(zip(inferred.names, inferred.draws.T, strict=True))
    if not len(inferred.draws):
        return float(s.min()), float(s.max())
    order = np.argsort(s)
    at = s[order]
    middle = {name: np.array([float(np.median(values))]) for name, values in draws.items()}
    c, change = (float(middle[name][0]) for name in ("curvature", "curvature_size"))
    z = (design.x - best_log_depth(middle, design))[order]
    power = change * s if design.t is None else change * s + middle["curvature_tokens"] * design.t
    weight = (np.exp(np.clip(power, -10, 10)) * noise.sd / noise.at(design))[order] ** 2
    ends = sorted({0, len(at) - 1, *np.linspace(0, len(at) - 1, MOST_ENDS).astype(int).tolist()})
    place = np.column_stack([np.ones(len(ends)), at[ends], at[ends] ** 2]) @ along(draws, line)
    stated = np.ptp(np.quantile(place, (0.025, 0.975), axis=1), axis=0) / (2 * Z95)
    sums = [np.append(0.0, np.cumsum(weight * z**power)) for power in (0, 1, 2)]
    known = []
    for up in (False, True):
        low = np.searchsorted(at, at[ends] - NEARBY, "left") if up else np.zeros(len(ends), dtype=int)
        high = np.full(len(ends), len(at)) if up else np.searchsorted(at, at[ends] + NEARBY, "right")
        whole, first, second = (total[high] - total[low] for total in sums)
        off = noise.sd / (2 * c * np.sqrt(np.maximum(second - first**2 / np.maximum(whole, 1e-300), 1e-12)))
        times = off / np.maximum(stated, WELL / ENOUGH)
        enough = np.flatnonzero(times <= max(ENOUGH, float(times.min())))
        known.append(float(at[ends[enough[-1 if up else 0]]]))
    half = (known[0] + known[1]) / 2  # of runs that show it only together
    return min(known[0], half), max(known[1], half)


def _leverage(inferred: Posterior, design: Design, cells: Cells) -> Floats:
    """Of each cell: how much of the variance of its own mean its fitted value has, 1 where it decides itself."""
    mixture = inferred.mixture
    X = jacobian(inferred.names, inferred.mode, design)
    M = cells.M if cells.M.ndim == 1 else np.diag(cells.M)
    share, own = mixture.weights * mixture.sigma2, np.zeros(len(M))
    for w, h in np.unique(mixture.settings[:, :KERNELS], axis=0):
        here = (mixture.settings[:, :KERNELS] == (w, h)).all(axis=1)
        own += share[here].sum() * (w * M + 1 - w) * RunNoise(1.0, h).at(design) ** 2
        own += share[here] @ (mixture.settings[here, KERNELS:] ** 2).sum(axis=1)
    return np.asarray(np.clip(np.einsum("ij,jk,ik->i", X, mixture.covariance, X) / own, 0, 1))


def _without_embeddings(y: Floats, inferred: Posterior, design: Design) -> Floats:
    """ln loss less what the joint model gives to embeddings; a free term of their share could pass for growth."""
    if design.e is None:
        return y
    values = by_name(inferred.names, inferred.mode[None])
    blocks = size_curve(values, design._replace(e=np.zeros_like(design.e)))
    return np.asarray(y - (size_curve(values, design) - blocks)[0])


def _line(design: Design, length: float | None, centre_tokens: float | None) -> tuple[float, float] | None:
    """τ = at + slope·σ that the best depth is stated for: the length asked for, or lengths that follow the size, if
    the runs' do; None: their mean."""
    if design.t is None or centre_tokens is None:
        return None
    if length is not None:
        return math.log(length / centre_tokens), 0.0
    slope, at = np.polyfit(design.s, design.t, 1)
    off = design.t - at - slope * design.s
    return (float(at), float(slope)) if abs(slope) > 0.2 and float(off.std()) < 0.35 else None


def _observed(runs: Runs, counting: Counting, s: Floats, x: Floats, t: Floats | None, e: Floats | None) -> Floats:
    """ln loss; for a run that diverged, what a parabola expects of a loss above its bound (Tobin 1958)."""
    if not runs.diverged.any():
        return np.log(runs.loss)
    y = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    columns = [np.ones_like(s), s, s**2, x, x**2, s * x, *(c for c in (t, e) if c is not None)]
    X = np.column_stack(columns)
    theta = censored_least_squares(X, y, runs.diverged, None)
    free = ~runs.diverged
    spread = max(float(np.std((y - X @ theta)[free])), 1e-9)
    return np.where(runs.diverged, np.maximum(expected_above(X @ theta, y, spread), y), y)


def _checked_length(runs: Runs, length: float) -> float:
    length = float(positive_numbers("length", length)[0])
    if np.isnan(runs.tokens).all():
        raise DeepwideError("these runs do not say how many tokens they had: a best depth at a length needs tokens.")
    least, most = float(np.nanmin(runs.tokens)), float(np.nanmax(runs.tokens))
    if not least / FARTHEST_LENGTH <= length <= most * FARTHEST_LENGTH:
        shown = " to ".join(show_count(round(end)) for end in (least, most))
        raise DeepwideError(f"these runs had {shown} tokens: they say nothing of {length:.3g}.")
    if not runs.several_lengths and not 1 / SAME_LENGTH < length / most < SAME_LENGTH:
        raise DeepwideError(
            f"all runs had {show_count(round(most))} tokens: they do not say how the best depth changes with length."
        )
    return length


def _check(cells: Cells, x: Floats) -> None:
    if len(np.unique(np.round(x, 6))) < 3:
        raise DeepwideError("a best depth needs runs of at least three depths.")
    if len(cells.y) < FEWEST_CELLS:
        raise DeepwideError(f"a best depth needs at least {FEWEST_CELLS} shapes, and there are {len(cells.y)}.")
