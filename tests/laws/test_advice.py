"""Advice says in words what it says, and predicts no depth."""

import pytest

from deepwide.laws import AdviceLaw, DepthLaw, find_law
from deepwide.laws.advice import CeilingLaw, IndifferentLaw, VocabularyLaw


@pytest.mark.parametrize("name", ["kaplan", "tay", "wies"])
def test_a_law_that_only_advises_has_no_depth_to_ask_for(name: str) -> None:
    law = find_law(name)
    assert isinstance(law, AdviceLaw)
    assert not isinstance(law, DepthLaw)
    assert not hasattr(law, "depth")


def test_the_vocabulary_law_sets_a_least_depth_where_width_would_pass_the_vocabulary() -> None:
    law = VocabularyLaw(name="wies")
    assert "no limit" in law.opinion(10**9, 50_000).words
    assert "at least 83.3 layers" in law.opinion(10**9, 1000).words


def test_ceilings_and_indifference_say_so() -> None:
    assert "32–36" in CeilingLaw(name="tay", low=32, high=36).opinion(1, 1).words
    assert IndifferentLaw(name="k", about="any", aspect_span=40).opinion(1, 1).words == "any"
