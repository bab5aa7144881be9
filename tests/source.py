"""Our own source as syntax trees, and what in it breaks a rule of the house."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import deepwide

SOURCE = Path(deepwide.__file__).parent
TESTS = Path(__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
ARGUMENT = ("--", "#SBATCH")
VAGUE = ("made", "found", "said", "kept", "told")


class Import(NamedTuple):
    """One import statement of ours from ours."""

    importer: str  # module, without the leading "deepwide."
    target: str  # the module it is taken from, likewise
    name: str  # what is taken; empty for `import deepwide.room.module`
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.importer} -> {self.target}"


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of src/deepwide by its name without the leading `deepwide.`, parsed."""
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def room(module: str) -> str:
    """The room that a module is in; a module at the top of the house is its own."""
    return module.split(".")[0]


@cache
def imports() -> tuple[Import, ...]:
    """Every import of one of our modules by another, wherever it stands."""
    return tuple(each for module, tree in modules().items() for each in _imports(module, tree))


def _imports(module: str, node: ast.AST, typing_only: bool = False) -> Iterator[Import]:
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module}: imports are written in full"
        yield from (_import(module, node.module or "", alias.name, typing_only) for alias in node.names)
    if isinstance(node, ast.Import):
        yield from (_import(module, alias.name, "", typing_only) for alias in node.names)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "from deepwide" in node.value:
        with suppress(SyntaxError):  # a sentence; or else a program for another process, to which the rules apply too
            yield from _imports(module, ast.parse(node.value), typing_only)
    for child in ast.iter_child_nodes(node):
        checked = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and child in node.body
        yield from _imports(module, child, typing_only or checked)


def _import(importer: str, source: str, name: str, typing_only: bool) -> Import:
    """`from deepwide.shape import params` takes a module, unless the door offers something of that name."""
    module = f"{source}.{name}".removeprefix("deepwide.")
    if name and module in modules() and name not in offered(source.removeprefix("deepwide.")):
        source, name = f"{source}.{name}", ""
    ours = source.removeprefix("deepwide.") if source.startswith("deepwide.") else ""
    return Import(importer, ours, name, typing_only)


@cache
def offered(door: str) -> frozenset[str]:
    """The names that a room's `__init__` lists, or loads when first used."""
    body = modules()[door].body if door in modules() else []
    lists = [node.value for node in body if isinstance(node, ast.Assign) and _names(node) & {"__all__", "_HOME"}]
    return frozenset(name for value in lists for name in re.findall(r"'(\w+)'", ast.unparse(value)))


def _names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def inner_imports() -> list[Import]:
    """Imports between our modules; `from deepwide import __version__` is none."""
    return [each for each in imports() if each.target]


def strings(tree: ast.Module) -> Iterator[str]:
    """String literals that are no docstrings; the fixed parts of f-strings too."""
    docs = {
        id(body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (body := node.body)
        and isinstance(body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def variables(tree: ast.Module) -> Iterator[str]:
    """Every name that is bound: assigned, looped over, an argument."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def past_a_door() -> set[str]:
    """Imports that reach a module inside another room instead of what the room's `__init__` offers."""
    return {str(i) for i in inner_imports() if "." in i.target and room(i.importer) != room(i.target)}


def circles() -> set[str]:
    """Modules of one room that import each other, inside functions too; what only a type checker reads is left out."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for each in inner_imports():
        if not each.typing_only and room(each.importer) == room(each.target):
            graph[each.importer].add(each.target)
    reach = {}
    for node in graph:
        reach[node], todo = {node}, [node]
        while todo:
            after = graph[todo.pop()] - reach[node]
            reach[node] |= after
            todo += after
    groups = {frozenset(other for other in reach[node] if node in reach[other]) for node in graph}
    return {" ".join(sorted(group)) for group in groups if len(group) > 1}


def options() -> set[str]:
    """Command-line options in texts outside cli; a string that begins with one is for another program."""
    texts = ((module, text) for module, tree in modules().items() if room(module) != "cli" for text in strings(tree))
    return {f"{module}: {o}" for module, text in texts for o in OPTION.findall(text) if not text.startswith(ARGUMENT)}


def without_a_test() -> set[str]:
    """Modules src/deepwide/a/b.py for which there is no tests/a/test_b.py."""
    places = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    return {place.as_posix() for place in places if not (TESTS / place.parent / f"test_{place.name}").exists()}


def vague_names() -> dict[str, int]:
    """How often a variable has a name that says only that something exists."""
    counts = Counter(name for tree in modules().values() for name in variables(tree))
    return {name: counts[name] for name in VAGUE if counts[name]}
