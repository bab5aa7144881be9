"""What a report is before it has a format: a frozen value of sections, each of text, facts, notes, tables and figures.

Texts are plain: whatever a file said stands in them as it is, and each format escapes all of it.
"""

import base64
import csv
import gzip
import io
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import deepwide
from deepwide.errors import DeepwideError, is_installed, missing
from deepwide.figures import clean, picture

MOST_DRAWN = 2000  # runs in a picture: of more it takes minutes and says little
MOST_ROWS = 200  # of a table that are shown; all of them are in its CSV
LONGEST_LINK = 1_500_000  # characters: Chromium's addresses end at 2 MiB, so a longer file travels packed
# What does not print, or changes the order of what does: C0, C1, surrogates, marks and overrides of direction.
CLIP = re.compile(r'(?<=id=")clip\d+(?=")|(?<=url\(#)clip\d+(?=\))')
SPOKEN = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')  # nobody hears them in an image, and they are most of it
LABEL = re.compile(r'aria-label="(Title|Subtitle) text \'([^"]*)\'"')


@dataclass(frozen=True)
class Text:
    """A paragraph; a strong one is what the reader should see first."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Command:
    """A line for a shell."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Labels and what they stand for."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Notes:
    """Sentences to beware of, one each; warnings are set apart."""

    texts: tuple[str, ...]
    warning: bool = False


@dataclass(frozen=True)
class Attachment:
    """A file that travels in the report."""

    name: str
    content: bytes
    kind: str = "text/csv"

    @property
    def link(self) -> tuple[str, str]:
        """Its name and its `data:` address; packed with gzip where the address would be too long to open."""
        name, kind, content = self.name, self.kind, self.content
        if len(content) * 4 // 3 > LONGEST_LINK:
            name, kind, content = f"{name}.gz", "application/gzip", gzip.compress(content, mtime=0)
        return name, f"data:{kind};base64,{base64.b64encode(content).decode()}"


@dataclass(frozen=True)
class Table:
    """Plain rows: all of them in the CSV, with every column; the first ones shown, in the columns that have a title."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str]  # key of a row: title
    caption: str = ""
    most: int = MOST_ROWS

    @classmethod
    def of(
        cls,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        caption: str = "",
        titles: Mapping[str, str] | None = None,
        most: int = MOST_ROWS,
    ) -> "Table":
        """A table with titles for some columns, or for all of them; columns without a value are not shown."""
        keys = dict.fromkeys(key for row in rows for key in row)
        chosen = {key: title for key, title in (titles or {}).items() if key in keys} or {
            key: key.replace("_", " ") for key in keys
        }
        filled = {key for row in rows for key, value in row.items() if value not in (None, "")}
        return cls(name, rows, {key: title for key, title in chosen.items() if key in filled}, caption, most)

    def shown(self) -> list[list[str]]:
        """The cells of the rows that are shown."""
        rows = self.rows[: self.most]
        columns = [show_column([row.get(key) for row in rows]) for key in self.columns]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def numeric(self) -> list[bool]:
        """Which of the shown columns hold numbers only."""
        return [
            all(
                isinstance(row.get(key), int | float | None) and not isinstance(row.get(key), bool) for row in self.rows
            )
            for key in self.columns
        ]

    @property
    def left_out(self) -> str:
        """What is not shown, and where it is."""
        more = len(self.rows) - self.most
        return f"{more:,} more of {len(self.rows):,} rows are in the CSV." if more > 0 else ""

    @property
    def csv(self) -> Attachment:
        """Every row and column, numbers with all their digits."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows(dict(row) for row in self.rows)
        return Attachment(f"{file_name(self.name)}.csv", text.getvalue().encode("utf-8", "replace"))


@dataclass(frozen=True)
class Figure:
    """A picture as SVG, with a caption, and a text for who cannot see it."""

    name: str
    svg: str
    caption: str
    alt: str

    @property
    def link(self) -> str:
        """As an image address: in an image nothing of an SVG runs or is loaded, and its ids are its own."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode('utf-8', 'replace')).decode()}"

    @classmethod
    def from_svg(cls, name: str, svg: str, caption: str) -> "Figure":
        """A figure whose alternative text is the title and subtitle that our charts have."""
        import html

        words = [html.unescape(text) for _, text in LABEL.findall(svg)]
        return cls(name, svg, caption, ". ".join(words) or caption)


Block = Text | Command | Facts | Notes | Table | Figure | Attachment


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """Everything that a report says."""

    kind: str  # plan, audit, fit, sweep, study
    title: str
    lead: str
    sections: tuple[Section, ...]
    source: str = ""  # what it was made from, and how
    versions: Mapping[str, str] | None = None
    folder: Path | None = None  # where its figures and tables are files already

    def blocks(self) -> list[Block]:
        """Every block, in order."""
        return [block for section in self.sections for block in section.blocks]


def draw(name: str, chart: Callable[[], Any], caption: str) -> Figure | Notes:
    """A chart as a figure, or why there is none: a report without its picture is still a report."""
    for module in ("altair", "vl_convert"):
        if not is_installed(module):
            return Notes((f"Without its figure ({caption}). {missing(module, 'plot')}",))
    try:
        svg = picture(chart(), ".svg").decode()
        # Its ids count on from picture to picture of a process: the same report must have the same bytes.
        ids: dict[str, str] = {}
        svg = CLIP.sub(lambda clip: ids.setdefault(clip[0], f"clip{len(ids)}"), svg)
        figure = Figure.from_svg(name, svg, caption)
        return replace(figure, svg=SPOKEN.sub("", svg))
    except DeepwideError as error:
        return Notes((f"Without its figure ({caption}): {error}",))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # numbers of an answer that somebody edited
        return Notes((f"Without its figure ({caption}): its numbers cannot be drawn ({type(error).__name__}).",))


def show_column(values: Sequence[Any]) -> list[str]:
    """The cells of a column: whole numbers in full, others with four digits, or four decimals below 10.

    >>> show_column([14496.0, None, True]), show_column([1.61803, 0.00012345]), show_column([0.001, 0.25])
    (['14,496', '', 'yes'], ['1.6180', '0.00012'], ['0.001', '0.25'])
    >>> show_column([42.1714, 7.03])
    ['42.17', '7.03']
    """
    fractions = [v for v in values if isinstance(v, float) and math.isfinite(v) and not v.is_integer()]
    exact = all(float(f"{v:.3g}") == v for v in fractions)
    largest = max(map(abs, fractions), default=1.0)
    decimals = 4 if largest < 10 else max(0, 3 - math.floor(math.log10(largest)))
    return [_cell(value, None if exact else decimals) for value in values]


def _cell(value: Any, decimals: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    if not isinstance(value, float):
        return clean(value)
    if decimals is None or abs(value) >= 1e9:
        return f"{value:.3g}"
    # What would lose its digits to the column's decimals has two of its own.
    return f"{value:,.{decimals}f}" if abs(value) >= 10.0 ** (1 - decimals) else f"{value:.2g}"


def file_name(text: str) -> str:
    """A name that every file system takes.

    >>> file_name("a/b <c>")
    'a-b-c'
    """
    return re.sub(r"[^\w.-]+", "-", clean(text)).strip("-.")[:80] or "report"


def versions_now() -> dict[str, str]:
    """What made the report."""
    names = {"deepwide": deepwide.__version__, "python": platform.python_version()}
    for library in ("numpy", "altair", "vl-convert-python"):
        try:
            names[library] = version(library)
        except PackageNotFoundError:
            continue
    return names
