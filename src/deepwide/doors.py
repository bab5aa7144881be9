"""Doors that open when used: a room offers names whose modules are imported when somebody first asks for them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def offered(room: str, home: Mapping[str, str], name: str) -> Any:
    """What a room's `__getattr__` returns: the name from its module in the room, or an AttributeError."""
    if name in home:
        return getattr(import_module(f"{room}.{home[name]}"), name)
    raise AttributeError(f"module {room!r} has no attribute {name!r}")
