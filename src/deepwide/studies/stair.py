"""Does each layer of masked hard attention buy something? (Yang, Chiang, Angluin 2024; Etessami, Wilke 2000)"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.errors import needs
from deepwide.logic import (
    Formula,
    Words,
    accepts,
    all_words,
    equivalent,
    holds,
    of_expression,
    of_formula,
    stair_expression,
    stair_formula,
    to_program,
)
from deepwide.settings import Part, Positive
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run; part of the rules' hash.
FEWEST = 3  # stairs without which nothing is decided
DIRECTIONS = ("past", "both")


def each_depth_buys(measured: Measured) -> Ruling:
    return _exact(measured, "past", lambda k: k)


def both_directions_halve(measured: Measured) -> Ruling:
    return _exact(measured, "both", lambda k: k // 2 + 1)


def networks_agree(measured: Measured) -> Ruling:
    rows = measured.table("stairs")
    words = Interval(sum(row["words"] for row in rows))
    if len({row["k"] for row in rows}) < FEWEST:
        return Ruling(NOT_DECIDABLE, words, (_few(),))
    right = all(row["disagreements"] == 0 and row["layers"] == row["formula_depth"] for row in rows)
    return Ruling(REPRODUCED if right else NOT_REPRODUCED, words)


def _exact(measured: Measured, direction: str, depth_of: Any) -> Ruling:
    rows = [row for row in measured.table("stairs") if row["direction"] == direction]
    largest = Interval(max((row["k"] for row in rows), default=0))
    if len(rows) < FEWEST:
        return Ruling(NOT_DECIDABLE, largest, (_few(),))
    wrong = [row for row in rows if not row["formula_is_exact"] or row["formula_depth"] != depth_of(row["k"])]
    if wrong:
        return Ruling(NOT_REPRODUCED, largest)
    unproved = [row["k"] for row in rows if not row["shallower_refuted"]]
    notes = (Note.of("unproved", f"no proof of minimality for k = {unproved}"),) if unproved else ()
    return Ruling(NOT_DECIDABLE if unproved else REPRODUCED, largest, notes)


def _few() -> Note:
    return Note.of("few_stairs", "too few values of k for a verdict", fewest=FEWEST)


class StairSettings(Part):
    """Which stairs, and the words on which the networks are run."""

    most: Annotated[int, Field(ge=1, le=12)] = 5  # the largest k
    word_length: Annotated[int, Field(ge=1, le=9)] = 6  # letters up to which every word is tried
    long_words: Positive = 100  # random words
    long_length: Annotated[int, Field(ge=1, le=400)] = 60  # letters of a random word


class StairStudy(Study):
    """Formulas, programs and networks for STAIR_k, and pairs of words that no shallower formula tells apart."""

    name = "stair"
    question = "Does each layer of masked hard attention recognise a language that fewer layers cannot?"
    source = Source(
        "Yang, Chiang, Angluin 2024, Masked Hard-Attention Transformers Recognize Exactly the Star-Free Languages; "
        "Etessami, Wilke 2000, An Until Hierarchy and Other Applications of an Ehrenfeucht-Fraïssé Game for Temporal "
        "Logic.",
        "https://arxiv.org/abs/2310.13897",
    )
    rules = (
        Rule(
            Claim(
                "strict",
                "In one direction STAIR_k needs depth k exactly: more layers always buy more.",
                "the depth hierarchy, by the until hierarchy",
            ),
            "STAIR_k is the words over a, b, c that contain aᵏ after deleting all c. Past operators alone, read at the "
            "last position. For each k: a formula of depth k whose minimal automaton is that of the language, and a "
            "pair of words, one in the language and one not, of one class at depth k − 1, so that no formula of that "
            "depth is the language's. Reproduced if both are there for every k, not reproduced if a formula is wrong, "
            f"not decidable if a pair is missing or with fewer than {FEWEST} values of k. The claim for all k is the "
            "paper's proof; here it is checked for those k.",
            each_depth_buys,
        ),
        Rule(
            Claim(
                "both",
                "With past and future operators ⌊k/2⌋ + 1 levels suffice, and fewer do not.",
                "our own count, not the papers': a position in the middle looks both ways",
            ),
            "The same with all operators and depth ⌊k/2⌋ + 1.",
            both_directions_halve,
        ),
        Rule(
            Claim(
                "networks",
                "A hard-attention transformer with as many layers as the formula is deep recognises the language.",
                "equivalence of masked hard attention, B-RASP and temporal logic",
            ),
            "Formula, program, compiled network and automaton give the same answer on every word up to a length and on "
            "random long ones, and the network has as many layers as the formula is deep: reproduced if so for every k "
            f"and direction, not reproduced if not, not decidable with fewer than {FEWEST} values of k.",
            networks_agree,
            "words compared",
        ),
    )
    Settings = StairSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"most": 4, "word_length": 5},
        "cpu": {"most": 8, "word_length": 7, "long_words": 300},
        "paper": {"most": 12, "word_length": 8, "long_words": 1000, "long_length": 200},
    }
    method = (
        "Nothing is trained. Formulas are translated to B-RASP and compiled into weights of deepwide's transformer "
        "with unique hard attention. Minimal automata of formulas come from a subset construction, those of the "
        "language from a regular expression. Classes are those of the Ehrenfeucht–Fraïssé game for since and "
        "until on finite words, computed exactly for the two words."
    )
    differences = (
        "The papers prove the hierarchy for every k with pen and paper; this study checks finitely many k by "
        "computation, with words of its own as witnesses, and formulas that are read at the last position. The claim "
        "about both directions is not from the papers. That one direction needs depth k is taken from our notes on the "
        "papers. Depth counts every operator, Y and X too, as a layer does; Etessami and Wilke's hierarchy counts "
        "untils alone (recalled), which is what the letter c is for, and the witnesses here do not need it."
    )

    def measure(self, settings: StairSettings, workplace: Workplace) -> Measured:
        rows = [
            workplace.part(f"STAIR_{k}, {direction}", partial(_row, k, direction, settings))
            for k in range(1, settings.most + 1)
            for direction in DIRECTIONS
        ]
        return Measured(numbers={"largest k": Interval(settings.most)}, tables={"stairs": rows})


def _row(k: int, direction: Any, settings: StairSettings) -> dict[str, Any]:
    """One stair: whether its formula is exact, whether a shallower one is refuted, and whether all four agree."""
    formula, language = stair_formula(k, direction), of_expression(stair_expression(k), "abc")
    inside, outside = "a" * k + "b", "a" * (k - 1) + "b"
    apart = language.accepts(inside) and not language.accepts(outside)
    words, disagreements, layers = _four_ways(formula, k, settings)
    return {
        "k": k,
        "direction": direction,
        "formula_depth": formula.depth,
        "formula_is_exact": of_formula(formula, "abc", "last") == language,
        "shallower_refuted": apart and equivalent(inside, outside, formula.depth - 1, direction),
        "inside": inside,
        "outside": outside,
        "layers": layers,
        "words": words,
        "disagreements": disagreements,
        "formula": str(formula),
    }


def _four_ways(formula: Formula, k: int, settings: StairSettings) -> tuple[int, int, int]:
    """On how many words formula, program, network and automaton were compared, where they differ, and the layers."""
    import numpy as np

    needs("torch", "train")
    from deepwide.logic import compile_program

    program = to_program(formula, "last")
    network, language = compile_program(program, "abc"), of_expression(stair_expression(k), "abc")
    letters = np.random.default_rng([k, 2310]).choice(
        list("abc"), p=(0.5, 0.1, 0.4), size=(settings.long_words, settings.long_length)
    )
    texts = [*all_words("abc", settings.word_length), *map("".join, letters)]
    words = Words.of(texts, "abc")
    answers = [
        holds(formula, words, "last"),
        accepts(program, words),
        network.accepts(texts),
        np.array([language.accepts(text) for text in texts]),
    ]
    same = (answers[0] == answers[1]) & (answers[0] == answers[2]) & (answers[0] == answers[3])
    return len(texts), int((~same).sum()), network.shape.depth
