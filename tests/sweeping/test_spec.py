"""A sweep's file: what is in it is checked, what is not known is refused with the nearest name."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.sweeping import cells_of, make_spec, read_spec
from deepwide.sweeping.spec import as_spec
from sweeping.toys import TABLE, toys, write_toml


def refused(**changes: Any) -> str:
    with pytest.raises(DeepwideError) as caught:
        cells_of(make_spec(TABLE | changes))
    return one_sentence(caught.value)


def one_sentence(error: DeepwideError) -> str:
    """The message, which a user must be able to read at a glance."""
    sentence = str(error)
    assert len(sentence.splitlines()) == 1, sentence
    assert len(sentence) < 700, sentence
    assert sentence.endswith((".", "?")), sentence
    return sentence


def test_an_unknown_key_is_refused_with_the_nearest_name() -> None:
    assert "there is no setting 'sedes': did you mean 'seeds'?" in refused(sedes=[1])
    assert "there is no setting 'iso.parms': did you mean 'params'?" in refused(iso={"parms": ["1M"], "depths": [1]})
    assert "there is no setting 'run.stesp': did you mean 'steps'?" in refused(run={"trainer": "toy", "stesp": 3})


def test_a_misspelt_axis_is_named_even_if_it_leaves_a_gap() -> None:
    run = {"steps": 1}
    assert "there is no setting 'dpth': did you mean 'depth'" in refused(run=run, grid={"dpth": [1], "width": [16]})
    assert "there is no setting 'lrr': did you mean 'lr'?" in refused(
        run=run | {"depth": 1, "width": 16}, grid={"lrr": [1e-3]}
    )
    assert "the sweep gives no depth: write grid.depth" in refused(run=run, grid={"width": [16]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../../etc"}, "name"),
        ({"seeds": []}, "seeds is empty: give at least one, such as seeds = [0]."),
        ({"seeds": [-1]}, "seeds.0"),
        ({"seeds": [0.5]}, "seeds.0"),
        ({"grid": {"lr": []}}, "grid.lr has no values"),
        ({"grid": {"lr": 3}}, "grid.lr"),
        ({"grid": {"lr": [float("nan")]}}, "finite"),
        ({"grid": {"seed": [1, 2]}}, "write seeds"),
        ({"grid": {"width": list(range(1, 1000)), "lr": [0.1] * 200}}, "cells"),
        ({"run": {"trainer": "toy", "width": 5}}, "both run.width and grid.width"),
        ({"run": {"trainer": "toy", "seed": 5}}, "set by seeds"),
        ({"run": {"trainer": "os.system"}}, "no trainer"),
        ({"run": {"trainer": "toy", "steps": -1}}, "steps"),
        ({"iso": {"params": ["1M"], "depths": [2]}}, "both grid.width and iso"),
        ({"grid": {}, "iso": {"params": [], "depths": [2]}}, "iso.params"),
        ({"grid": {}, "iso": {"params": ["many"], "depths": [2]}}, "'many'"),
        ({"grid": {}, "iso": {"params": ["1k"], "depths": [2], "tokens": "1", "flops": "1"}}, "choose one"),
        ({"grid": {}, "iso": {"params": ["10"], "depths": [30]}}, "no width in multiples of 8"),
    ],
)
def test_a_mistake_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    assert words in refused(**changes)


@pytest.mark.parametrize(
    "content",
    [b"", b"name", b"name = 3", b"\xff\xfe", b"x = [" * 5000, b"name = 'a'\nname = 'b'", b"n = " + b"9" * 5000,
     b"\x80\x04K\x01.",
     b"name='a'\n[run]\nd = 1979-05-27"],
)  # fmt: skip
def test_a_file_that_is_no_sweep_is_one_sentence_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(DeepwideError, match=r"bad\.toml"):
        read_spec(path)


def test_overrides_reach_the_run_the_grid_and_the_spec(tmp_path: Path) -> None:
    path = write_toml(tmp_path / "toys.toml")
    spec = read_spec(path, ["steps=7", "grid.lr=[0.2]", "seeds=[5]", "name=other"])
    assert (spec.run["steps"], spec.grid["lr"], spec.seeds, spec.name) == (7, [0.2], [5], "other")
    assert [cell.config["lr"] for cell in cells_of(spec)] == [0.2, 0.2]
    assert spec.source == str(path)
    for bad in ("steps", "=3", "lr=3", "run.steps.deep=1", "steps=3=4", "grid=3"):
        with pytest.raises(DeepwideError):
            cells_of(read_spec(path, [bad]))


def test_a_part_given_as_one_value_is_told_what_it_is() -> None:
    sentence = refused(run={"optimiser": "adam", "steps": 3, "model": {"depth": 1, "width": 8}}, grid={})
    assert "'optimiser' is a table of settings, not 'adam': give its settings by name, such as optimiser.lr" in sentence


@pytest.mark.parametrize("part", ["grid = 1", "run = 1", "iso = 1", "cells = 1"])
def test_an_override_of_a_spec_whose_parts_are_no_tables_gets_a_sentence(tmp_path: Path, part: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(f'name = "x"\n{part}\n')
    for words in ([], ["batch=3"], ["grid.lr=[0.1]"]):
        with pytest.raises(DeepwideError):
            cells_of(read_spec(path, words))


def test_a_spec_may_be_given_as_a_table_a_path_or_itself(tmp_path: Path) -> None:
    path = write_toml(tmp_path / "toys.toml")
    specs = [as_spec(path), as_spec(str(path)), as_spec(TABLE), as_spec(as_spec(TABLE))]
    assert [spec.model_dump() for spec in specs] == [toys().model_dump()] * 4


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1M", "toy", "depth"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["name", "seeds", "run", "grid", "iso", "sedes", "trainer", "steps", "params", "depths", "lr", "model"]
)
SMALL = st.dictionaries(KEYS, VALUES, max_size=4)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(["name", "seeds", "run", "grid", "iso", "more"]), VALUES | SMALL, max_size=5))
def test_any_table_gives_cells_or_one_sentence(table: dict[str, Any]) -> None:
    for given_table in (table, TABLE | table):
        try:
            cells_of(make_spec(given_table))
        except DeepwideError as error:
            one_sentence(error)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200) | st.binary(max_size=200), st.lists(st.text(max_size=20), max_size=2))
def test_any_file_and_any_override_gives_a_spec_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes, overrides: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.toml"
    path.write_bytes(content.encode(errors="replace") if isinstance(content, str) else content)
    for words in ([], overrides):
        try:
            cells_of(read_spec(path, words))
        except DeepwideError as error:
            one_sentence(error)


def test_the_written_table_is_the_table(tmp_path: Path) -> None:
    written = tomllib.loads(write_toml(tmp_path / "toys.toml").read_text())
    assert written == toys().model_dump(exclude={"iso", "cells"})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"name": "x", "cells": [{"depth": 1}], "iso": {"params": ["1k"], "depths": [1]}}, "iso and cells each give"),
        ({"name": "x", "cells": [{}]}, "one of the cells is empty"),
        ({"name": "x", "cells": [{"depth": float("inf")}]}, "numbers must be finite"),
    ],
)
def test_listed_cells_are_checked(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        make_spec(table)
