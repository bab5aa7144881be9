"""The report of a fit holds its sentences, its coefficients, its pictures, and the fit itself."""

import csv
import io
from pathlib import Path

import pytest

from deepwide.fitting import fit, load_fit
from deepwide.report import Figure, Table, fits, make_report
from report.parts import read

TABLE = Path(__file__).parents[2] / "results/fit/depth-width-long.csv"


def test_a_fit_s_report_has_its_numbers_and_the_whole_fit(tmp_path: Path) -> None:
    answer = fit(TABLE, "ridge", base="power", bootstrap=40)
    report = make_report(answer)
    page = read(report)
    assert all(sentence in page.text for sentence in answer.headline())
    assert all(str(note) in page.text for note in (*answer.warnings, *answer.notes))
    files = page.files()
    rows = list(csv.DictReader(io.StringIO(files["coefficients.csv"].decode())))
    assert {row["name"]: float(row["estimate"]) for row in rows} == dict(zip(answer.names, answer.values, strict=True))
    saved = tmp_path / "fit.json"
    saved.write_bytes(files["fit.json"])
    assert load_fit(saved) == answer
    assert [block.name for block in report.blocks() if isinstance(block, Figure)] == ["runs", "law", "residuals"]
    again = make_report(saved)
    assert again.sections == report.sections


@pytest.mark.usefixtures("drawn")
def test_a_table_s_report_is_of_the_fit_that_the_library_makes_unasked() -> None:
    report = make_report(TABLE)
    assert report.title.startswith("Joint fit of ")
    (groups,) = [block for block in report.blocks() if isinstance(block, Table) and block.name == "groups"]
    assert all(0 < row["leverage"] <= 1 for row in groups.rows)


@pytest.mark.usefixtures("drawn")
def test_a_transition_without_a_law_has_its_curves() -> None:
    answer = fit(TABLE, "transition", bootstrap=0)
    report = make_report(answer)
    assert answer.law() is None
    assert [block.name for block in report.blocks() if isinstance(block, Figure)] == ["curves", "residuals"]
    alts = [block.alt for block in report.blocks() if isinstance(block, Figure)]
    assert alts[0].startswith("Loss against size, one curve per depth. points: runs; bands: 95%")
    assert answer.verdict().outcome in report.lead.lower()


def test_more_runs_than_can_be_drawn_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "MOST_DRAWN", 34)
    report = make_report(fit(TABLE, "transition", bootstrap=0))
    assert "Without figures: 35 runs are more than the 34 that are drawn" in read(report).text
    assert not [block for block in report.blocks() if isinstance(block, Figure)]
