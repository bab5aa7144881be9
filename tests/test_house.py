"""Rules of the house that no linter knows: messages, names, and where a module's tests are."""

from source import options, vague_names, without_a_test


def test_only_the_command_line_speaks_of_its_options() -> None:
    """A library message names an argument or a setting: on a page or in a notebook there is no --option."""
    assert options() == set()


def test_every_module_has_its_test_where_one_looks_for_it() -> None:
    """src/deepwide/a/b.py is tested by tests/a/test_b.py."""
    assert without_a_test() == set()


def test_variables_say_what_they_hold() -> None:
    """`made`, `found` and the like say only that something exists."""
    assert vague_names() == {}
