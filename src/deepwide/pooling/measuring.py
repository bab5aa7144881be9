"""From runs to a set of evidence, by one method for all sets.

At each length (or recipe) the joint fit is made with its own level, size and embedding terms: its posterior gives
ln(best depth) and ln(curvature) at the centre of the set's sizes, and the growth of the best depth. Lengths of one set
share shapes, often runs: their mean, weighted by precision, keeps the mean variance of one length, and the scatter
between lengths is added. The slope in tokens per parameter is from contrasts between lengths of one recipe, with the
error of a jackknife over shapes, because there what lengths share cancels.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwide.errors import DeepwideError, needs
from deepwide.fitting import JointFit, Runs, fit_joint, read_runs
from deepwide.laws import transition_law
from deepwide.pooling.sets import EvidenceSet, Length, check_words
from deepwide.quantities import Floats, Integers, show_count

FEWEST = 10  # shapes of a length that is used
SAME_LENGTH = math.log(1.5)  # within a length
APART = math.log(1.2)  # lengths that tell a slope
GROUPS = 10  # of shapes, in the jackknife
DRAWS = 2000
FEW_DRAWS = 200  # a joint fit's least: only its estimate counts


class Part(NamedTuple):
    """One length of one recipe."""

    recipe: str
    name: str
    runs: Runs
    log_ratio: float  # mean of ln tokens per parameter


class Posterior(NamedTuple):
    """Draws of one length: ln(best depth / levine's), ln curvature, and the drift of the first, at the set's centre."""

    draws: Floats  # (draws, 3)

    @property
    def mean(self) -> Floats:
        return np.asarray(np.median(self.draws, axis=0))

    @property
    def covariance(self) -> Floats:
        """With the widths of the middle 95%, as the draws have a few far out."""
        low, high = np.quantile(self.draws, (0.025, 0.975), axis=0)
        sd = (high - low) / (2 * 1.959964)
        return np.asarray(np.corrcoef(self.draws.T) * np.outer(sd, sd))


def add_evidence(
    tables: Any,
    *,
    name: str,
    about: str,
    citation: str = "",
    command: str = "",
    lengths: Iterable[float] = (),
    columns: Mapping[str, str | None] | None = None,
    where: Mapping[str, float | str] | None = None,
    limits: Iterable[tuple[str, str, float]] = (),
    embedding_rows: float | None = None,
    best_of: Iterable[str] = (),
    progress: Callable[[float], None] | None = None,
) -> EvidenceSet:
    """Measure a set of evidence on tables of runs (or folders of them); `save_set` writes it.

    Each table is a recipe of its own (a mapping gives them names), with lengths of its own: those of `lengths` (numbers
    of tokens, where rows are checkpoints), or else those that its runs have. The other arguments are `fit`'s.
    """
    needs("scipy", "fit")
    check_words(name, about, citation)
    sources = _named(tables)
    options: dict[str, Any] = {
        "limits": tuple(limits), "embedding_rows": embedding_rows, "best_of": tuple(best_of), "columns": columns,
    }  # fmt: skip
    parts: list[tuple[str, str, Runs]] = []
    notes: list[str] = []
    wanted = list(lengths)
    for label, source in sources.items():
        if wanted:
            for tokens in wanted:
                try:
                    runs = read_runs(source, where={**(where or {}), "tokens": tokens}, **options)
                    parts.append((label, f"{show_count(tokens)} tokens", runs))
                except DeepwideError as error:
                    if "within 1%" not in str(error):
                        raise
            continue
        parts += [(label, words, runs) for words, runs in usable_lengths(read_runs(source, where=where, **options))]
    if not parts:
        raise DeepwideError(f"no run has tokens within 1% of {', '.join(f'{each:g}' for each in wanted)}.")
    few = [label + words for label, words, runs in parts if len(np.unique(runs.shapes)) < FEWEST]
    if few:
        notes.append(f"left out, fewer than {FEWEST} shapes: {'; '.join(few)}")
    hashes = {
        Path(source).name: hashlib.sha256(Path(source).read_bytes()).hexdigest()
        for source in sources.values()
        if isinstance(source, str | Path) and Path(source).is_file()
    }
    about_it = {"name": name, "about": about, "citation": citation, "command": command, "sha256": hashes}
    used = [part for part in parts if part[0] + part[1] not in few]
    return measure_set(used, notes=notes, progress=progress, **about_it)


def _named(tables: Any) -> dict[str, Any]:
    """Tables by the label that begins the names of their lengths: empty for a single one."""
    if isinstance(tables, Mapping):
        return {f"{name}, ": table for name, table in tables.items()}
    if isinstance(tables, list | tuple) and len(tables) > 1 and all(isinstance(t, str | Path) for t in tables):
        return {f"{Path(table).stem}, ": table for table in tables}
    return {"": tables}


def split_lengths(runs: Runs) -> list[tuple[str, Runs]]:
    """Runs by length: by tokens or by tokens per parameter, whichever makes fewer groups."""
    runs.need("total_params", "tokens")
    by_tokens, by_ratio = (_clusters(np.log(v)) for v in (runs.tokens, runs.tokens / runs.total_params))
    ratio = by_ratio.max() < by_tokens.max()
    groups = by_ratio if ratio else by_tokens
    pairs = []
    for group in range(int(groups.max()) + 1):
        part = runs.select(groups == group)
        if ratio:
            words = f"{np.exp(np.mean(np.log(part.tokens / part.total_params))):.0f} tokens per parameter"
        else:
            words = f"{show_count(float(np.exp(np.mean(np.log(part.tokens)))))} tokens"
        pairs.append((words, part))
    return pairs


def usable_lengths(runs: Runs) -> list[tuple[str, Runs]]:
    """Runs by length; all together where most of them would be left out, as of equal FLOPs or of lengths at random.

    The joint fit then has terms for tokens, and states the best depth at the mean length.
    """
    parts = split_lengths(runs)
    enough = sum(len(part) for _, part in parts if len(np.unique(part.shapes)) >= FEWEST)
    if enough > len(runs) / 2 or len(np.unique(runs.shapes)) < FEWEST:
        return parts
    low, high = _span(runs.tokens / runs.total_params)
    return [(f"{low:.2g} to {high:.2g} tokens per parameter", runs)]


def _clusters(values: Floats) -> Integers:
    """Groups of values that are near to each other, from the least up."""
    order = np.argsort(values)
    groups = np.zeros(len(values), dtype=np.int64)
    first, group = values[order[0]], 0
    for row in order:
        if values[row] > first + SAME_LENGTH:
            first, group = values[row], group + 1
        groups[row] = group
    return groups


def measure_set(
    given: Sequence[tuple[str, str, Runs]],
    *,
    notes: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
    **about: Any,
) -> EvidenceSet:
    """The set that these lengths are, each with the name of its recipe and its own."""
    if not given:
        raise DeepwideError(f"a set of evidence needs a length with at least {FEWEST} shapes.")
    parts, diverged = [], 0
    for recipe, name, runs in given:
        runs.need("depth", "block_params", "total_params", "tokens")
        diverged += int(runs.diverged.sum())
        ratio = float(np.mean(np.log(runs.tokens / runs.total_params)))
        parts.append(Part(recipe, recipe + name, runs, ratio))
    joined = {name: np.concatenate([getattr(p.runs, name) for p in parts]) for name in _COLUMNS}
    centre = float(np.exp(np.mean(np.log(joined["block_params"]))))
    fits = [_posterior(part, centre) for part in parts]
    used = [(part, fit) for part, fit in zip(parts, fits, strict=True) if fit is not None]
    if not used:
        raise DeepwideError("these runs show no best depth at any length: they are no evidence of one.")
    middle = float(np.average([p.log_ratio for p, _ in used], weights=[len(p.runs) for p, _ in used]))
    mean, covariance = _together([fit for _, fit in used])
    slope = _slope([part for part, _ in used], centre, progress)
    matrix = covariance[:2, :2]
    if slope is not None:
        matrix = np.block([[matrix, np.zeros((2, 1))], [np.zeros((1, 2)), np.array([[slope[1]]])]])
    x = np.log(joined["depth"] / transition_law().depth(joined["block_params"]).value) - mean[0]
    flat = [part.name for part, fit in zip(parts, fits, strict=True) if fit is None]
    more = [f"no best depth seen, left out: {'; '.join(flat)}"] if flat else []
    more += [f"{diverged} runs diverged"] if diverged else []
    return EvidenceSet(
        **about,
        runs=len(joined["tokens"]),
        shapes=len(_shapes(parts)),
        sizes=_span(joined["block_params"]),
        depths=_span(joined["depth"]),
        tokens_per_param=_span(joined["tokens"] / joined["total_params"]),
        shares=_span(1 - joined["block_params"] / joined["total_params"]),
        x_range=_span(x),
        centre_params=centre,
        centre_tokens_per_param=math.exp(middle),
        place=float(mean[0]),
        log_curvature=float(mean[1]),
        token_slope=None if slope is None else slope[0],
        covariance=tuple(map(tuple, matrix.tolist())),
        drift=float(mean[2]),
        drift_error=math.sqrt(covariance[2, 2]),
        lengths=tuple(_length(part, fit) for part, fit in zip(parts, fits, strict=True)),
        notes=(*notes, *more),
    )


_COLUMNS = ("depth", "block_params", "total_params", "tokens")


def _span(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _posterior(part: Part, centre: float) -> Posterior | None:
    """The joint fit of one length, at the set's centre; None where it sees no bowl."""
    fit = fit_joint(part.runs, bootstrap=DRAWS, examine=False)
    return None if fit.declined else Posterior(_draws(fit, centre))


def _draws(fit: JointFit, centre: float) -> Floats:
    column = dict(zip(fit.names, np.array(fit.resamples).T, strict=True))
    s = math.log(centre / fit.centre)
    base = transition_law()
    levine = base.depth_at(centre)
    place, growth, bend = fit.path()
    place, growth = place + growth * s + bend * s**2 - math.log(levine), growth + 2 * bend * s
    curvature = np.log(np.maximum(column["curvature"], 1e-9)) + column["curvature_size"] * s
    return np.column_stack([place, curvature, growth - 1 / (1 + 2 * base.b * levine)])


def _together(fits: Sequence[Posterior]) -> tuple[Floats, Floats]:
    """The mean of dependent lengths, with the variance of one of them and the scatter between them."""
    means = np.array([fit.mean for fit in fits])
    weights = np.array([1 / np.diag(fit.covariance) for fit in fits])
    weights /= weights.sum(axis=0)
    mean = (weights * means).sum(axis=0)
    root = np.sqrt(weights)
    off = means - mean
    covariance = sum(
        np.outer(w, w) * (fit.covariance + np.outer(d, d)) for w, d, fit in zip(root, off, fits, strict=True)
    )
    return mean, np.asarray(covariance)


def _shapes(parts: Sequence[Part]) -> list[tuple[float, ...]]:
    """Every shape of the set, by size and depth."""
    rows = {key for part in parts for key in _keys(part.runs)}
    return sorted(rows)


def _keys(runs: Runs) -> list[tuple[float, ...]]:
    return list(zip(runs.block_params.tolist(), runs.depth.tolist(), strict=True))


def _slope(
    parts: Sequence[Part], centre: float, progress: Callable[[float], None] | None
) -> tuple[float, float] | None:
    """d ln(curvature) / d ln(tokens per parameter) within recipes, and its variance; None without two lengths."""
    recipes: dict[str, list[Part]] = {}
    for part in parts:
        recipes.setdefault(part.recipe, []).append(part)
    several = [group for group in recipes.values() if np.ptp([part.log_ratio for part in group]) > APART]
    if not several:
        return None
    whole = _contrast(several, centre, frozenset())
    shapes = _shapes(parts)
    groups = min(GROUPS, len(shapes))
    without = []
    for group in range(groups):
        without.append(_contrast(several, centre, frozenset(shapes[group::groups])))
        if progress:
            progress((group + 1) / groups)
    off = np.array(without) - np.mean(without)
    return whole, float(off @ off) * (groups - 1) / groups


def _contrast(recipes: Sequence[Sequence[Part]], centre: float, without: frozenset[tuple[float, ...]]) -> float:
    """The slope of ln curvature against ln tokens per parameter, each recipe with a level of its own."""
    top = bottom = 0.0
    for parts in recipes:
        t = np.array([part.log_ratio for part in parts])
        c = np.array([_log_curvature(part, centre, without) for part in parts])
        top += float((t - t.mean()) @ (c - c.mean()))
        bottom += float((t - t.mean()) @ (t - t.mean()))
    return top / bottom


def _log_curvature(part: Part, centre: float, without: frozenset[tuple[float, ...]]) -> float:
    keep = np.array([key not in without for key in _keys(part.runs)])
    fit = fit_joint(part.runs.select(keep), bootstrap=FEW_DRAWS, examine=False)
    s = math.log(centre / fit.centre)
    return math.log(max(fit["curvature"], 1e-4)) + fit["curvature_size"] * s


def _length(part: Part, fit: Posterior | None) -> Length:
    shapes = len(np.unique(part.runs.shapes))
    about: dict[str, Any] = {"name": part.name, "tokens_per_param": math.exp(part.log_ratio), "shapes": shapes}
    if fit is None:
        return Length(**about, place=None, place_error=None, log_curvature=None, log_curvature_error=None)
    (place, curve, _), error = fit.mean.tolist(), np.sqrt(np.diag(fit.covariance))
    return Length(
        **about,
        place=place,
        place_error=float(error[0]),
        log_curvature=curve,
        log_curvature_error=float(error[1]),
    )
