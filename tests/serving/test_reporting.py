"""What the fitting process answers."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.serving import reporting
from deepwide.serving.reporting import run


def told_by(**request: Any) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []
    run(request, lambda kind, **data: lines.append({"kind": kind, **data}))
    assert len(lines) == 1
    return lines[0]


def test_the_fit_is_the_library_s(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.fitting import fit

    quick = fit(home / "runs" / "small", "ridge", base="power", bootstrap=0)
    monkeypatch.setattr(reporting, "fit", lambda runs, kind: quick if (runs.name, kind) == ("small", "ridge") else None)
    monkeypatch.setattr(reporting, "fit_figures", lambda _: [])
    told = told_by(runs=str(home / "runs" / "small"), kind="ridge", what="fit")
    assert told["fit"]["headline"] == quick.headline()
    assert "resamples" not in told["fit"]


def test_too_few_runs_are_a_sentence(home: Path) -> None:
    assert told_by(runs=str(home / "runs" / "few"), kind="transition", what="fit")["kind"] == "refused"


def test_a_report_is_html_of_the_folder(home: Path) -> None:
    told = told_by(runs=str(home / "runs" / "few"), kind="transition", what="report")
    assert told["html"].startswith("<!DOCTYPE html>")
    assert "Sweep few" in told["html"]
