"""What a careful reader of a fit must know: crossings outside the data, groups that decide alone, terms not shown.

Each function judges by numbers and returns notes; the sentences are in `words`.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from deepwide.answers import Z95, Interval, Note
from deepwide.errors import DeepwideError
from deepwide.fitting.crossings import Crossing, Line, bracketed_size, line_through_neighbours
from deepwide.fitting.curves import Curves, fit_curves
from deepwide.fitting.huber import EXPONENTS, Problem, minimise
from deepwide.fitting.regression import Noise, Regression, regress, span_known, t95, variance_inflation
from deepwide.fitting.runs import BLOCK_MATRICES, Counting, Runs
from deepwide.fitting.words import group_name, note
from deepwide.quantities import Floats, Integers

VANISHING = 0.05  # share of resamples without a crossing from which it is mentioned
MISFIT = 5  # curves that miss shapes by this many times what seeds differ are mentioned
FEW_GROUPS = 3  # beyond the parameters
DECIDES = 0.95  # leverage of a group that determines its own fit
LARGE_SHARE = 0.5  # of embeddings
UNEQUAL = 0.01  # noises as different as this by chance in one sweep of a hundred are mentioned
LEARNING_CURVE = 4  # lengths of one shape from which they are probably checkpoints
SAME_SIZE = 0.02  # sizes closer than 2% count as one
FEW_VALUES = 5
VISIBLE = 1e-3  # a term that never makes this share of the loss is not shown
EXAMINED = 12  # the units of most leverage or influence are left out one by one
INFLATED = 100.0  # variance inflation from which a term is mentioned
MANY_ROWS = 50_000  # of an embedding, where nobody says how many
SOME_EMBEDDINGS = 0.1  # share of the parameters from which they matter
MORE_THAN_BLOCKS = 2.0
FEWEST_TOKENS = 1000.0  # of a run
UNLIKE_TOKENS = 1e5  # times as many in one run as in another
LARGEST_LOSS = 13.0  # nats: guessing among 440,000 words
RISING = 0.6  # rank correlation of loss with size
UNLIKE_SHAPE = 8.0  # times 12·depth·width², or that part of it
ALL_LEFT_OUT = 100  # groups up to which every one of them is


# Of transitions.


def left_out(runs: Runs, depths: Sequence[int]) -> list[Note]:
    """Depths that finished at too few sizes for a curve."""
    missing = np.unique(runs.depth[~np.isin(runs.depth, depths)])
    rows = [(float(depth), runs.depth == depth) for depth in missing]
    return [
        note("depth-left-out", depth=depth, runs=int(here.sum()), diverged=int(runs.diverged[here].sum()))
        for depth, here in rows
    ]


def about_curves(
    crossings: Sequence[Crossing], curves: Curves, regression: Regression, runs: Runs, counting: Counting
) -> list[Note]:
    """Crossings outside the data or not in all resamples, curves that do not fit, groups that decide alone."""
    notes = []
    for crossing in crossings:
        pair = {"shallow": crossing.shallow, "deep": crossing.deep}
        if crossing.status == "extrapolated":
            notes.append(note("crossing-outside", **pair))
        if crossing.vanished and crossing.vanished > VANISHING:
            notes.append(note("crossing-vanishes", **pair, share=crossing.vanished))
    seed_noise = regression.between_seeds
    if seed_noise and curves.noise > MISFIT * seed_noise:
        notes.append(note("curves-misfit", ratio=curves.noise / seed_noise))
    if curves.dof < FEW_GROUPS:
        notes.append(note("few-groups", spare=curves.dof))
    decided = np.flatnonzero(regression.leverage > DECIDES)
    if decided.size:
        groups, first = len(set(runs.groups[decided].tolist())), decided[0]
        depth, size = float(runs.depth[first]), float(runs.size(counting)[first])
        notes.append(note("leverage", count=groups, depth=depth, size=size))
    share = span_known(runs.embedding_share)
    if share is not None and share[1] > LARGE_SHARE:
        notes.append(note("embeddings-large", share=share[1]))
    return notes


def about_line(crossings: Sequence[Crossing]) -> list[Note]:
    """Crossings on which a line should not rest."""
    notes = [note("line-outside")] if any(crossing.status != "bracketed" for crossing in crossings) else []
    unlimited = any(crossing.low is None or crossing.high is None for crossing in crossings)
    return notes + ([note("line-unlimited")] if unlimited else [])


def leave_one_group_out(
    runs: Runs, counting: Counting, slope: float | None, noise: Noise, line: Line | None, crossings: Sequence[Crossing],
    regression: Regression,
) -> list[Note]:  # fmt: skip
    """Leave each group out: does a crossing vanish, or it or the law move by more than its own error?

    Of many groups, those that move the curves most.
    """
    groups = runs.groups
    vanish: dict[str, list[str]] = {}
    move: dict[str, list[str]] = {}
    for group in _left_out_one_by_one(regression):
        first = int(np.flatnonzero(groups == group)[0])
        without = group_name(runs.depth[first], float(runs.size(counting)[first]))
        try:
            curves = fit_curves(runs.select(groups != group), counting, noise).curves
        except DeepwideError:
            curves = None
        for crossing in crossings:
            if crossing.status != "bracketed" or runs.depth[first] not in (crossing.shallow, crossing.deep):
                continue
            name = f"the crossing of {crossing.shallow} and {crossing.deep} layers"
            size = bracketed_size(curves, crossing.shallow, crossing.deep)
            if size is None:
                vanish.setdefault(name, []).append(without)
            elif (crossing.low and size < crossing.low) or (crossing.high and size > crossing.high):
                move.setdefault(name, []).append(without)
        if line is not None:
            values = line_through_neighbours(curves, slope)
            if values is None:
                vanish.setdefault("the law", []).append(without)
            elif np.any(np.abs(values - line.values) > Z95 * np.sqrt(np.diag(line.placed)[: len(values)])):
                move.setdefault("the law", []).append(without)
    return [
        *(note("depends-on-one", what=what, groups=names) for what, names in vanish.items()),
        *(note("moves-without-one", what=what, groups=names) for what, names in move.items()),
    ]


# Of transitions and ridges.


def about_noise(noises: Mapping[int, float], regression: Regression) -> list[Note]:
    """Depths too few runs of which tell their own noise, or depths whose noises are not the same."""
    if regression.own_noise:
        few = [depth for depth, dof in zip(noises, regression.dofs, strict=True) if dof < 1]
        if len(few) == len(noises):
            raise DeepwideError("no depth was trained at enough sizes to estimate its own noise: leave it the same.")
        return [note("noise-borrowed", depths=few)] if few else []
    if regression.unequal > UNEQUAL:
        return []
    return [note("noise-unequal", depths=list(noises), noises=list(noises.values()))]


# Of ridges.


def about_collinear(columns: Mapping[str, Floats]) -> list[Note]:
    """Terms of tokens or embeddings that the others of their kind nearly repeat; refused where they quite do."""
    notes = []
    for name, code in (("tokens", "tokens-collinear"), ("embeddings", "embeddings-collinear")):
        others = [columns[n] for n in ("intercept", "size", "b1", "embeddings", "tokens") if n in columns and n != name]
        if name not in columns:
            continue
        inflation = variance_inflation(columns[name], others)
        if math.isinf(inflation):
            raise DeepwideError(
                f"in these runs {'tokens follow' if name == 'tokens' else 'embeddings follow'} the size exactly, so a "
                "ridge cannot tell them apart: use a joint fit, ignore tokens, or add runs at other lengths."
            )
        if inflation > INFLATED:
            notes.append(note(code, inflation=inflation))
    return notes


def about_minimum(
    minimum: Interval | None, x_range: tuple[float, float], regression: Regression, names: Sequence[str],
    runs: Runs, counting: Counting,
) -> list[Note]:  # fmt: skip
    """A minimum outside the data, and groups without which the bowl appears, vanishes or moves."""
    notes = []
    if regression.dof < FEW_GROUPS:
        notes.append(note("few-groups", spare=regression.dof))
    if minimum is not None and not x_range[0] <= math.log(minimum.value) <= x_range[1]:
        notes.append(note("minimum-outside"))
    if not regression.dof:
        return notes
    i1, i2 = names.index("b1"), names.index("b2")
    for group in _left_out_one_by_one(regression):
        others = regression.groups != group
        first = int(np.flatnonzero(~others)[0])
        name = group_name(runs.depth[first], float(runs.size(counting)[first]))
        again = _without(regression, others, len(names))
        b1, b2 = (0.0, 0.0) if again is None else (again.theta[i1], again.theta[i2])
        if minimum is None:
            if again is not None and again.dof and b2 > t95(again.dof) * math.sqrt(again.covariance[i2, i2]):
                notes.append(note("bowl-hidden-by-one", group=name))
        elif b2 <= 0:
            notes.append(note("bowl-depends-on-one", group=name))
        else:
            moved = math.exp(-b1 / (2 * b2))
            if (minimum.low and moved < minimum.low) or (minimum.high and moved > minimum.high):
                notes.append(note("minimum-moves-without-one", group=name, minimum=moved))
    return notes


def _left_out_one_by_one(regression: Regression) -> Integers:
    """Every group, or of many those that matter most."""
    few = len(np.unique(regression.groups)) <= ALL_LEFT_OUT
    return regression.most_influential(ALL_LEFT_OUT if few else EXAMINED)


def _without(regression: Regression, rows: Floats, parameters: int) -> Regression | None:
    """The regression on some of its rows, None where these do not determine it."""
    nuisance = regression.X.shape[1] - parameters
    X, y, groups, censored, strata = (
        column[rows]
        for column in (regression.X, regression.y, regression.groups, regression.censored, regression.strata)
    )
    try:
        return regress(X, y, groups, censored, nuisance, strata, regression.own_noise)
    except DeepwideError:
        return None


def about_blocks(runs: Runs) -> list[Note]:
    """Widths that may be depths; block parameters that are far from those of plain blocks of these depths and widths: a
    wrong unit or column.

    Gated or narrow feed-forwards and shared keys change them by a factor 2; experts and shared weights by more.
    """
    if np.median(runs.width) < np.median(runs.depth):
        return [note("width-below-depth", width=float(np.median(runs.width)), depth=float(np.median(runs.depth)))]
    ratio = float(np.median(runs.block_params / (BLOCK_MATRICES * runs.depth * runs.width**2)))
    return [note("blocks-unlike-shape", ratio=ratio)] if ratio > UNLIKE_SHAPE or ratio < 1 / UNLIKE_SHAPE else []


def about_tokens(runs: Runs) -> list[Note]:
    """Whether tokens may be in several units, or in billions."""
    tokens = runs.tokens[~np.isnan(runs.tokens)]
    if not len(tokens) or (tokens.min() >= FEWEST_TOKENS and tokens.max() < UNLIKE_TOKENS * tokens.min()):
        return []
    return [note("tokens-units", low=float(tokens.min()), high=float(tokens.max()))]


def about_losses(runs: Runs) -> list[Note]:
    """Losses that rise with size, as accuracies do (Spearman's rank correlation), or that no cross-entropy is."""
    if runs.loss[~runs.diverged].min(initial=math.inf) > LARGEST_LOSS and not runs.diverged.all():
        return [note("losses-large", least=float(runs.loss[~runs.diverged].min()))]
    ranks = [np.argsort(np.argsort(column[~runs.diverged])) for column in (runs.loss, runs.block_params)]
    if len(ranks[0]) < 3 or np.ptp(np.log(runs.block_params)) < math.log(2):
        return []
    rising = float(np.atleast_2d(np.corrcoef(ranks))[0, 1])
    return [note("losses-rise", correlation=rising)] if rising > RISING else []


def about_totals(runs: Runs) -> list[Note]:
    """Totals that may have embeddings nobody stated, that are less than the blocks, or grow far more than they do."""
    if not np.isfinite(runs.block_params).all():
        return []
    if np.isnan(runs.total_params).any():
        rows = MANY_ROWS * np.sqrt(runs.block_params / (BLOCK_MATRICES * runs.depth))
        return [note("embeddings-unknown")] if np.max(rows / (runs.block_params + rows)) > SOME_EMBEDDINGS else []
    if fewer := int(np.sum(runs.total_params < 0.999 * runs.block_params)):
        worst = int(np.argmin(runs.total_params / runs.block_params))
        depth, size = float(runs.depth[worst]), float(runs.block_params[worst])
        return [note("total-below-blocks", rows=fewer, depth=depth, size=size)]
    if not np.isfinite(runs.width).all():
        return []
    matrices = runs.depth * runs.width**2
    design = np.column_stack([matrices, runs.width]) / runs.total_params[:, None]
    theta, _, rank, _ = np.linalg.lstsq(design, np.ones(len(runs)), rcond=None)
    blocks = float(np.median(runs.block_params / matrices))
    if rank < 2 or theta[0] < MORE_THAN_BLOCKS * blocks:
        return []
    return [note("total-unexplained", total=float(theta[0]), blocks=blocks)]


def about_checkpoints(runs: Runs) -> list[Note]:
    """Lengths of one shape that are probably checkpoints of one run."""
    tokens = np.unique(np.nan_to_num(runs.tokens), return_inverse=True)[1]
    pairs = np.unique(np.column_stack([runs.shapes, tokens]), axis=0)
    lengths = int(np.bincount(pairs[:, 0]).max())
    return [note("checkpoints-as-runs", lengths=lengths)] if lengths >= LEARNING_CURVE else []


# Of surfaces.


def distinct(logs: Floats) -> int:
    """How many different sizes, given their logarithms.

    >>> distinct(np.log([100, 101, 200]))
    2
    """
    count, last = 0, -np.inf
    for value in np.sort(logs):
        if value - last > SAME_SIZE:
            count, last = count + 1, value
    return count


def about_terms(problem: Problem, theta: Floats, share: Floats, names: Sequence[str]) -> list[Note]:
    """Terms whose coefficient went to zero or whose exponent went to a limit."""
    terms = len(problem.x)
    low, high = problem.bounds
    unseen = [note("term-unseen", name=names[i], exponent=i > 0) for i in range(terms + 1) if share[i].max() < VISIBLE]
    stopped = [
        note("exponent-at-limit", name=names[i], value=float(theta[i]), low=EXPONENTS[0], high=EXPONENTS[1])
        for i in range(terms + 1, 2 * terms + 1)
        if theta[i] <= low[i] or theta[i] >= high[i]
    ]
    return unseen + stopped


def about_sizes(x: Floats, columns: Sequence[str]) -> list[Note]:
    """Sizes with few different values, and pairs that go together in every run."""
    counts = [(name, distinct(column)) for name, column in zip(columns, x, strict=True)]
    notes = [note("few-values", name=name, count=count) for name, count in counts if count < FEW_VALUES]
    correlation = np.atleast_2d(np.corrcoef(x))
    for i, j in zip(*np.triu_indices(len(x), 1), strict=True):
        if abs(correlation[i, j]) > 0.99:
            notes.append(note("collinear", first=columns[int(i)], second=columns[int(j)]))
    return notes


def about_influence(
    problem: Problem, theta: Floats, units: Integers, leverage: Floats, errors: Floats, names: Sequence[str]
) -> list[Note]:
    """Units (runs of one group or shape) without which an exponent moves by more than its standard error.

    Leverage only picks whom to leave out; each of those is left out and the fit repeated.
    """
    total = np.bincount(units, weights=leverage)
    examined = np.argsort(-total)[:EXAMINED]
    weights = (units[None] != examined[:, None]).astype(float)
    terms = len(problem.x)
    without = minimise(problem, np.tile(theta, (len(examined), 1)), weights).theta
    moved = np.abs(without - theta)[:, terms + 1 :] / np.maximum(errors[terms + 1 :], 1e-6)
    one, exponent = np.unravel_index(int(moved.argmax()), moved.shape)
    if moved[one, exponent] <= 1:
        return []
    members = np.flatnonzero(units == examined[one])
    return [
        note(
            "influence",
            row=int(members[0]) + 1,
            others_in_group=len(members) - 1,
            name=names[terms + 1 + int(exponent)],
            errors=float(moved[one, exponent]),
            others=int((moved.max(axis=1) > 1).sum()) - 1,
        )
    ]
