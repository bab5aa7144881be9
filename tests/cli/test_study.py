"""`deepwide study`: the list, one study explained, a run, a dry run; mistakes cost a sentence and exit code 2."""

from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide.studies import registry
from studies.fakes import Toys


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "studies", lambda: {"toys": Toys()})
    monkeypatch.setattr("deepwide.studies.studies", lambda: {"toys": Toys()})
    monkeypatch.chdir(tmp_path)


QUICK = ("study", "run", "toys", "--set", "depths=[1]", "--set", "steps=5")


def test_the_list_names_every_study_with_its_question() -> None:
    done = call("study")
    assert done.returncode == 0
    assert "toys" in done.stdout
    assert "Do toys finish?" in done.stdout
    assert [study["name"] for study in ask("study")] == ["toys"]


def test_a_study_is_explained_with_its_rules_and_what_it_costs() -> None:
    done = call("study", "show", "toys")
    for words in ("every toy finishes", "reproduced if all runs are done", "Toys are trained.", "cpu    trains 2 runs"):
        assert words in done.stdout
    shown = ask("study", "show", "toys")
    assert [preset["runs"] for preset in shown["presets"]] == [2, 2, 3]
    assert shown["claims"][0]["rule"] == "reproduced if all runs are done"


def test_a_run_ends_in_verdicts_and_a_folder(tmp_path: Path) -> None:
    done = call(*QUICK)
    assert done.returncode == 0, done.stderr
    assert "reproduced: every toy finishes Measured: 1 (95%: 1 to 1)." in done.stdout
    assert "toys: 1 of 1 run finished" in done.stderr
    assert (tmp_path / "studies" / "toys-quick" / "page.md").exists()
    again = ask(*QUICK, "--out", "studies/toys-quick")
    assert again["verdicts"][0]["outcome"] == "reproduced"
    assert again["settings"] == {"depths": [1], "steps": 5}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert ask(*QUICK, "--dry-run")["runs"] == 1
    assert "quick  trains 1 run" in call(*QUICK, "--dry-run").stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("show", "toy"),
        ("run", "tyos"),
        ("run", "toys", "--set", "step=1"),
        ("run", "toys", "--set", "steps"),
        ("run", "toys", "--out", "file"),
    ],
)
def test_a_mistake_costs_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = call("study", *words)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.strip().endswith((".", "?"))
