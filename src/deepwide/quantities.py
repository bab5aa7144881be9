"""Sizes as people write them (1.3B parameters, 1e21 FLOPs, 24GiB of memory), and the types of arrays of numbers."""

import re
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Numbers = NDArray[Any]
else:  # numpy.typing would cost every plan 20 ms
    ArrayLike = Floats = Integers = Numbers = Any

_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "q": 10**15, "ki": 2**10, "mi": 2**20}
_NUMBER = re.compile(r"\s*(\d+(?:[_,]\d{3})*(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?\s*([a-z]*)\s*", re.IGNORECASE)
_EXACT = Context(prec=200)  # the default, 28 digits, would round a long integer
_BYTES = {
    f"{p}{i}{b}": (1024 if i else 1000) ** n for n, p in enumerate(" kmgtp") for i in ("", "i") for b in ("", "b") if n
}


def parse_count(text: str | int | float, what: str = "a size") -> int:
    """A count of parameters, tokens or FLOPs: 1.3B, 350M, 128k (a thousand), 8Ki (1024), 1e12, 7_000_000.

    >>> parse_count("1.3B"), parse_count("1e12"), parse_count("350m"), parse_count("8k"), parse_count("8Ki")
    (1300000000, 1000000000000, 350000000, 8000, 8192)
    """
    value, unit = _split(text, what)
    if unit not in _COUNTS:
        raise DeepwideError(f"{text!r} is not {what}: '{unit}' is no unit; write 350M, 1.3B, 2T or 1e12.")
    count = _whole(value, _COUNTS[unit])
    if not 1 <= count <= 10**40:
        raise DeepwideError(f"{text!r} is not {what}: it must be between 1 and 1e40.")
    return count


def parse_bytes(text: str | int | float) -> int:
    """A memory size: 24GB or 24G (powers of 1000), 80GiB or 80Gi (powers of 1024), or plain bytes.

    >>> parse_bytes("24GB"), parse_bytes("24G"), parse_bytes("1GiB")
    (24000000000, 24000000000, 1073741824)
    """
    value, unit = _split(text, "a memory size")
    if unit in ("", "b"):
        factor = 1
    elif unit in _BYTES:
        factor = _BYTES[unit]
    else:
        raise DeepwideError(f"{text!r} is not a memory size: write 24GB, 80GiB or a number of bytes.")
    count = _whole(value, factor)
    if not 1 <= count <= 10**24:
        raise DeepwideError(f"{text!r} is not a memory size: it must be between 1 byte and 1e24.")
    return count


_SECONDS = {"s": 1.0, "ms": 1e-3, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}


def parse_seconds(text: str | int | float) -> float:
    """A short time with its unit: 8ms, 250us or 0.5s. A bare number is refused: one person's 8 is another's 0.008.

    >>> parse_seconds("8ms"), parse_seconds("250 us"), parse_seconds("0.5s")
    (0.008, 0.00025, 0.5)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*(?:e[+-]?\d{1,2})?|\.\d+)\s*([a-zµμ]*)\s*", str(text)[:40].lower())
    if match and not match[2]:
        raise DeepwideError(
            f"{str(text)[:40]!r} is a time without its unit: write {match[1]}ms, {match[1]}us or {match[1]}s."
        )
    seconds = float(match[1]) * _SECONDS[match[2]] if match and match[2] in _SECONDS else 0.0
    if not 1e-9 <= seconds <= 1e6:
        raise DeepwideError(f"{str(text)[:40]!r} is not a time above 0 with its unit: write 8ms, 250us or 0.5s.")
    return seconds


def parse_percent(text: str | int | float, what: str = "a share") -> float:
    """A share above 0 and below 100%, with its sign or as a number below 1: 1.5% or 0.015.

    >>> parse_percent("1.5%"), parse_percent(0.015), parse_percent("0.015")
    (0.015, 0.015, 0.015)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*(?:e[+-]?\d{1,2})?|\.\d+)\s*(%?)\s*", str(text)[:40].lower())
    share = float(Decimal(match[1]) / (100 if match[2] else 1)) if match else 0.0
    if not 0 < share < 1:
        raise DeepwideError(f"{str(text)[:40]!r} is not {what} above 0 and below 100%: write 1.5% or 0.015.")
    return share


def _split(text: str | int | float, what: str) -> tuple[Decimal, str]:
    written = str(text)
    match = _NUMBER.fullmatch(written) if len(written) <= 80 else None
    if not match:
        raise DeepwideError(f"{written[:40]!r} is not {what}: write a positive number such as 350M, 1.3B or 1e12.")
    digits, exponent, unit = match.groups()
    return Decimal(re.sub("[_,]", "", digits) + (exponent or "")), unit.lower()


def _whole(value: Decimal, factor: int) -> int:
    if value > 10**60:
        return 10**60  # beyond every limit; the exact integer could have a thousand digits
    return int(_EXACT.multiply(value, Decimal(factor)).to_integral_value(context=_EXACT))


def show_count(count: float, digits: int = 3) -> str:
    """A count for reading, never for computing.

    >>> show_count(1_300_000_000), show_count(84_934_656), show_count(512), show_count(3.2e21)
    ('1.3B', '84.9M', '512', '3.2e+21')
    """
    if count >= 1e18:
        return f"{count:.{digits}g}"
    for unit, size in (("Q", 1e15), ("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= size * (1 - 0.5 * 10**-digits):
            return f"{_plain(count / size, digits)}{unit}"
    return _plain(count, digits)


def show_bytes(count: float) -> str:
    """Bytes in decimal units, for reading.

    >>> show_bytes(2_600_000_000), show_bytes(999_999_999)
    ('2.6 GB', '1 GB')
    """
    for unit, size in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size * 0.9995:
            return f"{_plain(count / size, 3)} {unit}"
    return f"{count:.0f} B"


def show_seconds(seconds: float, least: float = 1) -> str:
    """A duration for reading; below `least` it is too short to matter.

    >>> show_seconds(0.2), show_seconds(75), show_seconds(9000), show_seconds(400_000), show_seconds(1.07e11)
    ('< 1 s', '75 s', '2.5 h', '4.6 days', '3,390 years')
    """
    if seconds < least:
        return f"< {least:g} s"
    for start, size, unit in (
        (63_115_200, 31_557_600, "years"), (172_800, 86_400, "days"), (5400, 3600, "h"), (120, 60, "min"),
    ):  # fmt: skip
        if seconds >= start:
            count = seconds / size
            return f"{count:.1f} {unit}" if count < 99.95 else f"{float(f'{count:.3g}'):,.0f} {unit}"
    return f"{seconds:.0f} s"


def show_time(seconds: float) -> str:
    """A short time for reading.

    >>> show_time(0.008), show_time(2.5e-5), show_time(3.25)
    ('8 ms', '25 µs', '3.25 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{_plain(seconds / size, 3)} {unit}"
    return f"{_plain(seconds / 1e-9, 3)} ns"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "layer"), plural(1200, "layer")
    ('1 layer', '1,200 layers')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _plain(number: float, digits: int) -> str:
    """So many significant digits, never with an exponent."""
    return format(Decimal(f"{number:.{digits}g}"), "f")
