"""What all fits share."""

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    TransitionFit,
    fit_ridge,
    fit_surface,
    fit_transition,
    load_fit,
)
from fitting.builders import LAW, chinchilla_like, gemstones_like, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def test_a_fit_goes_through_json_unchanged(fitted: TransitionFit, tmp_path: Path) -> None:
    again = load_fit(fitted.save(tmp_path / "fit.json"))
    assert again == fitted
    assert again.summary() == fitted.summary()
    assert again.law() == fitted.law()


@pytest.mark.parametrize("place", [(0, 1e5), (2, -1.0), (2, math.nan), (2, [1e4, 1e5])])
def test_only_a_size_can_be_predicted(fitted: TransitionFit, place: tuple[int, float]) -> None:
    with pytest.raises(DeepwideError):
        fitted.predict(*place)


def test_a_fit_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    for runs, terms in ((chinchilla_like(0.01), "tokens"), (gemstones_like(0.01), "shape")):
        fit = fit_surface(runs, terms=terms, bootstrap=25)  # type: ignore[arg-type]
        back = load_fit(fit.save(tmp_path / f"{terms}.json"))
        assert back == fit
        assert back.summary() == fit.summary()


def test_a_dump_says_what_the_command_line_prints_and_reads_back(fitted: TransitionFit) -> None:
    dump = fitted.model_dump(mode="json")
    interval = fitted.interval("b", "bootstrap")
    assert dump["intervals"]["bootstrap"]["b"] == [interval.low, interval.high]
    assert dump["verdict"]["outcome"] == fitted.verdict().outcome
    assert dump["law"]["a"] == fitted["a"]
    assert dump["headline"] == fitted.headline()
    assert dump["resample_count"] == len(fitted.resamples) > 100
    assert TransitionFit.model_validate(json.loads(json.dumps(dump))) == fitted
    assert "resamples" not in fitted.model_dump(mode="json", exclude={"resamples"})


def test_tables_of_a_fit(fitted: TransitionFit) -> None:
    coefficients = fitted.rows("coefficients")
    assert [row["name"] for row in coefficients] == ["a", "b"]
    assert coefficients[1]["low"] < coefficients[1]["estimate"] < coefficients[1]["high"]
    crossings = fitted.to_polars("crossings")
    assert crossings["deep"].to_list() == [2, 4, 8]
    groups = fitted.rows("groups")
    assert len(groups) == 32
    assert {row["runs"] for row in groups} == {2}
    assert sum(row["leverage"] for row in groups) > 12
    assert fitted.to_polars("runs").height == fitted.runs
    with pytest.raises(DeepwideError, match="has no table 'crossings'"):
        fit_ridge(sweep(), bootstrap=0).rows("crossings")
    with pytest.raises(DeepwideError, match="has no table 'cells'"):
        fitted.rows("cells")  # type: ignore[arg-type]


def test_hints_stand_behind_the_notes_they_belong_to() -> None:
    fit = fit_ridge(sweep(), bootstrap=0)
    assert "allow a drift" in fit.summary()
    assert fit.summary().count("[--drift]") == 0
    assert fit.summary({"drift-left-out": "--drift"}).count("[--drift]") == 1


def test_a_fit_is_frozen_and_refuses_what_it_does_not_know(fitted: TransitionFit) -> None:
    with pytest.raises(ValidationError):
        fitted.noise = 0.0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        TransitionFit.model_validate(fitted.model_dump() | {"colour": "red"})
    with pytest.raises(ValidationError, match="have another number"):
        TransitionFit.model_validate(fitted.model_dump() | {"values": (1.0,)})


def test_saving_a_law_that_is_not_there_gets_a_sentence(tmp_path: Path) -> None:
    fit = fit_ridge(sweep(curvature=0.0, noise=0.01), base=LAW, bootstrap=0)
    with pytest.raises(DeepwideError, match="give no law to save"):
        fit.save_law(tmp_path / "law.json")
    assert not (tmp_path / "law.json").exists()
