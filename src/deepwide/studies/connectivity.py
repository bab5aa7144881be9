"""Does the depth that graph connectivity needs grow like the logarithm of the diameter? (Sanford et al. 2024)"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deepwide.answers import Interval, Note
from deepwide.run import RunFolder, RunRecord
from deepwide.settings import Part, Positive, Seeds, Sizes
from deepwide.studies.estimates import interval_row, late_gain, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs, run_table
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run with preset cpu; part of the rules' hash.
SOLVED = 0.9  # a diameter is solved from this share of right answers on; who looks less far than it has ½
STILL = 0.05  # a network that gained more than this at its first unsolved diameter in the last quarter still learns
FEWEST_SEEDS, FEWEST_DEPTHS = 3, 3
GROWTH = "layers added by doubling the diameter"
BEND = "second difference of the reach in depth"
WIDER = "reach of the widest less that of the narrowest networks"


def grows_like_log(measured: Measured) -> Ruling:
    bend = measured.numbers.get(BEND)  # not there where a network reaches the ceiling too soon
    if bend is None or bend.low is None or bend.high is None or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, bend, (_few(),))
    widest = max(row["width"] for row in measured.table("runs"))
    judged = [row for row in measured.table("runs") if row["width"] == widest]
    if any(row["still_learning"] for row in judged):
        return Ruling(NOT_DECIDABLE, bend, (_learning("widest"),))
    if bend.low > 0:
        return Ruling(REPRODUCED, bend)
    if any(row["reach"] == row["largest"] for row in judged):
        return Ruling(NOT_DECIDABLE, bend, (_ceiling(),))
    return Ruling(NOT_REPRODUCED if bend.high <= 0 else NOT_DECIDABLE, bend)


def width_saves_depth(measured: Measured) -> Ruling:
    wider = measured.number(WIDER)
    rows = measured.table("runs")
    widths = sorted({row["width"] for row in rows})
    if measured.number("seeds").value < FEWEST_SEEDS or len(widths) < 2 or wider.low is None or wider.high is None:
        return Ruling(NOT_DECIDABLE, wider, (_few(),))
    if wider.high < 0:
        return Ruling(NOT_REPRODUCED, wider)
    if any(row["still_learning"] for row in rows if row["width"] == widths[0]):
        return Ruling(NOT_DECIDABLE, wider, (_learning("narrowest"),))
    return Ruling(REPRODUCED if wider.low > 0 else NOT_DECIDABLE, wider)


def _few() -> Note:
    return Note.of("few", "too few seeds, depths or widths for a verdict", seeds=FEWEST_SEEDS, depths=FEWEST_DEPTHS)


def _ceiling() -> Note:
    return Note.of("ceiling", "some networks solve every diameter asked for, which hides how their reach grows on")


def _learning(which: str) -> Note:
    return Note.of("still_learning", f"some of the {which} networks were still learning when training ended")


class ConnectivitySettings(Part):
    """Which networks are trained on what, and for how long."""

    depths: Sizes = (1, 2, 3)
    widths: Sizes = (16, 64)
    seeds: Seeds = (30, 31, 32)
    vertices: Positive = 8  # of a graph
    largest: Positive = 3  # diameter that is asked for
    heads: Positive = 4
    feed_forward: Positive = 2  # width of the feed-forward over the width
    steps: Positive = 3000
    batch: Positive = 64
    lr: float = 2e-3
    sequences: Positive = 1024  # graphs of the evaluation


class ConnectivityStudy(Study):
    """The diameter that is solved, by depth and width."""

    name = "connectivity"
    question = "Does the depth that graph connectivity needs grow like the logarithm of the diameter?"
    source = Source(
        "Sanford, Hsu, Telgarsky 2024, Transformers, parallel computation, and logarithmic depth.",
        "https://arxiv.org/abs/2402.09268",
    )
    rules = (
        Rule(
            Claim(
                "log",
                "Depth logarithmic in D is enough for graphs whose components have diameter D.",
                "corollary on connected components with bounded diameter (recalled)",
            ),
            "The reach of a network is the largest D such that all diameters up to D are solved: at least "
            f"{SOLVED:.0%} right answers, in the mean over the edges farthest from the marked vertex and the edges of "
            "another component. If the depth needed grows like log D, the reach grows exponentially with depth, and "
            "each layer adds more than the one before; if it grows like D, each adds the same. Among the widest "
            "networks, per seed, the mean second difference of the reach over consecutive depths, up to the first "
            "that reaches the largest diameter asked for: reproduced if the 95% interval of its mean over seeds is "
            "above 0; not reproduced if it is nowhere above 0 and no network reached the largest diameter; otherwise "
            "not decidable. Nor is anything decided where such a network was still learning (a gain of more than "
            f"{STILL} at its first unsolved diameter in the last quarter of training), or with fewer than "
            f"{FEWEST_SEEDS} seeds or {FEWEST_DEPTHS} depths up to there.",
            grows_like_log,
        ),
        Rule(
            Claim(
                "width",
                "Width can replace depth: the wider the networks, the less depth a diameter needs.",
                "the lower bound on depth holds only while width times heads grows less than linearly in D (recalled)",
            ),
            "Per seed, the mean over depths of the widest networks' reach less that of the narrowest. Reproduced if "
            "its 95% interval is above 0 and none of the narrowest networks was still learning, not reproduced if the "
            f"interval is below 0, and not decidable otherwise or with fewer than {FEWEST_SEEDS} seeds.",
            width_saves_depth,
        ),
    )
    Settings = ConnectivitySettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"depths": (1, 2), "widths": (32,), "seeds": (0,), "vertices": 6, "largest": 2, "steps": 600},
        "cpu": {},
        "paper": {
            "depths": (1, 2, 3, 4, 5, 6, 8), "widths": (32, 64, 128, 256, 512), "seeds": (0, 1, 2, 3, 4), "heads": 8,
            "vertices": 66, "largest": 32, "steps": 100_000, "lr": 3e-4,
        },
    }  # fmt: skip
    method = (
        "A graph is a list of edges, one token each, in random order, after a token that marks a vertex; every "
        "component is a path of D edges and the marked vertex is an end of one. The network (no mask, no positions) "
        "says at every edge whether it belongs to the marked component. D is drawn from 1 to the largest, and one "
        "network per depth, width and seed is trained on all of them. Answers are scored on the marked component and "
        "on one other, equally many, and the components differ in nothing but the mark: degrees, labels and the "
        "number of edges give nothing away, and who follows fewer than D edges gives half of the answers that a "
        "diameter is judged by."
    )
    differences = (
        "The original proves bounds and has no experiment and no code on connectivity. Its graphs are any graphs with "
        "components of diameter at most D, and each token is labelled with its component; here components are paths, "
        "the hardest for their size, and one component is marked, so that every answer is yes or no. Its lower bound "
        "is conditional (telling one cycle from two takes a logarithm of rounds), holds for large graphs and for "
        "widths below D, and cannot be tested here: every network here is wider than the largest diameter. What is "
        "tested is what training finds: how far networks of each depth reach, and what width changes. An earlier run "
        "with a third of the steps and other seeds judged the second claim while narrow networks were still learning; "
        "the rule on width now waits for them. A run after that, with these settings and other seeds, wrote 0 where "
        "there was no second difference to take."
    )

    def sweeps(self, settings: ConnectivitySettings) -> Mapping[str, Mapping[str, Any]]:
        model = {"heads": settings.heads, "positions": "none", "initialisation": "xavier", "tied": False}
        task = {"name": "connectivity", "vertices": settings.vertices, "largest": settings.largest}
        run = run_table(settings, task, examples=settings.sequences, evaluations=10)
        grid = {"depth": sorted(settings.depths, reverse=True)}  # the slowest first
        return {
            f"width-{width}": {
                "seeds": list(settings.seeds),
                "run": run
                | {"schedule": {"kind": "constant"}}
                | {"model": model | {"width": width, "ff_width": settings.feed_forward * width}},
                "grid": grid,
            }
            for width in settings.widths
        }

    def measure(self, settings: ConnectivitySettings, workplace: Workplace) -> Measured:
        runs = finished_runs(workplace.runs.values())
        rows = sorted(
            (_run_row(run, settings) for run in runs), key=lambda row: (row["width"], row["depth"], row["seed"])
        )
        reach = {(row["width"], row["depth"], row["seed"]): row["reach"] for row in rows}
        widest, narrowest = max(settings.widths), min(settings.widths)
        bends = [_bend([reach[widest, depth, seed] for depth in settings.depths], settings) for seed in settings.seeds]
        wider = [
            float(np.mean([reach[widest, depth, seed] - reach[narrowest, depth, seed] for depth in settings.depths]))
            for seed in settings.seeds
        ]
        usable = [bend for bend in bends if bend is not None]
        growths = [
            growth for seed in settings.seeds if (growth := _growth(reach, widest, seed, settings.depths)) is not None
        ]
        numbers = {
            "seeds": Interval(len(settings.seeds)),
            **({BEND: mean_interval(usable)} if len(usable) == len(bends) else {}),
            WIDER: mean_interval(wider),
            **({GROWTH: mean_interval(growths)} if growths else {}),
            **{
                f"reach at width {width}, depth {depth}": mean_interval(
                    [reach[width, depth, seed] for seed in settings.seeds]
                )
                for width in settings.widths
                for depth in settings.depths
            },
        }
        tables = {
            "least_depth": _least_depths(reach, settings),
            "accuracy": _accuracy_rows(runs, settings),
            "runs": rows,
        }
        learning = sum(row["still_learning"] for row in rows)
        text = f"{learning} of {len(rows)} networks were still learning at their first unsolved diameter"
        return Measured(numbers=numbers, tables=tables, notes=(Note.of("still_learning", text, runs=learning),))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import accuracy_chart

        rows = [row | {"panel": f"width {row['width']}"} for row in measured.table("accuracy")]
        below = (
            f"right answers at the farthest edges and elsewhere, mean and 95% interval; dashed: {SOLVED:.0%}, solved"
        )
        chart = accuracy_chart(
            rows, "diameter", "Which diameters each depth solves", below, solved=SOLVED, panels="panel",
            x_title="diameter D",
        )  # fmt: skip
        return {"accuracy": chart}


def _run_row(run: RunRecord, settings: ConnectivitySettings) -> dict[str, Any]:
    """One network: how far it reaches, and whether it was still learning the next diameter."""
    unsolved = [d for d in range(1, settings.largest + 1) if run.result[f"accuracy_{d}"] < SOLVED]
    gain = late_gain(RunFolder.open(run.path).metrics(), f"accuracy_{unsolved[0]}") if unsolved else None
    return {
        "width": run.config["model"]["width"],
        "depth": run.config["model"]["depth"],
        "seed": run.config["seed"],
        "reach": unsolved[0] - 1 if unsolved else settings.largest,
        "largest": settings.largest,
        "gain_in_last_quarter": gain,
        "still_learning": gain is not None and gain > STILL,
        "accuracy": run.result["accuracy"],
    }


def _bend(reach: Sequence[int], settings: ConnectivitySettings) -> float | None:
    """The mean second difference of the reach up to the first depth at the ceiling; None with too few depths."""
    ceiling = next((i for i, value in enumerate(reach) if value == settings.largest), len(reach) - 1)
    steps = np.diff(np.array(reach[: ceiling + 1]), n=2)
    return float(steps.mean()) if len(steps) else None


def _growth(reach: Mapping[tuple[int, int, int], int], width: int, seed: int, depths: Sequence[int]) -> float | None:
    """The slope of the least depth that solves D against log2 D, over the diameters that some depth solves."""
    farthest = max(reach[width, depth, seed] for depth in depths)
    least = [min(depth for depth in depths if reach[width, depth, seed] >= d) for d in range(1, farthest + 1)]
    if farthest < 2:
        return None
    if len(set(least)) == 1:
        return 0.0
    return float(np.polyfit([math.log2(d) for d in range(1, farthest + 1)], least, 1)[0])


def _least_depths(reach: Mapping[tuple[int, int, int], int], settings: ConnectivitySettings) -> list[dict[str, Any]]:
    """For every width and diameter, the least depth at which most seeds solve it; none if no depth does."""
    rows = []
    for width in settings.widths:
        for d in range(1, settings.largest + 1):
            solved = {
                depth: sum(reach[width, depth, seed] >= d for seed in settings.seeds) for depth in settings.depths
            }
            least = [depth for depth, seeds in solved.items() if 2 * seeds > len(settings.seeds)]
            seeds_by_depth = {f"seeds_depth_{depth}": seeds for depth, seeds in solved.items()}
            rows.append({"width": width, "diameter": d, "least_depth": min(least, default=None), **seeds_by_depth})
    return rows


def _accuracy_rows(runs: Sequence[RunRecord], settings: ConnectivitySettings) -> list[dict[str, Any]]:
    rows = []
    for width in settings.widths:
        for depth in settings.depths:
            model = {"width": width, "depth": depth}
            results = [run.result for run in runs if {name: run.config["model"][name] for name in model} == model]
            for d in range(1, settings.largest + 1):
                mean = mean_interval([result[f"accuracy_{d}"] for result in results])
                rows.append({**model, "diameter": d, **interval_row("accuracy", mean)})
    return rows
