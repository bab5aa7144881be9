"""`deepwide evidence`: the table, the judgement, a set added from a table and planned with."""

import csv
import json
from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide.pooling import evidence, load_set, save_set
from pooling.builders import bowl_rows, made_set


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    rows = bowl_rows()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_table_has_every_set_and_the_pooled_answer() -> None:
    done = call("evidence")
    assert done.returncode == 0, done.stderr
    for words in ("gemstones", "morph", "ours (small)", "for a set not seen yet", "one cost serves all"):
        assert words in done.stdout
    assert ask("evidence")["ratio_new"]["value"] == pytest.approx(evidence().ratio_new.value)


def test_every_law_is_judged() -> None:
    done = call("evidence", "--judge")
    assert "fitted on it" in done.stdout
    assert "Rule: pooled if" in done.stdout
    assert ask("evidence", "--judge")["verdict"]["outcome"] == "levine"


def test_a_table_becomes_a_set_that_is_pooled_and_planned_with(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    done = call("evidence", "add", str(table), "--name", "mine", "--about", "made up", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "best depth" in done.stdout
    each = load_set(out)
    assert each.command.startswith("deepwide evidence add")
    assert "mine" in {row["name"] for row in ask("evidence", "--with", str(out))["sets"]}
    law = tmp_path / "law.json"
    call("evidence", "--with", str(out), "--law", str(law))
    with_set, with_law = ask("plan", "300M", "--evidence", str(out)), ask("plan", "300M", "--law", str(law))
    assert with_set["law"] == "pooled"
    assert with_set["law_depth"] == pytest.approx(with_law["law_depth"])
    assert with_set["law_depth"]["value"] != ask("plan", "300M", "--law", "pooled")["law_depth"]["value"]


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    path = save_set(made_set(), tmp_path / "made.json")
    for words, sentence in (
        (("evidence", "--with", str(tmp_path / "no.json")), "there is no set of evidence"),
        (("evidence", "--without", "nobody"), "there is no set 'nobody'"),
        (("evidence", "add", str(tmp_path / "no.csv"), "--name", "a", "--about", "b"), "there is no folder or table"),
        (("plan", "1B", "--law", "nanochat", "--evidence", str(path)), "--evidence plans with the pooled law"),
        (("evidence", "--plot", "forest.txt"), "the name must end in"),
    ):
        done = call(*words)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    done = call("evidence", "--plot", str(tmp_path / "forest.json"))
    assert "Saved the picture" in done.stdout
    assert json.loads((tmp_path / "forest.json").read_text())["title"]["text"] == "Every public depth × width set"
