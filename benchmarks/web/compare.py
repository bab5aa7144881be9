"""The page against the command line, to the last digit shown: `python -m benchmarks.web.compare`.

For random settings, the text that the page shows in a real browser (read from its elements) is compared with what
`deepwide plan` prints. The lines of the command line are computed first, which takes the most time; they are kept in
the file named by `--lines`, so that an interrupted run resumes.
"""

import argparse
import json
import platform
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.web.browser import chromium, missing, saved_page
from benchmarks.web.settings import FITTED, printed, random_settings

RESULT = Path(__file__).resolve().parents[2] / "results" / "web" / "compare.json"
CHUNK = 200
# Every line on the page: an element with data-line, whose text is that of its cells where it has cells.
SHOWN = """settings => settings.map(each => {
  deepwide.show(each);
  const refusal = document.getElementById("refusal");
  if (!refusal.hidden) return ["refused: " + refusal.textContent];
  const tidy = text => text.replace(/\\s+/g, " ").trim();
  const lines = [...document.querySelectorAll("#answer [data-line], #numbers [data-line]")].map(node => {
    const cells = [...node.querySelectorAll("[data-cell]")].map(cell => cell.textContent);
    return tidy(node.dataset.line + (cells.length ? cells.filter(text => text).join(" ") : node.textContent));
  });
  return lines;
})"""
# Functions whose last bit a browser and numpy may round differently, with the powers of ten of their arguments.
FUNCTIONS: dict[str, tuple[float, float]] = {
    "exp": (-1, 1.5), "log": (-3, 20), "log2": (-3, 3), "log10": (0, 6), "cbrt": (0, 13), "expm1": (-6, 0)
}  # fmt: skip
HEADINGS = {  # of tables, which the page has in its markup
    "The same size at other depths",
    "depth width heads ff blocks of law loss (95%) step decode",
    "Memory of the fullest device",
    "depth width weights and optimiser activations training cache serving",
    "What every law says about this size",
    "law depth 95% says status",
}


def many_settings(count: int, seed: int) -> list[dict[str, Any]]:
    """Settings of a seed."""
    generator = random.Random(seed)
    return [random_settings(generator) for _ in range(count)]


def expected_lines(settings: Sequence[dict[str, Any]], path: Path | None = None) -> list[list[str]]:
    """What the command line prints for each, from and into a file of one JSON list per line."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []
    for start in range(len(lines), len(settings), CHUNK):
        more = [printed(each) for each in settings[start : start + CHUNK]]
        lines += more
        if path:
            with path.open("a") as file:
                file.writelines(json.dumps(each) + "\n" for each in more)
    return lines[: len(settings)]


def shown_lines(page: Any, settings: Sequence[dict[str, Any]]) -> list[list[str]]:
    """What the page shows for each."""
    shown: list[list[str]] = []
    for start in range(0, len(settings), CHUNK):
        shown += page.evaluate(SHOWN, list(settings[start : start + CHUNK]))
    return shown


def comparable(lines: Sequence[str]) -> list[str]:
    """Lines in an order of their own: the page has them in another one; a refusal begins with a capital there."""
    if lines and lines[0].startswith("refused: "):
        return [lines[0].lower()]
    return sorted(line for line in lines if line not in HEADINGS)


def differences(
    settings: Sequence[dict[str, Any]], expected: Sequence[list[str]], shown: Sequence[list[str]]
) -> list[dict[str, Any]]:
    """The settings at which the two differ, with the lines that only one of them has."""
    rows = []
    for each, one, other in zip(settings, expected, shown, strict=True):
        ours, theirs = comparable(one), comparable(other)
        if ours != theirs:
            only = [line for line in ours if line not in theirs], [line for line in theirs if line not in ours]
            rows.append({"settings": each, "command_line": only[0], "page": only[1]})
    return rows


def last_bits(page: Any, count: int = 20_000) -> dict[str, dict[str, float]]:
    """How often the browser's functions differ from numpy's, and by how many units in the last place at most."""
    result = {}
    for name, (low, high) in FUNCTIONS.items():
        x = 10 ** np.random.default_rng(0).uniform(low, high, count)
        here = getattr(np, name)(x)
        there = np.array(page.evaluate(f"values => values.map(x => Math.{name}(x))", x.tolist()))
        units = np.abs(there - here) / np.spacing(np.abs(here))
        result[name] = {"values": count, "different": int((units > 0).sum()), "most_units": float(units.max())}
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and save the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=Path, help="where the command line's lines are kept")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if why := missing():
        raise SystemExit(why)
    settings = many_settings(given.count, given.seed)
    expected = expected_lines(settings, given.lines)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = browser.new_page()
        page.goto(saved_page(Path(folder), tuple(FITTED.values())))
        shown = shown_lines(page, settings)
        bits = last_bits(page)
        version = browser.version
    wrong = differences(settings, expected, shown)
    result = {
        "command": f"python -m benchmarks.web.compare --count {given.count} --seed {given.seed}",
        "settings": len(settings),
        "refused": sum(lines[0].startswith("refused: ") for lines in expected),
        "lines_compared": sum(len(comparable(lines)) for lines in expected),
        "different": len(wrong),
        "differences": wrong[:20],
        "last_bits": bits,
        "browser": f"Chromium {version}",
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: value for name, value in result.items() if name != "differences"}, indent=1))


if __name__ == "__main__":
    main()
