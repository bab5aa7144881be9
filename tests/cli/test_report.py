"""`deepwide report`."""

from pathlib import Path

from cli.calling import ask, call


def test_the_command_writes_a_file_and_says_where(tmp_path: Path) -> None:
    out = tmp_path / "plan.html"
    done = call("report", "1.3B", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Report: {out} (")
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert ask("report", "1.3B", "--out", str(out)) == {"file": str(out), "bytes": out.stat().st_size}


def test_it_prints_to_standard_output() -> None:
    done = call("report", "1.3B", "--format", "md", "--out", "-")
    assert done.stdout.startswith("# Plan for 1.3B block parameters\n")
    assert call("report", "1.3B", "--out", "-", "--json").returncode == 2


def test_what_cannot_be_reported_is_a_sentence() -> None:
    done = call("report", "no/such/folder")
    assert (done.returncode, done.stderr) == (2, "deepwide: There is no file or folder no/such/folder.\n")
