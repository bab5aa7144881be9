"""A design as text, table, JSON and TOML."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.designing.answer import spec_text
from deepwide.errors import DeepwideError
from deepwide.sweeping import make_spec, read_spec
from designing.bases import REAL, runs


@pytest.fixture(scope="module")
def design() -> deepwide.Design:
    return deepwide.sweep_design(REAL, runs(), target="1M", budget="3e12")


def test_the_next_batch_is_written_as_toml_and_read_back(design: deepwide.Design, tmp_path: Path) -> None:
    path = design.save_spec(tmp_path / "next.toml")
    assert read_spec(path).model_dump() == make_spec(design.spec).model_dump()
    assert path.read_text().startswith(f"# Chosen for the best depth at 1M: {len(design.next)} runs.\n")


def test_every_kind_of_setting_survives_toml(design: deepwide.Design) -> None:
    run: dict[str, Any] = {"text": 'a "b" \\ é', "yes": True, "rate": 1e-5, "list": [1, 2.5, "x"], "in": {"a.b": 1}}
    changed = design.model_copy(update={"spec": design.spec | {"run": run, "grid": {"model.preset": ["llama"]}}})
    table = tomllib.loads(spec_text(changed))
    assert table["run"] == run
    assert table["grid"] == {"model.preset": ["llama"]}


def test_it_survives_json_and_has_a_row_per_run(design: deepwide.Design) -> None:
    assert deepwide.Design.model_validate_json(design.model_dump_json()) == design
    assert len(design.rows()) == len(design.runs) == design.to_polars().height


def test_the_headline_says_what_to_expect_for_how_much(design: deepwide.Design) -> None:
    words = design.headline()
    assert words.startswith("Best depth at 1M: ")
    assert f"expected after {len(design.runs)} runs" in words
    assert f"high/low {design.after.ratio:.3g}." in words
    assert "worker" in design.time()


def test_there_must_be_something_to_write_and_a_name_for_it(design: deepwide.Design, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="must end in"):
        design.save_spec(tmp_path / "next.json")
    done = deepwide.sweep_design(REAL, runs(), target="1M", budget="3e12", until=100.0)
    with pytest.raises(DeepwideError, match="there is no run to write: the interval's high/low is"):
        done.save_spec(tmp_path / "next.toml")
