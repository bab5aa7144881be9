"""Laws of one formula against that formula."""

import pytest

from deepwide.laws import depth_law


def test_nanochats_shape_is_64_times_as_wide_as_deep() -> None:
    L = 20
    assert depth_law("nanochat").depth(12 * L * (64 * L) ** 2).value[0] == pytest.approx(L, rel=1e-12)


def test_depth_delusion_has_32_layers_at_7b_and_grows_slowly() -> None:
    law = depth_law("depth-delusion")
    assert law.depth(7e9).value[0] == pytest.approx(32)
    assert law.depth(7e12).value[0] / 32 == pytest.approx(1000**0.15)
    in_compute = {"depth": 0.12, "width": 0.34}
    of_params = in_compute["depth"] + 2 * in_compute["width"]  # N ~ depth·width²
    assert in_compute["depth"] / of_params == pytest.approx(0.15)
