"""Learning curves: all of a short file, some of a long one in bounded time and memory, and nothing through a link."""

import itertools
import json
import time
import tracemalloc
from pathlib import Path

import pytest

from deepwide.run import RunFolder
from deepwide.serving.curves import MOST_POINTS, read_curve, thinned


@pytest.fixture
def run(tmp_path: Path) -> Path:
    config = {"trainer": "toy", "depth": 1, "width": 2, "steps": 4}
    return RunFolder.create(tmp_path, config, data_fingerprint="d", numerics="1").path


def write(run: Path, records: int, every: int = 1000) -> None:
    with open(run / "metrics.jsonl", "w", encoding="utf-8") as file:
        for step in range(1, records + 1):
            more = {"validation_loss": 3.0} if step % every == 0 else {}
            file.write(json.dumps({"step": step, "loss": 1 + 1 / step, **more}) + "\n")


def test_a_long_curve_is_thinned_and_keeps_its_end() -> None:
    points = [(step, 1.0) for step in range(10_001)]
    shown = thinned(points)
    assert len(shown) <= MOST_POINTS
    assert (shown[0], shown[-1]) == (points[0], points[-1])


def test_a_short_file_is_read_whole(run: Path) -> None:
    write(run, 300, every=100)
    curve = read_curve(run.parent, run.name)
    assert [step for step, _ in curve.points] == list(range(1, 301))
    assert [step for step, _ in curve.validation] == [100, 200, 300]
    assert curve.note == curve.error == ""


def test_a_long_file_is_read_in_pieces_from_end_to_end_and_the_curve_says_so(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(run, 300_000)
    monkeypatch.setattr(RunFolder, "metrics", lambda _: pytest.fail("read whole"))
    tracemalloc.start()
    began = time.process_time()
    with (run / "metrics.jsonl").open() as file:
        assert sum(1 for line in file if json.loads(line)) >= 300_000
    plain = time.process_time() - began
    began = time.process_time()
    curve = read_curve(run.parent, run.name)
    seconds, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    steps = [step for step, _ in curve.points]
    assert (steps[0], steps[-1]) == (1, 300_000)
    assert steps == sorted(set(steps))
    assert max(b - a for a, b in itertools.pairwise(steps)) < 3000
    assert all(loss == 1 + 1 / step for step, loss in curve.points)
    assert len(curve.points) <= MOST_POINTS
    assert curve.validation
    assert "spread evenly" in curve.note
    assert most < 100 << 20
    assert seconds < 3 * plain, "about as long as reading every line once"


def test_metrics_that_are_damaged_are_the_curve_s_error(run: Path) -> None:
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\ntorn\n{"step": 2, "loss": 1.0}\n')
    curve = read_curve(run.parent, run.name)
    assert curve.points == ()
    assert "metrics.jsonl" in curve.error


def test_a_link_in_place_of_the_metrics_is_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"step": 1, "loss": 42.0}\n')
    (run / "metrics.jsonl").symlink_to(tmp_path / "secret.jsonl")
    curve = read_curve(run.parent, run.name)
    assert curve.points == ()
    assert "link" in curve.error


def test_a_run_without_metrics_has_an_empty_curve(run: Path) -> None:
    curve = read_curve(run.parent, run.name)
    assert (curve.points, curve.error) == ((), "")
