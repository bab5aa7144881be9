"""Settings from TOML and from name=value, and every mistake as one sentence."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.settings import Part, Positive, check_names, explain, parse_setting, read_toml, with_setting


class Inner(Part):
    lr: float = 1e-3


class Outer(Part):
    optimiser: Inner = Inner()
    other: Inner | None = None
    steps: Positive


def complaint(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Outer(**fields)
    return explain(caught.value, Outer)


def test_complaints_are_one_sentence_with_the_nearest_name() -> None:
    assert complaint(stesp=1) == "there is no setting 'stesp': did you mean 'steps'?"
    assert complaint(steps=1, other={"l": 1}) == "there is no setting 'other.l': did you mean 'lr'?"
    assert complaint(steps=0) == "steps: input should be greater than or equal to 1, not '0'."
    assert complaint() == "steps: field required."
    assert explain(TypeError(), Outer) == "the config must be a table of named values."


def test_a_misplaced_setting_is_told_its_place() -> None:
    with pytest.raises(DeepwideError, match=r"there is no setting 'optimizer': did you mean 'optimiser'\?"):
        check_names(Outer, {"optimizer": {}})
    with pytest.raises(DeepwideError, match=r"'optimiser.stepz'"):
        check_names(Outer, {"optimiser": {"stepz": 1}})
    with pytest.raises(DeepwideError, match=r"there is no setting 'optimiser.steps': did you mean 'steps'\?"):
        check_names(Outer, {"optimiser": {"steps": 1}})
    check_names(Outer, {"optimiser": {"lr": 1}, "steps": 1})


@pytest.mark.parametrize("wrong", ["lr", "=3", ".x=1", "a..b=1", ".".join("a" * 30) + "=1"])
def test_what_is_not_a_setting_is_refused(wrong: str) -> None:
    with pytest.raises(DeepwideError) as caught:
        parse_setting(wrong)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_setting_or_one_sentence(written: str) -> None:
    try:
        path, _ = parse_setting(written)
    except DeepwideError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - either outcome is right
    else:
        assert all(path)


def test_setting_a_value_changes_nothing_else() -> None:
    table = {"a": {"b": {"c": 1, "d": 2}}, "e": 3}
    assert with_setting(table, ["a", "b", "c"], 9) == {"a": {"b": {"c": 9, "d": 2}}, "e": 3}
    assert table == {"a": {"b": {"c": 1, "d": 2}}, "e": 3}
    with pytest.raises(DeepwideError, match=r"'e.f' cannot be set: 'e' is one value"):
        with_setting(table, ["e", "f"], 1)


@pytest.mark.parametrize(
    ("content", "match"),
    [(b"a = ", "is not TOML"), (b"\xff", "is not TOML"), (b"a = " + b"[" * 3000, "nested too deep|is not TOML")],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(DeepwideError, match=match) as caught:
        read_toml(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(DeepwideError, match="is a folder"):
        read_toml(tmp_path)
    with pytest.raises(DeepwideError, match="There is no file"):
        read_toml(tmp_path / "none.toml")
