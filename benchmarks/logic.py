"""Temporal logic: a formula on a million words, and automata beside flloat and ltlf2dfa.

    python -m benchmarks.logic [--python /path/to/a/python/with/flloat/and/ltlf2dfa] [--write]

ltlf2dfa needs the program `mona` (Debian has it) and returns a wrong automaton without it, so every automaton is
compared with ours on every word up to a length. Times are seconds, ours and theirs in turn, one process of one thread;
ratios are theirs over ours.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.logic import Words, all_words, holds, of_formula, parse

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "logic" / "bench.json"
WORDS, LENGTH, LEVELS, REPEATS, LONGEST = 1_000_000, 100, 10, 3, 4
FORMULAS = (
    "F(a & X(b))",
    "G(a -> X(b))",
    "(a U b) | G(c)",
    "F(a & F(b & F(c)))",
    "G(a -> F(b)) & G(b -> F(c))",
    "F(a & X(a & X(b)))",
)
FLLOAT = """
import json, sys, time
from flloat.parser.ltlf import LTLfParser
text, words = json.loads(sys.stdin.read())
start = time.perf_counter()
automaton = LTLfParser()(text).to_automaton()
seconds = time.perf_counter() - start
answers = [automaton.accepts([{letter: True} for letter in word]) for word in words]
print(json.dumps([seconds, answers]))
"""
LTLF2DFA = """
import json, sys, time
from ltlf2dfa.parser.ltlf import LTLfParser
text, _ = json.loads(sys.stdin.read())
start = time.perf_counter()
dot = LTLfParser()(text).to_dfa()
print(json.dumps([time.perf_counter() - start, dot]))
"""


def deep_formula(levels: int) -> str:
    """Past and future, two letters per level."""
    text = "a"
    for level in range(levels):
        one, two = "abc"[level % 3], "abc"[(level + 1) % 3]
        text = f"({one} S< ({two} | !{text}))" if level % 2 else f"({one} U> ({two} | {text}))"
    return text


def evaluation() -> dict[str, Any]:
    """Packing and evaluating a million words."""
    formula = parse(deep_formula(LEVELS))
    tokens = np.random.default_rng(0).integers(3, size=(WORDS, LENGTH), dtype=np.uint8)
    start = time.perf_counter()
    words = Words.of_tokens(tokens, "abc")
    packed = time.perf_counter()
    share = float(holds(formula, words, "last").mean())
    done = time.perf_counter()
    return {
        "words": WORDS,
        "length": LENGTH,
        "depth": formula.depth,
        "pack_seconds": packed - start,
        "evaluate_seconds": done - packed,
        "share_true": share,
    }


def automata(python: str) -> list[dict[str, Any]]:
    """The same formulas in three programs, in turn; each agrees with ours on every short word, or is reported wrong."""
    words = list(all_words("abc", LONGEST))
    rows = []
    for text in FORMULAS:
        times: dict[str, list[float]] = {"ours": [], "flloat": [], "ltlf2dfa": []}
        agrees = {"flloat": True, "ltlf2dfa": True}
        states = 0
        for _ in range(REPEATS):
            start = time.perf_counter()
            ours = of_formula(parse(text), "abc", "first")
            times["ours"].append(time.perf_counter() - start)
            states, expected = len(ours), [ours.accepts(word) for word in words]
            for name, program in (("flloat", FLLOAT), ("ltlf2dfa", LTLF2DFA)):
                done = subprocess.run(
                    [python, "-c", program], input=json.dumps([text, words]), capture_output=True, text=True, check=True
                )
                seconds, answer = json.loads(done.stdout.splitlines()[-1])
                times[name].append(seconds)
                answers = answer if name == "flloat" else [_runs(answer, word) for word in words]
                agrees[name] &= answers == expected
        medians = {name: statistics.median(each) for name, each in times.items()}
        rows.append(
            {
                "formula": text,
                "states": states,
                "words": len(words),
                "seconds": medians,
                "ratio": {name: medians[name] / medians["ours"] for name in agrees},
                "agrees": agrees,
            }
        )
    return rows


def _runs(dot: str, word: str) -> bool:
    """Whether MONA's automaton, as ltlf2dfa draws it, accepts a word of single letters."""
    accepting = {
        int(state) for line in re.findall(r"doublecircle\];([^\n]*)", dot) for state in re.findall(r"\d+", line)
    }
    edges = [(int(x), int(y), label) for x, y, label in re.findall(r'(\d+) -> (\d+) \[label="([^"]*)"\]', dot)]
    start = re.search(r"init -> (\d+)", dot)
    assert start is not None, dot
    state = int(start[1])
    for letter in word:
        state = next(y for x, y, label in edges if x == state and _true(label, letter))
    return state in accepting


@cache
def _true(label: str, letter: str) -> bool:
    return bool(holds(parse(label.replace("~", "!")), Words.of([letter], "abc"), "first")[0])


def main() -> None:
    """Measure, print, and write if asked."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--python", help="an interpreter that has flloat and ltlf2dfa")
    arguments.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    given = arguments.parse_args()
    result: dict[str, Any] = {"evaluation": evaluation()}
    if given.python:
        if not shutil.which("mona"):
            raise SystemExit("ltlf2dfa needs mona, which is not installed: apt-get install mona")
        result["automata"] = automata(given.python)
    text = json.dumps(result, indent=1)
    print(text)
    if given.write:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
