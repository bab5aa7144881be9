"""Sizes in, sizes out: what people write is read exactly, and what they read never misleads."""

import contextlib
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide import quantities
from deepwide.errors import DeepwideError
from deepwide.quantities import parse_bytes, parse_count, parse_seconds, show_bytes, show_count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1.3B", 1_300_000_000),
        ("350M", 350_000_000),
        ("350m", 350_000_000),
        ("12k", 12_000),
        ("2T", 2 * 10**12),
        ("3G", 3 * 10**9),
        ("1.5Q", 15 * 10**14),
        ("1e12", 10**12),
        ("1E+21", 10**21),
        ("1e3B", 10**12),
        ("7_000_000", 7_000_000),
        ("7,000,000", 7_000_000),
        (" 1.3 B ", 1_300_000_000),
        (".5M", 500_000),
        ("5.M", 5_000_000),
        ("0.4e1", 4),
        (1_300_000_000, 1_300_000_000),
        (1.3e9, 1_300_000_000),
        (1e22, 10**22),
        (10**35 + 7, 10**35 + 7),
    ],
)
def test_a_count_is_read_as_people_write_it(text: str | int | float, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    "text",
    ["", "  ", "B", "-1B", "+1B", "0", "0.2", "1.3X", "1.3BB", "one", "1,3B", "12_34", "1..3B", "1e", "1e9999",
     "1e41", "nan", "inf", "0x10", "1 3B", "1.3B" + " " * 80 + "junk", "9" * 81, True, None, float("nan"),
     float("inf"), -5, 10**400],
)  # fmt: skip
def test_what_is_no_count_gets_a_sentence_that_quotes_it_and_says_what_is_allowed(text: str) -> None:
    with pytest.raises(DeepwideError, match=r"is not a size: .*(write|must be between)") as complaint:
        parse_count(text)
    assert len(str(complaint.value)) < 250
    assert str(text)[:10].strip() in str(complaint.value)


def test_the_sentence_names_what_was_asked_for() -> None:
    with pytest.raises(DeepwideError, match="'many' is not a number of tokens"):
        parse_count("many", "a number of tokens")


@given(st.integers(1, 10**40))
def test_every_whole_number_is_read_exactly(count: int) -> None:
    for text in (count, str(count), f"{count:_}", f"{count:,}"):
        assert parse_count(text) == count


@given(st.decimals("0.001", 999, places=3), st.sampled_from(["K", "M", "B", "T", "Q"]))
def test_a_decimal_and_its_unit_are_multiplied_without_a_float(number: Decimal, unit: str) -> None:
    power = {"K": 3, "M": 6, "B": 9, "T": 12, "Q": 15}[unit]
    assert parse_count(f"{number}{unit}") == int(number * 10**power)


@given(st.text(max_size=30) | st.floats() | st.integers())
def test_anything_is_a_count_or_a_sentence(text: str | float) -> None:
    for parse in (parse_count, parse_bytes):
        with contextlib.suppress(DeepwideError):
            assert parse(text) >= 1


@pytest.mark.parametrize(
    ("text", "count"),
    [("24GB", 24 * 10**9), ("80GiB", 80 * 2**30), ("1.5 tb", 15 * 10**11), ("512", 512), ("512b", 512), ("2KiB", 2048),
     ("0.5PiB", 2**49), ("3MB", 3_000_000)],
)  # fmt: skip
def test_decimal_and_binary_units_of_memory_differ(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["24X", "24GBit", "-1GB", "0", "1e30GB", "much"])
def test_what_is_no_memory_gets_a_sentence(text: str) -> None:
    with pytest.raises(DeepwideError, match="is not a memory size: "):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (1, "1"), (999, "999"), (1000, "1K"), (999_499, "999K"), (999_500, "1M"), (999_999_999, "1B"),
     (1_300_000_000, "1.3B"), (84_934_656, "84.9M"), (1.031e12, "1.03T"), (999_999_999_999_999, "1Q"),
     (5.76e23, "5.76e+23")],
)  # fmt: skip
def test_a_count_rolls_over_to_the_next_unit_instead_of_showing_an_exponent(count: float, shown: str) -> None:
    assert show_count(count) == shown


@given(st.floats(1, 9.99e17), st.integers(1, 6))
def test_what_is_shown_reads_back_to_the_digits_shown(count: float, digits: int) -> None:
    shown = show_count(count, digits)
    assert "e" not in shown
    assert parse_count(shown) == pytest.approx(count, rel=0.51 * 10 ** (1 - digits), abs=0.51)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_999_999, "1 GB"), (2_600_000_000, "2.6 GB"),
     (123_456_789, "123 MB"), (80e9, "80 GB"), (1.5e15, "1.5 PB"), (2e18, "2 EB")],
)  # fmt: skip
def test_bytes_roll_over_too(count: float, shown: str) -> None:
    assert show_bytes(count) == shown


@given(st.floats(1, 1e20))
def test_bytes_are_never_shown_with_an_exponent(count: float) -> None:
    number, unit = show_bytes(count).split()
    assert "e" not in number
    assert parse_bytes(f"{number}{unit}" if unit != "EB" else f"{float(number) * 1000}PB") == pytest.approx(
        count, rel=0.0051, abs=0.51
    )


def test_units_may_leave_out_what_is_plain() -> None:
    """Newcomer's review, S9: 24G of memory, a vocabulary of 128k, a context of 8Ki."""
    assert parse_bytes("24G") == parse_bytes("24GB") == 24 * 10**9
    assert parse_bytes("80Gi") == parse_bytes("80GiB") == 80 * 2**30
    assert (parse_count("128k"), parse_count("8Ki"), parse_count("1Mi")) == (128_000, 8192, 2**20)


def test_array_types_are_for_type_checkers_alone() -> None:
    """numpy.typing would cost every plan 20 ms."""
    types: list[Any] = [quantities.ArrayLike, quantities.Floats, quantities.Integers, quantities.Numbers]
    assert types == [Any] * 4
    program = "import sys, deepwide.quantities; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("text", "seconds"), [("8ms", 0.008), ("250 us", 0.00025), ("2.5µs", 2.5e-6), ("1e-3s", 0.001), ("3ns", 3e-9)]
)
def test_a_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("bare", ["8", " 8 ", 8, 0.008, "1e-3"])
def test_a_time_without_a_unit_is_refused(bare: Any) -> None:
    """A fresh user meant milliseconds by `--latency 8` and was given seconds."""
    with pytest.raises(DeepwideError, match="without its unit: write"):
        parse_seconds(bare)


@pytest.mark.parametrize("wrong", ["soon", "-8ms", "0ms", "8 min", "1e9s", "", "8ms8ms"])
def test_what_is_no_time_is_refused(wrong: str) -> None:
    with pytest.raises(DeepwideError, match="is not a time"):
        parse_seconds(wrong)
