"""From a spec to its cells: every combination once, the same ids always, sizes equal by construction."""

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import flops
from deepwide.sweeping import cells_of, grid, make_spec
from deepwide.sweeping.grid import width_for
from deepwide.sweeping.spec import Iso
from deepwide.sweeping.trainers import TransformerTrainer
from sweeping.toys import toys

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


def test_a_shape_is_resolved_once_for_all_its_seeds_and_the_ids_are_those_of_each_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Very many seeds cost next to nothing; every seed is checked once."""
    table: dict[str, Any] = {"name": "many", "run": {"steps": 10}, "grid": {"depth": [1, 2, 3], "width": [16]}}
    alone = [cell for seed in (5, 0, 7) for cell in cells_of(make_spec(table | {"seeds": [seed]}))]
    resolve = TransformerTrainer.resolve
    spy = mock.Mock(side_effect=lambda config: resolve(TransformerTrainer(), config))
    monkeypatch.setattr(TransformerTrainer, "resolve", staticmethod(spy))
    together = cells_of(make_spec(table | {"seeds": [5, 0, 7]}))
    assert {cell.id: cell.config for cell in together} == {cell.id: cell.config for cell in alone}
    assert {cell.id: cell.cost for cell in together} == {cell.id: cell.cost for cell in alone}
    assert spy.call_count == 3 + 2
    with pytest.raises(DeepwideError, match="seed"):
        cells_of(make_spec(table | {"seeds": [0, 2 * 10**9]}))


def test_the_same_spec_gives_the_same_ids_in_another_process() -> None:
    code = (
        "from sweeping.toys import toys; from deepwide.sweeping import cells_of\n"
        "print(*(c.id for c in cells_of(toys())))"
    )
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
    from deepwide.training import resolve

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


@pytest.mark.parametrize("counting", ["block", "total"])
@pytest.mark.parametrize("multiple", [1, 8, 64])
def test_the_width_is_the_nearest_of_all_multiples(counting: str, multiple: int) -> None:
    """By ratio: neither neighbour is nearer, at any size and depth."""
    trainer = TransformerTrainer()
    fixed = {"batch": 8, "context": 64, "tokens": 1000}
    for size in (30_000, 123_456, 10**6, 87_654_321, 10**9):
        for depth in (1, 2, 3, 7, 24):
            # Strictly within it whatever the multiple: the tolerance is not what is tried here.
            table: dict[str, Any] = {
                "params": [size],
                "depths": [depth],
                "width_multiple": multiple,
                "counting": counting,
            }
            iso = Iso(**table, tolerance=0.999)

            def miss(width: int, depth: int = depth, size: int = size) -> float:
                cost = trainer.resolve(fixed | {"model": {"depth": depth, "width": width}}).cost
                params = cost.block_params if counting == "block" else cost.total_params
                return abs(math.log(params / size))

            try:
                width = width_for(iso, size, depth, fixed, trainer)
            except DeepwideError:
                assert miss(multiple) > math.log(1.9), "only where the narrowest is far too large"
                continue
            assert width % multiple == 0
            assert miss(width) <= miss(width + multiple)
            assert width == multiple or miss(width) <= miss(width - multiple)


IDS = {  # as they were when the stand-in for a length yet to be chosen was 5e8 tokens
    "flops": ["5602db4866be2331", "af2a0af271e096d1", "6dea001bb8364b3e", "8bf58b4da2131cae"],
    "tokens_per_param": ["0d4fddc155caaebb", "c978d3021931e506", "848a7ea4cba89c69", "1fb687c4e392a11d"],
    "tokens": ["77c8f557f9687038", "fd3059bd57981759", "5909d9dbf44bf126", "bafd59a4775ab5e3"],
}


@pytest.mark.parametrize(("budget", "value"), [("flops", "1e12"), ("tokens_per_param", 20), ("tokens", "200k")])
def test_a_spec_finds_the_runs_it_made_last_year(
    budget: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    Path("corpus.txt").write_text("\n\n".join(f"Paragraph {i}. " * 40 for i in range(20)))
    run = {"data": {"source": "corpus.txt"}, "batch": 8, "context": 64}
    iso = {"params": ["100k", "1M"], "depths": [1, 4], "tolerance": 0.15, budget: value}
    assert [cell.id for cell in cells_of(make_spec({"name": "held", "run": run, "iso": iso}))] == IDS[budget]


def test_a_step_of_a_billion_tokens_does_not_shorten_the_stand_in() -> None:
    """With 5e8 tokens standing in, a step of more left one step, and a warm-up of two was refused."""
    run = {"batch": 1000, "context": 10**6, "schedule": {"warmup": 2}, "data": {"source": "python"}}
    iso = {"params": ["1M"], "depths": [2], "flops": "1e20", "tolerance": 0.15}
    (cell,) = cells_of(make_spec({"name": "long", "run": run, "iso": iso}))
    assert cell.config["steps"] > 2


def test_cells_that_miss_their_size_are_left_out_if_asked() -> None:
    iso = {"params": ["3.3k", "100k"], "depths": [1, 8], "tokens": "200k", "tolerance": 0.2, "misses": "skip"}
    cells = cells_of(make_spec(REAL | {"iso": iso}))
    assert [(cell.varied["size"], cell.varied["depth"]) for cell in cells] == [(3300, 1), (100_000, 1), (100_000, 8)]
    with pytest.raises(DeepwideError, match=r'iso\.misses = "skip"'):
        cells_of(make_spec(REAL | {"iso": iso | {"misses": "refuse"}}))
    with pytest.raises(DeepwideError, match="has no cell"):
        cells_of(make_spec(REAL | {"iso": iso | {"params": ["10"]}}))


def test_all_cells_that_miss_their_size_are_reported_at_once() -> None:
    iso = {"params": ["10", "3.3k", "100k"], "depths": [1, 8], "tokens": "200k", "tolerance": 0.2}
    grid = {"model.preset": ["levine", "llama"]}
    with pytest.raises(DeepwideError) as caught:
        cells_of(make_spec(REAL | {"iso": iso, "grid": grid}, source="mine.toml"))
    sentence = str(caught.value)
    assert sentence.startswith("mine.toml: no width in multiples of 8 is within 20% of 10 at depth 1 (width 8 has ")
    assert "10 at depth 8 (width 8 has " in sentence
    assert "3.3K at depth 8 (width 8 has " in sentence
    assert "100K" not in sentence
    many = iso | {"depths": list(range(1, 40)), "params": ["10"]}
    with pytest.raises(DeepwideError, match="and 33 more: raise"):
        cells_of(make_spec(REAL | {"iso": many}))


def test_sizes_are_shown_alike() -> None:
    iso = {"params": [6000, 12_000], "depths": [1], "tokens": "200k", "tolerance": 0.4}
    cells = cells_of(make_spec(REAL | {"iso": iso}))
    assert [cell.name.split()[0] for cell in cells] == ["size=6K", "size=12K"]


def test_a_sweep_without_a_shape_says_what_is_missing_and_where() -> None:
    with pytest.raises(DeepwideError, match=r"^mine\.toml: the sweep gives no depth: write grid\.depth"):
        cells_of(make_spec({"name": "mine", "run": {"tokens": 1000}, "grid": {}}, source="mine.toml"))


def test_each_cell_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import deepwide.training

    spy = mock.Mock(side_effect=deepwide.training.resolve)
    monkeypatch.setattr(deepwide.training, "resolve", spy)
    spec = make_spec({"name": "n", "run": REAL["run"] | {"steps": 3}, "grid": {"depth": [1, 2], "width": [16, 32]}})
    assert len(cells_of(spec)) == spy.call_count == 4


def test_iso_flops_cells_cost_the_same_to_within_a_step() -> None:
    from deepwide.training import resolve

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
        "import sys; from deepwide.sweeping import cells_of, make_spec; "
        f"print(len(cells_of(make_spec({REAL!r}))), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "8 False\n"


LISTED = [{"depth": 1, "width": 2, "seed": 3}, {"depth": 2, "width": 3}]


def test_cells_can_be_listed_one_by_one() -> None:
    cells = cells_of(toys(grid={"lr": [0.05, 0.1]}, cells=LISTED))
    assert [cell.name for cell in cells][:3] == [
        "depth=1 width=2 lr=0.05 seed=3",
        "depth=2 width=3 lr=0.05 seed=0",
        "depth=2 width=3 lr=0.05 seed=1",
    ]
    assert len(cells) == 6
    same = cells_of(toys(grid={"lr": [0.05], "depth": [1], "width": [2]}, seeds=[3]))
    assert same[0].id == cells[0].id, "an id does not depend on how a cell was written"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"grid": {"width": [2]}, "cells": LISTED}, "both cells and grid set 'width'"),
        ({"run": {"depth": 2}, "grid": {}, "cells": LISTED}, "both cells and run set 'depth'"),
        ({"grid": {}, "cells": [{"dpeth": 1}]}, "dpeth"),
    ],
)
def test_a_listed_cell_that_contradicts_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        cells_of(toys(**changes))


def test_a_listed_cell_must_be_complete() -> None:
    with pytest.raises(DeepwideError, match="gives no width"):
        cells_of(make_spec({"name": "x", "run": {"tokens": 2000}, "cells": [{"depth": 1}]}))


def test_a_sweep_has_a_most_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_CELLS", 7)
    with pytest.raises(DeepwideError, match="toys has 8 cells, and 7 is the most: shorten a list"):
        cells_of(toys())


def test_a_key_may_not_be_set_for_all_cells_and_varied() -> None:
    with pytest.raises(DeepwideError, match=r"both run\.lr and grid\.lr set 'lr': keep one of them"):
        cells_of(toys(run={"lr": 0.1}, grid={"lr": [0.1, 0.2]}))
