"""The tables of docs/fit.md and docs/rank.md, from what benchmarks measured and results/ keeps."""

import csv
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def result(name: str) -> dict[str, Any]:
    """What a benchmark saved, by its path under results/."""
    content: dict[str, Any] = json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))
    return content


def losses_table(tokens: str, *names: str) -> str:
    """A table of losses in docs/fit.md, from what was measured."""
    cells: dict[tuple[int, int], dict[str, list[float]]] = {}
    for name in names:
        with (ROOT / f"results/fit/{name}.csv").open() as file:
            for row in csv.DictReader(file):
                rates = cells.setdefault((int(row["size"]), int(row["depth"])), {})
                rates.setdefault(row["lr"], []).append(float(row["validation_loss"]))
    depths = sorted({depth for _, depth in cells})
    heads = [f"{depth} layer{'s' * (depth > 1)}" for depth in depths]
    rows = [f"| size, {tokens} tokens | {' | '.join(heads)} |", "|---" * (1 + len(depths)) + "|"]
    for size in sorted({size for size, _ in cells}):
        shown = []
        for depth in depths:
            rates = cells.get((size, depth), {})
            if not rates:
                shown.append("–")
                continue
            rate, losses = min(rates.items(), key=lambda item: sum(item[1]) / len(item[1]))
            spread = f" ± {(max(losses) - min(losses)) / 2:.3f}" if len(losses) > 1 else ""
            shown.append(f"{sum(losses) / len(losses):.3f}{spread}{'*' if rate == '0.003' else ''}")
        rows.append(f"| {size / 1000:g}k | {' | '.join(shown)} |")
    return "\n".join(rows) + "\n"


def thousands(size: float | None) -> str:
    return "…" if size is None else f"{size / 1000:.3g}k"


def findings_table() -> str:
    """What the fits of our runs say, from results/fit/ablation.json; each depth has its own noise."""
    pairs = ("2/4", "1/8", "2/8", "4/8")
    heads = [
        "runs",
        "shapes",
        "best depth ~ size to the",
        "a factor 2 costs, %",
        *(f"{pair} cross at" for pair in pairs),
    ]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, runs in result("fit/ablation.json").items():
        if "shapes" not in runs:
            continue
        fit = runs["depth"]
        power, cost = (
            f"{value:.2f} ({low:.2f} to {high:.2f})"
            for value, low, high in (fit["ridge"][what] for what in ("exponent", "factor 2 costs, %"))
        )
        cells = [name, str(runs["shapes"]), power, cost]
        for pair in pairs:
            crossing = fit["transition"]["crossings"].get(pair, {"status": "none"})
            if crossing["status"] == "none":
                cells.append("–")
                continue
            size, least, most = crossing["size"]
            outside = " (outside)" if crossing["status"] == "extrapolated" else ""
            cells.append(f"{thousands(size)}{outside}, {thousands(least)} to {thousands(most)}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def stated_table() -> str:
    """What was stated before the new shapes were trained, and whether it held."""
    held = {True: "held", False: "did not hold"}
    rows = [
        f"| {test} | {held[outcome]} |"
        for test, outcome in result("fit/ablation.json")["stated before the runs"].items()
    ]
    return "\n".join(["| stated before the new shapes were trained | outcome |", "|---|---|", *rows]) + "\n"


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


def fit_tables() -> list[str]:
    """Losses at both lengths of training, what fits make of them, and how sure such fits are."""
    return [
        losses_table("2M", "depth-width-cpu", "depth-width-between"),
        losses_table("8M", "depth-width-long"),
        findings_table(),
        stated_table(),
        calibration_table(),
    ]


def rank_tables() -> list[str]:
    """The tables that benchmarks/separation writes, for docs/rank.md."""
    written = [(ROOT / "results/separation" / name).read_text(encoding="utf-8") for name in ("ranks.md", "bench.md")]
    return [table for text in written for table in TABLE.findall(text)]


def with_tables(page: str, tables: list[str]) -> str:
    """The page with each table in the place of the one that has its header."""
    new = {table.splitlines()[0]: table for table in tables}
    return TABLE.sub(lambda match: new.get(match[0].splitlines()[0], match[0]), page)
