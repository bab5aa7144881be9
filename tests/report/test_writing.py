"""The file: its name, its format, and that it is whole."""

from pathlib import Path

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.report import make_report, render, write_report
from deepwide.report.writing import check_format


def test_the_file_is_named_after_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_report("1.3B") == Path("1.3B-report.html")
    assert write_report(deepwide.plan("1.3B"), format="md") == Path("plan-report.md")
    assert deepwide.write_report("1.3B", "new/a.md").read_text() == render(make_report("1.3B"), "md")
    assert render(make_report("1.3B")) == Path("1.3B-report.html").read_text()


@pytest.mark.parametrize(
    ("out", "format_", "words"),
    [
        ("a.pdf", None, "cannot be named a.pdf"),
        ("a.csv", "md", r"end it in \.md"),
        ("a.html", "md", "as md cannot be named a.html"),
        (None, "pdf", "no format 'pdf'"),
    ],
)
def test_a_wrong_name_or_format_is_refused_before_any_work(out: str | None, format_: str | None, words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        write_report("not looked at", out, format=format_)
    assert check_format("A.HTM", None) == "html"
