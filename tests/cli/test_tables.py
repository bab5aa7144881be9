"""What is printed for people: nothing cut, nothing interpreted, guesses marked."""

import json
from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide.answers import Interval
from deepwide.cli.tables import depth_span, percent, span
from deepwide.laws import TransitionLaw, published_laws, save_law


def test_intervals_in_words() -> None:
    assert percent(Interval(5.06, -1.02, 11.52)) == "+5.06% (-1.02 to +11.52)"  # asymmetric: no ±
    assert percent(None) == percent(Interval(1.0)) == "no data"
    assert span(Interval(42.21, 40.4, 44.0)) == "42.2 (95%: 40.4 to 44.0)"
    assert span(Interval(42.21)) == depth_span(Interval(42.21)) == "42.2"
    assert depth_span(Interval(23.7, 15.3, 45_453.4)) == "23.7 (95%: 15.3 to no upper limit)"
    assert depth_span(Interval(23.7, 15.3, 45.4)) == "23.7 (95%: 15.3 to 45.4)"


def test_numbers_are_never_cut_off_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert "405,853,388,800" in call("models", "llama-3").stdout
    assert "158,140,695,838,720" in call("count", "llama-3-8b").stdout


def test_no_line_ends_in_spaces() -> None:
    for words in (("plan", "1.3B"), ("audit", "gpt2"), ("count", "gpt2"), ("models",), ("laws",)):
        assert [line for line in call(*words).stdout.splitlines() if line != line.rstrip()] == []


def test_a_guess_is_marked_and_its_note_comes_first(tmp_path: Path) -> None:
    """Newcomer's review, S7: ten digits, as if exact, and the note last."""
    config = tmp_path / "config.json"
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256}
    config.write_text(json.dumps({"model_type": "newnet", "vocab_size": 99} | sizes))
    for verb in ("count", "audit"):
        shown = call(verb, str(config)).stdout
        assert "≈" in shown
        assert shown.index("is unknown") < shown.index("≈")
        assert ask(verb, str(config)) if verb == "audit" else not ask(verb, str(config))["exact"]


def test_brackets_in_a_name_are_shown_as_they_are(tmp_path: Path) -> None:
    """A file called [/x] ended in rich's MarkupError."""
    folder = tmp_path / "[bold][/x]"
    assert call("count", "gpt2", "--save", str(folder / "config.json")).returncode == 0
    for words in (("audit", str(folder)), ("count", str(folder)), ("audit", str(folder), "gpt2")):
        done = call(*words)
        assert done.returncode == 0, done.stderr
        assert "[/x]" in done.stdout.replace("\n", "")
    law = TransitionLaw(name="[/mine]", about="[red]", a=5.0, b=0.05, status="[/]")
    path = save_law(law, tmp_path / "law.json")
    for words in (("plan", "1.3B"), ("audit", "gpt2"), ("audit", "gpt2", "gpt2-xl")):
        done = call(*words, "--law", str(path))
        assert (done.returncode, done.stderr) == (0, "")
        assert "[/mine]" in done.stdout


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_word_is_cut_in_a_narrow_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newcomer's review, S14: "Depth-to-Widt", "instea"."""
    commands = (("laws",), ("plan", "1.3B"), ("audit", "gpt2"), ("audit", "gpt2", "llama-3-8b", "qwen3-30b-a3b"))
    for words in commands:
        monkeypatch.delenv("COLUMNS", raising=False)
        wide = {word for word in call(*words).stdout.split() if word.isalpha()}
        monkeypatch.setenv("COLUMNS", str(columns))
        narrow = call(*words).stdout
        assert {word for word in narrow.split() if word.isalpha()} <= wide
        assert max(map(len, narrow.splitlines())) <= columns


@pytest.mark.parametrize("columns", [60, 80, 110, 140])
def test_no_citation_is_cut_at_any_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 110 columns `deepwide laws` printed "(arXiv 2001.083"."""
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = call("laws").stdout
    for word in (word for law in published_laws().values() for word in law.citation.split()):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_a_block_of_lines_begins_with_a_name_not_a_bare_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = call("plan", "1.3B").stdout.splitlines()
    assert "depth 21" in lines
    assert "21" not in lines
    assert "levine" in lines  # a name needs no other


def test_the_weights_of_training_and_of_inference_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = call("count", "gpt2").stdout.splitlines()
    assert {"training weights", "inference weights"} <= set(lines)
    assert "weights" not in lines


def test_a_law_beyond_its_sizes_is_warned_about_beside_the_shape(tmp_path: Path) -> None:
    """3,000 times outside the fitted sizes, and the warning was the second-to-last paragraph."""
    law = TransitionLaw(name="small", a=5.0, b=0.05, fitted_block_params=(1e5, 4e5))
    path = save_law(law, tmp_path / "law.json")
    for words in (("plan", "1.3B"), ("audit", "gpt2-xl")):
        shown = call(*words, "--law", str(path)).stdout
        assert shown.count("Warning") == 1
        assert shown.index("Warning: the small law is extrapolated by a factor 3,") < shown.index("parameters  ")
        assert "Note: the small law is extrapolated" not in shown


def test_models_share_the_line_that_the_law_is_extrapolated() -> None:
    shown = " ".join(call("audit", "gpt3-175b", "llama-3-8b").stdout.split())
    assert "gpt3-175b, llama-3-8b: the levine law is extrapolated: fitted on 3.34M to 2.83B block parameters." in shown
