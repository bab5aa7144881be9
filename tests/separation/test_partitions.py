"""Proposition 1 by eq. 3 itself, over every balanced partition."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import partitions
from deepwide.separation.measurement import measure
from deepwide.separation.partitions import compare_partitions


@pytest.mark.parametrize(("depth", "width", "heads", "rank"), [(2, 2, 1, 18), (2, 2, 2, 17), (1, 3, 1, 4)])
def test_every_balanced_partition_has_the_same_rank(depth: int, width: int, heads: int, rank: int) -> None:
    answer = compare_partitions(depth, width, heads, positions=2)
    assert answer.same
    assert [entry.partition for entry in answer.partitions] == ["AABB", "ABAB", "ABBA"]
    assert width > 2 or {entry.rank for entry in answer.partitions} == {rank}
    assert len(answer.rows()) == 3


@pytest.mark.parametrize(("prime", "second"), [(1048571, 1048573), (1048573, 1048571), (65521, 1048571)])
def test_the_two_primes_differ(prime: int, second: int) -> None:
    assert compare_partitions(1, 2, prime=prime).primes == (prime, second)


def test_a_difference_between_the_primes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    def unlucky(case: object, prime: int, **options: object) -> object:
        answer = measure(case, prime, **options)  # type: ignore[arg-type]
        return replace(answer, blocks=(0,)) if options.get("flint") else answer

    monkeypatch.setattr(partitions, "measure", unlucky)
    with pytest.raises(DeepwideError, match="Partition AABB measures 3 modulo 1048573 and 0 modulo 1048571"):
        compare_partitions(1, 2)


@pytest.mark.parametrize("positions", [0, 7, -1])
def test_too_many_or_no_positions_get_a_sentence(positions: int) -> None:
    with pytest.raises(DeepwideError, match="at most 6 per side"):
        compare_partitions(1, 2, positions=positions)
