"""The tables of docs (design, fit, joint, latency, rank, shape, studies, sweeps) from what results/ keeps."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mutants import FINDINGS
from deepwide.quantities import plural, show_count, show_seconds
from deepwide.studies import (
    StudyResult,
    estimated_seconds,
    find_study,
    read_result,
    recorded_costs,
    show_measured,
    studies,
)

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def result(name: str) -> dict[str, Any]:
    """What a benchmark saved, by its path under results/."""
    content: dict[str, Any] = json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))
    return content


def calibration_table() -> str:
    """The table of coverage in docs/fit.md, from what was measured."""
    heads = ("design", "crossings", "a, b by likelihood", "a, b by bootstrap", "bias of a, b in their spread")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for design, measured in result("fit/calibration.json").items():
        if isinstance(measured, dict) and "with a law" in measured:
            c, bias = measured["coverage"], measured["bias in units of the spread"]
            crossings = [value for name, value in c.items() if name.startswith("crossing")]
            by = [f"{c[f'a, {method}']:.1%}, {c[f'b, {method}']:.1%}" for method in ("likelihood", "bootstrap")]
            rows.append(
                f"| {design} | {min(crossings):.0%}–{max(crossings):.0%} | {' | '.join(by)} | "
                f"{bias['a']:+.2f}, {bias['b']:+.2f} |"
            )
    assert len(rows) == 2 + 7
    return "\n".join(rows) + "\n"


def latency_tables() -> list[str]:
    """How well a fit to other shapes predicts this machine's times, beside a bare roofline."""
    rows = ["| phase | error on shapes left out | bare roofline | per layer, µs (95%) |", "|---|---|---|---|"]
    for phase, row in result("latency/summary.json")["phases"].items():
        value, low, high = row["per_layer_us"]
        rows.append(
            f"| {phase} | {row['left_out']:.1%} | {row['roofline']:.0%} | {value:,.0f} ({low:,.0f} to {high:,.0f}) |"
        )
    return ["\n".join(rows) + "\n"]


def shape_tables() -> list[str]:
    """The families, and what becomes of all those that transformers has."""
    from deepwide.shape import FAMILIES
    from deepwide.shape.hybrids import HYBRIDS
    from deepwide.shape.readable import READABLE

    rest = {name: each for name, each in READABLE.items() if name not in HYBRIDS}
    kinds = {
        "read and written": FAMILIES,
        "read": rest,
        "read: hybrids and state spaces": HYBRIDS,
    }
    rows = ["| | families |", "|---|---|"]
    rows += [
        f"| {kind} ({len(these)}) | {', '.join(f'`{name}` ({each.about})' for name, each in these.items())} |"
        for kind, these in kinds.items()
    ]
    judged = result("families/summary.json")
    outcomes = [
        f"| of {judged['families']} causal families of transformers {judged['transformers']} | number |",
        "|---|---|",
    ]
    outcomes += [f"| {outcome} | {number} |" for outcome, number in judged["outcomes"].items()]
    return ["\n".join(rows) + "\n", "\n".join(outcomes) + "\n"]


def fit_tables() -> list[str]:
    """How sure crossings and their line are."""
    return [calibration_table()]


def joint_tables() -> list[str]:
    """How sure the joint fit is."""
    later = coverage_table("coverage_later.json", "added later")
    return [
        cells_table(), losses_table(), coverage_table(), later, needed_table(), decomposition_table(), beyond_table(),
        prediction_table(), halves_table(),
    ]  # fmt: skip


def design_tables() -> list[str]:
    """What choosing runs saves, simulated and on real pools."""
    simulated = [saving_table(), promise_table(), limit_table(), *map(shorter_table, SHORTER)]
    return [*simulated, replay_table(), branches_table(), lengths_table(), stated_table(), kept_table()]


SHORTER = {
    "designed, shorter too": "all lengths alike",
    "designed, shorter too, noise falls": "noise falls with length",
}
HONEST = 0.85  # coverage below which a saving is none


def saving_table() -> str:
    """FLOPs of other ways over those of a designed sweep for the same interval; coverage of both in brackets."""
    rows = [
        "| what is simulated | high/low | designed covers | best grid | random order | cheapest first | shorter too |"
        " the same, noise falls |",
        "|---" * 8 + "|",
    ]
    for name, row in result("design/simulated.json")["rows"].items():
        for ratio, costs in row.get("same interval", {}).items():
            covers = costs["coverage"]
            own = covers["designed"]
            if own is None:
                continue
            shown = []
            for way in ("grid", "random order", "cheapest first", *SHORTER):
                if way not in costs:
                    shown.append("–")
                    continue
                factor = "no saving: not covered" if own < HONEST else f"{costs[way]:.2f}×" if costs[way] else ""
                shown.append(f"{factor} ({100 * covers[way]:.0f}%)" if costs[way] else "not reached")
            rows.append(f"| {name} | {ratio} | {100 * own:.0f}% | {' | '.join(shown)} |")
    return "\n".join(rows) + "\n"


def promise_table() -> str:
    """Coverage of designed sweeps, and what was promised before the first run."""
    rows = [
        "| what is simulated | budget | coverage | high/low | promised | grids' coverage | random order's |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in result("design/simulated.json")["rows"].items():
        grids = [point for point in row.get("grid", {}).values() if point["coverage"] is not None]
        shares = [100 * point["coverage"] for point in grids] or [0.0]
        covered = f"{min(shares):.0f}–{max(shares):.0f}%"
        for budget, point in row.get("designed", {}).items():
            random = row["random order"].get(budget, {}).get("coverage") if "random order" in row else None
            if point["high/low"] is None or not grids:
                continue
            cells = [f"{100 * point['coverage']:.0f}%", f"{point['high/low']:.3g}", f"{point['promised high/low']:.3g}"]
            cells += [covered, "–" if random is None else f"{100 * random:.0f}%"]
            rows.append(f"| {name} | {budget} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def limit_table() -> str:
    """What could be saved at all, by what the model expects."""
    rows = [
        "| pool | budget | designed | best grid, times as dear | searched | best grid, times as dear |",
        "|---" * 6 + "|",
    ]
    for name, budgets in result("design/limit.json")["rows"].items():
        for budget, ways in budgets.items():
            cells = []
            for way in ("designed", "searched"):
                saved = ways[way]["best grid, times as dear"]
                cells += [f"{ways[way]['high/low']:.3g}", f"{saved:.2f}×" if saved else "not reached"]
            rows.append(f"| {name} | {budget} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def branches_table() -> str:
    """What shorter lengths should give."""
    measured = result("design/branches.json")["expected high/low"]
    budgets = list(next(iter(measured.values())))
    rows = [f"| what may be run | {' | '.join(f'budget {b}' for b in budgets)} |", "|---" * (len(budgets) + 1) + "|"]
    rows += [f"| {name} | {' | '.join(f'{row[b]:.3g}' for b in budgets)} |" for name, row in measured.items()]
    return "\n".join(rows) + "\n"


def replay_table() -> str:
    """Finished sweeps in another order."""
    rows = [
        "| runs | high/low of all | designed | holds | random order | cheapest first | best grid in hindsight |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in result("design/replay.json")["pools"].items():
        if "refused" in row or "of the greatest length" in row:
            continue
        holds = {True: "yes", False: "no", None: "–"}[row["designed holds it"]]
        cells = [_share(row, "designed"), holds]
        cells += [_share(row, way) for way in ("random order", "cheapest first", "best grid")]
        rows.append(f"| {name} | {row['high/low of all']:.3g} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _share(row: dict[str, Any], way: str) -> str:
    """Of the pool's FLOPs, until the aim is reached."""
    share = row.get(f"{way}, share of FLOPs")
    return "never" if share is None else f"{100 * share:.0f}%"


def lengths_table() -> str:
    """Finished sweeps of several lengths."""
    rows = [
        "| runs | longest | high/low of these | their best grid | designed of these | designed, shorter too | holds |"
    ]
    rows += ["|---" * 7 + "|"]
    for name, row in result("design/replay.json")["pools"].items():
        if "of the greatest length" in row:
            shares = [_share(row, way) for way in ("best grid", "designed", "designed, shorter too")]
            holds = "yes" if row.get("designed, shorter too holds it") else "no"
            cells = [str(row["runs"]), str(row["of the greatest length"]), f"{row['high/low of these']:.3g}"]
            rows.append(f"| {name}, {cells[0]} | {cells[1]} | {cells[2]} | {' | '.join(shares)} | {holds} |")
    return "\n".join(rows) + "\n"


def shorter_table(way: str) -> str:
    """Designed sweeps that may run shorter lengths: coverage, and what was promised."""
    heads = (SHORTER[way], *(f"budget {budget}" for budget in ("0.25", "0.5", "1")))
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in result("design/simulated.json")["rows"].items():
        if points := row.get(way):
            cells = [
                f"{100 * point['coverage']:.0f}% ({point['high/low']:.3g}; {point['promised high/low']:.3g})"
                for point in points.values()
            ]
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def stated_table() -> str:
    """Real designed sweeps whose test was stated before they ran, by the fit as it is now."""
    rows = [
        "| sweep | runs | noise, shortest and longest | says | finished sweep says | holds | best grid | random order |"
    ]
    rows += ["|---" * 8 + "|"]
    for name, test in result("fit/lengths.json")["stated"].items():
        (value, low, high), there = test["says"], test["finished sweep says"][0]
        noise = " and ".join(f"{percent:.2g}%" for percent in test["noise %"].values())
        grid = test["FLOPs of the best grid as narrow"]
        cells = [f"[{name}](../results/design/{name})", str(test["runs"]), noise]
        cells += [f"{value:.3g} ({low:.3g} to {high:.3g})", f"{there:.3g}", "yes" if low <= there <= high else "no"]
        cells.append(f"{grid / test['FLOPs']:.2g}×" if grid else "none")
        cells.append(f"nothing in {test['random orders that state nothing']} of {test['random orders']}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def kept_table() -> str:
    """What high/low the same sweeps were promised, and what they reached."""
    heads = ["sweep", "promised on its day", "promised now", "by the noise that its runs had", "80% of made-up sweeps"]
    rows = [f"| {' | '.join([*heads, 'reached'])} |", "|---" * 6 + "|"]
    for name, test in result("fit/lengths.json")["stated"].items():
        ratios, made_up = test["high/low"], test["rehearsed"]
        cells = [f"{ratios[f'promised {how}']:.3g}" for how in ("on its day", "now", "by its noise")]
        cells[-1] += f" ({list(test['noise %'].values())[-1]:.2g}%)"
        stated = f"{made_up['stated']} of {made_up['sweeps']} end so"
        ends = (f"{made_up[end]:.3g}" if made_up[end] else "none" for end in ("low", "high"))
        cells.append(f"{' to '.join(ends)} ({stated})")
        rows.append(f"| {' | '.join([name, *cells, format(ratios['reached'], '.3g')])} |")
    return "\n".join(rows) + "\n"


KNOWN = ("the form", "all but the skew")


def _ratio(value: float) -> str:
    """high/low of a model that knows the form; where its runs say nothing it has no end."""
    return f"{value:.3g}" if value < 1000 else "–"


def coverage_table(file: str = "coverage.json", what: str = "what is simulated") -> str:
    """How often the joint fit's intervals hold the true best depth, and how wide they are."""
    measured = json.loads((ROOT / "results/fit" / file).read_text(encoding="utf-8"))["rows"]
    rows = [
        f"| {what} (design) | middle | largest size | 10× | 100× | declined |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in measured.items():
        places = [row[place] for place in ("middle", "largest", "10x", "100x")]
        known = [[_ratio(place[f"high/low if {what} is known"]) for what in KNOWN] for place in places]
        cells = [
            f"{100 * place['coverage']:.0f}% ({place['high/low']:.3g}; {', '.join(ratios)})"
            for place, ratios in zip(places, known, strict=True)
        ]
        mark = r" \*" if row["chosen on"] else ""
        rows.append(f"| {name}{mark} | {' | '.join(cells)} | {row['declined']} of {row['sweeps']} |")
    return "\n".join(rows) + "\n"


def cells_table() -> str:
    """The coverage table in short: how many of its rows hold how often, and how wide intervals are, by place."""
    measured = result("fit/coverage.json")["rows"]
    kinds = {
        "everything varies": [row for name, row in measured.items() if name.startswith("everything")],
        "one thing differs": [row for name, row in measured.items() if not name.startswith("everything")],
    }
    heads = ["rows", "place", "mean", "below 90%", "90 to 98%", "above 98%", "wider than if the formula is known"]
    heads.append("than if all but the skew is")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind, some in kinds.items():
        for name, place in (("middle", "middle"), ("largest size", "largest"), ("10×", "10x"), ("100×", "100x")):
            here = [row[place] for row in some]
            shares = np.array([each["coverage"] for each in here])
            low, high = int((shares < 0.9).sum()), int((shares > 0.98).sum())
            cells = [f"{kind} ({len(some)})", name, f"{100 * shares.mean():.1f}%"]
            cells += [str(low), str(len(some) - low - high), str(high)]
            for what in KNOWN:
                known = [math.log(each["high/low"]) / math.log(each[f"high/low if {what} is known"]) for each in here]
                cells.append(f"{np.median(known):.1f}×")
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def losses_table() -> str:
    """How often the limits of predicted losses hold: how many kinds of sweeps how often, by place."""
    measured = list(result("fit/losses.json")["rows"].values())
    heads = ["losses of half, once and twice the best depth", "limits of", "mean", "below 90%", "90 to 98%"]
    heads += ["above 98%", "least", "width, median"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, place in (("middle", "middle"), ("largest size", "largest"), ("10×", "10x")):
        for kind, words in (("mean", "a shape's mean"), ("run", "one new run")):
            here = [row[place][kind] for row in measured]
            shares = np.array([each["coverage"] for each in here])
            low, high = int((shares < 0.9).sum()), int((shares > 0.98).sum())
            width = float(np.median([each["width, percent"] for each in here]))
            cells = [name, words, f"{100 * shares.mean():.1f}%", str(low), str(len(shares) - low - high), str(high)]
            rows.append(f"| {' | '.join([*cells, f'{100 * shares.min():.0f}%', f'{width:.2g}% of loss'])} |")
    return "\n".join(rows) + "\n"


def needed_table() -> str:
    """The joint fit's intervals beside the shortest for somebody who knows what may be true."""
    heads = [
        "design",
        "place",
        "shortest, high/low",
        "ours",
        "in logarithms",
        "it holds, least",
        "where nothing is amiss",
    ]
    rows = [f"| {' | '.join([*heads, 'ours there'])} |", "|---" * 8 + "|"]
    for design, places in result("fit/needed.json")["designs"].items():
        for place, row in places.items():
            covers, own = row["shortest covers"], row["ours covers"]["independent"]
            cells = [design, "largest size" if place == "largest" else place, f"{row['shortest, high/low']:.3g}"]
            cells += [f"{row['ours, high/low']:.3g}", f"{row['ours over it, in logarithms']:.2f}×"]
            cells += [f"{100 * min(covers.values()):.0f}%", f"{100 * covers['independent']:.1f}%", f"{100 * own:.1f}%"]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def decomposition_table() -> str:
    """What the interval loses in width and in coverage without one thing that the model allows for."""
    measured = result("fit/decomposition.json")["switched off"]
    shown = [
        "independent (A)",
        "smooth misfit 0.5% (A)",
        "depth offsets 0.4% (A)",
        "2.7 times steeper when too shallow (A)",
        "truth ceiling at 5 layers (A)",
    ]
    rows = [f"| taken away | {' | '.join(shown)} |", "|---" * (len(shown) + 1) + "|"]
    for name, switched in measured.items():
        cells = [
            "; ".join(
                f"{switched[row][f'ln(high/low), {size}']:.2f} ({100 * switched[row][f'coverage, {size}']:.0f}%)"
                for size in ("middle", "largest")
            )
            for row in shown
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def beyond_table() -> str:
    """ln(high/low) beyond the runs, and the least of any interval that holds whether growth ends or goes on."""
    rows = ["| truth | 10×, stated | 10×, at least | 100×, stated | 100×, at least |", "|---|---|---|---|---|"]
    for name, row in result("fit/decomposition.json")["beyond the runs"].items():
        cells = [f"{row[f'{what}, {place}']:.2f}" for place in ("10x", "100x") for what in ("stated", "at least")]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def prediction_table() -> str:
    """The largest real runs, predicted from the smaller ones."""
    measured = json.loads((ROOT / "results/fit/prediction.json").read_text(encoding="utf-8"))["tests"]
    head = "| runs | loss: joint | ridge | size alone | own law | runs inside | depth: joint | ratio | levine | seen |"
    rows = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for name, row in measured.items():
        if "joint, depth" not in row:
            continue
        value, low, high = row["joint, depth"]
        errors = [row[f"{by}, loss %"] for by in ("joint", "ridge", "size alone", "own law")]
        losses = ["–" if error is None else f"{error:.2f}%" for error in errors]
        depths = [f"{value:.3g} ({low:.3g}–{high:.3g})", f"{row['constant ratio, depth']:.3g}"]
        depths += [f"{row['levine, depth']:.3g}", f"{row['best depth seen']:g}"]
        rows.append(f"| {name} | {' | '.join([*losses, row['runs inside'], *depths])} |")
    return "\n".join(rows) + "\n"


def halves_table() -> str:
    """How often halves of real pools hold what the whole pool says."""
    rows = ["| pool | shapes | halves that state an interval | middle | largest size | 10× |", "|---" * 6 + "|"]
    whole = np.zeros(4, dtype=int)
    for name, row in result("fit/halves.json")["pools"].items():
        counts = [row["state an interval"], *row["hold"].values()]
        whole += counts
        rows.append(
            f"| {name} | {row['shapes']} | {counts[0]} of {row['halves']} | {' | '.join(map(str, counts[1:]))} |"
        )
    shares = (f"{100 * each / whole[0]:.0f}%" for each in whole[1:])
    rows.append(f"| all | | {whole[0]} | {' | '.join(shares)} |")
    return "\n".join(rows) + "\n"


def rank_tables() -> list[str]:
    """The tables that benchmarks/separation writes, for docs/rank.md."""
    names = ("ranks.md", "structured.md", "bench.md", "rivals.md")
    written = [(ROOT / "results/separation" / name).read_text(encoding="utf-8") for name in names]
    return [table for text in written for table in TABLE.findall(text)]


def published_studies() -> dict[str, StudyResult]:
    """The studies under results/ by the name of their folder."""
    folders = sorted(path.parent for path in ROOT.glob("results/studies/*/study.json"))
    return {folder.name: read_result(folder) for folder in folders}


def study_tables() -> list[str]:
    """Every verdict that was published, attention by length, and what every study costs, for docs/studies.md."""
    return [verdict_table(), attention_table(), cost_table()]


def attention_table() -> str:
    """Time of every attention kind over softmax by length, and memory at the longest."""
    cost = result("studies/attention-cost.json")["rows"]
    lengths = sorted({row["length"] for row in cost})
    by = {(row["kind"], row["length"]): row for row in cost}
    heads = ("attention, time over softmax at length", *(f"{length:,}" for length in lengths), "memory at the last")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind in dict.fromkeys(row["kind"] for row in cost):
        times = [f"{by[kind, length]['time_over_softmax']:.2f}" for length in lengths]
        rows.append(f"| {' | '.join([kind, *times, format(by[kind, lengths[-1]]['peak_over_softmax'], '.1f')])} |")
    return "\n".join(rows) + "\n"


def verdict_table() -> str:
    """One row per claim of each published study."""
    rows = ["| study | claim | verdict | measured (95% interval) |", "|---|---|---|---|"]
    for folder, study in published_studies().items():
        link = f"[{folder}](../results/studies/{folder}/page.md)"
        changed = " (by rules that were changed after the start)" if study.rules_changed else ""
        for index, verdict in enumerate(study.verdicts):
            measured = show_measured(find_study(study.study), study, index)
            claim, number = (text.replace("|", "\\|") for text in (verdict.claim, measured))
            rows.append(f"| {link} | {claim} | **{verdict.outcome}**{changed} | {number} |")
    return "\n".join(rows) + "\n"


def cost_table() -> str:
    """One row per study: what preset cpu trains, and where the time goes."""
    heads = ("study", "`cpu` trains", "training, one core", "measuring", "two idle cores", "`quick`", "known from")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, study in studies().items():
        seconds = {preset: show_seconds(each) for preset, each in estimated_seconds(study).items()}
        cpu = recorded_costs().get(name, {}).get("cpu")
        if cpu is None:
            cells = ["", "", "", seconds.get("cpu", ""), seconds.get("quick", ""), "the study states it: not measured"]
        else:
            trains = f"{plural(cpu.runs, 'network')}, {show_count(cpu.train_flops)} FLOPs" if cpu.runs else "nothing"
            training = show_seconds(cpu.training_seconds) if cpu.runs else "–"
            times = [training, show_seconds(cpu.measuring_seconds), seconds["cpu"], seconds["quick"]]
            cells = [trains, *times, cpu.basis]
        rows.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(rows) + "\n"


def sweep_tables() -> list[str]:
    """How sure we are that nothing is lost."""
    return [reliability_table(), review_table()]


def reliability_table() -> str:
    """What was measured at length."""
    broken, fuzzed, scale = (
        result(f"{name}.json") for name in ("reliability/mutations", "reliability/fuzz", "sweep/scale")
    )
    noticed, kinds = broken["all"], broken["of the review"]
    more = f"; {broken['not run']} more were not run" if broken["not run"] else ""
    most = max(row["peak_bytes"] for row in fuzzed["formats"].values())
    longest = max(row["longest_cpu_seconds"] for row in fuzzed["formats"].values())
    plan = scale["cells"]["50000"]["plan"]
    rows = [
        "| measured | result | by |",
        "|---|---|---|",
        f"| breaks of our own lines that a test notices | {noticed['killed']} of {noticed['mutants']}; of the kinds "
        f"that a review tried first {kinds['killed']} of {kinds['mutants']}{more} | "
        "`python -m benchmarks.mutations` |",
        f"| damaged or hostile inputs, of {len(fuzzed['formats'])} formats | {fuzzed['inputs']:,}: "
        f"{fuzzed['uncaught']} uncaught exceptions, {fuzzed['longer_than_10_s']} above 10 CPU seconds "
        f"(longest {longest:.1f}), {fuzzed['formats_above_1_GB']} above 1 GB (most {most / 1e9:.2f} GB) | "
        "`python -m benchmarks.fuzz` |",
        f"| `sweep plan` of 50,000 cells | {plan['cpu_seconds']:.1f} CPU seconds, {plan['megabytes']:.0f} MB; nothing "
        f"costs more than {max(scale['ratio'].values()):.2f} times what a straight line from 5,000 cells says | "
        "`python -m benchmarks.sweep_scale` |",
    ]
    return "\n".join(rows) + "\n"


def review_table() -> str:
    """What a review found, what holds now, and which tests fail when a line that holds it is broken."""
    rows = ["| found by a review | now | tests that failed when we broke that line |", "|---|---|---|"]
    broken = result("reliability/mutations.json")["mutants"]
    for name, (was, now) in FINDINGS.items():
        of_it = [mutant for mutant in broken if mutant["finding"] == name]
        tests = dict.fromkeys(mutant["by"].partition("[")[0] for mutant in of_it if mutant["outcome"] == "killed")
        files: dict[str, list[str]] = {}
        for test in tests:
            path, _, function = test.partition("::")
            files.setdefault(path.removeprefix("tests/"), []).append(f"`{function}`" if function else "")
        named = "; ".join(f"{path}: {', '.join(functions)}" for path, functions in files.items())
        missed = sum(mutant["outcome"] != "killed" for mutant in of_it)
        rows.append(f"| {name} {was} | {now} | {named}{f'; {missed} not noticed' if missed else ''} |")
    return "\n".join(rows) + "\n"


def with_tables(page: str, tables: list[str]) -> str:
    """The page with each table in the place of the one that has its header."""
    new = {table.splitlines()[0]: table for table in tables}
    return TABLE.sub(lambda match: new.get(match[0].splitlines()[0], match[0]), page)
