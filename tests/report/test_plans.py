"""The numbers in the reports of plans and audits are the answers' own."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest

import deepwide
from deepwide.planning import Audit, audit, plan
from deepwide.report import Figure, Notes, Report, make_report
from report.parts import EVIL, attachments, read


def test_a_plan_s_report_has_its_numbers_figure_and_data() -> None:
    answer = plan("1.3B", kv_heads=8)
    report = make_report(answer)
    page = read(report)
    for number in (answer.params.total, answer.shape.width, answer.params.block):
        assert f"{number:,}" in page.text
    assert f"{answer.law_depth.value:.1f} (95%: {answer.law_depth.low:.1f} to" in page.text
    assert answer.reason in page.text
    files = page.files()
    rows = list(csv.DictReader(io.StringIO(files["depths.csv"].decode())))
    assert [float(row["loss_percent"]) for row in rows] == [row["loss_percent"] for row in answer.rows()]
    assert json.loads(files["plan.json"]) == json.loads(answer.model_dump_json())
    assert [block.name for block in report.blocks() if isinstance(block, Figure)] == ["map"]
    assert "deepwide " + deepwide.__version__ in page.text


@pytest.mark.usefixtures("drawn")
def test_a_plan_with_a_law_of_its_own_says_why_there_is_no_map() -> None:
    report = make_report(plan("1.3B").model_copy(update={"law": "mine"}))
    assert [text for text in _notes(report) if text.startswith("Without its figure") and "mine" in text]


def test_a_fixed_side_and_an_extrapolated_law_are_told() -> None:
    page = read(make_report(plan("100T", depth=200))).text
    assert "fixed" in page
    assert [note.text in page for note in plan("100T", depth=200).notes] != []


def test_audits_are_rows_and_one_that_was_not_read_is_one_too() -> None:
    from deepwide.report.plans import audit_report

    answers = [audit("gpt3-175b"), audit("mixtral-8x7b")]
    report = audit_report(answers, [("lost.json", "There is no file")])
    page = read(report)
    rows = list(csv.DictReader(io.StringIO(page.files()["audits.csv"].decode())))
    assert [row["outcome"] for row in rows] == [*(a.verdict.outcome for a in answers), "not read"]
    assert [float(row["depth_over_law"]) for row in rows[:2]] == [a.depth_over_law.value for a in answers]
    for answer in answers:
        assert answer.sentence in page.text
        assert all(note.text in page.text for note in answer.notes)
    assert "There is no file" in page.text
    assert len(json.loads(attachments(report)["audit.json"])) == 2
    assert read(audit_report([], [("a", "b")])).text.count("No model could be read.") == 1


@pytest.mark.usefixtures("drawn")
def test_a_model_s_name_is_text_in_the_figure_too() -> None:
    answer: Audit = audit(depth=4, width=64, name=EVIL)
    report = make_report(answer)
    assert "<script>alert(1)</script>" in read(report).text
    (figure,) = [block for block in report.blocks() if isinstance(block, Figure)]
    root = ElementTree.fromstring(figure.svg)
    assert not [tag for tag in root.iter() if tag.tag.endswith("script")]
    assert "<script>alert(1)</script>" in "".join(root.itertext())
    assert make_report(answer) == report  # the same bytes, though the ids of pictures count on


def _notes(report: Report) -> list[str]:
    return [text for block in report.blocks() if isinstance(block, Notes) for text in block.texts]
