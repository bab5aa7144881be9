"""Rooms depend one way and are entered by their doors, and the light ones stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.journeys import ROOT, walk

import deepwide
from deepwide.cli.tour import SWEEP
from source import circles, inner_imports, modules, past_a_door, room

HEAVY = (
    "torch",
    "ray",
    "altair",
    "vl_convert",
    "transformers",
    "matplotlib",
    "pandas",
    "polars",
    "flint",
    "fastapi",
    "scipy",
    "urllib.request",
)

# What each room may import of the others. A room that is not here may not exist.
BOTTOM = {"answers", "errors", "faults", "files", "quantities", "settings", "signals"}
PLANNING = BOTTOM | {"shape", "laws", "catalogue"}
TRAINING = BOTTOM | {"shape", "run", "model", "data", "tasks"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "faults": set(),
    "signals": set(),
    "quantities": {"errors"},
    "files": {"errors", "faults"},
    "answers": {"errors"},
    "settings": {"errors"},
    "shape": BOTTOM,
    "laws": BOTTOM | {"shape"},
    "catalogue": BOTTOM | {"shape"},
    "planning": PLANNING | {"timing"},
    "run": BOTTOM,
    "separation": BOTTOM,
    "model": BOTTOM | {"shape"},
    "data": BOTTOM,
    "tasks": BOTTOM | {"shape", "model", "data"},
    "training": TRAINING,
    "timing": TRAINING | {"training"},
    "sweeping": TRAINING | {"training"},
    "fitting": PLANNING | TRAINING | {"training", "sweeping"},
    "designing": PLANNING | TRAINING | {"training", "sweeping", "fitting"},
    "pooling": PLANNING | TRAINING | {"training", "sweeping", "fitting"},
    "figures": PLANNING
    | TRAINING
    | {"planning", "separation", "training", "sweeping", "fitting", "designing", "pooling"},
    "probes": BOTTOM | {"shape", "model"},
    "logic": BOTTOM | {"shape", "model"},
}
MAY_IMPORT["figures"] |= {"logic"}
MAY_IMPORT["web"] = PLANNING | {"planning", "figures"}
MAY_IMPORT["studies"] = MAY_IMPORT["figures"] | {"figures", "probes"}
MAY_IMPORT["report"] = MAY_IMPORT["studies"] | {"studies"}
MAY_IMPORT["serving"] = MAY_IMPORT["report"] | {"report", "web"}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
MAY_IMPORT["__main__"] = {"cli"}


@pytest.mark.parametrize("name", sorted({room(module) for module in modules()} - {"", "__init__"}))
def test_a_room_imports_only_what_stands_below_it(name: str) -> None:
    assert name in MAY_IMPORT, f"{name} is a new room: say in MAY_IMPORT what it may import"
    wrong = [str(i) for i in inner_imports() if room(i.importer) == name != room(i.target)]
    assert [i for i in wrong if room(i.split(" -> ")[1]) not in MAY_IMPORT[name]] == []


def test_the_table_of_rooms_has_no_circle() -> None:
    done: set[str] = set()
    while ready := [name for name, below in MAY_IMPORT.items() if name not in done and below - {name} <= done]:
        done.update(ready)
    assert MAY_IMPORT.keys() - done == set()


def test_no_import_goes_past_another_room_s_door() -> None:
    assert past_a_door() == set(), "offer the name at the room's door and take it from there"


def test_modules_of_a_room_do_not_import_each_other_in_a_circle() -> None:
    assert circles() == set()


def run(program: str) -> list[str]:
    """What a fresh Python has loaded of the heavy ones after a program."""
    tail = f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program + tail], capture_output=True, text=True, check=True, timeout=120
    )
    loaded: list[str] = ast.literal_eval(done.stdout.splitlines()[-1])
    return loaded


def command(words: str) -> str:
    """A program that runs `deepwide words`."""
    return f"""
import sys
sys.argv[1:] = {words.split()!r}
from deepwide.cli import main
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    "program",
    [
        "import deepwide",
        "import deepwide; deepwide.plan(1_300_000_000)",
        "import deepwide; deepwide.plan('1e21', kind='flops', law='gemstones')",
        "import deepwide; deepwide.plan_many([1e9, 1e10])",
        "import deepwide; deepwide.audit('gpt3-175b')",
        "from deepwide.web import plan_page; plan_page()",
        "import deepwide; deepwide.write_config(deepwide.find_model('llama-3-8b').shape, 'llama')",
    ],
)
def test_planning_and_auditing_load_nothing_heavy(program: str) -> None:
    assert run(program) == []


@pytest.mark.parametrize(
    "words", ["plan 1.3B", "audit gpt3-175b", "count gpt2", "laws", "models gpt2", "--help", "plan --help"]
)
def test_light_verbs_load_nothing_heavy(words: str) -> None:
    """What the core must have installed is what these import."""
    assert run(command(words)) == []


@pytest.mark.parametrize(("words", "most"), [("plan 1.3B", 30), ("rank --depth 2 --width 2", 18)])
def test_a_command_passes_through_few_modules(words: str, most: int) -> None:
    """What a stranger reads to follow it: fewer than before every verb was an answer (31 and 19)."""
    tail = "\nprint(sorted(name for name in sys.modules if name.split('.')[0] == 'deepwide'))"
    done = subprocess.run(
        [sys.executable, "-c", command(words) + tail], capture_output=True, text=True, check=True, timeout=120
    )
    modules = ast.literal_eval(done.stdout.splitlines()[-1])
    assert len(modules) <= most, modules


@pytest.mark.slow
def test_a_sweep_and_its_workers_pass_through_few_modules(tmp_path: Path) -> None:
    """Fewer than before every verb was an answer (53 and 65)."""
    spec = tmp_path / "one.toml"
    spec.write_text(SWEEP)
    one_cell = '--set iso.params=["10k"] --set iso.depths=[1] --set iso.tokens=2k'
    processes = walk([f"sweep run {spec} --runs {tmp_path / 'runs'} {one_cell}"], tmp_path, ROOT / "src")
    loaded = {process["asked"].split()[0]: process["modules"] for process in processes}
    assert len(loaded["sweep"]) <= 52, loaded["sweep"]
    assert len(loaded["worker"]) <= 56, loaded["worker"]


def test_bounds_need_flint_and_no_scipy() -> None:
    assert set(run(command("bounds --depth 6 --width 1000"))) <= {"flint"}


def test_importing_deepwide_loads_none_of_its_rooms() -> None:
    program = "import sys, deepwide; print([name for name in sys.modules if name.startswith('deepwide.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in deepwide.__all__:
        assert getattr(deepwide, name) is not None
    assert dir(deepwide) == sorted(deepwide.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'plann'"):
        _ = deepwide.plann
