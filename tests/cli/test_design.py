"""`deepwide sweep design` as a user types it."""

import csv
from pathlib import Path

import pytest

from cli.calling import ask, call
from designing.bases import runs

BASE = """
name = "real"
[run]
batch = 8
context = 64
model.heads = 2
[iso]
params = ["10k", "40k", "160k"]
depths = [1, 2, 4, 8]
tokens = "100k"
width_multiple = 4
tolerance = 0.4
"""
WORDS = ("sweep", "design", "base.toml", "--rehearse", "2", "--target", "1M", "--budget", "3e12")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "base.toml").write_text(BASE)
    known = runs()
    with (tmp_path / "known.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("depth", "block_params", "loss"))
        table.writerows(zip(known.depth, known.block_params, known.loss, strict=True))
    return tmp_path


def test_it_says_what_to_expect_and_writes_a_sweep_and_a_picture(home: Path) -> None:
    done = call(*WORDS, "known.csv", "--to", "next.toml", "--plot", "design.svg")
    assert done.returncode == 0, done.stderr
    for words in ("Best depth at 1M: ", "expected after", "batch 1, expected", "width", "Expected time",
                  "Next: deepwide sweep run next.toml"):  # fmt: skip
        assert words in done.stdout
    assert (home / "design.svg").stat().st_size > 1000
    planned = ask("sweep", "plan", "next.toml")
    answer = ask(*WORDS, "known.csv")
    batch = [run for run in answer["runs"] if run["batch"] == 1]
    assert [cell["train_flops"] for cell in planned["cells"]] == [run["train_flops"] for run in batch]
    assert not (home / "runs").exists(), "nothing was started"


def test_a_table_with_columns_of_its_own_is_read_as_for_a_fit(home: Path) -> None:
    rows = list(csv.reader((home / "known.csv").read_text().splitlines()))[1:]
    with (home / "theirs.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("depth", "block_params", "val/c4_loss", "split"))
        table.writerows([*row, "a"] for row in rows)
        table.writerows([*row[:2], float(row[2]) * 2, "b"] for row in rows)
    mapped = ("--column", "loss=val/c4_loss")
    assert "choose one (where split=a)" in call(*WORDS, "theirs.csv", *mapped).stderr
    theirs = call(*WORDS, "theirs.csv", *mapped, "--where", "split=a")
    assert theirs.returncode == 0, theirs.stderr
    assert theirs.stdout.splitlines()[:6] == call(*WORDS, "known.csv").stdout.splitlines()[:6]


def test_without_runs_it_says_so() -> None:
    done = call(*WORDS)
    assert done.returncode == 0, done.stderr
    assert "nothing can be stated yet" in done.stdout
    assert " 2 made-up sweeps" in done.stdout.splitlines()[0]
    assert "The interval of the target if the runs show a best depth and seeds differ by 5% of loss" in done.stdout
    assert "made-up" not in call(*WORDS, "--rehearse", "0").stdout
    assert "Note: the runs so far allow no fit" in done.stdout


def test_auto_trains_to_the_end_of_the_budget(home: Path) -> None:
    toy = "name = 'toys'\n[run]\ntrainer = 'toy'\n[iso]\nparams = [64, 144]\ndepths = [1, 2, 3, 4]\ntokens = 2\n"
    (home / "toy.toml").write_text(toy + "width_multiple = 1\ntolerance = 0.4\n")
    words = ("sweep", "design", "toy.toml", "--target", "1k", "--budget", "12000", "--rehearse", "1",
             "--auto", "--runs", "out")  # fmt: skip
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert "design-001: Best depth at 1K" in done.stdout
    assert (home / "out" / "design-001.toml").exists()
    assert len(list((home / "out").glob("*/result.json"))) >= 8
    assert ask(*words)["stop"]["code"] == "budget"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--auto", "--to", "x.toml"), "--auto writes each batch"),
        (("--to", "x.json"), "must end in .toml"),
        (("--auto", "known.csv", "--where", "depth>1"), "--auto reads tables by their usual names"),
        (("--where", "depth>1"), "give one"),
        (("--sizes", "100"), "no depth has a width"),
        (("--depths", "x"), "is not one of the depths"),
        (("none.csv",), "no folder or table"),
        (("--budget", "9"), "pays for no run"),
        (("--rehearse", "-1"), "rehearsals must be a whole number from 0 to 1000"),
        (("--plot", "x.gif"), "cannot draw"),
        (("--set", "iso.dephts=[1]"), "dephts"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = call(*WORDS, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_table_in_the_place_of_the_sweep_is_named() -> None:
    done = call("sweep", "design", "known.csv", *WORDS[3:])
    assert done.returncode == 2
    assert "known.csv is no sweep: give first a .toml file" in done.stderr


def test_a_fit_that_declines_shows_no_interval(home: Path) -> None:
    rows = ["depth,block_params,loss"]
    noise = (1.0, 1.02, 0.98, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01, 0.99, 1.0, 1.02)
    cells = [(depth, size) for size in (10_000, 30_000, 100_000) for depth in (1, 2, 4, 8)]
    rows += [f"{L},{N},{3 * N**-0.1 * wiggle}" for (L, N), wiggle in zip(cells, noise, strict=True)]
    (home / "flat.csv").write_text("\n".join(rows))
    done = call(*WORDS, "flat.csv")
    assert done.returncode == 0, done.stderr
    assert "none yet" in done.stdout
    assert "Note: the runs so far show no best depth" in done.stdout


def test_a_batch_replaces_nothing_but_a_batch(home: Path) -> None:
    """`--to` had replaced the base sweep by its first batch, without a question."""
    done = call(*WORDS, "--to", "base.toml")
    assert done.returncode == 2
    assert "is the base sweep" in done.stderr
    assert (home / "base.toml").read_text() == BASE
    (home / "mine.toml").write_text("name = 'mine'")
    done = call(*WORDS, "--to", "mine.toml")
    assert done.returncode == 2
    assert "no batch of a design" in done.stderr
    assert call(*WORDS, "--to", "next.toml").returncode == 0
    assert call(*WORDS, "--to", "next.toml").returncode == 0


def test_where_there_is_no_run_to_do_an_earlier_batch_is_named(home: Path) -> None:
    (home / "next.toml").write_text("# Chosen for the best depth at 1M: 1 run.")
    done = call(*WORDS[:-1], "1e10", "--to", "next.toml")
    assert "There is no run to do: nothing was written to next.toml, which holds an earlier batch." in done.stdout
