"""What do the Gemstones models say about depth, and is their printed surface the best one? (McLeish et al. 2025)"""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.settings import Natural, Part
from deepwide.studies.public_data import file_row, public_file
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

if TYPE_CHECKING:
    from deepwide.fitting import RidgeFit, Runs

SAME = 1e-4  # objectives that differ by less, relatively, count as equal
FEWEST_CLASSES = 5  # if chance picked one of three, it would be right in all of five in one case of 243
MOST, LEAST = 1.0, 0.5  # the share of classes whose best shape must be the nearest to the law, and the one too few
BROAD = 2.0  # an interval of a depth that is broader than this factor either way decides nothing

# McLeish et al. 2025, parameters_delta-4/…_hot_100b+.json of their repository: ln of the floor, ln coefficients of
# width, depth, parameters and tokens, then the exponents; and the objective it states.
PRINTED = (0.4282048563, 1.082043835, -0.2186969889, 6.0902355695, 10.4720427681)
PRINTED_EXPONENTS = (0.2195783536, 0.4758917337, 0.3636454068, 0.4935127042)
PRINTED_OBJECTIVE = 0.0002949708
PRINTED_FILE, PRINTED_DELTA = "hot_100b+", 1e-4

VOCAB = 50304
CURVES = {  # of what kind, the file, and at how many tokens its learning curves are cut
    "hot": ("hot_100b+_477", (50e9, 100e9, 200e9, 350e9)),
    "cooled": ("cool_end", (110e9,)),
    "lower rates": ("lr_ablation_hot_477", (100e9,)),
}
CLASSES = {"0.5B": (0.4e9, 0.7e9), "1B": (0.85e9, 1.3e9), "2B": (1.6e9, 2.6e9)}
TREATMENTS = ("no embedding term", "embedding term", "from 0.4B")
PRIMARY = ("hot", 100e9, "embedding term")
SURFACE_FILES = ("hot_100b+", "hot", "hot_120b+_only", "cool_end", "lr_ablation_hot")
BILLIONS = (0.1, 0.5, 1, 2, 7, 70)
POINTS = 60  # along the curve in the picture
CUT = 3.0  # the upper limit of a minimum beyond which the picture shows an arrow


def best_is_nearest(measured: Measured) -> Ruling:
    share = measured.number("share of classes whose best shape is nearest to the law")
    rows = measured.table("best_shapes")
    note = Note.of("classes", f"{sum(row['same'] for row in rows)} of {len(rows)} classes and lengths")
    if len({row["class"] for row in rows}) < FEWEST_CLASSES:  # lengths are cuts of the same runs, not further cases
        return Ruling(NOT_DECIDABLE, share, (note,))
    if share.value >= MOST:
        return Ruling(REPRODUCED, share, (note,))
    return Ruling(NOT_REPRODUCED if share.value < LEAST else NOT_DECIDABLE, share, (note,))


def minimum_is_the_law(measured: Measured) -> Ruling:
    rows = [row for row in measured.table("ridges") if row["low"] is not None and row["high"] is not None]
    holds = [row["low"] <= 1 <= row["high"] for row in rows]
    shown = measured.number("best depth / the law's, 100B tokens")
    note = Note.of("fits", f"{sum(holds)} of {len(rows)} fits hold 1")
    if rows and all(holds):
        return Ruling(REPRODUCED, shown, (note,))
    return Ruling(NOT_DECIDABLE if any(holds) or not rows else NOT_REPRODUCED, shown, (note,))


def printed_is_least(measured: Measured) -> Ruling:
    stated = measured.number("objective of the printed surface / the one it states")
    above = measured.number("objective of the printed surface above the least, %")
    if abs(stated.value - 1) > SAME:  # another problem than the one that was printed
        return Ruling(NOT_DECIDABLE, above)
    return Ruling(REPRODUCED if above.value <= 100 * SAME else NOT_REPRODUCED, above)


def depth_at_2b(measured: Measured) -> Ruling:
    printed = measured.number("best depth at 2B, printed surface")
    best = measured.number("best depth at 2B, shapes resampled")
    if best.low is None or best.high is None:
        return Ruling(NOT_DECIDABLE, best)
    if not best.low <= printed.value <= best.high:
        return Ruling(NOT_REPRODUCED, best)
    sharp = best.high / BROAD <= best.value <= best.low * BROAD
    return Ruling(REPRODUCED if sharp else NOT_DECIDABLE, best)


class GemstonesSettings(Part):
    """Where the runs are, and how often shapes are resampled."""

    data: str = ""  # the folder gemstones, with wandb_dfs/ in it; empty: the one in DEEPWIDE_DATA
    resamples: Natural = 300  # bootstrap resamples, by rows and by shapes


class Gemstones(Study):
    """Refits of the Gemstones runs."""

    name = "gemstones"
    question = "Which depth is best on the Gemstones models, and is their printed surface the best one?"
    source = Source(
        "McLeish et al. 2025, Gemstones: a model suite for multi-faceted scaling laws (runs: github "
        "mcleish7/gemstone-scaling-laws, MIT); the law of Levine et al. 2021.",
        "https://arxiv.org/abs/2502.06857",
    )
    rules = (
        Rule(
            Claim(
                "nearest",
                "Among shapes of one size the best is the one nearest to the depth of the transition law.",
                "Levine et al. 2021, ln d = 5.039 + 0.0555·L",
            ),
            f"In the classes {', '.join(CLASSES)} of total parameters, three or four shapes each, at every length of "
            "training. Reproduced if it is so in all of them, not reproduced if in less than half; not decidable with "
            f"fewer than {FEWEST_CLASSES} classes.",
            best_is_nearest,
        ),
        Rule(
            Claim(
                "minimum", "At equal size the loss is least at the depth of the transition law.", "Levine et al. 2021"
            ),
            "ln loss at equal block parameters as a parabola in ln(depth / the law's), at every length and in three "
            f"ways ({', '.join(TREATMENTS)}). Reproduced if the 95% interval of the minimum holds 1 in all fits, not "
            "reproduced if in none. Measured is the one at 100B tokens with an embedding term.",
            minimum_is_the_law,
        ),
        Rule(
            Claim(
                "least",
                "The printed coefficients of the surface in width, depth, parameters and tokens are its best fit.",
                "their repository, δ = 1e-4",
            ),
            "The sum of Huber losses on their file. Where the printed surface has the objective it states (to "
            f"{100 * SAME:g}%): reproduced if that is at most {100 * SAME:g}% above the least, else not reproduced.",
            printed_is_least,
        ),
        Rule(
            Claim("depth", "At 2B parameters and 20 tokens per parameter the best depth is 47.", "the printed surface"),
            "The best depth of the refitted surface, whole shapes resampled (the rows are checkpoints of 22 runs). "
            f"Reproduced if its 95% interval holds that of the printed surface and stays within a factor {BROAD:g} of "
            "the estimate, not reproduced if it does not hold it.",
            depth_at_2b,
        ),
    )
    libraries: ClassVar[Mapping[str, str]] = {"scipy": "fit"}
    Settings = GemstonesSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"resamples": 40},
        "cpu": {},
        "paper": {"resamples": 1000},
    }
    method = (
        "The authors' logged runs of 22 shapes (23M to 1.8B block parameters, 2B to 350B tokens) are fitted; nothing "
        "is trained. Block parameters are counted without both embedding matrices. Learning curves are cut at one "
        "length, and the bowl in ln depth about the transition law is fitted at equal block parameters with a parabola "
        "in size. The surface is fitted as published (Huber loss in ln loss, δ = 1e-4), by variable projection."
    )
    differences = (
        "The first two claims are Levine et al.'s law, tested on runs made for another purpose. Training loss as "
        "logged, one seed per shape, tokens fixed and not compute-optimal. Only shapes below 80M are ever deeper than "
        "the law says, so the cost of too much depth is hardly seen. These rules were written when earlier results of "
        "the same fits were known, so the verdicts describe more than they test."
    )

    def inputs(self, settings: GemstonesSettings) -> list[Path]:
        return list(_files(settings).values())

    def measure(self, settings: GemstonesSettings, workplace: Workplace) -> Measured:
        files = _files(settings)
        best, ridges, bowl = workplace.part("best shapes and bowls", lambda: _bowls(files))
        surfaces = [
            row
            for name in SURFACE_FILES
            for row in workplace.part(f"the surface, {name}", partial(_surface_rows, name, files[name]))
        ]
        resampled = partial(_best_depths, files[PRINTED_FILE], settings.resamples)
        depths = workplace.part(f"the surface, {settings.resamples} resamples in two ways", resampled)
        (printed,) = [row for row in surfaces if (row["file"], row["delta"]) == (PRINTED_FILE, PRINTED_DELTA)]
        (primary,) = [row for row in ridges if (row["runs"], row["tokens"], row["fit"]) == PRIMARY]
        at_2b = {row["source"]: row for row in depths if row["total_params"] == 2e9}
        shown = at_2b["refit, shapes resampled"]
        numbers = {
            "share of classes whose best shape is nearest to the law": Interval(
                sum(row["same"] for row in best) / len(best)
            ),
            "best depth / the law's, 100B tokens": Interval(primary["minimum"], primary["low"], primary["high"]),
            "a factor 2 in depth costs, % of loss": Interval(
                primary["factor_2_costs_percent"], primary["costs_at_least"], primary["costs_at_most"]
            ),
            "objective of the printed surface / the one it states": Interval(
                printed["objective_of_printed"] / PRINTED_OBJECTIVE
            ),
            "objective of the printed surface above the least, %": Interval(
                100 * (printed["objective_of_printed"] / printed["objective"] - 1)
            ),
            "best depth at 2B, printed surface": Interval(at_2b["printed"]["depth"]),
            "best depth at 2B, shapes resampled": Interval(shown["depth"], shown["low"], shown["high"]),
        }
        tables = {
            "best_shapes": best,
            "ridges": ridges,
            "counting": _countings(files["hot_100b+_477"]),
            "surfaces": surfaces,
            "best_depth": depths,
            "sources": [file_row(path) for _, path in sorted(files.items())],
            **bowl,
        }
        return Measured(numbers=numbers, tables=tables)

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import bowl_chart, interval_chart

        ridges = [
            row | {"label": f"{row['runs']}, {row['tokens'] / 1e9:g}B tokens", "value": row["minimum"]}
            for row in measured.table("ridges")
            if row["minimum"] is not None
        ]
        cut = [row | {"high": None if row["high"] and row["high"] > CUT else row["high"]} for row in ridges]
        depths = [
            row | {"label": f"{row['total_params'] / 1e9:g}B", "value": row["depth"]}
            for row in measured.table("best_depth")
        ]
        return {
            "bowl": bowl_chart(
                measured.table("points"),
                measured.table("bowl"),
                "Gemstones at equal size: loss against depth, 100B tokens",
                "points: shapes as width×depth, their size taken out; line: the fitted bowl with its 95% band",
                x_title="depth / depth of the transition law at the shape's block parameters",
            ),
            "minima": interval_chart(
                cut,
                "Where the loss is least, in depths of the transition law",
                "95% intervals, an arrow where the upper limit is above 3; the way embeddings are treated decides",
                axis="depth / the law's depth",
                lines="fit",
            ),
            "best_depth": interval_chart(
                depths,
                "Best depth by the surface, at 20 tokens per parameter",
                "95% by bootstrap: resampled row by row, or by whole shapes",
                axis="best depth (layers)",
                labels_are="parameters",
                lines="source",
                log=True,
            ),
        }


def _files(settings: GemstonesSettings) -> dict[str, Path]:
    """The tables of runs that are fitted, by name."""
    names = sorted({file for file, _ in CURVES.values()} | set(SURFACE_FILES))
    form = "wandb_dfs/wandb_df_for_fitting_{}.jsonl"
    return {name: public_file(settings.data, "gemstones", form.format(name)) for name in names}


def _cut(path: Path, tokens: float, embedding_rows: int = 2 * VOCAB) -> "Runs":
    """Every shape's loss at one length, with block parameters."""
    from deepwide.fitting import read_runs

    columns = {"total_params": "params_active_precise"}
    return read_runs(path, columns, where={"tokens": tokens}, embedding_rows=embedding_rows)


def _bowls(files: Mapping[str, Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Best shapes and ridges at every length, and the points and curve of the primary one."""
    from deepwide.fitting import fit_ridge

    best, ridges, bowl = [], [], {}
    for kind, (file, lengths) in CURVES.items():
        for tokens in lengths:
            runs = _cut(files[file], tokens)
            best += [{"runs": kind, "tokens": tokens, **row} for row in _best_shapes(runs)]
            for fit_name in TREATMENTS:
                used = runs.select(runs.total_params > 0.4e9) if fit_name == "from 0.4B" else runs
                fit = fit_ridge(used, bootstrap=0, embeddings=fit_name == "embedding term")
                ridges.append({"runs": kind, "tokens": tokens, "fit": fit_name, **_ridge_row(fit)})
                if (kind, tokens, fit_name) == PRIMARY:
                    bowl = _picture(fit, used)
    return best, ridges, bowl


def _best_shapes(runs: "Runs") -> list[dict[str, Any]]:
    """In each class of total parameters the best shape, and the one nearest to the law's depth."""
    import numpy as np

    from deepwide.laws import transition_law

    rows = []
    law = transition_law().depth(runs.block_params).value
    for name, (low, high) in CLASSES.items():
        here = np.flatnonzero((runs.total_params > low) & (runs.total_params < high))
        if len(here) < 3:
            continue
        best = here[np.argmin(runs.loss[here])]
        near = here[np.argmin(np.abs(np.log(runs.depth[here] / law[here])))]
        rows.append(
            {
                "class": name,
                "shapes": len(here),
                "best": _shape(runs, best),
                "loss": float(runs.loss[best]),
                "law_depth": float(law[best]),
                "nearest": _shape(runs, near),
                "same": bool(best == near),
                "worst_loses_percent": 100 * float(runs.loss[here].max() / runs.loss[best] - 1),
            }
        )
    return rows


def _shape(runs: "Runs", row: Any) -> str:
    return f"{runs.width[row]:.0f}×{runs.depth[row]:.0f}"


def _ridge_row(fit: "RidgeFit") -> dict[str, Any]:
    minimum, cost, four = fit.minimum, fit.cost(2), fit.cost(4)
    return {
        "shapes": fit.runs,
        "noise_percent": 100 * fit.noise,
        "minimum": minimum.value if minimum else None,
        "low": minimum.low if minimum else None,
        "high": minimum.high if minimum else None,
        "factor_2_costs_percent": cost.value,
        "costs_at_least": cost.low,
        "costs_at_most": cost.high,
        "factor_4_costs_percent": four.value,
    }


def _countings(path: Path) -> list[dict[str, Any]]:
    """The trap: how many embedding matrices are taken off moves the best depth."""
    from deepwide.fitting import fit_ridge

    words = {2 * VOCAB: "both matrices taken off", VOCAB: "one taken off, as in the published code", 0: "none: total"}
    return [
        {"embeddings": name, **_ridge_row(fit_ridge(_cut(path, 100e9, rows), bootstrap=0))}
        for rows, name in words.items()
    ]


def _picture(fit: "RidgeFit", runs: "Runs") -> dict[str, list[dict[str, Any]]]:
    """Points with their size taken out, and the bowl, in percent above its minimum."""
    from scipy.stats import t

    from deepwide.laws import transition_law

    assert fit.minimum is not None
    b1, b2 = fit["b1"], fit["b2"]
    i, j = fit.names.index("b1"), fit.names.index("b2")
    c11, c12, c22 = (fit.covariance[one][two] for one, two in ((i, i), (i, j), (j, j)))
    best = -b1 / (2 * b2)
    least = b1 * best + b2 * best**2
    spread = float(t.ppf(0.975, fit.dof))
    curve = []
    low, high = (end * 1.05 for end in fit.x_range)
    for step in range(POINTS + 1):
        x = low + (high - low) * step / POINTS
        middle = b1 * x + b2 * x**2 - least
        u, v = x - best, x**2 - best**2  # the height above the minimum's place, whose own error is of second order
        error = spread * math.sqrt(max(0.0, u * u * c11 + 2 * u * v * c12 + v * v * c22))
        curve.append(
            {
                "x": math.exp(x),
                "percent": 100 * math.expm1(middle),
                "low": 100 * math.expm1(middle - error),
                "high": 100 * math.expm1(middle + error),
            }
        )
    law = transition_law().depth(runs.block_params).value
    points = []
    for row, residual in enumerate(fit.residuals):
        x = math.log(runs.depth[row] / law[row])
        total = runs.total_params[row]
        kind = next((name for name, ends in CLASSES.items() if ends[0] < total < ends[1]), "smaller")
        points.append(
            {
                "name": _shape(runs, row),
                "class": kind,
                "x": math.exp(x),
                "percent": 100 * math.expm1(b1 * x + b2 * x**2 - least + residual.residual),
            }
        )
    order = ("smaller", *CLASSES)
    return {"points": sorted(points, key=lambda row: order.index(row["class"])), "bowl": curve}


def _surface_runs(path: Path) -> "Runs":
    from deepwide.fitting import read_runs

    return read_runs(path, {"total_params": "params_active_precise", "loss": "final_loss"})


def _surface_rows(name: str, path: Path) -> list[dict[str, Any]]:
    """The objective of the printed surface on a file, and the least one."""
    import numpy as np

    from deepwide.fitting import fit_surface

    runs = _surface_runs(path)
    sizes = np.log(np.array([runs.width, runs.depth, runs.total_params, runs.tokens]))
    terms = np.array(PRINTED[1:])[:, None] - np.array(PRINTED_EXPONENTS)[:, None] * sizes
    residual = np.log(runs.loss) - np.log(math.exp(PRINTED[0]) + np.exp(terms).sum(axis=0))
    rows = []
    for delta in (PRINTED_DELTA, 10 * PRINTED_DELTA):
        fit = fit_surface(runs, terms="shape", delta=delta, bootstrap=0)
        slope = np.clip(residual, -delta, delta)
        rows.append(
            {
                "file": name,
                "delta": delta,
                "rows": len(runs),
                "objective": fit.objective,
                "objective_of_printed": float((slope * (residual - slope / 2)).sum()),
                **{exponent: fit[exponent] for exponent in fit.exponents},
            }
        )
    return rows


def _best_depths(path: Path, resamples: int) -> list[dict[str, Any]]:
    """The best depth at 20 tokens per parameter, by the printed surface and by the refit, resampled in two ways."""
    from deepwide.fitting import fit_surface
    from deepwide.laws import SurfaceLaw, find_law

    runs = _surface_runs(path)
    law = find_law("gemstones")
    assert isinstance(law, SurfaceLaw)
    rows = [
        {
            "source": "printed",
            "total_params": billions * 1e9,
            "depth": float(law.optimum(billions * 1e9)[0][0]),
            "low": None,
            "high": None,
        }
        for billions in BILLIONS
    ]
    for unit, words in (("group", "refit, rows resampled"), ("shape", "refit, shapes resampled")):
        fit = fit_surface(runs, terms="shape", delta=PRINTED_DELTA, unit=unit, bootstrap=resamples)  # type: ignore[arg-type]
        for billions in BILLIONS:
            best = fit.best_depth(billions * 1e9)
            rows.append(
                {
                    "source": words,
                    "total_params": billions * 1e9,
                    "depth": best.value,
                    "low": best.low,
                    "high": best.high,
                }
            )
    return rows
