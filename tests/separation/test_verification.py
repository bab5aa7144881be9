"""A certificate holds when measured again from its seeds by another evaluation; forged or vast ones do not."""

import json
import resource
import time
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import verification
from deepwide.separation.certificates import Certificate
from deepwide.separation.evaluate import Points
from deepwide.separation.measurement import confirm, measure
from deepwide.separation.network import Case
from deepwide.separation.verification import verify
from separation.builders import PUBLISHED, is_one_sentence, reseal, save_special_weights, save_weights


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    measured = measure(Case(2, 3, 3, seed=7))
    return Certificate.of(measured, confirm(measured))


@pytest.fixture
def path(certificate: Certificate, tmp_path: Path) -> Path:
    certificate.write(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_a_certificate_holds(path: Path) -> None:
    answer = verify(path)
    assert (answer.rank, answer.prime, answer.second_prime, answer.holds) == (43, 1_048_573, 1_048_571, True)


@pytest.mark.parametrize(
    ("case", "full_grid", "method", "independent"),
    [
        (Case(2, 3, sides="AB"), False, "gram", True),
        (Case(2, 2, weights="identity"), False, "gram", True),
        (Case(2, 2, 2), False, "eq3", True),
        (Case(2, 2, residual=True), False, "eq3", True),
        (Case(2, 2, causal=True), False, "eq3", False),
        (Case(2, 2), True, "gram", True),
    ],
)
def test_the_evaluation_is_another_one_and_is_named(
    tmp_path: Path, case: Case, full_grid: bool, method: str, independent: bool
) -> None:
    Certificate.of(measure(case, full_grid=full_grid)).write(tmp_path / "c.json")
    answer = verify(tmp_path / "c.json")
    assert (answer.method, answer.independent) == (method, independent)


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json")), ids=lambda path: path.stem)
def test_published_ranks_hold(path: Path) -> None:
    if json.loads(path.read_text())["rank"] <= 120:
        assert verify(path).holds


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rank", 44), ("blocks", [1, 6, 16, 18, 3]), ("prime", 65_521), ("points_sha256", "0" * 64),
        ("bound", 48), ("block_bounds", [1, 6, 21, 18, 4]), ("points", [2, 7, 22, 19, 5]), ("full_grid", True),
        ("rank", 10**4000),
    ],
)  # fmt: skip
def test_a_forged_and_sealed_certificate_does_not_hold(path: Path, key: str, value: object) -> None:
    reseal(path, json.loads(path.read_text()) | {key: value})
    with pytest.raises(DeepwideError, match="does not hold") as stopped:
        verify(path)
    assert is_one_sentence(str(stopped.value))


@pytest.mark.parametrize(("key", "value"), [("seed", 8), ("heads", 1)])
def test_a_certificate_of_another_network_does_not_hold(path: Path, key: str, value: int) -> None:
    forged = json.loads(path.read_text())
    forged["case"][key] = value
    reseal(path, forged)
    with pytest.raises(DeepwideError, match="does not hold"):
        verify(path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("points_sha256", "1" * 64, "second sample points"),
        ("blocks", [1, 6, 15, 18, 2], "ranks of its confirmation"),
        ("prime", 1, "out of range"),
        ("prime", 1_048_575, "not prime"),
    ],
)
def test_a_forged_confirmation_does_not_hold(path: Path, key: str, value: object, words: str) -> None:
    forged = json.loads(path.read_text())
    forged["confirmed"][key] = value
    reseal(path, forged)
    with pytest.raises(DeepwideError, match=words):
        verify(path)


def test_the_second_prime_is_measured_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    primes = []
    monkeypatch.setattr(verification, "measure", lambda *a, **k: primes.append(a[1]) or measure(*a, **k))
    verify(path)
    assert primes == [1_048_573, 1_048_571]


def test_a_second_prime_that_takes_long_is_compared_by_its_points(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "CHEAP_SECONDS", 0.0)
    answer = verify(path)
    assert (answer.second_prime, answer.points_only) == (None, 1_048_571)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 3, "width": 7, "sides": "B" * 7 + "A" * 7, "at": 13}, "rows"),
        ({"depth": 8, "width": 4000, "sides": "BBBBBAAAAA", "at": 9}, "rows"),
        ({"depth": 2, "width": 16000, "sides": "BA", "at": 1}, "rows"),
        ({"depth": 8, "width": 50, "sides": "B" * 50 + "A" * 50, "at": 99}, "rows"),
        ({"width": 30_000_000, "sides": "BA", "at": 1}, "at most 16384"),
        ({"depth": 9, "width": 50}, "cannot be measured"),
    ],
)
def test_a_vast_case_is_refused_before_anything_is_drawn(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], words: str
) -> None:
    monkeypatch.setattr(Points, "draw", lambda *_: pytest.fail("drawn before the size was checked"))
    forged = json.loads(path.read_text())
    forged["case"] |= {"heads": 1, **change}
    reseal(path, forged)
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DeepwideError, match=words) as stopped:
        verify(path, memory=8 * 10**9)
    assert time.perf_counter() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB
    assert is_one_sentence(str(stopped.value))


def test_the_size_is_checked_before_weights_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Certificate, "check_weights", lambda _: pytest.fail("read before the size was checked"))
    forged = json.loads(path.read_text()) | {"weights_sha256": "0" * 64}
    forged["case"] |= {"heads": 1, "depth": 3, "width": 7, "sides": "B" * 7 + "A" * 7, "at": 13, "weights": "w.npz"}
    reseal(path, forged)
    with pytest.raises(DeepwideError, match="rows"):
        verify(path, memory=8 * 10**9)


@pytest.mark.parametrize("weights", ["/dev/zero", "/dev/urandom", "/dev", "nowhere.npz", "nowhere/../../x.npz"])
def test_weights_that_are_no_file_are_not_read(path: Path, weights: str) -> None:
    forged = json.loads(path.read_text()) | {"weights_sha256": "0" * 64}
    forged["case"]["weights"] = weights
    reseal(path, forged)
    with pytest.raises(DeepwideError, match=r"not a regular file|no file"):
        verify(path)


def test_a_weight_file_that_changed_is_noticed(tmp_path: Path) -> None:
    weights = save_weights(tmp_path / "w.npz", 0)
    Certificate.of(measure(Case(2, 2, weights=str(weights)))).write(tmp_path / "c.json")
    assert verify(tmp_path / "c.json").rank == 18
    save_weights(weights, 1)
    with pytest.raises(DeepwideError, match="has changed"):
        verify(tmp_path / "c.json")


def test_a_certificate_about_a_file_that_suits_its_primes_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Honestly measured modulo both usual primes, and wrong: a third one is drawn when it is checked."""
    case = Case(2, 3, weights=str(save_special_weights(tmp_path / "w.npz")))
    special = measure(case)
    Certificate.of(special, confirm(special)).write(tmp_path / "c.json")
    for seconds in (60.0, 0.0):  # however long it takes
        monkeypatch.setattr(verification, "CHEAP_SECONDS", seconds)
        with pytest.raises(DeepwideError, match="drawn just now"):
            verify(tmp_path / "c.json")
    honest = measure(case, 999_983)
    Certificate.of(honest).write(tmp_path / "c.json")
    assert verify(tmp_path / "c.json").drawn_prime not in (None, 999_983)


def test_every_published_certificate_was_verified() -> None:
    """`python -m benchmarks.separation.verified --minutes 300`; a certificate that is made anew needs it again."""
    results = PUBLISHED.parent
    checked = json.loads((results / "verified.json").read_text(encoding="utf-8"))["checked"]
    made = {
        path.relative_to(results).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for folder in ("ranks", "structured")
        for path in (results / folder).glob("*.json")
    }
    assert checked.keys() == made.keys()
    for name, certificate in made.items():
        rank = certificate["rank"] if "rank" in certificate else certificate["lower"]
        assert (checked[name]["sha256"], checked[name]["rank"]) == (certificate["sha256"], rank)
    assert f"all {len(made)}." in (results.parents[1] / "docs" / "rank.md").read_text(encoding="utf-8")
