"""All sets together: what is pooled, the law that comes out, and the numbers that the page on evidence quotes."""

import json
import math
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.laws import pooled_law, published_laws, transition_law
from deepwide.pooling import evidence, save_set
from deepwide.pooling.together import pool
from pooling.builders import made_set

ROOT = Path(__file__).parents[2]


def test_the_law_that_plans_read_is_what_the_shipped_sets_give() -> None:
    computed, shipped = (
        json.loads(law.model_dump_json(), parse_float=lambda text: float(f"{float(text):.4g}"))
        for law in (evidence().law, pooled_law())
    )
    assert shipped == computed
    assert list(published_laws())[:2] == ["levine", "pooled"]


def test_equal_sets_agree_with_each_other_and_with_the_law() -> None:
    answer = pool([made_set("one"), made_set("two")])
    assert answer.ratio_mean.value == pytest.approx(math.exp(-0.2), rel=0.01)
    assert answer.law.depth_at(2e8) == pytest.approx(math.exp(-0.2) * transition_law().depth_at(2e8), rel=0.01)
    assert [row.weight for row in answer.sets] == [0.5, 0.5]
    assert answer.token_slope is None
    assert answer.tokens_verdict.outcome == "no"


def test_a_small_set_is_shown_and_changes_nothing() -> None:
    small = made_set("tiny", centre_params=1e5, place=2.5)
    alone, with_small = pool([made_set("one")]), pool([made_set("one"), small])
    assert with_small.ratio_new == alone.ratio_new
    assert [row.weight for row in with_small.sets] == [1.0, None]
    assert "tiny" in with_small.notes[0].text
    with pytest.raises(DeepwideError, match="no set is left to pool"):
        pool([small])


def test_sets_that_differ_widen_the_interval() -> None:
    near = pool([made_set("one"), made_set("two")])
    far = pool([made_set("one", place=-0.6), made_set("two", place=0.2)])
    assert near.ratio_new.high is not None
    assert far.ratio_new.high is not None
    assert far.ratio_new.high / far.ratio_new.value > 1.2 * near.ratio_new.high / near.ratio_new.value
    assert far.between_place.value > near.between_place.value


def sloped(name: str, slope: float, error: float = 0.03) -> object:
    covariance = ((0.01, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, error**2))
    return made_set(name, token_slope=slope, covariance=covariance)


def test_tokens_matter_by_the_rule_and_then_move_the_cost() -> None:
    agree = [sloped(name, -0.5) for name in ("one", "two", "three")]
    answer = evidence(*agree, without=("gemstones", "morph", "ours"), tokens_per_param=200)  # type: ignore[arg-type]
    assert answer.tokens_verdict.outcome == "yes"
    at_20 = evidence(*agree, without=("gemstones", "morph", "ours"), tokens_per_param=20)  # type: ignore[arg-type]
    assert answer.tokens_per_param == 200
    assert answer.factor_2_new.value < at_20.factor_2_new.value
    mixed = [sloped("one", -0.5), sloped("two", 0.01), sloped("three", -0.5), sloped("four", -0.5)]
    other = evidence(*mixed, without=("gemstones", "morph", "ours"))  # type: ignore[arg-type]
    assert other.tokens_verdict.outcome == "no"


def test_a_further_set_is_a_file_and_a_name_replaces(tmp_path: Path) -> None:
    path = save_set(made_set("more", place=0.3), tmp_path / "more.json")
    assert evidence(path).ratio_mean.value > evidence().ratio_mean.value
    names = [row.name for row in evidence(made_set("morph")).sets if not row.length]
    assert names.count("morph") == 1
    with pytest.raises(DeepwideError, match="there is no set 'nobody'"):
        evidence(without=["nobody"])
    with pytest.raises(DeepwideError, match="no set is left to pool: outside the sizes of the levine law is ours"):
        evidence(without=["gemstones", "morph"])
    assert evidence(without="morph").sets == evidence(without=["morph"]).sets
    with pytest.raises(DeepwideError, match="tokens_per_param must be"):
        evidence(tokens_per_param=0)


def test_rows_are_plain() -> None:
    rows = evidence().rows()
    assert {row["set"] for row in rows} >= {"gemstones", "morph", "ours"}
    json.dumps(rows, allow_nan=False)
    assert "times the levine law's" in str(evidence())


def test_the_page_quotes_what_was_measured() -> None:
    page = " ".join((ROOT / "docs/evidence.md").read_text(encoding="utf-8").split())
    pooled, sensitivity, embeddings = (
        json.loads((ROOT / f"results/evidence/{name}.json").read_text(encoding="utf-8"))
        for name in ("pooled", "sensitivity", "embeddings")
    )

    def span(interval: dict[str, float]) -> str:
        return f"{interval['low']:.2f} to {interval['high']:.2f}"

    quoted = [
        span(pooled["ratio_new"]),
        f"{pooled['factor_2_new']['value']:.2f}% of loss ({span(pooled['factor_2_new'])}",
        span(pooled["token_slope"]).replace("-", "−"),
        span(sensitivity["priors × 0.5"]["ratio_new"]),
        span(sensitivity["priors × 2"]["ratio_new"]),
    ]
    knapp = sensitivity["Hartung-Knapp, mean of ln(best depth / levine's)"]
    quoted.append(f"{math.exp(knapp['low']):.2f} to {math.exp(knapp['high']):.2f}")
    for words in ("with", "without"):
        quoted += [f"{each[words]['value']:.2f}" for name, each in embeddings.items() if name != "command"]
    assert [text for text in quoted if text not in page] == []
    assert pooled["law"]["growth_error"] == round(sensitivity["growth_at_10B"]["standard deviation"], 2) or (
        abs(pooled["law"]["growth_error"] - sensitivity["growth_at_10B"]["standard deviation"]) < 0.01
    )
    judged = json.loads((ROOT / "results/evidence/judged.json").read_text(encoding="utf-8"))
    errors = {score["law"]: score["mean_error"] for score in judged["scores"]}
    assert f"pooled errs by {errors['pooled']:.2f} in ln depth and levine by {errors['levine']:.2f}" in page


def test_a_set_that_takes_no_part_or_another_s_place_is_said_and_goes_with_the_law() -> None:
    """A plan with a small set of one's own was the shipped plan, without a word."""
    small = made_set("mine", sizes=(1e4, 2e5), centre_params=5e4)
    answer = evidence(small)
    assert answer.law.cautions == tuple(n.text for n in answer.notes if n.data.get("set") == "mine")
    assert "not pooled" in answer.law.cautions[0]
    again = evidence(made_set("morph"))
    assert "takes the place" in again.law.cautions[0]
    assert again.notes[0].code == "set-replaced"
    assert evidence().law.cautions == ()
    assert "1 set says little" in evidence(without=["morph"]).notes[-1].text
