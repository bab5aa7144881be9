"""A report as one HTML file that needs nothing: no script, no network, no other file.

Every text passes `_text`, every attribute too; addresses are `data:` only. The policy in the head forbids the rest.
"""

from html import escape
from pathlib import Path

from deepwide.figures import BLUE, ORANGE, clean, style_sheet
from deepwide.report.document import Attachment, Block, Command, Facts, Figure, Notes, Report, Section, Table, Text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
MANY = 8  # columns: such a table is set smaller in print
LONG = 40  # characters: such a cell may be broken anywhere, so that no page cuts it
LONG_LABEL = 24  # characters: beside many such labels the texts get half of the width
STYLE = Path(__file__).with_name("report.css")


def to_html(report: Report, top: str = "") -> str:
    """The whole file; `top` is HTML of ours to stand above it."""
    title = _text(report.title)
    contents = "".join(
        f'<li><a href="#s{number}">{_text(section.title)}</a></li>' for number, section in enumerate(report.sections, 1)
    )
    sections = "\n".join(_section(section, number) for number, section in enumerate(report.sections, 1))
    versions = ", ".join(f"{name} {value}" for name, value in (report.versions or {}).items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_text(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style_sheet({"alarm": ORANGE, "link": BLUE})}{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
{top}<header><h1>{title}</h1><p class="lead">{_text(report.lead)}</p></header>
<nav aria-label="Contents"><ol>{contents}</ol></nav>
<main>
{sections}
</main>
<footer><p>Made from {_text(report.source)}. Versions: {_text(versions)}.</p></footer>
</body>
</html>
"""


def _text(text: object) -> str:
    """Safe in text and in a quoted attribute."""
    return escape(clean(text), quote=True)


def _section(section: Section, number: int) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f'<section id="s{number}"><h2>{_text(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f'<p class="strong">{_text(block.text)}</p>' if block.strong else f"<p>{_text(block.text)}</p>"
    if isinstance(block, Command):
        return f"<pre><code>{_text(block.text)}</code></pre>"
    if isinstance(block, Facts):
        rows = "".join(f"<div><dt>{_text(label)}</dt><dd>{_text(text)}</dd></div>" for label, text in block.pairs)
        long = 3 * sum(len(label) > LONG_LABEL for label, _ in block.pairs) > len(block.pairs)
        return f'<dl class="even">{rows}</dl>' if long else f"<dl>{rows}</dl>"
    if isinstance(block, Notes):
        items = "".join(f"<li>{_text(text)}</li>" for text in block.texts)
        return f'<ul class="{"warnings" if block.warning else "notes"}">{items}</ul>'
    if isinstance(block, Figure):
        image = f'<img src="{block.link}" alt="{_text(block.alt)}">'
        caption = f"<figcaption>{_text(block.caption)}</figcaption>" if block.caption else ""
        return f"<figure>{image}{caption}</figure>"
    if isinstance(block, Attachment):
        return f'<p class="data">{_link(block)}</p>'
    return _table(block)


def _table(table: Table) -> str:
    shown = table.shown()
    long = [any(len(row[i]) > LONG for row in shown) for i in range(len(table.columns))]
    kinds = [
        ' class="number"' if numeric else ' class="long"' if wraps else ""
        for numeric, wraps in zip(table.numeric(), long, strict=True)
    ]
    heads = "".join(
        f'<th scope="col"{kind}>{_text(title)}</th>' for title, kind in zip(table.columns.values(), kinds, strict=True)
    )
    rows = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{_text(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in shown
    )
    opening = '<table class="wide">' if len(table.columns) > MANY else "<table>"
    above = f'<p class="above">{_text(table.caption)}</p>\n' if table.caption else ""
    words = " ".join(filter(None, (_text(table.left_out), _link(table.csv))))
    return (
        f'{above}<div class="table" role="region" tabindex="0" aria-label="{_text(table.name)}">{opening}\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n"
        f'<p class="data">{words}</p>'
    )


def _link(attachment: Attachment) -> str:
    name, address = attachment.link
    return f'<a download="{_text(name)}" href="{address}">{_text(name)}</a>'
