"""Without an extra, one sentence says what to install: in the library and on the command line."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.extras import EXTRAS, MissingExtraError, explain, is_installed, needs

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
DISTRIBUTION = {"vl_convert": "vl-convert-python", "flint": "python-flint"}
# A Python in which these libraries are not installed.
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def python(program: str, *blocked: str) -> "subprocess.CompletedProcess[str]":
    code = BLOCK.format(blocked=set(blocked)) + program
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def cli(words: str, *blocked: str) -> "subprocess.CompletedProcess[str]":
    return python(f"sys.argv[1:] = {words.split()!r}\nfrom deepwide.cli import main\nmain()", *blocked)


def test_the_table_is_that_of_pyproject() -> None:
    declared = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        names = {wanted.partition(">")[0] for wanted in declared[extra]} - {"deepwide[train]"}
        assert {DISTRIBUTION.get(module, module) for module in modules} == names, extra
    assert set(declared) == {*EXTRAS, "all", "dev"}


def test_the_core_is_light() -> None:
    assert {wanted.partition(">")[0] for wanted in PROJECT["dependencies"]} == {"numpy", "pydantic", "rich", "typer"}


def test_what_is_installed_is_not_complained_about() -> None:
    needs("numpy", "plot")
    assert is_installed("json")
    assert not is_installed("no_such_module_at_all")


def test_a_missing_library_is_a_sentence_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(
        MissingExtraError, match=r"pip install 'deepwide\[plot\]' \(in a clone: '.\[plot\]'\)\.$"
    ) as caught:
        needs("altair", "plot")
    assert isinstance(caught.value, DeepwideError)
    assert isinstance(caught.value, ImportError)


def test_a_missing_module_of_ours_is_a_defect_and_stays_one() -> None:
    error = ModuleNotFoundError("No module named 'deepwide.lawz'", name="deepwide.lawz")
    assert explain(error) is error


@pytest.mark.parametrize(
    ("words", "blocked", "extra"),
    [
        ("plan 1.3B --plot map.svg", "altair", "plot"),
        ("plan 1.3B --plot map.svg", "vl_convert", "plot"),
        ("audit gpt2 --plot map.html", "altair", "plot"),
        ("bounds --depth 6 --width 1000", "flint", "rank"),
        ("rank --depth 2 --width 2", "flint", "rank"),
        ("rank softmax --depth 1 --width 4 --points 20", "scipy", "rank"),
        ("fit results/fit/depth-width-long.csv", "scipy", "fit"),
        ("train --depth 2 --width 32 --tokens 10k --dry-run", "torch", "train"),
    ],
)
def test_the_command_line_names_the_extra(words: str, blocked: str, extra: str) -> None:
    done = cli(words, blocked)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert f"deepwide[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["plan 1.3B", "audit gpt3-175b", "count gpt2", "laws", "models llama"])
def test_the_planner_works_with_the_core_alone(words: str) -> None:
    everything = {module for modules in EXTRAS.values() for module in modules}
    done = cli(words, *everything, "pandas", "transformers")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "blocked", "extra"),
    [
        ("deepwide.bounds(6, 1000)", "flint", "rank"),
        ("deepwide.rank(depth=2, width=2)", "flint", "rank"),
        ("deepwide.train({'model': {'depth': 1, 'width': 8}, 'tokens': 1000})", "torch", "train"),
        ("deepwide.sweep('sweeps/first.toml', runs='/nonexistent')", "torch", "train"),
        ("deepwide.fit('results/fit/depth-width-long.csv')", "scipy", "fit"),
    ],
)
def test_the_library_names_the_extra(program: str, blocked: str, extra: str) -> None:
    done = python(f"import deepwide\ntry: {program}\nexcept deepwide.DeepwideError as error: print(error)", blocked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert f"deepwide[{extra}]" in done.stdout
