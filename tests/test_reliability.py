"""Hostile inputs and breaks of our own code, in small: at length by benchmarks/fuzz.py and benchmarks/mutations.py."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as bench
from benchmarks import fuzz, mutations
from benchmarks.mutants import MUTANTS

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_damaged_inputs_of_every_format_get_an_answer_or_a_sentence() -> None:
    result = fuzz.fuzz_all(700, seed=2026, only=[name for name in fuzz.FORMATS if name != "bomb"])
    assert {name: row["wrong"] for name, row in result["formats"].items() if row["wrong"]} == {}
    assert result["formats_above_1_GB"] == 0
    assert result["inputs"] > 690


def test_an_input_that_goes_wrong_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a reader that raises, one that never ends, and one that writes escapes are each found."""

    def ask(path: Path, draw: object) -> None:
        del draw
        if len(path.read_bytes()) % 2:
            raise KeyError("x")
        while True:
            pass

    monkeypatch.setattr(fuzz, "LONGEST_CPU", 0.05)
    made = fuzz.FORMATS["compute law"]
    monkeypatch.setitem(fuzz.FORMATS, "compute law", made._replace(ask=ask))
    wrong = fuzz.fuzz("compute law", 0, 8, 0, tmp_path)["wrong"]
    assert {each["what"].split(":")[0] for each in wrong} == {"KeyError", "TooLong"}
    monkeypatch.setattr("deepwide.cli.main", lambda: print("\x1b[31m"))
    with pytest.raises(fuzz.Wrong, match="reaches the terminal"):
        fuzz.call("plan", "1B")


def test_the_same_seed_gives_the_same_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    made = fuzz.FORMATS["compute law"]
    ask = made._replace(ask=lambda path, _: seen.append(path.read_bytes()))
    monkeypatch.setitem(fuzz.FORMATS, "compute law", ask)
    fuzz.fuzz("compute law", 0, 6, 3, tmp_path / "one")
    fuzz.fuzz("compute law", 0, 3, 3, tmp_path / "two")
    fuzz.fuzz("compute law", 3, 3, 3, tmp_path / "three")
    assert seen[:6] == seen[6:]
    assert len(set(seen)) > 3


def test_every_mutant_fits_its_file_and_names_tests_that_exist() -> None:
    for mutant in MUTANTS:
        text = (ROOT / "src" / "deepwide" / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file}: {mutant.name}"
        assert all((ROOT / path.partition("::")[0]).is_file() for path in mutant.tests)
        assert all(mutations._exists(path) for path in mutant.tests if "::" in path)
        assert mutant.old != mutant.new
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert len({(mutant.file, mutant.name) for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.review for mutant in MUTANTS) == 44


def test_mutants_that_survive_or_do_not_fit_are_counted_as_such(tmp_path: Path) -> None:
    rows = [{"file": "a", "name": str(i), "review": i < 2, "outcome": outcome, "key": str(i), "by": "", "seconds": 1}
            for i, outcome in enumerate(("killed", "survived", "stale"))]  # fmt: skip
    summary = mutations.summary(rows)
    assert summary["all"] == {"mutants": 3, "killed": 1, "share": 0.3333}
    assert summary["of the review"]["share"] == 0.5
    assert summary["survivors"] == ["a: 1", "a: 2"]
    source = tmp_path / "deepwide"
    source.mkdir()
    (source / "files.py").write_text("nothing")
    assert mutations.apply(next(m for m in MUTANTS if m.file == "files.py"), source) is None


@pytest.mark.parametrize("name", ["fuzz", "mutations"])
def test_what_is_committed_met_its_aims(name: str) -> None:
    """The last full runs: `python -m benchmarks.fuzz` and `python -m benchmarks.mutations`."""
    path = ROOT / "results" / "reliability" / f"{name}.json"
    result: dict[str, Any] = {"inputs": 0, "not run": len(MUTANTS)}
    if path.exists():
        result = json.loads(path.read_text())
    if name == "fuzz":
        if result["inputs"] < 20_000:
            pytest.skip(f"{result['inputs']} of 20,000 inputs were tried: run python -m benchmarks.fuzz")
        assert result["uncaught"] == result["longer_than_10_s"] == result["formats_above_1_GB"] == 0
        return
    if result["not run"]:
        pytest.skip(f"{result['not run']} of {len(MUTANTS)} mutants were not run: run python -m benchmarks.mutations")
    assert result["of the review"]["share"] >= mutations.AIM
    assert result["all"]["share"] >= mutations.AIM


def test_make_bench_measures_whatever_is_committed() -> None:
    """Every command that a committed result names is a step of `make bench`, or says why it is none."""
    beside_others = ("studies.", "separation.block", "separation.rivals")  # other people's code, or one block alone
    steps = {step.module for step in bench.STEPS}
    named = set()
    for path in (ROOT / "results").rglob("*.json"):
        named |= set(re.findall(r'"python -m benchmarks\.([a-z_.]+)', path.read_text(encoding="utf-8")))
    assert len(named) > 12
    assert sorted(name for name in named - steps if not name.startswith(beside_others)) == []
    assert all(importlib.util.find_spec(f"benchmarks.{module}") for module in steps)
    assert {"fuzz", "mutations", "latency", "evidence", "sweep_scale", "web.load"} <= steps


def test_a_benchmark_that_fails_does_not_stop_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    steps = [bench.Step("none"), bench.Step("journeys", "--no-such-option"), bench.Step("journeys", "--help")]
    assert bench.run(steps) == ["none", "journeys"]
    said = capfd.readouterr().err
    assert "journeys: ended with 0" in said
    with pytest.raises(SystemExit):
        bench.main(["--skip", "nonsense"])
    assert "there is no benchmark 'nonsense'" in capfd.readouterr().err


def test_what_this_machine_lacks_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "DATA", tmp_path / "none")
    assert bench.run([bench.Step("evidence", "--data DATA", "data")]) == []
    assert "evidence: skipped, no development data" in capfd.readouterr().err
