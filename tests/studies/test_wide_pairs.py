"""Wide and deep networks in pairs: paired tests, their correction, and networks that are missing."""

import pytest

from deepwide.studies.wide_attention import WideSettings
from deepwide.studies.wide_pairs import accuracy_rows, differences_by_seed, holm, means_by_seed, paired_rows


def test_tests_are_paired_by_seed_and_corrected_by_holm() -> None:
    settings = WideSettings(tasks=("listops",), attentions=("local",), depths=(1, 4), seeds=(3, 5))
    entries = [
        {"task": "listops", "attention": "local", "depth": depth, "seed": seed, "accuracy": depth + 10.0 * seed}
        for depth in (1, 4)
        for seed in (3, 5)
    ]
    assert differences_by_seed(entries, settings) == {("listops", "local"): {3: -3.0, 5: -3.0}}
    scipy = pytest.importorskip("scipy.stats")
    one, other = [0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.65, 0.7]
    differences = dict(enumerate(a - b for a, b in zip(one, other, strict=True)))
    alone = paired_rows({("listops", "local"): differences})[0]
    expected = scipy.ttest_rel(one, other)
    assert alone["p"] == pytest.approx(expected.pvalue)
    assert (alone["low"], alone["high"]) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    few = ({0: 0.1}, {0: 0.0, 1: 0.0}, {0: 0.1, 1: 0.1})
    assert [paired_rows({("listops", "local"): by})[0]["p"] for by in few] == [None, 1.0, 0.0]
    assert holm([0.02, 0.6, 0.9, 0.01]) == [pytest.approx(v) for v in (0.06, 1.0, 1.0, 0.04)]
    assert holm([0.02, None]) == [None, None]


def test_the_variance_over_seeds_is_pooled_over_the_attentions_of_a_task() -> None:
    quiet, noisy = {0: 0.10, 1: 0.12, 2: 0.11}, {0: 0.0, 1: 0.3, 2: 0.15}
    pairs = {("listops", "local"): quiet, ("listops", "sparse"): noisy, ("imdb", "local"): quiet}
    first, second, apart = paired_rows(pairs)
    assert first["high"] - first["low"] == pytest.approx(second["high"] - second["low"])
    assert apart["high"] - apart["low"] < first["high"] - first["low"], "another task's noise is not pooled"
    assert paired_rows({("imdb", "local"): {}}) == [
        {"pair": ("imdb", "local"), "difference": None, "low": None, "high": None, "p": None}
    ]


def test_a_network_that_diverged_is_left_out_with_its_counterpart() -> None:
    settings = WideSettings(tasks=("listops", "imdb"), attentions=("softmax",), depths=(1, 4), seeds=(0, 1))
    entries = [
        {
            "task": task,
            "attention": "softmax",
            "depth": depth,
            "seed": seed,
            "accuracy": 0.5 + 0.1 * (depth == 1) + seed,
        }
        for task in settings.tasks
        for depth in (1, 4)
        for seed in settings.seeds
        if (task, depth, seed) != ("imdb", 1, 1)  # diverged
    ]
    differences = differences_by_seed(entries, settings)
    assert {pair: list(by) for pair, by in differences.items()} == {
        ("listops", "softmax"): [0, 1],
        ("imdb", "softmax"): [0],
    }
    assert means_by_seed(differences, list(differences)) == pytest.approx([0.1, 0.1])


def test_accuracies_are_means_over_seeds() -> None:
    settings = WideSettings(tasks=("listops",), attentions=("local",), depths=(1, 4), seeds=(0, 1))
    entries = [
        {"task": "listops", "attention": "local", "depth": depth, "seed": seed, "accuracy": 0.1 * depth + 0.2 * seed}
        for depth in (1, 4)
        for seed in (0, 1)
    ]
    assert [row["accuracy"] for row in accuracy_rows(entries, settings)] == pytest.approx([0.2, 0.5])
