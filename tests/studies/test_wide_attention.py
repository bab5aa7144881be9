"""The study of wide attention: its rules on made-up numbers, its audit, a tiny run that decides nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.shape import flops
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, dry_run, find_study, run_study
from deepwide.studies.wide_attention import (
    CELLS,
    CREDITED,
    EQUAL,
    LATENCY,
    OVERALL,
    WideSettings,
    _cells,
    _overall,
    audit_rows,
)
from deepwide.studies.wide_pairs import variance_over_examples
from deepwide.sweeping import cells_of, make_spec
from deepwide.training import resolve
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

SMALL = (
    "depths=[1, 2]", "seeds=[0, 1]", "total_heads=4", "width=8", "head_dim=4", "steps=6", "batch=4", "sequences=64",
    "watched=16", "longest=24", "block=8",
)  # fmt: skip
FIRST = ["better", "as-good", "typically"]
WIN, EVEN, LOSS, OPEN = (
    Interval(0.02, 0.01, 0.03),
    Interval(0.0, -0.005, 0.005),
    Interval(-0.05, -0.08, -0.03),
    Interval(0.0, -0.1, 0.1),
)


def outcomes(
    overall: Interval | None,
    *,
    credited: Interval | None = None,
    seeds: int = 5,
    cells: int = 3,
    latency: Interval | None = None,
) -> dict[str, str]:
    """What the rules say where every pair has the same difference as their mean."""
    low, high = (overall.low, overall.high) if overall else (None, None)
    rows: list[dict[str, Any]] = [{"low": low, "high": high, "learned": True}] * cells
    rows += [{"low": -0.5, "high": -0.4, "learned": False}] * 9
    numbers = {"seeds": Interval(seeds), CELLS: Interval(cells)}
    numbers |= {OVERALL: overall, CREDITED: credited or overall, EQUAL: Interval(1.0)} if overall else {}
    numbers |= {LATENCY: latency} if latency else {}
    study = find_study("wide-attention")
    measured = Measured(numbers=numbers, tables={"cells": rows})
    return {rule.claim.key: rule.judge(measured).outcome for rule in study.rules}


def test_networks_that_are_still_catching_up_decide_nothing() -> None:
    """A lead that the last quarter of training would take away, if repeated, is none; nor is such a deficit."""
    assert outcomes(WIN, credited=LOSS)["better"] == outcomes(LOSS, credited=WIN)["better"] == NOT_DECIDABLE
    assert outcomes(WIN, credited=EVEN)["better"] == NOT_DECIDABLE
    assert outcomes(WIN, credited=EVEN)["as-good"] == REPRODUCED
    assert outcomes(WIN, credited=LOSS)["as-good"] == NOT_DECIDABLE


def test_better_equal_worse_and_unknown_differences_are_told_apart() -> None:
    for overall, wanted in (
        (WIN, [REPRODUCED, REPRODUCED, REPRODUCED]),
        (EVEN, [NOT_DECIDABLE, REPRODUCED, REPRODUCED]),
        (LOSS, [NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED]),
        (OPEN, [NOT_DECIDABLE, NOT_DECIDABLE, NOT_DECIDABLE]),
        (Interval(0.02), [NOT_DECIDABLE] * 3),
        (None, [NOT_DECIDABLE] * 3),
    ):
        assert [outcomes(overall)[key] for key in FIRST] == wanted


def test_few_seeds_or_few_pairs_that_were_learned_decide_nothing() -> None:
    for judged in (outcomes(WIN, seeds=2), outcomes(WIN, cells=2)):
        assert [judged[key] for key in FIRST] == [NOT_DECIDABLE] * 3


def test_latency_is_judged_whatever_was_learned() -> None:
    for latency, wanted in (
        (Interval(2.0, 1.5, 2.5), REPRODUCED),
        (Interval(0.8, 0.7, 0.9), NOT_REPRODUCED),
        (Interval(1.0, 0.9, 1.1), NOT_DECIDABLE),
        (None, NOT_DECIDABLE),
    ):
        assert outcomes(None, latency=latency)["faster"] == wanted


def test_the_audit_says_what_is_quoted_and_what_follows_from_it() -> None:
    """The quoted mean, error and p agree: t = 0.195/0.28 with 39 degrees of freedom."""
    rows = {row["what"]: row for row in audit_rows()}
    assert {row["from"] for row in rows.values()} == {"quoted", "computed"}
    p = rows["p of the t test, from mean and error"]
    assert p["from"] == "computed"
    assert p["value"] == pytest.approx(rows["p of the paired t test"]["value"], abs=0.005)
    assert rows["ties"]["value"] == 2
    assert rows["p of a sign test, ties left out"]["value"] == pytest.approx(0.4177, abs=1e-3)
    assert rows["difference at Linformer on ListOps"]["value"] == pytest.approx(7.02)
    low, high = (rows[f"95% interval of the mean, {end}"]["value"] for end in ("low", "high"))
    assert low < 0 < high


def answered(right: Mapping[tuple[Any, int, int], str]) -> list[dict[str, Any]]:
    """Networks of one task by attention, depth and seed, with which examples they answer right."""
    return [
        {"task": "listops", "attention": attention, "depth": depth, "seed": seed, "right": marks}
        | {"accuracy": marks.count("1") / len(marks), "gain_in_last_quarter": 0.01 * depth, "total_params": depth}
        for (attention, depth, seed), marks in right.items()
    ]


def test_the_interval_counts_the_choice_of_examples_which_all_networks_share() -> None:
    settings = WideSettings(tasks=("listops",), attentions=("local", "sparse"), depths=(1, 4), seeds=(0, 1, 2))
    entries = answered(
        {(a, 1, seed): "1100" for a in settings.attentions for seed in settings.seeds}
        | {(a, 4, seed): "1000" for a in settings.attentions for seed in settings.seeds}
    )
    pairs = [("listops", "local"), ("listops", "sparse")]
    per_example = [0, 1, 0, 0]
    expected = sum((x - 0.25) ** 2 for x in per_example) / 3 / 4
    assert variance_over_examples(entries, pairs, settings) == pytest.approx(expected), "not halved by two attentions"
    numbers = _overall(entries, pairs, settings)
    overall = numbers[OVERALL]
    assert overall.low is not None
    assert overall.value == 0.25
    assert overall.value - overall.low == pytest.approx(1.96 * expected**0.5, rel=1e-3), "seeds agree: examples alone"
    assert numbers[CREDITED].value == pytest.approx(0.25 - 0.03), "the deep network gained 0.03 more at the end"


def test_a_pair_counts_only_if_both_networks_learned() -> None:
    settings = WideSettings(tasks=("listops",), attentions=("local", "sparse"), depths=(1, 4), seeds=(0,))
    right = {("local", 1, 0): "1111", ("local", 4, 0): "1110", ("sparse", 1, 0): "1111", ("sparse", 4, 0): "1000"}
    names = ("wide_ms", "deep_ms", "latency_ratio", "training_ratio")
    speeds = [{"task": "listops", "attention": a, **dict.fromkeys(names, 1.0)} for a in settings.attentions]
    cells = _cells(answered(right), speeds, {"listops": 0.5}, settings)
    assert [row["learned"] for row in cells] == [True, False]
    without = answered({key: marks for key, marks in right.items() if key[:2] != ("sparse", 4)})
    assert [row["attention"] for row in _cells(without, speeds, {"listops": 0.5}, settings)] == ["local"]


@pytest.mark.parametrize("preset", ["quick", "cpu", "paper"])
def test_total_heads_and_attention_parameters_are_the_same_at_every_depth(preset: str) -> None:
    study = find_study("wide-attention")
    settings = study.settings(preset, ('tasks=["listops"]',))
    assert isinstance(settings, WideSettings)
    for attention in settings.attentions:
        (spec,) = study.sweeps(settings).values()
        runs = [
            resolve(cell.config)
            for cell in cells_of(make_spec({**spec, "name": "listops", "seeds": [0]}))
            if cell.config["model"].get("attention", "softmax") == attention
        ]
        shapes = [run.architecture.shape for run in runs]
        assert {shape.depth * shape.heads for shape in shapes} == {settings.total_heads}
        assert len({(shape.width, shape.head_dim, shape.ff_width) for shape in shapes}) == 1
        assert [shape.total_params for shape in shapes] == sorted(shape.total_params for shape in shapes)
        assert all(flops(shape).training > 0 for shape in shapes)
        if preset == "paper" and attention == "longformer":
            assert {shape.mixing.size for shape in shapes if shape.mixing} == {512}, "Long Range Arena's window"
        projections = {
            shape.depth * shape.width * 4 * shape.heads * shape.head_dim for shape in shapes
        }  # of queries, keys, values and outputs
        assert len(projections) == 1


def test_a_tiny_run_of_many_attentions_measures_everything_and_decides_little(tmp_path: Path) -> None:
    kinds = 'attentions=["softmax", "local", "sinkhorn", "synthesizer"]'
    result = run_study("wide-attention", "quick", changes=(*SMALL, kinds), out=tmp_path / "wide", processes=1)
    cells = result.measured.table("cells")
    assert [row["attention"] for row in cells] == ["softmax", "local", "sinkhorn", "synthesizer"]
    assert all(row["wide_params"] < row["deep_params"] for row in cells)
    assert all(row["latency_ratio"] > 0 and row["training_ratio"] > 0 for row in cells)
    assert len(result.measured.table("runs")) == 4 * 2 * 2
    outcome = {rule.claim.key: verdict.outcome for rule, verdict in
               zip(find_study("wide-attention").rules, result.verdicts, strict=True)}  # fmt: skip
    assert [outcome[key] for key in FIRST] == [NOT_DECIDABLE] * 3
    assert (tmp_path / "wide" / "differences.svg").is_file()


def test_pieces_that_are_the_same_are_refused_before_anything_runs() -> None:
    with pytest.raises(DeepwideError, match="matching_overlap must be below matching_tokens, which is 64"):
        find_study("wide-attention").settings("cpu", ("matching_overlap=64",))


def test_without_the_reviews_only_listops_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    assert dry_run("wide-attention", "quick", out=tmp_path / "quick").missing == ""
    assert "imdb" in dry_run("wide-attention", "cpu", out=tmp_path / "cpu").missing
    with pytest.raises(DeepwideError, match="the public data imdb are not on this machine"):
        run_study("wide-attention", "cpu", out=tmp_path / "cpu")


def test_the_reviews_are_read_by_tokens_by_bytes_and_in_halves(tmp_path: Path) -> None:
    import gzip
    import json

    (tmp_path / "imdb").mkdir()
    for part in ("train", "test"):
        rows = [{"text": f"a film about {i} trains " * 9, "label": i % 2} for i in range(40)]
        with gzip.open(tmp_path / "imdb" / f"{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    study = find_study("wide-attention")
    changes = (
        'tasks=["imdb", "imdb_bytes", "matching"]',
        f"data={tmp_path}",
        "vocab=300",
        "matching_tokens=20",
        "matching_overlap=0",
    )
    settings = study.settings("cpu", changes)
    assert len(study.inputs(settings)) == 2
    read = {}
    for task, spec in study.sweeps(settings).items():
        run = resolve(next(iter(cells_of(make_spec({**spec, "name": task})))).config)
        read[task] = (run.task.name, run.data.tokeniser, run.context, run.architecture.shape.head)
    assert read == {
        "imdb": ("classification", "bpe", 64, "class"),
        "imdb_bytes": ("classification", "bytes", 128, "class"),
        "matching": ("halves", "bpe", 20, "pair"),
    }


def test_what_is_published_was_judged_by_these_rules_and_stands_on_the_page() -> None:
    check_judged_by_the_rules_that_stand_here("wide-attention")
    result = published("wide-attention")
    cells, numbers = result.measured.tables["cells"], result.measured.numbers
    latency, ratios = numbers[LATENCY], [row["parameters_ratio"] for row in cells]
    assert latency.low is not None
    assert latency.high is not None
    task = "accuracy of one wide layer less that of the deepest networks, {}"
    check_said_on_the_page(
        f"ahead by {_points(numbers[OVERALL])[:-1]}, over seeds and examples)",
        f"the interval is {_points(numbers[CREDITED]).partition('(')[2][:-1]}",
        f"ListOps {_points(numbers[task.format('listops')], ' points')}",
        f"by byte pairs {_points(numbers[task.format('imdb')], '')}",
        f"by bytes {_points(numbers[task.format('imdb_bytes')], '')}",
        f"{latency.value:.2f} times as fast ({latency.low:.2f} to {latency.high:.2f})",
        f"{min(ratios):.2f} to {max(ratios):.2f} of the parameters",
        f"({sum(row['learned'] for row in cells)} of {len(cells)};",
    )
    standing = [(row["task"], row["attention"]) for row in cells if row["p_holm"] < 0.05]
    assert standing == [*(("listops", kind) for kind in ("linformer", "local", "sinkhorn")), ("imdb", "linformer")]
    learned = [row for row in cells if row["learned"]]
    assert all(row["low"] > -0.02 for row in learned)
    others = [row["difference"] for row in learned if (row["task"], row["attention"]) != ("imdb", "linformer")]
    check_said_on_the_page(f"layers learn little (57%), the mean is {100 * sum(others) / len(others):.1f}.")


def test_matching_was_judged_by_these_rules_and_stands_on_the_page() -> None:
    check_judged_by_the_rules_that_stand_here("wide-attention", "matching")
    result = published("wide-attention", "matching")
    cells, numbers = result.measured.tables["cells"], result.measured.numbers
    assert [verdict.outcome for verdict in result.verdicts] == [REPRODUCED] * 4
    assert [row["attention"] for row in cells if row["p_holm"] < 0.05] == ["linformer"]
    unlearned = next(row for row in cells if not row["learned"])
    assert unlearned["attention"] == "linformer"
    check_said_on_the_page(
        f"ahead by {_points(numbers[OVERALL])}, and if the last quarter of training came once more, "
        f"{_points(numbers[CREDITED], '')}: *better*",
        f"In {sum(row['learned'] for row in cells)} of {len(cells)} kinds both learned",
        f"learned nothing ({100 * unlearned['deep']:.0f}%, one layer {100 * unlearned['wide']:.0f}%)",
    )


def _points(number: Interval, unit: str = " points") -> str:
    """An interval of accuracies as the page has it."""
    assert number.low is not None
    assert number.high is not None
    value, low, high = (f"{100 * share:.1f}".replace("-", "−") for share in (number.value, number.low, number.high))
    return f"{value}{unit} ({low} to {high})"
