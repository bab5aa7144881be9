"""What `deepwide rank` shows: numbers with what they mean, forecasts on standard error."""

import pytest

from cli.calling import call
from deepwide.answers import Note
from deepwide.cli import rank_tables
from deepwide.cli.rank_tables import Terminal


def test_one_case_with_its_blocks() -> None:
    out = call("rank", "--depth", "2", "--width", "3", "--blocks").stdout
    assert "separation rank 49 " in out
    assert "upper bound     49 — reached, so 49 is the exact separation rank" in out
    assert "Theorem 2:      between 1 (trivial) and 2.02e8" in out
    assert "confirmed modulo 1048571 by FLINT" in out
    assert [line.split() for line in out.splitlines() if line[:1].isdigit()] == [
        ["0", "1", "1"], ["1", "6", "6"], ["2", "21", "21"], ["3", "18", "18"], ["4", "3", "3"],
    ]  # fmt: skip


def test_relations_are_shown_beside_the_bound() -> None:
    out = call("rank", "--depth", "3", "--width", "3", "--positions", "3,1", "--no-confirm").stdout
    assert "967 − 8 relations = 959 — not reached" in out


def test_the_bound_by_ideals_is_shown_where_the_proved_one_is_not_reached() -> None:
    out = call("rank", "--depth", "2", "--width", "3", "--positions", "1,2").stdout
    assert "upper bound     41 — not reached: the rank is at least 39" in out
    assert "by ideals       39 — reached" in out


def test_no_theorem_applies_on_the_threshold_and_with_as_many_heads_as_width() -> None:
    assert "none applies" in call("rank", "--depth", "1", "--width", "3").stdout
    assert "undefined here" in call("rank", "--depth", "2", "--width", "2", "--heads", "2").stdout


def test_a_long_stage_is_forecast_in_a_pipe_and_a_short_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal().stage("depth 3, width 4", 181.0) as progress:
        assert progress is None
    assert capsys.readouterr().err == "depth 3, width 4: about 3.0 min (estimated).\n"
    with Terminal().stage("depth 2, width 3", 2.0):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_range_is_forecast_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("rank", "--depth", "1..2", "--width", "2..3")
    assert "in total" not in call(*words).stderr
    from deepwide.cli import rank

    monkeypatch.setattr(rank, "WORTH_SAYING", 0.0)
    assert "4 cases: about < 1 s in total (estimated)." in call(*words).stderr


def test_the_note_on_confirming_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().note(Note.of("not-confirmed", "Not confirmed: that would take about 24.0 min", seconds=1440.0))
    assert capsys.readouterr().err.endswith("24.0 min; ask with --confirm.\n")
    assert rank_tables.WORTH_SAYING <= 10
