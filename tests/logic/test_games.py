"""Classes against the game played literally and against all formulas of small depth; decisions against automata."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.logic.automata import Automaton
from deepwide.logic.expressions import of_expression
from deepwide.logic.games import Classes, Direction, _Both, classes, decide, equivalent, least_depth, mirror
from deepwide.logic.ltl import Formula, Place, parse
from deepwide.logic.tableau import of_formula
from deepwide.logic.words import Words, all_words, holds
from logic.literal import formulas, true_at

WORDS = st.text("ab", min_size=1, max_size=6)


@cache
def duplicator_wins(u: str, i: int, v: str, j: int, rounds: int, both: bool) -> bool:
    """The game as its rules say, every move tried."""
    if u[i] != v[j]:
        return False
    if rounds == 0:
        return True
    for mine, m, hers, h in ((u, i, v, j), (v, j, u, i)):
        sides = [(range(m), range(h))] + ([(range(m + 1, len(mine)), range(h + 1, len(hers)))] if both else [])
        for moves, replies in sides:
            if not all(any(_survives(mine, m, x, hers, h, y, rounds, both) for y in replies) for x in moves):
                return False
    return True


def _survives(mine: str, m: int, x: int, hers: str, h: int, y: int, rounds: int, both: bool) -> bool:
    if not duplicator_wins(mine, x, hers, y, rounds - 1, both):
        return False
    between = [range(min(a, b) + 1, max(a, b)) for a, b in ((m, x), (h, y))]
    return all(any(duplicator_wins(mine, z, hers, t, rounds - 1, both) for z in between[0]) for t in between[1])


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS, st.integers(0, 3), st.booleans())
def test_classes_are_what_the_game_decides(u: str, v: str, rounds: int, both: bool) -> None:
    direction: Direction = "both" if both else "past"
    known = Classes()
    one, two = classes(u, rounds, direction, known), classes(v, rounds, direction, known)
    for i, j in itertools.product(range(len(u)), range(len(v))):
        assert (one[i] == two[j]) == duplicator_wins(u, i, v, j, rounds, both)


@pytest.mark.parametrize(("depth", "direction", "longest"), [(1, "past", 5), (1, "both", 5), (2, "past", 4)])
def test_classes_are_what_all_formulas_of_that_depth_tell_apart(depth: int, direction: Direction, longest: int) -> None:
    """Brute force: from unions of the classes below, every f S< g and f U> g; their joint values are the classes."""
    words = list(all_words("ab", longest))
    places = [(w, i) for w, word in enumerate(words) for i in range(len(word))]
    group = {place: words[place[0]][place[1]] for place in places}
    for _ in range(depth):
        names = sorted(set(group.values()))
        unions = list(itertools.product((False, True), repeat=len(names)))
        if len(unions) ** 2 > 2**14:  # S< is monotone: f may be taken as large as possible, g as one class
            pairs = [(f, tuple(n == m for m in range(len(names)))) for f in unions for n in range(len(names))]
        else:
            pairs = list(itertools.product(unions, unions))
        flags = (
            np.array([[f[n] for f, _ in pairs] for n in range(len(names))]),
            np.array([[g[n] for _, g in pairs] for n in range(len(names))]),
        )
        index = {name: n for n, name in enumerate(names)}
        rows: dict[tuple[int, int], list[bytes]] = {place: [] for place in places}
        for w, word in enumerate(words):
            f, g = (side[[index[group[w, i]] for i in range(len(word))]] for side in flags)
            for order in [range(len(word))] + ([range(len(word) - 1, -1, -1)] if direction == "both" else []):
                value = np.zeros(len(pairs), dtype=bool)
                for i in order:
                    rows[w, i].append(np.packbits(value).tobytes())
                    value = g[i] | (f[i] & value)
        group = {place: repr((words[place[0]][place[1]], rows[place])) for place in places}
    known = Classes()
    numbers = [number for word in words for number in classes(word, depth, direction, known)]
    brute = [group[place] for place in places]
    assert len(set(zip(numbers, brute, strict=True))) == len(set(numbers)) == len(set(brute))


@settings(max_examples=60, deadline=None)
@given(formulas(ops=("S<", "P", "H<", "Y", "S")), WORDS, WORDS)
def test_no_formula_tells_words_of_one_class_apart(f: Formula, u: str, v: str) -> None:
    if equivalent(u, v, f.depth, "past"):
        assert true_at(f, u, len(u) - 1) == true_at(f, v, len(v) - 1)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.integers(0, 2), st.sampled_from(("past", "both")))
def test_a_class_has_a_formula_of_its_depth(word: str, depth: int, direction: Direction) -> None:
    known = Classes()
    number = classes(word, depth, direction, known)[-1]
    f = known.formula(number)
    assert f.depth <= depth
    others = [*all_words("ab", 4), word]
    expected = [classes(other, depth, direction, known)[-1] == number for other in others]
    assert holds(f, Words.of(others, "ab"), "last").tolist() == expected


@pytest.mark.parametrize(("depth", "longest"), [(1, 6), (2, 7), (3, 7)])
def test_words_that_look_alike_stay_alike_when_letters_are_added(depth: int, longest: int) -> None:
    """What the walk with both directions relies on, on all short words."""
    walk = _Both(depth)
    ends: dict[object, set[object]] = {}
    for word in all_words("ab", longest):
        summary, _ = walk.step((), word[:-1], word[-1])
        ends.setdefault(summary, set()).add(tuple(walk.step((), word, name) for name in "ab"))
    assert all(len(each) == 1 for each in ends.values())
    assert len(ends) < 2 ** (longest + 1) - 2  # some words do look alike


LANGUAGES = ["(ab)*", ".*a", "a.*", "a*b*", "a*b*a*", ".*aa.*", "(ab|ba)*", "b*ab*", ".*ab.*ab.*"]


@pytest.mark.parametrize("expression", LANGUAGES)
@pytest.mark.parametrize("direction", ["past", "future", "both"])
def test_decisions_come_with_their_proof(expression: str, direction: Direction) -> None:
    language = of_expression(expression, "ab")
    words = list(all_words("ab", 7))
    for depth in range(3):
        decision = decide(language, depth, direction, most=300)
        if decision.definable is False:
            assert decision.pair is not None
            assert language.accepts(decision.pair.inside)
            assert not language.accepts(decision.pair.outside)
            assert equivalent(decision.pair.inside, decision.pair.outside, depth, direction)
        if decision.definable and decision.formula is not None:
            assert decision.formula.depth <= depth
            at: Place = "first" if direction == "future" else "last"
            answers = holds(decision.formula, Words.of(words, "ab"), at)
            assert answers.tolist() == [language.accepts(word) for word in words]


@pytest.mark.parametrize(
    ("expression", "past", "future"),
    [(".*a", 0, 2), ("a.*", 2, 0), ("(ab)*", 2, 2), (".*aa.*", 2, 2), ("a*b*a*", 2, 2), (".*a.*", 1, 1)],
)
def test_least_depths_that_are_known(expression: str, past: int, future: int) -> None:
    language = of_expression(expression, "ab")
    for direction, depth in (("past", past), ("future", future)):
        least = least_depth(language, direction)  # type: ignore[arg-type]
        assert least.exact
        assert least.low == depth
        assert [each.definable for each in least.decisions] == [False] * depth + [True]


def test_too_many_classes_leave_an_interval_and_a_known_formula_closes_it() -> None:
    stair = of_expression(".*ac*a.*", "abc")
    open_end = least_depth(stair, "past", most=50)
    assert (open_end.low, open_end.high, open_end.exact) == (2, None, False)
    closed = least_depth(stair, "past", most=50, known=parse("P(a & (c S< a))").depth)
    assert (closed.low, closed.high, closed.exact) == (2, 2, True)


@settings(max_examples=30, deadline=None)
@given(formulas(leaves=4))
def test_a_mirror_image_has_the_words_backwards(f: Formula) -> None:
    language = of_formula(f, "ab")
    assert [mirror(language).accepts(word) for word in all_words("ab", 5)] == [
        language.accepts(word[::-1]) for word in all_words("ab", 5)
    ]
    assert isinstance(mirror(language), Automaton)
