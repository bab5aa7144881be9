"""The study of deep initialisation: its rules on made-up maps, its reference loss, and a run of seconds."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.model import SCHEMES
from deepwide.studies import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    dry_run,
    find_study,
    read_result,
    run_study,
)

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "studies" / "deep-init-cpu"

SMALL = (
    'cells=[{depth=1, rates=[1e-2], schemes=["post-LN", "ADMIN", "T-Fixup", "CompleteP"]}]', "seeds=[0, 1]",
    "width=8", "heads=1", "length=4", "symbols=3", "batch=4", "steps=10", "networks=2", "probe_depths=[1, 6]",
)  # fmt: skip
ONE = Interval(1.0, 0.95, 1.05)
NAMES = [rule.claim.key for rule in find_study("deep-init").rules]
Cell = tuple[str, int, float, int, int]  # scheme, depth, rate, warm-up, seed


def table(**changed: str) -> list[dict[str, Any]]:
    """What the papers say: post-LN fails at 48 layers, everything else trains. `changed` names a state by cell."""
    rows = []
    for scheme, depth, lr, warmup, seed in itertools.product(SCHEMES, (6, 48), (1e-3, 4e-3), (12, 0), (1, 2)):
        state = "stuck" if scheme == "post-LN" and depth == 48 else "trained"
        for name in (f"{scheme} {depth}", f"{scheme} {depth} {lr:g}", f"{scheme} {depth} seed {seed}"):
            if warmup:
                state = changed.get(name, state)
        state = changed.get(f"{scheme} bare", state) if not warmup else state
        rows.append({"scheme": scheme, "depth": depth, "lr": lr, "warmup": warmup, "seed": seed, "state": state})
    return [row for row in rows if row["state"] != "not run"]


def outcomes(rows: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, str]:
    numbers = {
        "seeds": Interval(changes.get("seeds", 2)),
        "untrained networks of each kind": Interval(changes.get("networks", 8)),
        "exponent of ω² against the sublayer": changes.get("omega", ONE),
        "exponent of the output change, post-LN": changes.get("post", ONE),
        "exponent of the output change, pre-LN": changes.get("pre", Interval(0.3, 0.25, 0.35)),
    }
    measured = Measured(numbers=numbers, tables={"cells": table() if rows is None else rows})
    return {rule.claim.key: rule.judge(measured).outcome for rule in find_study("deep-init").rules}


def test_what_the_papers_say_is_reproduced() -> None:
    assert outcomes() == dict.fromkeys(NAMES, REPRODUCED)


def test_too_few_seeds_or_networks_decide_nothing() -> None:
    assert outcomes(seeds=1, networks=4) == dict.fromkeys(NAMES, NOT_DECIDABLE)


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({"post-LN 48": "trained"}, NOT_REPRODUCED),
        ({"post-LN 48 0.004": "trained"}, NOT_REPRODUCED),  # one rate suffices
        ({"post-LN 48 seed 1": "trained"}, NOT_DECIDABLE),  # one seed of two: neither trained nor failed
        ({"post-LN 48": "diverged"}, REPRODUCED),
        ({"ADMIN 48 0.001": "diverged"}, REPRODUCED),
        ({"ADMIN 48": "stuck"}, NOT_REPRODUCED),  # the default trains wherever ADMIN does: at 6 layers
        ({"ADMIN 6": "stuck"}, NOT_DECIDABLE),
        ({"post-LN 6": "diverged"}, NOT_DECIDABLE),
    ],
)
def test_the_default_fails_only_where_no_seed_trains_at_any_rate(changed: dict[str, str], outcome: str) -> None:
    assert outcomes(table(**changed))["deeper"] == outcome


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({"DeepNorm 48": "stuck"}, NOT_REPRODUCED),
        ({"DeepNorm 48": "diverged"}, NOT_REPRODUCED),
        ({"DeepNorm 48 0.001": "diverged"}, REPRODUCED),
        ({"DeepNorm 48 seed 2": "stuck"}, NOT_DECIDABLE),
        ({"DeepNorm 48": "not run"}, NOT_DECIDABLE),
    ],
)
def test_a_scheme_trains_deep_if_it_does_at_its_greatest_depth(changed: dict[str, str], outcome: str) -> None:
    judged = outcomes(table(**changed))
    assert judged["deepest-deepnorm"] == outcome
    assert {judged[f"deepest-{name}"] for name in ("admin", "rezero", "t-fixup")} == {REPRODUCED}


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({"ReZero bare": "diverged"}, NOT_REPRODUCED),
        ({"post-LN bare": "diverged"}, REPRODUCED),  # which nobody claims to do without
        ({"pre-LN bare": "not run"}, NOT_DECIDABLE),
        ({"T-Fixup 6": "stuck", "T-Fixup 48": "stuck"}, NOT_DECIDABLE),  # it does not train with warm-up either
    ],
)
def test_warm_up_is_judged_where_a_scheme_trains_with_it(changed: dict[str, str], outcome: str) -> None:
    assert outcomes(table(**changed))["warmup"] == outcome


@pytest.mark.parametrize(
    ("changes", "omega", "amplification"),
    [
        ({"omega": Interval(0.7, 0.6, 0.8)}, NOT_REPRODUCED, REPRODUCED),
        ({"omega": Interval(0.9, 0.8, 1.0)}, NOT_DECIDABLE, REPRODUCED),
        ({"omega": Interval(1.0)}, NOT_DECIDABLE, REPRODUCED),
        ({"post": Interval(1.6, 1.5, 1.7)}, REPRODUCED, NOT_REPRODUCED),
        ({"post": Interval(1.2, 1.1, 1.3)}, REPRODUCED, NOT_DECIDABLE),
        ({"pre": Interval(0.9, 0.8, 1.0)}, REPRODUCED, NOT_REPRODUCED),
        ({"pre": Interval(0.5, 0.4, 0.6)}, REPRODUCED, NOT_DECIDABLE),
    ],
)
def test_exponents_are_judged_by_their_intervals(changes: dict[str, Any], omega: str, amplification: str) -> None:
    judged = outcomes(**changes)
    assert (judged["omega"], judged["amplification"]) == (omega, amplification)


def test_a_small_run_fills_the_map_and_draws(tmp_path: Path) -> None:
    result = run_study("deep-init", changes=SMALL, out=tmp_path, processes=1)
    assert len(result.measured.table("cells")) == 4 * 2
    assert {row["scheme"] for row in result.measured.table("map")} == {"post-LN", "ADMIN", "T-Fixup", "CompleteP"}
    assert all(row["trained"] + row["stuck"] + row["diverged"] == 2 for row in result.measured.table("map"))
    changes = result.measured.table("change")
    assert {row["scheme"] for row in changes} == set(SCHEMES) - {"ReZero"}  # which starts as the identity
    omegas = [row for row in result.measured.table("omega") if row["source"] == "here"]
    assert len(omegas) == 12
    assert omegas[0]["omega_squared"] == 1.0
    assert len(result.measured.table("gradients")) == 6 * len(SCHEMES)
    assert sorted(result.figures) == ["change", "map", "omega"]
    for name in result.figures:
        assert (tmp_path / f"{name}.svg").exists()


@pytest.mark.parametrize("change", ["cells=[]", "cells=[{depth=6, rates=[]}]", "steps=1", 'task="translation"'])
def test_settings_that_train_nothing_cost_a_sentence(change: str, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError) as caught:
        run_study("deep-init", changes=(*SMALL, change), out=tmp_path)
    assert "\n" not in str(caught.value)


def test_the_paper_s_preset_counts_encoder_decoders() -> None:
    forecast = dry_run("deep-init", "paper")
    assert forecast.sweeps.keys() == {"depth-6-rate-0.001", "depth-12-rate-0.001"}
    assert forecast.train_flops > 1e19


def test_the_published_result_was_judged_by_the_rules_that_stand_here() -> None:
    """A changed rule needs a new run: the hash in the result is that of the rules in the file."""
    result, study = read_result(PUBLISHED), find_study("deep-init")
    assert result.rule_hash == result.rule_hash_at_start == study.rule_hash
    assert result.settings == study.settings("cpu").model_dump(mode="json")
    assert [rule.judge(result.measured) for rule in study.rules] == list(result.verdicts)


def test_the_page_on_studies_quotes_the_published_result() -> None:
    """The map of 48 layers and the exponents of the output change; the table of verdicts is made from the results."""
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    result = read_result(PUBLISHED)
    losses = {(row["scheme"], row["lr"]): row for row in result.measured.table("map") if row["warmup"]
              and row["depth"] == 48}  # fmt: skip
    rates = sorted({lr for _, lr in losses})
    for scheme in SCHEMES:
        shown = " | ".join(_shown(losses.get((scheme, lr))) for lr in rates)
        assert f"| {scheme} | {shown} |" in page
    for name, number in result.measured.numbers.items():
        if name.startswith("exponent of the output change"):
            assert f"{name.partition(', ')[2]} {number.value:.2f}" in page


def _shown(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "not run"
    loss = "" if cell["validation_loss"] is None else f"{cell['validation_loss']:.2f} "
    return f"{loss}{cell['state']}"
