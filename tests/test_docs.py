"""Every command the documentation shows is run, and prints what the page says.

python tests/test_docs.py      rewrites the pages with what the commands print now (make docs)
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```console\n\$ (.+)\n((?:.*\n)*?)^```$", re.MULTILINE)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
PYTHON = re.compile(r"^```python\n((?:.*\n)*?)^```$", re.MULTILINE)
ABLATION = json.loads((ROOT / "results/fit/ablation.json").read_text(encoding="utf-8"))
SHOWN = [(page, *block) for page in PAGES for block in BLOCK.findall(page.read_text(encoding="utf-8"))]


def output(command: str) -> str:
    """What `deepwide …` prints into a pipe, without the spaces that pad tables."""
    verb, *words = command.split()
    assert verb == "deepwide", f"only deepwide commands are run, not {command!r}"
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "deepwide", *words], capture_output=True, text=True, cwd=ROOT, env=clean, check=False
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


@pytest.mark.parametrize(("page", "command", "shown"), SHOWN, ids=[f"{p.name}: {c}" for p, c, _ in SHOWN])
def test_a_command_in_the_docs_prints_what_the_page_shows(page: Path, command: str, shown: str) -> None:
    assert output(command) == shown, f"{page.name} is out of date: run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_the_docs_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import deepwide

    monkeypatch.chdir(tmp_path)
    config = deepwide.write_config(deepwide.find_model("llama-3-8b").shape, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config))
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_planner_s_page_quotes_the_measured_misses() -> None:
    measured = json.loads((ROOT / "results/planner/bench.json").read_text())["plan_many"]
    page = (ROOT / "docs/planner.md").read_text(encoding="utf-8")
    for label, kind in (("default (gated)", "gated"), ("plain feed-forward", "plain")):
        row = f"| {label} | {measured[kind]['mean_miss']:.1%} | {measured[kind]['worst_miss']:.1%} |"
        assert row in page


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
    for name, found in ABLATION.items():
        if "shapes" not in found:
            continue
        fit = found["depth"]
        power, cost = (
            f"{value:.2f} ({low:.2f} to {high:.2f})"
            for value, low, high in (fit["ridge"][what] for what in ("exponent", "factor 2 costs, %"))
        )
        cells = [name, str(found["shapes"]), power, cost]
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
    rows = [f"| {test} | {held[outcome]} |" for test, outcome in ABLATION["stated before the runs"].items()]
    return "\n".join(["| stated before the new shapes were trained | outcome |", "|---|---|", *rows]) + "\n"


def calibration_table() -> str:
    """The table of coverage in docs/fit.md, from what was measured."""
    heads = ("design", "crossings", "a, b by likelihood", "a, b by bootstrap", "bias of a, b in their spread")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for design, found in json.loads((ROOT / "results/fit/calibration.json").read_text()).items():
        if isinstance(found, dict) and "with a law" in found:
            c, bias = found["coverage"], found["bias in units of the spread"]
            crossings = [value for name, value in c.items() if name.startswith("crossing")]
            by = [f"{c[f'a, {how}']:.1%}, {c[f'b, {how}']:.1%}" for how in ("likelihood", "bootstrap")]
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


def test_the_page_on_fits_shows_what_was_measured() -> None:
    page = (ROOT / "docs/fit.md").read_text(encoding="utf-8")
    for table in fit_tables():
        assert table in page, "docs/fit.md is out of date: run `make docs`"
    speed = json.loads((ROOT / "results/fit/surface_speed.json").read_text())
    seconds = speed["ours"]["seconds_with_1000_resamples"]
    assert f"{min(seconds):.1f} to {max(seconds):.1f} s" in page
    assert f"{speed['ours']['evaluations']} passes" in page
    assert f"{speed['multi_start'][0]['evaluations_for_the_grid'] / 1000:.0f} thousand" in page


def test_the_page_on_fits_quotes_the_ablation_and_the_calibration() -> None:
    """The numbers and verdicts of its sentences, as the fits have them."""
    page = " ".join((ROOT / "docs/fit.md").read_text(encoding="utf-8").split())
    short, long, reviews = (
        ABLATION[name]["depth"] for name in ("2M tokens, all", "8M tokens", "film reviews, 2M tokens")
    )

    def power(fit: dict[str, Any]) -> str:
        return "{:.2f} ({:.2f} to {:.2f})".format(*fit["ridge"]["exponent"])

    def crossing(fit: dict[str, Any], pair: str) -> str:
        size, low, high = fit["transition"]["crossings"][pair]["size"]
        return f"{thousands(size)} ({thousands(low)} to {thousands(high)})"

    best = ["{:.1f} ({:.1f} to {:.1f})".format(*each) for each in long["ridge"]["best depth there"]]
    sizes = [thousands(size) for size in long["ridge"]["sizes"]]
    b, noise = short["transition"]["line"]["b"], short["transition"]["noise, %"]
    quoted = (
        f"the power {power(short)} at 2M tokens, {power(long)} at 8M",
        f"it is {best[0]} layers at {sizes[0]} and {best[1]} at {sizes[1]}",
        f"four layers overtake two at {crossing(short, '2/4')}, eight overtake two at {crossing(short, '2/8')}",
        f"eight overtake two at {crossing(long, '2/8')}",
        f"1/8 at {crossing(short, '1/8')} and 2/4",
        f"whose middle is 5.7, at {crossing(short, '4/8')}, with no upper limit",
        f"has b = {b[0]:.2f} ({b[1]:.2f} to {b[2]:.2f} by bootstrap)",
        f"{noise['1']:.1f}% of loss for one layer and {noise['8']:.1f} to {noise['4']:.1f}% for two to eight",
        f"1/8 cross at {crossing(reviews, '1/8')} and 2/8 at {crossing(reviews, '2/8')}",
        f"like the size to the power {power(reviews)}, as on the standard library",
    )
    for words in quoted:
        assert words in page
    regimes = [fit["transition"]["crossings"][pair]["two regimes"] for fit, pair in ((short, "1/8"), (short, "2/8"))]
    regimes += [
        ABLATION["8M tokens"][noise]["transition"]["crossings"]["2/8"]["two regimes"] for noise in ("same", "depth")
    ]
    assert set(regimes) == {"seen"}
    assert list(ABLATION["stated before the runs"].values()).count(True) == 1, "one held and three did not"
    found = json.loads((ROOT / "results/fit/calibration.json").read_text())
    one, own = (
        found["4 depths, 9 sizes, 1 seed, noise 4, 1, 0.5, 0.5% by depth"],
        found["the same, each depth's own noise"],
    )
    shown = [
        {pair: each["crossings shown"][f"crossing {pair}"] for pair in ("1/2", "2/4", "4/8")} for each in (one, own)
    ]
    for words in (
        f"2/4 is shown in {shown[0]['2/4']:.0%} of the sweeps, 4/8 in {shown[0]['4/8']:.0%}",
        f"covers that of 1/2 in {one['coverage']['crossing 1/2']:.0%}",
        f"2/4 is shown in {shown[1]['2/4']:.0%} and 4/8 in {shown[1]['4/8']:.0%}",
        f"covered in {own['coverage']['crossing 1/2']:.0%} of those",
        f"{100 * found['depth makes no difference']['pairs with a crossing']:.1f}% of the pairs got a crossing",
    ):
        assert words in page
    plans = found["laws for plan"]["coverage"].values()
    assert f"covers {100 * min(plans):.1f} to {100 * max(plans):.0f}%" in page


def test_the_page_on_training_shows_the_speed_that_was_measured() -> None:
    page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "results/train/speed.json").read_text())["rows"]
    assert [(row["depth"], row["width"]) for row in measured] == [(2, 64), (4, 128), (6, 256), (8, 512)]
    for row in measured:
        times = [
            f"{row['ratio_of_deepwide'][peer]:.2f}"
            for peer in ("transformers (as shipped: gelu_new)", "transformers (gelu)", "litgpt")
        ]
        speed, share = row["tokens_per_second"]["deepwide"], row["share_of_peak"]["deepwide"]
        cells = [f"{row['depth']}, {row['width']}", f"{speed:,.0f}", f"{share:.0%}", *times]
        assert f"| {' | '.join(cells)} |" in page
    memory = json.loads((ROOT / "results/train/speed_memory.json").read_text())["rows"]
    gain = [f"{row['ratio_of_deepwide']['deepwide (memory given back)']:.2f}" for row in memory]
    assert f"a factor {gain[0]}, {gain[1]} and {gain[2]}" in page


def measured_tables() -> list[str]:
    """The tables that benchmarks/separation writes, for docs/rank.md."""
    written = [(ROOT / "results/separation" / name).read_text(encoding="utf-8") for name in ("ranks.md", "bench.md")]
    return [table for text in written for table in TABLE.findall(text)]


def with_tables(page: str, tables: list[str]) -> str:
    """The page with each table in the place of the one that has its header."""
    new = {table.splitlines()[0]: table for table in tables}
    return TABLE.sub(lambda match: new.get(match[0].splitlines()[0], match[0]), page)


def test_the_page_on_ranks_shows_the_tables_that_were_measured() -> None:
    page = (ROOT / "docs/rank.md").read_text(encoding="utf-8")
    tables = measured_tables()
    assert len(tables) == 4
    assert all(table in page for table in tables), "docs/rank.md is out of date: run `make docs`"


def refresh() -> None:
    """Put into each page what its commands print now, and the tables that were measured."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = BLOCK.sub(lambda match: f"```console\n$ {match[1]}\n{output(match[1])}```", text)
        tables = {"rank.md": measured_tables, "fit.md": fit_tables}.get(page.name)
        new = with_tables(new, tables()) if tables else new
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"rewrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    refresh()
