"""A report as one Markdown file: tables and text for any reader, figures and data as `data:` addresses."""

import re
from pathlib import Path
from urllib.parse import quote

from deepwide.figures import clean
from deepwide.report.document import Attachment, Block, Command, Facts, Figure, Notes, Report, Table, Text

SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
STARTS = re.compile(r"^([-+=]|\d+[.)](?=\s|$))")


def to_markdown(report: Report, beside: Path | None = None) -> str:
    """The whole file; in the folder that has its figures and tables as files, links to those."""
    files = report.folder if beside and report.folder and beside.resolve() == report.folder.resolve() else None
    parts = [f"# {_text(report.title)}", _text(report.lead)]
    for section in report.sections:
        parts += [f"## {_text(section.title)}", *(_block(block, files) for block in section.blocks)]
    versions = ", ".join(f"{name} {value}" for name, value in (report.versions or {}).items())
    parts.append(f"Made from {_text(report.source)}. Versions: {_text(versions)}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(text: object) -> str:
    """One line in which nothing is markup: punctuation that could be is escaped, `<` and `&` as HTML has them.

    >>> _text("a|b <script> [x](javascript:y)")
    'a\\\\|b &lt;script&gt; \\\\[x\\\\](javascript:y)'
    """
    line = " ".join(clean(text).split())
    line = SPECIAL.sub(r"\\\1", line)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return STARTS.sub(lambda start: f"{start[0][:-1]}\\{start[0][-1]}", line)


def _block(block: Block, files: Path | None) -> str:
    if isinstance(block, Text):
        return f"**{_text(block.text)}**" if block.strong else _text(block.text)
    if isinstance(block, Command):
        return f"    {' '.join(clean(block.text).split())}"
    if isinstance(block, Facts):
        return "\n".join(f"- {_text(label)}: {_text(text)}" for label, text in block.pairs)
    if isinstance(block, Notes):
        word = "**Warning**: " if block.warning else ""
        return "\n".join(f"- {word}{_text(text)}" for text in block.texts)
    if isinstance(block, Figure):
        address = _beside(f"{block.name}.svg", files) or block.link
        return f"![{_text(block.alt)}]({address})\n\n{_text(block.caption)}".rstrip()
    if isinstance(block, Attachment):
        return _link(block, files)
    return _table(block, files)


def _table(table: Table, files: Path | None) -> str:
    lines = ["| " + " | ".join(map(_text, table.columns.values())) + " |"]
    lines.append("|" + "".join("---:|" if numeric else "---|" for numeric in table.numeric()))
    lines += ["| " + " | ".join(map(_text, row)) + " |" for row in table.shown()]
    below = " ".join(filter(None, (_text(table.left_out), _link(table.csv, files))))
    return "\n\n".join(filter(None, (_text(table.caption), "\n".join(lines), below)))


def _link(attachment: Attachment, files: Path | None) -> str:
    if address := _beside(attachment.name, files):
        return f"[{_text(attachment.name)}]({address})"
    name, address = attachment.link
    return f"[{_text(name)}]({address})"


def _beside(name: str, files: Path | None) -> str:
    """The address of a file that lies in the same folder; none where it does not."""
    return f"./{quote(name)}" if files and (files / name).is_file() else ""
