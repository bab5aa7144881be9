"""From runs to a set of evidence, by one method for all sets.

    ln loss = [cⱼ + sⱼ·σ + s₂ⱼ·σ² + eⱼ·ε] + b₁·x + (b₂ + b₄·τⱼ)·x² [+ b₃·σ·x] [+ b₅·x³]

j is a length (or a recipe) with nuisance terms of its own: level, size, embeddings. σ = ln(N / centre), ε = ln(total /
block) or 1 − block/total or absent, x = ln(depth / levine's depth at N), τⱼ = ln(tokens per parameter of the length /
centre): the slope is from contrasts between lengths alone, so that it is not the size's. All 3 × 2 × 2 forms are
fitted and averaged by their Akaike weights; the covariance is the jackknife's over shapes (checkpoints of one run
are one shape), widened by Student's t, plus the scatter between the forms.
"""

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwide.answers import Z95
from deepwide.errors import DeepwideError, needs
from deepwide.fitting import Runs, read_runs, t95
from deepwide.laws import transition_law
from deepwide.pooling.sets import EvidenceSet, Length, Variant
from deepwide.quantities import Floats, Integers, show_count

EMBEDDINGS = ("ratio", "share", "none")
FEWEST = 10  # shapes of a length that is used
SAME_LENGTH = math.log(1.5)  # within a length
APART = math.log(1.2)  # lengths that tell a slope
FARTHEST = 6.0  # |x| of a minimum that counts as one


class Form(NamedTuple):
    """Which terms a regression has."""

    embeddings: str
    drift: bool
    skew: bool

    @property
    def words(self) -> str:
        """embeddings as ratio, drift, skew."""
        extra = [name for name in ("drift", "skew") if getattr(self, name)]
        return ", ".join([f"embeddings: {self.embeddings}", *extra])


FORMS = [Form(*each) for each in itertools.product(EMBEDDINGS, (False, True), (False, True))]


@dataclass(frozen=True, eq=False)
class Part:
    """One length: a row per shape, the mean over its seeds."""

    name: str
    shape: Integers  # which shape of the set
    y: Floats
    size: Floats
    total: Floats
    x: Floats
    log_ratio: float  # mean of ln tokens per parameter

    def nuisance(self, form: Form, centre: float) -> Floats:
        """Level, size, size² and embeddings."""
        s = np.log(self.size / centre)
        columns = [np.ones_like(s), s, s**2]
        if form.embeddings == "ratio":
            columns.append(np.log(self.total / self.size))
        elif form.embeddings == "share":
            columns.append(1 - self.size / self.total)
        return np.column_stack(columns)

    def bowl(self, form: Form, centre: float, tau: float | None) -> Floats:
        """x, x², and what the form has besides."""
        columns = [self.x, self.x**2]
        columns += [] if tau is None else [tau * self.x**2]
        columns += [np.log(self.size / centre) * self.x] if form.drift else []
        return np.column_stack([*columns, self.x**3] if form.skew else columns)


class Estimate(NamedTuple):
    """What a regression says: place, ln curvature, the slope in tokens per parameter and the drift (0 where absent)."""

    place: float
    log_curvature: float
    token_slope: float
    drift: float


def add_evidence(
    tables: Any,
    *,
    name: str,
    about: str,
    citation: str = "",
    command: str = "",
    lengths: Iterable[float] = (),
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, float | str] | None = None,
    limits: Iterable[tuple[str, str, float]] = (),
    embedding_rows: float | None = None,
    best_of: Iterable[str] = (),
) -> EvidenceSet:
    """Measure a set of evidence on tables of runs (or folders of them); `save_set` writes it.

    Each table is a recipe of its own, with lengths of its own: those of `lengths` (numbers of tokens, where rows are
    checkpoints), or else those that its runs have. The other arguments are `fit`'s.
    """
    needs("scipy", "fit")
    sources = tables if isinstance(tables, list | tuple) and all(isinstance(t, str | Path) for t in tables) else [tables]
    options: dict[str, Any] = {
        "limits": tuple(limits), "embedding_rows": embedding_rows, "best_of": tuple(best_of), "columns": columns,
    }  # fmt: skip
    parts: dict[str, Runs] = {}
    notes: list[str] = []
    wanted = list(lengths)
    for source in sources:
        label = f"{Path(source).stem}, " if len(sources) > 1 else ""
        if wanted:
            for tokens in wanted:
                try:
                    parts[f"{label}{show_count(tokens)} tokens"] = read_runs(
                        source, where={**(where or {}), "tokens": tokens}, **options
                    )
                except DeepwideError as error:
                    if "within 1%" not in str(error):
                        raise
            continue
        parts |= {f"{label}{words}": runs for words, runs in split_lengths(read_runs(source, where=where, **options))}
    if not parts:
        raise DeepwideError(f"no run has tokens within 1% of {', '.join(f'{each:g}' for each in wanted)}.")
    few = [words for words, runs in parts.items() if len(np.unique(runs.shapes)) < FEWEST]
    if few:
        notes.append(f"left out, fewer than {FEWEST} shapes: {'; '.join(few)}")
    hashes = {
        Path(source).name: hashlib.sha256(Path(source).read_bytes()).hexdigest()
        for source in sources
        if isinstance(source, str | Path) and Path(source).is_file()
    }
    about_it = {"name": name, "about": about, "citation": citation, "command": command, "sha256": hashes}
    return measure_set({words: runs for words, runs in parts.items() if words not in few}, notes=notes, **about_it)


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


def measure_set(parts: Mapping[str, Runs], *, notes: Sequence[str] = (), **about: Any) -> EvidenceSet:
    """The set that these lengths of one recipe are."""
    if not parts:
        raise DeepwideError(f"a set of evidence needs a length with at least {FEWEST} shapes.")
    for runs in parts.values():
        runs.need("depth", "block_params", "total_params", "tokens")
    diverged = sum(int(runs.diverged.sum()) for runs in parts.values())
    runs_of = {name: runs.select(~runs.diverged) for name, runs in parts.items()}
    centre, shapes, tables = _tables(runs_of)
    ratios = np.array([part.log_ratio for part in tables])
    middle = float(np.average(ratios, weights=[len(part.y) for part in tables]))
    taus = ratios - middle if np.ptp(ratios) > APART else None
    scale = [_noise(part, centre) for part in tables]
    fits: list[tuple[Form, float, Estimate, Floats]] = []
    for form in FORMS:
        score = _akaike(tables, form, centre)
        estimate = _regress(tables, form, centre, taus, scale)
        if score is None or estimate is None:
            continue
        spread = _jackknife(tables, form, centre, taus, scale, shapes)
        if spread is not None:
            dof = min(len(part.y) for part in tables) - _terms(form)
            fits.append((form, score, estimate, spread * (t95(dof) / Z95) ** 2))
    if not fits:
        raise DeepwideError(
            "these runs show no best depth (no curvature above 0 that survives leaving out each shape): they are no "
            "evidence of one."
        )
    best = min(score for _, score, _, _ in fits)
    weights = np.exp([-(score - best) / 2 for _, score, _, _ in fits])
    weights /= weights.sum()
    values = np.array([estimate for _, _, estimate, _ in fits])
    mean = weights @ values
    off = values - mean
    covariance = sum(w * (V + np.outer(d, d)) for w, d, (_, _, _, V) in zip(weights, off, fits, strict=True))
    k = 2 if taus is None else 3
    every = [runs for runs in runs_of.values()]
    joined = {name: np.concatenate([getattr(runs, name) for runs in every]) for name in _COLUMNS}
    share = 1 - joined["block_params"] / joined["total_params"]
    per = joined["tokens"] / joined["total_params"]
    x = np.concatenate([part.x for part in tables])
    drifting = [(w, e.drift, V[3, 3]) for w, (f, _, e, V) in zip(weights, fits, strict=True) if f.drift]
    drift, drift_error = _average(drifting)
    return EvidenceSet(
        **about,
        runs=len(joined["tokens"]),
        shapes=shapes,
        sizes=_span(joined["block_params"]),
        depths=_span(joined["depth"]),
        tokens_per_param=_span(per),
        shares=_span(share),
        x_range=(float(x.min() - mean[0]), float(x.max() - mean[0])),
        centre_params=centre,
        centre_tokens_per_param=math.exp(middle),
        place=float(mean[0]),
        log_curvature=float(mean[1]),
        token_slope=None if taus is None else float(mean[2]),
        covariance=tuple(map(tuple, np.asarray(covariance)[:k, :k].tolist())),
        drift=drift,
        drift_error=drift_error,
        lengths=tuple(_length(part, centre) for part in tables),
        variants=tuple(
            Variant(terms=form.words, weight=round(float(w), 4), place=e.place, log_curvature=e.log_curvature)
            for w, (form, _, e, _) in zip(weights, fits, strict=True)
        ),
        notes=(*notes, *([f"{diverged} diverged runs left out"] if diverged else [])),
    )


_COLUMNS = ("depth", "block_params", "total_params", "tokens")


def _span(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _average(rows: list[tuple[float, float, float]]) -> tuple[float, float]:
    """The mean over the forms that have a drift, with its error; unknown (0 ± 1) where none has."""
    total = sum(w for w, _, _ in rows)
    if not rows or total <= 0:
        return 0.0, 1.0
    mean = sum(w * value for w, value, _ in rows) / total
    return mean, math.sqrt(sum(w * (v + (value - mean) ** 2) for w, value, v in rows) / total)


def _tables(runs_of: Mapping[str, Runs]) -> tuple[float, int, list[Part]]:
    """The centre of the sizes, the number of different shapes, and the lengths as parts."""
    keys: dict[tuple[float, ...], int] = {}
    sizes = np.concatenate([runs.block_params for runs in runs_of.values()])
    centre = float(np.exp(np.mean(np.log(sizes))))
    parts = []
    for name, runs in runs_of.items():
        _, first, group = np.unique(runs.shapes, return_index=True, return_inverse=True)
        y = np.bincount(group, np.log(runs.loss)) / np.bincount(group)
        one = runs.select(first)
        shapes = zip(one.depth.tolist(), one.width.tolist(), one.block_params.tolist(), strict=True)
        shape = np.array([keys.setdefault(tuple(round(v) if v == v else 0 for v in key), len(keys)) for key in shapes])
        x = np.log(one.depth / transition_law().depth(one.block_params).value)
        ratio = float(np.mean(np.log(runs.tokens / runs.total_params)))
        parts.append(Part(name, shape, y, one.block_params, one.total_params, x, ratio))
    return centre, len(keys), parts


def _terms(form: Form) -> int:
    return 5 + (form.embeddings != "none") + form.drift + form.skew


def _solve(X: Floats, y: Floats) -> Floats | None:
    """Least squares, None where the columns do not determine it."""
    scale = np.sqrt((X**2).mean(axis=0)) + 1e-300
    if len(y) <= X.shape[1] or np.linalg.matrix_rank(X / scale, tol=1e-8 * math.sqrt(len(y))) < X.shape[1]:
        return None
    return np.asarray(np.linalg.lstsq(X / scale, y)[0] / scale)


def _noise(part: Part, centre: float) -> float:
    """The residual standard deviation of a length about the fullest form."""
    form = Form("ratio", True, True)
    X = np.column_stack([part.nuisance(form, centre), part.bowl(form, centre, None)])
    theta = _solve(X, part.y)
    if theta is None:
        return 1e-3
    off = part.y - X @ theta
    return max(math.sqrt(float(off @ off) / max(len(off) - X.shape[1], 1)), 1e-5)


def _akaike(parts: Sequence[Part], form: Form, centre: float) -> float | None:
    """AICc of a form, the mean over lengths: they are not independent, so they do not count as more data."""
    scores = []
    for part in parts:
        X = np.column_stack([part.nuisance(form, centre), part.bowl(form, centre, None)])
        theta = _solve(X, part.y)
        n, k = len(part.y), X.shape[1] + 1
        if theta is None or n - k - 1 <= 0:
            return None
        off = part.y - X @ theta
        scores.append(n * math.log(max(float(off @ off) / n, 1e-14)) + 2 * k * n / (n - k - 1))
    return float(np.mean(scores))


def _regress(
    parts: Sequence[Part],
    form: Form,
    centre: float,
    taus: Floats | None,
    scale: Sequence[float],
    without: int | None = None,
) -> Estimate | None:
    """All lengths together, each with its own nuisance terms and weight; None where there is no bowl."""
    rows, y = [], []
    blocks = [part.nuisance(form, centre) for part in parts]
    width = sum(block.shape[1] for block in blocks)
    at = 0
    for i, (part, block) in enumerate(zip(parts, blocks, strict=True)):
        shared = part.bowl(form, centre, None if taus is None else float(taus[i]))
        X = np.zeros((len(part.y), width + shared.shape[1]))
        X[:, at : at + block.shape[1]] = block
        X[:, width:] = shared
        at += block.shape[1]
        keep = part.shape != without
        rows.append(X[keep] / scale[i])
        y.append(part.y[keep] / scale[i])
    theta = _solve(np.concatenate(rows), np.concatenate(y))
    return None if theta is None else _estimate(theta[width:], form, taus is not None)


def _estimate(theta: Floats, form: Form, sloped: bool) -> Estimate | None:
    values = iter(theta.tolist())
    b1, b2 = next(values), next(values)
    b4 = next(values) if sloped else 0.0
    b3 = next(values) if form.drift else 0.0
    b5 = next(values) if form.skew else 0.0
    place = -b1 / (2 * b2) if b2 else math.inf
    if b5:
        square = b2 * b2 - 3 * b5 * b1
        if square <= 0:
            return None
        place = (-b2 + math.sqrt(square)) / (3 * b5)  # the root that is a minimum
    curvature = b2 + 3 * b5 * place
    if not curvature > 0 or abs(place) > FARTHEST:
        return None
    return Estimate(place, math.log(curvature), b4 / curvature, -b3 / (2 * curvature))


def _jackknife(
    parts: Sequence[Part], form: Form, centre: float, taus: Floats | None, scale: Sequence[float], shapes: int
) -> Floats | None:
    """The covariance from leaving out one shape at a time, at all its lengths; None where a bowl hangs on one shape."""
    without = [_regress(parts, form, centre, taus, scale, shape) for shape in range(shapes)]
    if any(each is None for each in without):
        return None
    values = np.array(without)
    off = values - values.mean(axis=0)
    return np.asarray(off.T @ off * (shapes - 1) / shapes + 1e-12 * np.eye(values.shape[1]))


def _length(part: Part, centre: float) -> Length:
    """One length by itself, in the usual form: for the table."""
    form = Form("ratio", False, False)
    estimate = _regress([part], form, centre, None, [1.0])
    about: dict[str, Any] = {
        "name": part.name, "tokens_per_param": math.exp(part.log_ratio), "shapes": len(part.y)
    }  # fmt: skip
    if estimate is None:
        return Length(**about, place=0.0, place_error=9.0, log_curvature=None, log_curvature_error=None)
    numbered = Part(part.name, np.arange(len(part.y)), part.y, part.size, part.total, part.x, part.log_ratio)
    spread = _jackknife([numbered], form, centre, None, [1.0], len(part.y))
    place, curve = (9.0, 9.0) if spread is None else np.sqrt(np.diag(spread)[:2]).tolist()
    return Length(
        **about,
        place=estimate.place,
        place_error=place,
        log_curvature=estimate.log_curvature,
        log_curvature_error=curve,
    )
