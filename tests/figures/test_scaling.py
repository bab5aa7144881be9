"""The coordinate check is drawn, with its verdicts."""

from pathlib import Path

import pytest

from deepwide.figures import save_chart
from deepwide.figures.scaling import scaling_chart
from deepwide.training import ScalingCheck
from deepwide.training.coordinate_check import Movement, Slope

SIZES = (32, 64, 128)
POINTS = tuple(
    Movement(kind, "width", size, place, 0, 1.0, 1.0, (size / 32) ** power)
    for kind, power in (("standard", 1.0), ("mup", 0.0))
    for place in ("embedding", "logits")
    for size in SIZES
)
SLOPES = tuple(
    Slope(kind, "width", place, power)
    for kind, power in (("standard", 1.0), ("mup", 0.0))
    for place in ("embedding", "logits")
)


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_the_check_is_drawn(tmp_path: Path, suffix: str) -> None:
    check = ScalingCheck(preset="levine", lr=1e-2, steps=4, slopes=SLOPES, points=POINTS)
    path = save_chart(scaling_chart(check), tmp_path / f"scaling.{suffix}")
    assert path.stat().st_size > 5000
    if suffix == "svg":
        assert "grows as width^1.0" in path.read_text()
        assert "flat" in path.read_text()
