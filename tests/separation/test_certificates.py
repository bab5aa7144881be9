"""A certificate holds when checked from its seeds, and does not when any digit of it was changed."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.certificates import case_of, certificate, read, seal, verify, write
from deepwide.separation.measurement import confirm, measure


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    measured = measure(Case(2, 3, 3, seed=7))
    return certificate(measured, confirm(measured))


@pytest.fixture
def path(content: dict[str, Any], tmp_path: Path) -> Path:
    write(content, tmp_path / "c.json")
    return tmp_path / "c.json"


def test_a_certificate_verifies(path: Path) -> None:
    assert verify(path).rank == 43


def test_every_kind_of_case_verifies(tmp_path: Path) -> None:
    for case in (
        Case(2, 2, causal=True),
        Case(2, 2, residual=True),
        Case(2, 3, sides="AB"),
        Case(2, 2, weights="identity"),
    ):
        write(certificate(measure(case), None), tmp_path / "c.json")
        assert verify(tmp_path / "c.json").case == case
    write(certificate(measure(Case(2, 2), full_grid=True), None), tmp_path / "g.json")
    assert verify(tmp_path / "g.json").rank == 18


def test_no_single_changed_digit_goes_unnoticed(path: Path) -> None:
    text = path.read_text()
    places = [match.start() for match in re.finditer(r"\d", text)]
    for place in places:
        changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
        path.write_text(changed)
        with pytest.raises(DeepwideError):
            read(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rank", 44), ("blocks", [1, 6, 16, 18, 3]), ("prime", 65_521), ("points_sha256", "0" * 64),
        ("bound", 48), ("block_bounds", [1, 6, 21, 18, 4]), ("points", [2, 7, 22, 19, 5]),
    ],
)  # fmt: skip
def test_a_forged_and_sealed_certificate_does_not_verify(path: Path, key: str, value: object) -> None:
    forged = read(path) | {key: value}
    write({**forged, "sha256": seal(forged)}, path)
    with pytest.raises(DeepwideError, match="does not hold"):
        verify(path)


@pytest.mark.parametrize(("key", "value"), [("seed", 8), ("heads", 1)])
def test_a_certificate_of_another_network_does_not_verify(path: Path, key: str, value: int) -> None:
    forged = read(path)
    forged["case"][key] = value
    write({**forged, "sha256": seal(forged)}, path)
    with pytest.raises(DeepwideError, match="does not hold"):
        verify(path)


def test_a_forged_confirmation_does_not_verify(path: Path) -> None:
    forged = read(path)
    forged["confirmed"]["points_sha256"] = "1" * 64
    write({**forged, "sha256": seal(forged)}, path)
    with pytest.raises(DeepwideError, match="second sample points"):
        verify(path)


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (["prime"], None, "'prime' is missing"),
        (["blocks"], "many", "'blocks' is 'many'"),
        (["blocks"], [1, "6"], "does not hold whole numbers"),
        (["blocks"], [43], "not equally many"),
        (["full_grid"], 0, "'full_grid' is 0"),
        (["case"], [], "'case' is \\[\\]"),
        (["case", "depth"], "2", "'case.depth' is '2'"),
        (["case", "heads"], 2, "cannot be split evenly"),
        (["case", "weights"], "w.npz", "'weights_sha256' is missing"),
        (["seconds"], "fast", "'seconds' is"),
        (["algorithm"], "by hand", "neither of dgemm and flint"),
        (["confirmed"], True, "'confirmed' is True"),
        (["confirmed", "blocks"], None, "'confirmed.blocks' is missing"),
        (["confirmed", "algorithm"], "magic", "neither of dgemm and flint"),
        (["confirmed", "prime"], 1_048_573, "confirmed by its own prime"),
    ],
)
def test_an_ill_formed_certificate_gets_a_sentence(path: Path, keys: list[str], value: object, words: str) -> None:
    forged = read(path)
    place = forged if len(keys) == 1 else forged[keys[0]]
    place[keys[-1]] = value
    if value is None:
        del place[keys[-1]]
    write({**forged, "sha256": seal(forged)}, path)
    with pytest.raises(DeepwideError, match=f"not a valid certificate: .*{words}"):
        verify(path)


def test_a_second_prime_that_is_no_prime_does_not_verify(path: Path) -> None:
    forged = read(path)
    forged["confirmed"]["prime"] = 1
    write({**forged, "sha256": seal(forged)}, path)
    with pytest.raises(DeepwideError, match="out of range"):
        verify(path)


def test_the_second_prime_is_measured_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.separation import certificates

    primes = []
    monkeypatch.setattr(certificates, "measure", lambda *a, **k: primes.append(a[1]) or measure(*a, **k))
    verify(path)
    assert primes == [1_048_573, 1_048_571]


def test_a_torn_file_gets_a_sentence(path: Path) -> None:
    path.write_text(path.read_text()[:100])
    with pytest.raises(DeepwideError, match="torn"):
        read(path)
    path.write_text(json.dumps({"format": "something else"}))
    with pytest.raises(DeepwideError, match="not a certificate of this program"):
        read(path)


def test_a_weight_file_that_changed_is_noticed(tmp_path: Path) -> None:
    names = [f"{layer}.{name}" for layer in range(2) for name in ("query", "key", "value", "output")]
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "w.npz", **{name: draw.normal(size=(2, 2)) for name in names})  # type: ignore[arg-type]
    case = Case(2, 2, weights=str(tmp_path / "w.npz"))
    write(certificate(measure(case), None), tmp_path / "c.json")
    assert verify(tmp_path / "c.json").rank == 18
    np.savez(tmp_path / "w.npz", **{name: draw.normal(size=(2, 2)) for name in names})  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="not the file"):
        verify(tmp_path / "c.json")


def test_writing_leaves_nothing_else_behind(path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == ["c.json"]


PUBLISHED = sorted((Path(__file__).parents[2] / "results" / "separation" / "ranks").glob("*.json"))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_every_published_rank_is_whole_confirmed_and_within_its_bound(path: Path) -> None:
    content = read(path)
    case, second = case_of(content), content["confirmed"]
    assert second["prime"] != content["prime"]
    assert second["blocks"] == content["blocks"]
    assert content["rank"] == sum(content["blocks"]) <= content["bound"] == case.bound
    assert path.stem == case.name()
    if content["rank"] <= 120:
        verify(path)


def test_there_are_published_ranks() -> None:
    assert len(PUBLISHED) > 50
