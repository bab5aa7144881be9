"""The sweep that `init` writes."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping import cells_of, read_spec, write_example


@pytest.mark.parametrize(("file", "name"), [("mine.toml", "mine"), ("a b&c.toml", "a-b-c"), ("é.toml", "sweep")])
def test_the_example_is_a_small_sweep_named_after_its_file(tmp_path: Path, file: str, name: str) -> None:
    spec = write_example(tmp_path / file)
    assert spec.name == name
    cells = cells_of(spec)
    assert len(cells) == 8
    assert sum(cell.cost.train_flops for cell in cells) < 2e12


def test_what_is_commented_out_is_valid_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write_example(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line.removeprefix("# ") for line in lines[1:])]))
    assert len(cells_of(read_spec(path))) == 16


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    with pytest.raises(DeepwideError, match="exists already"):
        write_example(tmp_path / "mine.toml")
    with pytest.raises(DeepwideError, match=r"must end in \.toml"):
        write_example(tmp_path / "mine.txt")
    assert (tmp_path / "mine.toml").read_text() == "mine"
