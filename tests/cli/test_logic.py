"""`deepwide logic` as a user meets it."""

from pathlib import Path

import pytest

from cli.calling import ask, call


def test_a_formula_is_shown_in_all_its_forms() -> None:
    done = call("logic", "P(a & (c S< a))", "--word", "bacca")
    assert done.returncode == 0, done.stderr
    for part in (
        "P (a & c S< a)",
        "depth 2, read at the last position, alphabet abc",
        "3 states, syntactic monoid of 6 elements",
        "yes: masked hard attention recognises it",
        "2 layers × 6 wide, 2 heads of 2, feed-forward of 1",
        "P1 := rightmost[j<i, !Q_c | Q_a] Q_a : 0",
        "n = 1: aab (in) and ab (out)",
        "formula yes, program yes, network yes, automaton yes",
    ):
        assert part in done.stdout


def test_json_is_the_answer() -> None:
    answer = ask("logic", "/(ab)*/", "--word", "aba")
    assert answer["star_free"] is True
    assert answer["answers"] == dict.fromkeys(("formula", "program", "network", "automaton"), False)
    assert [(each["low"], each["high"]) for each in answer["least"]] == [(2, 2)] * 3
    assert len(answer["looks"][0]["positions"]) == 3


def test_what_no_depth_recognises_is_said() -> None:
    done = call("logic", "/(aa)*/")
    assert "no: the powers of a never settle" in done.stdout
    assert "Least depth" not in done.stdout


def test_a_picture_and_a_network_are_saved(tmp_path: Path) -> None:
    picture, folder = tmp_path / "looks.svg", tmp_path / "net"
    done = call("logic", "Y a", "--word", "ab", "--plot", str(picture), "--save", str(folder), "--no-search")
    assert done.returncode == 0, done.stderr
    assert "Where the heads look on ab" in picture.read_text()
    assert {file.name for file in folder.iterdir()} == {"config.json", "model.safetensors"}
    assert str(folder) in done.stdout


def test_a_program_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "two.brasp"
    file.write_text("P := rightmost[j<i, 1] Q_a : 0\nR := rightmost[j<i, 1] P : 0\n")
    assert ask("logic", str(file), "--alphabet", "ab", "--no-search")["program_depth"] == 2


def test_two_words_are_compared_by_rank() -> None:
    answer = ask("logic", "aaa", "--compare", "--word", "aaaa")
    assert (answer["first_order"], answer["counting"]) == (3, 1)
    done = call("logic", "ab", "--compare", "--word", "ba")
    assert "counting logic with order: rank 2 tells ab and ba apart" in done.stdout
    assert "ab is given twice" in call("logic", "ab", "--compare", "--word", "ab").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a S< (b"], "cannot be read at the end"),
        (["a", "--plot", "x.svg"], "it needs --word"),
        (["a", "--compare"], "needs a second word"),
        (["none.brasp"], "cannot read none.brasp: No such file"),
        (["a", "--word", "b!"], "is made of a to z"),
        (["/(aa)*/", "--save", "x"], "no network to save"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(words: list[str], sentence: str) -> None:
    done = call("logic", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
