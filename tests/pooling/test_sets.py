"""Sets of evidence are files, and what is no set is refused in a sentence."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.pooling import load_set, save_set, shipped_sets
from pooling.builders import made_set


def test_a_set_comes_back_from_its_file(tmp_path: Path) -> None:
    each = made_set(log_curvature=-4.5)
    assert load_set(save_set(each, tmp_path / "made.json")) == each


def test_shipped_sets_have_sources_and_are_told_apart() -> None:
    sets = {each.name: each for each in shipped_sets()}
    assert {"gemstones", "morph", "ours"} <= sets.keys()
    assert all(each.citation and each.command for each in sets.values())
    assert {name: each.scope for name, each in sets.items()}["ours"] == "small"
    assert sets["morph"].shapes == 35
    assert sets["gemstones"].shapes == 22


def test_intervals_are_of_the_numbers() -> None:
    each = made_set()
    assert each.ratio.value == pytest.approx(math.exp(-0.2))
    assert each.ratio.low == pytest.approx(math.exp(-0.2 - 0.196), rel=1e-3)
    assert each.factor_2.value == pytest.approx(100 * math.expm1(0.01 * math.log(2) ** 2))
    assert each.slope is None


@pytest.mark.parametrize(("size", "scope"), [(1e5, "small"), (3.4e6, "pooled"), (2.8e9, "pooled"), (3e9, "large")])
def test_a_set_outside_the_levine_law_is_not_pooled(size: float, scope: str) -> None:
    assert made_set(centre_params=size).scope == scope


@pytest.mark.parametrize(
    "wrong",
    [
        {"covariance": ((0.01, 0.0),)},
        {"covariance": ((0.01, 0.02), (0.02, 0.01))},
        {"covariance": ((0.01, 0.001), (0.0, 0.02))},
        {"token_slope": 0.1},
        {"place": math.nan},
        {"name": "../up"},
    ],
)
def test_numbers_that_do_not_agree_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made_set(**wrong)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "deepwide-evidence-1", "set": {"name": 3}}'])
def test_what_is_no_set_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "no.json"
    path.write_text(text)
    with pytest.raises(DeepwideError, match=r"no\.json is not a set of evidence"):
        load_set(path)
    with pytest.raises(DeepwideError, match="there is no set of evidence"):
        load_set(tmp_path / "absent.json")


def test_a_file_has_six_digits_and_no_runs(tmp_path: Path) -> None:
    path = save_set(made_set(place=-0.123456789), tmp_path / "made.json")
    assert json.loads(path.read_text())["set"]["place"] == -0.123457
