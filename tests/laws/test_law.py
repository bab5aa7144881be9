"""What holds for every law: no size overflows, many at once are as one by one, each has its opinion."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.laws import DepthLaw, Law, depth_law, published_laws

PREDICTING = [law for law in published_laws().values() if isinstance(law, DepthLaw)]
SIZES = st.floats(3, 17).map(lambda power: 10**power)


@pytest.mark.parametrize("law", PREDICTING, ids=lambda law: law.name)
def test_no_size_from_a_thousand_to_a_hundred_quadrillion_overflows(law: DepthLaw) -> None:
    """Warnings are errors here, so this also says that none is raised."""
    N = np.logspace(3, 17, 400)
    curve = law.depth(N)
    assert np.all(np.isfinite(curve.value))
    assert np.all(curve.value > 0)
    if not np.isnan(curve.low[0]):
        assert np.all(curve.low >= 0)
        assert np.all(curve.low <= curve.value)
        assert np.all(curve.value <= curve.high)


@pytest.mark.parametrize("law", PREDICTING, ids=lambda law: law.name)
def test_many_sizes_at_once_are_the_same_as_one_by_one(law: DepthLaw) -> None:
    N = np.logspace(5, 15, 37)
    assert law.depth(N).value.tolist() == pytest.approx([float(law.depth(n).value[0]) for n in N], rel=1e-12)


@pytest.mark.parametrize("name", ["levine", "nanochat", "depth-delusion"])
def test_a_larger_budget_is_never_shallower(name: str) -> None:
    law = depth_law(name)

    @given(SIZES, st.floats(1.0001, 1e6))
    def check(N: float, factor: float) -> None:
        smaller, larger = law.depth([N, N * factor]).value
        assert larger > smaller

    check()


@pytest.mark.parametrize("law", published_laws().values(), ids=lambda law: law.name)
def test_every_law_has_an_opinion_in_a_few_words(law: Law) -> None:
    opinion = law.opinion(1_300_000_000, 50_304)
    assert opinion.law == law.name
    assert opinion.status == law.status
    assert 0 < len(opinion.words) < 80
    assert (opinion.depth is not None) == isinstance(law, DepthLaw)
    assert (opinion.low is not None) == (law.name == "levine")


def test_a_law_says_where_it_is_extrapolated() -> None:
    for law in published_laws().values():
        if law.fitted_block_params is None:
            assert not law.is_extrapolated(1)
            continue
        small, large = law.fitted_block_params
        assert 1e3 < small < large < 1e13, law.name
        for N in (small, math.sqrt(small * large), large):
            assert not law.is_extrapolated(N), law.name
            assert "extrapolated" not in law.opinion(round(N), 50_304).words, law.name
        for N in (small * 0.9, large * 1.1):
            assert law.is_extrapolated(N), law.name
            assert "(extrapolated: fitted on" in law.opinion(round(N), 50_304).words, law.name
