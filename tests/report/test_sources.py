"""What a source is, is seen from it; what it is not is one sentence."""

import json
import os
from pathlib import Path

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.planning import audit, plan
from deepwide.report import make_report, sources
from report.parts import write_runs


def test_json_of_plans_and_audits_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    for answer, document in (
        (plan("1.3B"), plan("1.3B").model_dump(mode="json")),
        (audit("gpt2"), audit("gpt2").model_dump(mode="json")),
        (audit("gpt2"), [audit("gpt2").model_dump(mode="json")]),
    ):
        file.write_text(json.dumps(document))
        assert make_report(file).sections == make_report(answer).sections
    file.write_text(json.dumps([audit("gpt2").model_dump(mode="json"), {"name": "b.json", "error": "no such file"}]))
    assert "b.json" in str(make_report(file).sections[0])


def test_words_are_budgets_or_models_and_configs_are_models(tmp_path: Path) -> None:
    assert make_report("350M").kind == "plan"
    assert make_report("llama-3-8b").kind == "audit"
    config = deepwide.write_config(deepwide.find_model("llama-3-8b").shape, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert make_report(tmp_path).kind == make_report(tmp_path / "config.json").kind == "audit"


def test_one_run_is_a_folder_of_runs_too(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", 2, unfinished=1)
    assert {make_report(run).kind for run in runs.iterdir()} == {"sweep"}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "it is not JSON"),
        ("a.json", "[" * 100_000, "is not a plan, an audit, a fit, a sweep's state, a study or a config"),
        ("a.json", "{}", "is none of these: a report is made of"),
        ("a.json", "[]", "is none of these"),
        ("a.json", '{"budget_kind": "block"}', "is not a Plan of this version"),
        ("a.json", '[{"depth_over_law": 1}]', "is not a Audit of this version"),
        ("a.json", '[{"depth_over_law": 1}, 3]', "is not a"),
        ("a.json", '{"names": [], "covariance": []}', "save the whole fit"),
        ("a.json", '{"format": "deepwide-fit-1"}', "is not a fit"),
        ("a.json", '{"format": "deepwide-law-1", "law": {}}', "is a fitted law, without the runs behind it"),
        ("a.toml", "name = ", "is not TOML"),
        ("a.toml", "[project]\nname = 'x'\n", "is no sweep: it has neither [grid] nor [iso] nor [run]"),
        ("a.toml", "#" * (1 << 20) + "\n", "larger than 1 MiB"),
        ("a.csv", "a,b\n1,2\n", "loss"),
        ("a.docx", "x", "is none of these"),
    ],
)
def test_what_it_is_not_is_one_sentence(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DeepwideError) as error:
        make_report(tmp_path / name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_folders_that_are_nothing_or_too_much(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="has no run, no study"):
        make_report(tmp_path)
    write_runs(tmp_path / "one", 2)
    with pytest.raises(DeepwideError, match=r"is not a folder of runs but holds one: give .*/one\."):
        make_report(tmp_path)
    write_runs(tmp_path / "two", 2)
    with pytest.raises(DeepwideError, match=r"holds 2 folders of runs \(one, two\): give one of them"):
        make_report(tmp_path)
    for name in ("a", "b"):
        (tmp_path / "studies" / name).mkdir(parents=True)
        (tmp_path / "studies" / name / "study.json").touch()
    with pytest.raises(DeepwideError, match=r"holds 2 studies \(a, b\)"):
        make_report(tmp_path / "studies")
    (tmp_path / "started.json").write_text("{}")
    with pytest.raises(DeepwideError, match="has not finished"):
        make_report(tmp_path)


def test_a_huge_file_and_one_that_is_none_are_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "a.json", "wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(DeepwideError, match="larger than 64 MiB"):
        make_report(tmp_path / "a.json")
    with open(tmp_path / "a.csv", "wb") as file:
        file.truncate(1 << 29)
    with pytest.raises(DeepwideError, match="larger than 256 MiB"):
        make_report(tmp_path / "a.csv")
    os.mkfifo(tmp_path / "b.json")
    with pytest.raises(DeepwideError, match="not a regular file"):
        make_report(tmp_path / "b.json")


@pytest.mark.parametrize("source", ["nothing-like-it", "no/such", "no.csv", Path("nowhere"), "", "-5", "5 apples"])
def test_what_does_not_exist_is_one_sentence(
    source: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeepwideError):
        make_report(source)


def test_settings_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="no kind of fit 'rigde': did you mean 'ridge'"):
        make_report("1B", fit="rigde")
    with pytest.raises(DeepwideError, match="is given beside a sweep's TOML file, and '1B' is none"):
        make_report("1B", runs=tmp_path)
    with pytest.raises(DeepwideError, match="did you mean 'llama-3-8b'"):
        make_report("llama-3-9b")
    with pytest.raises(DeepwideError, match="there is no report of"):
        make_report(3)


def test_every_kind_of_answer_is_known_by_its_name() -> None:
    """The types are named, not imported: a report of a plan must not load torch or scipy."""
    from deepwide.fitting import Fit
    from deepwide.studies import StudyResult
    from deepwide.sweeping import SweepState

    text = Path(sources.__file__).read_text()
    kinds: tuple[type, ...] = (*Fit.__subclasses__(), StudyResult, SweepState)
    for answer in kinds:
        assert f'"{answer.__name__}"' in text
