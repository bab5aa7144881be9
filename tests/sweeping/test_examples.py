"""The sweeps we ship can be planned, and are what their comments say."""

from pathlib import Path

import pytest

from deepwide.sweeping import cells_of, read_spec

EXAMPLES = sorted((Path(__file__).parents[2] / "sweeps").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_shipped_sweep_expands(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if 'data.source = "languages.txt"' in path.read_text():  # the user's own text
        monkeypatch.chdir(tmp_path)
        (tmp_path / "languages.txt").write_text("a sentence, 'n sin, lefoko\n" * 1000)
    elif "data.source" in path.read_text():  # a public set: not on every machine
        monkeypatch.setenv("DEEPWIDE_DATA", str(request.getfixturevalue("shared_data")))
    cells = cells_of(read_spec(path))
    assert read_spec(path).name == path.stem
    assert 4 <= len(cells) <= 200
    assert len({cell.id for cell in cells}) == len(cells)


def test_the_first_sweep_is_small() -> None:
    cells = cells_of(read_spec(EXAMPLES[0].parent / "first.toml"))
    assert sum(cell.cost.train_flops for cell in cells) < 2e12
