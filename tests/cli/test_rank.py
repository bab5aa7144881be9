"""`deepwide rank` and its commands as a user meets them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide.answers import Note
from deepwide.cli import rank as rank_module
from deepwide.cli.rank import Terminal
from separation.builders import save_weights


def test_one_case_with_its_blocks() -> None:
    out = call("rank", "--depth", "2", "--width", "3", "--blocks").stdout
    assert "separation rank 49 " in out
    assert "upper bound     49 — reached, so 49 is the exact separation rank" in out
    assert "Theorem 2:      between 1 (trivial) and 2.02e8" in out
    assert "confirmed modulo 1048571 by FLINT" in out
    assert [line.split() for line in out.splitlines() if line[:1].isdigit()] == [
        ["0", "1", "1"], ["1", "6", "6"], ["2", "21", "21"], ["3", "18", "18"], ["4", "3", "3"],
    ]  # fmt: skip


def test_relations_are_shown_beside_the_bound() -> None:
    out = call("rank", "--depth", "3", "--width", "3", "--positions", "3,1", "--no-confirm").stdout
    assert "967 − 8 relations = 959 — not reached" in out


def test_the_bound_by_ideals_is_shown_where_the_proved_one_is_not_reached() -> None:
    out = call("rank", "--depth", "2", "--width", "3", "--positions", "1,2").stdout
    assert "upper bound     41 — not reached: the rank is at least 39" in out
    assert "by ideals       39 — reached" in out


def test_no_theorem_applies_on_the_threshold_and_with_as_many_heads_as_width() -> None:
    assert "none applies" in call("rank", "--depth", "1", "--width", "3").stdout
    assert "undefined here" in call("rank", "--depth", "2", "--width", "2", "--heads", "2").stdout


def test_a_long_stage_is_forecast_in_a_pipe_and_a_short_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal().stage("depth 3, width 4", 181.0) as progress:
        assert progress is None
    assert capsys.readouterr().err == "depth 3, width 4: about 3.0 min (estimated).\n"
    with Terminal().stage("depth 2, width 3", 2.0):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_range_is_forecast_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("rank", "--depth", "1..2", "--width", "2..3")
    assert "in total" not in call(*words).stderr
    from deepwide.cli import rank

    monkeypatch.setattr(rank, "WORTH_SAYING", 0.0)
    assert "4 cases: about < 1 s in total (estimated)." in call(*words).stderr


def test_the_note_on_confirming_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().note(Note.of("not-confirmed", "Not confirmed: that would take about 24.0 min", seconds=1440.0))
    assert capsys.readouterr().err.endswith("24.0 min; ask with --confirm.\n")
    assert rank_module.WORTH_SAYING <= 10


SMALL = ("rank", "--depth", "2", "--width", "2")


def sentence_of(*words: str) -> str:
    done = call(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("deepwide: ")
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 600
    return done.stderr


def test_a_certificate_is_written_verified_and_refused_when_changed(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    assert call(*SMALL, "--heads", "2", "--out", str(path)).returncode == 0
    done = call("rank", "verify", str(path))
    assert done.returncode == 0
    assert "holds: rank 17" in done.stdout
    assert "by eq. 3 and FLINT" in done.stdout
    answer = ask("rank", "verify", str(path))
    assert (answer["holds"], answer["method"], answer["independent"]) == (True, "eq3", True)
    path.write_text(path.read_text().replace('"rank": 17', '"rank": 18'))
    assert "changed after it was written" in sentence_of("rank", "verify", str(path))


def test_verify_says_when_there_is_no_other_evaluation(tmp_path: Path) -> None:
    path = str(tmp_path / "c.json")
    call(*SMALL, "--causal", "--out", path)
    out = call("rank", "verify", path).stdout
    assert "by eq. 3 (the evaluation that made it" in out
    assert "Gram" not in out
    call(*SMALL, "--out", str(tmp_path / "d.json"))
    assert "by the Gram form and FLINT" in call("rank", "verify", str(tmp_path / "d.json")).stdout


@pytest.mark.parametrize("depth", [900, 100_000])
def test_verify_of_nested_json_gets_one_sentence(tmp_path: Path, depth: int) -> None:
    (tmp_path / "c.json").write_text("[" * depth)
    sentence_of("rank", "verify", str(tmp_path / "c.json"))


def test_a_range_is_a_table_and_a_second_run_measures_nothing(tmp_path: Path) -> None:
    words = ("rank", "--depth", "1..3", "--width", "1,2", "--heads", "1..2", "--out", str(tmp_path))
    done = call(*words)
    assert done.returncode == 0
    assert "1/2" in done.stderr  # the skipped width and heads are named
    assert [line.split()[:5] for line in done.stdout.splitlines()[1:]] == [
        ["1", "1", "1", "2", "2"], ["1", "2", "1", "3", "3"], ["1", "2", "2", "3", "3"],
        ["2", "1", "1", "5", "5"], ["2", "2", "1", "18", "18"], ["2", "2", "2", "17", "17"],
        ["3", "1", "1", "14", "14"], ["3", "2", "1", "232", "232"], ["3", "2", "2", "215", "215"],
    ]  # fmt: skip
    (tmp_path / "L3-d2-H1-seed0.json").unlink()
    again = call(*words).stdout
    assert again.count("stored") == 8


@pytest.mark.slow
def test_a_range_that_is_killed_resumes_where_it_was(tmp_path: Path) -> None:
    words = ["rank", "--depth", "1..3", "--width", "1..3", "--no-confirm", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-m", "deepwide", *words], stdout=subprocess.DEVNULL)
    while len(list(tmp_path.glob("*.json"))) < 4 and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    before = {path.name for path in tmp_path.glob("*.json")}
    done = call(*words)
    assert done.returncode == 0
    assert done.stdout.count("stored") == len(before) >= 4
    assert len(list(tmp_path.glob("*.json"))) == 9


@pytest.mark.slow
def test_a_long_case_that_is_killed_resumes_with_its_finished_blocks(tmp_path: Path) -> None:
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
    done = call(*words)
    assert done.returncode == 0
    assert f"Resuming with {finished} finished block" in done.stderr
    assert "separation rank 4263" in done.stdout
    assert not part.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not JSON"), ("{}", "not a certificate of this program"), (None, "another measurement")],
)
def test_a_torn_or_foreign_file_stops_the_run(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "L2-d2-H1-seed0.json"
    if content is None:
        call("rank", "--depth", "2", "--width", "3", "--out", str(path))
    else:
        path.write_text(content)
    before = path.read_bytes()
    assert words in sentence_of(*SMALL, "--out", str(tmp_path))
    assert path.read_bytes() == before


def test_a_changed_weight_file_stops_the_run(tmp_path: Path) -> None:
    weights = save_weights(tmp_path / "w.npz", 0)
    words = ("rank", "--weights", str(weights), "--out", str(tmp_path / "ranks"))
    assert call(*words).returncode == 0
    assert "nothing was measured" in call(*words).stdout
    save_weights(weights, 1)
    assert "it has changed" in sentence_of(*words)


@pytest.mark.parametrize(
    ("extra", "sure"),
    [([], True), (["--no-confirm"], False), (["--prime", "65521"], False)],
)
def test_almost_surely_is_claimed_only_for_two_large_primes(extra: list[str], sure: bool) -> None:
    done = call(*SMALL, "--weights", "identity", *extra)
    assert done.returncode == 0
    assert ("almost surely" in done.stdout) is sure
    assert ("separation rank at least" in done.stdout) is not sure


def test_almost_surely_is_not_claimed_for_weights_from_a_file(tmp_path: Path) -> None:
    import numpy as np

    names = [f"{layer}.{name}" for layer in range(2) for name in ("query", "key", "value", "output")]
    np.savez(tmp_path / "w.npz", **{name: np.eye(2) for name in names})  # type: ignore[arg-type]
    done = call("rank", "--weights", str(tmp_path / "w.npz"))
    assert "separation rank at least" in done.stdout
    assert "almost surely" not in done.stdout


def test_a_small_prime_is_confirmed_or_found_out() -> None:
    done = call(*SMALL, "--weights", "identity", "--prime", "11")
    assert done.returncode in (0, 2)
    assert "almost surely" not in done.stdout
    assert done.returncode == 0 or "modulo 11" in done.stderr


@pytest.mark.parametrize(
    "extra", [["--causal"], ["--residual"], ["--positions", "1"], ["--positions", "3,2"], ["--weights", "identity"]]
)
def test_the_theorems_are_not_shown_for_other_networks(extra: list[str]) -> None:
    assert "Theorem 2" in call(*SMALL).stdout
    assert "Theorem" not in call(*SMALL, *extra).stdout


def test_running_out_of_memory_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.cli import rank

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(rank, "certify", full)
    assert "not enough memory" in sentence_of("rank", "--depth", "1", "--width", "2")


def test_other_networks() -> None:
    for extra, rank in (
        (["--residual"], 18),
        (["--causal"], 18),
        (["--full-grid"], 18),
        (["--positions", "1"], 15),
        (["--partition", "ABBA", "--at", "1"], 18),
        (["--weights", "identity"], 17),
        (["--prime", "65521", "--seed", "4"], 18),
    ):
        assert ask(*SMALL, *extra)["rank"] == rank, extra


def test_weights_from_a_file_need_no_shape(tmp_path: Path) -> None:
    done = call("rank", "--weights", str(save_weights(tmp_path / "w.npz", 0, width=3)), "--heads", "3")
    assert done.returncode == 0
    assert "separation rank 43" in done.stdout


def test_every_balanced_partition() -> None:
    answer = ask("rank", "partitions", "--depth", "2", "--width", "2")
    assert answer["same"] is True
    assert [row["partition"] for row in answer["partitions"]] == ["AABB", "ABAB", "ABBA"]
    out = call("rank", "partitions", "--depth", "1", "--width", "2", "--prime", "65521").stdout
    assert "modulo 65521 and, by FLINT, 1048571" in out


def test_softmax_is_marked_as_numerical(tmp_path: Path) -> None:
    words = ("rank", "softmax", "--depth", "1..2", "--width", "4", "--points", "40")
    done = call(*words, "--plot", str(tmp_path / "s.svg"))
    assert done.returncode == 0
    assert "numerical" in done.stdout
    assert (tmp_path / "s.svg").exists()
    answer = ask(*words)
    assert answer["numerical"] is True
    assert len(answer["shapes"][0]["values"]) == 40


def test_a_dry_run_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.cli import rank

    monkeypatch.setattr(rank, "certify", lambda *_, **__: pytest.fail("measured"))
    done = call("rank", "--depth", "2..3", "--width", "4", "--dry-run", "--memory", "8GB")
    assert done.returncode == 0
    assert "11437" in done.stdout
    assert "Nothing was measured" in done.stdout
    answer = ask("rank", "--depth", "2..3", "--width", "4", "--dry-run", "--memory", "8GB")
    assert [case["largest_block"] for case in answer["cases"]] == [56, 11437]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["verify", "c.json"], ["--blocks"]),
        (["verify", "c.json"], ["--seed", "1"]),
        (["verify", "c.json"], ["--out", "x"]),
        (["verify", "c.json"], ["--depth", "2"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--causal"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--at", "1"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--partition", "AB"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--out", "x"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--blocks"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--full-grid"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--confirm"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--no-confirm"]),
        (["partitions", "--depth", "1", "--width", "2"], ["--plot", "x.svg"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--partition", "AB"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--at", "1"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--residual"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--prime", "7"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--blocks"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--full-grid"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--confirm"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--memory", "1GB"]),
        (["softmax", "--depth", "1", "--width", "2"], ["--out", "x"]),
        (["--depth", "1", "--width", "2"], ["--epsilon", "1e-3"]),
        (["--depth", "1", "--width", "2"], ["--points", "9"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_an_option_that_means_nothing_does_not_exist(words: list[str], option: list[str]) -> None:
    assert f"No such option: {option[0]}" in sentence_of("rank", *words, *option)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seed", "3", "verify", "c.json"], "takes its own options, after its name, not --seed"),
        (["--depth", "2", "softmax"], "takes its own options, after its name, not --depth"),
        (["--depth", "1", "--width", "2", "--dry-run", "--plot", "x.svg"], "--dry-run measures nothing"),
        (["--depth", "1", "--width", "2", "--dry-run", "--blocks"], "--dry-run measures nothing"),
        (["--depth", "1", "--width", "2", "--json", "--blocks"], "leave out --blocks"),
        ([], "--depth is missing"),
        (["--depth", "2"], "--width is missing"),
        (["--depth", "0", "--width", "2"], "depth must be at least 1"),
        (["--depth", "2", "--width", "3", "--heads", "2"], "it can over 1, 3"),
        (["--depth", "2", "--width", "3", "--heads", "0"], "heads must be at least 1"),
        (["--depth", "2", "--width", "3", "--prime", "91"], "next prime below is 89"),
        (["--depth", "6", "--width", "2", "--positions", "1", "--prime", "11863279"], "are not exact"),
        (["--depth", "4", "--width", "6"], "what would fit: at depth 4 a width of"),
        (["--depth", "3", "--width", "3", "--memory", "1MB"], "1 MB may be used"),
        (["--depth", "1", "--width", "12288", "--memory", "8GB"], "sample points"),
        (["--depth", "1", "--width", "600", "--memory", "1GB"], "sample points"),
        (["--depth", "two", "--width", "3"], "'two' is no depth"),
        (["--depth", "3..2", "--width", "3"], "'3..2' is no depth"),
        (["--depth", "1..999999999999", "--width", "3"], "is no depth"),
        (["--depth", "2", "--width", "3", "--positions", "0"], "are no positions"),
        (["--depth", "2", "--width", "3", "--positions", "1", "--partition", "AB"], "give one of them"),
        (["--depth", "2", "--width", "3", "--partition", "AQ"], "must name a side"),
        (["--depth", "2", "--width", "2", "--plot", "x.gif"], "must end in"),
        (["--depth", "1..2", "--width", "2", "--out", "x.json"], "need a folder"),
        (["--weights", "nowhere.npz"], "There is no file"),
        (["--weights", "/dev/zero"], "not a regular file"),
        (["verify", "nowhere.json"], "There is no file"),
        (["verify", "/dev/zero"], "not a regular file"),
        (["verify"], "Missing argument"),
        (["partitions", "--depth", "1", "--width", "9"], "at most 6 per side"),
        (["softmax", "--depth", "1", "--width", "2", "--epsilon", "7"], "between 0 and 1"),
        (["softmax", "--depth", "1", "--width", "2", "--weights", "identity"], "not identity"),
        (["foo"], "No such command"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_bad_input_gets_one_sentence(words: list[str], sentence: str) -> None:
    assert sentence in sentence_of("rank", *words)


@pytest.mark.parametrize("words", [["rank"], ["rank", "verify"], ["rank", "partitions"], ["rank", "softmax"]])
def test_help_has_an_example(words: list[str]) -> None:
    done = call(*words, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


def test_structured_weights_prove_a_lower_bound(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    done = call("rank", "structured", "--depth", "2", "--width", "2", "--out", str(file))
    assert "separation rank of generic weights 18: proved from both sides" in done.stdout
    assert "at least 18 and at most 18" in call("rank", "verify", str(file)).stdout
    again = call("rank", "structured", "--depth", "2", "--width", "2", "--out", str(file))
    assert again.returncode == 2
    assert "exists" in again.stderr
