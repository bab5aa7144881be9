"""Checksums of records: each says which run it belongs to and what was written before it.

    {"kind":"train","loss":4.2,"step":7,"run":"0123456789abcdef","check":"89abcdef01234567"}

The check is the start of a SHA-256 over the check of the record before, the run's id and the record's own bytes. So a
changed byte, a file of another run, and lines that are missing, doubled or out of order are all found. A checkpoint and
a result state the check of the last record before them, so that a file that ends too early is found as well.

It finds accidents, copies and edits. It is no signature: whoever wants to forge a record can compute its check.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from deepwide.run.records import canonical

DIGITS = 16  # of the check: one damage in 2^64 has the right one by chance
SEAL = re.compile(rb',"run":"([^"\\]{1,64})","check":"([0-9a-f]{%d})"\}' % DIGITS)
LONGEST_SEAL = 120


class Chain(NamedTuple):
    """What a file of records comes to so far: how many, the check of the last, and whether that one carries it."""

    records: int = 0
    check: str = ""
    sealed: bool = False
    size: int = 0  # in bytes, line breaks included

    def after(self, run: str, line: bytes) -> "Chain":
        """The chain with one more line (without its line break); raises ValueError with what is wrong with it.

        A record without a seal was written before there were any. It cannot be checked by itself, but it is part of the
        checks that follow; after a sealed one it is an edit.
        """
        body, owner, check = split(line)
        if owner is None and self.sealed:
            raise ValueError("it has lost its checksum")
        if owner is not None and owner != run:
            raise ValueError(f"it belongs to run {owner}")
        right = link(self.check, run, body)
        if check is not None and check != right:
            raise ValueError("it is not what was written, or lines before it are missing, doubled or in another order")
        return Chain(self.records + 1, right, check is not None, self.size + len(line) + 1)


def link(previous: str, run: str, body: bytes) -> str:
    """The check of a record that follows another."""
    return hashlib.sha256(f"{previous} {run} ".encode() + body).hexdigest()[:DIGITS]


def seal(record: Mapping[str, Any], run: str, previous: str = "") -> bytes:
    """A record as one line with its seal.

    >>> seal({"step": 1}, "0123456789abcdef")
    b'{"step":1,"run":"0123456789abcdef","check":"63e0d613e17c2284"}'
    """
    assert record, "an empty record cannot carry a seal"
    assert not {"run", "check"} & record.keys(), "'run' and 'check' are the seal's own names"
    body = canonical(dict(record)).encode()
    return body[:-1] + f',"run":"{run}","check":"{link(previous, run, body)}"}}'.encode()


def split(line: bytes) -> tuple[bytes, str | None, str | None]:
    """The bytes of a record without its seal, and the run and check of the seal; None where there is none."""
    match = SEAL.search(line, max(0, len(line) - LONGEST_SEAL))
    if match is None or match.end() != len(line):
        return line, None, None
    return line[: match.start()] + b"}", match[1].decode(errors="replace"), match[2].decode()
