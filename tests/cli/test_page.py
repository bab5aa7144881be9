"""`deepwide page`."""

from pathlib import Path

from benchmarks.web.settings import FITTED

from cli.calling import ask, call
from deepwide.laws import save_law


def test_it_writes_the_page_and_says_where(tmp_path: Path) -> None:
    done = call("page", "--out", str(tmp_path / "plan.html"))
    assert done.returncode == 0
    assert "plan.html" in done.stdout
    assert (tmp_path / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_fitted_law_is_in_it(tmp_path: Path) -> None:
    law = save_law(FITTED["own ridge"], tmp_path / "law.json")
    answer = ask("page", "--out", str(tmp_path / "plan.html"), "--law", str(law))
    text = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert answer == {"page": str(tmp_path / "plan.html"), "bytes": len(text.encode())}
    assert '"key":"own ridge"' in text
    assert str(tmp_path) not in text


def test_what_is_no_page_or_no_law_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    assert "must name an .html file" in call("page", "--out", str(tmp_path / "plan.txt")).stderr
    done = call("page", "--out", str(tmp_path / "plan.html"), "--law", str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert "there is no law at" in done.stderr
    assert list(tmp_path.iterdir()) == []
