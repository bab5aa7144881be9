"""Wide and deep networks in pairs: their differences in accuracy by seed, and what tests make of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.studies.estimates import interval_row, mean_interval

if TYPE_CHECKING:
    from deepwide.studies.wide_attention import WideSettings


def differences_by_seed(
    entries: Sequence[Mapping[str, Any]], settings: "WideSettings", what: str = "accuracy"
) -> dict[tuple[str, str], dict[int, float]]:
    """Accuracy of the wide network less that of the deepest, by pair of task and attention and by seed of both."""
    values = {(row["task"], row["attention"], row["depth"], row["seed"]): row[what] for row in entries}
    wide, deep = min(settings.depths), max(settings.depths)
    return {
        (task, attention): {
            seed: values[task, attention, wide, seed] - values[task, attention, deep, seed]
            for seed in settings.seeds
            if {(task, attention, wide, seed), (task, attention, deep, seed)} <= values.keys()
        }
        for task in settings.tasks
        for attention in settings.attentions
    }


def means_by_seed(
    differences: Mapping[tuple[str, str], Mapping[int, float]], pairs: Sequence[tuple[str, str]]
) -> list[float]:
    """The mean over pairs of a task and an attention, for every seed that some of them have."""
    seeds = dict.fromkeys(seed for pair in pairs for seed in differences[pair])
    return [average([differences[pair][seed] for pair in pairs if seed in differences[pair]]) for seed in seeds]


def paired_rows(differences: Mapping[tuple[str, str], Mapping[int, float]]) -> list[dict[str, Any]]:
    """Per pair the mean difference, its 95% interval and the p value of a paired t test over seeds.

    The variance over seeds is pooled over the attentions of a task: three seeds by themselves hardly show one.
    """
    from scipy.stats import t

    squares: dict[str, float] = {}
    freedom: dict[str, int] = {}
    for (task, _), by_seed in differences.items():
        values = list(by_seed.values())
        squares[task] = squares.get(task, 0.0) + sum((value - average(values)) ** 2 for value in values)
        freedom[task] = freedom.get(task, 0) + max(0, len(values) - 1)
    rows = []
    for pair, by_seed in differences.items():
        row: dict[str, Any] = {"pair": pair, "difference": None, "low": None, "high": None, "p": None}
        rows.append(row)
        if not by_seed:
            continue
        mean, degrees = average(list(by_seed.values())), freedom[pair[0]]
        row["difference"] = mean
        if not degrees:
            continue
        error = (squares[pair[0]] / degrees / len(by_seed)) ** 0.5
        half = float(t.ppf(0.975, degrees)) * error
        p = float(2 * t.sf(abs(mean) / error, degrees)) if error else float(mean == 0)
        row |= {"low": mean - half, "high": mean + half, "p": p}
    return rows


def variance_over_examples(
    entries: Sequence[Mapping[str, Any]], pairs: Sequence[tuple[str, str]], settings: "WideSettings"
) -> float:
    """The variance of the mean difference over pairs from the choice of the examples, which a task's networks share."""
    ends = {min(settings.depths): 1, max(settings.depths): -1}
    total = 0.0
    for task in settings.tasks:
        attentions = [attention for where, attention in pairs if where == task]
        rows = [
            row for row in entries if row["task"] == task and row["attention"] in attentions and row["depth"] in ends
        ]
        if not rows:
            continue
        signed = np.array(
            [ends[row["depth"]] * np.frombuffer(row["right"].encode(), np.uint8).astype(float) for row in rows]
        )
        per_example = signed.sum(0) / (len(rows) / 2)  # mean difference of the task's pairs and seeds on each example
        total += (len(attentions) / len(pairs)) ** 2 * float(per_example.var(ddof=1)) / signed.shape[1]
    return total


def accuracy_rows(entries: Sequence[Mapping[str, Any]], settings: "WideSettings") -> list[dict[str, Any]]:
    """The mean accuracy by task, attention and depth."""
    rows = []
    for task in settings.tasks:
        for attention in settings.attentions:
            for depth in settings.depths:
                values = [
                    row["accuracy"]
                    for row in entries
                    if (row["task"], row["attention"], row["depth"]) == (task, attention, depth)
                ]
                rows.append(
                    {"task": task, "attention": attention, "depth": depth}
                    | interval_row("accuracy", mean_interval(values))
                )
    return rows


def average(values: Sequence[float]) -> float:
    return float(np.mean(values))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p values corrected for their number by Holm's method; none where one is missing.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        return [None] * len(values)
    order = sorted(range(len(given)), key=lambda i: given[i])
    corrected, largest = [0.0] * len(given), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(given) - rank) * given[i]))
        corrected[i] = largest
    return list(corrected)
