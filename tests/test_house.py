"""Rules of the house that no linter knows: messages, names, and where a module's tests are."""

import remaining
from source import circles, options, past_a_door, vague_names, without_a_test


def test_only_the_command_line_speaks_of_its_options() -> None:
    """A library message names an argument or a setting: on a page or in a notebook there is no --option."""
    assert options() - remaining.OPTIONS == set()


def test_every_module_has_its_test_where_one_looks_for_it() -> None:
    """src/deepwide/a/b.py is tested by tests/a/test_b.py."""
    assert without_a_test() - remaining.WITHOUT_A_TEST == set()


def test_variables_say_what_they_hold() -> None:
    """`made`, `found` and the like say that something exists; their number may only fall."""
    assert {name: n for name, n in vague_names().items() if n > remaining.VAGUE_NAMES.get(name, 0)} == {}


def test_the_lists_of_what_remains_have_nothing_that_is_gone() -> None:
    """They shrink with the work: `python tests/source.py` prints them as they should be."""
    assert remaining.PAST_A_DOOR - past_a_door() == set()
    assert remaining.CIRCLES - circles() == set()
    assert remaining.OPTIONS - options() == set()
    assert remaining.WITHOUT_A_TEST - without_a_test() == set()
    assert {name: n for name, n in remaining.VAGUE_NAMES.items() if n > vague_names().get(name, 0)} == {}
