"""Does depth pay only from some size on, and does that size grow with depth? (Levine et al. 2020)"""

import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
from deepwide.quantities import show_count
from deepwide.settings import Natural, Part, Positive
from deepwide.studies.public_data import file_row
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

if TYPE_CHECKING:
    from deepwide.fitting import Noise, Runs, TransitionFit

FEWEST_SIZES = 5  # of a depth: with fewer sizes its curve is not its own, and no verdict hangs on it
FEWEST_CROSSINGS = 3  # for a line: any two points are on one
PLACED = 2.0  # a crossing of two depths is drawn halfway between them: so far off in size, a line still meets it

NOISES: "Mapping[Noise, str]" = {"depth": "by depth", "same": "one for all depths"}  # the scatter about the curves
POINTS = 60  # along a curve in the picture

Row = Mapping[str, Any]


def shows_both_regimes(measured: Measured) -> Ruling:
    pairs = _neighbours(measured)
    seen = [row for row in pairs if row["regimes"] == "seen"]
    if seen:
        return Ruling(REPRODUCED, _crossing_of(seen[0]), (_which(seen),))
    against = bool(pairs) and all(row["regimes"] == "not seen" for row in pairs)
    return Ruling(NOT_REPRODUCED if against else NOT_DECIDABLE)


def crossing_grows(measured: Measured) -> Ruling:
    limited = [row for row in _neighbours(measured) if _is_limited(row)]
    steps = [(lower, upper) for lower, upper in pairwise(limited) if lower["deep"] == upper["shallow"]]
    rising = [step for step in steps if _growth(*step).low > 1]
    falling = [step for step in steps if _growth(*step).high < 1]
    if rising and not falling:
        return Ruling(REPRODUCED, _growth(*rising[0]), (_which(rising[0]),))
    if falling and not rising:
        return Ruling(NOT_REPRODUCED, _growth(*falling[0]), (_which(falling[0]),))
    return Ruling(NOT_DECIDABLE, _growth(*steps[0]) if steps else None)


def crossings_are_on_a_line(measured: Measured) -> Ruling:
    limited = [row for row in _neighbours(measured) if _is_limited(row)]
    slope = measured.numbers.get("slope b of ln width = a + b·depth")
    if slope is None or slope.low is None or slope.high is None or len(limited) < FEWEST_CROSSINGS:
        return Ruling(NOT_DECIDABLE, slope, (_few_crossings(len(limited)),))
    missed = [row for row in limited if not row["low"] / PLACED <= row["line_size"] <= PLACED * row["high"]]
    if missed or slope.high <= 0:
        return Ruling(NOT_REPRODUCED, slope, (_which(missed),) if missed else ())
    return Ruling(REPRODUCED if slope.low > 0 else NOT_DECIDABLE, slope)


def best_depth_grows(measured: Measured) -> Ruling:
    exponent = measured.numbers.get("exponent of the best depth in the size")
    if exponent is None or exponent.low is None or exponent.high is None:
        return Ruling(NOT_DECIDABLE)
    if exponent.low > 0:
        return Ruling(REPRODUCED, exponent)
    return Ruling(NOT_REPRODUCED if exponent.high <= 0 else NOT_DECIDABLE, exponent)


def _neighbours(measured: Measured) -> list[dict[str, Any]]:
    """Neighbouring depths that both have enough sizes, from shallow to deep."""
    rows = [row for row in measured.table("crossings") if row["neighbours"] and row["fewest_sizes"] >= FEWEST_SIZES]
    return sorted(rows, key=lambda row: row["shallow"])


def _is_limited(row: Row) -> bool:
    return row["status"] == "bracketed" and row["low"] is not None and row["high"] is not None


def _growth(lower: Row, upper: Row) -> Any:
    """How many times larger the second crossing is; limits do not overlap where those of this ratio exclude 1."""
    ratio = upper["size"] / lower["size"]
    return Interval(ratio, upper["low"] / lower["high"], upper["high"] / lower["low"])


def _crossing_of(row: Row) -> Interval | None:
    return None if row["size"] is None else Interval(row["size"], row["low"], row["high"])


def _which(rows: Any) -> Note:
    return Note.of("pairs", f"Depths: {', '.join(row['pair'] for row in rows)}")


def _few_crossings(number: int) -> Note:
    return Note.of(
        "few_crossings",
        f"{number} crossings of neighbours have limits on both sides, and a line needs {FEWEST_CROSSINGS}",
        crossings=number,
    )


class Shapes(Part):
    """Networks of equal size: for each size and depth the width that comes nearest."""

    params: tuple[str, ...]  # block parameters
    depths: tuple[Positive, ...]
    rates: tuple[float, ...] = (6e-3,)


class DepthWidthSettings(Part):
    """What is trained, and which tables of finished runs are judged with it."""

    shapes: tuple[Shapes, ...] = ()  # one sweep each; a shape trained at several rates counts with its best
    tokens: str = "2M"
    seeds: tuple[Natural, ...] = (0,)
    data: str = "python"  # the corpus: python is the standard library's source
    vocab: Natural = 0  # vocabulary of byte-pair encoding; 0: bytes
    batch: Positive = 8
    context: Positive = 128  # tokens of a sequence
    heads: Positive = 2
    width_multiple: Positive = 4  # widths are multiples of this
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.055  # a shape that misses its size by more is left out
    evaluation_sequences: Positive = 1024  # sequences of an evaluation
    earlier: tuple[str, ...] = ()  # tables of runs on the same data for as many tokens, judged together with the new
    beside: Mapping[str, tuple[str, ...]] = {}  # tables fitted by themselves, for comparison: no verdict hangs on them
    distant: tuple[tuple[Positive, Positive], ...] = ((1, 4), (1, 8), (2, 8), (4, 16))  # pairs shown, not judged
    resamples: Natural = 1000


class DepthWidth(Study):
    """Levine et al.'s ablation: loss against size, one curve per depth."""

    name = "depth-width"
    question = "Does depth pay only from some size on, and does that size grow with depth?"
    source = Source(
        "Levine, Wies, Sharir, Bata, Shashua 2020, Limits to depth efficiencies of self-attention.",
        "https://arxiv.org/abs/2006.12467",
    )
    rules = (
        Rule(
            Claim(
                "regimes",
                "There are two regimes: at small sizes the shallower of two networks of equal size has the lower loss, "
                "at large sizes the deeper.",
                "figure 2",
            ),
            f"Neighbouring depths with at least {FEWEST_SIZES} sizes each. Reproduced if for some pair the shallower "
            "surely wins at a size and the deeper from a larger one on (95% for all sizes together); not reproduced if "
            "for every pair one depth surely wins at all sizes or the order is reversed.",
            shows_both_regimes,
            "block parameters from which the deeper wins",
        ),
        Rule(
            Claim(
                "crossing-grows",
                "The size from which the deeper network wins grows with depth.",
                "figure 2, section 5",
            ),
            "Crossings of neighbouring depths inside the sizes trained, with 95% limits on both sides. Reproduced if "
            "two that share a depth do not overlap and the deeper pair's is the larger, and no two are surely in the "
            "opposite order; not reproduced if it is the other way round. Measured is the ratio of the two sizes, its "
            "limits those farthest apart.",
            crossing_grows,
            "ratio of the sizes at two neighbouring crossings",
        ),
        Rule(
            Claim(
                "exponential",
                "The width at the transition grows exponentially with depth: ln width = a + b·depth with b > 0.",
                "section 5",
            ),
            f"At least {FEWEST_CROSSINGS} such crossings. Reproduced if the 95% bootstrap interval of b is above 0 and "
            f"the line meets every crossing, that is its limits widened by a factor {PLACED:g} (the depth at which a "
            "crossing belongs is only known to lie between the two); not reproduced if it misses one or nothing of the "
            "interval is above 0.",
            crossings_are_on_a_line,
        ),
        Rule(
            Claim("best-depth", "The best depth grows with the size of the network.", "section 5"),
            "Loss at equal size as a parabola in ln depth whose minimum is a power of the size. Reproduced if the 95% "
            "interval of the exponent is above 0, not reproduced if nothing of it is.",
            best_depth_grows,
        ),
    )
    libraries: ClassVar[Mapping[str, str]] = {"scipy": "fit"}
    Settings = DepthWidthSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "shapes": ({"params": ("2k", "4k", "8k", "16k", "32k"), "depths": (1, 2, 4)},),
            "tokens": "100k",
            "tolerance": 0.35,
            "evaluation_sequences": 128,
            "resamples": 200,
        },
        "cpu": {
            "shapes": (
                {"params": ("1.12M", "960k", "680k", "7.1k", "112k"), "depths": (4, 8)},
                {"params": ("3.8k", "32.5k", "112k", "680k"), "depths": (2,)},
                {"params": ("112k", "80k", "680k"), "depths": (16,)},
                {"params": ("135k", "273k"), "depths": (2, 4, 8), "rates": (1.2e-2,)},
            ),
            "earlier": ("results/fit/depth-width-cpu.csv", "results/fit/depth-width-between.csv"),
            "beside": {
                "8M tokens": ("results/fit/depth-width-long.csv",),
                "film reviews, 2M tokens": ("results/fit/depth-width-imdb.csv",),
            },
        },
        "paper": {
            "shapes": (
                {
                    "params": ("3M", "10M", "30M", "100M", "300M", "1B", "3B"),
                    "depths": (6, 12, 18, 24, 30, 36, 48),
                    "rates": (1e-3,),
                },
            ),
            "tokens": "65.5B",
            "seeds": (0, 1, 2),
            "vocab": 2000,  # of the original's corpora, which data must name; a dry run costs the same on any
            "batch": 512,
            "tolerance": 0.2,
            "distant": (),
        },
    }
    method = (
        "Decoders of several depths and equal block parameters are trained on the same data for the same number of "
        "tokens (CompleteP, rotary positions, cosine schedule). A parabola of ln loss in ln size is fitted to each "
        "depth, each with its own noise; a crossing is where the deeper curve falls below the shallower, its 95% "
        "limits by Fieller's construction, and curves that an F test cannot tell apart have none. The line goes "
        "through the crossings at the depth halfway between two (geometrically). The best depth is also fitted without "
        "crossings, as a power of the size. Tables of earlier runs are named with the SHA-256 of their files."
    )
    differences = (
        "The original trains depths 6 to 48 on Wikipedia and books with a vocabulary of 2,000, for 1M steps of 512 × "
        "128 tokens (steps and batch recalled, not confirmed; the preset paper has them, on Python source unless data "
        "names a corpus). Here it is 1 to 16 layers of at most about a million parameters on bytes of Python source "
        "for 2M tokens, with positions that rotate and the better of two learning rates for shapes up to 140k, one "
        "rate above. Most of the runs were trained before these rules were written, and the third and fourth claim "
        "were looked at then; the rules were fixed before any of the runs that the preset cpu adds had finished. Which "
        "of these are judged was decided by the time there was, not by what they showed."
    )

    def sweeps(self, settings: DepthWidthSettings) -> Mapping[str, Mapping[str, Any]]:
        data = {"source": settings.data}
        coding = {"tokeniser": "bpe", "vocab": settings.vocab} if settings.vocab else {}
        run = {
            "batch": settings.batch,
            "context": settings.context,
            "data": data | coding,
            "model": {
                "preset": "levine",
                "positions": "rotary",
                "heads": settings.heads,
                "parametrisation": "completep",
                "base_width": 64,
                "base_depth": 2,
            },
            "evaluation": {"sequences": settings.evaluation_sequences, "every": 500},
        }
        return {
            f"shapes-{number}": {
                "seeds": list(settings.seeds),
                "run": run,
                "grid": {"lr": list(shapes.rates)},
                "iso": {
                    "params": list(shapes.params),
                    "depths": list(shapes.depths),
                    "tokens": settings.tokens,
                    "width_multiple": settings.width_multiple,
                    "tolerance": settings.tolerance,
                    "misses": "skip",
                },
            }
            for number, shapes in enumerate(settings.shapes, 1)
        }

    def inputs(self, settings: DepthWidthSettings) -> list[Path]:
        return [path for paths in (settings.earlier, *settings.beside.values()) for path in _found(paths)]

    def measure(self, settings: DepthWidthSettings, workplace: Workplace) -> Measured:
        from deepwide.fitting import fit_ridge, fit_transition, read_runs

        earlier, beside = _found(settings.earlier), {name: _found(paths) for name, paths in settings.beside.items()}
        trained = list(workplace.runs.values())
        if not earlier and not trained:
            raise DeepwideError("there is nothing to judge: give shapes to train, or earlier tables of runs.")
        runs = read_runs([*earlier, *trained])
        _check_one_length(runs)
        workplace.report("curves, crossings and the best depth")
        transition = fit_transition(
            runs, noise="depth", pairs=_pairs(runs, settings), bootstrap=settings.resamples, bowl=False
        )
        ridge = fit_ridge(runs, base="power", noise="depth", bootstrap=settings.resamples)
        sets = {"all": runs}
        if earlier and trained:
            sets["earlier runs alone"] = read_runs(earlier)
        sets |= {name: read_runs(paths) for name, paths in beside.items()}
        compared: list[dict[str, Any]] = []
        growth: list[dict[str, Any]] = []
        for name, each in sets.items():
            for noise, word in NOISES.items():
                fits = partial(_fits_beside, name, noise, each, settings)
                crossings, grows = workplace.part(f"comparison: {name}, noise {word}", fits)
                compared += crossings
                growth.append(grows)
        numbers = {"runs": Interval(len(runs)), "shapes": Interval(len(set(runs.groups)))}
        if transition.names:
            numbers["slope b of ln width = a + b·depth"] = transition.interval("b", "bootstrap")
        if ridge.minimum is not None and ridge.drift.low is not None and math.isfinite(ridge.drift.low):
            numbers["exponent of the best depth in the size"] = ridge.drift
            numbers["a factor 2 in depth costs, % of loss"] = ridge.cost(2)
            law = ridge.law()
            for size in ridge.params_range if law else ():
                assert law is not None
                numbers[f"best depth at {show_count(round(size))}"] = law.depth(size).at()
        tables = {
            "crossings": [_crossing_row(transition, crossing) for crossing in transition.crossings],
            "best_depth": growth,
            "noise": [
                {"depth": depth, "sizes": len(sizes), "noise_percent": 100 * noise}
                for depth, sizes, noise in zip(
                    transition.curves.depths, transition.curves.sizes, transition.curves.noises, strict=True
                )
            ],
            "compared": compared,
            "sources": [file_row(path) for paths in (earlier, *beside.values()) for path in paths],
            "runs": [_run_row(run) for run in transition.residuals],
            "curves": _curve_rows(transition),
        }
        return Measured(numbers=numbers, tables=tables, notes=(*transition.warnings, *runs.notes))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import crossing_chart, interval_chart

        between = [row for row in measured.table("crossings") if row["neighbours"] and row["size"] is not None]
        losses = "validation loss, nats per token"
        charts = {"curves": crossing_chart(measured.table("curves"), measured.table("runs"), between, losses=losses)}
        compared = [row for row in measured.table("compared") if row["size"] is not None and row["noise"] == "by depth"]
        if compared:
            charts["crossings"] = interval_chart(
                [row | {"label": row["pair"], "value": row["size"]} for row in compared],
                "Where the deeper of two starts to win",
                "95% limits; an arrow where the data give none",
                axis="block parameters",
                labels_are="depths, shallower/deeper (layers)",
                lines="set",
                log=True,
            )
        return charts


def _found(paths: tuple[str, ...]) -> list[Path]:
    """Tables of runs by their paths."""
    for path in paths:
        if not Path(path).is_file():
            raise DeepwideError(
                f"there is no table {path} of earlier runs here: run where deepwide's repository is, or set earlier to "
                "[] and beside to {} to judge new runs alone."
            )
    return [Path(path) for path in paths]


def _check_one_length(runs: "Runs") -> None:
    lengths = sorted(set(runs.tokens.tolist()))
    if len(lengths) > 1:
        raise DeepwideError(
            f"the runs saw {lengths[0]:g} to {lengths[-1]:g} tokens, and losses are compared at one length: leave the "
            "others out of earlier."
        )


def _pairs(runs: "Runs", settings: DepthWidthSettings) -> tuple[tuple[int, int], ...]:
    """The distant pairs of which both depths have a curve."""
    sizes = {depth: len(set(runs.block_params[runs.depth == depth])) for depth in map(int, set(runs.depth))}
    return tuple(pair for pair in settings.distant if all(sizes.get(depth, 0) >= 3 for depth in pair))


def _crossing_row(fit: "TransitionFit", crossing: Any) -> dict[str, Any]:
    curves = fit.curves
    sizes = [len(curves.sizes[curves.index(depth)]) for depth in (crossing.shallow, crossing.deep)]
    line = None
    if fit.names:
        line = round(12 * crossing.depth * math.exp(2 * (fit["a"] + fit.b * crossing.depth)))
    return {
        "pair": f"{crossing.shallow}/{crossing.deep}",
        "shallow": crossing.shallow,
        "deep": crossing.deep,
        "neighbours": (crossing.shallow, crossing.deep) in set(pairwise(curves.depths)),
        "fewest_sizes": min(sizes),
        "status": crossing.status,
        **_limits(crossing),
        "loss": curves.loss(crossing.shallow, crossing.size)[0].value if crossing.size else None,
        "line_size": line,
        "regimes": crossing.regimes,
        "shallow_wins_up_to": max(map(round, crossing.shallow_wins), default=None),
        "deep_wins_from": min(map(round, crossing.deep_wins), default=None),
        "why_none": crossing.absent,
    }


def _limits(crossing: Any) -> dict[str, int | None]:
    """The size of a crossing and its limits, in whole parameters."""
    sizes = {"size": crossing.size, "low": crossing.low, "high": crossing.high}
    return {name: None if size is None else round(size) for name, size in sizes.items()}


def _fits_beside(name: str, noise: "Noise", runs: "Runs", settings: DepthWidthSettings) -> tuple[Any, Any]:
    return _crossings_beside(name, noise, runs, settings), _growth_beside(name, noise, runs)


def _crossings_beside(name: str, noise: "Noise", runs: "Runs", settings: DepthWidthSettings) -> list[dict[str, Any]]:
    from deepwide.fitting import fit_transition

    fit = fit_transition(runs, noise=noise, pairs=_pairs(runs, settings), bootstrap=0, bowl=False)
    return [
        {
            "set": name,
            "noise": NOISES[noise],
            "pair": f"{crossing.shallow}/{crossing.deep}",
            "status": crossing.status,
            **_limits(crossing),
            "regimes": crossing.regimes,
        }
        for crossing in fit.crossings
    ]


def _growth_beside(name: str, noise: "Noise", runs: "Runs") -> dict[str, Any]:
    from deepwide.fitting import fit_ridge

    fit = fit_ridge(runs, base="power", noise=noise, bootstrap=0)
    cost, sure = fit.cost(2), fit.minimum is not None and bool(fit.dof)
    return {
        "set": name,
        "noise": NOISES[noise],
        "shapes": len(set(runs.groups)),
        "runs": len(runs),
        "exponent": fit.drift.value if sure else None,
        "low": fit.drift.low if sure else None,
        "high": fit.drift.high if sure else None,
        "factor_2_costs_percent": cost.value,
        "costs_at_least": cost.low,
        "costs_at_most": cost.high,
    }


def _run_row(run: Any) -> dict[str, Any]:
    return {
        "depth": int(run.depth),
        "size": run.params,
        "loss": run.loss,
        "seed": run.seed,
        "diverged": bool(run.diverged),
        "residual_percent": 100 * math.expm1(run.residual),
    }


def _curve_rows(fit: "TransitionFit") -> list[dict[str, Any]]:
    """Each depth's curve with its band, over the sizes trained."""
    rows = []
    for depth, (low, high) in zip(fit.curves.depths, fit.curves.ranges, strict=True):
        sizes = [low * (high / low) ** (step / POINTS) for step in range(POINTS + 1)]
        for size, loss in zip(sizes, fit.curves.loss(depth, sizes), strict=True):
            rows.append({"depth": depth, "size": size, "loss": loss.value, "low": loss.low, "high": loss.high})
    return rows
