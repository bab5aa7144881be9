"""Ray Core: a node that dies takes no cell with it. Skipped where Ray is not installed."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping import Resources, executor_named

HERE = Path(__file__).parent
# A Python that has Ray beside what this one has, for machines where Ray is kept in a venv of its own.
PYTHON = os.environ.get("DEEPWIDE_RAY_PYTHON") or (sys.executable if importlib.util.find_spec("ray") else "")


def test_without_ray_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DeepwideError, match=r"pip install 'deepwide\[ray\]'"):
        executor_named("ray", Resources(), None, tmp_path)


needs_ray = pytest.mark.skipif(
    not PYTHON, reason="Ray is not installed (pip install 'deepwide[ray]', or set DEEPWIDE_RAY_PYTHON)"
)


def run(script: str, runs: Path) -> dict[str, Any]:
    """The report of a script that makes its own cluster, in a process of its own."""
    paths = [str(HERE.parents[1] / "src"), str(HERE.parents[0]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [PYTHON, str(HERE / script), str(runs)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return report


@pytest.mark.slow
@needs_ray
def test_of_three_nodes_one_is_killed_and_every_cell_ends_exactly_once_from_its_checkpoint(memory: Path) -> None:
    report = run("ray_node_killed.py", memory / "runs")
    assert report["slots"] == 3
    assert report["killed"] == 1, "the node that died was working"
    assert report["states"] == ["done"] * 9
    assert sorted(report["numbers"]) == [1] * 8 + [2], "one cell was taken over, once"
    assert report["steps"] == [list(range(1, 61))] * 9, "no step twice, none missing"


@pytest.mark.slow
@needs_ray
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2")
def test_when_the_link_to_a_node_is_cut_its_cell_moves_and_its_late_write_is_refused(memory: Path) -> None:
    report = run("ray_link_cut.py", memory / "runs")
    assert report["lost"] == report["refused"] == 1
    assert report["states"] == ["done"] * 2
    assert sorted(report["numbers"]) == [1, 2]
    assert report["steps"] == [list(range(1, 101))] * 2
