"""A report as one Markdown file: tables and text for any reader, figures and data as `data:` addresses."""

import re

from deepwide.figures import clean
from deepwide.report.document import Attachment, Block, Facts, Figure, Notes, Report, Table, Text

SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
STARTS = re.compile(r"^([-+=]|\d+[.)](?=\s|$))")


def to_markdown(report: Report) -> str:
    """The whole file."""
    parts = [f"# {_text(report.title)}", _text(report.lead)]
    for section in report.sections:
        parts += [f"## {_text(section.title)}", *(_block(block) for block in section.blocks)]
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


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f"**{_text(block.text)}**" if block.strong else _text(block.text)
    if isinstance(block, Facts):
        return "\n".join(f"- {_text(label)}: {_text(text)}" for label, text in block.pairs)
    if isinstance(block, Notes):
        word = "**Warning**: " if block.warning else ""
        return "\n".join(f"- {word}{_text(text)}" for text in block.texts)
    if isinstance(block, Figure):
        return f"![{_text(block.alt)}]({block.link})\n\n{_text(block.caption)}"
    if isinstance(block, Attachment):
        return _link(block)
    return _table(block)


def _table(table: Table) -> str:
    lines = ["| " + " | ".join(map(_text, table.columns.values())) + " |"]
    lines.append("|" + "".join("---:|" if numeric else "---|" for numeric in table.numeric()))
    lines += ["| " + " | ".join(map(_text, row)) + " |" for row in table.shown()]
    below = " ".join(filter(None, (_text(table.caption), _text(table.left_out), _link(table.csv))))
    return "\n".join(lines) + f"\n\n{below}"


def _link(attachment: Attachment) -> str:
    name, address = attachment.link
    return f"[{_text(name)}]({address})"
