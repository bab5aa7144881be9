"""A report as one file."""

from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.files import write_text
from deepwide.report.document import Report, file_name
from deepwide.report.html import to_html
from deepwide.report.markdown import to_markdown
from deepwide.report.sources import make_report

FORMATS = ("html", "md")


def write_report(
    source: Any,
    out: str | Path | None = None,
    *,
    format: str | None = None,  # noqa: A002
    fit: str = "joint",
    runs: str | Path | None = None,
) -> Path:
    """Write the report of an answer, or of what a path or a word names (see `make_report`), and return its path.

    `format` is `html` or `md`; without it, what the name of `out` ends in, else html. Without `out` the file stands in
    the current folder and is named after its source. Markdown in a study's own folder links to the files there.
    """
    chosen = check_format(out, format)
    report = make_report(source, fit=fit, runs=runs)
    name = Path(report.source).name if isinstance(source, str | Path) else report.kind
    path = Path(out or f"{file_name(name.removesuffix('.json'))}-report.{chosen}")
    return write_text(path, render(report, chosen, path.parent))


def render(report: Report, format: str = "html", beside: Path | None = None) -> str:  # noqa: A002
    """The report as the text of a file, in whichever folder or in the one given."""
    return to_html(report) if check_format(None, format) == "html" else to_markdown(report, beside)


def check_format(out: str | Path | None, format: str | None) -> str:  # noqa: A002
    """The format that is asked for, before any work; a name that says another one is refused."""
    if format is not None and format not in FORMATS:
        raise DeepwideError(f"no format {quoted(format)}: {did_you_mean(str(format), FORMATS)}")
    if out is None:
        return format or "html"
    ending = {".html": "html", ".htm": "html", ".md": "md"}.get(Path(out).suffix.lower())
    if ending is None or format not in (None, ending):
        raise DeepwideError(
            f"a report as {format or 'html or md'} cannot be named {out}: end it in .{format or 'html'}."
        )
    return ending
