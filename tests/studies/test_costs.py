"""What a study costs is recorded for every study of ours, and near to what it would train now."""

import subprocess
import sys

import pytest

from deepwide.studies import dry_run, estimated_seconds, recorded_costs, studies
from deepwide.studies.costs import Cost
from studies.fakes import Sums, Toys


def test_every_study_of_ours_says_what_the_presets_that_run_here_cost() -> None:
    assert recorded_costs().keys() <= studies().keys()
    for name, study in studies().items():
        remedy = f"run `python -m benchmarks.studies.costs {name}`, or state expected_seconds"
        assert list(estimated_seconds(study)) == ["quick", "cpu"], remedy
        assert 0 < estimated_seconds(study)["quick"] < 3 * 60, f"{name}: quick should end in a minute or two"
        assert 0 < estimated_seconds(study)["cpu"] <= 2 * 3600, f"{name}: cpu should end within two hours"


@pytest.mark.parametrize("name", sorted(recorded_costs()))
def test_recorded_costs_are_those_of_the_presets_that_stand_here(name: str) -> None:
    """To a factor of 3: presets may change a little before somebody measures again."""
    study = studies()[name]
    for preset, cost in recorded_costs()[name].items():
        forecast = dry_run(study, preset)
        if not forecast.missing:
            assert cost.train_flops <= 3 * forecast.train_flops <= 9 * cost.train_flops, (
                f"{preset}: run `python -m benchmarks.studies.costs {name}`"
            )


def test_two_cores_train_and_one_measures() -> None:
    cost = Cost(runs=4, train_flops=1, training_seconds=60.0, measuring_seconds=5.0, basis="")
    assert cost.seconds == 35


def test_a_study_from_outside_states_its_own_or_none() -> None:
    assert estimated_seconds(Toys()) == {"quick": 3, "cpu": 130}
    assert estimated_seconds(Sums()) == {}


def test_costs_are_told_without_torch() -> None:
    code = (
        "import sys; from deepwide.studies import estimated_seconds, studies; "
        "assert all(estimated_seconds(study) for study in studies().values()); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
