"""The fit or the report of a folder of runs, in a process of its own: `python -m deepwide.serving.reporting`.

Resamples and pictures take many seconds, in which a server must answer others, and be able to stop.
"""

from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.fitting import fit
from deepwide.report import Figure, fit_figures, make_report, to_html
from deepwide.serving.children import Tell, be_a_child


def run(request: dict[str, Any], tell: Tell) -> None:
    """The fit with its figures, or the report as HTML; a refusal as its sentence."""
    runs, kind = Path(request["runs"]), request["kind"]
    try:
        if request["what"] == "report":
            tell("report", html=to_html(make_report(runs, fit=kind)))
            return
        answer = fit(runs, kind)
        figures = {picture.name: picture.svg for picture in fit_figures(answer) if isinstance(picture, Figure)}
        plain = answer.model_dump(mode="json", exclude={"resamples", "residuals"})
        tell("fit", fit=plain, figures=figures)
    except DeepwideError as error:
        tell("refused", text=str(error))


if __name__ == "__main__":
    be_a_child(run)
