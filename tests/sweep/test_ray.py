"""Ray Core: a node that dies takes no cell with it. Skipped where Ray is not installed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweep import Resources, executor_named

HERE = Path(__file__).parent
# A Python that has Ray beside what this one has, for machines where Ray is kept in a venv of its own.
PYTHON = os.environ.get("DEEPWIDE_RAY_PYTHON") or (sys.executable if importlib.util.find_spec("ray") else "")


def test_without_ray_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DeepwideError, match=r"pip install 'deepwide\[ray\]'"):
        executor_named("ray", Resources(), None, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="Ray is not installed (pip install 'deepwide[ray]', or set DEEPWIDE_RAY_PYTHON)")
def test_of_three_nodes_one_is_killed_and_every_cell_ends_exactly_once_from_its_checkpoint(memory: Path) -> None:
    paths = [str(HERE.parents[1] / "src"), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "RAY_DISABLE_IMPORT_WARNING": "1"}
    done = subprocess.run(
        [PYTHON, str(HERE / "ray_node_killed.py"), str(memory / "runs")],
        capture_output=True, text=True, timeout=175, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["slots"] == 3
    assert report["killed"] == 1, "the node that died was working"
    assert report["states"] == ["done"] * 9
    assert sorted(report["numbers"]) == [1] * 8 + [2], "one cell was taken over, once"
    assert report["steps"] == [list(range(1, 61))] * 9, "no step twice, none missing"
