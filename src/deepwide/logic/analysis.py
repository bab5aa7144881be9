"""Can a hard-attention transformer recognise this language, and how deep must it be? `analyse_language` answers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, is_installed, quoted
from deepwide.logic.automata import Automaton, Monoid
from deepwide.logic.brasp import Program, accepts, parse_program
from deepwide.logic.expressions import letters_of, of_expression
from deepwide.logic.games import Direction, LeastDepth, least_depth, mirror, mirrored
from deepwide.logic.ltl import Formula, Place, parse, written_size
from deepwide.logic.smallest import small_formula
from deepwide.logic.starfree import starfree_formula
from deepwide.logic.tableau import of_formula
from deepwide.logic.translation import to_formula, to_program
from deepwide.logic.words import Words, check_alphabet, holds
from deepwide.shape import Shape

Kind = Literal["formula", "program", "expression"]
LONGEST_FORMULA = 150  # letters and operators of a formula that is shown
LONGEST_CLASSES = 3_000  # the same of a formula of classes that is compiled
LONGEST_PROGRAM = 200  # definitions of a program that is compiled
CLASSES: dict[Direction, int] = {"past": 20_000, "future": 20_000, "both": 2_000}  # that a search walks through


class PairAnswer(Answer):
    """A proof that a depth is too small: no formula of it tells these words apart."""

    depth: int
    inside: str
    outside: str


class DepthAnswer(Answer):
    """The least depth of formulas in one direction; `high` None: no formula of that direction is known here."""

    direction: Direction
    low: int
    high: int | None
    pairs: tuple[PairAnswer, ...]
    classes: int  # that the last search walked through
    exhausted: bool  # whether that search saw every class, or found a pair, or was not needed

    @property
    def exact(self) -> bool:
        """Whether the least depth is known."""
        return self.low == self.high


class LookAnswer(Answer):
    """Where one head looks on a word: for each position the position that it takes its value from, or None."""

    layer: int
    head: int
    look: str
    vectors: tuple[str, ...]
    positions: tuple[int | None, ...]


class Language(Answer):
    """A language as logic, program, network and automaton."""

    text: str
    kind: Kind
    alphabet: str
    at: Place
    formula: str | None  # None: there is none, or it is too long to show
    formula_depth: int | None
    program: str | None
    program_depth: int | None
    states: int | None  # of the minimal automaton
    monoid: int | None  # elements of the syntactic monoid
    star_free: bool | None
    period: str | None  # a word whose powers never settle, if the language is not star-free
    least: tuple[DepthAnswer, ...]
    shape: Shape | None  # of the compiled network
    word: str | None
    answers: dict[str, bool]  # on the word: by formula, program, network, automaton
    looks: tuple[LookAnswer, ...]
    notes: tuple[Note, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per direction: between which depths the least one lies."""
        return [
            {"direction": each.direction, "low": each.low, "high": each.high, "exact": each.exact}
            for each in self.least
        ]


def analyse_language(
    text: str,
    *,
    alphabet: str | None = None,
    word: str | None = None,
    at: Place | None = None,
    search: bool = True,
) -> Language:
    """What logic, automata and networks say about a language.

    `text` is a formula, a B-RASP program (it has `:=`), or a regular expression between slashes. The alphabet is the
    letters in it and in the word, unless given; ab if there are none. `search` asks for the least depth.

    >>> answer = analyse_language("P(a & Y b)", search=False)
    >>> answer.formula_depth, answer.states, answer.star_free
    (2, 3, True)
    """
    kind: Kind = "program" if ":=" in text else "expression" if text.strip().startswith("/") else "formula"
    if kind == "expression" and at is not None:
        raise DeepwideError("a regular expression has no position where it is read: leave the place out.")
    notes: list[Note] = []
    formula, program, automaton, letters = _read(text, kind, alphabet, word, at, notes)
    monoid = _attempt(lambda: automaton.monoid, notes) if automaton is not None else None
    least: list[LeastDepth] = []
    small: dict[Direction, Formula] = {}
    if search and automaton is not None and monoid is not None and monoid.aperiodic:
        small = _small(automaton)
        least = _least(automaton, formula, program.at if program else None, small)
    if kind == "expression" and monoid is not None and monoid.aperiodic:
        formula, place = _shallowest(least, small, monoid, notes)
        program = to_program(formula, place) if formula is not None else None
    network = _network(program, letters, notes) if program is not None else None
    answers, looks = _on_word(word, letters, formula, program, network, automaton, notes)
    return Language(
        text=text,
        kind=kind,
        alphabet=letters,
        at=program.at if program else "last",
        formula=_shown(formula, notes),
        formula_depth=formula.depth if formula else None,
        program=str(program) if program else None,
        program_depth=program.depth if program else None,
        states=len(automaton) if automaton else None,
        monoid=len(monoid.elements) if monoid else None,
        star_free=None if monoid is None else monoid.aperiodic,
        period=monoid.period if monoid else None,
        least=tuple(_depth_answer(each) for each in least),
        shape=network.shape if network else None,
        word=word,
        answers=answers,
        looks=looks,
        notes=tuple(notes),
    )


def save_network(language: Language, folder: str | os.PathLike[str]) -> Path:
    """Compile the program of an answer and save the network with what is needed to use it again."""
    if Path(folder).is_file():
        raise DeepwideError(f"{folder} is a file: give the name of a folder.")
    if language.program is None or language.shape is None:
        raise DeepwideError("there is no network to save: the language has no program, or it is too large to compile.")
    from deepwide.logic.network import compile_program
    from deepwide.model import save_model

    network = compile_program(parse_program(language.program), language.alphabet)
    about = {"alphabet": network.alphabet, "at": network.at, "program": language.program}
    save_model(network.model, folder, **about)
    return Path(folder)


def _read(
    text: str, kind: Kind, alphabet: str | None, word: str | None, at: Place | None, notes: list[Note]
) -> tuple[Formula | None, Program | None, Automaton | None, str]:
    """What was given, in all forms that follow at once."""
    if kind == "expression":
        inner = text.strip()
        if len(inner) < 2 or not inner.endswith("/"):
            raise DeepwideError(f"the regular expression {quoted(text)} must end with / as it begins.")
        letters = _letters(alphabet, letters_of(inner), letters_of(inner), word, notes)
        return None, None, of_expression(inner[1:-1], letters), letters
    if kind == "program":
        program = parse_program(text.replace(";", "\n"))
        if at is not None:
            program = Program(program.definitions, at)
        formula = to_formula(program)
    else:
        formula = parse(text)
        program = to_program(formula, at)
    letters = _letters(alphabet, formula.letters + program.letters, program.letters, word, notes)
    return formula, program, _attempt(lambda: of_formula(formula, letters, program.at), notes), letters


def _letters(alphabet: str | None, own: str, needed: str, word: str | None, notes: list[Note]) -> str:
    """The alphabet: the one that is given, or the letters of the language and of the word, which is then said."""
    letters = check_alphabet(own + (word or "") or "ab" if alphabet is None else alphabet, needed)
    if alphabet is None and own and (more := "".join(sorted(set(word or "") - set(own)))):
        text = f"the word has letters that the language does not name ({more}): everything here is over {letters}"
        notes.append(Note.of("larger_alphabet", text, letters=more))
    return letters


def _attempt(make: Any, notes: list[Note]) -> Any:
    """What it makes, or None and a note why it is too large."""
    try:
        return make()
    except DeepwideError as error:
        notes.append(Note.of("too_large", str(error)))
        return None


def _small(automaton: Automaton) -> dict[Direction, Formula]:
    """Small formulas of past operators and of future ones, where some were found."""
    past, future = small_formula(automaton), small_formula(mirror(automaton))
    both: dict[Direction, Formula | None] = {"past": past, "future": future and mirrored(future)}
    return {direction: formula for direction, formula in both.items() if formula is not None}


def _least(
    automaton: Automaton, formula: Formula | None, at: Place | None, small: Mapping[Direction, Formula]
) -> list[LeastDepth]:
    known: dict[Direction, list[int]] = {"past": [], "future": [], "both": []}
    for direction, each in small.items():
        known[direction].append(each.depth)
    if formula is not None:
        if at == "last":
            known["both"].append(formula.depth)
            known["past"] += [] if formula.has_future else [formula.depth]
        elif not formula.has_past:
            known["future"].append(formula.depth)
    least = []
    directions: tuple[Direction, ...] = ("past", "future", "both")
    for direction in directions:
        depth = min(known[direction], default=None)
        least.append(least_depth(automaton, direction, known=depth, most=CLASSES[direction]))
        if direction == "past" and least[-1].high is not None:  # it is also a formula of both, read at the same place
            known["both"].append(least[-1].high)
    return least


def _shallowest(
    least: list[LeastDepth], small: Mapping[Direction, Formula], monoid: Monoid, notes: list[Note]
) -> tuple[Formula | None, Place]:
    """The shallowest formula that was found and, of equals, the shortest; otherwise that of local divisors."""
    options = list(small.items())
    for each in least:
        options += [(each.direction, decision.formula) for decision in each.decisions if decision.formula is not None]
    options = [(direction, formula) for direction, formula in options if written_size(formula) <= LONGEST_CLASSES]
    if options:
        direction, formula = min(options, key=lambda option: (option[1].depth, written_size(option[1])))
        return formula, "first" if direction == "future" else "last"
    formula = _attempt(lambda: starfree_formula(monoid), notes)
    if formula is not None:
        text = "the formula is that of local divisors, which is deeper than need be"
        notes.append(Note.of("not_shallowest", text, depth=formula.depth))
    return formula, "first"


def _network(program: Program, letters: str, notes: list[Note]) -> Any:
    if not is_installed("torch"):
        notes.append(Note.of("no_torch", "the network needs torch, which is not installed"))
        return None
    if len(program.definitions) > LONGEST_PROGRAM:
        text = f"the program has {len(program.definitions)} definitions: it is compiled up to {LONGEST_PROGRAM}"
        notes.append(Note.of("too_large", text))
        return None
    from deepwide.logic.network import compile_program

    return _attempt(lambda: compile_program(program, letters), notes)


def _on_word(
    word: str | None,
    letters: str,
    formula: Formula | None,
    program: Program | None,
    network: Any,
    automaton: Automaton | None,
    notes: list[Note],
) -> tuple[dict[str, bool], tuple[LookAnswer, ...]]:
    if word is None:
        return {}, ()
    if network is not None and len(word) > network.shape.context:
        text = f"the word is longer than the network's context of {network.shape.context}: only the others answer"
        notes.append(Note.of("long_word", text))
        network = None
    words = Words.of([word], letters)
    answers: dict[str, bool] = {}
    if formula is not None and program is not None:
        answers["formula"] = bool(holds(formula, words, program.at)[0])
        answers["program"] = bool(accepts(program, words)[0])
    if network is not None:
        answers["network"] = bool(network.accepts([word])[0])
    if automaton is not None:
        answers["automaton"] = automaton.accepts(word)
    looks = tuple(
        LookAnswer(
            layer=head.layer + 1,
            head=head.head + 1,
            look=head.look,
            vectors=head.vectors,
            positions=tuple(int(row.argmax()) if row.any() else None for row in pattern),
        )
        for head, pattern in (network.patterns(word) if network is not None else ())
    )
    return answers, looks


def _shown(formula: Formula | None, notes: list[Note]) -> str | None:
    if formula is None:
        return None
    size = written_size(formula)
    if size > LONGEST_FORMULA:
        notes.append(Note.of("long_formula", f"the formula is too long to show: {size:,} letters and operators"))
        return None
    return str(formula)


def _depth_answer(least: LeastDepth) -> DepthAnswer:
    pairs = tuple(
        PairAnswer(depth=each.depth, inside=each.pair.inside, outside=each.pair.outside)
        for each in least.decisions
        if each.pair is not None
    )
    last = least.decisions[-1] if least.decisions else None
    return DepthAnswer(
        direction=least.direction,
        low=least.low,
        high=least.high,
        pairs=pairs,
        classes=last.classes if last else 0,
        exhausted=last is None or last.definable is not None,
    )
