"""Break our own lines one at a time and see a test fail: `python -m benchmarks.mutations`.

Each mutant of mutants.py is applied in a temporary copy of the source, and the narrowest tests that should notice are
run until the first failure, those marked slow left out; they must pass without a mutant (`make test`). A test that does
not end within 100 CPU seconds or a quarter of an hour counts as one that noticed. A text that is not there any more, or
twice, is stale, which counts as a survivor. `--only TEXT …` takes those whose file or name has one; `--resume` keeps
what the result file says of mutants that were killed, where the break, its function and the name of the test are as
they were then, and of those that survived tests that are as they were.
"""

import argparse
import ast
import compileall
import contextlib
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "reliability" / "mutations.json"
LONGEST_SECONDS, LONGEST_CPU = 900.0, 100
LIBRARIES = (
    "pytest", "numpy", "pydantic",
    "scipy.special", "scipy.stats", "scipy.optimize", "polars", "torch", "torch._dynamo", "safetensors.torch", "typer",
    "rich.console", "hypothesis",
)  # fmt: skip
AIM = 0.95


def apply(mutant: Mutant, source: Path) -> str | None:
    """Write the broken file; returns the text that was there, None where the break does not fit."""
    path = source / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return None
    broken = text.replace(mutant.old, mutant.new)
    compile(broken, str(path), "exec")  # a file that cannot be read at all would prove nothing
    path.write_text(broken, encoding="utf-8")
    return text


class Bench:
    """A copy of the source in which one file at a time is broken."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        shutil.copytree(ROOT / "src" / "deepwide", copy / "deepwide")
        compileall.compile_dir(copy / "deepwide", quiet=1)
        for library in LIBRARIES:  # once here, and not in every process that is forked from this one
            with contextlib.suppress(ImportError):
                importlib.import_module(library)
        assert "deepwide" not in sys.modules, "each mutant must be imported anew"

    def test(self, mutant: Mutant) -> dict[str, Any]:
        """What the tests say about one mutant: killed with the first test that failed, or survived."""
        text = apply(mutant, self.copy / "deepwide")
        if text is None:
            return {"outcome": "stale"}
        broken = self.copy / "deepwide" / mutant.file
        for cached in (broken.parent / "__pycache__").glob(f"{broken.stem}.*.pyc"):
            cached.unlink()
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            code, by = self._run(mutant.tests)
        finally:
            broken.write_text(text, encoding="utf-8")
        outcome = {0: "survived", 1: "killed", 2: "killed"}.get(code, f"exit code {code}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = round(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, 1)
        return {"outcome": outcome, "by": by, "seconds": round(time.monotonic() - began, 1), "cpu_seconds": cpu}

    def _run(self, tests: Sequence[str]) -> tuple[int, str]:
        said = self.copy / "said.txt"
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = self._in_the_child(tests, said)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        deadline = time.monotonic() + LONGEST_SECONDS
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return 1, "no end"
            time.sleep(0.05)
        if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) == signal.SIGXCPU:
            return 1, "no end"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said.read_text(encoding="utf-8"), re.MULTILINE)
        return os.waitstatus_to_exitcode(ended[1]), failed[1] if failed else ""

    def _in_the_child(self, tests: Sequence[str], said: Path) -> int:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU, LONGEST_CPU + 10))  # a break may loop without end
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(self.copy))
        sys.dont_write_bytecode = True  # or the next mutant of a file might be taken for this one
        os.environ |= {"PYTHONPATH": str(self.copy), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        os.environ |= {"TMPDIR": str(self.copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take seconds to load
        import pytest

        words = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header", *tests]
        code = int(pytest.main(words))
        sys.stdout.flush()
        import deepwide

        assert str(self.copy) in (deepwide.__file__ or ""), "the copy was not tested"
        return code


def run(
    mutants: Sequence[Mutant], before: dict[str, Any], out: Path | None, seconds: float = float("inf")
) -> dict[str, Any]:
    """Those that are not known yet, in turn, for so long; what is known of all is written after each."""
    known = dict(before)
    if all(_key(mutant) in known for mutant in mutants):
        return summary(_rows(known))
    deadline = time.monotonic() + seconds
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where syncing costs nothing
    with tempfile.TemporaryDirectory(prefix="deepwide-mutants-", dir=memory) as folder:
        bench = Bench(Path(folder))
        for mutant in mutants:
            if _key(mutant) in known or time.monotonic() > deadline:
                continue
            said = known[_key(mutant)] = bench.test(mutant)
            print(f"{said['outcome']:9} {mutant.file}: {mutant.name}  {said.get('by', '')}", flush=True)
            if out is not None:
                write(_rows(known), out)
    return summary(_rows(known))


def _rows(known: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"file": mutant.file, "name": mutant.name, "review": mutant.review, "finding": mutant.finding}
        | {"key": _key(mutant), "tests": _tests_key(mutant)}
        | known[_key(mutant)]
        for mutant in MUTANTS
        if _key(mutant) in known
    ]


@cache
def _key(mutant: Mutant) -> str:
    """What an outcome depends on, as far as it is cheap to say: the break and the function that it is in."""
    return key_of(mutant, (ROOT / "src" / "deepwide" / mutant.file).read_text(encoding="utf-8"))


def key_of(mutant: Mutant, text: str) -> str:
    """The same, in this version of its file."""
    line = text.count("\n", 0, text.find(mutant.old)) + 1
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    inner = max(around, key=lambda node: node.lineno, default=None)
    parts = [mutant.file, mutant.old, mutant.new, ast.unparse(inner) if inner else ""]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _tests_key(mutant: Mutant) -> str:
    files = sorted({test.partition("::")[0] for test in mutant.tests})
    text = "\0".join([*mutant.tests, *((ROOT / file).read_text(encoding="utf-8") for file in files)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def known_before(out: Path, mutants: Iterable[Mutant]) -> dict[str, Any]:
    """What a result file says of mutants killed by a test that still exists, or survivors of tests as they are now."""
    if not out.exists():
        return {}
    tests = {_key(mutant): _tests_key(mutant) for mutant in mutants}
    rows = json.loads(out.read_text(encoding="utf-8"))["mutants"]
    return {
        row["key"]: {name: row[name] for name in ("outcome", "by", "seconds", "cpu_seconds", "tests")}
        for row in rows
        if row["outcome"] != "stale"
        and (
            (row["outcome"] == "killed" and (row["by"] == "no end" or _exists(row["by"])))
            or row["tests"] == tests.get(row["key"])
        )
    }


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return (ROOT / path).is_file() and f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many were noticed, of all and of the review's kinds."""

    def share(some: Sequence[dict[str, Any]]) -> dict[str, Any]:
        killed = sum(row["outcome"] == "killed" for row in some)
        return {"mutants": len(some), "killed": killed, "share": round(killed / len(some), 4) if some else None}

    return {
        "command": "python -m benchmarks.mutations",
        "aim": f"at least {AIM:.0%} killed",
        "all": share(rows),
        "of the review": share([row for row in rows if row["review"]]),
        "not run": len(MUTANTS) - len(rows),
        "survivors": [f"{row['file']}: {row['name']}" for row in rows if row["outcome"] != "killed"],
        "mutants": list(rows),
    }


def write(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """What is known so far."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(summary(rows), indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """Run them, print the sum, and end with 1 where too many survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="those whose file or name contains one of these")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes that the result file has")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing more after so long")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(words)
    chosen = [mutant for mutant in MUTANTS if any(text in f"{mutant.file}: {mutant.name}" for text in given.only)]
    before = known_before(given.out, MUTANTS) if given.resume else {}
    # What a review found first, the driver's tests last, which take longest.
    chosen.sort(key=lambda mutant: ("driver" in mutant.file, not mutant.finding, not mutant.review))
    result = run(chosen, before, given.out if given.resume or len(chosen) == len(MUTANTS) else None, given.seconds)
    print(json.dumps({name: value for name, value in result.items() if name != "mutants"}, indent=1))
    if not result["all"]["share"] or result["all"]["share"] < AIM:
        sys.exit(1)


if __name__ == "__main__":
    main()
