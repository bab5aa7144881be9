"""What a rule's verdict hangs on, as text: its code, and whatever that code reads of the module it stands in.

A threshold may be a constant above the function, and the work may be done by a function beside it: a change of either
is a change of the rule.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function with its arguments' defaults, and of the constants and functions of its module that it
    uses, directly or through others."""
    return "\n".join(_parts(function, set()))


def _parts(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    if isinstance(function, functools.partial):
        yield f"arguments = {function.args!r} {sorted(function.keywords.items())!r}"
        yield from _parts(function.func, seen)
        return
    assert isinstance(function, FunctionType), "a rule is decided by a function"
    seen.add(id(function))
    yield _code(function)
    yield f"defaults = {function.__defaults__!r} {function.__kwdefaults__!r}"
    enclosed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    used = {name: cell.cell_contents for name, cell in enclosed}
    used |= {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    for name, value in sorted(used.items()):
        if isinstance(value, FunctionType):
            if value.__module__ == function.__module__ and id(value) not in seen:
                yield from _parts(value, seen)
        elif not isinstance(value, type) and not inspect.ismodule(value) and not callable(value):
            yield f"{name} = {value!r}"


def _code(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # typed into a session, where no file has its source
        return "\n".join(_compiled(function.__code__))


def _compiled(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _compiled(constant)
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    """Global names in a function, and in what is defined inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*(_names(each) for each in inner))
