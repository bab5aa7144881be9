"""What studies that train share: the table of a run, and runs that have all finished well."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies import run_study
from deepwide.studies.trained import finished_runs, run_table
from studies.fakes import Toys


def test_evaluations_are_spread_over_the_training() -> None:
    settings = SimpleNamespace(steps=100, batch=8, lr=1e-3)
    table = run_table(settings, {"name": "hops"}, examples=64, evaluations=10)
    assert table == {
        "task": {"name": "hops"}, "steps": 100, "batch": 8, "optimiser": {"lr": 1e-3, "weight_decay": 0.01},
        "evaluation": {"sequences": 64, "every": 10},
    }  # fmt: skip
    settings.steps = 3
    assert run_table(settings, {}, examples=64, evaluations=10)["evaluation"]["every"] == 1


def test_runs_that_have_not_finished_well_cost_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match=r"needs every run, and there are none\.$"):
        finished_runs([tmp_path])
    run_study(Toys(), changes=("steps=5",), out=tmp_path)
    folder = tmp_path / "runs" / "toys"
    runs = finished_runs([folder])
    assert len(runs) == 2
    (runs[1].path / "result.json").unlink()
    with pytest.raises(DeepwideError, match=f"these have not finished well: {runs[1].id}\\.$"):
        finished_runs([folder])
