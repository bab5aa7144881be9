"""The coordinate check tells a fair parametrisation from an unfair one."""

import numpy as np
import pytest
import torch

from deepwide.data import DataConfig
from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer
from deepwide.training import ScalingCheck, check_scaling
from deepwide.training.coordinate_check import PLACES, _activations


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> ScalingCheck:
    home = tmp_path_factory.mktemp("scaling")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEPWIDE_CACHE", str(home / "cache"))
        (home / "text.txt").write_text(
            "\n\n".join(f"{i} and {i * i % 97} make {i + i * i % 97}." * 20 for i in range(200))
        )
        return check_scaling(
            widths=(32, 64, 128), depths=(2, 4, 8), seeds=(0, 1), data=DataConfig(source=str(home / "text.txt"))
        )


def test_mup_is_flat_in_width_and_completep_in_depth_too(check: ScalingCheck) -> None:
    slopes = {(row["parametrisation"], row["along"], row["place"]): row["slope"] for row in check.rows()}
    for place in ("middle block", "last block", "logits"):
        assert abs(slopes["mup", "width", place]) < 0.2
        assert abs(slopes["completep", "width", place]) < 0.2
        assert abs(slopes["completep", "depth", place]) < 0.2
    assert slopes["standard", "width", "last block"] > 0.6
    assert slopes["standard", "depth", "last block"] > 0.4
    assert slopes["mup", "depth", "last block"] > 0.4
    assert check.is_flat("completep", "width")
    assert not check.is_flat("standard", "depth")


def test_slopes_are_those_of_a_straight_line_through_the_points(check: ScalingCheck) -> None:
    for slope in check.slopes:
        mine = (slope.parametrisation, slope.along, slope.place)
        points = [p for p in check.points if (p.parametrisation, p.along, p.place) == mine]
        x, y = np.log([p.size for p in points]), np.log([p.change for p in points])
        x, y = x - x.mean(), y - y.mean()
        assert slope.slope == pytest.approx((x @ y) / (x @ x))


def test_the_activations_are_those_that_hooks_see() -> None:
    model = Transformer(Architecture.of(depth=4, width=16, vocab=32, context=8), seed=1)
    tokens_BT = torch.arange(8)[None, :]
    seen: dict[str, torch.Tensor] = {}
    model.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.update(embedding=inputs[0]))
    model.blocks[1].register_forward_hook(lambda _, __, output: seen.update({"middle block": output}))
    model.blocks[3].register_forward_hook(lambda _, __, output: seen.update({"last block": output}))
    activations = _activations(model, tokens_BT)
    assert tuple(activations) == PLACES
    assert all(torch.equal(activations[place], seen[place]) for place in PLACES[:3])


def test_an_unknown_parametrisation_or_a_single_size_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="there is no parametrisation 'mupp': did you mean 'mup'"):
        check_scaling(["mupp"])
    with pytest.raises(DeepwideError, match="have no slope"):
        check_scaling(widths=[32], depths=[2])
