"""Measures of attention against loops that follow their definitions word by word."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.probes import (
    antecedents_hit,
    entropies,
    head_distances,
    looked_at,
    looks_more,
    most_attended,
    offset_guess,
    scaled_to_plane,
    word_attention,
)

L, H, T = 2, 3, 6


def random_pattern(seed: int = 0, tokens: int = T) -> np.ndarray:
    scores = 2 * np.random.default_rng(seed).normal(size=(L, H, tokens, tokens))
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def test_where_heads_look_on_average() -> None:
    pattern = random_pattern()
    shares = looked_at(pattern, {"special": [0, 5], "nothing": []})
    for layer, head in product(range(L), range(H)):
        a = pattern[layer, head]
        slow = {
            "next": sum(a[i, i + 1] for i in range(T - 1)) / (T - 1),
            "previous": sum(a[i, i - 1] for i in range(1, T)) / (T - 1),
            "self": sum(a[i, i] for i in range(T)) / T,
            "special": sum(a[i, 0] + a[i, 5] for i in range(T)) / T,
            "nothing": 0.0,
        }
        assert {name: share[layer, head] for name, share in shares.items()} == pytest.approx(slow)
    assert looked_at(random_pattern(tokens=1), {})["next"].tolist() == [[0.0] * H] * L


def test_next_and_previous_are_not_swapped() -> None:
    """As they are in the original's figure code."""
    forward = np.roll(np.eye(T), 1, axis=1)[None, None]  # row i looks at i + 1
    assert looked_at(forward, {})["next"][0, 0] == 1
    assert looked_at(forward, {})["previous"][0, 0] == 0


def test_entropy_is_that_of_the_smoothed_rows() -> None:
    pattern = random_pattern(1)
    for layer, head in product(range(L), range(H)):
        rows = 0.9999 * pattern[layer, head] + 0.0001 / T
        slow = sum(-p * math.log(p) for row in rows for p in row) / T
        assert entropies(pattern)[layer, head] == pytest.approx(slow)
    assert entropies(np.full((1, 1, 50, 50), 1 / 50))[0, 0] == pytest.approx(math.log(50))
    assert entropies(np.eye(50)[None, None])[0, 0] == pytest.approx(0, abs=2e-3)


def test_distances_are_jensen_shannon_divergences() -> None:
    from scipy.spatial.distance import jensenshannon

    pattern = random_pattern(2)
    smooth = (0.999 * pattern + 0.001 / T).reshape(L * H, T, T)
    for one, two in product(range(L * H), repeat=2):
        slow = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(smooth[one], smooth[two], strict=True)])
        assert head_distances(pattern)[one, two] == pytest.approx(slow, abs=1e-12)


def test_points_of_the_plane_are_found_again() -> None:
    points = np.random.default_rng(3).normal(size=(9, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    again = scaled_to_plane(distances)
    assert np.allclose(np.linalg.norm(again[:, None] - again[None], axis=-1), distances, atol=1e-6)


def test_what_does_not_fit_into_the_plane_has_the_least_stress_that_a_minimiser_finds() -> None:
    from scipy.optimize import minimize

    points = np.random.default_rng(4).normal(size=(8, 5))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)

    def stress(flat: np.ndarray) -> float:
        x = flat.reshape(8, 2)
        return float(((np.linalg.norm(x[:, None] - x[None] + 1e-15, axis=-1) - distances) ** 2).sum())

    ours = scaled_to_plane(distances, steps=3000)
    assert stress(ours.ravel()) <= minimize(stress, ours.ravel()).fun * (1 + 1e-4) + 1e-9
    assert stress(ours.ravel()) < stress(scaled_to_plane(distances, steps=0).ravel())
    assert scaled_to_plane(np.zeros((1, 1))).shape == (1, 2)


WORDS = [-1, 0, 0, 1, 2, 2, 2, -1]  # special, two pieces, one, three, special


def test_pieces_are_summed_where_looked_at_and_averaged_where_looking() -> None:
    pattern = random_pattern(5, len(WORDS))
    words = word_attention(pattern, WORDS)
    assert words.shape == (L, H, 3, 3)
    for layer, head, one, two in product(range(L), range(H), range(3), range(3)):
        looking = [t for t, word in enumerate(WORDS) if word == one]
        seen = [t for t, word in enumerate(WORDS) if word == two]
        slow = sum(sum(pattern[layer, head, i, j] for j in seen) for i in looking) / len(looking)
        assert words[layer, head, one, two] == pytest.approx(slow)
    assert np.allclose(word_attention(pattern, range(len(WORDS))), pattern)
    for wrong in ([], [-1, -1], [0, 2, 2]):
        with pytest.raises(DeepwideError, match="needs at least one token"):
            word_attention(random_pattern(0, max(1, len(wrong)))[..., : len(wrong), : len(wrong)], wrong)


@given(st.integers(0, 50), st.integers(2, 7))
def test_the_most_attended_word_is_another_word_in_both_directions(seed: int, words: int) -> None:
    pattern = random_pattern(seed, words)
    there, back = most_attended(pattern)
    for layer, head, i in product(range(L), range(H), range(words)):
        others = [j for j in range(words) if j != i]
        assert there[layer, head, i] == max(others, key=lambda j: pattern[layer, head, i, j])
        assert back[layer, head, i] == max(others, key=lambda j: pattern[layer, head, j, i])


def test_a_fixed_offset_stays_within_the_sentence() -> None:
    assert offset_guess(4, 1).tolist() == [1, 2, 3, 3]
    assert offset_guess(4, -2).tolist() == [0, 0, 0, 1]


def test_an_antecedent_is_hit_by_the_heads_that_look_there_most() -> None:
    pattern = random_pattern(6)
    hit = antecedents_hit(pattern, 4, [0, 2])
    for layer, head in product(range(L), range(H)):
        row = {j: pattern[layer, head, 4, j] for j in range(T) if j != 4}
        assert hit[layer, head] == (max(row, key=row.__getitem__) in (0, 2))


def test_of_two_names_the_one_that_is_looked_at_more_is_chosen() -> None:
    pattern = random_pattern(7)
    there, back = looks_more(pattern, 3, [0, 1], [4, 5])
    for layer, head in product(range(L), range(H)):
        a = pattern[layer, head]
        assert there[layer, head] == (max(a[3, 0], a[3, 1]) > max(a[3, 4], a[3, 5]))
        assert back[layer, head] == (max(a[0, 3], a[1, 3]) > max(a[4, 3], a[5, 3]))
    assert looks_more(np.full((1, 1, T, T), 1 / T), 3, [0], [1])[0].tolist() == [[0.5]]
