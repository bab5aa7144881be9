"""What the page computes with is the library's."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.web.settings import FITTED

from deepwide import planning
from deepwide.errors import DeepwideError
from deepwide.laws import COMPUTE_LAWS, JointLaw, SurfaceLaw, depth_law, published_laws, save_law
from deepwide.shape import FAMILIES
from deepwide.web import page_constants, plan_defaults
from deepwide.web.constants import constants_of


@pytest.fixture(scope="module")
def constants() -> dict[str, object]:
    return page_constants()


def test_they_are_json(constants: dict[str, object]) -> None:
    assert json.loads(json.dumps(constants, allow_nan=False))["z95"] == constants["z95"]


def test_defaults_make_the_plan_that_a_bare_command_makes() -> None:
    options = plan_defaults()
    budget = options.pop("budget")
    assert planning.plan(budget, **options) == planning.plan(budget)


def test_every_published_law_is_there_and_a_fitted_one_gets_a_key_of_its_own(tmp_path: Path) -> None:
    same_name = FITTED["own transition"].model_copy(update={"name": "levine"})
    path = save_law(same_name, tmp_path / "mine.json")
    rows = page_constants([path, FITTED["own ridge"], "nanochat"])["laws"]
    assert [row["key"] for row in rows] == [*published_laws(), "levine (mine.json)", "own ridge"]
    assert rows[-2]["file"] == "mine.json"  # not where it lies on somebody's disk
    assert rows[-1]["file"] is None


def test_the_folders_of_this_machine_stay_out_of_the_page(tmp_path: Path) -> None:
    law = FITTED["own ridge"].model_copy(update={"citation": "deepwide fit /home/me/secret/runs.csv more/b.csv"})
    rows = page_constants([save_law(law, tmp_path / "mine.json")])["laws"]
    assert rows[-1]["citation"] == "deepwide fit runs.csv b.csv"
    assert rows[-1]["file"] == "mine.json"


def test_a_law_that_predicts_no_depth_is_refused() -> None:
    with pytest.raises(DeepwideError, match="predicts no depth"):
        page_constants(["kaplan"])


def test_a_surface_has_the_table_that_the_law_interpolates() -> None:
    for law in (depth_law("gemstones"), FITTED["own surface"]):
        assert isinstance(law, SurfaceLaw)
        row = next(row for row in page_constants([law])["laws"] if row["name"] == law.name)
        N = np.logspace(6, 14, 50)
        L = np.exp(np.interp(np.log(N), row["table"]["log_params"], row["table"]["log_depth"]))
        assert L.tolist() == law.depth(N).value.tolist()


def test_a_joint_law_s_limits_are_a_table_and_its_draws_stay_out() -> None:
    draws = np.random.default_rng(1).normal([1.2, 0.3, 0.0, 0.2, 0.02, 0.0, 0.1], 0.01, (200, 7))
    law = JointLaw(
        name="own joint", centre_params=1e7, soft=0.25, relax=1.5, sizes=(1e6, 1e8),
        draws=tuple(map(tuple, draws.tolist())), bowl=FITTED["own ridge"].bowl,
    )  # fmt: skip
    row = page_constants([law])["laws"][-1]
    assert "draws" not in row
    assert row["kind"] == "surface"
    at = math.log(3e9)
    value, low, high = (float(limit[0]) for limit in law.depth(3e9))
    middle = np.interp(at, row["table"]["log_params"], row["table"]["log_depth"])
    limits = [middle + np.interp(at, row["limits"][0], row["limits"][i]) for i in (1, 2)]
    assert [math.exp(middle), *np.exp(limits)] == pytest.approx([value, low, high], rel=1e-3)


def test_a_compute_law_s_scale_gives_its_optimum(constants: dict[str, dict[str, dict[str, float]]]) -> None:
    for name, law in COMPUTE_LAWS.items():
        row = constants["compute_laws"][name]
        N = row["scale"] * (1e21 / 6) ** (row["beta"] / (row["alpha"] + row["beta"]))
        assert law.optimum(1e21) == (N, 1e21 / (6 * N))


def test_every_family_says_which_rules_read_and_write_it(constants: dict[str, dict[str, dict[str, object]]]) -> None:
    assert constants["families"].keys() == FAMILIES.keys()
    programs = Path(planning.__file__).parents[1].joinpath("web", "config.js").read_text()
    for name, family in constants["families"].items():
        assert not family["reads"] or f"  {family['reads']}" in programs, name
        if not family["has_experts"]:  # no plan has experts, so no such config is written
            assert not family["writes"] or f"  {family['writes']}" in programs, name


def test_a_constant_that_a_room_has_lost_is_named() -> None:
    assert constants_of("deepwide.laws", {"slack": "SLACK"}) == {"slack": math.log(2)}
    with pytest.raises(LookupError, match=r"deepwide\.laws has no constant NO_SUCH_THING"):
        constants_of("deepwide.laws", {"slack": "SLACK", "other": "NO_SUCH_THING"})


def test_the_page_offers_no_setting_that_it_would_ignore() -> None:
    assert not {"machine", "latency", "throughput", "experts", "granularity"} & plan_defaults().keys()
    assert {"tensor_parallel", "data_parallel", "zero"} <= plan_defaults().keys()
