"""Do parameters and tokens grow alike, and which surface do Chinchilla's points have? (Hoffmann et al. 2022)"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.settings import Natural, Part
from deepwide.studies.public_data import file_row, public_file
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

if TYPE_CHECKING:
    from deepwide.fitting import Runs, SurfaceFit
    from deepwide.laws import ComputeLaw

EQUAL, WITHIN = 0.5, (0.4, 0.6)  # the exponent of parameters in compute, and how far off an interval may reach
TWENTY, NEARLY = 20.0, (10.0, 40.0)  # tokens per parameter, and within a factor 2
CHINCHILLA = 5.76e23  # the FLOPs of Chinchilla and Gopher
COMPUTES = (1e19, 1e20, 1e21, 1e22, 1e23, CHINCHILLA, 1e25)
JUDGED = ("E", "alpha", "beta")
# Besiroglu et al. 2024: 95% intervals of their refit.
EPOCH = {"E": (1.769, 1.871), "alpha": (0.317, 0.373), "beta": (0.331, 0.415)}
# Hoffmann et al.'s unrounded values, from their TeX source as Besiroglu et al. quote them: ln E, ln A, ln B, α, β.
UNROUNDED = (0.5267228, 6.0073404, 6.0179186, 0.33917084, 0.2849083)
DELTA = 1e-3  # where the Huber loss becomes linear

POINTS = "data/epoch_chinchilla_svg_extracted_data.csv"


def scales_equally(measured: Measured) -> Ruling:
    return _about(measured.number("exponent of parameters in compute"), EQUAL, WITHIN)


def epoch_agrees(measured: Measured) -> Ruling:
    ours, theirs = _values(measured, "this refit"), _values(measured, "Epoch's refit")
    rows = [(ours[name], theirs[name]) for name in JUDGED]
    if any(row["low"] is None or row["high"] is None for pair in rows for row in pair):
        return Ruling(NOT_DECIDABLE)
    outside = [one["parameter"] for pair in rows for one, other in (pair, pair[::-1]) if not _holds(one, other)]
    return _judged(outside, ours["beta"])


def printed_values_hold(measured: Measured) -> Ruling:
    ours, printed = _values(measured, "this refit"), _values(measured, "Hoffmann et al., printed")
    if any(ours[name]["low"] is None for name in JUDGED):
        return Ruling(NOT_DECIDABLE)
    return _judged([name for name in JUDGED if not _holds(ours[name], printed[name])], ours["beta"])


def twenty_tokens(measured: Measured) -> Ruling:
    return _about(measured.number("tokens per parameter at 5.76e23 FLOPs"), TWENTY, NEARLY)


def _about(estimate: Interval, value: float, room: tuple[float, float]) -> Ruling:
    """Reproduced where the interval holds the value and nothing far from it."""
    if estimate.low is None or estimate.high is None:
        return Ruling(NOT_DECIDABLE, estimate)
    if not estimate.low <= value <= estimate.high:
        return Ruling(NOT_REPRODUCED, estimate)
    near = room[0] <= estimate.low and estimate.high <= room[1]
    return Ruling(REPRODUCED if near else NOT_DECIDABLE, estimate)


def _values(measured: Measured, source: str) -> dict[str, dict[str, Any]]:
    return {row["parameter"]: row for row in measured.table("parameters") if row["source"] == source}


def _holds(interval: Mapping[str, Any], estimate: Mapping[str, Any]) -> bool:
    return bool(interval["low"] <= estimate["value"] <= interval["high"])


def _judged(outside: list[str], shown: Mapping[str, Any]) -> Ruling:
    notes = (Note.of("outside", f"Outside: {', '.join(dict.fromkeys(outside))}"),) if outside else ()
    measured = Interval(shown["value"], shown["low"], shown["high"])
    return Ruling(NOT_REPRODUCED if outside else REPRODUCED, measured, notes)


class ChinchillaSettings(Part):
    """Where the points are, which are left out, and how often they are resampled."""

    data: str = ""  # the folder gemstones, with data/ in it; empty: the one in DEEPWIDE_DATA
    excluded: Natural = 5  # points of highest loss left out, as Epoch did
    resamples: Natural = 1000


class Chinchilla(Study):
    """A refit of Chinchilla's points."""

    name = "chinchilla"
    question = "Should parameters and tokens grow alike with compute, and does the printed surface describe its points?"
    source = Source(
        "Hoffmann et al. 2022, Training compute-optimal large language models; refitted by Besiroglu et al. 2024 "
        "(Epoch), Chinchilla scaling: a replication attempt (arXiv 2404.10102).",
        "https://arxiv.org/abs/2203.15556",
    )
    rules = (
        Rule(
            Claim(
                "equal", "Parameters and tokens should be scaled equally with compute: N ~ C^0.5.", "approaches 1 and 2"
            ),
            f"β/(α + β) of the refit. Reproduced if its 95% bootstrap interval holds {EQUAL} and lies within "
            f"{WITHIN[0]} to {WITHIN[1]}, not reproduced if it does not hold {EQUAL}.",
            scales_equally,
        ),
        Rule(
            Claim("epoch", "Refitted, the surface has E = 1.8169, α = 0.3478, β = 0.3658.", "Besiroglu et al. 2024"),
            "Reproduced if E, α and β of the refit lie in Epoch's 95% intervals and Epoch's in ours (bootstrap), not "
            "reproduced if one does not. Measured is β.",
            epoch_agrees,
            "β of the refit",
        ),
        Rule(
            Claim(
                "printed",
                "The surface is E = 1.69, α = 0.34, β = 0.28.",
                "approach 3, as printed",
            ),
            "Reproduced if all three lie in the 95% intervals of the refit, not reproduced if one does not. Measured "
            "is β.",
            printed_values_hold,
            "β of the refit",
        ),
        Rule(
            Claim("twenty", "At Chinchilla's compute about 20 tokens per parameter are best.", "its rule of thumb"),
            f"Tokens per parameter at {CHINCHILLA:.3g} FLOPs. Reproduced if the 95% bootstrap interval holds "
            f"{TWENTY:g} and lies within {NEARLY[0]:g} to {NEARLY[1]:g}, not reproduced if it does not hold "
            f"{TWENTY:g}.",
            twenty_tokens,
        ),
    )
    libraries: ClassVar[Mapping[str, str]] = {"scipy": "fit"}
    Settings = ChinchillaSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"resamples": 200},
        "cpu": {},
        "paper": {"resamples": 4000},
    }
    method = (
        "Loss = E + A/N^α + B/D^β is fitted to the points that Epoch read from the figure of the paper: the least sum "
        "of Huber losses (δ = 0.001) of the difference in ln loss, by variable projection. Points are resampled for "
        "the intervals. D is FLOPs / 6N. Nothing is trained."
    )
    differences = (
        "Points read from a picture, not the authors' runs; that Epoch resampled 4,000 times is recalled. The "
        "printed coefficients A and B are not judged: they are rounded together with the exponents. These rules were "
        "written when earlier results of the same fit were known, so the verdicts describe more than they test."
    )

    def inputs(self, settings: ChinchillaSettings) -> list[Path]:
        return [public_file(settings.data, "gemstones", POINTS)]

    def measure(self, settings: ChinchillaSettings, workplace: Workplace) -> Measured:
        import numpy as np

        from deepwide.fitting import fit_surface, read_runs
        from deepwide.laws import COMPUTE_LAWS, ComputeLaw

        [path] = self.inputs(settings)
        everything = read_runs(path, {"total_params": "Model Size", "train_flops": "Training FLOP"})
        order = np.sort(everything.loss)
        runs = everything.select(everything.loss < order[-settings.excluded]) if settings.excluded else everything
        workplace.report(f"{len(runs)} points, {settings.resamples} resamples")
        fit = fit_surface(runs, delta=DELTA, bootstrap=settings.resamples)
        whole = fit_surface(everything, delta=DELTA, bootstrap=settings.resamples)
        E, A, B = (math.exp(value) for value in UNROUNDED[:3])
        laws = {
            "this refit": fit.compute_law(),
            "this refit, all points": whole.compute_law(),
            "Epoch's refit": COMPUTE_LAWS["epoch"],
            "Hoffmann et al., printed": COMPUTE_LAWS["hoffmann"],
            "Hoffmann et al., unrounded": ComputeLaw("", E, A, B, UNROUNDED[3], UNROUNDED[4]),
        }
        shares = np.array([row[-1] / (row[-2] + row[-1]) for row in fit.resamples])
        ends = map(float, np.percentile(shares, [2.5, 97.5])) if len(shares) > 1 else ()
        numbers = {
            "points": Interval(len(runs)),
            "exponent of parameters in compute": Interval(fit["beta"] / (fit["alpha"] + fit["beta"]), *ends),
            "tokens per parameter at 5.76e23 FLOPs": fit.optimum(CHINCHILLA).tokens_per_param,
            "residual scatter, % of loss": Interval(100 * fit.noise),
        }
        limits: dict[str, Mapping[str, Any]] = {
            "this refit": {name: (i.low, i.high) for name, i in fit.intervals("bootstrap").items()},
            "this refit, all points": {name: (i.low, i.high) for name, i in whole.intervals("bootstrap").items()},
            "Epoch's refit": EPOCH,
        }
        parameters = []
        for name in ("E", "A", "B", "alpha", "beta"):
            for source, law in laws.items():
                low, high = limits.get(source, {}).get(name, (None, None))
                value = float(getattr(law, name))
                parameters.append({"source": source, "parameter": name, "value": value, "low": low, "high": high})
        tables = {
            "parameters": parameters,
            "surfaces": [{"source": source, **_on_the_points(law, runs)} for source, law in laws.items()],
            "tokens_per_param": [row for compute in COMPUTES for row in _ratios(compute, fit, laws)],
            "sources": [file_row(path)],
        }
        return Measured(numbers=numbers, tables=tables, notes=(*fit.warnings, *fit.notes))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import compute_chart, interval_chart

        greek = {"alpha": "α", "beta": "β", "E": "E (nats)"}
        rows = [
            row | {"label": row["source"], "panel": greek[row["parameter"]]}
            for row in measured.table("parameters")
            if row["parameter"] in greek
        ]
        return {
            "parameters": interval_chart(
                rows,
                "Loss = E + A/N^α + B/D^β on Chinchilla's points",
                "95% intervals; those of this refit by bootstrap",
                lines="source",
                panels="panel",
            ),
            "tokens_per_param": compute_chart(
                measured.table("tokens_per_param"),
                "Tokens per parameter that spend compute best",
                "band: 95% of this refit, by bootstrap; 5.76e23 FLOPs is Chinchilla",
            ),
        }


def _on_the_points(law: "ComputeLaw", runs: "Runs") -> dict[str, float]:
    """How well a surface describes the points: the objective that was minimised, and ln loss above the surface."""
    import numpy as np

    surface = law.E + law.A / runs.total_params**law.alpha + law.B / runs.tokens**law.beta
    residual = np.log(runs.loss / surface)
    slope = np.clip(residual, -DELTA, DELTA)
    return {
        "objective": float((slope * (residual - slope / 2)).sum()),
        "mean_residual_percent": 100 * float(np.mean(residual)),
        "median_residual_percent": 100 * float(np.median(residual)),
    }


def _ratios(compute: float, fit: "SurfaceFit", laws: Mapping[str, "ComputeLaw"]) -> list[dict[str, Any]]:
    """Tokens per parameter at a compute, by each surface; the first is the refit, with its limits."""
    best = fit.optimum(compute).tokens_per_param
    rows: list[dict[str, Any]] = []
    for source, law in laws.items():
        params, tokens = law.optimum(compute)
        row: dict[str, Any] = {"source": source, "train_flops": compute, "tokens_per_param": tokens / params}
        rows.append(row | {"low": None if rows else best.low, "high": None if rows else best.high})
    return rows
