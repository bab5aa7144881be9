"""The coordinate check tells a fair parametrisation from an unfair one, and draws it."""

from pathlib import Path

import pytest

from deepwide.data import DataConfig
from deepwide.figures import save_chart
from deepwide.figures.scaling import scaling_chart
from deepwide.training.scaling import Point, check_scaling, slopes


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    home = tmp_path_factory.mktemp("scaling")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEPWIDE_CACHE", str(home / "cache"))
        (home / "text.txt").write_text(
            "\n\n".join(f"{i} and {i * i % 97} make {i + i * i % 97}." * 20 for i in range(200))
        )
        return check_scaling(
            widths=(32, 64, 128), depths=(2, 4, 8), seeds=(0, 1), data=DataConfig(source=str(home / "text.txt"))
        )


def test_mup_is_flat_in_width_and_completep_in_depth_too(points: list[Point]) -> None:
    found = {(s.parametrisation, s.along, s.place): s.slope for s in slopes(points)}
    for place in ("middle block", "last block", "logits"):
        assert abs(found["mup", "width", place]) < 0.2
        assert abs(found["completep", "width", place]) < 0.2
        assert abs(found["completep", "depth", place]) < 0.2
    assert found["standard", "width", "last block"] > 0.6
    assert found["standard", "depth", "last block"] > 0.4
    assert found["mup", "depth", "last block"] > 0.4


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_the_check_is_drawn(points: list[Point], tmp_path: Path, suffix: str) -> None:
    path = save_chart(scaling_chart(points, slopes(points)), tmp_path / f"scaling.{suffix}")
    assert path.stat().st_size > 5000
    if suffix == "svg":
        assert "grows as width" in path.read_text()
