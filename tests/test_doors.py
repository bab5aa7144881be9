"""A door gives what it offers and nothing else, and loads nothing before."""

import subprocess
import sys

import pytest

from deepwide import offered
from deepwide.data import DataConfig


def test_a_name_comes_from_its_module() -> None:
    assert offered("deepwide.data", {"DataConfig": "config"}, "DataConfig") is DataConfig


def test_a_name_that_is_not_offered_is_an_attribute_error_of_the_room() -> None:
    with pytest.raises(AttributeError, match="has no attribute"):
        offered("deepwide.data", {}, "nothing")


def test_a_module_is_loaded_when_its_name_is_asked_for() -> None:
    program = (
        "import sys, deepwide.data as room\n"
        "before = 'deepwide.data.corpus' in sys.modules\n"
        "room.Corpus\n"
        "print(before, 'deepwide.data.corpus' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False", "True"]
