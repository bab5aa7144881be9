"""Certificates of structured weights: measured, stored, resumed, checked again, refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import PRIME, TooLargeError, is_structured, structured, structured_rank, verify_structured
from deepwide.separation import structured_certificate as module
from deepwide.separation.structured import Forms, Kind, ParityClass, class_rank
from separation.builders import PUBLISHED, is_one_sentence, reseal

STRUCTURED = PUBLISHED.parent / "structured"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    structured_rank(2, 3, out=tmp_path / "c.json")
    return tmp_path / "c.json"


def test_where_it_meets_the_upper_bound_the_rank_is_proved(path: Path) -> None:
    answer = structured_rank(2, 3)
    assert (answer.lower, answer.upper, answer.reached) == (49, 49, True)
    assert [(entry.block, entry.rank, entry.classes) for entry in answer.blocks] == [(2, 21, 4), (3, 18, 4)]
    assert answer.second is not None
    assert answer.second.algorithm == "flint"
    assert answer.rows()[0]["largest"] == (17, 9)
    assert is_structured(path)
    assert verify_structured(path).lower == 49
    assert verify_structured(path).compared == 2


@pytest.mark.parametrize("weights", ["diagonal", "pairs"])
def test_large_classes_are_ranked_in_float32_and_verified_in_float64(
    weights: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FLINT_ROWS", 100)
    told: list[tuple[str, float]] = []
    out = tmp_path / "c.json"
    answer = structured_rank(3, 3, weights=weights, out=out, progress=lambda text, share: told.append((text, share)))
    assert (answer.lower, answer.reached, answer.prime, answer.weights) == (3102, True, 127, weights)
    assert answer.second is not None
    assert (answer.second.prime, answer.second.algorithm) == (131, "sgemm")
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert told[-1][1] == pytest.approx(1)
    verified = verify_structured(out)
    assert (verified.lower, verified.algorithm) == (3102, "dgemm")
    assert verified.prime > 10_000


def test_other_weights_are_refused_in_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="'diagonal' or 'pairs'"):
        structured_rank(2, 3, weights="random")  # type: ignore[arg-type]


def test_where_it_does_not_it_says_at_least() -> None:
    answer = structured_rank(3, 2, confirm=False)
    assert (answer.lower, answer.upper, answer.reached) == (231, 232, False)


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "c.json"
    asked: list[int] = []
    usual = class_rank

    def stops(*arguments: Any) -> int:
        asked.append(arguments[1].parity)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(module, "class_rank", stops)
    with pytest.raises(KeyboardInterrupt):
        structured_rank(2, 3, out=out, confirm=False)
    assert structured_rank(2, 3, out=out, confirm=False).lower == 49
    assert len(asked) == 3 + 8 - 2  # two were finished
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_what_interrupted_runs_took_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "c.json"
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)
    earlier = module._Finished(out, 2, 3, 0, "diagonal")
    earlier.clock(PRIME)
    earlier.seconds[PRIME], earlier.cpu_seconds, earlier.peak_bytes = 100.0, 50.0, 10**15
    earlier.add("dgemm/1048573/2/0", 9)
    answer = structured_rank(2, 3, out=out)
    assert answer.seconds == pytest.approx(100, abs=20)
    assert answer.cpu_seconds == pytest.approx(50, abs=20)
    assert answer.peak_bytes == 10**15
    assert answer.second is not None
    assert answer.second.seconds < 20


def test_all_rows_are_ranked_only_where_a_few_fall_short_of_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(structured, "_SPARE_AT_LEAST", -1)  # one row or column fewer than a full class needs
    monkeypatch.setattr(structured, "_SPARE", 0.0)
    table, parts = structured.forms(2, 3, PRIME), list(structured.classes(2, 3, 2))
    few = [class_rank(table, structured.thin(part)) for part in parts]
    assert few == [5, 3, 3, 3]
    shapes: list[tuple[int, int]] = []

    def watched(table: Forms, part: ParityClass, *rest: Any) -> int:
        shapes.append(part.shape)
        return class_rank(table, part, *rest)

    monkeypatch.setattr(module, "class_rank", watched)

    def rank(bound: int) -> int:
        shapes.clear()
        finished = module._Finished(None, 2, 3, 0, "diagonal")
        return module._rank(table, parts, bound, "dgemm", finished, module._Work(parts, 1, None), 10**9)

    assert rank(14) == 14
    assert shapes == [(8, 9), (3, 4), (3, 4), (3, 4)]
    assert rank(21) == 21
    assert shapes[4:] == [(17, 9), (17, 4), (17, 4), (12, 4)]
    assert rank(15) == 18  # the first class in full was enough
    assert len(shapes) == 5


def test_all_rows_of_a_class_must_fit_into_the_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "_SPARE_AT_LEAST", -1)
    monkeypatch.setattr(structured, "_SPARE", 0.0)
    with pytest.raises(TooLargeError, match="17 × 9, needs"):
        structured_rank(2, 3, memory=1000)


def test_finished_classes_of_another_case_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    finished = module._Finished(out, 2, 4, 0, "diagonal")
    finished._saved -= 10
    finished.add("dgemm/1048573/2/0", 5)
    with pytest.raises(DeepwideError, match="another case"):
        structured_rank(2, 3, out=out)
    torn = tmp_path / ".c.json.part"
    torn.write_text(torn.read_text().replace("5", "6", 1))
    with pytest.raises(DeepwideError, match="torn"):
        structured_rank(2, 4, out=out)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lower": 50}, "does not hold"),
        ({"upper": 50}, "does not hold"),
        ({"seed": 1, "lower": 48}, "does not hold"),
        ({"depth": 3}, "does not hold|Block|blocks"),
        ({"depth": 9}, "too many|cannot"),
        ({"width": 10**9}, "too many|monomials"),
        ({"width": True}, "valid"),
        ({"prime": PRIME, "second": None, "blocks": []}, "valid"),
        ({"surprise": 1}, "valid"),
        ({"seconds": float("nan")}, "valid"),
    ],
)
def test_a_forged_certificate_is_refused_in_a_sentence(path: Path, change: dict[str, Any], words: str) -> None:
    reseal(path, json.loads(path.read_text()) | change)
    with pytest.raises(DeepwideError, match=words) as error:
        verify_structured(path)
    assert is_one_sentence(str(error.value))


def test_a_changed_byte_and_a_forged_block_are_noticed(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(path.read_text().replace('"lower": 49', '"lower": 48'))
    with pytest.raises(DeepwideError, match="was changed"):
        verify_structured(path)
    content["blocks"][0]["rank"] = 20
    reseal(path, content)
    with pytest.raises(DeepwideError, match="does not hold"):
        verify_structured(path)
    content["blocks"][0] |= {"rank": 21, "block": 77}
    reseal(path, content)
    with pytest.raises(DeepwideError, match="about the blocks 2, 3"):
        verify_structured(path)


def test_a_claim_that_agrees_with_itself_is_still_ranked_again(tmp_path: Path) -> None:
    """Diagonal weights reach 41 of 42 in block 8: a file that claims all 42 is consistent, and false."""
    path = tmp_path / "c.json"
    structured_rank(3, 2, out=path)
    assert verify_structured(path).lower == 231
    content = json.loads(path.read_text())
    ranks = [entry["bound"] for entry in content["blocks"]]
    for entry in content["blocks"]:
        entry["rank"] = entry["bound"]
    content["second"]["ranks"] = ranks
    reseal(path, content | {"lower": 232})
    with pytest.raises(DeepwideError, match="for its ranks"):
        verify_structured(path)


def test_coefficients_are_compared_with_another_evaluation(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = structured.gram_values
    monkeypatch.setattr(structured, "gram_values", lambda *given: right(*given) + 1)
    with pytest.raises(DeepwideError, match="do not add up"):
        verify_structured(path)


def test_a_certificate_says_that_it_proves_a_lower_bound(path: Path) -> None:
    assert json.loads(path.read_text())["proves"].startswith("a lower bound: the rank of generic weights is at least")


@pytest.mark.parametrize(
    "change",
    [
        {"lower": 48}, {"upper": 50}, {"lower": 50, "upper": 50},
        {"blocks.0.rank": 22}, {"blocks.0.rank": 20}, {"blocks.0.bound": 20}, {"blocks.0.classes": 5},
        {"blocks.0.largest": [17, 10]}, {"blocks.1.block": 2}, {"second.ranks": [21, 17]}, {"second.ranks": [21]},
        {"depth": 6, "width": 2}, {"depth": 2, "width": 60}, {"prime": 1_048_575}, {"prime": 2},
        {"blocks.0.surprise": 1}, {"second.surprise": 1}, {"proves": "the rank of all weights"},
    ],
)  # fmt: skip
def test_nothing_is_ranked_for_what_is_false_already(
    path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for expensive in ("forms", "_rank"):
        monkeypatch.setattr(module, expensive, lambda *_: pytest.fail("ranked"))
    content = json.loads(path.read_text())
    for keys, value in change.items():
        *above, last = keys.split(".")
        place = content
        for key in above:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value
    reseal(path, content)
    with pytest.raises(DeepwideError) as error:
        verify_structured(path)
    assert is_one_sentence(str(error.value))
    if "blocks.0.surprise" in change:
        assert "'classes'" in str(error.value)


def test_memory_is_checked_before_anything_is_written_down() -> None:
    with pytest.raises(TooLargeError, match="may be used"):
        structured_rank(3, 3, memory=10_000)


def test_primes_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "flint_rank", lambda _matrix, _prime: 1)
    with pytest.raises(DeepwideError, match="unlucky"):
        structured_rank(2, 2)


@pytest.mark.parametrize("file", sorted(STRUCTURED.glob("*.json")), ids=lambda file: file.stem)
def test_published_certificates_load(file: Path) -> None:
    certificate = module.read_structured(file)
    assert certificate.lower <= certificate.upper
    kind = "" if certificate.weights == "diagonal" else f"-{certificate.weights}"
    assert file.stem == f"L{certificate.depth}-d{certificate.width}{kind}-seed{certificate.seed}"
