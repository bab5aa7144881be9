"""Every setting of a study has a line that says what it means."""

from typing import Annotated

import pytest
from pydantic import Field

from deepwide.settings import Part
from deepwide.studies import setting_rows, studies
from deepwide.studies.meanings import meanings
from studies.fakes import Sums


class Base(Part):
    width: int = 3  # in letters
    steps: int = 1


class Derived(Base):
    """A docstring: with a colon  # and no field."""

    width: int = 4
    colour: Annotated[str, Field(description="of the line")] = "red"  # not this
    other: tuple[str, ...] = ("#",)


def test_a_meaning_is_a_description_a_comment_or_what_the_name_means_everywhere() -> None:
    assert meanings(Derived) == {
        "width": "in letters", "steps": "training steps of each network", "colour": "of the line", "other": "",
    }  # fmt: skip


def test_settings_come_with_the_value_of_each_preset() -> None:
    assert setting_rows(Sums())[1] == {
        "setting": "steps", "quick": "3", "cpu": "5", "paper": "3", "meaning": "terms of each part",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(studies()))
def test_every_setting_of_ours_has_a_meaning(name: str) -> None:
    assert [row["setting"] for row in setting_rows(studies()[name]) if not row["meaning"]] == []
