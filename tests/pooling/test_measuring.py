"""A set measured on runs of a known truth, and the shipped sets measured again from the public runs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.pooling import add_evidence, load_set
from deepwide.pooling.measuring import split_lengths, usable_lengths
from pooling.builders import bowl_rows

ROOT = Path(__file__).parents[2]


def test_the_best_depth_and_the_cost_are_recovered() -> None:
    each = add_evidence(bowl_rows(ratio=0.7, curvature=0.015), name="made", about="")
    assert each.ratio.low is not None
    assert each.ratio.high is not None
    assert each.ratio.low < 0.7 < each.ratio.high
    assert each.ratio.value == pytest.approx(0.7, rel=0.12)
    assert math.exp(each.log_curvature) == pytest.approx(0.015, rel=0.2)
    assert each.token_slope is None
    assert each.scope == "pooled"
    assert (each.shapes, each.runs) == (24, 24)


def test_a_cost_that_falls_with_tokens_is_seen_between_lengths() -> None:
    each = add_evidence(bowl_rows(power=-0.3, lengths=(20, 160)), name="made", about="")
    assert [length.name for length in each.lengths] == ["20 tokens per parameter", "160 tokens per parameter"]
    slope = each.slope
    assert slope is not None
    assert slope.value == pytest.approx(-0.3, abs=0.06)
    assert slope.high is not None
    assert slope.high < 0


def test_lengths_of_one_set_do_not_make_it_surer() -> None:
    """The same runs four times over, as checkpoints nearly are."""
    rows = bowl_rows()
    one = add_evidence(rows, name="made", about="")
    copies = [row | {"tokens": row["tokens"] * 3**i} for i in range(3) for row in rows]
    several = add_evidence(copies, name="made", about="")
    assert several.covariance[0][0] == pytest.approx(one.covariance[0][0], rel=0.1)
    assert several.place == pytest.approx(one.place, abs=0.02)


def test_runs_are_split_by_tokens_or_by_tokens_per_parameter() -> None:
    by_ratio = split_lengths(read_runs(bowl_rows(lengths=(20, 40, 160))))
    assert [len(runs) for _, runs in by_ratio] == [24, 24, 24]
    rows = [row | {"tokens": tokens} for row in bowl_rows() for tokens in (1e9, 1e10)]
    assert [words for words, _ in split_lengths(read_runs(rows))] == ["1B tokens", "10B tokens"]


def test_lengths_that_hardly_any_runs_share_are_fitted_together() -> None:
    """As of a table of equal FLOPs: split by length, most of its runs would be left out."""
    draw = np.random.default_rng(2)
    rows = [row | {"tokens": row["tokens"] * math.exp(draw.uniform(-1.5, 1.5))} for row in bowl_rows(ratio=0.7)]
    runs = read_runs(rows)
    assert all(len(part) < 12 for _, part in split_lengths(runs))
    ((words, whole),) = usable_lengths(runs)
    assert len(whole) == len(rows)
    assert words.endswith("tokens per parameter")
    assert usable_lengths(read_runs(rows[:9]))[0][0] == split_lengths(read_runs(rows[:9]))[0][0]
    shared = read_runs(bowl_rows(lengths=(20, 160)))
    assert [name for name, _ in usable_lengths(shared)] == ["20 tokens per parameter", "160 tokens per parameter"]
    each = add_evidence(rows, name="made", about="")
    assert (each.runs, each.shapes, len(each.lengths)) == (24, 24, 1)
    assert each.ratio.low is not None
    assert each.ratio.high is not None
    assert each.ratio.low < 0.7 < each.ratio.high


def test_what_is_no_evidence_is_refused_in_a_sentence() -> None:
    random = np.random.default_rng(1)
    flat = [row | {"loss": 3 + random.normal(0, 0.1)} for row in bowl_rows()]
    with pytest.raises(DeepwideError, match="show no best depth"):
        add_evidence(flat, name="made", about="")
    with pytest.raises(DeepwideError, match="at least 10 shapes"):
        add_evidence(bowl_rows()[:8], name="made", about="")
    without = [{name: value for name, value in row.items() if name != "total_params"} for row in bowl_rows()]
    with pytest.raises(DeepwideError, match="total_params"):
        add_evidence(without, name="made", about="")
    with pytest.raises(DeepwideError, match="a set's name is up to 40 letters"):
        add_evidence(bowl_rows(), name="../up", about="")
    with pytest.raises(DeepwideError, match="about has 201 characters"):
        add_evidence(bowl_rows(), name="made", about="x" * 201)
    with pytest.raises(DeepwideError, match="within 1%"):
        add_evidence(bowl_rows(), name="made", about="", lengths=[5.0])


@pytest.mark.slow
def test_the_shipped_sets_are_what_the_runs_say(shared_data: Path) -> None:
    from benchmarks.evidence import SETS, measured, pooled_document

    for each in measured(shared_data):
        shipped = load_set(SETS / f"{each.name}.json")
        assert shipped.sha256 == each.sha256
        assert shipped.place == pytest.approx(each.place, rel=1e-3)
        assert shipped.log_curvature == pytest.approx(each.log_curvature, rel=1e-3)
        assert np.allclose(shipped.covariance, each.covariance, rtol=1e-2, atol=1e-6)
    law = json.loads((ROOT / "src/deepwide/laws/pooled.json").read_text())["law"]
    assert law["shift"] == pytest.approx(pooled_document()["law"]["shift"], rel=1e-4)
