"""The sentence of every note."""

import inspect

import pytest

from deepwide.answers import Interval
from deepwide.fitting import words

NUMBERS = {
    "rows": 2, "count": 2, "depth": 8.0, "size": 3e5, "share": 0.25, "ratio": 7.0, "spare": 1, "runs": 4, "diverged": 1,
    "shallow": 2, "deep": 4, "depths": [2, 4], "noises": [0.01, 0.02], "minimum": 1.5, "lengths": 4, "exponent": True,
    "value": 3.5, "low": 1.0, "high": 4.0, "row": 26, "others_in_group": 1, "errors": 1.4, "others": 2, "resamples": 50,
    "inside": 0, "percent": 12.0, "flops": 1e20, "left_out": 3, "blank": True, "words": {"queued": 2},
    "probability": 0.6, "correlation": 0.9, "inflation": 45.0, "skew": 0.3, "largest": 4e6, "known": 1e6,
    "total": 68.0, "factor": 3.0, "moved": 7.9, "blocks": 12.0, "times": 450.0, "seen": True, "best": 9.5,
    "expected": 2.1, "loss": 2.5, "shapes": 3, "settings": {"batch": [8.0, 16.0], "optimizer": ["adam", "lion"]},
    "groups": ["depth 2 at 10K", "depth 4 at 20K"], "by": 1.2, "length": 8e6, "at": 2e5, "width": 4.0, "least": 20.0,
}  # fmt: skip


@pytest.mark.parametrize("code", sorted(words._TEXTS))
def test_every_note_is_a_short_line_without_options(code: str) -> None:
    asked = inspect.signature(words._TEXTS[code]).parameters
    data = {name: NUMBERS.get(name, "<=" if name == "sign" else name) for name in asked}
    if code in ("losses-several", "losses-unread"):
        data["others"] = ["val_loss"]
    note = words.note(code, **data)
    assert note.code == code
    assert dict(note.data) == data
    assert 10 < len(str(note)) < 300
    assert "\n" not in str(note)
    assert "--" not in str(note)
    assert not str(note).endswith(".")


def test_a_note_says_its_numbers() -> None:
    assert "14%" in str(words.note("crossing-vanishes", shallow=4, deep=8, share=0.14))
    assert "1 group determines its own fit" in str(words.note("leverage", count=1, depth=16.0, size=156_000.0))
    assert "3 groups determine their own fit" in str(words.note("leverage", count=3, depth=16.0, size=156_000.0))


def test_one_run_is_not_runs() -> None:
    assert str(words.note("runs-failed", count=1)).startswith("1 run failed or has no loss: left out, it says")
    assert str(words.note("runs-failed", count=2)).startswith("2 runs failed or have no loss: left out, they say")
    assert str(words.note("runs-diverged", count=1)).startswith("1 run diverged: its loss is")
    assert str(words.note("status-unknown", count=1, words={"x": 1})).startswith("1 run has a status")
    assert str(words.note("rows-repeated", count=1, left_out=True)).startswith("1 row repeats another row")
    assert "1 other run left out" in str(words.note("best-settings", names=["batch"], left_out=1, diverged=0))


def test_many_names_are_counted() -> None:
    assert "'a', 'b', 'c', 'd', 'e' and 2 more, which" in str(words.note("settings-differ", names=list("abcdefg")))
    several = words.note("settings-by-shape", settings={"batch": [8.0, 64.0], "wd": [0.0, 0.1]})
    assert str(several).startswith(
        "shapes of similar sizes differ in 'batch' and 'wd' (the first 8 and 64): what they do"
    )


def test_numbers_for_reading() -> None:
    assert words.joined(["1", "2", "4"]) == "1, 2 and 4"
    assert words.joined(["1"]) == "1"
    assert words.show_size(None) == "no limit"
    assert words.show_size(48_210) == "48.2K"
    assert words.show_interval(Interval(3.0, 2.5, 4.0)) == "3 (2.5 to 4)"
    assert words.show_interval(Interval(3.0)) == "3"
    assert words.show_depth(Interval(3.0, 2.5, 4.0)) == "3 (2.5 to 4)"
    assert words.show_depth(Interval(26.0, 16.0, 5.4e4)) == "26 (16 to no upper limit)"
    assert words.noise_by_depth({1: 0.022, 2: 0.0087}) == "2.2, 0.87% of loss at 1 and 2 layers"


@pytest.mark.parametrize(
    ("times", "start"),
    [
        (1.04, "all runs have nearly one size: how the best depth grows"),
        (2.0, "sizes differ by a factor 2 only: how the best depth grows"),
        (10.0, "although sizes differ by a factor 10, the runs do not show"),
        (452.3, "although sizes differ by a factor 450, the runs do not show"),
        (1e5, "although sizes differ by a factor 100,000, the runs do not show"),
    ],
)
def test_growth_that_is_assumed_reads_well_at_any_factor(times: float, start: str) -> None:
    assert str(words.note("growth-assumed", times=times)).startswith(start)


@pytest.mark.parametrize(("ratio", "words_"), [(1000.0, "are 1,000 times 12·"), (1 / 1000, "are 1/1,000 of 12·")])
def test_blocks_unlike_their_shape_are_said_as_a_factor(ratio: float, words_: str) -> None:
    assert words_ in str(words.note("blocks-unlike-shape", ratio=ratio))
