"""What the arguments of a fit may be: a wrong one gets a sentence where it is given, not an exception of internals."""

import math
from collections.abc import Callable, Iterator, Mapping, Set
from numbers import Integral, Real
from reprlib import Repr
from typing import Any

from deepwide.errors import DeepwideError, quoted
from deepwide.laws import TransitionLaw


def check_arguments(**given: Any) -> None:
    """Refuse an argument of another type than its own; None stands for one that is not given.

    >>> check_arguments(drift=1)
    Traceback (most recent call last):
    ...
    deepwide.errors.DeepwideError: drift must be True or False, not '1'.
    """
    for name, value in given.items():
        fits, words = _EXPECTED[name]
        if value is not None and not fits(value):
            shown = _short.repr(value) if isinstance(value, dict | list | tuple) else quoted(value)
            raise DeepwideError(f"{name} must be {words}, not {' '.join(shown.split())[:80]}.")


def _is(*types: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and 0 <= value < math.inf


def _map(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(map(_is(str), value)) and all(map(fits, value.values()))


def _several(value: Any, fits: Callable[[Any], bool]) -> bool:
    """What can be gone through only once is not looked into."""
    return isinstance(value, Iterator) or (isinstance(value, tuple | list | Set) and all(map(fits, value)))


def _limit(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 3 and all(map(_is(str), value[:2])) and _cell(value[2])


def _pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(_is(Integral), value))


_short = Repr()
_short.maxother = _short.maxstring = 40
_cell = _is(Real, str)
_WORD = (_is(str), "a word")
_SWITCH = (_is(bool), "True or False")
_EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "kind": _WORD,
    "columns": (lambda value: _map(value, _is(str, type(None))), 'a dict of our names to yours ({"loss": "val_loss"})'),
    "where": (lambda value: _map(value, _cell), 'a dict of a column to its value ({"tokens": 1e11})'),
    "limits": (lambda value: _several(value, _limit), 'a list of column, sign and value ([("depth", "<=", 8)])'),
    "embedding_rows": (_count, "a number of at least 0"),
    "best_of": (lambda value: _several(value, _is(str)), 'a list of columns (["batch"])'),
    "counting": _WORD,
    "length": (_count, "a number of tokens"),
    "all_runs": _SWITCH,
    "noise": _WORD,
    "slope": (_number, "a number"),
    "pairs": (lambda value: _several(value, _pair), "pairs of depths (((2, 8),))"),
    "base": (_is(str, TransitionLaw), "the name of a law, or a TransitionLaw"),
    "embeddings": _SWITCH,
    "drift": _SWITCH,
    "terms": _WORD,
    "unit": _WORD,
    "delta": (_number, "a number"),
}
