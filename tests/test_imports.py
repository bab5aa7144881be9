"""Rooms depend one way, and the light ones stay light."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import deepwide

SOURCE = Path(deepwide.__file__).parent
HEAVY = (
    "torch",
    "ray",
    "altair",
    "vl_convert",
    "transformers",
    "matplotlib",
    "pandas",
    "fastapi",
    "scipy",
    "urllib.request",
)

# What each room may import of the others: shape ← laws ← planning, auditing; everything ← cli.
BOTTOM = {"arrays", "errors", "quantities", "faults", "files", "answers", "settings", "signals"}
MAY_IMPORT = {
    "arrays": set(),
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
    "planning": BOTTOM | {"shape", "laws", "catalogue"},
}


@cache
def imports() -> dict[str, set[str]]:
    """Which rooms each module imports from, anywhere in it, types and functions included."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        rooms = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: imports are written in full"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            rooms |= {name.split(".")[1] for name in names if name.startswith("deepwide.")}
        found[module] = rooms - {"__version__"}
    return found


def room(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_room_imports_only_what_stands_below_it(name: str) -> None:
    modules = {module: rooms for module, rooms in imports().items() if room(module) == name}
    assert modules, f"there is no {name}"
    for module, rooms in modules.items():
        assert rooms - {name} <= MAY_IMPORT[name], module


def test_nothing_imports_the_command_line_or_the_page() -> None:
    for module, rooms in imports().items():
        if room(module) not in ("cli", "web", "__main__"):
            assert not rooms & {"cli", "web"}, module


def test_no_rooms_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module, rooms in imports().items():
        graph.setdefault(room(module), set()).update(rooms - {room(module)})
    done: set[str] = set()
    while ready := [name for name in graph if name not in done and graph[name] & graph.keys() <= done]:
        done.update(ready)
    assert graph.keys() - done == set()


def run(program: str) -> list[str]:
    """What a fresh Python has loaded of the heavy ones after a program."""
    tail = f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program + tail], capture_output=True, text=True, check=True, timeout=120
    )
    loaded: list[str] = ast.literal_eval(done.stdout.splitlines()[-1])
    return loaded


@pytest.mark.parametrize(
    "program",
    [
        "import deepwide",
        "import deepwide; deepwide.plan(1_300_000_000)",
        "import deepwide; deepwide.plan('1e21', kind='flops', law='gemstones')",
        "import deepwide; deepwide.plan_many([1e9, 1e10])",
        "import deepwide; deepwide.audit('gpt3-175b')",
        "import deepwide; deepwide.write_config(deepwide.find_model('llama-3-8b').shape, 'llama')",
    ],
)
def test_planning_and_auditing_load_nothing_heavy(program: str) -> None:
    assert run(program) == []


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
