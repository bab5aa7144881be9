"""`deepwide bounds` and `deepwide rank` as a user meets them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["deepwide", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_bounds_of_the_papers_example_shows_all_three_forms(run: Run) -> None:
    code, out, _ = run("bounds", "--depth", 6, "--width", 1000, "--heads", 16, "--match", 2)
    assert code == 0
    assert "Theorem 1" in out
    for width in ("7.34e+15", "1.55e+17", "1e+25"):
        assert width in out
    assert "follow from the second form" in out


def test_bounds_as_json_is_one_object(run: Run) -> None:
    code, out, _ = run("bounds", "--depth", 50, "--width", 12288, "--heads", 96, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["theorem"] == 2
    assert answer["count"]["log3"] == pytest.approx(2501957378.2064, abs=1e-3)
    assert any("Open question" in note for note in answer["notes"])
    assert answer["corollary_2"]["depth"] == 15


def test_bounds_on_the_boundary_says_that_neither_theorem_speaks(run: Run) -> None:
    code, out, _ = run("bounds", "--depth", 2, "--width", 9)
    assert code == 0
    assert "neither theorem" in out


def test_a_match_is_a_width_or_says_that_it_says_nothing(run: Run) -> None:
    _, out, _ = run("bounds", "--depth", 2, "--width", 10**18, "--match", 1)
    assert "0e+" not in out
    assert "5e+17" in out
    words = ("bounds", "--depth", 2, "--width", 12, "--heads", 11, "--match", 1)
    code, out, _ = run(*words)
    assert code == 0
    assert "says nothing" in out
    assert [row["width"] for row in json.loads(run(*words, "--json")[1])["match"]] == [None] * 3


def test_a_missing_count_with_heads_is_explained(run: Run) -> None:
    deep = json.loads(run("bounds", "--depth", 6, "--width", 16, "--heads", 2, "--json")[1])
    assert deep["count_with_heads"] is None
    assert any("count with 2 heads has no closed form" in note for note in deep["notes"])
    assert any("the count of one head passes" in note for note in deep["notes"])
    listed = json.loads(run("bounds", "--depth", 5, "--width", 16, "--heads", 16, "--json")[1])
    assert listed["count_with_heads"]["log3"] < listed["count"]["log3"]
    assert not any("no closed form" in note or "one head passes" in note for note in listed["notes"])


def test_bounds_draws_every_certificate_of_its_width_or_depth(run: Run, tmp_path: Path) -> None:
    run("rank", "--depth", 2, "--width", "3,5,7", "--out", tmp_path / "ranks", "--no-confirm")
    words = ("bounds", "--depth", 2, "--width", 2, "--plot", tmp_path / "p.json", "--measured", tmp_path / "ranks")
    assert run(*words)[0] == 0
    text = (tmp_path / "p.json").read_text()
    for width in (3, 5, 7):
        assert any(row["what"] == "measured" and row.get("width") == width for row in _points(json.loads(text))), width


def _points(chart: object) -> list[dict[str, object]]:
    if isinstance(chart, dict):
        own = [chart] if "what" in chart else []
        return own + [row for value in chart.values() for row in _points(value)]
    return [row for value in chart for row in _points(value)] if isinstance(chart, list) else []


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_bounds_draws_a_picture(run: Run, tmp_path: Path, ending: str) -> None:
    run("rank", "--depth", 2, "--width", "2..3", "--out", tmp_path / "ranks", "--no-confirm")
    picture = tmp_path / f"p.{ending}"
    code, _, _ = run("bounds", "--depth", 2, "--width", 3, "--plot", picture, "--measured", tmp_path / "ranks")
    assert code == 0
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[ending]
    assert picture.read_bytes().lstrip().startswith(start)


def test_rank_with_blocks(run: Run) -> None:
    code, out, _ = run("rank", "--depth", 2, "--width", 3, "--blocks")
    assert code == 0
    assert "separation rank 49" in out
    assert "proved from both sides" in out
    assert "confirmed modulo 1048571 by FLINT" in out
    assert [line.split() for line in out.splitlines() if line[:1].isdigit()] == [
        ["0", "1", "1"], ["1", "6", "6"], ["2", "21", "21"], ["3", "18", "18"], ["4", "3", "3"],
    ]  # fmt: skip


def test_a_certificate_is_written_verified_and_refused_when_changed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    assert run("rank", "--depth", 2, "--width", 2, "--heads", 2, "--out", path)[0] == 0
    code, out, _ = run("rank", "--verify", path)
    assert code == 0
    assert "holds: rank 17" in out
    assert json.loads(run("rank", "--verify", path, "--json")[1])["holds"] is True
    path.write_text(path.read_text().replace('"rank": 17', '"rank": 18'))
    code, out, err = run("rank", "--verify", path)
    assert (code, out) == (2, "")
    assert err.startswith("deepwide: ")
    assert "changed after it was written" in err


def test_a_range_prints_a_table_and_a_second_run_measures_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("rank", "--depth", "1..3", "--width", "1,2", "--heads", "1..2", "--out", tmp_path)
    code, out, err = run(*words)
    assert code == 0
    assert "1/2" in err  # the skipped width and heads are named
    assert [line.split()[:5] for line in out.splitlines()[1:]] == [
        ["1", "1", "1", "2", "2"], ["1", "2", "1", "3", "3"], ["1", "2", "2", "3", "3"],
        ["2", "1", "1", "5", "5"], ["2", "2", "1", "18", "18"], ["2", "2", "2", "17", "17"],
        ["3", "1", "1", "14", "14"], ["3", "2", "1", "232", "232"], ["3", "2", "2", "215", "215"],
    ]  # fmt: skip
    (tmp_path / "L3-d2-H1-seed0.json").unlink()
    measured = []
    from deepwide.cli import rank

    honest = rank.measure  # type: ignore[attr-defined]
    monkeypatch.setattr(rank, "measure", lambda case, *a, **k: measured.append(case) or honest(case, *a, **k))
    _, again, _ = run(*words)
    assert [(case.depth, case.width, case.heads) for case in measured] == [(3, 2, 1)]
    assert again.count("kept") == 8


@pytest.mark.slow
def test_a_range_that_is_killed_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    words = ["rank", "--depth", "1..3", "--width", "1..3", "--no-confirm", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-m", "deepwide", *words], stdout=subprocess.DEVNULL)
    while len(list(tmp_path.glob("*.json"))) < 4 and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    before = {path.name for path in tmp_path.glob("*.json")}
    code, out, _ = run(*words)
    assert code == 0
    assert out.count("kept") == len(before) >= 4
    assert len(list(tmp_path.glob("*.json"))) == 9


def test_confirm_confirms_what_was_kept_unconfirmed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("rank", "--depth", 2, "--width", "2,3", "--out", tmp_path)
    assert run(*words, "--no-confirm")[1].count("not confirmed") == 2
    assert run(*words)[1].count("not confirmed, kept") == 2
    from deepwide.cli import rank

    monkeypatch.setattr(rank, "measure", lambda *_, **__: pytest.fail("the first measurement is there already"))
    code, out, _ = run(*words, "--confirm")
    assert code == 0
    assert out.count("confirmed modulo 1048571 by FLINT") == 2
    assert "kept" not in out
    assert run(*words, "--confirm")[1].count("by FLINT, kept") == 2


@pytest.mark.slow
def test_a_long_case_that_is_killed_goes_on_with_its_finished_blocks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    words = ["rank", "--depth", "4", "--width", "2", "--heads", "2", "--no-confirm", "--out", str(path)]
    process = subprocess.Popen([sys.executable, "-m", "deepwide", *words], stdout=subprocess.DEVNULL)
    part = tmp_path / ".c.json.dgemm.part"
    while not part.exists() and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert not path.exists()
    finished = len(json.loads(part.read_text())["ranks"])
    code, out, err = run(*words)
    assert code == 0
    assert f"Going on with {finished} finished blocks" in err
    assert "separation rank 4263" in out
    assert not part.exists()


def test_finished_blocks_are_used_and_those_of_something_else_are_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deepwide.separation import measurement, partial

    monkeypatch.setattr(partial, "_SECONDS_BETWEEN", 0)
    path, part = tmp_path / "c.json", tmp_path / ".c.json.dgemm.part"
    honest = measurement.rank_in_place  # type: ignore[attr-defined]
    ranked: list[Any] = []

    def interrupted(matrix: np.ndarray, *rest: object) -> int:
        if len(ranked) == 3:
            raise KeyboardInterrupt
        ranked.append(len(matrix))
        return honest(matrix, *rest)  # type: ignore[arg-type]

    words = ("rank", "--depth", 2, "--width", 3, "--out", path, "--no-confirm")
    monkeypatch.setattr(measurement, "rank_in_place", interrupted)
    assert run(*words)[0] != 0
    assert ranked == [22, 19, 7]  # largest first
    before = part.read_bytes()
    monkeypatch.setattr(measurement, "rank_in_place", honest)
    for other in (("--seed", 1), ("--prime", 65521), ("--width", 4), ("--residual",)):
        code, _, err = run(*words, *other)
        assert code == 2, other
        assert "another measurement" in err
    part.write_bytes(before.replace(b'"2": 21', b'"2": 20'))
    assert "torn" in run(*words)[2]
    part.write_bytes(before[:100])
    assert "torn" in run(*words)[2]
    part.write_bytes(before)
    monkeypatch.setattr(measurement, "rank_in_place", lambda m, *rest: ranked.append(len(m)) or honest(m, *rest))
    code, out, err = run(*words)
    assert code == 0
    assert "Going on with 3 finished blocks" in err
    assert "separation rank 49" in out
    assert sorted(ranked[3:]) == [2, 4]
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "torn"), ("{}", "not a certificate of this program"), (None, "another measurement")],
)
def test_a_torn_or_foreign_file_stops_the_run(run: Run, tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "L2-d2-H1-seed0.json"
    if content is None:
        run("rank", "--depth", 2, "--width", 3, "--out", path)
    else:
        path.write_text(content)
    before = path.read_bytes()
    code, _, err = run("rank", "--depth", 2, "--width", 2, "--out", tmp_path)
    assert code == 2
    assert words in err
    assert path.read_bytes() == before


def test_every_balanced_partition(run: Run) -> None:
    code, out, _ = run("rank", "--depth", 2, "--width", 2, "--every-partition", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["same"] is True
    assert [row["partition"] for row in answer["partitions"]] == ["AABB", "ABAB", "ABBA"]


@pytest.mark.parametrize(("prime", "second"), [(1048571, 1048573), (1048573, 1048571), (65521, 1048571)])
def test_every_partition_takes_two_different_primes(run: Run, prime: int, second: int) -> None:
    words = ("rank", "--depth", 1, "--width", 2, "--every-partition", "--prime", prime)
    assert json.loads(run(*words, "--json")[1])["primes"] == [prime, second]
    assert f"modulo {prime} and, by FLINT, {second}" in run(*words)[1]


def _save_weights(path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    names = [f"{layer}.{name}" for layer in range(2) for name in ("query", "key", "value", "output")]
    np.savez(path, **{name: draw.normal(size=(2, 2)) for name in names})  # type: ignore[arg-type]


def test_going_on_with_a_changed_weight_file_stops(run: Run, tmp_path: Path) -> None:
    _save_weights(tmp_path / "w.npz", 0)
    words = ("rank", "--weights", tmp_path / "w.npz", "--out", tmp_path / "ranks")
    assert run(*words)[0] == 0
    assert "kept" in run(*words)[1]
    _save_weights(tmp_path / "w.npz", 1)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "it has changed" in err


@pytest.mark.parametrize(
    ("extra", "sure"),
    [([], True), (["--no-confirm"], False), (["--prime", "11"], False), (["--prime", "65521"], False)],
)
def test_almost_surely_is_said_only_of_two_large_primes(run: Run, extra: list[str], sure: bool) -> None:
    code, out, err = run("rank", "--depth", 2, "--width", 2, "--weights", "identity", *extra)
    if code:  # a small prime may simply be found out
        assert "modulo 11" in err
        return
    assert ("almost surely" in out) is sure
    assert ("separation rank at least" in out) is not sure


@pytest.mark.parametrize(
    "extra", [["--causal"], ["--residual"], ["--positions", "1"], ["--positions", "3,2"], ["--weights", "identity"]]
)
def test_the_theorems_are_not_shown_for_other_networks(run: Run, extra: list[str]) -> None:
    assert "Theorem 2" in run("rank", "--depth", 2, "--width", 2)[1]
    assert "Theorem" not in run("rank", "--depth", 2, "--width", 2, *extra)[1]


def test_running_out_of_memory_gets_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.cli import rank

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(rank, "measure", full)
    code, _, err = run("rank", "--depth", 1, "--width", 2)
    assert code == 2
    assert "not enough memory" in err


def test_relations_are_shown_beside_the_count(run: Run) -> None:
    out = run("rank", "--depth", 3, "--width", 3, "--positions", "3,1", "--no-confirm")[1]
    assert "count           967, less 8 relations: 959   not met" in out
    out = run("bounds", "--depth", 3, "--width", 4)[1]
    assert "31460" in out
    assert "31456" in out
    assert json.loads(run("bounds", "--depth", 3, "--width", 3, "--json")[1])["count_less_relations"] is None


def test_other_networks(run: Run) -> None:
    for extra, rank in (
        (["--residual"], 18),
        (["--causal"], 18),
        (["--full-grid"], 18),
        (["--positions", "1"], 15),
        (["--partition", "ABBA", "--at", "1"], 18),
        (["--weights", "identity"], 17),
        (["--prime", "65521", "--seed", "4"], 18),
    ):
        code, out, _ = run("rank", "--depth", 2, "--width", 2, "--json", *extra)
        assert code == 0
        assert json.loads(out)["rank"] == rank, extra


def test_weights_from_a_file_need_no_shape(run: Run, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    names = [f"{layer}.{name}" for layer in range(2) for name in ("query", "key", "value", "output")]
    np.savez(tmp_path / "w.npz", **{name: draw.normal(size=(3, 3)) for name in names})  # type: ignore[arg-type]
    code, out, _ = run("rank", "--weights", tmp_path / "w.npz", "--heads", 3)
    assert code == 0
    assert "separation rank 43" in out


def test_softmax_is_marked_as_numerical(run: Run, tmp_path: Path) -> None:
    words = ("rank", "--softmax", "--depth", "1..2", "--width", 4, "--points", 40)
    code, out, _ = run(*words, "--plot", tmp_path / "s.svg")
    assert code == 0
    assert "numerical" in out
    assert (tmp_path / "s.svg").exists()
    answer = json.loads(run(*words, "--json")[1])
    assert answer["numerical"] is True
    assert len(answer["shapes"][0]["values"]) == 40


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rank"], "--depth is missing"),
        (["rank", "--depth", "2"], "--width is missing"),
        (["rank", "--depth", "0", "--width", "2"], "depth must be at least 1"),
        (["rank", "--depth", "2", "--width", "3", "--heads", "2"], "it can over 1, 3"),
        (["rank", "--depth", "2", "--width", "3", "--prime", "91"], "next prime below is 89"),
        (["rank", "--depth", "4", "--width", "6"], "what would fit: at depth 4 a width of"),
        (["rank", "--depth", "3", "--width", "3", "--memory", "1MB"], "1 MB may be used"),
        (["rank", "--depth", "1", "--width", "12288", "--memory", "8GB"], "sample points"),
        (["rank", "--depth", "1", "--width", "600", "--memory", "1GB"], "sample points"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--causal"], "does not hold for causal"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--at", "1"], "takes no --at"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--partition", "AB"], "takes no --partition"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--out", "x"], "takes no --out"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--blocks"], "takes no --blocks"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--full-grid"], "takes no --full-grid"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--confirm"], "takes no --confirm"),
        (["rank", "--depth", "1", "--width", "2", "--every-partition", "--no-confirm"], "takes no --no-confirm"),
        (["rank", "--depth", "two", "--width", "3"], "'two' is no depth"),
        (["rank", "--depth", "3..2", "--width", "3"], "'3..2' is no depth"),
        (["rank", "--depth", "2", "--width", "3", "--positions", "0"], "are no positions"),
        (
            ["rank", "--depth", "2", "--width", "3", "--positions", "1", "--partition", "AB"],
            "give one of them",
        ),
        (["rank", "--depth", "2", "--width", "3", "--partition", "AQ"], "must name a side"),
        (["rank", "--depth", "2", "--width", "2", "--plot", "x.gif"], "must end in"),
        (["rank", "--depth", "1..2", "--width", "2", "--out", "x.json"], "need a folder"),
        (["rank", "--verify", "nowhere.json"], "no certificate"),
        (["rank", "--weights", "nowhere.npz"], "There is no file"),
        (["rank", "--softmax", "--depth", "1", "--width", "2", "--epsilon", "7"], "between 0 and 1"),
        (["bounds", "--depth", "12", "--width", "768", "--match", "6"], "Corollary 1 is about"),
        (
            ["bounds", "--depth", "2", "--width", "3", "--plot", "x.svg", "--measured", "no"],
            "no certificates in",
        ),
        (["bounds", "--depth", "2"], "--width"),
        (["bounds", "--depth", "two", "--width", "3"], "valid integer"),
    ],
)
def test_bad_input_gets_one_sentence(run: Run, words: list[str], sentence: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("deepwide: ")
    assert len(err.splitlines()) == 1
    assert sentence in err


@pytest.mark.parametrize("verb", ["bounds", "rank"])
def test_help_has_an_example(run: Run, verb: str) -> None:
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "Example" in out


def test_importing_the_package_does_not_import_torch_or_altair() -> None:
    script = "import deepwide.separation, deepwide.cli.app, sys; print({'torch', 'altair'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
