"""Untrained networks: the same numbers as asking the probes one by one, in parts that resume."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.model import Architecture, Transformer, profile
from deepwide.probes import gradient_norms, output_change
from deepwide.studies import Workplace
from deepwide.studies.untrained import PUBLISHED, Untrained, measure_untrained, profile_rows, profiles
from deepwide.studies.workplace import Parts
from deepwide.tasks import make_task


def build(kind: str, depth: int, seed: int) -> tuple[Any, Any, Any]:
    task = make_task("sorting", {"length": 4, "symbols": 3})
    batch = task.batch(0, 2, seed)
    design = Architecture.of(
        depth=depth, width=8, heads=1, vocab=task.vocab, context=task.context, kind="encoder",
        norm_place="post", residual=kind, initialisation="xavier", embedding_norm=True,
    )  # fmt: skip
    model = Transformer(design, seed).double()
    profile(model, batch.tokens_BT)
    return model, batch.tokens_BT, batch.targets


def test_networks_are_probed_by_kind_depth_move_and_seed(tmp_path: Path) -> None:
    seen: list[str] = []
    place = Workplace(report=seen.append, parts=Parts(tmp_path, "a"))
    untrained = measure_untrained(build, ("plain", "rezero"), (1, 2), 2, 1e-3, place)
    assert list(untrained.changes) == [
        (kind, move, depth) for kind in ("plain", "rezero") for depth in (1, 2) for move in ("random", "gradient")
    ]
    assert untrained.changes["plain", "gradient", 2][1] == output_change(*build("plain", 2, 1), "gradient", 1e-3, 1)
    assert seen[:2] == ["untrained networks, plain, 1 layers", "untrained networks, plain, 2 layers"]
    rows = [row for row in untrained.gradients if row["scheme"] == "plain"]
    both = [gradient_norms(*build("plain", 2, seed)) for seed in (0, 1)]
    means = [sum(norms) / 2 for norms in zip(*both, strict=True)]
    assert [row["gradient_norm"] for row in rows] == pytest.approx(means)
    again = measure_untrained(build, ("plain", "rezero"), (1, 2), 2, 1e-3, Workplace(parts=Parts(tmp_path, "a")))
    assert again == untrained


def test_an_exponent_is_the_slope_of_each_network_in_logarithms() -> None:
    changes = {("a", "random", depth): [depth**2.0, 5 * depth**3.0] for depth in (2, 4, 8)}
    still = {("b", "random", depth): [0.0, 1.0] for depth in (2, 4, 8)}
    untrained = Untrained(changes | still, [])
    [(name, exponent)] = untrained.exponents().items()
    assert name == "a"
    assert exponent.value == pytest.approx(2.5)
    assert [row["scheme"] for row in untrained.change_rows()] == ["a"] * 3
    assert untrained.change_rows()[0]["output_change"] == pytest.approx((4 * 40) ** 0.5)


def test_profiles_are_those_of_every_sublayer() -> None:
    omegas = profiles(lambda seed: build("admin_profiled", 2, seed)[0], 2, Workplace())
    assert [len(each) for each in omegas] == [4, 4]
    assert all(each[0] == 1 < each[-1] for each in omegas)
    rows = profile_rows(omegas)
    assert rows[3]["omega_squared"] == pytest.approx((omegas[0][3] ** 2 + omegas[1][3] ** 2) / 2)
    assert [row["sublayer"] for row in rows if row["source"] != "here"] == list(PUBLISHED)
    assert Interval(rows[-1]["omega_squared"]) == Interval(8.84**2)
