"""From a spec to its cells: every combination once, the same ids always, sizes equal by construction."""

import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from deepwide.shape import flops
from deepwide.sweep import cells_of, make_spec
from sweep.toys import toys

REAL: dict[str, Any] = {
    "name": "real",
    "run": {"data": {"source": "python"}, "batch": 8, "context": 64},
    "iso": {"params": ["100k", "1M"], "depths": [1, 2, 4, 8], "tokens": "200k", "tolerance": 0.15},
}


def test_a_grid_is_every_combination_once_in_the_order_of_the_file() -> None:
    cells = cells_of(toys())
    assert [cell.name for cell in cells][:3] == [
        "width=2 lr=0.05 seed=0",
        "width=2 lr=0.05 seed=1",
        "width=2 lr=0.1 seed=0",
    ]
    assert len({cell.id for cell in cells}) == len(cells) == 8


def test_the_same_spec_gives_the_same_ids_in_another_process() -> None:
    code = "from sweep.toys import toys; from deepwide.sweep import cells_of; print(*(c.id for c in cells_of(toys())))"
    from pathlib import Path

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert done.stdout.split() == [cell.id for cell in cells_of(toys())]


def test_points_that_coincide_are_one_cell() -> None:
    assert len(cells_of(toys(grid={"width": [2, 2], "lr": [0.1, 1e-1]}, seeds=[3, 3]))) == 1


def test_seeds_are_paired_across_shapes() -> None:
    by_shape: dict[int, list[int]] = {}
    for cell in cells_of(toys()):
        by_shape.setdefault(cell.config["width"], []).append(cell.config["seed"])
    assert by_shape[2] == by_shape[3] == [0, 1, 0, 1]


def test_iso_sizes_are_equal_by_construction_and_no_other_width_is_nearer() -> None:
    from deepwide.train import resolve

    cells = cells_of(make_spec(REAL))
    assert len(cells) == 8
    for cell in cells:
        shape = resolve(cell.config).architecture.shape
        size = cell.varied["size"]
        assert cell.cost.block_params == shape.block_params
        assert abs(shape.block_params / size - 1) < 0.15
        assert cell.cost.tokens == 200_192, "200k tokens are 391 steps of 512"
        for other in (shape.width - 8, shape.width + 8):
            if other > 0:
                near = resolve(dict(cell.config) | {"model": {"depth": shape.depth, "width": other}}).architecture.shape
                assert abs(near.block_params - size) >= abs(shape.block_params - size) * 0.9
    for one, two in pairwise(cells[:4]):
        assert two.cost.depth > one.cost.depth
        assert two.cost.width < one.cost.width


def test_iso_flops_cells_cost_the_same_to_within_a_step() -> None:
    from deepwide.train import resolve

    iso = {"params": ["100k", "1M"], "depths": [1, 4], "flops": "1e12", "tolerance": 0.15}
    for cell in cells_of(make_spec(REAL | {"iso": iso})):
        shape = resolve(cell.config).architecture.shape
        one_step = flops(shape, 64).training * 8
        assert 0 <= cell.cost.train_flops - 1e12 < one_step
        assert cell.cost.train_flops == one_step * cell.config["steps"]


def test_tokens_per_parameter_follow_the_size() -> None:
    iso = {"params": ["100k"], "depths": [1, 4], "tokens_per_param": 20, "tolerance": 0.15}
    for cell in cells_of(make_spec(REAL | {"iso": iso})):
        assert cell.cost.tokens == pytest.approx(20 * cell.cost.block_params, abs=512)


def test_a_grid_may_vary_any_dotted_key_of_a_run() -> None:
    grid = {"model.preset": ["levine", "llama"], "schedule.kind": ["cosine", "constant"]}
    cells = cells_of(make_spec(REAL | {"grid": grid, "iso": REAL["iso"] | {"params": ["1M"], "depths": [2]}}))
    assert [(c.config["model"]["preset"], c.config["schedule"]["kind"]) for c in cells] == [
        ("levine", "cosine"), ("levine", "constant"), ("llama", "cosine"), ("llama", "constant"),
    ]  # fmt: skip
    assert cells[0].name == "size=1M depth=2 width=200 preset=levine kind=cosine"


def test_planning_does_not_import_torch() -> None:
    code = (
        "import sys; from deepwide.sweep import cells_of, make_spec; "
        f"print(len(cells_of(make_spec({REAL!r}))), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "8 False\n"
