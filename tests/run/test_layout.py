"""The names in a run folder and the statuses of a result."""

import json
from pathlib import Path

import pytest

from deepwide.run import FINISHED, UnreadableRun, has_result
from deepwide.run.layout import read_result


@pytest.mark.parametrize("status", ["done", "diverged", "oom", "failed"])
def test_a_run_with_a_result_has_finished(tmp_path: Path, status: str) -> None:
    assert not has_result(tmp_path)
    assert read_result(tmp_path) is None
    (tmp_path / "result.json").write_text(json.dumps({"status": status}))
    assert has_result(tmp_path)
    assert read_result(tmp_path) == {"status": status}
    assert status in FINISHED


@pytest.mark.parametrize("status", ["over", "", None, 3, ["done"]])
def test_a_status_that_nobody_knows_is_unreadable(tmp_path: Path, status: object) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"status": status}))
    with pytest.raises(UnreadableRun, match=r"result\.json is unreadable"):
        read_result(tmp_path)
