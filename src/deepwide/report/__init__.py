"""Reports: one file that shows a plan, an audit, a fit, a sweep or a study, with its figures and its data in it.

Names are loaded when first used: a report of a plan needs no fit.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.report.document import Attachment as Attachment
    from deepwide.report.document import Command as Command
    from deepwide.report.document import Facts as Facts
    from deepwide.report.document import Figure as Figure
    from deepwide.report.document import Notes as Notes
    from deepwide.report.document import Report as Report
    from deepwide.report.document import Section as Section
    from deepwide.report.document import Table as Table
    from deepwide.report.document import Text as Text
    from deepwide.report.fits import fit_figures as fit_figures
    from deepwide.report.html import to_html as to_html
    from deepwide.report.markdown import to_markdown as to_markdown
    from deepwide.report.sources import make_report as make_report
    from deepwide.report.writing import render as render
    from deepwide.report.writing import write_report as write_report

_HOME = {
    "Attachment": "document",
    "Command": "document",
    "Facts": "document",
    "Figure": "document",
    "Notes": "document",
    "Report": "document",
    "Section": "document",
    "Table": "document",
    "Text": "document",
    "fit_figures": "fits",
    "make_report": "sources",
    "render": "writing",
    "to_html": "html",
    "to_markdown": "markdown",
    "write_report": "writing",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
