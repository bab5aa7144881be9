"""Positions: rotary angles depend on distances alone, ALiBi's slopes are the paper's."""

import cmath

import pytest
import torch

from deepwide.model.position import alibi_bias, rotate, rotation
from model.builders import seeded


def test_rotation_turns_pairs_as_complex_numbers() -> None:
    x_BTHE = torch.randn(1, 5, 2, 6, generator=seeded(0), dtype=torch.float64)
    turned = rotate(x_BTHE, rotation(9, 6, 100.0))
    for t in range(5):
        for i in range(3):
            z = complex(x_BTHE[0, t, 1, i], x_BTHE[0, t, 1, i + 3]) * cmath.exp(1j * t * 100.0 ** (-2 * i / 6))
            assert complex(turned[0, t, 1, i], turned[0, t, 1, i + 3]) == pytest.approx(z, abs=1e-6)


def test_products_of_turned_vectors_depend_on_their_distance_alone() -> None:
    q, k = (torch.randn(4, generator=seeded(seed)).expand(1, 8, 1, 4) for seed in (1, 2))
    turn = rotation(8, 4, 10000.0)
    scores = rotate(q, turn)[0, :, 0] @ rotate(k, turn)[0, :, 0].T
    for distance in range(-7, 8):
        diagonal = scores.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (8, [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8]),  # the paper's own example
        (1, [2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),  # two of two heads, and the first of four
    ],
)
def test_alibi_falls_with_distance_by_the_papers_slopes(heads: int, slopes: list[float]) -> None:
    bias_HTT = alibi_bias(heads, 5)
    assert (-bias_HTT[:, 4, 3]).tolist() == slopes
    assert torch.equal(bias_HTT[:, 4, 1], 3 * bias_HTT[:, 4, 3])
    assert torch.equal(bias_HTT, bias_HTT.transpose(1, 2))
