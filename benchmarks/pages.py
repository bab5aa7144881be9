"""The documentation's commands and tables: what they print now, and `python -m benchmarks.pages` (make docs) writes it.

In a page, a fence that says
  console   holds commands, each after `$ `, with exactly what they print, or its beginning where ` | head -9` follows;
            two spaces and `# exit 2` after a command say that it fails
  sh        holds commands that are checked (the verb, its options, files of this repository), not run
  python    holds a program, or a session with `>>> `: run; an expression with a literal in its comment has that value
  toml json are read
  text      is anything else
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.page_tables import (
    ROOT,
    design_tables,
    fit_tables,
    joint_tables,
    latency_tables,
    published_studies,
    rank_tables,
    shape_tables,
    study_tables,
    sweep_tables,
    with_tables,
)

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^```([a-z]*)\n((?:.*\n)*?)^```$", re.MULTILINE)
SESSION = re.compile(r"^\$ (.+?)(?:  # exit (\d+))?\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
TABLES: dict[str, Callable[[], list[str]]] = {
    "design.md": design_tables,
    "rank.md": rank_tables,
    "fit.md": fit_tables,
    "joint.md": joint_tables,
    "latency.md": latency_tables,
    "shape.md": shape_tables,
    "studies.md": study_tables,
    "sweeps.md": sweep_tables,
}


class Command(NamedTuple):
    """A command in a console block."""

    page: Path
    words: str
    code: int
    shown: str


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """The fenced blocks of a page in these languages."""
    for language, content in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield content


def commands(page: Path) -> Iterator[Command]:
    """The commands of a page's console blocks."""
    for block in blocks(page, "console"):
        for words, code, shown in SESSION.findall(block):
            yield Command(page, words, int(code or 0), shown)


def run(words: str) -> tuple[int, str]:
    """How a `deepwide …` command ends and what it prints into a pipe, without the spaces that pad tables.

    ` | head -N` after it keeps the first lines.
    """
    words, _, lines = words.partition(" | head -")
    verb, *arguments = shlex.split(words)
    if verb != "deepwide":
        raise ValueError(f"only deepwide commands are run, not {words!r}")
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "deepwide", *arguments], capture_output=True, text=True, cwd=ROOT, env=clean, check=False
    )
    printed = (done.stdout + done.stderr).splitlines()[: int(lines) if lines else None]
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in printed)


def _printed_now(match: re.Match[str]) -> str:
    words, code = match[1], match[2]
    ended, printed = run(words)
    if ended != int(code or 0):
        raise SystemExit(f"`{words}` ends with {ended}; if it should, write `$ {words}  # exit {ended}`:\n{printed}")
    return f"$ {words}{f'  # exit {code}' if code else ''}\n{printed}"


def _refreshed(match: re.Match[str]) -> str:
    language, content = match[1], match[2]
    return f"```{language}\n{SESSION.sub(_printed_now, content)}```" if language == "console" else match[0]


def redraw() -> None:
    """Draw the pictures of the published studies again, from what they measured, and write their pages: the style may
    have changed."""
    from deepwide.figures import save_chart
    from deepwide.report import write_report
    from deepwide.studies import find_study

    for folder, result in published_studies().items():
        home = ROOT / "results" / "studies" / folder
        for name, chart in find_study(result.study).figures(result.measured).items():
            save_chart(chart, home / f"{name}.svg")
        with contextlib.chdir(ROOT):  # its last line names the folder
            write_report(home.relative_to(ROOT), home / "page.md")


def main() -> None:
    """Put into each page what its commands print now, and the tables that were measured."""
    redraw()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = FENCE.sub(_refreshed, text)
        if page.name in TABLES:
            new = with_tables(new, TABLES[page.name]())
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"rewrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
