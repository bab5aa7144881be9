"""Studies are found by name: a class in a file of ours, or an entry point of another installed package."""

import subprocess
import sys
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies import find_study, studies

USE = """
from deepwide.errors import DeepwideError
from deepwide.studies import find_study, studies
import deepwide
assert "toys" in studies(), studies()
result = deepwide.run_study("toys", changes=("depths=[1]", "steps=5"), out="toys")
assert [verdict.outcome for verdict in result.verdicts] == ["reproduced"], result
print(result.verdicts[0].outcome)
"""
LIST = """
from deepwide.errors import DeepwideError
from deepwide.studies import studies
try:
    studies()
except DeepwideError as error:
    print(error)
"""


def outside(home: Path, program: str, entries: str) -> list[str]:
    """What a program prints where another package, with these entry points, is installed."""
    site = home / "site"
    site.mkdir()
    (site / "plugin.py").write_text((Path(__file__).parent / "fakes.py").read_text() + "\nNOT = 3\n")
    metadata = site / "plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[deepwide.studies]\n{entries}\n")
    code = f"import sys; sys.path.append({str(site)!r})\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=home)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_an_installed_package_adds_a_study_from_outside(tmp_path: Path) -> None:
    assert outside(tmp_path, USE, "toys = plugin:Toys") == ["reproduced"]
    assert (tmp_path / "toys" / "study.json").exists()


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("lost = not_there:Study", "study 'lost' of not_there:Study cannot be loaded: ModuleNotFoundError"),
        ("three = plugin:NOT", "study 'three' of plugin:NOT cannot be used: it is not a Study."),
    ],
)
def test_a_broken_package_costs_a_sentence(entry: str, sentence: str, tmp_path: Path) -> None:
    [line] = outside(tmp_path, LIST, entry)
    assert line.startswith(sentence)
    assert line.endswith(".")


def test_every_study_of_ours_is_whole() -> None:
    for name, study in studies().items():
        assert study.name == name
        assert study.presets.keys() == {"quick", "cpu", "paper"}
        assert study.rules
        for preset in study.presets:
            study.settings(preset)
        assert len(study.rule_hash) == 16


def test_a_list_of_studies_loads_no_torch() -> None:
    code = "import sys; from deepwide.studies import studies; studies(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["rank-colapse", "", "x" * 500, "../etc"])
def test_an_unknown_study_costs_a_sentence(name: str) -> None:
    with pytest.raises(DeepwideError, match="there is no study") as caught:
        find_study(name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).endswith((".", "?"))
