"""A study's report: verdicts, the study's own pictures, every table in full."""

import csv
import io
from pathlib import Path

import pytest

from deepwide.answers import Interval, Note
from deepwide.report import Figure, make_report, to_markdown
from deepwide.report import studies as reported
from deepwide.studies import Measured, StudyResult, read_result
from report.parts import EVIL, read
from studies.fakes import Toys

FOLDER = Path(__file__).parents[2] / "results/studies/rank-collapse-cpu"


def hostile() -> StudyResult:
    measured = Measured(
        numbers={"done": Interval(1.0, 0.9, 1.0), EVIL: Interval(2.0)},
        tables={EVIL: [{EVIL: EVIL}]},
        notes=(Note.of("x", EVIL),),
    )
    return StudyResult(
        study=EVIL, preset="cpu", question=EVIL, source=EVIL, measured=measured, settings={EVIL: EVIL}, seconds=1.0,
        verdicts=tuple(rule.judge(measured) for rule in Toys.rules), rule_hash="1", rule_hash_at_start="2",
        code={EVIL: EVIL}, notes=(Note.of("x", EVIL),),
    )  # fmt: skip


def test_a_study_s_report_has_its_verdicts_numbers_and_tables() -> None:
    result = read_result(FOLDER)
    report = make_report(FOLDER)
    page = read(report)
    for verdict in result.verdicts:
        assert f"{verdict.outcome}: {verdict.claim}" in page.text
        assert verdict.rule in page.text
    files = page.files()
    for name, rows in result.measured.tables.items():
        again = list(csv.DictReader(io.StringIO(files[f"{name}.csv"].decode())))
        assert again == [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert StudyResult.model_validate_json(files["study.json"]) == result
    figures = [block for block in report.blocks() if isinstance(block, Figure)]
    assert sorted(figure.svg for figure in figures) == sorted(path.read_text() for path in FOLDER.glob("*.svg"))
    assert all(figure.alt for figure in figures)


def test_nothing_in_a_study_s_file_is_markup(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(hostile().model_dump_json())
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    report = make_report(tmp_path)
    assert "<script>alert(1)</script>" in read(report).text  # as text; in an image nothing runs
    assert "<script" not in to_markdown(report)
    assert "changed after the study was started" in read(report).text


def test_a_picture_that_is_too_large_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "LARGEST_PICTURE", 1 << 20)
    (tmp_path / "study.json").write_text(hostile().model_dump_json())
    (tmp_path / "a.svg").write_text("x" * (1 << 20) + "x")
    assert "a.svg is larger than 1 MiB and is left out" in read(make_report(tmp_path)).text
